//! The programs.

use crate::networks::{networks, small_networks};
use loopwright_conformance::features::FEATURES;
use loopwright_conformance::schedules::SCHEDULES;
use loopwright_graph::{Graph, parse};
use loopwright_runtime::RuntimeError;
use loopwright_tensor::TensorError;
use loopwright_text::Source;

/// Why a network has no program; a bug of ours.
#[derive(Debug, thiserror::Error)]
pub enum CorpusError {
    /// There is no session to trace it on.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// It is not a network.
    #[error(transparent)]
    Tensor(#[from] TensorError),
}

/// A program with a name.
#[derive(Clone, Debug)]
pub struct Entry {
    /// What it is called in reports.
    pub name: String,
    /// The program.
    pub graph: Graph,
}

impl Entry {
    /// A program from its text, without the first line.
    ///
    /// # Panics
    /// If the text is not a program.
    pub fn parsed(name: impl Into<String>, text: &str) -> Entry {
        let name = name.into();
        let source = Source::new(name.as_str(), format!("loopwright program 1\n{text}"));
        let graph = parse(&source).unwrap_or_else(|error| {
            panic!("a program of the corpus is one: {}", error.render(&source))
        });
        Entry { name, graph }
    }
}

/// The programs that every machine gets; beside them each gets random ones of its own.
#[derive(Clone, Debug, Default)]
pub struct Corpus {
    /// The programs.
    pub entries: Vec<Entry>,
    /// Programs that are small enough to be interpreted: each machine takes its turn with some of them.
    pub interpreted: Vec<Entry>,
}

impl Corpus {
    /// Every program of the conformance suite.
    pub fn conformance() -> Corpus {
        let features = FEATURES.iter().map(|row| (row.name, row.program));
        let constructs = SCHEDULES.iter().map(|row| (row.name, row.program));
        let entries = features.chain(constructs);
        Corpus {
            entries: entries
                .map(|(name, program)| Entry::parsed(format!("conformance {name}"), program))
                .collect(),
            interpreted: Vec::new(),
        }
    }

    /// Those and the complete networks.
    ///
    /// # Errors
    /// A network that cannot be traced.
    pub fn complete() -> Result<Corpus, CorpusError> {
        let mut corpus = Corpus::conformance();
        corpus.entries.extend(networks()?);
        corpus.interpreted = small_networks()?;
        Ok(corpus)
    }

    /// The programs whose names contain some text.
    #[must_use]
    pub fn named(mut self, part: &str) -> Corpus {
        self.entries.retain(|entry| entry.name.contains(part));
        self.interpreted.retain(|entry| entry.name.contains(part));
        self
    }
}
