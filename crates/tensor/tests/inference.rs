//! Sizes that nobody says: found from use, in both directions, when functions are called.

use loopwright_interp as _;
use loopwright_tensor::{
    Axis, DType, ErrorKind, Shape, Tensor, TensorError, Variable, jit, unknown,
};
use loopwright_x86 as _;

/// A parameter of sizes that may be unknown.
fn parameter(shape: Shape) -> Variable {
    Variable::new(&Tensor::full(shape, 0.5, DType::F64))
}

#[test]
fn a_layer_takes_its_input_size_from_the_first_call() -> Result<(), TensorError> {
    let rows = unknown("the input of `dense`");
    let w = parameter(Shape::new([Axis::of(rows), Axis::of(2)]));
    let step = jit("step", {
        let w = w.clone();
        move |x: &Tensor| {
            let now = w.get();
            let loss = x.matmul(&now).square().sum(..);
            let [gradient] = loss.gradients([&now]);
            w.set(&(now - gradient * 0.01))?;
            Ok::<_, TensorError>(loss)
        }
    });
    assert_eq!(w.shape().to_string(), "[?, 2]");
    let x = Tensor::from([[1.0f64, 2.0, 3.0]]);
    assert_eq!(step.call(&x)?.item()?, 18.0);
    assert_eq!(w.shape().to_string(), "[3, 2]");
    assert!(step.call(&x)?.item()? < 18.0);
    // It is decided now.
    let error = step
        .call(&Tensor::from([[1.0f64, 2.0]]))
        .expect_err("it has 3 rows");
    assert!(
        matches!(error.kind(), ErrorKind::Shapes { op, .. } if op == "matmul"),
        "{error}"
    );
    Ok(())
}

#[test]
fn sizes_flow_back_from_results() -> Result<(), TensorError> {
    // The hidden size is said by the last layer only, and by a target the size of the output.
    let hidden = unknown("hidden");
    let output = unknown("output");
    let first = parameter(Shape::new([Axis::of(3), Axis::of(hidden)]));
    let second = parameter(Shape::new([Axis::of(4), Axis::of(output)]));
    let loss = jit("loss", {
        let (first, second) = (first.clone(), second.clone());
        move |(x, y): &(Tensor, Tensor)| {
            (x.matmul(&first.get()).matmul(&second.get()) - y)
                .square()
                .mean(..)
        }
    });
    let (x, y) = (
        Tensor::from([[1.0f64, 1.0, 1.0]]),
        Tensor::from([[3.0f64, 2.0]]),
    );
    assert_eq!(loss.call(&(x, y))?.item()?, 0.5);
    assert_eq!(first.shape().to_string(), "[3, 4]");
    assert_eq!(second.shape().to_string(), "[4, 2]");
    Ok(())
}

#[test]
fn a_size_that_nothing_decides_names_its_owner() {
    let w = parameter(Shape::new([
        Axis::of(unknown("the width of `embed`")),
        Axis::of(2),
    ]));
    let sum = jit("sum", {
        let w = w.clone();
        move |(): &()| w.get().sum(..)
    });
    for outcome in [sum.call(&()), Ok(w.get().sum(..))] {
        let error = outcome
            .and_then(|sum| sum.item())
            .expect_err("nobody knows it");
        assert!(matches!(
            error.kind(),
            ErrorKind::Undetermined { what } if what == "the width of `embed`"
        ));
    }
    // Once it is known, the same function works.
    w.set(&Tensor::from([[1.0f64, 2.0]])).unwrap();
    assert_eq!(sum.call(&()).unwrap().item().unwrap(), 3.0);
}

#[test]
fn a_parameter_is_not_as_long_as_a_batch_of_any_size() -> Result<(), TensorError> {
    // The input size comes from the argument; only the batch is open.
    let w = parameter(Shape::new([Axis::of(unknown("input")), Axis::of(1)]));
    let apply = jit("apply", {
        let w = w.clone();
        move |x: &Tensor| x.matmul(&w.get()).sum(..)
    })
    .dynamic(0, 0)
    .dynamic(0, 1);
    let ones = |batch: usize| Tensor::ones([batch, 3], DType::F64);
    assert_eq!(apply.call(&ones(2))?.item()?, 3.0);
    assert_eq!(apply.call(&ones(5))?.item()?, 7.5);
    assert_eq!(w.shape().to_string(), "[3, 1]");
    assert_eq!(apply.reports().len(), 1);
    Ok(())
}
