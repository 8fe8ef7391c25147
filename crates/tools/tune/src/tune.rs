//! The search as a whole: in a given time, with everything it finds on disk at once.

use crate::error::TuneError;
use crate::features::StepView;
use crate::header::{Gave, Header};
use crate::inputs::random_inputs;
use crate::measure::{
    Measure, Outcome, Process, ProcessOptions, START, Timing, Trial, Version, Work,
};
use crate::predict::CostModel;
use crate::reference::Expected;
use crate::roofline::Roofline;
use crate::search::{Candidate, Search, SearchOptions};
use crate::store::{Log, Record, ScheduleKey, ScheduleStore, Tried, write_atomically};
use loopwright_graph::rewrite::rewrite;
use loopwright_graph::{Binding, Graph};
use loopwright_looptree::{Plan, parse_schedule};
use loopwright_scheduler::default_schedule;
use loopwright_text::Source;
use serde::Serialize;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A candidate is a new best if it takes less than this share of the best's time, twice.
const BETTER: f64 = 0.98;

/// The winner is kept if it takes less than this share of the default's time at the end.
const KEPT: f64 = 0.99;

/// What to tune, for how long, and where to keep it.
#[derive(Clone, Debug)]
pub struct Options {
    /// The work.
    pub work: Work,
    /// The program's name, for people.
    pub name: String,
    /// The text of a schedule to begin with; else the default's.
    pub start: Option<String>,
    /// The time for everything.
    pub time: Duration,
    /// When that began.
    pub begun: Instant,
    /// Where the best schedule is written.
    pub out: PathBuf,
    /// Where the log is written.
    pub log: PathBuf,
    /// Whether the log is gone on with.
    pub resume: bool,
    /// The cache that the winner is kept in.
    pub cache: Option<PathBuf>,
    /// The program that measures; it calls [`crate::serve`].
    pub worker: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Ends it early, with the best so far.
    pub stop: Arc<AtomicBool>,
    /// What the search's choices hang on.
    pub seed: u64,
}

/// Why a search ended that was not ended by anybody.
pub const TIME_IS_UP: &str = "the time is up";

/// How many times as long as the first runs of the default the one candidate may take that is always tried.
const FIRST_CANDIDATE: u32 = 6;

/// How far it is.
#[derive(Clone, Debug)]
pub enum Progress {
    /// What the program should give is known: elements in the sample, and elements there are.
    Reference {
        /// In the sample.
        sampled: usize,
        /// In all results.
        elements: usize,
    },
    /// The default was measured: seconds of a run.
    Default(f64),
    /// A log was gone on with: how many candidates it had, and the best's time as a share of the default's.
    Resumed(usize, f64),
    /// A candidate was measured.
    Tried {
        /// So far.
        counts: Counts,
        /// How it ended.
        outcome: Outcome,
        /// The best so far, in seconds.
        best: f64,
        /// What the model took the candidate's time to be, as a share of the default's.
        predicted: f64,
    },
    /// A new best: seconds, and the same as a share of the default's.
    Better {
        /// Seconds of a run.
        seconds: f64,
        /// Its share of the default's time.
        relative: f64,
        /// The mutations that lead to it.
        path: Vec<String>,
    },
    /// The winner and the default are measured once more.
    Confirming,
}

/// How candidates ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Counts {
    /// All of them.
    pub tried: usize,
    /// Those that were right and timed.
    pub timed: usize,
    /// Those that computed something else.
    pub wrong: usize,
    /// Those that did not compile.
    pub refused: usize,
    /// Those that took their process down.
    pub crashed: usize,
    /// Those that did not end.
    pub timed_out: usize,
}

impl Counts {
    fn count(&mut self, outcome: &Outcome) {
        self.tried += 1;
        let of = match outcome {
            Outcome::Time(_) => &mut self.timed,
            Outcome::Wrong(_) => &mut self.wrong,
            Outcome::Refused(_) => &mut self.refused,
            Outcome::Crashed(_) => &mut self.crashed,
            Outcome::TimedOut(_) => &mut self.timed_out,
        };
        *of += 1;
    }
}

/// What came of it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// Milliseconds of a run by default.
    pub before_ms: f64,
    /// Milliseconds of a run with the schedule that is kept.
    pub after_ms: f64,
    /// How many times faster that is.
    pub speedup: f64,
    /// The schedule that is kept.
    pub schedule: String,
    /// The file it is in.
    pub file: PathBuf,
    /// Whether the default was not beaten, and is what is kept.
    pub kept_default: bool,
    /// Whether winner and default were measured once more at the end. A winner that was not is not kept.
    pub confirmed: bool,
    /// How many times as fast as the default a winner was that could not be measured again, and was not kept.
    pub unconfirmed: Option<f64>,
    /// The mutations that lead from the start to it.
    pub found_by: Vec<String>,
    /// How candidates ended.
    pub counts: Counts,
    /// Operations of a run.
    pub flops: f64,
    /// Billions of operations in a second before.
    pub gflops_before: f64,
    /// The same after.
    pub gflops_after: f64,
    /// The shortest time that this machine's ceilings allow, in milliseconds; 0 where they say nothing of the
    /// device.
    pub roofline_ms: f64,
    /// Which share of the roofline is reached by default.
    pub roofline_share_before: f64,
    /// The same after.
    pub roofline_share: f64,
    /// Elements of the results in the sample that every candidate is checked with.
    pub sampled: usize,
    /// Why the search ended.
    pub ended: &'static str,
}

struct Best {
    version: Version,
    text: String,
    path: Vec<String>,
    /// Its time as a share of the default's.
    relative: f64,
}

/// The work as it stands while it is searched.
struct Tuning<'o> {
    options: &'o Options,
    process: Process,
    search: Search,
    log: Log,
    best: Best,
    header: Header,
    ceiling: Ceiling,
    default_seconds: f64,
    counts: Counts,
}

/// Tunes a program: in the time given, with the best so far on disk at any moment. One candidate is tried also where the
/// first runs took all of the time: a search that tries nothing has told nothing.
///
/// # Errors
/// Work that cannot be measured at all, and files that cannot be written. What is wrong with candidates is
/// none.
pub fn tune(options: &Options, tell: &mut dyn FnMut(&Progress)) -> Result<Report, TuneError> {
    let deadline = options.begun + options.time;
    let graph = Arc::new(options.work.graph()?);
    let binding = Arc::new(options.work.binding(&graph)?);
    let backend = options.work.backend()?;
    let target = backend.target();
    let inputs = random_inputs(&graph, &binding, options.work.seed)?;
    let (strict, seed) = (options.work.strict, options.work.seed);
    let expected_by = options.begun + options.time / 3;
    let expected = Expected::new(&graph, &binding, &inputs, strict, seed, expected_by)?;
    drop(inputs);
    let (sampled, elements) = expected.coverage();
    tell(&Progress::Reference { sampled, elements });

    let own = default_schedule(&graph, &target)?;
    let own = Plan::new(Arc::clone(&graph), own)?;
    // Where the compiler rewrites the program by itself, no schedule of the program says the same.
    let own_is_default = rewrite(&graph).1.is_empty();
    let start = match &options.start {
        None => own.clone(),
        Some(text) => {
            let source = Source::new("schedule", text.as_str());
            let schedule = parse_schedule(&source, &graph);
            let schedule = schedule.map_err(|error| TuneError::Program(error.render(&source)))?;
            Plan::new(Arc::clone(&graph), schedule)?
        }
    };
    let key = ScheduleKey::new(&graph, &binding, &backend, strict);
    let (log, records) = open_log(options, &key)?;
    let header = Header {
        program: options.name.clone(),
        sizes: sizes_text(&graph, &binding),
        device: device_text(&backend),
        seed: options.seed,
        flops: flops(&own, &binding),
    };
    // There is a valid file from here on, whatever happens; one that a search goes on with stays.
    if records.is_empty() || !options.out.exists() {
        write_atomically(&options.out, &header.file(&own.to_string(), &[], None))?;
    }
    let ceiling = Ceiling::new(&own, &binding, &backend);

    let compile_limit = (options.time / 4).clamp(Duration::from_secs(2), Duration::from_secs(15));
    let mut process = Process::start(
        ProcessOptions {
            program: options.worker.clone(),
            arguments: options.arguments.clone(),
            compile_limit,
            // A process that starts slowly on a busy machine takes from the search, and does not end it.
            deadline: deadline.max(Instant::now() + START),
            stop: Arc::clone(&options.stop),
        },
        options.work.clone(),
        expected,
    )?;
    let clock = Instant::now();
    let first = Trial {
        version: Version::Default,
        rival: None,
        seconds: (options.time.as_secs_f64() / 60.0).clamp(0.05, 0.5),
        run_limit: options.time.as_secs_f64() / 2.0,
    };
    let first_limit = compile_limit + options.time / 2;
    process.set_deadline(deadline.max(Instant::now() + first_limit));
    let default_seconds = match process.measure(&first) {
        Outcome::Time(timing) => timing.seconds,
        other => {
            let help = match other {
                Outcome::TimedOut(_) => "; give more time (`--seconds`), or smaller sizes",
                _ => "",
            };
            return Err(TuneError::Start {
                how: "as it is",
                reason: format!("{}{help}", reason(&other)),
            });
        }
    };
    // What it takes to have the default ready again, should the process be lost near the end.
    let prepared = clock.elapsed();
    tell(&Progress::Default(default_seconds));
    // What takes much longer to compile than the default is rarely worth the time.
    let most = options.time / 4;
    process.set_compile_limit((prepared * 4).max(Duration::from_secs(2)).min(most));

    let search_options = SearchOptions {
        binding: Arc::clone(&binding),
        model: Arc::new(CostModel::new(target)),
        target,
        strict,
        seed: options.seed,
    };
    let mut tuning = Tuning {
        options,
        header,
        ceiling,
        process,
        search: Search::new(start.clone(), search_options),
        log,
        best: Best {
            version: Version::Default,
            text: own.to_string(),
            path: Vec::new(),
            relative: 1.0,
        },
        default_seconds,
        counts: Counts::default(),
    };
    tuning.process.set_deadline(deadline);
    let resumed = tuning.replay(&graph, records);
    if resumed > 0 {
        tell(&Progress::Resumed(resumed, tuning.best.relative));
    }
    tuning.write_best()?;
    if start.to_string() != own.to_string() || !own_is_default {
        let candidate = Candidate {
            text: start.to_string(),
            plan: start,
            path: Vec::new(),
            predicted: 1.0,
        };
        tuning.try_one(candidate, tell)?;
    }
    // Time to measure winner and default once more, also where the process has to be started anew for it.
    let share = options.time.mul_f64(0.08);
    let share = share.clamp(Duration::from_millis(300), Duration::from_secs(3));
    let reserve = share + prepared.mul_f64(1.5);
    let mut ended = tuning.run(deadline - reserve.min(options.time / 2), tell)?;
    let mut deadline = deadline;
    if tuning.counts.tried == 0 && ended == TIME_IS_UP {
        // As many runs as a measurement of two versions takes, and as many again to confirm it.
        let allowance = (prepared * FIRST_CANDIDATE).max(Duration::from_secs(2));
        ended = tuning.try_first(Instant::now() + allowance, tell)?;
        deadline = deadline.max(Instant::now() + allowance);
    }
    tell(&Progress::Confirming);
    let Confirmed {
        before,
        after,
        kept_default,
        confirmed,
    } = tuning.confirm(deadline);
    let unconfirmed = (!confirmed).then_some(1.0 / tuning.best.relative);
    if kept_default {
        tuning.best = Best {
            version: Version::Default,
            text: own.to_string(),
            path: Vec::new(),
            relative: 1.0,
        };
    }
    let gave = Gave {
        before,
        after,
        share: tuning.ceiling.share(after),
    };
    let file = tuning
        .header
        .file(&tuning.best.text, &tuning.best.path, Some(gave));
    write_atomically(&options.out, &file)?;
    if let Some(root) = options.cache.as_ref().filter(|_| !kept_default) {
        let about = format!("schedule of {} on {}", options.name, options.work.device);
        ScheduleStore::open(root)?.put(&key, &about, &file)?;
    }
    Ok(Report {
        before_ms: before * 1e3,
        after_ms: after * 1e3,
        speedup: before / after,
        schedule: tuning.best.text,
        file: options.out.clone(),
        kept_default,
        confirmed,
        unconfirmed,
        found_by: tuning.best.path,
        counts: tuning.counts,
        flops: tuning.ceiling.flops,
        gflops_before: tuning.ceiling.flops / before / 1e9,
        gflops_after: tuning.ceiling.flops / after / 1e9,
        roofline_ms: tuning.ceiling.seconds * 1e3,
        roofline_share_before: tuning.ceiling.share(before),
        roofline_share: tuning.ceiling.share(after),
        sampled,
        ended,
    })
}

impl Tuning<'_> {
    /// Takes up what a log has; gives how many candidates that is.
    fn replay(&mut self, graph: &Arc<Graph>, records: Vec<Record>) -> usize {
        let mut trying: Option<String> = None;
        let mut lost: Vec<String> = Vec::new();
        let mut count = 0;
        for record in records {
            match record {
                Record::Begin { .. } => {}
                Record::Trying { schedule } => {
                    // Whoever searched was gone before this one came to an end.
                    lost.extend(trying.replace(schedule));
                }
                Record::Tried(tried) => {
                    trying = None;
                    count += 1;
                    self.search.avoid(&tried.schedule);
                    let source = Source::new("log", tried.schedule.as_str());
                    let plan = parse_schedule(&source, graph).ok();
                    let plan = plan.and_then(|plan| Plan::new(Arc::clone(graph), plan).ok());
                    let (Some(relative), Some(plan)) = (tried.relative, plan) else {
                        continue;
                    };
                    let candidate = Candidate {
                        plan,
                        text: tried.schedule.clone(),
                        path: tried.path.clone(),
                        predicted: relative,
                    };
                    self.search.learn(candidate, Some(relative));
                    if tried.best && relative < self.best.relative {
                        self.best = Best {
                            version: Version::Schedule(tried.schedule.clone()),
                            text: tried.schedule,
                            path: tried.path,
                            relative,
                        };
                    }
                }
            }
        }
        lost.extend(trying);
        lost.sort();
        // Once can be chance; what was being tried twice when the search was lost is not tried a third time.
        for pair in lost.windows(2).filter(|pair| pair[0] == pair[1]) {
            self.search.avoid(&pair[0]);
        }
        count
    }

    /// Measures candidates until the time is up; says why it ended.
    fn run(
        &mut self,
        until: Instant,
        tell: &mut dyn FnMut(&Progress),
    ) -> Result<&'static str, TuneError> {
        self.process.set_deadline(until);
        let mut usual = Duration::ZERO;
        let longest = self.options.time / 30;
        loop {
            if self.options.stop.load(Ordering::Relaxed) {
                return Ok("interrupted");
            }
            // One that would be cut off would cost the process in which the winner is ready.
            if Instant::now() + usual.min(longest) >= until {
                return Ok(TIME_IS_UP);
            }
            let Some(candidate) = self.search.propose() else {
                return Ok("nothing new is left to try");
            };
            let clock = Instant::now();
            self.try_one(candidate, tell)?;
            usual = match usual.is_zero() {
                true => clock.elapsed(),
                false => usual.mul_f64(0.8) + clock.elapsed().mul_f64(0.2),
            };
        }
    }

    /// Measures one candidate, for which there was no time; says why the search ended.
    fn try_first(
        &mut self,
        until: Instant,
        tell: &mut dyn FnMut(&Progress),
    ) -> Result<&'static str, TuneError> {
        let Some(candidate) = self.search.propose() else {
            return Ok("nothing new is left to try");
        };
        self.process.set_deadline(until);
        self.try_one(candidate, tell)?;
        Ok(match self.options.stop.load(Ordering::Relaxed) {
            true => "interrupted",
            false => TIME_IS_UP,
        })
    }

    fn trial(&self, version: Version, rival: Version, care: f64) -> Trial {
        let best = self.default_seconds * self.best.relative;
        Trial {
            version,
            rival: Some(rival),
            seconds: care * (best * 20.0).clamp(0.05, 0.3),
            run_limit: (best * 10.0).max(1.0),
        }
    }

    fn try_one(
        &mut self,
        candidate: Candidate,
        tell: &mut dyn FnMut(&Progress),
    ) -> Result<(), TuneError> {
        self.log.write(&Record::Trying {
            schedule: candidate.text.clone(),
        })?;
        let version = Version::Schedule(candidate.text.clone());
        let trial = self.trial(version.clone(), self.best.version.clone(), 1.0);
        let mut outcome = self.process.measure(&trial);
        // Nobody's fault: it was given up because the search ends.
        let over = self.options.stop.load(Ordering::Relaxed) || self.process.is_over();
        if over && matches!(outcome, Outcome::TimedOut(_)) {
            return Ok(());
        }
        let mut relative = outcome.timing().and_then(|timing| self.relative(timing));
        let mut better = relative.is_some_and(|relative| relative < BETTER * self.best.relative);
        if better {
            let again = self.trial(version.clone(), self.best.version.clone(), 3.0);
            outcome = self.process.measure(&again);
            let timing = outcome.timing().copied();
            relative = timing.and_then(|timing| self.relative(&timing));
            better = relative.is_some_and(|relative| relative < BETTER * self.best.relative)
                && timing.is_some_and(|timing| timing.wins > 0.6);
        }
        self.counts.count(&outcome);
        self.log.write(&Record::Tried(Tried {
            schedule: candidate.text.clone(),
            path: candidate.path.clone(),
            outcome: outcome.word().to_owned(),
            why: outcome.timing().is_none().then(|| reason(&outcome)),
            relative,
            best: better,
        }))?;
        if better && let Some(relative) = relative {
            self.best = Best {
                version,
                text: candidate.text.clone(),
                path: candidate.path.clone(),
                relative,
            };
            let seconds = self.default_seconds * relative;
            self.write_best()?;
            tell(&Progress::Better {
                seconds,
                relative,
                path: candidate.path.clone(),
            });
        }
        tell(&Progress::Tried {
            counts: self.counts,
            outcome,
            best: self.default_seconds * self.best.relative,
            predicted: candidate.predicted,
        });
        self.search.learn(candidate, relative);
        Ok(())
    }

    /// A time as a share of the default's: in turns with the best, whose share is known.
    fn relative(&self, timing: &Timing) -> Option<f64> {
        let rival = timing.rival?;
        (rival > 0.0).then(|| self.best.relative * timing.seconds / rival)
    }

    fn write_best(&self) -> Result<(), TuneError> {
        let before = self.default_seconds;
        let after = before * self.best.relative;
        let share = self.ceiling.share(after);
        let gave = Gave {
            before,
            after,
            share,
        };
        let file = self
            .header
            .file(&self.best.text, &self.best.path, Some(gave));
        write_atomically(&self.options.out, &file)
    }

    /// Measures winner and default once more, in turns.
    fn confirm(&mut self, deadline: Instant) -> Confirmed {
        let default = self.default_seconds;
        let kept = |before: f64, after: f64, confirmed: bool| Confirmed {
            before,
            after,
            kept_default: false,
            confirmed,
        };
        let not_beaten = |before: f64| Confirmed {
            kept_default: true,
            ..kept(before, before, true)
        };
        if self.best.version == Version::Default {
            return not_beaten(default);
        }
        // What was found and not measured again is told, and not kept: one lucky measurement is no speed.
        let found = Confirmed {
            kept_default: true,
            ..kept(default, default, false)
        };
        if self.options.stop.load(Ordering::Relaxed) {
            // Somebody is waiting for the end; the log has the winner, for whoever goes on.
            return found;
        }
        self.process.set_deadline(deadline);
        let left = deadline.saturating_duration_since(Instant::now());
        let trial = Trial {
            seconds: (left.as_secs_f64() * 0.85 - 10.0 * default).max(0.05),
            ..self.trial(self.best.version.clone(), Version::Default, 1.0)
        };
        match self.process.measure(&trial) {
            Outcome::Time(Timing {
                seconds,
                rival: Some(rival),
                ..
            }) if seconds < KEPT * rival => kept(rival, seconds, true),
            Outcome::Time(Timing { rival, .. }) => not_beaten(rival.unwrap_or(default)),
            Outcome::TimedOut(_) if self.process.is_over() => found,
            // It was right before, and is not now: not to be trusted.
            _ => not_beaten(default),
        }
    }
}

/// What the last look at winner and default said, in seconds.
struct Confirmed {
    before: f64,
    after: f64,
    kept_default: bool,
    confirmed: bool,
}

fn open_log(options: &Options, key: &ScheduleKey) -> Result<(Log, Vec<Record>), TuneError> {
    let begin = Record::Begin {
        key: key.as_str().to_owned(),
        program: options.name.clone(),
    };
    if options.resume && options.log.exists() {
        let (log, records) = Log::open(&options.log)?;
        match records.iter().find_map(|record| match record {
            Record::Begin { key, .. } => Some(key.clone()),
            _ => None,
        }) {
            Some(found) if found == key.as_str() => return Ok((log, records)),
            Some(_) => {
                return Err(TuneError::OtherLog {
                    path: options.log.clone(),
                });
            }
            // It was lost before its first line was whole.
            None => {}
        }
    }
    let mut log = Log::create(&options.log)?;
    log.write(&begin)?;
    Ok((log, Vec::new()))
}

fn reason(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Time(_) => "it was timed".to_owned(),
        Outcome::Wrong(why) => format!("it computes something else: {why}"),
        Outcome::Refused(why) => why.clone(),
        Outcome::Crashed(how) => format!("its process {how}"),
        Outcome::TimedOut(what) => format!("it took too long: {what}"),
    }
}

fn sizes_text(graph: &Graph, binding: &Binding) -> String {
    let sizes = graph.integers();
    let sizes = sizes.map(|(symbol, name, _)| format!("{name}={}", binding.value(symbol)));
    sizes.collect::<Vec<_>>().join(" ")
}

fn device_text(backend: &loopwright_backend::Backend) -> String {
    let target = backend.target();
    let processor = match backend.hardware() {
        loopwright_backend::Hardware::Cpu => {
            let name = processor();
            let name = name.as_deref().unwrap_or(std::env::consts::ARCH);
            format!(" on {name}")
        }
        _ => String::new(),
    };
    let threads = match target.threads {
        1 => "1 thread".to_owned(),
        threads => format!("{threads} threads"),
    };
    format!(
        "{}{processor}, vectors of {} bytes, {threads}",
        backend.name(),
        target.vector_bytes
    )
}

/// The processor's name, where the system tells it.
pub fn processor() -> Option<String> {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let mut lines = cpuinfo.lines();
    let (_, name) = lines.find_map(|line| line.strip_prefix("model name")?.split_once(':'))?;
    Some(name.trim().to_owned())
}

/// Operations of a run.
fn flops(plan: &Plan, binding: &Binding) -> f64 {
    let views = StepView::all(plan, binding);
    views.iter().map(|view| view.flops(0)).sum()
}

/// What the machine's ceilings allow.
struct Ceiling {
    flops: f64,
    seconds: f64,
}

impl Ceiling {
    fn new(plan: &Plan, binding: &Binding, backend: &loopwright_backend::Backend) -> Ceiling {
        let flops = flops(plan, binding);
        let graph = plan.graph();
        let outputs = graph.outputs().iter().map(|output| output.node);
        let updates = graph.updates().iter().map(|update| update.value);
        let bytes: f64 = graph
            .parameters()
            .chain(outputs)
            .chain(updates)
            .map(|node| {
                let elements = binding.elements(graph, node) as f64;
                elements * graph.node(node).dtype.bytes() as f64
            })
            .sum();
        let seconds = match backend.hardware() {
            loopwright_backend::Hardware::Cpu => {
                let roofline = Roofline::get();
                let threads = f64::from(backend.target().threads.max(1));
                let compute = flops / (roofline.flops_per_second * threads);
                compute.max(bytes / roofline.read_bytes_per_second.max(1.0))
            }
            _ => 0.0,
        };
        Ceiling { flops, seconds }
    }

    fn share(&self, seconds: f64) -> f64 {
        self.seconds / seconds
    }
}
