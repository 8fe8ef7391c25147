//! What streams run.

use crate::ledger::Waits;
use crate::node::Node;
use crate::plain::DeviceError;
use crate::routine::RoutineShared;
use crate::trace::{SpanKind, Trace};
use crate::transfer::DownloadSlot;
use loopwright_graph::Array;
use loopwright_threads::Task;
use smallvec::SmallVec;
use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

/// Values of static symbols, captured when work is scheduled.
pub(crate) type Statics = SmallVec<[i64; 4]>;

/// A piece of work in a stream's queue.
pub(crate) struct StreamTask {
    pub(crate) work: Work,
    /// Points of other streams that come first.
    pub(crate) waits: Waits,
    /// The trace, if there is one, and the stream's track in it.
    pub(crate) trace: Option<(Arc<Trace>, Arc<str>)>,
}

pub(crate) enum Work {
    /// Only the waiting.
    Nothing,
    /// A kernel.
    Launch {
        routine: Arc<RoutineShared>,
        statics: Statics,
        merge: Option<Arc<Node>>,
    },
    /// Host to device.
    Upload { to: Arc<Node>, from: Arc<Array> },
    /// Zeros.
    Zero { node: Arc<Node> },
    /// Device to host.
    Download {
        from: Arc<Node>,
        to: Arc<DownloadSlot>,
    },
    /// Device to device.
    Copy { from: Arc<Node>, to: Arc<Node> },
}

impl StreamTask {
    /// What it is called in a trace, if there is one.
    pub(crate) fn label(&self) -> Option<String> {
        self.trace.as_ref().map(|_| self.in_words())
    }

    fn in_words(&self) -> String {
        match &self.work {
            Work::Nothing => "wait".to_owned(),
            Work::Launch { routine, .. } => routine.name.to_string(),
            Work::Upload { to, .. } => format!("{} from host", to.name),
            Work::Zero { node } => format!("{} to zero", node.name),
            Work::Download { from, .. } => format!("{} to host", from.name),
            Work::Copy { from, .. } => format!("{} from device", from.name),
        }
    }

    fn work(&mut self) -> Result<(), DeviceError> {
        // SAFETY, of all unsafe calls here: the ledger holds every use of memory by a task, a stream
        // runs its tasks one at a time, and `run` has waited for all tasks of other streams that
        // conflict with this one; those that come later wait for it. A node lies within its slab. The
        // host has no other way to the memory: what it lends stays lent, and what it reads is copied.
        match &mut self.work {
            Work::Nothing => Ok(()),
            Work::Launch {
                routine,
                statics,
                merge,
            } => routine.launch(statics, merge.as_deref()),
            Work::Upload { to, from } => {
                let slab = &to.buffer.pool.slab;
                // SAFETY: see above.
                unsafe { slab.write(to.offset, from.bytes()) }
            }
            Work::Zero { node } => {
                // Few arrays are set to zero, so the zeros need not be clever.
                let zeros = [0; 4096];
                let slab = &node.buffer.pool.slab;
                for start in (0..node.bytes).step_by(zeros.len()) {
                    let bytes = zeros.len().min(node.bytes - start);
                    // SAFETY: see above.
                    unsafe { slab.write(node.offset + start, &zeros[..bytes])? };
                }
                Ok(())
            }
            Work::Download { from, to } => to.fill(|bytes| {
                let slab = &from.buffer.pool.slab;
                // SAFETY: see above.
                unsafe { slab.read(from.offset, bytes) }
            }),
            Work::Copy { from, to } => copy(from, to),
        }
    }
}

/// Copies a node to another one of the same size.
fn copy(from: &Node, to: &Node) -> Result<(), DeviceError> {
    /// How much of what the host cannot address passes through it at a time.
    const STAGE: usize = 1 << 20;
    let (source, target) = (&from.buffer.pool.slab, &to.buffer.pool.slab);
    let direct = source.address().filter(|_| !from.overlaps(to));
    if let Some(address) = direct {
        // SAFETY: a node lies within its slab, which its buffer keeps; nobody writes it now, since the
        // ledger ordered this task's uses.
        let bytes = unsafe { std::slice::from_raw_parts(address.add(from.offset), from.bytes) };
        // SAFETY: as above, and nobody else uses the target.
        return unsafe { target.write(to.offset, bytes) };
    }
    let mut stage = vec![
        0;
        if from.overlaps(to) {
            from.bytes
        } else {
            STAGE.min(from.bytes)
        }
    ];
    for start in (0..from.bytes).step_by(stage.len().max(1)) {
        let bytes = stage.len().min(from.bytes - start);
        // SAFETY: as above.
        unsafe {
            source.read(from.offset + start, &mut stage[..bytes])?;
            target.write(to.offset + start, &stage[..bytes])?;
        }
    }
    Ok(())
}

impl Task for StreamTask {
    fn name(&self) -> &str {
        match &self.work {
            Work::Nothing => "wait",
            Work::Launch { routine, .. } => &routine.name,
            Work::Upload { to: node, .. }
            | Work::Zero { node }
            | Work::Download { from: node, .. }
            | Work::Copy { to: node, .. } => &node.name,
        }
    }

    fn run(&mut self) -> Result<(), Box<dyn Error + Send + Sync>> {
        for wait in &self.waits {
            let from = self.trace.as_ref().map(|_| Instant::now());
            wait.wait().map_err(|error| {
                format!("it needs what stream `{}` was to do: {error}", wait.queue())
            })?;
            if let (Some((trace, track)), Some(from)) = (&self.trace, from) {
                let name = format!("wait for {}", wait.queue());
                trace.record(track, SpanKind::Wait, name, from);
            }
        }
        let from = self.trace.as_ref().map(|_| Instant::now());
        let done = self.work();
        if let (Some((trace, track)), Some(from)) = (&self.trace, from) {
            let kind = match &self.work {
                Work::Nothing => SpanKind::Wait,
                Work::Launch { .. } => SpanKind::Launch,
                _ => SpanKind::Copy,
            };
            trace.record(track, kind, self.in_words(), from);
        }
        done.map_err(|error| match &self.work {
            Work::Nothing | Work::Launch { .. } => error.into(),
            Work::Upload { .. } => format!("copy from the host: {error}").into(),
            Work::Zero { .. } => format!("setting it to zero: {error}").into(),
            Work::Download { .. } => format!("copy to the host: {error}").into(),
            Work::Copy { .. } => format!("copy between devices: {error}").into(),
        })
    }
}
