//! `devices`: every device, available or why not, with its limits.

use crate::arguments::JsonOnly;
use crate::failure::Failure;
use crate::terminal::Terminal;
use crate::units;
use loopwright::backend::backends;
use serde_json::json;
use std::process::ExitCode;

/// All backends so far run on host memory, and so have one device each, under their own name.
const KIND: &str = "cpu";

pub(crate) fn devices(options: &JsonOnly, terminal: &mut Terminal) -> Result<ExitCode, Failure> {
    let mut auto = None;
    let mut found = Vec::new();
    for backend in backends() {
        let availability = backend.availability();
        if auto.is_none() && availability.is_ok() {
            auto = Some(backend.name());
        }
        found.push((backend.name(), availability, backend.target()));
    }
    if options.json {
        let devices: Vec<serde_json::Value> = found
            .iter()
            .map(|(name, availability, target)| {
                let mut device = json!({
                    "name": name,
                    "backend": name,
                    "kind": KIND,
                    "available": availability.is_ok(),
                    "auto": auto == Some(*name),
                    "threads": target.threads,
                    "vector_bytes": target.vector_bytes,
                    "vector_registers": target.vector_registers,
                    "l1_bytes": target.l1_bytes,
                    "l2_bytes": target.l2_bytes,
                });
                if let Err(why) = availability {
                    device["reason"] = json!(why.reason);
                    device["help"] = json!(why.help);
                }
                device
            })
            .collect();
        terminal.json(&json!({ "devices": devices }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let style = terminal.style;
    let width = found.iter().map(|(name, ..)| name.len()).max().unwrap_or(0);
    for (name, availability, target) in &found {
        let shown = style.strong(&format!("{name:width$}"));
        match availability {
            Ok(()) => {
                let vectors = match target.vector_bytes {
                    0 => "no vectors".to_owned(),
                    bytes => format!("{bytes}-byte vectors"),
                };
                let chosen = match auto == Some(*name) {
                    true => style.faint("  (what `auto` takes)"),
                    false => String::new(),
                };
                terminal.line(format!(
                    "{shown}  {KIND}  {}  {}, {vectors}, caches {} and {}{chosen}",
                    style.good("available"),
                    units::count(target.threads as usize, "thread"),
                    units::bytes(target.l1_bytes.into()),
                    units::bytes(target.l2_bytes.into()),
                ))?;
            }
            Err(why) => {
                let missing = style.warning("not available");
                terminal.line(format!("{shown}  {KIND}  {missing}: {}", why.reason))?;
                terminal.line(format!("{:width$}  {}", "", style.faint(&why.help)))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
