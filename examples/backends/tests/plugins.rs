//! The plug-in on the page about plug-ins builds, is listed and refuses programs, as the page says.
#![cfg(unix)]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PAGE: &str = include_str!("../../../docs/plugins.md");

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Builds the page's listing, if there is a C compiler. On CI there must be one.
fn built(directory: &Path) -> Option<PathBuf> {
    let (_, behind) = PAGE.split_once("```c\n").expect("the page has a listing");
    let (listing, _) = behind.split_once("```\n").expect("the listing ends");
    let [source, library] = ["mine.c", "mine.so"].map(|file| directory.join(file));
    fs::write(&source, listing).expect("the directory is ours");
    let compiled = Command::new("cc")
        .args(["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror"])
        .args(["-fPIC", "-shared", "-fvisibility=hidden", "-I"])
        .arg(root().join("crates/back/plugin/include"))
        .arg("-o")
        .args([&library, &source])
        .output();
    let Ok(compiled) = compiled else {
        assert!(
            std::env::var_os("CI").is_none(),
            "CI must have a C compiler"
        );
        eprintln!("SKIP: there is no C compiler");
        return None;
    };
    let said = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{said}");
    // Whatever the habits of this machine.
    fs::set_permissions(&library, Permissions::from_mode(0o755)).expect("the file is ours");
    Some(library)
}

/// Calls the command line with a plug-in. No settings of the machine's are used.
fn call(plugin: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_walk"))
        .arg("--plugin")
        .arg(plugin)
        .args(arguments)
        .current_dir(root())
        .env("LOOPWRIGHT_CONFIG", "/dev/null")
        .output()
        .expect("Cargo has built the example")
}

#[test]
fn the_listing_is_a_plug_in() {
    let directory = tempfile::tempdir().expect("there is room for a directory");
    let Some(plugin) = built(directory.path()) else {
        return;
    };
    let listed = call(&plugin, &["devices"]);
    let text = String::from_utf8_lossy(&listed.stdout);
    assert!(text.lines().any(|line| line.starts_with("mine ")), "{text}");

    let program = "examples/programs/matmul.lw";
    let refused = call(&plugin, &["run", program, "--device", "mine"]);
    let text = String::from_utf8_lossy(&refused.stderr);
    assert!(
        text.contains("not written yet: start in compile()"),
        "{text}"
    );
    assert!(!refused.status.success());
}

#[test]
fn a_file_that_others_may_write_is_refused_with_the_words_of_the_page() {
    let directory = tempfile::tempdir().expect("there is room for a directory");
    let Some(plugin) = built(directory.path()) else {
        return;
    };
    fs::set_permissions(&plugin, Permissions::from_mode(0o775)).expect("the file is ours");
    let refused = call(&plugin, &["devices"]);
    let reason = "is not loaded: it may be written by others (mode 775); `chmod go-w` it";
    assert!(PAGE.contains(reason));
    let text = String::from_utf8_lossy(&refused.stderr);
    assert!(text.contains(reason), "{text}");
}
