//! A program from its file, with a device, a schedule and sizes.

use crate::arguments::ProgramOptions;
use crate::device::{Chosen, choose};
use crate::failure::Failure;
use crate::files::read_text;
use crate::terminal::{Shown as _, complain};
use loopwright::backend::{Backend, Hardware};
use loopwright::compile::{Kernels, Plainer, Program, ProgramError};
use loopwright::graph::{Binding, Graph, GraphBuilder, GraphError, parse};
use loopwright::kernel::passes::Pipeline;
use loopwright::looptree::{Plan as LoopPlan, Schedule, parse_schedule, replay};
use loopwright::lower::LowerError;
use loopwright::runtime::{Code, CodeOptions, Plan, RuntimeError};
use loopwright::scheduler::{default_schedule, estimate};
use loopwright::text::{Diagnostic, Source};
use loopwright_config::Settings;
use loopwright_tune::{ScheduleKey, ScheduleStore, processor};
use std::cell::OnceCell;
use std::path::Path;
use std::sync::Arc;

/// A program that was read, and everything that was said about how it runs.
pub(crate) struct Opened<'o> {
    options: &'o ProgramOptions,
    settings: &'o Settings,
    /// Every result a node of its own: what schedules speak about.
    pub(crate) graph: Graph,
    pub(crate) schedule: Option<Schedule>,
    /// Whether the schedule is the one that `tune` found.
    pub(crate) tuned: bool,
    pub(crate) device: Chosen,
    /// Whether the notes on the schedule were told.
    told: OnceCell<()>,
    /// Whether a plainer schedule than was chosen was told of.
    warned: OnceCell<()>,
}

impl<'o> Opened<'o> {
    /// Reads program and schedule and chooses the device. What of the schedule does not fit the program or the device is
    /// said.
    pub(crate) fn new(
        options: &'o ProgramOptions,
        settings: &'o Settings,
    ) -> Result<Opened<'o>, Failure> {
        let source = Source::new(options.program.shown(), read_text(&options.program)?);
        let graph = parse(&source).map_err(|error| Failure::at(&error, &source))?;
        let graph = graph.with_stores();
        let replayed = match &options.schedule {
            None => None,
            Some(path) => Some(replayed(path, &graph, options)?),
        };
        let device = choose(settings)?;
        let schedule = replayed.map(|(schedule, made_for, mut notes)| {
            notes.extend(made_for.and_then(|made_for| elsewhere(&made_for, device.backend())));
            for note in notes {
                complain(format!("note: {note}"));
            }
            schedule
        });
        Ok(Opened {
            options,
            settings,
            graph,
            schedule,
            tuned: false,
            device,
            told: OnceCell::new(),
            warned: OnceCell::new(),
        })
    }

    /// The same with the schedule that `tune` found for this program, these sizes and this device, where no other is given
    /// and it found one; that it is used is said.
    pub(crate) fn with_tuned(mut self) -> Opened<'o> {
        if self.schedule.is_none()
            && let Some(schedule) = self.tuned()
        {
            complain(
                "note: the schedule that `tune` found is used; `loopwright cache clear` forgets it",
            );
            self.schedule = Some(schedule);
            self.tuned = true;
        }
        self
    }

    fn tuned(&self) -> Option<Schedule> {
        let folder = self.settings.cache_dir()?;
        // Nobody has tuned where there is no such folder, and looking must not make one.
        if !folder.is_dir() {
            return None;
        }
        let store = ScheduleStore::open(folder).ok()?;
        let binding = self.binding().ok()?;
        let strict = self.settings.strict();
        let key = ScheduleKey::new(&self.graph, &binding, self.device.backend(), strict);
        let text = store.get(&key).ok()??;
        // A file that cannot be read any more is as good as none.
        parse_schedule(&Source::new("tuned", text), &self.graph).ok()
    }

    /// The values of sizes and statics: those given, else the program's defaults.
    pub(crate) fn binding(&self) -> Result<Binding, GraphError> {
        self.binding_of(&self.graph)
    }

    /// The same for the program with what a schedule changed of it.
    pub(crate) fn binding_of(&self, graph: &Graph) -> Result<Binding, GraphError> {
        let given: Vec<(&str, i64)> = self.given().collect();
        graph.bind(&given)
    }

    /// The values of sizes, before those of statics are known.
    pub(crate) fn sizes(&self) -> Result<Binding, GraphError> {
        let given: Vec<(&str, i64)> = self.given().collect();
        self.graph.bind_sizes(&given)
    }

    fn given(&self) -> impl Iterator<Item = (&str, i64)> {
        let given = self.options.sizes.iter();
        given.map(|(name, value)| (name.as_str(), *value))
    }

    fn is_static(&self, name: &str) -> bool {
        self.graph.statics().any(|known| known.name == name)
    }

    /// The sizes given; those that the program does not have are among them.
    pub(crate) fn given_sizes(&self) -> Vec<(&str, i64)> {
        self.given()
            .filter(|(name, _)| !self.is_static(name))
            .collect()
    }

    /// The values of static symbols given.
    pub(crate) fn given_statics(&self) -> Vec<(&str, i64)> {
        self.given()
            .filter(|(name, _)| self.is_static(name))
            .collect()
    }

    /// Arithmetic operations of a run, as the cost model counts them under the schedule that the program has by itself:
    /// what another schedule computes twice is no more work. `None` where sizes are not known.
    pub(crate) fn flops(&self) -> Option<f64> {
        let target = self.device.backend().target();
        let schedule = default_schedule(&self.graph, &target).ok()?;
        let plan = LoopPlan::new(Arc::new(self.graph.clone()), schedule).ok()?;
        let binding = self.binding_of(plan.graph()).ok()?;
        let value = |symbol| Some(binding.value(symbol));
        let (graph, schedule, tree) = (plan.graph(), plan.schedule(), plan.tree());
        let estimate = estimate(graph, schedule, tree, &target, &value).ok()?;
        Some(estimate.steps.iter().map(|step| step.flops).sum())
    }

    /// Everything up to the kernels that the device is given.
    pub(crate) fn kernels(&self) -> Result<Kernels, Failure> {
        let target = self.device.backend().target();
        let pipeline = Pipeline::standard();
        let kernels = Kernels::new(&self.graph, self.schedule.as_ref(), &target, &pipeline)
            .and_then(|kernels| match self.settings.log_stores() {
                true => kernels.logging(),
                false => Ok(kernels),
            })
            .map_err(|error| self.explain(error))?;
        self.tell(&kernels.notes, false, kernels.plainer.as_ref());
        Ok(kernels)
    }

    /// The program compiled for the device.
    pub(crate) fn compile(&self) -> Result<Compiled, Failure> {
        let (graph, renamed) = with_own_names(&self.graph)?;
        let options = CodeOptions {
            schedule: self.schedule.clone(),
            ..CodeOptions::default()
        };
        let name = self.options.program.file_stem();
        let name = name.map_or_else(|| "program".into(), |name| name.to_string_lossy());
        let code = self.device.device.compile(&name, &graph, &options);
        let code = code.map_err(|error| match error {
            RuntimeError::Compile { reason, .. } => self.explain(*reason),
            error => error.into(),
        })?;
        let compiled = Compiled { code, renamed };
        let program = compiled.program();
        let handed_on = program.is_delegated();
        self.tell(program.notes(), handed_on, program.plainer());
        Ok(compiled)
    }

    /// What a person has asked for with a schedule and does not get is said, once, and what other backends
    /// were given.
    fn tell(&self, notes: &[String], handed_on: bool, plainer: Option<&Plainer>) {
        if let Some(plainer) = plainer {
            self.warned
                .get_or_init(|| complain(format!("warning: {plainer}")));
        }
        if self.schedule.is_some() || handed_on {
            self.told.get_or_init(|| {
                for note in notes {
                    complain(format!("note: {note}"));
                }
            });
        }
    }

    /// An error with the schedule's file where it is about the schedule.
    fn explain(&self, error: ProgramError) -> Failure {
        let about = match &error {
            ProgramError::Schedule(error) => Some(error),
            ProgramError::Lower(LowerError::Schedule(error)) => Some(error),
            _ => None,
        };
        match (about, &self.options.schedule) {
            (Some(error), Some(path)) => Failure::new(format!(
                "the schedule {} does not fit the program: {error}",
                path.shown()
            ))
            .help(format!(
                "`loopwright dump {} --stage schedule` prints one that fits",
                self.options.program.shown()
            )),
            _ => error.into(),
        }
    }
}

/// The schedule of a file, the device that it was made for, and what is to be said about how it fits.
fn replayed(
    path: &Path,
    graph: &Graph,
    options: &ProgramOptions,
) -> Result<(Schedule, Option<String>, Vec<String>), Failure> {
    let source = Source::new(path.shown(), read_text(path)?);
    let replayed = replay(&source, graph).map_err(|error| Failure::at(&error, &source))?;
    if !options.replay && !replayed.left_out.is_empty() {
        return Err(does_not_fit(&replayed.left_out, &source, &options.program));
    }
    let notes = replayed.left_out.iter().map(|said| {
        let place = said.labels.first().map_or(0, |label| label.span.start);
        let (line, _) = source.position(place);
        format!("{}:{line}: {}", source.name(), said.message)
    });
    let notes = notes.collect();
    Ok((replayed.file.schedule, replayed.file.device, notes))
}

/// Every line of a schedule that does not fit the program, at its place. What would be done without them (plain loops, another
/// order) is said by `--replay`.
fn does_not_fit(left_out: &[Diagnostic], source: &Source, program: &Path) -> Failure {
    let line = |said: &Diagnostic| said.message.strip_prefix("left out: ").map(str::to_owned);
    let mut refused: Vec<Diagnostic> = left_out
        .iter()
        .filter_map(|said| {
            let message = line(said)?;
            let said = said.clone();
            Some(Diagnostic { message, ..said })
        })
        .collect();
    if refused.is_empty() {
        refused = left_out.to_vec();
    }
    if let Some(last) = refused.last_mut() {
        let next = format!(
            "`--replay` leaves out what does not fit; `loopwright dump {} --stage schedule` prints a schedule that does",
            program.display()
        );
        last.help = Some(match last.help.take() {
            Some(help) => format!("{help}; {next}"),
            None => next,
        });
    }
    let rendered: Vec<String> = refused.iter().map(|said| said.render(source)).collect();
    Failure::Place(rendered.join(""))
}

/// What is to be said about a schedule that was made for another device.
fn elsewhere(made_for: &str, backend: &Backend) -> Option<String> {
    let processor = match backend.hardware() {
        Hardware::Cpu => processor(),
        _ => None,
    };
    let own = match &processor {
        Some(processor) => format!("{} on {processor}", backend.name()),
        None => backend.name().to_owned(),
    };
    // More may follow behind a comma.
    let is = |device: &str| {
        let rest = made_for.strip_prefix(device);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(','))
    };
    // What does not say or cannot tell which processor it is stands for any.
    let any = || processor.is_none() && made_for.starts_with(&format!("{own} on "));
    let same = is(&own) || is(backend.name()) || any();
    (!same).then(|| format!("the schedule was made for {made_for}, and this is {own}"))
}

/// A cap for pools that can hold every array there can be.
pub(crate) const NO_CAP: usize = isize::MAX as usize;

/// A program compiled for a device.
pub(crate) struct Compiled {
    pub(crate) code: Code,
    /// Outputs that the code has under another name: the program's name, and the code's.
    renamed: Vec<(String, String)>,
}

impl Compiled {
    pub(crate) fn program(&self) -> &Arc<Program> {
        let program = self.code.program();
        program.expect("what is compiled ahead has its program")
    }

    /// What the code calls an output.
    pub(crate) fn inner_name<'a>(&'a self, output: &'a str) -> &'a str {
        let found = self.renamed.iter().find(|(name, _)| name == output);
        found.map_or(output, |(_, inner)| inner)
    }

    /// What the program calls an array of the code.
    pub(crate) fn shown_name<'a>(&'a self, array: &'a str) -> &'a str {
        let found = self.renamed.iter().find(|(_, inner)| inner == array);
        found.map_or(array, |(name, _)| name)
    }

    /// All memory that it needs at these sizes, with pools of this size at most.
    pub(crate) fn plan(
        &self,
        sizes: &[(&str, i64)],
        pool_cap: usize,
    ) -> Result<Plan, Box<RuntimeError>> {
        let mut plan = self.code.plan(sizes, pool_cap)?;
        for entry in &mut plan.entries {
            entry.name = self.shown_name(&entry.name).to_owned();
        }
        Ok(plan)
    }
}

/// The graph with another name for every output that has the name of an input or state, and these names.
/// In a program they are two arrays; in a context, where names are the links, they would be one.
fn with_own_names(graph: &Graph) -> Result<(Graph, Vec<(String, String)>), GraphError> {
    let is_parameter = |name: &str| {
        let mut parameters = graph.parameters();
        parameters.any(|node| graph.node(node).name == name)
    };
    let is_output = |name: &str| graph.outputs().iter().any(|output| output.name == name);
    let clashing = graph
        .outputs()
        .iter()
        .filter(|output| is_parameter(&output.name));
    let renamed: Vec<(String, String)> = clashing
        .map(|output| {
            let mut inner = format!("{}.out", output.name);
            while is_parameter(&inner) || is_output(&inner) {
                inner.push('_');
            }
            (output.name.clone(), inner)
        })
        .collect();
    if renamed.is_empty() {
        return Ok((graph.clone(), renamed));
    }
    let mut builder = GraphBuilder::from_graph(graph);
    // All of them, so that their order stays.
    for output in graph.outputs() {
        builder.remove_output(&output.name);
    }
    for output in graph.outputs() {
        let inner = renamed.iter().find(|(name, _)| *name == output.name);
        let name = inner.map_or(&output.name, |(_, inner)| inner);
        builder.output(name, output.node)?;
    }
    Ok((builder.finish()?, renamed))
}
