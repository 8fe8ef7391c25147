//! What results should be: the C library's functions in double precision, and where these do not say enough in the 64 binary
//! digits of its `long double`, which Rust has no type for.

use loopwright_ops::Op;
use std::arch::asm;

/// A function of the C library, in `double` and in `long double`.
#[derive(Clone, Copy)]
pub(crate) enum Reference {
    One(unsafe extern "C" fn(f64) -> f64, Extended),
    Two(unsafe extern "C" fn(f64, f64) -> f64, Extended),
}

/// Where a function of `long double` begins. It is only called by [`extended`].
type Extended = unsafe extern "C" fn();

macro_rules! library {
    (one { $($op:ident $double:ident $extended:ident,)* } two { $($op2:ident $double2:ident $extended2:ident,)* }) => {
        unsafe extern "C" {
            $(fn $double(x: f64) -> f64; fn $extended();)*
            $(fn $double2(x: f64, y: f64) -> f64; fn $extended2();)*
        }

        impl Reference {
            /// The function that an op stands for.
            pub(crate) fn of(op: Op) -> Option<Reference> {
                Some(match op {
                    $(Op::$op => Reference::One($double, $extended),)*
                    $(Op::$op2 => Reference::Two($double2, $extended2),)*
                    _ => return None,
                })
            }
        }
    };
}

library! {
    one {
        Exp exp expl,
        Exp2 exp2 exp2l,
        Expm1 expm1 expm1l,
        Log log logl,
        Log2 log2 log2l,
        Log10 log10 log10l,
        Log1p log1p log1pl,
        Sin sin sinl,
        Cos cos cosl,
        Tan tan tanl,
        Asin asin asinl,
        Acos acos acosl,
        Atan atan atanl,
        Sinh sinh sinhl,
        Cosh cosh coshl,
        Tanh tanh tanhl,
        Asinh asinh asinhl,
        Acosh acosh acoshl,
        Atanh atanh atanhl,
        Erf erf erfl,
        Erfc erfc erfcl,
        Cbrt cbrt cbrtl,
    }
    two {
        Pow pow powl,
        Atan2 atan2 atan2l,
        Hypot hypot hypotl,
    }
}

/// A result as the double next to it, and the rest.
#[derive(Clone, Copy)]
pub(crate) struct Exact {
    pub(crate) rounded: f64,
    pub(crate) rest: f64,
}

impl Reference {
    /// The result in double precision.
    pub(crate) fn double(self, [x, y]: [f64; 2]) -> f64 {
        // SAFETY: functions of the C library with these parameters, for every number.
        unsafe {
            match self {
                Reference::One(function, _) => function(x),
                Reference::Two(function, _) => function(x, y),
            }
        }
    }

    /// The result to 64 binary digits.
    pub(crate) fn exact(self, at: [f64; 2]) -> Exact {
        let (Reference::One(_, function) | Reference::Two(_, function)) = self;
        let [rounded, rest] = extended(function, at);
        Exact {
            rounded,
            rest: if rounded.is_finite() { rest } else { 0.0 },
        }
    }
}

/// Calls a function of one or two `long double`; the result as a double and the rest.
fn extended(function: Extended, at: [f64; 2]) -> [f64; 2] {
    let mut result = [0.0f64; 2];
    // SAFETY: the operands lie on the stack in 16 bytes each, where the calling convention has them; a function of one takes the
    // first. The stack pointer is put back, the registers that hold addresses survive calls, and the unit's stack is empty
    // before and after.
    unsafe {
        asm!(
            "mov r14, rsp",
            "and rsp, -16",
            "sub rsp, 32",
            "fld qword ptr [r12]",
            "fstp tbyte ptr [rsp]",
            "fld qword ptr [r12 + 8]",
            "fstp tbyte ptr [rsp + 16]",
            "call r13",
            "fst qword ptr [r15]",
            "fsub qword ptr [r15]",
            "fstp qword ptr [r15 + 8]",
            "mov rsp, r14",
            in("r12") at.as_ptr(),
            in("r13") function,
            out("r14") _,
            in("r15") result.as_mut_ptr(),
            clobber_abi("C"),
        );
    }
    result
}
