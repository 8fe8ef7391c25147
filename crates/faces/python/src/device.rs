//! Devices: where arrays are computed.

use crate::errors::OrRaise;
use crate::interrupts::Interruptible;
use loopwright_backend::{CompileOptions, Precision};
use loopwright_config::{Key, Math, Settings, Sources};
use loopwright_runtime::{Runtime, RuntimeOptions, Scheduler};
use loopwright_tensor::Session;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

/// A device that arrays are computed on, with what has been compiled for it.
#[pyclass(
    name = "Device",
    module = "loopwright",
    frozen,
    eq,
    hash,
    from_py_object
)]
#[derive(Clone)]
pub(crate) struct PyDevice {
    pub(crate) session: Session,
}

impl PyDevice {
    pub(crate) fn name(&self) -> &str {
        self.session.device().name()
    }
}

impl PartialEq for PyDevice {
    fn eq(&self, other: &PyDevice) -> bool {
        self.name() == other.name()
    }
}

impl Hash for PyDevice {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

/// A runtime with the backends that there are now.
///
/// Work on the host's processor is done by the thread that asks for it: the interpreter's lock is free meanwhile, and to
/// hand a small call to another thread takes longer than the call.
fn new_runtime() -> PyResult<Runtime> {
    let settings = settings()?;
    Ok(Runtime::new(RuntimeOptions {
        scheduler: Some(Scheduler::Sync),
        compile: CompileOptions {
            strict: settings.strict(),
            math: match settings.math() {
                Math::Accurate => Precision::Accurate,
                Math::Fast => Precision::Fast,
            },
            ..CompileOptions::default()
        },
        ..RuntimeOptions::default()
    }))
}

/// What the environment says of how programs are compiled. Other options are those of the command line.
fn settings() -> PyResult<Settings> {
    let read = [Key::Strict, Key::Math].map(|key| key.variable());
    let environment = read.into_iter().filter_map(|name| {
        let value = std::env::var_os(&name)?;
        Some((name.into(), value))
    });
    let sources = Sources {
        environment: environment.collect(),
        ..Sources::default()
    };
    Settings::load(&sources).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// The one runtime of this process; a child that is forked has another than its parent.
fn runtime() -> PyResult<Arc<Runtime>> {
    static RUNTIME: Mutex<Option<(u64, Arc<Runtime>)>> = Mutex::new(None);
    let mut runtime = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    let generation = loopwright_threads::generation();
    Ok(match &*runtime {
        Some((made_in, runtime)) if *made_in == generation => Arc::clone(runtime),
        _ => {
            let made = Arc::new(new_runtime()?);
            let before = runtime.replace((generation, Arc::clone(&made)));
            // That of the parent, whose threads are not here.
            std::mem::forget(before);
            made
        }
    })
}

/// A session that works in this process: the one given, or that of the same device where it is the parent's.
fn in_this_process(found: Session) -> PyResult<Session> {
    match found.device().check_process() {
        Ok(()) => Ok(found),
        Err(_) => session(found.device().name()),
    }
}

/// The session on the device of that name; every device has one.
pub(crate) fn session(name: &str) -> PyResult<Session> {
    static SESSIONS: Mutex<BTreeMap<String, Session>> = Mutex::new(BTreeMap::new());
    let sessions = || SESSIONS.lock().unwrap_or_else(PoisonError::into_inner);
    let known = sessions().get(name).cloned();
    if let Some(found) = known
        && found.device().check_process().is_ok()
    {
        return Ok(found);
    }
    // A backend may have been registered since the runtime was made: that one sees the backends of its own time.
    let device = match runtime()?.device(name) {
        Ok(device) => device,
        Err(_) => new_runtime()?.device(name).or_raise()?,
    };
    let made = Session::on(&device).or_raise()?;
    let mut sessions = sessions();
    // `x86` and `auto` may be the same device, which has one session.
    let own = match sessions.get(device.name()) {
        Some(own) if own.device().check_process().is_ok() => own.clone(),
        _ => {
            sessions.insert(device.name().to_owned(), made.clone());
            made
        }
    };
    sessions.insert(name.to_owned(), own.clone());
    Ok(own)
}

/// The device that is used where nothing is said, for the whole process.
static DEFAULT: RwLock<Option<Session>> = RwLock::new(None);

/// A `contextvars.ContextVar` with the device of the `with` block around, once there has been one.
static SCOPED: OnceLock<Py<PyAny>> = OnceLock::new();

/// The session to use where nothing is said: the innermost `with` block's, the default, or the best device's.
pub(crate) fn current(py: Python<'_>) -> PyResult<Session> {
    if let Some(variable) = SCOPED.get() {
        let device = variable.bind(py).call_method0("get")?;
        if let Ok(device) = device.extract::<PyDevice>() {
            return in_this_process(device.session);
        }
    }
    let default = DEFAULT.read().unwrap_or_else(PoisonError::into_inner);
    let known = default.clone();
    drop(default);
    if let Some(known) = known {
        return in_this_process(known);
    }
    let name = std::env::var("LOOPWRIGHT_DEVICE").unwrap_or_else(|_| "auto".to_owned());
    let found = session(&name)?;
    let mut default = DEFAULT.write().unwrap_or_else(PoisonError::into_inner);
    Ok(default.get_or_insert(found).clone())
}

/// The session of an argument `device=`: a device, a name, or nothing.
pub(crate) fn of_argument(py: Python<'_>, device: Option<&Bound<'_, PyAny>>) -> PyResult<Session> {
    let Some(device) = device.filter(|device| !device.is_none()) else {
        return current(py);
    };
    if let Ok(device) = device.extract::<PyDevice>() {
        return in_this_process(device.session);
    }
    match device.extract::<String>() {
        Ok(name) => session(&name),
        Err(_) => Err(PyTypeError::new_err(format!(
            "a device is a Device or its name, not {}",
            device.get_type().name()?
        ))),
    }
}

#[pymethods]
impl PyDevice {
    /// A device by its name: `x86`, `cc`, `interp`, or `auto` for the best there is.
    #[new]
    fn new(name: &str) -> PyResult<PyDevice> {
        Ok(PyDevice {
            session: session(name)?,
        })
    }

    /// Its name.
    #[getter(name)]
    fn py_name(&self) -> &str {
        self.name()
    }

    /// What it is, in words.
    #[getter]
    fn description(&self) -> String {
        self.session.device().limits().description.clone()
    }

    /// Waits until everything is done that was started on it.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        py.interruptible(|| self.session.wait())?.or_raise()
    }

    /// Bytes of its memory that are in use, and the most that were.
    fn memory(&self, py: Python<'_>) -> PyResult<(usize, usize)> {
        let usage = py.interruptible(|| self.session.memory())?.or_raise()?;
        Ok((usage.used, usage.peak))
    }

    /// How many programs were compiled for it, and how often one was used again.
    fn compilations(&self) -> (u64, u64) {
        let counts = self.session.compilations();
        (counts.compiled, counts.reused)
    }

    fn __repr__(&self) -> String {
        format!("loopwright.Device('{}')", self.name())
    }

    fn __str__(&self) -> &str {
        self.name()
    }

    fn __reduce__(slf: &Bound<'_, Self>) -> (Py<PyAny>, (String,)) {
        let name = slf.get().name().to_owned();
        (slf.get_type().into_any().unbind(), (name,))
    }
}

/// Every device that works here, the one that `auto` takes first.
#[pyfunction]
pub(crate) fn devices() -> Vec<PyDevice> {
    let names = loopwright::backend::backends();
    let names = names.iter().map(|backend| backend.name().to_owned());
    names
        .filter_map(|name| session(&name).ok())
        .map(|session| PyDevice { session })
        .collect()
}

/// The device that is used where nothing is said.
#[pyfunction]
pub(crate) fn current_device(py: Python<'_>) -> PyResult<PyDevice> {
    let session = current(py)?;
    Ok(PyDevice { session })
}

/// Makes a device the one that is used where nothing is said; `None` for the best there is.
#[pyfunction]
pub(crate) fn set_default_device(
    py: Python<'_>,
    device: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let session = device.map(|device| of_argument(py, Some(device)));
    *DEFAULT.write().unwrap_or_else(PoisonError::into_inner) = session.transpose()?;
    Ok(())
}

/// Says where `with` blocks keep their device.
#[pyfunction]
pub(crate) fn scope_variable(variable: Py<PyAny>) {
    let _ = SCOPED.set(variable);
}
