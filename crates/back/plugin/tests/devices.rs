//! The conformance suite on the accelerator as a plug-in: memory, transfers and launches go over the border.
#![cfg(target_os = "linux")]

mod build;

use loopwright_backend::{
    Backend, BackendError, Capabilities, CompileOptions, Describe, DeviceBackend, DeviceCode,
    Hardware, Level, PlainDevice, Target, Unavailable,
};
use loopwright_conformance::{CheckOptions, Group, Kit};
use loopwright_kernel::Module;
use loopwright_manycore::{Manycore, Settings};
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// A small accelerator, compiled for quickly, under a name that is free.
struct Plugged(Manycore);

impl Plugged {
    fn new() -> Plugged {
        let mut settings = Settings {
            cores: 4,
            ..Settings::default()
        };
        settings.compiler.optimisation = "0".to_owned();
        Plugged(Manycore::new(settings))
    }
}

impl Describe for Plugged {
    fn name(&self) -> &str {
        "plugged-manycore"
    }

    fn hardware(&self) -> Hardware {
        self.0.hardware()
    }

    fn availability(&self) -> Result<(), Unavailable> {
        self.0.availability()
    }

    fn target(&self) -> Target {
        self.0.target()
    }

    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }
}

impl DeviceBackend for Plugged {
    fn compile(
        &self,
        module: &Module,
        options: &CompileOptions,
    ) -> Result<Arc<dyn DeviceCode>, BackendError> {
        self.0.compile(module, options)
    }

    fn devices(&self) -> Vec<Arc<dyn PlainDevice>> {
        self.0.devices()
    }
}

loopwright_plugin::export_plugin!(device Plugged::new(), 0);

/// The backend, or nothing where it cannot be used, which is printed. On CI there must be a compiler for it.
fn available(backend: &Backend) -> Option<Backend> {
    match backend.availability() {
        Ok(()) => Some(backend.clone()),
        Err(why) if std::env::var_os("CI").is_none() => {
            eprintln!("SKIP: {why}");
            None
        }
        Err(why) => panic!("CI must have a C compiler: {why}"),
    }
}

fn make() -> Option<Backend> {
    static BACKEND: OnceLock<Backend> = OnceLock::new();
    let backend = BACKEND.get_or_init(|| {
        // SAFETY: the entry point is the one made above.
        let plugin =
            unsafe { loopwright_plugin::from_entry(loopwright_plugin, Path::new("manycore")) };
        let plugin = plugin.unwrap_or_else(|error| panic!("{error}"));
        plugin.backend().clone()
    });
    assert_eq!(backend.level(), Level::Device);
    available(backend)
}

loopwright_conformance::conformance_tests!(make());

#[test]
fn its_devices_are_those_of_the_accelerator() {
    let Some(backend) = make() else {
        return;
    };
    let devices = backend.devices().expect("it brings devices");
    let [device] = devices.as_slice() else {
        panic!("it has one accelerator, not {}", devices.len());
    };
    let (limits, own) = (device.limits(), Plugged::new().devices()[0].limits());
    assert_eq!(limits, own);
    let slab = device.allocate(6).expect("there is memory");
    assert!(slab.address().is_none());
    let mut bytes = [1; 4];
    // SAFETY: nobody else has the slab, and all of this lies within it.
    unsafe {
        slab.write(3, b"abc").expect("it can be written");
        slab.read(2, &mut bytes).expect("it can be read");
    }
    assert_eq!(&bytes, b"\0abc");
}

/// The example, as people load it.
#[test]
fn the_example_is_loaded_from_its_file() {
    let directory = build::directory();
    let plugin = loopwright_plugin::load(&build::example_device(directory.path()));
    let plugin = plugin.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(plugin.backend().level(), Level::Device);
    assert_eq!(plugin.name(), "example-device");
    let Some(backend) = available(plugin.backend()) else {
        return;
    };
    let options = CheckOptions {
        groups: vec![Group::Kernels, Group::Runtime],
        ..CheckOptions::default()
    };
    let report = Kit::new(&backend).check(&backend, &options);
    assert_eq!(report.failures, []);
    assert!(report.passed > 30, "{}", report.passed);
}
