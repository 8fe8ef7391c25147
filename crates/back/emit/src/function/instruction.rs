//! The text of instructions.

use super::{Place, Writer, mistyped};
use crate::dialect::Spelled;
use crate::expression::Expr;
use crate::syntax::Field;
use loopwright_kernel::{Inst, TileType, Type, Value};

impl<'a> Writer<'a> {
    /// The text of an instruction without effects.
    pub(super) fn expression(&mut self, value: Value, inst: &'a Inst) -> Spelled<Expr> {
        let function = self.function;
        let dialect = self.dialect;
        let ty = function.ty(value);
        Ok(match inst {
            Inst::Const(_)
            | Inst::Alloc { .. }
            | Inst::Call(..)
            | Inst::Atomic { .. }
            | Inst::CompareExchange { .. } => {
                unreachable!("`define` writes these itself")
            }
            Inst::Map(op, operands) => {
                // The last operand has the op's dtype; `select`'s first does not.
                let Some(&last) = operands.last() else {
                    return Err(mistyped("an op with operands"));
                };
                let dtype = self.dtype(last)?;
                let operands: Vec<Expr> =
                    operands.iter().map(|&value| self.operand(value)).collect();
                dialect.map(*op, dtype, ty.lanes(), &operands, self.pieces)?
            }
            Inst::Cast(to, operand) => {
                let from = self.dtype(*operand)?;
                let operand = self.operand(*operand);
                dialect.cast(from, *to, ty.lanes(), &operand, self.pieces)?
            }
            Inst::Bitcast(to, operand) => {
                let from = self.dtype(*operand)?;
                let operand = self.operand(*operand);
                dialect.bitcast(from, *to, ty.lanes(), &operand, self.pieces)?
            }
            Inst::Load { ptr, index } => {
                if let Place::Variable(name) = &self.places[*ptr]
                    && self.uses.values[*ptr].variable
                {
                    Expr::primary(name.clone()).reading()
                } else {
                    let pointee = self.pointee(*ptr)?;
                    let (pointer, index) = (self.operand(*ptr), self.operand(*index));
                    match (ty, pointee.ty) {
                        (Type::Vector(dtype, lanes), Type::Scalar(_)) => {
                            let address = dialect.advanced(&pointer, &index, pointee)?;
                            dialect
                                .load_vector(*dtype, *lanes, &address, self.pieces)?
                                .reading()
                        }
                        _ => dialect
                            .load(&pointer, &index, pointee, self.pieces)?
                            .reading(),
                    }
                }
            }
            Inst::Offset { ptr, index } => {
                self.constant[value] = self.constant[*ptr];
                self.advanced(*ptr, *index)?
            }
            Inst::Field { ptr, field } => {
                let Some(Type::Struct(id)) = function.ty(*ptr).pointee() else {
                    return Err(mistyped("a pointer to a struct"));
                };
                self.constant[value] = self.constant[*ptr];
                let field = Field {
                    name: &self.structs.fields[*id][*field as usize],
                    of: *id,
                    position: *field,
                    module: self.structs.module,
                };
                let pointer = self.operand(*ptr);
                dialect.field(&pointer, field)?
            }
            Inst::Elements(ptr) => {
                self.constant[value] = self.constant[*ptr];
                dialect.elements(&self.operand(*ptr))
            }
            Inst::Splat(scalar) => {
                let dtype = self.dtype(*scalar)?;
                let scalar = self.operand(*scalar);
                dialect.splat(dtype, ty.lanes(), &scalar, self.pieces)?
            }
            Inst::Build(values) => {
                let dtype = self.dtype(value)?;
                let values = self.plain_operands(values)?;
                dialect.build(dtype, &values, self.pieces)?
            }
            Inst::Extract(vector, lane) => {
                let dtype = self.dtype(*vector)?;
                let lanes = function.ty(*vector).lanes();
                let vector = self.plain_operand(*vector)?;
                dialect.extract(dtype, lanes, &vector, *lane, self.pieces)?
            }
            Inst::Insert(vector, lane, scalar) => {
                let dtype = self.dtype(*vector)?;
                let vector = self.plain_operand(*vector)?;
                let scalar = self.operand(*scalar);
                dialect.insert(dtype, ty.lanes(), &vector, *lane, &scalar, self.pieces)?
            }
            Inst::Shuffle(left, right, picks) => {
                let dtype = self.dtype(*left)?;
                let lanes = function.ty(*left).lanes();
                let (left, right) = (self.plain_operand(*left)?, self.plain_operand(*right)?);
                dialect.shuffle(dtype, lanes, &left, &right, picks, self.pieces)?
            }
            Inst::ReduceLanes(op, vector) => {
                let dtype = self.dtype(*vector)?;
                let lanes = function.ty(*vector).lanes();
                let vector = self.plain_operand(*vector)?;
                dialect.reduce(*op, dtype, lanes, &vector, self.pieces)?
            }
            Inst::WorkItem(query, axis) => dialect.work_item(*query, *axis)?,
            Inst::TileLoad {
                ptr,
                index,
                stride,
                interleave,
            } => {
                let tile = tile_type(ty)?;
                let address = self.advanced(*ptr, *index)?;
                let stride = self.operand(*stride);
                dialect
                    .tile_load(tile, &address, (&stride, *interleave), self.pieces)?
                    .reading()
            }
            Inst::TileSplat(scalar) => {
                let tile = tile_type(ty)?;
                let scalar = self.operand(*scalar);
                dialect.tile_splat(tile, &scalar, self.pieces)?
            }
            Inst::TileMma {
                left,
                right,
                accumulator,
            } => {
                let tiles = [
                    tile_type(function.ty(*left))?,
                    tile_type(function.ty(*right))?,
                    tile_type(function.ty(*accumulator))?,
                ];
                let [left, right, accumulator] =
                    [*left, *right, *accumulator].map(|value| self.operand(value));
                dialect.tile_mma(tiles, &left, &right, &accumulator, self.pieces)?
            }
        })
    }
}

fn tile_type(ty: &Type) -> Spelled<TileType> {
    match ty {
        Type::Tile(tile) => Ok(*tile),
        _ => Err(mistyped("a tile")),
    }
}
