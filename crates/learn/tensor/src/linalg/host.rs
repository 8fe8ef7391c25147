//! Matrices whose values can be asked for: they are taken apart on the host, in `f64`.
//!
//! There is no largest size, and nothing to compile.

use crate::buffer::Buffer;
use crate::error::TensorError;
use crate::node::{Kind, Tensor, program_order};
use crate::ops::realize;
use crate::shape::{Axis, Shape};
use loopwright_graph::Array;
use loopwright_ops::DType;

/// Whether values can be asked for: nothing that a tensor is made of stands for what a function that is
/// traced or mapped will be given.
pub(super) fn is_known(a: &Tensor) -> bool {
    let stands_in = |tensor: &Tensor| {
        let kind = &tensor.node.kind;
        matches!(kind, Kind::Argument(_) | Kind::Variable(_)) && !tensor.is_computed()
    };
    a.sizes().is_ok() && !program_order(std::slice::from_ref(a)).iter().any(stands_in)
}

/// Applies a function to each matrix of a batch; its results have the sizes in `tails` behind the axes of the
/// batch, which all operands have. What is not finite makes all results of its matrix NaN.
#[track_caller]
pub(super) fn of_each<const N: usize>(
    operands: &[&Tensor],
    tails: [&[usize]; N],
    function: impl Fn(&[&[f64]]) -> [Vec<f64>; N],
) -> Result<[Tensor; N], TensorError> {
    let all: Vec<Tensor> = operands.iter().map(|operand| (*operand).clone()).collect();
    realize(&all)?;
    let mut values = Vec::with_capacity(all.len());
    for tensor in &all {
        values.push(numbers(&*tensor.lent()?));
    }
    let first = all[0].sizes()?;
    let lead = &first[..first.len() - 2];
    let count: usize = lead.iter().product();
    let mut results: [Vec<f64>; N] = std::array::from_fn(|_| Vec::new());
    for at in 0..count {
        let parts: Vec<&[f64]> = values
            .iter()
            .map(|values| {
                let each = values.len() / count;
                &values[at * each..(at + 1) * each]
            })
            .collect();
        let is_finite = parts.iter().all(|part| part.iter().all(|x| x.is_finite()));
        if is_finite {
            for (result, made) in results.iter_mut().zip(function(&parts)) {
                result.extend(made);
            }
        } else {
            for (result, tail) in results.iter_mut().zip(&tails) {
                let each = tail.iter().product();
                result.extend(std::iter::repeat_n(f64::NAN, each));
            }
        }
    }
    let dtype = all[0].dtype();
    let mut made = results.iter().zip(tails).map(|(values, tail)| {
        let sizes: Vec<usize> = lead.iter().chain(tail).copied().collect();
        let shape = Shape::new(sizes.iter().map(|size| Axis::of(*size)));
        Tensor::of_buffer(Buffer::of_array(array_of(dtype, &sizes, values)), shape)
    });
    Ok(std::array::from_fn(|_| {
        made.next().expect("as many results as sizes of them")
    }))
}

fn numbers(array: &Array) -> Vec<f64> {
    match array.dtype() {
        DType::F64 => bytemuck::cast_slice(array.bytes()).to_vec(),
        DType::F32 => {
            let narrow: &[f32] = bytemuck::cast_slice(array.bytes());
            narrow.iter().map(|x| f64::from(*x)).collect()
        }
        _ => array.to_f64(),
    }
}

fn array_of(dtype: DType, sizes: &[usize], values: &[f64]) -> Array {
    let made = match dtype {
        DType::F64 => Array::from_bytes(dtype, sizes, bytemuck::cast_slice(values)),
        DType::F32 => {
            let narrow: Vec<f32> = values.iter().map(|x| *x as f32).collect();
            Array::from_bytes(dtype, sizes, bytemuck::cast_slice(&narrow))
        }
        _ => Array::from_f64(dtype, sizes, values),
    };
    made.expect("as many numbers as the shape has")
}

/// The power of two that makes the largest element one from 1 to 2: no square of what matters is too large or
/// too small then.
pub(super) fn scale_of(values: &[f64]) -> f64 {
    match largest(values) {
        0.0 => 1.0,
        largest => power_below(largest).max(f64::MIN_POSITIVE),
    }
}

/// The largest absolute value.
pub(super) fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |most: f64, x| most.max(x.abs()))
}

/// The largest power of two that is not larger; 0 for what is smaller than all normal numbers.
pub(super) fn power_below(x: f64) -> f64 {
    f64::from_bits(x.to_bits() & f64::INFINITY.to_bits())
}

/// How many sums run beside each other in a dot product.
const LANES: usize = 8;

/// The sum of products.
pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (a, a_rest) = a.as_chunks::<LANES>();
    let (b, b_rest) = b.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f64>() + rest
}

/// `to += factor * from`.
pub(super) fn add_multiple(to: &mut [f64], factor: f64, from: &[f64]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to += factor * from;
    }
}

/// A matrix transposed.
pub(super) fn transposed(a: &[f64], rows: usize, columns: usize) -> Vec<f64> {
    let mut turned = vec![0.0; a.len()];
    // In blocks, so that neither side jumps through memory.
    const BLOCK: usize = 16;
    for row in (0..rows).step_by(BLOCK) {
        for column in (0..columns).step_by(BLOCK) {
            for i in row..rows.min(row + BLOCK) {
                for j in column..columns.min(column + BLOCK) {
                    turned[j * rows + i] = a[i * columns + j];
                }
            }
        }
    }
    turned
}
