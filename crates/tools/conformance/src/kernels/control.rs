//! Control flow: loops of all kinds, branches, work-items.

use super::{Compiled, floats, integers, kernel, module};
use crate::behaviours::{Bench, Stop, ensure};
use loopwright_kernel::{Access, Builder, FunctionKind, LoopKind, Space, Type, WorkItem};
use loopwright_ops::{DType, Op, Scalar};

pub(super) fn loops_branches_and_arrays(bench: &Bench<'_>) -> Result<(), Stop> {
    let sort = kernel("sort", DType::I32, |b, p, n| {
        let (zero, one) = (b.const_i64(0), b.const_i64(1));
        // Insertion sort: nested loops, `while` with two conditions, `break`, reads beside writes.
        b.for_loop(one, n, one, LoopKind::Serial, "i", |b, i| {
            let at = b.alloc(Space::Private, Type::INDEX, 1, "at");
            b.store(at, zero, i);
            b.begin_while();
            let now = b.load(at, zero);
            let positive = b.map(Op::Gt, &[now, zero]);
            b.while_cond(positive);
            let now = b.load(at, zero);
            let before = b.sub_i64(now, one);
            let (left, right) = (b.load(p, before), b.load(p, now));
            let ordered = b.map(Op::Le, &[left, right]);
            b.if_then(ordered, |b| b.brk());
            b.store(p, now, left);
            b.store(p, before, right);
            b.store(at, zero, before);
            b.end_block();
        });
    });
    let histogram = kernel("histogram", DType::I32, |b, p, n| {
        let (zero, one, eight) = (b.const_i64(0), b.const_i64(1), b.const_i64(8));
        let table = b.alloc(Space::Private, Type::Scalar(DType::I32), 8, "table");
        let none = b.constant(Scalar::from_i64(DType::I32, 0));
        let unit = b.constant(Scalar::from_i64(DType::I32, 1));
        b.for_loop(zero, eight, one, LoopKind::Unroll, "i", |b, i| {
            b.store(table, i, none)
        });
        b.for_loop(zero, n, one, LoopKind::Serial, "i", |b, i| {
            let value = b.load(p, i);
            let odd = b.map(Op::And, &[value, unit]);
            let odd = b.map(Op::Eq, &[odd, unit]);
            b.if_then(odd, |b| b.cont());
            let value = b.cast(DType::I64, value);
            let slot = b.mod_i64(value, eight);
            let count = b.load(table, slot);
            let count = b.map(Op::Add, &[count, unit]);
            b.store(table, slot, count);
        });
        b.for_loop(zero, eight, one, LoopKind::Vectorize, "i", |b, i| {
            let count = b.load(table, i);
            b.store(p, i, count);
        });
    });
    let compiled = Compiled::new(bench, module(vec![sort, histogram]))?;
    let n = [Scalar::i64(57)];
    let sorted = compiled.run("sort", &integers(57), &n)?;
    let is_sorted = sorted.is_sorted_by_key(|value| value.as_i64());
    ensure(is_sorted, || {
        format!("the kernel does not sort: {sorted:?}")
    })?;
    compiled.run("histogram", &integers(57), &n)?;
    Ok(())
}

pub(super) fn parallel_loops_capture_what_they_use(bench: &Bench<'_>) -> Result<(), Stop> {
    let work = kernel("work", DType::F32, |b, p, n| {
        let [zero, one, two, three] = [0, 1, 2, 3].map(|value| b.const_i64(value));
        let scale = b.alloc(Space::Private, Type::Scalar(DType::F32), 1, "scale");
        let half = b.constant(Scalar::f32(0.5));
        b.store(scale, zero, half);
        let vector = b.load_vector(p, zero, 4);
        let table = b.alloc(Space::Private, Type::Scalar(DType::F32), 4, "table");
        b.store(table, zero, vector);
        let last = b.sub_i64(n, one);
        // Every second iteration from 3 on, with a serial loop that says parallel inside.
        b.for_loop(three, last, two, LoopKind::Parallel, "i", |b, i| {
            b.for_loop(zero, two, one, LoopKind::Parallel, "j", |b, j| {
                let at = b.add_i64(i, j);
                let value = b.load(p, at);
                let factor = b.load(scale, zero);
                let slot = b.mod_i64(at, three);
                let offset = b.load(table, slot);
                let value = b.map(Op::MulAdd, &[value, factor, offset]);
                let extra = b.extract(vector, 2);
                let value = b.map(Op::Add, &[value, extra]);
                b.store(p, at, value);
            });
        });
        b.for_loop(zero, three, one, LoopKind::Parallel, "i", |b, i| {
            let one = b.constant(Scalar::f32(1.0));
            b.store(p, i, one);
        });
    });
    let compiled = Compiled::new(bench, module(vec![work]))?;
    for count in [4, 5, 64, 1001] {
        compiled.run("work", &floats(count), &[Scalar::i64(count as i64)])?;
    }
    Ok(())
}

/// A kernel that says how large its groups are runs as one such group.
pub(super) fn work_items_of_a_grid_of_one(bench: &Bench<'_>) -> Result<(), Stop> {
    let mut b = Builder::new(
        "items",
        FunctionKind::Kernel {
            group: Some([4, 2, 1]),
        },
    );
    let p = b.param_ptr(DType::I64, Space::Global, "p", Access::Write, true);
    let [x, y] = [0, 1].map(|axis| b.work_item(WorkItem::LocalId, axis));
    let size = b.work_item(WorkItem::LocalSize, 0);
    let row = b.mul_i64(y, size);
    let at = b.add_i64(row, x);
    let global = b.work_item(WorkItem::GlobalId, 1);
    let ten = b.const_i64(10);
    let value = b.mul_i64(global, ten);
    let value = b.add_i64(value, x);
    b.store(p, at, value);
    let compiled = Compiled::new(bench, module(vec![b.finish()]))?;
    let start = [Scalar::i64(-1); 8];
    let values = compiled.run("items", &start, &[])?;
    let expected = [0, 1, 2, 3, 10, 11, 12, 13].map(Scalar::i64);
    ensure(values == expected, || {
        format!("the interpreter has {values:?}")
    })
}
