//! A formula once more with another axis in front: what each kind of node becomes.

use super::{stand_in, with_axis};
use crate::error::TensorError;
use crate::node::{Along, CustomGradient, Kind, Mark, Tensor, View};
use crate::ops::refuse_shape;
use crate::shape::{Places, Shape};
use crate::size::{self, MAX_AXES, axis_index};
use crate::trace;
use loopwright_ops::ReduceOp;
use loopwright_symbolic::Expr;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::sync::Arc;

/// What stands for a node of the formula.
#[derive(Clone)]
pub(crate) struct Value {
    tensor: Tensor,
    /// Whether it has the mapped axis, in front.
    mapped: bool,
}

impl Value {
    pub(crate) fn mapped(tensor: Tensor) -> Value {
        Value {
            tensor,
            mapped: true,
        }
    }

    fn same(tensor: Tensor) -> Value {
        Value {
            tensor,
            mapped: false,
        }
    }
}

/// A formula that is made once more.
pub(crate) struct Replay {
    /// Of the mapped axis.
    size: Expr,
    /// What the formula starts from, and its place in the new one. Functions that give gradients start from
    /// there too: they may have taken any tensor of the formula along.
    from: Vec<(Tensor, Value)>,
    /// By node of the formula. What is not there stands for itself.
    known: FxHashMap<u64, Value>,
}

impl Replay {
    pub(crate) fn new(size: Expr) -> Replay {
        Replay {
            size,
            from: Vec::new(),
            known: FxHashMap::default(),
        }
    }

    /// Says what a tensor stands for.
    pub(crate) fn stand_for(&mut self, tensor: &Tensor, value: Value) {
        self.known.insert(tensor.node.id, value.clone());
        self.from.push((tensor.clone(), value));
    }

    /// The tensors that these become.
    #[track_caller]
    pub(crate) fn run(&mut self, roots: &[Tensor]) -> Result<Vec<Value>, TensorError> {
        for old in self.order(roots) {
            let inputs = &old.node.inputs;
            let is_known = |input: &Tensor| self.known.contains_key(&input.node.id);
            let changed = inputs.iter().any(is_known);
            let inputs: SmallVec<[Value; 3]> = inputs.iter().map(|input| self.of(input)).collect();
            let value = if let Kind::Previous { over, reverse } = old.node.kind {
                // What a loop starts from and what it reads is not known yet: it is taken to differ.
                check_rank(old.shape())?;
                let over = over + 1;
                let wide = with_axis(&self.size, old.shape());
                Value::mapped(like(&old, Kind::Previous { over, reverse }, &[], wide))
            } else if inputs.iter().any(|input| input.mapped) || self.takes_along(&old) {
                self.rule(&old, &inputs)?
            } else if changed {
                let inputs: SmallVec<[&Tensor; 3]> =
                    inputs.iter().map(|input| &input.tensor).collect();
                let shape = old.shape().clone();
                Value::same(like(&old, old.node.kind.clone(), &inputs, shape))
            } else {
                continue;
            };
            self.known.insert(old.node.id, value);
        }
        for root in roots {
            root.check()?;
        }
        Ok(roots.iter().map(|root| self.of(root)).collect())
    }

    /// What tensors are made of, operands first, as far as it is not known and younger than what the formula
    /// starts from.
    fn order(&self, roots: &[Tensor]) -> Vec<Tensor> {
        let first = self.known.keys().min().copied().unwrap_or(u64::MAX);
        let mut seen = FxHashSet::default();
        let mut open: Vec<Tensor> = roots.to_vec();
        let mut found = Vec::new();
        while let Some(tensor) = open.pop() {
            let id = tensor.node.id;
            if id < first || self.known.contains_key(&id) || !seen.insert(id) {
                continue;
            }
            open.extend(tensor.node.inputs.iter().cloned());
            found.push(tensor);
        }
        found.sort_unstable_by_key(|tensor| tensor.node.id);
        found
    }

    /// Whether a tensor's own gradient has taken something along that is not what it was, although the tensor
    /// is made of nothing such. Only the function knows: it is asked for a gradient.
    #[track_caller]
    fn takes_along(&self, tensor: &Tensor) -> bool {
        let Kind::Marked(Mark::Custom(custom)) = &tensor.node.kind else {
            return false;
        };
        if !tensor.dtype().is_float() {
            return false;
        }
        let gradient = stand_in(tensor.shape().clone(), tensor);
        let parts = trace::mapped(|| custom(&tensor.node.inputs[1..], tensor, &gradient));
        let is_known = |input: &Tensor| self.known.contains_key(&input.node.id);
        let order = self.order(&parts);
        let mut inputs = order.iter().flat_map(|part| &part.node.inputs);
        parts.iter().any(is_known) || inputs.any(is_known)
    }

    fn of(&self, tensor: &Tensor) -> Value {
        let known = self.known.get(&tensor.node.id);
        known
            .cloned()
            .unwrap_or_else(|| Value::same(tensor.clone()))
    }

    /// The value with the mapped axis, along which it is the same everywhere if it did not have it.
    #[track_caller]
    pub(crate) fn whole(&self, value: &Value) -> Result<Tensor, TensorError> {
        let tensor = &value.tensor;
        if value.mapped {
            return Ok(tensor.clone());
        }
        check_rank(tensor.shape())?;
        let places: Places = std::iter::once(None)
            .chain((0..tensor.rank()).map(Some))
            .collect();
        Ok(tensor.spread(&with_axis(&self.size, tensor.shape()), &places))
    }

    /// What a node with the mapped axis becomes, whose inputs have become these.
    #[track_caller]
    fn rule(&self, old: &Tensor, inputs: &[Value]) -> Result<Value, TensorError> {
        let node = &old.node;
        check_rank(old.shape())?;
        let wide = || with_axis(&self.size, old.shape());
        // The operand of an op that has one.
        let one = |kind: Kind| {
            let operand = self.whole(&inputs[0])?;
            Ok(Value::mapped(like(old, kind, &[&operand], wide())))
        };
        match &node.kind {
            Kind::Failed(error) => Err(error.clone()),
            Kind::Data
            | Kind::Variable(_)
            | Kind::Argument(_)
            | Kind::Constant(_)
            | Kind::Index
            | Kind::Size(_)
            | Kind::Previous { .. } => unreachable!("what is made of nothing has no mapped input"),
            Kind::Map(_) | Kind::Recurred => {
                let operands: SmallVec<[Tensor; 3]> = inputs
                    .iter()
                    .map(|input| self.whole(input))
                    .collect::<Result<_, _>>()?;
                let operands: SmallVec<[&Tensor; 3]> = operands.iter().collect();
                Ok(Value::mapped(like(
                    old,
                    node.kind.clone(),
                    &operands,
                    wide(),
                )))
            }
            Kind::Cast | Kind::Bitcast => one(node.kind.clone()),
            Kind::Reduce { op, over } => one(Kind::Reduce {
                op: *op,
                over: over.iter().map(|axis| axis + 1).collect(),
            }),
            Kind::ArgReduce { largest, over } => one(Kind::ArgReduce {
                largest: *largest,
                over: over + 1,
            }),
            Kind::Scan {
                op,
                over,
                exclusive,
                reverse,
            } => one(Kind::Scan {
                op: *op,
                over: over + 1,
                exclusive: *exclusive,
                reverse: *reverse,
            }),
            Kind::Sort { over, descending } => one(Kind::Sort {
                over: over + 1,
                descending: *descending,
            }),
            Kind::ArgSort { over, descending } => one(Kind::ArgSort {
                over: over + 1,
                descending: *descending,
            }),
            Kind::View(view) => one(Kind::View(shifted(old, view)?)),
            Kind::Gather { axis, along } => Ok(self.gather(old, inputs, *axis, along)),
            Kind::Scatter {
                axis,
                along,
                combine,
            } => self.scatter(old, inputs, *axis, along, *combine),
            Kind::Marked(mark @ (Mark::Label(_) | Mark::Stop)) => one(Kind::Marked(mark.clone())),
            Kind::Marked(Mark::Recompute) => {
                // Where the value has no mapped axis, it is made of no mapped tensor.
                let mapped = inputs[0].mapped;
                let kept = inputs.iter().filter(|input| mapped || !input.mapped);
                let kept: SmallVec<[&Tensor; 3]> = kept.map(|input| &input.tensor).collect();
                let shape = if mapped { wide() } else { old.shape().clone() };
                Ok(Value {
                    tensor: like(old, node.kind.clone(), &kept, shape),
                    mapped,
                })
            }
            Kind::Marked(Mark::Custom(custom)) => {
                let value = self.whole(&inputs[0])?;
                let of = inputs[1..].iter().map(|input| &input.tensor);
                let operands: SmallVec<[&Tensor; 3]> = std::iter::once(&value).chain(of).collect();
                let kind = Kind::Marked(Mark::Custom(self.custom(old, inputs, custom)));
                Ok(Value::mapped(like(old, kind, &operands, wide())))
            }
        }
    }

    /// A gather. An index with the mapped axis for a table without it has one more axis of its own: the
    /// table is not repeated.
    #[track_caller]
    fn gather(&self, old: &Tensor, inputs: &[Value], axis: usize, along: &Along) -> Value {
        let (table, index) = (&inputs[0], &inputs[1]);
        let operands = [&table.tensor, &index.tensor];
        if table.mapped {
            let kind = Kind::Gather {
                axis: axis + 1,
                along: shifted_along(along, index.mapped),
            };
            return Value::mapped(like(
                old,
                kind,
                &operands,
                with_axis(&self.size, old.shape()),
            ));
        }
        let mut wide = old.shape().clone();
        wide.0
            .insert(axis, with_axis(&self.size, &Shape::scalar()).0.remove(0));
        let along = std::iter::once(None).chain(along.iter().copied()).collect();
        let found = like(old, Kind::Gather { axis, along }, &operands, wide);
        let mut order: Vec<usize> = (0..found.rank()).filter(|at| *at != axis).collect();
        order.insert(0, axis);
        Value::mapped(if axis == 0 {
            found
        } else {
            found.turned(&order)
        })
    }

    /// A scatter: an index without the mapped axis is one for all lines.
    #[track_caller]
    fn scatter(
        &self,
        old: &Tensor,
        inputs: &[Value],
        axis: usize,
        along: &Along,
        combine: Option<ReduceOp>,
    ) -> Result<Value, TensorError> {
        let (base, index, updates) = (self.whole(&inputs[0])?, &inputs[1], self.whole(&inputs[2])?);
        let kind = Kind::Scatter {
            axis: axis + 1,
            along: shifted_along(along, index.mapped),
            combine,
        };
        let shape = with_axis(&self.size, old.shape());
        let made = like(old, kind, &[&base, &index.tensor, &updates], shape);
        Ok(Value::mapped(made))
    }

    /// A gradient of its own, mapped: the function is called with the tensors of one example, and what it
    /// gives is made once more, as everything else. What all examples share gets the sum of theirs.
    fn custom(
        &self,
        old: &Tensor,
        inputs: &[Value],
        custom: &Arc<CustomGradient>,
    ) -> Arc<CustomGradient> {
        let (size, from) = (self.size.clone(), self.from.clone());
        let (old, custom) = (old.clone(), Arc::clone(custom));
        let mapped: SmallVec<[bool; 3]> = inputs[1..].iter().map(|input| input.mapped).collect();
        Arc::new(move |of: &[Tensor], value: &Tensor, gradient: &Tensor| {
            let mut replay = Replay::new(size.clone());
            for (tensor, value) in &from {
                replay.stand_for(tensor, value.clone());
            }
            let inputs = &old.node.inputs[1..];
            for ((input, tensor), mapped) in inputs.iter().zip(of).zip(&mapped) {
                let (tensor, mapped) = (tensor.clone(), *mapped);
                replay.stand_for(input, Value { tensor, mapped });
            }
            replay.stand_for(&old, Value::mapped(value.clone()));
            let single = stand_in(old.shape().clone(), gradient);
            replay.stand_for(&single, Value::mapped(gradient.clone()));
            let parts = trace::mapped(|| custom(inputs, &old, &single));
            let given = match replay.run(&parts) {
                Ok(given) => given,
                Err(error) => return vec![Tensor::of_error(error); parts.len()],
            };
            // There may be more of them, which is a mistake that is found later.
            let shared = mapped.iter().map(|mapped| !mapped);
            let given = given.iter().zip(shared.chain(std::iter::repeat(false)));
            let part = |(part, shared): (&Value, bool)| match (replay.whole(part), shared) {
                (Ok(part), true) => part.sum(0),
                (Ok(part), false) => part,
                (Err(error), _) => Tensor::of_error(error),
            };
            given.map(part).collect()
        })
    }
}

#[track_caller]
fn check_rank(shape: &Shape) -> Result<(), TensorError> {
    match shape.rank() < MAX_AXES {
        true => Ok(()),
        false => {
            let reason = format!("a tensor has at most {MAX_AXES} axes, and one more is mapped");
            Err(refuse_shape("vmap", shape, reason))
        }
    }
}

/// A node like another, at that one's line.
#[track_caller]
fn like(old: &Tensor, kind: Kind, inputs: &[&Tensor], shape: Shape) -> Tensor {
    let mut made = Tensor::make(kind, inputs, shape, old.dtype());
    if let Some(node) = Arc::get_mut(&mut made.node) {
        node.place = old.node.place;
    }
    made
}

/// An index's axes with the table's one further behind, and the mapped one first if the index has it.
fn shifted_along(along: &Along, mapped: bool) -> Along {
    let first = mapped.then_some(Some(0)).into_iter();
    let rest = along.iter().map(|along| along.map(|axis| axis + 1));
    first.chain(rest).collect()
}

/// A view with all axes one further behind, that leaves the first as it is.
#[track_caller]
fn shifted(old: &Tensor, view: &View) -> Result<View, TensorError> {
    let shift = |expr: &Expr| {
        let behind = |symbol| size::symbol_axis(symbol).map(|axis| axis_index(axis + 1));
        let shifted = expr.substitute(&behind);
        shifted.map_err(|error| refuse_shape("vmap", old.shape(), error.to_string()))
    };
    let with_first = |map: &[Expr]| {
        let first = std::iter::once(Ok(axis_index(0)));
        first
            .chain(map.iter().map(shift))
            .collect::<Result<SmallVec<[Expr; 4]>, _>>()
    };
    Ok(View {
        map: with_first(&view.map)?,
        constraints: view
            .constraints
            .iter()
            .map(shift)
            .collect::<Result<_, _>>()?,
        outside: view.outside,
        inverse: view.inverse.as_deref().map(with_first).transpose()?,
    })
}
