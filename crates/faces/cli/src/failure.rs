//! What went wrong, as the person at the terminal is told.

use crate::terminal::{Shown as _, Style, complain, json_text, stderr_paints};
use loopwright::backend::BackendError;
use loopwright::compile::ProgramError;
use loopwright::graph::GraphError;
use loopwright::looptree::ScheduleError;
use loopwright::runtime::RuntimeError;
use loopwright::text::{Diagnostic, Source};
use loopwright_config::ConfigError;
use loopwright_files::cache::CacheError;
use serde_json::json;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

/// What went wrong.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A message, with what to do next where there is something to do.
    Message {
        text: String,
        help: Option<String>,
        /// Whether the command line itself makes no sense.
        usage: bool,
    },
    /// An error at a place of a source, with the source's line.
    Place(String),
    /// Nobody reads the output any more.
    BrokenPipe,
}

impl Failure {
    /// A failure with this message.
    pub(crate) fn new(text: impl Into<String>) -> Failure {
        Failure::Message {
            text: text.into(),
            help: None,
            usage: false,
        }
    }

    /// Something on the command line that makes no sense.
    pub(crate) fn usage(text: impl Into<String>) -> Failure {
        Failure::Message {
            text: text.into(),
            help: None,
            usage: true,
        }
    }

    /// An error at a place of a source.
    pub(crate) fn at(diagnostic: &Diagnostic, source: &Source) -> Failure {
        Failure::Place(diagnostic.render(source))
    }

    /// A file that could not be read, written or listed.
    pub(crate) fn file(action: &str, path: &Path, error: &io::Error) -> Failure {
        let reason = loopwright_files::reason(error);
        Failure::new(format!("cannot {action} {}: {reason}", path.shown()))
    }

    /// Says what to do next.
    pub(crate) fn help(mut self, next: impl Into<String>) -> Failure {
        if let Failure::Message { help, .. } = &mut self {
            *help = Some(next.into());
        }
        self
    }

    /// What went wrong, without help.
    pub(crate) fn text(&self) -> &str {
        match self {
            Failure::Message { text, .. } => text,
            Failure::Place(rendered) => rendered,
            Failure::BrokenPipe => "nobody reads the output any more",
        }
    }

    /// Tells the person, on stderr, and gives the process's exit code.
    pub(crate) fn report(&self) -> ExitCode {
        let style = Style::new(stderr_paints());
        let error = style.error("error:");
        let (text, code) = match self {
            Failure::BrokenPipe => return ExitCode::SUCCESS,
            Failure::Place(rendered) => {
                let body = rendered.strip_prefix("error:").unwrap_or(rendered);
                (format!("{error}{body}"), 1)
            }
            Failure::Message { text, help, usage } => {
                let help = help.as_ref().map_or_else(String::new, |help| {
                    format!(" {} {help}\n", style.strong("help:"))
                });
                (
                    format!("{error} {text}\n{help}"),
                    if *usage { 2 } else { 1 },
                )
            }
        };
        complain(text.trim_end_matches('\n'));
        ExitCode::from(code)
    }

    /// The same for a command that was asked for JSON: a document on the standard output, and the same exit code.
    pub(crate) fn report_as_json(&self) -> ExitCode {
        let (message, help, usage) = match self {
            Failure::BrokenPipe => return ExitCode::SUCCESS,
            Failure::Place(rendered) => {
                let body = rendered.strip_prefix("error:").unwrap_or(rendered);
                (body.trim(), None, false)
            }
            Failure::Message { text, help, usage } => (text.as_str(), help.as_deref(), *usage),
        };
        let kind = if usage { "usage" } else { "failure" };
        let document = json!({ "error": { "kind": kind, "message": message, "help": help } });
        let text = format!("{}\n", json_text(&document));
        let _ = io::stdout().write_all(text.as_bytes());
        ExitCode::from(if usage { 2 } else { 1 })
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::BrokenPipe,
            _ => Failure::new(format!("cannot write to the standard output: {error}")),
        }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Failure {
        let failure = match error.is_usage() {
            true => Failure::usage(error.to_string()),
            false => Failure::new(error.to_string()),
        };
        failure.help("`loopwright help config` describes every option")
    }
}

impl From<GraphError> for Failure {
    fn from(error: GraphError) -> Failure {
        let failure = Failure::new(error.to_string());
        match error {
            GraphError::NegativeSize { .. } => {
                failure.help("sizes are 0 or more; `--set SIZE=VALUE` changes them")
            }
            GraphError::Overflow { .. } | GraphError::IndexOverflow { .. } => {
                failure.help("use smaller sizes; `--set SIZE=VALUE` changes them")
            }
            _ => failure,
        }
    }
}

impl From<ScheduleError> for Failure {
    fn from(error: ScheduleError) -> Failure {
        Failure::new(error.to_string())
    }
}

/// What to do about files of the cache.
const KEPT_CODE: &str =
    "compiled code is kept in LOOPWRIGHT_CACHE_DIR; `loopwright doctor` checks it";

impl From<BackendError> for Failure {
    fn from(error: BackendError) -> Failure {
        match &error {
            BackendError::Unavailable { backend, why } => unavailable(backend, why),
            BackendError::File { .. } => Failure::new(error.to_string()).help(KEPT_CODE),
            _ => Failure::new(error.to_string()),
        }
    }
}

impl From<CacheError> for Failure {
    fn from(error: CacheError) -> Failure {
        Failure::new(error.to_string()).help(KEPT_CODE)
    }
}

impl From<ProgramError> for Failure {
    fn from(error: ProgramError) -> Failure {
        match error {
            ProgramError::Backend(error) => error.into(),
            ProgramError::Graph(error) => error.into(),
            error => Failure::new(error.to_string()),
        }
    }
}

impl From<Box<RuntimeError>> for Failure {
    fn from(error: Box<RuntimeError>) -> Failure {
        (*error).into()
    }
}

impl From<RuntimeError> for Failure {
    fn from(error: RuntimeError) -> Failure {
        match error {
            RuntimeError::Compile { reason, .. } => (*reason).into(),
            RuntimeError::Sizes { reason, .. } => (*reason).into(),
            RuntimeError::Unavailable { name, why } | RuntimeError::Broken { name, why } => {
                unavailable(&name, &why)
            }
            RuntimeError::File { path, reason } => Failure::file("write", path.as_ref(), &reason),
            error @ RuntimeError::OverCap { .. } => Failure::new(error.to_string()).help(
                "`-o pool_cap=4GiB` is one way to raise it; `loopwright help config` has the others",
            ),
            error => Failure::new(error.to_string()),
        }
    }
}

/// Has broken invariants, the only cause of panics, told as what they are: mistakes of ours.
pub(crate) fn report_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let said = panic
            .payload_as_str()
            .unwrap_or("a panic without a message");
        let place = panic
            .location()
            .map_or_else(String::new, ToString::to_string);
        Failure::new(format!("internal error: {said} ({place})"))
            .help("this is a mistake in Loopwright; please report it, with the program")
            .report();
    }));
}

/// A device that cannot be used here.
pub(crate) fn unavailable(name: &str, why: &loopwright::backend::Unavailable) -> Failure {
    let (state, otherwise) = match why.broken {
        // `auto` does not pass over it.
        true => ("is broken", "`--device interp` does without it"),
        false => ("is not available", "`--device auto` takes what there is"),
    };
    Failure::new(format!("device `{name}` {state}: {}", why.reason))
        .help(format!("{}; {otherwise}", why.help))
}
