//! What waits for what, and what does not: shown with kernels that are held up until the test lets them go.
//!
//! A call that should not wait and does would wait for the test itself, and fails after a minute.

use crate::support::*;
use loopwright_runtime::faults::{FaultyDevice, Operation};
use loopwright_runtime::{DeviceError, HostDevice, Merge, Runtime, RuntimeOptions};
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;

const COUNT: &str = "state n: i64[]\nupdate n = n + 1";

everywhere! {
    fn line_13_scheduling_does_not_wait_while_there_is_room(place) {
        let options = RuntimeOptions {
            queue: NonZero::new(64).expect("not zero"),
            ..place.options()
        };
        let (gate, runtime) = Gate::new(place, options);
        let device = runtime.device(place.backend).expect("available");
        let stream = device.stream().expect("a stream");
        let held = link(&stream.context(), &compile_named(&device, HELD, COUNT));
        held.context().write("n", &[0i64]).expect("written");
        stream.wait().expect("written");
        for _ in 0..64 {
            held.schedule(&[]).expect("scheduled while the first one is held up");
        }
        assert_eq!(stream.is_idle(), place.scheduler == Scheduler::Sync);
        let scheduled = AtomicUsize::new(64);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..200 {
                    held.schedule(&[]).expect("scheduled");
                    scheduled.fetch_add(1, Ordering::SeqCst);
                }
            });
            let_others_run();
            if place.scheduler == Scheduler::Threads {
                // One that runs and 64 that wait.
                let now = scheduled.load(Ordering::SeqCst);
                assert!(now <= 65, "{now} are scheduled, and there is room for 64");
            }
            gate.open();
        });
        assert_eq!(read(held.context(), "n"), [264.], "none is dropped");
    }

    fn line_13_the_smallest_queue_is_enough(place) {
        // Work that waits for three other streams still goes through a queue with room for one.
        let options = RuntimeOptions {
            queue: NonZero::<usize>::MIN,
            ..place.options()
        };
        let device = place.runtime_with(options).device(place.backend).expect("available");
        let step = "input a: i64[i=8]\ninput b: i64[i]\ninput c: i64[i]\nstate n: i64[i]\nupdate n = n * 2 + a + b + c";
        let set = "static value in 0 .. 1000\ndim i = 8\noutput {name} = value + i";
        let routine = link(&device.stream().expect("a stream").context(), &compile(&device, "step", step));
        let sources = ["a", "b", "c"].map(|name| {
            let code = compile(&device, name, &set.replace("{name}", name));
            (name, link(&device.stream().expect("a stream").context(), &code))
        });
        // One routine that reads what three streams wrote for it, in place.
        let merge = "state n: i64[i=8]\ninput n.merge: i64[i]\nupdate n = n + n.merge";
        let other = link(&device.stream().expect("a stream").context(), &compile(&device, "merge", merge));
        routine.context().zero("n").expect("zeroed");
        other.context().zero("n").expect("zeroed");
        let how = match place.shares_memory() {
            true => Merge::Streaming,
            false => Merge::Copy,
        };
        let (mut n, mut sum) = (0i64, 0i64);
        for round in 0..100 {
            for (at, (name, source)) in sources.iter().enumerate() {
                source.schedule(&[("value", round + at as i64)]).expect("scheduled");
                routine.context().copy_from(name, source.context()).expect("scheduled");
            }
            routine.schedule(&[]).expect("scheduled");
            n = n.wrapping_mul(2).wrapping_add(3 * round + 3);
            other.context().merge_from("n", routine.context(), how).expect("scheduled");
            other.schedule(&[]).expect("scheduled");
            sum = sum.wrapping_add(n);
        }
        assert_eq!(read_array(routine.context(), "n").get_flat(0).as_i64(), Some(n));
        assert_eq!(read_array(other.context(), "n").get_flat(0).as_i64(), Some(sum));
    }

    fn line_15_siblings_do_not_wait_for_each_other(place) {
        let (gate, runtime) = Gate::new(place, place.options());
        let device = runtime.device(place.backend).expect("available");
        let [slow, quick] = [(); 2].map(|()| device.stream().expect("a stream"));
        let held = link(&slow.context(), &compile_named(&device, HELD, COUNT));
        let free = link(&quick.context(), &compile_named(&device, "free", COUNT));
        for routine in [&held, &free] {
            routine.context().zero("n").expect("zeroed");
        }
        held.schedule(&[]).expect("scheduled");
        for _ in 0..10 {
            free.run(&[]).expect("it runs while its sibling is held up");
        }
        assert_eq!(read(free.context(), "n"), [10.]);
        assert_eq!(slow.is_idle(), place.scheduler == Scheduler::Sync);
        gate.open();
        assert_eq!(read(held.context(), "n"), [1.]);
    }

    fn line_15_a_write_waits_for_reads_on_other_streams(place) {
        let (gate, runtime) = Gate::new(place, place.options());
        let device = runtime.device(place.backend).expect("available");
        let [owner, reader] = [(); 2].map(|()| device.stream().expect("a stream"));
        let next = link(&owner.context(), &compile_named(&device, "next", COUNT));
        let held = link(&reader.context(), &compile_named(&device, HELD, COUNT));
        next.context().write("n", &[7i64]).expect("written");
        held.context().zero("n").expect("zeroed");
        held.schedule(&[]).expect("scheduled");
        // Behind what is held up, so that the read has not happened when the write is scheduled.
        held.context().copy_from("n", next.context()).expect("scheduled");
        next.schedule(&[]).expect("scheduled");
        let_others_run();
        if place.scheduler == Scheduler::Threads {
            assert!(!owner.is_idle(), "it waits for the read");
        }
        gate.open();
        assert_eq!(read(held.context(), "n"), [7.], "the value from before the write");
        assert_eq!(read(next.context(), "n"), [8.]);
    }

    fn line_15_a_read_waits_for_writes_on_other_streams(place) {
        // The merge reads the buffer of another stream in place; a write behind it waits in turn.
        let (gate, runtime) = Gate::new(place, place.options());
        let device = runtime.device(place.backend).expect("available");
        let [a, b] = [(); 2].map(|()| device.stream().expect("a stream"));
        let held = link(&a.context(), &compile_named(&device, HELD, COUNT));
        let add = "state n: i64[]\ninput n.merge: i64[]\nupdate n = n + n.merge";
        let add = link(&b.context(), &compile_named(&device, "add", add));
        held.context().write("n", &[5i64]).expect("written");
        add.context().write("n", &[100i64]).expect("written");
        held.schedule(&[]).expect("scheduled");
        add.context().merge_from("n", held.context(), Merge::Streaming).expect("scheduled");
        add.schedule(&[]).expect("scheduled");
        // Behind the read, which is behind the write that is held up.
        held.context().write("n", &[0i64]).expect("written");
        let_others_run();
        if place.scheduler == Scheduler::Threads {
            assert!(!a.is_idle() && !b.is_idle());
        }
        gate.open();
        assert_eq!(read(add.context(), "n"), [106.]);
        assert_eq!(read(held.context(), "n"), [0.]);
    }

    fn line_34_the_host_does_not_wait_for_a_copy_between_devices(place) {
        let options = RuntimeOptions {
            devices: NonZero::new(2).expect("not zero"),
            ..place.options()
        };
        let (gate, runtime) = Gate::new(place, options);
        let [a, b] = [0, 1].map(|ordinal| {
            runtime.device(&format!("{}:{ordinal}", place.backend)).expect("available")
        });
        let held = link(&a.stream().expect("a stream").context(), &compile_named(&a, HELD, COUNT));
        let to = link(&b.stream().expect("a stream").context(), &compile_named(&b, "free", COUNT));
        held.context().write("n", &[1i64]).expect("written");
        held.schedule(&[]).expect("scheduled");
        // All of this comes back while the writer is held up.
        assert!(to.context().copy_from("n", held.context()).expect("scheduled"));
        to.schedule(&[]).expect("scheduled");
        let values = to.context().download("n").expect("scheduled").expect("it is there");
        let_others_run();
        let waits = place.scheduler == Scheduler::Threads;
        assert_eq!(values.is_done(), !waits, "the copy waits for its writer");
        assert_eq!(to.context().stream().is_idle(), !waits);
        gate.open();
        let values = values.wait().expect("copied");
        assert_eq!(values.to_f64(), [3.], "written, copied, counted");
    }

    fn line_36_nothing_is_done_before_it_is(place) {
        let (gate, runtime) = Gate::new(place, place.options());
        let device = runtime.device(place.backend).expect("available");
        let [a, b] = [(); 2].map(|()| device.stream().expect("a stream"));
        let held = link(&a.context(), &compile_named(&device, HELD, COUNT));
        held.context().zero("n").expect("zeroed");
        a.wait().expect("zeroed");
        let before = a.record();
        held.schedule(&[]).expect("scheduled");
        let after = a.record();
        b.wait_for(&after).expect("scheduled");
        let download = held.context().download("n").expect("scheduled").expect("it is there");
        let_others_run();
        let done = place.scheduler == Scheduler::Sync;
        assert!(before.is_done(), "the point before it is past");
        let agree = [after.is_done(), a.is_idle(), b.is_idle(), b.record().is_done(), download.is_done()];
        assert_eq!(agree, [done; 5]);
        // Those who wait are woken, on whichever thread they are.
        std::thread::scope(|scope| {
            let (woken, all) = channel();
            for _ in 0..3 {
                let woken = woken.clone();
                let after = after.clone();
                scope.spawn(move || woken.send(after.wait().is_ok()));
            }
            gate.open();
            assert_eq!(all.iter().take(3).collect::<Vec<_>>(), [true; 3]);
        });
        b.wait().expect("it ends");
        a.wait().expect("it ends");
        let agree = [after.is_done(), a.is_idle(), b.is_idle(), b.record().is_done(), download.is_done()];
        assert_eq!(agree, [true; 5]);
        assert_eq!(download.wait().expect("it runs").to_f64(), [1.]);
    }

    fn line_37_a_failure_wakes_all_who_wait(place) {
        // The kernel waits for a word and then fails; by then, three threads and a stream wait for it.
        let (fail, told) = channel::<()>();
        let told = std::sync::Mutex::new(told);
        let backend = place.kernel_backend();
        let plain = FaultyDevice::new(Arc::new(HostDevice::new(&*backend)), move |operation| {
            let Operation::Launch(HELD) = operation else { return None };
            let _ = told.lock().expect("one kernel at a time").recv();
            Some(DeviceError::Lost("the cable is out".to_owned()))
        });
        let mut runtime = Runtime::empty(place.options());
        runtime.add_platform(backend, vec![Arc::new(plain)]);
        let device = runtime.device(place.backend).expect("available");
        let [a, b] = [(); 2].map(|()| device.stream().expect("a stream"));
        let held = link(&a.context(), &compile_named(&device, HELD, COUNT));
        held.context().zero("n").expect("zeroed");
        let fail = match place.scheduler {
            // There is nobody to say the word while the caller runs the kernel.
            Scheduler::Sync => { drop(fail); None }
            Scheduler::Threads => Some(fail),
        };
        let scheduled = held.schedule(&[]);
        assert_eq!(scheduled.is_err(), place.scheduler == Scheduler::Sync);
        let point = a.record();
        let waits = b.wait_for(&point);
        assert_eq!(waits.is_err(), place.scheduler == Scheduler::Sync);
        let expected = format!(
            "device `{}`, stream `{}`: `held` failed: the device is lost: the cable is out",
            device.name(), a.name()
        );
        std::thread::scope(|scope| {
            let waiters: Vec<_> = (0..3).map(|_| scope.spawn(|| a.wait())).collect();
            let_others_run();
            drop(fail);
            for waiter in waiters {
                assert_eq!(message(waiter.join().expect("it is woken")), expected);
            }
        });
        let error = message(b.wait());
        let found = [b.name(), a.name(), "`held` failed", "the cable is out"].map(|part| error.contains(part));
        assert_eq!(found, [true; 4], "who waited, for whom, and why it failed: {error}");
    }

    fn line_37_a_reader_that_fails_does_not_fail_the_writer(place) {
        // `b` is to read `n` of `a`, and fails before it comes to that; `a` then writes `n` again.
        let (fail, told) = channel::<()>();
        let told = std::sync::Mutex::new(told);
        let backend = place.kernel_backend();
        let plain = FaultyDevice::new(Arc::new(HostDevice::new(&*backend)), move |operation| {
            let Operation::Launch(HELD) = operation else { return None };
            let _ = told.lock().expect("one kernel at a time").recv();
            Some(DeviceError::Other("out of luck".to_owned()))
        });
        let mut runtime = Runtime::empty(place.options());
        runtime.add_platform(backend, vec![Arc::new(plain)]);
        let device = runtime.device(place.backend).expect("available");
        let [a, b] = [(); 2].map(|()| device.stream().expect("a stream"));
        let count = link(&a.context(), &compile_named(&device, "count", COUNT));
        let held = link(&b.context(), &compile_named(&device, HELD, COUNT));
        count.context().zero("n").expect("zeroed");
        held.context().zero("n").expect("zeroed");
        let fail = match place.scheduler {
            Scheduler::Sync => { drop(fail); None }
            Scheduler::Threads => Some(fail),
        };
        let sync = place.scheduler == Scheduler::Sync;
        assert_eq!(held.schedule(&[]).is_err(), sync);
        assert_eq!(held.context().copy_from("n", count.context()).is_err(), sync);
        count.schedule(&[]).expect("it writes behind the reader");
        drop(fail);
        assert_eq!(read(count.context(), "n"), [1.], "the writer goes on");
        let error = message(b.wait());
        assert!(error.contains("out of luck"), "{error}");
    }
}
