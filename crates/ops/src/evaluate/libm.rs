//! The transcendental functions, in single and double precision.
//!
//! On unix they are the C library's, the ones that C code compiled on the same machine calls, so that
//! the oracle and such code agree bit for bit. `std` links that library already. Elsewhere they are
//! those of the `libm` crate.

/// Gives each C function, in both precisions, the name of its op.
macro_rules! functions {
    ($($name:ident = $single:ident, $double:ident ( $($operand:ident),* );)*) => {
        #[cfg(unix)]
        mod c {
            // SAFETY: these are the signatures of the C standard library's functions, which are
            // defined for every operand and touch nothing but `errno` and the floating-point flags,
            // which nothing here reads: they are safe to call.
            unsafe extern "C" {
                $(
                    pub(super) safe fn $single($($operand: f32),*) -> f32;
                    pub(super) safe fn $double($($operand: f64),*) -> f64;
                )*
            }
        }
        #[cfg(not(unix))]
        use ::libm as c;

        /// In `f32`.
        pub(super) mod single {
            $(pub(in crate::evaluate) fn $name($($operand: f32),*) -> f32 {
                super::c::$single($($operand),*)
            })*
        }

        /// In `f64`.
        pub(super) mod double {
            $(pub(in crate::evaluate) fn $name($($operand: f64),*) -> f64 {
                super::c::$double($($operand),*)
            })*
        }
    };
}

functions! {
    cbrt = cbrtf, cbrt(x);
    exp = expf, exp(x);
    exp2 = exp2f, exp2(x);
    expm1 = expm1f, expm1(x);
    log = logf, log(x);
    log2 = log2f, log2(x);
    log10 = log10f, log10(x);
    log1p = log1pf, log1p(x);
    sin = sinf, sin(x);
    cos = cosf, cos(x);
    tan = tanf, tan(x);
    asin = asinf, asin(x);
    acos = acosf, acos(x);
    atan = atanf, atan(x);
    sinh = sinhf, sinh(x);
    cosh = coshf, cosh(x);
    tanh = tanhf, tanh(x);
    asinh = asinhf, asinh(x);
    acosh = acoshf, acosh(x);
    atanh = atanhf, atanh(x);
    erf = erff, erf(x);
    erfc = erfcf, erfc(x);
    pow = powf, pow(x, y);
    atan2 = atan2f, atan2(y, x);
    hypot = hypotf, hypot(x, y);
}
