//! Memory of arrays that others may write.
//!
//! `np.asarray(x)` and `memoryview(x)` can be written. The array's cell knows of it: what was written there is put into the
//! cell when it is read or written next. The other way, memory that was lent stays as it was made. Whoever asks for the same
//! elements while others have them, and nobody has written them, is given the same memory: so `np.may_share_memory` tells
//! the truth, by which libraries decide whether they may write.
//!
//! Large values of which nothing else knows are lent where they lie. They are copied when the cell is read or written while
//! others still have them, and never where those let go of them first. All others are lent as copies.

use super::Value;
use super::cell::lock;
use super::view::Layout;
use crate::errors::OrRaise;
use loopwright_graph::Array as HostArray;
use loopwright_ops::DType;
use loopwright_tensor::{Exclusive, Tensor};
use pyo3::prelude::*;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Bytes that are aligned for every dtype.
type Block = u128;

/// What others write.
enum Memory {
    Copy(UnsafeCell<Vec<Block>>),
    /// That of the cell's value.
    InPlace(Exclusive),
}

/// Elements that others may write, and where in an array they belong.
pub(crate) struct Lending {
    memory: Memory,
    length: usize,
    dtype: DType,
    /// The elements when they were last looked at; nothing as long as they are in place.
    seen: Mutex<Option<Arc<HostArray>>>,
    layout: Layout,
    /// How many have it.
    holders: AtomicUsize,
}

// SAFETY: the memory is read by `bytes` alone; others write it as they write any buffer, while they hold the
// interpreter's lock or without a promise of what is seen.
unsafe impl Send for Lending {}
// SAFETY: as above.
unsafe impl Sync for Lending {}

/// What was written into elements of an array.
pub(super) struct Changes {
    now: Arc<HostArray>,
    /// What was there before; nothing where all of the array is replaced.
    before: Option<Arc<HostArray>>,
    layout: Layout,
}

/// What the owner of lent elements finds when it looks at them.
pub(super) enum Found {
    Unchanged,
    Changed(Changes),
    /// Others have let go of the memory of the cell's value, which they may have written.
    BackInPlace,
}

impl Lending {
    /// A copy of elements that belong to the places of a layout.
    pub(super) fn copied(elements: &Arc<HostArray>, layout: Layout) -> Lending {
        let bytes = elements.bytes();
        let mut memory = Vec::<Block>::with_capacity(bytes.len().div_ceil(size_of::<Block>()));
        let address = memory.as_mut_ptr().cast::<u8>();
        // SAFETY: the blocks have at least as many bytes, and nobody else has them yet.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), address, bytes.len()) };
        Lending {
            memory: Memory::Copy(UnsafeCell::new(memory)),
            length: bytes.len(),
            dtype: elements.dtype(),
            seen: Mutex::new(Some(Arc::clone(elements))),
            layout,
            holders: AtomicUsize::new(1),
        }
    }

    /// The memory of a value that is all of an array, and no array of booleans.
    pub(super) fn in_place(memory: Exclusive, dtype: DType, sizes: &[usize]) -> Lending {
        Lending {
            length: memory.bytes(),
            memory: Memory::InPlace(memory),
            dtype,
            seen: Mutex::new(None),
            layout: Layout::dense(sizes),
            holders: AtomicUsize::new(1),
        }
    }

    /// Where the elements lie.
    pub(super) fn address(&self) -> *mut u8 {
        match &self.memory {
            // SAFETY: the vector itself is never changed, so that no other reference to it is in the way.
            Memory::Copy(memory) => unsafe { (*memory.get()).as_mut_ptr().cast::<u8>() },
            Memory::InPlace(memory) => memory.address(),
        }
    }

    pub(super) fn length(&self) -> usize {
        self.length
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: so many bytes have been written there, and are there as long as this value.
        unsafe { std::slice::from_raw_parts(self.address(), self.length) }
    }

    /// Gives it to one more where it is of these places and has these elements; whether it did.
    pub(super) fn share(&self, elements: &HostArray, layout: &Layout) -> bool {
        let bytes = elements.bytes();
        // Also what was looked at last: what is written since is not in the array yet.
        let is_same = || {
            let seen = lock(&self.seen);
            let seen = seen.as_ref().is_some_and(|seen| seen.bytes() == bytes);
            seen && self.bytes() == bytes
        };
        self.layout == *layout && self.length == bytes.len() && is_same() && self.take()
    }

    /// Gives it to one more where it is what the array has; whether it did.
    pub(super) fn share_in_place(&self) -> bool {
        lock(&self.seen).is_none() && self.take()
    }

    fn take(&self) -> bool {
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

    /// What was written since this was last asked; `is_released` if nobody has it any more.
    pub(super) fn look(&self, is_released: bool) -> Found {
        let now = self.bytes();
        let mut seen = lock(&self.seen);
        match &*seen {
            None if is_released => return Found::BackInPlace,
            Some(seen) if seen.bytes() == now => return Found::Unchanged,
            _ => {}
        }
        let shape = seen
            .as_ref()
            .map_or(&self.layout.sizes[..], |seen| seen.shape());
        // Booleans as bytes: whoever writes those may write others than 0 and 1.
        let dtype = match self.dtype {
            DType::Bool => DType::U8,
            dtype => dtype,
        };
        // It fails only where there is no memory for a copy; what was written is then looked at the next time.
        let Ok(copy) = HostArray::from_bytes(dtype, shape, now) else {
            return Found::Unchanged;
        };
        let copy = Arc::new(copy);
        Found::Changed(Changes {
            before: seen.replace(Arc::clone(&copy)),
            now: copy,
            layout: self.layout.clone(),
        })
    }
}

/// A value with elements that were written.
pub(super) fn written(value: &Value, changes: &[Changes]) -> PyResult<Value> {
    let put = |part: &Tensor, from: usize| {
        let shape = part.shape();
        // What was lent in place is all of the value; what was written into copies belongs there, too.
        let in_place = changes.iter().find(|change| change.before.is_none());
        let mut array = match in_place {
            Some(change) => Arc::clone(&change.now),
            None => value.session.scope(|| part.lent()).or_raise()?,
        };
        if changes.iter().any(|change| change.before.is_some()) {
            let mut copy = (*array).clone();
            changes
                .iter()
                .for_each(|change| change.put(&mut copy, from));
            array = Arc::new(copy);
        }
        Ok::<_, PyErr>(Tensor::of(array).in_shape(shape))
    };
    let im = match &value.im {
        Some(im) => Some(put(im, im.dtype().bytes())?),
        None => None,
    };
    Ok(Value::new(put(&value.re, 0)?, im, value.session.clone()))
}

impl Changes {
    /// Puts what was written into an array, of each element the bytes from a place on.
    fn put(&self, array: &mut HostArray, from: usize) {
        let count: usize = self.layout.sizes.iter().product();
        let Some(before) = self.before.as_ref().filter(|_| count > 0) else {
            return;
        };
        let (now, before) = (self.now.bytes(), before.bytes());
        let (item, width) = (now.len() / count, array.dtype().bytes());
        let bytes = array.bytes_mut();
        let elements = now.chunks_exact(item).zip(before.chunks_exact(item));
        for (at, (new, _)) in elements.enumerate().filter(|(_, (new, old))| new != old) {
            let place = self.layout.place(at) * width;
            bytes[place..][..width].copy_from_slice(&new[from..from + width]);
        }
        array.normalise();
    }
}
