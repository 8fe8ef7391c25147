//! Simplification that knows the ranges of symbols.

use crate::error::Error;
use crate::expr::{Cmp, Expr, ExprKind};
use crate::range::{Bounds, Range};
use crate::sum::{Sum, coefficient_and_factors, divide_coefficients, gcd, terms_of};
use loopwright_threads::interrupt::unwind_if_asked;

impl Expr {
    /// The expression in a simpler form that has the same value for all values within `bounds`.
    ///
    /// Divisions and remainders by constants lose the part that is too small to matter
    /// (`(a*8 + b) / 8` is `a` where `0 <= b < 8`), and whatever the ranges decide is decided. Where a
    /// rewrite does not fit in 64 bits the expression stays as it is.
    pub fn simplify(&self, bounds: &Bounds) -> Expr {
        unwind_if_asked();
        simplified(self, bounds).unwrap_or_else(|_| self.clone())
    }
}

/// The only value `expr` can have. A division by what might be zero has none: `0 / N` stays.
fn only_value(expr: &Expr, bounds: &Bounds) -> Option<Expr> {
    let value = expr.range(bounds).as_const()?;
    never_divides_by_zero(expr, bounds).then(|| Expr::constant(value))
}

fn never_divides_by_zero(expr: &Expr, bounds: &Bounds) -> bool {
    let divides = match expr.kind() {
        _ if expr.is_polynomial() => return true,
        ExprKind::FloorDiv(_, b) | ExprKind::Mod(_, b) => b.range(bounds).contains(0),
        _ => false,
    };
    !divides
        && expr
            .kind()
            .children()
            .all(|child| never_divides_by_zero(child, bounds))
}

fn simplified(expr: &Expr, bounds: &Bounds) -> Result<Expr, Error> {
    if let Some(value) = only_value(expr, bounds) {
        return Ok(value);
    }
    if expr.is_polynomial() {
        // Nothing to decide, only symbols that have but one value.
        return expr.substitute(&|symbol| bounds.get(symbol).as_const().map(Expr::constant));
    }
    let rebuilt = expr.rebuild(&mut |child| Ok(child.simplify(bounds)))?;
    if rebuilt.is_polynomial() {
        return Ok(rebuilt);
    }
    let rewritten = rewrite(&rebuilt, bounds)?;
    if rewritten.is_same_node(expr) {
        return Ok(rewritten);
    }
    Ok(only_value(&rewritten, bounds).unwrap_or(rewritten))
}

/// One step at the top of an expression whose operands are simple.
fn rewrite(expr: &Expr, bounds: &Bounds) -> Result<Expr, Error> {
    match expr.kind() {
        ExprKind::Const(_) | ExprKind::Symbol(_) | ExprKind::Mul(_) => Ok(expr.clone()),
        ExprKind::Add(terms) => join_remainders(expr, terms),
        ExprKind::FloorDiv(a, b) => match b.as_const() {
            Some(divisor) if divisor > 0 => match drop_low_part(a, divisor, bounds)? {
                Some(parts) => {
                    let quotient = parts
                        .high
                        .floor_div(&Expr::constant(divisor / parts.unit))?;
                    simplified(&quotient, bounds)
                }
                None => Ok(expr.clone()),
            },
            Some(_) => Ok(expr.clone()),
            None => match divide_by_nonzero(a, b, bounds)? {
                Some((whole, rest)) => {
                    let quotient = Expr::simplify(&rest.floor_div(b)?, bounds);
                    whole.add(&quotient)
                }
                None => Ok(expr.clone()),
            },
        },
        ExprKind::Mod(a, b) => {
            // A quotient that cannot vary leaves a difference.
            let nonzero = !b.range(bounds).contains(0);
            if let Some(quotient) = a.floor_div(b)?.range(bounds).as_const().filter(|_| nonzero) {
                return a.sub(&b.mul(&Expr::constant(quotient))?);
            }
            match b.as_const() {
                Some(divisor) if divisor > 0 => match drop_low_part(a, divisor, bounds)? {
                    Some(parts) => {
                        let high = parts.high.modulo(&Expr::constant(divisor / parts.unit))?;
                        let high = simplified(&high, bounds)?;
                        high.mul(&Expr::constant(parts.unit))?.add(&parts.low)
                    }
                    None => Ok(expr.clone()),
                },
                Some(_) => Ok(expr.clone()),
                None => match divide_by_nonzero(a, b, bounds)? {
                    Some((_, rest)) => Ok(Expr::simplify(&rest.modulo(b)?, bounds)),
                    None => Ok(expr.clone()),
                },
            }
        }
        ExprKind::Min(a, b) => Ok(match difference_range(a, b, bounds) {
            Range { hi: Some(..=0), .. } => a.clone(),
            Range { lo: Some(0..), .. } => b.clone(),
            _ => expr.clone(),
        }),
        ExprKind::Max(a, b) => Ok(match difference_range(a, b, bounds) {
            Range { hi: Some(..=0), .. } => b.clone(),
            Range { lo: Some(0..), .. } => a.clone(),
            _ => expr.clone(),
        }),
        ExprKind::Compare(cmp, a, b) => {
            let difference = difference_range(a, b, bounds);
            let decided = match (cmp, difference) {
                (
                    Cmp::Lt,
                    Range {
                        hi: Some(..=-1), ..
                    },
                ) => Some(true),
                (Cmp::Lt, Range { lo: Some(0..), .. }) => Some(false),
                (Cmp::Le, Range { hi: Some(..=0), .. }) => Some(true),
                (Cmp::Le, Range { lo: Some(1..), .. }) => Some(false),
                (Cmp::Eq, range) if !range.contains(0) => Some(false),
                (Cmp::Ne, range) if !range.contains(0) => Some(true),
                (Cmp::Lt | Cmp::Le | Cmp::Eq | Cmp::Ne, _) => None,
            };
            Ok(decided.map_or_else(|| expr.clone(), |holds| Expr::constant(i64::from(holds))))
        }
    }
}

/// The range of `a - b`, whose ends tell how the two compare. A difference whose coefficients do not
/// fit decides nothing.
fn difference_range(a: &Expr, b: &Expr, bounds: &Bounds) -> Range {
    match a.sub(b) {
        Ok(difference) => difference.range(bounds),
        Err(_) => Range::UNBOUNDED,
    }
}

/// `dividend == unit * high + low` with `0 <= low < unit`.
struct Parts {
    unit: i64,
    high: Expr,
    low: Expr,
}

/// Finds a `unit` that divides `divisor` such that the terms of the dividend that are no multiples of it
/// add up to less than it. The low part then never carries into the quotient.
fn drop_low_part(dividend: &Expr, divisor: i64, bounds: &Bounds) -> Result<Option<Parts>, Error> {
    let terms = terms_of(dividend);
    let mut units: Vec<i64> = terms
        .iter()
        .filter(|term| term.as_const().is_none())
        .map(|term| {
            let coefficient = coefficient_and_factors(term).0.unsigned_abs();
            // It divides `divisor`, which is positive, so it fits.
            gcd(coefficient, divisor.unsigned_abs()) as i64
        })
        .filter(|unit| *unit > 1)
        .collect();
    units.sort_unstable();
    units.dedup();
    for unit in units.into_iter().rev() {
        let (mut high, mut low) = (
            Sum::with_capacity(terms.len()),
            Sum::with_capacity(terms.len()),
        );
        for term in terms {
            let multiple = term.as_const().is_none() && coefficient_and_factors(term).0 % unit == 0;
            let part = if multiple { &mut high } else { &mut low };
            part.push(term, 1);
        }
        let asked = || dividend.kind().clone();
        let (high, low) = (high.finish(asked)?, low.finish(asked)?);
        let carry = low
            .floor_div(&Expr::constant(unit))?
            .range(bounds)
            .as_const();
        if let Some(carry) = carry {
            let (high, _) = divide_coefficients(&high, unit)?;
            let carry = Expr::constant(carry);
            return Ok(Some(Parts {
                unit,
                high: high.add(&carry)?,
                low: low.sub(&carry.mul(&Expr::constant(unit))?)?,
            }));
        }
    }
    Ok(None)
}

/// `(whole, rest)` with `dividend == divisor * whole + rest` and a `whole` that is not zero, for a
/// symbolic divisor that is known not to be zero.
fn divide_by_nonzero(
    dividend: &Expr,
    divisor: &Expr,
    bounds: &Bounds,
) -> Result<Option<(Expr, Expr)>, Error> {
    if divisor.range(bounds).contains(0) {
        return Ok(None);
    }
    if dividend == divisor {
        return Ok(Some((Expr::constant(1), Expr::constant(0))));
    }
    let mut whole = Expr::constant(0);
    for term in terms_of(dividend) {
        if let Some(quotient) = divide_term(term, divisor)? {
            whole = whole.add(&quotient)?;
        }
    }
    if whole.as_const() == Some(0) {
        return Ok(None);
    }
    let rest = dividend.sub(&whole.mul(divisor)?)?;
    Ok(Some((whole, rest)))
}

/// The quotient of two terms, where the division is exact for every value of the symbols.
pub(crate) fn divide_term(term: &Expr, divisor: &Expr) -> Result<Option<Expr>, Error> {
    if term.as_const() == Some(0) {
        return Ok(Some(Expr::constant(0)));
    }
    let split = |expr: &Expr| match expr.as_const() {
        Some(value) => (value, Vec::new()),
        None => {
            let (coefficient, factors) = coefficient_and_factors(expr);
            (coefficient, factors.to_vec())
        }
    };
    let ((a, mut factors), (b, divisors)) = (split(term), split(divisor));
    if b == 0 || a.checked_rem(b) != Some(0) {
        return Ok(None);
    }
    for divisor in &divisors {
        match factors.iter().position(|factor| factor == divisor) {
            Some(i) => drop(factors.remove(i)),
            None => return Ok(None),
        }
    }
    let mut quotient = Expr::constant(a / b);
    for factor in &factors {
        quotient = quotient.mul(factor)?;
    }
    Ok(Some(quotient))
}

/// Rewrites `k*x - k*c*(x / c)` as `k*(x % c)` where that leaves fewer terms.
fn join_remainders(expr: &Expr, terms: &[Expr]) -> Result<Expr, Error> {
    for term in terms {
        let (coefficient, [factor]) = coefficient_and_factors(term) else {
            continue;
        };
        let ExprKind::FloorDiv(x, c) = factor.kind() else {
            continue;
        };
        let Some(scale) = c.as_const().and_then(|c| {
            (coefficient.checked_rem(c)? == 0)
                .then(|| coefficient / c)?
                .checked_neg()
        }) else {
            continue;
        };
        // The zero `k*(x % c) + k*c*(x / c) - k*x`, with x/c written as it stands.
        let scale = Expr::constant(scale);
        let joined = expr
            .sub(term)?
            .sub(&scale.mul(x)?)?
            .add(&scale.mul(&x.modulo(c)?)?)?;
        if terms_of(&joined).len() < terms.len() {
            return match joined.kind() {
                ExprKind::Add(terms) => join_remainders(&joined, terms),
                _ => Ok(joined),
            };
        }
    }
    Ok(expr.clone())
}
