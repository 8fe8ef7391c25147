//! `dump`: a program at any stage of compilation, or its memory plan.

use crate::arguments::{DumpOptions, Stage};
use crate::failure::Failure;
use crate::program::Opened;
use crate::table::padded;
use crate::terminal::Terminal;
use crate::units;
use crate::verbs::dump_files::{Folder, file_name};
use crate::verbs::dump_plan::plan_text;
use loopwright::compile::{Kernels, Plainer, Program};
use loopwright::graph::{Binding, Graph, GraphError, print};
use loopwright::looptree::{Allocation, LoopTree, Storage, TreeNode, TreeRef, print_tree};
use loopwright::scheduler::{Estimate, estimate};
use loopwright::symbolic::Expr;
use loopwright_config::Settings;
use std::process::ExitCode;
use std::time::Duration;

pub(crate) fn dump(
    options: &DumpOptions,
    settings: &Settings,
    terminal: &mut Terminal,
) -> Result<ExitCode, Failure> {
    if options.unoptimised && options.stage != Some(Stage::Kernel) {
        return Err(Failure::usage(
            "`--unoptimised` is about the kernel; use it with `--stage kernel`",
        ));
    }
    // What is explained is the tree, so it need not be said.
    let stage = match (options.stage, &options.out) {
        (None, None) if options.explain => Some(Stage::Tree),
        (stage, _) => stage,
    };
    if options.explain && stage != Some(Stage::Tree) {
        return Err(Failure::usage(
            "`--explain` is about the loops; use it with `--stage tree`",
        ));
    }
    let opened = Opened::new(&options.program, settings)?.with_tuned();
    match (stage, &options.out) {
        (None, None) => return Err(Failure::usage("give `--stage STAGE` or `--out DIR`")),
        (None, Some(directory)) => {
            Folder::new(directory, &options.program)?.write_all(&opened, terminal)?;
        }
        (Some(stage), out) => {
            let text = stage_text(options, stage, &opened)?;
            match out {
                None => terminal.text(&text)?,
                Some(directory) => {
                    let name = file_name(stage, options.unoptimised, &opened.device);
                    let folder = Folder::new(directory, &options.program)?;
                    folder.write(&name, &text, terminal)?;
                }
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// One stage of a program.
fn stage_text(options: &DumpOptions, stage: Stage, opened: &Opened<'_>) -> Result<String, Failure> {
    let DumpOptions {
        unoptimised,
        explain,
        ..
    } = *options;
    Ok(match stage {
        Stage::Graph => print(&opened.graph),
        Stage::Schedule => opened.kernels()?.plan.to_string(),
        Stage::Tree if explain => explained_tree(opened, &opened.kernels()?)?,
        Stage::Tree => tree_text(opened, &opened.kernels()?)?,
        Stage::Kernel if unoptimised => {
            loopwright::kernel::print(&opened.kernels()?.unoptimised()?)
        }
        Stage::Kernel => loopwright::kernel::print(&opened.kernels()?.module()),
        Stage::Code => code_text(opened.compile()?.program()),
        Stage::Plan => {
            // Before anything is compiled, which does not need the sizes.
            opened.sizes()?;
            plan_text(opened, &opened.compile()?)?
        }
    })
}

/// What the device's compiler was given.
pub(super) fn code_text(program: &Program) -> String {
    let mut code = program.code();
    if !code.ends_with('\n') {
        code.push('\n');
    }
    code
}

/// The sizes' values where all have one; without, sizes are shown as they stand in the program.
fn known_binding(opened: &Opened<'_>, kernels: &Kernels) -> Result<Option<Binding>, Failure> {
    match opened.binding_of(kernels.plan.graph()) {
        Ok(binding) => Ok(Some(binding)),
        Err(GraphError::Unbound { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The loops, with the sizes' values where all have one.
pub(super) fn tree_text(opened: &Opened<'_>, kernels: &Kernels) -> Result<String, Failure> {
    let binding = known_binding(opened, kernels)?;
    annotated_tree(kernels, binding.as_ref(), None)
}

/// The same, with the reason for every loop and what the cost model expects of every step.
fn explained_tree(opened: &Opened<'_>, kernels: &Kernels) -> Result<String, Failure> {
    let binding = known_binding(opened, kernels)?;
    let plan = &kernels.plan;
    let target = opened.device.backend().target();
    let sizes = |symbol| binding.as_ref().map(|binding| binding.value(symbol));
    let estimate = estimate(plan.graph(), plan.schedule(), plan.tree(), &target, &sizes)?;
    let mut text = annotated_tree(kernels, binding.as_ref(), Some(&estimate))?;
    text += &format!(
        "# about {} by the cost model\n",
        units::duration(Duration::from_secs_f64(estimate.seconds.max(0.0)))
    );
    if let Some(plainer) = plainer(opened, kernels) {
        text += &format!("# {plainer}\n");
    }
    if kernels.reasons.is_empty() {
        text += "# the schedule was given: nobody chose these loops here\n";
    }
    Ok(text)
}

/// What runs in the place of a schedule of ours that is refused, by the device, too. Where there is no code at all for another
/// reason, whoever runs the program is told.
fn plainer(opened: &Opened<'_>, kernels: &Kernels) -> Option<Plainer> {
    let by_device = || opened.compile().ok()?.program().plainer().cloned();
    match (&kernels.plainer, &opened.schedule) {
        (Some(plainer), _) => Some(plainer.clone()),
        (None, Some(_)) => None,
        (None, None) => by_device(),
    }
}

/// Why a place of the tree is there; empty where nothing is known of it.
fn reason(kernels: &Kernels, place: TreeRef, estimate: &Estimate) -> String {
    let tree = kernels.plan.tree();
    match tree.node(place) {
        TreeNode::Leaf(node) => {
            let why = kernels
                .reasons
                .get(node)
                .map(|reasons| reasons.step.as_ref());
            let cost = estimate
                .step(*node)
                .map(|step| step.reason(kernels.plan.graph()));
            let parts = why.map(str::to_owned).into_iter().chain(cost);
            parts
                .filter(|part| !part.is_empty())
                .collect::<Vec<_>>()
                .join("; ")
        }
        TreeNode::Loop { .. } => {
            // All that share a loop chose it; the first that chose it for itself says why.
            let depth = tree.ancestors(place).len();
            let mut found = tree.leaves(place).into_iter().filter_map(|leaf| {
                let why = kernels.reasons.get(&leaf)?.loops.get(depth)?;
                (!why.is_empty()).then(|| why.to_string())
            });
            found.next().unwrap_or_default()
        }
    }
}

/// The tree's text with a comment at every loop and leaf; still a tree that can be read back.
fn annotated_tree(
    kernels: &Kernels,
    binding: Option<&Binding>,
    estimate: Option<&Estimate>,
) -> Result<String, Failure> {
    let (graph, tree) = (kernels.plan.graph(), kernels.plan.tree());
    let memory = kernels.plan.allocations()?;
    let mut comments = Vec::new();
    tree.walk(&mut |place, _| {
        let comment = match tree.node(place) {
            TreeNode::Loop { .. } => loop_comment(graph, tree, place, binding),
            TreeNode::Leaf(node) => {
                let dims = &graph.node(*node).dims;
                let dims: Vec<&str> = dims
                    .iter()
                    .map(|dim| graph.dim(*dim).name.as_str())
                    .collect();
                let kept = memory
                    .get(node)
                    .map_or_else(String::new, |kept| storage(graph, kept, binding));
                format!("{}[{}]{kept}", graph.node(*node).dtype, dims.join(", "))
            }
        };
        let why = estimate.map_or_else(String::new, |estimate| reason(kernels, place, estimate));
        comments.push(match why.is_empty() {
            true => comment,
            false => format!("{comment}: {why}"),
        });
    });
    // One line each in the order of the walk, between the header and closing braces.
    let text = print_tree(graph, tree);
    let width = text.lines().map(str::len).max().unwrap_or(0);
    let mut comments = comments.into_iter();
    let mut annotated = String::new();
    for (number, line) in text.lines().enumerate() {
        let plain = number == 0 || line.trim() == "}";
        match if plain { None } else { comments.next() } {
            Some(comment) => annotated += &format!("{}  # {comment}\n", padded(line, width)),
            None => annotated += &format!("{line}\n"),
        }
    }
    Ok(annotated)
}

/// How often a loop runs.
fn loop_comment(
    graph: &Graph,
    tree: &LoopTree,
    place: TreeRef,
    binding: Option<&Binding>,
) -> String {
    let Some(spec) = tree.spec(place) else {
        return String::new();
    };
    // An outer loop over the same dimension leaves one of its steps to this one.
    let ancestors = tree.ancestors(place);
    let outer = ancestors
        .iter()
        .rev()
        .filter_map(|above| tree.spec(*above))
        .find(|above| above.dim == spec.dim);
    let size = &graph.dim(spec.dim).size;
    let covered = match (outer, binding) {
        (Some(outer), _) => Some(outer.step),
        (None, Some(binding)) => Some(binding.size(spec.dim)),
        (None, None) => size.as_const(),
    };
    match covered {
        Some(covered) => {
            let times = units::count((covered as u64).div_ceil(spec.step as u64) as usize, "time");
            let short = covered % spec.step != 0;
            format!("{times}{}", if short { ", the last shorter" } else { "" })
        }
        None => {
            let size = shown(graph, size);
            match spec.step {
                1 => format!("{size} times"),
                step => format!("{size} in steps of {step}"),
            }
        }
    }
}

fn shown(graph: &Graph, expr: &Expr) -> String {
    expr.display(&|symbol| graph.symbol_name(symbol))
        .to_string()
}

/// Where a result is kept.
fn storage(graph: &Graph, kept: &Allocation, binding: Option<&Binding>) -> String {
    let held = || {
        let Ok(elements) = kept.elements() else {
            return String::new();
        };
        let value = binding.and_then(|binding| {
            let elements = elements.evaluate(&|symbol| Some(binding.value(symbol)));
            elements.ok()
        });
        let value = value.or_else(|| elements.as_const());
        match value {
            Some(value) => {
                let bytes = value.max(0) as u128 * kept.dtype.bytes() as u128;
                format!(", {}", units::bytes(bytes))
            }
            None => format!(", {} elements", shown(graph, &elements)),
        }
    };
    match kept.storage {
        Storage::Output(at) => {
            let output = graph.outputs().get(at as usize);
            let name = output.map_or("", |output| output.name.as_str());
            format!(" -> output `{name}`{}", held())
        }
        Storage::State(state) => format!(" -> state `{}`{}", graph.node_name(state), held()),
        Storage::Private => format!(" -> private{}", held()),
        Storage::Scratch => format!(" -> scratch{}", held()),
    }
}
