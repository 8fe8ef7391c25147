//! `run`: runs a program.

use crate::arguments::RunOptions;
use crate::failure::Failure;
use crate::files::{check_writable, read_array, write_array};
use crate::memory::Plan;
use crate::preview::{Summary, describe, preview};
use crate::program::Opened;
use crate::random;
use crate::table::Table;
use crate::terminal::Terminal;
use crate::units;
use loopwright::backend::Program;
use loopwright::graph::{Array, Binding, Graph, NodeId, NodeOp};
use loopwright_config::Settings;
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) fn run(
    options: &RunOptions,
    settings: &Settings,
    terminal: &mut Terminal,
) -> Result<ExitCode, Failure> {
    let opened = Opened::new(&options.program, settings)?;
    let binding = opened.binding()?;
    check_names(&opened.graph, options)?;
    for (_, path) in &options.outputs {
        check_writable(path)?;
    }
    let clock = Instant::now();
    let stages = opened.stages()?;
    let lowering = clock.elapsed();
    Plan::new(&stages, &binding)?.check_fits()?;
    let mut given = given(&opened.graph, &binding, options)?;
    if !options.json {
        introduce(options, &opened, &binding, &given, terminal)?;
        terminal.flush()?;
    }
    let clock = Instant::now();
    let program = opened.compile(stages)?;
    let compile = lowering + clock.elapsed();
    let from_cache = program.executable().from_cache();
    if !options.json {
        let cached = if from_cache { ", from the cache" } else { "" };
        let text = format!("in {}{cached}", units::duration(compile));
        terminal.line(format!("  {:9}  {text}", "compiled"))?;
        terminal.flush()?;
    }
    let sizes = opened.given_sizes();
    let (mut results, times) = execute(&program, &sizes, &mut given, options.repeat)?;
    for (name, path) in &options.outputs {
        if let Some(result) = results.iter_mut().find(|result| result.name == *name) {
            write_array(path, &result.array)?;
            result.file = Some(path.clone());
        }
    }
    if options.json {
        let timing = Timing {
            compile,
            from_cache,
            runs: &times,
        };
        let document = document(options, &opened, &binding, &given, &results, &timing);
        terminal.json(&document)?;
    } else {
        conclude(&results, &times, terminal)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// An input or state with its values.
struct Given {
    name: String,
    array: Array,
    state: bool,
    /// Where the values come from; `None`: they are random.
    file: Option<PathBuf>,
}

/// An output, or a state that the program updates.
struct Produced {
    name: String,
    array: Array,
    state: bool,
    /// Where the values were written to.
    file: Option<PathBuf>,
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

/// The values of all inputs and states, from files or at random.
fn given(graph: &Graph, binding: &Binding, options: &RunOptions) -> Result<Vec<Given>, Failure> {
    let mut found = Vec::new();
    for node in graph.parameters() {
        let parts = graph.node(node);
        let state = matches!(parts.op, NodeOp::State);
        let shape: Vec<usize> = binding
            .shape(graph, node)
            .iter()
            .map(|size| *size as usize)
            .collect();
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
                let limit = random::index_limit(graph, binding, node);
                random::fill(&mut array, &parts.name, options.seed, limit);
                array
            }
        };
        found.push(Given {
            name: parts.name.clone(),
            array,
            state,
            file,
        });
    }
    Ok(found)
}

/// What to set so that a parameter gets the shape found in a file; `None` if that is not to be had.
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

/// Runs the program so many times; gives the results of the last run and the time of each.
fn execute(
    program: &Arc<Program>,
    sizes: &[(&str, i64)],
    given: &mut [Given],
    repeat: u32,
) -> Result<(Vec<Produced>, Vec<Duration>), Failure> {
    let mut times = Vec::new();
    let mut results = Vec::new();
    let mut bound = program.bind(sizes)?;
    for parameter in given.iter_mut() {
        if parameter.state {
            bound.state(&parameter.name, parameter.array.bytes_mut())?;
        } else {
            bound.input(&parameter.name, parameter.array.bytes())?;
        }
    }
    for _ in 0..repeat {
        let clock = Instant::now();
        bound.run()?;
        times.push(clock.elapsed());
    }
    for output in program.graph().outputs() {
        if let Some(array) = bound.take(&output.name) {
            results.push(Produced {
                name: output.name.clone(),
                array,
                state: false,
                file: None,
            });
        }
    }
    drop(bound);
    for update in program.graph().updates() {
        let name = &program.graph().node(update.state).name;
        if let Some(state) = given.iter().find(|given| given.name == *name) {
            results.push(Produced {
                name: name.clone(),
                array: state.array.clone(),
                state: true,
                file: None,
            });
        }
    }
    Ok((results, times))
}

/// What will run, on what, with what.
fn introduce(
    options: &RunOptions,
    opened: &Opened<'_>,
    binding: &Binding,
    given: &[Given],
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let style = terminal.style;
    let path = options.program.program.display().to_string();
    terminal.line(style.strong(&path))?;
    let device = opened.device.name();
    terminal.line(format!(
        "  {:9}  {device} ({})",
        "device",
        opened.device.why()
    ))?;
    let sizes: Vec<String> = opened
        .graph
        .integers()
        .map(|(symbol, name, _)| format!("{name}={}", binding.value(symbol)))
        .collect();
    if !sizes.is_empty() {
        terminal.line(format!("  {:9}  {}", "sizes", sizes.join(" ")))?;
    }
    let mut table = Table::default();
    for parameter in given {
        let array = describe(parameter.array.dtype(), parameter.array.shape());
        let from = match &parameter.file {
            Some(path) => format!("from {}", path.display()),
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

/// The middle one of the times, and the shortest.
fn median_and_best(times: &[Duration]) -> (Duration, Duration) {
    let mut sorted = times.to_vec();
    sorted.sort();
    let median = sorted.get(sorted.len() / 2).copied().unwrap_or_default();
    (median, sorted.first().copied().unwrap_or_default())
}

/// How long it took, and the results.
fn conclude(
    results: &[Produced],
    times: &[Duration],
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let style = terminal.style;
    let (median, best) = median_and_best(times);
    let ran = match times.len() {
        1 => format!("in {}", units::duration(median)),
        runs => format!(
            "{runs} times, median {}, best {}",
            units::duration(median),
            units::duration(best)
        ),
    };
    terminal.line(format!("  {:9}  {ran}", "ran"))?;
    for result in results {
        let name = style.strong(&result.name);
        let array = describe(result.array.dtype(), result.array.shape());
        let state = if result.state { "  (state)" } else { "" };
        terminal.line("")?;
        if result.array.shape().is_empty() {
            let value = preview(&result.array).join("");
            terminal.line(format!("{name}  {array}{state}  {value}"))?;
        } else {
            let summary = style.faint(&Summary::of(&result.array).text());
            terminal.line(format!("{name}  {array}{state}  {summary}"))?;
            for line in preview(&result.array) {
                terminal.line(format!("  {line}"))?;
            }
        }
        if let Some(path) = &result.file {
            terminal.line(style.faint(&format!("  written to {}", path.display())))?;
        }
    }
    Ok(())
}

struct Timing<'t> {
    compile: Duration,
    from_cache: bool,
    runs: &'t [Duration],
}

fn document(
    options: &RunOptions,
    opened: &Opened<'_>,
    binding: &Binding,
    given: &[Given],
    results: &[Produced],
    timing: &Timing<'_>,
) -> Value {
    let sizes: Map<String, Value> = opened
        .graph
        .integers()
        .map(|(symbol, name, _)| (name.to_owned(), json!(binding.value(symbol))))
        .collect();
    let mut inputs = Map::new();
    for parameter in given {
        let mut entry = json!({
            "shape": parameter.array.shape(),
            "dtype": parameter.array.dtype().name(),
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
    for result in results {
        let mut entry = json!({
            "shape": result.array.shape(),
            "dtype": result.array.dtype().name(),
            "kind": if result.state { "state" } else { "output" },
        });
        for (key, value) in Summary::of(&result.array).json() {
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
    let (median, best) = median_and_best(timing.runs);
    json!({
        "program": options.program.program.display().to_string(),
        "device": opened.device.name(),
        "why": opened.device.why(),
        "skipped": skipped,
        "sizes": sizes,
        "inputs": inputs,
        "outputs": outputs,
        "ms": units::milliseconds(median),
        "best_ms": units::milliseconds(best),
        "runs": timing.runs.len(),
        "compile_ms": units::milliseconds(timing.compile),
        "from_cache": timing.from_cache,
    })
}
