//! What a C-like language must say about itself to be written by the shared emitter.

use crate::expression::{Expr, Shape};
use crate::family::{convert, declare, entry, lacks, lanes, scalar_ops, tiles, types, words};
use crate::pieces::Pieces;
use crate::syntax::Syntax;
use loopwright_arena::TiSlice;
use loopwright_kernel::{AtomicOp, Module, Space, StructId, TileType, Type, WorkItem};
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
    /// A small function of the prelude.
    Helper,
}

/// How a loop is marked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoopHint {
    /// Its iterations are independent.
    Independent,
    /// It should be written out, so often if that is known.
    Unroll(Option<u64>),
}

/// A dialect of the C-like text: how declarations, types, literals and operations are spelled.
///
/// The order of statements, names, and which value becomes a variable and which is written where it is used are
/// the emitter's. Statements, variables and memory are those of [`Syntax`]. Operations that the language lacks are
/// functions in a prelude; a dialect asks for
/// the ones it mentions through [`Pieces`], and only those are part of the text.
///
/// # Adding a language
///
/// Only [`name`](Dialect::name) and [`header`](Dialect::header) must be said: everything else is ISO C99
/// until the dialect says otherwise, which is all that [`C99`](crate::C99) is. Make a file, say
/// `cuda.rs`, with a unit struct; add it to the dialects in `tests/snapshots.rs` and to the table of
/// emitters in `crates/tools/targets/examples/corpus.rs`; then go down this list.
///
/// 1. **The header** declares `int8_t` … `uint64_t` and their `_MIN` and `_MAX`, by `#include` or, where the
///    compiler has no `<stdint.h>`, by `typedef` and `#define`. The emitter's own text uses these names, and
///    no other type but `float`, `double`, `int` and `void`.
/// 2. **Statements and pointers** ([`Syntax`]), if they are not C's: heads of loops, `if`, calls, and how memory is
///    read and written.
/// 3. **Declarations**: [`declared`](Dialect::declared), [`array`](Dialect::array),
///    [`parameter`](Dialect::parameter), [`function`](Dialect::function), [`prototype`](Dialect::prototype) and
///    [`structure`](Dialect::structure), if a type does not stand before its name. Marks in C's declarations are
///    [`linkage`](Dialect::linkage) (`__device__`, `extern "C" __global__`,
///    `kernel`), [`space`](Dialect::space) (`__shared__`, `__local`) and [`noalias`](Dialect::noalias)
///    (`__restrict__`). The words that the language has taken are
///    [`reserved_words`](Dialect::reserved_words).
/// 4. **Arithmetic**: [`constant`](Dialect::constant), [`map`](Dialect::map), [`cast`](Dialect::cast) and
///    [`bitcast`](Dialect::bitcast), of scalars, if their operators are not C's.
/// 5. **The mathematics library**: [`builtin`](Dialect::builtin), [`infinity`](Dialect::infinity),
///    [`nan`](Dialect::nan), [`math_declaration`](Dialect::math_declaration); and
///    [`function_body`](Dialect::function_body) for an op that the machine has an instruction for.
/// 6. **Work-items**: [`work_item`](Dialect::work_item) (`blockIdx.x`) with
///    [`built_in_work_items`](Dialect::built_in_work_items), [`barrier`](Dialect::barrier) and
///    [`supports_groups`](Dialect::supports_groups).
/// 7. **The entry point** ([`entry`](Dialect::entry)), which takes the parameters one by one on a device;
///    [`parallel_loops`](Dialect::parallel_loops) is false where there is no runtime to call.
/// 8. **Vectors, atomics, tiles**, each as far as the machine has them. Vectors are structs of lanes and
///    tiles arrays of elements until they are overridden; atomics are refused.
///
/// The crate's example `javascript` is a dialect of a language without types and pointers: what such a one overrides.
///
/// A refusal ([`Refusal`]) is a good answer: the caller is told which kernel, and why.
pub trait Dialect: Syntax {
    /// Its name, for messages.
    fn name(&self) -> &'static str;

    /// The text's first line.
    fn title(&self) -> String {
        format!(
            "// {} by Loopwright; to be compiled without contraction of a * b + c.",
            self.name()
        )
    }

    /// What stands before everything else: the integer types, and what entry points are handed.
    fn header(&self) -> String;

    /// Words that mean something in this language, besides those of C.
    fn reserved_words(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether a word means something already, so that nothing can be called that.
    fn is_reserved(&self, word: &str) -> bool {
        words::is_reserved(word) || self.reserved_words().contains(&word)
    }

    /// How loops ask whether they are to be left, where there is a way: the name of what must be declared for that, the condition,
    /// and the declaration.
    fn poll(&self) -> Option<(&'static str, &'static str, &'static str)> {
        None
    }

    /// How a function is marked, with a space behind.
    fn linkage(&self, linkage: Linkage) -> &'static str {
        match linkage {
            Linkage::Internal | Linkage::Separate => "static ",
            Linkage::Entry => "",
            Linkage::Helper => "static inline ",
        }
    }

    /// Whether arithmetic on signed integers wraps around. Where it does not, what could overflow is
    /// computed in the unsigned type.
    fn signed_wraps(&self) -> bool {
        false
    }

    /// How a function of C's library is called that every compiler knows: `memcpy`, and of the
    /// mathematics library those with exact results (`fabsf`, `sqrt`, `floor`, `rint`, `fma` and their like).
    fn builtin(&self, function: &str) -> String {
        function.to_owned()
    }

    /// Infinity, of `f32` or `f64`.
    fn infinity(&self, dtype: DType) -> String {
        let _ = dtype;
        "INFINITY".to_owned()
    }

    /// The quiet NaN of `f32` or `f64` that has no other bit set; without one it is made from its bits.
    fn nan(&self, dtype: DType) -> Option<String> {
        let _ = dtype;
        None
    }

    /// The declaration of a function of the mathematics library, where the header declares none.
    fn math_declaration(&self, function: &str, ty: &str, arity: usize) -> Option<String> {
        let _ = (function, ty, arity);
        None
    }

    /// The statements of the function for a scalar op on `a`, `b` and `c`, where the language has something
    /// better than what is written for all.
    fn function_body(&self, op: Op, dtype: DType, pieces: &mut Pieces) -> Spelled<Option<String>> {
        let _ = (op, dtype, pieces);
        Ok(None)
    }

    /// The statements of the function that converts `a` between a narrow float and `f32` or `f64`, given
    /// those that are written for all.
    fn conversion_body(&self, from: DType, to: DType, portable: &[String]) -> String {
        let _ = (from, to);
        portable.join(" ")
    }

    /// The type of a scalar.
    fn scalar(&self, dtype: DType, pieces: &mut Pieces) -> &'static str {
        types::scalar(dtype, pieces)
    }

    /// The type of a vector held so. [`Shape::Mask`] is asked for only where this dialect made such a
    /// value.
    fn vector(
        &self,
        dtype: DType,
        lanes: u32,
        shape: Shape,
        pieces: &mut Pieces,
    ) -> Spelled<String> {
        let _ = shape;
        lanes::vector(self, dtype, lanes, pieces)
    }

    /// The type of a vector in memory, where only its elements are aligned.
    fn vector_in_memory(&self, dtype: DType, lanes: u32, pieces: &mut Pieces) -> Spelled<String> {
        self.vector(dtype, lanes, Shape::Plain, pieces)
    }

    /// What is put behind the declaration of a struct's field: vectors in structs are aligned to their
    /// size.
    fn field_alignment(&self, ty: &Type) -> Spelled<String> {
        match ty {
            Type::Vector(..) => lacks(
                self,
                "has a vector as a field, which is aligned to its size",
                "no way to say so",
            ),
            Type::Array(element, _) => self.field_alignment(element),
            Type::Scalar(_) | Type::Pointer(..) | Type::Struct(_) | Type::Tile(_) => {
                Ok(String::new())
            }
        }
    }

    /// The definition of a struct of the module.
    fn structure(
        &self,
        id: StructId,
        structs: Structs<'_>,
        pieces: &mut Pieces,
    ) -> Spelled<String> {
        declare::structure(self, id, structs, pieces)
    }

    /// A statement that declares a variable: one that never changes if it has its value, else one that is
    /// assigned to.
    fn declared(
        &self,
        variable: &Declared<'_>,
        value: Option<&Expr>,
        pieces: &mut Pieces,
    ) -> Spelled<String> {
        let declared = declare::variable(self, variable, pieces)?;
        Ok(match value {
            Some(value) => format!("{declared} = {};", value.text),
            None => format!("{declared};"),
        })
    }

    /// A statement that declares an array of `count` such elements.
    fn array(
        &self,
        element: &Declared<'_>,
        space: Space,
        count: u64,
        pieces: &mut Pieces,
    ) -> Spelled<String> {
        declare::array(self, element, space, count, pieces)
    }

    /// The declaration of a parameter.
    fn parameter(&self, parameter: &Declared<'_>, pieces: &mut Pieces) -> Spelled<String> {
        declare::variable(self, parameter, pieces)
    }

    /// A function's head: what stands before the block of its statements. The result has no name.
    fn function(
        &self,
        linkage: Linkage,
        name: &str,
        params: &[String],
        result: Option<&Declared<'_>>,
        pieces: &mut Pieces,
    ) -> Spelled<String> {
        declare::function(self, linkage, name, params, result, pieces)
    }

    /// The declaration of a function with this head, where functions must be declared before they are called.
    fn prototype(&self, head: &str) -> Option<String> {
        Some(format!("{head};"))
    }

    /// The type of a tile.
    fn tile(&self, tile: TileType, pieces: &mut Pieces) -> Spelled<String> {
        tiles::tile(self, tile, pieces)
    }

    /// What a pointer into a space is marked with, with a space behind.
    fn space(&self, space: Space) -> &'static str {
        let _ = space;
        ""
    }

    /// What is put before the name of a pointer that nothing aliases, with a space behind.
    fn noalias(&self) -> &'static str {
        "restrict "
    }

    /// What is put behind the declaration of a private array.
    fn array_alignment(&self) -> &'static str {
        ""
    }

    /// The line before a loop, if the language has such a thing.
    fn loop_hint(&self, hint: LoopHint) -> Option<String> {
        let _ = hint;
        None
    }

    /// A statement that waits for the work-group, if there is such a thing.
    fn barrier(&self, local: bool, global: bool) -> Spelled<String> {
        let _ = (local, global);
        lacks(self, "has a barrier", "no work-groups")
    }

    /// A constant, in every lane.
    fn constant(&self, value: Scalar, lanes: u32, pieces: &mut Pieces) -> Spelled<Expr> {
        let literal = types::literal(self, value, pieces);
        if lanes == 1 {
            Ok(literal)
        } else {
            self.splat(value.dtype(), lanes, &literal, pieces)
        }
    }

    /// A scalar op, lane by lane.
    fn map(
        &self,
        op: Op,
        dtype: DType,
        lanes: u32,
        operands: &[Expr],
        pieces: &mut Pieces,
    ) -> Spelled<Expr> {
        if lanes == 1 {
            scalar_ops::map(self, op, dtype, operands, pieces)
        } else {
            lanes::map(self, op, dtype, lanes, operands, pieces)
        }
    }

    /// A conversion, lane by lane.
    fn cast(
        &self,
        from: DType,
        to: DType,
        lanes: u32,
        value: &Expr,
        pieces: &mut Pieces,
    ) -> Spelled<Expr> {
        if from == to {
            Ok(value.clone())
        } else if lanes == 1 {
            convert::scalar(self, from, to, value, pieces)
        } else {
            lanes::cast(self, [from, to], lanes, value, pieces)
        }
    }

    /// The same bits as another dtype, lane by lane.
    fn bitcast(
        &self,
        from: DType,
        to: DType,
        lanes: u32,
        value: &Expr,
        pieces: &mut Pieces,
    ) -> Spelled<Expr> {
        if from == to {
            Ok(value.clone())
        } else if lanes == 1 {
            convert::scalar_bits(self, from, to, value, pieces)
        } else {
            lanes::bitcast(self, [from, to], lanes, value, pieces)
        }
    }

    /// The scalar in every lane.
    fn splat(&self, dtype: DType, lanes: u32, value: &Expr, pieces: &mut Pieces) -> Spelled<Expr> {
        lanes::splat(self, dtype, lanes, value, pieces)
    }

    /// A vector of these scalars.
    fn build(&self, dtype: DType, values: &[Expr], pieces: &mut Pieces) -> Spelled<Expr> {
        lanes::build(self, dtype, values, pieces)
    }

    /// One lane.
    fn extract(
        &self,
        dtype: DType,
        lanes: u32,
        vector: &Expr,
        lane: u32,
        pieces: &mut Pieces,
    ) -> Spelled<Expr> {
        let _ = (dtype, lanes, pieces);
        Ok(lanes::extract(vector, lane))
    }

    /// The vector with one lane replaced.
    fn insert(
        &self,
        dtype: DType,
        lanes: u32,
        vector: &Expr,
        lane: u32,
        value: &Expr,
        pieces: &mut Pieces,
    ) -> Spelled<Expr> {
        lanes::insert(self, (dtype, lanes), vector, lane, value, pieces)
    }

    /// Lanes picked from two vectors.
    fn shuffle(
        &self,
        dtype: DType,
        lanes: u32,
        left: &Expr,
        right: &Expr,
        picks: &[u32],
        pieces: &mut Pieces,
    ) -> Spelled<Expr> {
        lanes::shuffle(self, (dtype, lanes), [left, right], picks, pieces)
    }

    /// All lanes combined, first to last.
    fn reduce(
        &self,
        op: ReduceOp,
        dtype: DType,
        lanes: u32,
        vector: &Expr,
        pieces: &mut Pieces,
    ) -> Spelled<Expr> {
        lanes::reduce(self, op, (dtype, lanes), vector, pieces)
    }

    /// A value held as its type says, whatever shape it has now.
    fn plain(&self, dtype: DType, lanes: u32, value: Expr, pieces: &mut Pieces) -> Spelled<Expr> {
        let _ = (dtype, lanes, pieces);
        Ok(value)
    }

    /// A vector read from consecutive elements.
    fn load_vector(
        &self,
        dtype: DType,
        lanes: u32,
        address: &Expr,
        pieces: &mut Pieces,
    ) -> Spelled<Expr> {
        lanes::load(self, dtype, lanes, address, pieces)
    }

    /// A statement that writes a vector, held as its type says, to consecutive elements.
    fn store_vector(
        &self,
        dtype: DType,
        lanes: u32,
        address: &Expr,
        value: &Expr,
        pieces: &mut Pieces,
    ) -> Spelled<String> {
        lanes::store(self, (dtype, lanes), address, value, pieces)
    }

    /// What a work-item asks about itself.
    fn work_item(&self, query: WorkItem, axis: u8) -> Spelled<Expr> {
        Ok(entry::work_item(query, axis))
    }

    /// Combines atomically; gives the value before.
    fn atomic(
        &self,
        op: AtomicOp,
        dtype: DType,
        address: &Expr,
        value: &Expr,
        pieces: &mut Pieces,
    ) -> Spelled<Expr> {
        let _ = (op, dtype, address, value, pieces);
        lacks(self, "combines in memory atomically", "no atomics")
    }

    /// Exchanges if equal; gives the value before.
    fn compare_exchange(
        &self,
        dtype: DType,
        address: &Expr,
        expected: &Expr,
        value: &Expr,
        pieces: &mut Pieces,
    ) -> Spelled<Expr> {
        let _ = (dtype, address, expected, value, pieces);
        lacks(self, "compares and exchanges atomically", "no atomics")
    }

    /// A tile read from memory: with the stride from one group of interleaved rows to the next, and how many those are.
    fn tile_load(
        &self,
        tile: TileType,
        address: &Expr,
        rows: (&Expr, u32),
        pieces: &mut Pieces,
    ) -> Spelled<Expr> {
        tiles::load(self, tile, address, rows, pieces)
    }

    /// A statement that writes a tile to memory.
    fn tile_store(
        &self,
        tile: TileType,
        value: &Expr,
        address: &Expr,
        stride: &Expr,
        pieces: &mut Pieces,
    ) -> Spelled<String> {
        tiles::store(self, tile, value, address, stride, pieces)
    }

    /// A tile with one scalar everywhere.
    fn tile_splat(&self, tile: TileType, value: &Expr, pieces: &mut Pieces) -> Spelled<Expr> {
        tiles::splat(self, tile, value, pieces)
    }

    /// `accumulator + left * right`.
    fn tile_mma(
        &self,
        tiles: [TileType; 3],
        left: &Expr,
        right: &Expr,
        accumulator: &Expr,
        pieces: &mut Pieces,
    ) -> Spelled<Expr> {
        tiles::mma(self, tiles, left, right, accumulator, pieces)
    }

    /// Whether the work-items of a group run together: local memory and barriers need that.
    fn supports_groups(&self) -> bool {
        false
    }

    /// The function through which the host runs a kernel whose body is the function `body`.
    fn entry(&self, kernel: &EntryKernel<'_>, pieces: &mut Pieces) -> Spelled<String> {
        entry::entry(self, kernel, pieces)
    }

    /// Whether the language knows everywhere which work-item runs. Where it does not, functions that ask are
    /// handed it.
    fn built_in_work_items(&self) -> bool {
        false
    }

    /// The parameter, beside its own, of a function that is handed its work-item.
    fn work_item_parameter(&self, pieces: &mut Pieces) -> Spelled<&'static str> {
        entry::need_item(pieces)?;
        Ok("const lw_item *item")
    }

    /// What hands it on.
    fn work_item_argument(&self) -> &'static str {
        "item"
    }

    /// Whether there is a runtime that runs parallel loops. Where there is none they are written as
    /// plain loops.
    fn parallel_loops(&self) -> bool {
        true
    }

    /// The parameter through which parallel loops reach the runtime.
    fn runtime_parameter(&self) -> &'static str {
        "const lw_runtime *rt"
    }

    /// What is handed to a parallel loop's task beside its range: these variables, all at once. A statement that makes it, and
    /// the expression that is handed on.
    fn environment(&self, function: &str, name: &str, captured: &[String]) -> (String, String) {
        let initial = captured.join(", ");
        let made = format!("struct {function} {name} = {{{initial}}};");
        (made, format!("&{name}"))
    }

    /// The functions of a parallel loop.
    fn parallel_loop(&self, parallel: &ParallelLoop<'_>) -> String {
        declare::parallel_loop(self, parallel)
    }

    /// A statement that runs `task`, a function of the environment and a range, over `count` steps.
    fn parallel_for(&self, count: &Expr, task: &str, environment: &str) -> String {
        format!(
            "rt->parallel_for(rt->context, {}, {task}, {environment});",
            count.text
        )
    }
}

/// The structs of a module, where types are spelled.
#[derive(Clone, Copy)]
pub struct Structs<'a> {
    /// The module.
    pub module: &'a Module,
    /// The structs' names in the text.
    pub names: &'a TiSlice<StructId, String>,
    /// Their fields' names in the text.
    pub fields: &'a TiSlice<StructId, Vec<String>>,
}

/// What is declared.
#[derive(Clone, Copy)]
pub struct Declared<'a> {
    /// Its type.
    pub ty: &'a Type,
    /// Its name, which nothing else in the function has.
    pub name: &'a str,
    /// How it is held, if it is a vector of `bool`.
    pub shape: Shape,
    /// Whether it is a pointer to what is only read.
    pub constant: bool,
    /// Whether it is a pointer that nothing aliases.
    pub noalias: bool,
    /// The structs that the type may name.
    pub structs: Structs<'a>,
}

/// A parallel loop that became functions of its own.
pub struct ParallelLoop<'a> {
    /// The function that runs a part of its iterations.
    pub name: &'a str,
    /// The function of an environment and a range that calls it.
    pub task: &'a str,
    /// The names of what it is handed, each with its declaration in an environment.
    pub captured: &'a [(String, String)],
    /// The parameters of the function: those, and the range's two.
    pub params: &'a [String],
    /// The statements.
    pub body: &'a str,
}

/// A kernel whose entry point is wanted.
pub struct EntryKernel<'a> {
    /// The entry point's name.
    pub symbol: &'a str,
    /// The function with its statements.
    pub body: &'a str,
    /// Its parameters.
    pub params: &'a [Declared<'a>],
    /// Whether the body asks about work-items.
    pub work_items: bool,
    /// Whether the body has parallel loops.
    pub runtime: bool,
}
