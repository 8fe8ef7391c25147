//! Ops that work element by element: all of the table.

use crate::differences::{Point, check, everywhere};
use loopwright_tensor::{DType, Op, Tensor, select};

const ANY: [f64; 5] = [-1.3, -0.4, 0.3, 0.9, 1.7];
const OTHER: [f64; 5] = [0.7, -1.1, 1.9, -0.6, 0.4];
const THIRD: [f64; 5] = [1.2, 0.8, -0.5, 0.2, -1.4];
const POSITIVE: [f64; 5] = [0.4, 0.7, 1.1, 1.6, 2.7];
const INSIDE: [f64; 5] = [-0.7, -0.35, 0.15, 0.5, 0.65];
const ABOVE: [f64; 5] = [1.4, 1.7, 2.0, 2.6, 3.3];

/// Operands at which an op of floats is differentiated, away from its kinks. An op that is new in the
/// table is missed by this match.
fn operands(op: Op) -> &'static [[f64; 5]] {
    match op {
        Op::Copy
        | Op::Neg
        | Op::Abs
        | Op::Sign
        | Op::Recip
        | Op::Cbrt
        | Op::Exp
        | Op::Exp2
        | Op::Expm1
        | Op::Sin
        | Op::Cos
        | Op::Atan
        | Op::Sinh
        | Op::Cosh
        | Op::Tanh
        | Op::Asinh
        | Op::Erf
        | Op::Erfc
        | Op::Floor
        | Op::Ceil
        | Op::Round
        | Op::Trunc
        | Op::IsNan
        | Op::IsInf
        | Op::IsFinite => &[ANY],
        Op::Tan => &[INSIDE],
        Op::Sqrt | Op::Rsqrt | Op::Log | Op::Log2 | Op::Log10 | Op::Log1p => &[POSITIVE],
        Op::Asin | Op::Acos | Op::Atanh => &[INSIDE],
        Op::Acosh => &[ABOVE],
        Op::Add
        | Op::Sub
        | Op::Mul
        | Op::Div
        | Op::FloorDiv
        | Op::Rem
        | Op::Mod
        | Op::Atan2
        | Op::Hypot
        | Op::CopySign
        | Op::Min
        | Op::Max
        | Op::Eq
        | Op::Ne
        | Op::Lt
        | Op::Le
        | Op::Gt
        | Op::Ge => &[ANY, OTHER],
        Op::Pow => &[POSITIVE, OTHER],
        // The first is compared with 0, since a condition is no float.
        Op::Select | Op::MulAdd => &[ANY, OTHER, THIRD],
        // Not of floats.
        Op::Not
        | Op::Popcount
        | Op::Clz
        | Op::Ctz
        | Op::And
        | Op::Or
        | Op::Xor
        | Op::Shl
        | Op::Shr
        | Op::Threefry => &[],
    }
}

#[test]
fn every_op_of_the_table() {
    let mut checked = 0;
    for op in Op::ALL.iter().copied() {
        let at = operands(op);
        let mut dtypes = vec![DType::F64; op.arity()];
        if op == Op::Select {
            dtypes[0] = DType::Bool;
        }
        if at.is_empty() {
            assert!(op.result_dtype(&dtypes).is_err(), "`{op}` takes floats");
            continue;
        }
        assert_eq!(at.len(), op.arity());
        let points: Vec<Point> = at.iter().map(|values| Point::new(values, &[5])).collect();
        check(op.name(), &points, move |x| {
            let mut operands: Vec<Tensor> = x.to_vec();
            if op == Op::Select {
                operands[0] = x[0].gt(&Tensor::scalar(0.0).cast(DType::F64));
            }
            let operands: Vec<&Tensor> = operands.iter().collect();
            Tensor::map(op, &operands).cast(DType::F64)
        });
        checked += 1;
    }
    assert!(checked > 45);
}

#[test]
fn functions_made_of_them() {
    let any = [Point::new(&ANY, &[5])];
    check("sigmoid", &any, |x| x[0].sigmoid());
    check("silu", &any, |x| x[0].silu());
    check("gelu", &any, |x| x[0].gelu());
    check("gelu_tanh", &any, |x| x[0].gelu_tanh());
    check("softplus", &any, |x| x[0].softplus());
    check("leaky_relu", &any, |x| x[0].leaky_relu(0.1));
    check("elu", &any, |x| x[0].elu(0.7));
    check("relu", &any, |x| x[0].relu());
    check("clip", &any, |x| x[0].clip(-0.5, 1.0));
    check("cube", &any, |x| x[0].powf(3.0));
    check("square", &any, |x| x[0].powf(2.0));
    check("a number to a power", &any, |x| x[0].number_to_the(2.5));
}

/// A number to the power of the elements, as there is no method for it.
trait NumberTo {
    fn number_to_the(&self, base: f64) -> Tensor;
}

impl NumberTo for Tensor {
    fn number_to_the(&self, base: f64) -> Tensor {
        Tensor::full(self.shape(), base, DType::F64).pow(self)
    }
}

#[test]
fn powers_at_zero_and_of_negative_numbers() {
    everywhere(|| {
        let x = Tensor::from([0.0f64, -2.0, 3.0]);
        let cube = x.powf(3.0).sum(..);
        let [first] = cube.gradients([&x]);
        assert_eq!(first.to_vec::<f64>()?, [0.0, 12.0, 27.0]);
        let [second] = first.sum(..).gradients([&x]);
        assert_eq!(second.to_vec::<f64>()?, [0.0, -12.0, 18.0]);
        let [zeroth] = x.powf(0.0).sum(..).gradients([&x]);
        assert_eq!(zeroth.to_vec::<f64>()?, [0.0, 0.0, 0.0]);
        Ok(())
    });
}

#[test]
fn equal_operands_share() {
    everywhere(|| {
        let a = Tensor::from([1.0f64, 2.0, 3.0]);
        let b = Tensor::from([1.0f64, 5.0, 0.0]);
        let [da, db] = a.maximum(&b).sum(..).gradients([&a, &b]);
        assert_eq!(da.to_vec::<f64>()?, [0.5, 0.0, 1.0]);
        assert_eq!(db.to_vec::<f64>()?, [0.5, 1.0, 0.0]);
        let [da, db] = a.minimum(&b).sum(..).gradients([&a, &b]);
        assert_eq!(da.to_vec::<f64>()?, [0.5, 1.0, 0.0]);
        assert_eq!(db.to_vec::<f64>()?, [0.5, 0.0, 1.0]);
        Ok(())
    });
}

#[test]
fn a_rectifier_is_flat_at_zero() {
    everywhere(|| {
        let x = Tensor::from([-1.0f64, 0.0, -0.0, 2.0, f64::NAN]);
        let y = x.relu();
        assert_eq!(y.to_vec::<f64>()?[..4], [0.0, 0.0, 0.0, 2.0]);
        assert!(y.to_vec::<f64>()?[4].is_nan());
        let [dx] = y.at(0..4).sum(..).gradients([&x]);
        assert_eq!(dx.to_vec::<f64>()?, [0.0, 0.0, 0.0, 1.0, 0.0]);
        Ok(())
    });
}

#[test]
fn operands_that_are_repeated() {
    let (row, column, all) = (
        Point::scattered(&[3], 1),
        Point::scattered(&[2, 1], 2),
        Point::scattered(&[2, 3], 3),
    );
    check("row and all", &[row.clone(), all.clone()], |x| {
        &x[0] * x[1].sin()
    });
    check("column and row", &[column.clone(), row.clone()], |x| {
        (&x[0] * &x[1]).exp()
    });
    check("one and all", &[Point::new(&[0.7], &[1, 1]), all], |x| {
        x[0].sin() / &x[1]
    });
    check(
        "a number and a column",
        &[Point::new(&[0.7], &[]), column],
        |x| &x[0] * &x[1] * &x[0],
    );
    check("by names", &[row, Point::scattered(&[2], 4)], |x| {
        (x[0].named(["i"]) * x[1].named(["j"])).sin()
    });
}

#[test]
fn casts_between_floats() {
    // What is rounded to f32 is a staircase, so its slope is compared by value.
    everywhere(|| {
        let x = Tensor::from([1.5f64, -2.0]);
        let y = x.cast(DType::F32).square().cast(DType::F64).sum(..);
        let [dx] = y.gradients([&x]);
        assert_eq!(dx.dtype(), DType::F64);
        assert_eq!(dx.to_vec::<f64>()?, [3.0, -4.0]);
        let [second] = dx.sum(..).gradients([&x]);
        assert_eq!(second.to_vec::<f64>()?, [2.0, 2.0]);
        let [whole] = x.cast(DType::I64).cast(DType::F64).sum(..).gradients([&x]);
        assert_eq!(whole.to_vec::<f64>()?, [0.0, 0.0]);
        Ok(())
    });
}

#[test]
fn conditions_that_depend_on_operands() {
    check(
        "select",
        &[Point::new(&ANY, &[5]), Point::new(&OTHER, &[5])],
        |x| select(&x[0].gt(&x[1]), &(&x[0] * &x[1]), &x[1].sin()),
    );
}
