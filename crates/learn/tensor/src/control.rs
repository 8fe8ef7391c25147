//! Control flow that depends on values.
//!
//! A formula has no branches. What depends on values is chosen among results that are both computed
//! ([`choose`]), repeated a number of times that is known ([`scan`], [`repeat_at_most`]), or repeated from
//! outside by a loop whose body is compiled once ([`scan_values`], [`while_loop`]).
//!
//! | | in a function that is traced | gradients | steps |
//! | --- | --- | --- | --- |
//! | [`choose`] | yes | yes | both sides are computed |
//! | [`scan`] | yes | yes | any number, a loop of the program |
//! | [`repeat_at_most`] | yes | yes | part of the program, at most [`MAX_UNROLLED`] |
//! | [`scan_values`] | no | no | any number, one compiled body |
//! | [`while_loop`] | no | no | any number, one compiled body |

use crate::buffer::Buffer;
use crate::error::{ErrorKind, TensorError};
use crate::jit::{Jit, jit};
use crate::node::Tensor;
use crate::ops::{AxisRef, axis_place, realize, select, stack};
use crate::recurrence::{looped, without_steps};
use crate::shape::{Axis, Shape};
use crate::size;
use crate::trace;
use crate::tree::Tree;
use loopwright_graph::Array;
use loopwright_ops::DType;
use loopwright_symbolic::Expr;
use std::sync::Arc;

/// How many steps a loop that becomes a part of a program can have: a program grows with its steps, and so
/// does the time to compile it.
pub const MAX_UNROLLED: usize = 1024;

fn refuse(op: &str, reason: impl Into<String>) -> ErrorKind {
    ErrorKind::Argument {
        op: op.to_owned(),
        reason: reason.into(),
    }
}

/// What can be chosen of two results is a single bool.
#[track_caller]
fn check_condition(op: &str, condition: &Tensor) -> Result<(), TensorError> {
    condition.check()?;
    if condition.dtype() == DType::Bool && condition.rank() == 0 {
        return Ok(());
    }
    let reason = format!(
        "the condition is a single bool, not {}{}; fold it, for example with `.any(..)` or `.all(..)`",
        condition.dtype(),
        condition.shape()
    );
    Err(TensorError::new(refuse(op, reason)))
}

/// Refuses what a step gives if it is not like what it was given.
#[track_caller]
fn check_alike<C: Tree>(op: &str, before: &C, after: &C) -> Result<(), TensorError> {
    let (before, after) = (before.leaves(), after.leaves());
    if before.len() != after.len() {
        let reason = format!(
            "a step was given {} tensors and gave {}",
            before.len(),
            after.len()
        );
        return Err(TensorError::new(refuse(op, reason)));
    }
    for (at, (before, after)) in before.iter().zip(&after).enumerate() {
        after.check()?;
        let axes = before.shape().axes().iter().zip(after.shape().axes());
        let alike = before.dtype() == after.dtype()
            && before.rank() == after.rank()
            && axes
                .into_iter()
                .all(|(a, b)| a.name == b.name && size::equate(&a.size, &b.size));
        if !alike {
            return Err(TensorError::new(ErrorKind::Shapes {
                op: op.to_owned(),
                left: format!("{}{}", before.dtype(), before.shape()),
                right: format!("{}{}", after.dtype(), after.shape()),
                reason: format!(
                    "what a step carries keeps its dtype and shape; tensor {at} did not"
                ),
            }));
        }
    }
    Ok(())
}

/// `a` where the condition, a single bool, holds, else `b`: for things made of several tensors. Both are
/// computed; [`select`] chooses element by element.
///
/// # Errors
/// Where the condition is none, or the two are not alike.
#[track_caller]
pub fn choose<T: Tree>(condition: &Tensor, a: &T, b: &T) -> Result<T, TensorError> {
    check_condition("choose", condition)?;
    check_alike("choose", a, b)?;
    let others = b.leaves();
    let mut at = 0;
    Ok(a.replace(&mut |leaf| {
        at += 1;
        select(condition, leaf, &others[at - 1])
    }))
}

/// The axis that steps go along: its size, and its place in each tensor.
#[track_caller]
fn steps_along<X: Tree>(
    op: &str,
    xs: &X,
    axis: &AxisRef,
) -> Result<(Expr, Vec<usize>), TensorError> {
    let (mut length, mut places): (Option<Expr>, Vec<usize>) = (None, Vec::new());
    for leaf in xs.leaves() {
        leaf.check()?;
        let place = axis_place(op, leaf.shape(), axis)?;
        let size = &leaf.shape().axes()[place].size;
        match &length {
            Some(length) if !size::equate(length, size) => {
                let shown = |size: &Expr| match size.as_const() {
                    Some(size) => size.to_string(),
                    None => "an unknown number of".to_owned(),
                };
                let reason = format!(
                    "one tensor has {} steps and another {}",
                    shown(length),
                    shown(size)
                );
                return Err(TensorError::new(refuse(op, reason)));
            }
            Some(_) => {}
            None => length = Some(size.clone()),
        }
        places.push(place);
    }
    match length {
        Some(length) => Ok((length, places)),
        None => {
            let reason =
                "there is no tensor to step along; `repeat_at_most` and `while_loop` need none";
            Err(TensorError::new(refuse(op, reason)))
        }
    }
}

/// How many steps there are along an axis that all tensors have, and its place in each of them.
#[track_caller]
fn steps<X: Tree>(op: &str, xs: &X, axis: &AxisRef) -> Result<(usize, Vec<usize>), TensorError> {
    let (mut length, mut places) = (None, Vec::new());
    for leaf in xs.leaves() {
        leaf.check()?;
        let place = axis_place(op, leaf.shape(), axis)?;
        let Some(size) = leaf.shape().axes()[place].known() else {
            let reason = format!(
                "the size of axis {place} of {} is not known, and there is a step for each element",
                leaf.shape()
            );
            return Err(TensorError::new(refuse(op, reason)));
        };
        match length {
            Some(length) if length != size => {
                let reason = format!("one tensor has {length} steps and another {size}");
                return Err(TensorError::new(refuse(op, reason)));
            }
            _ => length = Some(size),
        }
        places.push(place);
    }
    match length {
        Some(length) => Ok((length, places)),
        None => {
            let reason =
                "there is no tensor to step along; `repeat_at_most` and `while_loop` need none";
            Err(TensorError::new(refuse(op, reason)))
        }
    }
}

/// The elements of all tensors at a step.
#[track_caller]
fn at_step<X: Tree>(xs: &X, places: &[usize], step: usize) -> X {
    let mut leaf = 0;
    xs.replace(&mut |x| {
        let place = places[leaf];
        leaf += 1;
        x.narrow(place, step, 1).squeeze(place)
    })
}

/// What the steps gave, along a new first axis.
#[track_caller]
fn stacked<Y: Tree>(outputs: &[Y]) -> Option<Y> {
    let first = outputs.first()?;
    let leaves: Vec<Vec<Tensor>> = outputs.iter().map(Tree::leaves).collect();
    let mut at = 0;
    Some(first.replace(&mut |_| {
        let parts: Vec<&Tensor> = leaves.iter().map(|leaves| &leaves[at]).collect();
        at += 1;
        stack(&parts, 0)
    }))
}

#[track_caller]
fn check_length(op: &str, length: usize, otherwise: &str) -> Result<(), TensorError> {
    if length == 0 {
        return Err(TensorError::new(refuse(op, "there are no steps")));
    }
    if length > MAX_UNROLLED {
        let reason = format!(
            "{length} steps would become a part of the program, and {MAX_UNROLLED} are the most; {otherwise}"
        );
        return Err(TensorError::new(refuse(op, reason)));
    }
    Ok(())
}

/// Steps along an axis: `step` gets what it carries and the elements at its place, and gives what it
/// carries on and an output. Gives what is carried at the end, and all outputs along a new first axis.
///
/// The steps become a loop of the program, of any length, which may be known only when it runs: a step is called once, with
/// tensors that stand for those of any one step. It can be traced and has gradients, which are a loop the other way;
/// what that reads of every step is kept in memory.
///
/// A step that has a loop of its own, scatters, gathers from what is carried, sets a variable or asks for a value is written
/// out instead, once for each of at most [`MAX_UNROLLED`] steps.
///
/// ```
/// # use loopwright_x86 as _;
/// use loopwright_tensor::{Tensor, scan};
///
/// let x = Tensor::from([1.0f32, 2.0, 3.0]);
/// let decay = Tensor::scalar(0.5);
/// let (last, all) = scan(&Tensor::scalar(0.0), &x, 0, |state, x| {
///     let next = state * &decay + x;
///     (next.clone(), next)
/// })?;
/// assert_eq!(all.to_vec::<f32>()?, [1.0, 2.5, 4.25]);
/// let [slope] = last.gradients([&decay]);
/// assert_eq!(slope.item()?, 3.0); // of 0.5² + 2 · 0.5 + 3
/// # Ok::<(), loopwright_tensor::TensorError>(())
/// ```
///
/// # Errors
/// Where tensors do not have the axis, differ in their numbers of steps or have too many, or a step carries
/// on something that is not like what it was given.
#[track_caller]
pub fn scan<C: Tree, X: Tree, Y: Tree>(
    first: &C,
    xs: &X,
    axis: impl Into<AxisRef>,
    step: impl Fn(&C, &X) -> (C, Y),
) -> Result<(C, Y), TensorError> {
    let (length, places) = steps_along("scan", xs, &axis.into())?;
    let known = length
        .as_const()
        .and_then(|length| usize::try_from(length).ok());
    if known == Some(1) {
        return written_out(first, xs, &places, 1, step);
    }
    let alike = |before: &C, after: &C| check_alike("scan", before, after);
    let looped = looped(first, xs, (&length, &places), &step, alike);
    let of_none = || without_steps(first, xs, (&length, &places), &step, alike);
    match (looped, known) {
        (Ok((_, outputs)), Some(0)) => Ok((first.replace(&mut Tensor::clone), outputs)),
        (Ok(found), _) => Ok(found),
        // What cannot be a loop is written out; where the step itself is wrong, that says so.
        (Err(error), None) => Err(error),
        (Err(_), Some(0)) => of_none(),
        (Err(error), Some(length)) if length > MAX_UNROLLED => Err(error),
        (Err(_), Some(length)) => written_out(first, xs, &places, length, step),
    }
}

/// Steps that are a part of the formula one by one.
#[track_caller]
fn written_out<C: Tree, X: Tree, Y: Tree>(
    first: &C,
    xs: &X,
    places: &[usize],
    length: usize,
    step: impl Fn(&C, &X) -> (C, Y),
) -> Result<(C, Y), TensorError> {
    let mut carried: Option<C> = None;
    let mut outputs = Vec::with_capacity(length);
    for at in 0..length {
        let before = carried.as_ref().unwrap_or(first);
        let (after, output) = step(before, &at_step(xs, places, at));
        check_alike("scan", before, &after)?;
        outputs.push(output);
        carried = Some(after);
    }
    finished(carried, outputs)
}

#[track_caller]
fn finished<C, Y: Tree>(carried: Option<C>, outputs: Vec<Y>) -> Result<(C, Y), TensorError> {
    let carried = carried.expect("there is at least one step");
    let outputs = stacked(&outputs).expect("there is at least one step");
    let mut wrong = None;
    outputs.visit(&mut |leaf| {
        if let Err(error) = leaf.check() {
            wrong.get_or_insert(error);
        }
    });
    match wrong {
        Some(error) => Err(error),
        None => Ok((carried, outputs)),
    }
}

/// As [`scan`] for any number of steps: the step is compiled once and called for each of them, now. The
/// results are values, through which no gradient flows; the outputs are put together on the host.
///
/// # Errors
/// As [`scan`]; in a function that is traced, where nothing is computed.
#[track_caller]
pub fn scan_values<C: Tree, X: Tree + Send + Sync + 'static, Y: Tree>(
    first: &C,
    xs: &X,
    axis: impl Into<AxisRef>,
    step: impl Fn(&C, &X) -> (C, Y) + Send + Sync + 'static,
) -> Result<(C, Y), TensorError> {
    refuse_traced("scan_values", "`scan` becomes a part of it")?;
    realize(&xs.leaves())?;
    let (length, places) = steps("scan_values", xs, &axis.into())?;
    if length == 0 {
        return Err(TensorError::new(refuse(
            "scan_values",
            "there are no steps",
        )));
    }
    // The body looks its elements up: parts at different places would be different programs.
    let whole = xs.replace(&mut Tensor::clone);
    let body = jit("scan_values", move |(carried, at): &(C, Tensor)| {
        let mut leaf = 0;
        let x = whole.replace(&mut |x| {
            leaf += 1;
            x.take(at, places[leaf - 1])
        });
        let (after, output) = step(carried, &x);
        check_alike("scan_values", carried, &after)?;
        Ok::<_, TensorError>((after, output))
    });
    let mut carried: Option<C> = None;
    let mut outputs = Vec::with_capacity(length);
    for at in 0..length {
        let before = carried.as_ref().unwrap_or(first);
        let at = Tensor::new(&[at as i64], ());
        let given = (before.replace(&mut Tensor::clone), at);
        let (after, output) = body.call(&given)?;
        outputs.push(output);
        carried = Some(after);
    }
    let outputs = stacked_values(&outputs)?;
    Ok((carried.expect("there is at least one step"), outputs))
}

/// What the steps gave, along a new first axis, as values of the host.
#[track_caller]
fn stacked_values<Y: Tree>(outputs: &[Y]) -> Result<Y, TensorError> {
    let leaves: Vec<Vec<Tensor>> = outputs.iter().map(Tree::leaves).collect();
    let mut wrong = None;
    let (mut at, first) = (0, &outputs[0]);
    let all = first.replace(&mut |leaf| {
        let place = at;
        at += 1;
        let parts = leaves.iter().map(|leaves| &leaves[place]);
        one_array(leaf, parts).unwrap_or_else(|error| {
            wrong.get_or_insert(error.clone());
            Tensor::of_error(error)
        })
    });
    wrong.map_or(Ok(all), Err)
}

#[track_caller]
fn one_array<'a>(
    like: &Tensor,
    parts: impl ExactSizeIterator<Item = &'a Tensor>,
) -> Result<Tensor, TensorError> {
    let mut shape = Shape::new([Axis::of(parts.len())]);
    shape.0.extend(like.shape().axes().iter().cloned());
    let mut sizes = vec![parts.len()];
    sizes.extend(like.sizes()?);
    let mut bytes = Vec::new();
    for part in parts {
        bytes.extend_from_slice(part.array()?.bytes());
    }
    let array = Array::from_bytes(like.dtype(), &sizes, &bytes);
    let array = array.expect("as many bytes as all the parts have");
    Ok(Tensor::of_buffer(Buffer::of_array(array), shape))
}

#[track_caller]
fn refuse_traced(op: &str, otherwise: &str) -> Result<(), TensorError> {
    if !trace::has_stand_ins() {
        return Ok(());
    }
    let function = trace::name();
    let reason = format!(
        "it computes values, which are not known while `{function}` is traced; {otherwise}, or call this outside of the function"
    );
    Err(TensorError::new(refuse(op, reason)))
}

/// Repeats a step as long as a condition holds, at most `most` times.
///
/// All steps become a part of the formula, each of which keeps what it was given where the condition no
/// longer holds: it can be traced and has gradients. So all of them are computed, and there are at most
/// [`MAX_UNROLLED`]. A step should be harmless where the condition does not hold: a gradient that is no
/// number there is one everywhere.
///
/// # Errors
/// Where the condition is not a single bool, or a step gives something that is not like what it was given.
#[track_caller]
pub fn repeat_at_most<C: Tree>(
    most: usize,
    first: &C,
    condition: impl Fn(&C) -> Tensor,
    step: impl Fn(&C) -> C,
) -> Result<C, TensorError> {
    check_length(
        "repeat_at_most",
        most,
        "use `while_loop`, which needs no gradient",
    )?;
    let mut carried = first.replace(&mut Tensor::clone);
    // A condition that did not hold once does not hold again.
    let mut holds: Option<Tensor> = None;
    for _ in 0..most {
        let now = condition(&carried);
        check_condition("repeat_at_most", &now)?;
        let now = match &holds {
            Some(before) => before & &now,
            None => now,
        };
        let after = step(&carried);
        check_alike("repeat_at_most", &carried, &after)?;
        carried = choose(&now, &after, &carried)?;
        holds = Some(now);
    }
    Ok(carried)
}

/// A loop that runs as long as a condition on what it carries holds; made by [`repeat_while`].
pub struct WhileLoop<C: Tree> {
    condition: Jit<C, Result<Tensor, TensorError>>,
    /// A step, and whether another one follows.
    step: Jit<C, Result<(C, Tensor), TensorError>>,
}

/// A loop that runs as long as a condition on what it carries holds. The condition and the step are
/// compiled once, as one program that runs once for every step.
///
/// ```
/// # use loopwright_x86 as _;
/// use loopwright_tensor::{Tensor, repeat_while};
///
/// // The square root by Newton's method, to the last digit.
/// let root = repeat_while(
///     "root",
///     |(x, guess): &(Tensor, Tensor)| (guess * guess - x).abs().gt(&(x * 1e-15)),
///     |(x, guess)| (x.clone(), (guess + x / guess) * 0.5),
/// );
/// for x in [2.0f64, 9.0] {
///     let x = Tensor::from([x]).sum(..);
///     let (_, found) = root.call(&(x.clone(), x.clone()))?;
///     assert!((found.item()? - x.item()?.sqrt()).abs() < 1e-12);
/// }
/// # Ok::<(), loopwright_tensor::TensorError>(())
/// ```
pub fn repeat_while<C: Tree>(
    name: &str,
    condition: impl Fn(&C) -> Tensor + Send + Sync + 'static,
    step: impl Fn(&C) -> C + Send + Sync + 'static,
) -> WhileLoop<C> {
    let holds = Arc::new(move |carried: &C| {
        let holds = condition(carried);
        check_condition("while_loop", &holds)?;
        Ok::<_, TensorError>(holds)
    });
    let again = Arc::clone(&holds);
    WhileLoop {
        condition: jit(&format!("{name}, condition"), move |carried: &C| {
            holds(carried)
        }),
        step: jit(name, move |carried: &C| {
            let after = step(carried);
            check_alike("while_loop", carried, &after)?;
            let holds = again(&after)?;
            Ok((after, holds))
        }),
    }
}

impl<C: Tree> WhileLoop<C> {
    /// Runs the loop, and gives what it carries when the condition no longer holds. It is computed now;
    /// no gradient flows through it.
    ///
    /// # Errors
    /// Where the condition is not a single bool, a step gives something that is not like what it was
    /// given, and in a function that is traced, where nothing is computed.
    #[track_caller]
    pub fn call(&self, first: &C) -> Result<C, TensorError> {
        refuse_traced("while_loop", "`repeat_at_most` becomes a part of it")?;
        let mut goes_on = self.condition.call(first)?.item()? != 0.0;
        let mut carried = first.replace(&mut Tensor::clone);
        while goes_on {
            let (after, holds) = self.step.call(&carried)?;
            carried = after;
            goes_on = holds.item()? != 0.0;
        }
        Ok(carried)
    }
}

/// Repeats a step as long as a condition holds: [`repeat_while`] for a loop that runs once.
///
/// # Errors
/// As [`WhileLoop::call`].
#[track_caller]
pub fn while_loop<C: Tree>(
    first: &C,
    condition: impl Fn(&C) -> Tensor + Send + Sync + 'static,
    step: impl Fn(&C) -> C + Send + Sync + 'static,
) -> Result<C, TensorError> {
    repeat_while("while_loop", condition, step).call(first)
}

impl<C: Tree> std::fmt::Debug for WhileLoop<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "WhileLoop({:?})", self.step)
    }
}
