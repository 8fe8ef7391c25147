//! Random programs, for as long as there is time.

use crate::blocking::Ran;
use crate::generate::random_case;
use crate::kit::{BATCH, oracle_for, spread};
use crate::oracle::Oracle;
use crate::pieces::{Piece, Pieces};
use crate::report::{Group, Outcome, Row};
use crate::shrink::{Shrunk, shrink, write_failure};
use crate::suite::{CheckOptions, Step};
use crate::verdict::Ready;
use loopwright_backend::Backend;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Runs of smaller programs for each failure.
const SHRINK_BUDGET: usize = 400;

/// Failures after which fuzzing stops: more of them are more of the same.
const MAX_FAILURES: usize = 8;

/// What fuzzing found.
#[derive(Default)]
pub(crate) struct Fuzzed {
    /// Programs that ran.
    pub(crate) programs: u64,
    /// Programs that ask for more than the backend can do.
    pub(crate) skipped: u64,
    pub(crate) rows: Vec<Row>,
    /// Rows that fail and are at the bottom of failures here.
    blocked_by: BTreeSet<String>,
}

struct Fuzzing<'a> {
    options: &'a CheckOptions,
    /// What fails or is blocked in the rows of ops, with the rows to blame.
    failing: &'a FxHashMap<Piece, Vec<String>>,
    failed_before: u64,
    found: Mutex<Fuzzed>,
}

/// Runs random programs until the deadline. What is made of something that fails on its own is blocked by
/// that.
pub(crate) fn fuzz(
    backend: &Backend,
    options: &CheckOptions,
    before: &[Ran],
    deadline: Instant,
) -> Fuzzed {
    let failing = before
        .iter()
        .filter_map(|ran| {
            let by = match &ran.row.outcome {
                Outcome::Failed { .. } => vec![ran.row.name()],
                Outcome::Blocked { by } => by.clone(),
                Outcome::Passed | Outcome::NotApplicable { .. } => return None,
            };
            Some((ran.tests?, by))
        })
        .collect();
    let failed = |ran: &&Ran| matches!(ran.row.outcome, Outcome::Failed { .. });
    let fuzzing = Fuzzing {
        options,
        failing: &failing,
        failed_before: before.iter().filter(failed).count() as u64,
        found: Mutex::default(),
    };
    let own = Oracle::new(backend.clone());
    let quick = options.fuzz_backend.clone().map(Oracle::new);
    spread(options.threads, &|at| {
        let limit = options.programs.unwrap_or(u64::MAX);
        let first = at * BATCH;
        let enough = fuzzing.found().rows.len() >= MAX_FAILURES;
        if first >= limit || enough || Instant::now() >= deadline {
            return false;
        }
        let oracle = oracle_for(at, options.seed, &own, quick.as_ref());
        let count = BATCH.min(limit - first);
        // Far apart, so that two seeds have no programs in common.
        let start = options.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let seeds = (0..count).map(|offset| start.wrapping_add(first + offset));
        fuzzing.batch(oracle, &seeds.collect::<Vec<_>>());
        fuzzing.tell();
        true
    });
    let found = fuzzing.found.into_inner();
    let mut found = found.unwrap_or_else(PoisonError::into_inner);
    found.rows.sort_by(|a, b| a.line.cmp(&b.line));
    let outcome = match (found.programs, found.blocked_by.is_empty()) {
        _ if !found.rows.is_empty() => None,
        (0, true) => None,
        (_, true) => Some(Outcome::Passed),
        (_, false) => Some(Outcome::Blocked {
            by: found.blocked_by.iter().cloned().collect(),
        }),
    };
    found.rows.extend(outcome.map(|outcome| Row {
        group: Group::Fuzzing,
        line: "random programs".to_owned(),
        column: String::new(),
        outcome,
        uses: Pieces::new(),
    }));
    found
}

impl Fuzzing<'_> {
    fn found(&self) -> MutexGuard<'_, Fuzzed> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self) {
        if let Some(progress) = &self.options.progress {
            let found = self.found();
            let step = Step {
                stage: Group::Fuzzing.name(),
                done: found.programs,
                total: self.options.programs,
                failed: self.failed_before + found.rows.len() as u64,
            };
            drop(found);
            progress(&step);
        }
    }

    fn batch(&self, oracle: &Oracle, seeds: &[u64]) {
        let capabilities = oracle.backend().capabilities();
        let mut prepared: Vec<(u64, Ready)> = Vec::new();
        let mut failed = Vec::new();
        let mut skipped = 0;
        for seed in seeds {
            let case = random_case(*seed);
            match oracle.prepare(&case).map(Ready::new) {
                Ok(ready) if ready.refusal(&capabilities).is_some() => skipped += 1,
                Ok(ready) => prepared.push((*seed, ready)),
                Err(mismatch) => failed.push((*seed, Shrunk { case, mismatch })),
            }
        }
        let kernels: Vec<_> = prepared.iter().map(|(_, ready)| &ready.prepared).collect();
        let results = oracle.check_batch(&kernels);
        let mut blocked_by = BTreeSet::new();
        for ((seed, ready), result) in prepared.iter().zip(results) {
            if let Err(mismatch) = result {
                let guilty = ready
                    .uses
                    .iter()
                    .filter_map(|piece| self.failing.get(piece));
                let guilty: Vec<String> = guilty.flatten().cloned().collect();
                if guilty.is_empty() {
                    let case = ready.prepared.case.clone();
                    failed.push((*seed, Shrunk { case, mismatch }));
                }
                blocked_by.extend(guilty);
            }
        }
        let mut found = self.found();
        found.programs += seeds.len() as u64 - skipped;
        found.skipped += skipped;
        found.blocked_by.extend(blocked_by);
        drop(found);
        for (seed, failure) in failed {
            self.report(oracle, seed, &failure);
        }
    }

    fn report(&self, oracle: &Oracle, seed: u64, failure: &Shrunk) {
        let small = shrink(oracle, &failure.case, &failure.mismatch, SHRINK_BUDGET);
        let device = oracle.backend().name();
        let name = format!("{device}-{seed}");
        let written = write_failure(&self.options.failure_dir, &name, device, &small);
        let (file, note) = match written {
            Ok(file) => (Some(file), String::new()),
            Err(error) => (None, format!(" ({error})")),
        };
        self.found().rows.push(Row {
            group: Group::Fuzzing,
            line: format!("program {seed}"),
            column: String::new(),
            outcome: Outcome::Failed {
                message: format!("{}{note}", small.mismatch),
                file,
            },
            uses: Pieces::new(),
        });
    }
}
