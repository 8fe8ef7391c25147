//! Instructions.

use super::{Parser, Scope};
use crate::ir::{AtomicOp, Inst, Space, Type, Value, WorkItem};
use loopwright_ops::{DType, Op, ReduceOp, Scalar, parse_scalar};
use loopwright_text::{Diagnostic, Span, Token};
use smallvec::SmallVec;

impl Parser {
    /// An instruction that gives a value of type `ty`.
    pub(super) fn inst(&mut self, scope: &Scope, ty: &Type) -> Result<Inst, Diagnostic> {
        let (word, span) = self.cursor.expect_name("an instruction")?;
        if let Some(op) = Op::from_name(&word) {
            return self.map(scope, op);
        }
        if let Some(query) = WorkItem::from_keyword(&word) {
            return Ok(Inst::WorkItem(query, self.number("the axis")?));
        }
        Ok(match word.as_str() {
            "const" => Inst::Const(self.scalar(dtype(ty, &word, span)?)?),
            "cast" => Inst::Cast(dtype(ty, &word, span)?, self.value(scope)?),
            "bitcast" => Inst::Bitcast(dtype(ty, &word, span)?, self.value(scope)?),
            "alloc" => {
                let space = self.keyword(Space::from_keyword, "a space", Space::KEYWORDS)?;
                let ty = self.ty()?;
                self.cursor.expect_word("x")?;
                let count = self.unsigned("the number of elements")?;
                Inst::Alloc { space, ty, count }
            }
            "load" => {
                let (ptr, index) = self.element(scope)?;
                Inst::Load { ptr, index }
            }
            "offset" => {
                let (ptr, index) = self.element(scope)?;
                Inst::Offset { ptr, index }
            }
            "field" => self.field(scope)?,
            "elements" => Inst::Elements(self.value(scope)?),
            "splat" => Inst::Splat(self.value(scope)?),
            "build" => {
                let mut values = vec![self.value(scope)?];
                while matches!(self.cursor.peek(), Token::Comma) {
                    values.push(self.next_value(scope)?);
                }
                Inst::Build(values)
            }
            "extract" => {
                let vector = self.value(scope)?;
                self.cursor.expect(Token::Comma)?;
                Inst::Extract(vector, self.number("the lane")?)
            }
            "insert" => {
                let vector = self.value(scope)?;
                self.cursor.expect(Token::Comma)?;
                let lane = self.number("the lane")?;
                Inst::Insert(vector, lane, self.next_value(scope)?)
            }
            "shuffle" => {
                let left = self.value(scope)?;
                let right = self.next_value(scope)?;
                self.cursor.expect(Token::Comma)?;
                Inst::Shuffle(left, right, self.lanes()?)
            }
            "reduce" => {
                let op = self.keyword(ReduceOp::from_name, "a reduction", "`sum`, `max`, ...")?;
                Inst::ReduceLanes(op, self.value(scope)?)
            }
            "atomic" => {
                let op = self.keyword(AtomicOp::from_keyword, "what to do", AtomicOp::KEYWORDS)?;
                let (ptr, index) = self.element(scope)?;
                let value = self.next_value(scope)?;
                Inst::Atomic {
                    op,
                    ptr,
                    index,
                    value,
                }
            }
            "compare_exchange" => {
                let (ptr, index) = self.element(scope)?;
                let expected = self.next_value(scope)?;
                let value = self.next_value(scope)?;
                Inst::CompareExchange {
                    ptr,
                    index,
                    expected,
                    value,
                }
            }
            "call" => {
                let (function, arguments) = self.call(scope)?;
                Inst::Call(function, arguments)
            }
            "tile_load" => {
                let (ptr, index) = self.element(scope)?;
                self.cursor.expect_word("stride")?;
                let stride = self.value(scope)?;
                let interleave = match self.cursor.take_word("interleave") {
                    true => self.number("the number of interleaved rows")?,
                    false => 1,
                };
                Inst::TileLoad {
                    ptr,
                    index,
                    stride,
                    interleave,
                }
            }
            "tile_splat" => Inst::TileSplat(self.value(scope)?),
            "tile_mma" => {
                let left = self.value(scope)?;
                let right = self.next_value(scope)?;
                let accumulator = self.next_value(scope)?;
                Inst::TileMma {
                    left,
                    right,
                    accumulator,
                }
            }
            _ => {
                return Err(
                    Diagnostic::new(span, format!("`{word}` is no instruction or op"))
                        .help("ops have the names of the op table, such as `add` and `mul_add`"),
                );
            }
        })
    }

    fn map(&mut self, scope: &Scope, op: Op) -> Result<Inst, Diagnostic> {
        let mut operands: SmallVec<[Value; 3]> = SmallVec::new();
        operands.push(self.value(scope)?);
        while matches!(self.cursor.peek(), Token::Comma) {
            operands.push(self.next_value(scope)?);
        }
        Ok(Inst::Map(op, operands))
    }

    /// `field %p, name` or, by number, `field %p, 0`.
    fn field(&mut self, scope: &Scope) -> Result<Inst, Diagnostic> {
        let ptr = self.value(scope)?;
        self.cursor.expect(Token::Comma)?;
        if matches!(self.cursor.peek(), Token::Number(_)) {
            let field = self.number("the field's number")?;
            return Ok(Inst::Field { ptr, field });
        }
        let (name, span) = self.name("a field's name or number")?;
        let Some(Type::Struct(id)) = scope.function.ty(ptr).pointee() else {
            return Err(Diagnostic::new(
                span,
                "only a pointer to a struct has fields",
            ));
        };
        let Some(declared) = self.module.structs.get(*id) else {
            return Err(
                Diagnostic::new(span, "the struct is declared below this function")
                    .help("move it up, or give the field's number"),
            );
        };
        match declared.fields.iter().position(|(field, _)| *field == name) {
            Some(field) => Ok(Inst::Field {
                ptr,
                field: field as u32,
            }),
            None => {
                let fields: Vec<&str> = declared.fields.iter().map(|(n, _)| n.as_str()).collect();
                Err(Diagnostic::new(
                    span,
                    format!("the struct `{}` has no field `{name}`", declared.name),
                )
                .help(format!("its fields are {}", fields.join(", "))))
            }
        }
    }

    /// `[0, 1]`.
    fn lanes(&mut self) -> Result<Vec<u32>, Diagnostic> {
        self.cursor.expect(Token::OpenSquare)?;
        let mut lanes = Vec::new();
        while !self.cursor.take(&Token::CloseSquare) {
            lanes.push(self.number("a lane")?);
            if !self.cursor.take(&Token::Comma) {
                self.cursor.expect(Token::CloseSquare)?;
                break;
            }
        }
        Ok(lanes)
    }

    /// A value of a dtype, as [`Scalar`] displays it: `-1`, `1.5e-7`, `true`, `inf`, `nan:0x7fc1`.
    fn scalar(&mut self, dtype: DType) -> Result<Scalar, Diagnostic> {
        let start = self.cursor.span();
        let mut text = String::new();
        if self.cursor.take(&Token::Minus) {
            text.push('-');
        }
        match self.cursor.peek() {
            Token::Number(word) | Token::Name(word) => text.push_str(word),
            _ => return Err(self.cursor.expected(&format!("a value of {dtype}"))),
        }
        self.cursor.advance();
        if let (Token::Colon, Token::Number(bits)) = (self.cursor.peek(), self.cursor.peek_at(1)) {
            text.push(':');
            text.push_str(bits);
            self.cursor.advance();
            self.cursor.advance();
        }
        let span = start.to(self.cursor.previous_span());
        parse_scalar(dtype, &text).map_err(|error| Diagnostic::new(span, error.to_string()))
    }
}

/// The dtype of an annotation on an instruction that gives scalars and vectors.
fn dtype(ty: &Type, word: &str, span: Span) -> Result<DType, Diagnostic> {
    ty.dtype().ok_or_else(|| {
        Diagnostic::new(
            span,
            format!("`{word}` gives a scalar or vector, which is not what the annotation says"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_op_has_the_name_of_an_instruction() {
        let words = [
            "const",
            "cast",
            "bitcast",
            "alloc",
            "load",
            "offset",
            "field",
            "elements",
            "splat",
            "build",
            "extract",
            "insert",
            "shuffle",
            "reduce",
            "atomic",
            "compare_exchange",
            "call",
            "tile_load",
            "tile_splat",
            "tile_mma",
        ];
        for op in Op::ALL {
            assert!(
                !words.contains(&op.name()),
                "`{op}` is an instruction's name"
            );
            assert!(WorkItem::from_keyword(op.name()).is_none(), "`{op}`");
        }
    }
}
