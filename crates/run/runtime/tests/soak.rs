//! Eight streams on two devices, ten thousand random routines, transfers and merges, with faults: tasks
//! that fail, allocations and compilers that fail, a device that disappears. Every result is right or an
//! error, nothing hangs, and all memory comes back.
//!
//! Elements of an array are all equal, so that a model of one number follows each array. What was scheduled
//! without an error either ran, or its stream is poisoned and gives no values any more.

use loopwright_backend::{Backend, BackendError, CompileOptions, backends};
use loopwright_graph::{Graph, parse};
use loopwright_runtime::faults::{FaultyDevice, Operation};
use loopwright_runtime::{
    Code, CodeOptions, Context, Device, DeviceError, HostDevice, LinkOptions, Merge, PlainDevice,
    Routine, Runtime, RuntimeError, RuntimeOptions, Scheduler,
};
use loopwright_text::Source;
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use {loopwright_cc as _, loopwright_interp as _};

const STREAMS: usize = 8;
const OPERATIONS: usize = 10_000;
const ELEMENTS: usize = 33;

/// Numbers that look random, from a counter.
fn mix(mut value: u64) -> u64 {
    value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 += 1;
        (mix(self.0) % limit as u64) as usize
    }
}

/// What goes wrong, decided from any thread.
#[derive(Default)]
struct Chaos {
    /// Faults happen only while this is set.
    on: AtomicBool,
    count: AtomicU64,
    /// Faults that happened.
    faults: AtomicU64,
    /// The second device is gone.
    lost: AtomicBool,
}

impl Chaos {
    fn strikes(&self, one_in: u64) -> bool {
        let now = mix(self.count.fetch_add(1, Ordering::Relaxed) ^ 0x5eed);
        let strikes = self.on.load(Ordering::Relaxed) && now.is_multiple_of(one_in);
        if strikes {
            self.faults.fetch_add(1, Ordering::Relaxed);
        }
        strikes
    }

    fn fault(&self, operation: Operation<'_>, second: bool) -> Option<DeviceError> {
        if second && self.lost.load(Ordering::Relaxed) {
            return Some(DeviceError::Lost("the cable is out".to_owned()));
        }
        match operation {
            Operation::Allocate(bytes) => self
                .strikes(40)
                .then_some(DeviceError::OutOfMemory { bytes }),
            Operation::Launch(_) if self.strikes(900) => {
                panic!("a kernel goes wrong badly");
            }
            Operation::Launch(_) | Operation::Write(_) | Operation::Read(_) => self
                .strikes(400)
                .then(|| DeviceError::Other("bad luck".to_owned())),
        }
    }
}

fn program(text: &str) -> Graph {
    let text = format!("loopwright program 1\n{text}");
    parse(&Source::new("soak.lw", text)).unwrap_or_else(|error| panic!("{error:?}"))
}

/// What the programs do with `a` and `b`, and the same on numbers.
const PROGRAMS: [(&str, &str); 4] = [
    (
        "add",
        "state a: i64[i=33]\ninput b: i64[i]\nupdate a = a + b",
    ),
    (
        "mix",
        "state a: i64[i=33]\nstate b: i64[i]\nupdate a = a * 3 + b\nupdate b = a - b",
    ),
    (
        "pick",
        "static at in 0 .. 33\ninput a: i64[i=33]\nstate b: i64[i]\nupdate b = a[at] + b + at",
    ),
    (
        "merge",
        "state a: i64[i=33]\ninput a.merge: i64[i]\nupdate a = a * 5 + a.merge",
    ),
];

/// A stream with its routines, and what its arrays should hold.
struct Lane {
    context: Context,
    routines: Vec<Routine>,
    a: i64,
    b: i64,
}

struct Soak {
    devices: [Device; 2],
    codes: Vec<Code>,
    chaos: Arc<Chaos>,
    /// Errors of schedules and links.
    refused: u64,
    /// Streams that were found poisoned.
    poisoned: u64,
    /// Reads whose values were compared.
    compared: u64,
}

impl Soak {
    /// A new stream, after as many attempts as it takes.
    fn lane(&mut self, at: usize, random: &mut Random) -> Lane {
        let device = self.devices[at % 2].clone();
        loop {
            // A device that is gone comes back, or nothing would ever work again.
            if random.below(3) == 0 {
                self.chaos.lost.store(false, Ordering::Relaxed);
            }
            match self.try_lane(&device, at as i64) {
                Ok(lane) => return lane,
                Err(_) => self.refused += 1,
            }
        }
    }

    fn try_lane(&self, device: &Device, value: i64) -> Result<Lane, RuntimeError> {
        let mut context = device.stream()?.context();
        let mut routines = Vec::new();
        for code in &self.codes {
            let routine = context.link(code, &LinkOptions::default())?;
            context = routine.context().clone();
            routines.push(routine);
        }
        context.write("a", &[value; ELEMENTS])?;
        context.write("b", &[value + 100; ELEMENTS])?;
        Ok(Lane {
            context,
            routines,
            a: value,
            b: value + 100,
        })
    }

    /// Does something on a stream; an error says that nothing was scheduled, or that the stream failed.
    fn step(
        &mut self,
        lanes: &mut [Lane],
        random: &mut Random,
    ) -> Result<(), (usize, RuntimeError)> {
        let at = random.below(lanes.len());
        let other = random.below(lanes.len());
        let failed = |error| (at, error);
        match random.below(12) {
            0..=2 => {
                lanes[at].routines[0].schedule(&[]).map_err(failed)?;
                let lane = &mut lanes[at];
                lane.a = lane.a.wrapping_add(lane.b);
            }
            3 | 4 => {
                lanes[at].routines[1].schedule(&[]).map_err(failed)?;
                let lane = &mut lanes[at];
                (lane.a, lane.b) = (
                    lane.a.wrapping_mul(3).wrapping_add(lane.b),
                    lane.a.wrapping_sub(lane.b),
                );
            }
            5 => {
                let index = random.below(ELEMENTS) as i64;
                let pick = &lanes[at].routines[2];
                pick.schedule(&[("at", index)]).map_err(failed)?;
                let lane = &mut lanes[at];
                lane.b = lane.b.wrapping_add(lane.a).wrapping_add(index);
            }
            6 => {
                let value = random.below(1000) as i64;
                let written = lanes[at].context.write("b", &[value; ELEMENTS]);
                assert!(written.map_err(failed)?);
                lanes[at].b = value;
            }
            7 if at != other => {
                let copied = lanes[at].context.copy_from("a", &lanes[other].context);
                assert!(copied.map_err(failed)?);
                lanes[at].a = lanes[other].a;
            }
            8 | 9 if at != other => {
                let how = [Merge::Copy, Merge::Streaming][random.below(2)];
                let merged = lanes[at]
                    .context
                    .merge_from("a", &lanes[other].context, how);
                assert!(merged.map_err(failed)?);
                lanes[at].routines[3].schedule(&[]).map_err(failed)?;
                lanes[at].a = lanes[at].a.wrapping_mul(5).wrapping_add(lanes[other].a);
            }
            10 => {
                let (name, expected) = [("a", lanes[at].a), ("b", lanes[at].b)][random.below(2)];
                let array = lanes[at].context.read(name).map_err(failed)?;
                let array = array.expect("the context has it");
                for element in array.iter() {
                    assert_eq!(element.as_i64(), Some(expected), "`{name}` of stream {at}");
                }
                self.compared += 1;
            }
            11 => {
                // Code that comes and goes, with memory of its own.
                let device = lanes[at].context.device();
                let graph = program(&format!(
                    "input a: i64[i=33]\noutput gone = sum[i](a) * {}",
                    random.below(3)
                ));
                let code = device.compile("gone", &graph, &CodeOptions::default());
                let routine = code
                    .and_then(|code| lanes[at].context.link(&code, &LinkOptions::default()))
                    .map_err(failed)?;
                routine.schedule(&[]).map_err(failed)?;
            }
            _ => {}
        }
        Ok(())
    }
}

fn backend(name: &str) -> Backend {
    let found = backends()
        .into_iter()
        .find(|backend| backend.name() == name);
    found.expect("the backend is linked in")
}

fn soak(name: &'static str, scheduler: Scheduler, seed: u64) {
    let cache = tempfile::tempdir().expect("a temporary directory");
    let chaos = Arc::new(Chaos::default());
    let compiling = Arc::clone(&chaos);
    let faulty = backend(name).refusing(move |_| {
        compiling.strikes(3).then(|| BackendError::Run {
            kernel: "gone".to_owned(),
            reason: "no compiler today".to_owned(),
        })
    });
    let options = RuntimeOptions {
        scheduler: Some(scheduler),
        devices: NonZero::new(2).expect("not zero"),
        queue: NonZero::new(16).expect("not zero"),
        compile: CompileOptions {
            strict: true,
            cache: Some(cache.path().join("cache")),
            ..CompileOptions::default()
        },
        ..RuntimeOptions::default()
    };
    let plain = [false, true].map(|second| -> Arc<dyn PlainDevice> {
        let chaos = Arc::clone(&chaos);
        let host = Arc::new(HostDevice::new(&*faulty));
        Arc::new(FaultyDevice::new(host, move |operation| {
            chaos.fault(operation, second)
        }))
    });
    let mut runtime = Runtime::empty(options);
    runtime.add_platform(faulty, plain.into());
    let devices = [0, 1].map(|at| {
        let device = runtime.device(&format!("{name}:{at}"));
        device.expect("available")
    });
    let codes = PROGRAMS.map(|(name, text)| {
        let code = devices[0].compile(name, &program(text), &CodeOptions::default());
        code.unwrap_or_else(|error| panic!("{error}"))
    });
    let mut soak = Soak {
        devices,
        codes: codes.into(),
        chaos: Arc::clone(&chaos),
        refused: 0,
        poisoned: 0,
        compared: 0,
    };
    chaos.on.store(true, Ordering::Relaxed);
    let mut random = Random(seed << 32);
    let mut lanes: Vec<Lane> = (0..STREAMS).map(|at| soak.lane(at, &mut random)).collect();
    for round in 0..OPERATIONS {
        if round % 2500 == 2499 {
            chaos.lost.store(true, Ordering::Relaxed);
        }
        if let Err((at, error)) = soak.step(&mut lanes, &mut random) {
            match error {
                // The stream may be poisoned, or the error may be a link's or a compiler's alone.
                RuntimeError::Stream(_) => {
                    soak.poisoned += 1;
                    lanes[at] = soak.lane(at, &mut random);
                }
                RuntimeError::Allocation { .. } | RuntimeError::Compile { .. } => soak.refused += 1,
                other => panic!("{other}"),
            }
        }
    }
    chaos.on.store(false, Ordering::Relaxed);
    chaos.lost.store(false, Ordering::Relaxed);
    // What is left is right, or its stream says why it is not.
    for (at, lane) in lanes.iter().enumerate() {
        match lane.context.read("a") {
            Ok(array) => {
                let array = array.expect("the context has it");
                assert_eq!(array.get_flat(0).as_i64(), Some(lane.a), "stream {at}");
                soak.compared += 1;
            }
            Err(RuntimeError::Stream(_)) => soak.poisoned += 1,
            Err(other) => panic!("{other}"),
        }
    }
    drop(lanes);
    let devices = soak.devices.clone();
    println!(
        "{name} under {}: {} reads compared, {} streams poisoned, {} refusals, {} faults",
        scheduler.name(),
        soak.compared,
        soak.poisoned,
        soak.refused,
        chaos.faults.load(Ordering::Relaxed),
    );
    assert!(soak.compared > 200, "values were compared");
    assert!(soak.poisoned > 10, "streams failed");
    assert!(soak.refused > 10, "links and compilers failed");
    drop(soak);
    // Work of streams that were dropped while they were busy ends on their own threads.
    for device in &devices {
        for _ in 0..1000 {
            if device.memory().used == 0 {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(
            device.memory().used,
            0,
            "all memory of {} is back",
            device.name()
        );
        assert_eq!(device.memory().pools, 0);
    }
}

/// Fails loudly, instead of hanging, if a soak does not end.
fn watched(name: &'static str, scheduler: Scheduler, seed: u64) {
    let (done, waiting) = std::sync::mpsc::channel();
    let worker = std::thread::spawn(move || {
        soak(name, scheduler, seed);
        let _ = done.send(());
    });
    let ended = waiting.recv_timeout(Duration::from_secs(300));
    if ended == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
        eprintln!("the soak test of {name} under {} hangs", scheduler.name());
        std::process::abort();
    }
    if let Err(panic) = worker.join() {
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn interp_sync() {
    watched("interp", Scheduler::Sync, 1);
}

#[test]
fn interp_threads() {
    watched("interp", Scheduler::Threads, 2);
}

#[test]
fn cc_sync() {
    watched("cc", Scheduler::Sync, 3);
}

#[test]
fn cc_threads() {
    watched("cc", Scheduler::Threads, 4);
}
