//! Compiled functions: what is traced and compiled when, variables in place, and results that stay.

use loopwright_cc as _;
use loopwright_interp as _;
use loopwright_runtime::{Runtime, RuntimeOptions};
use loopwright_tensor::{
    DType, ErrorKind, Jit, Session, Tensor, TensorError, Variable, assign, jit,
};
use loopwright_x86 as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Runs a test on a new session of every backend that works here.
fn everywhere(test: impl Fn(&Session) -> Result<(), TensorError>) {
    let platforms = Runtime::new(RuntimeOptions::default()).platforms();
    let mut tested = 0;
    for platform in platforms {
        if platform.unavailable.is_some() {
            continue;
        }
        let session = Session::new(&platform.name).unwrap();
        session.scope(|| test(&session).unwrap_or_else(|error| panic!("{session:?}: {error}")));
        tested += 1;
    }
    assert!(tested >= 2);
}

fn message<T>(outcome: Result<T, TensorError>) -> String {
    match outcome {
        Ok(_) => panic!("it went well"),
        Err(error) => error.kind().to_string(),
    }
}

#[test]
fn traced_and_compiled_once_for_shapes_and_dtypes() {
    everywhere(|session| {
        let traces = Arc::new(AtomicUsize::new(0));
        let double = jit("double", {
            let traces = Arc::clone(&traces);
            move |x: &Tensor| {
                traces.fetch_add(1, Ordering::Relaxed);
                x + x
            }
        });
        let x = Tensor::from([1.0f32, 2.0]);
        assert_eq!(double.call(&x)?.to_vec::<f32>()?, [2.0, 4.0]);
        let compiled = session.compilations().compiled;
        for _ in 0..5 {
            let x = Tensor::from([3.0f32, 5.0]);
            assert_eq!(double.call(&x)?.to_vec::<f32>()?, [6.0, 10.0]);
        }
        assert_eq!(session.compilations().compiled, compiled);
        assert_eq!(traces.load(Ordering::Relaxed), 1);
        double.call(&Tensor::from([1.0f32, 2.0, 3.0]))?;
        double.call(&Tensor::from([1.0f64, 2.0]))?;
        double.call(&x.named(["i"]))?;
        // All of them are still known.
        double.call(&x)?;
        double.call(&Tensor::from([1.0f32, 2.0, 3.0]))?;
        let reasons: Vec<String> = double
            .reports()
            .into_iter()
            .map(|report| report.reason)
            .collect();
        assert_eq!(
            reasons,
            [
                "the first call",
                "argument 0 is f32[3], and was f32[2]",
                "argument 0 is f64[2], and was f32[3]",
                "argument 0 is f32[i 2], and was f64[2]",
            ]
        );
        assert_eq!(traces.load(Ordering::Relaxed), 4);
        Ok(())
    });
}

#[test]
fn every_reason_for_another_trace() {
    let sum = jit("sum", |x: &Vec<Tensor>| {
        x.iter().fold(Tensor::scalar(0.0), |sum, x| sum + x.sum(..))
    });
    let (first, second) = (
        Session::new("interp").unwrap(),
        Session::new("x86").unwrap(),
    );
    let one = Tensor::from([1.0f32]);
    first.scope(|| sum.call(&vec![one.clone()])).unwrap();
    first
        .scope(|| sum.call(&vec![one.clone(), one.clone()]))
        .unwrap();
    second.scope(|| sum.call(&vec![one.clone()])).unwrap();
    first.scope(|| sum.call(&vec![one.clone()])).unwrap();
    let reports = sum.reports();
    let reasons: Vec<&str> = reports
        .iter()
        .map(|report| report.reason.as_str())
        .collect();
    let device = second.device().name();
    assert_eq!(
        reasons,
        [
            "the first call",
            "2 tensors in place of 1",
            &format!("the first call on {device}")
        ]
    );
}

#[test]
fn a_second_function_of_the_same_formula_compiles_nothing() {
    everywhere(|session| {
        let make = || jit("cube", |x: &Tensor| x * x * x);
        let x = Tensor::from([2.0f32]);
        make().call(&x)?;
        let before = session.compilations();
        assert_eq!(make().call(&x)?.to_vec::<f32>()?, [8.0]);
        let after = session.compilations();
        assert_eq!(
            (after.compiled, after.reused),
            (before.compiled, before.reused + 1)
        );
        Ok(())
    });
}

/// A function that adds its argument to a variable and gives the variable's sum.
fn adding(total: &Variable) -> Jit<Tensor, Result<Tensor, TensorError>> {
    let total = total.clone();
    jit("add", move |x: &Tensor| {
        let sum = total.get() + x;
        total.set(&sum)?;
        Ok(sum.sum(..))
    })
}

#[test]
fn variables_are_updated_in_place() {
    everywhere(|session| {
        let total = Variable::new(&Tensor::from([0.0f32, 10.0]));
        let add = adding(&total);
        let x = Tensor::from([1.0f32, 2.0]);
        add.call(&x)?;
        let used = session.memory().unwrap();
        for _ in 0..10 {
            add.call(&x)?;
        }
        let now = session.memory().unwrap();
        assert_eq!(
            (now.used, now.pools, now.peak),
            (used.used, used.pools, used.peak)
        );
        assert_eq!(total.get().to_vec::<f32>()?, [11.0, 32.0]);
        let report = &add.reports()[0];
        assert_eq!((report.variables, report.updates), (1, 1));
        Ok(())
    });
}

#[test]
fn a_snapshot_stays_what_it_was() {
    everywhere(|_| {
        let total = Variable::new(&Tensor::from([0.0f32, 0.0]));
        let add = adding(&total);
        let x = Tensor::from([1.0f32, 2.0]);
        let before = total.get();
        add.call(&x)?;
        let between = total.get();
        let formula = total.get() * 2.0;
        add.call(&x)?;
        add.call(&x)?;
        assert_eq!(before.to_vec::<f32>()?, [0.0, 0.0]);
        assert_eq!(between.to_vec::<f32>()?, [1.0, 2.0]);
        assert_eq!(formula.to_vec::<f32>()?, [2.0, 4.0]);
        assert_eq!(total.get().to_vec::<f32>()?, [3.0, 6.0]);
        Ok(())
    });
}

#[test]
fn several_functions_share_a_variable() {
    everywhere(|session| {
        let total = Variable::new(&Tensor::from([1.0f32]));
        let add = adding(&total);
        let double = jit("double", {
            let total = total.clone();
            move |(): &()| {
                total.set(&(total.get() * 2.0))?;
                Ok::<_, TensorError>(())
            }
        });
        let read = jit("read", {
            let total = total.clone();
            move |(): &()| total.get() + 0.5
        });
        let x = Tensor::from([1.0f32]);
        let round = || {
            add.call(&x)?;
            double.call(&())?;
            read.call(&())?.item()
        };
        assert_eq!(round()?, 4.5);
        let used = session.memory().unwrap().used;
        assert_eq!(round()?, 10.5);
        assert_eq!(round()?, 22.5);
        assert_eq!(session.memory().unwrap().used, used);
        Ok(())
    });
}

#[test]
fn a_variable_set_between_calls() {
    everywhere(|session| {
        let total = Variable::new(&Tensor::from([0.0f32, 0.0]));
        let add = adding(&total);
        let x = Tensor::from([1.0f32, 2.0]);
        assert_eq!(add.call(&x)?.item()?, 3.0);
        let (compiled, used) = (
            session.compilations().compiled,
            session.memory().unwrap().used,
        );
        for _ in 0..3 {
            total.set(&Tensor::from([10.0f32, 20.0]))?;
            assert_eq!(add.call(&x)?.item()?, 33.0);
            assert_eq!(add.call(&x)?.item()?, 36.0);
        }
        assert_eq!(add.reports().len(), 1);
        assert_eq!(session.compilations().compiled, compiled);
        assert_eq!(session.memory().unwrap().used, used);
        // A value of its own results.
        let sum = add.call(&x)?;
        total.set(&(total.get() * 0.0 + &sum))?;
        assert_eq!(add.call(&x)?.item()?, 2.0 * 39.0 + 3.0);
        Ok(())
    });
}

#[test]
fn variables_swap_and_take_each_other() {
    everywhere(|_| {
        let (a, b) = (
            Variable::new(&Tensor::from([1.0f32, 2.0])),
            Variable::new(&Tensor::from([3.0f32, 4.0])),
        );
        let swap = jit("swap", {
            let (a, b) = (a.clone(), b.clone());
            move |(): &()| {
                let (old_a, old_b) = (a.get(), b.get());
                assign(&[(&a, old_b), (&b, old_a)])
            }
        });
        swap.call(&())?;
        assert_eq!(a.get().to_vec::<f32>()?, [3.0, 4.0]);
        assert_eq!(b.get().to_vec::<f32>()?, [1.0, 2.0]);
        swap.call(&())?;
        assert_eq!(a.get().to_vec::<f32>()?, [1.0, 2.0]);
        // Outside of a function, too.
        assign(&[(&a, b.get()), (&b, a.get())])?;
        assert_eq!(a.get().to_vec::<f32>()?, [3.0, 4.0]);
        assert_eq!(b.get().to_vec::<f32>()?, [1.0, 2.0]);
        // Both now have the same value, and change on their own.
        a.set(&b.get())?;
        let add = adding(&a);
        add.call(&Tensor::from([1.0f32, 1.0]))?;
        assert_eq!(a.get().to_vec::<f32>()?, [2.0, 3.0]);
        assert_eq!(b.get().to_vec::<f32>()?, [1.0, 2.0]);
        Ok(())
    });
}

#[test]
fn the_last_of_two_settings_counts() {
    everywhere(|_| {
        let v = Variable::new(&Tensor::from([1.0f32]));
        let twice = jit("twice", {
            let v = v.clone();
            move |x: &Tensor| {
                let first = v.get();
                v.set(&(v.get() + x))?;
                let second = v.get();
                v.set(&(v.get() * 10.0))?;
                Ok::<_, TensorError>((first, second, v.get()))
            }
        });
        let x = Tensor::from([1.0f32]);
        let (first, second, third) = twice.call(&x)?;
        assert_eq!(
            [first.item()?, second.item()?, third.item()?],
            [1.0, 2.0, 20.0]
        );
        assert_eq!(v.get().item()?, 20.0);
        // Set to what it was: nothing is updated.
        let still = jit("still", {
            let v = v.clone();
            move |(): &()| {
                let old = v.get();
                v.set(&(v.get() + 1.0))?;
                v.set(&old)?;
                Ok::<_, TensorError>(v.get() * 1.0)
            }
        });
        assert_eq!(still.call(&())?.item()?, 20.0);
        assert_eq!(still.reports()[0].updates, 0);
        Ok(())
    });
}

#[test]
fn results_that_are_held_stay_what_they_were() {
    everywhere(|session| {
        let step = jit("step", |x: &Tensor| (x * 2.0, x.sum(..)));
        let mut held = Vec::new();
        let mut used = Vec::new();
        for at in 0..12 {
            held.push(step.call(&Tensor::from([at as f32, 1.0]))?);
            used.push(session.memory().unwrap().used);
        }
        for (at, (double, sum)) in held.iter().enumerate() {
            assert_eq!(double.to_vec::<f32>()?, [2.0 * at as f32, 2.0]);
            assert_eq!(sum.item()?, at as f64 + 1.0);
        }
        // A held result takes its own memory, and not that of a whole routine.
        let grown: Vec<usize> = used.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(grown[2..].iter().all(|grown| *grown <= 512), "{grown:?}");
        assert_eq!(step.reports().len(), 1);
        Ok(())
    });
}

#[test]
fn large_results_that_are_held() {
    everywhere(|_| {
        let step = jit("step", |x: &Tensor| (x * 2.0, x + 1.0));
        let mut held = Vec::new();
        for at in 0..5 {
            let x = Tensor::full([40_000], at as f32, DType::F32);
            let (double, more) = step.call(&x)?;
            // What is made of a result is computed later.
            held.push((double.at(39_999), more.at(0), double));
        }
        for (at, (double, more, _)) in held.iter().enumerate() {
            assert_eq!(double.item()?, 2.0 * at as f64);
            assert_eq!(more.item()?, at as f64 + 1.0);
        }
        Ok(())
    });
}

#[test]
fn a_result_as_an_argument_and_captured() {
    everywhere(|_| {
        let step = jit("step", |x: &Tensor| x * 2.0);
        let mut x = Tensor::from([1.0f32, 3.0]);
        for _ in 0..6 {
            x = step.call(&x)?;
        }
        assert_eq!(x.to_vec::<f32>()?, [64.0, 192.0]);
        // Another function is linked to a result, and the first one is called again.
        let result = step.call(&Tensor::from([1.0f32, 1.0]))?;
        let plus = jit("plus", move |x: &Tensor| x + &result);
        for at in 0..4 {
            let other = step.call(&Tensor::from([9.0f32, 9.0]))?;
            let sum = plus.call(&Tensor::from([at as f32, 0.0]))?;
            assert_eq!(sum.to_vec::<f32>()?, [at as f32 + 2.0, 2.0]);
            assert_eq!(other.to_vec::<f32>()?, [18.0, 18.0]);
        }
        Ok(())
    });
}

#[test]
fn captured_tensors_constants_and_arguments_as_results() {
    everywhere(|_| {
        let table = Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]);
        // One that has no value yet.
        let lazy = &table * 10.0;
        let unused = AtomicUsize::new(0);
        let look = jit("look", {
            let table = table.clone();
            move |(x, _not_used): &(Tensor, Tensor)| {
                unused.fetch_add(1, Ordering::Relaxed);
                let rows = table.take(x, 0) + lazy.take(x, 0);
                vec![
                    rows,
                    table.clone(),
                    x.clone(),
                    x.clone(),
                    Tensor::scalar(7.0),
                ]
            }
        });
        for at in [1i64, 0] {
            let not_used = Tensor::from([0.0f32; 3]);
            let results = look.call(&(Tensor::from([at]), not_used))?;
            let row = [11.0 + 22.0 * at as f32, 22.0 + 22.0 * at as f32];
            assert_eq!(results[0].to_vec::<f32>()?, row);
            assert_eq!(results[1].to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
            assert_eq!(results[2].to_vec::<i64>()?, [at]);
            assert_eq!(results[3].to_vec::<i64>()?, [at]);
            assert_eq!(results[4].item()?, 7.0);
        }
        assert_eq!(look.reports().len(), 1);
        Ok(())
    });
}

#[test]
fn a_function_in_a_function_becomes_a_part_of_it() {
    everywhere(|session| {
        let total = Variable::new(&Tensor::from([0.0f32]));
        let inner = Arc::new(adding(&total));
        let outer = jit("outer", {
            let inner = Arc::clone(&inner);
            move |x: &Tensor| {
                let once = inner.call(x)?;
                Ok::<_, TensorError>(once + inner.call(&(x * 10.0))?)
            }
        });
        let before = session.compilations().compiled;
        assert_eq!(outer.call(&Tensor::from([1.0f32]))?.item()?, 12.0);
        assert_eq!(outer.call(&Tensor::from([1.0f32]))?.item()?, 12.0 + 22.0);
        assert_eq!(total.get().item()?, 22.0);
        assert_eq!(inner.reports().len(), 0);
        assert_eq!(outer.reports()[0].updates, 1);
        // One for the function, one for the variable's first value.
        assert!(session.compilations().compiled <= before + 2);
        Ok(())
    });
}

#[test]
fn gradients_and_steps_in_a_function() {
    everywhere(|_| {
        let w = Variable::new(&Tensor::from([0.0f64, 0.0]));
        let step = jit("step", {
            let w = w.clone();
            move |(x, y): &(Tensor, Tensor)| {
                let now = w.get();
                let loss = (x.matmul(&now) - y).square().mean(..);
                let [gradient] = loss.gradients([&now]);
                w.set(&(now - gradient * 0.1))?;
                Ok::<_, TensorError>(loss)
            }
        });
        let x = Tensor::from([[1.0f64, 2.0], [2.0, -1.0], [0.5, 1.5]]);
        let y = x.matmul(&Tensor::from([3.0f64, -2.0]));
        let mut losses = Vec::new();
        for _ in 0..60 {
            losses.push(step.call(&(x.clone(), y.clone()))?.item()?);
        }
        assert!(
            losses.windows(2).all(|pair| pair[1] < pair[0]),
            "{losses:?}"
        );
        assert!(losses[59] < 1e-3, "{losses:?}");
        Ok(())
    });
}

#[test]
fn mistakes_come_out_and_leave_the_function_usable() {
    everywhere(|_| {
        let v = Variable::new(&Tensor::from([1.0f32]));
        let function = jit("half", {
            let v = v.clone();
            move |x: &Tensor| {
                v.set(&(v.get() + 1.0))?;
                x.reshape([2, 2]).check()?;
                Ok::<_, TensorError>(x.sum(..))
            }
        });
        let text = message(function.call(&Tensor::from([1.0f32, 2.0, 3.0])));
        assert!(text.contains("`reshape` of [3] and [2, 2]"), "{text}");
        // Nothing was set, and nothing is traced any more.
        assert_eq!(v.get().item()?, 1.0);
        assert_eq!(function.call(&Tensor::from([1.0f32; 4]))?.item()?, 4.0);
        assert_eq!(v.get().item()?, 2.0);
        // A result that cannot be.
        let wrong = jit("wrong", |x: &Tensor| x + Tensor::from([1.0f32, 2.0]));
        let text = message(wrong.call(&Tensor::from([1.0f32, 2.0, 3.0])));
        assert!(text.contains("`add` of [3] and [2]"), "{text}");
        // Nothing to do.
        let nothing = jit("nothing", |_: &Tensor| Ok::<_, TensorError>(()));
        let text = message(nothing.call(&Tensor::from([1.0f32])));
        assert_eq!(
            text,
            "`nothing`: the function gives nothing and sets no variable"
        );
        // An argument that cannot be.
        let double = jit("double", |x: &Tensor| x + x);
        let cannot = Tensor::from([1.0f32]).sum(3);
        assert!(message(double.call(&cannot)).contains("there is no axis 3"));
        Ok(())
    });
}

#[test]
fn a_value_that_is_asked_for_while_tracing() {
    everywhere(|_| {
        let v = Variable::new(&Tensor::from([1.0f32]));
        let ask = jit("ask", {
            let v = v.clone();
            move |x: &Tensor| match (x + v.get()).item()? > 0.0 {
                true => Ok(x.clone()),
                false => Ok(-x),
            }
        });
        let outcome = ask.call(&Tensor::from([1.0f32]));
        let error = outcome.expect_err("the value is not known");
        assert!(matches!(error.kind(), ErrorKind::Traced { function } if function == "ask"));
        assert!(
            error
                .kind()
                .to_string()
                .contains("use `select`, `scan` or `while_loop`")
        );
        assert!(error.place().file().ends_with("functions.rs"));
        // What does not depend on arguments has a value.
        let table = Tensor::from([1.0f32, 2.0]);
        let known = jit("known", move |x: &Tensor| {
            Ok::<_, TensorError>(x * table.sum(..).item()?)
        });
        assert_eq!(known.call(&Tensor::from([2.0f32]))?.item()?, 6.0);
        Ok(())
    });
}

#[test]
fn a_tensor_of_a_trace_is_of_no_use_outside() {
    everywhere(|_| {
        let leaked: Arc<Mutex<Vec<Tensor>>> = Arc::default();
        let v = Variable::new(&Tensor::from([1.0f32]));
        let leak = jit("leak", {
            let (leaked, v) = (Arc::clone(&leaked), v.clone());
            move |x: &Tensor| {
                leaked.lock().unwrap().extend([x.clone(), v.get()]);
                x + v.get()
            }
        });
        let x = Tensor::from([1.0f32]);
        leak.call(&x)?;
        for tensor in leaked.lock().unwrap().clone() {
            assert!(matches!(
                tensor.item().err().map(|error| error.kind().to_string()),
                Some(text) if text.contains("was traced")
            ));
            let other = jit("other", move |x: &Tensor| x + &tensor);
            let text = message(other.call(&x));
            assert!(
                text.contains("made while another function was traced"),
                "{text}"
            );
        }
        Ok(())
    });
}

#[test]
fn a_panic_leaves_the_thread_usable() {
    everywhere(|_| {
        let armed = Arc::new(AtomicUsize::new(1));
        let function = jit("function", {
            let armed = Arc::clone(&armed);
            move |x: &Tensor| {
                assert_eq!(armed.load(Ordering::Relaxed), 0, "as it is meant to be");
                x + 1.0
            }
        });
        let x = Tensor::from([1.0f32]);
        let call = std::panic::AssertUnwindSafe(|| function.call(&x));
        assert!(std::panic::catch_unwind(call).is_err());
        // Values can be asked for, and the function can be called.
        assert_eq!((&x + 2.0).item()?, 3.0);
        armed.store(0, Ordering::Relaxed);
        assert_eq!(function.call(&x)?.item()?, 2.0);
        Ok(())
    });
}

#[test]
fn several_threads_call_at_once() {
    everywhere(|session| {
        let total = Variable::new(&Tensor::from([0.0f64]));
        let (add, other) = (adding(&total), adding(&total));
        let pure = jit("pure", |x: &Tensor| (x * 3.0, x.sum(..)));
        let (threads, rounds) = (4, 25);
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let (add, other, pure, total) = (&add, &other, &pure, &total);
                scope.spawn(move || {
                    session.scope(|| {
                        let mut held = Vec::new();
                        for round in 0..rounds {
                            let add = if thread % 2 == 0 { add } else { other };
                            add.call(&Tensor::from([1.0f64])).unwrap();
                            let x = (thread * rounds + round) as f64;
                            held.push((x, pure.call(&Tensor::from([x])).unwrap(), total.get()));
                        }
                        let mut last = 0.0;
                        for (x, (triple, sum), seen) in &held {
                            assert_eq!(triple.item().unwrap(), 3.0 * x);
                            assert_eq!(sum.item().unwrap(), *x);
                            let seen = seen.item().unwrap();
                            assert!(seen > last, "{seen} behind {last}");
                            last = seen;
                        }
                    });
                });
            }
        });
        assert_eq!(total.get().item()?, (threads * rounds) as f64);
        Ok(())
    });
}

#[test]
fn numbers_as_arguments_are_not_programs() {
    everywhere(|session| {
        let scale = jit("scale", |(x, by): &(Tensor, Tensor)| x * by);
        let x = Tensor::from([1.0f32, 2.0]);
        let mut compiled = None;
        for by in [0.5, 0.25, 2.0] {
            let scaled = scale.call(&(x.clone(), Tensor::scalar(by)))?;
            assert_eq!(scaled.to_vec::<f32>()?, [by as f32, 2.0 * by as f32]);
            let now = session.compilations().compiled;
            assert_eq!(*compiled.get_or_insert(now), now);
        }
        // One that has a value is still a number in a formula.
        let half = Tensor::scalar(0.5);
        half.realize()?;
        let product = jit("product", move |x: &Tensor| x * &half);
        assert_eq!(product.call(&x)?.to_vec::<f32>()?, [0.5, 1.0]);
        Ok(())
    });
}
