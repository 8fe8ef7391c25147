//! What a function does with its values, found in one walk before anything is written.

use loopwright_arena::TiVec;
use loopwright_kernel::{Block, Function, FunctionId, Inst, LoopKind, Space, Stmt, Type, Value};

/// What writing a function needs to know of it.
#[derive(Debug, Default)]
pub(super) struct Uses {
    /// How often each value is used.
    pub(super) counts: TiVec<Value, u32>,
    /// Addresses of arrays of one element that is only ever loaded and stored whole, in the thread that made it: plain
    /// variables.
    pub(super) variables: TiVec<Value, bool>,
    /// What each parallel loop's body uses from outside, in the order of the walk; nested ones run serially and are not
    /// listed.
    pub(super) captures: Vec<Vec<Value>>,
    /// Whether the function itself asks about its work-item.
    pub(super) work_items: bool,
    /// The functions it calls.
    pub(super) calls: Vec<FunctionId>,
    /// What it does that needs the work-items of a group to run together.
    pub(super) group: Option<&'static str>,
}

/// Walks `function`. `outline` says whether parallel loops become functions of their own.
pub(super) fn uses(function: &Function, outline: bool) -> Uses {
    let values = function.values.len();
    let mut walk = Walk {
        function,
        outline,
        uses: Uses {
            counts: vec![0; values].into(),
            variables: vec![false; values].into(),
            ..Uses::default()
        },
        constants: vec![None; values].into(),
        loops: vec![0; values].into(),
        captured: vec![0; values].into(),
        parallel: 0,
    };
    walk.block(&function.body);
    walk.uses
}

struct Walk<'a> {
    function: &'a Function,
    outline: bool,
    uses: Uses,
    /// The bits of constants, which are written down where they are used.
    constants: TiVec<Value, Option<u64>>,
    /// The parallel loop that each value is defined in; 0 is outside of all.
    loops: TiVec<Value, usize>,
    /// The last parallel loop that captured each value.
    captured: TiVec<Value, usize>,
    /// The parallel loop around this place.
    parallel: usize,
}

impl Walk<'_> {
    /// A use that a plain variable allows.
    fn used(&mut self, value: Value) {
        self.uses.counts[value] += 1;
        if self.loops[value] != self.parallel && self.constants[value].is_none() {
            self.uses.variables[value] = false;
            if self.captured[value] != self.parallel {
                self.captured[value] = self.parallel;
                self.uses.captures[self.parallel - 1].push(value);
            }
        }
    }

    /// A use that it does not allow.
    fn escapes(&mut self, value: Value) {
        self.used(value);
        self.uses.variables[value] = false;
    }

    /// A load or store of something of type `ty`.
    fn access(&mut self, ptr: Value, index: Value, ty: &Type) {
        self.used(ptr);
        self.used(index);
        let first = self.constants[index] == Some(0);
        if !first || self.function.ty(ptr).pointee() != Some(ty) {
            self.uses.variables[ptr] = false;
        }
    }

    fn define(&mut self, value: Value) {
        self.loops[value] = self.parallel;
    }

    fn block(&mut self, block: &Block) {
        for stmt in block {
            self.stmt(stmt);
        }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        let function = self.function;
        match stmt {
            Stmt::Let(value, inst) => {
                self.define(*value);
                self.inst(*value, inst);
            }
            Stmt::Store { ptr, index, value } => {
                self.access(*ptr, *index, function.ty(*value));
                self.escapes(*value);
            }
            Stmt::For {
                var,
                start,
                end,
                step,
                kind,
                body,
            } => {
                for value in [start, end, step] {
                    self.used(*value);
                }
                let outlined = *kind == LoopKind::Parallel && self.outline && self.parallel == 0;
                if outlined {
                    self.uses.captures.push(Vec::new());
                    self.parallel = self.uses.captures.len();
                    // The body's function computes its loop variable from these.
                    self.used(*start);
                    self.used(*step);
                }
                self.define(*var);
                self.block(body);
                if outlined {
                    self.parallel = 0;
                }
            }
            Stmt::While { head, cond, body } => {
                self.block(head);
                self.used(*cond);
                self.block(body);
            }
            Stmt::If { .. }
            | Stmt::Call(..)
            | Stmt::Break
            | Stmt::Continue
            | Stmt::Return(_)
            | Stmt::Barrier { .. }
            | Stmt::AsyncCopy { .. }
            | Stmt::AsyncWait { .. }
            | Stmt::TileStore { .. } => {
                stmt.operands(&mut |value| self.escapes(*value));
                match stmt {
                    Stmt::Call(callee, _) => self.uses.calls.push(*callee),
                    Stmt::Barrier { .. } => self.uses.group = Some("a barrier"),
                    _ => {}
                }
                stmt.blocks()
                    .into_iter()
                    .flatten()
                    .for_each(|block| self.block(block));
            }
        }
    }

    fn inst(&mut self, defined: Value, inst: &Inst) {
        match inst {
            Inst::Const(scalar) => self.constants[defined] = Some(scalar.bits()),
            Inst::Alloc { space, count, .. } => {
                if *space == Space::Local {
                    self.uses.group = Some("local memory");
                }
                self.uses.variables[defined] = *count == 1;
            }
            Inst::Load { ptr, index } => {
                let function = self.function;
                self.access(*ptr, *index, function.ty(defined));
            }
            _ => {
                inst.operands(&mut |value| self.escapes(*value));
                match inst {
                    Inst::Call(callee, _) => self.uses.calls.push(*callee),
                    Inst::WorkItem(..) => self.uses.work_items = true,
                    _ => {}
                }
            }
        }
    }
}
