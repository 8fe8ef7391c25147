//! The gradient of a view: every element of the input gets what flows to the places that show it.
//!
//! A view maps places of the result to places of the input. Where the map is affine it can be solved: for
//! an input's index, some of the result's indices follow and the others are free, and what flows back is a
//! sum over the free ones of a view the other way round. So the gradient of a convolution is a
//! convolution. What cannot be solved is scattered.

use crate::error::TensorError;
use crate::node::{Tensor, View};
use crate::ops::{refuse_shape, select};
use crate::shape::{Places, Shape};
use crate::size::{self, axis_index, axis_symbol};
use loopwright_ops::{DType, ReduceOp, Scalar};
use loopwright_symbolic::{Affine, Cmp, Error as ExprError, Expr, ExprKind, Symbol, affine};
use smallvec::SmallVec;

/// What flows to the input of a view.
#[track_caller]
pub(crate) fn part(view: &View, x: &Tensor, y: &Tensor, g: &Tensor) -> Result<Tensor, TensorError> {
    if let Some(inverse) = &view.inverse {
        let back = View::exact(inverse.clone(), view.map.clone());
        return Ok(g.view(back, x.shape().clone()));
    }
    let refuse = |error: ExprError| refuse_shape("gradient", y.shape(), error.to_string());
    let solved = solve(view, x, y).map_err(refuse)?;
    Ok(match solved {
        Some(solved) => solved.apply(x, y, g),
        None => scatter(view, x, y, g)?,
    })
}

/// A view the other way round.
struct Solved {
    /// For each axis of the result, its index over the input's axes and the free ones behind them.
    map: SmallVec<[Expr; 4]>,
    /// The axes of the result that are free, in order.
    free: Vec<usize>,
    constraints: Vec<Expr>,
}

impl Solved {
    #[track_caller]
    fn apply(self, x: &Tensor, y: &Tensor, g: &Tensor) -> Tensor {
        let mut shape = x.shape().clone();
        for axis in &self.free {
            let mut axis = y.shape().axes()[*axis].clone();
            // Both have axes of the same name, which may differ in size.
            axis.name = None;
            shape.0.push(axis);
        }
        let view = View {
            constraints: self.constraints,
            outside: Some(Scalar::zero(g.dtype())),
            ..View::inside(self.map)
        };
        let first = x.rank();
        let over: SmallVec<[usize; 2]> = (first..first + self.free.len()).collect();
        let back = g.view(view, plain(&shape));
        let folded = if over.is_empty() {
            back
        } else {
            back.fold(ReduceOp::Sum, over)
        };
        folded.in_place(x.shape().clone())
    }
}

/// The shape without names, which would not be unique.
fn plain(shape: &Shape) -> Shape {
    let mut shape = shape.clone();
    for axis in &mut shape.0 {
        axis.name = None;
    }
    shape
}

/// Stands for an axis of the result while the equations are solved.
fn open(axis: usize) -> Symbol {
    Symbol(u32::MAX - axis as u32)
}

fn solve(view: &View, x: &Tensor, y: &Tensor) -> Result<Option<Solved>, ExprError> {
    let rank = y.rank();
    let opens: Vec<Symbol> = (0..rank).map(open).collect();
    let as_open = |expr: &Expr| {
        size::resolve(expr)
            .substitute(&|symbol| size::symbol_axis(symbol).map(|axis| Expr::symbol(opens[axis])))
    };
    let sizes: Vec<i64> = y
        .shape()
        .axes()
        .iter()
        .map(|axis| axis.known().map_or(i64::MAX, |size| size as i64))
        .collect();
    let mut found: Vec<Option<Expr>> = vec![None; rank];
    let mut decided: Vec<usize> = Vec::new();
    let mut constraints = Vec::new();
    for (axis, expr) in view.map.iter().enumerate() {
        let expr = as_open(expr)?;
        // What has been found already is put in, the latest first: it is made of what is still open.
        let mut put = expr;
        for done in &decided {
            let value = found[*done].clone().expect("it was decided");
            put = put.substitute(&|symbol| (symbol == open(*done)).then(|| value.clone()))?;
        }
        let still: Vec<Symbol> = (0..rank)
            .filter(|at| found[*at].is_none())
            .map(open)
            .collect();
        let Some(Affine { coefficients, .. }) = affine(&put, &still) else {
            return Ok(None);
        };
        let candidates = coefficients.iter().filter_map(|(symbol, coefficient)| {
            let coefficient = coefficient.as_const()?;
            (coefficient != 0).then_some(((u32::MAX - symbol.0) as usize, coefficient))
        });
        let symbolic = coefficients
            .values()
            .any(|coefficient| coefficient.as_const().is_none());
        if symbolic {
            return Ok(None);
        }
        // The longest axis is solved for: the shorter ones are summed over.
        let chosen = candidates
            .max_by_key(|(at, coefficient)| (sizes[*at], -coefficient.abs(), -(*at as i64)));
        let index = axis_index(axis);
        let Some((at, coefficient)) = chosen else {
            constraints.push(Expr::compare(Cmp::Eq, &put, &index)?);
            continue;
        };
        let rest = put.substitute(&|symbol| (symbol == open(at)).then(|| Expr::constant(0)))?;
        let distance = match coefficient > 0 {
            true => index.sub(&rest)?,
            false => rest.sub(&index)?,
        };
        let step = Expr::constant(coefficient.abs());
        let value = distance.floor_div(&step)?;
        if coefficient.abs() != 1 {
            constraints.push(Expr::compare(
                Cmp::Eq,
                &distance.modulo(&step)?,
                &Expr::constant(0),
            )?);
        }
        // What was found before in terms of this axis is now in terms of its value.
        for done in &decided {
            let earlier = found[*done].take().expect("it was decided");
            found[*done] =
                Some(earlier.substitute(&|symbol| (symbol == open(at)).then(|| value.clone()))?);
        }
        for constraint in &mut constraints {
            *constraint =
                constraint.substitute(&|symbol| (symbol == open(at)).then(|| value.clone()))?;
        }
        found[at] = Some(value);
        decided.push(at);
    }
    for constraint in &view.constraints {
        constraints.push(as_open(constraint)?);
    }
    let free: Vec<usize> = (0..rank).filter(|at| found[*at].is_none()).collect();
    let place = |axis: usize| {
        free.iter()
            .position(|at| *at == axis)
            .map(|at| x.rank() + at)
    };
    if x.rank() + free.len() > size::MAX_AXES {
        return Ok(None);
    }
    let close = |expr: &Expr| {
        let mut expr = expr.clone();
        for at in (0..rank).rev() {
            if let Some(value) = &found[at] {
                expr = expr.substitute(&|symbol| (symbol == open(at)).then(|| value.clone()))?;
            }
        }
        expr.substitute(&|symbol| {
            let axis = (u32::MAX - symbol.0) as usize;
            (axis < rank).then(|| place(axis)).flatten().map(axis_index)
        })
    };
    let mut map = SmallVec::new();
    for (at, value) in found.iter().enumerate() {
        let value = value.clone().unwrap_or_else(|| Expr::symbol(open(at)));
        map.push(close(&value)?);
    }
    let constraints = constraints
        .iter()
        .map(close)
        .collect::<Result<Vec<_>, _>>()?;
    Ok(Some(Solved {
        map,
        free,
        constraints,
    }))
}

/// What flows back by the places that the map gives.
#[track_caller]
fn scatter(view: &View, x: &Tensor, y: &Tensor, g: &Tensor) -> Result<Tensor, TensorError> {
    let number = |value: i64| Tensor::constant(Scalar::i64(value));
    let mut flat = number(0);
    let mut inside = Tensor::constant(Scalar::bool(true));
    for (expr, axis) in view.map.iter().zip(x.shape().axes()) {
        let index = value_of(&size::resolve(expr), y);
        let size = Tensor::size_value(&size::resolve(&axis.size));
        inside = inside & index.ge(&number(0)) & index.lt(&size);
        flat = flat * size + index;
    }
    for constraint in &view.constraints {
        inside = inside & value_of(&size::resolve(constraint), y).ne(&number(0));
    }
    let flat = select(&inside, &flat, &number(-1))
        .broadcast_to(plain(y.shape()))
        .flatten();
    let zeros = x.zeros_like().unnamed().flatten();
    let summed = zeros.scatter(&flat, &g.unnamed().flatten(), 0, Some(ReduceOp::Sum));
    let back = summed.reshape(x.shape());
    back.check()?;
    Ok(back)
}

/// An expression over the axes of a tensor, for all its places (`i64`).
#[track_caller]
fn value_of(expr: &Expr, of: &Tensor) -> Tensor {
    let two = |a: &Expr, b: &Expr| (value_of(a, of), value_of(b, of));
    match expr.kind() {
        ExprKind::Const(value) => Tensor::constant(Scalar::i64(*value)),
        ExprKind::Symbol(symbol) => match size::symbol_axis(*symbol) {
            Some(axis) => {
                debug_assert_eq!(*symbol, axis_symbol(axis));
                let index = Tensor::index(plain(of.shape()).axes()[axis].clone());
                let places: Places = (0..of.rank()).map(|at| (at == axis).then_some(0)).collect();
                index.spread(&plain(of.shape()), &places)
            }
            None => Tensor::size_value(expr),
        },
        ExprKind::Add(terms) => {
            let zero = Tensor::constant(Scalar::i64(0));
            terms
                .iter()
                .fold(zero, |sum, term| sum + value_of(term, of))
        }
        ExprKind::Mul(factors) => {
            let one = Tensor::constant(Scalar::i64(1));
            factors
                .iter()
                .fold(one, |product, factor| product * value_of(factor, of))
        }
        ExprKind::FloorDiv(a, b) => {
            let (a, b) = two(a, b);
            a.floor_div(&b)
        }
        ExprKind::Mod(a, b) => {
            let (a, b) = two(a, b);
            a.modulo(&b)
        }
        ExprKind::Min(a, b) => {
            let (a, b) = two(a, b);
            a.minimum(&b)
        }
        ExprKind::Max(a, b) => {
            let (a, b) = two(a, b);
            a.maximum(&b)
        }
        ExprKind::Compare(cmp, a, b) => {
            let (a, b) = two(a, b);
            let holds = match cmp {
                Cmp::Eq => a.eq(&b),
                Cmp::Ne => a.ne(&b),
                Cmp::Lt => a.lt(&b),
                Cmp::Le => a.le(&b),
            };
            holds.cast(DType::I64)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IntoShape;
    use crate::node::{Kind, program_order};
    use crate::ops::{Slice, Window};
    use crate::session::Session;
    use loopwright_interp as _;

    /// Numbers that only depend on where they start.
    struct Random(u64);

    impl Random {
        fn below(&mut self, end: usize) -> usize {
            let step = 6_364_136_223_846_793_005;
            self.0 = self.0.wrapping_mul(step).wrapping_add(1);
            (self.0 >> 33) as usize % end
        }
    }

    fn moved(x: &Tensor, random: &mut Random) -> Tensor {
        let axis = random.below(x.rank());
        let sizes = x.sizes().expect("all sizes are known");
        let step = [2, -1, -2, 3][random.below(4)];
        match random.below(13) {
            0 => x.transpose(axis, random.below(x.rank())),
            1 => x.flip(axis),
            2 => x.roll(random.below(5) as i64 - 2, axis),
            3 if sizes[axis] > 2 => {
                let part = |at| match at == axis {
                    true => Slice::All.step(step),
                    false => Slice::All,
                };
                x.at((0..x.rank()).map(part).collect::<Vec<_>>())
            }
            4 => x.pad(axis, 2, random.below(3) as i64 - 1, 0.0),
            5 if sizes[axis] > 3 && x.rank() < 5 => {
                let window = Window::new(1 + random.below(2))
                    .stride(1 + random.below(3))
                    .dilation(1 + random.below(3))
                    .padding(random.below(2));
                x.window(axis, &window, Some(Scalar::zero(DType::F64)))
            }
            6 => x.flatten(),
            7 if x.rank() > 1 => x.merge_axes(axis.saturating_sub(1), axis),
            8 if x.rank() > 1 => x.tril(random.below(3) as i64 - 1),
            9 => x.repeat(axis, 2),
            10 => x.tile(axis, 2),
            11 if sizes[axis].is_multiple_of(2) && sizes[axis] > 0 => {
                x.split_axis(axis, [2, sizes[axis] / 2])
            }
            12 if x.rank() > 2 => x.diagonal(),
            _ => x.unsqueeze(axis),
        }
    }

    fn weights(shape: &Shape) -> Tensor {
        let count = shape.elements().expect("all sizes are known");
        let values: Vec<f64> = (0..count).map(|at| (at as f64 * 0.73).sin()).collect();
        Tensor::new(&values, shape)
    }

    #[test]
    fn what_is_solved_is_what_is_scattered() {
        let session = Session::new("interp").expect("the interpreter works everywhere");
        let (mut solved, mut scattered) = (0, 0);
        for seed in 0..60 {
            let mut random = Random(seed);
            let mut y = weights(&[3, 4, 2].into_shape());
            for _ in 0..6 {
                let next = moved(&y, &mut random);
                next.check().expect("the view is possible");
                if next
                    .shape()
                    .elements()
                    .is_some_and(|count| (1..2000).contains(&count))
                {
                    y = next;
                }
            }
            for y in program_order(&[y]) {
                let Kind::View(view) = &y.node.kind else {
                    continue;
                };
                let x = &y.node.inputs[0];
                let g = weights(y.shape());
                let expected = scatter(view, x, &y, &g).expect("anything can be scattered");
                let mut ways = vec![part(view, x, &y, &g).expect("it has a gradient")];
                match solve(view, x, &y).expect("sizes are small") {
                    Some(back) => {
                        solved += 1;
                        ways.push(back.apply(x, &y, &g));
                    }
                    None => scattered += 1,
                }
                let value = |tensor: &Tensor| session.scope(|| tensor.to_f64());
                let expected = value(&expected).expect("it has a value");
                for way in ways {
                    let got = value(&way).expect("it has a value");
                    assert_eq!(got.len(), expected.len());
                    for (got, expected) in got.iter().zip(&expected) {
                        assert!((got - expected).abs() < 1e-9, "{seed}: {view:?}");
                    }
                }
            }
        }
        assert!(solved > 100, "{solved}");
        assert!(scattered > 20, "{scattered}");
    }
}
