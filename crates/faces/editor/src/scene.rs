//! A plan as lines on a screen.

use crate::cost;
use crate::units;
use loopwright::backend::Target;
use loopwright::graph::{Binding, Graph, NodeId};
use loopwright::looptree::{
    Allocation, Annotation, LoopSpec, LoopTree, Plan, Storage, TreeNode, TreeRef, allocations,
};
use loopwright::scheduler::Estimate;
use rustc_hash::FxHashMap;
use std::fmt::Write as _;

/// A line of the tree.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Row {
    pub(crate) place: TreeRef,
    /// How many loops are around it.
    pub(crate) depth: usize,
    /// A loop (`i/8`) or a step's name.
    pub(crate) name: String,
    /// What is at the place.
    pub(crate) kind: RowKind,
    /// The backend that it is handed to, at an outermost place.
    pub(crate) delegate: Option<String>,
    /// How often a loop runs; where a result is kept.
    pub(crate) note: String,
    /// Its share of the cost, between 0 and 1.
    pub(crate) share: f64,
}

impl Row {
    pub(crate) fn is_loop(&self) -> bool {
        matches!(self.kind, RowKind::Loop(_))
    }
}

/// What is at a line of the tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RowKind {
    /// A loop.
    Loop(Annotation),
    /// A step.
    Step,
}

/// Everything about a plan that is shown and takes no time to find out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scene {
    /// Outer before inner, in the order in which they run.
    pub(crate) rows: Vec<Row>,
    /// The schedule's text.
    pub(crate) schedule: String,
    /// What the cost model says.
    pub(crate) estimate: String,
}

impl Scene {
    /// What is known of a plan on a machine with these values of sizes.
    pub(crate) fn new(plan: &Plan, target: &Target, sizes: &[(String, i64)]) -> Scene {
        let (graph, tree) = (plan.graph(), plan.tree());
        let sizes: Vec<(&str, i64)> = sizes.iter().map(|(name, n)| (name.as_str(), *n)).collect();
        // The graph with the plan's changes has dimensions that the program does not have.
        let binding = match graph.bind(&sizes) {
            Ok(binding) => binding,
            Err(error) => {
                return Scene {
                    schedule: plan.to_string(),
                    estimate: format!("the plan does not fit the sizes: {error}\n"),
                    ..Scene::default()
                };
            }
        };
        let binding = &binding;
        let held = allocations(graph, plan.schedule(), tree).unwrap_or_default();
        let estimate = cost::of_plan(plan, target, binding);
        let shares = estimate.as_ref().map(|found| cost::shares(plan, found));
        let shares = shares.unwrap_or_default();
        let mut rows = Vec::with_capacity(tree.len());
        tree.walk(&mut |place, depth| {
            let (name, kind, note) = match tree.node(place) {
                TreeNode::Loop { spec, .. } => (
                    loop_name(graph, spec),
                    RowKind::Loop(spec.annotation),
                    rounds(graph, tree, place, spec, binding),
                ),
                TreeNode::Leaf(node) => (
                    graph.node_name(*node),
                    RowKind::Step,
                    kept(graph, *node, held.get(node), binding),
                ),
            };
            let delegate = tree.delegate(place).filter(|_| depth == 0);
            rows.push(Row {
                place,
                depth,
                name,
                kind,
                delegate: delegate.map(str::to_owned),
                note,
                share: shares.get(&place).copied().unwrap_or(0.0),
            });
        });
        let estimate = match &estimate {
            Ok(estimate) => estimate_text(graph, estimate, &held, binding),
            Err(error) => format!("the cost model does not know this plan: {error}\n"),
        };
        Scene {
            rows,
            schedule: plan.to_string(),
            estimate,
        }
    }

    /// The number of the line of a place.
    pub(crate) fn row_of(&self, place: TreeRef) -> Option<usize> {
        self.rows.iter().position(|row| row.place == place)
    }
}

/// A loop as it is written: `i/8`.
pub(crate) fn loop_name(graph: &Graph, spec: &LoopSpec) -> String {
    let dim = &graph.dim(spec.dim).name;
    match spec.step {
        1 => dim.clone(),
        step => format!("{dim}/{step}"),
    }
}

/// How often a loop runs.
fn rounds(
    graph: &Graph,
    tree: &LoopTree,
    place: TreeRef,
    spec: &LoopSpec,
    binding: &Binding,
) -> String {
    // An outer loop over the same dimension leaves one of its steps to this one.
    let around = tree.ancestors(place);
    let mut outer = around.iter().rev().filter_map(|above| tree.spec(*above));
    let covered = match outer.find(|above| above.dim == spec.dim) {
        Some(outer) => outer.step,
        None => size(graph, binding, spec),
    };
    let times = (covered.max(0) as u64).div_ceil(spec.step.max(1) as u64);
    match covered % spec.step.max(1) {
        0 => format!("×{times}"),
        tail => format!("×{times}, tail {tail}"),
    }
}

fn size(graph: &Graph, binding: &Binding, spec: &LoopSpec) -> i64 {
    let size = &graph.dim(spec.dim).size;
    let value = size.evaluate(&|symbol| Some(binding.value(symbol)));
    value.unwrap_or(0)
}

/// The result of a step, and where it is kept.
fn kept(graph: &Graph, node: NodeId, allocation: Option<&Allocation>, binding: &Binding) -> String {
    let parts = graph.node(node);
    let dims = parts.dims.iter().map(|dim| graph.dim(*dim).name.as_str());
    let dims: Vec<&str> = dims.collect();
    let mut text = format!("{}[{}]", parts.dtype, dims.join(","));
    if let Some(allocation) = allocation {
        let _ = write!(text, " → {}", place_of(graph, allocation, binding));
    }
    text
}

fn place_of(graph: &Graph, allocation: &Allocation, binding: &Binding) -> String {
    let elements = allocation.elements().ok().and_then(|elements| {
        let value = elements.evaluate(&|symbol| Some(binding.value(symbol)));
        value.ok()
    });
    let bytes = elements.unwrap_or(0).max(0) as u64 * allocation.dtype.bytes() as u64;
    let place = match allocation.storage {
        Storage::Output(at) => {
            let output = graph.outputs().get(at as usize);
            format!("output {}", output.map_or("", |output| &output.name))
        }
        Storage::State(state) => format!("state {}", graph.node_name(state)),
        Storage::Private => "private".to_owned(),
        Storage::Scratch => "scratch".to_owned(),
    };
    format!("{place}, {}", units::bytes(bytes))
}

/// By step, where its result is kept.
type Held = FxHashMap<NodeId, Allocation>;

fn estimate_text(graph: &Graph, estimate: &Estimate, held: &Held, binding: &Binding) -> String {
    let total = estimate.seconds;
    let mut text = format!("the whole program: {}\n", units::seconds(total));
    let sum: f64 = estimate.steps.iter().map(|step| step.seconds).sum();
    for step in &estimate.steps {
        let share = if sum > 0.0 { step.seconds / sum } else { 0.0 };
        let [_, l2, l3, memory] = step.bytes.map(|bytes| units::bytes(bytes as u64));
        let _ = writeln!(
            text,
            "\n{}: {:.0}%, {}\n  {}\n  {} flop; {l2} from L2, {l3} from L3, {memory} from memory",
            graph.node_name(step.node),
            share * 100.0,
            units::seconds(step.seconds),
            step.reason(graph),
            units::amount(step.flops),
        );
        if let Some(allocation) = held.get(&step.node) {
            let _ = writeln!(text, "  result: {}", place_of(graph, allocation, binding));
        }
    }
    text
}
