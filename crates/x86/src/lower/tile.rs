//! Matrix fragments, in memory.

use super::Refusal;
use super::fallback::Fallback;
use super::function::Writer;
use super::value::{Pieces, size_of};
use crate::asm::{Bits, Mem};
use crate::machine::{Inst as M, Place, VReg};
use loopwright_kernel::{TileType, Type, Value};

impl Writer<'_, '_, '_> {
    fn tile_type(&self, tile: Value) -> TileType {
        match self.function.ty(tile) {
            Type::Tile(ty) => *ty,
            other => unreachable!("{other:?} is no tile"),
        }
    }

    /// Where a tile is. Tiles are values: each has its own room, which loops use again.
    fn tile_room(&mut self, tile: Value) -> i32 {
        if let Some(at) = self.arrays.get(&tile) {
            return *at;
        }
        let ty = self.tile_type(tile);
        let bytes = u64::from(ty.rows) * u64::from(ty.cols) * u64::from(size_of(ty.dtype));
        let at = self.allocate(bytes.next_multiple_of(64), 64);
        self.arrays.insert(tile, at);
        at
    }

    /// Calls `each` with the address of every row.
    fn rows(
        &mut self,
        ty: TileType,
        ptr: Value,
        index: Value,
        stride: Value,
        each: &mut dyn FnMut(&mut Self, u32, Place),
    ) {
        let first = self.element(ptr, index);
        let row = self.gpr_new();
        self.emit(M::Lea { to: row, of: first });
        let stride = self.gpr(stride);
        let by = self.gpr_new();
        self.emit(M::MultiplyImm {
            bits: Bits::B64,
            to: by,
            from: stride,
            by: size_of(ty.dtype) as i32,
        });
        for at in 0..ty.rows {
            each(self, at, Mem::at(row, 0));
            self.emit(M::Alu {
                op: crate::asm::Alu::Add,
                bits: Bits::B64,
                to: row,
                from: crate::machine::Source::Reg(by),
            });
        }
    }

    pub(crate) fn tile_load(
        &mut self,
        tile: Value,
        ptr: Value,
        index: Value,
        stride: Value,
    ) -> Result<Pieces, Refusal> {
        let ty = self.tile_type(tile);
        let room = self.tile_room(tile);
        let size = size_of(ty.dtype) as i32;
        self.rows(ty, ptr, index, stride, &mut |writer, row, from| {
            for col in 0..ty.cols as i32 {
                let to = Mem::at(
                    VReg::FRAME,
                    room + (row as i32 * ty.cols as i32 + col) * size,
                );
                let from = super::address::displaced(from, i64::from(col * size)).unwrap_or(from);
                writer.copy_bytes(size_of(ty.dtype), to, from);
            }
        });
        Ok(Pieces::new())
    }

    pub(crate) fn tile_store(
        &mut self,
        tile: Value,
        ptr: Value,
        index: Value,
        stride: Value,
    ) -> Result<(), Refusal> {
        let ty = self.tile_type(tile);
        let room = self.tile_operand(tile)?;
        let size = size_of(ty.dtype) as i32;
        self.rows(ty, ptr, index, stride, &mut |writer, row, to| {
            for col in 0..ty.cols as i32 {
                let from = Mem::at(
                    VReg::FRAME,
                    room + (row as i32 * ty.cols as i32 + col) * size,
                );
                let to = super::address::displaced(to, i64::from(col * size)).unwrap_or(to);
                writer.copy_bytes(size_of(ty.dtype), to, from);
            }
        });
        Ok(())
    }

    pub(crate) fn tile_splat(&mut self, tile: Value, from: Value) -> Result<Pieces, Refusal> {
        let ty = self.tile_type(tile);
        let room = self.tile_room(tile);
        let pieces = self.pieces(from);
        for at in 0..(ty.rows * ty.cols) as i32 {
            let place = Mem::at(VReg::FRAME, room + at * size_of(ty.dtype) as i32);
            self.store_pieces(&Type::Scalar(ty.dtype), place, &pieces);
        }
        Ok(Pieces::new())
    }

    pub(crate) fn tile_mma(
        &mut self,
        tile: Value,
        left: Value,
        right: Value,
        accumulator: Value,
    ) -> Result<Pieces, Refusal> {
        let (a, b, c) = (
            self.tile_type(left),
            self.tile_type(right),
            self.tile_type(accumulator),
        );
        let operands = [left, right, accumulator];
        let mut at = [0; 4];
        for (at, tile) in at.iter_mut().zip(operands) {
            *at = self.tile_operand(tile)?.cast_unsigned();
        }
        // Offsets are from the bottom of the frame.
        at[3] = self.tile_room(tile).cast_unsigned();
        let what = Fallback::Mma {
            left: a.dtype,
            right: b.dtype,
            accumulator: c.dtype,
            rows: c.rows,
            cols: c.cols,
            depth: a.cols,
            at,
        };
        self.ask(what, 0);
        Ok(Pieces::new())
    }

    /// Where a tile is that was made before.
    fn tile_operand(&mut self, tile: Value) -> Result<i32, Refusal> {
        let known = self.arrays.get(&tile).copied();
        known.ok_or_else(|| {
            Refusal(
                "a tile from outside of a parallel loop is used inside; store it first".to_owned(),
            )
        })
    }

    fn tile_bytes(&self, tile: Value) -> u32 {
        let ty = self.tile_type(tile);
        ty.rows * ty.cols * size_of(ty.dtype)
    }

    /// Reads a tile that was kept in memory as it is.
    pub(crate) fn tile_read(&mut self, tile: Value, from: Place) -> Result<Pieces, Refusal> {
        let bytes = self.tile_bytes(tile);
        let room = self.tile_room(tile);
        self.copy_bytes(bytes, Mem::at(VReg::FRAME, room), from);
        Ok(Pieces::new())
    }

    /// Keeps a tile in memory as it is.
    pub(crate) fn tile_write(&mut self, tile: Value, to: Place) -> Result<(), Refusal> {
        let bytes = self.tile_bytes(tile);
        let room = self.tile_operand(tile)?;
        self.copy_bytes(bytes, to, Mem::at(VReg::FRAME, room));
        Ok(())
    }
}
