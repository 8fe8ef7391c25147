//! Gradients of scatters: what flows to the base, and to each of the updates.

use super::Parts;
use crate::error::TensorError;
use crate::node::{Along, Tensor};
use crate::ops::select;
use loopwright_ops::{DType, ReduceOp};

/// A scatter that is differentiated.
pub(crate) struct Scatter<'a> {
    pub(crate) base: &'a Tensor,
    pub(crate) index: &'a Tensor,
    pub(crate) updates: &'a Tensor,
    pub(crate) axis: usize,
    pub(crate) along: &'a Along,
}

impl Scatter<'_> {
    /// What flows to the base, the index and the updates, if `g` flows to the result `y`.
    #[track_caller]
    pub(crate) fn parts(
        &self,
        combine: Option<ReduceOp>,
        y: &Tensor,
        g: &Tensor,
    ) -> Result<Parts, TensorError> {
        let (base, updates) = match combine {
            Some(ReduceOp::Sum) => (g.clone(), self.look(g)),
            Some(ReduceOp::Max | ReduceOp::Min) => self.largest(y, g)?,
            Some(ReduceOp::Prod) => self.products(g)?,
            // Of bools.
            Some(ReduceOp::Any | ReduceOp::All) => return Ok(Parts::from_elem(None, 3)),
            None => self.last(g)?,
        };
        Ok(Parts::from_iter([Some(base), None, Some(updates)]))
    }

    /// For every update, what stands where it goes.
    #[track_caller]
    fn look(&self, from: &Tensor) -> Tensor {
        from.looked_up(self.index, self.axis, self.along.clone())
    }

    /// Something of every update, combined into something of every place.
    #[track_caller]
    fn put(
        &self,
        base: &Tensor,
        updates: &Tensor,
        combine: Option<ReduceOp>,
    ) -> Result<Tensor, TensorError> {
        base.scattered(self.index, updates, self.axis, self.along.clone(), combine)
    }

    /// All that are the largest of their place share what flows there.
    #[track_caller]
    fn largest(&self, y: &Tensor, g: &Tensor) -> Result<(Tensor, Tensor), TensorError> {
        let base = self.base.eq(y).cast(g.dtype());
        let updates = self.updates.eq(&self.look(y)).cast(g.dtype());
        let shares = g / self.put(&base, &updates, Some(ReduceOp::Sum))?;
        Ok((base * &shares, updates * self.look(&shares)))
    }

    /// The product of all others of a place. Factors of 0 are counted and left out, so that there is
    /// nothing to divide by; therefore the second gradient with respect to a factor that is 0 leaves out
    /// what it would have through the others.
    #[track_caller]
    fn products(&self, g: &Tensor) -> Result<(Tensor, Tensor), TensorError> {
        let zero = self.base.number(0);
        let is_zero = |factor: &Tensor| factor.eq(&zero);
        let nonzero = |factor: &Tensor| select(&is_zero(factor), &factor.ones_like(), factor);
        let counted = |factor: &Tensor| is_zero(factor).cast(g.dtype());
        let product = self.put(
            &nonzero(self.base),
            &nonzero(self.updates),
            Some(ReduceOp::Prod),
        )?;
        let zeros = self.put(
            &counted(self.base),
            &counted(self.updates),
            Some(ReduceOp::Sum),
        )?;
        let others = |factor: &Tensor, product: &Tensor, zeros: &Tensor, g: &Tensor| {
            let other_zeros = zeros - counted(factor);
            let part = g * product / nonzero(factor);
            select(&other_zeros.eq(&zero), &part, &part.zeros_like())
        };
        let base = others(self.base, &product, &zeros, g);
        let (product, zeros, g) = (self.look(&product), self.look(&zeros), self.look(g));
        Ok((base, others(self.updates, &product, &zeros, &g)))
    }

    /// Of several that were put in one place the last one is there.
    #[track_caller]
    fn last(&self, g: &Tensor) -> Result<(Tensor, Tensor), TensorError> {
        let number = Tensor::numbered(self.updates.shape());
        let nobody = Tensor::full(self.base.shape(), -1, DType::I64);
        let last = self.put(&nobody, &number, None)?;
        let untouched = last.lt(&last.number(0));
        let base = select(&untouched, g, &g.zeros_like());
        let (winner, flows) = (self.look(&last), self.look(g));
        let updates = select(&winner.eq(&number), &flows, &flows.zeros_like());
        Ok((base, updates))
    }
}
