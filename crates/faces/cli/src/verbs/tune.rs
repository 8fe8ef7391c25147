//! `tune`: searches for a faster schedule.

use crate::arguments::TuneOptions;
use crate::failure::Failure;
use crate::files::{check_places, check_writable, read_text};
use crate::interrupt::Stop;
use crate::program::Opened;
use crate::terminal::{Shown as _, Style, Terminal};
use crate::units;
use indicatif::{ProgressBar, ProgressStyle};
use loopwright::graph::print;
use loopwright::looptree::Plan;
use loopwright_config::{Key, Origin, Settings};
use loopwright_files::{Destination, STANDARD_OUTPUT};
use loopwright_tune::{Options, Outcome, Progress, Report, TIME_IS_UP, TUNED, TuneError, Work};
use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The share of the roofline from which on there is little left to find.
const NEAR_THE_ROOF: f64 = 0.8;

pub(crate) fn tune(
    options: &TuneOptions,
    settings: &Settings,
    terminal: &mut Terminal,
) -> Result<ExitCode, Failure> {
    let begun = Instant::now();
    let opened = Opened::new(&options.program, settings)?;
    opened.binding()?;
    let out = out_file(options)?;
    let log = with_log_extension(&out);
    for path in [&out, &log] {
        check_writable(path)?;
        // It is written whenever something better is found, and read again.
        if !Destination::of(path).is_ok_and(|place| place.is_regular()) {
            return Err(Failure::new(format!(
                "cannot keep schedules in {}: it is not a regular file",
                path.shown()
            )));
        }
    }
    let written = [("--out", &out), ("the log of `--out`", &log)];
    let written = written.map(|(what, path)| (what.to_owned(), path.as_path()));
    check_places(Some(&options.program.program), &written)?;
    let start = match &opened.schedule {
        None => None,
        Some(schedule) => Some(Plan::new(opened.graph.clone(), schedule.clone())?.to_string()),
    };
    let worker = std::env::current_exe()
        .map_err(|error| Failure::new(format!("our own program cannot be found: {error}")))?;
    let work = Work {
        program: print(&opened.graph),
        sizes: options.program.sizes.clone(),
        device: opened.device.backend().name().to_owned(),
        strict: settings.strict(),
        fallback: settings.fallback().map(str::to_owned),
        seed: options.seed,
    };
    let tuned = Options {
        name: options.program.program.shown(),
        start,
        time: Duration::from_secs_f64(options.seconds),
        begun,
        out,
        log,
        resume: options.resume,
        cache: settings.cache_dir().map(Path::to_owned),
        worker,
        arguments: worker_arguments(settings)?,
        stop: Stop::watch().flag,
        seed: options.seed,
        work,
    };
    if !options.json {
        let style = terminal.style;
        terminal.line(style.strong(&tuned.name))?;
        let (device, why) = (opened.device.name(), opened.device.why());
        terminal.line(format!("  {:9}  {device} ({why})", "device"))?;
        terminal.flush()?;
    }
    let mut display = Display::new(&tuned, !options.json);
    let report = loopwright_tune::tune(&tuned, &mut |progress| display.show(progress, terminal));
    display.bar.finish_and_clear();
    let report = report.map_err(|error| explain(error, options))?;
    if let Some(failure) = display.failure {
        return Err(failure);
    }
    if options.json {
        let value = serde_json::to_value(&report)
            .map_err(|error| Failure::new(format!("cannot write the report: {error}")))?;
        terminal.json(&value)?;
    } else {
        conclude(&report, &tuned, terminal)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The process that measures candidates, and that they may take down.
pub(crate) fn worker() -> Result<ExitCode, Failure> {
    if std::io::stdin().is_terminal() {
        return Err(Failure::usage(
            "`tune-worker` is started by `tune`, not by hand",
        ));
    }
    // Where the pipes are broken, nobody is there to be told.
    match loopwright_tune::serve() {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(_) => Ok(ExitCode::FAILURE),
    }
}

/// Where the schedule goes. A file that nobody named is not written over, unless it was tuned.
fn out_file(options: &TuneOptions) -> Result<PathBuf, Failure> {
    if let Some(out) = &options.out {
        if out == Path::new(STANDARD_OUTPUT) {
            return Err(Failure::usage("`--out` of `tune` needs a file")
                .help("the schedule is printed, too"));
        }
        return Ok(out.clone());
    }
    let stem = options.program.program.file_stem();
    let out = PathBuf::from(stem.unwrap_or_else(|| "program".as_ref())).with_extension("sched");
    if out.exists() && !read_text(&out)?.contains(TUNED) {
        return Err(Failure::new(format!(
            "{} is there and was not written by `tune`",
            out.shown()
        ))
        .help("`--out FILE` names the file for the best schedule"));
    }
    Ok(out)
}

fn with_log_extension(out: &Path) -> PathBuf {
    let mut name = out.as_os_str().to_owned();
    name.push(".log");
    PathBuf::from(name)
}

/// What the worker is told on its command line: what was said on ours. Environment and file are the same.
fn worker_arguments(settings: &Settings) -> Result<Vec<OsString>, Failure> {
    let mut arguments: Vec<OsString> = vec!["tune-worker".into()];
    // One that is found in the working directory is found there by the worker too, and no more trusted.
    if let Some(file) = settings.named_file() {
        arguments.push("--config".into());
        arguments.push(file.into());
    }
    let mut option = |key: Key, value: OsString| {
        if matches!(settings.origin(key), Origin::CommandLine) {
            let mut text = OsString::from(key.name());
            text.push("=");
            text.push(value);
            arguments.extend(["--option".into(), text]);
        }
    };
    option(Key::Threads, settings.threads().to_string().into());
    for (key, paths) in [
        (Key::Plugin, settings.plugin()),
        (Key::Plugins, settings.plugins()),
    ] {
        let joined = std::env::join_paths(paths)
            .map_err(|error| Failure::usage(format!("`{}`: {error}", key.name())))?;
        option(key, joined);
    }
    Ok(arguments)
}

fn explain(error: TuneError, options: &TuneOptions) -> Failure {
    let text = error.to_string();
    match error {
        TuneError::Program(rendered) if rendered.starts_with("error:") => Failure::Place(rendered),
        TuneError::OtherLog { .. } => {
            Failure::new(text).help("without `--resume` the search starts anew")
        }
        TuneError::Start { .. } => Failure::new(text).help(format!(
            "`loopwright run {}` shows whether it runs at all",
            options.program.program.shown()
        )),
        _ => Failure::new(text),
    }
}

/// What is shown while it searches: a line for each thing that happened, and where somebody looks on, how
/// things stand.
struct Display {
    bar: ProgressBar,
    lines: bool,
    begun: Instant,
    time: Duration,
    default: f64,
    /// A line that could not be written.
    failure: Option<Failure>,
}

impl Display {
    fn new(options: &Options, lines: bool) -> Display {
        // On a terminal only, and on stderr.
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("  {spinner} {msg}") {
            bar.set_style(style);
        }
        Display {
            bar,
            lines,
            begun: options.begun,
            time: options.time,
            default: 0.0,
            failure: None,
        }
    }

    fn show(&mut self, progress: &Progress, terminal: &mut Terminal) {
        let at = self.begun.elapsed();
        let line = match progress {
            Progress::Reference { sampled, elements } => Some(format!(
                "  {:9}  {} of {elements} results known from the reference",
                "oracle",
                units::count(*sampled, "element")
            )),
            Progress::Default(seconds) => {
                self.default = *seconds;
                Some(format!("  {:9}  {}", "default", time(*seconds)))
            }
            Progress::Resumed(count, relative) => Some(format!(
                "  {:9}  {} from the log, the best {:.2} times as fast as the default",
                "resumed",
                units::count(*count, "candidate"),
                1.0 / relative
            )),
            Progress::Better {
                seconds,
                relative,
                path,
            } => Some(format!(
                "  {:>8}s  {}, {:.2} times as fast: {}",
                format!("{:.1}", at.as_secs_f64()),
                time(*seconds),
                1.0 / relative,
                path.last().map_or("the schedule given", String::as_str)
            )),
            Progress::Tried {
                counts,
                outcome,
                best,
                predicted,
            } => {
                let left = self.time.saturating_sub(at);
                let rate = counts.tried as f64 / at.as_secs_f64().max(1e-3);
                self.bar.set_message(format!(
                    "{} tried ({rate:.1}/s), best {}, last predicted {}, {:.0} s left",
                    counts.tried,
                    time(*best),
                    time(predicted * self.default),
                    left.as_secs_f64()
                ));
                self.bar.tick();
                // What takes a process down or computes something else is worth a line.
                match outcome {
                    Outcome::Wrong(why) | Outcome::Crashed(why) | Outcome::TimedOut(why) => {
                        Some(format!(
                            "  {:>8}s  a candidate {}: {why}",
                            format!("{:.1}", at.as_secs_f64()),
                            match outcome {
                                Outcome::Wrong(_) => "was wrong",
                                Outcome::Crashed(_) => "crashed",
                                _ => "took too long",
                            }
                        ))
                    }
                    Outcome::Time(_) | Outcome::Refused(_) => None,
                }
            }
            Progress::Confirming => {
                self.bar
                    .set_message("the winner and the default, once more");
                self.bar.tick();
                None
            }
        };
        if let Some(line) = line.filter(|_| self.lines && self.failure.is_none()) {
            let written = self
                .bar
                .suspend(|| terminal.line(line).and_then(|()| terminal.flush()));
            self.failure = written.err();
        }
    }
}

fn time(seconds: f64) -> String {
    units::duration(Duration::from_secs_f64(seconds.clamp(0.0, 1e9)))
}

fn conclude(report: &Report, options: &Options, terminal: &mut Terminal) -> Result<(), Failure> {
    let style = terminal.style;
    let counts = &report.counts;
    let mut bad: Vec<String> = Vec::new();
    for (count, how) in [
        (counts.refused, "refused"),
        (counts.wrong, "wrong"),
        (counts.crashed, "crashed"),
        (counts.timed_out, "too slow to end"),
    ] {
        if count > 0 {
            bad.push(format!("{count} {how}"));
        }
    }
    let bad = match bad.is_empty() {
        true => String::new(),
        false => format!(" ({})", bad.join(", ")),
    };
    let tried = match counts.tried {
        // What the time went into, and what would be enough.
        0 if report.ended == TIME_IS_UP => format!(
            "no candidate: the reference and the first runs of {} each took all of the {:.0} s, and the first candidate was \
             given up; `--seconds {:.0}` leaves time to search",
            time(report.before_ms / 1e3),
            options.time.as_secs_f64(),
            (options.time.as_secs_f64() * 4.0)
                .max(report.before_ms / 1e3 * 200.0)
                .ceil()
        ),
        tried => format!(
            "{}{bad}; {}",
            units::count(tried, "candidate"),
            report.ended
        ),
    };
    terminal.line(format!("  {:9}  {tried}", "tried"))?;
    let speed = |ms: f64, rate: f64, share: f64| {
        let share = match share > 0.0 {
            true => format!(", {:.0}% of the roofline", share * 100.0),
            false => String::new(),
        };
        format!("{}, {rate:.1} GFLOP/s{share}", time(ms / 1e3))
    };
    terminal.line(format!(
        "  {:9}  {}",
        "before",
        speed(
            report.before_ms,
            report.gflops_before,
            report.roofline_share_before
        )
    ))?;
    terminal.line(format!(
        "  {:9}  {}",
        "after",
        speed(report.after_ms, report.gflops_after, report.roofline_share)
    ))?;
    let verdict = match (report.unconfirmed, report.kept_default) {
        (Some(speedup), _) => format!(
            "what was {speedup:.2} times as fast when it was found could not be measured again; the default is kept, and \
             `--resume` goes on"
        ),
        (None, true) if counts.tried == 0 => "the default is kept".to_owned(),
        (None, true) => "nothing faster was found; the default is kept".to_owned(),
        (None, false) => style.good(&format!("{:.2} times as fast", report.speedup)),
    };
    terminal.line(format!("  {:9}  {verdict}", ""))?;
    if report.roofline_share >= NEAR_THE_ROOF {
        let near = "near the ceiling of this machine: little is left to find";
        terminal.line(format!("  {:9}  {near}", ""))?;
    }
    kept(report, options, style, terminal)
}

fn kept(
    report: &Report,
    options: &Options,
    style: Style,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let file = report.file.shown();
    let text = format!(
        "  {:9}  {file}; `loopwright run {} --schedule {file}` uses it",
        "written", options.name
    );
    terminal.line(style.faint(&text))?;
    terminal.line("")?;
    terminal.text(&report.schedule)
}
