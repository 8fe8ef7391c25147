//! The class `Array`.

mod cell;
mod complex;
mod convert;
mod display;
mod dlpack;
mod exchange;
mod html;
mod index;
mod lend;
mod operators;
mod select;
mod view;

use crate::device::PyDevice;
use crate::dtype::PyDType;
use crate::errors::OrRaise;
use crate::interrupts::{self, Interruptible};
use loopwright_ops::{DType, Op};
use loopwright_tensor::{Session, Tensor, realize_with_held};
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyComplex, PyDict, PyTuple};
use std::cell::Cell;
use std::sync::{Arc, MutexGuard};

pub(crate) use cell::{Cell as ArrayCell, traced};
pub(crate) use complex::Pair;
pub(crate) use convert::{as_array, from_scalar, number, scalar_dtype, scalar_object};
pub(crate) use exchange::{
    asarray, borrowed, elements_of, is_array_like, joined, stacked, unpickle,
};
pub(crate) use index::{places_of, signed};
pub(crate) use operators::{Operand, binary, map_promoted, py_matmul};
pub(crate) use view::Step;

/// So many elements at most are picked in memory of the host.
const FEW: usize = 1 << 20;

/// So many ops that wait to be computed become a program of their own: a loop in Python must not become one program
/// with all of its rounds.
const MOST_WAITING: u32 = 256;

thread_local! {
    /// How many functions are traced or differentiated around: what arrays were computed from is kept then.
    static RECORDING: Cell<u32> = const { Cell::new(0) };
}

/// Whether a function is traced or differentiated on this thread.
pub(crate) fn is_recording() -> bool {
    RECORDING.get() > 0
}

/// Runs something while what arrays were computed from is kept.
pub(crate) fn recorded<T>(run: impl FnOnce() -> T) -> T {
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            RECORDING.set(RECORDING.get() - 1);
        }
    }
    RECORDING.set(RECORDING.get() + 1);
    let _leave = Leave;
    run()
}

/// What an `Array` stands for.
#[derive(Clone)]
pub(crate) struct Value {
    /// The elements, or their real parts.
    pub(crate) re: Tensor,
    /// The imaginary parts, of the same shape and dtype.
    pub(crate) im: Option<Tensor>,
    /// Where it is computed.
    pub(crate) session: Session,
    /// How many ops may have to be computed for it.
    waiting: u32,
}

impl Value {
    /// Tensors on a device, with nothing behind them that has to be computed.
    pub(crate) fn new(re: Tensor, im: Option<Tensor>, session: Session) -> Value {
        Value {
            re,
            im,
            session,
            waiting: 1,
        }
    }

    pub(crate) fn real(re: Tensor, session: Session) -> Value {
        Value::new(re, None, session)
    }

    pub(crate) fn dtype(&self) -> PyDType {
        PyDType {
            part: self.re.dtype(),
            complex: self.im.is_some(),
        }
    }

    pub(crate) fn rank(&self) -> usize {
        self.re.rank()
    }

    pub(crate) fn tensors(&self) -> impl Iterator<Item = &Tensor> {
        [&self.re].into_iter().chain(self.im.as_ref())
    }

    /// The sizes of its axes, which must be known.
    pub(crate) fn sizes(&self) -> PyResult<Vec<usize>> {
        match self.re.shape().known() {
            Some(sizes) => Ok(sizes),
            None => self.re.sizes().or_raise(),
        }
    }

    /// The same function of both parts.
    pub(crate) fn parts(&self, function: impl Fn(&Tensor) -> Tensor) -> Value {
        Value {
            re: function(&self.re),
            im: self.im.as_ref().map(function),
            session: self.session.clone(),
            waiting: self.waiting.saturating_add(1),
        }
    }

    /// The imaginary parts, zeros for real elements.
    pub(crate) fn imaginary(&self) -> Tensor {
        self.im.clone().unwrap_or_else(|| self.re.zeros_like())
    }

    /// Elements of another dtype. Of complex ones, the real parts where it is not complex.
    pub(crate) fn cast(&self, dtype: PyDType) -> Value {
        if self.dtype() == dtype {
            return self.clone();
        }
        let mut cast = Value {
            im: None,
            ..self.clone()
        };
        cast.re = cast_part(&self.re, dtype.part);
        if dtype.complex {
            cast.im = Some(match &self.im {
                Some(im) => cast_part(im, dtype.part),
                None => cast.re.zeros_like(),
            });
        }
        cast.waiting = cast.waiting.saturating_add(1);
        cast
    }

    fn is_computed(&self) -> bool {
        self.tensors().all(Tensor::is_computed)
    }

    /// Lets go of what it was computed from, if it has been.
    fn settle(&mut self) {
        if self.waiting == 0 || !self.is_computed() {
            return;
        }
        self.waiting = 0;
        for part in [Some(&mut self.re), self.im.as_mut()].into_iter().flatten() {
            if let Some(detached) = part.detached() {
                *part = detached;
            }
        }
    }

    /// Computes it, without the interpreter's lock.
    pub(crate) fn realize(&self, py: Python<'_>) -> PyResult<()> {
        realize(py, std::slice::from_ref(self))
    }
}

/// Numbers become booleans by being not zero.
fn cast_part(part: &Tensor, dtype: DType) -> Tensor {
    match dtype {
        _ if part.dtype() == dtype => part.clone(),
        DType::Bool => part.ne(&part.zeros_like()),
        _ => part.cast(dtype),
    }
}

/// Computes values, those of a device in one program.
pub(crate) fn realize(py: Python<'_>, values: &[Value]) -> PyResult<()> {
    if values.iter().all(Value::is_computed) {
        return Ok(());
    }
    let open = values.iter().filter(|value| !value.is_computed());
    let mut by_session: Vec<(Session, Vec<Tensor>)> = Vec::new();
    for value in open {
        let name = value.session.device().name();
        let found = by_session
            .iter()
            .position(|(session, _)| session.device().name() == name);
        let at = found.unwrap_or_else(|| {
            by_session.push((value.session.clone(), Vec::new()));
            by_session.len() - 1
        });
        by_session[at].1.extend(value.tensors().cloned());
    }
    for (session, tensors) in by_session {
        py.interruptible(|| session.scope(|| realize_with_held(&tensors)))?
            .or_raise()?;
    }
    py.check_signals()
}

/// Whether elements can be picked from a value, and put into it, in memory of the host: they are there, and not many.
pub(crate) fn is_on_host(value: &Value) -> bool {
    !is_recording()
        && value.is_computed()
        && value.session.device().limits().host_memory
        && value
            .re
            .shape()
            .elements()
            .is_some_and(|count| count <= FEW)
        && value
            .re
            .shape()
            .axes()
            .iter()
            .all(|axis| axis.name.is_none())
}

/// An n-dimensional array.
///
/// It is a formula until its value is asked for: then everything that is needed for it becomes one program for its
/// device. `x[...] = v` and `x += v` change the array, its views (`x[1:]`, `x.T`, rows of a loop over it) and the array
/// that it is a view of, as in numpy; what was computed from it before stays as it is.
#[pyclass(name = "Array", module = "loopwright", frozen, weakref, subclass)]
pub(crate) struct Array {
    kept: Kept,
}

/// Where the value of an array is.
enum Kept {
    Base(Arc<cell::Cell>),
    View(Box<view::View>),
}

/// A value whose shape, dtype or device is asked for.
enum Seen<'a> {
    Own(MutexGuard<'a, Value>),
    Other(Value),
}

impl std::ops::Deref for Seen<'_> {
    type Target = Value;

    fn deref(&self) -> &Value {
        match self {
            Seen::Own(value) => value,
            Seen::Other(value) => value,
        }
    }
}

impl Array {
    /// An array of a value that has been found right; where too much waits to be computed, it is computed now.
    pub(crate) fn of(py: Python<'_>, value: Value) -> PyResult<Array> {
        value.re.check().or_raise()?;
        if let Some(im) = &value.im {
            im.check().or_raise()?;
        }
        if value.waiting > MOST_WAITING && !is_recording() {
            value.realize(py)?;
        }
        Ok(Array {
            kept: Kept::Base(Arc::new(cell::Cell::new(value))),
        })
    }

    /// The array that stands for a variable.
    pub(crate) fn of_variable(place: crate::variable::Place) -> Array {
        Array {
            kept: Kept::Base(Arc::new(cell::Cell::Variable(place))),
        }
    }

    /// The variable that it stands for.
    pub(crate) fn variable(&self) -> Option<&crate::variable::Place> {
        match &self.kept {
            Kept::Base(cell) => match &**cell {
                cell::Cell::Variable(place) => Some(place),
                cell::Cell::Own { .. } => None,
            },
            Kept::View(_) => None,
        }
    }

    /// A value with its shape, dtype and device; of a view, its elements may be old ones.
    fn lock(&self) -> Seen<'_> {
        match &self.kept {
            Kept::Base(cell) => match &**cell {
                cell::Cell::Own { value, .. } => Seen::Own(cell::lock(value)),
                cell::Cell::Variable(place) => Seen::Other(place.value()),
            },
            Kept::View(view) => Seen::Other(view.seen()),
        }
    }

    /// What it stands for now, and the version of its cell.
    fn read(&self) -> (Value, u64) {
        match &self.kept {
            Kept::Base(cell) => cell.read(),
            Kept::View(view) => view.read(),
        }
    }

    /// What it stands for now.
    pub(crate) fn value(&self) -> Value {
        self.read().0
    }

    /// The cell that it reads and writes, and how it lies there; nothing where it is all of it.
    fn root(&self) -> (Arc<cell::Cell>, Option<Arc<view::Map>>) {
        match &self.kept {
            Kept::Base(cell) => (Arc::clone(cell), None),
            Kept::View(view) => view.root(),
        }
    }

    /// The cell that it reads and writes: arrays with one cell share elements.
    pub(crate) fn cell(&self) -> Arc<cell::Cell> {
        self.root().0
    }

    fn is_read_only(&self) -> bool {
        matches!(&self.kept, Kept::View(view) if view.read_only)
    }

    fn check_writable(&self) -> PyResult<()> {
        match self.is_read_only() {
            false => Ok(()),
            true => Err(PyValueError::new_err(
                "the array is read-only: it shows elements several times (broadcast_to); write to a copy",
            )),
        }
    }

    /// Lets it stand for something else of the same shape and dtype; so do the arrays that share its elements.
    pub(crate) fn set(&self, py: Python<'_>, value: Value) -> PyResult<()> {
        self.check_writable()?;
        match &self.kept {
            Kept::Base(cell) => cell.write(py, value).map(|_| ()),
            Kept::View(view) => match view.root() {
                (cell, None) => cell.write(py, value).map(|_| ()),
                (cell, Some(map)) => {
                    let version = cell.update(py, |old| index::put(py, old, &map, None, &value))?;
                    view.saw(&value, version);
                    Ok(())
                }
            },
        }
    }

    /// The same function of both parts.
    pub(crate) fn parts(
        &self,
        py: Python<'_>,
        function: impl Fn(&Tensor) -> Tensor,
    ) -> PyResult<Array> {
        Array::of(py, self.value().parts(function))
    }

    /// The elements in memory of the host, part by part.
    pub(crate) fn host(&self, py: Python<'_>) -> PyResult<Vec<Arc<loopwright_graph::Array>>> {
        self.value().realize(py)?;
        // Once more: what it was computed from can go, and must where memory is lent.
        let value = self.value();
        let read = || value.tensors().map(Tensor::lent).collect();
        let read: Result<_, _> = py.interruptible(read)?;
        read.or_raise()
    }
}

/// What is waiting for several operands together.
pub(crate) fn waiting(values: &[&Value]) -> u32 {
    // Shared operands are counted once for each use, so that it may grow without end while a function is traced.
    values
        .iter()
        .fold(1, |total, value| total.saturating_add(value.waiting))
}

/// The device of several operands, which must be the same.
pub(crate) fn common_session(values: &[&Value]) -> PyResult<Session> {
    let Some((first, rest)) = values.split_first() else {
        return Err(PyValueError::new_err("there are no arrays"));
    };
    for other in rest {
        if other.session.device().name() != first.session.device().name() {
            return Err(PyValueError::new_err(format!(
                "one array is on {}, another on {}; move one with to_device",
                first.session.device().name(),
                other.session.device().name()
            )));
        }
    }
    Ok(first.session.clone())
}

/// A value made of operands.
pub(crate) fn made_of(values: &[&Value], re: Tensor, im: Option<Tensor>) -> PyResult<Value> {
    Ok(Value {
        re,
        im,
        session: common_session(values)?,
        waiting: waiting(values),
    })
}

#[pymethods]
impl Array {
    /// Beside an array of numpy's, operators are ours.
    #[classattr]
    fn __array_priority__() -> f64 {
        1000.0
    }

    /// The type of its elements.
    #[getter]
    fn dtype(&self) -> PyDType {
        self.lock().dtype()
    }

    /// The sizes of its axes; `None` for one that is open in a function that is traced.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let value = self.lock();
        let axes = value.re.shape().axes();
        let sizes = axes.iter().map(|axis| axis.known());
        PyTuple::new(py, sizes.collect::<Vec<Option<usize>>>())
    }

    /// How many axes it has.
    #[getter]
    fn ndim(&self) -> usize {
        self.lock().rank()
    }

    /// How many elements it has; `None` where that is open.
    #[getter]
    fn size(&self) -> Option<usize> {
        self.lock().re.shape().elements()
    }

    /// The names of its axes; `None` for one without.
    #[getter]
    fn names<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let value = self.lock();
        let axes = value.re.shape().axes();
        let names = axes.iter().map(|axis| axis.name.as_deref());
        PyTuple::new(py, names.collect::<Vec<Option<&str>>>())
    }

    /// The device that it is computed on.
    #[getter]
    fn device(&self) -> PyDevice {
        PyDevice {
            session: self.lock().session.clone(),
        }
    }

    /// A matrix the other way around.
    #[getter(T)]
    fn transposed(&self, py: Python<'_>) -> PyResult<Array> {
        let rank = self.lock().rank();
        if rank != 2 {
            return Err(PyValueError::new_err(format!(
                "T is for arrays of two axes, and this one has {rank}; use mT or permute_dims"
            )));
        }
        self.view(py, &Step::Permute(vec![1, 0]))
    }

    /// A stack of matrices, each the other way around.
    #[getter(mT)]
    fn matrix_transposed(&self, py: Python<'_>) -> PyResult<Array> {
        let rank = self.lock().rank();
        if rank < 2 {
            return Err(PyValueError::new_err(format!(
                "mT is for arrays of two axes and more, and this one has {rank}"
            )));
        }
        let mut axes: Vec<i64> = (0..rank as i64).collect();
        axes.swap(rank - 1, rank - 2);
        self.view(py, &Step::Permute(axes))
    }

    /// The array on another device.
    #[pyo3(signature = (device, /, *, stream=None))]
    fn to_device(
        slf: &Bound<'_, Self>,
        device: &Bound<'_, PyAny>,
        stream: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<Array>> {
        let py = slf.py();
        if stream.is_some_and(|stream| !stream.is_none()) {
            return Err(PyValueError::new_err(
                "devices here have no streams to name",
            ));
        }
        let session = crate::device::of_argument(py, Some(device))?;
        let value = slf.get().value();
        if session.device().name() == value.session.device().name() {
            return Ok(slf.clone().unbind());
        }
        Py::new(py, moved(py, &value, &session)?)
    }

    /// Computes the value now, if it is not there yet, and gives the array back.
    fn realize<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        slf.get().value().realize(slf.py())?;
        slf.get().value();
        Ok(slf.clone())
    }

    /// Whether its value is there.
    #[getter]
    fn is_computed(&self) -> bool {
        self.value().is_computed()
    }

    /// The only element as a Python number.
    fn item<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        convert::item(py, self)
    }

    /// The elements as nested lists of Python numbers.
    fn tolist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        convert::tolist(py, self)
    }

    /// The same elements with names for the axes.
    #[pyo3(signature = (*names))]
    fn named(&self, py: Python<'_>, names: Vec<String>) -> PyResult<Array> {
        let value = self.value();
        if names.len() != value.rank() {
            return Err(PyValueError::new_err(format!(
                "named: {} names for {} axes",
                names.len(),
                value.rank()
            )));
        }
        self.view(py, &Step::Named(names.into_iter().map(Some).collect()))
    }

    /// The same elements without names for the axes.
    fn unnamed(&self, py: Python<'_>) -> PyResult<Array> {
        self.view(py, &Step::Named(vec![None; self.lock().rank()]))
    }

    /// The same elements under a name that schedules and loops can speak of.
    fn label(&self, py: Python<'_>, label: &str) -> PyResult<Array> {
        self.parts(py, |part| part.label(label))
    }

    #[pyo3(signature = (/, *, api_version=None))]
    fn __array_namespace__<'py>(
        slf: &Bound<'py, Self>,
        api_version: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match api_version {
            None => Ok(slf.py().import("loopwright")?.into_any()),
            Some(version) => {
                let versions = slf.py().import("loopwright._versions")?;
                versions.call_method1("namespace", (version,))
            }
        }
    }

    fn __len__(&self) -> PyResult<usize> {
        let value = self.lock();
        match value.re.shape().axes().first() {
            None => Err(PyTypeError::new_err("len() of an array without axes")),
            Some(_) => Ok(value.sizes()?[0]),
        }
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        let element = convert::only(py, self, "bool")?;
        Ok(element.iter().any(|part| part.is_true()))
    }

    fn __int__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let element = convert::only(py, self, "int")?;
        let [element] = element[..] else {
            return Err(PyTypeError::new_err("int() of a complex array"));
        };
        let number = convert::scalar_object(py, element)?;
        py.get_type::<pyo3::types::PyInt>().call1((number,))
    }

    fn __float__(&self, py: Python<'_>) -> PyResult<f64> {
        match convert::only(py, self, "float")?[..] {
            [element] => Ok(element.to_f64()),
            _ => Err(PyTypeError::new_err("float() of a complex array")),
        }
    }

    fn __complex__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyComplex>> {
        let parts = convert::only(py, self, "complex")?;
        let im = parts.get(1).map_or(0.0, |im| im.to_f64());
        Ok(PyComplex::from_doubles(py, parts[0].to_f64(), im))
    }

    fn __index__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if self.lock().dtype().complex || !self.lock().re.dtype().is_int() {
            let dtype = self.lock().dtype().name();
            return Err(PyTypeError::new_err(format!(
                "only arrays of integers are indices, not {dtype}"
            )));
        }
        convert::item(py, self)
    }

    fn __hash__(&self) -> PyResult<isize> {
        Err(PyTypeError::new_err("arrays change, and have no hash"))
    }

    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        if slf.get().lock().rank() == 0 {
            return Err(PyTypeError::new_err("an array without axes has no rows"));
        }
        // All rows are taken of one computed value, where it can be computed.
        if !is_recording() {
            slf.get().value().realize(slf.py())?;
        }
        let rows = slf.len()?;
        let rows: Vec<_> = (0..rows)
            .map(|row| slf.get_item(row))
            .collect::<PyResult<_>>()?;
        Ok(pyo3::types::PyList::new(slf.py(), rows)?
            .try_iter()?
            .into_any())
    }

    fn __contains__(&self, py: Python<'_>, item: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Some(operand) = Operand::of(py, item)? else {
            return Ok(false);
        };
        let equal = binary(Op::Eq, &self.value(), &operand)?;
        let any = equal.re.any(..);
        Array::of(py, Value::real(any, equal.session))?.__bool__(py)
    }

    fn __getitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<Array> {
        index::get(py, self, key)
    }

    fn __setitem__(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        index::set(py, self, key, value)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        display::repr(py, self)
    }

    fn __str__(&self, py: Python<'_>) -> PyResult<String> {
        display::text(py, self)
    }

    /// How notebooks show it.
    fn _repr_html_(&self, py: Python<'_>) -> PyResult<Option<String>> {
        match html::html(py, self) {
            Err(error) if error.is_instance_of::<crate::errors::TracedError>(py) => Ok(None),
            shown => shown.map(Some),
        }
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<Array> {
        Array::of(py, self.value())
    }

    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> PyResult<Array> {
        Array::of(py, self.value())
    }

    fn __format__<'py>(slf: &Bound<'py, Self>, format: &str) -> PyResult<Bound<'py, PyAny>> {
        match format.is_empty() || slf.get().lock().rank() > 0 {
            true => Ok(slf.str()?.into_any()),
            false => slf
                .get()
                .item(slf.py())?
                .call_method1("__format__", (format,)),
        }
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Py<PyAny>, Bound<'py, PyTuple>)> {
        exchange::reduce(slf)
    }

    #[pyo3(signature = (dtype=None, *, copy=None))]
    fn __array__<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let numpy = py.import("numpy")?;
        // Here and not in the buffer protocol, which keeps an interrupt for later.
        realize(py, &[slf.get().value()])?;
        let view = pyo3::types::PyMemoryView::from(slf.as_any())?;
        let array = numpy.call_method1("asarray", (view,))?;
        let options = PyDict::new(py);
        if let Some(copy) = copy {
            options.set_item("copy", copy)?;
        }
        if let Some(dtype) = dtype {
            options.set_item("dtype", dtype)?;
        }
        match options.is_empty() {
            true => Ok(array),
            false => numpy.call_method("array", (array,), Some(&options)),
        }
    }

    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut pyo3::ffi::Py_buffer,
        flags: std::ffi::c_int,
    ) -> PyResult<()> {
        // SAFETY: the interpreter gives a view to be filled.
        let filled = unsafe { exchange::fill_buffer(&slf, view, flags) };
        filled.map_err(|error| interrupts::kept_for_later(slf.py(), error))
    }

    unsafe fn __releasebuffer__(&self, view: *mut pyo3::ffi::Py_buffer) {
        // SAFETY: the interpreter gives back what was filled before.
        unsafe { exchange::release_buffer(view) }
    }

    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<&Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if stream.is_some_and(|stream| !stream.is_none()) {
            return Err(PyValueError::new_err("the host's memory has no streams"));
        }
        dlpack::give(py, self, max_version, dl_device, copy)
    }

    fn __dlpack_device__(&self) -> (i32, i32) {
        dlpack::HOST
    }
}

/// The value on another device.
pub(crate) fn moved(py: Python<'_>, value: &Value, session: &Session) -> PyResult<Array> {
    value.realize(py)?;
    let copy = |part: &Tensor| {
        let array = py.interruptible(|| part.array())?.or_raise()?;
        Ok::<_, PyErr>(Tensor::of(array).in_shape(part.shape()))
    };
    let im = value.im.as_ref().map(copy).transpose()?;
    Array::of(py, Value::new(copy(&value.re)?, im, session.clone()))
}

/// The mistake that an index is outside.
pub(crate) fn outside(error: &loopwright_tensor::TensorError) -> PyErr {
    PyIndexError::new_err(error.kind().to_string())
}
