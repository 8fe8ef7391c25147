//! The queue, events and parallel loops once more, on the primitives of loom, which tries every schedule with
//! up to so many preemptions and, for each, every order that the memory model allows.

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
#[path = "../src/short_lock.rs"]
mod short_lock;

/// Interrupts are not part of the models.
mod interrupt {
    #[derive(Debug, thiserror::Error)]
    #[error("interrupted")]
    pub(crate) struct Interrupted;
}

/// What `src/sync.rs` is for threads of the system.
mod sync {
    pub(crate) use loom::cell::UnsafeCell;
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
    pub(crate) use loom::sync::{Arc, Condvar, Mutex, MutexGuard};
    pub(crate) use loom::thread;
    use std::cell::Cell;

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

    /// What is taken away.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(crate) enum Mutation {
        WakeUp(Sleeper),
        WakerFence,
        SleeperFence,
        MeetingFence,
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

    thread_local! {
        /// Loom runs all its threads on the one that called it.
        pub(crate) static LOST: Cell<Option<Mutation>> = const { Cell::new(None) };
    }

    pub(crate) fn unpark(thread: &thread::Thread, sleeper: Sleeper) {
        if LOST.get() != Some(Mutation::WakeUp(sleeper)) {
            thread.unpark();
        }
    }

    pub(crate) fn notify_all(condition: &Condvar, sleeper: Sleeper) {
        if LOST.get() != Some(Mutation::WakeUp(sleeper)) {
            condition.notify_all();
        }
    }

    pub(crate) fn prepare_fences() {}

    /// A full fence, also where the system's threads leave it to the sleeper.
    pub(crate) fn waker_fence() {
        if LOST.get() != Some(Mutation::WakerFence) {
            loom::sync::atomic::fence(Ordering::SeqCst);
        }
    }

    pub(crate) fn meeting_fence() {
        if LOST.get() != Some(Mutation::MeetingFence) {
            loom::sync::atomic::fence(Ordering::SeqCst);
        }
    }

    pub(crate) fn sleeper_fence() {
        if LOST.get() != Some(Mutation::SleeperFence) {
            loom::sync::atomic::fence(Ordering::SeqCst);
        }
    }
}

use event::{Event, Progress};
use fork_join::{ForkJoin, Pinning};
use std::mem::ManuallyDrop;
use std::num::NonZero;
use sync::{Arc, LOST, Mutation, Sleeper, thread};

/// Runs a scenario under every schedule with so many preemptions.
fn check(preemptions: usize, scenario: fn()) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(scenario);
}

/// One slot and two items: both sides sleep in some schedules.
fn items_arrive_in_order() {
    let (producer, consumer) = queue::bounded(NonZero::<usize>::MIN);
    // Where the model finds a deadlock it unwinds, and must not be called by destructors then.
    let mut producer = ManuallyDrop::new(producer);
    let mut consumer = ManuallyDrop::new(consumer);
    let consuming = thread::spawn(move || {
        assert_eq!(consumer.pop(), Some(1));
        assert_eq!(consumer.pop(), Some(2));
        assert_eq!(consumer.pop(), None);
        drop(ManuallyDrop::into_inner(consumer));
    });
    producer.push(1).expect("the consumer is there");
    producer.push(2).expect("the consumer is there");
    drop(ManuallyDrop::into_inner(producer));
    consuming.join().expect("no panic");
}

/// A worker that ends two tasks, and who waits for the first and for both.
fn waiters_see_what_tasks_wrote() {
    let progress = Arc::new(Progress::new("q".into()));
    let written = Arc::new(loom::cell::UnsafeCell::new(0));
    let (workers, writes) = (Arc::clone(&progress), Arc::clone(&written));
    let working = thread::spawn(move || {
        workers.end_one();
        writes.with_mut(|value| {
            // SAFETY: nobody reads before the second task ended; the model would find who does.
            unsafe { *value = 7 };
        });
        workers.end_one();
    });
    Event::new(Arc::clone(&progress), 1)
        .wait()
        .expect("no failure");
    Event::new(progress, 2).wait().expect("no failure");
    written.with(|value| {
        // SAFETY: the write was before the end of the task that was waited for.
        assert_eq!(unsafe { *value }, 7);
    });
    working.join().expect("no panic");
}

/// Two loops on two threads, the second of which reads what the first wrote.
fn loops_see_what_loops_wrote() {
    let pool = ForkJoin::new(NonZero::new(2).expect("not zero"), Pinning::Free);
    let pool = ManuallyDrop::new(pool.expect("a thread"));
    let values = [(); 2].map(|()| sync::UnsafeCell::new(0));
    let values = Shared(&values);
    for round in 0..2 {
        pool.run(2, &|range| {
            for index in range {
                // In the second round the other one's, which some thread wrote in the first.
                values.cell((index + round) % 2).with_mut(|value| {
                    // SAFETY: one iteration of a loop has one value; the model would find a race.
                    unsafe { *value += 1 };
                });
            }
        });
    }
    for value in values.0 {
        // SAFETY: the loops ended; the model would find a race.
        value.with(|value| assert_eq!(unsafe { *value }, 2));
    }
    drop(ManuallyDrop::into_inner(pool));
}

/// Cells that several threads use, under the eyes of the model.
struct Shared<'cells>(&'cells [sync::UnsafeCell<i32>; 2]);

// SAFETY: loom runs its threads one at a time on one thread of the system, and finds accesses that are
// not ordered.
unsafe impl Sync for Shared<'_> {}

impl Shared<'_> {
    /// A cell; a method, so that closures capture the whole.
    fn cell(&self, index: usize) -> &sync::UnsafeCell<i32> {
        &self.0[index]
    }
}

#[test]
fn the_queue_holds_in_every_order_of_memory() {
    check(5, items_arrive_in_order);
}

#[test]
fn events_hold_in_every_order_of_memory() {
    check(5, waiters_see_what_tasks_wrote);
}

#[test]
fn loops_hold_in_every_order_of_memory() {
    check(3, loops_see_what_loops_wrote);
}

#[test]
fn a_removed_wake_up_or_fence_is_caught() {
    let deadlock = "deadlock";
    let mutations: [(Mutation, fn(), &str); 8] = [
        (
            Mutation::WakeUp(Sleeper::Consumer),
            items_arrive_in_order,
            deadlock,
        ),
        (
            Mutation::WakeUp(Sleeper::Producer),
            items_arrive_in_order,
            deadlock,
        ),
        (Mutation::WakerFence, items_arrive_in_order, deadlock),
        (Mutation::SleeperFence, items_arrive_in_order, deadlock),
        (
            Mutation::WakeUp(Sleeper::EventWaiter),
            waiters_see_what_tasks_wrote,
            deadlock,
        ),
        (Mutation::WakerFence, waiters_see_what_tasks_wrote, deadlock),
        (
            Mutation::SleeperFence,
            waiters_see_what_tasks_wrote,
            deadlock,
        ),
        // A worker uses a loop that has ended.
        (
            Mutation::MeetingFence,
            loops_see_what_loops_wrote,
            "Causality violation",
        ),
    ];
    for (lost, scenario, expected) in mutations {
        let outcome = std::thread::spawn(move || {
            LOST.set(Some(lost));
            check(3, scenario);
        });
        let said = match outcome.join() {
            Ok(()) => "no schedule failed".to_owned(),
            Err(payload) => match payload.downcast::<String>() {
                Ok(message) => *message,
                Err(_) => "a panic without a message".to_owned(),
            },
        };
        assert!(
            said.contains(expected),
            "without {lost:?}, `{expected}` was expected, and it is: {said}"
        );
    }
}

/// Three threads that try to take turns with a value that only the lock protects. They try, and do not wait:
/// loom has no end to those who look again and again.
#[test]
fn a_short_lock_is_held_by_one_at_a_time() {
    type Lock = short_lock::ShortLock<loom::cell::UnsafeCell<i32>>;
    fn add(lock: &Lock) -> i32 {
        let Some(value) = lock.try_lock() else {
            return 0;
        };
        // SAFETY: the lock is held; the model would find who does not wait for it.
        value.with_mut(|value| unsafe { *value += 1 });
        1
    }
    check(3, || {
        let lock: Arc<Lock> = Arc::new(Lock::new(loom::cell::UnsafeCell::new(0)));
        let adding = [(); 2].map(|()| {
            let lock = Arc::clone(&lock);
            thread::spawn(move || add(&lock))
        });
        let mut added = add(&lock);
        for adding in adding {
            added += adding.join().expect("no panic");
        }
        assert!(added > 0, "one of them comes first");
    });
}
