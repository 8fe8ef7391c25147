//! Indices and addresses as sums of products.
//!
//! Index arithmetic is a ring: it wraps, so that any rearrangement gives the same bits. An address is written out as a constant
//! and terms, each a number times values of the function; what two addresses share then shows, and so does how an
//! address moves with a loop.

use loopwright_kernel::Value;
use smallvec::{SmallVec, smallvec};

/// More terms than this are not written out: the product they come from is taken as it is.
const TERMS: usize = 12;
/// More factors than this neither.
const FACTORS: usize = 3;

/// A number times values, which are sorted.
#[derive(PartialEq, Eq, Hash, Debug)]
pub(crate) struct Term {
    pub(crate) factors: SmallVec<[Value; 2]>,
    pub(crate) times: i64,
}

impl Clone for Term {
    fn clone(&self) -> Term {
        Term {
            // Copied at once: a vector's own `clone` goes value by value.
            factors: SmallVec::from_slice(&self.factors),
            times: self.times,
        }
    }
}

impl Term {
    /// What a factor that it has once is multiplied with.
    pub(crate) fn without(&self, factor: Value) -> Linear {
        let mut factors = self.factors.clone();
        factors.retain(|other| *other != factor);
        if factors.is_empty() {
            return Linear::constant(self.times);
        }
        let rest = Term {
            factors,
            times: self.times,
        };
        Linear {
            terms: smallvec![rest],
            constant: 0,
        }
    }
}

/// Terms with different factors, sorted by these.
pub(crate) type Terms = SmallVec<[Term; 4]>;

/// A constant and terms.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Linear {
    pub(crate) terms: Terms,
    pub(crate) constant: i64,
}

impl Linear {
    /// A value that is what it is.
    pub(crate) fn value(value: Value) -> Linear {
        let term = Term {
            factors: smallvec![value],
            times: 1,
        };
        Linear {
            terms: smallvec![term],
            constant: 0,
        }
    }

    /// A number.
    pub(crate) fn constant(constant: i64) -> Linear {
        Linear {
            terms: SmallVec::new(),
            constant,
        }
    }

    fn push(&mut self, term: Term) {
        let at = self
            .terms
            .binary_search_by(|other| other.factors.cmp(&term.factors));
        match at {
            Ok(at) => {
                let times = self.terms[at].times.wrapping_add(term.times);
                match times {
                    0 => drop(self.terms.remove(at)),
                    times => self.terms[at].times = times,
                }
            }
            Err(at) if term.times != 0 => self.terms.insert(at, term),
            Err(_) => {}
        }
    }

    /// The sum.
    pub(crate) fn plus(&self, other: &Linear) -> Linear {
        let mut sum = self.clone();
        sum.add_times(other, 1);
        sum
    }

    /// Adds so many times another.
    pub(crate) fn add_times(&mut self, other: &Linear, by: i64) {
        let constant = other.constant.wrapping_mul(by);
        self.constant = self.constant.wrapping_add(constant);
        for term in &other.terms {
            self.push(Term {
                times: term.times.wrapping_mul(by),
                ..term.clone()
            });
        }
    }

    /// Itself, unless it is too long.
    pub(crate) fn short(self) -> Option<Linear> {
        (self.terms.len() <= TERMS).then_some(self)
    }

    /// So many times it.
    pub(crate) fn times(&self, by: i64) -> Linear {
        let mut product = Linear::constant(self.constant.wrapping_mul(by));
        for term in &self.terms {
            let times = term.times.wrapping_mul(by);
            if times != 0 {
                product.terms.push(Term {
                    times,
                    ..term.clone()
                });
            }
        }
        product
    }

    /// The product; `None` if it is too long.
    pub(crate) fn product(&self, other: &Linear) -> Option<Linear> {
        if self.terms.is_empty() {
            return Some(other.times(self.constant));
        }
        if other.terms.is_empty() {
            return Some(self.times(other.constant));
        }
        let mut product = self.times(other.constant);
        for right in &other.terms {
            for left in &self.terms {
                let mut factors = left.factors.clone();
                factors.extend(right.factors.iter().copied());
                factors.sort_unstable();
                if factors.len() > FACTORS {
                    return None;
                }
                product.push(Term {
                    factors,
                    times: left.times.wrapping_mul(right.times),
                });
            }
            product.push(Term {
                factors: right.factors.clone(),
                times: right.times.wrapping_mul(self.constant),
            });
        }
        (product.terms.len() <= TERMS).then_some(product)
    }

    /// The constant, if there are no terms.
    pub(crate) fn known(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_written_out() {
        let [i, k] = [Value(0), Value(1)].map(Linear::value);
        // (i + 3) * k - 3 * k = i * k
        let sum = i.plus(&Linear::constant(3));
        let product = sum.product(&k).expect("short");
        let rest = product.plus(&k.times(-3));
        assert_eq!(rest, i.product(&k).expect("short"));
        assert_eq!(rest.terms.len(), 1);
        assert_eq!(rest.terms[0].factors.as_slice(), [Value(0), Value(1)]);
    }

    #[test]
    fn nothing_is_left_of_differences() {
        let i = Linear::value(Value(7));
        let nothing = i.plus(&i.times(-1));
        assert_eq!(nothing.known(), Some(0));
    }

    #[test]
    fn arithmetic_wraps() {
        let large = Linear::constant(i64::MAX).plus(&Linear::constant(1));
        assert_eq!(large.known(), Some(i64::MIN));
        assert_eq!(large.times(2).known(), Some(0));
    }
}
