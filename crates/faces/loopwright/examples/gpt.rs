//! A GPT of letters: a small transformer reads six sonnets and goes on in their manner.
//!
//! It shows embeddings, causal attention, gradients that are clipped, and random numbers on the device.
//!
//! ```console
//! $ cargo run --release --example gpt [FILE.txt]
//! ```
//!
//! It prints the loss in nats a letter on its way down, a sparkline of it, and then a text of its own. The sonnets
//! (18, 29, 55, 73, 116 and 130, by William Shakespeare, 1609) are in the public domain.

use loopwright::chart::sparkline;
use loopwright::data::{Corpus, Loader, LoaderOptions, Vocabulary};
use loopwright::nn::Clip;
use loopwright::prelude::*;
use loopwright::tensor::random::{Key, categorical};
use std::error::Error;
use std::path::Path;
use std::sync::Arc;

const SONNETS: &str = include_str!("sonnets.txt");

/// How large the network is, and how long it reads.
struct Options {
    /// Letters that it looks back on.
    context: usize,
    width: usize,
    heads: usize,
    blocks: usize,
    steps: usize,
}

/// Scores for the letter that follows, at every place of a text.
#[derive(Module)]
struct Gpt {
    letters: Embedding,
    places: Embedding,
    blocks: Vec<TransformerBlock>,
    norm: LayerNorm,
    out: Dense,
}

impl Gpt {
    fn new(letters: usize, options: &Options) -> Gpt {
        let block = |_| TransformerBlock::causal(options.width, options.heads, 0.0);
        Gpt {
            letters: Embedding::new(letters, options.width),
            places: Embedding::new(options.context, options.width),
            blocks: (0..options.blocks).map(block).collect(),
            norm: LayerNorm::new(),
            out: Dense::new(letters),
        }
    }
}

impl Layer for Gpt {
    /// `[batch, place, letter]` for letters `[batch, place]`.
    fn forward(&self, text: &Tensor) -> Tensor {
        let x = self.letters.forward(text) + self.places.weight.get();
        let x = self.blocks.iter().fold(x, |x, block| block.forward(&x));
        self.out.forward(&self.norm.forward(&x))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let corpus = match std::env::args().nth(1) {
        Some(path) => Corpus::read(Path::new(&path))?,
        None => Corpus::of(SONNETS),
    };
    let options = Options {
        context: 64,
        width: 96,
        heads: 4,
        blocks: 2,
        steps: 1000,
    };
    let mut losses = Vec::new();
    let gpt = train(&corpus, &options, |step, loss| {
        losses.push(loss);
        if step % 100 == 0 {
            println!("step {step:>4}  loss {loss:.3}  {}", sparkline(&losses, 40));
        }
    })?;
    let writer = Writer::new(gpt, corpus.vocabulary().clone(), options.context, 0.7);
    println!("\n{}", writer.write("Shall I ", 600)?);
    Ok(())
}

fn train(
    corpus: &Corpus,
    options: &Options,
    mut tell: impl FnMut(usize, f64),
) -> Result<Arc<Gpt>, Box<dyn Error>> {
    seed(0);
    let gpt = Arc::new(Gpt::new(corpus.vocabulary().len(), options));
    let rate = Schedule::Cosine {
        from: 3e-3,
        to: 1e-4,
        steps: options.steps,
    }
    .after_warmup(20);
    let adam = Adam::with_decay(rate, 0.01).clip(Clip::Norm(1.0));
    let step = jit("step", {
        let gpt = Arc::clone(&gpt);
        move |[text, next]: &[Tensor; 2]| {
            let loss = training(|| cross_entropy(&gpt.forward(text), next));
            adam.step(&gpt.parameters(), &loss)?;
            Ok::<_, TensorError>(loss)
        }
    });
    // Windows of the text, each with the letters that follow.
    let windows = corpus.windows(options.context)?;
    let mut loader = Loader::new(windows, LoaderOptions::new(16).shuffled(0).drop_last())?;
    let mut done = 0;
    while done < options.steps {
        for batch in loader.arrays().take(options.steps - done) {
            done += 1;
            tell(done, step.call(&batch?.map(Tensor::of))?.item()?);
        }
    }
    Ok(gpt)
}

/// Writes texts, letter by letter.
struct Writer {
    vocabulary: Vocabulary,
    context: usize,
    /// Text `[1, place]`, the last place of it, a seed: the letter that follows.
    next: Jit<[Tensor; 3], Tensor>,
}

impl Writer {
    /// The lower the temperature, the more it says what is likely.
    fn new(gpt: Arc<Gpt>, vocabulary: Vocabulary, context: usize, temperature: f64) -> Writer {
        let next = jit("next", move |[text, last, seed]: &[Tensor; 3]| {
            let scores = gpt.forward(text).at((0, last)) / temperature;
            categorical(&Key::of(seed), &scores, -1)
        });
        Writer {
            vocabulary,
            context,
            next,
        }
    }

    fn write(&self, start: &str, letters: usize) -> Result<String, Box<dyn Error>> {
        let mut text = self.vocabulary.encode(start)?;
        for at in 0..letters {
            // The last letters, filled up with what does not matter: no place sees those behind it.
            let from = text.len().saturating_sub(self.context);
            let mut seen = text[from..].to_vec();
            let last = seen.len() as i64 - 1;
            seen.resize(self.context, 0);
            let seen = Tensor::new(&seen, [1, self.context]);
            let next = self.next.call(&[
                seen,
                Tensor::from([last]).at(0),
                Tensor::from([at as u64]).at(0),
            ])?;
            text.push(next.item()? as i64);
        }
        Ok(self.vocabulary.decode(&text)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quatrain_is_learned_by_heart() -> Result<(), Box<dyn Error>> {
        let quatrain: Vec<&str> = SONNETS.lines().take(4).collect();
        let corpus = Corpus::of(&quatrain.join("\n"));
        let options = Options {
            context: 32,
            width: 48,
            heads: 4,
            blocks: 1,
            steps: 200,
        };
        let mut losses = Vec::new();
        let gpt = train(&corpus, &options, |_, loss| losses.push(loss))?;
        // At first every letter is as likely as any other.
        let blind = (corpus.vocabulary().len() as f64).ln();
        assert!(
            (losses[0] - blind).abs() < 1.0,
            "{} is not about {blind}",
            losses[0]
        );
        let last = losses[190..].iter().sum::<f64>() / 10.0;
        assert!(last < 0.5, "{last}");

        let writer = Writer::new(gpt, corpus.vocabulary().clone(), options.context, 0.3);
        let text = writer.write("Shall I compare thee", 60)?;
        assert_eq!(text.chars().count(), 80);
        let words = [
            "summer",
            "thou",
            "and",
            "more",
            "lovely",
            "temperate",
            "day",
        ];
        let known = words
            .iter()
            .filter(|word| text.to_lowercase().contains(*word))
            .count();
        assert!(known >= 2, "{text}");
        Ok(())
    }
}
