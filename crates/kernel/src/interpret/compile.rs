//! From the IR to the flat form.

use super::code::{Access, Code, Fast, Function, LocalSite, Pc, Slot, TileMma, writable};
use super::layout::Layout;
use super::{InterpretError, Program};
use crate::ir::{
    AtomicOp, Block, Function as Source, Inst, LoopKind, Module, Space, Stmt, TileType, Type, Value,
};
use loopwright_ops::{DType, Op, can_bitcast};

/// Slots that one frame may take: 512 MiB, far beyond any real function.
const MOST_SLOTS: u32 = 1 << 26;

/// Compiles every function of a module.
pub(super) fn compile(module: &Module) -> Result<Program, InterpretError> {
    let mut locals = Vec::new();
    let mut functions = Vec::with_capacity(module.functions.len());
    for source in &module.functions {
        let mut compiler = Compiler::new(module, source, &mut locals)?;
        compiler.block(&source.body)?;
        compiler.code.push(Code::Return { src: 0, count: 0 });
        functions.push(compiler.finish());
    }
    let has_barriers = functions
        .iter()
        .flat_map(|function: &Function| &function.code)
        .any(|code| matches!(code, Code::Barrier));
    let kernels = module
        .functions
        .iter()
        .map(|source| {
            (
                source.kind,
                source
                    .params
                    .iter()
                    .map(|param| {
                        let info = &source.values[param.value.0 as usize];
                        (info.name.clone(), info.ty.clone())
                    })
                    .collect(),
            )
        })
        .collect();
    Ok(Program {
        functions,
        kernels,
        locals,
        has_barriers,
    })
}

/// The jumps out of a loop that wait for their targets.
#[derive(Default)]
struct Jumps {
    breaks: Vec<usize>,
    continues: Vec<usize>,
}

struct Compiler<'m> {
    module: &'m Module,
    source: &'m Source,
    locals: &'m mut Vec<LocalSite>,
    code: Vec<Code>,
    /// Where each value's slots begin.
    place: Vec<Slot>,
    slots: u32,
    privates: u32,
    loops: Vec<Jumps>,
}

impl<'m> Compiler<'m> {
    fn new(
        module: &'m Module,
        source: &'m Source,
        locals: &'m mut Vec<LocalSite>,
    ) -> Result<Self, InterpretError> {
        let mut compiler = Compiler {
            module,
            source,
            locals,
            code: Vec::new(),
            place: Vec::with_capacity(source.values.len()),
            slots: 0,
            privates: 0,
            loops: Vec::new(),
        };
        for info in &source.values {
            let count = slot_count(&info.ty);
            compiler.place.push(compiler.slots);
            compiler.slots = compiler
                .slots
                .checked_add(count)
                .filter(|&slots| slots <= MOST_SLOTS)
                .ok_or_else(|| compiler.malformed("its values take too much memory".into()))?;
        }
        for param in &source.params {
            compiler.slot(param.value)?;
        }
        Ok(compiler)
    }

    fn finish(self) -> Function {
        let names = self.source.values.iter().enumerate();
        Function {
            name: self.source.name.clone(),
            code: self.code,
            slots: self.slots,
            privates: self.privates,
            params: self
                .source
                .params
                .iter()
                .map(|param| self.place[param.value.0 as usize])
                .collect(),
            names: names
                .map(|(number, info)| match info.name.as_str() {
                    "" => number.to_string(),
                    name => name.to_owned(),
                })
                .collect(),
        }
    }

    fn malformed(&self, detail: String) -> InterpretError {
        InterpretError::Malformed {
            function: self.source.name.clone(),
            detail,
        }
    }

    fn slot(&self, value: Value) -> Result<Slot, InterpretError> {
        self.place
            .get(value.0 as usize)
            .copied()
            .ok_or_else(|| self.malformed(format!("value {} does not exist", value.0)))
    }

    fn ty(&self, value: Value) -> Result<&'m Type, InterpretError> {
        match self.source.values.get(value.0 as usize) {
            Some(info) => Ok(&info.ty),
            None => Err(self.malformed(format!("value {} does not exist", value.0))),
        }
    }

    /// The slot of a scalar of that dtype.
    fn scalar(&self, value: Value, dtype: DType) -> Result<Slot, InterpretError> {
        match self.ty(value)? {
            Type::Scalar(got) if *got == dtype => self.slot(value),
            other => Err(self.malformed(format!(
                "value {} must be of type {dtype}, not {other:?}",
                value.0
            ))),
        }
    }

    /// The dtype and lanes of a scalar or vector.
    fn lanes(&self, value: Value) -> Result<(DType, u32), InterpretError> {
        let ty = self.ty(value)?;
        match ty.dtype() {
            Some(dtype) => Ok((dtype, ty.lanes())),
            None => Err(self.malformed(format!(
                "value {} must be a scalar or vector, not {ty:?}",
                value.0
            ))),
        }
    }

    /// The same, for a value that must have this many lanes.
    fn same_lanes(&self, value: Value, lanes: u32) -> Result<DType, InterpretError> {
        match self.lanes(value)? {
            (dtype, got) if got == lanes => Ok(dtype),
            (_, got) => Err(self.malformed(format!(
                "value {} must have {lanes} lanes, not {got}",
                value.0
            ))),
        }
    }

    fn tile(&self, value: Value) -> Result<TileType, InterpretError> {
        match self.ty(value)? {
            Type::Tile(tile) => Ok(*tile),
            other => {
                Err(self.malformed(format!("value {} must be a tile, not {other:?}", value.0)))
            }
        }
    }

    /// Space and pointee of a pointer.
    fn pointer(&self, value: Value) -> Result<(Space, &'m Type), InterpretError> {
        match self.ty(value)? {
            Type::Pointer(space, pointee) => Ok((*space, pointee)),
            other => Err(self.malformed(format!(
                "value {} must be a pointer, not {other:?}",
                value.0
            ))),
        }
    }

    fn layout(&self, ty: &Type) -> Result<Layout, InterpretError> {
        Layout::of(self.module, ty)
            .ok_or_else(|| self.malformed(format!("{ty:?} cannot lie in memory")))
    }

    /// An access through `ptr` to elements of `ty`.
    fn access(&self, ptr: Value, index: Value, ty: &Type) -> Result<Access, InterpretError> {
        let (_, pointee) = self.pointer(ptr)?;
        let fits = match (pointee, ty) {
            (Type::Scalar(a), Type::Vector(b, _)) => a == b,
            (a, b) => a == b,
        };
        let (dtype, lanes) = match ty {
            Type::Scalar(dtype) => (*dtype, 1),
            Type::Vector(dtype, lanes) => (*dtype, *lanes),
            Type::Tile(tile) => (tile.dtype, slot_count(ty)),
            Type::Pointer(..) => (DType::U64, 1),
            Type::Array(..) | Type::Struct(_) => (DType::U64, 0),
        };
        if !fits || lanes == 0 {
            return Err(self.malformed(format!(
                "value {} points at {pointee:?}, which cannot be accessed as {ty:?}",
                ptr.0
            )));
        }
        Ok(Access {
            ptr: self.slot(ptr)?,
            index: self.scalar(index, DType::I64)?,
            stride: self.layout(pointee)?.size,
            dtype,
            lanes,
            pointer: matches!(ty, Type::Pointer(..)),
            name: ptr,
        })
    }

    fn written(&self, access: Access) -> Result<Access, InterpretError> {
        let (space, _) = self.pointer(access.name)?;
        if writable(space) {
            Ok(access)
        } else {
            Err(self.malformed(format!(
                "value {} points at constant memory, which is only read",
                access.name.0
            )))
        }
    }

    fn pc(&self) -> Pc {
        self.code.len() as Pc
    }

    /// Sets the target of a jump emitted before.
    fn land(&mut self, at: usize) {
        let here = self.pc();
        match &mut self.code[at] {
            Code::Jump(to) | Code::JumpUnless { to, .. } | Code::LoopEnter { exit: to, .. } => {
                *to = here;
            }
            other => unreachable!("only jumps wait for a target, not {other:?}"),
        }
    }

    fn jump(&mut self) -> usize {
        self.code.push(Code::Jump(0));
        self.code.len() - 1
    }

    fn block(&mut self, block: &'m Block) -> Result<(), InterpretError> {
        block.iter().try_for_each(|stmt| self.stmt(stmt))
    }

    fn stmt(&mut self, stmt: &'m Stmt) -> Result<(), InterpretError> {
        match stmt {
            Stmt::Let(value, inst) => self.inst(*value, inst)?,
            Stmt::Store { ptr, index, value } => {
                let to = self.access(*ptr, *index, self.ty(*value)?)?;
                self.code.push(Code::Store {
                    src: self.slot(*value)?,
                    to: self.written(to)?,
                });
            }
            Stmt::Call(function, args) => self.call(function.0, args, None)?,
            Stmt::For {
                var,
                start,
                end,
                step,
                kind,
                body,
            } => {
                let reversed = *kind == LoopKind::Parallel;
                let [var_slot, start, step] =
                    [*var, *start, *step].map(|v| self.scalar(v, DType::I64));
                let (var_slot, start, step) = (var_slot?, start?, step?);
                let end = self.scalar(*end, DType::I64)?;
                let remaining = self.slots;
                self.slots += 1;
                let enter = self.code.len();
                self.code.push(Code::LoopEnter {
                    var: var_slot,
                    start,
                    end,
                    step,
                    remaining,
                    reversed,
                    exit: 0,
                    name: *var,
                });
                let top = self.pc();
                self.loops.push(Jumps::default());
                self.block(body)?;
                let jumps = self.loops.pop().unwrap_or_default();
                for at in jumps.continues {
                    self.land(at);
                }
                self.code.push(Code::LoopNext {
                    var: var_slot,
                    step,
                    remaining,
                    reversed,
                    body: top,
                });
                self.land(enter);
                for at in jumps.breaks {
                    self.land(at);
                }
            }
            Stmt::While { head, cond, body } => {
                let top = self.pc();
                self.loops.push(Jumps::default());
                self.block(head)?;
                let test = self.code.len();
                self.code.push(Code::JumpUnless {
                    cond: self.scalar(*cond, DType::Bool)?,
                    to: 0,
                });
                self.block(body)?;
                let jumps = self.loops.pop().unwrap_or_default();
                for at in jumps.continues {
                    self.land(at);
                }
                self.code.push(Code::Jump(top));
                self.land(test);
                for at in jumps.breaks {
                    self.land(at);
                }
            }
            Stmt::If {
                cond,
                then,
                otherwise,
            } => {
                let test = self.code.len();
                self.code.push(Code::JumpUnless {
                    cond: self.scalar(*cond, DType::Bool)?,
                    to: 0,
                });
                self.block(then)?;
                if otherwise.is_empty() {
                    self.land(test);
                } else {
                    let done = self.jump();
                    self.land(test);
                    self.block(otherwise)?;
                    self.land(done);
                }
            }
            Stmt::Break | Stmt::Continue => {
                let at = self.jump();
                let Some(jumps) = self.loops.last_mut() else {
                    return Err(self.malformed("`break` or `continue` outside of a loop".into()));
                };
                match stmt {
                    Stmt::Break => jumps.breaks.push(at),
                    _ => jumps.continues.push(at),
                }
            }
            Stmt::Return(None) => self.code.push(Code::Return { src: 0, count: 0 }),
            Stmt::Return(Some(value)) => {
                let ty = self.ty(*value)?;
                if self.source.result.as_ref() != Some(ty) {
                    return Err(self.malformed(format!(
                        "returns {ty:?} where {:?} is declared",
                        self.source.result
                    )));
                }
                self.code.push(Code::Return {
                    src: self.slot(*value)?,
                    count: slot_count(ty),
                });
            }
            Stmt::Barrier { .. } => self.code.push(Code::Barrier),
            Stmt::AsyncCopy { dst, src, count } => {
                let (_, pointee) = self.pointer(dst.0)?;
                let to = self.access(dst.0, dst.1, pointee)?;
                self.code.push(Code::AsyncCopy {
                    dst: self.written(to)?,
                    src: self.access(src.0, src.1, pointee)?,
                    count: self.scalar(*count, DType::I64)?,
                });
            }
            // Copies are performed at once, so there is nothing to wait for.
            Stmt::AsyncWait { .. } => {}
            Stmt::TileStore {
                tile,
                ptr,
                index,
                stride,
            } => {
                let ty = self.tile(*tile)?;
                let to = self.access(*ptr, *index, &Type::Scalar(ty.dtype))?;
                self.code.push(Code::TileStore {
                    src: self.slot(*tile)?,
                    to: self.written(to)?,
                    rows: ty.rows,
                    cols: ty.cols,
                    stride: self.scalar(*stride, DType::I64)?,
                });
            }
        }
        Ok(())
    }

    fn call(
        &mut self,
        function: u32,
        args: &[Value],
        dst: Option<Value>,
    ) -> Result<(), InterpretError> {
        let Some(callee) = self.module.functions.get(function as usize) else {
            return Err(self.malformed(format!("calls function {function}, which does not exist")));
        };
        let params: Vec<_> = callee.params.iter().map(|p| callee.ty(p.value)).collect();
        let given = args
            .iter()
            .map(|&arg| self.ty(arg))
            .collect::<Result<Vec<_>, _>>()?;
        let result = dst.map(|dst| self.ty(dst)).transpose()?;
        if params != given || (result.is_some() && result != callee.result.as_ref()) {
            return Err(self.malformed(format!(
                "calls `{}` with arguments or for a result it does not have",
                callee.name
            )));
        }
        let mut slots = Vec::with_capacity(args.len());
        for (&arg, ty) in args.iter().zip(given) {
            slots.push((self.slot(arg)?, slot_count(ty)));
        }
        self.code.push(Code::Call {
            function,
            args: slots.into(),
            dst: dst.map_or(Ok(0), |dst| self.slot(dst))?,
        });
        Ok(())
    }

    fn inst(&mut self, value: Value, inst: &'m Inst) -> Result<(), InterpretError> {
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
                    Type::Struct(id) => self.module.structs.get(id.0 as usize),
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
            Inst::Call(function, args) => return self.call(function.0, args, Some(value)),
            Inst::TileLoad { ptr, index, stride } => {
                let tile = self.tile(value)?;
                Code::TileLoad {
                    dst,
                    from: self.access(*ptr, *index, &Type::Scalar(tile.dtype))?,
                    rows: tile.rows,
                    cols: tile.cols,
                    stride: self.scalar(*stride, DType::I64)?,
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

/// Slots a value of this type takes; what cannot be a value takes one.
fn slot_count(ty: &Type) -> u32 {
    match ty {
        Type::Scalar(_) | Type::Array(..) | Type::Struct(_) => 1,
        Type::Vector(_, lanes) => (*lanes).max(1),
        Type::Pointer(..) => 2,
        Type::Tile(tile) => tile.rows.saturating_mul(tile.cols).max(1),
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
