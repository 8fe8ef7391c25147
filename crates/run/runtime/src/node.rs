//! Arrays in a device's memory.

use crate::error::describe;
use crate::ledger::{Entry, Use};
use crate::memory::{Loc, Pool};
use loopwright_backend::Slab;
use loopwright_ops::DType;
use std::borrow::Borrow;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

/// What an array is, wherever it lies.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct ArrayInfo {
    pub(crate) name: Arc<str>,
    pub(crate) dtype: DType,
    pub(crate) shape: Box<[usize]>,
    pub(crate) bytes: usize,
}

impl ArrayInfo {
    /// Its dtype and shape.
    pub(crate) fn describe(&self) -> String {
        describe(self.dtype, &self.shape)
    }

    /// Whether another array has the same dtype and shape.
    pub(crate) fn is_like(&self, other: &ArrayInfo) -> bool {
        self.dtype == other.dtype && self.shape == other.shape
    }
}

/// A named array in memory.
pub(crate) struct Node {
    pub(crate) info: Arc<ArrayInfo>,
    /// Where it starts in its pool.
    pub(crate) offset: usize,
    memory: Memory,
    /// What brought it into the context.
    pub(crate) origin: Arc<str>,
}

/// Whose memory an array lies in.
enum Memory {
    /// Its own, whose uses are tracked under this entry.
    Own { entry: Entry, pool: Arc<Pool> },
    /// A part of another array's, whose uses are the whole's.
    Part(Arc<Node>),
}

impl Node {
    /// An array with memory of its own; `entry` is closed when it goes.
    pub(crate) fn new(
        info: Arc<ArrayInfo>,
        pool: Arc<Pool>,
        offset: usize,
        entry: Entry,
        origin: Arc<str>,
    ) -> Node {
        Node {
            info,
            offset,
            memory: Memory::Own { entry, pool },
            origin,
        }
    }

    /// An array in a part of another one's memory, `offset` bytes from its start.
    pub(crate) fn part(
        info: ArrayInfo,
        whole: &Arc<Node>,
        offset: usize,
        origin: Arc<str>,
    ) -> Node {
        assert!(
            offset + info.bytes <= whole.info.bytes,
            "a part lies within its whole"
        );
        // Of the array that has the memory, so that parts of parts do not make chains.
        let owner = match &whole.memory {
            Memory::Own { .. } => whole,
            Memory::Part(owner) => owner,
        };
        Node {
            info: Arc::new(info),
            offset: whole.offset + offset,
            memory: Memory::Part(Arc::clone(owner)),
            origin,
        }
    }

    pub(crate) fn entry(&self) -> Entry {
        match &self.memory {
            Memory::Own { entry, .. } => *entry,
            Memory::Part(owner) => owner.entry(),
        }
    }

    /// Whether its memory is a part of another array's.
    pub(crate) fn is_part(&self) -> bool {
        matches!(self.memory, Memory::Part(_))
    }

    /// How writing all of it uses the memory that it is in.
    pub(crate) fn covered(&self) -> Use {
        match &self.memory {
            Memory::Own { .. } => Use::Overwrite,
            Memory::Part(owner) if self.is_same_place(owner) => Use::Overwrite,
            Memory::Part(_) => Use::Patch,
        }
    }

    pub(crate) fn pool(&self) -> &Arc<Pool> {
        match &self.memory {
            Memory::Own { pool, .. } => pool,
            Memory::Part(owner) => owner.pool(),
        }
    }

    pub(crate) fn slab(&self) -> &Arc<dyn Slab> {
        &self.pool().slab
    }

    pub(crate) fn loc(&self) -> Loc {
        Loc {
            pool: self.pool().id,
            offset: self.offset,
        }
    }

    /// Whether it has bytes in common with another one.
    pub(crate) fn overlaps(&self, other: &Node) -> bool {
        Arc::ptr_eq(self.pool(), other.pool())
            && self.offset < other.offset + other.bytes
            && other.offset < self.offset + self.bytes
    }

    /// Whether both are the same bytes.
    pub(crate) fn is_same_place(&self, other: &Node) -> bool {
        Arc::ptr_eq(self.pool(), other.pool())
            && self.offset == other.offset
            && self.bytes == other.bytes
    }
}

impl Deref for Node {
    type Target = ArrayInfo;

    fn deref(&self) -> &ArrayInfo {
        &self.info
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Memory::Own { entry, pool } = &self.memory {
            // In a forked child the board may be locked for ever, and the memory goes with the process.
            if pool.runtime.check_process().is_ok() {
                pool.runtime.board.lock().ledger.close(*entry);
            }
        }
    }
}

/// A node, found by its name.
#[derive(Clone)]
pub(crate) struct ByName(pub(crate) Arc<Node>);

impl Borrow<str> for ByName {
    fn borrow(&self) -> &str {
        &self.0.info.name
    }
}

impl Hash for ByName {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.info.name.hash(state);
    }
}

impl PartialEq for ByName {
    fn eq(&self, other: &ByName) -> bool {
        self.0.info.name == other.0.info.name
    }
}

impl Eq for ByName {}
