//! Measuring: a candidate is compiled, run, checked, and only then timed.

mod bench;
mod process;
mod protocol;
mod worker;

pub use bench::{Bench, Work};
pub(crate) use process::START;
pub use process::{Process, ProcessOptions};
pub use worker::serve;

use serde::{Deserialize, Serialize};

/// How a program runs.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Version {
    /// As the compiler runs it when nobody gives a schedule.
    Default,
    /// By a schedule, given as its text.
    Schedule(String),
}

/// What is to be measured, and how carefully.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Trial {
    /// The candidate.
    pub version: Version,
    /// What it is timed in turns with: two numbers from one stretch of time compare, two from different ones
    /// need not.
    pub rival: Option<Version>,
    /// For how many seconds it is timed, about.
    pub seconds: f64,
    /// Seconds after which one run of it is given up.
    pub run_limit: f64,
}

impl Trial {
    /// A schedule by itself, timed for a tenth of a second.
    pub fn of(schedule: impl Into<String>) -> Trial {
        Trial {
            version: Version::Schedule(schedule.into()),
            rival: None,
            seconds: 0.1,
            run_limit: 10.0,
        }
    }
}

/// What came of a candidate.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Outcome {
    /// It computes what it should, in this time.
    Time(Timing),
    /// It computes something else: the first difference.
    Wrong(String),
    /// It does not compile, or its run ends with an error.
    Refused(String),
    /// Its process ended; how.
    Crashed(String),
    /// It did not end in time; what it was doing.
    TimedOut(String),
}

impl Outcome {
    /// The time, if it counts.
    pub fn timing(&self) -> Option<&Timing> {
        match self {
            Outcome::Time(timing) => Some(timing),
            _ => None,
        }
    }

    /// One word for it.
    pub fn word(&self) -> &'static str {
        match self {
            Outcome::Time(_) => "timed",
            Outcome::Wrong(_) => "wrong",
            Outcome::Refused(_) => "refused",
            Outcome::Crashed(_) => "crashed",
            Outcome::TimedOut(_) => "timed out",
        }
    }
}

/// Times of a candidate, and of its rival in turns with it.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Timing {
    /// Seconds of a run, as a quarter of the samples stay below: without the turns of other processes.
    pub seconds: f64,
    /// The rival's, in seconds.
    pub rival: Option<f64>,
    /// How many were taken of each.
    pub samples: usize,
    /// The share of turns in which the candidate was the faster of the two.
    pub wins: f64,
}

/// What measures candidates: [`Process`] in a process of its own, which a candidate cannot harm us from;
/// [`Bench`] in this one, for those who trust their candidates.
pub trait Measure: Send {
    /// Measures one. Never fails: what is wrong with a candidate is its outcome.
    fn measure(&mut self, trial: &Trial) -> Outcome;
}

/// What a candidate is doing; which limit holds depends on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Phase {
    /// It is compiled.
    Compile,
    /// It runs, for the first time or to be timed.
    Run,
}
