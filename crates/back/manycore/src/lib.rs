//! The backend `manycore`: an accelerator with memory and a loader of its own, simulated.
//!
//! It stands for hardware like the Epiphany: a grid of plain cores with some KiB of local memory each, beside a memory
//! that the host cannot address, reached through a narrow window. Nothing above a backend may assume that memory is
//! local, or that code is loaded into the host's process; this backend has neither, so that every such assumption shows.
//! It is chosen by its name; `auto` never takes it.
//!
//! An accelerator is a process of its own. Its firmware is a C program (the folder `firmware`), compiled at the first
//! need. What it shares with the host:
//!
//! - a **window** of 256 KiB, a file in memory that both map, with a page for requests and answers, and data behind it;
//! - a **doorbell**, a pair of sockets on which each tells the other to look.
//!
//! Over these go the commands: allocate and free a slab, move data between the window and a slab, load an image piece by
//! piece, find an entry in it, launch one, unload. Slabs, programs and entries are numbers on the host's side; the
//! accelerator checks every number and every range. One command is under way at a time, whoever gives it.
//!
//! A kernel becomes C ([`loopwright_emit`]) and an image through a compiler run of its own, with the flags that `cc` uses
//! to keep every rounding: results agree bit for bit with the interpreter's. The firmware links the image into its process
//! and runs the entry on the first core; parallel loops are spread over all of them. A core is a thread whose stack is
//! its local memory. What needs more is refused when it is compiled: private arrays by
//! [`Capabilities`](loopwright_backend::Capabilities), everything by what the compiler says of its frames.
//!
//! An accelerator that crashes, or that does not end a command in time and is stopped for that, is lost with what was on
//! it; the error says which kernel ran and how it ended. The host goes on, and whoever opens the backend anew gets a new
//! accelerator. It ends with the last handle, slab or launch of it, and automatically when the host is gone.
//!
//! | variable | meaning |
//! | --- | --- |
//! | `LOOPWRIGHT_MANYCORE_DEVICES` | how many accelerators there are, 1 if not set |
//! | `LOOPWRIGHT_MANYCORE_CORES` | cores of each, 16 if not set |
//! | `LOOPWRIGHT_MANYCORE_MEMORY` | MiB of memory of each, 512 if not set |
//! | `LOOPWRIGHT_MANYCORE_TIMEOUT` | seconds after which one that does not answer is stopped, 60 if not set |
//!
//! The compiler is found as `cc` finds it (`LOOPWRIGHT_CC`).
//!
//! ```
//! use loopwright_backend::{DeviceBackend, Describe};
//! use loopwright_manycore::{Manycore, Settings};
//!
//! let backend = Manycore::new(Settings { cores: 4, ..Settings::default() });
//! if backend.availability().is_ok() {
//!     let device = &backend.devices()[0];
//!     assert!(!device.limits().host_memory);
//!     let slab = device.allocate(6)?;
//!     assert!(slab.address().is_none());
//!     let mut bytes = [1; 4];
//!     // SAFETY: nobody else has the slab, and all of this lies within it.
//!     unsafe {
//!         slab.write(3, b"abc")?;
//!         slab.read(2, &mut bytes)?;
//!     }
//!     assert_eq!(&bytes, b"\0abc");
//!     assert_eq!(backend.counters().uploaded_bytes, 3);
//! }
//! # Ok::<(), loopwright_backend::DeviceError>(())
//! ```

#![cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, reason = "elsewhere nothing can be started")
)]

#[cfg(target_os = "linux")]
mod code;
mod counters;
#[cfg(target_os = "linux")]
mod device;
mod error;
#[cfg(target_os = "linux")]
mod machine;
mod protocol;
mod settings;
#[cfg(target_os = "linux")]
mod shared;
#[cfg(target_os = "linux")]
mod stack;
#[cfg(all(test, target_os = "linux"))]
mod tests;
#[cfg(target_os = "linux")]
mod toolchain;
#[cfg(target_os = "linux")]
mod window;

#[cfg(target_os = "linux")]
mod backend;
#[cfg(not(target_os = "linux"))]
#[path = "elsewhere.rs"]
mod backend;

pub use backend::Manycore;
pub use counters::Counters;
pub use error::ManycoreError;
pub use settings::Settings;

/// The backend's name.
pub const NAME: &str = "manycore";

loopwright_backend::register_backend!(-10, || {
    // One for all who ask, so that there are as many accelerators as there are said to be.
    static ONE: loopwright_threads::PerProcess<Manycore> = loopwright_threads::PerProcess::new();
    let backend = ONE.get_or_init(Manycore::from_env).clone();
    loopwright_backend::Backend::device_backend(backend)
});
