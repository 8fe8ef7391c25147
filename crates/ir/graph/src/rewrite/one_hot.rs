//! A sum over all rows of a table, all but one of them masked, is a gather of that row.
//!
//! `sum[k](select(k == index, table, 0))` reads all of the table for every index. It is
//! `table[index] else 0`, with one difference: a sum starts from 0, so that a row of -0 gives 0. Adding
//! 0 to what was looked up keeps that, and the casts to the accumulator and back are kept too. Rows that
//! are not chosen do not count, whatever is in them, and an index that is no row gives 0, in both forms.
//!
//! `sum[k](i32(k == index) * table)` is the same on integers. On floats it is not: 0 times an infinity or
//! a NaN is NaN, so a row that is not chosen spoils the sum; it stays as it is. (Write `select`.)
//!
//! What else may be summed over stays a sum. The elements that are not zero keep their order, and zeros
//! between them change nothing: a running value that started from 0 is never -0.

use super::Rewriting;
use crate::ir::{DimId, Graph, Node, NodeId, NodeOp, View};
use loopwright_ops::{DType, Kind, Op, ReduceOp, Scalar, cast};
use loopwright_symbolic::Expr;
use smallvec::SmallVec;

/// A contraction that is a gather.
struct Found {
    /// The dimension that is looked up.
    key: DimId,
    table: NodeId,
    index: NodeId,
    /// What else is summed over.
    rest: SmallVec<[DimId; 2]>,
    acc: DType,
}

/// The graph with every such sum as a gather; says in `notes` which.
pub(super) fn rewrite(graph: &Graph, notes: &mut Vec<String>) -> Graph {
    let mut rewriting = Rewriting::new(graph);
    for node in graph.node_ids() {
        match find(graph, graph.node(node)) {
            None => rewriting.keep(),
            Some(found) => {
                notes.push(format!(
                    "`{}`: the sum over `{}` with one row chosen by `{}` is a gather from `{}`",
                    graph.node_name(node),
                    graph.dim(found.key).name,
                    graph.node_name(found.index),
                    graph.node_name(found.table),
                ));
                let look_up = look_up(&mut rewriting, graph.node(node), &found);
                rewriting.replace(look_up);
            }
        }
    }
    rewriting.finish()
}

fn find(graph: &Graph, sum: &Node) -> Option<Found> {
    let NodeOp::Reduce {
        op: ReduceOp::Sum,
        over,
        acc,
    } = &sum.op
    else {
        return None;
    };
    let (condition, table) = chosen(graph, sum.inputs[0])?;
    let (key, index) = equality(graph, condition)?;
    let at = over.iter().position(|dim| *dim == key)?;
    if !graph.node(table).dims.contains(&key) {
        return None;
    }
    // The rows are folded in the order of `key`: an index that moves with what is folded inside it
    // would bring them into another order.
    let moves = |dim: &DimId| graph.node(index).dims.contains(dim);
    if over[at + 1..].iter().any(moves) {
        return None;
    }
    let mut rest = over.clone();
    rest.remove(at);
    Some(Found {
        key,
        table,
        index,
        rest,
        acc: *acc,
    })
}

/// `select(condition, table, 0)`, or on integers `condition * table`.
fn chosen(graph: &Graph, node: NodeId) -> Option<(NodeId, NodeId)> {
    let node = graph.node(node);
    match (&node.op, node.inputs.as_slice()) {
        (NodeOp::Map(Op::Select), [condition, table, zero]) => {
            is_zero(graph.node(*zero)).then_some((*condition, *table))
        }
        (NodeOp::Map(Op::Mul), [left, right]) if node.dtype.is_int() => {
            let truth = |factor: NodeId| {
                let factor = graph.node(factor);
                let condition = *factor.inputs.first()?;
                let cast = matches!(factor.op, NodeOp::Cast);
                (cast && graph.node(condition).dtype == DType::Bool).then_some(condition)
            };
            match (truth(*left), truth(*right)) {
                (Some(condition), _) => Some((condition, *right)),
                (None, Some(condition)) => Some((condition, *left)),
                (None, None) => None,
            }
        }
        _ => None,
    }
}

fn is_zero(node: &Node) -> bool {
    match &node.op {
        // Minus zero too: it is added to a running value that is not.
        NodeOp::Constant(values) => {
            let truth = |value: Scalar| cast(value, DType::Bool) == Scalar::bool(true);
            matches!(values[..], [value] if !truth(value)) && node.dims.is_empty()
        }
        _ => false,
    }
}

/// `k == index` in either order: the dimension, and the index, which does not move with it.
fn equality(graph: &Graph, condition: NodeId) -> Option<(DimId, NodeId)> {
    let condition = graph.node(condition);
    let (NodeOp::Map(Op::Eq), [left, right]) = (&condition.op, condition.inputs.as_slice()) else {
        return None;
    };
    [(*left, *right), (*right, *left)]
        .into_iter()
        .find_map(|(key, index)| {
            let key = exact_index(graph, key)?;
            let fixed = !graph.node(index).dims.contains(&key);
            fixed.then_some((key, index))
        })
}

/// The dimension whose index a node is, in an integer dtype that holds all of it.
fn exact_index(graph: &Graph, node: NodeId) -> Option<DimId> {
    let node = graph.node(node);
    let dim = match &node.op {
        NodeOp::Index(dim) => *dim,
        NodeOp::Cast => exact_index(graph, node.inputs[0])?,
        _ => return None,
    };
    // Two rows whose indices are the same modulo the dtype would both be chosen.
    let digits = match node.dtype.kind() {
        Kind::Signed => node.dtype.bits() - 1,
        Kind::Unsigned => node.dtype.bits(),
        Kind::Bool | Kind::Float => return None,
    };
    let fits =
        digits >= 63 || (graph.dim(dim).size.as_const()).is_some_and(|size| size <= 1 << digits);
    fits.then_some(dim)
}

/// The nodes that stand for `sum`; the last of them does.
fn look_up(rewriting: &mut Rewriting<'_>, sum: &Node, found: &Found) -> NodeId {
    let dtype = sum.dtype;
    let (table, index) = (rewriting.of(found.table), rewriting.of(found.index));
    // The index's dimensions stand where the key stood, as the builder has it.
    let mut dims: SmallVec<[DimId; 4]> = SmallVec::new();
    let mut join = |more: &[DimId]| {
        for dim in more {
            if !dims.contains(dim) {
                dims.push(*dim);
            }
        }
    };
    for dim in &rewriting.node(table).dims {
        if *dim == found.key {
            join(&rewriting.node(index).dims);
        } else {
            join(&[*dim]);
        }
    }
    let node = |op, inputs: &[NodeId], dims, dtype| Node {
        op,
        inputs: SmallVec::from_slice(inputs),
        dims,
        dtype,
        name: String::new(),
    };
    let outside = Scalar::zero(dtype);
    let gather = NodeOp::Gather {
        axis: found.key,
        outside,
    };
    let mut result = rewriting.push(node(gather, &[table, index], dims.clone(), dtype));
    if found.rest.is_empty() {
        let acc = found.acc;
        if acc != dtype {
            result = rewriting.push(node(NodeOp::Cast, &[result], dims.clone(), acc));
        }
        if acc.is_float() {
            let zero = NodeOp::Constant([Scalar::zero(acc)].into());
            let zero = rewriting.push(node(zero, &[], SmallVec::new(), acc));
            let add = NodeOp::Map(Op::Add);
            result = rewriting.push(node(add, &[result, zero], dims.clone(), acc));
        }
        if acc != dtype {
            result = rewriting.push(node(NodeOp::Cast, &[result], dims.clone(), dtype));
        }
    } else {
        dims.retain(|dim| !found.rest.contains(dim));
        let op = NodeOp::Reduce {
            op: ReduceOp::Sum,
            over: found.rest.clone(),
            acc: found.acc,
        };
        result = rewriting.push(node(op, &[result], dims.clone(), dtype));
    }
    if dims == sum.dims {
        return result;
    }
    let map = dims
        .iter()
        .map(|dim| Expr::symbol(rewriting.old.dim(*dim).index))
        .collect();
    let layout = NodeOp::View(View {
        map,
        constraints: Vec::new(),
        outside: None,
    });
    rewriting.push(node(layout, &[result], sum.dims.clone(), dtype))
}
