//! Text of expressions, with what must be known of it to place it.

use std::fmt::Write;

/// How tightly an expression's outermost operator binds, C's order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Precedence {
    /// `c ? a : b`.
    Ternary,
    /// `|`, `^` and `&`, which readers do not rank: they get parentheses among each other.
    Bitwise,
    /// `==`, `!=`, `<` and their like.
    Comparison,
    /// `+` and `-`.
    Additive,
    /// `*`, `/` and `%`.
    Multiplicative,
    /// `-a`, `~a`, `!a`, `&a`, `*a` and casts.
    Unary,
    /// Names, literals, calls, subscripts.
    Primary,
}

/// How a vector of `bool` is held in a register. Everything else is always [`Shape::Plain`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// As the type says; a vector of `bool` holds one byte of 0 or 1 in each lane, as memory does.
    Plain,
    /// A vector of integers of so many bits, all set where true: what comparisons give and blends take.
    Mask(u32),
}

/// An expression.
#[derive(Clone, PartialEq, Debug)]
pub struct Expr {
    /// Its text.
    pub text: String,
    /// What binds it together.
    pub precedence: Precedence,
    /// Whether it reads memory, so that it must not move past a write.
    pub reads: bool,
    /// Whether it is a bare literal, whose C type may be narrower than the value's.
    pub literal: bool,
    /// How a vector of `bool` is held.
    pub shape: Shape,
    /// Of a pointer in a language without pointers, which holds one as memory and a place in it: the place.
    /// The text is the memory.
    pub offset: Option<Box<Expr>>,
}

impl Expr {
    /// A name, a literal of its own type, or anything else in one piece.
    pub fn primary(text: impl Into<String>) -> Expr {
        Expr {
            text: text.into(),
            precedence: Precedence::Primary,
            reads: false,
            literal: false,
            shape: Shape::Plain,
            offset: None,
        }
    }

    /// The same text marked as a bare literal.
    pub fn as_literal(mut self) -> Expr {
        self.literal = true;
        self
    }

    /// The same text as one that reads memory.
    pub fn reading(mut self) -> Expr {
        self.reads = true;
        self
    }

    /// The same text held so.
    pub fn shaped(mut self, shape: Shape) -> Expr {
        self.shape = shape;
        self
    }

    /// The same text as the memory of a pointer to this place in it.
    pub fn at(mut self, offset: Expr) -> Expr {
        self.reads |= offset.reads;
        self.offset = Some(Box::new(offset));
        self
    }

    /// How long the text is, with that of its offset.
    pub(crate) fn len(&self) -> usize {
        self.text.len() + self.offset.as_ref().map_or(0, |offset| offset.len())
    }

    /// Appends the text, in parentheses unless it binds at least as tightly as `floor`.
    fn append(&self, to: &mut String, floor: Precedence) {
        if self.precedence >= floor {
            to.push_str(&self.text);
        } else {
            to.push('(');
            to.push_str(&self.text);
            to.push(')');
        }
    }

    /// The text, in parentheses unless it binds at least as tightly as `floor`.
    pub fn within(&self, floor: Precedence) -> String {
        let mut text = String::with_capacity(self.text.len() + 2);
        self.append(&mut text, floor);
        text
    }

    /// `left operator right`.
    pub fn infix(operator: &str, precedence: Precedence, left: &Expr, right: &Expr) -> Expr {
        use Precedence::{Additive, Comparison, Multiplicative, Unary};
        let (left_floor, right_floor) = match precedence {
            Additive => (Additive, Multiplicative),
            Multiplicative => (Multiplicative, Unary),
            Comparison => (Additive, Additive),
            _ => (Unary, Unary),
        };
        let mut text = String::with_capacity(left.text.len() + right.text.len() + 8);
        left.append(&mut text, left_floor);
        let _ = write!(text, " {operator} ");
        right.append(&mut text, right_floor);
        Expr {
            text,
            precedence,
            reads: left.reads | right.reads,
            literal: false,
            shape: Shape::Plain,
            offset: None,
        }
    }

    /// `operator operand`; the operator may be a cast.
    pub fn prefix(operator: &str, operand: &Expr) -> Expr {
        let mut text = String::with_capacity(operand.text.len() + operator.len() + 2);
        text.push_str(operator);
        // `- -a` and `-(-a)` read alike only to a lexer.
        let floor = match operator {
            "-" | "~" | "!" => Precedence::Primary,
            _ => Precedence::Unary,
        };
        operand.append(&mut text, floor);
        Expr {
            text,
            precedence: Precedence::Unary,
            reads: operand.reads,
            literal: false,
            shape: Shape::Plain,
            offset: None,
        }
    }

    /// `condition ? then : otherwise`.
    pub fn ternary(condition: &Expr, then: &Expr, otherwise: &Expr) -> Expr {
        let mut text = condition.within(Precedence::Comparison);
        text.push_str(" ? ");
        then.append(&mut text, Precedence::Bitwise);
        text.push_str(" : ");
        otherwise.append(&mut text, Precedence::Bitwise);
        Expr {
            text,
            precedence: Precedence::Ternary,
            reads: condition.reads | then.reads | otherwise.reads,
            literal: false,
            shape: Shape::Plain,
            offset: None,
        }
    }

    /// `function(arguments)`.
    pub fn call(function: &str, arguments: &[Expr]) -> Expr {
        let mut text = String::with_capacity(
            function.len() + 2 + arguments.iter().map(|a| a.text.len() + 2).sum::<usize>(),
        );
        text.push_str(function);
        text.push('(');
        for (position, argument) in arguments.iter().enumerate() {
            if position > 0 {
                text.push_str(", ");
            }
            text.push_str(&argument.text);
        }
        text.push(')');
        Expr {
            reads: arguments.iter().any(|argument| argument.reads),
            ..Expr::primary(text)
        }
    }

    /// What a pointer points at: `*pointer`, or what the pointer is the address of.
    pub fn pointee(pointer: &Expr) -> Expr {
        match pointer.text.strip_prefix('&') {
            Some(text) if pointer.precedence == Precedence::Unary => Expr {
                reads: pointer.reads,
                ..Expr::primary(text)
            },
            _ => Expr::prefix("*", pointer),
        }
    }

    /// `base[index]`, not counted as a read: it may be what is written.
    pub fn subscript(base: &Expr, index: &Expr) -> Expr {
        if index.literal && index.text == "0" && base.text.starts_with('&') {
            return Expr::pointee(base);
        }
        let mut text = base.within(Precedence::Primary);
        let _ = write!(text, "[{}]", index.text);
        Expr {
            reads: base.reads | index.reads,
            ..Expr::primary(text)
        }
    }

    /// `base + index`, or `base` itself where the index is the literal 0.
    pub fn advanced(base: &Expr, index: &Expr) -> Expr {
        if index.literal && index.text == "0" {
            base.clone()
        } else {
            Expr::infix("+", Precedence::Additive, base, index)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parentheses_stand_where_they_must() {
        let [a, b, c] = ["a", "b", "c"].map(Expr::primary);
        let sum = Expr::infix("+", Precedence::Additive, &a, &b);
        let scaled = Expr::infix("*", Precedence::Multiplicative, &sum, &c);
        assert_eq!(scaled.text, "(a + b) * c");
        let difference = Expr::infix("-", Precedence::Additive, &a, &sum);
        assert_eq!(difference.text, "a - (a + b)");
        let negated = Expr::prefix("-", &Expr::prefix("-", &a));
        assert_eq!(negated.text, "-(-a)");
        let chosen = Expr::ternary(
            &Expr::infix("<", Precedence::Comparison, &a, &scaled),
            &sum,
            &c,
        );
        assert_eq!(chosen.text, "a < (a + b) * c ? a + b : c");
        assert_eq!(Expr::subscript(&sum, &c).text, "(a + b)[c]");
        let address = Expr::prefix("&", &a);
        assert_eq!(Expr::subscript(&address, &c).text, "(&a)[c]");
        assert_eq!(
            Expr::subscript(&address, &Expr::primary("0").as_literal()).text,
            "a"
        );
    }
}
