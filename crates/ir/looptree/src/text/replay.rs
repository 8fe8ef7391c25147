//! Schedules that were made for another version of a program.
//!
//! A line fits as it is, or it is left out whole and that is reported: nothing is guessed. What the program needs
//! and no line gives gets the plainest loops. [`arrange`] puts all of it in an order in which it can run.

use super::Names;
use super::schedule::{Line, ScheduleFile, at_edit, at_line, late_edit, parse_head, parse_line};
use crate::access::accesses;
use crate::error::ScheduleError;
use crate::plan::Plan;
use crate::schedule::{Edit, LoopSpec, NodeSchedule, Schedule, can_inline, is_given, loop_dims};
use crate::tree::LoopTree;
use loopwright_graph::{DimId, Graph, GraphEditor, NodeId, NodeOp};
use loopwright_text::{Cursor, Diagnostic, Source, Span, Token};
use rustc_hash::{FxHashMap, FxHashSet};

/// What is left of a schedule on a changed program.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// What the file says, with the schedule that is used.
    pub file: ScheduleFile,
    /// The program with that schedule.
    pub plan: Plan,
    /// What no longer fits, with its place: lines that are left out or moved, and steps that have none and got plain
    /// loops. Empty where the whole file fits.
    pub left_out: Vec<Diagnostic>,
}

/// Reads a schedule for a program whose results are stores (see [`Graph::with_stores`]), which may have been made for
/// another version of the program.
///
/// A file that fits is used as it is, as [`crate::parse_schedule`] reads it. Of another, the lines that do not
/// fit are left out and reported: nodes and dimensions that are gone, changes to the program that cannot be made any
/// more and the nodes they made, loops and layouts that are not those of the node now. Steps that the program needs
/// and that no line gives get one serial loop for each dimension and share none.
///
/// ```
/// use loopwright_graph::parse;
/// use loopwright_looptree::replay;
/// use loopwright_text::Source;
///
/// let program = "loopwright program 1
/// input A: f32[i=64, k=32]
/// input B: f32[k, j=48]
/// total = sum[k](A * B)
/// output C = max(total, 0)
/// ";
/// let graph = parse(&Source::new("relu.lw", program)).unwrap().with_stores();
/// // `total` was called `product` when this was made.
/// let text = "loopwright schedule 1
/// device \"cc on Some Processor\"
/// product: i/8, j, k, i unroll
/// C: i/8, i, j vectorize
/// ";
/// let replayed = replay(&Source::new("relu.sched", text), &graph).unwrap();
/// assert_eq!(replayed.file.device.as_deref(), Some("cc on Some Processor"));
/// let said: Vec<&str> = replayed.left_out.iter().map(|said| &*said.message).collect();
/// assert_eq!(said, [
///     "`total` has no line: plain loops",
///     "left out: the program has no node `product`",
/// ]);
/// assert_eq!(replayed.plan.to_string(), "loopwright schedule 1
/// total: share=0, i, j, k
/// C: i/8, i, j vectorize
/// ");
/// ```
///
/// # Errors
/// What is not a schedule's text, and a program that has no schedule at all: index expressions that are out of range.
pub fn replay(source: &Source, program: &Graph) -> Result<Replayed, Diagnostic> {
    let mut cursor = Cursor::new(source)?;
    let head = cursor.span();
    let mut file = parse_head(&mut cursor)?;
    check_syntax(cursor.clone())?;
    let mut lines = Lines::new(program);
    while at_line(&mut cursor) {
        lines.read(&mut cursor, source);
    }
    if let Some(schedule) = lines.whole()
        && let Ok(plan) = Plan::new(program.clone(), schedule)
    {
        file.schedule = plan.schedule().clone();
        return Ok(Replayed {
            file,
            plan,
            left_out: Vec::new(),
        });
    }
    lines.drop_strangers();
    let (schedule, mut left_out) = match lines.fitting(head) {
        Ok(found) => found,
        Err(error) => {
            let message =
                format!("all lines are left out, and every step has plain loops: {error}");
            let steps = arrange(program, &[]).steps(program, &[]);
            let schedule = Schedule::of_steps(steps);
            (schedule, vec![Diagnostic::new(head, message)])
        }
    };
    let plan = Plan::new(program.clone(), schedule)
        .map_err(|error| Diagnostic::new(head, error.to_string()))?;
    // Line by line; what is said about one line stays in the order in which it was found.
    left_out.sort_by_key(|said| {
        let first = said.labels.first();
        first.map_or(0, |label| source.position(label.span.start).0)
    });
    file.schedule = plan.schedule().clone();
    Ok(Replayed {
        file,
        plan,
        left_out,
    })
}

/// Says what is wrong with a text whatever the program is.
fn check_syntax(mut cursor: Cursor) -> Result<(), Diagnostic> {
    let mut steps = false;
    while at_line(&mut cursor) {
        let start = cursor.span();
        match parse_line(&mut cursor, &AnyNames)? {
            Line::Edit(_) if steps => return Err(late_edit(start)),
            Line::Edit(_) => {}
            Line::Step(_) => steps = true,
        }
    }
    Ok(())
}

/// Takes every name: of what is read so, only whether it can be read counts.
struct AnyNames;

impl Names for AnyNames {
    fn node(&self, _: &str) -> Option<NodeId> {
        Some(NodeId(0))
    }

    fn numbered(&self, number: u32) -> Option<NodeId> {
        Some(NodeId(number))
    }

    fn dim(&self, _: &str) -> Option<DimId> {
        Some(DimId(0))
    }
}

/// A change to the program that is left out.
struct Lost {
    kind: String,
    name: String,
}

impl Lost {
    /// What follows the change's name in another.
    fn end<'a>(&self, name: &'a str) -> Option<&'a str> {
        name.strip_prefix(self.name.as_str())
    }

    /// Whether a node of this name came from the change.
    fn made_node(&self, name: &str) -> bool {
        let stages = ["_main", "_rest"];
        let end = self.end(name);
        end.is_some_and(|end| end.is_empty() || self.kind == "stage" && stages.contains(&end))
    }

    /// Whether a dimension of this name came from the change.
    fn made_dim(&self, name: &str) -> bool {
        let end = self.end(name);
        end.is_some_and(|end| match self.kind.as_str() {
            "stage" => ["_kept", "_folded", "_rest"].contains(&end),
            "pad" => end.starts_with('_'),
            _ => false,
        })
    }
}

/// The names of a program, but for those that lines which are left out gave.
struct Known<'a> {
    graph: &'a Graph,
    lost: &'a [Lost],
    /// From this number on nodes were counted with those of a change that is left out.
    counted: u32,
}

impl Known<'_> {
    fn is_lost_node(&self, name: &str) -> bool {
        self.lost.iter().any(|lost| lost.made_node(name))
    }

    fn is_lost_dim(&self, name: &str) -> bool {
        self.lost.iter().any(|lost| lost.made_dim(name))
    }
}

impl Names for Known<'_> {
    fn node(&self, name: &str) -> Option<NodeId> {
        self.graph.find(name).filter(|_| !self.is_lost_node(name))
    }

    fn numbered(&self, number: u32) -> Option<NodeId> {
        self.graph
            .numbered(number)
            .filter(|_| number < self.counted)
    }

    fn dim(&self, name: &str) -> Option<DimId> {
        self.graph
            .find_dim(name)
            .filter(|_| !self.is_lost_dim(name))
    }
}

/// The lines of a file that the program has names for.
struct Lines {
    editor: GraphEditor,
    edits: Vec<Edit>,
    steps: Vec<(NodeSchedule, Span)>,
    lost: Vec<Lost>,
    counted: u32,
    left_out: Vec<Diagnostic>,
    /// Where the line of a node stood that is left out.
    places: FxHashMap<NodeId, Span>,
}

impl Lines {
    fn new(program: &Graph) -> Lines {
        Lines {
            editor: GraphEditor::new(program),
            edits: Vec::new(),
            steps: Vec::new(),
            lost: Vec::new(),
            counted: u32::MAX,
            left_out: Vec::new(),
            places: FxHashMap::default(),
        }
    }

    /// Reads a line. Its syntax is right, so that what is wrong is that it does not fit.
    fn read(&mut self, cursor: &mut Cursor, source: &Source) {
        let start = cursor.span();
        let change = at_edit(cursor).then(|| (cursor.peek().clone(), cursor.peek_at(1).clone()));
        let names = Known {
            graph: self.editor.graph(),
            lost: &self.lost,
            counted: self.counted,
        };
        let node = match cursor.peek() {
            Token::Name(name) | Token::Text(name) => names.node(name),
            Token::Sigil(_, number) => number.parse().ok().and_then(|n| names.numbered(n)),
            _ => None,
        };
        let line = parse_line(cursor, &names).map_err(|mut error| {
            let word = error.labels.first().map(|label| source.slice(label.span));
            let word = word.unwrap_or_default().trim_matches('"');
            let number = word.strip_prefix('%').and_then(|word| word.parse().ok());
            if names.is_lost_node(word) || names.is_lost_dim(word) {
                error.message = format!("`{word}` comes from a line that is left out");
                error.help = None;
            } else if number.is_some_and(|number: u32| number >= self.counted) {
                error.message = format!("`{word}` was counted with a line that is left out");
            }
            error
        });
        let refused = match line {
            Ok(Line::Edit(edit)) => {
                let mut editor = self.editor.clone();
                match edit.apply(&mut editor) {
                    Ok(()) => {
                        self.editor = editor;
                        self.edits.push(edit);
                        return;
                    }
                    Err(error) => Diagnostic::new(start, error.to_string()),
                }
            }
            Ok(Line::Step(step)) => {
                if self.steps.iter().all(|(other, _)| other.node != step.node) {
                    self.steps.push((step, start));
                    return;
                }
                let node = self.editor.graph().node_name(step.node);
                Diagnostic::new(start, ScheduleError::Twice { node }.to_string())
            }
            Err(error) => {
                skip_line(cursor);
                error
            }
        };
        if let Some((Token::Name(kind), Token::Name(name))) = change {
            self.lost.push(Lost { kind, name });
            let count = self.editor.graph().node_ids().count();
            self.counted = self.counted.min(count as u32);
        } else if let Some(node) = node {
            self.places.entry(node).or_insert(start);
        }
        self.leave_out(refused);
    }

    fn leave_out(&mut self, mut why: Diagnostic) {
        why.message = format!("left out: {}", why.message);
        self.left_out.push(why);
    }

    /// The schedule, if no line is left out.
    fn whole(&self) -> Option<Schedule> {
        let steps = self.steps.iter().map(|(step, _)| step.clone());
        self.left_out.is_empty().then(|| Schedule {
            edits: self.edits.clone(),
            steps: steps.collect(),
        })
    }

    /// Leaves out the steps with loops over dimensions that they do not have and that they run alone. A step may be
    /// computed anew inside a reader's loops; but where the program has changed, such a loop more likely is over
    /// a dimension that the node had, and nothing would be slower than to keep it.
    fn drop_strangers(&mut self) {
        let graph = self.editor.graph();
        let owns = |step: &NodeSchedule, dim| loop_dims(graph, step.node).contains(&dim);
        let mut kept = Vec::with_capacity(self.steps.len());
        let mut refused = Vec::new();
        for (step, span) in &self.steps {
            let mut loops = step.loops.iter().enumerate();
            let alone = loops.find(|(depth, spec)| {
                let mut others = self.steps.iter();
                !owns(step, spec.dim)
                    && !others.any(|(other, _)| {
                        other.loops.get(*depth) == Some(spec) && owns(other, spec.dim)
                    })
            });
            match alone {
                None => kept.push((step.clone(), *span)),
                Some((_, spec)) => {
                    let (node, dim) = (graph.node_name(step.node), &graph.dim(spec.dim).name);
                    let message = format!(
                        "`{node}` does not have the dimension `{dim}`, and no step that has it runs in the same loop"
                    );
                    refused.push((step.node, Diagnostic::new(*span, message)));
                }
            }
        }
        self.steps = kept;
        for (node, why) in refused {
            if let Some(label) = why.labels.first() {
                self.places.insert(node, label.span);
            }
            self.leave_out(why);
        }
    }

    /// The schedule of the lines that fit, and what is to be said about it.
    fn fitting(mut self, head: Span) -> Result<(Schedule, Vec<Diagnostic>), ScheduleError> {
        let graph = self.editor.graph().clone();
        let schedule = |lines: &[&NodeSchedule]| {
            let arranged = arrange(&graph, lines);
            let schedule = Schedule {
                edits: self.edits.clone(),
                steps: arranged.steps(&graph, lines),
            };
            LoopTree::new(&graph, &schedule).map(|_| (schedule, arranged))
        };
        let steps = &self.steps;
        let all: Vec<&NodeSchedule> = steps.iter().map(|(step, _)| step).collect();
        let mut refused = Vec::new();
        let (schedule, arranged) = match schedule(&all) {
            Ok(found) => found,
            Err(_) => {
                // One line after the other, readers first: whether a step may be computed anew in a loop
                // depends on who reads it there.
                let mut found = schedule(&[])?;
                let mut kept: Vec<&NodeSchedule> = Vec::new();
                for (step, span) in steps.iter().rev() {
                    kept.insert(0, step);
                    match schedule(&kept) {
                        Ok(better) => found = better,
                        Err(error) => {
                            kept.remove(0);
                            refused.push((step.node, Diagnostic::new(*span, error.to_string())));
                        }
                    }
                }
                found
            }
        };
        let places: FxHashMap<NodeId, Span> = steps
            .iter()
            .map(|(step, span)| (step.node, *span))
            .collect();
        for (node, before) in &arranged.moved {
            let message = format!(
                "moved: `{}` must run before `{}`",
                graph.node_name(*node),
                graph.node_name(*before)
            );
            let place = places.get(node).copied().unwrap_or(head);
            self.left_out.push(Diagnostic::new(place, message));
        }
        for (node, why) in refused {
            self.places.insert(node, places[&node]);
            self.leave_out(why);
        }
        for node in &arranged.plain {
            let name = graph.node_name(*node);
            self.left_out.push(match self.places.get(node) {
                Some(place) => Diagnostic::new(*place, format!("`{name}` gets plain loops")),
                None => Diagnostic::new(head, format!("`{name}` has no line: plain loops")),
            });
        }
        Ok((schedule, self.left_out))
    }
}

/// Goes on to the end of the line.
fn skip_line(cursor: &mut Cursor) {
    while !matches!(
        cursor.peek(),
        Token::NewLine | Token::Semicolon | Token::End
    ) {
        cursor.advance();
    }
}

/// Steps in an order in which they can run.
struct Arranged {
    order: Vec<NodeId>,
    /// Those that no line gives.
    plain: Vec<NodeId>,
    /// Lines that run earlier than they stand, each with the line that they now come before.
    moved: Vec<(NodeId, NodeId)>,
}

impl Arranged {
    /// The steps, plain ones where no line gives them.
    fn steps(&self, graph: &Graph, lines: &[&NodeSchedule]) -> Vec<NodeSchedule> {
        let lines: FxHashMap<NodeId, &NodeSchedule> =
            lines.iter().map(|line| (line.node, *line)).collect();
        let plain = |node: NodeId| {
            let dims = loop_dims(graph, node);
            let mut step = NodeSchedule::new(node, dims.into_iter().map(LoopSpec::over));
            step.share = Some(0);
            step
        };
        let steps = self.order.iter();
        steps
            .map(|node| {
                lines
                    .get(node)
                    .map_or_else(|| plain(*node), |line| (*line).clone())
            })
            .collect()
    }
}

/// Puts lines, and what the program needs besides them, in an order in which they can run: that of the lines where
/// nothing speaks against it, each further step right before who needs it first.
fn arrange(graph: &Graph, lines: &[&NodeSchedule]) -> Arranged {
    let mut steps: FxHashSet<NodeId> = lines.iter().map(|line| line.node).collect();
    for update in graph.updates() {
        steps.insert(update.value);
    }
    // A new value that needs old ones which writing it would destroy has memory of its own.
    for update in graph.updates() {
        let is_step = |node: NodeId| steps.contains(&node) || !can_inline(graph, node);
        let reads = accesses(graph, update.value, &is_step).unwrap_or_default();
        let mut own = reads.iter().filter(|access| access.node == update.state);
        if own.any(|access| !access.is_fully_identity(graph)) {
            steps.insert(graph.node(update.value).inputs[0]);
        }
    }
    loop {
        match in_order(graph, lines, &steps) {
            Ok(arranged) => return arranged,
            // Two states that are each computed from the other's old value.
            Err(store) => {
                let new = steps.insert(graph.node(store).inputs[0]);
                assert!(new, "a write that reads no state waits for no other write");
            }
        }
    }
}

/// The order, or a write to a state that would have to come before itself.
fn in_order(
    graph: &Graph,
    lines: &[&NodeSchedule],
    steps: &FxHashSet<NodeId>,
) -> Result<Arranged, NodeId> {
    let outputs = graph.outputs().iter().map(|output| output.node);
    let stores = graph.updates().iter().map(|update| update.value);
    let starts = lines.iter().map(|line| line.node);
    let starts: Vec<NodeId> = starts.chain(outputs).chain(stores).collect();
    let needs = needs(graph, steps, &starts);
    let places: FxHashMap<NodeId, usize> = lines
        .iter()
        .enumerate()
        .map(|(at, line)| (line.node, at))
        .collect();
    let mut arranged = Arranged {
        order: Vec::with_capacity(needs.len()),
        plain: Vec::new(),
        moved: Vec::new(),
    };
    let mut done: FxHashSet<NodeId> = FxHashSet::default();
    let mut begun: FxHashSet<NodeId> = FxHashSet::default();
    for start in starts {
        let mut open = vec![(start, 0)];
        while let Some((node, at)) = open.pop() {
            if done.contains(&node) {
                continue;
            }
            if at == 0 && !begun.insert(node) {
                return Err(node);
            }
            if let Some(before) = needs[&node].get(at) {
                open.push((node, at + 1));
                open.push((*before, 0));
                continue;
            }
            done.insert(node);
            arranged.order.push(node);
            match (places.get(&node), places.get(&start)) {
                (None, _) => arranged.plain.push(node),
                (Some(own), Some(first)) if own > first => arranged.moved.push((node, start)),
                _ => {}
            }
        }
    }
    Ok(arranged)
}

/// By step: the steps that must run before it.
fn needs(
    graph: &Graph,
    steps: &FxHashSet<NodeId>,
    starts: &[NodeId],
) -> FxHashMap<NodeId, Vec<NodeId>> {
    let mut needs: FxHashMap<NodeId, Vec<NodeId>> = FxHashMap::default();
    // By state: who reads its old value, in the order in which they were found.
    let mut old: FxHashMap<NodeId, Vec<NodeId>> = FxHashMap::default();
    let mut open: Vec<NodeId> = starts.iter().rev().copied().collect();
    while let Some(step) = open.pop() {
        if needs.contains_key(&step) {
            continue;
        }
        let mut read = Vec::new();
        let mut seen: FxHashSet<NodeId> = FxHashSet::default();
        let mut inline: Vec<NodeId> = graph.node(step).inputs.iter().rev().copied().collect();
        while let Some(node) = inline.pop() {
            if !seen.insert(node) {
                continue;
            }
            if is_given(graph, node) {
                if matches!(graph.node(node).op, NodeOp::State) {
                    old.entry(node).or_default().push(step);
                }
            } else if steps.contains(&node) || !can_inline(graph, node) {
                read.push(node);
            } else {
                inline.extend(graph.node(node).inputs.iter().rev());
            }
        }
        open.extend(read.iter().rev());
        needs.insert(step, read);
    }
    for update in graph.updates() {
        let readers = old.get(&update.state).into_iter().flatten();
        let readers: Vec<NodeId> = readers
            .copied()
            .filter(|node| *node != update.value)
            .collect();
        needs.entry(update.value).or_default().extend(readers);
    }
    needs
}
