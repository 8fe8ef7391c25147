//! What a backend is given to compile, at every level at once.

use loopwright_graph::Graph;
use loopwright_kernel::Module;
use loopwright_looptree::{LoopTree, Schedule};
use loopwright_lower::KernelParam;

/// One program to compile: as loops, and as the kernel that was made of them. A backend takes what its
/// level is about.
#[derive(Clone, Copy)]
pub struct CompileUnit<'a> {
    /// The kernel's name, another for each unit that is compiled with it.
    pub kernel: &'a str,
    /// A module whose first function is that kernel.
    pub module: &'a Module,
    /// What the kernel's parameters are.
    pub params: &'a [KernelParam],
    /// The graph, every result a node of its own, with the changes that the schedule makes.
    pub graph: &'a Graph,
    /// The same without those changes: what the schedule's text is for.
    pub written: &'a Graph,
    /// How it runs.
    pub schedule: &'a Schedule,
    /// The loops that follow.
    pub tree: &'a LoopTree,
}
