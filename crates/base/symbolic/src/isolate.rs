//! Solving one equation for one symbol.

use crate::affine::affine_in;
use crate::error::Error;
use crate::expr::{Expr, Symbol};
use crate::simplify::divide_term;
use crate::sum::terms_of;

/// The value of `symbol` for which `lhs == rhs`.
///
/// The answer is exact: where `coefficient * symbol == value` does not divide without remainder for
/// all values of the other symbols, the answer is [`Error::Indivisible`]; where the equation is not
/// affine in the symbol, [`Error::NotAffine`]; where the symbol cancels out, [`Error::Absent`]. A
/// coefficient that is symbolic is taken not to be zero.
pub fn isolate(lhs: &Expr, rhs: &Expr, symbol: Symbol) -> Result<Expr, Error> {
    Ok(isolate_root(&lhs.sub(rhs)?, symbol)?.value)
}

/// Where an expression is zero.
pub(crate) struct Root {
    /// What the symbol is multiplied by; never the constant zero.
    pub(crate) coefficient: Expr,
    /// The value of the symbol.
    pub(crate) value: Expr,
}

/// The value of `symbol` for which `difference` is zero.
pub(crate) fn isolate_root(difference: &Expr, symbol: Symbol) -> Result<Root, Error> {
    let (coefficient, rest) = affine_in(difference, symbol)?;
    // A message about `i*2 == 17` reads better than one about `i*-2 == -17`.
    let (coefficient, product) = match coefficient.as_const() {
        Some(0) => {
            return Err(Error::Absent {
                symbol,
                expr: difference.clone(),
            });
        }
        Some(..0) => (coefficient.neg()?, rest),
        _ => (coefficient, rest.neg()?),
    };
    match divide_exactly(&product, &coefficient)? {
        Some(value) => Ok(Root { coefficient, value }),
        None => Err(Error::Indivisible {
            symbol,
            coefficient,
            value: product,
        }),
    }
}

/// `value / divisor`, if every term of `value` is a multiple of `divisor`, or `value` is one as a whole.
fn divide_exactly(value: &Expr, divisor: &Expr) -> Result<Option<Expr>, Error> {
    if let Some(divisor) = divisor.as_const() {
        match divisor {
            1 => return Ok(Some(value.clone())),
            -1 => return value.neg().map(Some),
            _ => {}
        }
    }
    if terms_of(divisor).len() > 1 {
        return divide_sums(value, divisor);
    }
    let mut quotient = Expr::constant(0);
    for term in terms_of(value) {
        match divide_term(term, divisor)? {
            Some(part) => quotient = quotient.add(&part)?,
            None => return Ok(None),
        }
    }
    Ok(Some(quotient))
}

/// Long division of sums by the leading term. Each step removes the leading term of what is left, and
/// no quotient is longer than the dividend in the cases worth solving, so that bounds the steps.
fn divide_sums(value: &Expr, divisor: &Expr) -> Result<Option<Expr>, Error> {
    let lead = &terms_of(divisor)[0];
    let (mut quotient, mut rest) = (Expr::constant(0), value.clone());
    for _ in 0..terms_of(value).len() {
        let Some(part) = divide_term(&terms_of(&rest)[0], lead)? else {
            return Ok(None);
        };
        quotient = quotient.add(&part)?;
        rest = rest.sub(&part.mul(divisor)?)?;
        if rest.as_const() == Some(0) {
            return Ok(Some(quotient));
        }
    }
    Ok((rest.as_const() == Some(0)).then_some(quotient))
}
