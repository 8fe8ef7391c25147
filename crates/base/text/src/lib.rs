//! What all text forms share: a source, positions in it, errors that underline the line, and one lexer.
//!
//! Program files, schedules, loop trees and kernels are each parsed by the crate that owns them;
//! they share the token language defined here, so that a reader who knows one form can read the
//! others, and so that every error looks the same.
//!
//! ```
//! use loopwright_text::{Cursor, Source, Token};
//!
//! let source = Source::new("demo.lw", "dim i = 8");
//! let mut cursor = Cursor::new(&source).unwrap();
//! cursor.expect_word("dim").unwrap();
//! let (name, _span) = cursor.expect_name("a dimension's name").unwrap();
//! assert_eq!(name, "i");
//! cursor.expect(Token::Equals).unwrap();
//! let error = cursor.expect_name("a symbol's name").unwrap_err();
//! assert!(error.render(&source).contains("dim i = 8"));
//! ```

#![forbid(unsafe_code)]

mod cursor;
mod diagnostic;
mod escape;
mod lexer;
mod source;

pub use cursor::Cursor;
pub use diagnostic::{Diagnostic, Label};
pub use escape::{escape, escape_line, is_obeyed};
pub use lexer::{Token, lex};
pub use source::{Source, Span};
