//! The reference evaluator: what a graph means, node by node over whole arrays.
//!
//! It knows no schedules and no loops of the compiler's, and shares nothing with it but the ops'
//! scalar meanings: it is what compiled programs are compared with. It is written to be obviously
//! right; the only care for speed is that strides are computed once per node.

use crate::binding::Binding;
use crate::ir::{DimId, Graph, Node, NodeId, NodeOp, View};
use crate::recurrence::Recurrence;
use loopwright_arena::TiVec;
use loopwright_array::{Array, ArrayError};
use loopwright_ops::{
    DType, Op, OpError, ReduceOp, Scalar, argmax_prefers, argmin_prefers, bitcast, cast,
    evaluate as apply, total_less,
};
use loopwright_symbolic::{Expr, Symbol};
use std::borrow::Cow;
use std::cmp::Ordering;

/// Why a graph could not be evaluated.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EvaluateError {
    /// An input or state was not given.
    #[error("no value is given for `{name}`")]
    Missing {
        /// Its name.
        name: String,
    },
    /// Something was given a value that takes none.
    #[error("`{name}` is not an input or state, so it cannot be given a value")]
    NotAParameter {
        /// Its name.
        name: String,
    },
    /// A value of the wrong dtype.
    #[error("`{name}` is {expected}, and an array of {got} is given")]
    DType {
        /// The input's or state's name.
        name: String,
        /// Its dtype.
        expected: DType,
        /// The array's.
        got: DType,
    },
    /// A value of the wrong shape.
    #[error("`{name}` has shape {expected:?}, and an array of shape {got:?} is given")]
    Shape {
        /// The input's or state's name.
        name: String,
        /// Its shape with these sizes.
        expected: Vec<usize>,
        /// The array's.
        got: Vec<usize>,
    },
    /// An array that does not fit the memory.
    #[error("`{name}`: {error}")]
    Array {
        /// The node.
        name: String,
        /// What happened.
        error: ArrayError,
    },
    /// An index that cannot be computed.
    #[error("`{name}`: {message}")]
    Index {
        /// The node.
        name: String,
        /// What happened.
        message: String,
    },
    /// An op refused its operands, which a checked graph does not let happen.
    #[error("`{name}`: {error}")]
    Op {
        /// The node.
        name: String,
        /// What happened.
        error: OpError,
    },
}

/// The outputs, then the new values of the states that are updated, each with its name.
pub fn evaluate(
    graph: &Graph,
    binding: &Binding,
    inputs: &[(NodeId, Array)],
) -> Result<Vec<(String, Array)>, EvaluateError> {
    let mut evaluator = Evaluator {
        graph,
        binding,
        values: vec![None; graph.node_ids().count()].into(),
    };
    evaluator.take_inputs(inputs)?;
    let results: Vec<NodeId> = graph
        .outputs()
        .iter()
        .map(|output| output.node)
        .chain(graph.updates().iter().map(|update| update.value))
        .collect();
    if graph.delays().next().is_some() {
        evaluator.all_components()?;
        return Ok(evaluator.results(results));
    }
    let last_use = last_uses(graph, &results);
    for id in graph.node_ids() {
        if evaluator.values[id].is_none() {
            let value = evaluator.node(id)?;
            evaluator.values[id] = Some(Cow::Owned(value));
        }
        for input in &graph.node(id).inputs {
            if last_use[*input] == Some(id) {
                evaluator.values[*input] = None;
            }
        }
    }
    Ok(evaluator.results(results))
}

/// The last node that reads each node; `None` for results, which are kept to the end.
fn last_uses(graph: &Graph, results: &[NodeId]) -> TiVec<NodeId, Option<NodeId>> {
    let mut last: TiVec<_, _> = vec![None; graph.node_ids().count()].into();
    for id in graph.node_ids() {
        for input in &graph.node(id).inputs {
            last[*input] = Some(id);
        }
    }
    for result in results {
        last[*result] = None;
    }
    last
}

struct Evaluator<'a> {
    graph: &'a Graph,
    binding: &'a Binding,
    values: TiVec<NodeId, Option<Cow<'a, Array>>>,
}

/// Steps through all indices of a shape in row-major order, keeping the positions of several
/// operands that are each a sum of index times stride.
struct Walk {
    shape: Vec<usize>,
    index: Vec<usize>,
    /// For each operand, its stride along each dimension of the shape.
    strides: Vec<Vec<usize>>,
    positions: Vec<usize>,
    left: usize,
}

impl Walk {
    fn new(shape: &[usize], strides: Vec<Vec<usize>>) -> Walk {
        Walk {
            index: vec![0; shape.len()],
            positions: vec![0; strides.len()],
            left: if shape.contains(&0) {
                0
            } else {
                shape.iter().product()
            },
            shape: shape.to_vec(),
            strides,
        }
    }

    fn step(&mut self) {
        self.left -= 1;
        for dim in (0..self.shape.len()).rev() {
            self.index[dim] += 1;
            for (position, strides) in self.positions.iter_mut().zip(&self.strides) {
                *position += strides[dim];
            }
            if self.index[dim] < self.shape[dim] {
                return;
            }
            for (position, strides) in self.positions.iter_mut().zip(&self.strides) {
                *position -= strides[dim] * self.shape[dim];
            }
            self.index[dim] = 0;
        }
    }
}

impl<'a> Evaluator<'a> {
    fn take_inputs(&mut self, inputs: &'a [(NodeId, Array)]) -> Result<(), EvaluateError> {
        for (id, array) in inputs {
            let name = self.graph.node_name(*id);
            let node = self.graph.node(*id);
            if !matches!(node.op, NodeOp::Input | NodeOp::State) {
                return Err(EvaluateError::NotAParameter { name });
            }
            if array.dtype() != node.dtype {
                return Err(EvaluateError::DType {
                    name,
                    expected: node.dtype,
                    got: array.dtype(),
                });
            }
            let expected = self.shape(&node.dims);
            if array.shape() != expected {
                return Err(EvaluateError::Shape {
                    name,
                    expected,
                    got: array.shape().to_vec(),
                });
            }
            self.values[*id] = Some(Cow::Borrowed(array));
        }
        Ok(())
    }

    /// The results with their names.
    fn results(&self, results: Vec<NodeId>) -> Vec<(String, Array)> {
        let graph = self.graph;
        let outputs = graph.outputs().iter().map(|output| output.name.clone());
        let states = graph
            .updates()
            .iter()
            .map(|update| graph.node(update.state).name.clone());
        let names = outputs.chain(states);
        names
            .zip(results)
            .map(|(name, node)| (name, self.value(node).clone()))
            .collect()
    }

    /// Computes all nodes of a graph with recurrences.
    fn all_components(&mut self) -> Result<(), EvaluateError> {
        for members in self.graph.ordered_components() {
            if let Some(recurrence) = self.graph.recurrence_of(members.clone()) {
                self.recurrence(&recurrence)?;
                continue;
            }
            for id in members {
                if self.values[id].is_none() {
                    let value = self.node(id)?;
                    self.values[id] = Some(Cow::Owned(value));
                }
            }
        }
        Ok(())
    }

    /// Computes the nodes of a recurrence, one index after the other: each of them over that index alone, from what
    /// the others are there and what those that are delayed were before.
    fn recurrence(&mut self, recurrence: &Recurrence) -> Result<(), EvaluateError> {
        let Recurrence { over, members } = recurrence;
        let graph = self.graph;
        let axis = |id: NodeId| graph.node(id).dims.iter().position(|dim| dim == over);
        let count = self.binding.size(*over) as usize;
        let one = self.binding.with_dim(*over, 1);
        let mut whole = Vec::with_capacity(members.len());
        for member in members {
            let node = graph.node(*member);
            let zeros = Array::zeros(node.dtype, &self.shape(&node.dims));
            whole.push(zeros.map_err(|error| EvaluateError::Array {
                name: graph.node_name(*member),
                error,
            })?);
        }
        for at in 0..count {
            let mut here = Evaluator {
                graph,
                binding: &one,
                values: vec![None; self.values.len()].into(),
            };
            let outside = members
                .iter()
                .flat_map(|member| &graph.node(*member).inputs);
            for input in outside.filter(|input| !members.contains(input)) {
                let value = self.value(*input);
                here.values[*input] = Some(match axis(*input) {
                    Some(axis) => Cow::Owned(slab(value, axis, at)),
                    None => Cow::Borrowed(value),
                });
            }
            for (number, member) in members.iter().enumerate() {
                let node = graph.node(*member);
                let along = axis(*member).unwrap_or(0);
                let value = match node.op {
                    NodeOp::Previous { of, outside, .. } if at == 0 => {
                        let shape = here.shape(&graph.node(of).dims);
                        let elements = shape.iter().product();
                        let mut before = slab(&whole[number], along, 0);
                        debug_assert_eq!(before.len(), elements);
                        (0..elements).for_each(|at| before.set_flat(at, outside));
                        before
                    }
                    NodeOp::Previous { of, .. } => {
                        let of = members.iter().position(|member| *member == of);
                        slab(&whole[of.unwrap_or(number)], along, at - 1)
                    }
                    _ => here.node(*member)?,
                };
                set_slab(&mut whole[number], along, at, &value);
                here.values[*member] = Some(Cow::Owned(value));
            }
        }
        for (member, value) in members.iter().zip(whole) {
            self.values[*member] = Some(Cow::Owned(value));
        }
        Ok(())
    }

    fn value(&self, node: NodeId) -> &Array {
        self.values[node]
            .as_deref()
            .expect("nodes come after what they read, and values are kept until their last use")
    }

    fn shape(&self, dims: &[DimId]) -> Vec<usize> {
        // A binding has no negative sizes.
        dims.iter()
            .map(|dim| self.binding.size(*dim) as usize)
            .collect()
    }

    /// The strides of a node's array along these dimensions; 0 along those it lacks.
    fn strides(&self, node: NodeId, dims: &[DimId]) -> Vec<usize> {
        let own = self.value(node).strides();
        let own_dims = &self.graph.node(node).dims;
        dims.iter()
            .map(|dim| {
                let at = own_dims.iter().position(|own| own == dim);
                at.map_or(0, |at| own[at])
            })
            .collect()
    }

    fn node(&self, id: NodeId) -> Result<Array, EvaluateError> {
        let node = self.graph.node(id);
        let name = || self.graph.node_name(id);
        let failed = |error: OpError| EvaluateError::Op {
            name: name(),
            error,
        };
        let mut out = Array::zeros(node.dtype, &self.shape(&node.dims)).map_err(|error| {
            EvaluateError::Array {
                name: name(),
                error,
            }
        })?;
        match &node.op {
            NodeOp::Input | NodeOp::State => return Err(EvaluateError::Missing { name: name() }),
            NodeOp::Constant(values) => {
                for (at, value) in values.iter().enumerate() {
                    out.set_flat(at, *value);
                }
            }
            NodeOp::Index(_) => {
                for at in 0..out.len() {
                    out.set_flat(at, Scalar::from_i64(node.dtype, at as i64));
                }
            }
            NodeOp::Size(size) => {
                let value = self.number(id, size, &|symbol| Some(self.binding.value(symbol)))?;
                out.set_flat(0, Scalar::i64(value));
            }
            NodeOp::Map(op) => self.map(*op, node, &mut out).map_err(failed)?,
            NodeOp::Cast => {
                for (at, value) in self.value(node.inputs[0]).iter().enumerate() {
                    out.set_flat(at, cast(value, node.dtype));
                }
            }
            NodeOp::Bitcast => {
                for (at, value) in self.value(node.inputs[0]).iter().enumerate() {
                    out.set_flat(at, bitcast(value, node.dtype).map_err(failed)?);
                }
            }
            NodeOp::Reduce { op, over, acc } => self
                .reduce(*op, over, *acc, node, &mut out)
                .map_err(failed)?,
            NodeOp::ArgReduce { largest, over } => {
                let prefers = if *largest {
                    argmax_prefers
                } else {
                    argmin_prefers
                };
                self.lines(node.inputs[0], &node.dims, *over, |at, line| {
                    let mut best = 0;
                    for (position, value) in line.iter().enumerate() {
                        if prefers(*value, line[best]) {
                            best = position;
                        }
                    }
                    out.set_flat(at[0], Scalar::i64(best as i64));
                });
            }
            NodeOp::Scan {
                op,
                over,
                acc,
                exclusive,
                reverse,
            } => self
                .scan(node, (*op, *acc), *over, *exclusive, *reverse, &mut out)
                .map_err(failed)?,
            NodeOp::Previous { of, over, outside } => {
                let axis = node.dims.iter().position(|dim| dim == over);
                let axis = axis.expect("it has the dimension that it runs along");
                for at in 0..self.binding.size(*over) as usize {
                    let mut before = slab(self.value(*of), axis, at.saturating_sub(1));
                    if at == 0 {
                        (0..before.len()).for_each(|at| before.set_flat(at, *outside));
                    }
                    set_slab(&mut out, axis, at, &before);
                }
            }
            NodeOp::View(view) => self.view(id, view, &mut out)?,
            NodeOp::Gather { axis, outside } => self.gather(node, *axis, *outside, &mut out),
            NodeOp::Scatter { axis, combine } => self
                .scatter(node, *axis, *combine, &mut out)
                .map_err(failed)?,
            NodeOp::Sort { over, descending } => {
                self.lines(node.inputs[0], &node.dims, *over, |at, line| {
                    for (at, from) in at.iter().zip(sorted(line, *descending)) {
                        out.set_flat(*at, line[from]);
                    }
                });
            }
            NodeOp::ArgSort { over, descending } => {
                self.lines(node.inputs[0], &node.dims, *over, |at, line| {
                    for (at, from) in at.iter().zip(sorted(line, *descending)) {
                        out.set_flat(*at, Scalar::i64(from as i64));
                    }
                });
            }
        }
        Ok(out)
    }

    fn number(
        &self,
        id: NodeId,
        expr: &Expr,
        values: &dyn Fn(Symbol) -> Option<i64>,
    ) -> Result<i64, EvaluateError> {
        expr.evaluate(values).map_err(|error| EvaluateError::Index {
            name: self.graph.node_name(id),
            message: error
                .display(&|symbol| self.graph.symbol_name(symbol))
                .to_string(),
        })
    }

    fn map(&self, op: Op, node: &Node, out: &mut Array) -> Result<(), OpError> {
        let operands: Vec<&Array> = node.inputs.iter().map(|id| self.value(*id)).collect();
        let strides = node.inputs.iter().map(|id| self.strides(*id, &node.dims));
        let mut walk = Walk::new(out.shape(), strides.collect());
        let mut scalars = vec![Scalar::bool(false); operands.len()];
        for at in 0..out.len() {
            for (scalar, (array, position)) in
                scalars.iter_mut().zip(operands.iter().zip(&walk.positions))
            {
                *scalar = array.get_flat(*position);
            }
            out.set_flat(at, apply(op, &scalars)?);
            walk.step();
        }
        Ok(())
    }

    fn reduce(
        &self,
        op: ReduceOp,
        over: &[DimId],
        acc: DType,
        node: &Node,
        out: &mut Array,
    ) -> Result<(), OpError> {
        let input = node.inputs[0];
        let array = self.value(input);
        let inner_shape = self.shape(over);
        let inner_strides = self.strides(input, over);
        let mut outer = Walk::new(out.shape(), vec![self.strides(input, &node.dims)]);
        for at in 0..out.len() {
            let mut running = op.identity(acc);
            let mut inner = Walk::new(&inner_shape, vec![inner_strides.clone()]);
            while inner.left > 0 {
                let element = array.get_flat(outer.positions[0] + inner.positions[0]);
                running = apply(op.combine(), &[running, cast(element, acc)])?;
                inner.step();
            }
            out.set_flat(at, cast(running, node.dtype));
            outer.step();
        }
        Ok(())
    }

    /// Visits the lines of `input` along `over`: for each, the positions of its elements in an array
    /// over `dims`, and its elements. Where `dims` lacks `over`, all positions are the same one.
    fn lines(
        &self,
        input: NodeId,
        dims: &[DimId],
        over: DimId,
        mut visit: impl FnMut(&[usize], &[Scalar]),
    ) {
        let array = self.value(input);
        let size = self.binding.size(over) as usize;
        let rest: Vec<DimId> = dims.iter().copied().filter(|dim| *dim != over).collect();
        let shape = self.shape(dims);
        let own: Vec<usize> = (0..dims.len())
            .map(|at| shape[at + 1..].iter().product())
            .collect();
        let stride_of = |dim: DimId| {
            let at = dims.iter().position(|own| *own == dim);
            at.map_or(0, |at| own[at])
        };
        let out_strides: Vec<usize> = rest.iter().map(|dim| stride_of(*dim)).collect();
        let out_step = stride_of(over);
        let in_step = self.strides(input, &[over])[0];
        let in_strides = self.strides(input, &rest);
        let mut walk = Walk::new(&self.shape(&rest), vec![out_strides, in_strides]);
        while walk.left > 0 {
            // An empty line still has a result where `over` vanishes.
            let count = if out_step == 0 { size.max(1) } else { size };
            let positions: Vec<usize> = (0..count)
                .map(|at| walk.positions[0] + at * out_step)
                .collect();
            let line: Vec<Scalar> = (0..size)
                .map(|at| array.get_flat(walk.positions[1] + at * in_step))
                .collect();
            visit(&positions, &line);
            walk.step();
        }
    }

    fn scan(
        &self,
        node: &Node,
        (op, acc): (ReduceOp, DType),
        over: DimId,
        exclusive: bool,
        reverse: bool,
        out: &mut Array,
    ) -> Result<(), OpError> {
        let mut result = Ok(());
        self.lines(node.inputs[0], &node.dims, over, |positions, line| {
            let mut running = op.identity(acc);
            for step in 0..line.len() {
                let at = if reverse { line.len() - 1 - step } else { step };
                let before = running;
                match apply(op.combine(), &[running, cast(line[at], acc)]) {
                    Ok(next) => running = next,
                    Err(error) => result = Err(error),
                }
                let value = if exclusive { before } else { running };
                out.set_flat(positions[at], cast(value, node.dtype));
            }
        });
        result
    }

    fn view(&self, id: NodeId, view: &View, out: &mut Array) -> Result<(), EvaluateError> {
        let node = self.graph.node(id);
        let input = self.value(node.inputs[0]);
        let strides = input.strides();
        let mut walk = Walk::new(out.shape(), Vec::new());
        // The value of every symbol: sizes, and the indices of the element at hand.
        let symbols = self.graph.symbols().keys();
        let mut values: TiVec<Symbol, i64> =
            symbols.map(|symbol| self.binding.value(symbol)).collect();
        let own: Vec<Symbol> = node
            .dims
            .iter()
            .map(|dim| self.graph.dim(*dim).index)
            .collect();
        for at in 0..out.len() {
            for (symbol, index) in own.iter().zip(&walk.index) {
                values[*symbol] = *index as i64;
            }
            let lookup = |symbol: Symbol| values.get(symbol).copied();
            let mut inside = true;
            for constraint in &view.constraints {
                inside &= self.number(id, constraint, &lookup)? != 0;
            }
            let mut position = 0;
            for (axis, index) in view.map.iter().enumerate() {
                if !inside {
                    break;
                }
                let index = self.number(id, index, &lookup)?;
                match usize::try_from(index) {
                    Ok(index) if index < input.shape()[axis] => position += index * strides[axis],
                    _ => inside = false,
                }
            }
            let value = match (inside, view.outside) {
                (true, _) => input.get_flat(position),
                (false, Some(outside)) => outside,
                (false, None) => {
                    return Err(EvaluateError::Index {
                        name: self.graph.node_name(id),
                        message: "the view reads outside its input, which was checked".to_owned(),
                    });
                }
            };
            out.set_flat(at, value);
            walk.step();
        }
        Ok(())
    }

    /// The stride along `axis`, and those along the other dimensions with 0 along `axis`.
    fn strides_around(&self, node: NodeId, axis: DimId, dims: &[DimId]) -> (usize, Vec<usize>) {
        let along = self.strides(node, &[axis])[0];
        let mut strides = self.strides(node, dims);
        for (stride, dim) in strides.iter_mut().zip(dims) {
            if *dim == axis {
                *stride = 0;
            }
        }
        (along, strides)
    }

    fn gather(&self, node: &Node, axis: DimId, outside: Scalar, out: &mut Array) {
        let (table, index) = (self.value(node.inputs[0]), self.value(node.inputs[1]));
        let size = self.binding.size(axis);
        let (along, table_strides) = self.strides_around(node.inputs[0], axis, &node.dims);
        let index_strides = self.strides(node.inputs[1], &node.dims);
        let mut walk = Walk::new(out.shape(), vec![table_strides, index_strides]);
        for at in 0..out.len() {
            let value = match index.get_flat(walk.positions[1]).as_i64() {
                Some(found) if (0..size).contains(&found) => {
                    table.get_flat(walk.positions[0] + found as usize * along)
                }
                _ => outside,
            };
            out.set_flat(at, value);
            walk.step();
        }
    }

    fn scatter(
        &self,
        node: &Node,
        axis: DimId,
        combine: Option<ReduceOp>,
        out: &mut Array,
    ) -> Result<(), OpError> {
        let [base, index, updates] = [0, 1, 2].map(|at| node.inputs[at]);
        for (at, value) in self.value(base).iter().enumerate() {
            out.set_flat(at, value);
        }
        let size = self.binding.size(axis);
        let dims = &self.graph.node(updates).dims;
        let (along, base_strides) = self.strides_around(base, axis, dims);
        let index_strides = self.strides(index, dims);
        let mut walk = Walk::new(&self.shape(dims), vec![base_strides, index_strides]);
        for update in self.value(updates).iter() {
            let found = self.value(index).get_flat(walk.positions[1]).as_i64();
            if let Some(found) = found
                && (0..size).contains(&found)
            {
                let at = walk.positions[0] + found as usize * along;
                let value = match combine {
                    Some(op) => apply(op.combine(), &[out.get_flat(at), update])?,
                    None => update,
                };
                out.set_flat(at, value);
            }
            walk.step();
        }
        Ok(())
    }
}

/// Where the elements of an array at one index along an axis lie: how many runs there are, and how long they are.
fn runs(shape: &[usize], axis: usize) -> (usize, usize) {
    let before = shape[..axis].iter().product();
    (before, shape[axis + 1..].iter().product())
}

/// The elements of an array at one index along an axis, which stays, with size 1.
fn slab(array: &Array, axis: usize, at: usize) -> Array {
    let mut shape = array.shape().to_vec();
    let size = std::mem::replace(&mut shape[axis], 1);
    let (count, run) = runs(&shape, axis);
    let mut slab = Array::zeros(array.dtype(), &shape).expect("smaller than one that there is");
    for outer in 0..count {
        for inner in 0..run {
            let element = array.get_flat((outer * size + at) * run + inner);
            slab.set_flat(outer * run + inner, element);
        }
    }
    slab
}

/// Puts elements to one index along an axis.
fn set_slab(array: &mut Array, axis: usize, at: usize, slab: &Array) {
    let size = array.shape()[axis];
    let (count, run) = runs(slab.shape(), axis);
    for outer in 0..count {
        for inner in 0..run {
            let element = slab.get_flat(outer * run + inner);
            array.set_flat((outer * size + at) * run + inner, element);
        }
    }
}

/// The positions of a line's elements in order; equal ones stay as they are.
fn sorted(line: &[Scalar], descending: bool) -> Vec<usize> {
    let order = |a: usize, b: usize| {
        if total_less(line[a], line[b]) {
            Ordering::Less
        } else if total_less(line[b], line[a]) {
            Ordering::Greater
        } else {
            Ordering::Equal
        }
    };
    let mut positions: Vec<usize> = (0..line.len()).collect();
    positions.sort_by(|a, b| {
        if descending {
            order(*b, *a)
        } else {
            order(*a, *b)
        }
    });
    positions
}
