//! Control flow that depends on values.

use loopwright_cc as _;
use loopwright_interp as _;
use loopwright_runtime::{Runtime, RuntimeOptions};
use loopwright_tensor::{
    DType, MAX_UNROLLED, Session, Tensor, TensorError, Variable, choose, jit, repeat_at_most,
    repeat_while, scan, scan_values, stack, while_loop,
};
use loopwright_x86 as _;

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

/// A recurrent layer over `[time, batch, 2]` with a state of `[batch, 2]`.
fn recurrent(x: &Tensor, state: &Tensor, w: &Tensor) -> Result<(Tensor, Tensor), TensorError> {
    scan(state, x, 0, |state, x| {
        let next = (x + state.matmul(w)).tanh();
        (next.clone(), next * 2.0)
    })
}

fn inputs() -> (Tensor, Tensor, Tensor) {
    let x = (Tensor::arange(0, 12, 1).cast(DType::F64) * 0.7).sin();
    let state = Tensor::from([[0.1f64, -0.2], [0.3, 0.4]]);
    let w = Tensor::from([[0.5f64, -0.3], [0.2, 0.7]]);
    (x.reshape([3, 2, 2]), state, w)
}

#[test]
fn a_recurrent_layer() {
    everywhere(|_| {
        let (x, state, w) = inputs();
        let (last, all) = recurrent(&x, &state, &w)?;
        // By hand.
        let mut expected = Vec::new();
        let mut now = state.clone();
        for step in 0..3 {
            now = (x.at(step) + now.matmul(&w)).tanh();
            expected.extend((&now * 2.0).to_vec::<f64>()?);
        }
        assert_eq!(all.sizes()?, [3, 2, 2]);
        assert_eq!(all.to_vec::<f64>()?, expected);
        assert_eq!(last.to_vec::<f64>()?, now.to_vec::<f64>()?);
        // The same outside of a formula.
        let (values_last, values) = scan_values(&state, &x, 0, {
            let w = w.clone();
            move |state, x| {
                let next = (x + state.matmul(&w)).tanh();
                (next.clone(), next * 2.0)
            }
        })?;
        assert_eq!(values.sizes()?, [3, 2, 2]);
        assert_eq!(values.to_vec::<f64>()?, expected);
        assert_eq!(values_last.to_vec::<f64>()?, now.to_vec::<f64>()?);
        Ok(())
    });
}

#[test]
fn its_gradients() {
    everywhere(|_| {
        let (x, state, w) = inputs();
        let loss = |w: &Tensor, x: &Tensor| -> Result<Tensor, TensorError> {
            let (last, all) = recurrent(x, &state, w)?;
            Ok(last.square().sum(..) + all.sin().sum(..))
        };
        let step = jit("step", {
            let state = state.clone();
            move |(x, w): &(Tensor, Tensor)| {
                let (last, all) = recurrent(x, &state, w)?;
                let loss = last.square().sum(..) + all.sin().sum(..);
                let [dx, dw] = loss.gradients([x, w]);
                Ok::<_, TensorError>((dx, dw))
            }
        });
        let (dx, dw) = step.call(&(x.clone(), w.clone()))?;
        let (dx, dw) = (dx.to_vec::<f64>()?, dw.to_vec::<f64>()?);
        let step = 1e-5;
        let base = w.to_vec::<f64>()?;
        for at in 0..4 {
            let moved = |by: f64| {
                let mut values = base.clone();
                values[at] += by;
                loss(&Tensor::new(&values, [2, 2]), &x)?.item()
            };
            let expected = (moved(step)? - moved(-step)?) / (2.0 * step);
            assert!((dw[at] - expected).abs() < 1e-6, "{} {expected}", dw[at]);
        }
        let base = x.to_vec::<f64>()?;
        for at in 0..12 {
            let moved = |by: f64| {
                let mut values = base.clone();
                values[at] += by;
                loss(&w, &Tensor::new(&values, [3, 2, 2]))?.item()
            };
            let expected = (moved(step)? - moved(-step)?) / (2.0 * step);
            assert!((dx[at] - expected).abs() < 1e-6, "{} {expected}", dx[at]);
        }
        Ok(())
    });
}

#[test]
fn several_tensors_along_a_named_axis() {
    everywhere(|_| {
        let a = Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]).named(["batch", "time"]);
        let b = Tensor::from([10.0f32, 20.0]).named(["time"]);
        let first = (Tensor::zeros([("batch", 2)], DType::F32), Tensor::scalar(0));
        let ((sum, count), (seen, numbers)) =
            scan(&first, &(a, b), "time", |(sum, count), (a, b)| {
                let sum = sum + a * b;
                let count = count + 1;
                ((sum.clone(), count.clone()), (sum, count))
            })?;
        assert_eq!(sum.to_vec::<f32>()?, [50.0, 110.0]);
        assert_eq!(count.item()?, 2.0);
        assert_eq!(seen.to_vec::<f32>()?, [10.0, 30.0, 50.0, 110.0]);
        assert_eq!(numbers.to_vec::<i64>()?, [1, 2]);
        Ok(())
    });
}

#[test]
fn many_steps_with_one_compiled_body() {
    everywhere(|session| {
        let count = 3 * MAX_UNROLLED;
        let x = Tensor::arange(0, count as i64, 1);
        x.realize()?;
        let before = session.compilations().compiled;
        let (sum, all) = scan_values(&Tensor::scalar(0), &x, 0, |sum, x| {
            let sum = sum + x;
            (sum.clone(), sum)
        })?;
        let last = (count * (count - 1) / 2) as f64;
        assert_eq!(sum.item()?, last);
        assert_eq!(all.to_vec::<i64>()?[count - 1] as f64, last);
        // The body, and what the first state is made of.
        assert!(session.compilations().compiled <= before + 2);
        // A loop of the program has as many.
        let (sum, _) = scan(&Tensor::scalar(0), &x, 0, |sum, x| {
            (sum + x, Tensor::scalar(0))
        })?;
        assert_eq!(sum.item()?, last);
        // What cannot be a loop is written out, and that has its limits.
        let text = message(scan(&Tensor::scalar(0), &x, 0, |sum, x| {
            let (inner, _) = scan(sum, &x.unsqueeze(0), 0, |sum, x| (sum + x, x.clone()))
                .unwrap_or_else(|error| (Tensor::from_error(error), Tensor::scalar(0)));
            let sorted = stack(&[&inner, &inner], 0)
                .take(&Tensor::from([0i64]), 0)
                .sum(..);
            (sorted, Tensor::scalar(0))
        }));
        assert!(
            text.contains("gathers from something that depends"),
            "{text}"
        );
        Ok(())
    });
}

/// The largest power of 2 that is not larger.
fn power(x: &Tensor) -> Result<Tensor, TensorError> {
    let (power, _) = while_loop(
        &(Tensor::scalar(1), x.clone()),
        |(power, x)| (power * 2).le(x),
        |(power, x)| (power * 2, x.clone()),
    )?;
    Ok(power)
}

#[test]
fn a_loop_runs_while_its_condition_holds() {
    everywhere(|session| {
        assert_eq!(power(&Tensor::scalar(1000))?.item()?, 512.0);
        let compiled = session.compilations().compiled;
        assert_eq!(power(&Tensor::scalar(1_000_000))?.item()?, 524_288.0);
        // No step at all.
        assert_eq!(power(&Tensor::scalar(1))?.item()?, 1.0);
        assert_eq!(session.compilations().compiled, compiled);
        Ok(())
    });
}

#[test]
fn a_loop_is_traced_once_and_has_variables() {
    everywhere(|session| {
        let steps = Variable::new(&Tensor::scalar(0));
        let halve = repeat_while("halve", |x: &Tensor| x.gt(&x.ones_like()), {
            let steps = steps.clone();
            move |x| {
                let counted = steps.set(&(steps.get() + 1));
                counted.map_or_else(|error| panic!("{error}"), |()| x * 0.5)
            }
        });
        let x = Tensor::from([64.0f64]).sum(..);
        assert_eq!(halve.call(&x)?.item()?, 1.0);
        let (compiled, used) = (
            session.compilations().compiled,
            session.memory().unwrap().used,
        );
        assert_eq!(halve.call(&x)?.item()?, 1.0);
        assert_eq!(session.compilations().compiled, compiled);
        assert_eq!(session.memory().unwrap().used, used);
        assert_eq!(steps.get().item()?, 12.0);
        Ok(())
    });
}

#[test]
fn a_loop_with_a_bound_is_a_part_of_a_function() {
    everywhere(|_| {
        // Newton's method for the square root, and its slope.
        let root = jit("root", |x: &Tensor| {
            let (_, root) = repeat_at_most(
                30,
                &(x.clone(), x.clone()),
                |(x, guess)| (guess * guess - x).abs().gt(&(x * 1e-14)),
                |(x, guess)| (x.clone(), (guess + x / guess) * 0.5),
            )?;
            let [slope] = root.gradients([x]);
            Ok::<_, TensorError>((root, slope))
        });
        for x in [2.0f64, 16.0, 0.25] {
            let (found, slope) = root.call(&Tensor::from([x]).sum(..))?;
            assert!((found.item()? - x.sqrt()).abs() < 1e-12);
            assert!((slope.item()? - 0.5 / x.sqrt()).abs() < 1e-6);
        }
        // A condition that does not hold once does not hold again.
        let odd = repeat_at_most(
            10,
            &Tensor::scalar(0),
            |x| x.ne(&Tensor::scalar(3)),
            |x| x + 1,
        )?;
        assert_eq!(odd.item()?, 3.0);
        Ok(())
    });
}

#[test]
fn one_of_two() {
    everywhere(|_| {
        let pick = jit("pick", |x: &Tensor| {
            let positive = x.sum(..).gt(&Tensor::scalar(0.0));
            choose(&positive, &(x.clone(), x * 2.0), &(-x, x * 3.0))
        });
        let (a, b) = pick.call(&Tensor::from([1.0f32, 2.0]))?;
        assert_eq!(a.to_vec::<f32>()?, [1.0, 2.0]);
        assert_eq!(b.to_vec::<f32>()?, [2.0, 4.0]);
        let (a, b) = pick.call(&Tensor::from([1.0f32, -2.0]))?;
        assert_eq!(a.to_vec::<f32>()?, [-1.0, 2.0]);
        assert_eq!(b.to_vec::<f32>()?, [3.0, -6.0]);
        assert_eq!(pick.reports().len(), 1);
        Ok(())
    });
}

#[test]
fn what_is_refused() {
    let x = Tensor::from([1.0f32, 2.0]);
    let text = message(scan(&x, &x, 0, |state, _| {
        (state.sum(..), Tensor::scalar(0))
    }));
    assert_eq!(
        text,
        "`scan` of f32[2] and f32[]: what a step carries keeps its dtype and shape; tensor 0 did not"
    );
    let text = message(scan(
        &x,
        &(x.clone(), Tensor::from([1.0f32, 2.0, 3.0])),
        0,
        |state, _| (state.clone(), Tensor::scalar(0)),
    ));
    assert_eq!(text, "`scan`: one tensor has 2 steps and another 3");
    let text = message(scan(&x, &(), 0, |state, ()| {
        (state.clone(), Tensor::scalar(0))
    }));
    assert!(text.contains("there is no tensor to step along"), "{text}");
    let text = message(scan(&x, &x, 1, |state, _| {
        (state.clone(), Tensor::scalar(0))
    }));
    assert!(text.contains("`scan` of [2]: there is no axis 1"), "{text}");
    let text = message(while_loop(&x, |x| x.gt(&x.ones_like()), |x| x * 0.5));
    assert!(
        text.contains("the condition is a single bool, not bool[2]"),
        "{text}"
    );
    let text = message(while_loop(
        &x,
        |x| x.sum(..).gt(&Tensor::scalar(1.0)),
        |x| x.sum(..),
    ));
    assert!(text.contains("`while_loop` of f32[2] and f32[]"), "{text}");
    let text = message(choose(&x.sum(..), &x, &x));
    assert!(text.contains("not f32[]"), "{text}");
    // In a function that is traced, nothing is computed.
    let traced = jit("traced", |x: &Tensor| {
        while_loop(x, |x| x.sum(..).gt(&Tensor::scalar(1.0)), |x| x * 0.5)
    });
    assert_eq!(
        message(traced.call(&x)),
        "`while_loop`: it computes values, which are not known while `traced` is traced; `repeat_at_most` becomes a part of it, or call this outside of the function"
    );
    let traced = jit("traced", |x: &Tensor| {
        scan_values(x, x, 0, |state, x| (state + x, x.clone()))
    });
    assert!(message(traced.call(&x)).contains("`scan` becomes a part of it"));
}
