//! A thread's place to sleep in until another has something for it: of the workers of `fork_join.rs` and of the queues of
//! `queue.rs`.

use crate::sync::{
    AtomicBool, Mutex, MutexGuard, Ordering, Sleeper, looks, park, prepare_fences, sleeper_fence,
    thread, unpark, waker_fence,
};

/// Where one thread at a time sleeps.
pub(crate) struct Parker {
    asleep: AtomicBool,
    thread: Mutex<Option<thread::Thread>>,
    sleeper: Sleeper,
}

impl Parker {
    pub(crate) fn new(sleeper: Sleeper) -> Parker {
        prepare_fences();
        Parker {
            asleep: AtomicBool::new(false),
            thread: Mutex::new(None),
            sleeper,
        }
    }

    /// Returns once `ready` is true: looks for a short while, then sleeps between looks.
    ///
    /// Whoever makes it true calls [`wake`](Parker::wake) afterwards.
    pub(crate) fn wait_until(&self, ready: impl Fn() -> bool) {
        self.wait_pausing(|| 1, ready);
    }

    /// [`wait_until`](Parker::wait_until), with so many pauses between looks.
    pub(crate) fn wait_pausing(&self, pauses: impl Fn() -> u32, ready: impl Fn() -> bool) {
        if looks(self.sleeper, pauses, &ready) {
            return;
        }
        *lock(&self.thread) = Some(thread::current());
        loop {
            // Released, so that who reads it finds the thread's handle too; an exchange, so that it
            // comes after the exchange of one who came too late to wake the last time.
            self.asleep.swap(true, Ordering::AcqRel);
            // With the fence in `wake`: either `ready` sees what was published, or the one who
            // published it sees `asleep`.
            sleeper_fence();
            if ready() {
                self.asleep.store(false, Ordering::Relaxed);
                return;
            }
            park();
        }
    }

    /// Wakes the sleeper, if there is one, after something was published for it.
    #[inline]
    pub(crate) fn wake(&self) {
        waker_fence();
        self.wake_after_fence();
    }

    /// [`wake`](Parker::wake), where a fence already lies between publishing and this.
    #[inline]
    pub(crate) fn wake_after_fence(&self) {
        // The load keeps the usual case, nobody asleep, free of writes to a shared line.
        if self.asleep.load(Ordering::Relaxed) {
            self.wake_sleeper();
        }
    }

    #[cold]
    fn wake_sleeper(&self) {
        if self.asleep.swap(false, Ordering::AcqRel)
            && let Some(thread) = &*lock(&self.thread)
        {
            unpark(thread, self.sleeper);
        }
    }
}

/// Locks; nothing that is kept under a lock here can be left half done by a panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    match mutex.lock() {
        Ok(guard) => guard,
        Err(poisoned) => poisoned.into_inner(),
    }
}
