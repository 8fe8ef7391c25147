//! What must be refused, how, and that all else goes on.

use crate::behaviours::{Bench, Stop, run_on};
use crate::behaviours::{ensure, link, write};
use crate::buffer::Buffer;
use crate::features::parsed;
use crate::kernels;
use crate::kit::RowName;
use crate::pieces::Pieces;
use crate::report::Group;
use crate::verdict::Verdict;
use loopwright_backend::{
    Argument, Backend, BackendError, Capabilities, CompileOptions, CompileUnit, Executable,
    KernelLaunch, Scheduler,
};
use loopwright_compile::{Compiler, Kernels};
use loopwright_graph::Array;
use loopwright_kernel::passes::Pipeline;
use loopwright_kernel::{Access, Builder, FunctionKind, Module, Space, parse};
use loopwright_lower::KernelParam;
use loopwright_ops::{DType, Scalar};
use loopwright_text::Source;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Something that must be refused or survived.
#[derive(Clone, Copy)]
pub struct Misuse {
    /// Its name, an identifier.
    pub name: &'static str,
    hold: fn(&Bench<'_>) -> Result<(), Stop>,
}

macro_rules! misuses {
    ($($name:ident)*) => {
        /// Everything that must be refused or survived.
        pub const MISUSES: &[Misuse] = &[
            $(Misuse { name: stringify!($name), hold: $name },)*
        ];
    };
}

misuses! {
    unknown_kernel too_few_arguments too_many_arguments arguments_of_another_kind
    arrays_that_do_not_fit beyond_capabilities works_after_a_failure
    dropped_while_another_runs
}

/// The row of that name.
pub fn misuse(name: &str) -> Option<&'static Misuse> {
    MISUSES.iter().find(|misuse| misuse.name == name)
}

impl Misuse {
    pub(crate) fn row(&self) -> RowName<'static> {
        RowName {
            group: Group::Errors,
            line: self.name,
            column: "",
        }
    }

    pub(crate) fn run(&self, backend: &Backend) -> (Pieces, Verdict) {
        let bench = Bench::new(backend, Scheduler::Sync);
        run_on(&bench, || (self.hold)(&bench))
    }
}

/// Elements of the arrays that are handed over.
const ELEMENTS: usize = 6;

/// What an output holds before it is written.
const UNTOUCHED: u8 = 0xa5;

const TRIPLE: &str = "size N\ninput x: i64[i=N]\noutput y = x * 3 + 1\n";

/// A program as a backend is given it.
fn lowered(bench: &Bench<'_>, text: &str) -> Result<Kernels, Stop> {
    let graph = parsed("misuse", text);
    let target = bench.backend.target();
    let kernels = Kernels::new(&graph, None, &target, &Pipeline::standard())?;
    bench.note_module(&kernels.module())?;
    Ok(kernels)
}

fn compiled(bench: &Bench<'_>, kernels: &Kernels) -> Result<Arc<dyn Executable>, BackendError> {
    compiled_as(bench, kernels, &kernels.launches[0])
}

/// A kernel that stands in for that of a program.
fn demanding_kernel(module: &Module) -> KernelLaunch {
    KernelLaunch {
        backend: None,
        module: module.clone(),
        params: Vec::new(),
    }
}

fn compiled_as(
    bench: &Bench<'_>,
    kernels: &Kernels,
    launch: &KernelLaunch,
) -> Result<Arc<dyn Executable>, BackendError> {
    let plan = &kernels.plan;
    let unit = CompileUnit { launch, plan };
    let executables = bench.backend.compile(&[unit], &CompileOptions::default())?;
    let first = executables.into_iter().next();
    first.ok_or_else(|| BackendError::Call {
        kernel: launch.kernel().to_owned(),
        reason: "one unit gives no executable".to_owned(),
    })
}

/// How a call differs from a right one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Call<'a> {
    Right,
    Kernel(&'a str),
    OneLess,
    OneMore,
}

/// Calls a kernel of one input, one output and a size; gives what the output holds afterwards.
fn call(
    kernels: &Kernels,
    executable: &dyn Executable,
    how: Call<'_>,
) -> Result<Vec<u8>, (Vec<u8>, BackendError)> {
    let values: Vec<u8> = (0..ELEMENTS as i64).flat_map(i64::to_ne_bytes).collect();
    // Words, so that they are aligned.
    let mut output = vec![u64::from_ne_bytes([UNTOUCHED; 8]); ELEMENTS];
    let input: Vec<u64> = values
        .chunks_exact(8)
        .map(|bytes| u64::from_ne_bytes(bytes.try_into().unwrap_or_default()))
        .collect();
    let mut more = vec![0u64; ELEMENTS];
    let mut written = Some(bytes_mut(&mut output));
    let mut arguments: Vec<Argument<'_>> = Vec::new();
    for param in &kernels.params {
        arguments.push(match param {
            KernelParam::Output(_) => match written.take() {
                Some(bytes) => Argument::Write(bytes),
                None => unreachable!("the program has one output"),
            },
            KernelParam::Size(_) => Argument::Scalar(Scalar::i64(ELEMENTS as i64)),
            _ => Argument::Read(bytes(&input)),
        });
    }
    match how {
        Call::OneLess => drop(arguments.pop()),
        Call::OneMore => arguments.push(Argument::Write(bytes_mut(&mut more))),
        Call::Right | Call::Kernel(_) => {}
    }
    let kernel = match how {
        Call::Kernel(kernel) => kernel,
        _ => &kernels.name,
    };
    // SAFETY: the kernel stays within its arguments, as the one that it was made from does.
    let result = unsafe { executable.run(kernel, &mut arguments) };
    drop(arguments);
    let after = bytes(&output).to_vec();
    match result {
        Ok(()) => Ok(after),
        Err(error) => Err((after, error)),
    }
}

fn bytes(words: &[u64]) -> &[u8] {
    // SAFETY: the words are initialised and borrowed, and a byte needs no alignment.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), words.len() * 8) }
}

fn bytes_mut(words: &mut [u64]) -> &mut [u8] {
    // SAFETY: the words are initialised, exclusively borrowed, and any bytes are valid words.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), words.len() * 8) }
}

/// Fails unless a call is refused, names the kernel and writes nothing.
fn is_refused(bench: &Bench<'_>, how: Call<'_>, kernel: &str) -> Result<(), Stop> {
    let kernels = lowered(bench, TRIPLE)?;
    let executable = compiled(bench, &kernels)?;
    match call(&kernels, &*executable, how) {
        Ok(_) => Err(Stop::Failed("the call is not refused".to_owned())),
        Err((output, error)) => {
            let message = error.to_string();
            ensure(message.contains(kernel), || {
                format!("the error does not name the kernel `{kernel}`: {message}")
            })?;
            ensure(output.iter().all(|byte| *byte == UNTOUCHED), || {
                format!("it is refused ({message}), and yet something was written")
            })
        }
    }
}

/// Fails unless a right call gives what it should.
fn is_right(bench: &Bench<'_>, kernels: &Kernels, executable: &dyn Executable) -> Result<(), Stop> {
    let output = call(kernels, executable, Call::Right).map_err(|(_, error)| error)?;
    let expected: Vec<u8> = (0..ELEMENTS as i64)
        .flat_map(|x| (x * 3 + 1).to_ne_bytes())
        .collect();
    ensure(!bench.computes || output == expected, || {
        "the results are wrong".to_owned()
    })
}

/// A kernel of a name that the code does not have.
fn unknown_kernel(bench: &Bench<'_>) -> Result<(), Stop> {
    is_refused(bench, Call::Kernel("no_such_kernel"), "no_such_kernel")
}

fn too_few_arguments(bench: &Bench<'_>) -> Result<(), Stop> {
    is_refused(bench, Call::OneLess, loopwright_compile::KERNEL)
}

fn too_many_arguments(bench: &Bench<'_>) -> Result<(), Stop> {
    is_refused(bench, Call::OneMore, loopwright_compile::KERNEL)
}

/// Scalars for buffers and the other way round, scalars of another dtype, memory that must not be written or
/// is not aligned.
fn arguments_of_another_kind(bench: &Bench<'_>) -> Result<(), Stop> {
    if !bench.computes {
        let why = "it has no use for arguments: it does not compute";
        return Err(Stop::NotApplicable(why.to_owned()));
    }
    let mut b = Builder::new("move", FunctionKind::Kernel { group: None });
    let out = b.param_ptr(DType::I64, Space::Global, "out", Access::Write, true);
    let x = b.param_ptr(DType::I64, Space::Global, "x", Access::Read, true);
    let at = b.param_scalar(DType::I64, "at");
    let value = b.load(x, at);
    b.store(out, at, value);
    let executable = kernels::compiled(bench, &kernels::module(vec![b.finish()]), true)?;
    let x = Buffer::of(&[Scalar::i64(7); 2]);
    let untouched = Buffer::of(&[Scalar::i64(-1); 2]);
    let read = || Argument::Read(x.bytes());
    let index = || Argument::Scalar(Scalar::i64(0));
    // What comes after `out`, or all of them where memory is not given to be written.
    let wrong: [(&str, bool, Vec<Argument<'_>>); 5] = [
        ("`out` is read-only", false, vec![read(), read(), index()]),
        ("`out` is a scalar", false, vec![index(), read(), index()]),
        ("`x` is a scalar", true, vec![index(), index()]),
        ("`at` is a buffer", true, vec![read(), read()]),
        (
            "`at` is f32",
            true,
            vec![read(), Argument::Scalar(Scalar::f32(0.0))],
        ),
    ];
    for (what, writes, rest) in wrong {
        let mut out = Buffer::of(&[Scalar::i64(-1); 2]);
        let mut arguments = Vec::new();
        if writes {
            arguments.push(Argument::Write(out.bytes_mut()));
        }
        arguments.extend(rest);
        // SAFETY: the kernel stays within its arguments, as the one that it was made from does.
        let error = match unsafe { executable.run("move", &mut arguments) } {
            Ok(()) => return Err(Stop::Failed(format!("a call where {what} is not refused"))),
            Err(error) => error.to_string(),
        };
        drop(arguments);
        ensure(error.contains("move"), || {
            format!("the error where {what} does not name the kernel `move`: {error}")
        })?;
        ensure(out.bytes() == untouched.bytes(), || {
            format!("a call where {what} is refused, and yet something was written")
        })?;
    }
    // Memory that is not aligned is refused, or does not matter.
    let mut out = Buffer::of(&[Scalar::i64(-1); 2]);
    let part = &mut out.bytes_mut()[1..9];
    // SAFETY: the kernel stays within its arguments, as the one that it was made from does.
    match unsafe { executable.run("move", &mut [Argument::Write(part), read(), index()]) } {
        Ok(()) => ensure(out.bytes()[1..9] == x.bytes()[..8], || {
            "memory that is not aligned is written in another place".to_owned()
        }),
        Err(_) => ensure(out.bytes() == untouched.bytes(), || {
            "memory that is not aligned is refused, and yet something was written".to_owned()
        }),
    }
}

/// Arrays of another size than the program's never reach the backend.
fn arrays_that_do_not_fit(bench: &Bench<'_>) -> Result<(), Stop> {
    let graph = parsed("fit", TRIPLE);
    bench.note(&graph)?;
    let compiler = Compiler::new(bench.backend.clone(), CompileOptions::default());
    let program = compiler.compile(&graph, None)?;
    let array = |count: usize| {
        Array::from_scalars(DType::I64, &[count], &vec![Scalar::i64(2); count])
            .map_err(|error| Stop::Failed(error.to_string()))
    };
    for (input, output) in [(5, 6), (7, 6), (6, 5), (6, 7)] {
        let mut memory = vec![0u64; output];
        let mut bound = program.bind(&[("N", 6)])?;
        let given = match bound.give("x", array(input)?) {
            Ok(bound) => bound.output("y", bytes_mut(&mut memory)).map(drop),
            Err(error) => Err(error),
        };
        let name = if input == 6 { "`y`" } else { "`x`" };
        let refused = given
            .as_ref()
            .is_err_and(|error| error.to_string().contains(name));
        ensure(refused, || {
            format!("{name} of the wrong size is not refused by name: {given:?}")
        })?;
    }
    // The runtime refuses them too.
    let device = bench.device()?;
    let routine = bench.routine(&device, "next", "input x: i64[i=6]\noutput y = x + 1\n")?;
    for count in [5, 7] {
        let written = write(routine.context(), "x", &vec![1; count]);
        ensure(written.is_err(), || {
            format!("{count} values are written to an array of 6")
        })?;
    }
    write(routine.context(), "x", &[1; 6])?;
    routine.run(&[])?;
    bench.computed(routine.context(), "y", &[2; 6])
}

/// Modules that ask for what not every backend has.
fn demanding(capabilities: &Capabilities) -> Vec<Module> {
    let kernel = |params: &str, body: &str| {
        format!("loopwright kernel 1\n\nkernel @demanding({params}) {{\n{body}}}\n")
    };
    let mut texts = vec![
        kernel("", "  barrier local\n"),
        kernel("", "  %a: ptr<local, i64> = alloc local i64 x 1\n"),
        kernel(
            "%x: readwrite ptr<global, i64>, %n: i64",
            "  %old: i64 = atomic add %x[%n], %n\n",
        ),
    ];
    texts.push(
        "loopwright kernel 1\n\nstruct Pair { x: i64, y: i64 }\n\nkernel @demanding() {\n  \
         %a: ptr<private, Pair> = alloc private Pair x 1\n}\n"
            .to_owned(),
    );
    for dtype in DType::ALL {
        texts.push(kernel(
            &format!("%x: readwrite ptr<global, {dtype}>, %n: i64"),
            &format!("  %a: {dtype} = load %x[%n]\n  store %x[%n], %a\n"),
        ));
    }
    if let Some(lanes) = capabilities.vector_lanes.checked_mul(2) {
        let vector = format!("i64x{lanes}");
        texts.push(kernel("%n: i64", &format!("  %a: {vector} = splat %n\n")));
    }
    if let Some(bytes) = capabilities.private_memory {
        let elements = bytes / 8 + 1;
        texts.push(kernel(
            "",
            &format!("  %a: ptr<private, i64> = alloc private i64 x {elements}\n"),
        ));
    }
    if let Some(params) = capabilities.max_params {
        let params: Vec<String> = (0..=params).map(|at| format!("%n{at}: i64")).collect();
        texts.push(kernel(&params.join(", "), ""));
    }
    for op in &capabilities.missing_ops {
        let dtypes = DType::ALL.into_iter();
        let dtype = dtypes.rev().find(|dtype| {
            let operands = vec![*dtype; op.arity()];
            capabilities.dtypes.contains(dtype) && op.result_dtype(&operands).is_ok()
        });
        let Some(dtype) = dtype else { continue };
        let operands = vec![dtype; op.arity()];
        let Ok(result) = op.result_dtype(&operands) else {
            continue;
        };
        let operands = vec!["%x"; op.arity()].join(", ");
        texts.push(kernel(
            &format!("%p: read ptr<global, {dtype}>, %n: i64"),
            &format!("  %x: {dtype} = load %p[%n]\n  %y: {result} = {op} {operands}\n"),
        ));
    }
    let modules = texts.into_iter().map(|text| {
        let source = Source::new("demanding", text);
        parse(&source).unwrap_or_else(|error| {
            panic!("the suite's kernels are kernels: {}", error.render(&source))
        })
    });
    modules.collect()
}

/// What is beyond the backend's capabilities is refused, with its name and the reason.
fn beyond_capabilities(bench: &Bench<'_>) -> Result<(), Stop> {
    let capabilities = bench.backend.capabilities();
    let beyond = demanding(&capabilities).into_iter();
    let beyond: Vec<Module> = beyond
        .filter(|module| capabilities.check(module).is_err())
        .collect();
    if beyond.is_empty() {
        return Err(Stop::NotApplicable("it can do everything".to_owned()));
    }
    let kernels = lowered(bench, TRIPLE)?;
    for module in &beyond {
        let launch = demanding_kernel(module);
        let name = bench.backend.name();
        match compiled_as(bench, &kernels, &launch) {
            Err(BackendError::Unsupported {
                backend,
                kernel,
                reason,
            }) => ensure(
                backend == name && kernel == "demanding" && !reason.is_empty(),
                || format!("`{name}` refuses `demanding` as `{backend}`, `{kernel}`: {reason}"),
            )?,
            Err(error) => {
                return Err(Stop::Failed(format!(
                    "it should say that it cannot do it, and says: {error}"
                )));
            }
            Ok(_) => {
                return Err(Stop::Failed(format!(
                    "it compiles what it says it cannot do:\n{module}"
                )));
            }
        }
    }
    Ok(())
}

/// A call and a compilation that failed leave everything else as it was.
fn works_after_a_failure(bench: &Bench<'_>) -> Result<(), Stop> {
    let kernels = lowered(bench, TRIPLE)?;
    let executable = compiled(bench, &kernels)?;
    for how in [Call::Kernel("no_such_kernel"), Call::OneLess] {
        ensure(call(&kernels, &*executable, how).is_err(), || {
            "a call that does not fit is not refused".to_owned()
        })?;
        is_right(bench, &kernels, &*executable)?;
    }
    let capabilities = bench.backend.capabilities();
    for module in demanding(&capabilities) {
        if capabilities.check(&module).is_err() {
            let launch = demanding_kernel(&module);
            ensure(compiled_as(bench, &kernels, &launch).is_err(), || {
                "what is beyond its capabilities is not refused".to_owned()
            })?;
        }
    }
    is_right(bench, &kernels, &*executable)?;
    let again = compiled(bench, &kernels)?;
    is_right(bench, &kernels, &*again)
}

/// Code that is dropped does not take other code of the backend with it, not even while that runs.
fn dropped_while_another_runs(bench: &Bench<'_>) -> Result<(), Stop> {
    let kernels = lowered(bench, TRIPLE)?;
    let other = lowered(bench, "size N\ninput x: i64[i=N]\noutput y = x - 7\n")?;
    let kept = compiled(bench, &kernels)?;
    let done = AtomicBool::new(false);
    let computes = bench.computes;
    let expected: Vec<u8> = (0..ELEMENTS as i64)
        .flat_map(|x| (x * 3 + 1).to_ne_bytes())
        .collect();
    std::thread::scope(|scope| {
        let runs = scope.spawn(|| {
            let mut runs = 0;
            while runs < 20 || !done.load(Ordering::Relaxed) {
                match call(&kernels, &*kept, Call::Right) {
                    Ok(output) if !computes || output == expected => runs += 1,
                    Ok(_) => return Err(format!("the results of run {runs} are wrong")),
                    Err((_, error)) => return Err(error.to_string()),
                }
            }
            Ok(())
        });
        let dropped = (0..3).try_for_each(|_| {
            let code = compiled(bench, &other)?;
            let called = call(&other, &*code, Call::Right);
            called.map(drop).map_err(|(_, error)| error)
        });
        done.store(true, Ordering::Relaxed);
        let ran = runs
            .join()
            .unwrap_or_else(|_| Err("it panicked".to_owned()));
        dropped.map_err(Stop::from)?;
        ran.map_err(Stop::Failed)
    })?;
    // And through the runtime: the code of a routine that is gone.
    let device = bench.device()?;
    let stay = bench.routine(&device, "stay", "state n: i64[]\nupdate n = n + 1\n")?;
    stay.context().zero("n")?;
    for round in 1..4 {
        let text = format!("state n: i64[]\nupdate n = n - {round}\n");
        let code = bench.compile(&device, "go", &text)?;
        let gone = link(&device.stream()?.context(), &code)?;
        gone.context().zero("n")?;
        gone.schedule(&[])?;
        drop((gone, code));
        stay.schedule(&[])?;
    }
    bench.computed(stay.context(), "n", &[3])
}
