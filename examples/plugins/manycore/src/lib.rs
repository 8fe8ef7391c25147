//! A device backend as a plug-in: the simulated accelerator `manycore`, reached through the table of plug-ins.
//!
//! ```text
//! cargo build --release -p loopwright-example-device-plugin
//! loopwright --plugin target/release/libloopwright_example_device_plugin.so check --device example-device
//! ```

use loopwright_backend::{
    BackendError, Capabilities, CompileOptions, Describe, DeviceBackend, DeviceCode, Hardware,
    PlainDevice, Scheduler, Target, Unavailable,
};
use loopwright_kernel::Module;
use loopwright_manycore::Manycore;
use std::sync::Arc;

/// The accelerator under another name: hosts have one called `manycore` built in.
struct ExampleDevice(Manycore);

impl Describe for ExampleDevice {
    fn name(&self) -> &str {
        "example-device"
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

    fn scheduler(&self) -> Scheduler {
        self.0.scheduler()
    }
}

impl DeviceBackend for ExampleDevice {
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

loopwright_plugin::export_plugin!(device ExampleDevice(Manycore::from_env()), -20);
