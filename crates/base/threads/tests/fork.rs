//! Forks while other threads compute: children compute too, or are told why not, and nobody hangs.
#![cfg(unix)]

use loopwright_threads::{
    ForkJoin, Job, Pinning, ProcessMutex, TaskQueue, ThreadsError, generation,
};
use std::num::NonZero;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Runs `work` in a child; whether it gave true. A child that hangs is ended, which fails the test.
fn in_child(work: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child runs `work` and ends without returning.
    let child = unsafe { libc::fork() };
    assert_ne!(child, -1, "a fork");
    if child == 0 {
        let well = work();
        // SAFETY: it ends the child.
        unsafe { libc::_exit(if well { 0 } else { 1 }) }
    }
    let from = Instant::now();
    let mut status = 0;
    loop {
        // SAFETY: the child is this process's.
        let ended = unsafe { libc::waitpid(child, &mut status, libc::WNOHANG) };
        if ended == child {
            return libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0;
        }
        if from.elapsed() > Duration::from_secs(60) {
            // SAFETY: as above.
            unsafe { libc::kill(child, libc::SIGKILL) };
            panic!("a child hangs");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn sum(pool: &ForkJoin) -> usize {
    let sum = AtomicUsize::new(0);
    pool.run(1000, &|range| {
        sum.fetch_add(range.sum(), Ordering::Relaxed);
    });
    sum.into_inner()
}

#[test]
fn children_forked_under_load_run_loops_and_refuse_queues_of_their_parent() {
    let threads = NonZero::new(4).expect("not zero");
    let pool = ForkJoin::new(threads, Pinning::Free).expect("threads");
    let capacity = NonZero::new(16).expect("not zero");
    let mut queue: TaskQueue<Job> = TaskQueue::new("parent", capacity).expect("a thread");
    queue
        .push(Job::new("first", || Ok(())))
        .expect("it takes work");
    let here = generation();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                assert_eq!(sum(&pool), 499_500);
            }
        });
        for _ in 0..10 {
            let well = in_child(|| {
                let refused = queue.push(Job::new("late", || Ok(())));
                let global = ForkJoin::global().map(sum);
                generation() != here
                    && sum(&pool) == 499_500
                    && matches!(refused, Err(ThreadsError::Forked))
                    && matches!(queue.wait(), Err(ThreadsError::Forked))
                    && matches!(global, Ok(499_500))
            });
            assert!(
                well,
                "a child computes what its parent does, and says what it cannot do"
            );
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(generation(), here);
    queue
        .push(Job::new("last", || Ok(())))
        .expect("the parent goes on");
    queue.wait().expect("its worker is there");
}

#[test]
fn children_drop_pools_and_queues_of_their_parent_without_waiting() {
    let threads = NonZero::new(3).expect("not zero");
    let mut pool = Some(ForkJoin::new(threads, Pinning::Free).expect("threads"));
    let capacity = NonZero::new(4).expect("not zero");
    let mut queue: Option<TaskQueue<Job>> = TaskQueue::new("parent", capacity).ok();
    assert!(in_child(|| {
        drop(pool.take());
        drop(queue.take());
        true
    }));
    assert_eq!(pool.as_ref().map(sum), Some(499_500));
}

#[test]
fn a_child_has_a_pool_of_its_own_with_threads() {
    assert_eq!(ForkJoin::global().map(sum).ok(), Some(499_500));
    assert!(in_child(|| {
        let pool = ForkJoin::global();
        // A grandchild, too.
        pool.is_ok_and(|pool| sum(pool) == 499_500)
            && in_child(|| ForkJoin::global().is_ok_and(|pool| sum(pool) == 499_500))
    }));
}

#[test]
fn a_lock_that_is_first_taken_while_another_thread_forks_is_free_in_the_child() {
    static HELD: ProcessMutex<()> = ProcessMutex::new(());
    static NEW: ProcessMutex<u32> = ProcessMutex::new(1);
    let (taken, wait) = (Barrier::new(3), Duration::from_millis(100));
    let well = std::thread::scope(|scope| {
        // The fork waits for this one's lock, in the middle of taking all that are known.
        scope.spawn(|| {
            let held = HELD.lock();
            taken.wait();
            std::thread::sleep(3 * wait);
            drop(held);
        });
        // Takes a lock for the first time meanwhile.
        scope.spawn(|| {
            taken.wait();
            std::thread::sleep(wait);
            *NEW.lock() += 1;
        });
        taken.wait();
        in_child(|| {
            drop(HELD.lock());
            *NEW.lock() == 1
        })
    });
    assert!(well);
    assert_eq!(*NEW.lock(), 2);
}
