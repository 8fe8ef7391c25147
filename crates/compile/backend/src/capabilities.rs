//! What a backend can do, and whether a module is within that.

use crate::math_accuracy::MathAccuracy;
use loopwright_kernel::interpret::Layout;
use loopwright_kernel::{Block, Function, FunctionKind, Inst, Module, Space, Stmt, Type};
use loopwright_ops::{DType, Op};

/// What a backend can do. The default is everything, without limits: whoever writes a backend takes away
/// what it lacks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Capabilities {
    /// Whether results are computed at all; a backend that stands for the cost of everything else
    /// computes nothing.
    pub computes: bool,
    /// The dtypes that kernels may compute with and have in memory. `i64` and `bool` are not to be missed:
    /// indices and conditions are of these.
    pub dtypes: Vec<DType>,
    /// Ops that it does not have at any dtype.
    pub missing_ops: Vec<Op>,
    /// How near results of functions like `exp` are to the exact ones, where they are not those of
    /// [`loopwright_ops::evaluate`].
    pub math: MathAccuracy,
    /// Lanes of the widest vector; 1 where there are no vectors.
    pub vector_lanes: u32,
    /// Whether kernels may have structs. Lowered programs have none; kernels written by hand may.
    pub structs: bool,
    /// Bytes of memory that the work-items of a group share; 0 where there is none.
    pub local_memory: u64,
    /// Bytes of a work-item's own memory, for all private arrays of a kernel together; `None`: no limit
    /// that is known.
    pub private_memory: Option<u64>,
    /// Whether there are atomic operations on memory.
    pub atomics: bool,
    /// Whether the work-items of a group can wait for each other.
    pub barriers: bool,
    /// Whether there are matrix units, or something that does their work.
    pub matrix_tiles: bool,
    /// Bytes of the largest array.
    pub max_buffer: Option<u64>,
    /// How many parameters a kernel may have.
    pub max_params: Option<usize>,
}

impl Default for Capabilities {
    fn default() -> Capabilities {
        Capabilities {
            computes: true,
            dtypes: DType::ALL.to_vec(),
            missing_ops: Vec::new(),
            math: MathAccuracy::exact(),
            vector_lanes: u32::MAX,
            structs: true,
            local_memory: u64::MAX,
            private_memory: None,
            atomics: true,
            barriers: true,
            matrix_tiles: true,
            max_buffer: None,
            max_params: None,
        }
    }
}

/// What a module asks for and a backend does not have.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("kernel `{kernel}`: {reason}")]
pub struct Refusal {
    /// The function.
    pub kernel: String,
    /// What is missing.
    pub reason: String,
}

impl Capabilities {
    /// Those of a backend on a processor without work-groups: no local memory and no barriers.
    pub fn without_groups() -> Capabilities {
        Capabilities {
            local_memory: 0,
            barriers: false,
            ..Capabilities::default()
        }
    }

    /// Whether a module asks for nothing else.
    ///
    /// # Errors
    /// The first thing that is missing, and which function asks for it.
    pub fn check(&self, module: &Module) -> Result<(), Refusal> {
        for function in &module.functions {
            self.check_function(module, function)
                .map_err(|reason| Refusal {
                    kernel: function.name.clone(),
                    reason,
                })?;
        }
        Ok(())
    }

    fn check_function(&self, module: &Module, function: &Function) -> Result<(), String> {
        if let Some(most) = self.max_params
            && matches!(function.kind, FunctionKind::Kernel { .. })
            && function.params.len() > most
        {
            let count = function.params.len();
            return Err(format!(
                "it has {count} parameters, and the most is {most}; split the program in two"
            ));
        }
        for info in &function.values {
            self.check_type(&info.ty)?;
        }
        let mut memory = Memory::default();
        self.check_block(module, &function.body, &mut memory)?;
        if memory.local > self.local_memory {
            return Err(format!(
                "it needs {} bytes of local memory, and there are {}",
                memory.local, self.local_memory
            ));
        }
        match self.private_memory {
            Some(most) if memory.private > most => Err(format!(
                "its private arrays take {} bytes, and a work-item has {most}; smaller tiles or loops \
                 that are not shared take less",
                memory.private
            )),
            _ => Ok(()),
        }
    }

    fn check_type(&self, ty: &Type) -> Result<(), String> {
        match ty {
            Type::Scalar(dtype) => self.check_dtype(*dtype),
            Type::Vector(dtype, lanes) => {
                if *lanes > self.vector_lanes {
                    return Err(format!(
                        "it has vectors of {lanes} lanes, and the most is {}",
                        self.vector_lanes
                    ));
                }
                self.check_dtype(*dtype)
            }
            Type::Pointer(_, pointee) | Type::Array(pointee, _) => self.check_type(pointee),
            Type::Struct(_) if self.structs => Ok(()),
            Type::Struct(_) => Err(
                "it has structs, and the backend does not take them; keep each field in an array of its own"
                    .to_owned(),
            ),
            Type::Tile(tile) if self.matrix_tiles => self.check_dtype(tile.dtype),
            Type::Tile(_) => Err("it has matrix tiles, and there are none".to_owned()),
        }
    }

    fn check_dtype(&self, dtype: DType) -> Result<(), String> {
        if self.dtypes.contains(&dtype) {
            return Ok(());
        }
        let known: Vec<&str> = self.dtypes.iter().map(|known| known.name()).collect();
        Err(format!(
            "it computes with {dtype}, and the backend has {} only",
            known.join(", ")
        ))
    }

    fn check_op(&self, op: Op) -> Result<(), String> {
        match self.missing_ops.contains(&op) {
            true => Err(format!(
                "it uses the op `{op}`, which the backend does not have"
            )),
            false => Ok(()),
        }
    }

    fn check_block(
        &self,
        module: &Module,
        block: &Block,
        memory: &mut Memory,
    ) -> Result<(), String> {
        for stmt in block {
            match stmt {
                Stmt::Let(_, Inst::Map(op, _)) => self.check_op(*op)?,
                Stmt::Let(_, Inst::ReduceLanes(op, _)) => self.check_op(op.combine())?,
                Stmt::Let(_, Inst::Atomic { .. } | Inst::CompareExchange { .. })
                    if !self.atomics =>
                {
                    return Err("it has atomic operations, and there are none".to_owned());
                }
                Stmt::Let(_, Inst::Alloc { space, ty, count }) => {
                    let bytes = Layout::of(module, ty).map_or(0, |layout| layout.size);
                    let bytes = bytes.saturating_mul(*count);
                    match space {
                        Space::Local => memory.local = memory.local.saturating_add(bytes),
                        _ => memory.private = memory.private.saturating_add(bytes),
                    }
                }
                Stmt::Barrier { .. } if !self.barriers => {
                    return Err(
                        "its work-items wait for each other, and there are no barriers".to_owned(),
                    );
                }
                Stmt::AsyncCopy { .. } if self.local_memory == 0 => {
                    return Err("it copies to local memory, and there is none".to_owned());
                }
                _ => {}
            }
            for inner in stmt.blocks().into_iter().flatten() {
                self.check_block(module, inner, memory)?;
            }
        }
        Ok(())
    }
}

/// What a function's arrays take.
#[derive(Default)]
struct Memory {
    local: u64,
    private: u64,
}
