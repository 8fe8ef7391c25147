//! DLPack, both ways.

use super::exchange::{Strided, dense, value_of_parts};
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
    // Before version 1 nothing says that memory is read-only, and who takes it may write.
    let is_open = max_version.is_none_or(|(major, _)| major < 1);
    if is_open && copy == Some(false) {
        return Err(PyBufferError::new_err(
            "an array's memory is read only, which DLPack says from version 1 on; allow a copy, or ask with max_version=(1, 0)",
        ));
    }
    let dtype = array.value().dtype();
    let mut elements = dense(py, array)?;
    if copy == Some(true) || is_open {
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
    let data = elements.bytes().as_ptr().cast_mut().cast::<c_void>();
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
                flags: if copy == Some(true) {
                    IS_COPIED
                } else {
                    READ_ONLY
                },
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

/// The elements of another library's array.
pub(super) fn take(
    object: &Bound<'_, PyAny>,
    session: &Session,
    copy: Option<bool>,
) -> PyResult<Value> {
    let py = object.py();
    let options = PyDict::new(py);
    options.set_item("max_version", (1, 0))?;
    // Older ones do not know the keyword.
    let capsule = match object.call_method("__dlpack__", (), Some(&options)) {
        Err(error) if error.is_instance_of::<PyTypeError>(py) => {
            object.call_method0("__dlpack__")?
        }
        other => other?,
    };
    // SAFETY: a capsule of either name has such a tensor; the capsule is held by what is made of it, and frees it in the
    // end since nobody renames it.
    let tensor: &DlTensor = unsafe {
        let pointer = capsule.as_ptr();
        if ffi::PyCapsule_IsValid(pointer, VERSIONED.as_ptr()) == 1 {
            let managed = ffi::PyCapsule_GetPointer(pointer, VERSIONED.as_ptr());
            &(*managed.cast::<ManagedVersioned>()).tensor
        } else if ffi::PyCapsule_IsValid(pointer, NAME.as_ptr()) == 1 {
            let managed = ffi::PyCapsule_GetPointer(pointer, NAME.as_ptr());
            &(*managed.cast::<Managed>()).tensor
        } else {
            return Err(PyBufferError::new_err("__dlpack__ gave no DLPack capsule"));
        }
    };
    if ![HOST.0, CUDA_HOST].contains(&tensor.device.kind) {
        return Err(PyBufferError::new_err(format!(
            "the elements are on device ({}, {}), which cannot be read from here; move them to the host first",
            tensor.device.kind, tensor.device.id
        )));
    }
    let dtype = dtype_of(tensor.dtype).ok_or_else(|| {
        let DlType { code, bits, lanes } = tensor.dtype;
        PyTypeError::new_err(format!(
            "there is no dtype for DLPack's code {code} with {bits} bits and {lanes} lanes"
        ))
    })?;
    let rank = usize::try_from(tensor.ndim).unwrap_or(0);
    let listed = |start: *mut i64| match rank {
        0 => Vec::new(),
        // SAFETY: there is one for each axis.
        _ => unsafe { std::slice::from_raw_parts(start, rank) }.to_vec(),
    };
    let shape: Vec<usize> = listed(tensor.shape)
        .into_iter()
        .map(|size| usize::try_from(size).unwrap_or(0))
        .collect();
    let bytes = (dtype.part.bytes() * if dtype.complex { 2 } else { 1 }) as isize;
    let strides = match tensor.strides.is_null() {
        false => listed(tensor.strides)
            .into_iter()
            .map(|stride| stride as isize * bytes)
            .collect(),
        // Dense.
        true => {
            let mut strides = vec![bytes; rank];
            for at in (1..rank).rev() {
                strides[at - 1] = strides[at] * shape[at].max(1) as isize;
            }
            strides
        }
    };
    let address = tensor.data.cast::<u8>().cast_const();
    let strided = Strided {
        dtype,
        shape,
        strides,
        address: address.wrapping_add(tensor.byte_offset as usize),
    };
    // SAFETY: the capsule owns the elements.
    let tensor = unsafe { strided.tensor(capsule.unbind(), copy) }?;
    Ok(value_of_parts(tensor, dtype.complex, session))
}
