//! The numbers that functions are tried at.

/// A generator of numbers at random, the same ones for the same seed.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Random {
        Random((seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// Numbers where functions change their minds.
const SPECIAL: [f64; 16] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    2.0,
    -2.0,
    3.0,
    -3.0,
    f64::from_bits(1),
    -f64::from_bits(1),
    f64::MAX,
    f64::MIN_POSITIVE,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
];

/// All floats from these bits on, one in `every`.
pub(crate) fn in_order(start: u64, every: u64, x: &mut [f32]) {
    for (at, x) in x.iter_mut().enumerate() {
        *x = f32::from_bits((start + at as u64 * every) as u32);
    }
}

/// Of a size between 2^-16 and 2^16.
fn moderate32(bits: u32) -> f32 {
    let exponent = 127 - 16 + (bits >> 23 & 31);
    f32::from_bits(bits & 0x807f_ffff | exponent << 23)
}

/// Pairs at random: of all bits, of moderate sizes, of nearly the same size, with a first operand near 1, and with whole and special
/// numbers among them.
pub(crate) fn pairs32(seed: u64, x: &mut [f32], y: &mut [f32]) {
    let mut random = Random::new(seed);
    for (x, y) in x.iter_mut().zip(y) {
        let (bits, more) = (random.next(), random.next());
        let [first, second] = [bits as u32, (bits >> 32) as u32];
        let special = |at: u64| SPECIAL[(at & 15) as usize] as f32;
        (*x, *y) = match more % 8 {
            0 => (f32::from_bits(first), f32::from_bits(second)),
            1 | 2 => (moderate32(first), moderate32(second)),
            3 => (moderate32(first), (second.cast_signed() >> 24) as f32),
            4 => {
                let near = 1.0 + moderate32(first) * 2f32.powi(-((more >> 8 & 15) as i32) - 17);
                (
                    near,
                    moderate32(second) * 2f32.powi((more >> 12 & 15) as i32),
                )
            }
            5 => {
                let shift = ((more >> 8 & 3) as u32) << 23;
                let other = (first ^ second & 0x80ff_ffff).wrapping_add(shift);
                (f32::from_bits(first), f32::from_bits(other))
            }
            6 => (f32::from_bits(first), moderate32(second)),
            _ => match more >> 16 & 3 {
                0 => (special(more >> 8), special(more >> 12)),
                1 => (special(more >> 8), f32::from_bits(second)),
                2 => (special(more >> 8), moderate32(second)),
                _ => (f32::from_bits(first), special(more >> 8)),
            },
        };
    }
}

/// Of a size between 2^-`span` and 2^`span`.
fn moderate(bits: u64, span: u64) -> f64 {
    let exponent = 1023 - span + (bits >> 52 & 0x7ff) % (2 * span);
    f64::from_bits(bits & 0x800f_ffff_ffff_ffff | exponent << 52)
}

/// Doubles at random, by themselves or as pairs: of all bits, of moderate sizes, near integers, near quarters of a turn, near 1,
/// and special ones.
pub(crate) fn doubles(seed: u64, x: &mut [f64], y: &mut [f64]) {
    let mut random = Random::new(seed);
    for (x, y) in x.iter_mut().zip(y) {
        let [first, second, more] = [random.next(), random.next(), random.next()];
        *x = match more % 16 {
            0 | 1 => f64::from_bits(first),
            2..=5 => moderate(first, 8),
            6 | 7 => moderate(first, 30),
            8 | 9 => moderate(first, 1),
            10 => (first.cast_signed() >> 52) as f64 / 4.0,
            11 => {
                // Next to a multiple of a quarter of a turn.
                let turns = (first.cast_signed() >> (40 + second % 16)) as f64;
                let near = turns * std::f64::consts::FRAC_PI_2;
                f64::from_bits(near.to_bits().wrapping_add(second >> 32 & 3))
            }
            12 | 13 => 1.0 + moderate(first, 1) * 2f64.powi(-((second >> 8) as i32 & 63)),
            // Where exponentials overflow and become subnormal.
            14 => (first >> 11) as f64 * 2f64.powi(-53) * 1500.0 - 750.0,
            _ => SPECIAL[(first >> 7 & 15) as usize],
        };
        *y = match more >> 8 & 15 {
            0 => f64::from_bits(second),
            1..=4 => moderate(second, 8),
            5 | 6 => moderate(second, 2),
            7 | 8 => (second.cast_signed() >> 54) as f64,
            9 | 10 => {
                // Powers of all sizes, up to where they overflow.
                let most = 1100.0 / x.abs().log2();
                most * ((second >> 11) as f64 * 2f64.powi(-52) - 1.0)
            }
            11 | 12 => *x * moderate(second, 2),
            13 | 14 => moderate(second, 60),
            _ => SPECIAL[(second >> 7 & 15) as usize],
        };
    }
}
