//! Arrays in a device's memory.

use crate::error::describe;
use crate::ledger::Entry;
use crate::memory::{Loc, Pool};
use crate::stream::Shared;
use loopwright_ops::DType;
use std::sync::Arc;

/// Memory whose uses are tracked together.
pub(crate) struct Buffer {
    pub(crate) entry: Entry,
    pub(crate) pool: Arc<Pool>,
    runtime: Arc<Shared>,
}

impl Buffer {
    /// Memory that nobody has written, in a pool; `entry` is its own.
    pub(crate) fn new(entry: Entry, pool: Arc<Pool>, runtime: &Arc<Shared>) -> Arc<Buffer> {
        Arc::new(Buffer {
            entry,
            pool,
            runtime: Arc::clone(runtime),
        })
    }

    /// The runtime it belongs to.
    pub(crate) fn runtime(&self) -> &Arc<Shared> {
        &self.runtime
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        crate::lock(&self.runtime.board).ledger.close(self.entry);
    }
}

/// A named array in memory.
pub(crate) struct Node {
    pub(crate) name: Arc<str>,
    pub(crate) dtype: DType,
    pub(crate) shape: Arc<[usize]>,
    pub(crate) bytes: usize,
    /// Where it starts in its pool.
    pub(crate) offset: usize,
    /// Slices of an array have the array's.
    pub(crate) buffer: Arc<Buffer>,
    /// What brought it into the context.
    pub(crate) origin: Arc<str>,
}

impl Node {
    pub(crate) fn loc(&self) -> Loc {
        Loc {
            pool: self.buffer.pool.id,
            offset: self.offset,
        }
    }

    /// Its dtype and shape.
    pub(crate) fn describe(&self) -> String {
        describe(self.dtype, &self.shape)
    }

    /// Whether it has bytes in common with another one.
    pub(crate) fn overlaps(&self, other: &Node) -> bool {
        Arc::ptr_eq(&self.buffer, &other.buffer)
            && self.offset < other.offset + other.bytes
            && other.offset < self.offset + self.bytes
    }

    /// Whether both are the same bytes.
    pub(crate) fn is_same_place(&self, other: &Node) -> bool {
        Arc::ptr_eq(&self.buffer, &other.buffer)
            && self.offset == other.offset
            && self.bytes == other.bytes
    }
}
