//! Infix text of expressions.

use std::fmt;

use crate::error::default_name;
use crate::expr::{Cmp, Expr, ExprKind, Symbol};
use crate::sum::coefficient_and_factors;

/// How tightly the operator at the top of an expression binds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Binding {
    Comparison,
    Sum,
    Quotient,
    Product,
    Atom,
}

fn binding(expr: &Expr) -> Binding {
    match expr.kind() {
        ExprKind::Compare(..) => Binding::Comparison,
        ExprKind::Add(_) => Binding::Sum,
        // `/` and `%` are written with spaces around them and `*` without, so a quotient inside a
        // product gets parentheses that the grammar does not need: `i / 8*3` would mislead.
        ExprKind::FloorDiv(..) | ExprKind::Mod(..) => Binding::Quotient,
        ExprKind::Mul(_) => Binding::Product,
        ExprKind::Const(_) | ExprKind::Symbol(_) | ExprKind::Min(..) | ExprKind::Max(..) => {
            Binding::Atom
        }
    }
}

struct Writer<'a, 'f, 'g> {
    names: &'a dyn Fn(Symbol) -> String,
    f: &'f mut fmt::Formatter<'g>,
}

impl Writer<'_, '_, '_> {
    /// Writes `expr`, in parentheses unless it binds at least as tightly as `least`.
    fn operand(&mut self, expr: &Expr, least: Binding) -> fmt::Result {
        if binding(expr) >= least {
            return self.expr(expr);
        }
        self.f.write_str("(")?;
        self.expr(expr)?;
        self.f.write_str(")")
    }

    fn binary(
        &mut self,
        (a, least_a): (&Expr, Binding),
        operator: &str,
        (b, least_b): (&Expr, Binding),
    ) -> fmt::Result {
        self.operand(a, least_a)?;
        write!(self.f, " {operator} ")?;
        self.operand(b, least_b)
    }

    fn call(&mut self, function: &str, a: &Expr, b: &Expr) -> fmt::Result {
        write!(self.f, "{function}(")?;
        self.expr(a)?;
        self.f.write_str(", ")?;
        self.expr(b)?;
        self.f.write_str(")")
    }

    fn expr(&mut self, expr: &Expr) -> fmt::Result {
        match expr.kind() {
            ExprKind::Const(value) => write!(self.f, "{value}"),
            ExprKind::Symbol(symbol) => self.f.write_str(&(self.names)(*symbol)),
            ExprKind::Add(terms) => {
                // A positive term leads where there is one: `N - i`, not `-i + N`.
                let lead = terms
                    .iter()
                    .position(|term| !is_negative(term))
                    .unwrap_or(0);
                self.term(&terms[lead], true)?;
                for (i, term) in terms.iter().enumerate() {
                    if i != lead {
                        self.term(term, false)?;
                    }
                }
                Ok(())
            }
            ExprKind::Mul(_) => self.term(expr, true),
            ExprKind::FloorDiv(a, b) => {
                self.binary((a, Binding::Quotient), "/", (b, Binding::Atom))
            }
            ExprKind::Mod(a, b) => self.binary((a, Binding::Quotient), "%", (b, Binding::Atom)),
            ExprKind::Min(a, b) => self.call("min", a, b),
            ExprKind::Max(a, b) => self.call("max", a, b),
            ExprKind::Compare(cmp, a, b) => {
                let operator = match cmp {
                    Cmp::Eq => "==",
                    Cmp::Ne => "!=",
                    Cmp::Lt => "<",
                    Cmp::Le => "<=",
                };
                self.binary((a, Binding::Sum), operator, (b, Binding::Sum))
            }
        }
    }

    /// A term with its sign: in front of the first one, between the others.
    fn term(&mut self, term: &Expr, first: bool) -> fmt::Result {
        self.f.write_str(match (is_negative(term), first) {
            (true, true) => "-",
            (true, false) => " - ",
            (false, true) => "",
            (false, false) => " + ",
        })?;
        if let Some(value) = term.as_const() {
            return write!(self.f, "{}", value.unsigned_abs());
        }
        let (coefficient, factors) = coefficient_and_factors(term);
        if let ([single], 1) = (factors, coefficient) {
            return self.operand(single, Binding::Quotient);
        }
        for (i, factor) in factors.iter().enumerate() {
            if i > 0 {
                self.f.write_str("*")?;
            }
            self.operand(factor, Binding::Product)?;
        }
        match coefficient {
            1 | -1 => Ok(()),
            _ => write!(self.f, "*{}", coefficient.unsigned_abs()),
        }
    }
}

fn is_negative(term: &Expr) -> bool {
    match term.as_const() {
        Some(value) => value < 0,
        None => coefficient_and_factors(term).0 < 0,
    }
}

impl Expr {
    /// The expression as infix text, with symbols named by `names`: `(i*8 + j) / 4`, `i % 3`,
    /// `min(a, b)`, `a < b`. `/` rounds down and has the precedence of `*` and `%`.
    pub fn display<'a>(&'a self, names: &'a dyn Fn(Symbol) -> String) -> impl fmt::Display + 'a {
        fmt::from_fn(move |f| Writer { names, f }.expr(self))
    }
}

/// Symbols are written `s0`, `s1`, ….
impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Writer {
            names: &default_name,
            f,
        }
        .expr(self)
    }
}

/// The same text as `Display`: a tree of nodes is unreadable in an assertion's message.
impl fmt::Debug for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
