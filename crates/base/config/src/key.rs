//! The table of all options: names, variables, kinds, defaults. Variables that are no options are in `environment.rs`.

use crate::environment::Environment;
use crate::value::{Kind, Math, Scheduler, Value};
use std::num::NonZero;
use std::path::PathBuf;

/// More threads or streams than this are a mistyped number.
const MOST_THREADS: usize = 4096;

/// What there is to say about an option.
#[derive(Debug)]
pub struct KeyInfo {
    /// Its name on the command line and in the file.
    pub name: &'static str,
    /// What it takes.
    pub kind: Kind,
    pub(crate) default: DefaultValue,
    /// One line about it.
    pub about: &'static str,
}

impl KeyInfo {
    /// What it is where nothing is said, in words.
    pub fn default_in_words(&self) -> String {
        match &self.default {
            DefaultValue::Text(text) => format!("`{text}`"),
            DefaultValue::Found { about, .. } => (*about).to_owned(),
            DefaultValue::Unset(meaning) => (*meaning).to_owned(),
        }
    }
}

/// What an option is where nothing is said.
#[derive(Debug)]
pub(crate) enum DefaultValue {
    /// A value, in the words of the command line.
    Text(&'static str),
    /// Found on the machine.
    Found {
        /// Where it is looked for, in words.
        about: &'static str,
        /// What is found, if anything is.
        find: fn(&Environment) -> Option<Value>,
    },
    /// No value. What that means, in words.
    Unset(&'static str),
}

macro_rules! keys {
    ($($key:ident $name:literal: $kind:expr, $default:expr, $about:literal;)*) => {
        /// An option.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum Key {
            $(#[doc = $about] $key,)*
        }

        impl Key {
            /// All options, in the order of the docs.
            pub const ALL: &'static [Key] = &[$(Key::$key),*];

            /// What there is to say about it.
            pub const fn info(self) -> &'static KeyInfo {
                match self {
                    $(Key::$key => const {
                        &KeyInfo { name: $name, kind: $kind, default: $default, about: $about }
                    },)*
                }
            }
        }
    };
}

keys! {
    Device "device": Kind::Text { what: "a device's name" }, DefaultValue::Text("auto"),
        "Where programs run: a device's name, or `auto` for the best there is.";
    Scheduler "scheduler": Kind::Choice(Scheduler::NAMES),
        DefaultValue::Unset("the backend decides: `threads` unless it says otherwise"),
        "How a device without a queue of its own runs its work: `sync` inside the call, \
         `threads` on workers.";
    Threads "threads": Kind::Count { most: MOST_THREADS },
        DefaultValue::Found { about: "the number of cores", find: cores },
        "How many threads share a parallel loop.";
    Devices "devices": Kind::Count { most: 64 }, DefaultValue::Text("1"),
        "How many devices a backend shows that runs on the host.";
    Streams "streams": Kind::Count { most: MOST_THREADS },
        DefaultValue::Unset("the device decides"),
        "How many streams of a device are suggested.";
    PoolCap "pool_cap": Kind::Bytes { most: 1 << 50 }, DefaultValue::Text("1TiB"),
        "The largest pool of device memory; one array has to fit.";
    Queue "queue": Kind::Count { most: 1 << 20 }, DefaultValue::Text("1024"),
        "How much work a stream's queue holds before scheduling waits.";
    CacheDir "cache_dir": Kind::Path,
        DefaultValue::Found {
            about: "`$XDG_CACHE_HOME/loopwright`, else `~/.cache/loopwright`",
            find: cache_directory,
        },
        "Where compiled code is kept between runs; made at the first need, for its owner alone.";
    Plugins "plugins": Kind::Paths,
        DefaultValue::Found {
            about: "`$XDG_DATA_HOME/loopwright/plugins`, else \
                    `~/.local/share/loopwright/plugins`, if it is there",
            find: plugin_directory,
        },
        "Directories that all plug-ins are loaded from; what is wrong with one is told as a warning.";
    Plugin "plugin": Kind::Paths, DefaultValue::Unset("no plug-in"),
        "Plug-ins that are loaded; one that cannot be is an error.";
    Fallback "fallback": Kind::Text { what: "a backend's name" },
        DefaultValue::Unset("such programs are refused"),
        "The backend that is given those parts of a program which the chosen one cannot do.";
    Strict "strict": Kind::Switch, DefaultValue::Text("false"),
        "Keeps every rounding where the program has it, also inside of functions and in the sums of products.";
    Math "math": Kind::Choice(Math::NAMES), DefaultValue::Text("accurate"),
        "How near results of functions like `exp` are to the exact ones where a device computes them itself: \
         `accurate` to the last digits, `fast` within 2^-20 and in fewer instructions.";
    Verify "verify": Kind::Switch, DefaultValue::Text("false"),
        "Compares what a run computes with the reference.";
    Trace "trace": Kind::Path, DefaultValue::Unset("no trace"),
        "A file that a trace of the run is written to.";
    LogStores "log_stores": Kind::Switch, DefaultValue::Text("false"),
        "Has kernels log every store: where, the old value and the new.";
}

impl Key {
    /// The option of that name.
    pub fn by_name(name: &str) -> Option<Key> {
        Key::ALL.iter().copied().find(|key| key.name() == name)
    }

    /// Its name on the command line and in the file.
    pub const fn name(self) -> &'static str {
        self.info().name
    }

    /// Whether it names files or folders: code that is loaded, caches, what is written. A project's file may do that only
    /// where the user has allowed it.
    pub const fn names_paths(self) -> bool {
        matches!(self.info().kind, Kind::Path | Kind::Paths)
    }

    /// Its variable of the environment: `LOOPWRIGHT_THREADS` for `threads`.
    pub fn variable(self) -> String {
        let name = self.name().to_ascii_uppercase();
        format!("{}{name}", crate::environment::PREFIX)
    }
}

fn cores(_: &Environment) -> Option<Value> {
    // Where the system does not say, one is right everywhere.
    let cores = std::thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN);
    let most = NonZero::new(MOST_THREADS)?;
    Some(Value::Count(cores.min(most)))
}

/// Only if it is there: nobody has asked for it, so nobody is to be told that it is not.
fn plugin_directory(environment: &Environment) -> Option<Value> {
    let shared = environment.shared_directory("XDG_DATA_HOME", ".local/share")?;
    let own: PathBuf = shared.join("loopwright").join("plugins");
    own.is_dir().then_some(Value::Path(own))
}

fn cache_directory(environment: &Environment) -> Option<Value> {
    let shared = environment.shared_directory("XDG_CACHE_HOME", ".cache")?;
    let own: PathBuf = shared.join("loopwright");
    Some(Value::Path(own))
}
