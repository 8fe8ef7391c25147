//! Eigenvalues and eigenvectors of matrices that need not be symmetric, on the host: reflections to a Hessenberg matrix
//! and QR iteration with shifts.
//!
//! Real matrices stay real (Francis' double shift), so that real eigenvalues have no imaginary part and others come
//! in conjugate pairs; complex ones take single shifts. Both are scaled by a power of two and balanced before.

use super::complex::{C, Square};
use super::host::{is_known, of_each, scale_of};
use super::{francis, square};
use crate::error::TensorError;
use crate::node::Tensor;
use crate::ops::{failure, refuse_shape, settle};

/// The eigenvalues of square matrices and their eigenvectors as columns of length 1: real and imaginary parts of both.
/// The imaginary parts of the matrices are left out where they are real. The order of eigenvalues is open.
///
/// Values have to be known, which they are not in a function that is traced; there is no gradient.
#[track_caller]
pub fn eig(re: &Tensor, im: Option<&Tensor>) -> [Tensor; 4] {
    let operands: Vec<&Tensor> = [re].into_iter().chain(im).collect();
    if let Some(failed) = failure(&operands) {
        return [0; 4].map(|_| failed.clone());
    }
    match computed("eig", &operands, true) {
        Ok(all) => all,
        Err(error) => [0; 4].map(|_| settle(Err(error.clone()))),
    }
}

/// The eigenvalues alone: their real and imaginary parts.
#[track_caller]
pub fn eigvals(re: &Tensor, im: Option<&Tensor>) -> [Tensor; 2] {
    let operands: Vec<&Tensor> = [re].into_iter().chain(im).collect();
    if let Some(failed) = failure(&operands) {
        return [0; 2].map(|_| failed.clone());
    }
    match computed("eigvals", &operands, false) {
        Ok([re, im, _, _]) => [re, im],
        Err(error) => [0; 2].map(|_| settle(Err(error.clone()))),
    }
}

#[track_caller]
fn computed(
    op: &'static str,
    operands: &[&Tensor],
    with_vectors: bool,
) -> Result<[Tensor; 4], TensorError> {
    let size = square(op, operands[0])?;
    let refuse = |reason: &str| refuse_shape(op, operands[0].shape(), reason.to_owned());
    if size == 0 {
        return Err(refuse("a matrix has rows and columns"));
    }
    if !operands.iter().all(|operand| is_known(operand)) {
        return Err(refuse(
            "its values are not known, as in a function that is traced; compute it outside",
        ));
    }
    let operands: Vec<Tensor> = operands.iter().map(|operand| operand.unnamed()).collect();
    let operands: Vec<&Tensor> = operands.iter().collect();
    let whole: &[usize] = if with_vectors { &[size, size] } else { &[0, 0] };
    let made = of_each(&operands, [&[size], &[size], whole, whole], |parts| {
        let solved = match parts {
            [re, im] => of_complex(re, im, size, with_vectors),
            _ => of_real(parts[0], size, with_vectors),
        };
        solved.unwrap_or_else(|| {
            let each = whole.iter().product();
            [size, size, each, each].map(|count| vec![f64::NAN; count])
        })
    })?;
    Ok(made.map(|made| {
        made.with_gradient(&operands, move |of, _, _| {
            let reason = "eigenvalues and eigenvectors of general matrices have no gradient";
            vec![Tensor::of_error(of[0].refusal(op, reason)); of.len()]
        })
    }))
}

type Parts = [Vec<f64>; 4];

fn of_real(a: &[f64], size: usize, with_vectors: bool) -> Option<Parts> {
    let scale = scale_of(a);
    let mut matrix: Vec<f64> = a.iter().map(|x| x / scale).collect();
    let powers = balanced(size, |row, column| matrix[row * size + column].abs());
    for (at, x) in matrix.iter_mut().enumerate() {
        *x *= powers[at % size] / powers[at / size];
    }
    let solved = francis::solve(matrix, size, with_vectors)?;
    let mut vectors = match with_vectors {
        true => solved.vectors(size),
        false => Square::zeros(0),
    };
    finish(&mut vectors, &powers);
    Some(parts(&solved.values, scale, vectors))
}

fn of_complex(re: &[f64], im: &[f64], size: usize, with_vectors: bool) -> Option<Parts> {
    let scale = scale_of(re).max(scale_of(im));
    // One of both may be all zeros, whose scale is 1.
    let scale = match [re, im].map(|part| part.iter().any(|x| *x != 0.0)) {
        [true, false] => scale_of(re),
        [false, true] => scale_of(im),
        _ => scale,
    };
    let mut matrix = Square::zeros(size);
    for (at, (re, im)) in re.iter().zip(im).enumerate() {
        *matrix.at_mut(at / size, at % size) = C::new(re / scale, im / scale);
    }
    let powers = balanced(size, |row, column| matrix.at(row, column).abs());
    for row in 0..size {
        for column in 0..size {
            let x = matrix.at(row, column);
            *matrix.at_mut(row, column) = x.times(powers[column] / powers[row]);
        }
    }
    let (values, mut vectors) = super::complex::solve(matrix, with_vectors)?;
    finish(&mut vectors, &powers);
    Some(parts(&values, scale, vectors))
}

fn parts(values: &[C], scale: f64, vectors: Square) -> Parts {
    [
        values.iter().map(|value| value.re * scale).collect(),
        values.iter().map(|value| value.im * scale).collect(),
        vectors.elements().iter().map(|x| x.re).collect(),
        vectors.elements().iter().map(|x| x.im).collect(),
    ]
}

/// Powers of two by which columns are multiplied and rows divided, so that both are about as long: rounding then
/// spoils no small eigenvalue by the size of others. (Osborne's iteration.)
fn balanced(size: usize, element: impl Fn(usize, usize) -> f64) -> Vec<f64> {
    let mut powers = vec![1.0f64; size];
    for _ in 0..20 {
        let mut settled = true;
        for at in 0..size {
            let others = || (0..size).filter(move |other| *other != at);
            let sum = |pairs: &mut dyn Iterator<Item = f64>| pairs.sum::<f64>();
            let row = sum(&mut others().map(|j| element(at, j) * powers[j])) / powers[at];
            let column = sum(&mut others().map(|i| element(i, at) / powers[i])) * powers[at];
            if row == 0.0 || column == 0.0 || !row.is_finite() || !column.is_finite() {
                continue;
            }
            let factor = (row / column)
                .sqrt()
                .log2()
                .round()
                .clamp(-60.0, 60.0)
                .exp2();
            let better = row / factor + column * factor < 0.95 * (row + column);
            let next = powers[at] * factor;
            if better && (1e-100..1e100).contains(&next) {
                powers[at] = next;
                settled = false;
            }
        }
        if settled {
            break;
        }
    }
    powers
}

/// Takes the balance back and makes columns as long as 1.
fn finish(vectors: &mut Square, powers: &[f64]) {
    let size = vectors.size();
    for column in 0..size {
        for (row, power) in powers.iter().enumerate().take(size) {
            let x = vectors.at(row, column).times(*power);
            *vectors.at_mut(row, column) = x;
        }
        let largest = (0..size).fold(0.0f64, |most, row| most.max(vectors.at(row, column).abs()));
        if largest == 0.0 {
            continue;
        }
        let squares = (0..size).map(|row| vectors.at(row, column).times(1.0 / largest).squared());
        let length = squares.sum::<f64>().sqrt() * largest;
        for row in 0..size {
            let x = vectors.at(row, column);
            *vectors.at_mut(row, column) = C::new(x.re / length, x.im / length);
        }
    }
}
