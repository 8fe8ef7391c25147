//! What instructions the code may use.

/// A level of the x86-64 instruction set, as its ABI numbers them, or another processor. `-march=native`, which would
/// say more, is the compiler driver's, and libgccjit does not take it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Level {
    /// Not x86-64: the compiler's own idea of the processor.
    #[cfg_attr(target_arch = "x86_64", expect(dead_code, reason = "this is one"))]
    Other,
    /// SSE2.
    V1,
    /// SSE4.2, POPCNT.
    V2,
    /// AVX2, FMA, F16C, BMI2.
    V3,
    /// AVX-512 F, BW, CD, DQ and VL.
    V4,
}

impl Level {
    /// That of this machine.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn detect() -> Level {
        macro_rules! all {
            ($($feature:tt)*) => { true $(&& std::is_x86_feature_detected!($feature))* };
        }
        if !all!("sse3" "ssse3" "sse4.1" "sse4.2" "popcnt" "cmpxchg16b") {
            Level::V1
        } else if !all!("avx" "avx2" "bmi1" "bmi2" "f16c" "fma" "lzcnt" "movbe") {
            Level::V2
        } else if !all!("avx512f" "avx512bw" "avx512cd" "avx512dq" "avx512vl") {
            Level::V3
        } else {
            Level::V4
        }
    }

    /// That of this machine.
    #[cfg(not(target_arch = "x86_64"))]
    pub(crate) fn detect() -> Level {
        Level::Other
    }

    /// The option that names it.
    pub(crate) fn option(self) -> Option<&'static str> {
        match self {
            Level::Other => None,
            Level::V1 => Some("-march=x86-64"),
            Level::V2 => Some("-march=x86-64-v2"),
            Level::V3 => Some("-march=x86-64-v3"),
            Level::V4 => Some("-march=x86-64-v4"),
        }
    }

    /// Bytes of its largest vector register.
    pub(crate) fn register(self) -> usize {
        match self {
            Level::Other | Level::V1 | Level::V2 => 16,
            Level::V3 => 32,
            Level::V4 => 64,
        }
    }

    /// This level, or the one of this number if that is lower.
    pub(crate) fn at_most(self, number: u8) -> Level {
        let other = match number {
            0 | 1 => Level::V1,
            2 => Level::V2,
            3 => Level::V3,
            _ => Level::V4,
        };
        self.min(other)
    }

    /// Whether it has an instruction for `fma`.
    pub(crate) fn fuses(self) -> bool {
        match self {
            Level::Other => cfg!(target_arch = "aarch64"),
            Level::V1 | Level::V2 => false,
            Level::V3 | Level::V4 => true,
        }
    }

    /// Whether a vector of so many bytes is one register with the three-operand instructions of AVX and FMA.
    pub(crate) fn has_register(self, bytes: usize) -> bool {
        match bytes {
            16 | 32 => self >= Level::V3,
            64 => self >= Level::V4,
            _ => false,
        }
    }
}
