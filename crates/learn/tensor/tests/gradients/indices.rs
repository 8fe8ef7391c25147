//! Gathers, scatters and orders.

use crate::differences::{Point, check, everywhere};
use loopwright_tensor::{ReduceOp, Tensor};

#[test]
fn look_ups() {
    let table = [Point::scattered(&[4, 3], 16)];
    check("take rows", &table, |x| {
        // One twice, one outside.
        x[0].take(&Tensor::from([3i64, 0, 3, 9]), 0).sin()
    });
    check("take columns by a matrix", &table, |x| {
        x[0].take(&Tensor::from([[2i64, 0], [1, 1]]), 1).sin()
    });
    check("take along", &table, |x| {
        let index = Tensor::from([[1i64, 0], [0, 0], [2, 1], [0, 5]]);
        x[0].take_along(&index, 1).sin()
    });
    check("take along rows", &table, |x| {
        let index = Tensor::from([[1i64, 0, 3], [1, 1, 1]]);
        x[0].take_along(&index, 0).sin()
    });
    check("by an index and a range", &table, |x| {
        x[0].at((&Tensor::from([2i64, 2, 1]), 1..3)).sin()
    });
}

#[test]
fn scatters() {
    let points = [Point::scattered(&[4], 17), Point::scattered(&[5], 18)];
    for combine in [
        None,
        Some(ReduceOp::Sum),
        Some(ReduceOp::Max),
        Some(ReduceOp::Min),
        Some(ReduceOp::Prod),
    ] {
        let what = format!("scatter {combine:?}");
        check(&what, &points, move |x| {
            let index = Tensor::from([0i64, 2, 0, 7, 2]);
            x[0].scatter(&index, &x[1], 0, combine).sin()
        });
        let rows = [Point::scattered(&[3, 2], 19), Point::scattered(&[4, 2], 20)];
        let what = format!("scatter of rows {combine:?}");
        check(&what, &rows, move |x| {
            let index = Tensor::from([1i64, 1, 0, 1]);
            x[0].scatter(&index, &x[1], 0, combine).sin()
        });
        let lines = [Point::scattered(&[2, 3], 21), Point::scattered(&[2, 2], 22)];
        let what = format!("scatter along {combine:?}");
        check(&what, &lines, move |x| {
            let index = Tensor::from([[2i64, 0], [1, 1]]);
            x[0].scatter_along(&index, &x[1], 1, combine).sin()
        });
    }
}

#[test]
fn a_square_scatter_onto_itself() {
    check("onto itself", &[Point::scattered(&[3, 3], 23)], |x| {
        let index = Tensor::from([2i64, 0, 0]);
        x[0].scatter(&index, &x[0].t(), 0, Some(ReduceOp::Sum))
            .sin()
    });
}

#[test]
fn those_that_are_the_largest_of_a_scatter_share() {
    everywhere(|| {
        let base = Tensor::from([1.0f64, 5.0, 2.0]);
        let updates = Tensor::from([1.0f64, 4.0, 1.0, 3.0]);
        let index = Tensor::from([0i64, 1, 0, 2]);
        let y = base.scatter(&index, &updates, 0, Some(ReduceOp::Max));
        let [db, du] = y.sum(..).gradients([&base, &updates]);
        let third = 1.0 / 3.0;
        assert_eq!(db.to_vec::<f64>()?, [third, 1.0, 0.0]);
        assert_eq!(du.to_vec::<f64>()?, [third, 0.0, third, 1.0]);
        Ok(())
    });
}

#[test]
fn scattered_products_with_zeros() {
    everywhere(|| {
        let base = Tensor::from([2.0f64, 0.0, 3.0]);
        let updates = Tensor::from([0.0f64, 5.0, 4.0, 0.0]);
        let index = Tensor::from([0i64, 0, 1, 1]);
        let y = base.scatter(&index, &updates, 0, Some(ReduceOp::Prod));
        let [db, du] = y.sum(..).gradients([&base, &updates]);
        assert_eq!(db.to_vec::<f64>()?, [0.0, 0.0, 1.0]);
        assert_eq!(du.to_vec::<f64>()?, [10.0, 0.0, 0.0, 0.0]);
        Ok(())
    });
}

#[test]
fn orders() {
    let point = [Point::scattered(&[3, 4], 24)];
    check("sort", &point, |x| x[0].sort(1, false).sin());
    check("sort, descending columns", &point, |x| {
        x[0].sort(0, true).sin()
    });
    check("topk", &point, |x| x[0].topk(2, 1).0.sin());
    check("median", &point, |x| {
        x[0].sort(1, false).at((.., 1..3)).mean(1).sin()
    });
    check("largest by its index", &point, |x| {
        let at = x[0].argmax(1).unsqueeze(1);
        x[0].take_along(&at, 1).sin()
    });
}
