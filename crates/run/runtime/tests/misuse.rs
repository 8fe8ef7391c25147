//! What must not be done: by the compiler where types can say so, at run time where they cannot.
//!
//! The files in `misuse` do not compile, and the compiler says why in the words beside them. Those words are
//! a compiler's own, so they are compared with the version that this project is built with, and no other.
//! To write them anew: `TRYBUILD=overwrite cargo test -p loopwright-runtime --test misuse`.
//!
//! What the types cannot say is refused at run time. Its tests, which are here or in `checklist`:
//!
//! | misuse | test |
//! | --- | --- |
//! | code of another platform | `code_of_another_platform`; of another runtime: `devices::line_04` |
//! | a context of another runtime | `transfers::line_30_device_to_device`, `a_merge_from_another_runtime` |
//! | memory whose context is gone | `memory::line_21_memory_outlives_the_contexts_it_came_from` |
//! | work whose routine is gone | `memory::line_21_work_in_flight_keeps_its_memory`, `everything_is_dropped_while_it_runs` |
//! | a runtime that is gone | `a_runtime_is_dropped_before_its_streams` |
//! | a second merge node, or the wrong one | `transfers::line_33_the_wrong_merge_node_is_refused` |
//! | a static without a value, or outside of its range | `linking::line_12_statics_are_captured_when_scheduled` |
//! | values of another dtype or shape | `transfers::line_28_values_that_do_not_fit_are_refused` |
//! | reading what nothing wrote | `linking::line_16_what_nothing_wrote_is_refused_by_name` |
//! | one memory under two names | `memory::line_27_a_leading_slice_is_a_view_in_both_directions` |
//! | an array twice in a context | `a_name_is_taken` |
//! | a stream that waits for itself | `a_stream_waits_for_its_own_point` |

use loopwright_backend::CompileOptions;
use loopwright_graph::{Array, Graph, parse};
use loopwright_ops::DType;
use loopwright_runtime::{
    Batch, Code, CodeOptions, Context, Device, Download, Event, LinkOptions, Merge, Plan, Routine,
    Runtime, RuntimeError, RuntimeOptions, Scheduler, Stream, Trace,
};
use loopwright_text::Source;
use std::process::Command;
use std::time::Duration;
use {loopwright_cc as _, loopwright_interp as _};

#[test]
fn what_the_types_forbid() {
    let pinned = env!("CARGO_PKG_RUST_VERSION");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output();
    let version = version.map(|said| String::from_utf8_lossy(&said.stdout).into_owned());
    let version = version.expect("a compiler has compiled this");
    if !version.starts_with(&format!("rustc {pinned}.")) {
        eprintln!("skipped: the words are those of rustc {pinned}, and this is {version}");
        return;
    }
    trybuild::TestCases::new().compile_fail("tests/misuse/*.rs");
}

/// Everything that a program holds may go to another thread, and be used by several.
#[test]
fn everything_may_be_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Runtime>();
    shared::<Device>();
    shared::<Stream>();
    shared::<Code>();
    shared::<Batch>();
    shared::<Context>();
    shared::<Routine>();
    shared::<Download>();
    shared::<Event>();
    shared::<Plan>();
    shared::<Trace>();
    shared::<RuntimeError>();
}

const NEXT: &str = "input x: f32[i=4]\noutput y = x + 1";
const SCHEDULERS: [Scheduler; 2] = [Scheduler::Sync, Scheduler::Threads];

fn program(text: &str) -> Graph {
    let text = format!("loopwright program 1\n{text}");
    parse(&Source::new("misuse.lw", text)).unwrap_or_else(|error| panic!("{error:?}"))
}

fn runtime(scheduler: Scheduler) -> Runtime {
    Runtime::new(RuntimeOptions {
        scheduler: Some(scheduler),
        compile: CompileOptions {
            strict: true,
            ..CompileOptions::default()
        },
        ..RuntimeOptions::default()
    })
}

/// A program linked to a new stream of the interpreter.
fn linked(runtime: &Runtime, text: &str) -> Routine {
    let device = runtime.device("interp").expect("it is always there");
    let code = device.compile("program", &program(text), &CodeOptions::default());
    let context = device.stream().expect("a stream").context();
    let routine = context.link(&code.expect("compiled"), &LinkOptions::default());
    routine.expect("linked")
}

fn message<T>(result: Result<T, RuntimeError>) -> String {
    match result {
        Ok(_) => panic!("it works, and should be refused"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn code_of_another_platform() {
    for scheduler in SCHEDULERS {
        let runtime = runtime(scheduler);
        let [cc, interp] = ["cc", "interp"].map(|name| runtime.device(name).expect("available"));
        let code = cc.compile("next", &program(NEXT), &CodeOptions::default());
        let context = interp.stream().expect("a stream").context();
        assert_eq!(
            message(context.link(&code.expect("compiled"), &LinkOptions::default())),
            "`next` was compiled for `cc`; the context is on device `interp:0`"
        );
        assert!(context.nodes().is_empty());
        assert_eq!(interp.memory().used, 0, "nothing is allocated for it");
    }
}

#[test]
fn a_merge_from_another_runtime() {
    let add = "state g: f32[i=4]\ninput g.merge: f32[i]\nupdate g = g + g.merge";
    for scheduler in SCHEDULERS {
        let [mine, theirs] = [(); 2].map(|()| linked(&runtime(scheduler), add));
        theirs.context().zero("g").expect("zeroed");
        for merge in [Merge::Copy, Merge::Streaming] {
            assert_eq!(
                message(mine.context().merge_from("g", theirs.context(), merge)),
                "the source belongs to another runtime"
            );
        }
    }
}

#[test]
fn everything_is_dropped_while_it_runs() {
    for scheduler in SCHEDULERS {
        let text = "state n: i64[i=100]\nupdate n = n * 3 + 1";
        let runtime = runtime(scheduler);
        let device = runtime.device("interp").expect("available");
        for _ in 0..20 {
            let routine = linked(&runtime, text);
            routine.context().zero("n").expect("zeroed");
            for _ in 0..10 {
                routine.schedule(&[]).expect("scheduled");
            }
            let download = routine.context().download("n").expect("scheduled");
            // The stream goes with the routine; what was scheduled is finished all the same.
            drop(routine);
            let values = download.expect("it is there").wait().expect("it ran");
            assert_eq!(values.to_f64(), [29524.; 100]);
        }
        // The last worker may be the one to give its memory back.
        for _ in 0..1000 {
            if device.memory().used == 0 {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!((device.memory().used, device.memory().pools), (0, 0));
    }
}

#[test]
fn a_runtime_is_dropped_before_its_streams() {
    for scheduler in SCHEDULERS {
        let runtime = runtime(scheduler);
        let routine = linked(&runtime, NEXT);
        drop(runtime);
        routine
            .context()
            .write("x", &[1f32, 2., 3., 4.])
            .expect("its device lives on");
        routine.schedule(&[]).expect("scheduled");
        let y = routine.context().read("y").expect("it ran");
        assert_eq!(y.expect("it is there").to_f64(), [2., 3., 4., 5.]);
        let again = routine.context().device().stream();
        again.expect("and gives new streams");
    }
}

#[test]
fn a_name_is_taken() {
    for scheduler in SCHEDULERS {
        let routine = linked(&runtime(scheduler), NEXT);
        let context = routine.context();
        assert_eq!(
            message(context.slice("y", "x", 0)),
            "cannot slice `x`: the context has a node `y` already"
        );
        let array = Array::from_f64(DType::F32, &[4], &[0.; 4]).expect("an array");
        let error = message(context.with_host("x", array));
        assert!(
            error.starts_with("`x` is in the context already"),
            "{error}"
        );
        let error = message(context.slice("z", "nothing", 0));
        assert_eq!(
            error,
            "cannot slice `nothing`: the context has no such node"
        );
    }
}

#[test]
fn a_stream_waits_for_its_own_point() {
    // Its own points are behind it when it gets there, so this is nothing, and no hang.
    for scheduler in SCHEDULERS {
        let routine = linked(&runtime(scheduler), NEXT);
        let stream = routine.context().stream();
        routine.context().zero("x").expect("zeroed");
        routine.schedule(&[]).expect("scheduled");
        stream.wait_for(&stream.record()).expect("scheduled");
        routine.run(&[]).expect("it ends");
    }
}
