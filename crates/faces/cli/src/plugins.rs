//! Plug-ins that the settings name.

use crate::failure::Failure;
use crate::terminal::{Style, complain, stderr_paints};
use loopwright_config::{Key, Settings};
use loopwright_plugin::load_all;

/// Loads plug-ins, so that their backends are found like all others. One that was asked for and cannot be
/// loaded is a failure; what is wrong in a directory is told, and the rest goes on.
pub(crate) fn load(settings: &Settings) -> Result<(), Failure> {
    let (plugins, problems) = load_all(&settings.plugins(), &settings.plugin());
    let mut problems: Vec<(String, bool)> = problems
        .into_iter()
        .map(|problem| (problem.error.to_string(), problem.asked))
        .collect();
    let asked = settings.plugin();
    for plugin in plugins {
        if let Err(error) = plugin.register() {
            let asked = asked.iter().any(|path| path == plugin.path());
            problems.push((error.to_string(), asked));
        }
    }
    let style = Style::new(stderr_paints());
    for (problem, asked) in problems {
        if asked {
            let origin = settings.origin(Key::Plugin);
            return Err(Failure::new(problem).help(format!(
                "asked for by: {origin}; `docs/plugins.md` says what a plug-in must be"
            )));
        }
        let warning = style.warning("warning");
        complain(format!("{warning}: {problem}; it is left out"));
    }
    Ok(())
}
