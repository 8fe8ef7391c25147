//! `train`: a small network learns, while somebody looks on.

use crate::arguments::{Lesson, TrainOptions};
use crate::device::choose;
use crate::failure::Failure;
use crate::files::{Written, check_places, check_writable, write_text};
use crate::interrupt::Stop;
use crate::terminal::{Shown as _, Terminal};
use indicatif::{ProgressBar, ProgressStyle};
use loopwright::tensor::Session;
use loopwright_config::Settings;
use loopwright_files::STANDARD_OUTPUT;
use loopwright_formats::chart::{LineChart, TerminalOptions, sparkline};
use loopwright_nn::train::{Event, Options, Report, TrainError, digits};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Where an interrupted run is kept if no file is named.
const CHECKPOINT: &str = "digits.safetensors";

pub(crate) fn train(
    options: &TrainOptions,
    settings: &Settings,
    terminal: &mut Terminal,
) -> Result<ExitCode, Failure> {
    let Lesson::Digits = options.lesson;
    let file = checkpoint(options)?;
    let named = [("--checkpoint", &file), ("--plot", &options.plot)].into_iter();
    let mut written: Vec<Written<'_>> = named
        .filter_map(|(option, path)| Some((option.to_owned(), path.as_deref()?)))
        .collect();
    for (_, path) in &written {
        check_writable(path)?;
    }
    if options.json {
        written.push(("--json".to_owned(), Path::new(STANDARD_OUTPUT)));
    }
    check_places(None, &written)?;
    let chosen = choose(settings)?;
    if !chosen.backend().capabilities().computes {
        return Err(Failure::usage(format!(
            "device `{}` computes nothing, so nothing is learned there",
            chosen.name()
        )));
    }
    let session = Session::on(&chosen.device)?;
    let stop = Stop::watch();
    let run = Options {
        epochs: options.epochs as usize,
        batch: options.batch as usize,
        seed: options.seed,
        rate: options.rate,
        checkpoint: file.clone(),
        resume: options.resume,
        stop: stop.flag.clone(),
    };
    let device = format!("{} ({})", chosen.name(), chosen.why());
    let mut display = Display::new(terminal, &device, !options.json);
    let report = digits(&session, &run, &mut |event| display.show(event));
    display.bar.finish_and_clear();
    if let Some(failure) = display.failure {
        return Err(failure);
    }
    let report = report.map_err(|error| explain(&error))?;
    let chart = chart(&report);
    if let Some(path) = &options.plot {
        write_text(path, &chart.svg())?;
    }
    match options.json {
        true => terminal.json(&json(&report, chosen.name()))?,
        false => conclude(&report, &chart, options, file.as_ref(), terminal)?,
    }
    Ok(match report.stopped {
        true => stop.exit_code(),
        false => ExitCode::SUCCESS,
    })
}

/// The file that the run is kept in. A run that somebody looks on at can be interrupted and taken up again without
/// having named one.
fn checkpoint(options: &TrainOptions) -> Result<Option<PathBuf>, Failure> {
    match (&options.checkpoint, options.resume) {
        (Some(path), _) if path == Path::new(STANDARD_OUTPUT) => Err(Failure::usage(
            "`--checkpoint` needs a file: it is written once an epoch, and read by `--resume`",
        )),
        (Some(path), _) => Ok(Some(path.clone())),
        (None, true) => Err(
            Failure::usage("`--resume` needs `--checkpoint FILE`").help(format!(
                "for example `--checkpoint {CHECKPOINT}`, in this run and in the one before it"
            )),
        ),
        (None, false) => Ok(None),
    }
}

fn explain(error: &TrainError) -> Failure {
    let failure = Failure::new(error.to_string());
    match error {
        TrainError::OtherRun { .. } => {
            failure.help("give the options of the first run, or leave `--resume` away")
        }
        TrainError::Mismatch { .. } => {
            failure.help("the file is of another network; leave `--resume` away to start anew")
        }
        _ => failure,
    }
}

/// What is shown while it learns: a bar where somebody looks on, and a line for each part of the run.
struct Display<'a> {
    terminal: &'a mut Terminal,
    /// Which device it is, and why.
    device: &'a str,
    bar: ProgressBar,
    lines: bool,
    losses: Vec<f64>,
    epochs: usize,
    steps: usize,
    failure: Option<Failure>,
}

impl<'a> Display<'a> {
    fn new(terminal: &'a mut Terminal, device: &'a str, lines: bool) -> Display<'a> {
        let bar = match lines {
            true => ProgressBar::new(0),
            false => ProgressBar::hidden(),
        };
        if let Ok(style) = ProgressStyle::with_template("  {bar:32} {pos}/{len} steps  {msg}") {
            bar.set_style(style.progress_chars("█▉▊▋▌▍▎▏ "));
        }
        Display {
            terminal,
            device,
            bar,
            lines,
            losses: Vec::new(),
            epochs: 0,
            steps: 0,
            failure: None,
        }
    }

    fn show(&mut self, event: &Event) {
        if let Err(failure) = self.try_show(event) {
            self.failure = Some(failure);
        }
    }

    fn line(&mut self, name: &str, text: &str) -> Result<(), Failure> {
        if self.lines {
            let (bar, terminal) = (&self.bar, &mut *self.terminal);
            bar.suspend(|| {
                terminal.line(format!("  {name:9}  {text}"))?;
                terminal.flush()
            })?;
        }
        Ok(())
    }

    fn try_show(&mut self, event: &Event) -> Result<(), Failure> {
        match event {
            Event::Begun {
                train,
                test,
                parameters,
                done,
                steps,
            } => {
                self.steps = *steps;
                self.bar.set_length(*steps as u64);
                self.bar.set_position(*done as u64);
                if self.lines {
                    let name = self.terminal.style.strong("digits");
                    self.terminal.line(name)?;
                }
                self.line("device", self.device)?;
                self.line(
                    "examples",
                    &format!("{train} to learn from, {test} to test with"),
                )?;
                self.line("network", &format!("{parameters} parameters"))?;
                if *done > 0 {
                    self.line("resumed", &format!("at step {done} of {steps}"))?;
                }
            }
            Event::Compiled { first } => {
                self.line(
                    "compiled",
                    &format!("first step after {}", milliseconds(*first)),
                )?;
            }
            Event::Step { done } => self.bar.set_position(*done as u64),
            Event::Epoch {
                epoch,
                loss,
                accuracy,
            } => {
                self.losses.push(*loss);
                self.epochs = *epoch;
                let curve = sparkline(&self.losses, 24);
                self.bar
                    .set_message(format!("loss {loss:.4} {curve}  {:.1} %", accuracy * 100.0));
            }
        }
        Ok(())
    }
}

fn milliseconds(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

fn chart(report: &Report) -> LineChart {
    let losses: Vec<f64> = report.history.iter().map(|(loss, _)| *loss).collect();
    let errors: Vec<f64> = report
        .history
        .iter()
        .map(|(_, accuracy)| 1.0 - accuracy)
        .collect();
    LineChart::new("handwritten digits")
        .axes("epoch", "")
        .logarithmic()
        .values("loss", &losses)
        .values("errors in the test", &errors)
}

fn conclude(
    report: &Report,
    chart: &LineChart,
    options: &TrainOptions,
    file: Option<&PathBuf>,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let style = terminal.style;
    if report.history.len() > 1 {
        terminal.line("")?;
        terminal.drawing(&chart.terminal(&TerminalOptions {
            colour: style.paints(),
            ..TerminalOptions::default()
        }))?;
        terminal.line("")?;
    }
    let row = |name: &str, text: String| format!("  {name:9}  {text}");
    terminal.line(row(
        "programs",
        format!(
            "{} compiled in {:.0} ms",
            report.compiled,
            report.compile_seconds * 1e3
        ),
    ))?;
    let speed = format!(
        "{:.0} examples a second, {} steps in {:.2} s",
        report.examples_per_second, report.steps, report.seconds
    );
    terminal.line(row("speed", speed))?;
    let accuracy = format!(
        "{:.2} % of the test's digits recognised",
        report.accuracy * 100.0
    );
    terminal.line(row("accuracy", style.good(&accuracy)))?;
    if let Some(path) = &options.plot {
        terminal.line(row("plot", path.display().to_string()))?;
    }
    match (report.stopped, file) {
        (true, Some(path)) => {
            let next = format!(
                "stopped; the same command with `--resume` goes on from {}",
                path.shown()
            );
            terminal.line(row("", next))?;
        }
        (true, None) => {
            let next = format!(
                "stopped; with `--checkpoint {CHECKPOINT}` a run is kept and `--resume` goes on"
            );
            terminal.line(row("", next))?;
        }
        (false, Some(path)) => terminal.line(row("kept", path.display().to_string()))?,
        (false, None) => {}
    }
    Ok(())
}

fn json(report: &Report, device: &str) -> serde_json::Value {
    json!({
        "accuracy": report.accuracy,
        "loss": report.loss,
        "seconds": report.seconds,
        "device": device,
        "steps": report.steps,
        "programs": report.compiled,
        "compile_seconds": report.compile_seconds,
        "examples_per_second": report.examples_per_second,
        "stopped": report.stopped,
        "history": report.history.iter().map(|(loss, accuracy)| json!({ "loss": loss, "accuracy": accuracy })).collect::<Vec<_>>(),
    })
}
