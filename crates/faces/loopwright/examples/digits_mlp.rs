//! Handwritten digits with dense layers: loaders, dropout, a schedule for the learning rate, an honest test.
//!
//! ```console
//! $ cargo run --release --example digits_mlp
//! ```
//!
//! It prints the loss and the accuracy on images it has not learned from, epoch by epoch, and in the end an image
//! that it got wrong, if there is one. `loopwright train digits` is the same with checkpoints.

use loopwright::chart::{HeatMap, TerminalOptions};
use loopwright::data::{Examples, Loader, LoaderOptions, digits};
use loopwright::prelude::*;
use std::error::Error;
use std::sync::Arc;

fn network() -> Sequential {
    Sequential::new()
        .then(Dense::new(128))
        .then(Activation::Relu)
        .then(Dropout::new(0.2))
        .then(Dense::new(64))
        .then(Activation::Relu)
        .then(Dense::new(10))
}

fn main() -> Result<(), Box<dyn Error>> {
    let data = digits().split(0.2, 0)?;
    println!(
        "{} images to learn from, {} to test with",
        data.train.len(),
        data.test.len()
    );
    let guesses = train(&data.train, &data.test, 25, |epoch, loss, accuracy| {
        println!(
            "epoch {epoch:>2}  loss {loss:.4}  accuracy {:.1} %",
            100.0 * accuracy
        );
    })?;

    let truth = data.test.targets.to_f64();
    let wrong = guesses
        .iter()
        .zip(&truth)
        .position(|(guess, truth)| guess != truth);
    if let Some(at) = wrong {
        let image = Tensor::of(data.test.inputs.clone()).at(at);
        // A character is about twice as high as wide.
        let image = image.repeat(1, 2).array()?;
        println!("\nit takes this {} for a {}:", truth[at], guesses[at]);
        println!(
            "{}",
            HeatMap::new(&image)
                .flipped()
                .terminal(&TerminalOptions::default())?
        );
    }
    Ok(())
}

/// Trains a network, and gives what it takes the test's images for.
fn train(
    train: &Examples,
    test: &Examples,
    epochs: usize,
    mut tell: impl FnMut(usize, f64, f64),
) -> Result<Vec<f64>, Box<dyn Error>> {
    seed(0);
    let mut loader = Loader::new(
        train.dataset()?,
        LoaderOptions::new(64).shuffled(0).drop_last(),
    )?;
    let batches = loader.batches() as usize;
    let rate = Schedule::Cosine {
        from: 4e-3,
        to: 1e-4,
        steps: epochs * batches,
    };

    let net = Arc::new(network());
    let adam = Adam::with_decay(rate, 1e-2);
    let step = jit("step", {
        let net = Arc::clone(&net);
        move |[images, labels]: &[Tensor; 2]| {
            // Dropout drops inside of `training` only.
            let scores = training(|| net.forward(&images.merge_axes(1, 2)));
            let loss = cross_entropy(&scores, labels);
            adam.step(&net.parameters(), &loss)?;
            Ok::<_, TensorError>(loss)
        }
    });
    let guess = jit("guess", move |images: &Tensor| {
        net.forward(&images.merge_axes(1, 2)).argmax(-1)
    });

    let (images, labels) = (
        Tensor::of(test.inputs.clone()),
        Tensor::of(test.targets.clone()),
    );
    for epoch in 1..=epochs {
        let mut loss = 0.0;
        for batch in loader.arrays() {
            loss += step.call(&batch?.map(Tensor::of))?.item()? / batches as f64;
        }
        let right = guess.call(&images)?.eq(&labels).cast(DType::F32);
        tell(epoch, loss, right.mean(..).item()?);
    }
    Ok(guess.call(&images)?.to_f64()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unseen_digits_are_recognised() -> Result<(), Box<dyn Error>> {
        let data = digits().split(0.2, 0)?;
        let mut history = Vec::new();
        let guesses = train(&data.train, &data.test, 12, |_, loss, accuracy| {
            history.push((loss, accuracy));
        })?;
        let truth = data.test.targets.to_f64();
        let right = guesses
            .iter()
            .zip(&truth)
            .filter(|(guess, truth)| guess == truth)
            .count();
        let accuracy = right as f64 / truth.len() as f64;
        assert!(accuracy > 0.95, "{accuracy}");
        assert!(
            (history[11].1 - accuracy).abs() < 1e-6,
            "both count the same"
        );
        assert!(history[11].0 < history[0].0 / 5.0, "{history:?}");
        Ok(())
    }
}
