//! Reductions in parts that threads take: where a reduction has few elements and folds many.
//!
//! How many parts there are does not depend on how many threads, so that neither does the result.

use crate::prepare::Lanes;
use crate::schedule::{Order, Work, typical};
use loopwright_graph::{DimId, Keep, MAX_STAGE, NodeId, NodeOp};
use loopwright_looptree::ScheduleError;
use loopwright_looptree::{Edit, loop_dims};
use std::sync::Arc;

/// Parts of a reduction at least: enough for threads to find some more when they are done with one.
const PARTS: i64 = 32;

/// Parts at most, where so many divide what is folded and fewer do not.
const MOST_PARTS: i64 = 2 * PARTS;

/// Elements of a part at least: it takes some microseconds to fold them.
const PART_ELEMENTS: i64 = 1 << 13;

/// How many elements at least are folded for each element of a part's result, which is folded once more.
const PART_DEPTH: i64 = 16;

/// Elements along the vectors that a thread can take for itself without jumping through memory.
const WIDE: i64 = 1024;

impl Work<'_> {
    /// Puts reductions in parts that have too few elements for threads to share and fold many.
    pub(crate) fn part_reductions(&mut self) -> Result<(), ScheduleError> {
        if self.target.threads < 2 {
            return Ok(());
        }
        let steps = self.choose_steps()?;
        for node in &steps.order {
            let Some((dim, count)) = self.worth_parts(*node) else {
                continue;
            };
            let reads = self.reads(*node, &steps)?;
            let Some(Lanes::Along(vector)) = self.lanes_of(*node, &reads, &steps) else {
                continue;
            };
            let dims = loop_dims(self.graph(), *node);
            // A contraction has tiles that threads can share.
            if self.reused_dim(*node, &dims, vector, &reads).is_some() {
                continue;
            }
            let name = self.editor.free_name(&format!("block{}", node.0));
            let edit = Edit::Stage {
                name: Arc::from(name.as_str()),
                node: *node,
                dim,
                count,
                keep: Keep::Blocks,
            };
            self.edit(edit, |editor| {
                editor.stage(*node, dim, count, Keep::Blocks, &name)
            })?;
        }
        Ok(())
    }

    /// The dimension of a reduction that is worth parts, and how many elements of it a part has.
    fn worth_parts(&self, node: NodeId) -> Option<(DimId, i64)> {
        let graph = self.graph();
        let parts = graph.node(node);
        let NodeOp::Reduce { acc, over, .. } = &parts.op else {
            return None;
        };
        if acc.is_float() && self.order == Order::Kept {
            return None;
        }
        let size = |dim| typical(graph, &graph.dim(dim).size).max(1);
        let product = |dims: &[_]| {
            dims.iter()
                .map(|dim| size(*dim))
                .fold(1, i64::saturating_mul)
        };
        let (last, outer) = parts.dims.split_last()?;
        // Threads can share the elements of the result themselves.
        let rounds = product(outer).saturating_mul(size(*last) / WIDE);
        let folded = product(over);
        let all = product(&parts.dims).saturating_mul(folded);
        if rounds >= PARTS || folded < PARTS * PART_DEPTH || all < PARTS * PART_ELEMENTS {
            return None;
        }
        let dim = over.iter().copied().find(|dim| {
            let size = graph.dim(*dim).size.as_const();
            size.is_some_and(|size| size >= 2 * PARTS)
        })?;
        let size = size(dim);
        // More parts where so few would be longer than a stage can be.
        let even = |parts: &i64| size % parts == 0 && size / parts <= MAX_STAGE;
        let parts = (PARTS..=MOST_PARTS).find(even);
        let parts = parts.unwrap_or_else(|| PARTS.max(size / MAX_STAGE + 1));
        Some((dim, size / parts))
    }
}
