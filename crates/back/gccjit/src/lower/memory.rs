//! Atomic operations, and the elements of tiles.

use super::code::{Code, int_dtype};
use crate::ffi::{Binary, Place, Ty, Val, types};
use loopwright_kernel::AtomicOp;
use loopwright_ops::{DType, Op};

/// `__ATOMIC_SEQ_CST`.
const SEQUENTIAL: i64 = 5;

impl Code<'_, '_> {
    /// Combines atomically, sequentially consistent; gives the value before. `address` points at an element.
    pub(super) fn atomic(&mut self, op: AtomicOp, dtype: DType, address: Val, value: Val) -> Val {
        let integral = !dtype.is_float();
        let builtin = match op {
            AtomicOp::Add if integral => Some("fetch_add"),
            AtomicOp::And if integral => Some("fetch_and"),
            AtomicOp::Or if integral => Some("fetch_or"),
            AtomicOp::Xor if integral => Some("fetch_xor"),
            AtomicOp::Exchange => Some("exchange"),
            AtomicOp::Add
            | AtomicOp::Min
            | AtomicOp::Max
            | AtomicOp::And
            | AtomicOp::Or
            | AtomicOp::Xor => None,
        };
        let address = self.untyped(address);
        if let Some(builtin) = builtin {
            let function = self
                .shared
                .builtin(&format!("__atomic_{builtin}_{}", dtype.bytes()));
            let operand = self.word_of(dtype, value);
            let before = self
                .context()
                .call(function, &[address, operand, self.c_int(SEQUENTIAL)]);
            let word = self.word_type(dtype);
            let before = self.keep(word, before);
            return self.scalar_of(dtype, before);
        }
        let combine = match op {
            AtomicOp::Add => Op::Add,
            AtomicOp::Min => Op::Min,
            AtomicOp::Max => Op::Max,
            AtomicOp::And => Op::And,
            AtomicOp::Or => Op::Or,
            AtomicOp::Xor => Op::Xor,
            AtomicOp::Exchange => unreachable!("an exchange is a builtin of every dtype"),
        };
        // Computes what is to be there and tries again if somebody else was faster.
        let context = self.context();
        let (ty, word) = (self.shared.scalar(dtype), self.word_type(dtype));
        let [address, value] = [
            (context.pointer(self.volatile_void()), address),
            (ty, value),
        ]
        .map(|(ty, value)| self.keep(ty, value));
        let before = self.temporary(word);
        // A first guess, which the exchange checks; it needs no order.
        let now = context.cast(address, context.pointer(context.volatile(word)));
        self.assign(before, context.value(context.pointee(now)));
        let [again, after] = ["again", "after"].map(|name| self.new_block(name));
        context.jump(self.block, again);
        self.block = again;
        let old = self.scalar_of(dtype, context.value(before));
        let old = self.keep(ty, old);
        let new = self.scalar_op(combine, dtype, &[old, value]);
        let new = self.keep(ty, new);
        let exchanged = self.exchange_if_equal(dtype, address, before, new);
        context.branch(self.block, exchanged, after, again);
        self.block = after;
        old
    }

    /// Exchanges if the bits are equal; gives the value before.
    pub(super) fn compare_exchange(
        &mut self,
        dtype: DType,
        address: Val,
        expected: Val,
        value: Val,
    ) -> Val {
        let word = self.word_type(dtype);
        let before = self.temporary(word);
        let expected = self.word_of(dtype, expected);
        self.assign(before, expected);
        let address = self.untyped(address);
        let exchanged = self.exchange_if_equal(dtype, address, before, value);
        self.context().evaluate(self.block, exchanged);
        let before = self.context().value(before);
        self.scalar_of(dtype, before)
    }

    /// Whether `value` was written because memory had what `expected` says; if not, `expected` has what is there.
    fn exchange_if_equal(
        &mut self,
        dtype: DType,
        address: Val,
        expected: Place,
        value: Val,
    ) -> Val {
        let context = self.context();
        let function = self
            .shared
            .builtin(&format!("__atomic_compare_exchange_{}", dtype.bytes()));
        let new = self.word_of(dtype, value);
        let pointer = context.cast(context.address(expected), context.basic(types::VOID_PTR));
        let weak = context.integer(context.basic(types::BOOL), 0);
        let order = self.c_int(SEQUENTIAL);
        context.call(function, &[address, pointer, new, weak, order, order])
    }

    fn word_type(&mut self, dtype: DType) -> Ty {
        self.shared.scalar(int_dtype(dtype.bits(), true))
    }

    fn volatile_void(&self) -> Ty {
        let context = self.context();
        context.volatile(context.basic(types::VOID))
    }

    /// An address as the builtins take it.
    fn untyped(&mut self, address: Val) -> Val {
        let context = self.context();
        context.cast(address, context.pointer(self.volatile_void()))
    }

    /// `t.at[i]` of every element of a tile, row by row: `visit` is given the row, the column and the place.
    pub(super) fn each_element(
        &mut self,
        [rows, cols]: [u32; 2],
        elements: Val,
        visit: impl FnOnce(&mut Self, Val, Val, Place),
    ) {
        self.repeat(rows.into(), |code, row| {
            code.repeat(cols.into(), |code, col| {
                let at = code.row_major(row, cols, col);
                let place = code.context().element(elements, at);
                visit(code, row, col, place);
            });
        });
    }

    /// `row * width + col`.
    pub(super) fn row_major(&mut self, row: Val, width: u32, col: Val) -> Val {
        let width = self.integer(DType::I64, width.into());
        self.strided(row, width, col)
    }

    /// The group of interleaved rows that an element is in, and its place there.
    pub(super) fn interleaved(&mut self, row: Val, col: Val, interleave: u32) -> (Val, Val) {
        if interleave == 1 {
            return (row, col);
        }
        let width = self.integer(DType::I64, interleave.into());
        let group = self.binary(Binary::Div, DType::I64, 1, row, width);
        let first = self.binary(Binary::Mul, DType::I64, 1, group, width);
        let within = self.binary(Binary::Sub, DType::I64, 1, row, first);
        (group, self.strided(col, width, within))
    }

    /// `row * stride + col`.
    pub(super) fn strided(&mut self, row: Val, stride: Val, col: Val) -> Val {
        let start = self.binary(Binary::Mul, DType::I64, 1, row, stride);
        self.binary(Binary::Add, DType::I64, 1, start, col)
    }
}
