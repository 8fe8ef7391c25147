//! From keys to mutations.

use super::{Editor, Mode, Tone};
use crate::menu::{Item, Menu};
use crate::scene::loop_name;
use loopwright::graph::NodeId;
use loopwright::looptree::Plan;
use loopwright::looptree::{
    Annotation, LoopName, LoopSpec, Mutation, NodeSchedule, for_sharers, print_mutation,
};

impl Editor {
    /// The schedule of the step that the cursor is in.
    fn step(&self) -> Option<&NodeSchedule> {
        self.plan().schedule().step(self.cursor.node)
    }

    /// The loop that the cursor is at; says where it is at none.
    pub(super) fn here(&mut self) -> Option<LoopSpec> {
        let spec = self.step()?.loops.get(self.cursor.depth).copied();
        if spec.is_none() {
            let name = self.plan().graph().node_name(self.cursor.node);
            self.say(
                Tone::Refusal,
                format!("`{name}` is a step and no loop; ← goes to the loop around it"),
            );
        }
        spec
    }

    /// The steps inside the place that the cursor is at.
    fn steps_here(&self) -> Vec<NodeId> {
        let tree = self.plan().tree();
        let place = self.cursor.place(tree);
        place.map_or_else(Vec::new, |place| tree.leaves(place).to_vec())
    }

    /// Makes a change, for all steps that share the loop it is about.
    pub(super) fn change(&mut self, mutation: &Mutation) {
        let plan = self.plan();
        match for_sharers(plan.graph(), plan.schedule(), mutation) {
            Ok(mutations) => self.apply(&mutations),
            Err(error) => self.say(Tone::Refusal, error.to_string()),
        }
    }

    /// Makes changes one after the other, all or none.
    pub(super) fn apply(&mut self, mutations: &[Mutation]) {
        let mut plan = self.plan().clone();
        let mut cursor = Some(self.cursor);
        let mut reassociates = false;
        for mutation in mutations {
            match plan.mutate(mutation) {
                Ok(change) => {
                    cursor = cursor.and_then(|cursor| change.follow(cursor));
                    reassociates |= change.reassociates;
                    plan = change.plan;
                }
                Err(error) => {
                    let mut text = error.to_string();
                    if mutations.len() > 1 {
                        text += &format!(
                            " (the change is made for all {} steps that share the loop; \
                             `:` changes one of them alone)",
                            mutations.len()
                        );
                    }
                    return self.say(Tone::Refusal, text);
                }
            }
        }
        let what = self.described(mutations);
        if reassociates && self.setting.strict {
            let text = format!(
                "`{what}` is refused: a sum of floats would be added up in another order, and in \
                 strict mode every rounding stays where it is"
            );
            return self.say(Tone::Refusal, text);
        }
        let text = match reassociates {
            true => format!("{what}; sums are added in another order now, and round differently"),
            false => what.clone(),
        };
        self.set_plan(plan, cursor, what);
        self.say(Tone::Done, text);
    }

    /// Changes in words.
    fn described(&self, mutations: &[Mutation]) -> String {
        let graph = self.plan().graph();
        let Some((first, rest)) = mutations.split_first() else {
            return String::new();
        };
        let mut text = print_mutation(graph, first);
        if !rest.is_empty() {
            let names: Vec<String> = rest.iter().map(|m| graph.node_name(m.node())).collect();
            text += &format!(", and so for {}", names.join(", "));
        }
        text
    }

    pub(super) fn merge(&mut self) {
        let Some(here) = self.here() else { return };
        let (node, depth) = (self.cursor.node, self.cursor.depth);
        let Some(step) = self.step() else { return };
        let same = |spec: &&LoopSpec| spec.dim == here.dim;
        let inner = step.loops[depth + 1..].iter().find(same);
        let outer = step.loops[..depth].iter().rev().find(same);
        // The inner one of two is merged with the outer; with none, the refusal says so.
        let outermost = match (inner, outer) {
            (None, Some(outer)) => *outer,
            _ => here,
        };
        let name = LoopName::from(outermost);
        self.change(&Mutation::Merge { node, name });
    }

    pub(super) fn swap_out(&mut self) {
        let Some(here) = self.here() else { return };
        let around = self.cursor.depth.checked_sub(1);
        let around = around.and_then(|around| Some(self.step()?.loops[around]));
        match around {
            Some(outer) => self.swap(outer, here),
            None => {
                let name = loop_name(self.plan().graph(), &here);
                self.say(Tone::Refusal, format!("`{name}` is the outermost loop"));
            }
        }
    }

    pub(super) fn swap_in(&mut self) {
        let Some(here) = self.here() else { return };
        let depth = self.cursor.depth;
        let inside = self.step().and_then(|step| step.loops.get(depth + 1));
        match inside.copied() {
            Some(inner) => self.swap(here, inner),
            None => {
                let name = loop_name(self.plan().graph(), &here);
                self.say(Tone::Refusal, format!("`{name}` is the innermost loop"));
            }
        }
    }

    fn swap(&mut self, outer: LoopSpec, inner: LoopSpec) {
        self.change(&Mutation::Swap {
            node: self.cursor.node,
            outer: outer.into(),
            inner: inner.into(),
        });
    }

    pub(super) fn fuse(&mut self) {
        let node = self.cursor.node;
        self.change(&Mutation::Fuse { node });
    }

    pub(super) fn unfuse(&mut self) {
        let node = self.cursor.node;
        self.change(&Mutation::Unfuse { node });
    }

    /// Gives the loop an annotation, or takes it away where it has it.
    pub(super) fn toggle(&mut self, annotation: Annotation) {
        let Some(here) = self.here() else { return };
        let annotation = match here.annotation == annotation {
            true => Annotation::Serial,
            false => annotation,
        };
        self.change(&Mutation::Annotate {
            node: self.cursor.node,
            name: here.into(),
            annotation,
        });
    }

    pub(super) fn choose_annotation(&mut self) {
        let Some(here) = self.here() else { return };
        let node = self.cursor.node;
        let current = here.annotation;
        let items = Annotation::ALL.map(|annotation| Item {
            text: annotation.name().to_owned(),
            note: if annotation == current {
                "as it is"
            } else {
                ""
            }
            .to_owned(),
            mutations: vec![Mutation::Annotate {
                node,
                name: here.into(),
                annotation,
            }],
            here: true,
        });
        let name = loop_name(self.plan().graph(), &here);
        let menu = Menu::new(format!("how the loop {name} runs"), items.to_vec());
        let menu = menu.marking(|item| item.text == current.name());
        self.mode = Mode::Menu(menu);
    }

    /// The nodes that a step computes inline.
    fn inline_nodes(&self, node: NodeId) -> Vec<NodeId> {
        let (graph, schedule) = (self.plan().graph(), self.plan().schedule());
        let mut found = Vec::new();
        let mut open = graph.node(node).inputs.to_vec();
        while let Some(input) = open.pop() {
            let inline =
                !loopwright::looptree::is_given(graph, input) && schedule.step(input).is_none();
            if inline && !found.contains(&input) {
                found.push(input);
                open.extend(&graph.node(input).inputs);
            }
        }
        found
    }

    pub(super) fn inline_or_store(&mut self) {
        let node = self.cursor.node;
        let inside = self.inline_nodes(node);
        let fits = |mutation: &Mutation| match mutation {
            Mutation::Inline { node: inlined } => *inlined == node,
            Mutation::Store { node: stored, .. } => inside.contains(stored),
            _ => false,
        };
        let mut mutations = self.plan().legal();
        mutations.retain(fits);
        match mutations.as_slice() {
            // The refusal says why not.
            [] => self.change(&Mutation::Inline { node }),
            [one] => self.change(&one.clone()),
            _ => {
                let name = self.plan().graph().node_name(node);
                let items = self.items(mutations, |_| true);
                self.mode = Mode::Menu(Menu::new(format!("what {name} computes"), items));
            }
        }
    }

    /// Mutations as lines of a menu.
    fn items(&self, mutations: Vec<Mutation>, here: impl Fn(&Mutation) -> bool) -> Vec<Item> {
        let graph = self.plan().graph();
        let item = |mutation: Mutation| Item {
            text: print_mutation(graph, &mutation),
            note: match &mutation {
                Mutation::Store { node, .. } => expression(self.plan(), *node),
                _ => String::new(),
            },
            here: here(&mutation),
            mutations: vec![mutation],
        };
        mutations.into_iter().map(item).collect()
    }

    pub(super) fn choose_legal(&mut self) {
        let steps = self.steps_here();
        let name = self.step().and_then(|step| {
            let spec = step.loops.get(self.cursor.depth)?;
            Some(LoopName::from(*spec))
        });
        let inside = self.inline_nodes(self.cursor.node);
        let here = |mutation: &Mutation| {
            let node = mutation.node();
            match (name, loops_of(mutation)) {
                // A loop's own; those of one step stand for those of all that share it.
                (Some(name), Some(loops)) => node == self.cursor.node && loops.contains(&name),
                (Some(_), None) => steps.contains(&node),
                (None, _) => node == self.cursor.node || inside.contains(&node),
            }
        };
        let items = self.items(self.plan().legal(), here);
        match items.is_empty() {
            true => self.say(Tone::Refusal, "no change is legal"),
            false => self.mode = Mode::Menu(Menu::new("legal changes", items)),
        }
    }

    pub(super) fn choose_delegate(&mut self) {
        let steps = self.steps_here();
        let schedule = self.plan().schedule();
        let current = self.step().and_then(|step| step.delegate.clone());
        let for_all = |mutation: &dyn Fn(NodeId) -> Mutation,
                       fits: &dyn Fn(&NodeSchedule) -> bool| {
            let steps = steps
                .iter()
                .filter(|node| schedule.step(**node).is_some_and(fits));
            steps.map(|node| mutation(*node)).collect::<Vec<_>>()
        };
        let mut items = vec![Item {
            text: "own".to_owned(),
            note: format!("runs on {}", self.setting.device),
            mutations: for_all(&|node| Mutation::Undelegate { node }, &|step| {
                step.delegate.is_some()
            }),
            here: true,
        }];
        items.extend(self.setting.backends.iter().map(|name| Item {
            text: name.clone(),
            note: String::new(),
            mutations: for_all(
                &|node| Mutation::Delegate {
                    node,
                    backend: name.as_str().into(),
                },
                &|step| step.delegate.as_deref() != Some(name),
            ),
            here: true,
        }));
        let menu = Menu::new("the backend that runs it", items);
        let marked = current.as_deref().unwrap_or("own").to_owned();
        self.mode = Mode::Menu(menu.marking(|item| item.text == marked));
    }

    pub(super) fn move_up(&mut self) {
        self.move_by(|steps, first, last| {
            let other = *steps.get(first.checked_sub(1)?)?;
            Some(match first == last {
                true => Mutation::MoveBefore {
                    node: steps[first],
                    other,
                },
                // Several go up where the one above goes down past them.
                false => Mutation::MoveAfter {
                    node: other,
                    other: steps[last],
                },
            })
        });
    }

    pub(super) fn move_down(&mut self) {
        self.move_by(|steps, first, last| {
            let other = *steps.get(last + 1)?;
            Some(match first == last {
                true => Mutation::MoveAfter {
                    node: steps[first],
                    other,
                },
                false => Mutation::MoveBefore {
                    node: other,
                    other: steps[first],
                },
            })
        });
    }

    fn move_by(&mut self, mutation: impl Fn(&[NodeId], usize, usize) -> Option<Mutation>) {
        let here = self.steps_here();
        let steps: Vec<NodeId> = self
            .plan()
            .schedule()
            .steps
            .iter()
            .map(|s| s.node)
            .collect();
        let at = |node: Option<&NodeId>| steps.iter().position(|step| Some(step) == node);
        let (Some(first), Some(last)) = (at(here.first()), at(here.last())) else {
            return;
        };
        match mutation(&steps, first, last) {
            Some(mutation) => self.change(&mutation),
            None => self.say(Tone::Refusal, "there is no step beyond it"),
        }
    }

    /// Takes a loop or a step to the place of another one.
    pub(super) fn drop_onto(&mut self, from: usize, to: usize) {
        let (Some(from_row), Some(to_row)) = (self.scene.rows.get(from), self.scene.rows.get(to))
        else {
            return;
        };
        let (from_place, to_place) = (from_row.place, to_row.place);
        let tree = self.plan().tree();
        let mutations = match (tree.spec(from_place), tree.spec(to_place)) {
            (None, None) => {
                let (node, other) = (tree.leaves(from_place)[0], tree.leaves(to_place)[0]);
                vec![match from < to {
                    true => Mutation::MoveAfter { node, other },
                    false => Mutation::MoveBefore { node, other },
                }]
            }
            (Some(_), Some(_)) => {
                let (outer, inner) = match from < to {
                    true => (from_place, to_place),
                    false => (to_place, from_place),
                };
                if !tree.ancestors(inner).contains(&outer) {
                    let text = "a loop goes to the place of another one around it or inside it";
                    return self.say(Tone::Refusal, text);
                }
                let depths = (
                    tree.ancestors(from_place).len(),
                    tree.ancestors(to_place).len(),
                );
                reordered(self.plan(), &tree.leaves(inner), depths)
            }
            _ => {
                let text = "a loop is dragged onto a loop, a step onto a step";
                return self.say(Tone::Refusal, text);
            }
        };
        self.apply(&mutations);
    }
}

/// The mutations that take the loop at one depth to another depth, in each of these steps.
fn reordered(plan: &Plan, nodes: &[NodeId], (from, to): (usize, usize)) -> Vec<Mutation> {
    let steps = nodes.iter().filter_map(|node| plan.schedule().step(*node));
    let mutations = steps.map(|step| {
        let mut loops = step.loops.clone();
        let moved = loops.remove(from);
        loops.insert(to, moved);
        Mutation::Reorder {
            node: step.node,
            loops: loops.into_iter().map(LoopName::from).collect(),
        }
    });
    mutations.collect()
}

/// The loops that a mutation is about; `None` where it is about a step as a whole.
fn loops_of(mutation: &Mutation) -> Option<Vec<LoopName>> {
    match mutation {
        Mutation::Split { name, .. }
        | Mutation::Merge { name, .. }
        | Mutation::Annotate { name, .. } => Some(vec![*name]),
        Mutation::Swap { outer, inner, .. } => Some(vec![*outer, *inner]),
        _ => None,
    }
}

/// A node's definition, short.
fn expression(plan: &Plan, node: NodeId) -> String {
    let graph = plan.graph();
    let parts = graph.node(node);
    let inputs: Vec<String> = parts
        .inputs
        .iter()
        .map(|input| graph.node_name(*input))
        .collect();
    let op = match &parts.op {
        loopwright::graph::NodeOp::Map(op) => op.info().name.to_owned(),
        other => {
            let text = format!("{other:?}").to_lowercase();
            let end = text.find(|c: char| !c.is_alphanumeric());
            text[..end.unwrap_or(text.len())].to_owned()
        }
    };
    format!("{op}({})", inputs.join(", "))
}
