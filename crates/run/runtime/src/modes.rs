//! Memory modes: where a node's values live.

use loopwright_arena::TiVec;
use loopwright_compile::Program;
use loopwright_graph::{Graph, GraphBuilder, NodeId, NodeOp};
use loopwright_looptree::{LoopSpec, NodeSchedule, Schedule, Target, is_given, loop_dims};
use loopwright_scheduler::Order;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;

/// Where a node's values live.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Mode {
    /// Nowhere: they are computed where they are read.
    Virtual,
    /// In memory of the routine's own, while it runs.
    Local,
    /// In the device's memory, as an array of the context.
    OnDevice,
    /// In the device's memory, once for all contexts.
    Constant,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mode::Virtual => "virtual",
            Mode::Local => "local",
            Mode::OnDevice => "on device",
            Mode::Constant => "constant",
        })
    }
}

/// Where a mode was asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SetAt {
    /// In Rust.
    Rust(&'static Location<'static>),
    /// In another language, as `file:line`.
    Other(Arc<str>),
}

impl fmt::Display for SetAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SetAt::Rust(place) => place.fmt(f),
            SetAt::Other(place) => f.write_str(place),
        }
    }
}

/// Why a node has its mode.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Provenance {
    /// It follows from the program and its schedule.
    Inferred(&'static str),
    /// It was set there.
    Set(SetAt),
}

impl fmt::Display for Provenance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Provenance::Inferred(reason) => f.write_str(reason),
            Provenance::Set(place) => write!(f, "set at {place}"),
        }
    }
}

/// A node's mode, and why it has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeMode {
    /// The node.
    pub node: String,
    /// Where its values live.
    pub mode: Mode,
    /// Why.
    pub why: Provenance,
}

/// Modes that were asked for.
#[derive(Clone, Debug, Default)]
pub struct Modes {
    wishes: Vec<Wish>,
}

#[derive(Clone, Debug)]
struct Wish {
    node: String,
    mode: Mode,
    place: SetAt,
}

impl Modes {
    /// None: all are inferred.
    pub fn new() -> Modes {
        Modes::default()
    }

    /// Asks for a node's mode. It is kept or refused, never weakened.
    #[must_use]
    #[track_caller]
    pub fn set(self, node: impl Into<String>, mode: Mode) -> Modes {
        self.set_at(node, mode, SetAt::Rust(Location::caller()))
    }

    /// Asks for a node's mode on behalf of code that is elsewhere; errors name that place.
    #[must_use]
    pub fn set_at(mut self, node: impl Into<String>, mode: Mode, place: SetAt) -> Modes {
        self.wishes.push(Wish {
            node: node.into(),
            mode,
            place,
        });
        self
    }

    /// The outputs of a graph that are to be virtual: other programs of a batch compute them themselves.
    pub(crate) fn virtual_outputs<'a>(&'a self, graph: &'a Graph) -> impl Iterator<Item = &'a str> {
        let wishes = self.wishes.iter().filter(|wish| wish.mode == Mode::Virtual);
        wishes
            .map(|wish| wish.node.as_str())
            .filter(|name| graph.outputs().iter().any(|output| output.name == *name))
    }

    /// The same without wishes for some nodes.
    pub(crate) fn without(&self, nodes: &[&str]) -> Modes {
        let mut modes = self.clone();
        modes.wishes.retain(|wish| !nodes.contains(&&*wish.node));
        modes
    }
}

impl Modes {
    /// Whether nothing was asked for.
    pub(crate) fn is_empty(&self) -> bool {
        self.wishes.is_empty()
    }
}

/// A program with its modes carried out.
pub(crate) struct Moded {
    pub(crate) graph: Graph,
    /// `None`: the default.
    pub(crate) schedule: Option<Schedule>,
    /// `None`: they follow from the compiled program.
    pub(crate) modes: Option<Vec<NodeMode>>,
}

/// The modes of a compiled program for which nothing was asked.
pub(crate) fn inferred(program: &Program) -> Vec<NodeMode> {
    modes_of(program.graph(), program.schedule(), &Modes::default())
}

/// Carries modes out: makes outputs of nodes that are to be on the device, and gives or takes steps.
/// The error says what cannot be and which places asked for it.
pub(crate) fn carry_out(
    graph: &Graph,
    schedule: Option<&Schedule>,
    target: &Target,
    order: Order,
    modes: &Modes,
) -> Result<Moded, String> {
    for (at, wish) in modes.wishes.iter().enumerate() {
        let Wish { node, mode, place } = wish;
        if graph.find(node).is_none() && !graph.outputs().iter().any(|output| output.name == *node)
        {
            return Err(format!(
                "there is no node `{node}`, which is to be {mode} (set at {place})"
            ));
        }
        let before = modes.wishes[..at]
            .iter()
            .find(|before| before.node == *node);
        if let Some(before) = before.filter(|before| before.mode != *mode) {
            return Err(format!(
                "`{node}` is to be {} (set at {}) and {mode} (set at {place})",
                before.mode, before.place
            ));
        }
    }
    let graph = &rewritten(graph, schedule, modes);
    let graph = with_outputs(graph, modes)?;
    let stores = graph.clone().with_stores();
    let mut plan = match schedule {
        Some(schedule) => schedule.clone(),
        None => {
            let made = loopwright_scheduler::schedule(stores.clone(), target, order);
            let made = made.map_err(|error| error.to_string())?;
            made.plan.schedule().clone()
        }
    };
    let edited = plan.edited(&stores).map_err(|error| error.to_string())?;
    let edited = edited.into_owned();
    let mut changed = false;
    for wish in &modes.wishes {
        changed |= reschedule(&stores, &edited, &mut plan, wish)?;
    }
    let found = modes_of(&edited, &plan, modes);
    for wish in &modes.wishes {
        let kept = found.iter().find(|node| node.node == wish.node);
        if kept.is_none_or(|kept| kept.mode != wish.mode) {
            return Err(conflict(
                wish,
                kept.map(|kept| (kept.mode, kept.why.clone())),
            ));
        }
    }
    Ok(Moded {
        graph,
        schedule: if changed || schedule.is_some() {
            Some(plan)
        } else {
            None
        },
        modes: Some(found),
    })
}

/// The graph as the compiler rewrites it where it makes the schedule, unless that drops a node whose mode
/// was asked for.
fn rewritten(graph: &Graph, schedule: Option<&Schedule>, modes: &Modes) -> Graph {
    if schedule.is_none() {
        let (rewritten, _) = loopwright_graph::rewrite::rewrite(graph);
        let has = |name: &str| {
            rewritten.find(name).is_some()
                || rewritten.outputs().iter().any(|output| output.name == name)
        };
        if modes.wishes.iter().all(|wish| has(&wish.node)) {
            return rewritten;
        }
    }
    graph.clone()
}

fn conflict(wish: &Wish, found: Option<(Mode, Provenance)>) -> String {
    let Wish { node, mode, place } = wish;
    match found {
        Some((found, why)) => {
            format!("`{node}` cannot be {mode} (set at {place}): it is {found} ({why})")
        }
        None => format!("`{node}` cannot be {mode} (set at {place})"),
    }
}

/// The graph with an output for every node that is to be on the device and is not.
fn with_outputs(graph: &Graph, modes: &Modes) -> Result<Graph, String> {
    let mut builder = GraphBuilder::from_graph(graph);
    for wish in modes
        .wishes
        .iter()
        .filter(|wish| wish.mode == Mode::OnDevice)
    {
        let Some(node) = graph.find(&wish.node) else {
            continue;
        };
        let there = matches!(graph.node(node).op, NodeOp::Input | NodeOp::State)
            || graph
                .outputs()
                .iter()
                .any(|output| output.name == wish.node);
        if !there {
            builder
                .output(&wish.node, node)
                .map_err(|error| error.to_string())?;
        }
    }
    builder.finish().map_err(|error| error.to_string())
}

/// Gives a node a step of its own, or takes it away. Says whether the schedule changed. `edited` has the changes that
/// the schedule makes to the program.
fn reschedule(
    stores: &Graph,
    edited: &Graph,
    plan: &mut Schedule,
    wish: &Wish,
) -> Result<bool, String> {
    let Some(node) = stores.find(&wish.node) else {
        return Ok(false);
    };
    let step = plan.steps.iter().position(|step| step.node == node);
    match (wish.mode, step) {
        (Mode::Virtual, Some(at)) if !is_result(stores, node) => {
            if let Some(reason) = why_not_inline(&stores.node(node).op) {
                return Err(conflict(
                    wish,
                    Some((Mode::Local, Provenance::Inferred(reason))),
                ));
            }
            plan.steps.remove(at);
            Ok(true)
        }
        (Mode::Local, None) if !is_given(stores, node) => {
            let consumers = consumers(edited, node);
            let reader = plan.steps.iter().position(|step| consumers[step.node]);
            let loops = loop_dims(stores, node);
            let step = NodeSchedule::new(node, loops.into_iter().map(LoopSpec::over));
            plan.steps.insert(reader.unwrap_or(plan.steps.len()), step);
            Ok(true)
        }
        _ => Ok(false),
    }
}

/// By node: whether it reads a node, itself or through others.
fn consumers(graph: &Graph, node: NodeId) -> TiVec<NodeId, bool> {
    let readers = graph.consumers();
    let mut reads: TiVec<NodeId, _> = vec![false; readers.len()].into();
    let mut open = vec![node];
    while let Some(node) = open.pop() {
        for reader in &readers[node] {
            if !std::mem::replace(&mut reads[*reader], true) {
                open.push(*reader);
            }
        }
    }
    reads
}

fn is_result(graph: &Graph, node: NodeId) -> bool {
    graph.outputs().iter().any(|output| output.node == node)
        || graph.updates().iter().any(|update| update.value == node)
}

/// Why a node must be computed as a whole, if it must.
fn why_not_inline(op: &NodeOp) -> Option<&'static str> {
    match op {
        NodeOp::Reduce { .. } | NodeOp::ArgReduce { .. } => {
            Some("a reduction keeps a running value")
        }
        NodeOp::Scan { .. } => Some("a scan keeps a running value"),
        NodeOp::Scatter { .. } => Some("a scatter writes where its indices say"),
        NodeOp::Sort { .. } | NodeOp::ArgSort { .. } => Some("sorting moves all elements"),
        NodeOp::Input
        | NodeOp::State
        | NodeOp::Constant(_)
        | NodeOp::Index(_)
        | NodeOp::Size(_)
        | NodeOp::Map(_)
        | NodeOp::Cast
        | NodeOp::Bitcast
        | NodeOp::Previous { .. }
        | NodeOp::View(_)
        | NodeOp::Gather { .. } => None,
    }
}

/// The modes of all named nodes, outputs first.
fn modes_of(stores: &Graph, plan: &Schedule, modes: &Modes) -> Vec<NodeMode> {
    let mut found: Vec<NodeMode> = Vec::new();
    let mut add = |node: &str, mode: Mode, inferred: &'static str| {
        if node.is_empty() || found.iter().any(|known| known.node == node) {
            return;
        }
        let wish = modes
            .wishes
            .iter()
            .find(|wish| wish.node == node && wish.mode == mode);
        found.push(NodeMode {
            node: node.to_owned(),
            mode,
            why: wish.map_or(Provenance::Inferred(inferred), |wish| {
                Provenance::Set(wish.place.clone())
            }),
        });
    };
    for output in stores.outputs() {
        add(&output.name, Mode::OnDevice, "an output");
    }
    for node in stores.node_ids() {
        let parts = stores.node(node);
        let (mode, why) = match &parts.op {
            NodeOp::Input => (Mode::OnDevice, "an input"),
            NodeOp::State => (Mode::OnDevice, "a state"),
            NodeOp::Constant(_) if is_given(stores, node) => (Mode::Constant, "a constant"),
            NodeOp::Constant(_) => (Mode::Virtual, "a number written into the code"),
            _ if plan.step(node).is_some() => (Mode::Local, "a step of the schedule"),
            _ => (Mode::Virtual, "computed where it is read"),
        };
        add(&parts.name, mode, why);
    }
    found
}
