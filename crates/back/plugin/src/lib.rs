//! Backends that come as shared libraries: plug-ins.
//!
//! A plug-in has one symbol, `loopwright_plugin`, which gives a table: what the plug-in is, what it can do,
//! and its functions. The border is plain C ([`abi`], and the header made from it,
//! `include/loopwright_plugin.h`), so that a plug-in can be written in any language and built with any
//! compiler. Programs cross it as text: kernels in their own form or as C, or whole programs with their
//! schedules.
//!
//! **The host** loads a file with [`load`], a directory with [`scan`], and what is configured with
//! [`load_all`]; [`Plugin::register`] makes it a backend like those that are linked in. A plug-in runs in
//! this process with its rights, so files that others could have changed are refused, and so is a plug-in
//! whose table makes no sense. One that breaks its word later gives errors that name it. One that crashes
//! takes the process with it: that cannot be caught.
//!
//! **Authors in Rust** write a [`KernelBackend`](loopwright_backend::KernelBackend), a
//! [`LoopBackend`](loopwright_backend::LoopBackend) or a
//! [`DeviceBackend`](loopwright_backend::DeviceBackend) in a crate of the type `cdylib`, and one line:
//!
//! ```
//! use loopwright_backend::{BackendError, CompileOptions, Describe, Executable, KernelBackend};
//! use loopwright_kernel::{FunctionId, Module};
//! use std::sync::Arc;
//!
//! struct Mine;
//!
//! impl Describe for Mine {
//!     fn name(&self) -> &str {
//!         "mine"
//!     }
//! }
//!
//! impl KernelBackend for Mine {
//!     fn compile(
//!         &self,
//!         module: &Module,
//!         _: &CompileOptions,
//!     ) -> Result<Arc<dyn Executable>, BackendError> {
//!         Err(BackendError::Unsupported {
//!             backend: "mine".to_owned(),
//!             kernel: module.functions[FunctionId(0)].name.clone(),
//!             reason: "it is not written yet".to_owned(),
//!         })
//!     }
//! }
//!
//! loopwright_plugin::export_plugin!(Mine, 10);
//!
//! # fn main() {
//! // The tests of the crate can go through the border without a file.
//! // SAFETY: the entry point is the one that the line above has made.
//! let plugin = unsafe { loopwright_plugin::from_entry(loopwright_plugin, "mine".as_ref()) };
//! let plugin = plugin.expect("the table is right");
//! assert_eq!((plugin.name(), plugin.priority()), ("mine", 10));
//! # }
//! ```
//!
//! Complete examples, one in Rust and one in C, are in `examples/plugins`.

pub mod abi;
mod arguments;
#[doc(hidden)]
pub mod author;
mod author_devices;
mod devices;
mod error;
mod host;
mod kernels;
mod library;
mod load;
mod loaded;
mod loops;
mod table;
mod trust;

pub use error::PluginError;
pub use load::{Plugin, Problem, from_entry, load, load_all, scan};
