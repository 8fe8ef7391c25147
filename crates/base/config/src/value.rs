//! What options take, and values.

use std::ffi::OsStr;
use std::fmt;
use std::num::NonZero;
use std::path::PathBuf;

/// How a device without a queue of its own runs its work.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Scheduler {
    /// Inside the call that schedules it.
    Sync,
    /// On worker threads.
    Threads,
}

impl Scheduler {
    /// All schedulers.
    pub const ALL: [Scheduler; 2] = [Scheduler::Sync, Scheduler::Threads];

    pub(crate) const NAMES: &[&str] = &[Scheduler::Sync.name(), Scheduler::Threads.name()];

    /// Its name in a configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Scheduler::Sync => "sync",
            Scheduler::Threads => "threads",
        }
    }
}

/// How near results of functions like `exp` are to the exact ones.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Math {
    /// Right to the last digits.
    Accurate,
    /// In fewer instructions, within 2^-20.
    Fast,
}

impl Math {
    /// All of them.
    pub const ALL: [Math; 2] = [Math::Accurate, Math::Fast];

    pub(crate) const NAMES: &[&str] = &[Math::Accurate.name(), Math::Fast.name()];

    /// Its name in a configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Math::Accurate => "accurate",
            Math::Fast => "fast",
        }
    }
}

/// What an option takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A text that is not empty.
    Text {
        /// What it is, in words.
        what: &'static str,
    },
    /// One of these.
    Choice(&'static [&'static str]),
    /// An integer from 1.
    Count {
        /// The largest.
        most: usize,
    },
    /// A number of bytes from 1.
    Bytes {
        /// The largest.
        most: u64,
    },
    /// A path that is not empty. One in the file is relative to the file.
    Path,
    /// Paths as `PATH` has them, with `:` between them, none of them empty. Those in the file are relative
    /// to the file.
    Paths,
    /// Yes or no.
    Switch,
}

/// A value. As text it is what the command line would say.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Value {
    /// A text or one of several words.
    Text(String),
    /// An integer.
    Count(NonZero<usize>),
    /// A number of bytes.
    Bytes(u64),
    /// A path; of an option that takes several, all of them as `PATH` has them.
    Path(PathBuf),
    /// Yes or no.
    Switch(bool),
}

/// Units of bytes, the largest first.
const UNITS: [(&str, u64); 5] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("B", 1),
];

impl Kind {
    /// What it takes, in words.
    pub fn describe(self) -> String {
        match self {
            Kind::Text { what } => what.to_owned(),
            Kind::Choice(words) => {
                let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
                words.join(" or ")
            }
            Kind::Count { most } => format!("an integer from 1 to {most}"),
            Kind::Bytes { most } => format!(
                "bytes from 1 to {}, with or without a unit: B, KiB, MiB, GiB, TiB",
                Value::Bytes(most)
            ),
            Kind::Path => "a path".to_owned(),
            Kind::Paths => "paths with `:` between them".to_owned(),
            Kind::Switch => "`true` or `false`".to_owned(),
        }
    }

    /// What it takes in a file of TOML, in words.
    pub(crate) fn describe_in_file(self) -> String {
        let described = self.describe();
        match self {
            Kind::Text { .. } | Kind::Choice(_) | Kind::Path | Kind::Paths => {
                format!("{described}, in quotes")
            }
            Kind::Count { .. } | Kind::Switch => format!("{described}, without quotes"),
            Kind::Bytes { .. } => format!("{described}; in quotes if it has a unit"),
        }
    }

    /// The value that a text of the command line or the environment stands for.
    pub(crate) fn parse(self, text: &OsStr) -> Option<Value> {
        // Paths need not be UTF-8.
        if self == Kind::Path {
            return (!text.is_empty()).then(|| Value::Path(text.into()));
        }
        if self == Kind::Paths {
            let whole = std::env::split_paths(text).all(|path| !path.as_os_str().is_empty());
            return (whole && !text.is_empty()).then(|| Value::Path(text.into()));
        }
        let text = text.to_str()?.trim();
        match self {
            Kind::Text { .. } => (!text.is_empty()).then(|| Value::Text(text.to_owned())),
            Kind::Choice(words) => words.contains(&text).then(|| Value::Text(text.to_owned())),
            Kind::Count { most } => {
                let count: NonZero<usize> = digits(text)?.parse().ok()?;
                (count.get() <= most).then_some(Value::Count(count))
            }
            Kind::Bytes { most } => {
                let bytes = parse_bytes(text)?;
                (1..=most).contains(&bytes).then_some(Value::Bytes(bytes))
            }
            Kind::Path | Kind::Paths => None,
            Kind::Switch => match text {
                "true" | "1" => Some(Value::Switch(true)),
                "false" | "0" => Some(Value::Switch(false)),
                _ => None,
            },
        }
    }
}

/// The text if it is a number without sign.
fn digits(text: &str) -> Option<&str> {
    let all = text.bytes().all(|byte| byte.is_ascii_digit());
    (all && !text.is_empty()).then_some(text)
}

fn parse_bytes(text: &str) -> Option<u64> {
    let unit = UNITS.iter().find(|(unit, _)| text.ends_with(unit));
    let (number, factor) = match unit {
        Some((unit, factor)) => (text[..text.len() - unit.len()].trim_end(), *factor),
        None => (text, 1),
    };
    let number: u64 = digits(number)?.parse().ok()?;
    number.checked_mul(factor)
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Text(text) => f.write_str(text),
            Value::Count(count) => write!(f, "{count}"),
            Value::Bytes(bytes) => {
                // The largest unit that loses nothing.
                let exact = UNITS
                    .iter()
                    .find(|(_, factor)| *bytes != 0 && bytes.is_multiple_of(*factor));
                let (unit, factor) = exact.unwrap_or(&("B", 1));
                write!(f, "{}{unit}", bytes / factor)
            }
            Value::Path(path) => write!(f, "{}", path.display()),
            Value::Switch(on) => write!(f, "{on}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_units() {
        let read = |text: &str| parse_bytes(text);
        assert_eq!(read("512"), Some(512));
        assert_eq!(read("512B"), Some(512));
        assert_eq!(read("64MiB"), Some(64 << 20));
        assert_eq!(read("64 MiB"), Some(64 << 20));
        assert_eq!(read("3TiB"), Some(3 << 40));
        for wrong in [
            "",
            "MiB",
            "64MB",
            "64mib",
            "-1",
            "+1",
            "1.5GiB",
            "99999999TiB",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn bytes_read_back_as_they_are_shown() {
        for bytes in [
            0,
            1,
            1000,
            1024,
            1536,
            64 << 20,
            1 << 30,
            (1 << 50) - 1,
            1 << 50,
        ] {
            let shown = Value::Bytes(bytes).to_string();
            assert_eq!(parse_bytes(&shown), Some(bytes), "{shown}");
        }
        assert_eq!(Value::Bytes(1 << 30).to_string(), "1GiB");
        assert_eq!(Value::Bytes(1000).to_string(), "1000B");
    }
}
