//! Ops that only move elements. All of them are views.

use super::axes::{self, AxisRef, IntoAxes};
use super::elementwise::refuse_join;
use super::{IntoScalar, counted, failure, refuse_shape, select, settle};
use crate::error::{ErrorKind, TensorError};
use crate::node::{Kind, Tensor, View};
use crate::shape::{Axis, IntoShape, JoinError, Places, Shape, join};
use crate::size::{self, MAX_AXES, axis_index};
use loopwright_ops::Scalar;
use loopwright_symbolic::{Error as ExprError, Expr};
use smallvec::SmallVec;

pub(super) type Map = SmallVec<[Expr; 4]>;

impl Tensor {
    /// A view of this tensor.
    #[track_caller]
    pub(crate) fn view(&self, view: View, shape: Shape) -> Tensor {
        if shape.rank() > MAX_AXES {
            let reason = format!("a tensor has at most {MAX_AXES} axes");
            return Tensor::of_error(refuse_shape("view", &shape, reason));
        }
        if let Some(name) = shape.repeated_name() {
            let reason = format!("two axes would be called `{name}`");
            return Tensor::of_error(refuse_shape("view", &shape, reason));
        }
        Tensor::make(Kind::View(view), &[self], shape, self.dtype())
    }

    /// Gives the axes names, in order.
    #[track_caller]
    pub fn named<const N: usize>(&self, names: [&str; N]) -> Tensor {
        if let Some(failed) = failure(&[self]) {
            return failed;
        }
        if names.len() != self.rank() {
            let reason = format!(
                "{} for {}",
                counted(names.len(), "name"),
                counted(self.rank(), "axis")
            );
            return Tensor::of_error(refuse_shape("named", self.shape(), reason));
        }
        if let Some(name) =
            (1..N).find_map(|at| names[..at].contains(&names[at]).then_some(names[at]))
        {
            let reason = format!("two axes would be called `{name}`");
            return Tensor::of_error(refuse_shape("named", self.shape(), reason));
        }
        let axes = self.shape().axes().iter().zip(names);
        let shape = Shape::new(axes.map(|(axis, name)| Axis {
            name: Some(name.into()),
            size: axis.size.clone(),
        }));
        self.in_place(shape)
    }

    /// The axes without their names.
    #[track_caller]
    pub fn unnamed(&self) -> Tensor {
        if let Some(failed) = failure(&[self]) {
            return failed;
        }
        let axes = self.shape().axes().iter();
        let shape = Shape::new(axes.map(|axis| Axis {
            name: None,
            size: axis.size.clone(),
        }));
        self.in_place(shape)
    }

    /// Gives one axis a name in place of the one it has.
    #[track_caller]
    pub fn rename(&self, axis: impl Into<AxisRef>, name: &str) -> Tensor {
        if let Some(failed) = failure(&[self]) {
            return failed;
        }
        match axes::place("rename", self.shape(), &axis.into()) {
            Ok(at) => {
                let mut shape = self.shape().clone();
                shape.0[at].name = Some(name.into());
                self.in_place(shape)
            }
            Err(error) => Tensor::of_error(error),
        }
    }

    /// The same elements with the names of a shape, whose sizes are equal to this tensor's or become so.
    #[track_caller]
    pub fn in_shape(&self, shape: &Shape) -> Tensor {
        if let Some(failed) = failure(&[self]) {
            return failed;
        }
        let pairs = self.shape().axes().iter().zip(shape.axes());
        if self.rank() != shape.rank()
            || !pairs
                .into_iter()
                .all(|(a, b)| size::equate(&a.size, &b.size))
        {
            return Tensor::of_error(TensorError::new(ErrorKind::Shapes {
                op: "in_shape".to_owned(),
                left: self.shape().to_string(),
                right: shape.to_string(),
                reason: "the sizes differ".to_owned(),
            }));
        }
        self.in_place(shape.clone())
    }

    /// The same elements in the same order, with other axes of the same sizes.
    #[track_caller]
    pub(crate) fn in_place(&self, shape: Shape) -> Tensor {
        if *self.shape() == shape {
            return self.clone();
        }
        let map: Map = (0..self.rank()).map(axis_index).collect();
        self.view(View::exact(map.clone(), map), shape)
    }

    /// The axes in another order.
    #[track_caller]
    pub fn permute(&self, axes: impl IntoAxes) -> Tensor {
        settle(self.permuted("permute", axes))
    }

    #[track_caller]
    fn permuted(&self, op: &str, axes: impl IntoAxes) -> Result<Tensor, TensorError> {
        self.check()?;
        let order = axes::places(op, self.shape(), axes)?;
        if order.len() != self.rank() {
            let reason = format!(
                "all {} axes are put in order, and {} are given",
                self.rank(),
                order.len()
            );
            return Err(refuse_shape(op, self.shape(), reason));
        }
        Ok(self.turned(&order))
    }

    /// The axes at these places, in this order.
    #[track_caller]
    pub(crate) fn turned(&self, order: &[usize]) -> Tensor {
        let shape = Shape::new(order.iter().map(|at| self.shape().axes()[*at].clone()));
        let mut map: Map = SmallVec::from_elem(Expr::constant(0), order.len());
        for (place, at) in order.iter().enumerate() {
            map[*at] = axis_index(place);
        }
        let inverse = order.iter().map(|at| axis_index(*at)).collect();
        self.view(View::exact(map, inverse), shape)
    }

    /// Two axes in each other's place.
    #[track_caller]
    pub fn transpose(&self, a: impl Into<AxisRef>, b: impl Into<AxisRef>) -> Tensor {
        let (a, b) = (a.into(), b.into());
        let swap = || {
            self.check()?;
            let (a, b) = (
                axes::place("transpose", self.shape(), &a)?,
                axes::place("transpose", self.shape(), &b)?,
            );
            let mut order: Vec<usize> = (0..self.rank()).collect();
            order.swap(a, b);
            Ok(self.turned(&order))
        };
        settle(swap())
    }

    /// The last two axes in each other's place.
    #[track_caller]
    pub fn t(&self) -> Tensor {
        self.transpose(-2, -1)
    }

    /// An axis at another place; the others keep their order.
    #[track_caller]
    pub fn move_axis(&self, from: impl Into<AxisRef>, to: impl Into<AxisRef>) -> Tensor {
        let (from, to) = (from.into(), to.into());
        let shift = || {
            self.check()?;
            let from = axes::place("move_axis", self.shape(), &from)?;
            let to = axes::place("move_axis", self.shape(), &to)?;
            let mut order: Vec<usize> = (0..self.rank()).collect();
            let axis = order.remove(from);
            order.insert(to, axis);
            Ok(self.turned(&order))
        };
        settle(shift())
    }

    /// The tensor repeated to a larger shape, by the rules for operands that meet.
    #[track_caller]
    pub fn broadcast_to(&self, shape: impl IntoShape) -> Tensor {
        if let Some(failed) = failure(&[self]) {
            return failed;
        }
        let shape = shape.into_shape();
        if self.shape() == &shape {
            return self.clone();
        }
        match join(&shape, self.shape()) {
            Ok((joined, [_, places])) if joined == shape => self.spread(&shape, &places),
            Ok((joined, _)) => {
                let reason = format!(
                    "the shape lacks axes of the tensor; with all of both it would be {joined}"
                );
                Tensor::of_error(TensorError::new(ErrorKind::Shapes {
                    op: "broadcast_to".to_owned(),
                    left: self.shape().to_string(),
                    right: shape.to_string(),
                    reason,
                }))
            }
            Err(error) => {
                let error = match error {
                    JoinError::Sizes(a, b) => JoinError::Sizes(b, a),
                    other => other,
                };
                Tensor::of_error(refuse_join("broadcast_to", self.shape(), &shape, &error))
            }
        }
    }

    /// A new axis of size 1 at a place.
    #[track_caller]
    pub fn unsqueeze(&self, at: impl Into<AxisRef>) -> Tensor {
        if let Some(failed) = failure(&[self]) {
            return failed;
        }
        let rank = self.rank() as i64;
        let at = match at.into() {
            AxisRef::At(at) if (-rank - 1..=rank).contains(&at) => {
                (if at < 0 { at + rank + 1 } else { at }) as usize
            }
            other => {
                let axis = match other {
                    AxisRef::At(at) => at.to_string(),
                    AxisRef::Named(name) => format!("`{name}`"),
                };
                let reason = format!("a new axis stands at a place from 0 to {rank}, not {axis}");
                return Tensor::of_error(refuse_shape("unsqueeze", self.shape(), reason));
            }
        };
        let mut shape = self.shape().clone();
        shape.0.insert(at, Axis::of(1));
        let map: Map = (0..self.rank())
            .map(|axis| axis_index(axis + usize::from(axis >= at)))
            .collect();
        let mut inverse: Map = (0..self.rank()).map(axis_index).collect();
        inverse.insert(at, Expr::constant(0));
        self.view(View::exact(map, inverse), shape)
    }

    /// Takes an axis of size 1 away.
    #[track_caller]
    pub fn squeeze(&self, axis: impl Into<AxisRef>) -> Tensor {
        let axis = axis.into();
        let take = || {
            self.check()?;
            let at = axes::place("squeeze", self.shape(), &axis)?;
            if !size::equate(&self.shape().axes()[at].size, &Expr::constant(1)) {
                let reason = format!("axis {at} has size {}, not 1", self.shape().axes()[at]);
                return Err(refuse_shape("squeeze", self.shape(), reason));
            }
            let mut shape = self.shape().clone();
            shape.0.remove(at);
            let mut map: Map = (0..shape.rank()).map(axis_index).collect();
            map.insert(at, Expr::constant(0));
            let inverse = (0..self.rank())
                .filter(|axis| *axis != at)
                .map(axis_index)
                .collect();
            Ok(self.view(View::exact(map, inverse), shape))
        };
        settle(take())
    }

    /// The elements in row-major order with another shape.
    ///
    /// Sizes may be unknown ([`unknown`](crate::unknown)): one of them is then found from the others.
    #[track_caller]
    pub fn reshape(&self, shape: impl IntoShape) -> Tensor {
        if let Some(failed) = failure(&[self]) {
            return failed;
        }
        let shape = shape.into_shape();
        settle(self.reshaped("reshape", shape))
    }

    #[track_caller]
    fn reshaped(&self, op: &str, shape: Shape) -> Result<Tensor, TensorError> {
        let overflow = |error: ExprError| refuse_shape(op, self.shape(), error.to_string());
        let product = |shape: &Shape| {
            let sizes = shape.axes().iter().map(|axis| size::resolve(&axis.size));
            sizes
                .into_iter()
                .try_fold(Expr::constant(1), |product, size| product.mul(&size))
        };
        let (old, new) = (
            product(self.shape()).map_err(overflow)?,
            product(&shape).map_err(overflow)?,
        );
        if !size::equate(&old, &new) {
            let reason = match (old.as_const(), new.as_const()) {
                (Some(old), Some(new)) => {
                    format!("there are {old} elements, and the new shape has {new}")
                }
                (Some(old), None) => format!("no size in place of `?` makes {old} elements of it"),
                _ => "they never have as many elements".to_owned(),
            };
            return Err(TensorError::new(ErrorKind::Shapes {
                op: op.to_owned(),
                left: self.shape().to_string(),
                right: shape.to_string(),
                reason,
            }));
        }
        if new.as_const() == Some(0) {
            // A view of nothing would have nothing to read.
            return Ok(Tensor::zeros(&shape, self.dtype()));
        }
        let groups = groups(self.shape(), &shape);
        let map = regroup(&groups, self.shape(), &shape, false).map_err(overflow)?;
        let inverse = regroup(&groups, &shape, self.shape(), true).map_err(overflow)?;
        Ok(self.view(View::exact(map, inverse), shape))
    }

    /// All elements along one axis.
    #[track_caller]
    pub fn flatten(&self) -> Tensor {
        self.merge_axes(0, -1)
    }

    /// The axes from one to another as a single one.
    #[track_caller]
    pub fn merge_axes(&self, first: impl Into<AxisRef>, last: impl Into<AxisRef>) -> Tensor {
        if self.rank() == 0 && !self.is_failed() {
            return self.unsqueeze(0);
        }
        let (first, last) = (first.into(), last.into());
        let merge = || {
            self.check()?;
            let first = axes::place("merge_axes", self.shape(), &first)?;
            let last = axes::place("merge_axes", self.shape(), &last)?;
            if first > last {
                return Err(refuse_shape(
                    "merge_axes",
                    self.shape(),
                    format!("axis {first} is behind axis {last}"),
                ));
            }
            let axes = self.shape().axes();
            let mut size = Expr::constant(1);
            for axis in &axes[first..=last] {
                let product = size.mul(&size::resolve(&axis.size));
                size = product
                    .map_err(|error| refuse_shape("merge_axes", self.shape(), error.to_string()))?;
            }
            let merged = Axis { name: None, size };
            let shape = axes[..first]
                .iter()
                .cloned()
                .chain([merged])
                .chain(axes[last + 1..].iter().cloned());
            self.reshaped("merge_axes", Shape::new(shape))
        };
        settle(merge())
    }

    /// One axis as several of these sizes.
    #[track_caller]
    pub fn split_axis(&self, axis: impl Into<AxisRef>, into: impl IntoShape) -> Tensor {
        let (axis, into) = (axis.into(), into.into_shape());
        let split = || {
            self.check()?;
            let at = axes::place("split_axis", self.shape(), &axis)?;
            let axes = self.shape().axes();
            let shape = axes[..at]
                .iter()
                .chain(into.axes())
                .chain(&axes[at + 1..])
                .cloned();
            self.reshaped("split_axis", Shape::new(shape))
        };
        settle(split())
    }

    /// A part of an axis: `length` elements from `start`.
    #[track_caller]
    pub fn narrow(&self, axis: impl Into<AxisRef>, start: usize, length: usize) -> Tensor {
        let axis = axis.into();
        let part = || {
            self.check()?;
            let at = axes::place("narrow", self.shape(), &axis)?;
            self.strided(at, start as i64, 1, length as i64)
        };
        settle(part())
    }

    /// `count` elements along an axis: `start`, `start + step`, ..
    #[track_caller]
    pub(crate) fn strided(
        &self,
        axis: usize,
        start: i64,
        step: i64,
        count: i64,
    ) -> Result<Tensor, TensorError> {
        let mut shape = self.shape().clone();
        let last = (count - 1)
            .checked_mul(step)
            .and_then(|far| far.checked_add(start));
        if let Some(size) = shape.0[axis].known() {
            let inside = |at: i64| (0..size as i64).contains(&at);
            if count > 0 && !(inside(start) && last.is_some_and(inside)) {
                let reason = format!(
                    "elements {start} to {} of axis {axis} are asked for, which has {size}",
                    last.unwrap_or(i64::MAX)
                );
                return Err(refuse_shape("narrow", self.shape(), reason));
            }
        }
        shape.0[axis].size = Expr::constant(count);
        let mut map: Map = (0..self.rank()).map(axis_index).collect();
        let index = axis_index(axis)
            .mul(&Expr::constant(step))
            .and_then(|far| far.add(&Expr::constant(start)));
        map[axis] =
            index.map_err(|error| refuse_shape("slice", self.shape(), error.to_string()))?;
        Ok(self.view(View::inside(map), shape))
    }

    /// The elements in reverse order along axes.
    #[track_caller]
    pub fn flip(&self, axes: impl IntoAxes) -> Tensor {
        let flip = || {
            self.check()?;
            let over = axes::places("flip", self.shape(), axes)?;
            let mut map: Map = (0..self.rank()).map(axis_index).collect();
            for axis in over {
                let size = &self.shape().axes()[axis].size;
                let index = size
                    .sub(&Expr::constant(1))
                    .and_then(|last| last.sub(&axis_index(axis)));
                map[axis] =
                    index.map_err(|error| refuse_shape("flip", self.shape(), error.to_string()))?;
            }
            Ok(self.view(View::exact(map.clone(), map), self.shape().clone()))
        };
        settle(flip())
    }

    /// The elements moved along an axis by `shift`; what falls off the end comes in at the start.
    #[track_caller]
    pub fn roll(&self, shift: i64, axis: impl Into<AxisRef>) -> Tensor {
        let axis = axis.into();
        let roll = || {
            self.check()?;
            let at = axes::place("roll", self.shape(), &axis)?;
            let size = size::resolve(&self.shape().axes()[at].size);
            let turn = |by: i64| {
                let mut map: Map = (0..self.rank()).map(axis_index).collect();
                let index = axis_index(at)
                    .add(&Expr::constant(by))
                    .and_then(|index| index.modulo(&size));
                map[at] =
                    index.map_err(|error| refuse_shape("roll", self.shape(), error.to_string()))?;
                Ok::<_, TensorError>(map)
            };
            if size.as_const() == Some(0) {
                return Ok(self.clone());
            }
            Ok(self.view(
                View::exact(turn(-shift)?, turn(shift)?),
                self.shape().clone(),
            ))
        };
        settle(roll())
    }

    /// More elements at both ends of an axis, all with a value.
    #[track_caller]
    pub fn pad<T: IntoScalar>(
        &self,
        axis: impl Into<AxisRef>,
        before: i64,
        after: i64,
        value: T,
    ) -> Tensor {
        let axis = axis.into();
        let pad = || {
            self.check()?;
            let at = axes::place("pad", self.shape(), &axis)?;
            let value = value.into_scalar(self.dtype()).ok_or_else(|| {
                let reason = format!("{} is not a value of {}", value.text(), self.dtype());
                refuse_shape("pad", self.shape(), reason)
            })?;
            self.padded(at, before, after, value)
        };
        settle(pad())
    }

    /// More (or, if negative, fewer) elements at both ends of an axis.
    #[track_caller]
    pub(crate) fn padded(
        &self,
        at: usize,
        before: i64,
        after: i64,
        value: Scalar,
    ) -> Result<Tensor, TensorError> {
        let refuse = |error: ExprError| refuse_shape("pad", self.shape(), error.to_string());
        let mut shape = self.shape().clone();
        let more = Expr::constant(before.saturating_add(after));
        let size = shape.0[at].size.add(&more).map_err(refuse)?;
        if size.as_const().is_some_and(|size| size < 0) {
            return Err(refuse_shape(
                "pad",
                self.shape(),
                format!("axis {at} has fewer elements than are taken off"),
            ));
        }
        shape.0[at].size = size;
        let mut map: Map = (0..self.rank()).map(axis_index).collect();
        map[at] = axis_index(at)
            .sub(&Expr::constant(before))
            .map_err(refuse)?;
        let view = View {
            outside: Some(value),
            ..View::inside(map)
        };
        Ok(self.view(view, shape))
    }

    /// The diagonal of the last two axes, as the last axis.
    #[track_caller]
    pub fn diagonal(&self) -> Tensor {
        let take = || {
            self.check()?;
            let rank = self.rank();
            if rank < 2 {
                return Err(refuse_shape("diagonal", self.shape(), "it needs two axes"));
            }
            let (rows, columns) = (
                &self.shape().axes()[rank - 2],
                &self.shape().axes()[rank - 1],
            );
            let size = match (rows.known(), columns.known()) {
                (Some(rows), Some(columns)) => Expr::constant(rows.min(columns) as i64),
                _ if size::equate(&rows.size, &columns.size) => rows.size.clone(),
                _ => {
                    return Err(refuse_shape(
                        "diagonal",
                        self.shape(),
                        "the sizes of the last two axes are not known",
                    ));
                }
            };
            let mut shape = self.shape().clone();
            shape.0.truncate(rank - 2);
            shape.0.push(Axis { name: None, size });
            let map = (0..rank)
                .map(|axis| axis_index(axis.min(rank - 2)))
                .collect();
            Ok(self.view(View::inside(map), shape))
        };
        settle(take())
    }

    /// The last two axes on and below a diagonal (`offset` 0 is the main one, 1 the one above it); zero
    /// elsewhere.
    #[track_caller]
    pub fn tril(&self, offset: i64) -> Tensor {
        self.triangle("tril", |row, column| {
            column.sub(row)?.sub(&Expr::constant(offset))?.neg()
        })
    }

    /// The last two axes on and above a diagonal; zero elsewhere.
    #[track_caller]
    pub fn triu(&self, offset: i64) -> Tensor {
        self.triangle("triu", |row, column| {
            column.sub(row)?.sub(&Expr::constant(offset))
        })
    }

    /// What is kept where an expression over row and column is not negative.
    #[track_caller]
    fn triangle(&self, op: &str, keep: impl Fn(&Expr, &Expr) -> Result<Expr, ExprError>) -> Tensor {
        let cut = || {
            self.check()?;
            let rank = self.rank();
            if rank < 2 {
                return Err(refuse_shape(op, self.shape(), "it needs two axes"));
            }
            let refuse = |error: ExprError| refuse_shape(op, self.shape(), error.to_string());
            let distance = keep(&axis_index(rank - 2), &axis_index(rank - 1)).map_err(refuse)?;
            let kept = Expr::compare(loopwright_symbolic::Cmp::Le, &Expr::constant(0), &distance)
                .map_err(refuse)?;
            let view = View {
                constraints: vec![kept],
                outside: Some(Scalar::zero(self.dtype())),
                ..View::inside((0..rank).map(axis_index).collect())
            };
            Ok(self.view(view, self.shape().clone()))
        };
        settle(cut())
    }

    /// The tensor `count` times one after the other along an axis.
    #[track_caller]
    pub fn tile(&self, axis: impl Into<AxisRef>, count: usize) -> Tensor {
        self.repeated("tile", axis.into(), count, false)
    }

    /// Every element `count` times along an axis.
    #[track_caller]
    pub fn repeat(&self, axis: impl Into<AxisRef>, count: usize) -> Tensor {
        self.repeated("repeat", axis.into(), count, true)
    }

    #[track_caller]
    fn repeated(&self, op: &str, axis: AxisRef, count: usize, each: bool) -> Tensor {
        let repeat = || {
            self.check()?;
            let at = axes::place(op, self.shape(), &axis)?;
            // A new axis before or behind it, along which it is the same, and then both as one.
            let new = if each { at + 1 } else { at };
            let mut shape = self.shape().clone();
            let name = shape.0[at].name.take();
            shape.0.insert(new, Axis::of(count));
            let places: Places = (0..shape.rank())
                .map(|place| (place != new).then_some(place - usize::from(place > new)))
                .collect();
            let both = self.spread(&shape, &places).merge_axes(at, at + 1);
            Ok(match name {
                Some(name) => both.rename(at, &name),
                None => both,
            })
        };
        settle(repeat())
    }
}

/// More tensors than this are joined in groups first, since every element chooses among all of its group:
/// 128 rows of a recurrent layer and their gradients take 0.4 ms so, and 1.7 ms in one group.
const GROUP: usize = 8;

/// Tensors one behind the other along an axis that they all have.
#[track_caller]
pub fn concat(tensors: &[&Tensor], axis: impl Into<AxisRef>) -> Tensor {
    let axis = axis.into();
    if let Some(failed) = failure(tensors) {
        return failed;
    }
    let joined = || {
        let Some((first, rest)) = tensors.split_first() else {
            return Err(TensorError::new(ErrorKind::Argument {
                op: "concat".to_owned(),
                reason: "there is nothing to join".to_owned(),
            }));
        };
        let at = axes::place("concat", first.shape(), &axis)?;
        let known = |tensor: &Tensor| {
            tensor.shape().axes()[at]
                .known()
                .map(|size| size as i64)
                .ok_or_else(|| {
                    refuse_shape(
                        "concat",
                        tensor.shape(),
                        "the size along the joined axis is not known yet",
                    )
                })
        };
        for other in rest {
            let fits = |(place, (a, b)): (usize, (&Axis, &Axis))| {
                a.name == b.name && (place == at || size::equate(&a.size, &b.size))
            };
            let pairs = first.shape().axes().iter().zip(other.shape().axes());
            if other.rank() != first.rank() || !pairs.enumerate().all(fits) {
                return Err(TensorError::new(ErrorKind::Shapes {
                    op: "concat".to_owned(),
                    left: first.shape().to_string(),
                    right: other.shape().to_string(),
                    reason: format!("all axes but {at} must be equal"),
                }));
            }
            if other.dtype() != first.dtype() {
                return Err(TensorError::new(ErrorKind::Expected {
                    op: "concat".to_owned(),
                    expected: format!("tensors of one dtype, here {}", first.dtype()),
                    got: other.dtype(),
                }));
            }
        }
        if tensors.len() > GROUP {
            let groups = tensors.chunks(GROUP).map(|group| concat(group, at));
            let groups: Vec<Tensor> = groups.collect();
            return Ok(concat(&groups.iter().collect::<Vec<_>>(), at));
        }
        let mut ends = Vec::new();
        let mut end = 0;
        for tensor in tensors {
            end += known(tensor)?;
            ends.push(end);
        }
        let zero = Scalar::zero(first.dtype());
        let mut parts = Vec::new();
        for (tensor, stop) in tensors.iter().zip(&ends) {
            parts.push(tensor.padded(at, stop - known(tensor)?, end - stop, zero)?);
        }
        let mut shape = first.shape().clone();
        shape.0[at].size = Expr::constant(end);
        let index = Tensor::index(shape.0[at].clone());
        let places: Places = (0..shape.rank())
            .map(|place| (place == at).then_some(0))
            .collect();
        let index = index.spread(&shape, &places);
        let last = parts.pop().expect("there is at least one");
        let together = parts.iter().zip(&ends).rev();
        let all = together.fold(last, |behind, (part, end)| {
            select(&index.lt(&index.number(*end)), part, &behind)
        });
        // Each gets its own part, without a way through all the choices.
        Ok(all.with_gradient(tensors, move |_, _, g| {
            let starts = std::iter::once(&0).chain(&ends);
            let parts = starts.zip(&ends);
            parts
                .map(|(start, end)| g.narrow(at, *start as usize, (end - start) as usize))
                .collect()
        }))
    };
    settle(joined())
}

/// Tensors of one shape along a new axis at a place.
#[track_caller]
pub fn stack(tensors: &[&Tensor], at: impl Into<AxisRef>) -> Tensor {
    let at = at.into();
    if let Some(failed) = failure(tensors) {
        return failed;
    }
    let same = |(a, b): (&Axis, &Axis)| a.name == b.name && size::equate(&a.size, &b.size);
    let pairs = tensors.iter().zip(tensors.iter().skip(1));
    for (first, other) in pairs {
        if first.rank() != other.rank()
            || !first
                .shape()
                .axes()
                .iter()
                .zip(other.shape().axes())
                .all(same)
        {
            return Tensor::of_error(TensorError::new(ErrorKind::Shapes {
                op: "stack".to_owned(),
                left: first.shape().to_string(),
                right: other.shape().to_string(),
                reason: "they must have the same shape".to_owned(),
            }));
        }
    }
    let parts: Vec<Tensor> = tensors
        .iter()
        .map(|tensor| tensor.unsqueeze(at.clone()))
        .collect();
    let parts: Vec<&Tensor> = parts.iter().collect();
    let at = match (at, tensors.first()) {
        // Counted from the end of the shape with the new axis.
        (AxisRef::At(at), Some(first)) if at < 0 => AxisRef::At(at + first.rank() as i64 + 1),
        (at, _) => at,
    };
    concat(&parts, at)
}

/// Stretches of axes on both sides that hold the same elements, as short as they can be.
fn groups(old: &Shape, new: &Shape) -> Vec<(std::ops::Range<usize>, std::ops::Range<usize>)> {
    let sizes = |shape: &Shape| -> Vec<Expr> {
        shape
            .axes()
            .iter()
            .map(|axis| size::resolve(&axis.size))
            .collect()
    };
    let (a, b) = (sizes(old), sizes(new));
    let mut groups = Vec::new();
    let (mut i, mut j) = (0, 0);
    while i < a.len() || j < b.len() {
        let (start_i, start_j) = (i, j);
        let mut left = a.get(i).cloned();
        let mut right = b.get(j).cloned();
        i = (i + 1).min(a.len());
        j = (j + 1).min(b.len());
        loop {
            match (&left, &right) {
                (Some(x), Some(y)) if x == y => break,
                (Some(x), Some(y)) => match (x.as_const(), y.as_const()) {
                    (Some(x), Some(y)) if x < y && i < a.len() => {
                        left = Expr::constant(x).mul(&a[i]).ok();
                        i += 1;
                    }
                    (Some(x), Some(y)) if y < x && j < b.len() => {
                        right = Expr::constant(y).mul(&b[j]).ok();
                        j += 1;
                    }
                    // Not to be told apart: the rest is one stretch.
                    _ => {
                        (i, j) = (a.len(), b.len());
                        break;
                    }
                },
                // Axes of size 1 at the end of one side.
                _ => {
                    (i, j) = (a.len(), b.len());
                    break;
                }
            }
        }
        groups.push((start_i..i, start_j..j));
    }
    groups
}

/// For each axis of `to`, its index over the axes of `from` (with `swapped`, groups are the other way round).
///
/// A view's map has an index for each axis of the input over those of the result: `to` is the input then.
fn regroup(
    groups: &[(std::ops::Range<usize>, std::ops::Range<usize>)],
    to: &Shape,
    from: &Shape,
    swapped: bool,
) -> Result<Map, ExprError> {
    let mut map = Map::new();
    for (old, new) in groups {
        let (to_axes, from_axes) = if swapped { (new, old) } else { (old, new) };
        let size = |shape: &Shape, axis: usize| size::resolve(&shape.axes()[axis].size);
        let mut flat = Expr::constant(0);
        for axis in from_axes.clone() {
            flat = flat.mul(&size(from, axis))?.add(&axis_index(axis))?;
        }
        let mut stride = Expr::constant(1);
        let mut indices = Vec::new();
        for axis in to_axes.clone().rev() {
            let extent = size(to, axis);
            let mut index = match extent.as_const() {
                Some(1) => Expr::constant(0),
                _ => flat.floor_div(&stride)?,
            };
            if axis != to_axes.start && extent.as_const() != Some(1) {
                index = index.modulo(&extent)?;
            }
            indices.push(index);
            stride = stride.mul(&extent)?;
        }
        map.extend(indices.into_iter().rev());
    }
    Ok(map)
}
