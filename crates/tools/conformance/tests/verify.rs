//! Runs are verified: right ones pass, wrong ones are explained.

mod support;

use loopwright_backend::{
    Argument, Backend, BackendError, CompileOptions, Describe, Executable, KernelBackend,
    Precision, Target, Unavailable,
};
use loopwright_compile::{Compiler, Program};
use loopwright_conformance::generate::{Case, random_case};
use loopwright_conformance::oracle::{Blame, Oracle};
use loopwright_conformance::{ConformanceError, Difference, VerifiedRun, Verifier};
use loopwright_formats::npy::Header;
use loopwright_graph::{Array, Binding, Graph, parse};
use loopwright_interp::Interp;
use loopwright_kernel::Module;
use loopwright_kernel::passes::{BROKEN, Pipeline};
use loopwright_looptree::{Schedule, parse_schedule};
use loopwright_lower::KernelParam;
use loopwright_ops::{DType, Scalar};
use loopwright_text::Source;
use std::path::Path;
use std::sync::Arc;

/// A program with everything that a run of it and its verification need.
struct Setup {
    backend: Backend,
    options: CompileOptions,
    pipeline: Pipeline,
    program: Arc<Program>,
    binding: Binding,
}

impl Setup {
    fn new(
        backend: Backend,
        pipeline: Pipeline,
        strict: bool,
        graph: &Graph,
        schedule: Option<&Schedule>,
        sizes: &[(&str, i64)],
    ) -> Setup {
        let options = CompileOptions {
            strict,
            ..CompileOptions::default()
        };
        let compiler = Compiler::new(backend.clone(), options.clone());
        let compiler = compiler.with_pipeline(pipeline.clone());
        let program = compiler.compile(graph, schedule).expect("it compiles");
        let binding = program.graph().bind(sizes).expect("the sizes fit");
        Setup {
            backend,
            options,
            pipeline,
            program,
            binding,
        }
    }

    fn case(backend: Backend, pipeline: Pipeline, case: &Case) -> Setup {
        let (graph, schedule) = (&case.graph, case.schedule.as_ref());
        let strict = case.arithmetic.is_strict();
        Setup::new(backend, pipeline, strict, graph, schedule, &case.sizes())
    }

    /// The memory of a run, by the kernel's parameters.
    fn memory(&self, inputs: &[(&str, Array)]) -> Vec<Vec<u8>> {
        let graph = self.program.graph();
        let mut constants = self.program.constants().iter();
        let bytes = |node| {
            let elements = self.binding.elements(graph, node) as usize;
            elements * graph.node(node).dtype.bytes()
        };
        let params = self.program.params().iter();
        let memory = params.map(|param| match param {
            KernelParam::Parameter(node) => {
                let name = &graph.node(*node).name;
                let given = inputs.iter().find(|(given, _)| given == name);
                given.expect("every input is given").1.bytes().to_vec()
            }
            KernelParam::Constant(_) => constants.next().expect("it has a value").clone(),
            KernelParam::Output(at) => vec![0; bytes(graph.outputs()[*at as usize].node)],
            KernelParam::Scratch(at) => {
                let scratch = &self.program.scratch()[*at as usize];
                let value = |symbol| Some(self.binding.value(symbol));
                let elements = scratch.elements.evaluate(&value).expect("it has a size");
                vec![0; elements as usize * scratch.dtype.bytes()]
            }
            KernelParam::Log => vec![0; loopwright_compile::log_words(0) * 8],
            KernelParam::Size(_) => Vec::new(),
        });
        memory.collect()
    }

    /// Runs and gives what stands in memory afterwards.
    fn run(&self, before: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let mut after = before.to_vec();
        let params = self.program.params().iter().zip(&mut after);
        let mut arguments: Vec<Argument<'_>> = params
            .map(|(param, bytes)| match param {
                KernelParam::Size(symbol) => {
                    Argument::Scalar(Scalar::i64(self.binding.value(*symbol)))
                }
                KernelParam::Constant(_) => Argument::Read(bytes),
                _ => Argument::Write(bytes),
            })
            .collect();
        let executable = self.program.executable();
        // SAFETY: the kernel stays within its arguments, as the one that it was made from does.
        let run = unsafe { executable.run(self.program.kernel(), &mut arguments) };
        run.expect("it runs");
        after
    }

    fn check(
        &self,
        directory: &Path,
        before: &[Vec<u8>],
        after: &[Vec<u8>],
    ) -> Result<(), ConformanceError> {
        let before: Vec<&[u8]> = before.iter().map(Vec::as_slice).collect();
        let after: Vec<&[u8]> = after.iter().map(Vec::as_slice).collect();
        // Enough attempts for the programs here; the time must not decide.
        let verifier = Verifier::new(directory.to_owned()).with_limits(600, 3600);
        verifier.check(&VerifiedRun {
            program: &self.program,
            backend: &self.backend,
            options: &self.options,
            pipeline: &self.pipeline,
            binding: &self.binding,
            before: &before,
            after: &after,
        })
    }

    /// Runs and checks.
    fn verify(&self, directory: &Path, inputs: &[(&str, Array)]) -> Result<(), ConformanceError> {
        let before = self.memory(inputs);
        self.check(directory, &before, &self.run(&before))
    }
}

fn inputs(case: &Case) -> Vec<(&str, Array)> {
    let inputs = case.inputs.iter();
    inputs
        .map(|(node, array)| (case.graph.node(*node).name.as_str(), array.clone()))
        .collect()
}

fn difference(result: Result<(), ConformanceError>) -> Difference {
    match result {
        Err(ConformanceError::Difference(difference)) => *difference,
        Err(other) => panic!("a difference is expected, not: {other}"),
        Ok(()) => panic!("a difference is expected, and none was found"),
    }
}

fn program(text: &str) -> Graph {
    let source = Source::new("test.lw", format!("loopwright program 1\n{text}"));
    parse(&source).unwrap_or_else(|error| panic!("{}", error.render(&source)))
}

fn floats(shape: &[usize], values: &[f64]) -> Array {
    Array::from_f64(DType::F32, shape, values).expect("they fit")
}

/// Different values, some of them such that sums depend on the order.
fn uneven(shape: &[usize]) -> Array {
    let count: usize = shape.iter().product();
    let values: Vec<f64> = (0..count)
        .map(|at| ((at * 7919) % 1009) as f64 * 0.37 - 180.0)
        .collect();
    floats(shape, &values)
}

/// What was written is there, is read back, and is wrong in the same way.
fn assert_reproduces(difference: &Difference, pipeline: Pipeline, backend: Backend) {
    let replay = difference.replay.as_ref().expect("it was written");
    let text = std::fs::read_to_string(&replay.program).expect("the program is there");
    assert!(
        text.contains(&format!("# {} is to blame", difference.rewrite)),
        "{text}"
    );
    let strict = text.contains("# compiled in strict mode");
    let sizes: Vec<(String, i64)> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# sizes: "))
        .flat_map(|line| line.split("--set ").map(str::trim))
        .filter_map(|size| size.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.parse().expect("a number")))
        .collect();
    let source = Source::new("small.lw", text);
    let graph = parse(&source).unwrap_or_else(|error| panic!("{}", error.render(&source)));
    let schedule = replay.schedule.as_ref().map(|path| {
        let text = std::fs::read_to_string(path).expect("the schedule is there");
        let source = Source::new("small.schedule", text);
        parse_schedule(&source, &graph.clone().with_stores())
            .unwrap_or_else(|error| panic!("{}", error.render(&source)))
    });
    let inputs = replay.inputs.iter().map(|(name, path)| {
        let node = graph.find(name).expect("the program has the input");
        let dtype = graph.node(node).dtype;
        let file = std::fs::read(path).expect("the input is there");
        let mut reader = file.as_slice();
        let header = Header::read(&mut reader).expect("it is an array");
        let elements = header.read_elements(&mut reader, dtype);
        let elements = elements.expect("it holds its elements");
        let array = Array::from_bytes(dtype, &header.shape, &elements);
        (node, array.expect("it is as large as it says"))
    });
    let case = Case {
        inputs: inputs.collect(),
        schedule,
        sizes,
        arithmetic: loopwright_conformance::generate::Arithmetic::Rounded {
            strict,
            math: Precision::Accurate,
        },
        graph,
    };
    let oracle = Oracle::new(backend).with_pipeline(pipeline);
    let mismatch = oracle.check(&case).expect_err("it is still wrong");
    assert_eq!(mismatch.blame, difference.rewrite, "{mismatch}");
}

#[test]
fn broken_passes_are_named_and_what_is_written_reproduces_them() {
    for name in BROKEN {
        let pipeline = || Pipeline::with_broken(name).expect("it is one of the broken passes");
        let directory = tempfile::tempdir().expect("there is room for a directory");
        let failures = directory.path().join("failures");
        let backend: Backend = Backend::kernel_backend(Interp);
        let (mut strict, mut free) = (0, 0);
        for seed in 0..2000 {
            let case = random_case(seed);
            // A broken pass can also make a kernel that does not end, which a backend cannot run.
            let oracle = Oracle::new(backend.clone()).with_pipeline(pipeline());
            let element = oracle.prepare(&case).err().and_then(|wrong| wrong.element);
            if element.is_none() || (case.arithmetic.is_strict() && strict > 0) {
                continue;
            }
            let setup = Setup::case(backend.clone(), pipeline(), &case);
            let difference = difference(setup.verify(&failures, &inputs(&case)));
            let expected = Blame::Pass((*name).to_owned());
            assert_eq!(difference.rewrite, expected, "program {seed}: {difference}");
            assert!(difference.reproduced);
            assert_reproduces(&difference, pipeline(), backend.clone());
            let text = difference.to_string();
            assert!(
                text.starts_with("kernel `program` on `interp`: ")
                    && text.contains(&format!("it is wrong first after pass `{name}`"))
                    && text.contains("LOOPWRIGHT_VERIFY=1 loopwright run "),
                "{text}"
            );
            match case.arithmetic.is_strict() {
                true => strict += 1,
                false => free += 1,
            }
            if strict > 0 && free > 0 {
                break;
            }
        }
        assert!(strict > 0 && free > 0, "`{name}`: {strict} and {free}");
    }
}

#[test]
fn right_programs_pass_and_leave_nothing() {
    let directory = tempfile::tempdir().expect("there is room for a directory");
    let failures = directory.path().join("failures");
    for seed in 0..200 {
        let case = random_case(3_000_000 + seed);
        let setup = Setup::case(Backend::kernel_backend(Interp), Pipeline::standard(), &case);
        let checked = setup.verify(&failures, &inputs(&case));
        assert_eq!(checked, Ok(()), "program {seed}");
    }
    assert!(!failures.exists());
}

/// An interpreter that flips a bit in the last byte of the first memory that a kernel writes.
struct Liar {
    /// Whether it only does so the first time.
    once: bool,
}

struct Lie {
    truth: Arc<dyn Executable>,
}

impl Describe for Liar {
    fn name(&self) -> &str {
        "liar"
    }

    fn availability(&self) -> Result<(), Unavailable> {
        Ok(())
    }

    fn target(&self) -> Target {
        Target::SCALAR
    }
}

impl KernelBackend for Liar {
    fn compile(
        &self,
        module: &Module,
        options: &CompileOptions,
    ) -> Result<Arc<dyn Executable>, BackendError> {
        let truth = Interp.compile(module, options)?;
        Ok(match self.once {
            true => truth,
            false => Arc::new(Lie { truth }),
        })
    }
}

impl Executable for Lie {
    unsafe fn run(&self, kernel: &str, arguments: &mut [Argument<'_>]) -> Result<(), BackendError> {
        // SAFETY: as the caller states.
        unsafe { self.truth.run(kernel, arguments) }?;
        let written = arguments
            .iter_mut()
            .rev()
            .find_map(|argument| match argument {
                Argument::Write(bytes) if !bytes.is_empty() => Some(bytes),
                _ => None,
            });
        if let Some(byte) = written.and_then(|bytes| bytes.last_mut()) {
            *byte ^= 1;
        }
        Ok(())
    }

    fn code(&self) -> String {
        self.truth.code()
    }
}

const MATRIX_PRODUCT: &str = "size M\nsize N
input a: f32[i=M, k=N]
input b: f32[k, j=M]
state s: f32[i]
output c = sum[k](a * b)
update s = s * 0.5 + sum[k](a)
";

fn matrix_inputs(m: usize, n: usize) -> Vec<(&'static str, Array)> {
    vec![
        ("a", uneven(&[m, n])),
        ("b", uneven(&[n, m])),
        ("s", uneven(&[m])),
    ]
}

#[test]
fn a_backend_that_lies_is_named() {
    let graph = program(MATRIX_PRODUCT);
    for strict in [true, false] {
        let directory = tempfile::tempdir().expect("there is room for a directory");
        let backend: Backend = Backend::kernel_backend(Liar { once: false });
        let pipeline = Pipeline::standard();
        let sizes = [("M", 5), ("N", 9)];
        let setup = Setup::new(backend.clone(), pipeline, strict, &graph, None, &sizes);
        let found = difference(setup.verify(directory.path(), &matrix_inputs(5, 9)));
        assert_eq!(found.rewrite, Blame::Backend, "{found}");
        let element = found.element.as_ref().expect("an element differs");
        assert_eq!(
            (element.array.as_str(), element.index.as_slice()),
            ("c", &[4, 4][..])
        );
        let text = found.to_string();
        assert!(
            text.contains("the kernel is right; it is wrong first after backend `liar`"),
            "{text}"
        );
        assert!(text.contains("--device liar"), "{text}");
        assert_eq!(text.contains("--strict"), strict, "{text}");
        assert_reproduces(&found, Pipeline::standard(), backend);
    }
}

#[test]
fn what_does_not_happen_again_is_said_to() {
    let graph = program(MATRIX_PRODUCT);
    let directory = tempfile::tempdir().expect("there is room for a directory");
    let backend: Backend = Backend::kernel_backend(Liar { once: true });
    let sizes = [("M", 2), ("N", 3)];
    let pipeline = Pipeline::standard();
    let setup = Setup::new(backend, pipeline, true, &graph, None, &sizes);
    let before = setup.memory(&matrix_inputs(2, 3));
    let mut after = setup.run(&before);
    // The state's new value: the third parameter.
    after[2][0] ^= 1;
    let found = difference(setup.check(directory.path(), &before, &after));
    assert!(!found.reproduced);
    assert_eq!(found.rewrite, Blame::Backend);
    let element = found.element.as_ref().expect("an element differs");
    assert_eq!(
        (element.array.as_str(), element.index.as_slice()),
        ("s", &[0][..])
    );
    assert!(found.to_string().contains("when it ran again"), "{found}");
    let replay = found.replay.expect("it was written");
    assert_eq!(replay.inputs.len(), 3);
    assert!(replay.command.contains("--set M=2 --set N=3"), "{replay:?}");
}

#[test]
fn a_state_is_compared_with_what_it_becomes_from_what_it_was() {
    let graph = program(MATRIX_PRODUCT);
    let directory = tempfile::tempdir().expect("there is room for a directory");
    let sizes = [("M", 4), ("N", 3)];
    let pipeline = Pipeline::standard();
    let setup = Setup::new(
        Backend::kernel_backend(Interp),
        pipeline,
        true,
        &graph,
        None,
        &sizes,
    );
    let first = setup.memory(&matrix_inputs(4, 3));
    let second = setup.run(&first);
    let third = setup.run(&second);
    assert_eq!(setup.check(directory.path(), &first, &second), Ok(()));
    assert_eq!(setup.check(directory.path(), &second, &third), Ok(()));
    // The state of a later run is not that of an earlier one.
    let found = difference(setup.check(directory.path(), &first, &third));
    assert_eq!(found.element.expect("an element differs").array, "s");
}

#[test]
fn nan_and_infinity_are_values() {
    let graph = program(
        "input x: f32[i=6]
output y = x * 2 + 1
output total = sum[i](x)
output larger = x > 1
",
    );
    let directory = tempfile::tempdir().expect("there is room for a directory");
    let inf = f64::INFINITY;
    let x = floats(&[6], &[f64::NAN, inf, -inf, -0.0, 1.5, 1e38]);
    for strict in [true, false] {
        let pipeline = Pipeline::standard();
        let setup = Setup::new(
            Backend::kernel_backend(Interp),
            pipeline,
            strict,
            &graph,
            None,
            &[],
        );
        let before = setup.memory(&[("x", x.clone())]);
        let after = setup.run(&before);
        assert_eq!(setup.check(directory.path(), &before, &after), Ok(()));
        // Another NaN is the same; a number is not, and neither is the other infinity.
        let place = |number: u32| {
            let mut params = setup.program.params().iter();
            let place = params.position(|param| *param == KernelParam::Output(number));
            place.expect("the kernel writes it")
        };
        let with = |output: u32, element: usize, value: Scalar| {
            let mut after = after.clone();
            value.write(&mut after[place(output)][element * 4..]);
            setup.check(directory.path(), &before, &after)
        };
        let other_nan = Scalar::from_bits(DType::F32, 0xffc0_0001);
        assert_eq!(with(0, 0, other_nan), Ok(()));
        assert_eq!(with(1, 0, other_nan), Ok(()));
        let wrong = [
            (0, 0, 1.0, vec![0]),
            (0, 1, -inf, vec![1]),
            (0, 2, f64::NAN, vec![2]),
            (1, 0, inf, vec![]),
        ];
        for (output, element, value, index) in wrong {
            let found = difference(with(output, element, Scalar::from_f64(DType::F32, value)));
            let seen = found.element.expect("an element differs");
            assert_eq!(seen.index, index);
        }
    }
}

/// Sums over several dimensions in an order of the schedule's own, and contracted by the compiler.
#[test]
fn roundings_that_are_free_are_no_difference() {
    let text = "input a: f32[i=24, k=40, l=8]
input b: f32[k, l]
output c = sum[k, l](a * b)
output above = c > 0
output best = argmax[i](c)
";
    let graph = program(text);
    let reordered = "loopwright schedule 1
c: l, k, i
above: i
best: i
";
    let source = Source::new("test.schedule", reordered.to_owned());
    let schedule = parse_schedule(&source, &graph.clone().with_stores())
        .unwrap_or_else(|error| panic!("{}", error.render(&source)));
    let directory = tempfile::tempdir().expect("there is room for a directory");
    let inputs = [("a", uneven(&[24, 40, 8])), ("b", uneven(&[40, 8]))];
    let mut backends: Vec<Backend> = vec![Backend::kernel_backend(Interp)];
    backends.extend(support::cc("2"));
    for backend in backends {
        for schedule in [None, Some(&schedule)] {
            for strict in [true, false] {
                let pipeline = Pipeline::standard();
                let setup = Setup::new(backend.clone(), pipeline, strict, &graph, schedule, &[]);
                let before = setup.memory(&inputs);
                let after = setup.run(&before);
                assert_eq!(setup.check(directory.path(), &before, &after), Ok(()));
                // A wrong result is one nevertheless.
                let params = setup.program.params().iter();
                let mut outputs = params.enumerate().filter_map(|(at, param)| match param {
                    KernelParam::Output(0) => Some(at),
                    _ => None,
                });
                let place = outputs.next().expect("the kernel writes it");
                let mut wrong = after.clone();
                let value = Scalar::read(DType::F32, &wrong[place]).to_f64();
                let value = Scalar::from_f64(DType::F32, value * 1.01);
                value.write(&mut wrong[place]);
                let found = difference(setup.check(directory.path(), &before, &wrong));
                assert_eq!(found.element.expect("an element differs").array, "c");
            }
        }
    }
}

/// A product whose rounding is left out moves few sums, each by one unit in the last place.
#[test]
fn a_last_bit_of_a_contracted_sum_is_no_difference() {
    let graph = program(
        "state plate: f32[y=64, x=64]
north = plate[y - 1, x] else 0
south = plate[y + 1, x] else 0
flow = north + south - 2 * plate
next = plate + 0.2 * flow
update plate = next
output total = sum[y, x](next)
",
    );
    let directory = tempfile::tempdir().expect("there is room for a directory");
    let mut backends: Vec<Backend> = vec![Backend::kernel_backend(Interp)];
    backends.extend(support::cc("2"));
    for backend in backends {
        for seed in 0..4 {
            let mut rng = 0x9e37_79b9_u64 + seed;
            let values: Vec<f64> = (0..64 * 64)
                .map(|_| {
                    rng = rng.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (rng >> 40) as f64 / f64::from(1 << 23) - 1.0
                })
                .collect();
            let pipeline = Pipeline::standard();
            let setup = Setup::new(backend.clone(), pipeline, false, &graph, None, &[]);
            let inputs = [("plate", floats(&[64, 64], &values))];
            assert_eq!(
                setup.verify(directory.path(), &inputs),
                Ok(()),
                "seed {seed}"
            );
        }
    }
}

#[test]
fn memory_that_does_not_fit_is_refused() {
    let graph = program("input x: f32[i=2]\noutput y = -x\n");
    let directory = tempfile::tempdir().expect("there is room for a directory");
    let pipeline = Pipeline::standard();
    let setup = Setup::new(
        Backend::kernel_backend(Interp),
        pipeline,
        true,
        &graph,
        None,
        &[],
    );
    let refused = |before: &[Vec<u8>], after: &[Vec<u8>]| {
        let error = setup.check(directory.path(), before, after);
        error.expect_err("it is refused").to_string()
    };
    let good = [vec![0; 8], vec![0; 8]];
    assert_eq!(
        refused(&good[..1], &good),
        "kernel `program` cannot be verified: it has 2 parameters, and what stood in memory before \
         the run is given for 1"
    );
    assert_eq!(
        refused(&good, &[vec![], vec![0; 4]]),
        "kernel `program` cannot be verified: `y` has 8 bytes, and 4 are given after the run"
    );
    assert!(refused(&[vec![0; 4], vec![]], &good).contains("`x` before the run"));
}

#[test]
#[cfg(unix)]
fn what_is_written_is_for_this_user_only() {
    use std::os::unix::fs::PermissionsExt;
    let graph = program("input x: f32[i=2]\noutput y = -x\n");
    let directory = tempfile::tempdir().expect("there is room for a directory");
    let failures = directory.path().join("new").join("failures");
    let pipeline = Pipeline::standard();
    let backend = Backend::kernel_backend(Liar { once: false });
    let setup = Setup::new(backend, pipeline, true, &graph, None, &[]);
    let found = difference(setup.verify(&failures, &[("x", uneven(&[2]))]));
    let replay = found.replay.expect("it was written");
    let mode = |path: &Path| {
        let metadata = std::fs::metadata(path).expect("it is there");
        metadata.permissions().mode() & 0o777
    };
    assert_eq!(mode(&failures), 0o700);
    assert_eq!(mode(&replay.program), 0o600);
    for (_, input) in &replay.inputs {
        assert_eq!(mode(input), 0o600);
    }
}
