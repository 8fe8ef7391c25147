//! What can go wrong with a session.

/// Why a session does not begin, or ends.
#[derive(Debug, thiserror::Error)]
pub enum EditorError {
    /// Standard input or output is something else than a terminal.
    #[error("the editor needs a terminal, and the standard {stream} is none")]
    NoTerminal {
        /// Which of them.
        stream: &'static str,
    },
    /// The terminal does not do what it should.
    #[error("the terminal does not answer: {0}")]
    Terminal(#[from] std::io::Error),
    /// The schedule does not fit the program.
    #[error(transparent)]
    Schedule(#[from] loopwright::looptree::ScheduleError),
    /// Sizes that do not fit the program.
    #[error(transparent)]
    Sizes(#[from] loopwright::graph::GraphError),
    /// The process was told to end.
    #[error("the editor was ended by a signal{}", if *.unsaved { "; what was not saved is lost" } else { "" })]
    Signal {
        /// Its number; that of SIGHUP where the terminal was gone.
        signal: i32,
        /// Whether there were changes that had not been saved.
        unsaved: bool,
    },
}
