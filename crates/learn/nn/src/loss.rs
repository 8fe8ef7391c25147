//! Losses. Each is one number: the mean over all examples.
//!
//! What is compared has one shape: scores of shape `[n, 1]` and targets of `[n]` would be broadcast to `[n, n]`, and the
//! mean over all pairs is a number that looks like a loss. So shapes that differ are an error that names both.

use loopwright_tensor::{Axis, Tensor, TensorError, select};

/// Whether two axes have one size; where one is not known yet, that is seen when it is.
fn same_size(a: &Axis, b: &Axis) -> bool {
    match (a.known(), b.known()) {
        (Some(a), Some(b)) => a == b,
        // An axis of size 1 is repeated beside any other.
        (Some(1), None) | (None, Some(1)) => false,
        _ => true,
    }
}

/// Whether axes meet one by one: those with a name by name, all others in order.
fn same_axes(a: &[Axis], b: &[Axis]) -> bool {
    let unnamed = |axis: &&Axis| axis.name.is_none();
    let meets = |axis: &Axis| {
        b.iter()
            .any(|other| other.name == axis.name && same_size(axis, other))
    };
    a.len() == b.len()
        && a.iter().filter(unnamed).count() == b.iter().filter(unnamed).count()
        && a.iter().filter(|axis| axis.name.is_some()).all(meets)
        && (a.iter().filter(unnamed))
            .zip(b.iter().filter(unnamed))
            .all(|(a, b)| same_size(a, b))
}

/// A loss of scores and targets of one shape.
#[track_caller]
fn of_one_shape(
    op: &str,
    x: &Tensor,
    target: &Tensor,
    loss: impl FnOnce(&Tensor, &Tensor) -> Tensor,
) -> Tensor {
    match check_shapes(op, x, target, x.shape().axes(), "have one shape") {
        Ok(()) => loss(x, target),
        Err(error) => Tensor::from_error(error),
    }
}

#[track_caller]
fn check_shapes(
    op: &str,
    x: &Tensor,
    target: &Tensor,
    expected: &[Axis],
    rule: &str,
) -> Result<(), TensorError> {
    x.check()?;
    target.check()?;
    if same_axes(expected, target.shape().axes()) {
        return Ok(());
    }
    Err(x.refusal(
        op,
        &format!(
            "the target has shape {}, and scores and targets {rule}; reshape one, or broadcast it where that is meant",
            target.shape()
        ),
    ))
}

/// The mean of squared differences.
#[track_caller]
pub fn mean_squared_error(x: &Tensor, target: &Tensor) -> Tensor {
    of_one_shape("mean_squared_error", x, target, |x, target| {
        (x - target).square().mean(..)
    })
}

/// The mean of absolute differences.
#[track_caller]
pub fn mean_absolute_error(x: &Tensor, target: &Tensor) -> Tensor {
    of_one_shape("mean_absolute_error", x, target, |x, target| {
        (x - target).abs().mean(..)
    })
}

/// Squared for differences up to `bound`, which is above 0, in proportion to them beyond.
#[track_caller]
pub fn huber(x: &Tensor, target: &Tensor, bound: f64) -> Tensor {
    if !(bound > 0.0 && bound.is_finite()) {
        let reason = format!("the bound is {bound}, and has to be a number above 0");
        return Tensor::from_error(x.refusal("huber", &reason));
    }
    of_one_shape("huber", x, target, |x, target| {
        let far = (x - target).abs();
        let near = far.square() * 0.5;
        let linear = (&far - bound / 2.0) * bound;
        select(&far.le(bound), &near, &linear).mean(..)
    })
}

/// The negative logarithm of the probability of the label, from scores (`[.., classes]`) and labels
/// (integers, without the axis of classes). Classes lie along the last axis; in PyTorch, along the second.
#[track_caller]
pub fn cross_entropy(scores: &Tensor, labels: &Tensor) -> Tensor {
    nll(&scores.log_softmax(-1), labels)
}

/// As [`cross_entropy`], where every label stands for a share of `smoothing`, from 0 to 1, of all classes alike.
#[track_caller]
pub fn cross_entropy_smoothed(scores: &Tensor, labels: &Tensor, smoothing: f64) -> Tensor {
    if !(0.0..=1.0).contains(&smoothing) {
        let reason = format!("the smoothing is {smoothing}, and has to be from 0 to 1");
        return Tensor::from_error(scores.refusal("cross_entropy_smoothed", &reason));
    }
    let logs = scores.log_softmax(-1);
    nll(&logs, labels) * (1.0 - smoothing) - logs.mean(..) * smoothing
}

/// The negative logarithm of the probability of the label, from logarithms of probabilities.
#[track_caller]
pub fn nll(logs: &Tensor, labels: &Tensor) -> Tensor {
    let lead = logs
        .shape()
        .axes()
        .split_last()
        .map_or(&[][..], |(_, lead)| lead);
    let rule = "have one shape but for the last axis of the scores, that of the classes";
    if let Err(error) = check_shapes("nll", logs, labels, lead, rule) {
        return Tensor::from_error(error);
    }
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
    of_one_shape("binary_cross_entropy", scores, target, |scores, target| {
        (scores.relu() - scores * target + (-scores.abs()).exp().log1p()).mean(..)
    })
}

/// How far a distribution is from a target, both along the last axis; the first as logarithms. It is the mean over
/// all distributions, which PyTorch calls `batchmean` where there is one axis of them.
#[track_caller]
pub fn kl_divergence(logs: &Tensor, target: &Tensor) -> Tensor {
    of_one_shape("kl_divergence", logs, target, |logs, target| {
        let zero = target.zeros_like();
        let safe = select(&target.gt(0), target, &target.ones_like());
        let parts = select(&target.gt(0), &(target * (safe.log() - logs)), &zero);
        parts.sum(-1).mean(..)
    })
}

/// `max(0, 1 - score * target)` for targets of 1 and -1.
#[track_caller]
pub fn hinge(scores: &Tensor, target: &Tensor) -> Tensor {
    of_one_shape("hinge", scores, target, |scores, target| {
        (1.0 - scores * target).relu().mean(..)
    })
}

/// 1 minus the cosine of the angle between vectors along the last axis. It is 1 where a vector is 0.
#[track_caller]
pub fn cosine_distance(a: &Tensor, b: &Tensor) -> Tensor {
    /// The vectors of length 1. They are divided by their largest element first: squares of all lengths are then in range.
    fn directions(x: &Tensor) -> Tensor {
        let largest = x.abs().keep_axes(|x| x.max(-1), -1).stop_gradient();
        let scale = select(&largest.gt(0), &largest, &largest.ones_like());
        let x = x / scale;
        // Of a vector of 0 the length is 0; every other is 1 or more long.
        let squares = x.square().keep_axes(|x| x.sum(-1), -1);
        x / squares.maximum(0.5).sqrt()
    }
    of_one_shape("cosine_distance", a, b, |a, b| {
        (1.0 - (directions(a) * directions(b)).sum(-1)).mean(..)
    })
}
