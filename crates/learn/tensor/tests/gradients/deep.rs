//! Formulas so deep that a function which calls itself for every operand would not fit on a stack.

use crate::differences::everywhere;
use loopwright_tensor::{DType, Tensor};

const DEPTH: usize = 100_000;

#[test]
fn a_deep_formula_has_gradients_and_goes_away() {
    let x = Tensor::from([0.5f64]);
    let deep = (0..DEPTH).fold(x.clone(), |y, _| y * 0.5 + 1.0);
    let [dx] = deep.sum(..).gradients([&x]);
    dx.check().unwrap();
    let [again] = deep.recomputed(&[&x]).sum(..).gradients([&x]);
    again.check().unwrap();
    let [second] = dx.sum(..).gradients([&x]);
    second.check().unwrap();
}

#[test]
fn a_deep_formula_is_computed_at_once() {
    everywhere(|| {
        let x = Tensor::from([0.5f64]);
        let deep = (0..2_000).fold(x.clone(), |y, _| y * 0.5 + 1.0);
        assert!((deep.item()? - 2.0).abs() < 1e-12);
        let [dx] = deep.sum(..).gradients([&x]);
        assert_eq!(dx.item()?, 0.5f64.powi(2_000));
        Ok(())
    });
}

#[test]
fn a_deep_formula_is_computed_in_parts() {
    // As deep as all the rest, realised where a caller would.
    let mut x = Tensor::zeros([2], DType::F64);
    for _ in 0..DEPTH / 1000 {
        x = (0..10).fold(x, |x, _| x + 1.0);
        x.realize().unwrap();
    }
    assert_eq!(x.to_vec::<f64>().unwrap(), [1000.0, 1000.0]);
}
