//! Instructions that give a value.

use super::code::Held;
use super::function::{Home, Writer};
use super::{Refusal, mistyped};
use crate::ffi::Val;
use loopwright_kernel::{Inst, TileType, Type, Value, WorkItem};
use loopwright_ops::{DType, Op};

impl Writer<'_, '_> {
    fn dtype(&self, value: Value) -> Result<DType, Refusal> {
        let ty = self.function.ty(value);
        ty.dtype().ok_or_else(|| mistyped("a scalar or vector"))
    }

    fn lanes(&self, value: Value) -> u32 {
        self.function.ty(value).lanes()
    }

    /// What an instruction gives. It is put into a variable at once: reads of memory happen here.
    pub(super) fn expression(&mut self, value: Value, inst: &Inst) -> Result<Held, Refusal> {
        let context = self.code.context();
        let function = self.function;
        let ty = function.ty(value);
        Ok(match inst {
            Inst::Const(_) | Inst::Alloc { .. } => {
                unreachable!("`instruction` writes these itself")
            }
            Inst::Map(op, operands) => {
                // The last operand has the op's dtype; `select`'s first does not.
                let Some(&last) = operands.last() else {
                    return Err(mistyped("an op with operands"));
                };
                let dtype = self.dtype(last)?;
                let operands: Vec<Held> = operands
                    .iter()
                    .map(|&operand| self.operand(operand))
                    .collect();
                if ty.lanes() == 1 {
                    let operands: Vec<Val> = operands.iter().map(|operand| operand.val).collect();
                    Held::plain(self.code.scalar_op(*op, dtype, &operands))
                } else {
                    self.code.vector_op(*op, dtype, ty.lanes(), &operands)
                }
            }
            Inst::Cast(to, operand) => {
                let from = self.dtype(*operand)?;
                let operand = self.operand(*operand);
                self.code.cast(from, *to, ty.lanes(), operand)
            }
            Inst::Bitcast(to, operand) => {
                let operand = self.operand(*operand);
                Held::plain(self.code.bits_as(*to, ty.lanes(), operand.val))
            }
            Inst::Load { ptr, index } => {
                if let Home::Variable(place) = self.homes[*ptr] {
                    return Ok(Held::plain(context.value(place)));
                }
                let place = match (ty, function.ty(*ptr).pointee()) {
                    (Type::Vector(dtype, lanes), Some(Type::Scalar(_))) => {
                        self.elements_as_vector(*ptr, *index, *dtype, *lanes)
                    }
                    _ => self.element(*ptr, *index),
                };
                Held::plain(context.value(place))
            }
            Inst::Offset { ptr, index } => {
                let place = self.element(*ptr, *index);
                Held::plain(context.address(place))
            }
            Inst::Field { ptr, field } => {
                let Some(Type::Struct(id)) = function.ty(*ptr).pointee() else {
                    return Err(mistyped("a pointer to a struct"));
                };
                let field = self.types.structs[*id].fields[*field as usize];
                let pointer = self.operand(*ptr).val;
                let address = context.address(context.pointee_member(pointer, field));
                let ty = self.value_type(value)?;
                Held::plain(context.cast(address, ty))
            }
            Inst::Elements(ptr) => {
                let pointer = self.operand(*ptr).val;
                let ty = self.value_type(value)?;
                Held::plain(context.cast(pointer, ty))
            }
            Inst::Splat(scalar) => {
                let dtype = self.dtype(*scalar)?;
                let scalar = self.operand(*scalar).val;
                Held::plain(self.code.splat(dtype, ty.lanes(), scalar))
            }
            Inst::Build(values) => {
                let values: Vec<Val> = values.iter().map(|&value| self.plain(value)).collect();
                let ty = self.value_type(value)?;
                Held::plain(context.lanes(ty, &values))
            }
            Inst::Extract(vector, lane) => {
                let (dtype, lanes) = (self.dtype(*vector)?, self.lanes(*vector));
                let vector = self.kept(*vector)?;
                Held::plain(self.code.lane(dtype, lanes, vector, *lane))
            }
            Inst::Insert(vector, lane, scalar) => {
                let dtype = self.dtype(*vector)?;
                let vector = self.kept(*vector)?;
                let scalar = self.operand(*scalar).val;
                Held::plain(self.code.insert(dtype, ty.lanes(), vector, *lane, scalar))
            }
            Inst::Shuffle(left, right, picks) => {
                let (dtype, lanes) = (self.dtype(*left)?, self.lanes(*left));
                let vectors = [self.kept(*left)?, self.kept(*right)?];
                Held::plain(self.code.shuffle(dtype, lanes, vectors, picks))
            }
            Inst::ReduceLanes(op, vector) => {
                let (dtype, lanes) = (self.dtype(*vector)?, self.lanes(*vector));
                let vector = self.kept(*vector)?;
                Held::plain(self.code.reduce(*op, dtype, lanes, vector))
            }
            Inst::WorkItem(query, axis) => {
                let Some(item) = self.item else {
                    unreachable!("a function that asks about its work-item is handed it");
                };
                let fields = &self.types.item;
                let field = match query {
                    WorkItem::GlobalId => fields.global_id,
                    WorkItem::LocalId => fields.local_id,
                    WorkItem::GroupId => fields.group_id,
                    WorkItem::GlobalSize => fields.global_size,
                    WorkItem::LocalSize => fields.local_size,
                    WorkItem::GroupCount => fields.group_count,
                };
                let axis = self.code.integer(DType::I64, (*axis).into());
                let axes = context.value(context.pointee_member(item, field));
                Held::plain(context.value(context.element(axes, axis)))
            }
            Inst::Atomic {
                op,
                ptr,
                index,
                value: operand,
            } => {
                let dtype = self.dtype(*operand)?;
                let place = self.element(*ptr, *index);
                let operand = self.operand(*operand).val;
                Held::plain(
                    self.code
                        .atomic(*op, dtype, context.address(place), operand),
                )
            }
            Inst::CompareExchange {
                ptr,
                index,
                expected,
                value: operand,
            } => {
                let dtype = self.dtype(*operand)?;
                let place = self.element(*ptr, *index);
                let [expected, operand] =
                    [*expected, *operand].map(|value| self.operand(value).val);
                let address = context.address(place);
                Held::plain(
                    self.code
                        .compare_exchange(dtype, address, expected, operand),
                )
            }
            Inst::Call(callee, arguments) => Held::plain(self.call(*callee, arguments)?),
            Inst::TileLoad {
                ptr,
                index,
                stride,
                interleave,
            } => {
                let tile = tile_type(ty)?;
                let from = self.element(*ptr, *index);
                let from = context.address(from);
                let stride = self.operand(*stride).val;
                self.new_tile(tile, |code, row, col| {
                    let (row, col) = code.interleaved(row, col, *interleave);
                    let at = code.strided(row, stride, col);
                    context.value(context.element(from, at))
                })?
            }
            Inst::TileSplat(scalar) => {
                let tile = tile_type(ty)?;
                let scalar = self.operand(*scalar).val;
                self.new_tile(tile, |_, _, _| scalar)?
            }
            Inst::TileMma {
                left,
                right,
                accumulator,
            } => self.tile_mma(*left, *right, *accumulator)?,
        })
    }

    /// A tile whose elements `write` gives, row by row.
    fn new_tile(
        &mut self,
        tile: TileType,
        write: impl FnOnce(&mut super::code::Code<'_, '_>, Val, Val) -> Val,
    ) -> Result<Held, Refusal> {
        let info = self.types.tile(tile, self.code.shared)?;
        let context = self.code.context();
        let place = self.code.temporary(info.ty);
        let elements = context.value(context.member(place, info.fields[0]));
        self.code.each_element(
            [tile.rows, tile.cols],
            elements,
            |code, row, col, element| {
                let value = write(code, row, col);
                code.assign(element, value);
            },
        );
        Ok(Held::plain(context.value(place)))
    }

    /// A tile in a variable, and its elements.
    fn tile_elements(&mut self, value: Value) -> Result<(TileType, Held, Val), Refusal> {
        let tile = tile_type(self.function.ty(value))?;
        let info = self.types.tile(tile, self.code.shared)?;
        let held = self.operand(value);
        let context = self.code.context();
        let place = self.code.temporary(info.ty);
        self.code.assign(place, held.val);
        let elements = context.value(context.member(place, info.fields[0]));
        Ok((tile, Held::plain(context.value(place)), elements))
    }

    /// Writes a tile to memory.
    pub(super) fn tile_store(
        &mut self,
        tile: Value,
        ptr: Value,
        index: Value,
        stride: Value,
    ) -> Result<(), Refusal> {
        let context = self.code.context();
        let (ty, _, elements) = self.tile_elements(tile)?;
        let to = self.element(ptr, index);
        let to = context.address(to);
        let stride = self.operand(stride).val;
        self.code
            .each_element([ty.rows, ty.cols], elements, |code, row, col, element| {
                let at = code.strided(row, stride, col);
                code.assign(context.element(to, at), context.value(element));
            });
        Ok(())
    }

    /// `accumulator + left * right`: for every element one `mul_add` after the other, in the accumulator's dtype.
    fn tile_mma(&mut self, left: Value, right: Value, accumulator: Value) -> Result<Held, Refusal> {
        let context = self.code.context();
        let (l, _, l_at) = self.tile_elements(left)?;
        let (r, _, r_at) = self.tile_elements(right)?;
        let (a, result, a_at) = self.tile_elements(accumulator)?;
        let inner = l.cols;
        let ty = self.code.shared.scalar(a.dtype);
        self.code.repeat(inner.into(), |code, k| {
            code.each_element([a.rows, a.cols], a_at, |code, row, col, sum| {
                let from = code.row_major(row, inner, k);
                let x = context.value(context.element(l_at, from));
                let from = code.row_major(k, a.cols, col);
                let y = context.value(context.element(r_at, from));
                let [x, y] = [(l.dtype, x), (r.dtype, y)].map(|(dtype, value)| {
                    let own = code.shared.scalar(dtype);
                    let value = Held::plain(code.keep(own, value));
                    let value = code.cast(dtype, a.dtype, 1, value);
                    code.keep(ty, value.val)
                });
                let old = code.keep(ty, context.value(sum));
                let new = code.scalar_op(Op::MulAdd, a.dtype, &[x, y, old]);
                code.assign(sum, new);
            });
        });
        Ok(result)
    }
}

fn tile_type(ty: &Type) -> Result<TileType, Refusal> {
    match ty {
        Type::Tile(tile) => Ok(*tile),
        _ => Err(mistyped("a tile")),
    }
}
