//! The two fences between who publishes something and who is about to sleep.
//!
//! Who publishes (the waker) writes, fences, and looks whether somebody sleeps. Who goes to sleep writes that
//! it does, fences, and looks whether something was published. With a full fence on both sides one of
//! the two sees the other.
//!
//! The waker's fence is paid for every task and every loop (some 10 ns, and it waits for the lines that
//! were just written to arrive), the sleeper's only before a sleep that costs microseconds. So where the
//! system can do it, the sleeper pays for both: Linux's `membarrier` makes every running thread of the
//! process pass a full fence, wherever it is, and then the waker only has to keep the compiler from
//! moving its look before its write.

use std::sync::atomic::{Ordering, compiler_fence, fence};

#[cfg(target_os = "linux")]
mod system {
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Whether the kernel does the waker's part. Never taken back. A waker that does not see it yet puts
    /// a fence of its own, which is right too; a sleeper sets it before it relies on it.
    static REGISTERED: AtomicBool = AtomicBool::new(false);

    fn membarrier(command: libc::c_int) -> bool {
        // SAFETY: the call has no memory for arguments: a command, no flags, no core.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
    }

    #[inline]
    pub(super) fn is_registered() -> bool {
        REGISTERED.load(Ordering::Relaxed)
    }

    /// Registers the process, unless it is; says whether it is now.
    pub(super) fn register() -> bool {
        if is_registered() {
            return true;
        }
        // Miri has no such call.
        let done = cfg!(not(miri)) && membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
        if done {
            REGISTERED.store(true, Ordering::Relaxed);
        }
        done
    }

    pub(super) fn fence_all_threads() {
        assert!(
            membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED),
            "a process that registered for membarrier may call it"
        );
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    pub(super) fn is_registered() -> bool {
        false
    }

    pub(super) fn register() -> bool {
        false
    }

    pub(super) fn fence_all_threads() {}
}

/// Says early that somebody will sleep, so that no waker has to pay before somebody did.
pub(crate) fn prepare_fences() {
    system::register();
}

/// Between saying that one sleeps and looking once more.
pub(crate) fn sleeper_fence() {
    fence(Ordering::SeqCst);
    if system::register() {
        system::fence_all_threads();
    }
}

/// Between publishing something and looking whether somebody sleeps.
#[inline]
pub(crate) fn waker_fence() {
    if system::is_registered() {
        compiler_fence(Ordering::SeqCst);
    } else {
        fence(Ordering::SeqCst);
    }
}
