//! Interrupts: how long work is ended from outside, by Ctrl-C or by whoever else wants it to end.
//!
//! Whoever starts the work installs a question with [`Interrupts::scope`]: is this to end? Long work looks at [`check`] at points
//! that it reaches often. The question itself may be expensive (Python's takes the interpreter's lock), so a clock puts it
//! forty times a second, by setting a word that is 0 otherwise: a look is one relaxed load. Compiled kernels look at the same word
//! ([`attention`]) and call [`poll`] where it is not 0.
//!
//! The question is put on the thread that installed it, and nowhere else. Workers that take part in a loop of that thread
//! ([`current`], [`Joined::run`]) end when it is answered with yes.
//!
//! Compiler passes are functions that cannot fail. They call [`unwind_if_asked`], which unwinds to the [`catching`] around them,
//! without a panic's message; outside of one it does nothing. What such a pass works on is dropped, and whoever catches gives
//! [`Interrupted`] as an ordinary error.
//!
//! A kernel that is under way when the answer is yes is left to end by itself for [`GRACE`], so that states that it updates in
//! place stay whole wherever that is possible. After that it is *cut*: what it was to write is not there.

use crate::fork::ProcessMutex;
use crate::fork::generation;
use crate::park::lock;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// The work was told to end before it was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("interrupted")]
pub struct Interrupted;

/// How long a kernel may go on after the answer was yes: longer than most kernels take, and short for somebody who waits.
pub const GRACE: Duration = Duration::from_millis(300);

/// The time between two questions.
pub(crate) const TICK: Duration = Duration::from_millis(25);

/// Ticks without any work after which the clock sleeps.
const IDLE_TICKS: u32 = 40;

/// Set at every tick, until somebody has asked.
const ASK: u32 = 1;
/// Added for every scope that was told to end, until it is left.
const STOPPING: u32 = 2;

/// What long work looks at: 0 almost always.
static ATTENTION: AtomicU32 = AtomicU32::new(0);

/// Counts ticks.
static TICKS: AtomicU64 = AtomicU64::new(1);

/// Threads that are in a scope.
static ACTIVE: AtomicUsize = AtomicUsize::new(0);

/// One scope's state. Never freed, so that threads refer to it without counting and their variables need no destructor:
/// to register one takes a lock of the C library, which a child that was forked may find locked.
struct Region {
    ask: Mutex<Option<Ask>>,
    /// The tick at which it was asked last.
    seen: AtomicU64,
    /// When the answer was yes.
    ended: Mutex<Option<Instant>>,
    /// Whether there is such a moment.
    stopping: AtomicBool,
    /// Whether a kernel was left before its end.
    cut: AtomicBool,
}

type Ask = Arc<dyn Fn() -> bool + Send + Sync>;

/// Those that nobody has.
static FREE: ProcessMutex<Vec<&'static Region>> = ProcessMutex::new(Vec::new());

/// What a thread knows of the scope that it is in.
#[derive(Clone, Copy)]
struct Entered {
    region: &'static Region,
    /// Whether this thread installed it: only then may it ask.
    owner: bool,
}

thread_local! {
    static CURRENT: Cell<Option<Entered>> = const { Cell::new(None) };
    /// How many [`catching`] are around.
    static CATCHING: Cell<u32> = const { Cell::new(0) };
    /// Whether the question is being put.
    static ASKING: Cell<bool> = const { Cell::new(false) };
}

/// A question that can be installed again and again, by one scope at a time.
///
/// ```
/// use loopwright_threads::interrupt::{Interrupted, Interrupts, check};
///
/// let mut asked = Interrupts::new(|| true);
/// let ended = asked.scope(|| loop {
///     if let Err(Interrupted) = check() {
///         break "ended";
///     }
/// });
/// assert_eq!(ended, "ended");
/// assert!(asked.was_interrupted());
/// assert!(check().is_ok(), "outside of the scope nobody asks");
/// ```
pub struct Interrupts {
    region: &'static Region,
}

impl Interrupts {
    /// A question. It is put on the thread that calls [`scope`](Interrupts::scope), forty times a second at most, and no
    /// more once it was answered with yes.
    pub fn new(ask: impl Fn() -> bool + Send + Sync + 'static) -> Interrupts {
        let free = FREE.lock().pop();
        let region = free.unwrap_or_else(|| {
            Box::leak(Box::new(Region {
                ask: Mutex::new(None),
                seen: AtomicU64::new(0),
                ended: Mutex::new(None),
                stopping: AtomicBool::new(false),
                cut: AtomicBool::new(false),
            }))
        });
        *lock(&region.ask) = Some(Arc::new(ask));
        Interrupts { region }
    }

    /// Does work that ends early, by its own errors, where the answer is yes.
    pub fn scope<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let region = self.region;
        region.seen.store(0, Ordering::Relaxed);
        region.stopping.store(false, Ordering::Relaxed);
        region.cut.store(false, Ordering::Relaxed);
        *lock(&region.ended) = None;
        let _entered = Entering::new(Some(Entered {
            region,
            owner: true,
        }));
        let _active = Active::new();
        let _stopping = Stopping(region);
        work()
    }

    /// Whether the last scope was told to end.
    pub fn was_interrupted(&self) -> bool {
        self.region.stopping.load(Ordering::Relaxed)
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        let asked = lock(&self.region.ask).take();
        FREE.lock().push(self.region);
        drop(asked);
    }
}

/// Puts back what the thread was in before.
struct Entering {
    before: Option<Entered>,
}

impl Entering {
    fn new(now: Option<Entered>) -> Entering {
        Entering {
            before: CURRENT.replace(now),
        }
    }
}

impl Drop for Entering {
    fn drop(&mut self) {
        CURRENT.set(self.before);
    }
}

/// Counts a scope as long as it is there.
struct Active;

impl Active {
    fn new() -> Active {
        ACTIVE.fetch_add(1, Ordering::SeqCst);
        clock::wake();
        Active
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        if ACTIVE.fetch_sub(1, Ordering::SeqCst) == 1 {
            ATTENTION.fetch_and(!ASK, Ordering::Relaxed);
        }
    }
}

/// Takes back what was added to [`ATTENTION`] where the scope was told to end.
struct Stopping<'a>(&'a Region);

impl Drop for Stopping<'_> {
    fn drop(&mut self) {
        if self.0.stopping.load(Ordering::Relaxed) {
            ATTENTION.fetch_sub(STOPPING, Ordering::Relaxed);
        }
    }
}

impl Region {
    /// Whether it is told to end; asks where it is time to, and this thread may.
    fn is_stopping(&self, owner: bool) -> bool {
        if self.stopping.load(Ordering::Acquire) {
            return true;
        }
        let tick = TICKS.load(Ordering::Relaxed);
        if !owner || ASKING.get() || self.seen.swap(tick, Ordering::Relaxed) == tick {
            return false;
        }
        if ACTIVE.load(Ordering::Relaxed) <= 1 {
            ATTENTION.fetch_and(!ASK, Ordering::Relaxed);
        }
        ASKING.set(true);
        let ask = lock(&self.ask).clone();
        let stop = catch_unwind(AssertUnwindSafe(|| ask.is_some_and(|ask| ask())));
        ASKING.set(false);
        if !stop.unwrap_or(false) {
            return false;
        }
        *lock(&self.ended) = Some(Instant::now());
        self.stopping.store(true, Ordering::Release);
        ATTENTION.fetch_add(STOPPING, Ordering::Relaxed);
        true
    }

    /// Whether a kernel is to be left now.
    fn is_cut(&self, owner: bool) -> bool {
        if self.cut.load(Ordering::Relaxed) {
            return true;
        }
        if !self.is_stopping(owner) {
            return false;
        }
        let late = lock(&self.ended).is_some_and(|ended| ended.elapsed() >= GRACE);
        if late {
            self.cut.store(true, Ordering::Relaxed);
        }
        late
    }
}

/// Whether the work that this thread does is to go on.
///
/// # Errors
/// [`Interrupted`] where it was told to end; then at every later call in the same scope, too.
#[inline]
pub fn check() -> Result<(), Interrupted> {
    match ATTENTION.load(Ordering::Relaxed) {
        0 => Ok(()),
        _ => look(),
    }
}

#[cold]
fn look() -> Result<(), Interrupted> {
    match CURRENT.get() {
        Some(entered) if entered.region.is_stopping(entered.owner) => Err(Interrupted),
        _ => Ok(()),
    }
}

/// Unwinds to the [`catching`] around, if there is one and the work was told to end.
#[inline]
pub fn unwind_if_asked() {
    if ATTENTION.load(Ordering::Relaxed) != 0 {
        unwind_after_look();
    }
}

#[cold]
fn unwind_after_look() {
    if CATCHING.get() > 0 && look().is_err() {
        resume_unwind(Box::new(Interrupted));
    }
}

/// Does work that may [unwind](unwind_if_asked).
///
/// # Errors
/// [`Interrupted`] where it did.
pub fn catching<T>(work: impl FnOnce() -> T) -> Result<T, Interrupted> {
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            CATCHING.set(CATCHING.get() - 1);
        }
    }
    if !is_interruptible() {
        return Ok(work());
    }
    CATCHING.set(CATCHING.get() + 1);
    let _leave = Leave;
    // Whoever unwinds on purpose does so where nothing that others see is half changed.
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(done) => Ok(done),
        Err(payload) => match payload.downcast::<Interrupted>() {
            Ok(_) => Err(Interrupted),
            Err(panic) => resume_unwind(panic),
        },
    }
}

/// Whether this thread is in a scope.
pub fn is_interruptible() -> bool {
    CURRENT.get().is_some()
}

/// Whether this thread is in the middle of the question: what it did before waits for the answer, with what it has locked.
pub fn is_asking() -> bool {
    ASKING.get()
}

/// Whether a kernel of this scope was left before its end.
///
/// # Errors
/// [`Interrupted`] where one was.
#[inline]
pub fn check_cut() -> Result<(), Interrupted> {
    if ATTENTION.load(Ordering::Relaxed) == 0 {
        return Ok(());
    }
    match CURRENT.get() {
        Some(entered) if entered.region.cut.load(Ordering::Relaxed) => Err(Interrupted),
        _ => Ok(()),
    }
}

/// Whether the work that this thread does was told to end; for those who wait.
pub(crate) fn is_told_to_end() -> bool {
    check().is_err()
}

/// The word that compiled kernels look at: they go on while it is 0, and ask [`poll`] while it is not.
pub fn attention() -> &'static AtomicU32 {
    &ATTENTION
}

/// Whether a kernel is to be left: 1 where it is, else 0. Called by compiled kernels, on any of their threads.
pub extern "C" fn poll() -> u32 {
    match CURRENT.get() {
        Some(entered) => u32::from(entered.region.is_cut(entered.owner)),
        None => 0,
    }
}

/// What a worker needs to take part in work of another thread's scope.
#[derive(Clone, Copy)]
pub struct Joined(Option<Entered>);

/// The scope that this thread is in, for workers; nothing where it is in none.
#[inline]
pub fn current() -> Joined {
    Joined(CURRENT.get().map(|entered| Entered {
        owner: false,
        ..entered
    }))
}

impl Joined {
    /// Does a worker's part. Where it is the thread that installed the scope, nothing changes.
    #[inline]
    pub fn run<T>(self, work: impl FnOnce() -> T) -> T {
        if self.0.is_none() || is_interruptible() {
            return work();
        }
        let _entered = Entering::new(self.0);
        work()
    }
}

/// The thread that has questions put.
mod clock {
    use super::*;

    struct Clock {
        /// Whether it waits to be woken.
        asleep: AtomicBool,
        gate: Mutex<()>,
        moved: Condvar,
        /// The process that the thread is in, plus one; 0 before there is one.
        process: AtomicU64,
    }

    static CLOCK: Clock = Clock {
        asleep: AtomicBool::new(false),
        gate: Mutex::new(()),
        moved: Condvar::new(),
        process: AtomicU64::new(0),
    };

    /// Called when a scope has been counted.
    pub(super) fn wake() {
        let clock = &CLOCK;
        let process = generation() + 1;
        if clock.process.load(Ordering::Relaxed) != process {
            start(clock, process);
        } else if clock.asleep.load(Ordering::SeqCst) {
            // Taken so that a clock that is about to wait does so first.
            drop(lock(&clock.gate));
            clock.moved.notify_all();
        }
    }

    #[cold]
    fn start(clock: &'static Clock, process: u64) {
        if clock.process.swap(process, Ordering::SeqCst) == process {
            return;
        }
        // Without it nobody asks, and work runs to its end.
        let _ = std::thread::Builder::new()
            .name("interrupts".to_owned())
            .spawn(move || clock.run());
    }

    impl Clock {
        fn run(&self) {
            let mut idle = 0;
            loop {
                std::thread::sleep(TICK);
                if ACTIVE.load(Ordering::SeqCst) > 0 {
                    idle = 0;
                    TICKS.fetch_add(1, Ordering::Relaxed);
                    ATTENTION.fetch_or(ASK, Ordering::Relaxed);
                } else {
                    idle += 1;
                }
                if idle >= IDLE_TICKS {
                    self.sleep();
                    idle = 0;
                }
            }
        }

        /// Waits until a scope is entered.
        fn sleep(&self) {
            let mut gate = lock(&self.gate);
            // With the order of `wake`: either the scope is counted before this, or its thread sees that this sleeps.
            self.asleep.store(true, Ordering::SeqCst);
            while ACTIVE.load(Ordering::SeqCst) == 0 {
                gate = match self.moved.wait(gate) {
                    Ok(gate) => gate,
                    Err(poisoned) => poisoned.into_inner(),
                };
            }
            self.asleep.store(false, Ordering::SeqCst);
        }
    }
}
