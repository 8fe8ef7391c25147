//! Norms, traces and products of all pairs.

use super::{matrix, svdvals};
use crate::einsum::einsum;
use crate::error::{ErrorKind, TensorError};
use crate::node::Tensor;
use crate::ops::{IntoAxes, failure};

/// The length of a vector along axes, in which the `p`-th powers of elements are added: 1 for the sum of
/// absolute values, 2 for the usual length, infinity for the largest absolute value, 0 for the number of
/// elements that are not 0.
#[track_caller]
pub fn vector_norm(x: &Tensor, p: f64, axes: impl IntoAxes) -> Tensor {
    if let Some(failed) = failure(&[x]) {
        return failed;
    }
    if p.is_nan() || p < 0.0 {
        return Tensor::failed(ErrorKind::Argument {
            op: "vector_norm".to_owned(),
            reason: format!("the power is at least 0, not {p}"),
        });
    }
    if !x.dtype().is_float() {
        return Tensor::failed(ErrorKind::Expected {
            op: "vector_norm".to_owned(),
            expected: "a tensor of floats".to_owned(),
            got: x.dtype(),
        });
    }
    match p {
        0.0 => x.ne(&x.number(0)).cast(x.dtype()).sum(axes),
        1.0 => x.abs().sum(axes),
        2.0 => x.norm(axes),
        f64::INFINITY => x.abs().max(axes),
        p => x.abs().powf(p).sum(axes).powf(1.0 / p),
    }
}

/// Norms of matrices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MatrixNorm {
    /// The length of all elements as one vector.
    Frobenius,
    /// The largest sum of absolute values in a column.
    One,
    /// The largest sum of absolute values in a row.
    Infinity,
    /// The largest singular value.
    Spectral,
    /// The sum of singular values.
    Nuclear,
}

/// A norm of the last two axes.
#[track_caller]
pub fn matrix_norm(a: &Tensor, norm: MatrixNorm) -> Tensor {
    if let Some(failed) = failure(&[a]) {
        return failed;
    }
    if let Err(error) = two_axes("matrix_norm", a) {
        return Tensor::of_error(error);
    }
    match norm {
        MatrixNorm::Frobenius => a.norm([-2, -1]),
        MatrixNorm::One => a.abs().sum(-2).max(-1),
        MatrixNorm::Infinity => a.abs().sum(-1).max(-1),
        MatrixNorm::Spectral => svdvals(a).max(-1),
        MatrixNorm::Nuclear => svdvals(a).sum(-1),
    }
}

#[track_caller]
fn two_axes(op: &str, a: &Tensor) -> Result<(), TensorError> {
    match a.rank() {
        0 | 1 => matrix(op, a).map(drop),
        _ => Ok(()),
    }
}

/// The sum of the diagonal of the last two axes.
#[track_caller]
pub fn trace(a: &Tensor) -> Tensor {
    a.diagonal().sum(-1)
}

/// The products of all pairs of elements of two vectors.
#[track_caller]
pub fn outer(a: &Tensor, b: &Tensor) -> Tensor {
    einsum("...i,...j->...ij", &[a, b])
}

/// The matrix of blocks `a[i, j] * b`.
#[track_caller]
pub fn kron(a: &Tensor, b: &Tensor) -> Tensor {
    einsum("...ij,...kl->...(ik)(jl)", &[a, b])
}
