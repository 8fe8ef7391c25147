//! Proving that an index stays inside a dimension, for symbolic sizes too.

use crate::ir::{Graph, SymbolInfo};
use loopwright_symbolic::{Bounds, Error, Expr, ExprKind, Range, Symbol};

/// Whether an index over the graph's symbols is certainly within `0..size`, for every size that
/// lets it be computed at all.
pub fn stays_inside(graph: &Graph, index: &Expr, size: &Expr, bounds: &Bounds) -> bool {
    // An empty dimension in the index means that it is never computed.
    let empty = index.symbols().into_iter().any(|symbol| {
        matches!(graph.symbol(symbol), SymbolInfo::Index(dim) if graph.dim(*dim).size.as_const() == Some(0))
    });
    if empty {
        return true;
    }
    let range = index.simplify(bounds).range(bounds);
    let low = range.lo.is_some_and(|lo| lo >= 0);
    let high = matches!((range.hi, size.as_const()), (Some(hi), Some(size)) if hi < size);
    if low && high {
        return true;
    }
    let prover = Prover::new(graph, index);
    let low = low || prover.is_low_enough(index).unwrap_or(false);
    let high = high || prover.is_high_enough(index, size).unwrap_or(false);
    low && high
}

/// Bounds of indices as expressions over size symbols, given that the dimensions which occur are not
/// empty.
struct Prover<'a> {
    graph: &'a Graph,
    /// The smallest value of each size symbol for which the index is computed at all.
    least: Vec<i64>,
}

/// Which bound is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Smallest,
    Largest,
}

impl End {
    fn other(self) -> End {
        match self {
            End::Smallest => End::Largest,
            End::Largest => End::Smallest,
        }
    }
}

impl<'a> Prover<'a> {
    fn new(graph: &'a Graph, index: &Expr) -> Prover<'a> {
        let mut prover = Prover {
            graph,
            least: vec![0; graph.symbols().len()],
        };
        for symbol in index.symbols() {
            if let SymbolInfo::Index(dim) = graph.symbol(symbol) {
                prover.assume_at_least(&graph.dim(*dim).size, 1);
            }
        }
        prover
    }

    /// Notes what `expr >= value` says about single size symbols, in the forms that sizes have.
    fn assume_at_least(&mut self, expr: &Expr, value: i64) {
        match expr.kind() {
            ExprKind::Symbol(symbol) => {
                let least = &mut self.least[symbol.0 as usize];
                *least = (*least).max(value);
            }
            // Sizes are not negative: if a product of them is positive, all of them are.
            ExprKind::Mul(factors)
                if value >= 1
                    && factors
                        .iter()
                        .all(|factor| self.nonnegative(factor).unwrap_or(false)) =>
            {
                for factor in factors {
                    self.assume_at_least(factor, 1);
                }
            }
            ExprKind::Add(terms) => {
                if let [term, constant] = terms.as_slice()
                    && let Some(constant) = constant.as_const()
                    && let Some(value) = value.checked_sub(constant)
                {
                    self.assume_at_least(term, value);
                }
            }
            ExprKind::FloorDiv(a, b) => {
                if let Some(divisor @ 1..) = b.as_const()
                    && let Some(value) = value.checked_mul(divisor)
                {
                    self.assume_at_least(a, value);
                }
            }
            _ => {}
        }
    }

    fn is_low_enough(&self, index: &Expr) -> Result<bool, Error> {
        match self.end(index, End::Smallest)? {
            Some(smallest) => self.nonnegative(&smallest),
            None => Ok(false),
        }
    }

    fn is_high_enough(&self, index: &Expr, size: &Expr) -> Result<bool, Error> {
        // a // b < size exactly if a < size*b.
        if let ExprKind::FloorDiv(a, b) = index.kind()
            && self.positive(b)?
        {
            return self.is_high_enough(a, &size.mul(b)?);
        }
        match self.end(index, End::Largest)? {
            Some(largest) => {
                let room = size.sub(&largest)?.sub(&Expr::constant(1))?;
                self.nonnegative(&room)
            }
            None => Ok(false),
        }
    }

    fn is_index(&self, symbol: Symbol) -> bool {
        matches!(self.graph.symbol(symbol), SymbolInfo::Index(_))
    }

    /// The smallest or largest value of an expression, free of index symbols.
    fn end(&self, expr: &Expr, end: End) -> Result<Option<Expr>, Error> {
        if !expr
            .symbols()
            .into_iter()
            .any(|symbol| self.is_index(symbol))
        {
            return Ok(Some(expr.clone()));
        }
        let one = Expr::constant(1);
        match expr.kind() {
            ExprKind::Const(_) => Ok(Some(expr.clone())),
            ExprKind::Symbol(symbol) => Ok(match (self.graph.symbol(*symbol), end) {
                (SymbolInfo::Index(_), End::Smallest) => Some(Expr::constant(0)),
                (SymbolInfo::Index(dim), End::Largest) => {
                    Some(self.graph.dim(*dim).size.sub(&one)?)
                }
                (SymbolInfo::Size { .. }, _) => Some(expr.clone()),
            }),
            ExprKind::Add(terms) => {
                let mut sum = Expr::constant(0);
                for term in terms {
                    match self.end(term, end)? {
                        Some(bound) => sum = sum.add(&bound)?,
                        None => return Ok(None),
                    }
                }
                Ok(Some(sum))
            }
            ExprKind::Mul(factors) => self.product_end(factors, end),
            ExprKind::FloorDiv(a, b) => {
                if !self.positive(b)? {
                    return Ok(None);
                }
                match self.end(a, end)? {
                    Some(bound) => bound.floor_div(b).map(Some),
                    None => Ok(None),
                }
            }
            ExprKind::Mod(_, b) => Ok(match end {
                _ if !self.positive(b)? => None,
                End::Smallest => Some(Expr::constant(0)),
                End::Largest => Some(b.sub(&one)?),
            }),
            ExprKind::Min(a, b) => match (self.end(a, end)?, self.end(b, end)?) {
                (Some(a), Some(b)) => Expr::min(&a, &b).map(Some),
                // Either operand alone bounds the smaller one from above.
                (Some(a), None) | (None, Some(a)) if end == End::Largest => Ok(Some(a)),
                _ => Ok(None),
            },
            ExprKind::Max(a, b) => match (self.end(a, end)?, self.end(b, end)?) {
                (Some(a), Some(b)) => Expr::max(&a, &b).map(Some),
                (Some(a), None) | (None, Some(a)) if end == End::Smallest => Ok(Some(a)),
                _ => Ok(None),
            },
            ExprKind::Compare(..) => Ok(Some(Expr::constant(match end {
                End::Smallest => 0,
                End::Largest => 1,
            }))),
        }
    }

    /// The bound of a product with one factor that holds index symbols.
    fn product_end(&self, factors: &[Expr], end: End) -> Result<Option<Expr>, Error> {
        let mut scale = Expr::constant(1);
        let mut varying = None;
        for factor in factors {
            let symbols = factor.symbols();
            if !symbols.into_iter().any(|symbol| self.is_index(symbol)) {
                scale = scale.mul(factor)?;
            } else if varying.replace(factor).is_some() {
                return Ok(None);
            }
        }
        let Some(varying) = varying else {
            return Ok(Some(scale));
        };
        let end = if self.nonnegative(&scale)? {
            end
        } else if self.nonnegative(&scale.neg()?)? {
            end.other()
        } else {
            return Ok(None);
        };
        match self.end(varying, end)? {
            Some(bound) => scale.mul(&bound).map(Some),
            None => Ok(None),
        }
    }

    fn positive(&self, expr: &Expr) -> Result<bool, Error> {
        self.nonnegative(&expr.sub(&Expr::constant(1))?)
    }

    /// Whether an expression over size symbols is certainly not negative.
    fn nonnegative(&self, expr: &Expr) -> Result<bool, Error> {
        let symbols = expr.symbols();
        if symbols.iter().any(|symbol| self.is_index(*symbol)) {
            return Ok(false);
        }
        // Every symbol is counted from its smallest value, so that a polynomial is certainly not
        // negative if none of its coefficients is.
        let shifted = expr.substitute(&|symbol| {
            let least = Expr::constant(*self.least.get(symbol.0 as usize)?);
            Expr::symbol(symbol).add(&least).ok()
        })?;
        let bounds: Bounds = symbols
            .into_iter()
            .map(|symbol| (symbol, Range::at_least(0)))
            .collect();
        nonnegative_sum(&shifted, &bounds, CHOICES)
    }
}

/// How many `min` and `max` a proof takes apart: two ways each.
const CHOICES: u32 = 4;

fn nonnegative_sum(expr: &Expr, bounds: &Bounds, choices: u32) -> Result<bool, Error> {
    let simple = expr.simplify(bounds);
    let proved = |expr: &Expr| expr.range(bounds).lo.is_some_and(|lo| lo >= 0);
    if proved(&simple) || proved(&without_quotients(&simple)?.simplify(bounds)) {
        return Ok(true);
    }
    if choices == 0 {
        return Ok(false);
    }
    for smaller in without_choice(&simple)?.into_iter().flatten() {
        if nonnegative_sum(&smaller, bounds, choices - 1)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Two expressions that are not larger, for an expression with a term that subtracts a `min` or adds
/// a `max`: one with either operand in its place.
fn without_choice(expr: &Expr) -> Result<Option<[Expr; 2]>, Error> {
    let terms = match expr.kind() {
        ExprKind::Add(terms) => terms.as_slice(),
        _ => std::slice::from_ref(expr),
    };
    for term in terms {
        let (factor, scale) = match term.kind() {
            ExprKind::Mul(factors) => match factors.as_slice() {
                [factor, scale] => (factor, scale.as_const()),
                _ => continue,
            },
            _ => (term, Some(1)),
        };
        let (a, b) = match (factor.kind(), scale) {
            (ExprKind::Min(a, b), Some(..0)) | (ExprKind::Max(a, b), Some(0..)) => (a, b),
            _ => continue,
        };
        let scale = Expr::constant(scale.unwrap_or(1));
        let rest = expr.sub(term)?;
        return Ok(Some([
            rest.add(&a.mul(&scale)?)?,
            rest.add(&b.mul(&scale)?)?,
        ]));
    }
    Ok(None)
}

/// An expression that is not larger, in which no term is a multiple `c*k` of a quotient by the
/// number `c`: `a - (c - 1) <= c*(a // c) <= a`.
fn without_quotients(expr: &Expr) -> Result<Expr, Error> {
    let ExprKind::Add(terms) = expr.kind() else {
        return Ok(expr.clone());
    };
    let mut sum = Expr::constant(0);
    for term in terms {
        sum = sum.add(&without_quotient(term)?)?;
    }
    Ok(sum)
}

fn without_quotient(term: &Expr) -> Result<Expr, Error> {
    let ExprKind::Mul(factors) = term.kind() else {
        return Ok(term.clone());
    };
    if let [quotient, scale] = factors.as_slice()
        && let (ExprKind::FloorDiv(a, b), Some(scale)) = (quotient.kind(), scale.as_const())
        && let Some(divisor @ 1..) = b.as_const()
        && scale % divisor == 0
    {
        let times = Expr::constant(scale / divisor);
        let lost = if scale < 0 { 0 } else { divisor - 1 };
        return a.sub(&Expr::constant(lost))?.mul(&times);
    }
    Ok(term.clone())
}
