//! Measuring in a process of its own, which is killed and started anew when a candidate takes it down.

use super::protocol::{Reply, Request, read, write};
use super::{Measure, Outcome, Phase, Trial, Work};
use crate::error::TuneError;
use crate::reference::Expected;
use std::ffi::OsString;
use std::io::{BufReader, BufWriter};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How long the process may take until it is ready: it makes inputs, and loads what backends need.
pub(crate) const START: Duration = Duration::from_secs(20);

/// How often it is looked whether the search should end.
const GLANCE: Duration = Duration::from_millis(20);

/// Which process measures, and its limits.
#[derive(Clone, Debug)]
pub struct ProcessOptions {
    /// The program: one that calls [`super::serve`].
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// How long a candidate may take to compile.
    pub compile_limit: Duration,
    /// When everything ends; a candidate at work then counts as timed out.
    pub deadline: Instant,
    /// Ends everything early.
    pub stop: Arc<AtomicBool>,
}

/// Measures in a process of its own. A candidate that crashes or never ends costs that process, and nothing
/// else; the next candidate gets a new one.
pub struct Process {
    options: ProcessOptions,
    work: Work,
    expected: Expected,
    running: Option<Running>,
    started: u32,
}

struct Running {
    child: Child,
    input: BufWriter<ChildStdin>,
    replies: Receiver<Reply>,
    /// Where compilers put their files; gone with the process.
    _scratch: loopwright_files::ScratchFolder,
}

/// What ends the wait for a reply.
enum Silence {
    /// The process ended.
    Ended,
    /// Its time is up.
    Late,
}

impl Process {
    /// Starts the process.
    ///
    /// # Errors
    /// A process that does not start, or cannot do this work.
    pub fn start(
        options: ProcessOptions,
        work: Work,
        expected: Expected,
    ) -> Result<Process, TuneError> {
        let mut process = Process {
            options,
            work,
            expected,
            running: None,
            started: 0,
        };
        process.ready()?;
        Ok(process)
    }

    /// How many processes were started so far: one, and one more for each that a candidate took down.
    pub fn started(&self) -> u32 {
        self.started
    }

    /// Sets when everything ends.
    pub fn set_deadline(&mut self, deadline: Instant) {
        self.options.deadline = deadline;
    }

    /// Sets how long a candidate may take to compile.
    pub fn set_compile_limit(&mut self, limit: Duration) {
        self.options.compile_limit = limit;
    }

    /// Whether everything ends now.
    pub fn is_over(&self) -> bool {
        Instant::now() >= self.options.deadline
    }

    fn ready(&mut self) -> Result<(), TuneError> {
        if self.running.is_some() {
            return Ok(());
        }
        let failed = |error: std::io::Error| TuneError::Worker(error.to_string());
        let scratch = loopwright_files::ScratchFolder::new("tune").map_err(failed)?;
        let mut command = Command::new(&self.options.program);
        command
            .args(&self.options.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // What a dying candidate prints is nobody's.
            .stderr(Stdio::null())
            .env("TMPDIR", scratch.path())
            .env(
                "LOOPWRIGHT_CC_TIMEOUT",
                self.options.compile_limit.as_secs().max(1).to_string(),
            );
        #[cfg(unix)]
        {
            use std::os::unix::process::CommandExt;
            // A group of its own: what it started ends with it, and an interrupt at the terminal is ours.
            command.process_group(0);
        }
        let mut child = command.spawn().map_err(failed)?;
        self.started += 1;
        let input = child.stdin.take().expect("the input was asked for");
        let output = child.stdout.take().expect("the output was asked for");
        let (send, replies) = channel();
        std::thread::spawn(move || {
            let mut output = BufReader::new(output);
            while let Ok(Some(reply)) = read(&mut output) {
                if send.send(reply).is_err() {
                    break;
                }
            }
        });
        let mut running = Running {
            child,
            input: BufWriter::new(input),
            replies,
            _scratch: scratch,
        };
        let begin = Request::Begin {
            work: self.work.clone(),
            expected: self.expected.clone(),
            scratch: running._scratch.path().to_owned(),
        };
        let until = Instant::now() + START;
        let reply = match write(&mut running.input, &begin) {
            Ok(()) => self.wait(&running.replies, until),
            Err(_) => Err(Silence::Ended),
        };
        match reply {
            Ok(Reply::Ready) => {
                self.running = Some(running);
                Ok(())
            }
            Ok(Reply::Unable(reason)) => {
                kill(&mut running.child);
                Err(TuneError::Worker(reason))
            }
            Ok(_) | Err(Silence::Late) => {
                kill(&mut running.child);
                Err(TuneError::Worker("it does not answer".to_owned()))
            }
            Err(Silence::Ended) => {
                let status = kill(&mut running.child);
                Err(TuneError::Worker(format!("it {}", how_it_ended(status))))
            }
        }
    }

    /// The next reply, until a time, the deadline or a stop.
    fn wait(&self, replies: &Receiver<Reply>, until: Instant) -> Result<Reply, Silence> {
        let until = until.min(self.options.deadline);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match replies.recv_timeout(left.min(GLANCE)) {
                Ok(reply) => return Ok(reply),
                Err(RecvTimeoutError::Disconnected) => return Err(Silence::Ended),
                Err(RecvTimeoutError::Timeout) => {
                    if left.is_zero() || self.options.stop.load(Ordering::Relaxed) {
                        return Err(Silence::Late);
                    }
                }
            }
        }
    }

    fn end(&mut self) -> Option<ExitStatus> {
        let mut running = self.running.take()?;
        kill(&mut running.child)
    }
}

impl Measure for Process {
    fn measure(&mut self, trial: &Trial) -> Outcome {
        if let Err(error) = self.ready() {
            return Outcome::Refused(error.to_string());
        }
        let Some(running) = &mut self.running else {
            return Outcome::Refused("there is no process to measure in".to_owned());
        };
        let sent = write(&mut running.input, &Request::Measure(trial.clone()));
        let mut phase = Phase::Compile;
        let mut limit = self.options.compile_limit;
        loop {
            let running = self.running.as_ref().expect("it ends only below");
            let reply = match &sent {
                Ok(()) => self.wait(&running.replies, Instant::now() + limit),
                Err(_) => Err(Silence::Ended),
            };
            match reply {
                Ok(Reply::Doing(now)) => {
                    phase = now;
                    limit = match now {
                        Phase::Compile => self.options.compile_limit,
                        Phase::Run => Duration::from_secs_f64(trial.run_limit.clamp(0.05, 3600.0)),
                    };
                }
                Ok(Reply::Done(outcome)) => return outcome,
                Ok(Reply::Ready) => {}
                Ok(Reply::Unable(reason)) => return Outcome::Refused(reason),
                Err(silence) => {
                    let status = self.end();
                    return match silence {
                        Silence::Ended => Outcome::Crashed(how_it_ended(status)),
                        Silence::Late => Outcome::TimedOut(
                            match phase {
                                Phase::Compile => "it was still being compiled",
                                Phase::Run => "it was still running",
                            }
                            .to_owned(),
                        ),
                    };
                }
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

/// Ends a process and what it started, and gives how it ended.
fn kill(child: &mut Child) -> Option<ExitStatus> {
    // One that has ended by itself says how.
    if let Ok(Some(status)) = child.try_wait() {
        return Some(status);
    }
    // Its output may end a moment before it does.
    std::thread::sleep(Duration::from_millis(2));
    if let Ok(Some(status)) = child.try_wait() {
        return Some(status);
    }
    #[cfg(unix)]
    if let Ok(group) = libc::pid_t::try_from(child.id()) {
        // SAFETY: a plain system call. The group is that of a child which has not been waited for, so its
        // number cannot belong to anybody else.
        unsafe { libc::kill(-group, libc::SIGKILL) };
    }
    let _ = child.kill();
    child.wait().ok()
}

fn how_it_ended(status: Option<ExitStatus>) -> String {
    #[cfg(unix)]
    if let Some(signal) = status.and_then(|status| {
        use std::os::unix::process::ExitStatusExt;
        status.signal()
    }) {
        return format!("ended with signal {signal}");
    }
    match status.and_then(|status| status.code()) {
        Some(code) => format!("ended with exit code {code}"),
        None => "ended".to_owned(),
    }
}
