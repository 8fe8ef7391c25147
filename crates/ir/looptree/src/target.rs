//! What a schedule needs to know about a machine.

/// The machine that a schedule is made for. All numbers are whole, so that a target can be compared and
/// be part of a key.
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
    /// Bytes of the last cache before memory.
    pub l3_bytes: u64,
    /// Cycles in a second, nominally.
    pub cycles_per_second: u64,
    /// Arithmetic instructions that start in a cycle; a multiplication with an addition is one.
    pub fma_per_cycle: u32,
    /// Cycles until another instruction can use the result of one.
    pub fma_latency: u32,
    /// Loads that start in a cycle.
    pub loads_per_cycle: u32,
    /// Stores that start in a cycle.
    pub stores_per_cycle: u32,
    /// Instructions of any kind that start in a cycle.
    pub issues_per_cycle: u32,
    /// What the second-level cache gives to one core, in sixteenths of a byte per cycle.
    pub l2_rate: u32,
    /// What the last cache gives to one core, in sixteenths of a byte per cycle.
    pub l3_rate: u32,
    /// What memory gives to one core, in sixteenths of a byte per cycle.
    pub memory_rate: u32,
    /// Cycles that it takes to start a parallel loop and to wait for its end.
    pub parallel_cycles: u32,
    /// The matrix unit, where there is one.
    pub matrix_unit: Option<MatrixUnit>,
    /// Whether a C compiler makes the code. It makes vectors of plain loops and swaps some, and it takes
    /// vectors wider than a register through memory.
    pub c_compiler: bool,
}

/// A unit that multiplies tiles of `bf16`, adding in `f32`, and of 8-bit integers, adding in `i32`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MatrixUnit {
    /// Rows of a tile, which are also the columns of what is added up.
    pub rows: u32,
    /// Bytes of a row.
    pub row_bytes: u32,
    /// Tiles that can be added to at a time, with registers left for those that are multiplied.
    pub accumulators: u32,
}

impl Target {
    /// A machine of which nothing is known: scalar code, one thread. What is not said about a core is that
    /// of an ordinary one of the last ten years.
    pub const SCALAR: Target = Target {
        vector_bytes: 0,
        vector_registers: 0,
        threads: 1,
        l1_bytes: 32 << 10,
        l2_bytes: 1 << 20,
        l3_bytes: 16 << 20,
        cycles_per_second: 3_000_000_000,
        fma_per_cycle: 2,
        fma_latency: 4,
        loads_per_cycle: 2,
        stores_per_cycle: 1,
        issues_per_cycle: 4,
        l2_rate: 32 * 16,
        l3_rate: 10 * 16,
        memory_rate: 6 * 16,
        parallel_cycles: 15_000,
        matrix_unit: None,
        c_compiler: false,
    };
}
