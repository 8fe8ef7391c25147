//! The syntax tree of a program, with the place of everything in it.

use loopwright_ops::{DType, Op};
use loopwright_text::Span;

/// A name as it was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Name {
    /// The name itself; for a sigil name (`%3`) what follows the sigil.
    pub(super) text: String,
    /// Written `%3`: the name of a node that has none.
    pub(super) sigil: bool,
    /// Written in quotes, so that it can be no keyword.
    pub(super) quoted: bool,
    pub(super) span: Span,
}

impl Name {
    /// The name as people read it.
    pub(super) fn shown(&self) -> String {
        if self.sigil {
            format!("%{}", self.text)
        } else {
            self.text.clone()
        }
    }

    /// Whether this is that word, unquoted.
    pub(super) fn is_word(&self, word: &str) -> bool {
        !self.sigil && !self.quoted && self.text == word
    }
}

/// A value written out.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Literal {
    /// Its text, with its sign and without its suffix.
    pub(super) text: String,
    pub(super) kind: LiteralKind,
    /// The dtype its suffix names.
    pub(super) dtype: Option<DType>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LiteralKind {
    Int,
    Float,
    Bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unary {
    Neg,
    Not,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Binary {
    Or,
    Xor,
    And,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Shl,
    Shr,
    Add,
    Sub,
    Mul,
    Div,
    FloorDiv,
    Mod,
    Pow,
}

impl Unary {
    pub(super) fn op(self) -> Op {
        match self {
            Unary::Neg => Op::Neg,
            Unary::Not => Op::Not,
        }
    }
}

impl Binary {
    pub(super) const ALL: [Binary; 18] = [
        Binary::Or,
        Binary::Xor,
        Binary::And,
        Binary::Eq,
        Binary::Ne,
        Binary::Lt,
        Binary::Le,
        Binary::Gt,
        Binary::Ge,
        Binary::Shl,
        Binary::Shr,
        Binary::Add,
        Binary::Sub,
        Binary::Mul,
        Binary::Div,
        Binary::FloorDiv,
        Binary::Mod,
        Binary::Pow,
    ];

    /// The op of the table that it stands for.
    pub(super) fn op(self) -> Op {
        match self {
            Binary::Or => Op::Or,
            Binary::Xor => Op::Xor,
            Binary::And => Op::And,
            Binary::Eq => Op::Eq,
            Binary::Ne => Op::Ne,
            Binary::Lt => Op::Lt,
            Binary::Le => Op::Le,
            Binary::Gt => Op::Gt,
            Binary::Ge => Op::Ge,
            Binary::Shl => Op::Shl,
            Binary::Shr => Op::Shr,
            Binary::Add => Op::Add,
            Binary::Sub => Op::Sub,
            Binary::Mul => Op::Mul,
            Binary::Div => Op::Div,
            Binary::FloorDiv => Op::FloorDiv,
            Binary::Mod => Op::Mod,
            Binary::Pow => Op::Pow,
        }
    }

    pub(super) fn symbol(self) -> &'static str {
        match self {
            Binary::Or => "|",
            Binary::Xor => "^",
            Binary::And => "&",
            Binary::Eq => "==",
            Binary::Ne => "!=",
            Binary::Lt => "<",
            Binary::Le => "<=",
            Binary::Gt => ">",
            Binary::Ge => ">=",
            Binary::Shl => "<<",
            Binary::Shr => ">>",
            Binary::Add => "+",
            Binary::Sub => "-",
            Binary::Mul => "*",
            Binary::Div => "/",
            Binary::FloorDiv => "//",
            Binary::Mod => "%",
            Binary::Pow => "**",
        }
    }
}

/// An expression. What it means depends on where it stands: as a value it makes nodes, as an index
/// or a size it is an integer expression over symbols.
#[derive(Clone, Debug)]
pub(super) struct Expr {
    pub(super) kind: ExprKind,
    pub(super) span: Span,
    /// How deep it nests: what walks it recurses as deep.
    pub(super) depth: usize,
}

#[derive(Clone, Debug)]
pub(super) enum ExprKind {
    Literal(Literal),
    Name(Name),
    Unary(Unary, Box<Expr>),
    Binary(Binary, Box<Expr>, Box<Expr>),
    Call(Box<Call>),
    Index(Box<Index>),
}

/// `f(a, b)` or `f[options](a, b)`.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) function: Name,
    pub(super) options: Option<Options>,
    pub(super) arguments: Vec<Expr>,
}

/// What stands between the brackets of a call: `[k, acc=f64]`, `[k -> j]`, `[z: x, y]`.
#[derive(Clone, Debug)]
pub(super) struct Options {
    pub(super) items: Vec<DimUse>,
    /// What follows `->`.
    pub(super) arrow: Option<DimUse>,
    /// Whether the first item is followed by `:`.
    pub(super) colon: bool,
    pub(super) span: Span,
}

/// A dimension's name, or that of an option, with what is claimed of it: `k`, `k=8`, `acc=f64`.
#[derive(Clone, Debug)]
pub(super) struct DimUse {
    pub(super) name: Name,
    pub(super) value: Option<Expr>,
}

/// `a[i - 1, k] if i < 8 else 0`.
#[derive(Clone, Debug)]
pub(super) struct Index {
    pub(super) target: Expr,
    pub(super) indices: Vec<IndexItem>,
    pub(super) conditions: Vec<Expr>,
    pub(super) outside: Option<(Literal, Span)>,
}

/// An index; a plain dimension may carry its size.
#[derive(Clone, Debug)]
pub(super) struct IndexItem {
    pub(super) expr: Expr,
    pub(super) size: Option<Expr>,
}

/// A line of a program.
#[derive(Clone, Debug)]
pub(super) struct Statement {
    pub(super) kind: StatementKind,
    pub(super) span: Span,
}

#[derive(Clone, Debug)]
pub(super) enum StatementKind {
    /// `size M = 256`
    Size(Vec<DimUse>),
    /// `static batch in 0 .. N // 32 = 3`
    Static(Vec<StaticUse>),
    /// `dim i = M, k`
    Dim(Vec<DimUse>),
    /// `input A: f32[i, k]`
    Input(Declared),
    /// `state w: f32[i]`
    State(Declared),
    /// `const c: f32[t] = [1, 2]`
    Const(Declared, Values),
    /// `x = e`, `x[j, i] = e`
    Define {
        name: Name,
        dims: Option<Vec<DimUse>>,
        value: Expr,
    },
    /// `update w = e`
    Update { state: Name, value: Expr },
    /// `output a, b`, `output a = e`
    Output(Vec<(Name, Option<Expr>)>),
}

/// A static with its range and default: `batch in 0 .. 8 = 3`.
#[derive(Clone, Debug)]
pub(super) struct StaticUse {
    pub(super) name: Name,
    pub(super) lo: Expr,
    pub(super) hi: Expr,
    pub(super) default: Option<Expr>,
}

/// A name with a dtype and dimensions.
#[derive(Clone, Debug)]
pub(super) struct Declared {
    pub(super) name: Name,
    /// `None` for an input or state that takes it from how it is used, until that is inferred.
    pub(super) dtype: Option<DType>,
    pub(super) dims: Vec<DimUse>,
}

impl Declared {
    /// The dtype, once all are inferred.
    pub(super) fn inferred(&self) -> DType {
        match self.dtype {
            Some(dtype) => dtype,
            None => unreachable!("all dtypes are inferred before the graph is made"),
        }
    }
}

/// The values of a constant: one, or nested lists of them.
#[derive(Clone, Debug)]
pub(super) enum Values {
    One(Literal, Span),
    List(Vec<Values>, Span),
}

impl Values {
    pub(super) fn span(&self) -> Span {
        match self {
            Values::One(_, span) | Values::List(_, span) => *span,
        }
    }
}
