//! Data parallelism: streams with a shard of the data each, whose gradients are merged, come to the same
//! weights as one stream that does all shards, bit for bit.

use loopwright_backend::CompileOptions;
use loopwright_graph::{Graph, parse};
use loopwright_runtime::{
    Code, CodeOptions, Context, Device, LinkOptions, Merge, Routine, Runtime, RuntimeOptions,
    Scheduler,
};
use loopwright_text::Source;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::OnceLock;
use {loopwright_cc as _, loopwright_interp as _};

const ROWS: usize = 24;
const FEATURES: usize = 5;
const STEPS: usize = 25;

/// The gradient of a logistic regression over a shard.
const GRADIENT: &str = "
size ROWS = 6, FEATURES = 5
input x: f32[r=ROWS, f=FEATURES]
input y: f32[r]
input w: f32[f]
p = 1 / (1 + exp(-sum[f](x * w)))
output g = sum[r]((p - y) * x) / f32(ROWS)
";
const MERGE: &str = "
size FEATURES = 5
state g: f32[f=FEATURES]
input g.merge: f32[f]
update g = g + g.merge
";
const DESCEND: &str = "
size FEATURES = 5
input g: f32[f=FEATURES]
state w: f32[f]
update w = w - 0.3 * g
";

/// One private directory of compiled code for all tests of this process.
fn cache() -> PathBuf {
    static CACHE: OnceLock<tempfile::TempDir> = OnceLock::new();
    let cache = CACHE.get_or_init(|| tempfile::tempdir().expect("a temporary directory"));
    cache.path().join("cache")
}

fn program(text: &str) -> Graph {
    let text = format!("loopwright program 1\n{text}");
    parse(&Source::new("test.lw", text)).unwrap_or_else(|error| panic!("{error:?}"))
}

fn compile(device: &Device, name: &str, text: &str) -> Code {
    let code = device.compile(name, &program(text), &CodeOptions::default());
    code.unwrap_or_else(|error| panic!("{error}"))
}

fn link(context: &Context, code: &Code, shards: usize) -> Routine {
    let sizes: &[(&str, i64)] = match code.graph().sizes().any(|(_, name, _)| name == "ROWS") {
        true => &[("ROWS", (ROWS / shards) as i64)],
        false => &[],
    };
    let options = LinkOptions {
        sizes,
        ..LinkOptions::default()
    };
    let routine = context.link(code, &options);
    routine.unwrap_or_else(|error| panic!("{error}"))
}

fn data() -> (Vec<f32>, Vec<f32>) {
    let x: Vec<f32> = (0..ROWS * FEATURES)
        .map(|at| ((at * at + 3 * at) as f32 * 0.7).sin())
        .collect();
    let y = (0..ROWS).map(|row| f32::from(x[row * FEATURES] > 0.2));
    let y = y.collect();
    (x, y)
}

/// Training on `streams` streams, each with an equal part of the shards' work: bits of the weights.
fn train(
    place: (&'static str, Scheduler),
    devices: usize,
    streams: usize,
    shards: usize,
    merge: Merge,
) -> Vec<u8> {
    let (backend, scheduler) = place;
    let runtime = Runtime::new(RuntimeOptions {
        scheduler: Some(scheduler),
        devices: NonZero::new(devices).expect("not zero"),
        compile: CompileOptions {
            strict: true,
            cache: Some(cache()),
            ..CompileOptions::default()
        },
        ..RuntimeOptions::default()
    });
    let devices: Vec<Device> = (0..devices)
        .map(|at| {
            runtime
                .device(&format!("{backend}:{at}"))
                .expect("available")
        })
        .collect();
    let [gradient, add, descend] = [
        compile(&devices[0], "gradient", GRADIENT),
        compile(&devices[0], "merge", MERGE),
        compile(&devices[0], "descend", DESCEND),
    ];
    // A context for every shard; shards share streams where there are fewer.
    let streams: Vec<_> = (0..streams)
        .map(|at| devices[at % devices.len()].stream().expect("a stream"))
        .collect();
    let workers: Vec<Routine> = (0..shards)
        .map(|at| link(&streams[at % streams.len()].context(), &gradient, shards))
        .collect();
    let (x, y) = data();
    let rows = ROWS / shards;
    for (at, worker) in workers.iter().enumerate() {
        let context = worker.context();
        let write = |name: &str, values: &[f32]| {
            assert!(context.write(name, values).expect("written"), "{name}");
        };
        write("x", &x[at * rows * FEATURES..][..rows * FEATURES]);
        write("y", &y[at * rows..][..rows]);
        write("w", &[0.; FEATURES]);
    }
    let first = workers[0].context();
    let add = link(first, &add, shards);
    let descend = link(first, &descend, shards);
    for _ in 0..STEPS {
        for worker in &workers {
            worker.schedule(&[]).expect("scheduled");
        }
        for worker in &workers[1..] {
            let merged = first.merge_from("g", worker.context(), merge);
            assert!(merged.expect("scheduled"));
            add.schedule(&[]).expect("scheduled");
        }
        descend.schedule(&[]).expect("scheduled");
        for worker in &workers[1..] {
            let copied = worker.context().copy_from("w", first);
            assert!(copied.expect("scheduled"));
        }
    }
    let weights = first.read("w").expect("trained").expect("it is there");
    assert!(weights.to_f64().iter().any(|weight| weight.abs() > 0.1));
    for worker in &workers[1..] {
        let copy = worker.context().read("w").expect("trained");
        assert_eq!(copy.expect("it is there"), weights);
    }
    weights.bytes().to_vec()
}

fn same_weights(place: (&'static str, Scheduler)) {
    for shards in [2, 4] {
        let one = train(place, 1, 1, shards, Merge::Copy);
        for merge in [Merge::Copy, Merge::Streaming] {
            for (devices, streams) in [(1, shards), (2, shards), (2, shards - 1)] {
                let many = train(place, devices, streams, shards, merge);
                assert_eq!(one, many, "{shards} shards on {streams} streams, {merge:?}");
            }
        }
    }
}

#[test]
fn interp_sync() {
    same_weights(("interp", Scheduler::Sync));
}

#[test]
fn interp_threads() {
    same_weights(("interp", Scheduler::Threads));
}

#[test]
fn cc_sync() {
    same_weights(("cc", Scheduler::Sync));
}

#[test]
fn cc_threads() {
    same_weights(("cc", Scheduler::Threads));
}
