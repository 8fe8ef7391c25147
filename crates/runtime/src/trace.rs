//! What happened when, for Perfetto: one track for every stream, one for every thread that schedules.

use crate::error::RuntimeError;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// What a span is about.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SpanKind {
    /// Work was put into a stream's queue, by the thread whose track it is on.
    Enqueue,
    /// A program was compiled, by the thread whose track it is on.
    Compile,
    /// A kernel ran.
    Launch,
    /// Memory was copied.
    Copy,
    /// A stream or a thread waited.
    Wait,
}

impl SpanKind {
    fn name(self) -> &'static str {
        match self {
            SpanKind::Enqueue => "enqueue",
            SpanKind::Compile => "compile",
            SpanKind::Launch => "launch",
            SpanKind::Copy => "copy",
            SpanKind::Wait => "wait",
        }
    }
}

/// One thing that happened.
#[derive(Clone, Debug)]
pub struct Span {
    /// The stream's name, or the thread's.
    pub track: Arc<str>,
    /// The routine, the node, or what was waited for.
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
        let nanoseconds = |time: std::time::Duration| time.as_nanos() as u64;
        let span = Span {
            track: Arc::clone(track),
            name,
            kind,
            start: nanoseconds(from.duration_since(self.start)),
            duration: nanoseconds(from.elapsed()),
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

/// The track of the thread that calls.
pub(crate) fn host_track() -> Arc<str> {
    let thread = std::thread::current();
    match thread.name() {
        Some(name) => format!("host ({name})").into(),
        None => format!("host ({:?})", thread.id()).into(),
    }
}
