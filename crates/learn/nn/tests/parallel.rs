//! Data parallelism: so many parts on so many streams come to the weights that one stream comes to.

use loopwright_cc as _;
use loopwright_interp as _;
use loopwright_manycore as _;
use loopwright_nn::{
    Activation, Adam, BatchNorm, Dense, Dropout, Layer, LossScale, Module, Optimizer, Sgd,
    cross_entropy, data_parallel, mean_squared_error, seed, training,
};
use loopwright_runtime::{Runtime, RuntimeOptions, Scheduler};
use loopwright_tensor::{DType, Session, Tensor, TensorError, jit, parallel, random};
use loopwright_x86 as _;
use std::num::NonZero;
use std::sync::Arc;

type Batch = (Tensor, Tensor);

#[derive(Module)]
struct Net {
    hidden: Dense,
    out: Dense,
    #[module(skip)]
    activation: Activation,
}

impl Net {
    fn new() -> Net {
        seed(5);
        Net {
            hidden: Dense::new(16),
            out: Dense::new(3),
            activation: Activation::Tanh,
        }
    }
}

impl Layer for Net {
    fn forward(&self, x: &Tensor) -> Tensor {
        let hidden = self.activation.forward(&self.hidden.forward(x));
        self.out.forward(&hidden)
    }
}

fn batch(rows: usize, at: usize) -> Batch {
    let count = (rows * 6) as i64;
    let x = (Tensor::arange(0, count, 1).cast(DType::F32) * (0.7 + at as f64 * 0.1)).sin();
    let labels: Vec<i64> = (0..rows as i64)
        .map(|row| (row * row + at as i64) % 3)
        .collect();
    let x = x.reshape([rows, 6]).to_vec::<f32>().expect("numbers");
    (Tensor::new(&x, [rows, 6]), Tensor::from(labels))
}

fn loss(net: &Net, (x, labels): &Batch) -> Tensor {
    cross_entropy(&net.forward(x), labels)
}

fn count(streams: usize) -> NonZero<usize> {
    NonZero::new(streams).expect("not zero")
}

/// Every number of a module, after one another.
fn numbers(module: &dyn Module) -> Vec<f32> {
    let entries = module.entries().into_iter();
    entries
        .flat_map(|entry| {
            let value = entry.variable().get().cast(DType::F32);
            value.to_vec::<f32>().expect("it has been trained")
        })
        .collect()
}

/// The weights after some steps, and the losses.
fn trained(
    sessions: &[Session],
    optimizer: impl Optimizer + Send + Sync + 'static,
) -> (Vec<f32>, Vec<f64>) {
    sessions[0].scope(|| {
        let net = Arc::new(Net::new());
        let step = data_parallel(sessions, &net, optimizer, loss);
        let losses = (0..20).map(|at| {
            let loss = step.call(&batch(24, at % 3)).expect("a step");
            loss.item().expect("a number")
        });
        let losses = losses.collect();
        (numbers(&*net), losses)
    })
}

fn is_near(a: &[f32], b: &[f32]) -> bool {
    a.len() == b.len()
        && a.iter()
            .zip(b)
            .all(|(a, b)| (a - b).abs() <= 1e-5 * b.abs().max(1.0))
}

#[test]
fn parts_on_streams_come_to_the_weights_of_one_stream() {
    for device in ["x86", "cc", "interp", "manycore"] {
        let one = Session::new(device).expect("the device is there");
        // One stream, without any of this.
        let (expected, losses) = one.scope(|| {
            let net = Arc::new(Net::new());
            let sgd = Sgd::new(0.2).momentum(0.9);
            let step = jit("step", {
                let net = Arc::clone(&net);
                move |batch: &Batch| {
                    let loss = training(|| loss(&net, batch));
                    sgd.step(&net.parameters(), &loss)?;
                    Ok::<_, TensorError>(loss)
                }
            });
            let losses = (0..20).map(|at| {
                let loss = step.call(&batch(24, at % 3)).expect("a step");
                loss.item().expect("a number")
            });
            let losses: Vec<f64> = losses.collect();
            (numbers(&*net), losses)
        });
        // The same batch as the first.
        assert!(losses[18] < losses[0] * 0.8, "{losses:?}");
        for streams in [1, 2, 3, 4, 8] {
            let sessions = one.streams(count(streams)).expect("streams");
            let (weights, here) = trained(&sessions, Sgd::new(0.2).momentum(0.9));
            assert!(is_near(&weights, &expected), "{device}, {streams} streams");
            for (a, b) in here.iter().zip(&losses) {
                assert!((a - b).abs() < 1e-5, "{device}, {streams} streams: {a} {b}");
            }
        }
    }
}

#[test]
fn the_order_of_work_does_not_matter() {
    let run = |scheduler| {
        let runtime = Runtime::new(RuntimeOptions {
            scheduler: Some(scheduler),
            ..RuntimeOptions::default()
        });
        let device = runtime.device("x86").expect("the device is there");
        let one = Session::on(&device).expect("a stream");
        trained(&one.streams(count(4)).expect("streams"), Adam::new(1e-2))
    };
    let sync = run(Scheduler::Sync);
    for _ in 0..5 {
        assert_eq!(run(Scheduler::Threads), sync);
    }
}

#[test]
fn devices_of_a_runtime_work_together() {
    let runtime = Runtime::new(RuntimeOptions {
        devices: count(3),
        ..RuntimeOptions::default()
    });
    let on = |name: &str| Session::on(&runtime.device(name).expect("a device")).expect("a stream");
    let sessions = [on("x86:0"), on("x86:1"), on("interp"), on("x86:2")];
    let (weights, _) = trained(&sessions, Sgd::new(0.2));
    let (expected, _) = trained(&sessions[..1], Sgd::new(0.2));
    assert!(is_near(&weights, &expected));
}

#[test]
fn steps_after_the_first_compile_and_allocate_nothing() {
    let one = Session::new("x86").expect("the device is there");
    let sessions = one.streams(count(4)).expect("streams");
    one.scope(|| {
        let net = Arc::new(Net::new());
        let step = data_parallel(&sessions, &net, Sgd::new(0.1).momentum(0.5), loss);
        let batch = batch(24, 0);
        let call = || step.call(&batch).expect("a step").item().expect("a number");
        call();
        call();
        let used = || {
            for session in &sessions {
                session.wait().expect("nothing has failed");
            }
            one.device().memory().used
        };
        let before = (one.compilations(), used());
        for _ in 0..10 {
            call();
        }
        let after = (one.compilations(), used());
        assert_eq!(before.0.compiled, after.0.compiled);
        assert_eq!(before.1, after.1);
    });
}

#[test]
fn streams_share_what_is_compiled() {
    let programs = |streams: usize| {
        let one = Session::new("x86").expect("the device is there");
        let sessions = one.streams(count(streams)).expect("streams");
        trained(&sessions, Sgd::new(0.1));
        one.compilations().compiled
    };
    assert_eq!(programs(2), programs(8));
}

#[test]
fn seeds_differ_from_part_to_part() {
    let one = Session::new("x86").expect("the device is there");
    let sessions = one.streams(count(4)).expect("streams");
    let generator = random::Generator::new(7);
    seed(1);
    let dropout = Arc::new(Dropout::new(0.5));
    let counter = dropout.count.variable().clone();
    let draw = parallel(
        "draw",
        &sessions,
        {
            let dropout = Arc::clone(&dropout);
            move |x: &Tensor| {
                // Each part stands in its own rows of the sum.
                let number = loopwright_tensor::shard().expect("it works on parts");
                let row = Tensor::arange(0, 4, 1).cast(DType::U64).eq(&number);
                let row = row.cast(DType::F32).unsqueeze(1);
                let drawn = random::uniform(&generator.key(), [1, 64], DType::F32);
                let kept = training(|| dropout.forward(&x.sum(0).unsqueeze(0)));
                Ok(vec![&row * drawn, &row * kept])
            }
        },
        |sums: &[Tensor]| sums.to_vec(),
    );
    let x = Tensor::new(&[1.0f32; 4 * 64], [4, 64]);
    let call = || -> Vec<Vec<f32>> {
        let sums = one.scope(|| draw.call(&x)).expect("numbers");
        let rows = sums.iter().flat_map(|sum| {
            let values = sum.to_vec::<f32>().expect("numbers");
            values.chunks(64).map(<[f32]>::to_vec).collect::<Vec<_>>()
        });
        rows.collect()
    };
    let (first, second) = (call(), call());
    for rows in [&first, &second] {
        for a in 0..8 {
            for b in 0..a {
                assert_ne!(rows[a], rows[b], "parts {b} and {a}");
            }
        }
    }
    assert_ne!(first, second);
    // However many parts there are, it was used once in each call.
    assert_eq!(counter.get().item().expect("a number"), 2.0);
}

#[test]
fn running_statistics_are_those_of_the_first_part() {
    #[derive(Module)]
    struct Normed {
        norm: BatchNorm,
        out: Dense,
    }
    let one = Session::new("x86").expect("the device is there");
    let running = |sessions: &[Session], x: &Tensor| {
        one.scope(|| {
            seed(2);
            let net = Arc::new(Normed {
                norm: BatchNorm::new(),
                out: Dense::new(1),
            });
            let step = data_parallel(sessions, &net, Sgd::new(0.0), |net: &Normed, x: &Tensor| {
                net.out.forward(&net.norm.forward(x)).square().mean(..)
            });
            step.call(x).expect("a step");
            numbers(&net.norm)
        })
    };
    let (x, _) = batch(8, 1);
    let first = x.narrow(0, 0, 4);
    let sessions = one.streams(count(2)).expect("streams");
    assert_eq!(running(&sessions, &x), running(&sessions[..1], &first));
}

#[test]
fn losses_are_scaled_for_narrow_floats() {
    let one = Session::new("x86").expect("the device is there");
    let sessions = one.streams(count(2)).expect("streams");
    let scaled = trained(&sessions, LossScale::new(Sgd::new(0.1), 1024.0));
    let plain = trained(&sessions[..1], Sgd::new(0.1));
    assert!(is_near(&scaled.0, &plain.0));
}

#[test]
fn mistakes_are_named() {
    let one = Session::new("x86").expect("the device is there");
    let sessions = one.streams(count(3)).expect("streams");
    let net = Arc::new(Net::new());
    let step = data_parallel(&sessions, &net, Sgd::new(0.1), loss);
    let error = step.call(&batch(8, 0)).expect_err("8 rows for 3 streams");
    let text = error.to_string();
    assert!(
        text.starts_with("`step`: the first axis of [8, 6] cannot be cut into 3 equal parts, one for each stream\n"),
        "{text}"
    );
    assert!(text.contains("parallel.rs"), "{text}");

    let none = data_parallel(&[], &net, Sgd::new(0.1), loss);
    let text = none.call(&batch(6, 0)).expect_err("no stream").to_string();
    assert!(text.contains("there is no session to work on"), "{text}");

    let inner = Arc::new(step);
    let outer = jit("outer", move |batch: &Batch| inner.call(batch));
    let text = outer
        .call(&batch(6, 0))
        .expect_err("in a trace")
        .to_string();
    assert!(text.contains("`outer`, which is traced, has one"), "{text}");

    // A network whose input nobody described yet, and a loss with no gradient.
    let whole = data_parallel(
        &sessions,
        &net,
        Sgd::new(0.1),
        |net: &Net, (x, _): &Batch| net.forward(x).argmax(1).cast(DType::F32).mean(..),
    );
    whole.call(&batch(6, 0)).expect("all gradients are zero");
    let wrong = data_parallel(
        &sessions,
        &net,
        Sgd::new(0.1),
        |net: &Net, (x, y): &Batch| mean_squared_error(&net.forward(x), y),
    );
    assert!(wrong.call(&batch(6, 0)).is_err());

    // Sessions that know nothing of each other.
    let strangers = [one, Session::new("x86").expect("the device is there")];
    let step = data_parallel(&strangers, &net, Sgd::new(0.1), loss);
    let text = step
        .call(&batch(6, 0))
        .expect_err("two runtimes")
        .to_string();
    assert!(text.contains("runtime"), "{text}");
}
