//! What a search leaves behind: a log to go on from, a schedule file, an entry of the cache.

mod log;
mod schedules;
mod write;

pub use log::{Log, Record, Tried};
pub use schedules::{ScheduleKey, ScheduleStore};
pub(crate) use write::write_atomically;
