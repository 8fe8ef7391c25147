//! Parallel loops on threads of the system.

use loopwright_threads::{ForkJoin, Pinning};
use std::collections::HashSet;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex};

fn pool(threads: usize, pinning: Pinning) -> ForkJoin {
    let threads = NonZero::new(threads).expect("not zero");
    ForkJoin::new(threads, pinning).expect("threads can be had")
}

#[test]
fn every_iteration_runs_once() {
    for pinning in [Pinning::Free, Pinning::Cores] {
        for threads in [1, 2, 3, 8] {
            let pool = pool(threads, pinning);
            assert_eq!(pool.threads().get(), threads);
            for count in [0, 1, 2, 7, 8, 31, 32, 33, 1000] {
                let seen: Vec<AtomicUsize> = (0..count).map(|_| AtomicUsize::new(0)).collect();
                pool.run(count, &|range| {
                    assert!(!range.is_empty(), "no piece is empty");
                    for iteration in range {
                        seen[iteration].fetch_add(1, Ordering::Relaxed);
                    }
                });
                assert!(
                    seen.iter().all(|times| times.load(Ordering::Relaxed) == 1),
                    "{count} iterations on {threads} threads, {pinning:?}: {seen:?}"
                );
            }
        }
    }
}

#[test]
fn the_largest_count_does_not_overflow() {
    let covered = AtomicUsize::new(0);
    pool(3, Pinning::Free).run(usize::MAX, &|range| {
        covered.fetch_add(range.len(), Ordering::Relaxed);
    });
    assert_eq!(covered.load(Ordering::Relaxed), usize::MAX);
}

#[test]
fn a_thread_begins_at_home_in_every_loop() {
    let pool = pool(4, Pinning::Free);
    let met = Barrier::new(4);
    let threads_of_a_loop = || {
        let threads = Mutex::new([None; 4]);
        // Nobody can go on to another one's home before all have begun.
        pool.run(4, &|range| {
            met.wait();
            threads.lock().expect("no panic")[range.start] = Some(std::thread::current().id());
        });
        threads.into_inner().expect("no panic")
    };
    let first = threads_of_a_loop();
    assert_eq!(first[0], Some(std::thread::current().id()), "the caller's");
    for _ in 0..20 {
        assert_eq!(threads_of_a_loop(), first);
    }
}

#[test]
fn all_threads_take_part() {
    let pool = pool(4, Pinning::Free);
    let met = Barrier::new(4);
    let threads = Mutex::new(HashSet::new());
    // Ends only if four threads are in the loop at once.
    pool.run(4, &|_| {
        met.wait();
        let mut threads = threads.lock().expect("no panic");
        threads.insert(std::thread::current().id());
    });
    assert_eq!(threads.into_inner().expect("no panic").len(), 4);
}

#[test]
fn what_a_loop_writes_is_there_when_it_ends() {
    let pool = pool(3, Pinning::Free);
    let mut values = vec![0u64; 300];
    for round in 1..200 {
        let pieces: Vec<Mutex<&mut [u64]>> = values.chunks_mut(50).map(Mutex::new).collect();
        pool.run(pieces.len(), &|range| {
            for piece in &pieces[range] {
                piece
                    .lock()
                    .expect("no panic")
                    .iter_mut()
                    .for_each(|value| *value += 1);
            }
        });
        drop(pieces);
        assert!(values.iter().all(|&value| value == round), "round {round}");
    }
}

#[test]
fn a_nested_loop_is_run_by_who_starts_it() {
    let pool = pool(3, Pinning::Free);
    let ran = AtomicUsize::new(0);
    pool.run(6, &|range| {
        let outer = std::thread::current().id();
        for _ in range {
            pool.run(100, &|inner| {
                assert_eq!(std::thread::current().id(), outer);
                assert_eq!(inner, 0..100);
                ran.fetch_add(inner.len(), Ordering::Relaxed);
            });
        }
    });
    assert_eq!(ran.load(Ordering::Relaxed), 600);
}

#[test]
fn loops_of_several_threads_at_once_all_end() {
    let pool = pool(3, Pinning::Free);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for count in 0..500 {
                    let ran = AtomicUsize::new(0);
                    pool.run(count, &|range| {
                        ran.fetch_add(range.len(), Ordering::Relaxed);
                    });
                    assert_eq!(ran.load(Ordering::Relaxed), count);
                }
            });
        }
    });
}

#[test]
fn a_panic_reaches_the_caller_after_all_pieces_ended() {
    let pool = pool(3, Pinning::Free);
    for bad in [0, 5, 11] {
        let ran = AtomicUsize::new(0);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            pool.run(12, &|range| {
                ran.fetch_add(range.len(), Ordering::Relaxed);
                assert!(!range.contains(&bad), "iteration {bad}");
            });
        }));
        let payload = outcome.expect_err("an iteration panics");
        let message = payload.downcast_ref::<String>().expect("a message");
        assert_eq!(*message, format!("iteration {bad}"));
        assert_eq!(ran.load(Ordering::Relaxed), 12, "the others were run");
    }
    let ran = AtomicUsize::new(0);
    pool.run(12, &|range| {
        ran.fetch_add(range.len(), Ordering::Relaxed);
    });
    assert_eq!(
        ran.load(Ordering::Relaxed),
        12,
        "the pool is as good as new"
    );
}

#[test]
fn a_pool_that_did_nothing_ends() {
    drop(pool(5, Pinning::Cores));
}

#[test]
fn the_process_has_one_pool() {
    let first = ForkJoin::global().expect("the environment of tests is right");
    let second = ForkJoin::global().expect("the environment of tests is right");
    assert!(std::ptr::eq(first, second));
}
