//! Where the checkout and its build outputs are, and how cargo is called there.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::Error;

/// The checkout that the tasks work on.
pub(crate) struct Workspace {
    /// The folder with the workspace's `Cargo.toml`.
    pub(crate) root: PathBuf,
    /// Cargo's target folder: `CARGO_TARGET_DIR`, or `target` under the root.
    pub(crate) target: PathBuf,
    /// Whether `CI=true`: nobody is there to read a skip, so a part that cannot run is a failure.
    pub(crate) ci: bool,
}

impl Workspace {
    /// Finds the checkout this program was built from.
    pub(crate) fn find() -> Result<Self, Error> {
        // Cargo sets the variable at run time too; that one survives moving the checkout after the build.
        let manifest_dir = env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        let root = manifest_dir
            .parent()
            .map(Path::to_path_buf)
            .ok_or_else(|| {
                Error::Check(format!("{} has no parent folder", manifest_dir.display()))
            })?;
        let target = match env::var_os("CARGO_TARGET_DIR").filter(|dir| !dir.is_empty()) {
            // Relative to where cargo was called, which need not be the root.
            Some(dir) => std::path::absolute(&dir).map_err(|source| Error::File {
                path: PathBuf::from(dir),
                source,
            })?,
            None => root.join("target"),
        };
        let ci = env::var("CI").is_ok_and(|value| value == "true" || value == "1");
        Ok(Workspace { root, target, ci })
    }

    /// A command that runs in the root.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.root);
        // What `cargo run` says about xtask is wrong for everything xtask starts, and build scripts that watch these
        // variables would run again whenever a person and xtask take turns.
        for (name, _) in env::vars_os() {
            let name = name.to_string_lossy();
            if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
                command.env_remove(name.as_ref());
            }
        }
        command
    }

    /// The cargo that started this program, in the root, building into [`Workspace::target`].
    pub(crate) fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command
            .args(arguments)
            .env("CARGO_TARGET_DIR", &self.target);
        command
    }

    /// The entries of a folder under the root, sorted by name; none where the folder does not exist.
    pub(crate) fn entries(&self, folder: &str) -> Result<Vec<PathBuf>, Error> {
        let folder = self.root.join(folder);
        if !folder.is_dir() {
            return Ok(Vec::new());
        }
        let failed = |source| Error::File {
            path: folder.clone(),
            source,
        };
        let mut entries = Vec::new();
        for entry in fs::read_dir(&folder).map_err(failed)? {
            entries.push(entry.map_err(failed)?.path());
        }
        entries.sort();
        Ok(entries)
    }

    /// The folders of the crates, `crates/ROOM/NAME`, sorted.
    pub(crate) fn crates(&self) -> Result<Vec<PathBuf>, Error> {
        let mut crates = Vec::new();
        for room in self.entries("crates")? {
            let room = self.shown(&room).to_string();
            crates.extend(self.entries(&room)?);
        }
        Ok(crates)
    }

    /// A path as it reads from the root.
    pub(crate) fn shown<'path>(&self, path: &'path Path) -> std::path::Display<'path> {
        path.strip_prefix(&self.root).unwrap_or(path).display()
    }
}
