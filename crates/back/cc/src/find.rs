//! Which compiler, and who it is.

use crate::command::{RunFailure, run_limited};
use loopwright_backend::Unavailable;
use loopwright_files::scratch_file;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Flags that make code for exactly this machine. They are left out where the compiler refuses them.
fn native_flags() -> Vec<&'static str> {
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("avx512f") {
        // Lanes of 64-byte vectors are looped over in C; GCC would split them into halves.
        return vec!["-march=native", "-mprefer-vector-width=512"];
    }
    vec!["-march=native"]
}

/// A compiler that answered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Compiler {
    /// The program.
    pub path: PathBuf,
    /// Arguments that come before all others.
    pub arguments: Vec<String>,
    /// Its version, in its own words.
    pub version: String,
    /// The flags for exactly this machine that it takes.
    pub native: Vec<&'static str>,
    /// Everything it says about itself and this machine, as a hash: part of cache keys.
    pub identity: String,
}

impl Compiler {
    /// Whether its code for this machine has one instruction for `fma`, and no call of the library.
    pub(crate) fn fuses(&self) -> bool {
        #[cfg(target_arch = "x86_64")]
        let machine = std::is_x86_feature_detected!("fma");
        #[cfg(not(target_arch = "x86_64"))]
        let machine = cfg!(target_arch = "aarch64");
        machine && !self.native.is_empty()
    }

    /// Finds the compiler `wanted` (a program with arguments) or, if that is empty, `cc`, `gcc` or
    /// `clang`, and asks it who it is.
    pub fn find(wanted: &str, timeout: Duration) -> Result<Compiler, Unavailable> {
        let mut words = wanted.split_whitespace().map(str::to_owned);
        let (path, arguments) = match words.next() {
            Some(program) => {
                let path = locate(&program).ok_or_else(|| Unavailable {
                    reason: format!("the C compiler `{program}` was not found"),
                    help: "set LOOPWRIGHT_CC to a compiler that exists, or unset it and CC"
                        .to_owned(),
                    broken: false,
                })?;
                (path, words.collect())
            }
            None => {
                let path = ["cc", "gcc", "clang"].into_iter().find_map(locate);
                let path = path.ok_or_else(|| Unavailable {
                    reason: "no C compiler was found in PATH (tried cc, gcc and clang)".to_owned(),
                    help: "install gcc or clang, or set LOOPWRIGHT_CC to a compiler".to_owned(),
                    broken: false,
                })?;
                (path, Vec::new())
            }
        };
        Compiler::ask(path, arguments, timeout)
    }

    /// One run tells the version, what `-march=native` means here, and whether it is understood.
    fn ask(
        path: PathBuf,
        arguments: Vec<String>,
        timeout: Duration,
    ) -> Result<Compiler, Unavailable> {
        // What it says is read from a temporary file: without one it is not the compiler that does not work.
        scratch_file().map_err(|error| Unavailable {
            reason: format!("there are no temporary files: {error}"),
            help: "set TMPDIR to a folder that you may write to".to_owned(),
            broken: true,
        })?;
        let native = native_flags();
        let mut answer = Err(String::new());
        for native in [native, Vec::new()] {
            let mut command = Command::new(&path);
            command
                .args(&arguments)
                .args(&native)
                .args(["-v", "-E", "-x", "c", "/dev/null"]);
            command.env("LC_ALL", "C");
            // It takes some milliseconds, and what comes out is kept as long as the process: it is not to be cut short.
            match run_limited(command, timeout, || Ok(())) {
                Ok(finished) if finished.success => {
                    answer = Ok((native, finished.log));
                    break;
                }
                Ok(finished) => answer = Err(finished.log),
                Err(RunFailure::Failed(error)) => answer = Err(error),
                Err(RunFailure::Interrupted) => unreachable!("nobody asks it to end"),
            }
        }
        match answer {
            Ok((native, log)) => {
                let version = log
                    .lines()
                    .find(|line| line.contains(" version "))
                    .unwrap_or("unknown version")
                    .trim()
                    .to_owned();
                let mut hash = blake3::Hasher::new();
                hash.update(path.as_os_str().as_encoded_bytes());
                hash.update(log.as_bytes());
                let identity = hash.finalize().to_hex().to_string();
                Ok(Compiler {
                    path,
                    arguments,
                    version,
                    native,
                    identity,
                })
            }
            Err(log) => Err(Unavailable {
                reason: format!(
                    "the C compiler {} does not work: {}",
                    path.display(),
                    log.lines()
                        .find(|line| !line.trim().is_empty())
                        .unwrap_or("it says nothing")
                ),
                help: "set LOOPWRIGHT_CC to a working gcc or clang".to_owned(),
                broken: true,
            }),
        }
    }
}

/// The program: as it stands if it is a path, else from `PATH`.
fn locate(program: &str) -> Option<PathBuf> {
    let path = Path::new(program);
    if path.components().count() > 1 {
        return is_program(path).then(|| path.to_owned());
    }
    search(program, &std::env::var_os("PATH")?)
}

/// The program in the first directory of `path` that has it. Relative directories, which depend on
/// where one stands, and those that everybody may write to are passed over.
fn search(program: &str, path: &OsStr) -> Option<PathBuf> {
    std::env::split_paths(path)
        .filter(|directory| directory.is_absolute() && !is_world_writable(directory))
        .map(|directory| directory.join(program))
        .find(|candidate| is_program(candidate))
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata()
        .is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.is_file()
}

#[cfg(unix)]
fn is_world_writable(directory: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    directory
        .metadata()
        .is_ok_and(|data| data.permissions().mode() & 0o002 != 0)
}

#[cfg(not(unix))]
fn is_world_writable(_: &Path) -> bool {
    false
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn only_trustworthy_directories_are_searched() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let program = directory.path().join("some-cc");
        std::fs::write(&program, "#!/bin/sh\n").expect("a file");
        let mode = |path: &Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
                .expect("own file");
        };
        let path = directory.path().as_os_str();
        assert_eq!(search("some-cc", path), None, "not executable");
        mode(&program, 0o755);
        assert_eq!(search("some-cc", path).as_ref(), Some(&program));
        mode(directory.path(), 0o777);
        assert_eq!(
            search("some-cc", path),
            None,
            "everybody may put a compiler there"
        );
        assert_eq!(search("some-cc", OsStr::new(".")), None);
    }

    #[test]
    fn a_missing_compiler_says_what_to_do() {
        let error =
            Compiler::find("/nowhere/cc", Duration::from_secs(1)).expect_err("no such file");
        assert_eq!(
            error.to_string(),
            "the C compiler `/nowhere/cc` was not found; \
             set LOOPWRIGHT_CC to a compiler that exists, or unset it and CC"
        );
    }
}
