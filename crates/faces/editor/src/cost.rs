//! What the parts of a plan cost, as the model has it.

use loopwright::backend::Target;
use loopwright::graph::Binding;
use loopwright::looptree::{Plan, ScheduleError, TreeRef};
use loopwright::scheduler::{Estimate, estimate};
use rustc_hash::FxHashMap;

/// What the model says about a plan at these sizes.
pub(crate) fn of_plan(
    plan: &Plan,
    target: &Target,
    binding: &Binding,
) -> Result<Estimate, ScheduleError> {
    let value = |symbol| Some(binding.value(symbol));
    estimate(plan.graph(), plan.schedule(), plan.tree(), target, &value)
}

/// The share of the whole that each place of the tree has, between 0 and 1: a loop, what is inside.
pub(crate) fn shares(plan: &Plan, estimate: &Estimate) -> FxHashMap<TreeRef, f64> {
    let total: f64 = estimate.steps.iter().map(|step| step.seconds).sum();
    let steps = estimate.steps.iter();
    let by_step: FxHashMap<_, _> = steps.map(|step| (step.node, step.seconds)).collect();
    let tree = plan.tree();
    let mut shares = FxHashMap::default();
    tree.walk(&mut |place, _| {
        let inside = tree.leaves(place);
        let seconds: f64 = inside.iter().filter_map(|node| by_step.get(node)).sum();
        let share = if total > 0.0 { seconds / total } else { 0.0 };
        shares.insert(place, share);
    });
    shares
}
