//! Kernels written by hand, with what lowered programs have little of: control flow, calls, structs,
//! atomics, tiles. Each is compared with the kernel interpreter, bit for bit.
//!
//! Backends that take loop trees are never given a kernel; none of this applies to them.

mod control;
mod memory;
mod values;

use crate::behaviours::{Bench, Stop, run_on};
use crate::buffer::Buffer;
use crate::kit::RowName;
use crate::pieces::Pieces;
use crate::report::Group;
use crate::verdict::Verdict;
use loopwright_backend::{Argument, Backend, CompileOptions, Executable, Scheduler};
use loopwright_kernel::interpret::{Grid, interpret};
use loopwright_kernel::{Access, Builder, Function, FunctionKind, Module, Space, Value};
use loopwright_ops::{DType, Scalar};
use std::sync::Arc;

/// A kernel, or a few that show one thing.
#[derive(Clone, Copy)]
pub struct HandWritten {
    /// Its name, an identifier.
    pub name: &'static str,
    hold: fn(&Bench<'_>) -> Result<(), Stop>,
}

macro_rules! kernels {
    ($($module:ident: $($name:ident)*;)*) => {
        /// Every kernel.
        pub const KERNELS: &[HandWritten] = &[
            $($(HandWritten { name: stringify!($name), hold: $module::$name },)*)*
        ];
    };
}

kernels! {
    control:
        loops_branches_and_arrays parallel_loops_capture_what_they_use work_items_of_a_grid_of_one;
    memory:
        atomics_add_up_in_parallel every_atomic_gives_the_value_before structs_and_calls
        vectors_in_structs matrix_tiles;
    values:
        comparisons_become_lanes constants_compute_in_their_own_type;
}

/// The row of that name.
pub fn hand_written(name: &str) -> Option<&'static HandWritten> {
    KERNELS.iter().find(|kernel| kernel.name == name)
}

impl HandWritten {
    pub(crate) fn row(&self) -> RowName<'static> {
        RowName {
            group: Group::Kernels,
            line: self.name,
            column: "",
        }
    }

    pub(crate) fn run(&self, backend: &Backend) -> (Pieces, Verdict) {
        let bench = Bench::new(backend, Scheduler::Sync);
        run_on(&bench, || (self.hold)(&bench))
    }
}

/// Runs atomic operations on every dtype. In valid kernels they are on 32 and 64 bits only; this is for a
/// backend that has the others too.
///
/// # Panics
/// If the backend is wrong.
pub fn assert_atomics_beyond_valid_kernels(backend: &Backend) {
    let bench = Bench::new(backend, Scheduler::Sync);
    complain(memory::atomics_beyond_valid_kernels(&bench));
}

/// Says what does not apply, and panics with what fails.
pub(crate) fn complain(result: Result<(), Stop>) {
    match result {
        Ok(()) => {}
        Err(Stop::NotApplicable(why)) => eprintln!("NOT APPLICABLE: {why}"),
        Err(Stop::Failed(message)) => panic!("{message}"),
    }
}

const KERNEL: FunctionKind = FunctionKind::Kernel { group: None };

/// A module without structs.
pub(crate) fn module(functions: Vec<Function>) -> Module {
    Module {
        functions: functions.into(),
        ..Module::default()
    }
}

/// A kernel of a buffer `p` and a size `n`.
fn kernel(name: &str, dtype: DType, body: impl FnOnce(&mut Builder, Value, Value)) -> Function {
    let mut b = Builder::new(name, KERNEL);
    let p = b.param_ptr(dtype, Space::Global, "p", Access::ReadWrite, true);
    let n = b.param_scalar(DType::I64, "n");
    body(&mut b, p, n);
    b.finish()
}

/// Compiles a module; it does not apply if it is more than the backend can do, or another level.
pub(crate) fn compiled(
    bench: &Bench<'_>,
    module: &Module,
    strict: bool,
) -> Result<Arc<dyn Executable>, Stop> {
    bench.note_module(module)?;
    let options = CompileOptions {
        strict,
        ..CompileOptions::default()
    };
    let compiled = bench.backend.compile_module(module, &options);
    let compiled = compiled.ok_or_else(|| Stop::NotApplicable("it takes loop trees".to_owned()))?;
    Ok(compiled?)
}

/// A module, and what the backend made of it.
struct Compiled<'a> {
    bench: &'a Bench<'a>,
    module: Module,
    executable: Arc<dyn Executable>,
}

impl<'a> Compiled<'a> {
    fn new(bench: &'a Bench<'a>, module: Module) -> Result<Compiled<'a>, Stop> {
        let valid = loopwright_kernel::validate(&module);
        valid.map_err(|error| Stop::Failed(format!("the kernels are not valid: {error}")))?;
        Compiled::unchecked(bench, module)
    }

    /// The same of kernels that need not be valid.
    fn unchecked(bench: &'a Bench<'a>, module: Module) -> Result<Compiled<'a>, Stop> {
        Ok(Compiled {
            bench,
            executable: compiled(bench, &module, true)?,
            module,
        })
    }

    /// Runs a kernel on one buffer and these scalars, and fails unless the buffer is then as the interpreter
    /// leaves it. Gives what that is.
    fn run(
        &self,
        kernel: &str,
        values: &[Scalar],
        scalars: &[Scalar],
    ) -> Result<Vec<Scalar>, Stop> {
        let dtype = values.first().map_or(DType::U8, |value| value.dtype());
        let mut buffer = Buffer::of(values);
        let mut arguments = vec![Argument::Write(buffer.bytes_mut())];
        arguments.extend(scalars.iter().map(|scalar| Argument::Scalar(*scalar)));
        // SAFETY: the kernel stays within its arguments, as the one that it was made from does.
        unsafe { self.executable.run(kernel, &mut arguments) }?;
        drop(arguments);
        let mut interpreted = Buffer::of(values);
        let mut arguments = vec![Argument::Write(interpreted.bytes_mut())];
        arguments.extend(scalars.iter().map(|scalar| Argument::Scalar(*scalar)));
        let run = interpret(&self.module, kernel, &mut arguments, self.grid(kernel));
        run.map_err(|error| Stop::Failed(format!("the interpreter does not run it: {error}")))?;
        let (got, expected) = (buffer.values(dtype), interpreted.values(dtype));
        let compared: &[Scalar] = match self.bench.computes {
            true => &expected,
            false => values,
        };
        let wrong = got.iter().zip(compared).position(|(a, b)| a != b);
        match wrong {
            None => Ok(expected),
            Some(at) => Err(Stop::Failed(format!(
                "kernel `{kernel}` leaves {} (bits {:#x}) in element {at} of {}, and it should be {} (bits \
                 {:#x}):\n{}",
                got[at],
                got[at].bits(),
                got.len(),
                compared[at],
                compared[at].bits(),
                self.executable.code()
            ))),
        }
    }

    /// One group of work-items, as large as the kernel says.
    fn grid(&self, kernel: &str) -> Grid {
        let functions = self.module.functions.iter();
        let mut groups = functions.filter_map(|function| match function.kind {
            FunctionKind::Kernel { group } if function.name == kernel => group,
            _ => None,
        });
        groups.next().map_or_else(Grid::default, |group| Grid {
            global: group.map(u64::from),
            local: group.map(u64::from),
        })
    }
}

/// Compiles one kernel of a buffer and a size and runs it; see [`Compiled::run`].
fn run_alone(
    bench: &Bench<'_>,
    function: Function,
    values: &[Scalar],
    n: i64,
) -> Result<Vec<Scalar>, Stop> {
    let name = function.name.clone();
    let compiled = Compiled::new(bench, module(vec![function]))?;
    compiled.run(&name, values, &[Scalar::i64(n)])
}

fn floats(count: usize) -> Vec<Scalar> {
    (0..count)
        .map(|n| Scalar::f32((n as f32 - 7.0) * 0.37))
        .collect()
}

fn integers(count: usize) -> Vec<Scalar> {
    (0..count as i64)
        .map(|n| Scalar::from_i64(DType::I32, n * 7919 % 101 - 50))
        .collect()
}
