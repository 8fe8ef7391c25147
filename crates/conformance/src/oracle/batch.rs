//! Many programs, one compilation.

use super::memory::{Memory, Slot};
use super::{Blame, KERNEL, Mismatch, Oracle, Prepared};
use loopwright_backend::{Argument, BackendError, Executable};
use loopwright_graph::{Array, NodeId};
use loopwright_kernel::Module;
use std::sync::Arc;

impl Oracle {
    /// Compiles cases together, runs each and compares with the reference evaluator. The results are in
    /// the order of the cases.
    ///
    /// A call of a C compiler costs as much as compiling dozens of small kernels, so that a batch
    /// makes fuzzing several times faster.
    pub fn check_batch(&self, cases: &[Prepared]) -> Vec<Result<(), Mismatch>> {
        let runs = self.compile_batch(cases).into_iter().zip(cases);
        runs.map(|(compiled, case)| compiled?.check(case)).collect()
    }

    /// Compiles cases together.
    pub(crate) fn compile_batch(&self, cases: &[Prepared]) -> Vec<Result<Compiled, Mismatch>> {
        let mut results: Vec<Option<Result<Compiled, Mismatch>>> = vec![None; cases.len()];
        for strict in [true, false] {
            let chosen = |at: &usize| cases[*at].case.arithmetic.is_strict() == strict;
            let chosen: Vec<usize> = (0..cases.len()).filter(chosen).collect();
            self.compile_alike(cases, &chosen, &mut results);
        }
        let results = results.into_iter();
        results
            .map(|result| result.unwrap_or_else(|| unreachable!("every case is strict or not")))
            .collect()
    }

    /// Compiles cases that have the same options.
    fn compile_alike(
        &self,
        cases: &[Prepared],
        chosen: &[usize],
        results: &mut [Option<Result<Compiled, Mismatch>>],
    ) {
        let Some(first) = chosen.first() else {
            return;
        };
        let parts = chosen.iter().map(|at| &cases[*at].module);
        match self
            .backend
            .compile(&merged(parts), &cases[*first].options())
        {
            Ok(executable) => {
                for (place, at) in chosen.iter().enumerate() {
                    results[*at] = Some(Ok(Compiled {
                        executable: executable.clone(),
                        kernel: kernel_name(place),
                    }));
                }
            }
            Err(error) => match chosen {
                [only] => results[*only] = Some(Err(backend_error(&error))),
                // One of them is guilty; halves find it in few compilations.
                _ => {
                    let (left, right) = chosen.split_at(chosen.len() / 2);
                    self.compile_alike(cases, left, results);
                    self.compile_alike(cases, right, results);
                }
            },
        }
    }
}

/// A case's kernel in the executable of its batch.
#[derive(Clone)]
pub(crate) struct Compiled {
    executable: Arc<dyn Executable>,
    kernel: String,
}

impl Compiled {
    /// Runs and compares with the reference evaluator.
    fn check(&self, case: &Prepared) -> Result<(), Mismatch> {
        let mut memory = case.memory();
        self.run(&mut memory)?;
        let compared = case.compare_backend(&memory);
        compared.map_err(|fault| fault.blamed_on(Blame::Backend))
    }

    /// Runs with other sizes and inputs than the case's own; gives the bytes of the first output.
    pub(crate) fn run_with(
        &self,
        case: &Prepared,
        sizes: &[(&str, i64)],
        inputs: &[(NodeId, Array)],
    ) -> Result<Vec<u8>, Mismatch> {
        let wrong = |message: String| Mismatch::new(Blame::Backend, message);
        let binding = case
            .graph
            .bind(sizes)
            .map_err(|error| wrong(error.to_string()))?;
        let mut memory = Memory::new(&case.graph, &binding, &case.lowered, inputs);
        self.run(&mut memory)?;
        memory.check_guards().map_err(wrong)?;
        let results = case.results_in(&memory);
        Ok(results
            .first()
            .map_or_else(Vec::new, |bytes| bytes.to_vec()))
    }

    fn run(&self, memory: &mut Memory) -> Result<(), Mismatch> {
        let mut arguments: Vec<Argument<'_>> = memory
            .slots()
            .map(|slot| match slot {
                Slot::Read(bytes) => Argument::Read(bytes),
                Slot::Write(bytes) => Argument::Write(bytes),
                Slot::Scalar(scalar) => Argument::Scalar(scalar),
            })
            .collect();
        let run = self.executable.run(&self.kernel, &mut arguments);
        run.map_err(|error| backend_error(&error))
    }
}

fn backend_error(error: &BackendError) -> Mismatch {
    Mismatch::new(Blame::Backend, error.to_string())
}

fn kernel_name(at: usize) -> String {
    format!("{KERNEL}_{at}")
}

/// The kernels of several modules in one, each under a name of its own.
fn merged<'a>(modules: impl Iterator<Item = &'a Module>) -> Module {
    let mut all = Module::default();
    for (at, module) in modules.enumerate() {
        assert!(
            module.structs.is_empty() && module.functions.len() == 1,
            "a lowered program is one kernel and has no structs"
        );
        let mut function = module.functions[0].clone();
        function.name = kernel_name(at);
        all.functions.push(function);
    }
    all
}
