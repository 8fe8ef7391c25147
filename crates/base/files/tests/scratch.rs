//! Temporary folders, and what is left of them.
#![cfg(unix)]

use loopwright_files::ScratchFolder;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What has this process, run again as a child, make a folder and wait to be killed.
const ROLE: &str = "FILES_TEST_ROLE";

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("the folder is there");
    entries
        .map(|entry| entry.expect("an entry").file_name())
        .map(|name| name.to_string_lossy().into_owned())
        .collect()
}

fn child(temporary: &Path, role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command
        .args(["--exact", "this_process_as_a_child", "--nocapture"])
        .env("TMPDIR", temporary)
        .env(ROLE, role)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    command
}

/// Does nothing unless one of the other tests started it.
#[test]
fn this_process_as_a_child() {
    match std::env::var(ROLE).as_deref() {
        Ok("wait") => {
            let folder = ScratchFolder::new("killed").expect("a folder");
            std::fs::write(folder.path().join("file"), b"bytes").expect("room");
            println!("made");
            let mut line = String::new();
            let _ = std::io::stdin().read_line(&mut line);
        }
        Ok("make") => match ScratchFolder::new("later") {
            Ok(folder) => println!("path {}", folder.path().display()),
            Err(error) => println!("error {error}"),
        },
        _ => {}
    }
}

fn started(temporary: &Path) -> std::process::Child {
    use std::io::BufRead as _;
    let mut child = child(temporary, "wait").spawn().expect("this program");
    let output = child.stdout.as_mut().expect("it is a pipe");
    let mut lines = std::io::BufReader::new(output).lines();
    let made = lines.any(|line| line.expect("text").ends_with("made"));
    assert!(made, "it never made its folder");
    child
}

fn said(temporary: &Path) -> String {
    let output = child(temporary, "make").output().expect("this program");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_folder_of_a_killed_process_is_removed_by_the_next_one() {
    let temporary = tempfile::tempdir().expect("a temporary directory");
    let mut killed = started(temporary.path());
    let mut living = started(temporary.path());
    assert_eq!(names(temporary.path()).len(), 2);
    killed.kill().expect("it runs");
    killed.wait().expect("it is our child");
    assert_eq!(names(temporary.path()).len(), 2, "nobody had a chance");
    // What only looks like ours stays.
    let other = temporary.path().join("loopwright-scratch-of-somebody");
    std::os::unix::fs::symlink(temporary.path(), &other).expect("a link");
    assert!(said(temporary.path()).contains("path "));
    let left = names(temporary.path());
    assert_eq!(
        left.len(),
        2,
        "that of the living one and the link: {left:?}"
    );
    assert!(other.symlink_metadata().is_ok());
    drop(living.stdin.take());
    living.wait().expect("it is our child");
    assert_eq!(names(temporary.path()).len(), 1);
}

#[test]
fn a_missing_folder_for_temporary_files_is_named_with_its_variable() {
    let temporary = tempfile::tempdir().expect("a temporary directory");
    let missing = temporary.path().join("missing");
    let text = said(&missing);
    let wanted = format!("TMPDIR={} does not exist", missing.display());
    assert!(text.contains(&wanted), "{text}");
    let file = temporary.path().join("file");
    std::fs::write(&file, b"").expect("room");
    let text = said(&file);
    assert!(text.contains("is not a folder"), "{text}");
}

#[test]
fn a_folder_is_private_goes_with_its_owner_and_stays_when_kept() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = ScratchFolder::new("test").expect("a folder");
    let path = folder.path().to_owned();
    let mode = path.metadata().expect("a folder").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    drop(folder);
    assert!(!path.exists());
    let kept: PathBuf = ScratchFolder::new("test").expect("a folder").keep();
    assert!(kept.is_dir());
    let name = kept.file_name().expect("a name").to_string_lossy();
    assert!(!name.starts_with("loopwright-scratch-"), "{name}");
    std::fs::remove_dir(&kept).expect("it is empty");
}
