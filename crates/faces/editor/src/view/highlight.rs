//! Colours for code.

use super::theme;
use ratatui::text::{Line, Span};

/// Words of C, kernels, schedules and estimates that say what a line does.
const KEYWORDS: &[&str] = &[
    "for",
    "if",
    "else",
    "while",
    "return",
    "static",
    "const",
    "void",
    "int",
    "float",
    "double",
    "int64_t",
    "int32_t",
    "uint32_t",
    "uint64_t",
    "restrict",
    "extern",
    "typedef",
    "struct",
    "inline",
    "kernel",
    "loop",
    "store",
    "load",
    "yield",
    "parallel",
    "vectorize",
    "unroll",
    "share",
    "delegate",
    "loopwright",
    "schedule",
    "include",
    "define",
    "pragma",
];

/// A line of code with colours: comments, words, numbers.
pub(super) fn line(text: &str) -> Line<'_> {
    let mut spans = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_comment = rest.starts_with("//") || rest.starts_with("/*") || rest.starts_with("# ");
        if is_comment {
            spans.push(Span::styled(rest, theme::FAINT));
            break;
        }
        let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
        let starts = |c: char| c.is_alphanumeric() || c == '_';
        let length = match starts(first) {
            true => rest.find(|c| !is_word(c)),
            false => rest
                .find(|c| starts(c) || c == '/' || c == '#')
                .filter(|at| *at > 0),
        };
        // A slash or a hash that begins no comment stands for itself.
        let length = match length {
            None if !starts(first) && (first == '/' || first == '#') => first.len_utf8(),
            length => length.unwrap_or(rest.len()),
        };
        let (token, after) = rest.split_at(length);
        let style = match first {
            _ if first.is_ascii_digit() => theme::NUMBER,
            _ if KEYWORDS.contains(&token) => theme::KEYWORD,
            _ => ratatui::style::Style::new(),
        };
        spans.push(Span::styled(token, style));
        rest = after;
    }
    Line::from(spans)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost() {
        for text in [
            "",
            "  for (int64_t i = 0; i < n / 8; i += 8) { // tail",
            "a / b / c",
            "#include <math.h>",
            "# a note",
            "x = 1.5f; /* one */ y",
            "/",
            "%3: i, j/16 vectorize",
            "äöü → x/",
        ] {
            let line = line(text);
            let spans = line.spans.iter().map(|span| span.content.as_ref());
            assert_eq!(spans.collect::<String>(), text);
        }
        let styled = line("for x // c");
        let style = |text: &str| {
            let mut spans = styled.spans.iter();
            spans
                .find(|span| span.content == text)
                .map(|span| span.style)
        };
        assert_eq!(style("for"), Some(theme::KEYWORD));
        assert_eq!(style("// c"), Some(theme::FAINT));
    }
}
