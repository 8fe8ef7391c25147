//! Random views.

use super::graph::Draft;
use super::values::{WHOLE_INPUT, random_scalar};
use loopwright_graph::{DimId, GraphError, NodeId, View};
use loopwright_symbolic::{Cmp, Expr};
use smallvec::SmallVec;

/// A view under construction: where each dimension of the input is read, over new dimensions.
struct Mapping {
    dims: Vec<DimId>,
    map: SmallVec<[Expr; 4]>,
    /// Whether some index may be outside.
    leaves: bool,
}

impl Draft<'_> {
    /// Adds a view of some node.
    pub(super) fn view(&mut self) -> Result<(), GraphError> {
        let node = self.any_node();
        let dims = self.dims(node);
        if dims.is_empty() || self.rng.chance(12) {
            return self.broadcast(node);
        }
        let at = self.rng.below(dims.len());
        let mapping = match self.rng.below(11) {
            0 | 1 => self.moved(node, at)?,
            2 => self.strided(node, at)?,
            3 => self.window(node, at)?,
            4 => self.flipped(node, at)?,
            5 => self.split(node, at)?,
            6 => self.flattened(node)?,
            7 => self.sliced(node, at)?,
            8 => self.wrapped(node, at)?,
            9 => self.diagonal(node)?,
            _ => self.identity(node, |_| true),
        };
        let mut mapping = mapping;
        if !self.fits(&mapping.dims) {
            return Ok(());
        }
        if self.rng.chance(25) {
            self.rng.shuffle(&mut mapping.dims);
        }
        let constraints = self.constraints(&mapping.dims)?;
        let leaves = mapping.leaves || !constraints.is_empty();
        let dtype = self.builder.node(node).dtype;
        let outside = (leaves || self.rng.chance(10))
            .then(|| random_scalar(self.rng, dtype, self.arithmetic));
        let bound = self.bound(node).max(WHOLE_INPUT as f64);
        let view = View {
            map: mapping.map,
            constraints,
            outside,
        };
        let node = self.builder.view(node, &mapping.dims, view)?;
        self.note(node, bound);
        Ok(())
    }

    /// The node over further dimensions, in any order.
    fn broadcast(&mut self, node: NodeId) -> Result<(), GraphError> {
        let mut dims = self.dims(node);
        if self.rng.chance(60) {
            let more = self.fresh_dim()?;
            dims.push(more);
        }
        self.rng.shuffle(&mut dims);
        if self.fits(&dims) {
            let view = self.builder.layout(node, &dims)?;
            self.note(view, self.bound(node));
        }
        Ok(())
    }

    fn symbol(&self, dim: DimId) -> Expr {
        Expr::symbol(self.builder.index_symbol(dim))
    }

    /// Every dimension as it is, those for which `keep` does not hold to be replaced.
    fn identity(&self, node: NodeId, keep: impl Fn(usize) -> bool) -> Mapping {
        let dims = self.dims(node);
        let map = dims.iter().map(|dim| self.symbol(*dim)).collect();
        let kept = dims.iter().enumerate().filter(|(at, _)| keep(*at));
        Mapping {
            dims: kept.map(|(_, dim)| *dim).collect(),
            map,
            leaves: false,
        }
    }

    /// The state moved along its first dimension, over the same dimensions.
    pub(super) fn shifted(&mut self, node: NodeId, by: i64) -> Result<NodeId, GraphError> {
        let dims = self.dims(node);
        let mut mapping = self.identity(node, |_| true);
        mapping.map[0] = mapping.map[0].add(&Expr::constant(by))?;
        let outside = random_scalar(self.rng, self.builder.node(node).dtype, self.arithmetic);
        let view = View {
            map: mapping.map,
            constraints: Vec::new(),
            outside: Some(outside),
        };
        self.builder.view(node, &dims, view)
    }

    /// Moved by a few elements, over a dimension of its own size or the same one.
    fn moved(&mut self, node: NodeId, at: usize) -> Result<Mapping, GraphError> {
        let old = self.dims(node)[at];
        let same = self.rng.chance(40);
        let mut mapping = self.identity(node, |kept| same || kept != at);
        let dim = if same {
            old
        } else {
            let dim = self.fresh_dim()?;
            mapping.dims.push(dim);
            dim
        };
        let by = Expr::constant(self.rng.range(-3, 3));
        mapping.map[at] = self.symbol(dim).add(&by)?;
        mapping.leaves = true;
        Ok(mapping)
    }

    fn strided(&mut self, node: NodeId, at: usize) -> Result<Mapping, GraphError> {
        let old = self.dims(node)[at];
        let (step, start) = (self.rng.range(2, 3), self.rng.range(0, 1));
        let extent = self.extent(old);
        let mut mapping = self.identity(node, |kept| kept != at);
        let inside = self.rng.chance(50) && extent > start;
        let dim = if inside {
            // As many as there are.
            let size = self.builder.size_of(old).sub(&Expr::constant(start))?;
            let size = size.ceil_div(&Expr::constant(step))?;
            self.new_dim(size, (extent - start + step - 1) / step)?
        } else {
            self.fresh_dim()?
        };
        mapping.dims.push(dim);
        let scaled = self.symbol(dim).mul(&Expr::constant(step))?;
        mapping.map[at] = scaled.add(&Expr::constant(start))?;
        mapping.leaves = !inside;
        Ok(mapping)
    }

    /// A convolution's window: an output and a kernel dimension, stride, dilation and padding.
    fn window(&mut self, node: NodeId, at: usize) -> Result<Mapping, GraphError> {
        let old = self.dims(node)[at];
        let (stride, dilation) = (self.rng.range(1, 2), self.rng.range(1, 2));
        let kernel = self.rng.range(1, 3);
        let reach = (kernel - 1) * dilation;
        let inside = self.rng.chance(50) && self.extent(old) > reach;
        let mut mapping = self.identity(node, |kept| kept != at);
        let inner = self.new_dim(Expr::constant(kernel), kernel)?;
        let (outer, pad) = if inside {
            let room = self.builder.size_of(old).sub(&Expr::constant(reach))?;
            let size = room.ceil_div(&Expr::constant(stride))?;
            let extent = (self.extent(old) - reach + stride - 1) / stride;
            (self.new_dim(size, extent)?, 0)
        } else {
            (self.fresh_dim()?, self.rng.range(0, 2))
        };
        mapping.dims.extend([outer, inner]);
        let place = self.symbol(outer).mul(&Expr::constant(stride))?;
        let within = self.symbol(inner).mul(&Expr::constant(dilation))?;
        mapping.map[at] = place.add(&within)?.sub(&Expr::constant(pad))?;
        mapping.leaves = !inside;
        Ok(mapping)
    }

    fn flipped(&mut self, node: NodeId, at: usize) -> Result<Mapping, GraphError> {
        let old = self.dims(node)[at];
        let mapping = self.identity(node, |_| true);
        let mut mapping = mapping;
        let last = self.builder.size_of(old).sub(&Expr::constant(1))?;
        mapping.map[at] = last.sub(&self.symbol(old))?;
        Ok(mapping)
    }

    /// One dimension as two: blocks, and places within a block.
    fn split(&mut self, node: NodeId, at: usize) -> Result<Mapping, GraphError> {
        let old = self.dims(node)[at];
        let block = self.rng.range(1, 4);
        let mut mapping = self.identity(node, |kept| kept != at);
        let count = self.builder.size_of(old).ceil_div(&Expr::constant(block))?;
        let outer = self.new_dim(count, (self.extent(old) + block - 1) / block)?;
        let inner = self.new_dim(Expr::constant(block), block)?;
        mapping.dims.extend([outer, inner]);
        let start = self.symbol(outer).mul(&Expr::constant(block))?;
        mapping.map[at] = start.add(&self.symbol(inner))?;
        mapping.leaves = true;
        Ok(mapping)
    }

    /// Two dimensions as one.
    fn flattened(&mut self, node: NodeId) -> Result<Mapping, GraphError> {
        let dims = self.dims(node);
        if dims.len() < 2 {
            return Ok(self.identity(node, |_| true));
        }
        let a = self.rng.below(dims.len());
        let b = (a + 1 + self.rng.below(dims.len() - 1)) % dims.len();
        let mut mapping = self.identity(node, |kept| kept != a && kept != b);
        let (rows, columns) = (self.builder.size_of(dims[a]), self.builder.size_of(dims[b]));
        let extent = self.extent(dims[a]) * self.extent(dims[b]);
        let flat = self.new_dim(rows.mul(&columns)?, extent)?;
        mapping.dims.push(flat);
        mapping.map[a] = self.symbol(flat).floor_div(&columns)?;
        mapping.map[b] = self.symbol(flat).modulo(&columns)?;
        // Nothing proves this for symbolic sizes.
        mapping.leaves = self.rng.chance(50);
        Ok(mapping)
    }

    /// One element along a dimension.
    fn sliced(&mut self, node: NodeId, at: usize) -> Result<Mapping, GraphError> {
        let mut mapping = self.identity(node, |kept| kept != at);
        mapping.map[at] = Expr::constant(self.rng.range(-1, 4));
        mapping.leaves = true;
        Ok(mapping)
    }

    /// Moved around the end and back in at the start.
    fn wrapped(&mut self, node: NodeId, at: usize) -> Result<Mapping, GraphError> {
        let old = self.dims(node)[at];
        if self.extent(old) == 0 {
            // There is no remainder of a division by nothing.
            return Ok(self.identity(node, |_| true));
        }
        let mut mapping = self.identity(node, |kept| kept != at);
        let dim = self.fresh_dim()?;
        mapping.dims.push(dim);
        let size = self.builder.size_of(old);
        let by = self.rng.range(-3, 3);
        mapping.map[at] = self.symbol(dim).add(&Expr::constant(by))?.modulo(&size)?;
        mapping.leaves = self.rng.chance(50);
        Ok(mapping)
    }

    fn diagonal(&mut self, node: NodeId) -> Result<Mapping, GraphError> {
        let dims = self.dims(node);
        if dims.len() < 2 {
            return Ok(self.identity(node, |_| true));
        }
        let mut mapping = self.identity(node, |kept| kept > 1);
        let dim = self.fresh_dim()?;
        mapping.dims.push(dim);
        mapping.map[0] = self.symbol(dim);
        mapping.map[1] = self.symbol(dim);
        mapping.leaves = true;
        Ok(mapping)
    }

    fn constraints(&mut self, dims: &[DimId]) -> Result<Vec<Expr>, GraphError> {
        let mut constraints = Vec::new();
        if dims.is_empty() || !self.rng.chance(25) {
            return Ok(constraints);
        }
        let (index, other) = (*self.rng.pick(dims), *self.rng.pick(dims));
        let (index, other) = (self.symbol(index), self.symbol(other));
        let number = Expr::constant(self.rng.range(0, 4));
        constraints.push(match self.rng.below(4) {
            0 => {
                let step = Expr::constant(self.rng.range(2, 3));
                let odd = index.modulo(&step)?;
                Expr::compare(Cmp::Eq, &odd, &Expr::constant(0))?
            }
            1 => Expr::compare(Cmp::Lt, &index, &number)?,
            2 => Expr::compare(Cmp::Le, &index, &other.add(&number)?)?,
            _ => Expr::compare(Cmp::Ne, &index, &number)?,
        });
        Ok(constraints)
    }
}
