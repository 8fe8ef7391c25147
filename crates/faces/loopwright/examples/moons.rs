//! Moons: a small network learns to tell two half circles apart, and draws the boundary it has found.
//!
//! It shows a network as a struct of layers, an optimiser, and pictures of what was learned.
//!
//! ```console
//! $ cargo run --release --example moons [FILE.png]
//! ```
//!
//! It prints the loss and a map of the plane in the terminal, and writes the map to `moons.png`.

use loopwright::chart::{HeatMap, Palette, TerminalOptions};
use loopwright::data::{Examples, moons};
use loopwright::prelude::*;
use loopwright::tensor::Array;
use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;

/// The part of the plane that is drawn.
const ACROSS: (f64, f64) = (-1.5, 2.5);
const UP: (f64, f64) = (-1.0, 1.5);

/// Two hidden layers. The score is positive for the second moon.
#[derive(Module)]
struct Net {
    first: Dense,
    second: Dense,
    score: Dense,
}

impl Net {
    fn new() -> Net {
        Net {
            first: Dense::new(16), // the number of inputs is inferred
            second: Dense::new(16),
            score: Dense::new(1),
        }
    }
}

impl Layer for Net {
    fn forward(&self, points: &Tensor) -> Tensor {
        let x = self.first.forward(points).tanh();
        let x = self.second.forward(&x).tanh();
        self.score.forward(&x).squeeze(-1)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = PathBuf::from(std::env::args().nth(1).unwrap_or("moons.png".into()));
    let data = moons(400, 0.15, 0)?;
    let net = train(&data, 400)?;
    println!("{:.1} % are told apart", 100.0 * accuracy(&net, &data)?);

    let map = map(&net, 400, 250)?;
    let picture = HeatMap::new(&map)
        .palette(Palette::BlueRed)
        .range(0.0, 1.0)
        .points(&data.inputs, &data.targets, ACROSS, UP);
    println!(
        "{}",
        picture.terminal(&TerminalOptions::for_stdout().height(24))?
    );
    picture.scale(2).write(&path)?;
    println!("the picture is in {}", path.display());
    Ok(())
}

fn train(data: &Examples, steps: usize) -> Result<Arc<Net>, TensorError> {
    seed(0);
    let net = Arc::new(Net::new());
    let adam = Adam::new(0.02);
    let step = jit("step", {
        let net = Arc::clone(&net);
        move |[points, moon]: &[Tensor; 2]| {
            let loss = binary_cross_entropy(&net.forward(points), &moon.cast(DType::F32));
            adam.step(&net.parameters(), &loss)?;
            Ok::<_, TensorError>(loss)
        }
    });
    let batch = [&data.inputs, &data.targets].map(|array| Tensor::of(array.clone()));
    for at in 1..=steps {
        let loss = step.call(&batch)?;
        if at % 100 == 0 {
            println!("step {at:>3}  loss {:.4}", loss.item()?);
        }
    }
    Ok(net)
}

/// The share of points that are on the right side.
fn accuracy(net: &Net, data: &Examples) -> Result<f64, TensorError> {
    let second = net.forward(&Tensor::of(data.inputs.clone())).gt(0.0);
    let truth = Tensor::of(data.targets.clone()).eq(1);
    second.eq(&truth).cast(DType::F32).mean(..).item()
}

/// How sure the network is of the second moon, from 0 to 1, all over the plane: `[height, width]`.
fn map(net: &Net, width: usize, height: usize) -> Result<Arc<Array>, TensorError> {
    let x = Tensor::linspace(ACROSS.0, ACROSS.1, width).broadcast_to([height, width]);
    let y = Tensor::linspace(UP.0, UP.1, height)
        .unsqueeze(1)
        .broadcast_to([height, width]);
    net.forward(&stack(&[&x, &y], -1)).sigmoid().array()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_moons_are_told_apart() -> Result<(), Box<dyn Error>> {
        let data = moons(400, 0.15, 0)?;
        let net = train(&data, 200)?;
        assert!(accuracy(&net, &data)? > 0.98);
        // New points of the same kind, too.
        assert!(accuracy(&net, &moons(400, 0.15, 1)?)? > 0.97);

        let map = map(&net, 40, 25)?;
        assert_eq!(map.shape(), [25, 40]);
        let sure = |x: f64, y: f64| {
            let column = (x - ACROSS.0) / (ACROSS.1 - ACROSS.0) * 39.0;
            let row = (y - UP.0) / (UP.1 - UP.0) * 24.0;
            map.to_f64()[row.round() as usize * 40 + column.round() as usize]
        };
        // The tops of both half circles.
        assert!(sure(0.0, 1.0) < 0.1 && sure(1.0, -0.5) > 0.9);
        Ok(())
    }
}
