//! The matrix unit of some processors (AMX): whether it is there and may be used.

use crate::lower::{ROW_BYTES, ROWS};
use loopwright_backend::MatrixUnit;
use loopwright_threads::PerProcess;

/// The tiles that code is written for.
pub(crate) const SHAPE: MatrixUnit = MatrixUnit {
    rows: ROWS,
    row_bytes: ROW_BYTES,
    accumulators: 4,
};

/// Whether the processor has tiles of `bf16` and of 8-bit integers, the system keeps them, and lets this process use them.
pub(crate) fn available() -> bool {
    static AVAILABLE: PerProcess<bool> = PerProcess::new();
    *AVAILABLE.get_or_init(|| processor_has() && system_permits())
}

#[cfg(target_arch = "x86_64")]
fn processor_has() -> bool {
    use std::arch::x86_64::{__cpuid, __cpuid_count, _xgetbv};

    #[target_feature(enable = "xsave")]
    fn kept_by_system() -> bool {
        // The configuration and the data of the tiles.
        const TILES: u64 = 1 << 17 | 1 << 18;
        // SAFETY: the register is there: the caller has looked for it.
        unsafe { _xgetbv(0) & TILES == TILES }
    }

    if !std::is_x86_feature_detected!("avx512f") || __cpuid(0).eax < 7 {
        return false;
    }
    const OSXSAVE: u32 = 1 << 27;
    const BF16_TILE_INT8: u32 = 1 << 22 | 1 << 24 | 1 << 25;
    let found = __cpuid_count(7, 0).edx & BF16_TILE_INT8 == BF16_TILE_INT8;
    // SAFETY: the system has turned on the instructions that it saves registers with.
    found && __cpuid(1).ecx & OSXSAVE != 0 && unsafe { kept_by_system() }
}

#[cfg(not(target_arch = "x86_64"))]
fn processor_has() -> bool {
    false
}

/// Asks for the tiles: a process that uses them without is ended.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn system_permits() -> bool {
    const ARCH_REQ_XCOMP_PERM: i64 = 0x1023;
    const TILE_DATA: i64 = 18;
    // SAFETY: the call takes two numbers and changes nothing but what this process may do.
    unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, TILE_DATA) == 0 }
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn system_permits() -> bool {
    false
}
