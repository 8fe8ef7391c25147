//! Gradients: reverse mode on the lazy program.
//!
//! A gradient is a tensor like any other, made of the ops of the table; so gradients of gradients, and
//! products with Jacobians from either side, are the same code again.
//!
//! The rules: of ops in `elementwise.rs`; of reductions and scans in `fold.rs`; of views, and so of windows and convolutions, in
//! `view.rs`; of scatters in `scatter.rs`; of loops over steps in `recurrence.rs`.

mod elementwise;
mod fold;
mod functions;
mod recurrence;
mod scatter;
mod view;

pub use functions::{grad, hessian, jacobian, jacobian_forward, value_and_grad};
pub(crate) use view::part as flow_through_view;

use crate::error::{ErrorKind, TensorError};
use crate::node::{Kind, Mark, Tensor};
use crate::ops::failure;
use crate::recurrence::loops_of;
use crate::size;
use loopwright_ops::ReduceOp;
use rustc_hash::{FxHashMap, FxHashSet};
use scatter::Scatter;
use smallvec::SmallVec;
use std::sync::Arc;

/// The gradients of operands: `None` where there is none, or it is zero.
pub(crate) type Parts = SmallVec<[Option<Tensor>; 3]>;

impl Tensor {
    /// The gradient of this number with respect to tensors that it is made of. For those that it does not
    /// depend on, zeros.
    ///
    /// ```
    /// # use loopwright_x86 as _;
    /// use loopwright_tensor::Tensor;
    ///
    /// let x = Tensor::from([1.0f32, 2.0, 3.0]);
    /// let y = (&x * &x).sum(..);
    /// let [dx] = y.gradients([&x]);
    /// assert_eq!(dx.to_vec::<f32>()?, [2.0, 4.0, 6.0]);
    /// # Ok::<(), loopwright_tensor::TensorError>(())
    /// ```
    #[track_caller]
    pub fn gradients<const N: usize>(&self, of: [&Tensor; N]) -> [Tensor; N] {
        let gradients = self.gradients_of(&of);
        gradients
            .try_into()
            .unwrap_or_else(|_| unreachable!("as many as were asked for"))
    }

    /// As [`Tensor::gradients`], for any number of tensors.
    #[track_caller]
    pub fn gradients_of(&self, of: &[&Tensor]) -> Vec<Tensor> {
        if let Some(failed) = failure(&[self]) {
            return vec![failed; of.len()];
        }
        if self.rank() != 0 {
            let error = TensorError::new(ErrorKind::Gradient {
                reason: format!(
                    "the gradient of a single number can be taken, and this is {}; fold it first (`.sum(..)`, `.mean(..)`), or use `vjp`",
                    self.shape()
                ),
            });
            return vec![Tensor::of_error(error); of.len()];
        }
        self.vjp(&self.ones_like(), of)
    }

    /// The product of a gradient of this tensor with its Jacobian: the gradient of `(self * weight).sum(..)`.
    #[track_caller]
    pub fn vjp(&self, weight: &Tensor, of: &[&Tensor]) -> Vec<Tensor> {
        if let Some(failed) = failure(&[self, weight]) {
            return vec![failed; of.len()];
        }
        if !self.dtype().is_float() {
            let error = TensorError::new(ErrorKind::Gradient {
                reason: format!("{} has no derivative; it is taken of floats", self.dtype()),
            });
            return vec![Tensor::of_error(error); of.len()];
        }
        if !is_like(weight, self) {
            let error = TensorError::new(ErrorKind::Shapes {
                op: "vjp".to_owned(),
                left: format!("{}{}", self.dtype(), self.shape()),
                right: format!("{}{}", weight.dtype(), weight.shape()),
                reason: "the weight has to be shaped as the tensor".to_owned(),
            });
            return vec![Tensor::of_error(error); of.len()];
        }
        reverse(self, weight, of)
    }

    /// The product of the Jacobian with a direction: how the tensor changes when `of` moves along it.
    ///
    /// The product from the left is linear in its weight, and its own gradient there is this one.
    #[track_caller]
    pub fn jvp(&self, of: &[&Tensor], directions: &[&Tensor]) -> Tensor {
        if let Some(failed) = failure(&[self]) {
            return failed;
        }
        if of.len() != directions.len() {
            return Tensor::failed(ErrorKind::Argument {
                op: "jvp".to_owned(),
                reason: format!(
                    "{} directions are given for {} tensors",
                    directions.len(),
                    of.len()
                ),
            });
        }
        let weight = self.zeros_like();
        let products = self.vjp(&weight, of);
        let mut total: Option<Tensor> = None;
        for (product, direction) in products.iter().zip(directions) {
            let part = product.vjp(direction, &[&weight]).remove(0);
            total = Some(match total {
                Some(total) => total + part,
                None => part,
            });
        }
        total.unwrap_or(weight)
    }

    /// The tensor as a constant: nothing flows back through it.
    #[track_caller]
    pub fn stop_gradient(&self) -> Tensor {
        if let Some(failed) = failure(&[self]) {
            return failed;
        }
        let kind = Kind::Marked(Mark::Stop);
        Tensor::make(kind, &[self], self.shape().clone(), self.dtype())
    }

    /// Computes what this tensor is made of again where gradients need it, back to `from`, in place of
    /// keeping it: less memory for more work. What does not depend on `from` is kept.
    #[track_caller]
    pub fn recomputed(&self, from: &[&Tensor]) -> Tensor {
        let mut inputs = vec![self];
        inputs.extend(from);
        if let Some(failed) = failure(&inputs) {
            return failed;
        }
        let kind = Kind::Marked(Mark::Recompute);
        Tensor::make(kind, &inputs, self.shape().clone(), self.dtype())
    }

    /// The tensor with a gradient of its own: `gradient` gets the tensors in `of`, the value and the
    /// gradient of the value, and gives a gradient for each of `of`. Nothing else of what the tensor is
    /// made of gets one.
    #[track_caller]
    pub fn with_gradient(
        &self,
        of: &[&Tensor],
        gradient: impl Fn(&[Tensor], &Tensor, &Tensor) -> Vec<Tensor> + Send + Sync + 'static,
    ) -> Tensor {
        let mut inputs = vec![self];
        inputs.extend(of);
        if let Some(failed) = failure(&inputs) {
            return failed;
        }
        let kind = Kind::Marked(Mark::Custom(Arc::new(gradient)));
        Tensor::make(kind, &inputs, self.shape().clone(), self.dtype())
    }
}

/// Whether two tensors have the same dtype and axes, as far as their sizes are known.
fn is_like(a: &Tensor, b: &Tensor) -> bool {
    let axes = || a.shape().axes().iter().zip(b.shape().axes());
    a.dtype() == b.dtype()
        && a.rank() == b.rank()
        && axes().all(|(a, b)| a.name == b.name && size::equate(&a.size, &b.size))
}

/// All tensors that `root` is made of, whether or not they have values, operands first. What `ends` are
/// made of is left out.
fn history(root: &Tensor, ends: &FxHashSet<u64>) -> Vec<Tensor> {
    let mut seen = FxHashSet::default();
    let mut open = vec![root.clone()];
    let mut found = Vec::new();
    while let Some(tensor) = open.pop() {
        if seen.insert(tensor.node.id) {
            if !ends.contains(&tensor.node.id) {
                open.extend(tensor.node.inputs.iter().cloned());
            }
            found.push(tensor);
        }
    }
    found.sort_unstable_by_key(|tensor| tensor.node.id);
    found
}

#[track_caller]
fn reverse(root: &Tensor, weight: &Tensor, of: &[&Tensor]) -> Vec<Tensor> {
    let wanted: FxHashSet<u64> = of.iter().map(|tensor| tensor.node.id).collect();
    let order = history(root, &FxHashSet::default());
    let (none, seeds) = (FxHashSet::default(), [(root.clone(), weight.clone())]);
    match flow(&seeds, &order, &wanted, &none, &none) {
        Ok(sums) => of
            .iter()
            .map(|tensor| {
                let sum = sums.get(&tensor.node.id);
                sum.cloned().unwrap_or_else(|| tensor.zeros_like())
            })
            .collect(),
        Err(error) => vec![Tensor::of_error(error); of.len()],
    }
}

/// What flows to the tensors that are wanted, and to those on the way to them, if to each of the roots flows its weight.
/// `order` is what they are made of, operands first. Nothing flows on from `ends`. `loops` are those that are being gone
/// through, known by what they carry.
#[track_caller]
fn flow(
    seeds: &[(Tensor, Tensor)],
    order: &[Tensor],
    wanted: &FxHashSet<u64>,
    ends: &FxHashSet<u64>,
    loops: &FxHashSet<u64>,
) -> Result<FxHashMap<u64, Tensor>, TensorError> {
    // What depends on what is asked for; nothing flows anywhere else.
    let mut depends: FxHashSet<u64> = FxHashSet::default();
    for tensor in order {
        let node = &tensor.node;
        let through = match node.kind {
            Kind::Marked(Mark::Stop) => false,
            _ => node
                .inputs
                .iter()
                .any(|input| depends.contains(&input.node.id)),
        };
        if through || wanted.contains(&node.id) {
            depends.insert(node.id);
        }
    }
    let mut sums: FxHashMap<u64, Tensor> = FxHashMap::default();
    for (root, weight) in seeds {
        if depends.contains(&root.node.id) {
            let sum = match sums.remove(&root.node.id) {
                Some(sum) => sum + weight,
                None => weight.clone(),
            };
            sums.insert(root.node.id, sum);
        }
    }
    // What leaves the same loops, which are gone through once.
    let mut leaving: FxHashMap<SmallVec<[u64; 4]>, Vec<Tensor>> = FxHashMap::default();
    for tensor in order {
        let carried = loops_of(tensor);
        let inside = carried.iter().all(|previous| loops.contains(previous));
        if !carried.is_empty() && !inside {
            leaving.entry(carried).or_default().push(tensor.clone());
        }
    }
    for tensor in order.iter().rev() {
        if let Kind::Recurred = tensor.node.kind
            && let Some(group) = leaving.get(&loops_of(tensor))
        {
            // All that reads any of them is younger than the first.
            if !group.first().is_some_and(|first| first.same(tensor)) {
                continue;
            }
            let with_gradient = |tensor: &Tensor| {
                let gradient = sums.get(&tensor.node.id)?;
                Some((tensor.clone(), gradient.clone()))
            };
            let given: Vec<_> = group.iter().filter_map(with_gradient).collect();
            if given.is_empty() || ends.contains(&tensor.node.id) {
                continue;
            }
            let is_wanted = |tensor: &Tensor| depends.contains(&tensor.node.id);
            for (to, part) in recurrence::through(&given, &tensor.carried(), is_wanted)? {
                let sum = match sums.remove(&to.node.id) {
                    Some(sum) => sum + part,
                    None => part,
                };
                sums.insert(to.node.id, sum);
            }
            continue;
        }
        let Some(gradient) = sums.get(&tensor.node.id).cloned() else {
            continue;
        };
        let mut add = |to: &Tensor, part: Tensor| {
            if !depends.contains(&to.node.id) {
                return;
            }
            debug_assert!(
                part.is_failed() || part.rank() == to.rank(),
                "the gradient of {to:?} is {part:?}"
            );
            let sum = match sums.remove(&to.node.id) {
                Some(sum) => sum + part,
                None => part,
            };
            sums.insert(to.node.id, sum);
        };
        let inputs = &tensor.node.inputs;
        let leads_on = inputs.iter().any(|input| depends.contains(&input.node.id));
        if !leads_on || ends.contains(&tensor.node.id) {
            continue;
        }
        if let Kind::Marked(Mark::Recompute) = tensor.node.kind {
            for (to, part) in recompute(tensor, &gradient, wanted)? {
                add(&to, part);
            }
            continue;
        }
        for (input, part) in inputs.iter().zip(parts(tensor, &gradient)?) {
            if let Some(part) = part {
                add(input, part);
            }
        }
    }
    Ok(sums)
}

/// What flows from a tensor's gradient to its operands.
#[track_caller]
fn parts(tensor: &Tensor, gradient: &Tensor) -> Result<Parts, TensorError> {
    let node = &tensor.node;
    let inputs = &node.inputs;
    let one = |part: Tensor| Ok(Parts::from_iter([Some(part)]));
    let none = || Ok(Parts::from_elem(None, inputs.len()));
    match &node.kind {
        Kind::Failed(error) => Err(error.clone()),
        Kind::Data
        | Kind::Variable(_)
        | Kind::Argument(_)
        | Kind::Constant(_)
        | Kind::Index
        | Kind::Size(_) => none(),
        Kind::Map(op) => elementwise::parts(*op, inputs, tensor, gradient),
        Kind::Cast => match inputs[0].dtype().is_float() && node.dtype.is_float() {
            true => one(gradient.cast(inputs[0].dtype())),
            false => none(),
        },
        Kind::Previous { .. } => none(),
        // One of the loops that are being gone through.
        Kind::Recurred => {
            let mut parts = Parts::from_elem(None, inputs.len());
            parts[0] = Some(gradient.clone());
            Ok(parts)
        }
        Kind::Bitcast | Kind::ArgReduce { .. } | Kind::ArgSort { .. } => none(),
        Kind::Reduce { op, over } => match fold::reduce(*op, over, &inputs[0], tensor, gradient) {
            Some(part) => one(part),
            None => none(),
        },
        Kind::Scan {
            op,
            over,
            exclusive,
            reverse,
        } => {
            match fold::scan(
                *op, *over, *exclusive, *reverse, &inputs[0], tensor, gradient,
            )? {
                Some(part) => one(part),
                None => none(),
            }
        }
        Kind::Sort { over, descending } => {
            let order = inputs[0].argsort(*over, *descending);
            one(gradient
                .zeros_like()
                .scatter_along(&order, gradient, *over, Some(ReduceOp::Sum)))
        }
        Kind::View(view) => one(view::part(view, &inputs[0], tensor, gradient)?),
        Kind::Gather { axis, along } => {
            let zeros = inputs[0].zeros_like();
            let part = zeros.scattered(
                &inputs[1],
                gradient,
                *axis,
                along.clone(),
                Some(ReduceOp::Sum),
            )?;
            Ok(Parts::from_iter([Some(part), None]))
        }
        Kind::Scatter {
            axis,
            along,
            combine,
        } => Scatter {
            base: &inputs[0],
            index: &inputs[1],
            updates: &inputs[2],
            axis: *axis,
            along,
        }
        .parts(*combine, tensor, gradient),
        Kind::Marked(Mark::Label(_)) => one(gradient.clone()),
        Kind::Marked(Mark::Stop) => none(),
        Kind::Marked(Mark::Recompute) => {
            unreachable!("what flows through it goes past its operands")
        }
        Kind::Marked(Mark::Custom(custom)) => {
            let of = &inputs[1..];
            let given = custom(of, tensor, gradient);
            if given.len() != of.len() {
                return Err(TensorError::at(
                    ErrorKind::Gradient {
                        reason: format!(
                            "a function for {} tensors gave {} gradients",
                            of.len(),
                            given.len()
                        ),
                    },
                    node.place,
                ));
            }
            let mut parts = Parts::from_iter([None]);
            for (tensor, part) in of.iter().zip(given) {
                part.check()?;
                if !is_like(&part, tensor) {
                    return Err(TensorError::at(
                        ErrorKind::Gradient {
                            reason: format!(
                                "a function gave {}{} as the gradient of {}{}",
                                part.dtype(),
                                part.shape(),
                                tensor.dtype(),
                                tensor.shape()
                            ),
                        },
                        node.place,
                    ));
                }
                parts.push(Some(part));
            }
            Ok(parts)
        }
    }
}

/// The gradient through a copy of the formula, back to where it is to be computed from.
///
/// It ends at the tensors that the copy starts from and at those that are wanted, whether or not they were
/// listed: parameters get their part, too.
#[track_caller]
fn recompute(
    tensor: &Tensor,
    gradient: &Tensor,
    wanted: &FxHashSet<u64>,
) -> Result<Vec<(Tensor, Tensor)>, TensorError> {
    let (inner, from) = tensor
        .node
        .inputs
        .split_first()
        .expect("a mark has an operand");
    let mut ends: FxHashSet<u64> = from.iter().map(|kept| kept.node.id).collect();
    let mut copies: FxHashMap<u64, Tensor> = FxHashMap::default();
    let mut targets: Vec<Tensor> = Vec::new();
    // What depends on where it starts, which is what is computed again.
    let mut moved: FxHashSet<u64> = FxHashSet::default();
    let history_of_inner = history(inner, &ends);
    // A loop is tied to what it carries, which a copy would not be: it is kept.
    let has_loop =
        |tensor: &Tensor| matches!(tensor.node.kind, Kind::Recurred | Kind::Previous { .. });
    let is_kept = history_of_inner.iter().any(has_loop);
    for old in history_of_inner {
        let id = old.node.id;
        let inputs = &old.node.inputs;
        if ends.contains(&id) || wanted.contains(&id) {
            if ends.contains(&id) {
                moved.insert(id);
            }
            targets.push(old.clone());
            copies.insert(id, old);
            continue;
        }
        let is_moved = |input: &Tensor| moved.contains(&input.node.id);
        let copy = match !is_kept && inputs.iter().any(is_moved) {
            true => {
                moved.insert(id);
                let inputs: Vec<&Tensor> =
                    inputs.iter().map(|input| &copies[&input.node.id]).collect();
                let kind = old.node.kind.clone();
                Tensor::make(kind, &inputs, old.shape().clone(), old.dtype())
            }
            false => old,
        };
        copies.insert(id, copy);
    }
    ends.extend(targets.iter().map(|target| target.node.id));
    let copy = &copies[&inner.node.id];
    let seeds = [(copy.clone(), gradient.clone())];
    let none = FxHashSet::default();
    let mut sums = flow(&seeds, &history(copy, &ends), &ends, &ends, &none)?;
    let reached = targets.into_iter().filter_map(|target| {
        let part = sums.remove(&target.node.id)?;
        Some((target, part))
    });
    Ok(reached.collect())
}
