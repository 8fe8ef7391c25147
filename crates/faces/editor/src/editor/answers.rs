//! Questions and lists, and what their answers do.

use super::{Editor, Effect, Mode, Tone};
use crate::menu::Choice;
use crate::prompt::{Answer, Prompt, Purpose};
use crate::scene::loop_name;
use loopwright::looptree::{LoopName, Mutation, parse_mutation, print_mutation};
use loopwright::text::Source;
use ratatui::crossterm::event::KeyEvent;
use std::path::PathBuf;

impl Editor {
    pub(super) fn ask_factor(&mut self) {
        let Some(here) = self.here() else { return };
        let node = self.cursor.node;
        let name = LoopName::from(here);
        let legal = self.plan().legal().into_iter();
        let factors = legal.filter_map(|mutation| match mutation {
            Mutation::Split {
                node: split,
                name: of,
                factor,
            } if split == node && of == name => Some(factor.to_string()),
            _ => None,
        });
        let title = format!("split {} by", loop_name(self.plan().graph(), &here));
        let prompt = Prompt::new(Purpose::Split { node, name }, title, "");
        self.mode = Mode::Prompt(prompt.with_suggestions(factors.collect()));
    }

    pub(super) fn ask_command(&mut self) {
        let graph = self.plan().graph();
        let legal = self.plan().legal();
        let legal = legal.iter().map(|mutation| print_mutation(graph, mutation));
        // What was typed before comes first, the newest at the head.
        let mut suggestions: Vec<String> = self.commands.iter().rev().cloned().collect();
        let known: Vec<String> = legal.filter(|text| !self.commands.contains(text)).collect();
        suggestions.extend(known);
        let prompt = Prompt::new(Purpose::Command, ":", "");
        self.mode = Mode::Prompt(prompt.with_suggestions(suggestions));
    }

    pub(super) fn prompt_key(&mut self, key: KeyEvent) {
        let Mode::Prompt(prompt) = &mut self.mode else {
            return;
        };
        match prompt.key(key) {
            Answer::Open => {}
            Answer::Cancelled => self.mode = Mode::Tree,
            Answer::Given => {
                let (purpose, text) = (prompt.purpose, prompt.line.text());
                if let Err((letters, message)) = self.answer(purpose, &text)
                    && let Mode::Prompt(prompt) = &mut self.mode
                {
                    prompt.error = Some((letters, message));
                }
            }
        }
    }

    /// Does what an answer says; an answer that makes no sense leaves the question open, with the letters
    /// that are wrong and why.
    fn answer(
        &mut self,
        purpose: Purpose,
        text: &str,
    ) -> Result<(), (std::ops::Range<usize>, String)> {
        let all = 0..text.chars().count().max(1);
        let trimmed = text.trim();
        match purpose {
            Purpose::Split { node, name } => {
                let factor = trimmed
                    .parse()
                    .map_err(|_| (all, "a factor is an integer, for example 16".to_owned()))?;
                self.mode = Mode::Tree;
                self.change(&Mutation::Split { node, name, factor });
            }
            Purpose::Command => {
                if trimmed.is_empty() {
                    self.mode = Mode::Tree;
                    return Ok(());
                }
                let source = Source::new(":", text);
                let mutation = parse_mutation(&source, self.plan().graph()).map_err(|error| {
                    let letters = error.labels.first().map_or(all, |label| {
                        let letters = |byte: u32| {
                            let before = text.get(..byte as usize).unwrap_or(text);
                            before.chars().count()
                        };
                        let start = letters(label.span.start);
                        start..letters(label.span.end).max(start + 1)
                    });
                    let help = error.help.map(|help| format!("; {help}"));
                    (letters, error.message + &help.unwrap_or_default())
                })?;
                self.commands.retain(|command| command != trimmed);
                self.commands.push(trimmed.to_owned());
                self.mode = Mode::Tree;
                self.apply(&[mutation]);
            }
            Purpose::Save | Purpose::Load => {
                if trimmed.is_empty() {
                    return Err((all, "a file's name is wanted".to_owned()));
                }
                let path = PathBuf::from(trimmed);
                self.mode = Mode::Tree;
                match purpose {
                    Purpose::Save => self.save(path, false),
                    _ => self.effects.push(Effect::Load { path }),
                }
            }
        }
        Ok(())
    }

    pub(super) fn menu_key(&mut self, key: KeyEvent) {
        if let Mode::Menu(menu) = &mut self.mode {
            let choice = menu.key(key);
            self.chosen(choice);
        }
    }

    /// Does what a line of a menu says.
    pub(super) fn chosen(&mut self, choice: Choice) {
        match choice {
            Choice::Open => {}
            Choice::Cancelled => self.mode = Mode::Tree,
            Choice::Made(item) => {
                self.mode = Mode::Tree;
                match item.mutations.as_slice() {
                    [] => self.say(Tone::Note, format!("{}: as it is", item.text)),
                    [one] => self.change(one),
                    several => self.apply(several),
                }
            }
        }
    }
}
