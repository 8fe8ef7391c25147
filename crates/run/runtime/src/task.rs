//! What streams run.

use crate::error::RuntimeError;
use crate::ledger::{Entry, Use, Wait, Waits};
use crate::node::Node;
use crate::routine::{RoutineRef, RoutineShared};
use crate::trace::{SpanKind, Trace, launching};
use crate::transfer::DownloadSlot;
use loopwright_backend::{BackendError, DeviceError};
use loopwright_graph::Array;
use loopwright_threads::{Task, ThreadsError};
use smallvec::SmallVec;
use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

/// Values of static symbols, captured when work is scheduled. Few, so that a task is one cache line.
pub(crate) type Statics = SmallVec<[i64; 3]>;

/// Something that a stream does.
pub(crate) trait Work {
    /// What errors call it.
    fn name(&self) -> &str;

    /// What traces call it.
    fn label(&self) -> String;

    /// What traces say it is about.
    fn kind(&self) -> SpanKind;

    /// Does it, when everything that it depends on is done; `merge` is what the merge buffer holds, if it
    /// reads that.
    fn perform(&self, merge: Option<&Node>) -> Result<(), DeviceError>;
}

/// Work on its way into a stream. With a worker it becomes [`Owned`]; inline it is done as it stands, which
/// spares the counting of references.
pub(crate) trait Submission: Work {
    /// What errors call it, to be kept.
    fn shared_name(&self) -> Arc<str>;

    /// Memory that it uses.
    fn uses(&self) -> &[(Entry, Use)];

    /// The error for reading memory that nothing wrote, by its place in `uses`.
    fn unwritten(&self, at: usize) -> RuntimeError;

    /// Whether it reads the merge buffer.
    fn merges(&self) -> bool {
        false
    }

    /// Refuses what the merge buffer holds if it is not what this merges.
    fn check_merge(&self, held: Option<&Node>) -> Result<(), RuntimeError> {
        let _ = held;
        Ok(())
    }

    /// What the merge buffer holds from then on.
    fn sets_merge(&self) -> Option<&Arc<Node>> {
        None
    }

    /// Told that it was entered, and how many tasks of the stream are behind with it.
    fn entered(&self, last: u64) {
        let _ = last;
    }

    /// The same with its own references.
    fn owned(&self, merge: Option<&Arc<Node>>) -> Owned;
}

/// Work that is kept until its turn comes: what a stream's queue holds.
///
/// What it waits for is in tasks of its own before it, and traces are told in a box, so that the tasks that
/// a worker takes over from another core are small.
#[derive(Clone)]
pub(crate) enum Owned {
    /// Nothing.
    Nothing,
    /// A wait for a point of another stream, by something of that name.
    Wait { wait: Wait, needed_by: Arc<str> },
    /// A routine that nobody schedules any more: it goes when its tasks are done.
    Release(Arc<RoutineShared>),
    /// Many waits.
    Waits {
        waits: Box<[Wait]>,
        needed_by: Arc<str>,
    },
    /// Work with its trace and the stream's track in it.
    Traced(Box<(Owned, Arc<Trace>, Arc<str>)>),
    /// A kernel.
    Launch {
        routine: RoutineRef,
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

impl Work for Owned {
    fn name(&self) -> &str {
        match self {
            Owned::Nothing => "wait",
            Owned::Wait { needed_by, .. } | Owned::Waits { needed_by, .. } => needed_by,
            Owned::Release(routine) => &routine.name,
            Owned::Traced(traced) => Work::name(&traced.0),
            Owned::Launch { routine, .. } => &routine.name,
            Owned::Upload { to: node, .. }
            | Owned::Zero { node }
            | Owned::Download { from: node, .. }
            | Owned::Copy { to: node, .. } => &node.name,
        }
    }

    fn label(&self) -> String {
        match self {
            Owned::Nothing => "merge in place".to_owned(),
            Owned::Waits { .. } => "wait".to_owned(),
            Owned::Release(routine) => format!("release {}", routine.name),
            Owned::Wait { wait, .. } => format!("wait for {}", wait.event.queue()),
            Owned::Traced(traced) => traced.0.label(),
            Owned::Launch { routine, .. } => routine.name.to_string(),
            Owned::Upload { to, .. } => format!("{} from host", to.name),
            Owned::Zero { node } => format!("{} to zero", node.name),
            Owned::Download { from, .. } => format!("{} to host", from.name),
            Owned::Copy { from, .. } => format!("{} from device", from.name),
        }
    }

    fn kind(&self) -> SpanKind {
        match self {
            Owned::Nothing | Owned::Wait { .. } | Owned::Waits { .. } | Owned::Release(_) => {
                SpanKind::Wait
            }
            Owned::Traced(traced) => traced.0.kind(),
            Owned::Launch { .. } => SpanKind::Launch,
            Owned::Upload { .. }
            | Owned::Zero { .. }
            | Owned::Download { .. }
            | Owned::Copy { .. } => SpanKind::Copy,
        }
    }

    // Of all unsafe calls here: the ledger holds every use of memory by a task, a stream runs its tasks one
    // at a time, and `carry_out` has waited for all tasks of other streams that conflict with this one;
    // those that come later wait for it. A node lies within its slab. The host has no other way to the
    // memory: what it lends stays lent, and what it reads is copied.
    fn perform(&self, _merge: Option<&Node>) -> Result<(), DeviceError> {
        let about = |what: &'static str| {
            move |error: DeviceError| DeviceError::Other(format!("{what}: {error}"))
        };
        match self {
            Owned::Nothing | Owned::Release(_) => Ok(()),
            Owned::Wait { wait, .. } => wait.perform(),
            Owned::Waits { waits, .. } => waits.iter().try_for_each(Wait::perform),
            Owned::Traced(traced) => {
                let (work, trace, track) = &**traced;
                in_trace(work, None, trace, track)
            }
            Owned::Launch {
                routine,
                statics,
                merge,
            } => routine.launch(statics, merge.as_deref()),
            Owned::Upload { to, from } => {
                let slab = to.slab();
                // SAFETY: see above.
                unsafe { slab.write(to.offset, from.bytes()) }.map_err(about("copy from the host"))
            }
            Owned::Zero { node } => zero(node).map_err(about("setting it to zero")),
            Owned::Download { from, to } => to
                .fill(|bytes| {
                    let slab = from.slab();
                    // SAFETY: see above.
                    unsafe { slab.read(from.offset, bytes) }
                })
                .map_err(about("copy to the host")),
            Owned::Copy { from, to } => copy(from, to).map_err(about("copy between devices")),
        }
    }
}

fn zero(node: &Node) -> Result<(), DeviceError> {
    let zeros = [0; 4096];
    let slab = node.slab();
    for start in (0..node.bytes).step_by(zeros.len()) {
        let bytes = zeros.len().min(node.bytes - start);
        // SAFETY: a node lies within its slab; nobody else uses it now, since the ledger ordered this
        // task's uses.
        unsafe { slab.write(node.offset + start, &zeros[..bytes])? };
    }
    Ok(())
}

/// Copies a node to another one of the same size.
fn copy(from: &Node, to: &Node) -> Result<(), DeviceError> {
    /// How much of what the host cannot address passes through it at a time.
    const STAGE: usize = 1 << 20;
    let (source, target) = (from.slab(), to.slab());
    let overlap = from.overlaps(to);
    if let Some(address) = source.address().filter(|_| !overlap) {
        // SAFETY: a node lies within its slab, which its buffer keeps; nobody writes it now, since the
        // ledger ordered this task's uses.
        let bytes = unsafe { std::slice::from_raw_parts(address.add(from.offset), from.bytes) };
        // SAFETY: as above, and nobody else uses the target.
        return unsafe { target.write(to.offset, bytes) };
    }
    if !overlap {
        // SAFETY: as above; they do not overlap.
        let copied = unsafe { target.copy_from(to.offset, source, from.offset, from.bytes) };
        if let Some(copied) = copied {
            return copied;
        }
    }
    let stage = if overlap { from.bytes } else { STAGE };
    let mut stage = vec![0; stage.min(from.bytes)];
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

impl Wait {
    fn perform(&self) -> Result<(), DeviceError> {
        let event = &self.event;
        let ended = match self.well {
            true => event.wait(),
            false => event.wait_for_end(),
        };
        ended.map_err(|error| match error {
            ThreadsError::Interrupted => BackendError::Interrupted.into(),
            error => {
                let queue = event.queue();
                DeviceError::Other(format!("it needs what stream `{queue}` was to do: {error}"))
            }
        })
    }
}

/// Does something as a span of a trace.
fn in_trace(
    work: &impl Work,
    merge: Option<&Node>,
    trace: &Arc<Trace>,
    track: &Arc<str>,
) -> Result<(), DeviceError> {
    let from = Instant::now();
    let done = match work.kind() {
        SpanKind::Launch => launching(trace, track, work.label(), || work.perform(merge)),
        _ => work.perform(merge),
    };
    trace.record(track, work.kind(), work.label(), from);
    done
}

/// Waits, then does something, all as spans where there is a trace.
pub(crate) fn carry_out(
    waits: &Waits,
    trace: Option<(&Arc<Trace>, &Arc<str>)>,
    work: &impl Work,
    merge: Option<&Node>,
) -> Result<(), DeviceError> {
    match trace {
        None => {
            waits.iter().try_for_each(Wait::perform)?;
            work.perform(merge)
        }
        Some((trace, track)) => {
            for wait in waits {
                in_trace(&Waiting { wait }, None, trace, track)?;
            }
            in_trace(work, merge, trace, track)
        }
    }
}

impl Task for Owned {
    fn name(&self) -> &str {
        Work::name(self)
    }

    fn run(&mut self) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(self.perform(None)?)
    }
}

/// A wait for a point of another stream.
pub(crate) struct Waiting<'a> {
    pub(crate) wait: &'a Wait,
}

impl Work for Waiting<'_> {
    fn name(&self) -> &str {
        "wait"
    }

    fn label(&self) -> String {
        format!("wait for {}", self.wait.event.queue())
    }

    fn kind(&self) -> SpanKind {
        SpanKind::Wait
    }

    fn perform(&self, _merge: Option<&Node>) -> Result<(), DeviceError> {
        self.wait.perform()
    }
}

impl Submission for Waiting<'_> {
    fn shared_name(&self) -> Arc<str> {
        self.name().into()
    }

    fn uses(&self) -> &[(Entry, Use)] {
        &[]
    }

    fn unwritten(&self, _at: usize) -> RuntimeError {
        unreachable!("a wait uses no memory")
    }

    fn owned(&self, _merge: Option<&Arc<Node>>) -> Owned {
        Owned::Wait {
            wait: self.wait.clone(),
            needed_by: self.shared_name(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_fits_a_cache_line() {
        assert!(size_of::<Owned>() <= 64, "{} bytes", size_of::<Owned>());
    }
}
