//! Writing to the person at the terminal, or to the program behind the pipe.
//!
//! Everything that is shown goes through [`render`]: names, paths and messages come from files, and what a terminal would
//! obey in them is shown instead. Colours of our own are marks until then, so that nothing else can bring any.

use crate::failure::Failure;
use loopwright::text::{escape_line, is_obeyed};
use std::fmt::{Display, Write as _};
use std::hash::BuildHasher as _;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;
use std::sync::LazyLock;

/// The standard output.
pub(crate) struct Terminal {
    out: BufWriter<Box<dyn Write>>,
    pub(crate) style: Style,
}

impl Terminal {
    pub(crate) fn new() -> Terminal {
        Terminal {
            out: BufWriter::new(Box::new(io::stdout())),
            style: Style::new(paints(io::stdout().is_terminal())),
        }
    }

    /// For commands that write a file to the standard output: what is for people goes to the standard error.
    pub(crate) fn beside_output() -> Terminal {
        Terminal {
            out: BufWriter::new(Box::new(io::stderr())),
            style: Style::new(stderr_paints()),
        }
    }

    /// Writes a line.
    pub(crate) fn line(&mut self, text: impl Display) -> Result<(), Failure> {
        writeln!(self.out, "{}", render(&text.to_string()))?;
        Ok(())
    }

    /// Writes text that ends its own lines.
    pub(crate) fn text(&mut self, text: &str) -> Result<(), Failure> {
        self.out.write_all(render(text).as_bytes())?;
        Ok(())
    }

    /// Writes what this program has drawn, with colours of its own and nothing from files in it.
    pub(crate) fn drawing(&mut self, text: &str) -> Result<(), Failure> {
        self.out.write_all(text.as_bytes())?;
        Ok(())
    }

    /// Writes a JSON document.
    pub(crate) fn json(&mut self, value: &serde_json::Value) -> Result<(), Failure> {
        self.line(json_text(value))
    }

    /// Brings everything written so far to the reader.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        Ok(self.out.flush()?)
    }
}

/// A document as text, with characters that a terminal would obey written as JSON writes them.
pub(crate) fn json_text(value: &serde_json::Value) -> String {
    let plain = format!("{value:#}");
    let mut text = String::with_capacity(plain.len());
    for c in plain.chars() {
        // They can only be inside of strings: JSON has no others but line feeds between its parts.
        match is_obeyed(c) && c != '\n' {
            true => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    // Writing to a string cannot fail.
                    let _ = write!(text, "\\u{unit:04x}");
                }
            }
            false => text.push(c),
        }
    }
    text
}

/// Writes a line to the standard error. Where that is gone there is nobody to tell.
pub(crate) fn complain(text: impl Display) {
    let line = format!("{}\n", render(&text.to_string()));
    let _ = io::stderr().write_all(line.as_bytes());
}

/// A path as it is shown: on one line, with nothing that a terminal obeys.
pub(crate) trait Shown {
    fn shown(&self) -> String;
}

impl<P: AsRef<Path> + ?Sized> Shown for P {
    fn shown(&self) -> String {
        escape_line(&self.as_ref().display().to_string()).into_owned()
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

/// What begins each look, as the terminal takes it; the last ends it.
const LOOKS: [&str; 6] = [
    "\x1b[1m",
    "\x1b[2m",
    "\x1b[32m",
    "\x1b[33m",
    "\x1b[1;31m",
    "\x1b[0m",
];

/// The look that ends the others.
const PLAIN: usize = 5;

/// What begins and ends a mark: a character that Unicode promises never to use.
const MARK: char = '\u{fdd0}';

/// What stands in a mark before the number of the look. No file can know it, so no file can bring a mark.
static SECRET: LazyLock<String> = LazyLock::new(|| {
    // Its keys are random, and others in every process.
    let number = std::hash::RandomState::new().hash_one(std::process::id());
    format!("{number:016x}")
});

fn mark(look: usize) -> String {
    format!("{MARK}{}{look}{MARK}", *SECRET)
}

/// The text as it is sent: marks become colours, and everything else that a terminal would obey is shown.
pub(crate) fn render(text: &str) -> String {
    let marks: Vec<String> = (0..LOOKS.len()).map(mark).collect();
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if c == MARK
            && let Some(look) = marks
                .iter()
                .position(|mark| rest.starts_with(mark.as_str()))
        {
            out.push_str(LOOKS[look]);
            rest = &rest[marks[look].len()..];
            continue;
        }
        match c == '\n' || c == '\t' || !is_obeyed(c) {
            true => out.push(c),
            false => {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
        }
        rest = &rest[c.len_utf8()..];
    }
    out
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
        self.paint(0, text)
    }

    /// What matters less.
    pub(crate) fn faint(self, text: &str) -> String {
        self.paint(1, text)
    }

    /// What is as it should be.
    pub(crate) fn good(self, text: &str) -> String {
        self.paint(2, text)
    }

    /// What is missing.
    pub(crate) fn warning(self, text: &str) -> String {
        self.paint(3, text)
    }

    /// What went wrong.
    pub(crate) fn error(self, text: &str) -> String {
        self.paint(4, text)
    }

    fn paint(self, look: usize, text: &str) -> String {
        if self.paints {
            format!("{}{text}{}", mark(look), mark(PLAIN))
        } else {
            text.to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_colours_reach_the_terminal() {
        let style = Style::new(true);
        let name = "a\x1b]0;title\x07\u{9b}2J\u{202e}b\u{fdd0}0\u{fdd0}";
        let line = render(&format!("{} {name}", style.error("error:")));
        let rest = line
            .strip_prefix("\x1b[1;31merror:\x1b[0m ")
            .expect("our own colour");
        assert_eq!(
            rest,
            r"a\u{1b}]0;title\u{7}\u{9b}2J\u{202e}b\u{fdd0}0\u{fdd0}"
        );
        assert_eq!(Style::new(false).error(name), name);
    }

    #[test]
    fn json_stays_json_and_holds_nothing_that_a_terminal_obeys() {
        let value = serde_json::json!({ "a\u{9b}": "\x1b\u{7f}\u{202e}\u{e0001}\n", "b": [1] });
        let text = json_text(&value);
        assert!(
            !text.contains(|c: char| is_obeyed(c) && c != '\n'),
            "{text}"
        );
        let back: serde_json::Value = serde_json::from_str(&text).expect("still JSON");
        assert_eq!(back, value);
    }
}
