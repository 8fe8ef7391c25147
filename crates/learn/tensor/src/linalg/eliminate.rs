//! Elimination and substitution.

use super::blocks::{self, Lu, Triangle};
use super::host::{is_known, of_each};
use super::{
    MAX_SIZE, column, column_index, matrix, on_host, row, row_index, square, with_batch_of,
};
use crate::error::{ErrorKind, TensorError};
use crate::node::Tensor;
use crate::ops::{failure, select, settle, stack};
use crate::shape::{Shape, join};
use loopwright_ops::DType;

/// What elimination leaves of `a x = b`.
struct Eliminated {
    /// `x`, if there is a `b`.
    solution: Option<Tensor>,
    /// The pivots, along a new last axis.
    pivots: Tensor,
    /// The rows that they stand in, along a new last axis (`i64`).
    rows: Tensor,
}

/// Gauss and Jordan: in every step the largest element of a column, among rows that have had no pivot,
/// clears the column in all other rows. Rows stay where they are, and are put in order at the end.
#[track_caller]
fn eliminate(a: &Tensor, b: Option<&Tensor>, size: usize) -> Eliminated {
    let (mut a, mut b) = (a.clone(), b.cloned());
    let mut open = row_index(size).ge(&Tensor::scalar(0i64));
    let (mut pivots, mut rows) = (Vec::new(), Vec::new());
    for step in 0..size {
        let cleared = column(&a, step);
        let candidates = select(&open, &cleared.abs(), &cleared.number(-1.0));
        let chosen = candidates.squeeze(-1).argmax(-1);
        let is_chosen = chosen.one_hot(size, DType::Bool).unsqueeze(-1);
        let mask = is_chosen.cast(a.dtype());
        let pick = |from: &Tensor| (from * &mask).sum(-2).unsqueeze(-2);
        let line = pick(&a);
        let pivot = column(&line, step);
        // A pivot of 0 is one of the determinant, and must not spoil those behind it.
        let none = pivot.eq(&pivot.number(0));
        let line = line / select(&none, &pivot.ones_like(), &pivot);
        if let Some(right) = &b {
            let line = pick(right) / &pivot;
            b = Some(select(&is_chosen, &line, &(right - &cleared * &line)));
        }
        a = select(&is_chosen, &line, &(&a - &cleared * &line));
        open = open & !is_chosen;
        pivots.push(pivot.squeeze(-1).squeeze(-1));
        rows.push(chosen);
    }
    let pivots: Vec<&Tensor> = pivots.iter().collect();
    let rows: Vec<&Tensor> = rows.iter().collect();
    let rows = stack(&rows, -1);
    let solution = b.map(|right| {
        let mut order = right.shape().clone();
        order.0.truncate(right.rank());
        let index = rows.unsqueeze(-1).broadcast_to(&order);
        right.take_along(&index, -2)
    });
    Eliminated {
        solution,
        pivots: stack(&pivots, -1),
        rows,
    }
}

/// Both with the same axes before the last two.
#[track_caller]
fn same_batch(op: &str, a: &Tensor, b: &Tensor) -> Result<(Tensor, Tensor), TensorError> {
    let lead = |tensor: &Tensor| {
        let axes = tensor.shape().axes();
        Shape::new(axes[..axes.len() - 2].iter().cloned())
    };
    let Ok((joined, _)) = join(&lead(a), &lead(b)) else {
        return Err(refuse(
            op,
            a,
            b,
            "the axes before the last two do not go together",
        ));
    };
    let with = |tensor: &Tensor| {
        let own = &tensor.shape().axes()[tensor.rank() - 2..];
        tensor.broadcast_to(Shape::new(joined.axes().iter().chain(own).cloned()))
    };
    Ok((with(a), with(b)))
}

#[track_caller]
fn refuse(op: &str, a: &Tensor, b: &Tensor, reason: impl Into<String>) -> TensorError {
    TensorError::new(ErrorKind::Shapes {
        op: op.to_owned(),
        left: a.shape().to_string(),
        right: b.shape().to_string(),
        reason: reason.into(),
    })
}

/// Operands of `a x = b` with `b` as columns, and whether it was one vector.
#[track_caller]
pub(super) fn columns_of(
    op: &str,
    a: &Tensor,
    b: &Tensor,
    rows: usize,
) -> Result<(Tensor, Tensor, bool), TensorError> {
    if a.dtype() != b.dtype() {
        let reason = format!("the first is {}, the second is {}", a.dtype(), b.dtype());
        return Err(refuse(op, a, b, reason));
    }
    let vector = b.rank() == 1;
    if b.rank() == 0 {
        return Err(refuse(op, a, b, "the right side is a vector or a matrix"));
    }
    let right = if vector {
        b.unnamed().unsqueeze(-1)
    } else {
        b.unnamed()
    };
    let (found, _) = matrix(op, &right)?;
    if found != rows {
        let reason = format!(
            "the left side has {rows} rows and the right side {found}, which must be as many"
        );
        return Err(refuse(op, a, b, reason));
    }
    let (left, right) = same_batch(op, &a.unnamed(), &right)?;
    Ok((left, right, vector))
}

/// The `x` of `a x = b`, for a vector `b` or the columns of a matrix.
#[track_caller]
pub fn solve(a: &Tensor, b: &Tensor) -> Tensor {
    match failure(&[a, b]) {
        Some(failed) => failed,
        None => settle(solved(a, b)),
    }
}

#[track_caller]
fn solved(a: &Tensor, b: &Tensor) -> Result<Tensor, TensorError> {
    let size = square("solve", a)?;
    let (left, right, vector) = columns_of("solve", a, b, size)?;
    let x = match on_host("solve", &[&left], size, MAX_SIZE)? {
        true if is_known(&right) => solution(&left, &right, size)?,
        // A gradient that is mapped may meet a matrix that is known.
        true => inverse(&left).matmul(&right),
        false => {
            let x = eliminate(&left, Some(&right), size).solution;
            x.expect("there is a right side")
        }
    };
    let x = x
        .stop_gradient()
        .with_gradient(&[&left, &right], |of, x, gradient| {
            let right = solve(&of[0].t(), gradient);
            vec![-right.matmul(&x.t()), right]
        });
    x.check()?;
    Ok(if vector { x.squeeze(-1) } else { x })
}

#[track_caller]
fn solution(a: &Tensor, b: &Tensor, size: usize) -> Result<Tensor, TensorError> {
    let (_, columns) = matrix("solve", b)?;
    let [x] = of_each(&[a, b], [&[size, columns]], |of| {
        let mut x = of[1].to_vec();
        Lu::of(of[0], size).solve(&mut x);
        [x]
    })?;
    Ok(x)
}

/// The inverse of a matrix.
#[track_caller]
pub fn inverse(a: &Tensor) -> Tensor {
    match failure(&[a]) {
        Some(failed) => failed,
        None => settle(inverted(a)),
    }
}

#[track_caller]
fn inverted(a: &Tensor) -> Result<Tensor, TensorError> {
    let size = square("inverse", a)?;
    let a = a.unnamed();
    let ones = with_batch_of(&Tensor::eye(size, a.dtype()), &a);
    let inverse = match on_host("inverse", &[&a], size, MAX_SIZE)? {
        true => solution(&a, &ones, size)?,
        false => {
            let inverse = eliminate(&a, Some(&ones), size).solution;
            inverse.expect("there is a right side")
        }
    };
    Ok(inverse
        .stop_gradient()
        .with_gradient(&[&a], |_, inverse, gradient| {
            vec![-inverse.t().matmul(gradient).matmul(&inverse.t())]
        }))
}

/// 1 or -1: whether the rows that pivots stand in are an even permutation.
#[track_caller]
fn sign(rows: &Tensor, size: usize, dtype: DType) -> Tensor {
    let rows = rows.cast(dtype);
    let steps = (rows.unsqueeze(-2) - rows.unsqueeze(-1)).sign();
    let later = row_index(size).lt(&column_index(size));
    select(&later, &steps, &steps.ones_like()).prod([-2, -1])
}

/// The pivots of a matrix, along a new last axis, and the sign of the exchanges of rows.
#[track_caller]
fn pivots_of(op: &str, a: &Tensor) -> Result<(Tensor, Tensor), TensorError> {
    let size = square(op, a)?;
    if on_host(op, &[a], size, MAX_SIZE)? {
        let [pivots, sign] = of_each(&[a], [&[size], &[]], |a| {
            let (pivots, sign) = Lu::of(a[0], size).pivots();
            [pivots, vec![sign]]
        })?;
        return Ok((pivots, sign));
    }
    let left = eliminate(a, None, size);
    let sign = sign(&left.rows, size, a.dtype());
    Ok((left.pivots, sign))
}

/// The determinant of a matrix. Its gradient needs an inverse.
#[track_caller]
pub fn det(a: &Tensor) -> Tensor {
    if let Some(failed) = failure(&[a]) {
        return failed;
    }
    let a = a.unnamed();
    let (pivots, sign) = match pivots_of("det", &a) {
        Ok(both) => both,
        Err(error) => return Tensor::of_error(error),
    };
    let value = pivots.prod(-1) * sign;
    value
        .stop_gradient()
        .with_gradient(&[&a], |of, value, gradient| {
            let scale = (value * gradient).unsqueeze(-1).unsqueeze(-1);
            vec![inverse(&of[0]).t() * scale]
        })
}

/// The sign of the determinant, and the logarithm of its absolute value, which does not overflow.
#[track_caller]
pub fn slogdet(a: &Tensor) -> (Tensor, Tensor) {
    if let Some(failed) = failure(&[a]) {
        return (failed.clone(), failed);
    }
    let a = a.unnamed();
    let (pivots, sign) = match pivots_of("slogdet", &a) {
        Ok(both) => both,
        Err(error) => return (Tensor::of_error(error.clone()), Tensor::of_error(error)),
    };
    let signs = pivots.sign().prod(-1) * sign;
    let log = pivots.abs().log().sum(-1);
    let log = log.with_gradient(&[&a], |of, _, gradient| {
        vec![inverse(&of[0]).t() * gradient.unsqueeze(-1).unsqueeze(-1)]
    });
    (signs.stop_gradient(), log)
}

/// The `x` of `a x = b` for a triangular matrix: only the lower (or upper) triangle of `a` is looked at.
#[track_caller]
pub fn solve_triangular(a: &Tensor, b: &Tensor, lower: bool) -> Tensor {
    match failure(&[a, b]) {
        Some(failed) => failed,
        None => settle(substituted(a, b, lower)),
    }
}

#[track_caller]
fn substituted(a: &Tensor, b: &Tensor, lower: bool) -> Result<Tensor, TensorError> {
    let size = square("solve_triangular", a)?;
    let (left, right, vector) = columns_of("solve_triangular", a, b, size)?;
    let x = match on_host("solve_triangular", &[&left, &right], size, MAX_SIZE)? {
        true => {
            let (_, columns) = matrix("solve_triangular", &right)?;
            // What stands in the other triangle is not looked at, whatever it is.
            let (read, triangle) = match lower {
                true => (left.tril(0), Triangle::Lower),
                false => (left.triu(0), Triangle::Upper),
            };
            let [x] = of_each(&[&read, &right], [&[size, columns]], |of| {
                let mut x = of[1].to_vec();
                blocks::substitute(of[0], size, &mut x, triangle);
                [x]
            })?;
            x
        }
        false => substitute(&left, &right, size, lower),
    };
    let x = x.with_gradient(&[&left, &right], move |of, x, gradient| {
        let right = solve_triangular(&of[0].t(), gradient, !lower);
        let left = -right.matmul(&x.t());
        let left = if lower { left.tril(0) } else { left.triu(0) };
        vec![left, right]
    });
    x.check()?;
    Ok(if vector { x.squeeze(-1) } else { x })
}

#[track_caller]
fn substitute(left: &Tensor, right: &Tensor, size: usize, lower: bool) -> Tensor {
    let index = row_index(size);
    let mut x = right.clone();
    for step in 0..size {
        let at = if lower { step } else { size - 1 - step };
        let place = Tensor::scalar(at as i64);
        let factors = column(left, at);
        let line = row(&x, at) / row(&factors, at);
        let later = if lower {
            index.gt(&place)
        } else {
            index.lt(&place)
        };
        let rest = select(&later, &(&x - factors * &line), &x);
        x = select(&index.eq(&place), &line, &rest);
    }
    x
}
