//! Optimisers, and how fast they learn.

use crate::array::{Array, Value, as_array, made_of};
use crate::device;
use crate::errors::OrRaise;
use crate::interrupts::{Attempt, Interruptible};
use crate::variable::{Place, PyVariable, object, place};
use loopwright_nn::{
    Accumulate, Adam, Average, Clip, Lion, LossScale, Optimizer, Parameter, Part, Schedule, Sgd,
    State,
};
use loopwright_tensor::{Session, Tensor};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::sync::Arc;

type Any<'a, 'py> = &'a Bound<'py, PyAny>;

/// A learning rate as a function of the step, counted from 0. It is part of the compiled step: a rate that changes
/// compiles nothing.
///
/// >>> from loopwright import optim
/// >>> rate = optim.Schedule.cosine(0.1, 0.0, steps=100).after_warmup(10)
/// >>> [round(rate(step), 3) for step in (0, 9, 60, 110)]
/// [0.01, 0.1, 0.05, 0.0]
#[pyclass(name = "Schedule", module = "loopwright.optim", frozen, eq)]
#[derive(Clone, PartialEq)]
pub(crate) struct PySchedule(Schedule);

/// A rate: a number or a schedule.
fn schedule(rate: Any<'_, '_>) -> PyResult<Schedule> {
    if let Ok(schedule) = rate.cast::<PySchedule>() {
        return Ok(schedule.get().0.clone());
    }
    match rate.extract::<f64>().attempt(rate.py())? {
        Ok(rate) => Ok(Schedule::Constant(rate)),
        Err(_) => Err(PyTypeError::new_err(format!(
            "a learning rate is a number or a Schedule, not {}",
            rate.get_type().name()?
        ))),
    }
}

#[pymethods]
impl PySchedule {
    /// The same all the time.
    #[staticmethod]
    fn constant(rate: f64) -> PySchedule {
        PySchedule(Schedule::Constant(rate))
    }

    /// Along half a wave of the cosine from one rate to another.
    #[staticmethod]
    fn cosine(from_: f64, to: f64, steps: usize) -> PySchedule {
        let from = from_;
        PySchedule(Schedule::Cosine { from, to, steps })
    }

    /// In a straight line from one rate to another.
    #[staticmethod]
    fn linear(from_: f64, to: f64, steps: usize) -> PySchedule {
        let from = from_;
        PySchedule(Schedule::Linear { from, to, steps })
    }

    /// Multiplied by a factor every so many steps.
    #[staticmethod]
    fn steps(from_: f64, factor: f64, every: usize) -> PySchedule {
        let from = from_;
        PySchedule(Schedule::Steps {
            from,
            factor,
            every,
        })
    }

    /// Multiplied by a factor in each step.
    #[staticmethod]
    fn exponential(from_: f64, factor: f64) -> PySchedule {
        let from = from_;
        PySchedule(Schedule::Exponential { from, factor })
    }

    /// In proportion to the root of the step, downwards: the rate at first is kept for some steps.
    #[staticmethod]
    fn inverse_root(from_: f64, keep: usize) -> PySchedule {
        let from = from_;
        PySchedule(Schedule::InverseRoot { from, keep })
    }

    /// This schedule after a number of steps that lead to its first rate.
    fn after_warmup(&self, steps: usize) -> PySchedule {
        PySchedule(self.0.clone().after_warmup(steps))
    }

    /// The rate at a step, which may be an array of one integer (`float32`).
    fn rate(&self, py: Python<'_>, step: Any<'_, '_>) -> PyResult<Array> {
        let step = as_array(py, step, None)?;
        if !step.re.dtype().is_int() || step.rank() != 0 {
            return Err(PyTypeError::new_err("a step is one integer"));
        }
        let made = self.0.rate(&step.re);
        Array::of(py, made_of(&[&step], made, None)?)
    }

    /// The rate at a step as a number.
    fn __call__(&self, py: Python<'_>, step: i64) -> PyResult<f64> {
        let session = device::current(py)?;
        let rate = || self.0.rate(&Tensor::new(&[step], ())).item();
        py.interruptible(|| session.scope(rate))?.or_raise()
    }

    fn __repr__(&self) -> String {
        shown(&self.0)
    }
}

fn shown(schedule: &Schedule) -> String {
    match schedule {
        Schedule::Constant(rate) => format!("Schedule.constant({rate:?})"),
        Schedule::Warmup { steps, then } => format!("{}.after_warmup({steps})", shown(then)),
        Schedule::Cosine { from, to, steps } => {
            format!("Schedule.cosine({from:?}, {to:?}, {steps})")
        }
        Schedule::Linear { from, to, steps } => {
            format!("Schedule.linear({from:?}, {to:?}, {steps})")
        }
        Schedule::Steps {
            from,
            factor,
            every,
        } => format!("Schedule.steps({from:?}, {factor:?}, {every})"),
        Schedule::Exponential { from, factor } => {
            format!("Schedule.exponential({from:?}, {factor:?})")
        }
        Schedule::InverseRoot { from, keep } => {
            format!("Schedule.inverse_root({from:?}, {keep})")
        }
    }
}

/// How gradients are cut before they are used.
///
/// >>> from loopwright import optim
/// >>> adam = optim.Adam(1e-3, clip=optim.Clip.norm(1.0))
#[pyclass(name = "Clip", module = "loopwright.optim", frozen, eq, from_py_object)]
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct PyClip(Clip);

#[pymethods]
impl PyClip {
    /// Each number at a bound.
    #[staticmethod]
    fn value(bound: f64) -> PyClip {
        PyClip(Clip::Value(bound))
    }

    /// All together, by their length as one vector.
    #[staticmethod]
    fn norm(bound: f64) -> PyClip {
        PyClip(Clip::Norm(bound))
    }

    /// The gradients, cut.
    fn apply(&self, py: Python<'_>, gradients: Vec<Bound<'_, Array>>) -> PyResult<Vec<Array>> {
        let values = gradients.iter();
        let values = values.map(|gradient| crate::primitives::real_only(gradient.get(), "clip"));
        let values: Vec<Value> = values.collect::<PyResult<_>>()?;
        let tensors: Vec<Tensor> = values.iter().map(|value| value.re.clone()).collect();
        let of: Vec<&Value> = values.iter().collect();
        let cut = self.0.apply(&tensors).into_iter();
        cut.map(|tensor| Array::of(py, made_of(&of, tensor, None)?))
            .collect()
    }

    fn __repr__(&self) -> String {
        match self.0 {
            Clip::Value(bound) => format!("Clip.value({bound:?})"),
            Clip::Norm(bound) => format!("Clip.norm({bound:?})"),
        }
    }
}

/// An optimiser of the Rust API.
#[pyclass(name = "Optimizer", module = "loopwright._core", frozen)]
pub(crate) struct PyOptimizer {
    inner: Arc<dyn Optimizer + Send + Sync>,
    /// The scale of a `LossScale`.
    scale: Option<Arc<LossScale<Arc<dyn Optimizer + Send + Sync>>>>,
}

impl PyOptimizer {
    fn new(optimizer: impl Optimizer + Send + Sync + 'static) -> PyOptimizer {
        PyOptimizer {
            inner: Arc::new(optimizer),
            scale: None,
        }
    }

    pub(super) fn inner(&self) -> &Arc<dyn Optimizer + Send + Sync> {
        &self.inner
    }
}

fn parameters(places: &[&Place]) -> PyResult<Vec<Parameter>> {
    let parameters = places.iter().map(|place| Ok(place.parameter()?.clone()));
    parameters.collect()
}

#[pymethods]
impl PyOptimizer {
    #[staticmethod]
    fn sgd(
        rate: Any<'_, '_>,
        momentum: f64,
        nesterov: bool,
        weight_decay: f64,
        clip: Option<PyClip>,
    ) -> PyResult<PyOptimizer> {
        let mut made = Sgd::new(schedule(rate)?)
            .momentum(momentum)
            .weight_decay(weight_decay);
        if nesterov {
            made = made.nesterov();
        }
        Ok(PyOptimizer::new(match clip {
            Some(clip) => made.clip(clip.0),
            None => made,
        }))
    }

    #[staticmethod]
    fn adam(
        rate: Any<'_, '_>,
        betas: (f64, f64),
        epsilon: f64,
        decay: f64,
        clip: Option<PyClip>,
    ) -> PyResult<PyOptimizer> {
        let made = Adam::with_decay(schedule(rate)?, decay)
            .betas(betas.0, betas.1)
            .epsilon(epsilon);
        Ok(PyOptimizer::new(match clip {
            Some(clip) => made.clip(clip.0),
            None => made,
        }))
    }

    #[staticmethod]
    fn lion(
        rate: Any<'_, '_>,
        decay: f64,
        betas: (f64, f64),
        clip: Option<PyClip>,
    ) -> PyResult<PyOptimizer> {
        let made = Lion::new(schedule(rate)?, decay).betas(betas.0, betas.1);
        Ok(PyOptimizer::new(match clip {
            Some(clip) => made.clip(clip.0),
            None => made,
        }))
    }

    #[staticmethod]
    fn accumulate(optimizer: &PyOptimizer, steps: usize) -> PyResult<PyOptimizer> {
        if steps == 0 {
            return Err(PyValueError::new_err(
                "gradients of at least one step are used together",
            ));
        }
        let inner = Arc::clone(&optimizer.inner);
        Ok(PyOptimizer {
            scale: optimizer.scale.clone(),
            ..PyOptimizer::new(Accumulate::new(inner, steps))
        })
    }

    #[staticmethod]
    fn loss_scale(optimizer: &PyOptimizer, scale: f32) -> PyOptimizer {
        let made = Arc::new(LossScale::new(Arc::clone(&optimizer.inner), scale));
        PyOptimizer {
            inner: Arc::clone(&made) as Arc<dyn Optimizer + Send + Sync>,
            scale: Some(made),
        }
    }

    /// The scale of the loss at this point.
    fn scale(&self, py: Python<'_>) -> PyResult<Option<Array>> {
        let Some(scale) = &self.scale else {
            return Ok(None);
        };
        let value = Value::real(py.interruptible(|| scale.scale())?, device::current(py)?);
        Ok(Some(Array::of(py, value)?))
    }

    /// Changes variables by their gradients, given in the same order.
    fn apply(
        &self,
        py: Python<'_>,
        variables: Vec<Bound<'_, PyVariable>>,
        gradients: Vec<Bound<'_, Array>>,
    ) -> PyResult<()> {
        if variables.len() != gradients.len() {
            return Err(PyValueError::new_err(format!(
                "{} gradients for {} variables",
                gradients.len(),
                variables.len()
            )));
        }
        let places: Vec<&Place> = variables.iter().map(place).collect();
        let parameters = parameters(&places)?;
        let values = gradients.iter();
        let values =
            values.map(|gradient| crate::primitives::real_only(gradient.get(), "an optimiser"));
        let values: Vec<Value> = values.collect::<PyResult<_>>()?;
        let session: Session = match values.first() {
            Some(value) => value.session.clone(),
            None => return Ok(()),
        };
        let tensors: Vec<Tensor> = values.into_iter().map(|value| value.re).collect();
        py.interruptible(|| session.scope(|| self.inner.apply(&parameters, &tensors)))?
            .or_raise()?;
        places.iter().for_each(|place| place.moved(&session));
        Ok(())
    }

    /// The loss as gradients are to be taken of it.
    fn scaled(&self, py: Python<'_>, loss: &Array) -> PyResult<Array> {
        let loss = crate::primitives::real_only(loss, "a loss")?;
        let made = py.interruptible(|| self.inner.scaled(&loss.re))?;
        Array::of(py, made_of(&[&loss], made, None)?)
    }

    /// The variables that it keeps itself for these, by name; made now if there are none yet.
    fn variables(
        &self,
        py: Python<'_>,
        named: Vec<(String, Bound<'_, PyVariable>)>,
    ) -> PyResult<Vec<(String, Py<PyVariable>)>> {
        let parameters = named
            .iter()
            .map(|(name, variable)| Ok((name.clone(), place(variable).parameter()?.clone())));
        let parameters: Vec<(String, Parameter)> = parameters.collect::<PyResult<_>>()?;
        let session = match named.first() {
            Some((_, variable)) => place(variable).session(),
            None => device::current(py)?,
        };
        let found = self.inner.variables(&parameters).into_iter();
        found
            .map(|(name, variable)| {
                let part = Part::State(State::of(variable));
                Ok((name, object(py, part, &session)?))
            })
            .collect()
    }
}

/// A running average of parameters, which is often better than where they are.
#[pyclass(name = "Average", module = "loopwright._core", frozen)]
pub(crate) struct PyAverage {
    average: Average,
    session: Session,
}

#[pymethods]
impl PyAverage {
    #[new]
    fn new(
        py: Python<'_>,
        variables: Vec<Bound<'_, PyVariable>>,
        decay: f64,
    ) -> PyResult<PyAverage> {
        let places: Vec<&Place> = variables.iter().map(place).collect();
        Ok(PyAverage {
            session: match places.first() {
                Some(place) => place.session(),
                None => device::current(py)?,
            },
            average: Average::new(&parameters(&places)?, decay),
        })
    }

    /// Moves the average towards the parameters.
    fn update(&self, py: Python<'_>) -> PyResult<()> {
        py.interruptible(|| self.session.scope(|| self.average.update()))?
            .or_raise()
    }

    /// Puts the averages in the parameters' place, and those in the averages'.
    fn swap(&self, py: Python<'_>) -> PyResult<()> {
        py.interruptible(|| self.session.scope(|| self.average.swap()))?
            .or_raise()
    }
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PySchedule>()?;
    module.add_class::<PyClip>()?;
    module.add_class::<PyOptimizer>()?;
    module.add_class::<PyAverage>()
}
