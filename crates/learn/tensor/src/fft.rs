//! Fourier transforms along axes of any size.
//!
//! A complex tensor is a pair of real ones ([`Complex`]). A transform of `n` elements is split into steps
//! by the factors of `n`: the largest divisor up to 16 first, and where there is none the smallest prime.
//! Each step is a product with a small matrix of roots of unity and one with twiddles. So the work is
//! `n` times the sum of the factors: `O(n log n)` where `n` has small factors, and `O(n²)` where it is a
//! prime. Forward transforms are not scaled, inverse ones are by `1 / n`.
//!
//! ```
//! # use loopwright_x86 as _;
//! use loopwright_tensor::{Tensor, fft};
//!
//! let x = Tensor::from([1.0f64, 2.0, 3.0, 4.0]);
//! let spectrum = fft::rfft(&x, -1);
//! assert_eq!(spectrum.re.to_vec::<f64>()?[0], 10.0);
//! let back = fft::irfft(&spectrum, 4, -1);
//! assert!((back - x).abs().max(..).item()? < 1e-15);
//! # Ok::<(), loopwright_tensor::TensorError>(())
//! ```

use crate::error::{ErrorKind, TensorError};
use crate::node::Tensor;
use crate::ops::{AxisRef, axis_place, concat, failure, refuse_shape, settle};
use crate::shape::Shape;
use loopwright_ops::DType;

/// The largest matrix of roots that a step multiplies with, unless a prime is larger.
const LARGEST_FACTOR: usize = 16;

/// A complex tensor: real and imaginary parts of one shape.
#[derive(Clone, Debug)]
pub struct Complex {
    /// The real part.
    pub re: Tensor,
    /// The imaginary part.
    pub im: Tensor,
}

impl Complex {
    /// A complex tensor of its parts.
    pub fn new(re: &Tensor, im: &Tensor) -> Complex {
        Complex {
            re: re.clone(),
            im: im.clone(),
        }
    }

    /// A real tensor as a complex one.
    #[track_caller]
    pub fn real(re: &Tensor) -> Complex {
        Complex::new(re, &re.zeros_like())
    }

    /// The product.
    #[track_caller]
    pub fn times(&self, other: &Complex) -> Complex {
        Complex {
            re: &self.re * &other.re - &self.im * &other.im,
            im: &self.re * &other.im + &self.im * &other.re,
        }
    }

    /// The conjugate: the imaginary part with the other sign.
    #[track_caller]
    pub fn conjugate(&self) -> Complex {
        Complex {
            re: self.re.clone(),
            im: -&self.im,
        }
    }

    /// The absolute value.
    #[track_caller]
    pub fn abs(&self) -> Tensor {
        self.re.hypot(&self.im)
    }

    /// The angle.
    #[track_caller]
    pub fn angle(&self) -> Tensor {
        self.im.atan2(&self.re)
    }

    #[track_caller]
    fn each(&self, part: impl Fn(&Tensor) -> Tensor) -> Complex {
        Complex {
            re: part(&self.re),
            im: part(&self.im),
        }
    }

    #[track_caller]
    fn of_error(error: TensorError) -> Complex {
        let failed = settle(Err(error));
        Complex::new(&failed, &failed)
    }
}

/// The parts of a complex number; `None` is an imaginary part of 0.
struct Parts {
    re: Tensor,
    im: Option<Tensor>,
}

/// Cosines and sines of `row * column / size` full turns.
#[track_caller]
fn roots(rows: usize, columns: usize, size: usize, dtype: DType) -> (Tensor, Tensor) {
    let table = |part: fn(f64) -> f64| {
        // Quarters of a turn are exact: their cosines and sines are integers.
        let angle = |turn: usize| std::f64::consts::TAU * turn as f64 / size as f64;
        let exact = |turn: usize| match (turn * 4).is_multiple_of(size) {
            true => part(angle(turn)).round(),
            false => part(angle(turn)),
        };
        let circle: Vec<f64> = (0..size).map(exact).collect();
        let at = |at: usize| circle[(at / columns) * (at % columns) % size];
        let values: Vec<f64> = (0..rows * columns).map(at).collect();
        Tensor::new(&values, [rows, columns]).cast(dtype)
    };
    (table(f64::cos), table(f64::sin))
}

/// The factor that a transform is split by; `None` where it is done at once.
fn factor(size: usize) -> Option<usize> {
    if size <= LARGEST_FACTOR {
        return None;
    }
    let small = (2..=LARGEST_FACTOR)
        .rev()
        .find(|factor| size.is_multiple_of(*factor));
    let prime = || {
        let roots = (LARGEST_FACTOR + 1..).take_while(|factor| factor * factor <= size);
        roots
            .into_iter()
            .find(|factor| size.is_multiple_of(*factor))
    };
    small.or_else(prime)
}

/// The transform along the last axis; with `sign` 1 by `exp(-i..)`, with -1 by `exp(i..)`.
#[track_caller]
fn transform(x: Parts, size: usize, sign: f64) -> Complex {
    let dtype = x.re.dtype();
    let Some(radix) = factor(size) else {
        let (cosine, sine) = roots(size, size, size, dtype);
        let times = |part: &Tensor, by: &Tensor| part.matmul(by);
        return turned(&x, &cosine, &(sine * sign), times);
    };
    // Element radix * m + r goes into row r; rows are transformed, turned, and columns transformed.
    let inner = size / radix;
    let rows = |part: &Tensor| part.split_axis(-1, [inner, radix]).t();
    let x = Parts {
        re: rows(&x.re),
        im: x.im.as_ref().map(rows),
    };
    let x = transform(x, inner, sign);
    let (cosine, sine) = roots(radix, inner, size, dtype);
    let times = |part: &Tensor, by: &Tensor| part * by;
    let x = turned(&x.into(), &cosine, &(sine * sign), times);
    let (cosine, sine) = roots(radix, radix, radix, dtype);
    let times = |part: &Tensor, by: &Tensor| by.matmul(part);
    let x = turned(&x.into(), &cosine, &(sine * sign), times);
    x.each(|part| part.merge_axes(-2, -1))
}

impl From<Complex> for Parts {
    fn from(x: Complex) -> Parts {
        Parts {
            re: x.re,
            im: Some(x.im),
        }
    }
}

/// The product with `cosine - i sine`.
#[track_caller]
fn turned(
    x: &Parts,
    cosine: &Tensor,
    sine: &Tensor,
    times: impl Fn(&Tensor, &Tensor) -> Tensor,
) -> Complex {
    match &x.im {
        Some(im) => Complex {
            re: times(&x.re, cosine) + times(im, sine),
            im: times(im, cosine) - times(&x.re, sine),
        },
        None => Complex {
            re: times(&x.re, cosine),
            im: -times(&x.re, sine),
        },
    }
}

/// The place and size of the axis that is transformed.
#[track_caller]
fn along(op: &str, x: &Tensor, axis: &AxisRef) -> Result<(usize, usize), TensorError> {
    if !x.dtype().is_float() {
        return Err(TensorError::new(ErrorKind::Expected {
            op: op.to_owned(),
            expected: "tensors of floats".to_owned(),
            got: x.dtype(),
        }));
    }
    let at = axis_place(op, x.shape(), axis)?;
    match x.shape().axes()[at].known() {
        Some(0) => Err(refuse_shape(
            op,
            x.shape(),
            format!("axis {at} has no elements"),
        )),
        Some(size) => Ok((at, size)),
        None => {
            let reason = format!("the size of axis {at} is not known yet");
            Err(refuse_shape(op, x.shape(), reason))
        }
    }
}

/// Transforms the axis at a place, and gives the axes their names back.
#[track_caller]
fn at_axis(x: Parts, at: usize, size: usize, sign: f64) -> Complex {
    let shape = x.re.shape().clone();
    let last = |part: &Tensor| part.unnamed().move_axis(at, -1);
    let x = Parts {
        re: last(&x.re),
        im: x.im.as_ref().map(last),
    };
    let done = transform(x, size, sign);
    done.each(|part| part.move_axis(-1, at).in_place(shape.clone()))
}

#[track_caller]
fn complex(op: &str, x: &Complex, axis: &AxisRef, sign: f64) -> Result<Complex, TensorError> {
    if x.re.shape() != x.im.shape() || x.re.dtype() != x.im.dtype() {
        return Err(TensorError::new(ErrorKind::Shapes {
            op: op.to_owned(),
            left: format!("{}{}", x.re.dtype(), x.re.shape()),
            right: format!("{}{}", x.im.dtype(), x.im.shape()),
            reason: "real and imaginary part have one dtype and shape".to_owned(),
        }));
    }
    let (at, size) = along(op, &x.re, axis)?;
    let done = at_axis(x.clone().into(), at, size, sign);
    Ok(match sign > 0.0 {
        true => done,
        false => done.each(|part| part / size as f64),
    })
}

#[track_caller]
fn settled(x: &Complex, done: impl FnOnce() -> Result<Complex, TensorError>) -> Complex {
    if let Some(failed) = failure(&[&x.re, &x.im]) {
        return Complex::new(&failed, &failed);
    }
    match done() {
        Ok(done) => done,
        Err(error) => Complex::of_error(error),
    }
}

/// The transform along an axis.
#[track_caller]
pub fn fft(x: &Complex, axis: impl Into<AxisRef>) -> Complex {
    let axis = axis.into();
    settled(x, || complex("fft", x, &axis, 1.0))
}

/// The inverse transform along an axis.
#[track_caller]
pub fn ifft(x: &Complex, axis: impl Into<AxisRef>) -> Complex {
    let axis = axis.into();
    settled(x, || complex("ifft", x, &axis, -1.0))
}

/// The transform along the last two axes.
#[track_caller]
pub fn fft2(x: &Complex) -> Complex {
    fft(&fft(x, -1), -2)
}

/// The inverse transform along the last two axes.
#[track_caller]
pub fn ifft2(x: &Complex) -> Complex {
    ifft(&ifft(x, -1), -2)
}

/// The transform of a real tensor along an axis of `n` elements: the first `n / 2 + 1` numbers, rounded
/// down; the others are their conjugates.
#[track_caller]
pub fn rfft(x: &Tensor, axis: impl Into<AxisRef>) -> Complex {
    let axis = axis.into();
    if let Some(failed) = failure(&[x]) {
        return Complex::new(&failed, &failed);
    }
    let (at, size) = match along("rfft", x, &axis) {
        Ok(found) => found,
        Err(error) => return Complex::of_error(error),
    };
    let real = Parts {
        re: x.clone(),
        im: None,
    };
    at_axis(real, at, size, 1.0).each(|part| part.narrow(at, 0, size / 2 + 1))
}

/// The real tensor whose transform along an axis begins with these `size / 2 + 1` numbers.
#[track_caller]
pub fn irfft(x: &Complex, size: usize, axis: impl Into<AxisRef>) -> Tensor {
    let axis = axis.into();
    settled(x, || real("irfft", x, size, &axis)).re
}

#[track_caller]
fn real(op: &str, x: &Complex, size: usize, axis: &AxisRef) -> Result<Complex, TensorError> {
    let (at, found) = along(op, &x.re, axis)?;
    if size == 0 || found != size / 2 + 1 {
        let reason = format!(
            "{size} elements have {} numbers in the first half of their transform, and axis {at} has {found}",
            size / 2 + 1
        );
        return Err(refuse_shape(op, x.re.shape(), reason));
    }
    // The second half are the conjugates of the first, backwards.
    let mirrored = size - found;
    let whole = |part: &Tensor, sign: f64| {
        let shape = Shape::clone(part.shape());
        let part = part.unnamed();
        if mirrored == 0 {
            return part.in_place(shape);
        }
        let behind = part.narrow(at, 1, mirrored).flip(at) * sign;
        concat(&[&part, &behind], at)
    };
    let whole = Complex::new(&whole(&x.re, 1.0), &whole(&x.im, -1.0));
    let done = complex(op, &whole, &AxisRef::At(at as i64), -1.0)?;
    let names: Vec<_> =
        x.re.shape()
            .axes()
            .iter()
            .map(|axis| axis.name.clone())
            .collect();
    Ok(done.each(|part| {
        let mut shape = part.shape().clone();
        for (axis, name) in shape.0.iter_mut().zip(&names) {
            axis.name.clone_from(name);
        }
        part.in_place(shape)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_are_small_where_they_can_be() {
        assert_eq!(factor(16), None);
        assert_eq!(factor(64), Some(16));
        assert_eq!(factor(34), Some(2));
        assert_eq!(factor(17 * 19), Some(17));
        assert_eq!(factor(97), None);
    }
}
