//! The variables of the environment.

use crate::error::ConfigError;
use crate::key::Key;
use crate::origin::Place;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// What the names of all our variables begin with.
pub(crate) const PREFIX: &str = "LOOPWRIGHT_";

/// The variable that names the configuration's file.
pub(crate) const FILE_VARIABLE: &str = "LOOPWRIGHT_CONFIG";

/// Variables with our prefix that are no options, with what they are for. Other parts read them.
pub const OTHER_VARIABLES: &[(&str, &str)] = &[
    (FILE_VARIABLE, "The configuration's file."),
    (
        "LOOPWRIGHT_CC",
        "The C compiler of the device `cc`, with arguments; else `CC`, else `cc`, `gcc` or `clang`.",
    ),
    (
        "LOOPWRIGHT_CFLAGS",
        "More flags for the C compiler, after all others.",
    ),
    (
        "LOOPWRIGHT_CC_OPT",
        "The C compiler's optimisation level, 3 if not set.",
    ),
    (
        "LOOPWRIGHT_CC_TIMEOUT",
        "Seconds after which a C compiler is killed, 120 if not set.",
    ),
    (
        "LOOPWRIGHT_GCCJIT",
        "The library of the device `gccjit`, by its path or name; else `libgccjit.so.0` where the system finds it.",
    ),
    (
        "LOOPWRIGHT_X86_LEVEL",
        "The instructions that the device `x86` uses: `sse`, `avx2` or `avx512`, else the best that the machine has; `none`: there is no such device.",
    ),
    (
        "LOOPWRIGHT_PERF_MAP",
        "1: `x86` writes the names and places of its kernels for the profiler `perf`, to `/tmp/perf-PID.map`.",
    ),
    (
        "LOOPWRIGHT_GDB",
        "1: `x86` tells debuggers the names of its kernels, through GDB's interface for such code.",
    ),
    (
        "LOOPWRIGHT_GUARD_PAGES",
        "1: every array in the host's memory lies between protected pages, so that a kernel that leaves its array crashes there; for testing backends, slow.",
    ),
    (
        "LOOPWRIGHT_MANYCORE_CORES",
        "Cores of a simulated accelerator, 16 if not set.",
    ),
    (
        "LOOPWRIGHT_MANYCORE_DEVICES",
        "How many simulated accelerators there are, 1 if not set.",
    ),
    (
        "LOOPWRIGHT_MANYCORE_MEMORY",
        "Memory of a simulated accelerator in MiB, 512 if not set.",
    ),
    (
        "LOOPWRIGHT_MANYCORE_TIMEOUT",
        "Seconds after which a kernel on a simulated accelerator is given up, 60 if not set.",
    ),
    (
        "LOOPWRIGHT_KERNELS",
        "Tests: how many random kernels every pass is tried on.",
    ),
    (
        "LOOPWRIGHT_MUTATIONS",
        "Tests: how many damaged texts the parsers are tried on.",
    ),
    (
        "LOOPWRIGHT_CASES",
        "Tests: how many random cases are tried of files, configurations and command lines.",
    ),
    ("LOOPWRIGHT_SEED", "Tests: the seed of random cases."),
    (
        "LOOPWRIGHT_TARGETS_SEED",
        "Tests: the seed of the random machines of `crates/tools/targets`.",
    ),
    (
        "LOOPWRIGHT_FIRST_SEED",
        "Tests: the first seed of random recurrences.",
    ),
    (
        "LOOPWRIGHT_SEEDS",
        "Tests: how many seeds of random recurrences.",
    ),
];

/// Variables by name. An empty one counts as not set.
#[derive(Debug, Default)]
pub(crate) struct Environment {
    variables: BTreeMap<OsString, OsString>,
}

impl Environment {
    pub(crate) fn new(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Environment {
        let variables = variables.into_iter();
        Environment {
            variables: variables.filter(|(_, value)| !value.is_empty()).collect(),
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&OsStr> {
        self.variables
            .get(OsStr::new(name))
            .map(OsString::as_os_str)
    }

    /// A directory of the XDG specification: that of the variable, else this one below the home; absolute, or none.
    pub(crate) fn shared_directory(&self, variable: &str, below_home: &str) -> Option<PathBuf> {
        // The specification asks to pass over relative paths.
        let named = self.get(variable).map(PathBuf::from);
        let named = named.filter(|path| path.is_absolute());
        // A relative home would be another one in every directory.
        let home = || {
            let home = PathBuf::from(self.get("HOME")?);
            home.is_absolute().then(|| home.join(below_home))
        };
        named.or_else(home)
    }

    /// The options that are set here, with their variables.
    ///
    /// # Errors
    /// A variable with our prefix that nobody reads.
    pub(crate) fn options(&self) -> Result<Vec<(Key, String, &OsStr)>, ConfigError> {
        let mut found = Vec::new();
        for (name, value) in &self.variables {
            let name = name.to_string_lossy();
            if !name.starts_with(PREFIX) {
                continue;
            }
            let key = Key::ALL.iter().find(|key| key.variable() == name);
            match key {
                Some(key) => found.push((*key, name.into_owned(), value.as_os_str())),
                None if OTHER_VARIABLES.iter().any(|(other, _)| *other == name) => {}
                None => {
                    return Err(ConfigError::unknown(Place::Environment(name.into_owned())));
                }
            }
        }
        Ok(found)
    }
}
