//! The training step of the list as users write it: over tensors, with gradients and an optimiser, compiled by `jit`.

use super::works;
use crate::field::{Field, Ours};
use crate::race::{Limits, Racer};
use crate::report::{Measured, Row};
use crate::sample::seconds;
use crate::work::{Work, ours};
use crate::{BenchError, Results};
use loopwright::graph::Array;
use loopwright::nn::{Optimizer, Parameter, Sgd, cross_entropy};
use loopwright::tensor::{Jit, Session, Tensor, TensorError, Variable, jit};
use std::collections::BTreeMap;

/// The work, by the name that peers know it by.
const REQUEST: &str = "mlp_step";

/// The peers that train.
const PEERS: [&str; 3] = ["torch", "torch-compile", "jax"];

/// So many times as fast as the best of them.
const LEAST_RATIO: f64 = 1.2;

/// The first step, compilation included, in milliseconds.
const MOST_MILLISECONDS: f64 = 50.0;

type Batch = (Tensor, Tensor);

/// The step over tensors, ready to run.
struct Tensors {
    name: String,
    session: Session,
    step: Jit<Batch, Result<Tensor, TensorError>>,
    batch: Batch,
    weights: Vec<(String, Array, Parameter)>,
    /// How long the first step took, in seconds: tracing, compilation, and weights on their way to the device.
    first: f64,
}

impl Tensors {
    fn new(name: &str, device: &str, inputs: &[(String, Array)]) -> Result<Tensors, BenchError> {
        let session = Session::new(device).map_err(|error| ours(name, error))?;
        let input = |wanted: &str| {
            let found = inputs.iter().find(|(name, _)| name == wanted);
            let missing = || ours(name, format!("the program has no `{wanted}`"));
            found.map(|(_, array)| array.clone()).ok_or_else(missing)
        };
        let batch = (Tensor::of(input("x")?), Tensor::of(input("label")?));
        let mut weights = Vec::new();
        for weight in ["w1", "w2", "w3"] {
            let array = input(weight)?;
            let parameter = Parameter::new(&Tensor::of(array.clone()));
            weights.push((weight.to_owned(), array, parameter));
        }
        let parameters: Vec<Parameter> = weights.iter().map(|(.., p)| p.clone()).collect();
        let (first, run) = seconds(|| {
            let step = step(parameters);
            session.scope(|| step.call(&batch)?.item())?;
            Ok(step)
        });
        Ok(Tensors {
            name: name.to_owned(),
            session,
            step: run.map_err(|error: TensorError| ours(name, error))?,
            batch,
            weights,
            first,
        })
    }

    fn run(&self, runs: usize) -> Result<Tensor, TensorError> {
        self.session.scope(|| {
            let mut loss = self.step.call(&self.batch)?;
            for _ in 1..runs {
                loss = self.step.call(&self.batch)?;
            }
            // The value is there when all is done.
            loss.item()?;
            Ok(loss)
        })
    }

    fn computed(&self) -> Result<Results, TensorError> {
        let set = |(_, first, weight): &(String, Array, Parameter)| {
            let variable: &Variable = weight.variable();
            variable.set(&Tensor::of(first.clone()))
        };
        self.session
            .scope(|| self.weights.iter().try_for_each(set))?;
        let loss = self.run(1)?;
        let mut results = BTreeMap::from([("loss".to_owned(), (*loss.array()?).clone())]);
        for (name, _, weight) in &self.weights {
            let value = weight.get().array()?;
            results.insert(name.clone(), (*value).clone());
        }
        Ok(results)
    }
}

/// The step, as in the first lesson on training.
fn step(weights: Vec<Parameter>) -> Jit<Batch, Result<Tensor, TensorError>> {
    let sgd = Sgd::new(0.01);
    jit("step", move |(x, labels): &Batch| {
        let [w1, w2, w3] = [0, 1, 2].map(|at| weights[at].get());
        let hidden = x.matmul(&w1).relu().matmul(&w2).relu();
        let loss = cross_entropy(&hidden.matmul(&w3), labels);
        sgd.step(&weights, &loss)?;
        Ok(loss)
    })
}

impl Racer for Tensors {
    fn name(&self) -> &str {
        "tensors"
    }

    fn time(&mut self, runs: usize) -> Result<f64, BenchError> {
        let (time, result) = seconds(|| self.run(runs));
        result.map_err(|error| ours(&self.name, error))?;
        Ok(time / runs as f64)
    }
}

impl Ours for Tensors {
    fn first(&self) -> f64 {
        self.first
    }

    fn results(&mut self) -> Result<Results, BenchError> {
        self.computed().map_err(|error| ours(&self.name, error))
    }
}

/// The step beside peers, and our first one.
pub(super) fn rows(
    field: &Field,
    limits: &Limits,
    wanted: &dyn Fn(&str) -> bool,
    say: &dyn Fn(&str),
    measured: &mut Measured,
) {
    let works = works().into_iter();
    let mut works = works.filter(|work| work.request == REQUEST);
    let mut work = works.next().expect("the list has a training step");
    work.name = format!("{}, through tensors", work.name);
    if wanted(&work.name) {
        say(&work.name);
        measured.take(&work.name, both_rows(field, limits, &work));
    }
}

/// The step and the first of all steps.
fn both_rows(field: &Field, limits: &Limits, work: &Work) -> Result<[Row; 2], BenchError> {
    let graph = work.graph()?;
    let inputs = work.inputs(&graph)?;
    let mut own = Tensors::new(&work.name, field.ours().name(), &inputs)?;
    let outcome = field.race_with(&mut own, work, &inputs, limits, |peer| {
        PEERS.contains(&peer)
    })?;
    let counted = work.counted;
    let goal = (!outcome.others.is_empty()).then_some(LEAST_RATIO);
    let step = Row::new(
        work.name.clone(),
        counted.unit(),
        counted.figure(outcome.ours.median),
        outcome.others(|times| counted.figure(times.median)),
        goal,
    );
    let first = Row::new(
        format!("{}: first step", work.name),
        "ms",
        outcome.ours.first * 1e3,
        BTreeMap::new(),
        Some(MOST_MILLISECONDS),
    );
    let step = step.with_left_out(outcome.left_out);
    Ok([step.beside_the_list(), first.beside_the_list()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::compare;
    use crate::side::Side;
    use loopwright::backend::backends;

    #[test]
    fn a_step_over_tensors_is_the_step_of_the_program() {
        let mut works = works().into_iter();
        let work = works.find(|work| work.request == REQUEST).expect("a step");
        let graph = work.graph().expect("the program is right");
        let inputs = work.inputs(&graph).expect("inputs");
        let device = "x86";
        let known = backends();
        let backend = known.iter().find(|backend| backend.name() == device);
        let backend = backend.expect("it is linked in");
        let mut program = Side::new(&work, &graph, &inputs, backend).expect("it runs");
        let mut tensors = Tensors::new(&work.name, device, &inputs).expect("it runs");
        let expected = program.results().expect("it runs");
        // From the first values again, however many steps there were.
        for _ in 0..2 {
            tensors.time(3).expect("it runs");
            let results = tensors.results().expect("it runs");
            compare(&work.name, "tensors", &inputs, &expected, &results).expect("the same");
        }
    }
}
