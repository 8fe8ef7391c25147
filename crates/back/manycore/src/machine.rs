//! An accelerator that runs: its process, and the commands it is given.

use crate::counters::{CounterCells, count};
use crate::error::ManycoreError;
use crate::protocol::{ARGUMENT_BYTES, Command, CommandArgument, Status, VERSION};
use crate::settings::Settings;
use crate::window::{Window, memory_file, seal};
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command as Process, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// How long a process whose doorbell is closed may take to be gone.
const PATIENCE: Duration = Duration::from_secs(2);

/// An accelerator that runs, or that has run. Commands come from any thread, one after the other.
pub(crate) struct Machine {
    name: String,
    /// Another for each.
    id: u64,
    /// The process that started it, by its forks: children of that one have this machine's memory and locks, and no say.
    generation: u64,
    link: Mutex<Link>,
    /// How it ended, once it has.
    lost: OnceLock<String>,
    /// What is to be given back before the next command. Whoever drops a slab does not wait for a kernel.
    garbage: Mutex<Garbage>,
    counters: Arc<CounterCells>,
    local_memory: usize,
    /// Bytes of data that the window holds.
    piece_bytes: usize,
    timeout: Duration,
}

/// What nobody has any more.
#[derive(Default)]
struct Garbage {
    slabs: Vec<u64>,
    programs: Vec<u64>,
}

struct Link {
    window: Window,
    doorbell: UnixStream,
    child: Child,
    /// The process that started it.
    generation: u64,
}

/// What a machine says when it has started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Greeting {
    pub(crate) cores: u64,
    /// Bytes of the stack of a core that are left for kernels.
    pub(crate) stack: u64,
}

impl Machine {
    /// Starts an accelerator with this firmware.
    pub(crate) fn start(
        name: &str,
        firmware: &[u8],
        settings: &Settings,
        counters: Arc<CounterCells>,
    ) -> Result<Machine, ManycoreError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let failed = |reason: String| ManycoreError::Start {
            device: name.to_owned(),
            reason,
        };
        let link = Link::start(firmware, settings).map_err(|error| failed(error.to_string()))?;
        let piece_bytes = link.window.data_bytes();
        let machine = Machine {
            name: name.to_owned(),
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            generation: link.generation,
            link: Mutex::new(link),
            lost: OnceLock::new(),
            garbage: Mutex::default(),
            counters,
            local_memory: settings.local_memory,
            piece_bytes,
            timeout: settings.timeout,
        };
        let version = machine
            .call(
                Command::Hello,
                &"starting",
                |_| {},
                |window| window.answer(1),
            )
            .map_err(|error| failed(error.to_string()))?;
        if version != VERSION {
            return Err(failed(format!(
                "it speaks version {version} of the protocol, not {VERSION}"
            )));
        }
        count(&machine.counters.starts, 1);
        Ok(machine)
    }

    /// Its number among all of this process.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.lost.get().is_some()
    }

    /// What it says of itself.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests check the figures"))]
    pub(crate) fn greeting(&self) -> Result<Greeting, ManycoreError> {
        let take = |window: &Window| Greeting {
            cores: window.answer(2),
            stack: window.answer(3),
        };
        self.call(Command::Hello, &"answering", |_| {}, take)
    }

    /// A new slab of zeroed memory.
    pub(crate) fn allocate(&self, bytes: usize) -> Result<u64, ManycoreError> {
        let bytes = bytes as u64;
        let take = |window: &Window| window.answer(1);
        self.call(
            Command::Allocate { bytes },
            &"allocating memory",
            |_| {},
            take,
        )
    }

    /// Gives a slab back, at the next occasion.
    pub(crate) fn discard_slab(&self, slab: u64) {
        if !self.is_ours() {
            return;
        }
        self.garbage().slabs.push(slab);
    }

    /// Unloads a program, at the next occasion.
    pub(crate) fn discard_program(&self, program: u64) {
        if !self.is_ours() {
            return;
        }
        self.garbage().programs.push(program);
    }

    /// Moves bytes into a slab, a window at a time.
    pub(crate) fn write(&self, slab: u64, offset: usize, from: &[u8]) -> Result<(), ManycoreError> {
        let mut offset = offset as u64;
        for piece in from.chunks(self.piece_bytes) {
            let bytes = piece.len() as u64;
            let command = Command::Write {
                slab,
                offset,
                bytes,
            };
            let fill = |window: &mut Window| window.put_data(0, piece);
            self.call(command, &"taking data", fill, |_| ())?;
            count(&self.counters.uploads, 1);
            count(&self.counters.uploaded_bytes, bytes);
            offset += bytes;
        }
        Ok(())
    }

    /// Moves bytes out of a slab, a window at a time.
    pub(crate) fn read(
        &self,
        slab: u64,
        offset: usize,
        to: &mut [u8],
    ) -> Result<(), ManycoreError> {
        let mut offset = offset as u64;
        for piece in to.chunks_mut(self.piece_bytes) {
            let bytes = piece.len() as u64;
            let command = Command::Read {
                slab,
                offset,
                bytes,
            };
            let take = |window: &Window| window.take_data(piece);
            self.call(command, &"giving data", |_| {}, take)?;
            count(&self.counters.downloads, 1);
            count(&self.counters.downloaded_bytes, bytes);
            offset += bytes;
        }
        Ok(())
    }

    /// Moves an image there and has it linked; gives the program's number.
    pub(crate) fn load(&self, image: &[u8]) -> Result<u64, ManycoreError> {
        const DURING: &str = "loading a program";
        let bytes = image.len() as u64;
        let take = |window: &Window| window.answer(1);
        let program = self.call(Command::LoadBegin { bytes }, &DURING, |_| {}, take)?;
        let loaded = self.load_into(program, image, &DURING);
        match loaded {
            Ok(()) => {
                count(&self.counters.loads, 1);
                count(&self.counters.loaded_bytes, bytes);
                Ok(program)
            }
            Err(error) => {
                self.discard_program(program);
                Err(error)
            }
        }
    }

    fn load_into(
        &self,
        program: u64,
        image: &[u8],
        during: &dyn fmt::Display,
    ) -> Result<(), ManycoreError> {
        let mut offset = 0;
        for piece in image.chunks(self.piece_bytes) {
            let bytes = piece.len() as u64;
            let command = Command::LoadData {
                program,
                offset,
                bytes,
            };
            self.call(command, during, |window| window.put_data(0, piece), |_| ())?;
            offset += bytes;
        }
        self.call(Command::LoadEnd { program }, during, |_| {}, |_| ())
    }

    /// The number of a program's entry.
    pub(crate) fn entry(&self, program: u64, symbol: &str) -> Result<u64, ManycoreError> {
        let command = Command::Entry {
            program,
            bytes: symbol.len() as u64,
        };
        // Longer ones are refused by the other side, too.
        let name = &symbol.as_bytes()[..symbol.len().min(self.piece_bytes)];
        let fill = |window: &mut Window| window.put_data(0, name);
        let take = |window: &Window| window.answer(1);
        self.call(command, &"finding a kernel", fill, take)
    }

    /// Runs an entry to its end.
    pub(crate) fn launch(
        &self,
        kernel: &str,
        (program, entry): (u64, u64),
        group: [u32; 3],
        arguments: impl ExactSizeIterator<Item = CommandArgument>,
    ) -> Result<(), ManycoreError> {
        let command = Command::Launch {
            program,
            entry,
            group,
            arguments: arguments.len() as u64,
        };
        let fill = |window: &mut Window| {
            for (at, argument) in arguments.enumerate() {
                window.put_data_words(at * ARGUMENT_BYTES, &argument.words());
            }
        };
        let during = format_args!("running kernel `{kernel}`");
        self.call(command, &during, fill, |_| ())?;
        count(&self.counters.launches, 1);
        Ok(())
    }

    /// Gives a command; `fill` writes data before it, `take` reads the answer.
    pub(crate) fn call<R>(
        &self,
        command: Command,
        during: &dyn fmt::Display,
        fill: impl FnOnce(&mut Window),
        take: impl FnOnce(&Window) -> R,
    ) -> Result<R, ManycoreError> {
        // Before the lock, which a thread of the parent may have, and before anything is written where the parent's commands are.
        if !self.is_ours() {
            return Err(ManycoreError::Forked {
                device: self.name.clone(),
            });
        }
        let mut link = self.link.lock().unwrap_or_else(PoisonError::into_inner);
        self.clear_garbage(&mut link, during)?;
        fill(&mut link.window);
        match self.exchange(&mut link, command, during)? {
            Status::Done => Ok(take(&link.window)),
            Status::OutOfMemory => Err(ManycoreError::OutOfMemory {
                device: self.name.clone(),
                bytes: match command {
                    Command::Allocate { bytes } | Command::LoadBegin { bytes } => bytes,
                    _ => 0,
                },
            }),
            Status::Refused => Err(ManycoreError::Refused {
                device: self.name.clone(),
                reason: link.window.text(),
            }),
        }
    }

    /// Whether it was started by this process, and not by one that this one was forked from: that one talks to it.
    fn is_ours(&self) -> bool {
        self.generation == loopwright_threads::generation()
    }

    fn garbage(&self) -> MutexGuard<'_, Garbage> {
        self.garbage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives back what nobody has any more.
    fn clear_garbage(
        &self,
        link: &mut Link,
        during: &dyn fmt::Display,
    ) -> Result<(), ManycoreError> {
        // Taken, not locked over the exchanges: who discards something never waits for one.
        let Garbage { slabs, programs } = std::mem::take(&mut *self.garbage());
        for program in programs {
            self.exchange(link, Command::Unload { program }, during)?;
        }
        for slabs in slabs.chunks(self.piece_bytes / size_of::<u64>()) {
            link.window.put_data_words(0, slabs);
            let slabs = slabs.len() as u64;
            self.exchange(link, Command::Free { slabs }, during)?;
        }
        Ok(())
    }

    /// Rings, and waits for the answer.
    fn exchange(
        &self,
        link: &mut Link,
        command: Command,
        during: &dyn fmt::Display,
    ) -> Result<Status, ManycoreError> {
        if let Some(how) = self.lost.get() {
            return Err(self.lost_error(how.clone()));
        }
        link.window.put_request(&command.words());
        let how = match link.ring() {
            Ok(()) => match Status::of(link.window.answer(0)) {
                Some(status) => return Ok(status),
                None => {
                    link.stop();
                    format!(
                        "was stopped, because it gave no answer that makes sense while {during}"
                    )
                }
            },
            Err(error) if is_timeout(&error) => {
                link.stop();
                format!(
                    "was stopped, because it did not come to an end within {} s while {during}; \
                     LOOPWRIGHT_MANYCORE_TIMEOUT sets the limit",
                    self.timeout.as_secs_f64()
                )
            }
            Err(_) => {
                let ended = link.ended();
                let crash = self.crash(link.window.crash());
                format!("{ended} while {during}{crash}")
            }
        };
        let how = self.lost.get_or_init(|| how).clone();
        Err(self.lost_error(how))
    }

    fn lost_error(&self, how: String) -> ManycoreError {
        ManycoreError::Lost {
            device: self.name.clone(),
            how,
        }
    }

    /// What a core that crashed says.
    fn crash(&self, [signal, core, address, overflow]: [u64; 4]) -> String {
        match (signal, overflow) {
            (0, _) => String::new(),
            (_, 0) if core == u64::MAX => format!(": outside its cores, at address {address:#x}"),
            (_, 1) => format!(
                ": core {core} needed more than its {} KiB of local memory",
                self.local_memory >> 10
            ),
            _ => format!(": core {core}, at address {address:#x}"),
        }
    }
}

#[cfg(test)]
impl Machine {
    fn link(&self) -> MutexGuard<'_, Link> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The process's number.
    pub(crate) fn process(&self) -> u32 {
        self.link().child.id()
    }

    /// Whether the process has ended.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.link().child.try_wait(), Ok(Some(_)))
    }

    /// Closes the doorbell, as the end of the host does.
    pub(crate) fn hang_up(&self) {
        let closed = self.link().doorbell.shutdown(std::net::Shutdown::Both);
        closed.expect("it is open");
    }

    /// The same while an entry without arguments runs.
    pub(crate) fn ring_and_hang_up(&self, (program, entry): (u64, u64)) {
        let command = Command::Launch {
            program,
            entry,
            group: [1; 3],
            arguments: 0,
        };
        let mut link = self.link();
        link.window.put_request(&command.words());
        link.doorbell.write_all(&[1]).expect("it is open");
        // Long enough for it to begin, most times; either way it is to end.
        std::thread::sleep(Duration::from_millis(20));
        drop(link);
        self.hang_up();
    }
}

impl Link {
    fn start(firmware: &[u8], settings: &Settings) -> io::Result<Link> {
        let (window, window_file) = Window::new(settings.window)?;
        let (doorbell, theirs) = UnixStream::pair()?;
        doorbell.set_read_timeout(Some(settings.timeout))?;
        // From memory, so that what runs is what was made or checked, wherever that was kept.
        let mut program = File::from(memory_file(c"lw-manycore")?);
        program.write_all(firmware)?;
        let program = OwnedFd::from(program);
        seal(
            &program,
            libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_WRITE,
        )?;
        let child = Process::new(format!("/proc/self/fd/{}", program.as_raw_fd()))
            .arg(settings.window.to_string())
            .arg(settings.memory.to_string())
            .arg(settings.cores.to_string())
            .arg(settings.local_memory.to_string())
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::from(window_file))
            // It asks for no variables, and another thread's library may be changing them.
            .env_clear()
            // Away from the terminal's signals: whether the host ends is the host's choice.
            .process_group(0)
            .spawn()?;
        Ok(Link {
            window,
            doorbell,
            child,
            generation: loopwright_threads::generation(),
        })
    }

    /// Rings, and waits until it rings back.
    fn ring(&mut self) -> io::Result<()> {
        let byte = [1u8];
        // SAFETY: one byte that lives for the call. Not `write`: that raises a signal, which would end a host that
        // does not ignore it, where the other side is gone.
        let sent = unsafe {
            libc::send(
                self.doorbell.as_raw_fd(),
                byte.as_ptr().cast(),
                byte.len(),
                libc::MSG_NOSIGNAL,
            )
        };
        if sent != 1 {
            return Err(io::Error::last_os_error());
        }
        self.doorbell.read_exact(&mut [0])
    }

    /// Ends the process and waits until it is gone.
    fn stop(&mut self) {
        // It fails where the process has ended, and then there is nothing to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// How the process ended, which has closed its doorbell.
    fn ended(&mut self) -> String {
        let began = Instant::now();
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return describe(status),
                Ok(None) if began.elapsed() < PATIENCE => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                _ => {
                    self.stop();
                    return "was stopped, because it had closed its doorbell".to_owned();
                }
            }
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // A child that was forked leaves it to its parent.
        if self.generation == loopwright_threads::generation() {
            self.stop();
        }
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

/// How a process ended, in words.
fn describe(status: ExitStatus) -> String {
    let Some(signal) = status.signal() else {
        return format!("ended with {status}");
    };
    let name = match signal {
        libc::SIGKILL => " (SIGKILL)",
        libc::SIGSEGV => " (SIGSEGV)",
        libc::SIGBUS => " (SIGBUS)",
        libc::SIGFPE => " (SIGFPE)",
        libc::SIGILL => " (SIGILL)",
        libc::SIGABRT => " (SIGABRT)",
        libc::SIGTERM => " (SIGTERM)",
        _ => "",
    };
    format!("was ended by signal {signal}{name}")
}
