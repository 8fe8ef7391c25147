//! Exact integer index expressions: the arithmetic of sizes, strides and subscripts.
//!
//! An [`Expr`] is a 64-bit integer expression over [`Symbol`]s: sums, products, floor division, modulo,
//! minimum, maximum and comparison. Everything above speaks it: the sizes of a graph's dimensions, the
//! maps of its views, the bounds and strides of a loop tree, the subscripts of a kernel.
//!
//! **Exact.** A result is the mathematical one or an [`Error`]; nothing wraps. Division rounds towards
//! negative infinity and a remainder has the sign of its divisor, for all signs: `-1 / 2` is `-1` and
//! `-1 % 4` is `3`.
//!
//! **Canonical.** Constructors bring expressions into one form as they are built, so `==` is an
//! algebraic test that costs no search: sums are flat and sorted with like terms collected, products are
//! multiplied out while that stays small, divisions by constants shed whole multiples. Rewriting never
//! changes a value; it may define an expression where it was not (`x/y - x/y` is 0). Expressions are
//! limited in depth and size ([`DEPTH_LIMIT`], [`SIZE_LIMIT`]), so that no pass overflows the stack.
//!
//! | question | answer |
//! | --- | --- |
//! | what is it, given the symbols? | [`Expr::evaluate`], [`Expr::substitute`] |
//! | what can it be, given their [`Bounds`]? | [`Expr::range`], [`Expr::simplify`] |
//! | by how much does it grow with a symbol? | [`differentiate`], [`affine`] |
//! | for which value of a symbol does an equation hold? | [`isolate`] |
//! | do all these equations have a solution? | [`unify`], or the [`Contradiction`] and whose it is |
//!
//! ```
//! use loopwright_symbolic::{Bounds, Equation, Expr, Range, Symbol, differentiate, unify};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (i, j, n) = (Symbol(0), Symbol(1), Symbol(2));
//! let names = |symbol: Symbol| ["i", "j", "N"][usize::from(symbol)].to_string();
//!
//! // An index split in two, put together and taken apart again.
//! let index = Expr::symbol(i).mul(&Expr::constant(8))?.add(&Expr::symbol(j))?;
//! assert_eq!(index.display(&names).to_string(), "i*8 + j");
//! assert_eq!(differentiate(&index, i)?, Expr::constant(8));
//! let outer = index.floor_div(&Expr::constant(8))?;
//! assert_eq!(outer.display(&names).to_string(), "i + j / 8");
//! let bounds: Bounds = [(j, Range::extent(8))].into_iter().collect();
//! assert_eq!(outer.simplify(&bounds), Expr::symbol(i));
//!
//! // Sizes solved from what is known, and two places that disagree.
//! let double = Expr::symbol(n).mul(&Expr::constant(2))?;
//! let stated = Equation::new(Expr::symbol(j), double, "the view");
//! let given = Equation::new(Expr::symbol(j), Expr::constant(34), "the input");
//! let solution = unify(&[stated.clone(), given.clone()])?;
//! assert_eq!(solution.get(n), Some(&Expr::constant(17)));
//! let other = Equation::new(Expr::symbol(n), Expr::constant(16), "the command line");
//! let contradiction = unify(&[stated, given, other]).expect_err("2*16 is not 34");
//! assert_eq!(
//!     contradiction.display(&names, &|origin| origin.to_string()).to_string(),
//!     "`j` is 34 according to the input, but 32 according to the view (given the command line)",
//! );
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod affine;
mod canonical;
mod display;
mod error;
mod expr;
mod isolate;
mod range;
mod simplify;
mod sum;
mod unify;

pub use affine::{Affine, affine, differentiate, differentiate_within, intercept};
pub use error::Error;
pub use expr::{Cmp, DEPTH_LIMIT, Expr, ExprKind, SIZE_LIMIT, Symbol};
pub use isolate::isolate;
pub use range::{Bounds, Range};
pub use unify::{Claim, Contradiction, Equation, Residual, Solution, unify, unify_keeping};
