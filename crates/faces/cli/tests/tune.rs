//! `tune` from the command line, on backends with candidates that crash, never end, compute something else, or take long.
//!
//! This test has a `main` of its own: called with a verb it is the whole command line, with the backends `hazard` and `slow`
//! linked in, so that the process that measures has them, too.

use loopwright::backend::*;
use loopwright::looptree::{Annotation, LoopSpec};
use loopwright::ops::evaluate;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output, Stdio};
use std::time::{Duration, Instant};

/// Runs everything as it stands. A schedule with a split loop is faster than one without, which is what there is
/// to find. What is written out crashes, what is parallel never ends, and vectors compute something else: at once
/// all three, so that they would win if they were let.
struct Hazard;

register_backend!(-30, || Backend::loop_backend(Hazard));

impl Describe for Hazard {
    fn name(&self) -> &str {
        "hazard"
    }
}

impl LoopBackend for Hazard {
    fn compile(&self, program: &LoopProgram, _: &CompileOptions) -> LoopResult {
        let loops = |holds: &dyn Fn(&LoopSpec) -> bool| {
            let mut steps = program.schedule().steps.iter();
            steps.any(|step| step.loops.iter().any(holds))
        };
        let crashes = loops(&|spec| spec.annotation == Annotation::Unroll);
        let endless = loops(&|spec| spec.annotation == Annotation::Parallel);
        let wrong = loops(&|spec| spec.annotation == Annotation::Vectorize);
        let split = loops(&|spec| spec.step > 1);
        let program = program.clone();
        Ok(Box::new(move |memory: &mut LoopMemory<'_>| {
            if crashes {
                std::process::abort();
            }
            if endless {
                loop {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            if wrong {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(if split { 2 } else { 6 }));
            program.execute(memory, evaluate)
        }))
    }
}

/// Runs everything as it stands, and takes a good part of a short search for it.
struct Slow;

register_backend!(-31, || Backend::loop_backend(Slow));

impl Describe for Slow {
    fn name(&self) -> &str {
        "slow"
    }
}

impl LoopBackend for Slow {
    fn compile(&self, program: &LoopProgram, _: &CompileOptions) -> LoopResult {
        let program = program.clone();
        let slower = Path::new(SLOWER).exists();
        let pause = Duration::from_millis(if slower { 8000 } else { 200 });
        Ok(Box::new(move |memory: &mut LoopMemory<'_>| {
            std::thread::sleep(pause);
            program.execute(memory, evaluate)
        }))
    }
}

/// A file in the working directory that has the backend `slow` take longer than any search here.
const SLOWER: &str = "slower";

/// A file in the working directory that has processes that measure start late.
const LATE: &str = "late";

const PROGRAM: &str = "loopwright program 1
size N = 4
input a: f32[i=N, k=N]
input b: f32[k, j=N]
product = sum[k](a * b)
output y = max(product, 0)
";

/// A directory to work in.
struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let place = Place {
            directory: tempfile::tempdir().expect("a temporary directory"),
        };
        std::fs::write(place.path("p.lw"), PROGRAM).expect("the directory is ours");
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let own = std::env::current_exe().expect("this program");
        let mut command = Command::new(own);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("LOOPWRIGHT_") {
                command.env_remove(name);
            }
        }
        command
            .args(arguments)
            .current_dir(self.directory.path())
            .env("LOOPWRIGHT_CACHE_DIR", self.path("cache"))
            .env("XDG_CONFIG_HOME", self.path("personal"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("it starts")
    }

    fn tune(&self, seconds: &str, more: &[&str]) -> Value {
        let arguments = [
            "tune",
            "p.lw",
            "--device",
            "hazard",
            "--json",
            "--seconds",
            seconds,
        ];
        let output = self.run(&[&arguments, more].concat());
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "tune failed: {errors}");
        serde_json::from_slice(&output.stdout).expect("a document")
    }

    /// The schedule file is whole: the compiler takes it.
    fn check_schedule(&self, name: &str) {
        let arguments = [
            "dump",
            "p.lw",
            "--device",
            "interp",
            "--stage",
            "schedule",
            "--schedule",
        ];
        let output = self.run(&[&arguments[..], &[name]].concat());
        let errors = String::from_utf8_lossy(&output.stderr);
        let text = std::fs::read_to_string(self.path(name)).unwrap_or_default();
        assert!(output.status.success(), "{errors} in\n{text}");
    }
}

/// Crashes, endless runs and wrong results cost themselves; the winner is right, and in file and cache.
fn bad_candidates_do_not_end_the_search() {
    let place = Place::new();
    let kinds = ["crashed", "timed_out", "wrong", "timed"];
    let mut counts = [0; 4];
    let mut report = Value::Null;
    // One search is enough on a machine of its own. Where others take most of the time, it goes on.
    for round in 0..8 {
        let clock = Instant::now();
        report = place.tune("12", &["--resume"][..usize::from(round > 0)]);
        // Loosely, as others may use the machine: it does not run away.
        assert!(
            clock.elapsed() < Duration::from_secs(60),
            "{:?}",
            clock.elapsed()
        );
        for (count, kind) in counts.iter_mut().zip(kinds) {
            *count += report["counts"][kind].as_u64().unwrap_or(0);
        }
        if counts.iter().all(|count| *count > 0) && report["speedup"].as_f64() > Some(1.5) {
            break;
        }
    }
    for (count, kind) in counts.iter().zip(kinds) {
        assert!(*count > 0, "none {kind}: {report:#}");
    }
    assert!(report["speedup"].as_f64() > Some(1.5), "{report:#}");
    assert!(
        report["after_ms"].as_f64() < report["before_ms"].as_f64(),
        "{report:#}"
    );
    let schedule = report["schedule"].as_str().expect("a text");
    assert!(
        schedule.contains('/'),
        "a split is what is faster:\n{schedule}"
    );
    for marker in ["unroll", "parallel", "vectorize"] {
        assert!(!schedule.contains(marker), "{schedule}");
    }
    let file = std::fs::read_to_string(place.path("p.sched")).expect("the winner is written");
    assert!(file.contains("# tuned by loopwright"), "{file}");
    assert!(file.contains("# found by: "), "{file}");
    place.check_schedule("p.sched");
    let listed = place.run(&["cache", "list"]);
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(listed.contains("schedule"), "{listed}");
    no_processes_are_left(&place);
    runs_use_it_and_name_it(&place, schedule);
}

/// What was found is what a run uses from then on, and says so in its document, with the schedule.
fn runs_use_it_and_name_it(place: &Place, found: &str) {
    let run = |more: &[&str]| -> Value {
        let arguments = ["run", "p.lw", "--device", "hazard", "--json"];
        let output = place.run(&[&arguments[..], more].concat());
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}");
        serde_json::from_slice(&output.stdout).expect("a document")
    };
    let tuned = run(&[]);
    assert_eq!(tuned["schedule"], "tuned", "{tuned:#}");
    assert_eq!(
        tuned["tuned_schedule"].as_str().map(str::trim),
        Some(found.trim())
    );
    let file = run(&["--schedule", "p.sched"]);
    assert_eq!(file["schedule"], "file", "{file:#}");
    assert_eq!(file["schedule_file"], "p.sched", "{file:#}");
    let other = run(&["--set", "N=5"]);
    assert_eq!(other["schedule"], "default", "{other:#}");
    for document in [file, other] {
        assert_eq!(document["tuned_schedule"], Value::Null, "{document:#}");
    }
}

/// Where the runs of the default take all of the time, a candidate is tried all the same.
fn a_slow_device_has_a_candidate_tried() {
    let place = Place::new();
    let tune = |seconds: &str| {
        let arguments = [
            "tune",
            "p.lw",
            "--device",
            "slow",
            "--json",
            "--seconds",
            seconds,
        ];
        let output = place.run(&arguments);
        let document: Value = serde_json::from_slice(&output.stdout).expect("a document");
        (output.status.code(), document)
    };
    // Where not even the default is measured in time, that is what is said, with the option that helps.
    std::fs::write(place.path(SLOWER), "").expect("room");
    let (code, document) = tune("1");
    std::fs::remove_file(place.path(SLOWER)).expect("it is ours");
    assert_eq!(code, Some(1), "{document:#}");
    let message = document["error"]["message"].as_str().expect("a text");
    assert!(
        message.contains("took too long") && message.contains("--seconds"),
        "{message}"
    );
    // The shortest time in which the default is measured leaves none for candidates, unless the machine is busy.
    let measured = ["1", "2", "3", "4", "8", "20"]
        .into_iter()
        .find_map(|seconds| {
            let (code, report) = tune(seconds);
            (code == Some(0)).then_some(report)
        });
    let report = measured.expect("the default is measured");
    assert!(report["counts"]["tried"].as_u64() > Some(0), "{report:#}");
    assert!(report["before_ms"].as_f64() > Some(150.0), "{report:#}");
    place.check_schedule("p.sched");
    no_processes_are_left(&place);
}

/// A process that takes longer to start than the search was to take, as on a busy machine, is waited for, and a candidate is
/// tried.
fn a_process_that_starts_late_has_a_candidate_tried() {
    let place = Place::new();
    std::fs::write(place.path(LATE), "").expect("room");
    let report = place.tune("1", &[]);
    assert!(report["counts"]["tried"].as_u64() > Some(0), "{report:#}");
    place.check_schedule("p.sched");
    no_processes_are_left(&place);
}

/// Killed at any moment it leaves a file and a log that are whole, and goes on.
fn it_can_be_killed_at_any_moment() {
    let place = Place::new();
    let mut state = 7u64;
    let mut random = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let lines = || {
        let log = std::fs::read(place.path("p.sched.log")).unwrap_or_default();
        log.iter().filter(|byte| **byte == b'\n').count()
    };
    let arguments = ["tune", "p.lw", "--device", "hazard", "--seconds", "600"];
    for round in 0..10 {
        let resume = &["--resume"][..usize::from(round > 0)];
        // At another point of the search each time, and somewhere around it.
        let until = if round == 0 {
            1
        } else {
            lines() + random(4) as usize
        };
        let mut child = place
            .command(&[&arguments[..], resume].concat())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let deadline = Instant::now() + Duration::from_secs(60);
        while lines() < until {
            assert!(Instant::now() < deadline, "the search goes on");
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(random(500)));
        child.kill().expect("it runs for minutes");
        child.wait().expect("it was killed");
        if round > 0 {
            place.check_schedule("p.sched");
        }
    }
    let log = std::fs::read_to_string(place.path("p.sched.log")).expect("a log");
    let whole = log
        .lines()
        .filter(|line| serde_json::from_str::<Value>(line).is_ok())
        .count();
    assert!(
        whole + 10 >= log.lines().count(),
        "at most one line is torn by each kill:\n{log}"
    );
    let tried = log.matches("\"Tried\"").count();
    assert!(tried > 0, "{log}");
    let output = place.run(&[
        "tune",
        "p.lw",
        "--device",
        "hazard",
        "--seconds",
        "6",
        "--resume",
    ]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(text.contains("from the log"), "{text}");
    let log = std::fs::read_to_string(place.path("p.sched.log")).expect("a log");
    assert!(log.matches("\"Tried\"").count() > tried, "it went on");
    // What crashed is not tried again.
    let mut crashed: Vec<String> = Vec::new();
    for line in log.lines() {
        let Ok(record) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        let tried = &record["Tried"];
        if tried["outcome"] == "crashed" {
            let schedule = tried["schedule"].to_string();
            assert!(!crashed.contains(&schedule), "tried twice: {schedule}");
            crashed.push(schedule);
        }
    }
    no_processes_are_left(&place);
}

/// An interrupt ends it at once, with the best so far.
#[cfg(unix)]
fn a_winner_that_could_not_be_confirmed_is_not_kept() {
    let place = Place::new();
    let arguments = [
        "tune",
        "p.lw",
        "--device",
        "hazard",
        "--seconds",
        "600",
        "--json",
    ];
    let child = place.command(&arguments).spawn().expect("it starts");
    let deadline = Instant::now() + Duration::from_secs(60);
    while !std::fs::read_to_string(place.path("p.sched.log")).is_ok_and(|log| log.contains("Tried"))
    {
        assert!(Instant::now() < deadline, "nothing is tried");
        std::thread::sleep(Duration::from_millis(20));
    }
    // Something faster, if it is found soon.
    let soon = Instant::now() + Duration::from_secs(5);
    while Instant::now() < soon
        && !std::fs::read_to_string(place.path("p.sched.log"))
            .is_ok_and(|log| log.contains("\"best\":true"))
    {
        std::thread::sleep(Duration::from_millis(20));
    }
    let id = child.id().to_string();
    let killed = Command::new("kill").args(["-INT", &id]).status();
    assert!(killed.is_ok_and(|status| status.success()), "kill works");
    let output = child.wait_with_output().expect("it ends");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let report: Value = serde_json::from_slice(&output.stdout).expect("a document");
    assert_eq!(report["ended"], "interrupted", "{report:#}");
    // What could not be measured again is told, and not kept.
    assert_eq!(report["kept_default"], true, "{report:#}");
    assert_eq!(
        report["confirmed"] == false,
        report["unconfirmed"].is_f64(),
        "{report:#}"
    );
    place.check_schedule("p.sched");
    no_processes_are_left(&place);
}

/// Files of others stay, and logs of other searches are not gone on with.
fn files_of_others_stay() {
    let place = Place::new();
    std::fs::write(place.path("p.sched"), "loopwright schedule 1\nmine\n").expect("room");
    let fail = |more: &[&str]| {
        let arguments = ["tune", "p.lw", "--device", "hazard", "--seconds", "2"];
        let output = place.run(&[&arguments[..], more].concat());
        assert!(!output.status.success(), "{more:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let error = fail(&[]);
    assert!(
        error.contains("was not written by `tune`") && error.contains("--out"),
        "{error}"
    );
    place.tune("8", &["--out", "own.sched"]);
    place.check_schedule("own.sched");
    let error = fail(&["--out", "own.sched", "--resume", "--set", "N=5"]);
    assert!(error.contains("the log of another program"), "{error}");
    let error = fail(&["--out", "nowhere/own.sched"]);
    assert!(error.contains("there is no directory nowhere"), "{error}");
}

/// A device that computes nothing has nothing to check.
fn a_device_that_is_wrong_is_not_tuned() {
    let place = Place::new();
    let output = place.run(&["tune", "p.lw", "--device", "null", "--seconds", "8"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("it computes something else"), "{errors}");
}

/// The processes that measured are gone with the search.
fn no_processes_are_left(place: &Place) {
    let at = place.directory.path().canonicalize().expect("a directory");
    let works_there =
        |process: &Path| std::fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd == at);
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let Ok(listing) = std::fs::read_dir("/proc") else {
            return;
        };
        let mut processes = listing.filter_map(Result::ok).map(|entry| entry.path());
        let Some(left) = processes.find(|process| works_there(process)) else {
            return;
        };
        assert!(Instant::now() < deadline, "{} is left", left.display());
        std::thread::sleep(Duration::from_millis(50));
    }
}

const TESTS: &[(&str, fn())] = &[
    (
        "bad_candidates_do_not_end_the_search",
        bad_candidates_do_not_end_the_search,
    ),
    (
        "it_can_be_killed_at_any_moment",
        it_can_be_killed_at_any_moment,
    ),
    #[cfg(unix)]
    (
        "a_winner_that_could_not_be_confirmed_is_not_kept",
        a_winner_that_could_not_be_confirmed_is_not_kept,
    ),
    (
        "a_slow_device_has_a_candidate_tried",
        a_slow_device_has_a_candidate_tried,
    ),
    (
        "a_process_that_starts_late_has_a_candidate_tried",
        a_process_that_starts_late_has_a_candidate_tried,
    ),
    ("files_of_others_stay", files_of_others_stay),
    (
        "a_device_that_is_wrong_is_not_tuned",
        a_device_that_is_wrong_is_not_tuned,
    ),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let verbs = ["tune", "tune-worker", "run", "dump", "cache"];
    if arguments
        .first()
        .is_some_and(|first| verbs.contains(&first.as_str()))
    {
        if arguments[0] == "tune-worker" && Path::new(LATE).exists() {
            std::thread::sleep(Duration::from_millis(1500));
        }
        return loopwright_cli::main();
    }
    // The little of a test's command line that is used: `--list`, and names.
    let named = |name: &str| {
        let mut names = arguments
            .iter()
            .filter(|word| !word.starts_with('-'))
            .peekable();
        names.peek().is_none() || names.any(|word| name.contains(word.as_str()))
    };
    let chosen = TESTS.iter().filter(|(name, _)| named(name));
    if arguments.iter().any(|word| word == "--list") {
        chosen.for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    let mut failed = 0;
    for (name, test) in chosen {
        let passed = std::panic::catch_unwind(test).is_ok();
        println!("test {name} ... {}", if passed { "ok" } else { "FAILED" });
        failed += usize::from(!passed);
    }
    match failed {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}
