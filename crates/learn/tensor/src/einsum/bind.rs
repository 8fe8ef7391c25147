//! What the names of a formula are in its operands, and how long.

use super::Trouble;
use super::evaluate::{Bound, Evaluation};
use super::formula::{Item, ItemKind, Mistake, Name};
use crate::shape::{Axis, JoinError, Shape, join};
use crate::size;
use loopwright_ops::ReduceOp;
use loopwright_symbolic::Expr;

impl<'f> Evaluation<'f> {
    /// Which axis of each operand is what in its term.
    pub(super) fn bind(&mut self) -> Result<(), Trouble> {
        let mut rests: Vec<Vec<usize>> = Vec::new();
        for (term, operand) in self.formula.operands.iter().zip(self.operands) {
            let axes = operand.shape().axes();
            let rest = term
                .items
                .iter()
                .position(|item| item.kind == ItemKind::Rest);
            let spoken = term.items.len() - usize::from(rest.is_some());
            if spoken > axes.len() || (rest.is_none() && spoken < axes.len()) {
                let least = if rest.is_some() { "at least " } else { "" };
                let reason = format!(
                    "the term is for {least}{spoken} axes, and the operand {} has {}",
                    operand.shape(),
                    axes.len()
                );
                return Err(Mistake::new(&term.at, reason).into());
            }
            let mut bound: Vec<Option<Bound<'f>>> = vec![None; axes.len()];
            let mut taken = vec![false; term.items.len()];
            for (at, item) in term.items.iter().enumerate() {
                let ItemKind::Plain(name) = &item.kind else {
                    continue;
                };
                let found = operand.shape().find(self.name(*name));
                if let Some(axis) = found.filter(|axis| bound[*axis].is_none()) {
                    bound[axis] = Some(Bound::Item(item));
                    taken[at] = true;
                }
            }
            let open: Vec<usize> = (0..axes.len())
                .filter(|axis| bound[*axis].is_none())
                .collect();
            let items: Vec<&Item> = term
                .items
                .iter()
                .zip(&taken)
                .filter(|(_, taken)| !**taken)
                .map(|(item, _)| item)
                .collect();
            let before = items
                .iter()
                .position(|item| item.kind == ItemKind::Rest)
                .unwrap_or(items.len());
            let behind = items.len().saturating_sub(before + 1);
            let middle = before..open.len() - behind;
            for (axis, item) in open.iter().zip(&items[..before]) {
                bound[*axis] = Some(Bound::Item(item));
            }
            for (axis, item) in open[middle.end..].iter().zip(items.iter().skip(before + 1)) {
                bound[*axis] = Some(Bound::Item(item));
            }
            let rest: Vec<usize> = open[middle].to_vec();
            // They are numbered when those of all operands are known.
            let bound = bound
                .into_iter()
                .map(|bound| bound.unwrap_or(Bound::Rest(0)));
            self.bound.push(bound.collect());
            rests.push(rest);
        }
        self.join_rests(&rests)
    }

    /// The axes of all `...` together, as further names.
    fn join_rests(&mut self, rests: &[Vec<usize>]) -> Result<(), Trouble> {
        let shapes: Vec<Shape> = self
            .operands
            .iter()
            .zip(rests)
            .map(|(operand, rest)| {
                Shape::new(rest.iter().map(|at| operand.shape().axes()[*at].clone()))
            })
            .collect();
        let mut joined = Shape::scalar();
        for (at, shape) in shapes.iter().enumerate() {
            joined = match join(&joined, shape) {
                Ok((joined, _)) => joined,
                Err(error) => return Err(self.refuse_rest(at, shape, &joined, &error)),
            };
        }
        let first = self.formula.names.len();
        for (operand, (shape, rest)) in shapes.iter().zip(rests).enumerate() {
            let (_, [_, places]) = join(&joined, shape)
                .map_err(|error| self.refuse_rest(operand, shape, &joined, &error))?;
            for (at, place) in places.iter().enumerate() {
                if let Some(place) = place {
                    self.bound[operand][rest[*place]] = Bound::Rest(first + at);
                }
            }
        }
        for axis in joined.axes() {
            self.sizes.push(Some(axis.size.clone()));
            self.labels.push(axis.name.clone());
        }
        self.rest = joined;
        Ok(())
    }
    fn refuse_rest(&self, at: usize, shape: &Shape, joined: &Shape, error: &JoinError) -> Trouble {
        let term = &self.formula.operands[at];
        let item = term.items.iter().find(|item| item.kind == ItemKind::Rest);
        let why = match error {
            JoinError::Sizes(..) => "sizes that meet are equal, or one of them is 1",
            JoinError::Names => "one has names for its axes and the other has none",
            JoinError::TooMany => "there are too many",
        };
        let reason =
            format!("its axes {shape} do not meet those of the operands before, {joined}: {why}");
        Mistake::new(item.map_or(&term.at, |item| &item.at), reason).into()
    }

    /// The names that are alternatives of each other.
    pub(super) fn find_sets(&mut self) -> Result<(), Trouble> {
        let terms = self.formula.operands.iter().chain([self.output]);
        for item in terms.flat_map(|term| &term.items) {
            let ItemKind::Blocks(names) = &item.kind else {
                continue;
            };
            let other =
                |set: &&Vec<Name>| *set != names && set.iter().any(|name| names.contains(name));
            if let Some(set) = self.sets.iter().find(other) {
                let set: Vec<&str> = set.iter().map(|name| self.name(*name)).collect();
                let reason = format!(
                    "its names are joined in another way before: `{}`",
                    set.join("^")
                );
                return Err(Mistake::new(&item.at, reason).into());
            }
            if !self.sets.contains(names) {
                self.sets.push(names.clone());
            }
        }
        Ok(())
    }

    fn size(&mut self, name: Name) -> Expr {
        if self.sizes[name].is_none() {
            let owner = format!("`{}` in the einsum `{}`", self.name(name), self.einsum.text);
            self.sizes[name] = Some(size::unknown(owner));
        }
        let size = self.sizes[name].as_ref().expect("it was just set");
        size::resolve(size)
    }

    pub(super) fn find_sizes(&mut self) -> Result<(), Trouble> {
        for (name, size) in &self.einsum.sizes {
            let Some(at) = self.formula.names.iter().position(|other| other == name) else {
                let all = 0..self.einsum.text.len();
                let reason = format!("a size is given for `{name}`, which is not in the formula");
                return Err(Mistake::new(&all, reason).into());
            };
            self.sizes[at] = Some(size.0.clone());
        }
        // Plain axes say most; what is made of several names is solved with what they say.
        for pass in 0..2 {
            for operand in 0..self.operands.len() {
                for (at, bound) in self.bound[operand].clone().into_iter().enumerate() {
                    let axis = &self.operands[operand].shape().axes()[at];
                    let Bound::Item(item) = bound else { continue };
                    match (&item.kind, pass) {
                        (ItemKind::Plain(name), 0) => self.meet(*name, axis, item)?,
                        (ItemKind::Plain(_), _) | (_, 0) => {}
                        (_, _) => self.solve(item, axis)?,
                    }
                }
            }
        }
        Ok(())
    }

    /// A name along an axis.
    fn meet(&mut self, name: Name, axis: &Axis, item: &Item) -> Result<(), Trouble> {
        match self.sizes[name].clone() {
            None => {
                self.sizes[name] = Some(axis.size.clone());
                self.labels[name] = axis.name.clone();
            }
            Some(size) => {
                if self.labels[name] != axis.name {
                    self.labels[name] = self.labels[name].take().xor(axis.name.clone());
                }
                if !size::equate(&size, &axis.size) {
                    let reason = format!(
                        "`{}` is {} here and {} before",
                        self.name(name),
                        text(&axis.size),
                        text(&size)
                    );
                    return Err(Mistake::new(&item.at, reason).into());
                }
            }
        }
        Ok(())
    }

    /// An axis that is made of several names, or of none.
    fn solve(&mut self, item: &Item, axis: &Axis) -> Result<(), Trouble> {
        let overflow = Self::overflow(item);
        let (expected, found) = match &item.kind {
            ItemKind::Rest | ItemKind::Plain(_) => return Ok(()),
            ItemKind::Group(names) => {
                let mut product = Expr::constant(1);
                let mut factor = 1i64;
                for name in names {
                    let size = self.size(*name);
                    factor = factor.saturating_mul(size.as_const().unwrap_or(1));
                    product = product.mul(&size).map_err(&overflow)?;
                }
                if let Some(size) = axis.known()
                    && (factor == 0 || size as i64 % factor != 0)
                {
                    return Err(self.disagree(item, axis));
                }
                (product, axis.size.clone())
            }
            ItemKind::Blocks(names) => {
                let mut sum = Expr::constant(0);
                for name in names {
                    sum = sum.add(&self.size(*name)).map_err(&overflow)?;
                }
                (sum, axis.size.clone())
            }
            ItemKind::Affine { terms, offset } if terms.is_empty() => {
                let outside = |size: usize| !(0..size as i64).contains(offset);
                if axis.known().is_some_and(outside) {
                    let reason = format!(
                        "place {offset} is outside of an axis of size {}",
                        text(&axis.size)
                    );
                    return Err(Mistake::new(&item.at, reason).into());
                }
                return Ok(());
            }
            ItemKind::Affine { terms, offset } => {
                // The one that nothing else says is solved for, or else the one that moves furthest.
                let mut order: Vec<usize> = (0..terms.len()).collect();
                order.sort_by_key(|at| {
                    let known = self.size(terms[*at].0).as_const().is_some();
                    (known, std::cmp::Reverse(terms[*at].1))
                });
                let (name, step) = terms[order[0]];
                // Padding stands at both ends.
                let taken = if *offset < 0 { 2 * offset } else { *offset };
                let mut room = size::resolve(&axis.size)
                    .sub(&Expr::constant(taken + 1))
                    .map_err(&overflow)?;
                for at in &order[1..] {
                    let (other, by) = terms[*at];
                    let reach = self.size(other).sub(&Expr::constant(1));
                    let reach = reach.and_then(|reach| reach.mul(&Expr::constant(by)));
                    room = reach
                        .and_then(|reach| room.sub(&reach))
                        .map_err(&overflow)?;
                }
                let places = room.floor_div(&Expr::constant(step));
                let places = places.and_then(|places| places.add(&Expr::constant(1)));
                let places = places.map_err(&overflow)?;
                if places.as_const().is_some_and(|places| places < 1) {
                    let reason = format!(
                        "the windows do not fit into an axis of size {}",
                        text(&axis.size)
                    );
                    return Err(Mistake::new(&item.at, reason).into());
                }
                (self.size(name), places)
            }
        };
        if !size::equate(&expected, &found) {
            return Err(self.disagree(item, axis));
        }
        Ok(())
    }

    fn disagree(&mut self, item: &Item, axis: &Axis) -> Trouble {
        let mut says: Vec<String> = Vec::new();
        for name in item.kind.names() {
            let size = self.size(name);
            says.push(format!("`{}` is {}", self.name(name), text(&size)));
        }
        let reason = format!(
            "an axis of size {} cannot be this, where {}",
            text(&axis.size),
            says.join(" and ")
        );
        Mistake::new(&item.at, reason).into()
    }

    /// What a result needs to be one.
    pub(super) fn check_output(&self) -> Result<(), Trouble> {
        for item in &self.output.items {
            for name in item.kind.names() {
                if self.sizes[name].is_none() {
                    let reason = format!(
                        "`{}` is in no operand; say how long it is with `Einsum::size`",
                        self.name(name)
                    );
                    return Err(Mistake::new(&item.at, reason).into());
                }
            }
            match &item.kind {
                ItemKind::Affine { offset, .. } if *offset < 0 => {
                    let reason = "the result would begin before its first place";
                    return Err(Mistake::new(&item.at, reason).into());
                }
                ItemKind::Affine { terms, offset }
                    if self.einsum.reduce != ReduceOp::Sum
                        && (!terms.is_empty() || *offset != 0) =>
                {
                    return Err(self.only_sums(item));
                }
                _ => {}
            }
        }
        if self.einsum.reduce != ReduceOp::Sum {
            let names: Vec<(Name, &Item)> = self
                .output
                .items
                .iter()
                .flat_map(|item| item.kind.names().into_iter().map(move |name| (name, item)))
                .collect();
            for (at, (name, item)) in names.iter().enumerate() {
                if names[..at].iter().any(|(before, _)| before == name) {
                    return Err(self.only_sums(item));
                }
            }
        }
        Ok(())
    }

    fn only_sums(&self, item: &Item) -> Trouble {
        let reason = format!(
            "the zeros beside it would be no neutral elements of `{}`; only sums are put at places",
            self.einsum.reduce.name()
        );
        Mistake::new(&item.at, reason).into()
    }
}

fn text(size: &Expr) -> String {
    match size::resolve(size).as_const() {
        Some(size) => size.to_string(),
        None => "not known yet".to_owned(),
    }
}
