//! Contractions: products summed over what operands have in common.

use crate::error::{ErrorKind, TensorError};
use crate::node::Tensor;
use crate::ops::{failure, settle};
use crate::shape::{Places, Shape};
use crate::size;
use loopwright_ops::ReduceOp;

impl Tensor {
    /// The matrix product: the last axis of this tensor meets the last but one of the other (its only
    /// one, if it is a vector); axes before those meet as operands' do.
    #[track_caller]
    pub fn matmul(&self, other: &Tensor) -> Tensor {
        if let Some(failed) = failure(&[self, other]) {
            return failed;
        }
        settle(product(self, other))
    }
}

#[track_caller]
fn product(a: &Tensor, b: &Tensor) -> Result<Tensor, TensorError> {
    let refuse = |reason: String| {
        TensorError::new(ErrorKind::Shapes {
            op: "matmul".to_owned(),
            left: a.shape().to_string(),
            right: b.shape().to_string(),
            reason,
        })
    };
    if a.rank() == 0 || b.rank() == 0 {
        return Err(refuse(
            "both need an axis; `*` multiplies by a number".to_owned(),
        ));
    }
    if a.dtype() != b.dtype() {
        return Err(refuse(format!(
            "the first is {}, the second is {}; convert one of them with `.cast(..)`",
            a.dtype(),
            b.dtype()
        )));
    }
    let (vector_a, vector_b) = (a.rank() == 1, b.rank() == 1);
    let rows = if vector_a { a.unsqueeze(0) } else { a.clone() };
    let columns = if vector_b { b.unsqueeze(1) } else { b.clone() };
    let (m, n) = (rows.rank(), columns.rank());
    let (inner_a, inner_b) = (&rows.shape().axes()[m - 1], &columns.shape().axes()[n - 2]);
    if !size::equate(&inner_a.size, &inner_b.size) {
        return Err(refuse(format!(
            "the first has {inner_a} columns and the second {inner_b} rows, which must be as many"
        )));
    }
    // Axes before the last two meet by the rules for operands.
    let outer =
        |tensor: &Tensor| Shape::new(tensor.shape().axes()[..tensor.rank() - 2].iter().cloned());
    let (outer_a, outer_b) = (outer(&rows), outer(&columns));
    let joined = crate::shape::join(&outer_a, &outer_b);
    let Ok((outer, [from_a, from_b])) = joined else {
        return Err(refuse(format!(
            "the axes before the last two, {outer_a} and {outer_b}, do not go together"
        )));
    };
    let count = outer.rank();
    let mut shape = outer;
    let mut row = rows.shape().axes()[m - 2].clone();
    let mut column = columns.shape().axes()[n - 1].clone();
    let mut inner = inner_a.clone();
    inner.name = None;
    if row.name == column.name {
        row.name = None;
        column.name = None;
    }
    shape.0.extend([row, inner, column]);
    if let Some(name) = shape.repeated_name() {
        return Err(refuse(format!(
            "two axes of the result would be called `{name}`"
        )));
    }
    let places_a: Places = from_a
        .iter()
        .copied()
        .chain([Some(m - 2), Some(m - 1), None])
        .collect();
    let places_b: Places = from_b
        .iter()
        .copied()
        .chain([None, Some(n - 2), Some(n - 1)])
        .collect();
    let products = rows.spread(&shape, &places_a) * columns.spread(&shape, &places_b);
    let summed = products.fold(ReduceOp::Sum, [count + 1].into_iter().collect());
    let summed = if vector_b {
        summed.squeeze(count + 1)
    } else {
        summed
    };
    Ok(if vector_a {
        summed.squeeze(count)
    } else {
        summed
    })
}
