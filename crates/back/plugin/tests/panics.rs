//! A backend of Rust that panics: the panics end at the border, as errors.

use loopwright_backend::{
    Argument, BackendError, CompileOptions, CompileUnit, Describe, Executable, KernelBackend,
    KernelLaunch, Target, Unavailable,
};
use loopwright_compile::Kernels;
use loopwright_kernel::passes::Pipeline;
use loopwright_kernel::{Module, parse};
use loopwright_text::Source;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

struct Panics;

static COMPILES: AtomicBool = AtomicBool::new(false);

impl Describe for Panics {
    fn name(&self) -> &str {
        "panics"
    }

    fn availability(&self) -> Result<(), Unavailable> {
        panic!("is anybody there");
    }
}

impl KernelBackend for Panics {
    fn compile(&self, _: &Module, _: &CompileOptions) -> Result<Arc<dyn Executable>, BackendError> {
        match COMPILES.load(Ordering::Relaxed) {
            true => Ok(Arc::new(PanicsToo)),
            false => panic!("no compiler {}", 7),
        }
    }
}

struct PanicsToo;

impl Executable for PanicsToo {
    unsafe fn run(&self, _: &str, arguments: &mut [Argument<'_>]) -> Result<(), BackendError> {
        if let [Argument::Write(bytes)] = arguments {
            bytes[0] = 1;
        }
        std::panic::panic_any(7);
    }

    fn code(&self) -> String {
        panic!("no code");
    }
}

impl Drop for PanicsToo {
    fn drop(&mut self) {
        panic!("it does not want to go");
    }
}

loopwright_plugin::export_plugin!(Panics, 3);

const TEXT: &str = "loopwright kernel 1\n\nkernel @k(%a: write ptr<global, u8>) {\n}\n";

#[test]
fn panics_are_errors() {
    // SAFETY: the entry point is the one made above.
    let plugin =
        unsafe { loopwright_plugin::from_entry(loopwright_plugin, Path::new("panics.so")) };
    let plugin = plugin.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((plugin.name(), plugin.priority()), ("panics", 3));
    let why = plugin.backend().availability().expect_err("it panics");
    assert!(why.broken, "{why}");
    assert_eq!(why.reason, "it panicked: is anybody there");

    let module = parse(&Source::new("k.lwk", TEXT)).expect("the kernel is right");
    let compile = || compiled(plugin.backend(), &module);
    let error = compile().err().expect("it panics").to_string();
    let expected = "plug-in `panics` (panics.so) failed on kernel `k`:\nit panicked: no compiler 7";
    assert_eq!(error, expected);

    COMPILES.store(true, Ordering::Relaxed);
    let code = compile().unwrap_or_else(|error| panic!("{error}"));
    let mut bytes = [0u8; 4];
    // SAFETY: the kernel stays within its arguments, as the one that it was made from does.
    let error = unsafe { code.run("k", &mut [Argument::Write(&mut bytes)]) };
    let error = error.expect_err("it panics").to_string();
    assert_eq!(
        error,
        "kernel `k` failed: plug-in `panics` (panics.so): it panicked"
    );
    assert_eq!(bytes, [1, 0, 0, 0], "memory is the caller's own");
    assert_eq!(code.code(), TEXT, "without code, the program is shown");

    // Calls that do not fit are refused on this side.
    let calls: [(&str, &mut [Argument<'_>], &str); 3] = [
        ("l", &mut [], "the module has no kernel of that name"),
        ("k", &mut [], "it takes 1 arguments, not 0"),
        (
            "k",
            &mut [Argument::Read(&[0; 4])],
            "it writes to `a`, which is read-only",
        ),
    ];
    for (kernel, arguments, expected) in calls {
        // SAFETY: the kernel stays within its arguments, as the one that it was made from does.
        let error = unsafe { code.run(kernel, arguments) }
            .expect_err(expected)
            .to_string();
        assert!(error.contains(expected), "{error}");
    }
    // And it is given back without harm.
    drop(code);
}

/// Compiles a module that has no program around it.
fn compiled(
    backend: &loopwright_backend::Backend,
    module: &Module,
) -> Result<Arc<dyn Executable>, BackendError> {
    let source = Source::new("none.lw", "loopwright program 1\noutput x = 1\n");
    let graph = loopwright_graph::parse(&source).expect("the program is right");
    let kernels = Kernels::new(&graph, None, &Target::SCALAR, &Pipeline::standard());
    let plan = kernels.expect("it becomes a kernel").plan;
    let launch = KernelLaunch {
        backend: None,
        module: module.clone(),
        params: Vec::new(),
    };
    let unit = CompileUnit {
        launch: &launch,
        plan: &plan,
    };
    let code = backend.compile(&[unit], &CompileOptions::default())?.pop();
    Ok(code.expect("one for each unit"))
}
