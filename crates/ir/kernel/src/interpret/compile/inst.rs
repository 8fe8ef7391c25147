//! Instructions.

use super::{Compiler, slot_count};
use crate::interpret::InterpretError;
use crate::interpret::code::{Code, Fast, LocalSite, TileMma};
use crate::interpret::layout::Layout;
use crate::ir::{AtomicOp, Inst, Space, Type, Value};
use loopwright_ops::{DType, Op, can_bitcast};

impl<'m> Compiler<'m> {
    /// Writes the code that computes a value.
    pub(super) fn inst(&mut self, value: Value, inst: &'m Inst) -> Result<(), InterpretError> {
        let dst = self.slot(value)?;
        let ty = self.ty(value)?;
        let source = self.source;
        let wrong = |detail: &str| {
            Err(InterpretError::Malformed {
                function: source.name.clone(),
                detail: format!("value {} is a {ty:?}: {detail}", value.0),
            })
        };
        let code = match inst {
            Inst::Const(scalar) => {
                if ty.dtype() != Some(scalar.dtype()) {
                    return wrong("its constant has another dtype");
                }
                Code::Const {
                    dst,
                    bits: scalar.bits(),
                    lanes: ty.lanes(),
                }
            }
            Inst::Map(op, operands) => {
                let (_, lanes) = self.lanes(value)?;
                let mut dtypes = [DType::Bool; 3];
                let mut args = [0; 3];
                if operands.len() > 3 {
                    return wrong("no op has more than three operands");
                }
                for (at, &operand) in operands.iter().enumerate() {
                    dtypes[at] = self.same_lanes(operand, lanes)?;
                    args[at] = self.slot(operand)?;
                }
                match op.result_dtype(&dtypes[..operands.len()]) {
                    Ok(dtype) if Some(dtype) == ty.dtype() => {}
                    Ok(_) => return wrong("its op gives another dtype"),
                    Err(error) => return wrong(&error.to_string()),
                }
                match fast(*op, dtypes[0]) {
                    Some(op) => Code::Fast {
                        op,
                        dst,
                        left: args[0],
                        right: args[1],
                        lanes,
                    },
                    None => Code::Map {
                        op: *op,
                        dst,
                        args,
                        dtypes,
                        lanes,
                    },
                }
            }
            Inst::Cast(to, src) => {
                let (_, lanes) = self.lanes(value)?;
                let from = self.same_lanes(*src, lanes)?;
                if ty.dtype() != Some(*to) {
                    return wrong("its cast gives another dtype");
                }
                Code::Cast {
                    dst,
                    src: self.slot(*src)?,
                    from,
                    to: *to,
                    lanes,
                }
            }
            Inst::Bitcast(to, src) => {
                let (_, lanes) = self.lanes(value)?;
                let from = self.same_lanes(*src, lanes)?;
                if ty.dtype() != Some(*to) || !can_bitcast(from, *to) {
                    return wrong("it does not have its operand's bits");
                }
                Code::Move {
                    dst,
                    src: self.slot(*src)?,
                    count: lanes,
                }
            }
            Inst::Alloc { space, ty, count } => {
                let bytes = self.layout(ty)?.size.checked_mul(*count);
                let Some(bytes) = bytes.filter(|&bytes| bytes <= 1 << 40) else {
                    return wrong("it takes too much memory");
                };
                match space {
                    Space::Private => {
                        let site = self.privates;
                        self.privates += 1;
                        Code::AllocPrivate { dst, site, bytes }
                    }
                    Space::Local => {
                        self.locals.push(LocalSite { bytes });
                        Code::AllocLocal {
                            dst,
                            site: self.locals.len() as u32 - 1,
                        }
                    }
                    Space::Global | Space::Constant => {
                        return wrong("only private and local memory is allocated");
                    }
                }
            }
            Inst::Load { ptr, index } => Code::Load {
                dst,
                from: self.access(*ptr, *index, ty)?,
            },
            Inst::Offset { ptr, index } => {
                let (_, pointee) = self.pointer(*ptr)?;
                Code::Offset {
                    dst,
                    ptr: self.slot(*ptr)?,
                    index: Some(self.scalar(*index, DType::I64)?),
                    stride: self.layout(pointee)?.size,
                    bytes: 0,
                    name: *ptr,
                }
            }
            Inst::Field { ptr, field } => {
                let (_, pointee) = self.pointer(*ptr)?;
                let fields = match pointee {
                    Type::Struct(id) => self.module.structs.get(*id),
                    _ => None,
                };
                let bytes = fields.and_then(|s| {
                    s.fields.get(*field as usize)?;
                    Layout::field_offset(self.module, &s.fields, *field as usize)
                });
                let Some(bytes) = bytes else {
                    return wrong("there is no such field");
                };
                Code::Offset {
                    dst,
                    ptr: self.slot(*ptr)?,
                    index: None,
                    stride: 0,
                    bytes,
                    name: *ptr,
                }
            }
            Inst::Elements(ptr) => {
                if !matches!(self.pointer(*ptr)?.1, Type::Array(..)) {
                    return wrong("only arrays have elements");
                }
                Code::Move {
                    dst,
                    src: self.slot(*ptr)?,
                    count: 2,
                }
            }
            Inst::Splat(src) => {
                let (dtype, lanes) = self.lanes(value)?;
                Code::Splat {
                    dst,
                    src: self.scalar(*src, dtype)?,
                    lanes,
                }
            }
            Inst::Build(values) => {
                let (dtype, lanes) = self.lanes(value)?;
                if values.len() != lanes as usize {
                    return wrong("it is built from another number of lanes");
                }
                for (at, &src) in values.iter().enumerate() {
                    self.code.push(Code::Move {
                        dst: dst + at as u32,
                        src: self.scalar(src, dtype)?,
                        count: 1,
                    });
                }
                return Ok(());
            }
            Inst::Extract(src, lane) => {
                let (dtype, lanes) = self.lanes(*src)?;
                if *lane >= lanes || *ty != Type::Scalar(dtype) {
                    return wrong("it is no lane of its operand");
                }
                Code::Move {
                    dst,
                    src: self.slot(*src)? + lane,
                    count: 1,
                }
            }
            Inst::Insert(src, lane, scalar) => {
                let (dtype, lanes) = self.lanes(value)?;
                if self.ty(*src)? != ty || *lane >= lanes {
                    return wrong("it is not its operand with a lane replaced");
                }
                let [src, scalar] = [self.slot(*src)?, self.scalar(*scalar, dtype)?];
                self.code.push(Code::Move {
                    dst,
                    src,
                    count: lanes,
                });
                Code::Move {
                    dst: dst + lane,
                    src: scalar,
                    count: 1,
                }
            }
            Inst::Shuffle(left, right, picks) => {
                let (dtype, lanes) = self.lanes(value)?;
                let (left_dtype, left_lanes) = self.lanes(*left)?;
                let (right_dtype, right_lanes) = self.lanes(*right)?;
                if picks.len() != lanes as usize || left_dtype != dtype || right_dtype != dtype {
                    return wrong("it is no shuffle of its operands");
                }
                for (at, &pick) in picks.iter().enumerate() {
                    let src = if pick < left_lanes {
                        self.slot(*left)? + pick
                    } else if pick - left_lanes < right_lanes {
                        self.slot(*right)? + (pick - left_lanes)
                    } else {
                        return wrong("it picks a lane that is not there");
                    };
                    self.code.push(Code::Move {
                        dst: dst + at as u32,
                        src,
                        count: 1,
                    });
                }
                return Ok(());
            }
            Inst::ReduceLanes(op, src) => {
                let (dtype, lanes) = self.lanes(*src)?;
                if *ty != Type::Scalar(dtype) || !op.allows(dtype) {
                    return wrong("its reduction gives another type");
                }
                Code::ReduceLanes {
                    op: *op,
                    dst,
                    src: self.slot(*src)?,
                    dtype,
                    lanes,
                }
            }
            Inst::WorkItem(query, axis) => {
                self.scalar(value, DType::I64)?;
                Code::WorkItem {
                    dst,
                    query: *query,
                    axis: *axis,
                }
            }
            Inst::Atomic {
                op,
                ptr,
                index,
                value: operand,
            } => {
                let at = self.access(*ptr, *index, ty)?;
                let op = combination(*op);
                let dtype = match ty {
                    Type::Scalar(dtype) => *dtype,
                    _ => return wrong("atomics take scalars"),
                };
                if let Some(Err(error)) = op.map(|op| op.result_dtype(&[dtype; 2])) {
                    return wrong(&error.to_string());
                }
                Code::Atomic {
                    op,
                    dst,
                    at: self.written(at)?,
                    value: self.scalar(*operand, dtype)?,
                }
            }
            Inst::CompareExchange {
                ptr,
                index,
                expected,
                value: replacement,
            } => {
                let at = self.access(*ptr, *index, ty)?;
                let dtype = match ty {
                    Type::Scalar(dtype) => *dtype,
                    _ => return wrong("atomics take scalars"),
                };
                Code::CompareExchange {
                    dst,
                    at: self.written(at)?,
                    expected: self.scalar(*expected, dtype)?,
                    value: self.scalar(*replacement, dtype)?,
                }
            }
            Inst::Call(function, args) => return self.call(*function, args, Some(value)),
            Inst::TileLoad {
                ptr,
                index,
                stride,
                interleave,
            } => {
                let tile = self.tile(value)?;
                Code::TileLoad {
                    dst,
                    from: self.access(*ptr, *index, &Type::Scalar(tile.dtype))?,
                    rows: tile.rows,
                    cols: tile.cols,
                    stride: self.scalar(*stride, DType::I64)?,
                    interleave: *interleave,
                }
            }
            Inst::TileSplat(src) => {
                let tile = self.tile(value)?;
                Code::Splat {
                    dst,
                    src: self.scalar(*src, tile.dtype)?,
                    lanes: slot_count(ty),
                }
            }
            Inst::TileMma {
                left,
                right,
                accumulator,
            } => {
                let [l, r, a] = [*left, *right, *accumulator].map(|tile| self.tile(tile));
                let (l, r, a) = (l?, r?, a?);
                if l.rows != a.rows || r.cols != a.cols || l.cols != r.rows || *ty != Type::Tile(a)
                {
                    return wrong("its tiles do not fit");
                }
                Code::TileMma(Box::new(TileMma {
                    dst,
                    left: self.slot(*left)?,
                    right: self.slot(*right)?,
                    accumulator: self.slot(*accumulator)?,
                    rows: a.rows,
                    cols: a.cols,
                    inner: l.cols,
                    left_dtype: l.dtype,
                    right_dtype: r.dtype,
                    dtype: a.dtype,
                }))
            }
        };
        self.code.push(code);
        Ok(())
    }
}

/// The op an atomic combines with; none replaces.
fn combination(op: AtomicOp) -> Option<Op> {
    match op {
        AtomicOp::Add => Some(Op::Add),
        AtomicOp::Min => Some(Op::Min),
        AtomicOp::Max => Some(Op::Max),
        AtomicOp::And => Some(Op::And),
        AtomicOp::Or => Some(Op::Or),
        AtomicOp::Xor => Some(Op::Xor),
        AtomicOp::Exchange => None,
    }
}

/// The direct form of an op, where there is one.
fn fast(op: Op, dtype: DType) -> Option<Fast> {
    Some(match (dtype, op) {
        (DType::I64, Op::Add) => Fast::I64Add,
        (DType::I64, Op::Sub) => Fast::I64Sub,
        (DType::I64, Op::Mul) => Fast::I64Mul,
        (DType::I64, Op::Lt) => Fast::I64Lt,
        (DType::I64, Op::Le) => Fast::I64Le,
        (DType::I64, Op::Eq) => Fast::I64Eq,
        (DType::I64, Op::Ne) => Fast::I64Ne,
        (DType::F32, Op::Add) => Fast::F32Add,
        (DType::F32, Op::Sub) => Fast::F32Sub,
        (DType::F32, Op::Mul) => Fast::F32Mul,
        (DType::F64, Op::Add) => Fast::F64Add,
        (DType::F64, Op::Sub) => Fast::F64Sub,
        (DType::F64, Op::Mul) => Fast::F64Mul,
        _ => return None,
    })
}
