//! A case with something changed: the graph built anew, inputs and schedule carried over.

mod disturb;

pub(crate) use disturb::Disturbance;

use crate::generate::{Case, plain_schedule, random_array};
use crate::rng::Rng;
use loopwright_arena::{TiSlice, TiVec};
use loopwright_graph::{
    Array, DimId, Graph, GraphBuilder, GraphEditor, GraphError, Node, NodeId, NodeOp, SymbolInfo,
    View, evaluate,
};
use loopwright_looptree::{
    Annotation, LoopName, LoopSpec, LoopTree, NodeSchedule, Schedule, can_inline, carries,
    is_given, loop_dims,
};
use loopwright_symbolic::{Expr, Symbol};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// What is changed.
#[derive(Clone, Debug)]
pub(crate) enum Edit {
    /// An output is left out.
    DropOutput(usize),
    /// A state keeps its value.
    DropUpdate(usize),
    /// A node is replaced.
    Replace(NodeId, Replacement),
    /// A dimension gets another, smaller, size.
    Dim(DimId, i64),
    /// A size gets another, smaller, value.
    Size(String, i64),
    /// Dimensions, sizes, inputs and states that nothing needs are left out.
    Unused,
    /// The results of some nodes are disturbed.
    Disturb(Vec<Disturbance>),
}

/// What stands in place of a node.
#[derive(Clone, Debug)]
pub(crate) enum Replacement {
    /// Another node, of the same dtype and over the same dimensions.
    Node(NodeId),
    /// A new input with these values.
    Input(Array),
}

/// The changed case; `None` where the change is not possible.
pub(crate) fn rebuild(case: &Case, edit: &Edit) -> Option<Case> {
    Rebuild::new(case, edit).run().ok().flatten()
}

/// The values of all nodes, by node.
pub(crate) fn node_values(case: &Case) -> Option<Vec<Array>> {
    let mut builder = GraphBuilder::from_graph(&case.graph);
    for node in case.graph.node_ids() {
        builder.output(&format!("value of {}", node.0), node).ok()?;
    }
    let graph = builder.finish().ok()?;
    let binding = graph.bind(&case.sizes()).ok()?;
    let values = evaluate(&graph, &binding, &case.inputs).ok()?;
    let given = case.graph.outputs().len();
    let count = case.graph.node_ids().count();
    Some(
        values
            .into_iter()
            .skip(given)
            .take(count)
            .map(|(_, array)| array)
            .collect(),
    )
}

struct Rebuild<'a> {
    case: &'a Case,
    old: &'a Graph,
    edit: &'a Edit,
    builder: GraphBuilder,
    symbols: TiVec<Symbol, Option<Symbol>>,
    dims: TiVec<DimId, Option<DimId>>,
    nodes: TiVec<NodeId, Option<NodeId>>,
    inputs: Vec<(NodeId, Array)>,
    live: TiVec<NodeId, bool>,
}

impl<'a> Rebuild<'a> {
    fn new(case: &'a Case, edit: &'a Edit) -> Rebuild<'a> {
        let old = &case.graph;
        Rebuild {
            case,
            old,
            edit,
            builder: GraphBuilder::new(),
            symbols: vec![None; old.symbols().len()].into(),
            dims: vec![None; old.dims().len()].into(),
            nodes: vec![None; old.node_ids().count()].into(),
            inputs: Vec::new(),
            live: TiVec::new(),
        }
    }

    fn run(mut self) -> Result<Option<Case>, GraphError> {
        self.live = self.live_nodes();
        self.declare()?;
        for node in self.old.node_ids() {
            if !self.live[node] {
                continue;
            }
            let Some(new) = self.node(node)? else {
                return Ok(None);
            };
            self.nodes[node] = Some(new);
        }
        self.results()?;
        let graph = std::mem::take(&mut self.builder).finish()?;
        let sizes: Vec<(String, i64)> = self
            .sizes()
            .into_iter()
            .filter(|(name, _)| graph.integers().any(|(_, found, _)| found == name))
            .collect();
        let mut case = Case {
            graph,
            schedule: None,
            sizes,
            inputs: std::mem::take(&mut self.inputs),
            arithmetic: self.case.arithmetic,
        };
        if let Some(schedule) = &self.case.schedule {
            case.schedule = Some(self.schedule(&case.graph, schedule));
        }
        Ok(Some(case))
    }

    fn sizes(&self) -> Vec<(String, i64)> {
        let mut sizes = self.case.sizes.clone();
        if let Edit::Size(changed, smaller) = self.edit {
            for (name, value) in &mut sizes {
                if name == changed {
                    *value = *smaller;
                }
            }
        }
        sizes
    }

    fn kept_outputs(
        &self,
    ) -> impl Iterator<Item = (usize, &'a loopwright_graph::Output)> + use<'a> {
        let dropped = match self.edit {
            Edit::DropOutput(at) => Some(*at),
            _ => None,
        };
        let outputs = self.old.outputs().iter().enumerate();
        outputs.filter(move |(at, _)| Some(*at) != dropped)
    }

    fn kept_updates(
        &self,
    ) -> impl Iterator<Item = (usize, &'a loopwright_graph::Update)> + use<'a> {
        let dropped = match self.edit {
            Edit::DropUpdate(at) => Some(*at),
            _ => None,
        };
        let updates = self.old.updates().iter().enumerate();
        updates.filter(move |(at, _)| Some(*at) != dropped)
    }

    fn live_nodes(&self) -> TiVec<NodeId, bool> {
        let mut live: TiVec<NodeId, _> = vec![false; self.old.node_ids().count()].into();
        let outputs = self.kept_outputs().map(|(_, output)| output.node);
        let updates = self
            .kept_updates()
            .flat_map(|(_, update)| [update.state, update.value]);
        for node in outputs.chain(updates) {
            live[node] = true;
        }
        for node in self.old.node_ids().rev() {
            if !live[node] {
                continue;
            }
            match self.edit {
                Edit::Replace(replaced, Replacement::Node(by)) if *replaced == node => {
                    live[*by] = true;
                }
                Edit::Replace(replaced, Replacement::Input(_)) if *replaced == node => {}
                _ => {
                    for input in &self.old.node(node).inputs {
                        live[*input] = true;
                    }
                }
            }
        }
        live
    }

    /// Which symbols are needed, for [`Edit::Unused`].
    fn used_symbols(&self) -> TiVec<Symbol, bool> {
        let old = self.old;
        let mut used: TiVec<Symbol, _> =
            vec![!matches!(self.edit, Edit::Unused); old.symbols().len()].into();
        let mark = |used: &mut TiSlice<Symbol, bool>, expr: &Expr| {
            for symbol in expr.symbols() {
                used[symbol] = true;
            }
        };
        for node in old.node_ids().filter(|node| self.live[*node]) {
            let parts = old.node(node);
            for dim in loop_dims(old, node).iter().chain(&parts.dims) {
                used[old.dim(*dim).index] = true;
            }
            match &parts.op {
                NodeOp::View(view) => {
                    view.map
                        .iter()
                        .chain(&view.constraints)
                        .for_each(|e| mark(&mut used, e));
                }
                NodeOp::Size(size) => mark(&mut used, size),
                _ => {}
            }
        }
        for found in old.statics() {
            if used[found.symbol] {
                mark(&mut used, found.lo);
                mark(&mut used, found.hi);
            }
        }
        for dim in old.dims() {
            if used[dim.index] {
                mark(&mut used, &dim.size);
            }
        }
        used
    }

    fn declare(&mut self) -> Result<(), GraphError> {
        let old = self.old;
        let used = self.used_symbols();
        for (at, info) in old.symbols().iter_enumerated() {
            if !used[at] {
                continue;
            }
            self.symbols[at] = Some(match info {
                SymbolInfo::Size { name, default } => self.builder.size(name, *default)?,
                SymbolInfo::Static { .. } => continue,
                SymbolInfo::Index(dim) => {
                    let new = self.builder.dim(&old.dim(*dim).name)?;
                    self.dims[*dim] = Some(new);
                    self.builder.index_symbol(new)
                }
            });
        }
        // The range of a static is made of sizes.
        for found in old.statics().filter(|found| used[found.symbol]) {
            let (lo, hi) = (self.expr(found.lo)?, self.expr(found.hi)?);
            let symbol = self
                .builder
                .static_symbol(found.name, lo, hi, found.default)?;
            self.symbols[found.symbol] = Some(symbol);
        }
        for dim in old.dim_ids() {
            let Some(new) = self.dims[dim] else {
                continue;
            };
            let size = match self.edit {
                Edit::Dim(changed, size) if *changed == dim => Expr::constant(*size),
                _ => self.expr(&old.dim(dim).size)?,
            };
            self.builder.set_size(new, size, "the program before");
        }
        Ok(())
    }

    fn expr(&self, expr: &Expr) -> Result<Expr, GraphError> {
        let replaced = expr.substitute(&|symbol| {
            let new = self.symbols.get(symbol).copied().flatten();
            new.map(Expr::symbol)
        });
        Ok(replaced?)
    }

    fn dim(&self, dim: DimId) -> DimId {
        // A live node's dimensions are all declared.
        self.dims[dim].unwrap_or(dim)
    }

    fn dim_list(&self, dims: &[DimId]) -> Vec<DimId> {
        dims.iter().map(|dim| self.dim(*dim)).collect()
    }

    fn node(&mut self, node: NodeId) -> Result<Option<NodeId>, GraphError> {
        let parts = self.old.node(node).clone();
        let dims = self.dim_list(&parts.dims);
        if let Edit::Replace(replaced, by) = self.edit
            && *replaced == node
        {
            return match by {
                Replacement::Node(other) => Ok(self.nodes[*other]),
                Replacement::Input(array) => {
                    let name = self.free_name(&format!("r{}", node.0));
                    let new = self.builder.input(&name, parts.dtype, &dims)?;
                    self.inputs.push((new, array.clone()));
                    Ok(Some(new))
                }
            };
        }
        let new = self.replay(node, &parts, &dims)?;
        let made = self.builder.node(new);
        if made.dims.as_slice() != dims.as_slice() || made.dtype != parts.dtype {
            return Ok(None);
        }
        let given = matches!(parts.op, NodeOp::Input | NodeOp::State);
        if given {
            let Some(array) = self.input_array(node) else {
                return Ok(None);
            };
            self.inputs.push((new, array));
        } else if !parts.name.is_empty() && self.builder.find(&parts.name).is_none() {
            self.builder.name(new, &parts.name)?;
        }
        if let Edit::Disturb(all) = self.edit
            && let Some(disturbance) = all.iter().find(|one| one.node == node)
        {
            return self.disturbed(new, disturbance).map(Some);
        }
        Ok(Some(new))
    }

    /// A name that neither graph has yet.
    fn free_name(&self, wanted: &str) -> String {
        let mut name = wanted.to_owned();
        while self.old.find(&name).is_some() || self.builder.find(&name).is_some() {
            name.push('_');
        }
        name
    }

    /// What a node reads, in the new graph.
    fn operands(&self, parts: &Node) -> SmallVec<[NodeId; 3]> {
        let inputs = parts.inputs.iter();
        inputs
            .map(|input| self.nodes[*input].unwrap_or(*input))
            .collect()
    }

    fn replay(&mut self, node: NodeId, parts: &Node, dims: &[DimId]) -> Result<NodeId, GraphError> {
        let inputs = self.operands(parts);
        match &parts.op {
            NodeOp::Input => self.builder.input(&parts.name, parts.dtype, dims),
            NodeOp::State => self.builder.state(&parts.name, parts.dtype, dims),
            NodeOp::Constant(values) if dims.is_empty() => Ok(self.builder.constant(values[0])),
            NodeOp::Constant(values) => {
                let shape = self.shape(node, &self.case.sizes);
                let whole = Array::from_scalars(parts.dtype, &shape, values);
                let kept = whole.ok().and_then(|whole| self.sliced(node, &whole));
                let values = kept.map_or(values.to_vec(), |array| array.iter().collect());
                self.builder.constant_array(parts.dtype, dims, values)
            }
            NodeOp::Index(dim) => self.builder.index(self.dim(*dim), parts.dtype),
            NodeOp::Size(size) => {
                let size = self.expr(size)?;
                self.builder.size_value(size)
            }
            NodeOp::Map(op) => self.builder.map(*op, &inputs),
            NodeOp::Cast => Ok(self.builder.cast(inputs[0], parts.dtype)),
            NodeOp::Bitcast => self.builder.bitcast(inputs[0], parts.dtype),
            NodeOp::Reduce { op, over, acc } => {
                let over = self.dim_list(over);
                self.builder.reduce(*op, inputs[0], &over, Some(*acc))
            }
            NodeOp::ArgReduce { largest, over } => {
                self.builder
                    .arg_reduce(*largest, inputs[0], self.dim(*over))
            }
            NodeOp::Scan {
                op,
                over,
                acc,
                exclusive,
                reverse,
            } => {
                let over = self.dim(*over);
                let acc = Some(*acc);
                self.builder
                    .scan(*op, inputs[0], over, acc, *exclusive, *reverse)
            }
            NodeOp::Previous { over, outside, .. } => {
                self.builder.previous(dims, self.dim(*over), *outside)
            }
            NodeOp::View(view) => {
                let map: Result<SmallVec<[Expr; 4]>, GraphError> =
                    view.map.iter().map(|expr| self.expr(expr)).collect();
                let constraints: Result<Vec<Expr>, GraphError> = view
                    .constraints
                    .iter()
                    .map(|expr| self.expr(expr))
                    .collect();
                let view = View {
                    map: map?,
                    constraints: constraints?,
                    outside: view.outside,
                };
                self.builder.view(inputs[0], dims, view)
            }
            NodeOp::Gather { axis, outside } => {
                let axis = self.dim(*axis);
                self.builder
                    .gather(inputs[0], inputs[1], axis, Some(*outside))
            }
            NodeOp::Scatter { axis, combine } => {
                let axis = self.dim(*axis);
                self.builder
                    .scatter(inputs[0], inputs[1], inputs[2], axis, *combine)
            }
            NodeOp::Sort { over, descending } => {
                self.builder.sort(inputs[0], self.dim(*over), *descending)
            }
            NodeOp::ArgSort { over, descending } => {
                self.builder
                    .arg_sort(inputs[0], self.dim(*over), *descending)
            }
        }
    }

    fn results(&mut self) -> Result<(), GraphError> {
        for delay in self.old.delays() {
            let node = self.nodes[delay.node];
            let of = self.nodes[delay.of];
            if let (Some(node), Some(of)) = (node, of)
                && matches!(self.builder.node(node).op, NodeOp::Previous { .. })
            {
                self.builder.close_previous(node, of)?;
            }
        }
        for (_, output) in self.kept_outputs() {
            if let Some(node) = self.nodes[output.node] {
                self.builder.output(&output.name, node)?;
            }
        }
        for (_, update) in self.kept_updates() {
            let state = self.nodes[update.state];
            let value = self.nodes[update.value];
            if let (Some(state), Some(value)) = (state, value) {
                self.builder.update(state, value)?;
            }
        }
        Ok(())
    }

    /// The shape of a node of the old graph with these sizes.
    fn shape(&self, node: NodeId, sizes: &[(String, i64)]) -> Vec<usize> {
        let given: Vec<(&str, i64)> = sizes.iter().map(|(name, n)| (name.as_str(), *n)).collect();
        let Ok(binding) = self.old.bind(&given) else {
            return Vec::new();
        };
        let shape = self
            .old
            .node(node)
            .dims
            .iter()
            .map(|dim| binding.size(*dim));
        shape.map(|size| size as usize).collect()
    }

    fn input_array(&self, node: NodeId) -> Option<Array> {
        let (_, array) = self.case.inputs.iter().find(|(given, _)| *given == node)?;
        self.sliced(node, array)
    }

    /// The first elements of an array along every dimension, as many as there are now.
    fn sliced(&self, node: NodeId, array: &Array) -> Option<Array> {
        let mut shape = self.shape(node, &self.sizes());
        if let Edit::Dim(changed, smaller) = self.edit {
            for (size, dim) in shape.iter_mut().zip(&self.old.node(node).dims) {
                if dim == changed {
                    *size = *smaller as usize;
                }
            }
        }
        if shape == array.shape() {
            return Some(array.clone());
        }
        if shape.iter().zip(array.shape()).any(|(new, old)| new > old) {
            // What there is does not reach; the values are any, and the same every time.
            let mut rng = Rng::new(u64::from(node.0));
            let arithmetic = self.case.arithmetic;
            return Some(random_array(&mut rng, array.dtype(), &shape, arithmetic));
        }
        let mut sliced = Array::zeros(array.dtype(), &shape).ok()?;
        for flat in 0..sliced.len() {
            let mut rest = flat;
            let mut index = vec![0; shape.len()];
            for at in (0..shape.len()).rev() {
                index[at] = rest % shape[at];
                rest /= shape[at];
            }
            sliced.set_flat(flat, array.get(&index));
        }
        Some(sliced)
    }

    /// The old schedule as far as it fits, repaired where it does not.
    fn schedule(&self, graph: &Graph, schedule: &Schedule) -> Schedule {
        let program = graph.clone().with_stores();
        let carried = self.carry_edits(&program, schedule);
        for plainly in [false, true] {
            let steps = self.steps(&carried, schedule, plainly);
            let schedule = Schedule {
                edits: carried.edits.clone(),
                steps: in_order(&carried.new, steps),
            };
            if LoopTree::new(&carried.new, &schedule).is_ok() {
                return schedule;
            }
        }
        plain_schedule(&program)
    }

    /// The changes that a schedule makes to the old program, made to the new one as far as they fit it.
    fn carry_edits(&self, program: &Graph, schedule: &Schedule) -> Carried {
        let mut old = self.old.clone().with_stores();
        let mut carried = Carried {
            edits: Vec::new(),
            nodes: FxHashMap::default(),
            dims: FxHashMap::default(),
            new: program.clone(),
        };
        let old_dims = self.dims.iter_enumerated();
        let kept = old_dims.filter_map(|(at, dim)| Some((at, (*dim)?)));
        carried.dims.extend(kept);
        for node in old.node_ids() {
            if let Some(new) = self.step_node(&old, program, node) {
                carried.nodes.insert(node, new);
            }
        }
        for edit in &schedule.edits {
            let Some(after) = applied(edit, &old) else {
                break;
            };
            carried.carry(edit, &old, &after);
            old = after;
        }
        carried
    }

    /// Every step that there still is, and those that there must be; `plainly`: with loops over their own
    /// dimensions alone, in row-major memory.
    fn steps(&self, carried: &Carried, schedule: &Schedule, plainly: bool) -> Vec<NodeSchedule> {
        let new = &carried.new;
        let mut steps: Vec<NodeSchedule> = Vec::new();
        for step in &schedule.steps {
            if let Some(node) = carried.nodes.get(&step.node).copied()
                && !is_given(new, node)
                && !steps.iter().any(|other| other.node == node)
            {
                steps.push(NodeSchedule {
                    share: step.share,
                    delegate: step.delegate.clone(),
                    layout: match plainly {
                        true => None,
                        false => carried.layout(step),
                    },
                    ..NodeSchedule::new(node, carried.step_loops(node, step, plainly))
                });
            }
        }
        let results = new.outputs().iter().map(|output| output.node);
        let stores = new.updates().iter().map(|update| update.value);
        let results: Vec<NodeId> = results.chain(stores).collect();
        for node in new.node_ids() {
            let needed =
                !is_given(new, node) && (!can_inline(new, node) || results.contains(&node));
            if needed && !steps.iter().any(|step| step.node == node) {
                let loops = loop_dims(new, node).into_iter().map(LoopSpec::over);
                steps.push(NodeSchedule::new(node, loops));
            }
        }
        steps
    }

    /// The node that a step is for now.
    fn step_node(&self, old: &Graph, new: &Graph, node: NodeId) -> Option<NodeId> {
        for output in old.outputs().iter().filter(|output| output.node == node) {
            let found = new.outputs().iter().find(|other| other.name == output.name);
            if let Some(found) = found {
                return Some(found.node);
            }
        }
        for update in old.updates().iter().filter(|update| update.value == node) {
            let name = &old.node(update.state).name;
            let found = new
                .updates()
                .iter()
                .find(|other| new.node(other.state).name == *name);
            if let Some(found) = found {
                return Some(found.value);
            }
        }
        self.nodes.get(node).copied().flatten()
    }
}

/// A graph with a change made; `None` where it does not fit.
fn applied(edit: &loopwright_looptree::Edit, graph: &Graph) -> Option<Graph> {
    let mut editor = GraphEditor::new(graph);
    edit.apply(&mut editor).ok()?;
    Some(editor.finish())
}

/// What a schedule changes of a program, carried over to another one.
struct Carried {
    edits: Vec<loopwright_looptree::Edit>,
    /// By node and dimension of the old program with its changes: those of the new one.
    nodes: FxHashMap<NodeId, NodeId>,
    dims: FxHashMap<DimId, DimId>,
    /// The new program with the changes that fit it.
    new: Graph,
}

impl Carried {
    /// Makes a change of the old program, which turned `before` into `after`, if it fits the new one.
    fn carry(&mut self, edit: &loopwright_looptree::Edit, before: &Graph, after: &Graph) {
        let Some(edit) = self.edit(edit) else {
            return;
        };
        let Some(new) = applied(&edit, &self.new) else {
            return;
        };
        let first = self.new.node_ids().count();
        let made: Vec<NodeId> = new.node_ids().skip(first).collect();
        let old_made: Vec<NodeId> = after.node_ids().skip(before.node_ids().count()).collect();
        let alike = made.len() == old_made.len();
        for (at, node) in old_made.into_iter().enumerate() {
            // Other sizes may leave no rest, or make one.
            let same = match alike {
                true => Some(made[at]),
                false => new.find(&after.node(node).name),
            };
            self.nodes.extend(same.map(|same| (node, same)));
        }
        for dim in after.dim_ids().skip(before.dims().len()) {
            let same = new.find_dim(&after.dim(dim).name);
            self.dims.extend(same.map(|same| (dim, same)));
        }
        self.new = new;
        self.edits.push(edit);
    }

    /// A change in terms of the new program; `None` if that has not all of what it names.
    fn edit(&self, edit: &loopwright_looptree::Edit) -> Option<loopwright_looptree::Edit> {
        use loopwright_looptree::Edit;
        let node = |node: &NodeId| self.nodes.get(node).copied();
        Some(match edit {
            Edit::Copy { name, of, readers } => Edit::Copy {
                name: name.clone(),
                of: node(of)?,
                readers: readers.iter().map(node).collect::<Option<_>>()?,
            },
            Edit::Pad { name, view } => Edit::Pad {
                name: name.clone(),
                view: node(view)?,
            },
            Edit::Stage {
                name,
                node: staged,
                dim,
                count,
                keep,
            } => Edit::Stage {
                name: name.clone(),
                node: node(staged)?,
                dim: self.dims.get(dim).copied()?,
                count: *count,
                keep: *keep,
            },
        })
    }

    /// The order of a step's elements in memory; `None` where a dimension is gone.
    fn layout(&self, step: &NodeSchedule) -> Option<SmallVec<[LoopName; 4]>> {
        let names = step.layout.as_ref()?.iter();
        let names = names.map(|name| {
            let dim = self.dims.get(&name.dim).copied()?;
            Some(LoopName { dim, ..*name })
        });
        names.collect()
    }

    fn step_loops(
        &self,
        node: NodeId,
        step: &NodeSchedule,
        plainly: bool,
    ) -> SmallVec<[LoopSpec; 8]> {
        let new = &self.new;
        let dims = loop_dims(new, node);
        let mut loops: SmallVec<[LoopSpec; 8]> = SmallVec::new();
        for spec in &step.loops {
            let dim = self.dims.get(&spec.dim).copied();
            let Some(dim) = dim.filter(|dim| !plainly || dims.contains(dim)) else {
                continue;
            };
            let mut spec = LoopSpec { dim, ..*spec };
            if carries(new, node, dim) && spec.annotation.is_concurrent() {
                spec.annotation = Annotation::Serial;
            }
            loops.push(spec);
        }
        for dim in dims {
            if !loops.iter().any(|spec| spec.dim == dim && spec.step == 1) {
                loops.push(LoopSpec::over(dim));
            }
        }
        loops
    }
}

/// The steps in an order in which each comes after what it reads, otherwise as they are.
fn in_order(graph: &Graph, mut steps: Vec<NodeSchedule>) -> Vec<NodeSchedule> {
    let mut scheduled: TiVec<NodeId, _> = vec![false; graph.node_ids().count()].into();
    for step in &steps {
        scheduled[step.node] = true;
    }
    let mut done: TiVec<NodeId, _> = vec![false; scheduled.len()].into();
    let mut ordered = Vec::new();
    while !steps.is_empty() {
        let ready = steps.iter().position(|step| {
            let inputs = &graph.node(step.node).inputs;
            inputs
                .iter()
                .all(|input| crate::generate::available(graph, *input, &scheduled, &done))
        });
        let step = steps.remove(ready.unwrap_or(0));
        done[step.node] = true;
        ordered.push(step);
    }
    ordered
}
