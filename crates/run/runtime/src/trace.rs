//! What happened when, for Perfetto: one track for every stream, one for every thread that schedules, one for every
//! thread that runs parts of parallel loops.

use crate::error::RuntimeError;
use loopwright_backend::{StageTime, timed};
use loopwright_threads::{LoopObserver, LoopThread, observing};
use serde_json::{Value, json};
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// What a span is about.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SpanKind {
    /// Work was put into a stream's queue, by the thread whose track it is on.
    Enqueue,
    /// A program was compiled, by the thread whose track it is on; its stages lie inside of it.
    Compile,
    /// A kernel ran.
    Launch,
    /// A thread ran some iterations of a kernel's parallel loop.
    Iterations,
    /// Memory was copied.
    Copy,
    /// A stream or a thread waited.
    Wait,
}

impl SpanKind {
    /// Its name in traces.
    pub fn name(self) -> &'static str {
        match self {
            SpanKind::Enqueue => "enqueue",
            SpanKind::Compile => "compile",
            SpanKind::Launch => "launch",
            SpanKind::Iterations => "iterations",
            SpanKind::Copy => "copy",
            SpanKind::Wait => "wait",
        }
    }
}

/// One thing that happened.
#[derive(Clone, Debug)]
pub struct Span {
    /// The stream's name, or the thread's; for parts of parallel loops the worker's, or the stream's with `loop-0`, which
    /// is the thread that started the loop.
    pub track: Arc<str>,
    /// The routine, the node, or what was waited for; with the iterations, where it is a part of a parallel loop, and with
    /// the stage, where it is one of a compilation.
    pub name: String,
    /// What it is about.
    pub kind: SpanKind,
    /// Nanoseconds from the start of the trace.
    pub start: u64,
    /// How long it took, in nanoseconds.
    pub duration: u64,
}

/// A recording.
pub struct Trace {
    start: Instant,
    spans: Mutex<Vec<Span>>,
}

impl Trace {
    pub(crate) fn new() -> Trace {
        Trace {
            start: Instant::now(),
            spans: Mutex::default(),
        }
    }

    /// Records that something went on since `from`.
    pub(crate) fn record(&self, track: &Arc<str>, kind: SpanKind, name: String, from: Instant) {
        self.record_for(track, kind, name, (from, from.elapsed()));
    }

    /// Records that something went on from a moment for so long.
    fn record_for(
        &self,
        track: &Arc<str>,
        kind: SpanKind,
        name: String,
        (from, duration): (Instant, Duration),
    ) {
        let nanoseconds = |time: Duration| time.as_nanos() as u64;
        let span = Span {
            track: Arc::clone(track),
            name,
            kind,
            start: nanoseconds(from.duration_since(self.start)),
            duration: nanoseconds(duration),
        };
        crate::lock(&self.spans).push(span);
    }

    /// Everything recorded so far, in the order in which it ended.
    pub fn spans(&self) -> Vec<Span> {
        crate::lock(&self.spans).clone()
    }

    /// The recording in the format that Perfetto and `chrome://tracing` open.
    pub fn to_json(&self) -> Value {
        let spans = crate::lock(&self.spans);
        let mut tracks: Vec<&Arc<str>> = Vec::new();
        let mut events = Vec::new();
        for span in spans.iter() {
            let known = tracks.iter().position(|track| **track == span.track);
            let track = known.unwrap_or_else(|| {
                tracks.push(&span.track);
                tracks.len() - 1
            });
            // Times are microseconds.
            events.push(json!({
                "name": span.name,
                "cat": span.kind.name(),
                "ph": "X",
                "pid": 1,
                "tid": track + 1,
                "ts": span.start as f64 / 1e3,
                "dur": span.duration as f64 / 1e3,
            }));
        }
        for (track, name) in tracks.iter().enumerate() {
            events.push(json!({
                "name": "thread_name",
                "ph": "M",
                "pid": 1,
                "tid": track + 1,
                "args": { "name": &***name },
            }));
        }
        json!({ "traceEvents": events, "displayTimeUnit": "ns" })
    }

    /// Writes the recording to a file: whole, or not at all.
    ///
    /// # Errors
    /// [`RuntimeError::File`].
    pub fn write(&self, path: &Path) -> Result<(), RuntimeError> {
        let failed = |reason| RuntimeError::File {
            path: path.display().to_string(),
            reason,
        };
        loopwright_files::write(path, self.to_json().to_string().as_bytes()).map_err(failed)
    }
}

/// Compiles, on the record where there is a trace: as a whole and stage by stage.
pub(crate) fn compiling<T>(trace: Option<&Trace>, name: &str, compile: impl FnOnce() -> T) -> T {
    let Some(trace) = trace else {
        return compile();
    };
    let from = Instant::now();
    let (compiled, stages) = timed(compile);
    let track = host_track();
    for StageTime {
        name: stage,
        from,
        duration,
    } in stages
    {
        let name = format!("{name}: {stage}");
        trace.record_for(&track, SpanKind::Compile, name, (from, duration));
    }
    trace.record(&track, SpanKind::Compile, name.to_owned(), from);
    compiled
}

/// Launches something, with the parts of its parallel loops on the record.
pub(crate) fn launching<T>(
    trace: &Arc<Trace>,
    stream: &Arc<str>,
    name: String,
    launch: impl FnOnce() -> T,
) -> T {
    let loops = Loops {
        trace: Arc::clone(trace),
        name,
        caller: format!("{stream} loop-0").into(),
    };
    observing(Arc::new(loops), launch)
}

/// Records who runs the parallel loops of a kernel.
struct Loops {
    trace: Arc<Trace>,
    /// The kernel's.
    name: String,
    /// The track of the thread that starts loops. It is the stream's own: several streams can have loops at a time.
    caller: Arc<str>,
}

impl LoopObserver for Loops {
    fn ran(&self, thread: LoopThread<'_>, iterations: Range<usize>, from: Instant) {
        let track = match thread {
            LoopThread::Caller => Arc::clone(&self.caller),
            LoopThread::Worker(name) => name.into(),
        };
        let Range { start, end } = iterations;
        let name = format!("{} {start}..{end}", self.name);
        self.trace.record(&track, SpanKind::Iterations, name, from);
    }
}

/// The track of the thread that calls.
pub(crate) fn host_track() -> Arc<str> {
    let thread = std::thread::current();
    match thread.name() {
        Some(name) => format!("host ({name})").into(),
        None => format!("host ({:?})", thread.id()).into(),
    }
}
