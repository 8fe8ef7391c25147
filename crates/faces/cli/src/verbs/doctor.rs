//! `doctor`: what is missing on this machine and what it would give.

use crate::arguments::JsonOnly;
use crate::failure::Failure;
use crate::memory::available;
use crate::terminal::{Shown as _, Terminal};
use crate::units;
use loopwright::backend::{Describe, backends};
use loopwright::cc::CcBackend;
use loopwright::gccjit::GccJit;
use loopwright_config::Settings;
use serde_json::json;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

/// One thing that was looked for.
struct Finding {
    name: &'static str,
    /// What it gives, or would give.
    gives: &'static str,
    /// What was found, or what is wrong.
    found: String,
    /// What to do about it, where it is not as it should be.
    help: Option<String>,
}

pub(crate) fn doctor(
    options: &JsonOnly,
    settings: &Settings,
    terminal: &mut Terminal,
) -> Result<ExitCode, Failure> {
    let findings = [
        compiler(),
        libgccjit(),
        cache(settings.cache_dir()),
        python(),
        memory(),
    ];
    let devices: Vec<(String, Option<String>)> = backends()
        .iter()
        .filter(|backend| backend.capabilities().computes)
        .map(|backend| {
            (
                backend.name().to_owned(),
                backend.availability().err().map(|why| why.reason),
            )
        })
        .collect();
    if options.json {
        let checks: Vec<_> = findings
            .iter()
            .map(|finding| {
                let mut check = json!({
                    "name": finding.name,
                    "ok": finding.help.is_none(),
                    "found": finding.found,
                    "gives": finding.gives,
                });
                if let Some(help) = &finding.help {
                    check["help"] = json!(help);
                }
                check
            })
            .collect();
        let available: Vec<_> = devices
            .iter()
            .filter(|(_, missing)| missing.is_none())
            .map(|(name, _)| name)
            .collect();
        terminal.json(&json!({
            "version": env!("CARGO_PKG_VERSION"),
            "checks": checks,
            "devices": available,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let style = terminal.style;
    terminal.line(format!("loopwright {}", env!("CARGO_PKG_VERSION")))?;
    let width = findings.iter().map(|finding| finding.name.len()).max();
    let width = width.unwrap_or(0);
    for finding in &findings {
        let mark = match finding.help {
            None => style.good("ok     "),
            Some(_) => style.warning("missing"),
        };
        let name = style.strong(&format!("{:width$}", finding.name));
        terminal.line(format!("{mark}  {name}  {}", finding.found))?;
        let gives = match &finding.help {
            None => finding.gives.to_owned(),
            Some(help) => format!(
                "it would give: {}\n{:w$}to get it: {help}",
                finding.gives,
                "",
                w = width + 11
            ),
        };
        terminal.line(format!("{:w$}{}", "", style.faint(&gives), w = width + 11))?;
    }
    let usable: Vec<&str> = devices
        .iter()
        .filter(|(_, missing)| missing.is_none())
        .map(|(name, _)| name.as_str())
        .collect();
    terminal.line(format!("programs can run on: {}", usable.join(", ")))?;
    Ok(ExitCode::SUCCESS)
}

fn compiler() -> Finding {
    let backend = CcBackend::from_env();
    let (found, help) = match backend.compiler() {
        Ok(compiler) => (
            format!("{}, {}", compiler.path.shown(), compiler.version),
            None,
        ),
        Err(why) => (why.reason, Some(why.help)),
    };
    Finding {
        name: "C compiler",
        gives: "the device `cc`: programs compiled for this processor",
        found,
        help,
    }
}

fn libgccjit() -> Finding {
    let (found, help) = match GccJit::from_env().availability() {
        Ok(()) => ("it is there and works".to_owned(), None),
        Err(why) => (why.reason, Some(why.help)),
    };
    Finding {
        name: "libgccjit",
        gives: "the device `gccjit`: programs compiled for this processor, without C text",
        found,
        help,
    }
}

fn cache(directory: Option<&Path>) -> Finding {
    let (found, help) = match directory {
        None => (
            "neither XDG_CACHE_HOME nor HOME is set".to_owned(),
            Some("set LOOPWRIGHT_CACHE_DIR to a directory".to_owned()),
        ),
        Some(directory) => cache_state(directory),
    };
    Finding {
        name: "cache",
        gives: "compiled kernels are kept between runs",
        found,
        help,
    }
}

fn cache_state(directory: &Path) -> (String, Option<String>) {
    let shown = directory.shown();
    let elsewhere = || Some("set LOOPWRIGHT_CACHE_DIR to a directory of your own".to_owned());
    if !directory.exists() {
        // It is made at the first need, in the nearest directory above that there is.
        let above = directory.ancestors().skip(1).find(|above| above.exists());
        let writable = above.is_none_or(is_writable);
        return if writable {
            (
                format!("{shown}, not there yet; made at the first need"),
                None,
            )
        } else {
            (format!("{shown} cannot be made"), elsewhere())
        };
    }
    if !directory.is_dir() {
        return (format!("{shown} is not a directory"), elsewhere());
    }
    if !is_writable(directory) {
        return (format!("{shown} cannot be written to"), elsewhere());
    }
    if let Some(mode) = shared_mode(directory) {
        return (
            format!("{shown} is open to others (mode {mode:o}), so it is not used"),
            Some(format!("chmod go-w {shown}")),
        );
    }
    match loopwright_files::cache::entries(directory) {
        Ok(entries) => {
            let bytes: u128 = entries.iter().map(|entry| u128::from(entry.bytes)).sum();
            let count = units::count(entries.len(), "compiled kernel");
            (format!("{shown}, {count}, {}", units::bytes(bytes)), None)
        }
        Err(error) => (error.to_string(), elsewhere()),
    }
}

fn is_writable(directory: &Path) -> bool {
    tempfile::Builder::new()
        .prefix(".loopwright-")
        .tempfile_in(directory)
        .is_ok()
}

/// The mode of a directory that others may write to.
#[cfg(unix)]
fn shared_mode(directory: &Path) -> Option<u32> {
    use std::os::unix::fs::PermissionsExt;
    let mode = directory.metadata().ok()?.permissions().mode() & 0o777;
    (mode & 0o022 != 0).then_some(mode)
}

#[cfg(not(unix))]
fn shared_mode(_: &Path) -> Option<u32> {
    None
}

fn python() -> Finding {
    let asked = Command::new("python3")
        .args([
            "-c",
            "import sys, numpy; print(sys.version.split()[0], numpy.__version__)",
        ])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    let (found, help) = match asked {
        Ok(answer) if answer.status.success() => {
            let text = String::from_utf8_lossy(&answer.stdout);
            let mut versions = text.split_whitespace();
            let python = versions.next().unwrap_or("?").to_owned();
            let numpy = versions.next().unwrap_or("?");
            (format!("python {python} with numpy {numpy}"), None)
        }
        Ok(_) => (
            "python3 has no numpy".to_owned(),
            Some("python3 -m pip install numpy".to_owned()),
        ),
        Err(_) => (
            "python3 was not found".to_owned(),
            Some("install Python 3 and numpy".to_owned()),
        ),
    };
    Finding {
        name: "python",
        gives: "regenerating reference values, for people who work on Loopwright itself",
        found,
        help,
    }
}

fn memory() -> Finding {
    let found = match available() {
        Some(bytes) => format!("{} available", units::bytes(bytes)),
        None => "the system does not say how much is available".to_owned(),
    };
    Finding {
        name: "memory",
        gives: "the limit for all arrays of a program together",
        found,
        help: None,
    }
}
