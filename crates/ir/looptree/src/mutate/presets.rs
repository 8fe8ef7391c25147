//! Changes that are made again and again until none is left: what an editor has a key for.

use super::split::rounds;
use super::{LoopName, Mutation, for_sharers};
use crate::plan::Plan;
use crate::schedule::{Annotation, loop_dims};
use smallvec::SmallVec;

/// Inner loops with up to so many rounds are written out.
const UNROLL_ROUNDS: i64 = 16;

/// The plan with as many loops shared as can be, by `reorder` and `fuse` alone: each step, in turn, gets its loops in
/// the order of those of the step before it, as far as it has them, where it then shares more of them and folds
/// floats in the same order as before.
pub fn maximise_reuse(plan: &Plan) -> Plan {
    let mut plan = plan.clone();
    for at in 1..plan.schedule().steps.len() {
        let as_it_is = fused(&plan, at);
        let reordered = plan
            .mutate(&like_the_one_before(&plan, at))
            .ok()
            .filter(|changed| !changed.reassociates)
            .map(|changed| fused(&changed.plan, at));
        plan = match reordered {
            Some(reordered) if shared(&reordered, at) > shared(&as_it_is, at) => reordered,
            _ => as_it_is,
        };
    }
    plan
}

/// The plan with the step sharing all it can with the one before it.
fn fused(plan: &Plan, at: usize) -> Plan {
    let mut plan = plan.clone();
    let node = plan.schedule().steps[at].node;
    while let Ok(changed) = plan.mutate(&Mutation::Fuse { node }) {
        plan = changed.plan;
    }
    plan
}

/// How many loops a step shares with the one before it.
fn shared(plan: &Plan, at: usize) -> usize {
    let around = |at: usize| {
        let leaf = plan.tree().find(plan.schedule().steps[at].node);
        leaf.map(|leaf| plan.tree().ancestors(leaf))
            .unwrap_or_default()
    };
    let (own, before) = (around(at), around(at - 1));
    own.iter().zip(&before).take_while(|(a, b)| a == b).count()
}

/// The change that puts a step's loops in the order of the step before, what that does not have last.
fn like_the_one_before(plan: &Plan, at: usize) -> Mutation {
    let steps = &plan.schedule().steps;
    let (before, step) = (&steps[at - 1], &steps[at]);
    let mut order: SmallVec<[LoopName; 8]> = SmallVec::new();
    for spec in before.loops.iter().filter(|spec| step.loops.contains(spec)) {
        order.push((*spec).into());
    }
    let rest = step.loops.iter().map(|spec| LoopName::from(*spec));
    let rest: SmallVec<[LoopName; 8]> = rest.filter(|name| !order.contains(name)).collect();
    order.extend(rest);
    Mutation::Reorder {
        node: step.node,
        loops: order,
    }
}

/// The plan with the innermost loop of every step written out where that is short and the loop is a plain one; where
/// it is shared, for all that share it.
pub fn unroll_inner(plan: &Plan) -> Plan {
    let mut plan = plan.clone();
    for at in 0..plan.schedule().steps.len() {
        let step = &plan.schedule().steps[at];
        let Some(depth) = step.loops.len().checked_sub(1) else {
            continue;
        };
        let spec = step.loops[depth];
        let short = rounds(plan.graph(), step, depth).is_some_and(|n| n <= UNROLL_ROUNDS);
        let own = loop_dims(plan.graph(), step.node).contains(&spec.dim);
        if !short || !own || spec.annotation != Annotation::Serial {
            continue;
        }
        let mutation = Mutation::Annotate {
            node: step.node,
            name: spec.into(),
            annotation: Annotation::Unroll,
        };
        if let Some(changed) = for_all_sharers(&plan, &mutation) {
            plan = changed;
        }
    }
    plan
}

/// The plan with a change made to every step that shares the loop; `None` where one of them refuses it.
fn for_all_sharers(plan: &Plan, mutation: &Mutation) -> Option<Plan> {
    let mutations = for_sharers(plan.graph(), plan.schedule(), mutation).ok()?;
    let mut plan = plan.clone();
    for mutation in mutations {
        plan = plan.mutate(&mutation).ok()?.plan;
    }
    Some(plan)
}
