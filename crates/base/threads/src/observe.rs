//! Who ran which part of a parallel loop, for traces.
//!
//! An observer belongs to the thread that starts loops, so that two runtimes in a process do not see each other's.
//! Without one, a loop pays for one look at a thread-local variable.

use crate::fork_join::ForkJoin;
use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

thread_local! {
    static OBSERVER: Cell<Option<Arc<dyn LoopObserver>>> = const { Cell::new(None) };
}

/// The thread that ran a part of a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoopThread<'a> {
    /// The one that started the loop.
    Caller,
    /// A worker of the pool, by its name: `loop-1` is the first.
    Worker(&'a str),
}

/// Is told of every part of the parallel loops that a thread starts.
pub trait LoopObserver: Send + Sync {
    /// A thread ran these iterations, from this moment until now. Called by that thread.
    fn ran(&self, thread: LoopThread<'_>, iterations: Range<usize>, from: Instant);
}

/// Puts back what was observed before, also where a loop panics.
struct Restore(Option<Arc<dyn LoopObserver>>);

impl Drop for Restore {
    fn drop(&mut self) {
        OBSERVER.set(self.0.take());
    }
}

/// Does something with an observer of the parallel loops that this thread starts meanwhile.
pub fn observing<R>(observer: Arc<dyn LoopObserver>, run: impl FnOnce() -> R) -> R {
    let _restore = Restore(OBSERVER.replace(Some(observer)));
    run()
}

impl ForkJoin {
    /// As [`run`](ForkJoin::run), telling this thread's observer, where there is one, who ran what. Loops inside of
    /// the body are part of it.
    ///
    /// # Panics
    /// As [`run`](ForkJoin::run).
    #[inline]
    pub fn run_observed<Body>(&self, count: usize, body: &Body)
    where
        Body: Fn(Range<usize>) + Sync + ?Sized,
    {
        match OBSERVER.take() {
            None => self.run(count, body),
            Some(observer) => self.run_with(observer, count, body),
        }
    }

    #[cold]
    fn run_with<Body>(&self, observer: Arc<dyn LoopObserver>, count: usize, body: &Body)
    where
        Body: Fn(Range<usize>) + Sync + ?Sized,
    {
        let restore = Restore(Some(observer));
        let observer = restore.0.as_deref().expect("it was just put there");
        let caller = thread::current().id();
        self.run(count, &|iterations: Range<usize>| {
            let from = Instant::now();
            body(iterations.clone());
            let thread = thread::current();
            let ran_by = match thread.id() == caller {
                true => LoopThread::Caller,
                false => LoopThread::Worker(thread.name().unwrap_or("loop")),
            };
            observer.ran(ran_by, iterations, from);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fork_join::Pinning;
    use std::num::NonZero;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Barrier, Mutex};

    /// The parts of loops by the name of their thread; that of the caller is empty.
    #[derive(Default)]
    struct Parts(Mutex<Vec<(String, Range<usize>)>>);

    impl LoopObserver for Parts {
        fn ran(&self, thread: LoopThread<'_>, iterations: Range<usize>, from: Instant) {
            assert!(from <= Instant::now());
            let name = match thread {
                LoopThread::Caller => String::new(),
                LoopThread::Worker(name) => name.to_owned(),
            };
            let mut parts = self.0.lock().expect("no test panics with it");
            parts.push((name, iterations));
        }
    }

    impl Parts {
        fn taken(&self) -> Vec<(String, Range<usize>)> {
            let mut parts = self.0.lock().expect("no test panics with it");
            let mut parts = std::mem::take(&mut *parts);
            parts.sort_by_key(|(_, iterations)| iterations.start);
            parts
        }
    }

    fn pool(threads: usize) -> ForkJoin {
        let threads = NonZero::new(threads).expect("not zero");
        ForkJoin::new(threads, Pinning::Free).expect("threads can be had")
    }

    #[test]
    fn every_iteration_is_told_once_with_the_thread_that_ran_it() {
        let (pool, parts) = (pool(3), Arc::new(Parts::default()));
        // Nobody goes on before all three are there, so that each has a part.
        let together = Barrier::new(3);
        let names = Mutex::new(Vec::new());
        observing(parts.clone(), || {
            pool.run_observed(3, &|range| {
                together.wait();
                let name = thread::current().name().unwrap_or_default().to_owned();
                names.lock().expect("nobody panics").push((name, range));
            });
        });
        let told = parts.taken();
        let mut names = names.into_inner().expect("nobody panics");
        names.sort_by_key(|(_, range)| range.start);
        assert_eq!(told.len(), 3, "{told:?}");
        for ((told, range), (name, same)) in told.iter().zip(&names) {
            assert_eq!(range, same);
            assert!(told.is_empty() || told == name, "{told} and {name}");
        }
        let callers = told.iter().filter(|(name, _)| name.is_empty());
        assert_eq!(callers.count(), 1, "{told:?}");
        for worker in ["loop-1", "loop-2"] {
            assert!(told.iter().any(|(name, _)| name == worker), "{told:?}");
        }
    }

    #[test]
    fn an_observer_sees_its_own_thread_and_time_alone() {
        let (pool, parts) = (pool(2), Arc::new(Parts::default()));
        let ran = AtomicUsize::new(0);
        let body = |range: Range<usize>| {
            ran.fetch_add(range.len(), Ordering::Relaxed);
        };
        pool.run_observed(10, &body);
        observing(parts.clone(), || {
            thread::scope(|scope| {
                scope.spawn(|| pool.run_observed(10, &body));
            });
        });
        pool.run_observed(10, &body);
        assert_eq!(ran.into_inner(), 30);
        assert_eq!(parts.taken(), []);
    }

    #[test]
    fn a_loop_inside_of_another_is_part_of_it() {
        let (pool, parts) = (pool(1), Arc::new(Parts::default()));
        observing(parts.clone(), || {
            pool.run_observed(2, &|_| pool.run_observed(5, &|_| {}));
            pool.run_observed(7, &|_| {});
        });
        let told = parts.taken();
        let whole: usize = told.iter().map(|(_, range)| range.len()).sum();
        assert_eq!(whole, 9, "{told:?}");
    }

    #[test]
    fn a_panic_leaves_the_observer_in_place() {
        let (pool, parts) = (pool(1), Arc::new(Parts::default()));
        observing(parts.clone(), || {
            let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                pool.run_observed(1, &|_| panic!("on purpose"));
            }));
            assert!(caught.is_err());
            pool.run_observed(1, &|_| {});
        });
        assert_eq!(parts.taken(), [(String::new(), 0..1)]);
    }
}
