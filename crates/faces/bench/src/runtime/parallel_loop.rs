//! A loop in two halves: our fork-join pool beside rayon's `join`, on two threads each.

use super::{Library, Plan, failed, ours, side_by_side};
use crate::BenchError;
use crate::report::Row;
use loopwright_threads::{ForkJoin, Pinning};
use std::hint::black_box;
use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};

const THREADS: NonZero<usize> = NonZero::new(2).expect("two is not zero");

/// No more than the peer.
const GOAL: f64 = 1.0;

/// Elements in each half, and how many loops are a sample: some hundred microseconds to milliseconds.
const WORKS: [(usize, usize); 4] = [(0, 20_000), (1_000, 1_000), (10_000, 200), (100_000, 20)];

pub(super) fn rows(plan: &Plan) -> Result<Vec<Row>, BenchError> {
    let works = WORKS.map(|(elements, loops)| {
        let name = match elements {
            0 => "parallel loop, empty".to_owned(),
            _ => format!("parallel loop, sum of 2 x {elements}"),
        };
        (name, elements, loops)
    });
    let works: Vec<_> = works
        .into_iter()
        .filter(|(name, ..)| plan.wants(name))
        .collect();
    let with_rayon = plan.has(Library::Rayon);
    let samples = plan.samples;
    let measure = || -> Result<Vec<Row>, BenchError> {
        let row = |(name, elements, loops): &(String, usize, usize)| {
            measured(name, *elements, *loops, samples, with_rayon)
        };
        works.iter().map(row).collect()
    };
    if !with_rayon {
        return measure();
    }
    // `join` is cheapest from inside the pool, so all is measured there; the other thread of the pool
    // sleeps while ours is measured.
    rayon::ThreadPoolBuilder::new()
        .num_threads(THREADS.get())
        .build()
        .map_err(|error| failed(Library::Rayon, error))?
        .install(measure)
}

fn measured(
    work: &str,
    elements: usize,
    loops: usize,
    samples: usize,
    with_rayon: bool,
) -> Result<Row, BenchError> {
    let pool = ForkJoin::new(THREADS, Pinning::Free).map_err(|error| ours(work, error))?;
    let values: Vec<f64> = (0..2 * elements).map(|at| (at % 101) as f64).collect();
    let (first, second) = values.split_at(elements);
    let halves = [first, second];
    let expected = halves.map(sum);
    let sums = [const { AtomicU64::new(0) }; 2];
    let mut mine = |loops: usize| {
        for _ in 0..loops {
            pool.run(2, &|range| {
                for half in range {
                    sums[half].store(sum(halves[half]).to_bits(), Ordering::Relaxed);
                }
            });
        }
        let sums = sums
            .each_ref()
            .map(|sum| f64::from_bits(sum.load(Ordering::Relaxed)));
        if sums == expected {
            Ok(())
        } else {
            Err(ours(work, "the sum is wrong"))
        }
    };
    let mut theirs = |loops: usize| {
        let mut sums = [0.0; 2];
        for _ in 0..loops {
            let (first, second) = rayon::join(|| sum(first), || sum(second));
            sums = [first, second];
        }
        if sums == expected {
            Ok(())
        } else {
            Err(failed(Library::Rayon, "the sum is wrong"))
        }
    };
    let mut peers: Vec<(Library, super::Side)> = Vec::new();
    if with_rayon {
        peers.push((Library::Rayon, &mut theirs));
    }
    side_by_side(work, loops, samples, GOAL, &mut mine, &mut peers)
}

/// One addition after the other, as a reduction that keeps its order has it.
fn sum(values: &[f64]) -> f64 {
    black_box(values).iter().sum()
}
