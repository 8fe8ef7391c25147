//! In-order queues of tasks with a worker each.

use crate::error::{Cause, Failure, ThreadsError};
use crate::event::{Event, Progress};
use crate::interrupt::Interrupted;
use crate::queue::{Consumer, Producer, bounded};
use crate::sync::{Arc, generation, thread};
use std::any::Any;
use std::error::Error;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a queue runs.
pub trait Task: Send + 'static {
    /// What errors call it.
    fn name(&self) -> &str;

    /// Does it. Called once.
    ///
    /// # Errors
    /// Any error, which poisons the queue; so does a panic.
    fn run(&mut self) -> Result<(), Box<dyn Error + Send + Sync>>;
}

type Work = Box<dyn FnOnce() -> Result<(), Box<dyn Error + Send + Sync>> + Send>;

/// A closure as a task.
pub struct Job {
    name: String,
    work: Option<Work>,
}

impl Job {
    /// A task that calls a closure.
    pub fn new(
        name: impl Into<String>,
        work: impl FnOnce() -> Result<(), Box<dyn Error + Send + Sync>> + Send + 'static,
    ) -> Job {
        Job {
            name: name.into(),
            work: Some(Box::new(work)),
        }
    }
}

impl Task for Job {
    fn name(&self) -> &str {
        &self.name
    }

    fn run(&mut self) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.work.take().map_or(Ok(()), |work| work())
    }
}

/// Runs tasks in the order they are pushed, one at a time, on a thread of its own.
///
/// Dropping it runs what was pushed and ends the thread.
pub struct TaskQueue<T: Task> {
    /// There until the queue is dropped.
    producer: Option<Producer<T>>,
    pushed: u64,
    progress: Arc<Progress>,
    /// There until the queue is dropped.
    worker: Option<thread::JoinHandle<()>>,
    /// The process that has the worker; a child that is forked does not.
    generation: u64,
}

impl<T: Task> TaskQueue<T> {
    /// An empty queue, in which at least so many tasks can wait to be run.
    ///
    /// # Errors
    /// [`ThreadsError::Thread`] where no thread can be had.
    pub fn new(
        name: impl Into<std::sync::Arc<str>>,
        capacity: NonZero<usize>,
    ) -> Result<TaskQueue<T>, ThreadsError> {
        let queue = name.into();
        // A thread's name is a C string.
        let name = queue.replace('\0', "");
        let progress = Arc::new(Progress::new(queue));
        let (producer, consumer) = bounded(capacity);
        let workers = Arc::clone(&progress);
        let worker = thread::Builder::new()
            .name(name.clone())
            .spawn(move || work(consumer, &workers))
            .map_err(|error| ThreadsError::Thread {
                name,
                reason: std::sync::Arc::new(error),
            })?;
        progress
            .worker
            .set(worker.thread().id())
            .expect("a queue has one worker");
        Ok(TaskQueue {
            producer: Some(producer),
            pushed: 0,
            progress,
            worker: Some(worker),
            generation: generation(),
        })
    }

    /// What errors call it.
    pub fn name(&self) -> &str {
        &self.progress.queue
    }

    /// Puts a task behind the others. Waits where the queue is full, until a task ended.
    ///
    /// # Errors
    /// [`ThreadsError::Poisoned`] where a task failed; this one is then dropped.
    /// [`ThreadsError::WaitsForItself`] where the queue is full and this is a task of the same queue.
    pub fn push(&mut self, task: T) -> Result<(), ThreadsError> {
        self.check()?;
        let producer = self
            .producer
            .as_mut()
            .expect("the producer is there until the queue is dropped");
        if producer.is_full() {
            self.progress.refuse_own_worker()?;
        }
        let taken = producer.push(task);
        assert!(taken.is_ok(), "a worker outlives its queue");
        self.pushed += 1;
        Ok(())
    }

    /// Puts a task behind the others, if it need not wait for that.
    ///
    /// # Errors
    /// The task, where the queue is full or a task failed.
    pub fn try_push(&mut self, task: T) -> Result<(), T> {
        if self.check_process().is_err() {
            return Err(task);
        }
        let producer = self.producer.as_mut();
        let producer = producer.filter(|_| self.progress.failure().is_none());
        let Some(producer) = producer else {
            return Err(task);
        };
        if producer.is_full() {
            return Err(task);
        }
        producer.push(task)?;
        self.pushed += 1;
        Ok(())
    }

    /// The point behind everything pushed so far.
    pub fn record(&self) -> Event {
        Event::new(Arc::clone(&self.progress), self.pushed)
    }

    /// How many tasks were pushed so far.
    pub fn pushed(&self) -> u64 {
        self.pushed
    }

    /// Whether everything pushed so far ended.
    pub fn is_idle(&self) -> bool {
        self.progress.ended() == self.pushed
    }

    /// Waits until everything pushed so far ended.
    ///
    /// # Errors
    /// As [`Event::wait`].
    pub fn wait(&self) -> Result<(), ThreadsError> {
        self.check_process()?;
        self.progress.wait(self.pushed)
    }

    /// Refuses work where the worker is in the process that this one was forked from.
    fn check_process(&self) -> Result<(), ThreadsError> {
        match self.generation == generation() {
            true => Ok(()),
            false => Err(ThreadsError::Forked),
        }
    }

    /// Whether the queue still takes tasks; does not wait.
    ///
    /// # Errors
    /// [`ThreadsError::Poisoned`] where a task failed.
    pub fn check(&self) -> Result<(), ThreadsError> {
        self.check_process()?;
        match self.progress.failure() {
            Some(failure) => Err(failure.clone().into()),
            None => Ok(()),
        }
    }
}

impl<T: Task> Drop for TaskQueue<T> {
    fn drop(&mut self) {
        if self.check_process().is_err() {
            // The worker is the parent's, with what it takes out of the queue.
            std::mem::forget((self.producer.take(), self.worker.take()));
            return;
        }
        drop(self.producer.take());
        // One of its own tasks may be what drops it; then the worker ends after what is left.
        if let Some(worker) = self.worker.take()
            && self.progress.refuse_own_worker().is_ok()
        {
            let ended = worker.join();
            debug_assert!(ended.is_ok(), "a worker catches what its tasks throw");
        }
    }
}

/// The worker: everything up to the end of the queue.
fn work<T: Task>(mut tasks: Consumer<T>, progress: &Progress) {
    while let Some(task) = tasks.pop() {
        finish(task, progress);
    }
}

/// Runs a task, unless one before it failed, and counts it as ended.
fn finish<T: Task>(mut task: T, progress: &Progress) {
    if progress.failure().is_none() {
        let cause = match catch_unwind(AssertUnwindSafe(|| task.run())) {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(Cause::Error(error)),
            Err(payload) => Some(Cause::Panic(message(payload))),
        };
        if let Some(cause) = cause {
            let name = catch_unwind(AssertUnwindSafe(|| task.name().to_owned()));
            let name = name.unwrap_or_else(|payload| format!("(no name: {})", message(payload)));
            progress.fail(failure(progress, name, cause));
        }
    }
    // Before the task counts as ended, so that what it holds is free for who waited for it.
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(task))) {
        let cause = Cause::Panic(message(payload));
        progress.fail(failure(progress, "(a task's drop)".to_owned(), cause));
    }
    progress.end_one();
}

/// Runs tasks in the order they are pushed, on the thread that pushes them, before `push` returns.
///
/// It has the same events and is poisoned in the same way as a [`TaskQueue`].
pub struct InlineQueue {
    pushed: u64,
    progress: Arc<Progress>,
}

impl InlineQueue {
    /// An empty queue.
    pub fn new(name: impl Into<std::sync::Arc<str>>) -> InlineQueue {
        InlineQueue {
            pushed: 0,
            progress: Arc::new(Progress::new(name.into())),
        }
    }

    /// What errors call it.
    pub fn name(&self) -> &str {
        &self.progress.queue
    }

    /// How many tasks were pushed so far.
    pub fn pushed(&self) -> u64 {
        self.pushed
    }

    /// Runs a task.
    ///
    /// # Errors
    /// [`ThreadsError::Poisoned`] where a task before it failed, which is then not run, or where this
    /// one fails.
    pub fn push<T: Task>(&mut self, task: T) -> Result<(), ThreadsError> {
        self.check()?;
        self.pushed += 1;
        finish(task, &self.progress);
        self.check()
    }

    /// Runs a task that is a borrowing closure; `name` is asked where it fails.
    ///
    /// # Errors
    /// As [`push`](InlineQueue::push). [`ThreadsError::Interrupted`] where the task fails with [`Interrupted`]: that poisons nothing,
    /// and who runs the task knows what it leaves.
    pub fn run(
        &mut self,
        name: impl FnOnce() -> String,
        work: impl FnOnce() -> Result<(), Box<dyn Error + Send + Sync>>,
    ) -> Result<(), ThreadsError> {
        self.check()?;
        self.pushed += 1;
        let cause = match catch_unwind(AssertUnwindSafe(work)) {
            Ok(Ok(())) => None,
            Ok(Err(error)) if error.is::<Interrupted>() => {
                self.progress.end_one();
                return Err(ThreadsError::Interrupted);
            }
            Ok(Err(error)) => Some(Cause::Error(error)),
            Err(payload) => Some(Cause::Panic(message(payload))),
        };
        let failed = cause.is_some();
        if let Some(cause) = cause {
            self.progress.fail(failure(&self.progress, name(), cause));
        }
        self.progress.end_one();
        match failed {
            true => self.check(),
            false => Ok(()),
        }
    }

    /// The point behind everything pushed so far, and that `push` returned from.
    pub fn record(&self) -> Event {
        Event::new(Arc::clone(&self.progress), self.pushed)
    }

    /// Whether a task failed.
    ///
    /// # Errors
    /// [`ThreadsError::Poisoned`] where one did.
    pub fn check(&self) -> Result<(), ThreadsError> {
        match self.progress.failure() {
            Some(failure) => Err(failure.clone().into()),
            None => Ok(()),
        }
    }
}

/// The failure of the task that is being run.
fn failure(progress: &Progress, task: String, cause: Cause) -> Failure {
    Failure {
        queue: progress.queue.clone(),
        task,
        index: progress.ended(),
        cause,
    }
}

/// What a panic said.
fn message(payload: Box<dyn Any + Send>) -> String {
    match payload.downcast::<String>() {
        Ok(message) => *message,
        Err(payload) => match payload.downcast::<&'static str>() {
            Ok(message) => (*message).to_owned(),
            Err(payload) => {
                // Dropping something unknown could panic once more, and end the worker.
                std::mem::forget(payload);
                "(no message)".to_owned()
            }
        },
    }
}
