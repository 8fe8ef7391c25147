//! What a function does with its values, found in one walk before anything is written.

use loopwright_arena::TiVec;
use loopwright_kernel::{
    Block, Function, FunctionId, Inst, LoopKind, Space, Stmt, Type, Value, WorkItem,
};
use loopwright_ops::Scalar;

/// What the writer needs to know of a function.
#[derive(Debug)]
pub(crate) struct Uses {
    /// Per value.
    pub values: TiVec<Value, Use>,
    /// What each parallel loop's body uses from outside, in the order of the walk; nested ones run
    /// serially and are not listed.
    pub captures: Vec<Vec<Value>>,
    /// Whether the function itself asks about its work-item.
    pub work_items: bool,
    /// The functions it calls.
    pub calls: Vec<FunctionId>,
    /// What it does that needs the work-items of a group to run together.
    pub group: Option<&'static str>,
}

/// What is known of one value's definition and uses.
#[derive(Clone, Debug, Default)]
pub(crate) struct Use {
    /// How often it is used.
    pub count: u32,
    /// The loop body it is defined in.
    pub defined: u32,
    /// The loop body of its last use.
    pub used: u32,
    /// The parallel loop it is defined in.
    parallel: u32,
    /// Its value, if it is a constant.
    pub constant: Option<Scalar>,
    /// It is the address of an array of one element that is only ever loaded and stored whole, in
    /// the thread that made it: a plain variable.
    pub variable: bool,
}

/// Walks `function`. `outline` says whether parallel loops become functions of their own.
pub(crate) fn uses(function: &Function, outline: bool) -> Uses {
    let mut walk = Walk {
        function,
        outline,
        uses: Uses {
            values: vec![Use::default(); function.values.len()].into(),
            captures: Vec::new(),
            work_items: false,
            calls: Vec::new(),
            group: None,
        },
        regions: 0,
        region: 0,
        parallels: 0,
        parallel: 0,
        captured: TiVec::new(),
    };
    walk.block(&function.body);
    walk.uses
}

struct Walk<'a> {
    function: &'a Function,
    outline: bool,
    uses: Uses,
    regions: u32,
    region: u32,
    parallels: u32,
    parallel: u32,
    /// The last parallel loop that captured each value, 0 for none; made with the first such loop.
    captured: TiVec<Value, u32>,
}

impl Walk<'_> {
    fn info(&mut self, value: Value) -> &mut Use {
        &mut self.uses.values[value]
    }

    fn define(&mut self, value: Value) {
        let (region, parallel) = (self.region, self.parallel);
        let info = self.info(value);
        info.defined = region;
        info.parallel = parallel;
    }

    fn used(&mut self, value: Value) {
        let region = self.region;
        let info = self.info(value);
        info.count += 1;
        info.used = region;
        let outside = info.parallel != self.parallel;
        if outside && self.info(value).constant.is_none() {
            self.info(value).variable = false;
            if self.captured.is_empty() {
                self.captured = vec![0; self.function.values.len()].into();
            }
            let last = &mut self.captured[value];
            if *last != self.parallel {
                *last = self.parallel;
                self.uses.captures[self.parallel as usize - 1].push(value);
            }
        }
    }

    /// Uses an address in a way that a plain variable does not allow.
    fn escapes(&mut self, value: Value) {
        self.used(value);
        self.info(value).variable = false;
    }

    /// Uses an address to load or store something of type `ty` there.
    fn access(&mut self, ptr: Value, index: Value, ty: &Type) {
        self.used(ptr);
        self.used(index);
        let first = self.info(index).constant.is_some_and(|c| c.bits() == 0);
        if !first || self.function.ty(ptr).pointee() != Some(ty) {
            self.info(ptr).variable = false;
        }
    }

    fn block(&mut self, block: &Block) {
        for stmt in block {
            self.stmt(stmt);
        }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Let(value, inst) => {
                self.define(*value);
                self.inst(*value, inst);
            }
            Stmt::Store { ptr, index, value } => {
                let function = self.function;
                self.access(*ptr, *index, function.ty(*value));
                self.escapes(*value);
            }
            Stmt::Call(callee, arguments) => {
                self.uses.calls.push(*callee);
                arguments.iter().for_each(|&value| self.escapes(value));
            }
            Stmt::For {
                var,
                start,
                end,
                step,
                kind,
                body,
            } => {
                self.used(*start);
                self.used(*end);
                self.used(*step);
                let (region, parallel) = (self.region, self.parallel);
                self.regions += 1;
                self.region = self.regions;
                let outlined = *kind == LoopKind::Parallel && self.outline && parallel == 0;
                if outlined {
                    self.parallels += 1;
                    self.parallel = self.parallels;
                    self.uses.captures.push(Vec::new());
                    // The body's function computes its loop variable from these.
                    self.used(*start);
                    self.used(*step);
                }
                self.define(*var);
                self.block(body);
                (self.region, self.parallel) = (region, parallel);
            }
            Stmt::While { head, cond, body } => {
                let region = self.region;
                self.regions += 1;
                self.region = self.regions;
                self.block(head);
                self.used(*cond);
                self.block(body);
                self.region = region;
            }
            Stmt::If {
                cond,
                then,
                otherwise,
            } => {
                self.used(*cond);
                self.block(then);
                self.block(otherwise);
            }
            Stmt::Return(value) => value.iter().for_each(|&value| self.escapes(value)),
            Stmt::Break | Stmt::Continue | Stmt::AsyncWait { .. } => {}
            Stmt::Barrier { .. } => self.uses.group = Some("a barrier"),
            Stmt::AsyncCopy { dst, src, count } => {
                for value in [dst.0, dst.1, src.0, src.1, *count] {
                    self.escapes(value);
                }
            }
            Stmt::TileStore {
                tile,
                ptr,
                index,
                stride,
            } => {
                for value in [*tile, *ptr, *index, *stride] {
                    self.escapes(value);
                }
            }
        }
    }

    fn inst(&mut self, defined: Value, inst: &Inst) {
        match inst {
            Inst::Const(scalar) => self.info(defined).constant = Some(*scalar),
            Inst::Alloc { space, count, .. } => {
                if *space == Space::Local {
                    self.uses.group = Some("local memory");
                }
                self.info(defined).variable = *count == 1;
            }
            Inst::Load { ptr, index } => {
                let function = self.function;
                self.access(*ptr, *index, function.ty(defined));
            }
            Inst::Map(_, operands) => operands.iter().for_each(|&value| self.escapes(value)),
            Inst::Build(values) => values.iter().for_each(|&value| self.escapes(value)),
            Inst::Call(callee, values) => {
                self.uses.calls.push(*callee);
                values.iter().for_each(|&value| self.escapes(value));
            }
            Inst::Cast(_, value)
            | Inst::Bitcast(_, value)
            | Inst::Elements(value)
            | Inst::Splat(value)
            | Inst::Extract(value, _)
            | Inst::ReduceLanes(_, value)
            | Inst::TileSplat(value)
            | Inst::Field { ptr: value, .. } => self.escapes(*value),
            Inst::Offset { ptr, index } => {
                self.escapes(*ptr);
                self.used(*index);
            }
            Inst::Insert(vector, _, scalar) => {
                self.used(*vector);
                self.used(*scalar);
            }
            Inst::Shuffle(left, right, _) => {
                self.used(*left);
                self.used(*right);
            }
            Inst::WorkItem(
                WorkItem::GlobalId
                | WorkItem::LocalId
                | WorkItem::GroupId
                | WorkItem::GlobalSize
                | WorkItem::LocalSize
                | WorkItem::GroupCount,
                _,
            ) => self.uses.work_items = true,
            Inst::Atomic {
                ptr, index, value, ..
            } => {
                for value in [*ptr, *index, *value] {
                    self.escapes(value);
                }
            }
            Inst::CompareExchange {
                ptr,
                index,
                expected,
                value,
            } => {
                for value in [*ptr, *index, *expected, *value] {
                    self.escapes(value);
                }
            }
            Inst::TileLoad {
                ptr,
                index,
                stride,
                interleave: _,
            } => {
                for value in [*ptr, *index, *stride] {
                    self.escapes(value);
                }
            }
            Inst::TileMma {
                left,
                right,
                accumulator,
            } => {
                for value in [*left, *right, *accumulator] {
                    self.used(value);
                }
            }
        }
    }
}
