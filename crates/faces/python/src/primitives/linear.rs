//! Linear algebra and Fourier transforms.

use super::real_only;
use crate::array::{Array, Value, made_of};
use crate::errors::OrRaise;
use crate::interrupts::Interruptible;
use crate::promote::promoted;
use loopwright_tensor::fft::Complex;
use loopwright_tensor::{Tensor, fft, linalg};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// A formula of indices: `"ij, jk -> ik"`.
#[pyfunction]
#[pyo3(signature = (formula, *operands))]
pub(crate) fn einsum(
    py: Python<'_>,
    formula: &str,
    operands: Vec<Bound<'_, Array>>,
) -> PyResult<Array> {
    let mut all = Vec::with_capacity(operands.len());
    for operand in &operands {
        all.push(real_only(operand.get(), "einsum")?);
    }
    let Some(first) = all.first() else {
        return Err(PyValueError::new_err("einsum: there are no operands"));
    };
    let mut dtype = first.dtype();
    for value in &all {
        dtype = promoted(dtype, value.dtype())?;
    }
    let all: Vec<Value> = all.iter().map(|value| value.cast(dtype)).collect();
    let tensors: Vec<&Tensor> = all.iter().map(|value| &value.re).collect();
    let made = loopwright_tensor::einsum(formula, &tensors);
    Array::of(py, made_of(&all.iter().collect::<Vec<_>>(), made, None)?)
}

/// A function of linear algebra with one array in, some out.
fn factored<const N: usize>(
    py: Python<'_>,
    x: &Array,
    name: &str,
    function: impl Fn(&Tensor) -> [Tensor; N] + Sync,
) -> PyResult<[Array; N]> {
    let value = real_only(x, name)?;
    // Large matrices are taken apart now.
    let made = py.interruptible(|| value.session.scope(|| function(&value.re)))?;
    let mut arrays = Vec::with_capacity(N);
    for tensor in made {
        arrays.push(Array::of(py, made_of(&[&value], tensor, None)?)?);
    }
    let Ok(arrays) = arrays.try_into() else {
        unreachable!("one array for each tensor")
    };
    Ok(arrays)
}

macro_rules! factors {
    ($($(#[$doc:meta])* $name:ident($rust:path) -> $($out:ident)*;)*) => {
        $($(#[$doc])* #[pyfunction]
        pub(crate) fn $name(py: Python<'_>, x: &Array) -> PyResult<Py<PyAny>> {
            let made = factored(py, x, stringify!($name), |part| {
                #[allow(unused_parens, reason = "one or several")]
                let ($($out),*) = $rust(part);
                [$($out),*]
            })?;
            let mut made: Vec<Array> = made.into();
            match made.len() {
                1 => Ok(Py::new(py, made.remove(0))?.into_any()),
                _ => {
                    let made = made.into_iter().map(|array| Py::new(py, array));
                    let made: Vec<Py<Array>> = made.collect::<PyResult<_>>()?;
                    Ok(PyTuple::new(py, made)?.into_any().unbind())
                }
            }
        })*
    };
}

factors! {
    /// The lower Cholesky factor.
    linalg_cholesky(linalg::cholesky) -> a;
    /// The determinant.
    linalg_det(linalg::det) -> a;
    /// The inverse.
    linalg_inv(linalg::inverse) -> a;
    /// Sign and logarithm of the determinant.
    linalg_slogdet(linalg::slogdet) -> a b;
    /// The columns that make those of an orthogonal matrix a square one.
    linalg_complement(linalg::complement) -> a;
    /// An orthogonal and an upper triangular factor.
    linalg_qr(linalg::qr) -> a b;
    /// Eigenvalues, rising, and eigenvectors of symmetric matrices.
    linalg_eigh(linalg::eigh) -> a b;
    /// Eigenvalues of symmetric matrices, rising.
    linalg_eigvalsh(linalg::eigvalsh) -> a;
    /// Singular values, falling.
    linalg_svdvals(linalg::svdvals) -> a;
    /// Left vectors, values, falling, and right vectors.
    linalg_svd(linalg::svd) -> a b c;
}

/// Solves `a x = b`.
#[pyfunction]
pub(crate) fn linalg_solve(py: Python<'_>, a: &Array, b: &Array) -> PyResult<Array> {
    let (a, b) = (real_only(a, "solve")?, real_only(b, "solve")?);
    let mut made = made_of(&[&a, &b], a.re.clone(), None)?;
    let session = made.session.clone();
    made.re = py.interruptible(|| session.scope(|| linalg::solve(&a.re, &b.re)))?;
    Array::of(py, made)
}

/// Complex arrays of pairs of tensors.
fn pairs(py: Python<'_>, value: &Value, made: Vec<Tensor>) -> PyResult<Vec<Array>> {
    let pairs = made.chunks_exact(2);
    pairs
        .map(|pair| {
            let (re, im) = (pair[0].clone(), pair[1].clone());
            Array::of(py, made_of(&[value], re, Some(im))?)
        })
        .collect()
}

/// Eigenvalues and eigenvectors of square matrices, real or complex.
#[pyfunction]
pub(crate) fn linalg_eig(py: Python<'_>, x: &Array) -> PyResult<(Array, Array)> {
    let value = x.value();
    let solve = || {
        value
            .session
            .scope(|| linalg::eig(&value.re, value.im.as_ref()))
    };
    let mut made = pairs(py, &value, py.interruptible(solve)?.to_vec())?.into_iter();
    match (made.next(), made.next()) {
        (Some(values), Some(vectors)) => Ok((values, vectors)),
        _ => unreachable!("four tensors are two pairs"),
    }
}

/// Eigenvalues of square matrices, real or complex.
#[pyfunction]
pub(crate) fn linalg_eigvals(py: Python<'_>, x: &Array) -> PyResult<Array> {
    let value = x.value();
    let solve = || {
        value
            .session
            .scope(|| linalg::eigvals(&value.re, value.im.as_ref()))
    };
    let mut made = pairs(py, &value, py.interruptible(solve)?.to_vec())?;
    Ok(made.remove(0))
}

/// Whether the values of matrices are known, and they are large enough to be taken apart on the host.
#[pyfunction]
pub(crate) fn linalg_on_host(x: &Array) -> PyResult<bool> {
    Ok(linalg::is_on_host(&real_only(x, "linalg_on_host")?.re))
}

fn pair_of(value: &Value) -> Complex {
    Complex::new(&value.re, &value.imaginary())
}

/// The Fourier transform along an axis, or its inverse, divided by the count.
#[pyfunction]
#[pyo3(name = "fft")]
pub(crate) fn fourier(py: Python<'_>, x: &Array, axis: i64, inverse: bool) -> PyResult<Array> {
    let value = x.value();
    let made = match inverse {
        false => fft::fft(&pair_of(&value), axis),
        true => fft::ifft(&pair_of(&value), axis),
    };
    Array::of(py, made_of(&[&value], made.re, Some(made.im))?)
}

/// The first half of the Fourier transform of real elements along an axis.
#[pyfunction]
pub(crate) fn rfft(py: Python<'_>, x: &Array, axis: i64) -> PyResult<Array> {
    let value = real_only(x, "rfft")?;
    let made = fft::rfft(&value.re, axis);
    Array::of(py, made_of(&[&value], made.re, Some(made.im))?)
}

/// The real elements whose transform has this first half.
#[pyfunction]
pub(crate) fn irfft(py: Python<'_>, x: &Array, n: usize, axis: i64) -> PyResult<Array> {
    let value = x.value();
    let made = fft::irfft(&pair_of(&value), n, axis);
    made.check().or_raise()?;
    Array::of(py, made_of(&[&value], made, None)?)
}
