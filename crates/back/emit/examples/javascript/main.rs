//! Prints kernels as JavaScript: a dialect as somebody else's crate would have it.
//!
//! `cargo run -p loopwright-emit --example javascript -- FILE.lwk`
//!
//! The chapter "Add a backend" (`docs/backends.md`) tells how it is made.

mod dialect;
mod ops;

use dialect::JavaScript;
use loopwright_text::Source;
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("name a file of kernels")?;
    let source = Source::new(&file, &std::fs::read_to_string(&file)?);
    let module = loopwright_kernel::parse(&source).map_err(|error| error.render(&source))?;
    print!("{}", loopwright_emit::emit(&module, &JavaScript)?.source);
    Ok(())
}
