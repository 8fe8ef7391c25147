//! What kernels take: how many arguments, of which kinds and dtypes, aligned and writable as they need them.
//!
//! Lengths are no part of a signature, since they depend on the sizes of a run: `Bound` of the crate `compile` and the transfers of
//! `runtime` check them, and whoever calls a kernel otherwise owes them (`# Safety` of `Executable::run`).

use crate::launch_argument::{AddressRange, LaunchArgument, MemoryAccess, SlabRange};
use loopwright_kernel::interpret::Layout;
use loopwright_kernel::{Access, Argument, Function, FunctionKind, Module, Space, Type};
use loopwright_ops::DType;

/// What a kernel takes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signature {
    /// The work-group that it insists on, or one work-item.
    pub group: [u32; 3],
    /// Its parameters, in order.
    pub params: Vec<SignatureParam>,
}

/// A parameter of a kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SignatureParam {
    /// Its name.
    pub name: String,
    /// What is to be given for it.
    pub takes: Takes,
}

/// What a parameter takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Takes {
    /// A scalar of this dtype.
    Scalar(DType),
    /// Memory.
    Buffer {
        /// Whether the kernel writes to it.
        written: bool,
        /// What its address is a multiple of.
        align: usize,
        /// Of its elements; `None` where they are structs.
        dtype: Option<DType>,
    },
}

impl Signature {
    /// What a kernel of a module takes.
    ///
    /// # Errors
    /// Where a parameter is nothing that a call can give.
    pub fn of(module: &Module, function: &Function) -> Result<Signature, String> {
        let group = match function.kind {
            FunctionKind::Kernel { group } => group.unwrap_or([1; 3]),
            FunctionKind::Device => [1; 3],
        };
        let params = function.params.iter().map(|param| {
            let info = &function.values[param.value];
            let takes = match &info.ty {
                Type::Scalar(dtype) => Takes::Scalar(*dtype),
                Type::Pointer(Space::Global | Space::Constant, pointee) => Takes::Buffer {
                    written: param.access != Access::Read,
                    align: alignment(module, pointee),
                    dtype: element(pointee),
                },
                other => {
                    return Err(format!(
                        "its parameter `{}` is {other:?}; kernels take scalars and buffers",
                        info.name
                    ));
                }
            };
            Ok(SignatureParam {
                name: info.name.clone(),
                takes,
            })
        });
        Ok(Signature {
            group,
            params: params.collect::<Result<_, _>>()?,
        })
    }

    /// Whether it takes these arguments, and they lie as they must.
    ///
    /// # Errors
    /// What is wrong with the first that does not fit, or how many it takes.
    pub fn check<A: AsGiven>(&self, arguments: &[A]) -> Result<(), String> {
        self.check_count(arguments.len())?;
        let mut params = self.params.iter().zip(arguments);
        params.try_for_each(|(param, argument)| param.check(argument))
    }

    /// Whether it takes so many arguments.
    ///
    /// # Errors
    /// How many it takes.
    pub fn check_count(&self, count: usize) -> Result<(), String> {
        match self.params.len() {
            takes if takes == count => Ok(()),
            takes => Err(format!("it takes {takes} arguments, not {count}")),
        }
    }
}

/// An argument, as far as a parameter asks about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Given {
    /// A scalar of this dtype.
    Scalar(DType),
    /// Memory.
    Memory {
        /// Its address, or where it starts in memory that is aligned to [`ALIGNMENT`](crate::ALIGNMENT).
        start: usize,
        /// How long it is.
        bytes: usize,
        /// Whether it may be written.
        writable: bool,
    },
    /// Memory of a work-group.
    Local,
}

/// What a parameter can be asked about: an argument of a call, or of a launch that is prepared.
pub trait AsGiven {
    /// The argument, as far as a parameter asks about it.
    fn given(&self) -> Given;
}

impl AsGiven for Argument<'_> {
    fn given(&self) -> Given {
        let memory = |start: usize, bytes: usize, writable: bool| Given::Memory {
            start,
            bytes,
            writable,
        };
        match self {
            Argument::Scalar(scalar) => Given::Scalar(scalar.dtype()),
            Argument::Read(buffer) => memory(buffer.as_ptr().addr(), buffer.len(), false),
            Argument::Write(buffer) => memory(buffer.as_ptr().addr(), buffer.len(), true),
            Argument::Shared(buffer) => memory(buffer.as_ptr().addr(), buffer.len(), true),
            Argument::Local(_) => Given::Local,
        }
    }
}

impl AsGiven for SlabRange {
    fn given(&self) -> Given {
        Given::Memory {
            // Slabs are aligned.
            start: self.offset,
            bytes: self.bytes,
            writable: self.access != MemoryAccess::Read,
        }
    }
}

impl AsGiven for AddressRange {
    fn given(&self) -> Given {
        Given::Memory {
            start: self.address.addr(),
            bytes: self.bytes,
            writable: self.access != MemoryAccess::Read,
        }
    }
}

impl<M: AsGiven> AsGiven for LaunchArgument<M> {
    fn given(&self) -> Given {
        match self {
            LaunchArgument::Memory(memory) => memory.given(),
            LaunchArgument::Integer(_) | LaunchArgument::Static(_) => Given::Scalar(DType::I64),
            LaunchArgument::Merge { bytes } => Given::Memory {
                start: 0,
                bytes: *bytes,
                writable: false,
            },
        }
    }
}

impl SignatureParam {
    /// Whether an argument is what it takes, and lies as it must.
    ///
    /// # Errors
    /// What is wrong with the argument.
    pub fn check(&self, argument: &impl AsGiven) -> Result<(), String> {
        let name = &self.name;
        match (self.takes, argument.given()) {
            (Takes::Scalar(dtype), Given::Scalar(other)) if dtype == other => Ok(()),
            (Takes::Scalar(dtype), Given::Scalar(other)) => {
                Err(format!("`{name}` is {dtype}, not {other}"))
            }
            (Takes::Scalar(dtype), Given::Memory { .. } | Given::Local) => {
                Err(format!("`{name}` is a {dtype}, not a buffer"))
            }
            (Takes::Buffer { .. }, Given::Scalar(_)) => {
                Err(format!("`{name}` is a buffer, not a scalar"))
            }
            (Takes::Buffer { .. }, Given::Local) => {
                Err(format!("`{name}` is a buffer, not local memory"))
            }
            (
                Takes::Buffer { written, align, .. },
                Given::Memory {
                    start,
                    bytes,
                    writable,
                },
            ) => {
                if written && !writable {
                    return Err(format!("it writes to `{name}`, which is read-only"));
                }
                if bytes > 0 && !start.is_multiple_of(align) {
                    return Err(format!(
                        "the buffer for `{name}` must be aligned to {align} bytes"
                    ));
                }
                Ok(())
            }
        }
    }
}

/// The dtype of what is behind a pointer.
fn element(ty: &Type) -> Option<DType> {
    match ty {
        Type::Scalar(dtype) | Type::Vector(dtype, _) => Some(*dtype),
        Type::Array(inner, _) => element(inner),
        Type::Tile(tile) => Some(tile.dtype),
        Type::Struct(_) | Type::Pointer(..) => None,
    }
}

/// The alignment that code may count on for what is behind a pointer. Vectors there need only their
/// elements'; in a struct they are aligned to their size.
fn alignment(module: &Module, ty: &Type) -> usize {
    match element(ty) {
        Some(dtype) => dtype.bytes(),
        None => Layout::of(module, ty).map_or(1, |layout| layout.align as usize),
    }
}
