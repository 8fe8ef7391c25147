//! `jit`: Python functions that are traced once and run as one routine.

use super::tree::{Form, Given, given_by, session_of, tensors};
use crate::array::{Array, Value, common_session, is_recording, realize, traced};
use crate::device;
use crate::dtype;
use crate::errors::{OrRaise, carried};
use crate::interrupts::{Attempt, Interruptible};
use loopwright_ops::DType;
use loopwright_tensor::{Jit, Loops, Session, Tensor, TensorError};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use smallvec::SmallVec;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Functions of up to so many arrays, and nothing else, are found without a search.
const FEW: usize = 8;

type Traced = Jit<Vec<Tensor>, Result<Given, TensorError>>;

/// The function for arguments of one form.
struct Entry {
    arguments: Form,
    /// What Python floats were when it was traced: another default is another program.
    float: DType,
    jit: Traced,
    /// Whether the function writes into arguments.
    writes: Arc<AtomicBool>,
}

thread_local! {
    /// Whether arguments of the call share elements.
    static SHARED: Cell<bool> = const { Cell::new(false) };
}

/// An axis that may have any size.
#[derive(Clone)]
enum Open {
    At(usize, i64),
    Named(String),
}

/// A function that is compiled when it is first called with arguments of some shapes; made by `jit`.
#[pyclass(name = "Function", module = "loopwright", frozen, dict, weakref)]
pub(crate) struct Function {
    function: Arc<Py<PyAny>>,
    name: String,
    open: Vec<Open>,
    /// Arguments that are a part of the program, by place and by name: another value is another program.
    fixed: (Vec<usize>, Vec<String>),
    entries: Mutex<Vec<Arc<Entry>>>,
    /// By the number of arrays, where arguments are arrays of real numbers and nothing else.
    flat: [OnceLock<Arc<Entry>>; FEW],
}

impl Function {
    fn entry(&self, py: Python<'_>, arguments: Form) -> PyResult<Arc<Entry>> {
        let entries = || self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        // Compared without the lock: equality may be Python code.
        let known = entries().clone();
        for entry in &known {
            if entry.float == dtype::float() && entry.arguments.is_like(py, &arguments)? {
                return Ok(Arc::clone(entry));
            }
        }
        let writes = Arc::new(AtomicBool::new(false));
        let entry = Arc::new(Entry {
            jit: self.traced(&arguments, &writes, py),
            arguments,
            float: dtype::float(),
            writes,
        });
        entries().push(Arc::clone(&entry));
        Ok(entry)
    }

    fn traced(&self, arguments: &Form, writes: &Arc<AtomicBool>, py: Python<'_>) -> Traced {
        let function = Arc::clone(&self.function);
        let writes = Arc::clone(writes);
        let form = Arc::new(arguments.copied(py));
        let call = move |leaves: &Vec<Tensor>| {
            Python::attach(|py| {
                let session = Session::current().or_raise();
                let call = || {
                    let given = given_by(py, function.bind(py), &form, leaves, &session?, true)?;
                    if !given.written.is_empty() {
                        writes.store(true, Ordering::Relaxed);
                        if SHARED.get() {
                            return Err(PyTypeError::new_err(
                                "a jitted function writes into one of two arguments that share elements",
                            ));
                        }
                    }
                    Ok(given)
                };
                traced(call).map_err(carried)
            })
        };
        let traced = loopwright_tensor::jit(&self.name, call);
        self.open.iter().fold(traced, |traced, open| match open {
            Open::At(argument, axis) => traced.dynamic(*argument, *axis),
            Open::Named(name) => traced.dynamic_axis(name),
        })
    }

    fn run<'py>(
        &self,
        py: Python<'py>,
        entry: &Entry,
        values: &[Value],
        leaves: Vec<Tensor>,
        objects: &[Option<Bound<'py, PyAny>>],
    ) -> PyResult<Bound<'py, PyAny>> {
        let session = match values.is_empty() {
            true => device::current(py)?,
            false => common_session(&values.iter().collect::<SmallVec<[&Value; 8]>>())?,
        };
        realize(py, values)?;
        let given = py.interruptible(|| session.scope(|| entry.jit.call(&leaves)))?;
        let given = given.or_raise()?;
        let made = given.object(py, &session)?;
        for (leaf, value) in given.written(&session) {
            if let Some(Some(object)) = objects.get(leaf) {
                write_back(object, value)?;
            }
        }
        Ok(made)
    }

    /// Calls the program of an entry for arguments; `objects` are those that the values are of.
    ///
    /// A function that writes into arguments which share elements is called as it is: its program would have them apart.
    fn call<'py>(
        &self,
        py: Python<'py>,
        entry: &Entry,
        values: &[Value],
        objects: &[Option<Bound<'py, PyAny>>],
        arguments: (&Bound<'py, PyTuple>, Option<&Bound<'py, PyDict>>),
    ) -> PyResult<Bound<'py, PyAny>> {
        let leaves = tensors(values);
        if !shares(objects) {
            return self.run(py, entry, values, leaves, objects);
        }
        if !entry.writes.load(Ordering::Relaxed) {
            let before = SHARED.replace(true);
            let made = self.run(py, entry, values, leaves, objects);
            SHARED.set(before);
            // What is wrong in the function itself is raised again by the call below.
            // An interrupt is not wrong in the function.
            let interrupted =
                |error: &PyErr| !error.is_instance_of::<pyo3::exceptions::PyException>(py);
            if made.as_ref().map_or_else(interrupted, |_| true) {
                return made;
            }
        }
        self.function.bind(py).call(arguments.0, arguments.1)
    }

    /// The loops of its program for arguments, which is compiled and not run, and their device.
    pub(crate) fn loops_for(
        &self,
        py: Python<'_>,
        arguments: &Bound<'_, PyTuple>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<(Loops, Session)> {
        let (form, values, _) = self.apart(py, arguments, named)?;
        let entry = self.entry(py, form)?;
        let session = match values.is_empty() {
            true => device::current(py)?,
            false => common_session(&values.iter().collect::<SmallVec<[&Value; 8]>>())?,
        };
        realize(py, &values)?;
        let leaves = tensors(&values);
        let loops = py.interruptible(|| session.scope(|| entry.jit.loops(&leaves)))?;
        Ok((loops.or_raise()?, session))
    }

    /// The arguments as a form of a tuple and a dict, their values, and the objects that have those.
    fn apart<'py>(
        &self,
        py: Python<'py>,
        arguments: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Apart<'py>> {
        let given = named.into_iter().flatten().map(|(_, argument)| argument);
        let session = session_of(py, arguments.iter().chain(given))?;
        let mut values = Vec::new();
        let mut objects = Vec::new();
        let mut take = |object: &Bound<'py, PyAny>, fixed: bool| match fixed {
            true => Ok(Form::Other(object.clone().unbind())),
            false => {
                let form = Form::taken(py, object, &session, (true, false), &mut values)?;
                form.objects(py, object, &mut objects)?;
                Ok::<_, PyErr>(form)
            }
        };
        let mut positional = Vec::with_capacity(arguments.len());
        for (at, argument) in arguments.iter().enumerate() {
            positional.push(take(&argument, self.fixed.0.contains(&at))?);
        }
        let mut keywords = Vec::new();
        for (name, argument) in named.into_iter().flatten() {
            let text: String = name.extract()?;
            let form = take(&argument, self.fixed.1.contains(&text))?;
            keywords.push((name.unbind(), form));
        }
        let form = Form::Tuple(vec![Form::Tuple(positional), Form::Dict(keywords)]);
        Ok((form, values, objects))
    }
}

/// Arguments taken apart: their form, the values of its leaves, and the objects of those where they can be written.
type Apart<'py> = (Form, Vec<Value>, Vec<Option<Bound<'py, PyAny>>>);

/// Whether two arguments share elements.
fn shares(objects: &[Option<Bound<'_, PyAny>>]) -> bool {
    if objects.len() < 2 {
        return false;
    }
    let cells = objects.iter().flatten();
    let cells: SmallVec<[_; 8]> = cells
        .filter_map(|object| Some(Arc::as_ptr(&object.cast::<Array>().ok()?.get().cell())))
        .collect();
    (1..cells.len()).any(|at| cells[..at].contains(&cells[at]))
}

/// Writes what a program has made of an argument into it.
fn write_back(object: &Bound<'_, PyAny>, value: Value) -> PyResult<()> {
    let py = object.py();
    match object.cast::<Array>() {
        Ok(array) => array.get().set(py, value),
        // Memory of others.
        Err(_) => {
            let made = Bound::new(py, Array::of(py, value)?)?;
            let made = made.call_method0("__array__")?;
            object.set_item(py.Ellipsis(), made)
        }
    }
}

#[pymethods]
impl Function {
    #[new]
    #[pyo3(signature = (function, name=None, dynamic=None, static_argnums=vec![], static_argnames=vec![]))]
    fn new(
        py: Python<'_>,
        function: Py<PyAny>,
        name: Option<String>,
        dynamic: Option<Vec<Bound<'_, PyAny>>>,
        static_argnums: Vec<usize>,
        static_argnames: Vec<String>,
    ) -> PyResult<Function> {
        let bound = function.bind(py);
        if !bound.is_callable() {
            return Err(PyTypeError::new_err(format!(
                "jit takes a function, not {}",
                bound.get_type().name()?
            )));
        }
        let name = match name {
            Some(name) => Some(name),
            None => {
                let own = bound.getattr("__name__");
                own.and_then(|name| name.extract()).attempt(py)?.ok()
            }
        };
        let mut open = Vec::new();
        for axis in dynamic.unwrap_or_default() {
            open.push(match axis.extract::<(usize, i64)>().attempt(py)? {
                Ok((argument, axis)) => Open::At(argument, axis),
                Err(_) => Open::Named(axis.extract()?),
            });
        }
        Ok(Function {
            name: name.unwrap_or_else(|| "function".to_owned()),
            function: Arc::new(function),
            open,
            fixed: (static_argnums, static_argnames),
            entries: Mutex::default(),
            flat: Default::default(),
        })
    }

    #[pyo3(signature = (*arguments, **named))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        arguments: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        // A part of the function around it, which is traced or differentiated.
        if is_recording() {
            return self.function.bind(py).call(arguments, named);
        }
        let count = arguments.len();
        if named.is_none() && count < FEW && self.fixed.0.is_empty() {
            let mut values: SmallVec<[Value; 4]> = SmallVec::new();
            let mut objects: SmallVec<[Option<Bound<'py, PyAny>>; 4]> = SmallVec::new();
            for argument in arguments.iter_borrowed() {
                match argument.cast::<Array>() {
                    Ok(array) => {
                        let value = array.get().value();
                        if value.im.is_some() || array.get().variable().is_some() {
                            break;
                        }
                        values.push(value);
                        objects.push(Some(argument.to_owned()));
                    }
                    Err(_) => break,
                }
            }
            if values.len() == count {
                let known = self.flat[count].get();
                let entry = match known.filter(|entry| entry.float == dtype::float()) {
                    Some(entry) => Arc::clone(entry),
                    None => {
                        let (form, ..) = self.apart(py, arguments, None)?;
                        let entry = self.entry(py, form)?;
                        self.flat[count].get_or_init(|| Arc::clone(&entry));
                        entry
                    }
                };
                return self.call(py, &entry, &values, &objects, (arguments, None));
            }
        }
        let (form, values, objects) = self.apart(py, arguments, named)?;
        let entry = self.entry(py, form)?;
        self.call(py, &entry, &values, &objects, (arguments, named))
    }

    /// As a method, the object comes first.
    fn __get__<'py>(
        slf: &Bound<'py, Self>,
        object: &Bound<'py, PyAny>,
        _class: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if object.is_none() {
            return Ok(slf.clone().into_any());
        }
        let py = slf.py();
        let method = py.import("types")?.getattr("MethodType")?;
        method.call1((slf, object))
    }

    /// Every time that the function was traced: why, and how many arrays, variables and updates it has.
    fn reports(&self) -> Vec<(String, usize, usize, usize)> {
        let entries = self.entries.lock();
        let entries = entries.unwrap_or_else(PoisonError::into_inner).clone();
        let reports = entries.iter().flat_map(|entry| entry.jit.reports());
        reports
            .map(|report| {
                let counts = (report.tensors, report.variables, report.updates);
                (report.reason, counts.0, counts.1, counts.2)
            })
            .collect()
    }

    /// The Python function.
    #[getter]
    fn __wrapped__(&self, py: Python<'_>) -> Py<PyAny> {
        self.function.clone_ref(py)
    }

    /// Its name.
    #[getter]
    fn __name__(&self) -> &str {
        &self.name
    }

    #[getter]
    fn __doc__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(self.function.bind(py).getattr("__doc__")?.unbind())
    }

    fn __repr__(&self) -> String {
        format!("<loopwright function {}>", self.name)
    }

    fn __traverse__(&self, visit: pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        visit.call(&*self.function)
    }
}
