//! Streams: in-order queues of work on a device.

use crate::context::Context;
use crate::device::{Device, DeviceShared};
use crate::error::RuntimeError;
use crate::ledger::{Ledger, Use, Waits};
use crate::node::Node;
use crate::task::{StreamTask, Submission, Waiting, carry_out};
use crate::trace::{SpanKind, Trace, host_track};
use loopwright_threads::{Event, InlineQueue, TaskQueue};
use std::fmt;
use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// How work of a plain device is run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Scheduler {
    /// By the thread that schedules it, before it goes on.
    Sync,
    /// By a worker that every stream has.
    #[default]
    Threads,
}

impl Scheduler {
    /// Its name in settings.
    pub const fn name(self) -> &'static str {
        match self {
            Scheduler::Sync => "sync",
            Scheduler::Threads => "threads",
        }
    }
}

/// What all devices and streams of a runtime share.
pub(crate) struct Shared {
    pub(crate) board: Mutex<Board>,
    pub(crate) trace: Option<Arc<Trace>>,
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
    /// `None` for streams that run inline, which have their queue to themselves.
    queue: Option<TaskQueue<StreamTask>>,
    /// What the merge buffer holds when everything scheduled has run.
    pub(crate) merge: Option<Arc<Node>>,
    /// The stream's own memory for merges by copy.
    pub(crate) merge_memory: Option<Arc<Node>>,
}

pub(crate) struct StreamShared {
    pub(crate) name: Arc<str>,
    id: u64,
    pub(crate) device: Arc<DeviceShared>,
    lane: usize,
    /// For streams that run inline; locked while a task runs.
    inline: Option<Mutex<InlineQueue>>,
    capacity: u64,
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
        let number = device.next_stream();
        let name: Arc<str> = format!("{}.{number}", device.name).into();
        let capacity = device.options.queue;
        let (now, queue, inline) = match device.options.scheduler {
            Scheduler::Sync => {
                let queue = InlineQueue::new(Arc::clone(&name));
                (queue.record(), None, Some(Mutex::new(queue)))
            }
            Scheduler::Threads => {
                let queue = TaskQueue::new(Arc::clone(&name), capacity)?;
                (queue.record(), Some(queue), None)
            }
        };
        let lane = Lane {
            now,
            queue,
            merge: None,
            merge_memory: None,
        };
        let mut board = crate::lock(&device.runtime.board);
        let free = board.lanes.iter().position(Option::is_none);
        let at = free.unwrap_or_else(|| {
            board.lanes.push(None);
            board.lanes.len() - 1
        });
        board.lanes[at] = Some(lane);
        drop(board);
        let capacity: NonZero<usize> = capacity;
        Ok(Stream {
            shared: Arc::new(StreamShared {
                name,
                id: IDS.fetch_add(1, Ordering::Relaxed),
                device: Arc::clone(device),
                lane: at,
                inline,
                capacity: capacity.get().next_power_of_two() as u64,
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
        self.record().is_done()
    }

    /// Waits until everything scheduled so far ended.
    ///
    /// # Errors
    /// [`RuntimeError::Stream`] where any of it failed, or this is a task of the same stream.
    pub fn wait(&self) -> Result<(), RuntimeError> {
        let trace = self.shared.device.runtime.trace.as_ref();
        let from = trace.map(|_| Instant::now());
        let ended = self.record().wait();
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
        self.submit(&Waiting { event })
    }

    /// Puts work behind everything scheduled so far.
    pub(crate) fn submit(&self, submission: &impl Submission) -> Result<(), RuntimeError> {
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
        // Held while the task runs, so that another thread's comes after it.
        let mut queue = crate::lock(inline);
        queue.check()?;
        let mut board = crate::lock(&self.shared.device.runtime.board);
        let merge = board.prepare(self.shared.lane, submission, &mut waits)?;
        // Entered before it runs: what others schedule meanwhile waits for it.
        let next = queue.pushed() + 1;
        let merged = board.enter(self.shared.lane, submission, merge.as_ref(), next);
        drop(board);
        drop(merged);
        let traced = self.trace().map(|trace| (&**trace, &self.shared.name));
        Ok(queue.run(
            || submission.name().to_owned(),
            || carry_out(&waits, traced, submission, merge.as_deref()),
        )?)
    }

    fn submit_to_worker(&self, submission: &impl Submission) -> Result<(), RuntimeError> {
        let shared = &self.shared;
        let mut waits = Waits::new();
        loop {
            let mut board = crate::lock(&shared.device.runtime.board);
            let lane = board.lane(shared.lane);
            let queue = lane.worker_queue();
            queue.check()?;
            let next = queue.pushed() + 1;
            if queue.is_full() {
                // Until one more place is free; without the lock, so that others can go on.
                let space = lane.now.at(next - shared.capacity);
                drop(board);
                space.wait()?;
                continue;
            }
            let merge = board.prepare(shared.lane, submission, &mut waits)?;
            let task = StreamTask {
                work: submission.owned(merge.as_ref()),
                waits,
                trace: self
                    .trace()
                    .map(|trace| (Arc::clone(trace), Arc::clone(&shared.name))),
            };
            // First the task, then the entries: it is refused where the stream has just failed, and
            // then nobody must wait for it. Nobody can look in between, since the board is locked.
            board.lane(shared.lane).worker_queue().push(task)?;
            let merged = board.enter(shared.lane, submission, merge.as_ref(), next);
            drop(board);
            drop(merged);
            return Ok(());
        }
    }

    /// Looks at the stream's part of the board. What is dropped must be given back, not dropped in here.
    pub(crate) fn with_lane<R>(&self, look: impl FnOnce(&mut Lane) -> R) -> R {
        look(crate::lock(&self.shared.device.runtime.board).lane(self.shared.lane))
    }

    fn trace(&self) -> Option<&Arc<Trace>> {
        self.shared.device.runtime.trace.as_ref()
    }
}

impl Lane {
    fn worker_queue(&mut self) -> &mut TaskQueue<StreamTask> {
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
                return Err(submission.unwritten(at));
            }
        }
        for (entry, usage) in uses {
            ledger.waits(*entry, *usage, &lane.now, waits);
        }
        if let Some(merge) = &merge {
            ledger.waits(merge.entry(), Use::Read, &lane.now, waits);
        }
        if let Some(event) = submission.event() {
            waits.push(event.clone());
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

impl Drop for StreamShared {
    fn drop(&mut self) {
        // Ended without the lock: what is left in the queue may take it.
        let lane = crate::lock(&self.device.runtime.board).lanes[self.lane].take();
        drop(lane);
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Stream").field(&self.shared.name).finish()
    }
}
