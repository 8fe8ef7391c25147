//! The parts of a prelude that a text needs, each once, in an order in which they can be declared.

use rustc_hash::FxHashSet;
use std::collections::BTreeSet;

/// The prelude collected so far.
#[derive(Debug, Default)]
pub struct Pieces {
    seen: FxHashSet<String>,
    text: String,
    math: BTreeSet<&'static str>,
}

impl Pieces {
    /// Adds the piece called `name` unless it is there. `make` writes it, and may first ask for the
    /// pieces it needs, which then stand before it.
    pub fn need<E>(
        &mut self,
        name: &str,
        make: impl FnOnce(&mut Pieces) -> Result<String, E>,
    ) -> Result<(), E> {
        if !self.seen.contains(name) {
            self.seen.insert(name.to_owned());
            let text = make(self)?;
            self.text.push_str(&text);
            if !text.ends_with('\n') {
                self.text.push('\n');
            }
        }
        Ok(())
    }

    /// Notes that a function of the mathematics library is called.
    pub fn math(&mut self, function: &'static str) {
        self.math.insert(function);
    }

    /// The text of all pieces.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The functions of the mathematics library that are called, sorted.
    pub fn math_functions(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.math.iter().copied()
    }
}
