//! The binary `loopwright`; see the library.

#![forbid(unsafe_code)]

loopwright_cli::main!();
