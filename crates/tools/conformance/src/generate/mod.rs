//! Random programs: valid by construction, small, and full of corners.
//!
//! A seed names a [`Case`] for good: a graph over every op and every kind of node, a schedule that is
//! legal for it, values for its sizes, and inputs with edge values among them. Programs are small (at
//! most a couple of thousand elements of work for a step), so that thousands run in a minute.

mod graph;
mod mutation;
mod schedule;
mod values;
mod views;

pub use mutation::random_mutation;
pub(crate) use schedule::{available, folds_in_order};
pub use schedule::{plain_schedule, random_schedule};
pub use values::{random_array, random_scalar};

use crate::rng::Rng;
use loopwright_graph::{Array, Graph, GraphError, NodeId};
use loopwright_kernel::passes::expand_math::Precision;
use loopwright_looptree::{Schedule, ScheduleError};
use std::borrow::Cow;

/// How a program computes, and with that how its results are compared.
///
/// Two floats that were added up in different orders differ in their last bits, and an op that jumps
/// (a comparison, a cast, a sort) makes any difference of that. So there is no sound tolerance for
/// arbitrary programs, and none is used. Instead a generated program is of one of the first two kinds:
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Arithmetic {
    /// Anything goes, at every dtype. The program is compiled in strict mode, its schedule folds floats
    /// in the order of the program, and results agree bit for bit (any two NaNs are the same).
    Strict,
    /// Floats hold integers small enough that sums and products are exact in any order and with
    /// any contraction. The program is compiled without strict mode, loops come in any order, and
    /// results are equal as numbers (the sign of a zero may differ).
    Whole,
    /// A program that was not generated: any floats, any schedule. Its results need not be those of the
    /// program's own order of roundings, but must lie among those that other orders give, which are
    /// found by disturbing every rounding that is free; see [`crate::oracle`].
    Rounded {
        /// Whether it is compiled in strict mode: then only a schedule that folds in another order
        /// leaves roundings free.
        strict: bool,
        /// How near results of functions are to the exact ones outside of it.
        math: Precision,
    },
}

impl Arithmetic {
    /// How near results of functions are to the exact ones outside strict mode.
    pub fn math(self) -> Precision {
        match self {
            Arithmetic::Strict | Arithmetic::Whole => Precision::Accurate,
            Arithmetic::Rounded { math, .. } => math,
        }
    }

    /// Whether a program of this kind is compiled in strict mode.
    pub fn is_strict(self) -> bool {
        match self {
            Arithmetic::Strict => true,
            Arithmetic::Whole => false,
            Arithmetic::Rounded { strict, .. } => strict,
        }
    }
}

/// A program with everything that one run of it needs.
#[derive(Clone, PartialEq, Debug)]
pub struct Case {
    /// The program.
    pub graph: Graph,
    /// How it runs: a schedule of [`Graph::with_stores`]; `None`: the default for the backend.
    pub schedule: Option<Schedule>,
    /// The value of every size.
    pub sizes: Vec<(String, i64)>,
    /// The value of every input and state.
    pub inputs: Vec<(NodeId, Array)>,
    /// How it computes.
    pub arithmetic: Arithmetic,
}

impl Case {
    /// The sizes as [`Graph::bind`] takes them.
    pub fn sizes(&self) -> Vec<(&str, i64)> {
        let sizes = self.sizes.iter();
        sizes.map(|(name, value)| (name.as_str(), *value)).collect()
    }

    /// The program with its results as stores and its schedule's changes made: what the schedule's steps speak
    /// of.
    ///
    /// # Errors
    /// A change that does not fit the program.
    pub fn scheduled_graph(&self) -> Result<Graph, ScheduleError> {
        let program = self.graph.clone().with_stores();
        match &self.schedule {
            Some(schedule) => schedule.edited(&program).map(Cow::into_owned),
            None => Ok(program),
        }
    }

    /// Whether another case has the same program, scheduled in the same way: then one kernel serves both.
    pub(crate) fn has_program_of(&self, other: &Case) -> bool {
        (&self.graph, &self.schedule, self.arithmetic)
            == (&other.graph, &other.schedule, other.arithmetic)
    }

    /// How many nodes compute something: not inputs, states or constants.
    pub fn computing_nodes(&self) -> usize {
        use loopwright_graph::NodeOp;
        let given = |node: &NodeId| {
            matches!(
                self.graph.node(*node).op,
                NodeOp::Input | NodeOp::State | NodeOp::Constant(_)
            )
        };
        self.graph.node_ids().filter(|node| !given(node)).count()
    }
}

/// The case that a seed names.
///
/// A few drafts in a hundred are programs that the graph refuses, for example because nothing proves
/// that a view over symbolic sizes stays inside; then the next draft is taken.
pub fn random_case(seed: u64) -> Case {
    let mut rng = Rng::new(seed);
    loop {
        if let Ok(case) = draft(&mut rng) {
            return case;
        }
    }
}

/// The graph of at least so many nodes that a seed names, over arrays as large as those of real programs: to be
/// compiled, not to be run.
pub fn large_graph(seed: u64, nodes: usize) -> Graph {
    let mut rng = Rng::new(seed);
    loop {
        if let Ok(graph) = graph::large_graph(&mut rng, nodes) {
            return graph;
        }
    }
}

/// One attempt at a random case.
pub fn draft(rng: &mut Rng) -> Result<Case, GraphError> {
    let arithmetic = if rng.chance(75) {
        Arithmetic::Strict
    } else {
        Arithmetic::Whole
    };
    let (graph, sizes) = graph::random_graph(rng, arithmetic)?;
    let given: Vec<(&str, i64)> = sizes.iter().map(|(name, n)| (name.as_str(), *n)).collect();
    let binding = graph.bind(&given)?;
    let inputs = graph
        .parameters()
        .map(|node| {
            let shape: Vec<usize> = binding
                .shape(&graph, node)
                .iter()
                .map(|size| *size as usize)
                .collect();
            let dtype = graph.node(node).dtype;
            (node, random_array(rng, dtype, &shape, arithmetic))
        })
        .collect();
    let schedule = if rng.chance(15) {
        None
    } else {
        Some(random_schedule(
            rng,
            &graph.clone().with_stores(),
            &binding,
            arithmetic,
        ))
    };
    Ok(Case {
        graph,
        schedule,
        sizes,
        inputs,
        arithmetic,
    })
}
