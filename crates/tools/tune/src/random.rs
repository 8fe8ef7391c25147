//! Random numbers that are the same everywhere.

/// SplitMix64: small, fast, and good enough for inputs and choices.
#[derive(Clone, Debug)]
pub(crate) struct Generator(u64);

impl Generator {
    pub(crate) fn new(seed: u64) -> Generator {
        Generator(seed)
    }

    /// The generator of a seed and a name, whatever else is random.
    pub(crate) fn named(seed: u64, name: &str) -> Generator {
        let mut generator = Generator(seed);
        for byte in name.bytes() {
            generator.0 ^= u64::from(byte);
            generator.bits();
        }
        generator
    }

    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`; 0 where that is 0.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(limit)) >> 64) as u64
    }

    /// True in `percent` of a hundred cases.
    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of some things; `None` where there are none.
    pub(crate) fn pick<'a, T>(&mut self, things: &'a [T]) -> Option<&'a T> {
        things.get(self.below(things.len() as u64) as usize)
    }

    /// Uniform in [-1, 1), a multiple of 2^-23, so that an `f32` holds it exactly.
    pub(crate) fn float(&mut self) -> f32 {
        (self.bits() >> 40) as f32 / (1 << 23) as f32 - 1.0
    }
}
