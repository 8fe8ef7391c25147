//! From the IR to the flat form: functions and statements; instructions are in [`inst`].

mod inst;

use super::code::{Access, Code, Function, LocalSite, Pc, Slot, writable};
use super::layout::Layout;
use super::{InterpretError, Program};
use crate::ir::{
    Block, Function as Source, FunctionId, LoopKind, Module, Space, Stmt, TileType, Type, Value,
};
use loopwright_arena::TiVec;
use loopwright_ops::DType;

/// Slots that one frame may take: 512 MiB, far beyond any real function.
const MOST_SLOTS: u32 = 1 << 26;

/// Compiles every function of a module.
pub(super) fn compile(module: &Module) -> Result<Program, InterpretError> {
    let mut locals = Vec::new();
    let mut functions = TiVec::with_capacity(module.functions.len());
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
                        let info = &source.values[param.value];
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
    place: TiVec<Value, Slot>,
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
            place: TiVec::with_capacity(source.values.len()),
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
                .map(|param| self.place[param.value])
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
            .get(value)
            .copied()
            .ok_or_else(|| self.malformed(format!("value {} does not exist", value.0)))
    }

    fn ty(&self, value: Value) -> Result<&'m Type, InterpretError> {
        match self.source.values.get(value) {
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
            Stmt::Call(function, args) => self.call(*function, args, None)?,
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
        function: FunctionId,
        args: &[Value],
        dst: Option<Value>,
    ) -> Result<(), InterpretError> {
        let Some(callee) = self.module.functions.get(function) else {
            return Err(self.malformed(format!(
                "calls function {}, which does not exist",
                function.0
            )));
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
