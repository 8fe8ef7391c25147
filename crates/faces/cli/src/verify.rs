//! `run --verify`: how much of a run is checked, and what was.
//!
//! The interpreter and the reference evaluator take minutes for what a device does in a millisecond. So programs up to some
//! size are checked in every element by both; of larger ones a sample of every result is held to the reference, element by
//! element, each computed from those that it needs. What was checked is counted, and told with the result.
//!
//! The comparisons are elsewhere: in full in `crates/tools/conformance/src/verify`, of samples in `crates/tools/tune/src/reference`.

use loopwright::graph::{Array, Binding, Graph, NodeId};
use loopwright::lower::KernelParam;
use loopwright::runtime::{Run, Verify};
use loopwright_conformance::Verifier;
use loopwright_tune::Expected;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Elements of all nodes of a program together up to which a run is checked in full: about two seconds.
const FULL: f64 = (1 << 19) as f64;

/// How long the reference may take for a sample.
const PATIENCE: Duration = Duration::from_secs(120);

/// What was checked in this process.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Coverage {
    /// Elements of results that were compared.
    pub(crate) checked: usize,
    /// Elements of all results.
    pub(crate) elements: usize,
}

impl Coverage {
    /// The share that was compared, from 0 to 1.
    pub(crate) fn share(self) -> f64 {
        match self.elements {
            0 => 1.0,
            elements => self.checked as f64 / elements as f64,
        }
    }

    pub(crate) fn is_full(self) -> bool {
        self.checked == self.elements
    }
}

static COVERAGE: Mutex<Coverage> = Mutex::new(Coverage {
    checked: 0,
    elements: 0,
});

/// What all runs so far were checked in.
pub(crate) fn coverage() -> Coverage {
    *COVERAGE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn count(checked: usize, elements: usize) {
    let mut coverage = COVERAGE.lock().unwrap_or_else(PoisonError::into_inner);
    coverage.checked += checked;
    coverage.elements += elements;
}

/// Checks runs in full where that takes seconds, else in a sample.
#[derive(Debug)]
pub(crate) struct CheckedRuns {
    full: Verifier,
}

impl CheckedRuns {
    /// Programs that give something else than they should are written to this directory.
    pub(crate) fn new(failures: PathBuf) -> CheckedRuns {
        CheckedRuns {
            full: Verifier::new(failures),
        }
    }
}

impl Verify for CheckedRuns {
    fn check(&self, run: &Run<'_>) -> Result<(), String> {
        let graph = run.program.written();
        let elements = results(graph, run.binding);
        let sample = match work(graph, run.binding) > FULL {
            true => sample(run),
            false => None,
        };
        match sample {
            None => {
                Verify::check(&self.full, run)?;
                count(elements, elements);
            }
            Some(checked) => count(checked?, elements),
        }
        Ok(())
    }
}

/// Elements of all results.
fn results(graph: &Graph, binding: &Binding) -> usize {
    let outputs = graph.outputs().iter().map(|output| output.node);
    let updates = graph.updates().iter().map(|update| update.state);
    let elements = |node: NodeId| binding.elements(graph, node) as usize;
    outputs.chain(updates).map(elements).sum()
}

/// How much the reference would have to compute: the elements of every node.
fn work(graph: &Graph, binding: &Binding) -> f64 {
    let nodes = graph.node_ids();
    nodes.map(|node| binding.elements(graph, node) as f64).sum()
}

/// Holds a sample of the results to the reference; gives how many elements that is. `None` where a result cannot be found
/// in the memory of the run.
fn sample(run: &Run<'_>) -> Option<Result<usize, String>> {
    let (graph, params) = (run.program.written(), run.program.params());
    let array = |node: NodeId, bytes: &[u8]| {
        let shape = run.binding.shape(graph, node);
        let shape: Vec<usize> = shape.iter().map(|size| *size as usize).collect();
        Array::from_bytes(graph.node(node).dtype, &shape, bytes).ok()
    };
    let mut inputs = Vec::new();
    for node in graph.parameters() {
        let place = params
            .iter()
            .position(|param| *param == KernelParam::Parameter(node));
        // What the kernel does not take has no part in its results.
        let given = match place {
            Some(at) => array(node, run.before[at])?,
            None => {
                let shape = run.binding.shape(graph, node);
                let shape: Vec<usize> = shape.iter().map(|size| *size as usize).collect();
                Array::zeros(graph.node(node).dtype, &shape).ok()?
            }
        };
        inputs.push((node, given));
    }
    let mut after: Vec<(&str, Array)> = Vec::new();
    for (at, output) in graph.outputs().iter().enumerate() {
        let place = params
            .iter()
            .position(|param| matches!(param, KernelParam::Output(found) if *found as usize == at));
        after.push((&output.name, array(output.node, run.after[place?])?));
    }
    for update in graph.updates() {
        let place = params
            .iter()
            .position(|param| *param == KernelParam::Parameter(update.state));
        let name = graph.node(update.state).name.as_str();
        after.push((name, array(update.state, run.after[place?])?));
    }
    let deadline = Instant::now() + PATIENCE;
    let strict = run.options.strict;
    let expected = match Expected::new(graph, run.binding, &inputs, strict, 0, deadline) {
        Ok(expected) => expected,
        Err(error) => return Some(Err(format!("nothing could be checked: {error}"))),
    };
    let mut got: Vec<&Array> = Vec::new();
    for name in expected.names() {
        got.push(&after.iter().find(|(found, _)| *found == name)?.1);
    }
    let checked = expected.check(&got, None);
    Some(
        checked
            .map(|()| expected.coverage().0)
            .map_err(|difference| {
                format!(
                    "kernel `{}` on {}: {difference}",
                    run.program.kernel(),
                    run.backend.name()
                )
            }),
    )
}
