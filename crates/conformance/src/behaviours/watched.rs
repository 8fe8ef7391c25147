//! A device that asks before it runs a kernel.

use loopwright_backend::{
    Call, DeviceError, Executable, HostMemory, Launch, Limits, Placeholder, PlainDevice, Slab,
};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// What is asked, with the kernel's name: nothing goes on before it answers, and an error is the kernel's.
type Before = dyn Fn(&str) -> Option<DeviceError> + Send + Sync;

/// A device that asks before it runs a kernel. Its memory is that of the device inside, as it is: a device
/// knows its own.
pub(super) struct Watched {
    inner: Arc<dyn PlainDevice>,
    before: Arc<Before>,
}

impl Watched {
    pub(super) fn new(
        inner: Arc<dyn PlainDevice>,
        before: impl Fn(&str) -> Option<DeviceError> + Send + Sync + 'static,
    ) -> Watched {
        Watched {
            inner,
            before: Arc::new(before),
        }
    }
}

impl PlainDevice for Watched {
    fn limits(&self) -> Limits {
        self.inner.limits()
    }

    fn allocate(&self, bytes: usize) -> Result<Arc<dyn Slab>, DeviceError> {
        self.inner.allocate(bytes)
    }

    fn adopt(&self, memory: HostMemory) -> Option<Arc<dyn Slab>> {
        self.inner.adopt(memory)
    }

    fn prepare(
        &self,
        code: &Arc<dyn Executable>,
        kernel: &str,
        slabs: Vec<Arc<dyn Slab>>,
        arguments: &[Placeholder],
    ) -> Result<Box<dyn Launch>, DeviceError> {
        Ok(Box::new(WatchedLaunch {
            inner: self.inner.prepare(code, kernel, slabs, arguments)?,
            kernel: kernel.to_owned(),
            before: Arc::clone(&self.before),
        }))
    }
}

struct WatchedLaunch {
    inner: Box<dyn Launch>,
    kernel: String,
    before: Arc<Before>,
}

impl Launch for WatchedLaunch {
    unsafe fn run(&self, call: &Call<'_>) -> Result<(), DeviceError> {
        if let Some(error) = (self.before)(&self.kernel) {
            return Err(error);
        }
        // SAFETY: as the caller states.
        unsafe { self.inner.run(call) }
    }
}

/// Holds kernels up until it is opened.
#[derive(Default)]
pub(super) struct Gate {
    open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    /// Waits until the gate is open; an error where nobody opens it.
    pub(super) fn pass(&self) -> Option<DeviceError> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let (open, _) = self
            .opened
            .wait_timeout_while(open, Duration::from_secs(60), |open| !*open)
            .unwrap_or_else(PoisonError::into_inner);
        (!*open).then(|| DeviceError::Other("the gate was never opened".to_owned()))
    }

    /// Lets all kernels through, from now on.
    pub(super) fn open(&self) {
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.opened.notify_all();
    }
}
