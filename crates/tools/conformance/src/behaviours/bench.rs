//! Where a behaviour is seen to: a backend, a scheduler, and what is needed over and over.

use crate::features::parsed;
use crate::pieces::{Pieces, pieces};
use loopwright_backend::{
    Backend, BackendError, CompileOptions, DeviceError, PlainDevice, Scheduler,
};
use loopwright_compile::{Kernels, ProgramError};
use loopwright_graph::Graph;
use loopwright_kernel::Module;
use loopwright_kernel::passes::Pipeline;
use loopwright_runtime::faults::{FaultyDevice, Operation};
use loopwright_runtime::{
    BatchProgram, Code, CodeOptions, Context, Device, HostDevice, LinkOptions, Routine, Runtime,
    RuntimeError, RuntimeOptions,
};
use std::cell::RefCell;
use std::num::NonZero;
use std::sync::Arc;

/// Why a behaviour could not be seen to the end.
#[derive(Debug)]
pub(crate) enum Stop {
    /// It does not hold.
    Failed(String),
    /// It asks for something that the backend does not have.
    NotApplicable(String),
}

impl From<RuntimeError> for Stop {
    fn from(error: RuntimeError) -> Stop {
        Stop::Failed(error.to_string())
    }
}

impl From<ProgramError> for Stop {
    fn from(error: ProgramError) -> Stop {
        Stop::Failed(error.to_string())
    }
}

impl From<BackendError> for Stop {
    fn from(error: BackendError) -> Stop {
        Stop::Failed(error.to_string())
    }
}

/// Fails with a message unless something holds.
pub(crate) fn ensure(holds: bool, message: impl FnOnce() -> String) -> Result<(), Stop> {
    match holds {
        true => Ok(()),
        false => Err(Stop::Failed(message())),
    }
}

/// What a refused operation says; fails if it is not refused.
pub(crate) fn refused<T>(result: Result<T, RuntimeError>, what: &str) -> Result<String, Stop> {
    match result {
        Ok(_) => Err(Stop::Failed(format!("{what} is not refused"))),
        Err(error) => Ok(error.to_string()),
    }
}

/// A backend and a scheduler.
pub(crate) struct Bench<'a> {
    pub(crate) backend: &'a Backend,
    pub(crate) scheduler: Scheduler,
    /// Whether values that kernels compute are compared.
    pub(crate) computes: bool,
    uses: RefCell<Pieces>,
}

impl<'a> Bench<'a> {
    pub(crate) fn new(backend: &'a Backend, scheduler: Scheduler) -> Bench<'a> {
        Bench {
            backend,
            scheduler,
            computes: backend.capabilities().computes,
            uses: RefCell::default(),
        }
    }

    /// What the kernels are made of that were seen so far.
    pub(crate) fn uses(&self) -> Pieces {
        self.uses.borrow().clone()
    }

    pub(crate) fn options(&self) -> RuntimeOptions {
        RuntimeOptions {
            scheduler: Some(self.scheduler),
            compile: CompileOptions {
                strict: true,
                ..CompileOptions::default()
            },
            ..RuntimeOptions::default()
        }
    }

    /// A runtime with this backend alone.
    pub(crate) fn runtime(&self, options: RuntimeOptions) -> Runtime {
        let mut runtime = Runtime::empty(options);
        runtime.add_backend(self.backend.clone());
        runtime
    }

    /// A device of a runtime of its own.
    pub(crate) fn device(&self) -> Result<Device, Stop> {
        let runtime = self.runtime(self.options());
        Ok(runtime.device(self.backend.name())?)
    }

    /// Two devices of one runtime, where the backend has them.
    pub(crate) fn two_devices(&self) -> Result<[Device; 2], Stop> {
        let options = RuntimeOptions {
            devices: NonZero::new(2).unwrap_or(NonZero::<usize>::MIN),
            ..self.options()
        };
        let runtime = self.runtime(options);
        let devices = runtime
            .platforms()
            .first()
            .map_or(0, |platform| platform.devices);
        if devices < 2 {
            return Err(Stop::NotApplicable("it has one device".to_owned()));
        }
        let name = self.backend.name();
        Ok([
            runtime.device(&format!("{name}:0"))?,
            runtime.device(&format!("{name}:1"))?,
        ])
    }

    /// A device that asks before it runs a kernel.
    pub(crate) fn watched_device(
        &self,
        before: impl Fn(&str) -> Option<DeviceError> + Send + Sync + 'static,
    ) -> Result<Device, Stop> {
        let devices = self.backend.devices();
        let first = devices.map_or_else(
            || Some(Arc::new(HostDevice::new(&**self.backend)) as Arc<dyn PlainDevice>),
            |devices| devices.into_iter().next(),
        );
        let inner = first.ok_or_else(|| Stop::NotApplicable("it has no device".to_owned()))?;
        let mut runtime = Runtime::empty(self.options());
        let watched: Arc<dyn PlainDevice> =
            Arc::new(FaultyDevice::new(inner, move |operation| match operation {
                Operation::Launch(kernel) => before(kernel),
                Operation::Allocate(_) | Operation::Write(_) | Operation::Read(_) => None,
            }));
        runtime.add_platform(self.backend.clone(), vec![watched]);
        Ok(runtime.device(self.backend.name())?)
    }

    /// Notes what a program is made of; it does not apply if that is more than the backend can do.
    pub(crate) fn note(&self, graph: &Graph) -> Result<(), Stop> {
        let target = self.backend.target();
        let kernels = Kernels::new(graph, None, &target, &Pipeline::standard())?;
        self.note_module(&kernels.module())
    }

    pub(crate) fn note_module(&self, module: &Module) -> Result<(), Stop> {
        self.uses.borrow_mut().extend(pieces(module));
        let checked = self.backend.capabilities().check(module);
        checked.map_err(|refusal| Stop::NotApplicable(refusal.reason))
    }

    /// Compiles a program, whose first line is added.
    pub(crate) fn compile(&self, device: &Device, name: &str, text: &str) -> Result<Code, Stop> {
        let graph = parsed(name, text);
        self.note(&graph)?;
        Ok(device.compile(name, &graph, &CodeOptions::default())?)
    }

    /// The same with a kernel that has the program's name.
    pub(crate) fn compile_named(
        &self,
        device: &Device,
        name: &str,
        text: &str,
    ) -> Result<Code, Stop> {
        let graph = parsed(name, text);
        self.note(&graph)?;
        let program = BatchProgram {
            name,
            graph: &graph,
            options: CodeOptions::default(),
        };
        let batch = device.compile_batch(&[program], |_| true)?;
        let code = batch.codes().first().cloned().flatten();
        code.ok_or_else(|| Stop::Failed("a batch of one gives no code".to_owned()))
    }

    /// Compiles a program and links it on a stream of its own.
    pub(crate) fn routine(&self, device: &Device, name: &str, text: &str) -> Result<Routine, Stop> {
        let code = self.compile(device, name, text)?;
        link(&device.stream()?.context(), &code)
    }

    /// Fails unless an array that a kernel has computed holds these values. Where the backend does not
    /// compute, the array is read all the same.
    pub(crate) fn computed(
        &self,
        context: &Context,
        name: &str,
        expected: &[i64],
    ) -> Result<(), Stop> {
        let got = read(context, name)?;
        match self.computes {
            true => same(name, &got, expected),
            false => Ok(()),
        }
    }
}

/// Links with all defaults.
pub(crate) fn link(context: &Context, code: &Code) -> Result<Routine, Stop> {
    Ok(context.link(code, &LinkOptions::default())?)
}

/// Writes an array that must be there.
pub(crate) fn write(context: &Context, name: &str, values: &[i64]) -> Result<(), Stop> {
    let written = context.write(name, values)?;
    ensure(written, || {
        format!("the context has no `{name}` to be written")
    })
}

/// The values of an array that must be there.
pub(crate) fn read(context: &Context, name: &str) -> Result<Vec<i64>, Stop> {
    let array = context.read(name)?;
    let array = array.ok_or_else(|| Stop::Failed(format!("the context has no `{name}`")))?;
    Ok(array
        .iter()
        .map(|value| value.as_i64().unwrap_or_default())
        .collect())
}

/// Fails unless an array that was given holds these values.
pub(crate) fn given(context: &Context, name: &str, expected: &[i64]) -> Result<(), Stop> {
    same(name, &read(context, name)?, expected)
}

fn same(name: &str, got: &[i64], expected: &[i64]) -> Result<(), Stop> {
    ensure(got == expected, || {
        format!("`{name}` is {got:?}, and should be {expected:?}")
    })
}
