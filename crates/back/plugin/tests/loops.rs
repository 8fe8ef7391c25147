//! The conformance suite on a loop backend that is reached through the border: graphs and schedules go over it
//! as text, and arrays by name.

use loopwright_backend::{
    Backend, CompileOptions, Describe, Level, LoopBackend, LoopProgram, LoopResult,
};
use loopwright_ops::evaluate;
use std::path::Path;
use std::sync::OnceLock;

struct Loops;

impl Describe for Loops {
    fn name(&self) -> &str {
        "plugged-loops"
    }
}

impl LoopBackend for Loops {
    fn compile(&self, program: &LoopProgram, _: &CompileOptions) -> LoopResult {
        program.executed_with(evaluate)
    }
}

loopwright_plugin::export_plugin!(loop Loops, 0);

fn make() -> Option<Backend> {
    static BACKEND: OnceLock<Backend> = OnceLock::new();
    let backend = BACKEND.get_or_init(|| {
        // SAFETY: the entry point is the one made above.
        let plugin =
            unsafe { loopwright_plugin::from_entry(loopwright_plugin, Path::new("loops")) };
        let plugin = plugin.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(plugin.backend().level(), Level::Loop);
        plugin.backend().clone()
    });
    Some(backend.clone())
}

loopwright_conformance::conformance_tests!(make());
