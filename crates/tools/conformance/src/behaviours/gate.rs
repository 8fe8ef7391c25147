//! A gate that kernels wait at.

use loopwright_backend::DeviceError;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

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
