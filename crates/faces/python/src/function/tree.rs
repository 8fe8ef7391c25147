//! Python values made of arrays: what functions take and give.

use crate::array::{
    Array, ArrayCell, Value, as_array, borrowed, from_scalar, is_array_like, number,
};
use crate::device;
use loopwright_tensor::{Session, Tensor, Tree};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use std::sync::Arc;

/// How a value is made of arrays and other things.
pub(crate) enum Form {
    /// An array, of one tensor or two.
    Leaf {
        complex: bool,
    },
    Tuple(Vec<Form>),
    List(Vec<Form>),
    /// Keys in their order.
    Dict(Vec<(Py<PyAny>, Form)>),
    /// An instance of a class: a named tuple, a data class, or one with `__tree_flatten__`. What it is made of, and
    /// what it keeps beside that.
    Instance {
        class: Py<PyAny>,
        kind: Kind,
        kept: Option<Py<PyAny>>,
        parts: Vec<Form>,
    },
    /// Something without arrays: a string, `None`, a module, a function.
    Other(Py<PyAny>),
}

/// How an instance is made again.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `class(*parts)`.
    Named,
    /// A data class: `class(**parts)` with the names of its fields kept beside.
    Data,
    /// `class.__tree_unflatten__(kept, parts)`.
    Own,
}

/// The session of the first array in objects, also within tuples, lists and dicts: numbers beside arrays are on their device.
/// Where there is none, the one that is used where nothing is said.
pub(crate) fn session_of<'py>(
    py: Python<'py>,
    objects: impl IntoIterator<Item = Bound<'py, PyAny>>,
) -> PyResult<Session> {
    fn first(object: &Bound<'_, PyAny>) -> Option<Session> {
        if let Ok(array) = object.cast::<Array>() {
            return Some(array.get().value().session);
        }
        if let Ok(tuple) = object.cast::<PyTuple>() {
            return tuple.iter().find_map(|part| first(&part));
        }
        if let Ok(list) = object.cast::<PyList>() {
            return list.iter().find_map(|part| first(&part));
        }
        let dict = object.cast::<PyDict>().ok()?;
        dict.iter().find_map(|(_, part)| first(&part))
    }
    let found = objects.into_iter().find_map(|object| first(&object));
    found.map_or_else(|| device::current(py), Ok)
}

impl Form {
    /// Takes a value apart. Numbers become arrays if `numbers` is true. Variables stand for their values.
    pub(crate) fn of(
        py: Python<'_>,
        object: &Bound<'_, PyAny>,
        session: &Session,
        numbers: bool,
        into: &mut Vec<Value>,
    ) -> PyResult<Form> {
        Form::taken(py, object, session, (numbers, true), into)
    }

    /// Takes a value apart. Numbers become arrays if the first of `which` is true, and variables if the second is: others
    /// stay what they are, so that a function can set them, and memory of others is used where it lies: what is taken
    /// apart so is read before the caller has control again.
    pub(crate) fn taken(
        py: Python<'_>,
        object: &Bound<'_, PyAny>,
        session: &Session,
        which: (bool, bool),
        into: &mut Vec<Value>,
    ) -> PyResult<Form> {
        let (numbers, variables) = which;
        let leaf = |value: Value, into: &mut Vec<Value>| {
            let complex = value.im.is_some();
            into.push(value);
            Ok(Form::Leaf { complex })
        };
        if let Ok(array) = object.cast::<Array>() {
            return match array.get().variable() {
                Some(_) if !variables => Ok(Form::Other(object.clone().unbind())),
                _ => leaf(array.get().value(), into),
            };
        }
        if object.is_none() {
            return Ok(Form::Other(object.clone().unbind()));
        }
        if numbers && let Some(number) = number(object)? {
            return leaf(from_scalar(number, number.own(), session)?, into);
        }
        let all = |rows: Vec<Bound<'_, PyAny>>, into: &mut Vec<Value>| {
            let forms = rows.iter();
            let forms = forms.map(|row| Form::taken(py, row, session, which, into));
            forms.collect::<PyResult<Vec<Form>>>()
        };
        if let Ok(tuple) = object.cast::<PyTuple>() {
            let parts = all(tuple.iter().collect(), into)?;
            return Ok(match object.hasattr("_fields")? {
                false => Form::Tuple(parts),
                true => Form::Instance {
                    class: object.get_type().into_any().unbind(),
                    kind: Kind::Named,
                    kept: None,
                    parts,
                },
            });
        }
        if let Ok(list) = object.cast::<PyList>() {
            return Ok(Form::List(all(list.iter().collect(), into)?));
        }
        if let Ok(dict) = object.cast::<PyDict>() {
            let mut entries = Vec::with_capacity(dict.len());
            for (key, part) in dict.iter() {
                let form = Form::taken(py, &part, session, which, into)?;
                entries.push((key.unbind(), form));
            }
            return Ok(Form::Dict(entries));
        }
        let class = object.get_type();
        if class.hasattr("__tree_flatten__")? {
            let made = object.call_method0("__tree_flatten__")?;
            let (parts, kept): (Bound<'_, PyAny>, Py<PyAny>) = made.extract()?;
            let parts = parts.try_iter()?.collect::<PyResult<Vec<_>>>()?;
            return Ok(Form::Instance {
                class: class.into_any().unbind(),
                kind: Kind::Own,
                kept: Some(kept),
                parts: all(parts, into)?,
            });
        }
        if class.hasattr("__dataclass_fields__")? {
            let fields = class.getattr("__dataclass_fields__")?;
            let names = fields.try_iter()?.collect::<PyResult<Vec<_>>>()?;
            let parts = names.iter().map(|name| object.getattr(name.cast()?));
            let parts = parts.collect::<PyResult<Vec<_>>>()?;
            return Ok(Form::Instance {
                class: class.into_any().unbind(),
                kind: Kind::Data,
                kept: Some(PyTuple::new(py, names)?.into_any().unbind()),
                parts: all(parts, into)?,
            });
        }
        if is_array_like(object)? {
            // A call of a jitted function has read its arguments when it is over.
            let value = match variables {
                true => as_array(py, object, Some(session))?,
                false => borrowed(py, object, session)?,
            };
            return leaf(value, into);
        }
        Ok(Form::Other(object.clone().unbind()))
    }

    /// The objects that the leaves of a value are of: arrays, and memory of others; nothing for numbers.
    pub(crate) fn objects<'py>(
        &self,
        py: Python<'py>,
        object: &Bound<'py, PyAny>,
        into: &mut Vec<Option<Bound<'py, PyAny>>>,
    ) -> PyResult<()> {
        match self {
            Form::Leaf { .. } => {
                let is_number = object.cast::<Array>().is_err() && number(object)?.is_some();
                into.push((!is_number).then(|| object.clone()));
            }
            Form::Tuple(parts) | Form::List(parts) => {
                for (part, row) in parts.iter().zip(object.try_iter()?) {
                    part.objects(py, &row?, into)?;
                }
            }
            Form::Dict(entries) => {
                for (key, part) in entries {
                    part.objects(py, &object.get_item(key)?, into)?;
                }
            }
            Form::Instance {
                kind, kept, parts, ..
            } => {
                let rows: Vec<Bound<'py, PyAny>> = match (kind, kept) {
                    (Kind::Named, _) => object.try_iter()?.collect::<PyResult<_>>()?,
                    (Kind::Data, Some(names)) => {
                        let names = names.bind(py).try_iter()?;
                        names
                            .map(|name| object.getattr(name?.cast()?))
                            .collect::<PyResult<_>>()?
                    }
                    _ => {
                        let made = object.call_method0("__tree_flatten__")?;
                        let rows = made.get_item(0)?.try_iter()?;
                        rows.collect::<PyResult<_>>()?
                    }
                };
                for (part, row) in parts.iter().zip(&rows) {
                    part.objects(py, row, into)?;
                }
            }
            Form::Other(_) => {}
        }
        Ok(())
    }

    /// Puts a value together again.
    pub(crate) fn build<'py>(
        &self,
        py: Python<'py>,
        values: &mut dyn Iterator<Item = Value>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.build_of(py, &mut || {
            let value = values.next().ok_or_else(|| missing("array"))?;
            Ok(Bound::new(py, Array::of(py, value)?)?.into_any())
        })
    }

    /// Puts a value together with other things in the places of its arrays.
    pub(crate) fn build_of<'py>(
        &self,
        py: Python<'py>,
        next: &mut dyn FnMut() -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut all = |parts: &[Form]| {
            let parts = parts.iter().map(|part| part.build_of(py, next));
            parts.collect::<PyResult<Vec<_>>>()
        };
        Ok(match self {
            Form::Leaf { .. } => next()?,
            Form::Tuple(parts) => PyTuple::new(py, all(parts)?)?.into_any(),
            Form::List(parts) => PyList::new(py, all(parts)?)?.into_any(),
            Form::Dict(entries) => {
                let dict = PyDict::new(py);
                for (key, part) in entries {
                    dict.set_item(key, part.build_of(py, next)?)?;
                }
                dict.into_any()
            }
            Form::Instance {
                class,
                kind,
                kept,
                parts,
            } => {
                let (class, parts) = (class.bind(py), PyTuple::new(py, all(parts)?)?);
                match (kind, kept) {
                    (Kind::Own, Some(kept)) => {
                        class.call_method1("__tree_unflatten__", (kept, parts))?
                    }
                    (Kind::Data, Some(names)) => {
                        let named = PyDict::new(py);
                        let names = names.bind(py).try_iter()?;
                        for (name, part) in names.zip(parts.iter()) {
                            named.set_item(name?, part)?;
                        }
                        class.call((), Some(&named))?
                    }
                    _ => class.call1(parts)?,
                }
            }
            Form::Other(object) => object.bind(py).clone(),
        })
    }

    /// The same once more.
    pub(crate) fn copied(&self, py: Python<'_>) -> Form {
        let all = |parts: &[Form]| parts.iter().map(|part| part.copied(py)).collect();
        match self {
            Form::Leaf { complex } => Form::Leaf { complex: *complex },
            Form::Tuple(parts) => Form::Tuple(all(parts)),
            Form::List(parts) => Form::List(all(parts)),
            Form::Dict(entries) => {
                let entries = entries.iter();
                let entries = entries.map(|(key, part)| (key.clone_ref(py), part.copied(py)));
                Form::Dict(entries.collect())
            }
            Form::Instance {
                class,
                kind,
                kept,
                parts,
            } => Form::Instance {
                class: class.clone_ref(py),
                kind: *kind,
                kept: kept.as_ref().map(|kept| kept.clone_ref(py)),
                parts: all(parts),
            },
            Form::Other(object) => Form::Other(object.clone_ref(py)),
        }
    }

    /// Whether another value is made in the same way, with equal things beside the arrays.
    pub(crate) fn is_like(&self, py: Python<'_>, other: &Form) -> PyResult<bool> {
        let all = |a: &[Form], b: &[Form]| {
            if a.len() != b.len() {
                return Ok(false);
            }
            for (a, b) in a.iter().zip(b) {
                if !a.is_like(py, b)? {
                    return Ok(false);
                }
            }
            Ok(true)
        };
        match (self, other) {
            (Form::Leaf { complex: a }, Form::Leaf { complex: b }) => Ok(a == b),
            (Form::Tuple(a), Form::Tuple(b)) | (Form::List(a), Form::List(b)) => all(a, b),
            (Form::Dict(a), Form::Dict(b)) if a.len() == b.len() => {
                for ((key, part), (other_key, other)) in a.iter().zip(b) {
                    let same = key.bind(py).eq(other_key)? && part.is_like(py, other)?;
                    if !same {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (
                Form::Instance {
                    class, kept, parts, ..
                },
                Form::Instance {
                    class: other_class,
                    kept: other_kept,
                    parts: other_parts,
                    ..
                },
            ) => Ok(class.is(other_class)
                && equal(py, kept.as_ref(), other_kept.as_ref())?
                && all(parts, other_parts)?),
            (Form::Other(a), Form::Other(b)) => equal(py, Some(a), Some(b)),
            _ => Ok(false),
        }
    }
}

/// Things without arrays are the same object, or of one class and equal.
fn equal(py: Python<'_>, a: Option<&Py<PyAny>>, b: Option<&Py<PyAny>>) -> PyResult<bool> {
    let (Some(a), Some(b)) = (a, b) else {
        return Ok(a.is_none() == b.is_none());
    };
    let (a, b) = (a.bind(py), b.bind(py));
    // Variables are compared element by element, which is not meant here.
    if a.is_instance_of::<Array>() {
        return Ok(a.is(b));
    }
    Ok(a.is(b) || (a.get_type().is(b.get_type()) && a.eq(b)?))
}

pub(crate) fn missing(what: &str) -> PyErr {
    PyTypeError::new_err(format!("there are fewer {what}s than the value is made of"))
}

/// The tensors of values, real parts before imaginary ones.
pub(crate) fn tensors(values: &[Value]) -> Vec<Tensor> {
    values.iter().flat_map(Value::tensors).cloned().collect()
}

/// Values of tensors, as many as a form's leaves say.
pub(crate) fn values(
    form: &Form,
    tensors: &mut dyn Iterator<Item = Tensor>,
    session: &Session,
    into: &mut Vec<Value>,
) -> PyResult<()> {
    let mut all = |parts: &mut dyn Iterator<Item = &Form>| {
        for part in parts {
            values(part, tensors, session, into)?;
        }
        Ok(())
    };
    match form {
        Form::Leaf { complex } => {
            let mut next = || tensors.next().ok_or_else(|| missing("tensor"));
            let re = next()?;
            let im = complex.then(next).transpose()?;
            into.push(Value::new(re, im, session.clone()));
            Ok(())
        }
        Form::Tuple(parts) | Form::List(parts) | Form::Instance { parts, .. } => {
            all(&mut parts.iter())
        }
        Form::Dict(entries) => all(&mut entries.iter().map(|(_, part)| part)),
        Form::Other(_) => Ok(()),
    }
}

/// A value as Rust's functions over tensors take and give it.
pub(crate) struct Given {
    pub(crate) form: Arc<Form>,
    /// Those of the value, and behind them those of arguments that were written.
    pub(crate) tensors: Vec<Tensor>,
    /// The leaves of the arguments that the function has written, and whether they are complex.
    pub(crate) written: Arc<[(usize, bool)]>,
}

impl Tree for Given {
    fn visit(&self, see: &mut dyn FnMut(&Tensor)) {
        self.tensors.iter().for_each(see);
    }

    fn replace(&self, by: &mut dyn FnMut(&Tensor) -> Tensor) -> Given {
        Given {
            form: Arc::clone(&self.form),
            tensors: self.tensors.iter().map(by).collect(),
            written: Arc::clone(&self.written),
        }
    }
}

impl Given {
    pub(crate) fn new(form: Form, tensors: Vec<Tensor>) -> Given {
        Given {
            form: Arc::new(form),
            tensors,
            written: Arc::new([]),
        }
    }

    /// What the arguments that were written are now, by their leaves.
    pub(crate) fn written(&self, session: &Session) -> Vec<(usize, Value)> {
        let count: usize = self
            .written
            .iter()
            .map(|(_, complex)| 1 + usize::from(*complex))
            .sum();
        let mut tensors = self.tensors[self.tensors.len() - count..].iter().cloned();
        let mut made = Vec::with_capacity(self.written.len());
        for (leaf, complex) in self.written.iter() {
            let Some(re) = tensors.next() else { break };
            let im = if *complex { tensors.next() } else { None };
            made.push((*leaf, Value::new(re, im, session.clone())));
        }
        made
    }

    /// The value as a Python object.
    pub(crate) fn object<'py>(
        &self,
        py: Python<'py>,
        session: &Session,
    ) -> PyResult<Bound<'py, PyAny>> {
        // Most functions give one array.
        if let (Form::Leaf { complex: false }, [tensor, ..]) = (&*self.form, &self.tensors[..]) {
            let value = Value::real(tensor.clone(), session.clone());
            return Ok(Bound::new(py, Array::of(py, value)?)?.into_any());
        }
        let mut list = Vec::with_capacity(self.tensors.len());
        values(
            &self.form,
            &mut self.tensors.iter().cloned(),
            session,
            &mut list,
        )?;
        self.form.build(py, &mut list.into_iter())
    }
}

/// What a function gives for tensors that stand for its arguments, which are a tuple and a dict; and what it has written
/// into those, if that is asked for.
pub(crate) fn given_by(
    py: Python<'_>,
    function: &Bound<'_, PyAny>,
    form: &Form,
    leaves: &[Tensor],
    session: &Session,
    with_written: bool,
) -> PyResult<Given> {
    let mut list = Vec::with_capacity(leaves.len());
    values(form, &mut leaves.iter().cloned(), session, &mut list)?;
    let mut list = list.into_iter();
    let mut cells: Vec<Arc<ArrayCell>> = Vec::new();
    let arguments = form.build_of(py, &mut || {
        let array = Array::of(py, list.next().ok_or_else(|| missing("array"))?)?;
        if with_written {
            cells.push(array.cell());
        }
        Ok(Bound::new(py, array)?.into_any())
    })?;
    let (positional, named): (Bound<'_, PyTuple>, Bound<'_, PyDict>) = arguments.extract()?;
    let result = function.call(positional, Some(&named))?;
    let mut list = Vec::new();
    let form = Form::of(py, &result, session, true, &mut list)?;
    let mut written = Vec::new();
    for (leaf, cell) in cells.iter().enumerate() {
        if cell.is_written() {
            let value = cell.value();
            written.push((leaf, value.im.is_some()));
            list.push(value);
        }
    }
    Ok(Given {
        form: Arc::new(form),
        tensors: tensors(&list),
        written: written.into(),
    })
}
