//! From a formula and operands to views, products and sums.

use super::formula::{self, Formula, Item, ItemKind, Mistake, Name, Term};
use super::{Einsum, Sizes, Trouble};
use crate::gradient::flow_through_view;
use crate::node::{Tensor, View};
use crate::ops::{concat, counted, refuse_shape};
use crate::shape::{Axis, Places, Shape};
use crate::size::{self, MAX_AXES, axis_index};
use loopwright_ops::{DType, Op, ReduceOp, Scalar};
use loopwright_symbolic::{Error as ExprError, Expr};
use smallvec::SmallVec;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What stands for an axis of an operand.
#[derive(Clone, Copy)]
pub(super) enum Bound<'f> {
    Item(&'f Item),
    /// An axis of the `...`, by its place among those of all operands.
    Rest(usize),
}

/// An operand whose axes are names, each once.
#[derive(Clone)]
struct Factor {
    tensor: Tensor,
    names: Vec<Name>,
}

pub(super) struct Evaluation<'f> {
    pub(super) einsum: &'f Einsum,
    pub(super) formula: &'f Formula,
    pub(super) output: &'f Term,
    /// By operand, by axis.
    pub(super) bound: Vec<Vec<Bound<'f>>>,
    pub(super) operands: &'f [&'f Tensor],
    /// By name; axes of the `...` are names behind those of the formula.
    pub(super) sizes: Vec<Option<Expr>>,
    /// The names that axes of operands have, where they agree.
    pub(super) labels: Vec<Option<Arc<str>>>,
    pub(super) rest: Shape,
    /// Names of which only one is there at a time.
    pub(super) sets: Vec<Vec<Name>>,
}

#[track_caller]
pub(super) fn evaluate(einsum: &Einsum, operands: &[&Tensor]) -> Result<(Tensor, Sizes), Trouble> {
    let formula = formula::parse(&einsum.text)?;
    if formula.operands.len() != operands.len() {
        let all = 0..einsum.text.find("->").unwrap_or(einsum.text.len());
        let reason = format!(
            "the formula has {} for operands, and {} given",
            counted(formula.operands.len(), "term"),
            match operands.len() {
                1 => "1 is".to_owned(),
                count => format!("{count} are"),
            }
        );
        return Err(Mistake::new(&all, reason).into());
    }
    let output = match &formula.output {
        Some(output) => output.clone(),
        None => implied(&formula, einsum.text.len()),
    };
    let mut evaluation = Evaluation {
        einsum,
        formula: &formula,
        output: &output,
        bound: Vec::new(),
        operands,
        sizes: vec![None; formula.names.len()],
        labels: vec![None; formula.names.len()],
        rest: Shape::scalar(),
        sets: Vec::new(),
    };
    evaluation.bind()?;
    evaluation.find_sets()?;
    evaluation.find_sizes()?;
    evaluation.check_output()?;
    let result = evaluation.assemble(&mut Vec::new())?;
    let result = evaluation.labelled(result);
    result.check()?;
    let sizes = formula.names.iter().zip(&evaluation.sizes);
    let sizes = sizes.filter_map(|(name, size)| Some((name.clone(), size.clone()?)));
    Ok((
        result,
        Sizes {
            sizes: sizes.collect(),
        },
    ))
}

/// The result of a formula that has none: the names that occur once, in alphabetical order.
fn implied(formula: &Formula, end: usize) -> Term {
    let mut count = vec![0; formula.names.len()];
    let mut rest = false;
    for item in formula.operands.iter().flat_map(|term| &term.items) {
        rest |= item.kind == ItemKind::Rest;
        for name in item.kind.names() {
            count[name] += 1;
        }
    }
    let mut once: Vec<Name> = (0..count.len()).filter(|name| count[*name] == 1).collect();
    once.sort_by_key(|name| &formula.names[*name]);
    let kinds = rest.then_some(ItemKind::Rest).into_iter();
    let kinds = kinds.chain(once.into_iter().map(ItemKind::Plain));
    let item = |kind| Item { kind, at: end..end };
    Term {
        items: kinds.map(item).collect(),
        at: end..end,
    }
}

/// Whether `combine` distributes over `reduce`: what is folded early is then the same.
fn distributes(reduce: ReduceOp, combine: Op) -> bool {
    matches!(
        (reduce, combine),
        (ReduceOp::Sum, Op::Mul)
            | (ReduceOp::Max | ReduceOp::Min, Op::Add)
            | (ReduceOp::Max, Op::Min)
            | (ReduceOp::Min, Op::Max)
            | (ReduceOp::Any, Op::And)
            | (ReduceOp::All, Op::Or)
    )
}

/// What an element that is not there counts as: it changes no fold.
fn nothing(reduce: ReduceOp, dtype: DType) -> Scalar {
    match reduce {
        ReduceOp::Sum | ReduceOp::Any => Scalar::zero(dtype),
        ReduceOp::Prod | ReduceOp::All => Scalar::one(dtype),
        ReduceOp::Max => Scalar::min_value(dtype),
        ReduceOp::Min => Scalar::max_value(dtype),
    }
}

impl<'f> Evaluation<'f> {
    pub(super) fn name(&self, name: Name) -> &str {
        &self.formula.names[name]
    }

    pub(super) fn overflow(at: &Item) -> impl Fn(ExprError) -> Trouble {
        let at = at.at.clone();
        move |error| Mistake::new(&at, error.to_string()).into()
    }

    /// The result, where some alternatives are chosen already.
    #[track_caller]
    fn assemble(&self, chosen: &mut Vec<Name>) -> Result<Tensor, Trouble> {
        let Some(set) = self.sets.get(chosen.len()) else {
            return self.block(chosen);
        };
        let items = &self.output.items;
        let joined = items
            .iter()
            .position(|item| item.kind == ItemKind::Blocks(set.clone()));
        let is_named = |item: &&Item| {
            !matches!(item.kind, ItemKind::Blocks(_))
                && item.kind.names().iter().any(|name| set.contains(name))
        };
        let mut named: Vec<Name> = items
            .iter()
            .filter(is_named)
            .flat_map(|item| item.kind.names())
            .filter(|name| set.contains(name))
            .collect();
        named.dedup();
        if let Some(item) = items.iter().find(is_named)
            && named.len() + usize::from(joined.is_some()) > 1
        {
            let reason = format!(
                "the result cannot have `{}` beside another of the blocks that it is joined with",
                self.name(named[0])
            );
            return Err(Mistake::new(&item.at, reason).into());
        }
        let alternatives = if named.is_empty() { set.clone() } else { named };
        let mut parts = Vec::new();
        for name in alternatives {
            chosen.push(name);
            let part = self.assemble(chosen);
            chosen.pop();
            parts.push(part?);
        }
        if let Some(at) = joined {
            let place: usize = items[..at].iter().map(|item| self.axes_of(item)).sum();
            let parts: Vec<&Tensor> = parts.iter().collect();
            return Ok(concat(&parts, place));
        }
        let combine = self.einsum.reduce.combine();
        let mut parts = parts.into_iter();
        let first = parts.next().expect("a set has names");
        Ok(parts.fold(first, |sum, part| Tensor::map(combine, &[&sum, &part])))
    }

    fn axes_of(&self, item: &Item) -> usize {
        match item.kind {
            ItemKind::Rest => self.rest.rank(),
            _ => 1,
        }
    }

    fn is_absent(&self, name: Name, chosen: &[Name]) -> bool {
        self.sets.iter().any(|set| set.contains(&name)) && !chosen.contains(&name)
    }

    /// The result with one choice of blocks.
    #[track_caller]
    fn block(&self, chosen: &[Name]) -> Result<Tensor, Trouble> {
        let mut factors = Vec::new();
        for (bound, operand) in self.bound.iter().zip(self.operands) {
            let absent = bound.iter().any(|bound| match bound {
                Bound::Item(item) if !matches!(item.kind, ItemKind::Blocks(_)) => item
                    .kind
                    .names()
                    .iter()
                    .any(|name| self.is_absent(*name, chosen)),
                _ => false,
            });
            if !absent {
                factors.push(self.factor(operand, bound, chosen)?);
            }
        }
        if factors.is_empty() {
            let names: Vec<&str> = chosen.iter().map(|name| self.name(*name)).collect();
            let reason = format!("no operand has `{}`", names.join("`, `"));
            return Err(Mistake::new(&self.output.at, reason).into());
        }
        let mut wanted: Vec<Name> = Vec::new();
        for item in &self.output.items {
            for name in self.expanded(item, chosen) {
                if !wanted.contains(&name) {
                    wanted.push(name);
                }
            }
        }
        let product = self.contract(factors, &wanted)?;
        let product = self.over(&product, &wanted);
        self.laid_out(product, &wanted, chosen)
    }

    /// The names of an item of the result, with blocks chosen.
    fn expanded(&self, item: &Item, chosen: &[Name]) -> Vec<Name> {
        match &item.kind {
            ItemKind::Rest => (self.formula.names.len()..self.sizes.len()).collect(),
            ItemKind::Blocks(names) => {
                let chosen = names.iter().filter(|name| chosen.contains(name));
                chosen.copied().collect()
            }
            kind => kind.names(),
        }
    }

    /// An operand with its names as axes.
    #[track_caller]
    fn factor(
        &self,
        operand: &Tensor,
        bound: &[Bound<'_>],
        chosen: &[Name],
    ) -> Result<Factor, Trouble> {
        let mut names: Vec<Name> = Vec::new();
        let mut outside = None;
        let mut map: SmallVec<[Expr; 4]> = SmallVec::new();
        // Groups are taken apart first: their axis becomes several.
        let mut tensor = operand.unnamed();
        let mut indices: Vec<(Vec<(Name, i64)>, Expr)> = Vec::new();
        for (at, bound) in bound.iter().enumerate() {
            let zero = || Expr::constant(0);
            let item = match bound {
                Bound::Rest(name) => {
                    let axis = &operand.shape().axes()[at];
                    let repeated =
                        axis.known() == Some(1) && self.size_of(*name).as_const() != Some(1);
                    let terms = if repeated {
                        Vec::new()
                    } else {
                        vec![(*name, 1)]
                    };
                    indices.push((terms, zero()));
                    continue;
                }
                Bound::Item(item) => *item,
            };
            let overflow = Self::overflow(item);
            match &item.kind {
                ItemKind::Rest => unreachable!("its axes are bound as such"),
                ItemKind::Plain(name) => indices.push((vec![(*name, 1)], zero())),
                ItemKind::Affine { terms, offset } => {
                    if *offset < 0 && !terms.is_empty() {
                        if !distributes(self.einsum.reduce, self.einsum.combine) {
                            let reason = "padding has no value that would change nothing here";
                            return Err(Mistake::new(&item.at, reason).into());
                        }
                        outside = Some(nothing(self.einsum.reduce, operand.dtype()));
                    }
                    indices.push((terms.clone(), Expr::constant(*offset)));
                }
                ItemKind::Blocks(block) => {
                    let mut before = zero();
                    let mut found = None;
                    for name in block {
                        if chosen.contains(name) {
                            found = Some(*name);
                            break;
                        }
                        before = before.add(&self.size_of(*name)).map_err(&overflow)?;
                    }
                    let name = found.expect("one of each set is chosen");
                    indices.push((vec![(name, 1)], before));
                }
                ItemKind::Group(group) => {
                    let sizes = group.iter().map(|name| Axis::of(self.size_of(*name)));
                    tensor = tensor.split_axis(indices.len(), Shape::new(sizes));
                    indices.extend(group.iter().map(|name| (vec![(*name, 1)], zero())));
                }
            }
        }
        for (terms, offset) in indices {
            let mut index = offset;
            for (name, by) in terms {
                let place = names
                    .iter()
                    .position(|other| *other == name)
                    .unwrap_or_else(|| {
                        names.push(name);
                        names.len() - 1
                    });
                if place >= MAX_AXES {
                    return Err(
                        refuse_shape("einsum", operand.shape(), "there are too many axes").into(),
                    );
                }
                let step = axis_index(place).mul(&Expr::constant(by));
                index = step
                    .and_then(|step| index.add(&step))
                    .map_err(|error| refuse_shape("einsum", operand.shape(), error.to_string()))?;
            }
            map.push(index);
        }
        let shape = self.shape(&names);
        let same = names.len() == map.len()
            && map
                .iter()
                .enumerate()
                .all(|(at, index)| *index == axis_index(at));
        // An axis of another operand may have said the size in other words.
        let tensor = match same && outside.is_none() {
            true => tensor.in_place(shape),
            false => tensor.view(
                View {
                    outside,
                    ..View::inside(map)
                },
                shape,
            ),
        };
        tensor.check()?;
        Ok(Factor { tensor, names })
    }

    fn size_of(&self, name: Name) -> Expr {
        let size = self.sizes[name].as_ref();
        size::resolve(size.expect("names of operands have sizes"))
    }

    fn shape(&self, names: &[Name]) -> Shape {
        Shape::new(names.iter().map(|name| Axis::of(self.size_of(*name))))
    }

    /// A factor with these names as axes, in order.
    #[track_caller]
    fn over(&self, factor: &Factor, names: &[Name]) -> Tensor {
        if factor.names == names {
            return factor.tensor.clone();
        }
        let places: Places = names
            .iter()
            .map(|name| factor.names.iter().position(|other| other == name))
            .collect();
        factor.tensor.spread(&self.shape(names), &places)
    }

    /// Folds the names of a factor that are not wanted any more.
    #[track_caller]
    fn folded(&self, factor: Factor, wanted: impl Fn(Name) -> bool) -> Result<Factor, Trouble> {
        let over: SmallVec<[usize; 2]> = (0..factor.names.len())
            .filter(|at| !wanted(factor.names[*at]))
            .collect();
        if over.is_empty() {
            return Ok(factor);
        }
        let tensor = factor.tensor.fold(self.einsum.reduce, over);
        tensor.check()?;
        let names = factor.names.into_iter().filter(|name| wanted(*name));
        Ok(Factor {
            tensor,
            names: names.collect(),
        })
    }

    /// All factors combined, and folded to the names that are wanted.
    #[track_caller]
    fn contract(&self, mut factors: Vec<Factor>, wanted: &[Name]) -> Result<Factor, Trouble> {
        let early = distributes(self.einsum.reduce, self.einsum.combine);
        if early && factors.len() > 1 {
            for at in 0..factors.len() {
                let others = names_beside(&factors, &[at]);
                let needed = |name| wanted.contains(&name) || others.contains(&name);
                factors[at] = self.folded(factors[at].clone(), needed)?;
            }
        }
        while factors.len() > 1 {
            let (a, b) = if early {
                self.cheapest(&factors, wanted)
            } else {
                (0, 1)
            };
            let others = names_beside(&factors, &[a, b]);
            let needed = |name| wanted.contains(&name) || others.contains(&name);
            let (second, first) = (factors.remove(b), factors.remove(a));
            let mut names: Vec<Name> = wanted
                .iter()
                .copied()
                .chain(first.names.iter().chain(&second.names).copied())
                .filter(|name| first.names.contains(name) || second.names.contains(name))
                .collect();
            let mut seen = BTreeSet::new();
            names.retain(|name| seen.insert(*name));
            let (left, right) = (self.over(&first, &names), self.over(&second, &names));
            let tensor = Tensor::map(self.einsum.combine, &[&left, &right]);
            tensor.check()?;
            let both = Factor { tensor, names };
            // At its old place: the order of combining is that of the formula.
            let both = if early {
                self.folded(both, needed)?
            } else {
                both
            };
            factors.insert(a, both);
        }
        let last = factors.pop().expect("there is at least one");
        self.folded(last, |name| wanted.contains(&name))
    }

    /// The two factors whose product is the smallest; the first ones where sizes are not known.
    fn cheapest(&self, factors: &[Factor], wanted: &[Name]) -> (usize, usize) {
        if factors.len() == 2 {
            return (0, 1);
        }
        let mut best: Option<(f64, (usize, usize))> = None;
        for a in 0..factors.len() {
            for b in a + 1..factors.len() {
                let others = names_beside(factors, &[a, b]);
                let names: BTreeSet<Name> = factors[a]
                    .names
                    .iter()
                    .chain(&factors[b].names)
                    .copied()
                    .collect();
                let kept = names
                    .into_iter()
                    .filter(|name| wanted.contains(name) || others.contains(name));
                let Some(size) = kept
                    .map(|name| self.size_of(name).as_const())
                    .try_fold(1.0, |product, size| Some(product * size? as f64))
                else {
                    return (0, 1);
                };
                if best.is_none_or(|(least, _)| size < least) {
                    best = Some((size, (a, b)));
                }
            }
        }
        best.map_or((0, 1), |(_, pair)| pair)
    }

    /// A product over the names of the result, as the result's axes.
    #[track_caller]
    fn laid_out(
        &self,
        product: Tensor,
        wanted: &[Name],
        chosen: &[Name],
    ) -> Result<Tensor, Trouble> {
        // Each axis as steps along names and an offset; a group is several axes, merged in the end.
        let mut axes: Vec<(Vec<(Name, i64)>, i64)> = Vec::new();
        let mut groups: Vec<(usize, usize)> = Vec::new();
        for item in &self.output.items {
            match &item.kind {
                ItemKind::Affine { terms, offset } => axes.push((terms.clone(), *offset)),
                kind => {
                    let names = self.expanded(item, chosen);
                    if let ItemKind::Group(_) = kind {
                        groups.push((axes.len(), names.len()));
                    }
                    axes.extend(names.into_iter().map(|name| (vec![(name, 1)], 0)));
                }
            }
        }
        let single = |(terms, offset): &(Vec<(Name, i64)>, i64)| match terms[..] {
            [(name, 1)] if *offset == 0 => Some(name),
            _ => None,
        };
        let names: Vec<Name> = axes.iter().filter_map(single).collect();
        let is_new = |axis: &(Vec<(Name, i64)>, i64)| axis.0.is_empty() && axis.1 == 0;
        let simple = names.len() == wanted.len()
            && axes
                .iter()
                .all(|axis| single(axis).is_some() || is_new(axis));
        let mut result = match simple {
            true => {
                let mut result = product;
                for (at, axis) in axes.iter().enumerate() {
                    if is_new(axis) {
                        result = result.unsqueeze(at);
                    }
                }
                result
            }
            false => self.put(&product, wanted, &axes)?,
        };
        for (at, count) in groups.into_iter().rev() {
            result = result.merge_axes(at, at + count - 1);
        }
        result.check()?;
        Ok(result)
    }

    /// Every element of a product added at its place in the result: what flows back through the view that
    /// would read it there.
    #[track_caller]
    fn put(
        &self,
        product: &Tensor,
        wanted: &[Name],
        axes: &[(Vec<(Name, i64)>, i64)],
    ) -> Result<Tensor, Trouble> {
        let refuse = |error: ExprError| refuse_shape("einsum", product.shape(), error.to_string());
        let mut map: SmallVec<[Expr; 4]> = SmallVec::new();
        let mut shape = Vec::new();
        for (terms, offset) in axes {
            let mut index = Expr::constant(*offset);
            let mut length = Expr::constant(offset + 1);
            for (name, by) in terms {
                let place = wanted.iter().position(|other| other == name);
                let place = place.expect("the result's names are wanted");
                let by = Expr::constant(*by);
                let step = axis_index(place).mul(&by);
                index = step.and_then(|step| index.add(&step)).map_err(refuse)?;
                let reach = self.size_of(*name).sub(&Expr::constant(1));
                length = reach
                    .and_then(|reach| reach.mul(&by))
                    .and_then(|reach| length.add(&reach))
                    .map_err(refuse)?;
            }
            map.push(index);
            shape.push(Axis::of(length));
        }
        let result = Tensor::zeros(Shape::new(shape), product.dtype());
        let view = View::inside(map);
        let shown = result.view(view.clone(), product.shape().clone());
        shown.check()?;
        Ok(flow_through_view(&view, &result, &shown, product)?)
    }

    /// The result with the names of axes that the operands agree on.
    #[track_caller]
    fn labelled(&self, result: Tensor) -> Tensor {
        let mut labels: Vec<Option<Arc<str>>> = Vec::new();
        for item in &self.output.items {
            match &item.kind {
                ItemKind::Plain(name) => labels.push(self.labels[*name].clone()),
                ItemKind::Rest => {
                    labels.extend(self.rest.axes().iter().map(|axis| axis.name.clone()))
                }
                _ => labels.push(None),
            }
        }
        if result.is_failed() || labels.iter().all(Option::is_none) {
            return result;
        }
        let mut shape = result.shape().clone();
        for (axis, label) in shape.0.iter_mut().zip(&labels) {
            let alone = labels.iter().filter(|other| *other == label).count() == 1;
            axis.name = label.clone().filter(|_| alone);
        }
        result.in_place(shape)
    }
}

/// The names of all factors but some.
fn names_beside(factors: &[Factor], without: &[usize]) -> BTreeSet<Name> {
    let others = factors
        .iter()
        .enumerate()
        .filter(|(at, _)| !without.contains(at));
    others
        .flat_map(|(_, factor)| factor.names.iter().copied())
        .collect()
}
