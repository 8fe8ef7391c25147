//! Measuring in this process.

use super::{Measure, Outcome, Phase, Timing, Trial, Version};
use crate::error::TuneError;
use crate::inputs::random_inputs;
use crate::random::Generator;
use crate::reference::Expected;
use loopwright_backend::{Backend, CompileOptions, backends};
use loopwright_compile::{Bound, Compiler};
use loopwright_graph::{Array, Binding, Graph, NodeId, parse};
use loopwright_looptree::parse_schedule;
use loopwright_text::Source;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Compiled versions that are kept: the default, the best, and the one at hand.
const KEPT: usize = 3;

/// A sample of a time is at least this long, in seconds; shorter runs are repeated.
const SHORTEST: f64 = 200e-6;

/// Samples of each side, at most.
const MOST: usize = 2001;

/// Samples of each side, at least.
const LEAST: usize = 3;

/// What is measured: a program, at which sizes, on what.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Work {
    /// The program's text.
    pub program: String,
    /// Values for its sizes and statics, in place of its defaults.
    pub sizes: Vec<(String, i64)>,
    /// The backend's name.
    pub device: String,
    /// Whether every rounding stays where the program has it.
    pub strict: bool,
    /// The backend that is given what the device's refuses.
    pub fallback: Option<String>,
    /// The seed of the inputs.
    pub seed: u64,
}

impl Work {
    /// The program, every result a node of its own.
    ///
    /// # Errors
    /// A text that is no program.
    pub fn graph(&self) -> Result<Graph, TuneError> {
        let source = Source::new("program", self.program.as_str());
        let graph = parse(&source).map_err(|error| TuneError::Program(error.render(&source)))?;
        Ok(graph.with_stores())
    }

    /// The sizes.
    ///
    /// # Errors
    /// Sizes that do not fit the program.
    pub fn binding(&self, graph: &Graph) -> Result<Binding, TuneError> {
        Ok(graph.bind(&self.given())?)
    }

    fn given(&self) -> Vec<(&str, i64)> {
        let sizes = self.sizes.iter();
        sizes.map(|(name, value)| (name.as_str(), *value)).collect()
    }

    /// The backend.
    ///
    /// # Errors
    /// A name that no backend of this process has.
    pub fn backend(&self) -> Result<Backend, TuneError> {
        let mut known = backends().into_iter();
        let found = known.find(|backend| backend.name() == self.device);
        found.ok_or_else(|| TuneError::Device(self.device.clone()))
    }
}

/// Measures in this process: quick, and a candidate that crashes takes the process with it.
pub struct Bench {
    work: Work,
    graph: Arc<Graph>,
    backend: Backend,
    inputs: Vec<(NodeId, Array)>,
    expected: Expected,
    /// What the default gives, once it has run.
    base: Option<Vec<Array>>,
    sides: Vec<(Version, Bound<'static>)>,
}

impl Bench {
    /// A bench for some work. `expected` is what it should give at its seed.
    ///
    /// # Errors
    /// Work that cannot be done here at all.
    pub fn new(work: Work, expected: Expected) -> Result<Bench, TuneError> {
        let graph = Arc::new(work.graph()?);
        let binding = work.binding(&graph)?;
        let inputs = random_inputs(&graph, &binding, work.seed)?;
        let backend = work.backend()?;
        Ok(Bench {
            work,
            graph,
            backend,
            inputs,
            expected,
            base: None,
            sides: Vec::new(),
        })
    }

    /// A bench that works out by itself what the program should give, in a minute at most.
    ///
    /// # Errors
    /// Work that cannot be done here at all.
    pub fn with_reference(work: Work) -> Result<Bench, TuneError> {
        let graph = work.graph()?;
        let binding = work.binding(&graph)?;
        let inputs = random_inputs(&graph, &binding, work.seed)?;
        let deadline = Instant::now() + Duration::from_secs(60);
        let expected = Expected::new(&graph, &binding, &inputs, work.strict, work.seed, deadline)?;
        Bench::new(work, expected)
    }

    /// Measures, and tells what it is about to do.
    pub(crate) fn trial(&mut self, trial: &Trial, tell: &mut dyn FnMut(Phase)) -> Outcome {
        let outcome = || -> Result<Timing, Outcome> {
            if let Some(rival) = &trial.rival {
                self.prepare(rival, tell)?;
            }
            self.prepare(&trial.version, tell)?;
            self.time(trial, tell)
        };
        let mut outcome = outcome;
        match outcome() {
            Ok(timing) => Outcome::Time(timing),
            Err(outcome) => outcome,
        }
    }

    fn side(&mut self, version: &Version) -> Option<&mut Bound<'static>> {
        let found = self.sides.iter_mut().find(|(known, _)| known == version);
        found.map(|(_, bound)| bound)
    }

    /// Has a version ready that was checked.
    fn prepare(&mut self, version: &Version, tell: &mut dyn FnMut(Phase)) -> Result<(), Outcome> {
        if let Some(at) = self.sides.iter().position(|(known, _)| known == version) {
            // The one that was used longest ago goes first.
            let side = self.sides.remove(at);
            self.sides.push(side);
            return Ok(());
        }
        tell(Phase::Compile);
        let refused = |reason: String| Outcome::Refused(reason);
        let schedule = match version {
            Version::Default => None,
            Version::Schedule(text) => {
                let source = Source::new("schedule", text.as_str());
                let schedule = parse_schedule(&source, &self.graph);
                Some(schedule.map_err(|error| refused(error.message))?)
            }
        };
        let options = CompileOptions {
            strict: self.work.strict,
            ..CompileOptions::default()
        };
        // A compiler of its own: one for all would keep the code of every candidate.
        let mut compiler = Compiler::new(self.backend.clone(), options);
        if let Some(fallback) = &self.work.fallback {
            compiler = compiler.with_fallback(fallback.as_str());
        }
        let program = compiler
            .compile(&self.graph, schedule.as_ref())
            .map_err(|error| refused(error.to_string()))?;
        let failed = |error: loopwright_compile::ProgramError| refused(error.to_string());
        let mut bound = program.bind(&self.work.given()).map_err(failed)?;
        for (node, array) in &self.inputs {
            let name = &self.graph.node(*node).name;
            bound.give(name, array.clone()).map_err(failed)?;
        }
        tell(Phase::Run);
        bound.run().map_err(failed)?;
        let results: Option<Vec<&Array>> = self
            .expected
            .names()
            .map(|name| bound.array(name))
            .collect();
        let results = results.ok_or_else(|| refused("a result is missing".to_owned()))?;
        self.expected
            .check(&results, self.base.as_deref())
            .map_err(Outcome::Wrong)?;
        if *version == Version::Default && self.base.is_none() {
            self.base = Some(results.into_iter().cloned().collect());
        }
        if self.sides.len() >= KEPT {
            // The default stays: it is what everything is compared with at the end.
            let old = self
                .sides
                .iter()
                .position(|(known, _)| *known != Version::Default);
            self.sides.remove(old.unwrap_or(0));
        }
        self.sides.push((version.clone(), bound));
        Ok(())
    }

    /// Times a version, in turns with its rival.
    fn time(&mut self, trial: &Trial, tell: &mut dyn FnMut(Phase)) -> Result<Timing, Outcome> {
        tell(Phase::Run);
        let mut order = Generator::new(self.work.seed);
        let mut run = |version: &Version, times: u32| -> Result<f64, Outcome> {
            let side = self.side(version);
            let side = side.expect("a version is prepared before it is timed");
            let clock = Instant::now();
            for _ in 0..times {
                side.run()
                    .map_err(|error| Outcome::Refused(error.to_string()))?;
            }
            Ok(clock.elapsed().as_secs_f64() / f64::from(times))
        };
        let first = run(&trial.version, 1)?;
        let times = (SHORTEST / first.max(1e-9)).ceil().clamp(1.0, 1000.0) as u32;
        let mut own = Vec::new();
        let mut other = Vec::new();
        let mut wins = 0;
        let clock = Instant::now();
        while own.len() < MOST
            && (own.len() < LEAST || clock.elapsed().as_secs_f64() < trial.seconds)
        {
            tell(Phase::Run);
            // In any order: a fixed one falls in step with the turns of other processes.
            let rival_first = order.chance(50);
            let mut rival_time = |other: &mut Vec<f64>| -> Result<(), Outcome> {
                if let Some(rival) = &trial.rival {
                    other.push(run(rival, times)?);
                }
                Ok(())
            };
            if rival_first {
                rival_time(&mut other)?;
            }
            let time = run(&trial.version, times)?;
            own.push(time);
            if !rival_first && let Some(rival) = &trial.rival {
                other.push(run(rival, times)?);
            }
            if other.last().is_some_and(|other| time < *other) {
                wins += 1;
            }
            // What is clearly slower need not be known well.
            if own.len() == LEAST && !other.is_empty() && best(&own) > 1.3 * best(&other) {
                break;
            }
        }
        let samples = own.len();
        Ok(Timing {
            seconds: undisturbed(&mut own),
            rival: (!other.is_empty()).then(|| undisturbed(&mut other)),
            samples,
            wins: f64::from(wins) / samples as f64,
        })
    }
}

impl Measure for Bench {
    fn measure(&mut self, trial: &Trial) -> Outcome {
        self.trial(trial, &mut |_| {})
    }
}

fn best(times: &[f64]) -> f64 {
    times.iter().copied().fold(f64::INFINITY, f64::min)
}

/// The time that a quarter of the runs stay below: the median where nobody else uses the machine, and where others
/// do, still one without their turns in it.
fn undisturbed(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 4).copied().unwrap_or(f64::NAN)
}
