//! The suite: everything fixed, then random programs for the rest of the time.

pub use loopwright_backend::{Backend, Scheduler};

use crate::behaviours::BEHAVIOURS;
use crate::blocking::{Ran, resolve};
use crate::changes::CHANGES;
use crate::features::{FEATURES, parsed};
use crate::fuzz::fuzz;
use crate::kernels::KERNELS;
use crate::kit::{Kit, Wanted};
use crate::misuse::MISUSES;
use crate::report::{Failure, Group, Outcome, Report, Row};
use crate::schedules::SCHEDULES;
use loopwright_backend::CompileOptions;
use loopwright_compile::Compiler;
use loopwright_graph::Array;
use loopwright_ops::DType;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Random programs of a backend's tests.
const TEST_PROGRAMS: u64 = 96;

/// How to check a backend.
#[derive(Clone)]
pub struct CheckOptions {
    /// What is checked.
    pub groups: Vec<Group>,
    /// The schedulers that the behaviours of the runtime are seen under.
    pub schedulers: Vec<Scheduler>,
    /// Seconds of fuzzing, after everything else has run to its end.
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
    pub fuzz_backend: Option<Backend>,
}

impl Default for CheckOptions {
    fn default() -> CheckOptions {
        CheckOptions {
            groups: Group::ALL.to_vec(),
            schedulers: vec![Scheduler::Sync, Scheduler::Threads],
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
    /// `ops`, `kernels`, `programs`, `runtime`, `errors` or `fuzzing`.
    pub stage: &'static str,
    /// Rows or programs that are done.
    pub done: u64,
    /// How many there are in all, where that is known.
    pub total: Option<u64>,
    /// How many failed, in all stages, blocked ones among them until the end.
    pub failed: u64,
}

/// Checks a backend: every op at every dtype, kernels, features, schedules, the runtime, errors, then random
/// programs until the time is over.
pub fn check(backend: Backend, options: &CheckOptions) -> Report {
    let kit = Kit::new(&backend);
    if let Err(why) = backend.availability() {
        let mut report = Report::new(backend.name(), Vec::new());
        report.skipped = (kit.rows(options) + 1) as u64;
        report.failures.push(Failure {
            name: "availability".to_owned(),
            message: format!("everything is skipped: {why}"),
            file: None,
        });
        return report;
    }
    let ran = resolve(kit.run(&backend, options, &|_| true));
    let fuzzed = options.groups.contains(&Group::Fuzzing).then(|| {
        let deadline = Instant::now() + Duration::from_secs(options.seconds);
        fuzz(&backend, options, &ran, deadline)
    });
    let mut rows: Vec<_> = ran.into_iter().map(|ran| ran.row).collect();
    let fuzzed = fuzzed.unwrap_or_default();
    rows.extend(fuzzed.rows);
    if !backend.capabilities().computes {
        rows.iter_mut().for_each(never_compared);
    }
    Report {
        programs: fuzzed.programs,
        programs_skipped: fuzzed.skipped,
        ..Report::new(backend.name(), rows)
    }
}

/// A row about values does not pass on a backend that computes none: what ran was not compared with anything.
fn never_compared(row: &mut Row) {
    let about_values = match row.group {
        Group::Ops | Group::Casts | Group::Folds | Group::Kernels => true,
        Group::Features | Group::Schedules | Group::Fuzzing => true,
        Group::Runtime | Group::Errors => false,
    };
    if about_values && row.outcome == Outcome::Passed {
        row.outcome = Outcome::NotApplicable {
            why: "the backend computes nothing: it was compiled and run, and no value was compared"
                .to_owned(),
        };
    }
}

/// The names of a group's rows, as [`conformance_tests!`](crate::conformance_tests) lists them; none for
/// those of ops and random programs.
pub fn row_names(group: Group) -> Vec<&'static str> {
    match group {
        Group::Kernels => KERNELS.iter().map(|row| row.name).collect(),
        Group::Features => FEATURES.iter().map(|row| row.name).collect(),
        Group::Schedules => {
            let constructs = SCHEDULES.iter().map(|row| row.name);
            constructs
                .chain(CHANGES.iter().map(|row| row.name))
                .collect()
        }
        Group::Runtime => BEHAVIOURS.iter().map(|row| row.name).collect(),
        Group::Errors => MISUSES.iter().map(|row| row.name).collect(),
        Group::Ops | Group::Casts | Group::Folds | Group::Fuzzing => Vec::new(),
    }
}

/// Runs the row of this name on a backend, for [`conformance_tests!`](crate::conformance_tests).
///
/// # Panics
/// If the backend is wrong, or there is no such row.
pub fn assert_row(backend: Backend, group: Group, name: &str) {
    assert!(
        row_names(group).contains(&name),
        "there is no row `{name}` of {group}"
    );
    let options = one_by_one(&[group]);
    assert_rows(&backend, &options, &|row| row.line == name);
}

/// Sees whether a behaviour of the runtime holds, for [`conformance_tests!`](crate::conformance_tests).
///
/// # Panics
/// If it does not, or there is no such behaviour.
pub fn assert_behaviour(backend: Backend, name: &str, scheduler: Scheduler) {
    let names = row_names(Group::Runtime);
    assert!(names.contains(&name), "there is no behaviour `{name}`");
    let options = CheckOptions {
        schedulers: vec![scheduler],
        ..one_by_one(&[Group::Runtime])
    };
    assert_rows(&backend, &options, &|row| row.line == name);
}

/// Runs every op of so many operands at every dtype on a backend, for
/// [`conformance_tests!`](crate::conformance_tests).
///
/// # Panics
/// If the backend is wrong.
pub fn assert_ops(backend: Backend, operands: usize) {
    let chosen = |line: &str| loopwright_ops::Op::from_name(line).map(|op| op.arity());
    let options = one_by_one(&[Group::Ops]);
    assert_rows(&backend, &options, &|row| {
        chosen(row.line) == Some(operands)
    });
}

/// Runs all rows of a group on a backend, for [`conformance_tests!`](crate::conformance_tests).
///
/// # Panics
/// If the backend is wrong.
pub fn assert_group(backend: Backend, group: Group) {
    assert_rows(&backend, &one_by_one(&[group]), &|_| true);
}

/// Runs a fixed number of random programs, for [`conformance_tests!`](crate::conformance_tests).
///
/// # Panics
/// If the backend is wrong.
pub fn assert_random_programs(backend: Backend) {
    let directory = tempfile::tempdir().expect("there is room for a directory");
    let options = CheckOptions {
        seconds: 3600,
        programs: Some(TEST_PROGRAMS),
        failure_dir: directory.path().to_owned(),
        ..one_by_one(&[Group::Fuzzing])
    };
    let fuzzed = fuzz(
        &backend,
        &options,
        &[],
        Instant::now() + Duration::from_secs(options.seconds),
    );
    let rows = fuzzed.rows.into_iter().map(|row| Ran {
        row,
        tests: None,
        suspects: crate::Pieces::new(),
    });
    complain(&rows.collect::<Vec<_>>(), true);
}

/// Tests run at the same time anyway.
fn one_by_one(groups: &[Group]) -> CheckOptions {
    CheckOptions {
        groups: groups.to_vec(),
        threads: 1,
        ..CheckOptions::default()
    }
}

/// Runs some rows. If any fail, the rows of what they are made of say whether they are blocked.
fn assert_rows(backend: &Backend, options: &CheckOptions, wanted: &Wanted<'_>) {
    let kit = Kit::new(backend);
    let mut ran = kit.run(backend, options, wanted);
    let own = ran.len();
    let mut known: BTreeSet<String> = ran.iter().map(|ran| ran.row.name()).collect();
    loop {
        let failed = ran
            .iter()
            .filter(|ran| matches!(ran.row.outcome, Outcome::Failed { .. }));
        let suspects = failed.flat_map(|ran| ran.suspects.iter().map(ToString::to_string));
        let suspects: BTreeSet<String> = suspects.filter(|name| !known.contains(name)).collect();
        if suspects.is_empty() {
            break;
        }
        let options = one_by_one(&[Group::Ops, Group::Casts]);
        ran.extend(kit.run(backend, &options, &|row| {
            suspects.contains(&format!("{} {}", row.line, row.column))
        }));
        known.extend(suspects);
    }
    let mut resolved = resolve(ran);
    resolved.truncate(own);
    let blocked = |ran: &Ran| matches!(ran.row.outcome, Outcome::Blocked { .. });
    let begun = !resolved.iter().any(blocked) || copies(backend);
    complain(&resolved, begun);
}

/// Whether a backend can copy an array. One that cannot has not begun, and nothing of it should look well.
fn copies(backend: &Backend) -> bool {
    let graph = parsed("copy", "input x: f32[i=4]\noutput y = x\n");
    let compiler = Compiler::new(backend.clone(), CompileOptions::default());
    let array = Array::from_f64(DType::F32, &[4], &[1.0, 2.0, 3.0, 4.0]);
    let run = || -> Option<()> {
        let program = compiler.compile(&graph, None).ok()?;
        let mut run = program.bind(&[]).ok()?;
        run.give("x", array.ok()?).ok()?;
        run.run().ok()
    };
    run().is_some()
}

/// Says what is blocked or does not apply, and panics with what fails. What is blocked fails, too, where a
/// backend has not `begun`.
fn complain(rows: &[Ran], begun: bool) {
    let mut failures = Vec::new();
    for Ran { row, .. } in rows {
        match &row.outcome {
            Outcome::Passed => {}
            Outcome::Failed { message, .. } => {
                failures.push(format!("{}: {message}", row.name()));
            }
            Outcome::Blocked { by } if begun => {
                eprintln!("BLOCKED: {} by {}", row.name(), by.join(", "));
            }
            Outcome::Blocked { by } => failures.push(format!(
                "{}: blocked by {}; this backend does not even copy an array yet",
                row.name(),
                by.join(", ")
            )),
            Outcome::NotApplicable { why } => {
                eprintln!("NOT APPLICABLE: {}: {why}", row.name());
            }
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {} rows fail:\n{}",
        failures.len(),
        rows.len(),
        failures.join("\n")
    );
}

/// Makes the conformance suite the tests of a backend's crate with one line:
/// `conformance_tests!(make_backend())`, where the expression gives `Option<Backend>` and has said why if it
/// gives `None`.
///
/// There is one test for each kernel, feature, construct of schedules and misuse, one for each behaviour of the runtime
/// under each scheduler, and a few for the tables of ops and for random programs. What does not apply to the
/// backend, or is blocked by an op that fails its own test, passes and says so.
#[macro_export]
macro_rules! conformance_tests {
    ($make:expr) => {
        fn conformance_backend() -> Option<$crate::suite::Backend> {
            $make
        }

        $crate::conformance_tests! { @kernels }

        $crate::conformance_tests! { @rows features Features:
            matrix_product broadcast reductions accumulators arg_reductions scans sorting gather
            scatter padding convolution pooling concatenation views_of_views reshapes
            indices_and_sizes constants random_numbers random_numbers_by_counter normal_numbers
            one_hot_contraction casts states shifted_state softmax
            empty_and_single
        }

        $crate::conformance_tests! { @rows schedules Schedules:
            serial_loop split_with_tail nested_splits reordered_loops interleaved_splits vectorize
            vectorize_with_tail vectorize_along_a_stride vectorized_reduction unroll
            unrolled_outer_loop parallel parallel_blocks parallel_pair parallel_tiles
            parallel_rows_behind_a_panel reduction_outside
            reduction_in_the_middle split_reduction register_tile inline step_in_scratch
            shared_loops shared_blocks fused_elements scan_in_blocks
            state_read_before_it_is_written split_with_tail_then_swap tails_three_levels_deep
            symbolic_tails_three_deep merge_undoes_split packing packing_in_an_inner_loop padding
            more_and_less_reuse steps_in_another_order layout_of_an_intermediate annotations
            loops_added_and_removed staged_lanes staged_blocks stages_of_a_stage reuse_maximised
            inner_loops_unrolled
        }

        $crate::conformance_tests! { @rows errors Errors:
            unknown_kernel too_few_arguments too_many_arguments arguments_of_another_kind
            arrays_that_do_not_fit beyond_capabilities works_after_a_failure dropped_while_another_runs
        }

        mod runtime {
            $crate::conformance_tests! { @behaviours sync Sync }
            $crate::conformance_tests! { @behaviours threads Threads }
        }

        mod tables {
            use super::conformance_backend;
            use $crate::Group;
            use $crate::suite::{assert_group, assert_ops, assert_random_programs};

            #[test]
            fn ops_of_one_operand() {
                if let Some(backend) = conformance_backend() {
                    assert_ops(backend, 1);
                }
            }

            #[test]
            fn ops_of_two_operands() {
                if let Some(backend) = conformance_backend() {
                    assert_ops(backend, 2);
                }
            }

            #[test]
            fn ops_of_three_operands() {
                if let Some(backend) = conformance_backend() {
                    assert_ops(backend, 3);
                }
            }

            #[test]
            fn casts() {
                if let Some(backend) = conformance_backend() {
                    assert_group(backend, Group::Casts);
                }
            }

            #[test]
            fn folds() {
                if let Some(backend) = conformance_backend() {
                    assert_group(backend, Group::Folds);
                }
            }

            #[test]
            fn random_programs() {
                if let Some(backend) = conformance_backend() {
                    assert_random_programs(backend);
                }
            }
        }
    };
    (@kernels) => {
        $crate::conformance_tests! { @rows kernels Kernels:
            loops_branches_and_arrays parallel_loops_capture_what_they_use
            work_items_of_a_grid_of_one atomics_add_up_in_parallel
            every_atomic_gives_the_value_before structs_and_calls vectors_in_structs matrix_tiles
            comparisons_become_lanes constants_compute_in_their_own_type
        }
    };
    (@behaviours $module:ident $scheduler:ident) => {
        mod $module {
            $crate::conformance_tests! { @tests Runtime |backend, name| {
                    let scheduler = $crate::suite::Scheduler::$scheduler;
                    $crate::suite::assert_behaviour(backend, name, scheduler);
                } super::super::conformance_backend;
                values_come_back zeroed_arrays_are_zero neighbours_are_left_alone slices_are_views
                scratch_is_reused constants_are_shared memory_is_given_back
                the_plan_is_what_is_used host_arrays_are_adopted_or_refused children_share_arrays
                linked_twice_is_linked_once states_persist statics_are_captured
                several_sizes_from_one_compile batches_compile_together parts_are_delegated schedules_are_set
                stores_are_logged
                work_runs_in_order a_full_queue_drops_nothing reads_wait_for_writes
                writes_wait_for_reads streams_wait_for_events a_failure_stays_on_its_stream
                many_threads_at_once copies_between_streams copies_between_devices merges_by_copy
            }
        }
    };
    (@rows $module:ident $group:ident: $($name:ident)*) => {
        mod $module {
            $crate::conformance_tests! { @tests $group |backend, name| {
                    $crate::suite::assert_row(backend, $crate::Group::$group, name);
                } super::conformance_backend;
                $($name)*
            }
        }
    };
    (@tests $group:ident |$backend:ident, $name:ident| $body:block $make:path; $($row:ident)*) => {
        $(
            #[test]
            fn $row() {
                if let Some($backend) = $make() {
                    let $name = stringify!($row);
                    $body
                }
            }
        )*

        /// The list in the macro is the whole list.
        #[test]
        fn no_row_is_forgotten() {
            let here = [$(stringify!($row)),*];
            let all = $crate::suite::row_names($crate::Group::$group);
            assert_eq!(here.as_slice(), all.as_slice());
        }
    };
}

/// Those of [`conformance_tests!`](crate::conformance_tests) that run kernels written by hand, alone:
/// `kernel_tests!(make_backend())`. For a backend that is tested in more than one setting.
#[macro_export]
macro_rules! kernel_tests {
    ($make:expr) => {
        fn conformance_backend() -> Option<$crate::suite::Backend> {
            $make
        }

        $crate::conformance_tests! { @kernels }
    };
}
