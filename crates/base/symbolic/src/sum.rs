//! Sums of terms: how they are taken apart, and how they are put together with like terms collected.

use std::slice;

use smallvec::SmallVec;

use crate::canonical::modulo_by_constant;
use crate::error::Error;
use crate::expr::{Expr, ExprKind, floor_div, floor_mod};

/// The coefficient of a term and its other factors, sorted. A constant is no term.
pub(crate) fn coefficient_and_factors(term: &Expr) -> (i64, &[Expr]) {
    match term.kind() {
        ExprKind::Mul(factors) => match factors.split_last() {
            Some((last, rest)) => match last.as_const() {
                Some(coefficient) => (coefficient, rest),
                None => (1, factors),
            },
            None => (1, factors),
        },
        _ => (1, slice::from_ref(term)),
    }
}

/// The terms of an expression seen as a sum.
pub(crate) fn terms_of(expr: &Expr) -> &[Expr] {
    match expr.kind() {
        ExprKind::Add(terms) => terms,
        _ => slice::from_ref(expr),
    }
}

/// The term with these sorted factors and this coefficient.
pub(crate) fn term(coefficient: i64, factors: &[Expr]) -> Result<Expr, Error> {
    match factors {
        _ if coefficient == 0 => Ok(Expr::constant(0)),
        [] => Ok(Expr::constant(coefficient)),
        [single] if coefficient == 1 => Ok(single.clone()),
        _ => {
            let mut all = Vec::with_capacity(factors.len() + 1);
            all.extend_from_slice(factors);
            if coefficient != 1 {
                all.push(Expr::constant(coefficient));
            }
            Expr::node(ExprKind::Mul(all))
        }
    }
}

/// A sum under construction: terms in any order, like terms not yet collected.
pub(crate) struct Sum {
    /// The full coefficient, and a term of which only the factors count. Index expressions rarely have more than four terms; these need no allocation.
    terms: SmallVec<[(i128, Expr); 4]>,
    constant: i128,
    /// Even 128 bits were not enough.
    overflowed: bool,
}

impl Sum {
    /// An empty sum with room for that many terms.
    pub(crate) fn with_capacity(terms: usize) -> Sum {
        Sum {
            terms: SmallVec::with_capacity(terms),
            constant: 0,
            overflowed: false,
        }
    }

    /// Adds a number.
    pub(crate) fn push_constant(&mut self, value: i128) {
        match self.constant.checked_add(value) {
            Some(sum) => self.constant = sum,
            None => self.overflowed = true,
        }
    }

    /// Adds `scale * expr`.
    pub(crate) fn push(&mut self, expr: &Expr, scale: i64) {
        match expr.kind() {
            ExprKind::Const(value) => self.push_constant(i128::from(*value) * i128::from(scale)),
            ExprKind::Add(terms) => {
                for term in terms {
                    self.push(term, scale);
                }
            }
            _ => {
                let (coefficient, _) = coefficient_and_factors(expr);
                self.terms
                    .push((i128::from(coefficient) * i128::from(scale), expr.clone()));
            }
        }
    }

    /// Adds the factors of `term` with another coefficient.
    pub(crate) fn push_with(&mut self, coefficient: i64, term: &Expr) {
        self.terms.push((i128::from(coefficient), term.clone()));
    }

    /// Sorts, collects like terms and wraps up. `asked` is what an overflow is reported for.
    pub(crate) fn finish(mut self, asked: impl Fn() -> ExprKind) -> Result<Expr, Error> {
        self.collect_like_terms();
        while self.join_quotient_and_remainder()? {
            self.collect_like_terms();
        }
        let overflow = || Expr::overflow(asked());
        if self.overflowed {
            return Err(overflow());
        }
        let mut terms = Vec::with_capacity(self.terms.len() + 1);
        for (wide, expr) in &self.terms {
            let coefficient = i64::try_from(*wide).map_err(|_| overflow())?;
            let (own, factors) = coefficient_and_factors(expr);
            terms.push(if own == coefficient {
                expr.clone()
            } else {
                term(coefficient, factors)?
            });
        }
        let constant = i64::try_from(self.constant).map_err(|_| overflow())?;
        if terms.is_empty() {
            return Ok(Expr::constant(constant));
        }
        if constant != 0 {
            terms.push(Expr::constant(constant));
        }
        match terms.pop() {
            Some(single) if terms.is_empty() => Ok(single),
            Some(last) => {
                terms.push(last);
                Expr::node(ExprKind::Add(terms))
            }
            None => Ok(Expr::constant(0)),
        }
    }

    fn collect_like_terms(&mut self) {
        self.terms.sort_by(|(_, a), (_, b)| {
            coefficient_and_factors(a)
                .1
                .cmp(coefficient_and_factors(b).1)
        });
        let overflowed = &mut self.overflowed;
        self.terms.dedup_by(|(later, a), (kept, b)| {
            let alike = coefficient_and_factors(a).1 == coefficient_and_factors(b).1;
            if alike {
                match kept.checked_add(*later) {
                    Some(sum) => *kept = sum,
                    None => *overflowed = true,
                }
            }
            alike
        });
        self.terms.retain(|(coefficient, _)| *coefficient != 0);
    }

    /// Undoes the splitting of one index by a constant `c`: `k*(x % c) + k*c*(x / c)` is `k*x`, and
    /// `k*(x % c) + k*c*((x / c) % d)` is `k*(x % (c*d))`. Says whether it found such a pair.
    fn join_quotient_and_remainder(&mut self) -> Result<bool, Error> {
        for low in 0..self.terms.len() {
            let (scale, expr) = &self.terms[low];
            let Some((x, c)) = remainder_by_constant(coefficient_and_factors(expr).1) else {
                continue;
            };
            let Some(wanted) = scale.checked_mul(i128::from(c)) else {
                continue;
            };
            let mut quotient = None;
            for high in 0..self.terms.len() {
                let (coefficient, candidate) = &self.terms[high];
                let (_, [atom]) = coefficient_and_factors(candidate) else {
                    continue;
                };
                if high == low || *coefficient != wanted {
                    continue;
                }
                let inner = match atom.kind() {
                    ExprKind::FloorDiv(..) => atom,
                    ExprKind::Mod(inner, _) => inner,
                    // Whatever else stands there, `x / c` is none of them unless it simplified.
                    _ => continue,
                };
                let quotient = match &mut quotient {
                    Some(quotient) => &*quotient,
                    none => &*none.insert(x.floor_div(&Expr::constant(c))?),
                };
                if inner != quotient {
                    continue;
                }
                let whole = match remainder_by_constant(slice::from_ref(atom)) {
                    None => x.clone(),
                    Some((_, d)) => match c.checked_mul(d) {
                        Some(cd) => modulo_by_constant(x, cd)?,
                        None => continue,
                    },
                };
                let Ok(scale) = i64::try_from(*scale) else {
                    continue;
                };
                self.terms.swap_remove(low.max(high));
                self.terms.swap_remove(low.min(high));
                self.push(&whole, scale);
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// `(x, c)` if the factors are the single factor `x % c`.
pub(crate) fn remainder_by_constant(factors: &[Expr]) -> Option<(&Expr, i64)> {
    match factors {
        [factor] => match factor.kind() {
            ExprKind::Mod(x, c) => Some((x, c.as_const()?)),
            _ => None,
        },
        _ => None,
    }
}

/// The greatest common divisor; that of 0 and `b` is `b`.
pub(crate) fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The greatest common divisor of the coefficients of all terms but the constant, and of `start`.
pub(crate) fn common_divisor(expr: &Expr, start: u64) -> u64 {
    terms_of(expr)
        .iter()
        .fold(start, |divisor, term| match term.as_const() {
            Some(_) => divisor,
            None => gcd(divisor, coefficient_and_factors(term).0.unsigned_abs()),
        })
}

/// The constant term of an expression.
pub(crate) fn constant_term(expr: &Expr) -> i64 {
    terms_of(expr).last().and_then(Expr::as_const).unwrap_or(0)
}

/// `floor(expr / divisor)` for a `divisor` that divides every coefficient but the constant one,
/// and what is left over of the constant.
pub(crate) fn divide_coefficients(expr: &Expr, divisor: i64) -> Result<(Expr, i64), Error> {
    let mut sum = Sum::with_capacity(terms_of(expr).len());
    let mut left_over = 0;
    for term in terms_of(expr) {
        match term.as_const() {
            Some(value) => {
                sum.push_constant(floor_div(i128::from(value), i128::from(divisor)));
                left_over = floor_mod(value, divisor);
            }
            None => sum.push_with(coefficient_and_factors(term).0 / divisor, term),
        }
    }
    Ok((sum.finish(|| expr.kind().clone())?, left_over))
}
