//! A lock for short sections.

use crate::sync::{AtomicBool, Ordering, Sleeper, UnsafeCell, looks, thread};
use std::ops::{Deref, DerefMut};

/// A lock that is held for some tens of nanoseconds at a time, and never while its holder waits.
///
/// Letting go is a plain store. That of a [`std::sync::Mutex`] is an exchange, which first has to see all
/// stores before it done: after a push to a queue those are to lines that another core has just read, and
/// the exchange then took two thirds of the time of the whole section. Who finds it held looks for a while
/// and then gives its core to others, since the holder may be one that waits for it.
pub struct ShortLock<T> {
    held: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached by whoever holds the lock, one thread at a time; so it moves between threads.
unsafe impl<T: Send> Sync for ShortLock<T> {}
// SAFETY: the value is owned.
unsafe impl<T: Send> Send for ShortLock<T> {}

impl<T> ShortLock<T> {
    /// A lock that nobody holds.
    pub fn new(value: T) -> ShortLock<T> {
        ShortLock {
            held: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    /// Takes the lock, after waiting where somebody holds it.
    pub fn lock(&self) -> ShortGuard<'_, T> {
        loop {
            if let Some(guard) = self.try_lock() {
                return guard;
            }
            let free = || !self.held.load(Ordering::Relaxed);
            if !looks(Sleeper::Lock, || 1, free) {
                thread::yield_now();
            }
        }
    }

    /// Takes the lock if nobody holds it.
    pub fn try_lock(&self) -> Option<ShortGuard<'_, T>> {
        let held = self.held.swap(true, Ordering::Acquire);
        (!held).then(|| ShortGuard { lock: self })
    }
}

/// The lock, held.
pub struct ShortGuard<'a, T> {
    lock: &'a ShortLock<T>,
}

impl<T> Deref for ShortGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this thread holds the lock as long as the guard is there, and shares no other reference
        // while this one is.
        self.lock.value.with(|value| unsafe { &*value })
    }
}

impl<T> DerefMut for ShortGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above; the guard is exclusively borrowed.
        self.lock.value.with_mut(|value| unsafe { &mut *value })
    }
}

impl<T> Drop for ShortGuard<'_, T> {
    fn drop(&mut self) {
        self.lock.held.store(false, Ordering::Release);
    }
}
