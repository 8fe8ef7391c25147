//! A plug-in that was loaded and checked, and the calls into it.

use crate::abi::{
    self, LW_AVAILABLE, LW_BROKEN, LW_FAILED, LW_MISSING, LW_OK, LW_STRICT, LW_UNSUPPORTED,
};
use crate::arguments::text_of;
use crate::host::{self, Heard};
use crate::table::Checked;
use loopwright_backend::{
    BackendError, Capabilities, CompileOptions, Describe, Hardware, Scheduler, Target, Unavailable,
};
use std::path::PathBuf;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A plug-in.
pub(crate) struct Loaded {
    pub(crate) table: Checked,
    /// For messages.
    pub(crate) path: PathBuf,
    /// Held during every call into a plug-in that takes one call at a time.
    turn: Mutex<()>,
}

/// A program for a plug-in.
pub(crate) struct Job<'a> {
    /// What errors are told of: the first kernel.
    pub(crate) kernel: &'a str,
    pub(crate) form: u32,
    pub(crate) text: &'a str,
    pub(crate) schedule: &'a str,
    pub(crate) kernels: Vec<abi::Kernel>,
    pub(crate) math: &'a [&'static str],
}

impl Loaded {
    pub(crate) fn new(table: Checked, path: PathBuf) -> Loaded {
        Loaded {
            table,
            path,
            turn: Mutex::new(()),
        }
    }

    /// The plug-in in a message.
    pub(crate) fn who(&self) -> String {
        format!("plug-in `{}` ({})", self.table.name, self.path.display())
    }

    /// Waits until the plug-in can be called.
    pub(crate) fn turn(&self) -> Option<MutexGuard<'_, ()>> {
        let turn = || self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        (!self.table.thread_safe).then(turn)
    }

    /// Has a program compiled.
    pub(crate) fn compile(
        self: &Arc<Self>,
        job: &Job<'_>,
        options: &CompileOptions,
    ) -> Result<OwnedCode, BackendError> {
        let math: Vec<abi::Text> = job.math.iter().map(|name| text_of(name)).collect();
        let program = abi::Program {
            struct_size: size_of::<abi::Program>() as u32,
            form: job.form,
            text: text_of(job.text),
            schedule: text_of(job.schedule),
            kernels: job.kernels.as_ptr(),
            kernel_count: job.kernels.len(),
            math: math.as_ptr(),
            math_count: math.len(),
        };
        let options = abi::Options {
            struct_size: size_of::<abi::Options>() as u32,
            flags: if options.strict { LW_STRICT } else { 0 },
        };
        let mut code = std::ptr::null_mut();
        let mut error = Heard::reason();
        let writer = error.writer();
        let turn = self.turn();
        // SAFETY: the plug-in says that this is its function; what it is given is there until it returns.
        let status =
            unsafe { (self.table.functions.compile)(&program, &options, &mut code, &writer) };
        drop(turn);
        let error = error.text();
        let failed = |log: String| BackendError::Compiler {
            compiler: self.who(),
            source_path: format!("kernel `{}`", job.kernel),
            log,
        };
        match (status, NonNull::new(code)) {
            (LW_OK, Some(code)) => Ok(OwnedCode {
                plugin: self.clone(),
                code,
            }),
            (LW_OK, None) => Err(failed(
                "it says that it is done, and gives no code".to_owned(),
            )),
            (LW_UNSUPPORTED, _) => Err(BackendError::Unsupported {
                backend: self.table.name.clone(),
                kernel: job.kernel.to_owned(),
                reason: error.unwrap_or_else(|| self.silent()),
            }),
            (LW_FAILED, _) => Err(failed(error.unwrap_or_else(|| self.silent()))),
            (other, _) => Err(failed(unknown_status(other, error))),
        }
    }

    /// In place of a reason that was not given.
    fn silent(&self) -> String {
        format!("{} does not say why", self.who())
    }
}

pub(crate) fn unknown_status(status: u32, said: Option<String>) -> String {
    let said = said.map_or(String::new(), |said| format!("; it says: {said}"));
    format!("it gives the status {status}, which is none{said}")
}

/// The plug-in as a backend: of kernels, of loops or of devices, as its table is.
pub(crate) struct PluginBackend(pub(crate) Arc<Loaded>);

impl Describe for PluginBackend {
    fn name(&self) -> &str {
        &self.0.table.name
    }

    fn hardware(&self) -> Hardware {
        self.0.table.hardware
    }

    fn availability(&self) -> Result<(), Unavailable> {
        let Some(availability) = self.0.table.functions.availability else {
            return Ok(());
        };
        let (mut reason, mut help) = (Heard::reason(), Heard::reason());
        let (reason_writer, help_writer) = (reason.writer(), help.writer());
        let turn = self.0.turn();
        // SAFETY: the plug-in says that this is its function; the writers are there until it returns.
        let status = unsafe { availability(&reason_writer, &help_writer) };
        drop(turn);
        let (reason, help) = (reason.text(), help.text());
        let ask = || format!("ask the author of {}", self.0.who());
        match status {
            LW_AVAILABLE => Ok(()),
            LW_MISSING | LW_BROKEN => Err(Unavailable {
                reason: reason.unwrap_or_else(|| self.0.silent()),
                help: help.unwrap_or_else(ask),
                broken: status == LW_BROKEN,
            }),
            other => Err(Unavailable {
                reason: format!(
                    "{}, asked whether it can be used: {}",
                    self.0.who(),
                    unknown_status(other, reason)
                ),
                help: help.unwrap_or_else(ask),
                broken: true,
            }),
        }
    }

    fn target(&self) -> Target {
        match self.0.table.host_threads {
            // Asked for late: the host may still be told how many threads to have when it loads us.
            true => Target {
                threads: host::threads(),
                ..self.0.table.target
            },
            false => self.0.table.target,
        }
    }

    fn capabilities(&self) -> Capabilities {
        self.0.table.capabilities.clone()
    }

    fn scheduler(&self) -> Scheduler {
        self.0.table.scheduler
    }
}

/// What a plug-in made of a program; it is given back when this is dropped.
pub(crate) struct OwnedCode {
    plugin: Arc<Loaded>,
    code: NonNull<abi::Code>,
}

// SAFETY: a plug-in that is thread-safe says that its code may be used from several threads at once; that
// of any other is used by one call at a time, from whichever thread.
unsafe impl Send for OwnedCode {}
// SAFETY: as above.
unsafe impl Sync for OwnedCode {}

impl OwnedCode {
    /// Whether it was made by this plug-in.
    pub(crate) fn is_of(&self, plugin: &Arc<Loaded>) -> bool {
        Arc::ptr_eq(&self.plugin, plugin)
    }

    /// What the plug-in gave, for its own functions.
    pub(crate) fn as_ptr(&self) -> *mut abi::Code {
        self.code.as_ptr()
    }

    /// Runs a kernel to its end.
    ///
    /// # Safety
    /// The arguments are what the kernel takes, and their memory is there for as long as this runs, not
    /// used by anybody else in a way that their kinds do not allow.
    pub(crate) unsafe fn run(
        &self,
        kernel: &str,
        arguments: &[abi::Argument],
    ) -> Result<(), BackendError> {
        let plugin = &self.plugin;
        let failed = |reason: String| BackendError::Run {
            kernel: kernel.to_owned(),
            reason: format!("{}: {reason}", plugin.who()),
        };
        let run = plugin.table.functions.run;
        let run = run.ok_or_else(|| failed("it runs kernels on its devices only".to_owned()))?;
        let mut error = Heard::reason();
        let writer = error.writer();
        let turn = plugin.turn();
        // SAFETY: the code is the plug-in's and was not given back; for the arguments the caller vouches.
        let status = unsafe {
            run(
                self.code.as_ptr(),
                text_of(kernel),
                arguments.as_ptr(),
                arguments.len(),
                &writer,
            )
        };
        drop(turn);
        if status == LW_OK {
            return Ok(());
        }
        let error = error.text();
        let reason = match status {
            LW_FAILED | LW_UNSUPPORTED => error.unwrap_or_else(|| "it does not say why".to_owned()),
            other => unknown_status(other, error),
        };
        Err(failed(reason))
    }

    /// The code in the plug-in's own language, where it has one.
    pub(crate) fn text(&self) -> Option<String> {
        let code_text = self.plugin.table.functions.code_text?;
        let mut text = Heard::code();
        let writer = text.writer();
        let turn = self.plugin.turn();
        // SAFETY: the code is the plug-in's and was not given back.
        unsafe { code_text(self.code.as_ptr(), &writer) };
        drop(turn);
        text.text()
    }
}

impl Drop for OwnedCode {
    fn drop(&mut self) {
        let turn = self.plugin.turn();
        // SAFETY: nobody else has it any more, and it is given back this once.
        unsafe { (self.plugin.table.functions.release)(self.code.as_ptr()) };
        drop(turn);
    }
}
