//! Memory that caches do not keep: arrays that are written past them, and rows that are fetched before their turn.
//!
//! A plain store first reads the line that it writes to. Where an array is larger than what stays in a cache, and nobody reads it
//! in the kernel, that is a third of all traffic. A store past the caches saves it.
//!
//! A loop over rows that reads each of them several times waits for memory in its first reading, and leaves memory idle in the
//! others. So the second reading of a row fetches the next one. A loop that copies a few elements of each row of a larger array, as
//! packing does, goes where the machine does not expect it, so that it fetches some rows ahead.

use super::analyse::{Analysis, address};
use super::is_kernel;
use super::linear::Linear;
use loopwright_kernel::{Block, Function, Inst, Module, Space, Stmt, Type, Value};
use rustc_hash::{FxHashMap, FxHashSet};

/// Arrays that are so many bytes together are written past the caches. Copies of 4 MiB are as fast either way on a server core with 1.25 MiB
/// of second-level cache, copies of 8 MiB almost twice as fast, and of 16 MiB more than that.
const STREAM_BYTES: i64 = 8 << 20;

/// Those among them that are smaller than this are not worth it.
const ARRAY_BYTES: i64 = 1 << 20;

/// Bytes of a line of memory. Stores of whole ones can be in any order; parts of one must meet on their way.
const LINE: i64 = 64;

/// Rows of at most so many bytes are fetched early: a part of the first-level cache. Of longer ones, the machine itself sees
/// where they go on.
const ROW_BYTES: i64 = 16 << 10;

/// Rows are fetched early if together they are so many bytes: no cache has them.
const ROWS_BYTES: i64 = 4 << 20;

/// So many vectors one round of a loop may be ahead of the one before for its accesses to be one stream: what is between is
/// accessed in the same round.
const ROUND_VECTORS: i64 = 8;

/// A copy whose reads are so many bytes apart from one round to the next fetches ahead.
const APART_BYTES: i64 = 1024;

/// So many rounds ahead: copies of 256 bytes each then take as long as memory does.
const ROUNDS_AHEAD: i64 = 12;

/// How a kernel goes through memory.
#[derive(Default)]
pub(crate) struct Streams {
    /// Arrays that are written past the caches.
    written: FxHashSet<Value>,
    /// For a loop's variable and an array that the loop reads: how far from each vector that one is which is fetched with it.
    ahead: FxHashMap<(Value, Value), i32>,
}

impl Streams {
    /// Whether any array is written past the caches.
    pub(crate) fn write(&self) -> bool {
        !self.written.is_empty()
    }

    /// Whether this one is.
    pub(crate) fn writes(&self, array: Value) -> bool {
        self.written.contains(&array)
    }

    /// In the loop of a variable: how far from a vector of an array the one is that should be fetched with it.
    pub(crate) fn ahead(&self, var: Value, array: Value) -> Option<i32> {
        self.ahead.get(&(var, array)).copied()
    }
}

/// Finds the streams of a function.
pub(crate) fn streams(module: &Module, function: &Function, found: &Analysis) -> Streams {
    if !is_kernel(function) {
        return Streams::default();
    }
    let arrays = function.params.iter().filter_map(|param| {
        let ty = function.ty(param.value);
        let global = matches!(ty, Type::Pointer(Space::Global | Space::Constant, _));
        (param.noalias && global).then(|| (param.value, Use::default()))
    });
    let mut walk = Walk {
        module,
        function,
        found,
        arrays: arrays.collect(),
        loops: Vec::new(),
        ahead: FxHashMap::default(),
    };
    walk.block(&function.body);
    let Walk { arrays, ahead, .. } = walk;
    let large = |used: &Use| !used.read && !used.other && used.bytes >= ARRAY_BYTES;
    let together = arrays.values().filter(|used| large(used));
    let together = together.fold(0i64, |sum, used| sum.saturating_add(used.bytes));
    let written = arrays
        .iter()
        .filter(|(_, used)| together >= STREAM_BYTES && large(used))
        .map(|(array, _)| *array)
        .collect();
    Streams { written, ahead }
}

/// What a function does with an array.
#[derive(Clone, Copy, Default)]
struct Use {
    read: bool,
    /// In a way that is not followed.
    other: bool,
    /// Bytes that are written in whole vectors, in an order that memory takes, and each once.
    bytes: i64,
}

/// A loop around what is looked at.
#[derive(Clone, Copy)]
struct Around {
    var: Option<Value>,
    rounds: Option<i64>,
    step: Option<i64>,
}

struct Walk<'f> {
    module: &'f Module,
    function: &'f Function,
    found: &'f Analysis,
    arrays: FxHashMap<Value, Use>,
    loops: Vec<Around>,
    ahead: FxHashMap<(Value, Value), i32>,
}

impl Walk<'_> {
    fn known(&self, value: Value) -> Option<i64> {
        match self.found.constants[value] {
            Some(scalar) => scalar.as_i64(),
            None => self.found.forms[value].as_ref().and_then(Linear::known),
        }
    }

    fn form(&self, value: Value) -> Linear {
        let form = &self.found.forms[value];
        form.clone().unwrap_or_else(|| Linear::value(value))
    }

    fn around(&self, var: Value, [start, end, step]: [Value; 3]) -> Around {
        let span = self.form(end).plus(&self.form(start).times(-1)).known();
        let step = self.known(step).filter(|step| *step > 0);
        let rounds = match (span, step) {
            (Some(span), Some(step)) => Some(span.max(0) / step + i64::from(span % step > 0)),
            _ => None,
        };
        Around {
            var: Some(var),
            rounds,
            step,
        }
    }

    fn block(&mut self, block: &Block) {
        for stmt in block {
            match stmt {
                Stmt::Let(_, Inst::Load { ptr, .. }) => {
                    if let Some(used) = self.arrays.get_mut(ptr) {
                        used.read = true;
                    }
                }
                Stmt::Store { ptr, index, value } => {
                    self.stored(*ptr, *index, *value);
                    self.escapes(*value);
                }
                Stmt::For {
                    var,
                    start,
                    end,
                    step,
                    body,
                    ..
                } => {
                    self.loops.push(self.around(*var, [*start, *end, *step]));
                    self.rows(body);
                    self.copies(body);
                    self.block(body);
                    self.loops.pop();
                }
                Stmt::While { head, body, .. } => {
                    self.loops.push(Around {
                        var: None,
                        rounds: None,
                        step: None,
                    });
                    self.block(head);
                    self.block(body);
                    self.loops.pop();
                }
                other => {
                    other.operands(&mut |operand| self.escapes(*operand));
                    for inner in other.blocks().into_iter().flatten() {
                        self.block(inner);
                    }
                }
            }
        }
    }

    fn escapes(&mut self, value: Value) {
        if let Some(used) = self.arrays.get_mut(&value) {
            used.other = true;
        }
    }

    /// How far an address moves from one round of a loop to the next, in bytes; `None` if that is not known, or nothing.
    fn movement(&self, address: &Linear, around: &Around) -> Option<i64> {
        let var = around.var?;
        let mut terms = address
            .terms
            .iter()
            .filter(|term| term.factors.contains(&var));
        let by = match (terms.next(), terms.next()) {
            (Some(term), None) => term.without(var).known()?,
            _ => return None,
        };
        by.checked_mul(around.step?)
    }

    /// Bytes of a vector.
    fn vector_bytes(&self, value: Value) -> Option<i64> {
        match self.function.ty(value) {
            Type::Vector(dtype, lanes) => Some(dtype.bytes() as i64 * i64::from(*lanes)),
            _ => None,
        }
    }

    fn is_stream(&self, moved: i64, bytes: i64) -> bool {
        moved >= bytes && moved <= bytes * ROUND_VECTORS
    }

    fn stored(&mut self, ptr: Value, index: Value, value: Value) {
        if !self.arrays.contains_key(&ptr) {
            return;
        }
        let Some(bytes) = self.vector_bytes(value) else {
            return;
        };
        let address = address(self.module, self.function, self.found, ptr, index);
        let inner = self.loops.last();
        let inner = inner.and_then(|inner| self.movement(&address, inner));
        let in_order = bytes >= LINE || inner.is_some_and(|moved| self.is_stream(moved, bytes));
        let total = self.loops.iter().try_fold(bytes, |product, around| {
            self.movement(&address, around)?;
            product.checked_mul(around.rounds?)
        });
        if let Some(used) = self.arrays.get_mut(&ptr) {
            match total {
                Some(total) if in_order => used.bytes = used.bytes.saturating_add(total),
                _ => used.other = true,
            }
        }
    }

    /// Rows that the innermost loops of a loop's body read one after the other.
    fn rows(&mut self, body: &Block) {
        let Some(outer) = self.loops.last().copied() else {
            return;
        };
        let mut seen: FxHashSet<Value> = FxHashSet::default();
        let mut fetched: FxHashSet<Value> = FxHashSet::default();
        for stmt in body {
            let Stmt::For {
                var,
                start,
                end,
                step,
                body,
                ..
            } = stmt
            else {
                continue;
            };
            let inner = self.around(*var, [*start, *end, *step]);
            let mut here: Vec<(Value, Option<i32>)> = Vec::new();
            for stmt in body {
                let Stmt::Let(value, Inst::Load { ptr, index }) = stmt else {
                    continue;
                };
                if self.arrays.contains_key(ptr)
                    && let Some(bytes) = self.vector_bytes(*value)
                {
                    let address = address(self.module, self.function, self.found, *ptr, *index);
                    here.push((*ptr, self.next_row(&address, &outer, &inner, bytes)));
                }
            }
            for (array, next) in &here {
                if let Some(next) = next
                    && seen.contains(array)
                    && fetched.insert(*array)
                {
                    self.ahead.insert((*var, *array), *next);
                }
            }
            seen.extend(here.into_iter().map(|(array, _)| array));
        }
    }

    /// What an innermost loop that only copies reads far apart: from one round to the next, or, where it has few rounds, from one
    /// round of the loop around it to the next.
    fn copies(&mut self, body: &Block) {
        let (inner, outer) = match self.loops.as_slice() {
            [.., outer, inner] => (*inner, Some(*outer)),
            [inner] => (*inner, None),
            [] => return,
        };
        let Some(var) = inner.var else {
            return;
        };
        let copies = body.iter().all(|stmt| match stmt {
            Stmt::Let(_, Inst::Load { .. }) | Stmt::Store { .. } => true,
            Stmt::Let(value, Inst::Map(..)) => *self.function.ty(*value) == Type::INDEX,
            _ => false,
        });
        if !copies {
            return;
        }
        let short = inner.rounds.is_some_and(|rounds| rounds <= ROUND_VECTORS);
        let around = match outer {
            Some(outer) if short => outer,
            _ => inner,
        };
        if around.rounds.is_none_or(|rounds| rounds < 2 * ROUNDS_AHEAD) {
            return;
        }
        for stmt in body {
            let Stmt::Let(value, Inst::Load { ptr, index }) = stmt else {
                continue;
            };
            if !self.arrays.contains_key(ptr) || self.vector_bytes(*value).is_none() {
                continue;
            }
            let address = address(self.module, self.function, self.found, *ptr, *index);
            let moved = self.movement(&address, &around);
            let ahead = moved
                .filter(|moved| moved.abs() >= APART_BYTES)
                .and_then(|moved| i32::try_from(moved.checked_mul(ROUNDS_AHEAD)?).ok());
            if let Some(ahead) = ahead {
                self.ahead.insert((var, *ptr), ahead);
            }
        }
    }

    /// How far the next row is, if a loop goes through a row from its start to its end.
    fn next_row(
        &self,
        address: &Linear,
        outer: &Around,
        inner: &Around,
        bytes: i64,
    ) -> Option<i32> {
        let next = self.movement(address, outer)?;
        let moved = self.movement(address, inner)?;
        let row = moved.checked_mul(inner.rounds?)?;
        let rows = next.checked_mul(outer.rounds?)?;
        let worth = self.is_stream(moved, bytes) && row <= ROW_BYTES && rows >= ROWS_BYTES;
        // Rows that overlap, or lie far apart, are something else.
        let side_by_side = next >= row && next <= row.checked_mul(2)?;
        (worth && side_by_side).then(|| i32::try_from(next).ok())?
    }
}
