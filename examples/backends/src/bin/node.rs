//! Kernels as JavaScript, run by `node`: the example of the emitter, as a device of the command line.
//!
//! `cargo run -p loopwright-example-backends --bin node -- check --device node`

// The dialect and the backend around it.
#[path = "../../../../crates/back/emit/examples/javascript/mod.rs"]
mod javascript;

use javascript::backend::Node;
use loopwright::backend::{Backend, register_backend};

register_backend!(-20, || Backend::kernel_backend(Node));

loopwright_cli::main!();
