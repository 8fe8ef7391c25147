//! The binary `loopwright`; see the library.

loopwright_cli::main!();
