//! Index expressions as sums: `c0 + c1 * v1 + c2 * v2 + …`, in 64 bits that wrap.
//!
//! Arithmetic modulo 2^64 is a ring, so every way of writing a sum has the same value, overflow or
//! not. What a sum *would be* in unbounded integers is another matter: only if that certainly fits
//! in 64 bits may it be divided or compared term by term.

use crate::ir::Value;
use smallvec::{SmallVec, smallvec};

/// A value and its factor.
pub(super) type Term = (Value, i64);

/// A sum of values times constants.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Linear {
    /// Values with their factors, none of them 0, in the order in which the values are defined:
    /// what is defined further out comes first and can leave the loop with its part of the sum.
    pub terms: SmallVec<[Term; 3]>,
    /// The constant.
    pub constant: i64,
}

/// The smallest and the largest that a value can be.
pub(super) type Range = (i64, i64);

/// The range of a value nothing is known of.
pub(super) const FULL: Range = (i64::MIN, i64::MAX);

impl Linear {
    pub fn constant(constant: i64) -> Linear {
        Linear {
            terms: SmallVec::new(),
            constant,
        }
    }

    pub fn term(value: Value, factor: i64) -> Linear {
        Linear {
            terms: match factor {
                0 => SmallVec::new(),
                _ => smallvec![(value, factor)],
            },
            constant: 0,
        }
    }

    /// `self + factor * other`; `order` tells when each value is defined.
    pub fn add(&self, other: &Linear, factor: i64, order: impl Fn(Value) -> u32) -> Linear {
        let mut terms = SmallVec::new();
        let (mut left, mut right) = (&self.terms[..], &other.terms[..]);
        loop {
            let (value, sum) = match (left, right) {
                ([], []) => break,
                ([(a, x), rest @ ..], [(b, y), others @ ..]) if a == b => {
                    (left, right) = (rest, others);
                    (*a, x.wrapping_add(y.wrapping_mul(factor)))
                }
                ([(a, x), rest @ ..], [(b, _), ..]) if order(*a) < order(*b) => {
                    left = rest;
                    (*a, *x)
                }
                ([(a, x), rest @ ..], []) => {
                    left = rest;
                    (*a, *x)
                }
                (_, [(b, y), others @ ..]) => {
                    right = others;
                    (*b, y.wrapping_mul(factor))
                }
            };
            if sum != 0 {
                terms.push((value, sum));
            }
        }
        Linear {
            terms,
            constant: self
                .constant
                .wrapping_add(other.constant.wrapping_mul(factor)),
        }
    }

    /// The sum times a constant.
    pub fn scaled(&self, factor: i64) -> Linear {
        let mut scaled = Linear {
            terms: SmallVec::from_slice(&self.terms),
            constant: self.constant.wrapping_mul(factor),
        };
        scaled.terms.retain(|(_, term)| {
            *term = term.wrapping_mul(factor);
            *term != 0
        });
        scaled
    }

    /// The range in unbounded integers.
    pub fn bounds(&self, range: impl Fn(Value) -> Range) -> (i128, i128) {
        let mut bounds = (i128::from(self.constant), i128::from(self.constant));
        for &(value, factor) in &self.terms {
            let (low, high) = range(value);
            let [low, high] = [low, high].map(|end| i128::from(end) * i128::from(factor));
            // Each product is below 2^126; there are far too few terms to overflow 128 bits, but
            // saturating keeps a wrong answer impossible.
            bounds.0 = bounds.0.saturating_add(low.min(high));
            bounds.1 = bounds.1.saturating_add(low.max(high));
        }
        bounds
    }

    /// Quotient and remainder by a positive constant, as sums: `self == divisor * quotient +
    /// remainder`, where every term goes as a whole to one or the other.
    pub fn split(&self, divisor: i64) -> (Linear, Linear) {
        let (mut quotient, mut remainder) = (Linear::default(), Linear::default());
        for &(value, factor) in &self.terms {
            if factor % divisor == 0 {
                quotient.terms.push((value, factor / divisor));
            } else {
                remainder.terms.push((value, factor));
            }
        }
        quotient.constant = self.constant.div_euclid(divisor);
        remainder.constant = self.constant.rem_euclid(divisor);
        (quotient, remainder)
    }
}

/// The range, if it fits in 64 bits.
pub(super) fn fits((low, high): (i128, i128)) -> Option<Range> {
    Some((i64::try_from(low).ok()?, i64::try_from(high).ok()?))
}
