//! Runtimes, platforms and devices.

use crate::error::RuntimeError;
use crate::host::HostDevice;
use crate::memory::{Accounts, Pool, Usage};
use crate::stream::{Board, Shared, Stream};
use crate::trace::Trace;
use crate::verify::Verify;
use loopwright_backend::{
    Backend, CompileOptions, Limits, PlainDevice, Scheduler, Unavailable, backends,
};
use loopwright_compile::{Compiler, RECENT_PROGRAMS, Recent};
use loopwright_threads::ShortLock;
use rustc_hash::FxHashMap;
use std::fmt;
use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// The name that stands for the best device there is.
pub const AUTO: &str = "auto";

/// How a runtime works.
#[derive(Clone, Debug)]
pub struct RuntimeOptions {
    /// How work is run; `None`: as each backend likes it best.
    pub scheduler: Option<Scheduler>,
    /// How many devices a backend on host memory shows.
    pub devices: NonZero<usize>,
    /// How many streams a device suggests; `None`: as many as make good use of it.
    pub streams: Option<NonZero<usize>>,
    /// The most bytes that one pool holds.
    pub pool_cap: usize,
    /// How much work waits in a stream before scheduling more waits.
    pub queue: NonZero<usize>,
    /// How programs are compiled, and where code is kept.
    pub compile: CompileOptions,
    /// Whether everything that happens is recorded.
    pub trace: bool,
    /// Whether kernels log what they store; see [`Routine::stores`](crate::Routine::stores).
    pub log_stores: bool,
    /// The backend that is given the parts of programs which the chosen one refuses; `None`: such
    /// programs are refused.
    pub fallback: Option<String>,
    /// Who checks every run of a kernel.
    pub verify: Option<Arc<dyn Verify>>,
}

impl Default for RuntimeOptions {
    fn default() -> RuntimeOptions {
        RuntimeOptions {
            scheduler: None,
            devices: NonZero::<usize>::MIN,
            streams: None,
            pool_cap: 1 << 40,
            queue: NonZero::new(1024).expect("not zero"),
            compile: CompileOptions::default(),
            trace: false,
            log_stores: false,
            fallback: None,
            verify: None,
        }
    }
}

/// Platforms with their devices. Two runtimes share nothing.
pub struct Runtime {
    options: Arc<RuntimeOptions>,
    shared: Arc<Shared>,
    platforms: Vec<Arc<Platform>>,
    /// The devices in use, by platform and ordinal.
    devices: Mutex<FxHashMap<(usize, usize), Arc<DeviceShared>>>,
}

/// A backend with its devices.
pub(crate) struct Platform {
    pub(crate) name: String,
    pub(crate) backend: Backend,
    pub(crate) compiler: Compiler,
    plain: Vec<Arc<dyn PlainDevice>>,
}

/// A platform and whether it can be used.
#[derive(Clone, Debug)]
pub struct PlatformInfo {
    /// Its name; its devices are called after it: `cc:0`.
    pub name: String,
    /// How many devices it has.
    pub devices: usize,
    /// Why it cannot be used, if it cannot.
    pub unavailable: Option<Unavailable>,
    /// What its devices have.
    pub limits: Limits,
    /// Its backend.
    pub backend: Backend,
    /// How its work is run.
    pub scheduler: Scheduler,
}

impl Runtime {
    /// A runtime with all backends that are linked in.
    pub fn new(options: RuntimeOptions) -> Runtime {
        let mut runtime = Runtime::empty(options);
        for backend in backends() {
            runtime.add_backend(backend);
        }
        runtime
    }

    /// A runtime without any platform.
    pub fn empty(options: RuntimeOptions) -> Runtime {
        let trace = options.trace.then(|| Arc::new(Trace::new()));
        Runtime {
            options: Arc::new(options),
            shared: Arc::new(Shared {
                board: ShortLock::new(Board::default()),
                trace,
                generation: loopwright_threads::generation(),
            }),
            platforms: Vec::new(),
            devices: Mutex::default(),
        }
    }

    /// Adds a backend with its devices, less preferred than those before it. One that works in host memory
    /// shows as many as the options say.
    pub fn add_backend(&mut self, backend: Backend) -> &mut Runtime {
        let devices = backend.devices().unwrap_or_else(|| {
            let plain: Arc<dyn PlainDevice> = Arc::new(HostDevice::new(&*backend));
            vec![plain; self.options.devices.get()]
        });
        self.add_platform(backend, devices)
    }

    /// Adds a backend with devices of one's own, less preferred than those before it.
    pub fn add_platform(
        &mut self,
        backend: Backend,
        devices: Vec<Arc<dyn PlainDevice>>,
    ) -> &mut Runtime {
        let compiler = Compiler::new(backend.clone(), self.options.compile.clone());
        let compiler = match &self.options.fallback {
            Some(name) => compiler.with_fallback(name),
            None => compiler,
        };
        self.platforms.push(Arc::new(Platform {
            name: backend.name().to_owned(),
            compiler: match self.options.log_stores {
                true => compiler.logging(),
                false => compiler,
            },
            backend,
            plain: devices,
        }));
        self
    }

    /// How it works.
    pub fn options(&self) -> &RuntimeOptions {
        &self.options
    }

    /// Every platform, most preferred first.
    pub fn platforms(&self) -> Vec<PlatformInfo> {
        let info = |platform: &Arc<Platform>| PlatformInfo {
            name: platform.name.clone(),
            devices: platform.plain.len(),
            unavailable: platform.backend.availability().err(),
            limits: platform
                .plain
                .first()
                .map(|plain| plain.limits())
                .unwrap_or_default(),
            backend: platform.backend.clone(),
            scheduler: self
                .options
                .scheduler
                .unwrap_or_else(|| platform.backend.scheduler()),
        };
        self.platforms.iter().map(info).collect()
    }

    /// The recording, if there is one.
    pub fn trace(&self) -> Option<&Arc<Trace>> {
        self.shared.trace.as_ref()
    }

    /// A device by its name: `cc`, `cc:1`, or `auto` for the most preferred one that is available.
    ///
    /// # Errors
    /// [`RuntimeError::NoSuchDevice`], [`RuntimeError::NoSuchOrdinal`], [`RuntimeError::Unavailable`],
    /// and for `auto` also [`RuntimeError::Broken`] and [`RuntimeError::NoDevice`].
    pub fn device(&self, name: &str) -> Result<Device, RuntimeError> {
        self.choose(name).map(|choice| choice.device)
    }

    /// As [`device`](Runtime::device), and says why.
    ///
    /// # Errors
    /// As [`device`](Runtime::device).
    pub fn choose(&self, name: &str) -> Result<Choice, RuntimeError> {
        if name == AUTO {
            return self.choose_any();
        }
        let (platform, ordinal) = match name.split_once(':') {
            Some((platform, ordinal)) => (platform, Some(ordinal)),
            None => (name, None),
        };
        let found = self
            .platforms
            .iter()
            .position(|known| known.name == platform);
        let Some(at) = found else {
            let known: Vec<&str> = self.platforms.iter().map(|known| &*known.name).collect();
            return Err(RuntimeError::NoSuchDevice {
                name: name.to_owned(),
                known: known.join(", "),
            });
        };
        let devices = self.platforms[at].plain.len();
        let number = ordinal.map_or(Some(0), |ordinal| ordinal.parse().ok());
        let Some(number) = number.filter(|number| *number < devices) else {
            return Err(RuntimeError::NoSuchOrdinal {
                platform: platform.to_owned(),
                ordinal: ordinal.unwrap_or("0").to_owned(),
                devices,
            });
        };
        if let Err(why) = self.platforms[at].backend.availability() {
            return Err(RuntimeError::Unavailable {
                name: platform.to_owned(),
                why,
            });
        }
        Ok(Choice {
            device: self.open(at, number),
            passed_over: Vec::new(),
        })
    }

    fn choose_any(&self) -> Result<Choice, RuntimeError> {
        let mut passed_over = Vec::new();
        for (at, platform) in self.platforms.iter().enumerate() {
            match platform.backend.availability() {
                Ok(()) if platform.plain.is_empty() => {}
                Ok(()) => {
                    return Ok(Choice {
                        device: self.open(at, 0),
                        passed_over,
                    });
                }
                Err(why) if why.broken => {
                    return Err(RuntimeError::Broken {
                        name: platform.name.clone(),
                        why,
                    });
                }
                Err(why) => passed_over.push((platform.name.clone(), why)),
            }
        }
        let reasons: Vec<String> = passed_over
            .iter()
            .map(|(name, why)| format!("{name}: {why}"))
            .collect();
        Err(RuntimeError::NoDevice {
            reasons: reasons.join("; "),
        })
    }

    /// The device of a platform by its ordinal; always the same one.
    fn open(&self, platform: usize, ordinal: usize) -> Device {
        let mut devices = crate::lock(&self.devices);
        let shared = devices.entry((platform, ordinal)).or_insert_with(|| {
            let platform = Arc::clone(&self.platforms[platform]);
            let largest = platform.backend.capabilities().max_buffer;
            let largest = largest.map_or(usize::MAX, |bytes| {
                usize::try_from(bytes).unwrap_or(usize::MAX)
            });
            Arc::new(DeviceShared {
                pool_cap: self.options.pool_cap.min(largest),
                name: format!("{}:{ordinal}", platform.name).into(),
                ordinal,
                plain: Arc::clone(&platform.plain[ordinal]),
                limits: platform.plain[ordinal].limits(),
                platform,
                memory: Arc::default(),
                options: Arc::clone(&self.options),
                runtime: Arc::clone(&self.shared),
                streams: AtomicU64::new(0),
                constants: Mutex::new(Recent::new(RECENT_PROGRAMS)),
            })
        });
        Device {
            shared: Arc::clone(shared),
        }
    }
}

/// A device, and why it was chosen.
pub struct Choice {
    /// The device.
    pub device: Device,
    /// More preferred platforms that are not available, with the reason.
    pub passed_over: Vec<(String, Unavailable)>,
}

pub(crate) struct DeviceShared {
    pub(crate) name: Arc<str>,
    ordinal: usize,
    pub(crate) plain: Arc<dyn PlainDevice>,
    /// As the device says when it is opened.
    pub(crate) limits: Limits,
    pub(crate) platform: Arc<Platform>,
    pub(crate) memory: Arc<Accounts>,
    pub(crate) options: Arc<RuntimeOptions>,
    /// The most bytes that one pool holds.
    pub(crate) pool_cap: usize,
    pub(crate) runtime: Arc<Shared>,
    streams: AtomicU64,
    /// Arrays of constants, by what is in them: those used last. What is linked holds its own.
    pub(crate) constants: Mutex<Recent<blake3::Hash, (Arc<Pool>, usize)>>,
}

impl DeviceShared {
    /// How its work is run.
    pub(crate) fn scheduler(&self) -> Scheduler {
        let preferred = || self.platform.backend.scheduler();
        self.options.scheduler.unwrap_or_else(preferred)
    }

    pub(crate) fn next_stream(&self) -> u64 {
        self.streams.fetch_add(1, Ordering::Relaxed)
    }
}

/// A physical device. Clones are the same device.
#[derive(Clone)]
pub struct Device {
    pub(crate) shared: Arc<DeviceShared>,
}

impl Device {
    /// Its name: the backend's, and its number there.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Its number among the backend's devices.
    pub fn ordinal(&self) -> usize {
        self.shared.ordinal
    }

    /// Whether its backend has no other device.
    pub fn is_only(&self) -> bool {
        self.shared.platform.plain.len() == 1
    }

    /// The backend that compiles for it.
    pub fn backend(&self) -> &Backend {
        &self.shared.platform.backend
    }

    /// The compiler that it shares with the other devices of the backend.
    pub fn compiler(&self) -> &Compiler {
        &self.shared.platform.compiler
    }

    /// What it has.
    pub fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    /// How its work is run.
    pub fn scheduler(&self) -> Scheduler {
        self.shared.scheduler()
    }

    /// How many streams make good use of it.
    pub fn suggested_streams(&self) -> usize {
        let wish = self.shared.options.streams.map(NonZero::get);
        wish.unwrap_or_else(|| self.limits().streams.max(1))
    }

    /// How much of its memory is used.
    pub fn memory(&self) -> Usage {
        self.shared.memory.usage()
    }

    /// A new stream; there can be any number.
    ///
    /// # Errors
    /// [`RuntimeError::Stream`] where no thread can be started for it.
    pub fn stream(&self) -> Result<Stream, RuntimeError> {
        Stream::new(&self.shared)
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Device").field(&self.shared.name).finish()
    }
}

impl PartialEq for Device {
    fn eq(&self, other: &Device) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}

impl Eq for Device {}
