//! Declarations: C's inside-out syntax for types.

use crate::dialect::{Declared, Dialect, Linkage, ParallelLoop, Spelled, Structs};
use crate::pieces::Pieces;
use loopwright_kernel::{Space, StructId, Type};
use std::fmt::Write;

/// The declaration of a variable, without a semicolon; without a name, its type.
pub(crate) fn variable<D: Dialect + ?Sized>(
    dialect: &D,
    declared: &Declared<'_>,
    pieces: &mut Pieces,
) -> Spelled<String> {
    let Declared {
        ty,
        name,
        shape,
        structs,
        ..
    } = *declared;
    match ty {
        Type::Vector(dtype, lanes) => {
            let ty = dialect.vector(*dtype, *lanes, shape, pieces)?;
            Ok(join(&ty, name))
        }
        Type::Pointer(..) if declared.noalias => {
            let name = format!("{}{name}", dialect.noalias());
            memory(dialect, ty, &name, declared.constant, structs, pieces)
        }
        Type::Pointer(..) => memory(dialect, ty, name, declared.constant, structs, pieces),
        Type::Scalar(_) | Type::Array(..) | Type::Struct(_) | Type::Tile(_) => {
            memory(dialect, ty, name, false, structs, pieces)
        }
    }
}

/// The declaration of something in memory.
fn memory<D: Dialect + ?Sized>(
    dialect: &D,
    ty: &Type,
    name: &str,
    constant: bool,
    structs: Structs<'_>,
    pieces: &mut Pieces,
) -> Spelled<String> {
    let qualifier = if constant { "const " } else { "" };
    Ok(match ty {
        Type::Scalar(dtype) => {
            let ty = dialect.scalar(*dtype, pieces);
            format!("{qualifier}{}", join(ty, name))
        }
        Type::Vector(dtype, lanes) => {
            let ty = dialect.vector_in_memory(*dtype, *lanes, pieces)?;
            format!("{qualifier}{}", join(&ty, name))
        }
        Type::Struct(id) => {
            let ty = &structs.names[*id];
            format!("{qualifier}{}", join(ty, name))
        }
        Type::Tile(tile) => join(&dialect.tile(*tile, pieces)?, name),
        Type::Array(element, count) => {
            let name = format!("{name}[{count}]");
            memory(dialect, element, &name, constant, structs, pieces)?
        }
        Type::Pointer(space, pointee) => {
            let constant = constant || *space == Space::Constant;
            let star = match **pointee {
                Type::Array(..) => format!("(*{name})"),
                _ => format!("*{name}"),
            };
            let declared = memory(dialect, pointee, &star, constant, structs, pieces)?;
            format!("{}{declared}", dialect.space(*space))
        }
    })
}

/// A type and a name, or the type alone.
fn join(ty: &str, name: &str) -> String {
    if name.is_empty() {
        ty.to_owned()
    } else {
        format!("{ty} {name}")
    }
}

/// A private or local array.
pub(crate) fn array<D: Dialect + ?Sized>(
    dialect: &D,
    element: &Declared<'_>,
    space: Space,
    count: u64,
    pieces: &mut Pieces,
) -> Spelled<String> {
    let name = format!("{}[{count}]", element.name);
    let declared = memory(dialect, element.ty, &name, false, element.structs, pieces)?;
    let (space, alignment) = (dialect.space(space), dialect.array_alignment());
    Ok(format!("{space}{declared}{alignment};"))
}

/// A struct's definition.
pub(crate) fn structure<D: Dialect + ?Sized>(
    dialect: &D,
    id: StructId,
    structs: Structs<'_>,
    pieces: &mut Pieces,
) -> Spelled<String> {
    let (name, fields) = (&structs.names[id], &structs.fields[id]);
    let types = structs.module.structs[id].fields.iter();
    let mut text = "typedef struct {\n".to_owned();
    for ((_, field_type), field) in types.zip(fields) {
        let declared = memory(dialect, field_type, field, false, structs, pieces)?;
        let alignment = dialect.field_alignment(field_type)?;
        let _ = writeln!(text, "    {declared}{alignment};");
    }
    let _ = writeln!(text, "}} {name};\n");
    Ok(text)
}

/// A function's declaration, without a semicolon.
pub(crate) fn function<D: Dialect + ?Sized>(
    dialect: &D,
    linkage: Linkage,
    name: &str,
    params: &[String],
    result: Option<&Declared<'_>>,
    pieces: &mut Pieces,
) -> Spelled<String> {
    let result = match result {
        Some(result) => variable(dialect, result, pieces)?,
        None => "void".to_owned(),
    };
    let params = match params {
        [] => "void".to_owned(),
        params => params.join(", "),
    };
    Ok(format!(
        "{}{result} {name}({params})",
        dialect.linkage(linkage)
    ))
}

/// The functions of a parallel loop: its body over a range, and what unpacks the arguments for it.
pub(crate) fn parallel_loop<D: Dialect + ?Sized>(
    dialect: &D,
    parallel: &ParallelLoop<'_>,
) -> String {
    let ParallelLoop {
        name,
        task,
        captured,
        params,
        body,
    } = parallel;
    let mut text = String::new();
    let mut arguments: Vec<String> = Vec::with_capacity(captured.len() + 2);
    if !captured.is_empty() {
        let _ = writeln!(text, "struct {name} {{");
        for (field, declared) in captured.iter() {
            let _ = writeln!(text, "    {declared};");
            arguments.push(format!("captured->{field}"));
        }
        let _ = writeln!(text, "}};\n");
    }
    arguments.extend(["begin", "stop"].map(str::to_owned));
    let _ = writeln!(
        text,
        "{}void {name}({}) {{\n{body}}}\n",
        dialect.linkage(Linkage::Separate),
        params.join(", "),
    );
    let _ = writeln!(
        text,
        "{}void {task}(void *environment, int64_t begin, int64_t stop) {{",
        dialect.linkage(Linkage::Internal),
    );
    if !captured.is_empty() {
        let _ = writeln!(text, "    const struct {name} *captured = environment;");
    }
    let _ = writeln!(text, "    {name}({});\n}}\n", arguments.join(", "));
    text
}
