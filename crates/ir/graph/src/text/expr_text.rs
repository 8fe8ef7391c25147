//! Integer expressions in the language's spelling.

use loopwright_symbolic::{Cmp, Expr, ExprKind, Symbol};
use std::fmt::{self, Write as _};

/// An index or size as a program says it, with symbols named by `names`.
pub(crate) fn expr_text(expr: &Expr, names: &dyn Fn(Symbol) -> String) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = Writer { names }.expr(&mut out, expr, Level::Comparison);
    out
}

/// How tightly an integer expression binds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Comparison,
    Sum,
    Product,
    Atom,
}

struct Writer<'a> {
    names: &'a dyn Fn(Symbol) -> String,
}

impl Writer<'_> {
    /// An expression, in parentheses unless it binds at least as tightly as `least`.
    fn expr(&self, out: &mut String, expr: &Expr, least: Level) -> fmt::Result {
        let level = level(expr);
        if level < least {
            out.push('(');
            self.expr(out, expr, Level::Comparison)?;
            out.push(')');
            return Ok(());
        }
        match expr.kind() {
            ExprKind::Const(value) => write!(out, "{value}"),
            ExprKind::Symbol(symbol) => {
                out.push_str(&(self.names)(*symbol));
                Ok(())
            }
            ExprKind::Add(terms) => {
                // A positive term leads where there is one: `N - i`, not `-i + N`.
                let lead = terms.iter().position(|term| !parts(term).0).unwrap_or(0);
                self.term(out, &terms[lead], ["", "-"])?;
                for (at, term) in terms.iter().enumerate() {
                    if at != lead {
                        self.term(out, term, [" + ", " - "])?;
                    }
                }
                Ok(())
            }
            ExprKind::Mul(_) => self.term(out, expr, ["", "-"]),
            ExprKind::FloorDiv(a, b) => self.infix(out, a, " // ", b, Level::Product, Level::Atom),
            ExprKind::Mod(a, b) => self.infix(out, a, " % ", b, Level::Product, Level::Atom),
            ExprKind::Min(a, b) => self.call(out, "min", a, b),
            ExprKind::Max(a, b) => self.call(out, "max", a, b),
            ExprKind::Compare(cmp, a, b) => {
                let operator = match cmp {
                    Cmp::Eq => " == ",
                    Cmp::Ne => " != ",
                    Cmp::Lt => " < ",
                    Cmp::Le => " <= ",
                };
                self.infix(out, a, operator, b, Level::Sum, Level::Sum)
            }
        }
    }

    /// A term, with what is written before it when it is positive and when it is negative.
    fn term(&self, out: &mut String, term: &Expr, signs: [&str; 2]) -> fmt::Result {
        let (negative, factors, scale) = parts(term);
        out.push_str(signs[usize::from(negative)]);
        // A sign in front binds tighter than `//` and `%`.
        let alone = factors.len() == 1 && scale == 1 && !(negative && signs[1] == "-");
        let least = if alone { Level::Product } else { Level::Atom };
        for (at, factor) in factors.iter().enumerate() {
            out.push_str(if at > 0 { "*" } else { "" });
            self.expr(out, factor, least)?;
        }
        match (factors.is_empty(), scale) {
            (true, _) => write!(out, "{scale}"),
            (false, 1) => Ok(()),
            (false, _) => write!(out, "*{scale}"),
        }
    }

    fn infix(
        &self,
        out: &mut String,
        a: &Expr,
        operator: &str,
        b: &Expr,
        least_a: Level,
        least_b: Level,
    ) -> fmt::Result {
        self.expr(out, a, least_a)?;
        out.push_str(operator);
        self.expr(out, b, least_b)
    }

    fn call(&self, out: &mut String, function: &str, a: &Expr, b: &Expr) -> fmt::Result {
        write!(out, "{function}(")?;
        self.expr(out, a, Level::Comparison)?;
        out.push_str(", ");
        self.expr(out, b, Level::Comparison)?;
        out.push(')');
        Ok(())
    }
}

fn level(expr: &Expr) -> Level {
    match expr.kind() {
        ExprKind::Compare(..) => Level::Comparison,
        ExprKind::Add(_) => Level::Sum,
        ExprKind::Mul(_) | ExprKind::FloorDiv(..) | ExprKind::Mod(..) => Level::Product,
        ExprKind::Const(value) if *value < 0 => Level::Sum,
        ExprKind::Const(_) | ExprKind::Symbol(_) | ExprKind::Min(..) | ExprKind::Max(..) => {
            Level::Atom
        }
    }
}

/// Whether a term is written with a minus sign, its factors but for a number, and that number
/// without the sign. The smallest number keeps its sign: its magnitude is not a number.
fn parts(term: &Expr) -> (bool, &[Expr], i64) {
    let (factors, scale) = match term.kind() {
        ExprKind::Const(value) => (&[] as &[Expr], *value),
        ExprKind::Mul(factors) => match factors.split_last().map(|(last, _)| last.as_const()) {
            Some(Some(scale)) => (&factors[..factors.len() - 1], scale),
            _ => (factors.as_slice(), 1),
        },
        _ => (std::slice::from_ref(term), 1),
    };
    match scale.checked_neg() {
        Some(positive) if scale < 0 => (true, factors, positive),
        _ => (false, factors, scale),
    }
}
