//! Interrupts: long work ends in order.

use loopwright_threads::interrupt::Interrupts;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// How long a command may take to end after the signal, before the process ends as it stands. What cannot be asked to end, as code
/// of others and a kernel that a stream's worker runs, must not keep somebody waiting.
const PATIENCE: Duration = Duration::from_millis(800);

/// The same for commands that keep what is done so far.
const PATIENCE_TO_KEEP: Duration = Duration::from_secs(5);

/// How often the signal is looked for.
#[cfg(unix)]
const GLANCE: Duration = Duration::from_millis(50);

/// How a command ends when it is told to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ends {
    /// As the signal has it: it does not return.
    Anywhere,
    /// Where it stands; what it has written is whole, and its exit code is the signal's.
    Soon,
    /// By itself: it keeps what is done so far.
    ByItself,
}

/// Does a command's work so that a signal ends it.
pub(crate) fn interruptible<E>(
    ends: Ends,
    work: impl FnOnce() -> Result<ExitCode, E>,
) -> Result<ExitCode, E> {
    let patience = match ends {
        Ends::Anywhere => return work(),
        Ends::Soon => PATIENCE,
        Ends::ByItself => PATIENCE_TO_KEEP,
    };
    let stop = Stop::watch();
    stop.end_after(patience);
    if ends == Ends::ByItself {
        return work();
    }
    let flag = Arc::clone(&stop.flag);
    let done = Interrupts::new(move || flag.load(Ordering::Acquire)).scope(work);
    match stop.flag.load(Ordering::Acquire) {
        // What went wrong is that it was told to end.
        true => Ok(stop.exit_code()),
        false => done,
    }
}

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

    /// Ends the process some time after the signal, if it is still there.
    fn end_after(&self, patience: Duration) {
        #[cfg(unix)]
        {
            let (flag, signal) = (Arc::clone(&self.flag), Arc::clone(&self.signal));
            // Without the thread, work that cannot be asked ends by itself or by the second signal.
            let _ = std::thread::Builder::new()
                .name("patience".to_owned())
                .spawn(move || {
                    while !flag.load(Ordering::Acquire) {
                        std::thread::sleep(GLANCE);
                    }
                    std::thread::sleep(patience);
                    let signal = i32::try_from(signal.load(Ordering::Acquire)).unwrap_or(0);
                    signal_hook::low_level::exit(128 + signal);
                });
        }
        #[cfg(not(unix))]
        let _ = patience;
    }

    /// The exit code of a command that a signal ended, as a shell has it: 130 for SIGINT, 143 for SIGTERM.
    pub(crate) fn exit_code(&self) -> ExitCode {
        let signal = u8::try_from(self.signal.load(Ordering::Acquire)).unwrap_or(0);
        ExitCode::from(128u8.saturating_add(signal))
    }
}
