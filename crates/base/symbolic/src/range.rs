//! Interval analysis: the smallest and largest value an expression can take.

use loopwright_threads::interrupt::unwind_if_asked;
use std::collections::BTreeMap;

use crate::expr::{Cmp, Expr, ExprKind, Symbol, floor_div};

/// An inclusive range of values; a missing end is unbounded.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Range {
    /// The smallest value, if known.
    pub lo: Option<i64>,
    /// The largest value, if known.
    pub hi: Option<i64>,
}

impl Range {
    /// Any value at all.
    pub const UNBOUNDED: Range = Range { lo: None, hi: None };

    /// From `lo` to `hi`, both included.
    pub fn new(lo: i64, hi: i64) -> Range {
        Range {
            lo: Some(lo),
            hi: Some(hi),
        }
    }

    /// Exactly `value`.
    pub fn exact(value: i64) -> Range {
        Range::new(value, value)
    }

    /// What a loop of `size` iterations counts through: 0 to `size - 1`.
    pub fn extent(size: i64) -> Range {
        Range::new(0, size.saturating_sub(1))
    }

    /// `lo` and everything above.
    pub fn at_least(lo: i64) -> Range {
        Range {
            lo: Some(lo),
            hi: None,
        }
    }

    /// The only value in the range, if there is just one.
    pub fn as_const(&self) -> Option<i64> {
        self.lo.filter(|lo| Some(*lo) == self.hi)
    }

    /// Whether `value` lies in the range.
    pub fn contains(&self, value: i64) -> bool {
        self.lo.is_none_or(|lo| lo <= value) && self.hi.is_none_or(|hi| value <= hi)
    }
}

/// What is known of the values of symbols.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Bounds {
    ranges: BTreeMap<Symbol, Range>,
}

impl Bounds {
    /// Nothing known.
    pub fn new() -> Bounds {
        Bounds::default()
    }

    /// States the range of `symbol`, and returns what was stated before.
    pub fn insert(&mut self, symbol: Symbol, range: Range) -> Option<Range> {
        self.ranges.insert(symbol, range)
    }

    /// The range of `symbol`: [`Range::UNBOUNDED`] if nothing was stated.
    pub fn get(&self, symbol: Symbol) -> Range {
        self.ranges
            .get(&symbol)
            .copied()
            .unwrap_or(Range::UNBOUNDED)
    }
}

impl FromIterator<(Symbol, Range)> for Bounds {
    fn from_iter<I: IntoIterator<Item = (Symbol, Range)>>(ranges: I) -> Bounds {
        Bounds {
            ranges: ranges.into_iter().collect(),
        }
    }
}

impl Expr {
    /// A range that holds every value [`evaluate`](Expr::evaluate) can give within `bounds`. It is
    /// sound, not always the smallest.
    pub fn range(&self, bounds: &Bounds) -> Range {
        unwind_if_asked();
        interval(self, bounds).narrow()
    }
}

/// Everything at least this far from zero counts as infinite: far outside 64 bits, and two such
/// numbers can be added in 128.
const INFINITE: i128 = 1 << 120;

/// A [`Range`] with ends wide enough for sums and products of 64-bit values.
#[derive(Clone, Copy)]
struct Interval {
    lo: i128,
    hi: i128,
}

impl Interval {
    const ALL: Interval = Interval {
        lo: -INFINITE,
        hi: INFINITE,
    };

    fn exact(value: i64) -> Interval {
        Interval {
            lo: i128::from(value),
            hi: i128::from(value),
        }
    }

    fn widen(range: Range) -> Interval {
        Interval {
            lo: range.lo.map_or(-INFINITE, i128::from),
            hi: range.hi.map_or(INFINITE, i128::from),
        }
    }

    /// A value that can be evaluated fits in 64 bits, so an end outside of them says nothing.
    fn narrow(self) -> Range {
        Range {
            lo: i64::try_from(self.lo).ok(),
            hi: i64::try_from(self.hi).ok(),
        }
    }

    fn hull(self, other: Interval) -> Interval {
        Interval {
            lo: self.lo.min(other.lo),
            hi: self.hi.max(other.hi),
        }
    }

    fn add(self, other: Interval) -> Interval {
        // An end that is infinite stays so whatever is added to it.
        let end = |a: i128, b: i128, infinite: i128| {
            if a == infinite || b == infinite {
                infinite
            } else {
                (a + b).clamp(-INFINITE, INFINITE)
            }
        };
        Interval {
            lo: end(self.lo, other.lo, -INFINITE),
            hi: end(self.hi, other.hi, INFINITE),
        }
    }

    /// The hull of `operation` at the four corners, for operations monotone in each operand.
    fn corners(self, other: Interval, operation: impl Fn(i128, i128) -> i128) -> Interval {
        let corners = [
            operation(self.lo, other.lo),
            operation(self.lo, other.hi),
            operation(self.hi, other.lo),
            operation(self.hi, other.hi),
        ];
        let [first, rest @ ..] = corners;
        let (mut lo, mut hi) = (first, first);
        for corner in rest {
            (lo, hi) = (lo.min(corner), hi.max(corner));
        }
        Interval { lo, hi }
    }

    fn mul(self, other: Interval) -> Interval {
        self.corners(other, |a, b| a.saturating_mul(b).clamp(-INFINITE, INFINITE))
    }

    /// Tighter than `mul` where the factors are the same value: an even power is never negative.
    fn power(self, exponent: usize) -> Interval {
        let mut power = Interval { lo: 1, hi: 1 };
        for _ in 0..exponent {
            power = power.mul(self);
        }
        if exponent.is_multiple_of(2) {
            power.lo = power.lo.max(0);
        }
        power
    }

    /// The non-zero part of a divisor, below and above zero.
    fn split_at_zero(self) -> [Option<Interval>; 2] {
        let below = Interval {
            lo: self.lo,
            hi: self.hi.min(-1),
        };
        let above = Interval {
            lo: self.lo.max(1),
            hi: self.hi,
        };
        [below, above].map(|part| (part.lo <= part.hi).then_some(part))
    }

    fn floor_div(self, divisor: Interval) -> Interval {
        let parts = divisor.split_at_zero().into_iter().flatten().map(|part| {
            self.corners(part, |a, b| {
                if b.abs() >= INFINITE {
                    // The quotient of anything smaller rounds to 0 or -1, and the other corners
                    // take care of anything larger.
                    if a == 0 || (a < 0) == (b < 0) { 0 } else { -1 }
                } else if a.abs() >= INFINITE {
                    if (a < 0) == (b < 0) {
                        INFINITE
                    } else {
                        -INFINITE
                    }
                } else {
                    floor_div(a, b)
                }
            })
        });
        // A divisor that can only be zero never evaluates.
        parts.reduce(Interval::hull).unwrap_or(Interval::ALL)
    }

    fn modulo(self, divisor: Interval) -> Interval {
        let parts = divisor.split_at_zero().into_iter().flatten().map(|part| {
            // A quotient that cannot vary leaves the dividend, shifted.
            let quotient = self.floor_div(part);
            if quotient.lo == quotient.hi && (quotient.lo == 0 || part.lo == part.hi) {
                let shift = -quotient.lo * part.lo;
                return Interval {
                    lo: self.lo + shift,
                    hi: self.hi + shift,
                };
            }
            if part.lo > 0 {
                let largest = if self.lo >= 0 { self.hi } else { INFINITE };
                Interval {
                    lo: 0,
                    hi: largest.min(part.hi - 1),
                }
            } else {
                let smallest = if self.hi <= 0 { self.lo } else { -INFINITE };
                Interval {
                    lo: smallest.max(part.lo + 1),
                    hi: 0,
                }
            }
        });
        parts.reduce(Interval::hull).unwrap_or(Interval::ALL)
    }
}

fn interval(expr: &Expr, bounds: &Bounds) -> Interval {
    match expr.kind() {
        ExprKind::Const(value) => Interval::exact(*value),
        ExprKind::Symbol(symbol) => Interval::widen(bounds.get(*symbol)),
        ExprKind::Add(terms) => terms
            .iter()
            .map(|term| interval(term, bounds))
            .reduce(Interval::add)
            .unwrap_or(Interval::exact(0)),
        ExprKind::Mul(factors) => factors
            .chunk_by(|a, b| a == b)
            .map(|equal| interval(&equal[0], bounds).power(equal.len()))
            .reduce(Interval::mul)
            .unwrap_or(Interval::exact(1)),
        ExprKind::FloorDiv(a, b) => interval(a, bounds).floor_div(interval(b, bounds)),
        ExprKind::Mod(a, b) => interval(a, bounds).modulo(interval(b, bounds)),
        ExprKind::Min(a, b) => {
            let (a, b) = (interval(a, bounds), interval(b, bounds));
            Interval {
                lo: a.lo.min(b.lo),
                hi: a.hi.min(b.hi),
            }
        }
        ExprKind::Max(a, b) => {
            let (a, b) = (interval(a, bounds), interval(b, bounds));
            Interval {
                lo: a.lo.max(b.lo),
                hi: a.hi.max(b.hi),
            }
        }
        ExprKind::Compare(cmp, a, b) => {
            let (a, b) = (interval(a, bounds), interval(b, bounds));
            match decide(*cmp, a, b) {
                Some(holds) => Interval::exact(i64::from(holds)),
                None => Interval { lo: 0, hi: 1 },
            }
        }
    }
}

/// The outcome of a comparison, where it is the same for all values of both sides.
fn decide(cmp: Cmp, a: Interval, b: Interval) -> Option<bool> {
    let disjoint = a.hi < b.lo || b.hi < a.lo;
    let single = a.lo == a.hi && b.lo == b.hi && a.lo == b.lo;
    match cmp {
        Cmp::Eq if disjoint => Some(false),
        Cmp::Eq if single => Some(true),
        Cmp::Ne if disjoint => Some(true),
        Cmp::Ne if single => Some(false),
        Cmp::Lt if a.hi < b.lo => Some(true),
        Cmp::Lt if a.lo >= b.hi => Some(false),
        Cmp::Le if a.hi <= b.lo => Some(true),
        Cmp::Le if a.lo > b.hi => Some(false),
        Cmp::Eq | Cmp::Ne | Cmp::Lt | Cmp::Le => None,
    }
}
