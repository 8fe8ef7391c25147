//! What the namespaces in Python are made of: ops on whole arrays, by position.

use crate::array::{Array, Operand, Value, as_array, from_scalar, made_of, map_promoted, number};
use crate::array::{joined, places_of, stacked};
use crate::device;
use crate::dtype::PyDType;
use crate::errors::OrRaise;
use crate::promote::promoted;
use loopwright_ops::{DType, Op, ReduceOp};
use loopwright_tensor::fft::Complex;
use loopwright_tensor::{Tensor, fft, linalg, select};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

type Any<'a, 'py> = &'a Bound<'py, PyAny>;

fn op_named(name: &str) -> PyResult<Op> {
    Op::from_name(name).ok_or_else(|| PyValueError::new_err(format!("there is no op `{name}`")))
}

fn reduction_named(name: &str) -> PyResult<ReduceOp> {
    ReduceOp::from_name(name)
        .ok_or_else(|| PyValueError::new_err(format!("there is no reduction `{name}`")))
}

/// The array of real elements, or why not.
pub(crate) fn real_only(array: &Array, what: &str) -> PyResult<Value> {
    let value = array.value();
    match value.im {
        None => Ok(value),
        Some(_) => Err(PyTypeError::new_err(format!(
            "`{what}` is not for complex numbers"
        ))),
    }
}

/// Name, operands and meaning of every scalar op.
#[pyfunction]
pub(crate) fn ops() -> Vec<(&'static str, usize, &'static str)> {
    let rows = Op::ALL.iter().map(|op| op.info());
    rows.map(|info| (info.name, info.arity, info.doc)).collect()
}

/// A scalar op by its name on arrays of one dtype, which are repeated to one shape.
#[pyfunction]
#[pyo3(signature = (op, *operands))]
pub(crate) fn map(py: Python<'_>, op: &str, operands: Vec<Bound<'_, Array>>) -> PyResult<Array> {
    let name = op;
    let op = op_named(name)?;
    let values = operands
        .iter()
        .map(|operand| real_only(operand.get(), name));
    let values: Vec<Value> = values.collect::<PyResult<_>>()?;
    if values.len() != op.arity() {
        return Err(PyTypeError::new_err(format!(
            "`{name}` takes {} operands, not {}",
            op.arity(),
            values.len()
        )));
    }
    let tensors: Vec<&Tensor> = values.iter().map(|value| &value.re).collect();
    let made = Tensor::map(op, &tensors);
    Array::of(py, made_of(&values.iter().collect::<Vec<_>>(), made, None)?)
}

/// A scalar op of two operands, arrays or Python numbers, which first meet in one dtype.
#[pyfunction]
pub(crate) fn binary(py: Python<'_>, op: &str, a: Any<'_, '_>, b: Any<'_, '_>) -> PyResult<Array> {
    map_promoted(py, op_named(op)?, a, b)
}

/// The dtype in which arrays, dtypes and numbers meet.
#[pyfunction]
#[pyo3(signature = (*objects))]
pub(crate) fn result_type(objects: &Bound<'_, PyTuple>) -> PyResult<PyDType> {
    let mut found: Option<PyDType> = None;
    let mut numbers = Vec::new();
    for object in objects {
        let dtype = if let Ok(array) = object.cast::<Array>() {
            array.get().value().dtype()
        } else if let Some(number) = number(&object)? {
            numbers.push(number);
            continue;
        } else {
            PyDType::of_any(&object)?
        };
        found = Some(match found {
            None => dtype,
            Some(found) => promoted(found, dtype)?,
        });
    }
    for number in numbers {
        found = Some(match found {
            None => number.own(),
            Some(found) => number.beside(found),
        });
    }
    found.ok_or_else(|| PyValueError::new_err("result_type of nothing"))
}

/// Elements of another dtype.
#[pyfunction]
pub(crate) fn cast(py: Python<'_>, x: &Array, dtype: Any<'_, '_>) -> PyResult<Array> {
    Array::of(py, x.value().cast(PyDType::of_any(dtype)?))
}

/// The same bits as elements of another dtype of the same size.
#[pyfunction]
pub(crate) fn bitcast(py: Python<'_>, x: &Array, dtype: Any<'_, '_>) -> PyResult<Array> {
    let dtype = PyDType::of_any(dtype)?;
    let value = real_only(x, "bitcast")?;
    Array::of(py, value.parts(|part| part.bitcast(dtype.part)))
}

/// Elements of one array where a condition is true, of another elsewhere.
#[pyfunction]
#[pyo3(name = "where")]
pub(crate) fn where_(
    py: Python<'_>,
    condition: &Array,
    a: Any<'_, '_>,
    b: Any<'_, '_>,
) -> PyResult<Array> {
    let condition = real_only(condition, "where")?;
    let objects = PyTuple::new(py, [a, b])?;
    let dtype = result_type(&objects)?;
    let operand = |object: Any<'_, '_>| match Operand::of(py, object)? {
        Some(Operand::Number(number)) => from_scalar(number, dtype, &condition.session),
        Some(Operand::Array(value)) => Ok(value.cast(dtype)),
        None => Err(PyTypeError::new_err("where takes arrays and numbers")),
    };
    let (a, b) = (operand(a)?, operand(b)?);
    let re = select(&condition.re, &a.re, &b.re);
    let im = dtype
        .complex
        .then(|| select(&condition.re, &a.imaginary(), &b.imaginary()));
    Array::of(py, made_of(&[&condition, &a, &b], re, im)?)
}

/// The axes as numbers from the front, each once; all of them for `None`.
fn axes_of(value: &Value, axes: Option<Vec<i64>>) -> PyResult<Vec<i64>> {
    let rank = value.rank() as i64;
    let Some(axes) = axes else {
        return Ok((0..rank).collect());
    };
    let mut found = Vec::with_capacity(axes.len());
    for axis in axes {
        if !(-rank..rank).contains(&axis) {
            return Err(PyValueError::new_err(format!(
                "there is no axis {axis} of an array with {rank} axes"
            )));
        }
        let place = axis.rem_euclid(rank.max(1));
        if found.contains(&place) {
            return Err(PyValueError::new_err(format!("axis {axis} is named twice")));
        }
        found.push(place);
    }
    Ok(found)
}

/// Puts axes of size 1 back where some were folded.
fn kept(folded: Tensor, axes: &[i64], keep: bool) -> Tensor {
    if !keep {
        return folded;
    }
    let mut axes = axes.to_vec();
    axes.sort_unstable();
    axes.into_iter()
        .fold(folded, |folded, axis| folded.unsqueeze(axis))
}

/// A fold over axes, or all of them.
#[pyfunction]
pub(crate) fn reduce(
    py: Python<'_>,
    op: &str,
    x: &Array,
    axes: Option<Vec<i64>>,
    keepdims: bool,
) -> PyResult<Array> {
    let name = op;
    let op = reduction_named(name)?;
    let value = x.value();
    if value.im.is_some() && op != ReduceOp::Sum {
        real_only(x, name)?;
    }
    let axes = axes_of(&value, axes)?;
    let fold = |part: &Tensor| match axes.is_empty() {
        true => part.clone(),
        false => kept(part.reduce(op, axes.clone()), &axes, keepdims),
    };
    Array::of(py, value.parts(fold))
}

/// How many elements are folded over axes, as a number of the program: a size may be open in a function that is traced.
#[pyfunction]
pub(crate) fn count(py: Python<'_>, x: &Array, axes: Option<Vec<i64>>) -> PyResult<Array> {
    let value = x.value();
    let axes = axes_of(&value, axes)?;
    let size = |axis: &i64| Tensor::size_value(&value.re.shape().axes()[*axis as usize].size);
    let sizes = axes.iter().map(size);
    let made = sizes.fold(Tensor::scalar(1i64), |total, size| total * size);
    Array::of(py, made_of(&[&value], made, None)?)
}

/// Where the largest or smallest element along an axis is, the first of equal ones; over all elements for `None`.
#[pyfunction]
pub(crate) fn arg_reduce(
    py: Python<'_>,
    largest: bool,
    x: &Array,
    axis: Option<i64>,
    keepdims: bool,
) -> PyResult<Array> {
    let value = real_only(x, "argmax")?;
    let find = |part: &Tensor, axis: i64| match largest {
        true => part.argmax(axis),
        false => part.argmin(axis),
    };
    let made = match axis {
        Some(axis) => {
            let axes = axes_of(&value, Some(vec![axis]))?;
            kept(find(&value.re, axes[0]), &axes, keepdims)
        }
        None => {
            let all: Vec<i64> = (0..value.rank() as i64).collect();
            kept(find(&value.re.flatten(), 0), &all, keepdims)
        }
    };
    Array::of(py, made_of(&[&value], made, None)?)
}

/// The folds of all beginnings along an axis.
#[pyfunction]
pub(crate) fn scan(
    py: Python<'_>,
    op: &str,
    x: &Array,
    axis: i64,
    exclusive: bool,
    reverse: bool,
) -> PyResult<Array> {
    let name = op;
    let op = reduction_named(name)?;
    let value = x.value();
    if value.im.is_some() && op != ReduceOp::Sum {
        real_only(x, name)?;
    }
    Array::of(
        py,
        value.parts(|part| part.scan(op, axis, exclusive, reverse)),
    )
}

/// The elements along an axis in order.
#[pyfunction]
pub(crate) fn sort(py: Python<'_>, x: &Array, axis: i64, descending: bool) -> PyResult<Array> {
    let value = real_only(x, "sort")?;
    Array::of(py, value.parts(|part| part.sort(axis, descending)))
}

/// Where the elements along an axis are in order; equal ones stay in theirs.
#[pyfunction]
pub(crate) fn argsort(py: Python<'_>, x: &Array, axis: i64, descending: bool) -> PyResult<Array> {
    let value = real_only(x, "argsort")?;
    Array::of(py, value.parts(|part| part.argsort(axis, descending)))
}

/// The axes in another order.
#[pyfunction]
pub(crate) fn permute(py: Python<'_>, x: &Array, axes: Vec<i64>) -> PyResult<Array> {
    x.parts(py, |part| part.permute(axes.clone()))
}

/// The elements in another shape; -1 for a size that follows.
#[pyfunction]
pub(crate) fn reshape(py: Python<'_>, x: &Array, shape: Vec<i64>) -> PyResult<Array> {
    let value = x.value();
    let refuse = |reason: String| Err(PyValueError::new_err(format!("reshape: {reason}")));
    let open = shape.iter().filter(|size| **size == -1).count();
    if open > 1 {
        return refuse(format!("more than one size of {shape:?} is open"));
    }
    if let Some(bad) = shape.iter().find(|size| **size < -1) {
        return refuse(format!("there is no size {bad}"));
    }
    let known: i64 = shape.iter().filter(|size| **size >= 0).product();
    let mut sizes: Vec<usize> = Vec::with_capacity(shape.len());
    let total = match open {
        0 => None,
        _ => Some(value.sizes()?.iter().product::<usize>() as i64),
    };
    for size in &shape {
        sizes.push(match (*size, total) {
            (-1, Some(total)) if known > 0 && total % known == 0 => (total / known) as usize,
            (-1, Some(total)) => {
                return refuse(format!("{total} elements do not make {shape:?}"));
            }
            (size, _) => size as usize,
        });
    }
    // A view of nothing would have nothing to read.
    let nothing = value.re.shape().elements() == Some(0) && sizes.contains(&0);
    let made = value.parts(|part| match nothing {
        true => Tensor::zeros(sizes.clone(), part.dtype()),
        false => part.reshape(sizes.clone()),
    });
    Array::of(py, made)
}

/// The elements repeated to a shape.
#[pyfunction]
pub(crate) fn broadcast_to(py: Python<'_>, x: &Array, shape: Vec<usize>) -> PyResult<Array> {
    x.parts(py, |part| part.broadcast_to(shape.clone()))
}

/// The axes backwards.
#[pyfunction]
pub(crate) fn flip(py: Python<'_>, x: &Array, axes: Option<Vec<i64>>) -> PyResult<Array> {
    let value = x.value();
    let axes = axes_of(&value, axes)?;
    Array::of(py, value.parts(|part| part.flip(axes.clone())))
}

/// The elements moved along an axis; those that leave it come in at the other end.
#[pyfunction]
pub(crate) fn roll(py: Python<'_>, x: &Array, shift: i64, axis: i64) -> PyResult<Array> {
    x.parts(py, |part| part.roll(shift, axis))
}

/// Without axes of size 1.
#[pyfunction]
pub(crate) fn squeeze(py: Python<'_>, x: &Array, axes: Vec<i64>) -> PyResult<Array> {
    let value = x.value();
    let mut axes = axes_of(&value, Some(axes))?;
    axes.sort_unstable_by(|a, b| b.cmp(a));
    let squeeze = |part: &Tensor| {
        axes.iter()
            .fold(part.clone(), |part, axis| part.squeeze(*axis))
    };
    Array::of(py, value.parts(squeeze))
}

/// With an axis of size 1 more.
#[pyfunction]
pub(crate) fn unsqueeze(py: Python<'_>, x: &Array, axis: i64) -> PyResult<Array> {
    let value = x.value();
    let rank = value.rank() as i64 + 1;
    if !(-rank..rank).contains(&axis) {
        return Err(pyo3::exceptions::PyIndexError::new_err(format!(
            "there is no place {axis} for an axis among {rank}"
        )));
    }
    let axis = axis.rem_euclid(rank);
    Array::of(py, value.parts(|part| part.unsqueeze(axis)))
}

fn values(arrays: &[Bound<'_, Array>]) -> Vec<Value> {
    arrays.iter().map(|array| array.get().value()).collect()
}

/// Arrays one behind the other along an axis.
#[pyfunction]
pub(crate) fn concat(py: Python<'_>, arrays: Vec<Bound<'_, Array>>, axis: i64) -> PyResult<Array> {
    let joined = joined(&values(&arrays), |tensors| {
        loopwright_tensor::concat(tensors, axis)
    })?;
    Array::of(py, joined)
}

/// Arrays beside each other along a new axis.
#[pyfunction]
pub(crate) fn stack(py: Python<'_>, arrays: Vec<Bound<'_, Array>>, axis: i64) -> PyResult<Array> {
    Array::of(py, stacked(&values(&arrays), axis)?)
}

/// Each element so many times along an axis.
#[pyfunction]
pub(crate) fn repeat(py: Python<'_>, x: &Array, count: usize, axis: i64) -> PyResult<Array> {
    x.parts(py, |part| part.repeat(axis, count))
}

/// The whole so many times along an axis.
#[pyfunction]
pub(crate) fn tile(py: Python<'_>, x: &Array, count: usize, axis: i64) -> PyResult<Array> {
    x.parts(py, |part| part.tile(axis, count))
}

/// Zeros above a diagonal of the last two axes.
#[pyfunction]
pub(crate) fn tril(py: Python<'_>, x: &Array, k: i64) -> PyResult<Array> {
    x.parts(py, |part| part.tril(k))
}

/// Zeros below a diagonal of the last two axes.
#[pyfunction]
pub(crate) fn triu(py: Python<'_>, x: &Array, k: i64) -> PyResult<Array> {
    x.parts(py, |part| part.triu(k))
}

/// A diagonal of the last two axes.
#[pyfunction]
pub(crate) fn diagonal(py: Python<'_>, x: &Array, offset: i64) -> PyResult<Array> {
    let value = x.value();
    let sizes = value.sizes()?;
    let [.., rows, columns] = sizes[..] else {
        return Err(PyValueError::new_err(
            "diagonal is for arrays of two axes and more",
        ));
    };
    let (from_row, from_column) = match offset >= 0 {
        true => (0, offset as usize),
        false => (offset.unsigned_abs() as usize, 0),
    };
    let rows_left = rows.saturating_sub(from_row);
    let count = rows_left.min(columns.saturating_sub(from_column));
    let cut = |part: &Tensor| {
        let rows = part.narrow(-2, from_row.min(rows), count);
        rows.narrow(-1, from_column.min(columns), count).diagonal()
    };
    Array::of(py, value.parts(cut))
}

/// With a border along each axis.
#[pyfunction]
pub(crate) fn pad(
    py: Python<'_>,
    x: &Array,
    before: Vec<i64>,
    after: Vec<i64>,
    value: f64,
) -> PyResult<Array> {
    let rank = x.value().rank();
    if before.len() != rank || after.len() != rank {
        return Err(PyValueError::new_err(format!(
            "pad: {} and {} widths for {rank} axes",
            before.len(),
            after.len()
        )));
    }
    let pad = |part: &Tensor, value: f64| {
        let widths = before.iter().zip(&after).enumerate();
        let mut part = part.clone();
        for (axis, (before, after)) in widths {
            if (*before, *after) != (0, 0) {
                part = match part.dtype().is_float() {
                    true => part.pad(axis, *before, *after, value),
                    false => part.pad(axis, *before, *after, value as i64),
                };
            }
        }
        part
    };
    let old = x.value();
    let im = old.im.as_ref().map(|im| pad(im, 0.0));
    Array::of(py, made_of(&[&old], pad(&old.re, value), im)?)
}

/// The elements at indices along an axis.
#[pyfunction]
pub(crate) fn take(py: Python<'_>, x: &Array, index: &Array, axis: i64) -> PyResult<Array> {
    looked_up(py, x, index, axis, |part, index, axis| {
        part.take(index, axis)
    })
}

/// The elements at indices along an axis, each line with its own.
#[pyfunction]
pub(crate) fn take_along(py: Python<'_>, x: &Array, index: &Array, axis: i64) -> PyResult<Array> {
    looked_up(py, x, index, axis, |part, index, axis| {
        part.take_along(index, axis)
    })
}

/// An index with places counted from the end made those from the front.
fn from_front(index: &Tensor, size: usize) -> Tensor {
    let index = index.cast(DType::I64);
    let below = index.lt(&Tensor::scalar(0i64));
    select(&below, &(&index + Tensor::scalar(size as i64)), &index)
}

fn looked_up(
    py: Python<'_>,
    x: &Array,
    index: &Array,
    axis: i64,
    look: impl Fn(&Tensor, &Tensor, i64) -> Tensor,
) -> PyResult<Array> {
    let (value, index) = (x.value(), real_only(index, "take")?);
    let axis = axes_of(&value, Some(vec![axis]))?[0];
    let size = value.sizes()?[axis as usize];
    let places = from_front(&index.re, size);
    let im = value.im.as_ref().map(|im| look(im, &places, axis));
    let made = made_of(&[&value, &index], look(&value.re, &places, axis), im)?;
    Array::of(py, made)
}

/// The array with updates put in at indices along an axis, or combined with what is there.
#[pyfunction]
pub(crate) fn scatter(
    py: Python<'_>,
    x: &Array,
    index: &Array,
    updates: &Array,
    axis: i64,
    combine: Option<&str>,
) -> PyResult<Array> {
    let combine = combine.map(reduction_named).transpose()?;
    let (value, index) = (x.value(), real_only(index, "scatter")?);
    let axis = axes_of(&value, Some(vec![axis]))?[0];
    let places = from_front(&index.re, value.sizes()?[axis as usize]);
    let updates = updates.value().cast(value.dtype());
    let put = |part: &Tensor, update: &Tensor| part.scatter(&places, update, axis, combine);
    let im = match (&value.im, &updates.im) {
        (Some(part), Some(update)) => Some(put(part, update)),
        _ => None,
    };
    let re = put(&value.re, &updates.re);
    Array::of(py, made_of(&[&value, &index, &updates], re, im)?)
}

/// For each axis, where the elements are that are not zero.
#[pyfunction]
pub(crate) fn nonzero(py: Python<'_>, x: &Array) -> PyResult<Vec<Array>> {
    let mut value = x.value();
    if let Some(im) = &value.im {
        let either = value.re.ne(&value.re.zeros_like());
        value.re = Tensor::map(Op::Or, &[&either, &im.ne(&im.zeros_like())]);
        value.im = None;
    }
    if value.rank() == 0 {
        return Err(PyValueError::new_err(
            "nonzero is for arrays with axes; reshape it to one",
        ));
    }
    let session = value.session.clone();
    let host = Array::of(py, value)?.host(py)?;
    let places = places_of(&host[0])?;
    let places = places.into_iter();
    places
        .map(|places| Array::of(py, Value::real(places, session.clone())))
        .collect()
}

/// An array of one number.
#[pyfunction]
pub(crate) fn full(
    py: Python<'_>,
    shape: Vec<usize>,
    value: Any<'_, '_>,
    dtype: Option<Any<'_, '_>>,
    device: Option<Any<'_, '_>>,
) -> PyResult<Array> {
    let session = device::of_argument(py, device)?;
    let value = match number(value)? {
        Some(number) => {
            let dtype = dtype.map(PyDType::of_any).transpose()?;
            from_scalar(number, dtype.unwrap_or(number.own()), &session)?
        }
        None => as_array(py, value, Some(&session))?,
    };
    let dtype = dtype.map(PyDType::of_any).transpose()?;
    let value = dtype.map_or(value.clone(), |dtype| value.cast(dtype));
    Array::of(py, value.parts(|part| part.broadcast_to(shape.clone())))
}

/// Zeros or ones: numbers that are a part of the program.
#[pyfunction]
pub(crate) fn constant(
    py: Python<'_>,
    shape: Vec<usize>,
    value: i64,
    dtype: Any<'_, '_>,
    device: Option<Any<'_, '_>>,
) -> PyResult<Array> {
    let session = device::of_argument(py, device)?;
    let dtype = PyDType::of_any(dtype)?;
    let part = |value: i64| match dtype.part.is_float() {
        true => Tensor::full(shape.clone(), value as f64, dtype.part),
        false => Tensor::full(shape.clone(), value, dtype.part),
    };
    let part = |value: i64| match dtype.part {
        DType::Bool => Tensor::full(shape.clone(), value != 0, DType::Bool),
        _ => part(value),
    };
    let im = dtype.complex.then(|| part(0));
    Array::of(py, Value::new(part(value), im, session))
}

/// The integers from one up to another, which is left out, in steps.
#[pyfunction]
pub(crate) fn arange(
    py: Python<'_>,
    start: i64,
    stop: i64,
    step: i64,
    device: Option<Any<'_, '_>>,
) -> PyResult<Array> {
    if step == 0 {
        return Err(PyValueError::new_err("arange: a step of 0 leads nowhere"));
    }
    let session = device::of_argument(py, device)?;
    Array::of(py, Value::real(Tensor::arange(start, stop, step), session))
}

/// The real parts.
#[pyfunction]
pub(crate) fn real(py: Python<'_>, x: &Array) -> PyResult<Array> {
    let value = x.value();
    Array::of(py, made_of(&[&value], value.re.clone(), None)?)
}

/// The imaginary parts.
#[pyfunction]
pub(crate) fn imag(py: Python<'_>, x: &Array) -> PyResult<Array> {
    let value = x.value();
    Array::of(py, made_of(&[&value], value.imaginary(), None)?)
}

/// Complex numbers of their parts.
#[pyfunction]
pub(crate) fn complex(py: Python<'_>, re: &Array, im: &Array) -> PyResult<Array> {
    let (a, b) = (real_only(re, "complex")?, real_only(im, "complex")?);
    let dtype = promoted(a.dtype(), b.dtype())?;
    if !matches!(dtype.part, DType::F32 | DType::F64) {
        return Err(PyTypeError::new_err(format!(
            "complex numbers have parts of float32 or float64, not {}",
            dtype.name()
        )));
    }
    let (a, b) = (a.cast(dtype), b.cast(dtype));
    // Not by adding zeros: negative ones would be lost.
    let (mut whole, mut other) = (a.re.clone(), b.re.clone());
    if whole.shape() != other.shape() {
        let sum = &whole + &other;
        sum.check().or_raise()?;
        whole = whole.broadcast_to(sum.shape());
        other = other.broadcast_to(sum.shape());
    }
    Array::of(py, made_of(&[&a, &b], whole, Some(other))?)
}

/// A formula of indices: `"ij, jk -> ik"`.
#[pyfunction]
#[pyo3(signature = (formula, *operands))]
pub(crate) fn einsum(
    py: Python<'_>,
    formula: &str,
    operands: Vec<Bound<'_, Array>>,
) -> PyResult<Array> {
    let mut all = Vec::with_capacity(operands.len());
    for operand in &operands {
        all.push(real_only(operand.get(), "einsum")?);
    }
    let Some(first) = all.first() else {
        return Err(PyValueError::new_err("einsum: there are no operands"));
    };
    let mut dtype = first.dtype();
    for value in &all {
        dtype = promoted(dtype, value.dtype())?;
    }
    let all: Vec<Value> = all.iter().map(|value| value.cast(dtype)).collect();
    let tensors: Vec<&Tensor> = all.iter().map(|value| &value.re).collect();
    let made = loopwright_tensor::einsum(formula, &tensors);
    Array::of(py, made_of(&all.iter().collect::<Vec<_>>(), made, None)?)
}

/// Computes arrays, those of a device in one program.
#[pyfunction]
pub(crate) fn realize(py: Python<'_>, arrays: Vec<Bound<'_, Array>>) -> PyResult<()> {
    crate::array::realize(py, &values(&arrays))
}

/// A function of linear algebra with one array in, some out.
fn factored<const N: usize>(
    py: Python<'_>,
    x: &Array,
    name: &str,
    function: impl Fn(&Tensor) -> [Tensor; N],
) -> PyResult<[Array; N]> {
    let value = real_only(x, name)?;
    let made = function(&value.re);
    let mut arrays = Vec::with_capacity(N);
    for tensor in made {
        arrays.push(Array::of(py, made_of(&[&value], tensor, None)?)?);
    }
    let Ok(arrays) = arrays.try_into() else {
        unreachable!("one array for each tensor")
    };
    Ok(arrays)
}

macro_rules! factors {
    ($($(#[$doc:meta])* $name:ident($rust:path) -> $($out:ident)*;)*) => {
        $($(#[$doc])* #[pyfunction]
        pub(crate) fn $name(py: Python<'_>, x: &Array) -> PyResult<Py<PyAny>> {
            let made = factored(py, x, stringify!($name), |part| {
                #[allow(unused_parens, reason = "one or several")]
                let ($($out),*) = $rust(part);
                [$($out),*]
            })?;
            let mut made: Vec<Array> = made.into();
            match made.len() {
                1 => Ok(Py::new(py, made.remove(0))?.into_any()),
                _ => {
                    let made = made.into_iter().map(|array| Py::new(py, array));
                    let made: Vec<Py<Array>> = made.collect::<PyResult<_>>()?;
                    Ok(PyTuple::new(py, made)?.into_any().unbind())
                }
            }
        })*
    };
}

factors! {
    /// The lower Cholesky factor.
    linalg_cholesky(linalg::cholesky) -> a;
    /// The determinant.
    linalg_det(linalg::det) -> a;
    /// The inverse.
    linalg_inv(linalg::inverse) -> a;
    /// Sign and logarithm of the determinant.
    linalg_slogdet(linalg::slogdet) -> a b;
    /// An orthogonal and an upper triangular factor.
    linalg_qr(linalg::qr) -> a b;
    /// Eigenvalues, rising, and eigenvectors of symmetric matrices.
    linalg_eigh(linalg::eigh) -> a b;
    /// Left vectors, values, falling, and right vectors.
    linalg_svd(linalg::svd) -> a b c;
}

/// Solves `a x = b`.
#[pyfunction]
pub(crate) fn linalg_solve(py: Python<'_>, a: &Array, b: &Array) -> PyResult<Array> {
    let (a, b) = (real_only(a, "solve")?, real_only(b, "solve")?);
    let made = linalg::solve(&a.re, &b.re);
    Array::of(py, made_of(&[&a, &b], made, None)?)
}

/// Solves `a x = b` for triangular `a`.
#[pyfunction]
pub(crate) fn linalg_solve_triangular(
    py: Python<'_>,
    a: &Array,
    b: &Array,
    lower: bool,
) -> PyResult<Array> {
    let (a, b) = (
        real_only(a, "solve_triangular")?,
        real_only(b, "solve_triangular")?,
    );
    let made = linalg::solve_triangular(&a.re, &b.re, lower);
    Array::of(py, made_of(&[&a, &b], made, None)?)
}

fn pair_of(value: &Value) -> Complex {
    Complex::new(&value.re, &value.imaginary())
}

/// The Fourier transform along an axis, or its inverse, divided by the count.
#[pyfunction]
#[pyo3(name = "fft")]
pub(crate) fn fourier(py: Python<'_>, x: &Array, axis: i64, inverse: bool) -> PyResult<Array> {
    let value = x.value();
    let made = match inverse {
        false => fft::fft(&pair_of(&value), axis),
        true => fft::ifft(&pair_of(&value), axis),
    };
    Array::of(py, made_of(&[&value], made.re, Some(made.im))?)
}

/// The first half of the Fourier transform of real elements along an axis.
#[pyfunction]
pub(crate) fn rfft(py: Python<'_>, x: &Array, axis: i64) -> PyResult<Array> {
    let value = real_only(x, "rfft")?;
    let made = fft::rfft(&value.re, axis);
    Array::of(py, made_of(&[&value], made.re, Some(made.im))?)
}

/// The real elements whose transform has this first half.
#[pyfunction]
pub(crate) fn irfft(py: Python<'_>, x: &Array, n: usize, axis: i64) -> PyResult<Array> {
    let value = x.value();
    let made = fft::irfft(&pair_of(&value), n, axis);
    made.check().or_raise()?;
    Array::of(py, made_of(&[&value], made, None)?)
}
