//! Streams: in-order queues of work on a device.

use crate::context::Context;
use crate::device::{Device, DeviceShared};
use crate::error::RuntimeError;
use crate::ledger::{Entry, Ledger, Use, Waits};
use crate::node::Node;
use crate::task::{StreamTask, Work};
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

/// What a task uses, and what it does with the merge buffer.
pub(crate) struct Request<'a> {
    /// Memory.
    pub(crate) uses: &'a [(Entry, Use)],
    /// The error for reading memory that nothing wrote, by its place in `uses`.
    pub(crate) unwritten: &'a dyn Fn(usize) -> RuntimeError,
    /// Checks what the merge buffer holds, for work that reads it.
    pub(crate) merges: Option<&'a dyn Fn(Option<&Node>) -> Result<(), RuntimeError>>,
    /// What the merge buffer holds from then on.
    pub(crate) sets_merge: Option<Arc<Node>>,
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
        let event = event.clone();
        let request = Request {
            uses: &[],
            unwritten: &|_| unreachable!("nothing is used"),
            merges: None,
            sets_merge: None,
        };
        self.submit(request, |mut waits, _| {
            waits.push(event);
            (Work::Nothing, waits)
        })
    }

    /// Puts work behind everything scheduled so far. `make` gets the points of other streams that it
    /// must wait for, and what the merge buffer holds if the work reads it.
    pub(crate) fn submit(
        &self,
        request: Request<'_>,
        make: impl FnOnce(Waits, Option<Arc<Node>>) -> (Work, Waits),
    ) -> Result<(), RuntimeError> {
        let from = self.trace().map(|trace| (trace, Instant::now()));
        let label = match &self.shared.inline {
            Some(inline) => self.submit_inline(inline, &request, make)?,
            None => self.submit_to_worker(&request, make)?,
        };
        if let (Some((trace, from)), Some(label)) = (from, label) {
            let name = format!("{label} on {}", self.shared.name);
            trace.record(&host_track(), SpanKind::Enqueue, name, from);
        }
        Ok(())
    }

    /// Gives the work's name, if there is a trace.
    fn submit_inline(
        &self,
        inline: &Mutex<InlineQueue>,
        request: &Request<'_>,
        make: impl FnOnce(Waits, Option<Arc<Node>>) -> (Work, Waits),
    ) -> Result<Option<String>, RuntimeError> {
        // Held while the task runs, so that another thread's comes after it.
        let mut queue = crate::lock(inline);
        queue.check()?;
        let mut board = crate::lock(&self.shared.device.runtime.board);
        let next = queue.pushed() + 1;
        let (waits, merge) = board.prepare(self.shared.lane, request, next)?;
        // Entered before it runs: what others schedule meanwhile waits for it.
        let merged = board.enter(self.shared.lane, request, merge.as_ref(), next);
        drop(board);
        drop(merged);
        let (work, waits) = make(waits, merge);
        let task = self.task(work, waits);
        let label = task.label();
        queue.push(task)?;
        Ok(label)
    }

    /// Gives the work's name, if there is a trace.
    fn submit_to_worker(
        &self,
        request: &Request<'_>,
        make: impl FnOnce(Waits, Option<Arc<Node>>) -> (Work, Waits),
    ) -> Result<Option<String>, RuntimeError> {
        let shared = &self.shared;
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
            let (waits, merge) = board.prepare(shared.lane, request, next)?;
            let (work, waits) = make(waits, merge.clone());
            let task = self.task(work, waits);
            let label = task.label();
            // First the task, then the entries: it is refused where the stream has just failed, and
            // then nobody must wait for it. Nobody can look in between, since the board is locked.
            board.lane(shared.lane).worker_queue().push(task)?;
            let merged = board.enter(shared.lane, request, merge.as_ref(), next);
            drop(board);
            drop(merged);
            return Ok(label);
        }
    }

    fn task(&self, work: Work, waits: Waits) -> StreamTask {
        let trace = self.trace();
        StreamTask {
            work,
            waits,
            trace: trace.map(|trace| (Arc::clone(trace), Arc::clone(&self.shared.name))),
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

    /// What the next task of a lane, its `next`th, must wait for, and what it merges.
    fn prepare(
        &mut self,
        lane: usize,
        request: &Request<'_>,
        next: u64,
    ) -> Result<(Waits, Option<Arc<Node>>), RuntimeError> {
        let Board { ledger, lanes } = self;
        let lane = lanes[lane].as_mut().expect("the lane is in use");
        let merge = match request.merges {
            Some(check) => {
                check(lane.merge.as_deref())?;
                lane.merge.clone()
            }
            None => None,
        };
        for (at, (entry, usage)) in request.uses.iter().enumerate() {
            if usage.reads() && !ledger.is_written(*entry) {
                return Err((request.unwritten)(at));
            }
        }
        let mut waits = Waits::new();
        lane.now.move_to(next);
        for (entry, usage) in request.uses {
            ledger.waits(*entry, *usage, &lane.now, &mut waits);
        }
        if let Some(merge) = &merge {
            ledger.waits(merge.buffer.entry, Use::Read, &lane.now, &mut waits);
        }
        lane.now.move_to(next - 1);
        Ok((waits, merge))
    }

    /// Enters the `next`th task of a lane. Gives back what the merge buffer held, if that changed: it
    /// must not be dropped while the board is locked, since its memory's entry is closed then.
    #[must_use]
    fn enter(
        &mut self,
        lane: usize,
        request: &Request<'_>,
        merge: Option<&Arc<Node>>,
        next: u64,
    ) -> Option<Arc<Node>> {
        let Board { ledger, lanes } = self;
        let lane = lanes[lane].as_mut().expect("the lane is in use");
        lane.now.move_to(next);
        for (entry, usage) in request.uses {
            ledger.enter(*entry, *usage, &lane.now);
        }
        if let Some(merge) = merge {
            ledger.enter(merge.buffer.entry, Use::Read, &lane.now);
        }
        let node = request.sets_merge.as_ref()?;
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
