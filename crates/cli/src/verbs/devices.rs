//! `devices`: every device, available or why not, with its limits.

use crate::arguments::JsonOnly;
use crate::failure::Failure;
use crate::runtime::runtime;
use crate::terminal::Terminal;
use crate::units;
use loopwright::backend::{Target, Unavailable, backends};
use loopwright::runtime::{AUTO, Limits};
use loopwright_config::Settings;
use serde_json::{Value, json};
use std::process::ExitCode;

/// All backends so far run on host memory.
const KIND: &str = "cpu";

/// A device.
struct Found {
    /// Without a number where the backend has no other device.
    name: String,
    backend: String,
    ordinal: usize,
    unavailable: Option<Unavailable>,
    limits: Limits,
    /// How many streams make good use of it, or are wished for.
    streams: usize,
    target: Target,
    /// Whether `auto` takes it.
    auto: bool,
}

pub(crate) fn devices(
    options: &JsonOnly,
    settings: &Settings,
    terminal: &mut Terminal,
) -> Result<ExitCode, Failure> {
    let found = found(settings);
    if options.json {
        let devices: Vec<Value> = found
            .iter()
            .map(|device| document(device, settings))
            .collect();
        terminal.json(&json!({ "devices": devices }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let width = found.iter().map(|device| device.name.len()).max();
    for device in &found {
        print(device, width.unwrap_or(0), settings, terminal)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn found(settings: &Settings) -> Vec<Found> {
    let runtime = runtime(settings);
    let auto = runtime.device(AUTO).ok();
    let backends = backends();
    let mut found = Vec::new();
    for platform in runtime.platforms() {
        let backend = backends.iter().find(|known| known.name() == platform.name);
        let target = backend.map_or(Target::SCALAR, |backend| backend.target());
        for ordinal in 0..platform.devices {
            let own = format!("{}:{ordinal}", platform.name);
            let streams = settings.streams().map(std::num::NonZero::get);
            found.push(Found {
                auto: auto.as_ref().is_some_and(|auto| auto.name() == own),
                name: match platform.devices {
                    1 => platform.name.clone(),
                    _ => own,
                },
                backend: platform.name.clone(),
                ordinal,
                unavailable: platform.unavailable.clone(),
                streams: streams.unwrap_or(platform.limits.streams.max(1)),
                limits: platform.limits.clone(),
                target,
            });
        }
    }
    found
}

fn document(device: &Found, settings: &Settings) -> Value {
    let Found { limits, target, .. } = device;
    let mut document = json!({
        "name": device.name,
        "backend": device.backend,
        "ordinal": device.ordinal,
        "kind": KIND,
        "description": limits.description,
        "available": device.unavailable.is_none(),
        "auto": device.auto,
        "memory_bytes": limits.memory,
        "host_memory": limits.host_memory,
        "threads": limits.threads,
        "streams": device.streams,
        "scheduler": settings.scheduler().name(),
        "vector_bytes": target.vector_bytes,
        "vector_registers": target.vector_registers,
        "l1_bytes": target.l1_bytes,
        "l2_bytes": target.l2_bytes,
    });
    if let Some(why) = &device.unavailable {
        document["reason"] = json!(why.reason);
        document["help"] = json!(why.help);
        document["broken"] = json!(why.broken);
    }
    document
}

fn print(
    device: &Found,
    width: usize,
    settings: &Settings,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let style = terminal.style;
    let Found { limits, target, .. } = device;
    let name = style.strong(&format!("{:width$}", device.name));
    if let Some(why) = &device.unavailable {
        let state = match why.broken {
            true => style.error("broken"),
            false => style.warning("not available"),
        };
        terminal.line(format!("{name}  {KIND}  {state}: {}", why.reason))?;
        return terminal.line(format!("{:width$}  {}", "", style.faint(&why.help)));
    }
    let vectors = match target.vector_bytes {
        0 => "no vectors".to_owned(),
        bytes => format!("{bytes}-byte vectors"),
    };
    let chosen = match device.auto {
        true => style.faint("  (what `auto` takes)"),
        false => String::new(),
    };
    terminal.line(format!(
        "{name}  {KIND}  {}  {}, {vectors}, caches {} and {}{chosen}",
        style.good("available"),
        units::count(limits.threads, "thread"),
        units::bytes(target.l1_bytes.into()),
        units::bytes(target.l2_bytes.into()),
    ))?;
    let memory = match limits.memory {
        Some(bytes) => format!("{} of memory", units::bytes(bytes.into())),
        None => "memory not known".to_owned(),
    };
    let more = format!(
        "{}; {memory}, {} suggested, scheduler `{}`",
        limits.description,
        units::count(device.streams, "stream"),
        settings.scheduler().name()
    );
    terminal.line(format!("{:width$}  {}", "", style.faint(&more)))
}
