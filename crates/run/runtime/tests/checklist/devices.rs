//! Backends, devices, streams, failures.

use crate::support::*;
use loopwright_backend::{
    Backend, BackendError, CompileOptions, Describe, Executable, KernelBackend, Target, Unavailable,
};
use loopwright_graph::Array;
use loopwright_kernel::Module;
use loopwright_runtime::faults::{FaultyDevice, Operation};
use loopwright_runtime::{DeviceError, HostDevice, Runtime, RuntimeOptions};
use std::collections::BTreeSet;
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A backend that cannot be used, for a reason.
struct Absent {
    broken: bool,
}

impl Describe for Absent {
    fn name(&self) -> &str {
        "absent"
    }

    fn availability(&self) -> Result<(), Unavailable> {
        Err(Unavailable {
            reason: "there is no such hardware".to_owned(),
            help: "buy some".to_owned(),
            broken: self.broken,
        })
    }

    fn target(&self) -> Target {
        Target::SCALAR
    }
}

impl KernelBackend for Absent {
    fn compile(
        &self,
        _module: &Module,
        _options: &CompileOptions,
    ) -> Result<Arc<dyn Executable>, BackendError> {
        unreachable!("it is never available")
    }
}

everywhere! {
    fn line_01_results_are_the_references(place) {
        let text = "
size M = 5, N = 7
input a: f32[i=M, j=N]
input b: f32[j]
centred = a - mean[j](a)
output c = sum[j](centred * b)
output d = max[i](a)
";
        let graph = program(text);
        let device = place.device();
        let routine = link(&device.stream().expect("a stream").context(), &compile(&device, "program", text));
        let values = |count: usize| -> Vec<f32> { (0..count).map(|at| (at as f32 * 1.7).cos()).collect() };
        let (a, b) = (values(35), values(7));
        write(routine.context(), "a", &a);
        write(routine.context(), "b", &b);
        routine.schedule(&[]).expect("scheduled");
        let array = |shape: &[usize], values: &[f32]| {
            Array::from_bytes(
                loopwright_ops::DType::F32,
                shape,
                &values.iter().flat_map(|value| value.to_ne_bytes()).collect::<Vec<u8>>(),
            )
            .expect("an array")
        };
        let binding = graph.bind(&[]).expect("bound");
        let inputs = [("a", array(&[5, 7], &a)), ("b", array(&[7], &b))];
        let expected = reference(&graph, &binding, &inputs);
        for (name, expected) in expected {
            let got = read(routine.context(), &name);
            for (got, expected) in got.iter().zip(expected.to_f64()) {
                assert!((got - expected).abs() <= 1e-5 * expected.abs().max(1.), "{name}: {got} and {expected}");
            }
        }
    }

    fn line_02_devices_are_chosen_by_name(place) {
        let runtime = place.runtime();
        let device = runtime.device(place.backend).expect("available");
        assert_eq!(device.name(), format!("{}:0", place.backend));
        assert_eq!(device.backend().name(), place.backend);
        let refused = message(runtime.device("gpu"));
        assert!(refused.starts_with("there is no device `gpu`; the devices are "), "{refused}");
        assert!(refused.contains(place.backend) && refused.ends_with(" and auto"), "{refused}");
        assert_eq!(
            message(runtime.device(&format!("{}:7", place.backend))),
            format!("`{}` has 1 device(s), numbered from 0; there is no 7", place.backend)
        );
        assert_eq!(
            message(runtime.device(&format!("{}:x", place.backend))),
            format!("`{}` has 1 device(s), numbered from 0; there is no x", place.backend)
        );
    }

    fn line_03_auto_passes_over_what_is_missing_and_not_what_is_broken(place) {
        let mut runtime = Runtime::empty(place.options());
        runtime.add_backend(Backend::kernel_backend(Absent { broken: false }));
        runtime.add_backend(place.kernel_backend());
        let choice = runtime.choose("auto").expect("the second");
        assert_eq!(choice.device.backend().name(), place.backend);
        let [(name, why)] = &choice.passed_over[..] else {
            panic!("one is passed over");
        };
        assert_eq!((name.as_str(), why.reason.as_str()), ("absent", "there is no such hardware"));
        assert_eq!(
            message(runtime.device("absent")),
            "device `absent` is not available: there is no such hardware; buy some"
        );
        let mut runtime = Runtime::empty(place.options());
        runtime.add_backend(Backend::kernel_backend(Absent { broken: true }));
        runtime.add_backend(place.kernel_backend());
        let error = message(runtime.device("auto"));
        assert!(error.starts_with("device `absent` is broken: there is no such hardware"), "{error}");
        let mut none = Runtime::empty(place.options());
        none.add_backend(Backend::kernel_backend(Absent { broken: false }));
        let error = message(none.device("auto"));
        assert!(error.contains("absent: there is no such hardware"), "{error}");
    }

    fn line_04_two_runtimes_share_no_state(place) {
        let [a, b] = [place.runtime(), place.runtime()];
        let [a, b] = [&a, &b].map(|runtime| runtime.device(place.backend).expect("available"));
        assert!(a != b);
        let code = compile(&a, "next", "input x: f32[i=4]\noutput y = x + 1");
        let routine = link(&a.stream().expect("a stream").context(), &code);
        write(routine.context(), "x", &[1.; 4]);
        assert!(a.memory().used > 0);
        assert_eq!(b.memory().used, 0);
        assert_eq!(b.compiler().compile_count(), 0);
        let error = message(b.stream().expect("a stream").context().link(&code, &Default::default()));
        assert!(error.contains("was compiled for"), "{error}");
    }

    fn line_05_a_scheduler_is_added_to_a_plain_backend(place) {
        let device = place.device();
        let stream = device.stream().expect("a stream");
        let routine = link(&stream.context(), &compile(&device, "count", "state n: i64[]\nupdate n = n + 1"));
        routine.context().zero("n").expect("zeroed");
        routine.schedule(&[]).expect("scheduled");
        if place.scheduler == Scheduler::Sync {
            assert!(stream.is_idle(), "it ran before scheduling it returned");
        }
        stream.wait().expect("it runs");
        assert!(stream.is_idle());
    }

    fn line_15_dependences_between_streams(place) {
        // A chain of reads and writes that hops between streams; siblings stay independent.
        let device = place.device();
        let streams: Vec<_> = (0..4).map(|_| device.stream().expect("a stream")).collect();
        let code = compile(&device, "mix", "
input x: i64[i=64]
state n: i64[i]
update n = n * 3 + x
");
        let routines: Vec<_> = streams.iter().map(|stream| link(&stream.context(), &code)).collect();
        for (at, routine) in routines.iter().enumerate() {
            routine.context().write("n", &[at as i64; 64]).expect("written");
            routine.context().write("x", &[1i64; 64]).expect("written");
        }
        let mut n: Vec<i64> = (0..4).collect();
        let mut x = [1i64; 4];
        for round in 0..200 {
            let (from, to) = (round % 4, (round * 7 + 1) % 4);
            routines[from].schedule(&[]).expect("scheduled");
            n[from] = n[from].wrapping_mul(3).wrapping_add(x[from]);
            if from != to {
                assert!(routines[to].context().copy_from("n", routines[from].context()).expect("scheduled"));
                n[to] = n[from];
                routines[to].schedule(&[]).expect("scheduled");
                n[to] = n[to].wrapping_mul(3).wrapping_add(x[to]);
                routines[from].context().write("x", &[round as i64; 64]).expect("written");
                x[from] = round as i64;
            }
        }
        for (at, routine) in routines.iter().enumerate() {
            let got = read_array(routine.context(), "n");
            for element in got.iter() {
                assert_eq!(element.as_i64(), Some(n[at]), "stream {at}");
            }
        }
    }

    fn line_35_ordinals_and_streams(place) {
        let options = RuntimeOptions {
            devices: NonZero::new(3).expect("not zero"),
            ..place.options()
        };
        let runtime = place.runtime_with(options);
        let devices: Vec<_> = (0..3)
            .map(|at| runtime.device(&format!("{}:{at}", place.backend)).expect("available"))
            .collect();
        for (at, device) in devices.iter().enumerate() {
            assert_eq!(device.ordinal(), at);
            assert!(device.suggested_streams() >= 1);
            assert_eq!(*device, runtime.device(&format!("{}:{at}", place.backend)).expect("the same"));
        }
        let streams: Vec<_> = devices
            .iter()
            .flat_map(|device| (0..5).map(|_| device.stream().expect("a stream")))
            .collect();
        let ids: BTreeSet<u64> = streams.iter().map(|stream| stream.id()).collect();
        let names: BTreeSet<&str> = streams.iter().map(|stream| stream.name()).collect();
        assert_eq!((ids.len(), names.len()), (15, 15));
        assert_eq!(streams[7].name(), format!("{}:1.2", place.backend));
        assert_eq!(streams[7].device(), devices[1]);
    }

    fn line_36_waiting_idleness_and_events_agree(place) {
        let device = place.device();
        let stream = device.stream().expect("a stream");
        let routine = link(&stream.context(), &compile(&device, "count", "state n: i64[]\nupdate n = n + 1"));
        assert!(stream.is_idle() && stream.record().is_done());
        routine.context().zero("n").expect("zeroed");
        let mut events = Vec::new();
        for _ in 0..100 {
            routine.schedule(&[]).expect("scheduled");
            events.push(stream.record());
        }
        // In order: what is done is a prefix.
        let done: Vec<bool> = events.iter().map(|event| event.is_done()).collect();
        assert!(done.is_sorted_by(|a, b| a >= b), "{done:?}");
        events[50].wait().expect("it runs");
        assert!(events[..=50].iter().all(|event| event.is_done()));
        stream.wait().expect("all of it runs");
        assert!(events.iter().all(|event| event.is_done()) && stream.is_idle());
    }

    fn line_36_streams_wait_for_events(place) {
        let device = place.device();
        let [a, b] = [(); 2].map(|()| device.stream().expect("a stream"));
        let count = compile(&device, "count", "state n: i64[]\nupdate n = n + 1");
        let first = link(&a.context(), &count);
        first.context().zero("n").expect("zeroed");
        for _ in 0..100 {
            first.schedule(&[]).expect("scheduled");
        }
        let point = a.record();
        b.wait_for(&point).expect("scheduled");
        b.wait().expect("it ends");
        assert!(point.is_done());
    }

    fn line_37_an_error_reaches_the_next_touch(place) {
        let failing = Arc::new(AtomicBool::new(false));
        let switch = Arc::clone(&failing);
        let backend = place.kernel_backend();
        let plain = FaultyDevice::new(Arc::new(HostDevice::new(&*backend)), move |operation| {
            let fails = matches!(operation, Operation::Launch(_)) && switch.load(Ordering::Relaxed);
            fails.then(|| DeviceError::Other("out of luck".to_owned()))
        });
        let mut runtime = Runtime::empty(place.options());
        runtime.add_platform(backend, vec![Arc::new(plain)]);
        let device = runtime.device(place.backend).expect("available");
        let stream = device.stream().expect("a stream");
        let healthy = device.stream().expect("a stream");
        let code = compile(&device, "count", "state n: i64[]\nupdate n = n + 1");
        let routine = link(&stream.context(), &code);
        let other = link(&healthy.context(), &code);
        routine.context().zero("n").expect("zeroed");
        other.context().zero("n").expect("zeroed");
        routine.run(&[]).expect("it works");
        let before = stream.record();
        failing.store(true, Ordering::Relaxed);
        let expected = format!(
            "device `{}`, stream `{}`: `count` failed: out of luck",
            device.name(), stream.name()
        );
        // With a worker, scheduling may come back before the failure is known.
        if let Err(error) = routine.schedule(&[]) {
            assert_eq!(error.to_string(), expected);
        }
        let event = stream.record();
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| assert!(event.wait().is_err() || place.scheduler == Scheduler::Sync));
            }
        });
        assert_eq!(message(stream.check()), expected);
        assert_eq!(message(routine.schedule(&[])), expected);
        assert_eq!(message(routine.context().read("n")), expected);
        assert!(before.wait().is_ok(), "what ended before stays right");
        failing.store(false, Ordering::Relaxed);
        // The runtime stays usable: other streams go on, new ones work.
        other.run(&[]).expect("another stream");
        let again = link(&device.stream().expect("a new stream").context(), &code);
        again.context().zero("n").expect("zeroed");
        again.run(&[]).expect("it works");
        assert_eq!(read(again.context(), "n"), [1.]);
        // What was written before the failure can be had from another stream.
        if place.scheduler == Scheduler::Threads {
            let error = again.context().copy_from("n", routine.context());
            if error.is_ok() {
                let error = message(again.context().stream().wait());
                assert!(error.contains(stream.name()) && error.contains("out of luck"), "{error}");
            }
        }
    }

    fn line_37_a_panic_is_a_failure(place) {
        let backend = place.kernel_backend();
        let plain = FaultyDevice::new(Arc::new(HostDevice::new(&*backend)), |operation| {
            assert!(!matches!(operation, Operation::Launch(_)), "the device panics");
            None
        });
        let mut runtime = Runtime::empty(place.options());
        runtime.add_platform(backend, vec![Arc::new(plain)]);
        let device = runtime.device(place.backend).expect("available");
        let routine = link(&device.stream().expect("a stream").context(), &compile(&device, "set", "state n: i64[]\nupdate n = 1"));
        let error = message(routine.run(&[]));
        assert!(error.contains("`set` panicked: the device panics"), "{error}");
    }

    fn line_37_a_compiler_that_fails_says_so(place) {
        let backend = place.kernel_backend().refusing(|_| {
            Some(BackendError::Compiler {
                compiler: "a compiler".to_owned(),
                source_path: "kernel.c".to_owned(),
                log: "error: out of ideas".to_owned(),
            })
        });
        let mut runtime = Runtime::empty(place.options());
        runtime.add_backend(backend);
        let device = runtime.device(place.backend).expect("available");
        let graph = program("output y = 1");
        let error = message(device.compile("one", &graph, &Default::default()));
        assert_eq!(error, "`one`: a compiler failed on kernel.c:\nerror: out of ideas");
    }
}
