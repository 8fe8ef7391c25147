//! The Python package: built as `pip install ./crates/faces/python` does, tried in an environment with nothing else, tested.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::process;
use crate::python;
use crate::summary;
use crate::test::Notes;
use crate::tools::{self, Missing};
use crate::workspace::Workspace;

/// Where it lives.
pub(crate) const PACKAGE: &str = "crates/faces/python";

/// A wheel is no larger than this.
const MOST_BYTES: u64 = 15_000_000;

/// The devices that the suite of the Array API standard runs on, each with how many examples a property is tried with. To
/// compile for one of them takes a C compiler a while.
const DEVICES: [(&str, &str); 3] = [("x86", "20"), ("cc", "2"), ("interp", "2")];

/// Builds the wheel, runs the examples of the front pages with nothing but it installed, and runs the tests.
pub(crate) fn check(workspace: &Workspace, notes: &mut Notes) -> Result<(), Error> {
    let package = workspace.root.join(PACKAGE);
    let requirements = package.join("tests").join("requirements.txt");
    let python = match python::environment(workspace, "python-package-env", Some(&requirements))? {
        Ok(python) => python,
        Err(Missing(why)) => {
            notes.skip("the Python package", why);
            return Ok(());
        }
    };
    if let Err(Missing(why)) = tools::c_compiler(workspace) {
        notes.skip("tests of the Python package that compile C", why);
    }
    let wheel = wheel(workspace, &python)?;
    let bytes = checked_size(&wheel)?;
    notes.line(format!("the wheel has {:.1} MB", bytes as f64 / 1e6));
    try_alone(workspace, &wheel)?;
    install(workspace, &python, &wheel)?;
    run_tests(workspace, notes, &python, &package)
}

/// The wheel of the package as it is now.
fn wheel(workspace: &Workspace, python: &Path) -> Result<PathBuf, Error> {
    let folder = workspace.target.join("wheels");
    // What an earlier run has built there is not what this one tests.
    let _ = fs::remove_dir_all(&folder);
    let mut build = workspace.command(python);
    build.args(["-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir"]);
    process::run(build.arg(&folder).arg(format!("./{PACKAGE}")))?;
    wheel_in(&folder)
}

/// The bytes of a wheel, which is not too large.
pub(crate) fn checked_size(wheel: &Path) -> Result<u64, Error> {
    let bytes = fs::metadata(wheel).map_or(0, |file| file.len());
    match bytes > MOST_BYTES {
        true => Err(Error::Check(format!(
            "the wheel has {bytes} bytes, more than {MOST_BYTES}"
        ))),
        false => Ok(bytes),
    }
}

/// The wheel in a folder.
pub(crate) fn wheel_in(folder: &Path) -> Result<PathBuf, Error> {
    let files = fs::read_dir(folder).map_err(|source| Error::File {
        path: folder.to_path_buf(),
        source,
    })?;
    let mut files = files.flatten().map(|file| file.path());
    files
        .find(|file| file.extension().is_some_and(|kind| kind == "whl"))
        .ok_or_else(|| Error::Check(format!("there is no wheel in {}", folder.display())))
}

fn install(workspace: &Workspace, python: &Path, wheel: &Path) -> Result<(), Error> {
    let mut command = workspace.command(python);
    command.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-index",
        "--no-deps",
        "--force-reinstall",
    ]);
    process::run(command.arg(wheel))
}

/// The pages whose first example in Python is run.
const READMES: [&str; 2] = ["README.md", "crates/faces/python/README.md"];

/// Runs the examples of the front pages where nothing else is installed.
pub(crate) fn try_alone(workspace: &Workspace, wheel: &Path) -> Result<(), Error> {
    let python = match python::environment(workspace, "python-empty-env", None)? {
        Ok(python) => python,
        Err(Missing(why)) => return Err(Error::Check(why)),
    };
    install(workspace, &python, wheel)?;
    for readme in READMES {
        let text = python::read(&workspace.root.join(readme))?;
        let example = first_example(&text)
            .ok_or_else(|| Error::Check(format!("{readme} has no example in Python")))?;
        process::run(workspace.command(&python).args(["-c", example]))?;
    }
    Ok(())
}

/// The first block of Python in a page.
fn first_example(page: &str) -> Option<&str> {
    let (_, rest) = page.split_once("```python\n")?;
    rest.split_once("```").map(|(example, _)| example)
}

#[test]
fn front_pages_have_an_example_in_python() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for readme in READMES {
        let page = fs::read_to_string(root.join(readme)).expect("it is there");
        let example = first_example(&page).expect("it has an example");
        assert!(example.starts_with("import loopwright"), "{readme}");
    }
}

fn run_tests(
    workspace: &Workspace,
    notes: &mut Notes,
    python: &Path,
    package: &Path,
) -> Result<(), Error> {
    let mut failures = Vec::new();
    let mut run = |what: &str, arguments: &[&str]| {
        let mut command = workspace.command(python);
        command
            .args(["-m", "pytest", "-q", "-p", "no:cacheprovider"])
            .args(arguments)
            .current_dir(package);
        let (lines, result) = process::run_keeping(&mut command, summary::is_closing_line);
        notes.lines.extend(summary::closing_lines(what, &lines));
        if let Err(error) = result {
            failures.push(error.to_string());
        }
    };
    run("Python", &["tests", "--ignore=tests/array_api"]);
    run(
        "examples in docstrings",
        &["--doctest-modules", "--pyargs", "loopwright"],
    );
    for (device, examples) in DEVICES {
        run(
            &format!("Array API on {device}"),
            &[
                "tests/array_api",
                "--device",
                device,
                "--examples",
                examples,
            ],
        );
    }
    match failures.is_empty() {
        true => Ok(()),
        false => Err(Error::Check(failures.join("; "))),
    }
}
