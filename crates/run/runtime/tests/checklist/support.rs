//! Runtimes and programs for the tests.

use loopwright_backend::{Backend, CompileOptions, backends};
use loopwright_graph::{Array, Binding, Graph, evaluate, parse};
use loopwright_manycore::{Manycore, Settings};
use loopwright_runtime::faults::{FaultyDevice, Operation};
use loopwright_runtime::{
    BatchProgram, Code, CodeOptions, Context, Device, DeviceError, HostDevice, LinkOptions,
    PlainDevice, Routine, Runtime, RuntimeOptions, Scheduler,
};
use loopwright_text::Source;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::time::Duration;
use {loopwright_cc as _, loopwright_gccjit as _, loopwright_interp as _, loopwright_x86 as _};

/// A backend and a scheduler that a test runs on.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub backend: &'static str,
    pub scheduler: Scheduler,
}

/// Writes a test once for every backend and scheduler.
macro_rules! everywhere {
    ($($(#[$attribute:meta])* fn $name:ident($place:ident) $body:block)*) => {
        $(mod $name {
            #[allow(unused_imports)]
            use super::*;
            use crate::support::Place;
            use loopwright_runtime::Scheduler;

            fn test($place: Place) $body

            $(#[$attribute])*
            #[test]
            fn interp_sync() {
                Place { backend: "interp", scheduler: Scheduler::Sync }.run(test);
            }

            $(#[$attribute])*
            #[test]
            fn interp_threads() {
                Place { backend: "interp", scheduler: Scheduler::Threads }.run(test);
            }

            $(#[$attribute])*
            #[test]
            fn cc_sync() {
                Place { backend: "cc", scheduler: Scheduler::Sync }.run(test);
            }

            $(#[$attribute])*
            #[test]
            fn cc_threads() {
                Place { backend: "cc", scheduler: Scheduler::Threads }.run(test);
            }

            $(#[$attribute])*
            #[test]
            fn x86_sync() {
                Place { backend: "x86", scheduler: Scheduler::Sync }.run(test);
            }

            $(#[$attribute])*
            #[test]
            fn x86_threads() {
                Place { backend: "x86", scheduler: Scheduler::Threads }.run(test);
            }

            $(#[$attribute])*
            #[test]
            fn gccjit_sync() {
                Place { backend: "gccjit", scheduler: Scheduler::Sync }.run(test);
            }

            $(#[$attribute])*
            #[test]
            fn gccjit_threads() {
                Place { backend: "gccjit", scheduler: Scheduler::Threads }.run(test);
            }

            $(#[$attribute])*
            #[test]
            fn manycore_sync() {
                Place { backend: "manycore", scheduler: Scheduler::Sync }.run(test);
            }

            $(#[$attribute])*
            #[test]
            fn manycore_threads() {
                Place { backend: "manycore", scheduler: Scheduler::Threads }.run(test);
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
    /// Runs a test here, where the backend can be used. The interpreter always can, `cc` must be there, and on CI all must.
    pub fn run(self, test: fn(Place)) {
        match self.kernel_backend().availability() {
            Ok(()) => test(self),
            Err(why) => {
                let must =
                    ["interp", "cc"].contains(&self.backend) || std::env::var_os("CI").is_some();
                assert!(!must, "{} must be there: {why}", self.backend);
                eprintln!("SKIP: {why}");
            }
        }
    }

    /// Whether it runs a compiler as a process, whose log and results are kept.
    pub fn runs_a_compiler(self) -> bool {
        self.backend == "cc"
    }

    /// Whether compiled code is kept on disk: where a compiler runs, which `manycore` uses, too.
    pub fn keeps_code(self) -> bool {
        ["cc", "manycore"].contains(&self.backend)
    }

    /// Whether devices work in the memory of this process, so that they can read the host's and each other's in place.
    /// `manycore` has memory of its own, in a process of its own.
    pub fn shares_memory(self) -> bool {
        self.backend != "manycore"
    }

    /// Whether parallel loops run on this process's threads: the interpreter runs iterations one by one, and `manycore` has
    /// cores in a process of its own.
    pub fn has_loops_on_the_pool(self) -> bool {
        !["interp", "manycore"].contains(&self.backend)
    }

    pub fn options(self) -> RuntimeOptions {
        RuntimeOptions {
            scheduler: Some(self.scheduler),
            compile: CompileOptions {
                strict: true,
                cache: Some(cache()),
                ..CompileOptions::default()
            },
            ..RuntimeOptions::default()
        }
    }

    pub fn runtime(self) -> Runtime {
        self.runtime_with(self.options())
    }

    /// A runtime with as many devices as options say. `manycore` has as many as it is set to have.
    pub fn runtime_with(self, options: RuntimeOptions) -> Runtime {
        if self.backend != "manycore" || options.devices == NonZero::<usize>::MIN {
            return Runtime::new(options);
        }
        let settings = Settings {
            devices: options.devices.get(),
            ..Settings::from_env().expect("what is set can be read")
        };
        let mut runtime = Runtime::empty(options);
        runtime.add_backend(Backend::device_backend(Manycore::new(settings)));
        runtime
    }

    pub fn kernel_backend(self) -> Backend {
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

/// Code whose kernel has a name of its own, so that a gate can tell it from others.
pub fn compile_named(device: &Device, name: &str, text: &str) -> Code {
    let graph = program(text);
    let program = BatchProgram {
        name,
        graph: &graph,
        options: CodeOptions::default(),
    };
    let batch = device.compile_batch(&[program], |_| true);
    let batch = batch.unwrap_or_else(|error| panic!("{error}"));
    batch.codes()[0].clone().expect("it is kept")
}

/// The results of the reference, by name.
pub fn reference(
    graph: &Graph,
    binding: &Binding,
    inputs: &[(&str, Array)],
) -> Vec<(String, Array)> {
    let inputs: Vec<_> = inputs
        .iter()
        .map(|(name, array)| (graph.find(name).expect("an input"), array.clone()))
        .collect();
    evaluate(graph, binding, &inputs).expect("the reference can do it")
}

/// The kernel that a gate holds up.
pub const HELD: &str = "held";

/// Stands in front of every kernel called [`HELD`]: it waits there until the gate is opened.
///
/// Under the sync scheduler the caller would wait for itself, so there the gate is open from the start.
pub struct Gate {
    open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    /// A gate, and a runtime with so many devices behind it.
    pub fn new(place: Place, options: RuntimeOptions) -> (Arc<Gate>, Runtime) {
        let gate = Arc::new(Gate {
            open: Mutex::new(place.scheduler == Scheduler::Sync),
            opened: Condvar::new(),
        });
        let backend = place.kernel_backend();
        let devices = (0..options.devices.get()).map(|_| {
            let gate = Arc::clone(&gate);
            let device = Arc::new(HostDevice::new(&*backend));
            let device = FaultyDevice::new(device, move |operation| match operation {
                Operation::Launch(HELD) => gate.pass(),
                _ => None,
            });
            Arc::new(device) as Arc<dyn PlainDevice>
        });
        let devices = devices.collect();
        let mut runtime = Runtime::empty(options);
        runtime.add_platform(backend, devices);
        (gate, runtime)
    }

    /// Waits until the gate is open. A test that forgets to open it fails instead of hanging.
    fn pass(&self) -> Option<DeviceError> {
        let open = self.open.lock().expect("no test panics with it");
        let patience = Duration::from_secs(60);
        let (open, _) = self
            .opened
            .wait_timeout_while(open, patience, |open| !*open)
            .expect("no test panics with it");
        (!*open).then(|| DeviceError::Other("the gate was never opened".to_owned()))
    }

    /// Lets all kernels through, from now on.
    pub fn open(&self) {
        *self.open.lock().expect("no test panics with it") = true;
        self.opened.notify_all();
    }
}

/// Gives other threads every chance to do what they must not do.
pub fn let_others_run() {
    for _ in 0..2_000 {
        std::thread::yield_now();
    }
}
