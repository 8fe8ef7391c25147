//! The token language of all text forms.

use crate::diagnostic::Diagnostic;
use crate::source::{Source, Span};
use std::fmt;

/// A token. Line breaks are tokens: statements end with their line, unless a bracket is open.
#[derive(Clone, PartialEq, Debug)]
pub enum Token {
    /// A name: a letter or `_`, then letters, digits, `_` and `'`; `.` may join parts.
    Name(String),
    /// A value's name with its sigil: `%x`, `@f`, `$s`, `#d`; the character and what follows it.
    Sigil(char, String),
    /// A number as it was written: digits, optional fraction, exponent or `0x` form, and an
    /// optional dtype suffix is left to the parser as part of the text (`1.5f16`).
    Number(String),
    /// A string in double quotes, unescaped.
    Text(String),
    /// `(`
    Open,
    /// `)`
    Close,
    /// `[`
    OpenSquare,
    /// `]`
    CloseSquare,
    /// `{`
    OpenBrace,
    /// `}`
    CloseBrace,
    /// `,`
    Comma,
    /// `:`
    Colon,
    /// `;`
    Semicolon,
    /// `=`
    Equals,
    /// `->`
    Arrow,
    /// `..`
    DotDot,
    /// `.`
    Dot,
    /// `+`
    Plus,
    /// `-`
    Minus,
    /// `*`
    Star,
    /// `**`
    StarStar,
    /// `/`
    Slash,
    /// `//`
    SlashSlash,
    /// `%`
    Percent,
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterEqual,
    /// `==`
    EqualEqual,
    /// `!=`
    NotEqual,
    /// `!`
    Bang,
    /// `&`
    Ampersand,
    /// `|`
    Pipe,
    /// `^`
    Caret,
    /// `<<`
    ShiftLeft,
    /// `>>`
    ShiftRight,
    /// `@`
    At,
    /// `?`
    Question,
    /// The end of a line that holds at least one token.
    NewLine,
    /// The end of the source.
    End,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Token::Name(name) => return write!(f, "`{name}`"),
            Token::Sigil(sigil, name) => return write!(f, "`{sigil}{name}`"),
            Token::Number(number) => return write!(f, "`{number}`"),
            Token::Text(text) => return write!(f, "{text:?}"),
            Token::NewLine => return f.write_str("the end of the line"),
            Token::End => return f.write_str("the end of the file"),
            Token::Open => "(",
            Token::Close => ")",
            Token::OpenSquare => "[",
            Token::CloseSquare => "]",
            Token::OpenBrace => "{",
            Token::CloseBrace => "}",
            Token::Comma => ",",
            Token::Colon => ":",
            Token::Semicolon => ";",
            Token::Equals => "=",
            Token::Arrow => "->",
            Token::DotDot => "..",
            Token::Dot => ".",
            Token::Plus => "+",
            Token::Minus => "-",
            Token::Star => "*",
            Token::StarStar => "**",
            Token::Slash => "/",
            Token::SlashSlash => "//",
            Token::Percent => "%",
            Token::Less => "<",
            Token::LessEqual => "<=",
            Token::Greater => ">",
            Token::GreaterEqual => ">=",
            Token::EqualEqual => "==",
            Token::NotEqual => "!=",
            Token::Bang => "!",
            Token::Ampersand => "&",
            Token::Pipe => "|",
            Token::Caret => "^",
            Token::ShiftLeft => "<<",
            Token::ShiftRight => ">>",
            Token::At => "@",
            Token::Question => "?",
        };
        write!(f, "`{text}`")
    }
}

/// Splits a source into tokens; the last one is [`Token::End`].
///
/// A comment runs from `#` to the end of the line. Inside `(` and `[` line breaks are white space.
/// `%name`, `@name` and `$name` are one token when the sigil is followed directly by a letter,
/// digit or `_` and does not follow a value, so that `a % b` and `a %b` stay remainders.
pub fn lex(source: &Source) -> Result<Vec<(Token, Span)>, Diagnostic> {
    let text = source.text();
    if text.len() >= u32::MAX as usize {
        return Err(Diagnostic::new(
            Span::default(),
            "the source is larger than 4 GiB",
        ));
    }
    let bytes = text.as_bytes();
    let mut tokens: Vec<(Token, Span)> = Vec::with_capacity(bytes.len() / 3 + 1);
    let mut depth = 0usize;
    let mut at = 0usize;
    while at < bytes.len() {
        let start = at;
        let byte = bytes[at];
        let next = bytes.get(at + 1).copied().unwrap_or(0);
        match byte {
            b' ' | b'\t' | b'\r' => {
                at += 1;
                continue;
            }
            b'\n' => {
                at += 1;
                let blank = matches!(tokens.last(), None | Some((Token::NewLine, _)));
                if depth == 0 && !blank {
                    tokens.push((Token::NewLine, Span::new(start, at)));
                }
                continue;
            }
            b'#' => {
                while at < bytes.len() && bytes[at] != b'\n' {
                    at += 1;
                }
                continue;
            }
            b'"' => {
                let (value, end) = string(text, at)?;
                at = end;
                tokens.push((Token::Text(value), Span::new(start, at)));
                continue;
            }
            b'0'..=b'9' => {
                at = number_end(bytes, at);
                tokens.push((
                    Token::Number(text[start..at].to_owned()),
                    Span::new(start, at),
                ));
                continue;
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                at = name_end(bytes, at);
                tokens.push((
                    Token::Name(text[start..at].to_owned()),
                    Span::new(start, at),
                ));
                continue;
            }
            b'%' | b'@' | b'$'
                if (next.is_ascii_alphanumeric() || next == b'_')
                    && (byte != b'%' || !follows_value(&tokens)) =>
            {
                at = name_end(bytes, at + 1);
                tokens.push((
                    Token::Sigil(byte as char, text[start + 1..at].to_owned()),
                    Span::new(start, at),
                ));
                continue;
            }
            _ => {}
        }
        let (token, length) = match (byte, next) {
            (b'-', b'>') => (Token::Arrow, 2),
            (b'.', b'.') => (Token::DotDot, 2),
            (b'*', b'*') => (Token::StarStar, 2),
            (b'/', b'/') => (Token::SlashSlash, 2),
            (b'<', b'<') => (Token::ShiftLeft, 2),
            (b'>', b'>') => (Token::ShiftRight, 2),
            (b'<', b'=') => (Token::LessEqual, 2),
            (b'>', b'=') => (Token::GreaterEqual, 2),
            (b'=', b'=') => (Token::EqualEqual, 2),
            (b'!', b'=') => (Token::NotEqual, 2),
            (b'(', _) => (Token::Open, 1),
            (b')', _) => (Token::Close, 1),
            (b'[', _) => (Token::OpenSquare, 1),
            (b']', _) => (Token::CloseSquare, 1),
            (b'{', _) => (Token::OpenBrace, 1),
            (b'}', _) => (Token::CloseBrace, 1),
            (b',', _) => (Token::Comma, 1),
            (b':', _) => (Token::Colon, 1),
            (b';', _) => (Token::Semicolon, 1),
            (b'=', _) => (Token::Equals, 1),
            (b'.', _) => (Token::Dot, 1),
            (b'+', _) => (Token::Plus, 1),
            (b'-', _) => (Token::Minus, 1),
            (b'*', _) => (Token::Star, 1),
            (b'/', _) => (Token::Slash, 1),
            (b'%', _) => (Token::Percent, 1),
            (b'<', _) => (Token::Less, 1),
            (b'>', _) => (Token::Greater, 1),
            (b'!', _) => (Token::Bang, 1),
            (b'&', _) => (Token::Ampersand, 1),
            (b'|', _) => (Token::Pipe, 1),
            (b'^', _) => (Token::Caret, 1),
            (b'@', _) => (Token::At, 1),
            (b'?', _) => (Token::Question, 1),
            _ => {
                let width = text[at..].chars().next().map_or(1, char::len_utf8);
                let span = Span::new(at, at + width);
                return Err(Diagnostic::new(
                    span,
                    format!("unexpected character {:?}", source.slice(span)),
                )
                .help("comments start with `#`; names are ASCII letters, digits and `_`"));
            }
        };
        match token {
            Token::Open | Token::OpenSquare => depth += 1,
            Token::Close | Token::CloseSquare => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += length;
        tokens.push((token, Span::new(start, at)));
    }
    if !matches!(tokens.last(), None | Some((Token::NewLine, _))) {
        tokens.push((Token::NewLine, Span::new(at, at)));
    }
    tokens.push((Token::End, Span::new(at, at)));
    Ok(tokens)
}

/// Whether the last token ends a value, so that a `%` after it is the remainder operator.
fn follows_value(tokens: &[(Token, Span)]) -> bool {
    matches!(
        tokens.last(),
        Some((
            Token::Name(_)
                | Token::Number(_)
                | Token::Close
                | Token::CloseSquare
                | Token::Sigil(..),
            _
        ))
    )
}

fn name_end(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() {
        let joins = bytes[at] == b'.'
            && bytes
                .get(at + 1)
                .is_some_and(|next| next.is_ascii_alphabetic() || *next == b'_');
        if bytes[at].is_ascii_alphanumeric() || matches!(bytes[at], b'_' | b'\'') || joins {
            at += 1;
        } else {
            break;
        }
    }
    at
}

fn number_end(bytes: &[u8], mut at: usize) -> usize {
    if bytes[at] == b'0' && matches!(bytes.get(at + 1), Some(b'x')) {
        at += 2;
        while at < bytes.len() && bytes[at].is_ascii_hexdigit() {
            at += 1;
        }
        return at;
    }
    while at < bytes.len() {
        let digit = |i: usize| bytes.get(i).is_some_and(u8::is_ascii_digit);
        match bytes[at] {
            b'e' | b'E' if matches!(bytes.get(at + 1), Some(b'+' | b'-')) && digit(at + 2) => {
                at += 2;
            }
            b'.' if digit(at + 1) => at += 1,
            c if c.is_ascii_alphanumeric() || c == b'_' => at += 1,
            _ => break,
        }
    }
    at
}

fn string(text: &str, open: usize) -> Result<(String, usize), Diagnostic> {
    let mut value = String::new();
    let mut chars = text[open + 1..].char_indices();
    while let Some((offset, c)) = chars.next() {
        match c {
            '"' => return Ok((value, open + 1 + offset + 1)),
            '\n' => break,
            '\\' => match chars.next() {
                Some((_, 'n')) => value.push('\n'),
                Some((_, 't')) => value.push('\t'),
                Some((_, c @ ('"' | '\\'))) => value.push(c),
                _ => {
                    let at = open + 1 + offset;
                    return Err(Diagnostic::new(
                        Span::new(at, at + 1),
                        "unknown escape in a string",
                    )
                    .help("write \\n, \\t, \\\" or \\\\"));
                }
            },
            c => value.push(c),
        }
    }
    Err(
        Diagnostic::new(Span::new(open, open + 1), "this string is not closed")
            .help("a string ends with `\"` on its own line"),
    )
}
