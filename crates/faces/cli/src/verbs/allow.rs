//! `allow` and `deny`: whether a project's configuration may name code, caches and output files.

use crate::arguments::FolderOptions;
use crate::failure::Failure;
use crate::terminal::{Shown as _, Terminal};
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;

pub(crate) fn allow(options: &FolderOptions, terminal: &mut Terminal) -> Result<ExitCode, Failure> {
    let allowed = loopwright_config::allow(folder(options))?;
    match options.json {
        true => terminal.json(&json!({
            "file": allowed.file.display().to_string(),
            "allowed": true,
            "changed": allowed.changed,
        }))?,
        false => terminal.line(format!(
            "{} is allowed as it is now; a change asks again, and `loopwright deny` takes it back",
            allowed.file.shown()
        ))?,
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn deny(options: &FolderOptions, terminal: &mut Terminal) -> Result<ExitCode, Failure> {
    let denied = loopwright_config::deny(folder(options))?;
    let file = denied.file.shown();
    match (options.json, denied.changed) {
        (true, changed) => terminal.json(&json!({
            "file": denied.file.display().to_string(),
            "allowed": false,
            "changed": changed,
        }))?,
        (false, true) => terminal.line(format!("{file} is not allowed any more"))?,
        (false, false) => terminal.line(format!("{file} was not allowed"))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn folder(options: &FolderOptions) -> &Path {
    options.folder.as_deref().unwrap_or(Path::new("."))
}
