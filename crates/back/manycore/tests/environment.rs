//! What the environment's variables say. In a file of its own, with one test: they belong to the whole process.
#![cfg(target_os = "linux")]

use loopwright_backend::{Describe, DeviceBackend, Hardware, Level, backends};
use loopwright_manycore::{Manycore, NAME, Settings};
use std::time::Duration;

fn set(name: &str, value: &str) {
    // SAFETY: the only test of this process; no other thread reads or writes the environment now.
    unsafe { std::env::set_var(name, value) };
}

#[test]
fn variables_are_read_and_those_without_sense_are_named() {
    set("LOOPWRIGHT_MANYCORE_DEVICES", "3");
    set("LOOPWRIGHT_MANYCORE_CORES", " 2 ");
    set("LOOPWRIGHT_MANYCORE_MEMORY", "64");
    set("LOOPWRIGHT_MANYCORE_TIMEOUT", "7");
    let settings = Settings::from_env().expect("all of them make sense");
    assert_eq!(settings.devices, 3);
    assert_eq!(settings.cores, 2);
    assert_eq!(settings.memory, 64 << 20);
    assert_eq!(settings.timeout, Duration::from_secs(7));

    let registered = || {
        let mut found = backends().into_iter();
        found
            .find(|backend| backend.name() == NAME)
            .expect("it is linked in")
    };
    let backend = registered();
    assert_eq!(backend.level(), Level::Device);
    assert_eq!(backend.hardware(), Hardware::Accelerator);
    let devices = backend.devices().expect("it has its own");
    assert_eq!(devices.len(), 3);
    assert_eq!(devices[0].limits().threads, 2);
    // Whoever asks gets the same accelerators.
    let again = registered().devices().expect("it has its own");
    assert!(std::ptr::addr_eq(
        std::sync::Arc::as_ptr(&devices[2]),
        std::sync::Arc::as_ptr(&again[2])
    ));

    for (name, value, most) in [
        ("LOOPWRIGHT_MANYCORE_TIMEOUT", "soon", 86400),
        ("LOOPWRIGHT_MANYCORE_MEMORY", "0", 1 << 20),
        ("LOOPWRIGHT_MANYCORE_CORES", "-1", 1024),
        ("LOOPWRIGHT_MANYCORE_DEVICES", "65", 64),
    ] {
        set(name, value);
        let backend = Manycore::from_env();
        let why = backend.availability().expect_err("it makes no sense");
        assert_eq!(
            why.reason,
            format!("{name} is `{value}`; it takes a number from 1 to {most}")
        );
        assert!(why.broken);
        assert!(backend.devices().is_empty());
        set(name, "");
    }
}
