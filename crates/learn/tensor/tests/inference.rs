//! Sizes that nobody says: found from use, in both directions, when functions are called; and sizes that
//! differ from call to call.

use loopwright_cc as _;
use loopwright_interp as _;
use loopwright_runtime::{Runtime, RuntimeOptions};
use loopwright_tensor::{
    Axis, DType, ErrorKind, Session, Shape, Tensor, TensorError, Variable, jit, unknown,
};
use loopwright_x86 as _;

/// Runs a test on a new session of every backend that works here.
fn everywhere(test: impl Fn(&Session) -> Result<(), TensorError>) {
    for platform in Runtime::new(RuntimeOptions::default()).platforms() {
        if platform.unavailable.is_some() {
            continue;
        }
        let session = Session::new(&platform.name).unwrap();
        session.scope(|| test(&session).unwrap_or_else(|error| panic!("{session:?}: {error}")));
    }
}

fn message<T>(outcome: Result<T, TensorError>) -> String {
    match outcome {
        Ok(_) => panic!("it went well"),
        Err(error) => error.kind().to_string(),
    }
}

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

#[test]
fn one_program_for_all_sizes() {
    everywhere(|session| {
        let w = Variable::new(&(Tensor::arange(0, 6, 1).cast(DType::F64).reshape([3, 2]) * 0.1));
        let step = |(x, y): &(Tensor, Tensor), w: &Tensor| {
            let loss = (x.matmul(w).tanh() - y).square().mean(..) + x.logsumexp(0).sum(..);
            let [dw, dx] = loss.gradients([w, x]);
            vec![loss, dw, dx]
        };
        let family = jit("step", {
            let w = w.clone();
            move |batch: &(Tensor, Tensor)| step(batch, &w.get())
        })
        .dynamic(0, 0)
        .dynamic(1, 0);
        for batch in [4, 1, 7, 4, 2, 33] {
            let x = (Tensor::arange(0, batch * 3, 1).cast(DType::F64) * 0.37).sin();
            let x = x.reshape([batch as usize, 3]);
            // Values without a history, as arguments are.
            let y = Tensor::of((x.at((.., 0..2)) * 0.5).array()?);
            let x = Tensor::of(x.array()?);
            let before = session.compilations().compiled;
            let got = family.call(&(x.clone(), y.clone()))?;
            let first = batch == 4;
            assert!(first || session.compilations().compiled == before);
            assert_eq!(got[2].sizes()?, [batch as usize, 3]);
            let expected = step(&(x, y), &w.get());
            for (got, expected) in got.iter().zip(&expected) {
                let (got, expected) = (got.to_vec::<f64>()?, expected.to_vec::<f64>()?);
                assert_eq!(got.len(), expected.len());
                for (got, expected) in got.iter().zip(&expected) {
                    assert!(
                        (got - expected).abs() < 1e-12,
                        "{session:?}, {batch}: {got} {expected}"
                    );
                }
            }
        }
        assert_eq!(family.reports().len(), 1);
        Ok(())
    });
}

#[test]
fn open_sizes_by_name_with_views() {
    everywhere(|_| {
        let function = jit("views", |x: &Tensor| {
            let y = x.pad("time", 1, 0, 0.0).flip("time").sin();
            let loss = (y.cumsum("time") * y.roll(1, "time")).sum(..);
            let [dx] = loss.gradients([x]);
            (loss, dx)
        });
        let open = jit("views", |x: &Tensor| {
            let y = x.pad("time", 1, 0, 0.0).flip("time").sin();
            let loss = (y.cumsum("time") * y.roll(1, "time")).sum(..);
            let [dx] = loss.gradients([x]);
            (loss, dx)
        })
        .dynamic_axis("time");
        for time in [3i64, 5, 2] {
            let x = Tensor::arange(0, 2 * time, 1).cast(DType::F64) * 0.3;
            let x = x.reshape([2, time as usize]).named(["batch", "time"]);
            let ((loss, dx), (expected, expected_dx)) = (open.call(&x)?, function.call(&x)?);
            assert!((loss.item()? - expected.item()?).abs() < 1e-12);
            let (dx, expected) = (dx.to_vec::<f64>()?, expected_dx.to_vec::<f64>()?);
            for (got, expected) in dx.iter().zip(&expected) {
                assert!((got - expected).abs() < 1e-12, "{time}: {dx:?}");
            }
        }
        assert_eq!(open.reports().len(), 1);
        assert_eq!(function.reports().len(), 3);
        Ok(())
    });
}

#[test]
fn sizes_that_are_not_open() {
    everywhere(|_| {
        // A parameter says what the size is.
        let w = Variable::new(&Tensor::from([1.0f32, 2.0, 3.0]));
        let dot = jit("dot", {
            let w = w.clone();
            move |x: &Tensor| (x * w.get()).sum(..)
        })
        .dynamic(0, 0);
        assert_eq!(dot.call(&Tensor::from([1.0f32, 1.0, 1.0]))?.item()?, 6.0);
        // A size of 1 is repeated, which an open size never is.
        assert_eq!(dot.call(&Tensor::from([2.0f32]))?.item()?, 12.0);
        let text = message(dot.call(&Tensor::from([1.0f32, 2.0])));
        assert!(text.contains("`mul` of [2] and [3]"), "{text}");
        // Two that are added are equal, unless one is repeated.
        let add = jit("add", |(x, y): &(Tensor, Tensor)| x + y)
            .dynamic(0, 0)
            .dynamic(1, 0);
        let (two, one) = (Tensor::from([1.0f32, 2.0]), Tensor::from([5.0f32]));
        assert_eq!(
            add.call(&(two.clone(), two.clone()))?.to_vec::<f32>()?,
            [2.0, 4.0]
        );
        assert_eq!(
            add.call(&(two.clone(), one.clone()))?.to_vec::<f32>()?,
            [6.0, 7.0]
        );
        assert_eq!(add.call(&(one.clone(), one))?.to_vec::<f32>()?, [10.0]);
        assert_eq!(add.reports().len(), 2);
        // What has to know a size says so.
        let last = jit("last", |x: &Tensor| x.at(-1)).dynamic(0, 0);
        let text = message(last.call(&two));
        assert!(
            text.contains("the size of axis 0 is not known yet"),
            "{text}"
        );
        Ok(())
    });
}
