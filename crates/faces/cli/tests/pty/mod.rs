//! A program in a terminal of its own: keys go in, and what is on the screen comes out.

// Each test program uses some of this.
#![allow(dead_code)]

use rustix::fs::OFlags;
use rustix::process::{Pid, Signal, ioctl_tiocsctty, kill_process, setsid};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long anything may take. It is long: what is waited for comes in a moment, or never.
const DEADLINE: Duration = Duration::from_secs(120);

/// What the program has written so far, as a terminal shows it.
struct Shown {
    parser: Mutex<vt100::Parser>,
    changed: Condvar,
    /// All that was written has been read: nobody has the other end open any more.
    ended: AtomicBool,
}

/// A program in a terminal.
pub struct Terminal {
    child: Child,
    master: File,
    /// Kept open: the settings of a terminal that nobody has open cannot be asked for.
    slave: Option<OwnedFd>,
    shown: Arc<Shown>,
}

impl Terminal {
    /// Starts a program in a terminal of this size.
    pub fn start(mut command: Command, columns: u16, rows: u16) -> Terminal {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&master).expect("it is ours");
        unlockpt(&master).expect("it is ours");
        let name = ptsname(&master, Vec::new()).expect("it has a name");
        let slave = rustix::fs::open(
            &name,
            OFlags::RDWR | OFlags::NOCTTY,
            rustix::fs::Mode::empty(),
        );
        let slave = slave.expect("its other end");
        tcsetwinsize(&slave, size(columns, rows)).expect("it has a size");
        let end = || Stdio::from(slave.try_clone().expect("one more handle"));
        command.stdin(end()).stdout(end()).stderr(end());
        command.env("TERM", "xterm-256color").env_remove("NO_COLOR");
        // SAFETY: both calls are plain system calls, which may be made between fork and exec.
        unsafe {
            command.pre_exec(|| {
                setsid()?;
                ioctl_tiocsctty(rustix::stdio::stdin())?;
                Ok(())
            });
        }
        let child = command.spawn().expect("the binary was built");
        let shown = Arc::new(Shown {
            parser: Mutex::new(vt100::Parser::new(rows, columns, 0)),
            changed: Condvar::new(),
            ended: AtomicBool::new(false),
        });
        let master = File::from(master);
        let mut reader = master.try_clone().expect("one more handle");
        let sink = shown.clone();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // An error is the end: the other side is closed.
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                let mut parser = sink.parser.lock().unwrap_or_else(PoisonError::into_inner);
                parser.process(&bytes[..count]);
                sink.changed.notify_all();
            }
            let _parser = sink.parser.lock().unwrap_or_else(PoisonError::into_inner);
            sink.ended.store(true, Ordering::Release);
            sink.changed.notify_all();
        });
        Terminal {
            child,
            master,
            slave: Some(slave),
            shown,
        }
    }

    /// Types; `\r` is Enter, `\x1b` Escape.
    pub fn keys(&mut self, keys: &str) {
        self.master
            .write_all(keys.as_bytes())
            .expect("the program reads");
    }

    /// Moves the mouse and its left button; columns and rows begin with 0.
    pub fn drag(&mut self, from: (u16, u16), to: (u16, u16)) {
        let at = |(column, row): (u16, u16)| format!("{};{}", column + 1, row + 1);
        let (from, to) = (at(from), at(to));
        self.keys(&format!("\x1b[<0;{from}M\x1b[<32;{to}M\x1b[<0;{to}m"));
    }

    /// Makes the terminal another size.
    pub fn resize(&mut self, columns: u16, rows: u16) {
        let mut parser = self.lock();
        parser.screen_mut().set_size(rows, columns);
        drop(parser);
        let slave = self.slave.as_ref().expect("it is open until the end");
        tcsetwinsize(slave, size(columns, rows)).expect("it has a size");
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, vt100::Parser> {
        self.shown
            .parser
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the screen is as wanted; gives its text.
    #[track_caller]
    pub fn wait(&self, wanted: &str, is: impl Fn(&str) -> bool) -> String {
        self.wait_screen(wanted, |screen| is(&screen.contents()))
            .contents()
    }

    /// Waits until the screen shows all of these texts.
    #[track_caller]
    pub fn wait_for(&self, texts: &[&str]) -> String {
        self.wait(&format!("{texts:?}"), |screen| {
            texts.iter().all(|text| screen.contains(text))
        })
    }

    /// Waits until the screen is as wanted; gives it with its colours.
    #[track_caller]
    pub fn wait_screen(&self, wanted: &str, is: impl Fn(&vt100::Screen) -> bool) -> vt100::Screen {
        let end = Instant::now() + DEADLINE;
        let mut parser = self.lock();
        loop {
            if is(parser.screen()) {
                return parser.screen().clone();
            }
            let left = end.saturating_duration_since(Instant::now());
            let shown = parser.screen().contents();
            assert!(
                !left.is_zero(),
                "the screen never shows {wanted}; it is\n{shown}"
            );
            let waited = self.shown.changed.wait_timeout(parser, left);
            parser = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Asks the program to end, as the system does.
    pub fn terminate(&self) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::TERM).expect("it runs");
    }

    /// Waits for the end of the program, and checks that the terminal is as it was.
    #[track_caller]
    pub fn end(mut self) -> (ExitStatus, String) {
        let end = Instant::now() + DEADLINE;
        let status = loop {
            match self.child.try_wait().expect("it is our child") {
                Some(status) => break status,
                None => {
                    let shown = self.lock().screen().contents();
                    assert!(
                        Instant::now() < end,
                        "it does not end; the screen is\n{shown}"
                    );
                    std::thread::sleep(Duration::from_millis(5));
                }
            }
        };
        let slave = self.slave.take().expect("it is open until the end");
        let modes = tcgetattr(slave.as_fd()).expect("it is a terminal");
        drop(slave);
        let screen = self.wait_screen("the last that was written", |_| {
            self.shown.ended.load(Ordering::Acquire)
        });
        assert!(
            !screen.alternate_screen()
                && !screen.hide_cursor()
                && screen.mouse_protocol_mode() == vt100::MouseProtocolMode::None
                && !screen.bracketed_paste(),
            "the terminal is not given back; it shows\n{}",
            screen.contents()
        );
        let plain = LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG;
        assert!(
            modes.local_modes.contains(plain),
            "the terminal is left in raw mode"
        );
        (status, screen.contents())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Where a test fails the program still runs.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a program in a terminal, waits until it has written something, and takes the terminal away; gives how the program
/// ends.
#[track_caller]
pub fn hang_up(mut command: Command, wanted: &[u8]) -> ExitStatus {
    let master =
        openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
    grantpt(&master).expect("it is ours");
    unlockpt(&master).expect("it is ours");
    let name = ptsname(&master, Vec::new()).expect("it has a name");
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let slave = rustix::fs::open(&name, flags, rustix::fs::Mode::empty());
    let slave = slave.expect("its other end");
    tcsetwinsize(&slave, size(80, 24)).expect("it has a size");
    let end = || Stdio::from(slave.try_clone().expect("one more handle"));
    command.stdin(end()).stdout(end()).stderr(end());
    command.env("TERM", "xterm-256color");
    // SAFETY: both calls are plain system calls, which may be made between fork and exec.
    unsafe {
        command.pre_exec(|| {
            setsid()?;
            ioctl_tiocsctty(rustix::stdio::stdin())?;
            Ok(())
        });
    }
    let mut child = command.spawn().expect("the binary was built");
    // Its copies of our end go with it.
    drop(command);
    drop(slave);
    let mut master = File::from(master);
    let mut shown = Vec::new();
    let mut bytes = [0; 4096];
    while !shown.windows(wanted.len()).any(|window| window == wanted) {
        let count = master.read(&mut bytes).expect("it runs");
        shown.extend_from_slice(&bytes[..count]);
    }
    drop(master);
    let end = Instant::now() + DEADLINE / 4;
    let status = loop {
        if let Some(status) = child.try_wait().expect("it is our child") {
            break Some(status);
        }
        if Instant::now() >= end {
            break None;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    if status.is_none() {
        let _ = child.kill();
        let _ = child.wait();
    }
    status.expect("it ends when its terminal is gone")
}

fn size(columns: u16, rows: u16) -> Winsize {
    Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}
