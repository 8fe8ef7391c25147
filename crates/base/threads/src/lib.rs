//! Threads for compiled code: queues of tasks with a worker each, and parallel loops.
//!
//! A [`TaskQueue`] runs tasks in the order they were pushed, on a thread of its own. [`record`] gives
//! an [`Event`], the point behind everything pushed so far, which any thread can ask or wait for.
//!
//! A [`ForkJoin`] pool spreads the iterations of one loop over threads and returns when all of them
//! ran. Kernels run their parallel loops on the one that the process has, [`ForkJoin::global`], whose size
//! [`ForkJoin::configure`] sets.
//!
//! ```
//! use loopwright_threads::{ForkJoin, Job, TaskQueue};
//! use std::num::NonZero;
//! use std::sync::Arc;
//! use std::sync::atomic::{AtomicUsize, Ordering};
//!
//! let capacity = NonZero::new(64).expect("not zero");
//! let mut queue = TaskQueue::new("cpu:0", capacity)?;
//! let sum = Arc::new(AtomicUsize::new(0));
//! let result = Arc::clone(&sum);
//! queue.push(Job::new("sum", move || {
//!     ForkJoin::global()?.run(100, &|iterations| {
//!         sum.fetch_add(iterations.sum(), Ordering::Relaxed);
//!     });
//!     Ok(())
//! }))?;
//! let summed = queue.record();
//! summed.wait()?;
//! assert_eq!(result.load(Ordering::Relaxed), 4950);
//!
//! queue.push(Job::new("fail", || Err("out of luck".into())))?;
//! let error = queue.wait().expect_err("the task failed");
//! assert_eq!(error.to_string(), "queue `cpu:0`: task `fail` failed: out of luck");
//! assert!(summed.wait().is_ok(), "what ended before the failure stays right");
//! # Ok::<(), loopwright_threads::ThreadsError>(())
//! ```
//!
//! **Failure.** A task that returns an error or panics poisons its queue: what is behind it is dropped
//! without being run, every waiter wakes, and waiting or pushing gives the [`Failure`]. Nobody waits
//! forever, and other queues are not touched.
//!
//! **Waiting.** An idle worker spins a short while and then parks. Whoever has something for
//! a parked worker publishes it, issues a fence, and checks whether somebody is parked; the worker announces that it
//! parks, issues a fence, and checks once more. One of the two sees the other. (On Linux the worker has the
//! kernel issue both fences, so that publishing does not pay for one.) This protocol and all that
//! is built on it is compiled a second time against the primitives of model checkers: by
//! `tests/model.rs` for thousands of random schedules, by `tests/weak_memory.rs` for every schedule with
//! few preemptions and every order of memory. Both also show that taking a wake-up away is found, the
//! second one for each of the two fences too, and for the one between a loop that ends and who joins it.
//!
//! **Interrupts.** Whoever starts long work says how it is ended from outside; see [`interrupt`]. Waiting for an event and joining a
//! loop ask, too.
//!
//! **Cost.** Pushing, recording, waiting and running a loop allocate nothing. ([`Job`] is a boxed
//! closure; a [`Task`] type of one's own need not be.)
//!
//! [`record`]: TaskQueue::record

mod affinity;
mod error;
mod event;
mod fences;
mod fork;
mod fork_join;
mod global;
pub mod interrupt;
mod lines;
mod observe;
mod park;
mod per_process;
pub mod queue;
mod short_lock;
mod sync;
mod task_queue;

pub use error::{Cause, Failure, ThreadsError};
pub use event::Event;
pub use fork::{LinkerGuard, ProcessMutex, generation, linker};
pub use fork_join::{ForkJoin, Pinning};
pub use observe::{LoopObserver, LoopThread, observing};
pub use per_process::PerProcess;
pub use short_lock::{ShortGuard, ShortLock};
pub use task_queue::{InlineQueue, Job, Task, TaskQueue};
