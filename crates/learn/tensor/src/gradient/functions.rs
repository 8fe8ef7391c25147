//! Derivatives of functions: of what they give, with respect to what they are given.

use crate::error::{ErrorKind, TensorError};
use crate::jit::Outcome;
use crate::node::{Kind, Tensor, View};
use crate::shape::{Axis, Places, Shape};
use crate::size::{self, axis_index};
use crate::tree::Tree;
use crate::vmap::vmap;
use loopwright_symbolic::Expr;
use smallvec::SmallVec;

/// What a function gives, and the gradients of the first tensor of it, a single number, with respect to the
/// arguments: structured as these are.
///
/// Other tensors that the function gives come back with the value. Only what comes in as an argument gets a
/// gradient; the same tensor as two arguments gets one for each. Arguments that are not floats, and those that
/// the number does not depend on, get zeros.
///
/// ```
/// # use loopwright_x86 as _;
/// use loopwright_tensor::{Tensor, value_and_grad};
///
/// let x = Tensor::from([1.0f32, 2.0]);
/// let w = Tensor::from([3.0f32, 4.0]);
/// let loss = |(x, w): &(Tensor, Tensor)| (x * w).sum(..);
/// let (value, (dx, dw)) = value_and_grad(loss, &(x, w))?;
/// assert_eq!(value.item()?, 11.0);
/// assert_eq!(dx.to_vec::<f32>()?, [3.0, 4.0]);
/// assert_eq!(dw.to_vec::<f32>()?, [1.0, 2.0]);
/// # Ok::<(), loopwright_tensor::TensorError>(())
/// ```
///
/// # Errors
/// Where the first tensor is not a single float or there is none, and what is wrong with the function.
#[track_caller]
pub fn value_and_grad<I: Tree, O: Outcome>(
    function: impl FnOnce(&I) -> O,
    arguments: &I,
) -> Result<(O::Tree, I), TensorError> {
    let (own, leaves) = own_arguments(arguments)?;
    let given = function(&own).into_tree()?;
    let results = given.leaves();
    for result in &results {
        result.check()?;
    }
    let Some(value) = results.first() else {
        return Err(TensorError::new(ErrorKind::Gradient {
            reason: "the function gives no tensor".to_owned(),
        }));
    };
    let of: Vec<&Tensor> = leaves.iter().collect();
    let gradients = in_order(arguments, value.gradients_of(&of))?;
    Ok((given, gradients))
}

/// The gradients of a function that gives a single number: [`value_and_grad`] without the value.
///
/// ```
/// # use loopwright_x86 as _;
/// use loopwright_tensor::{Tensor, grad};
///
/// let cube = |x: &Tensor| x * x * x;
/// let slope = |x: &Tensor| grad(cube, x);
/// let x = Tensor::scalar(2.0f32);
/// assert_eq!(slope(&x)?.item()?, 12.0);
/// assert_eq!(grad(slope, &x)?.item()?, 12.0); // 6 x
/// # Ok::<(), loopwright_tensor::TensorError>(())
/// ```
///
/// # Errors
/// As [`value_and_grad`].
#[track_caller]
pub fn grad<I: Tree, O: Outcome>(
    function: impl FnOnce(&I) -> O,
    arguments: &I,
) -> Result<I, TensorError> {
    let (_, gradients) = value_and_grad(function, arguments)?;
    Ok(gradients)
}

/// The derivative of every element that a function gives with respect to every element of the arguments: for
/// each argument a tensor with the axes of the result, then those of the argument.
///
/// Each element of the result takes one pass backwards, all mapped at once ([`vmap`]):
/// [`jacobian_forward`] is less work where there are fewer elements in the arguments. A name that the result
/// and an argument have both is the result's.
///
/// ```
/// # use loopwright_x86 as _;
/// use loopwright_tensor::{Tensor, jacobian};
///
/// let a = Tensor::from([[1.0f32, 2.0], [3.0, 4.0], [5.0, 6.0]]);
/// let product = |x: &Tensor| a.matmul(x);
/// let slopes = jacobian(product, &Tensor::from([7.0f32, 8.0]))?;
/// assert_eq!(slopes.to_vec::<f32>()?, a.to_vec::<f32>()?);
/// # Ok::<(), loopwright_tensor::TensorError>(())
/// ```
///
/// # Errors
/// Where the result is not of floats, and what is wrong with the function.
#[track_caller]
pub fn jacobian<I: Tree, O: Outcome<Tree = Tensor>>(
    function: impl FnOnce(&I) -> O,
    arguments: &I,
) -> Result<I, TensorError> {
    let (own, leaves) = own_arguments(arguments)?;
    let result = function(&own).into_tree()?;
    result.check()?;
    let of: Vec<&Tensor> = leaves.iter().collect();
    let rows = vmap(|weight: &Tensor| result.vjp(weight, &of)).call(&basis(&result)?)?;
    let rows = rows.iter().zip(&leaves).map(|(rows, leaf)| {
        let first = rows.shape().axes()[0].clone();
        let rest = unnamed(leaf.shape(), result.shape());
        let rows = rows.in_place(Shape::new(std::iter::once(first).chain(rest)));
        split(&rows, 0, result.shape())
    });
    in_order(arguments, rows.collect())
}

/// As [`jacobian`], forwards: each element of the arguments takes one pass.
///
/// # Errors
/// As [`jacobian`].
#[track_caller]
pub fn jacobian_forward<I: Tree, O: Outcome<Tree = Tensor>>(
    function: impl FnOnce(&I) -> O,
    arguments: &I,
) -> Result<I, TensorError> {
    let (own, leaves) = own_arguments(arguments)?;
    let result = function(&own).into_tree()?;
    result.check()?;
    let mut columns = Vec::with_capacity(leaves.len());
    for leaf in &leaves {
        let axes = Shape::new(unnamed(leaf.shape(), result.shape()));
        if !leaf.dtype().is_float() {
            let both = result.shape().axes().iter().chain(axes.axes());
            columns.push(Tensor::zeros(Shape::new(both.cloned()), leaf.dtype()));
            continue;
        }
        let column = vmap(|direction: &Tensor| result.jvp(&[leaf], &[direction])).to(-1);
        let column = column.call(&basis(leaf)?)?;
        columns.push(split(&column, result.rank(), &axes));
    }
    in_order(arguments, columns)
}

/// The second derivatives of a function that gives a single number: the axes of the argument, twice, the
/// second time without names.
///
/// ```
/// # use loopwright_x86 as _;
/// use loopwright_tensor::{Tensor, hessian};
///
/// let bowl = |x: &Tensor| (x.square() * Tensor::from([1.0f32, 3.0])).sum(..) + x.prod(..);
/// let curvature = hessian(bowl, &Tensor::from([5.0f32, 6.0]))?;
/// assert_eq!(curvature.to_vec::<f32>()?, [2.0, 1.0, 1.0, 6.0]);
/// # Ok::<(), loopwright_tensor::TensorError>(())
/// ```
///
/// # Errors
/// As [`value_and_grad`].
#[track_caller]
pub fn hessian<O: Outcome>(
    function: impl FnOnce(&Tensor) -> O,
    argument: &Tensor,
) -> Result<Tensor, TensorError> {
    jacobian(|x: &Tensor| grad(function, x), argument)
}

/// Arguments that are nobody else's, and the tensors of them: what a function has taken along of the same
/// tensors is constant.
#[track_caller]
fn own_arguments<I: Tree>(arguments: &I) -> Result<(I, Vec<Tensor>), TensorError> {
    let mut leaves = Vec::new();
    let own = arguments.replace(&mut |leaf| {
        let map: SmallVec<[Expr; 4]> = (0..leaf.rank()).map(axis_index).collect();
        let kind = Kind::View(View::exact(map.clone(), map));
        let own = Tensor::make(kind, &[leaf], leaf.shape().clone(), leaf.dtype());
        leaves.push(own.clone());
        own
    });
    for leaf in &leaves {
        leaf.check()?;
    }
    Ok((own, leaves))
}

/// Tensors structured as arguments are.
fn in_order<I: Tree>(arguments: &I, tensors: Vec<Tensor>) -> Result<I, TensorError> {
    for tensor in &tensors {
        tensor.check()?;
    }
    let mut tensors = tensors.into_iter();
    Ok(arguments.replace(&mut |_| {
        let next = tensors.next();
        next.expect("a tree shows as many tensors as it replaces")
    }))
}

/// For every element of a tensor, along a first axis, the tensor's shape with a 1 there and zeros elsewhere.
#[track_caller]
fn basis(like: &Tensor) -> Result<Tensor, TensorError> {
    let mut count = Expr::constant(1);
    for axis in like.shape().axes() {
        let product = count.mul(&size::resolve(&axis.size));
        count = product.map_err(|error| like.refusal("jacobian", &error.to_string()))?;
    }
    let first = Axis::of(count);
    let axes = like.shape().axes().iter().cloned();
    let shape = Shape::new(std::iter::once(first.clone()).chain(axes));
    let rank = like.rank();
    let at: Places = std::iter::once(Some(0))
        .chain((0..rank).map(|_| None))
        .collect();
    let own: Places = std::iter::once(None).chain((0..rank).map(Some)).collect();
    let index = Tensor::index(first).spread(&shape, &at);
    let number = Tensor::numbered(like.shape()).spread(&shape, &own);
    Ok(index.eq(&number).cast(like.dtype()))
}

/// The axes of an argument, without the names that a result has.
fn unnamed(argument: &Shape, result: &Shape) -> impl Iterator<Item = Axis> {
    argument.axes().iter().map(|axis| Axis {
        name: axis.name.clone().filter(|name| result.find(name).is_none()),
        size: axis.size.clone(),
    })
}

/// An axis over all elements of a shape as the axes of that shape.
#[track_caller]
fn split(tensor: &Tensor, axis: usize, shape: &Shape) -> Tensor {
    match shape.rank() {
        0 => tensor.squeeze(axis),
        _ => tensor.split_axis(axis, shape),
    }
}
