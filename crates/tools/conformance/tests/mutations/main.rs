//! Random changes of plans, one after the other, on random programs.
//!
//! Every change that is accepted keeps the values, which the executor shows after each and, for a sample,
//! the whole way through lowering ([`sequences`]). Every change that is refused for a dependence is illegal: forced
//! through, it gives no tree, or other values ([`refusals`]). Every change that is listed as legal is accepted.

mod refusals;
mod sequences;
mod subject;

use loopwright_looptree::Mutation;
use std::collections::BTreeMap;

/// Sequences of changes, each on a program of its own.
const SEQUENCES: u64 = 6000;

/// Changes tried in a sequence, at most.
const LENGTH: i64 = 8;

/// How often something came up.
#[derive(Default)]
struct Tally(BTreeMap<String, usize>);

impl Tally {
    fn count(&mut self, what: &str) {
        *self.0.entry(what.to_owned()).or_default() += 1;
    }

    fn of(&self, what: &str) -> usize {
        self.0.get(what).copied().unwrap_or(0)
    }
}

/// Every kind of change.
const KINDS: [&str; 21] = [
    "split",
    "merge",
    "swap",
    "reorder",
    "fuse",
    "unfuse",
    "move before",
    "move after",
    "inline",
    "store",
    "annotate",
    "add",
    "remove",
    "compute",
    "layout",
    "copy",
    "uncopy",
    "pad",
    "stage",
    "delegate",
    "undelegate",
];

fn kind(mutation: &Mutation) -> &'static str {
    match mutation {
        Mutation::Split { .. } => "split",
        Mutation::Merge { .. } => "merge",
        Mutation::Swap { .. } => "swap",
        Mutation::Reorder { .. } => "reorder",
        Mutation::Fuse { .. } => "fuse",
        Mutation::Unfuse { .. } => "unfuse",
        Mutation::MoveBefore { .. } => "move before",
        Mutation::MoveAfter { .. } => "move after",
        Mutation::Inline { .. } => "inline",
        Mutation::Store { .. } => "store",
        Mutation::Annotate { .. } => "annotate",
        Mutation::AddLoop { .. } => "add",
        Mutation::RemoveLoop { .. } => "remove",
        Mutation::ComputeAt { .. } => "compute",
        Mutation::Layout { .. } => "layout",
        Mutation::Copy { .. } => "copy",
        Mutation::Uncopy { .. } => "uncopy",
        Mutation::Pad { .. } => "pad",
        Mutation::Stage { .. } => "stage",
        Mutation::Delegate { .. } => "delegate",
        Mutation::Undelegate { .. } => "undelegate",
    }
}
