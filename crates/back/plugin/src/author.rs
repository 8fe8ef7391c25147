//! The other side of the border: a backend of Rust as a plug-in. [`export_plugin!`](crate::export_plugin)
//! is all that authors use of it.

use crate::abi::{
    Argument as Word, CapabilityTable, Code, DeviceTable, HostTable, LW_ABI_VERSION,
    LW_ARGUMENT_READ, LW_ARGUMENT_SCALAR, LW_ARGUMENT_SHARED, LW_ARGUMENT_WRITE, LW_AVAILABLE,
    LW_BROKEN, LW_FAILED, LW_FEATURE_ATOMICS, LW_FEATURE_BARRIERS, LW_FEATURE_COMPUTES_NOTHING,
    LW_FEATURE_NO_STRUCTS, LW_FEATURE_TILES, LW_FLAG_THREAD_SAFE, LW_FORM_KERNEL, LW_FORM_PROGRAM,
    LW_MISSING, LW_OK, LW_SCHEDULER_SYNC, LW_SCHEDULER_THREADS, LW_STRICT, LW_UNSUPPORTED,
    OpAccuracy, Options, PluginTable, Program, TargetTable, Text, Writer,
};
use crate::arguments::text_of;
use crate::author_devices::{self, Held};
use loopwright_backend::{
    Argument, Backend, BackendError, Capabilities, CompileOptions, CompileUnit, Describe,
    DeviceBackend, Executable, KernelBackend, KernelLaunch, LoopBackend, Scheduler,
};
use loopwright_graph::Graph;
use loopwright_kernel::Module;
use loopwright_looptree::{Plan, parse_schedule};
use loopwright_lower::{KernelParam, lower};
use loopwright_ops::{DType, Scalar};
use loopwright_text::{Diagnostic, Source};
use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

/// Makes a shared library of a backend: `export_plugin!(backend, priority)` for a
/// [`KernelBackend`](loopwright_backend::KernelBackend), `export_plugin!(loop backend, priority)` for a
/// [`LoopBackend`](loopwright_backend::LoopBackend), `export_plugin!(device backend, priority)` for a
/// [`DeviceBackend`](loopwright_backend::DeviceBackend). The backend is an expression, evaluated once, when
/// the plug-in is loaded; the priority is that of
/// [`register_backend!`](loopwright_backend::register_backend). The package's description is the
/// plug-in's. The crate's type is `cdylib`, and has this line once.
///
/// Panics end at the border, as errors, in a crate that is built to unwind.
#[macro_export]
macro_rules! export_plugin {
    (loop $backend:expr, $priority:expr) => {
        $crate::export_plugin!(@entry $crate::author::Way::loops($backend), $priority);
    };
    (device $backend:expr, $priority:expr) => {
        $crate::export_plugin!(@entry $crate::author::Way::devices($backend), $priority);
    };
    ($backend:expr, $priority:expr) => {
        $crate::export_plugin!(@entry $crate::author::Way::kernels($backend), $priority);
    };
    (@entry $way:expr, $priority:expr) => {
        /// The entry point of the plug-in.
        ///
        /// # Safety
        /// `host` is the table of a host that says the truth about itself.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn loopwright_plugin(
            abi_version: u32,
            host: *const $crate::abi::HostTable,
        ) -> *const $crate::abi::PluginTable {
            struct This;

            impl $crate::author::Author for This {
                fn way() -> $crate::author::Way {
                    $way
                }

                fn about() -> (i32, &'static str) {
                    ($priority, env!("CARGO_PKG_DESCRIPTION"))
                }

                fn slot() -> &'static $crate::author::Slot {
                    static SLOT: $crate::author::Slot = $crate::author::Slot::new();
                    &SLOT
                }
            }

            $crate::author::table::<This>(abi_version, host)
        }
    };
}

/// What [`export_plugin!`](crate::export_plugin) says of the one plug-in of a library.
pub trait Author: 'static {
    /// Makes the backend.
    fn way() -> Way;

    /// The priority, and one line about it.
    fn about() -> (i32, &'static str);

    /// Where the backend is kept.
    fn slot() -> &'static Slot;
}

/// The backend of a library, once it is made.
pub type Slot = OnceLock<Option<Exported>>;

/// A backend, and at which level it is one.
pub enum Way {
    /// It takes kernels.
    Kernels(Box<dyn KernelBackend>),
    /// It takes loops.
    Loops(Backend),
    /// It takes kernels, and brings devices.
    Devices(Box<dyn DeviceBackend>),
}

impl Way {
    /// A backend that takes kernels.
    pub fn kernels(backend: impl KernelBackend + 'static) -> Way {
        Way::Kernels(Box::new(backend))
    }

    /// A backend that takes loops.
    pub fn loops(backend: impl LoopBackend + 'static) -> Way {
        Way::Loops(Backend::loop_backend(backend))
    }

    /// A backend with devices.
    pub fn devices(backend: impl DeviceBackend + 'static) -> Way {
        Way::Devices(Box::new(backend))
    }

    fn describe(&self) -> &dyn Describe {
        match self {
            Way::Kernels(backend) => &**backend,
            Way::Loops(backend) => &**backend,
            Way::Devices(backend) => &**backend,
        }
    }
}

/// A backend with its table.
pub struct Exported {
    pub(crate) way: Way,
    table: PluginTable,
}

// SAFETY: the backend is `Send` and `Sync`, and what the table points to is never changed.
unsafe impl Send for Exported {}
// SAFETY: as above.
unsafe impl Sync for Exported {}

/// The table of a plug-in; null where there is none for that host, or where making the backend panics.
pub fn table<A: Author>(abi_version: u32, _host: *const HostTable) -> *const PluginTable {
    if abi_version != LW_ABI_VERSION {
        return std::ptr::null();
    }
    let made = A::slot().get_or_init(|| {
        let make = || {
            let way = A::way();
            let table = make_table::<A>(&way);
            Exported { way, table }
        };
        catch_unwind(make).ok()
    });
    made.as_ref()
        .map_or(std::ptr::null(), |exported| &raw const exported.table)
}

/// A text that stays.
fn kept(text: &str) -> Text {
    text_of(Box::leak(text.to_owned().into_boxed_str()))
}

fn make_table<A: Author>(way: &Way) -> PluginTable {
    let described = way.describe();
    let (priority, about) = A::about();
    let target = described.target();
    let can = described.capabilities();
    let (math_ulps, accuracies) = can.math.stated();
    let accuracies = accuracies.iter().map(|(op, ulps)| OpAccuracy {
        op: kept(op.name()),
        ulps: *ulps,
    });
    let accuracies: &'static [OpAccuracy] = accuracies.collect::<Vec<_>>().leak();
    PluginTable {
        abi_version: LW_ABI_VERSION,
        struct_size: size_of::<PluginTable>() as u32,
        name: kept(described.name()),
        description: kept(about.lines().next().unwrap_or_default()),
        priority,
        // In the order of the numbers, as the host's tests say.
        hardware: described.hardware() as u32,
        form: match way {
            Way::Kernels(_) | Way::Devices(_) => LW_FORM_KERNEL,
            Way::Loops(_) => LW_FORM_PROGRAM,
        },
        scheduler: match described.scheduler() {
            Scheduler::Threads => LW_SCHEDULER_THREADS,
            Scheduler::Sync => LW_SCHEDULER_SYNC,
        },
        // Backends are `Sync`, and what they make is.
        flags: LW_FLAG_THREAD_SAFE,
        target: TargetTable {
            vector_bytes: target.vector_bytes,
            vector_registers: target.vector_registers,
            threads: target.threads,
            l1_bytes: target.l1_bytes,
            l2_bytes: target.l2_bytes,
        },
        capabilities: capabilities(&can),
        availability: Some(availability::<A>),
        compile: Some(compile::<A>),
        run: Some(run),
        code_text: Some(code_text),
        release: Some(release),
        math_ulps,
        op_accuracy_count: accuracies.len() as u32,
        op_accuracies: accuracies.as_ptr(),
        device: match way {
            Way::Devices(_) => Box::leak(Box::new(author_devices::table::<A>())),
            Way::Kernels(_) | Way::Loops(_) => std::ptr::null::<DeviceTable>(),
        },
    }
}

fn capabilities(can: &Capabilities) -> CapabilityTable {
    let missing: Vec<Text> = can.missing_ops.iter().map(|op| kept(op.name())).collect();
    let missing: &'static [Text] = missing.leak();
    let feature = |has: bool, feature: u32| if has { feature } else { 0 };
    // In the ABI 0 is no limit; nothing fits into a limit of 0, nor into one of 1.
    let limit = |limit: Option<u64>| limit.map_or(0, |limit| limit.max(1));
    let dtypes = can.dtypes.iter().map(|dtype| 1u64 << *dtype as u32);
    CapabilityTable {
        dtypes: dtypes.fold(0, |set, bit| set | bit),
        features: feature(can.atomics, LW_FEATURE_ATOMICS)
            | feature(can.barriers, LW_FEATURE_BARRIERS)
            | feature(can.matrix_tiles, LW_FEATURE_TILES)
            | feature(!can.computes, LW_FEATURE_COMPUTES_NOTHING)
            | feature(!can.structs, LW_FEATURE_NO_STRUCTS),
        vector_lanes: can.vector_lanes,
        local_memory: can.local_memory,
        private_memory: limit(can.private_memory),
        max_buffer: limit(can.max_buffer),
        max_params: can.max_params.map_or(0, |most| most.max(1) as u32),
        missing_op_count: missing.len() as u32,
        missing_ops: missing.as_ptr(),
    }
}

/// Something that did not work: the status, and why.
pub(crate) struct Failed(pub(crate) u32, pub(crate) String);

impl Failed {
    pub(crate) fn because(reason: impl Into<String>) -> Failed {
        Failed(LW_FAILED, reason.into())
    }
}

impl From<BackendError> for Failed {
    /// The host says itself which backend and kernel it is about.
    fn from(error: BackendError) -> Failed {
        match error {
            BackendError::Unsupported { reason, .. } => Failed(LW_UNSUPPORTED, reason),
            BackendError::Run { reason, .. } | BackendError::Call { reason, .. } => {
                Failed(LW_FAILED, reason)
            }
            other => Failed(LW_FAILED, other.to_string()),
        }
    }
}

/// Writes to the host.
///
/// # Safety
/// `writer` is the host's.
pub(crate) unsafe fn tell(writer: *const Writer, text: &str) {
    // SAFETY: the caller says that it is the host's.
    if let Some(writer) = unsafe { writer.as_ref() }
        && let Some(write) = writer.write
    {
        // SAFETY: as above; the text is there.
        unsafe { write(writer.context, text.as_ptr().cast(), text.len()) };
    }
}

/// What a panic said.
fn panic_text(panic: &(dyn Any + Send)) -> String {
    let said = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned());
    match said {
        Some(said) => format!("it panicked: {said}"),
        None => "it panicked".to_owned(),
    }
}

/// Does something that may panic, which must not cross the border, and tells the host what went wrong.
///
/// # Safety
/// `error` is the host's.
pub(crate) unsafe fn guarded(
    error: *const Writer,
    work: impl FnOnce() -> Result<(), Failed>,
) -> u32 {
    // What was being worked on is not looked at again, but for the backend, and whether that minds is
    // its author's business, as in any program that goes on after a panic.
    let outcome = catch_unwind(AssertUnwindSafe(work));
    let Failed(status, reason) = match outcome {
        Ok(Ok(())) => return LW_OK,
        Ok(Err(failed)) => failed,
        Err(panic) => Failed::because(panic_text(&*panic)),
    };
    // SAFETY: the caller says that it is the host's.
    unsafe { tell(error, &reason) };
    status
}

/// A text of the host's.
///
/// # Safety
/// It is one.
pub(crate) unsafe fn read<'a>(text: Text, what: &str) -> Result<&'a str, Failed> {
    if text.length == 0 {
        return Ok("");
    }
    if text.start.is_null() {
        return Err(Failed::because(format!("the host gives no {what}")));
    }
    // SAFETY: the host says that so many bytes are there.
    let bytes = unsafe { std::slice::from_raw_parts(text.start.cast::<u8>(), text.length) };
    std::str::from_utf8(bytes)
        .map_err(|_| Failed::because(format!("the host's {what} is not UTF-8")))
}

pub(crate) fn exported<A: Author>() -> Result<&'static Exported, Failed> {
    let made = A::slot().get().and_then(Option::as_ref);
    made.ok_or_else(|| Failed::because("the plug-in is called before its entry point"))
}

unsafe extern "C" fn availability<A: Author>(reason: *const Writer, help: *const Writer) -> u32 {
    let asked = catch_unwind(|| match exported::<A>() {
        Ok(exported) => exported.way.describe().availability().map_err(Some),
        Err(_) => Err(None),
    });
    let (status, said, helps) = match asked {
        Ok(Ok(())) => return LW_AVAILABLE,
        Ok(Err(Some(why))) => {
            let status = if why.broken { LW_BROKEN } else { LW_MISSING };
            (status, why.reason, why.help)
        }
        Ok(Err(None)) => (LW_BROKEN, String::new(), String::new()),
        Err(panic) => (LW_BROKEN, panic_text(&*panic), String::new()),
    };
    // SAFETY: the host's writers.
    unsafe {
        tell(reason, &said);
        tell(help, &helps);
    }
    status
}

/// What the host holds as `lw_code`.
pub(crate) struct Compiled {
    pub(crate) executable: Arc<dyn Executable>,
    /// Where arguments are given by name: what the executable's are.
    named: Option<Vec<Named>>,
}

/// An argument of an executable that was made of loops.
enum Named {
    /// A size, or a node's memory.
    Given(String),
    /// Memory that loop backends do not look at.
    Nothing,
}

unsafe extern "C" fn compile<A: Author>(
    program: *const Program,
    options: *const Options,
    code: *mut *mut Code,
    error: *const Writer,
) -> u32 {
    let work = || {
        let exported = exported::<A>()?;
        // SAFETY: the host's program, options and place for the code.
        let (program, options, code) =
            unsafe { (program.as_ref(), options.as_ref(), code.as_mut()) };
        let (Some(program), Some(options), Some(code)) = (program, options, code) else {
            return Err(Failed::because("the host gives no program"));
        };
        // SAFETY: the host's texts.
        let (text, schedule) = unsafe {
            (
                read(program.text, "program")?,
                read(program.schedule, "schedule")?,
            )
        };
        let options = CompileOptions {
            strict: options.flags & LW_STRICT != 0,
            ..CompileOptions::default()
        };
        let compiled = match &exported.way {
            Way::Kernels(backend) => {
                let compile = |module: &Module| backend.compile(module, &options);
                compile_kernels(compile, text)?
            }
            Way::Devices(backend) => {
                let compile = |module: &Module| -> Result<Arc<dyn Executable>, BackendError> {
                    let code = backend.compile(module, &options)?;
                    Ok(Arc::new(Held(code)))
                };
                compile_kernels(compile, text)?
            }
            Way::Loops(backend) => {
                let kernel = match program.kernel_count {
                    // SAFETY: the host says that there is one.
                    1 => unsafe { program.kernels.as_ref() },
                    _ => None,
                };
                let kernel = kernel
                    .ok_or_else(|| Failed::because("the host gives no name for the program"))?;
                // SAFETY: the host's text.
                let name = unsafe { read(kernel.name, "program's name") }?;
                compile_loops(backend, name, text, schedule, &options)?
            }
        };
        *code = Box::into_raw(Box::new(compiled)).cast();
        Ok(())
    };
    // SAFETY: the host's writer.
    unsafe { guarded(error, work) }
}

fn unreadable(source: &Source, error: &Diagnostic) -> Failed {
    Failed::because(format!(
        "the host's text cannot be read: {}",
        error.render(source)
    ))
}

fn compile_kernels(
    compile: impl FnOnce(&Module) -> Result<Arc<dyn Executable>, BackendError>,
    text: &str,
) -> Result<Compiled, Failed> {
    let source = Source::new("kernel", text);
    // Reading validates.
    let module = loopwright_kernel::parse(&source).map_err(|error| unreadable(&source, &error))?;
    Ok(Compiled {
        executable: compile(&module)?,
        named: None,
    })
}

fn compile_loops(
    backend: &Backend,
    name: &str,
    text: &str,
    schedule: &str,
    options: &CompileOptions,
) -> Result<Compiled, Failed> {
    let source = Source::new("program", text);
    let written = loopwright_graph::parse(&source).map_err(|error| unreadable(&source, &error))?;
    let source = Source::new("schedule", schedule);
    let schedule =
        parse_schedule(&source, &written).map_err(|error| unreadable(&source, &error))?;
    let plan = Plan::new(written, schedule)
        .map_err(|error| Failed::because(format!("the host's schedule: {error}")))?;
    // Loop backends do not look at the kernel, but which arguments there are follows from it.
    let lowered = lower(&plan, name)
        .map_err(|error| Failed::because(format!("the host's program: {error}")))?;
    let launch = KernelLaunch {
        backend: None,
        module: lowered.module,
        params: lowered.params,
    };
    let unit = CompileUnit {
        launch: &launch,
        plan: &plan,
    };
    let executable = backend.compile(&[unit], options)?.pop();
    let executable = executable.ok_or_else(|| Failed::because("the backend gives no code"))?;
    let named = launch.params.iter().map(|param| named(plan.graph(), param));
    Ok(Compiled {
        executable,
        named: Some(named.collect()),
    })
}

/// By what name the host gives an argument.
fn named(graph: &Graph, param: &KernelParam) -> Named {
    match param {
        KernelParam::Parameter(node) | KernelParam::Constant(node) => {
            Named::Given(graph.node_name(*node))
        }
        KernelParam::Output(output) => {
            Named::Given(graph.node_name(graph.outputs()[*output as usize].node))
        }
        KernelParam::Size(symbol) => Named::Given(graph.symbol_name(*symbol)),
        KernelParam::Scratch(_) | KernelParam::Log => Named::Nothing,
    }
}

unsafe extern "C" fn run(
    code: *mut Code,
    kernel: Text,
    arguments: *const Word,
    count: usize,
    error: *const Writer,
) -> u32 {
    let work = || {
        // SAFETY: the host gives what `compile` gave it, and has not given it back yet.
        let compiled = unsafe { code.cast::<Compiled>().as_ref() };
        let compiled = compiled.ok_or_else(|| Failed::because("the host gives no code"))?;
        // SAFETY: the host's text.
        let kernel = unsafe { read(kernel, "kernel's name") }?;
        if arguments.is_null() && count > 0 {
            return Err(Failed::because("the host gives no arguments"));
        }
        let words = match count {
            0 => &[],
            // SAFETY: the host says that so many are there.
            _ => unsafe { std::slice::from_raw_parts(arguments, count) },
        };
        let mut arguments = Vec::with_capacity(count);
        match &compiled.named {
            None => {
                for word in words {
                    // SAFETY: the host's argument; each is taken once.
                    arguments.push(unsafe { argument(word) }?);
                }
            }
            Some(names) => {
                for name in names {
                    // SAFETY: as above: names are unique.
                    arguments.push(unsafe { argument_by_name(words, name) }?);
                }
            }
        }
        // SAFETY: the host gives the arguments of a kernel that it lowered itself.
        Ok(unsafe { compiled.executable.run(kernel, &mut arguments) }?)
    };
    // SAFETY: the host's writer.
    unsafe { guarded(error, work) }
}

unsafe fn argument_by_name<'a>(words: &[Word], name: &Named) -> Result<Argument<'a>, Failed> {
    let name = match name {
        Named::Given(name) => name,
        Named::Nothing => return Ok(Argument::Read(&[])),
    };
    for word in words {
        // SAFETY: the host's text.
        if unsafe { read(word.name, "argument's name") }? == name {
            // SAFETY: the host's argument.
            return unsafe { argument(word) };
        }
    }
    Err(Failed::because(format!("the host does not give `{name}`")))
}

/// An argument of the host's, for as long as the call lasts.
///
/// # Safety
/// Its memory is there, and used by nobody else in a way that its kind does not allow.
unsafe fn argument<'a>(word: &Word) -> Result<Argument<'a>, Failed> {
    let start = word.memory.cast::<u8>();
    let bytes = usize::try_from(word.bytes);
    let bytes = bytes.map_err(|_| Failed::because("an argument is larger than all memory"))?;
    if start.is_null() {
        return Err(Failed::because("an argument has no memory"));
    }
    // SAFETY: the caller says that the memory is there and may be used so.
    Ok(unsafe {
        match word.kind {
            LW_ARGUMENT_READ => Argument::Read(std::slice::from_raw_parts(start, bytes)),
            LW_ARGUMENT_WRITE => Argument::Write(std::slice::from_raw_parts_mut(start, bytes)),
            LW_ARGUMENT_SHARED => Argument::Shared(std::slice::from_raw_parts(
                start.cast::<Cell<u8>>().cast_const(),
                bytes,
            )),
            LW_ARGUMENT_SCALAR => {
                let dtype = DType::ALL.get(word.dtype as usize);
                let dtype = dtype.filter(|dtype| dtype.bytes() == bytes);
                let dtype = dtype.ok_or_else(|| {
                    Failed::because(format!("a scalar has dtype {}, which is none", word.dtype))
                })?;
                Argument::Scalar(Scalar::read(
                    *dtype,
                    std::slice::from_raw_parts(start, bytes),
                ))
            }
            other => {
                return Err(Failed::because(format!(
                    "an argument is of kind {other}, which is none"
                )));
            }
        }
    })
}

unsafe extern "C" fn code_text(code: *mut Code, text: *const Writer) {
    // SAFETY: the host gives what `compile` gave it.
    let Some(compiled) = (unsafe { code.cast::<Compiled>().as_ref() }) else {
        return;
    };
    // A panic leaves the text empty; the host then shows the program's.
    if let Ok(code) = catch_unwind(AssertUnwindSafe(|| compiled.executable.code())) {
        // SAFETY: the host's writer.
        unsafe { tell(text, &code) };
    }
}

unsafe extern "C" fn release(code: *mut Code) {
    if code.is_null() {
        return;
    }
    // SAFETY: the host gives back, once, what `compile` gave it.
    let compiled = unsafe { Box::from_raw(code.cast::<Compiled>()) };
    // There is nobody to tell.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(compiled)));
}
