//! A list to choose from.

use crate::line::Line;
use loopwright::looptree::Mutation;
use ratatui::crossterm::event::{KeyCode, KeyEvent};

/// A line of a menu.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Item {
    pub(crate) text: String,
    /// What else is to be said, shown fainter.
    pub(crate) note: String,
    /// What is done where it is chosen. One mutation is done for all steps that share the loop; several
    /// are done as they stand.
    pub(crate) mutations: Vec<Mutation>,
    /// Whether it concerns the place of the cursor; others are shown on demand.
    pub(crate) here: bool,
}

/// A list, the letters that narrow it, and the line that is marked.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Menu {
    pub(crate) title: String,
    items: Vec<Item>,
    pub(crate) filter: Line,
    marked: usize,
    /// Whether lines are shown that are about other places.
    everywhere: bool,
}

/// What a key did.
#[derive(PartialEq, Debug)]
pub(crate) enum Choice {
    /// The list stays.
    Open,
    /// A line was chosen.
    Made(Item),
    /// It is closed.
    Cancelled,
}

impl Menu {
    pub(crate) fn new(title: impl Into<String>, items: Vec<Item>) -> Menu {
        let everywhere = !items.iter().any(|item| item.here);
        Menu {
            title: title.into(),
            items,
            filter: Line::default(),
            marked: 0,
            everywhere,
        }
    }

    /// The same with the line marked for which this holds.
    pub(crate) fn marking(mut self, wanted: impl Fn(&Item) -> bool) -> Menu {
        let at = self.shown().iter().position(|item| wanted(item));
        self.marked = at.unwrap_or(0);
        self
    }

    /// The lines that contain all words of the filter.
    pub(crate) fn shown(&self) -> Vec<&Item> {
        let filter = self.filter.text().to_lowercase();
        let words: Vec<&str> = filter.split_whitespace().collect();
        let fits = |item: &&Item| {
            let text = item.text.to_lowercase();
            (item.here || self.everywhere) && words.iter().all(|word| text.contains(word))
        };
        self.items.iter().filter(fits).collect()
    }

    /// The number of the marked line.
    pub(crate) fn marked(&self) -> usize {
        self.marked
    }

    /// How many lines are about other places.
    pub(crate) fn elsewhere(&self) -> usize {
        self.items.iter().filter(|item| !item.here).count()
    }

    pub(crate) fn is_everywhere(&self) -> bool {
        self.everywhere
    }

    pub(crate) fn key(&mut self, key: KeyEvent) -> Choice {
        let count = self.shown().len();
        match key.code {
            KeyCode::Esc => return Choice::Cancelled,
            KeyCode::Enter => return self.choose(self.marked),
            KeyCode::Down => self.step(1),
            KeyCode::Up => self.step(-1),
            KeyCode::PageDown => self.step(10),
            KeyCode::PageUp => self.step(-10),
            KeyCode::Home => self.marked = 0,
            KeyCode::End => self.marked = count.saturating_sub(1),
            KeyCode::Tab => {
                self.everywhere = !self.everywhere;
                self.marked = 0;
            }
            _ => {
                if self.filter.key(key) {
                    self.marked = 0;
                }
            }
        }
        Choice::Open
    }

    /// Chooses a line by its number.
    pub(crate) fn choose(&self, at: usize) -> Choice {
        match self.shown().get(at) {
            Some(item) => Choice::Made((*item).clone()),
            None => Choice::Open,
        }
    }

    /// Marks a line further down or up; the list does not go round.
    pub(crate) fn step(&mut self, by: isize) {
        let last = self.shown().len().saturating_sub(1);
        self.marked = self.marked.saturating_add_signed(by).min(last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::crossterm::event::KeyModifiers;

    fn item(text: &str, here: bool) -> Item {
        Item {
            text: text.to_owned(),
            note: String::new(),
            mutations: Vec::new(),
            here,
        }
    }

    fn menu() -> Menu {
        let items = vec![
            item("split C i 2", true),
            item("split C i 16", true),
            item("merge D i/8", false),
        ];
        Menu::new("", items)
    }

    fn press(menu: &mut Menu, code: KeyCode) -> Choice {
        menu.key(KeyEvent::new(code, KeyModifiers::NONE))
    }

    #[test]
    fn typing_narrows_the_list() {
        let mut menu = menu();
        assert_eq!(menu.shown().len(), 2);
        press(&mut menu, KeyCode::Down);
        press(&mut menu, KeyCode::Down);
        assert_eq!(menu.marked(), 1, "it ends at the last line");
        for letter in "C 16".chars() {
            press(&mut menu, KeyCode::Char(letter));
        }
        assert_eq!(menu.marked(), 0);
        let chosen = press(&mut menu, KeyCode::Enter);
        assert_eq!(chosen, Choice::Made(item("split C i 16", true)));
        press(&mut menu, KeyCode::Char('7'));
        assert_eq!(press(&mut menu, KeyCode::Enter), Choice::Open);
        assert_eq!(press(&mut menu, KeyCode::Esc), Choice::Cancelled);
    }

    #[test]
    fn other_places_are_shown_on_demand() {
        let mut menu = menu();
        press(&mut menu, KeyCode::Tab);
        assert_eq!(menu.shown().len(), 3);
        assert_eq!(menu.elsewhere(), 1);
        let alone = Menu::new("", vec![item("merge D i/8", false)]);
        assert_eq!(alone.shown().len(), 1, "an empty list helps nobody");
    }
}
