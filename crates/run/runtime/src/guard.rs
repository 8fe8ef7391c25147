//! Guarded memory: arrays between pages that nothing may touch, so that a kernel that leaves its array crashes where it does.
//!
//! For looking for mistakes of a backend or of the compiler: with `LOOPWRIGHT_GUARD_PAGES=1` every array of the host's memory is a
//! mapping of its own, ends where a protected page begins (but for the alignment that arrays have, whose bytes are filled with a
//! pattern and looked at when the array goes), and begins behind another. It costs two system calls and at least three pages an
//! array, and a system has a limit of mappings for a process.

use loopwright_threads::PerProcess;

/// Whether arrays are guarded.
pub(crate) fn is_on() -> bool {
    static ON: PerProcess<bool> = PerProcess::new();
    *ON.get_or_init(|| {
        cfg!(unix) && std::env::var("LOOPWRIGHT_GUARD_PAGES").is_ok_and(|value| value.trim() == "1")
    })
}

#[cfg(unix)]
pub(crate) use mapping::Guarded;

#[cfg(unix)]
mod mapping {
    use loopwright_backend::ALIGNMENT;
    use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
    use std::ptr::{NonNull, null_mut};

    /// Bytes of a guard: a multiple of the page of every system.
    const GUARD: usize = 64 << 10;
    /// What lies between the end of an array and the guard behind it.
    const PATTERN: u8 = 0xA5;

    /// A mapping with a guard at each end and zeroed memory between them.
    pub(crate) struct Guarded {
        map: NonNull<u8>,
        /// Of the whole mapping.
        mapped: usize,
        /// Of the array, which ends as near to the guard behind it as its alignment allows.
        bytes: usize,
    }

    impl Guarded {
        pub(crate) fn zeroed(bytes: usize) -> Option<Guarded> {
            let usable = bytes.checked_next_multiple_of(GUARD)?;
            let mapped = usable.checked_add(2 * GUARD)?;
            // SAFETY: a fresh anonymous mapping at an address of the system's choice overlaps nothing.
            let map = unsafe {
                mmap_anonymous(null_mut(), mapped, ProtFlags::empty(), MapFlags::PRIVATE)
            };
            let guarded = Guarded {
                map: NonNull::new(map.ok()?.cast())?,
                mapped,
                bytes,
            };
            let flags = MprotectFlags::READ | MprotectFlags::WRITE;
            // SAFETY: the range lies within the mapping, which nothing else knows of.
            unsafe { mprotect(guarded.map.add(GUARD).as_ptr().cast(), usable, flags) }.ok()?;
            // SAFETY: the bytes behind the array are in the part that can be written.
            unsafe { guarded.behind().write_bytes(PATTERN, guarded.slack()) };
            Some(guarded)
        }

        /// Where the array begins.
        pub(crate) fn start(&self) -> NonNull<u8> {
            let behind = self.mapped - GUARD;
            // SAFETY: the offset is at least that of the first usable byte.
            unsafe { self.map.add(behind - self.bytes - self.slack()) }
        }

        /// Where it ends.
        fn behind(&self) -> NonNull<u8> {
            // SAFETY: at most the start of the guard behind.
            unsafe { self.start().add(self.bytes) }
        }

        /// Bytes between its end and the guard.
        fn slack(&self) -> usize {
            self.bytes.next_multiple_of(ALIGNMENT) - self.bytes
        }

        /// Which byte behind the array was written to, if any.
        pub(crate) fn written_behind(&self) -> Option<usize> {
            // SAFETY: readable bytes of the mapping.
            let slack = unsafe { std::slice::from_raw_parts(self.behind().as_ptr(), self.slack()) };
            slack.iter().position(|byte| *byte != PATTERN)
        }
    }

    impl Drop for Guarded {
        fn drop(&mut self) {
            if let Some(at) = self.written_behind() {
                eprintln!(
                    "loopwright: byte {at} behind an array of {} bytes was written to (LOOPWRIGHT_GUARD_PAGES)",
                    self.bytes
                );
                // What was written over would have been another array.
                std::process::abort();
            }
            // SAFETY: the whole mapping, which is our own, once.
            let unmapped = unsafe { munmap(self.map.as_ptr().cast(), self.mapped) };
            debug_assert!(unmapped.is_ok(), "a mapping of ours can be unmapped");
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn arrays_of_any_size_are_zero_aligned_and_end_beside_the_guard() {
            for bytes in [0, 1, 63, 64, 65, GUARD - 1, GUARD, GUARD + 1, 3 * GUARD] {
                let guarded = Guarded::zeroed(bytes).expect("there is memory");
                let start = guarded.start();
                assert_eq!(start.addr().get() % ALIGNMENT, 0);
                // SAFETY: the array's own bytes.
                let array = unsafe { std::slice::from_raw_parts(start.as_ptr(), bytes) };
                assert!(array.iter().all(|byte| *byte == 0));
                assert_eq!((start.addr().get() + bytes + guarded.slack()) % GUARD, {
                    guarded.map.addr().get() % GUARD
                });
                assert_eq!(guarded.written_behind(), None);
            }
        }

        #[test]
        #[cfg(target_os = "linux")]
        fn nothing_may_touch_what_lies_beside_an_array() {
            let guarded = Guarded::zeroed(100).expect("there is memory");
            let maps = std::fs::read_to_string("/proc/self/maps").expect("a list of mappings");
            let protection = |address: usize| {
                let holds = |line: &&str| {
                    let range = line
                        .split(' ')
                        .next()
                        .and_then(|range| range.split_once('-'));
                    let number = |text| usize::from_str_radix(text, 16).expect("an address");
                    range.is_some_and(|(low, high)| (number(low)..number(high)).contains(&address))
                };
                let line = maps.lines().find(holds).expect("it is mapped");
                line.split(' ').nth(1).map(str::to_owned)
            };
            let map = guarded.map.addr().get();
            let behind = map + guarded.mapped - GUARD;
            for guard in [map, map + GUARD - 1, behind, behind + GUARD - 1] {
                assert_eq!(protection(guard).as_deref(), Some("---p"));
            }
            assert_eq!(
                protection(guarded.start().addr().get()).as_deref(),
                Some("rw-p")
            );
        }

        #[test]
        fn a_byte_behind_an_array_is_noticed() {
            let guarded = Guarded::zeroed(10).expect("there is memory");
            // SAFETY: within the mapping: the third byte behind the array.
            unsafe { guarded.start().add(12).write(0) };
            assert_eq!(guarded.written_behind(), Some(2));
            // SAFETY: as above. Dropped with a wrong byte it would end the process.
            unsafe { guarded.start().add(12).write(PATTERN) };
        }
    }
}
