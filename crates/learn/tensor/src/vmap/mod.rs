//! Functions over one example, mapped over an axis of many.
//!
//! The function is called once, with tensors that stand for its arguments without the mapped axis. What it
//! made of them is then made again with that axis in front ([`replay`]), so that nothing is computed in a
//! loop, and what does not depend on a mapped argument stays as it is.

mod replay;

use crate::error::{ErrorKind, TensorError};
use crate::jit::Outcome;
use crate::node::{Kind, Tensor};
use crate::ops::{AxisRef, axis_place, is_inside, refuse_shape};
use crate::shape::{Axis, Shape};
use crate::size;
use crate::trace;
use crate::tree::Tree;
use loopwright_symbolic::Expr;
pub(crate) use replay::{Replay, Value};
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::Arc;

/// A function mapped over an axis of its arguments; made by [`vmap`].
pub struct Vmap<I, O, F> {
    function: F,
    over: Over,
    to: To,
    types: PhantomData<fn(&I) -> O>,
}

/// Which axis of each argument is mapped.
enum Over {
    /// The first one of all.
    First,
    /// One of each tensor, or none.
    Each(Vec<Option<AxisRef>>),
    /// The one of that name, of those that have it.
    Named(String),
}

/// Where the axis stands in results.
enum To {
    All(i64),
    Each(Vec<i64>),
}

/// A function over tensors without a batch axis as one over tensors with one.
///
/// The first axis of every argument is mapped, and is the first of every result. [`Vmap::over`] and
/// [`Vmap::over_named`] say which axes are mapped instead, [`Vmap::to`] where the axis goes.
///
/// ```
/// # use loopwright_x86 as _;
/// use loopwright_tensor::{Tensor, vmap};
///
/// let x = Tensor::from([[1.0f32, 2.0], [3.0, 4.0], [5.0, 6.0]]);
/// let w = Tensor::from([1.0f32, 10.0]);
/// // The product of two vectors, for every row of `x` and one `w`.
/// let product = vmap(|(a, b): &(Tensor, Tensor)| (a * b).sum(..)).over([Some(0), None]);
/// assert_eq!(product.call(&(x, w))?.to_vec::<f32>()?, [21.0, 43.0, 65.0]);
///
/// // A gradient for every example.
/// let slopes = vmap(|x: &Tensor| {
///     let [slope] = (x * x * x).gradients([x]);
///     slope
/// });
/// let x = Tensor::from([1.0f32, 2.0, 3.0]);
/// assert_eq!(slopes.call(&x)?.to_vec::<f32>()?, [3.0, 12.0, 27.0]);
/// # Ok::<(), loopwright_tensor::TensorError>(())
/// ```
///
/// It is a formula like any other: it has gradients, can be a part of a function that is traced, and can be
/// mapped itself. A mapped axis that has a name gives it to the results; the function does not see it.
///
/// The function may read variables, which are the same for all examples, and sets none. Values of mapped
/// arguments are not known in it, as in [`jit`](crate::jit()).
///
/// **Random numbers** of a key that is no mapped argument are the same for every example. Where they should
/// differ, the seeds are an argument that is mapped, one for each ([`Key::of`](crate::random::Key::of)): each
/// example then has the numbers that it would have alone. A [`Generator`](crate::random::Generator) counts in
/// a variable, which is not set here; its key is taken outside.
pub fn vmap<I: Tree, O: Outcome, F: Fn(&I) -> O>(function: F) -> Vmap<I, O, F> {
    Vmap {
        function,
        over: Over::First,
        to: To::All(0),
        types: PhantomData,
    }
}

impl<I: Tree, O: Outcome, F: Fn(&I) -> O> Vmap<I, O, F> {
    /// Which axis of each tensor of the arguments is mapped, in order; `None` for those that are the same for
    /// all examples.
    #[must_use]
    pub fn over<A: Into<AxisRef>>(mut self, axes: impl IntoIterator<Item = Option<A>>) -> Self {
        let axes = axes.into_iter().map(|axis| axis.map(Into::into));
        self.over = Over::Each(axes.collect());
        self
    }

    /// Maps the axis of a name, of all tensors that have it; the others are the same for all examples.
    #[must_use]
    pub fn over_named(mut self, name: &str) -> Self {
        self.over = Over::Named(name.to_owned());
        self
    }

    /// The place of the axis in every result; -1 is the last.
    #[must_use]
    pub fn to(mut self, place: i64) -> Self {
        self.to = To::All(place);
        self
    }

    /// The place of the axis in each tensor of the results, in order.
    #[must_use]
    pub fn to_each(mut self, places: impl IntoIterator<Item = i64>) -> Self {
        self.to = To::Each(places.into_iter().collect());
        self
    }

    /// Calls the function for all examples.
    ///
    /// # Errors
    /// Where an axis is not there, mapped axes differ in size, none is mapped, or a variable is set; and
    /// what is wrong with the function.
    #[track_caller]
    pub fn call(&self, arguments: &I) -> Result<O::Tree, TensorError> {
        let place = Location::caller();
        // Closures do not know their caller.
        self.called(arguments)
            .map_err(|error| match is_inside(error.place()) {
                true => error.moved_to(place),
                false => error,
            })
    }

    fn called(&self, arguments: &I) -> Result<O::Tree, TensorError> {
        let leaves = arguments.leaves();
        for leaf in &leaves {
            leaf.check()?;
        }
        let places = self.places(&leaves)?;
        let axis = mapped_axis(&leaves, &places)?;
        let mut replay = Replay::new(axis.size);
        let mut pairs = leaves.iter().zip(&places);
        let given = arguments.replace(&mut |_| match pairs.next() {
            Some((leaf, Some(place))) => {
                let stand_in = without(leaf, *place);
                replay.stand_for(&stand_in, Value::mapped(in_front(leaf, *place)));
                stand_in
            }
            Some((leaf, None)) => leaf.clone(),
            None => unreachable!("a tree shows as many tensors as it replaces"),
        });
        let results = trace::mapped(|| (self.function)(&given)).into_tree()?;
        let roots = results.leaves();
        let goals = self.goals(&roots)?;
        let replayed = replay.run(&roots)?;
        let finished = roots.iter().zip(&replayed).zip(goals);
        let finished = finished.map(|((root, value), place)| {
            let whole = replay.whole(value)?;
            placed(root, &whole, place, axis.name.as_ref())
        });
        let finished: Vec<Tensor> = finished.collect::<Result<_, TensorError>>()?;
        let mut finished = finished.into_iter();
        Ok(results.replace(&mut |_| {
            let next = finished.next();
            next.expect("a tree shows as many tensors as it replaces")
        }))
    }

    /// The place of the mapped axis in each tensor of the arguments.
    fn places(&self, leaves: &[Tensor]) -> Result<Vec<Option<usize>>, TensorError> {
        match &self.over {
            Over::First => {
                let first =
                    |leaf: &Tensor| axis_place("vmap", leaf.shape(), &AxisRef::At(0)).map(Some);
                leaves.iter().map(first).collect()
            }
            Over::Each(axes) if axes.len() != leaves.len() => Err(refuse(format!(
                "axes are given for {} tensors, and the arguments have {}",
                axes.len(),
                leaves.len()
            ))),
            Over::Each(axes) => {
                let pairs = leaves.iter().zip(axes);
                let place = |(leaf, axis): (&Tensor, &Option<AxisRef>)| {
                    let axis = axis.as_ref();
                    axis.map(|axis| axis_place("vmap", leaf.shape(), axis))
                        .transpose()
                };
                pairs.map(place).collect()
            }
            Over::Named(name) => {
                let places: Vec<_> = leaves.iter().map(|leaf| leaf.shape().find(name)).collect();
                match places.iter().any(Option::is_some) {
                    true => Ok(places),
                    false => Err(refuse(format!("no argument has an axis `{name}`"))),
                }
            }
        }
    }

    /// The place of the axis in each result.
    fn goals(&self, roots: &[Tensor]) -> Result<Vec<usize>, TensorError> {
        if let To::Each(places) = &self.to
            && places.len() != roots.len()
        {
            return Err(refuse(format!(
                "places are given for {} results, and the function gives {}",
                places.len(),
                roots.len()
            )));
        }
        let goal = |(at, root): (usize, &Tensor)| {
            root.check()?;
            let place = match &self.to {
                To::All(place) => *place,
                To::Each(places) => places[at],
            };
            let rank = root.rank() as i64;
            let found = if place < 0 { place + rank + 1 } else { place };
            match (0..=rank).contains(&found) {
                true => Ok(found as usize),
                false => {
                    let reason = format!(
                        "the mapped axis of a result stands at a place from 0 to {rank}, not {place}"
                    );
                    Err(refuse_shape("vmap", root.shape(), reason))
                }
            }
        };
        roots.iter().enumerate().map(goal).collect()
    }
}

#[track_caller]
fn refuse(reason: impl Into<String>) -> TensorError {
    TensorError::new(ErrorKind::Argument {
        op: "vmap".to_owned(),
        reason: reason.into(),
    })
}

/// The mapped axis: the size that all have, and the name, if those that have one agree.
#[track_caller]
fn mapped_axis(leaves: &[Tensor], places: &[Option<usize>]) -> Result<Axis, TensorError> {
    let mut found: Option<(usize, &Axis)> = None;
    let (mut name, mut agree) = (None::<Arc<str>>, true);
    for (at, (leaf, place)) in leaves.iter().zip(places).enumerate() {
        let Some(place) = place else { continue };
        let axis = &leaf.shape().axes()[*place];
        match (&name, &axis.name) {
            (Some(name), Some(other)) => agree &= name == other,
            (None, Some(other)) => name = Some(Arc::clone(other)),
            (_, None) => {}
        }
        let Some((first, mapped)) = found else {
            found = Some((at, axis));
            continue;
        };
        if !size::equate(&mapped.size, &axis.size) {
            return Err(refuse(format!(
                "mapped axes have one size: it is {mapped} in argument {first}, {}, and {axis} in argument {at}, {}",
                leaves[first].shape(),
                leaf.shape()
            )));
        }
    }
    match found {
        Some((_, axis)) => Ok(Axis {
            name: name.filter(|_| agree),
            size: axis.size.clone(),
        }),
        None => Err(refuse(
            "nothing is mapped; give at least one argument an axis, or call the function itself",
        )),
    }
}

/// A tensor that stands for the elements of another at any one place of an axis.
#[track_caller]
pub(crate) fn without(leaf: &Tensor, place: usize) -> Tensor {
    let mut shape = leaf.shape().clone();
    shape.0.remove(place);
    stand_in(shape, leaf)
}

/// A tensor that stands for another of a shape. No trace has so many arguments: it is never taken for one of
/// those.
#[track_caller]
pub(crate) fn stand_in(shape: Shape, like: &Tensor) -> Tensor {
    Tensor::make(Kind::Argument(usize::MAX), &[], shape, like.dtype())
}

/// The tensor with an axis in front, without its name, which the function may use for another.
#[track_caller]
pub(crate) fn in_front(leaf: &Tensor, place: usize) -> Tensor {
    let mut shape = leaf.shape().clone();
    shape.0[place].name = None;
    let leaf = leaf.in_place(shape);
    if place == 0 {
        return leaf;
    }
    let rest = (0..leaf.rank()).filter(|axis| *axis != place);
    let order: Vec<usize> = std::iter::once(place).chain(rest).collect();
    leaf.turned(&order)
}

/// A result with the axis at its place, under its name. `root` is the result for one example.
#[track_caller]
fn placed(
    root: &Tensor,
    whole: &Tensor,
    place: usize,
    name: Option<&Arc<str>>,
) -> Result<Tensor, TensorError> {
    let mut order: Vec<usize> = (1..whole.rank()).collect();
    order.insert(place, 0);
    let moved = match place {
        0 => whole.clone(),
        _ => whole.turned(&order),
    };
    let Some(name) = name else { return Ok(moved) };
    if root.shape().find(name).is_some() {
        let reason = format!(
            "the mapped axis is called `{name}`, and so is one of the result for a single example; rename one"
        );
        return Err(refuse_shape("vmap", root.shape(), reason));
    }
    let mut shape = moved.shape().clone();
    shape.0[place].name = Some(Arc::clone(name));
    Ok(moved.in_place(shape))
}

/// A shape with the mapped axis in front.
pub(crate) fn with_axis(size: &Expr, shape: &Shape) -> Shape {
    let first = Axis {
        name: None,
        size: size.clone(),
    };
    Shape::new(std::iter::once(first).chain(shape.axes().iter().cloned()))
}

impl<I, O, F> std::fmt::Debug for Vmap<I, O, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let over = match &self.over {
            Over::First => "all first axes".to_owned(),
            Over::Each(axes) => format!("{axes:?}"),
            Over::Named(name) => format!("`{name}`"),
        };
        write!(f, "Vmap(over {over})")
    }
}
