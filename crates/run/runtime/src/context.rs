//! Contexts: which arrays there are on a stream, and where.

use crate::code::{Batch, Code};
use crate::device::Device;
use crate::error::{Mismatch, RuntimeError};
use crate::layout::{Layout, LayoutMemory, MergeLayout};
use crate::ledger::{Entry, Use};
use crate::memory::{Loc, Packer, Placed, Pool};
use crate::node::{ArrayInfo, ByName, Node};
use crate::routine::{Routine, RoutineShared, StoreLog};
use crate::stream::Stream;
use loopwright_backend::{HostMemory, LaunchArgument, MemoryAccess, Slab, SlabRange};
use loopwright_graph::Array;
use loopwright_ops::DType;
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt;
use std::sync::Arc;

/// Named arrays in a device's memory, and the stream that works on them.
///
/// A context never changes. Linking gives a new one, which has the arrays of the old one and those that
/// the code added; memory is given back when no context and no routine has it any more. Clones are the
/// same context.
#[derive(Clone)]
pub struct Context {
    shared: Arc<ContextShared>,
}

struct ContextShared {
    stream: Stream,
    nodes: Nodes,
}

/// Nodes by name. What of a node can change is no part of its name.
type Nodes = FxHashSet<ByName>;

/// Slabs, and arguments that are in them.
type Arguments = (Vec<Arc<dyn Slab>>, Vec<LaunchArgument<SlabRange>>);

/// How code is linked.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinkOptions<'a> {
    /// Values of sizes, in place of the program's defaults.
    pub sizes: &'a [(&'a str, i64)],
    /// Nodes that must be in the context already.
    pub prior: &'a [&'a str],
}

/// What is known of an array.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeInfo {
    /// Its name.
    pub name: String,
    /// Its elements' dtype.
    pub dtype: DType,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Where it lies.
    pub loc: Loc,
    /// How long it is.
    pub bytes: usize,
    /// The code that brought it into the context, or what else did.
    pub origin: String,
}

impl Context {
    pub(crate) fn root(stream: Stream) -> Context {
        Context {
            shared: Arc::new(ContextShared {
                stream,
                nodes: FxHashSet::default(),
            }),
        }
    }

    /// The stream that works on it.
    pub fn stream(&self) -> &Stream {
        &self.shared.stream
    }

    /// The device that it is on.
    pub fn device(&self) -> Device {
        self.shared.stream.device()
    }

    /// An array, if there is one of that name.
    pub fn node(&self, name: &str) -> Option<NodeInfo> {
        self.find(name).map(|node| info(node))
    }

    /// Where a node lies.
    pub fn loc(&self, name: &str) -> Option<Loc> {
        self.find(name).map(|node| node.loc())
    }

    /// All arrays, by name.
    pub fn nodes(&self) -> Vec<NodeInfo> {
        let mut nodes: Vec<NodeInfo> = self.shared.nodes.iter().map(|node| info(&node.0)).collect();
        nodes.sort_by(|a, b| a.name.cmp(&b.name));
        nodes
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Arc<Node>> {
        self.shared.nodes.get(name).map(|node| &node.0)
    }

    /// A context with one more node.
    pub(crate) fn with_node(&self, node: Node) -> Context {
        let mut nodes = self.shared.nodes.clone();
        nodes.insert(ByName(Arc::new(node)));
        Context {
            shared: Arc::new(ContextShared {
                stream: self.shared.stream.clone(),
                nodes,
            }),
        }
    }

    /// Ties code to memory: what the context has is used, the difference is made. This context stays as
    /// it is; the routine's is its child.
    ///
    /// # Errors
    /// What does not fit the context, sizes that do not fit the program, or memory that cannot be allocated.
    pub fn link(&self, code: &Code, options: &LinkOptions<'_>) -> Result<Routine, RuntimeError> {
        let device = &self.shared.stream.shared.device;
        device.runtime.check_process()?;
        let name = code.name();
        if !Arc::ptr_eq(&code.shared.platform, &device.platform) {
            return Err(RuntimeError::OtherPlatform {
                code: name.to_owned(),
                made_for: code.shared.platform.name.clone(),
                device: Arc::clone(&device.name),
            });
        }
        for prior in options.prior {
            if self.find(prior).is_none() {
                return Err(RuntimeError::NotInContext {
                    code: name.to_owned(),
                    node: (*prior).to_owned(),
                });
            }
        }
        let layout = code.layout(options.sizes)?;
        if let Some(merge) = &layout.merge {
            self.check_merge(name, merge)?;
        }
        let Linked {
            nodes,
            arrays,
            scratch,
        } = self.allocate(code, &layout)?;
        check_sharing(name, &layout, &arrays)?;
        let log = match layout.program.log_sites() {
            [] => None,
            _ => Some(StoreLog::new(device)?),
        };
        let (slabs, arguments) = self.arguments(&layout, &arrays, &scratch, log.as_ref())?;
        let program = &layout.program;
        let launch = device
            .plain
            .prepare(program.executable(), program.kernel(), slabs, &arguments)
            .map_err(|error| RuntimeError::Prepare {
                device: Arc::clone(&device.name),
                code: name.to_owned(),
                reason: error.to_string(),
            })?;
        let uses = arrays
            .iter()
            .zip(&layout.arrays)
            .map(|(node, array)| match array.usage {
                Use::Overwrite => (node.entry(), node.covered()),
                usage => (node.entry(), usage),
            })
            .chain(log.iter().map(|log| (log.node.entry(), Use::Overwrite)));
        let context = Context {
            shared: Arc::new(ContextShared {
                stream: self.shared.stream.clone(),
                nodes,
            }),
        };
        Ok(Routine::new(RoutineShared {
            name: Arc::clone(&code.shared.name),
            context,
            uses: uses.collect(),
            layout,
            launch,
            _scratch: scratch.into_iter().map(|(pool, _)| pool).collect(),
            log,
        }))
    }

    /// Links the codes of a batch one behind the other. The context given back is downstream of all; every
    /// routine keeps the context that it was linked in.
    ///
    /// # Errors
    /// As [`link`](Context::link); then nothing is linked.
    pub fn link_batch(
        &self,
        batch: &Batch,
        options: &LinkOptions<'_>,
    ) -> Result<(Context, Vec<Option<Routine>>), RuntimeError> {
        let mut context = self.clone();
        let mut routines = Vec::with_capacity(batch.codes.len());
        for code in &batch.codes {
            routines.push(match code {
                None => None,
                Some(code) => {
                    // Sizes are the batch's; a code takes those that it has.
                    let has = |name: &str| code.graph().sizes().any(|(_, size, _)| size == name);
                    let sizes: Vec<_> = options
                        .sizes
                        .iter()
                        .copied()
                        .filter(|(name, _)| has(name))
                        .collect();
                    let options = LinkOptions {
                        sizes: &sizes,
                        prior: &[],
                    };
                    let routine = context.link(code, &options)?;
                    context = routine.context().clone();
                    Some(routine)
                }
            });
        }
        for (size, _) in options.sizes {
            let mut codes = batch.codes.iter().flatten();
            if !codes.any(|code| code.graph().sizes().any(|(_, name, _)| name == *size)) {
                return Err(RuntimeError::Code {
                    code: "batch".to_owned(),
                    reason: format!("none of its programs has a size `{size}`"),
                });
            }
        }
        for prior in options.prior {
            if self.find(prior).is_none() {
                return Err(RuntimeError::NotInContext {
                    code: "batch".to_owned(),
                    node: (*prior).to_owned(),
                });
            }
        }
        Ok((context, routines))
    }

    /// Refuses code that merges another node than the one that the merge buffer will hold.
    fn check_merge(&self, code: &str, merge: &MergeLayout) -> Result<(), RuntimeError> {
        if let Some(node) = self.find(&merge.node)
            && !node.is_like(&merge.info)
        {
            return Err(mismatch(code, &merge.node, &merge.info, node));
        }
        match self.shared.stream.merge_node() {
            Some(held) if held.name != merge.node => {
                Err(self
                    .shared
                    .stream
                    .wrong_merge(code, &merge.node, Some(&held)))
            }
            _ => Ok(()),
        }
    }

    /// Finds or makes the arrays of a code, and its scratch memory.
    fn allocate(&self, code: &Code, layout: &Layout) -> Result<Linked, RuntimeError> {
        let device = &self.shared.stream.shared.device;
        let name = &code.shared.name;
        let cap = device.pool_cap;
        let mut packer = Packer::default();
        // An array of the context, or a place for a new one.
        let mut found: Vec<Result<Arc<Node>, Placed>> = Vec::with_capacity(layout.arrays.len());
        for array in &layout.arrays {
            let info = &array.info;
            found.push(match self.find(&info.name) {
                Some(node) if node.is_like(info) => Ok(Arc::clone(node)),
                Some(node) => {
                    return Err(mismatch(name, &info.name, info, node));
                }
                None => Err(place(&mut packer, &info.name, info.bytes, cap)?),
            });
        }
        let scratch = place_scratch(&mut packer, layout, cap)?;
        let pools = packer
            .segments
            .iter()
            .map(|bytes| Pool::new(device, *bytes, &format!("`{name}`")))
            .collect::<Result<Vec<_>, _>>()?;
        let missing = found.iter().filter(|found| found.is_err()).count();
        let mut entries: Vec<Entry> = Vec::with_capacity(missing);
        if missing > 0 {
            let mut board = device.runtime.board.lock();
            entries.extend((0..missing).map(|_| board.ledger.open()));
        }
        let mut entries = entries.into_iter();
        let mut nodes = self.shared.nodes.clone();
        nodes.reserve(missing);
        let mut arrays = Vec::with_capacity(found.len());
        for (array, found) in layout.arrays.iter().zip(found) {
            arrays.push(found.unwrap_or_else(|placed| {
                let pool = Arc::clone(&pools[placed.segment]);
                let entry = entries.next().expect("one for every new array");
                let node = Arc::new(Node::new(
                    Arc::clone(&array.info),
                    pool,
                    placed.offset,
                    entry,
                    Arc::clone(name),
                ));
                nodes.insert(ByName(Arc::clone(&node)));
                node
            }));
        }
        let scratch = scratch
            .into_iter()
            .map(|placed| (Arc::clone(&pools[placed.segment]), placed.offset));
        Ok(Linked {
            nodes,
            arrays,
            scratch: scratch.collect(),
        })
    }

    fn arguments(
        &self,
        layout: &Layout,
        arrays: &[Arc<Node>],
        scratch: &[(Arc<Pool>, usize)],
        log: Option<&StoreLog>,
    ) -> Result<Arguments, RuntimeError> {
        let constants = self.constants(layout)?;
        let mut pools: Vec<&Arc<Pool>> = Vec::new();
        // Arrays that follow one another are mostly in one pool, so the last is looked at first.
        let mut range = |pool, offset: usize, bytes: usize, access: MemoryAccess| {
            let known = pools.iter().rposition(|known| Arc::ptr_eq(known, pool));
            let slab = known.unwrap_or_else(|| {
                pools.push(pool);
                pools.len() - 1
            });
            SlabRange {
                slab,
                offset,
                bytes,
                access,
            }
        };
        let mut find = |memory: LayoutMemory| match memory {
            LayoutMemory::Array(at) => {
                let node = &arrays[at];
                let access = match layout.arrays[at].usage {
                    Use::Read => MemoryAccess::Read,
                    Use::Overwrite | Use::Patch | Use::Update => MemoryAccess::Write,
                };
                range(node.pool(), node.offset, node.bytes, access)
            }
            LayoutMemory::Constant(at) => {
                let (pool, offset) = &constants[at];
                let bytes = layout.program.constants()[at].len();
                range(pool, *offset, bytes, MemoryAccess::Read)
            }
            LayoutMemory::Scratch(at) => {
                let (pool, offset) = &scratch[at];
                range(
                    pool,
                    *offset,
                    layout.scratch[at].bytes,
                    MemoryAccess::Shared,
                )
            }
            LayoutMemory::Log => {
                let log = log.expect("a program that logs has a log");
                range(log.node.pool(), 0, log.node.bytes, MemoryAccess::Write)
            }
        };
        let arguments = layout.arguments.iter();
        let arguments = arguments.map(|argument| argument.map(&mut find)).collect();
        let slabs = pools.iter().map(|pool| Arc::clone(&pool.slab)).collect();
        Ok((slabs, arguments))
    }

    /// Where a code's constants lie: each content once on a device, as long as it is used or among those used last.
    fn constants(&self, layout: &Layout) -> Result<Vec<(Arc<Pool>, usize)>, RuntimeError> {
        let device = &self.shared.stream.shared.device;
        if layout.constants.is_empty() {
            return Ok(Vec::new());
        }
        let mut known = crate::lock(&device.constants);
        // Apart from what is kept: a program may have more of them than are kept.
        let mut found: FxHashMap<blake3::Hash, (Arc<Pool>, usize)> = FxHashMap::default();
        for constant in &layout.constants {
            if let Some((pool, offset)) = known.get(&constant.hash) {
                found.insert(constant.hash, (Arc::clone(pool), *offset));
            }
        }
        let mut packer = Packer::default();
        let mut missing: Vec<(usize, Placed)> = Vec::new();
        for constant in &layout.constants {
            let twice = missing
                .iter()
                .any(|(at, _)| layout.constants[*at].hash == constant.hash);
            if twice || found.contains_key(&constant.hash) {
                continue;
            }
            let bytes = layout.program.constants()[constant.at].len();
            let placed = place(&mut packer, &constant.name, bytes, device.pool_cap)?;
            missing.push((constant.at, placed));
        }
        let pools = packer
            .segments
            .iter()
            .map(|bytes| Pool::new(device, *bytes, "constants"))
            .collect::<Result<Vec<_>, _>>()?;
        for (at, placed) in missing {
            let pool = Arc::clone(&pools[placed.segment]);
            let bytes = &layout.program.constants()[at];
            // SAFETY: the pool is new, nobody else knows of it; the place lies within it.
            let written = unsafe { pool.slab.write(placed.offset, bytes) };
            written.map_err(|error| RuntimeError::Allocation {
                device: Arc::clone(&device.name),
                what: format!("constant `{}`", layout.constants[at].name),
                bytes: bytes.len(),
                reason: error.to_string(),
            })?;
            let hash = layout.constants[at].hash;
            known.insert(hash, (Arc::clone(&pool), placed.offset));
            found.insert(hash, (pool, placed.offset));
        }
        let place = |hash: &blake3::Hash| {
            let (pool, offset) = &found[hash];
            (Arc::clone(pool), *offset)
        };
        Ok(layout
            .constants
            .iter()
            .map(|constant| place(&constant.hash))
            .collect())
    }

    /// A context in which `name` is the part of `of` at an index of its first dimension: a view in both
    /// directions, without memory of its own.
    ///
    /// # Errors
    /// [`RuntimeError::Slice`].
    pub fn slice(&self, name: &str, of: &str, index: usize) -> Result<Context, RuntimeError> {
        let refuse = |reason: String| RuntimeError::Slice {
            node: of.to_owned(),
            reason,
        };
        let whole = self
            .find(of)
            .ok_or_else(|| refuse("the context has no such node".to_owned()))?;
        if self.find(name).is_some() {
            return Err(refuse(format!("the context has a node `{name}` already")));
        }
        let Some((first, rest)) = whole.shape.split_first() else {
            return Err(refuse("it has no dimensions".to_owned()));
        };
        if index >= *first {
            return Err(refuse(format!(
                "index {index} is outside of its first dimension, 0 .. {first}"
            )));
        }
        let bytes = whole.bytes / first;
        let part = ArrayInfo {
            name: name.into(),
            dtype: whole.dtype,
            shape: rest.into(),
            bytes,
        };
        let origin = format!("slice {index} of {of}").into();
        Ok(self.with_node(Node::part(part, whole, index * bytes, origin)))
    }

    /// A context in which `name` is an array that another context of the same stream has as `of`: the
    /// same memory under another name.
    ///
    /// # Errors
    /// [`RuntimeError::Slice`] where the other context has no such array, this one has `name` already, or
    /// they belong to different streams, between which arrays are copied.
    pub fn with_array(
        &self,
        name: &str,
        other: &Context,
        of: &str,
    ) -> Result<Context, RuntimeError> {
        let refuse = |reason: &str| RuntimeError::Slice {
            node: of.to_owned(),
            reason: reason.to_owned(),
        };
        let whole = other
            .find(of)
            .ok_or_else(|| refuse("the other context has no such node"))?;
        if self.find(name).is_some() {
            return Err(refuse(&format!("the context has a node `{name}` already")));
        }
        if self.shared.stream.id() != other.shared.stream.id() {
            return Err(refuse("the other context belongs to another stream"));
        }
        let info = ArrayInfo {
            name: name.into(),
            dtype: whole.info.dtype,
            shape: whole.info.shape.clone(),
            bytes: whole.info.bytes,
        };
        let origin = Arc::clone(&whole.origin);
        Ok(self.with_node(Node::part(info, whole, 0, origin)))
    }

    /// A context in which `name` is an array of the host, used where it lies. It has been written.
    ///
    /// # Errors
    /// [`RuntimeError::NoHostMemory`] where the device cannot work in host memory;
    /// [`RuntimeError::Values`] where the context has a node of that name already.
    pub fn with_host(&self, name: &str, mut array: Array) -> Result<Context, RuntimeError> {
        let device = &self.shared.stream.shared.device;
        if let Some(node) = self.find(name) {
            return Err(RuntimeError::Values {
                node: name.to_owned(),
                expected: format!("in the context already, as {}", node.describe()),
                got: "a second array".to_owned(),
            });
        }
        let info = ArrayInfo {
            name: name.into(),
            dtype: array.dtype(),
            shape: array.shape().into(),
            bytes: array.bytes().len(),
        };
        array.normalise();
        let address = array.bytes_mut().as_mut_ptr();
        // SAFETY: the bytes are the array's, which is moved away, so that nobody else has them; an array
        // lies where it lies wherever it is moved, and was seen to be aligned.
        let memory = unsafe { HostMemory::new(address, info.bytes, Box::new(array)) };
        let slab = device
            .plain
            .adopt(memory)
            .ok_or_else(|| RuntimeError::NoHostMemory {
                device: Arc::clone(&device.name),
                node: name.to_owned(),
            })?;
        let pool = Pool::adopt(device, slab);
        let now = self.shared.stream.record();
        let mut board = device.runtime.board.lock();
        let entry = board.ledger.open();
        // As written at a point that is past or on this stream, which keeps its order.
        board.ledger.enter(entry, Use::Overwrite, &now.at(0));
        drop(board);
        let origin = "host memory".into();
        Ok(self.with_node(Node::new(Arc::new(info), pool, 0, entry, origin)))
    }
}

/// What linking found or made.
struct Linked {
    nodes: Nodes,
    /// By the layout's arrays.
    arrays: Vec<Arc<Node>>,
    /// By the layout's scratch memory.
    scratch: Vec<(Arc<Pool>, usize)>,
}

/// The error for a node that the context has as `found`, and a program otherwise.
fn mismatch(code: &str, node: &str, wanted: &ArrayInfo, found: &Node) -> RuntimeError {
    RuntimeError::Mismatch(Box::new(Mismatch {
        code: code.to_owned(),
        node: node.to_owned(),
        wanted: wanted.describe(),
        found: found.describe(),
        origin: found.origin.to_string(),
    }))
}

pub(crate) fn place(
    packer: &mut Packer,
    node: &str,
    bytes: usize,
    cap: usize,
) -> Result<Placed, RuntimeError> {
    packer
        .place(bytes, cap)
        .ok_or_else(|| RuntimeError::OverCap {
            node: node.to_owned(),
            bytes: bytes as u128,
            cap,
        })
}

/// Places for scratch memory: as one piece in which those that do not live at the same time share bytes,
/// or one by one where that piece is more than a pool holds.
pub(crate) fn place_scratch(
    packer: &mut Packer,
    layout: &Layout,
    cap: usize,
) -> Result<Vec<Placed>, RuntimeError> {
    let whole = usize::try_from(layout.packed.bytes)
        .ok()
        .filter(|bytes| *bytes > 0)
        .and_then(|bytes| packer.place(bytes, cap));
    match whole {
        Some(start) => Ok(layout
            .packed
            .offsets
            .iter()
            .map(|offset| Placed {
                segment: start.segment,
                offset: start.offset + *offset as usize,
            })
            .collect()),
        None => layout
            .scratch
            .iter()
            .map(|scratch| place(packer, &scratch.name, scratch.bytes, cap))
            .collect(),
    }
}

/// Refuses code that writes a node which shares memory with another of its nodes.
fn check_sharing(code: &str, layout: &Layout, arrays: &[Arc<Node>]) -> Result<(), RuntimeError> {
    // Arrays with memory of their own share none.
    if !arrays.iter().any(|node| node.is_part()) {
        return Ok(());
    }
    let mut order: Vec<usize> = (0..arrays.len()).collect();
    order.sort_unstable_by_key(|at| arrays[*at].entry());
    for group in order.chunk_by(|a, b| arrays[*a].entry() == arrays[*b].entry()) {
        for (at, first) in group.iter().enumerate() {
            for second in &group[at + 1..] {
                let written = match (
                    layout.arrays[*first].usage.writes(),
                    layout.arrays[*second].usage.writes(),
                ) {
                    (true, _) => (*first, *second),
                    (false, true) => (*second, *first),
                    (false, false) => continue,
                };
                if arrays[*first].overlaps(&arrays[*second]) {
                    return Err(RuntimeError::Shared {
                        code: code.to_owned(),
                        written: arrays[written.0].name.to_string(),
                        other: arrays[written.1].name.to_string(),
                    });
                }
            }
        }
    }
    Ok(())
}

fn info(node: &Node) -> NodeInfo {
    NodeInfo {
        name: node.name.to_string(),
        dtype: node.dtype,
        shape: node.shape.to_vec(),
        loc: node.loc(),
        bytes: node.bytes,
        origin: node.origin.to_string(),
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("stream", &self.shared.stream)
            .field("nodes", &self.nodes())
            .finish()
    }
}
