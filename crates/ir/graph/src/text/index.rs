//! Expressions as indices and sizes, and what indexing an array makes: views and gathers.

use super::ast::{Binary, Expr, ExprKind, Index, IndexItem, LiteralKind, Unary};
use super::lower::{Lowering, Meaning, literal_scalar};
use super::parser::parse_dtype;
use super::value::Lowered;
use crate::error::GraphError;
use crate::ir::{DimId, NodeId, View};
use loopwright_ops::{DType, Scalar};
use loopwright_symbolic::{Cmp, Expr as Symbolic};
use loopwright_text::{Diagnostic, Span};
use smallvec::SmallVec;

/// What the names in a symbolic expression mean.
enum Mode<'a> {
    /// A dimension's name is its size; all names must be known.
    Size,
    /// A dimension's name is the index along it; unknown names are new dimensions. Collects the
    /// dimensions in order of appearance.
    Index(&'a mut Vec<DimId>),
}

/// What is read where: the parts of a view or a gather.
struct Access {
    map: SmallVec<[Symbolic; 4]>,
    constraints: Vec<Symbolic>,
    /// The dimensions that occur, in order of appearance.
    dims: Vec<DimId>,
    /// The position and value of the index that is an array, if there is one.
    gather: Option<(usize, NodeId)>,
}

impl Lowering {
    /// A size: an expression over sizes, and dimensions' names standing for theirs.
    pub(super) fn size_expr(&mut self, expr: &Expr) -> Result<Symbolic, Diagnostic> {
        self.symbolic(expr, &mut Mode::Size)
    }

    /// `a[..]` as a value.
    pub(super) fn indexed(
        &mut self,
        index: &Index,
        expected: Option<DType>,
        span: Span,
    ) -> Result<Lowered, Diagnostic> {
        if let Some(lowered) = self.index_along(index, span)? {
            return Ok(lowered);
        }
        let target = self.value(&index.target, expected)?;
        let access = self.access(index, target.node)?;
        let outside = self.outside(index, target.node)?;
        if access.gather.is_some() {
            return self.gather(target.node, access, outside, index, span);
        }
        let plain = access.constraints.is_empty() && outside.is_none();
        if plain && self.is_identity(target.node, &access.map) {
            return Ok(target);
        }
        let dims = access.dims.clone();
        let node = self.view(target.node, &dims, access, outside, span)?;
        Ok(Lowered::fresh(node))
    }

    /// `x[dims] = a[..]`: one view over exactly these dimensions; `None` for what is no view.
    pub(super) fn view_over(
        &mut self,
        index: &Index,
        dims: &[DimId],
        span: Span,
    ) -> Result<Option<NodeId>, Diagnostic> {
        let keyword = matches!(&index.target.kind, ExprKind::Name(name) if name.is_word("index"));
        if keyword || index.indices.iter().any(|item| self.is_value(&item.expr)) {
            return Ok(None);
        }
        let target = self.value(&index.target, None)?.node;
        let access = self.access(index, target)?;
        let outside = self.outside(index, target)?;
        self.view(target, dims, access, outside, span).map(Some)
    }

    fn view(
        &mut self,
        target: NodeId,
        dims: &[DimId],
        access: Access,
        outside: Option<Scalar>,
        span: Span,
    ) -> Result<NodeId, Diagnostic> {
        self.builder.at(span);
        let view = View {
            map: access.map,
            constraints: access.constraints,
            outside,
        };
        let node = self.builder.view(target, dims, view);
        self.at(span, node)
    }

    /// `index[i]` and `index[i, i32]`: the index along a dimension as an array.
    fn index_along(&mut self, index: &Index, span: Span) -> Result<Option<Lowered>, Diagnostic> {
        match &index.target.kind {
            ExprKind::Name(name) if name.is_word("index") => {}
            _ => return Ok(None),
        }
        let usage = "write `index[i]`, or with an integer dtype `index[i, i32]`";
        let mut parts = Vec::new();
        for item in &index.indices {
            match (&item.expr.kind, &item.size) {
                (ExprKind::Name(name), None) => parts.push(name),
                _ => return Err(Diagnostic::new(item.expr.span, "expected a name").help(usage)),
            }
        }
        if let Some((_, place)) = &index.outside {
            return Err(Diagnostic::new(
                *place,
                "`else` does not follow an index into an array, so it has no effect",
            )
            .help(usage));
        }
        let (dim, dtype) = match parts.as_slice() {
            [dim] => (dim, DType::I64),
            [dim, dtype] => (dim, parse_dtype(&dtype.text, dtype.span)?),
            _ => {
                return Err(
                    Diagnostic::new(span, "`index` takes a dimension and a dtype").help(usage),
                );
            }
        };
        let Some(Meaning::Dim(dim)) = self.lookup(dim) else {
            return Err(self.unknown("a dimension", dim, &[]));
        };
        self.builder.at(span);
        let node = self.builder.index(dim, dtype);
        self.at(span, node).map(|node| Some(Lowered::fresh(node)))
    }

    fn outside(&mut self, index: &Index, target: NodeId) -> Result<Option<Scalar>, Diagnostic> {
        let dtype = self.builder.node(target).dtype;
        match &index.outside {
            Some((literal, span)) => literal_scalar(literal, dtype, *span).map(Some),
            None => Ok(None),
        }
    }

    /// The indices and conditions of an index expression.
    fn access(&mut self, index: &Index, target: NodeId) -> Result<Access, Diagnostic> {
        let rank = self.builder.node(target).dims.len();
        if index.indices.len() != rank {
            let what = match &index.target.kind {
                ExprKind::Name(name) => format!("`{}`", name.shown()),
                _ => "the array".to_owned(),
            };
            let error = GraphError::IndexCount {
                what,
                expected: rank,
                got: index.indices.len(),
            };
            let dims = self.builder.dim_list(&self.builder.node(target).dims);
            return Err(Diagnostic::new(index.target.span, error.to_string())
                .help(format!("its dimensions are [{dims}]")));
        }
        let mut access = Access {
            map: SmallVec::new(),
            constraints: Vec::new(),
            dims: Vec::new(),
            gather: None,
        };
        for (position, item) in index.indices.iter().enumerate() {
            if self.is_value(&item.expr) {
                let node = self.value(&item.expr, None)?.node;
                if access.gather.replace((position, node)).is_some() {
                    return Err(Diagnostic::new(
                        item.expr.span,
                        "a second index here is an array",
                    )
                    .help("look up one dimension at a time: `b = a[rows, k]`, then `b[r, columns]`"));
                }
                let axis = self.builder.node(target).dims[position];
                access
                    .map
                    .push(Symbolic::symbol(self.builder.index_symbol(axis)));
                continue;
            }
            access.map.push(self.index_item(item, &mut access.dims)?);
        }
        for condition in &index.conditions {
            let condition = self.symbolic(condition, &mut Mode::Index(&mut access.dims))?;
            access.constraints.push(condition);
        }
        Ok(access)
    }

    fn index_item(
        &mut self,
        item: &IndexItem,
        dims: &mut Vec<DimId>,
    ) -> Result<Symbolic, Diagnostic> {
        let expr = self.symbolic(&item.expr, &mut Mode::Index(dims))?;
        if let Some(size) = &item.size {
            match &item.expr.kind {
                ExprKind::Name(name) if matches!(self.lookup(name), Some(Meaning::Dim(_))) => {
                    let dim = self.introduce(name)?;
                    self.claim(dim, name, size)?;
                }
                _ => {
                    return Err(Diagnostic::new(
                        item.expr.span,
                        "only a dimension has a size to claim",
                    ));
                }
            }
        }
        Ok(expr)
    }

    /// Whether an index is computed from arrays, not from indices and sizes.
    fn is_value(&self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Literal(_) => false,
            ExprKind::Name(name) => {
                name.sigil || matches!(self.lookup(name), Some(Meaning::Node(_)))
            }
            ExprKind::Unary(_, operand) => self.is_value(operand),
            ExprKind::Binary(_, left, right) => self.is_value(left) || self.is_value(right),
            ExprKind::Call(call) => {
                let symbolic = matches!(call.function.text.as_str(), "min" | "max" | "size");
                !symbolic
                    || call.options.is_some()
                    || call
                        .arguments
                        .iter()
                        .any(|argument| self.is_value(argument))
            }
            ExprKind::Index(_) => true,
        }
    }

    fn is_identity(&self, target: NodeId, map: &[Symbolic]) -> bool {
        let dims = &self.builder.node(target).dims;
        let own = dims
            .iter()
            .map(|dim| Symbolic::symbol(self.builder.index_symbol(*dim)));
        own.eq(map.iter().cloned())
    }

    /// A gather; indices beside it that are more than the table's own dimensions are a view first.
    fn gather(
        &mut self,
        table: NodeId,
        access: Access,
        outside: Option<Scalar>,
        index: &Index,
        span: Span,
    ) -> Result<Lowered, Diagnostic> {
        let Some((position, indices)) = access.gather else {
            unreachable!("only an access with indices is a gather")
        };
        if let Some(condition) = index.conditions.first() {
            return Err(Diagnostic::new(
                condition.span,
                "conditions cannot stand on a gather by an array",
            )
            .help("use `select(condition, a, b)`"));
        }
        let axis = self.builder.node(table).dims[position];
        if access.dims.contains(&axis) {
            let name = self.builder.dim_name(axis).to_owned();
            return Err(Diagnostic::new(
                span,
                format!("dimension `{name}` is looked up, so it cannot index here too"),
            )
            .help("index with another dimension"));
        }
        let table = if self.is_identity(table, &access.map) {
            table
        } else {
            // The axis stays, at its position among the others.
            let before = access.map[..position]
                .iter()
                .flat_map(Symbolic::symbols)
                .collect::<Vec<_>>();
            let at = access
                .dims
                .iter()
                .position(|dim| !before.contains(&self.builder.index_symbol(*dim)))
                .unwrap_or(access.dims.len());
            let mut dims = access.dims.clone();
            dims.insert(at, axis);
            self.view(table, &dims, access, outside, span)?
        };
        self.builder.at(span);
        let node = self.builder.gather(table, indices, axis, outside);
        self.at(span, node).map(Lowered::fresh)
    }

    fn symbolic(&mut self, expr: &Expr, mode: &mut Mode<'_>) -> Result<Symbolic, Diagnostic> {
        let what = match mode {
            Mode::Size => "a size",
            Mode::Index(_) => "an index",
        };
        let refuse = |found: &str| {
            Diagnostic::new(expr.span, format!("{found} cannot stand in {what}")).help(
                "indices and sizes are made of integers, dimensions and sizes with + - * // %, comparisons, min, max and size(..)",
            )
        };
        match &expr.kind {
            ExprKind::Literal(literal) => match (literal.kind, literal.dtype) {
                (LiteralKind::Int, None) => {
                    literal.text.parse().map(Symbolic::constant).map_err(|_| {
                        Diagnostic::new(expr.span, format!("{} does not fit 64 bits", literal.text))
                    })
                }
                _ => Err(refuse("this literal")),
            },
            ExprKind::Name(name) => match (self.lookup(name), mode) {
                (Some(Meaning::Size(symbol) | Meaning::Static(symbol)), _) => {
                    Ok(Symbolic::symbol(symbol))
                }
                (Some(Meaning::Node(_)), _) => Err(refuse(&format!("array `{}`", name.shown()))),
                (Some(Meaning::Dim(dim)), Mode::Size) => Ok(self.builder.size_of(dim)),
                (None, Mode::Size) => Err(self.unknown("a size or a dimension", name, &[])),
                (_, Mode::Index(dims)) => {
                    let dim = self.introduce(name)?;
                    if !dims.contains(&dim) {
                        dims.push(dim);
                    }
                    Ok(Symbolic::symbol(self.builder.index_symbol(dim)))
                }
            },
            ExprKind::Unary(Unary::Neg, operand) => {
                let operand = self.symbolic(operand, mode)?;
                self.symbolic_at(expr.span, operand.neg())
            }
            ExprKind::Unary(Unary::Not, _) => Err(refuse("`!`")),
            ExprKind::Binary(binary, left, right) => {
                let apply: fn(&Symbolic, &Symbolic) -> Result<Symbolic, _> = match binary {
                    Binary::Add => Symbolic::add,
                    Binary::Sub => Symbolic::sub,
                    Binary::Mul => Symbolic::mul,
                    Binary::FloorDiv => Symbolic::floor_div,
                    Binary::Mod => Symbolic::modulo,
                    Binary::Eq => |a, b| Symbolic::compare(Cmp::Eq, a, b),
                    Binary::Ne => |a, b| Symbolic::compare(Cmp::Ne, a, b),
                    Binary::Lt => |a, b| Symbolic::compare(Cmp::Lt, a, b),
                    Binary::Le => |a, b| Symbolic::compare(Cmp::Le, a, b),
                    Binary::Gt => |a, b| Symbolic::compare(Cmp::Lt, b, a),
                    Binary::Ge => |a, b| Symbolic::compare(Cmp::Le, b, a),
                    Binary::Div => {
                        return Err(refuse("`/`").help("`//` is the division that rounds down"));
                    }
                    Binary::Or
                    | Binary::Xor
                    | Binary::And
                    | Binary::Shl
                    | Binary::Shr
                    | Binary::Pow => return Err(refuse(&format!("`{}`", binary.symbol()))),
                };
                let left = self.symbolic(left, mode)?;
                let right = self.symbolic(right, mode)?;
                self.symbolic_at(expr.span, apply(&left, &right))
            }
            ExprKind::Call(call) => {
                let name = call.function.text.as_str();
                match (name, &call.options, call.arguments.as_slice()) {
                    ("size", None, [argument]) => self.symbolic(argument, &mut Mode::Size),
                    ("min" | "max", None, [a, b]) => {
                        let a = self.symbolic(a, mode)?;
                        let b = self.symbolic(b, mode)?;
                        let result = if name == "min" {
                            Symbolic::min(&a, &b)
                        } else {
                            Symbolic::max(&a, &b)
                        };
                        self.symbolic_at(expr.span, result)
                    }
                    _ => Err(refuse(&format!("this call of `{name}`"))),
                }
            }
            ExprKind::Index(_) => Err(refuse("an array's element")),
        }
    }
}
