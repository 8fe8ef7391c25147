//! Source text and places in it.

/// A text with the name people know it by (a path, or `<input>`).
#[derive(Clone, Debug)]
pub struct Source {
    name: String,
    text: String,
}

/// A range of bytes of a source.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The span of these bytes.
    pub fn new(start: usize, end: usize) -> Span {
        // A source over 4 GiB is refused by the lexer, so that positions always fit.
        Span {
            start: start as u32,
            end: end as u32,
        }
    }

    /// The smallest span that covers both.
    pub fn to(self, other: Span) -> Span {
        Span {
            start: self.start.min(other.start),
            end: self.end.max(other.end),
        }
    }
}

impl Source {
    /// A source of that name and text.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Source {
        Source {
            name: name.into(),
            text: text.into(),
        }
    }

    /// The name people know it by.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Line and column (both from 1; the column counts characters) of a byte position.
    pub fn position(&self, byte: u32) -> (usize, usize) {
        let byte = self.floor_boundary(byte as usize);
        let before = &self.text[..byte];
        let line = before.matches('\n').count() + 1;
        let column = before[before.rfind('\n').map_or(0, |i| i + 1)..]
            .chars()
            .count()
            + 1;
        (line, column)
    }

    /// The text of a line, counted from 1, without its line break.
    pub fn line(&self, line: usize) -> &str {
        self.text.lines().nth(line.saturating_sub(1)).unwrap_or("")
    }

    /// The text a span covers.
    pub fn slice(&self, span: Span) -> &str {
        let start = self.floor_boundary(span.start as usize);
        let end = self.floor_boundary(span.end as usize).max(start);
        &self.text[start..end]
    }

    fn floor_boundary(&self, mut byte: usize) -> usize {
        byte = byte.min(self.text.len());
        while !self.text.is_char_boundary(byte) {
            byte -= 1;
        }
        byte
    }
}
