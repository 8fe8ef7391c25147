//! The `cpu` suite: the work that tensor programs are made of, and whole networks, in the default schedule, beside
//! all peers, and beside what the machine can do at most.

mod networks;
mod symbolic;
mod tensors;

use crate::field::Field;
use crate::race::Limits;
use crate::report::{Measured, Report, Row};
use crate::work::{Counted, Fill, Work};
use crate::{BenchError, Options, cores, peer};
use loopwright_tune::roofline::Roofline;
use networks::networks;
use std::collections::BTreeMap;
use std::time::Duration;

/// Every row is at least as fast as the best peer.
const LEAST_RATIO: f64 = 1.0;

/// The geometric mean of our ratios to the best peer of each row.
const LEAST_GEOMEAN: f64 = 1.3;

/// The geometric mean of our ratios to each of the peers that search no schedules and call no libraries.
const LEAST_GEOMEAN_TO_COMPILERS: f64 = 3.0;

/// The peers which that is the bar for.
const COMPILERS: [&str; 2] = ["tinygrad", "loop_tool"];

/// So near do large matrix products come to the ceiling of multiply-adds.
const LEAST_SHARE: f64 = 0.95;

/// Those that do.
const LARGE_MATMULS: [&str; 4] = ["matmul 256", "matmul 512", "matmul 1024", "matmul 2048"];

/// Enough for 41 samples of 70 ms; the slowest pair of work and peer takes seconds for one run.
const SECONDS_PER_SIDE: f64 = 3.0;

/// A sample of the shortest work is then some hundred runs, and the clock and the first touch of cold caches
/// are lost in it.
const BURST_SECONDS: f64 = 2e-3;

/// With several threads: libraries of peers spin for some milliseconds when their work is done, that of numpy for 2^26
/// cycles of the clock, which are 32 ms at 2.1 GHz.
const REST: Duration = Duration::from_millis(50);

/// Of 4096x1024 `f32`, the array of the memory-bound rows.
const ARRAY_BYTES: f64 = 4096.0 * 1024.0 * 4.0;

/// A program of its own file, which peers know by the file's name.
macro_rules! work {
    ($name:literal, $file:ident, $counted:expr) => {
        work!($name, $file, $counted, Fill::plain)
    };
    ($name:literal, $file:ident, $counted:expr, $fill:expr) => {
        Work {
            name: $name.to_owned(),
            request: stringify!($file),
            text: include_str!(concat!(stringify!($file), ".lw")).into(),
            sizes: Vec::new(),
            fill: $fill,
            counted: $counted,
        }
    };
}

/// The work of the suite, in the order of the table: what programs are made of, then networks.
pub(crate) fn works() -> Vec<Work> {
    let copied = Counted::Copied(2.0 * ARRAY_BYTES);
    let read = Counted::Read(ARRAY_BYTES);
    let conv_flops = 2.0 * 64.0 * 64.0 * 9.0 * 56.0 * 56.0;
    let attention_flops = 4.0 * 8.0 * 512.0 * 512.0 * 64.0;
    // Two operations for each weight and example forward, two for the weight's gradient, and two for the gradient
    // of what comes in, which the first layer does not need.
    let mlp_flops = 128.0 * (4.0 * 784.0 * 512.0 + 6.0 * 512.0 * 512.0 + 6.0 * 512.0 * 10.0);
    let matmuls = [64, 128, 256, 512, 1024, 2048].map(Work::matmul);
    let others = [
        work!(
            "conv2d 64->64 56x56 3x3",
            conv_padded,
            Counted::Flops(conv_flops)
        ),
        work!(
            "attention 8x512x64",
            attention,
            Counted::Flops(attention_flops)
        ),
        work!("softmax 4096x1024", softmax, copied),
        work!("layernorm 4096x1024", layernorm, copied),
        work!("gelu 4096x1024", gelu, copied),
        work!("relu(x²+1) 4096x1024", relu_square, copied),
        work!("sum rows 4096x1024", sum_rows, read),
        work!("sum cols 4096x1024", sum_cols, read),
        work!(
            "MLP 784-512-512-10 step",
            mlp_step,
            Counted::Step(mlp_flops),
            mlp_weights
        ),
    ];
    matmuls
        .into_iter()
        .chain(others)
        .chain(networks())
        .collect()
}

/// Weights are small, so that ten scores do not drown each other.
fn mlp_weights(name: &str, _shape: &[usize]) -> Fill {
    Fill::Normal(if name.starts_with('w') { 0.05 } else { 1.0 })
}

/// Matrix products of `bf16`, a part of the list where the processor has instructions for them.
fn bf16_works() -> [Work; 3] {
    [1024, 2048, 4096].map(Work::bf16_matmul)
}

fn has_bf16() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        is_x86_feature_detected!("avx512bf16")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        false
    }
}

/// Runs the suite; `say` hears about progress.
pub fn cpu_suite(options: &Options, say: &dyn Fn(&str)) -> Result<Report, BenchError> {
    let limits = Limits {
        samples: options.samples,
        seconds: SECONDS_PER_SIDE,
        burst: BURST_SECONDS,
        rest: (options.threads.get() > 1).then_some(REST),
    };
    let only = options.only.as_deref();
    let mut works = works();
    // Who asks for them gets them anyway, from instructions that are there.
    if has_bf16() || only.is_some_and(|only| only.contains("bf16")) {
        works.extend(bf16_works());
    }
    let alone = Field::alone(options)?;
    options.check_only(|wanted| {
        for work in &works {
            wanted(&work.name);
        }
        let nothing = &mut Measured::default();
        tensors::rows(&alone, &limits, wanted, &|_| (), nothing);
        symbolic::rows(alone.ours(), &limits, wanted, &|_| (), nothing);
    })?;
    let known: Vec<&str> = peer::names().collect();
    let field = Field::new(options, &known, say)?;
    cores::pin(options.threads);
    // The ceilings are one thread's; several have others.
    let ceilings = (options.threads.get() == 1).then(|| {
        say("what this machine can do at most");
        Roofline::get()
    });
    let wanted = |name: &str| options.wants(name);
    let mut measured = Measured::default();
    let mut versions = BTreeMap::new();
    for work in works.into_iter().filter(|work| wanted(&work.name)) {
        say(&work.name);
        let name = work.name.clone();
        let row = field.race(&work, &limits, |_| true).map(|outcome| {
            let counted = work.counted;
            let goal = (!outcome.others.is_empty()).then_some(LEAST_RATIO);
            let near_the_ceiling = LARGE_MATMULS.contains(&work.name.as_str());
            let row = Row::new(
                work.name,
                counted.unit(),
                counted.figure(outcome.ours.median),
                outcome.others(|times| counted.figure(times.median)),
                goal,
            );
            let share = ceilings.and_then(|ceilings| counted.share(outcome.ours.median, &ceilings));
            versions.extend(outcome.versions);
            [
                row.with_roofline(share, near_the_ceiling.then_some(LEAST_SHARE))
                    .with_left_out(outcome.left_out),
            ]
        });
        measured.take(&name, row);
    }
    tensors::rows(&field, &limits, &wanted, say, &mut measured);
    symbolic::rows(field.ours(), &limits, &wanted, say, &mut measured);
    let bars = field.peers().map(|peer| {
        let goal = COMPILERS.contains(&peer);
        (peer, goal.then_some(LEAST_GEOMEAN_TO_COMPILERS))
    });
    let report = measured
        .into_report()
        .with_standings(bars)
        .in_order_of(peer::names());
    Ok(Report {
        roofline: ceilings,
        goal: report.geomean.and(Some(LEAST_GEOMEAN)),
        versions,
        ..report
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Against;

    #[test]
    fn every_program_is_right_and_has_a_name_of_its_own() {
        let works: Vec<Work> = works().into_iter().chain(bf16_works()).collect();
        for work in &works {
            let graph = work.graph().expect("the program is right");
            assert!(
                !graph.outputs().is_empty() && graph.bind(&[]).is_ok(),
                "{}: every size is a number",
                work.name
            );
        }
        let mut names: Vec<&str> = works.iter().map(|work| work.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), works.len(), "{names:?}");
        for large in LARGE_MATMULS {
            assert!(names.contains(&large), "{large}");
        }
    }

    #[test]
    fn a_row_has_its_figure_and_share_without_any_peer() {
        let options = Options {
            device: "interp".to_owned(),
            against: Against::Named(Vec::new()),
            only: Some("matmul 64".to_owned()),
            samples: 3,
            threads: std::num::NonZero::<usize>::MIN,
            environments: std::path::PathBuf::new(),
        };
        let report = cpu_suite(&options, &|_| ()).expect("the suite runs");
        let [row] = &report.rows[..] else {
            panic!("one row was asked for: {:?}", report.rows);
        };
        assert_eq!((row.work.as_str(), row.unit), ("matmul 64", "GFLOP/s"));
        assert!(row.ours > 0.0 && row.roofline.is_some(), "{row:?}");
        assert_eq!((row.ratio, row.goal), (None, None));
        assert!(report.standings.is_empty() && report.roofline.is_some());
    }
}
