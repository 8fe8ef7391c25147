//! A failing program as files that run it again.

use super::difference::Replay;
use crate::error::ConformanceError;
use crate::files::{create_private, write_whole};
use crate::shrink::{Shrunk, schedule_text};
use loopwright_graph::Array;
use loopwright_kernel::passes::expand_math::Precision;
use std::fmt::Write as _;
use std::path::Path;

/// Writes `verify-HASH.lw`, its schedule and its inputs into a directory. The same program gets the same
/// name, so that a loop that fails a thousand times leaves one program.
pub(super) fn write_difference(
    directory: &Path,
    device: &str,
    reproduced: bool,
    shrunk: &Shrunk,
) -> Result<Replay, ConformanceError> {
    let case = &shrunk.case;
    let schedule = case.schedule.as_ref();
    let schedule = schedule.map(|schedule| schedule_text(&case.graph, schedule));
    let strict = case.arithmetic.is_strict();
    let fast = !strict && case.arithmetic.math() == Precision::Fast;
    let sizes: Vec<String> = case
        .sizes
        .iter()
        .map(|(name, value)| format!("--set {name}={value}"))
        .collect();
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(text, "# wrong on device `{device}`");
    for line in shrunk.mismatch.to_string().lines() {
        let _ = writeln!(text, "# {line}");
    }
    if !reproduced {
        let _ = writeln!(text, "# not seen again when it ran a second time");
    }
    if strict {
        let _ = writeln!(text, "# compiled in strict mode");
    }
    if fast {
        let _ = writeln!(text, "# compiled with fast functions");
    }
    if !sizes.is_empty() {
        let _ = writeln!(text, "# sizes: {}", sizes.join(" "));
    }
    let _ = write!(text, "{}", case.graph);
    let name = name_of(&text, schedule.as_deref());

    create_private(directory)?;
    let mut command = vec!["LOOPWRIGHT_VERIFY=1 loopwright run".to_owned()];
    let mut inputs = Vec::new();
    for (at, (node, array)) in case.inputs.iter().enumerate() {
        let input = case.graph.node_name(*node);
        let file = format!("{name}.{at}.{}.npy", plain(&input));
        let path = write_whole(directory, &file, &npy(directory, array)?)?;
        inputs.push((input, path));
    }
    let schedule = match schedule {
        Some(text) => Some(write_whole(
            directory,
            &format!("{name}.schedule"),
            text.as_bytes(),
        )?),
        None => None,
    };
    // Last, so that who sees it sees the rest.
    let program = write_whole(directory, &format!("{name}.lw"), text.as_bytes())?;
    command.push(quoted(&program.display().to_string()));
    if let Some(schedule) = &schedule {
        let path = quoted(&schedule.display().to_string());
        command.push(format!("--schedule {path}"));
    }
    command.push(format!("--device {device}"));
    command.extend(strict.then(|| "--strict".to_owned()));
    command.extend(fast.then(|| "-o math=fast".to_owned()));
    command.extend(sizes);
    for (input, path) in &inputs {
        let setting = quoted(&format!("{input}={}", path.display()));
        command.push(format!("--in {setting}"));
    }
    Ok(Replay {
        program,
        schedule,
        inputs,
        command: command.join(" "),
    })
}

/// A name of the program's own.
fn name_of(program: &str, schedule: Option<&str>) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(program.as_bytes());
    hasher.update(b"\0");
    hasher.update(schedule.unwrap_or_default().as_bytes());
    format!("verify-{}", &hasher.finalize().to_hex()[..16])
}

fn npy(directory: &Path, array: &Array) -> Result<Vec<u8>, ConformanceError> {
    let mut file = Vec::new();
    loopwright_formats::npy::write(&mut file, array.dtype(), array.shape(), array.bytes())
        .map_err(|error| ConformanceError::File {
            path: directory.display().to_string(),
            reason: error.to_string(),
        })?;
    Ok(file)
}

/// An array's name as part of a file's.
fn plain(name: &str) -> String {
    let safe = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut plain: String = name
        .chars()
        .map(|c| if safe(c) { c } else { '_' })
        .collect();
    plain.truncate(40);
    plain
}

/// A word of a command line as a shell takes it.
fn quoted(word: &str) -> String {
    let safe = |c: char| c.is_ascii_alphanumeric() || "_-./=".contains(c);
    if !word.is_empty() && word.chars().all(safe) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
