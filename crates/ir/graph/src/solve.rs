//! Shape solving: sizes inferred in both directions, symbolic sizes kept symbolic.
//!
//! First what is said outright is unified (declared sizes, in any order). Then every view that
//! never reads outside its input ties the sizes it connects: the largest index it reads is the
//! input's last. Where one size of such a tie is unknown it follows from the others: output 8 with
//! kernel 3 gives input 10, and input 17 with kernel 3 and stride 2 gives output 8.

use crate::builder::GraphBuilder;
use crate::error::GraphError;
use crate::inside::stays_inside;
use crate::ir::{DimId, Graph, NodeId, NodeOp, SymbolInfo, View};
use crate::text::expr_text;
use loopwright_arena::{TiSlice, TiVec};
use loopwright_symbolic::{
    Bounds, Contradiction, Equation, Expr, Range, Symbol, affine, unify_keeping,
};
use loopwright_text::Span;
use rustc_hash::FxHashSet;

/// Somebody says what a dimension's size is.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    pub(crate) dim: DimId,
    pub(crate) size: Expr,
    pub(crate) origin: Origin,
}

/// Who says it: in words, and the place in the source if it was read from one.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub(crate) text: String,
    pub(crate) place: Option<Span>,
}

/// An error with the places in the source it concerns, the main one first.
#[derive(Clone, Debug)]
pub(crate) struct Located {
    pub(crate) error: Box<GraphError>,
    pub(crate) places: Vec<Span>,
}

impl Located {
    pub(crate) fn at(error: GraphError, place: Option<Span>) -> Located {
        Located {
            error: Box::new(error),
            places: place.into_iter().collect(),
        }
    }
}

impl From<GraphError> for Located {
    fn from(error: GraphError) -> Located {
        Located::at(error, None)
    }
}

/// Symbols from here on stand for the sizes of dimensions that are not solved yet.
const UNKNOWN: u32 = 1 << 30;

/// The symbol that stands for a dimension's size until it is solved.
pub(crate) fn unknown(dim: DimId) -> Symbol {
    Symbol(UNKNOWN + dim.0)
}

/// The solved size that a symbol stands for, if it stands for one.
pub(crate) fn solved(symbol: Symbol, sizes: &TiSlice<DimId, Expr>) -> Option<Expr> {
    let dim = symbol.0.checked_sub(UNKNOWN)?;
    sizes.get(DimId(dim)).cloned()
}

/// Whether a size is not fully known yet.
fn open(expr: &Expr) -> bool {
    expr.symbols().iter().any(|symbol| symbol.0 >= UNKNOWN)
}

/// The name a symbol is read by while the graph is built.
pub(crate) fn name_of(builder: &GraphBuilder, symbol: Symbol) -> String {
    if symbol.0 >= UNKNOWN {
        return builder.dim_name(DimId(symbol.0 - UNKNOWN)).to_owned();
    }
    match &builder.symbols[symbol] {
        SymbolInfo::Size { name, .. } | SymbolInfo::Static { name, .. } => name.clone(),
        SymbolInfo::Index(dim) => builder.dim_name(*dim).to_owned(),
    }
}

/// The size of every dimension.
pub(crate) fn solve(builder: &GraphBuilder) -> Result<TiVec<DimId, Expr>, Located> {
    let names = |symbol: Symbol| name_of(builder, symbol);
    for claim in &builder.claims {
        check_known(builder, claim.dim, &claim.size, claim.origin.place)?;
    }
    let mut equations: Vec<Equation<Origin>> = builder
        .claims
        .iter()
        .map(|claim| {
            let lhs = Expr::symbol(unknown(claim.dim));
            Equation::new(lhs, claim.size.clone(), claim.origin.clone())
        })
        .collect();
    loop {
        let solution = unify_keeping(&equations, &|symbol| symbol.0 < UNKNOWN)
            .map_err(|contradiction| explain(contradiction, &names))?;
        // A size symbol is the caller's to choose: an equation that would fix it is a contradiction.
        if let Some((symbol, value)) = solution.iter().find(|(symbol, _)| symbol.0 < UNKNOWN) {
            return Err(fixed_size(&equations, symbol, value, &names));
        }
        let mut sizes: TiVec<DimId, Expr> = (builder.dims.keys())
            .map(|dim| {
                let symbol = unknown(dim);
                let value = solution.get(symbol);
                value.cloned().unwrap_or_else(|| Expr::symbol(symbol))
            })
            .collect();
        let ties = ties(builder, &mut sizes)?;
        if !ties.is_empty() {
            equations.extend(ties);
            continue;
        }
        check_solved(builder, &sizes)?;
        // Two claims that are equal for some values of the size symbols only.
        if let Some(residual) = solution.residual().first() {
            let second = &equations[residual.equation];
            let first = equations.iter().find(|first| first.lhs == second.lhs);
            let first = first.map_or(&second.origin, |first| &first.origin);
            let error = GraphError::Contradiction {
                name: expr_text(&second.lhs, &names),
                first: expr_text(&residual.lhs, &names),
                first_origin: first.text.as_str().into(),
                second: expr_text(&residual.rhs, &names),
                second_origin: second.origin.text.as_str().into(),
            };
            let places = [second.origin.place, first.place];
            return Err(Located {
                error: Box::new(error),
                places: places.into_iter().flatten().collect(),
            });
        }
        return Ok(sizes);
    }
}

/// Refuses a size that depends on a static: memory is laid out before its value is known.
fn check_known(
    builder: &GraphBuilder,
    dim: DimId,
    size: &Expr,
    place: Option<Span>,
) -> Result<(), Located> {
    for symbol in size.symbols() {
        if let Some(SymbolInfo::Static { name, .. }) = builder.symbols.get(symbol) {
            let error = GraphError::StaticSize {
                name: name.clone(),
                dim: builder.dim_name(dim).to_owned(),
            };
            return Err(Located::at(error, place));
        }
    }
    Ok(())
}

/// Every size must be known and not negative.
fn check_solved(builder: &GraphBuilder, sizes: &TiSlice<DimId, Expr>) -> Result<(), Located> {
    for (dim, size) in builder.dims.iter().zip(sizes) {
        let name = dim.name.clone();
        if open(size) {
            return Err(Located::at(
                GraphError::Undetermined { dim: name },
                dim.place,
            ));
        }
        if let Some(size @ ..0) = size.as_const() {
            let claim = builder
                .claims
                .iter()
                .find(|claim| builder.index_symbol(claim.dim) == dim.index);
            return Err(Located::at(
                GraphError::NegativeSize {
                    dim: name,
                    size,
                    origin: claim.map_or(String::new(), |claim| claim.origin.text.clone()),
                },
                claim.and_then(|claim| claim.origin.place).or(dim.place),
            ));
        }
    }
    Ok(())
}

/// The contradiction of a size that may be anything with claims that leave it one value.
fn fixed_size(
    equations: &[Equation<Origin>],
    symbol: Symbol,
    value: &Expr,
    names: &dyn Fn(Symbol) -> String,
) -> Located {
    let uses = |equation: &&Equation<Origin>| equation.rhs.contains(symbol);
    let first = equations.iter().find(uses);
    let second = first.and_then(|first| {
        equations
            .iter()
            .find(|second| second.lhs == first.lhs && second.rhs != first.rhs)
    });
    let text =
        |equation: Option<&Equation<Origin>>| equation.map(|equation| equation.origin.text.clone());
    let error = GraphError::Contradiction {
        name: names(symbol),
        first: format!("any size, as `size {}` declares it", names(symbol)),
        first_origin: text(first).unwrap_or_default().into(),
        second: expr_text(value, names),
        second_origin: text(second)
            .unwrap_or_else(|| "all sizes taken together".to_owned())
            .into(),
    };
    let places = [second, first].into_iter().flatten();
    Located {
        error: Box::new(error),
        places: places.filter_map(|e| e.origin.place).collect(),
    }
}

/// The views that determine sizes which are still open, as equations: at most one for each size, so
/// that a second view only has to stay inside. What follows at once is put into `sizes`, so that a
/// chain of views needs one pass over it and not one for each link.
fn ties(
    builder: &GraphBuilder,
    sizes: &mut TiSlice<DimId, Expr>,
) -> Result<Vec<Equation<Origin>>, Located> {
    let mut found = Vec::new();
    let mut tied: FxHashSet<DimId> = FxHashSet::default();
    loop {
        let before = found.len();
        for (id, node) in builder.nodes.iter_enumerated() {
            let NodeOp::View(view) = &node.op else {
                continue;
            };
            if view.outside.is_some() {
                continue;
            }
            let place = builder.places[id];
            let failed = |error: GraphError| Located::at(error, place);
            for position in 0..view.map.len() {
                let tie = tie(builder, sizes, id, view, position).map_err(failed)?;
                let Some((dim, size)) = tie.filter(|(dim, _)| tied.insert(*dim)) else {
                    continue;
                };
                check_known(builder, dim, &size, place)?;
                let symbol = unknown(dim);
                if sizes[dim].as_symbol() == Some(symbol) {
                    for known in sizes.iter_mut().filter(|known| known.contains(symbol)) {
                        *known = known
                            .substitute(&|found| (found == symbol).then(|| size.clone()))
                            .map_err(|error| failed(error.into()))?;
                    }
                }
                let origin = Origin {
                    text: view_in_words(builder, id, position),
                    place,
                };
                found.push(Equation::new(Expr::symbol(symbol), size, origin));
            }
        }
        if found.len() == before {
            return Ok(found);
        }
    }
}

fn view_in_words(builder: &GraphBuilder, node: NodeId, position: usize) -> String {
    let node = builder.node(node);
    let input = builder.node(node.inputs[0]);
    let what = match node.name.as_str() {
        "" => "a view".to_owned(),
        name => format!("view `{name}`"),
    };
    let from = match input.name.as_str() {
        "" => String::new(),
        name => format!(" of `{name}`"),
    };
    let dim = builder.dim_name(input.dims[position]);
    format!("{what}{from} along `{dim}`")
}

/// The open size that one index of a view determines, if all else about the index is known.
fn tie(
    builder: &GraphBuilder,
    sizes: &TiSlice<DimId, Expr>,
    node: NodeId,
    view: &View,
    position: usize,
) -> Result<Option<(DimId, Expr)>, GraphError> {
    let node = builder.node(node);
    let input_dim = builder.node(node.inputs[0]).dims[position];
    let input_size = &sizes[input_dim];
    let symbols: Vec<Symbol> = node.dims.iter().map(|d| builder.index_symbol(*d)).collect();
    let index = view.map[position].substitute(&|symbol| solved(symbol, sizes))?;
    let Some(form) = affine(&index, &symbols) else {
        return Ok(None);
    };
    if open(&form.constant) {
        return Ok(None);
    }
    let one = Expr::constant(1);
    // The largest and the smallest index, as far as they are known: every dimension at its last
    // element or at its first, by the sign of its coefficient.
    let (mut largest, mut smallest) = (form.constant.clone(), form.constant.clone());
    let mut unknowns: Vec<(DimId, i64)> = Vec::new();
    for (symbol, coefficient) in &form.coefficients {
        let Some(SymbolInfo::Index(dim)) = builder.symbols.get(*symbol) else {
            return Ok(None);
        };
        let extent = &sizes[*dim];
        if open(extent) {
            match coefficient.as_const() {
                Some(0) => {}
                Some(coefficient) => unknowns.push((*dim, coefficient)),
                None => return Ok(None),
            }
            continue;
        }
        let steps = extent.sub(&one)?.mul(coefficient)?;
        match coefficient.range(&size_bounds(builder, coefficient)) {
            Range { lo: Some(0..), .. } => largest = largest.add(&steps)?,
            Range { hi: Some(..=0), .. } => smallest = smallest.add(&steps)?,
            _ => return Ok(None),
        }
    }
    match (open(input_size), unknowns.as_slice()) {
        (true, rest) if rest.iter().all(|(_, coefficient)| *coefficient < 0) => {
            Ok(Some((input_dim, largest.add(&one)?)))
        }
        // The most steps after which the index is still inside the input.
        (false, &[(dim, coefficient)]) => {
            let room = if coefficient > 0 {
                input_size.sub(&one)?.sub(&largest)?
            } else {
                smallest
            };
            let Some(stride) = coefficient.checked_abs() else {
                return Ok(None);
            };
            let steps = room.floor_div(&Expr::constant(stride))?;
            Ok(Some((dim, steps.add(&one)?)))
        }
        _ => Ok(None),
    }
}

/// Sizes are not negative, and that is all that is known of them; nothing is known of statics.
fn size_bounds(builder: &GraphBuilder, expr: &Expr) -> Bounds {
    let is_static = |symbol: Symbol| {
        let info = builder.symbols.get(symbol);
        matches!(info, Some(SymbolInfo::Static { .. }))
    };
    let symbols = expr.symbols().into_iter();
    symbols
        .filter(|symbol| !is_static(*symbol))
        .map(|symbol| (symbol, Range::at_least(0)))
        .collect()
}

fn explain(contradiction: Contradiction<Origin>, names: &dyn Fn(Symbol) -> String) -> Located {
    // The later claim is the main place: it is the one that disagrees with what was known.
    let mut places: Vec<Span> = contradiction
        .origins()
        .into_iter()
        .filter_map(|origin| origin.place)
        .collect();
    let error = match contradiction {
        Contradiction::Conflict {
            subject,
            first,
            second,
            ..
        } => {
            if first.origin.place.is_some() && second.origin.place.is_some() {
                places.swap(0, 1);
            }
            GraphError::Contradiction {
                name: expr_text(&subject, names),
                first: expr_text(&first.value, names),
                first_origin: first.origin.text.into(),
                second: expr_text(&second.value, names),
                second_origin: second.origin.text.into(),
            }
        }
        other => GraphError::Symbolic(format!(
            "the sizes cannot be solved: {}",
            other.display(names, &|origin: &Origin| origin.text.clone())
        )),
    };
    Located {
        error: Box::new(error),
        places,
    }
}

/// Checks what can only be checked with all sizes known: views stay inside their inputs, constants
/// have the right number of values. `places` has the nodes' places in the source; for a view that
/// reads outside, the place that says how large its input is comes second.
pub(crate) fn check(
    graph: &Graph,
    places: &TiSlice<NodeId, Option<Span>>,
    claims: &[Claim],
    bounds: &Bounds,
) -> Result<(), Located> {
    for id in graph.node_ids() {
        let place = places[id];
        match &graph.node(id).op {
            NodeOp::Constant(values) => check_count(graph, id, values.len()),
            NodeOp::View(view) if view.outside.is_none() => check_view(graph, id, view, bounds),
            _ => Ok(()),
        }
        .map_err(|error| {
            let dim = match &error {
                GraphError::OutOfRange { dim, .. } => graph.find_dim(dim),
                _ => None,
            };
            let claim = claims.iter().find(|claim| Some(claim.dim) == dim);
            let places = [place, claim.and_then(|claim| claim.origin.place)];
            Located {
                error: Box::new(error),
                places: places.into_iter().flatten().collect(),
            }
        })?;
    }
    Ok(())
}

fn check_view(graph: &Graph, id: NodeId, view: &View, bounds: &Bounds) -> Result<(), GraphError> {
    let names = |symbol: Symbol| graph.symbol_name(symbol);
    let what = match graph.node(id).name.as_str() {
        "" => "a view".to_owned(),
        name => format!("`{name}`"),
    };
    let input_id = graph.node(id).inputs[0];
    let input = graph.node_name(input_id);
    if !view.constraints.is_empty() {
        return Err(GraphError::NothingOutside { what, input });
    }
    for (index, dim) in view.map.iter().zip(&graph.node(input_id).dims) {
        let size = &graph.dim(*dim).size;
        if !stays_inside(graph, index, size, bounds) {
            return Err(GraphError::OutOfRange {
                what: what.into(),
                input: input.into(),
                dim: graph.dim(*dim).name.clone(),
                index: expr_text(index, &names),
                size: expr_text(size, &names),
            });
        }
    }
    Ok(())
}

fn check_count(graph: &Graph, node: NodeId, got: usize) -> Result<(), GraphError> {
    let mut count = Some(1i64);
    for dim in &graph.node(node).dims {
        count = match (count, graph.dim(*dim).size.as_const()) {
            (Some(count), Some(size)) => {
                let product = count
                    .checked_mul(size)
                    .ok_or_else(|| GraphError::Overflow {
                        what: "the number of values of a constant".to_owned(),
                    })?;
                Some(product)
            }
            _ => None,
        };
    }
    if count == Some(got as i64) {
        return Ok(());
    }
    Err(GraphError::ConstantCount {
        expected: count.map_or("a fixed number of".to_owned(), |n| n.to_string()),
        got,
    })
}
