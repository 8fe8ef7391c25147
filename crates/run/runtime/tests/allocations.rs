//! Scheduling allocates nothing, on any thread that takes part, once everything was used for the first time.

use loopwright_backend::CompileOptions;
use loopwright_graph::{Graph, parse};
use loopwright_runtime::{
    CodeOptions, LinkOptions, Merge, Routine, Runtime, RuntimeOptions, Scheduler,
};
use loopwright_text::Source;
use std::alloc::{GlobalAlloc, Layout, System};
use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use {loopwright_cc as _, loopwright_interp as _};

/// Counts what is allocated, by all threads.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: everything is the system's; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as the caller states.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller states.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Tests of one process share the count, so they take turns.
static TURN: Mutex<()> = Mutex::new(());

fn program(text: &str) -> Graph {
    let text = format!("loopwright program 1\n{text}");
    parse(&Source::new("test.lw", text)).unwrap_or_else(|error| panic!("{error:?}"))
}

fn allocates_nothing(scheduler: Scheduler) {
    let _turn = TURN.lock();
    let runtime = Runtime::new(RuntimeOptions {
        scheduler: Some(scheduler),
        devices: NonZero::new(2).expect("not zero"),
        compile: CompileOptions::default(),
        ..RuntimeOptions::default()
    });
    let device = runtime.device("cc").expect("available");
    let many: String = (0..99)
        .map(|at| format!("input x{at}: f32[i=4]\n"))
        .collect();
    let sum: Vec<String> = (0..99).map(|at| format!("x{at}")).collect();
    let texts = [
        "state n: i64[]\nupdate n = n + 1".to_owned(),
        "static at in 0 .. 4\nstate n: i64[]\nupdate n = n + at".to_owned(),
        "state n: i64[]\ninput n.merge: i64[]\nupdate n = n + n.merge".to_owned(),
        format!("{many}output y = {}", sum.join(" + ")),
    ];
    let codes = texts.map(|text| {
        let code = device.compile("code", &program(&text), &CodeOptions::default());
        code.unwrap_or_else(|error| panic!("{error}"))
    });
    let routines = |device: &str| -> Vec<Routine> {
        let device = runtime.device(device).expect("available");
        let context = device.stream().expect("a stream").context();
        let routines: Vec<Routine> = codes
            .iter()
            .map(|code| {
                let routine = context.link(code, &LinkOptions::default());
                routine.unwrap_or_else(|error| panic!("{error}"))
            })
            .collect();
        for routine in &routines {
            for node in routine.context().nodes() {
                routine.context().zero(&node.name).expect("zeroed");
            }
        }
        routines
    };
    let (ours, theirs) = (routines("cc:0"), routines("cc:1"));
    let round = || {
        for routine in [&ours[0], &ours[3], &theirs[0]] {
            routine.schedule(&[]).expect("scheduled");
        }
        ours[1].schedule(&[("at", 3)]).expect("scheduled");
        // Across streams: the merge waits for the other stream's writer, and its writer for the merge.
        let source = theirs[0].context();
        let merged = ours[2].context().merge_from("n", source, Merge::Streaming);
        assert!(merged.expect("scheduled"));
        ours[2].schedule(&[]).expect("scheduled");
        theirs[0].schedule(&[]).expect("scheduled");
    };
    let wait = || {
        for routine in [&ours[0], &theirs[0]] {
            routine.context().stream().wait().expect("it ran");
        }
    };
    for _ in 0..100 {
        round();
    }
    wait();
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    for _ in 0..1000 {
        round();
    }
    wait();
    let after = ALLOCATIONS.load(Ordering::Relaxed);
    assert_eq!(after - before, 0, "allocations of 1000 rounds");
}

#[test]
fn on_sync() {
    allocates_nothing(Scheduler::Sync);
}

#[test]
fn on_threads() {
    allocates_nothing(Scheduler::Threads);
}
