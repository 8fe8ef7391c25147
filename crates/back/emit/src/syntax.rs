//! What a language must say about statements, variables and memory to be written by the shared emitter.

use crate::dialect::{Refusal, Spelled};
use crate::expression::{Expr, Precedence};
use crate::pieces::Pieces;
use loopwright_kernel::interpret::Layout;
use loopwright_kernel::{Module, StructId, Type};

/// How statements, variables and memory are spelled. Every function has a default, which is C's, so a
/// language with C's statements and pointers says `impl Syntax for Mine {}`.
///
/// A text that opens a block goes on in the next line one step further in, until [`end`](Syntax::end).
///
/// # Languages without pointers
///
/// A pointer is an [`Expr`] that only this trait and [`Dialect`](crate::Dialect) look into. A language may hold it as memory
/// (the text) and a place in it ([`Expr::offset`]): what gives pointers ([`variable`](Syntax::variable),
/// [`advanced`](Syntax::advanced), [`field`](Syntax::field), [`elements`](Syntax::elements)) makes such expressions, what takes them ([`load`](Syntax::load), [`stored`](Syntax::stored),
/// [`call`](Syntax::call)) reads them, and declarations and parameters of pointers
/// ([`declared`](crate::Dialect::declared), [`parameter`](crate::Dialect::parameter)) have two names.
pub trait Syntax {
    /// `variable = value`.
    fn assigned(&self, variable: &str, value: &Expr) -> String {
        format!("{variable} = {};", value.text)
    }

    /// An expression that is evaluated for what it does.
    fn evaluated(&self, value: &Expr) -> String {
        format!("{};", value.text)
    }

    /// Opens a counted loop.
    fn for_loop(&self, head: &LoopHead<'_>) -> String {
        let LoopHead {
            variable,
            first,
            end,
            step,
        } = head;
        let increment = match step.literal && step.text == "1" {
            true => format!("{variable}++"),
            false => format!("{variable} += {}", step.text),
        };
        format!(
            "for (int64_t {variable} = {}; {variable} < {}; {increment}) {{",
            first.text,
            end.within(Precedence::Additive)
        )
    }

    /// Opens a loop that runs while the condition holds, or until it is left.
    fn while_loop(&self, condition: Option<&Expr>) -> String {
        let condition = condition.map_or("1", |condition| &condition.text);
        format!("while ({condition}) {{")
    }

    /// Opens what is done where the condition holds.
    fn if_then(&self, condition: &Expr) -> String {
        format!("if ({}) {{", condition.text)
    }

    /// Closes that and opens what is done where it does not.
    fn otherwise(&self) -> String {
        "} else {".to_owned()
    }

    /// Closes a block.
    fn end(&self) -> String {
        "}".to_owned()
    }

    /// Leaves the loop where the condition holds.
    fn break_if(&self, condition: &Expr) -> String {
        format!("if ({}) break;", condition.text)
    }

    /// Leaves the loop where the condition does not hold.
    fn break_unless(&self, condition: &Expr) -> String {
        format!("if (!{}) break;", condition.within(Precedence::Primary))
    }

    /// Leaves the loop.
    fn break_out(&self) -> String {
        "break;".to_owned()
    }

    /// Goes on with the loop's next iteration.
    fn continue_on(&self) -> String {
        "continue;".to_owned()
    }

    /// Leaves the function, with a value if it gives one.
    fn return_from(&self, value: Option<&Expr>) -> String {
        match value {
            Some(value) => format!("return {};", value.text),
            None => "return;".to_owned(),
        }
    }

    /// A call. `function` is a name that the emitter gave.
    fn call(&self, function: &str, arguments: &[Expr]) -> Expr {
        Expr::call(function, arguments)
    }

    /// A value as the type of that name.
    fn converted(&self, ty: &str, value: &Expr) -> Expr {
        Expr::prefix(&format!("({ty})"), value)
    }

    /// A number as an index, of `i64`.
    fn index(&self, value: i64) -> Expr {
        Expr::primary(value.to_string()).as_literal()
    }

    /// What a variable holds: a parameter, a loop's variable, a value, or a private array, which stands for a
    /// pointer to its first element.
    fn variable(&self, name: &str, ty: &Type) -> Expr {
        let _ = ty;
        Expr::primary(name)
    }

    /// A pointer so many elements further on.
    fn advanced(&self, pointer: &Expr, index: &Expr, pointee: Pointee<'_>) -> Spelled<Expr> {
        let _ = pointee;
        Ok(Expr::advanced(pointer, index))
    }

    /// The address of a struct's field, from that of the struct.
    fn field(&self, pointer: &Expr, field: Field<'_>) -> Spelled<Expr> {
        let pointer_text = pointer.within(Precedence::Primary);
        let member = Expr::primary(format!("{pointer_text}->{}", field.name));
        Ok(Expr {
            reads: pointer.reads,
            ..Expr::prefix("&", &member)
        })
    }

    /// The address of an array's first element, from that of the array.
    fn elements(&self, pointer: &Expr) -> Expr {
        Expr::pointee(pointer)
    }

    /// What is in memory: a whole element, that is, of a pointer's own type.
    fn load(
        &self,
        pointer: &Expr,
        index: &Expr,
        pointee: Pointee<'_>,
        pieces: &mut Pieces,
    ) -> Spelled<Expr> {
        let _ = (pointee, pieces);
        Ok(Expr::subscript(pointer, index))
    }

    /// A statement that writes a whole element to memory.
    fn stored(
        &self,
        pointer: &Expr,
        index: &Expr,
        value: &Expr,
        pointee: Pointee<'_>,
        pieces: &mut Pieces,
    ) -> Spelled<String> {
        let _ = (pointee, pieces);
        let place = Expr::subscript(pointer, index);
        Ok(format!("{} = {};", place.text, value.text))
    }

    /// A statement that copies so many elements, with a variable that is free.
    fn copied(
        &self,
        [destination, source]: [&Expr; 2],
        count: &Expr,
        variable: &str,
        pointee: Pointee<'_>,
    ) -> Spelled<String> {
        let _ = pointee;
        Ok(format!(
            "for (int64_t {variable} = 0; {variable} < {}; {variable}++) {}[{variable}] = {}[{variable}];",
            count.within(Precedence::Additive),
            destination.within(Precedence::Primary),
            source.within(Precedence::Primary),
        ))
    }
}

/// The head of a counted loop.
pub struct LoopHead<'a> {
    /// The name of its variable, an `i64`.
    pub variable: &'a str,
    /// Where it begins.
    pub first: &'a Expr,
    /// It runs while the variable is less than this.
    pub end: &'a Expr,
    /// What is added to the variable; above 0.
    pub step: &'a Expr,
}

/// What a pointer points to.
#[derive(Clone, Copy)]
pub struct Pointee<'a> {
    /// The type.
    pub ty: &'a Type,
    /// Where its structs are.
    pub module: &'a Module,
}

impl Pointee<'_> {
    /// Bytes from one element to the next.
    ///
    /// # Errors
    /// Where the type has no layout, which a validated module does not have.
    pub fn bytes(&self) -> Spelled<u64> {
        let layout = Layout::of(self.module, self.ty).map(|layout| layout.size);
        layout.ok_or_else(|| Refusal("it has a type without a size".to_owned()))
    }
}

/// A field of a struct.
#[derive(Clone, Copy)]
pub struct Field<'a> {
    /// Its name.
    pub name: &'a str,
    /// The struct.
    pub of: StructId,
    /// Which field of the struct it is.
    pub position: u32,
    /// Where the struct is.
    pub module: &'a Module,
}

impl Field<'_> {
    /// Bytes from the struct's address to the field's.
    ///
    /// # Errors
    /// Where the type has no layout, which a validated module does not have.
    pub fn offset(&self) -> Spelled<u64> {
        let fields = &self.module.structs[self.of].fields;
        let offset = Layout::field_offset(self.module, fields, self.position as usize);
        offset.ok_or_else(|| Refusal("it has a type without a size".to_owned()))
    }
}
