//! What can go wrong with an index expression.

use std::fmt;

use crate::{Expr, Symbol};

/// Why an expression could not be built, evaluated or solved.
///
/// Names of symbols live outside this crate, so the plain `Display` writes `s0`, `s1`, …;
/// [`Error::display`] writes the same message with the caller's names.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.display(&default_name))]
#[non_exhaustive]
pub enum Error {
    /// A value, coefficient or constant does not fit in 64 bits.
    Overflow {
        /// The part that overflows, as it was asked for (not in canonical form).
        expr: Expr,
    },
    /// A division or modulo by zero.
    DivisionByZero,
    /// Evaluation met a symbol without a value.
    Unbound(Symbol),
    /// The expression is nested deeper than the passes over it may recurse.
    TooDeep {
        /// The deepest nesting allowed.
        limit: u32,
    },
    /// The expression, written out, has more nodes than is reasonable for an index.
    TooLarge {
        /// The largest number of nodes allowed.
        limit: u32,
    },
    /// The expression is not `coefficient * symbol + rest` with both free of the symbol.
    NotAffine {
        /// The expression.
        expr: Expr,
        /// The symbol in question.
        symbol: Symbol,
    },
    /// An equation was to be solved for a symbol that cancels out of it or never was in it.
    Absent {
        /// The symbol.
        symbol: Symbol,
        /// `lhs - rhs` of the equation.
        expr: Expr,
    },
    /// Solving `coefficient * symbol == value` needs a division that leaves a remainder, or that
    /// cannot be shown to leave none.
    Indivisible {
        /// The symbol.
        symbol: Symbol,
        /// What the symbol is multiplied by.
        coefficient: Expr,
        /// What the product has to be.
        value: Expr,
    },
}

impl Error {
    /// The message, with symbols named by `names`.
    pub fn display<'a>(&'a self, names: &'a dyn Fn(Symbol) -> String) -> impl fmt::Display + 'a {
        fmt::from_fn(move |f| match self {
            Error::Overflow { expr } => {
                write!(f, "`{}` does not fit in 64 bits", expr.display(names))
            }
            Error::DivisionByZero => write!(f, "division by zero"),
            Error::Unbound(symbol) => write!(f, "symbol `{}` has no value", names(*symbol)),
            Error::TooDeep { limit } => {
                write!(f, "the expression is nested deeper than {limit} levels")
            }
            Error::TooLarge { limit } => write!(f, "the expression has more than {limit} nodes"),
            Error::NotAffine { expr, symbol } => write!(
                f,
                "`{}` is not affine in `{}`",
                expr.display(names),
                names(*symbol)
            ),
            Error::Absent { symbol, expr } => write!(
                f,
                "`{}` does not occur in `{} == 0`",
                names(*symbol),
                expr.display(names)
            ),
            Error::Indivisible {
                symbol,
                coefficient,
                value,
            } => {
                let product = Expr::uncanonical_product(&Expr::symbol(*symbol), coefficient);
                write!(
                    f,
                    "`{} == {}`",
                    product.display(names),
                    value.display(names)
                )?;
                if coefficient.as_const().is_some() && value.as_const().is_some() {
                    write!(f, " has no integer solution")
                } else {
                    write!(f, " has no solution that is known to be an integer")
                }
            }
        })
    }
}

/// How a symbol is written when nobody supplied names.
pub(crate) fn default_name(symbol: Symbol) -> String {
    format!("s{}", symbol.0)
}
