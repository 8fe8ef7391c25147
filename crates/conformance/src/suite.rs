//! The suite: conformance, then fuzzing for the rest of the time.

use crate::features::{FEATURES, feature};
use crate::generate::random_case;
use crate::ops::{OpTest, op_tests, run_op_tests};
use crate::oracle::{Mismatch, Oracle};
use crate::shrink::{Shrunk, shrink, write_failure};
use loopwright_backend::KernelBackend;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Fuzzed programs compiled together: a C compiler's start-up is then a few hundredths of the whole.
const BATCH: u64 = 32;

/// Runs of smaller programs for each failure.
const SHRINK_BUDGET: usize = 400;

/// Failures after which fuzzing stops: more of them are more of the same.
const MAX_FAILURES: usize = 8;

/// One batch in so many is compiled by the backend itself, not by its faster stand-in.
const OWN_BATCHES: u64 = 6;

/// How to check a backend.
#[derive(Clone)]
pub struct CheckOptions {
    /// Seconds of fuzzing, after conformance has run to its end.
    pub seconds: u64,
    /// At most so many fuzzed programs.
    pub programs: Option<u64>,
    /// Which programs fuzzing begins with.
    pub seed: u64,
    /// Threads to use.
    pub threads: usize,
    /// Where failing programs are written.
    pub failure_dir: PathBuf,
    /// Told of every test that has ended.
    pub progress: Option<Progress>,
    /// The same backend set to compile faster (for `cc`, one with a lower optimisation level), for most
    /// ops and most of the fuzzing; every sixth batch is done by the backend itself, which ones depends
    /// on the seed.
    pub fuzz_backend: Option<Arc<dyn KernelBackend>>,
}

impl Default for CheckOptions {
    fn default() -> CheckOptions {
        CheckOptions {
            seconds: 60,
            programs: None,
            seed: 0,
            threads: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            failure_dir: PathBuf::from("loopwright-failures"),
            progress: None,
            fuzz_backend: None,
        }
    }
}

/// Told how far the suite is; may be called from any of its threads.
pub type Progress = Arc<dyn Fn(&Step) + Send + Sync>;

/// How far the suite is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// `ops`, `features` or `fuzzing`.
    pub stage: &'static str,
    /// Tests or programs that are done.
    pub done: u64,
    /// How many there are in all, where that is known.
    pub total: Option<u64>,
    /// How many failed, in all stages.
    pub failed: u64,
}

/// What the suite found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// The backend.
    pub device: String,
    /// Tests that passed, all of fuzzing counting as one.
    pub passed: u64,
    /// Tests that failed, each failing program of fuzzing counting as one.
    pub failed: u64,
    /// Tests that could not run: all, where the backend is not available.
    pub skipped: u64,
    /// Programs that were fuzzed.
    pub programs: u64,
    /// What failed.
    pub failures: Vec<Failure>,
}

/// Something that failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The test, or the program's seed.
    pub name: String,
    /// What is wrong, and which stage is to blame.
    pub message: String,
    /// The smallest failing program, if it could be written.
    pub file: Option<PathBuf>,
}

/// Checks a backend: every op at every dtype, every feature, then random programs until the time is
/// over.
pub fn check(backend: Arc<dyn KernelBackend>, options: &CheckOptions) -> Report {
    let run = Run {
        oracle: Oracle::new(backend),
        options,
        report: Mutex::default(),
    };
    if let Err(why) = run.oracle.backend().availability() {
        let mut report = run.finish();
        report.skipped = (op_tests().len() + FEATURES.len() + 1) as u64;
        report.failures.push(Failure {
            name: "availability".to_owned(),
            message: format!("everything is skipped: {why}"),
            file: None,
        });
        return report;
    }
    run.ops();
    run.features();
    run.fuzz(Instant::now() + Duration::from_secs(options.seconds));
    run.finish()
}

/// Runs the feature of this name on a backend, for [`conformance_tests!`](crate::conformance_tests).
///
/// # Panics
/// If the backend is wrong, or there is no such feature.
pub fn assert_feature(backend: Arc<dyn KernelBackend>, name: &str) {
    let Some(feature) = feature(name) else {
        panic!("there is no feature `{name}`");
    };
    if let Err(mismatch) = feature.run(&Oracle::new(backend)) {
        panic!("{name}: {mismatch}");
    }
}

/// Runs every op at every dtype on a backend, for [`conformance_tests!`](crate::conformance_tests).
///
/// # Panics
/// If the backend is wrong.
pub fn assert_ops(backend: Arc<dyn KernelBackend>) {
    let options = CheckOptions::default();
    let run = Run {
        oracle: Oracle::new(backend),
        options: &options,
        report: Mutex::default(),
    };
    run.ops();
    let report = run.finish();
    let failures = report.failures.iter();
    let failures: Vec<String> = failures
        .map(|f| format!("{}: {}", f.name, f.message))
        .collect();
    assert!(
        failures.is_empty(),
        "{} ops are wrong:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

#[derive(Default)]
struct Counts {
    passed: u64,
    programs: u64,
    failures: Vec<Failure>,
}

struct Run<'a> {
    oracle: Oracle,
    options: &'a CheckOptions,
    report: Mutex<Counts>,
}

impl Run<'_> {
    fn finish(self) -> Report {
        let counts = self
            .report
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        Report {
            device: self.oracle.backend().name().to_owned(),
            passed: counts.passed,
            failed: counts.failures.len() as u64,
            skipped: 0,
            programs: counts.programs,
            failures: counts.failures,
        }
    }

    fn counts(&self) -> std::sync::MutexGuard<'_, Counts> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, name: &str, result: Result<(), Mismatch>) {
        let mut counts = self.counts();
        match result {
            Ok(()) => counts.passed += 1,
            Err(mismatch) => counts.failures.push(Failure {
                name: name.to_owned(),
                message: mismatch.to_string(),
                file: None,
            }),
        }
    }

    fn tell(&self, stage: &'static str, done: u64, total: Option<u64>) {
        if let Some(progress) = &self.options.progress {
            let failed = self.counts().failures.len() as u64;
            progress(&Step {
                stage,
                done,
                total,
                failed,
            });
        }
    }

    /// Runs pieces of work, numbered from 0, on all threads until one of them says that it is over.
    fn spread(&self, work: &(dyn Fn(u64) -> bool + Sync)) {
        let next = AtomicU64::new(0);
        let worker = || while work(next.fetch_add(1, Ordering::Relaxed)) {};
        std::thread::scope(|scope| {
            for _ in 1..self.options.threads.max(1) {
                scope.spawn(worker);
            }
            worker();
        });
    }

    fn ops(&self) {
        let tests = op_tests();
        let pieces: Vec<&[OpTest]> = tests.chunks(BATCH as usize).collect();
        let quick = self.quick();
        let done = AtomicU64::new(0);
        self.spread(&|at| {
            let Some(piece) = pieces.get(at as usize) else {
                return false;
            };
            let oracle = self.oracle_for(at, quick.as_ref());
            for (test, result) in piece.iter().zip(run_op_tests(oracle, piece)) {
                self.note(&test.name, result);
            }
            let now = done.fetch_add(piece.len() as u64, Ordering::Relaxed) + piece.len() as u64;
            self.tell("ops", now, Some(tests.len() as u64));
            true
        });
    }

    fn quick(&self) -> Option<Oracle> {
        self.options.fuzz_backend.clone().map(Oracle::new)
    }

    /// Who does a batch: another seed leaves others to the backend itself.
    fn oracle_for<'b>(&'b self, batch: u64, quick: Option<&'b Oracle>) -> &'b Oracle {
        match quick {
            Some(quick)
                if !batch
                    .wrapping_add(self.options.seed)
                    .is_multiple_of(OWN_BATCHES) =>
            {
                quick
            }
            _ => &self.oracle,
        }
    }

    fn features(&self) {
        let done = AtomicU64::new(0);
        self.spread(&|at| {
            let Some(feature) = FEATURES.get(at as usize) else {
                return false;
            };
            self.note(feature.name, feature.run(&self.oracle));
            let now = done.fetch_add(1, Ordering::Relaxed) + 1;
            self.tell("features", now, Some(FEATURES.len() as u64));
            true
        });
    }

    fn fuzz(&self, deadline: Instant) {
        let quick = self.quick();
        let failed_before = self.counts().failures.len();
        self.spread(&|at| {
            let limit = self.options.programs.unwrap_or(u64::MAX);
            let first = at * BATCH;
            let enough = self.counts().failures.len() - failed_before >= MAX_FAILURES;
            if first >= limit || enough || Instant::now() >= deadline {
                return false;
            }
            let oracle = self.oracle_for(at, quick.as_ref());
            let count = BATCH.min(limit - first);
            // Far apart, so that two seeds have no programs in common.
            let start = self.options.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let seeds = (0..count).map(|offset| start.wrapping_add(first + offset));
            self.fuzz_batch(oracle, &seeds.collect::<Vec<_>>());
            let programs = self.counts().programs;
            self.tell("fuzzing", programs, self.options.programs);
            true
        });
        let mut counts = self.counts();
        if counts.failures.len() == failed_before && counts.programs > 0 {
            counts.passed += 1;
        }
    }

    fn fuzz_batch(&self, oracle: &Oracle, seeds: &[u64]) {
        let mut prepared = Vec::new();
        let mut failed = Vec::new();
        for seed in seeds {
            let case = random_case(*seed);
            match oracle.prepare(&case) {
                Ok(ready) => prepared.push((*seed, ready)),
                Err(mismatch) => failed.push((*seed, Shrunk { case, mismatch })),
            }
        }
        let (own, ready): (Vec<u64>, Vec<_>) = prepared.into_iter().unzip();
        let results = oracle.check_batch(&ready);
        for ((seed, ready), result) in own.into_iter().zip(ready).zip(results) {
            if let Err(mismatch) = result {
                let case = ready.case;
                failed.push((seed, Shrunk { case, mismatch }));
            }
        }
        self.counts().programs += seeds.len() as u64;
        for (seed, failure) in failed {
            self.report_failure(oracle, seed, &failure);
        }
    }

    fn report_failure(&self, oracle: &Oracle, seed: u64, failure: &Shrunk) {
        let small = shrink(oracle, &failure.case, &failure.mismatch, SHRINK_BUDGET);
        let device = oracle.backend().name();
        let name = format!("{device}-{seed}");
        let written = write_failure(&self.options.failure_dir, &name, device, &small);
        let (file, note) = match written {
            Ok(file) => (Some(file), String::new()),
            Err(error) => (None, format!(" ({error})")),
        };
        self.counts().failures.push(Failure {
            name: format!("program {seed}"),
            message: format!("{}{note}", small.mismatch),
            file,
        });
    }
}

/// Makes the conformance suite the tests of a backend's crate, one test for each feature, one for all
/// ops, with one line: `conformance_tests!(make_backend)`, where `make_backend` is an expression that
/// gives `Option<Arc<dyn KernelBackend>>` and has said why if it gives `None`.
#[macro_export]
macro_rules! conformance_tests {
    ($make:expr) => {
        $crate::conformance_tests! { @features $make;
            matrix_product broadcast reductions accumulators arg_reductions scans sorting gather
            scatter padding convolution pooling concatenation views_of_views reshapes
            indices_and_sizes constants random_numbers random_numbers_by_counter normal_numbers
            one_hot_contraction casts states shifted_state softmax
            empty_and_single
        }

        #[test]
        fn every_op_at_every_dtype() {
            if let Some(backend) = $make {
                $crate::suite::assert_ops(backend);
            }
        }
    };
    (@features $make:expr; $($feature:ident)*) => {
        $(
            #[test]
            fn $feature() {
                if let Some(backend) = $make {
                    $crate::suite::assert_feature(backend, stringify!($feature));
                }
            }
        )*

        /// The list of features in the macro is the whole list.
        #[test]
        fn no_feature_is_forgotten() {
            let here = [$(stringify!($feature)),*];
            let all: Vec<&str> = $crate::features::FEATURES.iter().map(|f| f.name).collect();
            assert_eq!(here.as_slice(), all.as_slice());
        }
    };
}
