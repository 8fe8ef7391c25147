//! The backend `@name@`: loop trees in, something that runs on host memory out.
//!
//! It is a skeleton. It is found and refuses every program; the tests in `tests/conformance.rs` say so one by
//! one. Start in `compile`.

use loopwright_backend::{
    Backend, BackendError, Capabilities, CompileOptions, Describe, Hardware, LoopBackend,
    LoopProgram, LoopResult, MathAccuracy, Target, Unavailable, register_backend,
};
use loopwright_ops::DType;

/// The backend's name: `--device @name@`.
pub const NAME: &str = "@name@";

@registration@

/// The backend.
#[derive(Clone, Copy, Debug, Default)]
pub struct @Type@;

impl Describe for @Type@ {
    fn name(&self) -> &str {
        NAME
    }

    /// What it runs on.
    fn hardware(&self) -> Hardware {
        Hardware::Cpu
    }

    /// Whether it can be used here. Say what is missing and what would help.
    fn availability(&self) -> Result<(), Unavailable> {
        Ok(())
    }

    /// What schedules should aim at: vectors, threads, caches.
    fn target(&self) -> Target {
        Target::SCALAR
    }

    /// What it can do. Take away what it lacks: that is refused before `compile` sees it, and the rows of
    /// the conformance suite about it do not apply.
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            dtypes: DType::ALL.to_vec(),
            // How far `exp`, `sin` and the like may be off, if they are not ours.
            math: MathAccuracy::exact(),
            ..Capabilities::without_groups()
        }
    }
}

impl LoopBackend for @Type@ {
    /// The first thing that works is `program.executed_with(loopwright_ops::evaluate)`: the loops are run
    /// for you, and you compute the elements. From there on, walk `program.tree()` yourself and make code of
    /// it: a closure over the memory is code, and so is whatever implements `LoopCode`.
    fn compile(&self, program: &LoopProgram, _options: &CompileOptions) -> LoopResult {
        Err(BackendError::Unsupported {
            backend: NAME.to_owned(),
            kernel: program.name().to_owned(),
            reason: "not written yet: start in src/lib.rs".to_owned(),
        })
    }
}
