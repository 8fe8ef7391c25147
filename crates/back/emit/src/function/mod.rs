//! One function: its statements, and which value is written where.
//!
//! A value that is used once is written in the place where it is used, if nothing can happen in
//! between that it would notice: it is pending until then. Values that read memory stop being pending
//! at the next write, call or branch; all others at the latest when their text gets long. Nothing
//! moves into a loop.

mod instruction;
mod parallel;
mod watch;

use crate::Refusal;
use crate::dialect::{Declared, Dialect, LoopHint, Spelled, Structs};
use crate::expression::{Expr, Shape};
use crate::module::linkage;
use crate::names::Names;
use crate::pieces::Pieces;
use crate::syntax::{LoopHead, Pointee};
use crate::uses::Uses;
use loopwright_arena::{TiSlice, TiVec};
use loopwright_kernel::{
    Access, Block, Function, FunctionId, FunctionKind, Inst, LoopKind, Space, Stmt, Type, Value,
};
use loopwright_ops::DType;
use loopwright_threads::interrupt::unwind_if_asked;
use watch::Watch;

/// Longer expressions become variables. This keeps lines readable and, since text is copied from
/// operand to expression, writing linear.
const LONGEST_PENDING: usize = 72;

/// How a function is called from the text.
pub(crate) struct Signature {
    /// Its name.
    pub name: String,
    /// Whether it is handed its work-item.
    pub work_items: bool,
    /// Whether it is handed the runtime, for parallel loops.
    pub runtime: bool,
}

/// A function's text.
pub(crate) struct Written {
    /// Its declaration without the semicolon.
    pub header: String,
    /// Its definition and those of its parallel loops.
    pub text: String,
}

/// Where a value is.
#[derive(Clone)]
enum Place {
    /// Not defined yet.
    Nowhere,
    /// In a variable.
    Named { name: String, shape: Shape },
    /// In text that has not been written yet.
    Pending(Expr),
    /// In text that may be written any number of times.
    Constant(Expr),
    /// The address of this variable.
    Variable(String),
}

pub(crate) struct Writer<'a> {
    function: &'a Function,
    uses: &'a Uses,
    dialect: &'a dyn Dialect,
    structs: Structs<'a>,
    signatures: &'a TiSlice<FunctionId, Signature>,
    own: &'a Signature,
    pieces: &'a mut Pieces,
    names: Names,
    places: TiVec<Value, Place>,
    /// Pointers to what is only read.
    constant: TiVec<Value, bool>,
    noalias: TiVec<Value, bool>,
    /// Pending values that read memory.
    reading: Vec<Value>,
    out: String,
    indent: usize,
    /// The functions of parallel loops.
    outlined: String,
    /// Parallel loops written so far.
    parallels: usize,
    inside_parallel: bool,
}

pub(crate) fn write_function(
    function: &Function,
    uses: &Uses,
    dialect: &dyn Dialect,
    structs: Structs<'_>,
    signatures: &TiSlice<FunctionId, Signature>,
    id: FunctionId,
    pieces: &mut Pieces,
) -> Spelled<Written> {
    let mut writer = Writer {
        function,
        uses,
        dialect,
        structs,
        signatures,
        own: &signatures[id],
        pieces,
        names: Names::default(),
        places: vec![Place::Nowhere; function.values.len()].into(),
        constant: vec![false; function.values.len()].into(),
        noalias: vec![false; function.values.len()].into(),
        reading: Vec::new(),
        out: String::new(),
        indent: 1,
        outlined: String::new(),
        parallels: 0,
        inside_parallel: false,
    };
    let header = writer.header()?;
    writer.block(&function.body)?;
    let mut text = writer.outlined;
    text.push_str(&header);
    text.push_str(" {\n");
    text.push_str(&writer.out);
    text.push_str(&dialect.end());
    text.push_str("\n\n");
    Ok(Written { header, text })
}

impl<'a> Writer<'a> {
    fn header(&mut self) -> Spelled<String> {
        let function = self.function;
        let dialect = self.dialect;
        let mut params = Vec::with_capacity(function.params.len() + 1);
        for param in &function.params {
            let name = self.name(param.value);
            self.constant[param.value] = param.access == Access::Read;
            self.noalias[param.value] = param.noalias;
            self.places[param.value] = Place::Named {
                name,
                shape: Shape::Plain,
            };
            params.push(self.parameter(param.value)?);
        }
        if self.own.work_items {
            params.push(dialect.work_item_parameter(self.pieces)?.to_owned());
        }
        if self.own.runtime {
            params.push(dialect.runtime_parameter().to_owned());
        }
        let result = function.result.as_ref();
        let result = result.map(|ty| variable("", ty, Shape::Plain, self.structs));
        dialect.function(
            linkage(function),
            &self.own.name,
            &params,
            result.as_ref(),
            self.pieces,
        )
    }

    /// What is declared for a value that is held so.
    fn declared<'n>(&self, value: Value, name: &'n str, shape: Shape) -> Declared<'n>
    where
        'a: 'n,
    {
        Declared {
            constant: self.constant[value],
            ..variable(name, self.function.ty(value), shape, self.structs)
        }
    }

    /// What a pointer points to.
    fn pointee(&self, pointer: Value) -> Spelled<Pointee<'a>> {
        let ty = self.function.ty(pointer).pointee();
        let ty = ty.ok_or_else(|| mistyped("a pointer"))?;
        let module = self.structs.module;
        Ok(Pointee { ty, module })
    }

    /// A pointer so many elements further on.
    fn advanced(&mut self, pointer: Value, index: Value) -> Spelled<Expr> {
        let pointee = self.pointee(pointer)?;
        let (pointer, index) = (self.operand(pointer), self.operand(index));
        self.dialect.advanced(&pointer, &index, pointee)
    }

    /// The declaration of a parameter that holds a value which has its name already.
    fn parameter(&mut self, value: Value) -> Spelled<String> {
        let (name, shape) = match &self.places[value] {
            Place::Named { name, shape } => (name.clone(), *shape),
            _ => unreachable!("a parameter's value is held in a variable"),
        };
        let parameter = Declared {
            noalias: self.noalias[value],
            ..self.declared(value, &name, shape)
        };
        self.dialect.parameter(&parameter, self.pieces)
    }

    fn name(&mut self, value: Value) -> String {
        let dialect = self.dialect;
        let wanted = &self.function.values[value].name;
        let reserved = |word: &str| dialect.is_reserved(word);
        if wanted.is_empty() {
            self.names.fresh(&format!("v{}", value.0), reserved)
        } else {
            self.names.fresh(wanted, reserved)
        }
    }

    fn line(&mut self, text: &str) {
        self.begin();
        self.out.push_str(text);
        self.out.push('\n');
    }

    fn begin(&mut self) {
        for _ in 0..self.indent {
            self.out.push_str("    ");
        }
    }

    /// The text of a value where it is used; what was pending is pending no more.
    fn operand(&mut self, value: Value) -> Expr {
        let place = &mut self.places[value];
        match place {
            Place::Named { name, shape } => {
                let ty = self.function.ty(value);
                self.dialect.variable(name, ty).shaped(*shape)
            }
            Place::Constant(expr) => expr.clone(),
            Place::Variable(name) => {
                unreachable!("`{name}` is a variable because its address is not taken")
            }
            Place::Pending(_) => match std::mem::replace(place, Place::Nowhere) {
                Place::Pending(expr) => expr,
                _ => unreachable!("the place was pending"),
            },
            Place::Nowhere => {
                unreachable!("value {} is used before its definition or twice", value.0)
            }
        }
    }

    /// The text of a value held as its type says.
    fn plain_operand(&mut self, value: Value) -> Spelled<Expr> {
        let expr = self.operand(value);
        match (expr.shape, self.function.ty(value)) {
            (Shape::Mask(_), Type::Vector(dtype, lanes)) => {
                self.dialect.plain(*dtype, *lanes, expr, self.pieces)
            }
            _ => Ok(expr),
        }
    }

    fn plain_operands(&mut self, values: &[Value]) -> Spelled<Vec<Expr>> {
        values
            .iter()
            .map(|&value| self.plain_operand(value))
            .collect()
    }

    /// Gives a value a variable and writes its definition.
    fn materialise(&mut self, value: Value, expr: Expr) -> Spelled<()> {
        let name = self.name(value);
        let variable = self.declared(value, &name, expr.shape);
        let text = self.dialect.declared(&variable, Some(&expr), self.pieces)?;
        self.line(&text);
        self.places[value] = Place::Named {
            name,
            shape: expr.shape,
        };
        Ok(())
    }

    /// Writes pending values that read memory, because memory may change now.
    fn settle(&mut self) -> Spelled<()> {
        for value in std::mem::take(&mut self.reading) {
            let place = &mut self.places[value];
            if matches!(place, Place::Pending(_)) {
                let Place::Pending(expr) = std::mem::replace(place, Place::Nowhere) else {
                    unreachable!("the place was pending");
                };
                self.materialise(value, expr)?;
            }
        }
        Ok(())
    }

    /// A value that is text now becomes a variable if the text must not be written twice.
    fn settle_value(&mut self, value: Value) -> Spelled<()> {
        let place = &mut self.places[value];
        if matches!(place, Place::Pending(expr) if expr.reads) {
            let Place::Pending(expr) = std::mem::replace(place, Place::Nowhere) else {
                unreachable!("the place was pending");
            };
            self.materialise(value, expr)?;
        }
        Ok(())
    }

    fn block(&mut self, block: &'a Block) -> Spelled<()> {
        for stmt in block {
            self.stmt(stmt)?;
        }
        Ok(())
    }

    /// A block in its own scope, one step further in. Nothing pending from before it reads memory.
    fn scope(&mut self, block: &'a Block) -> Spelled<()> {
        self.indent += 1;
        self.block(block)?;
        self.reading.clear();
        self.indent -= 1;
        Ok(())
    }

    fn stmt(&mut self, stmt: &'a Stmt) -> Spelled<()> {
        unwind_if_asked();
        match stmt {
            Stmt::Let(value, inst) => self.define(*value, inst)?,
            Stmt::Store { ptr, index, value } => self.store(*ptr, *index, *value)?,
            Stmt::Call(callee, arguments) => {
                let call = self.call(*callee, arguments)?;
                self.settle()?;
                self.line(&self.dialect.evaluated(&call));
            }
            Stmt::For {
                var,
                start,
                end,
                step,
                kind,
                body,
            } => {
                self.settle_value(*end)?;
                self.settle_value(*step)?;
                let outline = *kind == LoopKind::Parallel
                    && self.dialect.parallel_loops()
                    && !self.inside_parallel
                    && matches!(self.function.kind, FunctionKind::Kernel { .. });
                if outline {
                    self.settle_value(*start)?;
                    self.settle()?;
                    self.parallel(*var, *start, *end, *step, body)?;
                } else {
                    let range = [*start, *end, *step].map(|value| self.operand(value));
                    self.settle()?;
                    self.serial(*var, range, *kind, [*start, *end, *step], body)?;
                }
            }
            Stmt::While { head, cond, body } => {
                self.settle()?;
                let before = self.out.len();
                self.line(&self.dialect.while_loop(None));
                let inside = self.out.len();
                self.indent += 1;
                self.block(head)?;
                let condition = self.operand(*cond);
                self.settle()?;
                if self.out.len() == inside {
                    // The head needed no statement of its own.
                    self.out.truncate(before);
                    self.indent -= 1;
                    self.line(&self.dialect.while_loop(Some(&condition)));
                    self.look()?;
                    self.indent += 1;
                } else {
                    self.line(&self.dialect.break_unless(&condition));
                    self.indent -= 1;
                    self.look()?;
                    self.indent += 1;
                }
                self.block(body)?;
                self.reading.clear();
                self.indent -= 1;
                self.line(&self.dialect.end());
            }
            Stmt::If {
                cond,
                then,
                otherwise,
            } => {
                let condition = self.operand(*cond);
                self.settle()?;
                self.line(&self.dialect.if_then(&condition));
                self.scope(then)?;
                if !otherwise.is_empty() {
                    self.line(&self.dialect.otherwise());
                    self.scope(otherwise)?;
                }
                self.line(&self.dialect.end());
            }
            Stmt::Break => self.line(&self.dialect.break_out()),
            Stmt::Continue => self.line(&self.dialect.continue_on()),
            Stmt::Return(value) => {
                if self.inside_parallel {
                    return Err(Refusal(
                        "it returns from inside a parallel loop, whose iterations may run anywhere"
                            .to_owned(),
                    ));
                }
                let value = value.map(|value| self.plain_operand(value));
                let value = value.transpose()?;
                self.line(&self.dialect.return_from(value.as_ref()));
            }
            Stmt::Barrier { local, global } => {
                self.settle()?;
                let text = self.dialect.barrier(*local, *global)?;
                self.line(&text);
            }
            Stmt::AsyncCopy { dst, src, count } => self.copy(*dst, *src, *count)?,
            // Copies are done when they start, so there is nothing to wait for.
            Stmt::AsyncWait { .. } => {}
            Stmt::TileStore {
                tile,
                ptr,
                index,
                stride,
            } => {
                let Type::Tile(ty) = self.function.ty(*tile) else {
                    return Err(mistyped("a tile"));
                };
                let address = self.advanced(*ptr, *index)?;
                let (tile, stride) = (self.operand(*tile), self.operand(*stride));
                self.settle()?;
                let text = self
                    .dialect
                    .tile_store(*ty, &tile, &address, &stride, self.pieces)?;
                self.line(&text);
            }
        }
        Ok(())
    }

    fn store(&mut self, ptr: Value, index: Value, value: Value) -> Spelled<()> {
        let stored = self.plain_operand(value)?;
        if let Place::Variable(name) = &self.places[ptr]
            && self.uses.values[ptr].variable
        {
            let name = name.clone();
            self.settle()?;
            self.line(&self.dialect.assigned(&name, &stored));
            return Ok(());
        }
        let pointee = self.pointee(ptr)?;
        let (pointer, at) = (self.operand(ptr), self.operand(index));
        self.settle()?;
        let text = match (self.function.ty(value), pointee.ty) {
            (Type::Vector(dtype, lanes), Type::Scalar(_)) => {
                let address = self.dialect.advanced(&pointer, &at, pointee)?;
                self.dialect
                    .store_vector(*dtype, *lanes, &address, &stored, self.pieces)?
            }
            _ => self
                .dialect
                .stored(&pointer, &at, &stored, pointee, self.pieces)?,
        };
        self.line(&text);
        Ok(())
    }

    fn copy(&mut self, dst: (Value, Value), src: (Value, Value), count: Value) -> Spelled<()> {
        let pointee = self.pointee(dst.0)?;
        let destination = self.advanced(dst.0, dst.1)?;
        let source = self.advanced(src.0, src.1)?;
        let count = self.operand(count);
        self.settle()?;
        let dialect = self.dialect;
        let index = self
            .names
            .fresh("element", |word| dialect.is_reserved(word));
        let text = dialect.copied([&destination, &source], &count, &index, pointee)?;
        self.line(&text);
        Ok(())
    }

    fn serial(
        &mut self,
        var: Value,
        [start, end, step]: [Expr; 3],
        kind: LoopKind,
        range: [Value; 3],
        body: &'a Block,
    ) -> Spelled<()> {
        let dialect = self.dialect;
        let hint = match kind {
            LoopKind::Serial | LoopKind::Parallel => None,
            LoopKind::Vectorize => dialect.loop_hint(LoopHint::Independent),
            LoopKind::Unroll => dialect.loop_hint(LoopHint::Unroll(self.trip_count(range))),
        };
        let name = self.name(var);
        self.places[var] = Place::Named {
            name: name.clone(),
            shape: Shape::Plain,
        };
        let watch = self.watch(Some(range), body);
        let (first, end) = match watch {
            Watch::Strips(count) => self.open_strips(&name, [&start, &end, &step], count)?,
            Watch::Never | Watch::Each => (start, end),
        };
        if let Some(hint) = hint {
            self.line(&hint);
        }
        self.line(&dialect.for_loop(&LoopHead {
            variable: &name,
            first: &first,
            end: &end,
            step: &step,
        }));
        if watch == Watch::Each {
            self.look()?;
        }
        self.scope(body)?;
        self.line(&dialect.end());
        if let Watch::Strips(_) = watch {
            self.indent -= 1;
            self.line(&dialect.end());
        }
        Ok(())
    }

    /// How often a loop with constant bounds runs.
    fn trip_count(&self, range: [Value; 3]) -> Option<u64> {
        let [start, end, step] = range.map(|value| {
            self.uses.values[value]
                .constant
                .and_then(|scalar| scalar.as_i64())
        });
        let (span, step) = (end?.checked_sub(start?)?, step?);
        u64::try_from(span.checked_add(step.checked_sub(1)?)? / step.max(1)).ok()
    }

    fn call(&mut self, callee: FunctionId, arguments: &[Value]) -> Spelled<Expr> {
        let mut arguments = self.plain_operands(arguments)?;
        let signature = &self.signatures[callee];
        if signature.work_items {
            arguments.push(Expr::primary(self.dialect.work_item_argument()));
        }
        Ok(self.dialect.call(&signature.name, &arguments))
    }

    fn define(&mut self, value: Value, inst: &'a Inst) -> Spelled<()> {
        let used = &self.uses.values[value];
        match inst {
            Inst::Const(scalar) => {
                let lanes = self.function.ty(value).lanes();
                let expr = self.dialect.constant(*scalar, lanes, self.pieces)?;
                self.places[value] = Place::Constant(expr);
            }
            Inst::Alloc { space, ty, count } => self.alloc(value, *space, ty, *count)?,
            Inst::Call(callee, arguments) => {
                let call = self.call(*callee, arguments)?;
                self.effect(value, call)?;
            }
            Inst::Atomic {
                op,
                ptr,
                index,
                value: operand,
            } => {
                let dtype = self.dtype(*operand)?;
                let address = self.advanced(*ptr, *index)?;
                let operand = self.operand(*operand);
                let dialect = self.dialect;
                let expr = dialect.atomic(*op, dtype, &address, &operand, self.pieces)?;
                self.effect(value, expr)?;
            }
            Inst::CompareExchange {
                ptr,
                index,
                expected,
                value: operand,
            } => {
                let dtype = self.dtype(*operand)?;
                let address = self.advanced(*ptr, *index)?;
                let expected = self.operand(*expected);
                let operand = self.operand(*operand);
                let dialect = self.dialect;
                let expr =
                    dialect.compare_exchange(dtype, &address, &expected, &operand, self.pieces)?;
                self.effect(value, expr)?;
            }
            // Nothing else has an effect, so what is not used need not be computed.
            _ if used.count == 0 => {}
            _ => {
                let expr = self.expression(value, inst)?;
                let same_loop = used.defined == used.used;
                if used.count == 1 && same_loop && expr.len() <= LONGEST_PENDING {
                    if expr.reads {
                        self.reading.push(value);
                    }
                    self.places[value] = Place::Pending(expr);
                } else {
                    self.materialise(value, expr)?;
                }
            }
        }
        Ok(())
    }

    /// Defines a value by an expression that does something, here and now.
    fn effect(&mut self, value: Value, expr: Expr) -> Spelled<()> {
        self.settle()?;
        if self.uses.values[value].count == 0 {
            self.line(&self.dialect.evaluated(&expr));
            Ok(())
        } else {
            self.materialise(value, expr)
        }
    }

    fn alloc(&mut self, value: Value, space: Space, ty: &Type, count: u64) -> Spelled<()> {
        let name = self.name(value);
        if self.uses.values[value].variable && space == Space::Private {
            let held = variable(&name, ty, Shape::Plain, self.structs);
            let text = self.dialect.declared(&held, None, self.pieces)?;
            self.line(&text);
            self.places[value] = Place::Variable(name);
        } else {
            let element = variable(&name, ty, Shape::Plain, self.structs);
            let text = self.dialect.array(&element, space, count, self.pieces)?;
            self.line(&text);
            self.places[value] = Place::Named {
                name,
                shape: Shape::Plain,
            };
        }
        Ok(())
    }

    fn dtype(&self, value: Value) -> Spelled<DType> {
        self.function
            .ty(value)
            .dtype()
            .ok_or_else(|| mistyped("a scalar or vector"))
    }
}

/// A module that was not validated.
fn mistyped(expected: &str) -> Refusal {
    Refusal(format!(
        "an operand is not {expected}; the module must be validated first"
    ))
}

/// What is declared for a variable of a type.
fn variable<'a>(name: &'a str, ty: &'a Type, shape: Shape, structs: Structs<'a>) -> Declared<'a> {
    Declared {
        ty,
        name,
        shape,
        constant: false,
        noalias: false,
        structs,
    }
}
