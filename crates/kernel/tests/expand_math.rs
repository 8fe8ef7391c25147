//! The functions that `expand_math` writes out, on the interpreter: edges, and how much code they are.

use loopwright_kernel::interpret::{Arg, Grid, interpret};
use loopwright_kernel::passes::expand_math::{expanded, ulps};
use loopwright_kernel::{Access, Builder, FunctionKind, Inst, Module, Space, Stmt, validate};
use loopwright_ops::{DType, Op, Scalar};
use std::borrow::Cow;

/// `y[0] = op(x)`, expanded.
fn module(op: Op, dtype: DType, lanes: u32) -> Module {
    let mut b = Builder::new("f", FunctionKind::Kernel { group: None });
    let x = b.param_scalar(dtype, "x");
    let y = b.param_ptr(dtype, Space::Global, "y", Access::Write, true);
    let zero = b.const_i64(0);
    let x = match lanes {
        1 => x,
        lanes => b.splat(x, lanes),
    };
    let value = b.map(op, &[x]);
    b.store(y, zero, value);
    let module = Module {
        structs: Vec::new(),
        functions: vec![b.finish()],
    };
    let expanded = expanded(&module);
    assert!(matches!(expanded, Cow::Owned(_)), "{op} is expanded");
    expanded.into_owned()
}

fn computed(op: Op, x: f32) -> f32 {
    let mut out = [0u8; 4];
    let mut args = [Arg::Scalar(Scalar::f32(x)), Arg::Write(&mut out)];
    let ran = interpret(&module(op, DType::F32, 1), "f", &mut args, Grid::default());
    ran.unwrap_or_else(|error| panic!("{op}({x}): {error}"));
    f32::from_le_bytes(out)
}

#[test]
fn edges_are_exact() {
    use std::f32::consts::{E, LN_2, LOG2_E};
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
    ];
    for &(op, points) in rows {
        for &(x, expected) in points {
            let got = computed(op, x);
            let same = got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan();
            assert!(same, "{op}({x:e}) is {got:e}, expected {expected:e}");
        }
    }
    for op in Op::ALL.iter().filter(|op| ulps(**op).is_some()) {
        assert!(
            rows.iter().any(|(tested, _)| tested == op),
            "{op} has no row"
        );
    }
}

#[test]
fn code_is_valid_and_short() {
    // Instructions that compute something; compilers contract up to a third of them with others.
    let most = [
        (Op::Exp, 28),
        (Op::Exp2, 24),
        (Op::Expm1, 31),
        (Op::Tanh, 32),
        (Op::Log, 41),
        (Op::Log2, 40),
        (Op::Log1p, 46),
        (Op::Erf, 54),
    ];
    for (op, most) in most {
        for (dtype, lanes) in [(DType::F32, 1), (DType::F32, 16), (DType::BF16, 8)] {
            let module = module(op, dtype, lanes);
            validate(&module).unwrap_or_else(|error| panic!("{op} on {dtype}: {error}"));
            let count = module.functions[0].body.iter().filter(|stmt| match stmt {
                Stmt::Let(_, Inst::Const(_) | Inst::Bitcast(..) | Inst::Cast(..)) => false,
                stmt => matches!(stmt, Stmt::Let(_, Inst::Map(..))),
            });
            let count = count.count();
            assert!(count <= most, "{op} on {dtype}: {count} instructions");
        }
    }
}
