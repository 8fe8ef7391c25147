//! The buffer that instructions go into: labels, jumps, alignment and the constant pool behind the code.

use super::bytes::Bytes;
use super::registers::{Cond, Gpr};
use super::tile::{self, Tile};
use super::vector::{self, Vector};
use loopwright_arena::TiVec;

loopwright_arena::handle! {
    /// A place in the code, known or still to come.
    pub struct Label;
}

/// The offset of a label that is not bound yet.
const UNBOUND: usize = usize::MAX;

/// Code is aligned to this where the constant pool begins: the widest vector.
const POOL_ALIGNMENT: usize = 64;

/// A four-byte displacement that is filled in at the end.
#[derive(Clone, Copy, Debug)]
struct Fixup {
    /// Where the displacement lies.
    at: usize,
    /// The end of its instruction, from which it counts.
    end: usize,
    target: Target,
}

#[derive(Clone, Copy, Debug)]
enum Target {
    Label(Label),
    Pool(u32),
}

/// Finished machine code with its constants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Code {
    /// The instructions, padding, and the constant pool.
    pub bytes: Vec<u8>,
    /// Where the constant pool begins, a multiple of 64.
    pub pool_at: usize,
    labels: TiVec<Label, usize>,
}

impl Code {
    /// Where a label is in the bytes.
    pub fn offset(&self, label: Label) -> usize {
        let offset = self.labels[label];
        assert!(
            offset != UNBOUND,
            "label {} was bound before the code was finished",
            label.0
        );
        offset
    }
}

/// Encodes instructions one after the other.
///
/// Operands that an instruction does not have are broken invariants of the caller and panic.
#[derive(Clone, Default, Debug)]
pub struct Assembler {
    bytes: Vec<u8>,
    labels: TiVec<Label, usize>,
    fixups: Vec<Fixup>,
}

impl Assembler {
    /// With no code.
    pub fn new() -> Self {
        Assembler {
            bytes: Vec::with_capacity(4096),
            labels: TiVec::new(),
            fixups: Vec::new(),
        }
    }

    /// A new label, not bound yet.
    pub fn label(&mut self) -> Label {
        self.labels.push_and_get_key(UNBOUND)
    }

    /// The label is here.
    pub fn bind(&mut self, label: Label) {
        let offset = &mut self.labels[label];
        assert!(*offset == UNBOUND, "label {} is bound once", label.0);
        *offset = self.bytes.len();
    }

    /// The offset of the next instruction.
    pub fn here(&self) -> usize {
        self.bytes.len()
    }

    /// Fills with long `nop`s up to a multiple of `to`, a power of two.
    pub fn align(&mut self, to: u32) {
        assert!(
            to.is_power_of_two(),
            "code is aligned to a power of two, not {to}"
        );
        let end = self.bytes.len().next_multiple_of(to as usize);
        while self.bytes.len() < end {
            let length = (end - self.bytes.len()).min(NOPS.len());
            self.bytes.extend_from_slice(&NOPS[length - 1][..length]);
        }
    }

    /// A vector or mask instruction. Panics with the row's name where the operands are not those of its form.
    pub fn vector(&mut self, instruction: &Vector) {
        let mut bytes = Bytes::default();
        vector::encode(instruction, &mut bytes);
        self.emit(&bytes);
    }

    /// A tile instruction.
    pub fn tile(&mut self, instruction: &Tile) {
        let mut bytes = Bytes::default();
        tile::encode(instruction, &mut bytes);
        self.emit(&bytes);
    }

    /// Takes the bytes of one instruction.
    #[inline]
    pub(super) fn emit(&mut self, instruction: &Bytes) {
        let start = self.bytes.len();
        instruction.append_to(&mut self.bytes);
        if let Some((at, offset)) = instruction.pool {
            self.fixups.push(Fixup {
                at: start + usize::from(at),
                end: self.bytes.len(),
                target: Target::Pool(offset),
            });
        }
    }

    /// The bytes of an instruction without operands.
    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Four bytes at the end of an instruction that become the distance to a label.
    pub(super) fn relative(&mut self, label: Label) {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        self.fixups.push(Fixup {
            at,
            end: at + 4,
            target: Target::Label(label),
        });
    }

    /// `jmp`: two bytes backward where the label is in reach, else five.
    pub fn jump(&mut self, label: Label) {
        match self.short(label) {
            Some(distance) => self.raw(&[0xeb, distance]),
            None => {
                self.raw(&[0xe9]);
                self.relative(label);
            }
        }
    }

    /// `jcc`: two bytes backward where the label is in reach, else six.
    pub fn jump_if(&mut self, condition: Cond, label: Label) {
        match self.short(label) {
            Some(distance) => self.raw(&[0x70 | condition as u8, distance]),
            None => {
                self.raw(&[0x0f, 0x80 | condition as u8]);
                self.relative(label);
            }
        }
    }

    /// The one-byte distance from the end of a two-byte jump here, where the label is bound and in reach.
    fn short(&self, label: Label) -> Option<u8> {
        let to = self.labels[label];
        if to == UNBOUND {
            return None;
        }
        let distance = self.bytes.len() + 2 - to;
        (distance <= 128).then(|| (distance as u8).wrapping_neg())
    }

    /// `call` of the address in a register.
    pub fn call(&mut self, to: Gpr) {
        if to.0 >= 8 {
            self.raw(&[0x41]);
        }
        self.raw(&[0xff, 0xd0 | to.0 & 7]);
    }

    /// `call` of code at a label.
    pub fn call_label(&mut self, label: Label) {
        self.raw(&[0xe8]);
        self.relative(label);
    }

    /// The code with the pool behind it, 64-byte aligned. Every label that a jump names must be bound.
    pub fn finish(mut self, pool: &[u8]) -> Code {
        let pool_at = if pool.is_empty() {
            self.bytes.len()
        } else {
            self.bytes.len().next_multiple_of(POOL_ALIGNMENT)
        };
        // Whoever runs off the end of the code traps.
        self.bytes.resize(pool_at, 0xcc);
        self.bytes.extend_from_slice(pool);
        for fixup in &self.fixups {
            let target = match fixup.target {
                Target::Pool(offset) => {
                    assert!(
                        (offset as usize) < pool.len(),
                        "offset {offset} lies in the pool of {} bytes",
                        pool.len()
                    );
                    pool_at + offset as usize
                }
                Target::Label(label) => {
                    let offset = self.labels[label];
                    assert!(
                        offset != UNBOUND,
                        "label {} was bound before the code was finished",
                        label.0
                    );
                    offset
                }
            };
            let distance = i32::try_from(target as i64 - fixup.end as i64)
                .expect("code is smaller than 2 GiB");
            self.bytes[fixup.at..fixup.at + 4].copy_from_slice(&distance.to_le_bytes());
        }
        Code {
            bytes: self.bytes,
            pool_at,
            labels: self.labels,
        }
    }
}

/// The recommended `nop` of each length from 1 to 9.
const NOPS: [[u8; 9]; 9] = [
    [0x90, 0, 0, 0, 0, 0, 0, 0, 0],
    [0x66, 0x90, 0, 0, 0, 0, 0, 0, 0],
    [0x0f, 0x1f, 0x00, 0, 0, 0, 0, 0, 0],
    [0x0f, 0x1f, 0x40, 0x00, 0, 0, 0, 0, 0],
    [0x0f, 0x1f, 0x44, 0x00, 0x00, 0, 0, 0, 0],
    [0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00, 0, 0, 0],
    [0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00, 0, 0],
    [0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00, 0],
    [0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00],
];
