//! Ops and casts in lanes.

use super::values::{combinations, edge_values};
use super::{Case, Lanes, Table, elementwise};
use crate::behaviours::Stop;
use crate::functions::{slack, stated_slack};
use loopwright_kernel::passes::expand_math::Precision;
use loopwright_ops::{DType, Op, Scalar, bitcast, can_bitcast, cast, evaluate};
use std::rc::Rc;

pub(super) fn ops_on_bool_and_small_integers(lanes: &Lanes) -> Result<(), Stop> {
    let dtypes = [DType::Bool, DType::I8, DType::U8, DType::I16, DType::U16];
    check_ops(lanes, &dtypes)
}

pub(super) fn ops_on_large_integers(lanes: &Lanes) -> Result<(), Stop> {
    check_ops(lanes, &[DType::I32, DType::U32, DType::I64, DType::U64])
}

pub(super) fn ops_on_floats(lanes: &Lanes) -> Result<(), Stop> {
    check_ops(lanes, &[DType::F32, DType::F64])
}

pub(super) fn ops_on_narrow_floats(lanes: &Lanes) -> Result<(), Stop> {
    let dtypes = [DType::F16, DType::BF16, DType::F8E4M3, DType::F8E5M2];
    check_ops(lanes, &dtypes)
}

/// Every op at these dtypes.
pub(super) fn check_ops(lanes: &Lanes, dtypes: &[DType]) -> Result<(), Stop> {
    let accuracy = lanes.backend.capabilities().math;
    let mut cases = Vec::new();
    for &dtype in dtypes {
        for &op in Op::ALL {
            let mut inputs = vec![dtype; op.arity()];
            if op == Op::Select {
                inputs[0] = DType::Bool;
            }
            let Ok(output) = op.result_dtype(&inputs) else {
                continue;
            };
            let mut lists: Vec<Vec<Scalar>> = inputs.iter().copied().map(edge_values).collect();
            if op == Op::MulAdd {
                // All of three would be too many: every second, differently for each operand.
                for (skip, list) in lists.iter_mut().enumerate() {
                    *list = list.iter().copied().skip(skip % 2).step_by(2).collect();
                }
            }
            let columns = combinations(&lists);
            let expected = expected(op, &columns);
            let table = Rc::new(Table { columns, expected });
            for &width in (lanes.widths)(dtype) {
                let name = format!("{op}_{dtype}x{width}");
                let function =
                    elementwise(name, &inputs, output, width, |b, values| b.map(op, values));
                let ours = slack(op, dtype, Precision::Accurate);
                let stated = stated_slack(&accuracy, op, dtype);
                cases.push(Case::new(function, output, &table).with_slack(stated, ours));
            }
        }
    }
    // Contraction concerns floats, and no op on its own; functions that are computed are those on f32.
    let modes: &[bool] = match lanes.contracted && dtypes.contains(&DType::F32) {
        true => &[true, false],
        false => &[true],
    };
    lanes.check(cases, modes)
}

fn expected(op: Op, columns: &[Vec<Scalar>]) -> Vec<Scalar> {
    (0..columns[0].len())
        .map(|row| {
            let operands: Vec<Scalar> = columns.iter().map(|column| column[row]).collect();
            evaluate(op, &operands).expect("the operands fit")
        })
        .collect()
}

pub(super) fn casts_and_bitcasts(lanes: &Lanes) -> Result<(), Stop> {
    let mut cases = Vec::new();
    for from in DType::ALL {
        let mut values = edge_values(from);
        if from.bits() == 8 && from != DType::Bool {
            values = (0..256).map(|bits| Scalar::from_bits(from, bits)).collect();
        }
        let columns = combinations(&[values]);
        for to in DType::ALL {
            let table = |f: &dyn Fn(Scalar) -> Scalar| {
                Rc::new(Table {
                    expected: columns[0].iter().copied().map(f).collect(),
                    columns: columns.clone(),
                })
            };
            let casts = table(&|value| cast(value, to));
            let bitcasts = can_bitcast(from, to)
                .then(|| table(&|value| bitcast(value, to).expect("they are as wide")));
            for &width in (lanes.widths)(from) {
                let name = format!("cast_{from}_{to}x{width}");
                let function = elementwise(name, &[from], to, width, |b, v| b.cast(to, v[0]));
                cases.push(Case::new(function, to, &casts));
                if let Some(bitcasts) = &bitcasts {
                    let name = format!("bitcast_{from}_{to}x{width}");
                    let function =
                        elementwise(name, &[from], to, width, |b, v| b.bitcast(to, v[0]));
                    cases.push(Case::new(function, to, bitcasts));
                }
            }
        }
    }
    lanes.check(cases, &[true])
}
