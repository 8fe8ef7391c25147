//! Eigenvalues and singular values: where they are found, and their gradients.

use super::host::of_each;
use super::{bidiagonal, jacobi, matrix, on_host, scaled, square, tridiagonal};
use crate::error::TensorError;
use crate::node::Tensor;
use crate::ops::{failure, select, settle};

/// `1 / (v[j] - v[i])`, and 0 where they are the same.
#[track_caller]
fn inverse_gaps(values: &Tensor) -> Tensor {
    let gaps = values.unsqueeze(-2) - values.unsqueeze(-1);
    let same = gaps.eq(&gaps.number(0));
    let safe = select(&same, &gaps.ones_like(), &gaps);
    select(&same, &gaps.zeros_like(), &safe.recip())
}

/// The eigenvalues of a symmetric matrix, ascending, and its eigenvectors as columns. Their signs are open.
#[track_caller]
pub fn eigh(a: &Tensor) -> (Tensor, Tensor) {
    if let Some(failed) = failure(&[a]) {
        return (failed.clone(), failed);
    }
    match symmetric(a) {
        Ok(both) => both,
        Err(error) => (settle(Err(error.clone())), settle(Err(error))),
    }
}

#[track_caller]
fn symmetric(a: &Tensor) -> Result<(Tensor, Tensor), TensorError> {
    let size = square("eigh", a)?;
    let a = a.unnamed();
    let (values, vectors) = match on_host("eigh", &[&a], size, jacobi::MAX_JACOBI)? {
        true => {
            let tails: [&[usize]; 2] = [&[size], &[size, size]];
            let [values, vectors] = of_each(&[&a], tails, |a| tridiagonal::eigh(a[0], size))?;
            (values, vectors)
        }
        false => {
            let (near, power) = scaled(&a);
            let (values, vectors) = jacobi::eigh(&near, size);
            (values * power.squeeze(-1), vectors)
        }
    };
    let (values, vectors) = (values.stop_gradient(), vectors.stop_gradient());
    // What the formulas are made of has gradients itself: for second derivatives.
    let of_vectors = vectors.with_gradient(&[&a], |of, vectors, gradient| {
        let values = (vectors * of[0].matmul(vectors)).sum(-2);
        let inner = inverse_gaps(&values) * vectors.t().matmul(gradient);
        let flow = vectors.matmul(&inner).matmul(&vectors.t());
        vec![(&flow + flow.t()) * 0.5]
    });
    let of_values = values.with_gradient(&[&a], {
        let vectors = of_vectors.clone();
        move |_, _, gradient| vec![(&vectors * gradient.unsqueeze(-2)).matmul(&vectors.t())]
    });
    Ok((of_values, of_vectors))
}

/// The eigenvalues of a symmetric matrix, ascending. On the host, that is less work than [`eigh`].
#[track_caller]
pub fn eigvalsh(a: &Tensor) -> Tensor {
    match failure(&[a]) {
        Some(failed) => failed,
        None => settle(eigenvalues(a)),
    }
}

#[track_caller]
fn eigenvalues(a: &Tensor) -> Result<Tensor, TensorError> {
    let size = square("eigvalsh", a)?;
    let a = a.unnamed();
    if !on_host("eigvalsh", &[&a], size, jacobi::MAX_JACOBI)? {
        return Ok(symmetric(&a)?.0);
    }
    let [values] = of_each(&[&a], [&[size]], |a| [tridiagonal::eigenvalues(a[0], size)])?;
    Ok(values.with_gradient(&[&a], |of, _, gradient| {
        let (_, vectors) = eigh(&of[0]);
        vec![(&vectors * gradient.unsqueeze(-2)).matmul(&vectors.t())]
    }))
}

/// `u`, the singular values in descending order, and `v` with `u diag(s) vᵀ = a`: as many columns as the
/// shorter side has. The signs of pairs of columns are open.
#[track_caller]
pub fn svd(a: &Tensor) -> (Tensor, Tensor, Tensor) {
    if let Some(failed) = failure(&[a]) {
        return (failed.clone(), failed.clone(), failed);
    }
    match singular(a) {
        Ok(all) => all,
        Err(error) => {
            let failed = settle(Err(error));
            (failed.clone(), failed.clone(), failed)
        }
    }
}

#[track_caller]
fn singular(a: &Tensor) -> Result<(Tensor, Tensor, Tensor), TensorError> {
    let (rows, columns) = matrix("svd", a)?;
    let a = a.unnamed();
    if rows < columns {
        let (v, values, u) = singular(&a.t())?;
        return Ok((u, values, v));
    }
    let (u, values, v) = match on_host("svd", &[&a], columns, jacobi::MAX_JACOBI)? {
        true => {
            let tails: [&[usize]; 3] = [&[rows, columns], &[columns], &[columns, columns]];
            let [u, values, v] = of_each(&[&a], tails, |a| bidiagonal::svd(a[0], columns))?;
            (u, values, v)
        }
        false => {
            let (near, power) = scaled(&a);
            let (u, values, v) = jacobi::svd(&near, columns);
            (u, values * power.squeeze(-1), v)
        }
    };
    let (u, values, v) = (u.stop_gradient(), values.stop_gradient(), v.stop_gradient());
    // The gaps are those of the values' squares. Values and the other side's vectors are made of one side's
    // again, so that they have gradients, for second derivatives.
    let skew = |left: &Tensor, gradient: &Tensor, values: &Tensor| {
        let inner = left.t().matmul(gradient);
        inverse_gaps(&values.square()) * (&inner - inner.t())
    };
    let other_side = |product: Tensor| {
        let values = product.norm(-2);
        (product / values.unsqueeze(-2), values)
    };
    let of_u = u.with_gradient(&[&a], move |of, u, gradient| {
        let (v, values) = other_side(of[0].t().matmul(u));
        let turned = u.matmul(&(skew(u, gradient, &values) * values.unsqueeze(-2)));
        let beside = (gradient - u.matmul(&u.t().matmul(gradient))) / values.unsqueeze(-2);
        vec![(turned + beside).matmul(&v.t())]
    });
    let of_v = v.with_gradient(&[&a], move |of, v, gradient| {
        let (u, values) = other_side(of[0].matmul(v));
        let inner = skew(v, gradient, &values) * values.unsqueeze(-1);
        vec![u.matmul(&inner).matmul(&v.t())]
    });
    let of_values = values.with_gradient(&[&a], {
        let (u, v) = (of_u.clone(), of_v.clone());
        move |_, _, gradient| vec![(&u * gradient.unsqueeze(-2)).matmul(&v.t())]
    });
    Ok((of_u, of_values, of_v))
}

/// The singular values in descending order. On the host, that is less work than [`svd`].
#[track_caller]
pub fn svdvals(a: &Tensor) -> Tensor {
    match failure(&[a]) {
        Some(failed) => failed,
        None => settle(singular_values(a)),
    }
}

#[track_caller]
fn singular_values(a: &Tensor) -> Result<Tensor, TensorError> {
    let (rows, columns) = matrix("svdvals", a)?;
    let a = a.unnamed();
    if rows < columns {
        return singular_values(&a.t());
    }
    if !on_host("svdvals", &[&a], columns, jacobi::MAX_JACOBI)? {
        return Ok(singular(&a)?.1);
    }
    let [values] = of_each(&[&a], [&[columns]], |a| {
        [bidiagonal::singular_values(a[0], columns)]
    })?;
    Ok(values.with_gradient(&[&a], |of, _, gradient| {
        let (u, _, v) = svd(&of[0]);
        vec![(&u * gradient.unsqueeze(-2)).matmul(&v.t())]
    }))
}
