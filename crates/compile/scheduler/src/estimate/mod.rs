//! The cost model: how long a schedule will take, without running it.
//!
//! A step's time is that of what holds it up most: the core's units, or the bytes that each level of memory
//! has to bring. Both follow from the loops around the step:
//!
//! - `nest.rs`: how often every loop runs, tails included, and whether it becomes a loop, copies, lanes of
//!   vectors or threads.
//! - `operations.rs`: the work for one element, with everything that is computed inline.
//! - `movement.rs`: how each array that is read or written moves with the loops, and how many cache lines
//!   it covers while some of them run.
//! - `body.rs`: what the core's units take: arithmetic, loads and stores, waiting for running values,
//!   entering loops.
//!
//! Traffic is the classic analysis of reuse. A loop's rounds share what they have in common if everything
//! that one round touches fits into a cache; so each array is brought once for every execution of the
//! outermost loop of which that is true. What another step touched before is there if what was touched since
//! then fits. A program is thought of as run again and again: if all it touches fits, nothing comes
//! from further away.
//!
//! The model is for choosing between schedules. It does not know of alignment, of pages, or of what else the
//! machine does.

mod body;
mod movement;
mod nest;
mod operations;
mod reason;
mod traffic;

use body::{compilers_swap, compilers_vectors, core_cycles, folds_in_memory};
use loopwright_arena::{TiSlice, TiVec};
use loopwright_graph::{DimId, Graph, NodeId, NodeOp, SymbolInfo};
use loopwright_looptree::Schedule;
use loopwright_looptree::ScheduleError;
use loopwright_looptree::Target;
use loopwright_looptree::Visit;
use loopwright_looptree::{Allocation, allocations};
use loopwright_looptree::{LoopTree, TreeRef};
use loopwright_symbolic::Symbol;
use movement::{Footprint, Movement, Mover};
use nest::{Around, Chain, Form, Nests};
use operations::{Work, work_of};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use traffic::{Moved, Traffic};

/// A size that nobody says and that has no default counts as this.
pub const TYPICAL_SIZE: i64 = 512;

/// Cycles that it takes to go on elsewhere in L2, L3 and memory: nobody has fetched it ahead. Measured with
/// tiles of a transpose and with sums of columns.
const JUMP: [f64; 3] = [0.0, 5.0, 30.0];

/// More cores than this do not get more from memory.
const CORES_FOR_MEMORY: f64 = 4.0;

/// How long a program takes with a schedule.
#[derive(Clone, PartialEq, Debug)]
pub struct Estimate {
    /// All steps together.
    pub seconds: f64,
    /// The steps, in the schedule's order.
    pub steps: Vec<StepEstimate>,
}

/// How long one step takes.
#[derive(Clone, PartialEq, Debug)]
pub struct StepEstimate {
    /// The step.
    pub node: NodeId,
    /// Arithmetic operations, as the op table counts them, of the step and what is computed inline in it.
    pub flops: f64,
    /// Bytes that move between the core and L1, L1 and L2, L2 and L3, L3 and memory. From L2 on they are
    /// whole cache lines, and what is written counts twice: it is fetched and written back.
    pub bytes: [f64; 4],
    /// How long it takes.
    pub seconds: f64,
    /// What takes the most of it.
    pub bound: BoundBy,
    /// Elements that one instruction computes.
    lanes: f64,
    /// Running values in registers, and those that do not fit there.
    accumulators: f64,
    spilled: f64,
    /// An array that is read lane by lane.
    scattered: Option<NodeId>,
    /// The array that moves the most bytes from the level that holds the step up.
    mover: Option<NodeId>,
}

/// What holds a step up.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BoundBy {
    /// The arithmetic units.
    Arithmetic,
    /// Loads and stores.
    L1,
    /// Bytes from the second-level cache.
    L2,
    /// Bytes from the last cache.
    L3,
    /// Bytes from memory.
    Memory,
    /// Running values that wait for the one before.
    Latency,
    /// Starting loops and threads.
    Overhead,
}

/// A step with what is known of it before the traffic is.
struct Analysed {
    node: NodeId,
    chain: Chain,
    work: Work,
    movements: SmallVec<[Movement; 4]>,
    /// For each movement, for each loop of the chain and for one round of the innermost.
    footprints: SmallVec<[SmallVec<[Footprint; 9]>; 4]>,
    root: TreeRef,
    /// How many of the loops the result is written in: a fold's running values are elsewhere.
    written_in: usize,
    /// The running values, where the step folds.
    running: Option<Movement>,
}

/// What the units of a machine have to do, in cycles of one thread.
#[derive(Clone, Copy, Default)]
struct Pressure {
    arithmetic: f64,
    issue: f64,
    l1: f64,
    latency: f64,
    beyond: [f64; 3],
}

impl Pressure {
    /// Both, in one loop: units add up, waiting does not.
    fn with(self, other: Pressure) -> Pressure {
        Pressure {
            arithmetic: self.arithmetic + other.arithmetic,
            issue: self.issue + other.issue,
            l1: self.l1 + other.l1,
            latency: self.latency.max(other.latency),
            beyond: std::array::from_fn(|level| self.beyond[level] + other.beyond[level]),
        }
    }

    /// What takes the longest on several cores, and how long.
    fn most(&self, speedup: f64) -> (BoundBy, f64) {
        let [l2, l3, memory] = self.beyond;
        let units = [
            (
                BoundBy::Arithmetic,
                self.arithmetic.max(self.issue) / speedup,
            ),
            (BoundBy::L1, self.l1 / speedup),
            (BoundBy::Latency, self.latency / speedup),
            (BoundBy::L2, l2 / speedup),
            (BoundBy::L3, l3 / speedup),
            (BoundBy::Memory, memory / speedup.min(CORES_FOR_MEMORY)),
        ];
        let first = (BoundBy::Arithmetic, 0.0);
        let longer = |best: (BoundBy, f64), next: (BoundBy, f64)| {
            if next.1 > best.1 { next } else { best }
        };
        units.into_iter().fold(first, longer)
    }
}

/// How long a program takes on a target. `sizes` says the values of symbols; one without a value has its
/// default, or counts as [`TYPICAL_SIZE`].
///
/// ```
/// # use loopwright_graph::parse;
/// # use loopwright_looptree::{LoopTree, Target, parse_schedule};
/// # use loopwright_scheduler::{BoundBy, estimate};
/// # use loopwright_text::Source;
/// let program = "loopwright program 1
/// input x: f32[i=1000, j=1000]
/// output s = sum[j](x)
/// ";
/// let graph = parse(&Source::new("sums.lw", program)).unwrap().with_stores();
/// let text = "loopwright schedule 1\ns: i, j\n";
/// let schedule = parse_schedule(&Source::new("sums.sched", text), &graph).unwrap();
/// let tree = LoopTree::new(&graph, &schedule).unwrap();
/// let found = estimate(&graph, &schedule, &tree, &Target::SCALAR, &|_| None).unwrap();
/// assert_eq!(found.steps[0].flops, 1e6);
/// assert_eq!(found.steps[0].bound, BoundBy::Latency);
/// assert_eq!(
///     found.steps[0].reason(&graph),
///     "1 MFLOP at 748 MFLOP/s: each running value waits for the one before"
/// );
/// ```
pub fn estimate(
    graph: &Graph,
    schedule: &Schedule,
    tree: &LoopTree,
    target: &Target,
    sizes: &dyn Fn(Symbol) -> Option<i64>,
) -> Result<Estimate, ScheduleError> {
    let value = |symbol: Symbol| match graph.symbol(symbol) {
        SymbolInfo::Size { default, .. } => {
            Some(sizes(symbol).or(*default).unwrap_or(TYPICAL_SIZE))
        }
        SymbolInfo::Static { default, .. } => Some(sizes(symbol).or(*default).unwrap_or(0)),
        SymbolInfo::Index(_) => Some(0),
    };
    let mut dims = TiVec::with_capacity(graph.dims().len());
    for dim in graph.dims() {
        let size = match dim.size.as_const() {
            Some(size) => size,
            None => dim
                .size
                .evaluate(&value)
                .map_err(|error| ScheduleError::symbolic(graph, &error))?,
        };
        dims.push(size.max(0));
    }
    let model = Model {
        graph,
        schedule,
        tree,
        target,
        mover: Mover {
            graph,
            sizes: &dims,
            values: &value,
            // Sixteen ways, and a power of two bytes in each.
            l2_way: 1 << i64::from(target.l2_bytes / 16).max(4096).ilog2(),
        },
    };
    model.run(&dims)
}

struct Model<'a> {
    graph: &'a Graph,
    schedule: &'a Schedule,
    tree: &'a LoopTree,
    target: &'a Target,
    mover: Mover<'a>,
}

impl Model<'_> {
    fn run(&self, dims: &TiSlice<DimId, i64>) -> Result<Estimate, ScheduleError> {
        let (graph, tree) = (self.graph, self.tree);
        let held = allocations(graph, self.schedule, tree)?;
        let nests = Nests::new(graph, tree, dims);
        let leaves = tree.leaf_places();
        let scheduled: FxHashSet<NodeId> =
            self.schedule.steps.iter().map(|step| step.node).collect();
        let mut steps = Vec::with_capacity(self.schedule.steps.len());
        for step in &self.schedule.steps {
            let node = step.node;
            // Whoever derived the tree from the schedule gave every step a leaf.
            let Some(leaf) = leaves.get(&node).copied() else {
                continue;
            };
            let (work, movements) = self.movements(node, &scheduled, &held)?;
            let mut chain = nests.around(graph, tree, leaf, node, dims);
            let alone = |around: &Around| {
                let place = around.place;
                place.is_some_and(|place| nests.steps_inside(place) == 1)
            };
            compilers_swap(&mut chain, &work, &movements, self.target, &alone);
            steps.push(self.analysed(node, leaf, chain, work, movements));
        }
        let mut traffic = Traffic::new(self.target, tree, &nests, &steps);
        let mut found = Vec::with_capacity(steps.len());
        let mut before: &[Around] = &[];
        let mut pressure = Pressure::default();
        for (at, step) in steps.iter().enumerate() {
            let moved = traffic.of(&steps, at);
            let shared = common(before, &step.chain);
            // Steps in the same innermost loop run at the same time.
            if shared < step.chain.len() || shared < before.len() || shared == 0 {
                pressure = Pressure::default();
            }
            found.push(self.step(step, shared, moved, &mut pressure));
            before = &step.chain;
        }
        Ok(Estimate {
            seconds: found.iter().map(|step| step.seconds).sum(),
            steps: found,
        })
    }

    fn analysed(
        &self,
        node: NodeId,
        leaf: TreeRef,
        chain: Chain,
        work: Work,
        mut movements: SmallVec<[Movement; 4]>,
    ) -> Analysed {
        let mut running = None;
        let mut written_in = chain.len();
        let scan = matches!(self.graph.node(node).op, NodeOp::Scan { .. });
        if let Some(outermost) = chain.iter().position(|around| around.carried) {
            let values = self.mover.running_values(node, &chain);
            if !folds_in_memory(&chain) {
                written_in = outermost;
            } else if values.private {
                written_in = outermost;
                movements.push(values.clone());
            }
            running = Some(values);
        }
        if scan {
            written_in = chain.len();
        }
        let mut footprints: SmallVec<[SmallVec<[Footprint; 9]>; 4]> = movements
            .iter()
            .map(|movement| movement.footprints(&chain, self.mover.l2_way))
            .collect();
        for (movement, footprints) in movements.iter().zip(&mut footprints) {
            if movement.writes {
                let inside = footprints.iter_mut().skip(written_in + 1);
                inside.for_each(|footprint| *footprint = Footprint::default());
            }
        }
        let root = chain.iter().find_map(|around| around.place);
        Analysed {
            node,
            root: root.map_or(leaf, |place| self.tree.root(place)),
            chain,
            work,
            movements,
            footprints,
            written_in,
            running,
        }
    }

    /// The work for one element of a step, and what it reads and writes.
    fn movements(
        &self,
        node: NodeId,
        scheduled: &FxHashSet<NodeId>,
        held: &FxHashMap<NodeId, Allocation>,
    ) -> Result<(Work, SmallVec<[Movement; 4]>), ScheduleError> {
        let mut movements: SmallVec<[Movement; 4]> = SmallVec::new();
        let mut result = self.mover.result(node, held.get(&node));
        result.writes = true;
        movements.push(result);
        let work = work_of(
            self.graph,
            node,
            &|node| scheduled.contains(&node),
            &mut |visit| {
                let (node, env, guarded) = match visit {
                    Visit::Read(node, env, guarded) => (node, env, *guarded),
                    Visit::Delayed(node, env, _) => (node, env, true),
                    Visit::Inline(_) => return,
                };
                let read = self.mover.read(*node, held.get(node), env, guarded);
                let known = movements.iter_mut().find(|known| known.moves_like(&read));
                match known {
                    Some(known) => {
                        known.reads += 1.0;
                        known.guarded |= read.guarded;
                    }
                    None => movements.push(read),
                }
            },
        )
        .map_err(|error| ScheduleError::symbolic(self.graph, &error))?;
        Ok((work, movements))
    }

    /// The time of one step that brings so much from beyond each cache, while the steps in the same
    /// innermost loop have the units under some pressure already.
    fn step(
        &self,
        step: &Analysed,
        shared: usize,
        moved: [Moved; 3],
        pressure: &mut Pressure,
    ) -> StepEstimate {
        let target = self.target;
        let mut chain = step.chain.clone();
        let left = compilers_vectors(
            self.graph,
            step.node,
            &mut chain,
            &step.work,
            &step.movements,
            target,
        );
        let core = core_cycles(
            self.graph,
            step.node,
            &chain,
            &step.work,
            (&step.movements, step.running.as_ref()),
            target,
            (shared, left),
        );
        let rates = [target.l2_rate, target.l3_rate, target.memory_rate];
        let beyond = std::array::from_fn(|level| {
            let Moved { bytes, jumps, .. } = moved[level];
            bytes * 16.0 / f64::from(rates[level].max(1)) + jumps * JUMP[level]
        });
        let own = Pressure {
            arithmetic: core.arithmetic,
            issue: core.issue,
            l1: core.l1,
            latency: core.latency,
            beyond,
        };
        let (mut speedup, mut overhead) = (1.0, core.overhead);
        let parallel = chain
            .iter()
            .position(|around| around.form == Form::Threads && target.threads > 1);
        if let Some(at) = parallel {
            // Threads share the rounds of those right inside it, too.
            let inside = chain[at..].iter();
            let inside = inside.take_while(|around| around.form == Form::Threads);
            let rounds: f64 = inside.map(|around| around.rounds).product();
            let turns = (rounds / f64::from(target.threads)).ceil();
            speedup = if turns > 0.0 { rounds / turns } else { 1.0 };
            overhead /= speedup;
            if at >= shared {
                let outside: f64 = chain[..at].iter().map(|around| around.rounds).product();
                overhead += outside * f64::from(target.parallel_cycles);
            }
        }
        let (_, before) = pressure.most(speedup);
        *pressure = pressure.with(own);
        let (mut bound, most) = pressure.most(speedup);
        let cycles = most - before;
        if overhead > cycles {
            bound = BoundBy::Overhead;
        }
        let level = match bound {
            BoundBy::L2 => Some(0),
            BoundBy::L3 => Some(1),
            BoundBy::Memory => Some(2),
            BoundBy::Arithmetic | BoundBy::L1 | BoundBy::Latency | BoundBy::Overhead => None,
        };
        let [l2, l3, memory] = moved.map(|moved| moved.bytes);
        StepEstimate {
            node: step.node,
            flops: core.iterations * step.work.flops,
            bytes: [core.bytes, l2, l3, memory],
            seconds: (cycles + overhead) / target.cycles_per_second.max(1) as f64,
            bound,
            lanes: core.lanes,
            accumulators: core.accumulators,
            spilled: core.spilled,
            scattered: core.scattered,
            mover: level.and_then(|level: usize| moved[level].mover),
        }
    }
}

/// How many outer loops two steps run in together.
fn common(before: &[Around], chain: &Chain) -> usize {
    let both = before.iter().zip(chain);
    both.take_while(|(a, b)| a.place.is_some() && a.place == b.place)
        .count()
}
