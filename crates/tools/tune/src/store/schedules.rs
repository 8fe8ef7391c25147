//! Schedules in the cache, found by what they are for.

use crate::error::TuneError;
use crate::measure::Work;
use loopwright_backend::Backend;
use loopwright_files::cache::{Cache, Key};
use loopwright_graph::{Binding, Graph};
use std::path::Path;

/// The part of the cache that schedules are in.
const PART: &str = "schedules";

/// The extension of their files.
const EXTENSION: &str = "sched";

/// What a schedule is for: a program at its sizes, a backend and the machine it compiles for, and our own
/// version, since another may make other code of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScheduleKey(Key);

impl ScheduleKey {
    /// The key of a program at some sizes on a backend. `graph` is the program with stores
    /// ([`Graph::with_stores`]).
    pub fn new(graph: &Graph, binding: &Binding, backend: &Backend, strict: bool) -> ScheduleKey {
        let sizes = graph.integers();
        let sizes = sizes.map(|(symbol, name, _)| format!("{name}={}", binding.value(symbol)));
        let sizes: Vec<String> = sizes.collect();
        ScheduleKey(Key::of([
            env!("CARGO_PKG_VERSION"),
            &loopwright_graph::print(graph),
            &sizes.join(" "),
            backend.name(),
            &format!("{:?}", backend.target()),
            &strict.to_string(),
        ]))
    }

    /// The key of some work.
    ///
    /// # Errors
    /// Work that cannot be done here.
    pub fn of(work: &Work) -> Result<ScheduleKey, TuneError> {
        let graph = work.graph()?;
        let binding = work.binding(&graph)?;
        Ok(ScheduleKey::new(
            &graph,
            &binding,
            &work.backend()?,
            work.strict,
        ))
    }

    /// Its hexadecimal digits.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

/// Schedules in the cache, in a directory that nobody else can write to.
///
/// ```
/// use loopwright_backend::Backend;
/// use loopwright_graph::parse;
/// use loopwright_interp::Interp;
/// use loopwright_text::Source;
/// use loopwright_tune::{ScheduleKey, ScheduleStore};
///
/// let text = "loopwright program 1\ninput x: f32[i=4]\noutput y = x + 1\n";
/// let graph = parse(&Source::new("p.lw", text)).unwrap().with_stores();
/// let backend = Backend::kernel_backend(Interp);
/// let key = ScheduleKey::new(&graph, &graph.bind(&[])?, &backend, false);
///
/// let directory = tempfile::tempdir()?;
/// let store = ScheduleStore::open(&directory.path().join("cache"))?;
/// assert_eq!(store.get(&key)?, None);
/// store.put(&key, "p.lw on interp", "loopwright schedule 1\ny: i\n")?;
/// assert_eq!(store.get(&key)?.as_deref(), Some("loopwright schedule 1\ny: i\n"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ScheduleStore {
    cache: Cache,
}

impl ScheduleStore {
    /// Opens the schedules of the cache at `root`.
    ///
    /// # Errors
    /// A directory that cannot be made, or that others can write to.
    pub fn open(root: &Path) -> Result<ScheduleStore, TuneError> {
        Ok(ScheduleStore {
            cache: Cache::open(root, PART)?,
        })
    }

    /// The schedule that is kept under a key, if there is one and it is whole.
    ///
    /// # Errors
    /// Files that cannot be read.
    pub fn get(&self, key: &ScheduleKey) -> Result<Option<String>, TuneError> {
        let entry = self.cache.lookup(&key.0)?;
        let text = entry.and_then(|entry| entry.bytes(EXTENSION).map(<[u8]>::to_vec));
        Ok(text.and_then(|text| String::from_utf8(text).ok()))
    }

    /// Keeps a schedule, in place of one that is there. `about` is for people who list the cache.
    ///
    /// # Errors
    /// Files that cannot be written.
    pub fn put(&self, key: &ScheduleKey, about: &str, schedule: &str) -> Result<(), TuneError> {
        let files = [(EXTENSION, schedule.as_bytes())];
        Ok(self.cache.insert(&key.0, &[about], "", &files)?)
    }
}
