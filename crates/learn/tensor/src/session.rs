//! Where tensors are computed: a device, a stream on it, and the programs compiled for it.

use crate::buffer::{Buffer, Pin, VALUE};
use crate::error::{ErrorKind, TensorError};
use crate::key::{self, Key};
use crate::lower::{self, Lowered};
use crate::node::{Kind, Tensor, program_order};
use crate::program::Program;
use crate::size;
use loopwright_compile::{RECENT_PROGRAMS, Recent};
use loopwright_graph::Array;
use loopwright_runtime::{
    Code, CodeOptions, Context, Device, LinkOptions, Runtime, RuntimeError, RuntimeOptions, Stream,
    Usage,
};
use loopwright_threads::interrupt::{Interrupted, catching};
use loopwright_threads::{PerProcess, ThreadsError};
use std::cell::RefCell;
use std::num::NonZero;
use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// A device that tensors are computed on, with everything that has been compiled for it.
///
/// Clones are the same session. [`Session::scope`] makes it the one that is used on this thread;
/// without, it is the best device of the machine.
#[derive(Clone)]
pub struct Session {
    shared: Arc<SessionShared>,
}

struct SessionShared {
    device: Device,
    stream: Stream,
    codes: Arc<Codes>,
}

/// What has been compiled for a device.
struct Codes {
    /// Those used last; functions hold what they use themselves.
    by_key: Mutex<Recent<Key, Arc<Compiled>>>,
    compiled: AtomicU64,
    reused: AtomicU64,
    nanoseconds: AtomicU64,
}

impl Default for Codes {
    fn default() -> Codes {
        Codes {
            by_key: Mutex::new(Recent::new(RECENT_PROGRAMS)),
            compiled: AtomicU64::default(),
            reused: AtomicU64::default(),
            nanoseconds: AtomicU64::default(),
        }
    }
}

/// What a session has compiled so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Compilations {
    /// Programs that were compiled.
    pub compiled: u64,
    /// Times that a program was needed which had been compiled before.
    pub reused: u64,
    /// The time it took.
    pub time: Duration,
}

/// A compiled program over values.
pub(crate) struct Compiled {
    /// By the schedule that was made for it.
    made: Code,
    /// By one that somebody has set.
    set: RwLock<Option<Code>>,
    /// How often one was set or taken back.
    changes: AtomicU64,
}

impl Compiled {
    /// The code that runs.
    pub(crate) fn code(&self) -> Code {
        let set = self.set.read().unwrap_or_else(PoisonError::into_inner);
        set.as_ref().unwrap_or(&self.made).clone()
    }

    /// The code by the schedule that was made for it.
    pub(crate) fn made(&self) -> &Code {
        &self.made
    }

    /// Grows with each change of the code.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Lets other code run from now on, or the one that was made.
    pub(crate) fn set(&self, code: Option<Code>) {
        *self.set.write().unwrap_or_else(PoisonError::into_inner) = code;
        // Behind the change: who sees the new count sees the new code.
        self.changes.fetch_add(1, Ordering::Release);
    }
}

/// Values as the inputs of a program.
pub(crate) struct Placed {
    pub(crate) context: Context,
    /// What has to be moved to the device, and the name it is to have there.
    pub(crate) missing: Vec<(String, Buffer)>,
    /// Holds the values where they are.
    pub(crate) pins: Vec<Pin>,
}

thread_local! {
    static CURRENT: RefCell<Vec<Session>> = const { RefCell::new(Vec::new()) };
}

impl Session {
    /// A session on a device of a runtime of its own: `x86`, `cc:0`, or `auto` for the best there is.
    ///
    /// # Errors
    /// [`RuntimeError`], with the reason, where there is no such device.
    pub fn new(device: &str) -> Result<Session, RuntimeError> {
        let runtime = Runtime::new(RuntimeOptions::default());
        Session::on(&runtime.device(device)?)
    }

    /// A session on a device.
    ///
    /// # Errors
    /// [`RuntimeError`] where the device gives no stream.
    pub fn on(device: &Device) -> Result<Session, RuntimeError> {
        Session::with(device, Arc::default())
    }

    fn with(device: &Device, codes: Arc<Codes>) -> Result<Session, RuntimeError> {
        Ok(Session {
            shared: Arc::new(SessionShared {
                stream: device.stream()?,
                device: device.clone(),
                codes,
            }),
        })
    }

    /// So many sessions on streams of its device, this one first: what one has compiled, all have. See
    /// [`parallel`](crate::parallel()).
    ///
    /// # Errors
    /// [`RuntimeError`] where the device gives no more streams.
    pub fn streams(&self, count: NonZero<usize>) -> Result<Vec<Session>, RuntimeError> {
        let mut sessions = vec![self.clone()];
        for _ in 1..count.get() {
            sessions.push(Session::with(
                self.device(),
                Arc::clone(&self.shared.codes),
            )?);
        }
        Ok(sessions)
    }

    /// The session that is used on this thread: the innermost scope's, or the best device's.
    ///
    /// # Errors
    /// [`RuntimeError`] where no device works.
    pub fn current() -> Result<Session, RuntimeError> {
        static BEST: PerProcess<Session> = PerProcess::new();
        let scoped = CURRENT.with_borrow(|scopes| scopes.last().cloned());
        if let Some(session) = scoped.or_else(|| BEST.get().cloned()) {
            return Ok(session);
        }
        let session = Session::new("auto")?;
        Ok(BEST.get_or_init(|| session).clone())
    }

    /// Runs a function with this session as the one that is used.
    pub fn scope<T>(&self, run: impl FnOnce() -> T) -> T {
        struct Leave;
        impl Drop for Leave {
            fn drop(&mut self) {
                CURRENT.with_borrow_mut(|scopes| scopes.pop());
            }
        }
        CURRENT.with_borrow_mut(|scopes| scopes.push(self.clone()));
        let _leave = Leave;
        run()
    }

    /// Its device.
    pub fn device(&self) -> &Device {
        &self.shared.device
    }

    /// Its stream.
    pub fn stream(&self) -> &Stream {
        &self.shared.stream
    }

    /// Waits until everything is done that was started on its stream.
    ///
    /// # Errors
    /// [`RuntimeError`] where some of it failed.
    pub fn wait(&self) -> Result<(), RuntimeError> {
        self.shared.stream.wait()
    }

    /// How much memory of its device is in use when everything is done that was started on its stream: work that is
    /// still to be done holds some.
    ///
    /// # Errors
    /// As [`wait`](Session::wait).
    pub fn memory(&self) -> Result<Usage, RuntimeError> {
        self.wait()?;
        Ok(self.shared.device.memory())
    }

    /// What has been compiled so far.
    pub fn compilations(&self) -> Compilations {
        let codes = &self.shared.codes;
        Compilations {
            compiled: codes.compiled.load(Ordering::Relaxed),
            reused: codes.reused.load(Ordering::Relaxed),
            time: Duration::from_nanos(codes.nanoseconds.load(Ordering::Relaxed)),
        }
    }

    pub(crate) fn same(&self, other: &Session) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Whether it is a stream of the same device: see [`Session::streams`].
    pub(crate) fn is_beside(&self, other: &Session) -> bool {
        Arc::ptr_eq(&self.shared.codes, &other.shared.codes)
    }

    /// A context with nothing in it.
    pub(crate) fn root(&self) -> Context {
        self.shared.stream.context()
    }

    /// The program of that key, compiled now if there is none.
    pub(crate) fn compiled(
        &self,
        key: Key,
        name: &str,
        lower: impl FnOnce() -> Result<Lowered, TensorError>,
    ) -> Result<Arc<Compiled>, TensorError> {
        let refused = self.shared.device.check_process();
        refused.map_err(|error| TensorError::new(error.into()))?;
        let codes = &self.shared.codes;
        let by_key = || codes.by_key.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = by_key().get(&key) {
            codes.reused.fetch_add(1, Ordering::Relaxed);
            return Ok(Arc::clone(found));
        }
        let start = Instant::now();
        let lowered = catching(lower).map_err(|Interrupted| {
            TensorError::new(RuntimeError::Stream(ThreadsError::Interrupted).into())
        })??;
        let code = self
            .shared
            .device
            .compile(name, &lowered.graph, &CodeOptions::default());
        let code = code.map_err(|error| TensorError::new(error.into()))?;
        if let Some(plainer) = code.program().and_then(|program| program.plainer()) {
            crate::plainer::tell(name, plainer);
        }
        let compiled = Arc::new(Compiled {
            made: code,
            set: RwLock::default(),
            changes: AtomicU64::new(0),
        });
        codes.compiled.fetch_add(1, Ordering::Relaxed);
        let took = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        codes.nanoseconds.fetch_add(took, Ordering::Relaxed);
        let mut known = by_key();
        // Whoever compiled the same at the same time and was faster is right too.
        if let Some(found) = known.get(&key) {
            return Ok(Arc::clone(found));
        }
        known.insert(key, Arc::clone(&compiled));
        Ok(compiled)
    }

    /// The program that computes tensors without a value, compiled now if there is none.
    pub(crate) fn compiled_for(
        &self,
        wanted: &[Tensor],
        place: &'static Location<'static>,
    ) -> Result<Arc<Compiled>, TensorError> {
        let order = order_of(wanted, place)?;
        self.compiled_alone(&Program::new(&order, wanted, &[], &[]))
    }

    /// A program outside of functions.
    fn compiled_alone(&self, program: &Program<'_>) -> Result<Arc<Compiled>, TensorError> {
        let key = key::of(program)?;
        self.compiled(key, "tensor", || lower::lower(program))
    }

    /// Computes tensors that have no value yet, all in one program.
    pub(crate) fn realize(
        &self,
        roots: &[Tensor],
        place: &'static Location<'static>,
    ) -> Result<(), TensorError> {
        for root in roots {
            root.check()?;
        }
        let mut wanted: Vec<Tensor> = Vec::new();
        for root in roots {
            if let Kind::Constant(value) = root.node.kind {
                // There is nothing to compute, and each number would be another program.
                root.node.value.get_or_init(|| {
                    let array = Array::from_scalars(value.dtype(), &[], &[value]);
                    Buffer::of_array(array.expect("one value for one element"))
                });
            }
            if root.node.value.get().is_none() && !wanted.iter().any(|other| other.same(root)) {
                wanted.push(root.clone());
            }
        }
        if wanted.is_empty() {
            return Ok(());
        }
        let order = order_of(&wanted, place)?;
        let program = Program::new(&order, &wanted, &[], &[]);
        let compiled = self.compiled_alone(&program)?;
        let outputs = self
            .run(&compiled, program.inputs(), wanted.len())
            .map_err(|error| TensorError::at(error.into(), place))?;
        for (tensor, context) in wanted.iter().zip(outputs) {
            let buffer = Buffer::of_context(self, context, tensor.dtype());
            // Another thread may have computed it at the same time; both have the same value.
            let _ = tensor.node.value.set(buffer);
        }
        Ok(())
    }

    fn run<'a>(
        &self,
        compiled: &Compiled,
        leaves: impl Iterator<Item = &'a Tensor>,
        outputs: usize,
    ) -> Result<Vec<Context>, RuntimeError> {
        let Placed {
            context,
            missing,
            pins: _pins,
        } = self.place(leaves)?;
        let routine = context.link(&compiled.code(), &LinkOptions::default())?;
        self.upload(routine.context(), &missing)?;
        routine.schedule(&[])?;
        let output = |at| {
            let context = routine.context();
            self.root()
                .with_array(VALUE, context, &lower::output_name(at))
        };
        (0..outputs).map(output).collect()
    }

    /// A context with the values that lie on the device already under their names as inputs, and the ones
    /// that do not.
    pub(crate) fn place<'a>(
        &self,
        leaves: impl Iterator<Item = &'a Tensor>,
    ) -> Result<Placed, RuntimeError> {
        let mut context = self.root();
        let (mut missing, mut pins) = (Vec::new(), Vec::new());
        for (at, tensor) in leaves.enumerate() {
            let name = lower::input_name(at);
            let buffer = tensor.node.value.get().expect("a leaf has a value");
            pins.push(buffer.pin());
            match buffer.on(self) {
                Some(found) => context = context.with_array(&name, &found, VALUE)?,
                None => missing.push((name, buffer.clone())),
            }
        }
        Ok(Placed {
            context,
            missing,
            pins,
        })
    }

    /// Moves values to the device.
    pub(crate) fn upload(
        &self,
        context: &Context,
        missing: &[(String, Buffer)],
    ) -> Result<(), RuntimeError> {
        for (name, buffer) in missing {
            context.upload(name, buffer.array()?)?;
            let alone = self.root().with_array(VALUE, context, name)?;
            buffer.is_also_in(self, alone);
        }
        Ok(())
    }
}

/// What tensors are made of, in an order in which it can be computed.
fn order_of(
    wanted: &[Tensor],
    place: &'static Location<'static>,
) -> Result<Vec<Tensor>, TensorError> {
    size::settle();
    let order = program_order(wanted);
    for tensor in &order {
        if let Kind::Argument(_) | Kind::Variable(_) = tensor.node.kind {
            let function = crate::trace::name();
            return Err(TensorError::at(ErrorKind::Traced { function }, place));
        }
    }
    Ok(order)
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Session({})", self.shared.device.name())
    }
}
