//! From tensors to a graph.
//!
//! A tensor's axes have places, a graph's dimensions have identities: two nodes that share one are
//! indexed alike along it, and only then do their loops become one. So axes that run along with each
//! other are put into classes first, through the whole program, and a class becomes a dimension. No
//! tensor may have the same dimension twice: where two of its axes would fall together (`x + x.t()`), one
//! connection is left out, and there the graph gets a view that renames.
//!
//! Broadcasting along an axis and permuting axes are then no nodes at all.

mod loops;
mod names;

use crate::classes::Classes;
use crate::error::TensorError;
use crate::node::{Along, Kind, Mark, Node, Tensor, View};
use crate::program::Program;
use crate::size;
use loops::Loops;
use loopwright_graph::{DimId, Graph, GraphBuilder, GraphError, NodeId, View as GraphView};
use loopwright_ops::Op;
use loopwright_symbolic::{Expr, Symbol};
pub(crate) use names::{argument_name, input_name, output_name, size_name, variable_name};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// A program as a graph. Inputs are called as [`input_name`], [`variable_name`] and [`argument_name`] say,
/// by their order in the program; results as [`output_name`] says.
pub(crate) struct Lowered {
    pub(crate) graph: Graph,
}

/// What stands for a tensor in the graph: a node, and for each axis the dimension that it is there, or
/// `None` where the node is to be repeated along the axis.
#[derive(Clone)]
struct Value {
    node: NodeId,
    dims: Dims,
}

type Dims = SmallVec<[Option<DimId>; 4]>;

struct Lowering<'a> {
    builder: GraphBuilder,
    order: &'a [Tensor],
    at: FxHashMap<u64, usize>,
    /// The first axis of each tensor among all axes.
    first: Vec<usize>,
    /// By axis among all axes.
    dims: Vec<DimId>,
    values: Vec<Option<Value>>,
    /// Of all axes, over the symbols of the graph.
    sizes: Vec<Expr>,
    /// Open sizes of the program, and the symbols that they are in the graph.
    open: Vec<(Symbol, Expr)>,
    loops: Loops,
}

/// The graph that computes a program.
pub(crate) fn lower(program: &Program<'_>) -> Result<Lowered, TensorError> {
    let Program {
        order,
        results,
        updates,
        ..
    } = program;
    let mut lowering = Lowering::new(program)?;
    let (mut inputs, mut variables) = (0, 0);
    for (at, tensor) in order.iter().enumerate() {
        let node = &tensor.node;
        let name = match (&node.kind, program.is_given(at)) {
            (_, true) => {
                inputs += 1;
                Some(input_name(inputs - 1))
            }
            (Kind::Variable(_), false) => {
                variables += 1;
                Some(variable_name(variables - 1))
            }
            (Kind::Argument(argument), false) => Some(argument_name(*argument)),
            _ => None,
        };
        let value = match name {
            Some(name) => {
                let updated = updates.iter().any(|(old, _)| old.same(tensor));
                lowering.leaf(at, &name, updated)
            }
            None => lowering.node(at, node),
        };
        let value = value.map_err(|error| TensorError::at(error.into(), node.place))?;
        lowering.values[at] = Some(value);
    }
    for (at, result) in results.iter().enumerate() {
        lowering
            .result(result, &output_name(at))
            .map_err(|error| TensorError::at(error.into(), result.node.place))?;
    }
    for (old, new) in *updates {
        lowering
            .update(old, new)
            .map_err(|error| TensorError::at(error.into(), new.node.place))?;
    }
    let place = results.first().or(updates.first().map(|(_, new)| new));
    let place = place.expect("a program has a result").node.place;
    lowering
        .close_loops()
        .map_err(|error| TensorError::at(error.into(), place))?;
    let graph = lowering.builder.finish();
    let graph = graph.map_err(|error| TensorError::at(error.into(), place))?;
    Ok(Lowered { graph })
}

impl<'a> Lowering<'a> {
    fn new(program: &Program<'a>) -> Result<Lowering<'a>, TensorError> {
        let order = program.order;
        let at: FxHashMap<u64, usize> = order
            .iter()
            .enumerate()
            .map(|(at, tensor)| (tensor.node.id, at))
            .collect();
        let refuse = |error: GraphError| TensorError::at(error.into(), order[0].node.place);
        let mut builder = GraphBuilder::new();
        let mut open = Vec::with_capacity(program.open.len());
        for (at, symbol) in program.open.iter().enumerate() {
            let size = builder.size(&size_name(at), None).map_err(refuse)?;
            open.push((*symbol, Expr::symbol(size)));
        }
        let mut lowering = Lowering {
            builder,
            order,
            at,
            first: Vec::with_capacity(order.len()),
            dims: Vec::new(),
            values: vec![None; order.len()],
            sizes: Vec::new(),
            open,
            loops: Loops::new(program),
        };
        for tensor in order {
            lowering.first.push(lowering.sizes.len());
            for size in program.extents(tensor)? {
                let size = lowering.put(&size, &[]).map_err(refuse)?;
                lowering.sizes.push(size);
            }
        }
        lowering.make_dims(program).map_err(refuse)?;
        Ok(lowering)
    }

    /// An expression over the axes of a view's result and open sizes, as one over the graph's symbols.
    fn put(&self, expr: &Expr, axes: &[Expr]) -> Result<Expr, GraphError> {
        let replaced = size::resolve(expr).substitute(&|symbol| match size::symbol_axis(symbol) {
            Some(axis) => Some(axes[axis].clone()),
            None => {
                let known = self.open.iter().find(|(open, _)| *open == symbol);
                known.map(|(_, size)| size.clone())
            }
        });
        replaced.map_err(GraphError::from)
    }

    /// The axis of a tensor among all axes.
    fn slot(&self, tensor: &Tensor, axis: usize) -> usize {
        self.first[self.at[&tensor.node.id]] + axis
    }

    fn make_dims(&mut self, program: &Program<'_>) -> Result<(), GraphError> {
        let mut owner = vec![0; self.sizes.len()];
        for (at, tensor) in self.order.iter().enumerate() {
            owner[self.first[at]..self.first[at] + tensor.rank()].fill(at as u32);
        }
        let mut classes = Classes::new(owner);
        let links = self.links(program);
        let (along, backwards) = self.steps_of_loops(&links);
        // The steps of a loop are one dimension, whatever else would be: they come first.
        let first = links.iter().filter(|link| along[link.0] && along[link.1]);
        let tied = self.loops.carried.iter().map(|carried| self.tied(carried));
        let tied: Vec<(usize, usize)> = tied.collect();
        for (from, to) in tied.iter().chain(first).chain(&links) {
            if self.sizes[*from] == self.sizes[*to] && backwards[*from] == backwards[*to] {
                classes.join(*from, *to);
            }
        }
        // What any of the axes is called, the first with a name.
        let mut names: FxHashMap<usize, &str> = FxHashMap::default();
        for tensor in self.order {
            for (axis, description) in tensor.shape().axes().iter().enumerate() {
                if let Some(name) = &description.name {
                    let class = classes.find(self.slot(tensor, axis));
                    names.entry(class).or_insert(name);
                }
            }
        }
        let mut made: FxHashMap<usize, DimId> = FxHashMap::default();
        for tensor in self.order {
            for axis in 0..tensor.rank() {
                let slot = self.slot(tensor, axis);
                let class = classes.find(slot);
                let dim = match made.get(&class) {
                    Some(dim) => *dim,
                    None => {
                        let size = self.sizes[slot].clone();
                        let dim = self.new_dim(names.get(&class).copied(), size.clone())?;
                        made.insert(class, dim);
                        if backwards[slot] {
                            self.loops.backwards.insert(dim, size);
                        }
                        dim
                    }
                };
                self.dims.push(dim);
            }
        }
        Ok(())
    }

    fn builder_dims(&self) -> usize {
        self.dims.len()
    }

    /// The dimensions of a tensor's classes, in the order of its axes.
    fn own_dims(&self, tensor: &Tensor) -> &[DimId] {
        let first = self.slot(tensor, 0);
        &self.dims[first..first + tensor.rank()]
    }

    fn own(&self, at: usize) -> SmallVec<[DimId; 4]> {
        let first = self.first[at];
        SmallVec::from_slice(&self.dims[first..first + self.order[at].rank()])
    }

    fn value(&self, tensor: &Tensor) -> Value {
        let value = &self.values[self.at[&tensor.node.id]];
        value.clone().expect("operands come before results")
    }

    /// A node's value, where the node has some of these dimensions.
    fn over(&self, node: NodeId, dims: &[DimId]) -> Value {
        let has = &self.builder.node(node).dims;
        let dims = dims
            .iter()
            .map(|dim| has.contains(dim).then_some(*dim))
            .collect();
        Value { node, dims }
    }

    /// The value as a node whose axes are these dimensions, as far as it has them.
    fn aligned(&mut self, value: &Value, dims: &[DimId]) -> Result<NodeId, GraphError> {
        let differs =
            |(has, wanted): (&Option<DimId>, &DimId)| has.is_some_and(|has| has != *wanted);
        if !value.dims.iter().zip(dims).any(differs) {
            return Ok(value.node);
        }
        let has = self.builder.node(value.node).dims.clone();
        let place = |dim: &DimId| value.dims.iter().position(|has| *has == Some(*dim));
        let map = has.iter().map(|dim| {
            let axis = place(dim).expect("each dimension of the node is an axis");
            let index = self.position(dims[axis])?;
            self.counted(*dim, index)
        });
        let map = map.collect::<Result<_, GraphError>>()?;
        let used = value.dims.iter().zip(dims).filter(|(has, _)| has.is_some());
        let used: Vec<DimId> = used.map(|(_, dim)| *dim).collect();
        let view = GraphView {
            map,
            constraints: Vec::new(),
            outside: None,
        };
        self.builder.view(value.node, &used, view)
    }

    /// The value as a node with exactly these dimensions, in this order.
    fn exact(&mut self, value: &Value, dims: &[DimId]) -> Result<NodeId, GraphError> {
        let node = self.aligned(value, dims)?;
        if self.builder.node(node).dims.as_slice() == dims {
            return Ok(node);
        }
        self.builder.layout(node, dims)
    }

    fn operand(&mut self, tensor: &Tensor) -> Result<NodeId, GraphError> {
        let (value, dims) = (
            self.value(tensor),
            SmallVec::<[DimId; 4]>::from_slice(self.own_dims(tensor)),
        );
        self.exact(&value, &dims)
    }

    fn leaf(&mut self, at: usize, name: &str, updated: bool) -> Result<Value, GraphError> {
        let dims = self.own(at);
        let dtype = self.order[at].dtype();
        let node = match updated {
            true => self.builder.state(name, dtype, &dims)?,
            false => self.builder.input(name, dtype, &dims)?,
        };
        Ok(Value {
            node,
            dims: dims.iter().map(|dim| Some(*dim)).collect(),
        })
    }

    /// Puts the operands of an op that does not care in an order in which the result's last dimension is the last of these: a
    /// node's dimensions are those of its first operand, then those that others have beside them, and so it lies in
    /// memory.
    fn in_order(&self, op: Op, operands: &mut [NodeId], dims: &[DimId]) {
        let (true, [first, second]) = (op.info().commutative, operands) else {
            return;
        };
        let dims_of = |node: NodeId| &self.builder.node(node).dims;
        let last = dims
            .iter()
            .rev()
            .find(|dim| dims_of(*first).contains(dim) || dims_of(*second).contains(dim));
        let ends_so = |first: NodeId, second: NodeId| {
            let new = dims_of(second).iter().rev();
            let mut new = new.filter(|dim| !dims_of(first).contains(dim));
            new.next().or(dims_of(first).last()) == last
        };
        if !ends_so(*first, *second) && ends_so(*second, *first) {
            std::mem::swap(first, second);
        }
    }

    fn node(&mut self, at: usize, node: &Node) -> Result<Value, GraphError> {
        loopwright_threads::interrupt::unwind_if_asked();
        let dims = self.own(at);
        let made = match &node.kind {
            Kind::Failed(_) | Kind::Data | Kind::Variable(_) | Kind::Argument(_) => {
                unreachable!("mistakes are found before, and leaves are parameters")
            }
            Kind::Constant(value) => self.builder.constant(*value),
            Kind::Index => self.builder.index(dims[0], node.dtype)?,
            Kind::Size(size) => {
                let size = self.put(size, &[])?;
                self.builder.size_value(size)?
            }
            Kind::Map(op) => {
                let mut operands = SmallVec::<[NodeId; 3]>::new();
                for input in &node.inputs {
                    let value = self.value(input);
                    operands.push(self.aligned(&value, &dims)?);
                }
                self.in_order(*op, &mut operands, &dims);
                self.builder.map(*op, &operands)?
            }
            Kind::Cast | Kind::Bitcast => {
                let value = self.value(&node.inputs[0]);
                let operand = self.aligned(&value, &dims)?;
                match node.kind {
                    Kind::Cast => self.builder.cast(operand, node.dtype),
                    _ => self.builder.bitcast(operand, node.dtype)?,
                }
            }
            Kind::Previous { over, reverse } => return self.previous(at, *over, *reverse),
            Kind::Recurred => {
                let value = self.value(&node.inputs[0]);
                let made = self.aligned(&value, &dims)?;
                return Ok(self.over(made, &dims));
            }
            Kind::Marked(mark) => {
                let value = self.value(&node.inputs[0]);
                if let Mark::Label(label) = mark {
                    self.label(value.node, label)?;
                }
                return Ok(value);
            }
            Kind::Reduce { op, over } => {
                let input = &node.inputs[0];
                let value = self.value(input);
                let own = SmallVec::<[DimId; 4]>::from_slice(self.own_dims(input));
                // What is repeated along an axis has to be there to be folded.
                let operand = match over.iter().all(|axis| value.dims[*axis].is_some()) {
                    true => self.aligned(&value, &own)?,
                    false => self.exact(&value, &own)?,
                };
                let over: SmallVec<[DimId; 2]> = over.iter().map(|axis| own[*axis]).collect();
                let made = self.builder.reduce(*op, operand, &over, None)?;
                let kept: SmallVec<[DimId; 4]> = own
                    .iter()
                    .copied()
                    .filter(|dim| !over.contains(dim))
                    .collect();
                return Ok(self.over(made, &kept));
            }
            Kind::ArgReduce { largest, over } => {
                let input = &node.inputs[0];
                let own = SmallVec::<[DimId; 4]>::from_slice(self.own_dims(input));
                let operand = self.operand(input)?;
                let made = self.builder.arg_reduce(*largest, operand, own[*over])?;
                let kept: SmallVec<[DimId; 4]> = own
                    .iter()
                    .copied()
                    .filter(|dim| *dim != own[*over])
                    .collect();
                return Ok(self.over(made, &kept));
            }
            Kind::Scan {
                op,
                over,
                exclusive,
                reverse,
            } => {
                let (operand, along) = self.along(&node.inputs[0], *over)?;
                let made = self
                    .builder
                    .scan(*op, operand, along, None, *exclusive, *reverse)?;
                return Ok(self.shaped_like(made, &node.inputs[0]));
            }
            Kind::Sort { over, descending } => {
                let (operand, along) = self.along(&node.inputs[0], *over)?;
                let made = self.builder.sort(operand, along, *descending)?;
                return Ok(self.shaped_like(made, &node.inputs[0]));
            }
            Kind::ArgSort { over, descending } => {
                let (operand, along) = self.along(&node.inputs[0], *over)?;
                let made = self.builder.arg_sort(operand, along, *descending)?;
                return Ok(self.shaped_like(made, &node.inputs[0]));
            }
            Kind::View(view) => return self.view(at, &node.inputs[0], view),
            Kind::Gather { axis, along } => self.gather(&dims, node, *axis, along)?,
            Kind::Scatter {
                axis,
                along,
                combine,
            } => {
                return self.scatter(&dims, node, *axis, along, *combine);
            }
        };
        Ok(self.over(made, &dims))
    }

    /// An operand with all its axes, and the dimension of one of them.
    fn along(&mut self, input: &Tensor, axis: usize) -> Result<(NodeId, DimId), GraphError> {
        Ok((self.operand(input)?, self.own_dims(input)[axis]))
    }

    /// A node over the dimensions of an operand.
    fn shaped_like(&self, node: NodeId, input: &Tensor) -> Value {
        self.over(node, self.own_dims(input))
    }

    fn view(&mut self, at: usize, input: &Tensor, view: &View) -> Result<Value, GraphError> {
        let dims = self.own(at);
        let mut value = self.value(input);
        if let Some(places) = self.turned(at, input, view) {
            let mut turned: Dims = SmallVec::from_elem(None, dims.len());
            for (axis, place) in places.iter().enumerate() {
                turned[*place] = value.dims[axis];
            }
            return Ok(Value {
                node: value.node,
                dims: turned,
            });
        }
        // Where an index may leave the input along an axis, the axis has to be there.
        let own = SmallVec::<[DimId; 4]>::from_slice(self.own_dims(input));
        if view.outside.is_some() && value.dims.iter().any(Option::is_none) {
            let node = self.exact(&value, &own)?;
            value = self.over(node, &own);
        }
        let symbols: Vec<Symbol> = dims
            .iter()
            .map(|dim| self.builder.index_symbol(*dim))
            .collect();
        let positions = dims.iter().map(|dim| self.position(*dim));
        let positions = positions.collect::<Result<Vec<Expr>, _>>()?;
        let put = |expr: &Expr| self.put(expr, &positions);
        let has = self.builder.node(value.node).dims.clone();
        let mut map = SmallVec::new();
        for dim in &has {
            let axis = value.dims.iter().position(|has| *has == Some(*dim));
            let index = put(&view.map[axis.expect("each dimension of the node is an axis")])?;
            map.push(self.counted(*dim, index)?);
        }
        let constraints = view
            .constraints
            .iter()
            .map(put)
            .collect::<Result<Vec<_>, _>>()?;
        let occurs = |symbol: &Symbol| {
            map.iter()
                .chain(&constraints)
                .any(|expr: &Expr| expr.contains(*symbol))
        };
        let used: Vec<DimId> = dims
            .iter()
            .zip(&symbols)
            .filter(|(_, symbol)| occurs(symbol))
            .map(|(dim, _)| *dim)
            .collect();
        let view = GraphView {
            map,
            constraints,
            outside: view.outside,
        };
        let made = self.builder.view(value.node, &used, view)?;
        Ok(self.over(made, &dims))
    }

    /// The places of the input's axes in the result, if all that a view does is to turn and to repeat.
    fn turned(&self, at: usize, input: &Tensor, view: &View) -> Option<SmallVec<[usize; 4]>> {
        if !view.constraints.is_empty() {
            return None;
        }
        let mut places = SmallVec::new();
        for (axis, expr) in view.map.iter().enumerate() {
            let place = size::symbol_axis(expr.as_symbol()?)?;
            let same = self.sizes[self.slot(input, axis)] == self.sizes[self.first[at] + place];
            if !same || places.contains(&place) {
                return None;
            }
            places.push(place);
        }
        Some(places)
    }

    /// The table and the index of a gather or scatter over dimensions of the result. The axis that is
    /// looked up gets a dimension of its own.
    fn looked_up(
        &mut self,
        dims: &[DimId],
        node: &Node,
        axis: usize,
        along: &Along,
    ) -> Result<(NodeId, NodeId, DimId, Vec<DimId>), GraphError> {
        let (table, index) = (&node.inputs[0], &node.inputs[1]);
        let size = self.sizes[self.slot(table, axis)].clone();
        let looked = self.new_dim(None, size)?;
        let news = along.iter().filter(|along| along.is_none()).count();
        let place = |axis_of_table: usize| match axis_of_table < axis {
            true => axis_of_table,
            false => axis_of_table + news - 1,
        };
        let table_dims: Vec<DimId> = (0..table.rank())
            .map(|at| if at == axis { looked } else { dims[place(at)] })
            .collect();
        let mut fresh = axis..axis + news;
        let index_dims: Vec<DimId> = along
            .iter()
            .map(|along| match along {
                Some(at) => dims[place(*at)],
                None => dims[fresh.next().expect("as many as counted")],
            })
            .collect();
        let (table, index) = (self.value(table), self.value(index));
        let (table, index) = (
            self.exact(&table, &table_dims)?,
            self.exact(&index, &index_dims)?,
        );
        Ok((table, index, looked, table_dims))
    }

    fn gather(
        &mut self,
        dims: &[DimId],
        node: &Node,
        axis: usize,
        along: &Along,
    ) -> Result<NodeId, GraphError> {
        let (table, index, looked, _) = self.looked_up(dims, node, axis, along)?;
        self.builder.gather(table, index, looked, None)
    }

    fn scatter(
        &mut self,
        own: &[DimId],
        node: &Node,
        axis: usize,
        along: &Along,
        combine: Option<loopwright_ops::ReduceOp>,
    ) -> Result<Value, GraphError> {
        // The dimensions of the updates, which are shaped as a gather's result.
        let updates = node.inputs[2].clone();
        let mut dims: Vec<DimId> = self.own_dims(&updates).to_vec();
        // An axis of the index may be the scattered one of the result: `own` is not used as dimensions here.
        let taken: Vec<DimId> = dims.clone();
        for (at, dim) in dims.iter_mut().enumerate() {
            if taken[..at].contains(dim) {
                let size = self.sizes[self.slot(&updates, at)].clone();
                *dim = self.new_dim(None, size)?;
            }
        }
        let (base, index, looked, base_dims) = self.looked_up(&dims, node, axis, along)?;
        let value = self.value(&updates);
        let updates = self.exact(&value, &dims)?;
        let made = self
            .builder
            .scatter(base, index, updates, looked, combine)?;
        let result = self.over(made, &base_dims);
        debug_assert_eq!(
            own.len(),
            result.dims.len(),
            "a scatter is shaped as its base"
        );
        Ok(result)
    }

    fn result(&mut self, tensor: &Tensor, name: &str) -> Result<(), GraphError> {
        let node = self.operand(tensor)?;
        self.label_result(node, name)?;
        self.builder.output(name, node)
    }

    fn update(&mut self, old: &Tensor, new: &Tensor) -> Result<(), GraphError> {
        let state = self.value(old).node;
        let dims: SmallVec<[DimId; 4]> = self.builder.node(state).dims.clone();
        let value = self.value(new);
        let new = self.exact(&value, &dims)?;
        self.builder.update(state, new)
    }
}

/// Which axes of a tensor and of its operands run along with each other: operand, its axis, own axis.
fn connections(node: &Node) -> Vec<(usize, usize, usize)> {
    let alike = |input: usize| (0..node.inputs[input].rank()).map(move |axis| (input, axis, axis));
    match &node.kind {
        Kind::Failed(_)
        | Kind::Data
        | Kind::Variable(_)
        | Kind::Argument(_)
        | Kind::Constant(_)
        | Kind::Index
        | Kind::Size(_)
        | Kind::Previous { .. } => Vec::new(),
        Kind::Map(_) => (0..node.inputs.len()).flat_map(alike).collect(),
        Kind::Cast
        | Kind::Bitcast
        | Kind::Marked(_)
        | Kind::Recurred
        | Kind::Scan { .. }
        | Kind::Sort { .. }
        | Kind::ArgSort { .. }
        | Kind::Scatter { .. } => alike(0).collect(),
        Kind::Reduce { over, .. } => {
            let kept = (0..node.inputs[0].rank()).filter(|axis| !over.contains(axis));
            kept.enumerate().map(|(own, axis)| (0, axis, own)).collect()
        }
        Kind::ArgReduce { over, .. } => {
            let kept = (0..node.inputs[0].rank()).filter(|axis| axis != over);
            kept.enumerate().map(|(own, axis)| (0, axis, own)).collect()
        }
        Kind::View(view) => {
            let axes = view.map.iter().enumerate();
            let single = |(axis, expr): (usize, &Expr)| {
                Some((0, axis, size::symbol_axis(expr.as_symbol()?)?))
            };
            axes.filter_map(single).collect()
        }
        Kind::Gather { axis, along } => {
            let news = along.iter().filter(|along| along.is_none()).count();
            let place = |at: usize| if at < *axis { at } else { at + news - 1 };
            let table = (0..node.inputs[0].rank()).filter(|at| at != axis);
            let mut found: Vec<_> = table.map(|at| (0, at, place(at))).collect();
            let mut fresh = *axis;
            for (at, along) in along.iter().enumerate() {
                let own = match along {
                    Some(table) => place(*table),
                    None => {
                        fresh += 1;
                        fresh - 1
                    }
                };
                found.push((1, at, own));
            }
            found
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::program_order;

    #[test]
    fn deep_programs_need_no_deep_stack() {
        let x = Tensor::from([0.5f64]);
        let deep = (0..100_000).fold(x.clone(), |y, _| y.exp());
        let roots = [deep];
        let order = program_order(&roots);
        let program = Program::new(&order, &roots, &[], &[]);
        crate::key::of(&program).expect("all sizes are known");
        let lowered = lower(&program).expect("it is a graph");
        assert_eq!(lowered.graph.outputs().len(), 1);
    }
}
