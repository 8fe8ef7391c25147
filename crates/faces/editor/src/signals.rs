//! What tells the process to end: signals, and a terminal that is gone.
//!
//! Signals are blocked and waited for by a thread of their own. A handler would not do: libraries that backends load
//! (libgccjit is one) put handlers of their own in its place, which end the process with the terminal as it is. A second
//! thread waits for the terminal to hang up, which a closed window or connection does without a signal where those are
//! ignored (`nohup`).
//!
//! The session looks at what was told between two events. While it waits for events of a terminal that is gone it cannot:
//! reading fails, and the library that reads tries again for ever. So a session that has not ended a moment later is ended
//! from here.

#[cfg(unix)]
use crate::terminal::give_back;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
#[cfg(unix)]
use std::time::Duration;

/// How long a session has to end by itself once it was told to.
#[cfg(unix)]
const GRACE: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
struct Flags {
    /// The signal that has come; 0: none.
    told: AtomicI32,
    /// A session looks whether one has come.
    heeded: AtomicBool,
}

#[cfg(unix)]
impl Flags {
    /// Passes a signal on to the session, and ends the process if that is not there or does not end.
    fn tell(&self, signal: i32) {
        if self.heeded.load(Ordering::Acquire) {
            self.told.store(signal, Ordering::Release);
            std::thread::sleep(GRACE);
            if !self.heeded.load(Ordering::Acquire) {
                // It is ending, and says so itself.
                return;
            }
            give_back();
        }
        // What the signal would have done without us.
        std::process::exit(128 + signal);
    }
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
                seen.tell(signal as i32);
            }
        })?;
        let seen = flags.clone();
        let watcher = std::thread::Builder::new().name("loopwright-hangup".to_owned());
        watcher.spawn(move || {
            if wait_for_hang_up().is_ok() {
                seen.tell(nix::sys::signal::Signal::SIGHUP as i32);
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

    /// The signal that told the process to end.
    pub(crate) fn told(&self) -> Option<i32> {
        let signal = self.flags.told.load(Ordering::Acquire);
        (signal != 0).then_some(signal)
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.flags.heeded.store(false, Ordering::Release);
    }
}

/// Waits until nobody is at the other end of the terminal any more.
#[cfg(unix)]
fn wait_for_hang_up() -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, poll};
    let input = io::stdin();
    loop {
        // Nothing is asked for: an end and an error are told all the same.
        let mut terminal = [PollFd::new(&input, PollFlags::empty())];
        match poll(&mut terminal, None) {
            Ok(1..) => return Ok(()),
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
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
