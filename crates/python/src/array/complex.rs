//! Arithmetic of complex arrays, in terms of their parts.

use loopwright_ops::Op;
use loopwright_tensor::Tensor;

/// Real and imaginary parts.
pub(crate) struct Pair(pub(crate) Tensor, pub(crate) Tensor);

impl Pair {
    pub(crate) fn add(&self, other: &Pair) -> Pair {
        Pair(&self.0 + &other.0, &self.1 + &other.1)
    }

    pub(crate) fn sub(&self, other: &Pair) -> Pair {
        Pair(&self.0 - &other.0, &self.1 - &other.1)
    }

    pub(crate) fn mul(&self, other: &Pair) -> Pair {
        Pair(
            &self.0 * &other.0 - &self.1 * &other.1,
            &self.0 * &other.1 + &self.1 * &other.0,
        )
    }

    /// The larger part of the divisor is divided by, so that nothing overflows on the way.
    pub(crate) fn div(&self, other: &Pair) -> Pair {
        let by_real = other.0.abs().ge(&other.1.abs());
        let pick = |a: &Tensor, b: &Tensor| loopwright_tensor::select(&by_real, a, b);
        let (large, small) = (pick(&other.0, &other.1), pick(&other.1, &other.0));
        let ratio = small / &large;
        let scale = large + pick(&other.1, &other.0) * &ratio;
        let re = pick(&(&self.0 + &self.1 * &ratio), &(&self.0 * &ratio + &self.1));
        let im = pick(&(&self.1 - &self.0 * &ratio), &(&self.1 * &ratio - &self.0));
        Pair(re / &scale, im / &scale)
    }

    pub(crate) fn abs(&self) -> Tensor {
        Tensor::map(Op::Hypot, &[&self.0, &self.1])
    }

    pub(crate) fn exp(&self) -> Pair {
        let length = self.0.exp();
        // Where the angle is 0, so is the imaginary part, however large the length.
        let none = self.1.eq(&self.1.zeros_like());
        let im = loopwright_tensor::select(&none, &self.1, &(&length * self.1.sin()));
        Pair(&length * self.1.cos(), im)
    }

    pub(crate) fn log(&self) -> Pair {
        let angle = Tensor::map(Op::Atan2, &[&self.1, &self.0]);
        Pair(self.abs().log(), angle)
    }

    /// 0 to any power but 0 is 0.
    pub(crate) fn pow(&self, other: &Pair) -> Pair {
        let power = self.log().mul(other).exp();
        let zero = self.0.zeros_like();
        let is_zero = |pair: &Pair| {
            let re = pair.0.eq(&pair.0.zeros_like());
            let im = pair.1.eq(&pair.1.zeros_like());
            Tensor::map(Op::And, &[&re, &im])
        };
        let (base, exponent) = (is_zero(self), is_zero(other));
        let one = self.0.ones_like();
        let pick = loopwright_tensor::select;
        let re = pick(&exponent, &one, &pick(&base, &zero, &power.0));
        let im = pick(&exponent, &zero, &pick(&base, &zero, &power.1));
        Pair(re, im)
    }

    pub(crate) fn equals(&self, other: &Pair) -> Tensor {
        Tensor::map(Op::And, &[&self.0.eq(&other.0), &self.1.eq(&other.1)])
    }

    /// The matrix product.
    pub(crate) fn matmul(&self, other: &Pair) -> Pair {
        Pair(
            self.0.matmul(&other.0) - self.1.matmul(&other.1),
            self.0.matmul(&other.1) + self.1.matmul(&other.0),
        )
    }
}
