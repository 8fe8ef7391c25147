//! Attention.

use super::{Dense, Layer, inferred};
use crate::Module;
use crate::init::Init;
use crate::mode::rounded;
use loopwright_tensor::{Axis, DType, Tensor, TensorError, concat, select};

/// Rotary position embedding: pairs of features are turned by an angle that grows with the position.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rope {
    /// The base of the angles' geometric row; 10,000 where nothing else is said.
    pub base: f64,
}

impl Default for Rope {
    fn default() -> Rope {
        Rope { base: 10_000.0 }
    }
}

impl Rope {
    /// Turns `[.., time, width]` from a position on. The first half of the features is paired with the second.
    #[track_caller]
    pub fn apply(&self, x: &Tensor, position: usize) -> Tensor {
        self.apply_at(x, &Tensor::scalar(position as i64))
    }

    /// The same from a position that is a tensor, one integer: in a function that is traced it may be an argument, so
    /// that one program serves all positions.
    #[track_caller]
    pub fn apply_at(&self, x: &Tensor, position: &Tensor) -> Tensor {
        if let Err(error) = position.check() {
            return Tensor::from_error(error);
        }
        if position.rank() != 0 || !position.dtype().is_int() {
            return Tensor::from_error(position.refusal("rope", "a position is one integer"));
        }
        let (time, width) = match time_and_width(x, "rope") {
            Ok(found) => found,
            Err(error) => return Tensor::from_error(error),
        };
        if width % 2 != 0 {
            return Tensor::from_error(
                x.refusal("rope", "features are turned in pairs, so the width is even"),
            );
        }
        let half = width / 2;
        // Angles of narrow features are computed in `f32`: a position is more than they can count.
        let wide = match x.dtype() {
            DType::F64 => DType::F64,
            _ => DType::F32,
        };
        let at = (Tensor::index(time) + position.cast(DType::I64))
            .cast(wide)
            .unsqueeze(1);
        let rate = Tensor::index(Axis::of(half)).cast(wide) * (-self.base.ln() / half as f64);
        let angle = at * rate.exp();
        let (cos, sin) = (angle.cos().cast(x.dtype()), angle.sin().cast(x.dtype()));
        let (a, b) = (x.narrow(-1, 0, half), x.narrow(-1, half, half));
        concat(&[&(&a * &cos - &b * &sin), &(a * sin + b * cos)], -1)
    }
}

/// The keys and values of positions that an [`Attention`] has seen, so that the next ones need not compute them again.
///
/// There is memory for `capacity` positions from the start: one program serves all steps.
#[derive(Clone, Debug)]
pub struct KeyValueCache {
    /// `[batch, shared heads, capacity, head width]`.
    pub key: Tensor,
    /// As the keys.
    pub value: Tensor,
    /// How many positions are filled: one integer (`i64`).
    pub length: Tensor,
}

/// Attention of several heads over `[batch, time, width]`.
///
/// With fewer heads for keys and values than for queries, groups of query heads share one.
///
/// PyTorch's `MultiheadAttention` keeps the weights of queries, keys and values one below the other in
/// `in_proj_weight`, GPT-2 beside each other in `c_attn`; here they are layers of their own, each a third of those.
#[derive(Module)]
pub struct Attention {
    /// Queries, `[heads * head width]`.
    pub query: Dense,
    /// Keys.
    pub key: Dense,
    /// Values.
    pub value: Dense,
    /// What puts the heads together.
    pub out: Dense,
    heads: usize,
    shared_heads: usize,
    head_width: usize,
    #[module(skip)]
    rope: Option<Rope>,
    causal: bool,
}

impl Attention {
    /// Self-attention of a width with a number of heads, which divides it.
    #[track_caller]
    pub fn new(width: usize, heads: usize) -> Attention {
        Attention::grouped(width, heads, heads)
    }

    /// The same with fewer heads for keys and values, whose number divides that of the heads.
    #[track_caller]
    pub fn grouped(width: usize, heads: usize, shared_heads: usize) -> Attention {
        let each = width / heads.max(1);
        let dense = |outputs: usize| {
            Dense::with(
                inferred("number of inputs", "Attention"),
                outputs,
                Init::XavierUniform,
                true,
                DType::F32,
            )
        };
        Attention {
            query: dense(heads * each),
            key: dense(shared_heads * each),
            value: dense(shared_heads * each),
            out: dense(width),
            heads,
            shared_heads,
            head_width: each,
            rope: None,
            causal: false,
        }
    }

    /// Positions see only themselves and those before.
    #[must_use]
    pub fn causal(self) -> Attention {
        Attention {
            causal: true,
            ..self
        }
    }

    /// Queries and keys are turned by their positions.
    #[must_use]
    pub fn with_rope(self, rope: Rope) -> Attention {
        Attention {
            rope: Some(rope),
            ..self
        }
    }

    /// Attention of `x` to `memory`, both `[batch, time, width]`. `mask` is true where a query may see a key;
    /// it is `[queries, keys]` or has a batch before.
    #[track_caller]
    pub fn attend(&self, x: &Tensor, memory: &Tensor, mask: Option<&Tensor>) -> Tensor {
        let turn = |x: Tensor| match &self.rope {
            Some(rope) => rope.apply(&x, 0),
            None => x,
        };
        let query = turn(split_heads(&self.query.forward(x), self.heads));
        let key = turn(split_heads(&self.key.forward(memory), self.shared_heads));
        let value = split_heads(&self.value.forward(memory), self.shared_heads);
        let (key, value) = (self.spread(key), self.spread(value));
        let mixed = attention(&query, &key, &value, mask, self.causal);
        self.out
            .forward(&mixed.transpose(-3, -2).merge_axes(-2, -1))
    }

    /// Keys or values for all query heads.
    #[track_caller]
    fn spread(&self, x: Tensor) -> Tensor {
        match self.heads / self.shared_heads.max(1) {
            0 | 1 => x,
            share => x.repeat(-3, share),
        }
    }

    /// A cache for sequences of up to so many positions, with none filled.
    #[track_caller]
    pub fn cache(&self, batch: usize, capacity: usize, dtype: DType) -> KeyValueCache {
        let empty = Tensor::zeros([batch, self.shared_heads, capacity, self.head_width], dtype);
        KeyValueCache {
            key: empty.clone(),
            value: empty,
            length: Tensor::scalar(0i64),
        }
    }

    /// Causal attention of `x`, the positions `[batch, time, width]` behind those in a cache, to these and to itself; with
    /// the cache for the next ones. Where they do not fit into the cache, the result is NaN.
    #[track_caller]
    pub fn attend_cached(&self, x: &Tensor, cache: &KeyValueCache) -> (Tensor, KeyValueCache) {
        let failed = |error| {
            let failed = Tensor::from_error(error);
            (failed, cache.clone())
        };
        if let Err(error) = x.check().and_then(|()| cache.key.check()) {
            return failed(error);
        }
        let known = match (x.shape().axes(), cache.key.shape().axes()) {
            ([_, time, _], [_, _, capacity, _]) => time.known().zip(capacity.known()),
            _ => {
                let reason = "its axes are [batch, time, width], and the cache's [batch, heads, capacity, head width]";
                return failed(x.refusal("attend_cached", reason));
            }
        };
        let Some((time, capacity)) = known else {
            let reason = "the number of positions and the capacity of the cache are known where it is traced";
            return failed(x.refusal("attend_cached", reason));
        };
        // One sequence would be broadcast to all of a cache, and one of the cache to all sequences.
        let batch = x.shape().axes()[0].known();
        let expected = [
            batch,
            Some(self.shared_heads),
            Some(capacity),
            Some(self.head_width),
        ];
        for part in [&cache.key, &cache.value] {
            let axes = part.shape().axes();
            let differs = |(axis, size): (&Axis, &Option<usize>)| matches!((axis.known(), size), (Some(own), Some(size)) if own != *size);
            if axes.len() != 4 || axes.iter().zip(&expected).any(differs) {
                let (heads, width) = (self.shared_heads, self.head_width);
                let reason = format!(
                    "the cache has shape {}, not that of this batch, with {heads} heads of width {width}",
                    part.shape()
                );
                return failed(x.refusal("attend_cached", &reason));
            }
        }
        let length = cache.length.cast(DType::I64);
        let turn = |x: Tensor| match &self.rope {
            Some(rope) => rope.apply_at(&x, &length),
            None => x,
        };
        let query = turn(split_heads(&self.query.forward(x), self.heads));
        let new_key = turn(split_heads(&self.key.forward(x), self.shared_heads));
        let new_value = split_heads(&self.value.forward(x), self.shared_heads);
        // Which of the new positions a place of the cache takes, if any.
        let places = Tensor::index(Axis::of(capacity));
        let offset = &places - &length;
        let (first, last) = (Tensor::scalar(0i64), Tensor::scalar(time as i64 - 1));
        let fresh = (offset.ge(&first) & offset.le(&last)).unsqueeze(1);
        let index = offset.maximum(&first).minimum(&last);
        let put = |old: &Tensor, new: &Tensor| {
            select(&fresh, &new.cast(old.dtype()).take(&index, -2), old)
        };
        let (key, value) = (put(&cache.key, &new_key), put(&cache.value, &new_value));
        let position = Tensor::index(Axis::of(time)).unsqueeze(1) + &length;
        let seen = places.le(&position);
        let cast = |x: &Tensor| self.spread(x.cast(query.dtype()));
        let mixed = attention(&query, &cast(&key), &cast(&value), Some(&seen), false);
        let made = self
            .out
            .forward(&mixed.transpose(-3, -2).merge_axes(-2, -1));
        let length = length + time as i64;
        let fits = length.le(&Tensor::scalar(capacity as i64));
        let nan = Tensor::constant(loopwright_tensor::Scalar::from_f64(made.dtype(), f64::NAN));
        let cache = KeyValueCache { key, value, length };
        (select(&fits, &made, &nan), cache)
    }
}

impl Layer for Attention {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        self.attend(x, x, None)
    }
}

/// The last two axes of a tensor: the first as it is, open or not and without its name, and the number of features. All axes
/// before may be open.
#[track_caller]
fn time_and_width(x: &Tensor, op: &str) -> Result<(Axis, usize), TensorError> {
    x.check()?;
    let [.., time, width] = x.shape().axes() else {
        return Err(x.refusal(op, "its last axes are [time, width]"));
    };
    match width.known() {
        Some(width) => Ok((Axis::of(&time.size), width)),
        None => Err(x.refusal(op, "the number of features is open")),
    }
}

/// `[.., time, heads * width]` as `[.., heads, time, width]`.
#[track_caller]
fn split_heads(x: &Tensor, heads: usize) -> Tensor {
    let each = match x.shape().axes().last().and_then(|axis| axis.known()) {
        Some(width) => width / heads.max(1),
        None => 0,
    };
    x.split_axis(-1, [heads, each]).transpose(-3, -2)
}

/// `softmax(q kᵀ / √width) v` over the last two axes, with what a query may not see left out.
#[track_caller]
fn attention(
    query: &Tensor,
    key: &Tensor,
    value: &Tensor,
    mask: Option<&Tensor>,
    causal: bool,
) -> Tensor {
    let found = time_and_width(query, "attention").and_then(|(queries, width)| {
        let (keys, _) = time_and_width(key, "attention")?;
        Ok((queries, keys, width))
    });
    let (queries, keys, width) = match found {
        Ok(found) => found,
        Err(error) => return Tensor::from_error(error),
    };
    let scores = rounded(query).matmul(&rounded(key).t()) * (1.0 / (width as f64).sqrt());
    let never = Tensor::constant(loopwright_tensor::Scalar::min_value(scores.dtype()));
    let mut scores = scores;
    if causal {
        let before = match (queries.known(), keys.known()) {
            (Some(queries), Some(keys)) => keys as i64 - queries as i64,
            _ if queries.size == keys.size => 0,
            _ => {
                let reason = "which keys are before a query is open: their numbers are known where it is traced, or the same";
                return Tensor::from_error(query.refusal("causal attention", reason));
            }
        };
        let (row, column) = (Tensor::index(queries), Tensor::index(keys));
        // The last query is the last key's.
        let seen = column.le(&(row.unsqueeze(1) + before));
        scores = select(&seen, &scores, &never);
    }
    if let Some(mask) = mask {
        let mask = if mask.rank() > 2 {
            mask.unsqueeze(-3)
        } else {
            mask.clone()
        };
        scores = select(&mask, &scores, &never);
    }
    rounded(&scores.softmax(-1)).matmul(&rounded(value))
}
