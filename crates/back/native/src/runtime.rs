//! What compiled kernels call back: a table that C knows as the struct `lw_runtime`.

use loopwright_threads::{ForkJoin, interrupt};
use std::ffi::c_void;
use std::sync::atomic::Ordering;

/// A parallel loop's body over a range of its iterations.
pub type Task = unsafe extern "C" fn(environment: *mut c_void, begin: i64, stop: i64);

/// What an entry point is handed beside its arguments, laid out as the C struct of these fields. Code that is kept on disk
/// depends on the layout: whoever keeps some counts versions of it.
#[repr(C)]
pub struct Runtime {
    context: *const c_void,
    parallel_for: unsafe extern "C" fn(*const c_void, i64, Task, *mut c_void),
    global_size: [i64; 3],
    local_size: [i64; 3],
}

impl Runtime {
    /// A table for one group of work-items, with parallel loops on this pool.
    pub(crate) fn new(pool: Option<&'static ForkJoin>, group: [u32; 3]) -> Runtime {
        let size = group.map(i64::from);
        Runtime {
            context: pool.map_or(std::ptr::null(), |pool| std::ptr::from_ref(pool).cast()),
            parallel_for,
            global_size: size,
            local_size: size,
        }
    }
}

/// An environment's address, for several threads.
#[derive(Clone, Copy)]
struct Environment(*mut c_void);

// SAFETY: the environment is only read by tasks, and the memory it points to is shared between the
// iterations of a parallel loop, which are independent: that is what the loop's kind states.
unsafe impl Sync for Environment {}

impl Environment {
    /// The address; a method, so that closures capture the whole.
    fn address(self) -> *mut c_void {
        self.0
    }
}

/// Runs `count` iterations, spread over the threads of the pool.
///
/// # Safety
/// `context` is a `ForkJoin`, or null where all is to run on this thread; `task` may be called with
/// `environment` and any part of `0..count` from several threads at once.
unsafe extern "C" fn parallel_for(
    context: *const c_void,
    count: i64,
    task: Task,
    environment: *mut c_void,
) {
    // SAFETY: `Runtime::new` made the context from a reference to a pool that is never dropped.
    let pool = unsafe { context.cast::<ForkJoin>().as_ref() };
    // SAFETY: as the caller states.
    unsafe { run_parallel(pool, count, task, environment) };
}

/// Runs `count` iterations of a body that came as a C function, spread over the threads of a pool, or on
/// this thread where there is none.
///
/// # Safety
/// `task` may be called with `environment` and any part of `0..count` from several threads at once.
pub unsafe fn run_parallel(
    pool: Option<&ForkJoin>,
    count: i64,
    task: Task,
    environment: *mut c_void,
) {
    if count <= 0 {
        return;
    }
    let environment = Environment(environment);
    match (pool, usize::try_from(count)) {
        (Some(pool), Ok(iterations)) => {
            let joined = interrupt::current();
            pool.run_observed(iterations, &|range| {
                joined.run(|| {
                    // Those that are left need not be begun where the kernel is to be left.
                    if interrupt::attention().load(Ordering::Relaxed) != 0 && interrupt::poll() != 0
                    {
                        return;
                    }
                    // Bounds are at most `count`: nothing is lost.
                    let (begin, stop) = (range.start as i64, range.end as i64);
                    // SAFETY: the ranges are disjoint parts of `0..count`, and the loop ends before the
                    // caller's environment does.
                    unsafe { task(environment.address(), begin, stop) };
                });
            });
        }
        // SAFETY: this is the whole range, as the caller allows.
        _ => unsafe { task(environment.address(), 0, count) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loopwright_threads::Pinning;
    use std::num::NonZero;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicI64, Ordering};

    /// A pool that is never dropped, as that of the process.
    fn pool(threads: usize) -> &'static ForkJoin {
        let threads = NonZero::new(threads).expect("not zero");
        let pool = ForkJoin::new(threads, Pinning::Free).expect("threads can be had");
        Box::leak(Box::new(pool))
    }

    unsafe extern "C" fn record(environment: *mut c_void, begin: i64, stop: i64) {
        // SAFETY: the test passes a mutex that outlives the loop.
        let seen = unsafe { &*environment.cast::<Mutex<Vec<(i64, i64)>>>() };
        if let Ok(mut seen) = seen.lock() {
            seen.push((begin, stop));
        }
    }

    #[test]
    fn every_iteration_runs_once() {
        for threads in [0, 1, 2, 3, 8] {
            let runtime = Runtime::new((threads > 0).then(|| pool(threads)), [1; 3]);
            for count in [-1, 0, 1, 2, 7, 8, 100] {
                let seen = Mutex::new(Vec::new());
                // SAFETY: the context is a pool or null, and `record` takes the mutex.
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

    #[test]
    fn many_small_loops_of_several_threads_at_once_all_end() {
        unsafe extern "C" fn sum(environment: *mut c_void, begin: i64, stop: i64) {
            // SAFETY: the test passes a counter that outlives the loop.
            let total = unsafe { &*environment.cast::<AtomicI64>() };
            total.fetch_add((begin..stop).sum(), Ordering::Relaxed);
        }
        let pool = pool(4);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(move || {
                    let runtime = Runtime::new(Some(pool), [1; 3]);
                    for count in (0..40).cycle().take(2000) {
                        let total = AtomicI64::new(0);
                        // SAFETY: the context is a pool, and `sum` takes the counter.
                        unsafe {
                            parallel_for(
                                runtime.context,
                                count,
                                sum,
                                std::ptr::from_ref(&total).cast_mut().cast(),
                            );
                        }
                        let expected: i64 = (0..count).sum();
                        assert_eq!(total.into_inner(), expected, "{count} iterations");
                    }
                });
            }
        });
    }
}
