//! Shapes: axes in order, each with a size and perhaps a name.
//!
//! One rule joins both kinds of axis. Axes with a name meet by name, in whatever order they stand. Axes
//! without one meet as in numpy: from the right, among themselves, and a size of 1 is repeated. The
//! result has the axes of the operand that has more (the first, if both have as many); named axes that
//! only the other one has come behind its last named axis. An operand whose axes all have names does not
//! meet one whose axes have none: nobody could tell which is which.

use crate::size::{self, MAX_AXES};
use loopwright_symbolic::Expr;
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;

/// One axis of a tensor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Axis {
    /// Its name, if it has one.
    pub name: Option<Arc<str>>,
    /// Its size: a number, or an expression over sizes that are not known yet.
    pub size: Expr,
}

impl Axis {
    /// An axis without a name.
    pub fn of(size: impl Into<Size>) -> Axis {
        Axis {
            name: None,
            size: size.into().0,
        }
    }

    /// A named axis.
    pub fn named(name: &str, size: impl Into<Size>) -> Axis {
        Axis {
            name: Some(name.into()),
            size: size.into().0,
        }
    }

    /// The size, if it is known by now.
    pub fn known(&self) -> Option<usize> {
        let size = size::resolve(&self.size).as_const()?;
        usize::try_from(size).ok()
    }
}

impl fmt::Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = &self.name {
            write!(f, "{name} ")?;
        }
        match self.known() {
            Some(size) => write!(f, "{size}"),
            None => f.write_str("?"),
        }
    }
}

/// A size as callers write it: a number, or what [`unknown`](crate::unknown) gives.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Size(pub(crate) Expr);

impl From<usize> for Size {
    fn from(size: usize) -> Size {
        Size(Expr::constant(i64::try_from(size).unwrap_or(i64::MAX)))
    }
}

impl From<Expr> for Size {
    fn from(size: Expr) -> Size {
        Size(size)
    }
}

impl From<&Expr> for Size {
    fn from(size: &Expr) -> Size {
        Size(size.clone())
    }
}

/// The axes of a tensor, in order; the last one is contiguous in memory.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Shape(pub(crate) SmallVec<[Axis; 4]>);

impl Shape {
    /// The shape of a single number.
    pub fn scalar() -> Shape {
        Shape::default()
    }

    /// A shape of these axes.
    pub fn new(axes: impl IntoIterator<Item = Axis>) -> Shape {
        Shape(axes.into_iter().collect())
    }

    /// Its axes.
    pub fn axes(&self) -> &[Axis] {
        &self.0
    }

    /// How many axes there are.
    pub fn rank(&self) -> usize {
        self.0.len()
    }

    /// The sizes, if all are known by now.
    pub fn known(&self) -> Option<Vec<usize>> {
        self.0.iter().map(Axis::known).collect()
    }

    /// How many elements there are, if all sizes are known by now.
    pub fn elements(&self) -> Option<usize> {
        self.known()?
            .iter()
            .try_fold(1usize, |product, size| product.checked_mul(*size))
    }

    /// The place of the axis with a name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.0
            .iter()
            .position(|axis| axis.name.as_deref() == Some(name))
    }

    pub(crate) fn named(&self) -> impl Iterator<Item = (usize, &Arc<str>)> {
        let axes = self.0.iter().enumerate();
        axes.filter_map(|(at, axis)| Some((at, axis.name.as_ref()?)))
    }

    fn unnamed(&self) -> impl DoubleEndedIterator<Item = usize> {
        let axes = self.0.iter().enumerate();
        axes.filter_map(|(at, axis)| axis.name.is_none().then_some(at))
    }

    /// A name that two axes have.
    pub(crate) fn repeated_name(&self) -> Option<&Arc<str>> {
        let mut named = self.named();
        named.find_map(|(at, name)| (self.find(name) != Some(at)).then_some(name))
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (at, axis) in self.0.iter().enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            write!(f, "{comma}{axis}")?;
        }
        f.write_str("]")
    }
}

/// What a shape is given as: sizes, or names with sizes.
pub trait IntoShape {
    /// The shape.
    fn into_shape(self) -> Shape;
}

impl IntoShape for Shape {
    fn into_shape(self) -> Shape {
        self
    }
}

impl IntoShape for &Shape {
    fn into_shape(self) -> Shape {
        self.clone()
    }
}

impl IntoShape for () {
    fn into_shape(self) -> Shape {
        Shape::scalar()
    }
}

impl IntoShape for usize {
    fn into_shape(self) -> Shape {
        Shape::new([Axis::of(self)])
    }
}

impl<S: Into<Size>, const N: usize> IntoShape for [S; N] {
    fn into_shape(self) -> Shape {
        Shape::new(self.map(Axis::of))
    }
}

impl<S: Into<Size> + Clone> IntoShape for &[S] {
    fn into_shape(self) -> Shape {
        Shape::new(self.iter().cloned().map(Axis::of))
    }
}

impl<S: Into<Size>> IntoShape for Vec<S> {
    fn into_shape(self) -> Shape {
        Shape::new(self.into_iter().map(Axis::of))
    }
}

impl<S: Into<Size>, const N: usize> IntoShape for [(&str, S); N] {
    fn into_shape(self) -> Shape {
        Shape::new(self.map(|(name, size)| Axis::named(name, size)))
    }
}

/// Why two shapes do not join.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum JoinError {
    /// Two axes that meet have different sizes.
    Sizes(usize, usize),
    /// One has names for all its axes, the other for none.
    Names,
    /// The result would have too many axes.
    TooMany,
}

/// Where each axis of a joined shape comes from in one operand.
pub(crate) type Places = SmallVec<[Option<usize>; 4]>;

/// The shape of an element-by-element op on two operands, and for each of its axes the place in either.
pub(crate) fn join(a: &Shape, b: &Shape) -> Result<(Shape, [Places; 2]), JoinError> {
    let all_named = |shape: &Shape| shape.0.iter().all(|axis| axis.name.is_some());
    let none_named = |shape: &Shape| shape.0.iter().all(|axis| axis.name.is_none());
    let mixed =
        |x: &Shape, y: &Shape| x.rank() > 0 && y.rank() > 0 && all_named(x) && none_named(y);
    if mixed(a, b) || mixed(b, a) {
        return Err(JoinError::Names);
    }
    let (lead, other, swapped) = match b.rank() > a.rank() {
        true => (b, a, true),
        false => (a, b, false),
    };
    // Places in the leading operand and in the other, for each axis of the result.
    let mut places: Vec<(Option<usize>, Option<usize>)> =
        (0..lead.rank()).map(|at| (Some(at), None)).collect();
    let mut extra = Vec::new();
    for (at, name) in other.named() {
        match lead.find(name) {
            Some(found) => places[found].1 = Some(at),
            None => extra.push((None, Some(at))),
        }
    }
    let (lead_unnamed, other_unnamed): (Vec<_>, Vec<_>) =
        (lead.unnamed().collect(), other.unnamed().collect());
    for (l, o) in lead_unnamed.iter().rev().zip(other_unnamed.iter().rev()) {
        places[*l].1 = Some(*o);
    }
    let left_over = other_unnamed.len().saturating_sub(lead_unnamed.len());
    let first_unnamed = lead_unnamed.first().copied().unwrap_or(lead.rank());
    let more: Vec<_> = other_unnamed[..left_over]
        .iter()
        .map(|at| (None, Some(*at)))
        .collect();
    places.splice(first_unnamed..first_unnamed, more);
    let is_named =
        |(l, _): &(Option<usize>, Option<usize>)| l.is_some_and(|l| lead.0[l].name.is_some());
    let behind = places.iter().rposition(is_named).map_or(0, |last| last + 1);
    places.splice(behind..behind, extra);
    if places.len() > MAX_AXES {
        return Err(JoinError::TooMany);
    }
    let mut axes = SmallVec::new();
    let (mut from_a, mut from_b) = (Places::new(), Places::new());
    for (l, o) in places {
        let (at_a, at_b) = if swapped { (o, l) } else { (l, o) };
        let axis = match (at_a, at_b) {
            (Some(at), None) => a.0[at].clone(),
            (None, Some(at)) => b.0[at].clone(),
            (Some(at_a), Some(at_b)) => {
                meet(&a.0[at_a], &b.0[at_b]).ok_or(JoinError::Sizes(at_a, at_b))?
            }
            (None, None) => unreachable!("an axis of the result comes from an operand"),
        };
        axes.push(axis);
        from_a.push(at_a);
        from_b.push(at_b);
    }
    Ok((Shape(axes), [from_a, from_b]))
}

/// The axis of the result where two meet. An unknown size is never taken to be 1.
fn meet(a: &Axis, b: &Axis) -> Option<Axis> {
    let size = match (a.known(), b.known()) {
        (Some(1), _) => b.size.clone(),
        (_, Some(1)) => a.size.clone(),
        _ if size::equate(&a.size, &b.size) => a.size.clone(),
        _ => return None,
    };
    Some(Axis {
        name: a.name.clone(),
        size,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(a: impl IntoShape, b: impl IntoShape) -> String {
        match join(&a.into_shape(), &b.into_shape()) {
            Ok((shape, [a, b])) => format!("{shape} {:?} {:?}", a.as_slice(), b.as_slice()),
            Err(error) => format!("{error:?}"),
        }
    }

    #[test]
    fn numbered_axes_meet_from_the_right() {
        assert_eq!(
            text([2, 3], [3]),
            "[2, 3] [Some(0), Some(1)] [None, Some(0)]"
        );
        assert_eq!(
            text([3], [2, 1]),
            "[2, 3] [None, Some(0)] [Some(0), Some(1)]"
        );
        assert_eq!(text([2, 3], [2]), "Sizes(1, 0)");
        assert_eq!(text([2, 3], ()), "[2, 3] [Some(0), Some(1)] [None, None]");
    }

    #[test]
    fn named_axes_meet_by_name() {
        assert_eq!(
            text([("i", 2), ("k", 3)], [("k", 3), ("j", 4)]),
            "[i 2, k 3, j 4] [Some(0), Some(1), None] [None, Some(0), Some(1)]"
        );
        assert_eq!(text([("i", 2)], [("i", 3)]), "Sizes(0, 0)");
        assert_eq!(text([("i", 2)], [2]), "Names");
    }

    #[test]
    fn a_batch_may_have_a_name_where_the_rest_has_none() {
        let batch = Shape::new([Axis::named("batch", 8), Axis::of(3)]);
        let time = Shape::new([Axis::named("time", 5), Axis::of(3)]);
        assert_eq!(
            text(&batch, [3]),
            "[batch 8, 3] [Some(0), Some(1)] [None, Some(0)]"
        );
        assert_eq!(
            text([3], &batch),
            "[batch 8, 3] [None, Some(0)] [Some(0), Some(1)]"
        );
        assert_eq!(
            text(&batch, &time),
            "[batch 8, time 5, 3] [Some(0), None, Some(1)] [None, Some(0), Some(1)]"
        );
        assert_eq!(
            text(&batch, [4, 3]),
            "[batch 8, 4, 3] [Some(0), None, Some(1)] [None, Some(0), Some(1)]"
        );
    }
}
