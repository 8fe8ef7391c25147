//! Runtimes and programs for the tests.

use loopwright_backend::{CompileOptions, KernelBackend, backends};
use loopwright_graph::{Array, Graph, parse};
use loopwright_runtime::{
    Code, CodeOptions, Context, Device, LinkOptions, Routine, Runtime, RuntimeOptions, Scheduler,
};
use loopwright_text::Source;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use {loopwright_cc as _, loopwright_interp as _};

/// A backend and a scheduler that a test runs on.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub backend: &'static str,
    pub scheduler: Scheduler,
}

/// Writes a test once for every backend and scheduler.
macro_rules! everywhere {
    ($($(#[$attribute:meta])* fn $name:ident($place:ident) $body:block)*) => {
        $($(#[$attribute])* mod $name {
            #[allow(unused_imports)]
            use super::*;
            use crate::support::Place;
            use loopwright_runtime::Scheduler;

            fn test($place: Place) $body

            #[test]
            fn interp_sync() {
                test(Place { backend: "interp", scheduler: Scheduler::Sync });
            }

            #[test]
            fn interp_threads() {
                test(Place { backend: "interp", scheduler: Scheduler::Threads });
            }

            #[test]
            fn cc_sync() {
                test(Place { backend: "cc", scheduler: Scheduler::Sync });
            }

            #[test]
            fn cc_threads() {
                test(Place { backend: "cc", scheduler: Scheduler::Threads });
            }
        })*
    };
}

/// One private directory of compiled code for all tests of this process.
pub fn cache() -> PathBuf {
    static CACHE: OnceLock<tempfile::TempDir> = OnceLock::new();
    let cache = CACHE.get_or_init(|| tempfile::tempdir().expect("a temporary directory"));
    cache.path().join("cache")
}

impl Place {
    pub fn options(self) -> RuntimeOptions {
        RuntimeOptions {
            scheduler: self.scheduler,
            compile: CompileOptions {
                strict: true,
                cache: Some(cache()),
            },
            ..RuntimeOptions::default()
        }
    }

    pub fn runtime(self) -> Runtime {
        Runtime::new(self.options())
    }

    pub fn kernel_backend(self) -> Arc<dyn KernelBackend> {
        let mut known = backends().into_iter();
        known
            .find(|backend| backend.name() == self.backend)
            .expect("the backend is linked in")
    }

    /// The first device of a runtime of its own.
    pub fn device(self) -> Device {
        self.runtime()
            .device(self.backend)
            .expect("it is available")
    }
}

/// A program, whose header is added.
pub fn program(text: &str) -> Graph {
    let text = format!("loopwright program 1\n{text}");
    match parse(&Source::new("test.lw", text)) {
        Ok(graph) => graph,
        Err(error) => panic!("{error:?}"),
    }
}

pub fn compile(device: &Device, name: &str, text: &str) -> Code {
    let code = device.compile(name, &program(text), &CodeOptions::default());
    code.unwrap_or_else(|error| panic!("{error}"))
}

/// Links with all defaults.
pub fn link(context: &Context, code: &Code) -> Routine {
    let routine = context.link(code, &LinkOptions::default());
    routine.unwrap_or_else(|error| panic!("{error}"))
}

/// Writes values that must fit.
pub fn write(context: &Context, name: &str, values: &[f32]) {
    let written = context.write(name, values);
    assert!(
        matches!(written, Ok(true)),
        "`{name}` is written: {written:?}"
    );
}

pub fn read_array(context: &Context, name: &str) -> Array {
    match context.read(name) {
        Ok(Some(array)) => array,
        Ok(None) => panic!("the context has no `{name}`"),
        Err(error) => panic!("{error}"),
    }
}

pub fn read(context: &Context, name: &str) -> Vec<f64> {
    read_array(context, name).to_f64()
}

/// An error's text.
pub fn message<T>(result: Result<T, loopwright_runtime::RuntimeError>) -> String {
    match result {
        Ok(_) => panic!("it works, and should be refused"),
        Err(error) => error.to_string(),
    }
}
