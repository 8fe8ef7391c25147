//! The suite that every backend passes.

mod harness;

use loopwright_backend::Backend;
use loopwright_gccjit::GccJit;

/// Compiled at a level that keeps these tests short; `random.rs` has some at the default.
fn make() -> Option<Backend> {
    harness::available(GccJit::new().with_optimisation(1)).map(Backend::kernel_backend)
}

loopwright_conformance::conformance_tests!(make());
