//! Plug-ins for the tests: built from C, or found where Cargo has built them.

#![allow(dead_code, reason = "every test uses some of it")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A directory for plug-ins, which only we can write to.
pub fn directory() -> TempDir {
    // The system's directory for such things is sticky, and what is made in it is ours alone.
    tempfile::tempdir().expect("there is room for a directory")
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// Whether there is a C compiler. On CI there must be one.
pub fn has_compiler() -> bool {
    match Command::new("cc").arg("--version").output() {
        Ok(output) if output.status.success() => true,
        _ if std::env::var_os("CI").is_none() => {
            eprintln!("SKIP: there is no C compiler");
            false
        }
        _ => panic!("CI must have a C compiler"),
    }
}

/// Builds a plug-in from a file of C with today's header.
fn build(source: &Path, library: &Path, flags: &[&str]) {
    build_with("include", source, library, flags);
}

/// Builds a plug-in from a file of C with the header in this folder of the crate.
fn build_with(header: &str, source: &Path, library: &Path, flags: &[&str]) {
    let output = Command::new("cc")
        .args(["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror"])
        .args(["-O1", "-fPIC", "-shared", "-fvisibility=hidden", "-I"])
        .arg(root().join("crates/back/plugin").join(header))
        .args(flags)
        .arg("-o")
        .arg(library)
        .arg(source)
        .arg("-ldl")
        .output()
        .expect("the compiler starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", source.display());
    close(library);
}

/// Nobody else may write to the file, whatever the habits of this machine.
fn close(file: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).expect("the file is ours");
}

/// Builds `tests/liars/NAME.c`.
pub fn liar(directory: &Path, name: &str) -> PathBuf {
    let source = root().join(format!("crates/back/plugin/tests/liars/{name}.c"));
    let library = directory.join(format!("{name}.so"));
    build(&source, &library, &[]);
    library
}

/// Builds `tests/liars/parrot.c` for a form.
pub fn parrot(directory: &Path, form: u32) -> PathBuf {
    let source = root().join("crates/back/plugin/tests/liars/parrot.c");
    let library = directory.join(format!("parrot-{form}.so"));
    build(&source, &library, &[&format!("-DFORM={form}")]);
    library
}

/// Builds the example in C.
pub fn example_c(directory: &Path) -> PathBuf {
    let library = directory.join("example_c.so");
    build(
        &root().join("examples/plugins/c/example_c.c"),
        &library,
        &[],
    );
    library
}

/// Builds the example in C with the first header of this version of the ABI, whose tables are shorter.
pub fn example_c_with_first_header(directory: &Path) -> PathBuf {
    let library = directory.join("example_c_first.so");
    let source = root().join("examples/plugins/c/example_c.c");
    build_with("tests/first", &source, &library, &[]);
    library
}

/// The example in Rust. Cargo builds it before these tests, which depend on it, and puts it beside them; it is
/// copied, because directories of builds are often open to a group.
pub fn example_rust(directory: &Path) -> PathBuf {
    built_by_cargo(directory, "loopwright_example_plugin")
}

/// The example with devices, likewise.
pub fn example_device(directory: &Path) -> PathBuf {
    built_by_cargo(directory, "loopwright_example_device_plugin")
}

fn built_by_cargo(directory: &Path, library: &str) -> PathBuf {
    let name = format!(
        "{}{library}{}",
        std::env::consts::DLL_PREFIX,
        std::env::consts::DLL_SUFFIX
    );
    let test = std::env::current_exe().expect("a test knows where it is");
    let beside = test.ancestors().skip(1).take(2);
    let mut built = beside.map(|directory| directory.join(&name));
    let built = built.find(|file| file.is_file());
    let built = built.unwrap_or_else(|| {
        let place = test.parent().unwrap_or(Path::new("")).display();
        panic!("Cargo builds {name} with these tests, and it is not in {place} or above")
    });
    let library = directory.join(&name);
    fs::copy(built, &library).expect("the directory is ours");
    close(&library);
    library
}
