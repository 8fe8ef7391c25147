//! Gradients of folds and running folds.

use crate::error::TensorError;
use crate::node::Tensor;
use crate::ops::select;
use crate::shape::{Axis, Places};
use loopwright_ops::{DType, ReduceOp};

/// What flows to the operand of a fold.
#[track_caller]
pub(crate) fn reduce(
    op: ReduceOp,
    over: &[usize],
    x: &Tensor,
    y: &Tensor,
    g: &Tensor,
) -> Option<Tensor> {
    let spread = |tensor: &Tensor| tensor.put_back(x.shape(), over);
    match op {
        ReduceOp::Sum => Some(spread(g)),
        ReduceOp::Max | ReduceOp::Min => {
            // All that are the largest share it.
            let chosen = x.eq(&spread(y)).cast(x.dtype());
            let count = chosen.fold(ReduceOp::Sum, over.into());
            Some(chosen * spread(&(g / count)))
        }
        ReduceOp::Prod => {
            // The product of all others, also where one is 0: those before times those behind.
            let (mut part, rank) = (x.clone(), x.rank());
            let order: Vec<usize> = (0..rank)
                .filter(|axis| !over.contains(axis))
                .chain(over.iter().copied())
                .collect();
            part = part.turned(&order);
            let turned = part.shape().clone();
            let kept = rank - over.len();
            let lines = part.unnamed().merge_axes(kept, rank - 1);
            let others = lines.scan(ReduceOp::Prod, kept, true, false)
                * lines.scan(ReduceOp::Prod, kept, true, true);
            let mut back = vec![0; rank];
            for (place, axis) in order.iter().enumerate() {
                back[*axis] = place;
            }
            let others = others.reshape(&turned).turned(&back);
            Some(others * spread(g))
        }
        ReduceOp::Any | ReduceOp::All => None,
    }
}

/// What flows to the operand of a running fold.
#[track_caller]
pub(crate) fn scan(
    op: ReduceOp,
    over: usize,
    exclusive: bool,
    reverse: bool,
    x: &Tensor,
    y: &Tensor,
    g: &Tensor,
) -> Result<Option<Tensor>, TensorError> {
    Ok(match op {
        ReduceOp::Sum => Some(g.scan(ReduceOp::Sum, over, exclusive, !reverse)),
        ReduceOp::Max | ReduceOp::Min => {
            let index = place(x, over);
            // The running value is that of the place where it was last seen; nobody's is passed over.
            let shown = match exclusive {
                true => shifted(x, y, over, reverse)?,
                false => x.eq(y),
            };
            let nobody = index.zeros_like() - 1;
            let index = if reverse { -index.clone() } else { index };
            let lowest = Tensor::full(x.shape(), i64::MIN, DType::I64);
            let seen =
                select(&shown, &index, &lowest).scan(ReduceOp::Max, over, exclusive, reverse);
            let none = seen.eq(&lowest);
            let seen = if reverse { -seen } else { seen };
            let seen = select(&none, &nobody, &seen);
            Some(
                g.zeros_like()
                    .scatter_along(&seen, g, over, Some(ReduceOp::Sum)),
            )
        }
        ReduceOp::Prod => Some(products(over, exclusive, reverse, x, g)?),
        ReduceOp::Any | ReduceOp::All => None,
    })
}

/// The index along an axis, everywhere.
#[track_caller]
fn place(x: &Tensor, axis: usize) -> Tensor {
    let index = Tensor::index(x.shape().axes()[axis].clone());
    let places: Places = (0..x.rank()).map(|at| (at == axis).then_some(0)).collect();
    index.spread(x.shape(), &places)
}

/// Whether an element is the running value that its successor sees.
#[track_caller]
fn shifted(x: &Tensor, y: &Tensor, over: usize, reverse: bool) -> Result<Tensor, TensorError> {
    let zero = loopwright_ops::Scalar::zero(x.dtype());
    let next = match reverse {
        false => y.padded(over, -1, 1, zero)?,
        true => y.padded(over, 1, -1, zero)?,
    };
    // Whatever the one at the end is compared with, nobody sees it.
    Ok(x.eq(&next))
}

/// For running products: the product of all others up to each place, summed with what flows there.
#[track_caller]
fn products(
    over: usize,
    exclusive: bool,
    reverse: bool,
    x: &Tensor,
    g: &Tensor,
) -> Result<Tensor, TensorError> {
    // One more axis, `at`, behind `over`: the running products as they would be from an element on.
    let axis = &x.shape().axes()[over];
    let mut shape = x.shape().clone();
    shape.0.insert(
        over + 1,
        Axis {
            name: None,
            size: axis.size.clone(),
        },
    );
    let along = |tensor: &Tensor, place: usize| {
        let places: Places = (0..shape.rank())
            .map(|at| match at {
                at if at == over || at == over + 1 => (at == place).then_some(over),
                at if at > over => Some(at - 1),
                at => Some(at),
            })
            .collect();
        tensor.spread(&shape, &places)
    };
    let index = place(x, over);
    let (from, at) = (along(&index, over), along(&index, over + 1));
    let behind = if reverse { at.lt(&from) } else { at.gt(&from) };
    let factors = select(
        &behind,
        &along(x, over + 1),
        &Tensor::ones(&shape, x.dtype()),
    );
    let onward = factors.scan(ReduceOp::Prod, over + 1, exclusive, reverse);
    let counts = match (exclusive, reverse) {
        (true, _) => behind,
        (false, true) => at.le(&from),
        (false, false) => at.ge(&from),
    };
    let flows = select(
        &counts,
        &(onward * along(g, over + 1)),
        &Tensor::zeros(&shape, x.dtype()),
    );
    let before = x.scan(ReduceOp::Prod, over, true, reverse);
    Ok(flows.sum(over + 1) * before)
}
