//! The tile instructions of AMX.

use super::bytes::{Bytes, memory_bits};
use super::registers::{Gpr, Mem, Tmm};

/// Which product a tile instruction adds up.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TileDot {
    /// `tdpbf16ps`: pairs of bf16 into f32.
    Bf16,
    /// `tdpbssd`: signed bytes by signed bytes into i32.
    SignedSigned,
    /// `tdpbsud`: signed bytes by unsigned bytes.
    SignedUnsigned,
    /// `tdpbusd`: unsigned bytes by signed bytes.
    UnsignedSigned,
    /// `tdpbuud`: unsigned bytes by unsigned bytes.
    UnsignedUnsigned,
}

impl TileDot {
    /// All products.
    pub const ALL: [TileDot; 5] = [
        TileDot::Bf16,
        TileDot::SignedSigned,
        TileDot::SignedUnsigned,
        TileDot::UnsignedSigned,
        TileDot::UnsignedUnsigned,
    ];
}

/// A tile instruction with operands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Tile<G = Gpr> {
    /// `ldtilecfg`: reads the 64-byte configuration.
    Configure(Mem<G>),
    /// `tilerelease`: all tiles back to their initial state.
    Release,
    /// `tilezero`.
    Zero(Tmm),
    /// `tileloadd`: rows at `base + disp`, the index register times its scale from row to row.
    Load {
        /// The tile that is written.
        to: Tmm,
        /// Where the first row is. The index is the stride of the rows; without one all rows are the same.
        from: Mem<G>,
    },
    /// `tilestored`.
    Store {
        /// Where the first row goes.
        to: Mem<G>,
        /// The tile that is read.
        from: Tmm,
    },
    /// `to += a * b`.
    Dot {
        /// The kind of the elements.
        kind: TileDot,
        /// The accumulator.
        to: Tmm,
        /// The left factor.
        a: Tmm,
        /// The right factor.
        b: Tmm,
    },
}

/// The three-byte VEX prefix of a tile instruction (map 0F38, W0, 128 bits) and its opcode.
fn prefix(out: &mut Bytes, prefix: u8, opcode: u8, vvvv: u8, (x, b): (u8, u8)) {
    out.push(0xc4);
    out.push(0x80 | (x ^ 1) << 6 | (b ^ 1) << 5 | 2);
    out.push((!vvvv & 15) << 3 | prefix);
    out.push(opcode);
}

/// A tile's number, checked.
fn number(tile: Tmm) -> u8 {
    assert!(
        tile.0 < 8,
        "there are eight tile registers, not a number {}",
        tile.0
    );
    tile.0
}

/// A tile's rows loaded or stored: always with a SIB byte, whose index is the stride.
fn rows(out: &mut Bytes, pp: u8, tile: Tmm, memory: &Mem) {
    let Mem::At { base, index, disp } = *memory else {
        panic!("a tile is loaded and stored by rows: its memory operand has a base");
    };
    prefix(out, pp, 0x4b, 0, memory_bits(memory));
    let index = index.map(|(index, scale)| {
        assert!(index.0 != 4, "rsp cannot be the stride of a tile");
        (index.0, scale)
    });
    out.modrm_address(number(tile), base, index, disp, 1, true);
}

/// The bytes of a tile instruction.
pub(super) fn encode(tile: &Tile, out: &mut Bytes) {
    const NONE: u8 = 0;
    const P66: u8 = 1;
    const PF3: u8 = 2;
    const PF2: u8 = 3;
    match tile {
        Tile::Configure(from) => {
            prefix(out, NONE, 0x49, 0, memory_bits(from));
            out.modrm_memory(0, from, 1);
        }
        Tile::Release => {
            prefix(out, NONE, 0x49, 0, (0, 0));
            out.modrm_register(0, 0);
        }
        Tile::Zero(to) => {
            prefix(out, PF2, 0x49, 0, (0, 0));
            out.modrm_register(number(*to), 0);
        }
        Tile::Load { to, from } => rows(out, PF2, *to, from),
        Tile::Store { to, from } => rows(out, PF3, *from, to),
        Tile::Dot { kind, to, a, b } => {
            let (pp, opcode) = match kind {
                TileDot::Bf16 => (PF3, 0x5c),
                TileDot::SignedSigned => (PF2, 0x5e),
                TileDot::SignedUnsigned => (PF3, 0x5e),
                TileDot::UnsignedSigned => (P66, 0x5e),
                TileDot::UnsignedUnsigned => (NONE, 0x5e),
            };
            prefix(out, pp, opcode, number(*b), (0, 0));
            out.modrm_register(number(*to), number(*a));
        }
    }
}
