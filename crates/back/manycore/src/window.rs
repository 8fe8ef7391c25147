//! The memory that the host and the accelerator share.

use crate::protocol::{ANSWER_AT, CRASH_AT, DATA_AT, TEXT_AT};
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;

/// A file in memory that nobody else can open.
pub(crate) fn memory_file(name: &CStr) -> io::Result<OwnedFd> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: the name ends with a zero byte.
    let file = unsafe { libc::memfd_create(name.as_ptr(), flags) };
    if file < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a new file that nobody else has.
    Ok(unsafe { OwnedFd::from_raw_fd(file) })
}

/// Forbids everybody, also those who have it already, to do some things with a file in memory.
pub(crate) fn seal(file: &OwnedFd, seals: libc::c_int) -> io::Result<()> {
    let seals = seals | libc::F_SEAL_SEAL;
    // SAFETY: a system call on an open file, without pointers.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The window: a page for requests and answers, then data. What the other side writes there is never taken for
/// anything but bytes, since a kernel gone wild can have written it.
pub(crate) struct Window {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping belongs to this value alone as far as this process is concerned, and is reached through its
// methods only.
unsafe impl Send for Window {}

impl Window {
    /// A new window, and the file that the other side maps.
    pub(crate) fn new(bytes: usize) -> io::Result<(Window, OwnedFd)> {
        assert!(bytes > DATA_AT, "a window has room for data");
        let file = memory_file(c"lw-window")?;
        let length = libc::off_t::try_from(bytes).map_err(io::Error::other)?;
        // SAFETY: a system call on an open file, without pointers.
        if unsafe { libc::ftruncate(file.as_raw_fd(), length) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // Were it made shorter by the other side, reading it here would end this process.
        seal(&file, libc::F_SEAL_SHRINK | libc::F_SEAL_GROW)?;
        // SAFETY: a new mapping of a file of that length.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).expect("a mapping does not start at 0");
        Ok((Window { start, bytes }, file))
    }

    /// Bytes of data that it holds.
    pub(crate) fn data_bytes(&self) -> usize {
        self.bytes - DATA_AT
    }

    /// Puts words at the start.
    pub(crate) fn put_request(&mut self, words: &[u64]) {
        self.put_words(0, words);
        // An answer of before is not to be taken for one to this.
        self.put_words(ANSWER_AT, &[u64::MAX]);
    }

    /// Word `number` of the answer; the first is the status.
    pub(crate) fn answer(&self, number: usize) -> u64 {
        self.word(ANSWER_AT + 8 * number)
    }

    /// The text of an answer that refuses.
    pub(crate) fn text(&self) -> String {
        let mut bytes = [0; CRASH_AT - TEXT_AT];
        self.copy_out(TEXT_AT, &mut bytes);
        let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(text).into_owned()
    }

    /// What a core that crashed left: signal, core, address, whether its local memory was at its end.
    pub(crate) fn crash(&self) -> [u64; 4] {
        [0, 1, 2, 3].map(|number| self.word(CRASH_AT + 8 * number))
    }

    /// Puts data there.
    pub(crate) fn put_data(&mut self, offset: usize, from: &[u8]) {
        self.copy_in(DATA_AT + offset, from);
    }

    /// Puts words into the data.
    pub(crate) fn put_data_words(&mut self, offset: usize, words: &[u64]) {
        self.put_words(DATA_AT + offset, words);
    }

    /// Takes data from there.
    pub(crate) fn take_data(&self, to: &mut [u8]) {
        self.copy_out(DATA_AT, to);
    }

    fn put_words(&mut self, at: usize, words: &[u64]) {
        for (number, word) in words.iter().enumerate() {
            self.copy_in(at + 8 * number, &word.to_ne_bytes());
        }
    }

    fn word(&self, at: usize) -> u64 {
        let mut bytes = [0; 8];
        self.copy_out(at, &mut bytes);
        u64::from_ne_bytes(bytes)
    }

    fn copy_in(&mut self, at: usize, from: &[u8]) {
        let end = at.checked_add(from.len());
        assert!(
            end.is_some_and(|end| end <= self.bytes),
            "what is written fits the window"
        );
        // SAFETY: within the mapping, as just checked; the other side does not use it now, since it has not been
        // rung, and were it to, all there are is bytes.
        unsafe {
            let to = self.start.as_ptr().add(at);
            to.copy_from_nonoverlapping(from.as_ptr(), from.len());
        }
    }

    fn copy_out(&self, at: usize, to: &mut [u8]) {
        let end = at.checked_add(to.len());
        assert!(
            end.is_some_and(|end| end <= self.bytes),
            "what is read lies in the window"
        );
        // SAFETY: as above.
        unsafe {
            let from = self.start.as_ptr().add(at);
            from.copy_to_nonoverlapping(to.as_mut_ptr(), to.len());
        }
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this length, and nothing refers to it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
