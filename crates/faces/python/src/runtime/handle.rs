//! Handles of what a runtime has: checked before use, used without the interpreter's lock, closed, and let go of.
//!
//! Locks in here are taken by threads that are attached to Python, for a moment, and never held across a call of the
//! runtime. So no other thread holds one at the moment of a fork.

use super::errors::{self, ClosedError};
use loopwright_runtime::{Event, Runtime, RuntimeError, Stream};
use loopwright_threads::{ThreadsError, generation};
use pyo3::prelude::*;
use std::any::Any;
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Locks; nothing under a lock here is left half done by a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets go of a value without the interpreter's lock: the last handle of a stream waits for its worker, which may need the
/// lock to run a backend that is written in Python.
fn let_go<T: Send>(value: T) {
    let mut value = Some(value);
    Python::try_attach(|py| {
        let value = value.take();
        py.detach(move || drop(value));
    });
    // Where Python ends, the process does, and takes it along.
    std::mem::forget(value);
}

/// A value until it is closed.
pub(super) struct Slot<T: Send> {
    value: Mutex<Option<T>>,
    /// The process that it was made in; see [`generation`].
    made_in: u64,
}

impl<T: Send> Slot<T> {
    fn new(value: T) -> Slot<T> {
        Slot {
            value: Mutex::new(Some(value)),
            made_in: generation(),
        }
    }

    /// Whether it belongs to the process that this one was forked from.
    fn is_forked(&self) -> bool {
        self.made_in != generation()
    }

    fn take(&self) -> Option<T> {
        lock(&self.value).take()
    }
}

impl<T: Send> Drop for Slot<T> {
    fn drop(&mut self) {
        let Some(value) = self.take() else {
            return;
        };
        match self.is_forked() {
            // Threads of the parent may have held locks of the runtime at the fork, and its workers are not here.
            true => std::mem::forget(value),
            false => let_go(value),
        }
    }
}

/// Something that goes when its stream is closed.
trait Member: Send + Sync {
    /// Takes the value out, to be dropped without the interpreter's lock.
    fn take_out(&self) -> Option<Box<dyn Any + Send>>;
}

impl<T: Send + 'static> Member for Slot<T> {
    fn take_out(&self) -> Option<Box<dyn Any + Send>> {
        let value = self.take()?;
        Some(Box::new(value))
    }
}

/// Adds to a list of what is still there; what is gone makes room first.
fn enlist<T: ?Sized>(list: &Mutex<Vec<Weak<T>>>, member: Weak<T>) {
    let mut list = lock(list);
    if list.len() == list.capacity() {
        list.retain(|member| member.strong_count() > 0);
    }
    list.push(member);
}

/// Runs work with a value, both without the interpreter's lock; the value is dropped there, too.
fn detached<T: Send, R: Send>(py: Python<'_>, value: T, work: impl FnOnce(&T) -> R + Send) -> R {
    py.detach(move || {
        let result = work(&value);
        drop(value);
        result
    })
}

thread_local! {
    /// The ids of the streams that this thread schedules work on or waits for. Work that runs inline may be a backend's that is written in
    /// Python, and from there the same stream would wait for itself.
    static IN_CALL: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// Such a call, until it is dropped.
struct InCall;

impl Drop for InCall {
    fn drop(&mut self) {
        IN_CALL.with_borrow_mut(Vec::pop);
    }
}

/// A runtime and the streams that were made on its devices.
pub(super) struct RuntimeHandle {
    slot: Slot<Arc<Runtime>>,
    streams: Mutex<Vec<Weak<StreamHandle>>>,
}

impl RuntimeHandle {
    pub(super) fn new(runtime: Runtime) -> RuntimeHandle {
        RuntimeHandle {
            slot: Slot::new(Arc::new(runtime)),
            streams: Mutex::default(),
        }
    }

    /// Refuses a runtime that was closed, or is that of the process this one was forked from.
    pub(super) fn get(&self, py: Python<'_>) -> PyResult<Arc<Runtime>> {
        if self.slot.is_forked() {
            return Err(errors::forked(py));
        }
        let runtime = lock(&self.slot.value).clone();
        runtime.ok_or_else(|| {
            ClosedError::new_err("the runtime was closed; make another one with Runtime()")
        })
    }

    /// Works with the runtime.
    pub(super) fn with<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Runtime) -> Result<R, RuntimeError> + Send,
    ) -> PyResult<R> {
        let runtime = self.get(py)?;
        detached(py, runtime, |runtime| work(runtime)).map_err(|error| errors::of(py, error))
    }

    /// Closes its streams, and lets go of it. The first failure that nobody has heard of is raised when all is closed.
    pub(super) fn close(&self, py: Python<'_>) -> PyResult<()> {
        let runtime = self.slot.take();
        if self.slot.is_forked() {
            std::mem::forget(runtime);
        } else {
            detached(py, runtime, |_| ());
        }
        let streams = std::mem::take(&mut *lock(&self.streams));
        let mut closed = Ok(());
        for stream in streams.iter().filter_map(Weak::upgrade) {
            closed = closed.and(stream.close(py));
        }
        closed
    }
}

/// A stream, with the contexts and routines that are on it.
pub(super) struct StreamHandle {
    slot: Slot<Stream>,
    pub(super) name: String,
    pub(super) id: u64,
    pub(super) runtime: Arc<RuntimeHandle>,
    members: Mutex<Vec<Weak<dyn Member>>>,
    /// Whether somebody was told that work on it failed.
    told: AtomicBool,
}

impl StreamHandle {
    pub(super) fn new(runtime: &Arc<RuntimeHandle>, stream: Stream) -> Arc<StreamHandle> {
        let handle = Arc::new(StreamHandle {
            name: stream.name().to_owned(),
            id: stream.id(),
            slot: Slot::new(stream),
            runtime: Arc::clone(runtime),
            members: Mutex::default(),
            told: AtomicBool::new(false),
        });
        enlist(&runtime.streams, Arc::downgrade(&handle));
        handle
    }

    /// Looks at the stream, where it was not closed and is this process's.
    fn look<R>(&self, py: Python<'_>, look: impl FnOnce(&Stream) -> R) -> PyResult<R> {
        if self.slot.is_forked() {
            return Err(errors::forked(py));
        }
        lock(&self.slot.value).as_ref().map(look).ok_or_else(|| {
            ClosedError::new_err(format!(
                "stream `{}` was closed, with the contexts and routines on it; make another one with device.stream()",
                self.name
            ))
        })
    }

    /// Schedules work or waits for it, which a task of the stream itself cannot.
    pub(super) fn submit<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Stream) -> Result<R, RuntimeError> + Send,
    ) -> PyResult<R> {
        let _call = self.enter(py)?;
        self.with(py, work)
    }

    /// Works with the stream.
    pub(super) fn with<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Stream) -> Result<R, RuntimeError> + Send,
    ) -> PyResult<R> {
        let stream = self.look(py, Stream::clone)?;
        detached(py, stream, work).map_err(|error| self.raised(py, error))
    }

    /// Begins to schedule or to wait, unless this thread does so for the same stream already.
    fn enter(&self, py: Python<'_>) -> PyResult<InCall> {
        if IN_CALL.with_borrow(|streams| streams.contains(&self.id)) {
            let queue = self.name.as_str().into();
            let error = ThreadsError::WaitsForItself { queue };
            return Err(errors::of(py, RuntimeError::Stream(error)));
        }
        IN_CALL.with_borrow_mut(|streams| streams.push(self.id));
        Ok(InCall)
    }

    /// Waits for a point of the stream.
    pub(super) fn wait_for(&self, py: Python<'_>, event: &Event) -> PyResult<()> {
        let _call = self.enter(py)?;
        let ended = py.detach(|| event.wait());
        ended.map_err(|error| self.raised(py, RuntimeError::Stream(error)))
    }

    /// The exception for a refusal; a failure of the stream has been heard of then.
    pub(super) fn raised(&self, py: Python<'_>, error: RuntimeError) -> PyErr {
        if matches!(error, RuntimeError::Stream(ThreadsError::Poisoned(_))) {
            self.told.store(true, Ordering::Relaxed);
        }
        errors::of(py, error)
    }

    /// Waits for everything scheduled, and lets go of the stream and all that is on it. Raises what failed where nobody has
    /// heard of it.
    pub(super) fn close(&self, py: Python<'_>) -> PyResult<()> {
        let _call = self.enter(py)?;
        let Some(stream) = self.slot.take() else {
            return Ok(());
        };
        let members = std::mem::take(&mut *lock(&self.members));
        let members = members.iter().filter_map(Weak::upgrade);
        let members: Vec<_> = members.filter_map(|member| member.take_out()).collect();
        if self.slot.is_forked() {
            std::mem::forget((stream, members));
            return Ok(());
        }
        let ended = py.detach(move || {
            let ended = stream.wait();
            drop(members);
            drop(stream);
            ended
        });
        match ended {
            Err(error) if !self.told.load(Ordering::Relaxed) => Err(self.raised(py, error)),
            _ => Ok(()),
        }
    }
}

/// Something on a stream: a context, a routine, values on their way.
pub(super) struct OnStream<T: Clone + Send + Sync + 'static> {
    slot: Arc<Slot<T>>,
    pub(super) stream: Arc<StreamHandle>,
    /// What it is called in messages.
    what: &'static str,
}

impl<T: Clone + Send + Sync + 'static> OnStream<T> {
    pub(super) fn new(value: T, stream: &Arc<StreamHandle>, what: &'static str) -> OnStream<T> {
        let slot = Arc::new(Slot::new(value));
        let member: Arc<dyn Member> = Arc::clone(&slot) as Arc<dyn Member>;
        enlist(&stream.members, Arc::downgrade(&member));
        OnStream {
            slot,
            stream: Arc::clone(stream),
            what,
        }
    }

    /// The value, where neither it nor its stream was closed.
    pub(super) fn get(&self, py: Python<'_>) -> PyResult<T> {
        self.stream.look(py, |_| ())?;
        let value = lock(&self.slot.value).clone();
        value.ok_or_else(|| {
            ClosedError::new_err(format!(
                "the {} on stream `{}` was closed",
                self.what, self.stream.name
            ))
        })
    }

    /// Schedules work or waits for it, which a task of the stream itself cannot.
    pub(super) fn submit<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&T) -> Result<R, RuntimeError> + Send,
    ) -> PyResult<R> {
        let _call = self.stream.enter(py)?;
        self.with(py, work)
    }

    /// Works with the value.
    pub(super) fn with<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&T) -> Result<R, RuntimeError> + Send,
    ) -> PyResult<R> {
        let value = self.get(py)?;
        detached(py, value, work).map_err(|error| self.stream.raised(py, error))
    }

    /// Lets go of the value.
    pub(super) fn close(&self, py: Python<'_>) {
        let value = self.slot.take();
        match self.slot.is_forked() {
            true => std::mem::forget(value),
            false => detached(py, value, |_| ()),
        }
    }
}
