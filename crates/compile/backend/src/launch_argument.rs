//! A kernel's arguments, as far as they are known before it is called.

use std::convert::Infallible;

/// An argument of a launch. `M` says where its memory is: an array of a program, a range of a slab ([`SlabRange`]), an
/// address ([`AddressRange`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LaunchArgument<M> {
    /// Memory that stays where it is.
    Memory(M),
    /// An integer that stays as it is.
    Integer(i64),
    /// An integer that every call gives, by its place in [`Call::statics`](crate::Call::statics).
    Static(usize),
    /// Memory that every call gives, to be read only: [`Call::merge`](crate::Call::merge).
    Merge {
        /// How many bytes the kernel reads.
        bytes: usize,
    },
}

impl<M: Copy> LaunchArgument<M> {
    /// The same argument with its memory found elsewhere.
    pub fn map<N>(&self, mut find: impl FnMut(M) -> N) -> LaunchArgument<N> {
        let found = self.try_map(|memory| Ok::<N, Infallible>(find(memory)));
        let Ok(found) = found;
        found
    }

    /// The same where the memory may be nowhere.
    ///
    /// # Errors
    /// What `find` says.
    pub fn try_map<N, E>(
        &self,
        find: impl FnOnce(M) -> Result<N, E>,
    ) -> Result<LaunchArgument<N>, E> {
        Ok(match self {
            LaunchArgument::Memory(memory) => LaunchArgument::Memory(find(*memory)?),
            LaunchArgument::Integer(value) => LaunchArgument::Integer(*value),
            LaunchArgument::Static(at) => LaunchArgument::Static(*at),
            LaunchArgument::Merge { bytes } => LaunchArgument::Merge { bytes: *bytes },
        })
    }
}

/// Bytes of a slab.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlabRange {
    /// The slab, by its place in the list.
    pub slab: usize,
    /// Where they start in there.
    pub offset: usize,
    /// How many they are.
    pub bytes: usize,
    /// What the kernel does with them.
    pub access: MemoryAccess,
}

/// Bytes that the host can address.
#[derive(Clone, Copy, Debug)]
pub struct AddressRange {
    /// Where they start.
    pub address: *mut u8,
    /// How many they are.
    pub bytes: usize,
    /// What the kernel does with them.
    pub access: MemoryAccess,
}

/// What a kernel does with an argument's memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MemoryAccess {
    /// Only reads it.
    Read,
    /// Writes it, and may read it; no other argument has any of its bytes.
    Write,
    /// Writes and reads it; other arguments of this kind may have the same bytes, at other times of the run.
    Shared,
}
