//! The settings, from all sources together. Which options there are, with variables and defaults, is in `key.rs`.

use crate::environment::Environment;
use crate::error::ConfigError;
use crate::file::{self, Found, Text};
use crate::key::{DefaultValue, Key};
use crate::origin::{Origin, Place};
use crate::trust::{self, Trust};
use crate::value::{Math, Scheduler, Value};
use std::ffi::{OsStr, OsString};
use std::num::NonZero;
use std::path::{Path, PathBuf};

/// Where settings are looked for.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// Names and values from the command line.
    pub command_line: Vec<(String, String)>,
    /// All variables of the environment. An empty one counts as not set.
    pub environment: Vec<(OsString, OsString)>,
    /// The configuration's file.
    pub file: Option<PathBuf>,
}

/// A value for each option, and where it comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// In the order of [`Key::ALL`].
    entries: Vec<(Option<Value>, Origin)>,
    file: Option<PathBuf>,
    /// Whether somebody named the file.
    named: bool,
    ignored: Vec<(Key, Origin)>,
    warnings: Vec<String>,
}

impl Settings {
    /// The settings of these sources: the command line over the environment over the file over the
    /// defaults.
    ///
    /// # Errors
    /// Anything that is wrong in any source, overridden or not.
    pub fn load(sources: &Sources) -> Result<Settings, ConfigError> {
        let environment = Environment::new(sources.environment.iter().cloned());
        let found = sources.file.clone().map(|path| Found {
            path,
            project: false,
        });
        Settings::combined(&sources.command_line, &environment, found)
    }

    /// The settings of this process: its environment, and the file that `--config` asked for or that
    /// is found. One file is read, the first of: the one asked for, that of `LOOPWRIGHT_CONFIG`,
    /// `loopwright.toml` in the working directory, `loopwright/config.toml` in `$XDG_CONFIG_HOME` or
    /// `~/.config`.
    ///
    /// # Errors
    /// As [`Settings::load`].
    pub fn from_process(
        command_line: &[(String, String)],
        asked: Option<PathBuf>,
    ) -> Result<Settings, ConfigError> {
        let environment = Environment::new(std::env::vars_os());
        let file = file::find(asked, &environment, Path::new(""));
        Settings::combined(command_line, &environment, file)
    }

    fn combined(
        command_line: &[(String, String)],
        environment: &Environment,
        found: Option<Found>,
    ) -> Result<Settings, ConfigError> {
        let mut said: Vec<Option<(Value, Origin)>> = vec![None; Key::ALL.len()];
        // The strongest source first: what is said already stays.
        for (name, text) in command_line {
            let place = Place::CommandLine(name.clone());
            let Some(key) = Key::by_name(name) else {
                return Err(ConfigError::unknown(place));
            };
            let value = parsed(key, OsStr::new(text), &place)?;
            if said[key as usize].is_some() {
                return Err(ConfigError::Twice { key: key.name() });
            }
            said[key as usize] = Some((value, place.origin()));
        }
        for (key, variable, text) in environment.options()? {
            let place = Place::Environment(variable);
            let value = parsed(key, text, &place)?;
            said[key as usize].get_or_insert((value, place.origin()));
        }
        let (mut ignored, mut warnings) = (Vec::new(), Vec::new());
        if let Some(found) = &found {
            let text = Text::read(&found.path)?;
            let trust = match found.project {
                true => trust::of_project(&found.path, &text, environment),
                false => Trust::Full,
            };
            for (key, place, value) in file::parse(&found.path, &text)? {
                let trusted = match &trust {
                    Trust::Full => true,
                    Trust::Values => !key.names_paths(),
                    Trust::Nothing(_) => false,
                };
                let entry = &mut said[key as usize];
                match (trusted, &entry) {
                    (true, _) => {
                        entry.get_or_insert((value, place.origin()));
                    }
                    // Something stronger is said, so nothing is lost.
                    (false, Some(_)) => {}
                    (false, None) => ignored.push((key, place.origin())),
                }
            }
            warnings.extend(warning(&found.path, &trust, &ignored));
        }
        let entries = Key::ALL.iter().zip(said).map(|(key, said)| match said {
            Some((value, origin)) => (Some(value), origin),
            None => (default_value(*key, environment), Origin::Default),
        });
        Ok(Settings {
            entries: entries.collect(),
            named: found.as_ref().is_some_and(|found| !found.project),
            file: found.map(|found| found.path),
            ignored,
            warnings,
        })
    }

    /// An option's value; `None` where it has none.
    pub fn value(&self, key: Key) -> Option<&Value> {
        self.entries[key as usize].0.as_ref()
    }

    /// Where an option's value comes from.
    pub fn origin(&self, key: Key) -> &Origin {
        &self.entries[key as usize].1
    }

    /// The file that was read, if one was.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// The file that was read, where it was named and not found in the working directory.
    pub fn named_file(&self) -> Option<&Path> {
        self.file().filter(|_| self.named)
    }

    /// Options of the project's file that do not count, because the user has not allowed it, and where they stand.
    pub fn ignored(&self) -> &[(Key, Origin)] {
        &self.ignored
    }

    /// What the user should be told before anything is done.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Where programs run: a device's name, or `auto`.
    pub fn device(&self) -> &str {
        self.text(Key::Device)
    }

    /// How a device without a queue of its own runs its work; `None`: as its backend likes it best.
    pub fn scheduler(&self) -> Option<Scheduler> {
        let Some(Value::Text(name)) = self.value(Key::Scheduler) else {
            return None;
        };
        let found = Scheduler::ALL.into_iter().find(|one| one.name() == name);
        Some(found.expect("the table lets only schedulers' names through"))
    }

    /// The backend that is given what the chosen one cannot do.
    pub fn fallback(&self) -> Option<&str> {
        match self.value(Key::Fallback) {
            Some(Value::Text(name)) => Some(name),
            _ => None,
        }
    }

    /// How many threads share a parallel loop.
    pub fn threads(&self) -> NonZero<usize> {
        self.required_count(Key::Threads)
    }

    /// How many devices a backend shows that runs on the host.
    pub fn devices(&self) -> NonZero<usize> {
        self.required_count(Key::Devices)
    }

    /// How many streams of a device are suggested; `None` leaves it to the device.
    pub fn streams(&self) -> Option<NonZero<usize>> {
        self.count(Key::Streams)
    }

    /// The largest pool of device memory, in bytes.
    pub fn pool_cap(&self) -> u64 {
        match self.value(Key::PoolCap) {
            Some(Value::Bytes(bytes)) => *bytes,
            other => panic!("the table gives `pool_cap` bytes, and here is {other:?}"),
        }
    }

    /// How much work a stream's queue holds.
    pub fn queue(&self) -> NonZero<usize> {
        self.required_count(Key::Queue)
    }

    /// Where compiled code is kept between runs; `None` where there is no place for it.
    pub fn cache_dir(&self) -> Option<&Path> {
        self.path(Key::CacheDir)
    }

    /// The directories that all plug-ins are loaded from.
    pub fn plugins(&self) -> Vec<PathBuf> {
        self.paths(Key::Plugins)
    }

    /// The plug-ins that were asked for one by one.
    pub fn plugin(&self) -> Vec<PathBuf> {
        self.paths(Key::Plugin)
    }

    /// Whether every rounding is kept where the program has it.
    pub fn strict(&self) -> bool {
        self.switch(Key::Strict)
    }

    /// How near results of functions are to the exact ones.
    pub fn math(&self) -> Math {
        let name = self.text(Key::Math);
        let found = Math::ALL.into_iter().find(|one| one.name() == name);
        found.expect("the table lets only these names through")
    }

    /// Whether what a run computes is compared with the reference.
    pub fn verify(&self) -> bool {
        self.switch(Key::Verify)
    }

    /// A file that a trace of the run is written to.
    pub fn trace(&self) -> Option<&Path> {
        self.path(Key::Trace)
    }

    /// Whether kernels log every store.
    pub fn log_stores(&self) -> bool {
        self.switch(Key::LogStores)
    }

    fn text(&self, key: Key) -> &str {
        match self.value(key) {
            Some(Value::Text(text)) => text,
            other => panic!("the table gives {key:?} a text, and here is {other:?}"),
        }
    }

    fn count(&self, key: Key) -> Option<NonZero<usize>> {
        match self.value(key) {
            Some(Value::Count(count)) => Some(*count),
            None => None,
            other => panic!("the table gives {key:?} a number, and here is {other:?}"),
        }
    }

    fn required_count(&self, key: Key) -> NonZero<usize> {
        let count = self.count(key);
        count.unwrap_or_else(|| panic!("the table gives {key:?} a default"))
    }

    fn path(&self, key: Key) -> Option<&Path> {
        match self.value(key) {
            Some(Value::Path(path)) => Some(path),
            None => None,
            other => panic!("the table gives {key:?} a path, and here is {other:?}"),
        }
    }

    fn paths(&self, key: Key) -> Vec<PathBuf> {
        let paths = self.path(key).map(std::env::split_paths);
        paths.into_iter().flatten().collect()
    }

    fn switch(&self, key: Key) -> bool {
        match self.value(key) {
            Some(Value::Switch(on)) => *on,
            other => panic!("the table gives {key:?} a switch, and here is {other:?}"),
        }
    }
}

/// What is said about options that do not count.
fn warning(path: &Path, trust: &Trust, ignored: &[(Key, Origin)]) -> Option<String> {
    if ignored.is_empty() {
        return None;
    }
    let names: Vec<String> = ignored
        .iter()
        .map(|(key, _)| format!("`{}`", key.name()))
        .collect();
    let why = match trust {
        Trust::Nothing(reason) => format!("{reason}, and it is not allowed yet"),
        Trust::Full | Trust::Values => {
            "a project may name code, caches and output files only where you allow it".to_owned()
        }
    };
    let are = match names.len() {
        1 => "is",
        _ => "are",
    };
    Some(format!(
        "{} of {} {are} ignored: {why}; read the file, then run `loopwright allow`",
        names.join(", "),
        path.display()
    ))
}

/// The value of a text of the command line or the environment.
fn parsed(key: Key, text: &OsStr, place: &Place) -> Result<Value, ConfigError> {
    let kind = key.info().kind;
    kind.parse(text).ok_or_else(|| ConfigError::Value {
        place: place.clone(),
        found: format!("`{}`", text.to_string_lossy()),
        allowed: kind.describe(),
    })
}

fn default_value(key: Key, environment: &Environment) -> Option<Value> {
    let info = key.info();
    match &info.default {
        DefaultValue::Text(text) => {
            let value = info.kind.parse(OsStr::new(text));
            assert!(value.is_some(), "the default of {key:?} is of its kind");
            value
        }
        DefaultValue::Found { find, .. } => find(environment),
        DefaultValue::Unset(_) => None,
    }
}
