//! From text to modules.

mod inst;
mod stmt;

use super::labels::{element_type, name_of_label};
use crate::ir::{
    Access, Function, FunctionId, FunctionKind, Module, Space, StructId, StructType, TileRole,
    TileType, Type, Value,
};
use crate::valid::{ValidationError, validate};
use loopwright_arena::TiVec;
use loopwright_ops::DType;
use loopwright_text::{Cursor, Diagnostic, Source, Span, Token};
use rustc_hash::FxHashMap;

/// Reads a module and checks it; see [the text form](super).
///
/// Errors point at the place they are about, those of the validator at the statement.
pub fn parse(source: &Source) -> Result<Module, Diagnostic> {
    let (module, places) = parse_unvalidated(source)?;
    match validate(&module) {
        Ok(()) => Ok(module),
        Err(error) => Err(places.diagnostic(&error)),
    }
}

/// Reads a module whose names resolve but which may be invalid otherwise, and where its parts
/// stand in the source.
pub fn parse_unvalidated(source: &Source) -> Result<(Module, Places), Diagnostic> {
    let mut parser = Parser {
        cursor: Cursor::new(source)?,
        module: Module::default(),
        structs: FxHashMap::default(),
        functions: FxHashMap::default(),
        angles: 0,
        closers: 0,
        places: Places::default(),
    };
    parser.cursor.expect_header("kernel", 1)?;
    parser.declare()?;
    parser.items()?;
    Ok((parser.module, parser.places))
}

/// Where the parts of a module stand in the source it was read from.
#[derive(Clone, Debug, Default)]
pub struct Places {
    structs: TiVec<StructId, Span>,
    functions: TiVec<FunctionId, FunctionPlaces>,
}

#[derive(Clone, Debug, Default)]
struct FunctionPlaces {
    name: Span,
    /// The first lines of the statements, from top to bottom.
    statements: Vec<Span>,
}

impl Places {
    /// A validator's error at the place it is about.
    pub fn diagnostic(&self, error: &ValidationError) -> Diagnostic {
        let at = error.place();
        let span = match (at.declared_struct, at.function) {
            (Some(id), _) => self.structs.get(id).copied(),
            (None, Some(id)) => self.functions.get(id).map(|function| {
                at.statement
                    .and_then(|index| function.statements.get(index as usize).copied())
                    .unwrap_or(function.name)
            }),
            (None, None) => None,
        };
        Diagnostic::new(span.unwrap_or_default(), error.fault().to_string())
    }
}

struct Parser {
    cursor: Cursor,
    module: Module,
    /// All structs and functions of the file, known before their bodies are read so that they can
    /// be used above their definitions.
    structs: FxHashMap<String, StructId>,
    functions: FxHashMap<String, FunctionId>,
    /// How many `<` are open.
    angles: u32,
    /// How many `>` of a `>>` token are still to be taken.
    closers: u32,
    places: Places,
}

/// What is known while a function is read.
struct Scope {
    function: Function,
    /// The visible values by label, and where they are defined.
    labels: FxHashMap<String, (Value, Span)>,
    /// The labels defined in each open block.
    open: Vec<Vec<String>>,
    /// Labels that were visible once, for a better message.
    gone: FxHashMap<String, Span>,
}

impl Parser {
    /// Collects the names that the file declares at its top level.
    fn declare(&mut self) -> Result<(), Diagnostic> {
        let mut scan = self.cursor.clone();
        let mut depth = 0usize;
        while !scan.at_end() {
            let (token, _) = scan.advance();
            match token {
                Token::OpenBrace => depth += 1,
                Token::CloseBrace => depth = depth.saturating_sub(1),
                Token::Name(word) if depth == 0 && word == "struct" => {
                    let span = scan.span();
                    let name = match scan.peek() {
                        Token::Name(name) | Token::Text(name) => name.clone(),
                        _ => continue,
                    };
                    let id = StructId::from(self.structs.len());
                    if self.structs.insert(name.clone(), id).is_some() {
                        return Err(Diagnostic::new(
                            span,
                            format!("the struct `{name}` is declared twice"),
                        ));
                    }
                }
                Token::Name(word) if depth == 0 && (word == "kernel" || word == "fn") => {
                    if scan.take_word("group") {
                        while !matches!(scan.peek(), Token::Close | Token::End | Token::NewLine) {
                            scan.advance();
                        }
                        scan.take(&Token::Close);
                    }
                    let span = scan.span();
                    let name = match (scan.peek(), scan.peek_at(1)) {
                        (Token::Sigil('@', name), _) | (Token::At, Token::Text(name)) => {
                            name.clone()
                        }
                        _ => continue,
                    };
                    let id = FunctionId::from(self.functions.len());
                    if self.functions.insert(name.clone(), id).is_some() {
                        return Err(Diagnostic::new(
                            span,
                            format!("the function `@{name}` is defined twice"),
                        ));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn items(&mut self) -> Result<(), Diagnostic> {
        loop {
            self.cursor.skip_lines();
            if self.cursor.at_end() {
                return Ok(());
            }
            if self.cursor.take_word("struct") {
                self.struct_item()?;
            } else if self.cursor.take_word("kernel") {
                let group = self.group()?;
                self.function(FunctionKind::Kernel { group })?;
            } else if self.cursor.take_word("device") {
                self.cursor.expect_word("fn")?;
                self.function(FunctionKind::Device)?;
            } else {
                return Err(self.cursor.expected("`struct`, `kernel` or `device fn`"));
            }
            self.cursor.expect_line_end()?;
        }
    }

    fn struct_item(&mut self) -> Result<(), Diagnostic> {
        let (name, span) = self.name("the struct's name")?;
        self.places.structs.push(span);
        self.cursor.expect(Token::OpenBrace)?;
        let mut fields: Vec<(String, Type)> = Vec::new();
        self.cursor.skip_lines();
        while !self.cursor.take(&Token::CloseBrace) {
            let (field, _) = self.name("a field's name or `}`")?;
            self.cursor.expect(Token::Colon)?;
            let ty = self.ty()?;
            fields.push((field, ty));
            self.cursor.skip_lines();
            if !self.cursor.take(&Token::Comma) {
                self.cursor.expect(Token::CloseBrace)?;
                break;
            }
            self.cursor.skip_lines();
        }
        self.module.structs.push(StructType { name, fields });
        Ok(())
    }

    /// `group(x, y, z)`, if it is there.
    fn group(&mut self) -> Result<Option<[u32; 3]>, Diagnostic> {
        if !self.cursor.take_word("group") {
            return Ok(None);
        }
        self.cursor.expect(Token::Open)?;
        let mut sizes = [0; 3];
        for (axis, size) in sizes.iter_mut().enumerate() {
            if axis > 0 {
                self.cursor.expect(Token::Comma)?;
            }
            *size = self.number("the group's size")?;
        }
        self.cursor.expect(Token::Close)?;
        Ok(Some(sizes))
    }

    fn function(&mut self, kind: FunctionKind) -> Result<(), Diagnostic> {
        let (name, span) = self.function_name()?;
        self.places.functions.push(FunctionPlaces {
            name: span,
            statements: Vec::new(),
        });
        let mut scope = Scope {
            function: Function::new(name, kind),
            labels: FxHashMap::default(),
            open: vec![Vec::new()],
            gone: FxHashMap::default(),
        };
        self.cursor.expect(Token::Open)?;
        while !self.cursor.take(&Token::Close) {
            self.param(&mut scope)?;
            if !self.cursor.take(&Token::Comma) {
                self.cursor.expect(Token::Close)?;
                break;
            }
        }
        if self.cursor.take(&Token::Arrow) {
            scope.function.result = Some(self.ty()?);
        }
        scope.function.body = self.block(&mut scope)?;
        self.module.functions.push(scope.function);
        Ok(())
    }

    fn param(&mut self, scope: &mut Scope) -> Result<(), Diagnostic> {
        let (label, span) = self.label()?;
        self.cursor.expect(Token::Colon)?;
        let access = match self.cursor.peek() {
            Token::Name(word) => Access::from_keyword(word),
            _ => None,
        };
        if access.is_some() {
            self.cursor.advance();
        }
        let noalias = self.cursor.take_word("noalias");
        let ty = self.ty()?;
        let access = match (access, &ty) {
            (Some(access), _) => access,
            (None, Type::Pointer(..)) => Access::ReadWrite,
            (None, _) => Access::Read,
        };
        scope.visible(&label, span)?;
        let value = scope
            .function
            .param(ty, name_of_label(&label), access, noalias);
        scope.show(label, value, span);
        Ok(())
    }

    // Names.

    /// A name, bare or in quotes.
    fn name(&mut self, what: &str) -> Result<(String, Span), Diagnostic> {
        match self.cursor.peek() {
            Token::Text(name) => {
                let name = name.clone();
                let (_, span) = self.cursor.advance();
                Ok((name, span))
            }
            _ => self.cursor.expect_name(what),
        }
    }

    /// `@name` or `@"name"`.
    fn function_name(&mut self) -> Result<(String, Span), Diagnostic> {
        let start = self.cursor.span();
        if self.cursor.take(&Token::At) {
            if let Token::Text(name) = self.cursor.peek() {
                let name = name.clone();
                let (_, span) = self.cursor.advance();
                return Ok((name, start.to(span)));
            }
            return Err(self.cursor.expected("the function's name"));
        }
        self.cursor.expect_sigil('@', "a function's name")
    }

    /// `%label` or `%"label"`, without the `%`. After a word the lexer takes the `%` for an
    /// operator, so that the label may come as two tokens.
    fn label(&mut self) -> Result<(String, Span), Diagnostic> {
        let start = self.cursor.span();
        let label = match (self.cursor.peek(), self.cursor.peek_at(1)) {
            (Token::Sigil('%', label), _) => label.clone(),
            (Token::Percent, Token::Name(label) | Token::Number(label) | Token::Text(label)) => {
                let label = label.clone();
                self.cursor.advance();
                if self.cursor.span().start != start.end {
                    return Err(Diagnostic::new(
                        start,
                        "expected a value (`%name`), found `%` on its own",
                    ));
                }
                label
            }
            _ => return Err(self.cursor.expected("a value (`%name`)")),
        };
        let (_, end) = self.cursor.advance();
        Ok((label, start.to(end)))
    }

    /// A value that is visible here.
    fn value(&mut self, scope: &Scope) -> Result<Value, Diagnostic> {
        let (label, span) = self.label()?;
        match scope.labels.get(&label) {
            Some((value, _)) => Ok(*value),
            None => {
                let error = Diagnostic::new(span, format!("no value `%{label}` is visible here"));
                Err(match scope.gone.get(&label) {
                    Some(defined) => error.label(
                        *defined,
                        "defined here, visible only to the end of its block",
                    ),
                    None => error.help("values are defined above their uses"),
                })
            }
        }
    }

    /// An integer of a narrow type.
    fn number<N: TryFrom<i64>>(&mut self, what: &str) -> Result<N, Diagnostic> {
        let (number, span) = self.cursor.expect_integer(what)?;
        N::try_from(number)
            .map_err(|_| Diagnostic::new(span, format!("{what} is out of range: `{number}`")))
    }

    /// One of an enum's words.
    fn keyword<T>(
        &mut self,
        from: fn(&str) -> Option<T>,
        what: &str,
        choice: &str,
    ) -> Result<T, Diagnostic> {
        if let Token::Name(word) = self.cursor.peek()
            && let Some(found) = from(word)
        {
            self.cursor.advance();
            return Ok(found);
        }
        Err(self.cursor.expected(&format!("{what} ({choice})")))
    }

    // Types.

    fn ty(&mut self) -> Result<Type, Diagnostic> {
        self.cursor.enter()?;
        let span = self.cursor.span();
        let quoted = matches!(self.cursor.peek(), Token::Text(_));
        let (name, _) = self.name("a type")?;
        let ty =
            match name.as_str() {
                "ptr" if !quoted => {
                    self.open_angle()?;
                    let space = self.keyword(Space::from_keyword, "a space", Space::KEYWORDS)?;
                    self.cursor.expect(Token::Comma)?;
                    let pointee = self.ty()?;
                    self.close_angle()?;
                    pointee.pointer(space)
                }
                "array" if !quoted => {
                    self.open_angle()?;
                    let element = self.ty()?;
                    if self.closers > 0 {
                        return Err(Diagnostic::new(
                            self.cursor.previous_span(),
                            "expected `>`, found `>>`",
                        ));
                    }
                    self.cursor.expect(Token::Comma)?;
                    let count = self.unsigned("the array's size")?;
                    self.close_angle()?;
                    Type::Array(Box::new(element), count)
                }
                "tile" if !quoted => self.tile()?,
                _ => match (element_type(&name), self.structs.get(&name)) {
                    (Some((dtype, lanes)), _) if !quoted => Type::of(dtype, lanes),
                    (_, Some(id)) => Type::Struct(*id),
                    _ => {
                        return Err(Diagnostic::new(span, format!("`{name}` is not a type")).help(
                        "a type is a dtype (`f32`), a vector (`f32x4`), `ptr<space, type>`, \
                         `array<type, count>`, `tile<role, dtype, rows, columns>` or a struct",
                    ));
                    }
                },
            };
        self.cursor.leave();
        Ok(ty)
    }

    fn tile(&mut self) -> Result<Type, Diagnostic> {
        self.open_angle()?;
        let role = self.keyword(TileRole::from_keyword, "a role", TileRole::KEYWORDS)?;
        self.cursor.expect(Token::Comma)?;
        let (name, span) = self.cursor.expect_name("a dtype")?;
        let dtype: DType = name
            .parse()
            .map_err(|error| Diagnostic::new(span, format!("{error}")))?;
        self.cursor.expect(Token::Comma)?;
        let rows = self.number("the tile's rows")?;
        self.cursor.expect(Token::Comma)?;
        let cols = self.number("the tile's columns")?;
        self.close_angle()?;
        Ok(Type::Tile(TileType {
            dtype,
            rows,
            cols,
            role,
        }))
    }

    fn open_angle(&mut self) -> Result<(), Diagnostic> {
        self.angles += 1;
        self.cursor.expect(Token::Less).map(|_| ())
    }

    /// A `>`; the lexer gives two that stand side by side as one token.
    fn close_angle(&mut self) -> Result<(), Diagnostic> {
        if self.closers > 0 {
            self.closers -= 1;
            return Ok(());
        }
        if self.angles > 1 && self.cursor.take(&Token::ShiftRight) {
            self.angles -= 2;
            self.closers += 1;
            return Ok(());
        }
        self.angles = self.angles.saturating_sub(1);
        self.cursor.expect(Token::Greater).map(|_| ())
    }

    /// An integer up to 2^64 - 1.
    fn unsigned(&mut self, what: &str) -> Result<u64, Diagnostic> {
        if let Token::Number(digits) = self.cursor.peek()
            && let Ok(number) = digits.parse()
        {
            self.cursor.advance();
            return Ok(number);
        }
        self.number(what)
    }
}

impl Scope {
    /// Refuses a label that is visible already.
    fn visible(&self, label: &str, span: Span) -> Result<(), Diagnostic> {
        match self.labels.get(label) {
            None => Ok(()),
            Some((_, defined)) => Err(Diagnostic::new(
                span,
                format!("the value `%{label}` is defined twice"),
            )
            .label(*defined, "first defined here")
            .help("give one of them another name; `%name'2` is a second value of the same name")),
        }
    }

    fn show(&mut self, label: String, value: Value, span: Span) {
        if let Some(block) = self.open.last_mut() {
            block.push(label.clone());
        }
        self.labels.insert(label, (value, span));
    }

    fn open_block(&mut self) {
        self.open.push(Vec::new());
    }

    fn close_block(&mut self) {
        for label in self.open.pop().unwrap_or_default() {
            if let Some((_, span)) = self.labels.remove(&label) {
                self.gone.insert(label, span);
            }
        }
    }
}
