//! The device that plans are measured on.

use super::{Bench, Compiled, Measurement, Work};
use loopwright::compile::{Bound, Compiler, ProgramError};
use loopwright::graph::Array;
use loopwright::looptree::Plan;
use loopwright::looptree::{Annotation, TreeNode};
use loopwright_tune::roofline::Roofline;
use std::time::Instant;

/// Compiles plans for a device and runs them with given inputs.
pub(crate) struct DeviceBench {
    compiler: Compiler,
    sizes: Vec<(String, i64)>,
    inputs: Vec<(String, Array)>,
    work: Work,
    ready: Option<Bound<'static>>,
}

impl DeviceBench {
    pub(crate) fn new(
        compiler: Compiler,
        sizes: Vec<(String, i64)>,
        inputs: Vec<(String, Array)>,
        work: Work,
    ) -> DeviceBench {
        DeviceBench {
            compiler,
            sizes,
            inputs,
            work,
            ready: None,
        }
    }

    fn prepare(&mut self, plan: &Plan) -> Result<Compiled, ProgramError> {
        // The memory of the plan before is given back first: there may not be enough for both.
        self.ready = None;
        let program = self
            .compiler
            .compile(plan.program(), Some(plan.schedule()))?;
        let sizes = self.sizes.iter();
        let sizes: Vec<(&str, i64)> = sizes.map(|(name, size)| (name.as_str(), *size)).collect();
        let mut bound = program.bind(&sizes)?;
        for (name, array) in &self.inputs {
            bound.give(name, array.clone())?;
        }
        self.ready = Some(bound);
        Ok(Compiled {
            kernel: loopwright::kernel::print(&program.module()),
            code: program.code(),
            notes: program.notes().to_vec(),
        })
    }
}

impl Bench for DeviceBench {
    fn compile(&mut self, plan: &Plan) -> Result<Compiled, String> {
        self.prepare(plan).map_err(|error| error.to_string())
    }

    fn run(&mut self) -> Result<f64, String> {
        let Some(bound) = &mut self.ready else {
            return Err("nothing is compiled".to_owned());
        };
        let clock = Instant::now();
        bound.run().map_err(|error| error.to_string())?;
        Ok(clock.elapsed().as_secs_f64())
    }

    fn judge(&mut self, plan: &Plan, seconds: f64) -> Measurement {
        let mut parallel = false;
        let tree = plan.tree();
        tree.walk(&mut |place, _| {
            parallel |= matches!(
                tree.node(place),
                TreeNode::Loop { spec, .. } if spec.annotation == Annotation::Parallel
            );
        });
        let threads = match parallel {
            true => self.compiler.backend().target().threads,
            false => 1,
        };
        self.work.in_seconds(seconds, &Roofline::get(), threads)
    }
}
