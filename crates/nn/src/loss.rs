//! Losses. Each is one number: the mean over all examples.

use loopwright_tensor::{DType, Tensor, select};

/// The mean of squared differences.
#[track_caller]
pub fn mean_squared_error(x: &Tensor, target: &Tensor) -> Tensor {
    (x - target).square().mean(..)
}

/// The mean of absolute differences.
#[track_caller]
pub fn mean_absolute_error(x: &Tensor, target: &Tensor) -> Tensor {
    (x - target).abs().mean(..)
}

/// Squared for differences up to `bound`, in proportion to them beyond.
#[track_caller]
pub fn huber(x: &Tensor, target: &Tensor, bound: f64) -> Tensor {
    let far = (x - target).abs();
    let near = far.square() * 0.5;
    let linear = (&far - bound / 2.0) * bound;
    select(&far.le(bound), &near, &linear).mean(..)
}

/// The negative logarithm of the probability of the label, from scores (`[.., classes]`) and labels
/// (integers, without the axis of classes). Classes lie along the last axis; in PyTorch, along the second.
#[track_caller]
pub fn cross_entropy(scores: &Tensor, labels: &Tensor) -> Tensor {
    nll(&scores.log_softmax(-1), labels)
}

/// As [`cross_entropy`], where every label stands for a share of `smoothing` of all classes alike.
#[track_caller]
pub fn cross_entropy_smoothed(scores: &Tensor, labels: &Tensor, smoothing: f64) -> Tensor {
    let logs = scores.log_softmax(-1);
    nll(&logs, labels) * (1.0 - smoothing) - logs.mean(..) * smoothing
}

/// The negative logarithm of the probability of the label, from logarithms of probabilities.
#[track_caller]
pub fn nll(logs: &Tensor, labels: &Tensor) -> Tensor {
    let classes = match logs.shape().axes().last().map(|axis| axis.known()) {
        Some(Some(classes)) => classes,
        Some(None) => {
            return Tensor::from_error(
                logs.refusal("nll", "the number of classes is not known yet"),
            );
        }
        None => return Tensor::from_error(logs.refusal("nll", "it has no axis of classes")),
    };
    let chosen = (logs * labels.one_hot(classes, logs.dtype())).sum(-1);
    -chosen.mean(..)
}

/// The cross entropy of two classes, from scores and targets between 0 and 1, without overflow.
#[track_caller]
pub fn binary_cross_entropy(scores: &Tensor, target: &Tensor) -> Tensor {
    (scores.relu() - scores * target + (-scores.abs()).exp().log1p()).mean(..)
}

/// How far a distribution is from a target, both along the last axis; the first as logarithms. It is the mean over
/// all distributions, which PyTorch calls `batchmean` where there is one axis of them.
#[track_caller]
pub fn kl_divergence(logs: &Tensor, target: &Tensor) -> Tensor {
    let zero = target.zeros_like();
    let safe = select(&target.gt(0), target, &target.ones_like());
    let parts = select(&target.gt(0), &(target * (safe.log() - logs)), &zero);
    parts.sum(-1).mean(..)
}

/// `max(0, 1 - score * target)` for targets of 1 and -1.
#[track_caller]
pub fn hinge(scores: &Tensor, target: &Tensor) -> Tensor {
    (1.0 - scores * target).relu().mean(..)
}

/// 1 minus the cosine of the angle between vectors along the last axis.
#[track_caller]
pub fn cosine_distance(a: &Tensor, b: &Tensor) -> Tensor {
    let small = if a.dtype() == DType::F64 { 1e-12 } else { 1e-8 };
    let lengths = (a.square().sum(-1) * b.square().sum(-1) + small).sqrt();
    (1.0 - (a * b).sum(-1) / lengths).mean(..)
}
