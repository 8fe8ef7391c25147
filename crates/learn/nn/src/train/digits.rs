//! A small network learns handwritten digits. The images are those of `data/digits.rs`.

use crate::data::{Loader, LoaderOptions, Position, Split};
use crate::train::error::TrainError;
use crate::train::saved::{load, save};
use crate::{
    Activation, Adam, Dense, Dropout, Entry, Layer, Module, Optimizer, Schedule, cross_entropy,
    seed, state_of, training,
};
use loopwright_tensor::{Array, DType, Jit, Session, Tensor, TensorError, jit};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Two hidden layers over the 64 points of an image.
#[derive(Module)]
pub struct Digits {
    first: Dense,
    second: Dense,
    out: Dense,
    dropout: Dropout,
    activation: Activation,
}

impl Digits {
    /// A network with first values that follow from a seed.
    #[must_use]
    pub fn new(start: u64) -> Digits {
        seed(start);
        Digits {
            first: Dense::new(256),
            second: Dense::new(128),
            out: Dense::new(10),
            dropout: Dropout::new(0.2),
            activation: Activation::Relu,
        }
    }
}

impl Layer for Digits {
    fn forward(&self, images: &Tensor) -> Tensor {
        let x = images.merge_axes(1, 2);
        let x = self
            .dropout
            .forward(&self.activation.forward(&self.first.forward(&x)));
        let x = self.activation.forward(&self.second.forward(&x));
        self.out.forward(&x)
    }
}

/// How it is trained.
#[derive(Clone, Debug)]
pub struct Options {
    /// How often all examples are seen.
    pub epochs: usize,
    /// How many examples make a step.
    pub batch: usize,
    /// What first values, order and dropout follow from.
    pub seed: u64,
    /// The highest learning rate.
    pub rate: f64,
    /// The file that the run is kept in, at the end of each epoch and when it is stopped.
    pub checkpoint: Option<PathBuf>,
    /// Whether to go on from that file.
    pub resume: bool,
    /// Stops the run after the step that is under way.
    pub stop: Arc<AtomicBool>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            epochs: 30,
            batch: 32,
            seed: 0,
            rate: 2e-3,
            checkpoint: None,
            resume: false,
            stop: Arc::default(),
        }
    }
}

/// Something happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// The run begins, or goes on.
    Begun {
        /// How many examples there are to learn from.
        train: usize,
        /// How many are kept to test with.
        test: usize,
        /// How many numbers are trained.
        parameters: usize,
        /// Steps that are done already.
        done: usize,
        /// Steps that there are in all.
        steps: usize,
    },
    /// The first step is done: from here on nothing is compiled.
    Compiled {
        /// How long the first step took, with compilation.
        first: Duration,
    },
    /// A step is done.
    Step {
        /// Steps that are done.
        done: usize,
    },
    /// All examples have been seen once more.
    Epoch {
        /// Which one, from 1.
        epoch: usize,
        /// The mean loss over it.
        loss: f64,
        /// The share of the test's examples that are recognised.
        accuracy: f64,
    },
}

/// What came out.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// The share of the test's examples that are recognised.
    pub accuracy: f64,
    /// The mean loss on them.
    pub loss: f64,
    /// How long it took.
    pub seconds: f64,
    /// Steps that were done in this run.
    pub steps: usize,
    /// The device.
    pub device: String,
    /// Programs that were compiled.
    pub compiled: u64,
    /// How long that took.
    pub compile_seconds: f64,
    /// Examples learned from in a second, without the first step.
    pub examples_per_second: f64,
    /// Whether it was stopped before its end.
    pub stopped: bool,
    /// The mean loss of each epoch of this run, and the accuracy after it.
    pub history: Vec<(f64, f64)>,
}

/// Trains a network on the handwritten digits.
///
/// # Errors
/// What is wrong with the device, or with the checkpoint's file.
pub fn digits(
    session: &Session,
    options: &Options,
    tell: &mut dyn FnMut(&Event),
) -> Result<Report, TrainError> {
    session.scope(|| run(session, options, tell))
}

fn run(
    session: &Session,
    options: &Options,
    tell: &mut dyn FnMut(&Event),
) -> Result<Report, TrainError> {
    let begun = Instant::now();
    let Split { train, test } = crate::data::digits().split(0.2, 0)?;
    let order = LoaderOptions::new(options.batch)
        .shuffled(options.seed)
        .drop_last()
        .prefetch(2);
    let mut loader = Loader::new(train.dataset()?, order)?;
    let per_epoch = usize::try_from(loader.batches()).unwrap_or(usize::MAX);
    let steps = per_epoch * options.epochs;
    let rate = Schedule::Cosine {
        from: options.rate,
        to: options.rate / 50.0,
        steps,
    };
    let run = Run {
        options,
        network: Arc::new(Digits::new(options.seed)),
        optimizer: Arc::new(Adam::with_decay(
            rate.after_warmup(per_epoch.min(steps / 4)),
            1e-2,
        )),
    };
    let (step, evaluate) = (run.step(), run.evaluate());
    let held = pair(test.dataset()?.arrays().to_vec());
    // Sizes that the network leaves open follow from its first use.
    evaluate.call(&held)?;
    let mut done = if options.resume {
        run.resume(&mut loader, per_epoch)?
    } else {
        0
    };
    tell(&Event::Begun {
        train: train.len(),
        test: test.len(),
        parameters: run.network.count(),
        done,
        steps,
    });
    let before = done;
    let (mut history, mut losses) = (Vec::new(), Vec::new());
    let mut warm: Option<Instant> = None;
    let mut stopped = false;
    while done < steps && !stopped {
        // The end of an epoch is no end of the run.
        let Some(batch) = loader.next_batch()? else {
            continue;
        };
        let start = Instant::now();
        losses.push(step.call(&pair(batch))?.item()?);
        if warm.is_none() {
            tell(&Event::Compiled {
                first: start.elapsed(),
            });
            warm = Some(Instant::now());
        }
        done += 1;
        tell(&Event::Step { done });
        stopped = options.stop.load(Ordering::Relaxed) && done < steps;
        if done % per_epoch == 0 {
            let loss = losses.iter().sum::<f64>() / losses.len() as f64;
            losses.clear();
            let accuracy = evaluate.call(&held)?.1.item()?;
            history.push((loss, accuracy));
            tell(&Event::Epoch {
                epoch: done / per_epoch,
                loss,
                accuracy,
            });
        }
        if stopped || done % per_epoch == 0 {
            run.keep(&loader)?;
        }
    }
    let learning = warm.map_or(0.0, |warm| warm.elapsed().as_secs_f64());
    let (loss, accuracy) = evaluate.call(&held)?;
    let compilations = session.compilations();
    let examples = (done - before).saturating_sub(1) * options.batch;
    Ok(Report {
        accuracy: accuracy.item()?,
        loss: loss.item()?,
        seconds: begun.elapsed().as_secs_f64(),
        steps: done - before,
        device: session.device().name().to_owned(),
        compiled: compilations.compiled,
        compile_seconds: compilations.time.as_secs_f64(),
        examples_per_second: if learning > 0.0 {
            examples as f64 / learning
        } else {
            0.0
        },
        stopped,
        history,
    })
}

/// A batch of images and labels.
fn pair(arrays: Vec<Array>) -> (Tensor, Tensor) {
    let mut arrays = arrays.into_iter();
    let mut next = || Tensor::of(arrays.next().expect("a digit is an image and a label"));
    (next(), next())
}

/// What a run is made of.
struct Run<'a> {
    options: &'a Options,
    network: Arc<Digits>,
    optimizer: Arc<Adam>,
}

/// A function of a batch.
type OfBatch<T> = Jit<(Tensor, Tensor), Result<T, TensorError>>;

impl Run<'_> {
    /// Learns from a batch and gives its loss.
    fn step(&self) -> OfBatch<Tensor> {
        let (network, optimizer) = (Arc::clone(&self.network), Arc::clone(&self.optimizer));
        jit(
            "train digits",
            move |(images, labels): &(Tensor, Tensor)| {
                let loss = training(|| cross_entropy(&network.forward(images), labels));
                optimizer.step(&network.parameters(), &loss)?;
                Ok(loss)
            },
        )
    }

    /// The loss on a batch, and the share that is recognised.
    fn evaluate(&self) -> OfBatch<(Tensor, Tensor)> {
        let network = Arc::clone(&self.network);
        jit("test digits", move |(images, labels): &(Tensor, Tensor)| {
            let scores = network.forward(images);
            let right = scores.argmax(-1).eq(labels).cast(DType::F32);
            Ok((cross_entropy(&scores, labels), right.mean(..)))
        })
    }

    /// All that decides how the run goes on, but for the loader's position.
    fn entries(&self) -> Vec<Entry> {
        let mut entries = self.network.entries();
        let own = state_of(&*self.optimizer, &*self.network).into_iter();
        entries.extend(own.map(|entry| Entry {
            name: format!("optimizer.{}", entry.name),
            ..entry
        }));
        entries
    }

    /// What has to be the same for a run to go on.
    fn described(&self) -> [(&'static str, String); 4] {
        let Options {
            epochs,
            batch,
            seed,
            rate,
            ..
        } = self.options;
        [
            ("epochs", epochs.to_string()),
            ("batch", batch.to_string()),
            ("seed", seed.to_string()),
            ("rate", rate.to_string()),
        ]
    }

    /// Writes the checkpoint, if there is to be one.
    fn keep(&self, loader: &Loader) -> Result<(), TrainError> {
        let Some(path) = &self.options.checkpoint else {
            return Ok(());
        };
        let described = self.described().into_iter();
        let mut metadata: BTreeMap<String, String> = described
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        metadata.insert("position".to_owned(), loader.position().to_string());
        save(path, &self.entries(), &metadata)
    }

    /// Puts the checkpoint's values in place, and gives how many steps it has behind it.
    fn resume(&self, loader: &mut Loader, per_epoch: usize) -> Result<usize, TrainError> {
        let Some(path) = &self.options.checkpoint else {
            return Ok(0);
        };
        let file = || path.display().to_string();
        let found = load(path, &self.entries())?;
        for (what, expected) in self.described() {
            let found = found
                .get(what)
                .cloned()
                .unwrap_or_else(|| "not said".to_owned());
            if found != expected {
                return Err(TrainError::OtherRun {
                    file: file(),
                    what,
                    found,
                    expected,
                });
            }
        }
        let position = found
            .get("position")
            .map(String::as_str)
            .unwrap_or_default();
        let position: Position = position.parse()?;
        loader.resume(position)?;
        let whole = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        Ok(whole(position.epoch) * per_epoch + whole(position.batch))
    }
}
