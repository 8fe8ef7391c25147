//! Loop trees: loops and steps in the order in which they run, what each step reads, and where results live.

use super::errors;
use super::node::{PyNode, node_named, out};
use super::plan::PyPlan;
use super::symbols::PyExpr;
use loopwright_graph::{Graph, NodeId};
use loopwright_looptree::{
    Access, Allocation, Cursor, LoopTree, Storage, TreeNode, TreeRef, accesses, parse_tree,
    print_tree,
};
use loopwright_symbolic::Expr;
use loopwright_text::Source;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// A tree with the graph that its leaves are nodes of.
pub(super) struct Parts {
    pub(super) graph: Arc<Graph>,
    pub(super) tree: LoopTree,
}

fn failed(error: loopwright_symbolic::Error) -> PyErr {
    errors::symbolic(&error, error.to_string())
}

/// A loop tree: inner places are loops, leaves are steps.
#[pyclass(name = "Tree", module = "loopwright.loops", frozen)]
pub(super) struct PyTree {
    parts: Arc<Parts>,
}

impl PyTree {
    pub(super) fn new(parts: Arc<Parts>) -> PyTree {
        PyTree { parts }
    }

    fn at(&self, place: TreeRef) -> PyPlace {
        PyPlace {
            parts: Arc::clone(&self.parts),
            place,
        }
    }
}

#[pymethods]
impl PyTree {
    /// Reads a tree from its text, for the graph of a plan.
    #[staticmethod]
    fn parse(text: &str, plan: &PyPlan) -> PyResult<PyTree> {
        let source = Source::new("tree", text);
        let graph = Arc::clone(plan.plan.graph());
        let tree = parse_tree(&source, &graph).map_err(|error| errors::text(&source, &error))?;
        Ok(PyTree::new(Arc::new(Parts { graph, tree })))
    }

    /// The outermost places, in order.
    #[getter]
    fn roots(&self) -> Vec<PyPlace> {
        self.parts
            .tree
            .roots()
            .iter()
            .map(|place| self.at(*place))
            .collect()
    }

    /// Every place, outer before inner, in the order in which they run.
    fn walk(&self) -> Vec<PyPlace> {
        let mut places = Vec::with_capacity(self.parts.tree.len());
        self.parts
            .tree
            .walk(&mut |place, _| places.push(self.at(place)));
        places
    }

    /// The leaf that computes a node; `None` for what has no code of its own.
    fn find(&self, name: &str) -> Option<PyPlace> {
        let node = node_named(&self.parts.graph, name)?;
        self.parts.tree.find(node).map(|place| self.at(place))
    }

    /// The innermost loop around two places; `None` where that is the whole program.
    fn lowest_common_ancestor(&self, a: &PyPlace, b: &PyPlace) -> PyResult<Option<PyPlace>> {
        for place in [a, b] {
            if !Arc::ptr_eq(&place.parts, &self.parts) {
                return Err(PyValueError::new_err("this place is of another tree"));
            }
        }
        let found = self.parts.tree.lowest_common_ancestor(a.place, b.place);
        Ok(found.map(|place| self.at(place)))
    }

    fn __len__(&self) -> usize {
        self.parts.tree.len()
    }

    fn __eq__(&self, other: &PyTree) -> bool {
        self.parts.tree == other.parts.tree && self.parts.graph == other.parts.graph
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.__str__().hash(&mut hasher);
        hasher.finish()
    }

    fn __str__(&self) -> String {
        print_tree(&self.parts.graph, &self.parts.tree)
    }

    fn __repr__(&self) -> String {
        format!("<Tree of {} places>", self.parts.tree.len())
    }
}

/// A place in a tree: a loop, or a step.
#[pyclass(name = "Place", module = "loopwright.loops", frozen)]
pub(super) struct PyPlace {
    pub(super) parts: Arc<Parts>,
    pub(super) place: TreeRef,
}

impl PyPlace {
    fn at(&self, place: TreeRef) -> PyPlace {
        PyPlace {
            parts: Arc::clone(&self.parts),
            place,
        }
    }

    fn leaf(&self) -> Option<NodeId> {
        match self.parts.tree.node(self.place) {
            TreeNode::Leaf(node) => Some(*node),
            TreeNode::Loop { .. } => None,
        }
    }
}

#[pymethods]
impl PyPlace {
    /// Whether it is a loop; else it is a step.
    #[getter]
    fn is_loop(&self) -> bool {
        self.parts.tree.spec(self.place).is_some()
    }

    /// The node that a step computes; `None` for a loop.
    #[getter]
    fn node(&self) -> Option<PyNode> {
        let node = self.leaf()?;
        Some(PyNode::new(Arc::clone(&self.parts.graph), node))
    }

    /// A step's name; a loop's as changes say it: `i/8`.
    #[getter]
    fn name(&self) -> String {
        match (self.leaf(), self.parts.tree.spec(self.place)) {
            (None, Some(spec)) => {
                let dim = &self.parts.graph.dim(spec.dim).name;
                match spec.step {
                    1 => dim.clone(),
                    step => format!("{dim}/{step}"),
                }
            }
            (Some(node), _) => self.parts.graph.node_name(node),
            (None, None) => String::new(),
        }
    }

    /// The dimension that a loop runs over.
    #[getter]
    fn dim(&self) -> Option<String> {
        let spec = self.parts.tree.spec(self.place)?;
        Some(self.parts.graph.dim(spec.dim).name.clone())
    }

    /// Elements from one round of a loop to the next.
    #[getter]
    fn step(&self) -> Option<i64> {
        self.parts.tree.spec(self.place).map(|spec| spec.step)
    }

    /// How the rounds of a loop run: `serial`, `parallel`, `vectorize`, `unroll`, ..
    #[getter]
    fn annotation(&self) -> Option<&'static str> {
        self.parts
            .tree
            .spec(self.place)
            .map(|spec| spec.annotation.name())
    }

    /// How much of its dimension a loop covers: the step of the loop over it further out, or all of it.
    #[getter]
    fn extent(&self) -> PyResult<Option<PyExpr>> {
        let Some(spec) = self.parts.tree.spec(self.place) else {
            return Ok(None);
        };
        let around = self.parts.tree.ancestors(self.place);
        let outer = around
            .iter()
            .rev()
            .filter_map(|above| self.parts.tree.spec(*above));
        let outer = outer
            .filter(|above| above.dim == spec.dim)
            .map(|above| above.step)
            .next();
        match outer {
            Some(step) => Ok(Some(PyExpr::constant(step))),
            None => out(&self.parts.graph, &self.parts.graph.dim(spec.dim).size).map(Some),
        }
    }

    /// What runs inside a loop, in order.
    #[getter]
    fn children(&self) -> Vec<PyPlace> {
        let children = self.parts.tree.children(self.place).iter();
        children.map(|place| self.at(*place)).collect()
    }

    /// The loop around it.
    #[getter]
    fn parent(&self) -> Option<PyPlace> {
        self.parts
            .tree
            .parent(self.place)
            .map(|place| self.at(place))
    }

    /// The loops around it, outermost first.
    #[getter]
    fn loops(&self) -> Vec<PyPlace> {
        let around = self.parts.tree.ancestors(self.place);
        around.iter().map(|place| self.at(*place)).collect()
    }

    /// The steps at or below it, in order.
    #[getter]
    fn steps(&self) -> Vec<String> {
        let leaves = self.parts.tree.leaves(self.place);
        leaves
            .into_iter()
            .map(|node| self.parts.graph.node_name(node))
            .collect()
    }

    /// Whether the rounds of a loop are independent: nothing inside is carried from one to the next.
    #[getter]
    fn trivially_parallel(&self) -> bool {
        self.is_loop()
            && self
                .parts
                .tree
                .trivially_parallel(&self.parts.graph, self.place)
    }

    /// The backend that its outermost loop is handed to; `None`: the program's own.
    #[getter]
    fn delegate(&self) -> Option<String> {
        self.parts.tree.delegate(self.place).map(str::to_owned)
    }

    /// What a step reads from memory, and where.
    #[getter]
    fn accesses(&self) -> PyResult<Vec<PyAccess>> {
        let Some(node) = self.leaf() else {
            return Ok(Vec::new());
        };
        let steps = self.parts.tree.leaf_places();
        reads(&self.parts.graph, node, &|node| steps.contains_key(&node))
    }

    fn __eq__(&self, other: &PyPlace) -> bool {
        Arc::ptr_eq(&self.parts, &other.parts) && self.place == other.place
    }

    fn __hash__(&self) -> u64 {
        u64::from(self.place.0)
    }

    fn __repr__(&self) -> String {
        match self.parts.tree.spec(self.place) {
            Some(spec) => match spec.annotation.name() {
                "serial" => format!("<loop {}>", self.name()),
                annotation => format!("<loop {} {annotation}>", self.name()),
            },
            None => format!("<step {}>", self.name()),
        }
    }
}

/// The reads of a step.
pub(super) fn reads(
    graph: &Arc<Graph>,
    node: NodeId,
    scheduled: &dyn Fn(NodeId) -> bool,
) -> PyResult<Vec<PyAccess>> {
    let found = accesses(graph, node, scheduled).map_err(failed)?;
    let found = found.into_iter().map(|access| PyAccess {
        graph: Arc::clone(graph),
        access,
    });
    Ok(found.collect())
}

/// One read of memory by a step.
#[pyclass(name = "Access", module = "loopwright.loops", frozen)]
pub(super) struct PyAccess {
    graph: Arc<Graph>,
    access: Access,
}

impl PyAccess {
    fn shown(&self, expr: Option<Expr>) -> PyResult<Option<PyExpr>> {
        expr.map(|expr| out(&self.graph, &expr)).transpose()
    }
}

#[pymethods]
impl PyAccess {
    /// What is read.
    #[getter]
    fn node(&self) -> PyNode {
        PyNode::new(Arc::clone(&self.graph), self.access.node)
    }

    /// For each of its dimensions, the index over the step's loops; `None` where it depends on data.
    #[getter]
    fn index(&self) -> PyResult<Vec<Option<PyExpr>>> {
        self.access
            .index
            .iter()
            .map(|index| self.shown(index.clone()))
            .collect()
    }

    /// Whether it is read only where some view's index is in range.
    #[getter]
    fn guarded(&self) -> bool {
        self.access.guarded
    }

    /// The place of the element in a row-major array, counted in elements.
    #[getter]
    fn flat(&self) -> PyResult<Option<PyExpr>> {
        self.shown(self.access.flat(&self.graph).map_err(failed)?)
    }

    /// Elements that it moves by when the index along a dimension grows by one.
    fn stride(&self, dim: &str) -> PyResult<Option<PyExpr>> {
        let found = self.graph.find_dim(dim).ok_or_else(|| {
            PyValueError::new_err(format!("the program has no dimension `{dim}`"))
        })?;
        let symbol = self.graph.dim(found).index;
        self.shown(self.access.step(&self.graph, symbol).map_err(failed)?)
    }

    /// The element that is read where all indices are 0.
    #[getter]
    fn intercept(&self) -> PyResult<Option<PyExpr>> {
        self.shown(self.access.intercept(&self.graph).map_err(failed)?)
    }

    /// The least and the largest index along each dimension, as far as known.
    #[getter]
    fn ranges(&self) -> Vec<(Option<i64>, Option<i64>)> {
        let ranges = self.access.ranges(&self.graph);
        ranges.iter().map(|range| (range.lo, range.hi)).collect()
    }

    fn __repr__(&self) -> PyResult<String> {
        let index = self.index()?;
        let index = index.iter().map(|index| match index {
            Some(index) => index.expr.display(&super::symbols::name_of).to_string(),
            None => "?".to_owned(),
        });
        let index = index.collect::<Vec<_>>().join(", ");
        Ok(format!(
            "<read {}[{index}]>",
            self.graph.node_name(self.access.node)
        ))
    }
}

/// Memory for a step's result.
#[pyclass(name = "Allocation", module = "loopwright.loops", frozen)]
pub(super) struct PyAllocation {
    pub(super) parts: Arc<Parts>,
    pub(super) allocation: Allocation,
}

#[pymethods]
impl PyAllocation {
    /// The step.
    #[getter]
    fn step(&self) -> String {
        self.parts.graph.node_name(self.allocation.node)
    }

    /// Its dtype.
    #[getter]
    fn dtype(&self) -> &'static str {
        self.allocation.dtype.name()
    }

    /// What kind of memory it is: `output`, `state`, `private` (registers or stack) or `scratch`.
    #[getter]
    fn storage(&self) -> &'static str {
        match self.allocation.storage {
            Storage::Output(_) => "output",
            Storage::State(_) => "state",
            Storage::Private => "private",
            Storage::Scratch => "scratch",
        }
    }

    /// How much of each dimension is held at a time.
    #[getter]
    fn extents(&self) -> PyResult<Vec<(String, PyExpr)>> {
        let graph = &self.parts.graph;
        let extents = self.allocation.dims.iter().zip(&self.allocation.extents);
        extents
            .map(|(dim, extent)| Ok((graph.dim(*dim).name.clone(), out(graph, extent)?)))
            .collect()
    }

    /// Elements that are held at a time.
    #[getter]
    fn elements(&self) -> PyResult<PyExpr> {
        out(
            &self.parts.graph,
            &self.allocation.elements().map_err(failed)?,
        )
    }

    /// Bytes that are held at a time.
    #[getter]
    fn bytes(&self) -> PyResult<PyExpr> {
        let width = Expr::constant(self.allocation.dtype.bytes() as i64);
        let bytes = self
            .allocation
            .elements()
            .and_then(|elements| elements.mul(&width));
        out(&self.parts.graph, &bytes.map_err(failed)?)
    }

    /// The loop inside which it is used; `None`: the whole program.
    #[getter]
    fn scope(&self) -> Option<PyPlace> {
        self.allocation.scope.map(|place| PyPlace {
            parts: Arc::clone(&self.parts),
            place,
        })
    }

    fn __repr__(&self) -> PyResult<String> {
        let elements = self
            .elements()?
            .expr
            .display(&super::symbols::name_of)
            .to_string();
        Ok(format!(
            "<{} {} of {}: {elements} elements>",
            self.storage(),
            self.dtype(),
            self.step()
        ))
    }
}

/// A place in a plan that can be followed through changes.
#[pyclass(name = "Cursor", module = "loopwright.loops", frozen)]
pub(super) struct PyCursor {
    pub(super) plan: Py<PyPlan>,
    pub(super) cursor: Cursor,
}

impl PyCursor {
    fn moved(&self, cursor: Option<Cursor>, py: Python<'_>) -> Option<PyCursor> {
        Some(PyCursor {
            plan: self.plan.clone_ref(py),
            cursor: cursor?,
        })
    }
}

#[pymethods]
impl PyCursor {
    /// The step that it belongs to.
    #[getter]
    fn step(&self) -> String {
        self.plan.get().plan.graph().node_name(self.cursor.node)
    }

    /// How many of the step's loops are around it; all of them: the step itself.
    #[getter]
    fn depth(&self) -> usize {
        self.cursor.depth
    }

    /// Its place in the tree.
    #[getter]
    fn place(&self) -> Option<PyPlace> {
        let parts = self.plan.get().parts();
        let place = self.cursor.place(&parts.tree)?;
        Some(PyPlace { parts, place })
    }

    /// The next place, outer before inner; `None` after the last.
    fn next(&self, py: Python<'_>) -> Option<PyCursor> {
        self.moved(self.cursor.next(self.plan.get().plan.tree()), py)
    }

    /// The place before; `None` at the first.
    fn previous(&self, py: Python<'_>) -> Option<PyCursor> {
        self.moved(self.cursor.previous(self.plan.get().plan.tree()), py)
    }

    /// Where it is in the plan that one change made of its own; `None` where its step is none any more.
    fn follow(&self, plan: &Bound<'_, PyPlan>) -> PyResult<Option<PyCursor>> {
        let followed = plan.get().follow(self.plan.get(), self.cursor)?;
        Ok(followed.map(|cursor| PyCursor {
            plan: plan.clone().unbind(),
            cursor,
        }))
    }

    fn __eq__(&self, other: &PyCursor) -> bool {
        self.cursor == other.cursor && self.plan.is(&other.plan)
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.cursor.hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        format!("<Cursor at depth {} of {}>", self.cursor.depth, self.step())
    }
}

/// Adds what is here to the module.
pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyTree>()?;
    module.add_class::<PyPlace>()?;
    module.add_class::<PyAccess>()?;
    module.add_class::<PyAllocation>()?;
    module.add_class::<PyCursor>()
}
