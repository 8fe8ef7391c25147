//! A random program, its schedules and what it computes.

use loopwright_arena::TiVec;
use loopwright_conformance::Rng;
use loopwright_conformance::generate::{Arithmetic, Case, random_array, random_case};
use loopwright_graph::{Array, Graph, NodeId, evaluate as reference};
use loopwright_looptree::{
    LoopTree, Mutation, NodeMemory, Plan, Schedule, Target, execute, print_mutation,
};
use loopwright_ops::{DType, Op, Scalar, evaluate, same_value};
use loopwright_scheduler::default_schedule;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The arrays of a program's parameters and results, by node.
pub struct Memory {
    pub arrays: TiVec<NodeId, Option<Array>>,
    /// The state that a node is the new value of, by node.
    states: TiVec<NodeId, Option<NodeId>>,
    /// Steps whose readers find other values than were written, by node.
    pub disturbed: BTreeMap<NodeId, Array>,
}

impl Memory {
    fn home(&self, node: NodeId) -> NodeId {
        self.states[node].unwrap_or(node)
    }
}

impl NodeMemory for Memory {
    fn bytes(&self, node: NodeId) -> Option<&[u8]> {
        let home = self.home(node);
        match self.disturbed.get(&home) {
            Some(array) => Some(array.bytes()),
            None => Some(self.arrays[home].as_ref()?.bytes()),
        }
    }

    fn bytes_mut(&mut self, node: NodeId) -> Option<&mut [u8]> {
        let home = self.home(node);
        Some(self.arrays[home].as_mut()?.bytes_mut())
    }
}

/// A program, and what it computes.
pub struct Subject {
    pub case: Case,
    /// The program with its results as stores.
    pub program: Arc<Graph>,
    expected: Vec<(String, Array)>,
    /// The nodes that `expected` are the values of.
    results: Vec<NodeId>,
    /// What decides about the values of memory that nothing has been written to.
    garbage: u64,
}

impl Subject {
    pub fn new(seed: u64) -> Subject {
        Subject::of(random_case(seed))
    }

    pub fn of(case: Case) -> Subject {
        let program = case.graph.clone().with_stores();
        let binding = case.graph.bind(&case.sizes());
        let binding = binding.expect("a case has all its sizes");
        let expected =
            reference(&case.graph, &binding, &case.inputs).expect("a case can be evaluated");
        let outputs = program.outputs().iter().map(|output| output.node);
        let updates = program.updates().iter().map(|update| update.value);
        let results = outputs.chain(updates).collect();
        Subject {
            case,
            program: Arc::new(program),
            expected,
            results,
            garbage: 0,
        }
    }

    /// The same program with other inputs. Every second time the elements of an array are all different, as far as
    /// their dtype goes: what is read in another place is then another value.
    pub fn with_other_inputs(&self, rng: &mut Rng) -> Subject {
        let mut case = self.case.clone();
        let distinct = rng.chance(50);
        for (_, array) in &mut case.inputs {
            let shape = array.shape().to_vec();
            *array = match distinct {
                true => distinct_array(rng, array.dtype(), &shape),
                false => random_array(rng, array.dtype(), &shape, case.arithmetic),
            };
        }
        Subject {
            garbage: rng.below(1 << 30) as u64,
            ..Subject::of(case)
        }
    }

    /// The same program at other sizes; `None` where it has no values there.
    pub fn with_sizes(&self, sizes: Vec<(String, i64)>, rng: &mut Rng) -> Option<Subject> {
        let mut case = Case {
            sizes,
            ..self.case.clone()
        };
        let binding = case.graph.bind(&case.sizes()).ok()?;
        for (node, array) in &mut case.inputs {
            let shape = binding.shape(&case.graph, *node);
            let shape: Vec<usize> = shape.iter().map(|size| *size as usize).collect();
            *array = distinct_array(rng, array.dtype(), &shape);
        }
        Some(Subject {
            garbage: rng.below(1 << 30) as u64,
            ..Subject::of(case)
        })
    }

    pub fn first_plan(&self) -> Plan {
        let schedule = match &self.case.schedule {
            Some(schedule) => schedule.clone(),
            None => default_schedule(&self.program, &Target::SCALAR).expect("every graph has one"),
        };
        Plan::new(Arc::clone(&self.program), schedule).expect("it is a schedule")
    }

    /// The value of a result.
    pub fn expected_of(&self, name: &str) -> Option<&Array> {
        let mut results = self.expected.iter();
        results
            .find(|(found, _)| found == name)
            .map(|(_, array)| array)
    }

    /// Parameters, and results that hold nothing a program is likely to compute.
    pub fn memory(&self, graph: &Graph) -> Memory {
        let nodes = graph.node_ids().count();
        let mut memory = Memory {
            arrays: vec![None; nodes].into(),
            states: vec![None; nodes].into(),
            disturbed: BTreeMap::new(),
        };
        for (node, array) in &self.case.inputs {
            memory.arrays[*node] = Some(array.clone());
        }
        let mut rng = Rng::new(self.garbage);
        for (output, (_, array)) in graph.outputs().iter().zip(&self.expected) {
            let mut garbage = distinct_array(&mut rng, array.dtype(), array.shape());
            if array.dtype() != DType::Bool && rng.chance(50) {
                garbage.bytes_mut().fill(0xa5);
            }
            memory.arrays[output.node] = Some(garbage);
        }
        for update in graph.updates() {
            memory.states[update.value] = Some(update.state);
        }
        memory
    }

    /// Executes a tree; says what differs, but for the values that `free` reductions decide about.
    pub fn run(&self, graph: &Graph, tree: &LoopTree, free: &[NodeId]) -> Result<(), String> {
        self.run_in(graph, tree, (free, &[]), self.memory(graph))
    }

    /// The same in some memory; `ignored`: nodes that decide about nothing that is compared.
    pub fn run_in(
        &self,
        graph: &Graph,
        tree: &LoopTree,
        (free, ignored): (&[NodeId], &[NodeId]),
        mut memory: Memory,
    ) -> Result<(), String> {
        let binding = graph.bind(&self.case.sizes()).map_err(|e| e.to_string())?;
        execute(graph, tree, &binding, &mut memory, evaluate).map_err(|error| error.to_string())?;
        // Integers are exact in any order; other floats are compared where their order is kept.
        let free = match self.case.arithmetic {
            Arithmetic::Whole => Vec::new(),
            Arithmetic::Strict | Arithmetic::Rounded { .. } => made_of(graph, free),
        };
        let ignored = made_of(graph, ignored);
        for ((name, expected), node) in self.expected.iter().zip(&self.results) {
            if free.contains(node) || ignored.contains(node) {
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

    /// Executes a tree with ops that mean something else, and gives what it leaves, by result; `None` for what `ignored`
    /// nodes decide about.
    pub fn run_with_other_ops(
        &self,
        graph: &Graph,
        tree: &LoopTree,
        ignored: &[NodeId],
    ) -> Result<Vec<Option<Array>>, String> {
        let binding = graph.bind(&self.case.sizes()).map_err(|e| e.to_string())?;
        let mut memory = self.memory(graph);
        let ops = OtherOps(self.garbage);
        execute(graph, tree, &binding, &mut memory, ops).map_err(|error| error.to_string())?;
        let ignored = made_of(graph, ignored);
        let results = self.results.iter();
        Ok(results
            .map(|node| match ignored.contains(node) {
                true => None,
                false => memory.arrays[memory.home(*node)].clone(),
            })
            .collect())
    }

    fn agree(&self, expected: Scalar, got: Scalar) -> bool {
        let whole = self.case.arithmetic == Arithmetic::Whole && expected.dtype().is_float();
        same_value(expected, got) || whole && expected.to_f64() == got.to_f64()
    }

    pub fn describe(&self, plan: &Plan, mutation: &Mutation) -> String {
        format!(
            "`{}` on\n{plan}\n{}",
            print_mutation(plan.graph(), mutation),
            loopwright_graph::print(&self.program)
        )
    }

    /// The case with a schedule of its own.
    pub fn case_with(&self, schedule: Schedule, arithmetic: Arithmetic) -> Case {
        Case {
            schedule: Some(schedule),
            arithmetic,
            ..self.case.clone()
        }
    }
}

/// Ops of which nothing is known but what they depend on: each gives a number that its operands decide about, and
/// those that fold do not care for the order. Whether a value is read in time shows in such numbers also where the
/// program's own ops would not tell it from another: in `x <= x`, in a product with a zero in it.
struct OtherOps(u64);

impl OtherOps {
    fn mixed(&self, values: impl Iterator<Item = u64>) -> u64 {
        values.fold(self.0, |hash, value| {
            let hash = (hash ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            hash ^ (hash >> 29)
        })
    }

    fn of_dtype(dtype: DType, bits: u64) -> Scalar {
        let mask = match dtype {
            DType::Bool => 1,
            dtype => u64::MAX >> (64 - 8 * dtype.bytes()),
        };
        Scalar::from_bits(dtype, bits & mask)
    }
}

impl loopwright_looptree::Arithmetic for OtherOps {
    type Error = loopwright_ops::OpError;

    fn map(&mut self, op: Op, operands: &[Scalar]) -> Result<Scalar, Self::Error> {
        let dtype = evaluate(op, operands)?.dtype();
        let bits = operands.iter().map(|operand| operand.bits());
        let bits = match op {
            Op::Add | Op::Mul | Op::Max | Op::Min | Op::And | Op::Or => {
                bits.fold(0, u64::wrapping_add)
            }
            op => self.mixed(bits.chain([op as u64])),
        };
        Ok(OtherOps::of_dtype(dtype, bits))
    }

    fn cast(&mut self, value: Scalar, to: DType) -> Result<Scalar, Self::Error> {
        if value.dtype() == to {
            return Ok(value);
        }
        let bits = self.mixed([value.bits(), to as u64].into_iter());
        Ok(OtherOps::of_dtype(to, bits))
    }
}

/// The nodes and everything that reads them.
fn made_of(graph: &Graph, nodes: &[NodeId]) -> Vec<NodeId> {
    let mut found = nodes.to_vec();
    let mut at = 0;
    while let Some(node) = found.get(at).copied() {
        for reader in graph.node_ids() {
            if graph.node(reader).inputs.contains(&node) && !found.contains(&reader) {
                found.push(reader);
            }
        }
        at += 1;
    }
    found
}

/// An array whose elements are small integers, in any order, no two of them the same where the dtype has
/// enough.
pub fn distinct_array(rng: &mut Rng, dtype: DType, shape: &[usize]) -> Array {
    let mut array = Array::zeros(dtype, shape).expect("the arrays of a case are small");
    let mut values: Vec<i64> = (0..array.len() as i64).collect();
    rng.shuffle(&mut values);
    let low = rng.range(0, 3);
    for (at, value) in values.into_iter().enumerate() {
        let value = match dtype {
            DType::Bool => Scalar::bool(rng.chance(50)),
            dtype => Scalar::from_i64(dtype, value + low),
        };
        array.set_flat(at, value);
    }
    array
}
