//! The primitives that the protocols of this crate are written with.
//!
//! Everything that synchronises says `crate::sync`, so that the same files can be compiled against a
//! model checker's primitives: `tests/model.rs` and `tests/weak_memory.rs` have a `sync` of their own.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard};
pub(crate) use std::thread;

/// How often a waiter looks before it sleeps. With [`pause`], some microseconds where the core is not
/// wanted by others: about what a sleep and a wake-up cost.
pub(crate) const LOOKS: u32 = 128;

/// Passes the time between two looks.
pub(crate) fn pause(look: u32) {
    // The last looks let others run: they may be what is waited for, on a machine with fewer cores
    // than threads.
    if look < LOOKS - 8 {
        std::hint::spin_loop();
    } else {
        thread::yield_now();
    }
}

/// Who is woken. Only a model looks at it, to take away the wake-ups of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sleeper {
    /// The consumer of a queue, waiting for an item.
    Consumer,
    /// The producer of a queue, waiting for space.
    Producer,
    /// Somebody who waits for an event.
    EventWaiter,
    /// A worker of a fork-join pool, waiting for a loop.
    LoopWorker,
    /// Who started a loop, waiting for its end.
    LoopCaller,
}

/// Wakes a thread that parks.
pub(crate) fn unpark(thread: &thread::Thread, _sleeper: Sleeper) {
    thread.unpark();
}

/// Wakes all that wait for a condition.
pub(crate) fn notify_all(condition: &Condvar, _sleeper: Sleeper) {
    condition.notify_all();
}

/// A cell whose accesses a model can watch.
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    pub(crate) fn new(value: T) -> UnsafeCell<T> {
        UnsafeCell(std::cell::UnsafeCell::new(value))
    }

    /// Gives the address for reading; using it is what is unsafe.
    pub(crate) fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        read(self.0.get())
    }

    /// Gives the address for writing; using it is what is unsafe.
    pub(crate) fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        write(self.0.get())
    }
}
