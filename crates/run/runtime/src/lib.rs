//! Memory and time for compiled code: devices, streams, contexts, routines.
//!
//! A [`Runtime`] has platforms (backends) with physical devices. A [`Device`] compiles programs to
//! [`Code`], which knows nothing of memory, and has any number of [`Stream`]s, which run work in order. A
//! [`Context`] says which named arrays there are for a stream, and where ([`Loc`]). Linking code to a
//! context gives a [`Routine`]: the arrays that the context lacks are made, in a child context. Names are
//! the links: the output `h` of one program is the input `h` of the next.
//!
//! ```
//! # use loopwright_cc as _; use loopwright_interp as _;
//! use loopwright_graph::parse;
//! use loopwright_runtime::{CodeOptions, LinkOptions, Runtime, RuntimeOptions};
//! use loopwright_text::Source;
//!
//! let program = "loopwright program 1
//! size N = 4
//! static batch in 0 .. 3
//! input x: f32[row=3, i=N]
//! state total: f32[i=N]
//! update total = total + x[batch, i]
//! ";
//! let graph = parse(&Source::new("sum.lw", program)).expect("a program");
//!
//! let runtime = Runtime::new(RuntimeOptions::default());
//! let device = runtime.device("interp")?;
//! let code = device.compile("sum", &graph, &CodeOptions::default())?;
//! let context = device.stream()?.context();
//! let sum = context.link(&code, &LinkOptions::default())?;
//! sum.context().write("x", &[1f32, 2., 3., 4., 10., 20., 30., 40., 100., 200., 300., 400.])?;
//! sum.context().zero("total")?;
//! for batch in 0..3 {
//!     sum.schedule(&[("batch", batch)])?; // the value is captured here
//! }
//! let total = sum.context().read("total")?.expect("the context has it");
//! assert_eq!(total.to_f64(), [111., 222., 333., 444.]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **Memory** comes in pools: what one link adds lies packed in one slab, or several where a pool would
//! pass a cap. Shared code knows `{pool, offset}` alone; addresses stay with the device. Scratch memory of
//! a routine shares bytes where live ranges do not overlap. Constants are on a device once. Everything is given
//! back when its last owner goes, and counted ([`Device::memory`]).
//!
//! **Time.** Scheduling does not wait. Work on one stream runs in order; between streams, the ledger of the
//! runtime finds read-after-write, write-after-read and write-after-write for every array and has the
//! later work wait, on its own stream. All scheduled work has one order, so waits cannot form a cycle.
//!
//! **Failure.** Work that fails poisons its stream: the next touch says which device, stream and routine,
//! and everything behind it is dropped. What depends on it on other streams fails with the same reason;
//! all else goes on, and a new stream of the same device works.
//!
//! **Schedulers.** A plain device does one thing at a time ([`PlainDevice`]); every backend that works in
//! host memory is one through [`HostDevice`], others bring their own. The runtime runs its work inline ([`Scheduler::Sync`]) or gives every stream a
//! worker ([`Scheduler::Threads`]).

#![expect(
    clippy::mutable_key_type,
    reason = "nodes are found by their names, which never change"
)]

mod code;
mod context;
mod device;
mod error;
pub mod faults;
mod guard;
mod host;
mod layout;
mod ledger;
mod memory;
mod modes;
mod node;
mod plan;
mod routine;
mod stream;
mod task;
mod trace;
mod transfer;
mod verify;

pub use code::{Batch, BatchProgram, Code, CodeOptions};
pub use context::{Context, LinkOptions, NodeInfo};
pub use device::{AUTO, Choice, Device, PlatformInfo, Runtime, RuntimeOptions};
pub use error::{Mismatch, RuntimeError};
pub use host::HostDevice;
pub use layout::MERGE;
pub use loopwright_backend::{
    ALIGNMENT, Call, DeviceError, HostMemory, Launch, LaunchArgument, Limits, MemoryAccess,
    PlainDevice, Scheduler, Slab,
};
pub use loopwright_threads::Event;
pub use memory::{Loc, PoolId, Usage};
pub use modes::{Mode, Modes, NodeMode, Provenance, SetAt};
pub use plan::{Plan, Planned, PlannedRole};
pub use routine::Routine;
pub use stream::Stream;
pub use trace::{Span, SpanKind, Trace};
pub use transfer::{Download, Merge};
pub use verify::{Run, Verify};

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks; nothing that is kept under a lock here is left half done by a panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
