//! From a failing program to a small one that fails in the same way.
//!
//! [`shrink`] tries ever smaller programs and keeps those for which the same stage is still to blame:
//! without an output, with a node replaced by one of its inputs or by an input that holds its values,
//! with smaller dimensions, with a plainer schedule. It is greedy and stops when nothing helps any
//! more, or when the budget of attempts is spent.

mod write;

pub(crate) use write::schedule_text;
pub use write::write_failure;

use crate::generate::{Case, plain_schedule};
use crate::oracle::{Blame, Mismatch, Oracle};
use crate::rebuild::{Edit, Replacement, node_values, rebuild};
use loopwright_graph::{Array, DimId, NodeId, NodeOp, SymbolInfo};
use loopwright_looptree::{
    Annotation, LoopSpec, Mutation, NodeSchedule, Plan, Schedule, loop_dims,
};
use std::time::Instant;

/// A small failing case.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// The case.
    pub case: Case,
    /// What is wrong with it.
    pub mismatch: Mismatch,
}

/// Makes a failing case smaller, with at most `budget` runs of smaller ones.
pub fn shrink(oracle: &Oracle, case: &Case, mismatch: &Mismatch, budget: usize) -> Shrunk {
    shrink_until(oracle, case, mismatch, budget, None)
}

/// The same; after `deadline`, the smallest case so far is taken.
pub(crate) fn shrink_until(
    oracle: &Oracle,
    case: &Case,
    mismatch: &Mismatch,
    budget: usize,
    deadline: Option<Instant>,
) -> Shrunk {
    let mut search = Search {
        oracle,
        best: Shrunk {
            case: case.clone(),
            mismatch: mismatch.clone(),
        },
        budget,
        deadline,
    };
    loop {
        let before = search.best.case.clone();
        search.plainer_schedule();
        search.fewer_results();
        // Before the rest, which is as slow as the program is large.
        search.smaller_dims();
        search.fewer_nodes();
        search.plainer_steps();
        search.unused();
        if search.best.case == before || search.budget == 0 {
            return search.best;
        }
    }
}

struct Search<'a> {
    oracle: &'a Oracle,
    best: Shrunk,
    budget: usize,
    deadline: Option<Instant>,
}

impl Search<'_> {
    /// Takes a smaller case if the same stage fails on it.
    fn attempt(&mut self, case: Case) -> bool {
        if self.deadline.is_some_and(|end| Instant::now() > end) {
            self.budget = 0;
        }
        if self.budget == 0 || case == self.best.case {
            return false;
        }
        self.budget -= 1;
        let failure = if self.best.mismatch.blame == Blame::Backend {
            self.oracle.check(&case).err()
        } else {
            self.oracle.prepare(&case).err()
        };
        match failure {
            Some(mismatch) if mismatch.blame == self.best.mismatch.blame => {
                self.best = Shrunk { case, mismatch };
                true
            }
            _ => false,
        }
    }

    fn edit(&mut self, edit: &Edit) -> bool {
        match rebuild(&self.best.case, edit) {
            Some(case) => self.attempt(case),
            None => false,
        }
    }

    fn plainer_schedule(&mut self) {
        let case = self.best.case.clone();
        let graph = case.graph.clone().with_stores();
        for schedule in [Some(plain_schedule(&graph)), None] {
            if self.attempt(Case {
                schedule,
                ..case.clone()
            }) {
                return;
            }
        }
    }

    fn fewer_results(&mut self) {
        for at in (0..self.best.case.graph.outputs().len()).rev() {
            self.edit(&Edit::DropOutput(at));
        }
        for at in (0..self.best.case.graph.updates().len()).rev() {
            self.edit(&Edit::DropUpdate(at));
        }
    }

    fn fewer_nodes(&mut self) {
        let mut at = self.best.case.graph.node_ids().count();
        while at > 0 && self.budget > 0 {
            at = at.min(self.best.case.graph.node_ids().count());
            if at == 0 {
                return;
            }
            at -= 1;
            self.replace(NodeId::from(at));
        }
    }

    /// Tries to do without a node.
    fn replace(&mut self, node: NodeId) {
        let graph = &self.best.case.graph;
        let parts = graph.node(node).clone();
        if matches!(parts.op, NodeOp::Input | NodeOp::Constant(_)) {
            return;
        }
        let alike = |input: &&NodeId| {
            let other = graph.node(**input);
            other.dtype == parts.dtype && other.dims == parts.dims
        };
        let alike: Vec<NodeId> = parts.inputs.iter().filter(alike).copied().collect();
        for input in alike {
            if self.edit(&Edit::Replace(node, Replacement::Node(input))) {
                return;
            }
        }
        // A state must stay one while it is updated.
        if let Some(array) = self.value_of(node) {
            self.edit(&Edit::Replace(node, Replacement::Input(array)));
        }
    }

    fn value_of(&self, node: NodeId) -> Option<Array> {
        node_values(&self.best.case)?
            .into_iter()
            .nth(usize::from(node))
    }

    fn smaller_dims(&mut self) {
        for at in 0..self.best.case.graph.symbols().len() {
            if at >= self.best.case.graph.symbols().len() {
                return;
            }
            match self.best.case.graph.symbols().raw[at].clone() {
                SymbolInfo::Size { name, .. } => self.smaller_size(&name),
                // The range of a static follows the sizes; there is nothing of its own to make smaller.
                SymbolInfo::Static { .. } => {}
                SymbolInfo::Index(dim) => self.smaller_dim(dim),
            }
        }
    }

    fn smaller_size(&mut self, name: &str) {
        let sizes = self.best.case.sizes.iter();
        let Some(value) = sizes.into_iter().find(|(n, _)| n == name).map(|(_, v)| *v) else {
            return;
        };
        for smaller in smaller_than(value) {
            if self.edit(&Edit::Size(name.to_owned(), smaller)) {
                return;
            }
        }
    }

    fn smaller_dim(&mut self, dim: DimId) {
        let Some(size) = self.best.case.graph.dim(dim).size.as_const() else {
            return;
        };
        for smaller in smaller_than(size) {
            if self.edit(&Edit::Dim(dim, smaller)) {
                return;
            }
        }
    }

    /// Simplifies one step after the other.
    fn plainer_steps(&mut self) {
        let Some(schedule) = self.best.case.schedule.clone() else {
            return;
        };
        self.without_copies(&schedule);
        for at in (0..schedule.steps.len()).rev() {
            self.without_step(at);
        }
        let count = self
            .best
            .case
            .schedule
            .as_ref()
            .map_or(0, |s| s.steps.len());
        for at in 0..count {
            let Ok(graph) = self.best.case.scheduled_graph() else {
                return;
            };
            self.change_step(at, |step| {
                let dims = loop_dims(&graph, step.node);
                step.loops = dims.into_iter().map(LoopSpec::over).collect();
            });
            self.change_step(at, |step| {
                let dims = loop_dims(&graph, step.node);
                step.loops.retain(|spec| dims.contains(&spec.dim));
            });
            self.change_step(at, |step| step.layout = None);
            self.change_step(at, |step| step.share = Some(0));
            self.change_step(at, |step| step.share = None);
            let loops = self.loops_of(at);
            for place in 0..loops {
                self.change_step(at, |step| step.loops[place].annotation = Annotation::Serial);
            }
            for place in (0..loops).rev() {
                self.change_step(at, |step| {
                    let split = step.loops.get(place).is_some_and(|spec| spec.step > 1);
                    if split {
                        step.loops.remove(place);
                    }
                });
            }
        }
    }

    /// Tries to do without copies.
    fn without_copies(&mut self, schedule: &Schedule) {
        for edit in schedule.edits.iter().rev() {
            let case = self.best.case.clone();
            let (loopwright_looptree::Edit::Copy { name, .. }, Some(schedule)) =
                (edit, &case.schedule)
            else {
                continue;
            };
            let program = case.graph.clone().with_stores();
            let plan = Plan::new(program, schedule.clone()).ok();
            let uncopied = plan.and_then(|plan| {
                let node = plan.graph().find(name)?;
                let changed = plan.mutate(&Mutation::Uncopy { node }).ok()?;
                Some(changed.plan.schedule().clone())
            });
            if uncopied.is_some() {
                self.attempt(Case {
                    schedule: uncopied,
                    ..case
                });
            }
        }
    }

    fn loops_of(&self, at: usize) -> usize {
        let schedule = self.best.case.schedule.as_ref();
        schedule.map_or(0, |schedule| schedule.steps[at].loops.len())
    }

    fn change_step(&mut self, at: usize, change: impl Fn(&mut NodeSchedule)) {
        let mut case = self.best.case.clone();
        if let Some(schedule) = &mut case.schedule {
            change(&mut schedule.steps[at]);
        }
        self.attempt_legal(case);
    }

    fn without_step(&mut self, at: usize) {
        let mut case = self.best.case.clone();
        if let Some(schedule) = &mut case.schedule {
            if at >= schedule.steps.len() {
                return;
            }
            schedule.steps.remove(at);
        }
        self.attempt_legal(case);
    }

    fn attempt_legal(&mut self, case: Case) {
        let program = case.graph.clone().with_stores();
        let legal = case
            .schedule
            .as_ref()
            .is_none_or(|schedule| Plan::new(program, schedule.clone()).is_ok());
        if legal {
            self.attempt(case);
        }
    }

    fn unused(&mut self) {
        self.edit(&Edit::Unused);
    }
}

/// Sizes to try in place of one, smallest first.
fn smaller_than(size: i64) -> Vec<i64> {
    let mut sizes = vec![1, 2, size / 2, size - 1];
    sizes.retain(|smaller| (1..size).contains(smaller));
    sizes.dedup();
    sizes
}
