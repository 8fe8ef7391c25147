//! The functions that are computed, not called. What they compute is tested with the pass, and on `cc`; this is
//! whether this backend asks for it, and gives the same results in lanes.

mod harness;

use harness::backend;
use loopwright_backend::{Argument, CompileOptions, KernelBackend};
use loopwright_kernel::passes::expand_math::ulps;
use loopwright_kernel::{Access, Builder, Function, FunctionKind, LoopKind, Module, Space};
use loopwright_ops::reference::ulp_distance;
use loopwright_ops::{DType, Op, Scalar, cast, evaluate};

const LANES: usize = 8;

/// `z[i] = op(x[i])`, or `op(x[i], y[i])`, in lanes.
fn kernel(op: Op) -> Function {
    let mut b = Builder::new(op.name(), FunctionKind::Kernel { group: None });
    let operands =
        ["x", "y"].map(|name| b.param_ptr(DType::F32, Space::Global, name, Access::Read, true));
    let z = b.param_ptr(DType::F32, Space::Global, "z", Access::Write, true);
    let n = b.param_scalar(DType::I64, "n");
    let (zero, step) = (b.const_i64(0), b.const_i64(LANES as i64));
    b.for_loop(zero, n, step, LoopKind::Serial, "i", |b, i| {
        let values = operands[..op.arity()].iter();
        let values: Vec<_> = values
            .map(|operand| b.load_vector(*operand, i, LANES as u32))
            .collect();
        let value = b.map(op, &values);
        b.store(z, i, value);
    });
    b.finish()
}

#[test]
fn functions_are_computed_outside_strict_mode() {
    let Some(backend) = backend() else { return };
    let computed = || Op::ALL.iter().filter(|op| ulps(**op).is_some());
    let module = Module {
        functions: computed().map(|op| kernel(*op)).collect(),
        ..Module::default()
    };
    for strict in [true, false] {
        let options = CompileOptions {
            strict,
            ..CompileOptions::default()
        };
        let code = backend
            .description(&module, &options)
            .expect("it can be described");
        for op in computed() {
            let call = format!("{op}f (");
            assert_eq!(code.contains(&call), strict, "`{call}` in {code}");
        }
    }
    let executable = backend.compile(&module, &CompileOptions::default());
    let executable = executable.expect("it compiles");
    // Every sign and exponent, and eight significands of each; for the second operand in another order.
    let numbers: Vec<u32> = (0..1 << 12).map(|top| top << 20 | top & 0xfff).collect();
    let others: Vec<u32> = (0..1 << 12)
        .map(|at| numbers[at * 1283 % (1 << 12)])
        .collect();
    let bytes = |numbers: &[u32]| -> Vec<u8> {
        let bytes = numbers.iter().flat_map(|bits| bits.to_ne_bytes());
        bytes.collect()
    };
    let (x, y) = (bytes(&numbers), bytes(&others));
    let mut z = vec![0; x.len()];
    for op in computed() {
        let n = Argument::Scalar(Scalar::i64(numbers.len() as i64));
        let mut arguments = [
            Argument::Read(&x),
            Argument::Read(&y),
            Argument::Write(&mut z),
            n,
        ];
        // SAFETY: the kernel stays within its arguments, as the one that it was made from does.
        unsafe { executable.run(op.name(), &mut arguments) }.expect("it runs");
        for ((x, y), got) in numbers.iter().zip(&others).zip(z.chunks_exact(4)) {
            let operands = [x, y].map(|bits| Scalar::from_bits(DType::F32, u64::from(*bits)));
            let wide = operands.map(|operand| cast(operand, DType::F64));
            let got = Scalar::read(DType::F32, got);
            let exact = evaluate(*op, &wide[..op.arity()]).expect("it takes floats");
            let expected = cast(exact, DType::F32);
            let near = ulps(*op).is_some_and(|ulps| ulp_distance(got, expected) <= ulps.into());
            let [x, y] = operands;
            assert!(near, "{op} of {x}, {y} is {got}, expected {expected}");
        }
    }
}
