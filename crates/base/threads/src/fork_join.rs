//! Parallel loops: a pool of threads that share the iterations of one loop at a time.
//!
//! Who calls [`ForkJoin::run`] publishes the loop, wakes workers and takes pieces like everybody else.
//! When the caller finds none, the loop is closed: a worker that was slow to wake finds it so and is not
//! waited for, only those that came before are. So a loop never costs more than doing it alone plus the
//! wake-ups, also where there are fewer cores than threads.
//!
//! Every thread has a *home*: its part of all iterations, the same part of every loop with as many. It
//! begins there, and what it read or wrote in the loop before may still lie in its core's caches. Who is done
//! at home takes pieces of others, the nearest first, so that nobody waits for a thread that is late.
//!
//! What sharing a loop must cost is one cache line to the worker, with the loop in it, and one back when the worker is
//! done. Nobody but the caller writes the first, so that all workers can read it at once: words that all of them
//! change would go from one to the next, and with 16 threads that alone took 3 microseconds. So a worker says on a line of
//! its own that it is in the loop, and then looks once more whether the loop is open; the caller closes it, and
//! then looks who is in. Between the two steps of each lies a fence, so that at least one of them sees the
//! other.

use crate::affinity::pin_to_core;
use crate::error::ThreadsError;
use crate::lines::Lines;
use crate::park::{Parker, lock};
use crate::sync::{
    Arc, AtomicBool, AtomicU64, Mutex, Ordering, Sleeper, UnsafeCell, generation, meeting_fence,
    thread, waker_fence,
};
use std::any::Any;
use std::cell::Cell;
use std::num::NonZero;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;

/// More threads than this are a mistyped number.
pub(crate) const MOST_THREADS: usize = 4096;

/// Slices of a home at most.
const SLICES: usize = 16;

/// Who takes a piece takes one of so many slices that are left, one at least: most of what a thread does lies side by
/// side, and what is left for the end is short.
const PIECE: usize = 3;

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
    /// Counts all loops of the pool. Homes are marked with it, so that nobody has to make them ready for a loop.
    number: u64,
    /// The iterations of a home.
    share: usize,
    /// How many homes, from the first, have one iteration more.
    longer: usize,
}

impl Loop {
    /// The iterations of a home.
    fn home(&self, home: usize) -> Range<usize> {
        let start = self.share * home + self.longer.min(home);
        start..start + self.share + usize::from(home < self.longer)
    }
}

/// How many slices a home of so many iterations has.
fn slices(iterations: usize) -> usize {
    iterations.min(SLICES)
}

/// The iterations of a home before one of its slices.
fn before(iterations: usize, slice: usize) -> usize {
    if iterations <= SLICES {
        return slice;
    }
    iterations / SLICES * slice + iterations % SLICES * slice / SLICES
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

/// Whether there may be pieces that nobody took. Workers can join then.
const OPEN: u64 = 1;
/// What is added for each loop.
const NEXT_LOOP: u64 = 2;

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
        let passed = number - self.number.replace(number);
        let pauses = self.pauses.get();
        let short = passed * u64::from(Pace::LEAST) > u64::from(pauses);
        self.pauses.set(if short {
            (pauses * 2).min(Pace::MOST)
        } else {
            (pauses / 2).max(Pace::LEAST)
        });
    }
}

/// What the caller tells the workers; in one line, so that it is passed at once.
struct Board {
    /// The number of the loop, and in the lowest bit whether it is `OPEN`.
    state: AtomicU64,
    /// Written by the caller while it is closed and nobody is in the loop; read by who is in it.
    published: UnsafeCell<Option<Loop>>,
}

/// What others see of a worker, and of the caller, who is always in.
struct Member {
    /// How many slices of its home were taken, below the number of the loop; of an earlier loop where none was.
    home: AtomicU64,
    /// Whether it is in the loop.
    inside: AtomicBool,
}

/// Where a home's word has the number of the loop.
const TAKEN_BITS: u32 = SLICES.ilog2() + 1;

struct Shared {
    board: Lines<Board>,
    /// The caller and the workers.
    members: Box<[Lines<Member>]>,
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
// worker is in the loop and none can join; workers read it while they are in, after they acquired what the
// caller released by opening. The body behind the address is `Sync`.
unsafe impl Sync for Shared {}
// SAFETY: the address is of a `Sync` body, which may be called from any thread.
unsafe impl Send for Shared {}

impl Shared {
    /// Runs pieces as long as there are any, those of this thread's home first. The first panic is kept for the
    /// caller.
    #[inline]
    fn take_part(&self, run: &Loop, home: usize, body: impl Fn(Range<usize>)) {
        // What of a home is taken stays taken: once around is enough.
        let members = self.members.iter().enumerate();
        let (others, first) = (members.clone().take(home), members.skip(home));
        for (at, member) in first.chain(others) {
            let iterations = run.home(at);
            while let Some(piece) = take(run, &member.0.home, iterations.len()) {
                let range = iterations.start + piece.start..iterations.start + piece.end;
                if let Err(payload) = catch_unwind(AssertUnwindSafe(|| body(range))) {
                    self.keep(payload);
                }
            }
        }
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
    fn work(&self, worker: usize) {
        let board = &self.board.0;
        let inside = &self.members[worker + 1].0.inside;
        let pace = Pace::new();
        // The last loop that it was in; from 1 on.
        let mut last = 0;
        loop {
            let ready = || {
                let state = board.state.load(Ordering::Relaxed);
                pace.looked(state);
                is_new(state, last) || self.stop.load(Ordering::Relaxed)
            };
            self.workers[worker].wait_pausing(|| pace.pauses.get(), ready);
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            inside.store(true, Ordering::Relaxed);
            // With the fence in `close`: either the loop is seen closed here, or this worker is seen inside there.
            meeting_fence();
            // Acquires the published loop, which may be another than the one that was seen before.
            let state = board.state.load(Ordering::Acquire);
            if is_new(state, last) {
                last = state / NEXT_LOOP;
                let run = board.published.with(|published| {
                    // SAFETY: this worker is inside, so the caller does not write until it left.
                    unsafe { *published }
                });
                let run = run.expect("a loop that is open is published");
                self.take_part(&run, worker + 1, |range| {
                    // SAFETY: `open` wrote the two for each other, and the body lives until all left.
                    unsafe { (run.call)(run.body, range) }
                });
            }
            // Releases what the pieces wrote.
            inside.store(false, Ordering::Release);
            self.caller.wake();
        }
    }
}

/// Whether a loop is open, and another than the last one that a worker was in.
fn is_new(state: u64, last: u64) -> bool {
    state & OPEN != 0 && state / NEXT_LOOP != last
}

/// Takes a piece of a home: the iterations, counted from the home's first.
#[inline]
fn take(run: &Loop, home: &AtomicU64, iterations: usize) -> Option<Range<usize>> {
    let all = slices(iterations);
    let none = run.number << TAKEN_BITS;
    // Relaxed: what the pieces read was acquired by joining, and what they write is released by leaving.
    let mut word = home.load(Ordering::Relaxed);
    loop {
        // Lower where the word is of an earlier loop.
        let taken = word.saturating_sub(none) as usize;
        if taken == all {
            return None;
        }
        let stop = taken + ((all - taken) / PIECE).max(1);
        let now = none + stop as u64;
        match home.compare_exchange_weak(word, now, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return Some(before(iterations, taken)..before(iterations, stop)),
            Err(other) => word = other,
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
    /// The process that has the workers; a child that is forked has none of them.
    generation: u64,
}

impl ForkJoin {
    /// A pool of so many threads; who calls [`run`](ForkJoin::run) is one of them.
    ///
    /// # Errors
    /// [`ThreadsError::Thread`] where a thread cannot be started, [`ThreadsError::TooManyThreads`] where they
    /// are more than 4096.
    pub fn new(threads: NonZero<usize>, pinning: Pinning) -> Result<ForkJoin, ThreadsError> {
        refuse_too_many(threads)?;
        let workers = threads.get() - 1;
        let shared = Arc::new(Shared {
            board: Lines(Board {
                state: AtomicU64::new(0),
                published: UnsafeCell::new(None),
            }),
            members: (0..=workers)
                .map(|_| {
                    Lines(Member {
                        home: AtomicU64::new(0),
                        inside: AtomicBool::new(false),
                    })
                })
                .collect(),
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
            generation: generation(),
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
                    shared.work(index);
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
        if count == 1 || self.workers.is_empty() || !self.has_workers() {
            body(0..count);
            return;
        }
        if self.busy.0.swap(true, Ordering::Acquire) {
            body(0..count);
            return;
        }
        // Neither returns nor unwinds before `close`: nobody uses the reference after its life.
        let run = self.open(count, NonNull::from(&body).cast(), call::<Body>);
        self.shared.take_part(&run, 0, body);
        self.close(&run);
        if self.shared.panicked.load(Ordering::Relaxed) {
            self.rethrow();
        }
        self.busy.0.store(false, Ordering::Release);
    }

    /// Whether its workers are in this process, and not in the one that it was forked from.
    #[inline]
    pub(crate) fn has_workers(&self) -> bool {
        self.generation == generation()
    }

    /// Throws the panic of the loop that was closed.
    #[cold]
    fn rethrow(&self) -> ! {
        self.shared.panicked.store(false, Ordering::Relaxed);
        let panic = lock(&self.shared.panic).take();
        self.busy.0.store(false, Ordering::Release);
        resume_unwind(panic.expect("who says that there is a panic has kept it"));
    }

    /// Publishes a loop and wakes as many workers as have something at home.
    #[inline]
    fn open(
        &self,
        count: usize,
        body: NonNull<()>,
        call: unsafe fn(NonNull<()>, Range<usize>),
    ) -> Loop {
        let shared = &*self.shared;
        let threads = self.workers.len() + 1;
        // Dividing would be a good part of what a short loop costs.
        let (share, longer) = match count < threads {
            true => (0, count),
            false => (count / threads, count % threads),
        };
        let state = &shared.board.0.state;
        // From 1 on: a home that nobody ever came to is marked with 0.
        let number = state.load(Ordering::Relaxed) / NEXT_LOOP + 1;
        let run = shared.board.0.published.with_mut(|published| {
            // SAFETY: the loop before is closed and nobody is in it, which `close` waited for; `busy` keeps
            // other callers away.
            let published = unsafe { &mut *published };
            *published.insert(Loop {
                body,
                call,
                number,
                share,
                longer,
            })
        });
        state.store((number * NEXT_LOOP) | OPEN, Ordering::Release);
        waker_fence();
        for worker in shared.workers.iter().take(count - 1) {
            worker.wake_after_fence();
        }
        run
    }

    /// Ends the loop, out of which no piece is left: nobody can join, and those who were in it have left.
    #[inline]
    fn close(&self, run: &Loop) {
        let shared = &*self.shared;
        let state = &shared.board.0.state;
        state.store(run.number * NEXT_LOOP, Ordering::Relaxed);
        // With the fence in `work`: who is not seen inside here sees the loop closed there.
        meeting_fence();
        for worker in &shared.members[1..] {
            // Acquires what those wrote who left.
            let left = || !worker.0.inside.load(Ordering::Acquire);
            if !left() {
                shared.caller.wait_until(left);
            }
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
        if !self.has_workers() {
            // They are the parent's, and cannot be waited for.
            std::mem::forget(std::mem::take(&mut self.workers));
            return;
        }
        for worker in self.workers.drain(..) {
            let ended = worker.join();
            debug_assert!(ended.is_ok(), "a worker catches what bodies throw");
        }
    }
}
