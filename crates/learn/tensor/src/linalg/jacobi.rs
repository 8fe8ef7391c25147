//! Jacobi's rotations, written out.
//!
//! A sweep rotates every pair of columns once. It has rounds, as a tournament has, in each of which every
//! column meets another one, and all pairs of a round are rotated at once.

use super::with_batch_of;
use crate::node::Tensor;
use crate::ops::select;

/// The most columns of matrices whose rotations are written out: those of [`eigh`](super::eigh) and
/// [`svd`](super::svd) in functions that are traced or mapped.
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

/// Columns in an order along the last axis.
#[track_caller]
fn ordered(columns: &Tensor, order: &Tensor) -> Tensor {
    let index = order.unsqueeze(-2).broadcast_to(columns.shape());
    columns.take_along(&index, -1)
}

/// The eigenvalues of symmetric matrices, ascending, and their eigenvectors.
#[track_caller]
pub(super) fn eigh(a: &Tensor, size: usize) -> (Tensor, Tensor) {
    let rounds: Vec<Round> = rounds(size)
        .iter()
        .map(|partner| Round::new(partner))
        .collect();
    let mut rest = (a + a.t()) * 0.5;
    let mut vectors = with_batch_of(&Tensor::eye(size, a.dtype()), a);
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
    (values.take_along(&order, -1), ordered(&vectors, &order))
}

/// Left vectors, singular values, descending, and right vectors, of matrices with at least as many rows as
/// columns.
#[track_caller]
pub(super) fn svd(a: &Tensor, columns: usize) -> (Tensor, Tensor, Tensor) {
    let rounds: Vec<Round> = rounds(columns)
        .iter()
        .map(|partner| Round::new(partner))
        .collect();
    let mut u = a.clone();
    let mut v = with_batch_of(&Tensor::eye(columns, a.dtype()), a);
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
    let values = values.take_along(&order, -1);
    let u = ordered(&u, &order) / values.unsqueeze(-2);
    (u, values, ordered(&v, &order))
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
