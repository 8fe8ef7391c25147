//! GDB's interface for generated code: a list of objects in memory, and a function that GDB stops in when it changes.

use loopwright_threads::ProcessMutex;
use std::ptr::{self, NonNull};

/// An object in the list. The layout is GDB's.
#[repr(C)]
#[derive(Debug)]
pub struct Entry {
    next: *mut Entry,
    previous: *mut Entry,
    object: *const u8,
    size: u64,
}

/// The head of the list. The layout is GDB's.
#[repr(C)]
#[derive(Debug)]
pub struct Descriptor {
    version: u32,
    action: u32,
    relevant: *mut Entry,
    first: *mut Entry,
}

const NO_ACTION: u32 = 0;
const REGISTER: u32 = 1;
const UNREGISTER: u32 = 2;

/// The list that GDB reads. Only touched with [`lock`] held.
#[unsafe(no_mangle)]
static mut __jit_debug_descriptor: Descriptor = Descriptor {
    version: 1,
    action: NO_ACTION,
    relevant: ptr::null_mut(),
    first: ptr::null_mut(),
};

/// GDB sets a breakpoint here. It must be a function that is called and does nothing.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn __jit_debug_register_code() {
    // Keeps the call: to the compiler this could do anything.
    // SAFETY: it is no instruction at all.
    unsafe { std::arch::asm!("") };
}

/// The list is never left half changed, so a panic elsewhere with the lock held does not matter.
static LOCK: ProcessMutex<()> = ProcessMutex::new(());

/// An object that GDB knows until this is dropped.
#[derive(Debug)]
pub(super) struct Registration {
    entry: NonNull<Entry>,
    /// What the entry points to.
    _object: Vec<u8>,
}

// SAFETY: the entry is only touched with the lock held.
unsafe impl Send for Registration {}
// SAFETY: shared references give no access to the entry.
unsafe impl Sync for Registration {}

impl Registration {
    /// Puts an object first in the list.
    pub fn new(object: Vec<u8>) -> Self {
        let entry = Box::new(Entry {
            next: ptr::null_mut(),
            previous: ptr::null_mut(),
            object: object.as_ptr(),
            size: object.len() as u64,
        });
        let entry = NonNull::from(Box::leak(entry));
        let _guard = LOCK.lock();
        let descriptor = &raw mut __jit_debug_descriptor;
        // SAFETY: with the lock held nobody else touches the list; every entry in it is alive, because its registration
        // takes it out before it is freed.
        unsafe {
            let first = (*descriptor).first;
            (*entry.as_ptr()).next = first;
            if !first.is_null() {
                (*first).previous = entry.as_ptr();
            }
            (*descriptor).first = entry.as_ptr();
            notify(REGISTER, entry);
        }
        Registration {
            entry,
            _object: object,
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let _guard = LOCK.lock();
        let descriptor = &raw mut __jit_debug_descriptor;
        // SAFETY: as in `new`; the entry was leaked from a box there and leaves the list before it is freed.
        unsafe {
            let Entry { next, previous, .. } = *self.entry.as_ptr();
            match NonNull::new(previous) {
                Some(previous) => (*previous.as_ptr()).next = next,
                None => (*descriptor).first = next,
            }
            if let Some(next) = NonNull::new(next) {
                (*next.as_ptr()).previous = previous;
            }
            notify(UNREGISTER, self.entry);
            drop(Box::from_raw(self.entry.as_ptr()));
        }
    }
}

/// Says what changed and lets GDB see it.
///
/// # Safety
/// The lock is held.
unsafe fn notify(action: u32, entry: NonNull<Entry>) {
    let descriptor = &raw mut __jit_debug_descriptor;
    // SAFETY: with the lock held nobody else touches the descriptor.
    unsafe {
        (*descriptor).action = action;
        (*descriptor).relevant = entry.as_ptr();
        __jit_debug_register_code();
        (*descriptor).action = NO_ACTION;
        (*descriptor).relevant = ptr::null_mut();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sizes of all objects in the list, first to last, walked both ways.
    fn listed() -> Vec<u64> {
        let _guard = LOCK.lock();
        let mut sizes = Vec::new();
        // SAFETY: the lock is held.
        unsafe {
            let mut entry = __jit_debug_descriptor.first;
            let mut previous = ptr::null_mut();
            while let Some(at) = NonNull::new(entry) {
                assert_eq!((*at.as_ptr()).previous, previous, "the way back");
                sizes.push((*at.as_ptr()).size);
                previous = entry;
                entry = (*at.as_ptr()).next;
            }
        }
        sizes
    }

    #[test]
    fn objects_come_and_go_in_any_order() {
        // Other tests may register too; these sizes are no one else's.
        let ours = || {
            listed()
                .into_iter()
                .filter(|size| (900_001..900_004).contains(size))
                .collect::<Vec<_>>()
        };
        let [a, b, c] = [900_001, 900_002, 900_003].map(|size| Registration::new(vec![0; size]));
        assert_eq!(ours(), [900_003, 900_002, 900_001]);
        drop(b);
        assert_eq!(ours(), [900_003, 900_001]);
        drop(c);
        drop(a);
        assert_eq!(ours(), []);
    }
}
