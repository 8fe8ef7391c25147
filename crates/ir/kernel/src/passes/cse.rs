//! Common subexpressions: a value that was computed before, in this block or one around it, is not
//! computed again.
//!
//! Loads count as computed before while nothing that may write their memory lies between; a store
//! makes what it wrote known to later loads. Memory is told apart by the classes of `alias`:
//! each has a version that goes up with every write to it, and a loop starts by raising the versions
//! of all that its body writes, because the second iteration comes after the first.
//!
//! Tests: `tests/filetests/passes/cse*.lwk`.

use super::alias::{Class, Memory, Reach, Write, is_pure, read_through};
use crate::ir::{Block, Function, Inst, Stmt, Type, Value};
use loopwright_arena::TiVec;
use loopwright_ops::{DType, Op};
use loopwright_threads::interrupt::unwind_if_asked;
use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};

/// Runs the pass.
pub fn run(function: &mut Function) {
    eliminate(function, false);
}

/// The pass, which the test switch can tell to forget about stores.
pub(super) fn eliminate(function: &mut Function, ignore_writes: bool) {
    let memory = Memory::of(function);
    let mut body = std::mem::take(&mut function.body);
    let mut cse = Cse {
        function,
        versions: vec![0; memory.class_count()].into(),
        any_version: 0,
        memory,
        replaced: function.values.keys().collect(),
        entries: Vec::new(),
        latest: FxHashMap::default(),
        ignore_writes,
    };
    cse.block(&mut body);
    function.body = body;
}

/// A value that is known.
struct Entry {
    hash: u64,
    inst: Inst,
    value: Value,
    /// For reads, the version of the memory read.
    version: u32,
    /// The entry with the same hash before.
    before: Option<u32>,
}

struct Cse<'f> {
    function: &'f Function,
    memory: Memory,
    versions: TiVec<Class, u32>,
    /// The version for pointers that may reach anything.
    any_version: u32,
    /// What stands for each value.
    replaced: TiVec<Value, Value>,
    /// The values known here, innermost blocks last.
    entries: Vec<Entry>,
    /// The last entry with a hash.
    latest: FxHashMap<u64, u32>,
    ignore_writes: bool,
}

impl Cse<'_> {
    fn version(&self, ptr: Value) -> u32 {
        match self.memory.reach(ptr) {
            Reach::Class(class) => self.versions[class],
            Reach::Anything | Reach::Nothing => self.any_version,
        }
    }

    fn wrote(&mut self, write: Write) {
        if self.ignore_writes {
            return;
        }
        self.any_version += 1;
        if let Write::Through(Reach::Class(class)) = write {
            self.versions[class] += 1;
            return;
        }
        for (class, version) in self.versions.iter_mut_enumerated() {
            if self.memory.may_change(write, class) {
                *version += 1;
            }
        }
    }

    /// Raises the versions of all that blocks write.
    fn wrote_in(&mut self, blocks: [Option<&Block>; 2]) {
        let mut writes = Vec::new();
        for block in blocks.into_iter().flatten() {
            self.memory.writes(block, &mut |write| writes.push(write));
        }
        for write in writes {
            self.wrote(write);
        }
    }

    fn block(&mut self, block: &mut Block) {
        let scope = self.entries.len();
        self.statements(block);
        self.leave(scope);
    }

    /// Forgets what was learned since there were `scope` entries.
    fn leave(&mut self, scope: usize) {
        while self.entries.len() > scope {
            if let Some(entry) = self.entries.pop() {
                match entry.before {
                    Some(before) => self.latest.insert(entry.hash, before),
                    None => self.latest.remove(&entry.hash),
                };
            }
        }
    }

    fn statements(&mut self, block: &mut Block) {
        unwind_if_asked();
        block.retain_mut(|stmt| {
            // A `while`'s condition may be defined in its head, and is replaced after that.
            if !matches!(stmt, Stmt::While { .. }) {
                stmt.operands_mut(&mut |operand| *operand = self.replaced[*operand]);
            }
            match stmt {
                Stmt::Let(value, inst) => {
                    if let Some(known) = self.reuse(*value, inst) {
                        self.replaced[*value] = known;
                        return false;
                    }
                }
                Stmt::For { .. } => {
                    self.wrote_in(stmt.blocks());
                    for inner in stmt.blocks_mut().into_iter().flatten() {
                        self.block(inner);
                    }
                    return true;
                }
                Stmt::While { .. } => {
                    self.wrote_in(stmt.blocks());
                    if let Stmt::While { head, cond, body } = stmt {
                        let scope = self.entries.len();
                        self.statements(head);
                        *cond = self.replaced[*cond];
                        self.statements(body);
                        self.leave(scope);
                    }
                    return true;
                }
                Stmt::If {
                    then, otherwise, ..
                } => {
                    self.block(then);
                    self.block(otherwise);
                    return true;
                }
                _ => {}
            }
            if let Some(write) = self.memory.write(stmt) {
                self.wrote(write);
            }
            if let Stmt::Store { ptr, index, value } = stmt {
                let inst = Inst::Load {
                    ptr: *ptr,
                    index: *index,
                };
                let hash = fingerprint(&inst, self.function.ty(*value));
                let version = self.version(*ptr);
                self.learn(hash, inst, *value, version);
            }
            true
        });
    }

    /// The known value that `inst` would compute; otherwise it is known from now on.
    fn reuse(&mut self, value: Value, inst: &Inst) -> Option<Value> {
        let version = match read_through(inst) {
            Some(ptr) => self.version(ptr),
            None if is_pure(inst) => 0,
            None => return None,
        };
        let inst = self.normal(inst);
        let ty = self.function.ty(value);
        let hash = fingerprint(&inst, ty);
        let mut at = self.latest.get(&hash).copied();
        while let Some(number) = at {
            let entry = &self.entries[number as usize];
            if entry.version == version && entry.inst == inst && self.function.ty(entry.value) == ty
            {
                return Some(entry.value);
            }
            at = entry.before;
        }
        self.learn(hash, inst, value, version);
        None
    }

    fn learn(&mut self, hash: u64, inst: Inst, value: Value, version: u32) {
        let before = self.latest.insert(hash, self.entries.len() as u32);
        self.entries.push(Entry {
            hash,
            inst,
            value,
            version,
            before,
        });
    }

    /// The instruction with the operands of a commutative op in order. Not of floats: which of two
    /// NaNs comes out is not part of an op's meaning, but it should not depend on a pass either.
    fn normal(&self, inst: &Inst) -> Inst {
        let Inst::Map(op, operands) = inst else {
            return inst.clone();
        };
        let mut operands = SmallVec::from_slice(operands);
        if let [left, right] = operands[..]
            && left > right
            && op.info().commutative
            && self
                .function
                .ty(left)
                .dtype()
                .is_some_and(|dtype| !dtype.is_float())
        {
            operands.swap(0, 1);
        }
        Inst::Map(*op, operands)
    }
}

/// A hash of an instruction and the type it gives.
fn fingerprint(inst: &Inst, ty: &Type) -> u64 {
    let mut hasher = FxHasher::default();
    std::mem::discriminant(inst).hash(&mut hasher);
    match inst {
        Inst::Const(scalar) => scalar.hash(&mut hasher),
        Inst::Map(op, _) => Op::hash(op, &mut hasher),
        Inst::Cast(dtype, _) | Inst::Bitcast(dtype, _) => DType::hash(dtype, &mut hasher),
        Inst::Field { field, .. } => field.hash(&mut hasher),
        Inst::Extract(_, lane) | Inst::Insert(_, lane, _) => lane.hash(&mut hasher),
        Inst::Shuffle(_, _, lanes) => lanes.hash(&mut hasher),
        Inst::ReduceLanes(op, _) => op.hash(&mut hasher),
        Inst::WorkItem(query, axis) => (query, axis).hash(&mut hasher),
        Inst::TileLoad { interleave, .. } => interleave.hash(&mut hasher),
        Inst::Alloc { .. }
        | Inst::Load { .. }
        | Inst::Offset { .. }
        | Inst::Elements(_)
        | Inst::Splat(_)
        | Inst::Build(_)
        | Inst::Atomic { .. }
        | Inst::CompareExchange { .. }
        | Inst::Call(..)
        | Inst::TileSplat(_)
        | Inst::TileMma { .. } => {}
    }
    inst.operands(&mut |operand| operand.hash(&mut hasher));
    ty.hash(&mut hasher);
    hasher.finish()
}
