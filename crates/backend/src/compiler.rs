//! Compiling programs, alone or several at once, each only once.

use crate::kernel_backend::{CompileOptions, KernelBackend};
use crate::program::{Program, ProgramError};
use crate::stages::{KERNEL, Scheduled, Stages, validate};
use loopwright_graph::Graph;
use loopwright_kernel::Module;
use loopwright_kernel::passes::Pipeline;
use loopwright_looptree::{Schedule, print_schedule};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Compiles programs for one backend, each only once.
pub struct Compiler {
    backend: Arc<dyn KernelBackend>,
    options: CompileOptions,
    pipeline: Pipeline,
    logging: bool,
    programs: Mutex<FxHashMap<blake3::Hash, Arc<Program>>>,
    compiled: AtomicU64,
}

/// One program of a batch; see [`Compiler::compile_batch`].
#[derive(Clone, Copy, Debug)]
pub struct BatchEntry<'a> {
    /// The name of its kernel, another for each program of the batch.
    pub name: &'a str,
    /// The program.
    pub graph: &'a Graph,
    /// How it runs; without one, the default for the backend is taken.
    pub schedule: Option<&'a Schedule>,
}

impl Compiler {
    /// A compiler for a backend.
    pub fn new(backend: Arc<dyn KernelBackend>, options: CompileOptions) -> Compiler {
        Compiler {
            backend,
            options,
            pipeline: Pipeline::standard(),
            logging: false,
            programs: Mutex::default(),
            compiled: AtomicU64::new(0),
        }
    }

    /// The same with other passes.
    pub fn with_pipeline(mut self, pipeline: Pipeline) -> Compiler {
        self.pipeline = pipeline;
        self
    }

    /// The same for programs that log what they store; see [`Stages::logging`].
    pub fn logging(mut self) -> Compiler {
        self.logging = true;
        self
    }

    /// The backend.
    pub fn backend(&self) -> &Arc<dyn KernelBackend> {
        &self.backend
    }

    /// How often the backend compiled: once for each program that had not been compiled before, and
    /// once for all such programs of a batch.
    pub fn compile_count(&self) -> u64 {
        self.compiled.load(Ordering::Relaxed)
    }

    /// Everything that decides what code comes out: the program with its layouts and dtypes, its
    /// schedule, the name of its kernel, the passes, whether it logs, the backend and what it compiles for, the
    /// options, and our own version.
    fn key(&self, kernel: &str, scheduled: &Scheduled) -> blake3::Hash {
        let Scheduled {
            graph, schedule, ..
        } = scheduled;
        let text = format!(
            "{}\n{kernel}\n{graph}\n{}\n{:?}\n{}\n{}\n{:?}\n{}",
            env!("CARGO_PKG_VERSION"),
            print_schedule(graph, schedule),
            self.pipeline.names(),
            self.logging,
            self.backend.name(),
            self.backend.target(),
            self.options.strict,
        );
        blake3::hash(text.as_bytes())
    }

    /// The compiled program; compiled only if the same one has not been before.
    pub fn compile(
        &self,
        graph: &Graph,
        schedule: Option<&Schedule>,
    ) -> Result<Arc<Program>, ProgramError> {
        let entry = BatchEntry {
            name: KERNEL,
            graph,
            schedule,
        };
        let programs = self.compile_batch(&[entry])?;
        Ok(programs
            .into_iter()
            .next()
            .expect("a batch gives one program for each entry"))
    }

    /// The compiled programs, in order. Those that have not been compiled before under the same name
    /// are compiled together, in one run of the backend: cheaper than one by one wherever a
    /// compiler takes time to start.
    pub fn compile_batch(
        &self,
        entries: &[BatchEntry<'_>],
    ) -> Result<Vec<Arc<Program>>, ProgramError> {
        let mut names = FxHashSet::default();
        if let Some(entry) = entries.iter().find(|entry| !names.insert(entry.name)) {
            return Err(ProgramError::SameName {
                name: entry.name.to_owned(),
            });
        }
        let target = self.backend.target();
        let mut keys = Vec::with_capacity(entries.len());
        let mut programs: FxHashMap<blake3::Hash, Arc<Program>> = FxHashMap::default();
        let mut fresh: Vec<(blake3::Hash, Stages)> = Vec::new();
        for entry in entries {
            let scheduled = Scheduled::new(entry.graph, entry.schedule, &target)?;
            let key = self.key(entry.name, &scheduled);
            match self.lock().get(&key) {
                Some(program) => {
                    programs.insert(key, program.clone());
                }
                None => {
                    let stages = scheduled.lower(entry.name, &self.pipeline)?;
                    let stages = match self.logging {
                        true => stages.logging()?,
                        false => stages,
                    };
                    fresh.push((key, stages));
                }
            }
            keys.push(key);
        }
        if !fresh.is_empty() {
            let executable = match &fresh[..] {
                [(_, only)] => self.backend.compile(&only.module, &self.options)?,
                _ => {
                    let mut all = Module::default();
                    for (_, stages) in &fresh {
                        all.append(stages.module.clone());
                    }
                    validate(&all, "batching")?;
                    self.backend.compile(&all, &self.options)?
                }
            };
            self.compiled.fetch_add(1, Ordering::Relaxed);
            let mut known = self.lock();
            for (key, stages) in fresh {
                let program = Arc::new(Program::new(stages, executable.clone()));
                // Whoever compiled the same at the same time and was faster is right too.
                let program = known.entry(key).or_insert(program);
                programs.insert(key, program.clone());
            }
        }
        let found = |key| {
            programs
                .get(key)
                .cloned()
                .expect("every program was found or compiled")
        };
        Ok(keys.iter().map(found).collect())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, FxHashMap<blake3::Hash, Arc<Program>>> {
        self.programs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
