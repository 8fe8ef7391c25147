//! Our side of a comparison: a piece of work on one of our backends.

use crate::field::Ours;
use crate::race::Racer;
use crate::sample::seconds;
use crate::work::{Work, ours};
use crate::{BenchError, Results};
use loopwright::backend::{Backend, CompileOptions};
use loopwright::compile::{Bound, Compiler};
use loopwright::graph::{Array, Graph, NodeOp};

/// A piece of work on a backend, ready to run.
pub(crate) struct Side {
    work: String,
    backend: String,
    bound: Bound<'static>,
    /// How long the first run took, in seconds, compilation included.
    first: f64,
    /// What states are before the first run.
    states: Vec<(String, Array)>,
    results: Vec<String>,
}

impl Side {
    pub(crate) fn new(
        work: &Work,
        graph: &Graph,
        inputs: &[(String, Array)],
        backend: &Backend,
    ) -> Result<Side, BenchError> {
        let fail = |error: &dyn ToString| ours(&work.name, error.to_string());
        let given = inputs.to_vec();
        // No cache on disk: the first run compiles.
        let compiler = Compiler::new(backend.clone(), CompileOptions::default());
        let (first, bound) = seconds(|| -> Result<_, BenchError> {
            let program = compiler.compile(graph, None).map_err(|e| fail(&e))?;
            let mut bound = program.bind(&work.sizes).map_err(|e| fail(&e))?;
            for (name, array) in given {
                bound.give(&name, array).map_err(|e| fail(&e))?;
            }
            bound.run().map_err(|e| fail(&e))?;
            Ok(bound)
        });
        let is_state = |name: &str| {
            let node = graph
                .parameters()
                .find(|node| graph.node(*node).name == name);
            node.is_some_and(|node| matches!(graph.node(node).op, NodeOp::State))
        };
        let states = inputs.iter().filter(|(name, _)| is_state(name));
        let outputs = graph.outputs().iter().map(|output| output.name.clone());
        let updates = graph.updates().iter();
        let updated = updates.map(|update| graph.node(update.state).name.clone());
        Ok(Side {
            work: work.name.clone(),
            backend: backend.name().to_owned(),
            bound: bound?,
            first,
            states: states.cloned().collect(),
            results: outputs.chain(updated).collect(),
        })
    }
}

impl Racer for Side {
    fn name(&self) -> &str {
        &self.backend
    }

    fn time(&mut self, runs: usize) -> Result<f64, BenchError> {
        let (time, result) = seconds(|| (0..runs).try_for_each(|_| self.bound.run()));
        result.map_err(|error| ours(&self.work, error))?;
        Ok(time / runs as f64)
    }
}

impl Ours for Side {
    fn first(&self) -> f64 {
        self.first
    }

    fn results(&mut self) -> Result<Results, BenchError> {
        for (name, array) in &self.states {
            let given = self.bound.give(name, array.clone());
            given.map_err(|error| ours(&self.work, error))?;
        }
        self.bound.run().map_err(|error| ours(&self.work, error))?;
        let results = self.results.iter().map(|name| {
            let array = self.bound.array(name);
            let array = array.ok_or_else(|| ours(&self.work, format!("`{name}` is not there")))?;
            Ok((name.clone(), array.clone()))
        });
        results.collect()
    }
}
