//! Memory of small arrays that others may write.
//!
//! `np.asarray(x)` and `memoryview(x)` of a small array are a copy that can be written. The array's cell knows of it: what
//! was written there is put into the cell when it is read or written next. The other way it stays as it was made. Whoever asks
//! for the same elements while others have the copy, and nobody has written them, is given the same memory: so
//! `np.may_share_memory` tells the truth, by which libraries decide whether they may write.

use super::Value;
use super::cell::lock;
use super::view::Layout;
use crate::errors::OrRaise;
use loopwright_ops::DType;
use loopwright_tensor::Tensor;
use pyo3::prelude::*;
use std::cell::UnsafeCell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that are aligned for every dtype.
type Block = u128;

/// A copy of elements that others may write, and where in an array they belong.
pub(crate) struct Lending {
    memory: UnsafeCell<Vec<Block>>,
    length: usize,
    /// The bytes when they were last looked at.
    seen: Mutex<Vec<u8>>,
    layout: Layout,
    /// How many have it.
    holders: AtomicUsize,
}

// SAFETY: the memory is read by `changes` alone, byte by byte; others write it as they write any buffer, while they hold
// the interpreter's lock or without a promise of what is seen.
unsafe impl Send for Lending {}
// SAFETY: as above.
unsafe impl Sync for Lending {}

/// An element that was written: its place in the array laid out flat, and its bytes.
pub(super) type Change = (usize, Vec<u8>);

impl Lending {
    /// A copy of elements, of which some bytes each belong to the places of a layout.
    pub(super) fn new(bytes: &[u8], layout: Layout) -> Lending {
        let mut memory = vec![0; bytes.len().div_ceil(size_of::<Block>())];
        let address = memory.as_mut_ptr().cast::<u8>();
        // SAFETY: the blocks have at least as many bytes, and nobody else has them yet.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), address, bytes.len()) };
        Lending {
            memory: UnsafeCell::new(memory),
            length: bytes.len(),
            seen: Mutex::new(bytes.to_vec()),
            layout,
            holders: AtomicUsize::new(1),
        }
    }

    /// Where the copy lies.
    pub(super) fn address(&self) -> *mut u8 {
        // SAFETY: the vector itself is never changed, so that no other reference to it is in the way.
        unsafe { (*self.memory.get()).as_mut_ptr().cast::<u8>() }
    }

    /// Gives the copy to one more where it is of these places and has these elements; whether it did.
    pub(super) fn share(&self, bytes: &[u8], layout: &Layout) -> bool {
        if self.layout != *layout || self.length != bytes.len() {
            return false;
        }
        // SAFETY: so many bytes are there, as long as this value.
        let now = unsafe { std::slice::from_raw_parts(self.address(), self.length) };
        // Also what was looked at last: what is written since is not in the array yet.
        if now != bytes || lock(&self.seen)[..] != *bytes {
            return false;
        }
        // What nobody has any more is about to be forgotten.
        let one_more = |holders: usize| (holders > 0).then(|| holders + 1);
        let taken = self
            .holders
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more);
        taken.is_ok()
    }

    /// One of those who have it does not write it any more.
    pub(super) fn release(&self) {
        self.holders.fetch_sub(1, Ordering::AcqRel);
    }

    pub(super) fn is_released(&self) -> bool {
        self.holders.load(Ordering::Acquire) == 0
    }

    /// What was written since this was last asked.
    pub(super) fn changes(&self) -> Vec<Change> {
        // SAFETY: so many bytes are there, as long as this value.
        let now = unsafe { std::slice::from_raw_parts(self.address(), self.length) };
        let mut seen = lock(&self.seen);
        let count: usize = self.layout.sizes.iter().product();
        if now == &seen[..] || count == 0 {
            return Vec::new();
        }
        let item = self.length / count;
        let elements = now.chunks_exact(item).zip(seen.chunks_exact(item));
        let changes = elements.enumerate().filter(|(_, (new, old))| new != old);
        let changes = changes
            .map(|(at, (new, _))| (self.layout.place(at), new.to_vec()))
            .collect();
        seen.copy_from_slice(now);
        changes
    }
}

/// A value with elements that were written.
pub(super) fn written(value: &Value, changes: &[Change]) -> PyResult<Value> {
    let put = |part: &Tensor, from: usize| {
        let lent = value.session.scope(|| part.lent()).or_raise()?;
        let mut array = (*lent).clone();
        let width = part.dtype().bytes();
        let is_bool = part.dtype() == DType::Bool;
        let bytes = array.bytes_mut();
        for (place, element) in changes {
            let target = &mut bytes[place * width..][..width];
            target.copy_from_slice(&element[from..from + width]);
            // Whoever writes bytes may write others than 0 and 1.
            if is_bool {
                target[0] = u8::from(target[0] != 0);
            }
        }
        Ok::<_, PyErr>(Tensor::of(array).in_shape(part.shape()))
    };
    let im = match &value.im {
        Some(im) => Some(put(im, im.dtype().bytes())?),
        None => None,
    };
    Ok(Value::new(put(&value.re, 0)?, im, value.session.clone()))
}
