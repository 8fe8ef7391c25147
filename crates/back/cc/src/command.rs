//! Running the compiler.

use crate::Settings;
use crate::find::Compiler;
use loopwright_backend::BackendError;
use loopwright_emit::{ABI_VERSION, Emitted};
use loopwright_files::cache::Key;
use loopwright_files::{ScratchFolder, scratch_file};
use loopwright_threads::interrupt::{Interrupted, check};
use std::fmt::Write;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
#[cfg(unix)]
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Flags that hold for every module. None of them lets the compiler change a value: `-fwrapv` and
/// `-fno-strict-aliasing` define what C leaves open; `-fno-math-errno` only gives up `errno`, which
/// nothing reads. `-fno-trapping-math` is not among them: with it GCC 12 makes `trunc(x)` of
/// `(float)(int)x`, which is -0 where the integer was 0. `-fno-tree-slp-vectorize` is there because
/// GCC 12 makes -1 of comparisons it gathers into the lanes of a vector; loops, also those over lanes,
/// are vectorised all the same. `-fno-tree-loop-if-convert` is there because GCC 12 loads nothing, and
/// stores 0, for some elements of a guarded load in a short inner loop (-O3, AVX2 or later); a loop with a
/// branch inside is then not vectorised by the compiler, and those over lanes have none.
const FLAGS: &[&str] = &[
    "-std=c11",
    "-fPIC",
    "-shared",
    "-fwrapv",
    "-fno-strict-aliasing",
    "-fno-math-errno",
    "-fno-tree-slp-vectorize",
    "-fno-tree-loop-if-convert",
    "-w",
];

/// The command that compiles `source` to the shared library `library`.
pub fn compile_source_command(
    compiler: &Compiler,
    settings: &Settings,
    math: &[&str],
    source: &Path,
    library: &Path,
) -> Command {
    let mut command = Command::new(&compiler.path);
    command.args(&compiler.arguments);
    command.args(flags(compiler, settings, math));
    command.arg("-o").arg(library).arg(source).arg("-lm");
    command
}

fn flags(compiler: &Compiler, settings: &Settings, math: &[&str]) -> Vec<String> {
    let mut flags = vec![format!("-O{}", settings.optimisation)];
    flags.extend(
        compiler
            .native
            .iter()
            .chain(FLAGS)
            .map(|&flag| flag.to_owned()),
    );
    // What is rounded once stands in the source.
    flags.push("-ffp-contract=off".to_owned());
    // The library's functions are called, not folded or replaced by something almost as good.
    flags.extend(
        math.iter()
            .map(|function| format!("-fno-builtin-{function}")),
    );
    flags.extend(settings.flags.iter().cloned());
    flags
}

/// One module to compile.
pub(crate) struct Job<'a> {
    compiler: &'a Compiler,
    settings: &'a Settings,
    math: Vec<&'static str>,
}

/// A compiled module in a directory of its own, which goes away with it.
pub(crate) struct Built {
    pub(crate) library: PathBuf,
    /// The command, and what it said.
    pub(crate) log: String,
    /// Removed, with everything in it, when this is dropped.
    pub(crate) _directory: ScratchFolder,
}

impl<'a> Job<'a> {
    pub(crate) fn new(
        compiler: &'a Compiler,
        settings: &'a Settings,
        emitted: &Emitted,
    ) -> Job<'a> {
        Job {
            compiler,
            settings,
            math: emitted.math.clone(),
        }
    }

    /// What the library depends on, as a hash: the source, the compiler, the machine it compiles
    /// for, the flags and the calling convention.
    pub(crate) fn key(&self, source: &str) -> Key {
        let abi = ABI_VERSION.to_le_bytes();
        let flags = flags(self.compiler, self.settings, &self.math);
        let mut parts: Vec<&[u8]> = vec![&abi, self.compiler.identity.as_bytes()];
        parts.extend(self.compiler.arguments.iter().map(String::as_bytes));
        parts.extend(flags.iter().map(String::as_bytes));
        parts.push(source.as_bytes());
        Key::of(parts)
    }

    /// Compiles in a private directory.
    pub(crate) fn build(&self, source: &str) -> Result<Built, BackendError> {
        let directory = ScratchFolder::new("cc")
            .map_err(|error| file_error("create a folder in", &std::env::temp_dir(), &error))?;
        let source_path = directory.path().join("module.c");
        loopwright_files::write(&source_path, source.as_bytes())
            .map_err(|error| file_error("write", &source_path, &error))?;
        let library = directory.path().join("module.so");
        let mut command = compile_source_command(
            self.compiler,
            self.settings,
            &self.math,
            &source_path,
            &library,
        );
        command.env("LC_ALL", "C");
        // What the compiler leaves behind where it is killed goes with the folder.
        command.env("TMPDIR", directory.path());
        let command_line = command_line(&command);
        let failure = match run_limited(command, self.settings.timeout, check) {
            Ok(finished) if finished.success && library.is_file() => {
                return Ok(Built {
                    library,
                    log: format!("{command_line}\n{}", finished.log),
                    _directory: directory,
                });
            }
            Ok(finished) if finished.success => "it made no library".to_owned(),
            Ok(finished) => with_source_line(finished.log, source, &source_path),
            // Nothing is wrong with the source, and the folder goes.
            Err(RunFailure::Interrupted) => return Err(BackendError::Interrupted),
            Err(RunFailure::Failed(error)) => error,
        };
        // The source stays for whoever looks into this.
        let kept = directory.keep().join("module.c");
        Err(BackendError::Compiler {
            compiler: self.compiler.path.display().to_string(),
            source_path: kept.display().to_string(),
            log: failure,
        })
    }
}

/// A command as one would type it, for people: words with blanks in them are quoted.
fn command_line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words = words.map(|word| {
        let word = word.to_string_lossy();
        match word.is_empty() || word.contains(char::is_whitespace) {
            true => format!("'{word}'"),
            false => word.into_owned(),
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// The log, and under it the line of the source that the first error is about.
fn with_source_line(mut log: String, source: &str, path: &Path) -> String {
    let prefix = format!("{}:", path.display());
    let line = log
        .lines()
        .filter(|line| line.contains("error:"))
        .filter_map(|line| line.strip_prefix(&prefix))
        .find_map(|rest| rest.split(':').next()?.parse::<usize>().ok());
    if let Some(number) = line
        && let Some(text) = number
            .checked_sub(1)
            .and_then(|index| source.lines().nth(index))
    {
        let _ = write!(log, "\nline {number} of the source: {}", text.trim());
    }
    log
}

/// What a program that ended left.
#[derive(Debug)]
pub struct Finished {
    /// Whether it ended with status 0.
    pub success: bool,
    /// Everything it wrote.
    pub log: String,
}

/// Why a program did not run to its end.
#[derive(Debug)]
pub enum RunFailure {
    /// Whoever waited for it was told to end.
    Interrupted,
    /// Something else, in words.
    Failed(String),
}

impl From<String> for RunFailure {
    fn from(reason: String) -> RunFailure {
        RunFailure::Failed(reason)
    }
}

/// The longest wait before asking whether to wait on.
const QUESTIONS: Duration = Duration::from_millis(25);

/// Whether a child's status was lost in this process. Where SIGCHLD is ignored, or another part of the program waits for all
/// children, the system tells us only that a child has ended. Both are the program's own choice.
#[cfg(unix)]
static STATUS_IS_LOST: AtomicBool = AtomicBool::new(false);

/// Runs a program to its end, or kills it, with all it started, after `limit`.
///
/// Where the status of children is lost, because SIGCHLD is ignored or others wait for them, a shell writes it down.
///
/// # Errors
/// Why it did not run to its end. Where `check` says that the caller was told to end, it is killed as well.
pub fn run_limited(
    command: Command,
    limit: Duration,
    check: impl Fn() -> Result<(), Interrupted>,
) -> Result<Finished, RunFailure> {
    let program = command.get_program().to_string_lossy().into_owned();
    let finished = |status: ExitStatus, mut log: String| {
        if !status.success() && log.trim().is_empty() {
            let _ = write!(log, "{program} ended with {status} and said nothing");
        }
        Finished {
            success: status.success(),
            log,
        }
    };
    let lost = |error: &std::io::Error| format!("{program} was lost: {error}");
    #[cfg(unix)]
    let shell = under_shell(&command);
    #[cfg(unix)]
    if STATUS_IS_LOST.load(Ordering::Relaxed) {
        let (_, log) = run_once(shell, &program, limit, check)?;
        let (status, log) = status_of_shell(log).ok_or_else(|| format!("{program} was lost"))?;
        return Ok(finished(status, log));
    }
    let (status, log) = run_once(command, &program, limit, &check)?;
    match status {
        Ok(status) => Ok(finished(status, log)),
        #[cfg(unix)]
        Err(error) if error.raw_os_error() == Some(libc::ECHILD) => {
            STATUS_IS_LOST.store(true, Ordering::Relaxed);
            let (_, log) = run_once(shell, &program, limit, check)?;
            let (status, log) = status_of_shell(log).ok_or_else(|| lost(&error))?;
            Ok(finished(status, log))
        }
        Err(error) => Err(lost(&error).into()),
    }
}

/// What a shell writes before the status of its command.
#[cfg(unix)]
const STATUS: &str = "\nstatus of the command: ";

/// The same command, run by a shell that writes its status to the end of the log. A shell waits for its children whatever
/// dispositions it was started with.
#[cfg(unix)]
fn under_shell(command: &Command) -> Command {
    let mut shell = Command::new("/bin/sh");
    let script = r#"status=$1; shift; "$@"; printf '%s%s\n' "$status" "$?""#;
    shell.args(["-c", script, "sh", STATUS]);
    shell.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    if let Some(directory) = command.get_current_dir() {
        shell.current_dir(directory);
    }
    shell
}

/// The status at the end of a shell's log, and the log without it.
#[cfg(unix)]
fn status_of_shell(mut log: String) -> Option<(ExitStatus, String)> {
    use std::os::unix::process::ExitStatusExt;
    let at = log.rfind(STATUS)?;
    let code: i32 = log[at + STATUS.len()..].trim().parse().ok()?;
    log.truncate(at);
    Some((ExitStatus::from_raw((code & 0xff) << 8), log))
}

/// Runs a command to its end: what waiting for it gave, and all it wrote.
fn run_once(
    mut command: Command,
    program: &str,
    limit: Duration,
    check: impl Fn() -> Result<(), Interrupted>,
) -> Result<(std::io::Result<ExitStatus>, String), RunFailure> {
    // Into a file, not a pipe: nobody has to read along, and children that outlive their parent
    // do not keep it open.
    let mut log = scratch_file().map_err(|error| format!("no temporary file: {error}"))?;
    let handle = |log: &File| {
        log.try_clone()
            .map_err(|error| format!("no temporary file: {error}"))
    };
    command
        .stdin(Stdio::null())
        .stdout(handle(&log)?)
        .stderr(handle(&log)?);
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt;
        // A group of its own, so that a compiler's helpers can be ended with it.
        command.process_group(0);
    }
    let mut child = command
        .spawn()
        .map_err(|error| format!("{program} does not start: {error}"))?;
    let id = child.id();
    let (send, receive) = mpsc::channel();
    let waiter = std::thread::spawn(move || {
        let _ = send.send(child.wait());
    });
    let kill = |failure: RunFailure| {
        kill_group(id);
        // Killed, it ends at once; a waiter that panicked has nothing to say.
        let _ = waiter.join();
        failure
    };
    let from = Instant::now();
    let status = loop {
        let left = limit.saturating_sub(from.elapsed());
        match receive.recv_timeout(left.min(QUESTIONS)) {
            Ok(status) => break status,
            Err(_) if check().is_err() => return Err(kill(RunFailure::Interrupted)),
            Err(_) if from.elapsed() < limit => {}
            Err(_) => {
                return Err(kill(RunFailure::Failed(format!(
                    "{program} was killed after {} seconds; LOOPWRIGHT_CC_TIMEOUT sets the limit",
                    limit.as_secs()
                ))));
            }
        }
    };
    let mut text = Vec::new();
    log.seek(SeekFrom::Start(0))
        .and_then(|_| log.read_to_end(&mut text))
        .map_err(|error| format!("what {program} said cannot be read: {error}"))?;
    Ok((status, String::from_utf8_lossy(&text).into_owned()))
}

#[cfg(unix)]
fn kill_group(id: u32) {
    if let Ok(group) = libc::pid_t::try_from(id) {
        // SAFETY: a plain system call. The group is that of a child which has not been waited for,
        // so its number cannot belong to anybody else.
        unsafe { libc::kill(-group, libc::SIGKILL) };
    }
}

#[cfg(not(unix))]
fn kill_group(_: u32) {}

pub(crate) fn file_error(
    action: &'static str,
    path: &Path,
    error: &std::io::Error,
) -> BackendError {
    BackendError::File {
        action,
        path: path.display().to_string(),
        reason: error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offending_line_is_quoted() {
        let log = "in x:\n/t/m.c:2:5: error: no\n/t/m.c:1:1: error: later\n".to_owned();
        let log = with_source_line(log, "first\n  second\n", Path::new("/t/m.c"));
        assert!(log.ends_with("\nline 2 of the source: second"), "{log}");
    }

    #[cfg(unix)]
    #[test]
    fn a_program_that_hangs_is_killed_with_its_children() {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "sleep 1000 & wait"]);
        let error = match run_limited(command, Duration::from_millis(50), || Ok(())) {
            Err(RunFailure::Failed(error)) => error,
            Err(RunFailure::Interrupted) => panic!("nobody asked it to end"),
            Ok(finished) => panic!("it should have been killed, but said {}", finished.log),
        };
        assert!(error.contains("was killed after 0 seconds"), "{error}");
    }
}
