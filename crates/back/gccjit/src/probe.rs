//! The library's work in a process of its own: GCC ends the process where it cannot find its assembler or finds a bug in itself, and a
//! damaged library may do anything.

#[cfg(unix)]
use std::io::Read;
use std::path::Path;
use std::time::Duration;

/// What work in a child came to.
pub(crate) enum Probed {
    /// It was done.
    Works,
    /// It was not, and why: what it said, or how the child ended.
    Fails(String),
}

/// What the child writes when all went well; nothing that GCC prints.
#[cfg(unix)]
const WORKS: u8 = 1;
/// What it writes before the reason when it did not.
#[cfg(unix)]
const FAILS: u8 = 2;

/// The exit code of a child whose library called `exit`.
#[cfg(unix)]
const EXITED: i32 = 86;

/// How long a child may take for a small function. GCC takes some 50 ms; a machine that swaps takes its time.
pub(crate) const SHORT: Duration = Duration::from_secs(60);

/// How long a child may take for a module.
pub(crate) const LONG: Duration = Duration::from_secs(3600);

/// How often work is begun whose child had a dynamic linker that was in the middle of something.
#[cfg(unix)]
const TRIES: u32 = 8;

/// What the dynamic linker of the GNU C library says in a child that was forked while another thread loaded a library: its lists are
/// half changed there. It says the same of some damaged libraries, but then every time.
#[cfg(unix)]
const TORN_LINKER: &str = "Inconsistency detected by ld.so";

/// How often is looked whether the work is to go on.
#[cfg(unix)]
const LOOK: Duration = Duration::from_millis(20);

/// Runs `work` in a child of this process, which it can end in any way without harm to us.
///
/// Its temporary files lie in `folder`, where there is one, and go with it however the child ends. Where `is_asked` says that it
/// is to end, the child is ended with all processes that it has started.
///
/// The child is a copy of this process with this one thread. What `work` does is therefore limited to what such a copy can: the C
/// library's allocator works in it, locks that other threads held do not open again. What it changes in memory is lost. A child that
/// takes longer than `patience` is ended and reported; one that was copied while another thread loaded a library is made anew.
#[cfg(unix)]
pub(crate) fn in_child(
    patience: Duration,
    folder: Option<&Path>,
    is_asked: fn() -> bool,
    work: impl Fn() -> Result<(), String>,
) -> Probed {
    let environment = folder.map(Environment::with_temporary_files_in);
    let environment = environment.as_ref();
    for _ in 1..TRIES {
        match in_one_child(patience, environment, is_asked, &work) {
            Probed::Fails(reason) if reason.contains(TORN_LINKER) => {
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            probed => return probed,
        }
    }
    in_one_child(patience, environment, is_asked, &work)
}

/// An environment for a child, which cannot make one: another thread may have held the lock of the C library's when it was copied.
#[cfg(unix)]
struct Environment {
    /// `NAME=VALUE` each, and a null pointer.
    variables: Vec<*const libc::c_char>,
    _texts: Vec<std::ffi::CString>,
}

#[cfg(unix)]
impl Environment {
    /// Ours, with other temporary files.
    fn with_temporary_files_in(folder: &Path) -> Environment {
        use std::os::unix::ffi::OsStrExt;
        let ours = std::env::vars_os().filter(|(name, _)| name != "TMPDIR");
        let temporary = ("TMPDIR".into(), folder.as_os_str().to_owned());
        let texts: Vec<_> = ours
            .chain([temporary])
            .filter_map(|(name, value)| {
                let text = [name.as_bytes(), value.as_bytes()].join(&b'=');
                std::ffi::CString::new(text).ok()
            })
            .collect();
        let variables = texts.iter().map(|text| text.as_ptr());
        Environment {
            variables: variables.chain([std::ptr::null()]).collect(),
            _texts: texts,
        }
    }
}

#[cfg(unix)]
fn in_one_child(
    patience: Duration,
    environment: Option<&Environment>,
    is_asked: fn() -> bool,
    work: &impl Fn() -> Result<(), String>,
) -> Probed {
    use std::io::{PipeReader, PipeWriter};
    use std::os::fd::{AsRawFd, RawFd};
    use std::time::Instant;

    /// Ends the child before anything else that is registered to run at its end: that belongs to the parent.
    extern "C" fn leave() {
        // SAFETY: it ends the process, whatever its state.
        unsafe { libc::_exit(EXITED) }
    }

    unsafe extern "C" {
        static mut environ: *const *const libc::c_char;
    }

    fn child(
        pipe: RawFd,
        environment: Option<&Environment>,
        work: &impl Fn() -> Result<(), String>,
    ) -> ! {
        let send = |bytes: &[u8]| {
            // SAFETY: the bytes are there; what cannot be written is lost, and the parent says so.
            unsafe { libc::write(pipe, bytes.as_ptr().cast(), bytes.len()) };
        };
        // SAFETY: plain system calls on numbers. What the library prints goes to the parent, which reads it as the reason; no
        // memory image is left behind where it crashes; `exit` ends at once.
        unsafe {
            libc::dup2(pipe, 1);
            libc::dup2(pipe, 2);
            let none = libc::rlimit {
                rlim_cur: 0,
                rlim_max: 0,
            };
            libc::setrlimit(libc::RLIMIT_CORE, &none);
            libc::atexit(leave);
            // One group with the assembler and the linker, so that all are ended together.
            libc::setpgid(0, 0);
            #[cfg(target_os = "linux")]
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        }
        if let Some(environment) = environment {
            // SAFETY: this thread is the only one; the texts stay as long as the child, which never returns.
            unsafe { environ = environment.variables.as_ptr() };
        }
        let tried = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        match tried {
            Ok(Ok(())) => send(&[WORKS]),
            Ok(Err(reason)) => {
                send(&[FAILS]);
                send(reason.as_bytes());
            }
            Err(_) => send(&[FAILS]),
        }
        // SAFETY: as above.
        unsafe { libc::_exit(0) }
    }

    /// All that the child says, until it ends, time is up or somebody asks for an end.
    fn listen(pipe: &mut PipeReader, until: Instant, is_asked: fn() -> bool) -> Option<Vec<u8>> {
        let mut said = Vec::new();
        let mut buffer = [0; 512];
        loop {
            let mut wanted = libc::pollfd {
                fd: pipe.as_raw_fd(),
                events: libc::POLLIN,
                revents: 0,
            };
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || is_asked() {
                return None;
            }
            let look = i32::try_from(left.min(LOOK).as_millis()).unwrap_or(0) + 1;
            // SAFETY: one structure, which is there.
            let ready = unsafe { libc::poll(&mut wanted, 1, look) };
            match ready {
                0 => {}
                1.. => match pipe.read(&mut buffer) {
                    Ok(0) => return Some(said),
                    Ok(count) => said.extend_from_slice(&buffer[..count]),
                    Err(_) => return Some(said),
                },
                _ if std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted => {}
                _ => return Some(said),
            }
        }
    }

    let (mut reader, writer): (PipeReader, PipeWriter) = match std::io::pipe() {
        Ok(pipe) => pipe,
        Err(error) => return Probed::Fails(format!("no pipe to a process of its own: {error}")),
    };
    // SAFETY: the child does no more than `child` says, and never returns from it.
    let forked = unsafe { libc::fork() };
    match forked {
        -1 => {
            let error = std::io::Error::last_os_error();
            return Probed::Fails(format!("no process of its own: {error}"));
        }
        0 => child(writer.as_raw_fd(), environment, work),
        _ => {}
    }
    drop(writer);
    let said = listen(&mut reader, Instant::now() + patience, is_asked);
    if said.is_none() {
        // SAFETY: the process is our child, and has not been waited for; it may have no group yet.
        unsafe {
            libc::kill(-forked, libc::SIGKILL);
            libc::kill(forked, libc::SIGKILL);
        }
    }
    let mut status = 0;
    // SAFETY: the child is ours; its status is written to a number of ours.
    while unsafe { libc::waitpid(forked, &mut status, 0) } == -1 {
        if std::io::Error::last_os_error().kind() != std::io::ErrorKind::Interrupted {
            break;
        }
    }
    let Some(said) = said else {
        if is_asked() {
            return Probed::Fails("it was told to end".to_owned());
        }
        return Probed::Fails(format!("it did not end within {} s", patience.as_secs()));
    };
    verdict(&said, status)
}

/// What a child's words and its end say.
#[cfg(unix)]
fn verdict(said: &[u8], status: i32) -> Probed {
    if said.contains(&WORKS) {
        return Probed::Works;
    }
    let (printed, reason) = match said.iter().position(|byte| *byte == FAILS) {
        Some(at) => (&said[..at], Some(&said[at + 1..])),
        None => (said, None),
    };
    let text = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        lines.collect::<Vec<_>>().join("; ")
    };
    let printed = text(printed);
    let reason = reason.map(text).unwrap_or_default();
    let end = match libc::WIFSIGNALED(status) {
        true => format!("it crashed with signal {}", libc::WTERMSIG(status)),
        false => "it ended the process that it ran in".to_owned(),
    };
    Probed::Fails(match (reason.is_empty(), printed.is_empty()) {
        (false, _) => reason,
        (true, false) => format!("{end} ({printed})"),
        (true, true) => end,
    })
}

/// Where there are no child processes, the work is done here.
#[cfg(not(unix))]
pub(crate) fn in_child(
    _: Duration,
    _: Option<&Path>,
    _: fn() -> bool,
    work: impl Fn() -> Result<(), String>,
) -> Probed {
    match work() {
        Ok(()) => Probed::Works,
        Err(reason) => Probed::Fails(reason),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn reason(trial: impl Fn() -> Result<(), String>) -> String {
        match in_child(SHORT, None, || false, trial) {
            Probed::Works => "works".to_owned(),
            Probed::Fails(reason) => reason,
        }
    }

    #[test]
    fn a_trial_may_end_its_process_in_any_way() {
        assert_eq!(reason(|| Ok(())), "works");
        assert_eq!(reason(|| Err("no code".to_owned())), "no code");
        // SAFETY: these end the child, as the test is about.
        unsafe {
            assert!(reason(|| libc::exit(0)).contains("ended the process"));
            assert!(reason(|| libc::_exit(1)).contains("ended the process"));
            assert!(reason(|| libc::abort()).contains("signal 6"));
            let killed = reason(|| {
                std::ptr::null_mut::<u8>().wrapping_add(8).write_volatile(1);
                Ok(())
            });
            assert!(killed.contains("signal 11"), "{killed}");
        }
    }

    #[test]
    fn a_child_that_is_told_to_end_ends_with_all_that_it_started() {
        use std::io::Read;
        use std::sync::atomic::{AtomicU32, Ordering};
        static LOOKS: AtomicU32 = AtomicU32::new(0);
        let (mut reader, writer) = std::io::pipe().expect("a pipe");
        let is_asked = || LOOKS.fetch_add(1, Ordering::Relaxed) > 5;
        let probed = in_child(LONG, None, is_asked, || {
            // SAFETY: the copy does nothing but sleep.
            unsafe { libc::fork() };
            loop {
                std::thread::sleep(SHORT);
            }
        });
        assert!(matches!(probed, Probed::Fails(reason) if reason == "it was told to end"));
        // There is an end where nobody has the other side of the pipe any more.
        drop(writer);
        assert_eq!(reader.read(&mut [0]).expect("it can be read"), 0);
    }

    #[test]
    fn temporary_files_of_a_child_lie_in_the_folder_that_it_is_given() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let path = std::env::var_os("PATH");
        let probed = in_child(
            SHORT,
            Some(folder.path()),
            || false,
            || {
                assert_eq!(std::env::var_os("PATH"), path, "all else stays");
                // SAFETY: the name ends with a NUL, and so does what is there.
                let found = unsafe { std::ffi::CStr::from_ptr(libc::getenv(c"TMPDIR".as_ptr())) };
                Err(found.to_string_lossy().into_owned())
            },
        );
        let said = folder.path().display().to_string();
        assert!(matches!(probed, Probed::Fails(reason) if reason == said));
        assert_ne!(std::env::temp_dir(), folder.path(), "ours is another");
    }

    /// Says what the dynamic linker says, and ends the child.
    fn torn() -> ! {
        let text = b"Inconsistency detected by ld.so: dl-open.c: 581: Assertion failed!\n";
        // SAFETY: the bytes are there; the child ends here.
        unsafe {
            libc::write(2, text.as_ptr().cast(), text.len());
            libc::_exit(127)
        }
    }

    #[test]
    fn a_child_that_was_forked_while_another_thread_loaded_a_library_is_made_anew() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        // Children share no memory with us: what they leave behind is in files.
        let tries = || std::fs::read_dir(folder.path()).map_or(0, Iterator::count);
        let said = reason(|| {
            let before = tries();
            let left = std::fs::write(folder.path().join(before.to_string()), "");
            left.expect("the folder is ours");
            match before {
                0..3 => torn(),
                _ => Ok(()),
            }
        });
        assert_eq!((said.as_str(), tries()), ("works", 4));
        // Where it is the library that is damaged, that comes out.
        let said = reason(|| torn());
        assert!(said.contains("Inconsistency detected by ld.so"), "{said}");
    }

    #[test]
    fn what_a_library_prints_before_it_exits_is_the_reason() {
        let said = reason(|| {
            let text = b"fatal error: cannot execute as\n";
            // SAFETY: the bytes are there; the child ends here.
            unsafe {
                libc::write(2, text.as_ptr().cast(), text.len());
                libc::exit(1)
            }
        });
        assert!(said.contains("cannot execute as"), "{said}");
    }
}
