//! Many programs, one compilation.

use super::{Blame, KERNEL, Mismatch, Oracle, Prepared, Slot};
use crate::generate::Arithmetic;
use loopwright_backend::{Argument, BackendError, Executable};
use loopwright_kernel::Module;
use std::sync::Arc;

impl Oracle {
    /// Compiles cases together, runs each and compares. The results are in the order of the cases.
    ///
    /// A call of a C compiler costs as much as compiling dozens of small kernels, so that a batch
    /// makes fuzzing several times faster.
    pub fn check_batch(&self, cases: &[Prepared]) -> Vec<Result<(), Mismatch>> {
        let mut results: Vec<Result<(), Mismatch>> = vec![Ok(()); cases.len()];
        for arithmetic in [Arithmetic::Strict, Arithmetic::Whole] {
            let chosen = |at: &usize| cases[*at].case.arithmetic == arithmetic;
            let chosen: Vec<usize> = (0..cases.len()).filter(chosen).collect();
            self.check_alike(cases, &chosen, &mut results);
        }
        results
    }

    /// Checks cases that are compiled with the same options.
    fn check_alike(
        &self,
        cases: &[Prepared],
        chosen: &[usize],
        results: &mut [Result<(), Mismatch>],
    ) {
        let Some(first) = chosen.first() else {
            return;
        };
        let parts = chosen.iter().map(|at| &cases[*at].module);
        match self.backend.compile(&merged(parts), &cases[*first].options()) {
            Ok(executable) => {
                if let Ok(d) = std::env::var("DUMPC") { std::fs::write(format!("{d}/{}.c", chosen.len() * 100 + executable.code().len() % 100), executable.code()).unwrap(); }
                for (place, at) in chosen.iter().enumerate() {
                    results[*at] = run(&cases[*at], &executable, &kernel_name(place));
                }
            }
            Err(error) => match chosen {
                [only] => results[*only] = Err(backend_error(&error)),
                // One of them is guilty; halves find it in few compilations.
                _ => {
                    let (left, right) = chosen.split_at(chosen.len() / 2);
                    self.check_alike(cases, left, results);
                    self.check_alike(cases, right, results);
                }
            },
        }
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

fn run(case: &Prepared, executable: &Arc<dyn Executable>, kernel: &str) -> Result<(), Mismatch> {
    let mut memory = case.memory();
    let mut arguments: Vec<Argument<'_>> = memory
        .slots()
        .map(|slot| match slot {
            Slot::Read(bytes) => Argument::Read(bytes),
            Slot::Write(bytes) => Argument::Write(bytes),
            Slot::Scalar(scalar) => Argument::Scalar(scalar),
        })
        .collect();
    executable
        .run(kernel, &mut arguments)
        .map_err(|error| backend_error(&error))?;
    drop(arguments);
    let compared = case.compare(&memory);
    compared.map_err(|message| Mismatch::new(Blame::Backend, message))
}
