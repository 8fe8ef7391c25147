//! What a kernel that logs its stores has written down.
//!
//! The memory is a row of words: the number of stores, the number of records there is room for, and the
//! records. [`loopwright_kernel::passes::log_stores`] makes kernels write it.

use loopwright_kernel::passes::log_stores::{HEADER_WORDS, RECORD_WORDS, StoreSite};
use loopwright_ops::Scalar;

/// One element that a kernel stored.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LogRecord {
    /// Which store it was: an index into [`crate::Program::log_sites`].
    pub site: usize,
    /// The element, counted from the first of the site's buffer.
    pub index: i64,
    /// What was there.
    pub old: Scalar,
    /// What is there now.
    pub new: Scalar,
}

/// The stores of a run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct StoreLog {
    /// What there was room for, in no particular order where a loop is parallel.
    pub records: Vec<LogRecord>,
    /// How many more stores there were.
    pub missed: u64,
}

/// How many stores of a run are logged, where nobody says otherwise: two megabytes.
pub const LOG_RECORDS: usize = 1 << 16;

/// How many words a log with room for so many records takes.
pub const fn log_words(records: usize) -> usize {
    HEADER_WORDS as usize + RECORD_WORDS as usize * records
}

/// What an empty log with room for so many records begins with.
pub const fn log_header(records: usize) -> [u64; HEADER_WORDS as usize] {
    [0, records as u64]
}

/// Makes a log empty, as it must be before a run. `words` are [`log_words`] of some number of records.
pub fn clear_log(words: &mut [u64]) {
    let room = words.len().saturating_sub(HEADER_WORDS as usize) / RECORD_WORDS as usize;
    if let Some(header) = words.first_chunk_mut() {
        *header = log_header(room);
    }
}

/// The records of a log after a run.
fn decode_log(words: &[u64], sites: &[StoreSite]) -> Vec<LogRecord> {
    let &[count, capacity, ref rest @ ..] = words else {
        return Vec::new();
    };
    let written = usize::try_from(count.min(capacity)).unwrap_or(usize::MAX);
    let decode = |record: &[u64]| {
        let &[site, index, old, new] = record else {
            return None;
        };
        let site = usize::try_from(site).ok()?;
        let dtype = sites.get(site)?.dtype;
        Some(LogRecord {
            site,
            index: index as i64,
            old: Scalar::from_bits(dtype, old),
            new: Scalar::from_bits(dtype, new),
        })
    };
    let records = rest.chunks_exact(RECORD_WORDS as usize).take(written);
    records.filter_map(decode).collect()
}

impl StoreLog {
    /// What a log says after a run.
    pub fn decode(words: &[u64], sites: &[StoreSite]) -> StoreLog {
        StoreLog {
            records: decode_log(words, sites),
            missed: match words {
                [count, capacity, ..] => count.saturating_sub(*capacity),
                _ => 0,
            },
        }
    }
}
