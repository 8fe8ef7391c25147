//! Proving that an index stays inside a dimension, for symbolic sizes and any value of statics too.

use crate::ir::{Graph, SymbolInfo};
use loopwright_arena::TiVec;
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

/// Bounds of indices as expressions over size symbols, given that the dimensions and the ranges of
/// statics which occur are not empty.
struct Prover<'a> {
    graph: &'a Graph,
    /// The smallest value of each size symbol for which the index is computed at all.
    least: TiVec<Symbol, i64>,
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
            least: vec![0; graph.symbols().len()].into(),
        };
        for symbol in index.symbols() {
            match graph.symbol(symbol) {
                SymbolInfo::Index(dim) => prover.assume_at_least(&graph.dim(*dim).size, 1),
                SymbolInfo::Static { lo, hi, .. } => {
                    // A difference that does not fit says nothing.
                    if let Ok(count) = hi.sub(lo) {
                        prover.assume_at_least(&count, 1);
                    }
                }
                SymbolInfo::Size { .. } => {}
            }
        }
        prover
    }

    /// Notes what `expr >= value` says about single size symbols, in the forms that sizes have.
    fn assume_at_least(&mut self, expr: &Expr, value: i64) {
        match expr.kind() {
            ExprKind::Symbol(symbol) => {
                let least = &mut self.least[*symbol];
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

    /// Whether a symbol has many values while the sizes have one: an index, or a static.
    fn varies(&self, symbol: Symbol) -> bool {
        !matches!(self.graph.symbol(symbol), SymbolInfo::Size { .. })
    }

    /// The smallest or largest value of an expression, free of index and static symbols.
    fn end(&self, expr: &Expr, end: End) -> Result<Option<Expr>, Error> {
        if !expr.symbols().into_iter().any(|symbol| self.varies(symbol)) {
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
                (SymbolInfo::Static { lo, .. }, End::Smallest) => Some(lo.clone()),
                (SymbolInfo::Static { hi, .. }, End::Largest) => Some(hi.sub(&one)?),
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
                let Some((least, most)) = self.divisor(b)? else {
                    return Ok(None);
                };
                match self.end(a, end)? {
                    Some(bound) if least == most => bound.floor_div(&least).map(Some),
                    // What is not negative grows as its divisor shrinks.
                    Some(bound) if self.nonnegative(&bound)? => bound
                        .floor_div(match end {
                            End::Smallest => &most,
                            End::Largest => &least,
                        })
                        .map(Some),
                    _ => Ok(None),
                }
            }
            ExprKind::Mod(_, b) => Ok(match (self.divisor(b)?, end) {
                (None, _) => None,
                (Some(_), End::Smallest) => Some(Expr::constant(0)),
                (Some((_, most)), End::Largest) => Some(most.sub(&one)?),
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

    /// The smallest and largest value of a divisor that is certainly positive; a static makes them two.
    fn divisor(&self, expr: &Expr) -> Result<Option<(Expr, Expr)>, Error> {
        let ends = (
            self.end(expr, End::Smallest)?,
            self.end(expr, End::Largest)?,
        );
        match ends {
            (Some(least), Some(most)) if self.positive(&least)? => Ok(Some((least, most))),
            _ => Ok(None),
        }
    }

    /// The bound of a product with one factor that holds index or static symbols.
    fn product_end(&self, factors: &[Expr], end: End) -> Result<Option<Expr>, Error> {
        let mut scale = Expr::constant(1);
        let mut varying = None;
        for factor in factors {
            let symbols = factor.symbols();
            if !symbols.into_iter().any(|symbol| self.varies(symbol)) {
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
        if expr.symbols().iter().any(|symbol| self.varies(*symbol)) {
            return Ok(false);
        }
        if self.nonnegative_from_least(expr)? {
            return Ok(true);
        }
        let smaller = self.without_symbolic_quotients(expr)?;
        Ok(smaller != *expr && self.nonnegative_from_least(&smaller)?)
    }

    /// An expression that is not larger, in which no term is a multiple `b*k` of a quotient by the
    /// expression `b`: `a - (b - 1) <= b*(a // b) <= a`. See [`without_quotients`] for numbers.
    fn without_symbolic_quotients(&self, expr: &Expr) -> Result<Expr, Error> {
        let terms = match expr.kind() {
            ExprKind::Add(terms) => terms.as_slice(),
            _ => std::slice::from_ref(expr),
        };
        let mut sum = Expr::constant(0);
        for term in terms {
            sum = sum.add(&self.without_symbolic_quotient(term)?)?;
        }
        Ok(sum)
    }

    fn without_symbolic_quotient(&self, term: &Expr) -> Result<Expr, Error> {
        let ExprKind::Mul(factors) = term.kind() else {
            return Ok(term.clone());
        };
        for (at, quotient) in factors.iter().enumerate() {
            let ExprKind::FloorDiv(a, b) = quotient.kind() else {
                continue;
            };
            let Some(divisor) = factors.iter().position(|factor| factor == b) else {
                continue;
            };
            let mut times = Expr::constant(1);
            for (other, factor) in factors.iter().enumerate() {
                if other != at && other != divisor {
                    times = times.mul(factor)?;
                }
            }
            if !self.positive(b)? {
                continue;
            }
            if self.nonnegative_from_least(&times.neg()?)? {
                return a.mul(&times);
            }
            if self.nonnegative_from_least(&times)? {
                return a.sub(b)?.add(&Expr::constant(1))?.mul(&times);
            }
        }
        Ok(term.clone())
    }

    fn nonnegative_from_least(&self, expr: &Expr) -> Result<bool, Error> {
        let symbols = expr.symbols();
        // Every symbol is counted from its smallest value, so that a polynomial is certainly not
        // negative if none of its coefficients is.
        let shifted = expr.substitute(&|symbol| {
            let least = Expr::constant(*self.least.get(symbol)?);
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
