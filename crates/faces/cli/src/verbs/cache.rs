//! `cache`: compiled kernels on disk.

use crate::arguments::{CacheAction, CacheOptions};
use crate::failure::Failure;
use crate::table::Table;
use crate::terminal::{Shown as _, Terminal};
use crate::units;
use loopwright_config::Settings;
use loopwright_files::cache::{CacheEntry, clear, entries};
use serde_json::json;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub(crate) fn cache(
    options: &CacheOptions,
    settings: &Settings,
    terminal: &mut Terminal,
) -> Result<ExitCode, Failure> {
    let directory = settings.cache_dir().ok_or_else(|| {
        Failure::new("there is no cache: neither XDG_CACHE_HOME nor HOME is set")
            .help("set LOOPWRIGHT_CACHE_DIR to a directory")
    })?;
    let shown = directory.shown();
    match &options.action {
        CacheAction::List(options) => {
            let entries = entries(directory)?;
            if options.json {
                let entries: Vec<_> = entries.iter().map(entry_json).collect();
                terminal.json(&json!({ "directory": shown, "entries": entries }))?;
            } else {
                list(&shown, &entries, terminal)?;
            }
        }
        CacheAction::Clear(options) => {
            let cleared = clear(directory)?;
            if options.json {
                terminal.json(&json!({
                    "directory": shown,
                    "removed": cleared.count,
                    "bytes": cleared.bytes,
                }))?;
            } else {
                terminal.line(format!(
                    "removed {}, {}, from {shown}",
                    units::count(cleared.count, "compiled kernel"),
                    units::bytes(cleared.bytes.into())
                ))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn entry_json(entry: &CacheEntry) -> serde_json::Value {
    let created = entry.created.duration_since(UNIX_EPOCH).unwrap_or_default();
    json!({
        "backend": entry.backend,
        "key": entry.key.as_str(),
        "kernels": entry.kernels,
        "bytes": entry.bytes,
        "created": created.as_secs(),
    })
}

fn list(directory: &str, entries: &[CacheEntry], terminal: &mut Terminal) -> Result<(), Failure> {
    if entries.is_empty() {
        return terminal.line(format!("nothing is kept in {directory}"));
    }
    let mut table = Table::right(&[2, 3]);
    table.row(["backend", "key", "size", "made"]);
    for entry in entries {
        // Enough to tell them apart.
        let key: String = entry.key.as_str().chars().take(16).collect();
        let size = units::bytes(entry.bytes.into());
        let age = SystemTime::now().duration_since(entry.created);
        let age = ago(age.unwrap_or_default());
        table.row([&entry.backend, &key, &size, &age]);
    }
    for line in table.lines(0) {
        terminal.line(line)?;
    }
    let bytes: u128 = entries.iter().map(|entry| u128::from(entry.bytes)).sum();
    terminal.line(format!(
        "{}, {}, in {directory}",
        units::count(entries.len(), "compiled kernel"),
        units::bytes(bytes)
    ))
}

/// `3 hours ago`.
fn ago(age: Duration) -> String {
    let seconds = age.as_secs();
    let (number, unit) = match seconds {
        0..60 => return "just now".to_owned(),
        60..3600 => (seconds / 60, "minute"),
        3600..86400 => (seconds / 3600, "hour"),
        _ => (seconds / 86400, "day"),
    };
    format!("{} ago", units::count(number as usize, unit))
}
