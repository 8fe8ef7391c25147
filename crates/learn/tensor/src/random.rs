//! Random numbers: every number is a function of a key and its place, so that it depends on no schedule,
//! no device and no other number.
//!
//! ```
//! # use loopwright_x86 as _;
//! use loopwright_tensor::{DType, random};
//!
//! let key = random::Key::new(7);
//! let [a, b] = key.split();
//! let x = random::uniform(&a, [2, 3], DType::F32);
//! let y = random::normal(&b, [3], DType::F32);
//! assert!(x.to_vec::<f32>()?.iter().all(|x| (0.0..1.0).contains(x)));
//! assert_eq!(y.sizes()?, [3]);
//! // The same key gives the same numbers.
//! assert_eq!(x.to_vec::<f32>()?, random::uniform(&a, [2, 3], DType::F32).to_vec::<f32>()?);
//! # Ok::<(), loopwright_tensor::TensorError>(())
//! ```
//!
//! All distributions have the same bits on every device: they are made of ops that are rounded alike everywhere.
//!
//! The bits are those of `GraphBuilder::random_bits` of the graph crate: Threefry-2x32-20 with the key as
//! seed and the place in row-major order as counter. A key is used for one tensor; [`Key::split`] and
//! [`Key::fold_in`] make others of it, and a [`Generator`] makes one after the other.

use crate::error::{ErrorKind, TensorError};
use crate::exact::{cos_of_turns, log, mul_add, normal_quantile};
use crate::node::Tensor;
use crate::ops::{AxisRef, failure, select, settle};
use crate::shape::{Axis, IntoShape, Places, Shape};
use crate::size;
use crate::variable::Variable;
use loopwright_ops::{DType, Op, Scalar};

/// Counters of keys made of keys: no tensor has so many elements.
const SPLIT: u64 = 1 << 63;
const FOLD_IN: u64 = 1 << 62;

/// What random numbers are made of: 64 bits, which may be known later.
#[derive(Clone, Debug)]
pub struct Key {
    seed: Tensor,
}

fn word(value: u64) -> Tensor {
    Tensor::constant(Scalar::from_bits(DType::U64, value))
}

impl Key {
    /// The key of a seed.
    #[track_caller]
    pub fn new(seed: u64) -> Key {
        Key { seed: word(seed) }
    }

    /// The key of a seed that is a tensor: one integer.
    #[track_caller]
    pub fn of(seed: &Tensor) -> Key {
        let seed = match seed {
            seed if seed.is_failed() => seed.clone(),
            seed if !seed.dtype().is_int() => Tensor::failed(ErrorKind::Expected {
                op: "Key::of".to_owned(),
                expected: "an integer".to_owned(),
                got: seed.dtype(),
            }),
            seed if seed.rank() != 0 => Tensor::failed(ErrorKind::Shape {
                op: "Key::of".to_owned(),
                shape: seed.shape().to_string(),
                reason: "a seed is one number".to_owned(),
            }),
            seed => seed.cast(DType::U64),
        };
        Key { seed }
    }

    /// The seed (`u64`).
    pub fn seed(&self) -> &Tensor {
        &self.seed
    }

    /// Keys that have nothing to do with each other, nor with this one's numbers.
    #[track_caller]
    pub fn split<const N: usize>(&self) -> [Key; N] {
        std::array::from_fn(|at| self.derived(&word(SPLIT | at as u64)))
    }

    /// As [`split`](Key::split) for a number of keys that is not known when the program is written.
    #[track_caller]
    pub fn split_into(&self, count: usize) -> Vec<Key> {
        let keys = (0..count as u64).map(|at| self.derived(&word(SPLIT | at)));
        keys.collect()
    }

    /// The key for a number: of a step, a layer, a device.
    #[track_caller]
    pub fn fold_in(&self, number: u64) -> Key {
        self.fold_in_value(&word(number))
    }

    /// The key for a number that is a tensor: one integer.
    #[track_caller]
    pub fn fold_in_value(&self, number: &Tensor) -> Key {
        // Numbers of 64 bits do not fit beside a mark: the upper half goes into a key of its own.
        let number = Key::of(number).seed;
        let (low, high) = (&number & &word(u64::from(u32::MAX)), number.shr(&word(32)));
        let upper = self.derived(&(high | word(FOLD_IN)));
        upper.derived(&(low | word(FOLD_IN)))
    }

    /// The key for the part that is worked on: see [`shard`](crate::shard). Where there are no parts, it is
    /// the same.
    #[must_use]
    #[track_caller]
    pub fn of_shard(self) -> Key {
        match crate::shard() {
            Some(number) => self.fold_in_value(&number),
            None => self,
        }
    }

    #[track_caller]
    fn derived(&self, counter: &Tensor) -> Key {
        Key {
            seed: self.seed.threefry(counter),
        }
    }
}

impl From<u64> for Key {
    #[track_caller]
    fn from(seed: u64) -> Key {
        Key::new(seed)
    }
}

/// Keys one after the other. The count is a [`Variable`], so that a function made by
/// [`jit`](crate::jit()) draws new numbers in every call.
///
/// Clones share the count.
///
/// ```
/// # use loopwright_x86 as _;
/// use loopwright_tensor::{DType, Tensor, jit, random};
///
/// let generator = random::Generator::new(3);
/// let draw = jit("draw", move |_: &Tensor| random::uniform(&generator.key(), [4], DType::F32));
/// let x = Tensor::scalar(0.0);
/// assert_ne!(draw.call(&x)?.to_vec::<f32>()?, draw.call(&x)?.to_vec::<f32>()?);
/// # Ok::<(), loopwright_tensor::TensorError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Generator {
    seed: u64,
    count: Variable,
}

impl Generator {
    /// The generator of a seed, at its first key.
    pub fn new(seed: u64) -> Generator {
        Generator {
            seed,
            count: Variable::new(&word(0)),
        }
    }

    /// Its seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// How many keys it has given (`u64`): what a checkpoint keeps of it, beside the seed.
    pub fn count(&self) -> &Variable {
        &self.count
    }

    /// The next key. On streams that work on parts, each has another one ([`shard`](crate::shard)).
    #[track_caller]
    pub fn key(&self) -> Key {
        let count = self.count.get();
        match self.count.set(&(&count + 1u64)) {
            Ok(()) => Key::new(self.seed).fold_in_value(&count).of_shard(),
            Err(error) => Key {
                seed: Tensor::of_error(error),
            },
        }
    }
}

/// The place of every element in row-major order (`u64`).
#[track_caller]
fn places(shape: &Shape) -> Tensor {
    let mut place: Option<Tensor> = None;
    for (at, axis) in shape.axes().iter().enumerate() {
        let along: Places = (0..shape.rank())
            .map(|other| (other == at).then_some(0))
            .collect();
        let index = Tensor::index(axis.clone())
            .cast(DType::U64)
            .spread(shape, &along);
        place = Some(match place {
            None => index,
            Some(place) => {
                let size = Tensor::size_value(&size::resolve(&axis.size)).cast(DType::U64);
                place * size + index
            }
        });
    }
    place.unwrap_or_else(|| word(0))
}

/// 64 random bits for each element (`u64`).
#[track_caller]
pub fn bits(key: &Key, shape: impl IntoShape) -> Tensor {
    let shape = shape.into_shape();
    if let Some(name) = shape.repeated_name() {
        return Tensor::failed(ErrorKind::Shape {
            op: "random".to_owned(),
            shape: shape.to_string(),
            reason: format!("two axes are called `{name}`"),
        });
    }
    key.seed.threefry(&places(&shape))
}

/// The bits of a float's precision.
#[track_caller]
fn digits(op: &str, dtype: DType) -> Result<u32, TensorError> {
    match dtype {
        DType::F8E5M2 => Ok(3),
        DType::F8E4M3 => Ok(4),
        DType::BF16 => Ok(8),
        DType::F16 => Ok(11),
        DType::F32 => Ok(24),
        DType::F64 => Ok(53),
        _ => Err(TensorError::new(ErrorKind::Expected {
            op: op.to_owned(),
            expected: "a float dtype".to_owned(),
            got: dtype,
        })),
    }
}

/// A number in [0, 1) from the `digits` bits of `bits` above `shift`.
#[track_caller]
fn fraction(bits: &Tensor, shift: u32, digits: u32, dtype: DType) -> Tensor {
    let mut top = bits.shr(&word(shift.into()));
    if shift + digits < 64 {
        top = top & word((1 << digits) - 1);
    }
    // Signed integers as wide as the float: machines have an instruction that converts those.
    let signed = if dtype == DType::F64 {
        DType::I64
    } else {
        DType::I32
    };
    top.cast(signed).cast(dtype) * (-f64::from(digits)).exp2()
}

/// Uniformly distributed numbers in [0, 1), of a float dtype: multiples of 2 to the minus as many as the
/// dtype has bits of precision, all equally likely and the same on every device.
#[track_caller]
pub fn uniform(key: &Key, shape: impl IntoShape, dtype: DType) -> Tensor {
    let digits = match digits("uniform", dtype) {
        Ok(digits) => digits,
        Err(error) => return Tensor::of_error(error),
    };
    fraction(&bits(key, shape), 64 - digits, digits, dtype.compute()).cast(dtype)
}

/// Normally distributed numbers of mean 0 and variance 1, of a float dtype, by the method of Box and
/// Muller; in `f64` for `f64` and in `f32` for all others, which are rounded from it.
#[track_caller]
pub fn normal(key: &Key, shape: impl IntoShape, dtype: DType) -> Tensor {
    if let Err(error) = digits("normal", dtype) {
        return Tensor::of_error(error);
    }
    let wide = dtype.compute();
    let digits = if wide == DType::F64 { 53 } else { 24 };
    let bits = bits(key, shape);
    let u = fraction(&bits, 64 - digits, digits, wide);
    let v = match 2 * digits <= 64 {
        true => fraction(&bits, 64 - 2 * digits, digits, wide),
        false => fraction(&key.seed.threefry(&bits), 64 - digits, digits, wide),
    };
    // 1 - u with u in [0, 1) has a finite logarithm, and is exact.
    let radius = (log(&(1.0 - u)) * -2.0).sqrt();
    // A product could be contracted with a sum that it is a part of later.
    mul_add(&radius, &cos_of_turns(&v), &radius.number(0)).cast(dtype)
}

/// `-log(1 - u)` for uniform numbers, in the dtype in which it is computed.
#[track_caller]
fn wide_exponential(key: &Key, shape: impl IntoShape, dtype: DType) -> Tensor {
    // Not its negative: that of 0 has a sign.
    log(&(1.0 - uniform(key, shape, dtype).cast(dtype.compute()))).abs()
}

/// Uniformly distributed numbers from `low` to `high`, of a float dtype; the same on every device.
#[track_caller]
pub fn uniform_between(
    key: &Key,
    shape: impl IntoShape,
    low: f64,
    high: f64,
    dtype: DType,
) -> Tensor {
    stretched(&uniform(key, shape, dtype), high - low, low)
}

/// Normally distributed numbers of a mean and a standard deviation, of a float dtype; the same on every device.
#[track_caller]
pub fn normal_of(
    key: &Key,
    shape: impl IntoShape,
    mean: f64,
    deviation: f64,
    dtype: DType,
) -> Tensor {
    stretched(&normal(key, shape, dtype), deviation, mean)
}

/// `drawn * factor + offset`, rounded once.
#[track_caller]
fn stretched(drawn: &Tensor, factor: f64, offset: f64) -> Tensor {
    if drawn.is_failed() {
        return drawn.clone();
    }
    mul_add(drawn, &drawn.number(factor), &drawn.number(offset))
}

/// True with a probability (`bool`), to 24 bits of precision.
#[track_caller]
pub fn bernoulli(key: &Key, shape: impl IntoShape, probability: f64) -> Tensor {
    if !(0.0..=1.0).contains(&probability) {
        return Tensor::failed(ErrorKind::Argument {
            op: "bernoulli".to_owned(),
            reason: format!("a probability is from 0 to 1, not {probability}"),
        });
    }
    let draw = uniform(key, shape, DType::F32);
    draw.lt(&draw.number(probability))
}

/// Integers from `low` to `high`, which is left out (`i64`), equally likely but for one part in 2 to the
/// 32 where there are fewer than 2 to the 32 of them.
#[track_caller]
pub fn randint(key: &Key, shape: impl IntoShape, low: i64, high: i64) -> Tensor {
    if low >= high {
        return Tensor::failed(ErrorKind::Argument {
            op: "randint".to_owned(),
            reason: format!("there is no integer from {low} up to {high}, which is left out"),
        });
    }
    let count = high.abs_diff(low);
    let bits = bits(key, shape);
    let draw = match u32::try_from(count) {
        // The upper half of a product: no division.
        Ok(_) => (bits.shr(&word(32)) * word(count)).shr(&word(32)),
        Err(_) => bits.modulo(&word(count)),
    };
    draw.cast(DType::I64) + low
}

/// Numbers of the exponential distribution of mean 1.
#[track_caller]
pub fn exponential(key: &Key, shape: impl IntoShape, dtype: DType) -> Tensor {
    match digits("exponential", dtype) {
        Ok(_) => wide_exponential(key, shape, dtype).cast(dtype),
        Err(error) => Tensor::of_error(error),
    }
}

/// Numbers of the standard Gumbel distribution: the largest of logits plus such numbers is drawn with
/// the softmax's probabilities.
#[track_caller]
pub fn gumbel(key: &Key, shape: impl IntoShape, dtype: DType) -> Tensor {
    let digits = match digits("gumbel", dtype) {
        Ok(digits) => digits,
        Err(error) => return Tensor::of_error(error),
    };
    // 0 would give an infinity; half of the smallest step stands for it.
    let draw = wide_exponential(key, shape, dtype);
    let draw = draw.maximum(&draw.number((-f64::from(digits) - 1.0).exp2()));
    (-log(&draw)).cast(dtype)
}

/// The error function on the host.
fn erf(x: f64) -> f64 {
    let operand = Scalar::from_f64(DType::F64, x);
    loopwright_ops::evaluate(Op::Erf, &[operand]).map_or(f64::NAN, Scalar::to_f64)
}

/// Normally distributed numbers within bounds: of a normal distribution cut off at `low` and `high`, which
/// are within 5 of 0 or beyond on either side of it.
#[track_caller]
pub fn truncated_normal(
    key: &Key,
    shape: impl IntoShape,
    low: f64,
    high: f64,
    dtype: DType,
) -> Tensor {
    if !(low < high && low < 5.0 && high > -5.0) {
        return Tensor::failed(ErrorKind::Argument {
            op: "truncated_normal".to_owned(),
            reason: format!("no numbers can be drawn from {low} to {high}"),
        });
    }
    if let Err(error) = digits("truncated_normal", dtype) {
        return Tensor::of_error(error);
    }
    // By the inverse of the distribution between those of the bounds.
    let wide = dtype.compute();
    let scale = std::f64::consts::FRAC_1_SQRT_2;
    // How much more than 1/2 the probability of smaller numbers is.
    let share = |bound: f64| 0.5 * erf(bound.clamp(-5.0, 5.0) * scale);
    let (from, to) = (share(low), share(high));
    let x = normal_quantile(&stretched(&uniform(key, shape, wide), to - from, from));
    x.clip(low.max(-5.0), high.min(5.0)).cast(dtype)
}

/// Indices (`i64`) along an axis of logits, drawn with the softmax's probabilities; the axis goes.
#[track_caller]
pub fn categorical(key: &Key, logits: &Tensor, axis: impl Into<AxisRef>) -> Tensor {
    if let Some(failed) = failure(&[logits]) {
        return failed;
    }
    let noise = gumbel(key, logits.shape(), logits.dtype());
    (logits + noise).argmax(axis)
}

/// The numbers from 0 to `count`, which is left out (`i64`), in random order.
#[track_caller]
pub fn permutation(key: &Key, count: usize) -> Tensor {
    bits(key, [count]).argsort(0, false)
}

/// The elements of a tensor along an axis in random order, the same for all lines.
#[track_caller]
pub fn shuffle(key: &Key, tensor: &Tensor, axis: impl Into<AxisRef>) -> Tensor {
    let axis = axis.into();
    if let Some(failed) = failure(&[tensor]) {
        return failed;
    }
    let mixed = crate::ops::axis_place("shuffle", tensor.shape(), &axis).map(|at| {
        let along = Axis {
            name: None,
            size: tensor.shape().axes()[at].size.clone(),
        };
        let order = bits(key, Shape::new([along])).argsort(0, false);
        let mixed = tensor.unnamed().take(&order, at);
        mixed.in_place(tensor.shape().clone())
    });
    settle(mixed)
}

/// Keeps elements with a probability and divides them by it; the others are 0: dropout.
#[track_caller]
pub fn dropout(key: &Key, tensor: &Tensor, drop: f64) -> Tensor {
    if let Some(failed) = failure(&[tensor]) {
        return failed;
    }
    if !(0.0..1.0).contains(&drop) {
        return Tensor::failed(ErrorKind::Argument {
            op: "dropout".to_owned(),
            reason: format!("a part from 0 up to 1, which is left out, can be dropped, not {drop}"),
        });
    }
    let kept = bernoulli(key, tensor.shape(), 1.0 - drop);
    select(&kept, &(tensor / (1.0 - drop)), &tensor.zeros_like())
}
