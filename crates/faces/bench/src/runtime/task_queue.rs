//! Tasks for a worker: our task queue beside a bounded channel of crossbeam's with a thread that receives.

use super::{Library, Plan, Side, failed, ours, side_by_side};
use crate::BenchError;
use crate::report::Row;
use crossbeam_channel::{Receiver, Sender, bounded};
use loopwright_threads::{Task, TaskQueue};
use std::error::Error;
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

/// Tasks that can wait on either side.
const CAPACITY: NonZero<usize> = NonZero::new(1024).expect("it is not zero");

/// The bar of the issue: no worse than 1.2 times the bare channel.
const GOAL: f64 = 1.0 / 1.2;

/// What a task that runs a routine holds: the routine, shared, and a few words.
struct Probe<Routine> {
    routine: Routine,
    argument: u64,
}

/// What is run.
trait Runs: Clone + Send + 'static {
    fn run(&self, argument: u64);
}

/// A routine that tasks share.
#[derive(Clone)]
struct Shared(Arc<AtomicU64>);

impl Runs for Shared {
    fn run(&self, argument: u64) {
        // One thread writes it.
        let sum = self.0.load(Ordering::Relaxed);
        self.0.store(sum + argument, Ordering::Relaxed);
    }
}

/// A routine that outlives all tasks.
#[derive(Clone, Copy)]
struct Static(&'static AtomicU64);

impl Runs for Static {
    fn run(&self, argument: u64) {
        let sum = self.0.load(Ordering::Relaxed);
        self.0.store(sum + argument, Ordering::Relaxed);
    }
}

impl<Routine: Runs> Task for Probe<Routine> {
    fn name(&self) -> &str {
        "probe"
    }

    fn run(&mut self) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.routine.run(self.argument);
        Ok(())
    }
}

/// A channel with a worker.
struct Channel<Routine> {
    /// There until it is dropped. A task, and whether its end is replied.
    tasks: Option<Sender<(Probe<Routine>, bool)>>,
    replies: Receiver<()>,
    worker: Option<JoinHandle<()>>,
}

impl<Routine: Runs> Channel<Routine> {
    fn new() -> Result<Channel<Routine>, BenchError> {
        let (tasks, received) = bounded::<(Probe<Routine>, bool)>(CAPACITY.get());
        let (replying, replies) = bounded(1);
        let worker = std::thread::Builder::new()
            .spawn(move || {
                for (probe, reply) in received {
                    probe.routine.run(probe.argument);
                    drop(probe);
                    if reply && replying.send(()).is_err() {
                        return;
                    }
                }
            })
            .map_err(|error| failed(Library::Crossbeam, error))?;
        Ok(Channel {
            tasks: Some(tasks),
            replies,
            worker: Some(worker),
        })
    }

    fn send(&self, probe: Probe<Routine>, reply: bool) -> Result<(), BenchError> {
        let gone = || failed(Library::Crossbeam, "its worker is gone");
        let tasks = self.tasks.as_ref().ok_or_else(gone)?;
        tasks.send((probe, reply)).map_err(|_| gone())
    }

    fn wait(&self) -> Result<(), BenchError> {
        self.replies
            .recv()
            .map_err(|error| failed(Library::Crossbeam, error))
    }
}

impl<Routine> Drop for Channel<Routine> {
    fn drop(&mut self) {
        drop(self.tasks.take());
        if let Some(worker) = self.worker.take() {
            // It ends since nobody sends any more; what it panicked with was seen as a missing reply.
            let _ = worker.join();
        }
    }
}

pub(super) fn rows(plan: &Plan) -> Result<Vec<Row>, BenchError> {
    static SUM: AtomicU64 = AtomicU64::new(0);
    let shared = Shared(Arc::new(AtomicU64::new(0)));
    let mut rows = Vec::new();
    let throughput = Pace {
        tasks: 20_000,
        between_waits: 20_000,
    };
    let latency = Pace {
        tasks: 1_000,
        between_waits: 1,
    };
    let work = "task throughput, plain tasks";
    if plan.wants(work) {
        rows.push(measured(work, throughput, &Static(&SUM), plan)?);
    }
    let work = "task throughput, tasks that share a routine";
    if plan.wants(work) {
        rows.push(measured(work, throughput, &shared, plan)?);
    }
    let work = "task latency, pushed and waited for";
    if plan.wants(work) {
        rows.push(measured(work, latency, &shared, plan)?);
    }
    Ok(rows)
}

/// How many tasks are a sample, and how many are pushed before they are waited for.
#[derive(Clone, Copy)]
struct Pace {
    tasks: usize,
    between_waits: usize,
}

fn measured<Routine: Runs>(
    work: &str,
    pace: Pace,
    routine: &Routine,
    plan: &Plan,
) -> Result<Row, BenchError> {
    let probe = |argument: usize| Probe {
        routine: routine.clone(),
        argument: argument as u64,
    };
    // The last task of a sample is waited for, too.
    let waits =
        |at: usize, tasks: usize| (at + 1).is_multiple_of(pace.between_waits) || at + 1 == tasks;
    let mut queue = TaskQueue::new("bench", CAPACITY).map_err(|error| ours(work, error))?;
    let mut mine = |tasks: usize| {
        for at in 0..tasks {
            queue.push(probe(at)).map_err(|error| ours(work, error))?;
            if waits(at, tasks) {
                queue.wait().map_err(|error| ours(work, error))?;
            }
        }
        Ok(())
    };
    let channel = plan
        .has(Library::Crossbeam)
        .then(Channel::new)
        .transpose()?;
    let mut theirs = |tasks: usize| {
        let Some(channel) = &channel else {
            return Ok(());
        };
        for at in 0..tasks {
            let waits = waits(at, tasks);
            channel.send(probe(at), waits)?;
            if waits {
                channel.wait()?;
            }
        }
        Ok(())
    };
    let mut peers: Vec<(Library, Side)> = Vec::new();
    if plan.has(Library::Crossbeam) {
        peers.push((Library::Crossbeam, &mut theirs));
    }
    side_by_side(work, pace.tasks, plan.samples, GOAL, &mut mine, &mut peers)
}
