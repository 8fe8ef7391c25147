//! The interface for agents: everything that a search of one's own needs.
//!
//! A [`Session`] stands at a plan. [`Session::actions`] lists the mutations that are legal there,
//! [`Session::apply`] makes one and gives the reward, [`Session::undo`] takes it back,
//! [`Session::features`] says what each loop looks like, as numbers. The reward is the logarithm, to base two,
//! of how many times faster the plan is than the one at the start: 1 is twice as fast, -1 half as fast.
//! It is measured on a device, or predicted by a model, as the session was made.

use crate::features::{LoopFeatures, features};
use crate::measure::{Measure, Outcome, Trial, Version};
use crate::predict::Predict;
use loopwright_graph::Binding;
use loopwright_looptree::{Mutation, MutationError, Plan, print_mutation};
use std::sync::Arc;

/// What an action came to.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    /// The logarithm to base two of the speed-up over the start; `None` where the plan does not count: it
    /// crashed, did not end, computed something else, or the model knows nothing of it.
    pub reward: Option<f64>,
    /// What measuring it came to; `None` where the reward is predicted.
    pub outcome: Option<Outcome>,
}

/// Where the reward comes from.
enum Judge {
    Measured(Box<dyn Measure>),
    Predicted(Arc<dyn Predict>),
}

/// A walk through the plans of one program.
///
/// ```
/// use loopwright_graph::parse;
/// use loopwright_looptree::{Plan, Target};
/// use loopwright_scheduler::default_schedule;
/// use loopwright_text::Source;
/// use loopwright_tune::agent::Session;
/// use loopwright_tune::CostModel;
/// use std::sync::Arc;
///
/// let text = "loopwright program 1
/// input A: f32[i=64, k=64]
/// input B: f32[k, j=64]
/// output C = sum[k](A * B)
/// ";
/// let graph = parse(&Source::new("product.lw", text)).unwrap().with_stores();
/// let binding = Arc::new(graph.bind(&[])?);
/// let schedule = default_schedule(&graph, &Target::SCALAR)?;
/// let plan = Plan::new(graph, schedule)?;
///
/// // A greedy agent: the action with the best reward, as long as one is better than none.
/// let mut session = Session::predicted(plan, binding, Arc::new(CostModel::new(Target::SCALAR)));
/// for _ in 0..3 {
///     let mut best = (session.reward().unwrap_or(0.0), None);
///     for action in session.actions() {
///         let step = session.apply(&action)?;
///         session.undo();
///         if step.reward.is_some_and(|reward| reward > best.0) {
///             best = (step.reward.unwrap_or(0.0), Some(action));
///         }
///     }
///     let Some(action) = best.1 else { break };
///     session.apply(&action)?;
/// }
/// assert!(session.reward().is_some_and(|reward| reward >= 0.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Session {
    start: Plan,
    binding: Arc<Binding>,
    judge: Judge,
    /// The plans so far, each with the mutation that led to it and its step; the last is where we stand.
    done: Vec<Stop>,
    undone: Vec<Stop>,
    /// What the model says of the start.
    start_seconds: Option<f64>,
}

struct Stop {
    line: String,
    plan: Plan,
    step: Step,
}

impl Session {
    /// A session whose rewards are measured, each in turns with the start.
    pub fn measured(plan: Plan, binding: Arc<Binding>, measure: Box<dyn Measure>) -> Session {
        Session {
            start: plan,
            binding,
            judge: Judge::Measured(measure),
            done: Vec::new(),
            undone: Vec::new(),
            start_seconds: None,
        }
    }

    /// A session whose rewards are predicted.
    pub fn predicted(plan: Plan, binding: Arc<Binding>, model: Arc<dyn Predict>) -> Session {
        Session {
            start_seconds: model.seconds(&plan, &binding),
            start: plan,
            binding,
            judge: Judge::Predicted(model),
            done: Vec::new(),
            undone: Vec::new(),
        }
    }

    /// Where it began.
    pub fn start(&self) -> &Plan {
        &self.start
    }

    /// Where it stands.
    pub fn plan(&self) -> &Plan {
        self.done.last().map_or(&self.start, |stop| &stop.plan)
    }

    /// The mutations from the start to here, as text.
    pub fn path(&self) -> impl Iterator<Item = &str> {
        self.done.iter().map(|stop| stop.line.as_str())
    }

    /// The actions that are legal here.
    pub fn actions(&self) -> Vec<Mutation> {
        self.plan().legal()
    }

    /// What the loops look like here.
    pub fn features(&self) -> Vec<LoopFeatures> {
        features(self.plan(), &self.binding)
    }

    /// The reward of where it stands: 0 at the start.
    pub fn reward(&self) -> Option<f64> {
        self.done.last().map_or(Some(0.0), |stop| stop.step.reward)
    }

    /// Does an action, and judges what came of it.
    ///
    /// # Errors
    /// An action that is not legal here; the session stays where it is.
    pub fn apply(&mut self, action: &Mutation) -> Result<Step, MutationError> {
        self.apply_all(std::slice::from_ref(action))
    }

    /// Does several actions in a row, and judges only the last plan. They are undone one by one; those on the
    /// way have no reward.
    ///
    /// # Errors
    /// The first action that is not legal where it comes; the session stays where it was.
    pub fn apply_all(&mut self, actions: &[Mutation]) -> Result<Step, MutationError> {
        let mut stops = Vec::with_capacity(actions.len());
        let mut plan = self.plan().clone();
        for action in actions {
            let line = print_mutation(plan.graph(), action);
            plan = plan.mutate(action)?.plan;
            let step = Step {
                reward: None,
                outcome: None,
            };
            stops.push(Stop {
                line,
                plan: plan.clone(),
                step,
            });
        }
        let Some(last) = stops.last_mut() else {
            return Ok(Step {
                reward: self.reward(),
                outcome: None,
            });
        };
        let step = self.judge(&plan);
        last.step = step.clone();
        self.undone.clear();
        self.done.extend(stops);
        Ok(step)
    }

    /// Takes the last action back; `false` at the start.
    pub fn undo(&mut self) -> bool {
        let stop = self.done.pop();
        let some = stop.is_some();
        self.undone.extend(stop);
        some
    }

    /// Does again what was taken back last; `false` where nothing was.
    pub fn redo(&mut self) -> bool {
        let stop = self.undone.pop();
        let some = stop.is_some();
        self.done.extend(stop);
        some
    }

    fn judge(&mut self, plan: &Plan) -> Step {
        match &mut self.judge {
            Judge::Predicted(model) => {
                let seconds = model.seconds(plan, &self.binding);
                let reward = self.start_seconds.zip(seconds);
                Step {
                    reward: reward.map(|(start, seconds)| (start / seconds).log2()),
                    outcome: None,
                }
            }
            Judge::Measured(measure) => {
                let outcome = measure.measure(&Trial {
                    rival: Some(Version::Schedule(self.start.to_string())),
                    ..Trial::of(plan.to_string())
                });
                let timing = outcome.timing();
                let reward =
                    timing.and_then(|timing| Some((timing.rival? / timing.seconds).log2()));
                Step {
                    reward,
                    outcome: Some(outcome),
                }
            }
        }
    }
}
