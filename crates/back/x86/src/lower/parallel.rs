//! Parallel loops: their bodies become functions of their own, which the runtime calls on its threads.

use super::Refusal;
use super::calls::runtime;
use super::function::{Bound, ITEM, Writer};
use super::value::Pieces;
use crate::asm::{Alu, Bits, Mem};
use crate::machine::{Argument, Callee, Class, Inst as M, Source, VReg, frame};
use loopwright_kernel::{Block, Value};

impl Writer<'_, '_, '_> {
    pub(crate) fn parallel(
        &mut self,
        var: Value,
        [start, end, step]: [Value; 3],
        body: &Block,
    ) -> Result<(), Refusal> {
        let entry = self.shared.asm.label();
        self.parallels += 1;
        let name = format!("{}.loop{}", self.code.name, self.parallels);
        let (captures, bytes) = {
            let mut inner = Writer::new(
                self.module,
                self.function,
                self.found,
                &mut *self.shared,
                entry,
                name,
            );
            inner.task(var, start, step, body)?;
            let captures = inner.captures.take().unwrap_or_default();
            let bytes = inner.environment_bytes;
            inner.done();
            (captures, bytes)
        };
        // What the body uses from here.
        let environment = self.allocate(bytes.max(64) as u64, 64);
        for (value, at) in captures {
            let pieces: Pieces = match value {
                ITEM => [self.item()].into_iter().collect(),
                value => self.pieces(value),
            };
            for (piece, reg) in pieces.into_iter().enumerate() {
                let class = self.code.regs[reg].class;
                let place = Mem::at(VReg::FRAME, environment + at + 64 * piece as i32);
                let save = self.save(class, reg, place);
                self.emit(save);
            }
        }
        // So many iterations: the span, rounded up.
        let (first, last, by) = (self.gpr(start), self.gpr(end), self.gpr(step));
        let count = self.copy(last);
        let alu = |op, from| M::Alu {
            op,
            bits: Bits::B64,
            to: count,
            from,
        };
        self.emit(alu(Alu::Sub, Source::Reg(first)));
        if self.known(step) != Some(1) {
            self.emit(alu(Alu::Add, Source::Reg(by)));
            self.emit(alu(Alu::Sub, Source::Imm(1)));
            self.emit(M::Divide {
                bits: Bits::B64,
                signed: true,
                remainder: false,
                to: count,
                of: count,
                by,
            });
        }
        let table = self.gpr_new();
        self.emit(load(table, Mem::at(VReg::FRAME, frame::ARGUMENTS[1])));
        let (context, function) = (self.gpr_new(), self.gpr_new());
        self.emit(load(context, Mem::at(table, runtime::CONTEXT)));
        self.emit(load(function, Mem::at(table, runtime::PARALLEL_FOR)));
        self.emit(M::Call {
            callee: Callee::Reg(function),
            arguments: vec![
                Argument::Reg(context),
                Argument::Reg(count),
                Argument::Label(entry),
                Argument::Frame(environment),
            ],
        });
        Ok(())
    }

    /// The body over a range of iterations: `task(environment, begin, stop)`.
    fn task(&mut self, var: Value, start: Value, step: Value, body: &Block) -> Result<(), Refusal> {
        let environment = self.outside(Class::Gpr);
        self.emit(load(environment, Mem::at(VReg::FRAME, frame::ARGUMENTS[0])));
        self.environment = Some(environment);
        self.captures = Some(Vec::new());
        let (begin, stop) = (self.gpr_new(), self.gpr_new());
        self.emit(load(begin, Mem::at(VReg::FRAME, frame::ARGUMENTS[1])));
        self.emit(load(stop, Mem::at(VReg::FRAME, frame::ARGUMENTS[2])));
        self.anchor = self.code.insts.len() as u32;
        // From the iteration's number to the variable's value.
        let (first, by) = (self.gpr(start), self.gpr(step));
        let at = |writer: &mut Self, number: VReg| {
            let value = writer.copy(number);
            writer.emit(M::Multiply {
                bits: Bits::B64,
                to: value,
                by,
            });
            writer.emit(M::Alu {
                op: Alu::Add,
                bits: Bits::B64,
                to: value,
                from: Source::Reg(first),
            });
            value
        };
        let (from, to) = (at(self, begin), at(self, stop));
        self.serial(var, Bound::Reg(from), Bound::Reg(to), step, body)?;
        self.leave();
        Ok(())
    }
}

fn load(to: VReg, from: crate::machine::Place) -> M {
    M::Load {
        bits: Bits::B64,
        signed: false,
        to,
        from,
    }
}
