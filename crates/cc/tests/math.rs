//! The functions that are computed, not called: at samples of all operands, in lanes and alone, with contraction
//! and without. `examples/math.rs` tries every operand there is.

mod harness;

use harness::{Buffer, backend};
use loopwright_backend::{Argument, CompileOptions, Executable, KernelBackend};
use loopwright_kernel::passes::expand_math::{expanded, ulps};
use loopwright_kernel::{Access, Builder, Function, FunctionKind, LoopKind, Module, Space};
use loopwright_ops::reference::ulp_distance;
use loopwright_ops::{DType, Op, Scalar, cast, evaluate};

const LANES: u32 = 16;

fn computed() -> impl Iterator<Item = Op> {
    let ops = Op::ALL.iter().copied();
    ops.filter(|op| ulps(*op).is_some())
}

/// `y[i] = op(x[i])`.
fn kernel(op: Op, dtype: DType, lanes: u32) -> Function {
    let kind = FunctionKind::Kernel { group: None };
    let mut b = Builder::new(format!("{op}_{lanes}"), kind);
    let x = b.param_ptr(dtype, Space::Global, "x", Access::Read, true);
    let y = b.param_ptr(dtype, Space::Global, "y", Access::Write, true);
    let n = b.param_scalar(DType::I64, "n");
    let (zero, step) = (b.const_i64(0), b.const_i64(lanes.into()));
    b.for_loop(zero, n, step, LoopKind::Serial, "i", |b, i| {
        let value = match lanes {
            1 => b.load(x, i),
            lanes => b.load_vector(x, i, lanes),
        };
        let value = b.map(op, &[value]);
        b.store(y, i, value);
    });
    b.finish()
}

fn module(dtype: DType, lanes: &[u32]) -> Module {
    let kernels =
        computed().flat_map(|op| lanes.iter().map(move |lanes| kernel(op, dtype, *lanes)));
    Module {
        structs: Vec::new(),
        functions: kernels.collect(),
    }
}

/// Some 100,000 operands: every exponent, the edges of every range that an expansion has, and others at random.
fn operands() -> Vec<Scalar> {
    let mut bits: Vec<u32> = Vec::new();
    for top in 0..1 << 12 {
        bits.extend([0, 1, 0xf_ffff].map(|low| top << 20 | low));
    }
    let edges = [
        f32::MIN_POSITIVE,
        0.5,
        std::f32::consts::FRAC_1_SQRT_2,
        0.9,
        1.0,
        std::f32::consts::SQRT_2,
        2.0,
        3.93,
        4.0,
        9.01,
        10.0,
        17.33,
        30.0,
        80.0,
        87.33,
        88.38,
        88.72,
        89.0,
        103.97,
        104.0,
        120.0,
        126.0,
        127.5,
        128.0,
        129.0,
        149.5,
        152.0,
        1.0 / 33_554_432.0,
        f32::INFINITY,
    ];
    for edge in edges {
        let middle = edge.to_bits();
        let near = (middle - 400)..=(middle + 400);
        bits.extend(near.flat_map(|bits| [bits, bits | 1 << 31]));
    }
    // Where `x / ln 2` and `2 x / ln 2` are rounded to another whole number.
    for half in -300..260 {
        let middle = (half as f32 / 4.0 * std::f32::consts::LN_2).to_bits();
        bits.extend((0..12).map(|near| middle.wrapping_add(near).wrapping_sub(6)));
    }
    let mut state = 1u64;
    while !bits.len().is_multiple_of(LANES as usize) || bits.len() < 110_000 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        bits.push((state >> 32) as u32);
    }
    let scalar = |bits| Scalar::from_bits(DType::F32, u64::from(bits));
    bits.into_iter().map(scalar).collect()
}

/// What is wrong with the results of an op, in words.
fn first_wrong(
    operands: &[Scalar],
    got: &[Scalar],
    expected: &[Scalar],
    ulps: u32,
) -> Option<String> {
    let negative = |value: Scalar| value.bits() >> (value.dtype().bits() - 1) != 0;
    let mut rows = operands.iter().zip(got.iter().zip(expected));
    rows.find_map(|(x, (got, expected))| {
        let near = ulp_distance(*got, *expected) <= ulps.into();
        let same_sign = expected.is_nan() || negative(*got) == negative(*expected);
        (!near || !same_sign).then(|| format!("of {x} is {got}, expected {expected}"))
    })
}

/// The correctly rounded result, but for rounding twice.
fn rounded(op: Op, x: Scalar) -> Scalar {
    let exact = evaluate(op, &[cast(x, DType::F64)]);
    cast(exact.expect("it takes a float"), DType::F32)
}

fn run(executable: &dyn Executable, kernel: &str, x: &[Scalar]) -> Vec<Scalar> {
    let dtype = x[0].dtype();
    let (x, mut y) = (Buffer::of(x), Buffer::zeroed(dtype, x.len()));
    let count = (x.bytes().len() / dtype.bytes()) as i64;
    let n = Argument::Scalar(Scalar::i64(count));
    let mut arguments = [Argument::Read(x.bytes()), Argument::Write(y.bytes_mut()), n];
    let ran = executable.run(kernel, &mut arguments);
    ran.unwrap_or_else(|error| panic!("{kernel}: {error}"));
    y.values(dtype)
}

#[test]
fn functions_are_as_near_as_they_say() {
    let Some(backend) = backend() else { return };
    let operands = operands();
    let module = module(DType::F32, &[1, 8, LANES]);
    let mut wrong = Vec::new();
    // Strict code contracts nothing, and calls what has not been written out before.
    for strict in [false, true] {
        let options = CompileOptions {
            strict,
            cache: None,
        };
        let executable = backend.compile(&expanded(&module), &options);
        let executable = executable.expect("it compiles");
        for op in computed() {
            let expected: Vec<Scalar> = operands.iter().map(|x| rounded(op, *x)).collect();
            for lanes in [1, 8, LANES] {
                let got = run(&*executable, &format!("{op}_{lanes}"), &operands);
                let ulps = ulps(op).unwrap_or_default();
                let first = first_wrong(&operands, &got, &expected, ulps);
                wrong.extend(
                    first.map(|first| format!("{op} in {lanes} lanes, strict {strict}: {first}")),
                );
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Narrow floats are computed in `f32`: at every operand, the result is the library's or the one next to it.
#[test]
fn narrow_floats_are_the_next_at_most() {
    let Some(backend) = backend() else { return };
    for dtype in [DType::F16, DType::BF16] {
        let operands = (0..1 << 16).map(|bits| Scalar::from_bits(dtype, bits));
        let operands: Vec<Scalar> = operands.collect();
        let executable = backend
            .compile(&module(dtype, &[8]), &CompileOptions::default())
            .expect("it compiles");
        for op in computed() {
            let got = run(&*executable, &format!("{op}_8"), &operands);
            let expected = operands.iter().map(|x| evaluate(op, &[*x]));
            let expected: Result<Vec<Scalar>, _> = expected.collect();
            let expected = expected.expect("it takes a float");
            let wrong = first_wrong(&operands, &got, &expected, 1);
            assert_eq!(wrong, None, "{op} in {dtype}");
        }
    }
}

/// Strict mode promises the interpreter's bits, and the interpreter calls the library.
#[test]
fn strict_code_calls_the_library() {
    let Some(backend) = backend() else { return };
    let module = module(DType::F32, &[LANES]);
    for (strict, called) in [(true, true), (false, false)] {
        let options = CompileOptions {
            strict,
            cache: None,
        };
        let code = backend
            .compile(&module, &options)
            .expect("it compiles")
            .code();
        for op in computed() {
            let call = format!("{op}f(");
            assert_eq!(code.contains(&call), called, "`{call}` in {code}");
        }
    }
}
