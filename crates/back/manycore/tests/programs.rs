//! Whole programs through the runtime, with every scheduler, on one accelerator and on two.
#![cfg(target_os = "linux")]

mod accelerator;

use accelerator::{backend, settings};
use loopwright_backend::{Backend, CompileOptions, Scheduler};
use loopwright_graph::{Array, Binding, Graph, evaluate, parse};
use loopwright_manycore::{Manycore, Settings};
use loopwright_ops::DType;
use loopwright_runtime::{
    CodeOptions, Context, Device, LinkOptions, Routine, Runtime, RuntimeOptions,
};
use loopwright_text::Source;

fn graph(text: &str) -> Graph {
    let source = Source::new("test.lw", format!("loopwright program 1\n{text}"));
    match parse(&source) {
        Ok(graph) => graph,
        Err(error) => panic!("{}", error.render(&source)),
    }
}

fn runtime(backend: &Manycore, scheduler: Scheduler) -> Runtime {
    let mut runtime = Runtime::empty(RuntimeOptions {
        scheduler: Some(scheduler),
        compile: CompileOptions {
            strict: true,
            ..CompileOptions::default()
        },
        ..RuntimeOptions::default()
    });
    runtime.add_backend(Backend::device_backend(backend.clone()));
    runtime
}

fn linked(device: &Device, context: &Context, graph: &Graph) -> Routine {
    let code = device
        .compile("test", graph, &CodeOptions::default())
        .expect("it compiles");
    context
        .link(&code, &LinkOptions::default())
        .expect("it links")
}

/// Small integers that differ from place to place.
fn numbers(count: usize, seed: usize) -> Vec<f32> {
    (0..count)
        .map(|at| ((at * 7 + seed) % 11) as f32 - 5.0)
        .collect()
}

const PRODUCT: &str = "\
size N = 40
input a: f32[i=N, k=30]
input b: f32[k=30, j=N]
output c = sum[k](a * b)
";

#[test]
fn a_matrix_product_with_every_scheduler() {
    let graph = graph(PRODUCT);
    let (a, b) = (numbers(40 * 30, 1), numbers(30 * 40, 2));
    let array = |shape: &[usize], values: &[f32]| {
        let values: Vec<f64> = values.iter().map(|value| f64::from(*value)).collect();
        Array::from_f64(DType::F32, shape, &values).expect("it is small")
    };
    let binding: Binding = graph.bind(&[]).expect("the sizes are known");
    let mut nodes = graph.parameters();
    let inputs = [
        (nodes.next().expect("a"), array(&[40, 30], &a)),
        (nodes.next().expect("b"), array(&[30, 40], &b)),
    ];
    let expected = evaluate(&graph, &binding, &inputs).expect("it is a program");
    for scheduler in [Scheduler::Sync, Scheduler::Threads] {
        let Some(backend) = backend(settings()) else {
            return;
        };
        let runtime = runtime(&backend, scheduler);
        let device = runtime.device("manycore").expect("it is there");
        assert!(!device.limits().host_memory);
        let context = device.stream().expect("a stream").context();
        let product = linked(&device, &context, &graph);
        product.context().write("a", &a).expect("it fits");
        product.context().write("b", &b).expect("it fits");
        product.run(&[]).expect("it runs");
        let c = product.context().read("c").expect("it is there");
        let c = c.expect("the context has it");
        assert_eq!(c.bytes(), expected[0].1.bytes(), "{scheduler:?}");
        let counters = backend.counters();
        assert_eq!(counters.launches, 1);
        assert!(counters.uploaded_bytes >= 2 * 4 * 1200, "{counters:?}");
        assert!(counters.downloaded_bytes >= 4 * 1600, "{counters:?}");
    }
}

const STEP: &str = "\
size N = 1000
static amount in 0 .. 100
input x: i32[i=N]
state total: i32[i=N]
update total = total + x * i32(amount)
";

#[test]
fn streams_on_two_accelerators_at_once() {
    let Some(backend) = backend(Settings {
        devices: 2,
        ..settings()
    }) else {
        return;
    };
    let graph = graph(STEP);
    let runtime = runtime(&backend, Scheduler::Threads);
    let routines: Vec<Routine> = ["manycore:0", "manycore:1", "manycore:0"]
        .iter()
        .map(|name| {
            let device = runtime.device(name).expect("it is there");
            let context = device.stream().expect("a stream").context();
            linked(&device, &context, &graph)
        })
        .collect();
    for (at, routine) in routines.iter().enumerate() {
        let x: Vec<i32> = (0..1000).map(|i| i * (at as i32 + 1)).collect();
        routine.context().write("x", &x).expect("it fits");
        routine.context().zero("total").expect("it is there");
    }
    for amount in 0..20 {
        for routine in &routines {
            routine
                .schedule(&[("amount", amount)])
                .expect("it is scheduled");
        }
    }
    for (at, routine) in routines.iter().enumerate() {
        let total = routine.context().read("total").expect("it ran");
        let total = total.expect("the context has it").to_f64();
        let expected: Vec<f64> = (0..1000)
            .map(|i| f64::from(i * (at as i32 + 1) * 190))
            .collect();
        assert_eq!(total, expected, "routine {at}");
    }
    assert_eq!(
        (backend.counters().starts, backend.counters().launches),
        (2, 60)
    );
}

#[test]
fn a_full_accelerator_is_an_error_and_no_end() {
    let Some(backend) = backend(Settings {
        memory: 1 << 20,
        ..settings()
    }) else {
        return;
    };
    let large = graph("size N = 1000000\ninput x: f32[i=N]\noutput y = x + x\n");
    let runtime = runtime(&backend, Scheduler::Threads);
    let device = runtime.device("manycore").expect("it is there");
    let context = device.stream().expect("a stream").context();
    let code = device.compile("large", &large, &CodeOptions::default());
    let refused = match code {
        Ok(code) => context
            .link(&code, &LinkOptions::default())
            .map(|_| ())
            .expect_err("it is too large")
            .to_string(),
        Err(error) => error.to_string(),
    };
    assert!(
        refused.contains("memory") || refused.contains("bytes"),
        "{refused}"
    );
    let small = linked(&device, &context, &graph(STEP));
    small.context().write("x", &[1i32; 1000]).expect("it fits");
    small.context().zero("total").expect("it is there");
    small.run(&[("amount", 3)]).expect("it runs");
}

#[test]
fn a_lost_accelerator_fails_its_streams_and_a_new_runtime_works() {
    let Some(backend) = backend(Settings {
        timeout: std::time::Duration::from_secs(2),
        ..settings()
    }) else {
        return;
    };
    // Longer than the limit on any machine there is.
    let endless =
        graph("size N = 60000\ninput x: f64[i=N]\noutput y = sum[i](sum[j](sin(x[i] + x[j])))\n");
    let lost = runtime(&backend, Scheduler::Threads);
    let device = lost.device("manycore").expect("it is there");
    let context = device.stream().expect("a stream").context();
    let routine = linked(&device, &context, &endless);
    routine
        .context()
        .write("x", &vec![1f64; 60_000])
        .expect("it fits");
    let error = routine.run(&[]).expect_err("it takes too long");
    let text = error.to_string();
    assert!(text.contains("`manycore0` was stopped"), "{text}");
    assert!(text.contains("LOOPWRIGHT_MANYCORE_TIMEOUT"), "{text}");
    let step = graph(STEP);
    let anew = runtime(&backend, Scheduler::Threads);
    let device = anew.device("manycore").expect("it is there");
    let context = device.stream().expect("a stream").context();
    let routine = linked(&device, &context, &step);
    routine
        .context()
        .write("x", &[2i32; 1000])
        .expect("it fits");
    routine.context().zero("total").expect("it is there");
    routine.run(&[("amount", 3)]).expect("it runs");
    let total = routine.context().read("total").expect("it ran");
    assert_eq!(total.expect("the context has it").to_f64(), [6.0; 1000]);
}
