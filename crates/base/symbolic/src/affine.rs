//! Affine forms: the stride of an index and what is left of it.

use std::collections::BTreeMap;

use crate::error::Error;
use crate::expr::{Expr, Symbol};
use crate::range::Bounds;
use crate::sum::{coefficient_and_factors, terms_of};

/// `sum of coefficient * symbol + constant`, where coefficients and constant are free of the symbols.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Affine {
    /// What each symbol is multiplied by; a symbol that does not occur is not in the map.
    pub coefficients: BTreeMap<Symbol, Expr>,
    /// What is left when all the symbols are zero.
    pub constant: Expr,
}

/// The affine form of `expr` in `symbols` together, or `None` if there is none. Other symbols may
/// appear anywhere, coefficients included: in `i`, `i*N + N/2` has the coefficient `N`.
pub fn affine(expr: &Expr, symbols: &[Symbol]) -> Option<Affine> {
    let mut form = Affine {
        coefficients: BTreeMap::new(),
        constant: Expr::constant(0),
    };
    let free = |expr: &Expr| !symbols.iter().any(|symbol| expr.contains(*symbol));
    for term in terms_of(expr) {
        if free(term) {
            form.constant = form.constant.add(term).ok()?;
            continue;
        }
        let (coefficient, factors) = coefficient_and_factors(term);
        let mut bound = None;
        let mut product = Expr::constant(coefficient);
        for factor in factors {
            if free(factor) {
                product = product.mul(factor).ok()?;
            } else if bound.is_none() {
                // Free of nothing and a symbol: it is one of those asked for.
                bound = Some(factor.as_symbol()?);
            } else {
                return None;
            }
        }
        let coefficient = form
            .coefficients
            .entry(bound?)
            .or_insert_with(|| Expr::constant(0));
        *coefficient = coefficient.add(&product).ok()?;
    }
    Some(form)
}

/// The coefficient of `symbol` and the rest.
pub(crate) fn affine_in(expr: &Expr, symbol: Symbol) -> Result<(Expr, Expr), Error> {
    let mut form = affine(expr, &[symbol]).ok_or_else(|| Error::NotAffine {
        expr: expr.clone(),
        symbol,
    })?;
    let coefficient = form
        .coefficients
        .remove(&symbol)
        .unwrap_or_else(|| Expr::constant(0));
    Ok((coefficient, form.constant))
}

/// By how much `expr` grows when `symbol` grows by one: the stride of an index. That it is not the
/// same everywhere, as for `i / 2`, `i % 3` or `i*i`, is the answer [`Error::NotAffine`].
pub fn differentiate(expr: &Expr, symbol: Symbol) -> Result<Expr, Error> {
    Ok(affine_in(expr, symbol)?.0)
}

/// Like [`differentiate`], for symbols within `bounds`: `i % 8` has the stride 1 where `0 <= i < 8`.
pub fn differentiate_within(expr: &Expr, symbol: Symbol, bounds: &Bounds) -> Result<Expr, Error> {
    differentiate(expr, symbol).or_else(|_| differentiate(&expr.simplify(bounds), symbol))
}

/// What is left of an affine `expr` when `symbol` is zero.
pub fn intercept(expr: &Expr, symbol: Symbol) -> Result<Expr, Error> {
    Ok(affine_in(expr, symbol)?.1)
}
