//! Loop-invariant motion: what a loop computes anew each time around, from values that do not
//! change, is computed before it.
//!
//! Every op is total, so anything pure may move, even out of a branch. A load moves only where it
//! would certainly have run (the loop is known to run at least once, and the load is not behind a
//! branch or a jump) and nothing in the loop may write what it reads. Constants go to the top of the
//! function, each once.

use super::alias::{Class, Memory, Reach, Write, is_pure, leaves, read_through, returns};
use crate::ir::{Block, Function, Inst, Stmt, Value};
use loopwright_arena::TiVec;
use loopwright_ops::Scalar;
use loopwright_threads::interrupt::unwind_if_asked;
use rustc_hash::FxHashMap;

/// Runs the pass.
pub fn run(function: &mut Function) {
    let memory = Memory::of(function);
    let body = std::mem::take(&mut function.body);
    let mut licm = Licm {
        level: vec![0; function.values.len()].into(),
        known: vec![None; function.values.len()].into(),
        replaced: function.values.keys().collect(),
        constants: Vec::new(),
        constant_of: FxHashMap::default(),
        loops: Vec::new(),
        function,
        memory,
    };
    let mut out = Block::with_capacity(body.len());
    licm.block(body, &mut out);
    let mut body = std::mem::take(&mut licm.constants);
    body.append(&mut out);
    function.body = body;
}

/// A loop around the statement at hand.
struct Loop {
    /// What moves to before it.
    before: Block,
    /// Whether the statement at hand runs whenever the loop is reached.
    certain: bool,
    /// Whether its body writes anything of a class.
    written: TiVec<Class, bool>,
    /// Whether its body writes anything at all.
    writes: bool,
}

struct Licm<'f> {
    function: &'f Function,
    memory: Memory,
    /// In how many loops each value is defined.
    level: TiVec<Value, usize>,
    known: TiVec<Value, Option<i64>>,
    /// For constants: the one that stays.
    replaced: TiVec<Value, Value>,
    constants: Block,
    constant_of: FxHashMap<(Scalar, u32), Value>,
    loops: Vec<Loop>,
}

impl Licm<'_> {
    fn block(&mut self, block: Block, out: &mut Block) {
        unwind_if_asked();
        for mut stmt in block {
            if !matches!(stmt, Stmt::While { .. }) {
                stmt.operands_mut(&mut |operand| *operand = self.replaced[*operand]);
            }
            match stmt {
                Stmt::Let(value, Inst::Const(scalar)) => self.constant(value, scalar),
                Stmt::Let(value, inst) => {
                    let level = self.level_of(&inst);
                    self.level[value] = level;
                    match self.loops.get_mut(level) {
                        Some(outer) => outer.before.push(Stmt::Let(value, inst)),
                        None => out.push(Stmt::Let(value, inst)),
                    }
                }
                Stmt::For {
                    var,
                    start,
                    end,
                    step,
                    kind,
                    body,
                } => {
                    let [first, last] = [start, end].map(|bound| self.known[bound]);
                    let runs = matches!((first, last), (Some(first), Some(last)) if first < last);
                    let returns = returns(&body);
                    self.enter(runs, &[&body]);
                    self.level[var] = self.loops.len();
                    let mut inner = Block::with_capacity(body.len());
                    self.block(body, &mut inner);
                    self.leave(out, returns);
                    out.push(Stmt::For {
                        var,
                        start,
                        end,
                        step,
                        kind,
                        body: inner,
                    });
                }
                Stmt::While { head, cond, body } => {
                    let returns = returns(&head) || returns(&body);
                    self.enter(false, &[&head, &body]);
                    let mut new_head = Block::with_capacity(head.len());
                    self.block(head, &mut new_head);
                    let cond = self.replaced[cond];
                    let mut new_body = Block::with_capacity(body.len());
                    self.block(body, &mut new_body);
                    self.leave(out, returns);
                    out.push(Stmt::While {
                        head: new_head,
                        cond,
                        body: new_body,
                    });
                }
                Stmt::If {
                    cond,
                    then,
                    otherwise,
                } => {
                    let jumps = leaves(&then) || leaves(&otherwise);
                    let certain = self.certain(false);
                    let [mut new_then, mut new_otherwise] = [Block::new(), Block::new()];
                    self.block(then, &mut new_then);
                    self.block(otherwise, &mut new_otherwise);
                    self.certain(certain && !jumps);
                    out.push(Stmt::If {
                        cond,
                        then: new_then,
                        otherwise: new_otherwise,
                    });
                }
                Stmt::Break | Stmt::Continue | Stmt::Return(_) => {
                    self.certain(false);
                    out.push(stmt);
                }
                _ => out.push(stmt),
            }
        }
    }

    /// Sets whether what follows is certain to run within the innermost loop; gives what was.
    fn certain(&mut self, certain: bool) -> bool {
        match self.loops.last_mut() {
            Some(innermost) => std::mem::replace(&mut innermost.certain, certain),
            None => true,
        }
    }

    fn enter(&mut self, runs: bool, blocks: &[&Block]) {
        let mut written: TiVec<Class, _> = vec![false; self.memory.class_count()].into();
        let mut writes = false;
        for block in blocks {
            self.memory.writes(block, &mut |write| {
                writes = true;
                if let Write::Through(Reach::Class(class)) = write {
                    written[class] = true;
                    return;
                }
                for (class, written) in written.iter_mut_enumerated() {
                    *written |= self.memory.may_change(write, class);
                }
            });
        }
        self.loops.push(Loop {
            before: Block::new(),
            certain: runs,
            written,
            writes,
        });
    }

    fn leave(&mut self, out: &mut Block, returns: bool) {
        if let Some(mut left) = self.loops.pop() {
            out.append(&mut left.before);
        }
        if returns {
            self.certain(false);
        }
    }

    /// How many of the loops around it an instruction must stay in.
    fn level_of(&self, inst: &Inst) -> usize {
        let here = self.loops.len();
        // Tiles are held in few registers, and every thread has its own.
        if matches!(
            inst,
            Inst::TileLoad { .. } | Inst::TileSplat(_) | Inst::TileMma { .. }
        ) {
            return here;
        }
        let mut level = 0;
        inst.operands(&mut |operand| level = level.max(self.level[*operand]));
        if is_pure(inst) {
            return level;
        }
        let Some(ptr) = read_through(inst) else {
            return here;
        };
        let mut stays = here;
        for outer in self.loops[level..].iter().rev() {
            let written = match self.memory.reach(ptr) {
                Reach::Class(class) => outer.written[class],
                Reach::Anything | Reach::Nothing => outer.writes,
            };
            if !outer.certain || written {
                break;
            }
            stays -= 1;
        }
        stays
    }

    fn constant(&mut self, value: Value, scalar: Scalar) {
        let key = (scalar, self.function.ty(value).lanes());
        let kept = *self.constant_of.entry(key).or_insert_with(|| {
            self.constants.push(Stmt::Let(value, Inst::Const(scalar)));
            value
        });
        self.replaced[value] = kept;
        self.known[kept] = scalar.as_i64();
    }
}
