//! Memory shared with others: the buffer protocol, numpy, pickling.
//!
//! What comes in through the buffer protocol or DLPack is copied, unless nobody can write it ([`is_protected`]) or the call
//! that it is an argument of has read it when it is over ([`borrowed`]): formulas never see what is written later. What goes
//! out through the buffer protocol can be written ([`lend`](super::lend)); through DLPack it is read-only memory of ours, as it
//! was then, which is not copied, but for complex numbers, whose parts we keep apart, and small values of devices.

use super::lend::Lending;
use super::view::Layout;
use super::{Array, Value, convert, dlpack, made_of, moved};
use crate::device;
use crate::dtype::PyDType;
use crate::errors::OrRaise;
use loopwright_graph::Array as HostArray;
use loopwright_ops::DType;
use loopwright_tensor::{Session, Tensor};
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyMemoryView, PyTuple};
use std::ffi::{CStr, CString, c_int, c_void};
use std::sync::Arc;

/// Elements that lie somewhere in memory.
pub(super) struct Strided {
    pub(super) dtype: PyDType,
    pub(super) shape: Vec<usize>,
    /// From one element to the next along each axis, in bytes.
    pub(super) strides: Vec<isize>,
    pub(super) address: *const u8,
}

impl Strided {
    fn item_bytes(&self) -> usize {
        self.dtype.part.bytes() * if self.dtype.complex { 2 } else { 1 }
    }

    fn is_dense(&self) -> bool {
        let mut expected = self.item_bytes() as isize;
        for (size, stride) in self.shape.iter().zip(&self.strides).rev() {
            if *size != 1 && *stride != expected {
                return self.shape.contains(&0);
            }
            // A product that does not fit is no element's distance: no memory is that large.
            expected = match isize::try_from(*size) {
                Ok(size) => expected.saturating_mul(size),
                Err(_) => isize::MAX,
            };
        }
        true
    }

    fn is_aligned(&self) -> bool {
        (self.address as usize).is_multiple_of(self.dtype.part.bytes())
    }

    /// Whether the elements can be used where they lie. Booleans cannot: their owner may write bytes that are neither 0 nor
    /// 1 at any time, and code is compiled for these two ([`DType::normalise`]). A copy of them is a byte an element.
    fn can_be_lent(&self) -> bool {
        self.is_dense() && self.is_aligned() && self.dtype.part != DType::Bool
    }

    /// A tensor of the elements, where they lie if they are dense and it need not be a copy. Complex elements have a last
    /// axis with their parts.
    ///
    /// # Safety
    /// The elements are there as long as `owner`.
    pub(super) unsafe fn tensor(&self, owner: Py<PyAny>, copy: Option<bool>) -> PyResult<Tensor> {
        let mut shape = self.shape.clone();
        if self.dtype.complex {
            shape.push(2);
        }
        let dense = self.can_be_lent();
        if copy == Some(false) && !dense {
            return Err(PyValueError::new_err(match self.dtype.part {
                DType::Bool => {
                    "booleans of other libraries are copied, since their memory may come to hold other bytes than 0 and 1, and a copy is forbidden"
                }
                _ => "the elements do not lie one behind the other, and a copy is forbidden",
            }));
        }
        if dense && copy != Some(true) {
            // SAFETY: dense and aligned, as just seen; kept by the owner, as the caller states. Who shares memory with an
            // array and writes it has been warned.
            let array = unsafe {
                HostArray::foreign(self.dtype.part, &shape, self.address, Box::new(owner))
            };
            return Ok(Tensor::of(array.or_raise()?));
        }
        let mut array = HostArray::zeros(self.dtype.part, &shape).or_raise()?;
        let bytes = self.item_bytes();
        if self.is_dense() {
            let to = array.bytes_mut();
            if !to.is_empty() {
                // SAFETY: dense, so that the elements are one run of bytes, which is there as long as the owner.
                to.copy_from_slice(unsafe { std::slice::from_raw_parts(self.address, to.len()) });
            }
            drop(owner);
            array.normalise();
            return Ok(Tensor::of(array));
        }
        let mut to = array.bytes_mut().chunks_exact_mut(bytes);
        // SAFETY: each address is that of an element, which is there as long as the owner.
        self.each(
            &self.shape,
            &self.strides,
            self.address,
            &mut |from| unsafe {
                if let Some(to) = to.next() {
                    to.copy_from_slice(std::slice::from_raw_parts(from, bytes));
                }
            },
        );
        drop(owner);
        array.normalise();
        Ok(Tensor::of(array))
    }

    fn each(
        &self,
        shape: &[usize],
        strides: &[isize],
        from: *const u8,
        see: &mut dyn FnMut(*const u8),
    ) {
        match (shape, strides) {
            ([size, shape @ ..], [stride, strides @ ..]) => {
                for at in 0..*size {
                    let from = from.wrapping_offset(at as isize * stride);
                    self.each(shape, strides, from, see);
                }
            }
            _ => see(from),
        }
    }
}

/// A value of a tensor whose last axis, for complex numbers, has their parts.
pub(super) fn value_of_parts(tensor: Tensor, complex: bool, session: &Session) -> Value {
    if !complex {
        return Value::real(tensor, session.clone());
    }
    let part = |at: i64| {
        let last = tensor.rank() - 1;
        tensor.narrow(last, at as usize, 1).squeeze(last)
    };
    Value::new(part(0), Some(part(1)), session.clone())
}

/// Whether an object is some other library's array or number.
pub(crate) fn is_array_like(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(object.hasattr("__array_interface__")?
        || (object.hasattr("__dlpack__")? && object.hasattr("__dlpack_device__")?))
}

fn has_buffer(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: any object may be asked.
    unsafe { ffi::PyObject_CheckBuffer(object.as_ptr()) == 1 }
}

/// The dtype of a buffer's format.
fn dtype_of_format(format: &CStr, bytes: usize) -> Option<PyDType> {
    let text = format.to_str().ok()?;
    let code = text.trim_start_matches(['@', '=', '<']);
    let signed = |bytes| match bytes {
        1 => Some(DType::I8),
        2 => Some(DType::I16),
        4 => Some(DType::I32),
        8 => Some(DType::I64),
        _ => None,
    };
    let unsigned = |bytes| match bytes {
        1 => Some(DType::U8),
        2 => Some(DType::U16),
        4 => Some(DType::U32),
        8 => Some(DType::U64),
        _ => None,
    };
    Some(match code {
        "?" => PyDType::real(DType::Bool),
        "b" | "h" | "i" | "l" | "q" | "n" => PyDType::real(signed(bytes)?),
        "B" | "H" | "I" | "L" | "Q" | "N" | "c" => PyDType::real(unsigned(bytes)?),
        "e" => PyDType::real(DType::F16),
        "f" => PyDType::real(DType::F32),
        "d" => PyDType::real(DType::F64),
        "Zf" => PyDType::pair(DType::F32),
        "Zd" => PyDType::pair(DType::F64),
        _ => return None,
    })
}

/// The format of a dtype in a buffer.
/// Two types of C have 64 bits on most systems. numpy's `int64` is `long` there, and compiled code looks for its number.
const LONG_HAS_64_BITS: bool = size_of::<std::ffi::c_long>() == 8;

fn format_of(dtype: PyDType) -> Option<&'static CStr> {
    Some(match (dtype.complex, dtype.part) {
        (true, DType::F32) => c"Zf",
        (true, _) => c"Zd",
        (_, DType::Bool) => c"?",
        (_, DType::I8) => c"b",
        (_, DType::I16) => c"h",
        (_, DType::I32) => c"i",
        (_, DType::I64) if LONG_HAS_64_BITS => c"l",
        (_, DType::I64) => c"q",
        (_, DType::U8) => c"B",
        (_, DType::U16) => c"H",
        (_, DType::U32) => c"I",
        (_, DType::U64) if LONG_HAS_64_BITS => c"L",
        (_, DType::U64) => c"Q",
        (_, DType::F16) => c"e",
        (_, DType::F32) => c"f",
        (_, DType::F64) => c"d",
        (_, DType::BF16 | DType::F8E4M3 | DType::F8E5M2) => return None,
    })
}

fn known_format(format: &CStr, bytes: usize) -> PyResult<PyDType> {
    dtype_of_format(format, bytes).ok_or_else(|| {
        let format = format.to_string_lossy().into_owned();
        PyTypeError::new_err(format!("there is no dtype for elements of format {format}"))
    })
}

/// The element of a buffer without axes, which has no shape to be read by: it is copied.
fn of_element(
    view: &Bound<'_, PyMemoryView>,
    session: &Session,
    copy: Option<bool>,
) -> PyResult<Value> {
    if copy == Some(false) {
        return Err(PyValueError::new_err(
            "an element without axes is copied, and a copy is forbidden",
        ));
    }
    let bytes: Vec<u8> = view.call_method0("tobytes")?.extract()?;
    let format: CString = view.getattr("format")?.extract()?;
    let dtype = known_format(&format, bytes.len())?;
    let shape: &[usize] = if dtype.complex { &[2] } else { &[] };
    let array = HostArray::from_bytes(dtype.part, shape, &bytes).or_raise()?;
    Ok(value_of_parts(Tensor::of(array), dtype.complex, session))
}

/// The elements of an object's buffer.
fn of_buffer(object: &Bound<'_, PyAny>, session: &Session, copy: Option<bool>) -> PyResult<Value> {
    // A memory view holds the buffer, and can be let go of from any thread.
    let view = PyMemoryView::from(object)?;
    if view.getattr("ndim")?.extract::<usize>()? == 0 {
        return of_element(&view, session, copy);
    }
    let buffer = PyUntypedBuffer::get(view.as_any())?;
    let dtype = known_format(buffer.format(), buffer.item_size())?;
    if buffer.suboffsets().is_some() {
        return Err(PyTypeError::new_err(
            "the buffer's elements lie behind pointers (suboffsets); copy them into one piece first, as bytes(x) does",
        ));
    }
    let strided = Strided {
        dtype,
        shape: buffer.shape().to_vec(),
        strides: buffer.strides().to_vec(),
        address: buffer.buf_ptr().cast::<u8>().cast_const(),
    };
    drop(buffer);
    // SAFETY: the view holds the buffer.
    let tensor = unsafe { strided.tensor(view.into_any().unbind(), copy) }?;
    Ok(value_of_parts(tensor, dtype.complex, session))
}

/// An array, number, list, or what shares its memory, as a value.
pub(crate) fn of_object(
    py: Python<'_>,
    object: &Bound<'_, PyAny>,
    session: Option<&Session>,
) -> PyResult<Value> {
    converted(py, object, None, session, None)
}

/// The same for an object that nobody writes while the value is there: memory of others is used where it lies. Indices
/// are copied, so that what was found within an axis stays so.
pub(crate) fn borrowed(
    py: Python<'_>,
    object: &Bound<'_, PyAny>,
    session: &Session,
) -> PyResult<Value> {
    if has_buffer(object) {
        let value = of_buffer(object, session, None)?;
        if value.re.dtype().is_float() {
            return Ok(value);
        }
    }
    of_object(py, object, Some(session))
}

/// Whether memory is protected from being written, so that it can be used where it lies for as long as it is held: bytes,
/// arrays of ours, and read-only views and arrays of such or of memory of their own.
fn is_protected(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = object.py();
    if object.is_instance_of::<PyBytes>() || object.is_instance_of::<Array>() {
        return Ok(true);
    }
    if let Ok(view) = object.cast::<PyMemoryView>() {
        let owner = view.getattr("obj")?;
        return Ok(view.getattr("readonly")?.is_truthy()? && is_protected(&owner)?);
    }
    // numpy's arrays say who owns the memory.
    let (Some(flags), Some(base)) = (
        object.getattr_opt(pyo3::intern!(py, "flags"))?,
        object.getattr_opt(pyo3::intern!(py, "base"))?,
    ) else {
        return Ok(false);
    };
    match flags.getattr_opt(pyo3::intern!(py, "writeable"))? {
        Some(writeable) if !writeable.is_truthy()? => Ok(base.is_none() || is_protected(&base)?),
        _ => Ok(false),
    }
}

/// Whether to copy memory of others: formulas read it later, and must not see what is written there until then.
fn snapshot(object: &Bound<'_, PyAny>, copy: Option<bool>) -> PyResult<Option<bool>> {
    match (copy, is_protected(object)?) {
        (_, true) | (Some(true), _) => Ok(copy),
        (None, false) => Ok(Some(true)),
        (Some(false), false) => Err(PyValueError::new_err(
            "memory that others can write is copied, and a copy is forbidden; an array that is read-only (flags.writeable) can be shared",
        )),
    }
}

fn converted(
    py: Python<'_>,
    object: &Bound<'_, PyAny>,
    dtype: Option<PyDType>,
    session: Option<&Session>,
    copy: Option<bool>,
) -> PyResult<Value> {
    if let Ok(array) = object.cast::<Array>() {
        let value = array.get().value();
        let value = match session {
            Some(session) if session.device().name() != value.session.device().name() => {
                if copy == Some(false) {
                    return Err(PyValueError::new_err(
                        "the array is on another device, and a copy is forbidden",
                    ));
                }
                moved(py, &value, session)?.value()
            }
            _ => value,
        };
        return with_dtype(value, dtype, copy);
    }
    let session = match session {
        Some(session) => session.clone(),
        None => device::current(py)?,
    };
    if let Some(number) = convert::number(object)? {
        if copy == Some(false) {
            return Err(PyValueError::new_err(
                "a Python number is copied, and a copy is forbidden",
            ));
        }
        let value = match dtype {
            None => convert::from_scalar(number, number.own(), &session)?,
            // As Python converts numbers, which is not as numbers beside arrays.
            Some(dtype) => convert::from_scalar(number, dtype, &session)?,
        };
        return Ok(value);
    }
    let is_list = object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>();
    if !is_list && has_buffer(object) {
        // Scalars of numpy that are no numbers, as dates, give their bytes.
        convert::scalar_dtype(object)?;
        let value = of_buffer(object, &session, snapshot(object, copy)?)?;
        return with_dtype(value, dtype, copy);
    }
    if !is_list && object.hasattr("__dlpack__")? {
        let value = dlpack::take(object, &session, snapshot(object, copy)?)?;
        return with_dtype(value, dtype, copy);
    }
    if copy == Some(false) {
        return Err(PyValueError::new_err(
            "a list is copied, and a copy is forbidden",
        ));
    }
    if is_list && let Some(value) = of_arrays(py, object, &session)? {
        return with_dtype(value, dtype, None);
    }
    convert::of_lists(object, dtype, &session)
}

/// A list with arrays in it: they are stacked.
fn of_arrays(
    py: Python<'_>,
    object: &Bound<'_, PyAny>,
    session: &Session,
) -> PyResult<Option<Value>> {
    let rows: Vec<Bound<'_, PyAny>> = object.try_iter()?.collect::<PyResult<_>>()?;
    let is_array = |row: &Bound<'_, PyAny>| row.cast::<Array>().is_ok();
    let has_arrays = |row: &Bound<'_, PyAny>| -> PyResult<bool> {
        if is_array(row) {
            return Ok(true);
        }
        match row.is_instance_of::<PyList>() || row.is_instance_of::<PyTuple>() {
            true => Ok(row.try_iter()?.flatten().any(|inner| is_array(&inner))),
            false => Ok(false),
        }
    };
    let mut any = false;
    for row in &rows {
        any |= has_arrays(row)?;
    }
    if !any {
        return Ok(None);
    }
    let values = rows.iter().map(|row| of_object(py, row, Some(session)));
    let values: Vec<Value> = values.collect::<PyResult<_>>()?;
    stacked(&values, 0).map(Some)
}

/// Values of one shape along a new axis.
pub(crate) fn stacked(values: &[Value], axis: i64) -> PyResult<Value> {
    joined(values, |tensors| loopwright_tensor::stack(tensors, axis))
}

/// Values joined by a function of tensors, in the dtype they meet in.
pub(crate) fn joined(values: &[Value], join: impl Fn(&[&Tensor]) -> Tensor) -> PyResult<Value> {
    let Some(first) = values.first() else {
        return Err(PyValueError::new_err("there are no arrays to join"));
    };
    let mut dtype = first.dtype();
    for value in values {
        dtype = crate::promote::promoted(dtype, value.dtype())?;
    }
    let values: Vec<Value> = values.iter().map(|value| value.cast(dtype)).collect();
    let re = join(&values.iter().map(|value| &value.re).collect::<Vec<_>>());
    let im = dtype.complex.then(|| {
        let parts: Vec<Tensor> = values.iter().map(Value::imaginary).collect();
        join(&parts.iter().collect::<Vec<_>>())
    });
    made_of(&values.iter().collect::<Vec<_>>(), re, im)
}

fn with_dtype(value: Value, dtype: Option<PyDType>, copy: Option<bool>) -> PyResult<Value> {
    match dtype {
        Some(dtype) if dtype != value.dtype() => match copy {
            Some(false) => Err(PyValueError::new_err(format!(
                "{} as {} is a copy, and a copy is forbidden",
                value.dtype().name(),
                dtype.name()
            ))),
            _ => Ok(value.cast(dtype)),
        },
        _ => Ok(value),
    }
}

/// An array of an array, a number, nested lists, or anything that shares its memory (the buffer protocol, DLPack).
///
/// Memory that others can write is copied. What nobody can write (bytes, numpy's arrays that are read-only down to their
/// owner) is used where it lies if it is dense, unless `copy` is true.
#[pyfunction]
#[pyo3(signature = (obj, dtype=None, device=None, copy=None))]
pub(crate) fn asarray<'py>(
    py: Python<'py>,
    obj: &Bound<'py, PyAny>,
    dtype: Option<&Bound<'py, PyAny>>,
    device: Option<&Bound<'py, PyAny>>,
    copy: Option<bool>,
) -> PyResult<Bound<'py, PyAny>> {
    let dtype = dtype.filter(|dtype| !dtype.is_none());
    let dtype = dtype.map(PyDType::of_any).transpose()?;
    let session = device.filter(|device| !device.is_none());
    let session = session
        .map(|device| device::of_argument(py, Some(device)))
        .transpose()?;
    let value = converted(py, obj, dtype, session.as_ref(), copy)?;
    // The array itself, where nothing had to be done.
    if copy != Some(true)
        && let Ok(array) = obj.cast::<Array>()
        && array.get().value().dtype() == value.dtype()
        && session.is_none_or(|session| {
            session.device().name() == array.get().value().session.device().name()
        })
    {
        return Ok(obj.clone());
    }
    Ok(Bound::new(py, Array::of(py, value)?)?.into_any())
}

/// The elements of an array of ours, or of an object that lends them by DLPack, as they lie in memory of the host; nothing
/// for other objects. This is the way of dtypes for which the buffer protocol has no format, such as bfloat16.
pub(crate) fn elements_of(
    object: &Bound<'_, PyAny>,
) -> PyResult<Option<(PyDType, Arc<HostArray>)>> {
    let py = object.py();
    if let Ok(array) = object.cast::<Array>() {
        let dtype = array.get().value().dtype();
        return Ok(Some((dtype, dense(py, array.get())?)));
    }
    if !object.hasattr("__dlpack__")? {
        return Ok(None);
    }
    let value = dlpack::take(object, &device::current(py)?, Some(true))?;
    let array = Array::of(py, value)?;
    Ok(Some((array.value().dtype(), dense(py, &array)?)))
}

/// Dense bytes of an array in memory of the host. Complex elements have their parts side by side.
pub(super) fn dense(py: Python<'_>, array: &Array) -> PyResult<Arc<HostArray>> {
    let value = array.value();
    let Some(im) = &value.im else {
        let mut parts = array.host(py)?;
        return Ok(parts.remove(0));
    };
    let both = loopwright_tensor::stack(&[&value.re.unnamed(), &im.unnamed()], -1);
    let both = Array::of(py, Value::real(both, value.session.clone()))?;
    Ok(both.host(py)?.remove(0))
}

/// Arrays of fewer bytes are given as copies: to copy so little costs less than to give them where they lie.
pub(super) const SMALL: usize = 16 << 10;

/// Where elements lie; a copy that was just made can be written there.
pub(super) fn address_of(elements: &mut Arc<HostArray>, is_copied: bool) -> *mut u8 {
    match Arc::get_mut(elements) {
        Some(own) if is_copied => own.bytes_mut().as_mut_ptr(),
        _ => elements.bytes().as_ptr().cast_mut(),
    }
}

/// What a buffer holds: the elements, and its shape and strides.
struct Lent {
    elements: Elements,
    shape: Vec<isize>,
    strides: Vec<isize>,
}

/// The elements of a buffer.
enum Elements {
    /// They may be written.
    Lending(Arc<Lending>),
    /// They may not.
    Kept(Arc<HostArray>),
}

impl Elements {
    fn of(py: Python<'_>, array: &Array) -> PyResult<Elements> {
        let (cell, map) = array.root();
        if array.is_read_only() {
            return Ok(Elements::Kept(dense(py, array)?));
        }
        let is_whole = map.is_none();
        if is_whole && let Some(lending) = cell.share_in_place() {
            return Ok(Elements::Lending(lending));
        }
        let mut elements = dense(py, array)?;
        if is_whole && elements.bytes().len() >= SMALL {
            // Nothing may hold what is lent in place.
            drop(elements);
            if let Some(lending) = cell.lend_in_place() {
                return Ok(Elements::Lending(lending));
            }
            elements = dense(py, array)?;
            // Memory that nobody can write goes out as it came in.
            if array.value().re.is_foreign() {
                return Ok(Elements::Kept(elements));
            }
        }
        let layout = match map {
            Some(map) => map.layout.clone(),
            None => Some(Layout::dense(&array.lock().sizes()?)),
        };
        let lending = layout.and_then(|layout| cell.lend(&elements, layout));
        Ok(lending.map_or(Elements::Kept(elements), Elements::Lending))
    }

    fn address(&self) -> *mut u8 {
        match self {
            Elements::Lending(lending) => lending.address(),
            Elements::Kept(array) => array.bytes().as_ptr().cast_mut(),
        }
    }

    fn length(&self) -> usize {
        match self {
            Elements::Lending(lending) => lending.length(),
            Elements::Kept(array) => array.bytes().len(),
        }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Elements::Lending(lending) = &self.elements {
            lending.release();
        }
    }
}

/// # Safety
/// `view` is to be filled.
pub(super) unsafe fn fill_buffer(
    slf: &Bound<'_, Array>,
    view: *mut ffi::Py_buffer,
    flags: c_int,
) -> PyResult<()> {
    if view.is_null() {
        return Err(PyBufferError::new_err("there is no view to fill"));
    }
    // SAFETY: the interpreter's, as the caller states.
    unsafe { (*view).obj = std::ptr::null_mut() };
    let py = slf.py();
    let dtype = slf.get().lock().dtype();
    let format = format_of(dtype).ok_or_else(|| {
        PyBufferError::new_err(format!(
            "buffers have no format for {}; convert with astype(float32)",
            dtype.name()
        ))
    })?;
    let elements = Elements::of(py, slf.get())?;
    let sizes = slf.get().lock().sizes()?;
    let item = dtype.part.bytes() * if dtype.complex { 2 } else { 1 };
    let shape: Vec<isize> = sizes.iter().map(|size| *size as isize).collect();
    let mut strides = vec![item as isize; shape.len()];
    for at in (1..shape.len()).rev() {
        strides[at - 1] = strides[at] * shape[at].max(1);
    }
    let mut lent = Box::new(Lent {
        elements,
        shape,
        strides,
    });
    let (address, length) = (lent.elements.address(), lent.elements.length());
    let is_read_only = matches!(lent.elements, Elements::Kept(_));
    if is_read_only && flags & ffi::PyBUF_WRITABLE == ffi::PyBUF_WRITABLE {
        return Err(PyBufferError::new_err(
            "an array's memory is read only; x[...] = v changes an array",
        ));
    }
    let asked = |flag: c_int| flags & flag == flag;
    // SAFETY: as above; what the view points to is held by what it holds.
    unsafe {
        (*view).buf = address.cast::<c_void>();
        (*view).len = length as isize;
        (*view).readonly = c_int::from(is_read_only);
        (*view).itemsize = item as isize;
        (*view).format = match asked(ffi::PyBUF_FORMAT) {
            true => format.as_ptr().cast_mut(),
            false => std::ptr::null_mut(),
        };
        (*view).ndim = lent.shape.len() as c_int;
        (*view).shape = match asked(ffi::PyBUF_ND) {
            true => lent.shape.as_mut_ptr(),
            false => std::ptr::null_mut(),
        };
        (*view).strides = match asked(ffi::PyBUF_STRIDES) {
            true => lent.strides.as_mut_ptr(),
            false => std::ptr::null_mut(),
        };
        (*view).suboffsets = std::ptr::null_mut();
        (*view).internal = Box::into_raw(lent).cast::<c_void>();
        (*view).obj = slf.clone().into_any().into_ptr();
    }
    Ok(())
}

/// # Safety
/// `view` was filled by [`fill_buffer`].
pub(super) unsafe fn release_buffer(view: *mut ffi::Py_buffer) {
    // SAFETY: put there when the view was filled, and given back once.
    unsafe {
        let lent = (*view).internal.cast::<Lent>();
        if !lent.is_null() {
            drop(Box::from_raw(lent));
            (*view).internal = std::ptr::null_mut();
        }
    }
}

/// How an array is pickled: its bytes, dtype, shape, names and device.
pub(super) fn reduce<'py>(slf: &Bound<'py, Array>) -> PyResult<(Py<PyAny>, Bound<'py, PyTuple>)> {
    let py = slf.py();
    let array = dense(py, slf.get())?;
    let value = slf.get().value();
    let names = value.re.shape().axes().iter();
    let names: Vec<Option<String>> = names
        .map(|axis| axis.name.as_deref().map(str::to_owned))
        .collect();
    let restore = py.import("loopwright._core")?.getattr("_unpickle")?;
    let device = value.session.device().name().to_owned();
    let state = (
        PyBytes::new(py, array.bytes()),
        value.dtype().name(),
        value.sizes()?,
        names,
        device,
    );
    Ok((restore.unbind(), state.into_pyobject(py)?))
}

/// An array of what it was pickled as; on the best device where its own is not here.
#[pyfunction]
#[pyo3(name = "_unpickle")]
pub(crate) fn unpickle(
    py: Python<'_>,
    bytes: &[u8],
    dtype: &str,
    shape: Vec<usize>,
    names: Vec<Option<String>>,
    device: &str,
) -> PyResult<Array> {
    let dtype = PyDType::from_name(dtype)
        .ok_or_else(|| PyValueError::new_err(format!("there is no dtype {dtype}")))?;
    let session = match device::session(device) {
        Ok(session) => session,
        Err(_) => device::current(py)?,
    };
    let mut sizes = shape;
    if dtype.complex {
        sizes.push(2);
    }
    let array = HostArray::from_bytes(dtype.part, &sizes, bytes).or_raise()?;
    let value = value_of_parts(Tensor::of(array), dtype.complex, &session);
    let named = value.parts(|part| {
        let names = names.iter().enumerate();
        names.fold(part.clone(), |part, (axis, name)| match name {
            Some(name) => part.rename(axis, name),
            None => part,
        })
    });
    Array::of(py, named)
}
