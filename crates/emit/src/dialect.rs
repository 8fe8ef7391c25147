//! What a C-like language must say about itself to be written by the shared emitter.

use crate::expression::{Expr, Shape};
use crate::pieces::Pieces;
use loopwright_kernel::{AtomicOp, Space, TileType, Type, WorkItem};
use loopwright_ops::{DType, Op, ReduceOp, Scalar};

/// Something a dialect cannot say: the reason, without the function's name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal(pub String);

/// The result of asking a dialect for text.
pub type Spelled<T> = Result<T, Refusal>;

/// How a function is marked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Linkage {
    /// Only this module calls it.
    Internal,
    /// Only this module calls it, and it must stay a function of its own.
    Separate,
    /// The host calls it.
    Entry,
}

/// How a loop is marked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoopHint {
    /// Its iterations are independent.
    Independent,
    /// It should be written out, so often if that is known.
    Unroll(Option<u64>),
}

/// A dialect of the C-like text: how types, literals and operations are spelled.
///
/// Control flow, names, and which value becomes a variable and which is written where it is used are
/// the emitter's. Operations that the language lacks are functions in a prelude; a dialect asks for
/// the ones it mentions through [`Pieces`], and only those are part of the text.
pub trait Dialect {
    /// Its name, for messages.
    fn name(&self) -> &'static str;

    /// Whether a word means something already, so that nothing can be called that.
    fn is_reserved(&self, word: &str) -> bool;

    /// What stands before everything else.
    fn header(&self) -> &'static str;

    /// How a function is marked, with a space behind.
    fn linkage(&self, linkage: Linkage) -> &'static str;

    /// The type of a scalar.
    fn scalar(&self, dtype: DType, pieces: &mut Pieces) -> &'static str;

    /// The type of a vector held so.
    fn vector(
        &self,
        dtype: DType,
        lanes: u32,
        shape: Shape,
        pieces: &mut Pieces,
    ) -> Spelled<String>;

    /// The type of a vector in memory, where only its elements are aligned.
    fn vector_in_memory(&self, dtype: DType, lanes: u32, pieces: &mut Pieces) -> Spelled<String>;

    /// What is put behind the declaration of a struct's field.
    fn field_alignment(&self, ty: &Type) -> String;

    /// The type of a tile.
    fn tile(&self, tile: TileType, pieces: &mut Pieces) -> Spelled<String>;

    /// What a pointer into a space is marked with, with a space behind.
    fn space(&self, space: Space) -> &'static str;

    /// What is put before the name of a pointer that nothing aliases, with a space behind.
    fn noalias(&self) -> &'static str;

    /// What is put behind the declaration of a private array.
    fn array_alignment(&self) -> &'static str;

    /// The line before a loop, if the language has such a thing.
    fn loop_hint(&self, hint: LoopHint) -> Option<String>;

    /// A statement that waits for the work-group, if there is such a thing.
    fn barrier(&self, local: bool, global: bool) -> Spelled<String>;

    /// A constant, in every lane.
    fn constant(&self, value: Scalar, lanes: u32, pieces: &mut Pieces) -> Spelled<Expr>;

    /// A scalar op, lane by lane.
    fn map(
        &self,
        op: Op,
        dtype: DType,
        lanes: u32,
        operands: &[Expr],
        pieces: &mut Pieces,
    ) -> Spelled<Expr>;

    /// A conversion, lane by lane.
    fn cast(
        &self,
        from: DType,
        to: DType,
        lanes: u32,
        value: &Expr,
        pieces: &mut Pieces,
    ) -> Spelled<Expr>;

    /// The same bits as another dtype, lane by lane.
    fn bitcast(
        &self,
        from: DType,
        to: DType,
        lanes: u32,
        value: &Expr,
        pieces: &mut Pieces,
    ) -> Spelled<Expr>;

    /// The scalar in every lane.
    fn splat(&self, dtype: DType, lanes: u32, value: &Expr, pieces: &mut Pieces) -> Spelled<Expr>;

    /// A vector of these scalars.
    fn build(&self, dtype: DType, values: &[Expr], pieces: &mut Pieces) -> Spelled<Expr>;

    /// One lane.
    fn extract(
        &self,
        dtype: DType,
        lanes: u32,
        vector: &Expr,
        lane: u32,
        pieces: &mut Pieces,
    ) -> Spelled<Expr>;

    /// The vector with one lane replaced.
    fn insert(
        &self,
        dtype: DType,
        lanes: u32,
        vector: &Expr,
        lane: u32,
        value: &Expr,
        pieces: &mut Pieces,
    ) -> Spelled<Expr>;

    /// Lanes picked from two vectors.
    fn shuffle(
        &self,
        dtype: DType,
        lanes: u32,
        left: &Expr,
        right: &Expr,
        picks: &[u32],
        pieces: &mut Pieces,
    ) -> Spelled<Expr>;

    /// All lanes combined, first to last.
    fn reduce(
        &self,
        op: ReduceOp,
        dtype: DType,
        lanes: u32,
        vector: &Expr,
        pieces: &mut Pieces,
    ) -> Spelled<Expr>;

    /// A value held as its type says, whatever shape it has now.
    fn plain(&self, dtype: DType, lanes: u32, value: Expr, pieces: &mut Pieces) -> Spelled<Expr>;

    /// A vector read from consecutive elements.
    fn load_vector(
        &self,
        dtype: DType,
        lanes: u32,
        address: &Expr,
        pieces: &mut Pieces,
    ) -> Spelled<Expr>;

    /// A statement that writes a vector, held as its type says, to consecutive elements.
    fn store_vector(
        &self,
        dtype: DType,
        lanes: u32,
        address: &Expr,
        value: &Expr,
        pieces: &mut Pieces,
    ) -> Spelled<String>;

    /// The address of an array's first element, from that of the array.
    fn elements(&self, pointer: &Expr) -> Expr;

    /// What a work-item asks about itself.
    fn work_item(&self, query: WorkItem, axis: u8) -> Spelled<Expr>;

    /// Combines atomically; gives the value before.
    fn atomic(
        &self,
        op: AtomicOp,
        dtype: DType,
        address: &Expr,
        value: &Expr,
        pieces: &mut Pieces,
    ) -> Spelled<Expr>;

    /// Exchanges if equal; gives the value before.
    fn compare_exchange(
        &self,
        dtype: DType,
        address: &Expr,
        expected: &Expr,
        value: &Expr,
        pieces: &mut Pieces,
    ) -> Spelled<Expr>;

    /// A tile read from memory.
    fn tile_load(
        &self,
        tile: TileType,
        address: &Expr,
        stride: &Expr,
        pieces: &mut Pieces,
    ) -> Spelled<Expr>;

    /// A statement that writes a tile to memory.
    fn tile_store(
        &self,
        tile: TileType,
        value: &Expr,
        address: &Expr,
        stride: &Expr,
        pieces: &mut Pieces,
    ) -> Spelled<String>;

    /// A tile with one scalar everywhere.
    fn tile_splat(&self, tile: TileType, value: &Expr, pieces: &mut Pieces) -> Spelled<Expr>;

    /// `accumulator + left * right`.
    fn tile_mma(
        &self,
        tiles: [TileType; 3],
        left: &Expr,
        right: &Expr,
        accumulator: &Expr,
        pieces: &mut Pieces,
    ) -> Spelled<Expr>;

    /// Whether a kernel may do this; work-group cooperation needs a machine with work-groups.
    fn supports_groups(&self) -> bool;

    /// The function through which the host runs a kernel whose body is the function `body`.
    fn entry(&self, kernel: &EntryKernel<'_>, pieces: &mut Pieces) -> Spelled<String>;

    /// The parameters, beside its own, of a function that asks about work-items.
    fn work_item_parameter(&self, pieces: &mut Pieces) -> Spelled<&'static str>;

    /// What hands them on.
    fn work_item_argument(&self) -> &'static str;

    /// The parameter through which parallel loops reach the runtime.
    fn runtime_parameter(&self) -> &'static str;

    /// A statement that runs `task`, a function of the environment and a range, over `count` steps.
    fn parallel_for(&self, count: &Expr, task: &str, environment: &str) -> String;
}

/// A kernel whose entry point is wanted.
pub struct EntryKernel<'a> {
    /// The entry point's name.
    pub symbol: &'a str,
    /// The function with its statements.
    pub body: &'a str,
    /// The types of its parameters, and for each the text of a pointer to it, or of the pointer
    /// itself, as a cast would name it.
    pub params: &'a [(Type, String)],
    /// Whether the body asks about work-items.
    pub work_items: bool,
    /// Whether the body has parallel loops.
    pub runtime: bool,
}
