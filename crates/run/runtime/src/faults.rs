//! A device that fails when it is told to, for tests of everything above it. A backend that does not compile
//! what it is told not to is made with [`Backend::refusing`](loopwright_backend::Backend::refusing).

use loopwright_backend::{
    Call, DeviceError, Executable, HostMemory, Launch, LaunchArgument, Limits, PlainDevice, Slab,
    SlabRange,
};
use std::any::Any;
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
        code: &Arc<dyn Executable>,
        kernel: &str,
        slabs: Vec<Arc<dyn Slab>>,
        arguments: &[LaunchArgument<SlabRange>],
    ) -> Result<Box<dyn Launch>, DeviceError> {
        // The device knows its own slabs, not those that are put around them.
        let slabs = slabs.iter().map(inner).collect();
        Ok(Box::new(FaultyLaunch {
            inner: self.inner.prepare(code, kernel, slabs, arguments)?,
            kernel: kernel.to_owned(),
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

/// The device's own slab.
fn inner(slab: &Arc<dyn Slab>) -> Arc<dyn Slab> {
    let any: &dyn Any = &**slab;
    match any.downcast_ref::<FaultySlab>() {
        Some(faulty) => Arc::clone(&faulty.inner),
        None => Arc::clone(slab),
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
        let merge = call.merge.map(|(slab, offset)| (inner(slab), offset));
        let call = Call {
            statics: call.statics,
            merge: merge.as_ref().map(|(slab, offset)| (slab, *offset)),
        };
        // SAFETY: as the caller states.
        unsafe { self.inner.run(&call) }
    }
}
