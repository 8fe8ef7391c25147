//! Which results other roundings give.
//!
//! A schedule may fold floats in another order than the program says, and outside strict mode `a * b + c`
//! may be rounded once instead of twice, and backends may compute functions of the C library themselves, a few
//! units in the last place away from it. What such a program computes is one of many results, and how
//! far these lie apart depends on the values: a sum of terms that cancel has no digit in common with
//! itself in another order, and a comparison can turn a last bit into anything. So no tolerance is
//! assumed. Instead every rounding that is free is disturbed, by as much as it could be off, up or down,
//! the reference evaluator runs again, and where its results spread, a result may lie in between or as
//! far again to either side, and by one more unit in the last place: what is disturbed often vanishes in the
//! roundings behind it, and shows only where it comes close to the middle between two numbers. Where nothing
//! is free, a result must agree.

use crate::functions::{flushed_below, slack, stated_slack};
use crate::generate::{Arithmetic, Case, folds_in_order};
use crate::rebuild::{Disturbance, Edit, rebuild};
use crate::rng::Rng;
use loopwright_arena::TiVec;
use loopwright_backend::MathAccuracy;
use loopwright_graph::{Array, Binding, Graph, NodeId, NodeOp, evaluate};
use loopwright_looptree::{Plan, Schedule};
use loopwright_ops::{DType, Op, ReduceOp, Scalar, same_value};

/// How often the reference evaluator runs with all free roundings disturbed: once all up, once all down, the
/// other times each in a direction of its own.
const SAMPLES: usize = 6;

/// The same where a backend states that its functions are off by more than ours: nearly every result then differs from
/// the reference, so that every element needs a run in which those that it is computed from are moved against each other.
const SAMPLES_STATED: usize = 26;

/// Up to so many nodes are also disturbed one by one, up and down: disturbed together, those that work
/// against each other can hide what each of them does.
const ALONE: usize = 12;

/// The results of disturbed runs.
#[derive(Clone, Debug)]
pub(super) struct Roundings {
    /// By run, then by result.
    samples: Vec<Vec<Array>>,
    /// By node that was disturbed alone: up and down, each by result.
    alone: Vec<[Vec<Array>; 2]>,
    /// Whether anything is free. Then so is the sign of a zero, which depends on the order of a `max`.
    free: bool,
    /// By result: whether a rounding that is free has a part in it.
    touched: Vec<bool>,
}

impl Roundings {
    /// Runs a case with the roundings disturbed that are free under its schedule, and with the functions that a backend
    /// states to be off by more than ours.
    pub(super) fn new(
        case: &Case,
        plan: &Plan,
        binding: &Binding,
        accuracy: &MathAccuracy,
    ) -> Roundings {
        let (graph, schedule) = (plan.program(), plan.schedule());
        let strict = case.arithmetic.is_strict();
        let in_order = |node| folds_in_order(graph, schedule, node);
        let free = free_roundings(graph, schedule, binding, case.arithmetic, accuracy);
        let evaluate_with = |disturbances: Option<Vec<Disturbance>>| {
            let with_stores = Case {
                graph: Graph::clone(graph),
                schedule: None,
                ..case.clone()
            };
            let disturbed = rebuild(&with_stores, &Edit::Disturb(disturbances?))?;
            let binding = disturbed.graph.bind(&disturbed.sizes()).ok()?;
            let results = evaluate(&disturbed.graph, &binding, &disturbed.inputs).ok()?;
            Some(results.into_iter().map(|(_, array)| array).collect())
        };
        let runs = match (free.is_empty(), accuracy.is_exact()) {
            (true, _) => 0,
            (false, true) => SAMPLES,
            (false, false) => SAMPLES_STATED,
        };
        let samples = (0..runs).filter_map(|run| {
            let mut rng = Rng::new(run as u64);
            let all = free.iter().map(|free| free.disturbance(run, &mut rng));
            evaluate_with(all.collect())
        });
        let alone = free.iter().take(ALONE).filter_map(|free| {
            let mut rng = Rng::new(0);
            let mut moved = |run| {
                let one = free.disturbance(run, &mut rng)?;
                evaluate_with(Some(vec![one]))
            };
            Some([moved(0)?, moved(1)?])
        });
        Roundings {
            touched: touched(graph, &free),
            samples: samples.collect(),
            alone: alone.collect(),
            free: !strict || !graph.node_ids().all(in_order),
        }
    }

    /// Whether an element of a result lies among those that other roundings give.
    pub(super) fn admit(&self, result: usize, flat: usize, expected: Scalar, got: Scalar) -> bool {
        if self.free && expected.dtype().is_float() && expected.to_f64() == got.to_f64() {
            return true;
        }
        let samples = self.samples.iter();
        let samples: Vec<Scalar> = samples.map(|run| run[result].get_flat(flat)).collect();
        let dtype = expected.dtype();
        let is_touched = self.touched[result] && dtype.is_float();
        let last_place = match is_touched && expected.to_f64().is_finite() {
            true => ulp(dtype) * expected.to_f64().abs() + smallest(dtype),
            false => 0.0,
        };
        if last_place == 0.0 && samples.iter().all(|sample| same_value(*sample, expected)) {
            return false;
        }
        let values = || samples.iter().chain([&expected]).map(|v| v.to_f64());
        if values().any(|value| !value.is_finite()) {
            // Whether there is a number at all depends on a rounding.
            return true;
        }
        let lowest = values().fold(f64::INFINITY, f64::min);
        let highest = values().fold(f64::NEG_INFINITY, f64::max);
        // To first order, nodes that all work in one direction move the result by what each moves it.
        let apart = |[up, down]: &[Vec<Array>; 2]| {
            let [up, down] = [up, down].map(|run| run[result].get_flat(flat).to_f64());
            (up - down).abs()
        };
        let alone: f64 = self.alone.iter().map(apart).sum();
        if !alone.is_finite() {
            return true;
        }
        let margin = (highest - lowest).max(alone) + last_place;
        (lowest - margin..=highest + margin).contains(&got.to_f64())
    }
}

/// A node whose roundings are free.
struct Free {
    node: NodeId,
    shape: Vec<usize>,
    of_terms: f64,
    of_result: f64,
    least: f64,
}

impl Free {
    /// The disturbance of one run; `None` if there is no memory for it.
    fn disturbance(&self, run: usize, rng: &mut Rng) -> Option<Disturbance> {
        let mut direction = Array::zeros(DType::F64, &self.shape).ok()?;
        for at in 0..direction.len() {
            let up = match run {
                0 => true,
                1 => false,
                _ => rng.chance(50),
            };
            direction.set_flat(at, Scalar::f64(if up { 1.0 } else { -1.0 }));
        }
        Some(Disturbance {
            node: self.node,
            of_terms: self.of_terms,
            of_result: self.of_result,
            least: self.least,
            direction,
        })
    }
}

/// The nodes whose roundings are free, and how much they may be off.
fn free_roundings(
    graph: &Graph,
    schedule: &Schedule,
    binding: &Binding,
    arithmetic: Arithmetic,
    accuracy: &MathAccuracy,
) -> Vec<Free> {
    let (strict, math) = (arithmetic.is_strict(), arithmetic.math());
    let added = if strict { Vec::new() } else { added_up(graph) };
    let size = |dims: &[loopwright_graph::DimId]| {
        let sizes = dims.iter().map(|dim| binding.size(*dim) as f64);
        sizes.product::<f64>()
    };
    let free = graph.node_ids().filter_map(|node| {
        let parts = graph.node(node);
        let own = ulp(parts.dtype);
        let fold = |op: ReduceOp, acc: DType, count: f64| match op {
            ReduceOp::Sum => Some((steps(count) * ulp(acc), own)),
            ReduceOp::Prod => Some((0.0, steps(count) * ulp(acc) + own)),
            ReduceOp::Max | ReduceOp::Min | ReduceOp::Any | ReduceOp::All => None,
        };
        let (mut flushed, mut units) = (0.0, 1.0);
        let (of_terms, of_result) = match &parts.op {
            NodeOp::Reduce { op, over, acc }
                if acc.is_float() && (!strict || !folds_in_order(graph, schedule, node)) =>
            {
                fold(*op, *acc, size(over))?
            }
            NodeOp::Scan { op, over, acc, .. } if acc.is_float() && !strict => {
                fold(*op, *acc, size(&[*over]))?
            }
            NodeOp::Scatter {
                combine: Some(op), ..
            } if parts.dtype.is_float() && !strict => {
                let updates = &graph.node(parts.inputs[2]).dims;
                fold(*op, parts.dtype, size(updates))?
            }
            NodeOp::Map(Op::Mul) if parts.dtype.is_float() && added.contains(&node) => (0.0, own),
            NodeOp::Map(op) => {
                let ours = if strict {
                    0
                } else {
                    slack(*op, parts.dtype, math)
                };
                let stated = stated_slack(accuracy, *op, parts.dtype);
                if ours == 0 && stated == 0 {
                    return None;
                }
                if ours > 0 {
                    flushed = flushed_below(*op, math);
                }
                // Units that are stated count below the smallest normal number too.
                units = f64::from(stated.max(1));
                (0.0, f64::from(ours.max(stated)) * own)
            }
            _ => return None,
        };
        let shape = binding.shape(graph, node);
        Some(Free {
            node,
            shape: shape.iter().map(|size| *size as usize).collect(),
            of_terms,
            of_result,
            least: (units * smallest(parts.dtype)).max(flushed),
        })
    });
    free.collect()
}

/// By result, outputs first: whether it is computed from a node whose roundings are free.
fn touched(graph: &Graph, free: &[Free]) -> Vec<bool> {
    let mut touched: TiVec<NodeId, _> = vec![false; graph.node_ids().count()].into();
    for node in graph.node_ids() {
        let inputs = &graph.node(node).inputs;
        touched[node] =
            free.iter().any(|free| free.node == node) || inputs.iter().any(|input| touched[*input]);
    }
    let outputs = graph.outputs().iter().map(|output| output.node);
    let updates = graph.updates().iter().map(|update| update.value);
    let results = outputs.chain(updates);
    results.map(|node| touched[node]).collect()
}

/// Nodes that an addition reads, at once or after other nodes: only their rounding can be left out.
fn added_up(graph: &Graph) -> Vec<NodeId> {
    let mut read: TiVec<NodeId, _> = vec![false; graph.node_ids().count()].into();
    for node in graph.node_ids().rev() {
        let parts = graph.node(node);
        let adds = match &parts.op {
            NodeOp::Map(op) => matches!(op, Op::Add | Op::Sub | Op::MulAdd),
            NodeOp::Reduce { op, .. } | NodeOp::Scan { op, .. } => *op == ReduceOp::Sum,
            NodeOp::Scatter { combine, .. } => *combine == Some(ReduceOp::Sum),
            _ => false,
        };
        if adds || read[node] {
            for input in &parts.inputs {
                read[*input] = true;
            }
        }
    }
    let nodes = graph.node_ids();
    nodes.filter(|node| read[*node]).collect()
}

/// How many units in the last place two orders of so many roundings may be apart: the bound that always
/// holds, and for many the one that holds with near certainty, since roundings go either way.
fn steps(count: f64) -> f64 {
    count.min(8.0 * count.sqrt()).max(1.0)
}

/// The distance from 1 to the next larger number of a float dtype; 0 for others, which do not round.
fn ulp(dtype: DType) -> f64 {
    let digits = match dtype {
        DType::F8E4M3 => 3,
        DType::F8E5M2 => 2,
        DType::F16 => 10,
        DType::BF16 => 7,
        DType::F32 => 23,
        DType::F64 => 52,
        DType::Bool
        | DType::I8
        | DType::I16
        | DType::I32
        | DType::I64
        | DType::U8
        | DType::U16
        | DType::U32
        | DType::U64 => return 0.0,
    };
    f64::powi(2.0, -digits)
}

/// The smallest number of a float dtype above 0: what a rounding next to 0 is off by.
fn smallest(dtype: DType) -> f64 {
    if dtype.is_float() {
        Scalar::from_bits(dtype, 1).to_f64()
    } else {
        0.0
    }
}
