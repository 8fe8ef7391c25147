//! The registers of the machine and the operands made of them.

/// A general purpose register by its hardware number, 0 to 15.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Gpr(pub u8);

/// A vector register of any width (xmm, ymm, zmm) by its hardware number, 0 to 31. Only EVEX reaches 16 to 31.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Xmm(pub u8);

/// A mask register of AVX-512, 0 to 7. An instruction cannot be masked with number 0, which means "all lanes".
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Kreg(pub u8);

/// A tile register of AMX, 0 to 7.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Tmm(pub u8);

/// Names of the general purpose registers.
macro_rules! names {
    ($($name:ident = $number:literal, $doc:literal;)*) => {
        $(#[doc = $doc] pub const $name: Gpr = Gpr($number);)*
    };
}
names! {
    RAX = 0, "`rax`: results, and the low half of products and dividends."; RCX = 1, "`rcx`: `cl` counts variable shifts.";
    RDX = 2, "`rdx`: the high half of products and dividends."; RBX = 3, "`rbx`."; RSP = 4, "`rsp`: the stack pointer.";
    RBP = 5, "`rbp`."; RSI = 6, "`rsi`."; RDI = 7, "`rdi`."; R8 = 8, "`r8`."; R9 = 9, "`r9`."; R10 = 10, "`r10`.";
    R11 = 11, "`r11`."; R12 = 12, "`r12`."; R13 = 13, "`r13`."; R14 = 14, "`r14`."; R15 = 15, "`r15`.";
}

/// A place in memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Mem<G = Gpr> {
    /// `base + index * scale + disp`.
    At {
        /// The register that holds the address.
        base: G,
        /// A second register with its scale: 1, 2, 4 or 8. Never `rsp`.
        index: Option<(G, u8)>,
        /// Bytes added.
        disp: i32,
    },
    /// A byte offset into the constant pool that lies behind the code (relative to the instruction pointer).
    Pool(u32),
}

impl<G> Mem<G> {
    /// `base + disp`.
    pub fn at(base: G, disp: i32) -> Self {
        Mem::At {
            base,
            index: None,
            disp,
        }
    }
}

/// The length of a vector. Scalar and mask instructions use `W128`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Width {
    /// xmm, 16 bytes.
    W128,
    /// ymm, 32 bytes.
    W256,
    /// zmm, 64 bytes.
    W512,
}

impl Width {
    /// All widths, narrow to wide.
    pub const ALL: [Width; 3] = [Width::W128, Width::W256, Width::W512];

    /// Bytes of a register of this width.
    pub const fn bytes(self) -> u32 {
        16 << self as u32
    }
}

/// How a vector instruction is encoded.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Encoding {
    /// SSE: two operands, 128 bits, registers 0 to 15.
    Legacy,
    /// AVX, AVX2, FMA and the mask instructions: three operands, up to 256 bits, registers 0 to 15.
    Vex,
    /// AVX-512: masks, broadcasts, 512 bits, registers 0 to 31.
    Evex,
}

impl Encoding {
    /// All encodings.
    pub const ALL: [Encoding; 3] = [Encoding::Legacy, Encoding::Vex, Encoding::Evex];
}

/// The operand size of an integer instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Bits {
    /// One byte.
    B8,
    /// Two bytes.
    B16,
    /// Four bytes.
    B32,
    /// Eight bytes.
    B64,
}

impl Bits {
    /// All sizes, small to large.
    pub const ALL: [Bits; 4] = [Bits::B8, Bits::B16, Bits::B32, Bits::B64];

    /// Bytes of an operand of this size.
    pub const fn bytes(self) -> u32 {
        1 << self as u32
    }
}

/// A condition over the flags. The order is the hardware's numbering.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Cond {
    /// Signed overflow.
    Overflow,
    /// No signed overflow.
    NoOverflow,
    /// Unsigned less.
    Below,
    /// Unsigned greater or equal.
    AboveEqual,
    /// Equal, zero.
    Equal,
    /// Not equal, not zero.
    NotEqual,
    /// Unsigned less or equal.
    BelowEqual,
    /// Unsigned greater.
    Above,
    /// Negative.
    Sign,
    /// Not negative.
    NotSign,
    /// Even parity; after a float comparison: unordered.
    Parity,
    /// Odd parity; after a float comparison: ordered.
    NotParity,
    /// Signed less.
    Less,
    /// Signed greater or equal.
    GreaterEqual,
    /// Signed less or equal.
    LessEqual,
    /// Signed greater.
    Greater,
}

impl Cond {
    /// All conditions in the hardware's order.
    pub const ALL: [Cond; 16] = [
        Cond::Overflow,
        Cond::NoOverflow,
        Cond::Below,
        Cond::AboveEqual,
        Cond::Equal,
        Cond::NotEqual,
        Cond::BelowEqual,
        Cond::Above,
        Cond::Sign,
        Cond::NotSign,
        Cond::Parity,
        Cond::NotParity,
        Cond::Less,
        Cond::GreaterEqual,
        Cond::LessEqual,
        Cond::Greater,
    ];

    /// The condition that holds exactly when this one does not.
    pub fn negated(self) -> Cond {
        Cond::ALL[self as usize ^ 1]
    }
}
