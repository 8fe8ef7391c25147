//! The types of a module's values and memory.

use super::Refusal;
use super::code::Shared;
use crate::ffi::{Field, Ty, types};
use loopwright_arena::TiVec;
use loopwright_kernel::{Module, StructId, TileType, Type};
use loopwright_ops::DType;
use rustc_hash::FxHashMap;
use std::ffi::c_int;

/// Types that a module declares.
pub(super) struct Types {
    pub(super) structs: TiVec<StructId, StructInfo>,
    tiles: FxHashMap<(DType, u32, u32), StructInfo>,
    pub(super) runtime: Runtime,
    pub(super) item: Item,
}

/// A struct and its fields.
#[derive(Clone)]
pub(super) struct StructInfo {
    pub(super) ty: Ty,
    pub(super) fields: Vec<Field>,
}

/// The struct `lw_runtime`, laid out as [`loopwright_native::Runtime`] is.
pub(super) struct Runtime {
    pub(super) pointer: Ty,
    pub(super) context: Field,
    pub(super) parallel_for: Field,
    pub(super) global_size: Field,
    pub(super) local_size: Field,
    /// What a parallel loop's body is called through.
    pub(super) task: Ty,
}

/// The struct `lw_item`: what a work-item knows of itself, three axes each.
pub(super) struct Item {
    pub(super) ty: Ty,
    pub(super) pointer: Ty,
    pub(super) global_id: Field,
    pub(super) local_id: Field,
    pub(super) group_id: Field,
    pub(super) global_size: Field,
    pub(super) local_size: Field,
    pub(super) group_count: Field,
}

impl Types {
    pub(super) fn new(module: &Module, shared: &mut Shared<'_>) -> Result<Types, Refusal> {
        let context = shared.context;
        let index = shared.scalar(DType::I64);
        let axes = shared.array(index, 3);
        let (void, untyped) = (context.basic(types::VOID), context.basic(types::VOID_PTR));
        let task = context.function_pointer(void, &[untyped, index, index]);
        let parallel_for = context.function_pointer(void, &[untyped, index, task, untyped]);
        let fields = [
            (untyped, "context"),
            (parallel_for, "parallel_for"),
            (axes, "global_size"),
            (axes, "local_size"),
        ]
        .map(|(ty, name)| context.field(ty, name));
        let [in_context, in_parallel_for, global_size, local_size] = fields;
        let runtime = Runtime {
            pointer: context.pointer(context.structure("lw_runtime", &fields)),
            context: in_context,
            parallel_for: in_parallel_for,
            global_size,
            local_size,
            task,
        };
        let names = [
            "global_id",
            "local_id",
            "group_id",
            "global_size",
            "local_size",
            "group_count",
        ];
        let fields = names.map(|name| context.field(axes, name));
        let [
            global_id,
            local_id,
            group_id,
            global_size,
            local_size,
            group_count,
        ] = fields;
        let ty = context.structure("lw_item", &fields);
        let item = Item {
            ty,
            pointer: context.pointer(ty),
            global_id,
            local_id,
            group_id,
            global_size,
            local_size,
            group_count,
        };
        let mut types = Types {
            structs: TiVec::new(),
            tiles: FxHashMap::default(),
            runtime,
            item,
        };
        // A struct's fields name only structs before it.
        for declared in &module.structs {
            let mut fields = Vec::with_capacity(declared.fields.len());
            for (at, (name, ty)) in declared.fields.iter().enumerate() {
                let ty = types.field(ty, shared)?;
                fields.push(context.field(ty, &format!("{}_{at}", super::identifier(name))));
            }
            let name = super::identifier(&declared.name);
            let ty = context.structure(&format!("{name}_{}", types.structs.len()), &fields);
            types.structs.push(StructInfo { ty, fields });
        }
        Ok(types)
    }

    /// The type of a value.
    pub(super) fn value(&mut self, ty: &Type, shared: &mut Shared<'_>) -> Result<Ty, Refusal> {
        match ty {
            Type::Vector(dtype, lanes) => {
                check_lanes(*dtype, *lanes)?;
                Ok(shared.vector(*dtype, *lanes))
            }
            _ => self.memory(ty, shared),
        }
    }

    /// The type of something in memory: vectors there are aligned as their elements are.
    pub(super) fn memory(&mut self, ty: &Type, shared: &mut Shared<'_>) -> Result<Ty, Refusal> {
        Ok(match ty {
            Type::Scalar(dtype) => shared.scalar(*dtype),
            Type::Vector(dtype, lanes) => {
                check_lanes(*dtype, *lanes)?;
                shared.memory_vector(*dtype, *lanes)
            }
            Type::Pointer(_, pointee) => {
                let pointee = self.memory(pointee, shared)?;
                shared.context.pointer(pointee)
            }
            Type::Array(element, count) => {
                let element = self.memory(element, shared)?;
                shared.array(element, elements(*count)?)
            }
            Type::Struct(id) => self.structs[*id].ty,
            Type::Tile(tile) => self.tile(*tile, shared)?.ty,
        })
    }

    /// The type of a struct's field: vectors there are aligned to their size.
    fn field(&mut self, ty: &Type, shared: &mut Shared<'_>) -> Result<Ty, Refusal> {
        match ty {
            Type::Vector(..) => self.value(ty, shared),
            Type::Array(element, count) => {
                let element = self.field(element, shared)?;
                Ok(shared.array(element, elements(*count)?))
            }
            _ => self.memory(ty, shared),
        }
    }

    /// The type of a tile: a struct of its elements, row by row.
    pub(super) fn tile(
        &mut self,
        tile: TileType,
        shared: &mut Shared<'_>,
    ) -> Result<StructInfo, Refusal> {
        let TileType {
            dtype, rows, cols, ..
        } = tile;
        let key = (dtype, rows, cols);
        if let Some(found) = self.tiles.get(&key) {
            return Ok(found.clone());
        }
        let context = shared.context;
        let count = elements(u64::from(rows) * u64::from(cols))?;
        let element = shared.scalar(dtype);
        let fields = vec![context.field(shared.array(element, count), "at")];
        let ty = context.structure(&format!("lw_tile_{dtype}_{rows}x{cols}"), &fields);
        let made = StructInfo { ty, fields };
        self.tiles.insert(key, made.clone());
        Ok(made)
    }
}

/// The library counts an array's elements in an `int`.
pub(super) fn elements(count: u64) -> Result<c_int, Refusal> {
    c_int::try_from(count).map_err(|_| {
        Refusal(format!(
            "it has an array of {count} elements, and libgccjit has none of more than {}",
            c_int::MAX
        ))
    })
}

fn check_lanes(dtype: DType, lanes: u32) -> Result<(), Refusal> {
    let bytes = u64::from(lanes) * dtype.bytes() as u64;
    if !lanes.is_power_of_two() {
        Err(Refusal(format!(
            "it uses {dtype}x{lanes}, and GCC has no vectors of {lanes} lanes; use a power of two"
        )))
    } else if bytes > 4096 {
        Err(Refusal(format!(
            "it uses {dtype}x{lanes}, a vector of {bytes} bytes; the largest is 4096"
        )))
    } else {
        Ok(())
    }
}
