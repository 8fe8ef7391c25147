//! Folds, running folds, and what is made of them.

use crate::differences::{Point, check, everywhere};
use loopwright_tensor::{DType, ReduceOp, Tensor, select};

const NUMERIC: [ReduceOp; 4] = [ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Max, ReduceOp::Min];

#[test]
fn every_fold() {
    for op in ReduceOp::ALL {
        if !op.allows(DType::F64) {
            continue;
        }
        assert!(NUMERIC.contains(&op), "{op:?} has no test of running folds");
        for over in [vec![0], vec![1], vec![0, 2], vec![0, 1, 2]] {
            let what = format!("{} over {over:?}", op.name());
            let point = Point::scattered(&[2, 3, 2], 5);
            check(&what, &[point], move |x| x[0].reduce(op, &over[..]).sin());
        }
    }
}

#[test]
fn products_with_zeros() {
    // No zero in the first line, one in the second, two in the third.
    let values = [1.5, -0.5, 2.0, 0.7, 0.0, -1.2, 0.0, 1.1, 0.0];
    check("prod", &[Point::new(&values, &[3, 3])], |x| x[0].prod(1));
    check("prod of all", &[Point::new(&values[..6], &[2, 3])], |x| {
        x[0].prod(..)
    });
    check(
        "prod, turned",
        &[Point::new(&values[..6], &[3, 1, 2])],
        |x| x[0].prod([2, 0]),
    );
    check("cumprod", &[Point::new(&values, &[3, 3])], |x| {
        x[0].cumprod(1)
    });
    check(
        "cumprod, exclusive from the end",
        &[Point::new(&values, &[3, 3])],
        |x| x[0].scan(ReduceOp::Prod, 0, true, true),
    );
}

#[test]
fn the_largest_share() {
    everywhere(|| {
        let x = Tensor::from([[3.0f64, 1.0, 3.0], [2.0, 2.0, 2.0], [0.0, 1.0, 4.0]]);
        let [dx] = x.max(1).sum(..).gradients([&x]);
        let third = 1.0 / 3.0;
        assert_eq!(
            dx.to_vec::<f64>()?,
            [0.5, 0.0, 0.5, third, third, third, 0.0, 0.0, 1.0]
        );
        let [dx] = x.min(1).sum(..).gradients([&x]);
        assert_eq!(
            dx.to_vec::<f64>()?,
            [0.0, 1.0, 0.0, third, third, third, 1.0, 0.0, 0.0]
        );
        Ok(())
    });
}

#[test]
fn every_running_fold() {
    for op in NUMERIC {
        for (exclusive, reverse) in [(false, false), (true, false), (false, true), (true, true)] {
            for axis in [0, 1] {
                let what = format!(
                    "scan_{} along {axis}, exclusive {exclusive}, reverse {reverse}",
                    op.name()
                );
                check(&what, &[Point::scattered(&[3, 4], 6)], move |x| {
                    let y = x[0].scan(op, axis, exclusive, reverse);
                    // The first of an exclusive maximum is infinitely small.
                    select(&y.is_finite(), &y, &y.zeros_like()).sin()
                });
            }
        }
    }
}

#[test]
fn a_running_maximum_goes_to_the_last_that_was_seen() {
    everywhere(|| {
        let x = Tensor::from([1.0f64, 3.0, 3.0, 2.0]);
        let [dx] = x.cummax(0).sum(..).gradients([&x]);
        assert_eq!(dx.to_vec::<f64>()?, [1.0, 1.0, 2.0, 0.0]);
        let [dx] = x
            .scan(ReduceOp::Max, 0, false, true)
            .sum(..)
            .gradients([&x]);
        assert_eq!(dx.to_vec::<f64>()?, [0.0, 2.0, 1.0, 1.0]);
        Ok(())
    });
}

#[test]
fn statistics() {
    let point = [Point::scattered(&[2, 4], 7)];
    check("mean", &point, |x| x[0].mean(1).exp());
    check("var", &point, |x| x[0].var(1, 0.0));
    check("unbiased var of all", &point, |x| x[0].var(.., 1.0));
    check("std", &point, |x| x[0].std(0, 1.0));
    check("norm", &point, |x| x[0].norm(1));
    check("softmax", &point, |x| x[0].softmax(1));
    check("softmax of all", &point, |x| x[0].softmax(..));
    check("log_softmax", &point, |x| x[0].log_softmax(0));
    check("logsumexp", &point, |x| x[0].logsumexp(1));
    check("keep_axes", &point, |x| {
        &x[0] / x[0].keep_axes(|x| x.norm(1), 1)
    });
}
