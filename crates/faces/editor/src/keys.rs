//! What can be done, and with which keys: one table, from which come what keys do, the help page, and the
//! table in the book.

use crate::pane::Tab;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::fmt::Write as _;

/// Something that can be done while the tree is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    Up,
    Down,
    Around,
    Inside,
    First,
    Last,
    PageUp,
    PageDown,
    Split,
    Merge,
    SwapOut,
    SwapIn,
    Fuse,
    Unfuse,
    InlineOrStore,
    Annotate,
    Parallel,
    Vectorize,
    Unroll,
    MoveDown,
    MoveUp,
    Delegate,
    Legal,
    Command,
    Undo,
    Redo,
    Save,
    Load,
    Measure,
    Live,
    Best,
    OtherSide,
    Show(Tab),
    Help,
    Quit,
}

/// A key, with the control key held or not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Key {
    code: KeyCode,
    control: bool,
}

impl Key {
    /// The key as people write it.
    pub(crate) fn text(self) -> String {
        let name = match self.code {
            KeyCode::Char(' ') => "space".to_owned(),
            KeyCode::Char(letter) => letter.to_string(),
            KeyCode::Up => "↑".to_owned(),
            KeyCode::Down => "↓".to_owned(),
            KeyCode::Left => "←".to_owned(),
            KeyCode::Right => "→".to_owned(),
            KeyCode::PageUp => "PgUp".to_owned(),
            KeyCode::PageDown => "PgDn".to_owned(),
            KeyCode::F(number) => format!("F{number}"),
            other => format!("{other:?}"),
        };
        match self.control {
            true => format!("ctrl-{name}"),
            false => name,
        }
    }

    fn is(self, event: KeyEvent) -> bool {
        let control = event.modifiers.contains(KeyModifiers::CONTROL);
        let alt = event.modifiers.contains(KeyModifiers::ALT);
        event.code == self.code && control == self.control && !alt
    }

    /// The event that pressing it gives.
    #[cfg(test)]
    pub(crate) fn event(self) -> KeyEvent {
        let modifiers = match self.control {
            true => KeyModifiers::CONTROL,
            false => KeyModifiers::NONE,
        };
        KeyEvent::new(self.code, modifiers)
    }
}

const fn key(letter: char) -> Key {
    named(KeyCode::Char(letter))
}

const fn named(code: KeyCode) -> Key {
    Key {
        code,
        control: false,
    }
}

const fn control(letter: char) -> Key {
    Key {
        code: KeyCode::Char(letter),
        control: true,
    }
}

/// An action, its keys, and what it does.
pub(crate) struct Binding {
    pub(crate) action: Action,
    pub(crate) keys: &'static [Key],
    pub(crate) help: &'static str,
}

/// Actions that belong together.
pub(crate) struct Section {
    pub(crate) title: &'static str,
    pub(crate) bindings: &'static [Binding],
}

const fn bind(action: Action, keys: &'static [Key], help: &'static str) -> Binding {
    Binding { action, keys, help }
}

/// Everything that keys do while the tree is shown.
pub(crate) const SECTIONS: &[Section] = &[
    Section {
        title: "Loops",
        bindings: &[
            bind(
                Action::Split,
                &[key('s')],
                "split the loop; asks for the factor",
            ),
            bind(
                Action::Merge,
                &[key('m')],
                "merge the loop with the next one over its dimension",
            ),
            bind(
                Action::SwapOut,
                &[key('<')],
                "swap the loop with the one around it",
            ),
            bind(
                Action::SwapIn,
                &[key('>')],
                "swap the loop with the one right inside it",
            ),
            bind(
                Action::Parallel,
                &[key('p')],
                "run the iterations on several threads, or no more",
            ),
            bind(
                Action::Vectorize,
                &[key('v')],
                "run the iterations in lanes of a vector, or no more",
            ),
            bind(
                Action::Unroll,
                &[key('r')],
                "write the iterations out, or no more",
            ),
            bind(
                Action::Annotate,
                &[key('a')],
                "choose how the iterations run",
            ),
        ],
    },
    Section {
        title: "Steps",
        bindings: &[
            bind(
                Action::Fuse,
                &[key('f')],
                "share one loop more with the step before",
            ),
            bind(
                Action::Unfuse,
                &[key('u')],
                "share one loop less with the step before",
            ),
            bind(
                Action::InlineOrStore,
                &[key('i')],
                "compute the step where it is read, or store what it computes inline",
            ),
            bind(Action::MoveDown, &[key('J')], "run it after the next step"),
            bind(Action::MoveUp, &[key('K')], "run it before the step above"),
            bind(Action::Delegate, &[key('d')], "hand it to another backend"),
        ],
    },
    Section {
        title: "Any change",
        bindings: &[
            bind(
                Action::Legal,
                &[key('l')],
                "list every change that is legal here",
            ),
            bind(
                Action::Command,
                &[key(':')],
                "type a change: split C i 8; of that step alone",
            ),
            bind(Action::Undo, &[key('z'), control('z')], "undo"),
            bind(Action::Redo, &[key('y'), control('y')], "redo"),
            bind(
                Action::Best,
                &[key('b')],
                "go to the fastest schedule measured so far",
            ),
        ],
    },
    Section {
        title: "Look",
        bindings: &[
            bind(Action::Up, &[named(KeyCode::Up), key('k')], "up"),
            bind(Action::Down, &[named(KeyCode::Down), key('j')], "down"),
            bind(
                Action::Around,
                &[named(KeyCode::Left)],
                "to the loop around",
            ),
            bind(
                Action::Inside,
                &[named(KeyCode::Right)],
                "to what is inside",
            ),
            bind(
                Action::First,
                &[key('g'), named(KeyCode::Home)],
                "to the first line",
            ),
            bind(
                Action::Last,
                &[key('G'), named(KeyCode::End)],
                "to the last line",
            ),
            bind(
                Action::PageUp,
                &[named(KeyCode::PageUp)],
                "a page up, in the code where it is shown",
            ),
            bind(
                Action::PageDown,
                &[named(KeyCode::PageDown)],
                "a page down, in the code where it is shown",
            ),
            bind(
                Action::OtherSide,
                &[named(KeyCode::Tab)],
                "the tree or the code; where both are shown, the next tab",
            ),
            bind(
                Action::Show(Tab::Code),
                &[key('1')],
                "show the generated code",
            ),
            bind(Action::Show(Tab::Kernel), &[key('2')], "show the kernel"),
            bind(
                Action::Show(Tab::Schedule),
                &[key('3')],
                "show the schedule's text",
            ),
            bind(
                Action::Show(Tab::Estimate),
                &[key('4')],
                "show what the cost model says",
            ),
        ],
    },
    Section {
        title: "Session",
        bindings: &[
            bind(Action::Measure, &[key('t')], "measure now"),
            bind(
                Action::Live,
                &[key('T')],
                "measure after every change, or no more",
            ),
            bind(
                Action::Save,
                &[key('w'), control('s')],
                "save as a schedule file",
            ),
            bind(Action::Load, &[key('o')], "open a schedule file"),
            bind(Action::Help, &[key('?'), named(KeyCode::F(1))], "this page"),
            bind(
                Action::Quit,
                &[key('q'), control('c')],
                "quit; asks where something is not saved",
            ),
        ],
    },
];

/// What the mouse does.
pub(crate) const MOUSE: &[(&str, &str)] = &[
    ("click", "go to a line; choose a tab or a line of a list"),
    (
        "drag",
        "a loop onto another: it goes there; a step onto another: it runs there",
    ),
    ("wheel", "scroll what is under the mouse"),
];

/// What a key does while the tree is shown.
pub(crate) fn action(event: KeyEvent) -> Option<Action> {
    let mut bindings = SECTIONS.iter().flat_map(|section| section.bindings);
    let found = bindings.find(|binding| binding.keys.iter().any(|key| key.is(event)));
    found.map(|binding| binding.action)
}

/// The keys of a binding as people write them.
pub(crate) fn keys_text(binding: &Binding) -> String {
    let keys: Vec<String> = binding.keys.iter().map(|key| key.text()).collect();
    keys.join(" ")
}

/// The table of keys as the book has it.
pub fn keys_as_markdown() -> String {
    let mut text = String::new();
    let code = |text: &str| format!("`{text}`");
    for section in SECTIONS {
        let _ = writeln!(text, "| {} | |\n| --- | --- |", section.title);
        for binding in section.bindings {
            let keys: Vec<String> = binding.keys.iter().map(|key| code(&key.text())).collect();
            let _ = writeln!(text, "| {} | {} |", keys.join(" "), binding.help);
        }
        text.push('\n');
    }
    let _ = writeln!(text, "| Mouse | |\n| --- | --- |");
    for (gesture, help) in MOUSE {
        let _ = writeln!(text, "| {gesture} | {help} |");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_does_one_thing() {
        let bindings: Vec<&Binding> = SECTIONS.iter().flat_map(|s| s.bindings).collect();
        for binding in &bindings {
            assert!(!binding.keys.is_empty(), "{:?} has no key", binding.action);
            for key in binding.keys {
                assert_eq!(
                    action(key.event()),
                    Some(binding.action),
                    "{} stands twice",
                    key.text()
                );
            }
        }
        for (at, binding) in bindings.iter().enumerate() {
            let twice = bindings[..at].iter().any(|b| b.action == binding.action);
            assert!(!twice, "{:?} stands twice", binding.action);
        }
    }

    #[test]
    fn a_held_key_makes_another_one() {
        let plain = KeyEvent::new(KeyCode::Char('z'), KeyModifiers::ALT);
        assert_eq!(action(plain), None);
        let capital = KeyEvent::new(KeyCode::Char('J'), KeyModifiers::SHIFT);
        assert_eq!(action(capital), Some(Action::MoveDown));
        assert_eq!(action(control('j').event()), None);
    }
}
