//! Declarations: C's inside-out syntax for types.

use crate::dialect::{Dialect, Spelled};
use crate::expression::Shape;
use crate::pieces::Pieces;
use loopwright_arena::TiSlice;
use loopwright_kernel::{Space, StructId, Type};

/// What a declaration needs besides the type.
pub(crate) struct Declarator<'a> {
    pub dialect: &'a dyn Dialect,
    /// The C names of the module's structs.
    pub structs: &'a TiSlice<StructId, String>,
}

impl Declarator<'_> {
    /// The declaration of a variable that holds a value.
    pub(crate) fn variable(
        &self,
        ty: &Type,
        shape: Shape,
        name: &str,
        pieces: &mut Pieces,
    ) -> Spelled<String> {
        match ty {
            Type::Vector(dtype, lanes) => {
                let ty = self.dialect.vector(*dtype, *lanes, shape, pieces)?;
                Ok(join(&ty, name))
            }
            _ => self.memory(ty, name, false, pieces),
        }
    }

    /// The declaration of a pointer, to memory that is only read if `constant`.
    pub(crate) fn pointer(
        &self,
        ty: &Type,
        name: &str,
        constant: bool,
        noalias: bool,
        pieces: &mut Pieces,
    ) -> Spelled<String> {
        let name = if noalias {
            format!("{}{name}", self.dialect.noalias())
        } else {
            name.to_owned()
        };
        self.memory(ty, &name, constant, pieces)
    }

    /// The declaration of something in memory.
    pub(crate) fn memory(
        &self,
        ty: &Type,
        name: &str,
        constant: bool,
        pieces: &mut Pieces,
    ) -> Spelled<String> {
        let qualifier = if constant { "const " } else { "" };
        Ok(match ty {
            Type::Scalar(dtype) => {
                let ty = self.dialect.scalar(*dtype, pieces);
                format!("{qualifier}{}", join(ty, name))
            }
            Type::Vector(dtype, lanes) => {
                let ty = self.dialect.vector_in_memory(*dtype, *lanes, pieces)?;
                format!("{qualifier}{}", join(&ty, name))
            }
            Type::Struct(id) => {
                let ty = &self.structs[*id];
                format!("{qualifier}{}", join(ty, name))
            }
            Type::Tile(tile) => join(&self.dialect.tile(*tile, pieces)?, name),
            Type::Array(element, count) => {
                self.memory(element, &format!("{name}[{count}]"), constant, pieces)?
            }
            Type::Pointer(space, pointee) => {
                let constant = constant || *space == Space::Constant;
                let star = match **pointee {
                    Type::Array(..) => format!("(*{name})"),
                    _ => format!("*{name}"),
                };
                let declared = self.memory(pointee, &star, constant, pieces)?;
                format!("{}{declared}", self.dialect.space(*space))
            }
        })
    }
}

/// A type and a name, or the type alone.
fn join(ty: &str, name: &str) -> String {
    if name.is_empty() {
        ty.to_owned()
    } else {
        format!("{ty} {name}")
    }
}
