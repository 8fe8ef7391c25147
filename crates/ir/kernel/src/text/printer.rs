//! From modules to text.

use super::labels::{Labels, write_name, write_struct_name};
use crate::ir::{
    Access, Block, Function, FunctionId, FunctionKind, Inst, Module, Param, Stmt, StructType, Type,
    Value,
};
use std::fmt::{self, Write as _};

/// The module's text; see [the text form](super).
pub fn print(module: &Module) -> String {
    let mut out = String::from("loopwright kernel 1\n");
    for declared in &module.structs {
        out.push('\n');
        Printer::new(module, &mut out, None).declare_struct(declared);
    }
    for function in &module.functions {
        out.push('\n');
        let labels = Labels::new(function);
        Printer::new(module, &mut out, Some((function, &labels))).function();
    }
    out
}

impl fmt::Display for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&print(self))
    }
}

/// A type as the text form shows it.
pub(crate) fn type_text(module: &Module, ty: &Type) -> String {
    let mut out = String::new();
    Printer::new(module, &mut out, None).ty(ty);
    out
}

/// The first line of a statement, without its blocks.
pub(crate) fn statement_line(module: &Module, function: &Function, stmt: &Stmt) -> String {
    let mut out = String::new();
    let labels = Labels::new(function);
    let mut printer = Printer::new(module, &mut out, Some((function, &labels)));
    printer.blocks = false;
    printer.statement(stmt);
    out.trim().trim_end_matches('{').trim_end().to_owned()
}

struct Printer<'a> {
    module: &'a Module,
    out: &'a mut String,
    function: Option<(&'a Function, &'a Labels<'a>)>,
    depth: usize,
    /// Whether to show the statements of blocks.
    blocks: bool,
}

impl<'a> Printer<'a> {
    fn new(
        module: &'a Module,
        out: &'a mut String,
        function: Option<(&'a Function, &'a Labels<'a>)>,
    ) -> Printer<'a> {
        Printer {
            module,
            out,
            function,
            depth: 0,
            blocks: true,
        }
    }

    fn put(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn show(&mut self, shown: impl fmt::Display) {
        // Infallible: writing to a string.
        let _ = write!(self.out, "{shown}");
    }

    fn declare_struct(&mut self, declared: &StructType) {
        self.put("struct ");
        write_struct_name(self.out, &declared.name);
        self.put(" {");
        for (index, (name, ty)) in declared.fields.iter().enumerate() {
            self.put(if index == 0 { " " } else { ", " });
            write_name(self.out, name);
            self.put(": ");
            self.ty(ty);
        }
        self.put(if declared.fields.is_empty() {
            "}\n"
        } else {
            " }\n"
        });
    }

    fn function(&mut self) {
        let Some((function, _)) = self.function else {
            return;
        };
        match function.kind {
            FunctionKind::Kernel { group: None } => self.put("kernel @"),
            FunctionKind::Kernel {
                group: Some([x, y, z]),
            } => {
                self.show(format_args!("kernel group({x}, {y}, {z}) @"));
            }
            FunctionKind::Device => self.put("device fn @"),
        }
        write_name(self.out, &function.name);
        self.put("(");
        for (index, param) in function.params.iter().enumerate() {
            if index > 0 {
                self.put(", ");
            }
            self.param(param);
        }
        self.put(")");
        if let Some(result) = &function.result {
            self.put(" -> ");
            self.ty(result);
        }
        self.put(" ");
        self.block(&function.body);
        self.put("\n");
    }

    fn param(&mut self, param: &Param) {
        self.value(param.value);
        self.put(": ");
        let pointer = self
            .type_of(param.value)
            .is_some_and(|t| t.pointee().is_some());
        // What is usual for the type is left out: scalars are read and alias nothing.
        if pointer || param.access != Access::Read {
            self.put(param.access.keyword());
            self.put(" ");
        }
        if param.noalias {
            self.put("noalias ");
        }
        self.type_of_value(param.value);
    }

    fn ty(&mut self, ty: &Type) {
        match ty {
            Type::Scalar(dtype) => self.put(dtype.name()),
            Type::Vector(dtype, lanes) => self.show(format_args!("{dtype}x{lanes}")),
            Type::Pointer(space, pointee) => {
                self.show(format_args!("ptr<{}, ", space.keyword()));
                self.ty(pointee);
                self.put(">");
            }
            Type::Array(element, count) => {
                self.put("array<");
                self.ty(element);
                self.show(format_args!(", {count}>"));
            }
            Type::Struct(id) => match self.module.structs.get(*id) {
                Some(declared) => write_struct_name(self.out, &declared.name),
                None => self.show(format_args!("\"struct {}\"", id.0)),
            },
            Type::Tile(tile) => self.show(format_args!(
                "tile<{}, {}, {}, {}>",
                tile.role.keyword(),
                tile.dtype,
                tile.rows,
                tile.cols
            )),
        }
    }

    fn type_of(&self, value: Value) -> Option<&'a Type> {
        let (function, _) = self.function?;
        function.values.get(value).map(|info| &info.ty)
    }

    fn type_of_value(&mut self, value: Value) {
        if let Some(ty) = self.type_of(value) {
            self.ty(ty);
        }
    }

    fn value(&mut self, value: Value) {
        if let Some((_, labels)) = self.function {
            labels.write(self.out, value);
        }
    }

    /// `%v: TYPE`.
    fn definition(&mut self, value: Value) {
        self.value(value);
        self.put(": ");
        self.type_of_value(value);
    }

    /// `word %a, %b`.
    fn list(&mut self, word: &str, values: &[Value]) {
        self.put(word);
        for (index, value) in values.iter().enumerate() {
            self.put(if index == 0 { " " } else { ", " });
            self.value(*value);
        }
    }

    /// `%p[%i]`.
    fn element(&mut self, ptr: Value, index: Value) {
        self.value(ptr);
        self.put("[");
        self.value(index);
        self.put("]");
    }

    fn call(&mut self, function: FunctionId, arguments: &[Value]) {
        self.put("call @");
        match self.module.functions.get(function) {
            Some(function) => write_name(self.out, &function.name),
            None => self.show(format_args!("\"function {}\"", function.0)),
        }
        self.put("(");
        for (index, argument) in arguments.iter().enumerate() {
            if index > 0 {
                self.put(", ");
            }
            self.value(*argument);
        }
        self.put(")");
    }

    fn indent(&mut self) {
        for _ in 0..self.depth {
            self.out.push_str("  ");
        }
    }

    /// The block in braces, without a line break after it.
    fn block(&mut self, block: &Block) {
        self.put("{");
        if !self.blocks {
            return;
        }
        self.put("\n");
        self.depth += 1;
        for stmt in block {
            self.indent();
            self.statement(stmt);
            self.put("\n");
        }
        self.depth -= 1;
        self.indent();
        self.put("}");
    }

    fn statement(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Let(value, inst) => {
                self.definition(*value);
                self.put(" = ");
                self.inst(inst);
            }
            Stmt::Store { ptr, index, value } => {
                self.put("store ");
                self.element(*ptr, *index);
                self.list(",", &[*value]);
            }
            Stmt::Call(function, arguments) => self.call(*function, arguments),
            Stmt::For {
                var,
                start,
                end,
                step,
                kind,
                body,
            } => {
                self.put("for ");
                self.definition(*var);
                self.list(" =", &[*start]);
                self.list(" ..", &[*end]);
                self.list(" step", &[*step]);
                self.show(format_args!(" {} ", kind.keyword()));
                self.block(body);
            }
            Stmt::While { head, cond, body } => {
                if self.blocks {
                    self.put("while ");
                    self.block(head);
                    self.list(" cond", &[*cond]);
                } else {
                    self.list("while { ... } cond", &[*cond]);
                }
                self.put(" ");
                self.block(body);
            }
            Stmt::If {
                cond,
                then,
                otherwise,
            } => {
                self.list("if", &[*cond]);
                self.put(" ");
                self.block(then);
                if self.blocks && !otherwise.is_empty() {
                    self.put(" else ");
                    self.block(otherwise);
                }
            }
            Stmt::Break => self.put("break"),
            Stmt::Continue => self.put("continue"),
            Stmt::Return(value) => self.list("return", value.as_slice()),
            Stmt::Barrier { local, global } => {
                self.put("barrier");
                self.put(if *local { " local" } else { "" });
                self.put(if *global { " global" } else { "" });
            }
            Stmt::AsyncCopy { dst, src, count } => {
                self.put("async_copy ");
                self.element(dst.0, dst.1);
                self.put(", ");
                self.element(src.0, src.1);
                self.list(",", &[*count]);
            }
            Stmt::AsyncWait { pending } => self.show(format_args!("async_wait {pending}")),
            Stmt::TileStore {
                tile,
                ptr,
                index,
                stride,
            } => {
                self.put("tile_store ");
                self.element(*ptr, *index);
                self.list(" stride", &[*stride, *tile]);
            }
        }
    }

    fn inst(&mut self, inst: &Inst) {
        match inst {
            Inst::Const(scalar) => self.show(format_args!("const {scalar}")),
            Inst::Map(op, operands) => self.list(op.name(), operands),
            Inst::Cast(_, value) => self.list("cast", &[*value]),
            Inst::Bitcast(_, value) => self.list("bitcast", &[*value]),
            Inst::Alloc { space, ty, count } => {
                self.show(format_args!("alloc {} ", space.keyword()));
                self.ty(ty);
                self.show(format_args!(" x {count}"));
            }
            Inst::Load { ptr, index } => {
                self.put("load ");
                self.element(*ptr, *index);
            }
            Inst::Offset { ptr, index } => {
                self.put("offset ");
                self.element(*ptr, *index);
            }
            Inst::Field { ptr, field } => {
                self.list("field", &[*ptr]);
                self.put(", ");
                self.field(*ptr, *field);
            }
            Inst::Elements(ptr) => self.list("elements", &[*ptr]),
            Inst::Splat(value) => self.list("splat", &[*value]),
            Inst::Build(values) => self.list("build", values),
            Inst::Extract(vector, lane) => {
                self.list("extract", &[*vector]);
                self.show(format_args!(", {lane}"));
            }
            Inst::Insert(vector, lane, scalar) => {
                self.list("insert", &[*vector]);
                self.show(format_args!(", {lane}"));
                self.list(",", &[*scalar]);
            }
            Inst::Shuffle(left, right, lanes) => {
                self.list("shuffle", &[*left, *right]);
                self.put(", [");
                for (index, lane) in lanes.iter().enumerate() {
                    self.put(if index == 0 { "" } else { ", " });
                    self.show(lane);
                }
                self.put("]");
            }
            Inst::ReduceLanes(op, vector) => {
                self.show(format_args!("reduce {op}"));
                self.list("", &[*vector]);
            }
            Inst::WorkItem(query, axis) => {
                self.show(format_args!("{} {axis}", query.keyword()));
            }
            Inst::Atomic {
                op,
                ptr,
                index,
                value,
            } => {
                self.show(format_args!("atomic {} ", op.keyword()));
                self.element(*ptr, *index);
                self.list(",", &[*value]);
            }
            Inst::CompareExchange {
                ptr,
                index,
                expected,
                value,
            } => {
                self.put("compare_exchange ");
                self.element(*ptr, *index);
                self.list(",", &[*expected, *value]);
            }
            Inst::Call(function, arguments) => self.call(*function, arguments),
            Inst::TileLoad {
                ptr,
                index,
                stride,
                interleave,
            } => {
                self.put("tile_load ");
                self.element(*ptr, *index);
                self.list(" stride", &[*stride]);
                if *interleave != 1 {
                    self.show(format_args!(" interleave {interleave}"));
                }
            }
            Inst::TileSplat(value) => self.list("tile_splat", &[*value]),
            Inst::TileMma {
                left,
                right,
                accumulator,
            } => self.list("tile_mma", &[*left, *right, *accumulator]),
        }
    }

    /// The field's name, or its number where the name does not tell.
    fn field(&mut self, ptr: Value, field: u32) {
        let fields = match self.type_of(ptr).and_then(Type::pointee) {
            Some(Type::Struct(id)) => match self.module.structs.get(*id) {
                Some(declared) => declared.fields.as_slice(),
                None => &[],
            },
            _ => &[],
        };
        match fields.get(field as usize) {
            Some((name, _)) => write_name(self.out, name),
            None => self.show(field),
        }
    }
}
