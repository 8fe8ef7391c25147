//! Several sides measured in turn, so that a busy machine slows them all.

use crate::BenchError;
use crate::sample::median;
use std::time::Duration;

/// Something that runs a piece of work and can be timed.
pub(crate) trait Racer {
    fn name(&self) -> &str;

    /// Runs the work so many times in a row; the seconds of one run.
    fn time(&mut self, runs: usize) -> Result<f64, BenchError>;
}

/// How long to measure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Samples of each side.
    pub(crate) samples: usize,
    /// A side that would need more seconds for these gets fewer, but three.
    pub(crate) seconds: f64,
    /// Short runs are repeated within a sample until it takes so many seconds: what is measured then is work on
    /// warm caches, not the way back from the other sides.
    pub(crate) burst: f64,
    /// How long everybody waits before a sample, which then begins with a burst that is not counted. Threads of the side
    /// before spin for some time in case there is more to do, on cores that the next side needs; and those of this
    /// side are asleep then.
    pub(crate) rest: Option<Duration>,
}

/// The fewest samples that have a middle.
const FEWEST: usize = 3;

/// After so many bursts, those of several threads are as long as they will be.
const BURSTS: usize = 3;

/// What a side does in a race.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Share {
    samples: usize,
    runs: usize,
}

impl Limits {
    /// The part of a side whose run takes so many seconds.
    fn share(&self, run: f64) -> Share {
        // A clock that does not tell a run from nothing must not ask for endlessly many.
        let run = run.max(1e-7);
        let runs = (self.burst / run).ceil().max(1.0);
        let affordable = (self.seconds / (runs * run)) as usize;
        Share {
            samples: self.samples.min(affordable).max(FEWEST),
            runs: runs as usize,
        }
    }

    /// The part of a side.
    fn share_of(&self, side: &mut dyn Racer) -> Result<Share, BenchError> {
        // The second of two: what is done only once, such as recording a run for replay, is no measure.
        side.time(1)?;
        let Some(rest) = self.rest else {
            return Ok(self.share(side.time(1)?));
        };
        // The same for what threads do first after a rest, where single runs can take ten times as long as in a row.
        std::thread::sleep(rest);
        let mut share = self.share(side.time(1)?);
        for _ in 0..BURSTS {
            share = self.share(side.time(share.runs)?);
        }
        Ok(share)
    }
}

/// The median seconds of a run of each side. Sides that get fewer samples have them spread over the race.
pub(crate) fn race(sides: &mut [&mut dyn Racer], limits: &Limits) -> Result<Vec<f64>, BenchError> {
    let mut shares = Vec::with_capacity(sides.len());
    for side in sides.iter_mut() {
        shares.push(limits.share_of(*side)?);
    }
    let rounds = shares.iter().map(|share| share.samples).max().unwrap_or(0);
    let mut times: Vec<Vec<f64>> = sides.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds {
        for ((side, share), times) in sides.iter_mut().zip(&shares).zip(&mut times) {
            // As many samples as this part of the race is of the whole.
            if times.len() < (round + 1) * share.samples / rounds {
                if let Some(rest) = limits.rest {
                    std::thread::sleep(rest);
                    side.time(share.runs)?;
                }
                times.push(side.time(share.runs)?);
            }
        }
    }
    Ok(times.iter_mut().map(|times| median(times)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    /// Takes a fixed time a run and writes down what it is asked for.
    struct Scripted<'log> {
        name: &'static str,
        run: f64,
        log: &'log RefCell<Vec<(&'static str, usize)>>,
    }

    impl Racer for Scripted<'_> {
        fn name(&self) -> &str {
            self.name
        }

        fn time(&mut self, runs: usize) -> Result<f64, BenchError> {
            self.log.borrow_mut().push((self.name, runs));
            Ok(self.run)
        }
    }

    #[test]
    fn slow_sides_get_few_samples_spread_over_the_race_and_short_runs_are_repeated() {
        let log = RefCell::new(Vec::new());
        let side = |name, run| Scripted {
            name,
            run,
            log: &log,
        };
        let (mut fast, mut slow) = (side("fast", 1e-3), side("slow", 2.0));
        let limits = Limits {
            samples: 9,
            seconds: 3.0,
            burst: 4e-3,
            rest: None,
        };
        let medians = race(&mut [&mut fast, &mut slow], &limits).expect("nothing fails");
        assert_eq!(medians, [1e-3, 2.0]);
        let log = log.into_inner();
        let (warm, measured) = log.split_at(4);
        assert_eq!(warm, [("fast", 1), ("fast", 1), ("slow", 1), ("slow", 1)]);
        let fast = measured.iter().filter(|entry| entry.0 == "fast");
        assert_eq!(fast.collect::<Vec<_>>(), vec![&("fast", 4); 9]);
        let places: Vec<usize> = (0..measured.len())
            .filter(|at| measured[*at] == ("slow", 1))
            .collect();
        assert_eq!(places, [3, 7, 11], "the third, sixth and ninth round");
    }

    #[test]
    fn after_a_rest_a_side_gets_a_burst_that_is_not_counted() {
        let log = RefCell::new(Vec::new());
        let mut side = Scripted {
            name: "side",
            run: 1e-3,
            log: &log,
        };
        let limits = Limits {
            samples: 3,
            seconds: 3.0,
            burst: 4e-3,
            rest: Some(Duration::ZERO),
        };
        race(&mut [&mut side], &limits).expect("nothing fails");
        let mut runs = vec![1, 1];
        runs.extend([4; BURSTS + 2 * 3]);
        let asked: Vec<usize> = log.into_inner().iter().map(|entry| entry.1).collect();
        assert_eq!(asked, runs);
    }

    #[test]
    fn without_a_burst_a_sample_is_one_run() {
        let limits = Limits {
            samples: 41,
            seconds: f64::INFINITY,
            burst: 0.0,
            rest: None,
        };
        let expected = Share {
            samples: 41,
            runs: 1,
        };
        assert_eq!(limits.share(1e-6), expected);
        assert_eq!(limits.share(0.0), expected);
        assert_eq!(limits.share(100.0), expected);
    }
}
