//! What was sent to the accelerators.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a backend's accelerators were told to do, all together, since it was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Accelerators that were started.
    pub starts: u64,
    /// Programs that were loaded.
    pub loads: u64,
    /// Bytes of programs that were moved there.
    pub loaded_bytes: u64,
    /// Commands that moved data to an accelerator.
    pub uploads: u64,
    /// Bytes that these moved.
    pub uploaded_bytes: u64,
    /// Commands that moved data back.
    pub downloads: u64,
    /// Bytes that these moved.
    pub downloaded_bytes: u64,
    /// Kernels that were run.
    pub launches: u64,
}

/// Counters that several threads count on.
#[derive(Default)]
pub(crate) struct CounterCells {
    pub(crate) starts: AtomicU64,
    pub(crate) loads: AtomicU64,
    pub(crate) loaded_bytes: AtomicU64,
    pub(crate) uploads: AtomicU64,
    pub(crate) uploaded_bytes: AtomicU64,
    pub(crate) downloads: AtomicU64,
    pub(crate) downloaded_bytes: AtomicU64,
    pub(crate) launches: AtomicU64,
}

impl CounterCells {
    pub(crate) fn read(&self) -> Counters {
        let read = |cell: &AtomicU64| cell.load(Ordering::Relaxed);
        Counters {
            starts: read(&self.starts),
            loads: read(&self.loads),
            loaded_bytes: read(&self.loaded_bytes),
            uploads: read(&self.uploads),
            uploaded_bytes: read(&self.uploaded_bytes),
            downloads: read(&self.downloads),
            downloaded_bytes: read(&self.downloaded_bytes),
            launches: read(&self.launches),
        }
    }
}

/// Adds to a counter.
pub(crate) fn count(cell: &AtomicU64, by: u64) {
    cell.fetch_add(by, Ordering::Relaxed);
}
