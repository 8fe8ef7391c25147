//! Arithmetic of complex arrays, in terms of their parts.

use loopwright_ops::Op;
use loopwright_tensor::{Tensor, select};

fn and(a: &Tensor, b: &Tensor) -> Tensor {
    Tensor::map(Op::And, &[a, b])
}

fn is_finite(x: &Tensor) -> Tensor {
    Tensor::map(Op::IsFinite, &[x])
}

/// Powers by integers below it are products; a power of two.
const MOST_FACTORS: f64 = 128.0;

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

    /// By Smith's method: the smaller part of the divisor over the larger one first, so that nothing overflows on
    /// the way.
    pub(crate) fn div(&self, other: &Pair) -> Pair {
        let by_real = other.0.abs().ge(&other.1.abs());
        let pick = |a: &Tensor, b: &Tensor| select(&by_real, a, b);
        let (large, small) = (pick(&other.0, &other.1), pick(&other.1, &other.0));
        // Where both are zero, the ratio is 0 / 0; with a ratio of 0 the quotients are those of reals.
        let none = large.eq(&large.zeros_like());
        let ratio = &small / select(&none, &large.ones_like(), &large);
        let scale = large + small * &ratio;
        let re = pick(&(&self.0 + &self.1 * &ratio), &(&self.0 * &ratio + &self.1));
        let im = pick(&(&self.1 - &self.0 * &ratio), &(&self.1 * &ratio - &self.0));
        Pair(re / &scale, im / &scale)
    }

    pub(crate) fn abs(&self) -> Tensor {
        Tensor::map(Op::Hypot, &[&self.0, &self.1])
    }

    pub(crate) fn exp(&self) -> Pair {
        let Pair(re, im) = self;
        let (length, zero) = (re.exp(), re.zeros_like());
        // A real argument has a real result, also where the exponential is infinite; and what is infinitely small or
        // large has no direction, but is known to be that.
        let real = im.eq(&im.zeros_like());
        // Where the length is too large for the dtype, a part of it need not be: thirds are multiplied one by one.
        let over = and(&!is_finite(&length), &is_finite(re));
        let third = (re * (1.0 / 3.0)).exp();
        let grown = |part: Tensor| {
            let in_thirds = &part * &third * &third * &third;
            select(&over, &in_thirds, &(&length * part))
        };
        let along = select(&real, &length, &grown(im.cos()));
        let across = select(&real, im, &grown(im.sin()));
        let lost = !is_finite(im);
        let none = and(&lost, &re.eq(&(&zero - f64::INFINITY)));
        let endless = and(&lost, &re.eq(&(&zero + f64::INFINITY)));
        Pair(
            select(&none, &zero, &select(&endless, &length, &along)),
            select(&none, &zero, &across),
        )
    }

    pub(crate) fn log(&self) -> Pair {
        let angle = Tensor::map(Op::Atan2, &[&self.1, &self.0]);
        Pair(self.log_abs(), angle)
    }

    /// The logarithm of the length; where that is near 1, through `log1p` of its square less 1, which is small.
    fn log_abs(&self) -> Tensor {
        let (x, y) = (self.0.abs(), self.1.abs());
        let (large, small) = (
            Tensor::map(Op::Max, &[&x, &y]),
            Tensor::map(Op::Min, &[&x, &y]),
        );
        // Not of the ordered ones: an infinity beside NaN is one.
        let length = self.abs();
        let near = and(&length.gt(0.5), &length.lt(3.0));
        let excess = (&large - 1.0) * (large + 1.0) + &small * &small;
        let excess = select(&near, &excess, &excess.zeros_like());
        // The length of the largest numbers is none, but that of their halves is.
        let half = Pair(&self.0 * 0.5, &self.1 * 0.5).abs().log() + std::f64::consts::LN_2;
        let far = select(&length.gt(3.0), &half, &length.log());
        select(&near, &(excess.log1p() * 0.5), &far)
    }

    /// A power of 0 is 0, but for the zeroth, which is 1. Powers by small integers are products, which leave those of
    /// imaginary numbers exactly real or imaginary.
    pub(crate) fn pow(&self, other: &Pair) -> Pair {
        let Pair(re, im) = self.log().mul(other).exp();
        let is_whole = and(
            &other.0.eq(&Tensor::map(Op::Round, &[&other.0])),
            &other.1.eq(&other.1.zeros_like()),
        );
        let is_finite = and(&is_finite(&self.0), &is_finite(&self.1));
        let by_product = and(&and(&is_whole, &other.0.abs().lt(MOST_FACTORS)), &is_finite);
        let product = self.whole_power(&other.0);
        let re = select(&by_product, &product.0, &re);
        let im = select(&by_product, &product.1, &im);
        let (zero, one) = (re.zeros_like(), re.ones_like());
        let (base, none) = (self.is_zero(), other.is_zero());
        let vanishes = and(&base, &other.0.gt(0.0));
        let re = select(&none, &one, &select(&vanishes, &zero, &re));
        let im = select(&Tensor::map(Op::Or, &[&none, &vanishes]), &zero, &im);
        Pair(re, im)
    }

    /// The power by an integer below [`MOST_FACTORS`]: the product of the squares of squares that its bits say.
    fn whole_power(&self, exponent: &Tensor) -> Pair {
        let mut rest = exponent.abs();
        let one = Pair(self.0.ones_like(), self.0.zeros_like());
        let mut square = Pair(self.0.clone(), self.1.clone());
        let mut made = Pair(one.0.clone(), one.1.clone());
        for bit in 0..MOST_FACTORS.log2() as u32 {
            if bit > 0 {
                square = square.mul(&square);
            }
            let half = Tensor::map(Op::Floor, &[&(&rest * 0.5)]);
            let is_factor = (&rest - &half * 2.0).gt(0.5);
            let product = made.mul(&square);
            made = Pair(
                select(&is_factor, &product.0, &made.0),
                select(&is_factor, &product.1, &made.1),
            );
            rest = half;
        }
        let over = one.div(&made);
        let is_negative = exponent.lt(0.0);
        Pair(
            select(&is_negative, &over.0, &made.0),
            select(&is_negative, &over.1, &made.1),
        )
    }

    fn is_zero(&self) -> Tensor {
        let is_zero = |part: &Tensor| part.eq(&part.zeros_like());
        and(&is_zero(&self.0), &is_zero(&self.1))
    }

    pub(crate) fn equals(&self, other: &Pair) -> Tensor {
        and(&self.0.eq(&other.0), &self.1.eq(&other.1))
    }

    /// The matrix product.
    pub(crate) fn matmul(&self, other: &Pair) -> Pair {
        Pair(
            self.0.matmul(&other.0) - self.1.matmul(&other.1),
            self.0.matmul(&other.1) + self.1.matmul(&other.0),
        )
    }
}
