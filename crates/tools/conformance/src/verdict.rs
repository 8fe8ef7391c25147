//! What came of running something, before it is known whose fault a failure is.

use crate::oracle::{Mismatch, Prepared};
use crate::pieces::{Pieces, pieces};
use loopwright_backend::Capabilities;

/// A kernel that a backend can be given, and what it is made of.
pub(crate) struct Ready {
    pub(crate) prepared: Prepared,
    pub(crate) uses: Pieces,
}

impl Ready {
    pub(crate) fn new(prepared: Prepared) -> Ready {
        Ready {
            uses: pieces(prepared.module()),
            prepared,
        }
    }

    /// What it asks for and a backend with these capabilities does not have.
    pub(crate) fn refusal(&self, capabilities: &Capabilities) -> Option<String> {
        let checked = capabilities.check(self.prepared.module());
        checked.err().map(|refusal| refusal.reason)
    }
}

/// What came of it.
#[derive(Clone, Debug)]
pub(crate) enum Verdict {
    Passed,
    Failed {
        message: String,
        /// What the kernels that failed are made of.
        suspects: Pieces,
    },
    NotApplicable(String),
}

impl From<&Mismatch> for Verdict {
    /// For what fails before there is a kernel.
    fn from(mismatch: &Mismatch) -> Verdict {
        Verdict::Failed {
            message: mismatch.to_string(),
            suspects: Pieces::new(),
        }
    }
}
