//! What goes wrong with an accelerator.

use loopwright_backend::{BackendError, DeviceError};

/// What went wrong with an accelerator.
#[derive(Debug, thiserror::Error)]
pub enum ManycoreError {
    /// It did not start.
    #[error("`{device}` does not start: {reason}")]
    Start {
        /// Which accelerator.
        device: String,
        /// Why.
        reason: String,
    },
    /// It ended, or had to be stopped. Nothing on it can be used any more.
    #[error("`{device}` {how}")]
    Lost {
        /// Which accelerator.
        device: String,
        /// What ended it, and what it was doing.
        how: String,
    },
    /// It belongs to the process that this one was forked from.
    #[error("`{device}`: {}", loopwright_threads::ThreadsError::Forked)]
    Forked {
        /// Which accelerator.
        device: String,
    },
    /// Its memory is used up.
    #[error("`{device}` has no {bytes} bytes left")]
    OutOfMemory {
        /// Which accelerator.
        device: String,
        /// How much was asked for.
        bytes: u64,
    },
    /// It does not obey a command.
    #[error("`{device}` refuses: {reason}")]
    Refused {
        /// Which accelerator.
        device: String,
        /// Its reason.
        reason: String,
    },
    /// Its firmware cannot be made.
    #[error("the firmware cannot be made: {0}")]
    Firmware(#[from] BackendError),
}

impl From<ManycoreError> for DeviceError {
    fn from(error: ManycoreError) -> DeviceError {
        match error {
            ManycoreError::Lost { .. } => DeviceError::Lost(error.to_string()),
            ManycoreError::OutOfMemory { bytes, .. } => DeviceError::OutOfMemory {
                // A number from this machine: it fits.
                bytes: usize::try_from(bytes).unwrap_or(usize::MAX),
            },
            ManycoreError::Firmware(error) => DeviceError::Backend(error),
            ManycoreError::Start { .. }
            | ManycoreError::Forked { .. }
            | ManycoreError::Refused { .. } => DeviceError::Other(error.to_string()),
        }
    }
}
