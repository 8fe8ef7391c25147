//! Ops that work element by element.

use super::{IntoScalar, failure};
use crate::error::{ErrorKind, TensorError};
use crate::node::{Kind, Tensor, View};
use crate::shape::{JoinError, Places, Shape, join};
use crate::size::axis_index;
use loopwright_ops::{DType, Op, OpError, can_bitcast};
use loopwright_symbolic::Expr;
use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Rem, Sub};

impl Tensor {
    /// Any op of the table on tensors whose shapes join.
    #[track_caller]
    pub fn map(op: Op, operands: &[&Tensor]) -> Tensor {
        if let Some(failed) = failure(operands) {
            return failed;
        }
        let dtypes: Vec<DType> = operands.iter().map(|operand| operand.dtype()).collect();
        let dtype = match op.result_dtype(&dtypes) {
            Ok(dtype) => dtype,
            Err(error) => {
                let hint = hint(&error);
                return Tensor::failed(ErrorKind::DType { error, hint });
            }
        };
        let (first, rest) = match operands.split_first() {
            Some((first, rest)) => (*first, rest),
            None => unreachable!("no op takes nothing, and the table counts operands"),
        };
        let mut shape = first.shape().clone();
        for operand in rest {
            shape = match join(&shape, operand.shape()) {
                Ok((joined, _)) => joined,
                Err(error) => {
                    return Tensor::of_error(refuse_join(
                        op.name(),
                        &shape,
                        operand.shape(),
                        &error,
                    ));
                }
            };
        }
        let mut aligned = Vec::with_capacity(operands.len());
        for operand in operands {
            match operand.along(&shape) {
                Ok(operand) => aligned.push(operand),
                Err(error) => {
                    return Tensor::of_error(refuse_join(
                        op.name(),
                        operand.shape(),
                        &shape,
                        &error,
                    ));
                }
            }
        }
        let aligned: Vec<&Tensor> = aligned.iter().collect();
        Tensor::make(Kind::Map(op), &aligned, shape, dtype)
    }

    /// The tensor with all axes of a shape that it joins with.
    #[track_caller]
    pub(crate) fn along(&self, shape: &Shape) -> Result<Tensor, JoinError> {
        if self.shape() == shape {
            return Ok(self.clone());
        }
        let (_, [_, places]) = join(shape, self.shape())?;
        Ok(self.spread(shape, &places))
    }

    /// The tensor with the axes of a shape; `places` says where each of them is in this tensor.
    #[track_caller]
    pub(crate) fn spread(&self, shape: &Shape, places: &Places) -> Tensor {
        let mut map = smallvec::SmallVec::from_elem(Expr::constant(0), self.rank());
        for (axis, place) in places.iter().enumerate() {
            let Some(place) = *place else { continue };
            let repeated = self.shape().axes()[place].known() == Some(1)
                && shape.axes()[axis].known() != Some(1);
            if !repeated {
                map[place] = axis_index(axis);
            }
        }
        Tensor::make(
            Kind::View(View::inside(map)),
            &[self],
            shape.clone(),
            self.dtype(),
        )
    }

    /// A number as a tensor of this one's dtype.
    #[track_caller]
    pub(crate) fn number<T: IntoScalar>(&self, value: T) -> Tensor {
        if self.is_failed() {
            return self.clone();
        }
        match value.into_scalar(self.dtype()) {
            Some(value) => Tensor::constant(value),
            None => Tensor::failed(ErrorKind::Argument {
                op: value.text(),
                reason: format!(
                    "a number beside a tensor takes its dtype, and {} does not hold this one; convert the tensor, for example with `.cast(DType::{:?})`",
                    self.dtype(),
                    T::own_dtype()
                ),
            }),
        }
    }

    /// The elements in another dtype. Floats become integers towards zero, and saturate.
    #[track_caller]
    pub fn cast(&self, dtype: DType) -> Tensor {
        if self.dtype() == dtype || self.is_failed() {
            return self.clone();
        }
        Tensor::make(Kind::Cast, &[self], self.shape().clone(), dtype)
    }

    /// The same bits as another dtype of the same width.
    #[track_caller]
    pub fn bitcast(&self, dtype: DType) -> Tensor {
        if self.dtype() == dtype || self.is_failed() {
            return self.clone();
        }
        if !can_bitcast(self.dtype(), dtype) {
            return Tensor::failed(ErrorKind::Argument {
                op: "bitcast".to_owned(),
                reason: format!("{} and {dtype} do not have the same width", self.dtype()),
            });
        }
        Tensor::make(Kind::Bitcast, &[self], self.shape().clone(), dtype)
    }

    /// The elements within bounds: what is below the lower is the lower, what is above the upper the upper.
    #[track_caller]
    pub fn clip<T: IntoScalar>(&self, low: T, high: T) -> Tensor {
        self.maximum(low).minimum(high)
    }

    /// Whether the elements are close: `|a - b| <= absolute + relative * |b|`.
    #[track_caller]
    pub fn is_close(&self, other: &Tensor, relative: f64, absolute: f64) -> Tensor {
        let bound = other.abs() * relative + absolute;
        (self - other).abs().le(&bound) | self.eq(other)
    }

    /// The square.
    #[track_caller]
    pub fn square(&self) -> Tensor {
        self * self
    }

    /// The elements to a power that is a number.
    #[track_caller]
    pub fn powf(&self, exponent: f64) -> Tensor {
        match exponent {
            2.0 => self.square(),
            1.0 => self.clone(),
            0.5 => self.sqrt(),
            -1.0 => self.recip(),
            _ => self.pow(&self.number(exponent)),
        }
    }

    /// What is positive, and 0 elsewhere; its slope at 0 is 0.
    #[track_caller]
    pub fn relu(&self) -> Tensor {
        // Not the larger of two, which would share the slope at 0; NaN stays NaN.
        let zero = self.number(0);
        select(&self.le(&zero), &zero, self)
    }

    /// `1 / (1 + exp(-x))`.
    #[track_caller]
    pub fn sigmoid(&self) -> Tensor {
        (self * 0.5).tanh() * 0.5 + 0.5
    }

    /// `x * sigmoid(x)`, also called swish.
    #[track_caller]
    pub fn silu(&self) -> Tensor {
        self * self.sigmoid()
    }

    /// `x * Phi(x)`, with the normal distribution's `Phi`.
    #[track_caller]
    pub fn gelu(&self) -> Tensor {
        self * 0.5 * ((self * std::f64::consts::FRAC_1_SQRT_2).erf() + 1.0)
    }

    /// [`gelu`](Tensor::gelu) as many networks were trained with it, by tanh.
    #[track_caller]
    pub fn gelu_tanh(&self) -> Tensor {
        let inner = (self + self * self * self * 0.044_715) * (2.0 / std::f64::consts::PI).sqrt();
        self * 0.5 * (inner.tanh() + 1.0)
    }

    /// `log(1 + exp(x))`, without overflow.
    #[track_caller]
    pub fn softplus(&self) -> Tensor {
        self.relu() + (-self.abs()).exp().log1p()
    }

    /// `x` where it is positive, `slope * x` elsewhere.
    #[track_caller]
    pub fn leaky_relu(&self, slope: f64) -> Tensor {
        select(&self.gt(&self.number(0)), self, &(self * slope))
    }

    /// `x` where it is positive, `scale * (exp(x) - 1)` elsewhere.
    #[track_caller]
    pub fn elu(&self, scale: f64) -> Tensor {
        let negative = self.minimum(&self.number(0)).expm1() * scale;
        select(&self.gt(&self.number(0)), self, &negative)
    }
}

/// `a` where the condition holds, else `b`.
#[track_caller]
pub fn select(condition: &Tensor, a: &Tensor, b: &Tensor) -> Tensor {
    Tensor::map(Op::Select, &[condition, a, b])
}

fn hint(error: &OpError) -> String {
    match error {
        OpError::Mismatch { left, right, .. } => {
            format!(
                "; convert one of them, for example with `.cast(DType::{})`",
                variant(*left, *right)
            )
        }
        OpError::Condition { .. } => "; compare it, for example with `.ne(..)`".to_owned(),
        OpError::Class { got, .. } if got.is_int() || *got == DType::Bool => {
            "; convert the operand, for example with `.cast(DType::F32)`".to_owned()
        }
        _ => String::new(),
    }
}

/// The dtype of two that holds more, as it is written in Rust.
fn variant(a: DType, b: DType) -> String {
    let rank = |dtype: DType| (dtype.is_float(), dtype.bits());
    let wider = if rank(b) > rank(a) { b } else { a };
    format!("{wider:?}")
}

#[track_caller]
pub(crate) fn refuse_join(op: &str, left: &Shape, right: &Shape, error: &JoinError) -> TensorError {
    let axis = |shape: &Shape, at: usize| match &shape.axes()[at].name {
        Some(name) => format!("axis `{name}`"),
        None => format!("axis {at}"),
    };
    let reason = match error {
        JoinError::Sizes(l, r) => {
            let (l_axis, r_axis) = (&left.axes()[*l], &right.axes()[*r]);
            let size = |axis: &crate::shape::Axis| axis.known().map_or("?".to_owned(), |size| size.to_string());
            match l_axis.name.is_some() {
                true => format!("{} has size {} in one and {} in the other", axis(left, *l), size(l_axis), size(r_axis)),
                false => format!(
                    "{} of the first, of size {}, meets {} of the second, of size {}; sizes that meet are equal, or one of them is 1",
                    axis(left, *l), size(l_axis), axis(right, *r), size(r_axis)
                ),
            }
        }
        JoinError::Names => "one has names for its axes and the other has none, so it is open which meet; name the axes with `.named([..])`, or drop the names with `.unnamed()`".to_owned(),
        JoinError::TooMany => "the result would have too many axes".to_owned(),
    };
    TensorError::new(ErrorKind::Shapes {
        op: op.to_owned(),
        left: left.to_string(),
        right: right.to_string(),
        reason,
    })
}

macro_rules! unary {
    ($($name:ident $op:ident $doc:literal;)*) => {
        impl Tensor {
            $(#[doc = $doc]
            #[track_caller]
            pub fn $name(&self) -> Tensor {
                Tensor::map(Op::$op, &[self])
            })*
        }
    };
}

unary! {
    abs Abs "The absolute value.";
    sign Sign "-1, 0 or 1.";
    recip Recip "1 divided by the elements.";
    sqrt Sqrt "The square root.";
    rsqrt Rsqrt "1 divided by the square root.";
    cbrt Cbrt "The cube root.";
    exp Exp "e to the power of the elements.";
    exp2 Exp2 "2 to the power of the elements.";
    expm1 Expm1 "`exp(x) - 1`, precise near 0.";
    log Log "The natural logarithm.";
    log2 Log2 "The logarithm to base 2.";
    log10 Log10 "The logarithm to base 10.";
    log1p Log1p "`log(1 + x)`, precise near 0.";
    sin Sin "The sine.";
    cos Cos "The cosine.";
    tan Tan "The tangent.";
    asin Asin "The inverse sine.";
    acos Acos "The inverse cosine.";
    atan Atan "The inverse tangent.";
    sinh Sinh "The hyperbolic sine.";
    cosh Cosh "The hyperbolic cosine.";
    tanh Tanh "The hyperbolic tangent.";
    asinh Asinh "The inverse hyperbolic sine.";
    acosh Acosh "The inverse hyperbolic cosine.";
    atanh Atanh "The inverse hyperbolic tangent.";
    erf Erf "The error function.";
    erfc Erfc "`1 - erf(x)`, precise for large elements.";
    floor Floor "The largest integer not above.";
    ceil Ceil "The smallest integer not below.";
    round Round "The nearest integer, halves to even.";
    trunc Trunc "The elements without their fractions.";
    is_nan IsNan "Whether an element is not a number.";
    is_inf IsInf "Whether an element is an infinity.";
    is_finite IsFinite "Whether an element is neither infinite nor NaN.";
    popcount Popcount "How many bits are one.";
    clz Clz "How many leading bits are zero.";
    ctz Ctz "How many trailing bits are zero.";
}

/// What stands beside a tensor in an op of two: another tensor, or a number, which takes the tensor's dtype.
///
/// ```
/// # use loopwright_x86 as _;
/// use loopwright_tensor::Tensor;
///
/// let x = Tensor::from([1i64, 5, 3]);
/// assert_eq!(x.gt(2).to_f64()?, [0.0, 1.0, 1.0]);
/// assert_eq!(x.minimum(&Tensor::from([4i64, 4, 2])).maximum(2).to_f64()?, [2.0, 4.0, 2.0]);
/// # Ok::<(), loopwright_tensor::TensorError>(())
/// ```
pub trait Operand {
    /// It as a tensor beside another one.
    fn beside(self, other: &Tensor) -> Tensor;
}

impl Operand for &Tensor {
    fn beside(self, _: &Tensor) -> Tensor {
        self.clone()
    }
}

impl<T: IntoScalar> Operand for T {
    #[track_caller]
    fn beside(self, other: &Tensor) -> Tensor {
        other.number(self)
    }
}

macro_rules! binary {
    ($($name:ident $op:ident $doc:literal;)*) => {
        impl Tensor {
            $(#[doc = $doc]
            #[track_caller]
            pub fn $name(&self, other: impl Operand) -> Tensor {
                Tensor::map(Op::$op, &[self, &other.beside(self)])
            })*
        }
    };
}

binary! {
    floor_div FloorDiv "The quotient, rounded down.";
    modulo Mod "The remainder with the sign of the divisor.";
    pow Pow "The elements to the power of others.";
    atan2 Atan2 "The angle of the point (other, self).";
    hypot Hypot "The length of the hypotenuse.";
    copysign CopySign "The elements with the signs of others.";
    minimum Min "The smaller of two; NaN if either is.";
    maximum Max "The larger of two; NaN if either is.";
    eq Eq "Whether elements are equal.";
    ne Ne "Whether elements differ.";
    lt Lt "Whether elements are smaller.";
    le Le "Whether elements are smaller or equal.";
    gt Gt "Whether elements are larger.";
    ge Ge "Whether elements are larger or equal.";
    shl Shl "The bits, shifted to the left.";
    shr Shr "The bits, shifted to the right.";
    threefry Threefry "64 random bits of a key and a counter, both `u64`.";
}

macro_rules! operators {
    ($($trait:ident $method:ident $op:ident;)*) => {
        $(
            impl $trait<&Tensor> for &Tensor {
                type Output = Tensor;
                #[track_caller]
                fn $method(self, other: &Tensor) -> Tensor {
                    Tensor::map(Op::$op, &[self, other])
                }
            }
            impl $trait<Tensor> for Tensor {
                type Output = Tensor;
                #[track_caller]
                fn $method(self, other: Tensor) -> Tensor {
                    Tensor::map(Op::$op, &[&self, &other])
                }
            }
            impl $trait<&Tensor> for Tensor {
                type Output = Tensor;
                #[track_caller]
                fn $method(self, other: &Tensor) -> Tensor {
                    Tensor::map(Op::$op, &[&self, other])
                }
            }
            impl $trait<Tensor> for &Tensor {
                type Output = Tensor;
                #[track_caller]
                fn $method(self, other: Tensor) -> Tensor {
                    Tensor::map(Op::$op, &[self, &other])
                }
            }
            impl<T: IntoScalar> $trait<T> for &Tensor {
                type Output = Tensor;
                #[track_caller]
                fn $method(self, other: T) -> Tensor {
                    Tensor::map(Op::$op, &[self, &self.number(other)])
                }
            }
            impl<T: IntoScalar> $trait<T> for Tensor {
                type Output = Tensor;
                #[track_caller]
                fn $method(self, other: T) -> Tensor {
                    Tensor::map(Op::$op, &[&self, &self.number(other)])
                }
            }
        )*
    };
}

operators! {
    Add add Add;
    Sub sub Sub;
    Mul mul Mul;
    Div div Div;
    Rem rem Rem;
    BitAnd bitand And;
    BitOr bitor Or;
    BitXor bitxor Xor;
}

macro_rules! numbers_first {
    ($($type:ty)*) => {
        $(numbers_first! { $type: Add add Add, Sub sub Sub, Mul mul Mul, Div div Div })*
    };
    ($type:ty: $($trait:ident $method:ident $op:ident),*) => {
        $(
            impl $trait<&Tensor> for $type {
                type Output = Tensor;
                #[track_caller]
                fn $method(self, other: &Tensor) -> Tensor {
                    Tensor::map(Op::$op, &[&other.number(self), other])
                }
            }
            impl $trait<Tensor> for $type {
                type Output = Tensor;
                #[track_caller]
                fn $method(self, other: Tensor) -> Tensor {
                    Tensor::map(Op::$op, &[&other.number(self), &other])
                }
            }
        )*
    };
}

// One type for integers and one for others, so that a literal has a type.
numbers_first! { f64 i32 }

impl Neg for &Tensor {
    type Output = Tensor;
    #[track_caller]
    fn neg(self) -> Tensor {
        Tensor::map(Op::Neg, &[self])
    }
}

impl Neg for Tensor {
    type Output = Tensor;
    #[track_caller]
    fn neg(self) -> Tensor {
        Tensor::map(Op::Neg, &[&self])
    }
}

impl Not for &Tensor {
    type Output = Tensor;
    #[track_caller]
    fn not(self) -> Tensor {
        Tensor::map(Op::Not, &[self])
    }
}

impl Not for Tensor {
    type Output = Tensor;
    #[track_caller]
    fn not(self) -> Tensor {
        Tensor::map(Op::Not, &[&self])
    }
}
