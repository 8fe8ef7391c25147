//! Values: what compilers of other languages take for something else.

use super::{kernel, run_alone};
use crate::behaviours::{Bench, Stop, ensure};
use loopwright_kernel::{Builder, Inst, Type, Value};
use loopwright_ops::{DType, Op, Scalar};

/// GCC 12 makes -1 of a comparison that is assigned to a lane of a vector.
pub(super) fn comparisons_become_lanes(bench: &Bench<'_>) -> Result<(), Stop> {
    let lanes = kernel("lanes", DType::U8, |b, p, n| {
        let zero = b.const_i64(0);
        let (left, right) = (b.load_vector(p, zero, 4), b.load_vector(p, n, 4));
        let mut result = left;
        let mut scalars = Vec::new();
        for lane in 0..4 {
            let (x, y) = (b.extract(left, lane), b.extract(right, lane));
            let differ = b.map(Op::Ne, &[x, y]);
            let differ = b.cast(DType::U8, differ);
            result = b.insert(result, lane, differ);
            scalars.push(differ);
        }
        b.store(p, zero, result);
        let built = b.build(&scalars);
        b.store(p, n, built);
    });
    let values = [1, 2, 3, 4, 1, 0, 3, 0].map(|value| Scalar::from_i64(DType::U8, value));
    run_alone(bench, lanes, &values, 4)?;
    Ok(())
}

/// Constants are ints to C; arithmetic on them must not be.
pub(super) fn constants_compute_in_their_own_type(bench: &Bench<'_>) -> Result<(), Stop> {
    let constants = kernel("constants", DType::I64, |b, p, _| {
        let scalar = |n: i64| Scalar::i64(n);
        let define = |b: &mut Builder, op, operands: &[Value]| {
            b.define(
                Type::INDEX,
                Inst::Map(op, operands.iter().copied().collect()),
                "",
            )
        };
        let (big, four) = (b.constant(scalar(2_000_000_000)), b.constant(scalar(4)));
        let product = define(b, Op::Mul, &[big, four]);
        let truth = b.constant(Scalar::bool(true));
        let chosen = define(b, Op::Select, &[truth, big, four]);
        let doubled = define(b, Op::Add, &[chosen, big]);
        let negated = define(b, Op::Neg, &[big]);
        let difference = define(b, Op::Sub, &[negated, big]);
        let complement = define(b, Op::Not, &[big]);
        for (at, value) in [product, doubled, difference, complement]
            .into_iter()
            .enumerate()
        {
            let at = b.const_i64(at as i64);
            b.store(p, at, value);
        }
    });
    let values = run_alone(bench, constants, &[Scalar::i64(0); 4], 0)?;
    ensure(values[0] == Scalar::i64(8_000_000_000), || {
        format!("the interpreter has {}", values[0])
    })
}
