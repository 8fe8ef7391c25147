//! Steps as a loop: a formula that depends on itself one step back.
//!
//! A step is called once, with tensors that stand for what it carries and for the elements of one step. What it gives is
//! made once more with the steps as an axis in front, as `vmap` does; there, what is carried is a [`Kind::Previous`]: the
//! value that the formula for the next carried one has one step back. Formulas have no cycles, so the two are tied
//! together from outside: all that leaves the loop is a [`Kind::Recurred`], whose operands are the value and then, for
//! everything that is carried, its formula and what stands for it one step back.

use crate::control::MAX_UNROLLED;
use crate::error::{ErrorKind, TensorError};
use crate::node::{Kind, Tensor, View};
use crate::ops::select;
use crate::shape::{Axis, Places, Shape};
use crate::size::axis_index;
use crate::trace;
use crate::tree::Tree;
use crate::vmap::{Replay, Value, in_front, stand_in, with_axis, without};
use loopwright_ops::{DType, Op, Scalar};
use loopwright_symbolic::Expr;
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

/// Something that is carried: its formula, and what stands for it one step back.
#[derive(Clone)]
pub(crate) struct Carried {
    pub(crate) next: Tensor,
    pub(crate) previous: Tensor,
}

impl Tensor {
    /// The value one step back along an axis, or one step on, of what a loop carries; zero before the first.
    #[track_caller]
    pub(crate) fn previous(shape: Shape, dtype: DType, over: usize, reverse: bool) -> Tensor {
        Tensor::make(Kind::Previous { over, reverse }, &[], shape, dtype)
    }

    /// A value that loops compute, for all that is outside of them.
    #[track_caller]
    pub(crate) fn recurred(&self, carried: &[Carried]) -> Tensor {
        let mut inputs = vec![self];
        for carried in carried {
            inputs.extend([&carried.next, &carried.previous]);
        }
        Tensor::make(Kind::Recurred, &inputs, self.shape().clone(), self.dtype())
    }

    /// What the loops carry that compute this value; nothing where it is not what leaves them.
    pub(crate) fn carried(&self) -> Vec<Carried> {
        let Kind::Recurred = self.node.kind else {
            return Vec::new();
        };
        let pair = |pair: &[Tensor]| Carried {
            next: pair[0].clone(),
            previous: pair[1].clone(),
        };
        self.node.inputs[1..].chunks_exact(2).map(pair).collect()
    }
}

#[track_caller]
fn refuse(reason: impl Into<String>) -> TensorError {
    TensorError::new(ErrorKind::Argument {
        op: "scan".to_owned(),
        reason: reason.into(),
    })
}

/// No steps of a step that cannot be a part of a loop: it is called once, for the shapes of its outputs.
///
/// # Errors
/// Where the step is wrong by itself.
#[track_caller]
pub(crate) fn without_steps<C: Tree, X: Tree, Y: Tree>(
    first: &C,
    xs: &X,
    (size, places): (&Expr, &[usize]),
    step: impl Fn(&C, &X) -> (C, Y),
    alike: impl Fn(&C, &C) -> Result<(), TensorError>,
) -> Result<(C, Y), TensorError> {
    let given = first.replace(&mut |leaf| stand_in(leaf.shape().clone(), leaf));
    let mut at = 0;
    let x = xs.replace(&mut |leaf| {
        at += 1;
        without(leaf, places[at - 1])
    });
    let (after, output) = trace::mapped(|| step(&given, &x));
    alike(first, &after)?;
    for tensor in after.leaves().iter().chain(&output.leaves()) {
        tensor.check()?;
    }
    let empty = |leaf: &Tensor| Tensor::zeros(with_axis(size, leaf.shape()), leaf.dtype());
    Ok((
        first.replace(&mut Tensor::clone),
        output.replace(&mut |leaf| empty(leaf)),
    ))
}

/// Steps along an axis of this size as one loop. `places` says where the axis is in each tensor of `xs`.
///
/// # Errors
/// Where a step cannot be a part of a loop, or is wrong by itself.
#[track_caller]
pub(crate) fn looped<C: Tree, X: Tree, Y: Tree>(
    first: &C,
    xs: &X,
    (size, places): (&Expr, &[usize]),
    step: impl Fn(&C, &X) -> (C, Y),
    alike: impl Fn(&C, &C) -> Result<(), TensorError>,
) -> Result<(C, Y), TensorError> {
    if trace::is_scanned() {
        let reason = match size.as_const() {
            None => "its number of steps is not known".to_owned(),
            Some(steps) => format!("it has {steps} steps, and {MAX_UNROLLED} are the most"),
        };
        return Err(refuse(format!(
            "a loop inside the step of another is written out, and {reason}"
        )));
    }
    let mut replay = Replay::new(size.clone());
    let is_first = first_step(size)?;
    let mut previous = Vec::new();
    let given = first.replace(&mut |leaf| {
        let here = stand_in(leaf.shape().clone(), leaf);
        let wide = with_axis(size, leaf.shape());
        let before = Tensor::previous(wide.clone(), leaf.dtype(), 0, false);
        previous.push(before.clone());
        let behind: Places = std::iter::once(None)
            .chain((0..leaf.rank()).map(Some))
            .collect();
        let steps: Places = std::iter::once(Some(0))
            .chain((0..leaf.rank()).map(|_| None))
            .collect();
        let start = leaf.spread(&wide, &behind);
        let is_first = is_first.spread(&wide, &steps);
        let operands = [&is_first, &start, &before];
        let value = Tensor::make(Kind::Map(Op::Select), &operands, wide, leaf.dtype());
        replay.stand_for(&here, Value::mapped(value));
        here
    });
    let mut at = 0;
    let x = xs.replace(&mut |leaf| {
        at += 1;
        let here = without(leaf, places[at - 1]);
        replay.stand_for(&here, Value::mapped(in_front(leaf, places[at - 1])));
        here
    });
    let (after, output) = trace::scanned(|| step(&given, &x));
    alike(first, &after)?;
    let (nexts, outputs) = (after.leaves(), output.leaves());
    for tensor in nexts.iter().chain(&outputs) {
        tensor.check()?;
    }
    let roots: Vec<Tensor> = nexts.iter().chain(&outputs).cloned().collect();
    let whole = replay.run(&roots)?;
    let whole: Vec<Tensor> = whole
        .iter()
        .map(|value| replay.whole(value))
        .collect::<Result<_, _>>()?;
    let pairs = whole.iter().zip(&previous);
    let carried: Vec<Carried> = pairs
        .map(|(next, previous)| Carried {
            next: next.clone(),
            previous: previous.clone(),
        })
        .collect();
    if let Some(reason) = why_not_a_loop(&whole, &carried) {
        return Err(refuse(reason));
    }
    // All at once: gradients of what leaves a loop meet at the first of them.
    let leaving: Vec<Tensor> = whole.iter().map(|value| value.recurred(&carried)).collect();
    let (last, all) = leaving.split_at(nexts.len());
    let mut at = 0;
    let after = after.replace(&mut |_| {
        at += 1;
        let start = &first.leaves()[at - 1];
        last_of(&last[at - 1], size, start)
    });
    let mut all = all.iter();
    let output = output.replace(&mut |_| all.next().cloned().unwrap_or_else(|| Tensor::scalar(0)));
    Ok((after, output))
}

/// Whether a step is the first one, for each of them.
fn first_step(size: &Expr) -> Result<Tensor, TensorError> {
    let steps = Shape::new([Axis {
        name: None,
        size: size.clone(),
    }]);
    let index = Tensor::make(Kind::Index, &[], steps, DType::I64);
    let first = Tensor::map(Op::Eq, &[&index, &index.zeros_like()]);
    first.check()?;
    Ok(first)
}

/// The value after the last step, which is what a loop starts from where there are none.
#[track_caller]
fn last_of(all: &Tensor, size: &Expr, start: &Tensor) -> Tensor {
    let Ok(last) = size.sub(&Expr::constant(1)) else {
        return Tensor::of_error(refuse("there are too many steps"));
    };
    let known = size.as_const();
    let map = std::iter::once(last)
        .chain((0..start.rank()).map(axis_index))
        .collect();
    let view = View {
        outside: known.is_none().then(|| Scalar::zero(all.dtype())),
        ..View::inside(map)
    };
    let last = all.view(view, start.shape().clone());
    match known {
        Some(_) => last,
        None => {
            let steps = Tensor::make(Kind::Size(size.clone()), &[], Shape::scalar(), DType::I64);
            select(&steps.gt(&Tensor::scalar(0i64)), &last, start)
        }
    }
}

/// Why formulas cannot be computed one step after the other, if they cannot.
fn why_not_a_loop(roots: &[Tensor], carried: &[Carried]) -> Option<String> {
    let starts = carried.iter().map(|carried| carried.previous.node.id);
    let mut inside: FxHashSet<u64> = starts.collect();
    let first = inside.iter().min().copied()?;
    let mut seen = FxHashSet::default();
    let mut open: Vec<Tensor> = roots.to_vec();
    let mut found: Vec<Tensor> = Vec::new();
    while let Some(tensor) = open.pop() {
        if tensor.node.id > first && seen.insert(tensor.node.id) {
            open.extend(tensor.node.inputs.iter().cloned());
            found.push(tensor);
        }
    }
    found.sort_unstable_by_key(|tensor| tensor.node.id);
    for tensor in found {
        let node = &tensor.node;
        let is_inside = |input: &Tensor| inside.contains(&input.node.id);
        if !node.inputs.iter().any(is_inside) {
            continue;
        }
        match &node.kind {
            Kind::Scatter { .. } => {
                return Some(
                    "a step scatters into something that depends on what is carried".to_owned(),
                );
            }
            // Its gradient scatters.
            Kind::Gather { .. } if is_inside(&node.inputs[0]) => {
                return Some(
                    "a step gathers from something that depends on what is carried".to_owned(),
                );
            }
            Kind::Recurred | Kind::Previous { .. } => {
                return Some("a step has a loop of its own".to_owned());
            }
            _ => {}
        }
        inside.insert(node.id);
    }
    None
}

/// What the loops carry that compute any of these, each once.
pub(crate) fn carried_by<'a>(tensors: impl Iterator<Item = &'a Tensor>) -> Vec<Carried> {
    let mut seen = FxHashSet::default();
    let mut all = Vec::new();
    for tensor in tensors {
        for carried in tensor.carried() {
            if seen.insert(carried.previous.node.id) {
                all.push(carried);
            }
        }
    }
    all
}

/// The previous values that a tensor that leaves loops is tied to, as a key: loops are the same if these are.
pub(crate) fn loops_of(tensor: &Tensor) -> SmallVec<[u64; 4]> {
    let carried = tensor.carried().into_iter();
    carried.map(|carried| carried.previous.node.id).collect()
}
