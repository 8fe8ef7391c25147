//! The table of vector instructions: one row says what the legacy SSE, VEX and EVEX encodings of an instruction share.
//!
//! The rows are in `rows.rs`; this file says what their columns mean.

mod rows;

pub use rows::Vop;

use super::registers::{Encoding, Width};

/// One row of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spec {
    /// The mnemonic of the legacy encoding. VEX and EVEX put a `v` before it, but not for mask instructions.
    pub name: &'static str,
    /// The opcode map.
    pub map: Map,
    /// The mandatory prefix.
    pub prefix: Prefix,
    /// The opcode.
    pub opcode: u8,
    /// The W bit of each encoding.
    pub w: W,
    /// The encodings that there are.
    pub encodings: Encodings,
    /// The vector lengths that there are.
    pub lengths: Lengths,
    /// How much memory the memory operand is: the unit of EVEX's compressed displacement, and the broadcast.
    pub tuple: Tuple,
    /// The operands.
    pub form: Form,
}

impl Spec {
    /// Whether the instruction has this encoding.
    pub const fn has(&self, encoding: Encoding) -> bool {
        self.encodings.0 >> encoding as u8 & 1 == 1
    }

    /// Whether the instruction has this encoding at this width.
    pub const fn has_width(&self, encoding: Encoding, width: Width) -> bool {
        let widths = match (encoding, self.lengths) {
            (Encoding::Legacy, Lengths::Any | Lengths::Scalar) => 0b001,
            (Encoding::Legacy, _) => 0,
            (_, Lengths::Scalar | Lengths::MaskPair) => 0b001,
            (Encoding::Vex, Lengths::Any) => 0b011,
            (Encoding::Evex, Lengths::Any) => 0b111,
            (Encoding::Vex, Lengths::Wide) => 0b010,
            (Encoding::Evex, Lengths::Wide) => 0b110,
            (Encoding::Vex, Lengths::Zmm) => 0,
            (Encoding::Evex, Lengths::Zmm) => 0b100,
        };
        self.has(encoding) && widths >> width as u8 & 1 == 1
    }

    /// Whether the memory operand can be one element for all lanes (EVEX).
    pub const fn broadcasts(&self) -> bool {
        matches!(self.tuple, Tuple::Full(_) | Tuple::Half(_))
            && self.has(Encoding::Evex)
            && !matches!(self.form.memory, Memory::None)
    }

    /// Whether EVEX can mask it. Instructions that are about masks, scalars in general registers or flags cannot be.
    pub const fn maskable(&self) -> bool {
        self.has(Encoding::Evex) && self.form.maskable
    }

    /// Whether EVEX can set lanes to zero: not in a mask. What is written to memory cannot be zeroed either.
    pub const fn zeroable(&self) -> bool {
        self.maskable()
            && matches!(self.form.reg, Kind::Vec)
            && !matches!(self.form.memory, Memory::Gathered)
            && (matches!(self.form.rm_access, Access::Read) || self.form.rm.is_some())
    }
}

/// The opcode map, by its number in VEX and EVEX.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Map {
    /// 0F.
    M0F = 1,
    /// 0F 38.
    M0F38 = 2,
    /// 0F 3A.
    M0F3A = 3,
}

/// The mandatory prefix, by its number in VEX and EVEX.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Prefix {
    /// None.
    NP = 0,
    /// 66.
    P66 = 1,
    /// F3.
    PF3 = 2,
    /// F2.
    PF2 = 3,
}

/// The W bit. Where an encoding ignores it, it is 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum W {
    /// 0 in all encodings.
    W0,
    /// 1 in all encodings (REX.W in the legacy one).
    W1,
    /// 0 in the legacy and VEX encodings, 1 in EVEX: 64-bit elements.
    W01,
}

/// A set of encodings, a bit for each [`Encoding`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Encodings(u8);

/// Which vector lengths there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lengths {
    /// 128, VEX and EVEX 256, EVEX 512.
    Any,
    /// Scalars, and mask instructions with L0: 128 only.
    Scalar,
    /// 256 and EVEX 512: lanes cross 128 bits.
    Wide,
    /// EVEX 512 only.
    Zmm,
    /// Mask instructions with two sources: L1, which is no length. Their width is 128.
    MaskPair,
}

/// The size of the memory operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tuple {
    /// A whole vector, or one element of so many bytes for all lanes.
    Full(u8),
    /// Half a vector, or one element of so many bytes for all lanes.
    Half(u8),
    /// A whole vector.
    FullMem,
    /// Half a vector.
    HalfMem,
    /// A quarter of a vector.
    QuarterMem,
    /// An eighth of a vector.
    EighthMem,
    /// So many bytes at every width.
    Fixed(u8),
    /// 8 bytes at 128 bits, a whole vector else.
    Movddup,
}

impl Tuple {
    /// Bytes of the memory operand: N of EVEX's disp8*N.
    pub const fn bytes(self, width: Width, broadcast: bool) -> u32 {
        match self {
            Tuple::Full(element) | Tuple::Half(element) if broadcast => element as u32,
            Tuple::Full(_) | Tuple::FullMem => width.bytes(),
            Tuple::Half(_) | Tuple::HalfMem => width.bytes() / 2,
            Tuple::QuarterMem => width.bytes() / 4,
            Tuple::EighthMem => width.bytes() / 8,
            Tuple::Fixed(bytes) => bytes as u32,
            Tuple::Movddup => match width {
                Width::W128 => 8,
                _ => width.bytes(),
            },
        }
    }
}

/// The kind of a register operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A vector register.
    Vec,
    /// A general purpose register.
    Gpr,
    /// A mask register.
    Mask,
}

/// What an instruction does with an operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Reads it.
    Read,
    /// Writes it whole, if no mask keeps lanes of it.
    Write,
    /// Reads and writes it.
    Update,
}

/// What memory the last operand can be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Memory {
    /// None.
    None,
    /// One place.
    Plain,
    /// An address for each lane. The mask (VEX: the vector in `vvvv`) is zero afterwards.
    Gathered,
}

/// Where the operand called `reg` is encoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// In ModRM.reg.
    Reg,
    /// In VEX.vvvv; legacy: in ModRM.rm, which must be the same register. ModRM.reg extends the opcode.
    Vvvv(u8),
}

/// The operands of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Form {
    /// The operand `reg`.
    pub reg: Kind,
    /// What happens to `reg`.
    pub reg_access: Access,
    /// Where `reg` is encoded.
    pub place: Place,
    /// The operand `vvvv`.
    pub vvvv: Option<Kind>,
    /// The operand `rm` as a register; `None`: memory only.
    pub rm: Option<Kind>,
    /// What happens to `rm`.
    pub rm_access: Access,
    /// The operand `rm` as memory.
    pub memory: Memory,
    /// Whether there is an immediate byte.
    pub immediate: bool,
    /// Whether the immediate byte is a register.
    pub third: bool,
    /// Whether EVEX can mask it.
    pub maskable: bool,
}
