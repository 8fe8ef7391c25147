//! Factors: Cholesky's, and an orthogonal with a triangular one.

use super::eliminate::{columns_of, solve_triangular};
use super::{at_most, column, column_index, matrix, row, row_index, square};
use crate::error::TensorError;
use crate::node::Tensor;
use crate::ops::{failure, refuse_shape, select, settle};

/// The lower triangle `l` with `l lᵀ = a`, for a symmetric positive definite matrix, of which only the lower
/// triangle is looked at. Its gradient is symmetric.
#[track_caller]
pub fn cholesky(a: &Tensor) -> Tensor {
    match failure(&[a]) {
        Some(failed) => failed,
        None => settle(lower_factor(a)),
    }
}

#[track_caller]
fn lower_factor(a: &Tensor) -> Result<Tensor, TensorError> {
    let size = square("cholesky", a)?;
    let a = a.unnamed();
    let (rows, columns) = (row_index(size), column_index(size));
    // Column after column of the rest becomes one of the factor, in place.
    let mut rest = a.clone();
    for step in 0..size {
        let place = Tensor::scalar(step as i64);
        let whole = column(&rest, step);
        let root = row(&whole, step).sqrt();
        let whole = select(
            &rows.ge(&place),
            &(whole / root),
            &Tensor::zeros((), a.dtype()),
        );
        let less = &rest - &whole * whole.t();
        let right = columns.gt(&place);
        rest = select(&columns.eq(&place), &whole, &select(&right, &less, &rest));
    }
    Ok(rest.with_gradient(&[&a], |_, factor, gradient| {
        // Half of what flows to the diagonal; see Murray, "Differentiation of the Cholesky decomposition".
        let inner = factor.t().matmul(gradient).tril(0);
        let inner = &inner - diagonal_of(&inner) * 0.5;
        let upper = factor.t();
        let left = solve_triangular(&upper, &inner, false);
        let both = solve_triangular(&upper, &left.t(), false);
        vec![(both.t() + both) * 0.5]
    }))
}

/// A matrix with only its diagonal.
#[track_caller]
pub(super) fn diagonal_of(a: &Tensor) -> Tensor {
    a.tril(0).triu(0)
}

/// `q` with orthonormal columns and an upper triangle `r` with `q r = a`, for a matrix with at least as
/// many rows as columns; the diagonal of `r` is not negative.
#[track_caller]
pub fn qr(a: &Tensor) -> (Tensor, Tensor) {
    if let Some(failed) = failure(&[a]) {
        return (failed.clone(), failed);
    }
    match orthogonal(a) {
        Ok(both) => both,
        Err(error) => (settle(Err(error.clone())), settle(Err(error))),
    }
}

/// Every column made a unit, and taken out of all behind it.
#[track_caller]
fn gram_schmidt(a: &Tensor, columns: usize) -> Tensor {
    let index = column_index(columns);
    let mut q = a.clone();
    for step in 0..columns {
        let place = Tensor::scalar(step as i64);
        let one = column(&q, step);
        let length = (&one * &one).sum(-2).unsqueeze(-2).sqrt();
        let one = one / length;
        let along = (&one * &q).sum(-2).unsqueeze(-2);
        let rest = select(&index.gt(&place), &(&q - &one * along), &q);
        q = select(&index.eq(&place), &one, &rest);
    }
    q
}

#[track_caller]
fn orthogonal(a: &Tensor) -> Result<(Tensor, Tensor), TensorError> {
    let (rows, columns) = matrix("qr", a)?;
    if rows < columns {
        let reason = format!("it has {rows} rows, fewer than its {columns} columns");
        return Err(refuse_shape("qr", a.shape(), reason));
    }
    at_most("qr", a, columns, super::MAX_SIZE)?;
    let a = a.unnamed();
    // Once more: what rounding left of the other columns is taken out too.
    let q = gram_schmidt(&gram_schmidt(&a, columns), columns).stop_gradient();
    let r = q.t().matmul(&a).triu(0).stop_gradient();
    // With q̄ and r̄ what flows to q and r: ā = (q̄ + q s(r r̄ᵀ - q̄ᵀ q)) r⁻ᵀ, where s copies the lower triangle.
    let symmetric = |inner: &Tensor| inner.tril(0) + inner.tril(-1).t();
    let behind = |left: &Tensor, r: &Tensor| solve_triangular(r, &left.t(), false).t();
    let of_q = q.with_gradient(&[&a], {
        let r = r.clone();
        move |_, q, gradient| {
            let inner = symmetric(&-gradient.t().matmul(q));
            vec![behind(&(gradient + q.matmul(&inner)), &r)]
        }
    });
    let of_r = r.with_gradient(&[&a], {
        let q = q.clone();
        move |_, r, gradient| {
            let inner = symmetric(&r.matmul(&gradient.triu(0).t()));
            vec![behind(&q.matmul(&inner), r)]
        }
    });
    Ok((of_q, of_r))
}

/// The `x` for which `a x` is nearest to `b`, for a matrix of full rank with at least as many rows as
/// columns.
#[track_caller]
pub fn lstsq(a: &Tensor, b: &Tensor) -> Tensor {
    match failure(&[a, b]) {
        Some(failed) => failed,
        None => settle(nearest(a, b)),
    }
}

#[track_caller]
fn nearest(a: &Tensor, b: &Tensor) -> Result<Tensor, TensorError> {
    let (rows, _) = matrix("lstsq", a)?;
    let (left, right, vector) = columns_of("lstsq", a, b, rows)?;
    let (q, r) = orthogonal(&left)?;
    let x = solve_triangular(&r, &q.t().matmul(&right), false);
    x.check()?;
    Ok(if vector { x.squeeze(-1) } else { x })
}
