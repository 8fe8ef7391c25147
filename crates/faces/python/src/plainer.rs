//! Schedules of ours that were refused, as warnings: once for each function.

use crate::errors::ScheduleWarning;
use loopwright_tensor::{Plainer, on_plainer_schedule};
use pyo3::prelude::*;
use std::collections::BTreeSet;
use std::ffi::CString;
use std::sync::{Mutex, PoisonError};

/// So many warnings are remembered; more different ones are given again.
const REMEMBERED: usize = 4096;

/// Warns of plainer schedules from now on, in whatever thread programs are compiled.
pub(crate) fn listen() {
    on_plainer_schedule(|name, plainer| {
        Python::attach(|py| {
            if let Err(error) = warn(py, name, plainer) {
                // Who has made errors of warnings is told, and the program runs: there is nothing wrong with it.
                error.write_unraisable(py, None);
            }
        });
    });
}

/// Warns that a program runs under a plainer schedule, unless that was said before.
pub(crate) fn warn(py: Python<'_>, name: &str, plainer: &Plainer) -> PyResult<()> {
    static TOLD: Mutex<BTreeSet<(String, String)>> = Mutex::new(BTreeSet::new());
    let what = (name.to_owned(), plainer.reason.clone());
    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    let is_new = !told.contains(&what);
    if is_new && told.len() < REMEMBERED {
        told.insert(what);
    }
    // Python code runs below, and may compile something.
    drop(told);
    if !is_new {
        return Ok(());
    }
    let text = CString::new(format!("`{name}`: {plainer}").replace('\0', " "))?;
    PyErr::warn(py, &py.get_type::<ScheduleWarning>(), &text, 1)
}
