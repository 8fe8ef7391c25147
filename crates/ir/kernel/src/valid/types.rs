//! Types and struct declarations.

use super::{Check, Fault, ValidationError, at_struct};
use crate::ir::{Module, Space, StructId, Type};
use crate::text::type_text;
use rustc_hash::FxHashSet;

/// Checks the declarations: names, field types, and that a struct holds only structs above it,
/// which rules out that one holds itself and lets emitters declare them in order.
pub(super) fn structs(module: &Module) -> Result<(), ValidationError> {
    let mut names = FxHashSet::default();
    for (id, declared) in module.structs.iter_enumerated() {
        let checked = if names.insert(declared.name.as_str()) {
            fields(module, id)
        } else {
            duplicate("struct", &declared.name)
        };
        checked.map_err(|fault| at_struct(module, id, fault))?;
    }
    Ok(())
}

fn duplicate(what: &'static str, name: &str) -> Check {
    Err(Box::new(Fault::DuplicateName {
        what,
        name: name.to_owned(),
    }))
}

fn fields(module: &Module, id: StructId) -> Check {
    let mut names = FxHashSet::default();
    for (name, ty) in &module.structs[id].fields {
        if !names.insert(name.as_str()) {
            return duplicate("field", name);
        }
        let mut held = ty;
        while let Type::Array(element, _) = held {
            held = element;
        }
        if let Type::Struct(inner) = held
            && inner.0 >= id.0
        {
            return match module.structs.get(*inner) {
                Some(declared) => Err(Box::new(Fault::StructOrder {
                    field: name.clone(),
                    holds: declared.name.clone(),
                })),
                None => Err(Box::new(Fault::NoSuchStruct(inner.0))),
            };
        }
        memory_type(module, ty, None)?;
    }
    Ok(())
}

/// A type that values have.
pub(super) fn value_type(module: &Module, ty: &Type) -> Check {
    match ty {
        Type::Array(..) | Type::Struct(_) => Err(not_allowed(
            module,
            ty,
            "arrays and structs stand only behind pointers and in structs",
        )),
        _ => memory_type(module, ty, Some(Space::Private)),
    }
}

/// A type that memory of a space holds; `None` for a struct's fields, which may lie anywhere.
pub(super) fn memory_type(module: &Module, ty: &Type, space: Option<Space>) -> Check {
    let mut ty = ty;
    let mut space = space;
    loop {
        ty = match ty {
            Type::Scalar(_) => return Ok(()),
            Type::Vector(_, lanes) if *lanes < 2 => {
                return Err(not_allowed(module, ty, "a vector has at least two lanes"));
            }
            Type::Vector(..) => return Ok(()),
            Type::Pointer(of, pointee) => {
                space = Some(*of);
                pointee
            }
            Type::Array(_, 0) => {
                return Err(not_allowed(module, ty, "an array has at least one element"));
            }
            Type::Array(element, _) => element,
            Type::Struct(id) if module.structs.get(*id).is_some() => return Ok(()),
            Type::Struct(id) => return Err(Box::new(Fault::NoSuchStruct(id.0))),
            Type::Tile(tile) if tile.rows == 0 || tile.cols == 0 => {
                return Err(not_allowed(module, ty, "a tile has at least one element"));
            }
            Type::Tile(_) if space == Some(Space::Private) => return Ok(()),
            Type::Tile(_) => {
                return Err(not_allowed(
                    module,
                    ty,
                    "a tile has no layout in memory that others see",
                ));
            }
        }
    }
}

fn not_allowed(module: &Module, ty: &Type, why: &'static str) -> Box<Fault> {
    Box::new(Fault::TypeNotAllowed {
        ty: type_text(module, ty),
        why,
    })
}
