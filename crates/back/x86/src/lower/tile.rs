//! Matrix fragments, in the registers of the matrix unit or in memory.

use super::Refusal;
use super::fallback::Fallback;
use super::function::Writer;
use super::matrix::{ROW_BYTES, ROWS, dot};
use super::value::{Pieces, size_of};
use crate::asm::{Bits, Mem};
use crate::machine::{Class, Inst as M, Place, VReg};
use loopwright_kernel::{TileType, Type, Value};
use smallvec::smallvec;

/// What the tile registers are set up with: all eight are the same.
pub(crate) fn configuration() -> [u8; 64] {
    let mut bytes = [0; 64];
    // The palette.
    bytes[0] = 1;
    for tile in 0..8 {
        bytes[16 + 2 * tile] = ROW_BYTES as u8;
        bytes[48 + tile] = ROWS as u8;
    }
    bytes
}

impl Writer<'_, '_, '_> {
    /// Whether an array is a tile in a register.
    pub(crate) fn is_tile_variable(&self, array: Value) -> bool {
        let matrix = self.found.matrix.as_ref();
        matrix.is_some_and(|matrix| matrix.variables.contains(&array))
    }

    /// Whether a tile is zeros that are made where they are needed.
    fn is_zero_tile(&self, tile: Value) -> bool {
        let matrix = self.found.matrix.as_ref();
        matrix.is_some_and(|matrix| matrix.zeros.contains(&tile))
    }

    /// Writes a tile to its variable, where it is already unless it is zeros.
    pub(crate) fn tile_written(&mut self, variable: Value, tile: Value) {
        if self.is_zero_tile(tile) {
            let to = self.variables[&variable][0];
            self.emit(M::TileZero { to });
        }
    }

    /// The rows of a tile as the machine's operand.
    fn tile_rows(&mut self, size: u32, [ptr, index, stride]: [Value; 3]) -> Place {
        let first = self.element(ptr, index);
        let base = self.gpr_new();
        self.emit(M::Lea {
            to: base,
            of: first,
        });
        let by = match self.known(stride) {
            Some(stride) => self.immediate(stride * i64::from(size)),
            None => {
                let stride = self.gpr(stride);
                let by = self.gpr_new();
                self.emit(M::MultiplyImm {
                    bits: Bits::B64,
                    to: by,
                    from: stride,
                    by: size as i32,
                });
                by
            }
        };
        Mem::At {
            base,
            index: Some((by, 1)),
            disp: 0,
        }
    }

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

    /// Calls `each` with the address of every row, or group of interleaved rows.
    fn rows(
        &mut self,
        ty: TileType,
        [ptr, index, stride]: [Value; 3],
        interleave: u32,
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
        for at in 0..ty.rows / interleave {
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
        memory: [Value; 3],
        interleave: u32,
    ) -> Result<Pieces, Refusal> {
        let ty = self.tile_type(tile);
        if self.found.matrix.is_some() {
            let from = self.tile_rows(size_of(ty.dtype), memory);
            let to = self.reg_new(Class::Tile);
            self.emit(M::TileLoad { to, from });
            return Ok(smallvec![to]);
        }
        let room = self.tile_room(tile);
        let size = size_of(ty.dtype) as i32;
        let (cols, together) = (ty.cols as i32, interleave as i32);
        self.rows(ty, memory, interleave, &mut |writer, group, from| {
            for at in 0..cols * together {
                let (row, col) = (group as i32 * together + at % together, at / together);
                let to = Mem::at(VReg::FRAME, room + (row * cols + col) * size);
                let from = super::address::displaced(from, i64::from(at * size)).unwrap_or(from);
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
        if self.found.matrix.is_some() {
            let to = self.tile_rows(size_of(ty.dtype), [ptr, index, stride]);
            let from = self.pieces(tile)[0];
            self.emit(M::TileStore { to, from });
            return Ok(());
        }
        let room = self.tile_operand(tile)?;
        let size = size_of(ty.dtype) as i32;
        self.rows(ty, [ptr, index, stride], 1, &mut |writer, row, to| {
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
        if self.is_zero_tile(tile) {
            return Ok(Pieces::new());
        }
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
        if self.found.matrix.is_some()
            && let Some(kind) = dot(a.dtype, b.dtype, c.dtype)
        {
            let (a, b) = (self.pieces(left)[0], self.pieces(right)[0]);
            let to = match self.is_zero_tile(accumulator) {
                true => {
                    let to = self.reg_new(Class::Tile);
                    self.emit(M::TileZero { to });
                    to
                }
                false => self.pieces(accumulator)[0],
            };
            self.emit(M::TileDot { kind, to, a, b });
            return Ok(smallvec![to]);
        }
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
