//! How fast to learn, step by step.

use loopwright_tensor::{DType, Scalar, Tensor, select};
use std::f64::consts::PI;

/// A learning rate as a function of the step, counted from 0. It is part of the compiled step: a rate that
/// changes compiles nothing.
///
/// In PyTorch these are `LinearLR`, `CosineAnnealingLR` (which rises again after its end, where this stays),
/// `StepLR` and `ExponentialLR`, stepped after each step of the optimiser. A warmup of `n` steps is a `LinearLR` from
/// `1 / n` to 1 in `n - 1` steps.
#[derive(Clone, PartialEq, Debug)]
pub enum Schedule {
    /// The same all the time.
    Constant(f64),
    /// From nothing to the whole of another schedule's rate in a number of steps, which then begins.
    Warmup {
        /// How many steps.
        steps: usize,
        /// What follows.
        then: Box<Schedule>,
    },
    /// Along half a wave of the cosine from one rate to another.
    Cosine {
        /// The rate at first.
        from: f64,
        /// The rate in the end, and after it.
        to: f64,
        /// How many steps it takes.
        steps: usize,
    },
    /// In a straight line from one rate to another.
    Linear {
        /// The rate at first.
        from: f64,
        /// The rate in the end, and after it.
        to: f64,
        /// How many steps it takes.
        steps: usize,
    },
    /// Multiplied by a factor every so many steps.
    Steps {
        /// The rate at first.
        from: f64,
        /// What it is multiplied by.
        factor: f64,
        /// How many steps lie between.
        every: usize,
    },
    /// Multiplied by a factor in each step.
    Exponential {
        /// The rate at first.
        from: f64,
        /// What it is multiplied by.
        factor: f64,
    },
    /// In proportion to the root of the step, downwards: the rate at first is kept for some steps.
    InverseRoot {
        /// The rate at first.
        from: f64,
        /// How many steps it is kept.
        keep: usize,
    },
}

impl From<f64> for Schedule {
    fn from(rate: f64) -> Schedule {
        Schedule::Constant(rate)
    }
}

impl Schedule {
    /// This schedule after a number of steps that lead to its first rate.
    #[must_use]
    pub fn after_warmup(self, steps: usize) -> Schedule {
        Schedule::Warmup {
            steps,
            then: Box::new(self),
        }
    }

    /// The rate at a step (`i64`, without axes), without axes, in `f32`.
    #[track_caller]
    pub fn rate(&self, step: &Tensor) -> Tensor {
        self.rate_in(DType::F32, step)
    }

    /// The rate at a step in the precision of the parameters that follow it: `f64` has another rate than `f32` from
    /// the eighth digit on, and steps beyond 2^24 that `f32` cannot count.
    #[track_caller]
    pub fn rate_in(&self, dtype: DType, step: &Tensor) -> Tensor {
        self.at(&step.cast(dtype))
    }

    #[track_caller]
    fn at(&self, step: &Tensor) -> Tensor {
        let number = |value: f64| Tensor::constant(Scalar::from_f64(step.dtype(), value));
        // How much of the way is done, from 0 to 1.
        let share = |steps: usize| (step / steps.max(1) as f64).clip(0.0, 1.0);
        match self {
            Schedule::Constant(rate) => number(*rate),
            Schedule::Warmup { steps, then } => {
                let rising = then.at(&number(0.0)) * ((step + 1.0) / (*steps).max(1) as f64);
                let passed = step.ge(&number(*steps as f64));
                select(&passed, &then.at(&(step - *steps as f64)), &rising)
            }
            Schedule::Cosine { from, to, steps } => {
                ((share(*steps) * PI).cos() + 1.0) * ((from - to) / 2.0) + *to
            }
            Schedule::Linear { from, to, steps } => share(*steps) * (to - from) + *from,
            Schedule::Steps {
                from,
                factor,
                every,
            } => {
                let times = (step / (*every).max(1) as f64).floor();
                (times * factor.ln()).exp() * *from
            }
            Schedule::Exponential { from, factor } => (step * factor.ln()).exp() * *from,
            Schedule::InverseRoot { from, keep } => {
                let keep = (*keep).max(1) as f64;
                (step.maximum(&number(keep)) / keep).rsqrt() * *from
            }
        }
    }
}
