//! Executable memory: written first, executable then, never both.

use std::io;
use std::ptr::{self, NonNull};

use rustix::mm::{self, MapFlags, MprotectFlags, ProtFlags};
use thiserror::Error;

/// The page of x86-64.
const PAGE: usize = 4096;

/// Why machine code could not be put into memory.
#[derive(Debug, Error)]
pub enum RegionError {
    /// There is no code.
    #[error("there is no machine code to map")]
    Empty,
    /// The system gave no memory.
    #[error("cannot map {bytes} bytes for machine code: {source}")]
    Map {
        /// With the guard page.
        bytes: usize,
        /// What the system says.
        source: io::Error,
    },
    /// The memory could not be made writable.
    #[error("cannot make {bytes} bytes of memory for machine code writable: {source}")]
    Write {
        /// Without the guard page.
        bytes: usize,
        /// What the system says.
        source: io::Error,
    },
    /// The memory could not be made executable. A system may forbid this.
    #[error("cannot make {bytes} bytes of machine code executable: {source}")]
    Execute {
        /// Without the guard page.
        bytes: usize,
        /// What the system says.
        source: io::Error,
    },
}

/// Machine code in memory of its own, with its constants behind it and a page behind those that cannot be touched.
///
/// While the code is copied the memory is readable and writable; from then on it is readable and executable. Dropping
/// the region unmaps it, so whoever keeps an address of it keeps the region.
#[derive(Debug)]
pub struct Region {
    start: NonNull<u8>,
    /// What was mapped: whole pages and the guard page.
    mapped: usize,
    len: usize,
}

// SAFETY: the memory belongs to this value alone and is never written after `new`.
unsafe impl Send for Region {}
// SAFETY: as above; shared references only give out the address.
unsafe impl Sync for Region {}

impl Region {
    /// Code in fresh memory, ready to run.
    pub fn new(code: &[u8]) -> Result<Region, RegionError> {
        if code.is_empty() {
            return Err(RegionError::Empty);
        }
        let pages = code.len().next_multiple_of(PAGE);
        let mapped = pages + PAGE;
        // All of it begins untouchable: the guard page then never was anything else.
        // SAFETY: a fresh anonymous mapping at an address of the system's choice overlaps nothing.
        let start = unsafe {
            mm::mmap_anonymous(
                ptr::null_mut(),
                mapped,
                ProtFlags::empty(),
                MapFlags::PRIVATE,
            )
        }
        .map_err(|error| RegionError::Map {
            bytes: mapped,
            source: error.into(),
        })?;
        let start = NonNull::new(start.cast::<u8>())
            .expect("a mapping that the system chose is not at address 0");
        // From here on a failure drops the region, which unmaps it.
        let region = Region {
            start,
            mapped,
            len: code.len(),
        };
        let protect = |flags| {
            // SAFETY: these pages are this region's own, and nobody else knows their address yet.
            unsafe { mm::mprotect(start.as_ptr().cast(), pages, flags) }.map_err(io::Error::from)
        };
        protect(MprotectFlags::READ | MprotectFlags::WRITE).map_err(|source| {
            RegionError::Write {
                bytes: pages,
                source,
            }
        })?;
        // SAFETY: `pages` bytes at `start` are writable, `code` is not longer, and fresh memory overlaps no slice.
        unsafe { ptr::copy_nonoverlapping(code.as_ptr(), start.as_ptr(), code.len()) };
        protect(MprotectFlags::READ | MprotectFlags::EXEC).map_err(|source| {
            RegionError::Execute {
                bytes: pages,
                source,
            }
        })?;
        Ok(region)
    }

    /// Where the code is.
    pub fn address(&self) -> *const u8 {
        self.start.as_ptr()
    }

    /// Bytes of code and constants. Never 0.
    #[expect(
        clippy::len_without_is_empty,
        reason = "a region without code cannot be made"
    )]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The code and constants.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `len` bytes at `start` are readable and unchanged as long as the region lives.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // Unmapping whole pages that are mapped cannot fail but for lack of kernel memory; then they stay mapped.
        // SAFETY: this is what `new` mapped, and the region was the only way to its address.
        let _ = unsafe { mm::munmap(self.start.as_ptr().cast(), self.mapped) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asm::{Assembler, Bits, Mem, RAX, RDI};

    /// The protection of the mapping that an address lies in.
    fn protection(address: usize) -> Option<String> {
        let maps = std::fs::read_to_string("/proc/self/maps").expect("Linux has /proc/self/maps");
        maps.lines().find_map(|line| {
            let (range, rest) = line.split_once(' ')?;
            let (from, to) = range.split_once('-')?;
            let (from, to) = (
                usize::from_str_radix(from, 16).ok()?,
                usize::from_str_radix(to, 16).ok()?,
            );
            (from..to).contains(&address).then(|| rest[..4].to_owned())
        })
    }

    fn returns(value: i64) -> Vec<u8> {
        let mut asm = Assembler::new();
        asm.mov_imm(RAX, value);
        asm.ret();
        asm.finish(&[]).bytes
    }

    fn call(region: &Region) -> i64 {
        // SAFETY: the code is a function without arguments that returns a number.
        let function: extern "C" fn() -> i64 = unsafe { std::mem::transmute(region.address()) };
        function()
    }

    #[test]
    fn code_runs() {
        let region = Region::new(&returns(42)).expect("memory for code");
        assert_eq!(call(&region), 42);
    }

    #[test]
    fn constants_are_read_from_the_pool() {
        let mut asm = Assembler::new();
        asm.load(Bits::B64, false, RAX, Mem::Pool(8));
        asm.alu_mem(crate::asm::Alu::Add, Bits::B64, RAX, Mem::at(RDI, 0));
        asm.ret();
        let pool: Vec<u8> = [1_i64, 40]
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        let region = Region::new(&asm.finish(&pool).bytes).expect("memory for code");
        // SAFETY: the code is a function that reads the number it is given the address of and returns a number.
        let function: extern "C" fn(&i64) -> i64 = unsafe { std::mem::transmute(region.address()) };
        assert_eq!(function(&2), 42);
    }

    #[test]
    fn memory_is_never_writable_and_executable() {
        for length in [1, PAGE - 1, PAGE, PAGE + 1, 5 * PAGE] {
            let region = Region::new(&vec![0xc3; length]).expect("memory for code");
            let start = region.address() as usize;
            let pages = length.next_multiple_of(PAGE);
            for page in (start..start + pages).step_by(PAGE) {
                assert_eq!(
                    protection(page).as_deref(),
                    Some("r-xp"),
                    "page at {:#x} of {length} bytes",
                    page - start
                );
            }
            assert_eq!(
                protection(start + pages).as_deref(),
                Some("---p"),
                "the guard page behind {length} bytes"
            );
            assert_eq!((region.len(), region.bytes().len()), (length, length));
        }
        let maps = std::fs::read_to_string("/proc/self/maps").expect("Linux has /proc/self/maps");
        let both = maps
            .lines()
            .find(|line| line.split(' ').nth(1).is_some_and(|p| p.contains("wx")));
        assert_eq!(both, None, "a mapping is writable and executable");
    }

    #[test]
    fn no_code_is_an_error() {
        let error = Region::new(&[]).expect_err("nothing to map");
        assert_eq!(error.to_string(), "there is no machine code to map");
    }

    #[test]
    fn regions_are_made_and_dropped_from_many_threads() {
        std::thread::scope(|scope| {
            for thread in 0..4 {
                scope.spawn(move || {
                    for value in 0..200 {
                        let region =
                            Region::new(&returns(value * 4 + thread)).expect("memory for code");
                        assert_eq!(call(&region), value * 4 + thread);
                    }
                });
            }
        });
    }
}
