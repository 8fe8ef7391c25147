//! JavaScript as a dialect of the emitter: a language without pointers and types, and with two kinds of numbers.
//!
//! Integers of 64 bits are `BigInt`s, everything else is a number. Memory is a `DataView`, so a pointer is two
//! variables, `p` and `p$at`: the view and the byte in it. Refused are vectors, narrow floats, the functions of
//! C's mathematics library (the engine's have other last bits), atomics, barriers and tiles.

use super::ops;
use loopwright_emit::{
    Declared, Dialect, EntryKernel, Expr, Field, Linkage, LoopHead, Pieces, Pointee, Precedence,
    Refusal, Shape, Spelled, Structs, Syntax,
};
use loopwright_kernel::{Space, StructId, TileType, Type, WorkItem};
use loopwright_ops::{DType, Kind, Op, Scalar};
use std::slice::from_ref;

/// ECMAScript 2021, as a function body that defines the kernels.
#[derive(Clone, Copy, Debug, Default)]
pub struct JavaScript;

pub(super) fn refused<T>(what: impl Into<String>) -> Spelled<T> {
    Err(Refusal(what.into()))
}

fn vector<T>() -> Spelled<T> {
    refused("it has vectors, and JavaScript has none")
}

/// Whether a value is a `BigInt`.
pub(super) fn big(dtype: DType) -> bool {
    dtype.is_int() && dtype.bits() == 64
}

/// What the accessors of a `DataView` call the dtype.
pub(super) fn view(dtype: DType) -> Spelled<&'static str> {
    Ok(match dtype {
        DType::Bool | DType::U8 => "Uint8",
        DType::I8 => "Int8",
        DType::I16 => "Int16",
        DType::U16 => "Uint16",
        DType::I32 => "Int32",
        DType::U32 => "Uint32",
        DType::I64 => "BigInt64",
        DType::U64 => "BigUint64",
        DType::F32 => "Float32",
        DType::F64 => "Float64",
        DType::F8E4M3 | DType::F8E5M2 | DType::F16 | DType::BF16 => {
            return refused(format!(
                "it computes with {dtype}, and JavaScript has no floats narrower than f32"
            ));
        }
    })
}

/// A number in the text.
pub(super) fn number(value: u64) -> Expr {
    Expr::primary(value.to_string()).as_literal()
}

/// An index in bytes: what the accessors take.
fn bytes(index: &Expr, size: u64) -> Expr {
    let literal = index.text.strip_suffix('n').filter(|_| index.literal);
    match literal.and_then(|digits| digits.parse::<u64>().ok()) {
        Some(index) => number(index * size),
        None => {
            let index = Expr::call("Number", from_ref(index));
            Expr::infix("*", Precedence::Multiplicative, &index, &number(size))
        }
    }
}

/// The place in memory that a pointer has.
fn place(pointer: &Expr) -> Spelled<&Expr> {
    let place = pointer.offset.as_deref();
    place.ok_or_else(|| Refusal("it has a pointer that is not one".to_owned()))
}

/// A pointer so many bytes further on.
fn further(pointer: &Expr, by: &Expr) -> Spelled<Expr> {
    let zero = |expr: &Expr| expr.literal && expr.text == "0";
    let at = match place(pointer)? {
        at if zero(by) => at.clone(),
        at if zero(at) => by.clone(),
        at => Expr::infix("+", Precedence::Additive, at, by),
    };
    Ok(pointer.clone().at(at))
}

impl Syntax for JavaScript {
    fn for_loop(&self, head: &LoopHead<'_>) -> String {
        let (variable, end) = (head.variable, head.end.within(Precedence::Additive));
        let (first, step) = (&head.first.text, &head.step.text);
        format!("for (let {variable} = {first}; {variable} < {end}; {variable} += {step}) {{")
    }

    fn index(&self, value: i64) -> Expr {
        literal(Scalar::i64(value))
    }

    fn variable(&self, name: &str, ty: &Type) -> Expr {
        match ty {
            Type::Pointer(..) => Expr::primary(name).at(Expr::primary(format!("{name}$at"))),
            Type::Scalar(_)
            | Type::Vector(..)
            | Type::Array(..)
            | Type::Struct(_)
            | Type::Tile(_) => Expr::primary(name),
        }
    }

    /// A pointer is handed over as two arguments.
    fn call(&self, function: &str, arguments: &[Expr]) -> Expr {
        let flat = arguments.iter().flat_map(|argument| {
            let memory = Expr {
                offset: None,
                ..argument.clone()
            };
            [Some(memory), argument.offset.as_deref().cloned()]
        });
        Expr::call(function, &flat.flatten().collect::<Vec<_>>())
    }

    fn advanced(&self, pointer: &Expr, index: &Expr, pointee: Pointee<'_>) -> Spelled<Expr> {
        further(pointer, &bytes(index, pointee.bytes()?))
    }

    fn field(&self, pointer: &Expr, field: Field<'_>) -> Spelled<Expr> {
        further(pointer, &number(field.offset()?))
    }

    fn elements(&self, pointer: &Expr) -> Expr {
        pointer.clone()
    }

    fn load(
        &self,
        pointer: &Expr,
        index: &Expr,
        pointee: Pointee<'_>,
        _: &mut Pieces,
    ) -> Spelled<Expr> {
        let address = self.advanced(pointer, index, pointee)?;
        match pointee.ty {
            Type::Scalar(dtype) => {
                let get = format!("{}.get{}", address.text, view(*dtype)?);
                let little = Expr::primary("true");
                Ok(Expr::call(&get, &[place(&address)?.clone(), little]).reading())
            }
            Type::Vector(..)
            | Type::Array(..)
            | Type::Struct(_)
            | Type::Tile(_)
            | Type::Pointer(..) => refused("it reads what is not a scalar"),
        }
    }

    fn stored(
        &self,
        pointer: &Expr,
        index: &Expr,
        value: &Expr,
        pointee: Pointee<'_>,
        _: &mut Pieces,
    ) -> Spelled<String> {
        let address = self.advanced(pointer, index, pointee)?;
        match pointee.ty {
            Type::Scalar(dtype) => {
                let (at, view) = (&place(&address)?.text, view(*dtype)?);
                Ok(format!(
                    "{}.set{view}({at}, {}, true);",
                    address.text, value.text
                ))
            }
            Type::Vector(..)
            | Type::Array(..)
            | Type::Struct(_)
            | Type::Tile(_)
            | Type::Pointer(..) => refused("it writes what is not a scalar"),
        }
    }

    fn copied(&self, _: [&Expr; 2], _: &Expr, _: &str, _: Pointee<'_>) -> Spelled<String> {
        refused("it copies to local memory, and JavaScript has no work-groups")
    }
}

/// A constant.
fn literal(value: Scalar) -> Expr {
    let dtype = value.dtype();
    let text = match dtype.kind() {
        Kind::Bool => value.is_true().to_string(),
        Kind::Signed => value.as_i64().unwrap_or_default().to_string(),
        Kind::Unsigned => value.bits().to_string(),
        Kind::Float => match value.to_f64() {
            number if number.is_nan() => "NaN".to_owned(),
            number if number.is_infinite() && number > 0.0 => "Infinity".to_owned(),
            number if number.is_infinite() => "-Infinity".to_owned(),
            // The shortest decimal that rounds to the value, as an `f64`.
            number => format!("{number:?}"),
        },
    };
    let n = if big(dtype) { "n" } else { "" };
    let precedence = match text.starts_with('-') {
        true => Precedence::Unary,
        false => Precedence::Primary,
    };
    let literal = Expr::primary(format!("{text}{n}")).as_literal();
    Expr {
        precedence,
        ..literal
    }
}

impl Dialect for JavaScript {
    fn name(&self) -> &'static str {
        "JavaScript"
    }

    fn title(&self) -> String {
        "// JavaScript by Loopwright: the body of a function.".to_owned()
    }

    fn header(&self) -> String {
        "'use strict';\n".to_owned()
    }

    /// Those that C does not have, and the objects that the text uses.
    fn reserved_words(&self) -> &'static [&'static str] {
        &[
            "arguments",
            "async",
            "await",
            "catch",
            "class",
            "debugger",
            "delete",
            "eval",
            "export",
            "extends",
            "finally",
            "function",
            "implements",
            "import",
            "in",
            "instanceof",
            "interface",
            "let",
            "new",
            "null",
            "of",
            "package",
            "private",
            "protected",
            "public",
            "super",
            "this",
            "throw",
            "try",
            "undefined",
            "var",
            "with",
            "yield",
            "Array",
            "ArrayBuffer",
            "BigInt",
            "DataView",
            "Infinity",
            "Math",
            "NaN",
            "Number",
            "Object",
        ]
    }

    fn vector(&self, _: DType, _: u32, _: Shape, _: &mut Pieces) -> Spelled<String> {
        vector()
    }

    fn tile(&self, _: TileType, _: &mut Pieces) -> Spelled<String> {
        refused("it has matrix tiles, and JavaScript has none")
    }

    /// Structs are laid out by the offsets of their fields.
    fn structure(&self, _: StructId, _: Structs<'_>, _: &mut Pieces) -> Spelled<String> {
        Ok(String::new())
    }

    fn declared(
        &self,
        variable: &Declared<'_>,
        value: Option<&Expr>,
        _: &mut Pieces,
    ) -> Spelled<String> {
        let name = variable.name;
        Ok(match value {
            Some(value) => match &value.offset {
                Some(at) => format!("const {name} = {}, {name}$at = {};", value.text, at.text),
                None => format!("const {name} = {};", value.text),
            },
            None => format!("let {name};"),
        })
    }

    fn array(
        &self,
        element: &Declared<'_>,
        _: Space,
        count: u64,
        _: &mut Pieces,
    ) -> Spelled<String> {
        let Declared {
            ty, name, structs, ..
        } = *element;
        let module = structs.module;
        let bytes = Pointee { ty, module }.bytes()?.saturating_mul(count);
        let memory = format!("new DataView(new ArrayBuffer({bytes}))");
        Ok(format!("const {name} = {memory}, {name}$at = 0;"))
    }

    fn parameter(&self, parameter: &Declared<'_>, _: &mut Pieces) -> Spelled<String> {
        let name = parameter.name;
        Ok(match self.variable(name, parameter.ty).offset {
            Some(at) => format!("{name}, {}", at.text),
            None => name.to_owned(),
        })
    }

    fn function(
        &self,
        _: Linkage,
        name: &str,
        params: &[String],
        _: Option<&Declared<'_>>,
        _: &mut Pieces,
    ) -> Spelled<String> {
        Ok(format!("function {name}({})", params.join(", ")))
    }

    fn prototype(&self, _: &str) -> Option<String> {
        None
    }

    fn constant(&self, value: Scalar, lanes: u32, _: &mut Pieces) -> Spelled<Expr> {
        view(value.dtype())?;
        match lanes {
            1 => Ok(literal(value)),
            _ => vector(),
        }
    }

    fn map(
        &self,
        op: Op,
        dtype: DType,
        lanes: u32,
        operands: &[Expr],
        pieces: &mut Pieces,
    ) -> Spelled<Expr> {
        match lanes {
            1 => ops::map(op, dtype, operands, pieces),
            _ => vector(),
        }
    }

    fn cast(
        &self,
        from: DType,
        to: DType,
        lanes: u32,
        value: &Expr,
        pieces: &mut Pieces,
    ) -> Spelled<Expr> {
        match lanes {
            _ if from == to => Ok(value.clone()),
            1 => ops::cast(from, to, value, pieces),
            _ => vector(),
        }
    }

    fn bitcast(
        &self,
        from: DType,
        to: DType,
        lanes: u32,
        value: &Expr,
        pieces: &mut Pieces,
    ) -> Spelled<Expr> {
        match lanes {
            _ if from == to => Ok(value.clone()),
            1 => ops::bits(from, to, value, pieces),
            _ => vector(),
        }
    }

    fn work_item(&self, query: WorkItem, axis: u8) -> Spelled<Expr> {
        let field = match query {
            WorkItem::GlobalId | WorkItem::LocalId => "id",
            WorkItem::GlobalSize | WorkItem::LocalSize => "size",
            WorkItem::GroupId => return Ok(self.index(0)),
            WorkItem::GroupCount => return Ok(self.index(1)),
        };
        Ok(Expr::primary(format!("item.{field}[{axis}]")))
    }

    fn work_item_parameter(&self, _: &mut Pieces) -> Spelled<&'static str> {
        Ok("item")
    }

    /// There is one thread.
    fn parallel_loops(&self) -> bool {
        false
    }

    /// A function of an array of views and scalars, and of the size of the one group.
    fn entry(&self, kernel: &EntryKernel<'_>, _: &mut Pieces) -> Spelled<String> {
        let arguments = kernel.params.iter().enumerate().map(|(at, param)| {
            let argument = Expr::primary(format!("args[{at}]"));
            match param.ty {
                Type::Pointer(..) => argument.at(number(0)),
                Type::Scalar(_)
                | Type::Vector(..)
                | Type::Array(..)
                | Type::Struct(_)
                | Type::Tile(_) => argument,
            }
        });
        let mut arguments: Vec<Expr> = arguments.collect();
        let mut loops = String::new();
        if kernel.work_items {
            arguments.push(Expr::primary("{id: [x, y, z], size}"));
            for (axis, name) in ["x", "y", "z"].iter().enumerate().rev() {
                loops += &format!("    for (let {name} = 0n; {name} < size[{axis}]; {name}++)\n");
            }
        }
        let call = self.evaluated(&self.call(kernel.body, &arguments));
        Ok(format!(
            "function {}(args, size) {{\n{loops}    {call}\n}}\n",
            kernel.symbol
        ))
    }
}
