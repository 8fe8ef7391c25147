//! Instructions.

use super::{Check, Fault, FunctionValidator, Known, State, types};
use crate::ir::{AtomicOp, Inst, Space, TileRole, TileType, Type, Value};
use loopwright_ops::{DType, Kind, Op};
use smallvec::SmallVec;

impl<'a> FunctionValidator<'a, '_> {
    /// Checks an instruction that defines `value` of type `ty`, and says what is then known of it.
    pub(super) fn inst(&mut self, value: Value, ty: &'a Type, inst: &'a Inst) -> Check<Known> {
        let mut known = Known {
            state: State::Undefined,
            root: None,
            constant: None,
        };
        match inst {
            Inst::Const(scalar) => {
                if ty.dtype() != Some(scalar.dtype()) {
                    let expected = format!("{} or a vector of it", scalar.dtype());
                    return Err(self.mismatch("the result", value, expected));
                }
                known.constant = Some(*scalar);
            }
            Inst::Map(op, operands) => self.map(value, *op, operands)?,
            Inst::Cast(dtype, operand) => {
                let (_, lanes) = self.expect_element("the operand", *operand)?;
                self.result(value, &Type::of(*dtype, lanes))?;
            }
            Inst::Bitcast(dtype, operand) => {
                let (from, lanes) = self.expect_element("the operand", *operand)?;
                bitcast(from, *dtype)?;
                self.result(value, &Type::of(*dtype, lanes))?;
            }
            Inst::Alloc {
                space,
                ty: element,
                count,
            } => {
                if !matches!(space, Space::Private | Space::Local) {
                    return Err(Box::new(Fault::AllocSpace {
                        space: space.keyword(),
                    }));
                }
                if *count == 0 {
                    return Err(Box::new(Fault::EmptyAlloc));
                }
                types::memory_type(self.module, element, Some(*space))?;
                match ty {
                    Type::Pointer(of, pointee) if of == space && **pointee == *element => {}
                    _ => {
                        let expected = self.show(&element.clone().pointer(*space));
                        return Err(self.mismatch("the result", value, expected));
                    }
                }
            }
            Inst::Load { ptr, index } => {
                let (_, element) = self.expect_pointer("the pointer", *ptr)?;
                self.expect_index("the index", *index)?;
                self.transfer(element, ty, "the result", value)?;
                self.expect_readable(*ptr)?;
            }
            Inst::Offset { ptr, index } => {
                self.expect_pointer("the pointer", *ptr)?;
                self.expect_index("the index", *index)?;
                self.result(value, self.used(*ptr)?)?;
                known.root = self.known[*ptr].root;
            }
            Inst::Field { ptr, field } => {
                self.field(value, *ptr, *field)?;
                known.root = self.known[*ptr].root;
            }
            Inst::Elements(ptr) => {
                let (space, Type::Array(element, _)) = self.expect_pointer("the pointer", *ptr)?
                else {
                    return Err(self.mismatch("the operand", *ptr, "a pointer to an array"));
                };
                self.pointer_result(value, space, element)?;
                known.root = self.known[*ptr].root;
            }
            Inst::Splat(scalar) => {
                let dtype = self.expect_scalar("the operand", *scalar)?;
                if !matches!(ty, Type::Vector(of, _) if *of == dtype) {
                    return Err(self.mismatch("the result", value, format!("a vector of {dtype}")));
                }
            }
            Inst::Build(scalars) => self.build(value, scalars)?,
            Inst::Extract(vector, lane) => {
                let (dtype, lanes) = self.expect_vector("the operand", *vector)?;
                expect_lane(*lane, lanes.into())?;
                self.result(value, &Type::Scalar(dtype))?;
            }
            Inst::Insert(vector, lane, scalar) => {
                let (dtype, lanes) = self.expect_vector("the operand", *vector)?;
                expect_lane(*lane, lanes.into())?;
                self.expect("the inserted lane", *scalar, &Type::Scalar(dtype))?;
                self.result(value, &Type::Vector(dtype, lanes))?;
            }
            Inst::Shuffle(left, right, picked) => {
                let (dtype, lanes) = self.expect_vector("the first operand", *left)?;
                self.expect("the second operand", *right, &Type::Vector(dtype, lanes))?;
                for lane in picked {
                    expect_lane(*lane, 2 * u64::from(lanes))?;
                }
                self.result(value, &Type::Vector(dtype, picked.len() as u32))?;
            }
            Inst::ReduceLanes(op, vector) => {
                let (dtype, _) = self.expect_vector("the operand", *vector)?;
                if !op.allows(dtype) {
                    return Err(Box::new(Fault::Reduce {
                        op: *op,
                        dtype: dtype.to_string(),
                    }));
                }
                self.result(value, &Type::Scalar(dtype))?;
            }
            Inst::WorkItem(_, axis) => {
                if *axis > 2 {
                    return Err(Box::new(Fault::Axis(*axis)));
                }
                self.result(value, &Type::INDEX)?;
            }
            Inst::Atomic {
                op,
                ptr,
                index,
                value: operand,
            } => {
                // Floats add and move in hardware or by a loop that every backend has; the other
                // combinations of them are what programs can write with `compare_exchange`.
                let floats = matches!(op, AtomicOp::Add | AtomicOp::Exchange);
                let element = self.atomic(Some(*op), floats, *ptr, *index)?;
                self.expect("the operand", *operand, element)?;
                self.result(value, element)?;
            }
            Inst::CompareExchange {
                ptr,
                index,
                expected,
                value: operand,
            } => {
                let element = self.atomic(None, false, *ptr, *index)?;
                self.expect("the expected value", *expected, element)?;
                self.expect("the written value", *operand, element)?;
                self.result(value, element)?;
            }
            Inst::Call(function, arguments) => match self.call(*function, arguments)? {
                Some(returned) => self.result(value, returned)?,
                None => {
                    return Err(Box::new(Fault::CallResult {
                        function: self.function_name(*function),
                        returns: "nothing".to_owned(),
                        uses: "takes for a value",
                    }));
                }
            },
            Inst::TileLoad {
                ptr,
                index,
                stride,
                interleave,
            } => {
                let tile = self.tile_result(value, ty)?;
                if tile.rows.checked_rem(*interleave) != Some(0) {
                    return Err(Box::new(Fault::Interleave {
                        tile: self.show(ty),
                        interleave: *interleave,
                    }));
                }
                self.tile_memory(*ptr, *index, *stride, tile.dtype)?;
                self.expect_readable(*ptr)?;
            }
            Inst::TileSplat(scalar) => {
                let tile = self.tile_result(value, ty)?;
                self.expect("the operand", *scalar, &Type::Scalar(tile.dtype))?;
            }
            Inst::TileMma {
                left,
                right,
                accumulator,
            } => {
                self.tile_mma(*left, *right, *accumulator)?;
                self.result(value, self.used(*accumulator)?)?;
            }
        }
        Ok(known)
    }

    /// Checks that the value defined has the type that its instruction gives.
    fn result(&self, value: Value, expected: &Type) -> Check {
        if self.function.ty(value) == expected {
            Ok(())
        } else {
            Err(self.mismatch("the result", value, self.show(expected)))
        }
    }

    fn pointer_result(&self, value: Value, space: Space, pointee: &Type) -> Check {
        match self.function.ty(value) {
            Type::Pointer(of, to) if *of == space && **to == *pointee => Ok(()),
            _ => {
                let expected = self.show(&pointee.clone().pointer(space));
                Err(self.mismatch("the result", value, expected))
            }
        }
    }

    fn map(&self, value: Value, op: Op, operands: &[Value]) -> Check {
        let mut dtypes: SmallVec<[DType; 3]> = SmallVec::new();
        let mut lanes = None;
        for operand in operands {
            let (dtype, found) = self.expect_element("the operand", *operand)?;
            if *lanes.get_or_insert(found) != found {
                return Err(Box::new(Fault::Lanes {
                    first: self.label(operands[0]),
                    first_type: self.show(self.used(operands[0])?),
                    other: self.label(*operand),
                    other_type: self.show(self.used(*operand)?),
                }));
            }
            dtypes.push(dtype);
        }
        let dtype = op
            .result_dtype(&dtypes)
            .map_err(|error| Box::new(Fault::Op(error)))?;
        self.result(value, &Type::of(dtype, lanes.unwrap_or(1)))
    }

    fn build(&self, value: Value, scalars: &[Value]) -> Check {
        let Some(first) = scalars.first() else {
            return Err(self.mismatch("the result", value, "built of at least two lanes"));
        };
        let dtype = self.expect_scalar("the first lane", *first)?;
        for scalar in scalars {
            self.expect("the lane", *scalar, &Type::Scalar(dtype))?;
        }
        self.result(value, &Type::Vector(dtype, scalars.len() as u32))
    }

    fn field(&self, value: Value, ptr: Value, field: u32) -> Check {
        let (space, Type::Struct(id)) = self.expect_pointer("the pointer", ptr)? else {
            return Err(self.mismatch("the operand", ptr, "a pointer to a struct"));
        };
        let declared = &self.module.structs[*id];
        match declared.fields.get(field as usize) {
            Some((_, ty)) => self.pointer_result(value, space, ty),
            None => Err(Box::new(Fault::FieldRange {
                field,
                name: declared.name.clone(),
                fields: declared.fields.len(),
            })),
        }
    }

    /// Checks what atomic operations share (`None` is `compare_exchange`), and gives the element
    /// type.
    fn atomic(
        &self,
        op: Option<AtomicOp>,
        floats: bool,
        ptr: Value,
        index: Value,
    ) -> Check<&'a Type> {
        let (space, element) = self.expect_pointer("the pointer", ptr)?;
        self.expect_index("the index", index)?;
        let refuse = |why| {
            Err(Box::new(Fault::Atomic {
                op: match op {
                    Some(op) => format!("atomic {}", op.keyword()),
                    None => "compare_exchange".to_owned(),
                },
                element: self.show(element),
                space: space.keyword(),
                why,
            }))
        };
        if !matches!(space, Space::Global | Space::Local) {
            return refuse("other work-items see global and local memory only");
        }
        let wide = |dtype: &DType| dtype.bits() >= 32;
        match element {
            Type::Scalar(dtype) if dtype.is_int() && wide(dtype) => {}
            Type::Scalar(dtype) if floats && dtype.is_float() && wide(dtype) => {}
            _ if floats => return refuse("it takes integers and floats of 32 and 64 bits"),
            _ => return refuse("it takes integers of 32 and 64 bits"),
        }
        self.expect_readable(ptr)?;
        self.expect_writable(ptr)?;
        Ok(element)
    }

    // Tiles.

    fn tile_result(&self, value: Value, ty: &Type) -> Check<TileType> {
        match ty {
            Type::Tile(tile) => Ok(*tile),
            _ => Err(self.mismatch("the result", value, "a tile")),
        }
    }

    /// Checks the memory that a tile of this dtype is read from or written to.
    pub(super) fn tile_memory(
        &self,
        ptr: Value,
        index: Value,
        stride: Value,
        dtype: DType,
    ) -> Check {
        match self.expect_pointer("the pointer", ptr)? {
            (_, Type::Scalar(of)) if *of == dtype => {}
            _ => return Err(self.mismatch("the pointer", ptr, format!("a pointer to {dtype}"))),
        }
        self.expect_index("the index", index)?;
        self.expect_index("the stride", stride)
    }

    fn tile_mma(&self, left: Value, right: Value, accumulator: Value) -> Check {
        let tile = |what, value| match self.used(value)? {
            Type::Tile(tile) => Ok(*tile),
            _ => Err(self.mismatch(what, value, "a tile")),
        };
        let l = tile("the left operand", left)?;
        let r = tile("the right operand", right)?;
        let a = tile("the accumulator", accumulator)?;
        let roles = (l.role, r.role, a.role);
        let why = if roles != (TileRole::Left, TileRole::Right, TileRole::Accumulator) {
            "their roles must be left, right and accumulator"
        } else if l.cols != r.rows || l.rows != a.rows || r.cols != a.cols {
            "their shapes must be m x k, k x n and m x n"
        } else if l.dtype != r.dtype {
            "left and right must have one dtype"
        } else if a.dtype.is_float() != l.dtype.is_float() || a.dtype.bits() < l.dtype.bits() {
            "the accumulator must be of the same kind and at least as wide"
        } else if a.dtype.kind() == Kind::Bool {
            "booleans have no product"
        } else {
            return Ok(());
        };
        let show = |tile| self.show(&Type::Tile(tile));
        Err(Box::new(Fault::Tiles {
            left: show(l),
            right: show(r),
            accumulator: show(a),
            why,
        }))
    }
}

fn expect_lane(lane: u32, lanes: u64) -> Check {
    if u64::from(lane) < lanes {
        Ok(())
    } else {
        Err(Box::new(Fault::LaneRange { lane, lanes }))
    }
}

fn bitcast(from: DType, to: DType) -> Check {
    let why = if from.bits() != to.bits() {
        "the widths differ"
    } else if to == DType::Bool && from != DType::Bool {
        "a bool holds only 0 or 1"
    } else {
        return Ok(());
    };
    Err(Box::new(Fault::Bitcast {
        from: from.to_string(),
        to: to.to_string(),
        why,
    }))
}
