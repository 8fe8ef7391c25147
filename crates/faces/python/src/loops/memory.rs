//! Memory from Python and memory for Python: the one place where arrays cross the border.

use super::errors;
use crate::array::scalar_object;
use crate::dtype::PyDType;
use crate::interrupts::Attempt;
use loopwright_graph::Array;
use loopwright_ops::{DType, Kind, Scalar, parse_scalar};
use pyo3::buffer::ElementType;
use pyo3::exceptions::{PyBufferError, PyOverflowError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyList, PySequence, PyString, PyTuple};
use std::ffi::{CStr, c_char, c_int};
use std::sync::Arc;

/// A dtype by its name here (`f32`) or in other array libraries (`float32`); of other objects, their `name` or text counts.
pub(super) fn dtype_of(given: &Bound<'_, PyAny>) -> PyResult<DType> {
    let dtype = PyDType::of_program(given)?;
    match dtype.complex {
        false => Ok(dtype.part),
        true => Err(PyTypeError::new_err(format!(
            "programs have no dtype {}",
            dtype.name()
        ))),
    }
}

/// A Python number as a value of a dtype, which it must fit.
pub(super) fn scalar_of(given: &Bound<'_, PyAny>, dtype: DType) -> PyResult<Scalar> {
    let wrong = || {
        PyTypeError::new_err(format!(
            "{} is no value of {dtype}",
            given
                .repr()
                .or_later(given.py())
                .map_or_else(|| "this".to_owned(), |text| text.to_string())
        ))
    };
    if let Ok(truth) = given.cast::<PyBool>() {
        return match dtype {
            DType::Bool => Ok(Scalar::bool(truth.is_true())),
            _ => Ok(Scalar::from_i64(dtype, i64::from(truth.is_true()))),
        };
    }
    if given.is_instance_of::<PyInt>()
        || given.hasattr("__index__")? && !given.is_instance_of::<PyFloat>()
    {
        let value = given.call_method0("__index__")?;
        return match dtype.kind() {
            Kind::Bool => Err(wrong()),
            _ if dtype.is_float() => Ok(Scalar::from_f64(dtype, value.extract::<f64>()?)),
            _ => parse_scalar(dtype, &value.str()?.to_string())
                .map_err(|error| PyOverflowError::new_err(error.to_string())),
        };
    }
    match given.extract::<f64>().attempt(given.py())? {
        Ok(value) if dtype.is_float() => Ok(Scalar::from_f64(dtype, value)),
        _ => Err(wrong()),
    }
}

/// The letter of a dtype in the buffer protocol; floats that it does not know are shown as their bits.
fn format_of(dtype: DType) -> &'static CStr {
    match dtype {
        DType::Bool => c"?",
        DType::I8 => c"b",
        DType::I16 => c"h",
        DType::I32 => c"i",
        DType::I64 => c"q",
        DType::U8 | DType::F8E4M3 | DType::F8E5M2 => c"B",
        DType::U16 | DType::BF16 => c"H",
        DType::U32 => c"I",
        DType::U64 => c"Q",
        DType::F16 => c"e",
        DType::F32 => c"f",
        DType::F64 => c"d",
    }
}

/// Whether elements of a buffer are of a dtype.
fn is_of(buffer: &Held, dtype: DType) -> bool {
    let swapped = matches!(buffer.format().to_bytes(), [b'>' | b'!', _]) && buffer.item_size() > 1;
    if swapped || buffer.item_size() != dtype.bytes() {
        return false;
    }
    let element = ElementType::from_format(buffer.format());
    match dtype {
        DType::Bool => element == ElementType::Bool,
        DType::BF16 | DType::F8E4M3 | DType::F8E5M2 => {
            matches!(
                element,
                ElementType::UnsignedInteger { .. } | ElementType::Unknown
            )
        }
        _ if dtype.is_float() => matches!(element, ElementType::Float { .. }),
        _ if dtype.kind() == Kind::Signed => matches!(element, ElementType::SignedInteger { .. }),
        _ => matches!(element, ElementType::UnsignedInteger { .. }),
    }
}

fn list(shape: &[usize]) -> String {
    let sizes: Vec<String> = shape.iter().map(usize::to_string).collect();
    sizes.join(", ")
}

/// Memory of a Python object, in use where it lies. It stays there as long as this is held. PyO3's own buffers take no
/// arrays without dimensions.
pub(super) struct Held {
    view: Box<ffi::Py_buffer>,
    shape: Vec<usize>,
}

// SAFETY: a view may be read and given back on any thread that is attached to Python; the memory behind it is used only
// as `bytes` and `bytes_mut` say.
unsafe impl Send for Held {}
// SAFETY: as above; nothing in it changes.
unsafe impl Sync for Held {}

impl Drop for Held {
    fn drop(&mut self) {
        // A process that ends takes the memory with it.
        Python::try_attach(|_| {
            // SAFETY: the view was filled in by `PyObject_GetBuffer`, is given back once, and Python is attached.
            unsafe { ffi::PyBuffer_Release(&raw mut *self.view) };
        });
    }
}

impl Held {
    /// The memory of an object that has the buffer protocol; `None` for one that has not.
    pub(super) fn of(given: &Bound<'_, PyAny>) -> Option<Held> {
        // SAFETY: a view of zeros is one to be filled in.
        let mut view: Box<ffi::Py_buffer> = unsafe { Box::new(std::mem::zeroed()) };
        // SAFETY: the object is one, and the view is ours.
        let got =
            unsafe { ffi::PyObject_GetBuffer(given.as_ptr(), &raw mut *view, ffi::PyBUF_FULL_RO) };
        if got != 0 {
            // Whatever it says, it is none that we can read.
            drop(PyErr::take(given.py()));
            return None;
        }
        let dims = view.ndim.max(0) as usize;
        let shape: &[isize] = match view.shape.is_null() {
            true => &[],
            // SAFETY: the protocol gives a size for each dimension.
            false => unsafe { std::slice::from_raw_parts(view.shape, dims) },
        };
        let held = Held {
            shape: shape.iter().map(|size| *size as usize).collect(),
            view,
        };
        (held.shape.len() == dims).then_some(held)
    }

    pub(super) fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn format(&self) -> &CStr {
        match self.view.format.is_null() {
            true => c"B",
            // SAFETY: the protocol gives a text that lives as long as the view.
            false => unsafe { CStr::from_ptr(self.view.format) },
        }
    }

    fn item_size(&self) -> usize {
        self.view.itemsize.max(0) as usize
    }

    fn len_bytes(&self) -> usize {
        self.view.len.max(0) as usize
    }

    fn is_contiguous(&self) -> bool {
        // SAFETY: the view is filled in.
        unsafe { ffi::PyBuffer_IsContiguous(&raw const *self.view, b'C' as c_char) != 0 }
    }

    /// Why it cannot be used where it lies as an array of a dtype; `None`: it can.
    fn complaint(&self, dtype: DType) -> Option<String> {
        let shape = list(self.shape());
        if !is_of(self, dtype) {
            let format = self.format().to_string_lossy();
            let bytes = self.item_size();
            return Some(format!(
                "elements of format `{format}` ({bytes} bytes) with shape [{shape}] are"
            ));
        }
        if !self.is_contiguous() {
            return Some(format!(
                "memory of shape [{shape}] that is not contiguous is"
            ));
        }
        let aligned = (self.view.buf as usize).is_multiple_of(dtype.bytes());
        (!aligned && self.len_bytes() > 0)
            .then(|| "memory that is not aligned for it is".to_owned())
    }

    /// Its bytes, to be read.
    ///
    /// # Safety
    /// The slice is not used when this is gone, nor while somebody writes to the memory.
    pub(super) unsafe fn bytes(&self) -> &'static [u8] {
        // SAFETY: the buffer is contiguous, as whoever binds it checks, and stays where it is as long as it is held.
        unsafe { slice(self.view.buf.cast(), self.len_bytes()) }
    }

    /// Its bytes, to be written.
    ///
    /// # Safety
    /// As [`Held::bytes`], and nobody else uses the memory while the slice is.
    pub(super) unsafe fn bytes_mut(&self) -> &'static mut [u8] {
        // SAFETY: as in `bytes`; it is writable, as whoever binds it checks.
        unsafe { slice_mut(self.view.buf.cast(), self.len_bytes()) }
    }

    /// Where it lies.
    pub(super) fn place(&self) -> std::ops::Range<usize> {
        let start = self.view.buf as usize;
        start..start + self.len_bytes()
    }

    /// Checks that it can be bound as it lies.
    pub(super) fn check(
        &self,
        name: &str,
        dtype: DType,
        shape: &[usize],
        write: bool,
    ) -> PyResult<()> {
        let complaint = if self.shape() != shape {
            Some(format!("memory of shape [{}] is", list(self.shape())))
        } else if write && self.view.readonly != 0 {
            Some("memory that is read-only is".to_owned())
        } else {
            self.complaint(dtype)
        };
        match complaint {
            None => Ok(()),
            Some(got) => Err(PyValueError::new_err(format!(
                "`{name}` needs {dtype}[{}], and {got} given",
                list(shape)
            ))),
        }
    }

    /// Whether it can be read where it lies. Booleans cannot: their owner may write other bytes than 0 and 1 at any time.
    pub(super) fn is_ready(&self, dtype: DType) -> bool {
        dtype != DType::Bool && self.complaint(dtype).is_none()
    }

    /// Writes elements back that were computed in memory of our own; it was checked that they fit.
    ///
    /// # Safety
    /// Nobody else uses the memory meanwhile.
    pub(super) unsafe fn fill(&self, bytes: &[u8]) {
        // SAFETY: as the caller states.
        let to = unsafe { self.bytes_mut() };
        if to.len() == bytes.len() {
            to.copy_from_slice(bytes);
        }
    }

    /// Where an element lies.
    ///
    /// # Safety
    /// There is an index for each dimension, within the shape.
    unsafe fn element(&self, index: &[isize]) -> *const u8 {
        // SAFETY: the view has strides, as it was asked for them, and the caller's index fits.
        unsafe { ffi::PyBuffer_GetPointer(&raw const *self.view, index.as_ptr()).cast() }
    }

    /// A copy in row-major order, whatever the strides.
    pub(super) fn copied(&self, name: &str, dtype: DType, shape: &[usize]) -> PyResult<Array> {
        if self.shape() != shape || !is_of(self, dtype) {
            return Err(match self.check(name, dtype, shape, false) {
                Err(error) => error,
                Ok(()) => PyValueError::new_err("the memory changed while it was read"),
            });
        }
        let mut array = Array::zeros(dtype, shape).map_err(errors::array)?;
        if array.is_empty() {
            return Ok(array);
        }
        if self.is_contiguous() && self.len_bytes() == array.bytes().len() {
            // SAFETY: contiguous, as just seen; the slice is gone before anything else can happen to the memory.
            array.bytes_mut().copy_from_slice(unsafe { self.bytes() });
            array.normalise();
            return Ok(array);
        }
        let width = dtype.bytes();
        let mut index = vec![0isize; shape.len()];
        for to in array.bytes_mut().chunks_exact_mut(width) {
            // SAFETY: the index is within the shape, so the element is one of the memory's.
            let from: &[u8] = unsafe { slice(self.element(&index), width) };
            to.copy_from_slice(from);
            for at in (0..shape.len()).rev() {
                index[at] += 1;
                if index[at] < shape[at] as isize {
                    break;
                }
                index[at] = 0;
            }
        }
        array.normalise();
        Ok(array)
    }
}

/// # Safety
/// As [`std::slice::from_raw_parts`], but a null pointer is fine for no bytes.
unsafe fn slice<'a>(start: *const u8, bytes: usize) -> &'a [u8] {
    match bytes {
        0 => &[],
        // SAFETY: the caller's.
        _ => unsafe { std::slice::from_raw_parts(start, bytes) },
    }
}

/// # Safety
/// As [`std::slice::from_raw_parts_mut`], but a null pointer is fine for no bytes.
unsafe fn slice_mut<'a>(start: *mut u8, bytes: usize) -> &'a mut [u8] {
    match bytes {
        0 => &mut [],
        // SAFETY: the caller's.
        _ => unsafe { std::slice::from_raw_parts_mut(start, bytes) },
    }
}

/// The shape of what is given: of a buffer or another array, of nested lists, of a number. `None` for nothing that could be an array.
pub(super) fn shape_of(given: &Bound<'_, PyAny>) -> PyResult<Option<Vec<usize>>> {
    let py = given.py();
    if let Some(held) = Held::of(given) {
        return Ok(Some(held.shape().to_vec()));
    }
    // Arrays that lend their memory by DLPack say it.
    let said = given.getattr_opt(intern!(py, "shape")).attempt(py)?;
    if let Ok(Some(said)) = said
        && let Ok(shape) = said.extract::<Vec<usize>>().attempt(py)?
    {
        return Ok(Some(shape));
    }
    let mut shape = Vec::new();
    let mut inner = given.clone();
    while let Ok(items) = inner.cast::<PySequence>() {
        if items.is_instance_of::<PyString>() {
            return Ok(None);
        }
        let Ok(count) = items.len().attempt(py)? else {
            return Ok(None);
        };
        shape.push(count);
        match items.get_item(0).attempt(py)? {
            Ok(first) => inner = first,
            Err(_) => return Ok(Some(shape)),
        }
    }
    Ok(Some(shape))
}

/// An array of what is given, converted where that loses nothing: memory with elements of the dtype (the buffer protocol,
/// DLPack, an array of the namespace), a number, nested lists.
pub(crate) fn array_of(
    name: &str,
    given: &Bound<'_, PyAny>,
    dtype: DType,
    shape: &[usize],
) -> PyResult<Array> {
    if let Some(held) = Held::of(given) {
        return held.copied(name, dtype, shape);
    }
    if let Some((found, array)) = crate::array::elements_of(given)? {
        if found != PyDType::real(dtype) || array.shape() != shape {
            return Err(PyValueError::new_err(format!(
                "`{name}` needs {dtype}[{}], and an array of {} with shape [{}] is given",
                list(shape),
                found.name(),
                list(array.shape())
            )));
        }
        return Array::from_bytes(dtype, shape, array.bytes()).map_err(errors::array);
    }
    let mut values = Vec::new();
    let count: usize = shape.iter().product();
    flatten(name, given, dtype, shape, &mut values)?;
    debug_assert_eq!(values.len(), count);
    Array::from_scalars(dtype, shape, &values).map_err(errors::array)
}

fn flatten(
    name: &str,
    given: &Bound<'_, PyAny>,
    dtype: DType,
    shape: &[usize],
    values: &mut Vec<Scalar>,
) -> PyResult<()> {
    let Some((size, rest)) = shape.split_first() else {
        values.push(scalar_of(given, dtype)?);
        return Ok(());
    };
    let items = match given.cast::<PySequence>() {
        Ok(items) => items.len().attempt(given.py())?.map(|len| (items, len)),
        Err(error) => Err(error.into()),
    };
    let Some(items) = items
        .ok()
        .and_then(|(items, len)| (len == *size).then_some(items))
    else {
        return Err(PyValueError::new_err(format!(
            "`{name}`: {size} elements are needed where {} is given; give an array with the buffer protocol, or nested lists",
            given.repr()?
        )));
    };
    for item in items.try_iter()? {
        flatten(name, &item?, dtype, rest, values)?;
    }
    Ok(())
}

/// What a program gives, as an array of the namespace.
pub(crate) fn given_back(
    py: Python<'_>,
    array: impl Into<Arc<Array>>,
) -> PyResult<crate::array::Array> {
    let session = crate::device::current(py)?;
    let value = crate::array::Value::real(loopwright_tensor::Tensor::of(array), session);
    crate::array::Array::of(py, value)
}

/// Memory of a program that a backend in Python works in. It has the buffer protocol, so that numpy and others take it
/// without a copy.
#[pyclass(name = "Buffer", module = "loopwright.loops", frozen)]
pub(super) struct Buffer {
    /// Keeps the memory; used through `start` alone.
    _array: Array,
    start: *mut u8,
    bytes: usize,
    dtype: DType,
    shape: Vec<isize>,
    strides: Vec<isize>,
}

// SAFETY: the memory belongs to the array, which may be used from any thread; reads and writes of its elements are
// Python's, as of any buffer.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Buffer {
    pub(super) fn new(mut array: Array) -> Buffer {
        let shape: Vec<isize> = array.shape().iter().map(|size| *size as isize).collect();
        let width = array.dtype().bytes() as isize;
        let strides = array
            .strides()
            .into_iter()
            .map(|stride| stride as isize * width);
        Buffer {
            strides: strides.collect(),
            shape,
            dtype: array.dtype(),
            bytes: array.bytes().len(),
            start: array.bytes_mut().as_mut_ptr(),
            _array: array,
        }
    }

    /// Its bytes.
    pub(super) fn contents(&self) -> &[u8] {
        // SAFETY: the memory lives as long as the array; what Python writes at the same time is Python's matter.
        unsafe { slice(self.start, self.bytes) }
    }

    /// Makes a copy of its bytes elements of its dtype.
    pub(super) fn normalise(&self, bytes: &mut [u8]) {
        self.dtype.normalise(bytes);
    }

    /// Its bytes, to be written.
    ///
    /// # Safety
    /// Nobody else uses the memory meanwhile.
    #[expect(
        clippy::mut_from_ref,
        reason = "the memory is Python's, as that of any buffer"
    )]
    pub(super) unsafe fn contents_mut(&self) -> &mut [u8] {
        // SAFETY: the memory lives as long as the array.
        unsafe { slice_mut(self.start, self.bytes) }
    }

    fn nested<'py>(
        &self,
        dim: usize,
        at: &mut usize,
        py: Python<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if dim == self.shape.len() {
            let width = self.dtype.bytes();
            let value = Scalar::read(self.dtype, &self.contents()[*at * width..]);
            *at += 1;
            return scalar_object(py, value);
        }
        let items = PyList::empty(py);
        for _ in 0..self.shape[dim] {
            items.append(self.nested(dim + 1, at, py)?)?;
        }
        Ok(items.into_any())
    }
}

#[pymethods]
impl Buffer {
    /// The dtype of its elements.
    #[getter]
    fn dtype(&self) -> &'static str {
        self.dtype.name()
    }

    /// Its size along each dimension.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.shape)
    }

    /// Its elements as nested lists; one without dimensions is a number.
    fn tolist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.nested(0, &mut 0, py)
    }

    /// The only element, as a number.
    fn item<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if self.bytes != self.dtype.bytes() {
            return Err(PyValueError::new_err(format!(
                "an array of shape {:?} is not one number",
                self.shape
            )));
        }
        scalar_object(py, Scalar::read(self.dtype, self.contents()))
    }

    fn __len__(&self) -> PyResult<usize> {
        let first = self.shape.first();
        let first = first
            .ok_or_else(|| PyTypeError::new_err("an array without dimensions has no length"))?;
        Ok(*first as usize)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!(
            "Buffer({}, dtype='{}')",
            self.tolist(py)?.repr()?,
            self.dtype
        ))
    }

    /// # Safety
    /// `view` is one to be filled in, as the protocol says.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        if view.is_null() {
            return Err(PyBufferError::new_err("there is no view to fill in"));
        }
        let this = slf.get();
        let asked = |flag: c_int| flags & flag == flag;
        // SAFETY: the view is the caller's to be filled in; everything it points to belongs to the object, which it
        // holds, and never changes.
        unsafe {
            (*view).buf = this.start.cast();
            (*view).len = this.bytes as isize;
            (*view).readonly = 0;
            (*view).itemsize = this.dtype.bytes() as isize;
            (*view).format = match asked(ffi::PyBUF_FORMAT) {
                true => format_of(this.dtype).as_ptr().cast_mut(),
                false => std::ptr::null_mut(),
            };
            (*view).ndim = this.shape.len() as c_int;
            (*view).shape = match asked(ffi::PyBUF_ND) {
                true => this.shape.as_ptr().cast_mut(),
                false => std::ptr::null_mut(),
            };
            (*view).strides = match asked(ffi::PyBUF_STRIDES) {
                true => this.strides.as_ptr().cast_mut(),
                false => std::ptr::null_mut(),
            };
            (*view).suboffsets = std::ptr::null_mut();
            (*view).internal = std::ptr::null_mut();
            (*view).obj = slf.into_ptr();
        }
        Ok(())
    }
}

/// Adds what is here to the module.
pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Buffer>()
}
