//! Vector instructions with their operands, and the encoder of legacy SSE, VEX and EVEX.

use super::bytes::{Bytes, bit3, memory_bits};
use super::registers::{Encoding, Gpr, Kreg, Mem, Width, Xmm};
use super::table::{Access, Kind, Lengths, Map, Memory, Place, Prefix, Spec, Vop, W};

/// A vector instruction with operands.
///
/// It is generic in its registers: `R` vector, `G` general purpose, `K` mask, so that the same struct serves virtual
/// registers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Vector<R = Xmm, G = Gpr, K = Kreg> {
    /// The row of the table.
    pub op: Vop,
    /// The vector length: the `L` bits of the encoding. Scalar and mask instructions: `W128`.
    pub width: Width,
    /// The encoding.
    pub encoding: Encoding,
    /// The destination, or the source of an instruction that writes `rm` (see [`super::table::Form::reg_access`]).
    pub reg: Operand<R, G, K>,
    /// The second operand of three-operand forms. Legacy: `None` or the same as `reg`.
    pub vvvv: Option<Operand<R, G, K>>,
    /// The last operand: register or memory.
    pub rm: Rm<R, G, K>,
    /// The immediate byte.
    pub imm: Option<u8>,
    /// The fourth register of the VEX blends.
    pub third: Option<R>,
    /// EVEX: the lanes that are written.
    pub mask: Option<K>,
    /// EVEX: lanes that are not written become zero instead of keeping their value.
    pub zeroing: bool,
    /// EVEX: the memory operand is one element for all lanes.
    pub broadcast: bool,
}

/// A register operand.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operand<R = Xmm, G = Gpr, K = Kreg> {
    /// A vector register.
    Vec(R),
    /// A general purpose register.
    Gpr(G),
    /// A mask register.
    Mask(K),
}

/// The operand that can be memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Rm<R = Xmm, G = Gpr, K = Kreg> {
    /// A register.
    Operand(Operand<R, G, K>),
    /// Memory.
    Mem(Mem<G>),
    /// The addresses of a gather or scatter: `base + index[lane] * scale + disp`.
    Gathered {
        /// What all lanes share.
        base: G,
        /// The lanes' indices.
        index: R,
        /// 1, 2, 4 or 8.
        scale: u8,
        /// Bytes added.
        disp: i32,
    },
}

impl<R, G, K> Vector<R, G, K> {
    /// With the operands that most instructions have; no immediate, mask or broadcast.
    pub fn new(
        op: Vop,
        width: Width,
        encoding: Encoding,
        reg: Operand<R, G, K>,
        vvvv: Option<Operand<R, G, K>>,
        rm: Rm<R, G, K>,
    ) -> Self {
        Vector {
            op,
            width,
            encoding,
            reg,
            vvvv,
            rm,
            imm: None,
            third: None,
            mask: None,
            zeroing: false,
            broadcast: false,
        }
    }
}

/// The operands of an instruction as the encodings need them: numbers.
struct Fields<'a> {
    spec: &'static Spec,
    instruction: &'a Vector,
    /// ModRM.reg: a register's number or the extension of the opcode.
    reg: u8,
    /// VEX.vvvv; 0 (all ones in the encoding) where there is none.
    vvvv: u8,
    /// ModRM.rm where it is a register.
    rm: u8,
}

/// The bytes of a vector instruction.
#[inline]
pub(super) fn encode(instruction: &Vector, out: &mut Bytes) {
    let spec = instruction.op.spec();
    assert!(
        spec.has_width(instruction.encoding, instruction.width),
        "{:?} ({}) has no {:?} encoding of {:?}",
        instruction.op,
        spec.name,
        instruction.encoding,
        instruction.width
    );
    let fields = Fields::new(spec, instruction);
    match instruction.encoding {
        Encoding::Legacy => fields.legacy(out),
        Encoding::Vex => fields.vex(out),
        Encoding::Evex => fields.evex(out),
    }
    match (instruction.imm, instruction.third) {
        (None, None) => {}
        (Some(imm), None) => out.push(imm),
        (None, Some(third)) => out.push(third.0 << 4),
        (Some(_), Some(_)) => fields.wrong("both an immediate and a fourth register"),
    }
}

impl<'a> Fields<'a> {
    /// Checks the operands against the form of the row.
    #[inline]
    fn new(spec: &'static Spec, instruction: &'a Vector) -> Self {
        let form = &spec.form;
        let legacy = instruction.encoding == Encoding::Legacy;
        let evex = instruction.encoding == Encoding::Evex;
        let mut fields = Fields {
            spec,
            instruction,
            reg: 0,
            vvvv: 0,
            rm: 0,
        };
        match instruction.rm {
            Rm::Operand(operand) => match form.rm {
                Some(kind) => fields.rm = fields.number(operand, kind, "rm"),
                None => fields.wrong("a register where it has memory only"),
            },
            Rm::Mem(_) => {
                // The legacy and VEX shifts by a constant have no memory form.
                let shift = matches!(form.place, Place::Vvvv(_)) && !evex;
                if form.memory != Memory::Plain || shift {
                    fields.wrong("a memory operand, which it has not");
                }
            }
            Rm::Gathered { index, .. } => {
                if form.memory != Memory::Gathered {
                    fields.wrong("the addresses of a gather");
                }
                fields.number(Operand::Vec(index), Kind::Vec, "the index");
                let index = Operand::Vec(index);
                let scatter = form.rm_access == Access::Write;
                let clash = instruction.reg == index
                    || instruction.vvvv == Some(index)
                    || instruction.vvvv == Some(instruction.reg);
                if clash && !scatter {
                    fields.wrong("registers of a gather that are not all different");
                }
            }
        }
        let reg = fields.number(instruction.reg, form.reg, "reg");
        // A gather's mask is a vector in VEX and a mask register in EVEX.
        let vvvv = if evex && form.memory == Memory::Gathered {
            None
        } else {
            form.vvvv
        };
        match (vvvv, instruction.vvvv) {
            (None, None) => {}
            (Some(kind), Some(operand)) => {
                fields.vvvv = fields.number(operand, kind, "vvvv");
                if legacy && operand != instruction.reg {
                    fields.wrong(
                        "a second operand that is not the destination, in the legacy encoding",
                    );
                }
            }
            (Some(_), None) if legacy => {}
            (Some(_), None) => fields.wrong("no second operand"),
            (None, Some(_)) => fields.wrong("a second operand, which it has not"),
        }
        match form.place {
            Place::Reg => fields.reg = reg,
            Place::Vvvv(extension) => {
                fields.reg = extension;
                fields.vvvv = reg;
                if legacy && instruction.rm != Rm::Operand(instruction.reg) {
                    fields.wrong("a source that is not the destination, in the legacy encoding");
                }
            }
        }
        if form.immediate != instruction.imm.is_some() {
            fields.wrong(if form.immediate {
                "no immediate"
            } else {
                "an immediate, which it has not"
            });
        }
        if form.third != instruction.third.is_some()
            || instruction.third.is_some_and(|third| third.0 >= 16)
        {
            fields.wrong("not the fourth register that it has");
        }
        fields.check_mask();
        fields
    }

    /// Masks, zeroing and broadcasts only where the row and the encoding have them.
    #[inline]
    fn check_mask(&self) {
        let Vector {
            mask,
            zeroing,
            broadcast,
            encoding,
            ..
        } = *self.instruction;
        let spec = self.spec;
        let evex = encoding == Encoding::Evex;
        let memory = !matches!(self.instruction.rm, Rm::Operand(_));
        if let Some(mask) = mask
            && !(evex && spec.maskable() && (1..8).contains(&mask.0))
        {
            self.wrong("a mask that it cannot have");
        }
        if mask.is_none() && evex && spec.form.memory == Memory::Gathered {
            self.wrong("no mask, which a gather needs");
        }
        if zeroing
            && !(mask.is_some()
                && spec.zeroable()
                && !(memory && spec.form.rm_access != Access::Read))
        {
            self.wrong("zeroing that it cannot have");
        }
        if broadcast && !(evex && spec.broadcasts() && memory) {
            self.wrong("a broadcast that it cannot have");
        }
    }

    /// The number of a register of the kind that the form wants and the encoding reaches.
    #[inline]
    fn number(&self, operand: Operand, kind: Kind, place: &str) -> u8 {
        let evex = self.instruction.encoding == Encoding::Evex;
        let (number, limit) = match (operand, kind) {
            (Operand::Vec(register), Kind::Vec) => (register.0, if evex { 32 } else { 16 }),
            (Operand::Gpr(register), Kind::Gpr) => (register.0, 16),
            (Operand::Mask(register), Kind::Mask) => (register.0, 8),
            _ => self.wrong_operand(operand, place, "which is of another kind"),
        };
        if number >= limit {
            self.wrong_operand(operand, place, "which the encoding does not reach");
        }
        number
    }

    #[cold]
    #[inline(never)]
    fn wrong_operand(&self, operand: Operand, place: &str, why: &str) -> ! {
        self.wrong(&format!("{operand:?} for {place}, {why}"))
    }

    #[cold]
    #[inline(never)]
    fn wrong(&self, what: &str) -> ! {
        panic!(
            "{:?} ({}) was given {what}: {:?}",
            self.instruction.op, self.spec.name, self.instruction
        )
    }

    /// The extra bits of index and base, or of the register in ModRM.rm.
    #[inline]
    fn rm_bits(&self) -> (u8, u8) {
        match &self.instruction.rm {
            // EVEX has bit 4 of a register where the index has bit 3.
            Rm::Operand(_) => (self.rm >> 4 & 1, bit3(self.rm)),
            Rm::Mem(memory) => memory_bits(memory),
            Rm::Gathered { base, index, .. } => (bit3(index.0), bit3(base.0)),
        }
    }

    /// ModRM and what follows it, but for the immediate.
    #[inline]
    fn modrm(&self, out: &mut Bytes, unit: i32) {
        match &self.instruction.rm {
            Rm::Operand(_) => out.modrm_register(self.reg, self.rm),
            Rm::Mem(memory) => out.modrm_memory(self.reg, memory, unit),
            Rm::Gathered {
                base,
                index,
                scale,
                disp,
            } => {
                out.modrm_address(self.reg, *base, Some((index.0, *scale)), *disp, unit, true);
            }
        }
    }

    #[inline]
    fn legacy(&self, out: &mut Bytes) {
        match self.spec.prefix {
            Prefix::NP => {}
            Prefix::P66 => out.push(0x66),
            Prefix::PF3 => out.push(0xf3),
            Prefix::PF2 => out.push(0xf2),
        }
        let (x, b) = self.rm_bits();
        let rex = u8::from(self.spec.w == W::W1) << 3 | bit3(self.reg) << 2 | x << 1 | b;
        if rex != 0 {
            out.push(0x40 | rex);
        }
        out.push(0x0f);
        match self.spec.map {
            Map::M0F => {}
            Map::M0F38 => out.push(0x38),
            Map::M0F3A => out.push(0x3a),
        }
        out.push(self.spec.opcode);
        self.modrm(out, 1);
    }

    #[inline]
    fn vex(&self, out: &mut Bytes) {
        let (x, b) = self.rm_bits();
        let r = bit3(self.reg);
        let w = u8::from(self.spec.w == W::W1);
        let l = u8::from(
            self.instruction.width == Width::W256 || self.spec.lengths == Lengths::MaskPair,
        );
        let last = (!self.vvvv & 15) << 3 | l << 2 | self.spec.prefix as u8;
        if x | b | w == 0 && self.spec.map == Map::M0F {
            out.push(0xc5);
            out.push((r ^ 1) << 7 | last);
        } else {
            out.push(0xc4);
            out.push((r ^ 1) << 7 | (x ^ 1) << 6 | (b ^ 1) << 5 | self.spec.map as u8);
            out.push(w << 7 | last);
        }
        out.push(self.spec.opcode);
        self.modrm(out, 1);
    }

    #[inline]
    fn evex(&self, out: &mut Bytes) {
        let Vector {
            width,
            mask,
            zeroing,
            broadcast,
            ..
        } = *self.instruction;
        let (x, b) = self.rm_bits();
        let r = bit3(self.reg);
        let r4 = self.reg >> 4;
        // The index of a gather has its bit 4 where vvvv has it.
        let v4 = match &self.instruction.rm {
            Rm::Gathered { index, .. } => index.0 >> 4,
            _ => self.vvvv >> 4,
        };
        let w = u8::from(self.spec.w != W::W0);
        out.push(0x62);
        out.push((r ^ 1) << 7 | (x ^ 1) << 6 | (b ^ 1) << 5 | (r4 ^ 1) << 4 | self.spec.map as u8);
        out.push(w << 7 | (!self.vvvv & 15) << 3 | 1 << 2 | self.spec.prefix as u8);
        let mask = mask.map_or(0, |mask| mask.0);
        out.push(
            u8::from(zeroing) << 7
                | (width as u8) << 5
                | u8::from(broadcast) << 4
                | (v4 ^ 1) << 3
                | mask,
        );
        out.push(self.spec.opcode);
        self.modrm(out, self.spec.tuple.bytes(width, broadcast) as i32);
    }
}
