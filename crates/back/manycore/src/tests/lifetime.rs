//! When accelerators begin and end.

use super::{backend, load, settings};
use crate::machine::Machine;
use crate::shared::Shared;
use loopwright_backend::{Describe, DeviceBackend, PlainDevice as _};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Whether there is a process of this number, be it one that has ended and that nobody has waited for.
fn exists(process: u32) -> bool {
    Path::new(&format!("/proc/{process}")).exists()
}

#[test]
fn nothing_starts_before_it_is_needed() {
    let Some(backend) = backend(settings()) else {
        return;
    };
    let devices = backend.devices();
    let limits = devices[0].limits();
    assert_eq!((limits.threads, limits.memory), (4, Some(16 << 20)));
    assert!(!limits.host_memory);
    assert_eq!(backend.counters().starts, 0);
    let slab = devices[0].allocate(100).expect("there is memory");
    assert_eq!(slab.bytes(), 100);
    assert!(slab.address().is_none());
    // Handles of later are of the same one.
    backend.devices()[0].allocate(1).expect("there is memory");
    assert_eq!(backend.counters().starts, 1);
}

#[test]
fn it_ends_with_the_last_that_needs_it() {
    let Some(backend) = backend(settings()) else {
        return;
    };
    let device = Shared::devices(backend.shared()).remove(0);
    let process = device.machine().expect("it starts").process();
    assert!(exists(process));
    let slab = device.allocate(100).expect("there is memory");
    drop(device);
    assert!(exists(process), "a slab keeps it");
    drop(slab);
    assert!(
        !exists(process),
        "nobody has it, and somebody has waited for it"
    );
}

#[test]
fn it_ends_when_the_host_is_gone() {
    let Some(backend) = backend(settings()) else {
        return;
    };
    let firmware = backend.shared().firmware().expect("the firmware compiles");
    let start = || {
        let counters = Arc::default();
        Machine::start("test", &firmware, &settings(), counters).expect("it starts")
    };
    // Waiting for a command, and in the middle of one: only its doorbell is closed, as the system does it with
    // everything that a process had.
    let idle = start();
    idle.hang_up();
    wait_for_end(&idle);
    let busy = Arc::new(start());
    let loaded = load(&busy, &backend, "for (;;) {}");
    busy.ring_and_hang_up(loaded);
    wait_for_end(&busy);
}

fn wait_for_end(machine: &Machine) {
    let began = Instant::now();
    while !machine.has_ended() {
        assert!(
            began.elapsed() < Duration::from_secs(30),
            "it goes on and on"
        );
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn without_a_compiler_it_says_so() {
    let mut none = settings();
    none.compiler.compiler = "/nowhere/cc".to_owned();
    let backend = crate::Manycore::new(none);
    let why = backend.availability().expect_err("there is no compiler");
    assert!(
        why.to_string().contains("`/nowhere/cc` was not found"),
        "{why}"
    );
    let error = backend.devices()[0]
        .allocate(1)
        .map(|_| ())
        .expect_err("no firmware");
    assert!(
        error.to_string().contains("`/nowhere/cc` was not found"),
        "{error}"
    );
}

#[test]
fn settings_that_cannot_be() {
    for (wrong, reason) in [
        (
            crate::Settings {
                cores: 0,
                ..settings()
            },
            "0 cores are refused, 1 to 1024 are allowed",
        ),
        (
            crate::Settings {
                local_memory: 1000,
                ..settings()
            },
            "1000 bytes of local memory are refused, 32 KiB to 1 MiB in steps of 4 KiB are allowed",
        ),
        (
            crate::Settings {
                window: 4096,
                ..settings()
            },
            "a window of 4096 bytes is refused, 8 KiB to 64 MiB in steps of 4 KiB are allowed",
        ),
    ] {
        let backend = crate::Manycore::new(wrong);
        let why = backend.availability().expect_err("it makes no sense");
        assert_eq!(why.reason, reason);
        assert!(backend.devices().is_empty());
    }
}
