//! The kernel IR, the one low-level language that both front ends produce and all backends take.
//!
//! A [`Module`] is structured, typed, C-level code. It is written with a [`Builder`] or read from
//! its [text form](text), checked by the [validator](valid), which stands between every producer
//! and every consumer, and then rewritten by passes, interpreted, or emitted by a backend.
//!
//! ```
//! use loopwright_kernel::{parse, print};
//! use loopwright_text::Source;
//!
//! let text = "\
//! loopwright kernel 1
//!
//! kernel @first(%a: read ptr<global, f32>, %b: write ptr<global, f32>) {
//!   %zero: i64 = const 0
//!   %x: f32 = load %a[%zero]
//!   store %b[%zero], %x
//! }
//! ";
//! let module = parse(&Source::new("first.lwk", text)).unwrap();
//! assert_eq!(print(&module), text);
//!
//! // What is wrong is said at its place.
//! let source = Source::new("first.lwk", text.replace("%x: f32", "%x: f16"));
//! let error = parse(&source).unwrap_err();
//! assert_eq!(error.message, "the result %x must be f32 or a vector of f32, not f16");
//! assert!(error.render(&source).contains("first.lwk:5:3"));
//! ```

#![forbid(unsafe_code)]

mod append;
mod argument;
pub mod builder;
mod callers;
mod compact;
pub mod interpret;
pub mod ir;
mod live;
mod operands;
pub mod passes;
pub mod text;
pub mod valid;

pub use argument::Argument;
pub use builder::Builder;
pub use callers::mark_callers;
pub use ir::*;
pub use live::live_ranges;
pub use text::{parse, print};
pub use valid::{ValidationError, validate};
