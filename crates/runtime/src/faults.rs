//! A device and a backend that fail when they are told to, for tests of everything above them.

use crate::plain::{Call, DeviceError, HostMemory, Launch, Limits, Placeholder, PlainDevice, Slab};
use loopwright_backend::{
    BackendError, CompileOptions, Executable, KernelBackend, Program, Target, Unavailable,
};
use loopwright_kernel::Module;
use std::sync::Arc;

/// What a device is about to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation<'a> {
    /// Allocate so many bytes.
    Allocate(usize),
    /// Run a kernel.
    Launch(&'a str),
    /// Copy so many bytes from the host or another device.
    Write(usize),
    /// Copy so many bytes to the host or another device.
    Read(usize),
}

/// Decides what fails: called before every operation, on whichever thread does it.
pub type Faults = dyn Fn(Operation<'_>) -> Option<DeviceError> + Send + Sync;

/// A device that does what another one does, unless it is told to fail.
pub struct FaultyDevice {
    inner: Arc<dyn PlainDevice>,
    faults: Arc<Faults>,
}

impl FaultyDevice {
    /// A device that asks `faults` before each operation.
    pub fn new(
        inner: Arc<dyn PlainDevice>,
        faults: impl Fn(Operation<'_>) -> Option<DeviceError> + Send + Sync + 'static,
    ) -> FaultyDevice {
        FaultyDevice {
            inner,
            faults: Arc::new(faults),
        }
    }
}

fn ask(faults: &Faults, operation: Operation<'_>) -> Result<(), DeviceError> {
    faults(operation).map_or(Ok(()), Err)
}

impl PlainDevice for FaultyDevice {
    fn limits(&self) -> Limits {
        self.inner.limits()
    }

    fn allocate(&self, bytes: usize) -> Result<Arc<dyn Slab>, DeviceError> {
        ask(&*self.faults, Operation::Allocate(bytes))?;
        Ok(Arc::new(FaultySlab {
            inner: self.inner.allocate(bytes)?,
            faults: Arc::clone(&self.faults),
        }))
    }

    fn adopt(&self, memory: HostMemory) -> Option<Arc<dyn Slab>> {
        self.inner.adopt(memory)
    }

    fn prepare(
        &self,
        program: &Arc<Program>,
        slabs: Vec<Arc<dyn Slab>>,
        arguments: &[Placeholder],
    ) -> Result<Box<dyn Launch>, DeviceError> {
        Ok(Box::new(FaultyLaunch {
            inner: self.inner.prepare(program, slabs, arguments)?,
            kernel: program.kernel().to_owned(),
            faults: Arc::clone(&self.faults),
        }))
    }
}

struct FaultySlab {
    inner: Arc<dyn Slab>,
    faults: Arc<Faults>,
}

impl Slab for FaultySlab {
    fn bytes(&self) -> usize {
        self.inner.bytes()
    }

    unsafe fn write(&self, offset: usize, from: &[u8]) -> Result<(), DeviceError> {
        ask(&*self.faults, Operation::Write(from.len()))?;
        // SAFETY: as the caller states.
        unsafe { self.inner.write(offset, from) }
    }

    unsafe fn read(&self, offset: usize, to: &mut [u8]) -> Result<(), DeviceError> {
        ask(&*self.faults, Operation::Read(to.len()))?;
        // SAFETY: as the caller states.
        unsafe { self.inner.read(offset, to) }
    }

    fn address(&self) -> Option<*mut u8> {
        self.inner.address()
    }
}

struct FaultyLaunch {
    inner: Box<dyn Launch>,
    kernel: String,
    faults: Arc<Faults>,
}

impl Launch for FaultyLaunch {
    unsafe fn run(&self, call: &Call<'_>) -> Result<(), DeviceError> {
        ask(&*self.faults, Operation::Launch(&self.kernel))?;
        // SAFETY: as the caller states.
        unsafe { self.inner.run(call) }
    }
}

/// Decides what does not compile.
pub type Refusals = dyn Fn(&Module) -> Option<BackendError> + Send + Sync;

/// A backend that compiles as another one does, unless it is told to fail.
pub struct FaultyBackend {
    inner: Arc<dyn KernelBackend>,
    refuse: Box<Refusals>,
}

impl FaultyBackend {
    /// A backend that asks `refuse` before it compiles.
    pub fn new(
        inner: Arc<dyn KernelBackend>,
        refuse: impl Fn(&Module) -> Option<BackendError> + Send + Sync + 'static,
    ) -> FaultyBackend {
        FaultyBackend {
            inner,
            refuse: Box::new(refuse),
        }
    }
}

impl KernelBackend for FaultyBackend {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn availability(&self) -> Result<(), Unavailable> {
        self.inner.availability()
    }

    fn target(&self) -> Target {
        self.inner.target()
    }

    fn compile(
        &self,
        module: &Module,
        options: &CompileOptions,
    ) -> Result<Arc<dyn Executable>, BackendError> {
        match (self.refuse)(module) {
            Some(error) => Err(error),
            None => self.inner.compile(module, options),
        }
    }
}
