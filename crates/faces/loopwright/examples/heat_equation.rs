//! The heat equation: warmth spreads over a plate whose rim lets none of it out.
//!
//! It shows a stencil by slices, padding, and many steps in one compiled routine.
//!
//! ```console
//! $ cargo run --release --example heat_equation [FILE.png]
//! ```
//!
//! It prints how much heat there is, which stays the same, and writes six moments side by side to
//! `heat_equation.png`.

use loopwright::chart::HeatMap;
use loopwright::prelude::*;
use loopwright::tensor::PadMode;
use std::error::Error;
use std::path::PathBuf;

/// How much of the difference to its neighbours a place takes on in a step; above 0.25 it would not be stable.
const RATE: f64 = 0.2;

/// Steps in one call.
const STEPS: usize = 8;

fn main() -> Result<(), Box<dyn Error>> {
    let path = PathBuf::from(
        std::env::args()
            .nth(1)
            .unwrap_or("heat_equation.png".into()),
    );
    let size = 160;
    let spread = jit("spread", |plate: &Tensor| {
        (0..STEPS).fold(plate.clone(), |plate, _| step(&plate))
    });

    let mut plate = start(size);
    let mut moments = Vec::new();
    let mut calls = 0;
    for moment in [0, 4, 16, 50, 150, 400] {
        while calls < moment {
            plate = spread.call(&plate)?;
            calls += 1;
        }
        let (mean, hottest) = (plate.mean(..).item()?, plate.max(..).item()?);
        println!(
            "step {:>4}  mean {mean:.6}  hottest {hottest:.3}",
            calls * STEPS
        );
        moments.push(plate.clone());
    }
    let moments: Vec<&Tensor> = moments.iter().collect();
    HeatMap::new(&*concat(&moments, 1).array()?)
        .range(0.0, 1.0)
        .write(&path)?;
    println!("the picture is in {}", path.display());
    Ok(())
}

/// A hot ring, and a hot bar: 1 there, 0 elsewhere.
fn start(size: usize) -> Tensor {
    let line = Tensor::linspace(-1.0, 1.0, size);
    let (x, y) = (&line, line.unsqueeze(1));
    let far = (x.square() + y.square()).sqrt();
    let ring = (far - 0.6).abs().lt(0.08);
    let bar = x.abs().lt(0.1) & y.abs().lt(0.35);
    (ring | bar).cast(DType::F32)
}

/// A step in time: every place gets nearer to the mean of its four neighbours.
fn step(plate: &Tensor) -> Tensor {
    // At the rim the neighbour outside is as warm as the place itself, so nothing flows.
    let high = plate.pad_by(0, 1, 1, PadMode::Edge);
    let wide = plate.pad_by(1, 1, 1, PadMode::Edge);
    let (above, below) = (high.at(..-2), high.at(2..));
    let (left, right) = (wide.at((.., ..-2)), wide.at((.., 2..)));
    plate + (above + below + left + right - plate * 4.0) * RATE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_what_it_says() -> Result<(), TensorError> {
        let mut values = [[0.0f32; 4]; 3];
        values[0][0] = 1.0;
        let after = step(&Tensor::from(values)).to_f64()?;
        // Two of four neighbours are outside, as warm as the place itself.
        let wanted = [0.6, 0.2, 0.0, 0.0, 0.2, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        for (found, wanted) in after.iter().zip(wanted) {
            assert!((found - wanted).abs() < 1e-6, "{after:?}");
        }
        Ok(())
    }

    #[test]
    fn heat_is_kept_and_evens_out() -> Result<(), TensorError> {
        let spread = jit("spread", |plate: &Tensor| {
            (0..STEPS).fold(plate.clone(), |plate, _| step(&plate))
        });
        let mut plate = start(24);
        let mean = plate.mean(..).item()?;
        assert!(mean > 0.1, "{mean}");
        for _ in 0..10 {
            let hottest = plate.max(..).item()?;
            plate = spread.call(&plate)?;
            assert!((plate.mean(..).item()? - mean).abs() < 1e-5);
            assert!(plate.max(..).item()? <= hottest + 1e-6);
        }
        for _ in 0..200 {
            plate = spread.call(&plate)?;
        }
        assert!((plate.max(..).item()? - plate.min(..).item()?).abs() < 1e-3);
        Ok(())
    }
}
