//! Long work ends when whoever started it says so, and nothing else does.

use loopwright_threads::interrupt::{
    GRACE, Interrupted, Interrupts, catching, check, current, is_asking, poll, unwind_if_asked,
};
use loopwright_threads::{InlineQueue, Job, TaskQueue, ThreadsError};
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Looks until it is told to end.
fn until_interrupted() {
    while check().is_ok() {
        std::hint::spin_loop();
    }
}

#[test]
fn work_goes_on_until_the_answer_is_yes() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let mut third = Interrupts::new(move || count.fetch_add(1, Ordering::Relaxed) == 2);
    third.scope(until_interrupted);
    assert!(third.was_interrupted());
    assert_eq!(asked.load(Ordering::Relaxed), 3, "no more once it was yes");
    third.scope(|| assert!(check().is_ok(), "a new scope begins anew"));
    assert!(!third.was_interrupted());
}

#[test]
fn threads_outside_of_the_scope_are_not_ended() {
    let mut always = Interrupts::new(|| true);
    always.scope(|| {
        until_interrupted();
        let other = std::thread::spawn(|| {
            let told = (check(), poll());
            unwind_if_asked();
            told
        });
        assert_eq!(other.join().expect("it does not unwind"), (Ok(()), 0));
    });
    assert!(check().is_ok());
}

#[test]
fn a_pass_unwinds_to_who_catches_and_only_there() {
    let mut always = Interrupts::new(|| true);
    always.scope(|| {
        until_interrupted();
        unwind_if_asked();
        let dropped = Arc::new(());
        let held = Arc::clone(&dropped);
        let caught = catching(move || {
            unwind_if_asked();
            drop(held);
            "done"
        });
        assert_eq!(caught, Err(Interrupted));
        assert_eq!(Arc::strong_count(&dropped), 1, "what it worked on is gone");
    });
    assert_eq!(catching(|| 3), Ok(3));
}

#[test]
#[should_panic(expected = "a mistake")]
fn a_panic_is_not_taken_for_an_interrupt() {
    let _ = Interrupts::new(|| false).scope(|| catching(|| panic!("a mistake")));
}

#[test]
fn a_scope_inside_of_another_has_a_question_of_its_own() {
    let mut never = Interrupts::new(|| false);
    let mut always = Interrupts::new(|| true);
    never.scope(|| {
        always.scope(until_interrupted);
        assert!(check().is_ok(), "the outer one was not told to end");
    });
    assert!(!never.was_interrupted());
}

#[test]
fn who_waits_for_an_event_is_told_to_end_and_the_task_goes_on() {
    let capacity = NonZero::new(4).expect("not zero");
    let mut queue: TaskQueue<Job> = TaskQueue::new("slow", capacity).expect("a thread");
    let go = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&go);
    let task = Job::new("slow", move || {
        while !told.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    });
    queue.push(task).expect("it takes work");
    let ended = Interrupts::new(|| true).scope(|| queue.wait());
    assert!(matches!(ended, Err(ThreadsError::Interrupted)), "{ended:?}");
    go.store(true, Ordering::Relaxed);
    queue.wait().expect("nothing failed");
}

#[test]
fn a_task_that_was_interrupted_poisons_nothing() {
    let mut queue = InlineQueue::new("inline");
    let ended = queue.run(|| "cut".to_owned(), || Err(Interrupted.into()));
    assert!(matches!(ended, Err(ThreadsError::Interrupted)), "{ended:?}");
    queue
        .run(|| "next".to_owned(), || Ok(()))
        .expect("it goes on");
}

#[test]
fn a_kernel_is_cut_after_its_grace_on_all_its_threads() {
    let mut always = Interrupts::new(|| true);
    let from = Instant::now();
    always.scope(|| {
        let joined = current();
        std::thread::scope(|scope| {
            let worker = scope.spawn(move || {
                joined.run(|| {
                    while poll() == 0 {
                        std::hint::spin_loop();
                    }
                });
            });
            while poll() == 0 {
                std::hint::spin_loop();
            }
            worker.join().expect("it ends");
        });
    });
    assert!(from.elapsed() >= GRACE, "it was not left to end by itself");
}

#[test]
fn the_question_is_put_by_one_who_says_so() {
    let seen = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&seen);
    let mut interrupts = Interrupts::new(move || {
        told.store(is_asking() && check().is_ok(), Ordering::Relaxed);
        true
    });
    interrupts.scope(until_interrupted);
    assert!(seen.load(Ordering::Relaxed));
    assert!(!is_asking());
}
