//! From tokens to the syntax tree.

use super::ast::{
    Binary, Call, Declared, DimUse, Expr, ExprKind, Index, IndexItem, Literal, LiteralKind, Name,
    Options, Statement, StatementKind, StaticUse, Unary, Values,
};
use super::suggest;
use loopwright_ops::DType;
use loopwright_text::{Cursor, Diagnostic, Source, Span, Token};

/// How deep an expression may nest, counting every operator: the passes over it recurse as deep.
const MAX_DEPTH: usize = 400;

/// Words that mean something wherever an expression may stand.
pub(super) const RESERVED: [&str; 7] = ["if", "else", "inf", "nan", "true", "false", "index"];

/// Words that start statements. Followed by anything but a name they are names themselves.
const KEYWORDS: [&str; 8] = [
    "size", "static", "dim", "input", "state", "const", "update", "output",
];

/// The statements of a program.
pub(super) fn statements(source: &Source) -> Result<Vec<Statement>, Diagnostic> {
    let mut parser = Parser {
        cursor: Cursor::new(source)?,
    };
    parser.cursor.expect_header("program", 1)?;
    let mut statements = Vec::new();
    loop {
        parser.cursor.skip_lines();
        if parser.cursor.at_end() {
            return Ok(statements);
        }
        statements.push(parser.statement()?);
    }
}

struct Parser {
    cursor: Cursor,
}

impl Parser {
    fn statement(&mut self) -> Result<Statement, Diagnostic> {
        let start = self.cursor.span();
        let kind = match self.keyword() {
            Some("size") => StatementKind::Size(self.dim_uses("a size's name")?),
            Some("static") => StatementKind::Static(self.static_uses()?),
            Some("dim") => StatementKind::Dim(self.dim_uses("a dimension's name")?),
            Some("input") => StatementKind::Input(self.declared("an input's name", false)?),
            Some("state") => StatementKind::State(self.declared("a state's name", false)?),
            Some("const") => {
                let declared = self.declared("a constant's name", true)?;
                self.cursor.expect(Token::Equals)?;
                StatementKind::Const(declared, self.values()?)
            }
            Some("update") => {
                let state = self.name("a state's name")?;
                self.cursor.expect(Token::Equals)?;
                let value = self.expr()?;
                StatementKind::Update { state, value }
            }
            Some("output") => StatementKind::Output(self.outputs()?),
            _ => self.define()?,
        };
        let span = start.to(self.cursor.previous_span());
        self.line_end()?;
        Ok(Statement { kind, span })
    }

    /// Takes a statement's keyword: the word, followed by a name. `size = 3` defines a node `size`.
    fn keyword(&mut self) -> Option<&'static str> {
        let Token::Name(word) = self.cursor.peek() else {
            return None;
        };
        let keyword = KEYWORDS.into_iter().find(|keyword| keyword == word)?;
        let named = matches!(
            self.cursor.peek_at(1),
            Token::Name(_) | Token::Text(_) | Token::Sigil('%', _) | Token::Percent
        );
        if !named {
            return None;
        }
        self.cursor.advance();
        Some(keyword)
    }

    fn line_end(&mut self) -> Result<(), Diagnostic> {
        if let Token::Name(word) = self.cursor.peek()
            && matches!(word.as_str(), "if" | "else")
        {
            return Err(Diagnostic::new(
                self.cursor.span(),
                format!("`{word}` does not follow an index, so it has no effect"),
            )
            .help("`else` says what stands outside an array, directly after its indices: `a[i - 1] else 0`"));
        }
        self.cursor.expect_line_end()
    }

    fn define(&mut self) -> Result<StatementKind, Diagnostic> {
        let starts_name = matches!(
            self.cursor.peek(),
            Token::Name(_) | Token::Text(_) | Token::Sigil('%', _)
        );
        if !starts_name {
            return Err(self.cursor.expected("a statement").help(
                "a line is `NAME = VALUE`, or starts with size, static, dim, input, state, const, update or output",
            ));
        }
        let name = self.name("a name")?;
        let dims = if *self.cursor.peek() == Token::OpenSquare {
            Some(self.dim_list()?)
        } else {
            None
        };
        if *self.cursor.peek() != Token::Equals {
            let error = self.cursor.expected("`=`");
            return Err(match suggest::nearest(&name.text, KEYWORDS) {
                Some(word) if dims.is_none() && !name.sigil => {
                    error.help(format!("did you mean the statement `{word}`?"))
                }
                _ => error,
            });
        }
        self.cursor.expect(Token::Equals)?;
        let value = self.expr()?;
        Ok(StatementKind::Define { name, dims, value })
    }

    fn outputs(&mut self) -> Result<Vec<(Name, Option<Expr>)>, Diagnostic> {
        let mut outputs = Vec::new();
        loop {
            let name = self.name("an output's name")?;
            let value = if self.cursor.take(&Token::Equals) {
                Some(self.expr()?)
            } else {
                None
            };
            outputs.push((name, value));
            if !self.cursor.take(&Token::Comma) {
                return Ok(outputs);
            }
        }
    }

    /// `A: f32[i, k=8]`, or without a dtype, unless it is needed, `A[i, k=8]`
    fn declared(&mut self, what: &str, needs_dtype: bool) -> Result<Declared, Diagnostic> {
        let name = self.name(what)?;
        let left_out = matches!(
            self.cursor.peek(),
            Token::OpenSquare | Token::NewLine | Token::End | Token::Semicolon
        );
        let dtype = if left_out && !needs_dtype {
            None
        } else {
            self.cursor
                .expect(Token::Colon)
                .map_err(|error| error.help(format!("write `{}: f32[i, j]`", name.shown())))?;
            let (dtype, span) = self.cursor.expect_name("a dtype")?;
            Some(parse_dtype(&dtype, span)?)
        };
        let dims = if *self.cursor.peek() == Token::OpenSquare {
            self.dim_list()?
        } else {
            Vec::new()
        };
        Ok(Declared { name, dtype, dims })
    }

    /// `[i, k=8]`
    fn dim_list(&mut self) -> Result<Vec<DimUse>, Diagnostic> {
        self.cursor.expect(Token::OpenSquare)?;
        let mut dims = Vec::new();
        while *self.cursor.peek() != Token::CloseSquare {
            dims.push(self.dim_use("a dimension's name")?);
            if !self.cursor.take(&Token::Comma) {
                break;
            }
        }
        self.cursor.expect(Token::CloseSquare)?;
        Ok(dims)
    }

    /// `M = 256, N`
    fn dim_uses(&mut self, what: &str) -> Result<Vec<DimUse>, Diagnostic> {
        let mut uses = vec![self.dim_use(what)?];
        while self.cursor.take(&Token::Comma) {
            uses.push(self.dim_use(what)?);
        }
        Ok(uses)
    }

    fn dim_use(&mut self, what: &str) -> Result<DimUse, Diagnostic> {
        let name = self.name(what)?;
        let value = if self.cursor.take(&Token::Equals) {
            Some(self.expr()?)
        } else {
            None
        };
        Ok(DimUse { name, value })
    }

    /// `batch in 0 .. N // 32 = 3, shift in -1 .. 2`
    fn static_uses(&mut self) -> Result<Vec<StaticUse>, Diagnostic> {
        let mut uses = Vec::new();
        loop {
            let name = self.name("a static's name")?;
            let usage = format!(
                "say its range, the end not included: `static {} in 0 .. 8`",
                name.shown()
            );
            let with_usage = |error: Diagnostic| error.help(usage.clone());
            self.cursor.expect_word("in").map_err(with_usage)?;
            let lo = self.expr()?;
            self.cursor.expect(Token::DotDot).map_err(with_usage)?;
            let hi = self.expr()?;
            let default = if self.cursor.take(&Token::Equals) {
                Some(self.expr()?)
            } else {
                None
            };
            uses.push(StaticUse {
                name,
                lo,
                hi,
                default,
            });
            if !self.cursor.take(&Token::Comma) {
                return Ok(uses);
            }
        }
    }

    fn values(&mut self) -> Result<Values, Diagnostic> {
        let start = self.cursor.span();
        if !self.cursor.take(&Token::OpenSquare) {
            let (literal, span) = self.signed_literal("a value")?;
            return Ok(Values::One(literal, span));
        }
        self.cursor.enter()?;
        let mut list = Vec::new();
        while *self.cursor.peek() != Token::CloseSquare {
            list.push(self.values()?);
            if !self.cursor.take(&Token::Comma) {
                break;
            }
        }
        let end = self.cursor.expect(Token::CloseSquare)?;
        self.cursor.leave();
        Ok(Values::List(list, start.to(end)))
    }

    /// A plain, quoted or sigil name.
    fn name(&mut self, what: &str) -> Result<Name, Diagnostic> {
        let start = self.cursor.span();
        let token = self.cursor.peek().clone();
        // After a word, `%3` is read as a remainder by the lexer; here only a name can stand.
        let (text, sigil, quoted) = match (token, self.cursor.peek_at(1)) {
            (Token::Name(text), _) => (text, false, false),
            (Token::Text(text), _) => (text, false, true),
            (Token::Sigil('%', text), _) => (text, true, false),
            (Token::Percent, Token::Number(text) | Token::Name(text)) => {
                let text = text.clone();
                self.cursor.advance();
                (text, true, false)
            }
            _ => return Err(self.cursor.expected(what)),
        };
        let (_, end) = self.cursor.advance();
        Ok(Name {
            text,
            sigil,
            quoted,
            span: start.to(end),
        })
    }

    fn expr(&mut self) -> Result<Expr, Diagnostic> {
        self.binary(0)
    }

    /// Operators of at least this level; all of a level group to the left.
    fn binary(&mut self, least: u8) -> Result<Expr, Diagnostic> {
        self.cursor.enter()?;
        let mut left = self.unary()?;
        let mut compared = false;
        while let Some((operator, level)) = operator(self.cursor.peek())
            && level >= least
        {
            let (_, span) = self.cursor.advance();
            let right = self.binary(level + 1)?;
            if level == COMPARISON && compared {
                return Err(Diagnostic::new(span, "comparisons cannot be chained")
                    .help("join two of them with `&`: `a < b & b < c`"));
            }
            compared = level == COMPARISON;
            left = self.join(operator, left, right)?;
        }
        self.cursor.leave();
        Ok(left)
    }

    fn join(&self, operator: Binary, left: Expr, right: Expr) -> Result<Expr, Diagnostic> {
        let span = left.span.to(right.span);
        let depth = left.depth.max(right.depth);
        let kind = ExprKind::Binary(operator, Box::new(left), Box::new(right));
        self.node(kind, span, depth)
    }

    /// An expression over parts of that depth.
    fn node(&self, kind: ExprKind, span: Span, depth: usize) -> Result<Expr, Diagnostic> {
        let depth = depth + 1;
        if depth > MAX_DEPTH {
            return Err(Diagnostic::new(
                span,
                format!("this expression nests more than {MAX_DEPTH} operators deep"),
            )
            .help("give a part of it a name of its own"));
        }
        Ok(Expr { kind, span, depth })
    }

    fn unary(&mut self) -> Result<Expr, Diagnostic> {
        let start = self.cursor.span();
        let operator = match self.cursor.peek() {
            Token::Minus => Unary::Neg,
            Token::Bang => Unary::Not,
            _ => return self.power(),
        };
        self.cursor.advance();
        self.cursor.enter()?;
        let operand = self.unary()?;
        self.cursor.leave();
        let span = start.to(operand.span);
        // A sign belongs to the number, so that the smallest integer and -0.0 can be written.
        if operator == Unary::Neg
            && let ExprKind::Literal(literal) = &operand.kind
            && literal.kind != LiteralKind::Bool
        {
            let literal = negated(literal.clone());
            return self.node(ExprKind::Literal(literal), span, 0);
        }
        let depth = operand.depth;
        self.node(ExprKind::Unary(operator, Box::new(operand)), span, depth)
    }

    /// `**` groups to the right and binds tighter than a sign on its left.
    fn power(&mut self) -> Result<Expr, Diagnostic> {
        let base = self.postfix()?;
        if !self.cursor.take(&Token::StarStar) {
            return Ok(base);
        }
        self.cursor.enter()?;
        let exponent = self.unary()?;
        self.cursor.leave();
        self.join(Binary::Pow, base, exponent)
    }

    fn postfix(&mut self) -> Result<Expr, Diagnostic> {
        let mut expr = self.primary()?;
        while *self.cursor.peek() == Token::OpenSquare {
            expr = self.index(expr)?;
        }
        Ok(expr)
    }

    fn index(&mut self, target: Expr) -> Result<Expr, Diagnostic> {
        let start = target.span;
        let mut depth = target.depth;
        self.cursor.expect(Token::OpenSquare)?;
        let mut indices = Vec::new();
        while *self.cursor.peek() != Token::CloseSquare {
            let expr = self.expr()?;
            depth = depth.max(expr.depth);
            let size = if self.cursor.take(&Token::Equals) {
                let size = self.expr()?;
                depth = depth.max(size.depth);
                Some(size)
            } else {
                None
            };
            indices.push(IndexItem { expr, size });
            if !self.cursor.take(&Token::Comma) {
                break;
            }
        }
        self.cursor.expect(Token::CloseSquare)?;
        let mut conditions = Vec::new();
        if self.cursor.take_word("if") {
            loop {
                let condition = self.expr()?;
                depth = depth.max(condition.depth);
                conditions.push(condition);
                if !self.cursor.take(&Token::Comma) {
                    break;
                }
            }
            if !matches!(self.cursor.peek(), Token::Name(word) if word == "else") {
                return Err(self.cursor.expected("`else`").help(
                    "say what stands where the condition does not hold: `a[i] if i < 8 else 0`",
                ));
            }
        }
        let outside = if self.cursor.take_word("else") {
            Some(self.signed_literal("the value that stands outside")?)
        } else {
            None
        };
        let span = start.to(self.cursor.previous_span());
        let kind = ExprKind::Index(Box::new(Index {
            target,
            indices,
            conditions,
            outside,
        }));
        self.node(kind, span, depth)
    }

    fn primary(&mut self) -> Result<Expr, Diagnostic> {
        let start = self.cursor.span();
        if let Some((literal, span)) = self.literal()? {
            return self.node(ExprKind::Literal(literal), span, 0);
        }
        match self.cursor.peek() {
            Token::Open => {
                self.cursor.advance();
                let mut inner = self.expr()?;
                let end = self.cursor.expect(Token::Close)?;
                inner.span = start.to(end);
                Ok(inner)
            }
            Token::Name(word) if matches!(word.as_str(), "if" | "else") => {
                Err(self.cursor.expected("a value"))
            }
            Token::Name(_) | Token::Text(_) | Token::Sigil('%', _) => {
                let name = self.name("a value")?;
                if !name.sigil && !name.quoted && self.at_call() {
                    return self.call(name);
                }
                self.node(ExprKind::Name(name), start, 0)
            }
            _ => Err(self.cursor.expected("a value")),
        }
    }

    /// Whether `(..)` or `[..](..)` comes next.
    fn at_call(&self) -> bool {
        if *self.cursor.peek() == Token::Open {
            return true;
        }
        if *self.cursor.peek() != Token::OpenSquare {
            return false;
        }
        let (mut depth, mut ahead) = (0usize, 0);
        loop {
            match self.cursor.peek_at(ahead) {
                Token::OpenSquare | Token::Open => depth += 1,
                Token::CloseSquare | Token::Close => {
                    depth -= 1;
                    if depth == 0 {
                        return *self.cursor.peek_at(ahead + 1) == Token::Open;
                    }
                }
                Token::End => return false,
                _ => {}
            }
            ahead += 1;
        }
    }

    fn call(&mut self, function: Name) -> Result<Expr, Diagnostic> {
        let start = function.span;
        let mut depth = 0;
        let options = if *self.cursor.peek() == Token::OpenSquare {
            let options = self.options()?;
            let uses = options.items.iter().chain(&options.arrow);
            let values = uses.filter_map(|item| item.value.as_ref());
            depth = values.map(|value| value.depth).max().unwrap_or(0);
            Some(options)
        } else {
            None
        };
        self.cursor.expect(Token::Open)?;
        let mut arguments = Vec::new();
        while *self.cursor.peek() != Token::Close {
            let argument = self.expr()?;
            depth = depth.max(argument.depth);
            arguments.push(argument);
            if !self.cursor.take(&Token::Comma) {
                break;
            }
        }
        let end = self.cursor.expect(Token::Close)?;
        let call = Call {
            function,
            options,
            arguments,
        };
        self.node(ExprKind::Call(Box::new(call)), start.to(end), depth)
    }

    fn options(&mut self) -> Result<Options, Diagnostic> {
        let start = self.cursor.expect(Token::OpenSquare)?;
        let (mut items, mut arrow, mut colon) = (Vec::new(), None, false);
        while *self.cursor.peek() != Token::CloseSquare {
            items.push(self.dim_use("a dimension's name or an option")?);
            if items.len() == 1 && self.cursor.take(&Token::Colon) {
                colon = true;
                continue;
            }
            if self.cursor.take(&Token::Arrow) {
                arrow = Some(self.dim_use("a dimension's name")?);
                break;
            }
            if !self.cursor.take(&Token::Comma) {
                break;
            }
        }
        let end = self.cursor.expect(Token::CloseSquare)?;
        Ok(Options {
            items,
            arrow,
            colon,
            span: start.to(end),
        })
    }

    /// A literal with any number of signs.
    fn signed_literal(&mut self, what: &str) -> Result<(Literal, Span), Diagnostic> {
        let start = self.cursor.span();
        let negative = self.cursor.take(&Token::Minus);
        match self.literal()? {
            Some((literal, _)) if negative && literal.kind == LiteralKind::Bool => {
                Err(Diagnostic::new(start, "a boolean has no sign"))
            }
            Some((literal, span)) => {
                let literal = if negative { negated(literal) } else { literal };
                Ok((literal, start.to(span)))
            }
            None => Err(self
                .cursor
                .expected(what)
                .help("write a number, `inf`, `nan`, `true` or `false`")),
        }
    }

    /// A number, `inf`, `nan`, `true` or `false`, if one comes next.
    fn literal(&mut self) -> Result<Option<(Literal, Span)>, Diagnostic> {
        let span = self.cursor.span();
        let literal = match self.cursor.peek() {
            Token::Number(text) => number(text, span)?,
            Token::Name(word) => {
                let kind = match word.as_str() {
                    "inf" | "nan" => LiteralKind::Float,
                    "true" | "false" => LiteralKind::Bool,
                    _ => return Ok(None),
                };
                Literal {
                    text: word.clone(),
                    kind,
                    dtype: None,
                }
            }
            _ => return Ok(None),
        };
        self.cursor.advance();
        // `nan:0x7fc00001`, a NaN with these bits.
        if literal.text == "nan"
            && *self.cursor.peek() == Token::Colon
            && let Token::Number(bits) = self.cursor.peek_at(1)
        {
            let literal = Literal {
                text: format!("nan:{bits}"),
                ..literal
            };
            self.cursor.advance();
            let (_, end) = self.cursor.advance();
            return Ok(Some((literal, span.to(end))));
        }
        Ok(Some((literal, span)))
    }
}

/// The level of comparisons.
const COMPARISON: u8 = 3;

/// The operator a token stands for, and how tightly it binds.
fn operator(token: &Token) -> Option<(Binary, u8)> {
    Some(match token {
        Token::Pipe => (Binary::Or, 0),
        Token::Caret => (Binary::Xor, 1),
        Token::Ampersand => (Binary::And, 2),
        Token::EqualEqual => (Binary::Eq, COMPARISON),
        Token::NotEqual => (Binary::Ne, COMPARISON),
        Token::Less => (Binary::Lt, COMPARISON),
        Token::LessEqual => (Binary::Le, COMPARISON),
        Token::Greater => (Binary::Gt, COMPARISON),
        Token::GreaterEqual => (Binary::Ge, COMPARISON),
        Token::ShiftLeft => (Binary::Shl, 4),
        Token::ShiftRight => (Binary::Shr, 4),
        Token::Plus => (Binary::Add, 5),
        Token::Minus => (Binary::Sub, 5),
        Token::Star => (Binary::Mul, 6),
        Token::Slash => (Binary::Div, 6),
        Token::SlashSlash => (Binary::FloorDiv, 6),
        Token::Percent => (Binary::Mod, 6),
        _ => return None,
    })
}

/// The number of the other sign.
fn negated(mut literal: Literal) -> Literal {
    literal.text = match literal.text.strip_prefix('-') {
        Some(positive) => positive.to_owned(),
        None => format!("-{}", literal.text),
    };
    literal
}

/// A number's parts: digits and suffix.
fn number(text: &str, span: Span) -> Result<Literal, Diagnostic> {
    if let Some(digits) = text.strip_prefix("0x") {
        let value = u64::from_str_radix(digits, 16).map_err(|_| {
            Diagnostic::new(span, format!("`{text}` is not a number that fits 64 bits"))
        })?;
        return Ok(Literal {
            text: value.to_string(),
            kind: LiteralKind::Int,
            dtype: None,
        });
    }
    // The longest dtype name that ends it: `1bf16` is a bf16, not a `1b` of f16.
    let suffixes = DType::ALL
        .into_iter()
        .filter(|dtype| text.ends_with(dtype.name()));
    let dtype = suffixes.max_by_key(|dtype| dtype.name().len());
    let digits = match dtype {
        Some(dtype) => &text[..text.len() - dtype.name().len()],
        None => text,
    };
    let digits = digits.replace('_', "");
    let whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !whole && digits.parse::<f64>().is_err() {
        return Err(
            Diagnostic::new(span, format!("`{text}` is not a number")).help(
                "a suffix is a dtype's name, for example `1.5f16` or `3u8`; names start with a letter",
            ),
        );
    }
    Ok(Literal {
        text: digits,
        kind: if whole {
            LiteralKind::Int
        } else {
            LiteralKind::Float
        },
        dtype,
    })
}

/// A dtype's name, or the error that suggests one.
pub(super) fn parse_dtype(name: &str, span: Span) -> Result<DType, Diagnostic> {
    name.parse().map_err(|error: loopwright_ops::UnknownDType| {
        let error = Diagnostic::new(span, error.to_string());
        match suggest::nearest(name, DType::ALL.iter().map(|dtype| dtype.name())) {
            Some(near) => error.help(format!("did you mean `{near}`?")),
            None => error,
        }
    })
}
