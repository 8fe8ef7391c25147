//! Derivatives of functions: gradients structured as arguments, Jacobians, second derivatives.

mod numeric;

use loopwright_tensor::{
    DType, Tensor, TensorError, Variable, grad, hessian, jacobian, jacobian_forward, jit, linalg,
    value_and_grad, vmap,
};
use numeric::{close, everywhere, random};

#[track_caller]
fn near(got: &Tensor, expected: &Tensor) -> Result<(), TensorError> {
    assert_eq!(got.sizes()?, expected.sizes()?);
    close(&got.to_f64()?, &expected.to_f64()?, 1e-10, "near");
    Ok(())
}

#[test]
fn gradients_are_structured_as_arguments() {
    everywhere(|| {
        let (a, b, c) = (random(&[2, 3], 1), random(&[3], 2), random(&[2], 3));
        let arguments = (a.clone(), vec![b.clone(), c.clone()]);
        let function = |(a, rest): &(Tensor, Vec<Tensor>)| {
            let y = (a * &rest[0]).sum(1) * &rest[1];
            // What comes behind the number is only given back.
            (y.square().sum(..), y)
        };
        let ((value, y), (da, rest)) = value_and_grad(function, &arguments)?;
        let expected = (&a * &b).sum(1) * &c;
        let total = expected.square().sum(..);
        let [ea, eb, ec] = total.gradients([&a, &b, &c]);
        near(&value, &total)?;
        near(&y, &expected)?;
        near(&da, &ea)?;
        near(&rest[0], &eb)?;
        near(&rest[1], &ec)
    });
}

#[test]
fn only_arguments_get_gradients() {
    everywhere(|| {
        let x = random(&[2], 4);
        // The same tensor in both places, and taken along as a constant.
        let function = |(a, b): &(Tensor, Tensor)| (a * a * b * &x).sum(..);
        let (da, db) = grad(function, &(x.clone(), x.clone()))?;
        near(&da, &(&x * &x * &x * 2.0))?;
        near(&db, &(&x * &x * &x))?;
        // They are formulas of the tensor all the same.
        let [second] = da.sum(..).gradients([&x]);
        near(&second, &(&x * &x * 6.0))?;
        let index = Tensor::from([1i64, 0, 1]);
        let (dx, none) = grad(
            |(x, at): &(Tensor, Tensor)| x.take(at, 0).sum(..),
            &(x.clone(), index),
        )?;
        assert_eq!(dx.to_f64()?, [1.0, 2.0]);
        assert_eq!((none.dtype(), none.to_f64()?), (DType::I64, vec![0.0; 3]));
        Ok(())
    });
}

#[test]
fn variables_have_gradients_as_before() {
    everywhere(|| {
        let weight = Variable::new(&random(&[3], 5));
        let step = jit("step", {
            let weight = weight.clone();
            move |x: &Tensor| {
                let (loss, dx) = value_and_grad(|x: &Tensor| (x * weight.get()).sin().sum(..), x)?;
                let value = weight.get();
                let [slope] = loss.gradients([&value]);
                weight.set(&(value + &slope))?;
                Ok::<_, TensorError>((dx, slope))
            }
        });
        let (x, before) = (random(&[3], 6), weight.get());
        before.realize()?;
        let (dx, slope) = step.call(&x)?;
        near(&dx, &((&x * &before).cos() * &before))?;
        let expected = (&x * &before).cos() * &x;
        near(&slope, &expected)?;
        near(&weight.get(), &(before + expected))
    });
}

#[test]
fn jacobians_in_both_directions() {
    everywhere(|| {
        let (x, w) = (random(&[3], 7), random(&[2, 3], 8));
        let function = |(x, w): &(Tensor, Tensor)| w.matmul(x).tanh();
        let slope = w.matmul(&x).tanh();
        let slope = -(&slope * &slope) + 1.0;
        let dx = slope.unsqueeze(1) * &w;
        let dw = Tensor::eye(2, DType::F64).unsqueeze(2) * slope.unsqueeze(1).unsqueeze(2) * &x;
        let arguments = (x.clone(), w.clone());
        let backward = jacobian(function, &arguments)?;
        let forward = jacobian_forward(function, &arguments)?;
        for (jx, jw) in [backward, forward] {
            near(&jx, &dx)?;
            near(&jw, &dw)?;
        }
        // Of a number it is the gradient, and with respect to a number a derivative of every element.
        let total = |x: &Tensor| x.exp().sum(..);
        near(&jacobian(total, &x)?, &grad(total, &x)?)?;
        near(&jacobian_forward(total, &x)?, &grad(total, &x)?)?;
        let (scale, one) = (|s: &Tensor| s * s * &x, Tensor::from([3.0f64]).sum(..));
        near(&jacobian(scale, &one)?, &(&x * 6.0))?;
        near(&jacobian_forward(scale, &one)?, &(&x * 6.0))?;
        // Through a gradient of its own, and with an argument that is no float.
        let solve = |(a, at): &(Tensor, Tensor)| {
            linalg::solve(&(a + Tensor::eye(2, DType::F64) * 3.0), &w).take(at, 1)
        };
        let arguments = (random(&[2, 2], 9), Tensor::from([2i64]));
        let (backward, none) = jacobian(solve, &arguments)?;
        let (forward, nothing) = jacobian_forward(solve, &arguments)?;
        near(&backward, &forward)?;
        assert_eq!(
            (none.sizes()?, nothing.sizes()?),
            (vec![2, 1, 1], vec![2, 1, 1])
        );
        Ok(())
    });
}

#[test]
fn names_of_jacobians() {
    everywhere(|| {
        let (x, w) = (
            random(&[3], 10).named(["i"]),
            random(&[3, 2], 11).named(["i", "j"]),
        );
        let product = |x: &Tensor| (x * &w).sum("i");
        for slopes in [jacobian(product, &x)?, jacobian_forward(product, &x)?] {
            assert_eq!(slopes.shape().to_string(), "[j 2, i 3]");
            near(&slopes, &w.t())?;
        }
        for slopes in [
            jacobian(Tensor::exp, &x)?,
            jacobian_forward(Tensor::exp, &x)?,
        ] {
            assert_eq!(slopes.shape().to_string(), "[i 3, 3]");
            near(
                &slopes.unnamed(),
                &(Tensor::eye(3, DType::F64) * x.unnamed().exp()),
            )?;
        }
        Ok(())
    });
}

#[test]
fn second_derivatives() {
    everywhere(|| {
        // x0² x1 + x1³.
        let function = |x: &Tensor| x.at(0).square() * x.at(1) + x.at(1).powf(3.0);
        let at = |a: f64, b: f64| Tensor::from([[2.0 * b, 2.0 * a], [2.0 * a, 6.0 * b]]);
        let x = Tensor::from([2.0f64, 5.0]);
        near(&hessian(function, &x)?, &at(2.0, 5.0))?;
        // For several points at once, and in a function that is compiled.
        let points = Tensor::from([[1.0f64, 2.0], [3.0, 4.0], [-1.0, 0.5]]);
        let each = vmap(move |x: &Tensor| hessian(function, x));
        let all = each.call(&points)?;
        for (at_point, expected) in [at(1.0, 2.0), at(3.0, 4.0), at(-1.0, 0.5)]
            .iter()
            .enumerate()
        {
            near(&all.at(at_point as i64), expected)?;
        }
        let compiled = jit("curvature", move |x: &Tensor| hessian(function, x));
        near(&compiled.call(&x)?, &at(2.0, 5.0))?;
        // Of a matrix, and of a number.
        let matrix = random(&[2, 2], 12);
        let curvature = hessian(|x: &Tensor| linalg::det(x), &matrix)?;
        let expected = [
            0., 0., 0., 1., 0., 0., -1., 0., 0., -1., 0., 0., 1., 0., 0., 0.,
        ];
        assert_eq!(curvature.sizes()?, [2, 2, 2, 2]);
        close(&curvature.to_f64()?, &expected, 1e-9, "of a determinant");
        let number = hessian(|x: &Tensor| x.exp(), &Tensor::from([0.5f64]).sum(..))?;
        close(&number.to_f64()?, &[0.5f64.exp()], 1e-12, "of a number");
        Ok(())
    });
}

#[test]
fn mistakes() {
    #[track_caller]
    fn says<T>(outcome: Result<T, TensorError>, expected: &str) {
        let error = outcome.err().expect("a mistake");
        assert_eq!(error.kind().to_string(), expected);
        assert!(error.place().file().ends_with("derivatives.rs"), "{error}");
    }
    let x = random(&[3], 13);
    says(
        grad(Tensor::exp, &x),
        "there is no gradient: the gradient of a single number can be taken, and this is [3]; fold it first (`.sum(..)`, `.mean(..)`), or use `vjp`",
    );
    says(
        grad(|x: &Tensor| x.argmax(0), &x),
        "there is no gradient: i64 has no derivative; it is taken of floats",
    );
    says(
        jacobian(|x: &Tensor| x.argsort(0, false), &x),
        "there is no gradient: i64 has no derivative; it is taken of floats",
    );
    says(
        grad(|_: &Tensor| Vec::<Tensor>::new(), &x),
        "there is no gradient: the function gives no tensor",
    );
    let failed = &x + random(&[2], 14);
    assert!(jacobian(Tensor::exp, &failed).is_err());
    assert!(grad(|x: &Tensor| x.sum(3), &x).is_err());
}
