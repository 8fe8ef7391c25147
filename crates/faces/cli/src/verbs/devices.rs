//! `devices`: every device, available or why not, with its limits.

use crate::arguments::JsonOnly;
use crate::failure::Failure;
use crate::runtime::runtime;
use crate::table::padded;
use crate::terminal::Terminal;
use crate::units;
use loopwright::backend::{Capabilities, Hardware, Level, Scheduler, Target, Unavailable};
use loopwright::ops::DType;
use loopwright::runtime::{AUTO, Limits};
use loopwright_config::Settings;
use serde_json::{Value, json};
use std::process::ExitCode;

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
    hardware: Hardware,
    level: Level,
    capabilities: Capabilities,
    scheduler: Scheduler,
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
        let devices: Vec<Value> = found.iter().map(document).collect();
        terminal.json(&json!({ "devices": devices }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let names = found.iter().map(|device| device.name.len());
    let kinds = found.iter().map(|device| device.hardware.name().len());
    let widths = (names.max().unwrap_or(0), kinds.max().unwrap_or(0));
    for device in &found {
        print(device, widths, terminal)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn found(settings: &Settings) -> Vec<Found> {
    let runtime = runtime(settings);
    let auto = runtime.device(AUTO).ok();
    let mut found = Vec::new();
    for platform in runtime.platforms() {
        let backend = &platform.backend;
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
                target: backend.target(),
                hardware: backend.hardware(),
                level: backend.level(),
                capabilities: backend.capabilities(),
                scheduler: platform.scheduler,
            });
        }
    }
    found
}

fn document(device: &Found) -> Value {
    let Found {
        limits,
        target,
        capabilities,
        ..
    } = device;
    // No limit is no number.
    let limit = |most: u64| (most != u64::MAX).then_some(most);
    let (math_ulps, op_ulps) = capabilities.math.stated();
    let op_ulps = op_ulps
        .iter()
        .map(|(op, ulps)| (op.name().to_owned(), json!(ulps)));
    let op_ulps: serde_json::Map<String, Value> = op_ulps.collect();
    let mut document = json!({
        "name": device.name,
        "backend": device.backend,
        "ordinal": device.ordinal,
        "kind": device.hardware.name(),
        "level": device.level.name(),
        "description": limits.description,
        "available": device.unavailable.is_none(),
        "auto": device.auto,
        "memory_bytes": limits.memory,
        "host_memory": limits.host_memory,
        "threads": limits.threads,
        "streams": device.streams,
        "scheduler": device.scheduler.name(),
        "vector_bytes": target.vector_bytes,
        "vector_registers": target.vector_registers,
        "l1_bytes": target.l1_bytes,
        "l2_bytes": target.l2_bytes,
        "capabilities": {
            "computes": capabilities.computes,
            "dtypes": names(&capabilities.dtypes),
            "missing_ops": names(&capabilities.missing_ops),
            "vector_lanes": limit(u64::from(capabilities.vector_lanes))
                .filter(|lanes| *lanes != u64::from(u32::MAX)),
            "local_memory_bytes": limit(capabilities.local_memory),
            "private_memory_bytes": capabilities.private_memory,
            "atomics": capabilities.atomics,
            "barriers": capabilities.barriers,
            "matrix_tiles": capabilities.matrix_tiles,
            "structs": capabilities.structs,
            "math_ulps": math_ulps,
            "op_ulps": op_ulps,
            "max_buffer_bytes": capabilities.max_buffer,
            "max_params": capabilities.max_params,
        },
    });
    if let Some(why) = &device.unavailable {
        document["reason"] = json!(why.reason);
        document["help"] = json!(why.help);
        document["broken"] = json!(why.broken);
    }
    document
}

/// Names of ops or dtypes.
fn names(all: &[impl ToString]) -> Vec<String> {
    all.iter().map(ToString::to_string).collect()
}

fn print(
    device: &Found,
    (width, kinds): (usize, usize),
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let style = terminal.style;
    let Found { limits, target, .. } = device;
    let kind = format!("{:kinds$}", device.hardware.name());
    let name = style.strong(&padded(&device.name, width));
    if let Some(why) = &device.unavailable {
        let state = match why.broken {
            true => style.error("broken"),
            false => style.warning("not available"),
        };
        terminal.line(format!("{name}  {kind}  {state}: {}", why.reason))?;
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
        "{name}  {kind}  {}  {}, {vectors}, caches {} and {}{chosen}",
        style.good("available"),
        units::count(limits.threads, "thread"),
        units::bytes(target.l1_bytes.into()),
        units::bytes(target.l2_bytes.into()),
    ))?;
    let memory = match limits.memory {
        Some(bytes) => format!("{} of memory", units::bytes(bytes.into())),
        None => "memory not known".to_owned(),
    };
    let lacks = lacks(&device.capabilities);
    let more = format!(
        "{}; {} backend, {memory}, {} suggested, scheduler `{}`{lacks}",
        limits.description,
        device.level,
        units::count(device.streams, "stream"),
        device.scheduler.name()
    );
    terminal.line(format!("{:width$}  {}", "", style.faint(&more)))
}

/// What a backend cannot do, in words; nothing where it can do what programs ask for.
fn lacks(capabilities: &Capabilities) -> String {
    if !capabilities.computes {
        return "; computes nothing".to_owned();
    }
    let dtypes = DType::ALL.into_iter();
    let missing = dtypes.filter(|dtype| !capabilities.dtypes.contains(dtype));
    let dtypes: Vec<String> = missing.map(|dtype| dtype.to_string()).collect();
    let ops = capabilities.missing_ops.iter().map(ToString::to_string);
    let lacks: Vec<String> = dtypes.into_iter().chain(ops).collect();
    match lacks.is_empty() {
        true => String::new(),
        false => format!("; without {}", lacks.join(", ")),
    }
}
