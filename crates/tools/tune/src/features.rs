//! What a loop looks like, as numbers: what a search of one's own can learn from.

use loopwright_arena::TiVec;
use loopwright_graph::{Binding, DimId, Graph, NodeId, NodeOp, SymbolInfo};
use loopwright_looptree::{
    Access, Annotation, LoopName, NodeSchedule, Plan, Stride, accesses, carries,
};
use loopwright_symbolic::{Symbol, affine};
use rustc_hash::FxHashSet;

/// How many numbers describe a loop.
pub const FEATURE_COUNT: usize = 20;

/// The name of each number of [`LoopFeatures::values`], and what it says.
pub const FEATURES: [(&str, &str); FEATURE_COUNT] = [
    ("rounds", "log2 of how often the loop runs"),
    ("step", "log2 of the elements from one round to the next"),
    ("depth", "loops of the step around it"),
    ("height", "loops of the step inside it"),
    ("serial", "1 if its rounds run one after the other"),
    ("parallel", "1 if its rounds run on several threads"),
    ("vectorize", "1 if its rounds are the lanes of vectors"),
    ("unroll", "1 if its rounds are written out"),
    ("carried", "1 if a round needs the one before"),
    ("tail", "1 if the last round is shorter"),
    ("shared", "steps beside this one that run inside the loop"),
    (
        "reads_stay",
        "reads that stay where they are from round to round",
    ),
    ("reads_next", "reads that move to the next element"),
    ("reads_far", "reads that move further"),
    ("writes_stay", "1 if the result's element stays"),
    ("writes_next", "1 if the result moves to the next element"),
    ("writes_far", "1 if the result moves further"),
    ("footprint", "log2 of 1 + the bytes that one round touches"),
    ("flops", "log2 of 1 + the operations of one round"),
    ("program", "log2 of 1 + the operations of the step in a run"),
];

/// A loop of a step, as numbers.
#[derive(Clone, PartialEq, Debug)]
pub struct LoopFeatures {
    /// The step.
    pub node: NodeId,
    /// Its loop.
    pub name: LoopName,
    /// The numbers, named by [`FEATURES`].
    pub values: [f64; FEATURE_COUNT],
}

/// The loops of one step with what is known about them at given sizes.
pub(crate) struct StepView<'a> {
    graph: &'a Graph,
    sizes: std::rc::Rc<TiVec<DimId, i64>>,
    pub(crate) step: &'a NodeSchedule,
    reads: Vec<Access>,
    /// Operations for one innermost element.
    per_element: f64,
}

impl<'a> StepView<'a> {
    /// The steps of a plan, in order. A step whose indices cannot be computed has no reads.
    pub(crate) fn all(plan: &'a Plan, binding: &Binding) -> Vec<StepView<'a>> {
        let graph = plan.graph();
        let sizes = std::rc::Rc::new(dim_sizes(graph, binding));
        let steps: FxHashSet<NodeId> = plan.schedule().steps.iter().map(|step| step.node).collect();
        let scheduled = |node: NodeId| steps.contains(&node);
        let views = plan.schedule().steps.iter().map(|step| StepView {
            graph,
            sizes: std::rc::Rc::clone(&sizes),
            step,
            reads: accesses(graph, step.node, &scheduled).unwrap_or_default(),
            per_element: element_flops(graph, &scheduled, step.node),
        });
        views.collect()
    }

    pub(crate) fn size(&self, dim: DimId) -> i64 {
        self.sizes[dim]
    }

    /// Elements of a dimension that the loops behind the first `depth` ones cover.
    pub(crate) fn extent(&self, dim: DimId, depth: usize) -> i64 {
        let outer = &self.step.loops[..depth.min(self.step.loops.len())];
        let covered = outer.iter().rev().find(|spec| spec.dim == dim);
        covered.map_or_else(|| self.size(dim), |spec| spec.step.min(self.size(dim)))
    }

    /// How often the loop at `depth` runs, each time it is come to.
    pub(crate) fn rounds(&self, depth: usize) -> i64 {
        let spec = self.step.loops[depth];
        let covered = self.extent(spec.dim, depth);
        covered / spec.step + i64::from(covered % spec.step > 0)
    }

    /// Operations of the step behind the first `depth` loops.
    pub(crate) fn flops(&self, depth: usize) -> f64 {
        let inner = (depth..self.step.loops.len()).map(|at| self.rounds(at) as f64);
        inner.product::<f64>() * self.per_element
    }

    /// Bytes of each array that is touched behind the first `depth` loops: the reads, then the result.
    pub(crate) fn touched(&self, depth: usize) -> Vec<f64> {
        let reads = self.reads.iter().map(|read| self.read_bytes(read, depth));
        let parts = self.graph.node(self.step.node);
        let result = parts.dims.iter().map(|dim| self.extent(*dim, depth) as f64);
        let result = result.product::<f64>() * parts.dtype.bytes() as f64;
        reads.chain([result]).collect()
    }

    fn read_bytes(&self, read: &Access, depth: usize) -> f64 {
        let array = self.graph.node(read.node);
        let symbols: Vec<_> = self.graph.dims().iter().map(|dim| dim.index).collect();
        let mut elements = 1.0;
        for (index, dim) in read.index.iter().zip(&array.dims) {
            let whole = self.size(*dim);
            let form = index.as_ref().and_then(|index| affine(index, &symbols));
            let span = form.map_or(whole, |form| {
                let spans = form.coefficients.iter().map(|(symbol, by)| {
                    let dim = self
                        .graph
                        .dim_ids()
                        .find(|d| self.graph.dim(*d).index == *symbol);
                    let extent = dim.map_or(1, |dim| self.extent(dim, depth));
                    by.as_const()
                        .unwrap_or(1)
                        .saturating_abs()
                        .saturating_mul(extent - 1)
                });
                1 + spans.fold(0i64, i64::saturating_add)
            });
            elements *= span.min(whole) as f64;
        }
        elements * array.dtype.bytes() as f64
    }

    /// How each read moves with a loop's dimension.
    pub(crate) fn strides(&self, dim: DimId) -> impl Iterator<Item = Stride> + '_ {
        let symbol = self.graph.dim(dim).index;
        self.reads.iter().map(move |read| read.stride(symbol))
    }

    /// How the result moves with a loop's dimension.
    pub(crate) fn write_stride(&self, dim: DimId) -> Stride {
        let dims = &self.graph.node(self.step.node).dims;
        match dims.iter().position(|own| *own == dim) {
            None => Stride::Zero,
            Some(at) if at + 1 == dims.len() => Stride::One,
            Some(_) => Stride::Other,
        }
    }

    pub(crate) fn carried(&self, dim: DimId) -> bool {
        carries(self.graph, self.step.node, dim)
    }
}

/// The sizes of a plan's dimensions, at least 1. Its graph may have more of them than the program that the
/// binding is of.
fn dim_sizes(graph: &Graph, binding: &Binding) -> TiVec<DimId, i64> {
    let value = |symbol: Symbol| match graph.symbol(symbol) {
        SymbolInfo::Size { .. } | SymbolInfo::Static { .. } => Some(binding.value(symbol)),
        SymbolInfo::Index(_) => Some(0),
    };
    let sizes = graph.dims().iter();
    sizes
        .map(|dim| dim.size.evaluate(&value).unwrap_or(1).max(1))
        .collect()
}

/// The numbers of every loop of a plan, step by step, outermost loops first.
pub fn features(plan: &Plan, binding: &Binding) -> Vec<LoopFeatures> {
    let tree = plan.tree();
    let mut found = Vec::new();
    for view in StepView::all(plan, binding) {
        let around = tree.find(view.step.node).map(|leaf| tree.ancestors(leaf));
        for (depth, spec) in view.step.loops.iter().enumerate() {
            let is = |annotation: Annotation| flag(spec.annotation == annotation);
            let count = |wanted: Stride| {
                let strides = view.strides(spec.dim);
                strides.filter(|stride| *stride == wanted).count() as f64
            };
            let place = around
                .as_ref()
                .and_then(|around| around.get(depth).copied());
            let sharers = place.map_or(0, |place| tree.leaves(place).len().saturating_sub(1));
            let covered = view.extent(spec.dim, depth);
            let written = view.write_stride(spec.dim);
            found.push(LoopFeatures {
                node: view.step.node,
                name: LoopName::from(*spec),
                values: [
                    (view.rounds(depth).max(1) as f64).log2(),
                    (spec.step as f64).log2(),
                    depth as f64,
                    (view.step.loops.len() - depth - 1) as f64,
                    is(Annotation::Serial),
                    is(Annotation::Parallel),
                    is(Annotation::Vectorize),
                    is(Annotation::Unroll),
                    flag(view.carried(spec.dim)),
                    flag(covered % spec.step != 0),
                    sharers as f64,
                    count(Stride::Zero),
                    count(Stride::One),
                    count(Stride::Other),
                    flag(written == Stride::Zero),
                    flag(written == Stride::One),
                    flag(written == Stride::Other),
                    (1.0 + view.touched(depth + 1).iter().sum::<f64>()).log2(),
                    (1.0 + view.flops(depth + 1)).log2(),
                    (1.0 + view.flops(0)).log2(),
                ],
            });
        }
    }
    found
}

fn flag(holds: bool) -> f64 {
    f64::from(u8::from(holds))
}

/// Operations for one innermost element of a step, with what it computes inline.
fn element_flops(graph: &Graph, scheduled: &dyn Fn(NodeId) -> bool, step: NodeId) -> f64 {
    let own = |node: NodeId| match &graph.node(node).op {
        NodeOp::Map(op) => f64::from(op.info().flops),
        NodeOp::Reduce { op, .. } | NodeOp::Scan { op, .. } => f64::from(op.combine().info().flops),
        _ => 0.0,
    };
    let mut sum = own(step);
    let mut seen = FxHashSet::default();
    let mut open: Vec<NodeId> = graph.node(step).inputs.to_vec();
    while let Some(node) = open.pop() {
        if !scheduled(node) && seen.insert(node) {
            sum += own(node);
            open.extend(graph.node(node).inputs.iter());
        }
    }
    sum
}
