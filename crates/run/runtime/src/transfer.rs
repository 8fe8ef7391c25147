//! Transfers: between host and device, between devices, and into merge buffers.

use crate::context::Context;
use crate::error::{RuntimeError, describe};
use crate::ledger::{Entry, Use};
use crate::memory::Pool;
use crate::node::{ArrayInfo, Node};
use crate::stream::Stream;
use crate::task::{Owned, Submission, Work};
use crate::trace::{SpanKind, Trace, host_track};
use loopwright_backend::DeviceError;
use loopwright_compile::Element;
use loopwright_graph::Array;
use loopwright_threads::Event;
use smallvec::SmallVec;
use std::any::Any;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// How a value gets from one stream to where another merges it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Merge {
    /// It is copied into the stream's merge buffer; its own memory is free again when that is done.
    Copy,
    /// It is read where it lies, by the routine that merges it.
    Streaming,
}

/// Values on their way to the host.
pub struct Download {
    slot: Arc<DownloadSlot>,
    event: Event,
    /// Where waiting for it is recorded.
    trace: Option<Arc<Trace>>,
}

pub(crate) struct DownloadSlot(Mutex<Option<Array>>);

impl DownloadSlot {
    pub(crate) fn fill(
        &self,
        read: impl FnOnce(&mut [u8]) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        match &mut *crate::lock(&self.0) {
            Some(array) => read(array.bytes_mut()),
            None => Ok(()),
        }
    }
}

impl Download {
    /// Whether they are there, or never will be.
    pub fn is_done(&self) -> bool {
        self.event.is_done()
    }

    /// The point of the stream behind the copy.
    pub fn event(&self) -> &Event {
        &self.event
    }

    /// Waits for them.
    ///
    /// # Errors
    /// [`RuntimeError::Stream`] where the copy, or anything before it on its stream, failed.
    pub fn wait(self) -> Result<Array, RuntimeError> {
        let from = Instant::now();
        let ended = self.event.wait();
        if let Some(trace) = &self.trace {
            let name = format!("wait for {}", self.event.queue());
            trace.record(&host_track(), SpanKind::Wait, name, from);
        }
        ended?;
        let array = crate::lock(&self.slot.0).take();
        Ok(array.expect("the array is there until it is waited for, and that ends the download"))
    }
}

impl Context {
    /// Schedules a copy from the host; `false`, and nothing done, where the context has no such node.
    ///
    /// # Errors
    /// [`RuntimeError::Values`] for another dtype or shape; [`RuntimeError::Stream`].
    pub fn upload(&self, name: &str, array: impl Into<Arc<Array>>) -> Result<bool, RuntimeError> {
        let Some(node) = self.find(name) else {
            return Ok(false);
        };
        let mut array = array.into();
        if array.dtype() != node.dtype || *array.shape() != *node.shape {
            return Err(RuntimeError::Values {
                node: name.to_owned(),
                expected: node.describe(),
                got: describe(array.dtype(), array.shape()),
            });
        }
        // What compiled code is to read is what its dtype says, whoever filled the array.
        if !array.dtype().holds_only_values(array.bytes()) {
            Arc::make_mut(&mut array).normalise();
        }
        let work = Owned::Upload {
            to: Arc::clone(node),
            from: array,
        };
        self.move_memory(&[(node, node.covered())], None, work)?;
        Ok(true)
    }

    /// Schedules a copy of elements in row-major order; they are copied now, so that they need not stay.
    /// `false`, and nothing done, where the context has no such node.
    ///
    /// # Errors
    /// As [`upload`](Context::upload).
    pub fn write<T: Element>(&self, name: &str, elements: &[T]) -> Result<bool, RuntimeError> {
        let Some(node) = self.find(name) else {
            return Ok(false);
        };
        let wrong = |got: String| RuntimeError::Values {
            node: name.to_owned(),
            expected: node.describe(),
            got,
        };
        if T::DTYPE != node.dtype || elements.len() != node.shape.iter().product::<usize>() {
            return Err(wrong(describe(T::DTYPE, &[elements.len()])));
        }
        let bytes = bytemuck::cast_slice(elements);
        let array = Array::from_bytes(T::DTYPE, &node.shape, bytes)
            .map_err(|error| wrong(error.to_string()))?;
        self.upload(name, array)
    }

    /// Schedules that a node is set to zero; `false`, and nothing done, where the context has no such node.
    ///
    /// # Errors
    /// [`RuntimeError::Stream`].
    pub fn zero(&self, name: &str) -> Result<bool, RuntimeError> {
        let Some(node) = self.find(name) else {
            return Ok(false);
        };
        let work = Owned::Zero {
            node: Arc::clone(node),
        };
        self.move_memory(&[(node, node.covered())], None, work)?;
        Ok(true)
    }

    /// Schedules a copy to the host; `None`, and nothing done, where the context has no such node. A node
    /// that nothing has written is zero.
    ///
    /// # Errors
    /// [`RuntimeError::Stream`]; [`RuntimeError::Allocation`] where the host has no memory for it.
    pub fn download(&self, name: &str) -> Result<Option<Download>, RuntimeError> {
        let node = self.find(name);
        node.map(|node| self.download_node(node)).transpose()
    }

    /// Schedules a copy of any node to the host.
    pub(crate) fn download_node(&self, node: &Arc<Node>) -> Result<Download, RuntimeError> {
        let array =
            Array::zeros(node.dtype, &node.shape).map_err(|error| RuntimeError::Allocation {
                device: "host".into(),
                what: format!("`{}`", node.name),
                bytes: node.bytes,
                reason: error.to_string(),
            })?;
        let slot = Arc::new(DownloadSlot(Mutex::new(Some(array))));
        let work = Owned::Download {
            from: Arc::clone(node),
            to: Arc::clone(&slot),
        };
        if self.is_lost(node) {
            let node = Arc::clone(&node.name);
            return Err(RuntimeError::Lost { node });
        }
        if self.is_written(node) {
            self.move_memory(&[(node, Use::Read)], None, work)?;
        }
        Ok(Download {
            slot,
            event: self.stream().record(),
            trace: self.stream().shared.device.runtime.trace.clone(),
        })
    }

    /// The values of a node, after waiting for them; `None` where the context has no such node.
    ///
    /// # Errors
    /// As [`download`](Context::download), and what [`Download::wait`] gives.
    pub fn read(&self, name: &str) -> Result<Option<Array>, RuntimeError> {
        self.download(name)?.map(Download::wait).transpose()
    }

    /// The values of a node where they lie, after waiting for them; `None` where the context has no such node, nothing has
    /// written it, or the host cannot address it.
    ///
    /// # Safety
    /// Nothing that writes the node is scheduled until the array is gone, and with it `keep`.
    ///
    /// # Errors
    /// [`RuntimeError::Stream`] where something failed.
    pub unsafe fn in_place(
        &self,
        name: &str,
        keep: Box<dyn Any + Send + Sync>,
    ) -> Result<Option<Array>, RuntimeError> {
        let Some(node) = self.find(name).filter(|node| self.is_written(node)) else {
            return Ok(None);
        };
        let Some(start) = node.slab().address() else {
            return Ok(None);
        };
        self.stream().wait()?;
        let keep = Box::new((keep, Arc::clone(node)));
        // SAFETY: a node lies within its slab, aligned, and keeps it; who writes it has been waited for, and nobody
        // does any more, as the caller states.
        let array = unsafe {
            let address = start.add(node.loc().offset).cast_const();
            Array::foreign(node.dtype, &node.shape, address, keep)
        };
        Ok(array.ok())
    }

    /// Where the values of a node lie; `None` as in [`in_place`](Context::in_place), and where anything is still
    /// scheduled that uses it. The address is good as long as the context is held. Whoever writes there sees to it that
    /// nothing is scheduled meanwhile that uses the node.
    pub fn idle_address(&self, name: &str) -> Option<*mut u8> {
        let node = self.find(name).filter(|node| self.is_written(node))?;
        let start = node.slab().address()?;
        let runtime = &node.pool().runtime;
        let is_idle =
            runtime.check_process().is_ok() && runtime.board.lock().ledger.is_idle(node.entry());
        // SAFETY: a node lies within its slab.
        is_idle.then(|| unsafe { start.add(node.loc().offset) })
    }

    /// Schedules a copy of a node from another context, which may be on another stream or device; it waits
    /// for the writer's event, and the host does not wait. `false`, and nothing done, where either has no
    /// such node, or both have the same memory.
    ///
    /// # Errors
    /// [`RuntimeError::Values`] where dtype or shape differ, [`RuntimeError::NothingToCopy`] where nothing
    /// wrote the source, [`RuntimeError::OtherRuntime`], [`RuntimeError::Stream`].
    pub fn copy_from(&self, name: &str, source: &Context) -> Result<bool, RuntimeError> {
        self.check_runtime(source, "the source")?;
        let (Some(to), Some(from)) = (self.find(name), source.find(name)) else {
            return Ok(false);
        };
        if to.is_same_place(from) {
            return Ok(false);
        }
        if !to.is_like(from) {
            return Err(RuntimeError::Values {
                node: name.to_owned(),
                expected: to.describe(),
                got: from.describe(),
            });
        }
        let work = Owned::Copy {
            from: Arc::clone(from),
            to: Arc::clone(to),
        };
        self.move_memory(&[(to, to.covered()), (from, Use::Read)], None, work)?;
        Ok(true)
    }

    /// Schedules that the merge buffer of this context's stream holds the value that another context has
    /// of a node. A routine that reads `name.merge` then combines it. `false`, and nothing done, where the
    /// source has no such node.
    ///
    /// # Errors
    /// As [`copy_from`](Context::copy_from); [`RuntimeError::NotStreamable`] where the source cannot be
    /// read in place; [`RuntimeError::Allocation`].
    pub fn merge_from(
        &self,
        name: &str,
        source: &Context,
        merge: Merge,
    ) -> Result<bool, RuntimeError> {
        self.check_runtime(source, "the source")?;
        let Some(from) = source.find(name) else {
            return Ok(false);
        };
        match merge {
            Merge::Copy => {
                let to = self.stream().merge_memory(from)?;
                let work = Owned::Copy {
                    from: Arc::clone(from),
                    to: Arc::clone(&to),
                };
                let uses = [(&to, Use::Overwrite), (from, Use::Read)];
                self.move_memory(&uses, Some(Arc::clone(&to)), work)?;
            }
            Merge::Streaming => {
                let addressable = from.slab().address().is_some();
                if !(addressable && self.stream().shared.device.limits.host_memory) {
                    return Err(RuntimeError::NotStreamable {
                        device: Arc::clone(&self.stream().shared.device.name),
                        node: name.to_owned(),
                        source_device: Arc::clone(&source.stream().shared.device.name),
                    });
                }
                self.move_memory(&[(from, Use::Read)], Some(Arc::clone(from)), Owned::Nothing)?;
            }
        }
        Ok(true)
    }

    fn check_runtime(&self, other: &Context, what: &str) -> Result<(), RuntimeError> {
        let [own, others] = [self, other].map(|context| &context.stream().shared.device.runtime);
        match Arc::ptr_eq(own, others) {
            true => Ok(()),
            false => Err(RuntimeError::OtherRuntime {
                what: what.to_owned(),
            }),
        }
    }

    fn is_written(&self, node: &Node) -> bool {
        let runtime = &node.pool().runtime;
        // In a forked child the lock may be held for ever; whoever goes on is refused.
        runtime.check_process().is_err() || runtime.board.lock().ledger.is_written(node.entry())
    }

    fn is_lost(&self, node: &Node) -> bool {
        let runtime = &node.pool().runtime;
        runtime.check_process().is_ok() && runtime.board.lock().ledger.is_lost(node.entry())
    }

    /// Schedules work that uses these nodes.
    fn move_memory(
        &self,
        uses: &[(&Arc<Node>, Use)],
        sets_merge: Option<Arc<Node>>,
        work: Owned,
    ) -> Result<(), RuntimeError> {
        self.stream().submit(&Moving {
            uses: uses
                .iter()
                .map(|(node, usage)| (node.entry(), *usage))
                .collect(),
            nodes: uses,
            sets_merge,
            work,
        })
    }
}

/// A transfer on its way into a stream.
struct Moving<'a> {
    nodes: &'a [(&'a Arc<Node>, Use)],
    uses: SmallVec<[(Entry, Use); 2]>,
    sets_merge: Option<Arc<Node>>,
    work: Owned,
}

impl Work for Moving<'_> {
    fn name(&self) -> &str {
        self.work.name()
    }

    fn label(&self) -> String {
        self.work.label()
    }

    fn kind(&self) -> SpanKind {
        self.work.kind()
    }

    fn perform(&self, merge: Option<&Node>) -> Result<(), DeviceError> {
        self.work.perform(merge)
    }
}

impl Submission for Moving<'_> {
    fn shared_name(&self) -> Arc<str> {
        // The first is what is written, or read if nothing is.
        Arc::clone(&self.nodes[0].0.name)
    }

    fn uses(&self) -> &[(Entry, Use)] {
        &self.uses
    }

    fn unwritten(&self, at: usize) -> RuntimeError {
        RuntimeError::NothingToCopy {
            node: Arc::clone(&self.nodes[at].0.name),
        }
    }

    fn sets_merge(&self) -> Option<&Arc<Node>> {
        self.sets_merge.as_ref()
    }

    fn owned(&self, _merge: Option<&Arc<Node>>) -> Owned {
        self.work.clone()
    }
}

impl Stream {
    /// What the merge buffer holds when everything scheduled has run.
    pub(crate) fn merge_node(&self) -> Option<Arc<Node>> {
        self.with_lane(|lane| lane.merge.clone())
    }

    pub(crate) fn wrong_merge(
        &self,
        routine: &str,
        expected: &str,
        held: Option<&Node>,
    ) -> RuntimeError {
        let found = match held {
            None => "nothing".to_owned(),
            Some(held) => format!("`{}`, {}", held.name, held.describe()),
        };
        RuntimeError::WrongMerge {
            routine: routine.to_owned(),
            expected: expected.to_owned(),
            stream: Arc::clone(&self.shared.name),
            found,
        }
    }

    /// The stream's merge buffer as a copy of a node, made larger where it must be.
    fn merge_memory(&self, of: &Node) -> Result<Arc<Node>, RuntimeError> {
        let device = &self.shared.device;
        let known = self.with_lane(|lane| lane.merge_memory.clone());
        let memory = match known {
            Some(known) if known.bytes >= of.bytes => known,
            _ => {
                if of.bytes > device.pool_cap {
                    return Err(RuntimeError::OverCap {
                        node: of.name.to_string(),
                        bytes: of.bytes as u128,
                        cap: device.pool_cap,
                    });
                }
                let pool = Pool::new(device, of.bytes, "a merge buffer")?;
                let entry = device.runtime.board.lock().ledger.open();
                let info = Arc::clone(&of.info);
                let memory = Arc::new(Node::new(info, pool, 0, entry, "merge buffer".into()));
                let new = Arc::clone(&memory);
                // The old one goes when the last work that uses it is done.
                let old = self.with_lane(|lane| lane.merge_memory.replace(new));
                drop(old);
                memory
            }
        };
        let info = ArrayInfo {
            name: Arc::clone(&of.name),
            dtype: of.dtype,
            shape: of.shape.clone(),
            bytes: of.bytes,
        };
        let origin = Arc::clone(&memory.origin);
        Ok(Arc::new(Node::part(info, &memory, 0, origin)))
    }
}
