//! Data gets there and back whole.

use super::{machine, settings};
use crate::settings::Settings;

/// A generator of numbers that look random, the same each time.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % below
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next(256) as u8).collect()
    }
}

#[test]
fn sizes_around_the_window() {
    let window = 16 << 10;
    let data = window - 4096;
    let small = Settings {
        window,
        ..settings()
    };
    let Some((machine, backend)) = machine(small) else {
        return;
    };
    let mut numbers = Numbers(1);
    for bytes in [
        0,
        1,
        7,
        4096,
        data - 1,
        data,
        data + 1,
        2 * data,
        5 * data + 3,
    ] {
        let before = backend.counters();
        let slab = machine.allocate(bytes).expect("there is memory");
        let sent = numbers.bytes(bytes);
        machine.write(slab, 0, &sent).expect("it fits");
        let mut got = vec![0; bytes];
        machine.read(slab, 0, &mut got).expect("it is there");
        assert!(sent == got, "{bytes} bytes come back as they went");
        let after = backend.counters();
        let pieces = bytes.div_ceil(data) as u64;
        assert_eq!(after.uploads - before.uploads, pieces, "{bytes} bytes");
        assert_eq!(after.downloads - before.downloads, pieces, "{bytes} bytes");
        assert_eq!(after.uploaded_bytes - before.uploaded_bytes, bytes as u64);
        assert_eq!(
            after.downloaded_bytes - before.downloaded_bytes,
            bytes as u64
        );
    }
}

#[test]
fn pieces_anywhere_change_nothing_else() {
    let small = Settings {
        window: 8 << 10,
        ..settings()
    };
    let Some((machine, _)) = machine(small) else {
        return;
    };
    let bytes = 50_000;
    let slab = machine.allocate(bytes).expect("there is memory");
    let neighbour = machine.allocate(bytes).expect("there is memory");
    let mut expected = vec![0; bytes];
    let mut numbers = Numbers(2);
    for _ in 0..200 {
        let offset = numbers.next(bytes);
        let count = numbers.next(10_000).min(bytes - offset);
        let piece = numbers.bytes(count);
        machine.write(slab, offset, &piece).expect("it fits");
        expected[offset..offset + count].copy_from_slice(&piece);
        let offset = numbers.next(bytes);
        let count = numbers.next(10_000).min(bytes - offset);
        let mut piece = vec![1; count];
        machine.read(slab, offset, &mut piece).expect("it is there");
        assert!(
            piece == expected[offset..offset + count],
            "{count} at {offset}"
        );
    }
    let mut rest = vec![1; bytes];
    machine.read(neighbour, 0, &mut rest).expect("it is there");
    assert!(
        rest.iter().all(|byte| *byte == 0),
        "the other slab is as it was"
    );
}

#[test]
fn many_threads_share_an_accelerator() {
    let Some((machine, backend)) = machine(settings()) else {
        return;
    };
    let loaded = super::load(
        &machine,
        &backend,
        "for (int i = 0; i < 1000; i++) ((uint64_t *)args[0])[i] += *(uint64_t *)args[1];",
    );
    std::thread::scope(|scope| {
        for thread in 0..6u64 {
            let machine = &machine;
            scope.spawn(move || {
                let slab = machine.allocate(8000).expect("there is memory");
                for round in 1..=20 {
                    let arguments = [
                        crate::protocol::CommandArgument::Memory {
                            slab,
                            offset: 0,
                            bytes: 8000,
                        },
                        crate::protocol::CommandArgument::Integer(thread as i64),
                    ];
                    machine
                        .launch("test", loaded, [1; 3], arguments.into_iter())
                        .expect("it runs");
                    let mut bytes = [0; 8];
                    machine
                        .read(slab, 8 * 999, &mut bytes)
                        .expect("it is there");
                    assert_eq!(u64::from_ne_bytes(bytes), thread * round);
                }
            });
        }
    });
}
