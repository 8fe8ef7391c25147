//! The accelerator checks what it is told.

use super::{load, machine, settings};
use crate::error::ManycoreError;
use crate::machine::Machine;
use crate::protocol::{Command, CommandArgument};
use crate::settings::STACK_RESERVE;
use crate::window::Window;

/// Gives a command that must be refused, for this reason; the accelerator goes on.
fn refused(machine: &Machine, command: Command, reason: &str) {
    let result = machine.call(command, &"testing", |_| {}, |_| ());
    match result {
        Err(ManycoreError::Refused { reason: got, .. }) => assert_eq!(got, reason, "{command:?}"),
        other => panic!("{command:?} must be refused, not answered with {other:?}"),
    }
    machine.greeting().expect("it goes on");
}

/// Frees slabs at once.
fn free(machine: &Machine, slabs: &[u64]) -> Result<(), ManycoreError> {
    let command = Command::Free {
        slabs: slabs.len() as u64,
    };
    let fill = |window: &mut Window| window.put_data_words(0, slabs);
    machine.call(command, &"testing", fill, |_| ())
}

#[test]
fn numbers_of_nothing_are_refused() {
    let Some((machine, _)) = machine(settings()) else {
        return;
    };
    for slab in [0, 7 << 32 | 3] {
        let reason = format!("there is no slab {slab:x} to free");
        match free(&machine, &[slab]) {
            Err(ManycoreError::Refused { reason: got, .. }) => assert_eq!(got, reason),
            other => panic!("{slab:x} must be refused, not answered with {other:?}"),
        }
    }
    refused(
        &machine,
        Command::Free { slabs: 1 << 61 },
        "2305843009213693952 slabs are more than the window holds",
    );
    let command = Command::Read {
        slab: u64::MAX,
        offset: 0,
        bytes: 1,
    };
    refused(
        &machine,
        command,
        "there is no slab ffffffffffffffff to transfer",
    );
    for command in [
        Command::LoadEnd { program: 9 },
        Command::Unload { program: 9 },
        Command::Entry {
            program: 9,
            bytes: 1,
        },
        Command::LoadData {
            program: 9,
            offset: 0,
            bytes: 0,
        },
        Command::Launch {
            program: 9,
            entry: 0,
            group: [1; 3],
            arguments: 0,
        },
    ] {
        refused(&machine, command, "there is no program 9");
    }
}

#[test]
fn a_slab_that_was_freed_is_gone_for_good() {
    let Some((machine, _)) = machine(settings()) else {
        return;
    };
    let slab = machine.allocate(100).expect("there is memory");
    // Those that are there go, whatever the others are.
    let other = machine.allocate(100).expect("there is memory");
    free(&machine, &[1 << 60, slab]).expect_err("one is not there");
    free(&machine, &[other]).expect("it is there");
    free(&machine, &[other]).expect_err("it is gone");
    // Enough of them that the slot comes into use again.
    for _ in 0..3 {
        machine.allocate(100).expect("there is memory");
    }
    let command = Command::Write {
        slab,
        offset: 0,
        bytes: 1,
    };
    refused(
        &machine,
        command,
        &format!("there is no slab {slab:x} to transfer"),
    );
}

#[test]
fn transfers_that_leave_a_slab_or_the_window_are_refused() {
    let Some((machine, _)) = machine(settings()) else {
        return;
    };
    let slab = machine.allocate(100).expect("there is memory");
    for (offset, bytes) in [(0, 101), (100, 1), (101, 0), (u64::MAX, 1), (1, 200_000)] {
        for command in [
            Command::Write {
                slab,
                offset,
                bytes,
            },
            Command::Read {
                slab,
                offset,
                bytes,
            },
        ] {
            let reason =
                format!("a transfer of {bytes} bytes at {offset} leaves a slab of 100 bytes");
            refused(&machine, command, &reason);
        }
    }
    let bytes = u64::MAX;
    let command = Command::Read {
        slab,
        offset: 0,
        bytes,
    };
    let reason = format!("a transfer of {bytes} bytes is more than the window's 258048");
    refused(&machine, command, &reason);
}

#[test]
fn launches_are_checked() {
    let Some((machine, backend)) = machine(settings()) else {
        return;
    };
    let (program, entry) = load(&machine, &backend, "");
    let launch = |entry, group, arguments| Command::Launch {
        program,
        entry,
        group,
        arguments,
    };
    refused(
        &machine,
        launch(entry + 1, [1; 3], 0),
        &format!("program {program:x} has no entry 1"),
    );
    refused(
        &machine,
        launch(entry, [1, 0, 1], 0),
        "a group of 0 work-items along axis 1",
    );
    refused(
        &machine,
        launch(entry, [1; 3], 1 << 60),
        "1152921504606846976 arguments are more than the window holds",
    );
    let slab = machine.allocate(64).expect("there is memory");
    let cases = [
        (
            CommandArgument::Memory {
                slab: 77,
                offset: 0,
                bytes: 0,
            },
            "argument 0 is in slab 4d, which is not there",
        ),
        (
            CommandArgument::Memory {
                slab,
                offset: 60,
                bytes: 5,
            },
            "argument 0 has 5 bytes at 60 of a slab of 64 bytes",
        ),
    ];
    for (argument, reason) in cases {
        let one = std::iter::once(argument);
        match machine.launch("test", (program, entry), [1; 3], one) {
            Err(ManycoreError::Refused { reason: got, .. }) => assert_eq!(got, reason),
            other => panic!("{argument:?} must be refused, not answered with {other:?}"),
        }
    }
    let nothing = std::iter::empty();
    machine
        .launch("test", (program, entry), [1; 3], nothing)
        .expect("it goes on");
}

#[test]
fn memory_is_limited_and_comes_back() {
    let Some((machine, _)) = machine(settings()) else {
        return;
    };
    let whole = 16 << 20;
    for bytes in [whole + 1, usize::MAX, 1 << 62] {
        match machine.allocate(bytes) {
            Err(ManycoreError::OutOfMemory { bytes: got, .. }) => assert_eq!(got, bytes as u64),
            other => panic!("{bytes} bytes are not there, got {other:?}"),
        }
    }
    for _ in 0..3 {
        let slab = machine.allocate(whole).expect("all of it");
        let more = machine.allocate(1);
        assert!(
            matches!(more, Err(ManycoreError::OutOfMemory { bytes: 1, .. })),
            "{more:?}"
        );
        machine.discard_slab(slab);
    }
    let half = machine.allocate(whole / 2).expect("half of it");
    machine.write(half, 0, &[1; 100]).expect("it is there");
    machine.discard_slab(half);
    let again = machine.allocate(whole).expect("all of it");
    let mut bytes = [1; 100];
    machine.read(again, 0, &mut bytes).expect("it is there");
    assert_eq!(bytes, [0; 100], "new memory is zeroed");
}

#[test]
fn the_reserve_is_enough() {
    let Some((machine, _)) = machine(settings()) else {
        return;
    };
    let greeting = machine.greeting().expect("it answers");
    assert_eq!(greeting.cores, 4);
    let taken = settings().local_memory as u64 - greeting.stack;
    // The rest is for calls from the firmware and into the mathematics library.
    assert!(
        taken + (4 << 10) <= STACK_RESERVE as u64,
        "a thread takes {taken} bytes of its stack"
    );
}
