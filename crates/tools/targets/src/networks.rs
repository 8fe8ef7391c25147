//! Complete networks as the layers of `nn` make them: forward and training steps, odd sizes, sizes that are symbols.

use crate::corpus::{CorpusError, Entry};
use crate::recorder::session;
use loopwright_graph::Graph;
use loopwright_nn::{
    Activation, Adam, Attention, BatchNorm, Conv, ConvTranspose, Dense, Embedding, GroupNorm,
    Layer, LayerNorm, Lstm, Module, Optimizer, Pool, RmsNorm, Rope, Sequential, Sgd,
    TransformerBlock, cross_entropy, gradients, mean_squared_error, seed, training,
};
use loopwright_tensor::{
    Axis, ConvOptions, DType, Shape, Tensor, TensorError, concat, jit, random, scan,
};
use std::sync::Arc;

/// Every network, forward, forward with a batch of any size, and as a training step.
///
/// # Errors
/// What is wrong with one; that is a bug.
pub fn networks() -> Result<Vec<Entry>, CorpusError> {
    let session = session()?;
    session.scope(|| {
        seed(1);
        let mut traced = Traced::default();
        traced.mlp()?;
        traced.cnn()?;
        traced.unet("UNet", 8, &[2, 3, 32, 32])?;
        traced.unet("large UNet", 48, &[1, 3, 128, 128])?;
        traced.vit()?;
        traced.large_vit()?;
        traced.decoder("decoder", (50_257, 48, 33))?;
        traced.decoder("large decoder", (50_257, 384, 256))?;
        traced.lstm()?;
        traced.selective_scan()?;
        traced.experts()?;
        traced.vae()?;
        Ok(traced.entries)
    })
}

/// The same networks, so small that they can be interpreted.
///
/// # Errors
/// What is wrong with one; that is a bug.
pub fn small_networks() -> Result<Vec<Entry>, CorpusError> {
    let session = session()?;
    session.scope(|| {
        seed(2);
        let mut traced = Traced {
            plain_steps: true,
            ..Traced::default()
        };
        traced.small_dense_networks()?;
        traced.small_convolutions()?;
        traced.small_sequences()?;
        Ok(traced.entries)
    })
}

/// An LSTM over so many steps with the gradients of its weights.
///
/// # Errors
/// What is wrong with it; that is a bug.
pub fn lstm_gradients(steps: usize) -> Result<Graph, CorpusError> {
    let session = session()?;
    session.scope(|| {
        seed(3);
        let lstm = Arc::new(Lstm::new(50));
        let all = jit("gradients", move |x: &Tensor| {
            let (all, state) = lstm.forward(x, None);
            let loss = all.square().sum(..) + state.cell.sum(..);
            let mut results = vec![loss.clone()];
            results.extend(gradients(&lstm.parameters(), &loss));
            results
        });
        let found = all.loops(&numbers(&[3, steps, 20]))?;
        Ok(found.program().written().clone())
    })
}

#[derive(Default)]
struct Traced {
    entries: Vec<Entry>,
    /// Training steps by plain descent: what Adam makes of random moments says nothing about a network.
    plain_steps: bool,
}

/// What a network gives for an input, and the loss of that beside a target.
type Loss = fn(&Tensor, &Tensor) -> Tensor;

impl Traced {
    /// A network in three programs: forward, forward with a batch of any size, and a step of Adam.
    fn all<M: Module + Send + Sync + 'static>(
        &mut self,
        name: &str,
        net: M,
        forward: fn(&M, &Tensor) -> Tensor,
        (x, target, loss): (Tensor, Tensor, Loss),
    ) -> Result<(), TensorError> {
        let net = Arc::new(net);
        let once = {
            let net = Arc::clone(&net);
            jit("forward", move |x: &Tensor| forward(&net, x))
        };
        self.take(
            format!("{name} forward"),
            once.loops(&x)?.program().written(),
        );
        let any = {
            let net = Arc::clone(&net);
            jit("any_batch", move |x: &Tensor| forward(&net, x)).dynamic(0, 0)
        };
        self.take(
            format!("{name} forward, any batch"),
            any.loops(&x)?.program().written(),
        );
        let optimizer: Box<dyn Optimizer + Send + Sync> = match self.plain_steps {
            true => Box::new(Sgd::new(0.01)),
            false => Box::new(Adam::new(0.01)),
        };
        let step = jit("step", move |(x, target): &(Tensor, Tensor)| {
            let loss = training(|| loss(&forward(&net, x), target));
            optimizer.step(&net.parameters(), &loss)?;
            Ok::<_, TensorError>(loss)
        });
        let found = step.loops(&(x, target))?;
        self.take(format!("{name} training step"), found.program().written());
        Ok(())
    }

    fn take(&mut self, name: String, graph: &Graph) {
        self.entries.push(Entry {
            name: format!("network {name}"),
            graph: graph.clone(),
        });
    }

    fn mlp(&mut self) -> Result<(), TensorError> {
        let net = Sequential::new()
            .then(Dense::new(512))
            .then(Activation::Gelu)
            .then(Dense::new(257))
            .then(Activation::Relu)
            .then(Dense::new(1000));
        self.all(
            "MLP",
            net,
            Sequential::forward,
            (numbers(&[100, 784]), labels(&[100]), cross_entropy),
        )
    }

    /// Strides, groups, a depthwise convolution and pools.
    fn cnn(&mut self) -> Result<(), TensorError> {
        let by = |stride: usize, padding: usize, groups: usize| {
            let options = ConvOptions::default().stride(stride).padding(padding);
            options.groups(groups)
        };
        let net = Sequential::new()
            .then(Conv::of(16, &[5, 5], by(2, 2, 1)).without_bias())
            .then(BatchNorm::new())
            .then(Activation::Relu)
            .then(Pool::max(&[2, 2]))
            .then(Conv::of(32, &[3, 3], by(1, 1, 4)))
            .then(Activation::Silu)
            .then(Conv::depthwise(
                32,
                &[3, 3],
                ConvOptions::default().stride(2),
            ))
            .then(Activation::Relu)
            .then(Conv::new(24, &[1, 1]))
            .then(Pool::GlobalAverage(2))
            .then(Dense::new(10));
        self.all(
            "CNN",
            net,
            Sequential::forward,
            (numbers(&[7, 3, 33, 33]), labels(&[7]), cross_entropy),
        )
    }

    fn unet(&mut self, name: &str, channels: usize, shape: &[usize]) -> Result<(), TensorError> {
        let net = UNet::new(channels);
        let loss: Loss = mean_squared_error;
        let target = [shape[0], 1, shape[2], shape[3]];
        self.all(
            name,
            net,
            UNet::forward,
            (numbers(shape), numbers(&target), loss),
        )
    }

    fn vit(&mut self) -> Result<(), TensorError> {
        let net = Vit {
            patches: Conv::of(48, &[4, 4], ConvOptions::default().stride(4)),
            blocks: vec![
                TransformerBlock::encoder(48, 4, 0.0),
                TransformerBlock::encoder(48, 4, 0.1),
            ],
            norm: LayerNorm::new(),
            out: Dense::new(10),
        };
        self.all(
            "ViT",
            net,
            Vit::forward,
            (numbers(&[3, 3, 28, 28]), labels(&[3]), cross_entropy),
        )
    }

    /// The patches, width and images of ViT-Tiny.
    fn large_vit(&mut self) -> Result<(), TensorError> {
        let net = Vit {
            patches: Conv::of(192, &[16, 16], ConvOptions::default().stride(16)),
            blocks: vec![
                TransformerBlock::encoder(192, 3, 0.0),
                TransformerBlock::encoder(192, 3, 0.1),
            ],
            norm: LayerNorm::new(),
            out: Dense::new(1000),
        };
        self.all(
            "large ViT",
            net,
            Vit::forward,
            (numbers(&[4, 3, 224, 224]), labels(&[4]), cross_entropy),
        )
    }

    /// Grouped queries, rotary positions, and a vocabulary of so many tokens; GPT-2 has 50,257.
    fn decoder(
        &mut self,
        name: &str,
        (vocabulary, width, positions): (usize, usize, usize),
    ) -> Result<(), TensorError> {
        let attention = || {
            Attention::grouped(width, 4, 2)
                .causal()
                .with_rope(Rope::default())
        };
        let net = Decoder {
            tokens: Embedding::new(vocabulary, width),
            blocks: vec![
                TransformerBlock::of_attention(width, attention(), 0.0),
                TransformerBlock::of_attention(width, attention(), 0.0),
            ],
            norm: RmsNorm::new(),
        };
        let loss: Loss =
            |scores, labels| cross_entropy(&scores.merge_axes(0, 1), &labels.merge_axes(0, 1));
        self.all(
            name,
            net,
            Decoder::forward,
            (labels(&[2, positions]), labels(&[2, positions]), loss),
        )
    }

    fn lstm(&mut self) -> Result<(), TensorError> {
        let net = Recurrent {
            lstm: Lstm::new(31),
            out: Dense::new(5),
        };
        self.all(
            "LSTM",
            net,
            Recurrent::forward,
            (numbers(&[6, 7, 19]), labels(&[6]), cross_entropy),
        )
    }

    fn selective_scan(&mut self) -> Result<(), TensorError> {
        let loss: Loss = mean_squared_error;
        self.all(
            "selective scan",
            Selective::new(24, 8),
            Selective::forward,
            (numbers(&[2, 9, 12]), numbers(&[2, 9, 3]), loss),
        )
    }

    fn experts(&mut self) -> Result<(), TensorError> {
        let net = Experts::new(4, 40, 11);
        self.all(
            "mixture of experts",
            net,
            Experts::forward,
            (numbers(&[50, 36]), labels(&[50]), cross_entropy),
        )
    }

    fn vae(&mut self) -> Result<(), TensorError> {
        self.all(
            "VAE",
            Vae::new(100, 12, 196),
            Vae::forward,
            (numbers(&[21, 196]), numbers(&[21, 196]), mean_squared_error),
        )
    }

    fn small_dense_networks(&mut self) -> Result<(), TensorError> {
        let net = Sequential::new()
            .then(Dense::new(5))
            .then(Activation::Gelu)
            .then(Dense::new(3));
        let given = || (numbers(&[3, 4]), labels(&[3]), cross_entropy as Loss);
        self.all("small MLP", net, Sequential::forward, given())?;
        let net = Experts::new(2, 5, 3);
        self.all("small mixture of experts", net, Experts::forward, given())?;
        let loss: Loss = mean_squared_error;
        let given = (numbers(&[2, 6]), numbers(&[2, 6]), loss);
        self.all("small VAE", Vae::new(5, 3, 6), Vae::forward, given)
    }

    fn small_convolutions(&mut self) -> Result<(), TensorError> {
        let halved = ConvOptions::default().stride(2).padding(1);
        let net = Sequential::new()
            .then(Conv::of(4, &[3, 3], halved))
            .then(Activation::Relu)
            .then(Conv::of(2, &[1, 1], ConvOptions::default().groups(2)))
            .then(Pool::GlobalAverage(2))
            .then(Dense::new(3));
        let given = (numbers(&[2, 2, 5, 5]), labels(&[2]), cross_entropy as Loss);
        self.all("small CNN", net, Sequential::forward, given)?;
        self.unet("small UNet", 2, &[1, 1, 4, 4])?;
        let net = Vit {
            patches: Conv::of(4, &[2, 2], ConvOptions::default().stride(2)),
            blocks: vec![TransformerBlock::encoder(4, 2, 0.0)],
            norm: LayerNorm::new(),
            out: Dense::new(3),
        };
        let given = (numbers(&[2, 1, 4, 4]), labels(&[2]), cross_entropy as Loss);
        self.all("small ViT", net, Vit::forward, given)
    }

    fn small_sequences(&mut self) -> Result<(), TensorError> {
        self.decoder("small decoder", (11, 8, 3))?;
        let net = Recurrent {
            lstm: Lstm::new(3),
            out: Dense::new(3),
        };
        let given = (numbers(&[2, 3, 4]), labels(&[2]), cross_entropy as Loss);
        self.all("small LSTM", net, Recurrent::forward, given)?;
        let loss: Loss = mean_squared_error;
        let given = (numbers(&[2, 4, 3]), numbers(&[2, 4, 3]), loss);
        let net = Selective::new(4, 2);
        self.all("small selective scan", net, Selective::forward, given)
    }
}

fn numbers(shape: &[usize]) -> Tensor {
    Tensor::zeros(shape.to_vec(), DType::F32)
}

fn labels(shape: &[usize]) -> Tensor {
    Tensor::zeros(shape.to_vec(), DType::I64)
}

#[derive(Module)]
struct UNet {
    down: Sequential,
    deep: Sequential,
    up: ConvTranspose,
    last: Sequential,
}

impl UNet {
    fn new(channels: usize) -> UNet {
        let same = || ConvOptions::default().padding(1);
        let halved = ConvOptions::default().stride(2).padding(1);
        UNet {
            down: Sequential::new()
                .then(Conv::of(channels, &[3, 3], same()))
                .then(GroupNorm::new(2, channels))
                .then(Activation::Silu),
            deep: Sequential::new()
                .then(Conv::of(2 * channels, &[3, 3], halved.clone()))
                .then(Activation::Silu)
                .then(Conv::of(2 * channels, &[3, 3], same()))
                .then(Activation::Silu),
            up: ConvTranspose::new(channels, &[4, 4], halved),
            last: Sequential::new()
                .then(Conv::of(channels, &[3, 3], same()))
                .then(Activation::Silu)
                .then(Conv::new(1, &[1, 1])),
        }
    }

    fn forward(&self, x: &Tensor) -> Tensor {
        let down = self.down.forward(x);
        let up = self.up.forward(&self.deep.forward(&down));
        self.last.forward(&concat(&[&down, &up], 1))
    }
}

#[derive(Module)]
struct Vit {
    patches: Conv,
    blocks: Vec<TransformerBlock>,
    norm: LayerNorm,
    out: Dense,
}

impl Vit {
    fn forward(&self, x: &Tensor) -> Tensor {
        // [batch, channels, rows, columns] to [batch, patches, channels].
        let patches = self.patches.forward(x).permute([0, 2, 3, 1]);
        let patches = patches.merge_axes(1, 2);
        let blocks = self.blocks.iter();
        let x = blocks.fold(patches, |x, block| block.forward(&x));
        self.out.forward(&self.norm.forward(&x).mean(1))
    }
}

#[derive(Module)]
struct Decoder {
    tokens: Embedding,
    blocks: Vec<TransformerBlock>,
    norm: RmsNorm,
}

impl Decoder {
    fn forward(&self, ids: &Tensor) -> Tensor {
        let blocks = self.blocks.iter();
        let x = blocks.fold(self.tokens.forward(ids), |x, block| block.forward(&x));
        self.tokens.attend(&self.norm.forward(&x))
    }
}

#[derive(Module)]
struct Recurrent {
    lstm: Lstm,
    out: Dense,
}

impl Recurrent {
    fn forward(&self, x: &Tensor) -> Tensor {
        let (_, state) = self.lstm.forward(x, None);
        self.out.forward(&state.hidden)
    }
}

/// A state for each channel that decays and is written to as the input says.
#[derive(Module)]
struct Selective {
    inside: Dense,
    decay: Dense,
    write: Dense,
    read: Dense,
    out: Dense,
    channels: usize,
    states: usize,
}

impl Selective {
    fn new(channels: usize, states: usize) -> Selective {
        Selective {
            inside: Dense::new(channels),
            decay: Dense::new(channels),
            write: Dense::new(states),
            read: Dense::new(states),
            out: Dense::new(3),
            channels,
            states,
        }
    }

    fn forward(&self, x: &Tensor) -> Tensor {
        let inside = self.inside.forward(x);
        let decay = self.decay.forward(x).sigmoid().unsqueeze(-1);
        let written = inside.unsqueeze(-1) * self.write.forward(x).unsqueeze(2);
        let batch = x.shape().axes()[0].clone();
        let first = Tensor::zeros(
            Shape::new([batch, Axis::of(self.channels), Axis::of(self.states)]),
            DType::F32,
        );
        let states = scan(&first, &(decay, written), 1, |state, (decay, written)| {
            let next = state * decay + written;
            (next.clone(), next)
        });
        let states = match states {
            // The steps lie along the first axis.
            Ok((_, states)) => states.permute([1, 0, 2, 3]),
            Err(error) => return Tensor::from_error(error),
        };
        let read = self.read.forward(x).unsqueeze(2);
        self.out.forward(&(states * read).sum(-1))
    }
}

/// Layers of which each example takes a share.
#[derive(Module)]
struct Experts {
    gate: Dense,
    experts: Vec<Dense>,
    out: Dense,
}

impl Experts {
    fn new(count: usize, width: usize, outputs: usize) -> Experts {
        Experts {
            gate: Dense::new(count),
            experts: (0..count).map(|_| Dense::new(width)).collect(),
            out: Dense::new(outputs),
        }
    }

    fn forward(&self, x: &Tensor) -> Tensor {
        let shares = self.gate.forward(x).softmax(-1);
        let experts = self.experts.iter().enumerate();
        let sum = experts
            .map(|(at, expert)| expert.forward(x).relu() * shares.narrow(1, at, 1))
            .reduce(|sum, part| sum + part);
        self.out.forward(&sum.expect("there are experts"))
    }
}

#[derive(Module)]
struct Vae {
    inside: Dense,
    mean: Dense,
    spread: Dense,
    outside: Dense,
    out: Dense,
    latent: usize,
}

impl Vae {
    fn new(width: usize, latent: usize, outputs: usize) -> Vae {
        Vae {
            inside: Dense::new(width),
            mean: Dense::new(latent),
            spread: Dense::new(latent),
            outside: Dense::new(width),
            out: Dense::new(outputs),
            latent,
        }
    }

    fn forward(&self, x: &Tensor) -> Tensor {
        let inside = self.inside.forward(x).relu();
        let (mean, spread) = (self.mean.forward(&inside), self.spread.forward(&inside));
        let noise = random::normal(&random::Key::new(3), [self.latent], DType::F32);
        let drawn = mean + (spread * 0.5).exp() * noise;
        let drawn = self.outside.forward(&drawn).tanh();
        self.out.forward(&drawn).sigmoid()
    }
}
