//! Parts of tensors: `x.at((1..3, .., -1))`.

use super::{counted, failure, refuse_shape, settle};
use crate::error::TensorError;
use crate::node::Tensor;
use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo};

/// What is taken of one axis.
#[derive(Clone, Debug)]
pub enum Slice {
    /// All of it.
    All,
    /// One element; the axis goes. Counted from the end if negative.
    At(i64),
    /// From one element up to another, which is left out, in steps; negative ends count from the end.
    Range {
        /// The first; without one, the end that the step leads away from.
        start: Option<i64>,
        /// The end; without one, the end that the step leads to.
        end: Option<i64>,
        /// How far from one to the next; negative steps go backwards.
        step: i64,
    },
    /// A new axis of size 1.
    New,
    /// As many whole axes as are not spoken of otherwise.
    Rest,
    /// The elements at indices (an integer tensor), or those that a mask (a `bool` tensor of one axis) has as
    /// true. A mask's value has to be known.
    Where(Tensor),
}

impl Slice {
    /// The same range in steps.
    pub fn step(self, step: i64) -> Slice {
        match self {
            Slice::Range { start, end, .. } => Slice::Range { start, end, step },
            Slice::All => Slice::Range {
                start: None,
                end: None,
                step,
            },
            other => other,
        }
    }

    /// The first element of a range in steps along an axis of that size, and how many there are; ends are as in
    /// [`Slice::Range`], and those outside are taken as the ends. The step is not 0.
    pub fn range(start: Option<i64>, end: Option<i64>, step: i64, size: i64) -> (i64, i64) {
        let (lowest, highest) = if step > 0 { (0, size) } else { (-1, size - 1) };
        let place = |at: i64| (if at < 0 { at + size } else { at }).clamp(lowest, highest);
        let (from, to) = if step > 0 {
            (lowest, highest)
        } else {
            (highest, lowest)
        };
        let (from, to) = (start.map_or(from, place), end.map_or(to, place));
        let far = if step > 0 { to - from } else { from - to };
        // Not by rounding up a sum: steps go up to the limits of 64 bits.
        let count = match far > 0 {
            true => (far as u64 - 1) / step.unsigned_abs() + 1,
            false => 0,
        };
        (from, count as i64)
    }
}

macro_rules! from_ints {
    ($($type:ty)*) => {
        $(
            impl From<$type> for Slice {
                fn from(at: $type) -> Slice {
                    Slice::At(at as i64)
                }
            }
            impl From<Range<$type>> for Slice {
                fn from(range: Range<$type>) -> Slice {
                    Slice::Range { start: Some(range.start as i64), end: Some(range.end as i64), step: 1 }
                }
            }
            impl From<RangeFrom<$type>> for Slice {
                fn from(range: RangeFrom<$type>) -> Slice {
                    Slice::Range { start: Some(range.start as i64), end: None, step: 1 }
                }
            }
            impl From<RangeTo<$type>> for Slice {
                fn from(range: RangeTo<$type>) -> Slice {
                    Slice::Range { start: None, end: Some(range.end as i64), step: 1 }
                }
            }
            impl From<RangeInclusive<$type>> for Slice {
                fn from(range: RangeInclusive<$type>) -> Slice {
                    let end = *range.end() as i64;
                    // One behind the last element is the end itself.
                    let end = if end == -1 { None } else { Some(end + 1) };
                    Slice::Range { start: Some(*range.start() as i64), end, step: 1 }
                }
            }
        )*
    };
}

from_ints! { i32 i64 usize }

impl From<RangeFull> for Slice {
    fn from(_: RangeFull) -> Slice {
        Slice::All
    }
}

impl From<&Tensor> for Slice {
    fn from(index: &Tensor) -> Slice {
        Slice::Where(index.clone())
    }
}

impl From<Tensor> for Slice {
    fn from(index: Tensor) -> Slice {
        Slice::Where(index)
    }
}

/// What is taken of the axes, first axes first.
pub trait IntoSlice {
    /// One for each axis that is spoken of.
    fn into_slice(self) -> Vec<Slice>;
}

impl<S: Into<Slice>> IntoSlice for S {
    fn into_slice(self) -> Vec<Slice> {
        vec![self.into()]
    }
}

impl IntoSlice for Vec<Slice> {
    fn into_slice(self) -> Vec<Slice> {
        self
    }
}

macro_rules! tuples {
    ($($($name:ident)*;)*) => {
        $(impl<$($name: Into<Slice>),*> IntoSlice for ($($name,)*) {
            #[allow(non_snake_case, reason = "the values are called as their types")]
            fn into_slice(self) -> Vec<Slice> {
                let ($($name,)*) = self;
                vec![$($name.into()),*]
            }
        })*
    };
}

tuples! { A; A B; A B C; A B C D; A B C D E; A B C D E F; A B C D E F G; A B C D E F G H; }

impl Tensor {
    /// A part of the tensor. Axes that are not spoken of are whole.
    ///
    /// ```
    /// # use loopwright_x86 as _;
    /// use loopwright_tensor::{Slice, Tensor};
    ///
    /// let x = Tensor::arange(0, 12, 1).reshape([3, 4]);
    /// assert_eq!(x.at(1).to_f64()?, [4., 5., 6., 7.]);
    /// assert_eq!(x.at((.., -1)).to_f64()?, [3., 7., 11.]);
    /// assert_eq!(x.at((1.., Slice::from(0..4).step(2))).to_f64()?, [4., 6., 8., 10.]);
    /// assert_eq!(x.at((&Tensor::from([2i64, 0]), 0)).to_f64()?, [8., 0.]);
    /// # Ok::<(), loopwright_tensor::TensorError>(())
    /// ```
    #[track_caller]
    pub fn at(&self, parts: impl IntoSlice) -> Tensor {
        if let Some(failed) = failure(&[self]) {
            return failed;
        }
        settle(self.taken(parts.into_slice()))
    }

    #[track_caller]
    fn taken(&self, mut parts: Vec<Slice>) -> Result<Tensor, TensorError> {
        let speaks = |part: &&Slice| !matches!(part, Slice::New | Slice::Rest);
        let spoken = parts.iter().filter(speaks).count();
        if spoken > self.rank() {
            let reason = format!(
                "{spoken} axes are spoken of, and it has {}",
                counted(self.rank(), "axis")
            );
            return Err(refuse_shape("at", self.shape(), reason));
        }
        let rests = parts
            .iter()
            .filter(|part| matches!(part, Slice::Rest))
            .count();
        if rests > 1 {
            return Err(refuse_shape(
                "at",
                self.shape(),
                "only one part can be the rest",
            ));
        }
        let rest = vec![Slice::All; self.rank() - spoken];
        match parts.iter().position(|part| matches!(part, Slice::Rest)) {
            Some(at) => drop(parts.splice(at..=at, rest)),
            None => parts.extend(rest),
        }
        let mut tensor = self.clone();
        // The axis of what is there by now, and of the tensor as the caller sees it.
        let (mut axis, mut own) = (0, 0);
        for part in parts {
            let spoken = own;
            own += usize::from(!matches!(part, Slice::New));
            match part {
                Slice::All => axis += 1,
                Slice::New => {
                    tensor = tensor.unsqueeze(axis);
                    axis += 1;
                }
                Slice::At(at) => {
                    let size = tensor.known_size(axis)?;
                    let place = if at < 0 { at + size } else { at };
                    if !(0..size).contains(&place) {
                        let reason =
                            format!("element {at} of axis {spoken} is asked for, which has {size}");
                        return Err(refuse_shape("at", self.shape(), reason));
                    }
                    tensor = tensor.strided(axis, place, 1, 1)?.squeeze(axis);
                }
                Slice::Range { start, end, step } => {
                    let size = tensor.known_size(axis)?;
                    if step == 0 {
                        let reason = "a step of 0 leads nowhere";
                        return Err(refuse_shape("at", self.shape(), reason));
                    }
                    let (start, count) = Slice::range(start, end, step, size);
                    // One element has no distance to the next.
                    let step = if count > 1 { step } else { 1 };
                    if (start, step, count) != (0, 1, size) {
                        tensor = tensor.strided(axis, start, step, count)?;
                    }
                    axis += 1;
                }
                Slice::Where(index) => {
                    index.check()?;
                    let index = match index.dtype() {
                        loopwright_ops::DType::Bool => tensor.places_of(axis, &index)?,
                        _ => index,
                    };
                    let rank = index.rank();
                    tensor = tensor.take(&index, axis);
                    axis += rank;
                }
                Slice::Rest => unreachable!("it was replaced"),
            }
        }
        Ok(tensor)
    }

    #[track_caller]
    fn known_size(&self, axis: usize) -> Result<i64, TensorError> {
        let size = self.shape().axes()[axis].known();
        size.map(|size| size as i64).ok_or_else(|| {
            refuse_shape(
                "at",
                self.shape(),
                format!("the size of axis {axis} is not known yet"),
            )
        })
    }

    /// The places at which a mask along an axis is true.
    #[track_caller]
    fn places_of(&self, axis: usize, mask: &Tensor) -> Result<Tensor, TensorError> {
        let size = self.known_size(axis)?;
        if mask.rank() != 1 || mask.known_size(0)? != size {
            let reason = format!(
                "the mask is {}, and axis {axis} has {size} elements",
                mask.shape()
            );
            return Err(refuse_shape("at", self.shape(), reason));
        }
        let mask = mask.array()?;
        let places = mask.iter().enumerate().filter(|(_, value)| value.is_true());
        let places: Vec<i64> = places.map(|(at, _)| at as i64).collect();
        Ok(Tensor::from(places))
    }
}

#[cfg(test)]
mod tests {
    use super::Slice;

    #[test]
    fn ranges_have_steps_and_ends_up_to_the_limits_of_64_bits() {
        let limits = [
            i64::MIN,
            i64::MIN + 1,
            -7,
            -1,
            0,
            1,
            3,
            i64::MAX - 1,
            i64::MAX,
        ];
        for size in [0, 1, 5] {
            for step in limits.into_iter().filter(|step| *step != 0) {
                for start in limits {
                    let (from, count) = Slice::range(Some(start), None, step, size);
                    // One by one, in numbers that cannot overflow.
                    let mut expected = 0;
                    let mut at = i128::from(from);
                    while (0..i128::from(size)).contains(&at) {
                        expected += 1;
                        at += i128::from(step);
                    }
                    assert_eq!(count, expected, "{start}::{step} of {size}");
                }
            }
        }
    }
}
