//! Interrupts: long work ends in order.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Whether the process was told to end, and by what.
pub(crate) struct Stop {
    /// Set at the first signal, so that what is done so far is kept; the second ends the process at once.
    pub(crate) flag: Arc<AtomicBool>,
    signal: Arc<AtomicUsize>,
}

impl Stop {
    /// Has signals set the flag.
    pub(crate) fn watch() -> Stop {
        let stop = Stop {
            flag: Arc::new(AtomicBool::new(false)),
            signal: Arc::new(AtomicUsize::new(0)),
        };
        #[cfg(unix)]
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            use signal_hook::flag;
            // Without them a signal ends the process, and what is on disk is still whole.
            let _ =
                flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&stop.flag));
            let number = usize::try_from(signal).unwrap_or(0);
            let _ = flag::register_usize(signal, Arc::clone(&stop.signal), number);
            let _ = flag::register(signal, Arc::clone(&stop.flag));
        }
        stop
    }

    /// The exit code of a command that a signal ended, as a shell has it: 130 for SIGINT, 143 for SIGTERM.
    pub(crate) fn exit_code(&self) -> ExitCode {
        let signal = u8::try_from(self.signal.load(Ordering::Acquire)).unwrap_or(0);
        ExitCode::from(128u8.saturating_add(signal))
    }
}
