//! What tests of numbers share: backends, seeded values, comparisons and finite differences.
#![allow(
    dead_code,
    reason = "each test program is compiled with this module and uses a part of it"
)]

use loopwright_cc as _;
use loopwright_interp as _;
use loopwright_tensor::{Session, Tensor, TensorError};
use loopwright_x86 as _;

/// Runs a test on the interpreter and on machine code.
pub fn everywhere(test: impl Fn() -> Result<(), TensorError>) {
    for device in ["interp", "x86"] {
        let session = Session::new(device).unwrap();
        session.scope(|| test().unwrap_or_else(|error| panic!("{device}: {error}")));
    }
}

/// Numbers in [-1, 1), the same in every run.
pub fn values(count: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..count)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        })
        .collect()
}

/// A tensor of such numbers.
pub fn random(shape: &[usize], seed: u64) -> Tensor {
    Tensor::new(&values(shape.iter().product(), seed), shape)
}

/// Fails unless numbers are close.
#[track_caller]
pub fn close(got: &[f64], expected: &[f64], tolerance: f64, what: &str) {
    assert_eq!(got.len(), expected.len(), "{what}: {got:?} {expected:?}");
    for (at, (got, expected)) in got.iter().zip(expected).enumerate() {
        let bound = tolerance * (1.0 + expected.abs());
        assert!(
            (got - expected).abs() <= bound,
            "{what}: element {at} is {got}, expected {expected}"
        );
    }
}

/// Fails unless the gradients of the sum of a weighted result are those of finite differences.
#[track_caller]
pub fn check_gradients(
    operands: &[Tensor],
    function: impl Fn(&[Tensor]) -> Tensor,
    what: &str,
) -> Result<(), TensorError> {
    let weighted = |operands: &[Tensor]| -> Result<Tensor, TensorError> {
        let result = function(operands);
        let count = result.sizes()?.iter().product();
        let weight = Tensor::new(&values(count, 99), [count]);
        Ok((result.unnamed().flatten() * weight).sum(..))
    };
    let total = weighted(operands)?;
    let of: Vec<&Tensor> = operands.iter().collect();
    let gradients = total.gradients_of(&of);
    for (at, (operand, gradient)) in operands.iter().zip(&gradients).enumerate() {
        let base = operand.to_vec::<f64>()?;
        let step = 1e-6;
        let mut expected = Vec::new();
        for element in 0..base.len() {
            let moved = |by: f64| -> Result<f64, TensorError> {
                let mut values = base.clone();
                values[element] += by;
                let mut operands = operands.to_vec();
                operands[at] = Tensor::new(&values, operand.shape());
                weighted(&operands)?.item()
            };
            expected.push((moved(step)? - moved(-step)?) / (2.0 * step));
        }
        let what = format!("{what}, gradient of operand {at}");
        close(&gradient.to_vec::<f64>()?, &expected, 1e-6, &what);
    }
    Ok(())
}

/// Fails unless first and second gradients are those of finite differences.
#[track_caller]
pub fn check_second_gradients(
    operands: &[Tensor],
    function: impl Fn(&[Tensor]) -> Tensor,
    what: &str,
) -> Result<(), TensorError> {
    check_gradients(operands, &function, what)?;
    for at in 0..operands.len() {
        let gradient = |operands: &[Tensor]| {
            let result = function(operands).unnamed().flatten();
            let count = result.sizes().map_or(0, |sizes| sizes.iter().product());
            let weight = Tensor::new(&values(count, 77), [count]);
            (result * weight)
                .sum(..)
                .gradients_of(&[&operands[at]])
                .remove(0)
        };
        check_gradients(
            operands,
            gradient,
            &format!("{what}, second of operand {at}"),
        )?;
    }
    Ok(())
}
