//! `run`: runs a program.

use crate::arguments::RunOptions;
use crate::failure::Failure;
use crate::files::{Written, check_places, check_writable, read_array, write_array, write_text};
use crate::memory::check_fits;
use crate::preview::{Summary, describe, preview};
use crate::program::{Compiled, NO_CAP, Opened};
use crate::stores::Stores;
use crate::table::Table;
use crate::terminal::{Shown as _, Terminal, complain};
use crate::units;
use crate::verify::coverage;
use indicatif::{ProgressBar, ProgressStyle};
use loopwright::compile::Plainer;
use loopwright::graph::{Array, Binding, Graph, NodeId, NodeOp};
use loopwright::looptree::print_schedule;
use loopwright::ops::DType;
use loopwright::runtime::{LinkOptions, MERGE, Merge, Routine};
use loopwright_config::Settings;
use loopwright_files::STANDARD_OUTPUT;
use loopwright_tune::{fill_random, index_limit};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

pub(crate) fn run(
    options: &RunOptions,
    settings: &Settings,
    terminal: &mut Terminal,
) -> Result<ExitCode, Failure> {
    let opened = Opened::new(&options.program, settings)?.with_tuned();
    let binding = opened.binding()?;
    check_names(&opened.graph, options)?;
    let written = written(options, settings);
    for (_, path) in &written {
        check_writable(path)?;
    }
    check_places(Some(&options.program.program), &written)?;
    if settings.verify() && !opened.device.backend().capabilities().computes {
        return Err(Failure::usage(format!(
            "device `{}` computes nothing, so there is nothing to verify",
            opened.device.name()
        )));
    }
    let run = Run {
        options,
        settings,
        opened: &opened,
        binding: &binding,
    };
    let done = run.perform(terminal);
    // What led to a failure is what a trace of it shows.
    let traced = run.write_trace();
    let done = match (done, traced) {
        (Ok(done), Ok(_)) => done,
        (Ok(_), Err(failure)) => return Err(failure),
        (Err(failure), traced) => {
            if let Ok(Some(path)) = traced {
                complain(format!("note: {}", trace_written(path)));
            }
            return Err(failure);
        }
    };
    if options.json {
        terminal.json(&run.document(&done))?;
    } else {
        run.conclude(&done, terminal)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// All that a run writes.
fn written<'a>(options: &'a RunOptions, settings: &'a Settings) -> Vec<Written<'a>> {
    let outputs = options.outputs.iter();
    let mut written: Vec<Written<'_>> = outputs
        .map(|(name, path)| (format!("--out {name}"), path.as_path()))
        .collect();
    written.extend(settings.trace().map(|path| ("--trace".to_owned(), path)));
    if options.json {
        written.push(("--json".to_owned(), Path::new(STANDARD_OUTPUT)));
    }
    written
}

fn trace_written(path: &Path) -> String {
    format!(
        "trace written to {}; open it at ui.perfetto.dev",
        path.shown()
    )
}

/// A run, before anything is compiled.
struct Run<'r> {
    options: &'r RunOptions,
    settings: &'r Settings,
    opened: &'r Opened<'r>,
    binding: &'r Binding,
}

/// What a run gave.
struct Done {
    given: Vec<Given>,
    results: Vec<Produced>,
    compile: Duration,
    from_cache: bool,
    /// Where the schedule stands in for one that was refused.
    plainer: Option<Plainer>,
    /// How long each run took.
    times: Vec<Duration>,
    stores: Option<Stores>,
}

/// An input or state.
struct Given {
    name: String,
    dtype: DType,
    shape: Vec<usize>,
    state: bool,
    /// Where the values come from; `None`: they are random.
    file: Option<PathBuf>,
}

/// An output, or a state that the program updates. Its values are looked at and let go: they may be large.
struct Produced {
    name: String,
    dtype: DType,
    shape: Vec<usize>,
    state: bool,
    summary: Summary,
    preview: Vec<String>,
    /// Where the values were written to.
    file: Option<PathBuf>,
}

impl Run<'_> {
    /// Compiles, links, uploads, runs, and looks at the results.
    fn perform(&self, terminal: &mut Terminal) -> Result<Done, Failure> {
        let Run {
            options, opened, ..
        } = self;
        let clock = Instant::now();
        let compiled = opened.compile()?;
        let compile = clock.elapsed();
        let sizes = opened.given_sizes();
        // Without a cap first: what does not fit at all needs no larger pools.
        check_fits(&compiled.plan(&sizes, NO_CAP)?)?;
        let link = LinkOptions {
            sizes: &sizes,
            prior: &[],
        };
        let stream = opened.device.device.stream()?;
        let routine = stream.context().link(&compiled.code, &link)?;
        let given = self.upload(&compiled, &routine)?;
        let from_cache = compiled.program().executable().from_cache();
        if !options.json {
            self.introduce(&given, terminal)?;
            let cached = if from_cache { ", from the cache" } else { "" };
            let text = format!("in {}{cached}", units::duration(compile));
            terminal.line(format!("  {:9}  {text}", "compiled"))?;
            terminal.flush()?;
        }
        stream.wait()?;
        let statics = opened.given_statics();
        let mut times = Vec::new();
        let bar = self.checking_bar();
        for _ in 0..options.repeat {
            let clock = Instant::now();
            let ran = routine.run(&statics);
            times.push(clock.elapsed());
            bar.inc(1);
            if let Err(error) = ran {
                bar.finish_and_clear();
                return Err(error.into());
            }
        }
        bar.finish_and_clear();
        Ok(Done {
            given,
            results: self.results(&compiled, &routine)?,
            compile,
            from_cache,
            plainer: compiled.program().plainer().cloned(),
            times,
            stores: match self.settings.log_stores() {
                true => Some(Stores::of(&compiled, &routine)?),
                false => None,
            },
        })
    }

    /// What is shown while runs are checked, which takes far longer than they do: on a terminal, and on stderr.
    fn checking_bar(&self) -> ProgressBar {
        if !self.settings.verify() || self.options.json {
            return ProgressBar::hidden();
        }
        let bar = ProgressBar::new(u64::from(self.options.repeat));
        let template = "  {spinner} checking  [{bar:32}] {pos} of {len} runs  {elapsed}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.enable_steady_tick(Duration::from_millis(100));
        bar
    }

    /// Gives the routine the values of all inputs and states, from files or at random; each is let go
    /// as soon as the device has it.
    fn upload(&self, compiled: &Compiled, routine: &Routine) -> Result<Vec<Given>, Failure> {
        let (graph, binding) = (&self.opened.graph, self.binding);
        let context = routine.context();
        let merged = compiled.code.merge_node();
        let mut found = Vec::new();
        for node in graph.parameters() {
            let (given, array) = given(graph, binding, node, self.options)?;
            let is_merged = |merged: &&str| given.name.strip_prefix(merged) == Some(MERGE);
            match merged.filter(is_merged) {
                // What another stream would have; here it is ours.
                Some(merged) => {
                    let source = context.stream().context().with_host(merged, array)?;
                    context.merge_from(merged, &source, Merge::Copy)?;
                }
                // `false` is for what the program has and does not use.
                None => {
                    let _: bool = context.upload(&given.name, array)?;
                }
            }
            found.push(given);
        }
        Ok(found)
    }

    /// Looks at the results, and writes those that have a file.
    fn results(&self, compiled: &Compiled, routine: &Routine) -> Result<Vec<Produced>, Failure> {
        let graph = &self.opened.graph;
        let outputs = graph.outputs().iter().map(|output| {
            let name = output.name.as_str();
            (name, compiled.inner_name(name), false)
        });
        let states = graph.updates().iter().map(|update| {
            let name = graph.node(update.state).name.as_str();
            (name, name, true)
        });
        let mut results: Vec<Produced> = Vec::new();
        for (name, inner, state) in outputs.chain(states) {
            let Some(array) = routine.context().read(inner)? else {
                continue;
            };
            // The output, where a state has the same name.
            let first = !results.iter().any(|result| result.name == name);
            let mut files = self.options.outputs.iter();
            let file = files.find(|(wanted, _)| first && wanted == name);
            let file = file.map(|(_, path)| path.clone());
            if let Some(path) = &file {
                write_array(path, &array)?;
            }
            results.push(Produced {
                name: name.to_owned(),
                dtype: array.dtype(),
                shape: array.shape().to_vec(),
                state,
                summary: Summary::of(&array),
                preview: preview(&array),
                file,
            });
        }
        Ok(results)
    }

    /// Writes the trace, where one is wanted; says where to.
    fn write_trace(&self) -> Result<Option<&Path>, Failure> {
        let trace = self.opened.device.runtime.trace();
        let (Some(trace), Some(path)) = (trace, self.settings.trace()) else {
            return Ok(None);
        };
        write_text(path, &trace.to_json().to_string())?;
        Ok(Some(path))
    }

    /// What will run, on what, with what.
    fn introduce(&self, given: &[Given], terminal: &mut Terminal) -> Result<(), Failure> {
        let Run {
            options, opened, ..
        } = self;
        let style = terminal.style;
        let path = options.program.program.shown();
        terminal.line(style.strong(&path))?;
        let device = opened.device.name();
        terminal.line(format!(
            "  {:9}  {device} ({})",
            "device",
            opened.device.why()
        ))?;
        if !opened.device.backend().capabilities().computes {
            let warning =
                style.warning("computes nothing: results are what stood in memory before");
            terminal.line(format!("  {:9}  {warning}", ""))?;
        }
        let sizes: Vec<String> = opened
            .graph
            .integers()
            .map(|(symbol, name, _)| format!("{name}={}", self.binding.value(symbol)))
            .collect();
        if !sizes.is_empty() {
            terminal.line(format!("  {:9}  {}", "sizes", sizes.join(" ")))?;
        }
        let mut table = Table::default();
        for parameter in given {
            let array = describe(parameter.dtype, &parameter.shape);
            let from = match &parameter.file {
                Some(path) => format!("from {}", path.shown()),
                None => format!("random, seed {}", options.seed),
            };
            let kind = if parameter.state { "(state)" } else { "" };
            table.row([&parameter.name, &array, &from, kind]);
        }
        for (at, line) in table.lines(0).iter().enumerate() {
            let label = if at == 0 { "inputs" } else { "" };
            terminal.line(format!("  {label:9}  {line}"))?;
        }
        Ok(())
    }

    /// How long it took, and the results.
    fn conclude(&self, done: &Done, terminal: &mut Terminal) -> Result<(), Failure> {
        let style = terminal.style;
        let (median, best) = median_and_best(&done.times);
        let ran = match done.times.len() {
            1 => format!("in {}", units::duration(median)),
            runs => format!(
                "{runs} times, median {}, best {}{}",
                units::duration(median),
                units::duration(best),
                self.rates(best)
                    .map_or_else(String::new, |(flops, bytes)| format!(
                        " ({flops:.3} GFLOP/s, {bytes:.3} GB/s)"
                    ))
            ),
        };
        let verify = self.settings.verify();
        let checking = if verify { ", checking included" } else { "" };
        terminal.line(format!("  {:9}  {ran}{checking}", "ran"))?;
        if verify {
            let text = match done.times.len() {
                1 => "the run agrees".to_owned(),
                runs => format!("all {runs} runs agree"),
            };
            let coverage = coverage();
            let with = match coverage.is_full() {
                true => "with the interpreter and the reference".to_owned(),
                false => format!(
                    "with the reference in a sample of {} of {} elements ({:.2} %)",
                    coverage.checked,
                    coverage.elements,
                    coverage.share() * 100.0
                ),
            };
            terminal.line(format!("  {:9}  {text} {with}", "verified"))?;
        }
        for result in &done.results {
            let name = style.strong(&result.name);
            let array = describe(result.dtype, &result.shape);
            let state = if result.state { "  (state)" } else { "" };
            terminal.line("")?;
            if result.shape.is_empty() {
                let value = result.preview.join("");
                terminal.line(format!("{name}  {array}{state}  {value}"))?;
            } else {
                let summary = style.faint(&result.summary.text());
                terminal.line(format!("{name}  {array}{state}  {summary}"))?;
                for line in &result.preview {
                    terminal.line(format!("  {line}"))?;
                }
            }
            if let Some(path) = &result.file {
                terminal.line(style.faint(&format!("  written to {}", path.shown())))?;
            }
        }
        if let Some(stores) = &done.stores {
            stores.print(terminal)?;
        }
        if let Some(path) = self.settings.trace() {
            terminal.line("")?;
            terminal.line(trace_written(path))?;
        }
        Ok(())
    }

    /// What a time means: billions of arithmetic operations a second, as the cost model counts them, and of bytes of inputs,
    /// states and results, each once. `None` where checking is part of the time, and for devices that compute nothing.
    fn rates(&self, time: Duration) -> Option<(f64, f64)> {
        let opened = self.opened;
        if self.settings.verify() || !opened.device.backend().capabilities().computes {
            return None;
        }
        let flops = opened.flops()?;
        let graph = &opened.graph;
        let outputs = graph.outputs().iter().map(|output| output.node);
        let updates = graph.updates().iter().map(|update| update.state);
        let bytes: f64 = graph
            .parameters()
            .chain(outputs)
            .chain(updates)
            .map(|node| {
                let elements = self.binding.elements(graph, node) as f64;
                elements * graph.node(node).dtype.bytes() as f64
            })
            .sum();
        // Clocks have steps; nothing takes no time at all.
        let seconds = time.as_secs_f64().max(1e-9);
        Some((flops / seconds / 1e9, bytes / seconds / 1e9))
    }

    fn document(&self, done: &Done) -> Value {
        let Run {
            options, opened, ..
        } = self;
        let sizes: Map<String, Value> = opened
            .graph
            .integers()
            .map(|(symbol, name, _)| (name.to_owned(), json!(self.binding.value(symbol))))
            .collect();
        let mut inputs = Map::new();
        for parameter in &done.given {
            let mut entry = json!({
                "shape": parameter.shape,
                "dtype": parameter.dtype.name(),
                "kind": if parameter.state { "state" } else { "input" },
                "random": parameter.file.is_none(),
            });
            match &parameter.file {
                Some(path) => entry["file"] = json!(path.display().to_string()),
                None => entry["seed"] = json!(options.seed),
            }
            inputs.insert(parameter.name.clone(), entry);
        }
        let mut outputs = Map::new();
        for result in &done.results {
            let mut entry = json!({
                "shape": result.shape,
                "dtype": result.dtype.name(),
                "kind": if result.state { "state" } else { "output" },
            });
            for (key, value) in result.summary.json() {
                entry[key] = value;
            }
            if let Some(path) = &result.file {
                entry["file"] = json!(path.display().to_string());
            }
            // An output may have the name of a state that is updated too.
            let name = match outputs.contains_key(&result.name) {
                true => format!("{} (state)", result.name),
                false => result.name.clone(),
            };
            outputs.insert(name, entry);
        }
        let skipped: Vec<Value> = opened
            .device
            .skipped
            .iter()
            .map(|(name, reason)| json!({ "device": name, "reason": reason }))
            .collect();
        let (median, best) = median_and_best(&done.times);
        let mut document = json!({
            "program": options.program.program.shown(),
            "device": opened.device.name(),
            "why": opened.device.why(),
            "skipped": skipped,
            "sizes": sizes,
            "inputs": inputs,
            "outputs": outputs,
            "ms": units::milliseconds(median),
            "best_ms": units::milliseconds(best),
            "runs": done.times.len(),
            "compile_ms": units::milliseconds(done.compile),
            "from_cache": done.from_cache,
            "schedule": match (&options.program.schedule, opened.tuned) {
                (Some(_), _) => "file",
                (None, true) => "tuned",
                (None, false) => "default",
            },
        });
        if let (true, Some(schedule)) = (opened.tuned, &opened.schedule) {
            document["tuned_schedule"] = json!(print_schedule(&opened.graph, schedule));
        }
        if let Some(path) = &options.program.schedule {
            document["schedule_file"] = json!(path.shown());
        }
        if let Some(plainer) = &done.plainer {
            document["plainer_schedule"] = json!({
                "reason": plainer.reason,
                "in_its_place": plainer.effort.describe(),
            });
        }
        if let Some((flops, bytes)) = self.rates(best) {
            document["gflops"] = json!(flops);
            document["gbytes_per_second"] = json!(bytes);
        }
        // Keys of what was asked for alone.
        if self.settings.verify() {
            let coverage = coverage();
            document["verified"] = json!(true);
            document["verified_elements"] = json!(coverage.checked);
            document["verified_share"] = json!(coverage.share());
        }
        if let Some(stores) = &done.stores {
            document["stores"] = stores.json();
        }
        if let Some(path) = self.settings.trace() {
            document["trace"] = json!(path.display().to_string());
        }
        document
    }
}

/// Checks the names given with `--in` and `--out` against those of the program.
fn check_names(graph: &Graph, options: &RunOptions) -> Result<(), Failure> {
    let parameters: Vec<&str> = graph
        .parameters()
        .map(|node| graph.node(node).name.as_str())
        .collect();
    let outputs = graph.outputs().iter().map(|output| output.name.as_str());
    let updates = graph.updates().iter();
    let states = updates.map(|update| graph.node(update.state).name.as_str());
    let results: Vec<&str> = outputs.chain(states).collect();
    for (option, what, known, given) in [
        ("--in", "input or state", &parameters, &options.inputs),
        (
            "--out",
            "output or updated state",
            &results,
            &options.outputs,
        ),
    ] {
        for (at, (name, _)) in given.iter().enumerate() {
            if !known.contains(&name.as_str()) {
                let known = match known.is_empty() {
                    true => "it has none".to_owned(),
                    false => format!("it has {}", known.join(", ")),
                };
                return Err(Failure::new(format!("the program has no {what} `{name}`"))
                    .help(format!("{known}; the option is `{option} NAME=FILE`")));
            }
            if given[..at].iter().any(|(before, _)| before == name) {
                let complaint = format!("`{option} {name}=...` is given twice");
                return Err(Failure::usage(complaint));
            }
        }
    }
    Ok(())
}

/// An input or state with its values, from a file or at random.
fn given(
    graph: &Graph,
    binding: &Binding,
    node: NodeId,
    options: &RunOptions,
) -> Result<(Given, Array), Failure> {
    let parts = graph.node(node);
    let state = matches!(parts.op, NodeOp::State);
    let shape = binding.shape(graph, node);
    let shape: Vec<usize> = shape.iter().map(|size| *size as usize).collect();
    let file = options.inputs.iter().find(|(name, _)| *name == parts.name);
    let file = file.map(|(_, path)| path.clone());
    let array = match &file {
        Some(path) => {
            let what = if state { "state" } else { "input" };
            let remedy = |found: &[usize]| sizes_for(graph, binding, node, found);
            read_array(path, what, &parts.name, parts.dtype, &shape, remedy)?
        }
        None => {
            let mut array = Array::zeros(parts.dtype, &shape)
                .map_err(|error| Failure::new(format!("out of memory: {error}")))?;
            let limit = index_limit(graph, binding, node);
            fill_random(&mut array, &parts.name, options.seed, limit);
            array
        }
    };
    let given = Given {
        name: parts.name.clone(),
        dtype: parts.dtype,
        shape,
        state,
        file,
    };
    Ok((given, array))
}

/// What to set so that a parameter gets the shape found in a file; `None` if nothing gives it.
fn sizes_for(graph: &Graph, binding: &Binding, node: NodeId, found: &[usize]) -> Option<String> {
    let dims = &graph.node(node).dims;
    if dims.len() != found.len() {
        return None;
    }
    let mut settings: Vec<String> = Vec::new();
    for (dim, size) in dims.iter().zip(found) {
        if binding.size(*dim) == *size as i64 {
            continue;
        }
        let name = shown_size(graph, &graph.dim(*dim).size)?;
        let setting = format!("--set {name}={size}");
        if !settings.contains(&setting) {
            settings.push(setting);
        }
    }
    Some(format!("`{}` would make it fit", settings.join(" ")))
}

/// The name of a size that stands alone.
fn shown_size(graph: &Graph, expr: &loopwright::symbolic::Expr) -> Option<String> {
    let text = expr
        .display(&|symbol| graph.symbol_name(symbol))
        .to_string();
    graph
        .sizes()
        .any(|(_, name, _)| name == text)
        .then_some(text)
}

/// The middle one of the times, and the shortest.
fn median_and_best(times: &[Duration]) -> (Duration, Duration) {
    let mut sorted = times.to_vec();
    sorted.sort();
    let median = sorted.get(sorted.len() / 2).copied().unwrap_or_default();
    (median, sorted.first().copied().unwrap_or_default())
}
