//! Moves of several mutations: other tiles for a step, in one go.
//!
//! A register tile is a dozen mutations, each of which alone makes the program slower. So the search has
//! moves that make the whole of it: the loops that a step should have are drawn at random from a shape that suits
//! machines with vector registers and caches, and the mutations that lead there are listed.

use crate::agent::Session;
use crate::features::StepView;
use crate::random::Generator;
use loopwright_graph::{Binding, DimId, NodeId};
use loopwright_looptree::{
    Annotation, LoopName, LoopSpec, Mutation, NodeSchedule, Plan, Target, carries, loop_dims,
};
use smallvec::SmallVec;

/// How many tiles a block for a cache is long: whole ones, so that tails do not multiply.
const TILES: [i64; 6] = [2, 4, 8, 16, 32, 64];

/// Blocks of a folded dimension.
const DEEP: [i64; 6] = [16, 32, 64, 128, 256, 512];

/// Rows of a register tile.
const ROWS: [i64; 9] = [1, 2, 3, 4, 5, 6, 8, 10, 12];

/// Vectors in a row of a register tile.
const VECTORS: [i64; 5] = [1, 2, 2, 3, 4];

type Loops = Vec<LoopSpec>;

fn spec(dim: DimId, step: i64, annotation: Annotation) -> LoopSpec {
    LoopSpec {
        dim,
        step,
        annotation,
    }
}

/// Gives a step of the session's plan other tiles, and has the steps that shared its loops follow. Gives
/// whether the plan changed.
pub(crate) fn retile(
    session: &mut Session,
    binding: &Binding,
    target: &Target,
    strict: bool,
    generator: &mut Generator,
) -> bool {
    let plan = session.plan().clone();
    let views = StepView::all(&plan, binding);
    // Where the work is, more often than not.
    let work = |view: &StepView<'_>| view.flops(0) + view.touched(0).iter().sum::<f64>();
    let total: f64 = views.iter().map(work).sum();
    let mut at = generator.below(1 << 20) as f64 / f64::from(1 << 20) * total;
    let chosen = views.iter().find(|view| {
        at -= work(view);
        at <= 0.0
    });
    let Some(view) = chosen.or(views.last()) else {
        return false;
    };
    let node = view.step.node;
    let loops = tiled(view, &plan, target, strict, generator);
    let sharers = sharers(&plan, node);
    let Some(mutations) = towards(view.step, &loops) else {
        return false;
    };
    if mutations.is_empty() || session.apply_all(&mutations).is_err() {
        return false;
    }
    if generator.chance(80) {
        for follower in sharers {
            // One that cannot follow keeps its own loops.
            follow(session, node, follower, view, target);
        }
    }
    true
}

/// Gives a step the loops of another as far as it has them.
fn follow(
    session: &mut Session,
    leader: NodeId,
    follower: NodeId,
    sizes: &StepView<'_>,
    target: &Target,
) {
    let plan = session.plan();
    let graph = plan.graph();
    let steps = || plan.schedule().steps.iter();
    let place = |node: NodeId| steps().position(|step| step.node == node);
    let (Some(leading), Some(step)) =
        (plan.schedule().step(leader), plan.schedule().step(follower))
    else {
        return;
    };
    // What comes after a sum needs all of it; what comes before is inside its loops.
    let before = place(follower) < place(leader);
    let open = |spec: &&LoopSpec| before || !carries(graph, leader, spec.dim);
    let loops: Loops = leading.loops.iter().take_while(open).copied().collect();
    let dims = loop_dims(graph, follower);
    let wanted = following(&loops, &dims, target, &|dim| sizes.size(dim));
    let mutations = towards(step, &wanted);
    // A copy lies as it is read: tile behind tile.
    let layout = step.layout.is_some().then(|| Mutation::Layout {
        node: follower,
        layout: tile_by_tile(leading, &graph.node(follower).dims),
    });
    if let Some(mutations) = mutations {
        let _ = session.apply_all(&mutations);
    }
    let _ = layout.map(|layout| session.apply(&layout));
}

/// The order in memory in which a step reads an array in tiles; `None` where it has none over its dimensions.
fn tile_by_tile(reader: &NodeSchedule, dims: &[DimId]) -> Option<SmallVec<[LoopName; 4]>> {
    let plain = |spec: &&LoopSpec| {
        matches!(spec.annotation, Annotation::Serial | Annotation::Parallel) && spec.step > 1
    };
    let tile = |dim: &DimId| {
        let mut loops = reader.loops.iter().filter(|spec| spec.dim == *dim);
        let inner = loops.clone().next_back()?;
        let gone = matches!(inner.annotation, Annotation::Unroll | Annotation::Vectorize);
        let tile = loops.rfind(plain).filter(|_| gone)?;
        Some(LoopName::from(*tile))
    };
    let tiled: Vec<LoopName> = dims.iter().filter_map(tile).collect();
    if tiled.is_empty() {
        return None;
    }
    let single = |dim: &DimId| LoopName { dim: *dim, step: 1 };
    let in_tiles = |dim: &&DimId| tiled.iter().any(|tile| tile.dim == **dim);
    let whole = dims.iter().filter(|dim| !in_tiles(dim)).map(single);
    let inside = dims.iter().filter(in_tiles).map(single);
    Some(tiled.iter().copied().chain(whole).chain(inside).collect())
}

/// Has a step of the session's plan read a copy of one of its inputs, made inside one of its outer loops.
/// Gives whether the plan changed.
pub(crate) fn pack(session: &mut Session, generator: &mut Generator) -> bool {
    let copies = session.actions().into_iter();
    let copies: Vec<Mutation> = copies
        .filter(|action| matches!(action, Mutation::Copy { .. }))
        .collect();
    let Some(copy) = generator.pick(&copies) else {
        return false;
    };
    let Mutation::Copy {
        node: reader, name, ..
    } = copy
    else {
        return false;
    };
    if session.apply(copy).is_err() {
        return false;
    }
    let plan = session.plan();
    let made = plan.graph().find(name);
    let (Some(made), Some(step)) = (made, plan.schedule().step(*reader)) else {
        return true;
    };
    let outer = step
        .loops
        .iter()
        .take_while(|spec| matches!(spec.annotation, Annotation::Serial | Annotation::Parallel));
    let outer: Vec<LoopName> = outer.map(|spec| LoopName::from(*spec)).collect();
    let at = generator.pick(&outer).map(|name| Mutation::ComputeAt {
        node: made,
        reader: *reader,
        name: *name,
    });
    // Where it cannot be, it stays before all loops.
    let _ = at.map(|at| session.apply(&at));
    if generator.chance(60)
        && let Some(reading) = session.plan().schedule().step(*reader)
    {
        let layout = tile_by_tile(reading, &session.plan().graph().node(made).dims);
        let _ = session.apply(&Mutation::Layout { node: made, layout });
    }
    let step = session.plan().schedule().step(made);
    let last = step
        .and_then(|step| step.loops.last())
        .filter(|last| last.step == 1);
    let vectors = last.map(|last| Mutation::Annotate {
        node: made,
        name: LoopName::from(*last),
        annotation: Annotation::Vectorize,
    });
    let _ = vectors.map(|vectors| session.apply(&vectors));
    true
}

/// The steps that share a loop with a step.
fn sharers(plan: &Plan, node: NodeId) -> Vec<NodeId> {
    let tree = plan.tree();
    let root = tree.find(node).map(|leaf| tree.root(leaf));
    let inside = root.map_or_else(Vec::new, |root| tree.leaves(root));
    inside.into_iter().filter(|other| *other != node).collect()
}

/// Loops for a step: blocks for caches, then a register tile around and inside the folded loops.
fn tiled(
    view: &StepView<'_>,
    plan: &Plan,
    target: &Target,
    strict: bool,
    generator: &mut Generator,
) -> Loops {
    let node = view.step.node;
    let graph = plan.graph();
    let dims = loop_dims(graph, node);
    let (folded, own): (Vec<DimId>, Vec<DimId>) = dims.iter().partition(|dim| view.carried(**dim));
    let width = graph.node(node).dtype.bytes().max(1) as i64;
    let lanes = (i64::from(target.vector_bytes) / width).max(1);
    let Some(vector) = own.last().copied() else {
        return folded.iter().map(|dim| LoopSpec::over(*dim)).collect();
    };
    let rest: Vec<DimId> = own[..own.len() - 1].to_vec();
    let row = generator.pick(&rest).copied();
    let lanes = match generator.below(10) {
        0 if lanes > 2 => lanes / 2,
        1 => lanes * 2,
        _ => lanes,
    };
    let across = *generator.pick(&VECTORS).unwrap_or(&1);
    let most = (i64::from(target.vector_registers.max(8)) / across).max(1);
    let rows: Vec<i64> = ROWS.into_iter().filter(|rows| *rows <= most).collect();
    let rows = row.map_or(1, |_| generator.pick(&rows).copied().unwrap_or(1));
    let wide = lanes * across;

    let mut outer: Loops = Vec::new();
    let mut block = |dim: DimId, sizes: [i64; 6], generator: &mut Generator| {
        let sizes = sizes.into_iter().filter(|size| *size < view.size(dim));
        let sizes: Vec<i64> = sizes.collect();
        if generator.chance(40)
            && let Some(step) = generator.pick(&sizes)
        {
            outer.push(spec(dim, *step, Annotation::Serial));
        }
    };
    block(vector, TILES.map(|tiles| tiles * wide), generator);
    if let Some(row) = row {
        block(row, TILES.map(|tiles| tiles * rows), generator);
    }
    if !strict {
        for dim in &folded {
            block(*dim, DEEP, generator);
        }
    }
    for dim in rest.iter().filter(|dim| Some(**dim) != row) {
        outer.push(LoopSpec::over(*dim));
    }
    shuffle(&mut outer, generator);
    let mut micro: Loops = Vec::new();
    if let Some(row) = row {
        micro.push(spec(row, rows, Annotation::Serial));
    }
    micro.push(spec(vector, wide, Annotation::Serial));
    shuffle(&mut micro, generator);
    outer.extend(micro);
    let mut inner: Loops = folded.iter().map(|dim| LoopSpec::over(*dim)).collect();
    if !strict && generator.chance(20) {
        shuffle(&mut inner, generator);
    }
    let deep = inner.last().copied().filter(|_| generator.chance(25));
    if let Some(last) = inner.last_mut().filter(|_| deep.is_some()) {
        last.step = if generator.chance(50) { 2 } else { 4 };
    }
    outer.extend(inner);
    outer.extend(deep.map(|deep| spec(deep.dim, 1, Annotation::Unroll)));
    outer.extend(row.map(|row| spec(row, 1, Annotation::Unroll)));
    outer.push(spec(vector, lanes, Annotation::Unroll));
    outer.push(spec(vector, 1, Annotation::Vectorize));
    if target.threads > 1
        && generator.chance(60)
        && let Some(first) = outer.iter_mut().find(|spec| !folded.contains(&spec.dim))
        && first.annotation == Annotation::Serial
    {
        first.annotation = Annotation::Parallel;
    }
    sensible(outer, &|dim| view.size(dim))
}

/// Loops for a step that follows another: those of the other as far as it has them, then its own.
fn following(
    leader: &[LoopSpec],
    dims: &[DimId],
    target: &Target,
    size: &dyn Fn(DimId) -> i64,
) -> Loops {
    let shared = leader.iter().take_while(|spec| {
        dims.contains(&spec.dim)
            && matches!(spec.annotation, Annotation::Serial | Annotation::Parallel)
    });
    let mut loops: Loops = shared.copied().collect();
    let lanes = i64::from(target.vector_bytes / 4).max(1);
    for (at, dim) in dims.iter().enumerate() {
        if loops.iter().any(|spec| spec.dim == *dim && spec.step == 1) {
            continue;
        }
        if at + 1 == dims.len() && lanes > 1 {
            loops.push(spec(*dim, lanes, Annotation::Serial));
            loops.push(spec(*dim, 1, Annotation::Vectorize));
        } else {
            loops.push(LoopSpec::over(*dim));
        }
    }
    sensible(loops, size)
}

/// The loops without those that would run once: a step that covers what is there, or that of the loop outside.
fn sensible(loops: Loops, size: &dyn Fn(DimId) -> i64) -> Loops {
    let mut kept: Loops = Vec::new();
    for spec in loops {
        let outer = kept.iter().rev().find(|outer| outer.dim == spec.dim);
        let covered = outer.map_or_else(|| size(spec.dim), |outer| outer.step);
        let needed = spec.step == 1 && outer.is_none_or(|outer| outer.step > 1);
        if spec.step < covered || needed {
            kept.push(spec);
        }
    }
    kept
}

/// The mutations that give a step these loops: everything merged, then split, put in order and annotated.
/// `None` where the loops do not run over the same dimensions.
fn towards(step: &NodeSchedule, loops: &[LoopSpec]) -> Option<Vec<Mutation>> {
    let node = step.node;
    if step.loops.as_slice() == loops {
        return Some(Vec::new());
    }
    let mut mutations = Vec::new();
    let annotate = |spec: &LoopSpec, annotation: Annotation| Mutation::Annotate {
        node,
        name: LoopName::from(*spec),
        annotation,
    };
    for spec in &step.loops {
        if spec.annotation != Annotation::Serial {
            mutations.push(annotate(spec, Annotation::Serial));
        }
    }
    let mut dims: Vec<DimId> = Vec::new();
    for spec in &step.loops {
        match dims.contains(&spec.dim) {
            false => dims.push(spec.dim),
            // The outermost is merged with one after the other, and takes its step.
            true => {
                let before = step.loops.iter().take_while(|other| *other != spec);
                let outer = before.filter(|other| other.dim == spec.dim).last()?;
                mutations.push(Mutation::Merge {
                    node,
                    name: LoopName::from(*outer),
                });
            }
        }
    }
    for dim in &dims {
        let mut wanted = loops.iter().filter(|spec| spec.dim == *dim).peekable();
        wanted.peek()?;
        for spec in wanted.filter(|spec| spec.step > 1) {
            mutations.push(Mutation::Split {
                node,
                name: LoopName { dim: *dim, step: 1 },
                factor: spec.step,
            });
        }
    }
    if loops.iter().any(|spec| !dims.contains(&spec.dim)) {
        return None;
    }
    let order: SmallVec<[LoopName; 8]> = loops.iter().map(|spec| LoopName::from(*spec)).collect();
    mutations.push(Mutation::Reorder { node, loops: order });
    for spec in loops
        .iter()
        .filter(|spec| spec.annotation != Annotation::Serial)
    {
        mutations.push(annotate(spec, spec.annotation));
    }
    Some(mutations)
}

fn shuffle<T>(things: &mut [T], generator: &mut Generator) {
    for at in (1..things.len()).rev() {
        things.swap(at, generator.below(at as u64 + 1) as usize);
    }
}
