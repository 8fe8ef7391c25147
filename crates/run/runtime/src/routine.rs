//! Routines: code tied to memory, ready to be scheduled. `context.rs` makes them (`link`), and the device finds the addresses of
//! arguments then, once (`prepare` of `host.rs`).

use crate::context::Context;
use crate::device::DeviceShared;
use crate::error::RuntimeError;
use crate::layout::Layout;
use crate::ledger::{Entry, Use};
use crate::memory::Pool;
use crate::node::{ArrayInfo, Node};
use crate::task::{Owned, Statics, Submission, Work};
use crate::trace::SpanKind;
use loopwright_backend::{Call, DeviceError, Launch};
use loopwright_compile::{LOG_RECORDS, LogRecord, Program, log_header, log_words};
use loopwright_ops::DType;
use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Code tied to memory. Clones are the same routine.
#[derive(Clone)]
pub struct Routine {
    handle: Arc<Handle>,
}

/// What holds a routine for those who schedule it.
///
/// Tasks in a queue refer to the routine without counting: that count would travel between the cores of the
/// one who schedules and of the worker with every task. So the last handle that goes leaves the routine to
/// the stream, behind its tasks.
struct Handle {
    /// There until the handle is dropped.
    shared: Option<Arc<RoutineShared>>,
    /// The point of the stream behind the last task with the routine, as a count.
    last: AtomicU64,
}

impl Handle {
    fn shared(&self) -> &Arc<RoutineShared> {
        let shared = self.shared.as_ref();
        shared.expect("the routine is there until the handle is dropped")
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.take() {
            let stream = shared.context.stream().clone();
            stream.release(shared, *self.last.get_mut());
        }
    }
}

/// A routine that its handle, or the stream behind this task, keeps.
#[derive(Clone, Copy)]
pub(crate) struct RoutineRef(*const RoutineShared);

// SAFETY: it is a reference to something that can be shared between threads.
unsafe impl Send for RoutineRef {}

impl Deref for RoutineRef {
    type Target = RoutineShared;

    fn deref(&self) -> &RoutineShared {
        // SAFETY: a reference is made by `Launching::owned` for a task of the routine's stream, while a
        // handle has the routine. The last handle drops it when that task has ended, or hands it to the
        // stream behind that task; where the stream refuses it, since it has failed, the task that failed has
        // ended and those behind it are dropped without a look at what they refer to.
        unsafe { &*self.0 }
    }
}

pub(crate) struct RoutineShared {
    pub(crate) name: Arc<str>,
    pub(crate) context: Context,
    /// By the layout's arrays.
    pub(crate) uses: Vec<(Entry, Use)>,
    pub(crate) layout: Arc<Layout>,
    pub(crate) launch: Box<dyn Launch>,
    /// Scratch memory.
    pub(crate) _scratch: Vec<Arc<Pool>>,
    pub(crate) log: Option<StoreLog>,
}

impl Routine {
    pub(crate) fn new(shared: RoutineShared) -> Routine {
        Routine {
            handle: Arc::new(Handle {
                shared: Some(Arc::new(shared)),
                last: AtomicU64::new(0),
            }),
        }
    }

    fn shared(&self) -> &Arc<RoutineShared> {
        self.handle.shared()
    }

    /// Its code's name.
    pub fn name(&self) -> &str {
        &self.shared().name
    }

    /// Its context: the one that it was linked in, and its own arrays.
    pub fn context(&self) -> &Context {
        &self.shared().context
    }

    /// The compiled program; one that was not compiled ahead is compiled for the routine's sizes.
    pub fn program(&self) -> &Arc<Program> {
        &self.shared().layout.program
    }

    /// The static symbols that scheduling binds, each with its range.
    pub fn statics(&self) -> impl Iterator<Item = (&str, Range<i64>)> {
        let statics = self.shared().layout.statics.iter();
        statics.map(|symbol| (&*symbol.name, symbol.low..symbol.high))
    }

    /// Puts the routine behind everything scheduled on its stream. It runs when that, and all work of
    /// other streams that uses the same memory, is done. Static symbols have their values from here on.
    ///
    /// Does not wait, unless the stream's queue is full or the scheduler is [`Sync`].
    ///
    /// [`Sync`]: crate::Scheduler::Sync
    ///
    /// # Errors
    /// [`RuntimeError::Unbound`], [`RuntimeError::OutOfRange`], [`RuntimeError::NoSuchSymbol`],
    /// [`RuntimeError::Uninitialised`], [`RuntimeError::WrongMerge`]; [`RuntimeError::Stream`] where
    /// something failed on the stream.
    pub fn schedule(&self, statics: &[(&str, i64)]) -> Result<(), RuntimeError> {
        let statics = self.capture(statics)?;
        let stream = self.shared().context.stream();
        stream.submit(&Launching {
            routine: self.shared(),
            handle: &self.handle,
            statics,
        })
    }

    /// Schedules it and waits until it, and all that was scheduled before it, is done.
    ///
    /// # Errors
    /// As [`schedule`](Routine::schedule), and [`RuntimeError::Stream`] where it failed.
    pub fn run(&self, statics: &[(&str, i64)]) -> Result<(), RuntimeError> {
        self.schedule(statics)?;
        self.shared().context.stream().wait()
    }

    /// What the routine's kernel stored when it last ran, where stores are logged: waits for its stream.
    /// The second value says how many further stores there was no room for.
    ///
    /// # Errors
    /// [`RuntimeError::Stream`] where something failed.
    pub fn stores(&self) -> Result<(Vec<LogRecord>, u64), RuntimeError> {
        let Some(log) = &self.shared().log else {
            return Ok((Vec::new(), 0));
        };
        let words = self.shared().context.download_node(&log.node)?.wait()?;
        let words: &[u64] = bytemuck::cast_slice(words.bytes());
        let sites = self.shared().layout.program.log_sites();
        let log = loopwright_compile::StoreLog::decode(words, sites);
        Ok((log.records, log.missed))
    }

    /// Values for all static symbols, in their order.
    fn capture(&self, given: &[(&str, i64)]) -> Result<Statics, RuntimeError> {
        let layout = &self.shared().layout;
        let routine = || Arc::clone(&self.shared().name);
        let mut values = Statics::new();
        for symbol in &layout.statics {
            let found = given.iter().rev().find(|(name, _)| *name == &*symbol.name);
            let value = found.map(|(_, value)| *value).or(symbol.default);
            let (low, high) = (symbol.low, symbol.high);
            let Some(value) = value else {
                return Err(RuntimeError::Unbound {
                    routine: routine(),
                    symbol: Arc::clone(&symbol.name),
                    low,
                    high,
                });
            };
            if value < low || value >= high {
                return Err(RuntimeError::OutOfRange {
                    routine: routine(),
                    symbol: Arc::clone(&symbol.name),
                    value,
                    low,
                    high,
                });
            }
            values.push(value);
        }
        for (name, _) in given {
            if !layout.statics.iter().any(|symbol| *symbol.name == **name) {
                let known: Vec<&str> = layout.statics.iter().map(|symbol| &*symbol.name).collect();
                return Err(RuntimeError::NoSuchSymbol {
                    routine: routine(),
                    symbol: (*name).to_owned(),
                    known: known.join(", "),
                });
            }
        }
        Ok(values)
    }
}

/// A routine on its way into its stream.
struct Launching<'a> {
    routine: &'a RoutineShared,
    handle: &'a Handle,
    statics: Statics,
}

impl Work for Launching<'_> {
    fn name(&self) -> &str {
        &self.routine.name
    }

    fn label(&self) -> String {
        self.routine.name.to_string()
    }

    fn kind(&self) -> SpanKind {
        SpanKind::Launch
    }

    fn perform(&self, merge: Option<&Node>) -> Result<(), DeviceError> {
        self.routine.launch(&self.statics, merge)
    }
}

impl Submission for Launching<'_> {
    fn shared_name(&self) -> Arc<str> {
        Arc::clone(&self.routine.name)
    }

    fn uses(&self) -> &[(Entry, Use)] {
        &self.routine.uses
    }

    fn unwritten(&self, at: usize) -> RuntimeError {
        RuntimeError::Uninitialised {
            routine: Arc::clone(&self.routine.name),
            node: Arc::clone(&self.routine.layout.arrays[at].info.name),
        }
    }

    fn merges(&self) -> bool {
        self.routine.layout.merge.is_some()
    }

    fn check_merge(&self, held: Option<&Node>) -> Result<(), RuntimeError> {
        let routine = self.routine;
        match (&routine.layout.merge, held) {
            (None, _) => Ok(()),
            (Some(merge), Some(held)) if held.name == merge.node && held.is_like(&merge.info) => {
                routine.check_merge_place(held)
            }
            (Some(merge), held) => {
                let stream = routine.context.stream();
                Err(stream.wrong_merge(&routine.name, &merge.node, held))
            }
        }
    }

    fn entered(&self, last: u64) {
        // Under the board's lock, and read when nobody else has the handle any more.
        self.handle.last.store(last, Ordering::Relaxed);
    }

    fn owned(&self, merge: Option<&Arc<Node>>) -> Owned {
        Owned::Launch {
            routine: RoutineRef(self.routine),
            statics: self.statics.clone(),
            merge: merge.map(Arc::clone),
        }
    }
}

impl RoutineShared {
    /// Refuses to merge in place what the routine writes: its kernel would find it changed.
    fn check_merge_place(&self, held: &Node) -> Result<(), RuntimeError> {
        for array in self
            .layout
            .arrays
            .iter()
            .filter(|array| array.usage.writes())
        {
            let node = self.context.find(&array.info.name);
            if node.is_some_and(|node| node.overlaps(held)) {
                return Err(RuntimeError::MergesItself {
                    routine: Arc::clone(&self.name),
                    node: Arc::clone(&array.info.name),
                });
            }
        }
        Ok(())
    }

    /// Runs the kernel; called by the routine's stream alone, when nothing conflicts any more.
    pub(crate) fn launch(&self, statics: &[i64], merge: Option<&Node>) -> Result<(), DeviceError> {
        if let Some(log) = &self.log {
            log.clear()?;
        }
        let call = Call {
            statics,
            merge: merge.map(|node| (node.slab(), node.offset)),
        };
        // SAFETY: the ledger ordered this task behind all that conflicts, and what comes later waits for
        // it; scratch memory is this routine's alone, whose stream runs one task at a time.
        let launch = || unsafe { self.launch.run(&call) };
        match &self.context.stream().shared.device.options.verify {
            None => launch(),
            Some(verify) => self.launch_verified(&**verify, statics, merge, launch),
        }
    }
}

/// Memory that a kernel logs its stores to.
pub(crate) struct StoreLog {
    /// An array of words that is no context's; its uses are in the ledger like any other's.
    pub(crate) node: Arc<Node>,
}

impl StoreLog {
    pub(crate) fn new(device: &Arc<DeviceShared>) -> Result<StoreLog, RuntimeError> {
        let words = log_words(LOG_RECORDS);
        let info = ArrayInfo {
            name: "the log of stores".into(),
            dtype: DType::U64,
            shape: [words].into(),
            bytes: words * size_of::<u64>(),
        };
        let pool = Pool::new(device, info.bytes, &info.name)?;
        let entry = device.runtime.board.lock().ledger.open();
        let origin = "the runtime".into();
        Ok(StoreLog {
            node: Arc::new(Node::new(Arc::new(info), pool, 0, entry, origin)),
        })
    }

    /// Empties it, before a run.
    fn clear(&self) -> Result<(), DeviceError> {
        let header = log_header(LOG_RECORDS);
        // SAFETY: the routine's task calls this, which the ledger ordered behind all that uses the log.
        unsafe { self.node.slab().write(0, bytemuck::cast_slice(&header)) }
    }
}

impl fmt::Debug for Routine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Routine").field(&self.shared().name).finish()
    }
}
