//! The interface for searches of one's own: actions, the legal ones, undo, features, reward.

use super::errors;
use super::graph::PyGraph;
use super::plan::{PyPlan, Target, target_of};
use super::program::{arguments, sizes_of};
use loopwright_graph::NodeId;
use loopwright_looptree::print_mutation;
use loopwright_scheduler::{Order, schedule};
use loopwright_tune::agent::{Session, Step};
use loopwright_tune::{Bench, CostModel, FEATURES, Work};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::{Arc, Mutex, PoisonError};

/// A walk through the plans of one program. The reward is the logarithm, to base two, of how many times faster a plan is than
/// the one at the start: predicted by the cost model, or measured on the target and checked against the reference.
#[pyclass(name = "Agent", module = "loopwright.loops", frozen)]
pub(super) struct PyAgent {
    session: Mutex<Session>,
    target: Target,
}

impl PyAgent {
    fn with<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut Session) -> T + Send) -> T {
        py.detach(|| work(&mut self.session.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    fn stands(&self, py: Python<'_>) -> PyPlan {
        let plan = self.with(py, |session| session.plan().clone());
        PyPlan::new(plan, self.target.clone())
    }
}

fn loop_name(
    graph: &loopwright_graph::Graph,
    node: NodeId,
    name: loopwright_looptree::LoopName,
) -> (String, String) {
    let dim = &graph.dim(name.dim).name;
    let text = match name.step {
        1 => dim.clone(),
        step => format!("{dim}/{step}"),
    };
    (graph.node_name(node), text)
}

#[pymethods]
impl PyAgent {
    /// An agent that starts at a plan, or at the default plan of a graph. With `measured=True` rewards are measured.
    #[new]
    #[pyo3(signature = (start, target=None, *, measured=false, strict=false, seed=1, **sizes))]
    fn new(
        start: &Bound<'_, PyAny>,
        target: Option<&str>,
        measured: bool,
        strict: bool,
        seed: u64,
        sizes: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyAgent> {
        let (plan, target) = if let Ok(plan) = start.cast::<PyPlan>() {
            let target = match target {
                Some(_) => target_of(target)?,
                None => plan.get().target.clone(),
            };
            (plan.get().plan.clone(), target)
        } else if let Ok(graph) = start.cast::<PyGraph>() {
            let target = target_of(target)?;
            let program = loopwright_graph::Graph::clone(&*graph.get().finished()?).with_stores();
            let order = match strict {
                true => Order::Kept,
                false => Order::Free,
            };
            let made = schedule(program, &target.machine, order).map_err(errors::schedule)?;
            (made.plan, target)
        } else {
            return Err(PyTypeError::new_err("an agent starts at a plan or a graph"));
        };
        let given = arguments(sizes)?;
        let binding = Arc::new(sizes_of(plan.program(), &given)?);
        let session = match measured {
            false => Session::predicted(plan, binding, Arc::new(CostModel::new(target.machine))),
            true => {
                let sizes: Vec<(String, i64)> = given
                    .iter()
                    .map(|(name, value)| Ok((name.clone(), value.extract()?)))
                    .collect::<PyResult<_>>()?;
                let work = Work {
                    program: plan.program().to_string(),
                    sizes,
                    device: target.device.clone(),
                    strict,
                    fallback: None,
                    seed,
                };
                let bench = start
                    .py()
                    .detach(|| Bench::with_reference(work))
                    .map_err(errors::tune)?;
                Session::measured(plan, binding, Box::new(bench))
            }
        };
        Ok(PyAgent {
            session: Mutex::new(session),
            target,
        })
    }

    /// Where it stands.
    #[getter]
    fn plan(&self, py: Python<'_>) -> PyPlan {
        self.stands(py)
    }

    /// The changes from the start to here.
    #[getter]
    fn path(&self, py: Python<'_>) -> Vec<String> {
        self.with(py, |session| session.path().map(str::to_owned).collect())
    }

    /// The actions that are legal here, as texts.
    fn actions(&self, py: Python<'_>) -> Vec<String> {
        self.with(py, |session| {
            let actions = session.actions();
            let graph = session.plan().graph();
            actions
                .iter()
                .map(|action| print_mutation(graph, action))
                .collect()
        })
    }

    /// Does an action and gives the reward of where it leads; `None` where that does not count. One that is not legal
    /// raises, and the agent stays where it is.
    fn apply(&self, action: &str, py: Python<'_>) -> PyResult<Option<f64>> {
        let mutation = self.stands(py).mutation(action)?;
        let step = self.with(py, |session| session.apply(&mutation));
        let Step { reward, .. } = step.map_err(errors::mutation)?;
        Ok(reward)
    }

    /// Takes the last action back; `False` at the start.
    fn undo(&self, py: Python<'_>) -> bool {
        self.with(py, Session::undo)
    }

    /// Does again what was taken back last; `False` where nothing was.
    fn redo(&self, py: Python<'_>) -> bool {
        self.with(py, Session::redo)
    }

    /// The reward of where it stands: 0 at the start.
    #[getter]
    fn reward(&self, py: Python<'_>) -> Option<f64> {
        self.with(py, |session| session.reward())
    }

    /// Each loop as numbers: the step, the loop, and the values that `FEATURES` names.
    fn features(&self, py: Python<'_>) -> Vec<(String, String, Vec<f64>)> {
        self.with(py, |session| {
            let lines = session.features();
            let graph = session.plan().graph();
            let shown = lines.iter().map(|line| {
                let (step, name) = loop_name(graph, line.node, line.name);
                (step, name, line.values.to_vec())
            });
            shown.collect()
        })
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        format!("<Agent after {} actions>", self.path(py).len())
    }
}

/// Adds what is here to the module.
pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyAgent>()?;
    module.add("FEATURES", FEATURES.to_vec())
}
