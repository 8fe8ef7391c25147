//! Static symbols: integers that are chosen anew for every run, within a range known beforehand.
//!
//! A static is a parameter of the program like a size, and unlike one it never decides how large an
//! array is: memory is laid out, and a program linked to it, before its value is known. Its range is
//! known though, so a view whose index holds one can be shown to stay inside its input.

use crate::binding::Binding;
use crate::builder::{GraphBuilder, Named};
use crate::error::GraphError;
use crate::ir::{Graph, NodeId, NodeOp, SymbolInfo};
use crate::solve::{self, Located};
use crate::text::expr_text;
use loopwright_arena::TiSlice;
use loopwright_symbolic::{Bounds, Expr, ExprKind, Range, Symbol};
use loopwright_text::Span;

/// A static symbol of a graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Static<'a> {
    /// Its symbol.
    pub symbol: Symbol,
    /// Its name.
    pub name: &'a str,
    /// The smallest value, over size symbols.
    pub lo: &'a Expr,
    /// The end of the range, which is no value any more, over size symbols.
    pub hi: &'a Expr,
    /// The value used where none is given.
    pub default: Option<i64>,
}

impl Graph {
    /// The static symbols, in order.
    pub fn statics(&self) -> impl Iterator<Item = Static<'_>> {
        let symbols = self.symbols.iter_enumerated();
        symbols.filter_map(|(symbol, info)| match info {
            SymbolInfo::Static {
                name,
                lo,
                hi,
                default,
            } => Some(Static {
                symbol,
                name,
                lo,
                hi,
                default: *default,
            }),
            SymbolInfo::Size { .. } | SymbolInfo::Index(_) => None,
        })
    }

    /// The integers that a run is given, sizes and statics, in the order of their symbols, each with
    /// its name and its default. Kernels take them in this order.
    pub fn integers(&self) -> impl Iterator<Item = (Symbol, &str, Option<i64>)> {
        let symbols = self.symbols.iter_enumerated();
        symbols.filter_map(|(symbol, info)| match info {
            SymbolInfo::Size { name, default } | SymbolInfo::Static { name, default, .. } => {
                Some((symbol, name.as_str(), *default))
            }
            SymbolInfo::Index(_) => None,
        })
    }
}

/// What the range of a static lets it be, whatever the sizes are.
pub(crate) fn static_bounds(lo: &Expr, hi: &Expr, sizes: &Bounds) -> Range {
    Range {
        lo: lo.range(sizes).lo,
        hi: hi.range(sizes).hi.map(|hi| hi.saturating_sub(1)),
    }
}

impl GraphBuilder {
    /// An integer that is chosen when the program is scheduled, from `lo` to `hi`, not included: both
    /// are expressions over size symbols and [`GraphBuilder::size_of`]. It can stand in indices and
    /// conditions of views and in [`GraphBuilder::size_value`], never in a dimension's size.
    pub fn static_symbol(
        &mut self,
        name: &str,
        lo: Expr,
        hi: Expr,
        default: Option<i64>,
    ) -> Result<Symbol, GraphError> {
        let symbol = self.declare_static(name, default)?;
        self.set_range(symbol, lo, hi)?;
        Ok(symbol)
    }

    /// A static whose range is said later.
    pub(crate) fn declare_static(
        &mut self,
        name: &str,
        default: Option<i64>,
    ) -> Result<Symbol, GraphError> {
        self.check_name(name)?;
        let symbol = self.symbols.next_key();
        self.names.insert(name.to_owned(), Named::Static(symbol));
        self.symbols.push(SymbolInfo::Static {
            name: name.to_owned(),
            lo: Expr::constant(0),
            hi: Expr::constant(0),
            default,
        });
        self.static_places.push((symbol, self.place));
        Ok(symbol)
    }

    /// Says the range of a static.
    pub(crate) fn set_range(
        &mut self,
        symbol: Symbol,
        from: Expr,
        to: Expr,
    ) -> Result<(), GraphError> {
        let used: Vec<Symbol> = from.symbols().union(&to.symbols()).copied().collect();
        for used in used {
            let other = match self.symbols.get(used) {
                Some(SymbolInfo::Static { name, .. }) => format!("static `{name}`"),
                Some(SymbolInfo::Index(dim)) => {
                    format!("the index along `{}`", self.dim_name(*dim))
                }
                Some(SymbolInfo::Size { .. }) | None => continue,
            };
            let name = solve::name_of(self, symbol);
            return Err(GraphError::StaticRange { name, other });
        }
        if let Some(SymbolInfo::Static { lo, hi, .. }) = self.symbols.get_mut(symbol) {
            (*lo, *hi) = (from, to);
        }
        Ok(())
    }

    /// A static symbol by name.
    pub fn find_static(&self, name: &str) -> Option<Symbol> {
        match self.names.get(name) {
            Some(Named::Static(symbol)) => Some(*symbol),
            _ => None,
        }
    }
}

/// Checks what is known of statics without sizes: a default is not outside a range of numbers, and
/// nothing is divided by a static that may be 0. `statics` and `nodes` have their places in the source.
pub(crate) fn check(
    graph: &Graph,
    statics: &[(Symbol, Option<Span>)],
    nodes: &TiSlice<NodeId, Option<Span>>,
    bounds: &Bounds,
) -> Result<(), Located> {
    for found in graph.statics() {
        let (Some(lo), Some(hi)) = (found.lo.as_const(), found.hi.as_const()) else {
            continue;
        };
        if let Some(default) = found.default {
            inside_range(found.name, default, (lo, hi)).map_err(|error| {
                let place = statics.iter().find(|(symbol, _)| *symbol == found.symbol);
                Located::at(error, place.and_then(|(_, place)| *place))
            })?;
        }
    }
    for id in graph.node_ids() {
        check_divisors(graph, id, bounds).map_err(|error| Located::at(error, nodes[id]))?;
    }
    Ok(())
}

/// Refuses a divisor that holds a static and may be 0. One made of sizes alone is checked when they are
/// bound; the value of a static comes after that.
fn check_divisors(graph: &Graph, node: NodeId, bounds: &Bounds) -> Result<(), GraphError> {
    let mut open: Vec<&Expr> = match &graph.node(node).op {
        NodeOp::View(view) => view.map.iter().chain(&view.constraints).collect(),
        NodeOp::Size(size) => vec![size],
        _ => return Ok(()),
    };
    while let Some(expr) = open.pop() {
        if let ExprKind::FloorDiv(_, divisor) | ExprKind::Mod(_, divisor) = expr.kind() {
            let found = divisor.symbols().into_iter().find_map(|symbol| {
                let info = graph.symbol(symbol);
                matches!(info, SymbolInfo::Static { .. }).then(|| graph.symbol_name(symbol))
            });
            if let Some(name) = found
                && divisor.range(bounds).contains(0)
            {
                return Err(GraphError::StaticDivisor {
                    name,
                    divisor: expr_text(divisor, &|symbol| graph.symbol_name(symbol)),
                });
            }
        }
        open.extend(expr.kind().children());
    }
    Ok(())
}

/// Refuses a value outside a range.
pub(crate) fn inside_range(
    name: &str,
    value: i64,
    (lo, hi): (i64, i64),
) -> Result<i64, GraphError> {
    let name = || name.to_owned();
    if lo >= hi {
        return Err(GraphError::EmptyRange {
            name: name(),
            lo,
            hi,
        });
    }
    if !(lo..hi).contains(&value) {
        return Err(GraphError::OutsideRange {
            name: name(),
            value,
            lo,
            hi,
        });
    }
    Ok(value)
}

impl Binding {
    /// The values a static can have with these sizes, from the first to the second, not included. The
    /// range of a size is its one value, that of an index its dimension.
    pub fn static_range(&self, graph: &Graph, symbol: Symbol) -> (i64, i64) {
        let at = symbol;
        match graph.symbol(symbol) {
            SymbolInfo::Static { .. } => self.ranges[at],
            SymbolInfo::Size { .. } => (self.values[at], self.values[at].saturating_add(1)),
            SymbolInfo::Index(dim) => (0, self.size(*dim)),
        }
    }

    /// Chooses the value of a static, which must be in its range.
    pub fn set_static(
        &mut self,
        graph: &Graph,
        symbol: Symbol,
        value: i64,
    ) -> Result<(), GraphError> {
        let SymbolInfo::Static { name, .. } = graph.symbol(symbol) else {
            return Err(GraphError::NotAStatic {
                name: graph.symbol_name(symbol),
            });
        };
        self.values[symbol] = inside_range(name, value, self.static_range(graph, symbol))?;
        Ok(())
    }
}
