//! Factors: Cholesky's, and an orthogonal with a triangular one.

use super::eliminate::{columns_of, solve_triangular};
use super::host::{is_known, of_each};
use super::{
    MAX_SIZE, blocks, column, column_index, matrix, on_host, power_below, row, row_index, square,
};
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
    let factor = match on_host("cholesky", &[&a], size, MAX_SIZE)? {
        true => {
            // What stands above the diagonal is not looked at, whatever it is.
            let read = a.tril(0);
            let [l] = of_each(&[&read], [&[size, size]], |a| {
                [blocks::cholesky(a[0], size)]
            })?;
            l
        }
        false => column_by_column(&a, size),
    };
    Ok(factor
        .stop_gradient()
        .with_gradient(&[&a], |_, factor, gradient| {
            // Half of what flows to the diagonal; see Murray, "Differentiation of the Cholesky decomposition".
            let inner = factor.t().matmul(gradient).tril(0);
            let inner = &inner - diagonal_of(&inner) * 0.5;
            let upper = factor.t();
            let left = solve_triangular(&upper, &inner, false);
            let both = solve_triangular(&upper, &left.t(), false);
            vec![(both.t() + both) * 0.5]
        }))
}

#[track_caller]
fn column_by_column(a: &Tensor, size: usize) -> Tensor {
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
    rest
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
    let a = a.unnamed();
    let (q, r) = match on_host("qr", &[&a], columns, MAX_SIZE)? {
        true => {
            let tails: [&[usize]; 2] = [&[rows, columns], &[columns, columns]];
            let [q, r] = of_each(&[&a], tails, |a| blocks::qr(a[0], columns, columns))?;
            (q, r)
        }
        false => {
            // Each column by itself: one that is small beside others is as good as they are.
            let fixed = a.stop_gradient();
            let powers = power_below(&fixed.abs().max(-2)).unsqueeze(-2);
            let near = fixed / &powers;
            // Once more: what rounding left of the other columns is taken out too.
            let q = gram_schmidt(&gram_schmidt(&near, columns), columns);
            let r = q.t().matmul(&near).triu(0) * powers;
            (q, r)
        }
    };
    let (q, r) = (q.stop_gradient(), r.stop_gradient());
    // With q̄ and r̄ what flows to q and r: ā = (q̄ + q s(r r̄ᵀ - q̄ᵀ q)) r⁻ᵀ, where s copies the lower triangle.
    let symmetric = |inner: &Tensor| inner.tril(0) + inner.tril(-1).t();
    let behind = |left: &Tensor, r: &Tensor| solve_triangular(r, &left.t(), false).t();
    // What the formulas are made of has gradients itself: for second derivatives.
    let of_q = q.with_gradient(&[&a], move |of, q, gradient| {
        let r = q.t().matmul(&of[0]).triu(0);
        let inner = symmetric(&-gradient.t().matmul(q));
        vec![behind(&(gradient + q.matmul(&inner)), &r)]
    });
    let of_r = r.with_gradient(&[&a], {
        let q = of_q.clone();
        move |_, r, gradient| {
            let inner = symmetric(&r.matmul(&gradient.triu(0).t()));
            vec![behind(&q.matmul(&inner), r)]
        }
    });
    Ok((of_q, of_r))
}

/// Orthonormal columns that make those of `q`, which are orthonormal, a square matrix. They are found on the host:
/// values have to be known, which they are not in a function that is traced.
#[track_caller]
pub fn complement(q: &Tensor) -> Tensor {
    match failure(&[q]) {
        Some(failed) => failed,
        None => settle(other_columns(q)),
    }
}

#[track_caller]
fn other_columns(q: &Tensor) -> Result<Tensor, TensorError> {
    let (rows, columns) = matrix("complement", q)?;
    let refuse = |reason: String| Err(refuse_shape("complement", q.shape(), reason));
    if columns == 0 || rows <= columns {
        return refuse(format!(
            "there is nothing beside {columns} columns with {rows} rows"
        ));
    }
    if !is_known(q) {
        return refuse("its values are not known, as in a function that is traced".to_owned());
    }
    let q = q.unnamed();
    let [other] = of_each(&[&q], [&[rows, rows - columns]], |q| {
        let [square, _] = blocks::qr(q[0], columns, rows);
        let rest = square.chunks_exact(rows).flat_map(|row| &row[columns..]);
        [rest.copied().collect()]
    })?;
    // The columns turn as little as they can where those of `q` change.
    Ok(other.with_gradient(&[&q], |of, other, gradient| {
        vec![-other.matmul(&gradient.t().matmul(&of[0]))]
    }))
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
