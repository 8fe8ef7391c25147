//! Errors that point at a place in a source.

use crate::source::{Source, Span};
use std::fmt::Write as _;

/// An error with the place it is about, and what to do about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// What is wrong, in one line.
    pub message: String,
    /// The places it concerns; the first is the main one.
    pub labels: Vec<Label>,
    /// What to do next.
    pub help: Option<String>,
}

/// A place and what is to be said about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Label {
    /// The place.
    pub span: Span,
    /// What is to be said about it; may be empty.
    pub note: String,
}

impl Diagnostic {
    /// An error at a place.
    pub fn new(span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            message: message.into(),
            labels: vec![Label {
                span,
                note: String::new(),
            }],
            help: None,
        }
    }

    /// Says something about the main place.
    pub fn note(mut self, note: impl Into<String>) -> Diagnostic {
        if let Some(label) = self.labels.first_mut() {
            label.note = note.into();
        }
        self
    }

    /// Adds a second place.
    pub fn label(mut self, span: Span, note: impl Into<String>) -> Diagnostic {
        self.labels.push(Label {
            span,
            note: note.into(),
        });
        self
    }

    /// Says what to do next.
    pub fn help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }

    /// The error as people read it: the message, then each place with its line underlined.
    pub fn render(&self, source: &Source) -> String {
        let mut out = format!("error: {}\n", self.message);
        let gutter = self
            .labels
            .iter()
            .map(|label| source.position(label.span.start).0.to_string().len())
            .max()
            .unwrap_or(1);
        for label in &self.labels {
            let (line, column) = source.position(label.span.start);
            let text = source.line(line);
            let width = source
                .slice(label.span)
                .lines()
                .next()
                .map_or(0, |covered| covered.chars().count())
                .max(1);
            // Tabs are kept in the padding so that the marks stand under what they mark.
            let padding: String = text
                .chars()
                .take(column - 1)
                .map(|c| if c == '\t' { '\t' } else { ' ' })
                .collect();
            let _ = writeln!(out, "{:gutter$} --> {}:{line}:{column}", "", source.name());
            let _ = writeln!(out, "{:gutter$} |", "");
            let _ = writeln!(out, "{line:gutter$} | {text}");
            let _ = writeln!(
                out,
                "{:gutter$} | {padding}{}{}{}",
                "",
                "^".repeat(width),
                if label.note.is_empty() { "" } else { " " },
                label.note
            );
        }
        if let Some(help) = &self.help {
            let _ = writeln!(out, "{:gutter$} = help: {help}", "");
        }
        out
    }
}
