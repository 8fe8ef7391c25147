//! Walking over tokens.

use crate::diagnostic::Diagnostic;
use crate::lexer::{Token, lex};
use crate::source::{Source, Span};

/// A position in a source's tokens.
#[derive(Clone, Debug)]
pub struct Cursor {
    tokens: Vec<(Token, Span)>,
    at: usize,
    depth: usize,
}

/// How deep expressions and blocks may nest: far above anything a person writes, far below what the
/// stack holds.
const MAX_DEPTH: usize = 200;

impl Cursor {
    /// The start of a source.
    pub fn new(source: &Source) -> Result<Cursor, Diagnostic> {
        Ok(Cursor {
            tokens: lex(source)?,
            at: 0,
            depth: 0,
        })
    }

    /// The next token.
    pub fn peek(&self) -> &Token {
        &self.tokens[self.at].0
    }

    /// The token after `ahead` others (0 is [`Cursor::peek`]).
    pub fn peek_at(&self, ahead: usize) -> &Token {
        let last = self.tokens.len() - 1;
        &self.tokens[(self.at + ahead).min(last)].0
    }

    /// The place of the next token.
    pub fn span(&self) -> Span {
        self.tokens[self.at].1
    }

    /// The place of the token before.
    pub fn previous_span(&self) -> Span {
        self.tokens[self.at.saturating_sub(1)].1
    }

    /// Takes the next token. The end of the source is never passed.
    pub fn advance(&mut self) -> (Token, Span) {
        let token = self.tokens[self.at].clone();
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
        token
    }

    /// Takes the next token if it is this one.
    pub fn take(&mut self, token: &Token) -> bool {
        let found = self.peek() == token;
        if found {
            self.advance();
        }
        found
    }

    /// Takes the next token if it is this name.
    pub fn take_word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Token::Name(name) if name == word);
        if found {
            self.advance();
        }
        found
    }

    /// Takes this token or says that it was expected.
    pub fn expect(&mut self, token: Token) -> Result<Span, Diagnostic> {
        if *self.peek() == token {
            Ok(self.advance().1)
        } else {
            Err(self.expected(&token.to_string()))
        }
    }

    /// Takes this name or says that it was expected.
    pub fn expect_word(&mut self, word: &str) -> Result<Span, Diagnostic> {
        let span = self.span();
        if self.take_word(word) {
            Ok(span)
        } else {
            Err(self.expected(&format!("`{word}`")))
        }
    }

    /// Takes a name; `what` says what it would be the name of.
    pub fn expect_name(&mut self, what: &str) -> Result<(String, Span), Diagnostic> {
        match self.peek() {
            Token::Name(name) => {
                let name = name.clone();
                let (_, span) = self.advance();
                Ok((name, span))
            }
            _ => Err(self.expected(what)),
        }
    }

    /// Takes a name with this sigil.
    pub fn expect_sigil(&mut self, sigil: char, what: &str) -> Result<(String, Span), Diagnostic> {
        match self.peek() {
            Token::Sigil(found, name) if *found == sigil => {
                let name = name.clone();
                let (_, span) = self.advance();
                Ok((name, span))
            }
            _ => Err(self.expected(&format!("{what} (`{sigil}name`)"))),
        }
    }

    /// Takes an integer with an optional minus sign.
    pub fn expect_integer(&mut self, what: &str) -> Result<(i64, Span), Diagnostic> {
        let start = self.span();
        let negative = self.take(&Token::Minus);
        let Token::Number(digits) = self.peek() else {
            return Err(self.expected(what));
        };
        let text = if negative {
            format!("-{digits}")
        } else {
            digits.clone()
        };
        let (_, end) = self.advance();
        let span = start.to(end);
        match text.parse() {
            Ok(value) => Ok((value, span)),
            Err(_) => Err(Diagnostic::new(
                span,
                format!("{what} must be an integer that fits 64 bits, not `{text}`"),
            )),
        }
    }

    /// Takes the end of a statement: a line break or `;`.
    pub fn expect_line_end(&mut self) -> Result<(), Diagnostic> {
        match self.peek() {
            Token::NewLine | Token::Semicolon => {
                self.advance();
                Ok(())
            }
            Token::End => Ok(()),
            _ => Err(self.expected("the end of the line")),
        }
    }

    /// Takes any line breaks and `;`.
    pub fn skip_lines(&mut self) {
        while matches!(self.peek(), Token::NewLine | Token::Semicolon) {
            self.advance();
        }
    }

    /// Whether the source has been read to its end.
    pub fn at_end(&self) -> bool {
        matches!(self.peek(), Token::End)
    }

    /// The error that says what was expected here.
    pub fn expected(&self, what: &str) -> Diagnostic {
        Diagnostic::new(
            self.span(),
            format!("expected {what}, found {}", self.peek()),
        )
    }

    /// Enters a nested expression or block, or says that it nests too deep; pair with
    /// [`Cursor::leave`].
    pub fn enter(&mut self) -> Result<(), Diagnostic> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Diagnostic::new(
                self.span(),
                format!("nested more than {MAX_DEPTH} levels deep"),
            )
            .help("give an inner part a name of its own"));
        }
        Ok(())
    }

    /// Leaves a nested expression or block.
    pub fn leave(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    /// Reads the header line `loopwright <form> <version>` that starts every file.
    pub fn expect_header(&mut self, form: &str, version: i64) -> Result<(), Diagnostic> {
        self.skip_lines();
        let help = format!("a file starts with the line `loopwright {form} {version}`");
        self.expect_word("loopwright")
            .and_then(|_| self.expect_word(form))
            .map_err(|error| error.help(help))?;
        let (found, span) = self.expect_integer("the format's version")?;
        if found != version {
            return Err(Diagnostic::new(
                span,
                format!("this is {form} format {found}, and this program reads format {version}"),
            )
            .help("use the release of Loopwright that wrote the file, or write it again"));
        }
        self.expect_line_end()
    }
}
