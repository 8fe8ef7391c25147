//! What can be chosen about the accelerators.

use crate::protocol::{ARGUMENT_BYTES, DATA_AT};
use loopwright_backend::Unavailable;
use std::time::Duration;

/// What can be chosen about the accelerators.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// How many there are.
    pub devices: usize,
    /// Cores of each.
    pub cores: usize,
    /// Bytes of a core's local memory, in which the stack of what it runs lies. A multiple of 4 KiB.
    pub local_memory: usize,
    /// Bytes of memory that each has.
    pub memory: u64,
    /// Bytes of the window that it shares with the host. A multiple of 4 KiB.
    pub window: usize,
    /// How long a command may take, a kernel's run among them, before the accelerator is stopped.
    pub timeout: Duration,
    /// How kernels, and the firmware, are compiled.
    pub compiler: loopwright_cc::Settings,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            devices: 1,
            cores: 16,
            local_memory: 64 << 10,
            memory: 512 << 20,
            window: 256 << 10,
            timeout: Duration::from_secs(60),
            compiler: loopwright_cc::Settings {
                optimisation: "2".to_owned(),
                ..loopwright_cc::Settings::default()
            },
        }
    }
}

/// Of a core's local memory, what its thread, the calls from the firmware to a kernel and those into the
/// mathematics library take. The C library keeps a thread's own variables at the top of its stack: 4 KiB with
/// glibc 2.36. `the_reserve_is_enough` measures it.
pub(crate) const STACK_RESERVE: usize = 10 << 10;

/// What frames take besides private arrays, of a kernel of whose frames nothing is known.
const FRAMES: usize = 6 << 10;

/// Bytes of a page, in which local memories and windows are counted.
const PAGE: usize = 4 << 10;

impl Settings {
    /// The settings that the environment's variables make.
    ///
    /// # Errors
    /// A variable that makes no sense.
    pub fn from_env() -> Result<Settings, Unavailable> {
        let defaults = Settings::default();
        let compiler = loopwright_cc::Settings::from_env();
        let optimisation = match std::env::var_os("LOOPWRIGHT_CC_OPT") {
            Some(_) => compiler.optimisation,
            None => defaults.compiler.optimisation,
        };
        Ok(Settings {
            devices: number("LOOPWRIGHT_MANYCORE_DEVICES", 1, 64, 1)? as usize,
            cores: number("LOOPWRIGHT_MANYCORE_CORES", 1, 1024, 16)? as usize,
            memory: number("LOOPWRIGHT_MANYCORE_MEMORY", 1, 1 << 20, 512)? << 20,
            timeout: Duration::from_secs(number("LOOPWRIGHT_MANYCORE_TIMEOUT", 1, 86400, 60)?),
            compiler: loopwright_cc::Settings {
                optimisation,
                ..compiler
            },
            ..defaults
        })
    }

    /// Whether an accelerator can be made like this.
    pub(crate) fn check(&self) -> Result<(), Unavailable> {
        let reason = if !(1..=64).contains(&self.devices) {
            format!(
                "{} accelerators are refused, 1 to 64 are allowed",
                self.devices
            )
        } else if self.cores == 0 || self.cores > 1024 {
            format!("{} cores are refused, 1 to 1024 are allowed", self.cores)
        } else if !self.local_memory.is_multiple_of(PAGE)
            || !(32 << 10..=1 << 20).contains(&self.local_memory)
        {
            format!(
                "{} bytes of local memory are refused, 32 KiB to 1 MiB in steps of 4 KiB are allowed",
                self.local_memory
            )
        } else if !self.window.is_multiple_of(PAGE) || !(2 * PAGE..=64 << 20).contains(&self.window)
        {
            format!(
                "a window of {} bytes is refused, 8 KiB to 64 MiB in steps of 4 KiB are allowed",
                self.window
            )
        } else if self.timeout.is_zero() {
            "a command cannot be done in no time".to_owned()
        } else {
            return Ok(());
        };
        Err(Unavailable {
            reason,
            help: "change the settings of the accelerator".to_owned(),
            broken: true,
        })
    }

    /// Bytes of stack that a kernel's frames may take, from its entry on.
    pub(crate) fn stack(&self) -> usize {
        self.local_memory - STACK_RESERVE
    }

    /// Bytes that private arrays of a kernel may take together.
    pub(crate) fn private_memory(&self) -> usize {
        self.stack() - FRAMES
    }

    /// How many arguments fit the window.
    pub(crate) fn max_params(&self) -> usize {
        (self.window - DATA_AT) / ARGUMENT_BYTES
    }
}

/// A variable's number within a range.
fn number(name: &str, least: u64, most: u64, default: u64) -> Result<u64, Unavailable> {
    let Some(text) = std::env::var_os(name) else {
        return Ok(default);
    };
    let text = text.to_string_lossy();
    let text = text.trim();
    if text.is_empty() {
        return Ok(default);
    }
    let parsed = text.parse().ok();
    parsed
        .filter(|number| (least..=most).contains(number))
        .ok_or_else(|| Unavailable {
            reason: format!("{name} is `{text}`; it takes a number from {least} to {most}"),
            help: format!("unset it for {default}"),
            broken: true,
        })
}
