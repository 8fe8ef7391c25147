//! Elements: where they are, and how they are computed where they are read.

use super::walker::{Home, Indices, Outcome, Walker};
use super::{Arithmetic, ExecuteError};
use loopwright_graph::{DimId, NodeId, NodeOp, View};
use loopwright_ops::{DType, Op, Scalar};
use loopwright_symbolic::{Expr, Symbol};
use smallvec::SmallVec;
use std::ops::Range;

impl<A: Arithmetic> Walker<'_, A> {
    pub(super) fn wrong_tree(&self, node: NodeId, why: &'static str) -> ExecuteError<A::Error> {
        ExecuteError::tree(self.graph, node, why)
    }

    /// The place of an element in a row-major array over these dimensions.
    pub(super) fn flat(&self, dims: &[DimId], at: &[i64]) -> usize {
        let sizes = dims.iter().map(|dim| self.binding.size(*dim));
        let flat = sizes.zip(at).fold(0, |flat, (size, at)| flat * size + at);
        flat as usize
    }

    /// Where an element's bytes are in the caller's memory of its node, and how large all of that is.
    fn place(&self, node: NodeId, at: &[i64]) -> (Range<usize>, usize) {
        let parts = self.graph.node(node);
        let width = parts.dtype.bytes();
        let sizes = parts.dims.iter().map(|dim| self.binding.size(*dim));
        let start = self.flat(&parts.dims, at) * width;
        (
            start..start + width,
            sizes.product::<i64>() as usize * width,
        )
    }

    /// Why the caller's memory for a node cannot be used.
    fn unusable(
        &self,
        node: NodeId,
        expected: usize,
        got: Option<usize>,
    ) -> ExecuteError<A::Error> {
        let node = self.graph.node_name(node);
        match got {
            None => ExecuteError::Missing { node },
            Some(got) => ExecuteError::Length {
                node,
                expected,
                got,
            },
        }
    }

    /// Sets an element of a step.
    pub(super) fn store(&mut self, node: NodeId, at: &[i64], value: Scalar) -> Outcome<A, ()> {
        let flat = self.flat(&self.graph.node(node).dims, at);
        if let Home::Own(values) = &mut self.homes[node] {
            values[flat] = Some(value);
            return Ok(());
        }
        let (place, expected) = self.place(node, at);
        let got = match self.memory.bytes_mut(node) {
            Some(bytes) if bytes.len() == expected => {
                value.write(&mut bytes[place]);
                return Ok(());
            }
            bytes => bytes.map(|bytes| bytes.len()),
        };
        Err(self.unusable(node, expected, got))
    }

    fn load(&self, node: NodeId, at: &[i64]) -> Outcome<A, Scalar> {
        let (place, expected) = self.place(node, at);
        match self.memory.bytes(node) {
            Some(bytes) if bytes.len() == expected => {
                Ok(Scalar::read(self.graph.node(node).dtype, &bytes[place]))
            }
            bytes => Err(self.unusable(node, expected, bytes.map(<[u8]>::len))),
        }
    }

    /// The element of a node at these indices: read from memory, or computed here.
    pub(super) fn element(&mut self, node: NodeId, at: &[i64]) -> Outcome<A, Scalar> {
        match &self.homes[node] {
            Home::Caller => return self.load(node, at),
            Home::Own(values) => {
                let value = values[self.flat(&self.graph.node(node).dims, at)];
                return value.ok_or_else(|| self.wrong_tree(node, "is read before it is computed"));
            }
            Home::Inline => {}
        }
        if !self.shared[node] {
            return self.compute(node, at);
        }
        // Several readers: computed once for a leaf, or a chain of `x + x` would double at each step.
        let mut computed = self.computed.get(&node).into_iter().flatten();
        if let Some((_, value)) = computed.find(|(found, _)| found[..] == *at) {
            return Ok(*value);
        }
        let value = self.compute(node, at)?;
        let computed = self.computed.entry(node).or_default();
        computed.push((at.into(), value));
        Ok(value)
    }

    /// The element of a node at these indices, computed from its inputs. Not for nodes that fold or sort.
    pub(super) fn compute(&mut self, node: NodeId, at: &[i64]) -> Outcome<A, Scalar> {
        let graph = self.graph;
        let parts = graph.node(node);
        match &parts.op {
            NodeOp::Constant(values) => match values.get(self.flat(&parts.dims, at)) {
                Some(value) => Ok(*value),
                None => Err(self.wrong_tree(node, "has no such element")),
            },
            NodeOp::Index(dim) => {
                let index = self.along(node, at, &[*dim])?[0];
                self.cast(node, Scalar::i64(index), parts.dtype)
            }
            NodeOp::Size(size) => Ok(Scalar::i64(self.number(node, at, size)?)),
            NodeOp::Map(op) => {
                let mut operands: SmallVec<[Scalar; 3]> = SmallVec::new();
                for input in &parts.inputs {
                    operands.push(self.operand(node, at, *input)?);
                }
                match op {
                    Op::Copy => Ok(operands[0]),
                    op => self.map(node, *op, &operands, parts.dtype),
                }
            }
            NodeOp::Cast => {
                let value = self.operand(node, at, parts.inputs[0])?;
                self.cast(node, value, parts.dtype)
            }
            NodeOp::Bitcast => {
                // The graph allows it only between dtypes of the same width, neither of them `bool`.
                let value = self.operand(node, at, parts.inputs[0])?;
                Ok(Scalar::from_bits(parts.dtype, value.bits()))
            }
            NodeOp::Previous { of, over, outside } => {
                let own = parts.dims.iter();
                let before = own.zip(at).map(|(dim, at)| at - i64::from(dim == over));
                let before: Indices = before.collect();
                match before.iter().any(|at| *at < 0) {
                    true => Ok(*outside),
                    false => self.element(*of, &before),
                }
            }
            NodeOp::View(view) => self.viewed(node, view, at),
            NodeOp::Gather { axis, outside } => {
                let (table, index) = (parts.inputs[0], parts.inputs[1]);
                let index = self.operand(node, at, index)?.as_i64();
                let size = self.binding.size(*axis);
                let Some(found) = index.filter(|index| (0..size).contains(index)) else {
                    return Ok(*outside);
                };
                let mut inner = Indices::new();
                for dim in &graph.node(table).dims {
                    inner.push(if dim == axis {
                        found
                    } else {
                        self.along(node, at, &[*dim])?[0]
                    });
                }
                self.element(table, &inner)
            }
            NodeOp::Input | NodeOp::State => {
                Err(self.wrong_tree(node, "is given from outside, and has a leaf"))
            }
            NodeOp::Reduce { .. }
            | NodeOp::ArgReduce { .. }
            | NodeOp::Scan { .. }
            | NodeOp::Scatter { .. }
            | NodeOp::Sort { .. }
            | NodeOp::ArgSort { .. } => {
                Err(self.wrong_tree(node, "has no leaf, and cannot be computed where it is read"))
            }
        }
    }

    /// Of the indices of a node, those along some of its dimensions.
    fn along(&self, node: NodeId, at: &[i64], dims: &[DimId]) -> Outcome<A, Indices> {
        let own = &self.graph.node(node).dims;
        let index = |dim: &DimId| Some(at[own.iter().position(|own| own == dim)?]);
        let indices: Option<Indices> = dims.iter().map(index).collect();
        indices.ok_or_else(|| self.wrong_tree(node, "lacks a dimension of what it reads"))
    }

    /// The element of an input that an element of a node is made from.
    fn operand(&mut self, node: NodeId, at: &[i64], input: NodeId) -> Outcome<A, Scalar> {
        let inner = self.along(node, at, &self.graph.node(input).dims)?;
        self.element(input, &inner)
    }

    fn viewed(&mut self, node: NodeId, view: &View, at: &[i64]) -> Outcome<A, Scalar> {
        let input = self.graph.node(node).inputs[0];
        match self.source(node, view, at)? {
            Some(inner) => self.element(input, &inner),
            None => view.outside.ok_or_else(|| ExecuteError::Index {
                node: self.graph.node_name(node),
                message: "the view reads outside its input, which was checked".to_owned(),
            }),
        }
    }

    /// Where a view's element comes from, if it comes from somewhere.
    fn source(&self, node: NodeId, view: &View, at: &[i64]) -> Outcome<A, Option<Indices>> {
        for constraint in &view.constraints {
            if self.number(node, at, constraint)? == 0 {
                return Ok(None);
            }
        }
        let input = self.graph.node(node).inputs[0];
        let mut inner = Indices::new();
        for (dim, index) in self.graph.node(input).dims.iter().zip(&view.map) {
            let index = self.number(node, at, index)?;
            if !(0..self.binding.size(*dim)).contains(&index) {
                return Ok(None);
            }
            inner.push(index);
        }
        Ok(Some(inner))
    }

    /// The value of an expression over sizes, statics and the indices of a node.
    fn number(&self, node: NodeId, at: &[i64], expr: &Expr) -> Outcome<A, i64> {
        let graph = self.graph;
        let dims = &graph.node(node).dims;
        let value = |symbol: Symbol| {
            let own = dims.iter().position(|dim| graph.dim(*dim).index == symbol);
            Some(own.map_or_else(|| self.binding.value(symbol), |own| at[own]))
        };
        expr.evaluate(&value)
            .map_err(|error| ExecuteError::index(graph, node, &error))
    }

    /// The value of an op, by the caller's arithmetic.
    pub(super) fn map(
        &mut self,
        node: NodeId,
        op: Op,
        operands: &[Scalar],
        dtype: DType,
    ) -> Outcome<A, Scalar> {
        let value = self.arithmetic.map(op, operands);
        self.checked(node, value, dtype)
    }

    /// The value converted, by the caller's arithmetic.
    pub(super) fn cast(&mut self, node: NodeId, value: Scalar, to: DType) -> Outcome<A, Scalar> {
        if value.dtype() == to {
            return Ok(value);
        }
        let value = self.arithmetic.cast(value, to);
        self.checked(node, value, to)
    }

    fn checked(
        &self,
        node: NodeId,
        value: Result<Scalar, A::Error>,
        expected: DType,
    ) -> Outcome<A, Scalar> {
        let name = || self.graph.node_name(node);
        let value = value.map_err(|error| ExecuteError::Arithmetic {
            node: name(),
            error,
        })?;
        if value.dtype() != expected {
            return Err(ExecuteError::DType {
                node: name(),
                expected,
                got: value.dtype(),
            });
        }
        Ok(value)
    }
}
