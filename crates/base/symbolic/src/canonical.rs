//! The canonical form: what each arithmetic constructor does so that equal expressions look equal.
//!
//! A sum holds its terms sorted by their factors, each with its coefficient collected; a product
//! holds its factors sorted; products are distributed over sums as long as that stays small. Divisions
//! by a constant take whole multiples out and cancel common factors, so that `(8*i + j) / 8` is
//! `i + j / 8` and `(4*i + 3) % 8` is `4*(i % 2) + 3`.
//!
//! Rewriting never changes a value. It can make an expression defined where the one that was asked for
//! was not: `x/y - x/y` is 0 even where `y` is.

use std::slice;

use crate::error::Error;
use crate::expr::{Cmp, Expr, ExprKind, floor_div, floor_mod};
use crate::sum::{
    Sum, coefficient_and_factors, common_divisor, constant_term, divide_coefficients,
    remainder_by_constant, term, terms_of,
};

/// The most terms that multiplying out two sums may produce. Sizes and strides have a handful of
/// terms; a product of larger sums stays a product, which bounds the work.
const EXPANSION_LIMIT: usize = 32;

/// The most operands of a nested `min` or `max` that are compared pair by pair.
const PAIRWISE_LIMIT: usize = 8;

/// Splits `expr` into `divisor * quotient + rest`, where every coefficient of `rest` is smaller than
/// `divisor` and keeps its sign, and the constant of `rest` is not negative.
fn split_by_constant(expr: &Expr, divisor: i64) -> Result<(Expr, Expr), Error> {
    let count = terms_of(expr).len();
    let (mut quotient, mut rest) = (Sum::with_capacity(count), Sum::with_capacity(count));
    for term in terms_of(expr) {
        match term.as_const() {
            Some(value) => {
                quotient.push_constant(floor_div(i128::from(value), i128::from(divisor)));
                rest.push_constant(i128::from(floor_mod(value, divisor)));
            }
            None => {
                let (coefficient, _) = coefficient_and_factors(term);
                if coefficient / divisor != 0 {
                    quotient.push_with(coefficient / divisor, term);
                }
                if coefficient % divisor != 0 {
                    rest.push_with(coefficient % divisor, term);
                }
            }
        }
    }
    let asked = || expr.kind().clone();
    Ok((quotient.finish(asked)?, rest.finish(asked)?))
}

/// `expr / divisor` for `divisor > 0`.
fn floor_div_by_constant(expr: &Expr, divisor: i64) -> Result<Expr, Error> {
    if divisor == 1 {
        return Ok(expr.clone());
    }
    let (whole, rest) = split_by_constant(expr, divisor)?;
    if rest.as_const().is_some() {
        return Ok(whole);
    }
    // floor((g*s + k) / (g*d)) == floor((s + floor(k/g)) / d)
    let common = common_divisor(&rest, divisor.unsigned_abs()) as i64;
    let (dividend, divisor) = if common > 1 {
        (divide_coefficients(&rest, common)?.0, divisor / common)
    } else {
        (rest, divisor)
    };
    let constant = constant_term(&dividend);
    let quotient = match terms_of(&dividend) {
        [single] | [single, _] if terms_of(&dividend).len() == 1 || constant != 0 => {
            match single.kind() {
                // floor((floor(x / b) + k) / d) == floor((x + k*b) / (b*d))
                ExprKind::FloorDiv(x, b) => {
                    let merged = b
                        .as_const()
                        .filter(|b| *b > 0)
                        .and_then(|b| Some((b.checked_mul(divisor)?, b.checked_mul(constant)?)));
                    match merged {
                        Some((divisor, shift)) => Some(floor_div_by_constant(
                            &x.add(&Expr::constant(shift))?,
                            divisor,
                        )?),
                        None => None,
                    }
                }
                // floor((x % (d*m)) / d) == floor(x / d) % m
                ExprKind::Mod(x, m) if constant == 0 => match m.as_const() {
                    Some(m) if m > 0 && m <= divisor => Some(Expr::constant(0)),
                    Some(m) if m > 0 && m % divisor == 0 => {
                        let quotient = floor_div_by_constant(x, divisor)?;
                        Some(modulo_by_constant(&quotient, m / divisor)?)
                    }
                    _ => None,
                },
                _ => None,
            }
        }
        _ => None,
    };
    let quotient = match quotient {
        Some(quotient) => quotient,
        None => Expr::node(ExprKind::FloorDiv(dividend, Expr::constant(divisor)))?,
    };
    whole.add(&quotient)
}

/// `(k, x)` for a term `k*(x % m)` that leaves the same remainder as `k*x` because `divisor`
/// divides `k*m`.
fn redundant_remainder(term: &Expr, divisor: i64) -> Option<(i64, &Expr)> {
    let (coefficient, factors) = coefficient_and_factors(term);
    let (x, m) = remainder_by_constant(factors)?;
    let multiple = i128::from(coefficient) * i128::from(m);
    (multiple % i128::from(divisor) == 0).then_some((coefficient, x))
}

/// `expr % divisor` for `divisor > 0`.
pub(crate) fn modulo_by_constant(expr: &Expr, divisor: i64) -> Result<Expr, Error> {
    if divisor == 1 {
        return Ok(Expr::constant(0));
    }
    let (_, rest) = split_by_constant(expr, divisor)?;
    if rest.as_const().is_some() {
        return Ok(rest);
    }
    if terms_of(&rest)
        .iter()
        .any(|term| redundant_remainder(term, divisor).is_some())
    {
        let mut sum = Sum::with_capacity(terms_of(&rest).len());
        for term in terms_of(&rest) {
            match redundant_remainder(term, divisor) {
                Some((coefficient, x)) => sum.push(x, coefficient),
                None => sum.push(term, 1),
            }
        }
        return modulo_by_constant(&sum.finish(|| rest.kind().clone())?, divisor);
    }
    // (g*s + g*q + k) % (g*d) == g*((s + q) % d) + k, for 0 <= k < g
    let common = common_divisor(&rest, divisor.unsigned_abs()) as i64;
    let (dividend, left_over) = if common > 1 {
        divide_coefficients(&rest, common)?
    } else {
        (rest, 0)
    };
    let divisor = divisor / common;
    let remainder = match dividend.kind() {
        ExprKind::Mod(_, m) if m.as_const().is_some_and(|m| 0 < m && m <= divisor) => dividend,
        _ => Expr::node(ExprKind::Mod(dividend, Expr::constant(divisor)))?,
    };
    let mut sum = Sum::with_capacity(1);
    sum.push(&remainder, common);
    sum.push_constant(i128::from(left_over));
    sum.finish(|| expr.kind().clone())
}

impl Expr {
    /// `self + other`.
    pub fn add(&self, other: &Expr) -> Result<Expr, Error> {
        if self.as_const() == Some(0) {
            return Ok(other.clone());
        }
        if other.as_const() == Some(0) {
            return Ok(self.clone());
        }
        let mut sum = Sum::with_capacity(terms_of(self).len() + terms_of(other).len());
        sum.push(self, 1);
        sum.push(other, 1);
        sum.finish(|| ExprKind::Add(vec![self.clone(), other.clone()]))
    }

    /// `self - other`.
    pub fn sub(&self, other: &Expr) -> Result<Expr, Error> {
        if other.as_const() == Some(0) {
            return Ok(self.clone());
        }
        let mut sum = Sum::with_capacity(terms_of(self).len() + terms_of(other).len());
        sum.push(self, 1);
        sum.push(other, -1);
        sum.finish(|| {
            let negated = Expr::uncanonical_product(other, &Expr::constant(-1));
            ExprKind::Add(vec![self.clone(), negated])
        })
    }

    /// `-self`.
    pub fn neg(&self) -> Result<Expr, Error> {
        self.scale(-1)
    }

    /// `self * factor`.
    fn scale(&self, factor: i64) -> Result<Expr, Error> {
        if factor == 1 {
            return Ok(self.clone());
        }
        let asked = || ExprKind::Mul(vec![self.clone(), Expr::constant(factor)]);
        if let (None, [single]) = (self.as_const(), terms_of(self)) {
            let (coefficient, factors) = coefficient_and_factors(single);
            let coefficient = coefficient.checked_mul(factor);
            return term(coefficient.ok_or_else(|| Expr::overflow(asked()))?, factors);
        }
        let mut sum = Sum::with_capacity(terms_of(self).len());
        sum.push(self, factor);
        sum.finish(asked)
    }

    /// `self * other`.
    pub fn mul(&self, other: &Expr) -> Result<Expr, Error> {
        if let Some(factor) = self.as_const() {
            return other.scale(factor);
        }
        if let Some(factor) = other.as_const() {
            return self.scale(factor);
        }
        let asked = || ExprKind::Mul(vec![self.clone(), other.clone()]);
        let (left, right) = (terms_of(self), terms_of(other));
        let expand = left.len() * right.len() <= EXPANSION_LIMIT;
        let (left, right) = if expand {
            (left, right)
        } else {
            (slice::from_ref(self), slice::from_ref(other))
        };
        let mut sum = Sum::with_capacity(left.len() * right.len());
        for a in left {
            for b in right {
                match (a.as_const(), b.as_const()) {
                    (Some(a), _) => sum.push(b, a),
                    (_, Some(b)) => sum.push(a, b),
                    (None, None) => {
                        let ((a, a_factors), (b, b_factors)) =
                            (coefficient_and_factors(a), coefficient_and_factors(b));
                        let coefficient =
                            a.checked_mul(b).ok_or_else(|| Expr::overflow(asked()))?;
                        let mut factors = Vec::with_capacity(a_factors.len() + b_factors.len());
                        factors.extend_from_slice(a_factors);
                        factors.extend_from_slice(b_factors);
                        factors.sort();
                        let product = term(coefficient, &factors)?;
                        // A sum too large to expand is itself a factor here; it must not be flattened.
                        sum.push_with(coefficient, &product);
                    }
                }
            }
        }
        sum.finish(asked)
    }

    /// `self / other`, rounded towards negative infinity.
    pub fn floor_div(&self, other: &Expr) -> Result<Expr, Error> {
        let keep = || Expr::node(ExprKind::FloorDiv(self.clone(), other.clone()));
        let Some(divisor) = other.as_const() else {
            return keep();
        };
        if let Some(value) = self.as_const() {
            if divisor == 0 {
                return Err(Error::DivisionByZero);
            }
            return i64::try_from(floor_div(i128::from(value), i128::from(divisor)))
                .map(Expr::constant)
                .map_err(|_| Expr::overflow(ExprKind::FloorDiv(self.clone(), other.clone())));
        }
        match divisor {
            0 => Err(Error::DivisionByZero),
            -1 => self.neg(),
            1.. => floor_div_by_constant(self, divisor),
            // a / -c == -a / c, where the negation fits.
            _ => match (divisor.checked_neg(), self.neg()) {
                (Some(positive), Ok(negated)) => floor_div_by_constant(&negated, positive),
                _ => keep(),
            },
        }
    }

    /// `self / other`, rounded towards positive infinity.
    pub fn ceil_div(&self, other: &Expr) -> Result<Expr, Error> {
        // For the usual positive constant the sum reads better than a double negation.
        match (self.as_const(), other.as_const()) {
            (None, Some(divisor)) if divisor > 0 => {
                self.add(&Expr::constant(divisor - 1))?.floor_div(other)
            }
            (Some(value), Some(divisor)) if divisor != 0 => {
                i64::try_from(-floor_div(-i128::from(value), i128::from(divisor)))
                    .map(Expr::constant)
                    .map_err(|_| Expr::overflow(ExprKind::FloorDiv(self.clone(), other.clone())))
            }
            _ => self.neg()?.floor_div(other)?.neg(),
        }
    }

    /// `self - other * floor(self / other)`: for a positive divisor, 0 to `other - 1`.
    pub fn modulo(&self, other: &Expr) -> Result<Expr, Error> {
        let keep = || Expr::node(ExprKind::Mod(self.clone(), other.clone()));
        let Some(divisor) = other.as_const() else {
            return match self.kind() {
                ExprKind::Mod(_, inner) if inner == other => Ok(self.clone()),
                _ => keep(),
            };
        };
        if divisor == 0 {
            return Err(Error::DivisionByZero);
        }
        if let Some(value) = self.as_const() {
            return Ok(Expr::constant(floor_mod(value, divisor)));
        }
        if divisor > 0 {
            return modulo_by_constant(self, divisor);
        }
        // a % -c == -(-a % c), where the negation fits.
        match (divisor.checked_neg(), self.neg()) {
            (Some(positive), Ok(negated)) => modulo_by_constant(&negated, positive)?.neg(),
            _ => keep(),
        }
    }

    /// The smaller of two.
    pub fn min(&self, other: &Expr) -> Result<Expr, Error> {
        extremum(self, other, Extremum::Min)
    }

    /// The larger of two.
    pub fn max(&self, other: &Expr) -> Result<Expr, Error> {
        extremum(self, other, Extremum::Max)
    }

    /// 1 if the comparison of `a` with `b` holds, otherwise 0.
    ///
    /// The canonical form compares sums without negative terms: `i - N < 0` is `i < N`, and
    /// `2*i <= 7` is `i < 4`.
    pub fn compare(cmp: Cmp, a: &Expr, b: &Expr) -> Result<Expr, Error> {
        let outcome = |holds| Ok(Expr::constant(i64::from(holds)));
        if let (Some(a), Some(b)) = (a.as_const(), b.as_const()) {
            return outcome(cmp.holds(a, b));
        }
        let keep = || Expr::node(ExprKind::Compare(cmp, a.clone(), b.clone()));
        // Where the difference does not fit, the comparison still stands as it was written.
        let Ok(difference) = a.sub(b) else {
            return keep();
        };
        if let Some(difference) = difference.as_const() {
            return outcome(cmp.holds(difference, 0));
        }
        let common = common_divisor(&difference, 0) as i64;
        if common <= 0 {
            return keep();
        }
        let constant = constant_term(&difference);
        let (cmp, difference) = match cmp {
            Cmp::Eq | Cmp::Ne => {
                let (divided, left_over) = divide_coefficients(&difference, common)?;
                if left_over != 0 {
                    return outcome(cmp == Cmp::Ne);
                }
                let (leading, _) = coefficient_and_factors(&terms_of(&divided)[0]);
                let divided = if leading < 0 {
                    divided.neg()
                } else {
                    Ok(divided)
                };
                match divided {
                    Ok(divided) => (cmp, divided),
                    Err(_) => return keep(),
                }
            }
            Cmp::Lt | Cmp::Le => {
                // g*s + k < 0 holds exactly where s + floor(k/g) < 0 does; d <= 0 is d - 1 < 0.
                let strict = if cmp == Cmp::Le {
                    constant.checked_sub(1)
                } else {
                    Some(constant)
                };
                let Some(strict) = strict else { return keep() };
                let (divided, _) = divide_coefficients(&difference, common)?;
                let terms = divided.sub(&Expr::constant(constant_term(&divided)))?;
                // `s - 1 < 0` reads better as `s <= 0`.
                match strict.div_euclid(common) {
                    -1 => (Cmp::Le, terms),
                    strict => (Cmp::Lt, terms.add(&Expr::constant(strict))?),
                }
            }
        };
        let count = terms_of(&difference).len();
        let (mut left, mut right) = (Sum::with_capacity(count), Sum::with_capacity(count));
        for term in terms_of(&difference) {
            let positive = match term.as_const() {
                Some(value) => value > 0,
                None => coefficient_and_factors(term).0 > 0,
            };
            if positive {
                left.push(term, 1);
            } else {
                right.push(term, -1);
            }
        }
        let asked = || ExprKind::Compare(cmp, a.clone(), b.clone());
        match (left.finish(asked), right.finish(asked)) {
            (Ok(left), Ok(right)) => Expr::node(ExprKind::Compare(cmp, left, right)),
            _ => keep(),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Extremum {
    Min,
    Max,
}

/// Flattens nested extrema of the same kind, drops operands that another one always beats, and nests
/// the rest again in sorted order.
fn extremum(a: &Expr, b: &Expr, which: Extremum) -> Result<Expr, Error> {
    let mut operands = Vec::with_capacity(2);
    for mut expr in [a, b] {
        // The first operand of a canonical extremum is never of the same kind.
        while let (ExprKind::Min(first, rest), Extremum::Min)
        | (ExprKind::Max(first, rest), Extremum::Max) = (expr.kind(), which)
        {
            operands.push(first.clone());
            expr = rest;
        }
        operands.push(expr.clone());
    }
    operands.sort();
    operands.dedup();
    if operands.len() <= PAIRWISE_LIMIT {
        let mut i = 0;
        'operands: while i < operands.len() {
            for j in 0..operands.len() {
                // A difference that does not fit in 64 bits decides nothing.
                let difference = operands[i]
                    .sub(&operands[j])
                    .ok()
                    .and_then(|d| d.as_const());
                let beaten = difference.is_some_and(|difference| match which {
                    Extremum::Min => difference > 0,
                    Extremum::Max => difference < 0,
                });
                if i != j && beaten {
                    operands.remove(i);
                    continue 'operands;
                }
            }
            i += 1;
        }
    }
    let mut operands = operands.into_iter().rev();
    let mut result = operands.next().unwrap_or_else(|| a.clone());
    for operand in operands {
        result = Expr::node(match which {
            Extremum::Min => ExprKind::Min(operand, result),
            Extremum::Max => ExprKind::Max(operand, result),
        })?;
    }
    Ok(result)
}
