//! Device memory: slabs, and where in them arrays lie.

use crate::device::DeviceShared;
use crate::error::RuntimeError;
use crate::guard;
use crate::stream::Shared;
use loopwright_backend::{ALIGNMENT, Slab};
use std::fmt;
use std::sync::Arc;

loopwright_arena::handle! {
    /// A pool of a device, by its number; devices count their pools from 0 in the order they are made.
    pub struct PoolId;
}

/// Where an array lies: all that is known of an address outside of a device's own code.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Loc {
    /// The slab.
    pub pool: PoolId,
    /// Bytes from its start.
    pub offset: usize,
}

impl fmt::Display for Loc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pool {} + {}", self.pool.0, self.offset)
    }
}

/// A slab of a device's memory. Given back when the last array in it is gone.
pub(crate) struct Pool {
    pub(crate) id: PoolId,
    pub(crate) slab: Arc<dyn Slab>,
    bytes: usize,
    accounts: Arc<Accounts>,
    /// Whose ledger its arrays are in.
    pub(crate) runtime: Arc<Shared>,
}

impl Pool {
    /// A new slab of zeroed memory; `what` names what it is for in errors.
    pub(crate) fn new(
        device: &Arc<DeviceShared>,
        bytes: usize,
        what: &str,
    ) -> Result<Arc<Pool>, RuntimeError> {
        let slab = device
            .plain
            .allocate(bytes)
            .map_err(|error| RuntimeError::Allocation {
                device: device.name.clone(),
                what: what.to_owned(),
                bytes,
                reason: error.to_string(),
            })?;
        Ok(Pool::adopt(device, slab))
    }

    /// A pool of memory that is already there.
    pub(crate) fn adopt(device: &Arc<DeviceShared>, slab: Arc<dyn Slab>) -> Arc<Pool> {
        let bytes = slab.bytes();
        Arc::new(Pool {
            id: device.memory.count(bytes),
            slab,
            bytes,
            accounts: Arc::clone(&device.memory),
            runtime: Arc::clone(&device.runtime),
        })
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.accounts.uncount(self.bytes);
    }
}

/// How much of a device's memory is used, in bytes of whole pools.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    /// Now.
    pub used: usize,
    /// The most so far.
    pub peak: usize,
    /// Pools that exist now.
    pub pools: usize,
}

/// What a device counts.
#[derive(Default)]
pub(crate) struct Accounts(std::sync::Mutex<(Usage, u32)>);

impl Accounts {
    fn count(&self, bytes: usize) -> PoolId {
        let mut accounts = crate::lock(&self.0);
        let (usage, next) = &mut *accounts;
        usage.used += bytes;
        usage.peak = usage.peak.max(usage.used);
        usage.pools += 1;
        let id = PoolId(*next);
        *next += 1;
        id
    }

    fn uncount(&self, bytes: usize) {
        let mut accounts = crate::lock(&self.0);
        accounts.0.used -= bytes;
        accounts.0.pools -= 1;
    }

    pub(crate) fn usage(&self) -> Usage {
        crate::lock(&self.0).0
    }
}

/// An array's place in the pools that a link makes: which of them, and where.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Placed {
    pub(crate) segment: usize,
    pub(crate) offset: usize,
}

/// Packs arrays one behind the other into as few segments as a cap allows, in their order. Guarded arrays have a segment each.
#[derive(Default)]
pub(crate) struct Packer {
    /// Bytes of each segment.
    pub(crate) segments: Vec<usize>,
}

impl Packer {
    /// The next place for so many bytes; nothing if they are more than the cap.
    pub(crate) fn place(&mut self, bytes: usize, cap: usize) -> Option<Placed> {
        if bytes > cap {
            return None;
        }
        let end = self.segments.last().copied().unwrap_or(0);
        let offset = end.next_multiple_of(ALIGNMENT);
        match offset.checked_add(bytes) {
            Some(end) if end <= cap && !self.segments.is_empty() && !guard::is_on() => {
                let segment = self.segments.len() - 1;
                self.segments[segment] = end;
                Some(Placed { segment, offset })
            }
            _ => {
                self.segments.push(bytes);
                Some(Placed {
                    segment: self.segments.len() - 1,
                    offset: 0,
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_lie_aligned_one_behind_the_other_and_segments_end_at_the_cap() {
        let mut packer = Packer::default();
        let places: Vec<_> = [10, 64, 1, 100, 200, 0]
            .map(|bytes| packer.place(bytes, 256))
            .into();
        let at = |segment, offset| Some(Placed { segment, offset });
        assert_eq!(
            places,
            [
                at(0, 0),
                at(0, 64),
                at(0, 128),
                at(1, 0),
                at(2, 0),
                at(2, 256)
            ]
        );
        assert_eq!(packer.segments, [129, 100, 256]);
        assert_eq!(packer.place(257, 256), None);
    }
}
