//! What a kernel gone wrong does to its accelerator, and what is said about it.

use super::{SHORT, backend, load, machine, settings};
use crate::error::ManycoreError;
use crate::machine::Machine;
use crate::protocol::CommandArgument;
use crate::settings::Settings;
use loopwright_backend::{DeviceBackend, DeviceError};

/// Runs something that ends the accelerator; gives what is said.
fn lost(machine: &Machine, loaded: (u64, u64)) -> String {
    let said = match machine.launch("test", loaded, [1; 3], std::iter::empty()) {
        Err(error @ ManycoreError::Lost { .. }) => error.to_string(),
        other => panic!("the accelerator must be lost, not answer with {other:?}"),
    };
    assert!(machine.is_lost());
    // Everything after it says the same.
    let after = machine.allocate(1).expect_err("it is gone");
    assert_eq!(after.to_string(), said);
    said
}

#[test]
fn a_wild_access() {
    let Some((machine, backend)) = machine(settings()) else {
        return;
    };
    let loaded = load(&machine, &backend, "*(volatile int *)64 = 1;");
    assert_eq!(
        lost(&machine, loaded),
        "`test` was ended by signal 11 (SIGSEGV) while running kernel `test`: core 0, at address 0x40"
    );
}

#[test]
fn too_much_for_the_local_memory_of_a_core() {
    let Some((one, backend)) = machine(settings()) else {
        return;
    };
    let body = "volatile char all[100000]; for (int i = 99999; i >= 0; i--) all[i] = 1;";
    let loaded = load(&one, &backend, body);
    assert_eq!(
        lost(&one, loaded),
        "`test` was ended by signal 11 (SIGSEGV) while running kernel `test`: \
         core 0 needed more than its 64 KiB of local memory"
    );
    // What fits, does.
    let (two, _) = machine(settings()).expect("there is a compiler");
    let loaded = load(
        &two,
        &backend,
        &body.replace("99999", "51999").replace("100000", "52000"),
    );
    two.launch("test", loaded, [1; 3], std::iter::empty())
        .expect("it fits");
}

#[test]
fn a_core_that_aborts() {
    let Some((machine, backend)) = machine(settings()) else {
        return;
    };
    let loaded = load(&machine, &backend, "__builtin_abort();");
    assert_eq!(
        lost(&machine, loaded),
        "`test` was ended by signal 6 (SIGABRT) while running kernel `test`"
    );
}

#[test]
fn a_process_that_exits() {
    let Some((machine, backend)) = machine(settings()) else {
        return;
    };
    let loaded = load(&machine, &backend, "void _exit(int); _exit(5);");
    assert_eq!(
        lost(&machine, loaded),
        "`test` ended with exit status: 5 while running kernel `test`"
    );
}

#[test]
fn a_kernel_that_does_not_end() {
    let impatient = Settings {
        timeout: SHORT,
        ..settings()
    };
    let Some((machine, backend)) = machine(impatient) else {
        return;
    };
    let loaded = load(&machine, &backend, "for (;;) {}");
    assert_eq!(
        lost(&machine, loaded),
        "`test` was stopped, because it did not come to an end within 1 s while running kernel `test`; \
         LOOPWRIGHT_MANYCORE_TIMEOUT sets the limit"
    );
}

/// Ends an accelerator's process.
fn kill(process: u32) {
    let process = libc::pid_t::try_from(process).expect("a process's number");
    // SAFETY: a plain system call; the process is a child that has not been waited for.
    assert_eq!(unsafe { libc::kill(process, libc::SIGKILL) }, 0);
}

#[test]
fn killed_from_outside_while_a_kernel_runs() {
    let Some((machine, backend)) = machine(settings()) else {
        return;
    };
    let loaded = load(&machine, &backend, "for (;;) {}");
    let process = machine.process();
    std::thread::scope(|scope| {
        scope.spawn(|| kill(process));
        assert_eq!(
            lost(&machine, loaded),
            "`test` was ended by signal 9 (SIGKILL) while running kernel `test`"
        );
    });
}

#[test]
fn killed_from_outside_while_it_waits() {
    let Some(backend) = backend(settings()) else {
        return;
    };
    let device = crate::shared::Shared::devices(backend.shared()).remove(0);
    let machine = device.machine().expect("it starts");
    kill(machine.process());
    let error = machine.allocate(1).expect_err("it is gone");
    assert_eq!(
        error.to_string(),
        "`manycore0` was ended by signal 9 (SIGKILL) while allocating memory"
    );
    let error = DeviceError::from(error);
    assert!(matches!(error, DeviceError::Lost(_)), "{error}");
    // Whoever asks now gets another one, and the lost one stays lost.
    let another = backend.devices().remove(0);
    another.allocate(1).expect("it works");
    assert!(device.is_lost());
    assert_eq!(backend.counters().starts, 2);
}

#[test]
fn others_go_on() {
    let two = Settings {
        devices: 2,
        ..settings()
    };
    let Some(backend) = backend(two) else {
        return;
    };
    let devices = crate::shared::Shared::devices(backend.shared());
    let [first, second] = [0, 1].map(|at: usize| devices[at].machine().expect("it starts"));
    assert_ne!(first.process(), second.process());
    let crash = load(&first, &backend, "*(volatile int *)64 = 1;");
    lost(&first, crash);
    let slab = second.allocate(8).expect("it works");
    let loaded = load(&second, &backend, "*(uint64_t *)args[0] = 42;");
    let argument = CommandArgument::Memory {
        slab,
        offset: 0,
        bytes: 8,
    };
    second
        .launch("test", loaded, [1; 3], std::iter::once(argument))
        .expect("it runs");
    let mut bytes = [0; 8];
    second.read(slab, 0, &mut bytes).expect("it is there");
    assert_eq!(u64::from_ne_bytes(bytes), 42);
}
