//! Contexts: which arrays there are on a stream, and where.

use super::code::{PyBatch, PyCode, borrowed, sizes_of};
use super::device::PyDevice;
use super::handle::{OnStream, StreamHandle};
use super::routine::PyRoutine;
use super::stream::PyStream;
use crate::dtype::PyDType;
use loopwright_graph::Array;
use loopwright_runtime::{Context, LinkOptions, NodeInfo};
use pyo3::exceptions::{PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::sync::Arc;

/// Named arrays in a device's memory, and the stream that works on them.
///
/// A context never changes. Linking gives a routine, whose context has the arrays of this one and those that the code
/// added. Names are the links: the output `h` of one program is the input `h` of the next. It is a mapping: `context["x"]`
/// waits for the values and gives them, `context["x"] = values` copies them now and schedules their way to the device.
///
/// >>> from loopwright.runtime import Runtime
/// >>> device = Runtime().device("interp")
/// >>> double = device.compile('''loopwright program 1
/// ... input x: f32[i=3]
/// ... output y = x * 2
/// ... ''', "double")
/// >>> routine = device.stream().context().link(double)
/// >>> context = routine.context
/// >>> context["x"] = [1, 2, 3]
/// >>> routine.schedule()
/// >>> context["y"].tolist()
/// [2.0, 4.0, 6.0]
#[pyclass(name = "Context", module = "loopwright.runtime", frozen)]
pub(super) struct PyContext {
    pub(super) inner: OnStream<Context>,
}

impl PyContext {
    pub(super) fn new(context: Context, stream: &Arc<StreamHandle>) -> PyContext {
        PyContext {
            inner: OnStream::new(context, stream, "context"),
        }
    }

    /// A context that was made of this one.
    fn derived(&self, context: Context) -> PyContext {
        PyContext::new(context, &self.inner.stream)
    }

    /// An array by its name; nothing for one that may be missing and is.
    pub(super) fn array(
        &self,
        py: Python<'_>,
        name: &str,
        missing_ok: bool,
    ) -> PyResult<Option<NodeInfo>> {
        let (node, names) = self.inner.with(py, |context| {
            let node = context.node(name);
            let names: Vec<String> = match node.is_some() || missing_ok {
                true => Vec::new(),
                false => context.nodes().into_iter().map(|node| node.name).collect(),
            };
            Ok((node, names))
        })?;
        if node.is_none() && !missing_ok {
            return Err(PyKeyError::new_err(format!(
                "the context has no array `{name}`; it has [{}]",
                names.join(", ")
            )));
        }
        Ok(node)
    }
}

/// What must be in a context already, by name.
fn listed(prior: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<String>> {
    let Some(prior) = prior else {
        return Ok(Vec::new());
    };
    if prior.is_instance_of::<pyo3::types::PyString>() {
        return Err(PyTypeError::new_err("`prior` is a list of names"));
    }
    prior.try_iter()?.map(|name| name?.extract()).collect()
}

#[pymethods]
impl PyContext {
    /// The stream that works on it.
    #[getter]
    fn stream(&self) -> PyStream {
        PyStream {
            handle: Arc::clone(&self.inner.stream),
        }
    }

    /// The device that it is on.
    #[getter]
    fn device(&self, py: Python<'_>) -> PyResult<PyDevice> {
        let device = self.inner.with(py, |context| Ok(context.device()))?;
        Ok(PyDevice::new(device, &self.inner.stream.runtime))
    }

    /// What is known of an array: dtype, shape, where it lies, and what brought it into the context.
    fn info(&self, name: &str, py: Python<'_>) -> PyResult<PyArrayInfo> {
        let node = self.array(py, name, false)?;
        node.map(PyArrayInfo)
            .ok_or_else(|| PyKeyError::new_err(name.to_owned()))
    }

    /// The names of its arrays, in order of the alphabet.
    fn keys(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let nodes = self.inner.with(py, |context| Ok(context.nodes()))?;
        Ok(nodes.into_iter().map(|node| node.name).collect())
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.inner.with(py, |context| Ok(context.nodes().len()))
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.keys(py)?.into_pyobject(py)?.try_iter()?.into_any())
    }

    fn __contains__(&self, name: &Bound<'_, PyAny>, py: Python<'_>) -> PyResult<bool> {
        match name.extract::<String>() {
            Ok(name) => Ok(self.array(py, &name, true)?.is_some()),
            Err(_) => Ok(false),
        }
    }

    /// Ties code to memory: what the context has is used, what it lacks is made. The context stays as it is; the routine's is
    /// its child. `sizes` has values of sizes in place of the program's defaults; `prior` lists arrays that must be in the
    /// context already.
    #[pyo3(signature = (code, sizes=None, *, prior=None))]
    fn link(
        &self,
        code: &PyCode,
        sizes: Option<&Bound<'_, PyAny>>,
        prior: Option<&Bound<'_, PyAny>>,
        py: Python<'_>,
    ) -> PyResult<PyRoutine> {
        let (sizes, prior) = (sizes_of(sizes)?, listed(prior)?);
        let prior: Vec<&str> = prior.iter().map(String::as_str).collect();
        let routine = self.inner.with(py, |context| {
            let options = LinkOptions {
                sizes: &borrowed(&sizes),
                prior: &prior,
            };
            context.link(&code.code, &options)
        })?;
        Ok(PyRoutine::new(routine, &self.inner.stream))
    }

    /// Links the codes of a batch one behind the other. The context that is given lies downstream of all; every routine, by
    /// name, keeps the context that it was linked in.
    #[pyo3(signature = (batch, sizes=None, *, prior=None))]
    fn link_batch<'py>(
        &self,
        batch: &PyBatch,
        sizes: Option<&Bound<'py, PyAny>>,
        prior: Option<&Bound<'py, PyAny>>,
        py: Python<'py>,
    ) -> PyResult<(PyContext, Bound<'py, PyDict>)> {
        let (sizes, prior) = (sizes_of(sizes)?, listed(prior)?);
        let prior: Vec<&str> = prior.iter().map(String::as_str).collect();
        let (context, routines) = self.inner.with(py, |context| {
            let options = LinkOptions {
                sizes: &borrowed(&sizes),
                prior: &prior,
            };
            context.link_batch(&batch.batch, &options)
        })?;
        let linked = PyDict::new(py);
        for (name, routine) in batch.names.iter().zip(routines) {
            let routine = routine.map(|routine| PyRoutine::new(routine, &self.inner.stream));
            linked.set_item(name, routine)?;
        }
        Ok((self.derived(context), linked))
    }

    /// A context in which `name` is the part of `of` at an index of its first dimension: a view in both directions, without
    /// memory of its own.
    fn slice(&self, name: &str, of: &str, index: i64, py: Python<'_>) -> PyResult<PyContext> {
        self.array(py, of, false)?;
        let Ok(index) = usize::try_from(index) else {
            return Err(PyValueError::new_err(format!(
                "cannot slice `{of}`: index {index} is negative"
            )));
        };
        let made = self
            .inner
            .with(py, |context| context.slice(name, of, index))?;
        Ok(self.derived(made))
    }

    /// A context in which `name` is an array that another context of the same stream has as `of`: the same memory under
    /// another name.
    fn with_array(
        &self,
        name: &str,
        other: &PyContext,
        of: &str,
        py: Python<'_>,
    ) -> PyResult<PyContext> {
        other.array(py, of, false)?;
        let other = other.inner.get(py)?;
        let made = self.inner.with(py, move |context| {
            let made = context.with_array(name, &other, of);
            drop(other);
            made
        })?;
        Ok(self.derived(made))
    }

    /// A context with one more array, of these values; they are copied. It has been written.
    #[pyo3(signature = (name, values, dtype=None))]
    fn with_values(
        &self,
        name: &str,
        values: &Bound<'_, PyAny>,
        dtype: Option<&Bound<'_, PyAny>>,
        py: Python<'_>,
    ) -> PyResult<PyContext> {
        let array = values_of(values, dtype)?;
        let made = self
            .inner
            .with(py, |context| context.with_host(name, array))?;
        Ok(self.derived(made))
    }

    /// Lets go of its arrays; memory is free again when no other context, routine or scheduled work has it.
    fn close(&self, py: Python<'_>) {
        self.inner.close(py);
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, _raised: &Bound<'_, PyTuple>, py: Python<'_>) -> bool {
        self.inner.close(py);
        false
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let stream = &self.inner.stream.name;
        match self.keys(py) {
            Ok(names) if names.is_empty() => format!("<Context on {stream} without arrays>"),
            Ok(names) => format!("<Context on {stream} with {}>", names.join(", ")),
            Err(_) => format!("<Context on {stream} that was closed>"),
        }
    }
}

/// A copy of values, in the dtype that is asked for or their own.
fn values_of(values: &Bound<'_, PyAny>, dtype: Option<&Bound<'_, PyAny>>) -> PyResult<Array> {
    let py = values.py();
    let array = crate::array::asarray(py, values, dtype, None, None)?;
    let found = crate::array::elements_of(&array)?;
    let (dtype, array) = found.ok_or_else(|| PyTypeError::new_err("there are no values"))?;
    if dtype.complex {
        return Err(PyTypeError::new_err(format!(
            "programs have no dtype {}",
            dtype.name()
        )));
    }
    Array::from_bytes(array.dtype(), array.shape(), array.bytes())
        .map_err(|error| crate::errors::of_array(&error))
}

/// What is known of an array of a context.
#[pyclass(name = "ArrayInfo", module = "loopwright.runtime", frozen)]
pub(super) struct PyArrayInfo(NodeInfo);

#[pymethods]
impl PyArrayInfo {
    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    /// The type of its elements.
    #[getter]
    fn dtype(&self) -> PyDType {
        PyDType::real(self.0.dtype)
    }

    /// Its size along each dimension.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.0.shape)
    }

    /// How long it is.
    #[getter]
    fn bytes(&self) -> usize {
        self.0.bytes
    }

    /// The number of its pool among those of the device.
    #[getter]
    fn pool(&self) -> u32 {
        self.0.loc.pool.0
    }

    /// Bytes from the start of its pool.
    #[getter]
    fn offset(&self) -> usize {
        self.0.loc.offset
    }

    /// The code that brought it into the context, or what else did.
    #[getter]
    fn origin(&self) -> &str {
        &self.0.origin
    }

    fn __repr__(&self) -> String {
        format!(
            "<ArrayInfo {}: {}{:?} at {}>",
            self.0.name, self.0.dtype, self.0.shape, self.0.loc
        )
    }
}

/// Adds what is here to the module.
pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyContext>()?;
    module.add_class::<PyArrayInfo>()
}
