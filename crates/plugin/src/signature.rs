//! What kernels take, so that a plug-in is called with nothing else.

use crate::abi::{
    self, LW_ARGUMENT_READ, LW_ARGUMENT_SCALAR, LW_ARGUMENT_SHARED, LW_ARGUMENT_WRITE, Text,
};
use loopwright_backend::Argument;
use loopwright_kernel::interpret::Layout;
use loopwright_kernel::{Access, Function, FunctionKind, Module, Space, Type};
use loopwright_ops::DType;
use smallvec::SmallVec;

/// With up to so many arguments a call needs no memory of its own.
const FEW: usize = 16;

/// What a kernel takes.
pub(crate) struct Signature {
    pub(crate) group: [u32; 3],
    params: Vec<Param>,
}

struct Param {
    name: String,
    kind: Kind,
}

enum Kind {
    Scalar(DType),
    Buffer {
        written: bool,
        align: usize,
        /// Of its elements; `None` where they are structures.
        dtype: Option<DType>,
    },
}

/// The arguments of one call, in the words of the ABI.
pub(crate) struct Arguments {
    /// By argument: a scalar's bits.
    scalars: SmallVec<[u64; FEW]>,
    words: SmallVec<[abi::Argument; FEW]>,
}

/// A text of the ABI for one that outlives its use.
pub(crate) fn text_of(text: &str) -> Text {
    Text {
        start: text.as_ptr().cast(),
        length: text.len(),
    }
}

impl Signature {
    /// What a kernel of a module takes; an error where that is nothing a call can give.
    pub(crate) fn of(module: &Module, function: &Function) -> Result<Signature, String> {
        let group = match function.kind {
            FunctionKind::Kernel { group } => group.unwrap_or([1; 3]),
            FunctionKind::Device => [1; 3],
        };
        let params = function.params.iter().map(|param| {
            let info = &function.values[param.value.0 as usize];
            let kind = match &info.ty {
                Type::Scalar(dtype) => Kind::Scalar(*dtype),
                Type::Pointer(Space::Global | Space::Constant, pointee) => Kind::Buffer {
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
            Ok(Param {
                name: info.name.clone(),
                kind,
            })
        });
        Ok(Signature {
            group,
            params: params.collect::<Result<_, _>>()?,
        })
    }

    /// Checks the arguments of a call, and puts them into the words of the ABI.
    pub(crate) fn arguments(&self, given: &mut [Argument<'_>]) -> Result<Arguments, String> {
        if given.len() != self.params.len() {
            let (takes, got) = (self.params.len(), given.len());
            return Err(format!("it takes {takes} arguments, not {got}"));
        }
        let mut scalars: SmallVec<[u64; FEW]> = SmallVec::from_elem(0, given.len());
        let mut words: SmallVec<[abi::Argument; FEW]> = SmallVec::with_capacity(given.len());
        for ((argument, param), scalar) in given.iter_mut().zip(&self.params).zip(&mut scalars) {
            words.push(param.word(argument, scalar)?);
        }
        Ok(Arguments { scalars, words })
    }
}

impl Arguments {
    /// The arguments. Where the scalars lie is only known now: few of them move with this.
    pub(crate) fn words(&mut self) -> &[abi::Argument] {
        for (word, scalar) in self.words.iter_mut().zip(&mut self.scalars) {
            if word.kind == LW_ARGUMENT_SCALAR {
                word.memory = std::ptr::from_mut(scalar).cast();
            }
        }
        &self.words
    }
}

impl Param {
    /// An argument in the words of the ABI; of a scalar, all but where it lies.
    fn word(&self, argument: &mut Argument<'_>, scalar: &mut u64) -> Result<abi::Argument, String> {
        let name = &self.name;
        let (kind, start, bytes) = match argument {
            Argument::Scalar(value) => {
                let Kind::Scalar(dtype) = self.kind else {
                    return Err(format!("`{name}` is a buffer, not a scalar"));
                };
                if value.dtype() != dtype {
                    return Err(format!("`{name}` is {dtype}, not {}", value.dtype()));
                }
                // As `Scalar::write` does it: the lowest byte first.
                *scalar = value.bits().to_le();
                return Ok(abi::Argument {
                    kind: LW_ARGUMENT_SCALAR,
                    dtype: dtype as u32,
                    memory: std::ptr::null_mut(),
                    bytes: dtype.bytes() as u64,
                    name: text_of(name),
                });
            }
            Argument::Read(buffer) => (LW_ARGUMENT_READ, buffer.as_ptr().cast_mut(), buffer.len()),
            Argument::Write(buffer) => (LW_ARGUMENT_WRITE, buffer.as_mut_ptr(), buffer.len()),
            // Through the slice: `Cell::as_ptr` of the first would reach that byte only.
            Argument::Shared(buffer) => (
                LW_ARGUMENT_SHARED,
                buffer.as_ptr().cast_mut().cast(),
                buffer.len(),
            ),
        };
        match &self.kind {
            Kind::Scalar(dtype) => Err(format!("`{name}` is a {dtype}, not a buffer")),
            Kind::Buffer { written: true, .. } if kind == LW_ARGUMENT_READ => {
                Err(format!("it writes to `{name}`, which is read-only"))
            }
            Kind::Buffer { align, .. } if bytes > 0 && !start.addr().is_multiple_of(*align) => Err(
                format!("the buffer for `{name}` must be aligned to {align} bytes"),
            ),
            Kind::Buffer { dtype, .. } => Ok(abi::Argument {
                kind,
                dtype: dtype.map_or(0, |dtype| dtype as u32),
                memory: start.cast(),
                bytes: bytes as u64,
                name: text_of(name),
            }),
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
/// elements'.
fn alignment(module: &Module, ty: &Type) -> usize {
    match element(ty) {
        Some(dtype) => dtype.bytes(),
        None => Layout::of(module, ty).map_or(1, |layout| layout.align as usize),
    }
}
