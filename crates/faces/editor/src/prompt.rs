//! A question that is answered with a line of text.

use crate::line::Line;
use loopwright::graph::NodeId;
use loopwright::looptree::LoopName;
use ratatui::crossterm::event::{KeyCode, KeyEvent};
use std::ops::Range;

/// What the answer is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    /// The factor that a loop is split by.
    Split {
        /// The step.
        node: NodeId,
        /// Its loop.
        name: LoopName,
    },
    /// A mutation.
    Command,
    /// The file that the schedule is written to.
    Save,
    /// The file that a schedule is read from.
    Load,
}

/// The question, and the answer so far.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Prompt {
    pub(crate) purpose: Purpose,
    pub(crate) title: String,
    pub(crate) line: Line,
    /// Answers that make sense.
    suggestions: Vec<String>,
    /// What was typed, while suggestions that begin so are gone through, and which of them is shown.
    completing: Option<(String, usize)>,
    /// What is wrong with the answer, and with which of its letters.
    pub(crate) error: Option<(Range<usize>, String)>,
}

/// What a key did.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    /// The question stays.
    Open,
    /// It is answered.
    Given,
    /// It is taken back.
    Cancelled,
}

impl Prompt {
    pub(crate) fn new(purpose: Purpose, title: impl Into<String>, text: &str) -> Prompt {
        Prompt {
            purpose,
            title: title.into(),
            line: Line::new(text),
            suggestions: Vec::new(),
            completing: None,
            error: None,
        }
    }

    pub(crate) fn with_suggestions(mut self, suggestions: Vec<String>) -> Prompt {
        self.suggestions = suggestions;
        self
    }

    /// The suggestions that go on from what was typed, and which of them is shown.
    pub(crate) fn matching(&self) -> (Vec<&str>, Option<usize>) {
        let (typed, shown) = match &self.completing {
            Some((typed, shown)) => (typed.clone(), Some(*shown)),
            None => (self.line.text(), None),
        };
        let found = self.suggestions.iter().map(String::as_str);
        (
            found.filter(|text| text.starts_with(&typed)).collect(),
            shown,
        )
    }

    pub(crate) fn key(&mut self, key: KeyEvent) -> Answer {
        match key.code {
            KeyCode::Esc => return Answer::Cancelled,
            KeyCode::Enter => return Answer::Given,
            KeyCode::Tab | KeyCode::Down => self.complete(1),
            KeyCode::BackTab | KeyCode::Up => self.complete(-1),
            _ => {
                if self.line.key(key) {
                    self.completing = None;
                    self.error = None;
                }
            }
        }
        Answer::Open
    }

    pub(crate) fn paste(&mut self, text: &str) {
        self.line.insert(text);
        self.completing = None;
        self.error = None;
    }

    /// Shows the next suggestion, or the one before.
    fn complete(&mut self, by: isize) {
        let (found, shown) = self.matching();
        if found.is_empty() {
            return;
        }
        let count = found.len() as isize;
        let next = match shown {
            Some(shown) => (shown as isize + by).rem_euclid(count),
            None if by > 0 => 0,
            None => count - 1,
        };
        let line = Line::new(found[next as usize]);
        let typed = match self.completing.take() {
            Some((typed, _)) => typed,
            None => self.line.text(),
        };
        self.completing = Some((typed, next as usize));
        self.line = line;
        self.error = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::crossterm::event::KeyModifiers;

    fn press(prompt: &mut Prompt, code: KeyCode) -> Answer {
        prompt.key(KeyEvent::new(code, KeyModifiers::NONE))
    }

    #[test]
    fn suggestions_go_on_from_what_was_typed() {
        let suggestions = ["2", "16", "128"].map(str::to_owned).to_vec();
        let mut prompt = Prompt::new(Purpose::Command, "", "").with_suggestions(suggestions);
        press(&mut prompt, KeyCode::Char('1'));
        assert_eq!(prompt.matching(), (vec!["16", "128"], None));
        let mut shown = |code| {
            assert_eq!(press(&mut prompt, code), Answer::Open);
            prompt.line.text()
        };
        assert_eq!(shown(KeyCode::Tab), "16");
        assert_eq!(shown(KeyCode::Tab), "128");
        assert_eq!(shown(KeyCode::Tab), "16", "it goes round");
        assert_eq!(shown(KeyCode::BackTab), "128");
        // Typing goes on from what is shown.
        assert_eq!(shown(KeyCode::Backspace), "12");
        assert_eq!(shown(KeyCode::Tab), "128");
        assert_eq!(shown(KeyCode::Char('0')), "1280");
        assert_eq!(shown(KeyCode::Tab), "1280", "nothing goes on from it");
    }

    #[test]
    fn typing_takes_an_error_away() {
        let mut prompt = Prompt::new(Purpose::Command, "", "spit");
        prompt.error = Some((0..4, "no change".to_owned()));
        assert_eq!(press(&mut prompt, KeyCode::F(5)), Answer::Open);
        assert!(prompt.error.is_some());
        press(&mut prompt, KeyCode::Left);
        assert_eq!(prompt.error, None);
        assert_eq!(press(&mut prompt, KeyCode::Enter), Answer::Given);
        assert_eq!(press(&mut prompt, KeyCode::Esc), Answer::Cancelled);
    }
}
