//! Elements picked from memory of the host.
//!
//! Each index would be another program. Where values are there already and few elements are spoken of, to pick them is
//! less work than to compile it.

use super::index::{Key, Part};
use super::view::Layout;
use loopwright_graph::Array as HostArray;
use loopwright_tensor::Slice;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;

/// The elements that a key speaks of: their shape, and where they are in the array laid out flat.
pub(super) struct Selection {
    pub(super) shape: Vec<usize>,
    pub(super) places: Vec<usize>,
}

/// Some axes of the result, and how far each of their elements is from the first.
struct Axes {
    sizes: Vec<usize>,
    offsets: Vec<isize>,
}

impl Axes {
    fn one(offsets: Vec<isize>) -> Axes {
        Axes {
            sizes: vec![offsets.len()],
            offsets,
        }
    }
}

impl Selection {
    /// All elements of a layout.
    pub(super) fn whole(layout: &Layout) -> Selection {
        let axes = whole(&mut 0, layout.sizes.len(), layout);
        Selection::at(layout.offset, axes)
    }

    /// What a key speaks of in elements that lie so; the places of its arrays have been computed.
    pub(super) fn of(key: &Key, layout: &Layout) -> PyResult<Selection> {
        let (sizes, strides) = (&layout.sizes, &layout.strides);
        let spoken = key.spoken();
        if spoken > sizes.len() {
            return Err(PyIndexError::new_err(format!(
                "{spoken} axes are spoken of, and there are {}",
                sizes.len()
            )));
        }
        let rests = |part: &&Part| matches!(part, Part::Basic(Slice::Rest));
        if key.parts.iter().filter(rests).count() > 1 {
            return Err(PyIndexError::new_err(
                "only one part of an index can be ...",
            ));
        }
        let rest = sizes.len() - spoken;
        let mut axis = 0;
        let mut found: Vec<Axes> = Vec::new();
        // Arrays of places meet in one shape, which stands where the first stood or in front.
        let mut block: Option<(usize, Axes)> = None;
        let mut base = layout.offset;
        let mut has_rest = false;
        for part in &key.parts {
            match part {
                Part::Basic(Slice::New) => found.push(Axes::one(vec![0])),
                Part::Basic(Slice::Rest) => {
                    has_rest = true;
                    found.extend(whole(&mut axis, rest, layout));
                }
                Part::Basic(Slice::At(at)) => {
                    let place = placed(*at, axis, sizes[axis])? as isize;
                    base = base.wrapping_add_signed(place * strides[axis]);
                    axis += 1;
                }
                Part::Basic(Slice::Range { start, end, step }) => {
                    if *step == 0 {
                        return Err(PyIndexError::new_err("a step of 0 leads nowhere"));
                    }
                    let (from, count) = Slice::range(*start, *end, *step, sizes[axis] as i64);
                    let stride = strides[axis];
                    let offset = |at: i64| (from + at * step) as isize * stride;
                    found.push(Axes::one((0..count).map(offset).collect()));
                    axis += 1;
                }
                Part::Basic(_) => found.extend(whole(&mut axis, 1, layout)),
                Part::Places(index) => {
                    let index = index.array().map_err(|error| super::outside(&error))?;
                    let own = indexed(&index, axis, sizes[axis], strides[axis])?;
                    block = Some(match block {
                        None => (found.len(), own),
                        Some((at, before)) => (at, met(before, own)?),
                    });
                    axis += 1;
                }
            }
        }
        if !has_rest {
            found.extend(whole(&mut axis, rest, layout));
        }
        if let Some((at, block)) = block {
            let at = if key.is_split() { 0 } else { at };
            found.insert(at, block);
        }
        for flag in key.flags.iter().rev() {
            found.insert(0, Axes::one(vec![0; usize::from(*flag)]));
        }
        Ok(Selection::at(base, found))
    }

    fn at(base: usize, axes: Vec<Axes>) -> Selection {
        let mut places = vec![base];
        for axes in &axes {
            let next = places.iter().flat_map(|from| {
                let offsets = axes.offsets.iter();
                offsets.map(move |offset| from.wrapping_add_signed(*offset))
            });
            places = next.collect();
        }
        Selection {
            shape: axes.into_iter().flat_map(|axes| axes.sizes).collect(),
            places,
        }
    }

    /// The elements.
    pub(super) fn read(&self, array: &HostArray) -> PyResult<HostArray> {
        use crate::errors::OrRaise;
        let mut made = HostArray::zeros(array.dtype(), &self.shape).or_raise()?;
        let width = array.dtype().bytes();
        let from = array.bytes();
        let to = made.bytes_mut().chunks_exact_mut(width);
        for (to, place) in to.zip(&self.places) {
            to.copy_from_slice(&from[place * width..][..width]);
        }
        Ok(made)
    }

    /// The array with other elements, which have the shape of the selection or are one for all.
    pub(super) fn write(&self, array: &HostArray, new: &HostArray) -> HostArray {
        let mut made = array.clone();
        let width = array.dtype().bytes();
        let to = made.bytes_mut();
        let one = new.len() == 1;
        for (at, place) in self.places.iter().enumerate() {
            let from = if one { 0 } else { at };
            to[place * width..][..width].copy_from_slice(&new.bytes()[from * width..][..width]);
        }
        made
    }
}

/// As many whole axes.
fn whole(axis: &mut usize, count: usize, layout: &Layout) -> Vec<Axes> {
    let from = *axis;
    *axis += count;
    (from..from + count)
        .map(|axis| {
            let (size, stride) = (layout.sizes[axis] as isize, layout.strides[axis]);
            Axes::one((0..size).map(|at| at * stride).collect())
        })
        .collect()
}

/// A place counted from the front.
pub(super) fn placed(at: i64, axis: usize, size: usize) -> PyResult<usize> {
    let place = if at < 0 { at + size as i64 } else { at };
    match usize::try_from(place) {
        Ok(place) if place < size => Ok(place),
        _ => Err(PyIndexError::new_err(format!(
            "element {at} of axis {axis} is asked for, which has {size}"
        ))),
    }
}

fn indexed(index: &HostArray, axis: usize, size: usize, stride: isize) -> PyResult<Axes> {
    let places = index.iter().map(|at| {
        let at = at.as_i64().unwrap_or(i64::MAX);
        Ok(placed(at, axis, size)? as isize * stride)
    });
    Ok(Axes {
        sizes: index.shape().to_vec(),
        offsets: places.collect::<PyResult<_>>()?,
    })
}

/// Places along two axes together, repeated to one shape.
fn met(a: Axes, b: Axes) -> PyResult<Axes> {
    let rank = a.sizes.len().max(b.sizes.len());
    let padded = |sizes: &[usize]| {
        let mut padded = vec![1; rank - sizes.len()];
        padded.extend(sizes);
        padded
    };
    let (left, right) = (padded(&a.sizes), padded(&b.sizes));
    let mut sizes = Vec::with_capacity(rank);
    for (left, right) in left.iter().zip(&right) {
        sizes.push(match (*left, *right) {
            (left, right) if left == right || right == 1 => left,
            (1, right) => right,
            (left, right) => {
                return Err(PyIndexError::new_err(format!(
                    "arrays of places meet with sizes {left} and {right}"
                )));
            }
        });
    }
    let count: usize = sizes.iter().product();
    let at = |flat: usize, own: &[usize]| {
        let (mut rest, mut place, mut stride) = (flat, 0, 1);
        for axis in (0..rank).rev() {
            let index = rest % sizes[axis];
            rest /= sizes[axis];
            if own[axis] != 1 {
                place += index * stride;
            }
            stride *= own[axis];
        }
        place
    };
    let offsets = (0..count).map(|flat| a.offsets[at(flat, &left)] + b.offsets[at(flat, &right)]);
    Ok(Axes {
        offsets: offsets.collect(),
        sizes,
    })
}
