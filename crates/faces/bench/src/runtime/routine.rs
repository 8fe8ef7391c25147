//! Routines: what linking and scheduling cost, beside a plain call and a bare channel with a worker.
//!
//! The routine is the smallest that does something: it counts in one element. It runs on the device that
//! was asked for, so on `cc` what is scheduled is compiled code.

use super::{Library, Plan, Side, failed, ours, side_by_side};
use crate::BenchError;
use crate::report::Row;
use crate::sample::{median, seconds};
use crossbeam_channel::bounded;
use loopwright::graph::{Graph, parse};
use loopwright::text::Source;
use loopwright_runtime::{
    CodeOptions, Device, LinkOptions, Routine, Runtime, RuntimeOptions, Scheduler, Stream,
};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The bars of the issue, in nanoseconds.
const OVER_A_CALL: f64 = 100.0;
const LINK: f64 = 20_000.0;
/// No worse than 1.2 times the bare channel.
const GOAL: f64 = 1.0 / 1.2;

pub(super) fn rows(device: &str, plan: &Plan) -> Result<Vec<Row>, BenchError> {
    let mut rows = Vec::new();
    let work = "routine on sync, over a plain call";
    if plan.wants(work) {
        rows.push(over_a_call(work, device, plan)?);
    }
    let work = "routine throughput on threads";
    if plan.wants(work) {
        rows.push(on_threads(work, device, 20_000, 20_000, plan)?);
    }
    let work = "routine latency on threads, scheduled and waited for";
    if plan.wants(work) {
        rows.push(on_threads(work, device, 1_000, 1, plan)?);
    }
    let work = "link of a routine with 100 nodes";
    if plan.wants(work) {
        rows.push(link(work, device, plan)?);
    }
    Ok(rows)
}

fn program(work: &str, text: &str) -> Result<Graph, BenchError> {
    let source = Source::new("bench.lw", format!("loopwright program 1\n{text}"));
    parse(&source).map_err(|error| ours(work, error.render(&source)))
}

fn device(work: &str, name: &str, scheduler: Scheduler) -> Result<Device, BenchError> {
    let runtime = Runtime::new(RuntimeOptions {
        scheduler: Some(scheduler),
        ..RuntimeOptions::default()
    });
    let name = if name.is_empty() { "auto" } else { name };
    runtime.device(name).map_err(|error| ours(work, error))
}

/// A routine that counts in one element, on a stream of its own.
fn counting(work: &str, name: &str, scheduler: Scheduler) -> Result<(Stream, Routine), BenchError> {
    let failed = |error| ours(work, error);
    let device = device(work, name, scheduler)?;
    let graph = program(work, "state n: i64[]\nupdate n = n + 1\n")?;
    let code = device
        .compile("count", &graph, &CodeOptions::default())
        .map_err(failed)?;
    let stream = device.stream().map_err(failed)?;
    let routine = stream
        .context()
        .link(&code, &LinkOptions::default())
        .map_err(failed)?;
    routine.context().zero("n").map_err(failed)?;
    Ok((stream, routine))
}

/// The median cost of scheduling, less that of a plain call, sample by sample.
fn over_a_call(work: &str, device: &str, plan: &Plan) -> Result<Row, BenchError> {
    const CALLS: usize = 20_000;
    #[inline(never)]
    fn count(n: &mut i64) {
        *n += 1;
    }
    let (_, routine) = counting(work, device, Scheduler::Sync)?;
    let mut over = Vec::new();
    let mut number = 0;
    for _ in 0..plan.samples.max(3) {
        let (ours_took, outcome) = seconds(|| {
            for _ in 0..CALLS {
                routine.schedule(&[])?;
            }
            Ok::<(), loopwright_runtime::RuntimeError>(())
        });
        outcome.map_err(|error| ours(work, error))?;
        let (call_took, ()) = seconds(|| {
            for _ in 0..CALLS {
                black_box(count as fn(&mut i64))(black_box(&mut number));
            }
        });
        over.push((ours_took - call_took) * 1e9 / CALLS as f64);
    }
    Ok(Row::new(
        work,
        "ns",
        median(&mut over),
        BTreeMap::new(),
        Some(OVER_A_CALL),
    ))
}

/// Routines on a stream with a worker, beside a channel whose worker calls a function on what it receives.
fn on_threads(
    work: &str,
    device: &str,
    tasks: usize,
    between_waits: usize,
    plan: &Plan,
) -> Result<Row, BenchError> {
    let waits = |at: usize, tasks: usize| (at + 1).is_multiple_of(between_waits) || at + 1 == tasks;
    let (stream, routine) = counting(work, device, Scheduler::Threads)?;
    let mut mine = |tasks: usize| {
        for at in 0..tasks {
            routine.schedule(&[]).map_err(|error| ours(work, error))?;
            if waits(at, tasks) {
                stream.wait().map_err(|error| ours(work, error))?;
            }
        }
        Ok(())
    };
    // As much as a routine's task holds: something shared, and whether its end is waited for.
    let (sender, received) = bounded::<(Arc<AtomicU64>, bool)>(1024);
    let (replying, replies) = bounded(1);
    let worker = std::thread::spawn(move || {
        for (counter, reply) in received {
            let count = counter.load(Ordering::Relaxed);
            counter.store(count + 1, Ordering::Relaxed);
            drop(counter);
            if reply && replying.send(()).is_err() {
                return;
            }
        }
    });
    let counter = Arc::new(AtomicU64::new(0));
    let gone = |error: String| failed(Library::Crossbeam, error);
    let mut theirs = |tasks: usize| {
        for at in 0..tasks {
            let waits = waits(at, tasks);
            let task = (Arc::clone(&counter), waits);
            sender.send(task).map_err(|error| gone(error.to_string()))?;
            if waits {
                replies.recv().map_err(|error| gone(error.to_string()))?;
            }
        }
        Ok(())
    };
    let mut peers: Vec<(Library, Side)> = Vec::new();
    if plan.has(Library::Crossbeam) {
        peers.push((Library::Crossbeam, &mut theirs));
    }
    let row = side_by_side(work, tasks, plan.samples, GOAL, &mut mine, &mut peers);
    drop(sender);
    let ended = worker.join();
    ended.map_err(|_| gone("its worker panicked".to_owned()))?;
    row
}

/// Linking code that was linked before at the same sizes, to an empty context.
fn link(work: &str, name: &str, plan: &Plan) -> Result<Row, BenchError> {
    const LINKS: usize = 200;
    let failed = |error| ours(work, error);
    let device = device(work, name, Scheduler::Sync)?;
    let mut text = "size N = 8\n".to_owned();
    let mut sum = "output y = x0".to_owned();
    for at in 0..99 {
        // Writing to a string does not fail.
        let _ = writeln!(text, "input x{at}: f32[i=N]");
        if at > 0 {
            let _ = write!(sum, " + x{at}");
        }
    }
    let graph = program(work, &format!("{text}{sum}\n"))?;
    let code = device
        .compile("hundred", &graph, &CodeOptions::default())
        .map_err(failed)?;
    let context = device.stream().map_err(failed)?.context();
    let mut times = Vec::new();
    for _ in 0..plan.samples.max(3) * LINKS {
        let (took, routine) = seconds(|| context.link(&code, &LinkOptions::default()));
        // Given back outside of the time: what one link takes is asked, not what going takes.
        drop(routine.map_err(failed)?);
        times.push(took * 1e9);
    }
    let median = median(&mut times);
    Ok(Row::new(work, "ns", median, BTreeMap::new(), Some(LINK)))
}
