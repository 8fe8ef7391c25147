//! What `fork` does to threads: a child has only the one that forked. Pools and queues of the parent are without their workers there,
//! and locks that other threads held are never opened.
//!
//! So everything with workers remembers in which process it was made, by the number of forks before. In a child, a pool runs
//! its loops on the caller's thread, and the process has a new pool; queues refuse, with an error that says what happened. Locks of
//! the whole process are held over a fork ([`hold_over_fork`]), so that they are free in the child.

use crate::park::lock;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, Once};

/// How many forks lie between the first process and this one.
static GENERATION: AtomicU64 = AtomicU64::new(0);

/// Takes a lock of the whole process and gives its guard.
type Hold = fn() -> Box<dyn Any>;

/// The locks that are held over a fork, in the order in which they are taken.
static HOLDS: Mutex<Vec<Hold>> = Mutex::new(Vec::new());

thread_local! {
    /// The guards of those locks, while this thread forks.
    static HELD: RefCell<Vec<Box<dyn Any>>> = const { RefCell::new(Vec::new()) };
}

/// A number that is another one in a child that was forked, from the first call of this on. What has threads remembers it.
///
/// ```
/// use loopwright_threads::generation;
///
/// let made_in = generation();
/// assert_eq!(made_in, generation(), "no fork in between");
/// ```
pub fn generation() -> u64 {
    watch();
    GENERATION.load(Ordering::Relaxed)
}

/// Has a lock of the whole process taken before every fork and let go of after it, in the parent and in the child: so no other
/// thread holds it in the moment of the fork. It must not be held by who forks, nor while its holder waits for another such lock.
pub fn hold_over_fork(hold: Hold) {
    watch();
    lock(&HOLDS).push(hold);
}

/// The same, but for the first caller with a flag only. No `Once`: a child that is forked while one runs waits for its end for ever.
pub(crate) fn hold_once(held: &AtomicBool, hold: Hold) {
    if !held.swap(true, Ordering::AcqRel) {
        hold_over_fork(hold);
    }
}

/// Taken by whoever loads or unloads a shared library. A fork waits for it: the dynamic linker has locks of its own, which no
/// child can open that is forked while another thread is in the linker.
/// What is loaded may fork itself; it must not load anything through this meanwhile.
pub fn linker() -> LinkerGuard {
    static HELD: AtomicBool = AtomicBool::new(false);
    hold_once(&HELD, || match IN_LINKER.get() {
        // Initialisers of a library that is being loaded fork: the child has the thread that holds the lock.
        true => Box::new(()),
        false => Box::new(lock(&LINKER)),
    });
    let held = lock(&LINKER);
    IN_LINKER.set(true);
    LinkerGuard { _held: held }
}

static LINKER: Mutex<()> = Mutex::new(());

thread_local! {
    /// Whether this thread holds the lock of the linker.
    static IN_LINKER: Cell<bool> = const { Cell::new(false) };
}

/// The right to load and unload shared libraries; see [`linker`].
#[must_use = "others may load libraries once it is dropped"]
#[derive(Debug)]
pub struct LinkerGuard {
    _held: MutexGuard<'static, ()>,
}

impl Drop for LinkerGuard {
    fn drop(&mut self) {
        IN_LINKER.set(false);
    }
}

#[cfg(unix)]
fn watch() {
    extern "C" fn prepare() {
        // A thread that ends has no such variable any more; then the locks stay as they are.
        let _ = HELD.try_with(|held| {
            let holds = lock(&HOLDS);
            let mut held = held.borrow_mut();
            held.extend(holds.iter().map(|hold| hold()));
            held.push(Box::new(holds));
        });
    }

    extern "C" fn parent() {
        let _ = HELD.try_with(|held| held.borrow_mut().clear());
    }

    extern "C" fn child() {
        GENERATION.fetch_add(1, Ordering::Relaxed);
        parent();
    }

    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| {
        // SAFETY: the handlers are functions of this library, which stays loaded. Where they cannot be registered, for lack of
        // memory, forks go unnoticed, as without them.
        unsafe { libc::pthread_atfork(Some(prepare), Some(parent), Some(child)) };
    });
}

#[cfg(not(unix))]
fn watch() {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| {});
}
