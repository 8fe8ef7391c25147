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

/// `y[i] = op(x[i])` in lanes.
fn kernel(op: Op) -> Function {
    let mut b = Builder::new(op.name(), FunctionKind::Kernel { group: None });
    let x = b.param_ptr(DType::F32, Space::Global, "x", Access::Read, true);
    let y = b.param_ptr(DType::F32, Space::Global, "y", Access::Write, true);
    let n = b.param_scalar(DType::I64, "n");
    let (zero, step) = (b.const_i64(0), b.const_i64(LANES as i64));
    b.for_loop(zero, n, step, LoopKind::Serial, "i", |b, i| {
        let value = b.load_vector(x, i, LANES as u32);
        let value = b.map(op, &[value]);
        b.store(y, i, value);
    });
    b.finish()
}

#[test]
fn functions_are_computed_outside_strict_mode() {
    let Some(backend) = backend() else { return };
    let computed = || Op::ALL.iter().filter(|op| ulps(**op).is_some());
    let module = Module {
        structs: Vec::new(),
        functions: computed().map(|op| kernel(*op)).collect(),
    };
    for strict in [true, false] {
        let options = CompileOptions {
            strict,
            cache: None,
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
    // Every sign and exponent, and eight significands of each.
    let operands: Vec<u32> = (0..1 << 12).map(|top| top << 20 | top & 0xfff).collect();
    let x: Vec<u8> = operands
        .iter()
        .flat_map(|bits| bits.to_ne_bytes())
        .collect();
    let mut y = vec![0; x.len()];
    for op in computed() {
        let n = Argument::Scalar(Scalar::i64(operands.len() as i64));
        let mut arguments = [Argument::Read(&x), Argument::Write(&mut y), n];
        executable.run(op.name(), &mut arguments).expect("it runs");
        for (bits, got) in operands.iter().zip(y.chunks_exact(4)) {
            let operand = Scalar::from_bits(DType::F32, u64::from(*bits));
            let got = Scalar::read(DType::F32, got);
            let exact = evaluate(*op, &[cast(operand, DType::F64)]).expect("it takes a float");
            let expected = cast(exact, DType::F32);
            let near = ulps(*op).is_some_and(|ulps| ulp_distance(got, expected) <= ulps.into());
            assert!(near, "{op} of {operand} is {got}, expected {expected}");
        }
    }
}
