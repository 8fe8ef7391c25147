//! Sets that are made up, for examples and tests.

use crate::data::error::DataError;
use crate::data::examples::Examples;
use crate::data::random::Random;
use loopwright_array::Array;
use loopwright_ops::DType;
use std::f64::consts::{PI, TAU};

fn check_noise(noise: f64) -> Result<(), DataError> {
    match noise.is_finite() && noise >= 0.0 {
        true => Ok(()),
        false => Err(DataError::Argument {
            what: "the noise",
            got: noise.to_string(),
            range: "a number of at least 0",
        }),
    }
}

fn check_count(what: &'static str, count: usize) -> Result<(), DataError> {
    match count {
        0 => Err(DataError::Argument {
            what,
            got: "0".to_owned(),
            range: "at least 1",
        }),
        _ => Ok(()),
    }
}

/// Points `f32[count, 2]` with classes `i64[count]`, which take turns.
fn classified(
    count: usize,
    classes: usize,
    mut point: impl FnMut(usize) -> [f64; 2],
) -> Result<Examples, DataError> {
    let labels: Vec<f64> = (0..count).map(|at| (at % classes) as f64).collect();
    let points: Vec<f64> = (0..count).flat_map(|at| point(at % classes)).collect();
    Ok(Examples {
        inputs: Array::from_f64(DType::F32, &[count, 2], &points)?,
        targets: Array::from_f64(DType::I64, &[count], &labels)?,
    })
}

/// Two half circles that reach into each other: points `f32[count, 2]` and which moon each is of, `i64[count]`. `noise` is the
/// standard deviation of what is added to each coordinate.
///
/// # Errors
/// [`DataError::Argument`] for noise that is none.
pub fn moons(count: usize, noise: f64, seed: u64) -> Result<Examples, DataError> {
    check_noise(noise)?;
    let mut random = Random::new(seed);
    classified(count, 2, |moon| {
        let angle = PI * random.uniform();
        let (x, y) = (libm::cos(angle), libm::sin(angle));
        let [x, y] = if moon == 0 {
            [x, y]
        } else {
            [1.0 - x, 0.5 - y]
        };
        [x + noise * random.normal(), y + noise * random.normal()]
    })
}

/// Clouds of points around random centres in [-10, 10)²: points `f32[count, 2]` and which centre each is of, `i64[count]`. `spread`
/// is the standard deviation of each coordinate.
///
/// # Errors
/// [`DataError::Argument`] for no centres or a spread that is none.
pub fn blobs(count: usize, centres: usize, spread: f64, seed: u64) -> Result<Examples, DataError> {
    check_noise(spread)?;
    check_count("the number of centres", centres)?;
    let mut random = Random::new(seed);
    let places: Vec<[f64; 2]> = (0..centres)
        .map(|_| {
            [
                random.uniform() * 20.0 - 10.0,
                random.uniform() * 20.0 - 10.0,
            ]
        })
        .collect();
    classified(count, centres, |centre| {
        places[centre].map(|place| place + spread * random.normal())
    })
}

/// Arms of a spiral, each one and a half turns from the middle to a distance of 1: points `f32[count, 2]` and which arm each is of,
/// `i64[count]`. `noise` is the standard deviation of what is added to each coordinate.
///
/// # Errors
/// [`DataError::Argument`] for no arms or noise that is none.
pub fn spirals(count: usize, arms: usize, noise: f64, seed: u64) -> Result<Examples, DataError> {
    check_noise(noise)?;
    check_count("the number of arms", arms)?;
    let mut random = Random::new(seed);
    classified(count, arms, |arm| {
        // Spread evenly along the arm, not crowded in the middle.
        let along = libm::sqrt(random.uniform());
        let angle = TAU * (1.5 * along + arm as f64 / arms as f64);
        let (x, y) = (along * libm::cos(angle), along * libm::sin(angle));
        [x + noise * random.normal(), y + noise * random.normal()]
    })
}

/// Examples of a linear function, and the function.
#[derive(Clone, PartialEq, Debug)]
pub struct Linear {
    /// Inputs `f32[count, features]`, normally distributed, and targets `f32[count]`.
    pub examples: Examples,
    /// The weight of each feature.
    pub weights: Vec<f64>,
    /// What is added.
    pub bias: f64,
}

/// Examples of a linear function with random weights. `noise` is the standard deviation of what is added to each target.
///
/// # Errors
/// [`DataError::Argument`] for noise that is none.
pub fn linear(count: usize, features: usize, noise: f64, seed: u64) -> Result<Linear, DataError> {
    check_noise(noise)?;
    let mut random = Random::new(seed);
    let weights: Vec<f64> = (0..features).map(|_| random.normal()).collect();
    let bias = random.normal();
    let (mut inputs, mut targets) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let mut target = bias + noise * random.normal();
        for weight in &weights {
            let value = random.normal();
            inputs.push(value);
            target += weight * value;
        }
        targets.push(target);
    }
    Ok(Linear {
        examples: Examples {
            inputs: Array::from_f64(DType::F32, &[count, features], &inputs)?,
            targets: Array::from_f64(DType::F32, &[count], &targets)?,
        },
        weights,
        bias,
    })
}

/// Sine waves of random phase, with one to three periods in `length` steps: inputs `f32[count, length]`, and targets of the same
/// shape, the value one step later without noise. `noise` is the standard deviation of what is added to each input.
///
/// # Errors
/// [`DataError::Argument`] for a length of 0 or noise that is none.
pub fn waves(count: usize, length: usize, noise: f64, seed: u64) -> Result<Examples, DataError> {
    check_noise(noise)?;
    check_count("the length of a wave", length)?;
    let mut random = Random::new(seed);
    let (mut inputs, mut targets) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let phase = TAU * random.uniform();
        let step = TAU * (1.0 + 2.0 * random.uniform()) / length as f64;
        let value = |at: usize| libm::sin(phase + step * at as f64);
        for at in 0..length {
            inputs.push(value(at) + noise * random.normal());
            targets.push(value(at + 1));
        }
    }
    Ok(Examples {
        inputs: Array::from_f64(DType::F32, &[count, length], &inputs)?,
        targets: Array::from_f64(DType::F32, &[count, length], &targets)?,
    })
}
