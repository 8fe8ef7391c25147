//! From the syntax tree to a graph: statements, and what names mean.

use super::ast::{
    Call, Declared, DimUse, Expr, ExprKind, Literal, LiteralKind, Name, Options, Statement,
    StatementKind, StaticUse, Values,
};
use super::call::arguments;
use super::parser::{RESERVED, parse_dtype};
use super::suggest;
use crate::builder::GraphBuilder;
use crate::error::GraphError;
use crate::ir::{DimId, Graph, NodeId, NodeOp};
use crate::solve::{self, Located};
use indexmap::IndexMap;
use loopwright_ops::{DType, Op, Scalar, parse_scalar};
use loopwright_symbolic::Symbol;
use loopwright_text::{Diagnostic, Span};
use rustc_hash::FxBuildHasher;

/// The origin of a size that is written where it is claimed.
const HERE: &str = "what is written here";

/// What a name stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Meaning {
    Node(NodeId),
    Dim(DimId),
    Size(Symbol),
    Static(Symbol),
}

impl Meaning {
    fn describe(self) -> &'static str {
        match self {
            Meaning::Node(_) => "an array",
            Meaning::Dim(_) => "a dimension",
            Meaning::Size(_) => "a size",
            Meaning::Static(_) => "a static",
        }
    }
}

/// The graph made of the statements so far.
#[derive(Default)]
pub(super) struct Lowering {
    pub(super) builder: GraphBuilder,
    /// Names of all kinds, with the place that introduced them.
    names: IndexMap<String, (Meaning, Span), FxBuildHasher>,
    /// Nodes without a name, by what the text calls them.
    unnamed: IndexMap<String, (NodeId, Span), FxBuildHasher>,
    /// Nodes that read another one step back, and what: it may be defined further down.
    delayed: Vec<(NodeId, Name)>,
}

/// The graph of a program.
pub(super) fn lower(statements: &[Statement], end: Span) -> Result<Graph, Diagnostic> {
    let mut lowering = Lowering::default();
    // Sizes, statics and dimensions that are declared are known everywhere, whatever the order of lines.
    for statement in statements {
        match &statement.kind {
            StatementKind::Size(uses) => lowering.declare_sizes(uses)?,
            StatementKind::Static(uses) => lowering.declare_statics(uses)?,
            StatementKind::Dim(uses) => {
                for item in uses {
                    lowering.introduce(&item.name)?;
                }
            }
            _ => {}
        }
    }
    for statement in statements {
        lowering.statement(statement)?;
    }
    lowering.close_delays()?;
    let names = lowering.names;
    lowering
        .builder
        .finish_located()
        .map_err(|located| diagnose(located, &names, end))
}

/// An error of the whole program, at the places it concerns.
fn diagnose(
    located: Located,
    names: &IndexMap<String, (Meaning, Span), FxBuildHasher>,
    end: Span,
) -> Diagnostic {
    let Located { error, places } = located;
    let place = places.first().copied().unwrap_or(end);
    match *error {
        GraphError::Contradiction {
            name,
            first,
            first_origin,
            second,
            second_origin,
        } => {
            let said = |size: &str, origin: &str| match origin {
                "" => size.to_owned(),
                HERE => format!("{size} here"),
                _ => format!("{size}, by {origin}"),
            };
            let message =
                format!("the size of `{name}` is contradicted: it is {first}, but {second}");
            let error = Diagnostic::new(place, message).note(said(&second, &second_origin));
            match places.get(1) {
                Some(other) => error.label(*other, said(&first, &first_origin)),
                None => error,
            }
        }
        GraphError::Undetermined { dim } => {
            let message = format!("nothing determines the size of dimension `{dim}`");
            let error = Diagnostic::new(place, message);
            let others = names.iter().filter(|(_, (meaning, _))| {
                !matches!(meaning, Meaning::Size(_) | Meaning::Static(_))
            });
            match suggest::nearest(&dim, others.map(|(name, _)| name.as_str())) {
                Some(near) => error.help(format!(
                    "did you mean `{near}`? A new dimension's size is said once: `dim {dim} = 8`"
                )),
                None => error.help(format!("say it: `dim {dim} = 8`")),
            }
        }
        GraphError::OutOfRange {
            ref dim, ref size, ..
        } => {
            let note = format!("`{dim}` has size {size} here");
            let diagnostic = Diagnostic::new(place, error.to_string());
            match places.get(1) {
                Some(other) => diagnostic.label(*other, note),
                None => diagnostic,
            }
        }
        error => Diagnostic::new(place, error.to_string()),
    }
}

impl Lowering {
    fn statement(&mut self, statement: &Statement) -> Result<(), Diagnostic> {
        self.builder.at(statement.span);
        match &statement.kind {
            StatementKind::Size(_) => Ok(()),
            StatementKind::Static(uses) => self.ranges(uses),
            StatementKind::Dim(uses) => {
                for item in uses {
                    self.dim(item, true)?;
                }
                Ok(())
            }
            StatementKind::Input(declared) => self.parameter(declared, NodeOp::Input),
            StatementKind::State(declared) => self.parameter(declared, NodeOp::State),
            StatementKind::Const(declared, values) => self.constant(declared, values),
            StatementKind::Define { name, dims, value } => {
                let node = self.defined(dims.as_deref(), value, statement.span)?;
                self.define(name, node)
            }
            StatementKind::Update { state, value } => self.update(state, value, statement.span),
            StatementKind::Output(outputs) => {
                for (name, value) in outputs {
                    self.output(name, value.as_ref(), statement.span)?;
                }
                Ok(())
            }
        }
    }

    /// The node a definition makes.
    fn defined(
        &mut self,
        dims: Option<&[DimUse]>,
        value: &Expr,
        span: Span,
    ) -> Result<NodeId, Diagnostic> {
        let dims = match dims {
            Some(uses) => Some(self.dims(uses)?),
            None => None,
        };
        if let (Some(dims), ExprKind::Call(call)) = (&dims, &value.kind)
            && call.function.is_word("previous")
            && let Some(options) = &call.options
        {
            return self.previous(call, options, dims, span);
        }
        if let (Some(dims), ExprKind::Index(index)) = (&dims, &value.kind)
            && let Some(view) = self.view_over(index, dims, span)?
        {
            return Ok(view);
        }
        let lowered = self.value(value, None)?;
        self.builder.at(span);
        match dims {
            Some(dims) => {
                let node = self.builder.layout(lowered.node, &dims);
                self.at(span, node)
            }
            // A second name for something is a copy of it: a node has one name.
            None if !lowered.fresh => {
                let node = self.builder.map(Op::Copy, &[lowered.node]);
                self.at(span, node)
            }
            None => Ok(lowered.node),
        }
    }

    /// `p[t, j] = previous[t, f32](h, 0)`.
    fn previous(
        &mut self,
        call: &Call,
        options: &Options,
        dims: &[DimId],
        span: Span,
    ) -> Result<NodeId, Diagnostic> {
        let usage = "write `p[t, j] = previous[t, f32](h, 0)`: the dimension, the dtype, what is read and what \
                     stands before the first element";
        let [over, dtype] = options.items.as_slice() else {
            return Err(
                Diagnostic::new(span, "`previous` takes a dimension and a dtype").help(usage),
            );
        };
        let dtype = parse_dtype(&dtype.name.text, dtype.name.span)?;
        let over = self.dim(over, false)?;
        let [of, outside] = arguments(call, span)?;
        let (ExprKind::Name(of), ExprKind::Literal(literal)) = (&of.kind, &outside.kind) else {
            return Err(Diagnostic::new(span, "`previous` takes a name and a number").help(usage));
        };
        let outside = literal_scalar(literal, dtype, outside.span)?;
        self.builder.at(span);
        let node = self.builder.previous(dims, over, outside);
        let node = self.at(span, node)?;
        self.delayed.push((node, of.clone()));
        Ok(node)
    }

    /// Says what nodes read one step back, when all names are known.
    fn close_delays(&mut self) -> Result<(), Diagnostic> {
        for (node, name) in std::mem::take(&mut self.delayed) {
            let Some(Meaning::Node(of)) = self.lookup(&name) else {
                return Err(self.unknown("an array", &name, &[]));
            };
            let closed = self.builder.close_previous(node, of);
            self.at(name.span, closed)?;
        }
        Ok(())
    }

    fn define(&mut self, name: &Name, node: NodeId) -> Result<(), Diagnostic> {
        if name.sigil {
            if let Some((_, first)) = self.unnamed.get(&name.text) {
                return Err(taken(name, "an array", *first));
            }
            self.unnamed.insert(name.text.clone(), (node, name.span));
            return Ok(());
        }
        self.check_new(name)?;
        let named = self.builder.name(node, &name.text);
        self.at(name.span, named)?;
        self.record(name, Meaning::Node(node));
        Ok(())
    }

    fn declare_sizes(&mut self, uses: &[DimUse]) -> Result<(), Diagnostic> {
        for item in uses {
            let default = match &item.value {
                Some(value) => {
                    let size = self.size_expr(value)?;
                    let Some(size) = size.as_const() else {
                        return Err(Diagnostic::new(
                            value.span,
                            format!("the default of size `{}` must be a number", item.name.text),
                        )
                        .help("a size that follows from others is a dimension's: `dim i = M*2`"));
                    };
                    if size < 0 {
                        return Err(Diagnostic::new(
                            value.span,
                            format!("size `{}` cannot be negative", item.name.text),
                        ));
                    }
                    Some(size)
                }
                None => None,
            };
            self.check_new(&item.name)?;
            let symbol = self.builder.size(&item.name.text, default);
            let symbol = self.at(item.name.span, symbol)?;
            self.record(&item.name, Meaning::Size(symbol));
        }
        Ok(())
    }

    fn declare_statics(&mut self, uses: &[StaticUse]) -> Result<(), Diagnostic> {
        for item in uses {
            let default = match &item.default {
                Some(value) => {
                    let Some(number) = self.size_expr(value)?.as_const() else {
                        return Err(Diagnostic::new(
                            value.span,
                            format!(
                                "the default of static `{}` must be a number",
                                item.name.text
                            ),
                        ));
                    };
                    Some(number)
                }
                None => None,
            };
            self.check_new(&item.name)?;
            self.builder.at(item.name.span);
            let symbol = self.builder.declare_static(&item.name.text, default);
            let symbol = self.at(item.name.span, symbol)?;
            self.record(&item.name, Meaning::Static(symbol));
        }
        Ok(())
    }

    /// Says the ranges of statics, once all sizes and dimensions are known.
    fn ranges(&mut self, uses: &[StaticUse]) -> Result<(), Diagnostic> {
        for item in uses {
            let Some(Meaning::Static(symbol)) = self.lookup(&item.name) else {
                return Err(self.unknown("a static", &item.name, &[]));
            };
            let (lo, hi) = (self.size_expr(&item.lo)?, self.size_expr(&item.hi)?);
            let set = self.builder.set_range(symbol, lo, hi);
            self.at(item.lo.span.to(item.hi.span), set)?;
        }
        Ok(())
    }

    fn parameter(&mut self, declared: &Declared, op: NodeOp) -> Result<(), Diagnostic> {
        let name = &declared.name;
        let dims = self.dims(&declared.dims)?;
        let node = match op {
            NodeOp::State => self.builder.state("", declared.inferred(), &dims),
            _ => self.builder.input("", declared.inferred(), &dims),
        };
        let node = self.at(name.span, node)?;
        self.define(name, node)
    }

    fn constant(&mut self, declared: &Declared, values: &Values) -> Result<(), Diagnostic> {
        let dims = self.dims(&declared.dims)?;
        let dtype = declared.inferred();
        let node = match values {
            Values::One(literal, span) if dims.is_empty() => {
                let value = literal_scalar(literal, dtype, *span)?;
                self.builder.constant(value)
            }
            Values::One(_, span) => {
                return Err(
                    Diagnostic::new(*span, "a constant with dimensions needs a list").help(
                        "write `[1, 2, 3]`, or leave the dimensions out: a scalar broadcasts",
                    ),
                );
            }
            Values::List(items, span) => {
                let mut shape = Vec::new();
                let mut flat = Vec::new();
                flatten(items, *span, dtype, 0, &mut shape, &mut flat)?;
                self.builder.at(values.span());
                // Nested lists show the sizes; a flat one is taken in row-major order. The builder
                // itself knows what the list of a one-dimensional constant says.
                if shape.len() == dims.len() && dims.len() > 1 {
                    for (dim, count) in dims.iter().zip(&shape) {
                        let size = loopwright_symbolic::Expr::constant(*count as i64);
                        let origin = "a constant's number of values";
                        self.builder.set_size(*dim, size, origin);
                    }
                } else if shape.len() != 1 {
                    return Err(Diagnostic::new(
                        *span,
                        format!(
                            "the lists nest {} deep for the dimensions [{}]",
                            shape.len(),
                            self.builder.dim_list(&dims)
                        ),
                    ));
                }
                let node = self.builder.constant_array(dtype, &dims, flat);
                self.at(declared.name.span, node)?
            }
        };
        self.define(&declared.name, node)
    }

    fn update(&mut self, state: &Name, value: &Expr, span: Span) -> Result<(), Diagnostic> {
        let target = match self.lookup(state) {
            Some(Meaning::Node(node)) => node,
            _ => return Err(self.unknown("a state", state, &[])),
        };
        let dtype = self.builder.node(target).dtype;
        let mut node = self.value(value, Some(dtype))?.node;
        self.builder.at(span);
        // The state's layout is fixed; a value that has the same elements in another order, or fewer
        // dimensions, is brought into it.
        let dims = self.builder.node(target).dims.clone();
        let has = &self.builder.node(node).dims;
        if *has != dims && has.iter().all(|dim| dims.contains(dim)) {
            let layout = self.builder.layout(node, &dims);
            node = self.at(value.span, layout)?;
        }
        let updated = self.builder.update(target, node);
        self.at(span, updated)
    }

    fn output(&mut self, name: &Name, value: Option<&Expr>, span: Span) -> Result<(), Diagnostic> {
        let node = match value {
            None => {
                let place = Expr {
                    kind: ExprKind::Name(name.clone()),
                    span: name.span,
                    depth: 1,
                };
                if name.sigil {
                    return Err(Diagnostic::new(name.span, "an output needs a name")
                        .help(format!("write `output NAME = {}`", name.shown())));
                }
                let lowered = self.value(&place, None)?;
                self.builder.at(span);
                lowered.node
            }
            Some(value) => {
                let lowered = self.value(value, None)?;
                // What is computed for an output is known by the output's name.
                if lowered.fresh && self.lookup(name).is_none() && !name.sigil {
                    self.define(name, lowered.node)?;
                }
                lowered.node
            }
        };
        let output = self.builder.output(&name.text, node);
        self.at(name.span, output)
    }

    /// Says where an error of the builder happened.
    pub(super) fn at<T>(&self, span: Span, result: Result<T, GraphError>) -> Result<T, Diagnostic> {
        result.map_err(|error| Diagnostic::new(span, error.to_string()))
    }

    /// Says where an error of symbolic arithmetic happened, with the names of symbols.
    pub(super) fn symbolic_at<T>(
        &self,
        span: Span,
        result: Result<T, loopwright_symbolic::Error>,
    ) -> Result<T, Diagnostic> {
        let names = |symbol: Symbol| solve::name_of(&self.builder, symbol);
        result.map_err(|error| Diagnostic::new(span, error.display(&names).to_string()))
    }

    /// What a name stands for, if it is known.
    pub(super) fn lookup(&self, name: &Name) -> Option<Meaning> {
        if name.sigil {
            return self
                .unnamed
                .get(&name.text)
                .map(|(node, _)| Meaning::Node(*node));
        }
        self.names.get(&name.text).map(|(meaning, _)| *meaning)
    }

    /// The error for a name that is not known, or known as something else.
    pub(super) fn unknown(&self, what: &str, name: &Name, also: &[&str]) -> Diagnostic {
        if let Some(meaning) = self.lookup(name) {
            let found = meaning.describe();
            let error = Diagnostic::new(
                name.span,
                format!("expected {what}, and `{}` is {found}", name.shown()),
            );
            return match self.names.get(&name.text) {
                Some((_, first)) if !name.sigil => error.label(*first, "introduced here"),
                _ => error,
            };
        }
        let error = Diagnostic::new(
            name.span,
            format!("unknown name `{}`: expected {what}", name.shown()),
        );
        let names = self.names.keys().map(String::as_str);
        match suggest::nearest(&name.text, names.chain(also.iter().copied())) {
            Some(near) => error.help(format!("did you mean `{near}`?")),
            None => error,
        }
    }

    fn check_new(&self, name: &Name) -> Result<(), Diagnostic> {
        if let Some((meaning, first)) = self.names.get(&name.text) {
            return Err(taken(name, meaning.describe(), *first));
        }
        if !name.quoted && RESERVED.contains(&name.text.as_str()) {
            return Err(Diagnostic::new(
                name.span,
                format!("`{}` is a word of the language", name.text),
            )
            .help(format!(
                "choose another name, or write it in quotes: `\"{}\"`",
                name.text
            )));
        }
        Ok(())
    }

    fn record(&mut self, name: &Name, meaning: Meaning) {
        self.names.insert(name.text.clone(), (meaning, name.span));
    }

    /// The dimension of a name, which is a new one if the name is new.
    pub(super) fn introduce(&mut self, name: &Name) -> Result<DimId, Diagnostic> {
        if name.sigil {
            return Err(Diagnostic::new(
                name.span,
                format!("expected a dimension, found `{}`", name.shown()),
            ));
        }
        match self.lookup(name) {
            Some(Meaning::Dim(dim)) => Ok(dim),
            Some(_) => Err(self.unknown("a dimension", name, &[])),
            None => {
                self.check_new(name)?;
                self.builder.at(name.span);
                let dim = self.builder.dim(&name.text);
                let dim = self.at(name.span, dim)?;
                self.record(name, Meaning::Dim(dim));
                Ok(dim)
            }
        }
    }

    /// A dimension that is written somewhere, with the size claimed there. `new`: it may be new.
    pub(super) fn dim(&mut self, item: &DimUse, new: bool) -> Result<DimId, Diagnostic> {
        let dim = match self.lookup(&item.name) {
            Some(Meaning::Dim(dim)) => dim,
            _ if new => self.introduce(&item.name)?,
            _ => return Err(self.unknown("a dimension", &item.name, &[])),
        };
        if let Some(value) = &item.value {
            self.claim(dim, &item.name, value)?;
        }
        Ok(dim)
    }

    /// Claims a dimension's size where it is written.
    pub(super) fn claim(
        &mut self,
        dim: DimId,
        name: &Name,
        value: &Expr,
    ) -> Result<(), Diagnostic> {
        let size = self.size_expr(value)?;
        if size.as_const().is_some_and(|size| size < 0) {
            return Err(Diagnostic::new(
                value.span,
                format!("dimension `{}` cannot have a negative size", name.text),
            ));
        }
        let place = name.span.to(value.span);
        self.builder.at(place);
        self.builder.set_size(dim, size, HERE);
        Ok(())
    }

    fn dims(&mut self, uses: &[DimUse]) -> Result<Vec<DimId>, Diagnostic> {
        let mut dims = Vec::with_capacity(uses.len());
        for item in uses {
            let dim = self.dim(item, true)?;
            if dims.contains(&dim) {
                return Err(Diagnostic::new(
                    item.name.span,
                    format!("dimension `{}` stands twice in this list", item.name.text),
                )
                .help("an array has a dimension once; for a diagonal, index: `a[i, i]`"));
            }
            dims.push(dim);
        }
        Ok(dims)
    }
}

fn taken(name: &Name, by: &str, first: Span) -> Diagnostic {
    Diagnostic::new(
        name.span,
        format!("`{}` is already the name of {by}", name.shown()),
    )
    .label(first, "introduced here")
    .help("choose another name: a name means one thing in the whole program")
}

/// The values of nested lists in order, and the shape of the nesting.
fn flatten(
    items: &[Values],
    span: Span,
    dtype: DType,
    level: usize,
    shape: &mut Vec<usize>,
    flat: &mut Vec<Scalar>,
) -> Result<(), Diagnostic> {
    match shape.get(level) {
        None => shape.push(items.len()),
        Some(count) if *count != items.len() => {
            return Err(Diagnostic::new(
                span,
                format!(
                    "this list is {} long, and the ones before it are {count} long",
                    items.len()
                ),
            ));
        }
        Some(_) => {}
    }
    for item in items {
        match item {
            Values::One(literal, span) => {
                if shape.len() > level + 1 {
                    return Err(Diagnostic::new(*span, "a value among lists"));
                }
                flat.push(literal_scalar(literal, dtype, *span)?);
            }
            Values::List(inner, span) => {
                if shape.len() == level + 1 && !flat.is_empty() {
                    return Err(Diagnostic::new(*span, "a list among values"));
                }
                flatten(inner, *span, dtype, level + 1, shape, flat)?;
            }
        }
    }
    Ok(())
}

/// The value of a literal as that dtype.
pub(super) fn literal_scalar(
    literal: &Literal,
    dtype: DType,
    span: Span,
) -> Result<Scalar, Diagnostic> {
    if let Some(own) = literal.dtype
        && own != dtype
    {
        return Err(Diagnostic::new(
            span,
            format!("this literal is {own}, and {dtype} is needed here"),
        )
        .help(format!("write `{}{dtype}`, or no suffix", literal.text)));
    }
    let fits = match literal.kind {
        LiteralKind::Bool => dtype == DType::Bool,
        LiteralKind::Int => dtype != DType::Bool,
        LiteralKind::Float => dtype.is_float(),
    };
    if !fits {
        let what = match literal.kind {
            LiteralKind::Bool => "a boolean",
            LiteralKind::Int => "an integer",
            LiteralKind::Float => "a float literal",
        };
        return Err(Diagnostic::new(
            span,
            format!("{what} cannot become {dtype}, the dtype needed here"),
        )
        .help(match (literal.kind, dtype) {
            (_, DType::Bool) => "write `true` or `false`, or compare: `x != 0`".to_owned(),
            (LiteralKind::Float, _) => {
                "write an integer, or cast what stands beside it: `f32(x)`".to_owned()
            }
            _ => format!("write a number, or cast: `{dtype}(x)`"),
        }));
    }
    parse_scalar(dtype, &literal.text).map_err(|error| Diagnostic::new(span, error.to_string()))
}
