//! What runs when, and what waits for what.

use super::bench::{Bench, Stop, ensure, link, read, refused, write};
use super::gate::Gate;
use loopwright_backend::{DeviceError, Scheduler};
use loopwright_runtime::RuntimeOptions;
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const COUNT: &str = "state n: i64[]\nupdate n = n + 1\n";

/// The kernel that a gate holds up.
const HELD: &str = "held";

/// Work on one stream runs in the order in which it was scheduled.
pub(super) fn work_runs_in_order(bench: &Bench<'_>) -> Result<(), Stop> {
    let device = bench.device()?;
    let context = device.stream()?.context();
    let add = bench.compile(&device, "add", "state n: i64[]\nupdate n = n + 3\n")?;
    let twice = bench.compile(&device, "twice", "state n: i64[]\nupdate n = n * 2\n")?;
    let add = link(&context, &add)?;
    let twice = link(add.context(), &twice)?;
    add.context().zero("n")?;
    let mut expected = 0i64;
    for at in 0..40 {
        let (routine, next) = match at % 3 {
            0 => (&twice, expected.wrapping_mul(2)),
            _ => (&add, expected + 3),
        };
        routine.schedule(&[])?;
        expected = next;
    }
    bench.computed(twice.context(), "n", &[expected])?;
    ensure(add.context().stream().is_idle(), || {
        "its stream is not idle when all is read".to_owned()
    })
}

/// A stream with room for two tasks runs five hundred.
pub(super) fn a_full_queue_drops_nothing(bench: &Bench<'_>) -> Result<(), Stop> {
    let options = RuntimeOptions {
        queue: NonZero::new(2).unwrap_or(NonZero::<usize>::MIN),
        ..bench.options()
    };
    let device = bench.runtime(options).device(bench.backend.name())?;
    let routine = bench.routine(&device, "count", COUNT)?;
    routine.context().zero("n")?;
    for _ in 0..500 {
        routine.schedule(&[])?;
    }
    bench.computed(routine.context(), "n", &[500])
}

/// A gate, open from the start where the caller would wait for itself, and a device behind it.
fn gated(bench: &Bench<'_>) -> Result<(Arc<Gate>, loopwright_runtime::Device), Stop> {
    let gate = Arc::new(Gate::default());
    if bench.scheduler == Scheduler::Sync {
        gate.open();
    }
    let watch = Arc::clone(&gate);
    let device = bench.watched_device(move |kernel| match kernel {
        HELD => watch.pass(),
        _ => None,
    })?;
    Ok((gate, device))
}

/// What reads an array on another stream waits for what writes it.
pub(super) fn reads_wait_for_writes(bench: &Bench<'_>) -> Result<(), Stop> {
    let (gate, device) = gated(bench)?;
    let writer = bench.compile_named(&device, HELD, COUNT)?;
    let reader = bench.compile_named(&device, "reader", COUNT)?;
    let writer = link(&device.stream()?.context(), &writer)?;
    let reader = link(&device.stream()?.context(), &reader)?;
    write(writer.context(), "n", &[5])?;
    writer.schedule(&[])?;
    // Behind the write, which is held up; nothing of this waits for it here.
    let copied = reader.context().copy_from("n", writer.context())?;
    ensure(copied, || "there is no `n` to be copied".to_owned())?;
    reader.schedule(&[])?;
    let early = reader.context().stream().is_idle();
    ensure(!early || bench.scheduler == Scheduler::Sync, || {
        "it did not wait for the write".to_owned()
    })?;
    gate.open();
    bench.computed(reader.context(), "n", &[7])?;
    bench.computed(writer.context(), "n", &[6])
}

/// What writes an array waits for what reads it on another stream.
pub(super) fn writes_wait_for_reads(bench: &Bench<'_>) -> Result<(), Stop> {
    let (gate, device) = gated(bench)?;
    let owner = bench.compile_named(&device, "owner", COUNT)?;
    let reader = bench.compile_named(&device, HELD, COUNT)?;
    let owner = link(&device.stream()?.context(), &owner)?;
    let reader = link(&device.stream()?.context(), &reader)?;
    write(owner.context(), "n", &[7])?;
    reader.context().zero("n")?;
    reader.schedule(&[])?;
    // Behind what is held up, so that the read has not happened when the write is scheduled.
    reader.context().copy_from("n", owner.context())?;
    owner.schedule(&[])?;
    let early = owner.context().stream().is_idle();
    ensure(!early || bench.scheduler == Scheduler::Sync, || {
        "it did not wait for the read".to_owned()
    })?;
    gate.open();
    // The value from before the write.
    bench.computed(reader.context(), "n", &[7])?;
    bench.computed(owner.context(), "n", &[8])
}

/// A stream can wait for a point of another one.
pub(super) fn streams_wait_for_events(bench: &Bench<'_>) -> Result<(), Stop> {
    let (gate, device) = gated(bench)?;
    let [a, b] = [device.stream()?, device.stream()?];
    let code = bench.compile_named(&device, HELD, COUNT)?;
    let routine = link(&a.context(), &code)?;
    routine.context().zero("n")?;
    a.wait()?;
    let before = a.record();
    for _ in 0..5 {
        routine.schedule(&[])?;
    }
    let point = a.record();
    b.wait_for(&point)?;
    let waits = bench.scheduler == Scheduler::Threads;
    let (done, idle) = (point.is_done(), b.is_idle());
    ensure(done != waits && idle != waits && before.is_done(), || {
        format!("held up, the point is done: {done}, and the stream that waits for it idle: {idle}")
    })?;
    gate.open();
    b.wait()?;
    ensure(point.is_done(), || {
        "a stream went on before the point it waits for".to_owned()
    })?;
    bench.computed(routine.context(), "n", &[5])
}

/// A kernel that fails stops its own stream, with its name, and nothing else.
pub(super) fn a_failure_stays_on_its_stream(bench: &Bench<'_>) -> Result<(), Stop> {
    let failing = Arc::new(AtomicBool::new(false));
    let switch = Arc::clone(&failing);
    let device = bench.watched_device(move |_| {
        let fails = switch.load(Ordering::SeqCst);
        fails.then(|| DeviceError::Other("out of luck".to_owned()))
    })?;
    let code = bench.compile(&device, "count", COUNT)?;
    let routine = link(&device.stream()?.context(), &code)?;
    let other = link(&device.stream()?.context(), &code)?;
    for routine in [&routine, &other] {
        routine.context().zero("n")?;
        routine.run(&[])?;
    }
    failing.store(true, Ordering::SeqCst);
    let failed = refused(routine.run(&[]), "a kernel that fails")?;
    failing.store(false, Ordering::SeqCst);
    let named = [
        device.name(),
        routine.context().stream().name(),
        "`count`",
        "out of luck",
    ];
    ensure(named.iter().all(|name| failed.contains(name)), || {
        format!("the failure does not say what and where: {failed}")
    })?;
    let later = [
        refused(routine.schedule(&[]), "work behind a failure")?,
        refused(routine.context().read("n"), "a read behind a failure")?,
    ];
    ensure(later.iter().all(|later| *later == failed), || {
        format!("later on it is another failure: {later:?}")
    })?;
    other.run(&[])?;
    bench.computed(other.context(), "n", &[2])?;
    let fresh = link(&device.stream()?.context(), &code)?;
    fresh.context().zero("n")?;
    fresh.run(&[])?;
    bench.computed(fresh.context(), "n", &[1])
}

/// Threads of the program run the same code at the same time, each on its own stream.
pub(super) fn many_threads_at_once(bench: &Bench<'_>) -> Result<(), Stop> {
    let device = bench.device()?;
    let text = "input x: i64[i=50]\nstate n: i64[i]\nupdate n = n + x * x\n";
    let code = bench.compile(&device, "square", text)?;
    let results: Vec<Result<Vec<i64>, Stop>> = std::thread::scope(|scope| {
        let run = |thread: i64| {
            let routine = link(&device.stream()?.context(), &code)?;
            routine.context().zero("n")?;
            for round in 0..25 {
                write(routine.context(), "x", &[thread + round; 50])?;
                routine.schedule(&[])?;
            }
            read(routine.context(), "n")
        };
        let threads: Vec<_> = (0..4)
            .map(|thread| scope.spawn(move || run(thread)))
            .collect();
        let joined = threads.into_iter().map(|thread| {
            let panicked = |_| Err(Stop::Failed("a thread panicked".to_owned()));
            thread.join().unwrap_or_else(panicked)
        });
        joined.collect()
    });
    for (thread, result) in (0i64..).zip(results) {
        let expected: i64 = (0..25).map(|round| (thread + round).pow(2)).sum();
        let got = result?;
        ensure(!bench.computes || got == [expected; 50], || {
            format!("thread {thread} has {got:?}, and should have {expected} everywhere")
        })?;
    }
    Ok(())
}
