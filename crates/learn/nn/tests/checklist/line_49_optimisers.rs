//! Optimisers against numbers computed by hand. The loss is half of the square, so that the gradient is the number itself.

use crate::{Checked, close};
use loopwright_nn::{Accumulate, Adam, Clip, Optimizer, Parameter, Schedule, Sgd};
use loopwright_tensor::{Tensor, TensorError, jit};

/// Where a parameter is after each of some steps from 1, in a compiled function.
fn path(
    optimizer: impl Optimizer + Send + Sync + 'static,
    steps: usize,
) -> Result<Tensor, TensorError> {
    let w = Parameter::new(&Tensor::scalar(1.0f32));
    let step = jit("step", {
        let w = w.clone();
        move |_: &()| {
            let loss = w.get().square() * 0.5;
            optimizer.step(std::slice::from_ref(&w), &loss)?;
            Ok::<_, TensorError>(loss)
        }
    });
    let mut found = Vec::new();
    for _ in 0..steps {
        step.call(&())?;
        found.push(w.get().item()? as f32);
    }
    Ok(Tensor::from(found))
}

#[test]
fn gradient_descent() -> Checked {
    // 1 - 0.1 * 1, 0.9 - 0.1 * 0.9, ..
    close(&path(Sgd::new(0.1), 3)?, &[0.9, 0.81, 0.729]);
    Ok(())
}

#[test]
fn momentum() -> Checked {
    // Kept: 1, 0.9 + 0.9 = 1.8, 1.62 + 0.72 = 2.34.
    close(&path(Sgd::new(0.1).momentum(0.9), 3)?, &[0.9, 0.72, 0.486]);
    Ok(())
}

#[test]
fn nesterov() -> Checked {
    // Kept 1, used 1 + 0.9; kept 0.9 + 0.81 = 1.71, used 0.81 + 1.539 = 2.349.
    let sgd = Sgd::new(0.1).momentum(0.9).nesterov();
    close(&path(sgd, 2)?, &[0.81, 0.5751]);
    Ok(())
}

#[test]
fn weight_decay() -> Checked {
    // The gradient is 1 + 0.5 * 1, then 0.85 + 0.5 * 0.85.
    close(&path(Sgd::new(0.1).weight_decay(0.5), 2)?, &[0.85, 0.7225]);
    Ok(())
}

#[test]
fn adam() -> Checked {
    // First 0.1 / 0.1 = 1 over √(0.001 / 0.001) = 1. Then 0.18 / 0.19 = 0.94737 over √(0.001809 / 0.001999) = 0.95129.
    close(&path(Adam::new(0.1), 2)?, &[0.9, 0.800_412]);
    Ok(())
}

#[test]
fn adam_with_decoupled_decay() -> Checked {
    // 1 * (1 - 0.1 * 0.5) - 0.1; then 0.85 * 0.95 less 0.1 times (0.175 / 0.19) / √(0.0017215 / 0.001999).
    close(&path(Adam::with_decay(0.1, 0.5), 2)?, &[0.85, 0.708_247]);
    Ok(())
}

#[test]
fn learning_rates_follow_schedules() -> Checked {
    // Warm-up of two steps (0.1, 0.2), then 0.2 halved after every second step.
    let rate = Schedule::Steps {
        from: 0.2,
        factor: 0.5,
        every: 2,
    };
    let expected = [0.9, 0.72, 0.576, 0.4608, 0.414_72];
    close(&path(Sgd::new(rate.after_warmup(2)), 5)?, &expected);
    // From 0.4 to 0 in four steps: 0.4, 0.3, 0.2, 0.1, 0.
    let line = Schedule::Linear {
        from: 0.4,
        to: 0.0,
        steps: 4,
    };
    close(
        &path(Sgd::new(line), 5)?,
        &[0.6, 0.42, 0.336, 0.3024, 0.3024],
    );
    // Half of a cosine: 0.4, 0.2, 0.
    let cosine = Schedule::Cosine {
        from: 0.4,
        to: 0.0,
        steps: 2,
    };
    close(&path(Sgd::new(cosine), 3)?, &[0.6, 0.48, 0.48]);
    let falling = Schedule::Exponential {
        from: 0.5,
        factor: 0.5,
    };
    close(&path(Sgd::new(falling), 3)?, &[0.5, 0.375, 0.328_125]);
    Ok(())
}

#[test]
fn gradients_are_clipped() -> Checked {
    // At 0.5 each, and together to the length 1: (3, 4) is 5 long.
    close(
        &path(Sgd::new(0.1).clip(Clip::Value(0.5)), 2)?,
        &[0.95, 0.9],
    );
    let w = Parameter::new(&Tensor::from([3.0f32, 4.0]));
    let sgd = Sgd::new(1.0).clip(Clip::Norm(1.0));
    sgd.step(std::slice::from_ref(&w), &(w.get().square().sum(..) * 0.5))?;
    close(&w.get(), &[2.4, 3.2]);
    Ok(())
}

#[test]
fn gradients_are_accumulated() -> Checked {
    // Every second step moves, by the mean of two gradients, which are equal here.
    let accumulate = Accumulate::new(Sgd::new(0.1).momentum(0.9), 2);
    close(&path(accumulate, 6)?, &[1.0, 0.9, 0.9, 0.72, 0.72, 0.486]);
    Ok(())
}
