//! What a backend says of itself, at whichever level it comes in.

use crate::capabilities::Capabilities;
use loopwright_looptree::Target;
use std::fmt;

/// What a backend says of itself. Only the name must be said; the rest has defaults for a backend that
/// runs everything on the host's processor.
pub trait Describe: Send + Sync {
    /// The name people choose it by: `--device NAME`.
    fn name(&self) -> &str;

    /// What hardware it needs.
    fn hardware(&self) -> Hardware {
        Hardware::Cpu
    }

    /// Whether it can be used on this machine, and if not, why not and what would help.
    ///
    /// # Errors
    /// Why it cannot be used.
    fn availability(&self) -> Result<(), Unavailable> {
        Ok(())
    }

    /// What the machine it compiles for is good at; schedules are made for it.
    fn target(&self) -> Target {
        Target::SCALAR
    }

    /// What it can do. What it cannot is refused before the backend sees it, with the reason.
    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    /// How its work is best run, where nobody has asked for anything else.
    fn scheduler(&self) -> Scheduler {
        Scheduler::default()
    }
}

/// What a backend runs on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Hardware {
    /// The host's processor.
    Cpu,
    /// A graphics processor.
    Gpu,
    /// Another processor with memory of its own.
    Accelerator,
    /// None: nothing is computed.
    Nothing,
}

impl Hardware {
    /// All of them.
    pub const ALL: [Hardware; 4] = [
        Hardware::Cpu,
        Hardware::Gpu,
        Hardware::Accelerator,
        Hardware::Nothing,
    ];

    /// Its name in lists of devices.
    pub const fn name(self) -> &'static str {
        match self {
            Hardware::Cpu => "cpu",
            Hardware::Gpu => "gpu",
            Hardware::Accelerator => "accelerator",
            Hardware::Nothing => "nothing",
        }
    }
}

impl fmt::Display for Hardware {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How work is run on a device that does one thing at a time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Scheduler {
    /// By the thread that schedules it, before it goes on.
    Sync,
    /// By a worker that every stream has.
    #[default]
    Threads,
}

impl Scheduler {
    /// Its name in settings.
    pub const fn name(self) -> &'static str {
        match self {
            Scheduler::Sync => "sync",
            Scheduler::Threads => "threads",
        }
    }
}

/// Why a backend cannot be used here.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{reason}; {help}")]
pub struct Unavailable {
    /// What is missing.
    pub reason: String,
    /// What would help.
    pub help: String,
    /// Whether it is there and does not work. `auto` passes over what is missing, never what is broken.
    pub broken: bool,
}
