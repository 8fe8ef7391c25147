//! Values for a program's sizes and statics.

use crate::error::GraphError;
use crate::ir::{DimId, Graph, NodeId, NodeOp, SymbolInfo};
use crate::statics::{Static, inside_range};
use crate::text::expr_text;
use loopwright_arena::TiVec;
use loopwright_symbolic::{Expr, ExprKind, Symbol};

/// The value of every size of one run, and of every static.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Binding {
    /// By symbol; index symbols hold 0.
    pub(crate) values: TiVec<Symbol, i64>,
    /// The range of each static, by symbol; the second number is no value any more.
    pub(crate) ranges: TiVec<Symbol, (i64, i64)>,
    /// By dimension.
    sizes: TiVec<DimId, i64>,
}

impl Binding {
    /// The value of a size or a static.
    pub fn value(&self, symbol: Symbol) -> i64 {
        self.values[symbol]
    }

    /// The size of a dimension.
    pub fn size(&self, dim: DimId) -> i64 {
        self.sizes[dim]
    }

    /// The same with another size for a dimension alone, whatever it follows from.
    pub(crate) fn with_dim(&self, dim: DimId, size: i64) -> Binding {
        let mut binding = self.clone();
        binding.sizes[dim] = size;
        binding
    }

    /// The shape of a node.
    pub fn shape(&self, graph: &Graph, node: NodeId) -> Vec<i64> {
        let dims = graph.node(node).dims.iter();
        dims.map(|dim| self.size(*dim)).collect()
    }

    /// How many elements a node has.
    pub fn elements(&self, graph: &Graph, node: NodeId) -> i64 {
        self.shape(graph, node).iter().product()
    }

    /// Values of all sizes and statics, in order, as kernels take them.
    pub fn arguments(&self, graph: &Graph) -> Vec<i64> {
        graph
            .integers()
            .map(|(symbol, ..)| self.value(symbol))
            .collect()
    }
}

impl Graph {
    /// Values for all sizes and statics: the given ones, else the program's defaults. Checks that every
    /// dimension has a size, every node fits the address space, and every static is in its range.
    pub fn bind(&self, given: &[(&str, i64)]) -> Result<Binding, GraphError> {
        self.bound(given, true)
    }

    /// Values for all sizes, as [`Graph::bind`] gives them, before those of statics are known. A static
    /// that is not given holds its default, or the lower end of its range, until
    /// [`Binding::set_static`] chooses its value; its range may be empty as long as none is chosen.
    pub fn bind_sizes(&self, given: &[(&str, i64)]) -> Result<Binding, GraphError> {
        self.bound(given, false)
    }

    /// `complete`: every static must have a value.
    fn bound(&self, given: &[(&str, i64)], complete: bool) -> Result<Binding, GraphError> {
        for (name, _) in given {
            if !self.integers().any(|(_, found, _)| found == *name) {
                return Err(GraphError::NoSuchSize {
                    name: (*name).to_owned(),
                    sizes: self
                        .integers()
                        .map(|(_, name, _)| name.to_owned())
                        .collect(),
                });
            }
        }
        let mut values: TiVec<Symbol, i64> = vec![0; self.symbols.len()].into();
        for (at, info) in self.symbols.iter_enumerated() {
            let SymbolInfo::Size { name, default } = info else {
                continue;
            };
            let value = last(given, name)
                .or(*default)
                .ok_or_else(|| GraphError::Unbound { name: name.clone() })?;
            if value < 0 {
                return Err(GraphError::NegativeSize {
                    dim: name.clone(),
                    size: value,
                    origin: String::new(),
                });
            }
            values[at] = value;
        }
        let mut sizes = TiVec::with_capacity(self.dims.len());
        for dim in &self.dims {
            let size = dim
                .size
                .evaluate(&|symbol| values.get(symbol).copied())
                .map_err(|error| {
                    GraphError::Symbolic(format!(
                        "the size of dimension `{}` cannot be computed: {}",
                        dim.name,
                        error.display(&|symbol| self.symbol_name(symbol))
                    ))
                })?;
            if size < 0 {
                return Err(GraphError::NegativeSize {
                    dim: dim.name.clone(),
                    size,
                    origin: format!(
                        "{} with the sizes given",
                        expr_text(&dim.size, &|symbol| self.symbol_name(symbol))
                    ),
                });
            }
            sizes.push(size);
        }
        let mut binding = Binding {
            ranges: vec![(0, 0); values.len()].into(),
            values,
            sizes,
        };
        for found in self.statics() {
            let at = found.symbol;
            let range = (
                self.range_end(&found, found.lo, &binding)?,
                self.range_end(&found, found.hi, &binding)?,
            );
            binding.ranges[at] = range;
            let given = last(given, found.name);
            let chosen = match given.or(found.default) {
                Some(value) if complete || given.is_some() => {
                    inside_range(found.name, value, range)?
                }
                Some(value) if (range.0..range.1).contains(&value) => value,
                None if complete && range.0 < range.1 => {
                    return Err(GraphError::UnboundStatic {
                        name: found.name.to_owned(),
                        lo: range.0,
                        hi: range.1,
                    });
                }
                None if complete => inside_range(found.name, range.0, range)?,
                _ => range.0,
            };
            binding.values[at] = chosen;
        }
        for node in self.node_ids() {
            self.check_fits(node, &binding)?;
            self.check_divisors(node, &binding)?;
            self.check_arithmetic(node, &binding)?;
        }
        Ok(binding)
    }

    /// One end of a static's range.
    fn range_end(
        &self,
        found: &Static<'_>,
        end: &Expr,
        binding: &Binding,
    ) -> Result<i64, GraphError> {
        end.evaluate(&|symbol| binding.values.get(symbol).copied())
            .map_err(|error| {
                GraphError::Symbolic(format!(
                    "the range of static `{}` cannot be computed: {}",
                    found.name,
                    error.display(&|symbol| self.symbol_name(symbol))
                ))
            })
    }

    /// Refuses a node that is computed and whose index or value divides by a size that is 0.
    fn check_divisors(&self, node: NodeId, binding: &Binding) -> Result<(), GraphError> {
        let mut open: Vec<&Expr> = match &self.node(node).op {
            NodeOp::View(view) => view.map.iter().chain(&view.constraints).collect(),
            NodeOp::Size(size) => vec![size],
            _ => return Ok(()),
        };
        if binding.shape(self, node).contains(&0) {
            return Ok(());
        }
        while let Some(expr) = open.pop() {
            if let ExprKind::FloorDiv(_, divisor) | ExprKind::Mod(_, divisor) = expr.kind() {
                let value = |symbol: Symbol| match self.symbol(symbol) {
                    SymbolInfo::Size { .. } | SymbolInfo::Static { .. } => {
                        Some(binding.value(symbol))
                    }
                    SymbolInfo::Index(_) => None,
                };
                if divisor.evaluate(&value) == Ok(0) {
                    return Err(GraphError::ZeroDivisor {
                        node: self.node_name(node),
                        divisor: divisor.display(&|s| self.symbol_name(s)).to_string(),
                    });
                }
            }
            open.extend(expr.kind().children());
        }
        Ok(())
    }

    /// Refuses a node whose bytes, were it laid out, do not fit 63 bits.
    fn check_fits(&self, node: NodeId, binding: &Binding) -> Result<(), GraphError> {
        let mut bytes = self.node(node).dtype.bytes() as i64;
        for dim in &self.node(node).dims {
            let size = binding.size(*dim);
            if size == 0 {
                return Ok(());
            }
            bytes = bytes.checked_mul(size).ok_or_else(|| {
                let dims: Vec<String> = self
                    .node(node)
                    .dims
                    .iter()
                    .map(|dim| format!("{}={}", self.dim(*dim).name, binding.size(*dim)))
                    .collect();
                let what = match self.node(node).op {
                    NodeOp::Input => "input",
                    NodeOp::State => "state",
                    _ => "array",
                };
                GraphError::Overflow {
                    what: format!(
                        "the size in bytes of {what} `{}` over [{}]",
                        self.node_name(node),
                        dims.join(", ")
                    ),
                }
            })?;
        }
        Ok(())
    }
}

/// The value given last under a name.
fn last(given: &[(&str, i64)], name: &str) -> Option<i64> {
    let found = given.iter().rev().find(|(given, _)| *given == name);
    found.map(|(_, value)| *value)
}
