//! Calls: reductions, scans, sorting, casts, and every op of the table by its name.

use super::ast::{Call, DimUse, Expr, ExprKind, LiteralKind, Options};
use super::lower::Lowering;
use super::parser::parse_dtype;
use super::random::Distribution;
use super::suggest;
use super::value::{Lowered, weak_kind};
use crate::ir::{DimId, NodeId, View};
use loopwright_ops::{DType, Op, OpError, ReduceOp, Scalar};
use loopwright_symbolic::Expr as Symbolic;
use loopwright_text::{Diagnostic, Span};

/// Functions that take brackets, beside the reductions and `scan_` of each.
const FUNCTIONS: [&str; 15] = [
    "mean", "argmax", "argmin", "cumsum", "sort", "argsort", "topk", "argtopk", "scatter",
    "bitcast", "random", "uniform", "normal", "concat", "previous",
];

/// Functions without brackets, beside the ops and the casts.
const PLAIN_FUNCTIONS: [&str; 2] = ["size", "random_bits"];

impl Lowering {
    pub(super) fn call(
        &mut self,
        call: &Call,
        expected: Option<DType>,
        span: Span,
    ) -> Result<Lowered, Diagnostic> {
        let name = call.function.text.as_str();
        match &call.options {
            None => self.plain_call(call, expected, span),
            Some(options) => {
                let node = if let Some(op) = ReduceOp::from_name(name) {
                    self.reduce(op, call, options, span)?
                } else if let Some(op) = scan_op(name) {
                    self.scan(op, call, options, span)?
                } else {
                    match name {
                        "mean" => self.mean(call, options, span)?,
                        "argmax" | "argmin" => self.arg_reduce(call, options, span)?,
                        "sort" | "argsort" => self.sort(call, options, span)?,
                        "topk" | "argtopk" => self.top(call, options, span)?,
                        "scatter" => self.scatter(call, options, span)?,
                        "bitcast" => self.bitcast(call, options, span)?,
                        "random" => self.random(Distribution::Bits, call, Some(options), span)?,
                        "uniform" => {
                            self.random(Distribution::Uniform, call, Some(options), span)?
                        }
                        "normal" => self.random(Distribution::Normal, call, Some(options), span)?,
                        "concat" => self.concat(call, options, span)?,
                        "previous" => {
                            let message = "`previous` has to be told all its dimensions";
                            let help =
                                "give it a line of its own: `p[t, j] = previous[t, f32](h, 0)`";
                            return Err(Diagnostic::new(span, message).help(help));
                        }
                        _ => return Err(self.unknown_function(call, true)),
                    }
                };
                Ok(Lowered::fresh(node))
            }
        }
    }

    /// `f(a, b)`: a cast, a size, or an op of the table.
    fn plain_call(
        &mut self,
        call: &Call,
        expected: Option<DType>,
        span: Span,
    ) -> Result<Lowered, Diagnostic> {
        let name = call.function.text.as_str();
        if let Ok(dtype) = name.parse::<DType>() {
            let [operand] = arguments(call, span)?;
            return self.cast(operand, dtype, span);
        }
        if name == "size" {
            let [operand] = arguments(call, span)?;
            let size = self.size_expr(operand)?;
            self.builder.at(span);
            let node = self.builder.size_value(size);
            return self.at(span, node).map(Lowered::fresh);
        }
        if let Some(distribution) = Distribution::of_counter(name) {
            return self
                .random(distribution, call, None, span)
                .map(Lowered::fresh);
        }
        let Some(op) = Op::from_name(name) else {
            return Err(self.unknown_function(call, false));
        };
        if call.arguments.len() != op.arity() {
            let error = OpError::Arity {
                op,
                expected: op.arity(),
                got: call.arguments.len(),
            };
            let error = Diagnostic::new(span, error.to_string());
            return Err(match ReduceOp::from_name(name) {
                Some(_) => error.help(format!("to reduce, name the dimensions: `{name}[k](x)`")),
                None => error,
            });
        }
        let operands: Vec<&Expr> = call.arguments.iter().collect();
        self.balanced_map(op, &operands, expected, span)
    }

    fn cast(&mut self, operand: &Expr, dtype: DType, span: Span) -> Result<Lowered, Diagnostic> {
        // A literal is read as the dtype at once where it can be, so that it is rounded once.
        let direct = match weak_kind(operand) {
            Some(LiteralKind::Float) => dtype.is_float(),
            Some(LiteralKind::Int) => dtype != DType::Bool,
            Some(LiteralKind::Bool) | None => false,
        };
        if direct {
            return self.value(operand, Some(dtype));
        }
        let node = self.value(operand, None)?.node;
        self.builder.at(span);
        Ok(Lowered::fresh(self.builder.cast(node, dtype)))
    }

    fn unknown_function(&self, call: &Call, bracketed: bool) -> Diagnostic {
        let name = call.function.text.as_str();
        let place = call.function.span;
        let reduces = ReduceOp::from_name(name).is_some()
            || scan_op(name).is_some()
            || FUNCTIONS.contains(&name);
        if reduces && !bracketed {
            return Diagnostic::new(place, format!("`{name}` needs to be told its dimensions"))
                .help(format!("name them in brackets: `{name}[k](x)`"));
        }
        let plain = Op::from_name(name).is_some()
            || name.parse::<DType>().is_ok()
            || PLAIN_FUNCTIONS.contains(&name);
        if plain && bracketed {
            return Diagnostic::new(place, format!("`{name}` takes no dimensions"))
                .help(format!("write `{name}(x)`"));
        }
        let scans: Vec<String> = ReduceOp::ALL
            .iter()
            .map(|op| format!("scan_{op}"))
            .collect();
        let candidates = Op::ALL
            .iter()
            .map(|op| op.name())
            .chain(ReduceOp::ALL.iter().map(|op| op.name()))
            .chain(FUNCTIONS)
            .chain(PLAIN_FUNCTIONS)
            .chain(DType::ALL.iter().map(|dtype| dtype.name()))
            .chain(scans.iter().map(String::as_str));
        let error = Diagnostic::new(place, format!("unknown op `{name}`"));
        match suggest::nearest(name, candidates) {
            Some(near) => error.help(format!("did you mean `{near}`?")),
            None => error.help("every op of the table can be called by its name: `exp(x)`, `max(a, b)`, `select(c, a, b)`"),
        }
    }

    fn operand(&mut self, call: &Call, span: Span) -> Result<NodeId, Diagnostic> {
        let [operand] = arguments(call, span)?;
        Ok(self.value(operand, None)?.node)
    }

    /// `[i, k, acc=f64]`: known dimensions, and the accumulator.
    fn reduced(&mut self, options: &Options) -> Result<(Vec<DimId>, Option<DType>), Diagnostic> {
        refuse_separators(options)?;
        let (mut dims, mut acc) = (Vec::new(), None);
        for item in &options.items {
            match acc_option(item)? {
                Some(dtype) => acc = Some(dtype),
                None => dims.push(self.dim(item, false)?),
            }
        }
        Ok((dims, acc))
    }

    fn reduce(
        &mut self,
        op: ReduceOp,
        call: &Call,
        options: &Options,
        span: Span,
    ) -> Result<NodeId, Diagnostic> {
        let operand = self.operand(call, span)?;
        let (dims, acc) = self.reduced(options)?;
        self.builder.at(span);
        let node = self.builder.reduce(op, operand, &dims, acc);
        self.at(span, node)
    }

    fn mean(&mut self, call: &Call, options: &Options, span: Span) -> Result<NodeId, Diagnostic> {
        let operand = self.operand(call, span)?;
        let dtype = self.builder.node(operand).dtype;
        if !dtype.is_float() {
            return Err(
                Diagnostic::new(span, format!("`mean` needs a float dtype, not {dtype}"))
                    .help("cast the operand: `mean[k](f32(x))`"),
            );
        }
        let (dims, acc) = self.reduced(options)?;
        self.builder.at(span);
        let sum = self.builder.reduce(ReduceOp::Sum, operand, &dims, acc);
        let sum = self.at(span, sum)?;
        let mut count = Symbolic::constant(1);
        for dim in &dims {
            count = self.symbolic_at(span, count.mul(&self.builder.size_of(*dim)))?;
        }
        let count = self.builder.size_value(count);
        let count = self.at(span, count)?;
        let count = self.builder.cast(count, dtype);
        Ok(self.map(Op::Div, &[sum, count], span, &[])?.node)
    }

    fn arg_reduce(
        &mut self,
        call: &Call,
        options: &Options,
        span: Span,
    ) -> Result<NodeId, Diagnostic> {
        let operand = self.operand(call, span)?;
        let (dim, []) = self.one_dim(call, options, [])?;
        self.builder.at(span);
        let largest = call.function.text == "argmax";
        let node = self.builder.arg_reduce(largest, operand, dim);
        self.at(span, node)
    }

    fn scan(
        &mut self,
        op: ReduceOp,
        call: &Call,
        options: &Options,
        span: Span,
    ) -> Result<NodeId, Diagnostic> {
        let operand = self.operand(call, span)?;
        let mut plain = options.clone();
        let mut acc = None;
        for item in &options.items {
            if let Some(dtype) = acc_option(item)? {
                acc = Some(dtype);
            }
        }
        plain.items.retain(|item| !is_acc(item));
        let (dim, [exclusive, reverse]) = self.one_dim(call, &plain, ["exclusive", "reverse"])?;
        self.builder.at(span);
        let node = self.builder.scan(op, operand, dim, acc, exclusive, reverse);
        self.at(span, node)
    }

    fn sort(&mut self, call: &Call, options: &Options, span: Span) -> Result<NodeId, Diagnostic> {
        let operand = self.operand(call, span)?;
        let (dim, [descending]) = self.one_dim(call, options, ["desc"])?;
        self.builder.at(span);
        let node = if call.function.text == "sort" {
            self.builder.sort(operand, dim, descending)
        } else {
            self.builder.arg_sort(operand, dim, descending)
        };
        self.at(span, node)
    }

    /// `topk[k -> j](x)`: the first `size(j)` in descending order.
    fn top(&mut self, call: &Call, options: &Options, span: Span) -> Result<NodeId, Diagnostic> {
        let name = &call.function.text;
        let operand = self.operand(call, span)?;
        let (from, to) = match (options.items.as_slice(), &options.arrow) {
            ([from], Some(to)) if !options.colon => (from, to),
            _ => {
                return Err(Diagnostic::new(
                    options.span,
                    format!("`{name}` takes a dimension and the one that replaces it"),
                )
                .help(format!("write `{name}[k -> j=5](x)`")));
            }
        };
        let from = self.dim(from, false)?;
        let to = self.dim(to, true)?;
        self.builder.at(span);
        let sorted = if name == "topk" {
            self.builder.sort(operand, from, true)
        } else {
            self.builder.arg_sort(operand, from, true)
        };
        let sorted = self.at(span, sorted)?;
        let from_index = Symbolic::symbol(self.builder.index_symbol(to));
        self.replace_dim(sorted, from, to, from_index, None, span)
    }

    /// The view of a node in which a dimension is replaced by another.
    fn replace_dim(
        &mut self,
        node: NodeId,
        from: DimId,
        to: DimId,
        index: Symbolic,
        outside: Option<Scalar>,
        span: Span,
    ) -> Result<NodeId, Diagnostic> {
        let own = self.builder.node(node).dims.clone();
        let dims: Vec<DimId> = own
            .iter()
            .map(|dim| if *dim == from { to } else { *dim })
            .collect();
        let map = own
            .iter()
            .map(|dim| {
                if *dim == from {
                    index.clone()
                } else {
                    Symbolic::symbol(self.builder.index_symbol(*dim))
                }
            })
            .collect();
        let view = View {
            map,
            constraints: Vec::new(),
            outside,
        };
        self.builder.at(span);
        let node = self.builder.view(node, &dims, view);
        self.at(span, node)
    }

    fn scatter(
        &mut self,
        call: &Call,
        options: &Options,
        span: Span,
    ) -> Result<NodeId, Diagnostic> {
        let usage = "write `scatter[b, sum](base, index, updates)`; the ways to combine are set, sum, prod, max, min, any, all";
        let [base, index, updates] = arguments(call, span)?;
        let (axis, combine) = match options.items.as_slice() {
            [axis, combine] if options.arrow.is_none() && !options.colon => (axis, combine),
            _ => {
                return Err(Diagnostic::new(
                    options.span,
                    "`scatter` takes a dimension and how to combine",
                )
                .help(usage));
            }
        };
        let combine = match (
            combine.name.text.as_str(),
            ReduceOp::from_name(&combine.name.text),
        ) {
            ("set", _) => None,
            (_, Some(op)) => Some(op),
            (name, None) => {
                return Err(Diagnostic::new(
                    combine.name.span,
                    format!("`{name}` is no way to combine"),
                )
                .help(usage));
            }
        };
        let index = self.value(index, None)?.node;
        let nodes = self.balanced(&[base, updates], None)?;
        let axis = self.dim(axis, false)?;
        self.builder.at(span);
        let node = self
            .builder
            .scatter(nodes[0], index, nodes[1], axis, combine);
        self.at(span, node)
    }

    fn bitcast(
        &mut self,
        call: &Call,
        options: &Options,
        span: Span,
    ) -> Result<NodeId, Diagnostic> {
        let operand = self.operand(call, span)?;
        let dtype = match options.items.as_slice() {
            [item] if item.value.is_none() && options.arrow.is_none() && !options.colon => {
                parse_dtype(&item.name.text, item.name.span)?
            }
            _ => {
                return Err(Diagnostic::new(options.span, "`bitcast` takes one dtype")
                    .help("write `bitcast[u32](x)`"));
            }
        };
        self.builder.at(span);
        let node = self.builder.bitcast(operand, dtype);
        self.at(span, node)
    }

    /// `concat[z: x, y](a, b)`: along `z`, first `a` along its `x`, then `b` along its `y`.
    fn concat(&mut self, call: &Call, options: &Options, span: Span) -> Result<NodeId, Diagnostic> {
        let count = call.arguments.len();
        let (to, along) = match options.items.as_slice() {
            [to, along @ ..]
                if options.colon
                    && options.arrow.is_none()
                    && count > 0
                    && (along.len() == count || along.len() == 1) =>
            {
                (to, along)
            }
            _ => {
                return Err(Diagnostic::new(
                    options.span,
                    "`concat` takes the new dimension and the one of each operand it runs along",
                )
                .help("write `concat[z: x, y](a, b)`"));
            }
        };
        let operands: Vec<&Expr> = call.arguments.iter().collect();
        let nodes = self.balanced(&operands, None)?;
        let to_dim = self.dim(to, true)?;
        let to_index = Symbolic::symbol(self.builder.index_symbol(to_dim));
        let mut offset = Symbolic::constant(0);
        let mut parts = Vec::new();
        for (at, node) in nodes.iter().enumerate() {
            let item = along.get(at).unwrap_or(&along[0]);
            let dim = self.dim(item, false)?;
            if !self.builder.node(*node).dims.contains(&dim) {
                let dims = self.builder.dim_list(&self.builder.node(*node).dims);
                return Err(Diagnostic::new(
                    operands[at].span,
                    format!(
                        "this operand of `concat` has no dimension `{}`; its dimensions are [{dims}]",
                        item.name.text
                    ),
                ));
            }
            let index = self.symbolic_at(span, to_index.sub(&offset))?;
            let zero = Scalar::zero(self.builder.node(*node).dtype);
            let part = self.replace_dim(*node, dim, to_dim, index, Some(zero), span)?;
            offset = self.symbolic_at(span, offset.add(&self.builder.size_of(dim)))?;
            parts.push((part, offset.clone()));
        }
        self.builder.at(to.name.span);
        self.builder
            .set_size(to_dim, offset, "the operands of `concat`");
        self.builder.at(span);
        let order = self.builder.node(parts[0].0).dims.clone();
        let Some((mut result, _)) = parts.pop() else {
            unreachable!("`concat` has at least one operand")
        };
        for (part, end) in parts.into_iter().rev() {
            let index = self.builder.index(to_dim, DType::I64);
            let index = self.at(span, index)?;
            let end = self.builder.size_value(end);
            let end = self.at(span, end)?;
            let before = self.map(Op::Lt, &[index, end], span, &[])?.node;
            result = self
                .map(Op::Select, &[before, part, result], span, &[])?
                .node;
        }
        // The last operand may bring dimensions that the others lack; they follow the first one's.
        let mut dims = order;
        for dim in self.builder.node(result).dims.clone() {
            if !dims.contains(&dim) {
                dims.push(dim);
            }
        }
        if self.builder.node(result).dims != dims {
            let layout = self.builder.layout(result, &dims);
            result = self.at(span, layout)?;
        }
        Ok(result)
    }

    /// One dimension, then any of these words.
    fn one_dim<const N: usize>(
        &mut self,
        call: &Call,
        options: &Options,
        words: [&str; N],
    ) -> Result<(DimId, [bool; N]), Diagnostic> {
        refuse_separators(options)?;
        let name = &call.function.text;
        let [dim, rest @ ..] = options.items.as_slice() else {
            return Err(Diagnostic::new(
                options.span,
                format!("`{name}` takes one dimension"),
            ));
        };
        let mut given = [false; N];
        for item in rest {
            let Some(at) = words.iter().position(|word| item.name.is_word(word)) else {
                let error = Diagnostic::new(
                    item.name.span,
                    format!("`{}` is no option of `{name}`", item.name.shown()),
                );
                return Err(if N == 0 {
                    error.help(format!("`{name}` takes one dimension and no options"))
                } else {
                    error.help(format!(
                        "`{name}` takes one dimension, then any of: {}",
                        words.join(", ")
                    ))
                });
            };
            given[at] = true;
        }
        Ok((self.dim(dim, false)?, given))
    }
}

/// The reduction of `scan_sum`, or of `cumsum`, its other name.
pub(super) fn scan_op(name: &str) -> Option<ReduceOp> {
    match name {
        "cumsum" => Some(ReduceOp::Sum),
        _ => ReduceOp::from_name(name.strip_prefix("scan_")?),
    }
}

fn is_acc(item: &DimUse) -> bool {
    item.name.is_word("acc") && item.value.is_some()
}

/// The dtype of `acc=f64`.
fn acc_option(item: &DimUse) -> Result<Option<DType>, Diagnostic> {
    match &item.value {
        Some(value) if is_acc(item) => match &value.kind {
            ExprKind::Name(name) if !name.sigil => parse_dtype(&name.text, name.span).map(Some),
            _ => Err(Diagnostic::new(value.span, "expected a dtype").help("write `acc=f64`")),
        },
        _ => Ok(None),
    }
}

pub(super) fn refuse_separators(options: &Options) -> Result<(), Diagnostic> {
    if options.colon || options.arrow.is_some() {
        return Err(Diagnostic::new(
            options.span,
            "expected dimensions and options, separated by `,`",
        ));
    }
    Ok(())
}

/// The arguments of a call that takes so many.
pub(super) fn arguments<const N: usize>(call: &Call, span: Span) -> Result<&[Expr; N], Diagnostic> {
    call.arguments.as_slice().try_into().map_err(|_| {
        Diagnostic::new(
            span,
            format!(
                "`{}` takes {N} operand{}, not {}",
                call.function.text,
                if N == 1 { "" } else { "s" },
                call.arguments.len()
            ),
        )
    })
}
