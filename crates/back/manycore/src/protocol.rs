//! What the host and the accelerator say to each other: the host's side of `firmware/protocol.h`.

/// Changes with everything in this file and in `firmware/protocol.h`.
pub(crate) const VERSION: u64 = 1;

/// Where the answer lies in the window; the request lies at its start.
pub(crate) const ANSWER_AT: usize = 512;
/// Where the text of an answer lies that refuses.
pub(crate) const TEXT_AT: usize = 1024;
/// Where a core that crashed leaves what is known.
pub(crate) const CRASH_AT: usize = 2048;
/// Where data begins.
pub(crate) const DATA_AT: usize = 4096;

/// Bytes of an argument of a launch: kind, value, offset, length.
pub(crate) const ARGUMENT_BYTES: usize = 32;

/// A request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Command {
    Hello,
    Allocate {
        bytes: u64,
    },
    /// Frees the slabs whose numbers are in the window's data.
    Free {
        slabs: u64,
    },
    /// Moves the window's data into a slab.
    Write {
        slab: u64,
        offset: u64,
        bytes: u64,
    },
    /// Moves a part of a slab into the window's data.
    Read {
        slab: u64,
        offset: u64,
        bytes: u64,
    },
    LoadBegin {
        bytes: u64,
    },
    LoadData {
        program: u64,
        offset: u64,
        bytes: u64,
    },
    LoadEnd {
        program: u64,
    },
    /// Finds the entry whose name is in the window's data.
    Entry {
        program: u64,
        bytes: u64,
    },
    Unload {
        program: u64,
    },
    /// Runs an entry with the arguments in the window's data.
    Launch {
        program: u64,
        entry: u64,
        group: [u32; 3],
        arguments: u64,
    },
}

impl Command {
    /// The words of the request.
    pub(crate) fn words(self) -> [u64; 7] {
        match self {
            Command::Hello => [1, 0, 0, 0, 0, 0, 0],
            Command::Allocate { bytes } => [2, bytes, 0, 0, 0, 0, 0],
            Command::Free { slabs } => [3, slabs, 0, 0, 0, 0, 0],
            Command::Write {
                slab,
                offset,
                bytes,
            } => [4, slab, offset, bytes, 0, 0, 0],
            Command::Read {
                slab,
                offset,
                bytes,
            } => [5, slab, offset, bytes, 0, 0, 0],
            Command::LoadBegin { bytes } => [6, bytes, 0, 0, 0, 0, 0],
            Command::LoadData {
                program,
                offset,
                bytes,
            } => [7, program, offset, bytes, 0, 0, 0],
            Command::LoadEnd { program } => [8, program, 0, 0, 0, 0, 0],
            Command::Entry { program, bytes } => [9, program, bytes, 0, 0, 0, 0],
            Command::Unload { program } => [10, program, 0, 0, 0, 0, 0],
            Command::Launch {
                program,
                entry,
                group: [x, y, z],
                arguments,
            } => [11, program, entry, x.into(), y.into(), z.into(), arguments],
        }
    }
}

/// An argument of [`Command::Launch`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CommandArgument {
    Integer(i64),
    Memory { slab: u64, offset: u64, bytes: u64 },
}

impl CommandArgument {
    pub(crate) fn words(self) -> [u64; 4] {
        match self {
            CommandArgument::Integer(value) => [0, value.cast_unsigned(), 0, 0],
            CommandArgument::Memory {
                slab,
                offset,
                bytes,
            } => [1, slab, offset, bytes],
        }
    }
}

/// How an answer begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Status {
    Done,
    OutOfMemory,
    Refused,
}

impl Status {
    pub(crate) fn of(word: u64) -> Option<Status> {
        match word {
            0 => Some(Status::Done),
            1 => Some(Status::OutOfMemory),
            2 => Some(Status::Refused),
            _ => None,
        }
    }
}
