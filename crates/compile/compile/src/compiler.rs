//! Compiling programs, alone or several at once, each only once.

use crate::kernels::{KERNEL, Kernels, Passes, Plainer, Scheduled, first_that_fits};
use crate::launches::{compile_delegated, refused_roots};
use crate::program::{Program, ProgramError};
use crate::recent::{RECENT_PROGRAMS, Recent};
use crate::spill::FrameLimits;
use loopwright_backend::BackendError;
use loopwright_backend::{Backend, backends};
use loopwright_backend::{CompileOptions, Executable};
use loopwright_graph::Graph;
use loopwright_kernel::passes::Pipeline;
use loopwright_looptree::{Plan, Schedule};
use loopwright_scheduler::{Effort, Order};
use loopwright_threads::interrupt::{Interrupted, catching};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Compiles programs for one backend, each only once: the last [`RECENT_PROGRAMS`] are kept, and those that others hold.
pub struct Compiler {
    backend: Backend,
    options: CompileOptions,
    pipeline: Pipeline,
    logging: bool,
    /// The backend that is given what the own one refuses.
    fallback: Option<String>,
    /// Finds the backends that parts of programs are handed to.
    delegates: Arc<Delegates>,
    programs: Mutex<Recent<blake3::Hash, Arc<Program>>>,
    /// By program: the schedule that it gets where none is given.
    schedules: Mutex<FxHashMap<blake3::Hash, Arc<Schedule>>>,
    compiled: AtomicU64,
}

/// Finds a backend by its name.
type Delegates = dyn Fn(&str) -> Option<Backend> + Send + Sync;

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
    pub fn new(backend: Backend, options: CompileOptions) -> Compiler {
        Compiler {
            backend,
            options,
            pipeline: Pipeline::standard(),
            logging: false,
            fallback: None,
            delegates: Arc::new(|name| backends().into_iter().find(|known| known.name() == name)),
            programs: Mutex::new(Recent::new(RECENT_PROGRAMS)),
            schedules: Mutex::default(),
            compiled: AtomicU64::new(0),
        }
    }

    /// The same with other passes.
    pub fn with_pipeline(mut self, pipeline: Pipeline) -> Compiler {
        self.pipeline = pipeline;
        self
    }

    /// The same for programs that log what they store; see [`Kernels::logging`].
    pub fn logging(mut self) -> Compiler {
        self.logging = true;
        self
    }

    /// The same, leaving those parts of a program to the backend of this name that the own one refuses;
    /// [`Program::notes`] then says which, and why. Otherwise such a program is refused.
    pub fn with_fallback(mut self, name: impl Into<String>) -> Compiler {
        self.fallback = Some(name.into());
        self
    }

    /// The same, looking for the backends that parts of programs are handed to in another way than among
    /// [`backends`].
    pub fn with_delegates(
        mut self,
        find: impl Fn(&str) -> Option<Backend> + Send + Sync + 'static,
    ) -> Compiler {
        self.delegates = Arc::new(find);
        self
    }

    /// The backend.
    pub fn backend(&self) -> &Backend {
        &self.backend
    }

    /// Whether schedules that it makes may add floats in another order than programs say.
    pub fn order(&self) -> Order {
        match self.options.strict {
            true => Order::Kept,
            false => Order::Free,
        }
    }

    /// What is done to kernels before the backend compiles them.
    fn passes(&self) -> Passes<'_> {
        let private = self.backend.capabilities().private_memory;
        Passes {
            pipeline: &self.pipeline,
            limits: FrameLimits::new(self.backend.target().threads, private),
        }
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
        let Scheduled { plan, plainer, .. } = scheduled;
        let text = format!(
            "{}\n{kernel}\n{}\n{plan}\n{:?}\n{}\n{}\n{:?}\n{}\n{:?}\n{:?}\n{plainer:?}",
            env!("CARGO_PKG_VERSION"),
            plan.graph(),
            self.pipeline.names(),
            self.logging,
            self.backend.name(),
            self.backend.target(),
            self.options.strict,
            self.options.math,
            self.fallback,
        );
        blake3::hash(text.as_bytes())
    }

    /// Sets the schedule of a program: later compilations of the same program for which none is given take it. `None`
    /// leaves it to the scheduler again. What is compiled already stays as it is.
    ///
    /// # Errors
    /// A schedule that is not one of the program.
    pub fn set_schedule(
        &self,
        graph: &Graph,
        schedule: Option<Schedule>,
    ) -> Result<(), ProgramError> {
        let key = fingerprint(graph);
        let mut schedules = self
            .schedules
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match schedule {
            Some(schedule) => {
                Plan::new(graph.clone().with_stores(), schedule.clone())?;
                schedules.insert(key, Arc::new(schedule));
            }
            None => {
                schedules.remove(&key);
            }
        }
        Ok(())
    }

    /// The schedule that was set for a program.
    fn schedule_set(&self, graph: &Graph) -> Option<Arc<Schedule>> {
        let schedules = self
            .schedules
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // Nobody pays for the fingerprint who sets none.
        if schedules.is_empty() {
            return None;
        }
        schedules.get(&fingerprint(graph)).cloned()
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
    ///
    /// # Errors
    /// [`BackendError::Interrupted`] where it was told to end: passes unwind to here, and nothing is kept of what they made.
    pub fn compile_batch(
        &self,
        entries: &[BatchEntry<'_>],
    ) -> Result<Vec<Arc<Program>>, ProgramError> {
        catching(|| self.compile_entries(entries))
            .map_err(|Interrupted| BackendError::Interrupted)?
    }

    fn compile_entries(
        &self,
        entries: &[BatchEntry<'_>],
    ) -> Result<Vec<Arc<Program>>, ProgramError> {
        let mut names = FxHashSet::default();
        if let Some(entry) = entries.iter().find(|entry| !names.insert(entry.name)) {
            return Err(ProgramError::SameName {
                name: entry.name.to_owned(),
            });
        }
        let mut keys = Vec::with_capacity(entries.len());
        let mut programs: FxHashMap<blake3::Hash, Arc<Program>> = FxHashMap::default();
        let mut fresh: Vec<(blake3::Hash, Kernels)> = Vec::new();
        for entry in entries {
            let set = match entry.schedule {
                Some(_) => None,
                None => self.schedule_set(entry.graph),
            };
            let schedule = entry.schedule.or(set.as_deref());
            let attempt = |effort: Effort, plainer: Option<Plainer>| {
                self.known_or_lowered(entry.graph, schedule, entry.name, (effort, plainer))
            };
            let (key, found) = first_that_fits(schedule.is_some(), attempt)?;
            match found {
                Found::Known(program) => {
                    programs.insert(key, program);
                }
                Found::Fresh(kernels) => fresh.push((key, *kernels)),
            }
            keys.push(key);
        }
        if !fresh.is_empty() {
            let executables = self.compile_fresh(&mut fresh)?;
            self.compiled.fetch_add(1, Ordering::Relaxed);
            let mut known = self.lock();
            for ((key, kernels), executable) in fresh.into_iter().zip(executables) {
                let program = Arc::new(Program::new(kernels, executable));
                // Whoever compiled the same at the same time and was faster is right too.
                let program = match known.get(&key) {
                    Some(known) => known.clone(),
                    None => program,
                };
                known.insert(key, program.clone());
                programs.insert(key, program);
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

    /// A program scheduled, and lowered unless it has been compiled before.
    fn known_or_lowered(
        &self,
        graph: &Graph,
        schedule: Option<&Schedule>,
        name: &str,
        (effort, plainer): (Effort, Option<Plainer>),
    ) -> Result<(blake3::Hash, Found), ProgramError> {
        let target = self.backend.target();
        let mut scheduled = Scheduled::new(graph, schedule, &target, self.order(), effort)?;
        scheduled.plainer = plainer;
        let key = self.key(name, &scheduled);
        if let Some(program) = self.lock().get(&key) {
            return Ok((key, Found::Known(Arc::clone(program))));
        }
        let kernels = scheduled.lower(name, self.passes())?;
        let kernels = match self.logging {
            true => kernels.logging()?,
            false => kernels,
        };
        Ok((key, Found::Fresh(Box::new(kernels))))
    }

    /// Compiles programs: those that are one kernel together, those in parts one by one.
    fn compile_fresh(
        &self,
        fresh: &mut [(blake3::Hash, Kernels)],
    ) -> Result<Vec<Arc<dyn Executable>>, ProgramError> {
        let whole: Vec<_> = fresh
            .iter()
            .filter(|(_, kernels)| !kernels.is_delegated())
            .flat_map(|(_, kernels)| kernels.units())
            .collect();
        let compiled = match whole.is_empty() {
            true => Ok(Vec::new()),
            false => self.backend.compile(&whole, &self.options),
        };
        let mut compiled = match compiled {
            Ok(compiled) => compiled.into_iter(),
            Err(refusal @ BackendError::Unsupported { .. }) => {
                if let Some(executables) = self.compile_plainer(fresh) {
                    return Ok(executables);
                }
                return match self.fallback.is_some() {
                    true => self.compile_what_is_refused(fresh),
                    false => Err(refusal.into()),
                };
            }
            Err(error) => return Err(error.into()),
        };
        fresh
            .iter()
            .map(|(_, kernels)| match kernels.is_delegated() {
                true => self.compile_parts(kernels),
                false => Ok(compiled.next().expect("one for each unit")),
            })
            .collect()
    }

    fn compile_whole(&self, kernels: &Kernels) -> Result<Vec<Arc<dyn Executable>>, BackendError> {
        let units: Vec<_> = kernels.units().collect();
        self.backend.compile(&units, &self.options)
    }

    fn compile_parts(&self, kernels: &Kernels) -> Result<Arc<dyn Executable>, ProgramError> {
        compile_delegated(&self.backend, &*self.delegates, kernels, &self.options)
    }

    /// The same where the backend refuses a program: those whose schedule was made here get a plainer one where they
    /// are refused. `None` where that does not help all of them; then nothing is changed.
    fn compile_plainer(
        &self,
        fresh: &mut [(blake3::Hash, Kernels)],
    ) -> Option<Vec<Arc<dyn Executable>>> {
        let mut executables = Vec::with_capacity(fresh.len());
        let mut replaced = Vec::new();
        for (at, (_, kernels)) in fresh.iter().enumerate() {
            if kernels.is_delegated() {
                executables.push(self.compile_parts(kernels).ok()?);
                continue;
            }
            let refusal = match self.compile_whole(kernels) {
                Ok(compiled) => {
                    executables.extend(compiled);
                    continue;
                }
                Err(refusal) => refusal,
            };
            // Reasons are those of a schedule that was made here.
            if kernels.reasons.is_empty() {
                return None;
            }
            let (plainer, compiled) = self.plainer(kernels, &refusal)?;
            replaced.push((at, plainer));
            executables.extend(compiled);
        }
        for (at, kernels) in replaced {
            fresh[at].1 = kernels;
        }
        Some(executables)
    }

    /// A refused program with the first plainer schedule that the backend takes.
    fn plainer(
        &self,
        kernels: &Kernels,
        refusal: &BackendError,
    ) -> Option<(Kernels, Vec<Arc<dyn Executable>>)> {
        let written = kernels.plan.program();
        let before = kernels.plainer.as_ref();
        let effort = before.map_or(Effort::Full, |plainer| plainer.effort);
        let mut attempts = effort.plainer().filter_map(|effort| {
            let reason =
                before.map_or_else(|| refusal.to_string(), |plainer| plainer.reason.clone());
            let plainer = Some(Plainer { effort, reason });
            let found = self.known_or_lowered(written, None, &kernels.name, (effort, plainer));
            let Ok((_, Found::Fresh(kernels))) = found else {
                return None;
            };
            let compiled = self.compile_whole(&kernels).ok()?;
            Some((*kernels, compiled))
        });
        attempts.next()
    }

    /// The same where the backend refuses a program: what it refuses is left to another one.
    fn compile_what_is_refused(
        &self,
        fresh: &mut [(blake3::Hash, Kernels)],
    ) -> Result<Vec<Arc<dyn Executable>>, ProgramError> {
        let mut executables = Vec::with_capacity(fresh.len());
        for (_, kernels) in fresh {
            if !kernels.is_delegated() {
                let refusal = match self.compile_whole(kernels) {
                    Ok(compiled) => {
                        executables.extend(compiled);
                        continue;
                    }
                    Err(refusal @ BackendError::Unsupported { .. }) => refusal,
                    Err(error) => return Err(error.into()),
                };
                match self.split_off(kernels)? {
                    Some(split) => *kernels = split,
                    // No part alone is refused, but the whole is: there is nothing to split off.
                    None => return Err(refusal.into()),
                }
            }
            executables.push(self.compile_parts(kernels)?);
        }
        Ok(executables)
    }

    /// A program with the parts that the backend refuses handed to the fallback, each with a note that
    /// says so; `None` where it refuses none of them alone.
    fn split_off(&self, kernels: &Kernels) -> Result<Option<Kernels>, ProgramError> {
        let Some(fallback) = &self.fallback else {
            return Ok(None);
        };
        if self.logging {
            return Ok(None);
        }
        let plan = &kernels.plan;
        let (graph, tree) = (plan.graph(), plan.tree());
        let mut schedule = plan.schedule().clone();
        let refused = refused_roots(&self.backend, plan, self.passes(), &self.options)?;
        if refused.is_empty() {
            return Ok(None);
        }
        let mut notes = Vec::new();
        let name: Arc<str> = fallback.as_str().into();
        for (root, reason) in refused {
            let steps = tree.leaves(tree.roots()[root]);
            let named: Vec<String> = steps.iter().map(|step| graph.node_name(*step)).collect();
            notes.push(format!(
                "{} left to `{fallback}`: {reason}",
                named.join(", ")
            ));
            for step in &mut schedule.steps {
                if steps.contains(&step.node) {
                    step.delegate = Some(Arc::clone(&name));
                }
            }
        }
        let program = Arc::clone(plan.program());
        let scheduled = Scheduled {
            plan: Plan::of_edited(program, Arc::clone(graph), schedule)?,
            reasons: kernels.reasons.clone(),
            notes,
            plainer: kernels.plainer.clone(),
        };
        scheduled.lower(&kernels.name, self.passes()).map(Some)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Recent<blake3::Hash, Arc<Program>>> {
        self.programs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A program that has been compiled before, or is to be.
enum Found {
    Known(Arc<Program>),
    Fresh(Box<Kernels>),
}

/// What tells a program from others.
fn fingerprint(graph: &Graph) -> blake3::Hash {
    blake3::hash(graph.to_string().as_bytes())
}
