//! What can be wrong with a module.

use crate::ir::{FunctionId, StructId};
use loopwright_ops::{OpError, ReduceOp};
use std::fmt;

/// A module that breaks a rule of the IR: where, and which.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ValidationError {
    pub(super) place: Place,
    /// The struct or function, as messages name it.
    pub(super) item: String,
    /// The first line of the statement.
    pub(super) statement: Option<String>,
    pub(super) fault: Box<Fault>,
}

/// Where in a module something is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Place {
    /// The struct, for errors in a declaration.
    pub declared_struct: Option<StructId>,
    /// The function.
    pub function: Option<FunctionId>,
    /// The statement, counted from the function's first and into blocks, from top to bottom.
    pub statement: Option<u32>,
}

impl ValidationError {
    /// Where it is.
    pub fn place(&self) -> Place {
        self.place
    }

    /// The function's name as the text form writes it; for struct declarations the struct's.
    pub fn item(&self) -> &str {
        &self.item
    }

    /// The first line of the statement, in the text form.
    pub fn statement(&self) -> Option<&str> {
        self.statement.as_deref()
    }

    /// The rule that is broken.
    pub fn fault(&self) -> &Fault {
        &self.fault
    }
}

impl fmt::Display for ValidationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "in {}", self.item)?;
        if let Some(statement) = &self.statement {
            write!(f, ", at `{statement}`")?;
        }
        write!(f, ": {}", self.fault)
    }
}

impl std::error::Error for ValidationError {}

/// A broken rule. Values and types are given as the text form writes them.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// Two functions, structs or fields of one name.
    #[error("two {what}s have the name `{name}`")]
    DuplicateName {
        /// What has the name.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A struct that contains itself or one that is declared below it.
    #[error(
        "the field `{field}` holds the struct `{holds}`, which is not declared above; point at it, or move it up"
    )]
    StructOrder {
        /// The field.
        field: String,
        /// What it holds.
        holds: String,
    },
    /// A type that cannot stand where it does.
    #[error("the type {ty} is not allowed here: {why}")]
    TypeNotAllowed {
        /// The type.
        ty: String,
        /// Why.
        why: &'static str,
    },
    /// A type that names a struct the module does not have.
    #[error("a type names struct number {0}, which the module does not have")]
    NoSuchStruct(u32),
    /// A call of a function the module does not have.
    #[error("a call names function number {0}, which the module does not have")]
    NoSuchFunction(u32),
    /// A value the function does not have.
    #[error("the function has no value number {0}")]
    NoSuchValue(u32),
    /// A value that is defined a second time.
    #[error("{value} is defined twice")]
    Redefined {
        /// The value.
        value: String,
    },
    /// A value that is used before, or without, its definition.
    #[error("{value} is used before it is defined")]
    Undefined {
        /// The value.
        value: String,
    },
    /// A value that is used outside the block it is defined in.
    #[error("{value} is used outside the block that defines it")]
    OutOfScope {
        /// The value.
        value: String,
    },
    /// An operand or result of the wrong type.
    #[error("{what} must be {expected}, not {got}")]
    Type {
        /// Which operand or result, with its value.
        what: String,
        /// What it must be.
        expected: String,
        /// What it is.
        got: String,
    },
    /// An operand of an op with more or fewer lanes than the others.
    #[error(
        "the operands of an op have one number of lanes; {first} is {first_type}, and {other} is {other_type}"
    )]
    Lanes {
        /// The first operand.
        first: String,
        /// Its type.
        first_type: String,
        /// The operand that differs.
        other: String,
        /// Its type.
        other_type: String,
    },
    /// A load or store of an array or struct.
    #[error("{ty} is not read or written as a whole; take the address of a part")]
    NotMoved {
        /// The type.
        ty: String,
    },
    /// Operands that the op table does not allow.
    #[error("{0}")]
    Op(#[from] OpError),
    /// A reduction that is not defined on the dtype.
    #[error("`{op}` does not reduce lanes of {dtype}")]
    Reduce {
        /// The reduction.
        op: ReduceOp,
        /// The lanes' dtype.
        dtype: String,
    },
    /// A bitcast between widths, or to `bool`.
    #[error("a bitcast from {from} to {to} does not keep the bits: {why}")]
    Bitcast {
        /// The operand's dtype.
        from: String,
        /// The result's dtype.
        to: String,
        /// Why.
        why: &'static str,
    },
    /// A lane beyond a vector's last.
    #[error("lane {lane} is out of range: there are {lanes} lanes")]
    LaneRange {
        /// The lane.
        lane: u32,
        /// How many there are.
        lanes: u64,
    },
    /// A field beyond a struct's last.
    #[error("field {field} is out of range: the struct `{name}` has {fields}")]
    FieldRange {
        /// The field.
        field: u32,
        /// The struct.
        name: String,
        /// How many fields it has.
        fields: usize,
    },
    /// An axis above 2.
    #[error("axis {0} is out of range: the axes are 0, 1 and 2")]
    Axis(u8),
    /// An array without elements.
    #[error("an array needs at least one element")]
    EmptyAlloc,
    /// An array in a space where code cannot make one.
    #[error("an array is made in private or local space, not in {space}")]
    AllocSpace {
        /// The space.
        space: &'static str,
    },
    /// A step that does not count up.
    #[error("a loop's step must be at least 1, not {0}")]
    Step(i64),
    /// `break` or `continue` outside of loops.
    #[error("`{word}` stands outside of any loop")]
    OutsideLoop {
        /// Which.
        word: &'static str,
    },
    /// `break` or `continue` in the head of a `while`.
    #[error("`{word}` stands in the head of a `while`, which only computes the condition")]
    InHead {
        /// Which.
        word: &'static str,
    },
    /// A jump out of a loop whose iterations have no order.
    #[error("`{word}` would leave a loop whose iterations are independent")]
    LeavesParallel {
        /// Which.
        word: &'static str,
    },
    /// A barrier in a loop whose iterations have no order.
    #[error("a barrier stands in a loop whose iterations are independent{}", match .through {
        Some(name) => format!(", through the call of {name}"),
        None => String::new(),
    })]
    BarrierInParallel {
        /// The called function that has the barrier.
        through: Option<String>,
    },
    /// A `return` that does not fit the function.
    #[error("the function returns {expected}, and this returns {got}")]
    Return {
        /// What the function returns.
        expected: String,
        /// What the statement returns.
        got: String,
    },
    /// A path to the end of a function that returns something.
    #[error("the function returns {expected}, but its end can be reached without a `return`")]
    MissingReturn {
        /// What the function returns.
        expected: String,
    },
    /// A kernel that returns something.
    #[error("a kernel returns nothing, not {got}")]
    KernelResult {
        /// What it would return.
        got: String,
    },
    /// A work-group size of 0.
    #[error("a work-group has at least one work-item along every axis")]
    EmptyGroup,
    /// A write through a pointer that is only read, or to constant space.
    #[error("{value} is written through, but {why}")]
    NotWritable {
        /// The pointer.
        value: String,
        /// Why it cannot be.
        why: String,
    },
    /// A read through a pointer that is only written.
    #[error("{value} is read through, but the parameter {param} is declared `write`")]
    NotReadable {
        /// The pointer.
        value: String,
        /// The parameter it comes from.
        param: String,
    },
    /// A call with the wrong number of arguments.
    #[error("{function} takes {expected} argument{}, not {got}", if *expected == 1 { "" } else { "s" })]
    ArgumentCount {
        /// The called function.
        function: String,
        /// How many it takes.
        expected: usize,
        /// How many there are.
        got: usize,
    },
    /// A call of a kernel.
    #[error("{function} is a kernel; only device functions can be called")]
    CallsKernel {
        /// The called function.
        function: String,
    },
    /// A call that leads back to its own function.
    #[error("the call of {function} is recursive")]
    Recursion {
        /// The called function.
        function: String,
    },
    /// A call used as a value of a function that returns nothing, or as a statement of one that
    /// returns something.
    #[error("{function} returns {returns}, which the call {uses}")]
    CallResult {
        /// The called function.
        function: String,
        /// What it returns.
        returns: String,
        /// What the call does with it.
        uses: &'static str,
    },
    /// An atomic operation that devices do not have.
    #[error("`{op}` is not defined on {element} in {space} space: {why}")]
    Atomic {
        /// The operation.
        op: String,
        /// The element type.
        element: String,
        /// The space.
        space: &'static str,
        /// What is.
        why: &'static str,
    },
    /// An asynchronous copy that does not go between global and local space.
    #[error("an asynchronous copy goes between global and local space, not from {from} to {to}")]
    CopySpaces {
        /// The source's space.
        from: &'static str,
        /// The destination's space.
        to: &'static str,
    },
    /// Rows of a tile that do not interleave.
    #[error("{interleave} rows at a time do not make the rows of {tile}")]
    Interleave {
        /// The tile's type.
        tile: String,
        /// How many rows lie interleaved.
        interleave: u32,
    },
    /// Tiles that do not multiply.
    #[error("the tiles do not fit: {left} * {right} + {accumulator}; {why}")]
    Tiles {
        /// The left operand's type.
        left: String,
        /// The right operand's type.
        right: String,
        /// The accumulator's type.
        accumulator: String,
        /// What does not fit.
        why: &'static str,
    },
}
