//! Fifty steps each of four networks, by PyTorch's optimisers and schedules.

use crate::{apart, arrays, reference};
use loopwright_nn::train::{Stored, load_as};
use loopwright_nn::{
    Activation, Adam, BatchNorm, Clip, Conv, Dense, Embedding, Layer, LayerNorm, Lstm, Module,
    Optimizer, Pool, Schedule, Sequential, Sgd, TransformerBlock, cross_entropy,
    cross_entropy_smoothed, mean_squared_error, training,
};
use loopwright_tensor::{Array, Axis, ConvOptions, Session, Tensor, TensorError, jit};
use std::sync::Arc;

/// How far a loss may lie from PyTorch's, relative to it. Much less than what is promised, 1e-4: what is
/// measured is 5e-7, and a formula that is only nearly the same should not pass.
const LOSS: f64 = 1e-5;
/// The same for weights after the last step, relative to the largest of each array.
const WEIGHT: f64 = 1e-4;

const STEPS: usize = 50;

/// What a run is, beside its network.
struct Run<'a> {
    /// The reference's name.
    name: &'a str,
    device: &'a str,
    schedule: &'a Schedule,
    /// What PyTorch's network calls an entry, if it has it.
    stored: fn(&str) -> Option<String>,
}

impl Run<'_> {
    /// Starts where PyTorch did, and holds every loss, and the weights in the end, against it.
    fn follow<M: Module + Send + Sync + 'static>(
        &self,
        network: M,
        optimizer: impl Optimizer + Send + Sync + 'static,
        loss: impl Fn(&M, &Tensor, &Tensor) -> Tensor + Send + Sync + Copy + 'static,
    ) {
        let session = Session::new(self.device).expect("there is such a device");
        let followed = session.scope(|| self.steps(&Arc::new(network), optimizer, loss));
        followed.unwrap_or_else(|error| panic!("{} on {}: {error}", self.name, self.device));
    }

    fn steps<M: Module + Send + Sync + 'static>(
        &self,
        network: &Arc<M>,
        optimizer: impl Optimizer + Send + Sync + 'static,
        loss: impl Fn(&M, &Tensor, &Tensor) -> Tensor + Send + Sync + Copy + 'static,
    ) -> Result<(), TensorError> {
        let here = format!("{} on {}", self.name, self.device);
        let expected = arrays(self.name);
        let numbers = |name: &str| expected.arrays[name].to_f64();
        assert_eq!(numbers("losses").len(), STEPS);
        let first =
            |name: &str| (self.stored)(name).map(|name| Stored::named(format!("first.{name}")));
        // What counts batches in PyTorch's batch norms is of no use to ours.
        let unwanted =
            |name: &str| !name.starts_with("first.") || name.ends_with("num_batches_tracked");
        load_as(&reference(self.name), &network.entries(), first, unwanted)
            .unwrap_or_else(|error| panic!("{error}"));

        let step = jit("step", {
            let network = Arc::clone(network);
            move |(x, y): &(Tensor, Tensor)| {
                let loss = training(|| loss(&network, x, y));
                optimizer.step(&network.parameters(), &loss)?;
                Ok::<_, TensorError>(loss)
            }
        });
        let steps = Tensor::arange(0, STEPS as i64, 1);
        let rates = self.schedule.rate(&steps).to_vec::<f32>()?;
        for (at, (rate, theirs)) in rates.iter().zip(numbers("rates")).enumerate() {
            near(
                f64::from(*rate),
                theirs,
                1e-6,
                &format!("{here}, rate {at}"),
            );
        }
        let batches: Vec<(Tensor, Tensor)> = batches(&expected.arrays["x"])
            .into_iter()
            .zip(batches(&expected.arrays["y"]))
            .collect();
        let batch = |at: usize| &batches[at % batches.len()];
        for (at, theirs) in numbers("losses").into_iter().enumerate() {
            let loss = step.call(batch(at))?.item()?;
            near(loss, theirs, LOSS, &format!("{here}, loss {at}"));
        }
        assert_eq!(step.reports().len(), 1, "it is compiled once");

        let (x, y) = batch(STEPS - 1);
        let loss = loss(network, x, y).item()?;
        near(loss, numbers("used")[0], LOSS, &format!("{here}, in use"));
        for entry in network.entries() {
            let Some(name) = (self.stored)(&entry.name) else {
                continue;
            };
            // A bias of keys moves all scores of a query alike: its gradient is what rounding leaves, and Adam
            // makes steps of that.
            if name.ends_with("key.bias") {
                continue;
            }
            let found = entry.variable().get().array()?;
            let apart = apart(&found, &expected.arrays[&format!("last.{name}")]);
            assert!(apart < WEIGHT, "{here}: {name} is {apart} apart");
        }
        Ok(())
    }
}

/// The parts of an array along its first axis.
fn batches(array: &Array) -> Vec<Tensor> {
    let [count, shape @ ..] = array.shape() else {
        panic!("batches lie along a first axis");
    };
    let parts = array.bytes().chunks_exact(array.bytes().len() / count);
    let part = |bytes| Array::from_bytes(array.dtype(), shape, bytes).expect("it fits");
    parts.map(|bytes| Tensor::of(part(bytes))).collect()
}

#[track_caller]
fn near(found: f64, expected: f64, share: f64, what: &str) {
    let apart = (found - expected).abs() / expected.abs();
    assert!(
        apart < share,
        "{what}: {found} here and {expected} there, {apart} apart"
    );
}

fn same_name(name: &str) -> Option<String> {
    Some(name.to_owned())
}

/// Dense layers; momentum as by Nesterov, decay, and a rate that falls in stairs.
fn mlp(device: &str) {
    let network = Sequential::new()
        .then(Dense::new(32))
        .then(Activation::Tanh)
        .then(Dense::new(32))
        .then(Activation::Relu)
        .then(Dense::new(5));
    let schedule = Schedule::Steps {
        from: 0.05,
        factor: 0.5,
        every: 20,
    };
    let sgd = Sgd::new(schedule.clone())
        .momentum(0.9)
        .nesterov()
        .weight_decay(1e-3);
    let run = Run {
        name: "mlp",
        device,
        schedule: &schedule,
        stored: same_name,
    };
    run.follow(network, sgd, |network, x, y| {
        cross_entropy(&network.forward(x), y)
    });
}

#[test]
fn a_multilayer_perceptron() {
    mlp("x86");
}

#[test]
fn a_multilayer_perceptron_in_c() {
    mlp("cc");
}

#[test]
fn a_multilayer_perceptron_interpreted() {
    mlp("interp");
}

/// Convolutions and batch norms, with their running statistics; Adam, and a rate that falls in each step.
#[test]
fn a_convolutional_network() {
    let network = Sequential::new()
        .then(Conv::of(8, &[3, 3], ConvOptions::default().padding(1)).without_bias())
        .then(BatchNorm::new())
        .then(Activation::Relu)
        .then(Pool::max(&[2, 2]))
        .then(Conv::of(12, &[3, 3], ConvOptions::default().stride(2)).without_bias())
        .then(BatchNorm::with(12, 0.3, 1e-2))
        .then(Activation::Silu)
        .then(Pool::GlobalAverage(2))
        .then(Dense::new(4));
    let schedule = Schedule::Exponential {
        from: 3e-3,
        factor: 0.97,
    };
    let adam = Adam::new(schedule.clone());
    let run = Run {
        name: "cnn",
        device: "x86",
        schedule: &schedule,
        // PyTorch's has a layer between that only reshapes.
        stored: |name| Some(name.replace("8.", "9.")),
    };
    run.follow(network, adam, |network, x, y| {
        cross_entropy_smoothed(&network.forward(x), y, 0.1)
    });
}

#[derive(Module)]
struct Recurrent {
    lstm: Vec<Lstm>,
    out: Dense,
}

/// Two layers of long short-term memory; gradients cut by norm, Adam with moments and an epsilon of its own,
/// and a rate that falls in a line.
#[test]
fn a_recurrent_network() {
    let network = Recurrent {
        lstm: vec![Lstm::new(16), Lstm::new(16)],
        out: Dense::new(2),
    };
    let schedule = Schedule::Linear {
        from: 1e-2,
        to: 2e-3,
        steps: 40,
    };
    let adam = Adam::new(schedule.clone())
        .betas(0.8, 0.99)
        .epsilon(1e-3)
        .clip(Clip::Norm(0.5));
    let run = Run {
        name: "lstm",
        device: "x86",
        schedule: &schedule,
        // `lstm.1.weight_ih` is `lstm.weight_ih_l1` there.
        stored: |name| match name.split('.').collect::<Vec<_>>()[..] {
            ["lstm", layer, weight] => Some(format!("lstm.{weight}_l{layer}")),
            _ => Some(name.to_owned()),
        },
    };
    run.follow(network, adam, |network, x, y| {
        let layers = network.lstm.iter();
        let x = layers.fold(x.clone(), |x, layer| layer.forward(&x, None).0);
        mean_squared_error(&network.out.forward(&x), y)
    });
}

#[derive(Module)]
struct Gpt {
    tokens: Embedding,
    positions: Embedding,
    blocks: Vec<TransformerBlock>,
    norm: LayerNorm,
}

impl Layer for Gpt {
    fn forward(&self, tokens: &Tensor) -> Tensor {
        let x = self.tokens.forward(tokens) + self.positions.forward(&Tensor::index(Axis::of(12)));
        let x = self.blocks.iter().fold(x, |x, block| block.forward(&x));
        self.tokens.attend(&self.norm.forward(&x))
    }
}

/// Four blocks of a transformer with tied embeddings; gradients cut by norm, AdamW, and a rate that rises and
/// then falls along a cosine.
#[test]
fn a_transformer() {
    let network = Gpt {
        tokens: Embedding::new(40, 32),
        positions: Embedding::new(12, 32),
        blocks: (0..4)
            .map(|_| TransformerBlock::causal(32, 4, 0.0))
            .collect(),
        norm: LayerNorm::with(32, 1e-3),
    };
    let schedule = Schedule::Cosine {
        from: 2e-3,
        to: 2e-4,
        steps: STEPS - 8,
    };
    let schedule = schedule.after_warmup(8);
    let adam = Adam::with_decay(schedule.clone(), 0.1)
        .betas(0.9, 0.95)
        .clip(Clip::Norm(1.0));
    let run = Run {
        name: "gpt",
        device: "x86",
        schedule: &schedule,
        // Parts of a block lie beside each other there, and dropout counts nothing.
        stored: |name| {
            let name = name.replace("attention.", "").replace("feed_forward.", "");
            (!name.ends_with("dropout.count")).then_some(name)
        },
    };
    run.follow(network, adam, |network, x, y| {
        cross_entropy(&network.forward(x), y)
    });
}
