//! The functions that `expand_math` writes out, on the interpreter: edges, how much code they are, and where it goes.

use loopwright_kernel::Argument;
use loopwright_kernel::interpret::{Grid, interpret};
use loopwright_kernel::passes::expand_math::{Precision, expanded, expanded_with, ulps};
use loopwright_kernel::{
    Access, Builder, FunctionId, FunctionKind, Inst, LoopKind, Module, Space, Stmt, validate,
};
use loopwright_ops::{DType, Op, Scalar};
use std::borrow::Cow;

/// `z[0] = op(x)` or `op(x, y)`, expanded.
fn module(op: Op, dtype: DType, lanes: u32, precision: Precision) -> Module {
    let mut b = Builder::new("f", FunctionKind::Kernel { group: None });
    let operands = ["x", "y"].map(|name| b.param_scalar(dtype, name));
    let z = b.param_ptr(dtype, Space::Global, "z", Access::Write, true);
    let zero = b.const_i64(0);
    let operands = operands.map(|operand| match lanes {
        1 => operand,
        lanes => b.splat(operand, lanes),
    });
    let value = b.map(op, &operands[..op.arity()]);
    b.store(z, zero, value);
    let module = Module {
        functions: vec![b.finish()].into(),
        ..Module::default()
    };
    let expanded = expanded_with(&module, precision);
    assert!(matches!(expanded, Cow::Owned(_)), "{op} is expanded");
    expanded.into_owned()
}

fn computed(op: Op, [x, y]: [f32; 2], precision: Precision) -> f32 {
    let mut out = [0u8; 4];
    let mut args = [
        Argument::Scalar(Scalar::f32(x)),
        Argument::Scalar(Scalar::f32(y)),
        Argument::Write(&mut out),
    ];
    let module = module(op, DType::F32, 1, precision);
    let ran = interpret(&module, "f", &mut args, Grid::default());
    ran.unwrap_or_else(|error| panic!("{op}({x}, {y}): {error}"));
    f32::from_le_bytes(out)
}

#[test]
fn edges_are_exact() {
    use std::f32::consts::{E, FRAC_PI_2, LN_2, LOG2_E, PI};
    const INF: f32 = f32::INFINITY;
    const NAN: f32 = f32::NAN;
    let least = f32::from_bits(1);
    let rows: &[(Op, &[(f32, f32)])] = &[
        (
            Op::Exp,
            &[
                (0.0, 1.0),
                (-0.0, 1.0),
                (1.0, E),
                (INF, INF),
                (-INF, 0.0),
                (NAN, NAN),
                (88.722_84, INF),
                (89.5, INF),
                (f32::MAX, INF),
                (-103.0, least),
                (-103.98, 0.0),
                (f32::MIN, 0.0),
                (least, 1.0),
            ],
        ),
        (
            Op::Exp2,
            &[
                (0.0, 1.0),
                (1.0, 2.0),
                (-1.0, 0.5),
                (127.0, 1.701_411_8e38),
                (128.0, INF),
                (-126.0, f32::MIN_POSITIVE),
                (-149.0, least),
                (-151.0, 0.0),
                (INF, INF),
                (-INF, 0.0),
                (NAN, NAN),
            ],
        ),
        (
            Op::Expm1,
            &[
                (0.0, 0.0),
                (-0.0, -0.0),
                (least, least),
                (-least, -least),
                (-30.0, -1.0),
                (f32::MIN, -1.0),
                (-INF, -1.0),
                (INF, INF),
                (89.0, INF),
                (NAN, NAN),
            ],
        ),
        (
            Op::Tanh,
            &[
                (0.0, 0.0),
                (-0.0, -0.0),
                (least, least),
                (-least, -least),
                (9.5, 1.0),
                (-9.5, -1.0),
                (f32::MAX, 1.0),
                (INF, 1.0),
                (-INF, -1.0),
                (NAN, NAN),
            ],
        ),
        (
            Op::Log,
            &[
                (1.0, 0.0),
                (2.0, LN_2),
                (0.0, -INF),
                (-0.0, -INF),
                (-1.0, NAN),
                (-least, NAN),
                (-INF, NAN),
                (INF, INF),
                (NAN, NAN),
                (least, -103.278_93),
                (f32::MAX, 88.722_84),
            ],
        ),
        (
            Op::Log2,
            &[
                (1.0, 0.0),
                (E, LOG2_E),
                (8.0, 3.0),
                (0.25, -2.0),
                (least, -149.0),
                (f32::MAX, 128.0),
                (0.0, -INF),
                (-0.0, -INF),
                (-1.0, NAN),
                (INF, INF),
                (NAN, NAN),
            ],
        ),
        (
            Op::Log1p,
            &[
                (0.0, 0.0),
                (-0.0, -0.0),
                (least, least),
                (-least, -least),
                (1.0, LN_2),
                (-1.0, -INF),
                (-1.5, NAN),
                (-INF, NAN),
                (INF, INF),
                (f32::MAX, 88.722_84),
                (NAN, NAN),
            ],
        ),
        (
            Op::Erf,
            &[
                (0.0, 0.0),
                (-0.0, -0.0),
                (4.0, 1.0),
                (-4.0, -1.0),
                (f32::MAX, 1.0),
                (INF, 1.0),
                (-INF, -1.0),
                (NAN, NAN),
            ],
        ),
        (
            Op::Log10,
            &[
                (1.0, 0.0),
                (10.0, 1.0),
                (1000.0, 3.0),
                (0.0, -INF),
                (-0.0, -INF),
                (-1.0, NAN),
                (INF, INF),
                (-INF, NAN),
                (NAN, NAN),
                (least, -44.853_47),
                (f32::MAX, 38.531_84),
            ],
        ),
        (
            Op::Sin,
            &[
                (0.0, 0.0),
                (-0.0, -0.0),
                (least, least),
                (-least, -least),
                (FRAC_PI_2, 1.0),
                (-FRAC_PI_2, -1.0),
                (PI, -8.742_278e-8),
                // The largest number.
                (f32::MAX, -0.521_876_5),
                (INF, NAN),
                (-INF, NAN),
                (NAN, NAN),
            ],
        ),
        (
            Op::Cos,
            &[
                (0.0, 1.0),
                (-0.0, 1.0),
                (least, 1.0),
                (FRAC_PI_2, -4.371_139e-8),
                (PI, -1.0),
                (f32::MAX, 0.853_021),
                (INF, NAN),
                (-INF, NAN),
                (NAN, NAN),
            ],
        ),
        (
            Op::Tan,
            &[
                (0.0, 0.0),
                (-0.0, -0.0),
                (least, least),
                (-least, -least),
                (INF, NAN),
                (-INF, NAN),
                (NAN, NAN),
            ],
        ),
        (
            Op::Asin,
            &[
                (0.0, 0.0),
                (-0.0, -0.0),
                (least, least),
                (1.0, FRAC_PI_2),
                (-1.0, -FRAC_PI_2),
                (1.000_000_1, NAN),
                (INF, NAN),
                (-INF, NAN),
                (NAN, NAN),
            ],
        ),
        (
            Op::Acos,
            &[
                (1.0, 0.0),
                (-1.0, PI),
                (0.0, FRAC_PI_2),
                (-0.0, FRAC_PI_2),
                (-1.000_000_1, NAN),
                (INF, NAN),
                (-INF, NAN),
                (NAN, NAN),
            ],
        ),
        (
            Op::Atan,
            &[
                (0.0, 0.0),
                (-0.0, -0.0),
                (least, least),
                (-least, -least),
                (f32::MAX, FRAC_PI_2),
                (INF, FRAC_PI_2),
                (-INF, -FRAC_PI_2),
                (NAN, NAN),
            ],
        ),
        (
            Op::Sinh,
            &[
                (0.0, 0.0),
                (-0.0, -0.0),
                (least, least),
                (-least, -least),
                (90.0, INF),
                (-90.0, -INF),
                (f32::MAX, INF),
                (INF, INF),
                (-INF, -INF),
                (NAN, NAN),
            ],
        ),
        (
            Op::Cosh,
            &[
                (0.0, 1.0),
                (-0.0, 1.0),
                (least, 1.0),
                (-90.0, INF),
                (INF, INF),
                (-INF, INF),
                (NAN, NAN),
            ],
        ),
        (
            Op::Asinh,
            &[
                (0.0, 0.0),
                (-0.0, -0.0),
                (least, least),
                (-least, -least),
                (INF, INF),
                (-INF, -INF),
                (NAN, NAN),
            ],
        ),
        (
            Op::Acosh,
            &[
                (1.0, 0.0),
                (0.999_999_9, NAN),
                (0.0, NAN),
                (-5.0, NAN),
                (INF, INF),
                (-INF, NAN),
                (NAN, NAN),
            ],
        ),
        (
            Op::Atanh,
            &[
                (0.0, 0.0),
                (-0.0, -0.0),
                (least, least),
                (1.0, INF),
                (-1.0, -INF),
                (1.000_000_1, NAN),
                (INF, NAN),
                (-INF, NAN),
                (NAN, NAN),
            ],
        ),
        (
            Op::Erfc,
            &[
                (0.0, 1.0),
                (-0.0, 1.0),
                (-4.0, 2.0),
                (10.06, 0.0),
                (f32::MAX, 0.0),
                (INF, 0.0),
                (-INF, 2.0),
                (NAN, NAN),
            ],
        ),
        (
            Op::Cbrt,
            &[
                (0.0, 0.0),
                (-0.0, -0.0),
                (27.0, 3.0),
                (-0.125, -0.5),
                (least, 1.119_034_7e-15),
                (f32::MAX, 6.981_463_6e12),
                (INF, INF),
                (-INF, -INF),
                (NAN, NAN),
            ],
        ),
    ];
    for &(op, points) in rows {
        for &(x, expected) in points {
            let got = computed(op, [x, 0.0], Precision::Accurate);
            let same = got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan();
            assert!(same, "{op}({x:e}) is {got:e}, expected {expected:e}");
        }
    }
    for op in Op::ALL
        .iter()
        .filter(|op| ulps(**op).is_some() && op.arity() == 1)
    {
        assert!(
            rows.iter().any(|(tested, _)| tested == op),
            "{op} has no row"
        );
    }
}

/// An op with operands and what they give.
type RowOfTwo<'a> = (Op, &'a [(f32, f32, f32)]);

#[test]
fn edges_of_two_are_exact() {
    use std::f32::consts::{FRAC_PI_2, PI};
    const INF: f32 = f32::INFINITY;
    const NAN: f32 = f32::NAN;
    let least = f32::from_bits(1);
    let rows: &[RowOfTwo<'_>] = &[
        (
            Op::Pow,
            &[
                (2.0, 3.0, 8.0),
                (-2.0, 3.0, -8.0),
                (-2.0, 4.0, 16.0),
                (-2.0, 0.5, NAN),
                (2.0, 128.0, INF),
                (2.0, -149.0, least),
                (2.0, -151.0, 0.0),
                (-2.0, -151.0, -0.0),
                (-1.0, 16_777_215.0, -1.0),
                (-1.0, 16_777_218.0, 1.0),
                (-1.0, 8_388_607.0, -1.0),
                (-1.0, 8_388_606.5, NAN),
                (NAN, 0.0, 1.0),
                (INF, -0.0, 1.0),
                (1.0, NAN, 1.0),
                (1.0, INF, 1.0),
                (-1.0, INF, 1.0),
                (-1.0, -INF, 1.0),
                (-1.0, NAN, NAN),
                (0.0, 3.0, 0.0),
                (-0.0, 3.0, -0.0),
                (-0.0, 2.0, 0.0),
                (-0.0, 0.5, 0.0),
                (-0.0, -1.0, -INF),
                (-0.0, -2.0, INF),
                (0.0, -1.0, INF),
                (0.0, INF, 0.0),
                (0.0, -INF, INF),
                (INF, 2.0, INF),
                (INF, -2.0, 0.0),
                (-INF, 3.0, -INF),
                (-INF, 2.0, INF),
                (-INF, 0.5, INF),
                (-INF, -3.0, -0.0),
                (-INF, INF, INF),
                (0.5, INF, 0.0),
                (0.5, -INF, INF),
                (-2.0, INF, INF),
                (2.0, -INF, 0.0),
                (NAN, 1.0, NAN),
                (2.0, NAN, NAN),
            ],
        ),
        (
            Op::Atan2,
            &[
                (0.0, 0.0, 0.0),
                (-0.0, 0.0, -0.0),
                (0.0, -0.0, PI),
                (-0.0, -0.0, -PI),
                (0.0, 1.0, 0.0),
                (0.0, -1.0, PI),
                (-0.0, -1.0, -PI),
                (1.0, 0.0, FRAC_PI_2),
                (-1.0, -0.0, -FRAC_PI_2),
                (1.0, INF, 0.0),
                (-1.0, INF, -0.0),
                (1.0, -INF, PI),
                (INF, 1.0, FRAC_PI_2),
                (least, 1.0, least),
                (NAN, 0.0, NAN),
                (0.0, NAN, NAN),
                (INF, NAN, NAN),
                (NAN, INF, NAN),
            ],
        ),
        (
            Op::Hypot,
            &[
                (3.0, -4.0, 5.0),
                (0.0, -0.0, 0.0),
                (least, 0.0, least),
                (f32::MAX, 0.0, f32::MAX),
                (f32::MAX, f32::MAX, INF),
                (3e-40, 4e-40, 5e-40),
                (INF, NAN, INF),
                (NAN, -INF, INF),
                (NAN, 1.0, NAN),
                (1.0, NAN, NAN),
            ],
        ),
    ];
    for &(op, points) in rows {
        for &(x, y, expected) in points {
            let got = computed(op, [x, y], Precision::Accurate);
            let same = got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan();
            assert!(same, "{op}({x:e}, {y:e}) is {got:e}, expected {expected:e}");
        }
    }
    for op in Op::ALL
        .iter()
        .filter(|op| ulps(**op).is_some() && op.arity() == 2)
    {
        assert!(
            rows.iter().any(|(tested, _)| tested == op),
            "{op} has no row"
        );
    }
}

/// The fast versions keep what masks and padding rely on.
#[test]
fn fast_edges_are_exact() {
    const INF: f32 = f32::INFINITY;
    const NAN: f32 = f32::NAN;
    let rows: &[(Op, &[(f32, f32)])] = &[
        (
            Op::Exp,
            &[
                (0.0, 1.0),
                (-INF, 0.0),
                (f32::MIN, 0.0),
                (INF, INF),
                (f32::MAX, INF),
                (NAN, NAN),
            ],
        ),
        (
            Op::Exp2,
            &[(0.0, 1.0), (3.0, 8.0), (-INF, 0.0), (INF, INF), (NAN, NAN)],
        ),
        (
            Op::Log,
            &[
                (1.0, 0.0),
                (0.0, -INF),
                (-0.0, -INF),
                (-1.0, NAN),
                (INF, INF),
                (NAN, NAN),
            ],
        ),
        (
            Op::Log2,
            &[(8.0, 3.0), (0.0, -INF), (-1.0, NAN), (INF, INF), (NAN, NAN)],
        ),
        (
            Op::Tanh,
            &[
                (0.0, 0.0),
                (-0.0, -0.0),
                (20.0, 1.0),
                (INF, 1.0),
                (-INF, -1.0),
                (NAN, NAN),
            ],
        ),
        (
            Op::Erf,
            &[
                (0.0, 0.0),
                (-0.0, -0.0),
                (INF, 1.0),
                (-INF, -1.0),
                (NAN, NAN),
            ],
        ),
        (Op::Sin, &[(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (NAN, NAN)]),
        (Op::Cos, &[(0.0, 1.0), (-INF, NAN), (NAN, NAN)]),
    ];
    for &(op, points) in rows {
        for &(x, expected) in points {
            let got = computed(op, [x, 0.0], Precision::Fast);
            let same = got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan();
            assert!(same, "{op}({x:e}) is {got:e}, expected {expected:e}");
        }
    }
}

/// No loop computes a constant again, and each is there once.
#[test]
fn constants_come_first() {
    let mut b = Builder::new("f", FunctionKind::Kernel { group: None });
    let x = b.param_ptr(DType::F32, Space::Global, "x", Access::ReadWrite, true);
    let n = b.param_scalar(DType::I64, "n");
    let (zero, step) = (b.const_i64(0), b.const_i64(8));
    b.for_loop(zero, n, step, LoopKind::Serial, "i", |b, i| {
        let value = b.load_vector(x, i, 8);
        let value = b.map(Op::Exp, &[value]);
        let value = b.map(Op::Exp, &[value]);
        b.store(x, i, value);
    });
    let module = Module {
        functions: vec![b.finish()].into(),
        ..Module::default()
    };
    let expanded = expanded(&module);
    validate(&expanded).expect("it is valid");
    let mut seen = Vec::new();
    for stmt in &expanded.functions[FunctionId(0)].body {
        match stmt {
            Stmt::Let(value, Inst::Const(scalar)) => {
                let constant = (
                    *scalar,
                    expanded.functions[FunctionId(0)].ty(*value).lanes(),
                );
                assert!(!seen.contains(&constant), "{scalar} is there twice");
                seen.push(constant);
            }
            Stmt::For { body, .. } => {
                let constant = |stmt: &&Stmt| matches!(stmt, Stmt::Let(_, Inst::Const(_)));
                assert_eq!(body.iter().find(constant), None);
            }
            _ => {}
        }
    }
}

#[test]
fn code_is_valid_and_short() {
    // Instructions that compute something; compilers contract up to a third of them with others.
    use Precision::{Accurate, Fast};
    let most = [
        (Op::Exp, Accurate, 28),
        (Op::Exp2, Accurate, 24),
        (Op::Expm1, Accurate, 31),
        (Op::Log, Accurate, 41),
        (Op::Log2, Accurate, 40),
        (Op::Log10, Accurate, 43),
        (Op::Log1p, Accurate, 46),
        (Op::Sin, Accurate, 42),
        (Op::Cos, Accurate, 41),
        (Op::Tan, Accurate, 38),
        (Op::Asin, Accurate, 29),
        (Op::Acos, Accurate, 33),
        (Op::Atan, Accurate, 33),
        (Op::Atan2, Accurate, 46),
        (Op::Sinh, Accurate, 41),
        (Op::Cosh, Accurate, 27),
        (Op::Tanh, Accurate, 32),
        (Op::Asinh, Accurate, 68),
        (Op::Acosh, Accurate, 50),
        (Op::Atanh, Accurate, 64),
        (Op::Erf, Accurate, 54),
        (Op::Erfc, Accurate, 61),
        (Op::Cbrt, Accurate, 33),
        (Op::Pow, Accurate, 90),
        (Op::Hypot, Accurate, 21),
        (Op::Exp, Fast, 22),
        (Op::Exp2, Fast, 20),
        (Op::Log, Fast, 31),
        (Op::Log2, Fast, 29),
        (Op::Sin, Fast, 37),
        (Op::Cos, Fast, 36),
        (Op::Tanh, Fast, 24),
        (Op::Erf, Fast, 28),
    ];
    let mut longer = Vec::new();
    for (op, precision, most) in most {
        for (dtype, lanes) in [(DType::F32, 1), (DType::F32, 16), (DType::BF16, 8)] {
            let module = module(op, dtype, lanes, precision);
            validate(&module).unwrap_or_else(|error| panic!("{op} on {dtype}: {error}"));
            // Not those of a branch, which is rarely taken.
            let count = module.functions[FunctionId(0)]
                .body
                .iter()
                .filter(|stmt| match stmt {
                    Stmt::Let(_, Inst::Const(_) | Inst::Bitcast(..) | Inst::Cast(..)) => false,
                    stmt => matches!(stmt, Stmt::Let(_, Inst::Map(..))),
                });
            let count = count.count();
            if count > most {
                longer.push(format!(
                    "{op} on {dtype} is {count} instructions, {precision:?}"
                ));
            }
        }
    }
    assert!(longer.is_empty(), "{}", longer.join("\n"));
}
