//! The executor of loop trees against the reference evaluator, on random programs.
//!
//! A tree that is executed with [`loopwright_ops::evaluate`] keeps every rounding, so that a schedule
//! that folds in the program's order gives the reference's bits.

use loopwright_arena::TiVec;
use loopwright_conformance::Rng;
use loopwright_conformance::features::FEATURES;
use loopwright_conformance::generate::{Arithmetic, Case, random_case, random_schedule};
use loopwright_graph::{Array, Graph, NodeId, evaluate as reference};
use loopwright_looptree::{LoopTree, NodeMemory, Schedule, Target, execute, print_tree};
use loopwright_ops::{Scalar, evaluate, same_value};
use loopwright_scheduler::default_schedule;

/// Random programs, each with a few schedules.
const PROGRAMS: u64 = 3000;

/// The arrays of a program's parameters and results, by node.
struct Memory {
    arrays: TiVec<NodeId, Option<Array>>,
    /// The state that a node is the new value of, by node.
    states: TiVec<NodeId, Option<NodeId>>,
}

impl Memory {
    /// The case's inputs, and results that hold nothing a program is likely to compute.
    fn new(case: &Case, graph: &Graph, expected: &[(String, Array)]) -> Memory {
        let nodes = graph.node_ids().count();
        let mut memory = Memory {
            arrays: vec![None; nodes].into(),
            states: vec![None; nodes].into(),
        };
        for (node, array) in &case.inputs {
            memory.arrays[*node] = Some(array.clone());
        }
        for (output, (_, array)) in graph.outputs().iter().zip(expected) {
            let mut garbage = array.clone();
            garbage.bytes_mut().fill(0xa5);
            memory.arrays[output.node] = Some(garbage);
        }
        for update in graph.updates() {
            memory.states[update.value] = Some(update.state);
        }
        memory
    }

    fn home(&self, node: NodeId) -> NodeId {
        self.states[node].unwrap_or(node)
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

fn agree(expected: Scalar, got: Scalar, arithmetic: Arithmetic) -> bool {
    let whole = arithmetic == Arithmetic::Whole && expected.dtype().is_float();
    same_value(expected, got) || whole && expected.to_f64() == got.to_f64()
}

/// Executes a case under a schedule; says what differs from the reference.
fn check(case: &Case, program: &Graph, schedule: &Schedule) -> Result<(), String> {
    let graph = &*schedule.edited(program).map_err(|e| e.to_string())?;
    let binding = graph.bind(&case.sizes()).map_err(|e| e.to_string())?;
    let expected = reference(&case.graph, &binding, &case.inputs).map_err(|e| e.to_string())?;
    let tree = LoopTree::new(graph, schedule).map_err(|e| e.to_string())?;
    let mut memory = Memory::new(case, graph, &expected);
    execute(graph, &tree, &binding, &mut memory, evaluate)
        .map_err(|error| format!("{error}\n{}", print_tree(graph, &tree)))?;
    let outputs = graph.outputs().iter().map(|output| output.node);
    let results = outputs.chain(graph.updates().iter().map(|update| update.value));
    for ((name, expected), node) in expected.iter().zip(results) {
        let got = memory.arrays[memory.home(node)].as_ref();
        let got = got.ok_or_else(|| format!("`{name}` has no memory"))?;
        let alike = |(expected, got)| agree(expected, got, case.arithmetic);
        if let Some(at) = expected
            .iter()
            .zip(got.iter())
            .position(|pair| !alike(pair))
        {
            return Err(format!(
                "`{name}`, element {at}: expected {}, got {}\n{}",
                expected.get_flat(at),
                got.get_flat(at),
                print_tree(graph, &tree)
            ));
        }
    }
    Ok(())
}

/// The schedule of a case.
fn schedule(case: &Case, graph: &Graph) -> Schedule {
    match &case.schedule {
        Some(schedule) => schedule.clone(),
        None => default_schedule(graph, &Target::SCALAR).expect("every graph has one"),
    }
}

#[test]
fn every_feature_gives_the_bits_of_the_reference() {
    for feature in FEATURES {
        for case in feature.cases() {
            let graph = case.graph.clone().with_stores();
            if let Err(message) = check(&case, &graph, &schedule(&case, &graph)) {
                panic!("{}, sizes {:?}: {message}", feature.name, case.sizes);
            }
        }
    }
}

#[test]
fn random_programs_give_the_bits_of_the_reference() {
    for seed in 0..PROGRAMS {
        let case = random_case(seed);
        let graph = case.graph.clone().with_stores();
        let binding = graph.bind(&case.sizes()).expect("a case has all its sizes");
        let mut rng = Rng::new(!seed);
        let mut schedules = vec![schedule(&case, &graph)];
        for _ in 0..2 {
            schedules.push(random_schedule(&mut rng, &graph, &binding, case.arithmetic));
        }
        for schedule in &schedules {
            if let Err(message) = check(&case, &graph, schedule) {
                let program = loopwright_graph::print(&case.graph);
                panic!("seed {seed}: {message}\n{program}");
            }
        }
    }
}
