//! An LSTM goes on with a wave: it sees the beginning, and dreams the rest.
//!
//! It shows a recurrent network, and a state that is carried from call to call.
//!
//! ```console
//! $ cargo run --release --example lstm
//! ```
//!
//! It prints the loss, and a chart of a wave: what is true, and what the network makes of its first third.

use loopwright::chart::{LineChart, TerminalOptions};
use loopwright::data::{Loader, LoaderOptions, waves};
use loopwright::prelude::*;
use std::error::Error;
use std::sync::Arc;

/// Steps of a wave that the network learns from, or sees before it dreams.
const SEEN: usize = 32;

/// What comes next, at every step of a wave.
#[derive(Module)]
struct Net {
    lstm: Lstm,
    out: Dense,
}

impl Net {
    fn new(hidden: usize) -> Net {
        Net {
            lstm: Lstm::new(hidden),
            out: Dense::new(1),
        }
    }

    /// The value after each of `[batch, time]`, and the state in the end.
    fn forward(&self, wave: &Tensor, state: Option<&LstmState>) -> (Tensor, LstmState) {
        let (states, last) = self.lstm.forward(&wave.unsqueeze(-1), state);
        // What is learned is how much the value changes: easier than to say it all again.
        (wave + self.out.forward(&states).squeeze(-1), last)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let net = train(40, |epoch, loss| {
        if epoch % 5 == 0 {
            println!("epoch {epoch:>2}  loss {loss:.5}");
        }
    })?;
    let wave = wave(3 * SEEN);
    let dream = dream(net, &wave[..SEEN], 2 * SEEN)?;
    let behind = |(at, value): (usize, &f64)| ((at + SEEN) as f64, *value);
    let dreamt: Vec<(f64, f64)> = dream.iter().enumerate().map(behind).collect();
    let chart = LineChart::new("a wave, and how the network goes on")
        .values("true", &wave)
        .points("dreamt", &dreamt)
        .axes("step", "");
    println!("\n{}", chart.terminal(&TerminalOptions::for_stdout()));
    Ok(())
}

/// A wave that is not among those learned from: two periods in as many steps as are seen.
fn wave(length: usize) -> Vec<f64> {
    let angle = |at: usize| std::f64::consts::TAU * 2.0 * at as f64 / SEEN as f64;
    (0..length).map(|at| angle(at).sin()).collect()
}

/// A network that has learned waves of all phases, with one to three periods each.
fn train(epochs: usize, mut tell: impl FnMut(usize, f64)) -> Result<Arc<Net>, Box<dyn Error>> {
    seed(0);
    let net = Arc::new(Net::new(32));
    let waves = waves(1024, SEEN, 0.01, 0)?.dataset()?;
    let mut loader = Loader::new(waves, LoaderOptions::new(64).shuffled(0))?;
    let batches = loader.batches() as usize;
    let adam = Adam::new(Schedule::Cosine {
        from: 1e-2,
        to: 1e-4,
        steps: epochs * batches,
    });
    let step = jit("step", {
        let net = Arc::clone(&net);
        move |[wave, next]: &[Tensor; 2]| {
            let loss = mean_squared_error(&net.forward(wave, None).0, next);
            adam.step(&net.parameters(), &loss)?;
            Ok::<_, TensorError>(loss)
        }
    });
    for epoch in 1..=epochs {
        let mut loss = 0.0;
        for batch in loader.arrays() {
            loss += step.call(&batch?.map(Tensor::of))?.item()? / batches as f64;
        }
        tell(epoch, loss);
    }
    Ok(net)
}

/// What follows the beginning of a wave, each value made of the one before.
fn dream(net: Arc<Net>, seen: &[f64], length: usize) -> Result<Vec<f64>, TensorError> {
    let seen = Tensor::new(seen, [1, seen.len()]).cast(DType::F32);
    let (guesses, mut state) = net.forward(&seen, None);
    let mut value = guesses.at((.., SEEN - 1..));
    // One step, compiled once; the state goes in and comes out.
    let next = jit("next", move |(value, state): &(Tensor, LstmState)| {
        net.forward(value, Some(state))
    });
    let mut dream = vec![value.item()?];
    while dream.len() < length {
        (value, state) = next.call(&(value, state))?;
        dream.push(value.item()?);
    }
    Ok(dream)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wave_goes_on_as_it_began() -> Result<(), Box<dyn Error>> {
        let mut losses = Vec::new();
        let net = train(12, |_, loss| losses.push(loss))?;
        assert!(
            losses[11] < 0.01 && losses[11] < losses[0] / 4.0,
            "{losses:?}"
        );
        let wave = wave(SEEN + SEEN / 2);
        let dream = dream(net, &wave[..SEEN], SEEN / 2)?;
        let errors = dream.iter().zip(&wave[SEEN..]).map(|(a, b)| (a - b).abs());
        let mean = errors.sum::<f64>() / (SEEN / 2) as f64;
        // A wave is 0.64 away from nothing, on average.
        assert!(mean < 0.25, "{mean}");
        Ok(())
    }
}
