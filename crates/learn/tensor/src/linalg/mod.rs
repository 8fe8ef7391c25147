//! Linear algebra on the last two axes; axes before them are a batch.
//!
//! | function | formula | most columns | on the host |
//! |---|---|---|---|
//! | [`solve`], [`inverse`], [`det`], [`slogdet`] | elimination by Gauss and Jordan with partial pivoting | [`MAX_SIZE`] | blocked elimination with partial pivoting |
//! | [`cholesky`] | column by column | [`MAX_SIZE`] | the same in blocks |
//! | [`solve_triangular`] | substitution | [`MAX_SIZE`] | the same in blocks |
//! | [`qr`], [`lstsq`] | modified Gram-Schmidt, done twice | [`MAX_SIZE`] | blocks of Householder's reflections |
//! | [`eigh`], [`eigvalsh`] | Jacobi's rotations, all pairs of a round at once, in `5 + log2(columns)` sweeps | [`MAX_JACOBI`] | reflections to a tridiagonal matrix, implicit QR iteration |
//! | [`svd`], [`svdvals`] | the same, one-sided | [`MAX_JACOBI`] | reflections to a bidiagonal matrix, Golub and Kahan's iteration |
//! | [`complement`] | none | | blocks of Householder's reflections |
//! | [`eig`], [`eigvals`] | none | | reflections to a Hessenberg matrix, QR iteration with shifts |
//!
//! A formula is made of tensor ops with one step for each column, so that it runs on every device and in
//! compiled functions; the steps are written out, hence the largest sizes. Matrices with more than 8 columns
//! whose values can be asked for are computed on the host, at once and in `f64`, whatever their dtype: there is no
//! largest size. Values cannot be asked for where they are made of arguments of a function that is traced
//! ([`jit`](crate::jit())) or mapped ([`vmap`](crate::vmap())), or of variables in one.
//!
//! All have gradients by their own formulas, not through the steps; those of factorisations need full rank,
//! and those of vectors of [`eigh`] and [`svd`] need values that differ.
//!
//! Matrices are divided by a power of two before they are taken apart, so that no square of an element is too large or
//! too small for its dtype, and what comes out is multiplied by it.
//!
//! Names of axes are dropped. A singular matrix, or one that is not positive definite, gives infinities or NaN, not
//! an error; so does one with elements that are not finite.
//!
//! ```
//! # use loopwright_x86 as _;
//! use loopwright_tensor::{Tensor, linalg};
//!
//! let a = Tensor::from([[4.0f64, 1.0], [1.0, 3.0]]);
//! let x = linalg::solve(&a, &Tensor::from([1.0f64, 2.0]));
//! let residual = a.matmul(&x) - Tensor::from([1.0f64, 2.0]);
//! assert!(residual.abs().max(..).item()? < 1e-15);
//! assert!((linalg::det(&a).item()? - 11.0).abs() < 1e-14);
//! # Ok::<(), loopwright_tensor::TensorError>(())
//! ```

mod bidiagonal;
mod blocks;
mod complex;
mod eliminate;
mod factor;
mod francis;
mod general;
mod host;
#[cfg(test)]
mod host_tests;
mod jacobi;
mod norm;
mod reflect;
mod rotate;
mod tridiagonal;
mod values;

pub use eliminate::{det, inverse, slogdet, solve, solve_triangular};
pub use factor::{cholesky, complement, lstsq, qr};
pub use general::{eig, eigvals};
pub use jacobi::MAX_JACOBI;
pub use norm::{MatrixNorm, kron, matrix_norm, outer, trace, vector_norm};
pub use values::{eigh, eigvalsh, svd, svdvals};

use crate::error::{ErrorKind, TensorError};
use crate::node::Tensor;
use crate::ops::{refuse_shape, select};
use crate::shape::Axis;
use loopwright_ops::{DType, Op, Scalar};

/// The largest matrices whose steps are written out, in functions that are traced or mapped; of those with more
/// rows than columns, the most columns.
pub const MAX_SIZE: usize = 128;

/// Matrices of up to so many columns are always formulas. Large batches of them are computed beside each other,
/// 30000 eigenvalue problems of this size in a twentieth of the host's time; a single one takes the host less time
/// at any size, and a formula of 32 columns half a second to compile.
const SMALL: usize = 8;

/// The sizes of a matrix of floats.
#[track_caller]
fn matrix(op: &str, a: &Tensor) -> Result<(usize, usize), TensorError> {
    if !a.dtype().is_float() {
        return Err(TensorError::new(ErrorKind::Expected {
            op: op.to_owned(),
            expected: "a matrix of floats".to_owned(),
            got: a.dtype(),
        }));
    }
    let [.., rows, columns] = a.shape().axes() else {
        return Err(refuse_shape(op, a.shape(), "a matrix has two axes"));
    };
    match (rows.known(), columns.known()) {
        (Some(rows), Some(columns)) => Ok((rows, columns)),
        _ => Err(refuse_shape(
            op,
            a.shape(),
            "the sizes of the last two axes have to be known here, for it is taken apart by steps",
        )),
    }
}

/// The size of a square matrix of floats.
#[track_caller]
fn square(op: &str, a: &Tensor) -> Result<usize, TensorError> {
    let (rows, columns) = matrix(op, a)?;
    if rows != columns {
        let reason = format!("it has {rows} rows and {columns} columns, which must be as many");
        return Err(refuse_shape(op, a.shape(), reason));
    }
    Ok(rows)
}

/// Whether the values of matrices are known, and the shorter side is long enough for them to be taken apart on the
/// host.
pub fn is_on_host(a: &Tensor) -> bool {
    let [.., rows, columns] = a.shape().axes() else {
        return false;
    };
    let known = |axis: &Axis| axis.known().is_some_and(|size| size > SMALL);
    known(rows) && known(columns) && host::is_known(a)
}

/// Whether matrices are taken apart on the host; otherwise, there are not more steps than are written out.
#[track_caller]
fn on_host(op: &str, operands: &[&Tensor], size: usize, limit: usize) -> Result<bool, TensorError> {
    let refuse = |reason: String| refuse_shape(op, operands[0].shape(), reason);
    if size == 0 {
        return Err(refuse("a matrix has rows and columns".to_owned()));
    }
    if size > SMALL && operands.iter().all(|operand| host::is_known(operand)) {
        return Ok(true);
    }
    if size > limit {
        return Err(refuse(format!(
            "{size} steps would be written out, and {limit} are the most where values are not known"
        )));
    }
    Ok(false)
}

/// The largest power of two that is not above numbers, which are not negative, and at least the smallest normal number;
/// NaN for what is not finite, and 1 for dtypes of fewer than 32 bits.
#[track_caller]
fn power_below(x: &Tensor) -> Tensor {
    let (bits, exponent, least) = match x.dtype() {
        DType::F32 => (
            DType::U32,
            u64::from(f32::INFINITY.to_bits()),
            f64::from(f32::MIN_POSITIVE),
        ),
        DType::F64 => (DType::U64, f64::INFINITY.to_bits(), f64::MIN_POSITIVE),
        _ => return x.ones_like(),
    };
    let mask = Tensor::constant(Scalar::from_bits(bits, exponent));
    let power = (x.bitcast(bits) & mask).bitcast(x.dtype());
    let power = power.maximum(&power.number(least));
    let nan = power.number(f64::NAN);
    select(&Tensor::map(Op::IsFinite, &[&power]), &power, &nan)
}

/// Matrices divided by a power of two, so that the largest element of each is from 1 to 2, and the powers, with the
/// two last axes of size 1. Nothing flows back through it.
#[track_caller]
fn scaled(a: &Tensor) -> (Tensor, Tensor) {
    let a = a.stop_gradient();
    let power = power_below(&a.abs().max([-2, -1]))
        .unsqueeze(-1)
        .unsqueeze(-1);
    (&a / &power, power)
}

/// The index of rows, as a column (`i64`).
#[track_caller]
fn row_index(rows: usize) -> Tensor {
    Tensor::index(Axis::of(rows)).unsqueeze(1)
}

/// The index of columns, as a row (`i64`).
#[track_caller]
fn column_index(columns: usize) -> Tensor {
    Tensor::index(Axis::of(columns))
}

#[track_caller]
fn row(a: &Tensor, at: usize) -> Tensor {
    a.narrow(-2, at, 1)
}

#[track_caller]
fn column(a: &Tensor, at: usize) -> Tensor {
    a.narrow(-1, at, 1)
}

/// A tensor with another one's axes before its last two.
#[track_caller]
fn with_batch_of(a: &Tensor, like: &Tensor) -> Tensor {
    let lead = &like.shape().axes()[..like.rank() - 2];
    let own = &a.shape().axes()[a.rank() - 2..];
    a.broadcast_to(crate::shape::Shape::new(lead.iter().chain(own).cloned()))
}
