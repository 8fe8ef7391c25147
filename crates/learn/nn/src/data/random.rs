//! Random numbers that are the same everywhere.

use loopwright_ops::threefry;

/// A sequence of random numbers that a seed decides: the numbers of [`threefry`] with the seed as its key, counted from 0.
///
/// ```
/// use loopwright_nn::data::Random;
///
/// let mut random = Random::new(7);
/// let mut order: Vec<usize> = random.permutation(5);
/// assert!((0.0..1.0).contains(&random.uniform()));
/// order.sort();
/// assert_eq!(order, [0, 1, 2, 3, 4]);
/// ```
#[derive(Clone, Debug)]
pub struct Random {
    seed: u64,
    counter: u64,
}

impl Random {
    /// The sequence of a seed.
    pub fn new(seed: u64) -> Random {
        Random { seed, counter: 0 }
    }

    /// Another sequence, which a seed and a number decide: that of an epoch, of a worker, of a part.
    pub fn stream(seed: u64, number: u64) -> Random {
        Random::new(threefry(seed, number))
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        let bits = threefry(self.seed, self.counter);
        self.counter = self.counter.wrapping_add(1);
        bits
    }

    /// A number in [0, 1), one of 2^53 that are equally likely.
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A normally distributed number of mean 0 and variance 1, by the method of Box and Muller.
    pub fn normal(&mut self) -> f64 {
        let (u, v) = (self.uniform(), self.uniform());
        // Of one library and not of the machine's, so that all machines have the same numbers.
        let radius = libm::sqrt(-2.0 * libm::log1p(-u));
        radius * libm::cos(std::f64::consts::TAU * v)
    }

    /// A number below `end`, all equally likely.
    ///
    /// # Panics
    /// If `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        assert!(end > 0, "there is a number below the end");
        // The high word of a product with 64 random bits; what would make some numbers likelier is drawn again.
        let unfair = end.wrapping_neg() % end;
        loop {
            let product = u128::from(self.bits()) * u128::from(end);
            if product as u64 >= unfair {
                return (product >> 64) as u64;
            }
        }
    }

    /// The numbers below `count` in a random order, all orders equally likely.
    pub fn permutation(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        self.shuffle(&mut order);
        order
    }

    /// Puts values in a random order.
    pub fn shuffle<T>(&mut self, values: &mut [T]) {
        for last in (1..values.len()).rev() {
            let other = self.below(last as u64 + 1) as usize;
            values.swap(last, other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_decides_everything() {
        // Pinned: sets and orders of batches must not change from one version to the next.
        assert_eq!(Random::new(0).bits(), 0x99ba_4efe_6b20_0159);
        assert_eq!(Random::new(3).permutation(8), Random::new(3).permutation(8));
        assert_ne!(Random::new(3).permutation(8), Random::new(4).permutation(8));
        assert_ne!(Random::stream(3, 0).bits(), Random::stream(3, 1).bits());
    }

    #[test]
    fn numbers_are_spread_as_they_should_be() {
        let mut random = Random::new(1);
        let count = 20_000;
        let mut seen = [0usize; 5];
        for _ in 0..count {
            seen[random.below(5) as usize] += 1;
        }
        // Five standard deviations are 283.
        assert!(
            seen.iter().all(|seen| seen.abs_diff(4000) < 283),
            "{seen:?}"
        );
        let normal: Vec<f64> = (0..count).map(|_| random.normal()).collect();
        let mean = normal.iter().sum::<f64>() / count as f64;
        let variance = normal.iter().map(|x| x * x).sum::<f64>() / count as f64;
        assert!(
            mean.abs() < 0.04 && (variance - 1.0).abs() < 0.05,
            "{mean} {variance}"
        );
    }

    #[test]
    fn every_order_comes_up() {
        let mut random = Random::new(2);
        let orders: std::collections::BTreeSet<Vec<usize>> =
            (0..200).map(|_| random.permutation(3)).collect();
        assert_eq!(orders.len(), 6);
        assert!(random.permutation(0).is_empty());
    }
}
