//! The primitives that the protocols of this crate are written with.
//!
//! Everything that synchronises says `crate::sync`, so that the same files can be compiled against a
//! model checker's primitives: `tests/model.rs` and `tests/weak_memory.rs` have a `sync` of their own.

pub(crate) use crate::fences::{prepare_fences, sleeper_fence, waker_fence};
pub(crate) use crate::fork::generation;
pub(crate) use crate::interrupt::is_told_to_end;
use crate::interrupt::{TICK as QUESTIONS, is_interruptible};
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard};
pub(crate) use std::thread;

/// Who waits: how long it looks before it sleeps, and, in a model, whose wake-ups are taken away.
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
    /// Somebody who waits for a short lock.
    Lock,
}

/// Looks for a short while, with so many [pauses](std::hint::spin_loop) before each look, and says
/// whether it became ready.
pub(crate) fn looks(sleeper: Sleeper, pauses: impl Fn() -> u32, ready: impl Fn() -> bool) -> bool {
    // Loops come in rows, and a worker that sleeps between them is woken too late for each: it looks
    // longer, half a millisecond where nobody else wants the core. Who waits for the last piece of a loop looks for some
    // tens of microseconds, as long as pieces often are, and as it takes to wake up. The others look for a microsecond or
    // two, some times what a task takes to another core and back, and then let others have the core: on a machine
    // with fewer cores than threads it may be them that are waited for.
    let (looks, turns) = match sleeper {
        Sleeper::LoopWorker => (100, 1000),
        Sleeper::LoopCaller => (100, 200),
        Sleeper::Consumer | Sleeper::Producer | Sleeper::EventWaiter | Sleeper::Lock => (50, 20),
    };
    for _ in 0..looks {
        for _ in 0..pauses() {
            std::hint::spin_loop();
        }
        if ready() {
            return true;
        }
    }
    for _ in 0..turns {
        thread::yield_now();
        if ready() {
            return true;
        }
    }
    false
}

/// Lies on both sides between saying something and looking what the other said: one of the two sees the other.
pub(crate) fn meeting_fence() {
    std::sync::atomic::fence(Ordering::SeqCst);
}

/// Parks, and asks from time to time whether the work that this thread does is to end.
pub(crate) fn park() {
    match is_interruptible() {
        true => {
            thread::park_timeout(QUESTIONS);
            // The answer is for those that this thread waits for; it goes on waiting for them to end.
            is_told_to_end();
        }
        false => thread::park(),
    }
}

/// Waits for a condition, at most so long that the question whether to wait on can be put.
pub(crate) fn wait_a_while<'a>(
    condition: &Condvar,
    gate: MutexGuard<'a, ()>,
) -> MutexGuard<'a, ()> {
    match is_interruptible() {
        true => match condition.wait_timeout(gate, QUESTIONS) {
            Ok((gate, _)) => gate,
            Err(poisoned) => poisoned.into_inner().0,
        },
        false => match condition.wait(gate) {
            Ok(gate) => gate,
            Err(poisoned) => poisoned.into_inner(),
        },
    }
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
