//! How long a core takes where everything lies in its first-level cache.

use super::movement::{Along, Movement};
use super::nest::{Around, Chain, Form};
use super::operations::{Work, combine_latency, division_cycles, folds_in_any_order};
use loopwright_graph::{Graph, NodeId, NodeOp};
use loopwright_looptree::Target;

/// Cycles from a store to a load of the same place.
const FORWARDING: f64 = 5.0;

/// Instructions that a core looks ahead: chains of dependent instructions shorter than this overlap.
const LOOK_AHEAD: f64 = 256.0;

/// Cycles to set up a loop and to leave it; longer loops end unforeseen.
const ENTER_LOOP: f64 = 3.0;
const ENTER_LONG_LOOP: f64 = 12.0;
const LONG_LOOP: f64 = 32.0;

/// Cycles to set up a loop that a compiler makes vectors of; a few of them are written out.
const ENTER_COMPILERS_LOOP: f64 = 12.0;
const FEW_VECTORS: f64 = 4.0;

/// Cycles of a branch that is guessed wrong.
const WRONG_GUESS: f64 = 15.0;

/// What a core's units take, in cycles of one thread.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Core {
    /// Innermost iterations.
    pub(super) iterations: f64,
    pub(super) arithmetic: f64,
    /// Loads and stores.
    pub(super) l1: f64,
    /// Waiting for results.
    pub(super) latency: f64,
    /// Instructions of all kinds.
    pub(super) issue: f64,
    /// Entering and leaving loops.
    pub(super) overhead: f64,
    /// Bytes loaded and stored.
    pub(super) bytes: f64,
    /// Elements that one instruction computes.
    pub(super) lanes: f64,
    /// Running values in registers.
    pub(super) accumulators: f64,
    /// Running values that do not fit there.
    pub(super) spilled: f64,
    /// An array that is read lane by lane.
    pub(super) scattered: Option<NodeId>,
}

/// Swaps the two innermost loops of a step where a C compiler does so: plain loops over whole dimensions
/// with nothing else inside, the inner of which jumps through more arrays than the outer would. GCC 12 does it
/// for maps, and for folds whose running value is a single one.
pub(super) fn compilers_swap(
    chain: &mut Chain,
    work: &Work,
    movements: &[Movement],
    target: &Target,
    alone: &dyn Fn(&Around) -> bool,
) {
    if !target.c_compiler || work.guards > 0.0 || work.calls > 0.0 {
        return;
    }
    let mut loops = (0..chain.len()).rev().filter(|at| chain[*at].is_loop());
    let (Some(inner), Some(outer)) = (loops.next(), loops.next()) else {
        return;
    };
    let plain = |at: usize| {
        let around = &chain[at];
        let whole = chain.iter().filter(|other| other.dim == around.dim);
        around.form == Form::Loop && alone(around) && whole.count() == 1
    };
    let lanes = chain.iter().any(|around| around.form == Form::Lanes);
    let folds_elsewhere = chain
        .iter()
        .enumerate()
        .any(|(at, around)| around.carried && at != inner);
    let jumps = |at: usize| {
        let along = movements
            .iter()
            .filter(|movement| movement.along(chain[at].dim) == Along::Elsewhere);
        along.count()
    };
    if plain(inner) && plain(outer) && !lanes && !folds_elsewhere && jumps(outer) < jumps(inner) {
        chain.swap(inner, outer);
    }
}

/// Finds the vectors that a C compiler makes of a plain innermost loop, and writes them into the chain.
/// Gives the left-over rounds of one execution.
pub(super) fn compilers_vectors(
    graph: &Graph,
    node: NodeId,
    chain: &mut Chain,
    work: &Work,
    movements: &[Movement],
    target: &Target,
) -> Option<f64> {
    let width = width_of(graph, node, movements);
    let lanes = (f64::from(target.vector_bytes) / width).floor();
    let at = chain.iter().rposition(Around::is_loop)?;
    let inner = chain[at];
    let elementwise = !matches!(
        graph.node(node).op,
        NodeOp::Scan { .. }
            | NodeOp::ArgReduce { .. }
            | NodeOp::Sort { .. }
            | NodeOp::ArgSort { .. }
            | NodeOp::Scatter { .. }
    );
    let fits = target.c_compiler
        && lanes > 1.0
        && inner.form == Form::Loop
        && inner.rounds >= lanes
        && elementwise
        && work.guards == 0.0
        && work.calls == 0.0
        && (!inner.carried || folds_in_any_order(graph, node))
        && !chain.iter().any(|around| around.form == Form::Lanes)
        && !chain[at + 1..].iter().any(|around| around.dim == inner.dim)
        && movements
            .iter()
            .all(|movement| movement.along(inner.dim) != Along::Elsewhere);
    if !fits {
        return None;
    }
    let vectors = (inner.rounds / lanes).floor();
    let left = inner.rounds - vectors * lanes;
    chain[at].rounds = inner.rounds / lanes;
    chain.push(Around {
        place: None,
        rounds: lanes,
        form: Form::Lanes,
        ..inner
    });
    Some(left)
}

/// Bytes of the widest element that a step computes with: what decides how many lanes a vector has.
fn width_of(graph: &Graph, node: NodeId, movements: &[Movement]) -> f64 {
    let own = graph.node(node).dtype.bytes() as f64;
    let widths = movements.iter().map(|movement| movement.width);
    widths.fold(own, f64::max)
}

/// Vector instructions for so many lanes: what is left over takes narrower ones.
fn instructions_for(lanes: f64, width: f64, vector_bytes: f64) -> f64 {
    let mut left = lanes.round().max(1.0) as u64;
    let mut count = 0.0;
    while left > 0 {
        let piece = 1u64 << left.ilog2();
        count += (piece as f64 * width / vector_bytes.max(width)).max(1.0);
        left -= piece;
    }
    count
}

/// Whether a fold's running values are in memory: a loop inside the innermost one that folds goes through
/// them.
fn in_memory(chain: &Chain, folding: usize) -> bool {
    let mut inside = chain[folding + 1..].iter();
    inside.any(|around| around.is_loop() && !around.carried)
}

/// Whether a step keeps running values in memory.
pub(super) fn folds_in_memory(chain: &Chain) -> bool {
    let folding = chain.iter().rposition(|around| around.carried);
    folding.is_some_and(|folding| in_memory(chain, folding))
}

/// What the core does for a step inside its chain of loops. `entered` loops are not the step's own: it
/// shares them with the one before, which pays for them. `left` is what [`compilers_vectors`] gave.
pub(super) fn core_cycles(
    graph: &Graph,
    node: NodeId,
    chain: &Chain,
    work: &Work,
    (movements, running): (&[Movement], Option<&Movement>),
    target: &Target,
    (entered, left): (usize, Option<f64>),
) -> Core {
    let vector_bytes = f64::from(target.vector_bytes);
    let per_cycle = |units: u32| f64::from(units.max(1));
    let width = width_of(graph, node, movements);
    let lanes_at = chain.iter().find(|around| around.form == Form::Lanes);
    let lanes = lanes_at.map_or(1.0, |around| around.rounds);
    // How many instructions stand for one element of all lanes.
    // Lanes are made in powers of two.
    let widest = f64::from(1u32 << (lanes.max(1.0) as u32).ilog2()) * width;
    let through_memory = target.c_compiler && widest > vector_bytes.max(width);
    let copies_of = |width: f64| match lanes_at {
        Some(_) if through_memory => lanes,
        Some(_) => instructions_for(lanes, width, vector_bytes),
        None => 1.0,
    };
    let vectors = copies_of(width);
    let product = |picked: &dyn Fn(usize, &Around) -> bool| -> f64 {
        let picked = chain.iter().enumerate().filter(|(at, a)| picked(*at, a));
        picked.map(|(_, around)| around.rounds).product()
    };
    let iterations = product(&|_, _| true);
    let bodies = product(&|_, around| around.form != Form::Lanes);
    let mut core = Core {
        iterations,
        lanes: lanes / vectors,
        ..Core::default()
    };

    // Arithmetic.
    let instructions = bodies * vectors * work.instructions;
    let one_vector = if lanes_at.is_some() {
        lanes / vectors * width
    } else {
        8.0
    };
    core.arithmetic = instructions / per_cycle(target.fma_per_cycle)
        + bodies * vectors * work.divisions * division_cycles(one_vector)
        + iterations * work.calls;
    if matches!(
        graph.node(node).op,
        NodeOp::Sort { .. } | NodeOp::ArgSort { .. }
    ) {
        // Merging: half of the comparisons are guessed wrong.
        let length = chain.last().map_or(1.0, |around| around.rounds);
        core.arithmetic += iterations * length.max(2.0).log2() * (4.0 + WRONG_GUESS / 2.0);
    }

    // Loads and stores. What does not move with the innermost loops is loaded outside of them.
    let (mut loads, mut stores) = (0.0, 0.0);
    let innermost_loop = chain.iter().rposition(Around::is_loop);
    let mut charge = |movement: &Movement, loaded: f64, stored: f64, core: &mut Core| {
        let kept = loaded == 0.0 || stored == 0.0;
        let at = chain
            .iter()
            .rposition(|around| around.is_loop() && (!kept || movement.moves_with(around.dim)));
        let times = product(&|position, around| match around.form {
            Form::Lanes => false,
            _ if at.is_some_and(|at| position <= at) => true,
            Form::Copies => movement.moves_with(around.dim),
            Form::Loop | Form::Threads => false,
        });
        let (each, elements) = match lanes_at.map(|around| movement.along(around.dim)) {
            None | Some(Along::Still) => (1.0, 1.0),
            Some(Along::Next) if !movement.guarded => (copies_of(movement.width), lanes),
            Some(Along::Next | Along::Elsewhere) => {
                core.scattered = core.scattered.or(Some(movement.node));
                // Each lane is loaded on its own and put in its place.
                core.arithmetic += times * lanes * loaded / per_cycle(target.fma_per_cycle);
                (lanes, lanes)
            }
        };
        loads += times * each * loaded;
        stores += times * each * stored;
        core.bytes += times * elements * movement.width * (loaded + stored);
    };
    let folds = chain.iter().rposition(|around| around.carried);
    let scan = matches!(graph.node(node).op, NodeOp::Scan { .. });
    for movement in movements {
        // A fold's result is written after its loops.
        let stored = f64::from(u8::from(movement.writes && (folds.is_none() || scan)));
        if movement.reads > 0.0 || stored > 0.0 {
            charge(movement, movement.reads, stored, &mut core);
        }
    }

    // Running values: in registers, if nothing but copies and lanes is inside the loop that folds.
    if let Some(folding) = folds {
        let latency = combine_latency(graph, node, f64::from(target.fma_latency));
        let in_memory = in_memory(chain, folding) || through_memory;
        let outermost = chain.iter().position(|around| around.carried).unwrap_or(0);
        let results = product(&|at, around| at < outermost || !around.carried);
        let result_vectors = results / lanes * vectors;
        let fold_ops = product(&|at, a| at >= outermost && a.form != Form::Lanes)
            * vectors
            * (work.instructions + 2.0);
        let overlap = (fold_ops / LOOK_AHEAD).min(1.0);
        if in_memory {
            if let Some(running) = running {
                charge(running, 1.0, 1.0, &mut core);
            }
            core.latency = product(&|at, _| at <= folding) * (latency + FORWARDING) * overlap;
        } else {
            let sequential = |at: usize, around: &Around| match around.form {
                Form::Lanes => false,
                Form::Copies => around.carried || innermost_loop.is_some_and(|r| at < r),
                Form::Loop | Form::Threads => true,
            };
            core.latency = product(&sequential) * latency * overlap;
            let tile = product(&|at, around| {
                around.form == Form::Copies
                    && !around.carried
                    && innermost_loop.is_none_or(|r| at > r)
            });
            core.accumulators = tile * vectors;
            let registers = if lanes_at.is_some() {
                f64::from(target.vector_registers)
            } else {
                f64::from(target.vector_registers.max(16))
            };
            // A vector of an operand and something to spread over the lanes.
            core.spilled = (core.accumulators + vectors + 1.0 - registers).max(0.0);
            let spills = product(&sequential) * core.spilled;
            loads += spills;
            stores += spills;
        }
        // Before the loops the values are set, after them they are stored.
        let copied = in_memory && running.is_some_and(|running| running.private);
        stores += result_vectors * if copied { 3.0 } else { 1.0 };
        core.bytes += results * width;
    }
    let loading = loads / per_cycle(target.loads_per_cycle);
    let storing = stores / per_cycle(target.stores_per_cycle);
    core.l1 = loading.max(storing);

    // Loops.
    let mut rounds = 0.0;
    let mut executions = 1.0;
    let last = innermost_loop;
    for (at, around) in chain.iter().enumerate() {
        if around.is_loop() && at >= entered {
            rounds += executions * around.rounds;
            core.overhead += executions
                * if left.is_some() && Some(at) == last && around.rounds > FEW_VECTORS {
                    ENTER_COMPILERS_LOOP
                } else if around.rounds > LONG_LOOP {
                    ENTER_LONG_LOOP
                } else {
                    ENTER_LOOP
                };
        }
        if around.form != Form::Lanes {
            executions *= around.rounds;
        }
        if let (Some(left), true) = (left, Some(at) == last) {
            // In narrower vectors.
            let times = executions / around.rounds.max(1.0);
            let rest = if left >= 1.0 {
                instructions_for(left, width, vector_bytes)
            } else {
                0.0
            };
            core.overhead += times * rest * work.instructions.max(1.0);
        }
    }
    core.overhead += iterations * work.guards;
    let all = instructions + loads + stores + 2.0 * rounds + 2.0 * iterations * work.guards;
    core.issue = all / per_cycle(target.issues_per_cycle);
    core
}
