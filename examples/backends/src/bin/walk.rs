//! A loop backend in fifteen lines: it walks the loops of the tree and computes element by element.
//!
//! `cargo run -p loopwright-example-backends --bin walk -- devices`
use loopwright::{backend::*, ops::evaluate};

struct Walk;

register_backend!(-20, || Backend::loop_backend(Walk));

impl Describe for Walk {
    fn name(&self) -> &str {
        "walk"
    }
}

impl LoopBackend for Walk {
    fn compile(&self, program: &LoopProgram, _: &CompileOptions) -> LoopResult {
        program.executed_with(evaluate)
    }
}

loopwright_cli::main!();
