//! The command line with this backend linked in.
//!
//! `cargo run -p @package@ --example cli -- devices`

use @crate@ as _;

loopwright_cli::main!();
