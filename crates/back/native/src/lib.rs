//! Calling native kernels: what every backend shares that makes machine code in this process.
//!
//! A kernel's machine code is entered through an [`Entry`]: a table with a pointer for each argument,
//! and a [`Runtime`] that it calls back to run parallel loops and asks about its work-items. A backend
//! finds the entries in what it made and hands them to a [`NativeExecutable`], which checks arguments
//! against the kernel's parameters, prepares calls, and keeps the code for as long as it can be called.
//! [`target`] says what this machine can do.
//!
//! ```
//! use loopwright_backend::{Argument, Executable};
//! use loopwright_kernel::{Access, Builder, FunctionKind, Module, Space};
//! use loopwright_native::{Made, NativeExecutable, Runtime};
//! use loopwright_ops::{DType, Scalar};
//! use std::ffi::c_void;
//!
//! // What a compiler would make of the kernel below.
//! unsafe extern "C" fn store(arguments: *const *mut c_void, _: *const Runtime) {
//!     unsafe { *(*arguments).cast::<f32>() = *(*arguments.add(1)).cast::<f32>() }
//! }
//!
//! let mut b = Builder::new("store", FunctionKind::Kernel { group: None });
//! let out = b.param_ptr(DType::F32, Space::Global, "out", Access::Write, true);
//! let x = b.param_scalar(DType::F32, "x");
//! let zero = b.const_i64(0);
//! b.store(out, zero, x);
//! let module = Module { functions: vec![b.finish()].into(), ..Module::default() };
//!
//! let made = Made { code: "(machine code)".to_owned(), ..Made::default() };
//! let executable = NativeExecutable::new("example", &module, |_| Ok(store as _), made, ())?;
//! let mut words = [0f32];
//! let bytes: &mut [u8] = unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), 4) };
//! // SAFETY: as above.
//! unsafe { executable.run("store", &mut [Argument::Write(bytes), Argument::Scalar(Scalar::f32(2.5))]) }?;
//! assert_eq!(words, [2.5]);
//! # Ok::<(), loopwright_backend::BackendError>(())
//! ```

mod executable;
mod library;
mod machine;
mod runtime;

pub use executable::{Entry, Made, NativeExecutable};
pub use library::SharedLibrary;
pub use machine::target;
pub use runtime::{Runtime, Task, run_parallel};
