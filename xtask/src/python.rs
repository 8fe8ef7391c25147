//! Python environments: for the scripts that generate and check reference values, and for the package's tests.
//!
//! They live under `target`, so that `cargo clean` removes them and nothing is installed for the user.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::Error;
use crate::process;
use crate::test::Notes;
use crate::tools::{self, Missing};
use crate::workspace::Workspace;

/// The oldest Python that the pinned packages support.
const OLDEST_PYTHON: (u32, u32) = (3, 11);

/// Runs `crates/*/*/tests/reference/generate.py --check`: each compares the reference values in the repository with those
/// it would write now.
pub(crate) fn check_reference_values(
    workspace: &Workspace,
    notes: &mut Notes,
) -> Result<(), Error> {
    let generators: Vec<PathBuf> = workspace
        .crates()?
        .into_iter()
        .map(|folder| folder.join("tests").join("reference").join("generate.py"))
        .filter(|script| script.is_file())
        .collect();
    if generators.is_empty() {
        notes.skip(
            "reference values",
            "there is no crates/*/*/tests/reference/generate.py",
        );
        return Ok(());
    }
    let requirements = workspace.root.join("xtask").join("requirements.txt");
    let python = match environment(workspace, "python-env", Some(&requirements))? {
        Ok(python) => python,
        Err(Missing(why)) => {
            notes.skip("reference values", why);
            return Ok(());
        }
    };
    let mut failures = Vec::new();
    for script in &generators {
        if let Err(error) = process::run(workspace.command(&python).arg(script).arg("--check")) {
            failures.push(error.to_string());
        }
    }
    notes.line(format!(
        "{} reference generator(s) run with --check",
        generators.len()
    ));
    if failures.is_empty() {
        Ok(())
    } else {
        Err(Error::Check(failures.join("; ")))
    }
}

/// The interpreter of an environment with pinned packages, made or refreshed where needed; without a list, one with
/// nothing in it, made anew.
pub(crate) fn environment(
    workspace: &Workspace,
    name: &str,
    requirements: Option<&Path>,
) -> Result<Result<PathBuf, Missing>, Error> {
    let folder = workspace.target.join(name);
    let python = if cfg!(windows) {
        folder.join("Scripts").join("python.exe")
    } else {
        folder.join("bin").join("python")
    };
    // Written last, so that an interrupted installation is done again.
    let stamp = folder.join("installed-requirements.txt");
    let wanted = requirements.map(read).transpose()?.unwrap_or_default();
    if requirements.is_some()
        && fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted)
        && process::succeeds(Command::new(&python).arg("--version"))
    {
        return Ok(Ok(python));
    }
    let base = match base_python(workspace) {
        Ok(base) => base,
        Err(missing) => return Ok(Err(missing)),
    };
    println!("making the Python environment {}", workspace.shown(&folder));
    let make = || {
        process::run(
            workspace
                .command(base)
                .args(["-m", "venv", "--clear"])
                .arg(&folder),
        )
    };
    if make().is_err() {
        // Debian ships Python without the part of venv that installs pip.
        if let Err(why) = tools::debian_packages(workspace, &["python3-venv"]) {
            return Ok(Err(Missing(format!(
                "`{base} -m venv` does not work: {why}"
            ))));
        }
        if let Err(error) = make() {
            return Ok(Err(Missing(error.to_string())));
        }
    }
    let Some(requirements) = requirements else {
        return Ok(Ok(python));
    };
    // Wheels only: compiling numpy would need a Fortran-sized toolchain and half an hour.
    let mut install = workspace.command(&python);
    install
        .args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--only-binary",
            ":all:",
            "--requirement",
        ])
        .arg(requirements);
    if let Err(error) = process::run(&mut install) {
        return Ok(Err(Missing(format!(
            "the packages of {} cannot be installed: {error}",
            workspace.shown(requirements)
        ))));
    }
    fs::write(&stamp, wanted).map_err(|source| Error::File {
        path: stamp,
        source,
    })?;
    Ok(Ok(python))
}

/// A system Python that is new enough.
fn base_python(workspace: &Workspace) -> Result<&'static str, Missing> {
    const NAMES: [&str; 2] = ["python3", "python"];
    let find = || {
        NAMES.into_iter().find(|name| {
            process::output_of(Command::new(name).arg("--version"))
                .and_then(|text| tools::version_in(&text))
                .is_some_and(|version| version >= OLDEST_PYTHON)
        })
    };
    if let Some(name) = find() {
        return Ok(name);
    }
    let (major, minor) = OLDEST_PYTHON;
    tools::debian_packages(workspace, &["python3", "python3-venv"])
        .map_err(|why| Missing(format!("no Python {major}.{minor} or newer: {why}")))?;
    find().ok_or_else(|| {
        Missing(format!(
            "no Python {major}.{minor} or newer, even with the package python3"
        ))
    })
}

pub(crate) fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|source| Error::File {
        path: path.to_path_buf(),
        source,
    })
}
