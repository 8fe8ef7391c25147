//! Handwritten digits with a convolutional network: convolutions, batch norms, pooling.
//!
//! ```console
//! $ cargo run --release --example digits_cnn
//! ```
//!
//! It prints the loss and the accuracy on images it has not learned from, epoch by epoch: about 99 % in the end.

use loopwright::data::{Examples, Loader, LoaderOptions, digits};
use loopwright::prelude::*;
use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

/// Two stages of convolution, batch norm and pooling take 8×8 pixels to 2×2 places with 32 channels.
#[derive(Module)]
struct Net {
    stages: [Stage; 2],
    out: Dense,
}

#[derive(Module)]
struct Stage {
    conv: Conv,
    norm: BatchNorm,
}

impl Stage {
    fn new(channels: usize) -> Stage {
        let padded = ConvOptions::default().padding(1);
        Stage {
            // The norm has a bias of its own.
            conv: Conv::of(channels, &[3, 3], padded).without_bias(),
            norm: BatchNorm::new(),
        }
    }
}

impl Layer for Stage {
    fn forward(&self, x: &Tensor) -> Tensor {
        let x = self.norm.forward(&self.conv.forward(x)).relu();
        Pool::max(&[2, 2]).forward(&x)
    }
}

impl Net {
    fn new() -> Net {
        Net {
            stages: [Stage::new(16), Stage::new(32)],
            out: Dense::new(10),
        }
    }
}

impl Layer for Net {
    /// Scores `[batch, 10]` for images `[batch, 8, 8]`.
    fn forward(&self, images: &Tensor) -> Tensor {
        let image = images.unsqueeze(1); // [batch, channel, y, x]
        let seen = self.stages.iter().fold(image, |x, stage| stage.forward(&x));
        self.out.forward(&seen.merge_axes(1, 3))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let data = digits().split(0.2, 0)?;
    let begun = Instant::now();
    let accuracy = train(&data.train, &data.test, 12, |epoch, loss, accuracy| {
        println!(
            "epoch {epoch:>2}  loss {loss:.4}  accuracy {:.1} %",
            100.0 * accuracy
        );
    })?;
    let seconds = begun.elapsed().as_secs_f64();
    println!(
        "{:.1} % of unseen digits after {seconds:.1} s",
        100.0 * accuracy
    );
    Ok(())
}

/// Trains a network and gives its accuracy on the test's images.
fn train(
    train: &Examples,
    test: &Examples,
    epochs: usize,
    mut tell: impl FnMut(usize, f64, f64),
) -> Result<f64, Box<dyn Error>> {
    seed(0);
    let mut loader = Loader::new(
        train.dataset()?,
        LoaderOptions::new(32).shuffled(0).drop_last(),
    )?;
    let batches = loader.batches() as usize;
    let rate = Schedule::Cosine {
        from: 3e-3,
        to: 1e-5,
        steps: epochs * batches,
    };

    let net = Arc::new(Net::new());
    let adam = Adam::new(rate);
    let step = jit("step", {
        let net = Arc::clone(&net);
        move |[images, labels]: &[Tensor; 2]| {
            // Inside of `training`, batch norms use the batch and keep running means for later.
            let loss = training(|| cross_entropy(&net.forward(images), labels));
            adam.step(&net.parameters(), &loss)?;
            Ok::<_, TensorError>(loss)
        }
    });
    let evaluate = jit("evaluate", move |[images, labels]: &[Tensor; 2]| {
        let right = net.forward(images).argmax(-1).eq(labels);
        right.cast(DType::F32).mean(..)
    });

    let test = [&test.inputs, &test.targets].map(|array| Tensor::of(array.clone()));
    let mut accuracy = 0.0;
    for epoch in 1..=epochs {
        let mut loss = 0.0;
        for batch in loader.arrays() {
            loss += step.call(&batch?.map(Tensor::of))?.item()? / batches as f64;
        }
        accuracy = evaluate.call(&test)?.item()?;
        tell(epoch, loss, accuracy);
    }
    Ok(accuracy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_least_97_of_100_unseen_digits_are_recognised() -> Result<(), Box<dyn Error>> {
        let data = digits().split(0.2, 0)?;
        let accuracy = train(&data.train, &data.test, 4, |_, _, _| {})?;
        assert!(accuracy >= 0.97, "{accuracy}");
        Ok(())
    }

    #[test]
    fn parameters_and_running_means_have_names() {
        let names: Vec<String> = Net::new().entries().into_iter().map(|e| e.name).collect();
        assert!(
            names.contains(&"stages.1.conv.weight".to_owned()),
            "{names:?}"
        );
        assert!(names.iter().any(|name| name.starts_with("stages.0.norm.")));
    }
}
