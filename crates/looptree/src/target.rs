//! What a schedule needs to know about a machine.

/// The machine that a schedule is made for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Target {
    /// Bytes of a vector register; 0 where vectors do not pay.
    pub vector_bytes: u32,
    /// Vector registers.
    pub vector_registers: u32,
    /// Threads that a parallel loop may use.
    pub threads: u32,
    /// Bytes of the first-level data cache.
    pub l1_bytes: u32,
    /// Bytes of the second-level cache.
    pub l2_bytes: u32,
}

impl Target {
    /// A machine of which nothing is known: scalar code, one thread.
    pub const SCALAR: Target = Target {
        vector_bytes: 0,
        vector_registers: 0,
        threads: 1,
        l1_bytes: 32 << 10,
        l2_bytes: 1 << 20,
    };
}
