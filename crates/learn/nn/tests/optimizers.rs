//! Optimisers against their formulas, written out in plain numbers.

use loopwright_interp as _;
use loopwright_nn::{
    Accumulate, Adam, Average, Clip, Lion, LossScale, Optimizer, Parameter, Schedule, Sgd,
    clip_by_norm,
};
use loopwright_tensor::{Tensor, TensorError, jit};
use loopwright_x86 as _;

const START: f64 = 0.8;

/// The gradient of `w³ - w`.
fn slope(w: f64) -> f64 {
    3.0 * w * w - 1.0
}

/// Where a parameter is after each of some steps down `w³ - w`, in a compiled function.
fn path(
    optimizer: impl Optimizer + Send + Sync + 'static,
    steps: usize,
) -> Result<Vec<f64>, TensorError> {
    let w = Parameter::new(&Tensor::scalar(START as f32));
    let step = jit("step", {
        let w = w.clone();
        move |_: &()| {
            let x = w.get();
            let loss = &x * &x * &x - &x;
            optimizer.step(std::slice::from_ref(&w), &loss)?;
            Ok::<_, TensorError>(loss)
        }
    });
    let mut found = Vec::new();
    for _ in 0..steps {
        step.call(&())?;
        found.push(w.get().item()?);
    }
    assert_eq!(step.reports().len(), 1);
    Ok(found)
}

/// The same by a function from the gradient, the parameter and the number of the step to the next parameter.
fn expected(steps: usize, mut next: impl FnMut(f64, f64, i32) -> f64) -> Vec<f64> {
    let mut w = START;
    let mut found = Vec::new();
    for step in 1..=steps {
        w = next(slope(w), w, step as i32);
        found.push(w);
    }
    found
}

fn agree(found: &[f64], expected: &[f64]) {
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-5, "{found} and {expected}");
    }
}

#[test]
fn gradient_descent() -> Result<(), TensorError> {
    agree(
        &path(Sgd::new(0.1), 5)?,
        &expected(5, |g, w, _| w - 0.1 * g),
    );
    let mut kept = 0.0;
    let momentum = |g: f64, w: f64, _: i32| {
        let g = g + 0.01 * w;
        kept = 0.9 * kept + g;
        w - 0.1 * kept
    };
    agree(
        &path(Sgd::new(0.1).momentum(0.9).weight_decay(0.01), 6)?,
        &expected(6, momentum),
    );
    let mut kept = 0.0;
    let nesterov = |g: f64, w: f64, _: i32| {
        kept = 0.9 * kept + g;
        w - 0.1 * (g + 0.9 * kept)
    };
    agree(
        &path(Sgd::new(0.1).momentum(0.9).nesterov(), 6)?,
        &expected(6, nesterov),
    );
    Ok(())
}

#[test]
fn adam_and_its_decay() -> Result<(), TensorError> {
    for decay in [0.0, 0.1] {
        let (mut first, mut second) = (0.0, 0.0);
        let adam = |g: f64, w: f64, n: i32| {
            first = 0.9 * first + 0.1 * g;
            second = 0.999 * second + 0.001 * g * g;
            let w = w * (1.0 - 0.05 * decay);
            let spread = f64::sqrt(second) / f64::sqrt(1.0 - 0.999f64.powi(n)) + 1e-8;
            w - 0.05 / (1.0 - 0.9f64.powi(n)) * first / spread
        };
        agree(&path(Adam::with_decay(0.05, decay), 8)?, &expected(8, adam));
    }
    Ok(())
}

#[test]
fn lion() -> Result<(), TensorError> {
    let mut mean = 0.0;
    let lion = |g: f64, w: f64, _: i32| {
        let direction: f64 = 0.9 * mean + 0.1 * g;
        let next = w - 0.01 * (direction.signum() + 0.1 * w);
        mean = 0.99 * mean + 0.01 * g;
        next
    };
    agree(&path(Lion::new(0.01, 0.1), 8)?, &expected(8, lion));
    Ok(())
}

#[test]
fn gradients_of_two_steps_make_one() -> Result<(), TensorError> {
    let mut sum = 0.0;
    let both = |g: f64, w: f64, n: i32| {
        sum += g;
        if n % 2 != 0 {
            return w;
        }
        w - 0.1 * std::mem::take(&mut sum) / 2.0
    };
    agree(
        &path(Accumulate::new(Sgd::new(0.1), 2), 6)?,
        &expected(6, both),
    );
    Ok(())
}

#[test]
fn a_step_that_overflows_is_left_out_and_the_scale_halved() -> Result<(), TensorError> {
    let w = Parameter::new(&Tensor::from([1.0f32, 2.0]));
    let optimizer = LossScale::new(Sgd::new(0.5), 1024.0);
    let step = |factor: f32| {
        let loss = (w.get() * factor).sum(..);
        optimizer.step(std::slice::from_ref(&w), &loss)
    };
    step(1.0)?;
    assert_eq!(w.get().to_vec::<f32>()?, [0.5, 1.5]);
    step(f32::MAX)?;
    assert_eq!(w.get().to_vec::<f32>()?, [0.5, 1.5]);
    assert_eq!(optimizer.scale().item()?, 512.0);
    step(1.0)?;
    assert_eq!(w.get().to_vec::<f32>()?, [0.0, 1.0]);
    Ok(())
}

#[test]
fn gradients_are_cut() -> Result<(), TensorError> {
    let gradients = [Tensor::from([3.0f32, 0.0]), Tensor::from([4.0f32])];
    let cut = clip_by_norm(&gradients, 1.0);
    let all: Vec<f32> = [cut[0].to_vec::<f32>()?, cut[1].to_vec()?].concat();
    for (found, expected) in all.iter().zip([0.6, 0.0, 0.8]) {
        assert!((found - expected).abs() < 1e-5, "{all:?}");
    }
    let small = clip_by_norm(&gradients, 10.0);
    assert_eq!(small[0].to_vec::<f32>()?, [3.0, 0.0]);
    let by_value = Clip::Value(1.0).apply(&gradients);
    assert_eq!(by_value[1].to_vec::<f32>()?, [1.0]);
    Ok(())
}

#[test]
fn schedules() -> Result<(), TensorError> {
    let at = |schedule: &Schedule, step: i64| schedule.rate(&Tensor::scalar(step)).item();
    let cosine = Schedule::Cosine {
        from: 1.0,
        to: 0.1,
        steps: 10,
    };
    let linear = Schedule::Linear {
        from: 1.0,
        to: 0.0,
        steps: 4,
    };
    let steps = Schedule::Steps {
        from: 1.0,
        factor: 0.1,
        every: 3,
    };
    let warm = Schedule::Constant(0.5).after_warmup(5);
    let inverse = Schedule::InverseRoot { from: 0.2, keep: 4 };
    let falling = Schedule::Exponential {
        from: 2.0,
        factor: 0.5,
    };
    let expected = [
        (&cosine, 0, 1.0),
        (&cosine, 5, 0.55),
        (&cosine, 99, 0.1),
        (&linear, 1, 0.75),
        (&linear, 9, 0.0),
        (&steps, 2, 1.0),
        (&steps, 3, 0.1),
        (&steps, 7, 0.01),
        (&warm, 0, 0.1),
        (&warm, 4, 0.5),
        (&warm, 7, 0.5),
        (&inverse, 2, 0.2),
        (&inverse, 16, 0.1),
        (&falling, 3, 0.25),
    ];
    for (schedule, step, rate) in expected {
        let found = at(schedule, step)?;
        assert!(
            (found - rate).abs() < 1e-6,
            "{schedule:?} at {step}: {found}"
        );
    }
    Ok(())
}

#[test]
fn an_average_follows_and_can_take_the_place() -> Result<(), TensorError> {
    let w = Parameter::new(&Tensor::scalar(0.0f32));
    let average = Average::new(std::slice::from_ref(&w), 0.5);
    w.variable().set(&Tensor::scalar(4.0f32))?;
    average.update()?;
    average.swap()?;
    assert_eq!(w.get().item()?, 2.0);
    average.swap()?;
    assert_eq!(w.get().item()?, 4.0);
    Ok(())
}
