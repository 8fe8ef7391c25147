//! Running other programs.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::Error;

/// A command as a person would type it, without its path and environment.
fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let mut text = program
        .file_name()
        .unwrap_or(program.as_os_str())
        .to_string_lossy()
        .into_owned();
    for argument in command.get_args() {
        text.push(' ');
        text.push_str(&argument.to_string_lossy());
    }
    text
}

fn judge(command: &Command, status: ExitStatus) -> Result<(), Error> {
    if status.success() {
        Ok(())
    } else {
        Err(Error::Exit {
            command: shown(command),
            status,
        })
    }
}

fn not_started(command: &Command) -> impl FnOnce(io::Error) -> Error {
    let command = shown(command);
    move |source| Error::Start { command, source }
}

/// Runs a command with its output passing straight through.
pub(crate) fn run(command: &mut Command) -> Result<(), Error> {
    println!("$ {}", shown(command));
    let status = command
        .stdin(Stdio::null())
        .status()
        .map_err(not_started(command))?;
    judge(command, status)
}

/// Whether a command starts and succeeds. Says nothing, whatever happens.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// What a command prints to its standard output, or nothing where it does not start or fails.
pub(crate) fn output_of(command: &mut Command) -> Option<String> {
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs a command with its output passing through, and also returns the lines that `keep` wants.
///
/// The lines come back even where the command fails: a failed test run has a closing line too.
pub(crate) fn run_keeping(
    command: &mut Command,
    keep: fn(&str) -> bool,
) -> (Vec<String>, Result<(), Error>) {
    println!("$ {}", shown(command));
    let spawned = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(not_started(command));
    let mut child = match spawned {
        Ok(child) => child,
        Err(error) => return (Vec::new(), Err(error)),
    };
    let stderr = child.stderr.take().expect("stderr was asked for as a pipe");
    let stdout = child.stdout.take().expect("stdout was asked for as a pipe");
    let reader = thread::spawn(move || pass_on(stderr, io::stderr(), keep));
    let mut kept = pass_on(stdout, io::stdout(), keep);
    kept.extend(reader.join().expect("passing lines on does not panic"));
    let result = child
        .wait()
        .map_err(not_started(command))
        .and_then(|status| judge(command, status));
    (kept, result)
}

/// Copies lines as they come and returns those that `keep` wants, without colours.
fn pass_on(from: impl Read, mut to: impl Write, keep: fn(&str) -> bool) -> Vec<String> {
    let mut kept = Vec::new();
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    // A read error ends the copy like the end of the stream does; the program's status still tells how it went.
    while from
        .read_until(b'\n', &mut line)
        .is_ok_and(|length| length > 0)
    {
        // A closed terminal must not stop the draining, or the program would wait forever on a full pipe.
        let _ = to.write_all(&line).and_then(|()| to.flush());
        let plain = without_colours(&String::from_utf8_lossy(&line));
        if keep(&plain) {
            kept.push(plain.trim_end().to_owned());
        }
        line.clear();
    }
    kept
}

/// The text without terminal colour sequences (`ESC [ … letter`).
fn without_colours(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character != '\u{1b}' {
            plain.push(character);
            continue;
        }
        for skipped in characters.by_ref() {
            if skipped.is_ascii_alphabetic() {
                break;
            }
        }
    }
    plain
}

/// Runs a command silently with a time limit; all it prints goes to the file `log`.
///
/// A file and not a pipe: a program ended at its limit may leave children behind that hold a pipe open.
pub(crate) fn run_logged(command: &mut Command, log: &Path, limit: Duration) -> Result<(), Error> {
    let failed = |source| Error::File {
        path: log.to_path_buf(),
        source,
    };
    if let Some(folder) = log.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    let file = File::create(log).map_err(failed)?;
    let also = file.try_clone().map_err(failed)?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(also)
        .spawn()
        .map_err(not_started(command))?;
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait().map_err(not_started(command))? {
            return judge(command, status);
        }
        if started.elapsed() >= limit {
            // It may have ended between the two calls; either way it is gone after `wait`.
            let _ = child.kill();
            let _ = child.wait();
            return Err(Error::TimedOut {
                command: shown(command),
                limit,
            });
        }
        thread::sleep(Duration::from_millis(5));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_removed_and_the_text_stays() {
        assert_eq!(
            without_colours("\u{1b}[32;1m     Summary\u{1b}[0m [ 0.1s] π"),
            "     Summary [ 0.1s] π"
        );
    }

    #[test]
    fn lines_pass_through_whole_and_the_wanted_ones_are_kept() {
        let mut passed = Vec::new();
        let kept = pass_on(&b"one\ntwo wanted\nthree"[..], &mut passed, |line| {
            line.contains("wanted")
        });
        assert_eq!(passed, b"one\ntwo wanted\nthree");
        assert_eq!(kept, ["two wanted"]);
    }

    #[test]
    fn a_program_that_does_not_exist_is_an_error_with_its_name() {
        let error =
            run(&mut Command::new("no-such-program-anywhere")).expect_err("it does not exist");
        assert!(
            error.to_string().contains("no-such-program-anywhere"),
            "{error}"
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_program_past_its_limit_is_ended_and_said_to_be() {
        let log = std::env::temp_dir().join(format!("xtask-limit-{}.log", std::process::id()));
        let result = run_logged(Command::new("sleep").arg("600"), &log, Duration::ZERO);
        fs::remove_file(&log).expect("the log was written");
        assert!(matches!(result, Err(Error::TimedOut { .. })), "{result:?}");
    }
}
