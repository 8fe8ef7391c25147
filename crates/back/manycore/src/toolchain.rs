//! The accelerator's compiler: C text in, an image that its loader takes out.

use crate::NAME;
use loopwright_backend::BackendError;
use loopwright_cc::{Compiler, RunFailure, Settings, compile_source_command, run_limited};
use loopwright_emit::{ABI_VERSION, Emitted};
use loopwright_files::ScratchFolder;
use loopwright_files::cache::{Cache, Entry, Key, usable};
use loopwright_threads::PerProcess;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};

/// The accelerator's program, as one text; each part uses those before it.
const FIRMWARE: &str = concat!(
    "#line 1 \"protocol.h\"\n",
    include_str!("../firmware/protocol.h"),
    "#line 1 \"memory.c\"\n",
    include_str!("../firmware/memory.c"),
    "#line 1 \"cores.c\"\n",
    include_str!("../firmware/cores.c"),
    "#line 1 \"programs.c\"\n",
    include_str!("../firmware/programs.c"),
    "#line 1 \"main.c\"\n",
    include_str!("../firmware/main.c"),
);

/// The extensions of what is kept in the cache.
const IMAGE: &str = "image";
const FRAMES: &str = "frames";

/// What a compiler made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Built {
    pub(crate) image: Vec<u8>,
    /// The command, and what it said.
    pub(crate) log: String,
    /// What the compiler says of the frames of functions; empty where it says nothing.
    pub(crate) frames: String,
    /// Whether it was made before, and kept on disk.
    pub(crate) cached: bool,
}

impl Built {
    /// What was kept, if it is all there.
    fn from_cache(entry: &Entry) -> Option<Built> {
        let frames = std::str::from_utf8(entry.bytes(FRAMES)?).ok()?;
        Some(Built {
            image: entry.bytes(IMAGE)?.to_vec(),
            log: entry.log().to_owned(),
            frames: frames.to_owned(),
            cached: true,
        })
    }

    fn keep(&self, cache: &Cache, key: &Key, kernels: &[&str]) {
        let files = [(IMAGE, &*self.image), (FRAMES, self.frames.as_bytes())];
        // What cannot be kept is made again next time.
        let _: Option<()> = usable(cache.insert(key, kernels, &self.log, &files));
    }
}

/// Images of the firmware, by what they were made of.
type Firmware = Vec<(Key, Arc<[u8]>)>;

/// A compiler with settings.
pub(crate) struct Toolchain {
    compiler: Compiler,
    settings: Settings,
}

impl Toolchain {
    pub(crate) fn new(mut compiler: Compiler, settings: Settings) -> Toolchain {
        // The cores are plain ones, whatever the host has: without wide vectors also frames are small.
        compiler.native.clear();
        Toolchain { compiler, settings }
    }

    /// Compiles kernels to an image.
    pub(crate) fn kernels(
        &self,
        emitted: &Emitted,
        cache: Option<&Path>,
    ) -> Result<Built, BackendError> {
        let mut settings = self.settings.clone();
        // No start-up code, which nobody would call; and a list of how large the frames are.
        settings.flags.push("-nostartfiles".to_owned());
        settings.flags.push("-fstack-usage".to_owned());
        let (source, image) = (Path::new("module.c"), Path::new("module.image"));
        let math = &emitted.math;
        let command = compile_source_command(&self.compiler, &settings, math, source, image);
        let kernels: Vec<&str> = emitted.kernels.iter().map(|k| k.name.as_str()).collect();
        self.build(command, &emitted.source, &kernels, cache)
    }

    /// The firmware, made once in a process for each compiler.
    pub(crate) fn firmware(&self, cache: Option<&Path>) -> Result<Arc<[u8]>, BackendError> {
        static MADE: PerProcess<Mutex<Firmware>> = PerProcess::new();
        let mut command = Command::new(&self.compiler.path);
        command.args(&self.compiler.arguments);
        command.args(["-std=gnu11", "-O2", "-w", "-pthread"]);
        command.args(["-o", "module.image", "module.c", "-ldl"]);
        let key = self.key(&command, FIRMWARE);
        // Held while it is made: those who come meanwhile want the same.
        let made = MADE.get_or_init(Mutex::default);
        let mut made = made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, image)) = made.iter().find(|(known, _)| *known == key) {
            return Ok(Arc::clone(image));
        }
        let image: Arc<[u8]> = self.build(command, FIRMWARE, &[], cache)?.image.into();
        made.push((key, Arc::clone(&image)));
        Ok(image)
    }

    /// What an image depends on, as a hash: the source, the compiler with its flags, the calling convention.
    fn key(&self, command: &Command, source: &str) -> Key {
        let abi = ABI_VERSION.to_le_bytes();
        let mut parts: Vec<&[u8]> = vec![&abi, self.compiler.identity.as_bytes()];
        parts.extend(command.get_args().map(OsStr::as_encoded_bytes));
        parts.push(source.as_bytes());
        Key::of(parts)
    }

    /// Runs the compiler in a private directory, or takes what it made before.
    fn build(
        &self,
        mut command: Command,
        source: &str,
        kernels: &[&str],
        cache: Option<&Path>,
    ) -> Result<Built, BackendError> {
        let place = match cache {
            Some(root) => {
                usable(Cache::open(root, NAME)).map(|cache| (cache, self.key(&command, source)))
            }
            None => None,
        };
        if let Some((cache, key)) = &place
            && let Some(entry) = usable(cache.lookup(key)).flatten()
            && let Some(built) = Built::from_cache(&entry)
        {
            return Ok(built);
        }
        let directory = ScratchFolder::new("manycore")
            .map_err(|error| file_error("create a folder in", &std::env::temp_dir(), &error))?;
        let source_path = directory.path().join("module.c");
        loopwright_files::write(&source_path, source.as_bytes())
            .map_err(|error| file_error("write", &source_path, &error))?;
        command.env("LC_ALL", "C").current_dir(directory.path());
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
        let mut log = format!("{}\n", words.join(" "));
        let image_path = directory.path().join("module.image");
        let failure = match run_limited(command, self.settings.timeout, || Ok(())) {
            Ok(finished) if finished.success => {
                log.push_str(&finished.log);
                match std::fs::read(&image_path) {
                    Ok(image) => {
                        let built = Built {
                            image,
                            log,
                            frames: frames(directory.path()),
                            cached: false,
                        };
                        if let Some((cache, key)) = &place {
                            built.keep(cache, key, kernels);
                        }
                        return Ok(built);
                    }
                    Err(error) => format!("it made no image: {error}"),
                }
            }
            Ok(finished) => finished.log,
            Err(RunFailure::Failed(reason)) => reason,
            Err(RunFailure::Interrupted) => unreachable!("nobody asks it to end"),
        };
        // The source stays for whoever looks into this.
        let kept = directory.keep().join("module.c");
        Err(BackendError::Compiler {
            compiler: self.compiler.path.display().to_string(),
            source_path: kept.display().to_string(),
            log: failure,
        })
    }
}

/// What the compiler wrote of frames. Compilers differ in how they call the file.
fn frames(directory: &Path) -> String {
    let mut text = String::new();
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let is_list = |path: &Path| path.extension().is_some_and(|extension| extension == "su");
    for path in entries
        .map(|entry| entry.path())
        .filter(|path| is_list(path))
    {
        text.push_str(&std::fs::read_to_string(path).unwrap_or_default());
    }
    text
}

fn file_error(action: &'static str, path: &Path, error: &std::io::Error) -> BackendError {
    BackendError::File {
        action,
        path: path.display().to_string(),
        reason: error.to_string(),
    }
}
