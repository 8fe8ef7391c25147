//! Loops whose rounds threads share.
//!
//! Parallel loops right inside each other are one: threads share the rounds of all of them, so that there are enough
//! where the outer loop has few. A shorter last round is one of the rounds, not code behind them that all threads but
//! one wait for.

use crate::error::LowerError;
use crate::index::Place;
use crate::nest::{Body, Extent};
use crate::program::Lowering;
use loopwright_kernel::{LoopKind, Value};
use loopwright_looptree::{Annotation, LoopSpec, TreeNode, TreeRef};
use smallvec::SmallVec;

/// A loop whose rounds are shared.
#[derive(Clone, Copy)]
struct Level {
    place: TreeRef,
    spec: LoopSpec,
    /// How many elements it covers.
    covered: Extent,
    /// The number of the current round.
    round: Value,
}

impl<'a> Lowering<'a> {
    /// The loops right inside a parallel loop that threads share the rounds of with it, outermost first; the loop
    /// itself is not among them.
    pub(crate) fn rounds_shared_with(&self, place: TreeRef) -> SmallVec<[TreeRef; 2]> {
        let mut found = SmallVec::new();
        let mut outer = place;
        while let [inner] = self.tree.children(outer)
            && let TreeNode::Loop { spec, .. } = self.tree.node(*inner)
            && spec.annotation == Annotation::Parallel
            && self.loop_kind(*inner, *spec) == LoopKind::Parallel
            && !self.scopes.contains_key(&Some(outer))
            && !self.folds.contains_key(inner)
            && !self.inner_folds.contains_key(inner)
            && self.covers_the_same(*inner, *spec, place)
        {
            found.push(*inner);
            outer = *inner;
        }
        found
    }

    /// Whether a loop covers the same number of elements in every round of the loops around it, up to `outermost`.
    fn covers_the_same(&self, place: TreeRef, spec: LoopSpec, outermost: TreeRef) -> bool {
        let around = self.tree.ancestors(place);
        let mut along = around.iter().filter(|around| {
            let around = self.tree.spec(**around);
            around.is_some_and(|around| around.dim == spec.dim)
        });
        match (along.next(), along.next()) {
            (None, _) => true,
            (Some(only), None) => {
                let step = self.tree.spec(*only).map_or(1, |spec| spec.step);
                let size = self.graph.dim(spec.dim).size.as_const();
                !self.tree.is_inside(*only, outermost) || size.is_some_and(|size| size % step == 0)
            }
            (Some(_), Some(_)) => false,
        }
    }

    /// Whether a parallel loop has a shorter last round whose code is not that of the others.
    pub(crate) fn has_other_tail(&self, place: TreeRef, spec: LoopSpec) -> bool {
        let size = self.graph.dim(spec.dim).size.as_const();
        let covered = match self.extent[spec.dim] {
            Some(Extent::Const(count)) => Some(count),
            Some(Extent::Dynamic(_)) => None,
            None => size,
        };
        spec.step > 1
            && covered.is_none_or(|count| count > spec.step && count % spec.step != 0)
            && self.wants_constant_blocks(place, spec.dim)
    }

    /// Runs `body` once for every round of a parallel loop and of those right inside it.
    pub(crate) fn shared_rounds(
        &mut self,
        places: &[TreeRef],
        body: Body<'_, 'a>,
    ) -> Result<(), LowerError> {
        let one = self.builder.const_i64(1);
        let zero = self.builder.const_i64(0);
        let mut levels: SmallVec<[Level; 4]> = SmallVec::new();
        let mut all = one;
        for place in places {
            let spec = *self
                .tree
                .spec(*place)
                .expect("a place whose rounds are shared is a loop");
            let around = levels.iter().find(|around| around.spec.dim == spec.dim);
            let covered = match (around, self.extent[spec.dim]) {
                (Some(around), _) => Extent::Const(around.spec.step),
                (None, Some(extent)) => extent,
                (None, None) => self.size_extent(spec.dim)?,
            };
            self.note_annotation(*place, spec, covered);
            let elements = match covered {
                Extent::Const(count) => self.builder.const_i64(count.max(0)),
                Extent::Dynamic(count) => count,
            };
            let up = self.builder.const_i64(spec.step - 1);
            let step = self.builder.const_i64(spec.step);
            let elements = self.builder.add_i64(elements, up);
            let round = self.builder.floor_div_i64(elements, step);
            all = self.builder.mul_i64(all, round);
            levels.push(Level {
                place: *place,
                spec,
                covered,
                round,
            });
        }
        let kind = LoopKind::Parallel;
        let mut number = self.builder.begin_for(zero, all, one, kind, "round");
        for level in levels.iter_mut().rev() {
            // What was the count of rounds becomes the number of one of them.
            let rounds = std::mem::replace(&mut level.round, number);
            if level.place != places[0] {
                level.round = self.builder.mod_i64(number, rounds);
                number = self.builder.floor_div_i64(number, rounds);
            }
        }
        let result = self.round_of(&levels, body);
        self.builder.end_block();
        result
    }

    /// One round of each of the loops.
    fn round_of(&mut self, levels: &[Level], body: Body<'_, 'a>) -> Result<(), LowerError> {
        let Some((level, inner)) = levels.split_first() else {
            return body(self);
        };
        let Level {
            place,
            spec,
            covered,
            round,
        } = *level;
        let dim = spec.dim;
        let (index, extent) = (self.index[dim], self.extent[dim]);
        let start = index.unwrap_or(Place::ZERO);
        let step = self.builder.const_i64(spec.step);
        let done = self.builder.mul_i64(round, step);
        let at = self.add_places(start, Place::value(done));
        let mut body = |lowering: &mut Self| lowering.round_of(inner, body);
        let full = Extent::Const(spec.step);
        let result = match covered {
            Extent::Const(count) if count % spec.step == 0 => {
                self.round(place, spec, at, full, &mut body)
            }
            _ if spec.step == 1 => self.round(place, spec, at, full, &mut body),
            Extent::Const(count) if count < spec.step => {
                self.round(place, spec, at, covered, &mut body)
            }
            covered => {
                let elements = match covered {
                    Extent::Const(count) => self.builder.const_i64(count),
                    Extent::Dynamic(count) => count,
                };
                let left = self.builder.sub_i64(elements, done);
                if self.wants_constant_blocks(place, spec.dim) {
                    let is_full = self.builder.ge_i64(left, step);
                    self.builder.begin_if(is_full);
                    let result = self.round(place, spec, at, full, &mut body);
                    self.builder.begin_else();
                    let result = result.and_then(|()| match covered {
                        Extent::Const(count) => {
                            let tail = Extent::Const(count % spec.step);
                            self.round(place, spec, at, tail, &mut body)
                        }
                        Extent::Dynamic(_) => self.last_round(place, spec, at, left, &mut body),
                    });
                    self.builder.end_block();
                    result
                } else {
                    let extent = self.builder.min_i64(left, step);
                    self.round(place, spec, at, Extent::Dynamic(extent), &mut body)
                }
            }
        };
        self.index[dim] = index;
        self.extent[dim] = extent;
        self.blocks.remove(&place);
        result
    }
}
