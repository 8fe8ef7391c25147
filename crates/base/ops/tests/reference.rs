//! Checks the oracle against values computed independently of it (`tests/reference/generate.py`).

use loopwright_ops::reference::{Row, RowOp, rows, ulp_distance};
use loopwright_ops::{
    DType, Op, ReduceOp, Scalar, argmax_prefers, argmin_prefers, bitcast, can_bitcast, cast,
    evaluate, total_less,
};
use std::cmp::Ordering;
use std::collections::HashSet;

/// What this crate gives for a row.
fn result(row: &Row) -> Vec<Scalar> {
    let values = &row.operands[0];
    match row.op {
        RowOp::Op(op) => (0..values.len())
            .map(|index| {
                let operands: Vec<_> = row.operands.iter().map(|operand| operand[index]).collect();
                evaluate(op, &operands).unwrap_or_else(|error| panic!("{}: {error}", row.place))
            })
            .collect(),
        RowOp::Cast(to) => values.iter().map(|&value| cast(value, to)).collect(),
        RowOp::Bitcast(to) => values
            .iter()
            .map(|&value| {
                bitcast(value, to).unwrap_or_else(|error| panic!("{}: {error}", row.place))
            })
            .collect(),
        RowOp::Reduce(reduction) => prefixes(reduction, row.dtype, values).split_off(values.len()),
        RowOp::Scan(reduction) => prefixes(reduction, row.dtype, values).split_off(1),
        RowOp::ArgMax => vec![first(values, argmax_prefers)],
        RowOp::ArgMin => vec![first(values, argmin_prefers)],
        RowOp::Sort => order(values)
            .into_iter()
            .map(|index| values[index])
            .collect(),
        RowOp::ArgSort => order(values)
            .into_iter()
            .map(|index| Scalar::i64(index as i64))
            .collect(),
    }
}

/// The reductions of all prefixes, the empty one first.
fn prefixes(reduction: ReduceOp, dtype: DType, values: &[Scalar]) -> Vec<Scalar> {
    let accumulator = dtype.accumulator();
    let mut value = reduction.identity(accumulator);
    let mut results = vec![cast(value, dtype)];
    for &element in values {
        value = evaluate(reduction.combine(), &[value, cast(element, accumulator)])
            .expect("a reduction's op takes its accumulator's dtype");
        results.push(cast(value, dtype));
    }
    results
}

fn first(values: &[Scalar], prefers: fn(Scalar, Scalar) -> bool) -> Scalar {
    let best = (1..values.len()).fold(0, |best, index| {
        if prefers(values[index], values[best]) {
            index
        } else {
            best
        }
    });
    Scalar::i64(best as i64)
}

fn order(values: &[Scalar]) -> Vec<usize> {
    let mut indices: Vec<usize> = (0..values.len()).collect();
    indices.sort_by(|&a, &b| {
        if total_less(values[a], values[b]) {
            Ordering::Less
        } else if total_less(values[b], values[a]) {
            Ordering::Greater
        } else {
            Ordering::Equal
        }
    });
    indices
}

#[test]
fn the_oracle_agrees_with_every_row() {
    let mut failures = Vec::new();
    let mut values = 0;
    for row in rows() {
        let got = result(&row);
        assert_eq!(got.len(), row.expected.len(), "{}: {:?}", row.place, row.op);
        for (index, (&got, &expected)) in got.iter().zip(&row.expected).enumerate() {
            values += 1;
            if !row.accepts(index, got) {
                let distance = ulp_distance(got, expected);
                let operands: Vec<String> = row
                    .operands
                    .iter()
                    .map(|operand| operand.get(index).map_or("…".to_owned(), Scalar::to_string))
                    .collect();
                failures.push(format!(
                    "{}: {:?} {} ({}): expected {expected}, got {got}, {distance} ulp away, {} allowed",
                    row.place,
                    row.op,
                    row.dtype,
                    operands.join(", "),
                    row.ulp
                ));
            }
        }
    }
    let shown = failures.len().min(40);
    assert!(
        failures.is_empty(),
        "{} of {values} values differ:\n{}",
        failures.len(),
        failures[..shown].join("\n")
    );
}

/// Everything the table allows has rows, so a new op, dtype or reduction without any fails here.
#[test]
fn the_reference_covers_the_table() {
    let rows = rows();
    let has: HashSet<(RowOp, DType)> = rows.iter().map(|row| (row.op, row.dtype)).collect();
    let mut missing = Vec::new();
    let mut expect = |op, dtype| {
        if !has.contains(&(op, dtype)) {
            missing.push(format!("{op:?} {dtype}"));
        }
    };
    for dtype in DType::ALL {
        for &op in Op::ALL {
            if op.info().class.allows(dtype) {
                expect(RowOp::Op(op), dtype);
            }
        }
        for to in DType::ALL {
            expect(RowOp::Cast(to), dtype);
            if can_bitcast(dtype, to) {
                expect(RowOp::Bitcast(to), dtype);
            }
        }
        for reduction in ReduceOp::ALL {
            if reduction.allows(dtype) {
                expect(RowOp::Reduce(reduction), dtype);
                expect(RowOp::Scan(reduction), dtype);
                // The empty and the size-1 case are what implementations forget.
                for size in 0..2 {
                    let sized = rows.iter().any(|row| {
                        row.op == RowOp::Reduce(reduction)
                            && row.dtype == dtype
                            && row.operands[0].len() == size
                    });
                    assert!(sized, "{reduction} of {size} elements of {dtype} has a row");
                }
            }
        }
        for op in [RowOp::ArgMax, RowOp::ArgMin, RowOp::Sort, RowOp::ArgSort] {
            expect(op, dtype);
        }
    }
    assert!(
        missing.is_empty(),
        "no reference rows for:\n{}",
        missing.join("\n")
    );
}

/// Only what the C library computes may be off: everything else is defined to the bit.
#[test]
fn only_library_functions_have_a_tolerance() {
    let library: HashSet<&str> = [
        "cbrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan",
        "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc",
        "pow", "atan2", "hypot",
    ]
    .into();
    for row in rows() {
        let allowed = matches!(row.op, RowOp::Op(op) if library.contains(op.name()));
        assert!(
            row.ulp == 0 || allowed && row.dtype.is_float(),
            "{}: {:?} is defined exactly",
            row.place,
            row.op
        );
    }
}
