//! How compiled loops are ended from outside: what they look at, and what they call then.
//!
//! A loop that may run long loads a word that is 0 almost always ([`attention`]). Where it is not, it calls [`poll`], which keeps all
//! registers, so that register allocation need not know of the call, and gives whether the loop is to be left.

/// The address of the word that loops look at.
pub(crate) fn attention() -> u64 {
    std::ptr::from_ref(loopwright_threads::interrupt::attention()).addr() as u64
}

/// The address of a function that changes no register but `rax`, which is not 0 afterwards where the loop is to be left. `None`
/// where there is no way to keep all registers: loops then run to their end.
pub(crate) fn poll() -> Option<u64> {
    machine::poll()
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod machine {
    use loopwright_threads::PerProcess;
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Bytes of the memory that `xsave` writes.
    static STATE_BYTES: AtomicUsize = AtomicUsize::new(0);

    /// What `xsave` keeps: the x87 and vector registers with the control words, masks, and the tiles of the matrix unit.
    const STATE: u32 = 0x6_00e7;

    // For the assembler of ELF systems and the calling convention of Unix.
    // Called with any registers in use and the stack aligned to 16 bytes before the call. The header of the saved state must be
    // zero where the machine does not write it.
    std::arch::global_asm!(
        ".p2align 4",
        ".globl {name}",
        ".hidden {name}",
        "{name}:",
        "push rbp",
        "mov rbp, rsp",
        "push rbx",
        "push rcx",
        "push rdx",
        "push rsi",
        "push rdi",
        "push r8",
        "push r9",
        "push r10",
        "push r11",
        "sub rsp, [rip + {bytes}]",
        "and rsp, -64",
        "xor eax, eax",
        "mov [rsp + 512], rax",
        "mov [rsp + 520], rax",
        "mov [rsp + 528], rax",
        "mov [rsp + 536], rax",
        "mov [rsp + 544], rax",
        "mov [rsp + 552], rax",
        "mov [rsp + 560], rax",
        "mov [rsp + 568], rax",
        "mov eax, {state}",
        "xor edx, edx",
        "xsave64 [rsp]",
        "call {poll}",
        "mov ebx, eax",
        "mov eax, {state}",
        "xor edx, edx",
        "xrstor64 [rsp]",
        "mov eax, ebx",
        "lea rsp, [rbp - 72]",
        "pop r11",
        "pop r10",
        "pop r9",
        "pop r8",
        "pop rdi",
        "pop rsi",
        "pop rdx",
        "pop rcx",
        "pop rbx",
        "pop rbp",
        "ret",
        name = sym loopwright_x86_poll,
        bytes = sym STATE_BYTES,
        state = const STATE,
        poll = sym loopwright_threads::interrupt::poll,
    );

    unsafe extern "C" {
        /// See above; not a function of the C convention, and never called from Rust.
        fn loopwright_x86_poll();
    }

    pub(super) fn poll() -> Option<u64> {
        static BYTES: PerProcess<Option<usize>> = PerProcess::new();
        let bytes = *BYTES.get_or_init(state_bytes);
        STATE_BYTES.store(bytes?, Ordering::Relaxed);
        Some(loopwright_x86_poll as *const () as usize as u64)
    }

    /// Bytes that the state of this machine takes, if it has instructions that keep it.
    fn state_bytes() -> Option<usize> {
        const ENABLED: u32 = 1 << 27;
        const STATE_LEAF: u32 = 0xd;
        if __cpuid(0).eax < STATE_LEAF || __cpuid(1).ecx & ENABLED == 0 {
            return None;
        }
        // For all that the machine has: permission for more may come later, as for tiles.
        usize::try_from(__cpuid_count(STATE_LEAF, 0).ecx).ok()
    }
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
mod machine {
    pub(super) fn poll() -> Option<u64> {
        None
    }
}
