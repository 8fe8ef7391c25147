//! Executable memory: written first, executable then, never both.

use loopwright_threads::ProcessMutex;
use std::io;
use std::ptr::{self, NonNull};
use std::sync::MutexGuard;

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

/// Pages of an arena, the guard page not counted: 1 MiB, which holds the code of a hundred small programs.
const ARENA_PAGES: usize = 256;

/// Arenas without any code that are kept for what comes next; others are unmapped.
const SPARE_ARENAS: usize = 1;

/// A mapping that many pieces of code share, each in pages of its own, with a page behind all of them that cannot be touched.
///
/// A system has a limit of mappings for a process (65,530 on Linux). Neighbouring pages with the same protection count as one.
struct Arena {
    start: NonNull<u8>,
    /// By page: whether it holds code.
    used: Vec<bool>,
}

// SAFETY: an arena is an address and what is used of it; its memory is touched only as `Region` says.
unsafe impl Send for Arena {}

impl Arena {
    fn new(pages: usize) -> Result<Arena, RegionError> {
        let bytes = (pages + 1) * PAGE;
        // All of it begins untouchable: the guard page then never is anything else.
        let start = system::map(bytes).map_err(|source| RegionError::Map { bytes, source })?;
        Ok(Arena {
            start,
            used: vec![false; pages],
        })
    }

    /// Takes so many free pages that lie together: the first there are, so that code stays together.
    fn take(&mut self, pages: usize) -> Option<NonNull<u8>> {
        let mut free = 0;
        for at in 0..self.used.len() {
            free = if self.used[at] { 0 } else { free + 1 };
            if free == pages {
                let first = at + 1 - pages;
                self.used[first..=at].fill(true);
                // SAFETY: the page lies within the mapping.
                return Some(unsafe { self.start.add(first * PAGE) });
            }
        }
        None
    }

    /// Where a page of this arena stands in it.
    fn page_of(&self, address: NonNull<u8>) -> Option<usize> {
        let offset = address
            .as_ptr()
            .addr()
            .checked_sub(self.start.as_ptr().addr())?;
        let page = offset / PAGE;
        (page < self.used.len()).then_some(page)
    }

    fn is_empty(&self) -> bool {
        !self.used.contains(&true)
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        let bytes = (self.used.len() + 1) * PAGE;
        // SAFETY: this is what `new` mapped, and no code is in it any more.
        unsafe { system::unmap(self.start, bytes) };
    }
}

/// All arenas of the process.
fn arenas() -> MutexGuard<'static, Vec<Arena>> {
    static ARENAS: ProcessMutex<Vec<Arena>> = ProcessMutex::new(Vec::new());
    // Nothing in between leaves them half changed.
    ARENAS.lock()
}

/// Pages for code, untouchable as yet.
fn take_pages(pages: usize) -> Result<NonNull<u8>, RegionError> {
    let mut arenas = arenas();
    if let Some(found) = arenas.iter_mut().find_map(|arena| arena.take(pages)) {
        return Ok(found);
    }
    let mut arena = Arena::new(pages.max(ARENA_PAGES))?;
    let taken = arena.take(pages).expect("a new arena is large enough");
    arenas.push(arena);
    Ok(taken)
}

/// Gives pages back, which nobody can touch any more.
fn give_back_pages(start: NonNull<u8>, pages: usize) {
    let mut arenas = arenas();
    for arena in arenas.iter_mut() {
        if let Some(first) = arena.page_of(start) {
            arena.used[first..first + pages].fill(false);
            break;
        }
    }
    let mut spare = 0;
    arenas.retain(|arena| {
        spare += usize::from(arena.is_empty());
        !arena.is_empty() || spare <= SPARE_ARENAS && arena.used.len() == ARENA_PAGES
    });
}

/// Machine code in pages of its own, with its constants behind it.
///
/// While the code is copied the pages are readable and writable; from then on they are readable and executable. Dropping
/// the region makes them untouchable and gives them to the next, so whoever keeps an address of it keeps the region.
#[derive(Debug)]
pub struct Region {
    start: NonNull<u8>,
    pages: usize,
    len: usize,
}

// SAFETY: the pages belong to this value alone and are never written after `new`.
unsafe impl Send for Region {}
// SAFETY: as above; shared references only give out the address.
unsafe impl Sync for Region {}

impl Region {
    /// Code in pages of its own, ready to run.
    pub fn new(code: &[u8]) -> Result<Region, RegionError> {
        if code.is_empty() {
            return Err(RegionError::Empty);
        }
        let pages = code.len().div_ceil(PAGE);
        let bytes = pages * PAGE;
        // From here on a failure drops the region, which gives the pages back.
        let region = Region {
            start: take_pages(pages)?,
            pages,
            len: code.len(),
        };
        region
            .protect(Protection::Write)
            .map_err(|source| RegionError::Write { bytes, source })?;
        // SAFETY: `bytes` bytes at `start` are writable, `code` is not longer, and pages of an arena overlap no slice.
        unsafe { ptr::copy_nonoverlapping(code.as_ptr(), region.start.as_ptr(), code.len()) };
        region
            .protect(Protection::Execute)
            .map_err(|source| RegionError::Execute { bytes, source })?;
        Ok(region)
    }

    fn protect(&self, protection: Protection) -> io::Result<()> {
        // SAFETY: these pages are this region's own, and their code runs only as long as somebody has the region.
        unsafe { system::protect(self.start, self.pages * PAGE, protection) }
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
        // The memory behind the pages goes back to the system. Pages that cannot be made untouchable, for lack of kernel
        // memory, stay what they are, and are never used again.
        // SAFETY: the region was the only way to its pages.
        let cleared = unsafe { system::discard(self.start, self.pages * PAGE) };
        let closed = self.protect(Protection::Closed);
        if cleared.is_ok() && closed.is_ok() {
            give_back_pages(self.start, self.pages);
        }
    }
}

/// What may be done with pages.
#[derive(Clone, Copy)]
enum Protection {
    /// Nothing.
    Closed,
    /// They are read and written.
    Write,
    /// They are read and run.
    Execute,
}

/// What the system does with pages.
#[cfg(unix)]
mod system {
    use super::Protection;
    use rustix::mm::{self, Advice, MapFlags, MprotectFlags, ProtFlags};
    use std::io;
    use std::ptr::{self, NonNull};

    /// Fresh pages that cannot be touched.
    pub(super) fn map(bytes: usize) -> io::Result<NonNull<u8>> {
        let (anywhere, closed) = (ptr::null_mut(), ProtFlags::empty());
        // SAFETY: a fresh anonymous mapping at an address of the system's choice overlaps nothing.
        let start = unsafe { mm::mmap_anonymous(anywhere, bytes, closed, MapFlags::PRIVATE) }?;
        Ok(NonNull::new(start.cast::<u8>())
            .expect("a mapping that the system chose is not at address 0"))
    }

    /// Gives a mapping back.
    ///
    /// # Safety
    /// It is a whole mapping of [`map`], which nobody touches any more.
    pub(super) unsafe fn unmap(start: NonNull<u8>, bytes: usize) {
        // Unmapping whole pages that are mapped cannot fail but for lack of kernel memory; then they stay mapped.
        // SAFETY: as the caller states.
        let _ = unsafe { mm::munmap(start.as_ptr().cast(), bytes) };
    }

    /// Changes what may be done with pages.
    ///
    /// # Safety
    /// They are whole pages of a mapping of [`map`], and what is done with them from now on is what they are open for.
    pub(super) unsafe fn protect(
        start: NonNull<u8>,
        bytes: usize,
        protection: Protection,
    ) -> io::Result<()> {
        let flags = match protection {
            Protection::Closed => MprotectFlags::empty(),
            Protection::Write => MprotectFlags::READ | MprotectFlags::WRITE,
            Protection::Execute => MprotectFlags::READ | MprotectFlags::EXEC,
        };
        // SAFETY: as the caller states.
        Ok(unsafe { mm::mprotect(start.as_ptr().cast(), bytes, flags) }?)
    }

    /// Lets the system take the memory behind pages.
    ///
    /// # Safety
    /// They are whole pages of a mapping of [`map`], whose contents nobody needs any more.
    pub(super) unsafe fn discard(start: NonNull<u8>, bytes: usize) -> io::Result<()> {
        // Elsewhere this is a hint: code that is gone may stay in memory until its pages are used again.
        #[cfg(any(target_os = "linux", target_os = "android"))]
        const UNNEEDED: Advice = Advice::LinuxDontNeed;
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        const UNNEEDED: Advice = Advice::DontNeed;
        // SAFETY: as the caller states.
        Ok(unsafe { mm::madvise(start.as_ptr().cast(), bytes, UNNEEDED) }?)
    }
}

/// Where the backend is never available there are no pages for it either.
#[cfg(not(unix))]
mod system {
    use super::Protection;
    use std::io;
    use std::ptr::NonNull;

    fn unsupported() -> io::Error {
        let system = std::env::consts::OS;
        io::Error::new(
            io::ErrorKind::Unsupported,
            format!("machine code is not mapped on {system}"),
        )
    }

    pub(super) fn map(_: usize) -> io::Result<NonNull<u8>> {
        Err(unsupported())
    }

    pub(super) unsafe fn unmap(_: NonNull<u8>, _: usize) {}

    pub(super) unsafe fn protect(_: NonNull<u8>, _: usize, _: Protection) -> io::Result<()> {
        Err(unsupported())
    }

    pub(super) unsafe fn discard(_: NonNull<u8>, _: usize) -> io::Result<()> {
        Err(unsupported())
    }
}

#[cfg(all(test, target_os = "linux"))]
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
            assert_eq!((region.len(), region.bytes().len()), (length, length));
        }
        let maps = std::fs::read_to_string("/proc/self/maps").expect("Linux has /proc/self/maps");
        let both = maps
            .lines()
            .find(|line| line.split(' ').nth(1).is_some_and(|p| p.contains("wx")));
        assert_eq!(both, None, "a mapping is writable and executable");
    }

    #[test]
    fn an_arena_ends_with_a_page_that_cannot_be_touched() {
        let arena = Arena::new(3).expect("memory for code");
        for page in 0..4 {
            let at = arena.start.as_ptr() as usize + page * PAGE;
            assert_eq!(protection(at).as_deref(), Some("---p"), "page {page}");
        }
        assert_eq!(arena.page_of(arena.start), Some(0));
        // SAFETY: the guard page lies within the mapping.
        assert_eq!(arena.page_of(unsafe { arena.start.add(3 * PAGE) }), None);
    }

    #[test]
    fn pages_of_code_that_is_gone_are_used_again() {
        let mut arena = Arena::new(4).expect("memory for code");
        let first = arena.take(2).expect("four are free");
        let second = arena.take(2).expect("two are free");
        assert_eq!((first, arena.take(1)), (arena.start, None));
        arena.used[2..4].fill(false);
        assert_eq!(arena.take(3), None);
        assert_eq!(arena.take(2), Some(second));
        arena.used.fill(false);
        assert!(arena.is_empty());
    }

    #[test]
    fn code_that_is_larger_than_an_arena_has_one_of_its_own() {
        let mut code = returns(7);
        code.resize((ARENA_PAGES + 3) * PAGE, 0xcc);
        let region = Region::new(&code).expect("memory for code");
        assert_eq!(call(&region), 7);
    }

    #[test]
    fn many_regions_share_few_mappings() {
        let count = || {
            let maps = std::fs::read_to_string("/proc/self/maps").expect("Linux has it");
            maps.lines().filter(|line| line.contains("r-xp")).count()
        };
        let before = count();
        let regions: Vec<Region> = (0..2000)
            .map(|value| Region::new(&returns(value)).expect("memory for code"))
            .collect();
        // Other tests make and drop regions meanwhile.
        assert!(count() < before + 500, "{} mappings of code", count());
        for (value, region) in (0..).zip(&regions) {
            assert_eq!(call(region), value);
        }
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
