//! Optimisers: how parameters follow gradients.
//!
//! All of them work in functions that are compiled: moments and counters are variables, which are updated
//! in place with the parameters. The formulas are PyTorch's, so that a run there can be followed here.

use crate::module::{Entry, Module, Parameter, Part, State};
use crate::schedule::Schedule;
use loopwright_tensor::{DType, Scalar, Tensor, TensorError, Variable, VariableId, assign, select};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// What changes parameters by gradients.
pub trait Optimizer {
    /// Changes parameters by their gradients, given in the same order.
    ///
    /// # Errors
    /// What is wrong with the gradients.
    fn apply(&self, parameters: &[Parameter], gradients: &[Tensor]) -> Result<(), TensorError>;

    /// The loss as gradients are to be taken of it, for [`apply`](Optimizer::apply).
    #[track_caller]
    fn scaled(&self, loss: &Tensor) -> Tensor {
        loss.clone()
    }

    /// Changes parameters by the gradients of a loss.
    ///
    /// # Errors
    /// What is wrong with the loss, or has no gradient.
    #[track_caller]
    fn step(&self, parameters: &[Parameter], loss: &Tensor) -> Result<(), TensorError> {
        self.apply(parameters, &gradients(parameters, &self.scaled(loss)))
    }

    /// The variables that it keeps itself for these parameters, by name; made now if there are none yet.
    fn variables(&self, parameters: &[(String, Parameter)]) -> Vec<(String, Variable)>;
}

impl<O: Optimizer + ?Sized> Optimizer for Arc<O> {
    #[track_caller]
    fn apply(&self, parameters: &[Parameter], gradients: &[Tensor]) -> Result<(), TensorError> {
        (**self).apply(parameters, gradients)
    }

    #[track_caller]
    fn scaled(&self, loss: &Tensor) -> Tensor {
        (**self).scaled(loss)
    }

    fn variables(&self, parameters: &[(String, Parameter)]) -> Vec<(String, Variable)> {
        (**self).variables(parameters)
    }
}

/// The gradients of a loss with respect to parameters.
#[track_caller]
pub fn gradients(parameters: &[Parameter], loss: &Tensor) -> Vec<Tensor> {
    let values: Vec<Tensor> = parameters.iter().map(Parameter::get).collect();
    loss.gradients_of(&values.iter().collect::<Vec<_>>())
}

/// Gradients with the parameters that they belong to.
pub type Gradients = Vec<Tensor>;

/// The state of an optimiser for a module, as entries that can be saved beside the module's own.
pub fn state_of(optimizer: &dyn Optimizer, module: &dyn Module) -> Vec<Entry> {
    let parameters = module
        .entries()
        .into_iter()
        .filter_map(|entry| match entry.part {
            Part::Parameter(parameter) => Some((entry.name, parameter)),
            Part::State(_) => None,
        });
    let parameters: Vec<(String, Parameter)> = parameters.collect();
    let variables = optimizer.variables(&parameters).into_iter();
    variables
        .map(|(name, variable)| Entry {
            name,
            part: Part::State(State::of(variable)),
        })
        .collect()
}

/// Gradients cut off at a bound in either direction.
#[track_caller]
pub fn clip_by_value(gradients: &[Tensor], bound: f64) -> Gradients {
    gradients
        .iter()
        .map(|gradient| gradient.clip(-bound, bound))
        .collect()
}

/// Gradients scaled down together where their length as one vector is above a bound, as by PyTorch's
/// `clip_grad_norm_`: 1e-6 is added to the length.
#[track_caller]
pub fn clip_by_norm(gradients: &[Tensor], bound: f64) -> Gradients {
    let Some(total) = squares(gradients) else {
        return Vec::new();
    };
    let factor = (bound / (total.sqrt() + 1e-6)).minimum(1.0);
    gradients
        .iter()
        .map(|gradient| gradient * factor.cast(gradient.dtype()))
        .collect()
}

/// The sum of all squares, in the precision that [`precision`] gives.
#[track_caller]
fn squares(gradients: &[Tensor]) -> Option<Tensor> {
    let dtype = precision(gradients);
    let squares = gradients
        .iter()
        .map(|gradient| gradient.cast(dtype).square().sum(..));
    squares.reduce(|a, b| a + b)
}

/// The dtype of what a step computes once for all parameters: `f64` where one of the tensors has it. All other runs
/// stay within `f32`, which every device has.
fn precision(tensors: &[Tensor]) -> DType {
    match tensors.iter().any(|tensor| tensor.dtype() == DType::F64) {
        true => DType::F64,
        false => DType::F32,
    }
}

/// How gradients are cut before they are used.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Clip {
    /// Each number at a bound.
    Value(f64),
    /// All together, by their length as one vector.
    Norm(f64),
}

impl Clip {
    /// The gradients, cut.
    #[track_caller]
    pub fn apply(self, gradients: &[Tensor]) -> Gradients {
        match self {
            Clip::Value(bound) => clip_by_value(gradients, bound),
            Clip::Norm(bound) => clip_by_norm(gradients, bound),
        }
    }
}

/// The moments that an optimiser keeps for each parameter, and its count of steps.
struct Moments {
    names: &'static [&'static str],
    kept: Mutex<HashMap<VariableId, Vec<Variable>>>,
    count: Variable,
}

/// A step that has begun.
struct Begun {
    /// Which one it is, from 1 (`i64`).
    number: Tensor,
    rate: Tensor,
    /// Cut, if they are to be.
    gradients: Gradients,
    /// What variables will be, so far.
    changes: Vec<(Variable, Tensor)>,
}

impl Moments {
    fn new(names: &'static [&'static str]) -> Moments {
        Moments {
            names,
            kept: Mutex::default(),
            count: Variable::new(&Tensor::constant(Scalar::i64(0))),
        }
    }

    /// What every step begins with.
    #[track_caller]
    fn begin(&self, rate: &Schedule, clip: Option<Clip>, gradients: &[Tensor]) -> Begun {
        let step = self.count.get();
        let number = &step + 1;
        Begun {
            rate: rate.rate_in(precision(gradients), &step),
            gradients: clip.map_or_else(|| gradients.to_vec(), |clip| clip.apply(gradients)),
            changes: vec![(self.count.clone(), number.clone())],
            number,
        }
    }

    /// The moments of a parameter, zeros at first.
    fn of(&self, parameter: &Parameter) -> Vec<Variable> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let variable = parameter.variable();
        let make = || {
            let zeros = Tensor::zeros(variable.shape(), variable.dtype());
            self.names.iter().map(|_| Variable::new(&zeros)).collect()
        };
        kept.entry(variable.id()).or_insert_with(make).clone()
    }

    fn variables(&self, parameters: &[(String, Parameter)]) -> Vec<(String, Variable)> {
        let mut found = vec![("step".to_owned(), self.count.clone())];
        for (name, parameter) in parameters {
            for (moment, variable) in self.names.iter().zip(self.of(parameter)) {
                found.push((format!("{moment}.{name}"), variable));
            }
        }
        found
    }
}

/// Stochastic gradient descent, with momentum if wanted.
///
/// Decay of weights is added to the gradient, before momentum; the first momentum is the first gradient.
pub struct Sgd {
    rate: Schedule,
    momentum: f64,
    nesterov: bool,
    decay: f64,
    clip: Option<Clip>,
    moments: Moments,
}

impl Sgd {
    /// Follows gradients at a rate.
    pub fn new(rate: impl Into<Schedule>) -> Sgd {
        Sgd {
            rate: rate.into(),
            momentum: 0.0,
            nesterov: false,
            decay: 0.0,
            clip: None,
            moments: Moments::new(&["momentum"]),
        }
    }

    /// The same with a share of every step kept for the next.
    #[must_use]
    pub fn momentum(self, momentum: f64) -> Sgd {
        Sgd { momentum, ..self }
    }

    /// Momentum as by Nesterov: looking ahead.
    #[must_use]
    pub fn nesterov(self) -> Sgd {
        Sgd {
            nesterov: true,
            ..self
        }
    }

    /// The same with parameters drawn towards zero.
    #[must_use]
    pub fn weight_decay(self, decay: f64) -> Sgd {
        Sgd { decay, ..self }
    }

    /// The same with gradients cut first.
    #[must_use]
    pub fn clip(self, clip: Clip) -> Sgd {
        Sgd {
            clip: Some(clip),
            ..self
        }
    }
}

impl Optimizer for Sgd {
    #[track_caller]
    fn apply(&self, parameters: &[Parameter], gradients: &[Tensor]) -> Result<(), TensorError> {
        let Begun {
            rate,
            gradients,
            mut changes,
            ..
        } = self.moments.begin(&self.rate, self.clip, gradients);
        for (parameter, gradient) in parameters.iter().zip(gradients) {
            let value = parameter.get();
            let mut gradient = if self.decay == 0.0 {
                gradient
            } else {
                gradient + &value * self.decay
            };
            if self.momentum != 0.0 {
                let kept = &self.moments.of(parameter)[0];
                let moved = kept.get() * self.momentum + &gradient;
                gradient = if self.nesterov {
                    gradient + &moved * self.momentum
                } else {
                    moved.clone()
                };
                changes.push((kept.clone(), moved));
            }
            let rate = rate.cast(value.dtype());
            changes.push((parameter.variable().clone(), value - gradient * rate));
        }
        set(&changes)
    }

    fn variables(&self, parameters: &[(String, Parameter)]) -> Vec<(String, Variable)> {
        match self.momentum == 0.0 {
            true => vec![("step".to_owned(), self.moments.count.clone())],
            false => self.moments.variables(parameters),
        }
    }
}

#[track_caller]
fn set(changes: &[(Variable, Tensor)]) -> Result<(), TensorError> {
    let changes: Vec<(&Variable, Tensor)> = changes
        .iter()
        .map(|(variable, value)| (variable, value.clone()))
        .collect();
    assign(&changes)
}

/// Adam, and with decoupled decay of weights AdamW.
///
/// Epsilon is added to the root of the mean square, after that is corrected for its start at zero. Decay is always
/// AdamW's: what PyTorch's `Adam` does with `weight_decay`, adding it to the gradient, is not there.
pub struct Adam {
    rate: Schedule,
    betas: (f64, f64),
    epsilon: f64,
    decay: f64,
    clip: Option<Clip>,
    moments: Moments,
}

impl Adam {
    /// Adam at a rate, with the usual moments (0.9 and 0.999).
    pub fn new(rate: impl Into<Schedule>) -> Adam {
        Adam {
            rate: rate.into(),
            betas: (0.9, 0.999),
            epsilon: 1e-8,
            decay: 0.0,
            clip: None,
            moments: Moments::new(&["first", "second"]),
        }
    }

    /// AdamW: parameters are also drawn towards zero, apart from the gradients.
    pub fn with_decay(rate: impl Into<Schedule>, decay: f64) -> Adam {
        Adam {
            decay,
            ..Adam::new(rate)
        }
    }

    /// The same with other shares kept of the mean and of the mean square.
    #[must_use]
    pub fn betas(self, first: f64, second: f64) -> Adam {
        Adam {
            betas: (first, second),
            ..self
        }
    }

    /// The same with another number added to the root of the mean square.
    #[must_use]
    pub fn epsilon(self, epsilon: f64) -> Adam {
        Adam { epsilon, ..self }
    }

    /// The same with gradients cut first.
    #[must_use]
    pub fn clip(self, clip: Clip) -> Adam {
        Adam {
            clip: Some(clip),
            ..self
        }
    }
}

impl Optimizer for Adam {
    #[track_caller]
    fn apply(&self, parameters: &[Parameter], gradients: &[Tensor]) -> Result<(), TensorError> {
        let Begun {
            number,
            rate,
            gradients,
            mut changes,
        } = self.moments.begin(&self.rate, self.clip, gradients);
        let number = number.cast(rate.dtype());
        // 1 - beta^n, without loss near 0.
        let bias = |beta: f64| -(&number * beta.ln()).expm1();
        let (first_bias, second_bias) = (bias(self.betas.0), bias(self.betas.1));
        let (size, root) = (&rate / first_bias, second_bias.sqrt());
        for (parameter, gradient) in parameters.iter().zip(gradients) {
            let value = parameter.get();
            let dtype = value.dtype();
            let kept = self.moments.of(parameter);
            let first = kept[0].get() * self.betas.0 + &gradient * (1.0 - self.betas.0);
            let second = kept[1].get() * self.betas.1 + gradient.square() * (1.0 - self.betas.1);
            let spread = second.sqrt() / root.cast(dtype) + self.epsilon;
            let shrunk = match self.decay == 0.0 {
                true => value,
                false => &value * (1.0 - &rate * self.decay).cast(dtype),
            };
            changes.push((
                parameter.variable().clone(),
                shrunk - &first / spread * size.cast(dtype),
            ));
            changes.push((kept[0].clone(), first));
            changes.push((kept[1].clone(), second));
        }
        set(&changes)
    }

    fn variables(&self, parameters: &[(String, Parameter)]) -> Vec<(String, Variable)> {
        self.moments.variables(parameters)
    }
}

/// Lion: steps of one size in the direction of a mean of gradients.
pub struct Lion {
    rate: Schedule,
    betas: (f64, f64),
    decay: f64,
    clip: Option<Clip>,
    moments: Moments,
}

impl Lion {
    /// Lion at a rate, with decoupled decay of weights.
    pub fn new(rate: impl Into<Schedule>, decay: f64) -> Lion {
        Lion {
            rate: rate.into(),
            betas: (0.9, 0.99),
            decay,
            clip: None,
            moments: Moments::new(&["momentum"]),
        }
    }

    /// The same with other shares kept: for the direction, and for the mean.
    #[must_use]
    pub fn betas(self, first: f64, second: f64) -> Lion {
        Lion {
            betas: (first, second),
            ..self
        }
    }

    /// The same with gradients cut first.
    #[must_use]
    pub fn clip(self, clip: Clip) -> Lion {
        Lion {
            clip: Some(clip),
            ..self
        }
    }
}

impl Optimizer for Lion {
    #[track_caller]
    fn apply(&self, parameters: &[Parameter], gradients: &[Tensor]) -> Result<(), TensorError> {
        let Begun {
            rate,
            gradients,
            mut changes,
            ..
        } = self.moments.begin(&self.rate, self.clip, gradients);
        for (parameter, gradient) in parameters.iter().zip(gradients) {
            let value = parameter.get();
            let rate = rate.cast(value.dtype());
            let kept = &self.moments.of(parameter)[0];
            let mean = kept.get();
            let direction = (&mean * self.betas.0 + &gradient * (1.0 - self.betas.0)).sign();
            let moved = &value - (direction + &value * self.decay) * rate;
            changes.push((parameter.variable().clone(), moved));
            changes.push((
                kept.clone(),
                mean * self.betas.1 + gradient * (1.0 - self.betas.1),
            ));
        }
        set(&changes)
    }

    fn variables(&self, parameters: &[(String, Parameter)]) -> Vec<(String, Variable)> {
        self.moments.variables(parameters)
    }
}

/// Runs changes of an optimiser, and takes them back where a condition (without axes) does not hold.
#[track_caller]
fn apply_if(
    condition: &Tensor,
    optimizer: &dyn Optimizer,
    parameters: &[Parameter],
    gradients: &[Tensor],
) -> Result<(), TensorError> {
    let named: Vec<(String, Parameter)> = parameters
        .iter()
        .map(|p| (String::new(), p.clone()))
        .collect();
    let mut variables: Vec<Variable> = optimizer
        .variables(&named)
        .into_iter()
        .map(|(_, variable)| variable)
        .collect();
    variables.extend(
        parameters
            .iter()
            .map(|parameter| parameter.variable().clone()),
    );
    let before: Vec<Tensor> = variables.iter().map(Variable::get).collect();
    optimizer.apply(parameters, gradients)?;
    let kept = variables
        .iter()
        .zip(&before)
        .map(|(variable, before)| (variable.clone(), select(condition, &variable.get(), before)));
    set(&kept.collect::<Vec<_>>())
}

/// Gradients of several steps, summed up and used together: as a larger batch would be.
pub struct Accumulate<O> {
    optimizer: O,
    steps: usize,
    sums: Moments,
}

impl<O: Optimizer> Accumulate<O> {
    /// Uses the mean of the gradients of every so many steps.
    pub fn new(optimizer: O, steps: usize) -> Accumulate<O> {
        Accumulate {
            optimizer,
            steps: steps.max(1),
            sums: Moments::new(&["sum"]),
        }
    }
}

impl<O: Optimizer> Optimizer for Accumulate<O> {
    #[track_caller]
    fn apply(&self, parameters: &[Parameter], gradients: &[Tensor]) -> Result<(), TensorError> {
        let number = self.sums.count.get() + 1;
        let steps = self.steps as i64;
        let due = number
            .modulo(&Tensor::scalar(steps))
            .eq(&Tensor::scalar(0i64));
        let kept: Vec<Variable> = parameters
            .iter()
            .map(|parameter| self.sums.of(parameter)[0].clone())
            .collect();
        let sums: Vec<Tensor> = kept
            .iter()
            .zip(gradients)
            .map(|(kept, gradient)| kept.get() + gradient)
            .collect();
        let means: Vec<Tensor> = sums.iter().map(|sum| sum / self.steps as f64).collect();
        apply_if(&due, &self.optimizer, parameters, &means)?;
        let mut changes = vec![(self.sums.count.clone(), number)];
        for (kept, sum) in kept.into_iter().zip(sums) {
            changes.push((kept, select(&due, &sum.zeros_like(), &sum)));
        }
        set(&changes)
    }

    #[track_caller]
    fn scaled(&self, loss: &Tensor) -> Tensor {
        self.optimizer.scaled(loss)
    }

    fn variables(&self, parameters: &[(String, Parameter)]) -> Vec<(String, Variable)> {
        let own = self.sums.variables(parameters).into_iter();
        let own = own.map(|(name, variable)| (format!("accumulate.{name}"), variable));
        own.chain(self.optimizer.variables(parameters)).collect()
    }
}

/// The loss is scaled up before gradients are taken, so that small ones are not lost in narrow floats, and
/// gradients are scaled down again. A step in which one overflows is left out and the scale halved; after
/// many good ones it is doubled.
pub struct LossScale<O> {
    optimizer: O,
    every: i64,
    scale: Variable,
    good: Variable,
}

impl<O: Optimizer> LossScale<O> {
    /// Starts from a scale; 65,536 is usual.
    pub fn new(optimizer: O, scale: f32) -> LossScale<O> {
        LossScale {
            optimizer,
            every: 2000,
            scale: Variable::new(&Tensor::scalar(scale)),
            good: Variable::new(&Tensor::constant(Scalar::i64(0))),
        }
    }

    /// The scale at this point.
    #[track_caller]
    pub fn scale(&self) -> Tensor {
        self.scale.get()
    }
}

impl<O: Optimizer> Optimizer for LossScale<O> {
    /// Takes gradients of a loss that was scaled already.
    #[track_caller]
    fn apply(&self, parameters: &[Parameter], gradients: &[Tensor]) -> Result<(), TensorError> {
        let (scale, good) = (self.scale.get(), self.good.get());
        let gradients: Vec<Tensor> = gradients
            .iter()
            .map(|gradient| gradient / scale.cast(gradient.dtype()))
            .collect();
        let finite = gradients
            .iter()
            .map(|gradient| gradient.is_finite().all(..))
            .reduce(|a, b| a & b);
        let Some(finite) = finite else {
            return Ok(());
        };
        apply_if(&finite, &self.optimizer, parameters, &gradients)?;
        let number = &good + 1;
        let often = number.ge(&Tensor::scalar(self.every));
        let raised = select(&often, &(&scale * 2.0), &scale);
        let count = select(&often, &number.zeros_like(), &number);
        set(&[
            (
                self.scale.clone(),
                select(
                    &finite,
                    &raised,
                    &(scale * 0.5).maximum(&Tensor::scalar(1.0f32)),
                ),
            ),
            (
                self.good.clone(),
                select(&finite, &count, &good.zeros_like()),
            ),
        ])
    }

    #[track_caller]
    fn scaled(&self, loss: &Tensor) -> Tensor {
        let loss = self.optimizer.scaled(loss);
        &loss * self.scale.get().cast(loss.dtype())
    }

    fn variables(&self, parameters: &[(String, Parameter)]) -> Vec<(String, Variable)> {
        let mut found = vec![
            ("scale".to_owned(), self.scale.clone()),
            ("good".to_owned(), self.good.clone()),
        ];
        found.extend(self.optimizer.variables(parameters));
        found
    }
}

/// A running average of parameters, which is often better than where they are.
pub struct Average {
    decay: f64,
    kept: Vec<(Parameter, Variable)>,
}

impl Average {
    /// Starts at the parameters as they are; `decay` of the average is kept in each step.
    pub fn new(parameters: &[Parameter], decay: f64) -> Average {
        let kept = parameters
            .iter()
            .map(|parameter| (parameter.clone(), Variable::new(&parameter.get())));
        Average {
            decay,
            kept: kept.collect(),
        }
    }

    /// Moves the average towards the parameters.
    ///
    /// # Errors
    /// What is wrong with the parameters' values.
    #[track_caller]
    pub fn update(&self) -> Result<(), TensorError> {
        let moved = self.kept.iter().map(|(parameter, kept)| {
            (
                kept.clone(),
                kept.get() * self.decay + parameter.get() * (1.0 - self.decay),
            )
        });
        set(&moved.collect::<Vec<_>>())
    }

    /// Puts the averages in the parameters' place, and those in the averages'.
    ///
    /// # Errors
    /// What is wrong with the parameters' values.
    #[track_caller]
    pub fn swap(&self) -> Result<(), TensorError> {
        let swapped = self.kept.iter().flat_map(|(parameter, kept)| {
            [
                (parameter.variable().clone(), kept.get()),
                (kept.clone(), parameter.get()),
            ]
        });
        set(&swapped.collect::<Vec<_>>())
    }
}
