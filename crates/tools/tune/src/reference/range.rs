//! How far a value may lie from the reference's: the roundings that are free.

use loopwright_ops::{DType, Op, Scalar, evaluate};
use smallvec::SmallVec;

/// What another order of roundings may give.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Range {
    /// Nothing but the reference's value.
    Exact,
    /// Anything between these two.
    Within(f64, f64),
    /// Anything at all: a jump depends on a rounding.
    Anything,
}

/// A value of the reference, and what may stand in its place.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Cell {
    pub(crate) value: Scalar,
    pub(crate) range: Range,
}

impl Cell {
    pub(crate) fn exact(value: Scalar) -> Cell {
        Cell {
            value,
            range: Range::Exact,
        }
    }

    /// A value with the two ends of its range; nothing is known where they are not numbers.
    pub(crate) fn within(value: Scalar, low: f64, high: f64) -> Cell {
        let range = match (
            low.is_finite(),
            high.is_finite(),
            value.to_f64().is_finite(),
        ) {
            (true, true, true) => Range::Within(low, high),
            _ => Range::Anything,
        };
        Cell { value, range }
    }

    pub(crate) fn is_exact(&self) -> bool {
        self.range == Range::Exact
    }

    /// The ends of its range; `None` where anything goes.
    pub(crate) fn ends(&self) -> Option<(f64, f64)> {
        match self.range {
            Range::Exact => Some((self.value.to_f64(), self.value.to_f64())),
            Range::Within(low, high) => Some((low, high)),
            Range::Anything => None,
        }
    }

    /// Values to try an op with: the value itself and both ends.
    fn corners(&self) -> SmallVec<[Scalar; 3]> {
        match self.range {
            Range::Within(low, high) => {
                let end = |end: f64| Scalar::from_f64(self.value.dtype(), end);
                [self.value, end(low), end(high)].into_iter().collect()
            }
            _ => [self.value].into_iter().collect(),
        }
    }
}

/// Half a unit in the last place, relative to the value; 0 for what does not round.
pub(crate) fn rounding(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => 2f64.powi(-53),
        DType::F32 => 2f64.powi(-24),
        DType::F16 => 2f64.powi(-11),
        DType::BF16 => 2f64.powi(-8),
        DType::F8E4M3 => 2f64.powi(-4),
        DType::F8E5M2 => 2f64.powi(-3),
        _ => 0.0,
    }
}

/// The smallest step of a dtype near zero.
pub(crate) fn smallest(dtype: DType) -> f64 {
    match dtype.is_float() {
        true => Scalar::from_bits(dtype, 1).to_f64(),
        false => 0.0,
    }
}

/// An op on values that may be off. `free`: whether the op's own rounding may be left out or taken twice.
pub(crate) fn apply(
    op: Op,
    operands: &[Cell],
    dtype: DType,
    free: bool,
) -> Result<Cell, loopwright_ops::OpError> {
    let values: SmallVec<[Scalar; 3]> = operands.iter().map(|cell| cell.value).collect();
    let value = match op {
        Op::Copy => values[0],
        op => evaluate(op, &values)?,
    };
    if operands.iter().all(Cell::is_exact) && !free {
        return Ok(Cell::exact(value));
    }
    let unknown = operands.iter().any(|cell| {
        cell.range == Range::Anything || !cell.is_exact() && cell.value.dtype().is_int()
    });
    if unknown {
        return Ok(Cell {
            value,
            range: Range::Anything,
        });
    }
    if op == Op::Copy {
        return Ok(Cell {
            value,
            ..operands[0]
        });
    }
    spread(value, dtype, operands, |values| evaluate(op, values))
}

/// The spread of a function over the corners of its operands, with one rounding more.
pub(crate) fn spread<E>(
    value: Scalar,
    dtype: DType,
    operands: &[Cell],
    function: impl Fn(&[Scalar]) -> Result<Scalar, E>,
) -> Result<Cell, E> {
    let corners: SmallVec<[SmallVec<[Scalar; 3]>; 3]> =
        operands.iter().map(Cell::corners).collect();
    let count: usize = corners.iter().map(|corner| corner.len()).product();
    let (mut low, mut high) = (value.to_f64(), value.to_f64());
    for at in 0..count {
        let mut rest = at;
        let mut picked: SmallVec<[Scalar; 3]> = SmallVec::new();
        for corner in &corners {
            picked.push(corner[rest % corner.len()]);
            rest /= corner.len();
        }
        let result = function(&picked)?.to_f64();
        if result.is_nan() != value.is_nan() {
            return Ok(Cell {
                value,
                range: Range::Anything,
            });
        }
        low = low.min(result);
        high = high.max(result);
    }
    if value.is_nan() {
        return Ok(Cell::exact(value));
    }
    let margin = 2.0 * rounding(dtype) * low.abs().max(high.abs()) + smallest(dtype);
    Ok(Cell::within(value, low - margin, high + margin))
}
