//! Matrix products of all ranks.

use crate::differences::{Point, check};

#[test]
fn matrix_products() {
    let shapes: [(&[usize], &[usize]); 9] = [
        (&[3], &[3]),
        (&[3], &[3, 2]),
        (&[2, 3], &[3]),
        (&[2, 3], &[3, 2]),
        (&[2, 2, 3], &[3, 2]),
        (&[2, 3], &[2, 3, 2]),
        (&[2, 2, 3], &[2, 3, 2]),
        (&[2, 1, 2, 2], &[3, 2, 2]),
        (&[2, 2, 2], &[2]),
    ];
    for (a, b) in shapes {
        let what = format!("{a:?} by {b:?}");
        let points = [Point::scattered(a, 8), Point::scattered(b, 9)];
        check(&what, &points, |x| x[0].matmul(&x[1]).sin());
    }
}

#[test]
fn a_matrix_with_itself() {
    let point = [Point::scattered(&[3, 3], 10)];
    check("x x", &point, |x| x[0].matmul(&x[0]));
    check("x xᵀ", &point, |x| x[0].matmul(&x[0].t()));
    check("x + xᵀ", &point, |x| (&x[0] + x[0].t()).square());
    check("xᵀ x x", &point, |x| x[0].t().matmul(&x[0]).matmul(&x[0]));
}

#[test]
fn contractions_by_name() {
    let points = [Point::scattered(&[2, 3], 11), Point::scattered(&[3, 2], 12)];
    check("by name", &points, |x| {
        (x[0].named(["i", "k"]) * x[1].named(["k", "j"]))
            .sum("k")
            .square()
    });
}

#[test]
fn attention() {
    let points = [
        Point::scattered(&[3, 2], 13),
        Point::scattered(&[3, 2], 14),
        Point::scattered(&[3, 2], 15),
    ];
    check("attention", &points, |x| {
        let scores = x[0].matmul(&x[1].t()) / 2f64.sqrt();
        scores.softmax(1).matmul(&x[2])
    });
}
