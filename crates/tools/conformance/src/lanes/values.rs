//! Values that ops are tried at.

use super::MOST_LANES;
use loopwright_ops::{DType, Scalar};

/// Values at which ops go wrong: zeros, extremes, powers of two and their neighbours, halves, NaN.
pub(super) fn edge_values(dtype: DType) -> Vec<Scalar> {
    let mut values: Vec<Scalar> = Vec::new();
    let mut add = |value: Scalar| {
        if !values.contains(&value) {
            values.push(value);
        }
    };
    if dtype == DType::Bool {
        return vec![Scalar::bool(false), Scalar::bool(true)];
    }
    for value in [
        0, 1, -1, 2, -2, 3, -3, 5, 7, -7, 8, 10, 31, 32, 63, 64, 100, -100,
    ] {
        add(Scalar::from_i64(dtype, value));
    }
    add(Scalar::min_value(dtype));
    add(Scalar::max_value(dtype));
    if dtype.is_float() {
        for value in [
            -0.0,
            0.5,
            -0.5,
            1.5,
            -1.5,
            2.5,
            -2.5,
            0.1,
            -0.3,
            3.7,
            1e-3,
            12.75,
            1e-30,
            1e30,
            -1e30,
            250.5,
            65504.0,
            448.0,
            57344.0,
            2147483648.0,
            -2147483649.0,
            9.3e18,
            1.9e19,
            0.999_999_9,
        ] {
            add(Scalar::from_f64(dtype, value));
        }
        // The smallest subnormal and normal values, the largest finite one, NaN.
        let nan = Scalar::nan(dtype).expect("a float has NaN");
        add(nan);
        let bits = dtype.bits();
        for pattern in [1, 2, 3, (1 << (bits - 1)) | 1] {
            add(Scalar::from_bits(dtype, pattern));
        }
        add(Scalar::from_bits(
            dtype,
            Scalar::max_value(dtype).bits() - 1,
        ));
        add(Scalar::from_bits(dtype, Scalar::one(dtype).bits() + 1));
        add(Scalar::from_bits(dtype, Scalar::one(dtype).bits() - 1));
    } else {
        for shift in 0..dtype.bits() {
            if shift % 5 == 0 || shift + 2 >= dtype.bits() {
                add(Scalar::from_bits(dtype, 1 << shift));
                add(Scalar::from_bits(dtype, (1 << shift) - 1));
            }
        }
        add(Scalar::from_bits(dtype, 0x9e37_79b9_7f4a_7c15));
        add(Scalar::from_bits(
            dtype,
            Scalar::min_value(dtype).bits() + 1,
        ));
        add(Scalar::from_bits(
            dtype,
            Scalar::max_value(dtype).bits().wrapping_sub(1),
        ));
    }
    values
}

/// Every combination of values of these lists, in columns, filled up to whole vectors of the most lanes.
pub(super) fn combinations(lists: &[Vec<Scalar>]) -> Vec<Vec<Scalar>> {
    let total: usize = lists.iter().map(Vec::len).product();
    let padded = total.next_multiple_of(MOST_LANES);
    let mut columns = vec![Vec::with_capacity(padded); lists.len()];
    for row in 0..padded {
        let mut rest = row % total;
        for (column, list) in columns.iter_mut().zip(lists) {
            column.push(list[rest % list.len()]);
            rest /= list.len();
        }
    }
    columns
}

/// The same and many more: patterns of bits that no op gives.
pub(super) fn constants(dtype: DType) -> Vec<Scalar> {
    let mut values = edge_values(dtype);
    if dtype.is_float() {
        let nan = Scalar::nan(dtype).expect("a float has NaN").bits();
        let sign = 1 << (dtype.bits() - 1);
        values.push(Scalar::from_bits(dtype, nan | sign));
    }
    if matches!(dtype, DType::F32 | DType::F64) {
        values.push(Scalar::from_bits(
            dtype,
            Scalar::nan(dtype).expect("a float has NaN").bits() | 5,
        ));
    }
    // A walk through all patterns.
    values.extend(
        (1..200u64).map(|n| Scalar::from_bits(dtype, n.wrapping_mul(0x9e37_79b9_7f4a_7c15))),
    );
    values
}
