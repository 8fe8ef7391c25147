//! A line of text that is being typed.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// A line, with a place in it where letters go.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Line {
    letters: Vec<char>,
    at: usize,
}

impl Line {
    /// A line with the place behind its text.
    pub(crate) fn new(text: &str) -> Line {
        let letters: Vec<char> = text.chars().collect();
        Line {
            at: letters.len(),
            letters,
        }
    }

    pub(crate) fn text(&self) -> String {
        self.letters.iter().collect()
    }

    /// How many letters are before the place.
    pub(crate) fn place(&self) -> usize {
        self.at
    }

    /// Types letters; those that are no text are left out.
    pub(crate) fn insert(&mut self, text: &str) {
        for letter in text.chars().filter(|letter| !letter.is_control()) {
            self.letters.insert(self.at, letter);
            self.at += 1;
        }
    }

    /// Does what a key does in a line; `false` where it does nothing there.
    pub(crate) fn key(&mut self, key: KeyEvent) -> bool {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('a') if control => self.at = 0,
            KeyCode::Char('e') if control => self.at = self.letters.len(),
            KeyCode::Char('u') if control => {
                self.letters.drain(..self.at);
                self.at = 0;
            }
            KeyCode::Char('w') if control => self.delete_word(),
            KeyCode::Char(_) if control || key.modifiers.contains(KeyModifiers::ALT) => {
                return false;
            }
            KeyCode::Char(letter) => {
                self.letters.insert(self.at, letter);
                self.at += 1;
            }
            KeyCode::Backspace => {
                if let Some(before) = self.at.checked_sub(1) {
                    self.letters.remove(before);
                    self.at = before;
                }
            }
            KeyCode::Delete => {
                if self.at < self.letters.len() {
                    self.letters.remove(self.at);
                }
            }
            KeyCode::Left => self.at = self.at.saturating_sub(1),
            KeyCode::Right => self.at = (self.at + 1).min(self.letters.len()),
            KeyCode::Home => self.at = 0,
            KeyCode::End => self.at = self.letters.len(),
            _ => return false,
        }
        true
    }

    fn delete_word(&mut self) {
        let end = self.at;
        while self.at > 0 && self.letters[self.at - 1].is_whitespace() {
            self.at -= 1;
        }
        while self.at > 0 && !self.letters[self.at - 1].is_whitespace() {
            self.at -= 1;
        }
        self.letters.drain(self.at..end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(line: &mut Line, codes: &[KeyCode]) {
        for code in codes {
            assert!(line.key(KeyEvent::new(*code, KeyModifiers::NONE)));
        }
    }

    fn control(line: &mut Line, letter: char) {
        let key = KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL);
        assert!(line.key(key), "ctrl-{letter}");
    }

    #[test]
    fn a_line_is_edited_at_its_place() {
        let mut line = Line::new("split C i");
        typed(&mut line, &[KeyCode::Left, KeyCode::Backspace]);
        assert_eq!((line.text().as_str(), line.place()), ("split Ci", 7));
        typed(&mut line, &[KeyCode::Delete, KeyCode::Char('é')]);
        assert_eq!((line.text().as_str(), line.place()), ("split Cé", 8));
        typed(&mut line, &[KeyCode::Delete, KeyCode::Right]);
        assert_eq!(line.place(), 8, "nothing is behind the end");
        typed(&mut line, &[KeyCode::Home, KeyCode::Backspace]);
        assert_eq!((line.text().as_str(), line.place()), ("split Cé", 0));
    }

    #[test]
    fn words_and_lines_are_deleted() {
        let mut line = Line::new("split C  ");
        control(&mut line, 'w');
        assert_eq!(line.text(), "split ");
        control(&mut line, 'u');
        assert_eq!((line.text().as_str(), line.place()), ("", 0));
        control(&mut line, 'w');
        assert_eq!(line.text(), "");
    }

    #[test]
    fn what_is_pasted_has_no_control_letters() {
        let mut line = Line::new("ad");
        typed(&mut line, &[KeyCode::Left]);
        line.insert("b\x1b\nc");
        assert_eq!((line.text().as_str(), line.place()), ("abcd", 3));
    }
}
