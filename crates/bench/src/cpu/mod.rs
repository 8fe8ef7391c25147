//! The `cpu` suite: the work that tensor programs are made of, in the default schedule, beside tinygrad and
//! loop_tool, and beside what the machine can do at most.

use crate::field::Field;
use crate::race::Limits;
use crate::report::{Report, Row};
use crate::work::{Counted, Work};
use crate::{BenchError, Options};
use loopwright_roofline::Roofline;

/// A row may be slower than the best peer by so much.
const LEAST_RATIO: f64 = 0.9;

/// The geometric mean of our ratios to each peer.
const LEAST_GEOMEAN: f64 = 3.0;

/// Enough for 41 samples of 70 ms; the slowest pair of work and peer takes seconds for one run.
const SECONDS_PER_SIDE: f64 = 3.0;

/// A sample of the shortest work is then some hundred runs, and the clock and the first touch of cold caches
/// are lost in it.
const BURST_SECONDS: f64 = 2e-3;

/// Of 4096x1024 `f32`, the array of the memory-bound rows.
const ARRAY_BYTES: f64 = 4096.0 * 1024.0 * 4.0;

/// A program of its own file, which peers know by the file's name.
macro_rules! work {
    ($name:literal, $file:ident, $counted:expr) => {
        Work {
            name: $name.to_owned(),
            request: stringify!($file),
            text: include_str!(concat!(stringify!($file), ".lw")).into(),
            counted: $counted,
        }
    };
}

/// The work of the suite, in the order of the table.
fn works() -> Vec<Work> {
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
            Counted::Step(mlp_flops)
        ),
    ];
    matmuls.into_iter().chain(others).collect()
}

/// Runs the suite; `say` hears about progress.
pub fn cpu_suite(options: &Options, say: &dyn Fn(&str)) -> Result<Report, BenchError> {
    let field = Field::new(options, say)?;
    // The ceilings are one thread's; several have others.
    let ceilings = (options.threads.get() == 1).then(|| {
        say("what this machine can do at most");
        Roofline::get()
    });
    let limits = Limits {
        samples: options.samples,
        seconds: SECONDS_PER_SIDE,
        burst: BURST_SECONDS,
    };
    let only = options.only.as_deref();
    let mut rows = Vec::new();
    for work in works() {
        if only.is_some_and(|only| !work.name.contains(only)) {
            continue;
        }
        say(&work.name);
        let outcome = field.race(&work, &limits)?;
        let counted = work.counted;
        let goal = (!outcome.others.is_empty()).then_some(LEAST_RATIO);
        let row = Row::new(
            work.name,
            counted.unit(),
            counted.figure(outcome.ours.median),
            outcome.others(|times| counted.figure(times.median)),
            goal,
        );
        let share = ceilings.map(|ceilings| counted.share(outcome.ours.median, &ceilings));
        rows.push(row.with_roofline(share));
    }
    let report = Report::new(rows).with_standings(field.peers(), LEAST_GEOMEAN);
    Ok(Report {
        roofline: ceilings,
        ..report
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_is_right_and_has_a_name_of_its_own() {
        let works = works();
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
    }

    #[test]
    fn a_row_has_its_figure_and_share_without_any_peer() {
        let options = Options {
            device: "interp".to_owned(),
            against: Vec::new(),
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
