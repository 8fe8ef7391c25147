//! The kit: everything but random programs, prepared once and run on any number of backends.

use crate::behaviours::{BEHAVIOURS, Behaviour};
use crate::blocking::{Ran, resolve};
use crate::changes::CHANGES;
use crate::features::FEATURES;
use crate::kernels::{HandWritten, KERNELS};
use crate::misuse::{MISUSES, Misuse};
use crate::ops::{OpTest, op_tests, run_op_tests};
use crate::oracle::{Mismatch, Oracle};
use crate::pieces::{Piece, Pieces};
use crate::report::{Group, Outcome, Report, Row};
use crate::schedules::SCHEDULES;
use crate::suite::{CheckOptions, Step};
use crate::verdict::{Ready, Verdict};
use loopwright_backend::{Backend, Scheduler};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Programs compiled together: a C compiler's start-up is then a few hundredths of the whole.
pub(crate) const BATCH: u64 = 32;

/// One batch in so many is compiled by the backend itself, not by its faster stand-in.
const OWN_BATCHES: u64 = 6;

/// Every row of the suite but those of fuzzing, ready to be run.
///
/// Kernels are made when they are first needed, for the target of one backend, and can be run on all that
/// have the same one.
pub struct Kit {
    maker: Oracle,
    ops: OnceLock<Vec<OpTest>>,
    /// Whether there are only a few values for each op.
    abridged: bool,
    programs: Vec<Programs>,
}

/// Programs that are one row together: a feature, or a construct of schedules.
struct Programs {
    group: Group,
    name: &'static str,
    cases: Box<dyn Fn() -> Vec<crate::generate::Case> + Send + Sync>,
    ready: OnceLock<Result<Vec<Ready>, Mismatch>>,
}

/// Which row: its group, line and column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RowName<'a> {
    pub(crate) group: Group,
    pub(crate) line: &'a str,
    pub(crate) column: &'a str,
}

/// One run of the kit.
struct Run<'a> {
    kit: &'a Kit,
    oracle: Oracle,
    quick: Option<Oracle>,
    options: &'a CheckOptions,
    wanted: &'a Wanted<'a>,
    /// With their places in the report.
    found: Mutex<Vec<((Group, usize), Ran)>>,
}

/// Says which rows are run.
pub(crate) type Wanted<'a> = dyn Fn(RowName<'_>) -> bool + Sync + 'a;

impl Kit {
    /// The kit for backends that schedules are made for as for this one.
    pub fn new(backend: &Backend) -> Kit {
        let features = FEATURES.iter().map(|feature| Programs {
            group: Group::Features,
            name: feature.name,
            cases: Box::new(|| feature.cases()),
            ready: OnceLock::new(),
        });
        let schedules = SCHEDULES.iter().map(|construct| Programs {
            group: Group::Schedules,
            name: construct.name,
            cases: Box::new(|| construct.cases()),
            ready: OnceLock::new(),
        });
        let changes = CHANGES.iter().map(|changes| Programs {
            group: Group::Schedules,
            name: changes.name,
            cases: Box::new(|| changes.cases()),
            ready: OnceLock::new(),
        });
        Kit {
            maker: Oracle::new(backend.clone()),
            ops: OnceLock::new(),
            abridged: false,
            programs: features.chain(schedules).chain(changes).collect(),
        }
    }

    /// The same with a few values for each op: enough to see what runs and what does not.
    #[must_use]
    pub fn abridged(mut self) -> Kit {
        self.abridged = true;
        self
    }

    fn ops(&self) -> &[OpTest] {
        self.ops.get_or_init(|| {
            let mut tests = op_tests();
            if self.abridged {
                tests.iter_mut().for_each(OpTest::abridge);
            }
            tests
        })
    }

    /// Runs what the options ask for on a backend.
    pub fn check(&self, backend: &Backend, options: &CheckOptions) -> Report {
        let ran = resolve(self.run(backend, options, &|_| true));
        let rows = ran.into_iter().map(|ran| ran.row).collect();
        Report::new(backend.name(), rows)
    }

    /// Runs the rows that are wanted, of the groups in the options.
    pub(crate) fn run(
        &self,
        backend: &Backend,
        options: &CheckOptions,
        wanted: &Wanted<'_>,
    ) -> Vec<Ran> {
        let run = Run {
            kit: self,
            oracle: Oracle::new(backend.clone()),
            quick: options.fuzz_backend.clone().map(Oracle::new),
            options,
            wanted,
            found: Mutex::default(),
        };
        run.ops();
        run.kernels();
        run.programs();
        run.behaviours();
        run.misuses();
        let mut found = run
            .found
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        // As they are listed, whichever thread was faster.
        found.sort_by_key(|(place, _)| *place);
        found.into_iter().map(|(_, ran)| ran).collect()
    }

    /// How many rows there are.
    pub(crate) fn rows(&self, options: &CheckOptions) -> usize {
        self.ops().len()
            + KERNELS.len()
            + self.programs.len()
            + BEHAVIOURS.len() * options.schedulers.len()
            + MISUSES.len()
    }
}

/// Runs pieces of work, numbered from 0, on so many threads until one of them says that it is over.
pub(crate) fn spread(threads: usize, work: &(dyn Fn(u64) -> bool + Sync)) {
    let next = AtomicU64::new(0);
    let worker = || while work(next.fetch_add(1, Ordering::Relaxed)) {};
    std::thread::scope(|scope| {
        for _ in 1..threads.max(1) {
            scope.spawn(worker);
        }
        worker();
    });
}

/// Who does a batch: another seed leaves others to the backend itself.
pub(crate) fn oracle_for<'a>(
    batch: u64,
    seed: u64,
    own: &'a Oracle,
    quick: Option<&'a Oracle>,
) -> &'a Oracle {
    match quick {
        Some(quick) if !batch.wrapping_add(seed).is_multiple_of(OWN_BATCHES) => quick,
        _ => own,
    }
}

impl Run<'_> {
    fn is_wanted(&self, name: RowName<'_>) -> bool {
        self.options.groups.contains(&name.group) && (self.wanted)(name)
    }

    /// Notes what came of a row.
    fn note(
        &self,
        place: usize,
        name: RowName<'_>,
        tests: Option<Piece>,
        uses: Pieces,
        verdict: Verdict,
    ) {
        let (outcome, suspects) = match verdict {
            Verdict::Passed => (Outcome::Passed, Pieces::new()),
            Verdict::Failed { message, suspects } => (Outcome::failed(message), suspects),
            Verdict::NotApplicable(why) => (Outcome::NotApplicable { why }, Pieces::new()),
        };
        let ran = Ran {
            row: Row {
                group: name.group,
                line: name.line.to_owned(),
                column: name.column.to_owned(),
                outcome,
                uses,
            },
            tests,
            suspects,
        };
        self.found().push(((name.group, place), ran));
    }

    fn found(&self) -> std::sync::MutexGuard<'_, Vec<((Group, usize), Ran)>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, stage: &'static str, done: u64, total: u64) {
        if let Some(progress) = &self.options.progress {
            let found = self.found();
            let failed = |(_, ran): &&(_, Ran)| matches!(ran.row.outcome, Outcome::Failed { .. });
            let failed = found.iter().filter(failed).count() as u64;
            drop(found);
            progress(&Step {
                stage,
                done,
                total: Some(total),
                failed,
            });
        }
    }

    /// Runs rows one by one, on all threads.
    fn each(&self, stage: &'static str, total: usize, row: &(dyn Fn(usize) + Sync)) {
        let done = AtomicU64::new(0);
        spread(self.options.threads, &|at| {
            if at >= total as u64 {
                return false;
            }
            row(at as usize);
            let now = done.fetch_add(1, Ordering::Relaxed) + 1;
            self.tell(stage, now, total as u64);
            true
        });
    }

    fn ops(&self) {
        let groups = &self.options.groups;
        if ![Group::Ops, Group::Casts, Group::Folds]
            .iter()
            .any(|group| groups.contains(group))
        {
            return;
        }
        let tests = self.kit.ops().iter();
        let named: Vec<(String, &OpTest)> = tests.map(|test| (test.line(), test)).collect();
        fn name<'a>((line, test): &'a (String, &OpTest)) -> RowName<'a> {
            RowName {
                group: test.group(),
                line,
                column: test.dtype().name(),
            }
        }
        let wanted: Vec<(usize, &(String, &OpTest))> = named
            .iter()
            .enumerate()
            .filter(|(_, test)| self.is_wanted(name(test)))
            .collect();
        let pieces: Vec<_> = wanted.chunks(BATCH as usize).collect();
        let done = AtomicU64::new(0);
        spread(self.options.threads, &|at| {
            let Some(piece) = pieces.get(at as usize) else {
                return false;
            };
            let oracle = oracle_for(at, self.options.seed, &self.oracle, self.quick.as_ref());
            let maker = &self.kit.maker;
            let tests: Vec<&OpTest> = piece.iter().map(|(_, (_, test))| *test).collect();
            let verdicts = run_op_tests(oracle, maker, &tests);
            for ((place, test), verdict) in piece.iter().zip(verdicts) {
                let tested = test.1.tested(maker).as_ref();
                let uses = tested.map_or_else(|_| Pieces::new(), |ready| ready.uses.clone());
                self.note(*place, name(test), test.1.piece(), uses, verdict);
            }
            let now = done.fetch_add(piece.len() as u64, Ordering::Relaxed) + piece.len() as u64;
            self.tell("ops", now, wanted.len() as u64);
            true
        });
    }

    fn kernels(&self) {
        let wanted: Vec<(usize, &HandWritten)> = KERNELS
            .iter()
            .enumerate()
            .filter(|(_, kernel)| self.is_wanted(kernel.row()))
            .collect();
        self.each("kernels", wanted.len(), &|at| {
            let (place, kernel) = wanted[at];
            let (uses, verdict) = kernel.run(self.oracle.backend());
            self.note(place, kernel.row(), None, uses, verdict);
        });
    }

    fn programs(&self) {
        let wanted: Vec<(usize, &Programs)> = self
            .kit
            .programs
            .iter()
            .enumerate()
            .filter(|(_, programs)| self.is_wanted(programs.row()))
            .collect();
        self.each("programs", wanted.len(), &|at| {
            let (place, programs) = wanted[at];
            let (uses, verdict) = programs.run(&self.oracle, &self.kit.maker);
            self.note(place, programs.row(), None, uses, verdict);
        });
    }

    fn behaviours(&self) {
        let mut wanted: Vec<(usize, &Behaviour, Scheduler)> = Vec::new();
        for (place, behaviour) in BEHAVIOURS.iter().enumerate() {
            for scheduler in &self.options.schedulers {
                if self.is_wanted(behaviour.row(*scheduler)) {
                    wanted.push((place * 2, behaviour, *scheduler));
                }
            }
        }
        self.each("runtime", wanted.len(), &|at| {
            let (place, behaviour, scheduler) = wanted[at];
            let (uses, verdict) = behaviour.run(self.oracle.backend(), scheduler);
            let place = place + usize::from(scheduler == Scheduler::Threads);
            self.note(place, behaviour.row(scheduler), None, uses, verdict);
        });
    }

    fn misuses(&self) {
        let wanted: Vec<(usize, &Misuse)> = MISUSES
            .iter()
            .enumerate()
            .filter(|(_, misuse)| self.is_wanted(misuse.row()))
            .collect();
        self.each("errors", wanted.len(), &|at| {
            let (place, misuse) = wanted[at];
            let (uses, verdict) = misuse.run(self.oracle.backend());
            self.note(place, misuse.row(), None, uses, verdict);
        });
    }
}

impl Programs {
    fn row(&self) -> RowName<'static> {
        RowName {
            group: self.group,
            line: self.name,
            column: "",
        }
    }

    /// Runs what a backend can do of it; there must be something.
    fn run(&self, oracle: &Oracle, maker: &Oracle) -> (Pieces, Verdict) {
        let prepare = || {
            let mut ready: Vec<Ready> = Vec::new();
            for case in (self.cases)() {
                let mut known = ready.iter().map(|ready| &ready.prepared);
                let known = known.find(|known| known.case.has_program_of(&case));
                let prepared = match known {
                    Some(known) => maker.prepare_again(known, &case),
                    None => maker.prepare(&case),
                };
                ready.push(Ready::new(prepared?));
            }
            Ok::<Vec<Ready>, Mismatch>(ready)
        };
        let ready = match self.ready.get_or_init(prepare) {
            Ok(ready) => ready,
            Err(mismatch) => return (Pieces::new(), Verdict::from(mismatch)),
        };
        let uses = ready.iter().flat_map(|ready| ready.uses.iter().copied());
        let uses: Pieces = uses.collect();
        let capabilities = oracle.backend().capabilities();
        let mut refusal = None;
        let mut able = Vec::new();
        for ready in ready {
            match ready.refusal(&capabilities) {
                None => able.push(ready),
                Some(why) => refusal = refusal.or(Some(why)),
            }
        }
        if let (Some(why), true) = (refusal, able.is_empty()) {
            return (uses, Verdict::NotApplicable(why));
        }
        let prepared: Vec<_> = able.iter().map(|ready| &ready.prepared).collect();
        let mut failed: Option<String> = None;
        let mut suspects = Pieces::new();
        for (ready, result) in able.iter().zip(oracle.check_batch(&prepared)) {
            if let Err(mismatch) = result {
                failed = failed.or_else(|| Some(mismatch.to_string()));
                suspects.extend(&ready.uses);
            }
        }
        let verdict = match failed {
            None => Verdict::Passed,
            Some(message) => Verdict::Failed { message, suspects },
        };
        (uses, verdict)
    }
}
