//! Tests of what is below the backend's interface: commands, transfers, crashes, processes.

mod commands;
mod crashes;
mod lifetime;
mod loading;
mod transfers;

use crate::machine::Machine;
use crate::settings::Settings;
use crate::{Manycore, toolchain::Built};
use loopwright_backend::Describe;
use loopwright_emit::{Emitted, EmittedKernel};
use std::sync::Arc;
use std::time::Duration;

/// Small accelerators, compiled for quickly.
fn settings() -> Settings {
    let mut settings = Settings {
        cores: 4,
        memory: 16 << 20,
        ..Settings::default()
    };
    settings.compiler.optimisation = "1".to_owned();
    settings
}

/// The backend, or `None` and a printed line where there is no compiler. On CI there must be one.
fn backend(settings: Settings) -> Option<Manycore> {
    let backend = Manycore::new(settings);
    match backend.availability() {
        Ok(()) => Some(backend),
        Err(why) if std::env::var_os("CI").is_none() => {
            eprintln!("SKIP: {why}");
            None
        }
        Err(why) => panic!("CI must have a C compiler: {why}"),
    }
}

/// An accelerator by itself.
fn machine(settings: Settings) -> Option<(Arc<Machine>, Manycore)> {
    let backend = backend(settings.clone())?;
    let firmware = backend.shared().firmware().expect("the firmware compiles");
    let counters = Arc::clone(&backend.shared().counters);
    let machine = Machine::start("test", &firmware, &settings, counters).expect("it starts");
    Some((Arc::new(machine), backend))
}

/// An image of C text with one entry, `lw_kernel_test`, whose body this is.
fn image(backend: &Manycore, body: &str) -> Built {
    let source = format!(
        "#include <stdint.h>\n\
         typedef struct lw_runtime {{\n\
             void *context;\n\
             void (*parallel_for)(void *, int64_t, void (*)(void *, int64_t, int64_t), void *);\n\
             int64_t global_size[3], local_size[3];\n\
         }} lw_runtime;\n\
         static void each(void *p, int64_t begin, int64_t stop) {{\n\
             for (int64_t i = begin; i < stop; i++) ((uint64_t *)p)[i] = (uint64_t)__builtin_frame_address(0);\n\
         }}\n\
         void lw_kernel_test(void *const *args, const lw_runtime *rt) {{ {body} }}\n"
    );
    let emitted = Emitted {
        source,
        kernels: vec![EmittedKernel {
            name: "test".to_owned(),
            symbol: "lw_kernel_test".to_owned(),
        }],
        math: Vec::new(),
    };
    let toolchain = backend.shared().toolchain().expect("there is a compiler");
    toolchain.kernels(&emitted, None).expect("it compiles")
}

/// Loads such an image; gives the numbers of the program and its entry.
fn load(machine: &Machine, backend: &Manycore, body: &str) -> (u64, u64) {
    let program = machine
        .load(&image(backend, body).image)
        .expect("it is loaded");
    let entry = machine
        .entry(program, "lw_kernel_test")
        .expect("it has that entry");
    (program, entry)
}

/// A short limit for kernels that do not end.
const SHORT: Duration = Duration::from_secs(1);
