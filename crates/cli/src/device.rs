//! Which device is used.

use crate::failure::{Failure, unavailable};
use loopwright::backend::{KernelBackend, backends};
use std::sync::Arc;

/// The name that leaves the choice to us.
const AUTO: &str = "auto";

/// A device, and how it came to be chosen.
pub(crate) struct Chosen {
    pub(crate) backend: Arc<dyn KernelBackend>,
    /// Whether the choice was ours.
    pub(crate) auto: bool,
    /// More preferred ones that are not available, with the reason.
    pub(crate) skipped: Vec<(&'static str, String)>,
}

impl Chosen {
    pub(crate) fn name(&self) -> &'static str {
        self.backend.name()
    }

    /// Why it was chosen, in words.
    pub(crate) fn why(&self) -> String {
        if !self.auto {
            return "as asked".to_owned();
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

/// The device of that name, or for `auto` the most preferred one that is available.
pub(crate) fn choose(name: &str) -> Result<Chosen, Failure> {
    let known = backends();
    if name != AUTO {
        let Some(backend) = known.iter().find(|backend| backend.name() == name) else {
            let names: Vec<&str> = known.iter().map(|backend| backend.name()).collect();
            return Err(Failure::usage(format!("there is no device `{name}`"))
                .help(format!("the devices are {} and {AUTO}", names.join(", "))));
        };
        backend
            .availability()
            .map_err(|why| unavailable(name, &why))?;
        return Ok(Chosen {
            backend: backend.clone(),
            auto: false,
            skipped: Vec::new(),
        });
    }
    let mut skipped = Vec::new();
    for backend in known {
        match backend.availability() {
            Ok(()) => {
                return Ok(Chosen {
                    backend,
                    auto: true,
                    skipped,
                });
            }
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
