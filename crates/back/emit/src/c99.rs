//! ISO C99, for any C compiler.

use crate::dialect::Dialect;
use crate::family::entry::RUNTIME;
use crate::syntax::Syntax;

/// ISO C99 and nothing beyond it, for any C compiler: everything is as the C family has it.
///
/// Its entry points are those of [`C`](crate::C). It means the same bits under any flags that leave
/// floating-point arithmetic alone; in particular it needs no `-fwrapv` and no `-fno-strict-aliasing`. Atomics,
/// barriers and structs with vectors in them are refused: C99 has nothing for them.
#[derive(Clone, Copy, Debug, Default)]
pub struct C99;

impl Syntax for C99 {}

impl Dialect for C99 {
    fn name(&self) -> &'static str {
        "C99"
    }

    fn header(&self) -> String {
        format!("#include <math.h>\n#include <stdint.h>\n#include <string.h>\n\n{RUNTIME}")
    }

    /// The macros of `<math.h>` that are no calls.
    fn reserved_words(&self) -> &'static [&'static str] {
        &[
            "HUGE_VAL",
            "HUGE_VALF",
            "HUGE_VALL",
            "INFINITY",
            "NAN",
            "math_errhandling",
        ]
    }
}
