//! A schedule that is good at once: made from the accesses and the machine, without a run.
//!
//! Five decisions, in this order:
//!
//! 1. What is changed of the program first ([`prepare`](crate::prepare)): windows that may leave their input read a padded
//!    array; a reduction along the dimension that lies contiguous keeps as many running values as vectors have lanes; one
//!    that reduces much to little is put in [`parts`](crate::parts) that threads take.
//! 2. Which nodes are steps ([`steps`](crate::steps)): what is cheap is computed where it is read.
//! 3. The loops of each step ([`nest`](crate::nest)): contractions ([`contraction`](crate::contraction)) get a tile of
//!    registers and, where it pays, a packed panel, or the tiles of a matrix unit ([`matrix_unit`](crate::matrix_unit));
//!    reductions without reuse stream; everything else starts with the loops of what it reads, so that the tree can
//!    share them.
//! 4. The steps of a recurrence run in one loop along it ([`recurrence`](crate::recurrence)).
//! 5. Which loops run on several threads ([`parallel`](crate::parallel)).
//!
//! Every decision leaves a sentence behind that says why.

use crate::nest::Nest;
use loopwright_graph::{DimId, Graph, GraphEditor, NodeId, SymbolInfo};
use loopwright_looptree::Plan;
use loopwright_looptree::ScheduleError;
use loopwright_looptree::Target;
use loopwright_looptree::{Edit, LoopSpec, NodeSchedule, Schedule};
use loopwright_ops::DType;
use loopwright_symbolic::{Expr, Symbol};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::sync::Arc;

/// A plan, and why it is as it is.
#[derive(Clone, Debug)]
pub struct Explained {
    /// The plan.
    pub plan: Plan,
    /// For each step, why it is one and why it has its loops.
    pub reasons: FxHashMap<NodeId, Reasons>,
}

/// Why a step runs as it does.
#[derive(Clone, Debug, Default)]
pub struct Reasons {
    /// Why it is a step.
    pub step: Cow<'static, str>,
    /// For each of its loops, outermost first, why it is there.
    pub loops: SmallVec<[Cow<'static, str>; 8]>,
}

/// Whether float sums may be added in another order than the program's.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Order {
    /// They may: a reduction can have several running values.
    #[default]
    Free,
    /// They may not: every rounding stays.
    Kept,
}

/// How much of a machine a schedule uses. What asks for less can be refused for fewer reasons: a schedule that was made
/// here and that something further down the line refuses is made again with less.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Effort {
    /// Vectors, register tiles, packed copies, a matrix unit and threads, where they pay.
    #[default]
    Full,
    /// None of these: the same steps with serial loops, which they share.
    Scalar,
    /// One serial loop for each dimension of a step, and nothing shared.
    Plain,
}

impl Effort {
    /// What there is below it, the next first.
    pub fn plainer(self) -> impl Iterator<Item = Effort> {
        let below = [Effort::Scalar, Effort::Plain].into_iter();
        below.filter(move |effort| *effort > self)
    }

    /// What a schedule made with it is, in words.
    pub const fn describe(self) -> &'static str {
        match self {
            Effort::Full => "all that the machine has",
            Effort::Scalar => "serial loops, no vectors, no tiles and no threads",
            Effort::Plain => "one serial loop for each dimension, nothing shared",
        }
    }
}

/// A schedule for a graph whose results are stores (see [`Graph::with_stores`]). Its steps speak of the graph with the
/// schedule's changes made ([`Schedule::edited`]); for a machine without vectors it makes none.
///
/// # Errors
/// Index expressions that are out of range.
pub fn default_schedule(graph: &Graph, target: &Target) -> Result<Schedule, ScheduleError> {
    let explained = schedule(graph.clone(), target, Order::Free)?;
    Ok(explained.plan.schedule().clone())
}

/// A plan for a graph whose results are stores (see [`Graph::with_stores`]), with the reasons for it.
///
/// # Errors
/// Index expressions that are out of range.
pub fn schedule(
    program: impl Into<Arc<Graph>>,
    target: &Target,
    order: Order,
) -> Result<Explained, ScheduleError> {
    schedule_with(program, target, order, Effort::Full)
}

/// The same with more or less effort.
///
/// # Errors
/// Index expressions that are out of range.
pub fn schedule_with(
    program: impl Into<Arc<Graph>>,
    target: &Target,
    order: Order,
    effort: Effort,
) -> Result<Explained, ScheduleError> {
    let program: Arc<Graph> = program.into();
    let scalar = Target {
        vector_bytes: 0,
        threads: 1,
        matrix_unit: None,
        ..*target
    };
    let target = match effort {
        Effort::Full => target,
        Effort::Scalar | Effort::Plain => &scalar,
    };
    let mut work = Work {
        editor: GraphEditor::new(&program),
        edits: Vec::new(),
        padded: FxHashSet::default(),
        innermost: FxHashMap::default(),
        target,
        order,
    };
    work.prepare()?;
    let chosen = work.choose_steps()?;
    let mut reasons = FxHashMap::default();
    let mut steps: Vec<NodeSchedule> = Vec::with_capacity(chosen.order.len());
    for node in &chosen.order {
        let nests = match effort {
            Effort::Full | Effort::Scalar => work.nests(*node, &chosen, steps.last())?,
            Effort::Plain => vec![work.plain_nest(*node)],
        };
        for nest in nests {
            let Nest {
                step,
                why,
                mut reasons_of_loops,
            } = nest;
            reasons_of_loops.resize(step.loops.len(), Cow::Borrowed(""));
            let entry = Reasons {
                step: match why {
                    Some(why) => why.into(),
                    None => chosen.why(*node).into(),
                },
                loops: reasons_of_loops,
            };
            reasons.insert(step.node, entry);
            steps.push(step);
        }
    }
    crate::recurrence::arrange(work.editor.graph(), &mut steps, &mut reasons);
    let mut schedule = Schedule {
        edits: work.edits,
        steps,
    };
    let graph = match schedule.edits.is_empty() {
        true => Arc::clone(&program),
        false => Arc::new(work.editor.finish()),
    };
    let mut plan = Plan::of_edited(Arc::clone(&program), Arc::clone(&graph), schedule.clone())?;
    if crate::parallel::mark(&plan, target, &mut schedule, &mut reasons) {
        plan = Plan::of_edited(program, graph, schedule)?;
    }
    Ok(Explained { plan, reasons })
}

/// A schedule in the making.
pub(crate) struct Work<'a> {
    pub(crate) editor: GraphEditor,
    pub(crate) edits: Vec<Edit>,
    /// Arrays that windows read in the place of those that they may leave.
    pub(crate) padded: FxHashSet<NodeId>,
    /// Steps that do not lie row-major: the dimension along which their elements are neighbours.
    pub(crate) innermost: FxHashMap<NodeId, DimId>,
    pub(crate) target: &'a Target,
    pub(crate) order: Order,
}

impl Work<'_> {
    pub(crate) fn graph(&self) -> &Graph {
        self.editor.graph()
    }

    /// Lanes of a vector of elements, 1 where vectors do not pay. Narrow floats are computed with in `f32`.
    pub(crate) fn lanes(&self, dtype: DType) -> i64 {
        (i64::from(self.target.vector_bytes) / self.lane_dtype(dtype).bytes() as i64).max(1)
    }

    /// The dtype that elements have in lanes. C compilers make no good code of vectors of narrow floats.
    pub(crate) fn lane_dtype(&self, dtype: DType) -> DType {
        match dtype {
            DType::BF16 | DType::F16 if !self.target.c_compiler => DType::F32,
            other => other,
        }
    }

    /// Makes a change to the program.
    pub(crate) fn edit<T>(
        &mut self,
        edit: Edit,
        make: impl FnOnce(&mut GraphEditor) -> Result<T, loopwright_graph::EditError>,
    ) -> Result<T, ScheduleError> {
        let made = make(&mut self.editor)?;
        self.edits.push(edit);
        Ok(made)
    }
}

/// A size that stands for one that is not known yet.
const TYPICAL: i64 = 512;

/// About how large an expression over sizes is.
pub(crate) fn typical(graph: &Graph, expr: &Expr) -> i64 {
    if let Some(known) = expr.as_const() {
        return known;
    }
    let put = |symbol: Symbol| match graph.symbol(symbol) {
        SymbolInfo::Size { default, .. } => Some(Expr::constant(default.unwrap_or(TYPICAL))),
        SymbolInfo::Static { .. } => Some(Expr::constant(0)),
        SymbolInfo::Index(_) => None,
    };
    let put = expr.substitute(&put).ok();
    put.and_then(|expr| expr.as_const()).unwrap_or(TYPICAL)
}

pub(crate) type SpecList = SmallVec<[LoopSpec; 8]>;
