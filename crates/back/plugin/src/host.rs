//! What the host does for plug-ins, and how it listens to them.

use crate::abi::{HostTable, LW_ABI_VERSION, Task, Writer};
use loopwright_native::run_parallel;
use loopwright_threads::ForkJoin;
use std::ffi::{c_char, c_void};

struct Services(HostTable);

// SAFETY: the table is never written, and its context is null.
unsafe impl Sync for Services {}

static HOST: Services = Services(HostTable {
    abi_version: LW_ABI_VERSION,
    struct_size: size_of::<HostTable>() as u32,
    context: std::ptr::null_mut(),
    parallel_for: Some(parallel_for),
});

/// The table that plug-ins are given.
pub(crate) fn table() -> &'static HostTable {
    &HOST.0
}

/// Threads of the host's parallel loops.
pub(crate) fn threads() -> u32 {
    ForkJoin::global().map_or(1, |pool| {
        u32::try_from(pool.threads().get()).unwrap_or(u32::MAX)
    })
}

/// Runs a parallel loop on the threads of the process; on this one where there are no others.
unsafe extern "C" fn parallel_for(
    _context: *mut c_void,
    count: i64,
    task: Task,
    environment: *mut c_void,
) {
    let Some(task) = task else {
        return;
    };
    // SAFETY: whoever asks for a parallel loop states that its body may be called from several threads.
    unsafe { run_parallel(ForkJoin::global().ok(), count, task, environment) };
}

/// What a plug-in writes.
pub(crate) struct Heard {
    bytes: Vec<u8>,
    /// More is not kept.
    most: usize,
    cut: bool,
}

impl Heard {
    /// For a reason that people read.
    pub(crate) fn reason() -> Heard {
        Heard::new(64 << 10)
    }

    /// For code.
    pub(crate) fn code() -> Heard {
        Heard::new(256 << 20)
    }

    fn new(most: usize) -> Heard {
        Heard {
            bytes: Vec::new(),
            most,
            cut: false,
        }
    }

    /// What a plug-in writes to; good for as long as this stays where it is.
    pub(crate) fn writer(&mut self) -> Writer {
        Writer {
            write: Some(hear),
            context: std::ptr::from_mut(self).cast(),
        }
    }

    /// What was written, without blanks around it; `None` if that is nothing. What is not UTF-8 is said to
    /// be not.
    pub(crate) fn text(mut self) -> Option<String> {
        if self.cut {
            self.bytes.extend_from_slice(b" ...");
        }
        let text = match String::from_utf8(self.bytes) {
            Ok(text) => text.trim().to_owned(),
            // Cutting may have left half a letter.
            Err(error) if self.cut => String::from_utf8_lossy(error.as_bytes()).into_owned(),
            Err(error) => format!(
                "{} (it wrote text that is not UTF-8)",
                String::from_utf8_lossy(error.as_bytes()).trim()
            ),
        };
        (!text.is_empty()).then_some(text)
    }
}

unsafe extern "C" fn hear(context: *mut c_void, text: *const c_char, length: usize) {
    if context.is_null() || text.is_null() || length == 0 {
        return;
    }
    // SAFETY: the context is that of `Heard::writer`, whose owner waits for the plug-in to return.
    let heard = unsafe { &mut *context.cast::<Heard>() };
    let room = heard.most.saturating_sub(heard.bytes.len());
    let kept = length.min(room);
    heard.cut |= kept < length;
    // SAFETY: the plug-in says that so many bytes are there, and no more than those are read.
    let bytes = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), kept) };
    heard.bytes.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(most: usize, pieces: &[&[u8]]) -> Option<String> {
        let mut heard = Heard::new(most);
        let writer = heard.writer();
        let write = writer.write.expect("writers write");
        for piece in pieces {
            // SAFETY: the context is the writer's own, and the bytes are there.
            unsafe { write(writer.context, piece.as_ptr().cast(), piece.len()) };
        }
        heard.text()
    }

    #[test]
    fn what_is_written_is_heard() {
        assert_eq!(heard(99, &[b"one ", b"two\n"]).as_deref(), Some("one two"));
        assert_eq!(heard(99, &[]), None);
        assert_eq!(heard(99, &[b" \n"]), None);
        assert_eq!(heard(3, &[b"one", b" two"]).as_deref(), Some("one ..."));
        let garbage = heard(99, &[b"a\xff"]).expect("something was written");
        assert_eq!(garbage, "a\u{fffd} (it wrote text that is not UTF-8)");
    }

    #[test]
    fn every_iteration_runs_once() {
        use std::sync::atomic::{AtomicI64, Ordering};
        unsafe extern "C" fn sum(environment: *mut c_void, begin: i64, stop: i64) {
            // SAFETY: the test passes a counter that outlives the loop.
            let total = unsafe { &*environment.cast::<AtomicI64>() };
            total.fetch_add((begin..stop).map(|i| 1 + i).sum(), Ordering::Relaxed);
        }
        let run = table().parallel_for.expect("the host runs parallel loops");
        for count in [-1, 0, 1, 2, 7, 1000] {
            let mut total = AtomicI64::new(0);
            let environment = std::ptr::from_mut(&mut total).cast();
            // SAFETY: `sum` takes the counter.
            unsafe { run(table().context, count, Some(sum), environment) };
            let expected: i64 = (1..=count).sum();
            assert_eq!(total.into_inner(), expected, "{count} iterations");
        }
    }
}
