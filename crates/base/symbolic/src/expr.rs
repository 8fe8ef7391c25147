//! The expression type: symbols, nodes, inspection, evaluation and substitution.

use loopwright_threads::interrupt::unwind_if_asked;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use crate::error::Error;
use crate::sum::Sum;

/// The deepest nesting of an expression. Every pass recurses over nodes, so this bounds the stack.
pub const DEPTH_LIMIT: u32 = 256;

/// The most nodes an expression may have when written out (a shared node counts each time).
/// Without it a few lines of `x = max(x / 2, x % 3)` would describe an exponentially large tree.
pub const SIZE_LIMIT: u32 = 1 << 14;

/// The constants that exist once.
const SHARED_CONSTANTS: Range<i64> = -16..129;

loopwright_arena::handle! {
    /// A symbol: a cheap copyable handle of an index or size variable. Its name lives with whoever made it.
    pub struct Symbol;
}

/// The comparisons an expression can make. Greater-than forms are the same with operands swapped.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Cmp {
    /// `a == b`
    Eq,
    /// `a != b`
    Ne,
    /// `a < b`
    Lt,
    /// `a <= b`
    Le,
}

impl Cmp {
    /// Whether the comparison holds for two values.
    pub fn holds(self, a: i64, b: i64) -> bool {
        match self {
            Cmp::Eq => a == b,
            Cmp::Ne => a != b,
            Cmp::Lt => a < b,
            Cmp::Le => a <= b,
        }
    }
}

/// The top of an expression, for consumers (lowering, printers) to match on exhaustively.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ExprKind {
    /// A number.
    Const(i64),
    /// A variable.
    Symbol(Symbol),
    /// A sum of at least two terms, sorted; none is a sum, at most one is a constant, which is last.
    Add(Vec<Expr>),
    /// A product of at least two factors, sorted; none is a product, at most one is a constant, which is last.
    Mul(Vec<Expr>),
    /// The quotient rounded towards negative infinity.
    FloorDiv(Expr, Expr),
    /// `a - b * floor(a / b)`: it has the sign of the divisor.
    Mod(Expr, Expr),
    /// The smaller of two.
    Min(Expr, Expr),
    /// The larger of two.
    Max(Expr, Expr),
    /// 1 if the comparison holds, otherwise 0.
    Compare(Cmp, Expr, Expr),
}

impl ExprKind {
    /// The position of the variant in the canonical order of terms and factors: symbols read best
    /// in front, constants at the end.
    fn rank(&self) -> u8 {
        match self {
            ExprKind::Symbol(_) => 0,
            ExprKind::FloorDiv(..) => 1,
            ExprKind::Mod(..) => 2,
            ExprKind::Min(..) => 3,
            ExprKind::Max(..) => 4,
            ExprKind::Compare(..) => 5,
            ExprKind::Mul(_) => 6,
            ExprKind::Add(_) => 7,
            ExprKind::Const(_) => 8,
        }
    }

    /// The operands, in order.
    pub fn children(&self) -> impl Iterator<Item = &Expr> {
        let (list, a, b): (&[Expr], Option<&Expr>, Option<&Expr>) = match self {
            ExprKind::Const(_) | ExprKind::Symbol(_) => (&[], None, None),
            ExprKind::Add(list) | ExprKind::Mul(list) => (list, None, None),
            ExprKind::FloorDiv(a, b)
            | ExprKind::Mod(a, b)
            | ExprKind::Min(a, b)
            | ExprKind::Max(a, b)
            | ExprKind::Compare(_, a, b) => (&[], Some(a), Some(b)),
        };
        list.iter().chain(a).chain(b)
    }
}

struct Node {
    kind: ExprKind,
    /// Of the structure; unequal hashes settle most comparisons at once.
    hash: u64,
    depth: u32,
    size: u32,
    /// Bit `s % 64` is set for every symbol `s` inside: a fast "no" for [`Expr::contains`].
    symbols: u64,
    /// Nothing but sums and products of symbols and constants.
    polynomial: bool,
}

/// An exact 64-bit integer expression in canonical form.
///
/// Cloning copies one pointer. All construction goes through checked methods that keep the form
/// canonical, so `==` recognises ordinary algebraic identities. The order of expressions is
/// structural: it serves sorted containers and says nothing about values. Because of it, write
/// `Expr::min(&a, &b)` rather than `a.min(..)`, which for an owned `a` finds [`Ord::min`] first.
#[derive(Clone)]
pub struct Expr(Arc<Node>);

fn mix(hash: u64, value: u64) -> u64 {
    (hash.rotate_left(5) ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

thread_local! {
    /// Nearly all the numbers in index expressions are small: these are made once and shared. By each thread, because a process
    /// that is forked while another thread made them would wait for that thread for ever.
    static SMALL: Vec<Expr> = SHARED_CONSTANTS
        .map(|value| Expr::from_kind(ExprKind::Const(value)))
        .collect();
}

impl Expr {
    /// The number `value`.
    pub fn constant(value: i64) -> Expr {
        if SHARED_CONSTANTS.contains(&value) {
            let at = (value - SHARED_CONSTANTS.start) as usize;
            // A thread that ends has none any more.
            if let Ok(shared) = SMALL.try_with(|small| small[at].clone()) {
                return shared;
            }
        }
        Expr::from_kind(ExprKind::Const(value))
    }

    /// The variable `symbol`.
    pub fn symbol(symbol: Symbol) -> Expr {
        Expr::from_kind(ExprKind::Symbol(symbol))
    }

    /// Wraps a node that the caller has brought into canonical form, unless it is over a limit.
    pub(crate) fn node(kind: ExprKind) -> Result<Expr, Error> {
        unwind_if_asked();
        let expr = Expr::from_kind(kind);
        if expr.0.depth > DEPTH_LIMIT {
            return Err(Error::TooDeep { limit: DEPTH_LIMIT });
        }
        if expr.0.size > SIZE_LIMIT {
            return Err(Error::TooLarge { limit: SIZE_LIMIT });
        }
        Ok(expr)
    }

    /// A product as written, for messages about something that cannot be built.
    pub(crate) fn uncanonical_product(a: &Expr, b: &Expr) -> Expr {
        Expr::from_kind(ExprKind::Mul(vec![a.clone(), b.clone()]))
    }

    /// The error for an operation whose result does not fit, naming the operation as it was asked for.
    pub(crate) fn overflow(kind: ExprKind) -> Error {
        Error::Overflow {
            expr: Expr::from_kind(kind),
        }
    }

    fn from_kind(kind: ExprKind) -> Expr {
        let (mut depth, mut size, mut symbols, mut polynomial) = (0, 1u32, 0, true);
        let mut hash = mix(0, u64::from(kind.rank()));
        for child in kind.children() {
            depth = depth.max(child.0.depth);
            size = size.saturating_add(child.0.size);
            symbols |= child.0.symbols;
            polynomial &= child.0.polynomial;
            hash = mix(hash, child.0.hash);
        }
        match &kind {
            ExprKind::Const(value) => hash = mix(hash, *value as u64),
            ExprKind::Symbol(symbol) => {
                hash = mix(hash, u64::from(symbol.0));
                symbols = 1 << (symbol.0 % 64);
            }
            ExprKind::Add(_) | ExprKind::Mul(_) => {}
            ExprKind::Compare(cmp, ..) => {
                hash = mix(hash, *cmp as u64);
                polynomial = false;
            }
            ExprKind::FloorDiv(..) | ExprKind::Mod(..) | ExprKind::Min(..) | ExprKind::Max(..) => {
                polynomial = false;
            }
        }
        Expr(Arc::new(Node {
            kind,
            hash,
            depth: depth + 1,
            size,
            symbols,
            polynomial,
        }))
    }

    /// The top of the expression.
    pub fn kind(&self) -> &ExprKind {
        &self.0.kind
    }

    /// The value, if the expression is a number.
    pub fn as_const(&self) -> Option<i64> {
        match self.kind() {
            ExprKind::Const(value) => Some(*value),
            _ => None,
        }
    }

    /// The symbol, if the expression is nothing but one.
    pub fn as_symbol(&self) -> Option<Symbol> {
        match self.kind() {
            ExprKind::Symbol(symbol) => Some(*symbol),
            _ => None,
        }
    }

    /// Whether the expression is made of nothing but sums and products of symbols and constants.
    pub(crate) fn is_polynomial(&self) -> bool {
        self.0.polynomial
    }

    /// Whether both are the same node in memory.
    pub(crate) fn is_same_node(&self, other: &Expr) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// All symbols in the expression.
    pub fn symbols(&self) -> BTreeSet<Symbol> {
        let mut found = BTreeSet::new();
        self.collect_symbols(&mut found);
        found
    }

    pub(crate) fn collect_symbols(&self, found: &mut BTreeSet<Symbol>) {
        if self.0.symbols == 0 {
            return;
        }
        if let ExprKind::Symbol(symbol) = self.kind() {
            found.insert(*symbol);
        }
        for child in self.kind().children() {
            child.collect_symbols(found);
        }
    }

    /// Whether `symbol` occurs in the expression.
    pub fn contains(&self, symbol: Symbol) -> bool {
        if self.0.symbols & (1 << (symbol.0 % 64)) == 0 {
            return false;
        }
        match self.kind() {
            ExprKind::Symbol(own) => *own == symbol,
            kind => kind.children().any(|child| child.contains(symbol)),
        }
    }

    /// Replaces every symbol for which `replacement` has an answer; the answers are not visited again.
    pub fn substitute(&self, replacement: &dyn Fn(Symbol) -> Option<Expr>) -> Result<Expr, Error> {
        if self.0.symbols == 0 {
            return Ok(self.clone());
        }
        if let ExprKind::Symbol(symbol) = self.kind() {
            return Ok(replacement(*symbol).unwrap_or_else(|| self.clone()));
        }
        self.rebuild(&mut |child| child.substitute(replacement))
    }

    /// Maps the children and puts the result into canonical form; shares the node if nothing changed.
    pub(crate) fn rebuild(
        &self,
        map: &mut dyn FnMut(&Expr) -> Result<Expr, Error>,
    ) -> Result<Expr, Error> {
        let mut pair = |a: &Expr, b: &Expr| -> Result<Option<(Expr, Expr)>, Error> {
            let (new_a, new_b) = (map(a)?, map(b)?);
            let same = new_a.is_same_node(a) && new_b.is_same_node(b);
            Ok((!same).then_some((new_a, new_b)))
        };
        let rebuilt = match self.kind() {
            ExprKind::Const(_) | ExprKind::Symbol(_) => None,
            ExprKind::Add(terms) => {
                let (mut sum, mut same) = (Sum::with_capacity(terms.len()), true);
                for term in terms {
                    let new = map(term)?;
                    same &= new.is_same_node(term);
                    sum.push(&new, 1);
                }
                if same {
                    None
                } else {
                    Some(sum.finish(|| self.kind().clone())?)
                }
            }
            ExprKind::Mul(factors) => {
                let mut new = Vec::with_capacity(factors.len());
                for factor in factors {
                    new.push(map(factor)?);
                }
                if new.iter().zip(factors).all(|(a, b)| a.is_same_node(b)) {
                    None
                } else {
                    let mut product = Expr::constant(1);
                    // Constants first: a zero ends the work, and no large product is built to be scaled.
                    new.sort_by_key(|factor| factor.as_const().is_none());
                    for factor in &new {
                        product = product.mul(factor)?;
                    }
                    Some(product)
                }
            }
            ExprKind::FloorDiv(a, b) => match pair(a, b)? {
                Some((a, b)) => Some(a.floor_div(&b)?),
                None => None,
            },
            ExprKind::Mod(a, b) => match pair(a, b)? {
                Some((a, b)) => Some(a.modulo(&b)?),
                None => None,
            },
            ExprKind::Min(a, b) => match pair(a, b)? {
                Some((a, b)) => Some(Expr::min(&a, &b)?),
                None => None,
            },
            ExprKind::Max(a, b) => match pair(a, b)? {
                Some((a, b)) => Some(Expr::max(&a, &b)?),
                None => None,
            },
            ExprKind::Compare(cmp, a, b) => match pair(a, b)? {
                Some((a, b)) => Some(Expr::compare(*cmp, &a, &b)?),
                None => None,
            },
        };
        Ok(rebuilt.unwrap_or_else(|| self.clone()))
    }

    /// The value of the expression when each symbol has the value given by `values`.
    ///
    /// The result is the mathematical one or an error. Terms and products are added up in 128 bits, so
    /// that the canonical order of a sum cannot make it overflow; a sum or product that is the result,
    /// a factor, or an operand of division, modulo, min, max or comparison has to fit in 64.
    pub fn evaluate(&self, values: &dyn Fn(Symbol) -> Option<i64>) -> Result<i64, Error> {
        let overflow = || Error::Overflow { expr: self.clone() };
        match self.kind() {
            ExprKind::Const(value) => Ok(*value),
            ExprKind::Symbol(symbol) => values(*symbol).ok_or(Error::Unbound(*symbol)),
            ExprKind::Add(terms) => {
                let mut sum = 0i128;
                for term in terms {
                    let value = match term.kind() {
                        ExprKind::Mul(factors) => evaluate_product(factors, values)?,
                        _ => Some(i128::from(term.evaluate(values)?)),
                    };
                    sum = value
                        .and_then(|value| sum.checked_add(value))
                        .ok_or_else(overflow)?;
                }
                i64::try_from(sum).map_err(|_| overflow())
            }
            ExprKind::Mul(factors) => evaluate_product(factors, values)?
                .and_then(|product| i64::try_from(product).ok())
                .ok_or_else(overflow),
            ExprKind::FloorDiv(a, b) => {
                let (a, b) = (a.evaluate(values)?, b.evaluate(values)?);
                if b == 0 {
                    return Err(Error::DivisionByZero);
                }
                i64::try_from(floor_div(i128::from(a), i128::from(b))).map_err(|_| overflow())
            }
            ExprKind::Mod(a, b) => {
                let (a, b) = (a.evaluate(values)?, b.evaluate(values)?);
                if b == 0 {
                    return Err(Error::DivisionByZero);
                }
                Ok(floor_mod(a, b))
            }
            ExprKind::Min(a, b) => Ok(a.evaluate(values)?.min(b.evaluate(values)?)),
            ExprKind::Max(a, b) => Ok(a.evaluate(values)?.max(b.evaluate(values)?)),
            ExprKind::Compare(cmp, a, b) => Ok(i64::from(
                cmp.holds(a.evaluate(values)?, b.evaluate(values)?),
            )),
        }
    }
}

/// `None` when the product does not even fit in 128 bits.
fn evaluate_product(
    factors: &[Expr],
    values: &dyn Fn(Symbol) -> Option<i64>,
) -> Result<Option<i128>, Error> {
    let (mut product, mut zero) = (Some(1i128), false);
    for factor in factors {
        let value = factor.evaluate(values)?;
        zero |= value == 0;
        product = product.and_then(|product| product.checked_mul(i128::from(value)));
    }
    Ok(if zero { Some(0) } else { product })
}

/// The quotient rounded towards negative infinity; `b` is not zero and the quotient fits.
pub(crate) fn floor_div(a: i128, b: i128) -> i128 {
    let quotient = a / b;
    if a % b != 0 && (a < 0) != (b < 0) {
        quotient - 1
    } else {
        quotient
    }
}

/// What `floor_div` leaves; `b` is not zero.
pub(crate) fn floor_mod(a: i64, b: i64) -> i64 {
    // Wrapping only matters for i64::MIN % -1, whose remainder is 0.
    let remainder = a.wrapping_rem(b);
    if remainder != 0 && (remainder < 0) != (b < 0) {
        remainder + b
    } else {
        remainder
    }
}

impl PartialEq for Expr {
    fn eq(&self, other: &Expr) -> bool {
        self.is_same_node(other) || (self.0.hash == other.0.hash && self.kind() == other.kind())
    }
}

impl Eq for Expr {}

impl Hash for Expr {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0.hash);
    }
}

impl PartialOrd for Expr {
    fn partial_cmp(&self, other: &Expr) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Expr {
    fn cmp(&self, other: &Expr) -> Ordering {
        if self.is_same_node(other) {
            return Ordering::Equal;
        }
        match (self.kind(), other.kind()) {
            (ExprKind::Const(a), ExprKind::Const(b)) => a.cmp(b),
            (ExprKind::Symbol(a), ExprKind::Symbol(b)) => a.cmp(b),
            (ExprKind::Compare(a, ..), ExprKind::Compare(b, ..)) if a != b => a.cmp(b),
            (a, b) => a
                .rank()
                .cmp(&b.rank())
                .then_with(|| a.children().cmp(b.children())),
        }
    }
}
