//! Compiling and measuring plans, away from the thread that draws.

mod bench;
mod work;
mod worker;

pub(crate) use bench::DeviceBench;
pub(crate) use work::{Measurement, Work};
pub(crate) use worker::{Request, Worker, is_worker};

use crate::history::Version;
use loopwright::looptree::Plan;

/// What compiling a plan gives.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Compiled {
    /// The kernel after all passes.
    pub(crate) kernel: String,
    /// What the device's compiler was given.
    pub(crate) code: String,
    /// What of the schedule was not carried out, and why.
    pub(crate) notes: Vec<String>,
}

/// Something that compiles plans and runs them.
pub(crate) trait Bench: Send {
    /// Compiles a plan; runs are of it then.
    fn compile(&mut self, plan: &Plan) -> Result<Compiled, String>;

    /// Runs what was compiled once; gives the seconds that took.
    fn run(&mut self) -> Result<f64, String>;

    /// What a time means on this machine.
    fn judge(&mut self, plan: &Plan, seconds: f64) -> Measurement;
}

/// What became known about a plan.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Report {
    pub(crate) version: Version,
    pub(crate) news: News,
}

/// What can become known about a plan.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum News {
    /// The compiler is at it.
    Compiling,
    /// It is compiled.
    Compiled(Compiled),
    /// It runs.
    Running,
    /// It ran, and how fast.
    Measured(Measurement),
    /// It cannot be compiled or run, and why.
    Failed(String),
    /// Left for a newer plan.
    Dropped,
}
