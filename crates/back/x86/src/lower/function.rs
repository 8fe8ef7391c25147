//! Functions and statements.

use super::address::Plan;
use super::ahead::{Written, written};
use super::analyse::Analysis;
use super::coming::{Asking, Coming};
use super::linear::Linear;
use super::value::Pieces;
use super::watch::{Watch, trips};
use super::{Refusal, Shared, is_kernel};
use crate::asm::{Alu, Bits, Cond, Label, Mem};
use crate::level::Level;
use crate::machine::{Class, Code, Inst as M, Loop, Place, RegInfo, Source, VReg, frame};
use loopwright_arena::TiVec;
use loopwright_kernel::interpret::Layout;
use loopwright_kernel::{Block, Function, Inst, LoopKind, Module, Stmt, Type, Value};
use loopwright_ops::DType;
use loopwright_threads::interrupt::unwind_if_asked;
use rustc_hash::FxHashMap;
use smallvec::smallvec;

/// Most bytes of a function's arrays: half of what threads have for a stack where nothing else is said.
const MOST_FRAME: u64 = 1 << 20;

/// A bound of a loop.
#[derive(Clone, Copy)]
pub(crate) enum Bound {
    Value(Value),
    Reg(VReg),
}

/// What a room in the frame is for: two uses at the same time are of different kinds.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Room {
    /// Registers that are not read or written as a whole.
    Part,
    /// Vectors that are taken apart, and what calls compute with.
    Lanes,
    /// Arguments of calls.
    Call,
}

/// Where a loop's `break` and `continue` go.
#[derive(Clone, Copy)]
pub(crate) struct Exits {
    pub(crate) brk: Label,
    pub(crate) cont: Label,
}

/// What is known in a block and those inside of it.
#[derive(Default)]
pub(crate) struct Scope {
    /// Products of values.
    pub(crate) products: FxHashMap<Vec<Value>, VReg>,
    /// Sums of terms.
    pub(crate) sums: FxHashMap<super::linear::Terms, VReg>,
    /// The sums in the order in which they were computed.
    pub(crate) latest: Vec<super::linear::Terms>,
}

/// Writes one function of machine code: a function of the module or the body of a parallel loop.
pub(crate) struct Writer<'m, 's, 'a> {
    pub(crate) module: &'m Module,
    pub(crate) function: &'m Function,
    pub(crate) found: &'m Analysis,
    pub(crate) shared: &'s mut Shared<'a>,
    pub(crate) level: Level,
    pub(crate) code: Code,
    /// The innermost loop.
    pub(crate) inside: Option<u32>,
    pub(crate) held: FxHashMap<Value, Pieces>,
    /// Arrays and tiles in the frame.
    pub(crate) arrays: FxHashMap<Value, i32>,
    pub(crate) variables: FxHashMap<Value, Pieces>,
    pub(crate) constants: FxHashMap<(u32, u32), VReg>,
    /// Where constants are loaded: before the outermost statement that is being written.
    pub(crate) anchor: u32,
    pub(crate) anchored: Vec<(u32, M)>,
    pub(crate) plans: Vec<Plan>,
    pub(crate) scopes: Vec<Scope>,
    pub(crate) exits: Vec<Exits>,
    /// In the body of a parallel loop: what it uses from outside, and where in its environment that is.
    pub(crate) captures: Option<Vec<(Value, i32)>>,
    pub(crate) environment: Option<VReg>,
    pub(crate) environment_bytes: i32,
    /// Rooms for short use, by size.
    pub(crate) rooms: FxHashMap<(Room, u32), i32>,
    /// How many parallel loops there were.
    pub(crate) parallels: u32,
    /// Where the work-item's numbers are.
    pub(crate) item: Option<VReg>,
    /// The loops around, with their steps.
    pub(crate) around: Vec<(Value, Value)>,
    /// What is written after the loop that comes next.
    pub(crate) written: Vec<Written>,
    /// What the next round copies of what was copied last.
    pub(crate) coming: Option<Coming>,
    /// Where in the loop that comes next lines of that are asked for.
    pub(crate) asking: Option<Asking>,
}

/// Stands for the work-item's numbers among captured values.
pub(crate) const ITEM: Value = Value(u32::MAX);

impl<'m, 's, 'a> Writer<'m, 's, 'a> {
    pub(crate) fn new(
        module: &'m Module,
        function: &'m Function,
        found: &'m Analysis,
        shared: &'s mut Shared<'a>,
        entry: Label,
        name: String,
    ) -> Writer<'m, 's, 'a> {
        let level = shared.level;
        Writer {
            module,
            function,
            found,
            shared,
            level,
            code: Code {
                insts: Vec::new(),
                regs: TiVec::new(),
                loops: Vec::new(),
                frame: frame::FREE,
                tiles: None,
                entry,
                name,
            },
            inside: None,
            held: FxHashMap::default(),
            arrays: FxHashMap::default(),
            variables: FxHashMap::default(),
            constants: FxHashMap::default(),
            anchor: 0,
            anchored: Vec::new(),
            plans: vec![Plan::default()],
            scopes: vec![Scope::default()],
            exits: Vec::new(),
            captures: None,
            environment: None,
            environment_bytes: 0,
            rooms: FxHashMap::default(),
            parallels: 0,
            item: None,
            around: Vec::new(),
            written: Vec::new(),
            coming: None,
            asking: None,
        }
    }

    /// Writes a function of the module.
    pub(crate) fn function(
        module: &'m Module,
        function: &'m Function,
        found: &'m Analysis,
        shared: &'s mut Shared<'a>,
        entry: Label,
    ) -> Result<(), Refusal> {
        let mut writer = Writer::new(
            module,
            function,
            found,
            shared,
            entry,
            function.name.clone(),
        );
        writer.parameters();
        writer.anchor = writer.code.insts.len() as u32;
        writer.top(&function.body)?;
        writer.leave();
        writer.done();
        Ok(())
    }

    /// Takes the arguments: those of a kernel from a table of pointers, those of other functions from a block of memory.
    fn parameters(&mut self) {
        let table = self.gpr_new();
        self.emit(M::Load {
            bits: Bits::B64,
            signed: false,
            to: table,
            from: Mem::at(VReg::FRAME, frame::ARGUMENTS[0]),
        });
        let mut offset = 0;
        for (at, param) in self.function.params.iter().enumerate() {
            let ty = self.function.ty(param.value).clone();
            if is_kernel(self.function) {
                let pointer = self.gpr_new();
                self.emit(M::Load {
                    bits: Bits::B64,
                    signed: false,
                    to: pointer,
                    from: Mem::at(table, 8 * at as i32),
                });
                let pieces = match ty {
                    Type::Pointer(..) => smallvec![pointer],
                    _ => self.load_pieces(&ty, Mem::at(pointer, 0)),
                };
                self.held.insert(param.value, pieces);
            } else {
                let pieces = self.load_any(&ty, Mem::at(table, offset));
                self.held.insert(param.value, pieces);
                offset += self.argument_bytes(&ty);
            }
        }
    }

    /// Writes the statements of a function's body. Constants are loaded before the statement that uses them first.
    pub(crate) fn top(&mut self, block: &Block) -> Result<(), Refusal> {
        for stmt in block {
            let before = self.code.insts.len() as u32;
            if matches!(
                stmt,
                Stmt::For { .. } | Stmt::While { .. } | Stmt::If { .. }
            ) {
                self.constants.clear();
                self.anchor = before;
            }
            self.statement(stmt)?;
            if matches!(
                stmt,
                Stmt::For { .. } | Stmt::While { .. } | Stmt::If { .. }
            ) {
                self.constants.clear();
            }
            self.anchor = self.code.insts.len() as u32;
        }
        Ok(())
    }

    /// Puts the constants where they belong and hands the code on.
    pub(crate) fn done(mut self) {
        let mut anchored = std::mem::take(&mut self.anchored);
        anchored.sort_by_key(|(at, _)| *at);
        let insts = std::mem::take(&mut self.code.insts);
        let mut merged = Vec::with_capacity(insts.len() + anchored.len());
        // How many constants come before each instruction.
        let mut shift = Vec::with_capacity(insts.len());
        let mut waiting = anchored.into_iter().peekable();
        for (at, inst) in insts.into_iter().enumerate() {
            while let Some((_, constant)) = waiting.next_if(|(anchor, _)| *anchor as usize <= at) {
                merged.push(constant);
            }
            shift.push(merged.len() as u32);
            merged.push(inst);
        }
        for found in &mut self.code.loops {
            found.start = shift[found.start as usize];
            found.end = shift[found.end as usize];
        }
        self.code.insts = merged;
        if self.code.regs.iter().any(|reg| reg.class == Class::Tile) {
            self.code.tiles = Some(self.shared.constant(&super::tile::configuration()));
        }
        self.shared.codes.push(self.code);
    }

    /// Leaves the function, when what was written past the caches is where others see it.
    pub(crate) fn leave(&mut self) {
        if self.found.streams.write() {
            self.emit(M::Fence);
        }
        self.emit(M::Return);
    }

    // Instructions and registers.

    pub(crate) fn emit(&mut self, inst: M) {
        self.code.insts.push(inst);
    }

    pub(crate) fn reg_new(&mut self, class: Class) -> VReg {
        let reg = VReg(self.code.regs.len() as u32);
        self.code.regs.push(RegInfo {
            class,
            scope: self.inside,
            constant: None,
        });
        reg
    }

    pub(crate) fn gpr_new(&mut self) -> VReg {
        self.reg_new(Class::Gpr)
    }

    pub(crate) fn vec_new(&mut self) -> VReg {
        self.reg_new(Class::Vec)
    }

    pub(crate) fn mask_new(&mut self) -> VReg {
        self.reg_new(Class::Mask)
    }

    pub(crate) fn immediate(&mut self, value: i64) -> VReg {
        let to = self.gpr_new();
        self.emit(M::Immediate { to, value });
        to
    }

    pub(crate) fn copy(&mut self, from: VReg) -> VReg {
        let to = self.reg_new(self.code.regs[from].class);
        self.emit(M::Copy { to, from });
        to
    }

    /// Room in the frame.
    pub(crate) fn allocate(&mut self, bytes: u64, align: u64) -> i32 {
        let at = self.code.frame.next_multiple_of(align.clamp(8, 64));
        self.code.frame = at + bytes;
        at as i32
    }

    /// Room in the frame for short use: whoever asks next for as much gets the same.
    pub(crate) fn room(&mut self, room: Room, bytes: u32) -> i32 {
        let key = (room, bytes.next_multiple_of(64));
        if let Some(at) = self.rooms.get(&key) {
            return *at;
        }
        let at = self.allocate(key.1.into(), 64);
        self.rooms.insert(key, at);
        at
    }

    /// The number that a scalar integer is, if that is known.
    pub(crate) fn known(&self, value: Value) -> Option<i64> {
        if let Some(scalar) = self.found.constants[value] {
            return scalar.as_i64();
        }
        self.found.forms[value].as_ref().and_then(Linear::known)
    }

    // Statements.

    pub(crate) fn block(&mut self, block: &Block) -> Result<(), Refusal> {
        self.scopes.push(Scope::default());
        let result = block.iter().enumerate().try_for_each(|(at, stmt)| {
            if let Stmt::For { .. } = stmt {
                self.written = written(&block[at + 1..]);
            }
            self.statement(stmt)
        });
        // What follows the block is not in the loop around it.
        self.coming = None;
        self.scopes.pop();
        result
    }

    fn statement(&mut self, stmt: &Stmt) -> Result<(), Refusal> {
        unwind_if_asked();
        match stmt {
            Stmt::Let(value, inst) => self.definition(*value, inst),
            Stmt::Store { ptr, index, value } => self.store(*ptr, *index, *value),
            Stmt::Call(id, arguments) => self.call(*id, arguments, None),
            Stmt::For {
                var,
                start,
                end,
                step,
                kind,
                body,
            } => {
                let coming = self.coming.take();
                if self.transposed(stmt)? {
                    return Ok(());
                }
                if let Some(coming) = coming {
                    self.asking = self.asking(&coming, stmt);
                }
                let pooled = *kind == LoopKind::Parallel
                    && self.captures.is_none()
                    && is_kernel(self.function);
                match pooled {
                    true => self.parallel(*var, [*start, *end, *step], body),
                    false => {
                        self.serial(*var, Bound::Value(*start), Bound::Value(*end), *step, body)
                    }
                }
            }
            Stmt::While { head, cond, body } => self.while_loop(head, *cond, body),
            Stmt::If {
                cond,
                then,
                otherwise,
            } => self.branch(*cond, then, otherwise),
            Stmt::Break => {
                let Some(exits) = self.exits.last() else {
                    return Err(Refusal("`break` stands outside of loops".to_owned()));
                };
                self.emit(M::Jump(exits.brk));
                Ok(())
            }
            Stmt::Continue => {
                let Some(exits) = self.exits.last() else {
                    return Err(Refusal("`continue` stands outside of loops".to_owned()));
                };
                self.emit(M::Jump(exits.cont));
                Ok(())
            }
            Stmt::Return(value) => {
                if let Some(value) = value {
                    self.give(*value)?;
                }
                self.leave();
                Ok(())
            }
            Stmt::Barrier { .. } | Stmt::AsyncCopy { .. } | Stmt::AsyncWait { .. } => {
                unreachable!("what needs groups was refused")
            }
            Stmt::TileStore {
                tile,
                ptr,
                index,
                stride,
            } => self.tile_store(*tile, *ptr, *index, *stride),
        }
    }

    fn definition(&mut self, value: Value, inst: &Inst) -> Result<(), Refusal> {
        if !self.found.needed[value] {
            return Ok(());
        }
        match inst {
            Inst::Const(_) => Ok(()),
            Inst::Alloc { ty, count, .. } => {
                let ty = ty.clone();
                if self.is_tile_variable(value) {
                    let reg = self.reg_new(Class::Tile);
                    self.variables.insert(value, smallvec![reg]);
                    return Ok(());
                }
                if self.found.variable[value] {
                    let pieces = self.pieces_new(&ty);
                    self.variables.insert(value, pieces);
                    return Ok(());
                }
                let layout = Layout::of(self.module, &ty)
                    .ok_or_else(|| Refusal("an array has no layout".to_owned()))?;
                let bytes = layout
                    .size
                    .checked_mul(*count)
                    .filter(|bytes| *bytes < 1 << 30);
                let bytes = bytes.ok_or_else(|| {
                    Refusal(format!(
                        "a private array of {count} elements is larger than a stack can be"
                    ))
                })?;
                // Whole registers are never read beyond an array: that much is between arrays.
                let at = self.allocate(bytes, 64);
                if self.code.frame > MOST_FRAME {
                    return Err(Refusal(format!(
                        "the private arrays of a function have more than {MOST_FRAME} bytes, which a thread's stack may not have"
                    )));
                }
                self.arrays.insert(value, at);
                Ok(())
            }
            Inst::Offset { .. } | Inst::Field { .. } | Inst::Elements(_) => Ok(()),
            inst => {
                let pieces = self.instruction(value, inst)?;
                self.held.insert(value, pieces);
                Ok(())
            }
        }
    }

    /// A condition as a jump that is taken where it does not hold.
    pub(crate) fn jump_unless(&mut self, cond: Value, to: Label) -> Result<(), Refusal> {
        if let Some(scalar) = self.found.constants[cond] {
            if !scalar.is_true() {
                self.emit(M::Jump(to));
            }
            return Ok(());
        }
        let reg = self.gpr(cond);
        self.emit(M::Test {
            bits: Bits::B32,
            a: reg,
            b: reg,
        });
        self.emit(M::JumpIf(Cond::Equal, to));
        Ok(())
    }

    fn branch(&mut self, cond: Value, then: &Block, otherwise: &Block) -> Result<(), Refusal> {
        let (otherwise_at, end) = (self.shared.asm.label(), self.shared.asm.label());
        self.jump_unless(cond, otherwise_at)?;
        self.block(then)?;
        if !otherwise.is_empty() {
            self.emit(M::Jump(end));
        }
        self.emit(M::Label(otherwise_at));
        self.block(otherwise)?;
        self.emit(M::Label(end));
        Ok(())
    }

    /// Begins a loop at the next instruction.
    pub(crate) fn enter_loop(&mut self) -> u32 {
        let number = self.code.loops.len() as u32;
        let start = self.code.insts.len() as u32;
        self.code.loops.push(Loop {
            outer: self.inside,
            start,
            end: start,
        });
        self.inside = Some(number);
        number
    }

    /// Ends it with the last instruction.
    pub(crate) fn leave_loop(&mut self, number: u32) {
        let found = &mut self.code.loops[number as usize];
        found.end = self.code.insts.len() as u32 - 1;
        self.inside = found.outer;
    }

    fn while_loop(&mut self, head: &Block, cond: Value, body: &Block) -> Result<(), Refusal> {
        let labels = Exits {
            brk: self.shared.asm.label(),
            cont: self.shared.asm.label(),
        };
        let number = self.enter_loop();
        self.emit(M::Label(labels.cont));
        self.look(labels.brk);
        self.plans.push(Plan::default());
        self.scopes.push(Scope::default());
        for stmt in head {
            self.statement(stmt)?;
        }
        self.jump_unless(cond, labels.brk)?;
        self.exits.push(labels);
        let result = self.block(body);
        self.exits.pop();
        self.scopes.pop();
        self.plans.pop();
        result?;
        self.emit(M::Jump(labels.cont));
        self.leave_loop(number);
        self.emit(M::Label(labels.brk));
        Ok(())
    }

    /// The number that a bound is, if that is known.
    fn known_bound(&self, bound: Bound) -> Option<i64> {
        match bound {
            Bound::Value(value) => self.known(value),
            Bound::Reg(_) => None,
        }
    }

    /// A loop whose iterations run one after the other.
    pub(crate) fn serial(
        &mut self,
        var: Value,
        start: Bound,
        end: Bound,
        step: Value,
        body: &Block,
    ) -> Result<(), Refusal> {
        let written = std::mem::take(&mut self.written);
        let (first, last, by) = (
            self.known_bound(start),
            self.known_bound(end),
            self.known(step),
        );
        if let (Some(first), Some(last)) = (first, last)
            && first >= last
        {
            return Ok(());
        }
        let counter = self.gpr_new();
        match (first, start) {
            (Some(value), _) => self.emit(M::Immediate { to: counter, value }),
            (None, Bound::Value(start)) => {
                let from = self.gpr(start);
                self.emit(M::Copy { to: counter, from });
            }
            (None, Bound::Reg(from)) => self.emit(M::Copy { to: counter, from }),
        }
        self.held.insert(var, smallvec![counter]);
        let limit = match (last.and_then(|last| i32::try_from(last).ok()), end) {
            (Some(last), _) => Source::Imm(last),
            (None, Bound::Value(end)) => Source::Reg(self.gpr(end)),
            (None, Bound::Reg(end)) => Source::Reg(end),
        };
        let step_value = step;
        let step = match by.and_then(|by| i32::try_from(by).ok()) {
            Some(by) => Source::Imm(by),
            None => Source::Reg(self.gpr(step)),
        };
        let labels = Exits {
            brk: self.shared.asm.label(),
            cont: self.shared.asm.label(),
        };
        let at_least_once = matches!((first, last), (Some(first), Some(last)) if first < last);
        let once = match (first, last, by) {
            (Some(first), Some(last), Some(by)) => {
                first.checked_add(by).is_some_and(|next| next >= last)
            }
            _ => false,
        };
        if !at_least_once {
            self.emit(M::Compare {
                bits: Bits::B64,
                a: counter,
                b: limit,
            });
            self.emit(M::JumpIf(Cond::GreaterEqual, labels.brk));
        }
        // What is computed from here on is not there where the loop is passed over.
        self.scopes.push(Scope::default());
        if once {
            self.exits.push(labels);
            self.plans.push(Plan::default());
            let result = self.block(body);
            self.plans.pop();
            self.exits.pop();
            self.scopes.pop();
            result?;
            self.emit(M::Label(labels.cont));
            self.emit(M::Label(labels.brk));
            return Ok(());
        }
        let mut parts = self.parts(var, (first, last, by), (counter, limit), &written, body);
        let mut plan = self.plan(var, counter, step, body);
        if super::address::has_loop(body) {
            plan.moves = self.carried(var, counter, step, body);
        }
        let count = match (first, last, by) {
            (Some(first), Some(last), Some(by)) => Some(trips(first, last, by)),
            _ => None,
        };
        let watch = match crate::poll::poll() {
            Some(_) => self.watch((count, by), body),
            None => Watch::Never,
        };
        let mut strips = None;
        let stop = match (&mut parts, watch) {
            (Some(parts), _) => self.begin_part(parts, counter, limit),
            (None, Watch::Strips(span)) => {
                let (begun, stop) = self.begin_strip(span, counter, limit);
                strips = Some(begun);
                stop
            }
            (None, Watch::Each | Watch::Never) => limit,
        };
        let head = self.shared.asm.label();
        let number = self.enter_loop();
        self.emit(M::Head(head));
        let moves = plan.moves.clone();
        self.plans.push(plan);
        self.exits.push(labels);
        self.around.push((var, step_value));
        self.ask_for_lines(var);
        let result = self.block(body);
        self.around.pop();
        self.exits.pop();
        self.plans.pop();
        self.scopes.pop();
        result?;
        self.emit(M::Label(labels.cont));
        for (reg, by) in moves {
            self.emit(M::Alu {
                op: Alu::Add,
                bits: Bits::B64,
                to: reg,
                from: by,
            });
        }
        self.emit(M::Alu {
            op: Alu::Add,
            bits: Bits::B64,
            to: counter,
            from: step,
        });
        // A step beyond the largest number would start anew below the end.
        let far = last.is_none_or(|last| last > i64::MAX - by.unwrap_or(i64::MAX).max(1));
        if far && by != Some(1) {
            self.emit(M::JumpIf(Cond::Overflow, labels.brk));
        }
        if watch == Watch::Each {
            self.look(labels.brk);
        }
        self.emit(M::Compare {
            bits: Bits::B64,
            a: counter,
            b: stop,
        });
        self.emit(M::JumpIf(Cond::Less, head));
        self.leave_loop(number);
        if let Some(parts) = &parts {
            self.end_part(parts, counter, limit);
        }
        if let Some(strips) = &strips {
            self.end_strip(strips, counter, limit, labels.brk);
        }
        self.emit(M::Label(labels.brk));
        Ok(())
    }

    /// An operand of integer instructions: a number where it is known and short.
    pub(crate) fn source(&mut self, value: Value) -> Source {
        match self
            .known(value)
            .and_then(|known| i32::try_from(known).ok())
        {
            Some(known) => Source::Imm(known),
            None => Source::Reg(self.gpr(value)),
        }
    }

    /// Writes an instruction; what it gives.
    fn instruction(&mut self, value: Value, inst: &Inst) -> Result<Pieces, Refusal> {
        let ty = self.function.ty(value).clone();
        match inst {
            Inst::Const(_)
            | Inst::Alloc { .. }
            | Inst::Offset { .. }
            | Inst::Field { .. }
            | Inst::Elements(_) => unreachable!("such values are not computed where they stand"),
            Inst::Map(op, operands) => self.map(value, *op, operands, &ty),
            Inst::Cast(_, from) => self.cast(*from, &ty),
            Inst::Bitcast(_, from) => self.bitcast(*from, &ty),
            Inst::Load { ptr, index } => self.load(value, *ptr, *index, &ty),
            Inst::Splat(from) => self.splat(*from, &ty),
            Inst::Build(values) => self.build(values, &ty),
            Inst::Extract(from, lane) => self.extract(*from, *lane, &ty),
            Inst::Insert(into, lane, from) => self.insert(*into, *lane, *from, &ty),
            Inst::Shuffle(left, right, lanes) => self.shuffle(*left, *right, lanes, &ty),
            Inst::ReduceLanes(op, from) => self.reduce(*op, *from, &ty),
            Inst::WorkItem(query, axis) => Ok(smallvec![self.work_item(*query, *axis)]),
            Inst::Atomic {
                op,
                ptr,
                index,
                value: operand,
            } => self.atomic(*op, *ptr, *index, *operand, &ty),
            Inst::CompareExchange {
                ptr,
                index,
                expected,
                value: new,
            } => self.compare_exchange(*ptr, *index, *expected, *new, &ty),
            Inst::Call(id, arguments) => {
                self.call(*id, arguments, Some(&ty))?;
                Ok(self.call_result(&ty))
            }
            Inst::TileLoad {
                ptr,
                index,
                stride,
                interleave,
            } => self.tile_load(value, [*ptr, *index, *stride], *interleave),
            Inst::TileSplat(from) => self.tile_splat(value, *from),
            Inst::TileMma {
                left,
                right,
                accumulator,
            } => self.tile_mma(value, *left, *right, *accumulator),
        }
    }

    /// The address of an element.
    pub(crate) fn element(&mut self, ptr: Value, index: Value) -> Place {
        let address = super::analyse::address(self.module, self.function, self.found, ptr, index);
        self.place(&address)
    }

    /// The dtype of a scalar or vector.
    pub(crate) fn dtype(&self, value: Value) -> DType {
        let Some(dtype) = self.function.ty(value).dtype() else {
            unreachable!("only scalars and vectors are computed with")
        };
        dtype
    }
}
