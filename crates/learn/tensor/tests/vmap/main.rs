//! Mapped functions against a loop over the examples, on the interpreter and on machine code.

#[path = "../numeric/mod.rs"]
mod numeric;

mod composed;
mod kinds;
mod mistakes;
