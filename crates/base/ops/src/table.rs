//! The op table: every scalar operation, declared once.
//!
//! An [`Op`] acts on scalars of one dtype and is applied element by element by the graph's pointwise
//! nodes and by the kernel IR's vector and scalar instructions alike. What each one *means*, bit for
//! bit, is [`crate::evaluate`]; everything that must know all ops matches on [`Op`] without a
//! catch-all arm, so that a new op which was forgotten somewhere does not compile.

use crate::dtype::{DType, Kind};
use std::fmt;

/// Which dtypes an op takes for its operands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Class {
    /// Every dtype.
    Any,
    /// Integers and floats.
    Number,
    /// Floats only.
    Float,
    /// Integers only.
    Int,
    /// Integers and `bool`.
    Bits,
    /// `u64` only.
    Word,
}

impl Class {
    /// Whether operands of `dtype` are allowed.
    pub const fn allows(self, dtype: DType) -> bool {
        match self {
            Class::Any => true,
            Class::Number => !matches!(dtype.kind(), Kind::Bool),
            Class::Float => dtype.is_float(),
            Class::Int => dtype.is_int(),
            Class::Bits => dtype.is_int() || matches!(dtype, DType::Bool),
            Class::Word => matches!(dtype, DType::U64),
        }
    }

    /// The class in words, for error messages.
    pub const fn describe(self) -> &'static str {
        match self {
            Class::Any => "any dtype",
            Class::Number => "an integer or float dtype",
            Class::Float => "a float dtype",
            Class::Int => "an integer dtype",
            Class::Bits => "an integer dtype or bool",
            Class::Word => "u64",
        }
    }
}

/// The dtype of an op's result.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Output {
    /// That of the operands.
    Same,
    /// `bool`.
    Bool,
}

/// What the table says about one op.
#[derive(Clone, Copy, Debug)]
pub struct OpInfo {
    /// Its name in every text form.
    pub name: &'static str,
    /// How many operands it takes.
    pub arity: usize,
    /// Which dtypes it takes. All operands have the same one, but for `select`'s condition.
    pub class: Class,
    /// The dtype of the result.
    pub output: Output,
    /// Whether swapping the (two) operands gives the same value, bit for bit (NaN payloads apart).
    pub commutative: bool,
    /// Cost in floating-point operations, for analysis.
    pub flops: u32,
    /// One line of documentation.
    pub doc: &'static str,
}

macro_rules! ops {
    ($($variant:ident $name:literal ($arity:literal $class:ident $output:ident $commutative:literal $flops:literal) $doc:literal;)*) => {
        /// A scalar operation.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub enum Op { $(#[doc = $doc] $variant,)* }

        impl Op {
            /// Every op, in the table's order.
            pub const ALL: &'static [Op] = &[$(Op::$variant,)*];

            /// The op's row of the table.
            pub const fn info(self) -> &'static OpInfo {
                match self {
                    $(Op::$variant => &OpInfo {
                        name: $name, arity: $arity, class: Class::$class, output: Output::$output,
                        commutative: $commutative, flops: $flops, doc: $doc,
                    },)*
                }
            }

            /// The op of that name.
            pub fn from_name(name: &str) -> Option<Op> {
                match name { $($name => Some(Op::$variant),)* _ => None }
            }
        }
    };
}

ops! {
    // One operand.
    Copy "copy" (1 Any Same false 0) "The operand itself.";
    Neg "neg" (1 Number Same false 1) "Negation; integers wrap.";
    Abs "abs" (1 Number Same false 1) "Absolute value; the smallest signed integer stays itself.";
    Sign "sign" (1 Number Same false 1) "-1, 0 or 1; zeros and NaN stay themselves.";
    Not "not" (1 Bits Same false 1) "Bitwise complement; on bool, logical negation.";
    Recip "recip" (1 Float Same false 1) "1 divided by the operand.";
    Sqrt "sqrt" (1 Float Same false 1) "Square root.";
    Rsqrt "rsqrt" (1 Float Same false 2) "1 divided by the square root.";
    Cbrt "cbrt" (1 Float Same false 8) "Cube root.";
    Exp "exp" (1 Float Same false 8) "e to the power of the operand.";
    Exp2 "exp2" (1 Float Same false 8) "2 to the power of the operand.";
    Expm1 "expm1" (1 Float Same false 8) "exp(x) - 1, precise near 0.";
    Log "log" (1 Float Same false 8) "Natural logarithm.";
    Log2 "log2" (1 Float Same false 8) "Logarithm to base 2.";
    Log10 "log10" (1 Float Same false 8) "Logarithm to base 10.";
    Log1p "log1p" (1 Float Same false 8) "log(1 + x), precise near 0.";
    Sin "sin" (1 Float Same false 8) "Sine.";
    Cos "cos" (1 Float Same false 8) "Cosine.";
    Tan "tan" (1 Float Same false 8) "Tangent.";
    Asin "asin" (1 Float Same false 8) "Inverse sine.";
    Acos "acos" (1 Float Same false 8) "Inverse cosine.";
    Atan "atan" (1 Float Same false 8) "Inverse tangent.";
    Sinh "sinh" (1 Float Same false 8) "Hyperbolic sine.";
    Cosh "cosh" (1 Float Same false 8) "Hyperbolic cosine.";
    Tanh "tanh" (1 Float Same false 8) "Hyperbolic tangent.";
    Asinh "asinh" (1 Float Same false 8) "Inverse hyperbolic sine.";
    Acosh "acosh" (1 Float Same false 8) "Inverse hyperbolic cosine.";
    Atanh "atanh" (1 Float Same false 8) "Inverse hyperbolic tangent.";
    Erf "erf" (1 Float Same false 8) "Error function.";
    Erfc "erfc" (1 Float Same false 8) "1 - erf(x), precise for large operands.";
    Floor "floor" (1 Number Same false 1) "Largest integer not above the operand.";
    Ceil "ceil" (1 Number Same false 1) "Smallest integer not below the operand.";
    Round "round" (1 Number Same false 1) "Nearest integer, halves to even.";
    Trunc "trunc" (1 Number Same false 1) "The operand without its fraction.";
    IsNan "is_nan" (1 Float Bool false 1) "Whether the operand is not a number.";
    IsInf "is_inf" (1 Float Bool false 1) "Whether the operand is an infinity.";
    IsFinite "is_finite" (1 Float Bool false 1) "Whether the operand is neither infinite nor NaN.";
    Popcount "popcount" (1 Int Same false 1) "Number of one bits.";
    Clz "clz" (1 Int Same false 1) "Number of leading zero bits; the width for 0.";
    Ctz "ctz" (1 Int Same false 1) "Number of trailing zero bits; the width for 0.";
    // Two operands.
    Add "add" (2 Number Same true 1) "Sum; integers wrap.";
    Sub "sub" (2 Number Same false 1) "Difference; integers wrap.";
    Mul "mul" (2 Number Same true 1) "Product; integers wrap.";
    Div "div" (2 Number Same false 1) "Quotient; integers round toward zero, x / 0 is 0, and MIN / -1 wraps to MIN.";
    FloorDiv "floor_div" (2 Number Same false 2) "Quotient rounded down; on integers x / 0 is 0 and MIN / -1 wraps to MIN.";
    Rem "rem" (2 Number Same false 2) "Remainder with the sign of the first operand; on integers 0 when dividing by 0.";
    Mod "mod" (2 Number Same false 2) "Remainder with the sign of the second operand; on integers 0 when dividing by 0.";
    Pow "pow" (2 Number Same false 16) "Power; integers wrap, and a negative integer exponent gives the truncated reciprocal, 0 for base 0.";
    Atan2 "atan2" (2 Float Same false 16) "Angle of the point (second, first).";
    Hypot "hypot" (2 Float Same false 8) "Length of the hypotenuse.";
    CopySign "copysign" (2 Float Same false 1) "The first operand with the sign of the second.";
    Min "min" (2 Any Same false 1) "The smaller operand; NaN if either is NaN; the second of two equal ones.";
    Max "max" (2 Any Same false 1) "The larger operand; NaN if either is NaN; the second of two equal ones.";
    Eq "eq" (2 Any Bool true 1) "Whether the operands are equal.";
    Ne "ne" (2 Any Bool true 1) "Whether the operands differ.";
    Lt "lt" (2 Any Bool false 1) "Whether the first operand is smaller.";
    Le "le" (2 Any Bool false 1) "Whether the first operand is smaller or equal.";
    Gt "gt" (2 Any Bool false 1) "Whether the first operand is larger.";
    Ge "ge" (2 Any Bool false 1) "Whether the first operand is larger or equal.";
    And "and" (2 Bits Same true 1) "Bitwise and.";
    Or "or" (2 Bits Same true 1) "Bitwise or.";
    Xor "xor" (2 Bits Same true 1) "Bitwise exclusive or.";
    Shl "shl" (2 Int Same false 1) "Left shift; an amount that is negative or not below the width gives 0.";
    Shr "shr" (2 Int Same false 1) "Right shift, arithmetic on signed types; an amount that is negative or not below the width gives 0, or -1 for negative operands.";
    Threefry "threefry" (2 Word Same false 80) "64 random bits: Threefry-2x32 with 20 rounds of a key and a counter; word 0 of each is its low 32 bits, word 1 its high 32.";
    // Three operands.
    Select "select" (3 Any Same false 1) "The second operand where the first, a bool, is true, else the third.";
    MulAdd "mul_add" (3 Number Same false 2) "a * b + c; floats round once (narrow floats once in f32 and once to their own precision).";
}

/// The ops of a family, as a pattern: what a `match` without a catch-all arm names instead of a list.
///
/// `Any`, `Number`, `Float`, `Int`, `Bits` and `Word` are the ops of that [`Class`](crate::Class); `Comparison` and `Library`, those
/// that the C library's mathematics has a function for, are parts of them.
///
/// ```
/// use loopwright_ops::{Op, ops_of};
///
/// assert!(matches!(Op::Exp, ops_of!(Library)) && matches!(Op::Exp, ops_of!(Float)));
/// assert!(!matches!(Op::Pow, ops_of!(Float)), "integers have powers, too");
/// ```
#[macro_export]
macro_rules! ops_of {
    (Any) => {
        $crate::Op::Copy
            | $crate::Op::Select
            | $crate::Op::Min
            | $crate::Op::Max
            | $crate::ops_of!(Comparison)
    };
    (Comparison) => {
        $crate::Op::Eq
            | $crate::Op::Ne
            | $crate::Op::Lt
            | $crate::Op::Le
            | $crate::Op::Gt
            | $crate::Op::Ge
    };
    (Number) => {
        $crate::Op::Neg
            | $crate::Op::Abs
            | $crate::Op::Sign
            | $crate::Op::Floor
            | $crate::Op::Ceil
            | $crate::Op::Round
            | $crate::Op::Trunc
            | $crate::Op::Add
            | $crate::Op::Sub
            | $crate::Op::Mul
            | $crate::Op::Div
            | $crate::Op::FloorDiv
            | $crate::Op::Rem
            | $crate::Op::Mod
            | $crate::Op::Pow
            | $crate::Op::MulAdd
    };
    (Float) => {
        $crate::Op::Recip
            | $crate::Op::Sqrt
            | $crate::Op::Rsqrt
            | $crate::Op::CopySign
            | $crate::Op::IsNan
            | $crate::Op::IsInf
            | $crate::Op::IsFinite
            | $crate::ops_of!(FloatLibrary)
    };
    (Library) => {
        $crate::Op::Pow | $crate::ops_of!(FloatLibrary)
    };
    (FloatLibrary) => {
        $crate::Op::Cbrt
            | $crate::Op::Exp
            | $crate::Op::Exp2
            | $crate::Op::Expm1
            | $crate::Op::Log
            | $crate::Op::Log2
            | $crate::Op::Log10
            | $crate::Op::Log1p
            | $crate::Op::Sin
            | $crate::Op::Cos
            | $crate::Op::Tan
            | $crate::Op::Asin
            | $crate::Op::Acos
            | $crate::Op::Atan
            | $crate::Op::Sinh
            | $crate::Op::Cosh
            | $crate::Op::Tanh
            | $crate::Op::Asinh
            | $crate::Op::Acosh
            | $crate::Op::Atanh
            | $crate::Op::Erf
            | $crate::Op::Erfc
            | $crate::Op::Atan2
            | $crate::Op::Hypot
    };
    (Int) => {
        $crate::Op::Popcount | $crate::Op::Clz | $crate::Op::Ctz | $crate::Op::Shl | $crate::Op::Shr
    };
    (Bits) => {
        $crate::Op::Not | $crate::Op::And | $crate::Op::Or | $crate::Op::Xor
    };
    (Word) => {
        $crate::Op::Threefry
    };
}

impl Op {
    /// The op's name in every text form.
    pub const fn name(self) -> &'static str {
        self.info().name
    }

    /// How many operands the op takes.
    pub const fn arity(self) -> usize {
        self.info().arity
    }

    /// Whether it is, on floats, a function of the math library, whose last digits differ from library to library. What is
    /// rounded correctly everywhere, like `sqrt`, is none.
    pub const fn is_math_function(self) -> bool {
        matches!(self, ops_of!(Library))
    }

    /// The dtype of the result for operands of these dtypes, or what is wrong with them.
    pub fn result_dtype(self, operands: &[DType]) -> Result<DType, OpError> {
        let info = self.info();
        if operands.len() != info.arity {
            return Err(OpError::Arity {
                op: self,
                expected: info.arity,
                got: operands.len(),
            });
        }
        let values = match self {
            Op::Select => {
                if operands[0] != DType::Bool {
                    return Err(OpError::Condition {
                        op: self,
                        got: operands[0],
                    });
                }
                &operands[1..]
            }
            _ => operands,
        };
        if let Some(other) = values.iter().find(|&&dtype| dtype != values[0]) {
            return Err(OpError::Mismatch {
                op: self,
                left: values[0],
                right: *other,
            });
        }
        if !info.class.allows(values[0]) {
            return Err(OpError::Class {
                op: self,
                got: values[0],
            });
        }
        Ok(match info.output {
            Output::Same => values[0],
            Output::Bool => DType::Bool,
        })
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Operands that an op does not take.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OpError {
    /// The wrong number of operands.
    #[error("`{op}` takes {expected} operand{}, not {got}", if *expected == 1 { "" } else { "s" })]
    Arity {
        /// The op.
        op: Op,
        /// What it takes.
        expected: usize,
        /// What it was given.
        got: usize,
    },
    /// Operands of two dtypes.
    #[error(
        "`{op}` needs operands of one dtype, not {left} and {right}; cast one of them, for example `{left}(x)`"
    )]
    Mismatch {
        /// The op.
        op: Op,
        /// The first operand's dtype.
        left: DType,
        /// The one that differs.
        right: DType,
    },
    /// A dtype the op is not defined on.
    #[error("`{op}` needs {}, not {got}", op.info().class.describe())]
    Class {
        /// The op.
        op: Op,
        /// What it was given.
        got: DType,
    },
    /// A bitcast between widths, or from or to bool.
    #[error(
        "cannot bitcast {from} to {to}: a bitcast needs two dtypes of one width, and neither may be bool"
    )]
    Bitcast {
        /// The operand's dtype.
        from: DType,
        /// The dtype asked for.
        to: DType,
    },
    /// A condition that is not a bool.
    #[error("the condition of `{op}` must be bool, not {got}; compare it, for example `x != 0`")]
    Condition {
        /// The op.
        op: Op,
        /// What it was given.
        got: DType,
    },
}

/// A reduction: an associative op folded over one or more dimensions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum ReduceOp {
    /// Sum, from 0.
    Sum,
    /// Product, from 1.
    Prod,
    /// Largest, from the dtype's smallest value (negative infinity for floats).
    Max,
    /// Smallest, from the dtype's largest value (infinity for floats).
    Min,
    /// Logical or, from false.
    Any,
    /// Logical and, from true.
    All,
}

impl ReduceOp {
    /// Every reduction.
    pub const ALL: [ReduceOp; 6] = [
        ReduceOp::Sum,
        ReduceOp::Prod,
        ReduceOp::Max,
        ReduceOp::Min,
        ReduceOp::Any,
        ReduceOp::All,
    ];

    /// Its name in every text form.
    pub const fn name(self) -> &'static str {
        match self {
            ReduceOp::Sum => "sum",
            ReduceOp::Prod => "prod",
            ReduceOp::Max => "max",
            ReduceOp::Min => "min",
            ReduceOp::Any => "any",
            ReduceOp::All => "all",
        }
    }

    /// The reduction of that name.
    pub fn from_name(name: &str) -> Option<ReduceOp> {
        ReduceOp::ALL.into_iter().find(|op| op.name() == name)
    }

    /// The op that combines the accumulator (first operand) with an element (second operand).
    pub const fn combine(self) -> Op {
        match self {
            ReduceOp::Sum => Op::Add,
            ReduceOp::Prod => Op::Mul,
            ReduceOp::Max => Op::Max,
            ReduceOp::Min => Op::Min,
            ReduceOp::Any => Op::Or,
            ReduceOp::All => Op::And,
        }
    }

    /// Whether elements of `dtype` can be reduced so.
    pub const fn allows(self, dtype: DType) -> bool {
        match self {
            ReduceOp::Any | ReduceOp::All => matches!(dtype, DType::Bool),
            ReduceOp::Sum | ReduceOp::Prod => !matches!(dtype, DType::Bool),
            ReduceOp::Max | ReduceOp::Min => true,
        }
    }
}

impl fmt::Display for ReduceOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_patterns_of_classes_are_the_table() {
        for &op in Op::ALL {
            let class = match op {
                ops_of!(Any) => Class::Any,
                ops_of!(Number) => Class::Number,
                ops_of!(Float) => Class::Float,
                ops_of!(Int) => Class::Int,
                ops_of!(Bits) => Class::Bits,
                ops_of!(Word) => Class::Word,
            };
            assert_eq!(class, op.info().class, "{op}");
            let library = matches!(op, ops_of!(Library));
            assert_eq!(library, op.library_function().is_some(), "{op}");
            let comparison = matches!(op, ops_of!(Comparison));
            assert_eq!(
                comparison,
                class == Class::Any && op.info().output == Output::Bool,
                "{op}"
            );
        }
    }
}
