//! What can be said on the command line.

use crate::failure::Failure;
use crate::interrupt::Ends;
use crate::runtime::FAILURES;
use crate::terminal::Shown as _;
use clap::{Args, Parser, Subcommand, ValueEnum};
use loopwright_config::{Key, Settings, keys_as_text};
use loopwright_conformance::Group;
use loopwright_files::STANDARD_OUTPUT;
use std::path::{Path, PathBuf};

/// One program, every machine: compiles and runs programs over arrays.
#[derive(Parser, Debug)]
#[command(name = "loopwright", version, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) verb: Verb,
    #[command(flatten)]
    settings: SettingOptions,
}

/// Options of the configuration, before and after every verb. They are no global arguments of clap:
/// there those after the verb would silently replace those before it.
#[derive(Args, Debug)]
pub(crate) struct SettingOptions {
    /// The configuration's file, in place of the one that is found
    #[arg(long, value_name = "FILE", help_heading = "Settings")]
    config: Option<PathBuf>,
    /// Sets an option; `loopwright config` lists them
    #[arg(
        long = "option",
        short = 'o',
        value_name = "NAME=VALUE",
        value_parser = parse_option,
        help_heading = "Settings"
    )]
    options: Vec<(String, String)>,
    /// Loads a plug-in, with the backend that it brings
    #[arg(long = "plugin", value_name = "FILE", help_heading = "Settings")]
    plugins: Vec<PathBuf>,
}

/// What a verb's arguments say about the settings.
struct Said<'a> {
    settings: &'a SettingOptions,
    /// Options that are short for settings, with the setting's name and value.
    short: Vec<(&'static str, String)>,
}

impl Arguments {
    /// The settings: what is said here, over the environment, over the file, over the defaults.
    pub(crate) fn settings(&self) -> Result<Settings, Failure> {
        let said = self.verb.said();
        self.verb.check_sizes()?;
        let config = match (&self.settings.config, &said.settings.config) {
            (Some(_), Some(_)) => return Err(Failure::usage("`--config` is given twice")),
            (before, after) => before.as_ref().or(after.as_ref()),
        };
        let options = [&self.settings.options, &said.settings.options];
        let mut command_line: Vec<(String, String)> =
            options.into_iter().flatten().cloned().collect();
        let plugins = [&self.settings.plugins, &said.settings.plugins];
        let plugins: Vec<&PathBuf> = plugins.into_iter().flatten().collect();
        if !plugins.is_empty() {
            let joined = std::env::join_paths(plugins)
                .map_err(|error| Failure::usage(format!("`--plugin`: {error}")))?;
            let joined = joined.into_string().map_err(|path| {
                let shown = path.shown();
                Failure::usage(format!("`--plugin`: {shown} is not written in UTF-8"))
            })?;
            command_line.push((Key::Plugin.name().to_owned(), joined));
        }
        let short = said.short.into_iter();
        command_line.extend(short.map(|(name, value)| (name.to_owned(), value)));
        Settings::from_process(&command_line, config.cloned()).map_err(Failure::from)
    }
}

#[derive(Subcommand, Debug)]
pub(crate) enum Verb {
    /// Every device, available or why not, with its limits
    Devices(JsonOnly),
    /// Runs a program; inputs that are not given are random
    Run(RunOptions),
    /// Shows a program at any stage of compilation, or its memory plan
    Dump(DumpOptions),
    /// Shows the loops of a program in the terminal, to change and measure them
    Edit(EditOptions),
    /// Searches for a faster schedule in a given time, and keeps it in a file
    Tune(TuneOptions),
    /// What measures candidates for `tune`
    #[command(hide = true)]
    TuneWorker(TuneWorkerOptions),
    /// Trains a small network on real handwritten digits
    Train(TrainOptions),
    /// Runs the conformance suite, then random programs against the interpreter
    Check(CheckOptions),
    /// What is missing on this machine and what it would give
    Doctor(JsonOnly),
    /// Compiled kernels on disk
    Cache(CacheOptions),
    /// Measures Loopwright, side by side with others
    Bench(BenchOptions),
    /// Every option, its value, and where the value comes from
    #[command(after_long_help = format!("Options:\n{}", keys_as_text()))]
    Config(JsonOnly),
    /// Lets the loopwright.toml of a folder, as it is now, name plug-ins, caches and output files
    Allow(FolderOptions),
    /// Takes back what `allow` allowed
    Deny(FolderOptions),
}

impl Verb {
    /// Whether it has to do with devices.
    pub(crate) fn uses_devices(&self) -> bool {
        !matches!(
            self,
            Verb::Cache(_) | Verb::Config(_) | Verb::Allow(_) | Verb::Deny(_)
        )
    }

    /// Whether it does something that depends on settings.
    pub(crate) fn heeds_settings(&self) -> bool {
        // The worker's parent has said it.
        !matches!(self, Verb::Allow(_) | Verb::Deny(_) | Verb::TuneWorker(_))
    }

    /// How it ends when it is told to.
    pub(crate) fn ends(&self) -> Ends {
        match self {
            Verb::Run(_) | Verb::Dump(_) | Verb::Check(_) | Verb::Bench(_) | Verb::Doctor(_) => {
                Ends::Soon
            }
            Verb::Train(_) | Verb::Tune(_) => Ends::ByItself,
            // The editor has the terminal to give back, the worker is its parent's, and the others are short.
            Verb::Edit(_)
            | Verb::TuneWorker(_)
            | Verb::Devices(_)
            | Verb::Cache(_)
            | Verb::Config(_)
            | Verb::Allow(_)
            | Verb::Deny(_) => Ends::Anywhere,
        }
    }

    /// Whether JSON is asked for.
    pub(crate) fn json(&self) -> bool {
        match self {
            Verb::Devices(options) | Verb::Doctor(options) | Verb::Config(options) => options.json,
            Verb::Run(options) => options.json,
            Verb::Tune(options) => options.json,
            Verb::Train(options) => options.json,
            Verb::Check(options) => options.json,
            Verb::Bench(options) => options.json,
            Verb::Allow(options) | Verb::Deny(options) => options.json,
            Verb::Cache(options) => match &options.action {
                CacheAction::List(options) | CacheAction::Clear(options) => options.json,
            },
            Verb::Dump(_) | Verb::Edit(_) | Verb::TuneWorker(_) => false,
        }
    }

    /// Whether a file is asked for on the standard output, which then has nothing else.
    pub(crate) fn writes_output(&self) -> bool {
        let is_output = |path: &Path| path == Path::new(STANDARD_OUTPUT);
        match self {
            Verb::Run(options) => {
                let trace = options.trace.iter().map(Path::new);
                let outputs = options.outputs.iter().map(|(_, path)| path.as_path());
                outputs.chain(trace).any(is_output)
            }
            Verb::Train(options) => options.plot.as_deref().is_some_and(is_output),
            Verb::Bench(options) => options.plot.as_deref().is_some_and(is_output),
            _ => false,
        }
    }

    /// Refuses a size that is given twice: one of the values would be passed over.
    fn check_sizes(&self) -> Result<(), Failure> {
        let sizes = match self {
            Verb::Run(RunOptions { program, .. })
            | Verb::Dump(DumpOptions { program, .. })
            | Verb::Edit(EditOptions { program })
            | Verb::Tune(TuneOptions { program, .. }) => &program.sizes,
            _ => return Ok(()),
        };
        for (at, (name, value)) in sizes.iter().enumerate() {
            if let Some((_, before)) = sizes[..at].iter().find(|(before, _)| before == name) {
                return Err(Failure::usage(format!(
                    "`--set {name}=...` is given twice, as {before} and as {value}"
                )));
            }
        }
        Ok(())
    }

    fn said(&self) -> Said<'_> {
        let device = |device: &Option<String>| {
            let device = device.as_ref();
            device.map(|device| (Key::Device.name(), device.clone()))
        };
        let switch = |key: Key, on: bool| on.then(|| (key.name(), "true".to_owned()));
        let of_program = |program: &ProgramOptions| {
            let strict = switch(Key::Strict, program.strict);
            let fallback = program.fallback.clone();
            let fallback = fallback.map(|name| (Key::Fallback.name(), name));
            let device = device(&program.device).into_iter();
            device.chain(strict).chain(fallback)
        };
        let (settings, short) = match self {
            Verb::Devices(options) | Verb::Doctor(options) | Verb::Config(options) => {
                (&options.settings, Vec::new())
            }
            Verb::Run(options) => {
                let trace = options.trace.as_ref();
                let short = of_program(&options.program)
                    .chain(trace.map(|file| (Key::Trace.name(), file.clone())))
                    .chain(switch(Key::Verify, options.verify))
                    .chain(switch(Key::LogStores, options.log_stores));
                (&options.program.settings, short.collect())
            }
            Verb::Dump(DumpOptions { program, .. }) | Verb::Edit(EditOptions { program }) => {
                (&program.settings, of_program(program).collect())
            }
            Verb::Tune(options) => {
                let threads = options
                    .threads
                    .map(|count| (Key::Threads.name(), count.to_string()));
                let short = of_program(&options.program).chain(threads);
                (&options.program.settings, short.collect())
            }
            Verb::TuneWorker(options) => (&options.settings, Vec::new()),
            Verb::Allow(options) | Verb::Deny(options) => (&options.settings, Vec::new()),
            Verb::Check(options) => (
                &options.settings,
                device(&options.device).into_iter().collect(),
            ),
            Verb::Train(options) => (
                &options.settings,
                device(&options.device).into_iter().collect(),
            ),
            Verb::Bench(options) => {
                let threads = options.threads();
                let threads = threads.map(|threads| (Key::Threads.name(), threads));
                let short = device(&options.device).into_iter().chain(threads);
                (&options.settings, short.collect())
            }
            Verb::Cache(options) => match &options.action {
                CacheAction::List(options) | CacheAction::Clear(options) => {
                    (&options.settings, Vec::new())
                }
            },
        };
        Said { settings, short }
    }
}

#[derive(Args, Debug)]
pub(crate) struct JsonOnly {
    /// Prints JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    settings: SettingOptions,
}

/// Whose configuration it is about.
#[derive(Args, Debug)]
pub(crate) struct FolderOptions {
    /// The folder with the loopwright.toml, in place of the current one
    #[arg(value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// Prints JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    settings: SettingOptions,
}

/// Which program, how, on what.
#[derive(Args, Debug)]
pub(crate) struct ProgramOptions {
    /// The program's file (.lw)
    pub(crate) program: PathBuf,
    /// Where it runs: a device's name, or `auto` for the best there is
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
    /// A schedule's file; else a schedule is made
    #[arg(long, value_name = "FILE")]
    pub(crate) schedule: Option<PathBuf>,
    /// Leaves out the lines of the schedule that do not fit the program, with a note; else they are errors
    #[arg(long, requires = "schedule")]
    pub(crate) replay: bool,
    /// The value of a size, in place of the program's default
    #[arg(long = "set", value_name = "SIZE=VALUE", value_parser = parse_size)]
    pub(crate) sizes: Vec<(String, i64)>,
    /// Keeps every rounding where the program has it, also inside of functions and in the sums of products
    #[arg(long)]
    strict: bool,
    /// The backend that is given what the device cannot do; else such programs are refused
    #[arg(long, value_name = "BACKEND")]
    fallback: Option<String>,
    #[command(flatten)]
    settings: SettingOptions,
}

#[derive(Args, Debug)]
pub(crate) struct RunOptions {
    #[command(flatten)]
    pub(crate) program: ProgramOptions,
    /// An input's or state's values, from an .npy file
    #[arg(long = "in", value_name = "NAME=FILE", value_parser = parse_file)]
    pub(crate) inputs: Vec<(String, PathBuf)>,
    /// Where an output's or updated state's values are written to, as an .npy file
    #[arg(long = "out", value_name = "NAME=FILE", value_parser = parse_file)]
    pub(crate) outputs: Vec<(String, PathBuf)>,
    /// The seed of random inputs
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// How many times it runs; states carry over from run to run
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) repeat: u32,
    /// Writes what happened when to a file for ui.perfetto.dev
    #[arg(long, value_name = "FILE")]
    trace: Option<String>,
    /// Compares every run with the interpreter and the reference
    #[arg(long)]
    verify: bool,
    /// Shows what the kernel stored in the last run: where, the old value and the new
    #[arg(long)]
    log_stores: bool,
    /// Prints JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// A stage of a program on its way to code.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// The dataflow graph, every result a node of its own
    Graph,
    /// The schedule, as a file for --schedule
    Schedule,
    /// The loops, with how often they run and where results are kept
    Tree,
    /// The kernel after all passes
    Kernel,
    /// What the device's compiler is given
    Code,
    /// All memory that a run needs
    Plan,
}

#[derive(Args, Debug)]
pub(crate) struct DumpOptions {
    #[command(flatten)]
    pub(crate) program: ProgramOptions,
    /// What is shown
    #[arg(long, value_enum, required_unless_present_any = ["out", "explain"])]
    pub(crate) stage: Option<Stage>,
    /// Writes files to this directory, which is made if need be: every stage, or the one of --stage
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// With `--stage kernel`: the kernel before any pass
    #[arg(long)]
    pub(crate) unoptimised: bool,
    /// With `--stage tree`, or alone: why each loop is there, and what the cost model expects
    #[arg(long)]
    pub(crate) explain: bool,
}

#[derive(Args, Debug)]
pub(crate) struct EditOptions {
    #[command(flatten)]
    pub(crate) program: ProgramOptions,
}

#[derive(Args, Debug)]
pub(crate) struct TuneOptions {
    #[command(flatten)]
    pub(crate) program: ProgramOptions,
    /// The time for everything
    #[arg(long, value_name = "S", default_value_t = 60.0, value_parser = parse_seconds)]
    pub(crate) seconds: f64,
    /// Where the best schedule is written; else the program's name with `.sched`, in the current directory
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Goes on where an earlier search ended, with what stands in FILE.log
    #[arg(long)]
    pub(crate) resume: bool,
    /// The seed of the search and of the inputs
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// How many threads a parallel loop may use
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    threads: Option<u32>,
    /// Prints JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What can be learned.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lesson {
    /// 1,797 handwritten digits, which are part of the program
    Digits,
}

#[derive(Args, Debug)]
pub(crate) struct TrainOptions {
    /// What is learned
    #[arg(value_enum)]
    pub(crate) lesson: Lesson,
    /// Where it is trained: a device's name, or `auto` for the best there is
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
    /// How often all examples are seen
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) epochs: u32,
    /// How many examples make a step
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) batch: u32,
    /// The highest learning rate
    #[arg(long, value_name = "R", default_value_t = 2e-3, value_parser = parse_rate)]
    pub(crate) rate: f64,
    /// The seed of first values, order and dropout
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Keeps the run in this file (safetensors), at the end of each epoch and when it is interrupted
    #[arg(long, value_name = "FILE")]
    pub(crate) checkpoint: Option<PathBuf>,
    /// Goes on where the run in the checkpoint's file ended
    #[arg(long)]
    pub(crate) resume: bool,
    /// Draws the curves to this file, as an SVG
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
    /// Prints JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    settings: SettingOptions,
}

#[derive(Args, Debug)]
pub(crate) struct TuneWorkerOptions {
    #[command(flatten)]
    settings: SettingOptions,
}

#[derive(Args, Debug)]
pub(crate) struct CheckOptions {
    /// What is checked: a device's name, or `auto` for the best there is
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
    /// How long random programs are tried, after the fixed suite
    #[arg(long, value_name = "S", default_value_t = 60, value_parser = clap::value_parser!(u64).range(..=1_000_000_000))]
    pub(crate) seconds: u64,
    /// The seed of the random programs, or of the first machine of --targets
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Checks the compiler and not a device: programs of all kinds become code for so many random machines, those of
    /// --seed and the following seeds
    #[arg(long, value_name = "N", conflicts_with_all = ["device", "seconds", "only", "table", "failures"])]
    pub(crate) targets: Option<u64>,
    /// Checks only this group of rows, or these: ops, casts, folds, kernels, features, schedules, runtime, errors,
    /// fuzzing
    #[arg(long, value_name = "GROUP", value_parser = parse_group)]
    pub(crate) only: Vec<Group>,
    /// Prints the table of every group, not only of those where something fails
    #[arg(long)]
    pub(crate) table: bool,
    /// A directory that programs which fail are written to
    #[arg(long, value_name = "DIR", default_value = FAILURES)]
    pub(crate) failures: PathBuf,
    /// Prints JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    settings: SettingOptions,
}

/// A list of things to measure.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Suite {
    /// How fast programs compile, and how fast the default schedule's code runs; peers are `torch-compile`, `jax` and
    /// `loop_tool`
    Compile,
    /// How fast the default schedule's code runs on one thread; peers are `numpy`, `torch`, `torch-compile`, `jax`,
    /// `onnxruntime`, `tinygrad` and `loop_tool`
    Cpu,
    /// What it costs to hand work to threads; peers are `crossbeam` and `rayon`
    Runtime,
}

impl Suite {
    /// As it is said on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Suite::Compile => "compile",
            Suite::Cpu => "cpu",
            Suite::Runtime => "runtime",
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct BenchOptions {
    /// What is measured
    #[arg(long, value_enum, default_value = "compile")]
    pub(crate) suite: Suite,
    /// Where our side runs: a device's name, or `auto` for the best there is
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
    /// Peers to measure beside us, or `none`; without this, all of the suite that can be had. Those in Python get
    /// environments of their own (torch's takes 5.4 GB)
    #[arg(long, value_name = "PEERS", value_delimiter = ',')]
    pub(crate) against: Vec<String>,
    /// Only work whose name contains this
    #[arg(long, value_name = "NAME")]
    pub(crate) only: Option<String>,
    /// How many times each side is measured; the median counts
    #[arg(long, value_name = "N", default_value_t = 41, value_parser = clap::value_parser!(u32).range(3..))]
    pub(crate) samples: u32,
    /// How many threads each side may use; 1 for the suites `cpu` and `compile` unless this says otherwise
    #[arg(long, value_name = "N")]
    threads: Option<String>,
    /// Draws the rows that have peers, as an SVG
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
    /// A folder that the table, the JSON and the plot are written to, named after the suite
    #[arg(long, value_name = "DIR")]
    pub(crate) write: Option<PathBuf>,
    /// Prints JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    settings: SettingOptions,
}

impl BenchOptions {
    /// How many threads are asked for, as the setting takes it.
    fn threads(&self) -> Option<String> {
        // Work is compared on one thread, whatever the environment or the file says for other runs.
        let default = (self.suite != Suite::Runtime).then(|| "1".to_owned());
        self.threads.clone().or(default)
    }
}

#[derive(Args, Debug)]
pub(crate) struct CacheOptions {
    #[command(subcommand)]
    pub(crate) action: CacheAction,
}

#[derive(Subcommand, Debug)]
pub(crate) enum CacheAction {
    /// What is kept
    List(JsonOnly),
    /// Removes everything that is kept
    Clear(JsonOnly),
}

fn parse_size(text: &str) -> Result<(String, i64), String> {
    let (name, value) = split(text, "SIZE=VALUE, for example M=128")?;
    let value = value.trim();
    let value: i64 = value.parse().map_err(|_| match value.parse::<f64>() {
        Ok(number) if number.is_finite() && number.fract() == 0.0 => {
            format!("the size {value} does not fit 64 bits")
        }
        _ => format!("`{value}` is not an integer"),
    })?;
    Ok((name, value))
}

fn parse_seconds(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(seconds) if (1.0..=1e6).contains(&seconds) => Ok(seconds),
        Ok(_) => Err("a search takes from 1 to 1000000 seconds".to_owned()),
        Err(_) => Err(format!("`{text}` is not a number of seconds")),
    }
}

fn parse_rate(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        // In f32, in which it is used, it is neither 0 nor infinite.
        Ok(rate) if rate > 0.0 && (rate as f32).is_finite() && rate as f32 > 0.0 => Ok(rate),
        Ok(_) => Err("a learning rate is a finite number above 0, for example 0.002".to_owned()),
        Err(_) => Err(format!("`{text}` is not a number")),
    }
}

fn parse_group(text: &str) -> Result<Group, String> {
    Group::from_name(text).ok_or_else(|| {
        let known = Group::ALL.map(Group::name);
        format!("the groups are {}", known.join(", "))
    })
}

fn parse_file(text: &str) -> Result<(String, PathBuf), String> {
    let (name, file) = split(text, "NAME=FILE, for example A=a.npy")?;
    Ok((name, PathBuf::from(file)))
}

fn parse_option(text: &str) -> Result<(String, String), String> {
    let expected = "expected NAME=VALUE, for example threads=4";
    let (name, value) = text.split_once('=').ok_or(expected)?;
    // An empty value is wrong for every option, which then says what it takes.
    match name.trim() {
        "" => Err(expected.to_owned()),
        name => Ok((name.to_owned(), value.to_owned())),
    }
}

fn split<'t>(text: &'t str, expected: &str) -> Result<(String, &'t str), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() && !value.trim().is_empty() => {
            Ok((name.trim().to_owned(), value))
        }
        _ => Err(format!("expected {expected}")),
    }
}
