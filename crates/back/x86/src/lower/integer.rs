//! Ops on scalar integers and `bool`, in general registers. Values narrower than 64 bits are extended by their sign or by zeros.

use super::function::Writer;
use super::value::{bits_of, is_signed, size_of};
use crate::asm::{Alu, BitCount, Bits, Cond, Mem, Shift, Unary};
use crate::level::Level;
use crate::machine::{Inst as M, Source, VReg};
use loopwright_kernel::Value;
use loopwright_ops::{DType, Kind, Op};

impl Writer<'_, '_, '_> {
    /// An op on scalars that are in general registers; `None` where there are no instructions for it.
    pub(crate) fn integer(&mut self, op: Op, dtype: DType, operands: &[Value]) -> Option<VReg> {
        if op == Op::Select {
            return Some(self.select_gpr(operands));
        }
        match dtype.kind() {
            Kind::Float => None,
            Kind::Bool => self.truth(op, operands),
            Kind::Signed | Kind::Unsigned => self.number(op, dtype, operands),
        }
    }

    fn select_gpr(&mut self, operands: &[Value]) -> VReg {
        let cond = self.gpr(operands[0]);
        let (a, b) = (self.gpr(operands[1]), self.gpr(operands[2]));
        let to = self.copy(b);
        self.emit(M::Test {
            bits: Bits::B32,
            a: cond,
            b: cond,
        });
        self.emit(M::MoveIf {
            cond: Cond::NotEqual,
            to,
            from: a,
        });
        to
    }

    fn truth(&mut self, op: Op, operands: &[Value]) -> Option<VReg> {
        let a = self.gpr(operands[0]);
        let alu = match op {
            Op::Not => {
                let to = self.copy(a);
                self.alu(Alu::Xor, Bits::B32, to, Source::Imm(1));
                return Some(to);
            }
            Op::And | Op::Min => Alu::And,
            Op::Or | Op::Max => Alu::Or,
            Op::Xor => Alu::Xor,
            _ => return self.compare_gpr(op, false, operands),
        };
        let b = self.gpr(operands[1]);
        let to = self.copy(a);
        self.alu(alu, Bits::B32, to, Source::Reg(b));
        Some(to)
    }

    fn alu(&mut self, op: Alu, bits: Bits, to: VReg, from: Source) {
        self.emit(M::Alu { op, bits, to, from });
    }

    fn compare_gpr(&mut self, op: Op, signed: bool, operands: &[Value]) -> Option<VReg> {
        let cond = condition(op, signed)?;
        let a = self.gpr(operands[0]);
        let b = self.source(operands[1]);
        self.emit(M::Compare {
            bits: Bits::B64,
            a,
            b,
        });
        let to = self.gpr_new();
        self.emit(M::Set { cond, to });
        Some(to)
    }

    /// Makes the register's value one of the dtype again.
    pub(crate) fn extend(&mut self, dtype: DType, from: VReg) -> VReg {
        if size_of(dtype) == 8 {
            return from;
        }
        let to = self.gpr_new();
        self.emit(M::Extend {
            bits: bits_of(dtype),
            signed: is_signed(dtype),
            to,
            from,
        });
        to
    }

    fn number(&mut self, op: Op, dtype: DType, operands: &[Value]) -> Option<VReg> {
        let signed = is_signed(dtype);
        let bits = Bits::B64;
        let result = match op {
            Op::Neg | Op::Not => {
                let a = self.gpr(operands[0]);
                let to = self.copy(a);
                let op = match op {
                    Op::Neg => Unary::Neg,
                    _ => Unary::Not,
                };
                self.emit(M::Unary { op, bits, reg: to });
                to
            }
            Op::Abs if !signed => return Some(self.gpr(operands[0])),
            Op::Abs => {
                let a = self.gpr(operands[0]);
                let to = self.copy(a);
                self.emit(M::Unary {
                    op: Unary::Neg,
                    bits,
                    reg: to,
                });
                // The negative of a negative number; of others, the number.
                self.emit(M::MoveIf {
                    cond: Cond::Sign,
                    to,
                    from: a,
                });
                to
            }
            Op::Add => {
                let a = self.gpr(operands[0]);
                let to = self.gpr_new();
                let of = match self.source(operands[1]) {
                    Source::Imm(value) => Mem::at(a, value),
                    Source::Reg(b) => Mem::At {
                        base: a,
                        index: Some((b, 1)),
                        disp: 0,
                    },
                };
                self.emit(M::Lea { to, of });
                to
            }
            Op::Sub | Op::And | Op::Or | Op::Xor => {
                let alu = match op {
                    Op::Sub => Alu::Sub,
                    Op::And => Alu::And,
                    Op::Or => Alu::Or,
                    _ => Alu::Xor,
                };
                let a = self.gpr(operands[0]);
                let b = self.source(operands[1]);
                let to = self.copy(a);
                self.alu(alu, bits, to, b);
                to
            }
            Op::Mul => self.product_gpr(operands[0], operands[1]),
            Op::MulAdd => {
                let product = self.product_gpr(operands[0], operands[1]);
                let c = self.gpr(operands[2]);
                let to = self.copy(product);
                self.alu(Alu::Add, bits, to, Source::Reg(c));
                to
            }
            Op::Min | Op::Max => {
                let (a, b) = (self.gpr(operands[0]), self.gpr(operands[1]));
                let to = self.copy(b);
                self.emit(M::Compare {
                    bits,
                    a,
                    b: Source::Reg(b),
                });
                let relation = if op == Op::Max { Op::Gt } else { Op::Lt };
                self.emit(M::MoveIf {
                    cond: condition(relation, signed)?,
                    to,
                    from: a,
                });
                return Some(to);
            }
            Op::Shl | Op::Shr => return Some(self.shift_gpr(op, dtype, operands)),
            Op::Div | Op::Rem | Op::FloorDiv | Op::Mod => {
                return self.quotient(op, dtype, operands);
            }
            Op::Popcount | Op::Clz | Op::Ctz if self.level != Level::Sse => {
                return Some(self.bits_counted(op, dtype, operands[0]));
            }
            _ => return self.compare_gpr(op, signed, operands),
        };
        Some(self.extend(dtype, result))
    }

    fn product_gpr(&mut self, a: Value, b: Value) -> VReg {
        let (a, b) = match self.known(a) {
            Some(_) => (b, a),
            None => (a, b),
        };
        let a = self.gpr(a);
        match self.source(b) {
            Source::Imm(by) => {
                let to = self.gpr_new();
                self.emit(M::MultiplyImm {
                    bits: Bits::B64,
                    to,
                    from: a,
                    by,
                });
                to
            }
            Source::Reg(by) => {
                let to = self.copy(a);
                self.emit(M::Multiply {
                    bits: Bits::B64,
                    to,
                    by,
                });
                to
            }
        }
    }

    fn shift_gpr(&mut self, op: Op, dtype: DType, operands: &[Value]) -> VReg {
        let width = 8 * i64::from(size_of(dtype));
        let signed = is_signed(dtype);
        let shift = match (op, signed) {
            (Op::Shl, _) => Shift::Shl,
            (_, false) => Shift::Shr,
            (_, true) => Shift::Sar,
        };
        let a = self.gpr(operands[0]);
        if let Some(by) = self.known(operands[1]) {
            let over = !(0..width).contains(&by);
            if over && shift != Shift::Sar {
                return self.immediate(0);
            }
            let to = self.copy(a);
            self.emit(M::ShiftImm {
                op: shift,
                bits: Bits::B64,
                reg: to,
                by: if over { 63 } else { by as u8 },
            });
            return self.extend(dtype, to);
        }
        let by = self.gpr(operands[1]);
        // An amount that is too large, or negative, is as one that leaves nothing but the sign.
        let (most, amount) = (
            self.immediate(if shift == Shift::Sar { 63 } else { 0 }),
            self.copy(by),
        );
        self.emit(M::Compare {
            bits: Bits::B64,
            a: by,
            b: Source::Imm(width as i32),
        });
        self.emit(M::MoveIf {
            cond: Cond::AboveEqual,
            to: amount,
            from: most,
        });
        let to = self.gpr_new();
        self.emit(M::ShiftBy {
            op: shift,
            bits: Bits::B64,
            to,
            of: a,
            by: amount,
        });
        if shift != Shift::Sar {
            let zero = self.immediate(0);
            self.emit(M::Compare {
                bits: Bits::B64,
                a: by,
                b: Source::Imm(width as i32),
            });
            self.emit(M::MoveIf {
                cond: Cond::AboveEqual,
                to,
                from: zero,
            });
        }
        self.extend(dtype, to)
    }

    fn bits_counted(&mut self, op: Op, dtype: DType, operand: Value) -> VReg {
        let width = 8 * size_of(dtype) as i32;
        let from = self.gpr(operand);
        let (from, bits) = match (size_of(dtype), op) {
            (8, _) => (from, Bits::B64),
            (4, _) => (from, Bits::B32),
            (_, Op::Ctz) => {
                // A bit behind the last one, for zero.
                let to = self.copy(from);
                self.alu(Alu::Or, Bits::B64, to, Source::Imm(1 << width));
                (to, Bits::B32)
            }
            _ => {
                let to = self.gpr_new();
                self.emit(M::Extend {
                    bits: bits_of(dtype),
                    signed: false,
                    to,
                    from,
                });
                (to, Bits::B32)
            }
        };
        let count = match op {
            Op::Popcount => BitCount::Popcnt,
            Op::Clz => BitCount::Lzcnt,
            _ => BitCount::Tzcnt,
        };
        let to = self.gpr_new();
        self.emit(M::Count {
            op: count,
            bits,
            to,
            from,
        });
        if op == Op::Clz && width < 32 {
            self.add_imm(to, width - 32);
        }
        to
    }

    /// Quotients and remainders, with the cases that the machine does not define.
    fn quotient(&mut self, op: Op, dtype: DType, operands: &[Value]) -> Option<VReg> {
        let signed = is_signed(dtype);
        let remainder = matches!(op, Op::Rem | Op::Mod);
        let down = signed && matches!(op, Op::FloorDiv | Op::Mod);
        let a = self.gpr(operands[0]);
        let known = self.known(operands[1]);
        // A power of two, rounded down: a shift or a mask.
        if let Some(by) = known
            && by > 0
            && by.count_ones() == 1
            && (down || !signed)
        {
            let to = self.copy(a);
            if remainder {
                match i32::try_from(by - 1) {
                    Ok(mask) => self.alu(Alu::And, Bits::B64, to, Source::Imm(mask)),
                    Err(_) => {
                        let mask = self.immediate(by - 1);
                        self.alu(Alu::And, Bits::B64, to, Source::Reg(mask));
                    }
                }
            } else {
                self.emit(M::ShiftImm {
                    op: if signed { Shift::Sar } else { Shift::Shr },
                    bits: Bits::B64,
                    reg: to,
                    by: by.trailing_zeros() as u8,
                });
            }
            return Some(to);
        }
        let b = self.gpr(operands[1]);
        let result = self.immediate(0);
        let done = self.shared.asm.label();
        if known.is_none_or(|by| by == 0) {
            self.emit(M::Test {
                bits: Bits::B64,
                a: b,
                b,
            });
            self.emit(M::JumpIf(Cond::Equal, done));
        }
        if signed && known.is_none_or(|by| by == -1) {
            let usual = self.shared.asm.label();
            self.emit(M::Compare {
                bits: Bits::B64,
                a: b,
                b: Source::Imm(-1),
            });
            self.emit(M::JumpIf(Cond::NotEqual, usual));
            // The remainder of -1 is 0; the quotient wraps.
            if !remainder {
                self.emit(M::Copy {
                    to: result,
                    from: a,
                });
                self.emit(M::Unary {
                    op: Unary::Neg,
                    bits: Bits::B64,
                    reg: result,
                });
            }
            self.emit(M::Jump(done));
            self.emit(M::Label(usual));
        }
        self.emit(M::Divide {
            bits: Bits::B64,
            signed,
            remainder,
            to: result,
            of: a,
            by: b,
        });
        if down {
            self.round_down(remainder, a, b, result);
        }
        self.emit(M::Label(done));
        Some(self.extend(dtype, result))
    }

    /// Corrects a quotient or remainder that was rounded toward zero.
    fn round_down(&mut self, remainder: bool, a: VReg, b: VReg, result: VReg) {
        let exact = self.shared.asm.label();
        let rest = match remainder {
            true => result,
            false => {
                // a - quotient * b
                let product = self.copy(result);
                self.emit(M::Multiply {
                    bits: Bits::B64,
                    to: product,
                    by: b,
                });
                let rest = self.copy(a);
                self.alu(Alu::Sub, Bits::B64, rest, Source::Reg(product));
                rest
            }
        };
        self.emit(M::Test {
            bits: Bits::B64,
            a: rest,
            b: rest,
        });
        self.emit(M::JumpIf(Cond::Equal, exact));
        // Of different signs.
        let signs = self.copy(rest);
        self.alu(Alu::Xor, Bits::B64, signs, Source::Reg(b));
        self.emit(M::Test {
            bits: Bits::B64,
            a: signs,
            b: signs,
        });
        self.emit(M::JumpIf(Cond::NotSign, exact));
        match remainder {
            true => self.alu(Alu::Add, Bits::B64, result, Source::Reg(b)),
            false => self.alu(Alu::Sub, Bits::B64, result, Source::Imm(1)),
        }
        self.emit(M::Label(exact));
    }
}

/// The flags of a comparison.
fn condition(op: Op, signed: bool) -> Option<Cond> {
    Some(match (op, signed) {
        (Op::Eq, _) => Cond::Equal,
        (Op::Ne, _) => Cond::NotEqual,
        (Op::Lt, true) => Cond::Less,
        (Op::Le, true) => Cond::LessEqual,
        (Op::Gt, true) => Cond::Greater,
        (Op::Ge, true) => Cond::GreaterEqual,
        (Op::Lt, false) => Cond::Below,
        (Op::Le, false) => Cond::BelowEqual,
        (Op::Gt, false) => Cond::Above,
        (Op::Ge, false) => Cond::AboveEqual,
        _ => return None,
    })
}
