//! What `fork` does to threads: a child has only the one that forked. Pools and queues of the parent are without their workers there,
//! and locks that other threads held are never opened.
//!
//! So everything with workers remembers in which process it was made, by the number of forks before. In a child, a pool runs
//! its loops on the caller's thread, and the process has a new pool; queues refuse, with an error that says what happened. Locks of
//! the whole process are held over a fork ([`ProcessMutex`]), so that they are free in the child.
//!
//! Nothing here waits in a [`Once`](std::sync::Once) or a [`OnceLock`](std::sync::OnceLock): a child that is forked while another
//! thread is in one waits for that thread for ever.

use crate::park::lock;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

/// How many forks lie between the first process and this one.
static GENERATION: AtomicU64 = AtomicU64::new(0);

/// A lock of the whole process.
trait Hold: Sync {
    /// Takes it, for the time of a fork, and gives its guard.
    #[cfg_attr(not(unix), expect(dead_code, reason = "nothing forks there"))]
    fn hold(&'static self) -> Box<dyn Any>;
}

/// The locks that are held over a fork, in the order in which they are taken.
static HOLDS: Mutex<Vec<&'static dyn Hold>> = Mutex::new(Vec::new());

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

/// A mutex of the whole process, which a fork waits for: no other thread holds it in the moment of the fork, and in the child it
/// is free. It must not be held by who forks, nor while its holder waits for another one.
///
/// ```
/// use loopwright_threads::ProcessMutex;
///
/// static NAMES: ProcessMutex<Vec<&str>> = ProcessMutex::new(Vec::new());
/// NAMES.lock().push("x");
/// assert_eq!(NAMES.lock().len(), 1);
/// ```
#[derive(Debug)]
pub struct ProcessMutex<T> {
    mutex: Mutex<T>,
    held: AtomicBool,
}

impl<T: Send + 'static> ProcessMutex<T> {
    /// With this value.
    pub const fn new(value: T) -> ProcessMutex<T> {
        ProcessMutex {
            mutex: Mutex::new(value),
            held: AtomicBool::new(false),
        }
    }

    /// Locks it. What a panic elsewhere left under the lock is taken as it is.
    pub fn lock(&'static self) -> MutexGuard<'static, T> {
        hold_over_fork(&self.held, self);
        lock(&self.mutex)
    }
}

impl<T: Send + 'static> Hold for ProcessMutex<T> {
    fn hold(&'static self) -> Box<dyn Any> {
        Box::new(lock(&self.mutex))
    }
}

/// Has a lock taken before every fork from now on and let go of after it, in the parent and in the child. Where a fork is under
/// way in another thread, it is waited for: whoever has come past this is seen by all later forks.
fn hold_over_fork(held: &AtomicBool, hold: &'static dyn Hold) {
    if held.load(Ordering::Acquire) {
        return;
    }
    watch();
    let mut holds = lock(&HOLDS);
    if !held.swap(true, Ordering::AcqRel) {
        holds.push(hold);
    }
}

/// Taken by whoever loads or unloads a shared library. A fork waits for it: the dynamic linker has locks of its own, which no
/// child can open that is forked while another thread is in the linker.
/// What is loaded may fork itself; it must not load anything through this meanwhile.
pub fn linker() -> LinkerGuard {
    static HELD: AtomicBool = AtomicBool::new(false);
    hold_over_fork(&HELD, &Linker);
    let held = lock(&LINKER);
    IN_LINKER.set(true);
    LinkerGuard { _held: held }
}

/// The dynamic linker's lock, for the time of a fork.
struct Linker;

impl Hold for Linker {
    fn hold(&'static self) -> Box<dyn Any> {
        match IN_LINKER.get() {
            // Initialisers of a library that is being loaded fork: the child has the thread that holds the lock.
            true => Box::new(()),
            false => Box::new(lock(&LINKER)),
        }
    }
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

/// Has [`GENERATION`] counted and the locks held from now on.
#[cfg(unix)]
fn watch() {
    /// Whether the handlers are registered. Threads that come here at the same time register them more than once, which changes
    /// nothing: of several calls for one fork, the first takes the locks and the first lets go of them.
    static WATCHED: AtomicBool = AtomicBool::new(false);

    extern "C" fn prepare() {
        // A thread that ends has no such variable any more; then the locks stay as they are.
        let _ = HELD.try_with(|held| {
            let mut held = held.borrow_mut();
            if held.is_empty() {
                let holds = lock(&HOLDS);
                held.extend(holds.iter().map(|lock| lock.hold()));
                held.push(Box::new(holds));
            }
        });
    }

    extern "C" fn parent() {
        let _ = HELD.try_with(|held| held.borrow_mut().clear());
    }

    extern "C" fn child() {
        GENERATION.fetch_add(1, Ordering::Relaxed);
        parent();
    }

    if WATCHED.load(Ordering::Acquire) {
        return;
    }
    // SAFETY: the handlers are functions of this library, which stays loaded. Where they cannot be registered, for lack of
    // memory, forks go unnoticed, as without them.
    unsafe { libc::pthread_atfork(Some(prepare), Some(parent), Some(child)) };
    WATCHED.store(true, Ordering::Release);
}

#[cfg(not(unix))]
fn watch() {}
