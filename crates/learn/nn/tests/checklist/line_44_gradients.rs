//! Gradients match finite differences for every operation.

use crate::Checked;
use loopwright_tensor::{DType, Op, ReduceOp, Tensor, TensorError, Window, concat, jit, select};

/// How far a number is moved to either side.
const STEP: f64 = 1e-5;

/// Where an op is differentiated, a number for each operand, away from its kinks; nothing for those that take no
/// floats. There is no arm for all others: an op that is new in the table gets its row here, or this does not compile.
fn operands(op: Op) -> &'static [f64] {
    match op {
        Op::Copy | Op::Neg | Op::Abs | Op::Sign | Op::Recip | Op::Cbrt => &[-0.7],
        Op::Exp | Op::Exp2 | Op::Expm1 => &[-0.7],
        Op::Sin | Op::Cos | Op::Tan | Op::Atan | Op::Asin | Op::Acos => &[0.4],
        Op::Sinh | Op::Cosh | Op::Tanh | Op::Asinh | Op::Atanh => &[0.4],
        Op::Erf | Op::Erfc => &[0.4],
        Op::Floor | Op::Ceil | Op::Round | Op::Trunc => &[0.4],
        Op::IsNan | Op::IsInf | Op::IsFinite => &[0.4],
        Op::Sqrt | Op::Rsqrt | Op::Log | Op::Log2 | Op::Log10 | Op::Log1p => &[1.3],
        Op::Acosh => &[1.8],
        Op::Add | Op::Sub | Op::Mul | Op::Div | Op::Min | Op::Max => &[-0.7, 1.9],
        Op::FloorDiv | Op::Rem | Op::Mod => &[5.3, 2.1],
        Op::Pow | Op::Atan2 | Op::Hypot | Op::CopySign => &[1.3, -0.6],
        Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge => &[-0.7, 1.9],
        // The first is compared with 0: a condition is no float.
        Op::Select | Op::MulAdd => &[0.8, 1.9, -0.4],
        Op::Not | Op::Popcount | Op::Clz | Op::Ctz | Op::Threefry => &[],
        Op::And | Op::Or | Op::Xor | Op::Shl | Op::Shr => &[],
    }
}

/// An operand in every case that is needed for differences: in the row of an operand that one is moved, down in the
/// first column and up in the last.
fn moved(values: &[f64], operand: usize) -> Tensor {
    let mut table = vec![values[operand]; 3 * values.len()];
    table[3 * operand] -= STEP;
    table[3 * operand + 2] += STEP;
    Tensor::new(&table, [values.len(), 3])
}

#[test]
fn of_every_op_of_the_table() -> Checked {
    let of_floats = |op: &&Op| !operands(**op).is_empty();
    let ops: Vec<Op> = Op::ALL.iter().filter(of_floats).copied().collect();
    for op in Op::ALL.iter().filter(|op| operands(**op).is_empty()) {
        let dtypes = vec![DType::F64; op.arity()];
        assert!(op.result_dtype(&dtypes).is_err(), "`{op}` takes floats");
    }
    let arguments: Vec<Vec<Tensor>> = ops
        .iter()
        .map(|op| {
            let values = operands(*op);
            assert_eq!(values.len(), op.arity(), "`{op}`");
            (0..values.len()).map(|at| moved(values, at)).collect()
        })
        .collect();
    // All of them are one program.
    let all = jit("all ops", {
        let ops = ops.clone();
        move |arguments: &Vec<Vec<Tensor>>| {
            let mut found = Vec::new();
            for (op, given) in ops.iter().zip(arguments) {
                let mut of: Vec<Tensor> = given.clone();
                if *op == Op::Select {
                    of[0] = given[0].gt(&given[0].zeros_like());
                }
                let y = Tensor::map(*op, &of.iter().collect::<Vec<_>>()).cast(DType::F64);
                let gradients = y.sum(..).gradients_of(&given.iter().collect::<Vec<_>>());
                found.push((y, gradients));
            }
            found
        }
    });
    for (op, (y, gradients)) in ops.iter().zip(all.call(&arguments)?) {
        let y = y.to_f64()?;
        for (at, gradient) in gradients.iter().enumerate() {
            let expected = (y[3 * at + 2] - y[3 * at]) / (2.0 * STEP);
            let found = gradient.at((at as i64, 1)).item()?;
            assert!(
                (found - expected).abs() <= 1e-6 * (1.0 + expected.abs()),
                "`{op}`, operand {at}: {found}, by differences {expected}"
            );
        }
    }
    Ok(())
}

/// Checks the gradient of a function of a table of 2 by 3.
fn check(what: &str, function: impl Fn(&Tensor) -> Tensor + Send + Sync + 'static) -> Checked {
    let values = [0.9f64, -1.4, 2.3, 0.5, 1.7, -0.6];
    let both = jit(what, move |x: &Tensor| {
        let y = function(x).flatten();
        let count = y.sizes()?[0];
        // Elements of the result are told apart.
        let weights = Tensor::linspace(0.5, 1.5, count).cast(DType::F64);
        let sum = (y * weights).sum(..);
        let [gradient] = sum.gradients([x]);
        Ok::<_, TensorError>((sum, gradient))
    });
    let gradient = both.call(&Tensor::new(&values, [2, 3]))?.1.to_f64()?;
    for at in 0..values.len() {
        let sum = |by: f64| {
            let mut values = values;
            values[at] += by;
            both.call(&Tensor::new(&values, [2, 3]))?.0.item()
        };
        let expected = (sum(STEP)? - sum(-STEP)?) / (2.0 * STEP);
        assert!(
            (gradient[at] - expected).abs() <= 1e-6 * (1.0 + expected.abs()),
            "{what}, element {at}: {}, by differences {expected}",
            gradient[at]
        );
    }
    Ok(())
}

#[test]
fn of_every_fold_and_scan() -> Checked {
    for op in ReduceOp::ALL {
        match op {
            ReduceOp::Sum | ReduceOp::Prod | ReduceOp::Max | ReduceOp::Min => {
                check(op.name(), move |x| x.reduce(op, 1))?;
                check(op.name(), move |x| x.scan(op, 0, false, false))?;
                check(op.name(), move |x| {
                    x.scan(op, 1, true, true).clip(-9.0, 9.0)
                })?;
            }
            // Of conditions, not of floats.
            ReduceOp::Any | ReduceOp::All => {}
        }
    }
    Ok(())
}

#[test]
fn of_what_moves_elements() -> Checked {
    let index = || Tensor::from([2i64, 0, 2]);
    check("turned", |x| x.t().square())?;
    check("reshaped", |x| x.reshape([3, 2]).square())?;
    check("repeated", |x| x.broadcast_to([4, 2, 3]).square())?;
    check("a part, backwards", |x| x.flip(1).narrow(1, 0, 2).square())?;
    check("padded", |x| x.pad(1, 2, 1, 7.0).square())?;
    check("windows", |x| {
        x.window(1, &Window::new(2usize), None).square()
    })?;
    check("joined", |x| concat(&[x, &x.square()], 0))?;
    check("looked up", move |x| x.take(&index(), 1).square())?;
    check("scattered", move |x| {
        let base = Tensor::zeros([2, 3], DType::F64);
        base.scatter(&index(), &x.square(), 1, Some(ReduceOp::Sum))
    })?;
    check("sorted", |x| x.sort(1, false).square())?;
    check("chosen", |x| {
        select(&x.gt(&x.zeros_like()), &x.square(), &x.exp())
    })?;
    check("multiplied", |x| x.matmul(&x.t()))?;
    Ok(())
}
