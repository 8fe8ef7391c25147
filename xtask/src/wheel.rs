//! `cargo xtask wheel`: a wheel for any Linux with glibc 2.17 or later, imported where nothing else is installed.

use crate::error::Error;
use crate::package;
use crate::process;
use crate::python;
use crate::tools::{self, Missing};
use crate::workspace::Workspace;
use std::env;
use std::path::Path;

/// What `cargo xtask help` says of it.
pub(crate) const HELP: &str = "
  cargo xtask wheel
        Builds a wheel of the Python package for this processor and any Linux with glibc 2.17 or later (manylinux), into
        target/wheels-manylinux, and runs the examples of the front pages with nothing but it installed.
";

/// The oldest C library that it is for: 2.17, of 2012.
const COMPATIBILITY: &str = "manylinux2014";

/// Builds the wheel and tries it.
pub(crate) fn run(workspace: &Workspace) -> Result<(), Error> {
    if !cfg!(target_os = "linux") {
        return Err(Error::Check(format!(
            "a {COMPATIBILITY} wheel is built on Linux, and this is {}",
            env::consts::OS
        )));
    }
    let requirements = workspace.root.join("xtask").join("wheel-requirements.txt");
    let python = python::environment(workspace, "wheel-env", Some(&requirements))?
        .map_err(|Missing(why)| Error::Check(why))?;
    // The examples of the front pages compile for the default device, which may be the C compiler.
    if let Err(Missing(why)) = tools::c_compiler(workspace) {
        println!("{why}");
    }
    let folder = workspace.target.join("wheels-manylinux");
    let mut build = workspace.command(&python);
    build
        .args(["-m", "maturin", "build", "--release", "--zig"])
        .args(["--compatibility", COMPATIBILITY, "--out"])
        .arg(&folder)
        .current_dir(workspace.root.join(package::PACKAGE))
        .env("CARGO_TARGET_DIR", &workspace.target)
        .env("PATH", path_with(python.parent())?);
    // What an earlier run has built there is not what this one tries.
    let _ = std::fs::remove_dir_all(&folder);
    process::run(&mut build)?;
    let wheel = package::wheel_in(&folder)?;
    let name = wheel.file_name().unwrap_or_default().to_string_lossy();
    if !name.contains(COMPATIBILITY) {
        return Err(Error::Check(format!(
            "{name} is not a {COMPATIBILITY} wheel"
        )));
    }
    let bytes = package::checked_size(&wheel)?;
    package::try_alone(workspace, &wheel)?;
    println!(
        "{}: {:.1} MB, works with nothing else installed",
        workspace.shown(&wheel),
        bytes as f64 / 1e6
    );
    Ok(())
}

/// The path for programs with a folder in front of it: maturin looks for its linker with the Python that is found there.
fn path_with(folder: Option<&Path>) -> Result<std::ffi::OsString, Error> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = folder.map(Path::to_path_buf).into_iter();
    env::join_paths(folders.chain(env::split_paths(&path)))
        .map_err(|error| Error::Check(format!("PATH cannot be extended: {error}")))
}
