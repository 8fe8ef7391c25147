//! What compiled kernels call back: the table of the C struct `lw_runtime`.

use std::ffi::c_void;
use std::num::NonZero;

/// A parallel loop's body over a range of its iterations.
type Task = unsafe extern "C" fn(environment: *mut c_void, begin: i64, stop: i64);

/// The C struct `lw_runtime`; [`loopwright_emit::ABI_VERSION`] changes with it.
#[repr(C)]
pub(crate) struct Runtime {
    context: *const c_void,
    parallel_for: unsafe extern "C" fn(*const c_void, i64, Task, *mut c_void),
    global_size: [i64; 3],
    local_size: [i64; 3],
}

impl Runtime {
    /// A table for one group of work-items and so many threads.
    pub(crate) fn new(threads: &NonZero<usize>, group: [u32; 3]) -> Runtime {
        let size = group.map(i64::from);
        Runtime {
            context: std::ptr::from_ref(threads).cast(),
            parallel_for,
            global_size: size,
            local_size: size,
        }
    }
}

/// An environment's address on its way to another thread.
#[derive(Clone, Copy)]
struct Environment(*mut c_void);

// SAFETY: the environment is only read by tasks, and the memory it points to is shared between the
// iterations of a parallel loop, which are independent: that is what the loop's kind states.
unsafe impl Send for Environment {}

impl Environment {
    /// The address; a method, so that closures capture the whole.
    fn address(self) -> *mut c_void {
        self.0
    }
}

/// Runs `count` iterations, spread over the threads in pieces of one size.
///
/// # Safety
/// `context` is a `NonZero<usize>`, the number of threads; `task` may be called with `environment` and
/// any part of `0..count` from several threads at once.
unsafe extern "C" fn parallel_for(
    context: *const c_void,
    count: i64,
    task: Task,
    environment: *mut c_void,
) {
    // SAFETY: `Runtime::new` made the context from a reference that outlives the call.
    let threads = unsafe { *context.cast::<NonZero<usize>>() };
    let pieces = i64::try_from(threads.get()).unwrap_or(i64::MAX).min(count);
    if pieces <= 1 {
        if count > 0 {
            // SAFETY: this is the whole range, as the caller allows.
            unsafe { task(environment, 0, count) };
        }
        return;
    }
    let environment = Environment(environment);
    // Not `count * piece / pieces`, which could overflow.
    let bound = |piece: i64| count / pieces * piece + (count % pieces).min(piece);
    std::thread::scope(|scope| {
        for piece in 1..pieces {
            let (begin, stop) = (bound(piece), bound(piece + 1));
            let run = move || {
                // SAFETY: the ranges are disjoint parts of `0..count`, and the scope ends before
                // the caller's environment does.
                unsafe { task(environment.address(), begin, stop) };
            };
            // Where no thread can be had, this one does the work.
            if std::thread::Builder::new()
                .spawn_scoped(scope, run)
                .is_err()
            {
                run();
            }
        }
        // SAFETY: as above.
        unsafe { task(environment.address(), 0, bound(1)) };
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    unsafe extern "C" fn record(environment: *mut c_void, begin: i64, stop: i64) {
        // SAFETY: the test passes a mutex that outlives the loop.
        let seen = unsafe { &*environment.cast::<Mutex<Vec<(i64, i64)>>>() };
        if let Ok(mut seen) = seen.lock() {
            seen.push((begin, stop));
        }
    }

    #[test]
    fn every_iteration_runs_once() {
        for threads in [1, 2, 3, 8] {
            for count in [-1, 0, 1, 2, 7, 8, 100] {
                let threads = NonZero::new(threads).expect("not zero");
                let seen = Mutex::new(Vec::new());
                let runtime = Runtime::new(&threads, [1; 3]);
                // SAFETY: the context is `threads`, and `record` takes the mutex.
                unsafe {
                    parallel_for(
                        runtime.context,
                        count,
                        record,
                        std::ptr::from_ref(&seen).cast_mut().cast(),
                    );
                }
                let mut seen = seen.into_inner().expect("no thread panicked");
                seen.sort_unstable();
                let mut next = 0;
                for (begin, stop) in seen {
                    assert_eq!(begin, next, "{count} iterations on {threads} threads");
                    assert!(stop > begin);
                    next = stop;
                }
                assert_eq!(next, count.max(0));
            }
        }
    }
}
