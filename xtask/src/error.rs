//! What can go wrong in a task.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

/// Why a task or one of its steps did not succeed.
#[derive(Debug)]
pub(crate) enum Error {
    /// The command line of xtask itself makes no sense.
    Usage(String),
    /// A program could not be started.
    Start { command: String, source: io::Error },
    /// A program ran and reported failure.
    Exit { command: String, status: ExitStatus },
    /// A program was still running at its time limit and was ended.
    TimedOut { command: String, limit: Duration },
    /// A file or folder could not be read or written.
    File { path: PathBuf, source: io::Error },
    /// A check found something wrong that no single program's status says.
    Check(String),
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Usage(what) => write!(out, "{what}; `cargo xtask help` lists what there is"),
            Error::Start { command, source } => write!(out, "cannot start `{command}`: {source}"),
            Error::Exit { command, status } => write!(out, "`{command}` failed ({status})"),
            Error::TimedOut { command, limit } => {
                write!(
                    out,
                    "`{command}` was still running after {} s",
                    limit.as_secs()
                )
            }
            Error::File { path, source } => write!(out, "{}: {source}", path.display()),
            Error::Check(what) => out.write_str(what),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Start { source, .. } | Error::File { source, .. } => Some(source),
            Error::Usage(_) | Error::Exit { .. } | Error::TimedOut { .. } | Error::Check(_) => None,
        }
    }
}
