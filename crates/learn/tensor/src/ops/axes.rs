//! How callers say which axes they mean: by place, from either end, or by name.

use crate::error::{ErrorKind, TensorError};
use crate::shape::Shape;
use smallvec::SmallVec;

/// One axis: its place (counted from the end if negative) or its name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AxisRef {
    /// By place; -1 is the last.
    At(i64),
    /// By name.
    Named(String),
}

impl From<i32> for AxisRef {
    fn from(at: i32) -> AxisRef {
        AxisRef::At(at.into())
    }
}

impl From<i64> for AxisRef {
    fn from(at: i64) -> AxisRef {
        AxisRef::At(at)
    }
}

impl From<isize> for AxisRef {
    fn from(at: isize) -> AxisRef {
        AxisRef::At(at as i64)
    }
}

impl From<usize> for AxisRef {
    fn from(at: usize) -> AxisRef {
        AxisRef::At(i64::try_from(at).unwrap_or(i64::MAX))
    }
}

impl From<&str> for AxisRef {
    fn from(name: &str) -> AxisRef {
        AxisRef::Named(name.to_owned())
    }
}

/// Several axes, or all: `..`, `0`, `"batch"`, `[0, -1]`, `["height", "width"]`.
pub trait IntoAxes {
    /// The axes; `None` for all.
    fn into_axes(self) -> Option<Vec<AxisRef>>;
}

impl IntoAxes for std::ops::RangeFull {
    fn into_axes(self) -> Option<Vec<AxisRef>> {
        None
    }
}

impl<A: Into<AxisRef>> IntoAxes for A {
    fn into_axes(self) -> Option<Vec<AxisRef>> {
        Some(vec![self.into()])
    }
}

impl<A: Into<AxisRef>, const N: usize> IntoAxes for [A; N] {
    fn into_axes(self) -> Option<Vec<AxisRef>> {
        Some(self.map(Into::into).into())
    }
}

impl<A: Into<AxisRef> + Clone> IntoAxes for &[A] {
    fn into_axes(self) -> Option<Vec<AxisRef>> {
        Some(self.iter().cloned().map(Into::into).collect())
    }
}

impl<A: Into<AxisRef>> IntoAxes for Vec<A> {
    fn into_axes(self) -> Option<Vec<AxisRef>> {
        Some(self.into_iter().map(Into::into).collect())
    }
}

/// The place of an axis.
#[track_caller]
pub(crate) fn place(op: &str, shape: &Shape, axis: &AxisRef) -> Result<usize, TensorError> {
    let rank = shape.rank() as i64;
    let (found, text, hint) = match axis {
        AxisRef::At(at) => {
            let place = if *at < 0 { at + rank } else { *at };
            let found = (0..rank).contains(&place).then_some(place as usize);
            let hint = match rank {
                0 => "; it has none".to_owned(),
                _ => format!("; it has axes 0 to {}", rank - 1),
            };
            (found, at.to_string(), hint)
        }
        AxisRef::Named(name) => {
            let names: Vec<String> = shape.named().map(|(_, name)| format!("`{name}`")).collect();
            let hint = match names.is_empty() {
                true => "; its axes have no names".to_owned(),
                false => format!("; its named axes are {}", names.join(", ")),
            };
            (shape.find(name), format!("`{name}`"), hint)
        }
    };
    found.ok_or_else(|| {
        TensorError::new(ErrorKind::Axis {
            op: op.to_owned(),
            shape: shape.to_string(),
            axis: text,
            hint,
        })
    })
}

/// The places of axes, in the order in which they are given, each once.
#[track_caller]
pub(crate) fn places(
    op: &str,
    shape: &Shape,
    axes: impl IntoAxes,
) -> Result<SmallVec<[usize; 2]>, TensorError> {
    let Some(axes) = axes.into_axes() else {
        return Ok((0..shape.rank()).collect());
    };
    let mut found = SmallVec::new();
    for axis in &axes {
        let at = place(op, shape, axis)?;
        if found.contains(&at) {
            let reason = format!("axis {at} is named twice");
            return Err(super::refuse_shape(op, shape, reason));
        }
        found.push(at);
    }
    Ok(found)
}
