//! DLPack, both ways.

use super::exchange::{SMALL, Strided, address_of, dense, value_of_parts};
use super::{Array, Value};
use crate::dtype::PyDType;
use loopwright_graph::Array as HostArray;
use loopwright_ops::{DType, Kind};
use loopwright_tensor::Session;
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ffi::{CStr, c_void};
use std::sync::Arc;

/// The host's memory, as `__dlpack_device__` says it.
pub(super) const HOST: (i32, i32) = (1, 0);
/// Memory of the host that a CUDA device reads, too.
const CUDA_HOST: i32 = 3;

const READ_ONLY: u64 = 1;
const IS_COPIED: u64 = 2;

const NAME: &CStr = c"dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";

#[repr(C)]
struct DlDevice {
    kind: i32,
    id: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct DlType {
    code: u8,
    bits: u8,
    lanes: u16,
}

#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device: DlDevice,
    ndim: i32,
    dtype: DlType,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

/// Before version 1.
#[repr(C)]
struct Managed {
    tensor: DlTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Managed)>,
}

/// From version 1 on.
#[repr(C)]
struct ManagedVersioned {
    major: u32,
    minor: u32,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut ManagedVersioned)>,
    flags: u64,
    tensor: DlTensor,
}

/// What lent elements are held by.
struct Lent {
    _array: Arc<HostArray>,
    shape: Vec<i64>,
    strides: Vec<i64>,
}

fn code_of(dtype: PyDType) -> DlType {
    let bits = dtype.part.bits() as u8;
    let (code, bits) = match (dtype.complex, dtype.part) {
        (true, _) => (5, bits * 2),
        (_, DType::Bool) => (6, 8),
        (_, DType::BF16) => (4, 16),
        (_, DType::F8E4M3) => (10, 8),
        (_, DType::F8E5M2) => (12, 8),
        (_, part) => match part.kind() {
            Kind::Signed | Kind::Bool => (0, bits),
            Kind::Unsigned => (1, bits),
            Kind::Float => (2, bits),
        },
    };
    DlType {
        code,
        bits,
        lanes: 1,
    }
}

fn dtype_of(kind: DlType) -> Option<PyDType> {
    if kind.lanes != 1 {
        return None;
    }
    let all = crate::dtype::ALL.iter().map(|(_, dtype)| *dtype);
    all.into_iter().find(|dtype| {
        let known = code_of(*dtype);
        (known.code, known.bits) == (kind.code, kind.bits)
    })
}

/// The array as a capsule.
pub(super) fn give<'py>(
    py: Python<'py>,
    array: &Array,
    max_version: Option<(u32, u32)>,
    device: Option<(i32, i32)>,
    copy: Option<bool>,
) -> PyResult<Bound<'py, PyAny>> {
    if let Some(device) = device.filter(|device| *device != HOST) {
        return Err(PyBufferError::new_err(format!(
            "arrays are given in memory of the host, and device {device:?} is asked for"
        )));
    }
    // Before version 1 nothing says that memory is read-only, and who takes it may write. It gets memory of its own then,
    // also with `copy=False`: what is given is a snapshot in any case, so that nobody can tell but by the address.
    let is_open = max_version.is_none_or(|(major, _)| major < 1);
    let dtype = array.value().dtype();
    let mut elements = dense(py, array)?;
    let is_copied = copy.unwrap_or(elements.bytes().len() < SMALL);
    if is_copied || is_open {
        elements = Arc::new((*elements).clone());
    }
    let mut shape: Vec<i64> = elements.shape().iter().map(|size| *size as i64).collect();
    if dtype.complex {
        shape.pop();
    }
    let mut strides = vec![1; shape.len()];
    for at in (1..shape.len()).rev() {
        strides[at - 1] = strides[at] * shape[at].max(1);
    }
    let data = address_of(&mut elements, is_copied || is_open).cast::<c_void>();
    let mut lent = Box::new(Lent {
        _array: elements,
        shape,
        strides,
    });
    let tensor = DlTensor {
        data,
        device: DlDevice {
            kind: HOST.0,
            id: HOST.1,
        },
        ndim: lent.shape.len() as i32,
        dtype: code_of(dtype),
        shape: lent.shape.as_mut_ptr(),
        strides: lent.strides.as_mut_ptr(),
        byte_offset: 0,
    };
    let context = Box::into_raw(lent).cast::<c_void>();
    let (pointer, name): (*mut c_void, &CStr) = match max_version {
        Some((major, _)) if major >= 1 => {
            let managed = ManagedVersioned {
                major: 1,
                minor: 0,
                context,
                deleter: Some(delete_versioned),
                flags: if is_copied { IS_COPIED } else { READ_ONLY },
                tensor,
            };
            (Box::into_raw(Box::new(managed)).cast(), VERSIONED)
        }
        _ => {
            let managed = Managed {
                tensor,
                context,
                deleter: Some(delete),
            };
            (Box::into_raw(Box::new(managed)).cast(), NAME)
        }
    };
    // SAFETY: the pointer is not null, the name lives forever, and the destructor knows both kinds.
    unsafe {
        let capsule = ffi::PyCapsule_New(pointer, name.as_ptr(), Some(destroy));
        Bound::from_owned_ptr_or_err(py, capsule)
    }
}

/// # Safety
/// Made by [`give`], and deleted once.
unsafe extern "C" fn delete(managed: *mut Managed) {
    // SAFETY: as stated.
    unsafe {
        let managed = Box::from_raw(managed);
        drop(Box::from_raw(managed.context.cast::<Lent>()));
    }
}

/// # Safety
/// Made by [`give`], and deleted once.
unsafe extern "C" fn delete_versioned(managed: *mut ManagedVersioned) {
    // SAFETY: as stated.
    unsafe {
        let managed = Box::from_raw(managed);
        drop(Box::from_raw(managed.context.cast::<Lent>()));
    }
}

/// A capsule that nobody has taken the tensor of still owns it.
///
/// # Safety
/// Called by the interpreter, on a capsule of [`give`].
unsafe extern "C" fn destroy(capsule: *mut ffi::PyObject) {
    // SAFETY: a capsule is renamed by who takes its tensor, so that under its own name the pointer is still ours.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, NAME.as_ptr()) == 1 {
            delete(ffi::PyCapsule_GetPointer(capsule, NAME.as_ptr()).cast());
        } else if ffi::PyCapsule_IsValid(capsule, VERSIONED.as_ptr()) == 1 {
            delete_versioned(ffi::PyCapsule_GetPointer(capsule, VERSIONED.as_ptr()).cast());
        }
    }
}

/// What a capsule is called whose tensor somebody has taken.
const USED: &CStr = c"used_dltensor";
const USED_VERSIONED: &CStr = c"used_dltensor_versioned";

/// What capsules of ours are called that hold a tensor which was taken.
const TAKEN: &CStr = c"loopwright.taken_dltensor";
const TAKEN_VERSIONED: &CStr = c"loopwright.taken_dltensor_versioned";

/// The version whose structures are declared above; minor versions only append.
const MAJOR: u32 = 1;

/// More axes than any library has; a number beyond it is not one of axes.
const MOST_AXES: i32 = 255;

/// Lets go of a tensor that was taken: its producer's deleter is called, once.
///
/// # Safety
/// Called by the interpreter, on a capsule that [`Offered::take`] made.
unsafe extern "C" fn release(capsule: *mut ffi::PyObject) {
    // SAFETY: the pointer is that of the structure which the capsule's name says, which nobody else owns.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, TAKEN.as_ptr()) == 1 {
            let managed = ffi::PyCapsule_GetPointer(capsule, TAKEN.as_ptr()).cast::<Managed>();
            if let Some(deleter) = (*managed).deleter {
                deleter(managed);
            }
        } else if ffi::PyCapsule_IsValid(capsule, TAKEN_VERSIONED.as_ptr()) == 1 {
            let managed = ffi::PyCapsule_GetPointer(capsule, TAKEN_VERSIONED.as_ptr());
            let managed = managed.cast::<ManagedVersioned>();
            if let Some(deleter) = (*managed).deleter {
                deleter(managed);
            }
        }
    }
}

/// A tensor in a capsule that nobody has taken yet.
struct Offered<'py> {
    capsule: Bound<'py, PyAny>,
    pointer: *mut c_void,
    versioned: bool,
}

impl<'py> Offered<'py> {
    fn of(capsule: Bound<'py, PyAny>) -> PyResult<Offered<'py>> {
        let pointer = capsule.as_ptr();
        // SAFETY: any object may be asked.
        let is = |name: &CStr| unsafe { ffi::PyCapsule_IsValid(pointer, name.as_ptr()) == 1 };
        if is(USED) || is(USED_VERSIONED) {
            return Err(PyBufferError::new_err(
                "the DLPack capsule was taken already; ask the array for another one with __dlpack__()",
            ));
        }
        let versioned = is(VERSIONED);
        if !versioned && !is(NAME) {
            return Err(PyBufferError::new_err("__dlpack__ gave no DLPack capsule"));
        }
        let name = if versioned { VERSIONED } else { NAME };
        // SAFETY: the capsule has this name, as just seen.
        let pointer = unsafe { ffi::PyCapsule_GetPointer(pointer, name.as_ptr()) };
        let offered = Offered {
            capsule,
            pointer,
            versioned,
        };
        if versioned {
            // SAFETY: the two numbers come first in all versions.
            let (major, minor) = unsafe {
                let managed = pointer.cast::<ManagedVersioned>();
                ((*managed).major, (*managed).minor)
            };
            if major != MAJOR {
                return Err(PyBufferError::new_err(format!(
                    "the DLPack capsule is of version {major}.{minor}, and version {MAJOR} is understood"
                )));
            }
        }
        Ok(offered)
    }

    fn tensor(&self) -> &DlTensor {
        // SAFETY: a capsule of either name has such a tensor, of a version that is known, and keeps it.
        unsafe {
            match self.versioned {
                true => &(*self.pointer.cast::<ManagedVersioned>()).tensor,
                false => &(*self.pointer.cast::<Managed>()).tensor,
            }
        }
    }

    /// Takes the tensor: the capsule gets the name that says so, and the object that is given calls the deleter when it
    /// goes, with the interpreter's lock held.
    fn take(self) -> PyResult<Py<PyAny>> {
        let py = self.capsule.py();
        let (taken, used) = match self.versioned {
            true => (TAKEN_VERSIONED, USED_VERSIONED),
            false => (TAKEN, USED),
        };
        // SAFETY: the pointer is not null, as that of a valid capsule; the names live forever. The new capsule gets its
        // destructor only when the old one has lost the tensor, so that one of them owns it at any time.
        unsafe {
            let owner = ffi::PyCapsule_New(self.pointer, taken.as_ptr(), None);
            let owner: Py<PyAny> = Bound::from_owned_ptr_or_err(py, owner)?.unbind();
            if ffi::PyCapsule_SetName(self.capsule.as_ptr(), used.as_ptr()) != 0 {
                return Err(PyErr::fetch(py));
            }
            if ffi::PyCapsule_SetDestructor(owner.as_ptr(), Some(release)) != 0 {
                return Err(PyErr::fetch(py));
            }
            Ok(owner)
        }
    }
}

/// Where the elements of a tensor lie, if they lie where they can be read and its numbers make sense.
fn strided(tensor: &DlTensor) -> PyResult<Strided> {
    let refuse = |what: String| Err(PyBufferError::new_err(what));
    if ![HOST.0, CUDA_HOST].contains(&tensor.device.kind) {
        return refuse(format!(
            "the elements are on device ({}, {}), which cannot be read from here; move them to the host first",
            tensor.device.kind, tensor.device.id
        ));
    }
    let dtype = dtype_of(tensor.dtype).ok_or_else(|| {
        let DlType { code, bits, lanes } = tensor.dtype;
        PyTypeError::new_err(format!(
            "there is no dtype for DLPack's code {code} with {bits} bits and {lanes} lanes"
        ))
    })?;
    if !(0..=MOST_AXES).contains(&tensor.ndim) {
        return refuse(format!("a DLPack tensor of {} axes", tensor.ndim));
    }
    let rank = tensor.ndim as usize;
    if rank > 0 && tensor.shape.is_null() {
        return refuse(format!("a DLPack tensor of {rank} axes without a shape"));
    }
    let listed = |start: *mut i64| match rank {
        0 => Vec::new(),
        // SAFETY: not null, and there is one for each axis.
        _ => unsafe { std::slice::from_raw_parts(start, rank) }.to_vec(),
    };
    let given = listed(tensor.shape);
    let shape: Result<Vec<usize>, _> = given.iter().map(|size| usize::try_from(*size)).collect();
    let Ok(shape) = shape else {
        return refuse(format!("a DLPack tensor of shape {given:?}"));
    };
    let too_large = || {
        PyBufferError::new_err(format!(
            "a DLPack tensor of shape {given:?} that is larger than memory"
        ))
    };
    let bytes = (dtype.part.bytes() * if dtype.complex { 2 } else { 1 }) as isize;
    let mut strides = vec![bytes; rank];
    match tensor.strides.is_null() {
        false => {
            for (to, stride) in strides.iter_mut().zip(listed(tensor.strides)) {
                let stride = isize::try_from(stride).ok();
                *to = stride
                    .and_then(|stride| stride.checked_mul(bytes))
                    .ok_or_else(too_large)?;
            }
        }
        // Dense.
        true => {
            for at in (1..rank).rev() {
                let size = isize::try_from(shape[at].max(1)).ok();
                strides[at - 1] = size
                    .and_then(|size| strides[at].checked_mul(size))
                    .ok_or_else(too_large)?;
            }
        }
    }
    if tensor.data.is_null() && !shape.contains(&0) {
        return refuse(format!(
            "a DLPack tensor of shape {given:?} without elements (its address is null)"
        ));
    }
    let address = tensor.data.cast::<u8>().cast_const();
    let offset = usize::try_from(tensor.byte_offset).map_err(|_| too_large())?;
    Ok(Strided {
        dtype,
        shape,
        strides,
        address: address.wrapping_add(offset),
    })
}

/// The elements of another library's array.
pub(super) fn take(
    object: &Bound<'_, PyAny>,
    session: &Session,
    copy: Option<bool>,
) -> PyResult<Value> {
    let py = object.py();
    let options = PyDict::new(py);
    options.set_item("max_version", (MAJOR, 0))?;
    // Older ones do not know the keyword.
    let capsule = match object.call_method("__dlpack__", (), Some(&options)) {
        Err(error) if error.is_instance_of::<PyTypeError>(py) => {
            object.call_method0("__dlpack__")?
        }
        other => other?,
    };
    let offered = Offered::of(capsule)?;
    let strided = strided(offered.tensor())?;
    let dtype = strided.dtype;
    let owner = offered.take()?;
    // SAFETY: the elements are there until the deleter is called, which the owner does when it goes.
    let tensor = unsafe { strided.tensor(owner, copy) }?;
    Ok(value_of_parts(tensor, dtype.complex, session))
}
