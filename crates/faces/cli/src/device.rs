//! Which device is used.

use crate::failure::{Failure, unavailable};
use crate::runtime::runtime;
use loopwright::backend::{Backend, backends};
use loopwright::runtime::{AUTO, Device, Runtime, RuntimeError};
use loopwright_config::{Key, Origin, Settings};

/// A device, and how it came to be chosen.
pub(crate) struct Chosen {
    /// What it is a device of.
    pub(crate) runtime: Runtime,
    pub(crate) device: Device,
    /// Where the name comes from; `None`: the choice was ours.
    asked: Option<Origin>,
    /// More preferred ones that are not available, with the reason.
    pub(crate) skipped: Vec<(String, String)>,
}

impl Chosen {
    /// Its name; the number is left out where its backend has no other device.
    pub(crate) fn name(&self) -> &str {
        match self.device.is_only() {
            true => self.backend().name(),
            false => self.device.name(),
        }
    }

    pub(crate) fn backend(&self) -> &Backend {
        self.device.backend()
    }

    /// Why it was chosen, in words.
    pub(crate) fn why(&self) -> String {
        match &self.asked {
            Some(Origin::CommandLine | Origin::Default) => return "as asked".to_owned(),
            Some(origin) => return format!("as asked by {origin}"),
            None => {}
        }
        if self.skipped.is_empty() {
            return "auto: the first choice, and it is available".to_owned();
        }
        let skipped: Vec<String> = self
            .skipped
            .iter()
            .map(|(name, reason)| format!("{name} is not available: {reason}"))
            .collect();
        format!("auto: {}", skipped.join("; "))
    }
}

/// The device that the settings name, or for `auto` the most preferred one that is available.
pub(crate) fn choose(settings: &Settings) -> Result<Chosen, Failure> {
    check_fallback(settings)?;
    let runtime = runtime(settings);
    let name = settings.device();
    let choice = runtime
        .choose(name)
        .map_err(|error| refused(settings, name, error))?;
    let passed_over = choice.passed_over.into_iter();
    Ok(Chosen {
        runtime,
        device: choice.device,
        asked: (name != AUTO).then(|| settings.origin(Key::Device).clone()),
        skipped: passed_over.map(|(name, why)| (name, why.reason)).collect(),
    })
}

/// Refuses a fallback that no backend has the name of, before it is needed.
fn check_fallback(settings: &Settings) -> Result<(), Failure> {
    let Some(name) = settings.fallback() else {
        return Ok(());
    };
    let known = backends();
    if known.iter().any(|backend| backend.name() == name) {
        return Ok(());
    }
    let complaint = format!("there is no backend `{name}` to fall back to");
    let failure = match settings.origin(Key::Fallback) {
        Origin::CommandLine | Origin::Default => Failure::usage(complaint),
        origin => Failure::new(format!("{complaint}, which {origin} asks for")),
    };
    let known: Vec<&str> = known.iter().map(|backend| backend.name()).collect();
    Err(failure.help(format!("the backends are {}", known.join(", "))))
}

/// Why there is no such device, with what to do about it.
fn refused(settings: &Settings, name: &str, error: RuntimeError) -> Failure {
    let unknown = || {
        let complaint = format!("there is no device `{name}`");
        match settings.origin(Key::Device) {
            Origin::CommandLine | Origin::Default => Failure::usage(complaint),
            origin => Failure::new(format!("{complaint}, which {origin} asks for")),
        }
    };
    match error {
        RuntimeError::NoSuchDevice { known, .. } => {
            unknown().help(format!("the devices are {known} and {AUTO}"))
        }
        RuntimeError::NoSuchOrdinal {
            platform, devices, ..
        } => unknown().help(match devices {
            1 => format!("`{platform}` has one device, `{platform}:0`; `-o devices=N` shows more"),
            devices => format!(
                "`{platform}` has {devices} devices, `{platform}:0` to `{platform}:{}`; \
                 `-o devices=N` shows more",
                devices.saturating_sub(1)
            ),
        }),
        RuntimeError::Unavailable { name, why } | RuntimeError::Broken { name, why } => {
            unavailable(&name, &why)
        }
        error @ RuntimeError::NoDevice { .. } => {
            Failure::new(error.to_string()).help("`loopwright doctor` says what is missing")
        }
        error => error.into(),
    }
}
