//! Points in a queue that others can wait for.

use crate::error::{Failure, ThreadsError};
use crate::lines::Lines;
use crate::park::lock;
use crate::sync::{
    Arc, AtomicU64, AtomicUsize, Condvar, Mutex, Ordering, Sleeper, is_told_to_end, looks,
    notify_all, prepare_fences, sleeper_fence, thread, wait_a_while, waker_fence,
};
use std::fmt;
use std::sync::OnceLock;

/// How far a queue's worker is.
pub(crate) struct Progress {
    /// The queue's name.
    pub(crate) queue: std::sync::Arc<str>,
    /// Set before any task can run.
    pub(crate) worker: OnceLock<thread::ThreadId>,
    /// How many tasks ended: ran, failed, or were dropped because an earlier one failed. On lines of its
    /// own: it is written for every task, and what is beside it is looked at for every push.
    ended: Lines<AtomicU64>,
    /// Set before the failing task counts as ended.
    failure: OnceLock<std::sync::Arc<Failure>>,
    /// How many threads hold `gate` or wait at `moved`; the worker takes the lock only for them.
    waiting: AtomicUsize,
    gate: Mutex<()>,
    moved: Condvar,
}

impl Progress {
    pub(crate) fn new(queue: std::sync::Arc<str>) -> Progress {
        prepare_fences();
        Progress {
            queue,
            worker: OnceLock::new(),
            ended: Lines(AtomicU64::new(0)),
            failure: OnceLock::new(),
            waiting: AtomicUsize::new(0),
            gate: Mutex::new(()),
            moved: Condvar::new(),
        }
    }

    pub(crate) fn ended(&self) -> u64 {
        self.ended.0.load(Ordering::Acquire)
    }

    pub(crate) fn failure(&self) -> Option<&std::sync::Arc<Failure>> {
        self.failure.get()
    }

    /// Poisons the queue. The first failure is the one that counts.
    pub(crate) fn fail(&self, failure: Failure) {
        // A second failure is a task that panics while it is dropped unrun.
        let _ = self.failure.set(std::sync::Arc::new(failure));
    }

    /// Counts one more task as ended. Called by the worker alone.
    pub(crate) fn end_one(&self) {
        let ended = self.ended.0.load(Ordering::Relaxed) + 1;
        self.ended.0.store(ended, Ordering::Release);
        // With the fence in `wait_for`: the waiter sees the count, or this sees the waiter.
        waker_fence();
        if self.waiting.load(Ordering::Relaxed) > 0 {
            // Who counted itself and has not seen the new count holds the lock until it waits.
            drop(lock(&self.gate));
            notify_all(&self.moved, Sleeper::EventWaiter);
        }
    }

    /// Whether this thread is the worker, for which waiting for itself would never end.
    pub(crate) fn refuse_own_worker(&self) -> Result<(), ThreadsError> {
        if self.worker.get() == Some(&thread::current().id()) {
            return Err(ThreadsError::WaitsForItself {
                queue: self.queue.clone(),
            });
        }
        Ok(())
    }

    /// Waits until so many tasks ended; gives the failure of one of them.
    pub(crate) fn wait(&self, count: u64) -> Result<(), ThreadsError> {
        if self.ended() < count {
            self.refuse_own_worker()?;
            self.wait_for(count)?;
        }
        match self.failure() {
            Some(failure) if failure.index < count => Err(failure.clone().into()),
            _ => Ok(()),
        }
    }

    /// Waits until so many tasks ended, or the waiter is told to end.
    fn wait_for(&self, count: u64) -> Result<(), ThreadsError> {
        if looks(Sleeper::EventWaiter, || 1, || self.ended() >= count) {
            return Ok(());
        }
        while self.ended() < count {
            self.wait_once(count);
            // Without the lock: who is asked may take his time.
            if self.ended() < count && is_told_to_end() {
                return Err(ThreadsError::Interrupted);
            }
        }
        Ok(())
    }

    /// Waits for the worker to move, unless so many tasks have ended.
    fn wait_once(&self, count: u64) {
        let mut gate = lock(&self.gate);
        self.waiting.fetch_add(1, Ordering::Relaxed);
        sleeper_fence();
        if self.ended() < count {
            gate = wait_a_while(&self.moved, gate);
        }
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        drop(gate);
    }
}

/// The point in a queue behind everything that was pushed before it was recorded.
///
/// Any thread can hold one, also after the queue is gone: a queue that is dropped runs what it has.
#[derive(Clone)]
pub struct Event {
    progress: Arc<Progress>,
    /// How many tasks are before the point.
    count: u64,
}

impl Event {
    pub(crate) fn new(progress: Arc<Progress>, count: u64) -> Event {
        Event { progress, count }
    }

    /// The name of the queue it was recorded on.
    pub fn queue(&self) -> &str {
        &self.progress.queue
    }

    /// How many tasks of the queue are before it.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// How many tasks of the queue ended, before it or behind it.
    pub fn ended(&self) -> u64 {
        self.progress.ended()
    }

    /// The point of the same queue that has so many tasks before it. They need not be pushed yet: who
    /// waits for it waits for them to be pushed, too.
    pub fn at(&self, count: u64) -> Event {
        Event::new(Arc::clone(&self.progress), count)
    }

    /// Moves it to another point of the same queue.
    pub fn move_to(&mut self, count: u64) {
        self.count = count;
    }

    /// Whether both are points of one queue.
    pub fn is_same_queue(&self, other: &Event) -> bool {
        Arc::ptr_eq(&self.progress, &other.progress)
    }

    /// The failure that poisoned the queue before this point, if one did; does not wait.
    pub fn failure(&self) -> Option<&std::sync::Arc<Failure>> {
        let failure = self.progress.failure();
        failure.filter(|failure| failure.index < self.count)
    }

    /// Whether everything before it ended, well or not.
    pub fn is_done(&self) -> bool {
        self.progress.ended() >= self.count
    }

    /// Waits until everything before it ended, well or not.
    ///
    /// # Errors
    /// [`ThreadsError::WaitsForItself`] where it is not done and this is a task of the same queue.
    pub fn wait_for_end(&self) -> Result<(), ThreadsError> {
        match self.wait() {
            Err(ThreadsError::Poisoned(_)) => Ok(()),
            ended => ended,
        }
    }

    /// Waits until so many tasks of the queue ended, as [`at`](Event::at) and [`wait`](Event::wait) would.
    ///
    /// # Errors
    /// As [`wait`](Event::wait).
    pub fn wait_at(&self, count: u64) -> Result<(), ThreadsError> {
        self.progress.wait(count)
    }

    /// Waits until everything before it ended.
    ///
    /// # Errors
    /// [`ThreadsError::Poisoned`] where a task before it failed; failures behind it are none of its.
    /// [`ThreadsError::Interrupted`] where the waiter was told to end; see [`interrupt`](crate::interrupt).
    /// [`ThreadsError::WaitsForItself`] where it is not done and this is a task of the same queue.
    pub fn wait(&self) -> Result<(), ThreadsError> {
        self.progress.wait(self.count)
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event")
            .field("queue", &self.queue())
            .field("count", &self.count)
            .field("is_done", &self.is_done())
            .finish()
    }
}
