//! How long a plan will take, without running it: what decides which candidates are worth measuring.

use loopwright_graph::Binding;
use loopwright_looptree::{Plan, Target};
use loopwright_scheduler::estimate;
use loopwright_symbolic::Symbol;

/// A model of what plans cost.
pub trait Predict: Send + Sync {
    /// Seconds of one run; only how plans compare matters. `None`: the model knows nothing of it. `binding` is
    /// that of the program as it is written ([`Plan::program`]).
    fn seconds(&self, plan: &Plan, binding: &Binding) -> Option<f64>;
}

/// The scheduler's own model ([`estimate`]).
#[derive(Clone, Copy, Debug)]
pub struct CostModel {
    target: Target,
}

impl CostModel {
    /// The model of a machine.
    pub fn new(target: Target) -> CostModel {
        CostModel { target }
    }
}

impl Predict for CostModel {
    fn seconds(&self, plan: &Plan, binding: &Binding) -> Option<f64> {
        let value = |symbol: Symbol| Some(binding.value(symbol));
        let (graph, schedule) = (plan.graph(), plan.schedule());
        let found = estimate(graph, schedule, plan.tree(), &self.target, &value).ok()?;
        (found.seconds.is_finite() && found.seconds > 0.0).then_some(found.seconds)
    }
}
