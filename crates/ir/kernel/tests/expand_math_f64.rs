//! The functions of `f64` that `expand_math` writes out, on the interpreter, beside those of the library.

use loopwright_kernel::Argument;
use loopwright_kernel::interpret::{Grid, interpret};
use loopwright_kernel::passes::expand_math::{Precision, expanded, expanded_with, ulps_f64};
use loopwright_kernel::{Access, Builder, FunctionKind, LoopKind, Module, Space, validate};
use loopwright_ops::{DType, Op, Scalar, evaluate};
use std::borrow::Cow;

/// How far the library's functions are from the correctly rounded result at most.
const LIBRARY: u32 = 1;

/// `z[i] = op(x[i])`, or `op(x[i], y[i])`.
fn module(op: Op, lanes: u32) -> Module {
    let mut b = Builder::new("f", FunctionKind::Kernel { group: None });
    let operands =
        ["x", "y"].map(|name| b.param_ptr(DType::F64, Space::Global, name, Access::Read, true));
    let z = b.param_ptr(DType::F64, Space::Global, "z", Access::Write, true);
    let n = b.param_scalar(DType::I64, "n");
    let (zero, step) = (b.const_i64(0), b.const_i64(lanes.into()));
    b.for_loop(zero, n, step, LoopKind::Serial, "i", |b, i| {
        let operands = operands[..op.arity()].iter();
        let values: Vec<_> = operands
            .map(|operand| match lanes {
                1 => b.load(*operand, i),
                lanes => b.load_vector(*operand, i, lanes),
            })
            .collect();
        let value = b.map(op, &values);
        b.store(z, i, value);
    });
    Module {
        functions: vec![b.finish()].into(),
        ..Module::default()
    }
}

/// Edges of functions and of numbers.
const EDGES: [f64; 40] = [
    0.0,
    f64::from_bits(1),
    f64::MIN_POSITIVE,
    1e-300,
    1e-20,
    2.8e-17,
    1e-9,
    0.1,
    0.346,
    0.347,
    0.499_999_999_999_999_94,
    0.5,
    std::f64::consts::FRAC_1_SQRT_2,
    0.874_999_999_999_999_9,
    0.875,
    0.999_999_999_999_999_9,
    1.0,
    1.000_000_000_000_000_2,
    std::f64::consts::SQRT_2,
    1.5,
    std::f64::consts::FRAC_PI_2,
    2.0,
    3.0,
    std::f64::consts::PI,
    5.93,
    10.0,
    19.1,
    37.5,
    709.782_712_893_383_9,
    709.8,
    710.475_860_073_943_9,
    745.2,
    1023.5,
    1075.5,
    1_599_999.0,
    1_600_001.0,
    4_503_599_627_370_497.0,
    1e300,
    f64::MAX,
    f64::INFINITY,
];

/// The edges with both signs, NaN, and as many others at random.
fn numbers(count: usize) -> Vec<f64> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut all: Vec<f64> = EDGES.iter().flat_map(|edge| [*edge, -edge]).collect();
    all.push(f64::NAN);
    while all.len() < count {
        let bits = random();
        // Mostly of moderate size.
        let exponent = match bits >> 60 & 3 {
            0 => bits >> 52 & 0x7ff,
            1 => 1023 - 16 + (bits >> 52 & 31),
            _ => 1023 - 4 + (bits >> 52 & 7),
        };
        all.push(f64::from_bits(
            bits & 0x800f_ffff_ffff_ffff | exponent << 52,
        ));
    }
    all
}

fn bytes(numbers: &[f64]) -> Vec<u8> {
    numbers.iter().flat_map(|x| x.to_le_bytes()).collect()
}

/// What is first further off than it may be.
fn first_wrong(op: Op, x: &[f64], y: &[f64], lanes: u32) -> Option<String> {
    let module = module(op, lanes);
    let expanded = expanded(&module);
    assert!(matches!(expanded, Cow::Owned(_)), "{op} is expanded");
    validate(&expanded).unwrap_or_else(|error| panic!("{op}: {error}"));
    let (x_bytes, y_bytes, mut z) = (bytes(x), bytes(y), vec![0u8; x.len() * 8]);
    let mut args = [
        Argument::Read(&x_bytes),
        Argument::Read(&y_bytes),
        Argument::Write(&mut z),
        Argument::Scalar(Scalar::i64(x.len() as i64)),
    ];
    let ran = interpret(&expanded, "f", &mut args, Grid::default());
    ran.unwrap_or_else(|error| panic!("{op}: {error}"));
    let most = ulps_f64(op).expect("the op is expanded") + LIBRARY;
    let results = z
        .chunks_exact(8)
        .map(|bytes| f64::from_le_bytes(bytes.try_into().expect("eight of them")));
    let mut rows = x.iter().zip(y).zip(results);
    rows.find_map(|((x, y), got)| {
        let operands = [*x, *y].map(Scalar::f64);
        let expected = evaluate(op, &operands[..op.arity()]).expect("a function of floats");
        let expected = f64::from_bits(expected.bits());
        let same_sign = expected.is_nan() || got.is_sign_negative() == expected.is_sign_negative();
        let both_nan = got.is_nan() && expected.is_nan();
        let near = got.is_nan() == expected.is_nan()
            && got.abs().to_bits().abs_diff(expected.abs().to_bits()) <= most.into();
        (!(both_nan || near && same_sign))
            .then(|| format!("{op}({x:e}, {y:e}) is {got:e}, expected {expected:e}"))
    })
}

fn computed() -> impl Iterator<Item = Op> {
    let ops = Op::ALL.iter().copied();
    ops.filter(|op| ulps_f64(*op).is_some())
}

#[test]
fn functions_are_those_of_the_library() {
    let x = numbers(4000);
    let mut wrong = Vec::new();
    for op in computed().filter(|op| op.arity() == 1) {
        for lanes in [1, 8] {
            wrong.extend(first_wrong(op, &x, &x, lanes));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn powers_are_those_of_the_library() {
    let edges = numbers(81);
    let pairs = edges
        .iter()
        .flat_map(|x| edges.iter().map(move |y| (*x, *y)));
    let others = numbers(4082).into_iter().skip(81);
    // Of all sizes, up to where they overflow.
    let others = others.enumerate().map(|(at, x)| {
        let share = (at % 201) as f64 / 100.0 - 1.0;
        let y = share * 1080.0 / x.abs().log2();
        (x, if at % 3 == 0 { y.round() } else { y })
    });
    let (x, y): (Vec<f64>, Vec<f64>) = pairs.chain(others).unzip();
    let wrong = first_wrong(Op::Pow, &x, &y, 1);
    assert_eq!(wrong, None);
}

/// What has only one right answer.
#[test]
fn exact_results_are_exact() {
    let rows = [
        (Op::Exp, 0.0, 0.0, 1.0),
        (Op::Exp2, 10.0, 0.0, 1024.0),
        (Op::Exp2, -1074.0, 0.0, f64::from_bits(1)),
        (Op::Log, 1.0, 0.0, 0.0),
        (Op::Log2, f64::from_bits(1), 0.0, -1074.0),
        (Op::Log2, 1024.0, 0.0, 10.0),
        (Op::Cos, 0.0, 0.0, 1.0),
        (Op::Sin, -0.0, 0.0, -0.0),
        (Op::Pow, 2.0, 10.0, 1024.0),
        (Op::Pow, -2.0, 3.0, -8.0),
        (Op::Pow, 3.0, 2.0, 9.0),
        (Op::Pow, 7.0, 1.0, 7.0),
        (Op::Pow, 10.0, 3.0, 1000.0),
        (Op::Pow, 0.5, 1074.0, f64::from_bits(1)),
    ];
    for (op, x, y, expected) in rows {
        let module = module(op, 1);
        let expanded = expanded(&module);
        let (x_bytes, y_bytes, mut z) = (bytes(&[x]), bytes(&[y]), [0u8; 8]);
        let mut args = [
            Argument::Read(&x_bytes),
            Argument::Read(&y_bytes),
            Argument::Write(&mut z),
            Argument::Scalar(Scalar::i64(1)),
        ];
        interpret(&expanded, "f", &mut args, Grid::default()).expect("it runs");
        let got = f64::from_le_bytes(z);
        assert_eq!(
            got.to_bits(),
            expected.to_bits(),
            "{op}({x:e}, {y:e}) is {got:e}"
        );
    }
}

/// There is one version of each.
#[test]
fn fast_functions_are_the_same() {
    for op in computed() {
        let module = module(op, 8);
        assert_eq!(expanded_with(&module, Precision::Fast), expanded(&module));
    }
}
