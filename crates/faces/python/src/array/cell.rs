//! The cells that arrays read and write.
//!
//! Arrays that share elements share a cell: the one that was made with it, and the views of that one. Every write puts
//! another tensor into the cell and counts its version up, so that a view knows when what it has seen is old. What is
//! computed from an array keeps the tensor, which nobody changes.

use super::lend::{Found, Lending, written};
use super::view::Layout;
use super::{Value, is_recording};
use crate::errors::TracedError;
use crate::variable::Place;
use loopwright_graph::Array as HostArray;
use loopwright_ops::DType;
use pyo3::prelude::*;
use std::cell::Cell as Local;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The version of what is read anew each time: variables change without a word to their views.
pub(super) const ALWAYS_OLD: u64 = u64::MAX;

thread_local! {
    /// The function that is traced on this thread, by a number; 0 outside of any.
    static TRACE: Local<u64> = const { Local::new(0) };
}

/// Runs a function whose arrays stand for others: cells of outside may be read and not written in it, since it runs
/// once for many calls, or for all examples at once.
pub(crate) fn traced<T>(run: impl FnOnce() -> T) -> T {
    static TRACES: AtomicU64 = AtomicU64::new(1);
    struct Leave(u64);
    impl Drop for Leave {
        fn drop(&mut self) {
            TRACE.set(self.0);
        }
    }
    let number = TRACES.fetch_add(1, Ordering::Relaxed);
    let _leave = Leave(TRACE.replace(number));
    super::recorded(run)
}

/// Where the elements of an array are.
pub(crate) enum Cell {
    Own {
        value: Mutex<Value>,
        /// How often it was written. Counted while the value is locked.
        version: AtomicU64,
        /// The function that was traced when it was made.
        trace: u64,
        /// Copies of elements that others may write.
        lent: Mutex<Vec<Arc<Lending>>>,
        /// Whether there are any.
        is_lent: AtomicBool,
    },
    /// In a variable, which jitted functions update in place.
    Variable(Place),
}

impl Cell {
    pub(super) fn new(value: Value) -> Cell {
        Cell::Own {
            value: Mutex::new(value),
            version: AtomicU64::new(0),
            trace: TRACE.get(),
            lent: Mutex::new(Vec::new()),
            is_lent: AtomicBool::new(false),
        }
    }

    /// Gives elements to others as a copy that they may write; nothing where the elements are a variable's.
    pub(super) fn lend(&self, elements: &Arc<HostArray>, layout: Layout) -> Option<Arc<Lending>> {
        let Cell::Own { lent, is_lent, .. } = self else {
            return None;
        };
        let mut lent = lock(lent);
        if let Some(known) = lent.iter().find(|known| known.share(elements, &layout)) {
            return Some(Arc::clone(known));
        }
        let lending = Arc::new(Lending::copied(elements, layout));
        lent.push(Arc::clone(&lending));
        is_lent.store(true, Ordering::Release);
        Some(lending)
    }

    /// Gives to one more who may write it what others write where its value lies; nothing where nobody does.
    pub(super) fn share_in_place(&self) -> Option<Arc<Lending>> {
        let Cell::Own { lent, .. } = self else {
            return None;
        };
        let lent = lock(lent);
        lent.iter().find(|known| known.share_in_place()).cloned()
    }

    /// Gives its value, which has been computed, to others, who may write it where it lies, if that can be done.
    pub(super) fn lend_in_place(&self) -> Option<Arc<Lending>> {
        let Cell::Own {
            value,
            lent,
            is_lent,
            ..
        } = self
        else {
            return None;
        };
        // What others have written into other copies comes first.
        self.collect();
        let mut value = lock(value);
        if is_recording() || value.im.is_some() || value.re.dtype() == DType::Bool {
            return None;
        }
        value.settle();
        let sizes = value.re.shape().known()?;
        let memory = value.re.exclusive()?;
        let lending = Arc::new(Lending::in_place(memory, value.re.dtype(), &sizes));
        // Before others can have the value.
        lock(lent).push(Arc::clone(&lending));
        is_lent.store(true, Ordering::Release);
        Some(lending)
    }

    /// Whether others may write what is put into it.
    pub(super) fn is_lent(&self) -> bool {
        matches!(self, Cell::Own { is_lent, .. } if is_lent.load(Ordering::Acquire))
    }

    /// Puts into it what others have written into copies of its elements.
    fn collect(&self) {
        let Cell::Own {
            value,
            version,
            lent,
            is_lent,
            ..
        } = self
        else {
            return;
        };
        if !is_lent.load(Ordering::Acquire) {
            return;
        }
        let mut changes = Vec::new();
        let mut lendings = lock(lent);
        lendings.retain(|lending| {
            // First: what is written until then is among the changes.
            let is_released = lending.is_released();
            match lending.look(is_released) {
                Found::Unchanged => {}
                Found::Changed(changed) => changes.push(changed),
                Found::BackInPlace => {
                    version.fetch_add(1, Ordering::AcqRel);
                }
            }
            !is_released
        });
        is_lent.store(!lendings.is_empty(), Ordering::Release);
        drop(lendings);
        while !changes.is_empty() {
            let (old, at) = {
                let value = lock(value);
                (value.clone(), version.load(Ordering::Relaxed))
            };
            // Where the value cannot be computed, whoever asks for it is told.
            let Ok(new) = written(&old, &changes) else {
                return;
            };
            let mut value = lock(value);
            if version.load(Ordering::Relaxed) == at {
                *value = new;
                version.store(at + 1, Ordering::Release);
                return;
            }
        }
    }

    pub(super) fn version(&self) -> u64 {
        self.collect();
        match self {
            Cell::Own { version, .. } => version.load(Ordering::Acquire),
            Cell::Variable(_) => ALWAYS_OLD,
        }
    }

    /// Whether it was written since it was made.
    pub(crate) fn is_written(&self) -> bool {
        self.collect();
        matches!(self, Cell::Own { version, .. } if version.load(Ordering::Acquire) > 0)
    }

    /// What is in it now.
    pub(crate) fn value(&self) -> Value {
        self.read().0
    }

    /// The value and its version.
    pub(super) fn read(&self) -> (Value, u64) {
        self.collect();
        match self {
            Cell::Own { value, version, .. } => {
                let mut value = lock(value);
                if !is_recording() {
                    value.settle();
                }
                (value.clone(), version.load(Ordering::Relaxed))
            }
            Cell::Variable(place) => (place.value(), ALWAYS_OLD),
        }
    }

    /// Puts another value into it, and gives the version that it has then.
    pub(super) fn write(&self, py: Python<'_>, new: Value) -> PyResult<u64> {
        let written = self.write_over(py, new, None)?;
        Ok(written.unwrap_or(ALWAYS_OLD))
    }

    /// Puts into it what is made of its value, and gives the version that it has then.
    ///
    /// Making it may let go of the interpreter, so that other threads write other elements meanwhile: it is then made
    /// again of what is there. Variables have no versions, and take the last one.
    pub(super) fn update(
        &self,
        py: Python<'_>,
        make: impl Fn(&Value) -> PyResult<Value>,
    ) -> PyResult<u64> {
        loop {
            let (old, version) = self.read();
            if let Some(now) = self.write_over(py, make(&old)?, Some(version))? {
                return Ok(now);
            }
        }
    }

    /// Puts another value into it where it has not been written since a version, and gives the new version; nothing
    /// where it has.
    fn write_over(&self, py: Python<'_>, new: Value, since: Option<u64>) -> PyResult<Option<u64>> {
        self.collect();
        match self {
            Cell::Own {
                value,
                version,
                trace,
                ..
            } => {
                if TRACE.get() != 0 && TRACE.get() != *trace {
                    return Err(TracedError::new_err(
                        "an array from outside of a function that is traced is written in it; pass the array as an argument, or keep it as a Variable",
                    ));
                }
                // The old value goes when the lock is free again: that may take a while.
                let mut value = lock(value);
                let before = version.load(Ordering::Relaxed);
                if since.is_some_and(|since| since != before) {
                    return Ok(None);
                }
                let old = std::mem::replace(&mut *value, new);
                version.store(before + 1, Ordering::Release);
                drop(value);
                drop(old);
                Ok(Some(before + 1))
            }
            Cell::Variable(place) => {
                place.set(py, &new)?;
                Ok(Some(ALWAYS_OLD))
            }
        }
    }
}

pub(super) fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
