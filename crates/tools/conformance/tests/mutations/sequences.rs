//! What is accepted keeps the values.

use crate::subject::Subject;
use crate::{KINDS, LENGTH, SEQUENCES, Tally, kind};
use loopwright_backend::{Backend, Precision};
use loopwright_conformance::Rng;
use loopwright_conformance::generate::{Arithmetic, random_mutation};
use loopwright_conformance::oracle::Oracle;
use loopwright_graph::{Graph, NodeOp};
use loopwright_interp::Interp;
use loopwright_looptree::{
    Annotation, Changed, Cursor, Edit, LoopName, LoopSpec, Mutation, NodeSchedule, Plan,
    for_sharers, loop_dims, parse_mutation, parse_schedule, print_mutation, reassociated,
};
use loopwright_text::Source;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// One sequence in so many is also lowered and interpreted, if it has only what is in every schedule.
const LOWERED: u64 = 8;

/// Of those with loops over other dimensions, layouts, copies or stages.
const LOWERED_PLACED: u64 = 2;

/// The largest step of a loop or a layout that is lowered.
const MAX_LOWERED_STEP: i64 = 1 << 8;

/// Sequences that may fail before the rest is given up.
const MAX_FAILURES: usize = 8;

/// One sequence in so many has all its legal changes tried.
const LISTED: u64 = 4;

/// Cursors stay at their loops and steps.
fn check_cursors(before: &Plan, changed: &Changed, mutation: &Mutation) {
    let (old, new) = (before.graph(), changed.plan.graph());
    for step in &before.schedule().steps {
        for depth in 0..=step.loops.len() {
            let node = step.node;
            let followed = changed.follow(Cursor { node, depth });
            let gone = match mutation {
                Mutation::Uncopy { node: copy } => *copy == node,
                _ => changed.plan.schedule().step(node).is_none(),
            };
            if gone {
                assert_eq!(followed, None, "{mutation:?}");
                continue;
            }
            let followed = followed.unwrap_or_else(|| panic!("{mutation:?} loses a cursor"));
            let after = changed.plan.schedule().step(followed.node);
            let after = after.unwrap_or_else(|| panic!("{mutation:?} leads a cursor nowhere"));
            assert_eq!(new.node(after.node).name, old.node(node).name);
            assert!(followed.depth <= after.loops.len(), "{mutation:?}");
            let dim = |graph: &Graph, step: &NodeSchedule, depth: usize| {
                let spec = step.loops.get(depth)?;
                Some(graph.dim(spec.dim).name.clone())
            };
            let led = dim(new, after, followed.depth);
            // A loop that is there no more leads to what was inside it.
            let kept = after.loops.iter().any(|spec| {
                let here = step.loops.get(depth);
                here.is_some_and(|here| here.dim == spec.dim && here.step == spec.step)
            });
            if depth == step.loops.len() || kept {
                let what = "leads a cursor to another dimension";
                assert_eq!(led, dim(old, step, depth), "{mutation:?} {what}");
            }
        }
    }
}

/// A change is what its text says.
fn check_text(graph: &Graph, mutation: &Mutation) {
    let text = print_mutation(graph, mutation);
    let nameless = matches!(mutation, Mutation::Delegate { backend, .. } if backend.is_empty());
    if !nameless {
        let read = parse_mutation(&Source::new("change", text.as_str()), graph);
        assert_eq!(read.as_ref(), Ok(mutation), "{text}");
    }
}

/// A whole schedule is what its text says.
fn check_schedule_text(plan: &Plan) {
    let text = plan.to_string();
    let read = parse_schedule(&Source::new("schedule", text.as_str()), plan.program());
    assert_eq!(read.as_ref(), Ok(plan.schedule()), "{text}");
}

/// A change that is listed as legal, every kind of change as likely as the others.
fn legal_mutation(rng: &mut Rng, plan: &Plan) -> Option<Mutation> {
    let mut by_kind: BTreeMap<&str, Vec<Mutation>> = BTreeMap::new();
    for mutation in plan.legal() {
        by_kind.entry(kind(&mutation)).or_default().push(mutation);
    }
    let kinds: Vec<Vec<Mutation>> = by_kind.into_values().collect();
    if kinds.is_empty() {
        return None;
    }
    let listed = rng.pick(&kinds);
    Some(rng.pick(listed).clone())
}

/// What a schedule has that places arrays and steps.
fn placed(plan: &Plan) -> Vec<&'static str> {
    let mut found = Vec::new();
    for edit in &plan.schedule().edits {
        found.push(match edit {
            Edit::Copy { .. } => "lowered copy",
            Edit::Pad { .. } => "lowered pad",
            Edit::Stage { .. } => "lowered stage",
        });
    }
    for step in &plan.schedule().steps {
        let own = loop_dims(plan.graph(), step.node);
        for spec in &step.loops {
            if !own.contains(&spec.dim) {
                found.push(match spec.annotation {
                    Annotation::Parallel => "lowered parallel foreign loop",
                    _ => "lowered foreign loop",
                });
            }
        }
        let Some(layout) = &step.layout else {
            continue;
        };
        found.push("lowered layout");
        let split = layout.iter().find(|name| name.step > 1);
        let lanes = step.loops.iter().find(|spec| {
            spec.annotation == Annotation::Vectorize && split.is_some_and(|s| s.dim == spec.dim)
        });
        if lanes.is_some() {
            found.push("lowered lanes on a split layout");
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Changes the schedule of a program, step by step, and compares its values after each.
fn check_sequence(seed: u64, oracle: &Oracle, accepted: &mut Tally) {
    let subject = Subject::new(seed);
    let mut rng = Rng::new(!seed);
    let mut plan = subject.first_plan();
    for _ in 0..rng.range(1, LENGTH) {
        let listed = match rng.chance(50) {
            true => legal_mutation(&mut rng, &plan),
            false => None,
        };
        let mutation = listed.unwrap_or_else(|| random_mutation(&mut rng, &plan));
        let Ok(changed) = plan.mutate(&mutation) else {
            continue;
        };
        accepted.count(kind(&mutation));
        check_text(plan.graph(), &mutation);
        check_schedule_text(&changed.plan);
        check_cursors(&plan, &changed, &mutation);
        let free = reassociated(changed.plan.graph(), changed.plan.schedule());
        let was_free = reassociated(plan.graph(), plan.schedule());
        let names = |graph: &Graph, nodes: &[loopwright_graph::NodeId]| {
            let mut names: Vec<String> = nodes.iter().map(|n| graph.node_name(*n)).collect();
            names.sort();
            names
        };
        // Removing a copy counts the nodes behind it anew, so that those without a name have another.
        let recounted = matches!(mutation, Mutation::Uncopy { .. });
        assert!(
            changed.reassociates
                || recounted && free.len() == was_free.len()
                || names(changed.plan.graph(), &free) == names(plan.graph(), &was_free),
            "seed {seed} does not say that it reassociates: {}",
            subject.describe(&plan, &mutation)
        );
        let ran = subject.run(changed.plan.graph(), changed.plan.tree(), &free);
        if let Err(message) = ran {
            let what = subject.describe(&plan, &mutation);
            panic!("seed {seed}: {message}\n{what}");
        }
        plan = changed.plan;
    }
    lower(seed, oracle, &subject, &plan, accepted);
}

/// Takes a plan the whole way through lowering, if the sample has it.
fn lower(seed: u64, oracle: &Oracle, subject: &Subject, plan: &Plan, accepted: &mut Tally) {
    let placed = placed(plan);
    let sample = match placed.is_empty() {
        true => LOWERED,
        false => LOWERED_PLACED,
    };
    let steps = plan.schedule().steps.iter();
    let own = steps.clone().all(|step| step.delegate.is_none());
    // Lowered code holds whole blocks, also of what is smaller in this run.
    let mut loops = steps.clone().flat_map(|step| &step.loops);
    let mut places = steps.flat_map(|step| step.layout.iter().flatten());
    let small = loops.all(|spec| spec.step <= MAX_LOWERED_STEP)
        && places.all(|name| name.step <= MAX_LOWERED_STEP);
    if !seed.is_multiple_of(sample) || !own || !small {
        return;
    }
    accepted.count("lowered");
    for what in placed {
        accepted.count(what);
    }
    let in_order = reassociated(plan.graph(), plan.schedule()).is_empty();
    let arithmetic = match subject.case.arithmetic {
        Arithmetic::Strict if !in_order => Arithmetic::Rounded {
            strict: true,
            math: Precision::Accurate,
        },
        arithmetic => arithmetic,
    };
    let case = subject.case_with(plan.schedule().clone(), arithmetic);
    if let Err(mismatch) = oracle.check(&case) {
        panic!(
            "seed {seed}: {mismatch}\n{plan}\n{}",
            loopwright_graph::print(plan.program())
        );
    }
}

fn check_sequences(seeds: Range<u64>) {
    let oracle = Oracle::new(Backend::kernel_backend(Interp));
    let mut accepted = Tally::default();
    let mut failures = 0;
    for seed in seeds {
        // The first few say more than one.
        let checked = catch_unwind(AssertUnwindSafe(|| {
            check_sequence(seed, &oracle, &mut accepted);
        }));
        failures += usize::from(checked.is_err());
        assert!(failures < MAX_FAILURES, "{failures} sequences fail");
    }
    assert_eq!(failures, 0, "sequences fail");
    println!("accepted: {:?}", accepted.0);
    let lowered = [
        "lowered",
        "lowered copy",
        "lowered pad",
        "lowered stage",
        "lowered foreign loop",
        "lowered layout",
    ];
    for what in KINDS.into_iter().chain(lowered) {
        let times = accepted.of(what);
        assert!(times >= 60, "`{what}` was accepted {times} times");
    }
}

#[test]
fn accepted_changes_keep_the_values() {
    check_sequences(0..SEQUENCES);
}

/// A hundred thousand: `cargo test --release -p loopwright-conformance --test mutations -- --ignored`.
#[test]
#[ignore = "takes minutes"]
fn many_accepted_changes_keep_the_values() {
    check_sequences(1_000_000..1_100_000);
}

/// The plan with a change made for every step that shares the loop, if all of them take it.
fn for_all_sharers(plan: &Plan, mutation: &Mutation) -> Option<Plan> {
    let mut plan = plan.clone();
    for mutation in for_sharers(plan.graph(), plan.schedule(), mutation).ok()? {
        plan = plan.mutate(&mutation).ok()?.plan;
    }
    Some(plan)
}

/// A plan in which some step is computed inside a loop of its reader that it does not have, with the loop parallel.
fn with_parallel_foreign_loop(rng: &mut Rng, plan: &Plan) -> Option<Plan> {
    let places = plan
        .legal()
        .into_iter()
        .filter(|mutation| matches!(mutation, Mutation::ComputeAt { .. }));
    let mut places: Vec<Mutation> = places.collect();
    rng.shuffle(&mut places);
    places.iter().find_map(|mutation| {
        let plan = plan.mutate(mutation).ok()?.plan;
        let step = plan.schedule().step(mutation.node())?;
        let own = loop_dims(plan.graph(), step.node);
        let foreign = step.loops.iter().filter(|spec| !own.contains(&spec.dim));
        let foreign: Vec<LoopSpec> = foreign.copied().collect();
        foreign.iter().find_map(|spec| {
            for_all_sharers(
                &plan,
                &Mutation::Annotate {
                    node: step.node,
                    name: (*spec).into(),
                    annotation: Annotation::Parallel,
                },
            )
        })
    })
}

/// A plan in which some step lies in pieces of a dimension, and it or its reader is computed in lanes along that.
fn with_lanes_on_pieces(rng: &mut Rng, plan: &Plan) -> Option<Plan> {
    let step = rng.pick(&plan.schedule().steps).clone();
    let dims = plan.graph().node(step.node).dims.clone();
    if dims.is_empty() {
        return None;
    }
    let dim = *rng.pick(&dims);
    let piece = *rng.pick(&[2, 3, 4, 5, 8]);
    let mut layout: SmallVec<[LoopName; 4]> = SmallVec::new();
    layout.push(LoopName { dim, step: piece });
    let others = dims.iter().filter(|other| **other != dim);
    layout.extend(others.map(|other| LoopName {
        dim: *other,
        step: 1,
    }));
    layout.insert(1 + rng.below(layout.len()), LoopName { dim, step: 1 });
    let layout = Mutation::Layout {
        node: step.node,
        layout: Some(layout),
    };
    let mut plan = plan.mutate(&layout).ok()?.plan;
    let nodes: Vec<_> = plan.schedule().steps.iter().map(|step| step.node).collect();
    for node in nodes {
        let factor = match rng.chance(70) {
            true => piece,
            false => *rng.pick(&[2, 4, 6]),
        };
        let name = LoopName { dim, step: 1 };
        let split = Mutation::Split { node, name, factor };
        if let Ok(changed) = plan.mutate(&split) {
            plan = changed.plan;
        }
        let lanes = Mutation::Annotate {
            node,
            name,
            annotation: Annotation::Vectorize,
        };
        if let Ok(changed) = plan.mutate(&lanes) {
            plan = changed.plan;
        }
    }
    Some(plan)
}

/// What sequences of random changes come by too seldom: threads and lanes over memory that is placed by hand.
#[test]
fn threads_and_lanes_over_placed_memory_keep_the_values() {
    let oracle = Oracle::new(Backend::kernel_backend(Interp));
    let mut lowered = Tally::default();
    let mut failures = 0;
    for seed in 0..SEQUENCES {
        let subject = Subject::new(seed);
        let mut rng = Rng::new(seed ^ 0x1a5e5);
        let plan = subject.first_plan();
        let placed = match seed % 2 {
            0 => with_parallel_foreign_loop(&mut rng, &plan),
            _ => with_lanes_on_pieces(&mut rng, &plan),
        };
        let Some(plan) = placed else {
            continue;
        };
        let checked = catch_unwind(AssertUnwindSafe(|| {
            let free = reassociated(plan.graph(), plan.schedule());
            let ran = subject.run(plan.graph(), plan.tree(), &free);
            assert_eq!(ran, Ok(()), "seed {seed}\n{plan}");
            lower(0, &oracle, &subject, &plan, &mut lowered);
        }));
        failures += usize::from(checked.is_err());
        assert!(failures < MAX_FAILURES, "{failures} plans fail");
    }
    assert_eq!(failures, 0, "plans fail");
    println!("lowered: {:?}", lowered.0);
    for what in [
        "lowered parallel foreign loop",
        "lowered lanes on a split layout",
    ] {
        let times = lowered.of(what);
        assert!(times >= 200, "`{what}` came up {times} times");
    }
}

/// The changes of whole steps that may be listed, legal or not.
fn step_mutations(plan: &Plan) -> Vec<Mutation> {
    let (graph, schedule) = (plan.graph(), plan.schedule());
    let mut mutations = Vec::new();
    for step in &schedule.steps {
        let node = step.node;
        mutations.push(Mutation::Fuse { node });
        mutations.push(Mutation::Unfuse { node });
        mutations.push(Mutation::Undelegate { node });
        let own = loop_dims(graph, node);
        let foreign = step.loops.iter().filter(|spec| !own.contains(&spec.dim));
        mutations.extend(foreign.map(|spec| Mutation::RemoveLoop {
            node,
            name: (*spec).into(),
        }));
    }
    for pair in schedule.steps.windows(2) {
        mutations.push(Mutation::MoveBefore {
            node: pair[1].node,
            other: pair[0].node,
        });
    }
    for edit in &schedule.edits {
        if let Edit::Copy { name, .. } = edit
            && let Some(node) = graph.find(name)
        {
            mutations.push(Mutation::Uncopy { node });
        }
    }
    let stored = graph.node_ids().filter(|node| {
        let op = &graph.node(*node).op;
        !matches!(op, NodeOp::Constant(_) | NodeOp::Size(_))
    });
    mutations.extend(stored.map(|node| Mutation::Store { node, loops: None }));
    mutations
}

#[test]
fn what_is_listed_as_legal_is_what_is_accepted() {
    for seed in (0..SEQUENCES).step_by(LISTED as usize) {
        let subject = Subject::new(seed);
        let plan = subject.first_plan();
        let listed = plan.legal();
        for mutation in &listed {
            if let Err(error) = plan.mutate(mutation) {
                let what = subject.describe(&plan, mutation);
                panic!("seed {seed}: {error}\n{what}");
            }
        }
        for mutation in step_mutations(&plan) {
            let accepted = plan.mutate(&mutation).is_ok();
            assert_eq!(
                accepted,
                listed.contains(&mutation),
                "seed {seed}: {}",
                subject.describe(&plan, &mutation)
            );
        }
    }
}
