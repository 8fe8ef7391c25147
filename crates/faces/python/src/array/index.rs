//! `x[key]` and `x[key] = value`.
//!
//! Numbers, slices, `None` and `...` are views. Arrays of integers are looked up together, as in numpy: they meet in one
//! shape, which stands where the first of them stood, or in front if others stand between them. A mask is the places
//! where it is true, so that its value has to be known.

use super::convert::{from_scalar, number};
use super::select::Selection;
use super::view::{Map, Step, is_whole};
use super::{
    Array, Value, common_session, is_on_host, is_recording, made_of, operators::Operand, outside,
};
use crate::errors::OrRaise;
use crate::interrupts::{Attempt, Interruptible};
use loopwright_graph::Array as HostArray;
use loopwright_ops::{DType, Kind, Op, Scalar};
use loopwright_tensor::{Slice, Tensor, TensorError};
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PyInt, PyList, PySlice, PyTuple};
use std::sync::Arc;

/// One part of a key.
pub(super) enum Part {
    /// What a view can do.
    Basic(Slice),
    /// Places along an axis.
    Places(Tensor),
}

/// A key, one part for each axis that is spoken of.
pub(super) struct Key {
    pub(super) parts: Vec<Part>,
    /// Masks without axes: whether everything is there, as an axis in front.
    pub(super) flags: Vec<bool>,
}

impl Key {
    fn read(py: Python<'_>, of: &Value, key: &Bound<'_, PyAny>) -> PyResult<Key> {
        let objects: Vec<Bound<'_, PyAny>> = match key.cast::<PyTuple>() {
            Ok(tuple) => tuple.iter().collect(),
            Err(_) => vec![key.clone()],
        };
        let mut key = Key {
            parts: Vec::with_capacity(objects.len()),
            flags: Vec::new(),
        };
        for object in &objects {
            key.take(py, of, object)?;
        }
        let is_rest = |part: &&Part| matches!(part, Part::Basic(Slice::Rest));
        if key.parts.iter().filter(is_rest).count() > 1 {
            return Err(PyIndexError::new_err("`...` stands in an index once"));
        }
        // Beside arrays of places, a number is one of them.
        if key.parts.iter().any(|part| matches!(part, Part::Places(_))) {
            for part in &mut key.parts {
                if let Part::Basic(Slice::At(at)) = part {
                    *part = Part::Places(Tensor::new(&[*at], ()));
                }
            }
        }
        Ok(key)
    }

    /// How many axes are spoken of.
    pub(super) fn spoken(&self) -> usize {
        self.parts.iter().filter(|part| speaks(part)).count()
    }

    /// Whether something else stands between arrays of places.
    pub(super) fn is_split(&self) -> bool {
        let is_places = |part: &Part| matches!(part, Part::Places(_));
        let first = self.parts.iter().position(is_places);
        let last = self.parts.iter().rposition(is_places);
        match (first, last) {
            (Some(first), Some(last)) => {
                let mut between = self.parts[first..last].iter();
                between.any(|part| !is_places(part))
            }
            _ => false,
        }
    }

    /// Whether its elements can be picked in memory of the host: everything is there, and it is not much.
    fn is_for_host(&self, of: &Value) -> bool {
        let is_there = |part: &Part| match part {
            Part::Places(places) => places.is_computed(),
            Part::Basic(_) => true,
        };
        is_on_host(of) && self.parts.iter().all(is_there)
    }

    /// The slices of a key that makes a view; nothing for one with arrays or booleans, which copies.
    fn basic(&self) -> Option<Vec<Slice>> {
        let slices = self.parts.iter().map(|part| match part {
            Part::Basic(slice) => Some(slice.clone()),
            Part::Places(_) => None,
        });
        match self.flags.is_empty() {
            true => slices.collect(),
            false => None,
        }
    }

    /// Whether it is an integer for every axis and nothing else. That makes a scalar in numpy and not a view, so that
    /// `x[0], x[1] = x[1], x[0]` exchanges two elements.
    fn is_element(&self, of: &Value) -> bool {
        let is_integer = |part: &Part| matches!(part, Part::Basic(Slice::At(_)));
        self.parts.len() == of.rank() && self.parts.iter().all(is_integer)
    }

    fn take(&mut self, py: Python<'_>, of: &Value, object: &Bound<'_, PyAny>) -> PyResult<()> {
        let basic = |slice| Part::Basic(slice);
        if object.is_none() {
            self.parts.push(basic(Slice::New));
        } else if object.is_instance_of::<PyEllipsis>() {
            self.parts.push(basic(Slice::Rest));
        } else if let Ok(slice) = object.cast::<PySlice>() {
            self.parts.push(basic(range(slice)?));
        } else if let Ok(flag) = object.cast::<PyBool>() {
            self.flags.push(flag.is_true());
        } else if let Ok(array) = object.cast::<Array>() {
            self.take_array(py, of, &array.get().value())?;
        } else if let Ok(at) = object.extract::<i64>().attempt(py)? {
            self.parts.push(basic(Slice::At(at)));
        } else if object.is_instance_of::<PyInt>() {
            return Err(PyIndexError::new_err(format!(
                "element {object} is asked for, which no axis has"
            )));
        } else if let Some(Operand::Array(value)) = Operand::of(py, object)? {
            self.take_array(py, of, &value)?;
        } else if object.is_instance_of::<PyList>() {
            let value = super::convert::of_lists(object, None, &of.session)?;
            let value = match value.sizes()?.contains(&0) {
                true => value.cast(crate::dtype::PyDType::real(DType::I64)),
                false => value,
            };
            self.take_array(py, of, &value)?;
        } else {
            let kind = object.get_type().name()?.to_string();
            return Err(PyIndexError::new_err(format!(
                "an index is an integer, a slice, None, ..., or an array of integers or booleans, not {kind}"
            )));
        }
        Ok(())
    }

    fn take_array(&mut self, py: Python<'_>, of: &Value, index: &Value) -> PyResult<()> {
        match index.re.dtype().kind() {
            _ if index.im.is_some() => Err(PyIndexError::new_err("a complex array is no index")),
            Kind::Bool => {
                let array = Array::of(py, index.clone())?.host(py)?;
                match index.rank() {
                    0 => self.flags.push(array[0].get_flat(0).is_true()),
                    _ => {
                        self.check_mask(of, index)?;
                        self.parts
                            .extend(places_of(&array[0])?.into_iter().map(Part::Places));
                    }
                }
                Ok(())
            }
            Kind::Signed | Kind::Unsigned => {
                self.parts.push(Part::Places(signed(&index.re)));
                Ok(())
            }
            Kind::Float => Err(PyIndexError::new_err(format!(
                "an array of {} is no index; convert it with astype",
                index.dtype().name()
            ))),
        }
    }

    /// A mask is as large as the axes it speaks of; or it has no elements, and chooses none.
    fn check_mask(&self, of: &Value, mask: &Value) -> PyResult<()> {
        let has_rest = self
            .parts
            .iter()
            .any(|part| matches!(part, Part::Basic(Slice::Rest)));
        let spoken = self.parts.iter().filter(|part| speaks(part)).count();
        let (whole, mask) = (of.sizes()?, mask.sizes()?);
        let from = match has_rest {
            true => whole.len().saturating_sub(mask.len()),
            false => spoken,
        };
        let fits = whole
            .get(from..from + mask.len())
            .is_some_and(|axes| axes.iter().zip(&mask).all(|(a, b)| a == b || *b == 0));
        match fits {
            true => Ok(()),
            false => Err(PyIndexError::new_err(format!(
                "a mask of shape {mask:?} does not fit the axes of {whole:?} that it speaks of"
            ))),
        }
    }
}

/// Indices as signed integers; those that have no such number stay larger than any axis. Where values are there they stay
/// so, to be looked at.
pub(crate) fn signed(index: &Tensor) -> Tensor {
    let most = i64::MAX as u64;
    if index.dtype() == DType::I64 {
        return index.clone();
    }
    if index.is_computed()
        && let Ok(known) = index.array()
    {
        let places = known.iter().map(|at| match at.dtype().kind() {
            Kind::Unsigned => at.bits().min(most) as i64,
            _ => at.as_i64().unwrap_or(i64::MAX),
        });
        let places: Vec<Scalar> = places.map(|at| Scalar::from_i64(DType::I64, at)).collect();
        if let Ok(array) = HostArray::from_scalars(DType::I64, known.shape(), &places) {
            return Tensor::of(array);
        }
    }
    match index.dtype() {
        DType::U64 => Tensor::map(Op::Min, &[index, &Tensor::scalar(most)]).cast(DType::I64),
        _ => index.cast(DType::I64),
    }
}

fn speaks(part: &Part) -> bool {
    !matches!(part, Part::Basic(Slice::New | Slice::Rest))
}

fn range(slice: &Bound<'_, PySlice>) -> PyResult<Slice> {
    let end = |name: &str| -> PyResult<Option<i64>> {
        let end = slice.getattr(name)?;
        if end.is_none() {
            return Ok(None);
        }
        let py = slice.py();
        match end.extract::<i64>().attempt(py)? {
            Ok(end) => Ok(Some(end)),
            Err(_) if matches!(number(&end).attempt(py)?, Ok(None)) => Err(PyTypeError::new_err(
                "the ends of a slice are integers or None",
            )),
            // Further than any array reaches.
            Err(_) => Ok(Some(match end.lt(0)? {
                true => i64::MIN / 4,
                false => i64::MAX / 4,
            })),
        }
    };
    let limit = |end: Option<i64>| end.map(|end| end.clamp(i64::MIN / 4, i64::MAX / 4));
    Ok(Slice::Range {
        start: limit(end("start")?),
        end: limit(end("stop")?),
        step: end("step")?.unwrap_or(1),
    })
}

/// For each axis of a mask, where it is true.
pub(crate) fn places_of(mask: &HostArray) -> PyResult<Vec<Tensor>> {
    let mut places: Vec<Vec<i64>> = vec![Vec::new(); mask.shape().len()];
    for (at, value) in mask.iter().enumerate() {
        if value.is_true() {
            let mut rest = at;
            for (axis, size) in mask.shape().iter().enumerate().rev() {
                places[axis].push((rest % size) as i64);
                rest /= size;
            }
        }
    }
    Ok(places.into_iter().map(Tensor::from).collect())
}

/// The elements that a key speaks of: a view, or with arrays in the key, a copy. One element is a copy, too.
pub(super) fn get(py: Python<'_>, array: &Array, key: &Bound<'_, PyAny>) -> PyResult<Array> {
    let value = array.value();
    let key = Key::read(py, &value, key)?;
    if let Some(slices) = key.basic() {
        let view = array.view(py, &Step::At(slices))?;
        return match key.is_element(&value) {
            true => Array::of(py, view.value()),
            false => Ok(view),
        };
    }
    let value = &value;
    if key.is_for_host(value) {
        let selection = Selection::of(&key, &super::view::Layout::dense(&value.sizes()?))?;
        let read = |part: &Tensor| {
            let array = py.interruptible(|| part.lent())?.or_raise()?;
            Ok::<_, PyErr>(Tensor::of(selection.read(&array)?))
        };
        let im = value.im.as_ref().map(read).transpose()?;
        let made = Value::new(read(&value.re)?, im, value.session.clone());
        return Array::of(py, made);
    }
    let re = taken(&value.re, &key)?;
    let im = value.im.as_ref().map(|im| taken(im, &key)).transpose()?;
    Array::of(py, made_of(&[value], re, im)?)
}

fn taken(tensor: &Tensor, key: &Key) -> PyResult<Tensor> {
    let raise = |tensor: Tensor| match tensor.check() {
        Ok(()) => Ok(tensor),
        Err(error) => Err(outside(&error)),
    };
    // Views first; an axis with places stays whole until then.
    let mut slices = Vec::with_capacity(key.parts.len());
    for part in &key.parts {
        slices.push(match part {
            Part::Basic(slice) => slice.clone(),
            Part::Places(_) => Slice::All,
        });
    }
    let spoken = key.parts.iter().filter(|part| speaks(part)).count();
    if !slices.iter().any(|slice| matches!(slice, Slice::Rest)) && spoken < tensor.rank() {
        slices.push(Slice::Rest);
    }
    let mut view = raise(tensor.at(slices))?;
    // The axis of the view for each of the places.
    let mut looked: Vec<(usize, &Tensor)> = Vec::new();
    let mut axis = 0;
    for part in &key.parts {
        match part {
            Part::Basic(Slice::At(_)) => {}
            Part::Basic(Slice::Rest) => axis += tensor.rank() - spoken,
            Part::Basic(_) => axis += 1,
            Part::Places(index) => {
                looked.push((axis, index));
                axis += 1;
            }
        }
    }
    if !looked.is_empty() {
        view = raise(looked_up(&view, &looked, key.is_split())?)?;
    }
    for flag in key.flags.iter().rev() {
        view = view.unsqueeze(0).at(Slice::from(0..i64::from(*flag)));
    }
    raise(view)
}

/// The elements at places along several axes together.
fn looked_up(view: &Tensor, looked: &[(usize, &Tensor)], is_split: bool) -> PyResult<Tensor> {
    let sizes = view.sizes().or_raise()?;
    // The places meet in one shape: one number, of which all other axes are a part.
    let mut flat: Option<Tensor> = None;
    for (axis, index) in looked {
        let size = sizes[*axis] as i64;
        let whole = Tensor::scalar(size);
        let below = index.lt(&Tensor::scalar(0i64));
        let place = loopwright_tensor::select(&below, &(*index + &whole), index);
        // Known places are looked at here, as views do; others give 0 where they are outside.
        if index.is_computed()
            && let Ok(known) = index.array()
            && let Some(bad) = known
                .to_f64()
                .iter()
                .find(|at| !(-size as f64..size as f64).contains(at))
        {
            return Err(PyIndexError::new_err(format!(
                "element {bad} of axis {axis} is asked for, which has {size}"
            )));
        }
        flat = Some(match flat {
            None => place,
            Some(flat) => flat * whole + place,
        });
    }
    let flat = flat.expect("there are places");
    flat.check().or_raise()?;
    let axes: Vec<usize> = looked.iter().map(|(axis, _)| *axis).collect();
    let adjacent = axes.windows(2).all(|pair| pair[1] == pair[0] + 1) && !is_split;
    let target = if adjacent { axes[0] } else { 0 };
    // The axes next to each other, as one.
    let rest = (0..view.rank()).filter(|axis| !axes.contains(axis));
    let rest: Vec<usize> = rest.collect();
    let order: Vec<i64> = rest[..target.min(rest.len())]
        .iter()
        .chain(&axes)
        .chain(&rest[target.min(rest.len())..])
        .map(|axis| *axis as i64)
        .collect();
    let turned = match order
        .iter()
        .enumerate()
        .all(|(at, axis)| at as i64 == *axis)
    {
        true => view.clone(),
        false => view.permute(order.clone()),
    };
    let mut shape: Vec<usize> = order.iter().map(|axis| sizes[*axis as usize]).collect();
    let product: usize = axes.iter().map(|axis| sizes[*axis]).product();
    shape.splice(target..target + axes.len(), [product]);
    let merged = match axes.len() {
        1 => turned,
        _ => turned.reshape(shape),
    };
    Ok(merged.take(&flat, target))
}

/// Puts other elements where a key speaks of them.
pub(super) fn set(
    py: Python<'_>,
    array: &Array,
    key: &Bound<'_, PyAny>,
    new: &Bound<'_, PyAny>,
) -> PyResult<()> {
    array.check_writable()?;
    let value = array.value();
    let dtype = value.dtype();
    let key = Key::read(py, &value, key)?;
    let (cell, map) = array.root();
    let map = map.map_or_else(|| Map::whole(&value), |map| (*map).clone());
    // `x[1:] += 1` has written the view already when it comes here.
    if let Some(slices) = key.basic()
        && let Ok(new) = new.cast::<Array>()
        && let (other, Some(theirs)) = new.get().root()
        && Arc::ptr_eq(&cell, &other)
        && let Some(own) = map.then(&Step::At(slices))?
        && own.layout.is_some()
        && own.layout == theirs.layout
    {
        return Ok(());
    }
    let new = match Operand::of(py, new)? {
        Some(Operand::Number(number)) => {
            let beside = number.beside(dtype);
            if beside != dtype && !(dtype.part == DType::Bool && beside.part.is_int()) {
                return Err(PyTypeError::new_err(format!(
                    "an element of {} does not take {}",
                    dtype.name(),
                    beside.name()
                )));
            }
            from_scalar(number, dtype, &value.session)?
        }
        Some(Operand::Array(new)) => {
            let lossy = (new.dtype().complex && !dtype.complex)
                || (new.re.dtype().is_float() && !dtype.part.is_float());
            if lossy {
                return Err(PyTypeError::new_err(format!(
                    "elements of {} do not take {}; convert with astype",
                    dtype.name(),
                    new.dtype().name()
                )));
            }
            new.cast(dtype)
        }
        None => super::convert::of_lists(new, Some(dtype), &value.session)?,
    };
    cell.update(py, |old| put(py, old, &map, Some(&key), &new))?;
    Ok(())
}

/// The value of a cell with other elements where a key of a view speaks of them, or in all of the view. They have the dtype
/// of the cell.
pub(super) fn put(
    py: Python<'_>,
    value: &Value,
    map: &Map,
    key: Option<&Key>,
    new: &Value,
) -> PyResult<Value> {
    common_session(&[value, new])?;
    let is_all = key.is_none_or(|key| key.basic().is_some_and(|key| key.iter().all(is_whole)));
    let sizes = value.sizes()?;
    if key.map_or_else(|| is_on_host(value), |key| key.is_for_host(value))
        && let Some(layout) = &map.layout
    {
        let selection = match key {
            Some(key) => Selection::of(key, layout)?,
            None => Selection::whole(layout),
        };
        let write = |old: &Tensor, new: &Tensor| {
            // One number for all need not be repeated.
            let new = match new.rank() {
                0 => new.clone(),
                _ => fitted(new, &selection.shape)?,
            };
            let read = || Ok::<_, TensorError>((old.lent()?, new.array()?));
            let (old, new) = py.interruptible(|| value.session.scope(read))?.or_raise()?;
            Ok::<_, PyErr>(Tensor::of(selection.write(&old, &new)))
        };
        let im = match (&value.im, &new.im) {
            (Some(old), Some(new)) => Some(write(old, new)?),
            _ => None,
        };
        let re = write(&value.re, &new.re)?;
        return Ok(Value::new(re, im, value.session.clone()));
    }
    let count: usize = sizes.iter().product();
    // The places in the array laid out flat that the key speaks of.
    let flat = Tensor::arange(0, count as i64, 1).reshape(sizes.clone());
    let places = map.apply(&flat.in_shape(value.re.shape()));
    let places = match key {
        Some(key) => taken(&places, key)?,
        None => places,
    };
    let shape = places.sizes().or_raise()?;
    let part = |old: &Tensor, new: &Tensor| {
        let new = fitted(new, &shape)?;
        if shape.contains(&0) {
            return Ok(old.clone());
        }
        if is_all && let Some(whole) = map.undone(&new, old.shape()) {
            return Ok(whole);
        }
        let updates = new.flatten();
        let places = places.unnamed().flatten();
        let changed = old.unnamed().flatten().scatter(&places, &updates, 0, None);
        Ok::<_, PyErr>(changed.reshape(sizes.clone()).in_shape(old.shape()))
    };
    let re = part(&value.re, &new.re)?;
    let im = match (&value.im, &new.im) {
        (Some(old), Some(new)) => Some(part(old, new)?),
        _ => None,
    };
    re.check().or_raise()?;
    let made = made_of(&[value, new], re, im)?;
    // What follows reads the whole array; what made it should not be computed again each time.
    if !is_recording() {
        made.realize(py)?;
    }
    Ok(made)
}

/// New elements repeated to the shape of the places they are for.
fn fitted(new: &Tensor, shape: &[usize]) -> PyResult<Tensor> {
    let mut sizes = new.sizes().or_raise()?;
    let mut new = new.unnamed();
    // Axes of size 1 in front are one too many, and do no harm.
    while sizes.len() > shape.len() && sizes[0] == 1 {
        new = new.squeeze(0);
        sizes.remove(0);
    }
    let fits = sizes.len() <= shape.len()
        && sizes
            .iter()
            .rev()
            .zip(shape.iter().rev())
            .all(|(own, whole)| own == whole || *own == 1);
    match fits {
        true => Ok(new.broadcast_to(shape.to_vec())),
        false => Err(PyValueError::new_err(format!(
            "values of shape {sizes:?} do not fit where {shape:?} is spoken of"
        ))),
    }
}
