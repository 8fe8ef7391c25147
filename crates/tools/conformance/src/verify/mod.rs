//! Runs checked after the fact: what `LOOPWRIGHT_VERIFY=1` does.
//!
//! A [`Verifier`] is shown a run of a compiled program: what stood in memory before and after it. The
//! same kernel runs on the interpreter, the same graph on the reference evaluator, and the three must
//! agree: in strict mode the backend and the interpreter bit for bit; where roundings are free, as far as
//! other roundings could have given the same (see [`crate::oracle`]). On a difference the stages of the
//! program are checked one after the other, and the first after which it appears is named. Then the
//! program is made as small as it can be with the difference still there, starting from these very inputs,
//! and written to a file that can be run again.
//!
//! ```
//! use loopwright_backend::{Argument, Backend, CompileOptions, KernelBackend};
//! use loopwright_compile::Compiler;
//! use loopwright_conformance::{VerifiedRun, Verifier};
//! use loopwright_interp::Interp;
//! use loopwright_kernel::passes::Pipeline;
//! use std::sync::Arc;
//!
//! # let directory = tempfile::tempdir()?;
//! # let failures = directory.path().join("failures");
//! let source = loopwright_text::Source::new("double.lw", "\
//! loopwright program 1
//! input x: f32[i=2]
//! output y = x + x
//! ");
//! let graph = loopwright_graph::parse(&source).map_err(|error| error.render(&source))?;
//! let backend: Backend = Backend::kernel_backend(Interp);
//! let options = CompileOptions::default();
//! let program = Compiler::new(backend.clone(), options.clone()).compile(&graph, None)?;
//! let binding = program.graph().bind(&[])?;
//!
//! // The kernel's parameters: the input and the output.
//! let x: Vec<u8> = [1.0f32, 2.0].iter().flat_map(|x| x.to_le_bytes()).collect();
//! let mut y = vec![0; 8];
//! let mut arguments = [Argument::Read(&x), Argument::Write(&mut y)];
//! // SAFETY: the arguments are as long as the program says.
//! unsafe { program.executable().run(program.kernel(), &mut arguments) }?;
//!
//! Verifier::new(failures).check(&VerifiedRun {
//!     program: &program,
//!     backend: &backend,
//!     options: &options,
//!     pipeline: &Pipeline::standard(),
//!     binding: &binding,
//!     before: &[&x, &[]],
//!     after: &[&[], &y],
//! })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod difference;
mod write;

pub use difference::{Difference, Replay};

use crate::error::ConformanceError;
use crate::generate::{Arithmetic, Case};
use crate::oracle::{Blame, Fault, Oracle};
use crate::shrink::{Shrunk, shrink_until};
use loopwright_backend::{Backend, CompileOptions};
use loopwright_compile::Program;
use loopwright_graph::{Array, Binding, NodeId};
use loopwright_kernel::passes::Pipeline;
use loopwright_lower::KernelParam;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How many smaller programs are tried: as many as the fuzzer tries.
const ATTEMPTS: usize = 600;

/// For how long smaller programs are tried, in seconds.
const SECONDS: u64 = 60;

/// Checks runs of compiled programs against the interpreter and the reference evaluator.
#[derive(Clone, Debug)]
pub struct Verifier {
    directory: PathBuf,
    attempts: usize,
    seconds: u64,
}

/// A run of a compiled program.
#[derive(Clone, Copy)]
pub struct VerifiedRun<'a> {
    /// The program.
    pub program: &'a Program,
    /// What it was compiled for.
    pub backend: &'a Backend,
    /// How it was compiled.
    pub options: &'a CompileOptions,
    /// The passes its kernel went through.
    pub pipeline: &'a Pipeline,
    /// The value of every size and static of the run.
    pub binding: &'a Binding,
    /// What stood in memory before the run, for each of [`Program::params`]; only that of
    /// [`KernelParam::Parameter`] (inputs and states) is looked at, the others may be empty.
    pub before: &'a [&'a [u8]],
    /// What stands there after the run, in the same order; only that of [`KernelParam::Output`] and of
    /// states that the program updates is looked at.
    pub after: &'a [&'a [u8]],
}

impl Verifier {
    /// A verifier that writes failing programs into a directory, which is made, for this user only, when
    /// there is something to write.
    pub fn new(failures: PathBuf) -> Verifier {
        Verifier {
            directory: failures,
            attempts: ATTEMPTS,
            seconds: SECONDS,
        }
    }

    /// The same with other limits of the search for a small program: how many are tried, and for how many
    /// seconds.
    pub fn with_limits(mut self, attempts: usize, seconds: u64) -> Verifier {
        self.attempts = attempts;
        self.seconds = seconds;
        self
    }

    /// Checks a run. A difference is [`ConformanceError::Difference`]; what it says is for the user.
    pub fn check(&self, run: &VerifiedRun<'_>) -> Result<(), ConformanceError> {
        let case = run.case()?;
        let oracle = Oracle::new(run.backend.clone())
            .with_pipeline(run.pipeline.clone())
            .without_texts();
        match run.first_fault(&oracle, &case)? {
            None => Ok(()),
            Some(fault) => Err(Box::new(self.explain(run, &oracle, &case, fault)).into()),
        }
    }

    /// Finds the guilty stage and a small program that shows it.
    fn explain(
        &self,
        run: &VerifiedRun<'_>,
        oracle: &Oracle,
        case: &Case,
        fault: Fault,
    ) -> Difference {
        let seen = fault.blamed_on(Blame::Backend);
        let (shrunk, reproduced) = match oracle.check(case) {
            Err(mismatch) => {
                let deadline = Instant::now() + Duration::from_secs(self.seconds);
                let small = shrink_until(oracle, case, &mismatch, self.attempts, Some(deadline));
                (small, true)
            }
            // The kernel is right, and so is what the backend gives when it is asked again.
            Ok(()) => {
                let (case, mismatch) = (case.clone(), seen.clone());
                (Shrunk { case, mismatch }, false)
            }
        };
        let device = run.backend.name();
        Difference {
            kernel: run.program.kernel().to_owned(),
            device: device.to_owned(),
            rewrite: shrunk.mismatch.blame.clone(),
            message: seen.message,
            element: seen.element,
            reproduced,
            replay: write::write_difference(&self.directory, device, reproduced, &shrunk),
        }
    }
}

impl VerifiedRun<'_> {
    fn refuse(&self, reason: String) -> ConformanceError {
        ConformanceError::Run {
            kernel: self.program.kernel().to_owned(),
            reason,
        }
    }

    /// The run as a case: the program, its schedule, its sizes and its inputs.
    fn case(&self) -> Result<Case, ConformanceError> {
        let (graph, params) = (self.program.written(), self.program.params());
        for (when, given) in [("before", self.before), ("after", self.after)] {
            if given.len() != params.len() {
                let (count, given) = (params.len(), given.len());
                let reason = format!(
                    "it has {count} parameters, and what stood in memory {when} the run is given for {given}"
                );
                return Err(self.refuse(reason));
            }
        }
        let mut inputs = Vec::new();
        for node in graph.parameters() {
            let place = params
                .iter()
                .position(|param| *param == KernelParam::Parameter(node));
            let bytes = place.map(|at| self.before[at]);
            inputs.push((node, self.array(node, bytes)?));
        }
        for (param, after) in params.iter().zip(self.after) {
            let node = match param {
                KernelParam::Output(at) => graph.outputs()[*at as usize].node,
                KernelParam::Parameter(node)
                    if graph.updates().iter().any(|update| update.state == *node) =>
                {
                    *node
                }
                _ => continue,
            };
            let expected =
                self.binding.elements(graph, node) as usize * graph.node(node).dtype.bytes();
            if after.len() != expected {
                let name = graph.node_name(node);
                let got = after.len();
                let reason =
                    format!("`{name}` has {expected} bytes, and {got} are given after the run");
                return Err(self.refuse(reason));
            }
        }
        let sizes = graph.integers();
        let sizes = sizes.map(|(symbol, name, _)| (name.to_owned(), self.binding.value(symbol)));
        Ok(Case {
            graph: graph.clone(),
            schedule: Some(self.program.schedule().clone()),
            sizes: sizes.collect(),
            inputs,
            arithmetic: Arithmetic::Rounded {
                strict: self.options.strict,
                math: self.options.math,
            },
        })
    }

    /// An input's or state's values; zeros for what the kernel does not even take.
    fn array(&self, node: NodeId, bytes: Option<&[u8]>) -> Result<Array, ConformanceError> {
        let graph = self.program.written();
        let dtype = graph.node(node).dtype;
        let shape = self.binding.shape(graph, node);
        let shape: Vec<usize> = shape.iter().map(|size| *size as usize).collect();
        let array = match bytes {
            Some(bytes) => Array::from_bytes(dtype, &shape, bytes),
            None => Array::zeros(dtype, &shape),
        };
        array.map_err(|error| {
            let name = graph.node_name(node);
            self.refuse(format!("`{name}` before the run: {error}"))
        })
    }

    /// What is wrong with the run, if anything is.
    fn first_fault(&self, oracle: &Oracle, case: &Case) -> Result<Option<Fault>, ConformanceError> {
        let prepared = oracle.compiled(case, self.program);
        let prepared = prepared.map_err(|mismatch| self.refuse(mismatch.message))?;
        let after = prepared.results_among(self.after);
        let checked = || -> Result<(), Fault> {
            let accuracy = self.backend.capabilities().math;
            prepared.compare_with_accuracy(&after, &accuracy)?;
            let interpreted = prepared.interpreted()?;
            let bytes: Vec<&[u8]> = interpreted.iter().map(Array::bytes).collect();
            prepared.compare_with_reference(&bytes)?;
            if self.options.strict && !prepared.has_inexact(&accuracy) {
                prepared.compare_with(&interpreted, &after)?;
            }
            Ok(())
        };
        Ok(checked().err())
    }
}

impl loopwright_runtime::Verify for Verifier {
    fn check(&self, run: &loopwright_runtime::Run<'_>) -> Result<(), String> {
        Verifier::check(
            self,
            &VerifiedRun {
                program: run.program,
                backend: run.backend,
                options: run.options,
                pipeline: &Pipeline::standard(),
                binding: run.binding,
                before: run.before,
                after: run.after,
            },
        )
        .map_err(|error| error.to_string())
    }
}
