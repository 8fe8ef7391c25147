//! Blocks and statements.

use super::{Parser, Scope};
use crate::ir::{Block, FunctionId, LoopKind, Stmt, Value};
use crate::text::labels::name_of_label;
use loopwright_text::{Diagnostic, Span, Token};

/// What starts a statement, for messages.
const STATEMENTS: &str = "a statement (`%name: type = ...`, `store`, `call`, `for`, `while`, `if`, \
     `break`, `continue`, `return`, `barrier`, `async_copy`, `async_wait`, `tile_store`) or `}`";

impl Parser {
    /// A block with a scope of its own.
    pub(super) fn block(&mut self, scope: &mut Scope) -> Result<Block, Diagnostic> {
        scope.open_block();
        let block = self.statements(scope)?;
        scope.close_block();
        Ok(block)
    }

    /// A block that defines into the scope that is open.
    fn statements(&mut self, scope: &mut Scope) -> Result<Block, Diagnostic> {
        self.cursor.enter()?;
        self.cursor.expect(Token::OpenBrace)?;
        let mut block = Block::new();
        loop {
            self.cursor.skip_lines();
            if self.cursor.take(&Token::CloseBrace) {
                break;
            }
            let slot = self.mark();
            let stmt = self.statement(scope, slot)?;
            block.push(stmt);
            if !matches!(self.cursor.peek(), Token::CloseBrace) {
                self.cursor.expect_line_end()?;
            }
        }
        self.cursor.leave();
        Ok(block)
    }

    /// Notes where a statement starts.
    fn mark(&mut self) -> usize {
        let span = self.cursor.span();
        let Some(places) = self.places.functions.last_mut() else {
            return 0;
        };
        places.statements.push(span);
        places.statements.len() - 1
    }

    /// Notes that the statement's line goes up to here.
    fn mark_end(&mut self, slot: usize) {
        let end = self.cursor.previous_span();
        if let Some(span) = self.place(slot) {
            *span = span.to(end);
        }
    }

    fn place(&mut self, slot: usize) -> Option<&mut Span> {
        self.places.functions.last_mut()?.statements.get_mut(slot)
    }

    fn statement(&mut self, scope: &mut Scope, slot: usize) -> Result<Stmt, Diagnostic> {
        let word = match self.cursor.peek() {
            Token::Name(word) => word.clone(),
            Token::Sigil('%', _) | Token::Percent => {
                let stmt = self.definition(scope)?;
                self.mark_end(slot);
                return Ok(stmt);
            }
            _ => return Err(self.cursor.expected(STATEMENTS)),
        };
        let start = self.cursor.span();
        self.cursor.advance();
        let stmt = match word.as_str() {
            "for" => return self.for_loop(scope, slot),
            "while" => return self.while_loop(scope, slot),
            "if" => return self.branch(scope, slot),
            "store" => {
                let (ptr, index) = self.element(scope)?;
                let value = self.next_value(scope)?;
                Stmt::Store { ptr, index, value }
            }
            "call" => {
                let (function, arguments) = self.call(scope)?;
                Stmt::Call(function, arguments)
            }
            "break" => Stmt::Break,
            "continue" => Stmt::Continue,
            "return" => {
                let bare = matches!(
                    self.cursor.peek(),
                    Token::NewLine | Token::Semicolon | Token::CloseBrace | Token::End
                );
                Stmt::Return(if bare { None } else { Some(self.value(scope)?) })
            }
            "barrier" => Stmt::Barrier {
                local: self.cursor.take_word("local"),
                global: self.cursor.take_word("global"),
            },
            "async_copy" => {
                let dst = self.element(scope)?;
                self.cursor.expect(Token::Comma)?;
                let src = self.element(scope)?;
                let count = self.next_value(scope)?;
                Stmt::AsyncCopy { dst, src, count }
            }
            "async_wait" => Stmt::AsyncWait {
                pending: self.number("how many copies may be pending")?,
            },
            "tile_store" => {
                let (ptr, index) = self.element(scope)?;
                self.cursor.expect_word("stride")?;
                let stride = self.value(scope)?;
                let tile = self.next_value(scope)?;
                Stmt::TileStore {
                    tile,
                    ptr,
                    index,
                    stride,
                }
            }
            _ => {
                return Err(Diagnostic::new(
                    start,
                    format!("expected {STATEMENTS}, found `{word}`"),
                ));
            }
        };
        self.mark_end(slot);
        Ok(stmt)
    }

    /// `%v: TYPE = INSTRUCTION`. The value is visible only after it.
    fn definition(&mut self, scope: &mut Scope) -> Result<Stmt, Diagnostic> {
        let (label, span) = self.label()?;
        self.cursor.expect(Token::Colon)?;
        let ty = self.ty()?;
        self.cursor.expect(Token::Equals)?;
        let inst = self.inst(scope, &ty)?;
        scope.visible(&label, span)?;
        let value = scope.function.value(ty, name_of_label(&label));
        scope.show(label, value, span);
        Ok(Stmt::Let(value, inst))
    }

    fn for_loop(&mut self, scope: &mut Scope, slot: usize) -> Result<Stmt, Diagnostic> {
        let (label, span) = self.label()?;
        self.cursor.expect(Token::Colon)?;
        let ty = self.ty()?;
        self.cursor.expect(Token::Equals)?;
        let start = self.value(scope)?;
        self.cursor.expect(Token::DotDot)?;
        let end = self.value(scope)?;
        self.cursor.expect_word("step")?;
        let step = self.value(scope)?;
        let kind = self.keyword(
            LoopKind::from_keyword,
            "the loop's kind",
            LoopKind::KEYWORDS,
        )?;
        self.mark_end(slot);
        scope.visible(&label, span)?;
        scope.open_block();
        let var = scope.function.value(ty, name_of_label(&label));
        scope.show(label, var, span);
        let body = self.statements(scope)?;
        scope.close_block();
        Ok(Stmt::For {
            var,
            start,
            end,
            step,
            kind,
            body,
        })
    }

    fn while_loop(&mut self, scope: &mut Scope, slot: usize) -> Result<Stmt, Diagnostic> {
        scope.open_block();
        let head = self.statements(scope)?;
        let span = self.cursor.expect_word("cond")?;
        let cond = self.value(scope)?;
        // What can be wrong with the statement itself is its condition, far below the `while`.
        if let Some(place) = self.place(slot) {
            *place = span;
        }
        self.mark_end(slot);
        let body = self.block(scope)?;
        scope.close_block();
        Ok(Stmt::While { head, cond, body })
    }

    fn branch(&mut self, scope: &mut Scope, slot: usize) -> Result<Stmt, Diagnostic> {
        let cond = self.value(scope)?;
        self.mark_end(slot);
        let then = self.block(scope)?;
        let otherwise = if self.cursor.take_word("else") {
            self.block(scope)?
        } else {
            Block::new()
        };
        Ok(Stmt::If {
            cond,
            then,
            otherwise,
        })
    }

    /// `, %v`.
    pub(super) fn next_value(&mut self, scope: &Scope) -> Result<Value, Diagnostic> {
        self.cursor.expect(Token::Comma)?;
        self.value(scope)
    }

    /// `%p[%i]`.
    pub(super) fn element(&mut self, scope: &Scope) -> Result<(Value, Value), Diagnostic> {
        let ptr = self.value(scope)?;
        self.cursor.expect(Token::OpenSquare)?;
        let index = self.value(scope)?;
        self.cursor.expect(Token::CloseSquare)?;
        Ok((ptr, index))
    }

    /// `@f(%a, %b)`.
    pub(super) fn call(&mut self, scope: &Scope) -> Result<(FunctionId, Vec<Value>), Diagnostic> {
        let (name, span) = self.function_name()?;
        let Some(&function) = self.functions.get(&name) else {
            return Err(Diagnostic::new(
                span,
                format!("no function `@{name}` is in this file"),
            ));
        };
        self.cursor.expect(Token::Open)?;
        let mut arguments = Vec::new();
        while !self.cursor.take(&Token::Close) {
            arguments.push(self.value(scope)?);
            if !self.cursor.take(&Token::Comma) {
                self.cursor.expect(Token::Close)?;
                break;
            }
        }
        Ok((function, arguments))
    }
}
