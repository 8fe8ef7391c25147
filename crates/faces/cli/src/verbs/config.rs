//! `config`: every option, its value, and where the value comes from.

use crate::arguments::JsonOnly;
use crate::failure::Failure;
use crate::table::Table;
use crate::terminal::Terminal;
use loopwright_config::{Key, Origin, Settings, Value};
use serde_json::{Map, json};
use std::process::ExitCode;

pub(crate) fn config(
    options: &JsonOnly,
    settings: &Settings,
    terminal: &mut Terminal,
) -> Result<ExitCode, Failure> {
    let file = settings.file().map(|file| file.display().to_string());
    if options.json {
        let all: Map<String, serde_json::Value> = Key::ALL
            .iter()
            .map(|key| (key.name().to_owned(), entry_json(settings, *key)))
            .collect();
        let ignored = settings.ignored().iter().map(|(key, _)| key.name());
        let ignored: Vec<&str> = ignored.collect();
        terminal.json(&json!({ "file": file, "settings": all, "ignored": ignored }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::default();
    table.row(["option", "value", "from"]);
    for key in Key::ALL {
        let value = settings.value(*key).map(ToString::to_string);
        let value = value.unwrap_or_else(|| format!("({})", key.info().default_in_words()));
        let origin = settings.origin(*key).to_string();
        table.row([key.name(), &value, &origin]);
    }
    for line in table.lines(0) {
        terminal.line(line)?;
    }
    terminal.line(match file {
        Some(file) => format!("file: {file}"),
        None => "file: none".to_owned(),
    })?;
    Ok(ExitCode::SUCCESS)
}

fn entry_json(settings: &Settings, key: Key) -> serde_json::Value {
    let value = match settings.value(key) {
        None => serde_json::Value::Null,
        Some(Value::Text(text)) => json!(text),
        Some(Value::Count(count)) => json!(count),
        Some(Value::Bytes(bytes)) => json!(bytes),
        Some(Value::Path(path)) => json!(path.display().to_string()),
        Some(Value::Switch(on)) => json!(on),
    };
    let origin = match settings.origin(key) {
        Origin::CommandLine => json!({ "source": "command line" }),
        Origin::Environment(variable) => json!({ "source": "environment", "variable": variable }),
        Origin::File { path, line } => {
            json!({ "source": "file", "path": path.display().to_string(), "line": line })
        }
        Origin::Default => json!({ "source": "default" }),
    };
    json!({ "value": value, "from": origin })
}
