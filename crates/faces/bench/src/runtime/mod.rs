//! The `runtime` suite: what it costs to hand work to threads, beside crossbeam's channels and rayon.
//!
//! The peers of this suite are libraries in the same process. A sample is a row of many operations, and
//! the sides take turns sample by sample. One file measures one layer: [`task_queue`] and [`parallel_loop`]
//! what threads cost by themselves, [`routine`] what stands on them.

mod parallel_loop;
mod routine;
mod task_queue;

use crate::peer::PeerError;
use crate::report::{Measured, Report, Row};
use crate::sample::{median, seconds};
use crate::{Against, BenchError, Options};
use std::collections::BTreeMap;

/// A library to compare with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Library {
    Crossbeam,
    Rayon,
}

impl Library {
    const ALL: [Library; 2] = [Library::Crossbeam, Library::Rayon];

    fn name(self) -> &'static str {
        match self {
            Library::Crossbeam => "crossbeam",
            Library::Rayon => "rayon",
        }
    }
}

/// What is measured.
struct Plan<'run> {
    peers: Vec<Library>,
    only: Option<&'run str>,
    samples: usize,
    say: &'run dyn Fn(&str),
}

impl Plan<'_> {
    fn wants(&self, work: &str) -> bool {
        let wanted = self.only.is_none_or(|only| work.contains(only));
        if wanted {
            (self.say)(work);
        }
        wanted
    }

    fn has(&self, peer: Library) -> bool {
        self.peers.contains(&peer)
    }
}

/// One side of a comparison: runs so many operations.
type Side<'run> = &'run mut dyn FnMut(usize) -> Result<(), BenchError>;

/// Our side and the peers' in turn; a row in nanoseconds per operation.
///
/// `goal` is the ratio to reach where there is a peer.
fn side_by_side(
    work: &str,
    operations: usize,
    samples: usize,
    goal: f64,
    ours: Side,
    peers: &mut [(Library, Side)],
) -> Result<Row, BenchError> {
    let sample = |side: &mut dyn FnMut(usize) -> Result<(), BenchError>| {
        // The workers of this side wake up, those of the other side go to sleep.
        side(operations / 10 + 1)?;
        let (time, outcome) = seconds(|| side(operations));
        outcome?;
        Ok::<f64, BenchError>(time * 1e9 / operations as f64)
    };
    let mut mine = Vec::with_capacity(samples);
    let mut theirs: Vec<Vec<f64>> = peers.iter().map(|_| Vec::new()).collect();
    for _ in 0..samples.max(3) {
        mine.push(sample(ours)?);
        for ((_, side), times) in peers.iter_mut().zip(&mut theirs) {
            times.push(sample(side)?);
        }
    }
    let medians: BTreeMap<String, f64> = peers
        .iter()
        .zip(&mut theirs)
        .map(|((peer, _), times)| (peer.name().to_owned(), median(times)))
        .collect();
    let goal = (!medians.is_empty()).then_some(goal);
    Ok(Row::new(work, "ns", median(&mut mine), medians, goal))
}

fn ours(work: &str, error: impl ToString) -> BenchError {
    BenchError::Ours {
        work: work.to_owned(),
        reason: error.to_string(),
    }
}

fn failed(peer: Library, error: impl ToString) -> BenchError {
    BenchError::Peer(PeerError::Failed {
        peer: peer.name().to_owned(),
        reason: error.to_string(),
    })
}

/// The libraries that are asked for.
fn libraries(against: &Against) -> Result<Vec<Library>, PeerError> {
    let Against::Named(names) = against else {
        return Ok(Library::ALL.to_vec());
    };
    let find = |name: &String| {
        let known = Library::ALL.into_iter().find(|peer| peer.name() == name);
        known.ok_or_else(|| {
            let known = Library::ALL.map(Library::name).join(", ");
            PeerError::Unknown(name.clone(), known)
        })
    };
    names.iter().map(find).collect()
}

/// Runs the suite; `say` hears about progress.
pub fn runtime_suite(options: &Options, say: &dyn Fn(&str)) -> Result<Report, BenchError> {
    let plan = Plan {
        peers: libraries(&options.against)?,
        only: options.only.as_deref(),
        samples: options.samples,
        say,
    };
    let mut measured = Measured::default();
    measured.take("tasks", task_queue::rows(&plan));
    measured.take("parallel loops", parallel_loop::rows(&plan));
    measured.take("routines", routine::rows(&options.device, &plan));
    let report = measured.into_report();
    // Nothing is made for work that is not asked for, so it can be known this late.
    match &options.only {
        Some(only) if report.rows.is_empty() && report.failed.is_empty() => {
            Err(BenchError::NoSuchWork(only.clone()))
        }
        _ => Ok(report),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_libraries_are_the_default_and_unknown_ones_are_named() {
        let named = |names: &[&str]| {
            let names = names.iter().map(|name| (*name).to_owned());
            libraries(&Against::Named(names.collect()))
        };
        let all = libraries(&Against::All).expect("the default");
        assert_eq!(all, Library::ALL);
        assert_eq!(named(&["rayon"]).expect("a known one"), [Library::Rayon]);
        assert_eq!(named(&[]).expect("none is asked for"), []);
        let error = named(&["numpy"]).expect_err("not of this suite");
        assert_eq!(
            error.to_string(),
            "unknown peer `numpy`; this suite knows [crossbeam, rayon]"
        );
    }

    #[test]
    fn every_row_runs_and_has_a_bar() {
        let options = Options {
            device: "interp".to_owned(),
            against: Against::All,
            only: None,
            samples: 3,
            threads: std::num::NonZero::<usize>::MIN,
            environments: std::path::PathBuf::new(),
        };
        let report = runtime_suite(&options, &|_| ()).expect("the suite runs");
        assert!(!report.rows.is_empty());
        for row in &report.rows {
            assert!(row.ours > 0.0, "{row:?}");
            assert_eq!(row.ratio.is_some(), row.peers.len() == 1, "{row:?}");
            assert!(row.goal.is_some(), "{row:?}");
        }
    }
}
