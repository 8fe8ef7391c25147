//! Parallel loops: a pool of threads that share the iterations of one loop at a time.
//!
//! Who calls [`ForkJoin::run`] publishes the loop, wakes workers and takes pieces like everybody else.
//! A loop out of which no piece is left is closed: a worker that was slow to wake finds nothing and is not
//! waited for, only those that took a piece are. So a loop never costs more than doing it alone plus the
//! wake-ups, also where there are fewer cores than threads.
//!
//! What sharing a loop must cost is one cache line to the worker, with the loop in it, and the same line back
//! when the worker is done. All that changes hands, the pieces that are left and the workers that are
//! in the loop, is one word of that line: a worker joins and takes its first piece by one exchange, and
//! the caller who took the last piece while nobody was in the loop has nothing more to do. A loop that
//! no worker came for costs two exchanges on lines that the caller owns: the gate, and one piece of two.

use crate::affinity::pin_to_core;
use crate::error::ThreadsError;
use crate::lines::Lines;
use crate::park::{Parker, lock};
use crate::sync::{
    Arc, AtomicBool, AtomicU64, Mutex, Ordering, Sleeper, UnsafeCell, thread, waker_fence,
};
use std::any::Any;
use std::cell::Cell;
use std::num::NonZero;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;

/// More threads than this are a mistyped number.
pub(crate) const MOST_THREADS: usize = 4096;

/// Pieces per thread, where there are few iterations: threads that are late or slow then hold up
/// the others by a fraction of their share.
const PIECES_PER_THREAD: usize = 4;

/// Slices per thread, where there are iterations enough. Pieces are of 8 slices for as many as there are threads, then
/// of 4, of 2 and of 1: most of what a thread does lies side by side, and what is left for the end is short.
const SLICES_PER_THREAD: usize = 16;

/// Pieces per thread of that kind: one of 8 slices, one of 4, one of 2 and two of 1.
const FALLING_PIECES_PER_THREAD: usize = 5;

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

/// A loop as workers see it.
#[derive(Clone, Copy)]
struct Loop {
    /// A reference to the body, which lives as long as a piece is left or a worker is in the loop.
    body: NonNull<()>,
    /// Calls the body. Not a trait object, so that the caller's own pieces are plain calls.
    call: unsafe fn(NonNull<()>, Range<usize>),
    pieces: usize,
    /// The iterations of a slice.
    share: usize,
    /// How many slices, from the first, have one iteration more.
    longer: usize,
    /// How many pieces there are of each length; 0 where each is a slice.
    of_a_length: usize,
}

impl Loop {
    /// Shares so many iterations between threads.
    fn pieces(count: usize, threads: usize) -> (usize, usize, usize, usize) {
        let (few, many) = (threads * PIECES_PER_THREAD, threads * SLICES_PER_THREAD);
        // Dividing would be a good part of what a short loop costs.
        if count <= few {
            (count, 1, 0, 0)
        } else if count < many {
            (few, count / few, count % few, 0)
        } else {
            let pieces = threads * FALLING_PIECES_PER_THREAD;
            (pieces, count / many, count % many, threads)
        }
    }

    /// The iterations of a piece.
    fn range(&self, piece: usize) -> Range<usize> {
        self.bound(piece)..self.bound(piece + 1)
    }

    /// The iterations before a piece.
    fn bound(&self, piece: usize) -> usize {
        let slice = match self.of_a_length {
            0 => piece,
            n if piece <= n => 8 * piece,
            n if piece <= 2 * n => 8 * n + 4 * (piece - n),
            n if piece <= 3 * n => 12 * n + 2 * (piece - 2 * n),
            n => 14 * n + (piece - 3 * n),
        };
        self.share * slice + self.longer.min(slice)
    }
}

/// Calls a loop's body with a range of its iterations.
///
/// # Safety
/// `body` is the address of a `&Body` that lives until this returns.
unsafe fn call<Body>(body: NonNull<()>, range: Range<usize>)
where
    Body: Fn(Range<usize>) + Sync + ?Sized,
{
    // SAFETY: as is asked for above.
    let body = unsafe { body.cast::<&Body>().as_ref() };
    body(range);
}

/// The pieces that nobody took yet. While there are any, workers can join.
const LEFT: u64 = JOINED - 1;
/// One of the workers that are in the loop.
const JOINED: u64 = 1 << 24;
/// What is added for each loop; it wraps around. Below it is what there is of this loop.
const NEXT_LOOP: u64 = 1 << 40;

/// How many pauses a worker makes between two looks for a loop.
///
/// A look takes the line away from the caller, who then waits for it to come back: that alone is longer
/// than a loop that is too short to share, and joining it is longer still. But a worker that looks
/// seldom comes late to loops that are worth it. So it looks seldom as long as the loops that went by
/// since the last look took less than `LEAST` pauses each.
///
/// Measured on two cores, with two sums of 1.1 µs each as a loop: at 16 pauses throughout, an empty loop
/// takes 54 ns and the sums 1.7 µs; at 64 pauses 23 ns and 2.2 µs; like this 23 ns to 32 ns and 1.7 µs.
struct Pace {
    pauses: Cell<u32>,
    /// The number of the loop at the last look.
    number: Cell<u64>,
}

impl Pace {
    const LEAST: u32 = 8;
    const MOST: u32 = 512;

    fn new() -> Pace {
        Pace {
            pauses: Cell::new(Pace::LEAST),
            number: Cell::new(0),
        }
    }

    /// Learns from a look.
    fn looked(&self, state: u64) {
        let number = state / NEXT_LOOP;
        let passed = number.wrapping_sub(self.number.replace(number)) & (u64::MAX / NEXT_LOOP);
        let pauses = self.pauses.get();
        let short = passed * u64::from(Pace::LEAST) > u64::from(pauses);
        self.pauses.set(if short {
            (pauses * 2).min(Pace::MOST)
        } else {
            (pauses / 2).max(Pace::LEAST)
        });
    }
}

/// What the caller and the workers pass to each other; in one line, so that it is passed at once.
struct Board {
    /// From the highest bit: the number of the loop, how many workers `JOINED` it, how many pieces are
    /// `LEFT`.
    state: AtomicU64,
    /// Written by the caller while no piece is left and nobody is in the loop; read by who joined.
    published: UnsafeCell<Option<Loop>>,
}

struct Shared {
    board: Lines<Board>,
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
    /// Runs this piece, and then others as long as there are any. The first panic is kept for the caller.
    #[inline]
    fn take_part(&self, run: &Loop, mut piece: usize, body: impl Fn(Range<usize>)) {
        loop {
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| body(run.range(piece)))) {
                self.keep(payload);
            }
            // Relaxed: what the pieces read was acquired by joining, and what they write is released by
            // leaving.
            match self.take(0, Ordering::Relaxed) {
                Some(left) => piece = run.pieces - left,
                None => return,
            }
        }
    }

    /// Takes a piece and adds so much to the state. Gives how many were left before; nothing, and adds
    /// nothing, where none was.
    #[inline]
    fn take(&self, joining: u64, order: Ordering) -> Option<usize> {
        let word = &self.board.0.state;
        let mut state = word.load(Ordering::Relaxed);
        while state & LEFT != 0 {
            let taken = state - 1 + joining;
            match word.compare_exchange_weak(state, taken, order, Ordering::Relaxed) {
                Ok(_) => return Some((state & LEFT) as usize),
                Err(now) => state = now,
            }
        }
        None
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
        let board = &self.board.0;
        let pace = Pace::new();
        loop {
            let ready = || {
                let state = board.state.load(Ordering::Relaxed);
                pace.looked(state);
                state & LEFT != 0 || self.stop.load(Ordering::Relaxed)
            };
            parker.wait_pausing(|| pace.pauses.get(), ready);
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            // Acquires the published loop.
            let Some(left) = self.take(JOINED, Ordering::Acquire) else {
                continue;
            };
            let run = board.published.with(|published| {
                // SAFETY: this worker joined, so the caller does not write until it left.
                unsafe { *published }
            });
            let run = run.expect("a loop with pieces left is published");
            self.take_part(&run, run.pieces - left, |range| {
                // SAFETY: `open` wrote the two for each other, and the body lives until all left.
                unsafe { (run.call)(run.body, range) }
            });
            self.leave();
        }
    }

    /// Leaves the loop, out of which no piece is left. The last one wakes the caller.
    fn leave(&self) {
        // Releases what the pieces wrote.
        let before = self.board.0.state.fetch_sub(JOINED, Ordering::Release);
        if before % NEXT_LOOP == JOINED {
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
    /// Whether a loop runs. On lines that workers do not look at.
    busy: Lines<AtomicBool>,
    workers: Vec<thread::JoinHandle<()>>,
}

impl ForkJoin {
    /// A pool of so many threads; who calls [`run`](ForkJoin::run) is one of them.
    ///
    /// # Errors
    /// [`ThreadsError::Thread`] where a thread cannot be had, [`ThreadsError::TooManyThreads`] where they
    /// are more than 4096.
    pub fn new(threads: NonZero<usize>, pinning: Pinning) -> Result<ForkJoin, ThreadsError> {
        refuse_too_many(threads)?;
        let workers = threads.get() - 1;
        let shared = Arc::new(Shared {
            board: Lines(Board {
                state: AtomicU64::new(0),
                published: UnsafeCell::new(None),
            }),
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
            busy: Lines(AtomicBool::new(false)),
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
    #[inline]
    pub fn run<Body>(&self, count: usize, body: &Body)
    where
        Body: Fn(Range<usize>) + Sync + ?Sized,
    {
        if count == 0 {
            return;
        }
        if count == 1 || self.workers.is_empty() || self.busy.0.swap(true, Ordering::Acquire) {
            body(0..count);
            return;
        }
        // Neither returns nor unwinds before `close`: nobody uses the reference after its life.
        let run = self.open(count, NonNull::from(&body).cast(), call::<Body>);
        self.shared.take_part(&run, 0, body);
        self.close();
        if self.shared.panicked.load(Ordering::Relaxed) {
            self.rethrow();
        }
        self.busy.0.store(false, Ordering::Release);
    }

    /// Throws the panic of the loop that was closed.
    #[cold]
    fn rethrow(&self) -> ! {
        self.shared.panicked.store(false, Ordering::Relaxed);
        let panic = lock(&self.shared.panic).take();
        self.busy.0.store(false, Ordering::Release);
        resume_unwind(panic.expect("who says that there is a panic has kept it"));
    }

    /// Publishes a loop, of which the caller has the first piece, and wakes as many workers as there
    /// are others.
    #[inline]
    fn open(
        &self,
        count: usize,
        body: NonNull<()>,
        call: unsafe fn(NonNull<()>, Range<usize>),
    ) -> Loop {
        let shared = &*self.shared;
        let (pieces, share, longer, of_a_length) = Loop::pieces(count, self.threads().get());
        let run = Loop {
            body,
            call,
            pieces,
            share,
            longer,
            of_a_length,
        };
        shared.board.0.published.with_mut(|published| {
            // SAFETY: no piece is left of the loop before and nobody is in it, which `close` waited for;
            // `busy` keeps other callers away.
            unsafe { *published = Some(run) };
        });
        let others = pieces - 1;
        let before = shared.board.0.state.load(Ordering::Relaxed);
        let opened = before.wrapping_add(NEXT_LOOP) | others as u64;
        shared.board.0.state.store(opened, Ordering::Release);
        waker_fence();
        for worker in shared.workers.iter().take(others) {
            worker.wake_after_fence();
        }
        run
    }

    /// Ends the loop, out of which no piece is left: those who joined have left.
    #[inline]
    fn close(&self) {
        let shared = &*self.shared;
        // Acquires what those wrote who left.
        let left = || shared.board.0.state.load(Ordering::Acquire) & (NEXT_LOOP - 1) == 0;
        if !left() {
            shared.caller.wait_until(left);
        }
    }
}

/// Refuses numbers of threads that are mistyped.
pub(crate) fn refuse_too_many(threads: NonZero<usize>) -> Result<(), ThreadsError> {
    if threads.get() > MOST_THREADS {
        return Err(ThreadsError::TooManyThreads {
            wanted: threads.get(),
            most: MOST_THREADS,
        });
    }
    Ok(())
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
