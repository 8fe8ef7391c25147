//! `edit`: the loops of a program, in the terminal.

use crate::arguments::EditOptions;
use crate::failure::Failure;
use crate::program::Opened;
use crate::runtime::precision;
use loopwright::backend::CompileOptions;
use loopwright::compile::Compiler;
use loopwright::graph::{Array, Binding, Graph};
use loopwright::scheduler::default_schedule;
use loopwright_config::Settings;
use loopwright_editor::{EditorError, Seat, Session};
use loopwright_tune::{fill_random, index_limit};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

pub(crate) fn edit(options: &EditOptions, settings: &Settings) -> Result<ExitCode, Failure> {
    // First of all: what is opened next may start threads.
    let seat = Seat::take().map_err(explain)?;
    let opened = Opened::new(&options.program, settings)?;
    let binding = opened.binding()?;
    let backend = opened.device.backend().clone();
    let schedule = match &opened.schedule {
        Some(schedule) => schedule.clone(),
        // Of the program as it is written: schedule files speak about that.
        None => default_schedule(&opened.graph, &backend.target())?,
    };
    let compile = CompileOptions {
        strict: settings.strict(),
        math: precision(settings),
        cache: settings.cache_dir().map(Path::to_owned),
    };
    let compiler = Compiler::new(backend, compile);
    let session = Session {
        program: options.program.program.clone(),
        schedule,
        file: options.program.schedule.clone(),
        compiler: match settings.fallback() {
            Some(name) => compiler.with_fallback(name),
            None => compiler,
        },
        device: opened.device.name().to_owned(),
        sizes: options.program.sizes.clone(),
        inputs: inputs(&opened.graph, &binding)?,
        strict: settings.strict(),
        graph: Arc::new(opened.graph),
    };
    match seat.edit(session) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error @ EditorError::Signal { signal, .. }) => {
            explain(error).report();
            let code = u8::try_from(128 + signal).unwrap_or(u8::MAX);
            Ok(ExitCode::from(code))
        }
        Err(error) => Err(explain(error)),
    }
}

/// An array for every input and state, at random and always the same.
fn inputs(graph: &Graph, binding: &Binding) -> Result<Vec<(String, Array)>, Failure> {
    let array = |node| {
        let parts = graph.node(node);
        let shape = binding.shape(graph, node);
        let shape: Vec<usize> = shape.iter().map(|size| *size as usize).collect();
        let mut array = Array::zeros(parts.dtype, &shape)
            .map_err(|error| Failure::new(format!("out of memory: {error}")))?;
        let limit = index_limit(graph, binding, node);
        fill_random(&mut array, &parts.name, 0, limit);
        Ok((parts.name.clone(), array))
    };
    graph.parameters().map(array).collect()
}

fn explain(error: EditorError) -> Failure {
    let text = error.to_string();
    match error {
        EditorError::NoTerminal { .. } => Failure::new(text)
            .help("`loopwright dump PROGRAM --stage tree` prints the loops without one"),
        EditorError::Schedule(error) => error.into(),
        EditorError::Sizes(error) => error.into(),
        EditorError::Terminal(_) | EditorError::Signal { .. } => Failure::new(text),
    }
}
