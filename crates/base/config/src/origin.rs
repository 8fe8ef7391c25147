//! Where values come from.

use std::fmt;
use std::path::PathBuf;

/// Where a setting's value comes from. As text: `command line`, `LOOPWRIGHT_THREADS`,
/// `loopwright.toml:3`, `default`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Origin {
    /// The command line.
    CommandLine,
    /// This variable of the environment.
    Environment(String),
    /// The configuration's file.
    File {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
    },
    /// Nothing is said anywhere.
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::CommandLine => f.write_str("command line"),
            Origin::Environment(variable) => f.write_str(variable),
            Origin::File { path, line } => write!(f, "{}:{line}", path.display()),
            Origin::Default => f.write_str("default"),
        }
    }
}

/// A place that something is said at, and the option's name as it stands there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// The command line, with the name.
    CommandLine(String),
    /// The environment, with the variable.
    Environment(String),
    /// The configuration's file.
    File {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The name.
        key: String,
    },
}

impl Place {
    pub(crate) fn origin(&self) -> Origin {
        match self {
            Place::CommandLine(_) => Origin::CommandLine,
            Place::Environment(variable) => Origin::Environment(variable.clone()),
            Place::File { path, line, .. } => Origin::File {
                path: path.clone(),
                line: *line,
            },
        }
    }
}

/// The option as it stands at its place: `` option `threads` ``, `LOOPWRIGHT_THREADS`,
/// `` loopwright.toml:3: `threads` ``.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::CommandLine(key) => write!(f, "option `{key}`"),
            Place::Environment(variable) => f.write_str(variable),
            Place::File { path, line, key } => write!(f, "{}:{line}: `{key}`", path.display()),
        }
    }
}
