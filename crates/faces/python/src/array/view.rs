//! Views: arrays that are a part of another one's elements, in another order or shape.
//!
//! A view has the cell of the array that it is of, and the steps from there. What it has read is kept with the version of
//! the cell; when the cell has been written since, it is read again. A write to a view is one to the elements of the cell
//! that it stands for: `index.rs` makes it (`set`, `put`), and `cell.rs` takes it (`update`).

use super::cell::{ALWAYS_OLD, Cell, lock};
use super::select::Selection;
use super::{Array, Kept, Value, is_on_host, is_recording, outside};
use crate::errors::OrRaise;
use crate::interrupts::Interruptible;
use loopwright_tensor::{Shape, Slice, Tensor};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use std::sync::{Arc, Mutex};

/// One step from an array to a view of it.
#[derive(Clone)]
pub(crate) enum Step {
    /// Parts of axes, new axes and the rest.
    At(Vec<Slice>),
    /// Axes in another order, counted from the front.
    Permute(Vec<i64>),
    Reshape(Shape),
    /// Elements seen several times: what is seen so is not written.
    Broadcast(Vec<usize>),
    /// Axes backwards, counted from the front.
    Flip(Vec<i64>),
    /// Axes of size 1 that go, the last first.
    Squeeze(Vec<i64>),
    Unsqueeze(i64),
    /// Other names of the axes.
    Named(Vec<Option<String>>),
}

impl Step {
    fn apply(&self, tensor: &Tensor) -> Tensor {
        match self {
            Step::At(slices) => tensor.at(slices.clone()),
            Step::Permute(axes) => tensor.permute(axes.clone()),
            Step::Reshape(shape) => tensor.reshape(shape),
            Step::Broadcast(shape) => tensor.broadcast_to(shape.clone()),
            Step::Flip(axes) => tensor.flip(axes.clone()),
            Step::Squeeze(axes) => axes
                .iter()
                .fold(tensor.clone(), |tensor, axis| tensor.squeeze(*axis)),
            Step::Unsqueeze(axis) => tensor.unsqueeze(*axis),
            Step::Named(names) => {
                names
                    .iter()
                    .enumerate()
                    .fold(tensor.unnamed(), |tensor, (axis, name)| match name {
                        Some(name) => tensor.rename(axis, name),
                        None => tensor,
                    })
            }
        }
    }

    /// What it was before a step that keeps all elements; nothing for others.
    fn undone(&self, tensor: &Tensor, before: &Shape) -> Option<Tensor> {
        match self {
            Step::Permute(axes) => {
                let mut back = vec![0; axes.len()];
                for (at, axis) in axes.iter().enumerate() {
                    back[usize::try_from(*axis).ok()?] = at as i64;
                }
                Some(tensor.permute(back).in_shape(before))
            }
            Step::Flip(_) => Some(self.apply(tensor).in_shape(before)),
            Step::Reshape(_) | Step::Squeeze(_) | Step::Unsqueeze(_) => {
                Some(tensor.unnamed().reshape(before))
            }
            Step::Named(_) => Some(tensor.in_shape(before)),
            Step::At(slices) if slices.iter().all(is_whole) => Some(tensor.in_shape(before)),
            Step::At(_) | Step::Broadcast(_) => None,
        }
    }
}

/// Whether a slice has all of its axes as they are.
pub(super) fn is_whole(slice: &Slice) -> bool {
    matches!(
        slice,
        Slice::All
            | Slice::Rest
            | Slice::Range {
                start: None,
                end: None,
                step: 1
            }
    )
}

/// Where the elements of a view are in the array laid out flat: the first of them, and how far it is from one to the next
/// along each axis, counted in elements.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) offset: usize,
    pub(super) sizes: Vec<usize>,
    pub(super) strides: Vec<isize>,
}

impl Layout {
    /// Of a whole array.
    pub(super) fn dense(sizes: &[usize]) -> Layout {
        let mut strides = vec![1; sizes.len()];
        for at in (1..sizes.len()).rev() {
            strides[at - 1] = strides[at] * sizes[at].max(1) as isize;
        }
        Layout {
            offset: 0,
            sizes: sizes.to_vec(),
            strides,
        }
    }

    /// Where an element is that is counted in row-major order.
    pub(super) fn place(&self, at: usize) -> usize {
        let mut rest = at;
        let mut place = self.offset;
        for (size, stride) in self.sizes.iter().zip(&self.strides).rev() {
            place = place.wrapping_add_signed((rest % size) as isize * stride);
            rest /= size;
        }
        place
    }

    /// After a step; nothing where the elements in their order have no strides.
    fn after(&self, step: &Step) -> PyResult<Option<Layout>> {
        let mut made = self.clone();
        match step {
            Step::At(slices) => return self.sliced(slices).map(Some),
            Step::Permute(axes) => {
                made.sizes = axes.iter().map(|axis| self.sizes[*axis as usize]).collect();
                made.strides = axes
                    .iter()
                    .map(|axis| self.strides[*axis as usize])
                    .collect();
            }
            Step::Reshape(shape) => {
                let sizes = shape.known();
                let strides = sizes.as_ref().and_then(|sizes| self.restrided(sizes));
                let (Some(sizes), Some(strides)) = (sizes, strides) else {
                    return Ok(None);
                };
                (made.sizes, made.strides) = (sizes, strides);
            }
            Step::Broadcast(shape) => {
                let new = shape.len() - self.sizes.len();
                made.strides = vec![0; shape.len()];
                for (axis, (size, stride)) in self.sizes.iter().zip(&self.strides).enumerate() {
                    if *size == shape[new + axis] {
                        made.strides[new + axis] = *stride;
                    }
                }
                made.sizes.clone_from(shape);
            }
            Step::Flip(axes) => {
                for axis in axes {
                    let axis = *axis as usize;
                    let last = self.sizes[axis].saturating_sub(1) as isize;
                    made.offset = made.offset.wrapping_add_signed(last * self.strides[axis]);
                    made.strides[axis] = -self.strides[axis];
                }
            }
            Step::Squeeze(axes) => {
                for axis in axes {
                    made.sizes.remove(*axis as usize);
                    made.strides.remove(*axis as usize);
                }
            }
            Step::Unsqueeze(axis) => {
                made.sizes.insert(*axis as usize, 1);
                made.strides.insert(*axis as usize, 0);
            }
            Step::Named(_) => {}
        }
        Ok(Some(made))
    }

    fn sliced(&self, slices: &[Slice]) -> PyResult<Layout> {
        let speaks = |slice: &&Slice| !matches!(slice, Slice::New | Slice::Rest);
        let spoken = slices.iter().filter(speaks).count();
        let Some(rest) = self.sizes.len().checked_sub(spoken) else {
            return Err(PyIndexError::new_err(format!(
                "{spoken} axes are indexed, and there are {}",
                self.sizes.len()
            )));
        };
        let mut made = Layout {
            offset: self.offset,
            sizes: Vec::with_capacity(self.sizes.len()),
            strides: Vec::with_capacity(self.sizes.len()),
        };
        let mut axis = 0;
        let keep = |made: &mut Layout, axis: &mut usize, count: usize| {
            made.sizes.extend(&self.sizes[*axis..*axis + count]);
            made.strides.extend(&self.strides[*axis..*axis + count]);
            *axis += count;
        };
        for slice in slices {
            match slice {
                Slice::New => {
                    made.sizes.push(1);
                    made.strides.push(0);
                }
                Slice::Rest => keep(&mut made, &mut axis, rest),
                Slice::At(at) => {
                    let place = super::select::placed(*at, axis, self.sizes[axis])? as isize;
                    made.offset = made.offset.wrapping_add_signed(place * self.strides[axis]);
                    axis += 1;
                }
                Slice::Range { start, end, step } => {
                    if *step == 0 {
                        return Err(PyValueError::new_err("a slice has a step of 0"));
                    }
                    let size = self.sizes[axis] as i64;
                    let (from, count) = Slice::range(*start, *end, *step, size);
                    // What is not there has no place, and one element no distance to the next.
                    if count > 0 {
                        let from = from as isize * self.strides[axis];
                        made.offset = made.offset.wrapping_add_signed(from);
                    }
                    let step = if count > 1 { *step as isize } else { 1 };
                    made.sizes.push(count as usize);
                    made.strides.push(step * self.strides[axis]);
                    axis += 1;
                }
                Slice::All | Slice::Where(_) => keep(&mut made, &mut axis, 1),
            }
        }
        if !slices.iter().any(|slice| matches!(slice, Slice::Rest)) {
            keep(&mut made, &mut axis, rest);
        }
        Ok(made)
    }

    /// The strides of the same elements in the same order with other sizes; nothing where there are none, so that the
    /// elements have to be copied. The sizes have as many elements.
    fn restrided(&self, sizes: &[usize]) -> Option<Vec<isize>> {
        if self.sizes.contains(&0) {
            return Some(Layout::dense(sizes).strides);
        }
        let old: Vec<(usize, isize)> = self
            .sizes
            .iter()
            .zip(&self.strides)
            .filter(|(size, _)| **size != 1)
            .map(|(size, stride)| (*size, *stride))
            .collect();
        let mut made = vec![0; sizes.len()];
        let (mut from, mut to) = (0, 0);
        while from < old.len() {
            // Groups of old and new axes with as many elements.
            let (mut from_end, mut to_end) = (from + 1, to + 1);
            let mut have = old[from].0;
            let mut want = *sizes.get(to)?;
            while have != want {
                if have < want {
                    have *= old.get(from_end)?.0;
                    from_end += 1;
                } else {
                    want *= *sizes.get(to_end)?;
                    to_end += 1;
                }
            }
            // The old axes of a group are one run of elements.
            let is_run = old[from..from_end]
                .windows(2)
                .all(|pair| pair[0].1 == pair[1].1 * pair[1].0 as isize);
            if !is_run {
                return None;
            }
            let mut stride = old[from_end - 1].1;
            for at in (to..to_end).rev() {
                made[at] = stride;
                stride *= sizes[at] as isize;
            }
            (from, to) = (from_end, to_end);
        }
        Some(made)
    }
}

/// From the array of a cell to a view.
#[derive(Clone)]
pub(super) struct Map {
    steps: Vec<Step>,
    /// Where sizes are known.
    pub(super) layout: Option<Layout>,
}

impl Map {
    /// To the array itself.
    pub(super) fn whole(value: &Value) -> Map {
        let sizes = value.re.shape().known();
        Map {
            steps: Vec::new(),
            layout: sizes.map(|sizes| Layout::dense(&sizes)),
        }
    }

    /// With a step more; nothing where that is no view.
    pub(super) fn then(&self, step: &Step) -> PyResult<Option<Map>> {
        let layout = match &self.layout {
            Some(layout) => match layout.after(step)? {
                Some(layout) => Some(layout),
                None => return Ok(None),
            },
            None => None,
        };
        let mut steps = self.steps.clone();
        steps.push(step.clone());
        Ok(Some(Map { steps, layout }))
    }

    pub(super) fn apply(&self, tensor: &Tensor) -> Tensor {
        self.steps
            .iter()
            .fold(tensor.clone(), |tensor, step| step.apply(&tensor))
    }

    /// The whole tensor for one of a view that has all of its elements; nothing for other views.
    pub(super) fn undone(&self, tensor: &Tensor, whole: &Shape) -> Option<Tensor> {
        let Some((last, before)) = self.steps.split_last() else {
            return Some(tensor.unnamed().in_shape(whole));
        };
        let before = Map {
            steps: before.to_vec(),
            layout: None,
        };
        // Shapes are those of tensors; one of zeros computes nothing.
        let shape = before.apply(&Tensor::zeros(whole, tensor.dtype()));
        before.undone(&last.undone(tensor, shape.shape())?, whole)
    }

    /// What a view reads of a cell's value. Parts of arrays that are there are copied: each index would be another program.
    fn read(&self, value: &Value) -> Value {
        if let Some(layout) = &self.layout
            && self.steps.iter().all(|step| matches!(step, Step::At(_)))
            && is_on_host(value)
            && let Ok(read) = picked(value, layout)
        {
            return read;
        }
        let mut made = value.parts(|part| self.apply(part));
        let steps = u32::try_from(self.steps.len()).unwrap_or(u32::MAX);
        made.waiting = made.waiting.saturating_add(steps);
        made
    }
}

fn picked(value: &Value, layout: &Layout) -> PyResult<Value> {
    let selection = Selection::whole(layout);
    let read = |part: &Tensor| {
        let lent = Python::attach(|py| py.interruptible(|| part.lent()))?.or_raise()?;
        Ok::<_, PyErr>(Tensor::of(selection.read(&lent)?))
    };
    let im = value.im.as_ref().map(read).transpose()?;
    Ok(Value::new(read(&value.re)?, im, value.session.clone()))
}

/// An array that is a part of another one.
pub(super) struct View {
    state: Mutex<State>,
    pub(super) read_only: bool,
}

enum State {
    Of {
        cell: Arc<Cell>,
        map: Arc<Map>,
        /// What was read last, and at which version of the cell.
        seen: Value,
        version: u64,
    },
    /// Nobody else had the cell any more: it is an array of its own.
    Own(Arc<Cell>),
}

impl View {
    fn new(cell: Arc<Cell>, map: Map, seen: Value, version: u64, read_only: bool) -> View {
        View {
            state: Mutex::new(State::Of {
                cell,
                map: Arc::new(map),
                seen,
                version,
            }),
            read_only,
        }
    }

    /// The cell, and the way from it.
    pub(super) fn root(&self) -> (Arc<Cell>, Option<Arc<Map>>) {
        match &*lock(&self.state) {
            State::Of { cell, map, .. } => (Arc::clone(cell), Some(Arc::clone(map))),
            State::Own(cell) => (Arc::clone(cell), None),
        }
    }

    /// The value last seen, which has the shape, the dtype and the device of any other.
    pub(super) fn seen(&self) -> Value {
        match &*lock(&self.state) {
            State::Of { seen, .. } => seen.clone(),
            State::Own(cell) => cell.read().0,
        }
    }

    /// What it stands for now, and the version of the cell.
    pub(super) fn read(&self) -> (Value, u64) {
        let (cell, map) = {
            let mut state = lock(&self.state);
            match &mut *state {
                State::Own(cell) => return cell.read(),
                State::Of {
                    cell,
                    map,
                    seen,
                    version,
                } => {
                    if *version != ALWAYS_OLD && cell.version() == *version {
                        if !is_recording() {
                            seen.settle();
                        }
                        let read = (seen.clone(), *version);
                        // What nobody else can see or write need not be held, nor computed.
                        if Arc::strong_count(cell) == 1 && !cell.is_lent() {
                            *state = State::Own(Arc::new(Cell::new(read.0.clone())));
                            return (read.0, 0);
                        }
                        return read;
                    }
                    (Arc::clone(cell), Arc::clone(map))
                }
            }
        };
        // Without the lock: this may let go of the interpreter.
        let (value, at) = cell.read();
        let value = map.read(&value);
        if at != ALWAYS_OLD {
            self.saw(&value, at);
        }
        (value, at)
    }

    /// Keeps what was read or written at a version of the cell.
    pub(super) fn saw(&self, value: &Value, at: u64) {
        if let State::Of { seen, version, .. } = &mut *lock(&self.state)
            && at >= *version
        {
            (*seen, *version) = (value.clone(), at);
        }
    }
}

impl Array {
    /// A view of it; nothing where the elements would have to be copied.
    pub(crate) fn try_view(&self, py: Python<'_>, step: &Step) -> PyResult<Option<Array>> {
        let (value, version) = self.read();
        let (cell, map) = self.root();
        let whole = Map::whole(&value);
        let Some(map) = map.as_deref().unwrap_or(&whole).then(step)? else {
            return Ok(None);
        };
        // From what it stands for now, which is nearer than the cell.
        let local = match step {
            Step::At(_) => whole.then(step)?,
            _ => None,
        };
        let seen = match local {
            Some(local) => local.read(&value),
            None => value.parts(|part| step.apply(part)),
        };
        for part in seen.tensors() {
            part.check().map_err(|error| match step {
                Step::At(_) => outside(&error),
                _ => crate::errors::of_tensor(&error),
            })?;
        }
        if seen.waiting > super::MOST_WAITING && !is_recording() {
            seen.realize(py)?;
        }
        let read_only = self.is_read_only() || matches!(step, Step::Broadcast(_));
        Ok(Some(Array {
            kept: Kept::View(Box::new(View::new(cell, map, seen, version, read_only))),
        }))
    }

    /// A view of it, or a copy where that cannot be.
    pub(crate) fn view(&self, py: Python<'_>, step: &Step) -> PyResult<Array> {
        match self.try_view(py, step)? {
            Some(view) => Ok(view),
            None => self.parts(py, |part| step.apply(part)),
        }
    }
}
