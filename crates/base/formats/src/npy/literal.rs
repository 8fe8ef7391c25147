//! The part of Python's literals that headers are written in.

use crate::npy::error::NpyError;

/// A value of the header's dictionary.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Literal {
    Text(String),
    Bool(bool),
    Tuple(Vec<usize>),
    /// A description of structured elements, which nobody here can use.
    List,
}

/// Reads `{'key': value, ...}`; only white space may follow.
pub(crate) fn parse_dictionary(text: &str) -> Result<Vec<(String, Literal)>, NpyError> {
    let mut reader = Reader { rest: text };
    reader.expect('{')?;
    let mut entries = Vec::new();
    while !reader.take('}') {
        let key = reader.text()?;
        reader.expect(':')?;
        let value = reader.value()?;
        let structured = value == Literal::List;
        entries.push((key, value));
        // What follows a list is not read: it is enough to know that there is one.
        if structured {
            return Ok(entries);
        }
        if !reader.take(',') {
            reader.expect('}')?;
            break;
        }
    }
    match reader.peek() {
        None => Ok(entries),
        Some(_) => Err(reader.unexpected("nothing after the dictionary")),
    }
}

struct Reader<'t> {
    rest: &'t str,
}

impl Reader<'_> {
    fn peek(&mut self) -> Option<char> {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
        self.rest.chars().next()
    }

    fn take(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.rest = &self.rest[wanted.len_utf8()..];
        }
        found
    }

    fn expect(&mut self, wanted: char) -> Result<(), NpyError> {
        if self.take(wanted) {
            Ok(())
        } else {
            Err(self.unexpected(&format!("`{wanted}`")))
        }
    }

    fn unexpected(&mut self, wanted: &str) -> NpyError {
        let found = match self.peek() {
            Some(_) => {
                let shown: String = self.rest.chars().take(12).collect();
                format!("`{}`", shown.trim_end().escape_debug())
            }
            None => "its end".to_owned(),
        };
        NpyError::Header(format!("expected {wanted}, found {found}"))
    }

    fn word(&mut self, word: &str) -> bool {
        self.peek();
        match self.rest.strip_prefix(word) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn value(&mut self) -> Result<Literal, NpyError> {
        match self.peek() {
            Some('\'' | '"') => self.text().map(Literal::Text),
            Some('(') => self.tuple().map(Literal::Tuple),
            Some('[') => Ok(Literal::List),
            _ if self.word("True") => Ok(Literal::Bool(true)),
            _ if self.word("False") => Ok(Literal::Bool(false)),
            _ => Err(self.unexpected("a string, a tuple, True or False")),
        }
    }

    fn text(&mut self) -> Result<String, NpyError> {
        let quote = match self.peek() {
            Some(quote @ ('\'' | '"')) => quote,
            _ => return Err(self.unexpected("a string")),
        };
        let body = &self.rest[1..];
        let end = body
            .find(quote)
            .ok_or_else(|| NpyError::Header("a string does not end".to_owned()))?;
        let text = &body[..end];
        if text.contains('\\') {
            return Err(NpyError::Header(
                "a string has an escape sequence".to_owned(),
            ));
        }
        self.rest = &body[end + 1..];
        Ok(text.to_owned())
    }

    fn tuple(&mut self) -> Result<Vec<usize>, NpyError> {
        self.expect('(')?;
        let mut sizes = Vec::new();
        while !self.take(')') {
            self.peek();
            let digits = self.rest.bytes().take_while(u8::is_ascii_digit).count();
            if digits == 0 {
                return Err(self.unexpected("a size"));
            }
            let (number, rest) = self.rest.split_at(digits);
            let size = number
                .parse()
                .map_err(|_| NpyError::Header(format!("the size {number} is too large")))?;
            sizes.push(size);
            // Python 2 wrote long integers with an L.
            self.rest = rest.strip_prefix('L').unwrap_or(rest);
            if !self.take(',') {
                self.expect(')')?;
                break;
            }
        }
        Ok(sizes)
    }
}
