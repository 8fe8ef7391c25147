//! What a step reads and writes, how that moves with its loops, and how many cache lines it covers.

use super::nest::Chain;
use loopwright_arena::TiSlice;
use loopwright_graph::{DimId, Graph, NodeId, SymbolInfo};
use loopwright_looptree::Env;
use loopwright_looptree::{self as looptree, Allocation, PRIVATE_BYTES, Storage};
use loopwright_symbolic::{Expr, Symbol, affine};
use smallvec::SmallVec;

/// Bytes of a cache line.
pub(super) const LINE: f64 = 64.0;

/// Bytes of one way of the first-level cache: addresses that far apart compete for the same places. It is
/// a page on every machine that looks the cache up before the address is translated.
const L1_WAY: i64 = 4 << 10;

/// How an access moves with a loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Along {
    /// It stays.
    Still,
    /// To the next element.
    Next,
    /// To somewhere else.
    Elsewhere,
}

/// An array that a step reads or writes.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Movement {
    pub(super) node: NodeId,
    /// Bytes of an element.
    pub(super) width: f64,
    /// Places that are read, equal but for a constant.
    pub(super) reads: f64,
    pub(super) writes: bool,
    /// Whether it lies in registers or on the stack.
    pub(super) private: bool,
    /// Whether a branch stands before it.
    pub(super) guarded: bool,
    axes: SmallVec<[Axis; 4]>,
}

/// The index along one axis of an array: a dimension's elements, or blocks of them.
#[derive(Clone, PartialEq, Debug)]
struct Axis {
    dim: DimId,
    /// What it grows by with each loop's dimension.
    terms: SmallVec<[(DimId, f64); 2]>,
    /// Whether it depends on data.
    by_data: bool,
    /// Whether it is no sum of multiples of indices; the terms are means then.
    uneven: bool,
    /// Elements of the dimension in one place of the axis.
    step: f64,
    /// Places.
    extent: f64,
    /// Bytes from one to the next.
    stride: f64,
}

/// What an array takes of the caches while some loops run.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Footprint {
    /// Bytes of all lines.
    pub(super) bytes: f64,
    /// Bytes that lie one behind the other.
    pub(super) run: f64,
    /// Bytes of a first- and a second-level cache that it takes to hold them, where they compete for
    /// few places.
    pub(super) crowded: [f64; 2],
}

/// Finds out how accesses move: sizes and where arrays lie.
pub(super) struct Mover<'a> {
    pub(super) graph: &'a Graph,
    /// Every dimension's size.
    pub(super) sizes: &'a TiSlice<DimId, i64>,
    /// Values of size and static symbols.
    pub(super) values: &'a dyn Fn(Symbol) -> Option<i64>,
    pub(super) l2_way: i64,
}

impl Mover<'_> {
    /// An access to `node`; `index` says where, over the loops' indices. Without an allocation, it is given
    /// from outside, and all of it is there.
    pub(super) fn movement(
        &self,
        node: NodeId,
        allocation: Option<&Allocation>,
        index: &dyn Fn(DimId) -> Option<Expr>,
    ) -> Movement {
        let parts = self.graph.node(node);
        let width = parts.dtype.bytes() as f64;
        let laid = match allocation {
            Some(allocation) => allocation.axes.clone(),
            None => looptree::Axis::row_major(&parts.dims),
        };
        let mut axes: SmallVec<[Axis; 4]> = SmallVec::new();
        for along in &laid {
            let held = allocation.and_then(|allocation| {
                let at = allocation.dims.iter().position(|dim| *dim == along.dim)?;
                allocation.extents.get(at)
            });
            let covered = match (along.outer, held) {
                (Some(outer), _) => outer as f64,
                (None, Some(extent)) => self.value(extent),
                (None, None) => self.sizes[along.dim] as f64,
            };
            let step = along.step.max(1) as f64;
            let mut axis = Axis {
                dim: along.dim,
                terms: SmallVec::new(),
                by_data: false,
                uneven: false,
                step,
                extent: (covered / step).ceil().max(1.0),
                stride: width,
            };
            match index(along.dim) {
                Some(expr) => self.terms(&expr, &mut axis),
                None => axis.by_data = true,
            }
            axes.push(axis);
        }
        let mut stride = width;
        for axis in axes.iter_mut().rev() {
            axis.stride = stride;
            stride *= axis.extent;
        }
        let storage = allocation.map(|allocation| allocation.storage);
        Movement {
            node,
            width,
            reads: 0.0,
            writes: false,
            private: storage == Some(Storage::Private),
            guarded: false,
            axes,
        }
    }

    /// The result of a step, written at the loops' indices.
    pub(super) fn result(&self, node: NodeId, allocation: Option<&Allocation>) -> Movement {
        self.movement(node, allocation, &|dim| {
            Some(Expr::symbol(self.graph.dim(dim).index))
        })
    }

    /// The running values of a step that folds: a block of their own, as large as the loops inside the
    /// outermost folding one cover.
    pub(super) fn running_values(&self, node: NodeId, chain: &Chain) -> Movement {
        let mut running = self.result(node, None);
        let outermost = chain.iter().position(|around| around.carried);
        let inside = &chain[outermost.unwrap_or(0)..];
        let mut stride = running.width;
        for axis in running.axes.iter_mut().rev() {
            let covering = inside.iter().filter(|around| around.dim == axis.dim);
            axis.extent = covering.map(|around| around.rounds).product();
            axis.stride = stride;
            stride *= axis.extent;
        }
        running.private = stride <= PRIVATE_BYTES as f64;
        running
    }

    /// Something that is read.
    pub(super) fn read(
        &self,
        node: NodeId,
        allocation: Option<&Allocation>,
        env: &Env,
        guarded: bool,
    ) -> Movement {
        let mut movement = self.movement(node, allocation, &|dim| env.get(&dim).cloned());
        movement.reads = 1.0;
        movement.guarded = guarded;
        movement
    }

    fn value(&self, expr: &Expr) -> f64 {
        expr.as_const()
            .or_else(|| expr.evaluate(self.values).ok())
            .unwrap_or(1) as f64
    }

    fn terms(&self, expr: &Expr, axis: &mut Axis) {
        let dim_of = |symbol: Symbol| match self.graph.symbol(symbol) {
            SymbolInfo::Index(dim) => Some(*dim),
            SymbolInfo::Size { .. } | SymbolInfo::Static { .. } => None,
        };
        if let Some(symbol) = expr.as_symbol() {
            axis.terms.extend(dim_of(symbol).map(|dim| (dim, 1.0)));
            return;
        }
        if expr.as_const().is_some() {
            return;
        }
        let all = expr.symbols();
        let indices: SmallVec<[(Symbol, DimId); 4]> = all
            .into_iter()
            .filter_map(|symbol| Some((symbol, dim_of(symbol)?)))
            .collect();
        let symbols: SmallVec<[Symbol; 4]> = indices.iter().map(|(symbol, _)| *symbol).collect();
        if let Some(form) = affine(expr, &symbols) {
            for (symbol, dim) in &indices {
                if let Some(coefficient) = form.coefficients.get(symbol) {
                    axis.terms.push((*dim, self.value(coefficient).abs()));
                }
            }
            return;
        }
        // How much it grows from one end to the other.
        axis.uneven = true;
        for (symbol, dim) in &indices {
            let last = (self.sizes[*dim] - 1).max(1);
            let at = |value: i64| {
                expr.evaluate(&|found| match dim_of(found) {
                    Some(_) if found == *symbol => Some(value),
                    Some(_) => Some(0),
                    None => (self.values)(found),
                })
            };
            let growth = match (at(0), at(last)) {
                (Ok(first), Ok(end)) => (end - first).abs() as f64 / last as f64,
                _ => 1.0,
            };
            axis.terms.push((*dim, growth.max(1.0 / last as f64)));
        }
    }
}

impl Movement {
    /// Whether two accesses are to the same array and move in the same way.
    pub(super) fn moves_like(&self, other: &Movement) -> bool {
        self.node == other.node && self.axes == other.axes
    }

    /// Whether it moves with a dimension's index.
    pub(super) fn moves_with(&self, dim: DimId) -> bool {
        self.axes
            .iter()
            .any(|axis| axis.by_data || axis.terms.iter().any(|(found, _)| *found == dim))
    }

    /// How it moves with a dimension's index.
    pub(super) fn along(&self, dim: DimId) -> Along {
        let mut bytes = 0.0;
        for axis in &self.axes {
            if axis.by_data {
                return Along::Elsewhere;
            }
            let Some((_, by)) = axis.terms.iter().find(|(found, _)| *found == dim) else {
                continue;
            };
            if axis.uneven {
                return Along::Elsewhere;
            }
            // The next element is in the same block, mostly, and the same place where one is held at a time.
            if axis.extent > 1.0 && axis.step == 1.0 {
                bytes += by * axis.stride;
            }
        }
        match bytes {
            0.0 => Along::Still,
            bytes if bytes == self.width => Along::Next,
            _ => Along::Elsewhere,
        }
    }

    /// What it covers while the loops from each of the chain's on run, and last in one round of the
    /// innermost.
    pub(super) fn footprints(&self, chain: &Chain, l2_way: i64) -> SmallVec<[Footprint; 9]> {
        let mut found: SmallVec<[Footprint; 9]> = SmallVec::new();
        let mut covered: SmallVec<[(DimId, f64); 8]> = SmallVec::new();
        let mut rounds = 1.0;
        found.push(self.footprint(&covered, rounds, l2_way));
        for around in chain.iter().rev() {
            rounds *= around.rounds;
            match covered.iter_mut().find(|(dim, _)| *dim == around.dim) {
                Some(entry) => entry.1 *= around.rounds,
                None => covered.push((around.dim, around.rounds)),
            }
            let last = found[found.len() - 1];
            let stays = !self.moves_with(around.dim);
            found.push(if stays {
                last
            } else {
                self.footprint(&covered, rounds, l2_way)
            });
        }
        found.reverse();
        found
    }

    fn footprint(&self, covered: &[(DimId, f64)], rounds: f64, l2_way: i64) -> Footprint {
        let (mut lines, mut span, mut pieces) = (1.0f64, self.width, 1.0f64);
        let mut crowd = [1.0f64; 2];
        for axis in self.axes.iter().rev() {
            let (mut range, mut distinct) = (1.0, 1.0);
            if axis.by_data {
                // Anywhere, and elsewhere each time.
                (range, distinct) = (axis.extent * axis.step, rounds);
            }
            for (dim, by) in &axis.terms {
                if let Some((_, elements)) = covered.iter().find(|(found, _)| found == dim) {
                    range += by * (elements - 1.0).max(0.0);
                    distinct *= elements.max(1.0);
                }
            }
            if axis.step > 1.0 {
                range = (range / axis.step).ceil();
            }
            let range = f64::min(range, axis.extent);
            let elements = f64::min(range, distinct);
            if elements <= 1.0 {
                continue;
            }
            let stride = axis.stride * range / elements;
            if stride > span && stride >= LINE {
                pieces *= elements;
                for (crowd, way) in crowd.iter_mut().zip([L1_WAY, l2_way]) {
                    *crowd = crowd.max(competition(stride, way, elements, lines));
                }
            }
            span += (elements - 1.0) * stride;
            lines = f64::min(elements * lines, (span / LINE).ceil());
        }
        let bytes = lines * LINE;
        Footprint {
            bytes,
            run: (bytes / pieces).max(LINE),
            crowded: crowd.map(|crowd| bytes * crowd),
        }
    }
}

/// How many times the space that their lines have, pieces of some lines each need in a cache if they
/// stand `stride` bytes apart: a power of two leaves most of the places unused.
fn competition(stride: f64, way: i64, pieces: f64, lines: f64) -> f64 {
    let apart = gcd(stride as i64, way).max(LINE as i64);
    let starts = (way / apart) as f64;
    if pieces <= starts {
        return 1.0;
    }
    let used = lines.min(apart as f64 / LINE);
    (apart as f64 / LINE / used).max(1.0)
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
