//! Eigenvalues and singular values by Jacobi's rotations.
//!
//! A sweep rotates every pair of columns once. It has rounds, as a tournament has, in each of which every
//! column meets another one, and all pairs of a round are rotated at once.

use super::{at_most, matrix, square, with_batch_of};
use crate::error::TensorError;
use crate::node::Tensor;
use crate::ops::{failure, select, settle};

/// The most columns.
pub const MAX_JACOBI: usize = 32;

/// How many sweeps there are: 5 and the logarithm of the columns to base 2. They converge quadratically
/// once they are near; random matrices of all sizes that are taken need about two fewer.
fn sweeps(columns: usize) -> usize {
    5 + columns.next_power_of_two().ilog2() as usize
}

/// The partners of all columns in each round of a sweep; a column without one is its own.
fn rounds(columns: usize) -> Vec<Vec<usize>> {
    let players = columns.next_multiple_of(2);
    if columns < 2 {
        return Vec::new();
    }
    let turning = players - 1;
    (0..turning)
        .map(|round| {
            let mut partner: Vec<usize> = (0..columns).collect();
            // The last one stays, the others go round.
            let seat = |at: usize| match at {
                0 => players - 1,
                at => (at - 1 + round) % turning,
            };
            for at in 0..players / 2 {
                let (a, b) = (seat(at), seat(players - 1 - at));
                if a < columns && b < columns {
                    partner[a] = b;
                    partner[b] = a;
                }
            }
            partner
        })
        .collect()
}

/// One round's partners as tensors.
struct Round {
    index: Tensor,
    /// Whether a column comes before its partner.
    first: Tensor,
    /// Whether a column has one.
    paired: Tensor,
}

impl Round {
    #[track_caller]
    fn new(partner: &[usize]) -> Round {
        let flags = |keep: fn(usize, usize) -> bool| {
            let flags: Vec<u8> = partner
                .iter()
                .enumerate()
                .map(|(at, other)| u8::from(keep(at, *other)))
                .collect();
            Tensor::from(flags).ne(&Tensor::scalar(0u8))
        };
        Round {
            index: Tensor::from(partner.iter().map(|at| *at as i64).collect::<Vec<i64>>()),
            first: flags(|at, other| at < other),
            paired: flags(|at, other| at != other),
        }
    }

    /// Cosines and sines of the angles that make the product of each pair zero: `own` is a column's with
    /// itself, `both` the one with its partner. A column becomes `cos * own - sin * partner`.
    #[track_caller]
    fn angles(&self, own: &Tensor, both: &Tensor) -> (Tensor, Tensor) {
        let other = own.take(&self.index, -1);
        let turns = &self.paired & &both.ne(&both.number(0));
        let safe = select(&turns, both, &both.ones_like());
        let ratio = (other - own) / (safe * 2.0);
        // Partners have opposite angles, also where the ratio is 0.
        let zero = ratio.number(0);
        let positive = ratio.gt(&zero) | (ratio.eq(&zero) & &self.first);
        let direction = select(&positive, &ratio.ones_like(), &-ratio.ones_like());
        let tangent = direction / (ratio.abs() + (&ratio * &ratio + 1.0).sqrt());
        let tangent = select(&turns, &tangent, &tangent.zeros_like());
        let cosine = (&tangent * &tangent + 1.0).rsqrt();
        let sine = tangent * &cosine;
        (cosine.unsqueeze(-2), sine.unsqueeze(-2))
    }

    #[track_caller]
    fn turn(&self, columns: &Tensor, (cosine, sine): (&Tensor, &Tensor)) -> Tensor {
        columns * cosine - columns.take(&self.index, -1) * sine
    }
}

/// `1 / (v[j] - v[i])`, and 0 where they are the same.
#[track_caller]
fn inverse_gaps(values: &Tensor) -> Tensor {
    let gaps = values.unsqueeze(-2) - values.unsqueeze(-1);
    let same = gaps.eq(&gaps.number(0));
    let safe = select(&same, &gaps.ones_like(), &gaps);
    select(&same, &gaps.zeros_like(), &safe.recip())
}

/// Columns in an order along the last axis.
#[track_caller]
fn ordered(columns: &Tensor, order: &Tensor) -> Tensor {
    let index = order.unsqueeze(-2).broadcast_to(columns.shape());
    columns.take_along(&index, -1)
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
    at_most("eigh", a, size, MAX_JACOBI)?;
    let a = a.unnamed();
    let rounds: Vec<Round> = rounds(size)
        .iter()
        .map(|partner| Round::new(partner))
        .collect();
    let mut rest = (&a + a.t()) * 0.5;
    let mut vectors = with_batch_of(&Tensor::eye(size, a.dtype()), &a);
    for _ in 0..sweeps(size) {
        for round in &rounds {
            let both = rest.take(&round.index, -1).diagonal();
            // Rounding leaves it not quite symmetric; but partners must turn by one angle.
            let both = (&both + both.take(&round.index, -1)) * 0.5;
            let (cosine, sine) = round.angles(&rest.diagonal(), &both);
            let turned = round.turn(&rest, (&cosine, &sine));
            rest = round.turn(&turned.t(), (&cosine, &sine)).t();
            vectors = round.turn(&vectors, (&cosine, &sine));
        }
    }
    let values = rest.diagonal();
    let order = values.argsort(-1, false);
    let values = values.take_along(&order, -1).stop_gradient();
    let vectors = ordered(&vectors, &order).stop_gradient();
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
    at_most("svd", &a, columns, MAX_JACOBI)?;
    let rounds: Vec<Round> = rounds(columns)
        .iter()
        .map(|partner| Round::new(partner))
        .collect();
    let mut u = a.clone();
    let mut v = with_batch_of(&Tensor::eye(columns, a.dtype()), &a);
    for _ in 0..sweeps(columns) {
        for round in &rounds {
            let other = u.take(&round.index, -1);
            let own = (&u * &u).sum(-2);
            let (cosine, sine) = round.angles(&own, &(&u * &other).sum(-2));
            u = round.turn(&u, (&cosine, &sine));
            v = round.turn(&v, (&cosine, &sine));
        }
    }
    let values = (&u * &u).sum(-2).sqrt();
    let order = values.argsort(-1, true);
    let values = values.take_along(&order, -1).stop_gradient();
    let (u, v) = (ordered(&u, &order), ordered(&v, &order).stop_gradient());
    let u = (u / values.unsqueeze(-2)).stop_gradient();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_meets_once_in_a_sweep() {
        for columns in 1..9 {
            let mut met = vec![0; columns * columns];
            for partner in rounds(columns) {
                for (at, other) in partner.iter().enumerate() {
                    assert_eq!(partner[*other], at);
                    met[at * columns + other] += 1;
                }
            }
            for (at, met) in met.iter().enumerate() {
                let (a, b) = (at / columns, at % columns);
                assert!(a == b || *met == 1, "{columns}: {a} {b} {met}");
            }
        }
    }
}
