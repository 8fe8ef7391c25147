//! A program that ignores SIGCHLD, or waits for all children itself: the status of a compiler cannot be waited for.
#![cfg(unix)]

use loopwright_cc::{Compiler, RunFailure, run_limited};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);

/// How a shell's script ends: whether it succeeded, and what it wrote.
fn run(script: &str) -> (bool, String) {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]).env("GREETING", "two  words");
    command.current_dir("/");
    match run_limited(command, LIMIT, || Ok(())) {
        Ok(finished) => (finished.success, finished.log),
        Err(failure) => panic!("{script}: {failure:?}"),
    }
}

fn statuses_are_right() {
    assert_eq!(
        run("pwd; printf '%s' \"$GREETING\""),
        (true, "/\ntwo  words".to_owned())
    );
    assert_eq!(run("echo no; exit 3"), (false, "no\n".to_owned()));
    let (success, log) = run("exit 3");
    assert!(!success && log.contains("exit status: 3"), "{log}");
    assert!(!run("kill -SEGV $$").0);
    // What looks like the line of a status is the program's own where it is not the last.
    assert!(!run("printf '\\nstatus of the command: 0\\n'; exit 1").0);

    let hanging = run_limited(hang(), Duration::from_millis(50), || Ok(()));
    match hanging {
        Err(RunFailure::Failed(reason)) => assert!(reason.contains("killed"), "{reason}"),
        other => panic!("it should have been killed: {other:?}"),
    }
    let compiler = Compiler::find("", LIMIT).expect("there is a C compiler");
    assert!(compiler.version.contains(" version "), "{compiler:?}");
}

fn hang() -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "sleep 1000 & wait"]);
    command
}

/// One test for both: the disposition, and who waits, are the process's.
#[test]
fn a_compiler_is_used_where_the_status_of_children_is_lost() {
    statuses_are_right();
    let known = Compiler::find("", LIMIT).expect("there is a C compiler");

    // SAFETY: a plain system call; this process has no other test.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
    statuses_are_right();
    assert_eq!(Compiler::find("", LIMIT).ok().as_ref(), Some(&known));

    // SAFETY: as above.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                // SAFETY: no status is asked for.
                let ended = unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) };
                if ended <= 0 {
                    std::thread::sleep(Duration::from_micros(100));
                }
            }
        });
        statuses_are_right();
        over.store(true, Ordering::Relaxed);
    });
}
