//! What is computed on the host, at all sizes and for matrices that are hard.

use super::blocks::{self, Lu, Triangle, product, substitute};
use super::host::{largest, transposed};
use super::{bidiagonal, tridiagonal};

/// Numbers in [-1, 1), the same in every run.
fn values(count: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    };
    (0..count).map(next).collect()
}

fn filled(size: usize, element: impl Fn(usize, usize) -> f64) -> Vec<f64> {
    let places = (0..size).flat_map(|i| (0..size).map(move |j| (i, j)));
    places.map(|(i, j)| element(i, j)).collect()
}

fn diagonal(values: &[f64]) -> Vec<f64> {
    let at = |i: usize, j: usize| if i == j { values[i] } else { 0.0 };
    filled(values.len(), at)
}

fn symmetric(a: &[f64], size: usize) -> Vec<f64> {
    filled(size, |i, j| 0.5 * a[i * size + j] + 0.5 * a[j * size + i])
}

/// The largest difference, in units of rounding of the largest element there is.
fn apart(a: &[f64], b: &[f64], scale: f64) -> f64 {
    assert_eq!(a.len(), b.len());
    let differences: Vec<f64> = a
        .iter()
        .zip(b)
        .map(|(a, b)| a / scale - b / scale)
        .collect();
    assert!(differences.iter().all(|x| x.is_finite()));
    largest(&differences) / f64::EPSILON
}

#[track_caller]
fn check_orthonormal(q: &[f64], columns: usize, what: &str) {
    let rows = q.len() / columns;
    let inner = product(&transposed(q, rows, columns), q, columns);
    let one = diagonal(&vec![1.0; columns]);
    let apart = apart(&inner, &one, 1.0);
    assert!(
        apart <= 8.0 * rows as f64,
        "{what}: {apart} units from orthonormal"
    );
}

/// Columns times numbers.
fn scaled(columns: &[f64], by: &[f64]) -> Vec<f64> {
    let rows = columns.chunks_exact(by.len());
    rows.flat_map(|row| row.iter().zip(by).map(|(x, by)| x * by))
        .collect()
}

/// Matrices of a size with all that makes them hard, by name.
fn hard(size: usize) -> Vec<(String, Vec<f64>)> {
    let random = values(size * size, size as u64);
    let column = values(size, 5);
    let span = |i: usize| i as f64 / size.max(2) as f64;
    let mut all = vec![
        ("random", random.clone()),
        ("large", random.iter().map(|x| x * 1e300).collect()),
        ("small", random.iter().map(|x| x * 1e-300).collect()),
        ("zeros", vec![0.0; size * size]),
        ("ones", vec![1.0; size * size]),
        ("unit", diagonal(&vec![1.0; size])),
        ("negative", diagonal(&vec![-2.0; size])),
        ("rank one", filled(size, |i, j| column[i] * column[j])),
        (
            "falling",
            filled(size, |i, j| {
                random[i * size + j] * 10f64.powf(-40.0 * span(i.max(j)))
            }),
        ),
        (
            "rising",
            filled(size, |i, j| {
                random[i * size + j] * 10f64.powf(40.0 * span(i.min(j)))
            }),
        ),
        (
            "spread",
            filled(size, |i, j| {
                random[i * size + j] * 10f64.powf(-250.0 * span(i.max(j)))
            }),
        ),
        ("above", filled(size, |i, j| f64::from(j == i + 1))),
        ("beside", filled(size, |i, j| f64::from(i.abs_diff(j) == 1))),
        ("steps", filled(size, |i, j| f64::from(j >= i))),
        ("inverses", filled(size, |i, j| 1.0 / (i + j + 1) as f64)),
        (
            "signs",
            filled(size, |i, j| if (i + j) % 3 == 0 { 1.0 } else { -1.0 }),
        ),
        (
            "exchanged",
            filled(size, |i, j| f64::from(i + j + 1 == size)),
        ),
        (
            "nearly unit",
            filled(size, |i, j| {
                f64::from(i == j) + 1e-15 * random[i * size + j]
            }),
        ),
    ];
    // The middle of Wilkinson's matrix: pairs of values that differ by less than rounding.
    let middle = (size / 2) as f64;
    let pairs = filled(size, |i, j| match i.abs_diff(j) {
        0 => (i as f64 - middle).abs(),
        1 => 1.0,
        _ => 0.0,
    });
    all.push(("pairs", pairs));
    let half = (size / 2).max(1);
    let low = transposed(&random[..half * size], half, size);
    all.push((
        "half rank",
        product(&low, &transposed(&low, size, half), size),
    ));
    let all = all.into_iter();
    all.map(|(name, a)| (format!("{name}, {size}"), a))
        .collect()
}

const SIZES: [usize; 9] = [1, 2, 3, 4, 7, 16, 33, 50, 97];

#[test]
fn eigenvalues() {
    for (name, a) in SIZES.into_iter().flat_map(hard) {
        let size = a.len().isqrt();
        let a = symmetric(&a, size);
        let [values, vectors] = tridiagonal::eigh(&a, size);
        let scale = largest(&a).max(f64::MIN_POSITIVE);
        assert_eq!(tridiagonal::eigenvalues(&a, size), values, "{name}");
        check_orthonormal(&vectors, size, &name);
        assert!(values.is_sorted(), "{name}: {values:?}");
        let small: Vec<f64> = a.iter().map(|x| x / scale).collect();
        let values: Vec<f64> = values.iter().map(|x| x / scale).collect();
        let left = product(&small, &vectors, size);
        let apart = apart(&left, &scaled(&vectors, &values), 1.0);
        assert!(apart <= 8.0 * size as f64, "{name}: {apart} units apart");
    }
    let [values, _] = tridiagonal::eigh(&[2.0, 1.0, 1.0, 2.0], 2);
    assert!((values[0] - 1.0).abs() < 1e-15 && (values[1] - 3.0).abs() < 1e-15);
    // What has no neighbours is as it is, however small.
    let own = [1.0, -3e-200, 0.0, 4e100, 5e-310];
    let [values, _] = tridiagonal::eigh(&diagonal(&own), 5);
    assert_eq!(values[0], -3e-200);
    assert_eq!(values[3..], [1.0, 4e100]);
}

#[test]
fn singular_values() {
    for (name, a) in SIZES.into_iter().flat_map(hard) {
        let size = a.len().isqrt();
        check_svd(&a, size, &name);
        check_svd(&transposed(&a, size, size), size, &name);
    }
    for (rows, columns) in [(2, 1), (9, 4), (60, 50), (130, 7)] {
        let name = format!("{rows} rows, {columns} columns");
        check_svd(&values(rows * columns, 3), columns, &name);
        check_svd(&vec![0.0; rows * columns], columns, &name);
    }
    let [_, values, _] = bidiagonal::svd(&diagonal(&[1.0, -3e-200, 0.0]), 3);
    assert_eq!(values, [1.0, 3e-200, 0.0]);
}

#[track_caller]
fn check_svd(a: &[f64], columns: usize, name: &str) {
    let [u, values, v] = bidiagonal::svd(a, columns);
    assert_eq!(bidiagonal::singular_values(a, columns), values, "{name}");
    check_orthonormal(&u, columns, name);
    check_orthonormal(&v, columns, name);
    assert!(
        values.is_sorted_by(|a, b| a >= b) && values.iter().all(|x| *x >= 0.0),
        "{name}: {values:?}"
    );
    let scale = largest(a).max(f64::MIN_POSITIVE);
    let values: Vec<f64> = values.iter().map(|x| x / scale).collect();
    let made = product(
        &scaled(&u, &values),
        &transposed(&v, columns, columns),
        columns,
    );
    let small: Vec<f64> = a.iter().map(|x| x / scale).collect();
    let apart = apart(&made, &small, 1.0);
    let rows = a.len() / columns;
    assert!(apart <= 8.0 * rows as f64, "{name}: {apart} units apart");
}

#[test]
fn factors() {
    for (name, a) in SIZES.into_iter().flat_map(hard) {
        let size = a.len().isqrt();
        let [q, r] = blocks::qr(&a, size, size);
        check_orthonormal(&q, size, &name);
        let scale = largest(&a).max(f64::MIN_POSITIVE);
        let r: Vec<f64> = r.iter().map(|x| x / scale).collect();
        let small: Vec<f64> = a.iter().map(|x| x / scale).collect();
        let apart = apart(&product(&q, &r, size), &small, 1.0);
        assert!(apart <= 8.0 * size as f64, "{name}: {apart} units apart");
        for (row, line) in r.chunks_exact(size).enumerate() {
            assert!(
                line[..row].iter().all(|x| *x == 0.0) && line[row] >= 0.0,
                "{name}"
            );
        }
    }
    for (rows, columns) in [(2, 1), (9, 4), (60, 50), (130, 100)] {
        let a = values(rows * columns, 3);
        let name = format!("{rows} rows, {columns} columns");
        let [thin, _] = blocks::qr(&a, columns, columns);
        let [whole, r] = blocks::qr(&a, columns, rows);
        check_orthonormal(&whole, rows, &name);
        let begin: Vec<f64> = whole
            .chunks_exact(rows)
            .flat_map(|row| &row[..columns])
            .copied()
            .collect();
        assert!(apart(&begin, &thin, 1.0) <= 64.0, "{name}");
        assert!(
            apart(&product(&thin, &r, columns), &a, 1.0) <= 64.0,
            "{name}"
        );
    }
}

#[test]
fn solutions() {
    for size in [1, 2, 3, 47, 48, 49, 130] {
        let a = values(size * size, size as u64);
        let b = values(size * 3, 2);
        let lu = Lu::of(&a, size);
        let mut x = b.clone();
        lu.solve(&mut x);
        let most = largest(&x).max(1.0);
        let apart = apart(&product(&a, &x, 3), &b, most);
        assert!(apart <= 8.0 * size as f64, "{size}: {apart} units apart");
        // The determinant of the transposed matrix is found by other pivots.
        let (pivots, sign) = lu.pivots();
        let (others, other_sign) = Lu::of(&transposed(&a, size, size), size).pivots();
        let (one, other): (f64, f64) = (pivots.iter().product(), others.iter().product());
        assert!(
            (one * sign / (other * other_sign) - 1.0).abs() < 1e-9,
            "{size}"
        );
    }
    // A cycle of an even number of rows is odd.
    let turned = filled(50, |i, j| f64::from(j == (i + 1) % 50));
    let (pivots, sign) = Lu::of(&turned, 50).pivots();
    assert_eq!((pivots, sign), (vec![1.0; 50], -1.0));
    // All rows the same.
    let (pivots, _) = Lu::of(&vec![1.0; 60 * 60], 60).pivots();
    assert_eq!(pivots.iter().product::<f64>(), 0.0);
}

#[test]
fn triangles() {
    for size in [1, 3, 48, 100] {
        let a = values(size * size, 7);
        let whole = product(&a, &transposed(&a, size, size), size);
        let whole = filled(size, |i, j| whole[i * size + j] + f64::from(i == j));
        let l = blocks::cholesky(&whole, size);
        assert!(
            apart(
                &product(&l, &transposed(&l, size, size), size),
                &whole,
                largest(&whole)
            ) <= 64.0,
            "{size}"
        );
        assert!((0..size).all(|i| {
            l[i * size + i + 1..(i + 1) * size]
                .iter()
                .all(|x| *x == 0.0)
        }));
        // What is above the diagonal does not matter.
        let lower = filled(
            size,
            |i, j| if j > i { f64::NAN } else { whole[i * size + j] },
        );
        assert_eq!(blocks::cholesky(&lower, size), l);
        let b = values(size * 2, 8);
        for (triangle, t) in [
            (Triangle::Lower, l.clone()),
            (Triangle::Upper, transposed(&l, size, size)),
        ] {
            let mut x = b.clone();
            substitute(&t, size, &mut x, triangle);
            let most = largest(&x) * largest(&t);
            assert!(
                apart(&product(&t, &x, 2), &b, most.max(1.0)) <= 64.0,
                "{size}"
            );
        }
    }
    let l = blocks::cholesky(&diagonal(&[1.0, -1.0]), 2);
    assert!(l[3].is_nan());
}
