//! The canonical text of a graph.
//!
//! One node a line, in the graph's order, every operand by its name; nodes without a name are `%` and
//! their index. Sizes and dimensions come first, in the order of their symbols, every dimension with
//! its solved size. Reading it back gives the same graph, numbering and all.

use super::ast::Binary;
use super::parser::RESERVED;
use crate::ir::{DimId, Graph, Node, NodeId, NodeOp, SymbolInfo, View};
use loopwright_ops::{DType, Op, Scalar};
use loopwright_symbolic::{Cmp, Expr, ExprKind, Symbol};
use loopwright_text::{Source, Token, lex};
use std::fmt::{self, Write as _};

/// The canonical text of a graph.
pub fn print(graph: &Graph) -> String {
    let mut out = String::from("loopwright program 1\n");
    let printer = Printer { graph };
    // Writing to a string cannot fail.
    let _ = printer.program(&mut out);
    out
}

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&print(self))
    }
}

/// How tightly an integer expression binds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Comparison,
    Sum,
    Product,
    Atom,
}

struct Printer<'a> {
    graph: &'a Graph,
}

impl Printer<'_> {
    fn program(&self, out: &mut String) -> fmt::Result {
        if !self.graph.symbols().is_empty() {
            out.push('\n');
        }
        for info in self.graph.symbols() {
            match info {
                SymbolInfo::Size { name, default } => {
                    write!(out, "size {}", name_text(name))?;
                    if let Some(default) = default {
                        write!(out, " = {default}")?;
                    }
                }
                SymbolInfo::Index(dim) => {
                    write!(out, "dim {} = ", self.dim(*dim))?;
                    self.expr(out, &self.graph.dim(*dim).size, Level::Comparison)?;
                }
            }
            out.push('\n');
        }
        out.push('\n');
        for id in self.graph.node_ids() {
            self.node(out, id)?;
            out.push('\n');
        }
        out.push('\n');
        for output in self.graph.outputs() {
            let node = self.graph.node(output.node);
            write!(out, "output {}", name_text(&output.name))?;
            if node.name.is_empty() || node.name != output.name {
                write!(out, " = {}", self.name(output.node))?;
            }
            out.push('\n');
        }
        for update in self.graph.updates() {
            let (state, value) = (self.name(update.state), self.name(update.value));
            writeln!(out, "update {state} = {value}")?;
        }
        Ok(())
    }

    fn name(&self, node: NodeId) -> String {
        let name = &self.graph.node(node).name;
        if name.is_empty() {
            format!("%{}", node.0)
        } else {
            name_text(name)
        }
    }

    fn dim(&self, dim: DimId) -> String {
        name_text(&self.graph.dim(dim).name)
    }

    fn dims(&self, dims: &[DimId]) -> String {
        let names: Vec<String> = dims.iter().map(|dim| self.dim(*dim)).collect();
        names.join(", ")
    }

    /// `name: dtype[dims]`
    fn declared(&self, out: &mut String, id: NodeId) -> fmt::Result {
        let node = self.graph.node(id);
        write!(out, "{}: {}", self.name(id), node.dtype)?;
        if !node.dims.is_empty() {
            write!(out, "[{}]", self.dims(&node.dims))?;
        }
        Ok(())
    }

    fn node(&self, out: &mut String, id: NodeId) -> fmt::Result {
        let node = self.graph.node(id);
        match &node.op {
            NodeOp::Input => {
                out.push_str("input ");
                return self.declared(out, id);
            }
            NodeOp::State => {
                out.push_str("state ");
                return self.declared(out, id);
            }
            NodeOp::Constant(values) => {
                out.push_str("const ");
                self.declared(out, id)?;
                out.push_str(" = ");
                return self.constant(out, node, values);
            }
            _ => {}
        }
        out.push_str(&self.name(id));
        if let NodeOp::View(_) = node.op {
            write!(out, "[{}]", self.dims(&node.dims))?;
        }
        out.push_str(" = ");
        self.operation(out, node)
    }

    fn constant(&self, out: &mut String, node: &Node, values: &[Scalar]) -> fmt::Result {
        let shape: Vec<usize> = node
            .dims
            .iter()
            .map(|dim| self.graph.dim(*dim).size.as_const().unwrap_or(0) as usize)
            .collect();
        match (shape.as_slice(), values) {
            ([], [value]) => write!(out, "{value}"),
            _ => nested(out, &shape, values),
        }
    }

    fn operation(&self, out: &mut String, node: &Node) -> fmt::Result {
        let operands: Vec<String> = node.inputs.iter().map(|input| self.name(*input)).collect();
        let all = operands.join(", ");
        match &node.op {
            NodeOp::Input | NodeOp::State | NodeOp::Constant(_) => Ok(()),
            NodeOp::Index(dim) if node.dtype == DType::I64 => {
                write!(out, "index[{}]", self.dim(*dim))
            }
            NodeOp::Index(dim) => write!(out, "index[{}, {}]", self.dim(*dim), node.dtype),
            NodeOp::Size(size) => {
                out.push_str("size(");
                self.expr(out, size, Level::Comparison)?;
                out.push(')');
                Ok(())
            }
            NodeOp::Map(op) => {
                let infix = Binary::ALL.into_iter().find(|binary| binary.op() == *op);
                match (op, infix, operands.as_slice()) {
                    (_, Some(infix), [left, right]) => {
                        write!(out, "{left} {} {right}", infix.symbol())
                    }
                    (Op::Neg, _, [operand]) => write!(out, "-{operand}"),
                    (Op::Not, _, [operand]) => write!(out, "!{operand}"),
                    _ => write!(out, "{op}({all})"),
                }
            }
            NodeOp::Cast => write!(out, "{}({all})", node.dtype),
            NodeOp::Bitcast => write!(out, "bitcast[{}]({all})", node.dtype),
            NodeOp::Reduce { op, over, acc } => {
                write!(out, "{op}[{}", self.dims(over))?;
                self.accumulator(out, node, *acc)?;
                write!(out, "]({all})")
            }
            NodeOp::ArgReduce { largest, over } => {
                let name = if *largest { "argmax" } else { "argmin" };
                write!(out, "{name}[{}]({all})", self.dim(*over))
            }
            NodeOp::Scan {
                op,
                over,
                acc,
                exclusive,
                reverse,
            } => {
                write!(out, "scan_{op}[{}", self.dim(*over))?;
                out.push_str(if *exclusive { ", exclusive" } else { "" });
                out.push_str(if *reverse { ", reverse" } else { "" });
                self.accumulator(out, node, *acc)?;
                write!(out, "]({all})")
            }
            NodeOp::View(view) => self.view(out, view, &all),
            NodeOp::Gather { axis, outside } => {
                let table = self.graph.node(node.inputs[0]);
                let indices: Vec<String> = table
                    .dims
                    .iter()
                    .map(|dim| {
                        if dim == axis {
                            self.name(node.inputs[1])
                        } else {
                            self.dim(*dim)
                        }
                    })
                    .collect();
                write!(out, "{}[{}]", self.name(node.inputs[0]), indices.join(", "))?;
                if *outside != Scalar::zero(node.dtype) {
                    write!(out, " else {outside}")?;
                }
                Ok(())
            }
            NodeOp::Scatter { axis, combine } => {
                let combine = combine.map_or("set", |op| op.name());
                write!(out, "scatter[{}, {combine}]({all})", self.dim(*axis))
            }
            NodeOp::Sort { over, descending } => {
                let order = if *descending { ", desc" } else { "" };
                write!(out, "sort[{}{order}]({all})", self.dim(*over))
            }
            NodeOp::ArgSort { over, descending } => {
                let order = if *descending { ", desc" } else { "" };
                write!(out, "argsort[{}{order}]({all})", self.dim(*over))
            }
        }
    }

    fn accumulator(&self, out: &mut String, node: &Node, acc: DType) -> fmt::Result {
        if acc == node.dtype.accumulator() {
            return Ok(());
        }
        write!(out, ", acc={acc}")
    }

    fn view(&self, out: &mut String, view: &View, input: &str) -> fmt::Result {
        write!(out, "{input}[")?;
        self.list(out, &view.map)?;
        out.push(']');
        if !view.constraints.is_empty() {
            out.push_str(" if ");
            self.list(out, &view.constraints)?;
        }
        if let Some(outside) = view.outside {
            write!(out, " else {outside}")?;
        }
        Ok(())
    }

    fn list(&self, out: &mut String, exprs: &[Expr]) -> fmt::Result {
        for (at, expr) in exprs.iter().enumerate() {
            out.push_str(if at > 0 { ", " } else { "" });
            self.expr(out, expr, Level::Comparison)?;
        }
        Ok(())
    }

    /// An integer expression, in parentheses unless it binds at least as tightly as `least`.
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
                out.push_str(&self.symbol(*symbol));
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

    fn symbol(&self, symbol: Symbol) -> String {
        name_text(&self.graph.symbol_name(symbol))
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

/// Values in nested lists; an empty outer list stands for all of them.
fn nested(out: &mut String, shape: &[usize], values: &[Scalar]) -> fmt::Result {
    let [size, inner @ ..] = shape else {
        return match values {
            [value] => write!(out, "{value}"),
            _ => Ok(()),
        };
    };
    let stride: usize = inner.iter().product();
    out.push('[');
    for at in 0..*size {
        out.push_str(if at > 0 { ", " } else { "" });
        nested(out, inner, &values[at * stride..(at + 1) * stride])?;
    }
    out.push(']');
    Ok(())
}

/// A name as it can be read back: in quotes if it is no plain name.
fn name_text(name: &str) -> String {
    let tokens = lex(&Source::new("", name)).unwrap_or_default();
    let plain = matches!(
        tokens.as_slice(),
        [(Token::Name(read), _), (Token::NewLine, _), (Token::End, _)] if read == name
    );
    if plain && !RESERVED.contains(&name) {
        return name.to_owned();
    }
    let mut quoted = String::from("\"");
    for c in name.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
