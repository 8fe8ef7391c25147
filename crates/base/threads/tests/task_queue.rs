//! Queues of tasks on threads of the system.

use loopwright_threads::{Cause, Job, Task, TaskQueue, ThreadsError};
use std::error::Error;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};

fn queue<T: Task>(name: &str, capacity: usize) -> TaskQueue<T> {
    let capacity = NonZero::new(capacity).expect("not zero");
    TaskQueue::new(name, capacity).expect("a thread can be had")
}

fn nothing() -> Job {
    Job::new("nothing", || Ok(()))
}

/// A task that stays until the sender is used or dropped.
fn held() -> (mpsc::Sender<()>, Job) {
    let (release, held) = mpsc::channel::<()>();
    let job = Job::new("held", move || {
        // Either way it is released.
        let _ = held.recv();
        Ok(())
    });
    (release, job)
}

#[test]
fn tasks_run_in_order_one_at_a_time() {
    for capacity in [1, 2, 64] {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let mut queue = queue("q", capacity);
        for index in 0..200 {
            let seen = Arc::clone(&seen);
            let note = move || {
                seen.try_lock().expect("one task at a time").push(index);
                Ok(())
            };
            queue.push(Job::new("note", note)).expect("nothing fails");
        }
        queue.wait().expect("nothing fails");
        assert!(queue.is_idle());
        let seen = seen.lock().expect("no panic");
        assert!(seen.iter().copied().eq(0..200), "{seen:?}");
    }
}

#[test]
fn a_task_type_of_ones_own_needs_no_box() {
    struct Add(Arc<AtomicUsize>, usize);
    impl Task for Add {
        fn name(&self) -> &str {
            "add"
        }
        fn run(&mut self) -> Result<(), Box<dyn Error + Send + Sync>> {
            self.0.fetch_add(self.1, Ordering::Relaxed);
            Ok(())
        }
    }
    let sum = Arc::new(AtomicUsize::new(0));
    let mut queue = queue("q", 8);
    for index in 0..100 {
        queue
            .push(Add(Arc::clone(&sum), index))
            .expect("nothing fails");
    }
    queue.wait().expect("nothing fails");
    assert_eq!(sum.load(Ordering::Relaxed), 4950);
    assert_eq!(
        Arc::strong_count(&sum),
        1,
        "tasks are dropped before they count as ended"
    );
}

#[test]
fn an_event_is_done_when_what_is_before_it_ended() {
    let mut queue = queue("q", 8);
    let first = queue.record();
    assert!(
        first.is_done() && first.wait().is_ok(),
        "nothing is before it"
    );
    let (release, held) = held();
    queue.push(nothing()).expect("nothing fails");
    let before = queue.record();
    queue.push(held).expect("nothing fails");
    let behind = queue.record();
    before.wait().expect("nothing fails");
    assert!(before.is_done() && !behind.is_done() && !queue.is_idle());
    drop(release);
    behind.wait().expect("nothing fails");
    assert!(behind.is_done() && queue.is_idle());
    assert_eq!(behind.queue(), "q");
}

#[test]
fn a_queue_waits_for_another_ones_event() {
    let order = Arc::new(Mutex::new(Vec::new()));
    let (release, held) = held();
    let (mut first, mut second) = (queue("first", 8), queue("second", 8));
    first.push(held).expect("nothing fails");
    let noted = Arc::clone(&order);
    let note = move || {
        noted.lock().expect("no panic").push("first");
        Ok(())
    };
    first.push(Job::new("note", note)).expect("nothing fails");
    let event = first.record();
    let noted = Arc::clone(&order);
    let note = move || {
        event.wait()?;
        noted.lock().expect("no panic").push("second");
        Ok(())
    };
    second.push(Job::new("note", note)).expect("nothing fails");
    drop(release);
    second.wait().expect("nothing fails");
    assert_eq!(*order.lock().expect("no panic"), ["first", "second"]);
}

#[test]
fn a_failing_task_poisons_its_queue_and_no_other() {
    let ran = Arc::new(AtomicUsize::new(0));
    let (mut bad, mut good) = (queue("bad", 8), queue("good", 8));
    let (release, held) = held();
    bad.push(held).expect("nothing failed yet");
    let before = bad.record();
    bad.push(Job::new("matmul", || Err("no memory".into())))
        .expect("nothing failed yet");
    let behind: Vec<_> = (0..3)
        .map(|_| {
            let ran = Arc::clone(&ran);
            let count = move || {
                ran.fetch_add(1, Ordering::Relaxed);
                Ok(())
            };
            bad.push(Job::new("count", count))
                .expect("nothing failed yet");
            bad.record()
        })
        .collect();
    let waiting: Vec<_> = behind
        .into_iter()
        .map(|event| std::thread::spawn(move || event.wait()))
        .collect();
    drop(release);
    let expected = "queue `bad`: task `matmul` failed: no memory";
    for waiter in waiting {
        let error = waiter.join().expect("no panic").expect_err("poisoned");
        assert_eq!(error.to_string(), expected);
    }
    assert!(before.wait().is_ok());
    assert_eq!(ran.load(Ordering::Relaxed), 0);
    assert_eq!(
        Arc::strong_count(&ran),
        1,
        "what was not run is dropped all the same"
    );
    assert!(bad.is_idle());
    let errors = [bad.wait(), bad.check(), bad.push(nothing())];
    for error in errors {
        assert_eq!(error.expect_err("poisoned").to_string(), expected);
    }
    good.push(nothing()).expect("another queue");
    good.wait().expect("another queue");
}

#[test]
fn a_panic_is_a_failure_with_its_message() {
    let panics: [(fn(), &str); 3] = [
        (|| panic!("fixed"), "fixed"),
        (|| panic!("{} {}", "put", "together"), "put together"),
        (|| std::panic::panic_any(7), "(no message)"),
    ];
    for (panic, message) in panics {
        let mut queue = queue("q", 8);
        let bad = Job::new("bad", move || {
            panic();
            Ok(())
        });
        queue.push(bad).expect("nothing failed yet");
        let error = queue.wait().expect_err("a panic");
        assert_eq!(
            error.to_string(),
            format!("queue `q`: task `bad` panicked: {message}")
        );
        let ThreadsError::Poisoned(failure) = error else {
            panic!("poisoned was expected: {error}");
        };
        assert_eq!((&*failure.queue, failure.index), ("q", 0));
        assert!(matches!(&failure.cause, Cause::Panic(said) if said == message));
    }
}

#[test]
fn a_panic_while_a_task_is_dropped_is_a_failure() {
    struct Bad;
    impl Drop for Bad {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }
    impl Task for Bad {
        fn name(&self) -> &str {
            "bad"
        }
        fn run(&mut self) -> Result<(), Box<dyn Error + Send + Sync>> {
            Ok(())
        }
    }
    let mut queue = queue("q", 8);
    queue.push(Bad).expect("nothing failed yet");
    let error = queue.wait().expect_err("a panic").to_string();
    assert_eq!(error, "queue `q`: task `(a task's drop)` panicked: dropped");
}

#[test]
fn dropping_a_queue_runs_what_it_has() {
    let ran = Arc::new(AtomicUsize::new(0));
    let mut queue = queue("q", 64);
    for _ in 0..50 {
        let ran = Arc::clone(&ran);
        let count = move || {
            ran.fetch_add(1, Ordering::Relaxed);
            Ok(())
        };
        queue.push(Job::new("count", count)).expect("nothing fails");
    }
    let last = queue.record();
    drop(queue);
    assert!(last.is_done() && last.wait().is_ok());
    assert_eq!(ran.load(Ordering::Relaxed), 50);
}

#[test]
fn a_task_that_waits_for_its_own_queue_is_refused() {
    let shared: Arc<Mutex<TaskQueue<Job>>> = Arc::new(Mutex::new(queue("q", 1)));
    let own = Arc::clone(&shared);
    let (told, tell) = mpsc::channel();
    let recurse = Job::new("recurse", move || {
        let mut queue = own.lock().map_err(|error| error.to_string())?;
        // One is being run; one fits behind it; the next would wait for this one to end.
        queue.push(nothing())?;
        let pushed = queue.push(nothing()).map_err(|error| error.to_string());
        let waited = queue.wait().map_err(|error| error.to_string());
        told.send((pushed, waited))?;
        Ok(())
    });
    let pushed = shared.lock().expect("no panic").push(recurse);
    pushed.expect("nothing fails");
    let refused = "queue `q`: a task that waits for its own queue would wait forever; \
                   push or wait from another thread";
    let refused = Err(refused.to_owned());
    assert_eq!(tell.recv(), Ok((refused.clone(), refused)));
    let event = shared.lock().expect("no panic").record();
    event.wait().expect("a refusal poisons nothing");
}

#[test]
fn a_queue_may_be_dropped_by_its_own_task() {
    let shared: Arc<Mutex<Option<TaskQueue<Job>>>> = Arc::new(Mutex::new(Some(queue("q", 4))));
    let own = Arc::clone(&shared);
    let end = Job::new("end", move || {
        drop(own.lock().map_err(|error| error.to_string())?.take());
        Ok(())
    });
    let event = {
        let mut slot = shared.lock().expect("no panic");
        let queue = slot.as_mut().expect("nobody dropped it yet");
        queue.push(end).expect("nothing fails");
        queue.push(nothing()).expect("nothing fails");
        queue.record()
    };
    event.wait().expect("what was pushed is run");
}

#[test]
fn names_are_any_text() {
    let mut queue = queue("zero\0 ünïcode", 1);
    assert_eq!(queue.name(), "zero\0 ünïcode");
    queue.push(nothing()).expect("nothing fails");
    queue.wait().expect("nothing fails");
}
