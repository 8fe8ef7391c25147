//! The programs the steps need: found where they are installed, installed where they are not.

use std::path::PathBuf;
use std::process::Command;

use crate::error::Error;
use crate::hosts::CROSS_COMPILER;
use crate::process;
use crate::workspace::Workspace;

/// Something a step needs and could not get: what it is, and what was tried.
#[derive(Debug)]
pub(crate) struct Missing(pub(crate) String);

/// A component of the Rust toolchain, by its subcommand and rustup's name for it.
pub(crate) fn toolchain_component(
    workspace: &Workspace,
    subcommand: &str,
    component: &str,
) -> Result<(), Missing> {
    let present = || process::succeeds(&mut workspace.cargo(&[subcommand, "--version"]));
    if present() {
        return Ok(());
    }
    println!("`cargo {subcommand}` is missing: asking rustup for {component}");
    let added = process::run(
        workspace
            .command("rustup")
            .args(["component", "add", component]),
    );
    match added {
        Ok(()) if present() => Ok(()),
        Ok(()) => Err(Missing(format!(
            "rustup added {component}, but `cargo {subcommand}` still does not run"
        ))),
        Err(error) => Err(Missing(format!(
            "`cargo {subcommand}` is not installed and {error}"
        ))),
    }
}

/// The C compiler that the `cc` backend calls: `$CC`, or `cc`.
pub(crate) fn c_compiler(workspace: &Workspace) -> Result<(), Missing> {
    let name = std::env::var("CC")
        .ok()
        .filter(|name| !name.trim().is_empty())
        .unwrap_or_else(|| "cc".to_owned());
    // `CC` may carry arguments ("ccache gcc"); the first word is the program.
    let program = name.split_whitespace().next().unwrap_or("cc").to_owned();
    let present = || process::succeeds(Command::new(&program).arg("--version"));
    if present() {
        return Ok(());
    }
    debian_packages(workspace, &["gcc", "libc6-dev"])
        .map_err(|why| Missing(format!("no C compiler `{program}`: {why}")))?;
    if present() {
        Ok(())
    } else {
        Err(Missing(format!(
            "no C compiler `{program}`, even with the package gcc"
        )))
    }
}

/// valgrind, which counts instructions.
pub(crate) fn valgrind(workspace: &Workspace) -> Result<(), Missing> {
    let present = || process::succeeds(Command::new("valgrind").arg("--version"));
    if present() {
        return Ok(());
    }
    debian_packages(workspace, &["valgrind"])
        .map_err(|why| Missing(format!("no valgrind: {why}")))?;
    if present() {
        Ok(())
    } else {
        Err(Missing("no valgrind, even with its package".to_owned()))
    }
}

/// libgccjit, which the backend `gccjit` loads.
pub(crate) fn gccjit(workspace: &Workspace) -> Result<(), Missing> {
    // The loader's list of libraries says what the backend will find.
    let present = || {
        process::output_of(Command::new("/sbin/ldconfig").arg("-p"))
            .is_some_and(|libraries| libraries.contains("libgccjit.so"))
    };
    if present() {
        return Ok(());
    }
    debian_packages(workspace, &["libgccjit0", "binutils"])
        .map_err(|why| Missing(format!("no libgccjit: {why}")))?;
    if present() {
        Ok(())
    } else {
        Err(Missing("no libgccjit, even with its package".to_owned()))
    }
}

/// A target of the Rust toolchain, by rustup's name for it.
pub(crate) fn rust_target(workspace: &Workspace, target: &str) -> Result<(), Missing> {
    let present = || {
        process::output_of(
            workspace
                .command("rustup")
                .args(["target", "list", "--installed"]),
        )
        .is_some_and(|targets| targets.lines().any(|line| line == target))
    };
    if present() {
        return Ok(());
    }
    println!("the target {target} is missing: asking rustup for it");
    match process::run(workspace.command("rustup").args(["target", "add", target])) {
        Ok(()) if present() => Ok(()),
        Ok(()) => Err(Missing(format!(
            "rustup added {target}, but does not list it"
        ))),
        Err(error) => Err(Missing(format!("{target} is not installed and {error}"))),
    }
}

/// Runs programs for aarch64 on Linux.
pub(crate) const EMULATOR: &str = "qemu-aarch64";

/// Where the libraries of such programs are.
pub(crate) const EMULATOR_ROOT: &str = "/usr/aarch64-linux-gnu";

/// The emulator with the C compiler and the C library of its programs.
pub(crate) fn emulator(workspace: &Workspace) -> Result<(), Missing> {
    if !cfg!(target_os = "linux") {
        return Err(Missing(format!(
            "{EMULATOR} runs programs on Linux, and this is {}",
            std::env::consts::OS
        )));
    }
    let present = || {
        let programs = [EMULATOR, CROSS_COMPILER];
        let answers = |program| process::succeeds(Command::new(program).arg("--version"));
        // The headers come with another package than the compiler.
        let headers = PathBuf::from(EMULATOR_ROOT).join("include").join("math.h");
        programs.into_iter().all(answers) && headers.is_file()
    };
    if present() {
        return Ok(());
    }
    let packages = [
        "gcc-aarch64-linux-gnu",
        "libc6-dev-arm64-cross",
        "qemu-user",
    ];
    debian_packages(workspace, &packages)
        .map_err(|why| Missing(format!("no {EMULATOR} with {CROSS_COMPILER}: {why}")))?;
    match present() {
        true => Ok(()),
        false => Err(Missing(format!(
            "no {EMULATOR} with {CROSS_COMPILER}, even with their packages"
        ))),
    }
}

/// Installs Debian packages, where this is a Debian system and the user may.
pub(crate) fn debian_packages(workspace: &Workspace, packages: &[&str]) -> Result<(), String> {
    let names = packages.join(" ");
    if !process::succeeds(Command::new("apt-get").arg("--version")) {
        return Err(format!(
            "install what your system calls {names}; only apt-get is known here"
        ));
    }
    let root = process::output_of(Command::new("id").arg("-u")).is_some_and(|id| id.trim() == "0");
    if !root {
        return Err(format!(
            "run `sudo apt-get install {names}`; that needs root"
        ));
    }
    println!("installing the Debian packages {names}");
    let apt = |arguments: &[&str]| {
        let mut command = workspace.command("apt-get");
        command
            .args(arguments)
            .env("DEBIAN_FRONTEND", "noninteractive");
        command
    };
    // Package lists that are too old are the usual reason for a failed install, so they come first.
    process::run(&mut apt(&["update", "-qq"]))
        .and_then(|()| {
            process::run(apt(&["install", "-y", "-qq", "--no-install-recommends"]).args(packages))
        })
        .map_err(|error: Error| error.to_string())
}

/// The cargo-deny that is installed when there is none.
const CARGO_DENY_VERSION: &str = "0.20.2";

/// The oldest cargo-deny whose configuration format `deny.toml` is written in.
const CARGO_DENY_OLDEST: (u32, u32) = (0, 18);

/// cargo-deny: the one on the path, or ours under `target/tools`, built there the first time.
pub(crate) fn cargo_deny(workspace: &Workspace) -> Result<PathBuf, Missing> {
    let tools = workspace.target.join("tools");
    let own = tools
        .join("bin")
        .join(format!("cargo-deny{}", std::env::consts::EXE_SUFFIX));
    let usable = |path: &PathBuf| {
        process::output_of(Command::new(path).arg("--version"))
            .and_then(|text| version_in(&text))
            .is_some_and(|version| version >= CARGO_DENY_OLDEST)
    };
    for candidate in [PathBuf::from("cargo-deny"), own.clone()] {
        if usable(&candidate) {
            return Ok(candidate);
        }
    }
    println!(
        "cargo-deny is missing: building {CARGO_DENY_VERSION} into {} (kept for next time)",
        workspace.shown(&tools)
    );
    let mut install = workspace.cargo(&[
        "install",
        "--locked",
        "--quiet",
        "cargo-deny",
        "--version",
        CARGO_DENY_VERSION,
    ]);
    // The release profile of cargo-deny is fat LTO in one codegen unit: four minutes to build on two busy cores, against
    // 100 s to 150 s for a debug build, whose checks of this workspace then take 1.0 s instead of 0.3 s.
    install.arg("--debug").arg("--root").arg(&tools);
    // Its build products are of no use to the workspace: let cargo use, and remove, a temporary folder.
    install.env_remove("CARGO_TARGET_DIR");
    process::run(&mut install)
        .map_err(|error| Missing(format!("cargo-deny is not installed and {error}")))?;
    if usable(&own) {
        Ok(own)
    } else {
        Err(Missing("the cargo-deny just built does not run".to_owned()))
    }
}

/// The first two numbers of the version in what `--version` prints.
pub(crate) fn version_in(text: &str) -> Option<(u32, u32)> {
    let version = text
        .split_whitespace()
        .find(|word| word.starts_with(|first: char| first.is_ascii_digit()))?;
    let mut numbers = version.split('.').map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

#[cfg(test)]
mod tests {
    use super::version_in;

    #[test]
    fn versions_are_read_from_what_tools_print() {
        assert_eq!(version_in("cargo-deny 0.20.2"), Some((0, 20)));
        assert_eq!(version_in("Python 3.11.7\n"), Some((3, 11)));
        assert_eq!(version_in("no number here"), None);
        assert_eq!(version_in("tool 7"), None);
    }
}
