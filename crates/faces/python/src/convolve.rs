//! Functions of tensors that the Array API does not have: convolutions and pools, softmax, activations, einsum with all
//! that it can say.

use crate::array::{Array, Value, as_array, made_of};
use crate::dtype::{self, PyDType};
use crate::errors::OrRaise;
use crate::primitives::real_only;
use crate::promote::promoted;
use loopwright_ops::{Op, ReduceOp};
use loopwright_tensor::{
    ConvOptions, Einsum, PadMode, PerAxis, PoolOptions, Tensor, Window, adaptive_avg_pool,
    adaptive_max_pool, avg_pool, conv, conv_transpose, global_avg_pool, global_max_pool, max_pool,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeMap;

/// A number for all axes, or one for each.
#[derive(FromPyObject)]
pub(crate) enum Numbers {
    One(usize),
    Each(Vec<usize>),
}

impl From<Numbers> for PerAxis {
    fn from(numbers: Numbers) -> PerAxis {
        match numbers {
            Numbers::One(number) => PerAxis::All(number),
            Numbers::Each(numbers) => PerAxis::Each(numbers),
        }
    }
}

pub(crate) fn conv_options(
    stride: Numbers,
    padding: Numbers,
    dilation: Numbers,
    groups: usize,
    output_padding: Numbers,
) -> ConvOptions {
    ConvOptions {
        stride: stride.into(),
        padding: padding.into(),
        dilation: dilation.into(),
        groups,
        output_padding: output_padding.into(),
    }
}

/// How the windows of a pool move.
pub(crate) struct PoolArguments {
    pub(crate) window: Vec<usize>,
    pub(crate) stride: Option<Numbers>,
    pub(crate) padding: Numbers,
    pub(crate) dilation: Numbers,
    pub(crate) count_include_pad: bool,
}

impl PoolArguments {
    pub(crate) fn options(self) -> PoolOptions {
        PoolOptions {
            size: self.window,
            stride: self.stride.map(Into::into),
            padding: self.padding.into(),
            dilation: self.dilation.into(),
            count_include_pad: self.count_include_pad,
        }
    }
}

/// A function of one real array.
fn one(
    py: Python<'_>,
    x: &Array,
    name: &str,
    function: impl FnOnce(&Tensor) -> Tensor,
) -> PyResult<Array> {
    let x = real_only(x, name)?;
    Array::of(py, made_of(&[&x], function(&x.re), None)?)
}

/// A convolution, or a transposed one.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "one for each keyword in Python")]
#[pyo3(name = "conv")]
fn convolution(
    py: Python<'_>,
    x: &Array,
    w: &Array,
    stride: Numbers,
    padding: Numbers,
    dilation: Numbers,
    groups: usize,
    output_padding: Option<Numbers>,
) -> PyResult<Array> {
    let (x, w) = (real_only(x, "conv")?, real_only(w, "conv")?);
    let transposed = output_padding.is_some();
    let more = output_padding.unwrap_or(Numbers::One(0));
    let options = conv_options(stride, padding, dilation, groups, more);
    let made = match transposed {
        false => conv(&x.re, &w.re, &options),
        true => conv_transpose(&x.re, &w.re, &options),
    };
    Array::of(py, made_of(&[&x, &w], made, None)?)
}

/// The largest element or the mean of each window along the last axes.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "one for each keyword in Python")]
fn pool(
    py: Python<'_>,
    largest: bool,
    x: &Array,
    window: Vec<usize>,
    stride: Option<Numbers>,
    padding: Numbers,
    dilation: Numbers,
    count_include_pad: bool,
) -> PyResult<Array> {
    let options = PoolArguments {
        window,
        stride,
        padding,
        dilation,
        count_include_pad,
    };
    let options = options.options();
    one(py, x, "pool", |x| match largest {
        true => max_pool(x, &options),
        false => avg_pool(x, &options),
    })
}

/// The largest element or the mean along all of the last axes.
#[pyfunction]
fn global_pool(py: Python<'_>, largest: bool, x: &Array, spatial: usize) -> PyResult<Array> {
    one(py, x, "pool", |x| match largest {
        true => global_max_pool(x, spatial),
        false => global_avg_pool(x, spatial),
    })
}

/// Largest elements or means of as many parts along the last axes as are asked for.
#[pyfunction]
fn adaptive_pool(py: Python<'_>, largest: bool, x: &Array, parts: Vec<usize>) -> PyResult<Array> {
    one(py, x, "pool", |x| match largest {
        true => adaptive_max_pool(x, &parts),
        false => adaptive_avg_pool(x, &parts),
    })
}

/// A function of every element by its name; some take a number.
fn elementwise(name: &str, x: &Tensor, number: f64) -> Option<Tensor> {
    Some(match name {
        "relu" => x.relu(),
        "gelu" => x.gelu(),
        "gelu_tanh" => x.gelu_tanh(),
        "silu" => x.silu(),
        "sigmoid" => x.sigmoid(),
        "softplus" => x.softplus(),
        "erf" => x.erf(),
        "rsqrt" => x.rsqrt(),
        "leaky_relu" => x.leaky_relu(number),
        "elu" => x.elu(number),
        _ => return None,
    })
}

/// A function of every element by its name.
#[pyfunction]
fn activation(py: Python<'_>, name: &str, x: &Array, number: f64) -> PyResult<Array> {
    let x = real_only(x, name)?;
    let Some(made) = elementwise(name, &x.re, number) else {
        return Err(PyValueError::new_err(format!(
            "there is no activation `{name}`"
        )));
    };
    Array::of(py, made_of(&[&x], made, None)?)
}

/// `softmax`, `log_softmax`, `logsumexp` or `norm` over axes, or all of them.
#[pyfunction]
fn over_axes(py: Python<'_>, name: &str, x: &Array, axes: Option<Vec<i64>>) -> PyResult<Array> {
    let rank = x.value().rank() as i64;
    let axes = axes.unwrap_or_else(|| (0..rank).collect());
    one(py, x, name, |x| match name {
        "softmax" => x.softmax(axes),
        "log_softmax" => x.log_softmax(axes),
        "logsumexp" => x.logsumexp(axes),
        _ => x.norm(axes),
    })
}

/// 1 at the place that each index names, along a new last axis, 0 elsewhere.
#[pyfunction]
fn one_hot(
    py: Python<'_>,
    x: &Array,
    classes: usize,
    dtype: Option<&Bound<'_, PyAny>>,
) -> PyResult<Array> {
    let dtype = match dtype {
        Some(dtype) => PyDType::of_any(dtype)?.part,
        None => dtype::float(),
    };
    one(py, x, "one_hot", |x| x.one_hot(classes, dtype))
}

/// The largest elements along an axis, falling, and where they are.
#[pyfunction]
fn topk(py: Python<'_>, x: &Array, count: usize, axis: i64) -> PyResult<(Array, Array)> {
    let x = real_only(x, "topk")?;
    let (values, indices) = x.re.topk(count, axis);
    let array = |tensor| Array::of(py, made_of(&[&x], tensor, None)?);
    Ok((array(values)?, array(indices)?))
}

/// Windows of an axis: places, and behind them what each shows.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "one for each keyword in Python")]
fn window(
    py: Python<'_>,
    x: &Array,
    axis: i64,
    size: usize,
    stride: usize,
    dilation: usize,
    padding: usize,
    value: f64,
) -> PyResult<Array> {
    let window = Window::new(size)
        .stride(stride)
        .dilation(dilation)
        .padding(padding);
    one(py, x, "window", |x| {
        let outside = loopwright_ops::Scalar::from_f64(x.dtype(), value);
        x.window(axis, &window, Some(outside))
    })
}

/// More elements at both ends of an axis, made of those that are there.
#[pyfunction]
fn pad_by(
    py: Python<'_>,
    x: &Array,
    axis: i64,
    before: usize,
    after: usize,
    mode: &str,
) -> PyResult<Array> {
    let mode = match mode {
        "edge" => PadMode::Edge,
        "reflect" => PadMode::Reflect,
        "wrap" => PadMode::Wrap,
        other => {
            return Err(PyValueError::new_err(format!(
                "padding is by edge, reflect or wrap, not `{other}`"
            )));
        }
    };
    x.parts(py, |part| part.pad_by(axis, before, after, mode))
}

/// An einsum with another fold and op, sizes that are said, and those that were found.
#[pyfunction]
fn einsum_with<'py>(
    py: Python<'py>,
    formula: &str,
    operands: Vec<Bound<'py, PyAny>>,
    fold: &str,
    op: &str,
    sizes: BTreeMap<String, usize>,
) -> PyResult<(Array, Bound<'py, PyDict>)> {
    let fold = ReduceOp::from_name(fold)
        .ok_or_else(|| PyValueError::new_err(format!("there is no reduction `{fold}`")))?;
    let op = Op::from_name(op)
        .filter(|op| op.arity() == 2)
        .ok_or_else(|| PyValueError::new_err(format!("there is no op `{op}` of two operands")))?;
    let mut all: Vec<Value> = Vec::with_capacity(operands.len());
    for operand in &operands {
        let value = as_array(py, operand, None)?;
        if value.im.is_some() {
            return Err(PyTypeError::new_err("einsum is not for complex numbers"));
        }
        all.push(value);
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
    let einsum = sizes.iter();
    let einsum = einsum.fold(
        Einsum::new(formula).with(fold, op),
        |einsum, (name, size)| einsum.size(name, *size),
    );
    let (made, found) = einsum.capture(&tensors);
    made.check().or_raise()?;
    let known = PyDict::new(py);
    for name in found.names() {
        if let Some(size) = found.known(name) {
            known.set_item(name, size)?;
        }
    }
    let made = made_of(&all.iter().collect::<Vec<_>>(), made, None)?;
    Ok((Array::of(py, made)?, known))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(convolution, module)?)?;
    module.add_function(wrap_pyfunction!(pool, module)?)?;
    module.add_function(wrap_pyfunction!(global_pool, module)?)?;
    module.add_function(wrap_pyfunction!(adaptive_pool, module)?)?;
    module.add_function(wrap_pyfunction!(activation, module)?)?;
    module.add_function(wrap_pyfunction!(over_axes, module)?)?;
    module.add_function(wrap_pyfunction!(one_hot, module)?)?;
    module.add_function(wrap_pyfunction!(topk, module)?)?;
    module.add_function(wrap_pyfunction!(window, module)?)?;
    module.add_function(wrap_pyfunction!(pad_by, module)?)?;
    module.add_function(wrap_pyfunction!(einsum_with, module)?)
}
