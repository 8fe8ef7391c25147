//! Bytes from beyond each cache.

use super::movement::LINE;
use super::nest::Nests;
use super::{Analysed, common};
use loopwright_arena::TiVec;
use loopwright_graph::NodeId;
use loopwright_looptree::Target;
use loopwright_looptree::{LoopTree, TreeRef};
use rustc_hash::FxHashMap;

/// How much of each cache a program can use before it loses what it needs again: caches do not drop exactly
/// what was used longest ago, and the last one serves all cores.
const USABLE: [f64; 3] = [0.75, 0.75, 0.5];

/// What comes from beyond one cache.
#[derive(Clone, Copy, Default)]
pub(super) struct Moved {
    pub(super) bytes: f64,
    /// How often it goes on elsewhere than behind what came before.
    pub(super) jumps: f64,
    /// The array with the most bytes.
    pub(super) mover: Option<NodeId>,
}

/// What all steps touch, and when.
pub(super) struct Traffic {
    /// Bytes of each cache that can be used.
    room: [f64; 3],
    /// Bytes that one round of a loop touches, by place, where several steps are inside it.
    rounds: TiVec<TreeRef, f64>,
    shared: TiVec<TreeRef, bool>,
    /// Bytes that were touched before an outermost loop, and by the whole program.
    before: FxHashMap<TreeRef, f64>,
    all: f64,
    /// The step that touched an array last.
    last: FxHashMap<NodeId, usize>,
}

impl Traffic {
    pub(super) fn new(
        target: &Target,
        tree: &LoopTree,
        nests: &Nests,
        steps: &[Analysed],
    ) -> Traffic {
        let mut rounds: TiVec<TreeRef, _> = vec![0.0; tree.len()].into();
        let mut shared: TiVec<TreeRef, _> = vec![false; tree.len()].into();
        let mut in_round: FxHashMap<(TreeRef, NodeId), f64> = FxHashMap::default();
        let mut in_root: FxHashMap<(TreeRef, NodeId), f64> = FxHashMap::default();
        let mut in_program: FxHashMap<NodeId, f64> = FxHashMap::default();
        let mut before = FxHashMap::default();
        let (mut clock, mut all) = (0.0, 0.0);
        for step in steps {
            before.entry(step.root).or_insert(clock);
            for (movement, footprints) in step.movements.iter().zip(&step.footprints) {
                let node = movement.node;
                clock += grow(
                    in_root.entry((step.root, node)).or_default(),
                    footprints[0].bytes,
                );
                all += grow(in_program.entry(node).or_default(), footprints[0].bytes);
                for (at, around) in step.chain.iter().enumerate() {
                    let Some(place) = around.place else { break };
                    if nests.steps_inside(place) < 2 {
                        break;
                    }
                    let known = in_round.entry((place, node)).or_default();
                    rounds[place] += grow(known, footprints[at + 1].bytes);
                    shared[place] = true;
                }
            }
        }
        let sizes = [
            f64::from(target.l1_bytes),
            f64::from(target.l2_bytes),
            target.l3_bytes as f64,
        ];
        Traffic {
            room: std::array::from_fn(|level| sizes[level] * USABLE[level]),
            rounds,
            shared,
            before,
            all,
            last: FxHashMap::default(),
        }
    }

    /// What a step brings from beyond each cache. Steps are asked for in order.
    pub(super) fn of(&mut self, steps: &[Analysed], at: usize) -> [Moved; 3] {
        let step = &steps[at];
        let chain = &step.chain;
        // What one round of each loop touches.
        let in_round = |loop_at: usize| {
            let place = chain[loop_at].place;
            match place {
                Some(place) if self.shared[place] => self.rounds[place],
                _ => {
                    let all = step.footprints.iter();
                    all.map(|footprints| footprints[loop_at + 1].bytes).sum()
                }
            }
        };
        let touched: smallvec::SmallVec<[f64; 8]> = (0..chain.len()).map(in_round).collect();
        // What lies one behind the other in all that the first-level cache sees at a time comes as one.
        let near = (0..chain.len()).find(|loop_at| touched[*loop_at] <= self.room[0]);
        let near = near.unwrap_or(chain.len().saturating_sub(1));
        let (mut found, mut most) = ([Moved::default(); 3], [0.0; 3]);
        for (movement, footprints) in step.movements.iter().zip(&step.footprints) {
            if movement.private {
                continue;
            }
            let depth = if movement.writes {
                step.written_in
            } else {
                chain.len()
            };
            let since = self.since_last(steps, at, movement.node, &touched);
            for (level, room) in self.room.into_iter().enumerate() {
                if since <= room {
                    continue;
                }
                // The outermost loop whose rounds find what the ones before have brought.
                let keeps = (0..depth).find(|loop_at| {
                    let crowded = footprints[loop_at + 1].crowded.get(level);
                    touched[*loop_at] <= room && crowded.is_none_or(|crowded| *crowded <= room)
                });
                let keeps = keeps.unwrap_or(depth.min(chain.len().saturating_sub(1)));
                let executions: f64 = chain[..keeps].iter().map(|around| around.rounds).product();
                let directions = if movement.writes { 2.0 } else { 1.0 };
                let moved = executions * footprints[keeps].bytes * directions;
                found[level].bytes += moved;
                found[level].jumps += moved / footprints[near.min(depth)].run.max(LINE);
                if moved > most[level] {
                    (most[level], found[level].mover) = (moved, Some(movement.node));
                }
            }
        }
        for movement in &step.movements {
            self.last.insert(movement.node, at);
        }
        found
    }

    /// Bytes that were touched since an array was touched last.
    fn since_last(&self, steps: &[Analysed], at: usize, node: NodeId, touched: &[f64]) -> f64 {
        let step = &steps[at];
        let Some(last) = self.last.get(&node).map(|last| &steps[*last]) else {
            return self.all;
        };
        match common(&last.chain, &step.chain) {
            0 => self.before[&step.root] - self.before[&last.root],
            // In the same round of the innermost loop around both.
            loops => touched[loops - 1],
        }
    }
}

/// Raises `known` to `bytes` where that is more, and gives the difference.
fn grow(known: &mut f64, bytes: f64) -> f64 {
    let more = (bytes - *known).max(0.0);
    *known += more;
    more
}
