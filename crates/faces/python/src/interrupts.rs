//! Work without the interpreter's lock that Ctrl-C ends.
//!
//! Python's handler of a signal only notes that it came; what the signal means is decided when the main thread runs Python code
//! again. So long work on that thread asks from time to time ([`loopwright_threads::interrupt`]): it takes the lock and lets Python
//! handle what came. The exception that a handler raises, `KeyboardInterrupt` where nobody has set another, ends the work and is
//! what the call raises. A handler that raises nothing lets the work go on.

use crate::errors;
use loopwright_threads::generation;
use loopwright_threads::interrupt::Interrupts;
use pyo3::exceptions::{PyBufferError, PyException};
use pyo3::prelude::*;
use std::cell::Cell;
use std::sync::{Arc, Mutex, PoisonError, TryLockError};

thread_local! {
    /// Whether this is the thread on which Python handles signals, and the process for which that was asked.
    static MAIN: Cell<Option<(u64, bool)>> = const { Cell::new(None) };
}

/// Questions that nobody uses now. Only work inside of work needs more than one.
static FREE: Mutex<Vec<Watch>> = Mutex::new(Vec::new());

/// A question to Python, and what a handler has raised.
struct Watch {
    interrupts: Interrupts,
    raised: Arc<Mutex<Option<PyErr>>>,
}

impl Watch {
    fn new() -> Watch {
        let raised = Arc::new(Mutex::new(None));
        let found = Arc::clone(&raised);
        let ask = move || match Python::attach(|py| py.check_signals()) {
            Ok(()) => false,
            Err(error) => {
                *found.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                true
            }
        };
        Watch {
            interrupts: Interrupts::new(ask),
            raised,
        }
    }

    /// One that is free. A child that was forked may find the list locked for ever, and does without.
    fn take() -> Watch {
        let free = match FREE.try_lock() {
            Ok(mut free) => free.pop(),
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner().pop(),
            Err(TryLockError::WouldBlock) => None,
        };
        free.unwrap_or_else(Watch::new)
    }

    fn give_back(self) {
        if let Ok(mut free) = FREE.try_lock() {
            free.push(self);
        }
    }
}

/// Whether this is the thread on which Python handles signals.
fn is_main(py: Python<'_>) -> bool {
    let process = generation();
    if let Some((asked_in, is_main)) = MAIN.get()
        && asked_in == process
    {
        return is_main;
    }
    let ask = || -> PyResult<bool> {
        let threading = py.import("threading")?;
        let main = threading.call_method0("main_thread")?.getattr("ident")?;
        main.eq(threading.call_method0("get_ident")?)
    };
    match ask() {
        Ok(is_main) => {
            MAIN.set(Some((process, is_main)));
            is_main
        }
        // Without an answer it is a thread that no signal ends. The question is put again: it may have been interrupted.
        Err(error) => {
            handle_later(py, &error);
            false
        }
    }
}

/// Long work without the interpreter's lock.
pub(crate) trait Interruptible {
    /// Does work that may take long without the interpreter's lock: as [`Python::detach`], and on the main thread a signal whose
    /// handler raises an exception ends it.
    ///
    /// # Errors
    /// The exception that the handler raised. What the work gave is then dropped.
    fn interruptible<T: Send>(self, work: impl FnOnce() -> T + Send) -> PyResult<T>;
}

impl Interruptible for Python<'_> {
    fn interruptible<T: Send>(self, work: impl FnOnce() -> T + Send) -> PyResult<T> {
        if !is_main(self) {
            return Ok(self.detach(work));
        }
        let mut watch = Watch::take();
        let done = self.detach(|| watch.interrupts.scope(work));
        let raised = watch
            .raised
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        watch.give_back();
        match raised {
            None => Ok(done),
            Some(error) => {
                errors::forget();
                Err(error)
            }
        }
    }
}

/// What is raised in place of an interrupt by something whose callers pass over what it raises: numpy tries the next way to an array's
/// elements where the buffer protocol fails. The interrupt is then still to be handled, and comes out where Python looks next.
pub(crate) fn kept_for_later(py: Python<'_>, error: PyErr) -> PyErr {
    match handle_later(py, &error) {
        true => PyBufferError::new_err("interrupted before the elements were there"),
        false => error,
    }
}

/// Has an interrupt handled where Python looks next, if the exception is what came of one; says whether it is.
fn handle_later(py: Python<'_>, error: &PyErr) -> bool {
    let ends = !error.is_instance_of::<PyException>(py);
    if ends {
        // SAFETY: it may be called at any time; it has the handler of SIGINT called as if the signal had come.
        unsafe { pyo3::ffi::PyErr_SetInterrupt() };
    }
    ends
}

/// What came of Python code where an exception is an answer: there is no such attribute, this is no number. Any Python code (a
/// property, `__index__`, `__len__`) may be interrupted, and then its exception is no answer and must not be dropped.
pub(crate) trait Attempt<T> {
    /// The value, or the exception where it is an `Exception`.
    ///
    /// # Errors
    /// What is none: `KeyboardInterrupt`, `SystemExit` and whatever else ends a program.
    fn attempt(self, py: Python<'_>) -> PyResult<PyResult<T>>;

    /// The value, where nothing can be raised; an interrupt is handled where Python looks next.
    fn or_later(self, py: Python<'_>) -> Option<T>;
}

impl<T> Attempt<T> for PyResult<T> {
    fn attempt(self, py: Python<'_>) -> PyResult<PyResult<T>> {
        match self {
            Err(error) if !error.is_instance_of::<PyException>(py) => Err(error),
            answer => Ok(answer),
        }
    }

    fn or_later(self, py: Python<'_>) -> Option<T> {
        self.map_err(|error| handle_later(py, &error)).ok()
    }
}
