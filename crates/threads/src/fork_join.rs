//! Parallel loops: a pool of threads that share the iterations of one loop at a time.
//!
//! Who calls [`ForkJoin::run`] publishes the loop, wakes workers and takes pieces like everybody else.
//! When no piece is left it closes the loop and waits for the workers *that joined*: one that was slow
//! to wake finds the loop closed and is not waited for. So a loop never costs more than doing it alone
//! plus the wake-ups, also where there are fewer cores than threads.

use crate::affinity::pin_to_core;
use crate::error::ThreadsError;
use crate::park::{Parker, lock};
use crate::sync::{
    Arc, AtomicBool, AtomicU64, AtomicUsize, Mutex, Ordering, Sleeper, UnsafeCell, fence, thread,
};
use std::any::Any;
use std::num::NonZero;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Pieces per thread, where there are iterations enough: threads that are late or slow then hold up
/// the others by a fraction of their share.
const PIECES_PER_THREAD: usize = 4;

/// Whether workers stay on one core each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pinning {
    /// The system moves them.
    Free,
    /// Each worker on a core of its own, as far as there are cores, where the system allows it (Linux);
    /// quietly as [`Free`](Pinning::Free) where not. The first core is left to the caller, who is not
    /// pinned.
    Cores,
}

/// A loop's body, over a range of its iterations.
type Body<'body> = dyn Fn(Range<usize>) + Sync + 'body;

/// A loop as workers see it.
#[derive(Clone, Copy)]
struct Loop {
    /// Lives as long as the loop is open or a worker is in it.
    body: *const Body<'static>,
    count: usize,
    pieces: usize,
}

/// The number of workers that are in the loop.
const JOINED: u64 = (1 << 31) - 1;
/// Set while workers can join.
const OPEN: u64 = 1 << 31;
/// What is added for each loop. It wraps around; then a worker that slept through four thousand million
/// loops leaves one more to the others.
const NEXT_LOOP: u64 = 1 << 32;

struct Shared {
    /// From the highest bit: the number of the loop, `OPEN`, the number of workers that `JOINED`.
    state: AtomicU64,
    /// Written by the caller while the loop is closed and nobody is in it; read by who joined.
    published: UnsafeCell<Option<Loop>>,
    /// How many pieces were handed out, or more where somebody asked in vain.
    claimed: AtomicUsize,
    /// Whether there is one; seen by who waited for the others to leave.
    panicked: AtomicBool,
    /// The first panic of the loop.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    /// Set when the pool is dropped.
    stop: AtomicBool,
    caller: Parker,
    workers: Box<[Parker]>,
}

// SAFETY: what is not `Sync` is `published`, with the address in it. The caller writes it while no
// worker is in the loop and none can join; workers read it after joining, which acquires what the
// caller released by opening. The body behind the address is `Sync`.
unsafe impl Sync for Shared {}
// SAFETY: the address is of a `Sync` body, which may be called from any thread.
unsafe impl Send for Shared {}

impl Shared {
    /// Runs pieces from this one on, as long as there are any. The first panic is kept for the caller.
    fn take_part(&self, run: Loop, body: &Body, mut piece: usize) {
        let Loop { count, pieces, .. } = run;
        // Not `count * piece / pieces`, which could overflow.
        let bound = |piece: usize| count / pieces * piece + (count % pieces).min(piece);
        while piece < pieces {
            let range = bound(piece)..bound(piece + 1);
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| body(range))) {
                self.keep(payload);
            }
            if piece + 1 == pieces {
                return;
            }
            piece = self.claim();
        }
    }

    /// The next piece, or one that is not there. Relaxed: what the pieces read was published by
    /// opening, and what they write is by leaving.
    fn claim(&self) -> usize {
        self.claimed.fetch_add(1, Ordering::Relaxed)
    }

    /// Keeps the first panic.
    #[cold]
    fn keep(&self, payload: Box<dyn Any + Send>) {
        let mut first = lock(&self.panic);
        if first.is_none() {
            *first = Some(payload);
        } else {
            // Dropping something unknown could panic once more, outside of any catch.
            std::mem::forget(payload);
        }
        self.panicked.store(true, Ordering::Relaxed);
    }

    /// The life of a worker.
    fn work(&self, parker: &Parker) {
        // The loop it was in last, which may still be open and has nothing left for it.
        let mut last = None;
        loop {
            parker.wait_until(|| {
                let state = self.state.load(Ordering::Relaxed);
                (state & OPEN != 0 && Some(state / NEXT_LOOP) != last)
                    || self.stop.load(Ordering::Relaxed)
            });
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            if let Some(number) = self.join() {
                last = Some(number);
                let run = self.published.with(|published| {
                    // SAFETY: this worker joined, so the caller does not write until it left.
                    unsafe { *published }
                });
                if let Some(run) = run {
                    // SAFETY: the caller's body lives until all that joined left.
                    let body = unsafe { &*run.body };
                    self.take_part(run, body, self.claim());
                }
                self.leave();
            }
        }
    }

    /// Joins the loop that is open now and gives its number.
    fn join(&self) -> Option<u64> {
        let mut state = self.state.load(Ordering::Relaxed);
        while state & OPEN != 0 {
            let joined = self.state.compare_exchange_weak(
                state,
                state + 1,
                // Acquires the published loop.
                Ordering::Acquire,
                Ordering::Relaxed,
            );
            match joined {
                Ok(_) => return Some(state / NEXT_LOOP),
                Err(now) => state = now,
            }
        }
        None
    }

    /// Leaves the loop that was joined. The last one after closing wakes the caller.
    fn leave(&self) {
        // Releases what the pieces wrote.
        let before = self.state.fetch_sub(1, Ordering::Release);
        if before & (OPEN | JOINED) == 1 {
            self.caller.wake();
        }
    }
}

/// A pool of threads for parallel loops.
///
/// One loop at a time runs on it. A loop that is started while another runs, by a thread of the pool
/// (a nested loop) or by any other, is run by who starts it alone: nobody waits for a turn, so nothing
/// can wait in a circle. Dropping the pool ends its threads.
pub struct ForkJoin {
    shared: Arc<Shared>,
    /// Whether a loop runs.
    busy: AtomicBool,
    workers: Vec<thread::JoinHandle<()>>,
}

impl ForkJoin {
    /// A pool of so many threads; who calls [`run`](ForkJoin::run) is one of them.
    ///
    /// # Errors
    /// [`ThreadsError::Thread`] where a thread cannot be had.
    pub fn new(threads: NonZero<usize>, pinning: Pinning) -> Result<ForkJoin, ThreadsError> {
        let workers = threads.get() - 1;
        let shared = Arc::new(Shared {
            state: AtomicU64::new(0),
            published: UnsafeCell::new(None),
            claimed: AtomicUsize::new(0),
            panicked: AtomicBool::new(false),
            panic: Mutex::new(None),
            stop: AtomicBool::new(false),
            caller: Parker::new(Sleeper::LoopCaller),
            workers: (0..workers)
                .map(|_| Parker::new(Sleeper::LoopWorker))
                .collect(),
        });
        let mut pool = ForkJoin {
            shared,
            busy: AtomicBool::new(false),
            workers: Vec::with_capacity(workers),
        };
        for index in 0..workers {
            let shared = Arc::clone(&pool.shared);
            let name = format!("loop-{}", index + 1);
            let worker = thread::Builder::new()
                .name(name.clone())
                .spawn(move || {
                    if pinning == Pinning::Cores {
                        pin_to_core(index + 1);
                    }
                    shared.work(&shared.workers[index]);
                })
                .map_err(|error| ThreadsError::Thread {
                    name,
                    reason: std::sync::Arc::new(error),
                })?;
            pool.workers.push(worker);
        }
        Ok(pool)
    }

    /// How many threads run a loop, the caller included.
    pub fn threads(&self) -> NonZero<usize> {
        NonZero::<usize>::MIN.saturating_add(self.workers.len())
    }

    /// Calls `body` with ranges that together are `0..count`, each iteration in one of them, from
    /// several threads at once, and returns when all ended. Allocates nothing.
    ///
    /// # Panics
    /// Where `body` panics, with its first panic, after all ranges ended.
    pub fn run(&self, count: usize, body: &Body) {
        if count == 0 {
            return;
        }
        if count == 1 || self.workers.is_empty() || self.busy.swap(true, Ordering::Acquire) {
            body(0..count);
            return;
        }
        let pieces = count.min(self.threads().get().saturating_mul(PIECES_PER_THREAD));
        let run = self.open(count, pieces, body);
        self.shared.take_part(run, body, 0);
        self.close();
        let panic = self.take_panic();
        self.busy.store(false, Ordering::Release);
        if let Some(payload) = panic {
            resume_unwind(payload);
        }
    }

    /// The panic of the loop that was closed, if there was one.
    fn take_panic(&self) -> Option<Box<dyn Any + Send>> {
        if !self.shared.panicked.load(Ordering::Relaxed) {
            return None;
        }
        self.shared.panicked.store(false, Ordering::Relaxed);
        lock(&self.shared.panic).take()
    }

    /// Publishes a loop, of which the caller has the first piece, and wakes as many workers as there
    /// are others.
    fn open(&self, count: usize, pieces: usize, body: &Body) -> Loop {
        let shared = &*self.shared;
        let body = std::ptr::from_ref(body);
        // SAFETY: the two types differ in a lifetime. `run` returns after `close`, and does not unwind
        // before: nobody uses the body after its life.
        let body = unsafe { std::mem::transmute::<*const Body<'_>, *const Body<'static>>(body) };
        let run = Loop {
            body,
            count,
            pieces,
        };
        shared.published.with_mut(|published| {
            // SAFETY: the loop is closed and nobody is in it, which `close` waited for; `busy` keeps
            // other callers away.
            unsafe { *published = Some(run) };
        });
        shared.claimed.store(1, Ordering::Relaxed);
        let state = shared.state.load(Ordering::Relaxed);
        let opened = (state & !(OPEN | JOINED)).wrapping_add(NEXT_LOOP) | OPEN;
        shared.state.store(opened, Ordering::Release);
        fence(Ordering::SeqCst);
        for worker in shared.workers.iter().take(pieces - 1) {
            worker.wake_after_fence();
        }
        run
    }

    /// Ends the loop: nobody can join any more, and those who did have left.
    fn close(&self) {
        let shared = &*self.shared;
        // Acquires what those wrote who left before.
        let before = shared.state.fetch_and(!OPEN, Ordering::Acquire);
        if before & JOINED != 0 {
            let left = || shared.state.load(Ordering::Acquire) & JOINED == 0;
            shared.caller.wait_until(left);
        }
    }
}

impl Drop for ForkJoin {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        for worker in &self.shared.workers {
            worker.wake();
        }
        for worker in self.workers.drain(..) {
            let ended = worker.join();
            debug_assert!(ended.is_ok(), "a worker catches what bodies throw");
        }
    }
}
