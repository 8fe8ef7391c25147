//! Values that every process makes for itself.

use crate::fork::generation;
use std::fmt;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A value that is made at its first use, once in every process: a child that is forked makes its own.
///
/// With a [`OnceLock`] in its place, a child that is forked while another thread makes the value waits for that thread
/// for ever, and one that is forked later has what belongs to its parent: processes, connections, locks that nobody opens.
///
/// ```
/// use loopwright_threads::PerProcess;
///
/// static NUMBER: PerProcess<u32> = PerProcess::new();
/// assert_eq!(*NUMBER.get_or_init(std::process::id), std::process::id());
/// ```
pub struct PerProcess<T> {
    /// The newest first. Only the slot of this process is used; those of its ancestors stay, since threads that were there
    /// when it was forked may have been writing them.
    slots: AtomicPtr<Slot<T>>,
}

struct Slot<T> {
    generation: u64,
    value: OnceLock<T>,
    older: *mut Slot<T>,
}

// SAFETY: the slots are this value's own, as in a `Box`.
unsafe impl<T: Send> Send for PerProcess<T> {}
// SAFETY: through a shared reference, slots are only added, whole, and their values are reached as those of a `OnceLock`.
unsafe impl<T: Send + Sync> Sync for PerProcess<T> {}

impl<T> PerProcess<T> {
    /// Nothing yet.
    pub const fn new() -> PerProcess<T> {
        PerProcess {
            slots: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// The value of this process, if it is made.
    pub fn get(&self) -> Option<&T> {
        self.slot().value.get()
    }

    /// The value of this process, made now if it is not there. Other threads of the process wait meanwhile.
    pub fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        self.slot().value.get_or_init(make)
    }

    fn slot(&self) -> &Slot<T> {
        let generation = generation();
        let mut newest = self.slots.load(Ordering::Acquire);
        loop {
            // SAFETY: a slot that was put here stays until `self` is dropped, and only its `OnceLock` changes.
            match unsafe { newest.as_ref() } {
                Some(slot) if slot.generation == generation => return slot,
                _ => {}
            }
            let slot = Box::into_raw(Box::new(Slot {
                generation,
                value: OnceLock::new(),
                older: newest,
            }));
            let put =
                self.slots
                    .compare_exchange(newest, slot, Ordering::AcqRel, Ordering::Acquire);
            match put {
                // SAFETY: as above.
                Ok(_) => return unsafe { &*slot },
                Err(other) => {
                    // SAFETY: it was made above, and nobody has seen it.
                    drop(unsafe { Box::from_raw(slot) });
                    newest = other;
                }
            }
        }
    }
}

impl<T> Default for PerProcess<T> {
    fn default() -> PerProcess<T> {
        PerProcess::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for PerProcess<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PerProcess").field(&self.get()).finish()
    }
}

impl<T> Drop for PerProcess<T> {
    fn drop(&mut self) {
        let here = generation();
        let mut next = *self.slots.get_mut();
        while !next.is_null() {
            // SAFETY: every slot came from a box, is in the list once, and nobody else has the list any more.
            let slot = unsafe { Box::from_raw(next) };
            next = slot.older;
            // What belongs to an ancestor is its to end; another thread may have been in the middle of making it.
            if slot.generation != here {
                std::mem::forget(slot);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_made_once_and_dropped_with_its_owner() {
        let value = std::sync::Arc::new(());
        let owner = PerProcess::new();
        assert!(owner.get().is_none());
        let made = || std::sync::Arc::clone(&value);
        assert!(ptr::eq(owner.get_or_init(made), owner.get_or_init(made)));
        assert_eq!(std::sync::Arc::strong_count(&value), 2);
        drop(owner);
        assert_eq!(std::sync::Arc::strong_count(&value), 1);
    }

    #[test]
    fn threads_that_ask_together_get_one_value() {
        let owner = PerProcess::new();
        let made = std::sync::atomic::AtomicU32::new(0);
        let addresses: Vec<usize> = std::thread::scope(|scope| {
            let ask = || owner.get_or_init(|| made.fetch_add(1, Ordering::Relaxed));
            let threads: Vec<_> = (0..8)
                .map(|_| scope.spawn(move || ptr::from_ref(ask()) as usize))
                .collect();
            let addresses = threads.into_iter().map(|thread| thread.join());
            addresses
                .map(|address| address.expect("no thread panics"))
                .collect()
        });
        assert_eq!(made.into_inner(), 1);
        assert!(addresses.iter().all(|address| *address == addresses[0]));
    }

    /// The child makes its own while a thread of its parent is in the middle of making the parent's.
    #[cfg(unix)]
    #[test]
    fn a_forked_child_does_not_wait_for_a_value_that_its_parent_is_making() {
        static VALUE: PerProcess<u32> = PerProcess::new();
        let (begun, wait) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        generation();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                VALUE.get_or_init(|| {
                    begun.send(()).expect("the test waits");
                    ended.recv().expect("the test goes on");
                    1
                })
            });
            wait.recv().expect("the thread begins");
            // SAFETY: the child does nothing but look at the value, and ends at once; an alarm ends it where it hangs.
            let child = unsafe { libc::fork() };
            if child == 0 {
                // SAFETY: plain system calls.
                unsafe {
                    libc::alarm(20);
                    libc::_exit(i32::from(*VALUE.get_or_init(|| 2) != 2));
                }
            }
            let mut status = 0;
            // SAFETY: waits for the child from above.
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
            assert_eq!(status, 0, "the child makes a value of its own");
            end.send(()).expect("the thread waits");
        });
        assert_eq!(VALUE.get(), Some(&1));
    }
}
