//! Has a kernel write down what it stores: where, what was there and what is there now.
//!
//! Not one of the standard passes: it is for looking into a kernel while it runs, and uses nothing but
//! what every backend has (an atomic counter, loads, stores, conversions).
//!
//! The kernel gets one more parameter, `log: ptr<global, u64>`, the last one. Before a run, element 0 is to
//! be 0 and element 1 the number of records there is room for; records of [`RECORD_WORDS`] words follow from
//! [`HEADER_WORDS`] on. After the run, element 0 is the number of stores; only as many as there was room for
//! are written down. A record is the number of its [`StoreSite`], the element's index, and the bits of
//! its old and its new value.
//!
//! Every store of a scalar or a vector to global memory is logged, a vector as one record for each lane.
//! Not logged are stores of tiles, atomics, asynchronous copies, and what called functions store. The
//! records of parallel loops and of several work-items stand in no particular order.

use crate::ir::{
    Access, AtomicOp, Block, Function, FunctionKind, Inst, LoopKind, Module, Space, Stmt, Type,
    Value,
};
use crate::text::statement_line;
use loopwright_arena::TiVec;
use loopwright_ops::{DType, Op, Scalar};
use smallvec::smallvec;

/// Words before the first record: the number of stores, and the number of records there is room for.
pub const HEADER_WORDS: u64 = 2;

/// Words of a record: site, index, old bits, new bits.
pub const RECORD_WORDS: u64 = 4;

/// A store that is logged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoreSite {
    /// The parameter whose memory it writes. Where it is not known which, the pointer; indices are
    /// then counted from there.
    pub buffer: String,
    /// What it writes.
    pub dtype: DType,
    /// The variables of the loops around it, and the statement.
    pub place: String,
}

/// Has a kernel log its stores; gives them by number. Nothing happens to a module without that kernel, or
/// to a kernel without such stores.
pub fn log_stores(module: &mut Module, kernel: &str) -> Vec<StoreSite> {
    let found = module.functions.position(|function| {
        function.name == kernel && matches!(function.kind, FunctionKind::Kernel { .. })
    });
    let Some(number) = found else {
        return Vec::new();
    };
    let original = module.functions[number].clone();
    let mut function = original.clone();
    let pointer = Type::Scalar(DType::U64).pointer(Space::Global);
    let log = function.param(pointer, "log", Access::ReadWrite, true);
    let body = std::mem::take(&mut function.body);
    let mut logging = Logging {
        module,
        original: &original,
        bases: vec![None; original.values.len()].into(),
        function,
        log,
        loops: Vec::new(),
        sites: Vec::new(),
    };
    for param in &original.params {
        if let Some(elements) = elements_of(original.ty(param.value)) {
            logging.bases[param.value] = Some(Base {
                param: param.value,
                elements,
                offsets: Vec::new(),
            });
        }
    }
    let body = logging.block(body);
    let Logging {
        mut function,
        sites,
        ..
    } = logging;
    if !sites.is_empty() {
        function.body = body;
        function.compact();
        module.functions[number] = function;
    }
    sites
}

/// Where a pointer comes from.
#[derive(Clone)]
struct Base {
    param: Value,
    /// Elements in one step of its index: the lanes of what it points at.
    elements: u32,
    /// What was added to the parameter on the way, in steps.
    offsets: Vec<Value>,
}

struct Logging<'m> {
    module: &'m Module,
    /// The function as it was, for showing its statements.
    original: &'m Function,
    bases: TiVec<Value, Option<Base>>,
    function: Function,
    log: Value,
    /// The variables of the loops around.
    loops: Vec<Value>,
    sites: Vec<StoreSite>,
}

/// How many elements one step of a pointer's index is, where it points at elements.
fn elements_of(pointer: &Type) -> Option<u32> {
    match pointer.pointee()? {
        pointee @ (Type::Scalar(_) | Type::Vector(..)) => Some(pointee.lanes()),
        Type::Pointer(..) | Type::Array(..) | Type::Struct(_) | Type::Tile(_) => None,
    }
}

impl Logging<'_> {
    fn block(&mut self, block: Block) -> Block {
        let mut out = Block::with_capacity(block.len());
        for mut stmt in block {
            match &mut stmt {
                Stmt::Let(value, Inst::Offset { ptr, index }) => {
                    let mut base = self.bases[*ptr].clone();
                    if let Some(base) = &mut base {
                        base.offsets.push(*index);
                    }
                    self.bases[*value] = base;
                }
                Stmt::Store { ptr, index, value } => {
                    let (ptr, index, value) = (*ptr, *index, *value);
                    let ty = self.function.ty(ptr).clone();
                    let dtype = self.function.ty(value).dtype();
                    if let (Type::Pointer(Space::Global, _), Some(dtype)) = (ty, dtype) {
                        let site = self.site(&stmt, ptr, dtype);
                        self.store(site, ptr, index, value, &mut out);
                    }
                }
                Stmt::For { var, kind, .. } => {
                    self.loops.push(*var);
                    // The counter ties the iterations together. Those of parallel loops stay
                    // independent: it is atomic, and the order of records means nothing.
                    if *kind == LoopKind::Vectorize {
                        *kind = LoopKind::Serial;
                    }
                }
                _ => {}
            }
            for inner in stmt.blocks_mut().into_iter().flatten() {
                *inner = self.block(std::mem::take(inner));
            }
            if let Stmt::For { .. } = stmt {
                self.loops.pop();
            }
            out.push(stmt);
        }
        out
    }

    /// A new site for a statement.
    fn site(&mut self, stmt: &Stmt, ptr: Value, dtype: DType) -> u64 {
        let base = self.bases[ptr].as_ref();
        let base = base.map_or(ptr, |base| base.param);
        // The old value is read where perhaps nothing was before.
        for param in &mut self.function.params {
            if param.value == base && param.access == Access::Write {
                param.access = Access::ReadWrite;
            }
        }
        let mut place = String::new();
        for var in &self.loops {
            place.push_str(&format!("for {}: ", self.name(*var)));
        }
        place.push_str(&statement_line(self.module, self.original, stmt));
        self.sites.push(StoreSite {
            buffer: self.name(base),
            dtype,
            place,
        });
        self.sites.len() as u64 - 1
    }

    fn name(&self, value: Value) -> String {
        match self.original.values[value].name.as_str() {
            "" => value.0.to_string(),
            name => name.to_owned(),
        }
    }

    /// Appends the records of a store, before the store itself.
    fn store(&mut self, site: u64, ptr: Value, index: Value, value: Value, out: &mut Block) {
        let ty = self.function.ty(value).clone();
        let old = self.define(ty.clone(), Inst::Load { ptr, index }, out);
        let base = self.bases[ptr].clone();
        let mut first = index;
        let mut elements = elements_of(self.function.ty(ptr)).unwrap_or(1);
        if let Some(base) = base {
            elements = base.elements;
            for offset in base.offsets {
                first = self.map(Op::Add, first, offset, out);
            }
        }
        if elements > 1 {
            let elements = self.constant(Scalar::i64(i64::from(elements)), out);
            first = self.map(Op::Mul, first, elements, out);
        }
        for lane in 0..ty.lanes() {
            let [old, new] = [old, value].map(|vector| match ty {
                Type::Vector(dtype, _) => {
                    let scalar = Type::Scalar(dtype);
                    self.define(scalar, Inst::Extract(vector, lane), out)
                }
                _ => vector,
            });
            let at = match lane {
                0 => first,
                _ => {
                    let lane = self.constant(Scalar::i64(i64::from(lane)), out);
                    self.map(Op::Add, first, lane, out)
                }
            };
            self.record(site, at, old, new, out);
        }
    }

    /// Appends one record, if there is room.
    fn record(&mut self, site: u64, index: Value, old: Value, new: Value, out: &mut Block) {
        let word = Type::Scalar(DType::U64);
        let log = self.log;
        let [zero, one] = [0, 1].map(|at| self.constant(Scalar::i64(at), out));
        let step = self.constant(Scalar::from_bits(DType::U64, 1), out);
        let count = Inst::Atomic {
            op: AtomicOp::Add,
            ptr: log,
            index: zero,
            value: step,
        };
        let number = self.define(word.clone(), count, out);
        let room = Inst::Load {
            ptr: log,
            index: one,
        };
        let room = self.define(word.clone(), room, out);
        let less = Inst::Map(Op::Lt, smallvec![number, room]);
        let cond = self.define(Type::Scalar(DType::Bool), less, out);

        let mut then = Block::new();
        let site = self.constant(Scalar::from_bits(DType::U64, site), &mut then);
        let index = self.define(word.clone(), Inst::Bitcast(DType::U64, index), &mut then);
        let [old, new] = [old, new].map(|value| self.bits(value, &mut then));
        let number = self.define(Type::INDEX, Inst::Bitcast(DType::I64, number), &mut then);
        let words = self.constant(Scalar::i64(RECORD_WORDS as i64), &mut then);
        let first = self.map(Op::Mul, number, words, &mut then);
        for (at, value) in [site, index, old, new].into_iter().enumerate() {
            let at = self.constant(Scalar::i64(HEADER_WORDS as i64 + at as i64), &mut then);
            let index = self.map(Op::Add, first, at, &mut then);
            then.push(Stmt::Store {
                ptr: log,
                index,
                value,
            });
        }
        out.push(Stmt::If {
            cond,
            then,
            otherwise: Block::new(),
        });
    }

    /// A scalar's bits in the lowest bits of a word.
    fn bits(&mut self, value: Value, out: &mut Block) -> Value {
        let Some(dtype) = self.function.ty(value).dtype() else {
            unreachable!("what is logged is a scalar");
        };
        let unsigned = match dtype.bytes() {
            // A boolean is 0 or 1 in every word.
            _ if dtype == DType::Bool => dtype,
            1 => DType::U8,
            2 => DType::U16,
            4 => DType::U32,
            _ => DType::U64,
        };
        let mut bits = value;
        if unsigned != dtype {
            bits = self.define(Type::Scalar(unsigned), Inst::Bitcast(unsigned, bits), out);
        }
        if unsigned != DType::U64 {
            let word = Type::Scalar(DType::U64);
            bits = self.define(word, Inst::Cast(DType::U64, bits), out);
        }
        bits
    }

    fn constant(&mut self, scalar: Scalar, out: &mut Block) -> Value {
        self.define(Type::Scalar(scalar.dtype()), Inst::Const(scalar), out)
    }

    fn map(&mut self, op: Op, left: Value, right: Value, out: &mut Block) -> Value {
        let ty = self.function.ty(left).clone();
        self.define(ty, Inst::Map(op, smallvec![left, right]), out)
    }

    fn define(&mut self, ty: Type, inst: Inst, out: &mut Block) -> Value {
        let value = self.function.value(ty, "");
        out.push(Stmt::Let(value, inst));
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Argument;
    use crate::interpret::{Grid, interpret};
    use crate::{FunctionId, parse, validate};
    use loopwright_text::Source;

    const TEXT: &str = "\
loopwright kernel 1

kernel @k(%a: write ptr<global, f32>, %b: write ptr<global, i32x2>, %c: readwrite ptr<global, bool>, %n: i64) {
  %zero: i64 = const 0
  %one: i64 = const 1
  %p: ptr<global, f32> = offset %a[%n]
  %q: ptr<global, f32> = offset %p[%one]
  %x: f32 = const 1.5
  store %q[%n], %x
  %v: f32x2 = const 2
  store %p[%one], %v
  %w: i32x2 = const -1
  store %b[%one], %w
  %t: bool = const true
  %mine: ptr<private, f32> = alloc private f32 x 1
  for %i: i64 = %one .. %n step %one vectorize {
    store %mine[%zero], %x
    store %c[%i], %t
  }
}
";

    fn module() -> Module {
        let source = Source::new("log.lwk", TEXT);
        match parse(&source) {
            Ok(module) => module,
            Err(error) => panic!("{}", error.render(&source)),
        }
    }

    /// The words of a log with room for so many records after a run.
    fn run(module: &Module, room: usize) -> Vec<u64> {
        let mut a = [0u8; 4 * 8];
        a[16..20].copy_from_slice(&7f32.to_le_bytes());
        let mut b = [0u8; 4 * 4];
        let mut c = [1u8, 0, 0];
        let mut log = vec![0u8; 8 * (2 + 4 * room)];
        log[8..16].copy_from_slice(&(room as u64).to_le_bytes());
        let mut args = [
            Argument::Write(&mut a),
            Argument::Write(&mut b),
            Argument::Write(&mut c),
            Argument::Scalar(Scalar::i64(2)),
            Argument::Write(&mut log),
        ];
        interpret(module, "k", &mut args, Grid::default()).expect("the kernel runs");
        let words = log.chunks_exact(8);
        words
            .map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")))
            .collect()
    }

    #[test]
    fn every_element_that_is_stored_is_logged_with_its_place() {
        let mut module = module();
        let sites = log_stores(&mut module, "k");
        validate(&module).expect("the kernel is valid");
        let shown: Vec<(&str, DType, &str)> = sites
            .iter()
            .map(|site| (site.buffer.as_str(), site.dtype, site.place.as_str()))
            .collect();
        assert_eq!(
            shown,
            [
                ("a", DType::F32, "store %q[%n], %x"),
                ("a", DType::F32, "store %p[%one], %v"),
                ("b", DType::I32, "store %b[%one], %w"),
                ("c", DType::Bool, "for i: store %c[%i], %t"),
            ]
        );
        let words = run(&module, 10);
        let float = |value: f32| u64::from(value.to_bits());
        let expected: [[u64; 4]; 6] = [
            // a + n + 1, element n, with n = 2.
            [0, 5, 0, float(1.5)],
            [1, 3, 0, float(2.0)],
            [1, 4, float(7.0), float(2.0)],
            [2, 2, 0, 0xffff_ffff],
            [2, 3, 0, 0xffff_ffff],
            [3, 1, 0, 1],
        ];
        assert_eq!(words[..2], [6, 10]);
        assert_eq!(words[2..26], expected.concat());
        assert!(words[26..].iter().all(|word| *word == 0), "nothing more");
    }

    #[test]
    fn a_full_log_stays_as_it_is() {
        let mut module = module();
        log_stores(&mut module, "k");
        let words = run(&module, 2);
        assert_eq!(words[..2], [6, 2], "all are counted");
        assert_eq!([words[2], words[6]], [0, 1], "two are written");
    }

    #[test]
    fn a_kernel_that_stores_nothing_stays_as_it_is() {
        let mut none = module();
        let before = none.clone();
        assert!(log_stores(&mut none, "another").is_empty());
        none.functions[FunctionId(0)].body.truncate(2);
        let truncated = none.clone();
        assert!(log_stores(&mut none, "k").is_empty());
        assert_eq!(none, truncated);
        assert_ne!(none, before);
    }
}
