//! Independent reference values: what every op, cast and reduction gives, computed without this crate.
//!
//! The files under `tests/reference/` are written by `generate.py` there, from numpy, exact arithmetic
//! and higher precision; its head describes their format. This module reads them, so that the oracle's
//! tests and those of every backend check the same rows.

use crate::dtype::DType;
use crate::scalar::Scalar;
use crate::table::{Op, ReduceOp};

const FILES: [(&str, &str); 7] = [
    ("bool.txt", include_str!("../tests/reference/bool.txt")),
    ("int.txt", include_str!("../tests/reference/int.txt")),
    ("narrow.txt", include_str!("../tests/reference/narrow.txt")),
    ("f32.txt", include_str!("../tests/reference/f32.txt")),
    ("f64.txt", include_str!("../tests/reference/f64.txt")),
    (
        "convert.txt",
        include_str!("../tests/reference/convert.txt"),
    ),
    ("array.txt", include_str!("../tests/reference/array.txt")),
];

const HEADER: &str = "# Reference values, format 1.";

/// What a row's expected values are the result of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RowOp {
    /// The op applied element by element.
    Op(Op),
    /// The cast to this dtype, element by element.
    Cast(DType),
    /// The bitcast to this dtype, element by element.
    Bitcast(DType),
    /// The whole operand reduced to one value: folded in order from the identity in the dtype's
    /// [`accumulator`](DType::accumulator), then cast back.
    Reduce(ReduceOp),
    /// The reduction of every prefix that ends at an element (an inclusive scan).
    Scan(ReduceOp),
    /// The index of the first largest element, or of the first NaN, as one `i64`.
    ArgMax,
    /// The index of the first smallest element, or of the first NaN, as one `i64`.
    ArgMin,
    /// The elements in order ([`crate::total_less`]), equal ones as they came.
    Sort,
    /// The indices, as `i64`, that bring the elements in that order.
    ArgSort,
}

/// One op on operands of one dtype, and what it must give.
#[derive(Clone, Debug)]
pub struct Row {
    /// The op.
    pub op: RowOp,
    /// The dtype of the operands (but for the condition of `select`, which is `bool`).
    pub dtype: DType,
    /// The elements of each operand. They are as many as the expected ones where the op works element
    /// by element.
    pub operands: Vec<Vec<Scalar>>,
    /// The elements of the result.
    pub expected: Vec<Scalar>,
    /// The largest [`ulp_distance`] of a right result: 0 unless the op is a function of the C library.
    pub ulp: u32,
    /// The file and line, for messages.
    pub place: String,
}

impl Row {
    /// Whether `got` is a right result for the element at `index`: within the row's distance of the
    /// expected one and, unless it is NaN, of the same sign. The distance is for rounding; a function
    /// that loses the sign of a zero is wrong.
    ///
    /// # Panics
    /// If the row has no such element.
    pub fn accepts(&self, index: usize, got: Scalar) -> bool {
        let expected = self.expected[index];
        let negative = |value: Scalar| value.bits() >> (value.dtype().bits() - 1) != 0;
        ulp_distance(got, expected) <= self.ulp.into()
            && (expected.is_nan() || negative(got) == negative(expected))
    }
}

/// Every row.
///
/// # Panics
/// If the files, which are compiled in, are malformed.
pub fn rows() -> Vec<Row> {
    FILES
        .iter()
        .flat_map(|&(name, text)| read(name, text))
        .collect()
}

fn read(file: &str, text: &str) -> Vec<Row> {
    assert!(
        text.starts_with(HEADER),
        "{file} starts with `{HEADER}`; write it again with generate.py"
    );
    let mut sets: Vec<Vec<Scalar>> = Vec::new();
    let mut rows = Vec::new();
    for (index, line) in text.lines().enumerate().skip(1) {
        let place = format!("{file}:{}", index + 1);
        let fields: Vec<&str> = line.split(' ').collect();
        match fields.as_slice() {
            ["set", name, dtype, hex] => {
                assert_eq!(
                    set_index(name, &place),
                    sets.len(),
                    "{place}: sets are numbered"
                );
                sets.push(elements(parse_dtype(dtype, &place), hex, &place));
            }
            [what, dtype, result, ulp, names @ .., "=", hex] => {
                let result = parse_dtype(result, &place);
                let operand = |name: &&str| sets[set_index(name, &place)].clone();
                rows.push(Row {
                    op: row_op(what, result)
                        .unwrap_or_else(|| panic!("{place}: `{what}` is an op")),
                    dtype: parse_dtype(dtype, &place),
                    operands: names.iter().map(operand).collect(),
                    expected: elements(result, hex, &place),
                    ulp: ulp
                        .parse()
                        .unwrap_or_else(|_| panic!("{place}: `{ulp}` is a number")),
                    place,
                });
            }
            _ => panic!("{place}: a line is a set or a row, not `{line}`"),
        }
    }
    rows
}

fn set_index(name: &str, place: &str) -> usize {
    name.strip_prefix('s')
        .and_then(|index| index.parse().ok())
        .unwrap_or_else(|| panic!("{place}: `{name}` is a set"))
}

fn parse_dtype(name: &str, place: &str) -> DType {
    name.parse()
        .unwrap_or_else(|error| panic!("{place}: {error}"))
}

fn row_op(what: &str, result: DType) -> Option<RowOp> {
    match what {
        "cast" => Some(RowOp::Cast(result)),
        "bitcast" => Some(RowOp::Bitcast(result)),
        "argmax" => Some(RowOp::ArgMax),
        "argmin" => Some(RowOp::ArgMin),
        "sort" => Some(RowOp::Sort),
        "argsort" => Some(RowOp::ArgSort),
        _ => match what.split_once('.') {
            Some(("reduce", name)) => ReduceOp::from_name(name).map(RowOp::Reduce),
            Some(("scan", name)) => ReduceOp::from_name(name).map(RowOp::Scan),
            Some(_) => None,
            None => Op::from_name(what).map(RowOp::Op),
        },
    }
}

fn elements(dtype: DType, hex: &str, place: &str) -> Vec<Scalar> {
    if hex == "-" {
        return Vec::new();
    }
    let digits = dtype.bytes() * 2;
    assert!(hex.len().is_multiple_of(digits), "{place}: whole elements");
    (0..hex.len())
        .step_by(digits)
        .map(|start| {
            let element = &hex[start..start + digits];
            let bits = u64::from_str_radix(element, 16)
                .unwrap_or_else(|_| panic!("{place}: `{element}` is hexadecimal"));
            Scalar::from_bits(dtype, bits)
        })
        .collect()
}

/// How many representable values apart two values are: 0 exactly for [`crate::same_value`].
///
/// `-0.0` and `0.0` are neighbours. A NaN is infinitely far (`u64::MAX`) from everything but NaNs, and
/// so are unequal values that are not floats of one dtype.
pub fn ulp_distance(a: Scalar, b: Scalar) -> u64 {
    if crate::same_value(a, b) {
        return 0;
    }
    if a.dtype() != b.dtype() || !a.dtype().is_float() || a.is_nan() || b.is_nan() {
        return u64::MAX;
    }
    // A float's place among all of its dtype; within a sign, values are ordered as their bits.
    let place = |value: Scalar| {
        let sign = 1u64 << (value.dtype().bits() - 1);
        let magnitude = i128::from(value.bits() & (sign - 1));
        if value.bits() & sign == 0 {
            magnitude
        } else {
            -1 - magnitude
        }
    };
    place(a).abs_diff(place(b)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_values() {
        let distance = |a, b| ulp_distance(Scalar::f64(a), Scalar::f64(b));
        assert_eq!(distance(1.0, 1.0), 0);
        assert_eq!(distance(1.0, 1.0 + f64::EPSILON), 1);
        assert_eq!(distance(-0.0, 0.0), 1);
        assert_eq!(distance(f64::from_bits(1), -f64::from_bits(1)), 3);
        assert_eq!(distance(f64::MAX, f64::INFINITY), 1);
        assert_eq!(distance(f64::NAN, -f64::NAN), 0);
        assert_eq!(distance(f64::NAN, 1.0), u64::MAX);
        assert_eq!(ulp_distance(Scalar::i64(1), Scalar::i64(2)), u64::MAX);
    }
}
