//! A kernel backend in less than sixty lines: kernels as C, through the machine's C compiler.
//!
//! `cargo run -p loopwright-example-backends --bin tiny_cc -- devices`
use libloading::Library;
use loopwright::backend::*;
use loopwright::kernel::Module;
use loopwright_emit::{C, emit};
use loopwright_native::{Entry, Made, NativeExecutable};
use std::{process::Command, sync::Arc};

const FLAGS: &str =
    "-O1 -w -shared -fPIC -fwrapv -fno-strict-aliasing -fno-builtin -ffp-contract=off";

struct TinyCc;

register_backend!(-20, || Backend::kernel_backend(TinyCc));

impl Describe for TinyCc {
    fn name(&self) -> &str {
        "tiny-cc"
    }
    fn capabilities(&self) -> Capabilities {
        Capabilities::without_groups()
    }
}

fn failed(error: impl ToString) -> BackendError {
    BackendError::Run {
        kernel: "the module".to_owned(),
        reason: error.to_string(),
    }
}

impl KernelBackend for TinyCc {
    fn compile(
        &self,
        module: &Module,
        _: &CompileOptions,
    ) -> Result<Arc<dyn Executable>, BackendError> {
        let emitted = emit(module, &C).map_err(failed)?;
        let directory = tempfile::tempdir().map_err(failed)?; // private, and gone at the end
        let [source, library] = ["module.c", "module.so"].map(|file| directory.path().join(file));
        std::fs::write(&source, &emitted.source).map_err(failed)?;
        let mut cc = Command::new("cc");
        cc.args(FLAGS.split(' ')).arg("-o");
        cc.args([&library, &source]).arg("-lm");
        let said = cc.output().map_err(failed)?;
        if !said.status.success() {
            return Err(failed(String::from_utf8_lossy(&said.stderr)));
        }
        // SAFETY: just compiled, in a private directory, from text that runs nothing when it is loaded.
        let library = Arc::new(unsafe { Library::new(&library) }.map_err(failed)?);
        let find = |name: &str| {
            let kernel = emitted.kernels.iter().find(|kernel| kernel.name == name);
            let symbol = &kernel.ok_or_else(|| failed("it is not there"))?.symbol;
            // SAFETY: the text has a function of this type under that name.
            let entry = unsafe { library.get::<Entry>(symbol.as_bytes()) };
            entry.map(|entry| *entry).map_err(failed)
        };
        let mut made = Made::default();
        made.code.clone_from(&emitted.source);
        let code = NativeExecutable::new(self.name(), module, find, made, library.clone())?;
        Ok(Arc::new(code))
    }
}

loopwright_cli::main!();
