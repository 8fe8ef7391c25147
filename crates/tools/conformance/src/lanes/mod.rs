//! Every op, cast and bitcast at every dtype, in scalars and in vectors of several widths, against
//! [`loopwright_ops::evaluate`]; also what moves lanes, and constants.
//!
//! The rows of [`ops`](crate::ops) see each op through a program, in vectors of one width, at values that
//! were computed elsewhere. This is for whoever writes or generates code for vectors: other widths take other
//! instructions. There is one big module for each test, since what compilers start with costs more than a
//! kernel.

mod moves;
mod ops;
mod values;

use crate::behaviours::{Bench, Stop};
use crate::buffer::Buffer;
use crate::functions::is_near;
use crate::kernels::{compiled, complain, module};
use loopwright_backend::{Argument, Backend, Executable, Scheduler};
use loopwright_kernel::{Access, Builder, Function, FunctionKind, LoopKind, Space, Value};
use loopwright_ops::{DType, Scalar, same_value};
use std::rc::Rc;

/// The most lanes of a vector: all columns are as long as a multiple of it.
const MOST_LANES: usize = 16;

/// A backend, and which kernels it is given.
pub struct Lanes {
    backend: Backend,
    widths: fn(DType) -> &'static [u32],
    contracted: bool,
}

/// Something that must hold of ops in lanes.
#[derive(Clone, Copy)]
pub struct LaneTest {
    /// Its name, an identifier.
    pub name: &'static str,
    hold: fn(&Lanes) -> Result<(), Stop>,
}

macro_rules! list {
    ($($module:ident: $($name:ident)*;)*) => {
        /// Everything that must hold of ops in lanes.
        pub const LANE_TESTS: &[LaneTest] = &[
            $($(LaneTest { name: stringify!($name), hold: $module::$name },)*)*
        ];
    };
}

list! {
    ops:
        ops_on_bool_and_small_integers ops_on_large_integers ops_on_floats ops_on_narrow_floats
        casts_and_bitcasts;
    moves:
        narrow_floats_move_bit_for_bit lanes_are_moved_and_reduced masks_of_all_widths_meet
        constants_keep_their_bits;
}

impl Lanes {
    /// A backend whose ops are tried in scalars and in vectors of 4, 8 and 16 lanes: parts of a register,
    /// whole ones and several. Those on `f32` and `f64` are compiled strictly and otherwise.
    pub fn new(backend: Backend) -> Lanes {
        Lanes {
            backend,
            widths: |_| &[1, 4, 8, 16],
            contracted: true,
        }
    }

    /// The same with ops and casts on a dtype in vectors of so many lanes, 1 for scalars and at most 16: for
    /// a backend that compiles slowly and knows for which there are other instructions.
    #[must_use]
    pub fn widths(self, widths: fn(DType) -> &'static [u32]) -> Lanes {
        Lanes { widths, ..self }
    }

    /// The same, compiled strictly alone.
    #[must_use]
    pub fn strictly(self) -> Lanes {
        Lanes {
            contracted: false,
            ..self
        }
    }

    /// Runs the test of this name, for [`lane_tests!`](crate::lane_tests).
    ///
    /// # Panics
    /// If the backend is wrong, or there is no such test.
    pub fn assert(&self, name: &str) {
        let test = LANE_TESTS.iter().find(|test| test.name == name);
        let test = test.unwrap_or_else(|| panic!("there is no test `{name}` of lanes"));
        complain((test.hold)(self));
    }

    /// Runs every op at these dtypes.
    ///
    /// # Panics
    /// If the backend is wrong.
    pub fn assert_ops(&self, dtypes: &[DType]) {
        complain(ops::check_ops(self, dtypes));
    }

    /// Compiles what the backend can do of the cases together, runs each and compares. There must be
    /// something that it can do.
    fn check(&self, mut cases: Vec<Case>, modes: &[bool]) -> Result<(), Stop> {
        let bench = Bench::new(&self.backend, Scheduler::Sync);
        let capabilities = self.backend.capabilities();
        let mut refusal = None;
        cases.retain(|case| {
            let checked = capabilities.check(&module(vec![case.function.clone()]));
            checked.map_err(|why| refusal = Some(why.reason)).is_ok()
        });
        if cases.is_empty() {
            let why = refusal.unwrap_or_else(|| "there are no cases".to_owned());
            return Err(Stop::NotApplicable(why));
        }
        let functions = cases.iter().map(|case| case.function.clone()).collect();
        let module = module(functions);
        let valid = loopwright_kernel::validate(&module);
        valid.map_err(|error| Stop::Failed(format!("the kernels are not valid: {error}")))?;
        let mut failures = Vec::new();
        for &strict in modes {
            let executable = compiled(&bench, &module, strict)?;
            for case in &cases {
                let wrong = case.run(&*executable, bench.computes, strict)?;
                failures.extend(wrong.map(|wrong| format!("{wrong}, strict {strict}")));
            }
        }
        match failures.as_slice() {
            [] => Ok(()),
            failures => Err(Stop::Failed(format!(
                "{} kernels differ:\n{}",
                failures.len(),
                failures.join("\n")
            ))),
        }
    }
}

/// Operands by column, and what comes of each row of them.
struct Table {
    columns: Vec<Vec<Scalar>>,
    expected: Vec<Scalar>,
}

/// One kernel and what it should compute.
struct Case {
    function: Function,
    output: DType,
    /// Kernels of several widths have the same.
    table: Rc<Table>,
    /// Whether a NaN must be the one that is expected.
    bits: bool,
    /// How far off a result may be outside strict mode, in units in the last place.
    slack: u32,
    /// The same in strict mode.
    strict_slack: u32,
}

impl Case {
    fn new(function: Function, output: DType, table: &Rc<Table>) -> Case {
        Case {
            function,
            output,
            table: Rc::clone(table),
            bits: false,
            slack: 0,
            strict_slack: 0,
        }
    }

    /// The same where the bits of NaNs count.
    fn bit_for_bit(self) -> Case {
        Case { bits: true, ..self }
    }

    /// The same where results may be off by so many units in the last place as the backend states, and outside strict mode
    /// by as many as our own functions.
    fn with_slack(self, stated: u32, ours: u32) -> Case {
        Case {
            slack: stated.max(ours),
            strict_slack: stated,
            ..self
        }
    }

    /// The first element that is wrong, in words.
    fn run(
        &self,
        executable: &dyn Executable,
        computes: bool,
        strict: bool,
    ) -> Result<Option<String>, Stop> {
        let Table { columns, expected } = &*self.table;
        let inputs: Vec<Buffer> = columns.iter().map(|column| Buffer::of(column)).collect();
        let mut out = Buffer::zeroed(self.output, expected.len());
        let mut arguments = vec![Argument::Write(out.bytes_mut())];
        arguments.extend(inputs.iter().map(|input| Argument::Read(input.bytes())));
        arguments.push(Argument::Scalar(Scalar::i64(expected.len() as i64)));
        let name = &self.function.name;
        // SAFETY: the kernel stays within its arguments, as the one that it was made from does.
        unsafe { executable.run(name, &mut arguments) }?;
        drop(arguments);
        let raw = out.bytes();
        if !computes {
            let written = raw.iter().any(|byte| *byte != 0);
            return Ok(written.then(|| format!("{name} writes, and should not compute")));
        }
        let got = out.values(self.output);
        let slack = if strict {
            self.strict_slack
        } else {
            self.slack
        };
        let is_wrong = |&row: &usize| {
            let same = match self.bits {
                true => got[row].bits() == expected[row].bits(),
                false if slack == 0 => same_value(got[row], expected[row]),
                false => is_near(got[row], expected[row], slack),
            };
            // A bool must be stored as 0 or 1.
            !same || self.output == DType::Bool && raw[row] > 1
        };
        Ok((0..got.len()).find(is_wrong).map(|row| {
            let operands = columns.iter().map(|column| shown(column[row]));
            let operands: Vec<String> = operands.collect();
            format!(
                "{name}({}) gave {}, expected {}",
                operands.join(", "),
                shown(got[row]),
                shown(expected[row]),
            )
        }))
    }
}

fn shown(value: Scalar) -> String {
    format!("{value} ({:#x})", value.bits())
}

/// A kernel `out[i] = f(in0[i], …)` on vectors of `lanes` lanes.
fn elementwise(
    name: String,
    inputs: &[DType],
    output: DType,
    lanes: u32,
    f: impl FnOnce(&mut Builder, &[Value]) -> Value,
) -> Function {
    let mut b = Builder::new(name, FunctionKind::Kernel { group: None });
    let out = b.param_ptr(output, Space::Global, "out", Access::Write, true);
    let pointers: Vec<Value> = inputs
        .iter()
        .map(|&dtype| b.param_ptr(dtype, Space::Global, "in", Access::Read, false))
        .collect();
    let n = b.param_scalar(DType::I64, "n");
    let (zero, step) = (b.const_i64(0), b.const_i64(lanes.into()));
    b.for_loop(zero, n, step, LoopKind::Serial, "i", |b, i| {
        let load = |&pointer: &Value| match lanes {
            1 => b.load(pointer, i),
            lanes => b.load_vector(pointer, i, lanes),
        };
        let values: Vec<Value> = pointers.iter().map(load).collect();
        let result = f(b, &values);
        b.store(out, i, result);
    });
    b.finish()
}

/// Makes [`LANE_TESTS`] the tests of a backend's crate: `lane_tests!(make_lanes())`, where the expression
/// gives `Option<Lanes>` and has said why if it gives `None`.
#[macro_export]
macro_rules! lane_tests {
    ($make:expr) => {
        $crate::lane_tests! { @tests $make;
            ops_on_bool_and_small_integers ops_on_large_integers ops_on_floats ops_on_narrow_floats
            casts_and_bitcasts narrow_floats_move_bit_for_bit lanes_are_moved_and_reduced
            masks_of_all_widths_meet constants_keep_their_bits
        }
    };
    (@tests $make:expr; $($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                if let Some(lanes) = $make {
                    lanes.assert(stringify!($name));
                }
            }
        )*

        /// The list in the macro is the whole list.
        #[test]
        fn no_lane_test_is_forgotten() {
            let here = [$(stringify!($name)),*];
            let all: Vec<&str> = $crate::lanes::LANE_TESTS.iter().map(|test| test.name).collect();
            assert_eq!(here.as_slice(), all.as_slice());
        }
    };
}
