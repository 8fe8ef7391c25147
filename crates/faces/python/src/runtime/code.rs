//! Code: compiled programs that are not tied to memory, and what they will need of it.

use super::errors;
use crate::loops::{PyGraph, PyPlan, place, text_error};
use loopwright_graph::{Graph, parse};
use loopwright_looptree::Schedule;
use loopwright_runtime::{Batch, Code, Mode, Modes, Plan, Planned, RuntimeOptions, SetAt};
use loopwright_text as text;
use pyo3::exceptions::{PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping, PyString};
use std::path::PathBuf;
use std::sync::Arc;

/// A program that is to be compiled.
pub(super) struct Source {
    pub(super) graph: Arc<Graph>,
    /// How it runs, where that was said.
    pub(super) schedule: Option<Schedule>,
    /// The name of its file.
    pub(super) name: Option<String>,
}

impl Source {
    /// The program of a graph, a plan, a text, or a file by its path.
    pub(super) fn of(given: &Bound<'_, PyAny>) -> PyResult<Source> {
        if let Ok(graph) = given.cast::<PyGraph>() {
            let graph = graph.get().finished()?;
            return Ok(Source::unscheduled(graph, None));
        }
        if let Ok(plan) = given.cast::<PyPlan>() {
            let plan = &plan.get().plan;
            return Ok(Source {
                graph: Arc::clone(plan.program()),
                schedule: Some(plan.schedule().clone()),
                name: None,
            });
        }
        if let Ok(program) = given.cast::<PyString>() {
            let graph = parsed("program.lw", program.extract()?)?;
            return Ok(Source::unscheduled(graph, None));
        }
        if !given.hasattr("__fspath__")? {
            return Err(PyTypeError::new_err(format!(
                "a program is a Graph, a Plan, the text of one, or the path of a file, and not {}",
                given.get_type().name()?
            )));
        }
        let path: PathBuf = given.extract()?;
        let graph = parsed(&path.display().to_string(), std::fs::read_to_string(&path)?)?;
        let name = path.file_stem().map(|name| name.display().to_string());
        Ok(Source::unscheduled(graph, name))
    }

    fn unscheduled(graph: Arc<Graph>, name: Option<String>) -> Source {
        Source {
            graph,
            schedule: None,
            name,
        }
    }
}

fn parsed(name: &str, program: String) -> PyResult<Arc<Graph>> {
    let source = text::Source::new(name, program);
    let graph = parse(&source).map_err(|error| text_error(&source, &error))?;
    Ok(Arc::new(graph))
}

/// The items of a mapping from names.
pub(super) fn names_and_values<'py>(
    given: &Bound<'py, PyAny>,
) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
    let mapping = given.cast::<PyMapping>().map_err(|_| {
        let kind = given.get_type().name();
        PyTypeError::new_err(format!(
            "a mapping from names is needed, and not {}",
            kind.map_or_else(|_| "this".to_owned(), |kind| kind.to_string())
        ))
    })?;
    let items = mapping.items()?;
    items.iter().map(|item| item.extract()).collect()
}

/// Values of sizes by name.
pub(super) fn sizes_of(given: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<(String, i64)>> {
    let given = given.filter(|given| !given.is_none());
    let given = given.map(names_and_values).transpose()?.unwrap_or_default();
    given
        .into_iter()
        .map(|(name, value)| Ok((name, value.extract()?)))
        .collect()
}

/// The same as the runtime takes them.
pub(super) fn borrowed(sizes: &[(String, i64)]) -> Vec<(&str, i64)> {
    let sizes = sizes.iter();
    sizes.map(|(name, size)| (name.as_str(), *size)).collect()
}

/// Modes by the names of nodes; errors name the place in Python that asked.
pub(super) fn mode_wishes(given: Option<&Bound<'_, PyAny>>) -> PyResult<Modes> {
    let Some(given) = given.filter(|given| !given.is_none()) else {
        return Ok(Modes::new());
    };
    let asked = place(given.py());
    let asked: Arc<str> = asked.strip_prefix(" at ").unwrap_or("Python").into();
    let mut modes = Modes::new();
    for (node, mode) in names_and_values(given)? {
        let word: String = mode.extract()?;
        let known = [Mode::Virtual, Mode::Local, Mode::OnDevice, Mode::Constant];
        let mode = known.into_iter().find(|mode| mode.to_string() == word);
        let mode = mode.ok_or_else(|| {
            PyValueError::new_err(format!(
                "`{node}`: there is no mode `{word}`; there are `virtual`, `local`, `on device` and `constant`"
            ))
        })?;
        modes = modes.set_at(node, mode, SetAt::Other(Arc::clone(&asked)));
    }
    Ok(modes)
}

/// A compiled program that is not tied to memory: any device of its platform can link it, in any number of contexts.
#[pyclass(name = "Code", module = "loopwright.runtime", frozen)]
pub(super) struct PyCode {
    pub(super) code: Code,
}

impl PyCode {
    pub(super) fn new(code: Code) -> PyCode {
        PyCode { code }
    }
}

#[pymethods]
impl PyCode {
    /// What errors and traces call it.
    #[getter]
    fn name(&self) -> &str {
        self.code.name()
    }

    /// The program that it was made from.
    #[getter]
    fn graph(&self) -> PyGraph {
        PyGraph::of(Arc::new(self.code.graph().clone()))
    }

    /// The code that the backend made; `None` where it is compiled when it is linked.
    #[getter]
    fn text(&self) -> Option<String> {
        self.code.program().map(|program| program.code())
    }

    /// The array whose value on another stream it reads, from the merge buffer; `None` where it reads none.
    #[getter]
    fn merge_node(&self) -> Option<&str> {
        self.code.merge_node()
    }

    /// By node: where its values live (`virtual`, `local`, `on device`, `constant`), and why.
    #[getter]
    fn modes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let modes = PyDict::new(py);
        for node in self.code.modes() {
            modes.set_item(&node.node, (node.mode.to_string(), node.why.to_string()))?;
        }
        Ok(modes)
    }

    /// All memory that linking it to an empty context takes, at these sizes.
    #[pyo3(signature = (sizes=None, *, pool_cap=None))]
    fn plan(
        &self,
        sizes: Option<&Bound<'_, PyAny>>,
        pool_cap: Option<usize>,
        py: Python<'_>,
    ) -> PyResult<PyMemoryPlan> {
        let sizes = sizes_of(sizes)?;
        let cap = pool_cap.unwrap_or_else(|| RuntimeOptions::default().pool_cap);
        let plan = py.detach(|| self.code.plan(&borrowed(&sizes), cap));
        plan.map(PyMemoryPlan)
            .map_err(|error| errors::of(py, error))
    }

    fn __repr__(&self) -> String {
        format!("<Code {}>", self.code.name())
    }
}

/// Programs compiled together, by name: a mapping, with `None` for those that were left out.
#[pyclass(name = "Batch", module = "loopwright.runtime", frozen)]
pub(super) struct PyBatch {
    pub(super) names: Vec<String>,
    pub(super) batch: Batch,
}

impl PyBatch {
    pub(super) fn new(names: Vec<String>, batch: Batch) -> PyBatch {
        PyBatch { names, batch }
    }
}

#[pymethods]
impl PyBatch {
    /// The names, in the order of the programs.
    fn keys(&self) -> Vec<String> {
        self.names.clone()
    }

    fn __getitem__(&self, name: &str) -> PyResult<Option<PyCode>> {
        let at = self.names.iter().position(|known| known == name);
        let at = at.ok_or_else(|| {
            PyKeyError::new_err(format!(
                "the batch has no program `{name}`; it has [{}]",
                self.names.join(", ")
            ))
        })?;
        Ok(self.batch.codes()[at].clone().map(PyCode::new))
    }

    fn __len__(&self) -> usize {
        self.names.len()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.names.clone().into_pyobject(py)?.try_iter()?.into_any())
    }

    fn __contains__(&self, name: &Bound<'_, PyAny>) -> bool {
        let name = name.extract::<String>();
        name.is_ok_and(|name| self.names.contains(&name))
    }

    fn __repr__(&self) -> String {
        format!("<Batch of {}>", self.names.join(", "))
    }
}

/// All memory that linking takes: which arrays lie where, before anything runs. `print` shows it.
#[pyclass(name = "MemoryPlan", module = "loopwright.runtime", frozen)]
pub(super) struct PyMemoryPlan(Plan);

#[pymethods]
impl PyMemoryPlan {
    /// What lies where, in the order of the kernel's parameters.
    #[getter]
    fn entries(&self) -> Vec<PyPlanned> {
        self.0.entries.iter().cloned().map(PyPlanned).collect()
    }

    /// Bytes of each pool; constants, which a device has once, are in the last ones.
    #[getter]
    fn pools(&self) -> Vec<usize> {
        self.0.pools.raw.clone()
    }

    /// Bytes of all pools.
    #[getter]
    fn bytes(&self) -> usize {
        self.0.bytes()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!(
            "<MemoryPlan of {} bytes in {} pools>",
            self.0.bytes(),
            self.0.pools.len()
        )
    }
}

/// A piece of planned memory.
#[pyclass(name = "Planned", module = "loopwright.runtime", frozen)]
pub(super) struct PyPlanned(Planned);

#[pymethods]
impl PyPlanned {
    /// The array's name.
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    /// `input`, `state`, `output`, `scratch` or `constant`.
    #[getter]
    fn role(&self) -> &'static str {
        self.0.role.name()
    }

    /// Dtype and shape, where it is an array.
    #[getter]
    fn array(&self) -> Option<&str> {
        self.0.array.as_deref()
    }

    /// How long it is.
    #[getter]
    fn bytes(&self) -> usize {
        self.0.bytes
    }

    /// The number of its pool, from the first one of the link.
    #[getter]
    fn pool(&self) -> u32 {
        self.0.loc.pool.0
    }

    /// Bytes from the start of its pool.
    #[getter]
    fn offset(&self) -> usize {
        self.0.loc.offset
    }

    /// For scratch memory: the statements of the kernel between which it is needed.
    #[getter]
    fn live(&self) -> Option<(u32, u32)> {
        let live = self.0.live.as_ref();
        live.map(|live| (live.start, live.end))
    }

    fn __repr__(&self) -> String {
        format!(
            "<Planned {} {}, {} bytes at {}>",
            self.role(),
            self.0.name,
            self.0.bytes,
            self.0.loc
        )
    }
}

/// Adds what is here to the module.
pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyCode>()?;
    module.add_class::<PyBatch>()?;
    module.add_class::<PyMemoryPlan>()?;
    module.add_class::<PyPlanned>()
}
