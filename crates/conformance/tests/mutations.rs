//! Random changes of schedules, one after the other, on random programs.
//!
//! Every change that is accepted keeps the values, which the executor shows after each and, for a sample,
//! the whole way through lowering. Every change that is refused for a dependence is illegal: forced through,
//! it gives no tree, or other values. Every change that is listed as legal is accepted.

use loopwright_backend::Backend;
use loopwright_conformance::Rng;
use loopwright_conformance::generate::{Arithmetic, Case, random_array, random_case};
use loopwright_conformance::oracle::Oracle;
use loopwright_graph::{Array, Binding, DimId, Graph, NodeId, NodeOp, evaluate as reference};
use loopwright_interp::Interp;
use loopwright_looptree::{
    Annotation, Cursor, LoopName, LoopSpec, LoopTree, Mutated, Mutation, MutationError, NodeMemory,
    NodeSchedule, Schedule, Target, default_schedule, execute, legal, loop_dims, mutate,
    parse_mutation, parse_tree, print_mutation, print_schedule, reassociated,
};
use loopwright_ops::{Scalar, evaluate, same_value};
use loopwright_text::Source;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::ops::Range;

/// Sequences of changes, each on a program of its own.
const SEQUENCES: u64 = 6000;

/// Changes tried in a sequence, at most.
const LENGTH: i64 = 8;

/// One sequence in so many is also lowered and interpreted.
const LOWERED: u64 = 8;

/// The largest step of a loop that is lowered.
const MAX_LOWERED_STEP: i64 = 1 << 8;

/// One sequence in so many has all its legal changes tried.
const LISTED: u64 = 4;

/// Inputs under which a change that was forced through may show.
const DRAWS: usize = 8;

/// The arrays of a program's parameters and results, by node.
struct Memory {
    arrays: Vec<Option<Array>>,
    /// The state that a node is the new value of, by node.
    states: Vec<Option<NodeId>>,
}

impl Memory {
    fn home(&self, node: NodeId) -> usize {
        self.states[node.0 as usize].unwrap_or(node).0 as usize
    }
}

impl NodeMemory for Memory {
    fn bytes(&self, node: NodeId) -> Option<&[u8]> {
        Some(self.arrays[self.home(node)].as_ref()?.bytes())
    }

    fn bytes_mut(&mut self, node: NodeId) -> Option<&mut [u8]> {
        let home = self.home(node);
        Some(self.arrays[home].as_mut()?.bytes_mut())
    }
}

/// A program, and what it computes.
struct Subject {
    case: Case,
    graph: Graph,
    binding: Binding,
    expected: Vec<(String, Array)>,
    /// The nodes that `expected` are the values of.
    results: Vec<NodeId>,
}

impl Subject {
    fn new(seed: u64) -> Subject {
        Subject::of(random_case(seed))
    }

    fn of(case: Case) -> Subject {
        let graph = case.graph.clone().with_stores();
        let binding = graph.bind(&case.sizes()).expect("a case has all its sizes");
        let expected =
            reference(&case.graph, &binding, &case.inputs).expect("a case can be evaluated");
        let outputs = graph.outputs().iter().map(|output| output.node);
        let updates = graph.updates().iter().map(|update| update.value);
        let results = outputs.chain(updates).collect();
        Subject {
            case,
            graph,
            binding,
            expected,
            results,
        }
    }

    /// The same program with other inputs.
    fn with_other_inputs(&self, rng: &mut Rng) -> Subject {
        let mut case = self.case.clone();
        for (_, array) in &mut case.inputs {
            *array = random_array(rng, array.dtype(), array.shape(), case.arithmetic);
        }
        Subject::of(case)
    }

    fn first_schedule(&self) -> Schedule {
        match &self.case.schedule {
            Some(schedule) => schedule.clone(),
            None => default_schedule(&self.graph, &Target::SCALAR).expect("every graph has one"),
        }
    }

    /// Parameters, and results that hold nothing a program is likely to compute.
    fn memory(&self) -> Memory {
        let nodes = self.graph.node_ids().count();
        let mut memory = Memory {
            arrays: vec![None; nodes],
            states: vec![None; nodes],
        };
        for (node, array) in &self.case.inputs {
            memory.arrays[node.0 as usize] = Some(array.clone());
        }
        for (output, (_, array)) in self.graph.outputs().iter().zip(&self.expected) {
            let mut garbage = array.clone();
            garbage.bytes_mut().fill(0xa5);
            memory.arrays[output.node.0 as usize] = Some(garbage);
        }
        for update in self.graph.updates() {
            memory.states[update.value.0 as usize] = Some(update.state);
        }
        memory
    }

    /// Executes a tree; says what differs, but for the values that `free` reductions decide about.
    fn run(&self, tree: &LoopTree, free: &[NodeId]) -> Result<(), String> {
        let mut memory = self.memory();
        execute(&self.graph, tree, &self.binding, &mut memory, evaluate)
            .map_err(|error| error.to_string())?;
        // Whole numbers are exact in any order; other floats are compared where their order is kept.
        let free = match self.case.arithmetic {
            Arithmetic::Whole => Vec::new(),
            Arithmetic::Strict | Arithmetic::Rounded { .. } => self.made_of(free),
        };
        for ((name, expected), node) in self.expected.iter().zip(&self.results) {
            if free.contains(node) {
                continue;
            }
            let got = memory.arrays[memory.home(*node)].as_ref();
            let got = got.ok_or_else(|| format!("`{name}` has no memory"))?;
            let mut pairs = expected.iter().zip(got.iter());
            if let Some(at) = pairs.position(|(expected, got)| !self.agree(expected, got)) {
                let (expected, got) = (expected.get_flat(at), got.get_flat(at));
                return Err(format!(
                    "`{name}`, element {at}: expected {expected}, got {got}"
                ));
            }
        }
        Ok(())
    }

    fn agree(&self, expected: Scalar, got: Scalar) -> bool {
        let whole = self.case.arithmetic == Arithmetic::Whole && expected.dtype().is_float();
        same_value(expected, got) || whole && expected.to_f64() == got.to_f64()
    }

    /// The nodes and everything that reads them.
    fn made_of(&self, nodes: &[NodeId]) -> Vec<NodeId> {
        let mut found = nodes.to_vec();
        for node in self.graph.node_ids() {
            let mut inputs = self.graph.node(node).inputs.iter();
            if inputs.any(|input| found.contains(input)) {
                found.push(node);
            }
        }
        found
    }

    fn describe(&self, schedule: &Schedule, mutation: &Mutation) -> String {
        format!(
            "`{}` on\n{}\n{}",
            print_mutation(&self.graph, mutation),
            print_schedule(&self.graph, schedule),
            loopwright_graph::print(&self.graph)
        )
    }
}

/// Any change, sensible or not.
fn any_mutation(rng: &mut Rng, graph: &Graph, schedule: &Schedule) -> Mutation {
    let any_node = NodeId(rng.below(graph.node_ids().count()) as u32);
    let step = match schedule.steps.is_empty() || rng.chance(5) {
        true => None,
        false => Some(rng.pick(&schedule.steps)),
    };
    let node = step.map_or(any_node, |step| step.node);
    let loops: Vec<LoopSpec> = step.map_or(Vec::new(), |step| step.loops.to_vec());
    let other = match schedule.steps.is_empty() {
        true => any_node,
        false => rng.pick(&schedule.steps).node,
    };
    let mut name = || match loops.is_empty() || rng.chance(3) {
        true => LoopName {
            dim: DimId(rng.below(graph.dims().len()) as u32),
            step: rng.range(0, 4),
        },
        false => LoopName::from(*rng.pick(&loops)),
    };
    let (first, second) = (name(), name());
    match rng.below(13) {
        0 => Mutation::Split {
            node,
            name: first,
            factor: *rng.pick(&[-1, 0, 1, 2, 3, 4, 5, 7, 8, 1 << 40, i64::MAX]),
        },
        1 => Mutation::Merge { node, name: first },
        2 => {
            let at = rng.below(loops.len().max(2) - 1);
            let inner = loops.get(at + 1).map_or(second, |spec| (*spec).into());
            let outer = loops.get(at).map_or(first, |spec| (*spec).into());
            Mutation::Swap { node, outer, inner }
        }
        3 => {
            let mut names: SmallVec<[LoopName; 8]> =
                loops.iter().map(|spec| (*spec).into()).collect();
            rng.shuffle(&mut names);
            Mutation::Reorder { node, loops: names }
        }
        4 => Mutation::Fuse { node },
        5 => Mutation::Unfuse { node },
        6 => Mutation::MoveBefore { node, other },
        7 => Mutation::MoveAfter { node, other },
        8 => Mutation::Inline { node },
        9 => {
            let mut loops: SmallVec<[LoopSpec; 8]> = loop_dims(graph, any_node)
                .into_iter()
                .map(LoopSpec::over)
                .collect();
            rng.shuffle(&mut loops);
            let given = rng.chance(50).then_some(loops);
            Mutation::Store {
                node: any_node,
                loops: given,
            }
        }
        10 => Mutation::Annotate {
            node,
            name: first,
            annotation: *rng.pick(&Annotation::ALL),
        },
        11 => Mutation::Delegate {
            node,
            backend: (*rng.pick(&["a", "b", ""])).into(),
        },
        _ => Mutation::Undelegate { node },
    }
}

/// Cursors stay at their loops and steps.
fn check_cursors(before: &Schedule, mutated: &Mutated, mutation: &Mutation) {
    for step in &before.steps {
        for depth in 0..=step.loops.len() {
            let node = step.node;
            let followed = mutated.follow(Cursor { node, depth });
            let Some(after) = mutated.schedule.step(node) else {
                assert_eq!(followed, None, "{mutation:?}");
                continue;
            };
            let followed = followed.unwrap_or_else(|| panic!("{mutation:?} loses a cursor"));
            let dim = |step: &NodeSchedule, depth: usize| step.loops.get(depth).map(|at| at.dim);
            assert_eq!(followed.node, node);
            assert!(followed.depth <= after.loops.len(), "{mutation:?}");
            assert_eq!(
                dim(after, followed.depth),
                dim(step, depth),
                "{mutation:?} leads a cursor to another dimension"
            );
        }
    }
}

/// A change is what its text says. Names that are no words have no text that can be read.
fn check_text(graph: &Graph, mutation: &Mutation) {
    let text = print_mutation(graph, mutation);
    let legible = graph.node_ids().all(|node| {
        let name = graph.node_name(node);
        name.bytes()
            .all(|c| c.is_ascii_alphanumeric() || c == b'%' || c == b'_')
    });
    let nameless = matches!(mutation, Mutation::Delegate { backend, .. } if backend.is_empty());
    if legible && !nameless {
        let read = parse_mutation(&Source::new("change", text.as_str()), graph);
        assert_eq!(read.as_ref(), Ok(mutation), "{text}");
    }
}

/// How often something came up.
#[derive(Default)]
struct Tally(BTreeMap<String, usize>);

impl Tally {
    fn count(&mut self, what: &str) {
        *self.0.entry(what.to_owned()).or_default() += 1;
    }

    fn of(&self, what: &str) -> usize {
        self.0.get(what).copied().unwrap_or(0)
    }
}

/// Every kind of change.
const KINDS: [&str; 13] = [
    "split",
    "merge",
    "swap",
    "reorder",
    "fuse",
    "unfuse",
    "move before",
    "move after",
    "inline",
    "store",
    "annotate",
    "delegate",
    "undelegate",
];

fn kind(mutation: &Mutation) -> &'static str {
    match mutation {
        Mutation::Split { .. } => "split",
        Mutation::Merge { .. } => "merge",
        Mutation::Swap { .. } => "swap",
        Mutation::Reorder { .. } => "reorder",
        Mutation::Fuse { .. } => "fuse",
        Mutation::Unfuse { .. } => "unfuse",
        Mutation::MoveBefore { .. } => "move before",
        Mutation::MoveAfter { .. } => "move after",
        Mutation::Inline { .. } => "inline",
        Mutation::Store { .. } => "store",
        Mutation::Annotate { .. } => "annotate",
        Mutation::AddLoop { .. } => "add",
        Mutation::RemoveLoop { .. } => "remove",
        Mutation::ComputeAt { .. } => "compute",
        Mutation::Layout { .. } => "layout",
        Mutation::Copy { .. } => "copy",
        Mutation::Uncopy { .. } => "uncopy",
        Mutation::Pad { .. } => "pad",
        Mutation::Stage { .. } => "stage",
        Mutation::Delegate { .. } => "delegate",
        Mutation::Undelegate { .. } => "undelegate",
    }
}

/// A change that is listed as legal, every kind of change as likely as the others.
fn legal_mutation(rng: &mut Rng, graph: &Graph, schedule: &Schedule) -> Option<Mutation> {
    let mut by_kind: BTreeMap<&str, Vec<Mutation>> = BTreeMap::new();
    for mutation in legal(graph, schedule) {
        by_kind.entry(kind(&mutation)).or_default().push(mutation);
    }
    let kinds: Vec<Vec<Mutation>> = by_kind.into_values().collect();
    if kinds.is_empty() {
        return None;
    }
    let listed = rng.pick(&kinds);
    Some(rng.pick(listed).clone())
}

/// Changes the schedule of a program, step by step, and compares its values after each.
fn check_sequence(seed: u64, oracle: &Oracle, accepted: &mut Tally) {
    let mut subject = Subject::new(seed);
    let mut rng = Rng::new(!seed);
    let mut schedule = subject.first_schedule();
    for _ in 0..rng.range(1, LENGTH) {
        let listed = match rng.chance(50) {
            true => legal_mutation(&mut rng, &subject.graph, &schedule),
            false => None,
        };
        let mutation = listed.unwrap_or_else(|| any_mutation(&mut rng, &subject.graph, &schedule));
        let Ok(mutated) = mutate(&subject.graph, &schedule, &mutation) else {
            continue;
        };
        accepted.count(kind(&mutation));
        check_text(&subject.graph, &mutation);
        check_cursors(&schedule, &mutated, &mutation);
        let free = reassociated(&subject.graph, &mutated.schedule);
        let mut before = reassociated(&subject.graph, &schedule);
        let mut after = free.clone();
        before.sort();
        after.sort();
        assert!(
            mutated.reassociates || before == after,
            "seed {seed} does not say that it reassociates: {}",
            subject.describe(&schedule, &mutation)
        );
        let tree = LoopTree::new(&subject.graph, &mutated.schedule)
            .unwrap_or_else(|error| panic!("seed {seed}: {mutation:?}: {error}"));
        if let Err(message) = subject.run(&tree, &free) {
            let what = subject.describe(&schedule, &mutation);
            panic!("seed {seed}: {message}\n{what}");
        }
        schedule = mutated.schedule;
    }
    let in_order = reassociated(&subject.graph, &schedule).is_empty();
    let own = schedule.steps.iter().all(|step| step.delegate.is_none());
    let exact = in_order || subject.case.arithmetic == Arithmetic::Whole;
    // Lowered code holds whole blocks, also of what is smaller in this run.
    let mut loops = schedule.steps.iter().flat_map(|step| &step.loops);
    let small = loops.all(|spec| spec.step <= MAX_LOWERED_STEP);
    if seed.is_multiple_of(LOWERED) && own && exact && small {
        accepted.count("lowered");
        subject.case.schedule = Some(schedule);
        if let Err(mismatch) = oracle.check(&subject.case) {
            panic!("seed {seed}: {mismatch}");
        }
    }
}

fn check_sequences(seeds: Range<u64>) {
    let oracle = Oracle::new(Backend::kernel_backend(Interp));
    let mut accepted = Tally::default();
    for seed in seeds {
        check_sequence(seed, &oracle, &mut accepted);
    }
    println!("accepted: {:?}", accepted.0);
    for what in KINDS.into_iter().chain(["lowered"]) {
        let times = accepted.of(what);
        assert!(times >= 100, "`{what}` was accepted {times} times");
    }
}

#[test]
fn accepted_changes_keep_the_values() {
    check_sequences(0..SEQUENCES);
}

/// A hundred thousand: `cargo test -p loopwright-conformance --test mutations -- --ignored`.
#[test]
#[ignore = "takes minutes"]
fn many_accepted_changes_keep_the_values() {
    check_sequences(1_000_000..1_100_000);
}

/// The changes of whole steps that may be listed, legal or not.
fn step_mutations(graph: &Graph, schedule: &Schedule) -> Vec<Mutation> {
    let mut mutations = Vec::new();
    for step in &schedule.steps {
        let node = step.node;
        mutations.push(Mutation::Fuse { node });
        mutations.push(Mutation::Unfuse { node });
        mutations.push(Mutation::Undelegate { node });
    }
    for pair in schedule.steps.windows(2) {
        mutations.push(Mutation::MoveBefore {
            node: pair[1].node,
            other: pair[0].node,
        });
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
        let schedule = subject.first_schedule();
        let listed = legal(&subject.graph, &schedule);
        for mutation in &listed {
            if let Err(error) = mutate(&subject.graph, &schedule, mutation) {
                let what = subject.describe(&schedule, mutation);
                panic!("seed {seed}: {error}\n{what}");
            }
        }
        for mutation in step_mutations(&subject.graph, &schedule) {
            let accepted = mutate(&subject.graph, &schedule, &mutation).is_ok();
            assert_eq!(
                accepted,
                listed.contains(&mutation),
                "seed {seed}: {}",
                subject.describe(&schedule, &mutation)
            );
        }
    }
}

/// The text of a tree in which each step shares as many loops with the one before as is said.
fn tree_text(graph: &Graph, steps: &[(NodeSchedule, usize)]) -> String {
    let mut text = "loopwright tree 1\n".to_owned();
    let mut open = 0;
    for (step, shared) in steps {
        while open > *shared {
            text += "}\n";
            open -= 1;
        }
        for spec in &step.loops[*shared..] {
            let dim = &graph.dim(spec.dim).name;
            let (step, annotation) = (spec.step, spec.annotation.name());
            text += &format!("for {dim}/{step} {annotation} {{\n");
            open += 1;
        }
        text += &format!("{}\n", graph.node_name(step.node));
    }
    text + &"}\n".repeat(open)
}

/// How many loops each step shares with the one before it.
fn shares(tree: &LoopTree, schedule: &Schedule) -> Vec<usize> {
    let around = |step: &NodeSchedule| tree.find(step.node).map(|leaf| tree.ancestors(leaf));
    let mut shares = vec![0; schedule.steps.len().min(1)];
    for pair in schedule.steps.windows(2) {
        let (Some(before), Some(own)) = (around(&pair[0]), around(&pair[1])) else {
            panic!("every step has a leaf");
        };
        shares.push(before.iter().zip(&own).take_while(|(a, b)| a == b).count());
    }
    shares
}

/// What comes of a change that was refused for a dependence: the tree that it would make, made without
/// asking. `None` where it was refused for something else.
fn forced(
    graph: &Graph,
    schedule: &Schedule,
    mutation: &Mutation,
    error: &MutationError,
) -> Option<String> {
    let at = schedule
        .steps
        .iter()
        .position(|step| step.node == mutation.node())?;
    let mut steps: Vec<(NodeSchedule, usize)> = schedule
        .steps
        .iter()
        .map(|step| (step.clone(), 0))
        .collect();
    match (mutation, error) {
        (Mutation::Fuse { .. }, MutationError::Dependence { .. }) => {
            // A scan's value and a state's old one may be there in time, if the loop runs upwards; the
            // tree does not count on that.
            let scans = |node| matches!(graph.node(node).op, NodeOp::Scan { .. });
            if graph.node_ids().any(scans) || !graph.updates().is_empty() {
                return None;
            }
            let tree = LoopTree::new(graph, schedule).ok()?;
            for (step, shared) in steps.iter_mut().zip(shares(&tree, schedule)).take(at + 1) {
                step.1 = shared;
            }
            steps[at].1 += 1;
        }
        (
            Mutation::MoveBefore { other, .. } | Mutation::MoveAfter { other, .. },
            MutationError::Refused { .. },
        ) => {
            let step = steps.remove(at);
            let to = steps.iter().position(|(step, _)| step.node == *other)?;
            let after = usize::from(matches!(mutation, Mutation::MoveAfter { .. }));
            steps.insert(to + after, step);
        }
        (Mutation::Inline { .. }, MutationError::Refused { .. }) => {
            steps.remove(at);
        }
        (
            Mutation::Annotate {
                name, annotation, ..
            },
            MutationError::Refused { .. },
        ) => {
            // The threads of a reduction would meet at its running value, which one thread that runs
            // the loop backwards does not show.
            if matches!(graph.node(mutation.node()).op, NodeOp::Reduce { .. }) {
                return None;
            }
            let mut loops = steps[at].0.loops.iter_mut();
            let found = loops.find(|spec| LoopName::from(**spec) == *name);
            found?.annotation = *annotation;
        }
        _ => return None,
    }
    Some(tree_text(graph, &steps))
}

/// Whether some loop of a schedule has all its elements in one round, so that much is legal which is not
/// in general.
fn has_single_rounds(subject: &Subject, schedule: &Schedule) -> bool {
    let mut loops = schedule.steps.iter().flat_map(|step| &step.loops);
    loops.any(|spec| subject.binding.size(spec.dim) <= spec.step)
}

#[test]
fn changes_refused_for_a_dependence_would_change_values() {
    let (mut tried, mut different) = (Tally::default(), Tally::default());
    for seed in 0..SEQUENCES {
        let subject = Subject::new(seed);
        let mut rng = Rng::new(seed ^ 0x5eed);
        let schedule = subject.first_schedule();
        let graph = &subject.graph;
        if has_single_rounds(&subject, &schedule) {
            continue;
        }
        let steps = schedule.steps.iter();
        let mut mutations: Vec<Mutation> = steps
            .map(|step| Mutation::Fuse { node: step.node })
            .collect();
        mutations.extend((0..2 * LENGTH).map(|_| any_mutation(&mut rng, graph, &schedule)));
        for mutation in mutations {
            let Err(error) = mutate(graph, &schedule, &mutation) else {
                continue;
            };
            let Some(text) = forced(graph, &schedule, &mutation, &error) else {
                continue;
            };
            // Names that are no words cannot be read.
            let Ok(tree) = parse_tree(&Source::new("forced", text), graph) else {
                continue;
            };
            let what = kind(&mutation);
            tried.count(what);
            let free = reassociated(graph, &schedule);
            let shows = (0..DRAWS).any(|_| {
                let other = subject.with_other_inputs(&mut rng);
                other.run(&tree, &free).is_err()
            });
            if shows {
                different.count(what);
            }
        }
    }
    println!("forced: {:?}, different: {:?}", tried.0, different.0);
    // The rest reads something that does not matter (`x <= x`), or a state's old value just before it
    // is overwritten, which holds for the order of these loops only.
    for (what, percent) in [
        ("move before", 90),
        ("move after", 85),
        ("fuse", 70),
        ("annotate", 70),
        ("inline", 40),
    ] {
        let (tried, different) = (tried.of(what), different.of(what));
        assert!(tried >= 20, "`{what}` was forced {tried} times");
        assert!(
            100 * different >= percent * tried,
            "`{what}`: only {different} of {tried} changes that were refused change a value"
        );
    }
}

#[test]
fn loops_and_steps_that_are_refused_make_no_tree() {
    let mut tried = Tally::default();
    for seed in 0..SEQUENCES {
        let subject = Subject::new(seed);
        let mut rng = Rng::new(seed ^ 0x10ad);
        let mut schedule = subject.first_schedule();
        let graph = &subject.graph;
        let mutation = any_mutation(&mut rng, graph, &schedule);
        let Err(error) = mutate(graph, &schedule, &mutation) else {
            continue;
        };
        let step = schedule
            .steps
            .iter()
            .position(|step| step.node == mutation.node());
        let Some(at) = step else {
            continue;
        };
        let loops = &mut schedule.steps[at].loops;
        let place = |loops: &[LoopSpec], name: LoopName| {
            loops.iter().position(|spec| LoopName::from(*spec) == name)
        };
        match (&mutation, &error) {
            (Mutation::Swap { outer, .. }, MutationError::SameDimension { .. }) => {
                let outer = place(loops, *outer).expect("the loop is there");
                loops.swap(outer, outer + 1);
            }
            (Mutation::Reorder { loops: names, .. }, MutationError::SameDimension { .. }) => {
                let old = loops.clone();
                let places = names.iter().filter_map(|name| place(&old, *name));
                *loops = places.map(|place| old[place]).collect();
            }
            (Mutation::Inline { .. }, MutationError::NotInline { .. }) => {
                schedule.steps.remove(at);
            }
            _ => continue,
        }
        tried.count(kind(&mutation));
        if LoopTree::new(graph, &schedule).is_ok() {
            let what = subject.describe(&schedule, &mutation);
            panic!("seed {seed}: {error}\nbut it has a tree: {what}");
        }
    }
    println!("without a tree: {:?}", tried.0);
    for what in ["swap", "reorder", "inline"] {
        assert!(tried.of(what) >= 20, "`{what}`: {}", tried.of(what));
    }
}
