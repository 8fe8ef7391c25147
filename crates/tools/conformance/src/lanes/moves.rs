//! What moves lanes, masks and constants.

use super::values::{combinations, constants, edge_values};
use super::{Case, Lanes, Table, elementwise};
use crate::behaviours::Stop;
use loopwright_kernel::{Access, Builder, FunctionKind, Space, Value};
use loopwright_ops::{DType, Op, ReduceOp, Scalar, cast, evaluate};
use std::rc::Rc;

/// Moving a narrow float, whatever its bits, changes none of them.
pub(super) fn narrow_floats_move_bit_for_bit(lanes: &Lanes) -> Result<(), Stop> {
    let mut cases = Vec::new();
    for dtype in [DType::F16, DType::BF16, DType::F8E4M3, DType::F8E5M2] {
        let every = 0..1u64 << dtype.bits();
        let every: Vec<Scalar> = every.map(|bits| Scalar::from_bits(dtype, bits)).collect();
        let widened = every.iter().map(|value| cast(*value, DType::F32));
        let widened = Rc::new(Table {
            expected: widened.collect(),
            columns: vec![every.clone()],
        });
        let same = Rc::new(Table {
            columns: vec![every.clone()],
            expected: every,
        });
        for width in [1, 16] {
            let name = format!("copy_{dtype}x{width}");
            let function = elementwise(name, &[dtype], dtype, width, |b, v| b.map(Op::Copy, v));
            cases.push(Case::new(function, dtype, &same).bit_for_bit());
        }
        let name = format!("widen_{dtype}");
        let function = elementwise(name, &[dtype], DType::F32, 16, |b, v| {
            b.cast(DType::F32, v[0])
        });
        cases.push(Case::new(function, DType::F32, &widened));
        let name = format!("round_{dtype}");
        let function = elementwise(name, &[dtype], dtype, 16, |b, v| {
            let wide = b.cast(DType::F32, v[0]);
            b.cast(dtype, wide)
        });
        cases.push(Case::new(function, dtype, &same));
    }
    lanes.check(cases, &[true])
}

/// Splat, build, extract, insert, shuffle and reductions over lanes.
pub(super) fn lanes_are_moved_and_reduced(lanes: &Lanes) -> Result<(), Stop> {
    let mut cases = Vec::new();
    for dtype in DType::ALL {
        let columns = combinations(&[edge_values(dtype)]);
        let input = &columns[0];
        for width in [2u32, 4, 8, 16] {
            let groups = input.chunks(width as usize);
            let mut add = |name: &str,
                           f: &mut dyn FnMut(&mut Builder, Value) -> Value,
                           expect: &dyn Fn(&[Scalar]) -> Vec<Scalar>| {
                let name = format!("{name}_{dtype}x{width}");
                let function = elementwise(name, &[dtype], dtype, width, |b, v| f(b, v[0]));
                let table = Rc::new(Table {
                    columns: columns.clone(),
                    expected: groups.clone().flat_map(expect).collect(),
                });
                cases.push(Case::new(function, dtype, &table));
            };
            let last = width as usize - 1;
            add(
                "splat",
                &mut |b, v| {
                    let lane = b.extract(v, width - 1);
                    b.splat(lane, width)
                },
                &|group| vec![group[last]; group.len()],
            );
            add(
                "reverse",
                &mut |b, v| {
                    let scalars: Vec<Value> =
                        (0..width).rev().map(|lane| b.extract(v, lane)).collect();
                    b.build(&scalars)
                },
                &|group| group.iter().rev().copied().collect(),
            );
            add(
                "rotate",
                &mut |b, v| {
                    let picks: Vec<u32> = (0..width)
                        .map(|lane| (lane + 1) % width + lane % 2 * width)
                        .collect();
                    b.shuffle(v, v, &picks)
                },
                &|group| {
                    (0..group.len())
                        .map(|lane| group[(lane + 1) % group.len()])
                        .collect()
                },
            );
            add(
                "insert",
                &mut |b, v| {
                    let first = b.extract(v, 0);
                    b.insert(v, width - 1, first)
                },
                &|group| {
                    let mut group = group.to_vec();
                    group[last] = group[0];
                    group
                },
            );
            for op in ReduceOp::ALL {
                if !op.allows(dtype) {
                    continue;
                }
                add(
                    &format!("reduce_{op}"),
                    &mut |b, v| {
                        let reduced = b.reduce_lanes(op, v);
                        b.splat(reduced, width)
                    },
                    &|group| {
                        let all = group[1..].iter().fold(group[0], |sum, &value| {
                            evaluate(op.combine(), &[sum, value]).expect("the operands fit")
                        });
                        vec![all; group.len()]
                    },
                );
            }
        }
    }
    lanes.check(cases, &[true])
}

/// Conditions of one width choose between values of another, and conditions combine.
pub(super) fn masks_of_all_widths_meet(lanes: &Lanes) -> Result<(), Stop> {
    let dtypes = [
        DType::I8,
        DType::U16,
        DType::F16,
        DType::F32,
        DType::I64,
        DType::F64,
        DType::Bool,
    ];
    let mut cases = Vec::new();
    for compared in dtypes {
        for chosen in dtypes {
            let table = Rc::new(choices(compared, chosen));
            for width in [4, 8, 16] {
                let name = format!("choose_{compared}_{chosen}x{width}");
                let inputs = [compared, compared, chosen];
                let function = elementwise(name, &inputs, chosen, width, |b, v| {
                    let less = b.map(Op::Lt, &[v[0], v[1]]);
                    let zero = b.constant_vector(Scalar::zero(chosen), width);
                    let positive = b.map(Op::Ne, &[v[2], zero]);
                    let neither = b.map(Op::Or, &[less, positive]);
                    let neither = b.map(Op::Not, &[neither]);
                    let both = b.map(Op::And, &[less, positive]);
                    let some = b.map(Op::Or, &[both, neither]);
                    let one = b.constant_vector(Scalar::one(chosen), width);
                    b.map(Op::Select, &[some, v[2], one])
                });
                cases.push(Case::new(function, chosen, &table));
            }
        }
    }
    lanes.check(cases, &[true])
}

/// The third operand where a comparison of the first two says the same as its own with zero, otherwise one.
fn choices(compared: DType, chosen: DType) -> Table {
    let columns = combinations(&[
        edge_values(compared),
        edge_values(compared),
        edge_values(chosen),
    ]);
    let truth = |op, a, b| {
        let value = evaluate(op, &[a, b]).expect("the operands fit");
        value.is_true()
    };
    let expected = (0..columns[0].len()).map(|row| {
        let less = truth(Op::Lt, columns[0][row], columns[1][row]);
        let positive = truth(Op::Ne, columns[2][row], Scalar::zero(chosen));
        match less == positive {
            true => columns[2][row],
            false => Scalar::one(chosen),
        }
    });
    Table {
        expected: expected.collect(),
        columns,
    }
}

/// Constants come out as they went in, all patterns of bits included.
pub(super) fn constants_keep_their_bits(lanes: &Lanes) -> Result<(), Stop> {
    let mut cases = Vec::new();
    for dtype in DType::ALL {
        let name = format!("constants_{dtype}");
        let mut b = Builder::new(name, FunctionKind::Kernel { group: None });
        let out = b.param_ptr(dtype, Space::Global, "out", Access::Write, true);
        b.param_scalar(DType::I64, "n");
        let expected = constants(dtype);
        for (position, value) in expected.iter().enumerate() {
            let index = b.const_i64(position as i64);
            let value = b.constant(*value);
            b.store(out, index, value);
        }
        let table = Rc::new(Table {
            columns: Vec::new(),
            expected,
        });
        cases.push(Case::new(b.finish(), dtype, &table).bit_for_bit());
    }
    lanes.check(cases, &[true])
}
