//! Which device is used.

use crate::failure::{Failure, unavailable};
use loopwright::backend::{KernelBackend, backends};
use loopwright_config::{Key, Origin, Settings};
use std::sync::Arc;

/// The name that leaves the choice to us.
const AUTO: &str = "auto";

/// A device, and how it came to be chosen.
pub(crate) struct Chosen {
    pub(crate) backend: Arc<dyn KernelBackend>,
    /// Where the name comes from; `None`: the choice was ours.
    asked: Option<Origin>,
    /// More preferred ones that are not available, with the reason.
    pub(crate) skipped: Vec<(&'static str, String)>,
}

impl Chosen {
    pub(crate) fn name(&self) -> &'static str {
        self.backend.name()
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
    let known = backends();
    let name = settings.device();
    if name != AUTO {
        let Some(backend) = known.iter().find(|backend| backend.name() == name) else {
            let names: Vec<&str> = known.iter().map(|backend| backend.name()).collect();
            let complaint = format!("there is no device `{name}`");
            let failure = match settings.origin(Key::Device) {
                Origin::CommandLine | Origin::Default => Failure::usage(complaint),
                origin => Failure::new(format!("{complaint}, which {origin} asks for")),
            };
            return Err(failure.help(format!("the devices are {} and {AUTO}", names.join(", "))));
        };
        backend
            .availability()
            .map_err(|why| unavailable(name, &why))?;
        return Ok(Chosen {
            backend: backend.clone(),
            asked: Some(settings.origin(Key::Device).clone()),
            skipped: Vec::new(),
        });
    }
    let mut skipped = Vec::new();
    for backend in known {
        match backend.availability() {
            Ok(()) => {
                return Ok(Chosen {
                    backend,
                    asked: None,
                    skipped,
                });
            }
            Err(why) if why.broken => return Err(unavailable(backend.name(), &why)),
            // What is there and does not work is told: passing over it would hide it.
            Err(why) if why.broken => return Err(unavailable(backend.name(), &why)),
            Err(why) => skipped.push((backend.name(), why.reason)),
        }
    }
    let reasons: Vec<String> = skipped
        .iter()
        .map(|(name, reason)| format!("{name}: {reason}"))
        .collect();
    Err(
        Failure::new(format!("no device is available ({})", reasons.join("; ")))
            .help("`loopwright doctor` says what is missing"),
    )
}
