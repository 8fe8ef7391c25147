//! Plans: a program with a schedule, its loop tree, and every change that can be made to it.

use super::display::plan_html;
use super::errors;
use super::graph::PyGraph;
use super::node::{node_named, out};
use super::program::{PyCompiler, PyProgram, sizes_of};
use super::symbols::PyExpr;
use super::tree::{Parts, PyAccess, PyAllocation, PyCursor, PyPlace, PyTree, reads};
use loopwright_backend::{Backend, backends};
use loopwright_graph::{Binding, Graph, NodeId};
use loopwright_looptree as looptree;
use loopwright_looptree::{
    Allocation, Changed, Cursor, Mutation, Plan, allocations, bytes_moved, costs, flops,
    parse_mutation, reassociated,
};
use loopwright_scheduler::{Estimate, Reasons, estimate};
use loopwright_text::Source;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rustc_hash::FxHashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// What a plan is made for: a machine, and the backend that runs it.
#[derive(Clone)]
pub(super) struct Target {
    pub(super) device: String,
    pub(super) machine: looptree::Target,
}

/// A backend by its name; none: the most preferred one that can be used here.
pub(super) fn backend_of(name: Option<&str>) -> PyResult<Backend> {
    let known = backends();
    let found = match name {
        Some(name) => known.iter().find(|backend| backend.name() == name),
        None => known
            .iter()
            .find(|backend| backend.capabilities().computes && backend.availability().is_ok()),
    };
    found.cloned().ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|backend| backend.name()).collect();
        PyValueError::new_err(format!(
            "there is no backend `{}`; there are {}",
            name.unwrap_or("auto"),
            names.join(", ")
        ))
    })
}

/// The machine of a backend.
pub(super) fn target_of(name: Option<&str>) -> PyResult<Target> {
    let backend = backend_of(name)?;
    Ok(Target {
        device: backend.name().to_owned(),
        machine: backend.target(),
    })
}

/// Numbers plans, so that a cursor knows which plan a change was made to.
static COUNT: AtomicU64 = AtomicU64::new(0);

/// A program and how it runs: which nodes have code of their own, in which order, with which loops. Nothing in it changes;
/// every change is a new plan, so undo is keeping the old one. A change keeps what the program computes, or raises
/// `RefusedChange` with the dependence it would break.
#[pyclass(name = "Plan", module = "loopwright.loops", frozen)]
pub(crate) struct PyPlan {
    pub(crate) plan: Plan,
    pub(super) target: Target,
    pub(super) number: u64,
    /// The number of the plan that it was made of, and the change.
    pub(super) from: Option<(u64, Changed)>,
    pub(super) reasons: FxHashMap<NodeId, Reasons>,
    notes: Vec<String>,
    parts: OnceLock<Arc<Parts>>,
}

impl PyPlan {
    pub(super) fn new(plan: Plan, target: Target) -> PyPlan {
        PyPlan {
            plan,
            target,
            number: COUNT.fetch_add(1, Ordering::Relaxed),
            from: None,
            reasons: FxHashMap::default(),
            notes: Vec::new(),
            parts: OnceLock::new(),
        }
    }

    /// The same, with why it is as it is.
    pub(super) fn explained(mut self, reasons: FxHashMap<NodeId, Reasons>) -> PyPlan {
        self.reasons = reasons;
        self
    }

    /// The same, with what is to be said about it.
    pub(super) fn noted(mut self, notes: Vec<String>) -> PyPlan {
        self.notes = notes;
        self
    }

    pub(super) fn parts(&self) -> Arc<Parts> {
        let parts = self.parts.get_or_init(|| {
            Arc::new(Parts {
                graph: Arc::clone(self.plan.graph()),
                tree: self.plan.tree().clone(),
            })
        });
        Arc::clone(parts)
    }

    /// The mutation of a text.
    pub(super) fn mutation(&self, text: &str) -> PyResult<Mutation> {
        let source = Source::new("change", text);
        parse_mutation(&source, self.plan.graph()).map_err(|error| errors::text(&source, &error))
    }

    /// Where a cursor into the plan before is in this one.
    pub(super) fn follow(&self, before: &PyPlan, cursor: Cursor) -> PyResult<Option<Cursor>> {
        if before.number == self.number {
            return Ok(Some(cursor));
        }
        match &self.from {
            Some((number, changed)) if *number == before.number => Ok(changed.follow(cursor)),
            _ => Err(PyValueError::new_err(
                "a cursor follows one change at a time, from its own plan to what the change made of it",
            )),
        }
    }

    fn step(&self, name: &str) -> PyResult<NodeId> {
        let node = node_named(self.plan.graph(), name);
        node.ok_or_else(|| PyValueError::new_err(format!("the program has no node `{name}`")))
    }

    fn held(&self) -> PyResult<FxHashMap<NodeId, Allocation>> {
        allocations(self.plan.graph(), self.plan.schedule(), self.plan.tree())
            .map_err(errors::schedule)
    }

    /// What the cost model expects, at these sizes or at the defaults.
    pub(super) fn estimated(&self, binding: Option<&Binding>) -> PyResult<Estimate> {
        let sizes = |symbol| binding.map(|binding| binding.value(symbol));
        let (graph, schedule) = (self.plan.graph(), self.plan.schedule());
        estimate(
            graph,
            schedule,
            self.plan.tree(),
            &self.target.machine,
            &sizes,
        )
        .map_err(errors::schedule)
    }
}

/// What the cost model expects of a plan.
#[pyclass(name = "Cost", module = "loopwright.loops", frozen)]
pub(super) struct PyCost {
    graph: Arc<Graph>,
    estimate: Estimate,
}

#[pymethods]
impl PyCost {
    /// All steps together.
    #[getter]
    fn seconds(&self) -> f64 {
        self.estimate.seconds
    }

    /// By step: seconds, operations, bytes between the core and L1, L1 and L2, L2 and L3, L3 and memory, what holds it
    /// up, and that in a sentence.
    #[getter]
    fn steps<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let steps = PyDict::new(py);
        for step in &self.estimate.steps {
            let row = PyDict::new(py);
            row.set_item("seconds", step.seconds)?;
            row.set_item("flops", step.flops)?;
            row.set_item("bytes", step.bytes)?;
            row.set_item("bound", step.bound.name())?;
            row.set_item("reason", step.reason(&self.graph))?;
            steps.set_item(self.graph.node_name(step.node), row)?;
        }
        Ok(steps)
    }

    fn __repr__(&self) -> String {
        format!("<Cost of {:.3e} s>", self.estimate.seconds)
    }
}

#[pymethods]
impl PyPlan {
    /// The program as it is written, every result a node of its own.
    #[getter]
    fn program(&self) -> PyGraph {
        PyGraph::of(Arc::clone(self.plan.program()))
    }

    /// The program with the schedule's changes made: what the steps are nodes of.
    #[getter]
    fn graph(&self) -> PyGraph {
        PyGraph::of(Arc::clone(self.plan.graph()))
    }

    /// The schedule's text.
    #[getter]
    fn schedule(&self) -> String {
        self.plan.to_string()
    }

    /// The loop tree.
    #[getter]
    fn tree(&self) -> PyTree {
        PyTree::new(self.parts())
    }

    /// The names of the steps, in order.
    #[getter]
    fn steps(&self) -> Vec<String> {
        let steps = self.plan.schedule().steps.iter();
        steps
            .map(|step| self.plan.graph().node_name(step.node))
            .collect()
    }

    /// The backend that it is made for.
    #[getter]
    fn target(&self) -> &str {
        &self.target.device
    }

    /// What of a schedule for another version of the program does not fit any more.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    /// Whether the change that made it folds floats in another order than before, which changes how they round.
    #[getter]
    fn reassociates(&self) -> bool {
        self.from
            .as_ref()
            .is_some_and(|(_, changed)| changed.reassociates)
    }

    /// The reductions over floats that it folds in another order than the program says.
    #[getter]
    fn reassociated(&self) -> Vec<String> {
        let found = reassociated(self.plan.graph(), self.plan.schedule());
        found
            .into_iter()
            .map(|node| self.plan.graph().node_name(node))
            .collect()
    }

    /// Why the scheduler made a step, and each of its loops; empty where the schedule was given.
    fn reasons(&self, step: &str) -> PyResult<(String, Vec<String>)> {
        let node = self.step(step)?;
        let reasons = self.reasons.get(&node);
        Ok(reasons.map_or_else(Default::default, |reasons| {
            let loops = reasons.loops.iter().map(ToString::to_string);
            (reasons.step.to_string(), loops.collect())
        }))
    }

    /// A cursor at a place of the tree, at a step and so many of its loops, or at the first place.
    #[pyo3(signature = (at=None, depth=None))]
    fn cursor(
        slf: &Bound<'_, Self>,
        at: Option<&Bound<'_, PyAny>>,
        depth: Option<usize>,
    ) -> PyResult<PyCursor> {
        let this = slf.get();
        let tree = this.plan.tree();
        let cursor = match at {
            None => tree
                .roots()
                .first()
                .and_then(|place| Cursor::at(tree, *place)),
            Some(at) => match at.cast::<PyPlace>() {
                Ok(place) => {
                    if !Arc::ptr_eq(&place.get().parts, &this.parts()) {
                        return Err(PyValueError::new_err(
                            "this place is of another plan's tree",
                        ));
                    }
                    Cursor::at(tree, place.get().place)
                }
                Err(_) => {
                    let node = this.step(&at.str()?.to_string())?;
                    let leaf = tree.find(node).map(|leaf| tree.ancestors(leaf).len());
                    let around = leaf.unwrap_or(0);
                    let depth = depth.unwrap_or(around);
                    (leaf.is_some() && depth <= around).then_some(Cursor { node, depth })
                }
            },
        };
        let cursor = cursor.ok_or_else(|| PyValueError::new_err("the plan has no such place"))?;
        Ok(PyCursor {
            plan: slf.clone().unbind(),
            cursor,
        })
    }

    /// Memory for the result of each step: how much of it, for how long.
    #[getter]
    fn allocations<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let mut held = self.held()?;
        let found = PyDict::new(py);
        for step in &self.plan.schedule().steps {
            if let Some(allocation) = held.remove(&step.node) {
                let name = self.plan.graph().node_name(step.node);
                let parts = self.parts();
                found.set_item(name, PyAllocation { parts, allocation })?;
            }
        }
        Ok(found)
    }

    /// What a step reads from memory, and where.
    fn accesses(&self, step: &Bound<'_, PyAny>) -> PyResult<Vec<PyAccess>> {
        let node = self.step(&step.str()?.to_string())?;
        let scheduled = |node: NodeId| self.plan.schedule().step(node).is_some();
        reads(self.plan.graph(), node, &scheduled)
    }

    /// Arithmetic operations of the whole program, over its sizes.
    #[getter]
    fn flops(&self) -> PyResult<PyExpr> {
        let graph = self.plan.graph();
        let costs = costs(graph, self.plan.schedule(), &self.held()?).map_err(errors::schedule)?;
        out(graph, &flops(graph, &costs).map_err(errors::schedule)?)
    }

    /// Bytes that it moves between memory and its loops, over its sizes.
    #[getter]
    fn bytes(&self) -> PyResult<PyExpr> {
        let graph = self.plan.graph();
        let costs = costs(graph, self.plan.schedule(), &self.held()?).map_err(errors::schedule)?;
        out(
            graph,
            &bytes_moved(graph, &costs).map_err(errors::schedule)?,
        )
    }

    /// What the cost model expects, at the defaults of all sizes.
    #[getter]
    fn cost(&self) -> PyResult<PyCost> {
        Ok(PyCost {
            graph: Arc::clone(self.plan.graph()),
            estimate: self.estimated(None)?,
        })
    }

    /// What the cost model expects at these sizes.
    #[pyo3(signature = (**sizes))]
    fn estimate(&self, sizes: Option<&Bound<'_, PyDict>>) -> PyResult<PyCost> {
        let given = super::program::arguments(sizes)?;
        let binding = sizes_of(self.plan.graph(), &given)?;
        Ok(PyCost {
            graph: Arc::clone(self.plan.graph()),
            estimate: self.estimated(Some(&binding))?,
        })
    }

    /// The program compiled for a backend, its target's by default. The same plan is compiled once.
    #[pyo3(signature = (device=None, strict=false))]
    fn compile(&self, device: Option<&str>, strict: bool, py: Python<'_>) -> PyResult<PyProgram> {
        let device = device.unwrap_or(&self.target.device);
        PyCompiler::shared(device, strict)?.compiled(self, py)
    }

    fn __eq__(&self, other: &PyPlan) -> bool {
        self.plan.to_string() == other.plan.to_string()
            && self.plan.program() == other.plan.program()
    }

    fn __hash__(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        self.plan.to_string().hash(&mut hasher);
        hasher.finish()
    }

    fn __str__(&self) -> String {
        self.plan.to_string()
    }

    fn __repr__(&self) -> String {
        format!(
            "<Plan of {} steps for {}>",
            self.plan.schedule().steps.len(),
            self.target.device
        )
    }

    fn _repr_html_(&self) -> PyResult<String> {
        plan_html(self)
    }
}

/// Adds what is here to the module.
pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyPlan>()?;
    module.add_class::<PyCost>()
}
