//! A place that stays where it is while the schedule around it changes.

use crate::tree::{LoopTree, TreeRef};
use loopwright_graph::NodeId;

/// A place in a schedule: one of a step's loops, or the step itself. A loop that several steps share has
/// a cursor for each of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Cursor {
    /// The step.
    pub node: NodeId,
    /// How many of its loops are around the place; all of them: the step itself.
    pub depth: usize,
}

impl Cursor {
    /// The cursor at a place of a tree; for a loop, that of the first step inside.
    pub fn at(tree: &LoopTree, place: TreeRef) -> Option<Cursor> {
        let node = *tree.leaves(place).first()?;
        let depth = tree.ancestors(place).len();
        Some(Cursor { node, depth })
    }

    /// Its place in the tree of the schedule.
    pub fn place(self, tree: &LoopTree) -> Option<TreeRef> {
        let leaf = tree.find(self.node)?;
        let around = tree.ancestors(leaf);
        if self.depth == around.len() {
            return Some(leaf);
        }
        around.get(self.depth).copied()
    }

    /// The next place, outer before inner, in the order in which they run; `None` after the last.
    pub fn next(self, tree: &LoopTree) -> Option<Cursor> {
        let places = places(tree);
        let here = self.place(tree)?;
        let at = places.iter().position(|place| *place == here)?;
        Cursor::at(tree, *places.get(at + 1)?)
    }

    /// The place before; `None` at the first.
    pub fn previous(self, tree: &LoopTree) -> Option<Cursor> {
        let places = places(tree);
        let here = self.place(tree)?;
        let at = places.iter().position(|place| *place == here)?;
        Cursor::at(tree, *places.get(at.checked_sub(1)?)?)
    }
}

fn places(tree: &LoopTree) -> Vec<TreeRef> {
    let mut places = Vec::with_capacity(tree.len());
    tree.walk(&mut |place, _| places.push(place));
    places
}
