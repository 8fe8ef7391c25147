//! Every kind of row can fail, and capabilities decide what applies.

mod support;

use loopwright_backend::{
    Argument, Backend, BackendError, Capabilities, CompileOptions, Describe, Executable,
    KernelBackend,
};
use loopwright_conformance::changes::CHANGES;
use loopwright_conformance::generate::Case;
use loopwright_conformance::schedules::SCHEDULES;
use loopwright_conformance::{CheckOptions, Group, Outcome, Report, Row, check};
use loopwright_interp::Interp;
use loopwright_kernel::Module;
use loopwright_ops::{DType, Op};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An interpreter with other capabilities, or other manners.
struct Other {
    capabilities: Capabilities,
    manners: Manners,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Manners {
    /// As it should be.
    Good,
    /// Kernels end as soon as they begin.
    Lazy,
    /// Calls that do not fit are taken for granted.
    Careless,
    /// It panics when it compiles.
    Panicking,
}

impl Describe for Other {
    fn name(&self) -> &str {
        "other"
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities.clone()
    }
}

impl KernelBackend for Other {
    fn compile(
        &self,
        module: &Module,
        options: &CompileOptions,
    ) -> Result<Arc<dyn Executable>, BackendError> {
        assert!(
            self.manners != Manners::Panicking,
            "this backend does not feel well"
        );
        Ok(Arc::new(Manner {
            inner: Interp.compile(module, options)?,
            manners: self.manners,
        }))
    }
}

struct Manner {
    inner: Arc<dyn Executable>,
    manners: Manners,
}

impl Executable for Manner {
    unsafe fn run(&self, kernel: &str, arguments: &mut [Argument<'_>]) -> Result<(), BackendError> {
        match self.manners {
            Manners::Lazy => Ok(()),
            // SAFETY: as the caller states.
            Manners::Careless => unsafe { self.inner.run(kernel, arguments) }.or(Ok(())),
            // SAFETY: as the caller states.
            Manners::Good | Manners::Panicking => unsafe { self.inner.run(kernel, arguments) },
        }
    }

    fn code(&self) -> String {
        self.inner.code()
    }
}

fn other(capabilities: Capabilities, manners: Manners) -> Backend {
    Backend::kernel_backend(Other {
        capabilities,
        manners,
    })
}

fn checked(backend: Backend, groups: &[Group]) -> Report {
    let options = CheckOptions {
        groups: groups.to_vec(),
        seconds: 600,
        programs: Some(64),
        ..CheckOptions::default()
    };
    check(backend, &options)
}

fn names<'a>(rows: impl Iterator<Item = &'a Row>) -> Vec<String> {
    rows.map(Row::name).collect()
}

fn passed(report: &Report) -> Vec<String> {
    let passed = |row: &&Row| row.outcome == Outcome::Passed;
    names(report.rows.iter().filter(passed))
}

#[test]
fn what_computes_nothing_fails_wherever_values_count() {
    let groups = [
        Group::Kernels,
        Group::Features,
        Group::Schedules,
        Group::Runtime,
    ];
    let report = checked(other(Capabilities::default(), Manners::Lazy), &groups);
    // These are about memory and plans alone.
    let expected = [
        "the_plan_is_what_is_used sync",
        "the_plan_is_what_is_used threads",
    ];
    assert_eq!(passed(&report), expected, "no kernel ran");
}

#[test]
fn what_says_that_it_does_not_compute_must_not() {
    let capabilities = Capabilities {
        computes: false,
        ..Capabilities::default()
    };
    let groups = [Group::Ops, Group::Features, Group::Schedules];
    let report = checked(other(capabilities.clone(), Manners::Good), &groups);
    assert!(report.failed > 500, "{}", report.failed);
    let failure = &report.failures[0].message;
    assert!(failure.contains("memory is not as it was"), "{failure}");
    let groups = Group::ALL.into_iter();
    let groups: Vec<Group> = groups.filter(|group| *group != Group::Errors).collect();
    let report = checked(other(capabilities, Manners::Lazy), &groups);
    assert_eq!(report.failures, [], "it does what it says");
    // What is about values was run and never compared, so it is not counted as passed.
    let about_values = |row: &&Row| !matches!(row.group, Group::Runtime | Group::Errors);
    let mut about_values = report.rows.iter().filter(about_values);
    assert!(about_values.all(|row| row.outcome != Outcome::Passed));
    assert!(report.skipped > 1000 && report.programs == 64);
}

#[test]
fn calls_that_do_not_fit_must_be_refused() {
    let careless = other(Capabilities::default(), Manners::Careless);
    let report = checked(careless, &[Group::Errors]);
    let failed = report.failures.iter().map(|failure| failure.name.as_str());
    let expected = [
        "unknown_kernel",
        "too_few_arguments",
        "too_many_arguments",
        "arguments_of_another_kind",
        "works_after_a_failure",
    ];
    assert_eq!(failed.collect::<Vec<_>>(), expected);
}

#[test]
fn a_panic_is_a_failure_and_the_rest_goes_on() {
    let panicking = other(Capabilities::default(), Manners::Panicking);
    let report = checked(
        panicking,
        &[Group::Kernels, Group::Schedules, Group::Runtime],
    );
    assert_eq!(passed(&report), [""; 0]);
    for failure in &report.failures {
        let message = &failure.message;
        assert!(
            message.contains("it panicked: this backend does not feel well"),
            "{message}"
        );
    }
}

#[test]
fn capabilities_decide_what_applies() {
    let capabilities = Capabilities {
        dtypes: vec![DType::Bool, DType::I32, DType::I64, DType::U64, DType::F32],
        missing_ops: vec![Op::Exp],
        vector_lanes: 1,
        max_params: Some(6),
        ..Capabilities::without_groups()
    };
    let report = checked(other(capabilities, Manners::Good), &Group::ALL);
    assert_eq!(
        (report.failed, report.blocked),
        (0, 0),
        "{:?}",
        report.failures
    );
    let why = |name: &str| match report.row(name).map(|row| &row.outcome) {
        Some(Outcome::NotApplicable { why }) => why.clone(),
        found => panic!("`{name}` does not apply, but is {found:?}"),
    };
    assert!(why("add f64").contains("computes with f64"));
    assert!(why("cast to i8 from f32").contains("computes with i8"));
    assert!(why("exp f32").contains("the op `exp`"));
    assert!(why("softmax").contains("the op `exp`"));
    assert!(why("vectorize").contains("lanes"));
    // In one plain loop instead of vectors.
    for name in [
        "add f32",
        "tanh f32",
        "beyond_capabilities",
        "matrix_product",
    ] {
        let outcome = report.row(name).map(|row| &row.outcome);
        assert_eq!(outcome, Some(&Outcome::Passed), "{name}");
    }
    assert_eq!(report.programs + report.programs_skipped, 64);
    assert!(report.programs_skipped > 0 && report.programs > 0);
}

/// The interpreter, counting the kernels that it compiles.
struct Counting(Arc<AtomicUsize>);

impl Describe for Counting {
    fn name(&self) -> &str {
        "counting"
    }
}

impl KernelBackend for Counting {
    fn compile(
        &self,
        module: &Module,
        options: &CompileOptions,
    ) -> Result<Arc<dyn Executable>, BackendError> {
        self.0.fetch_add(module.functions.len(), Ordering::Relaxed);
        Interp.compile(module, options)
    }
}

#[test]
fn a_program_is_compiled_once_for_all_its_sizes() {
    let kernels = Arc::new(AtomicUsize::new(0));
    let backend = Backend::kernel_backend(Counting(Arc::clone(&kernels)));
    let report = checked(backend, &[Group::Schedules]);
    assert_eq!(report.failures, []);
    let rows = SCHEDULES.iter().map(|construct| construct.cases());
    let rows: Vec<Vec<Case>> = rows.chain(CHANGES.iter().map(|row| row.cases())).collect();
    let (mut runs, mut programs) = (0, 0);
    for cases in &rows {
        runs += cases.len();
        let program = |case: &Case| (case.graph.clone(), case.schedule.clone(), case.arithmetic);
        let mut known = Vec::new();
        for case in cases {
            if !known.contains(&program(case)) {
                known.push(program(case));
            }
        }
        programs += known.len();
    }
    assert_eq!(report.passed, rows.len() as u64);
    assert!(runs > 3 * programs, "{runs} runs of {programs} programs");
    assert_eq!(
        kernels.load(Ordering::Relaxed),
        programs,
        "kernels of {programs} programs with a schedule, in {runs} runs"
    );
}

#[test]
fn structs_are_a_capability() {
    let groups = [Group::Kernels, Group::Features, Group::Errors];
    let structs = ["structs_and_calls", "vectors_in_structs"];
    for takes in [true, false] {
        let capabilities = Capabilities {
            structs: takes,
            ..Capabilities::default()
        };
        let report = checked(other(capabilities, Manners::Good), &groups);
        assert_eq!(report.failures, []);
        for name in structs {
            let outcome = report.row(name).map(|row| &row.outcome);
            match (takes, outcome) {
                (true, Some(Outcome::Passed)) => {}
                (false, Some(Outcome::NotApplicable { why })) => {
                    let expected = "it has structs, and the backend does not take them";
                    assert!(why.starts_with(expected), "{why}");
                }
                (_, found) => panic!("`{name}`, structs {takes}: {found:?}"),
            }
        }
        let refused = report.row("beyond_capabilities").map(|row| &row.outcome);
        let is_asked = refused == Some(&Outcome::Passed);
        assert_eq!(
            is_asked, !takes,
            "without structs there is something to refuse"
        );
    }
}

#[test]
fn a_table_has_a_mark_for_every_row() {
    let without_sub = support::interp().refusing(|module| {
        let has = loopwright_conformance::pieces(module);
        let sub = |piece: &loopwright_conformance::Piece| {
            matches!(piece, loopwright_conformance::Piece::Op(Op::Sub, _))
        };
        has.iter().any(sub).then(|| BackendError::Unsupported {
            backend: "interp".to_owned(),
            kernel: "program".to_owned(),
            reason: "there is no `sub`".to_owned(),
        })
    });
    let report = checked(without_sub, &[Group::Ops, Group::Schedules]);
    let tables = report.tables();
    let groups: Vec<Group> = tables.iter().map(|table| table.group).collect();
    assert_eq!(groups, [Group::Ops, Group::Schedules]);
    assert!(!tables[0].is_plain());
    let lines = |at: usize, names: &[&str]| -> Vec<String> {
        let text = tables[at].to_string();
        let name = |line: &&str| names.contains(&line.split(' ').next().unwrap_or_default());
        text.lines().filter(name).map(str::to_owned).collect()
    };
    assert_eq!(
        lines(0, &["ops", "sub", "sqrt"]),
        [
            "ops        bool  i8  i16  i32  i64  u8  u16  u32  u64  f8e4m3  f8e5m2  f16  bf16  f32  f64",
            "sub              F   F    F    F    F   F    F    F    F       F       F    F     F    F",
            "sqrt                                                   b       b       b    b     b    b",
        ]
    );
    assert_eq!(
        lines(1, &["serial_loop", "split_with_tail"]),
        [
            "serial_loop                      .",
            "split_with_tail                  b",
        ]
    );
}
