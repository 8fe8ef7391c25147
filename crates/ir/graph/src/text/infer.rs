//! The dtypes of inputs and states that say none, from how they are used.
//!
//! Every expression has a dtype that is known, or one that is shared with other expressions (a class of a
//! union-find), or none of its own: a literal takes what stands beside it. Ops of one dtype tie their
//! operands together, casts do not. What is wrong between dtypes that are said is left to the lowering,
//! which knows more about it; here only what an open dtype would have to be is looked at.

use super::ast::{
    Call, Declared, Expr, ExprKind, Index, Literal, LiteralKind, Name, Statement, StatementKind,
};
use super::call::scan_op;
use super::random::Distribution;
use super::value::{default_dtype, weak_kind};
use loopwright_ops::{Class, DType, Op, Output, ReduceOp};
use loopwright_text::{Diagnostic, Span};
use rustc_hash::FxHashMap;

/// Gives every input and state its dtype.
pub(super) fn infer(statements: &mut [Statement]) -> Result<(), Diagnostic> {
    let mut inference = Inference::default();
    for statement in statements.iter() {
        inference.declare(statement);
    }
    if inference.arrays.is_empty() {
        return Ok(());
    }
    for statement in statements.iter() {
        inference.statement(statement)?;
    }
    let mut arrays = 0..inference.arrays.len();
    for statement in statements {
        let kind = keyword(&statement.kind);
        if let StatementKind::Input(declared) | StatementKind::State(declared) = &mut statement.kind
            && declared.dtype.is_none()
            && let Some(array) = arrays.next()
        {
            let known = &inference.arrays[inference.root(array)].known;
            let known = known.as_ref().ok_or_else(|| open(kind, declared))?;
            declared.dtype = Some(known.dtype);
        }
    }
    Ok(())
}

fn keyword(statement: &StatementKind) -> &'static str {
    match statement {
        StatementKind::State(_) => "state",
        _ => "input",
    }
}

/// The error for an array whose dtype nothing says.
fn open(kind: &str, declared: &Declared) -> Diagnostic {
    let message = format!(
        "nothing determines the dtype of {kind} `{}`",
        declared.name.shown()
    );
    let help = format!("say it: `{}`", said(kind, declared, DType::F32));
    Diagnostic::new(declared.name.span, message).help(help)
}

/// A declaration with its dtype, as it could be written.
fn said(kind: &str, declared: &Declared, dtype: DType) -> String {
    let dims: Vec<String> = declared.dims.iter().map(|dim| dim.name.shown()).collect();
    let dims = match dims.as_slice() {
        [] => String::new(),
        dims => format!("[{}]", dims.join(", ")),
    };
    format!("{kind} {}: {dtype}{dims}", declared.name.shown())
}

/// What is known of an expression's dtype.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Term {
    /// It is this one.
    Known(DType),
    /// It is that of an array which says none.
    Array(usize),
    /// It is made of literals, which take what stands beside them.
    Weak,
    /// Nothing: what is wrong with the expression is said later.
    Unknown,
}

/// An array that says no dtype. Those that have the same are a tree: one is the root of the others.
#[derive(Debug)]
struct Array {
    parent: Option<usize>,
    /// Of a root: the dtype of all, and the place it comes from.
    known: Option<Evidence>,
    declared: Declared,
    kind: &'static str,
}

/// A dtype that follows from an expression.
#[derive(Clone, Copy, Debug)]
struct Evidence {
    dtype: DType,
    place: Span,
}

#[derive(Default)]
struct Inference {
    /// In the order of their declarations.
    arrays: Vec<Array>,
    /// How many of them were declared before the statement at hand.
    seen: usize,
    names: FxHashMap<String, Term>,
    unnamed: FxHashMap<String, Term>,
}

impl Inference {
    /// Lists an array that says no dtype.
    fn declare(&mut self, statement: &Statement) {
        if let StatementKind::Input(declared) | StatementKind::State(declared) = &statement.kind
            && declared.dtype.is_none()
        {
            self.arrays.push(Array {
                parent: None,
                known: None,
                declared: declared.clone(),
                kind: keyword(&statement.kind),
            });
        }
    }

    fn statement(&mut self, statement: &Statement) -> Result<(), Diagnostic> {
        match &statement.kind {
            StatementKind::Size(_) | StatementKind::Static(_) | StatementKind::Dim(_) => {}
            StatementKind::Input(declared)
            | StatementKind::State(declared)
            | StatementKind::Const(declared, _) => {
                let term = match declared.dtype {
                    Some(dtype) => Term::Known(dtype),
                    None => {
                        self.seen += 1;
                        Term::Array(self.seen - 1)
                    }
                };
                self.define(&declared.name, term);
            }
            StatementKind::Define { name, value, .. } => {
                let term = self.whole_value(value)?;
                self.define(name, term);
            }
            StatementKind::Update { state, value } => {
                let (old, new) = (self.named(state), self.value(value)?);
                self.same((old, state.span), (new, value.span))?;
            }
            StatementKind::Output(outputs) => {
                for (name, value) in outputs {
                    if let Some(value) = value {
                        let term = self.whole_value(value)?;
                        if !self.names.contains_key(&name.text) {
                            self.define(name, term);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn define(&mut self, name: &Name, term: Term) {
        let names = if name.sigil {
            &mut self.unnamed
        } else {
            &mut self.names
        };
        names.insert(name.text.clone(), term);
    }

    /// A name as a value: what is no array is a dimension, a size or a static.
    fn named(&self, name: &Name) -> Term {
        let names = if name.sigil {
            &self.unnamed
        } else {
            &self.names
        };
        let other = Term::Known(DType::I64);
        names.get(&name.text).copied().unwrap_or(other)
    }

    /// A value that stands beside nothing, so that literals are what they are by themselves.
    fn whole_value(&mut self, expr: &Expr) -> Result<Term, Diagnostic> {
        let kind = weak_kind(expr);
        let term = self.value(expr)?;
        Ok(match (term, kind) {
            (Term::Weak, Some(kind)) => Term::Known(default_dtype(kind)),
            (term, _) => term,
        })
    }

    fn value(&mut self, expr: &Expr) -> Result<Term, Diagnostic> {
        match &expr.kind {
            ExprKind::Literal(literal) => Ok(literal_term(literal)),
            ExprKind::Name(name) => Ok(self.named(name)),
            ExprKind::Unary(_, operand) => self.value(operand),
            ExprKind::Binary(binary, left, right) => self.map(binary.op(), &[left, right]),
            ExprKind::Call(call) => self.call(call),
            ExprKind::Index(index) => self.indexed(index),
        }
    }

    /// An op of the table.
    fn map(&mut self, op: Op, operands: &[&Expr]) -> Result<Term, Diagnostic> {
        let mut operands = operands;
        if op == Op::Select
            && let [condition, values @ ..] = operands
        {
            let mask = self.value(condition)?;
            self.all_are(mask, &[condition], DType::Bool)?;
            operands = values;
        }
        let mut term = self.all_same(operands)?;
        if op.info().class == Class::Word {
            term = self.all_are(term, operands, DType::U64)?;
        }
        Ok(match op.info().output {
            Output::Same => term,
            Output::Bool => Term::Known(DType::Bool),
        })
    }

    /// Values that have one dtype.
    fn all_same(&mut self, operands: &[&Expr]) -> Result<Term, Diagnostic> {
        let mut all = (Term::Weak, None);
        for operand in operands {
            let term = self.value(operand)?;
            let before = all.1.unwrap_or(operand.span);
            let joined = self.same((all.0, before), (term, operand.span))?;
            // The place of a dtype that is known is the first operand that has it.
            if all.1.is_none() || all.0 == Term::Weak {
                all.1 = Some(operand.span);
            }
            all.0 = joined;
        }
        Ok(all.0)
    }

    /// Values that have one dtype, which is this one by where they stand.
    fn all_are(
        &mut self,
        term: Term,
        operands: &[&Expr],
        dtype: DType,
    ) -> Result<Term, Diagnostic> {
        match operands {
            [first, .., last] => {
                let place = first.span.to(last.span);
                self.same((term, place), (Term::Known(dtype), place))
            }
            [one] => self.same((term, one.span), (Term::Known(dtype), one.span)),
            [] => Ok(term),
        }
    }

    fn call(&mut self, call: &Call) -> Result<Term, Diagnostic> {
        let name = call.function.text.as_str();
        let operands: Vec<&Expr> = call.arguments.iter().collect();
        let Some(options) = &call.options else {
            if let Ok(dtype) = name.parse::<DType>() {
                return self.apart(&operands, Term::Known(dtype));
            }
            if name == "size" {
                return Ok(Term::Known(DType::I64));
            }
            if let Some(distribution) = Distribution::of_counter(name) {
                let dtype = distribution.dtype(None);
                return self.apart(&operands, Term::Known(dtype));
            }
            return match Op::from_name(name) {
                Some(op) if op.arity() == operands.len() => self.map(op, &operands),
                _ => self.apart(&operands, Term::Unknown),
            };
        };
        let words = || options.items.iter().map(|item| item.name.text.as_str());
        let named = words().find_map(|word| word.parse::<DType>().ok());
        if let Some(op) = ReduceOp::from_name(name).or(scan_op(name)) {
            let term = self.all_same(&operands)?;
            return match op {
                ReduceOp::Any | ReduceOp::All => self.all_are(term, &operands, DType::Bool),
                ReduceOp::Sum | ReduceOp::Prod | ReduceOp::Max | ReduceOp::Min => Ok(term),
            };
        }
        match name {
            // What it reads may be defined further down.
            "previous" => Ok(named.map_or(Term::Unknown, Term::Known)),
            "mean" | "sort" | "topk" | "concat" => self.all_same(&operands),
            "argmax" | "argmin" | "argsort" | "argtopk" => {
                self.apart(&operands, Term::Known(DType::I64))
            }
            "scatter" => match operands.as_slice() {
                [base, index, updates] => {
                    self.value(index)?;
                    self.all_same(&[base, updates])
                }
                _ => self.apart(&operands, Term::Unknown),
            },
            "bitcast" => self.apart(&operands, named.map_or(Term::Unknown, Term::Known)),
            "random" => self.apart(&operands, Term::Known(DType::U64)),
            _ => {
                let distribution = Distribution::of_counter(name);
                let dtype = distribution.map(|distribution| distribution.dtype(named));
                self.apart(&operands, dtype.map_or(Term::Unknown, Term::Known))
            }
        }
    }

    /// Operands that have nothing to do with each other or the result.
    fn apart(&mut self, operands: &[&Expr], result: Term) -> Result<Term, Diagnostic> {
        for operand in operands {
            self.value(operand)?;
        }
        Ok(result)
    }

    /// A view or a gather has the dtype of what it reads.
    fn indexed(&mut self, index: &Index) -> Result<Term, Diagnostic> {
        if let ExprKind::Name(name) = &index.target.kind
            && name.is_word("index")
        {
            let dtype = match index.indices.get(1).map(|item| &item.expr.kind) {
                Some(ExprKind::Name(dtype)) => dtype.text.parse().unwrap_or(DType::I64),
                _ => DType::I64,
            };
            return Ok(Term::Known(dtype));
        }
        let target = self.value(&index.target)?;
        for item in &index.indices {
            if self.has_array(&item.expr) {
                self.value(&item.expr)?;
            }
        }
        if let Some((literal, place)) = &index.outside {
            self.same((target, index.target.span), (literal_term(literal), *place))?;
        }
        Ok(target)
    }

    /// Whether an index is made of arrays: it is a value then, and else an expression over indices.
    fn has_array(&self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Literal(_) => false,
            ExprKind::Name(name) => name.sigil || self.names.contains_key(&name.text),
            ExprKind::Unary(_, operand) => self.has_array(operand),
            ExprKind::Binary(_, left, right) => self.has_array(left) || self.has_array(right),
            ExprKind::Call(call) => call.arguments.iter().any(|operand| self.has_array(operand)),
            ExprKind::Index(_) => true,
        }
    }

    /// The array at the root of those that have one dtype.
    fn root(&self, mut array: usize) -> usize {
        while let Some(parent) = self.arrays[array].parent {
            array = parent;
        }
        array
    }

    /// Two expressions have one dtype, which is returned.
    fn same(&mut self, first: (Term, Span), second: (Term, Span)) -> Result<Term, Diagnostic> {
        match (first.0, second.0) {
            (Term::Weak | Term::Unknown, term) | (term, Term::Weak | Term::Unknown) => Ok(term),
            (Term::Known(dtype), Term::Known(_)) => Ok(Term::Known(dtype)),
            (Term::Array(array), Term::Known(dtype)) => {
                let place = second.1;
                self.learn(array, Evidence { dtype, place })
            }
            (Term::Known(dtype), Term::Array(array)) => {
                let place = first.1;
                self.learn(array, Evidence { dtype, place })
            }
            (Term::Array(one), Term::Array(other)) => {
                let place = second.1;
                let (first, second) = (self.root(one), self.root(other));
                if first == second {
                    return Ok(Term::Array(first));
                }
                let known = (self.arrays[first].known, self.arrays[second].known);
                if let (Some(one), Some(other)) = known
                    && one.dtype != other.dtype
                {
                    return Err(self.tied(place, (first, one), (second, other)));
                }
                self.arrays[second].parent = Some(first);
                self.arrays[first].known = known.0.or(known.1);
                Ok(Term::Array(first))
            }
        }
    }

    /// The error for two arrays that have one dtype at a place, and differ.
    fn tied(&self, place: Span, one: (usize, Evidence), other: (usize, Evidence)) -> Diagnostic {
        let name = |array: usize| self.arrays[array].declared.name.shown();
        let message = format!(
            "`{}` and `{}` have one dtype here, and would have to be {} and {}",
            name(one.0),
            name(other.0),
            one.1.dtype,
            other.1.dtype
        );
        Diagnostic::new(place, message)
            .label(one.1.place, format!("{}, by this", one.1.dtype))
            .label(other.1.place, format!("{}, by this", other.1.dtype))
    }

    fn learn(&mut self, array: usize, evidence: Evidence) -> Result<Term, Diagnostic> {
        let root = self.root(array);
        let Array { known, .. } = &mut self.arrays[root];
        let first = *known.get_or_insert(evidence);
        if first.dtype == evidence.dtype {
            return Ok(Term::Array(root));
        }
        let Array { declared, kind, .. } = &self.arrays[array];
        let (one, other) = (first.dtype, evidence.dtype);
        let name = declared.name.shown();
        Err(Diagnostic::new(
            evidence.place,
            format!("{kind} `{name}` would have to be {one} and {other}"),
        )
        .note(format!("{other}, by this"))
        .label(first.place, format!("{one}, by this"))
        .help(format!(
            "say its dtype, `{}`, and cast where another is needed",
            said(kind, declared, one)
        )))
    }
}

fn literal_term(literal: &Literal) -> Term {
    match (literal.dtype, literal.kind) {
        (Some(dtype), _) => Term::Known(dtype),
        (None, LiteralKind::Bool) => Term::Known(DType::Bool),
        (None, LiteralKind::Int | LiteralKind::Float) => Term::Weak,
    }
}
