//! What can be wrong with a program.

use loopwright_ops::{DType, OpError};

/// What is wrong with a program.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum GraphError {
    /// Operands an op does not take.
    #[error(transparent)]
    Op(#[from] OpError),
    /// A name that is taken.
    #[error("`{name}` is already the name of {taken_by}; choose another name")]
    NameTaken {
        /// The name.
        name: String,
        /// What has it.
        taken_by: &'static str,
    },
    /// A node that reads another one step back, or is made of itself that way, and cannot be.
    #[error("`{node}` is no recurrence: {reason}")]
    Recurrence {
        /// The node.
        node: String,
        /// Why it cannot be.
        reason: String,
    },
    /// A dimension that an array does not have.
    #[error("{what} has no dimension `{dim}`; its dimensions are [{dims}]")]
    NoSuchDim {
        /// The array.
        what: String,
        /// The dimension asked for.
        dim: String,
        /// The dimensions it has.
        dims: String,
    },
    /// A dimension twice in one list.
    #[error("dimension `{dim}` stands twice in {what}")]
    RepeatedDim {
        /// The list.
        what: String,
        /// The dimension.
        dim: String,
    },
    /// Dimensions that should be others.
    #[error("{what} must have the dimensions [{expected}], not [{got}]")]
    Dims {
        /// The array.
        what: String,
        /// What it should have.
        expected: String,
        /// What it has.
        got: String,
    },
    /// A dtype that should be another.
    #[error("{what} must be {expected}, not {got}")]
    DType {
        /// The array.
        what: String,
        /// What it should be.
        expected: String,
        /// What it is.
        got: DType,
    },
    /// The wrong number of indices.
    #[error("{what} has {expected} dimension{}, and {got} {} given", if *expected == 1 { "" } else { "s" }, if *got == 1 { "index is" } else { "indices are" })]
    IndexCount {
        /// The array.
        what: String,
        /// Its dimensions.
        expected: usize,
        /// The indices given.
        got: usize,
    },
    /// Two sizes for one dimension.
    #[error(
        "the size of `{name}` is contradicted: {first} ({first_origin}), but {second} ({second_origin})"
    )]
    Contradiction {
        /// The dimension or size.
        name: String,
        /// One size.
        first: String,
        /// Where it comes from.
        first_origin: Box<str>,
        /// The other size.
        second: String,
        /// Where that comes from.
        second_origin: Box<str>,
    },
    /// A dimension whose size nothing determines.
    #[error(
        "nothing determines the size of dimension `{dim}`; say it, for example `dim {dim} = 8`"
    )]
    Undetermined {
        /// The dimension.
        dim: String,
    },
    /// A view that may read outside its input and does not say what stands there.
    #[error(
        "{what} reads `{input}` along `{dim}` at index {index}, which may be outside 0..{size}; say what stands there, for example `else 0`"
    )]
    OutOfRange {
        /// The view.
        what: Box<str>,
        /// What it reads.
        input: Box<str>,
        /// The dimension of the input.
        dim: String,
        /// The index.
        index: String,
        /// The input's size along it.
        size: String,
    },
    /// A view with conditions that does not say what stands where they do not hold.
    #[error(
        "{what} reads `{input}` under a condition; say what stands where it does not hold, for example `else 0`"
    )]
    NothingOutside {
        /// The view.
        what: String,
        /// What it reads.
        input: String,
    },
    /// A size below zero.
    #[error("dimension `{dim}` would have the negative size {size}{}", if origin.is_empty() { String::new() } else { format!(" ({origin})") })]
    NegativeSize {
        /// The dimension.
        dim: String,
        /// The size.
        size: i64,
        /// Where it comes from.
        origin: String,
    },
    /// An index or size that 64 bits do not hold.
    #[error("{what} overflows 64 bits")]
    Overflow {
        /// What overflows.
        what: String,
    },
    /// Sizes or statics with which the arithmetic of an index may leave 64 bits.
    #[error(
        "`{node}`: `{part}` can exceed 2^62, the limit of index arithmetic, in the index `{index}` with {values}; use smaller values"
    )]
    IndexOverflow {
        /// The node.
        node: Box<str>,
        /// Its index, condition or value.
        index: String,
        /// The part of it that is too large.
        part: String,
        /// The sizes, statics and dimensions in it, with their values.
        values: Box<str>,
    },
    /// An index divided by something that moves with an index.
    #[error(
        "an index cannot be divided by an expression over `{dim}`, which is 0 at times; divide by a number or a size"
    )]
    MovingDivisor {
        /// The dimension whose index is in the divisor.
        dim: String,
    },
    /// An index divided by a size that is 0.
    #[error("`{node}` divides by {divisor}, which is 0 with the sizes given")]
    ZeroDivisor {
        /// The view, or the value made of sizes.
        node: String,
        /// What it divides by.
        divisor: String,
    },
    /// A size symbol without a value.
    #[error(
        "size `{name}` has no value; give one with `--set {name}=128`, or a default in the program: `size {name} = 128`"
    )]
    Unbound {
        /// The symbol.
        name: String,
    },
    /// A static without a value.
    #[error(
        "static `{name}` has no value; give it one of {lo} .. {hi}, for example `--set {name}={lo}`"
    )]
    UnboundStatic {
        /// The symbol.
        name: String,
        /// Its smallest value.
        lo: i64,
        /// The end of its range.
        hi: i64,
    },
    /// A value that a static cannot have.
    #[error("`{name}` is {value}, outside its range {lo} .. {hi}")]
    OutsideRange {
        /// The static.
        name: String,
        /// The value.
        value: i64,
        /// Its smallest value.
        lo: i64,
        /// The end of its range.
        hi: i64,
    },
    /// A static that can have no value.
    #[error("`{name}` can have no value: its range {lo} .. {hi} is empty")]
    EmptyRange {
        /// The static.
        name: String,
        /// Where its range begins.
        lo: i64,
        /// Where it ends.
        hi: i64,
    },
    /// A range made of something that is known too late.
    #[error(
        "the range of static `{name}` cannot depend on {other}; it is made of numbers and sizes"
    )]
    StaticRange {
        /// The static.
        name: String,
        /// What it depends on.
        other: String,
    },
    /// A size that depends on a static.
    #[error(
        "the size of dimension `{dim}` would depend on static `{name}`, whose value is chosen after memory is laid out; a size is made of numbers and sizes"
    )]
    StaticSize {
        /// The static.
        name: String,
        /// The dimension.
        dim: String,
    },
    /// An index divided by a static that may be 0.
    #[error(
        "an index cannot be divided by {divisor}, which may be 0 in the range of static `{name}`; let the range start at 1, or divide by a number or a size"
    )]
    StaticDivisor {
        /// The static.
        name: String,
        /// What it divides by.
        divisor: String,
    },
    /// A value chosen for something that is no static.
    #[error("`{name}` is not a static, so its value cannot be chosen for a run")]
    NotAStatic {
        /// What it is.
        name: String,
    },
    /// A value for a size that the program does not have.
    #[error("the program has no size `{name}`; {}", its_sizes(.sizes))]
    NoSuchSize {
        /// The name given.
        name: String,
        /// What there is.
        sizes: Vec<String>,
    },
    /// An expression over indices that cannot be handled.
    #[error("{0}")]
    Symbolic(String),
    /// The wrong number of values in a constant.
    #[error("the constant needs {expected} values for its dimensions, and {got} are given")]
    ConstantCount {
        /// What the dimensions ask for.
        expected: String,
        /// How many there are.
        got: usize,
    },
    /// A reduction that the dtype does not have.
    #[error("`{op}` cannot reduce {dtype}")]
    Reduction {
        /// The reduction.
        op: &'static str,
        /// The dtype.
        dtype: DType,
    },
    /// Something that only states can have.
    #[error("`{name}` is not a state; declare it with `state {name}: ...` to update it")]
    NotAState {
        /// The node.
        name: String,
    },
    /// A state updated twice.
    #[error("state `{name}` is updated twice; a run gives it one new value")]
    UpdatedTwice {
        /// The state.
        name: String,
    },
    /// An input that a program does not have.
    #[error("the program has no input `{name}`")]
    NotAnInput {
        /// The name asked for.
        name: String,
    },
    /// Two programs that are joined and differ in what a name means.
    #[error("`{name}` is {here} in the program and {there} in the one it is joined with")]
    SpliceConflict {
        /// The name.
        name: String,
        /// What it is in the program.
        here: String,
        /// What it is in the other one.
        there: String,
    },
    /// A program without results.
    #[error("the program has no output and updates no state; add `output NAME`")]
    NoOutput,
}

impl From<loopwright_symbolic::Error> for GraphError {
    fn from(error: loopwright_symbolic::Error) -> GraphError {
        GraphError::Symbolic(error.to_string())
    }
}

fn its_sizes(sizes: &[String]) -> String {
    match sizes {
        [] => "it has no sizes".to_owned(),
        sizes => format!("its sizes are [{}]", sizes.join(", ")),
    }
}
