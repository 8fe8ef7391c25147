//! A loaded library and the calls into it.

use crate::NAME;
use crate::machine;
use crate::parallel::Runtime;
use libloading::Library;
use loopwright_backend::{Argument, BackendError, Executable};
use loopwright_emit::Emitted;
use loopwright_kernel::{Access, Function, FunctionKind, Module, Space, Type};
use loopwright_ops::DType;
use std::collections::HashMap;
use std::ffi::c_void;
use std::num::NonZero;
use std::path::Path;

/// The entry point of a kernel, as [`loopwright_emit::C`] writes it.
type Entry = unsafe extern "C" fn(arguments: *const *mut c_void, runtime: *const Runtime);

/// A module in memory.
pub(crate) struct CcExecutable {
    kernels: HashMap<String, Kernel>,
    source: String,
    cached: bool,
    threads: NonZero<usize>,
    /// Holds what the entries point into; dropped last, being the last field.
    _library: Library,
}

struct Kernel {
    entry: Entry,
    params: Vec<Param>,
    group: [u32; 3],
}

struct Param {
    name: String,
    kind: ParamKind,
}

enum ParamKind {
    Scalar(DType),
    Buffer { written: bool, align: usize },
}

impl CcExecutable {
    /// Loads a library that was compiled from `emitted`.
    pub(crate) fn load(
        module: &Module,
        emitted: Emitted,
        path: &Path,
        cached: bool,
    ) -> Result<CcExecutable, BackendError> {
        let library = open(path)?;
        let functions: HashMap<&str, &Function> = module
            .functions
            .iter()
            .map(|function| (function.name.as_str(), function))
            .collect();
        let mut kernels = HashMap::with_capacity(emitted.kernels.len());
        for kernel in &emitted.kernels {
            // SAFETY: the library was made from text in which this symbol is a function of this
            // type; a cached one has the checksum that was taken when it was made.
            let entry = unsafe { library.get::<Entry>(kernel.symbol.as_bytes()) };
            let entry = *entry.map_err(|error| BackendError::File {
                action: "find a kernel in",
                path: path.display().to_string(),
                reason: error.to_string(),
            })?;
            let function = functions[kernel.name.as_str()];
            let params = params(module, function)?;
            let group = match function.kind {
                FunctionKind::Kernel { group } => group.unwrap_or([1; 3]),
                FunctionKind::Device => [1; 3],
            };
            kernels.insert(
                kernel.name.clone(),
                Kernel {
                    entry,
                    params,
                    group,
                },
            );
        }
        let threads = usize::try_from(machine::target().threads).unwrap_or(1);
        Ok(CcExecutable {
            kernels,
            source: emitted.source,
            cached,
            threads: NonZero::new(threads).unwrap_or(NonZero::<usize>::MIN),
            _library: library,
        })
    }
}

/// Loads a library, with all its symbols at once and none of them visible to others.
fn open(path: &Path) -> Result<Library, BackendError> {
    // SAFETY: the library comes from a compiler run in a private directory, or from a cache that
    // only this user can write to, and has no initialisers.
    #[cfg(unix)]
    let library = unsafe {
        use libloading::os::unix;
        unix::Library::open(Some(path), unix::RTLD_NOW | unix::RTLD_LOCAL).map(Library::from)
    };
    // SAFETY: as above.
    #[cfg(not(unix))]
    let library = unsafe { Library::new(path) };
    library.map_err(|error| BackendError::File {
        action: "load",
        path: path.display().to_string(),
        reason: error.to_string(),
    })
}

/// What a kernel's parameters take.
fn params(module: &Module, function: &Function) -> Result<Vec<Param>, BackendError> {
    function
        .params
        .iter()
        .map(|param| {
            let info = &function.values[param.value.0 as usize];
            let kind = match &info.ty {
                Type::Scalar(dtype) => ParamKind::Scalar(*dtype),
                Type::Pointer(Space::Global | Space::Constant, pointee) => ParamKind::Buffer {
                    written: param.access != Access::Read,
                    align: alignment(module, pointee),
                },
                other => {
                    return Err(BackendError::Unsupported {
                        backend: NAME.to_owned(),
                        kernel: function.name.clone(),
                        reason: format!(
                            "its parameter `{}` is {other:?}; kernels take scalars and buffers",
                            info.name
                        ),
                    });
                }
            };
            Ok(Param {
                name: info.name.clone(),
                kind,
            })
        })
        .collect()
}

/// The alignment that compiled code counts on for elements of a type. Vectors behind a pointer need
/// only their elements', but in a struct they are aligned to their size.
fn alignment(module: &Module, ty: &Type) -> usize {
    match ty {
        Type::Scalar(dtype) | Type::Vector(dtype, _) => dtype.bytes(),
        Type::Array(element, _) => alignment(module, element),
        Type::Struct(id) => module.structs[id.0 as usize]
            .fields
            .iter()
            .map(|(_, field)| field_alignment(module, field))
            .max()
            .unwrap_or(1),
        Type::Pointer(..) => align_of::<*const c_void>(),
        Type::Tile(tile) => tile.dtype.bytes(),
    }
}

fn field_alignment(module: &Module, ty: &Type) -> usize {
    match ty {
        Type::Vector(dtype, lanes) => dtype.bytes() * *lanes as usize,
        Type::Array(element, _) => field_alignment(module, element),
        _ => alignment(module, ty),
    }
}

impl Executable for CcExecutable {
    fn run(&self, name: &str, arguments: &mut [Argument<'_>]) -> Result<(), BackendError> {
        let wrong = |reason: String| BackendError::Call {
            kernel: name.to_owned(),
            reason,
        };
        let kernel = self
            .kernels
            .get(name)
            .ok_or_else(|| wrong("the module has no kernel of that name".to_owned()))?;
        if arguments.len() != kernel.params.len() {
            return Err(wrong(format!(
                "it takes {} arguments, not {}",
                kernel.params.len(),
                arguments.len()
            )));
        }
        // Every scalar's own eight bytes; not moved once pointers to them are taken.
        let mut scalars = vec![0u64; arguments.len()];
        let mut pointers: Vec<*mut c_void> = Vec::with_capacity(arguments.len());
        for ((argument, param), word) in arguments.iter_mut().zip(&kernel.params).zip(&mut scalars)
        {
            let aligned = |address: *const u8, bytes: usize, align: usize| {
                if bytes > 0 && !address.addr().is_multiple_of(align) {
                    return Err(wrong(format!(
                        "the buffer for `{}` must be aligned to {align} bytes",
                        param.name
                    )));
                }
                Ok(())
            };
            pointers.push(match (argument, &param.kind) {
                (Argument::Scalar(scalar), ParamKind::Scalar(dtype)) => {
                    if scalar.dtype() != *dtype {
                        return Err(wrong(format!(
                            "`{}` is {dtype}, not {}",
                            param.name,
                            scalar.dtype()
                        )));
                    }
                    let mut bytes = [0; 8];
                    scalar.write(&mut bytes);
                    *word = u64::from_ne_bytes(bytes);
                    std::ptr::from_mut(word).cast()
                }
                (
                    Argument::Read(buffer),
                    ParamKind::Buffer {
                        written: false,
                        align,
                    },
                ) => {
                    aligned(buffer.as_ptr(), buffer.len(), *align)?;
                    buffer.as_ptr().cast_mut().cast()
                }
                (Argument::Write(buffer), ParamKind::Buffer { align, .. }) => {
                    aligned(buffer.as_ptr(), buffer.len(), *align)?;
                    buffer.as_mut_ptr().cast()
                }
                (Argument::Read(_), ParamKind::Buffer { written: true, .. }) => {
                    return Err(wrong(format!(
                        "it writes to `{}`, which is read-only",
                        param.name
                    )));
                }
                (Argument::Scalar(_), ParamKind::Buffer { .. }) => {
                    return Err(wrong(format!("`{}` is a buffer, not a scalar", param.name)));
                }
                (Argument::Read(_) | Argument::Write(_), ParamKind::Scalar(dtype)) => {
                    return Err(wrong(format!(
                        "`{}` is a {dtype}, not a buffer",
                        param.name
                    )));
                }
            });
        }
        let runtime = Runtime::new(&self.threads, kernel.group);
        // SAFETY: the arguments are as many and of the kinds that the entry point takes, aligned as
        // it needs; buffers that it writes are exclusively borrowed, and the others outlive the call.
        // That accesses stay within the buffers is what the caller states by passing them to a
        // validated module.
        unsafe { (kernel.entry)(pointers.as_ptr(), &runtime) };
        Ok(())
    }

    fn code(&self) -> String {
        self.source.clone()
    }

    fn from_cache(&self) -> bool {
        self.cached
    }
}
