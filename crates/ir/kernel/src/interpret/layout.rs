//! How types lie in memory.

use crate::ir::{Module, Type};

/// The room a type takes in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    /// Bytes from one element to the next.
    pub size: u64,
    /// The address of an element is a multiple of this.
    pub align: u64,
}

impl Layout {
    /// The layout of `ty`, or `None` if it has none (structs that contain themselves, sizes beyond
    /// 64 bits).
    ///
    /// A scalar is aligned to its size, and a pointer is as a `u64`. A tile is its rows one after
    /// the other. A vector takes its lanes rounded up to a power of two and
    /// is aligned to all of them, as in OpenCL. Struct fields stand in order, each aligned, and
    /// the struct is as aligned as its most aligned field.
    pub fn of(module: &Module, ty: &Type) -> Option<Layout> {
        // No type needs more than one level per struct; more means a struct contains itself.
        layout(module, ty, module.structs.len() + 64)
    }

    /// The byte at which a field of a struct begins.
    pub fn field_offset(module: &Module, fields: &[(String, Type)], field: usize) -> Option<u64> {
        let mut offset = 0u64;
        for (_, ty) in &fields[..field] {
            let layout = Layout::of(module, ty)?;
            offset = align_up(offset, layout.align)?.checked_add(layout.size)?;
        }
        align_up(offset, Layout::of(module, &fields.get(field)?.1)?.align)
    }
}

fn align_up(offset: u64, align: u64) -> Option<u64> {
    offset.checked_next_multiple_of(align)
}

fn layout(module: &Module, ty: &Type, depth: usize) -> Option<Layout> {
    let depth = depth.checked_sub(1)?;
    match ty {
        Type::Scalar(dtype) => {
            let bytes = dtype.bytes() as u64;
            Some(Layout {
                size: bytes,
                align: bytes,
            })
        }
        Type::Vector(dtype, lanes) => {
            let bytes = dtype.bytes() as u64 * u64::from(lanes.checked_next_power_of_two()?);
            Some(Layout {
                size: bytes,
                align: bytes,
            })
        }
        Type::Array(element, count) => {
            let element = layout(module, element, depth)?;
            Some(Layout {
                size: element.size.checked_mul(*count)?,
                align: element.align,
            })
        }
        Type::Struct(id) => {
            let mut whole = Layout { size: 0, align: 1 };
            for (_, ty) in &module.structs.get(*id)?.fields {
                let field = layout(module, ty, depth)?;
                whole.size = align_up(whole.size, field.align)?.checked_add(field.size)?;
                whole.align = whole.align.max(field.align);
            }
            whole.size = align_up(whole.size, whole.align)?;
            Some(whole)
        }
        Type::Pointer(..) => Some(Layout { size: 8, align: 8 }),
        Type::Tile(tile) => {
            let align = tile.dtype.bytes() as u64;
            let elements = u64::from(tile.rows) * u64::from(tile.cols);
            Some(Layout {
                size: elements.checked_mul(align)?,
                align,
            })
        }
    }
}
