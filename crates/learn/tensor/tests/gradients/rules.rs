//! Products with Jacobians, marks on gradients, and what they are taken of.

use crate::differences::{Point, everywhere, sessions, weights};
use loopwright_tensor::{DType, Session, Tensor, TensorError, Window, jit};

fn close(got: &[f64], expected: &[f64]) {
    assert_eq!(got.len(), expected.len());
    for (got, expected) in got.iter().zip(expected) {
        assert!(
            (got - expected).abs() <= 1e-6 * (1.0 + expected.abs()),
            "{got} is not {expected}"
        );
    }
}

/// A function with views, folds, products and gathers of two tensors.
fn mixed(x: &Tensor, w: &Tensor) -> Tensor {
    let seen = x.window(1, &Window::new(2usize), None).max(2);
    let looked = w.take(&Tensor::from([1i64, 0, 1]), 0);
    seen.matmul(&looked).tanh().cumsum(0) * x.at((.., 0..1))
}

#[test]
fn jacobian_times_direction() {
    everywhere(|| {
        let (x, w) = (Point::scattered(&[2, 4], 50), Point::scattered(&[2, 3], 51));
        let (dx, dw) = (Point::scattered(&[2, 4], 52), Point::scattered(&[2, 3], 53));
        let step = 1e-5;
        let at = |by: f64| {
            let x = x.tensor() + dx.tensor() * by;
            let w = w.tensor() + dw.tensor() * by;
            mixed(&x, &w).to_vec::<f64>()
        };
        let (up, down) = (at(step)?, at(-step)?);
        let expected: Vec<f64> = up
            .iter()
            .zip(&down)
            .map(|(up, down)| (up - down) / (2.0 * step))
            .collect();
        let (x, w) = (x.tensor(), w.tensor());
        let got = mixed(&x, &w).jvp(&[&x, &w], &[&dx.tensor(), &dw.tensor()]);
        close(&got.to_vec::<f64>()?, &expected);
        Ok(())
    });
}

#[test]
fn both_products_agree() {
    everywhere(|| {
        let (x, w) = (
            Point::scattered(&[2, 4], 54).tensor(),
            Point::scattered(&[2, 3], 55).tensor(),
        );
        let y = mixed(&x, &w);
        let (left, right) = (weights(&y, 3), weights(&x, 4));
        let from_left = (y.vjp(&left, &[&x]).remove(0) * &right).sum(..).item()?;
        let from_right = (y.jvp(&[&x], &[&right]) * &left).sum(..).item()?;
        close(&[from_left], &[from_right]);
        Ok(())
    });
}

#[test]
fn the_second_derivative_by_both_modes() {
    // Forward over reverse, as in a product with the Hessian.
    everywhere(|| {
        let x = Tensor::from([0.5f64, -1.0, 2.0]);
        let loss = (x.exp() * x.roll(1, 0)).sum(..);
        let [gradient] = loss.gradients([&x]);
        let direction = Tensor::from([1.0f64, 2.0, -1.0]);
        let forward = gradient.jvp(&[&x], &[&direction]).to_vec::<f64>()?;
        let [reverse] = (&gradient * &direction).sum(..).gradients([&x]);
        close(&forward, &reverse.to_vec::<f64>()?);
        Ok(())
    });
}

#[test]
fn what_nothing_depends_on_has_a_gradient_of_zero() {
    everywhere(|| {
        let (x, other) = (Tensor::from([1.0f64, 2.0]), Tensor::from([[3.0f64], [4.0]]));
        let [dx, none] = x.square().sum(..).gradients([&x, &other]);
        assert_eq!(dx.to_vec::<f64>()?, [2.0, 4.0]);
        assert_eq!(none.to_vec::<f64>()?, [0.0, 0.0]);
        assert_eq!(none.shape().to_string(), "[2, 1]");
        // A tensor is its own derivative.
        let y = x.sum(..);
        let [dy] = y.gradients([&y]);
        assert_eq!(dy.item()?, 1.0);
        assert_eq!(x.jvp(&[&other], &[&other]).to_vec::<f64>()?, [0.0, 0.0]);
        Ok(())
    });
}

#[test]
fn of_what_is_on_the_way() {
    everywhere(|| {
        let x = Tensor::from([1.0f64, 2.0]);
        let square = x.square();
        let loss = (&square * &x).sum(..);
        let [dx, ds] = loss.gradients([&x, &square]);
        assert_eq!(dx.to_vec::<f64>()?, [3.0, 12.0]);
        assert_eq!(ds.to_vec::<f64>()?, [1.0, 2.0]);
        Ok(())
    });
}

#[test]
fn nothing_flows_through_a_stop() {
    everywhere(|| {
        let x = Tensor::from([1.0f64, 2.0, 3.0]);
        let y = (&x * x.stop_gradient()).sum(..);
        let [dx] = y.gradients([&x]);
        assert_eq!(dx.to_vec::<f64>()?, [1.0, 2.0, 3.0]);
        let [second] = dx.sum(..).gradients([&x]);
        assert_eq!(second.to_vec::<f64>()?, [0.0, 0.0, 0.0]);
        Ok(())
    });
}

#[test]
fn a_gradient_of_its_own() {
    everywhere(|| {
        // Rounds, and pretends that it does not.
        let through = |x: &Tensor| x.round().with_gradient(&[x], |_, _, g| vec![g.clone()]);
        let x = Tensor::from([0.3f64, 1.7]);
        let y = through(&x).square().sum(..);
        assert_eq!(y.item()?, 4.0);
        let [dx] = y.gradients([&x]);
        assert_eq!(dx.to_vec::<f64>()?, [0.0, 4.0]);
        // It gets the operand and the value, and what it gives has derivatives again.
        let root = |x: &Tensor| {
            x.sqrt().with_gradient(&[x], |x, y, g| {
                assert_eq!(x.len(), 1);
                vec![g * 0.5 / y]
            })
        };
        let x = Tensor::from([4.0f64, 9.0]);
        let [first] = root(&x).sum(..).gradients([&x]);
        close(&first.to_vec::<f64>()?, &[0.25, 1.0 / 6.0]);
        let [second] = first.sum(..).gradients([&x]);
        close(&second.to_vec::<f64>()?, &[-0.25 / 8.0, -0.25 / 27.0]);
        Ok(())
    });
}

#[test]
fn wrong_gradients_are_refused() {
    let x = Tensor::from([1.0f64, 2.0]);
    let say = |tensor: &Tensor| match tensor.check() {
        Err(error) => error.kind().to_string(),
        Ok(()) => panic!("{tensor:?}"),
    };
    let [dx] = x
        .with_gradient(&[&x], |_, _, _| vec![])
        .sum(..)
        .gradients([&x]);
    assert_eq!(
        say(&dx),
        "there is no gradient: a function for 1 tensors gave 0 gradients"
    );
    let [dx] = x
        .with_gradient(&[&x], |_, _, g| vec![g.sum(..)])
        .sum(..)
        .gradients([&x]);
    assert_eq!(
        say(&dx),
        "there is no gradient: a function gave f64[] as the gradient of f64[2]"
    );
    let [dx] = x.gradients([&x]);
    assert!(say(&dx).contains("fold it first"), "{}", say(&dx));
    let whole = Tensor::from([1i64, 2]);
    let [none] = whole.sum(..).gradients([&whole]);
    assert!(
        say(&none).contains("i64 has no derivative"),
        "{}",
        say(&none)
    );
    let wrong = x.square().vjp(&Tensor::from([1.0f64]), &[&x]).remove(0);
    assert!(
        say(&wrong).contains("`vjp` of f64[2] and f64[1]"),
        "{}",
        say(&wrong)
    );
    let wrong = x.square().jvp(&[&x], &[]);
    assert!(
        say(&wrong).contains("0 directions are given for 1 tensors"),
        "{}",
        say(&wrong)
    );
}

/// A chain of layers, each of whose values is kept for the gradient, or computed again from the start of
/// its stretch of layers.
fn layers(x: &Tensor, w: &Tensor, again: bool) -> Result<Vec<Tensor>, TensorError> {
    let mut y = x.clone();
    for _ in 0..3 {
        let start = y.clone();
        for _ in 0..4 {
            y = y.matmul(w).tanh();
        }
        if again {
            y = y.recomputed(&[&start, w]);
        }
    }
    let loss = y.square().sum(..);
    let [dx, dw] = loss.gradients([x, w]);
    Ok(vec![loss, dx, dw])
}

#[test]
fn what_is_computed_again_is_the_same() {
    everywhere(|| {
        let (x, w) = (
            Point::scattered(&[2, 3], 56).tensor() * 0.3,
            Point::scattered(&[3, 3], 57).tensor() * 0.3,
        );
        let (kept, again) = (layers(&x, &w, false)?, layers(&x, &w, true)?);
        for (kept, again) in kept.iter().zip(&again) {
            close(&again.to_vec::<f64>()?, &kept.to_vec::<f64>()?);
        }
        Ok(())
    });
}

#[test]
fn all_that_is_computed_again_gets_its_part() {
    everywhere(|| {
        let gradients = |again: bool| -> Result<Vec<Vec<f64>>, TensorError> {
            let (x, w) = (Tensor::from([0.5f64, -1.5]), Tensor::from([2.0f64, 3.0]));
            let start = x.sin() * &w;
            let inside = start.exp() * &w;
            // The parameter and what is inside are not listed, and the start depends on the parameter.
            let y = inside.square().tanh();
            let y = if again { y.recomputed(&[&start]) } else { y };
            let loss = (y * &start).sum(..);
            let of = [&x, &w, &start, &inside];
            loss.gradients(of).iter().map(Tensor::to_vec).collect()
        };
        let (kept, again) = (gradients(false)?, gradients(true)?);
        for (kept, again) in kept.iter().zip(&again) {
            close(again, kept);
        }
        Ok(())
    });
}

#[test]
fn computing_again_takes_more_work_and_less_memory() {
    for session in sessions() {
        let used = |again: bool| {
            // A runtime of its own, so that nothing else is counted.
            let session = Session::new(session.device().name()).unwrap();
            session.scope(|| {
                let step = jit("step", move |(x, w): &(Tensor, Tensor)| layers(x, w, again));
                let (x, w) = (
                    Tensor::zeros([512, 8], DType::F64),
                    Tensor::zeros([8, 8], DType::F64),
                );
                loopwright_tensor::realize(&[x.clone(), w.clone()]).unwrap();
                let before = session.memory().unwrap().used;
                let results = step.call(&(x, w)).unwrap();
                let after = session.memory().unwrap().used;
                drop(results);
                (step.reports()[0].tensors, after - before)
            })
        };
        let ((kept_tensors, kept_bytes), (again_tensors, again_bytes)) = (used(false), used(true));
        assert!(
            again_tensors > kept_tensors,
            "{again_tensors} {kept_tensors}"
        );
        assert!(
            again_bytes < kept_bytes,
            "{session:?}: {again_bytes} bytes in place of {kept_bytes}"
        );
    }
}

#[test]
fn through_values_that_are_there() {
    everywhere(|| {
        let x = Tensor::from([1.0f64, 2.0]);
        let square = x.square();
        square.realize()?;
        let loss = (&square * &x).sum(..);
        assert_eq!(loss.item()?, 9.0);
        let [dx] = loss.gradients([&x]);
        assert_eq!(dx.to_vec::<f64>()?, [3.0, 12.0]);
        dx.realize()?;
        let [second] = dx.sum(..).gradients([&x]);
        assert_eq!(second.to_vec::<f64>()?, [6.0, 12.0]);
        Ok(())
    });
}

#[test]
fn narrow_floats_have_gradients() {
    everywhere(|| {
        for dtype in [DType::F32, DType::F16, DType::BF16] {
            let x = Tensor::from([1.0f32, -2.0, 0.5]).cast(dtype);
            let [dx] = (x.square() * &x).sum(..).gradients([&x]);
            assert_eq!(dx.dtype(), dtype);
            assert_eq!(dx.to_f64()?, [3.0, 12.0, 0.75]);
        }
        Ok(())
    });
}
