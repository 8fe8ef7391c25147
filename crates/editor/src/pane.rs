//! What is shown beside the tree.

/// A tab of the pane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tab {
    /// What the device's compiler is given.
    Code,
    /// The kernel after all passes.
    Kernel,
    /// The schedule, as it would be saved.
    Schedule,
    /// What the cost model says about each step.
    Estimate,
}

impl Tab {
    pub(crate) const ALL: [Tab; 4] = [Tab::Code, Tab::Kernel, Tab::Schedule, Tab::Estimate];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Tab::Code => "code",
            Tab::Kernel => "kernel",
            Tab::Schedule => "schedule",
            Tab::Estimate => "estimate",
        }
    }

    /// The tab to the right; after the last the first.
    pub(crate) fn next(self) -> Tab {
        let at = Tab::ALL.iter().position(|tab| *tab == self).unwrap_or(0);
        Tab::ALL[(at + 1) % Tab::ALL.len()]
    }
}
