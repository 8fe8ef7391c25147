//! The transcendental functions, in single and double precision.
//!
//! On unix they are the C library's, the ones that C code compiled on the same machine calls, so that
//! the oracle and such code agree bit for bit. `std` links that library already, but naming a function
//! is not enough to get it: Rust's own `compiler_builtins` defines some of the same names (`cbrt`, for
//! one, rounded differently), and the linker prefers those. So each function is looked up in the
//! loaded libraries when it is first called. Elsewhere they are those of the `libm` crate.

use crate::table::Op;

/// Gives each C function, in both precisions, the name of its op.
macro_rules! functions {
    ($($name:ident = $single:ident, $double:ident ( $($operand:ident),* );)*) => {
        #[cfg(unix)]
        mod c {
            use loopwright_threads::PerProcess;

            /// What the linker makes of the names, for programs without loaded libraries.
            mod linked {
                // SAFETY: these are the signatures of the C standard library's functions, which are
                // defined for every operand and touch nothing but `errno` and the floating-point
                // flags, which nothing here reads: they are safe to call.
                unsafe extern "C" {
                    $(
                        pub(super) safe fn $single($($operand: f32),*) -> f32;
                        pub(super) safe fn $double($($operand: f64),*) -> f64;
                    )*
                }
            }

            $(
                pub(super) fn $single($($operand: f32),*) -> f32 {
                    type Function = extern "C" fn($(functions!(@f32 $operand)),*) -> f32;
                    static FOUND: PerProcess<Function> = PerProcess::new();
                    let function = FOUND.get_or_init(|| {
                        match super::loaded(concat!(stringify!($single), "\0")) {
                            // SAFETY: the C library's function of that name has this signature and
                            // is safe to call, as above.
                            Some(found) => unsafe { std::mem::transmute::<*mut libc::c_void, Function>(found) },
                            None => {
                                extern "C" fn linked($($operand: f32),*) -> f32 {
                                    linked::$single($($operand),*)
                                }
                                linked
                            }
                        }
                    });
                    function($($operand),*)
                }

                pub(super) fn $double($($operand: f64),*) -> f64 {
                    type Function = extern "C" fn($(functions!(@f64 $operand)),*) -> f64;
                    static FOUND: PerProcess<Function> = PerProcess::new();
                    let function = FOUND.get_or_init(|| {
                        match super::loaded(concat!(stringify!($double), "\0")) {
                            // SAFETY: the C library's function of that name has this signature and
                            // is safe to call, as above.
                            Some(found) => unsafe { std::mem::transmute::<*mut libc::c_void, Function>(found) },
                            None => {
                                extern "C" fn linked($($operand: f64),*) -> f64 {
                                    linked::$double($($operand),*)
                                }
                                linked
                            }
                        }
                    });
                    function($($operand),*)
                }
            )*
        }
        #[cfg(not(unix))]
        use ::libm as c;

        impl Op {
            /// The C library's functions for an op of [`ops_of!(Library)`](crate::ops_of), in single and in double
            /// precision.
            pub fn library_function(self) -> Option<[&'static str; 2]> {
                match self.name() {
                    $(stringify!($name) => Some([stringify!($single), stringify!($double)]),)*
                    _ => None,
                }
            }
        }

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
    (@f32 $operand:ident) => { f32 };
    (@f64 $operand:ident) => { f64 };
}

/// A function of the loaded libraries; `name` ends with a NUL.
#[cfg(unix)]
fn loaded(name: &str) -> Option<*mut libc::c_void> {
    debug_assert!(name.ends_with('\0'));
    // It takes the dynamic linker's locks.
    let _linker = loopwright_threads::linker();
    // SAFETY: the name is NUL-terminated, and looking a name up changes nothing.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr().cast()) };
    (!found.is_null()).then_some(found)
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
