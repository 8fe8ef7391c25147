//! Takes private arrays apart whose every element is accessed at a constant place.
//!
//! What becomes of each element is an alloc of its own with one element, which emitters write as a
//! plain local variable: a register. The accumulators of a register-tiled matrix product are such
//! arrays once the loops over the tile are written out.

use crate::ir::{Block, Function, Inst, Space, Stmt, Type, Value};
use loopwright_arena::TiVec;
use loopwright_ops::{DType, Scalar};
use loopwright_threads::interrupt::unwind_if_asked;

/// Pieces beyond which an array stays one: no machine has that many registers.
const MOST_PIECES: usize = 256;

/// Runs the pass.
pub fn run(function: &mut Function) {
    let mut scan = Scan {
        array_of: vec![None; function.values.len()].into(),
        known: vec![None; function.values.len()].into(),
        arrays: Vec::new(),
    };
    scan.block(function, &function.body);
    let Scan {
        array_of,
        known,
        mut arrays,
    } = scan;
    for array in &mut arrays {
        array.settle();
    }
    if arrays.iter().all(|array| array.pieces.is_empty()) {
        return;
    }
    let zero = function.value(Type::INDEX, "zero");
    let body = std::mem::take(&mut function.body);
    let mut split = Split {
        function,
        array_of,
        known,
        arrays,
        zero,
    };
    let mut out = vec![Stmt::Let(zero, Inst::Const(Scalar::i64(0)))];
    split.block(body, &mut out);
    function.body = out;
}

/// A private array.
struct Array {
    ty: Type,
    count: u64,
    /// First element and lanes of every access; empty if the array cannot be taken apart.
    pieces: Vec<Piece>,
    refused: bool,
}

/// Elements that are always accessed together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Piece {
    start: u64,
    lanes: u32,
    /// The alloc it has become.
    alloc: Option<Value>,
}

impl Array {
    /// Decides whether the array is taken apart, and into what.
    fn settle(&mut self) {
        self.pieces.sort_unstable();
        self.pieces.dedup();
        let overlaps = |pair: &[Piece]| pair[0].start + u64::from(pair[0].lanes) > pair[1].start;
        let outside = |piece: &Piece| piece.start + u64::from(piece.lanes) > self.count;
        if self.refused
            || self.count <= 1
            || self.pieces.len() > MOST_PIECES
            || self.pieces.windows(2).any(overlaps)
            || self.pieces.iter().any(outside)
        {
            self.pieces.clear();
        }
    }
}

struct Scan {
    /// The array a pointer points at, if it is an alloc's own.
    array_of: TiVec<Value, Option<u32>>,
    known: TiVec<Value, Option<i64>>,
    arrays: Vec<Array>,
}

impl Scan {
    fn block(&mut self, function: &Function, block: &Block) {
        unwind_if_asked();
        for stmt in block {
            match stmt {
                Stmt::Let(value, Inst::Const(scalar)) if scalar.dtype() == DType::I64 => {
                    self.known[*value] = scalar.as_i64();
                }
                Stmt::Let(
                    value,
                    Inst::Alloc {
                        space: Space::Private,
                        ty:
                            ty
                            @ (Type::Scalar(_) | Type::Vector(..) | Type::Pointer(..) | Type::Tile(_)),
                        count,
                    },
                ) => {
                    self.array_of[*value] = Some(self.arrays.len() as u32);
                    self.arrays.push(Array {
                        ty: ty.clone(),
                        count: *count,
                        pieces: Vec::new(),
                        refused: false,
                    });
                }
                Stmt::Let(value, Inst::Load { ptr, index }) => {
                    self.access(*ptr, *index, function.ty(*value));
                }
                Stmt::Store { ptr, index, value } => {
                    self.access(*ptr, *index, function.ty(*value));
                    self.refuse(*value);
                }
                other => other.operands(&mut |operand| self.refuse(*operand)),
            }
            for inner in stmt.blocks().into_iter().flatten() {
                self.block(function, inner);
            }
        }
    }

    /// The value is used in a way that needs an array to stay as it is, should it point at one.
    fn refuse(&mut self, value: Value) {
        if let Some(array) = self.array_of[value] {
            self.arrays[array as usize].refused = true;
        }
    }

    fn access(&mut self, ptr: Value, index: Value, ty: &Type) {
        let Some(array) = self.array_of[ptr] else {
            return;
        };
        let array = &mut self.arrays[array as usize];
        let start = self.known[index].and_then(|at| u64::try_from(at).ok());
        // A vector through a pointer to vectors is one element; through one to scalars, several.
        let lanes = if *ty == array.ty { 1 } else { ty.lanes() };
        match start {
            Some(start) if start < array.count => array.pieces.push(Piece {
                start,
                lanes,
                alloc: None,
            }),
            _ => array.refused = true,
        }
    }
}

struct Split<'f> {
    function: &'f mut Function,
    array_of: TiVec<Value, Option<u32>>,
    known: TiVec<Value, Option<i64>>,
    arrays: Vec<Array>,
    zero: Value,
}

impl Split<'_> {
    fn block(&mut self, block: Block, out: &mut Block) {
        unwind_if_asked();
        for mut stmt in block {
            match &mut stmt {
                Stmt::Let(value, Inst::Alloc { .. }) if self.split(*value, out) => continue,
                Stmt::Let(_, Inst::Load { ptr, index }) | Stmt::Store { ptr, index, .. } => {
                    if let Some(alloc) = self.piece(*ptr, *index) {
                        *ptr = alloc;
                        *index = self.zero;
                    }
                }
                _ => {
                    for inner in stmt.blocks_mut().into_iter().flatten() {
                        let mut rewritten = Block::with_capacity(inner.len());
                        self.block(std::mem::take(inner), &mut rewritten);
                        *inner = rewritten;
                    }
                }
            }
            out.push(stmt);
        }
    }

    /// Puts the pieces of an array in its place; says whether it is taken apart at all.
    fn split(&mut self, value: Value, out: &mut Block) -> bool {
        let Some(number) = self.array_of[value] else {
            return false;
        };
        let Array { ty, pieces, .. } = &mut self.arrays[number as usize];
        let ty = &*ty;
        for piece in pieces.iter_mut() {
            let element = match ty {
                Type::Scalar(dtype) => Type::of(*dtype, piece.lanes),
                other => other.clone(),
            };
            let name = match self.function.values[value].name.as_str() {
                "" => String::new(),
                name => format!("{name}_{}", piece.start),
            };
            let alloc = self
                .function
                .value(element.clone().pointer(Space::Private), name);
            piece.alloc = Some(alloc);
            out.push(Stmt::Let(
                alloc,
                Inst::Alloc {
                    space: Space::Private,
                    ty: element,
                    count: 1,
                },
            ));
        }
        !pieces.is_empty()
    }

    /// The alloc that has taken the place of an element.
    fn piece(&self, ptr: Value, index: Value) -> Option<Value> {
        let array = &self.arrays[self.array_of.get(ptr).copied().flatten()? as usize];
        let start = u64::try_from(self.known.get(index).copied().flatten()?).ok()?;
        let at = array
            .pieces
            .binary_search_by_key(&start, |piece| piece.start)
            .ok()?;
        array.pieces[at].alloc
    }
}
