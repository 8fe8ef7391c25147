//! The graph at given sizes.

use crate::binding::Binding;
use crate::ir::{Graph, NodeOp, SymbolInfo};
use loopwright_symbolic::{Expr, Symbol};

impl Graph {
    /// The graph at the sizes of a binding: every size is a number, in dimensions, views, values and the
    /// ranges of statics. It computes what the graph computes at these sizes, and code made of it knows
    /// every trip count and every stride.
    ///
    /// Nodes, dimensions and symbols keep their handles, so the binding is one of both graphs, and a kernel
    /// of either takes the same arguments. A size stays declared, as a static whose range is its one value:
    /// [`Graph::bind`] then refuses any other.
    pub fn with_sizes(&self, binding: &Binding) -> Graph {
        let mut graph = self.clone();
        let number = |symbol: Symbol| match self.symbols.get(symbol)? {
            SymbolInfo::Size { .. } => Some(Expr::constant(binding.value(symbol))),
            SymbolInfo::Static { .. } | SymbolInfo::Index(_) => None,
        };
        // A result that 64 bits do not hold leaves the expression over symbols, which have these values.
        let specialise = |expr: &mut Expr| {
            if let Ok(special) = expr.substitute(&number) {
                *expr = special;
            }
        };
        for (symbol, info) in graph.symbols.iter_mut_enumerated() {
            match info {
                SymbolInfo::Size { name, .. } => {
                    let value = binding.value(symbol);
                    *info = SymbolInfo::Static {
                        name: std::mem::take(name),
                        lo: Expr::constant(value),
                        hi: Expr::constant(value.saturating_add(1)),
                        default: Some(value),
                    };
                }
                SymbolInfo::Static { lo, hi, .. } => {
                    specialise(lo);
                    specialise(hi);
                }
                SymbolInfo::Index(_) => {}
            }
        }
        for (dim, id) in graph.dims.iter_mut().zip(self.dim_ids()) {
            dim.size = Expr::constant(binding.size(id));
        }
        for node in &mut graph.nodes {
            match &mut node.op {
                NodeOp::View(view) => {
                    view.map.iter_mut().for_each(specialise);
                    view.constraints.iter_mut().for_each(specialise);
                }
                NodeOp::Size(size) => specialise(size),
                _ => {}
            }
        }
        graph
    }
}
