//! Attention.

use super::{Dense, Layer, inferred};
use crate::Module;
use crate::init::Init;
use crate::mode::rounded;
use loopwright_tensor::{Axis, DType, Tensor, concat, select};

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
        let sizes = match x.sizes() {
            Ok(sizes) => sizes,
            Err(error) => return Tensor::from_error(error),
        };
        let [.., time, width] = sizes[..] else {
            return Tensor::from_error(x.refusal("rope", "its last axes are [time, width]"));
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
        let at = (Tensor::index(Axis::of(time)) + position as i64)
            .cast(wide)
            .unsqueeze(1);
        let rate = Tensor::index(Axis::of(half)).cast(wide) * (-self.base.ln() / half as f64);
        let angle = at * rate.exp();
        let (cos, sin) = (angle.cos().cast(x.dtype()), angle.sin().cast(x.dtype()));
        let (a, b) = (x.narrow(-1, 0, half), x.narrow(-1, half, half));
        concat(&[&(&a * &cos - &b * &sin), &(a * sin + b * cos)], -1)
    }
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
        let split = |x: Tensor, heads: usize| {
            let each = match x.shape().axes().last().and_then(|axis| axis.known()) {
                Some(width) => width / heads.max(1),
                None => 0,
            };
            x.split_axis(-1, [heads, each]).transpose(-3, -2)
        };
        let turn = |x: Tensor| match &self.rope {
            Some(rope) => rope.apply(&x, 0),
            None => x,
        };
        let query = turn(split(self.query.forward(x), self.heads));
        let share = self.heads / self.shared_heads.max(1);
        let spread = |x: Tensor| if share > 1 { x.repeat(-3, share) } else { x };
        let key = spread(turn(split(self.key.forward(memory), self.shared_heads)));
        let value = spread(split(self.value.forward(memory), self.shared_heads));
        let mixed = attention(&query, &key, &value, mask, self.causal);
        self.out
            .forward(&mixed.transpose(-3, -2).merge_axes(-2, -1))
    }
}

impl Layer for Attention {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        self.attend(x, x, None)
    }
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
    let (rows, columns) = (query.sizes(), key.sizes());
    let (rows, columns) = match (rows, columns) {
        (Ok(rows), Ok(columns)) => (rows, columns),
        (Err(error), _) | (_, Err(error)) => return Tensor::from_error(error),
    };
    let ([.., queries, width], [.., keys, _]) = (&rows[..], &columns[..]) else {
        return Tensor::from_error(query.refusal("attention", "its last axes are [time, width]"));
    };
    let scores = rounded(query).matmul(&rounded(key).t()) * (1.0 / (*width as f64).sqrt());
    let never = Tensor::constant(loopwright_tensor::Scalar::min_value(scores.dtype()));
    let mut scores = scores;
    if causal {
        let (row, column) = (
            Tensor::index(Axis::of(*queries)),
            Tensor::index(Axis::of(*keys)),
        );
        // The last query is the last key's.
        let seen = column.le(&(row.unsqueeze(1) + (*keys as i64 - *queries as i64)));
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
