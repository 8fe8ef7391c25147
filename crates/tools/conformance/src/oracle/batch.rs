//! Many programs, one compilation.

use super::memory::{Memory, Slot};
use super::{Blame, KERNEL, Mismatch, Oracle, Prepared, panic_message};
use loopwright_backend::{
    Argument, BackendError, CompileUnit, Executable, KernelLaunch, MathAccuracy,
};
use loopwright_graph::{Array, NodeId};
use loopwright_kernel::FunctionId;
use std::borrow::Borrow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

impl Oracle {
    /// Compiles cases together, runs each and compares with the reference evaluator. The results are in
    /// the order of the cases.
    ///
    /// A call of a C compiler costs as much as compiling dozens of small kernels, so that a batch
    /// makes fuzzing several times faster.
    ///
    /// Where the backend does not compute, it is seen to that it leaves memory as it is.
    pub fn check_batch<P: Borrow<Prepared>>(&self, cases: &[P]) -> Vec<Result<(), Mismatch>> {
        let cases: Vec<&Prepared> = cases.iter().map(Borrow::borrow).collect();
        let runs = self.compile_batch(&cases).into_iter().zip(&cases);
        runs.map(|(compiled, case)| compiled?.check(case)).collect()
    }

    /// Compiles cases together.
    pub(crate) fn compile_batch(&self, cases: &[&Prepared]) -> Vec<Result<Compiled, Mismatch>> {
        let mut results: Vec<Option<Result<Compiled, Mismatch>>> = vec![None; cases.len()];
        for strict in [true, false] {
            let chosen = |at: &usize| cases[*at].case.arithmetic.is_strict() == strict;
            // Cases of one program share its kernel: the first of them stands for all.
            let mut firsts: Vec<usize> = Vec::new();
            let mut others: Vec<(usize, usize)> = Vec::new();
            for at in (0..cases.len()).filter(chosen) {
                let shares =
                    |first: &&usize| Arc::ptr_eq(&cases[**first].launch, &cases[at].launch);
                match firsts.iter().find(shares) {
                    Some(first) => others.push((at, *first)),
                    None => firsts.push(at),
                }
            }
            self.compile_alike(cases, &firsts, &mut results);
            for (at, first) in others {
                results[at] = results[first].clone();
            }
        }
        let results = results.into_iter();
        results
            .map(|result| result.unwrap_or_else(|| unreachable!("every case is strict or not")))
            .collect()
    }

    /// Compiles cases that have the same options.
    fn compile_alike(
        &self,
        cases: &[&Prepared],
        chosen: &[usize],
        results: &mut [Option<Result<Compiled, Mismatch>>],
    ) {
        let Some(first) = chosen.first() else {
            return;
        };
        let launches: Vec<KernelLaunch> = chosen
            .iter()
            .enumerate()
            .map(|(place, at)| named(&cases[*at].launch, kernel_name(place)))
            .collect();
        let units = chosen.iter().zip(&launches);
        let units: Vec<CompileUnit<'_>> = units
            .map(|(at, launch)| CompileUnit {
                launch,
                plan: &cases[*at].plan,
            })
            .collect();
        let options = cases[*first].options();
        let accuracy = Arc::new(self.backend.capabilities().math);
        let compiled = going_on(|| self.backend.compile(&units, &options));
        match compiled {
            Ok(executables) => {
                let compiled = executables.into_iter().zip(&launches);
                for (at, (executable, launch)) in chosen.iter().zip(compiled) {
                    results[*at] = Some(Ok(Compiled {
                        executable,
                        kernel: launch.kernel().to_owned(),
                        computes: self.computes,
                        accuracy: Arc::clone(&accuracy),
                    }));
                }
            }
            Err(mismatch) => match chosen {
                [only] => results[*only] = Some(Err(mismatch)),
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
    computes: bool,
    accuracy: Arc<MathAccuracy>,
}

impl Compiled {
    /// Runs and compares with the reference evaluator.
    fn check(&self, case: &Prepared) -> Result<(), Mismatch> {
        let mut memory = case.memory();
        self.run(&mut memory)?;
        if !self.computes {
            return Ok(());
        }
        let compared = case.compare_backend(&memory, &self.accuracy);
        compared.map_err(|fault| fault.blamed_on(Blame::Backend))
    }

    /// Runs with other sizes and inputs than the case's own; gives the bytes of the first output, or
    /// nothing where the backend does not compute.
    pub(crate) fn run_with(
        &self,
        case: &Prepared,
        sizes: &[(&str, i64)],
        inputs: &[(NodeId, Array)],
    ) -> Result<Option<Vec<u8>>, Mismatch> {
        let wrong = |message: String| Mismatch::new(Blame::Backend, message);
        let binding = case.plan.graph().bind(sizes);
        let binding = binding.map_err(|error| wrong(error.to_string()))?;
        let mut memory = case.memory_for(&binding, inputs);
        self.run(&mut memory)?;
        memory.check_guards().map_err(wrong)?;
        let results = case.results_in(&memory);
        let first = results.first();
        Ok(self
            .computes
            .then(|| first.map_or_else(Vec::new, |bytes| bytes.to_vec())))
    }

    fn run(&self, memory: &mut Memory) -> Result<(), Mismatch> {
        let before = (!self.computes).then(|| memory.clone());
        let mut arguments: Vec<Argument<'_>> = memory
            .slots()
            .map(|slot| match slot {
                Slot::Read(bytes) => Argument::Read(bytes),
                Slot::Write(bytes) => Argument::Write(bytes),
                Slot::Scalar(scalar) => Argument::Scalar(scalar),
            })
            .collect();
        // SAFETY: the kernel stays within its arguments, as the one that it was made from does.
        going_on(|| unsafe { self.executable.run(&self.kernel, &mut arguments) })?;
        drop(arguments);
        match before {
            Some(before) if before != *memory => Err(Mismatch::new(
                Blame::Backend,
                "it does not compute, and yet memory is not as it was",
            )),
            _ => Ok(()),
        }
    }
}

/// Whatever a backend does, even if it panics.
fn going_on<T>(work: impl FnOnce() -> Result<T, BackendError>) -> Result<T, Mismatch> {
    let wrong = |message: String| Mismatch::new(Blame::Backend, message);
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => result.map_err(|error| wrong(error.to_string())),
        Err(panic) => Err(wrong(panic_message(&*panic))),
    }
}

fn kernel_name(at: usize) -> String {
    format!("{KERNEL}_{at}")
}

/// A lowered program under another name.
fn named(launch: &KernelLaunch, name: String) -> KernelLaunch {
    let module = &launch.module;
    assert!(
        module.structs.is_empty() && module.functions.len() == 1,
        "a lowered program is one kernel and has no structs"
    );
    let mut launch = launch.clone();
    launch.module.functions[FunctionId(0)].name = name;
    launch
}
