//! From a graph to a plan, and from a plan to the kernels that a backend is given.

use crate::launches::{joined, lower_delegated};
use crate::program::ProgramError;
use crate::spill::{FrameLimits, spill};
use loopwright_backend::{CompileUnit, KernelLaunch, stage};
use loopwright_graph::rewrite::rewrite;
use loopwright_graph::{Graph, NodeId};
use loopwright_kernel::passes::Pipeline;
use loopwright_kernel::passes::log_stores::{StoreSite, log_stores};
use loopwright_kernel::{Function, FunctionId, Module, live_ranges};
use loopwright_looptree::{Plan, Schedule, Target};
use loopwright_lower::{KernelParam, Lowered, Scratch, lower};
use loopwright_scheduler::{Effort, Order, Reasons, schedule_with};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

/// The name of the kernel that a program becomes if it is given no other.
pub const KERNEL: &str = "program";

/// A plan as the kernels that run it, one after the other, and the memory that they share.
#[derive(Clone, Debug)]
pub struct Kernels {
    /// What the program is called in code: its kernel's name, where it is one.
    pub name: String,
    /// The graph, rewritten if no schedule was given, every result a node of its own; its schedule, and the loops.
    pub plan: Plan,
    /// Why the schedule is what it is, where it was made here.
    pub reasons: FxHashMap<NodeId, Reasons>,
    /// Where the schedule is not the one that was chosen first: that was refused.
    pub plainer: Option<Plainer>,
    /// Annotations of the schedule that were not carried out, each with the reason, and what was rewritten in the graph.
    pub notes: Vec<String>,
    /// What the program takes, in order; launches have some of it each.
    pub params: Vec<KernelParam>,
    /// Scratch memory, by number.
    pub scratch: Vec<Scratch>,
    /// By scratch number: the steps of a run that use it; empty if none does. Two whose ranges do not overlap may lie in
    /// the same memory. Where there are several kernels they are the steps, otherwise the statements of its body.
    pub scratch_live: Vec<Range<u32>>,
    /// The kernels after all passes, in the order in which they run. Scratch memory that may share its place with another
    /// is not `noalias` in them.
    pub launches: Vec<KernelLaunch>,
    /// The stores that the kernel logs; see [`Kernels::logging`].
    pub log_sites: Vec<StoreSite>,
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

impl Kernels {
    /// What a backend is given.
    pub fn units(&self) -> impl Iterator<Item = CompileUnit<'_>> {
        let plan = &self.plan;
        let launches = self.launches.iter();
        launches.map(move |launch| CompileUnit { launch, plan })
    }

    /// Whether parts of the program are delegated to other backends than its own.
    pub fn is_delegated(&self) -> bool {
        self.plan.schedule().delegates()
    }

    /// One module for all of it: its first function is a kernel that takes what the program takes and stands for the whole.
    pub fn module(&self) -> Cow<'_, Module> {
        match &self.launches[..] {
            [only] if !self.is_delegated() => Cow::Borrowed(&only.module),
            launches => {
                let graph = self.plan.graph();
                Cow::Owned(joined(graph, launches, &self.params, &self.name))
            }
        }
    }

    /// What lowering made, before any pass; parts that are delegated are shown as [`Kernels::module`] has them.
    ///
    /// # Errors
    /// None that making the kernels did not have.
    pub fn unoptimised(&self) -> Result<Module, ProgramError> {
        match self.is_delegated() {
            true => Ok(self.module().into_owned()),
            false => Ok(lower(&self.plan, &self.name)?.module),
        }
    }

    /// Takes a graph as far as optimised kernels called [`KERNEL`]. `schedule` refers to
    /// [`Graph::with_stores`]; without one, the graph is rewritten ([`rewrite`]), and the default for
    /// the target is taken, or a plainer one ([`Kernels::plainer`]) where that is refused.
    ///
    /// # Errors
    /// A given schedule that does not fit, and a program that cannot be lowered with any.
    pub fn new(
        graph: &Graph,
        schedule: Option<&Schedule>,
        target: &Target,
        pipeline: &Pipeline,
    ) -> Result<Kernels, ProgramError> {
        let passes = Passes {
            pipeline,
            limits: FrameLimits::new(target.threads, None),
        };
        let attempt = |effort: Effort, plainer: Option<Plainer>| {
            let mut scheduled = Scheduled::new(graph, schedule, target, Order::Free, effort)?;
            scheduled.plainer = plainer;
            scheduled.lower(KERNEL, passes)
        };
        first_that_fits(schedule.is_some(), attempt)
    }

    /// The same for one who has a plan already.
    ///
    /// # Errors
    /// A program that cannot be lowered with its schedule.
    pub fn of_plan(
        plan: Plan,
        target: &Target,
        pipeline: &Pipeline,
    ) -> Result<Kernels, ProgramError> {
        let limits = FrameLimits::new(target.threads, None);
        Scheduled::of_plan(plan).lower(KERNEL, Passes { pipeline, limits })
    }

    /// The same with a kernel that logs what it stores: which element, what was there and what is there
    /// now. It gets one more parameter, [`KernelParam::Log`], unless it has no store that can be logged.
    /// Scratch memory is not shared, so that what was there is the same buffer's.
    pub fn logging(mut self) -> Result<Kernels, ProgramError> {
        let delegated = self.is_delegated();
        let launch = match &mut self.launches[..] {
            [only] if !delegated => only,
            _ => {
                return Err(ProgramError::Delegate {
                    program: self.name,
                    reason: "stores are logged by one kernel, and this program has several"
                        .to_owned(),
                });
            }
        };
        self.log_sites = log_stores(&mut launch.module, &self.name);
        validate(&launch.module, "logging")?;
        if !self.log_sites.is_empty() {
            launch.params.push(KernelParam::Log);
            self.params.push(KernelParam::Log);
        }
        let statements = launch.module.functions[FunctionId(0)].body.len() as u32;
        for live in &mut self.scratch_live {
            if live.start < live.end {
                *live = 0..statements;
            }
        }
        Ok(self)
    }
}

/// A plan, and how it came about.
pub(crate) struct Scheduled {
    pub(crate) plan: Plan,
    /// Why, where the schedule was made here.
    pub(crate) reasons: FxHashMap<NodeId, Reasons>,
    /// What was rewritten.
    pub(crate) notes: Vec<String>,
    /// As [`Kernels::plainer`].
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
        match schedule {
            Some(schedule) => {
                let plan = stage("schedule", || Plan::new(graph, schedule.clone()))?;
                Ok(Scheduled::of_plan(plan))
            }
            None => {
                let made = stage("schedule", || schedule_with(graph, target, order, effort))?;
                Ok(Scheduled {
                    reasons: made.reasons,
                    notes,
                    ..Scheduled::of_plan(made.plan)
                })
            }
        }
    }

    fn of_plan(plan: Plan) -> Scheduled {
        Scheduled {
            plan,
            reasons: FxHashMap::default(),
            notes: Vec::new(),
            plainer: None,
        }
    }

    /// The rest of the way.
    pub(crate) fn lower(self, name: &str, passes: Passes<'_>) -> Result<Kernels, ProgramError> {
        let mut kernels = match self.plan.schedule().delegates() {
            true => lower_delegated(self.plan, name, passes)?,
            false => lower_whole(self.plan, name, passes)?,
        };
        kernels.reasons = self.reasons;
        kernels.plainer = self.plainer;
        kernels.notes.extend(self.notes);
        Ok(kernels)
    }
}

/// Lowers a program to one kernel.
fn lower_whole(plan: Plan, name: &str, passes: Passes<'_>) -> Result<Kernels, ProgramError> {
    let Lowered {
        module,
        params,
        mut scratch,
        notes,
    } = stage("lower", || lower(&plan, name))?;
    let (mut launch, spilled) = passes.run(module, params, scratch.len())?;
    scratch.extend(spilled);
    let kernel = &mut launch.module.functions[FunctionId(0)];
    let scratch_live = scratch_live(&launch.params, scratch.len(), kernel);
    share_scratch(&launch.params, &scratch_live, kernel);
    Ok(Kernels {
        name: name.to_owned(),
        plan,
        reasons: FxHashMap::default(),
        plainer: None,
        notes,
        params: launch.params.clone(),
        scratch,
        scratch_live,
        launches: vec![launch],
        log_sites: Vec::new(),
    })
}

/// What is done to a kernel between lowering and code.
#[derive(Clone, Copy)]
pub(crate) struct Passes<'a> {
    pub(crate) pipeline: &'a Pipeline,
    pub(crate) limits: FrameLimits,
}

impl Passes<'_> {
    /// A kernel when all passes have run, and scratch memory for its arrays that do not fit frames: it has a parameter for
    /// each behind those that it was lowered with, numbered from `first` on.
    pub(crate) fn run(
        self,
        mut module: Module,
        mut params: Vec<KernelParam>,
        first: usize,
    ) -> Result<(KernelLaunch, Vec<Scratch>), ProgramError> {
        stage("optimise", || {
            validate(&module, "lowering")?;
            self.pipeline.run(&mut module, &mut |_, _| {});
            validate(&module, "the passes")?;
            let spilled = spill(&mut module.functions[FunctionId(0)], self.limits);
            if !spilled.is_empty() {
                validate(&module, "spilling")?;
            }
            let numbers = first..first + spilled.len();
            params.extend(numbers.map(|number| KernelParam::Scratch(number as u32)));
            let launch = KernelLaunch {
                backend: None,
                module,
                params,
            };
            Ok((launch, spilled))
        })
    }
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
