//! A program from its file, with a device, a schedule and sizes.

use crate::arguments::ProgramOptions;
use crate::device::{Chosen, choose};
use crate::failure::Failure;
use crate::files::read_text;
use loopwright::backend::{CompileOptions, Program, ProgramError, Stages};
use loopwright::graph::{Binding, Graph, GraphError, parse};
use loopwright::kernel::passes::Pipeline;
use loopwright::looptree::{Schedule, parse_schedule};
use loopwright::lower::LowerError;
use loopwright::text::Source;
use loopwright_config::Settings;
use std::path::Path;
use std::sync::Arc;

/// A program that was read, and everything that was said about how it runs.
pub(crate) struct Opened<'o> {
    options: &'o ProgramOptions,
    settings: &'o Settings,
    /// Every result a node of its own: what schedules speak about.
    pub(crate) graph: Graph,
    schedule: Option<Schedule>,
    pub(crate) device: Chosen,
}

impl<'o> Opened<'o> {
    /// Reads program and schedule and chooses the device.
    pub(crate) fn new(
        options: &'o ProgramOptions,
        settings: &'o Settings,
    ) -> Result<Opened<'o>, Failure> {
        let source = Source::new(
            options.program.display().to_string(),
            read_text(&options.program)?,
        );
        let graph = parse(&source).map_err(|error| Failure::at(&error, &source))?;
        let graph = graph.with_stores();
        let schedule = match &options.schedule {
            None => None,
            Some(path) => {
                let source = Source::new(path.display().to_string(), read_text(path)?);
                let schedule = parse_schedule(&source, &graph);
                Some(schedule.map_err(|error| Failure::at(&error, &source))?)
            }
        };
        let device = choose(settings)?;
        Ok(Opened {
            options,
            settings,
            graph,
            schedule,
            device,
        })
    }

    /// The sizes: those given, else the program's defaults.
    pub(crate) fn binding(&self) -> Result<Binding, GraphError> {
        let given: Vec<(&str, i64)> = self.given_sizes();
        self.graph.bind(&given)
    }

    pub(crate) fn given_sizes(&self) -> Vec<(&str, i64)> {
        let sizes = self.options.sizes.iter();
        sizes.map(|(name, value)| (name.as_str(), *value)).collect()
    }

    /// Every stage up to the kernel that the device is given.
    pub(crate) fn stages(&self) -> Result<Stages, Failure> {
        let target = self.device.backend.target();
        let pipeline = Pipeline::standard();
        let stages = Stages::new(&self.graph, self.schedule.as_ref(), &target, &pipeline)
            .map_err(|error| self.explain(error))?;
        // What a person has asked for and does not get is said.
        if self.schedule.is_some() {
            for note in &stages.lowered.notes {
                eprintln!("note: {note}");
            }
        }
        Ok(stages)
    }

    /// The program that the device makes of the stages.
    pub(crate) fn compile(&self, stages: Stages) -> Result<Arc<Program>, Failure> {
        let options = CompileOptions {
            strict: self.settings.strict(),
            cache: self.settings.cache_dir().map(Path::to_owned),
        };
        let executable = self.device.backend.compile(&stages.module, &options)?;
        Ok(Arc::new(Program::new(stages, executable)))
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
                path.display()
            ))
            .help(format!(
                "`loopwright dump {} --stage schedule` prints one that fits",
                self.options.program.display()
            )),
            _ => error.into(),
        }
    }
}
