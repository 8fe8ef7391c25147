//! The terminal: taken over for a session, and given back whatever happens.

use crate::error::EditorError;
use crate::measure::is_worker;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{
    DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture,
};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use std::io::{self, IsTerminal, Stdout};
use std::panic::PanicHookInfo;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a panic is told by.
type Hook = dyn Fn(&PanicHookInfo<'_>) + Send + Sync;

/// The terminal during a session. It is as it was before when this goes.
pub(crate) struct Taken {
    pub(crate) terminal: Terminal<CrosstermBackend<Stdout>>,
    hook: Arc<Hook>,
}

impl Taken {
    /// Takes the terminal over.
    pub(crate) fn take() -> Result<Taken, EditorError> {
        check()?;
        let hook: Arc<Hook> = Arc::from(std::panic::take_hook());
        let told = hook.clone();
        std::panic::set_hook(Box::new(move |panic| {
            // What panics while it measures is caught there, and told on the screen.
            if !is_worker() {
                give_back();
                told(panic);
            }
        }));
        let begun = begin();
        match begun {
            Ok(terminal) => Ok(Taken { terminal, hook }),
            Err(error) => {
                give_back();
                Err(error.into())
            }
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        give_back();
        // Hooks cannot be changed while one runs, and then the process ends anyway.
        if !std::thread::panicking() {
            let hook = self.hook.clone();
            std::panic::set_hook(Box::new(move |panic| hook(panic)));
        }
    }
}

/// Whether there is a terminal to talk to.
pub(crate) fn check() -> Result<(), EditorError> {
    for (is_terminal, stream) in [
        (io::stdin().is_terminal(), "input"),
        (io::stdout().is_terminal(), "output"),
    ] {
        if !is_terminal {
            return Err(EditorError::NoTerminal { stream });
        }
    }
    Ok(())
}

fn begin() -> io::Result<Terminal<CrosstermBackend<Stdout>>> {
    OURS.store(true, Ordering::Release);
    enable_raw_mode()?;
    execute!(
        io::stdout(),
        EnterAlternateScreen,
        EnableMouseCapture,
        EnableBracketedPaste
    )?;
    Terminal::new(CrosstermBackend::new(io::stdout()))
}

/// Whether the terminal is ours: what is given back twice would move the cursor into what was written between.
static OURS: AtomicBool = AtomicBool::new(false);

/// Everything that can be given back is, whatever part of it fails.
pub(crate) fn give_back() {
    if !OURS.swap(false, Ordering::AcqRel) {
        return;
    }
    let _ = execute!(
        io::stdout(),
        DisableBracketedPaste,
        DisableMouseCapture,
        LeaveAlternateScreen,
        ratatui::crossterm::cursor::Show
    );
    let _ = disable_raw_mode();
}

#[cfg(all(test, unix))]
mod tests {
    use super::Taken;
    use crate::pty;
    use std::process::Command;

    /// Has the process that it is set for panic in the middle of a session.
    const PLANTED: &str = "PLANTED_PANIC";

    #[test]
    fn a_panic_gives_the_terminal_back_and_is_told_after() {
        if std::env::var_os(PLANTED).is_some() {
            let _taken = Taken::take().expect("this process has a terminal");
            panic!("a broken invariant");
        }
        let binary = std::env::current_exe().expect("this test has a file");
        let mut command = Command::new(binary);
        let name = std::thread::current().name().map(str::to_owned);
        command.args(["--exact", &name.expect("tests are named"), "--nocapture"]);
        command.env(PLANTED, "1").env_remove("RUST_BACKTRACE");
        let (status, screen) = pty::Terminal::start(command, 100, 24).end();
        assert!(!status.success(), "{screen}");
        assert!(screen.contains("a broken invariant"), "{screen}");
    }
}
