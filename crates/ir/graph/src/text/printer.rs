//! The canonical text of a graph.
//!
//! One node a line, in the graph's order, every operand by its name; nodes without a name are `%` and
//! their index. Sizes, statics and dimensions come first, in the order of their symbols, every dimension with
//! its solved size. Reading it back gives the same graph, numbering and all.

use super::ast::Binary;
use super::expr_text::expr_text;
use super::parser::RESERVED;
use crate::ir::{DimId, Graph, Node, NodeId, NodeOp, SymbolInfo, View};
use loopwright_ops::{DType, Op, Scalar};
use loopwright_symbolic::{Expr, Symbol};
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
                SymbolInfo::Static {
                    name,
                    lo,
                    hi,
                    default,
                } => {
                    let (lo, hi) = (self.expr(lo), self.expr(hi));
                    write!(out, "static {} in {lo} .. {hi}", name_text(name))?;
                    if let Some(default) = default {
                        write!(out, " = {default}")?;
                    }
                }
                SymbolInfo::Index(dim) => {
                    write!(out, "dim {} = ", self.dim(*dim))?;
                    out.push_str(&self.expr(&self.graph.dim(*dim).size));
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
        if let NodeOp::View(_) | NodeOp::Previous { .. } = node.op {
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
                write!(out, "size({})", self.expr(size))
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
            NodeOp::Previous { of, over, outside } => write!(
                out,
                "previous[{}, {}]({}, {outside})",
                self.dim(*over),
                node.dtype,
                self.name(*of)
            ),
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
        write!(out, "{input}[{}]", self.exprs(&view.map))?;
        if !view.constraints.is_empty() {
            write!(out, " if {}", self.exprs(&view.constraints))?;
        }
        if let Some(outside) = view.outside {
            write!(out, " else {outside}")?;
        }
        Ok(())
    }

    fn exprs(&self, exprs: &[Expr]) -> String {
        let texts: Vec<String> = exprs.iter().map(|expr| self.expr(expr)).collect();
        texts.join(", ")
    }

    fn expr(&self, expr: &Expr) -> String {
        expr_text(expr, &|symbol| self.symbol(symbol))
    }

    fn symbol(&self, symbol: Symbol) -> String {
        name_text(&self.graph.symbol_name(symbol))
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
