//! Which instructions the code may use.

use crate::asm::{Encoding, Width};
use std::fmt;
use std::str::FromStr;

/// A level of the instruction set. Each has its own width of vectors and its own encoding of instructions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Level {
    /// What every x86-64 has: SSE2, 16 bytes at a time.
    Sse,
    /// AVX2 with FMA and conversions of halves: 32 bytes.
    Avx2,
    /// AVX-512 F, BW, CD, DQ and VL: 64 bytes, 32 registers, masks.
    Avx512,
}

impl Level {
    /// Every level, the least first.
    pub const ALL: [Level; 3] = [Level::Sse, Level::Avx2, Level::Avx512];

    /// The highest that this machine has; `None` on another kind of machine, and where the system has not the calling
    /// convention of Unix, which the code follows.
    pub fn detect() -> Option<Level> {
        #[cfg(all(target_arch = "x86_64", unix))]
        {
            macro_rules! all {
                ($($feature:tt)*) => { true $(&& std::is_x86_feature_detected!($feature))* };
            }
            Some(
                if !all!("avx" "avx2" "bmi1" "bmi2" "f16c" "fma" "lzcnt" "popcnt") {
                    Level::Sse
                } else if !all!("avx512f" "avx512bw" "avx512cd" "avx512dq" "avx512vl") {
                    Level::Avx2
                } else {
                    Level::Avx512
                },
            )
        }
        #[cfg(not(all(target_arch = "x86_64", unix)))]
        None
    }

    /// Its name in settings.
    pub const fn name(self) -> &'static str {
        match self {
            Level::Sse => "sse",
            Level::Avx2 => "avx2",
            Level::Avx512 => "avx512",
        }
    }

    /// Bytes of a vector register.
    pub const fn bytes(self) -> u32 {
        match self {
            Level::Sse => 16,
            Level::Avx2 => 32,
            Level::Avx512 => 64,
        }
    }

    /// How many vector registers there are.
    pub const fn registers(self) -> u8 {
        match self {
            Level::Sse | Level::Avx2 => 16,
            Level::Avx512 => 32,
        }
    }

    /// How its vector instructions are encoded.
    pub(crate) const fn encoding(self) -> Encoding {
        match self {
            Level::Sse => Encoding::Legacy,
            Level::Avx2 => Encoding::Vex,
            Level::Avx512 => Encoding::Evex,
        }
    }

    /// The width of a whole register.
    pub(crate) const fn width(self) -> Width {
        match self {
            Level::Sse => Width::W128,
            Level::Avx2 => Width::W256,
            Level::Avx512 => Width::W512,
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Level {
    type Err = String;

    fn from_str(name: &str) -> Result<Level, String> {
        let found = Level::ALL.into_iter().find(|level| level.name() == name);
        found.ok_or_else(|| format!("there is no level `{name}`"))
    }
}
