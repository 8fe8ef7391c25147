//! A session: the state, the terminal, the files and the device together.

use crate::editor::{Editor, Effect, Setting};
use crate::error::EditorError;
use crate::files;
use crate::measure::{DeviceBench, Request, Work, Worker};
use crate::signals::Signals;
use crate::terminal::{self, Taken};
use crate::view;
use loopwright::backend::backends;
use loopwright::compile::Compiler;
use loopwright::graph::{Array, Graph};
use loopwright::looptree::Plan;
use loopwright::looptree::Schedule;
use ratatui::crossterm::event::{self, Event};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How long the keyboard is waited for before news are looked at.
const TICK: Duration = Duration::from_millis(50);

/// What is edited, and on what it is measured.
pub struct Session {
    /// The program's file.
    pub program: PathBuf,
    /// The program, every result a node of its own ([`Graph::with_stores`]).
    pub graph: Arc<Graph>,
    /// The schedule to begin with.
    pub schedule: Schedule,
    /// The file that the schedule is from; without one it is saved beside the program.
    pub file: Option<PathBuf>,
    /// What plans are compiled with.
    pub compiler: Compiler,
    /// The name of the device, as it is shown.
    pub device: String,
    /// The values of sizes that were given.
    pub sizes: Vec<(String, i64)>,
    /// An array for every input and state.
    pub inputs: Vec<(String, Array)>,
    /// Whether changes are refused that add up floats in another order.
    pub strict: bool,
}

/// A seat at a terminal. It is taken first of all: signals come to the editor only if no thread is older.
pub struct Seat {
    signals: Signals,
}

impl Seat {
    /// Takes the seat. The terminal stays as it is until a session begins.
    ///
    /// # Errors
    /// Standard input or output that is no terminal.
    pub fn take() -> Result<Seat, EditorError> {
        terminal::check()?;
        let signals = Signals::watch()?;
        Ok(Seat { signals })
    }

    /// Holds a session, until the person ends it.
    ///
    /// # Errors
    /// A terminal that fails, a schedule or sizes that do not fit, a signal.
    pub fn edit(self, session: Session) -> Result<(), EditorError> {
        edit(session, &self.signals)
    }
}

fn edit(session: Session, signals: &Signals) -> Result<(), EditorError> {
    let plan = Plan::new(session.graph.clone(), session.schedule)?;
    let sizes = session.sizes.iter();
    let sizes: Vec<(&str, i64)> = sizes.map(|(name, size)| (name.as_str(), *size)).collect();
    let binding = session.graph.bind(&sizes)?;
    // The plan's graph may have dimensions that the program does not have.
    let edited = plan.graph().bind(&sizes)?;
    let backend = session.compiler.backend();
    let others = backends().into_iter().map(|known| known.name().to_owned());
    let others = others.filter(|name| name != backend.name()).collect();
    let setting = Setting {
        program: session.program.display().to_string(),
        backend: backend.name().to_owned(),
        device: session.device,
        target: backend.target(),
        file: match session.file {
            Some(file) => file,
            None => session.program.with_extension("sched"),
        },
        binding,
        sizes: session.sizes.clone(),
        strict: session.strict,
        backends: others,
    };
    let work = Work::of(&plan, &setting.target, &edited);
    let bench = DeviceBench::new(session.compiler, session.sizes, session.inputs, work);
    signals.heed();
    let mut taken = Taken::take()?;
    let worker = Worker::start(bench)?;
    run(
        &mut Editor::new(setting, plan),
        &worker,
        &mut taken,
        signals,
    )
}

fn run(
    editor: &mut Editor,
    worker: &Worker,
    taken: &mut Taken,
    signals: &Signals,
) -> Result<(), EditorError> {
    // Of what was drawn last: what the person who moves the mouse sees.
    let mut layout = None;
    loop {
        for effect in editor.take_effects() {
            match effect {
                Effect::Compile {
                    version,
                    plan,
                    measure,
                } => worker.ask(Request {
                    version,
                    plan,
                    measure,
                }),
                Effect::Save {
                    path,
                    text,
                    overwrite,
                } => editor.saved(files::save(&path, &text, overwrite)),
                Effect::Load { path } => {
                    let loaded = files::load(&path, editor.plan());
                    editor.loaded(path, loaded);
                }
                Effect::Quit => return Ok(()),
            }
        }
        for report in worker.news() {
            editor.report(report);
        }
        if let Some(signal) = signals.told() {
            let unsaved = !editor.is_saved();
            return Err(EditorError::Signal { signal, unsaved });
        }
        // All that waits is taken in first.
        if !event::poll(Duration::ZERO)? {
            taken.terminal.draw(|frame| {
                layout = view::prepare(frame.area(), editor);
                view::draw(editor, layout.as_ref(), frame);
            })?;
        }
        if event::poll(TICK)? {
            match event::read()? {
                Event::Key(key) => editor.key(key),
                Event::Mouse(mouse) => {
                    if let Some(layout) = &layout {
                        editor.mouse(mouse, layout);
                    }
                }
                Event::Paste(text) => editor.paste(&text),
                // The next drawing asks for the size.
                Event::Resize(..) | Event::FocusGained | Event::FocusLost => {}
            }
        }
    }
}
