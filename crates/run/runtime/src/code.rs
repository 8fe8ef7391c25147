//! Code: compiled, and not yet tied to memory.

use crate::device::{Device, Platform};
use crate::error::RuntimeError;
use crate::layout::{Layout, MERGE};
use crate::modes::{Moded, Modes, NodeMode, carry_out, inferred};
use crate::plan::Plan;
use crate::trace::{Trace, compiling};
use loopwright_arena::TiVec;
use loopwright_compile::{BatchEntry, Program, ProgramError, Recent};
use loopwright_graph::{Graph, GraphBuilder, NodeId, NodeOp};
use loopwright_looptree::Schedule;
use std::fmt;
use std::sync::{Arc, Mutex};

/// How a program is compiled.
#[derive(Clone, Debug)]
pub struct CodeOptions {
    /// How it runs; `None`: a schedule is made.
    pub schedule: Option<Schedule>,
    /// Where its values live, as far as that is not left to be inferred.
    pub modes: Modes,
    /// Whether it is compiled now, once for all contexts and sizes. Otherwise it is compiled when it is
    /// linked, for the sizes that it is linked with.
    pub ahead: bool,
}

impl Default for CodeOptions {
    fn default() -> CodeOptions {
        CodeOptions {
            schedule: None,
            modes: Modes::default(),
            ahead: true,
        }
    }
}

/// Layouts of a program at different sizes that are kept.
const RECENT_LAYOUTS: usize = 256;

/// A program compiled for a backend; any of its devices can link it, in any number of contexts.
/// Clones are the same code.
#[derive(Clone)]
pub struct Code {
    pub(crate) shared: Arc<CodeShared>,
}

pub(crate) struct CodeShared {
    pub(crate) name: Arc<str>,
    pub(crate) platform: Arc<Platform>,
    graph: Graph,
    schedule: Option<Schedule>,
    modes: Vec<NodeMode>,
    /// The one of its runtime: it may be compiled when it is linked, too.
    trace: Option<Arc<Trace>>,
    /// `None` where it is compiled when it is linked.
    program: Option<Arc<Program>>,
    /// By the values of all sizes, those used last.
    layouts: Mutex<Recent<Vec<i64>, Arc<Layout>>>,
}

/// Programs compiled together, as one module.
pub struct Batch {
    /// In the order given; `None` for those that were left out.
    pub(crate) codes: Vec<Option<Code>>,
}

/// One program of a batch.
pub struct BatchProgram<'a> {
    /// What it is called; no two of a batch have the same name.
    pub name: &'a str,
    /// The program.
    pub graph: &'a Graph,
    /// How it is compiled.
    pub options: CodeOptions,
}

impl Device {
    /// Refuses work in a process that was forked from the one in which the device's runtime was made: streams have their workers
    /// there, and threads of that process may have held locks.
    ///
    /// # Errors
    /// [`RuntimeError::Stream`] with what to do instead.
    pub fn check_process(&self) -> Result<(), RuntimeError> {
        self.shared.runtime.check_process()
    }

    /// Compiles a program for the device's backend.
    ///
    /// # Errors
    /// [`RuntimeError::Compile`], or [`RuntimeError::Code`] for names and modes that cannot be.
    pub fn compile(
        &self,
        name: &str,
        graph: &Graph,
        options: &CodeOptions,
    ) -> Result<Code, RuntimeError> {
        self.check_process()?;
        let platform = &self.shared.platform;
        let moded = prepare(platform, name, graph, options)?;
        let program = match options.ahead {
            true => Some(self.compiling(name, || {
                compile(platform, name, &moded.graph, moded.schedule.as_ref())
            })?),
            false => None,
        };
        Ok(self.code(name, moded, program))
    }

    /// Compiles, on the record where there is a trace.
    fn compiling<T>(&self, name: &str, compile: impl FnOnce() -> T) -> T {
        compiling(self.shared.runtime.trace.as_deref(), name, compile)
    }

    /// Compiles programs into one module. `keep` says by name which are compiled; the others' places
    /// stay empty. An output that is set to be virtual gets no memory: the programs of the batch that
    /// have an input of its name compute it themselves.
    ///
    /// # Errors
    /// As [`compile`](Device::compile).
    pub fn compile_batch(
        &self,
        programs: &[BatchProgram<'_>],
        keep: impl Fn(&str) -> bool,
    ) -> Result<Batch, RuntimeError> {
        self.check_process()?;
        let platform = &self.shared.platform;
        let graphs = inline_virtual_outputs(programs)?;
        let mut kept = Vec::new();
        for (program, graph) in programs.iter().zip(&graphs) {
            kept.push(match keep(program.name) {
                false => None,
                true => {
                    let gone: Vec<&str> = program
                        .options
                        .modes
                        .virtual_outputs(program.graph)
                        .collect();
                    let options = CodeOptions {
                        modes: program.options.modes.without(&gone),
                        ..program.options.clone()
                    };
                    Some(prepare(platform, program.name, graph, &options)?)
                }
            });
        }
        let entries: Vec<BatchEntry<'_>> = programs
            .iter()
            .zip(&kept)
            .filter_map(|(program, moded)| {
                let moded = moded.as_ref()?;
                Some(BatchEntry {
                    name: program.name,
                    graph: &moded.graph,
                    schedule: moded.schedule.as_ref(),
                })
            })
            .collect();
        let compiled = match entries.is_empty() {
            true => Vec::new(),
            false => {
                let names: Vec<&str> = entries.iter().map(|entry| entry.name).collect();
                let names = names.join(", ");
                self.compiling(&names, || platform.compiler.compile_batch(&entries))
                    .map_err(|reason| compile_error(&names, reason))?
            }
        };
        drop(entries);
        let mut compiled = compiled.into_iter();
        let codes = programs.iter().zip(kept).map(|(program, moded)| {
            moded.map(|moded| self.code(program.name, moded, compiled.next()))
        });
        Ok(Batch {
            codes: codes.collect(),
        })
    }
}

fn compile_error(code: &str, reason: ProgramError) -> RuntimeError {
    RuntimeError::Compile {
        code: code.to_owned(),
        reason: Box::new(reason),
    }
}

fn compile(
    platform: &Platform,
    name: &str,
    graph: &Graph,
    schedule: Option<&Schedule>,
) -> Result<Arc<Program>, RuntimeError> {
    let compiled = platform.compiler.compile(graph, schedule);
    compiled.map_err(|reason| compile_error(name, reason))
}

/// Checks names, and carries modes out.
fn prepare(
    platform: &Platform,
    name: &str,
    graph: &Graph,
    options: &CodeOptions,
) -> Result<Moded, RuntimeError> {
    let refuse = |reason: String| RuntimeError::Code {
        code: name.to_owned(),
        reason,
    };
    let parameters = || graph.parameters().map(|node| graph.node(node));
    for output in graph.outputs() {
        if parameters().any(|node| node.name == output.name) {
            return Err(refuse(format!(
                "`{}` is an output and an input or state: in a context they would be one array; \
                 give the output another name",
                output.name
            )));
        }
    }
    let mut merges = parameters().filter(|node| node.name.ends_with(MERGE));
    if let (Some(first), Some(second)) = (merges.next(), merges.next()) {
        return Err(refuse(format!(
            "it merges `{}` and `{}`; a routine has one merge buffer, so merge them in two routines",
            first.name.trim_end_matches(MERGE),
            second.name.trim_end_matches(MERGE)
        )));
    }
    if let Some(state) =
        parameters().find(|node| node.name.ends_with(MERGE) && matches!(node.op, NodeOp::State))
    {
        return Err(refuse(format!(
            "`{}` is a state; what is merged is an input",
            state.name
        )));
    }
    if options.ahead && options.modes.is_empty() {
        // Nothing is to be carried out, and the compiler is about to make the schedule.
        return Ok(Moded {
            graph: graph.clone(),
            schedule: options.schedule.clone(),
            modes: None,
        });
    }
    let target = platform.backend.target();
    let order = platform.compiler.order();
    let schedule = options.schedule.as_ref();
    carry_out(graph, schedule, &target, order, &options.modes).map_err(refuse)
}

/// The graphs of a batch without outputs that are to be virtual, and with their definitions where the
/// other programs read them.
fn inline_virtual_outputs(programs: &[BatchProgram<'_>]) -> Result<Vec<Graph>, RuntimeError> {
    let mut graphs: Vec<Graph> = programs
        .iter()
        .map(|program| program.graph.clone())
        .collect();
    for (at, program) in programs.iter().enumerate() {
        let refuse = |reason: String| RuntimeError::Code {
            code: program.name.to_owned(),
            reason,
        };
        let gone: Vec<&str> = program
            .options
            .modes
            .virtual_outputs(program.graph)
            .collect();
        if gone.is_empty() {
            continue;
        }
        // Its definition, with what it reads from programs before it in the batch.
        let definition = graphs[at].clone();
        if let Some((name, read, writer)) = changed_meanwhile(&definition, &gone, programs) {
            return Err(refuse(format!(
                "`{name}` cannot be virtual: it is computed from `{read}`, which `{writer}` writes"
            )));
        }
        for name in &gone {
            let output = definition
                .outputs()
                .iter()
                .find(|output| output.name == *name);
            let node = output.expect("it is an output").node;
            for (other, graph) in graphs.iter_mut().enumerate() {
                let reads = graph.parameters().any(|parameter| {
                    let parameter = graph.node(parameter);
                    parameter.name == *name && matches!(parameter.op, NodeOp::Input)
                });
                if other < at && reads {
                    let reader = programs[other].name;
                    return Err(refuse(format!(
                        "`{name}` cannot be virtual: `{reader}` reads it and comes before it"
                    )));
                }
                if other != at && reads {
                    *graph = graph
                        .inline_input(name, &definition, node)
                        .map_err(|error| refuse(error.to_string()))?;
                }
            }
        }
        let mut builder = GraphBuilder::from_graph(&definition);
        for name in &gone {
            builder.remove_output(name);
        }
        graphs[at] = builder
            .finish()
            .map_err(|error| refuse(format!("with {} virtual: {error}", gone.join(", "))))?;
    }
    Ok(graphs)
}

/// The first output among `names` that is computed from an array which a program of the batch writes, with
/// that array and the program. Readers that compute the output themselves could find the array changed.
fn changed_meanwhile<'a>(
    definition: &'a Graph,
    names: &[&'a str],
    programs: &'a [BatchProgram<'_>],
) -> Option<(&'a str, &'a str, &'a str)> {
    for name in names {
        let output = definition
            .outputs()
            .iter()
            .find(|output| output.name == *name)?;
        let mut needed: TiVec<NodeId, _> = vec![false; definition.node_ids().count()].into();
        needed[output.node] = true;
        for node in definition.node_ids().rev() {
            if needed[node] {
                for input in &definition.node(node).inputs {
                    needed[*input] = true;
                }
            }
        }
        let read = definition.parameters().filter(|node| needed[*node]);
        for read in read.map(|node| definition.node(node).name.as_str()) {
            let writes = |program: &&BatchProgram<'_>| {
                let graph = program.graph;
                let updates = graph.updates().iter();
                updates
                    .map(|update| &graph.node(update.state).name)
                    .any(|state| state == read)
                    || graph.outputs().iter().any(|output| output.name == read)
            };
            if let Some(writer) = programs.iter().find(writes) {
                return Some((name, read, writer.name));
            }
        }
    }
    None
}

impl Device {
    fn code(&self, name: &str, moded: Moded, program: Option<Arc<Program>>) -> Code {
        let modes = moded.modes;
        let modes = modes.or_else(|| program.as_deref().map(inferred));
        Code {
            shared: Arc::new(CodeShared {
                name: name.into(),
                platform: Arc::clone(&self.shared.platform),
                trace: self.shared.runtime.trace.clone(),
                graph: moded.graph,
                schedule: moded.schedule,
                modes: modes.unwrap_or_default(),
                program,
                layouts: Mutex::new(Recent::new(RECENT_LAYOUTS)),
            }),
        }
    }
}

impl Code {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// The program that it was made from.
    pub fn graph(&self) -> &Graph {
        &self.shared.graph
    }

    /// The compiled program, if it was compiled ahead.
    pub fn program(&self) -> Option<&Arc<Program>> {
        self.shared.program.as_ref()
    }

    /// Where the values of its named nodes live, and why.
    pub fn modes(&self) -> &[NodeMode] {
        &self.shared.modes
    }

    /// The node whose value on another stream it reads, if there is one.
    pub fn merge_node(&self) -> Option<&str> {
        let graph = &self.shared.graph;
        let names = graph
            .parameters()
            .map(|node| graph.node(node).name.as_str());
        names.filter_map(|name| name.strip_suffix(MERGE)).next()
    }

    /// All memory that linking it to an empty context takes, at these sizes.
    ///
    /// # Errors
    /// As linking it.
    pub fn plan(&self, sizes: &[(&str, i64)], pool_cap: usize) -> Result<Plan, RuntimeError> {
        let layout = self.layout(sizes)?;
        Plan::new(&layout, pool_cap)
    }

    /// What it needs at these sizes.
    pub(crate) fn layout(&self, sizes: &[(&str, i64)]) -> Result<Arc<Layout>, RuntimeError> {
        let shared = &*self.shared;
        let refuse = |reason| RuntimeError::Sizes {
            code: shared.name.to_string(),
            reason: Box::new(reason),
        };
        // Sizes that fit were bound before; those that do not are never kept.
        let key = size_values(&shared.graph, sizes);
        if let Some(key) = &key
            && let Some(known) = crate::lock(&shared.layouts).get(key)
        {
            return Ok(Arc::clone(known));
        }
        let program = match &shared.program {
            Some(program) => Arc::clone(program),
            None => {
                let binding = shared.graph.bind_sizes(sizes).map_err(refuse)?;
                let graph = shared.graph.with_sizes(&binding);
                // A schedule that was given stands; one that is made is made for these sizes.
                let schedule = shared.schedule.as_ref();
                compiling(shared.trace.as_deref(), &shared.name, || {
                    compile(&shared.platform, &shared.name, &graph, schedule)
                })?
            }
        };
        let layout = Arc::new(Layout::new(&shared.name, &program, sizes)?);
        if let Some(key) = key {
            crate::lock(&shared.layouts).insert(key, Arc::clone(&layout));
        }
        Ok(layout)
    }
}

/// The value of every size, the given one or the default; nothing if a name is unknown, a value is
/// missing, or a static is among them, since binding has more to say about those.
fn size_values(graph: &Graph, given: &[(&str, i64)]) -> Option<Vec<i64>> {
    if !given
        .iter()
        .all(|(name, _)| graph.sizes().any(|(_, size, _)| size == *name))
    {
        return None;
    }
    graph
        .sizes()
        .map(|(_, name, default)| {
            let found = given.iter().rev().find(|(given, _)| *given == name);
            found.map(|(_, value)| *value).or(default)
        })
        .collect()
}

impl Batch {
    /// The codes, in the order of the programs; `None` for those that were left out.
    pub fn codes(&self) -> &[Option<Code>] {
        &self.codes
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Code").field(&self.shared.name).finish()
    }
}
