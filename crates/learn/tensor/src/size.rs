//! Sizes that nobody has said yet, and how they become known.
//!
//! A size is an expression over *unknowns*: `Dense::new(64)` does not say how long its input is, so its
//! weight has an unknown there. Wherever two axes meet, their sizes are equated, and an unknown becomes
//! what the other side is, in either direction. What is left open when values are asked for is an error
//! that says whose size it is.

use loopwright_symbolic::{Expr, ExprKind, Symbol, affine, isolate};
use loopwright_threads::ProcessMutex;
use rustc_hash::FxHashMap;
use std::sync::MutexGuard;

/// Symbols below this stand for the axes of a view's result, by their place.
const FIRST_UNKNOWN: u32 = 64;

/// How many axes a tensor can have.
pub const MAX_AXES: usize = FIRST_UNKNOWN as usize;

/// The index along the axis at a place of a view's result.
pub(crate) fn axis_symbol(axis: usize) -> Symbol {
    debug_assert!(axis < MAX_AXES, "shapes are held to the number of axes");
    Symbol(axis as u32)
}

/// The index along the axis at a place of a view's result, as an expression.
pub(crate) fn axis_index(axis: usize) -> Expr {
    Expr::symbol(axis_symbol(axis))
}

/// The place of the axis that a symbol stands for.
pub(crate) fn symbol_axis(symbol: Symbol) -> Option<usize> {
    (symbol.0 < FIRST_UNKNOWN).then_some(usize::from(symbol))
}

struct Unknown {
    /// Whose size it is.
    owner: String,
    value: Option<Expr>,
}

struct Table {
    unknowns: Vec<Unknown>,
    /// Equations that hold for more than one value of their unknown; they decide if nothing else does.
    open: Vec<(Expr, Expr)>,
}

fn table() -> MutexGuard<'static, Table> {
    static TABLE: ProcessMutex<Table> = ProcessMutex::new(Table {
        unknowns: Vec::new(),
        open: Vec::new(),
    });
    TABLE.lock()
}

/// A size that is inferred from use. `owner` says whose it is, for the error where nothing decides it.
pub fn unknown(owner: impl Into<String>) -> Expr {
    let mut table = table();
    let symbol = Symbol(FIRST_UNKNOWN + table.unknowns.len() as u32);
    table.unknowns.push(Unknown {
        owner: owner.into(),
        value: None,
    });
    Expr::symbol(symbol)
}

impl Table {
    fn value(&self, symbol: Symbol) -> Option<&Expr> {
        let at = symbol.0.checked_sub(FIRST_UNKNOWN)?;
        self.unknowns[at as usize].value.as_ref()
    }

    fn resolve(&self, size: &Expr) -> Expr {
        let mut size = size.clone();
        // Values may be made of unknowns that were solved later.
        while size.symbols().iter().any(|s| self.value(*s).is_some()) {
            match size.substitute(&|symbol| self.value(symbol).cloned()) {
                Ok(next) => size = next,
                // Too large for 64 bits: stays as it is, and is refused where a number is needed.
                Err(_) => return size,
            }
        }
        size
    }

    fn set(&mut self, symbol: Symbol, value: Expr) {
        self.unknowns[(symbol.0 - FIRST_UNKNOWN) as usize].value = Some(value);
    }

    /// Makes two sizes equal if they can be; `false` if they never are.
    fn equate(&mut self, a: &Expr, b: &Expr) -> bool {
        let (a, b) = (self.resolve(a), self.resolve(b));
        if a == b {
            return true;
        }
        let difference = match a.sub(&b) {
            Ok(difference) => difference,
            Err(_) => return false,
        };
        if let Some(constant) = difference.as_const() {
            return constant == 0;
        }
        for symbol in difference.symbols() {
            let Ok(value) = isolate(&a, &b, symbol) else {
                continue;
            };
            if value.as_const().is_some_and(|size| size < 0) {
                return false;
            }
            self.set(symbol, value);
            return self.settle(false);
        }
        if never_zero(&difference) {
            return false;
        }
        self.open.push((a, b));
        true
    }

    /// Tries the open equations again, and with `choose` takes the smallest size where several would do.
    fn settle(&mut self, choose: bool) -> bool {
        for (a, b) in std::mem::take(&mut self.open) {
            if !self.equate(&a, &b) {
                return false;
            }
        }
        if choose {
            for at in 0..self.open.len() {
                let (a, b) = self.open[at].clone();
                let smallest = match (a.as_const(), b.as_const()) {
                    (None, Some(size)) => smallest(&a, size),
                    (Some(size), None) => smallest(&b, size),
                    _ => None,
                };
                if let Some((symbol, size)) = smallest {
                    self.set(symbol, Expr::constant(size));
                    return self.settle(true);
                }
            }
        }
        true
    }
}

/// Whether a multiple of an unknown plus a number is 0 for no whole size.
fn never_zero(expr: &Expr) -> bool {
    let symbols: Vec<Symbol> = expr.symbols().into_iter().collect();
    let [symbol] = symbols[..] else { return false };
    let Some(form) = affine(expr, &symbols) else {
        return false;
    };
    let step = form.coefficients.get(&symbol).and_then(Expr::as_const);
    match (step, form.constant.as_const()) {
        (Some(step), Some(rest)) => step != 0 && rest % step != 0,
        _ => false,
    }
}

/// The smallest value of the one unknown in `expr` for which it is `size`.
fn smallest(expr: &Expr, size: i64) -> Option<(Symbol, i64)> {
    match expr.kind() {
        ExprKind::Symbol(symbol) => Some((*symbol, size)),
        ExprKind::FloorDiv(inner, divisor) => {
            let divisor = divisor.as_const().filter(|divisor| *divisor > 0)?;
            smallest(inner, size.checked_mul(divisor)?)
        }
        _ => {
            let symbols = expr.symbols();
            let [symbol] = symbols.iter().collect::<Vec<_>>()[..] else {
                return None;
            };
            if let Ok(value) = isolate(expr, &Expr::constant(size), *symbol) {
                return Some((*symbol, value.as_const()?));
            }
            // A rounded division among the terms of a sum: solved for the division, then within it.
            let division = inner_division(expr)?;
            let rest = expr.sub(&division).ok()?.as_const()?;
            smallest(&division, size.checked_sub(rest)?)
        }
    }
}

/// The first rounded division in an expression.
fn inner_division(expr: &Expr) -> Option<Expr> {
    if let ExprKind::FloorDiv(..) = expr.kind() {
        return Some(expr.clone());
    }
    expr.kind().children().find_map(inner_division)
}

/// The size with all that is known put in.
pub(crate) fn resolve(size: &Expr) -> Expr {
    if size.as_const().is_some() {
        return size.clone();
    }
    table().resolve(size)
}

/// Makes two sizes equal if they can be; `false` if they never are.
pub(crate) fn equate(a: &Expr, b: &Expr) -> bool {
    match (a.as_const(), b.as_const()) {
        (Some(a), Some(b)) => a == b,
        _ => table().equate(a, b),
    }
}

/// Takes the smallest size wherever what is known leaves several (a strided window does).
pub(crate) fn settle() {
    table().settle(true);
}

/// Whose sizes are still open in an expression.
pub(crate) fn owners(size: &Expr) -> Vec<String> {
    let table = table();
    let mut names: FxHashMap<&str, ()> = FxHashMap::default();
    let resolved = table.resolve(size);
    let mut owners = Vec::new();
    for symbol in resolved.symbols() {
        let Some(at) = symbol.0.checked_sub(FIRST_UNKNOWN) else {
            continue;
        };
        let owner = table.unknowns[at as usize].owner.as_str();
        if names.insert(owner, ()).is_none() {
            owners.push(owner.to_owned());
        }
    }
    owners
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(value: i64) -> Expr {
        Expr::constant(value)
    }

    #[test]
    fn a_size_is_found_in_either_direction() {
        let a = unknown("a");
        let b = a.add(&number(2)).unwrap();
        assert!(equate(&b, &number(10)));
        assert_eq!(resolve(&a), number(8));
        assert!(!equate(&a, &number(9)));
    }

    #[test]
    fn a_part_is_a_whole_number() {
        let a = unknown("a");
        let four = a.mul(&number(4)).unwrap();
        assert!(!equate(&four, &number(6)));
        assert!(equate(&four, &number(8)));
        assert_eq!(resolve(&a), number(2));
    }

    #[test]
    fn a_strided_window_takes_the_smallest_input_if_nothing_else_says() {
        // (n - 3) // 2 + 1 == 8: 17 or 18.
        let places = |n: &Expr| {
            let rest = n.sub(&number(3)).unwrap().floor_div(&number(2)).unwrap();
            rest.add(&number(1)).unwrap()
        };
        let n = unknown("n");
        assert!(equate(&places(&n), &number(8)));
        settle();
        assert_eq!(resolve(&n), number(17));

        let m = unknown("m");
        assert!(equate(&places(&m), &number(8)));
        assert!(equate(&m, &number(18)));
        settle();
        assert_eq!(resolve(&m), number(18));
        let k = unknown("k");
        assert!(equate(&places(&k), &number(8)));
        assert!(!equate(&k, &number(19)));
    }
}
