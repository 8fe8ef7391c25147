//! Calls between functions of a module, and work-items.
//!
//! Arguments are laid out in a block of memory whose address the callee is given; its result comes back at the block's
//! start. The second argument is the runtime's table, the third the work-item's numbers.

use super::function::{Room, Writer};
use super::value::{Pieces, size_of};
use super::{Refusal, Shared};
use crate::asm::{Alu, Bits, Cond, Label, Mem};
use crate::machine::{
    Argument, Callee, Class, Code, Inst as M, Loop, RegInfo, Source, VReg, frame,
};
use loopwright_arena::TiVec;
use loopwright_kernel::{FunctionId, Type, Value, WorkItem};

/// Where a work-item's number is among its numbers: three for each question.
fn number_of(query: WorkItem, axis: u8) -> i32 {
    let query = match query {
        WorkItem::GlobalId => 0,
        WorkItem::LocalId => 1,
        WorkItem::GroupId => 2,
        WorkItem::GlobalSize => 3,
        WorkItem::LocalSize => 4,
        WorkItem::GroupCount => 5,
    };
    8 * (3 * query + i32::from(axis))
}

impl Writer<'_, '_, '_> {
    /// Bytes of an argument in a block.
    pub(crate) fn argument_bytes(&self, ty: &Type) -> i32 {
        match ty {
            Type::Vector(dtype, lanes) => (size_of(*dtype) * lanes).next_multiple_of(64) as i32,
            _ => 64,
        }
    }

    pub(crate) fn call(
        &mut self,
        id: FunctionId,
        arguments: &[Value],
        result: Option<&Type>,
    ) -> Result<(), Refusal> {
        let types: Vec<Type> = arguments
            .iter()
            .map(|value| self.function.ty(*value).clone())
            .collect();
        let bytes: i32 = types.iter().map(|ty| self.argument_bytes(ty)).sum();
        let bytes = bytes.max(result.map_or(64, |ty| self.argument_bytes(ty)));
        let all: Vec<Pieces> = arguments.iter().map(|value| self.pieces(*value)).collect();
        // Beside what is taken apart: a callee's own frame is another one, but arguments are kept here meanwhile.
        let block = self.call_block(bytes as u32);
        let mut at = block;
        for (ty, pieces) in types.iter().zip(&all) {
            self.store_any(ty, Mem::at(VReg::FRAME, at), pieces);
            at += self.argument_bytes(ty);
        }
        let callee = Callee::Label(self.shared.functions[id]);
        let runtime = self.gpr_new();
        self.emit(M::Load {
            bits: Bits::B64,
            signed: false,
            to: runtime,
            from: Mem::at(VReg::FRAME, frame::ARGUMENTS[1]),
        });
        let item = self.item();
        self.emit(M::Call {
            callee,
            arguments: vec![
                Argument::Frame(block),
                Argument::Reg(runtime),
                Argument::Reg(item),
            ],
        });
        Ok(())
    }

    /// Room for arguments. Blocks of all calls are the same memory.
    fn call_block(&mut self, bytes: u32) -> i32 {
        self.room(Room::Call, bytes)
    }

    /// What the last call gave.
    pub(crate) fn call_result(&mut self, ty: &Type) -> Pieces {
        let Some(M::Call { arguments, .. }) = self.code.insts.last() else {
            unreachable!("a result follows a call")
        };
        let Some(Argument::Frame(block)) = arguments.first().copied() else {
            unreachable!("a call's first argument is its block")
        };
        self.load_any(ty, Mem::at(VReg::FRAME, block))
    }

    /// Writes the function's result to the block it was given.
    pub(crate) fn give(&mut self, value: Value) -> Result<(), Refusal> {
        let ty = self.function.ty(value).clone();
        let pieces = self.pieces(value);
        let block = self.gpr_new();
        self.emit(M::Load {
            bits: Bits::B64,
            signed: false,
            to: block,
            from: Mem::at(VReg::FRAME, frame::ARGUMENTS[0]),
        });
        self.store_any(&ty, Mem::at(block, 0), &pieces);
        Ok(())
    }

    /// A number of the work-item.
    pub(crate) fn work_item(&mut self, query: WorkItem, axis: u8) -> VReg {
        let item = self.item();
        let to = self.gpr_new();
        self.emit(M::Load {
            bits: Bits::B64,
            signed: true,
            to,
            from: Mem::at(item, number_of(query, axis)),
        });
        to
    }
}

/// Offsets of the runtime's table: see [`loopwright_native::Runtime`].
pub(crate) mod runtime {
    pub(crate) const CONTEXT: i32 = 0;
    pub(crate) const PARALLEL_FOR: i32 = 8;
    pub(crate) const GLOBAL_SIZE: i32 = 16;
    pub(crate) const LOCAL_SIZE: i32 = 40;
}

/// Writes a function that calls a kernel for every work-item of the grid, the first axis innermost; where it begins.
pub(crate) fn each_item(shared: &mut Shared<'_>, kernel: Label, name: &str) -> Label {
    let entry = shared.asm.label();
    let numbers = frame::FREE as i32;
    let mut code = Code {
        insts: Vec::new(),
        regs: TiVec::new(),
        loops: Vec::new(),
        frame: frame::FREE + 18 * 8,
        tiles: None,
        entry,
        name: format!("{name}.items"),
    };
    let reg = |code: &mut Code, scope: Option<u32>| {
        code.regs.push_and_get_key(RegInfo {
            class: Class::Gpr,
            scope,
            constant: None,
        })
    };
    let argument = |at: usize| Mem::at(VReg::FRAME, frame::ARGUMENTS[at]);
    let load = |to, from| M::Load {
        bits: Bits::B64,
        signed: true,
        to,
        from,
    };
    let (table, runtime_reg) = (reg(&mut code, None), reg(&mut code, None));
    code.insts.push(load(table, argument(0)));
    code.insts.push(load(runtime_reg, argument(1)));
    let place = |query, axis: u8| Mem::at(VReg::FRAME, numbers + number_of(query, axis));
    let store = |to, from| M::Store {
        bits: Bits::B64,
        to,
        from,
    };
    let divide = |to, of, by, remainder| M::Divide {
        bits: Bits::B64,
        signed: true,
        remainder,
        to,
        of,
        by,
    };
    let mut sizes = Vec::new();
    for axis in 0..3u8 {
        let (global, local, groups) = (
            reg(&mut code, None),
            reg(&mut code, None),
            reg(&mut code, None),
        );
        code.insts.push(load(
            global,
            Mem::at(runtime_reg, runtime::GLOBAL_SIZE + 8 * i32::from(axis)),
        ));
        code.insts.push(load(
            local,
            Mem::at(runtime_reg, runtime::LOCAL_SIZE + 8 * i32::from(axis)),
        ));
        code.insts.push(divide(groups, global, local, false));
        code.insts
            .push(store(place(WorkItem::GlobalSize, axis), global));
        code.insts
            .push(store(place(WorkItem::LocalSize, axis), local));
        code.insts
            .push(store(place(WorkItem::GroupCount, axis), groups));
        sizes.push((global, local));
    }
    // From the last axis to the first.
    let mut open = Vec::new();
    let mut inside = None;
    for axis in (0..3u8).rev() {
        let (global, local) = sizes[usize::from(axis)];
        let id = reg(&mut code, inside);
        code.insts.push(M::Immediate { to: id, value: 0 });
        let (again, done) = (shared.asm.label(), shared.asm.label());
        let number = code.loops.len() as u32;
        let start = code.insts.len() as u32;
        code.loops.push(Loop {
            outer: inside,
            start,
            end: start,
        });
        inside = Some(number);
        code.insts.push(M::Label(again));
        code.insts.push(M::Compare {
            bits: Bits::B64,
            a: id,
            b: Source::Reg(global),
        });
        code.insts.push(M::JumpIf(Cond::GreaterEqual, done));
        let (group, within) = (reg(&mut code, inside), reg(&mut code, inside));
        code.insts.push(divide(group, id, local, false));
        code.insts.push(divide(within, id, local, true));
        code.insts.push(store(place(WorkItem::GlobalId, axis), id));
        code.insts
            .push(store(place(WorkItem::LocalId, axis), within));
        code.insts
            .push(store(place(WorkItem::GroupId, axis), group));
        open.push((number, id, again, done));
    }
    code.insts.push(M::Call {
        callee: Callee::Label(kernel),
        arguments: vec![
            Argument::Reg(table),
            Argument::Reg(runtime_reg),
            Argument::Frame(numbers),
        ],
    });
    for (number, id, again, done) in open.into_iter().rev() {
        code.insts.push(M::Alu {
            op: Alu::Add,
            bits: Bits::B64,
            to: id,
            from: Source::Imm(1),
        });
        code.insts.push(M::Jump(again));
        code.loops[number as usize].end = code.insts.len() as u32 - 1;
        code.insts.push(M::Label(done));
    }
    code.insts.push(M::Return);
    shared.codes.push(code);
    entry
}
