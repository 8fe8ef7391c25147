//! What can be wrong with a configuration.

use crate::environment::OTHER_VARIABLES;
use crate::key::Key;
use crate::origin::Place;
use std::path::PathBuf;

/// Why there are no settings.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ConfigError {
    /// No option has this name.
    #[error("{}{}", unknown_at(place), suggestion(place, nearest.as_deref()))]
    Unknown {
        /// Where it stands.
        place: Place,
        /// The name in that place that is nearest, if one is near.
        nearest: Option<String>,
    },
    /// The option does not take this value.
    #[error("{place} is {found}; it takes {allowed}")]
    Value {
        /// Where it stands.
        place: Place,
        /// What it says.
        found: String,
        /// What would be right there.
        allowed: String,
    },
    /// The command line says two things.
    #[error("option `{key}` is given twice on the command line")]
    Twice {
        /// The option.
        key: &'static str,
    },
    /// The file has a table of TOML.
    #[error(
        "{}:{line}: there is no table `{table}`; options stand on lines of their own, \
         `threads = 4`, without tables",
        path.display()
    )]
    Table {
        /// The file.
        path: PathBuf,
        /// The line.
        line: usize,
        /// The table's name.
        table: String,
    },
    /// The file is not TOML.
    #[error("{}:{line}: this is not TOML: {reason}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// The line.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// The file cannot be read.
    #[error("cannot read the configuration {}: {reason}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// What is allowed could not be kept or read.
    #[error("cannot keep what is allowed in {}: {reason}", path.display())]
    Allow {
        /// Where.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// Everybody may write to the file.
    #[error(
        "the configuration {} is not read: everybody may write to it (mode {mode:o}), and it may \
         name a directory that code is loaded from; `chmod o-w` it",
        path.display()
    )]
    OpenToAll {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
}

impl ConfigError {
    /// A name that no option has.
    pub(crate) fn unknown(place: Place) -> ConfigError {
        let keys = Key::ALL.iter();
        let nearest = match &place {
            Place::CommandLine(name) | Place::File { key: name, .. } => {
                nearest(name, keys.map(|key| key.name().to_owned()))
            }
            Place::Environment(name) => {
                let others = OTHER_VARIABLES.iter().map(|(name, _)| (*name).to_owned());
                nearest(name, keys.map(|key| key.variable()).chain(others))
            }
        };
        ConfigError::Unknown { place, nearest }
    }

    /// Whether the command line is wrong, not the environment or the file.
    pub fn is_usage(&self) -> bool {
        match self {
            ConfigError::Unknown { place, .. } | ConfigError::Value { place, .. } => {
                matches!(place, Place::CommandLine(_))
            }
            ConfigError::Twice { .. } => true,
            ConfigError::Table { .. }
            | ConfigError::Syntax { .. }
            | ConfigError::Read { .. }
            | ConfigError::Allow { .. }
            | ConfigError::OpenToAll { .. } => false,
        }
    }
}

fn unknown_at(place: &Place) -> String {
    match place {
        Place::CommandLine(key) => format!("there is no option `{key}`"),
        Place::Environment(variable) => {
            format!("the environment sets {variable}, which nothing reads")
        }
        Place::File { path, line, key } => {
            format!("{}:{line}: there is no option `{key}`", path.display())
        }
    }
}

fn suggestion(place: &Place, nearest: Option<&str>) -> String {
    match (nearest, place) {
        (Some(name), Place::Environment(_)) => format!("; did you mean {name}?"),
        (Some(name), _) => format!("; did you mean `{name}`?"),
        (None, Place::Environment(_)) => "; unset it".to_owned(),
        (None, _) => {
            let names: Vec<&str> = Key::ALL.iter().map(|key| key.name()).collect();
            format!("; the options are {}", names.join(", "))
        }
    }
}

/// The name closest to a misspelt one, if one is close enough to be worth showing.
fn nearest(name: &str, known: impl Iterator<Item = String>) -> Option<String> {
    // Long text is not a slip of the finger, and comparing it costs its square.
    if name.len() > 64 {
        return None;
    }
    // The prefix that all variables have makes no two of them alike.
    let bare = |name: &str| {
        let name = name.to_ascii_lowercase().replace('-', "_");
        name.trim_start_matches("loopwright_").to_owned()
    };
    let name = bare(name);
    let allowed = match name.chars().count() {
        0..=2 => 1,
        3..=5 => 2,
        _ => 3,
    };
    known
        .map(|known| (strsim::damerau_levenshtein(&name, &bare(&known)), known))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_suggested() {
        let near = |name: &str| nearest(name, Key::ALL.iter().map(|key| key.name().to_owned()));
        assert_eq!(near("thraeds").as_deref(), Some("threads"));
        assert_eq!(near("Pool-Cap").as_deref(), Some("pool_cap"));
        assert_eq!(near("cachedir").as_deref(), Some("cache_dir"));
        assert_eq!(near("device").as_deref(), Some("device"));
        assert_eq!(near("colour"), None);
        assert_eq!(near(&"threads".repeat(100)), None);
    }
}
