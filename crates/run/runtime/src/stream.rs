//! Streams: in-order queues of work on a device. Which stream waits for which is decided in `ledger.rs`.

use crate::context::Context;
use crate::device::{Device, DeviceShared};
use crate::error::RuntimeError;
use crate::ledger::{Ledger, MANY_WAITS, Use, Wait, Waits};
use crate::node::Node;
use crate::routine::RoutineShared;
use crate::task::{Owned, Submission, Waiting, carry_out};
use crate::trace::{SpanKind, Trace, host_track};
use loopwright_backend::{BackendError, DeviceError, Scheduler};
use loopwright_threads::interrupt::{Interrupted, check, check_cut, is_asking};
use loopwright_threads::{Event, InlineQueue, ShortLock, TaskQueue, ThreadsError};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::Instant;

/// What all devices and streams of a runtime share.
pub(crate) struct Shared {
    pub(crate) board: ShortLock<Board>,
    pub(crate) trace: Option<Arc<Trace>>,
    /// The process that the streams' workers are in; see [`loopwright_threads::generation`].
    pub(crate) generation: u64,
}

/// What is known of all scheduled work; one lock, so that it has one order.
#[derive(Default)]
pub(crate) struct Board {
    pub(crate) ledger: Ledger,
    /// By [`StreamShared::lane`].
    lanes: Vec<Option<Lane>>,
}

/// A stream's part of the board.
pub(crate) struct Lane {
    /// The point behind everything scheduled.
    now: Event,
    /// How many tasks had ended when last looked at: looking takes the worker's cache line away.
    ended: u64,
    /// `None` for streams that run inline, which have their queue to themselves.
    queue: Option<TaskQueue<Owned>>,
    /// What the merge buffer holds when everything scheduled has run.
    pub(crate) merge: Option<Arc<Node>>,
    /// The stream's own memory for merges by copy.
    pub(crate) merge_memory: Option<Arc<Node>>,
}

pub(crate) struct StreamShared {
    pub(crate) name: Arc<str>,
    id: u64,
    pub(crate) device: Arc<DeviceShared>,
    /// The point before everything.
    start: Event,
    lane: usize,
    /// For streams that run inline; locked while a task runs.
    inline: Option<Mutex<InlineQueue>>,
    /// How many tasks wait or run before scheduling more waits.
    limit: u64,
}

/// An in-order queue of work on a device. Clones are the same stream.
///
/// When the last clone is gone, with all contexts and routines on it, the work that was scheduled is
/// finished and the worker ends.
#[derive(Clone)]
pub struct Stream {
    pub(crate) shared: Arc<StreamShared>,
}

impl Stream {
    pub(crate) fn new(device: &Arc<DeviceShared>) -> Result<Stream, RuntimeError> {
        static IDS: AtomicU64 = AtomicU64::new(0);
        device.runtime.check_process()?;
        let number = device.next_stream();
        let name: Arc<str> = format!("{}.{number}", device.name).into();
        let limit = device.options.queue;
        // Room for the last task's waits, too, whatever the limit.
        let capacity = limit.saturating_add(MANY_WAITS + 1);
        let (now, queue, inline) = match device.scheduler() {
            Scheduler::Sync => {
                let queue = InlineQueue::new(Arc::clone(&name));
                (queue.record(), None, Some(Mutex::new(queue)))
            }
            Scheduler::Threads => {
                let queue = TaskQueue::new(Arc::clone(&name), capacity)?;
                (queue.record(), Some(queue), None)
            }
        };
        let start = now.clone();
        let lane = Lane {
            now,
            ended: 0,
            queue,
            merge: None,
            merge_memory: None,
        };
        let mut board = device.runtime.board.lock();
        let free = board.lanes.iter().position(Option::is_none);
        let at = free.unwrap_or_else(|| {
            board.lanes.push(None);
            board.lanes.len() - 1
        });
        board.lanes[at] = Some(lane);
        drop(board);
        Ok(Stream {
            shared: Arc::new(StreamShared {
                name,
                id: IDS.fetch_add(1, Ordering::Relaxed),
                device: Arc::clone(device),
                start,
                lane: at,
                inline,
                limit: limit.get() as u64,
            }),
        })
    }

    /// Its name: the device's, and its number there.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// A number that no other stream of the process has.
    pub fn id(&self) -> u64 {
        self.shared.id
    }

    /// The device that it is on.
    pub fn device(&self) -> Device {
        Device {
            shared: Arc::clone(&self.shared.device),
        }
    }

    /// A context with nothing in it.
    pub fn context(&self) -> Context {
        Context::root(self.clone())
    }

    /// The point behind everything scheduled so far.
    pub fn record(&self) -> Event {
        self.with_lane(|lane| lane.now.clone())
    }

    /// Whether everything scheduled so far ended.
    pub fn is_idle(&self) -> bool {
        let count = self.with_lane(|lane| lane.now.count());
        self.shared.start.ended() >= count
    }

    /// Waits until everything scheduled so far ended.
    ///
    /// # Errors
    /// [`RuntimeError::Stream`] where any of it failed, or this is a task of the same stream.
    pub fn wait(&self) -> Result<(), RuntimeError> {
        self.shared.device.runtime.check_process()?;
        let trace = self.shared.device.runtime.trace.as_ref();
        let from = trace.map(|_| Instant::now());
        let (event, count) = (&self.shared.start, self.with_lane(|lane| lane.now.count()));
        let ended = event.wait_at(count);
        if let (Some(trace), Some(from)) = (trace, from) {
            let name = format!("wait for {}", self.shared.name);
            trace.record(&host_track(), SpanKind::Wait, name, from);
        }
        Ok(ended?)
    }

    /// Whether it still takes work; does not wait.
    ///
    /// # Errors
    /// [`RuntimeError::Stream`] where something failed on it.
    pub fn check(&self) -> Result<(), RuntimeError> {
        match self.record().at(u64::MAX).failure() {
            Some(failure) => Err(RuntimeError::Stream(failure.clone().into())),
            None => Ok(()),
        }
    }

    /// Makes everything scheduled from now on wait for a point of another stream; the caller does not.
    ///
    /// # Errors
    /// [`RuntimeError::Stream`] where this stream has failed. Where the other one fails, this one
    /// fails when it gets there.
    pub fn wait_for(&self, event: &Event) -> Result<(), RuntimeError> {
        let wait = Wait {
            event: event.clone(),
            well: true,
        };
        self.submit(&Waiting { wait: &wait })
    }

    /// Puts work behind everything scheduled so far.
    pub(crate) fn submit(&self, submission: &impl Submission) -> Result<(), RuntimeError> {
        self.shared.device.runtime.check_process()?;
        let from = self.trace().map(|trace| (trace, Instant::now()));
        match &self.shared.inline {
            Some(inline) => self.submit_inline(inline, submission)?,
            None => self.submit_to_worker(submission)?,
        }
        if let Some((trace, from)) = from {
            let name = format!("{} on {}", submission.label(), self.shared.name);
            trace.record(&host_track(), SpanKind::Enqueue, name, from);
        }
        Ok(())
    }

    fn submit_inline(
        &self,
        inline: &Mutex<InlineQueue>,
        submission: &impl Submission,
    ) -> Result<(), RuntimeError> {
        let mut waits = Waits::new();
        // Nothing is begun where the work is to end.
        check().map_err(|Interrupted| ThreadsError::Interrupted)?;
        // Held while the task runs, so that another thread's comes after it.
        let mut queue = self.inline_queue(inline)?;
        queue.check()?;
        let mut board = self.shared.device.runtime.board.lock();
        let merge = board.prepare(self.shared.lane, submission, &mut waits)?;
        // Entered before it runs: what others schedule meanwhile waits for it.
        let next = queue.pushed() + 1;
        let merged = board.enter(self.shared.lane, submission, merge.as_ref(), next);
        drop(board);
        drop(merged);
        let traced = self.trace().map(|trace| (trace, &self.shared.name));
        let ended = queue.run(
            || submission.name().to_owned(),
            || match carry_out(&waits, traced, submission, merge.as_deref()) {
                Err(DeviceError::Backend(BackendError::Interrupted)) => Err(Interrupted.into()),
                ended => Ok(ended?),
            },
        );
        if let Err(ThreadsError::Interrupted) = ended {
            let begun = check_cut().is_err();
            let mut board = self.shared.device.runtime.board.lock();
            for (entry, usage) in submission.uses() {
                board.ledger.lose(*entry, *usage, begun);
            }
        }
        Ok(ended?)
    }

    /// Locks a queue, unless this thread has it already and asks in the middle of its task whether that is to end: then whoever
    /// is asked wants to compute.
    fn inline_queue<'a>(
        &self,
        inline: &'a Mutex<InlineQueue>,
    ) -> Result<MutexGuard<'a, InlineQueue>, RuntimeError> {
        if !is_asking() {
            return Ok(crate::lock(inline));
        }
        match inline.try_lock() {
            Ok(queue) => Ok(queue),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => {
                let queue = Arc::clone(&self.shared.name);
                Err(ThreadsError::WaitsForItself { queue }.into())
            }
        }
    }

    fn submit_to_worker(&self, submission: &impl Submission) -> Result<(), RuntimeError> {
        let shared = &self.shared;
        loop {
            let mut waits = Waits::new();
            let mut board = shared.device.runtime.board.lock();
            let lane = board.lane(shared.lane);
            lane.worker_queue().check()?;
            if let Err(space) = lane.has_room(shared.limit) {
                // Without the lock, so that others can go on.
                drop(board);
                space.wait()?;
                continue;
            }
            let merge = board.prepare(shared.lane, submission, &mut waits)?;
            // The waits are tasks of their own, or one if they are many.
            let tasks = match waits.len() {
                0..=MANY_WAITS => waits.len() + 1,
                _ => 2,
            };
            let queue = board.lane(shared.lane).worker_queue();
            let last = queue.pushed() + tasks as u64;
            // First the tasks, then the entries: they are refused where the stream has just failed, and
            // then nobody must wait for them. Nobody can look in between, since the board is locked.
            if waits.len() <= MANY_WAITS {
                for wait in waits {
                    let needed_by = submission.shared_name();
                    queue.push(self.traced(Owned::Wait { wait, needed_by }))?;
                }
            } else {
                let (waits, needed_by) = (waits.into_boxed_slice(), submission.shared_name());
                queue.push(self.traced(Owned::Waits { waits, needed_by }))?;
            }
            queue.push(self.traced(submission.owned(merge.as_ref())))?;
            let merged = board.enter(shared.lane, submission, merge.as_ref(), last);
            submission.entered(last);
            drop(board);
            drop(merged);
            return Ok(());
        }
    }

    /// Lets a routine go when its tasks, up to the `last` of this stream, are done.
    pub(crate) fn release(&self, mut routine: Arc<RoutineShared>, last: u64) {
        let shared = &self.shared;
        if shared.inline.is_some() {
            return;
        }
        if shared.device.runtime.check_process().is_err() {
            std::mem::forget(routine);
            return;
        }
        loop {
            // Never let go under the lock: memory that goes takes it, too.
            let mut board = shared.device.runtime.board.lock();
            let lane = board.lane(shared.lane);
            if lane.now.ended() >= last || lane.worker_queue().check().is_err() {
                // Where the stream has failed, no task looks at the routine any more.
                break;
            }
            match lane.worker_queue().try_push(Owned::Release(routine)) {
                Ok(()) => {
                    let pushed = lane.worker_queue().pushed();
                    lane.now.move_to(pushed);
                    return;
                }
                Err(Owned::Release(back)) => routine = back,
                Err(_) => unreachable!("what was refused is what was pushed"),
            }
            let space = lane.now.at(lane.now.ended() + 1);
            drop(board);
            if let Err(ThreadsError::WaitsForItself { .. }) = space.wait() {
                // A task of the stream itself lets go of the last handle, and the queue is full. No task
                // does; if one did, keeping the routine would be all that is left.
                std::mem::forget(routine);
                return;
            }
        }
    }

    /// Work with the stream's trace, if it has one.
    fn traced(&self, work: Owned) -> Owned {
        match self.trace() {
            None => work,
            Some(trace) => {
                let (trace, track) = (Arc::clone(trace), Arc::clone(&self.shared.name));
                Owned::Traced(Box::new((work, trace, track)))
            }
        }
    }

    /// Looks at the stream's part of the board. What is dropped must be given back, not dropped in here.
    pub(crate) fn with_lane<R>(&self, look: impl FnOnce(&mut Lane) -> R) -> R {
        look(
            self.shared
                .device
                .runtime
                .board
                .lock()
                .lane(self.shared.lane),
        )
    }

    fn trace(&self) -> Option<&Arc<Trace>> {
        self.shared.device.runtime.trace.as_ref()
    }
}

impl Lane {
    /// Whether fewer tasks than the limit wait or run; else the point at which that is so.
    fn has_room(&mut self, limit: u64) -> Result<(), Event> {
        let scheduled = self.now.count();
        if scheduled - self.ended < limit {
            return Ok(());
        }
        self.ended = self.now.ended().min(scheduled);
        match scheduled - self.ended < limit {
            true => Ok(()),
            // Until a quarter is free: to look for every single place would slow the worker down.
            false => Err(self.now.at(scheduled + (limit / 4).max(1) - limit)),
        }
    }

    fn worker_queue(&mut self) -> &mut TaskQueue<Owned> {
        self.queue
            .as_mut()
            .expect("a stream that does not run inline has a worker")
    }
}

impl Board {
    pub(crate) fn lane(&mut self, lane: usize) -> &mut Lane {
        self.lanes[lane]
            .as_mut()
            .expect("a stream's lane is there as long as the stream")
    }

    /// Finds what the next task of a lane must wait for, and gives what it merges.
    fn prepare(
        &mut self,
        lane: usize,
        submission: &impl Submission,
        waits: &mut Waits,
    ) -> Result<Option<Arc<Node>>, RuntimeError> {
        let Board { ledger, lanes } = self;
        let lane = lanes[lane].as_mut().expect("the lane is in use");
        let merge = match submission.merges() {
            true => {
                submission.check_merge(lane.merge.as_deref())?;
                lane.merge.clone()
            }
            false => None,
        };
        let uses = submission.uses();
        for (at, (entry, usage)) in uses.iter().enumerate() {
            if usage.reads() && !ledger.is_written(*entry) {
                let error = submission.unwritten(at);
                return Err(match ledger.is_lost(*entry) {
                    true => error.lost(),
                    false => error,
                });
            }
        }
        for (entry, usage) in uses {
            ledger.waits(*entry, *usage, &lane.now, waits);
        }
        if let Some(merge) = &merge {
            ledger.waits(merge.entry(), Use::Read, &lane.now, waits);
        }
        Ok(merge)
    }

    /// Enters the `next`th task of a lane. Gives back what the merge buffer held, if that changed: it
    /// must not be dropped while the board is locked, since its memory's entry is closed then.
    #[must_use]
    fn enter(
        &mut self,
        lane: usize,
        submission: &impl Submission,
        merge: Option<&Arc<Node>>,
        next: u64,
    ) -> Option<Arc<Node>> {
        let Board { ledger, lanes } = self;
        let lane = lanes[lane].as_mut().expect("the lane is in use");
        lane.now.move_to(next);
        for (entry, usage) in submission.uses() {
            ledger.enter(*entry, *usage, &lane.now);
        }
        if let Some(merge) = merge {
            ledger.enter(merge.entry(), Use::Read, &lane.now);
        }
        let node = submission.sets_merge()?;
        lane.merge.replace(Arc::clone(node))
    }
}

impl Shared {
    /// Refuses work in a process that was forked from the one that this runtime was made in: its workers are not here, and other
    /// threads may have held its locks.
    pub(crate) fn check_process(&self) -> Result<(), RuntimeError> {
        match self.generation == loopwright_threads::generation() {
            true => Ok(()),
            false => Err(RuntimeError::Stream(ThreadsError::Forked)),
        }
    }
}

impl Drop for StreamShared {
    fn drop(&mut self) {
        if self.device.runtime.check_process().is_err() {
            return;
        }
        // Ended without the lock: what is left in the queue may take it.
        let lane = self.device.runtime.board.lock().lanes[self.lane].take();
        drop(lane);
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Stream").field(&self.shared.name).finish()
    }
}
