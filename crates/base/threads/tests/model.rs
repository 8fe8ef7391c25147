//! The crate's own files once more, on the primitives of shuttle, which runs a program under thousands
//! of schedules and finds those in which all threads sleep.
//!
//! Shuttle's memory is sequentially consistent; orders of memory are `weak_memory.rs`'s part.

#![allow(dead_code, reason = "the model uses a part of the crate")]

#[path = "../src/affinity.rs"]
mod affinity;
#[path = "../src/error.rs"]
mod error;
#[path = "../src/event.rs"]
mod event;
#[path = "../src/fork_join.rs"]
mod fork_join;
#[path = "../src/lines.rs"]
mod lines;
#[path = "../src/park.rs"]
mod park;
#[path = "../src/queue.rs"]
mod queue;
#[path = "../src/task_queue.rs"]
mod task_queue;

/// Interrupts are not part of the models.
mod interrupt {
    #[derive(Debug, thiserror::Error)]
    #[error("interrupted")]
    pub(crate) struct Interrupted;
}

/// What `src/sync.rs` is for threads of the system.
mod sync {
    pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
    pub(crate) use shuttle::sync::{Arc, Condvar, Mutex, MutexGuard};
    pub(crate) use shuttle::thread;

    /// Nothing forks in a model.
    pub(crate) fn generation() -> u64 {
        0
    }

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum Sleeper {
        Consumer,
        Producer,
        EventWaiter,
        LoopWorker,
        LoopCaller,
        Lock,
    }

    /// Nobody is interrupted in a model.
    pub(crate) fn is_told_to_end() -> bool {
        false
    }

    pub(crate) fn park() {
        thread::park();
    }

    pub(crate) fn wait_a_while<'a>(
        condition: &Condvar,
        gate: MutexGuard<'a, ()>,
    ) -> MutexGuard<'a, ()> {
        match condition.wait(gate) {
            Ok(gate) => gate,
            Err(poisoned) => poisoned.into_inner(),
        }
    }

    /// Every look is a step; sleeping at once is where the protocol is.
    pub(crate) fn looks(
        _sleeper: Sleeper,
        _pauses: impl Fn() -> u32,
        _ready: impl Fn() -> bool,
    ) -> bool {
        false
    }

    pub(crate) fn prepare_fences() {}

    /// Shuttle's memory is sequentially consistent.
    pub(crate) fn sleeper_fence() {}

    pub(crate) fn waker_fence() {}

    pub(crate) fn meeting_fence() {}

    thread_local! {
        /// The mutation: whose wake-ups are lost. Shuttle runs all its threads on the one that called it.
        pub(crate) static LOST: std::cell::Cell<Option<Sleeper>> = const { std::cell::Cell::new(None) };
    }

    pub(crate) fn unpark(thread: &thread::Thread, sleeper: Sleeper) {
        if LOST.get() != Some(sleeper) {
            thread.unpark();
        }
    }

    pub(crate) fn notify_all(condition: &Condvar, sleeper: Sleeper) {
        if LOST.get() != Some(sleeper) {
            condition.notify_all();
        }
    }

    pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        pub(crate) fn new(value: T) -> UnsafeCell<T> {
            UnsafeCell(std::cell::UnsafeCell::new(value))
        }

        pub(crate) fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
            read(self.0.get())
        }

        pub(crate) fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
            write(self.0.get())
        }
    }
}

use error::ThreadsError;
use fork_join::{ForkJoin, Pinning};
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, Runner};
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use sync::{LOST, Sleeper, thread};
use task_queue::{Job, TaskQueue};

const SCHEDULES: usize = 10_000;
const SEED: u64 = 1;

fn size(size: usize) -> NonZero<usize> {
    NonZero::new(size).expect("not zero")
}

/// Runs a scenario under random schedules, and under such as put few preemptions where they hurt.
fn check(scenario: fn()) {
    let random = RandomScheduler::new_from_seed(SEED, SCHEDULES);
    Runner::new(random, Config::default()).run(scenario);
    for depth in [2, 3] {
        let pct = PctScheduler::new_from_seed(SEED, depth, SCHEDULES / 2);
        Runner::new(pct, Config::default()).run(scenario);
    }
}

/// Says how a scenario fails when one kind of wake-up is lost.
fn check_without(lost: Sleeper, scenario: fn()) -> String {
    // Each in a thread of its own: `LOST` is the thread's.
    let outcome = std::thread::spawn(move || {
        LOST.set(Some(lost));
        check(scenario);
    });
    match outcome.join() {
        Ok(()) => "no schedule failed".to_owned(),
        Err(payload) => match payload.downcast::<String>() {
            Ok(message) => *message,
            Err(_) => "a panic without a message".to_owned(),
        },
    }
}

/// More items than slots, so that both sides sleep.
fn items_arrive_in_order() {
    let (mut producer, mut consumer) = queue::bounded(size(2));
    let consuming = thread::spawn(move || {
        let mut items = Vec::new();
        while let Some(item) = consumer.pop() {
            items.push(item);
        }
        items
    });
    for item in 0..5 {
        producer.push(item).expect("the consumer is there");
    }
    drop(producer);
    assert_eq!(consuming.join().expect("no panic"), [0, 1, 2, 3, 4]);
}

/// A consumer that goes away sets a waiting producer free.
fn a_lost_consumer_is_noticed() {
    let (mut producer, mut consumer) = queue::bounded(size(1));
    let consuming = thread::spawn(move || consumer.pop());
    let refused = (0..4).find_map(|item| producer.push(item).err());
    assert!(refused.is_some(), "one slot, one pop, four pushes");
    assert_eq!(consuming.join().expect("no panic"), Some(0));
}

/// Two queues, the second of which waits for the first; others wait for both.
fn events_order_queues() {
    let ran = Arc::new(AtomicUsize::new(0));
    let (first_ran, second_ran) = (Arc::clone(&ran), Arc::clone(&ran));
    let mut first = TaskQueue::new("first", size(1)).expect("a thread");
    let mut second = TaskQueue::new("second", size(1)).expect("a thread");
    for _ in 0..2 {
        let ran = Arc::clone(&first_ran);
        let count = move || {
            thread::yield_now();
            ran.fetch_add(1, Ordering::Relaxed);
            Ok(())
        };
        first.push(Job::new("count", count)).expect("nothing fails");
    }
    let counted = first.record();
    let before = counted.clone();
    let look = move || {
        before.wait()?;
        assert_eq!(second_ran.fetch_add(1, Ordering::Relaxed), 2);
        Ok(())
    };
    second.push(Job::new("look", look)).expect("nothing fails");
    let looked = second.record();
    let waiting = thread::spawn(move || looked.wait().is_ok() && looked.is_done());
    counted.wait().expect("nothing fails");
    assert!(counted.is_done());
    assert!(waiting.join().expect("no panic"));
    assert_eq!(ran.load(Ordering::Relaxed), 3);
}

/// A failure in the middle: what was before is right, what is behind is not run, waiters wake.
fn failure_reaches_every_waiter() {
    let ran = Arc::new(AtomicUsize::new(0));
    let mut queue = TaskQueue::new("q", size(2)).expect("a thread");
    let count = |ran: &Arc<AtomicUsize>| {
        let ran = Arc::clone(ran);
        Job::new("count", move || {
            ran.fetch_add(1, Ordering::Relaxed);
            Ok(())
        })
    };
    queue.push(count(&ran)).expect("nothing failed yet");
    let before = queue.record();
    let fail = Job::new("fail", || Err("on purpose".into()));
    queue.push(fail).expect("nothing failed yet");
    let at = queue.record();
    let waiting = thread::spawn(move || at.wait());
    let pushed = (0..2).all(|_| queue.push(count(&ran)).is_ok());
    let behind = queue.record();
    let says = |error: ThreadsError| error.to_string();
    let expected = "queue `q`: task `fail` failed: on purpose";
    let woken = waiting.join().expect("no panic");
    assert_eq!(woken.map_err(says), Err(expected.to_owned()));
    assert_eq!(behind.wait().map_err(says), Err(expected.to_owned()));
    assert!(before.wait().is_ok());
    assert!(queue.is_idle());
    assert!(queue.push(count(&ran)).is_err(), "{pushed}");
    drop(queue);
    assert_eq!(ran.load(Ordering::Relaxed), 1);
}

/// Loops from two threads at once, one after the other, and the end of the pool.
fn loops_run_every_iteration() {
    let pool = shuttle::sync::Arc::new(ForkJoin::new(size(3), Pinning::Free).expect("threads"));
    let other = shuttle::sync::Arc::clone(&pool);
    let run = |pool: &ForkJoin| {
        for count in [2, 3] {
            let ran = AtomicUsize::new(0);
            pool.run(count, &|range| {
                thread::yield_now();
                ran.fetch_add(range.len(), Ordering::Relaxed);
            });
            assert_eq!(ran.load(Ordering::Relaxed), count);
        }
    };
    let running = thread::spawn(move || run(&other));
    run(&pool);
    running.join().expect("no panic");
}

/// A loop that does not end unless another thread takes part: that workers are woken is seen only here,
/// since otherwise the caller would do all the work.
fn workers_take_part() {
    let pool = ForkJoin::new(size(2), Pinning::Free).expect("a thread");
    let met = shuttle::sync::Barrier::new(2);
    pool.run(2, &|_| {
        met.wait();
    });
}

#[test]
fn the_queue_holds_under_all_tried_schedules() {
    check(items_arrive_in_order);
    check(a_lost_consumer_is_noticed);
}

#[test]
fn events_hold_under_all_tried_schedules() {
    check(events_order_queues);
}

#[test]
fn poisoning_holds_under_all_tried_schedules() {
    check(failure_reaches_every_waiter);
}

#[test]
fn loops_hold_under_all_tried_schedules() {
    check(loops_run_every_iteration);
    check(workers_take_part);
}

#[test]
fn a_removed_wake_up_is_caught() {
    let mutations: [(Sleeper, fn()); 7] = [
        (Sleeper::Consumer, items_arrive_in_order),
        (Sleeper::Producer, items_arrive_in_order),
        (Sleeper::Producer, a_lost_consumer_is_noticed),
        (Sleeper::EventWaiter, events_order_queues),
        (Sleeper::EventWaiter, failure_reaches_every_waiter),
        (Sleeper::LoopWorker, workers_take_part),
        (Sleeper::LoopCaller, loops_run_every_iteration),
    ];
    for (lost, scenario) in mutations {
        let said = check_without(lost, scenario);
        assert!(
            said.contains("deadlock"),
            "without waking {lost:?} a deadlock was expected, and it is: {said}"
        );
    }
}
