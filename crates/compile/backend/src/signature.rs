//! What kernels take, so that they are called with nothing else.

use crate::kernel_backend::Argument;
use loopwright_kernel::interpret::Layout;
use loopwright_kernel::{Access, Function, FunctionKind, Module, Space, Type};
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
            let info = &function.values[param.value.0 as usize];
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

impl SignatureParam {
    /// Whether an argument is what it takes, and lies as it must.
    ///
    /// # Errors
    /// What is wrong with the argument.
    pub fn check(&self, argument: &Argument<'_>) -> Result<(), String> {
        let name = &self.name;
        let (start, bytes) = match argument {
            Argument::Scalar(scalar) => {
                return match self.takes {
                    Takes::Scalar(dtype) if scalar.dtype() == dtype => Ok(()),
                    Takes::Scalar(dtype) => {
                        Err(format!("`{name}` is {dtype}, not {}", scalar.dtype()))
                    }
                    Takes::Buffer { .. } => Err(format!("`{name}` is a buffer, not a scalar")),
                };
            }
            Argument::Read(buffer) => (buffer.as_ptr().addr(), buffer.len()),
            Argument::Write(buffer) => (buffer.as_ptr().addr(), buffer.len()),
            Argument::Shared(buffer) => (buffer.as_ptr().addr(), buffer.len()),
        };
        match self.takes {
            Takes::Scalar(dtype) => Err(format!("`{name}` is a {dtype}, not a buffer")),
            Takes::Buffer { written: true, .. } if matches!(argument, Argument::Read(_)) => {
                Err(self.read_only())
            }
            Takes::Buffer { .. } => self.check_place(start, bytes),
        }
    }

    /// Whether so many bytes lie as they must, from an address or from an aligned start.
    ///
    /// # Errors
    /// What they must be aligned to.
    pub fn check_place(&self, start: usize, bytes: usize) -> Result<(), String> {
        match self.takes {
            Takes::Buffer { align, .. } if bytes > 0 && !start.is_multiple_of(align) => {
                Err(format!(
                    "the buffer for `{}` must be aligned to {align} bytes",
                    self.name
                ))
            }
            _ => Ok(()),
        }
    }

    /// That it is written, and must not be.
    pub fn read_only(&self) -> String {
        format!("it writes to `{}`, which is read-only", self.name)
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
