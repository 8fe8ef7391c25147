//! The loader, and the cores that run what it loads.

use super::{image, load, machine, settings};
use crate::error::ManycoreError;
use crate::machine::Machine;
use crate::protocol::{Command, CommandArgument};
use crate::settings::Settings;

fn memory(slab: u64, bytes: u64) -> CommandArgument {
    CommandArgument::Memory {
        slab,
        offset: 0,
        bytes,
    }
}

fn words(machine: &Machine, slab: u64, count: usize) -> Vec<u64> {
    let mut bytes = vec![0; 8 * count];
    machine.read(slab, 0, &mut bytes).expect("it is there");
    let words = bytes.chunks_exact(8);
    words
        .map(|word| u64::from_ne_bytes(word.try_into().expect("eight bytes")))
        .collect()
}

#[test]
fn what_is_no_image_is_refused() {
    let Some((machine, backend)) = machine(settings()) else {
        return;
    };
    let whole = image(&backend, "").image;
    let mut another = whole.clone();
    another[0] = 0;
    for (bytes, reason) in [
        (&b""[..], "it is no image"),
        (b"nonsense", "it is no image"),
        (&another, "it is no image"),
        (&whole[..100], "it is not whole"),
        (&whole[..whole.len() / 2], "it is not whole"),
    ] {
        match machine.load(bytes) {
            Err(ManycoreError::Refused { reason: got, .. }) => {
                assert_eq!(got, format!("the image cannot be linked: {reason}"));
            }
            other => panic!("it must be refused, not answered with {other:?}"),
        }
    }
    let program = machine.load(&whole).expect("it is an image");
    for (name, reason) in [
        (
            "lw_kernel_other",
            "the program has no entry `lw_kernel_other`",
        ),
        ("exit", "the program has no entry `exit`"),
        (&"x".repeat(2000), "a name of 2000 bytes is too long"),
    ] {
        match machine.entry(program, name) {
            Err(ManycoreError::Refused { reason: got, .. }) => assert_eq!(got, reason),
            other => panic!("it must be refused, not answered with {other:?}"),
        }
    }
    // Piece by piece, in the wrong order.
    let command = Command::LoadBegin { bytes: 10 };
    let begun = machine
        .call(command, &"testing", |_| {}, |window| window.answer(1))
        .expect("there is room");
    let command = Command::LoadData {
        program: begun,
        offset: 8,
        bytes: 3,
    };
    match machine.call(command, &"testing", |_| {}, |_| ()) {
        Err(ManycoreError::Refused { reason, .. }) => {
            assert_eq!(reason, "3 bytes at 8 leave an image of 10 bytes");
        }
        other => panic!("it must be refused, not answered with {other:?}"),
    }
    let early = machine.entry(begun, "lw_kernel_test");
    assert!(
        matches!(early, Err(ManycoreError::Refused { .. })),
        "{early:?}"
    );
}

#[test]
fn programs_are_kept_apart() {
    let Some((machine, backend)) = machine(settings()) else {
        return;
    };
    let slab = machine.allocate(8).expect("there is memory");
    // Unloaded every other time: numbers of files and slots come into use again.
    let mut kept = Vec::new();
    for value in 0..8u64 {
        let body = format!("*(uint64_t *)args[0] = {value};");
        let loaded = load(&machine, &backend, &body);
        kept.push((value, loaded));
        for (value, loaded) in &kept {
            machine
                .launch("test", *loaded, [1; 3], [memory(slab, 8)].into_iter())
                .expect("it runs");
            assert_eq!(words(&machine, slab, 1), [*value]);
        }
        if value % 2 == 0 {
            let (_, (program, _)) = kept.remove(0);
            machine.discard_program(program);
        }
    }
}

#[test]
fn images_are_part_of_the_memory_and_given_back() {
    let small = Settings {
        memory: 64 << 10,
        ..settings()
    };
    let Some((machine, backend)) = machine(small) else {
        return;
    };
    let image = image(&backend, "").image;
    let mut fitted = None;
    for _ in 0..3 {
        let mut programs = Vec::new();
        let error = loop {
            match machine.load(&image) {
                Ok(program) => programs.push(program),
                Err(error) => break error,
            }
            assert!(programs.len() < 64, "64 KiB hold fewer images");
        };
        assert!(
            matches!(error, ManycoreError::OutOfMemory { .. }),
            "{error}"
        );
        assert_eq!(*fitted.get_or_insert(programs.len()), programs.len());
        for program in programs {
            machine.discard_program(program);
        }
    }
}

#[test]
fn loops_run_on_the_cores_in_their_local_memory() {
    let Some((machine, backend)) = machine(settings()) else {
        return;
    };
    let body = "rt->parallel_for(rt->context, *(int64_t *)args[1], each, args[0]);";
    let loaded = load(&machine, &backend, body);
    for (count, cores) in [(0, 0), (1, 1), (3, 3), (4, 4), (5, 4), (101, 4)] {
        let slab = machine.allocate(8 * count + 8).expect("there is memory");
        let arguments = [
            memory(slab, 8 * count as u64),
            CommandArgument::Integer(count as i64),
        ];
        machine
            .launch("test", loaded, [1; 3], arguments.into_iter())
            .expect("it runs");
        // Each iteration wrote where its stack is.
        let frames = words(&machine, slab, count + 1);
        assert_eq!(frames[count], 0, "nothing is written behind the last");
        let mut stacks: Vec<u64> = frames[..count].to_vec();
        assert!(stacks.iter().all(|frame| *frame != 0), "{count}: all ran");
        stacks.dedup();
        assert_eq!(
            stacks.len(),
            cores,
            "{count}: ranges of iterations, one for each core"
        );
        stacks.sort_unstable();
        // Local memories are far apart, with what guards them between.
        let apart = stacks.windows(2).all(|pair| pair[1] - pair[0] > 1 << 20);
        assert!(apart, "{count}: {stacks:x?}");
    }
}
