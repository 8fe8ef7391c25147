//! Refuses sizes and statics with which index arithmetic could leave 64 bits.
//!
//! Proofs about indices (`inside.rs`, the ranges of `symbolic`) are about exact integers, and compiled code computes in 64
//! bits that wrap. The two agree as long as no index does not fit, so that is checked where sizes are bound, before
//! anything runs: for every value of the indices and of the statics, not for those of one run.

use crate::binding::Binding;
use crate::error::GraphError;
use crate::ir::{Graph, NodeId, NodeOp, SymbolInfo};
use crate::text::expr_text;
use loopwright_symbolic::{Expr, ExprKind, Symbol};

/// What the magnitude of an index, and of any part of one, may be. Half of what 64 bits hold: rewrites move terms from one side
/// of a comparison to the other and put a dividend in place of a remainder, which doubles a sum at most.
const LIMIT: u128 = 1 << 62;

impl Graph {
    /// Refuses a node that is computed, and whose index or value may not fit with these sizes.
    pub(crate) fn check_arithmetic(
        &self,
        node: NodeId,
        binding: &Binding,
    ) -> Result<(), GraphError> {
        let exprs: Vec<&Expr> = match &self.node(node).op {
            NodeOp::View(view) => view.map.iter().chain(&view.constraints).collect(),
            NodeOp::Size(size) => vec![size],
            _ => return Ok(()),
        };
        if exprs.iter().all(|expr| is_plain(expr)) || binding.shape(self, node).contains(&0) {
            return Ok(());
        }
        let magnitudes = Magnitudes {
            graph: self,
            binding,
        };
        for expr in exprs {
            magnitudes
                .of(expr)
                .map_err(|part| self.index_overflow(node, expr, &part, binding))?;
        }
        Ok(())
    }

    fn index_overflow(
        &self,
        node: NodeId,
        index: &Expr,
        part: &Expr,
        binding: &Binding,
    ) -> GraphError {
        let name = |symbol| self.symbol_name(symbol);
        let values: Vec<String> = part
            .symbols()
            .into_iter()
            .map(|symbol| match self.symbol(symbol) {
                SymbolInfo::Size { name, .. } => format!("{name} = {}", binding.value(symbol)),
                SymbolInfo::Static { name, .. } => {
                    let (lo, hi) = binding.static_range(self, symbol);
                    format!("{name} in {lo} .. {hi}")
                }
                SymbolInfo::Index(dim) => {
                    format!("{} in 0 .. {}", self.dim(*dim).name, binding.size(*dim))
                }
            })
            .collect();
        GraphError::IndexOverflow {
            node: self.node_name(node).into(),
            index: expr_text(index, &name),
            part: expr_text(part, &name),
            values: values.join(", ").into(),
        }
    }
}

/// Whether nothing is computed: an index as it is, or a number.
fn is_plain(expr: &Expr) -> bool {
    matches!(expr.kind(), ExprKind::Symbol(_) | ExprKind::Const(_))
}

/// The largest magnitudes of expressions, for all values of indices and statics.
struct Magnitudes<'a> {
    graph: &'a Graph,
    binding: &'a Binding,
}

impl Magnitudes<'_> {
    /// The largest magnitude of an expression. That of a sum is the sum of its terms' magnitudes, whatever their signs: so
    /// it holds for every sum of some of them, in any order, and on either side of a comparison.
    ///
    /// # Errors
    /// The part that exceeds [`LIMIT`].
    fn of(&self, expr: &Expr) -> Result<u128, Expr> {
        let within = |magnitude: u128| match magnitude <= LIMIT {
            true => Ok(magnitude),
            false => Err(expr.clone()),
        };
        match expr.kind() {
            ExprKind::Const(value) => Ok(value.unsigned_abs().into()),
            ExprKind::Symbol(symbol) => Ok(self.symbol(*symbol)),
            ExprKind::Add(terms) => {
                let mut sum = 0u128;
                for term in terms {
                    sum = sum.saturating_add(self.of(term)?);
                }
                within(sum)
            }
            ExprKind::Mul(factors) => {
                let mut product = 1u128;
                for factor in factors {
                    product = product.saturating_mul(self.of(factor)?);
                }
                within(product)
            }
            ExprKind::FloorDiv(a, b) => {
                let dividend = within(self.of(a)?)?;
                self.of(b)?;
                // A divisor that is not known divides by 1 at least.
                Ok(dividend.div_ceil(self.exact(b).unwrap_or(1).max(1)))
            }
            ExprKind::Mod(a, b) => {
                within(self.of(a)?)?;
                within(self.of(b)?)
            }
            ExprKind::Min(a, b) | ExprKind::Max(a, b) => Ok(self.of(a)?.max(self.of(b)?)),
            ExprKind::Compare(_, a, b) => {
                within(self.of(a)?.saturating_add(self.of(b)?))?;
                Ok(1)
            }
        }
    }

    /// The magnitude of an expression over sizes alone.
    fn exact(&self, expr: &Expr) -> Option<u128> {
        let value = expr.evaluate(&|symbol| match self.graph.symbol(symbol) {
            SymbolInfo::Size { .. } => Some(self.binding.value(symbol)),
            SymbolInfo::Static { .. } | SymbolInfo::Index(_) => None,
        });
        Some(value.ok()?.unsigned_abs().into())
    }

    fn symbol(&self, symbol: Symbol) -> u128 {
        if let SymbolInfo::Size { .. } = self.graph.symbol(symbol) {
            return self.binding.value(symbol).unsigned_abs().into();
        }
        let (lo, hi) = self.binding.static_range(self.graph, symbol);
        // An empty range has no value that anything could be computed with.
        match lo < hi {
            true => u128::from(lo.unsigned_abs().max((hi - 1).unsigned_abs())),
            false => 0,
        }
    }
}
