//! Interrupts: long work ends in order.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Set at the first interrupt, so that what is done so far is kept; the second ends the process at once.
pub(crate) fn stop_flag() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    #[cfg(unix)]
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        // Without them an interrupt ends the process, and what is on disk is still whole.
        let _ = signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop));
        let _ = signal_hook::flag::register(signal, Arc::clone(&stop));
    }
    stop
}
