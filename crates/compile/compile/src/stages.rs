//! From a graph to the kernel that a backend is given.

use crate::delegate::{Part, delegates, lower_delegated};
use crate::program::ProgramError;
use crate::spill::{FrameLimits, spill};
use loopwright_backend::CompileUnit;
use loopwright_backend::stage;
use loopwright_graph::rewrite::rewrite;
use loopwright_graph::{Graph, NodeId};
use loopwright_kernel::passes::Pipeline;
use loopwright_kernel::passes::log_stores::{StoreSite, log_stores};
use loopwright_kernel::{Function, Module, live_ranges};
use loopwright_looptree::{Plan, Schedule, Target};
use loopwright_lower::{KernelParam, Lowered, Scratch, lower};
use loopwright_scheduler::{Effort, Order, Reasons, schedule_with};
use rustc_hash::FxHashMap;
use std::fmt;
use std::ops::Range;

/// The name of the kernel that a program becomes if it is given no other.
pub const KERNEL: &str = "program";

/// The stages of a program up to the kernel that a backend is given.
#[derive(Clone, Debug)]
pub struct Stages {
    /// The kernel's name.
    pub kernel: String,
    /// The graph, rewritten if no schedule was given, every result a node of its own, with the changes that the
    /// schedule makes.
    pub graph: Graph,
    /// The same without those changes, where the schedule makes any.
    pub written: Option<Graph>,
    /// How it runs.
    pub schedule: Schedule,
    /// Why, where the schedule was made here.
    pub reasons: FxHashMap<NodeId, Reasons>,
    /// Lowered, before any pass.
    pub lowered: Lowered,
    /// The kernel after all passes. Scratch memory that may share its place with another is not
    /// `noalias` in it.
    pub module: Module,
    /// By scratch number: the statements of the kernel's body that use it; empty if none does. Two
    /// whose ranges do not overlap may lie in the same memory.
    pub scratch_live: Vec<Range<u32>>,
    /// What the kernel's parameters are, in order.
    pub params: Vec<KernelParam>,
    /// The stores that the kernel logs; see [`Stages::logging`].
    pub log_sites: Vec<StoreSite>,
    /// The parts of a program that several backends run, in order; none where it is one kernel. The
    /// kernel then stands for the whole: it calls the parts.
    pub parts: Vec<Part>,
    /// Where the schedule is not the one that was chosen first: that was refused.
    pub plainer: Option<Plainer>,
}

/// A schedule that stands in for one that was chosen here and refused further down the line. That is a fault of
/// ours, which costs speed and nothing else: results are those of the program under any schedule.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Plainer {
    /// What the schedule in its place was made with.
    pub effort: Effort,
    /// Why the first one was refused, and by whom.
    pub reason: String,
}

impl fmt::Display for Plainer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the schedule that was chosen for this machine was refused ({}), and a plainer one is used: {}; please report this program",
            self.reason,
            self.effort.describe()
        )
    }
}

impl Stages {
    /// What a backend is given.
    pub fn unit(&self) -> CompileUnit<'_> {
        CompileUnit {
            kernel: &self.kernel,
            module: &self.module,
            params: &self.params,
            graph: &self.graph,
            written: self.written.as_ref().unwrap_or(&self.graph),
            schedule: &self.schedule,
            tree: &self.lowered.tree,
        }
    }

    /// Takes a graph as far as an optimised kernel called [`KERNEL`]. `schedule` refers to
    /// [`Graph::with_stores`]; without one, the graph is rewritten ([`rewrite`]), and the default for
    /// the target is taken, or a plainer one ([`Stages::plainer`]) where that is refused.
    ///
    /// # Errors
    /// A given schedule that does not fit, and a program that cannot be lowered with any.
    pub fn new(
        graph: &Graph,
        schedule: Option<&Schedule>,
        target: &Target,
        pipeline: &Pipeline,
    ) -> Result<Stages, ProgramError> {
        let limits = FrameLimits::new(target.threads, None);
        let attempt = |effort: Effort, plainer: Option<Plainer>| {
            let mut scheduled = Scheduled::new(graph, schedule, target, Order::Free, effort)?;
            scheduled.plainer = plainer;
            scheduled.lower(KERNEL, pipeline, limits)
        };
        first_that_fits(schedule.is_some(), attempt)
    }

    /// The same with a kernel that logs what it stores: which element, what was there and what is there
    /// now. It gets one more parameter, [`KernelParam::Log`], unless it has no store that can be logged.
    /// Scratch memory is not shared, so that what was there is the same buffer's.
    pub fn logging(mut self) -> Result<Stages, ProgramError> {
        if !self.parts.is_empty() {
            return Err(ProgramError::Delegate {
                program: self.kernel,
                reason: "stores are logged by one kernel, and this program has several".to_owned(),
            });
        }
        self.log_sites = log_stores(&mut self.module, &self.kernel);
        validate(&self.module, "logging")?;
        if !self.log_sites.is_empty() {
            self.params.push(KernelParam::Log);
        }
        let statements = self.module.functions[0].body.len() as u32;
        for live in &mut self.scratch_live {
            if live.start < live.end {
                *live = 0..statements;
            }
        }
        Ok(self)
    }
}

/// A graph with its results as stores, and the schedule given or made for it.
pub(crate) struct Scheduled {
    pub(crate) graph: Graph,
    /// The graph without the schedule's changes, where it makes any.
    pub(crate) written: Option<Graph>,
    pub(crate) schedule: Schedule,
    /// Why, where the schedule was made here.
    pub(crate) reasons: FxHashMap<NodeId, Reasons>,
    /// What was rewritten.
    pub(crate) notes: Vec<String>,
    /// As [`Stages::plainer`].
    pub(crate) plainer: Option<Plainer>,
}

/// What the first attempt gives, or where a schedule of ours is refused, what the first plainer one gives that is not; the
/// first refusal where all are. An attempt is told what it is made with, and in whose place.
pub(crate) fn first_that_fits<T>(
    is_given: bool,
    mut attempt: impl FnMut(Effort, Option<Plainer>) -> Result<T, ProgramError>,
) -> Result<T, ProgramError> {
    let refusal = match attempt(Effort::Full, None) {
        Err(error) if !is_given && error.is_about_schedule() => error,
        other => return other,
    };
    for effort in Effort::Full.plainer() {
        let reason = refusal.to_string();
        if let Ok(found) = attempt(effort, Some(Plainer { effort, reason })) {
            return Ok(found);
        }
    }
    Err(refusal)
}

impl Scheduled {
    pub(crate) fn new(
        graph: &Graph,
        schedule: Option<&Schedule>,
        target: &Target,
        order: Order,
        effort: Effort,
    ) -> Result<Scheduled, ProgramError> {
        // A schedule names nodes of the graph as it is.
        let (graph, notes) = match schedule {
            Some(_) => (graph.clone(), Vec::new()),
            None => stage("rewrite", || rewrite(graph)),
        };
        let graph = graph.with_stores();
        let (plan, reasons) = match schedule {
            Some(schedule) => (
                stage("schedule", || Plan::new(graph, schedule.clone()))?,
                FxHashMap::default(),
            ),
            None => {
                let made = stage("schedule", || schedule_with(graph, target, order, effort))?;
                (made.plan, made.reasons)
            }
        };
        let schedule = plan.schedule().clone();
        let edited = !schedule.edits.is_empty();
        Ok(Scheduled {
            graph: Graph::clone(plan.graph()),
            written: edited.then(|| Graph::clone(plan.program())),
            schedule,
            reasons,
            notes,
            plainer: None,
        })
    }

    /// The rest of the stages.
    pub(crate) fn lower(
        self,
        kernel: &str,
        pipeline: &Pipeline,
        limits: FrameLimits,
    ) -> Result<Stages, ProgramError> {
        let Scheduled {
            graph,
            written,
            schedule,
            reasons,
            notes,
            plainer,
        } = self;
        if delegates(&schedule) {
            let mut stages = lower_delegated(graph, schedule, kernel, pipeline, limits)?;
            stages.written = written;
            stages.reasons = reasons;
            stages.plainer = plainer;
            stages.lowered.notes.extend(notes);
            return Ok(stages);
        }
        let mut lowered = stage("lower", || lower(&graph, &schedule, kernel))?;
        lowered.notes.extend(notes);
        let Optimised {
            mut module,
            spilled,
        } = Optimised::new(&lowered, pipeline, limits)?;
        let params = with_spilled(&lowered.params, lowered.scratch.len(), &spilled);
        lowered.scratch.extend(spilled);
        let scratch_live = scratch_live(&params, lowered.scratch.len(), &module.functions[0]);
        share_scratch(&params, &scratch_live, &mut module.functions[0]);
        Ok(Stages {
            kernel: kernel.to_owned(),
            graph,
            written,
            schedule,
            reasons,
            params,
            lowered,
            module,
            scratch_live,
            log_sites: Vec::new(),
            parts: Vec::new(),
            plainer,
        })
    }
}

/// What is left of a kernel when all passes have run.
pub(crate) struct Optimised {
    pub(crate) module: Module,
    /// Scratch memory for arrays that do not fit frames: the kernel has a parameter for each behind those that it
    /// was lowered with.
    pub(crate) spilled: Vec<Scratch>,
}

impl Optimised {
    pub(crate) fn new(
        lowered: &Lowered,
        pipeline: &Pipeline,
        limits: FrameLimits,
    ) -> Result<Optimised, ProgramError> {
        stage("optimise", || {
            validate(&lowered.module, "lowering")?;
            let mut module = lowered.module.clone();
            pipeline.run(&mut module, &mut |_, _| {});
            validate(&module, "the passes")?;
            let spilled = spill(&mut module.functions[0], limits);
            if !spilled.is_empty() {
                validate(&module, "spilling")?;
            }
            Ok(Optimised { module, spilled })
        })
    }
}

/// The parameters of a kernel some of whose arrays lie in scratch memory, numbered from `first` on.
pub(crate) fn with_spilled(
    params: &[KernelParam],
    first: usize,
    spilled: &[Scratch],
) -> Vec<KernelParam> {
    let numbers = (first..first + spilled.len()).map(|number| number as u32);
    let all = params.iter().copied();
    all.chain(numbers.map(KernelParam::Scratch)).collect()
}

/// When the kernel uses each scratch memory.
fn scratch_live(params: &[KernelParam], count: usize, kernel: &Function) -> Vec<Range<u32>> {
    let mut live = vec![0..0; count];
    for (param, range) in params.iter().zip(live_ranges(kernel)) {
        if let KernelParam::Scratch(number) = param {
            live[*number as usize] = range;
        }
    }
    live
}

/// States that scratch memory may alias where another can lie in the same place. Passes took each for
/// memory of its own and may have moved accesses; that is no harm, because the ranges are those of what
/// they made. What comes after must not do so any more.
fn share_scratch(params: &[KernelParam], live: &[Range<u32>], kernel: &mut Function) {
    let apart = |a: &Range<u32>, b: &Range<u32>| {
        !a.is_empty() && !b.is_empty() && (a.end <= b.start || b.end <= a.start)
    };
    for (param, declared) in params.iter().zip(&mut kernel.params) {
        if let KernelParam::Scratch(number) = param {
            let own = &live[*number as usize];
            if live.iter().any(|other| apart(own, other)) {
                declared.noalias = false;
            }
        }
    }
}

pub(crate) fn validate(module: &Module, stage: &str) -> Result<(), ProgramError> {
    loopwright_kernel::validate(module).map_err(|error| ProgramError::Invalid {
        stage: stage.to_owned(),
        reason: error.to_string(),
    })
}
