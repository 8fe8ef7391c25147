//! Which arguments a traced function takes: their dtypes and shapes, in which some sizes may be open.

use crate::node::Tensor;
use crate::ops::AxisRef;
use crate::shape::{Axis, Shape};
use crate::size;
use loopwright_ops::DType;
use loopwright_symbolic::{Expr, Symbol, isolate};
use smallvec::SmallVec;
use std::sync::Arc;

/// The values of open sizes.
pub(crate) type Sizes = SmallVec<[i64; 4]>;

/// An axis of arguments that may have any size.
#[derive(Clone, Debug)]
pub(crate) enum Dynamic {
    /// An axis of the argument at a place.
    At(usize, AxisRef),
    /// The axes of that name, all of one size.
    Named(Arc<str>),
}

impl Dynamic {
    /// Whether it speaks of an axis.
    fn is(&self, argument: usize, shape: &Shape, place: usize) -> bool {
        match self {
            Dynamic::At(at, AxisRef::At(axis)) => {
                let rank = shape.rank() as i64;
                let axis = if *axis < 0 { axis + rank } else { *axis };
                *at == argument && axis == place as i64
            }
            Dynamic::At(at, AxisRef::Named(name)) => {
                *at == argument && shape.find(name) == Some(place)
            }
            Dynamic::Named(name) => shape.axes()[place].name.as_ref() == Some(name),
        }
    }

    fn text(&self) -> String {
        match self {
            Dynamic::At(at, AxisRef::At(axis)) => format!("axis {axis} of argument {at}"),
            Dynamic::At(at, AxisRef::Named(name)) => format!("axis `{name}` of argument {at}"),
            Dynamic::Named(name) => format!("axis `{name}`"),
        }
    }
}

/// Dtypes and shapes of arguments.
pub(crate) struct Family {
    /// Sizes are numbers or expressions over the open ones.
    arguments: Vec<(Shape, DType)>,
    open: Vec<Symbol>,
}

impl Family {
    /// Arguments like these, with fresh unknowns where sizes are dynamic.
    pub(crate) fn new(name: &str, leaves: &[Tensor], dynamic: &[Dynamic]) -> Family {
        let unknowns: Vec<Expr> = dynamic
            .iter()
            .map(|dynamic| size::unknown(format!("{} of `{name}`", dynamic.text())))
            .collect();
        let shape = |(at, leaf): (usize, &Tensor)| {
            let mut shape = known(leaf.shape());
            for place in 0..shape.rank() {
                let spoken = dynamic
                    .iter()
                    .position(|dynamic| dynamic.is(at, leaf.shape(), place));
                if let Some(spoken) = spoken {
                    shape.0[place].size = unknowns[spoken].clone();
                }
            }
            (shape, leaf.dtype())
        };
        Family {
            arguments: leaves.iter().enumerate().map(shape).collect(),
            open: Vec::new(),
        }
    }

    /// The shape of the argument at a place.
    pub(crate) fn shape(&self, at: usize) -> &Shape {
        &self.arguments[at].0
    }

    /// How many arguments there are.
    pub(crate) fn count(&self) -> usize {
        self.arguments.len()
    }

    /// Sizes that are open.
    pub(crate) fn open(&self) -> &[Symbol] {
        &self.open
    }

    /// Takes over what the function has said about the sizes. Those that tensors which are the same in
    /// every call have are no longer open: they are what they are for these arguments.
    pub(crate) fn settle<'a>(
        &mut self,
        leaves: &[Tensor],
        fixed: impl Iterator<Item = &'a Shape> + Clone,
    ) {
        for _ in 0..2 {
            self.open.clear();
            for (shape, _) in &mut self.arguments {
                for axis in &mut shape.0 {
                    axis.size = size::resolve(&axis.size);
                    for symbol in axis.size.symbols() {
                        if !self.open.contains(&symbol) {
                            self.open.push(symbol);
                        }
                    }
                }
            }
            if self.open.is_empty() {
                return;
            }
            let is_fixed = |symbol: Symbol| {
                let mut axes = fixed.clone().flat_map(Shape::axes);
                axes.any(|axis| size::resolve(&axis.size).contains(symbol))
            };
            for (leaf, (shape, _)) in leaves.iter().zip(&self.arguments) {
                for (actual, axis) in leaf.shape().axes().iter().zip(shape.axes()) {
                    if axis.size.symbols().iter().any(|symbol| is_fixed(*symbol)) {
                        // One that cannot be so is found where the arguments are bound.
                        size::equate(&axis.size, &size::resolve(&actual.size));
                    }
                }
            }
        }
    }

    /// The values of open sizes for arguments, if it takes them.
    pub(crate) fn bind(&self, leaves: &[Tensor]) -> Option<Sizes> {
        if leaves.len() != self.arguments.len() {
            return None;
        }
        let mut values: SmallVec<[Option<i64>; 4]> = SmallVec::from_elem(None, self.open.len());
        for (leaf, (shape, dtype)) in leaves.iter().zip(&self.arguments) {
            if leaf.dtype() != *dtype || leaf.rank() != shape.rank() {
                return None;
            }
            for (actual, axis) in leaf.shape().axes().iter().zip(shape.axes()) {
                if actual.name != axis.name {
                    return None;
                }
                let actual = actual.known()? as i64;
                match axis.size.as_const() {
                    Some(size) if size == actual => {}
                    Some(_) => return None,
                    None => self.solve(&axis.size, actual, &mut values)?,
                }
            }
        }
        values.into_iter().collect()
    }

    /// Takes it that an expression over open sizes has a value; `None` if it has not.
    fn solve(&self, size: &Expr, actual: i64, values: &mut [Option<i64>]) -> Option<()> {
        let place = |symbol: Symbol| self.open.iter().position(|open| *open == symbol);
        let value = |symbol: Symbol| values[place(symbol)?];
        if let Ok(value) = size.evaluate(&value) {
            return (value == actual).then_some(());
        }
        let missing = size.symbols();
        let mut missing = missing.iter().filter(|symbol| value(**symbol).is_none());
        // One equation says what one size is.
        let (Some(symbol), None) = (missing.next(), missing.next()) else {
            return None;
        };
        let known = size
            .substitute(&|symbol| value(symbol).map(Expr::constant))
            .ok()?;
        let found = isolate(&known, &Expr::constant(actual), *symbol).ok()?;
        let found = found.as_const().filter(|size| *size >= 0)?;
        values[place(*symbol)?] = Some(found);
        Some(())
    }

    /// A shape over the open sizes at values of them.
    pub(crate) fn at(&self, shape: &Shape, values: &Sizes) -> Shape {
        let size = |size: &Expr| {
            let value = |symbol: Symbol| {
                let at = self.open.iter().position(|open| *open == symbol)?;
                Some(values[at])
            };
            let size = size::resolve(size);
            size.evaluate(&value).map_or(size, Expr::constant)
        };
        Shape::new(shape.axes().iter().map(|axis| Axis {
            name: axis.name.clone(),
            size: size(&axis.size),
        }))
    }

    /// How arguments differ from those that it takes.
    pub(crate) fn differences(&self, leaves: &[Tensor]) -> String {
        if self.arguments.len() != leaves.len() {
            let count = self.arguments.len();
            return format!("{} tensors in place of {count}", leaves.len());
        }
        let pairs = leaves.iter().zip(&self.arguments).enumerate();
        let differs = |(_, (leaf, (shape, dtype))): &(usize, (&Tensor, &(Shape, DType)))| {
            known(leaf.shape()) != *shape || leaf.dtype() != *dtype
        };
        let texts = pairs.filter(differs).map(|(at, (leaf, (shape, dtype)))| {
            format!(
                "argument {at} is {}{}, and was {dtype}{shape}",
                leaf.dtype(),
                leaf.shape()
            )
        });
        texts.collect::<Vec<_>>().join("; ")
    }
}

/// A shape with all that is known put in.
fn known(shape: &Shape) -> Shape {
    Shape::new(shape.axes().iter().map(|axis| Axis {
        name: axis.name.clone(),
        size: size::resolve(&axis.size),
    }))
}
