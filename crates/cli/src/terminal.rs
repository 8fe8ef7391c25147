//! Writing to the person at the terminal, or to the program behind the pipe.

use crate::failure::Failure;
use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Stdout, Write};

/// The standard output.
pub(crate) struct Terminal {
    out: BufWriter<Stdout>,
    pub(crate) style: Style,
}

impl Terminal {
    pub(crate) fn new() -> Terminal {
        Terminal {
            out: BufWriter::new(io::stdout()),
            style: Style::new(paints(io::stdout().is_terminal())),
        }
    }

    /// Writes a line.
    pub(crate) fn line(&mut self, text: impl Display) -> Result<(), Failure> {
        writeln!(self.out, "{text}")?;
        Ok(())
    }

    /// Writes text that ends its own lines.
    pub(crate) fn text(&mut self, text: &str) -> Result<(), Failure> {
        self.out.write_all(text.as_bytes())?;
        Ok(())
    }

    /// Writes a JSON document.
    pub(crate) fn json(&mut self, value: &serde_json::Value) -> Result<(), Failure> {
        self.line(format!("{value:#}"))
    }

    /// Brings everything written so far to the reader.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        Ok(self.out.flush()?)
    }
}

/// Whether stderr takes colours.
pub(crate) fn stderr_paints() -> bool {
    paints(io::stderr().is_terminal())
}

/// Colours are for terminals that have them and people who want them (see no-color.org).
fn paints(terminal: bool) -> bool {
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    terminal && !unwanted && !dumb
}

/// How parts of the output look; without colours everything looks plain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    paints: bool,
}

impl Style {
    pub(crate) fn new(paints: bool) -> Style {
        Style { paints }
    }

    /// Whether there are colours.
    pub(crate) fn paints(self) -> bool {
        self.paints
    }

    /// A name or heading.
    pub(crate) fn strong(self, text: &str) -> String {
        self.paint("1", text)
    }

    /// What matters less.
    pub(crate) fn faint(self, text: &str) -> String {
        self.paint("2", text)
    }

    /// What is as it should be.
    pub(crate) fn good(self, text: &str) -> String {
        self.paint("32", text)
    }

    /// What is missing.
    pub(crate) fn warning(self, text: &str) -> String {
        self.paint("33", text)
    }

    /// What went wrong.
    pub(crate) fn error(self, text: &str) -> String {
        self.paint("1;31", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.paints {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}
