//! Text that comes from files, on its way to a terminal.
//!
//! A terminal obeys what it is given: with the right bytes in a name, a file could move the cursor, hide a line, answer
//! in the user's place, or have text read backwards. So everything that a terminal shows goes through one function, which
//! shows such characters instead of sending them.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Whether a terminal would do something else than show the character: control characters (with C1, which begin sequences
/// like ESC does), marks and overrides of the writing direction, separators of lines, and characters that cannot be seen.
///
/// Line feeds and tabs are among them; [`escape()`] leaves these two as they are.
pub fn is_obeyed(c: char) -> bool {
    matches!(c,
        '\0'..='\x1f' | '\x7f'..='\u{9f}'
        // Marks, embeddings, overrides and isolates of direction.
        | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{206f}'
        // Separators, and what has no width.
        | '\u{2028}' | '\u{2029}' | '\u{200b}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}'
        // What Unicode promises never to be a character.
        | '\u{fdd0}'..='\u{fdef}')
}

/// The text with every character that a terminal would obey written as `\u{1b}`. Line feeds and tabs stay.
///
/// ```
/// use loopwright_text::escape;
///
/// assert_eq!(escape("a\tb\n"), "a\tb\n");
/// assert_eq!(escape("\x1b[2Jcleared"), r"\u{1b}[2Jcleared");
/// assert_eq!(escape("a\u{202e}b"), r"a\u{202e}b");
/// ```
pub fn escape(text: &str) -> Cow<'_, str> {
    escaped(text, |c| is_obeyed(c) && c != '\n' && c != '\t')
}

/// The same for a text that has to stay on its line: line feeds and tabs are written as `\n` and `\t`.
///
/// ```
/// assert_eq!(loopwright_text::escape_line("a\nerror: b"), r"a\nerror: b");
/// ```
pub fn escape_line(text: &str) -> Cow<'_, str> {
    escaped(text, is_obeyed)
}

fn escaped(text: &str, hidden: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\n' if hidden(c) => shown.push_str("\\n"),
            '\t' if hidden(c) => shown.push_str("\\t"),
            c if hidden(c) => {
                // Writing to a string cannot fail.
                let _ = write!(shown, "\\u{{{:x}}}", u32::from(c));
            }
            c => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_left_and_nothing_else_is_changed() {
        for code in 0..=0x0010_ffff {
            let Some(c) = char::from_u32(code) else {
                continue;
            };
            let text = format!("a{c}b");
            let shown = escape_line(&text);
            assert!(!shown.contains(is_obeyed), "{code:x}");
            assert_eq!(shown == text, !is_obeyed(c), "{code:x}");
            assert!(!c.is_control() || is_obeyed(c), "{code:x}");
        }
    }
}
