//! Expressions as values: each operator and each call makes a node.

use super::ast::{Expr, ExprKind, LiteralKind, Name};
use super::lower::{Lowering, Meaning, literal_scalar};
use crate::error::GraphError;
use crate::ir::NodeId;
use loopwright_ops::{DType, Op, OpError, Output};
use loopwright_symbolic::Expr as SizeExpr;
use loopwright_text::{Diagnostic, Span};

/// The node of an expression.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lowered {
    pub(super) node: NodeId,
    /// Whether the expression made it: it has no name yet, and nothing else reads it.
    pub(super) fresh: bool,
}

impl Lowered {
    pub(super) fn fresh(node: NodeId) -> Lowered {
        Lowered { node, fresh: true }
    }
}

impl Lowering {
    /// The node of a value. `expected` is the dtype that literals without one of their own take.
    pub(super) fn value(
        &mut self,
        expr: &Expr,
        expected: Option<DType>,
    ) -> Result<Lowered, Diagnostic> {
        match &expr.kind {
            ExprKind::Literal(literal) => {
                let dtype = literal.dtype.or(match literal.kind {
                    LiteralKind::Bool => Some(DType::Bool),
                    LiteralKind::Int | LiteralKind::Float => expected,
                });
                let dtype = dtype.unwrap_or(default_dtype(literal.kind));
                let value = literal_scalar(literal, dtype, expr.span)?;
                self.builder.at(expr.span);
                Ok(Lowered::fresh(self.builder.constant(value)))
            }
            ExprKind::Name(name) => self.named(name),
            ExprKind::Unary(unary, operand) => {
                let operand = self.value(operand, expected)?.node;
                self.map(unary.op(), &[operand], expr.span, &[])
            }
            ExprKind::Binary(binary, left, right) => {
                self.balanced_map(binary.op(), &[left, right], expected, expr.span)
            }
            ExprKind::Call(call) => self.call(call, expected, expr.span),
            ExprKind::Index(index) => self.indexed(index, expected, expr.span),
        }
    }

    fn named(&mut self, name: &Name) -> Result<Lowered, Diagnostic> {
        self.builder.at(name.span);
        match self.lookup(name) {
            Some(Meaning::Node(node)) => Ok(Lowered { node, fresh: false }),
            Some(Meaning::Dim(dim)) => {
                let node = self.builder.index(dim, DType::I64);
                self.at(name.span, node).map(Lowered::fresh)
            }
            Some(Meaning::Size(symbol) | Meaning::Static(symbol)) => {
                let node = self.builder.size_value(SizeExpr::symbol(symbol));
                self.at(name.span, node).map(Lowered::fresh)
            }
            None => Err(self.unknown("an array, a dimension or a size", name, &[])),
        }
    }

    /// An op of the table on operands that share a dtype, which literals take from the others.
    pub(super) fn balanced_map(
        &mut self,
        op: Op,
        operands: &[&Expr],
        expected: Option<DType>,
        span: Span,
    ) -> Result<Lowered, Diagnostic> {
        let expected = match op.info().output {
            Output::Same => expected,
            Output::Bool => None,
        };
        let mut nodes = Vec::with_capacity(operands.len());
        let mut values = operands;
        if op == Op::Select
            && let [condition, rest @ ..] = operands
        {
            nodes.push(self.value(condition, None)?.node);
            values = rest;
        }
        nodes.extend(self.balanced(values, expected)?);
        let places: Vec<Span> = operands.iter().map(|operand| operand.span).collect();
        self.map(op, &nodes, span, &places)
    }

    /// Values of one dtype: literals take it from the first operand that has one of its own.
    pub(super) fn balanced(
        &mut self,
        operands: &[&Expr],
        expected: Option<DType>,
    ) -> Result<Vec<NodeId>, Diagnostic> {
        let kinds: Vec<Option<LiteralKind>> =
            operands.iter().map(|operand| weak_kind(operand)).collect();
        let mut nodes = vec![None; operands.len()];
        let mut dtype = None;
        for (at, operand) in operands.iter().enumerate() {
            if kinds[at].is_none() {
                let node = self.value(operand, None)?.node;
                dtype.get_or_insert(self.builder.node(node).dtype);
                nodes[at] = Some(node);
            }
        }
        let dtype = dtype.or(expected).unwrap_or_else(|| {
            let float = kinds.contains(&Some(LiteralKind::Float));
            default_dtype(if float {
                LiteralKind::Float
            } else {
                LiteralKind::Int
            })
        });
        let mut all = Vec::with_capacity(operands.len());
        for (node, operand) in nodes.into_iter().zip(operands) {
            all.push(match node {
                Some(node) => node,
                None => self.value(operand, Some(dtype))?.node,
            });
        }
        Ok(all)
    }

    /// An op of the table; a mismatch of dtypes is shown at the operands' places.
    pub(super) fn map(
        &mut self,
        op: Op,
        nodes: &[NodeId],
        span: Span,
        places: &[Span],
    ) -> Result<Lowered, Diagnostic> {
        self.builder.at(span);
        match self.builder.map(op, nodes) {
            Ok(node) => Ok(Lowered::fresh(node)),
            Err(GraphError::Op(error @ OpError::Mismatch { left, right, .. })) => {
                let place = |dtype: DType| {
                    let mut operands = nodes.iter().zip(places).skip(usize::from(op == Op::Select));
                    operands
                        .find(|(node, _)| self.builder.node(**node).dtype == dtype)
                        .map_or(span, |(_, place)| *place)
                };
                Err(Diagnostic::new(place(right), error.to_string())
                    .note(format!("this is {right}; `{left}(..)` casts it"))
                    .label(place(left), format!("this is {left}")))
            }
            Err(error) => Err(Diagnostic::new(span, error.to_string())),
        }
    }
}

pub(super) fn default_dtype(kind: LiteralKind) -> DType {
    match kind {
        LiteralKind::Bool => DType::Bool,
        LiteralKind::Int => DType::I64,
        LiteralKind::Float => DType::F32,
    }
}

/// What an expression made of nothing but literals without a dtype is: whole, or with a fraction
/// somewhere. `None` for an expression that has a dtype of its own.
pub(super) fn weak_kind(expr: &Expr) -> Option<LiteralKind> {
    match &expr.kind {
        ExprKind::Literal(literal) => match (literal.dtype, literal.kind) {
            (Some(_), _) | (None, LiteralKind::Bool) => None,
            (None, kind) => Some(kind),
        },
        ExprKind::Unary(_, operand) => weak_kind(operand),
        ExprKind::Binary(binary, left, right) => match binary.op().info().output {
            Output::Same => weak_kinds([&**left, &**right]),
            Output::Bool => None,
        },
        ExprKind::Call(call) => {
            let op = Op::from_name(&call.function.text).filter(|_| call.options.is_none())?;
            if op.info().output == Output::Bool || call.arguments.len() != op.arity() {
                return None;
            }
            let condition = usize::from(op == Op::Select);
            weak_kinds(call.arguments.iter().skip(condition))
        }
        ExprKind::Name(_) | ExprKind::Index(_) => None,
    }
}

fn weak_kinds<'a>(operands: impl IntoIterator<Item = &'a Expr>) -> Option<LiteralKind> {
    let mut operands = operands.into_iter();
    operands.try_fold(LiteralKind::Int, |kind, operand| {
        let own = weak_kind(operand)?;
        Some(if own == LiteralKind::Float { own } else { kind })
    })
}
