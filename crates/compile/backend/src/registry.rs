//! Backends of all levels as one thing, and how they are found.

use crate::describe::Describe;
use crate::device::{DeviceBackend, PlainDevice};
use crate::device_executable::DeviceExecutable;
use crate::error::BackendError;
use crate::kernel_backend::{CompileOptions, Executable, KernelBackend};
use crate::loop_backend::{LoopBackend, LoopExecutable};
use crate::timeline::stage;
use crate::unit::CompileUnit;
use loopwright_kernel::Module;
use loopwright_threads::ProcessMutex;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// A backend, whichever way it came in: what everybody above holds. What it says of itself is that of
/// [`Describe`]. Clones are the same backend.
#[derive(Clone)]
pub struct Backend {
    way: Way,
    /// What does not compile, for tests.
    refusals: Option<Arc<Refusals>>,
}

/// Decides what does not compile.
pub type Refusals = dyn Fn(&Module) -> Option<BackendError> + Send + Sync;

#[derive(Clone)]
enum Way {
    Loops(Arc<dyn LoopBackend>),
    Kernels(Arc<dyn KernelBackend>),
    Devices(Arc<dyn DeviceBackend>),
}

/// The three levels.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Level {
    /// It takes loop trees.
    Loop,
    /// It takes kernels, and runs them on host memory.
    Kernel,
    /// It takes kernels, and brings devices of its own.
    Device,
}

impl Level {
    /// Its name in lists.
    pub const fn name(self) -> &'static str {
        match self {
            Level::Loop => "loop",
            Level::Kernel => "kernel",
            Level::Device => "device",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Backend {
    fn new(way: Way) -> Backend {
        Backend {
            way,
            refusals: None,
        }
    }

    /// The same, asking `refuse` about every kernel before it compiles: for tests of everything above, and
    /// of the conformance suite.
    pub fn refusing(
        self,
        refuse: impl Fn(&Module) -> Option<BackendError> + Send + Sync + 'static,
    ) -> Backend {
        Backend {
            refusals: Some(Arc::new(refuse)),
            ..self
        }
    }

    /// A backend that takes loop trees.
    pub fn loop_backend(backend: impl LoopBackend + 'static) -> Backend {
        Backend::new(Way::Loops(Arc::new(backend)))
    }

    /// A backend that takes kernels and runs them on host memory.
    pub fn kernel_backend(backend: impl KernelBackend + 'static) -> Backend {
        Backend::new(Way::Kernels(Arc::new(backend)))
    }

    /// A backend with devices of its own.
    pub fn device_backend(backend: impl DeviceBackend + 'static) -> Backend {
        Backend::new(Way::Devices(Arc::new(backend)))
    }

    /// Which way it came in.
    pub fn level(&self) -> Level {
        match self.way {
            Way::Loops(_) => Level::Loop,
            Way::Kernels(_) => Level::Kernel,
            Way::Devices(_) => Level::Device,
        }
    }

    /// Its devices, where it has its own; `None` where it works in the host's memory.
    pub fn devices(&self) -> Option<Vec<Arc<dyn PlainDevice>>> {
        match &self.way {
            Way::Devices(backend) => Some(backend.devices()),
            Way::Loops(_) | Way::Kernels(_) => None,
        }
    }

    /// Compiles programs, together where that is cheaper. What comes out is in their order; several may
    /// be the same executable.
    ///
    /// # Errors
    /// [`BackendError::Unsupported`] where a unit is beyond the backend's capabilities, and what the
    /// backend says.
    pub fn compile(
        &self,
        units: &[CompileUnit<'_>],
        options: &CompileOptions,
    ) -> Result<Vec<Arc<dyn Executable>>, BackendError> {
        self.check(units.iter().map(|unit| &unit.launch.module))?;
        stage("generate code", || self.generate(units, options))
    }

    fn generate(
        &self,
        units: &[CompileUnit<'_>],
        options: &CompileOptions,
    ) -> Result<Vec<Arc<dyn Executable>>, BackendError> {
        match &self.way {
            Way::Loops(backend) => units
                .iter()
                .map(|unit| {
                    let compiled = LoopExecutable::compile(&**backend, unit, options)?;
                    Ok(Arc::new(compiled) as Arc<dyn Executable>)
                })
                .collect(),
            Way::Kernels(backend) => {
                let executable = with_module(units, |module| backend.compile(module, options))?;
                Ok(vec![executable; units.len()])
            }
            Way::Devices(backend) => {
                let executable = with_module(units, |module| {
                    compile_for_device(&**backend, module, options)
                })?;
                Ok(vec![executable; units.len()])
            }
        }
    }

    /// Compiles kernels that come from no program; `None` where the backend takes loop trees, since there
    /// are none.
    ///
    /// # Errors
    /// As [`Backend::compile`].
    pub fn compile_module(
        &self,
        module: &Module,
        options: &CompileOptions,
    ) -> Option<Result<Arc<dyn Executable>, BackendError>> {
        let checked = self.check([module]);
        match &self.way {
            Way::Loops(_) => None,
            Way::Kernels(backend) => Some(checked.and_then(|()| backend.compile(module, options))),
            Way::Devices(backend) => {
                Some(checked.and_then(|()| compile_for_device(&**backend, module, options)))
            }
        }
    }

    /// Fails where a module is beyond the backend's capabilities, or refused for a test.
    fn check<'a>(&self, modules: impl IntoIterator<Item = &'a Module>) -> Result<(), BackendError> {
        let capabilities = self.capabilities();
        for module in modules {
            let checked = capabilities.check(module);
            checked.map_err(|refusal| BackendError::Unsupported {
                backend: self.name().to_owned(),
                kernel: refusal.kernel,
                reason: refusal.reason,
            })?;
            let refuse = self.refusals.as_ref();
            if let Some(error) = refuse.and_then(|refuse| refuse(module)) {
                return Err(error);
            }
        }
        Ok(())
    }
}

/// Compiles a module, to be run on the first of the backend's devices.
fn compile_for_device(
    backend: &dyn DeviceBackend,
    module: &Module,
    options: &CompileOptions,
) -> Result<Arc<dyn Executable>, BackendError> {
    let code = backend.compile(module, options)?;
    let device = backend.devices().into_iter().next();
    Ok(DeviceExecutable::new(module, code, device))
}

/// The kernels of all units in one module.
fn with_module<T>(
    units: &[CompileUnit<'_>],
    compile: impl FnOnce(&Module) -> Result<T, BackendError>,
) -> Result<T, BackendError> {
    match units {
        [only] => compile(&only.launch.module),
        units => {
            let mut all = Module::default();
            for unit in units {
                all.append(unit.launch.module.clone());
            }
            if let Err(error) = loopwright_kernel::validate(&all) {
                let names: Vec<&str> = units.iter().map(|unit| unit.launch.kernel()).collect();
                return Err(BackendError::Call {
                    kernel: names.join(", "),
                    reason: format!("compiled together they are not valid: {error}"),
                });
            }
            compile(&all)
        }
    }
}

impl Deref for Backend {
    type Target = dyn Describe;

    fn deref(&self) -> &(dyn Describe + 'static) {
        match &self.way {
            Way::Loops(backend) => &**backend,
            Way::Kernels(backend) => &**backend,
            Way::Devices(backend) => &**backend,
        }
    }
}

impl fmt::Debug for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Backend").field(&self.name()).finish()
    }
}

impl From<Arc<dyn KernelBackend>> for Backend {
    fn from(backend: Arc<dyn KernelBackend>) -> Backend {
        Backend::new(Way::Kernels(backend))
    }
}

/// A backend that is linked in; made with [`crate::register_backend!`].
pub struct Registration {
    /// Makes the backend.
    pub make: fn() -> Backend,
    /// Preference of `auto`: the available backend with the highest one is chosen.
    pub priority: i32,
}

inventory::collect!(Registration);

/// Makes a backend known to every front end of the binary it is linked into.
///
/// `register_backend!(priority, constructor)`, where the constructor makes a
/// [`Backend`](crate::Backend). `auto` takes the available backend with the highest priority; the
/// interpreter has 0.
#[macro_export]
macro_rules! register_backend {
    ($priority:expr, $make:expr) => {
        $crate::inventory::submit! {
            $crate::Registration { make: $make, priority: $priority }
        }
    };
}

/// Backends that came while the process was running, with their priority.
static ADDED: ProcessMutex<Vec<(i32, Backend)>> = ProcessMutex::new(Vec::new());

/// Makes a backend known to every front end of this process from now on, as
/// [`register_backend!`](crate::register_backend) does when it is linked.
///
/// # Errors
/// [`BackendError::NameTaken`] where there is one of that name.
pub fn register(priority: i32, backend: Backend) -> Result<(), BackendError> {
    let taken = |(_, known): &(i32, Backend)| known.name() == backend.name();
    // Before the lock, which nothing is waited for under.
    let taken_by_linked = linked().any(|known| taken(&known));
    let mut added = ADDED.lock();
    if taken_by_linked || added.iter().any(taken) {
        return Err(BackendError::NameTaken {
            name: backend.name().to_owned(),
        });
    }
    added.push((priority, backend));
    Ok(())
}

fn linked() -> impl Iterator<Item = (i32, Backend)> {
    inventory::iter::<Registration>
        .into_iter()
        .map(|registration| (registration.priority, (registration.make)()))
}

/// Every backend that is linked in or was registered since, most preferred first, then by name.
pub fn backends() -> Vec<Backend> {
    let added = ADDED.lock().clone();
    let mut found: Vec<(i32, Backend)> = linked().chain(added).collect();
    found.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.name().cmp(b.1.name())));
    found.into_iter().map(|(_, backend)| backend).collect()
}
