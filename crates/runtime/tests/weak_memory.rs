//! The queue and its park protocol once more, on the primitives of loom, which tries every schedule with
//! up to so many preemptions and, for each, every order that the memory model allows.

#![allow(dead_code, reason = "the model uses a part of the crate")]

#[path = "../src/park.rs"]
mod park;
#[path = "../src/queue.rs"]
mod queue;

/// What `src/sync.rs` is for threads of the system.
mod sync {
    pub(crate) use loom::cell::UnsafeCell;
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    pub(crate) use loom::sync::{Arc, Mutex, MutexGuard};
    pub(crate) use loom::thread;
    use std::cell::Cell;

    /// Every look is a step; sleeping at once is where the protocol is.
    pub(crate) const LOOKS: u32 = 0;

    pub(crate) fn pause(_look: u32) {}

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum Sleeper {
        Consumer,
        Producer,
    }

    /// What is taken away.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(crate) enum Mutation {
        WakeUp(Sleeper),
        Fences,
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

    pub(crate) fn fence(ordering: Ordering) {
        if LOST.get() != Some(Mutation::Fences) {
            loom::sync::atomic::fence(ordering);
        }
    }
}

use std::mem::ManuallyDrop;
use std::num::NonZero;
use sync::{LOST, Mutation, Sleeper, thread};

/// One slot and two items: both sides sleep in some schedules.
fn check() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
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
    });
}

#[test]
fn the_queue_holds_in_every_order_of_memory() {
    check();
}

#[test]
fn a_removed_wake_up_or_fence_is_caught() {
    for lost in [
        Mutation::WakeUp(Sleeper::Consumer),
        Mutation::WakeUp(Sleeper::Producer),
        Mutation::Fences,
    ] {
        let outcome = std::thread::spawn(move || {
            LOST.set(Some(lost));
            check();
        });
        let payload = outcome.join().expect_err("a deadlock");
        let said = payload
            .downcast_ref::<String>()
            .map_or("a panic without a message", String::as_str);
        assert!(
            said.contains("deadlock"),
            "without {lost:?} a deadlock was expected, and it is: {said}"
        );
    }
}
