//! Signals that tell the process to end.
//!
//! They are blocked and waited for by a thread of their own. A handler would not do: libraries that backends load
//! (libgccjit is one) put handlers of their own in its place, which end the process with the terminal as it is.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Debug, Default)]
struct Flags {
    /// A signal has come.
    told: AtomicBool,
    /// A session looks whether one has come.
    heeded: AtomicBool,
}

/// Signals, watched. A session heeds them for as long as this lives.
pub(crate) struct Signals {
    flags: Arc<Flags>,
}

impl Signals {
    /// Begins to watch; until a session heeds them, signals end the process. Threads that are started from now
    /// on leave the signals alone, those before may not.
    #[cfg(unix)]
    pub(crate) fn watch() -> io::Result<Signals> {
        let set = ending();
        set.thread_block()?;
        let flags = Arc::new(Flags::default());
        let seen = flags.clone();
        let watcher = std::thread::Builder::new().name("loopwright-signals".to_owned());
        watcher.spawn(move || {
            while let Ok(signal) = set.wait() {
                if !seen.heeded.load(Ordering::Acquire) {
                    // What the signal would have done without us.
                    std::process::exit(128 + signal as i32);
                }
                seen.told.store(true, Ordering::Release);
            }
        })?;
        Ok(Signals { flags })
    }

    #[cfg(not(unix))]
    pub(crate) fn watch() -> io::Result<Signals> {
        let flags = Arc::new(Flags::default());
        Ok(Signals { flags })
    }

    /// From now on a signal is told, and ends nothing by itself.
    pub(crate) fn heed(&self) {
        self.flags.heeded.store(true, Ordering::Release);
    }

    /// Whether the process was told to end.
    pub(crate) fn told(&self) -> bool {
        self.flags.told.load(Ordering::Acquire)
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.flags.heeded.store(false, Ordering::Release);
    }
}

#[cfg(unix)]
fn ending() -> nix::sys::signal::SigSet {
    use nix::sys::signal::{SigSet, Signal};
    let mut set = SigSet::empty();
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        set.add(signal);
    }
    set
}
