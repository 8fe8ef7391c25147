//! What C-like languages share: the text that a [`Dialect`] has unless it says otherwise.
//!
//! It is ISO C99 and assumes nothing more, so that a language which is C with a few words added gets by
//! with those words. Narrow floats are held as their bits and widened where they are computed with, so
//! moving one never changes it. `bool` is a byte of 0 or 1. A vector is a struct of lanes, with a function
//! for each operation on it. Signed arithmetic that may overflow is done in the unsigned type.
//!
//! Two things are taken for granted that C99 leaves open and every compiler does: an integer that does
//! not fit its new signed type wraps, and shifting a negative number right keeps its sign.

pub(crate) mod convert;
pub(crate) mod declare;
pub(crate) mod entry;
pub(crate) mod lanes;
pub(crate) mod scalar_ops;
pub(crate) mod tiles;
pub(crate) mod types;
pub(crate) mod words;

use crate::dialect::{Dialect, Linkage, Refusal, Spelled};
use crate::expression::{Expr, Precedence};

/// A function of the prelude. `signature` is its result, name and parameters.
pub(crate) fn helper<D: Dialect + ?Sized>(dialect: &D, signature: &str, body: &str) -> String {
    let linkage = dialect.linkage(Linkage::Helper);
    format!("{linkage}{signature} {{ {body} }}")
}

/// A comparison.
pub(crate) fn compared(operator: &str, left: &Expr, right: &Expr) -> Expr {
    Expr::infix(operator, Precedence::Comparison, left, right)
}

/// The refusal of what only some machines have.
pub(crate) fn lacks<T, D: Dialect + ?Sized>(dialect: &D, what: &str, lacking: &str) -> Spelled<T> {
    Err(Refusal(format!(
        "it {what}, and {} has {lacking}",
        dialect.name()
    )))
}
