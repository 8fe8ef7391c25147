//! The one file: which it is, and what stands in it.

use crate::environment::{Environment, FILE_VARIABLE};
use crate::error::ConfigError;
use crate::key::Key;
use crate::origin::Place;
use crate::value::{Kind, Value};
use std::ffi::OsStr;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use toml::de::{DeTable, DeValue};

/// The configuration of the folder that one works in.
pub(crate) const PROJECT_FILE: &str = "loopwright.toml";

/// No configuration is this long; what is, is some other file.
const LONGEST: u64 = 1 << 20;

/// The file that is read, and whose it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    /// It was found in the working directory: nobody has named it.
    pub(crate) project: bool,
}

/// The file that is read: the one asked for, else that of `LOOPWRIGHT_CONFIG`, else `loopwright.toml`
/// in the directory, else `loopwright/config.toml` below the person's configurations. The last two
/// only if they are there.
pub(crate) fn find(
    asked: Option<PathBuf>,
    environment: &Environment,
    directory: &Path,
) -> Option<Found> {
    let named = asked.or_else(|| environment.get(FILE_VARIABLE).map(PathBuf::from));
    if let Some(path) = named {
        let project = false;
        return Some(Found { path, project });
    }
    let personal = environment.shared_directory("XDG_CONFIG_HOME", ".config");
    let personal = personal.map(|shared| shared.join("loopwright").join("config.toml"));
    let project = Some((directory.join(PROJECT_FILE), true));
    [project, personal.map(|path| (path, false))]
        .into_iter()
        .flatten()
        // A link that leads nowhere is there, and reading it says what is wrong.
        .find(|(path, _)| path.symlink_metadata().is_ok())
        .map(|(path, project)| Found { path, project })
}

/// What stands in the text of a file, in its order.
pub(crate) fn parse(path: &Path, text: &Text) -> Result<Vec<(Key, Place, Value)>, ConfigError> {
    let text = &text.text;
    let line_of = |at: usize| 1 + text[..at.min(text.len())].matches('\n').count();
    let table = DeTable::parse(text).map_err(|error| ConfigError::Syntax {
        path: path.to_owned(),
        line: line_of(error.span().map_or(0, |span| span.start)),
        reason: error.message().to_owned(),
    })?;
    let mut entries: Vec<_> = table.get_ref().iter().collect();
    // The first mistake is told first.
    entries.sort_by_key(|(name, _)| name.span().start);
    let mut found = Vec::new();
    for (name, value) in entries {
        let line = line_of(name.span().start);
        let place = Place::File {
            path: path.to_owned(),
            line,
            key: name.get_ref().to_string(),
        };
        let Some(key) = Key::by_name(name.get_ref()) else {
            return Err(match value.get_ref() {
                DeValue::Table(_) => ConfigError::Table {
                    path: path.to_owned(),
                    line,
                    table: name.get_ref().to_string(),
                },
                _ => ConfigError::unknown(place),
            });
        };
        match entry(key.info().kind, value.get_ref(), path) {
            Some(value) => found.push((key, place, value)),
            None => {
                return Err(ConfigError::Value {
                    place,
                    found: shown(value.get_ref()),
                    allowed: key.info().kind.describe_in_file(),
                });
            }
        }
    }
    Ok(found)
}

/// The value that stands in the file, if it is of the option's kind.
fn entry(kind: Kind, value: &DeValue<'_>, file: &Path) -> Option<Value> {
    match (kind, value) {
        (Kind::Switch, DeValue::Boolean(on)) => Some(Value::Switch(*on)),
        (Kind::Count { .. } | Kind::Bytes { .. }, DeValue::Integer(number)) => {
            let number = u64::from_str_radix(number.as_str(), number.radix()).ok()?;
            kind.parse(OsStr::new(&number.to_string()))
        }
        (Kind::Text { .. } | Kind::Choice(_) | Kind::Bytes { .. }, DeValue::String(text)) => {
            kind.parse(OsStr::new(text.as_ref()))
        }
        (Kind::Path, DeValue::String(text)) => match kind.parse(OsStr::new(text.as_ref()))? {
            // The file means the same wherever it is used from.
            Value::Path(path) => Some(Value::Path(match file.parent() {
                Some(directory) => directory.join(path),
                None => path,
            })),
            other => Some(other),
        },
        (Kind::Paths, DeValue::String(text)) => {
            kind.parse(OsStr::new(text.as_ref()))?;
            let paths = std::env::split_paths(text.as_ref());
            let directory = file.parent().unwrap_or(Path::new(""));
            // The file's own directory may have a name that cannot stand in a list.
            let paths = std::env::join_paths(paths.map(|path| directory.join(path)));
            Some(Value::Path(PathBuf::from(paths.ok()?)))
        }
        _ => None,
    }
}

/// A value as a message shows it.
fn shown(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("`\"{text}\"`"),
        DeValue::Integer(number) => format!("`{}`", number.as_str()),
        DeValue::Float(number) => format!("`{}`", number.as_str()),
        DeValue::Boolean(on) => format!("`{on}`"),
        DeValue::Datetime(time) => format!("`{time}`"),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

/// A file that was read once: what is decided about it and what is taken from it is the same text.
pub(crate) struct Text {
    pub(crate) text: String,
    /// Of the open file.
    #[cfg_attr(not(unix), allow(dead_code))]
    pub(crate) data: std::fs::Metadata,
}

impl Text {
    pub(crate) fn read(path: &Path) -> Result<Text, ConfigError> {
        read_text(path)
    }
}

fn read_text(path: &Path) -> Result<Text, ConfigError> {
    let failed = |reason: String| ConfigError::Read {
        path: path.to_owned(),
        reason,
    };
    let told = |error: io::Error| {
        failed(match error.kind() {
            io::ErrorKind::NotFound => "there is no such file".to_owned(),
            io::ErrorKind::IsADirectory => "it is a directory".to_owned(),
            io::ErrorKind::PermissionDenied => "permission is denied".to_owned(),
            io::ErrorKind::WouldBlock => "nothing has been typed there yet".to_owned(),
            _ => error.to_string(),
        })
    };
    // A FIFO that nobody writes to would hold up every command.
    let file = loopwright_files::open_without_waiting(path).map_err(told)?;
    // The open file is asked, not its name, which may mean another file by now.
    let data = file.metadata().map_err(told)?;
    check_closed(path, &data)?;
    let mut bytes = Vec::new();
    file.take(LONGEST + 1)
        .read_to_end(&mut bytes)
        .map_err(told)?;
    if bytes.len() as u64 > LONGEST {
        return Err(failed("it is too long for a configuration".to_owned()));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        failed(format!("it is not a text file: byte {at} is not UTF-8"))
    })?;
    Ok(Text { text, data })
}

/// Refuses a file that everybody may write to: it may name a directory that code is loaded from.
#[cfg(unix)]
fn check_closed(path: &Path, data: &std::fs::Metadata) -> Result<(), ConfigError> {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt};
    let mode = data.permissions().mode() & 0o777;
    // What is written to `/dev/null` never comes back: it stands for no file at all.
    if mode & 0o002 != 0 && !data.file_type().is_char_device() {
        return Err(ConfigError::OpenToAll {
            path: path.to_owned(),
            mode,
        });
    }
    Ok(())
}

#[cfg(not(unix))]
fn check_closed(_: &Path, _: &std::fs::Metadata) -> Result<(), ConfigError> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_file_that_is_found_is_taken() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let here = directory.path().join("here");
        let home = directory.path().join("home");
        let personal = home.join(".config/loopwright");
        std::fs::create_dir_all(&here).expect("the directory is ours");
        std::fs::create_dir_all(&personal).expect("the directory is ours");
        let found = |asked: Option<&str>, variables: &[(&str, &str)]| {
            let mut all = vec![("HOME".into(), home.clone().into_os_string())];
            all.extend(
                variables
                    .iter()
                    .map(|(name, value)| (name.into(), value.into())),
            );
            let found = find(asked.map(PathBuf::from), &Environment::new(all), &here);
            // Only what nobody named is the project's.
            if let Some(found) = &found {
                assert_eq!(found.project, found.path == here.join("loopwright.toml"));
            }
            found.map(|found| found.path)
        };
        let write = |path: &Path| std::fs::write(path, "").expect("the directory is ours");
        assert_eq!(found(None, &[]), None);
        write(&personal.join("config.toml"));
        assert_eq!(found(None, &[]), Some(personal.join("config.toml")));
        // Another directory for configurations, without ours.
        let elsewhere = [("XDG_CONFIG_HOME", "/nonexistent")];
        assert_eq!(found(None, &elsewhere), None);
        write(&here.join("loopwright.toml"));
        assert_eq!(found(None, &[]), Some(here.join("loopwright.toml")));
        // What is named is taken whether it is there or not, so that reading it can fail.
        let named = [("LOOPWRIGHT_CONFIG", "named.toml")];
        assert_eq!(found(None, &named), Some("named.toml".into()));
        assert_eq!(found(Some("asked.toml"), &named), Some("asked.toml".into()));
        let empty = [("LOOPWRIGHT_CONFIG", "")];
        assert_eq!(found(None, &empty), Some(here.join("loopwright.toml")));
    }
}
