//! Layers: every network here is built of them, has its sizes inferred, and learns.

use crate::{Checked, close};
use loopwright_nn::{
    Activation, Adam, Attention, BatchNorm, Conv, Dense, Dropout, Embedding, GroupNorm, Layer,
    LayerNorm, Module, Optimizer, Pool, RmsNorm, Rope, Sequential, TransformerBlock, cross_entropy,
    inference, mean_squared_error, seed, training,
};
use loopwright_tensor::{ConvOptions, DType, Tensor, TensorError, jit, random};
use std::sync::Arc;

/// The network learns: its loss falls from step to step, in one compiled function, and every parameter gets its
/// part.
#[track_caller]
fn learns<M: Module + Send + Sync + 'static>(
    module: M,
    loss: impl Fn(&M) -> Tensor + Send + Sync + 'static,
) -> Checked {
    let module = Arc::new(module);
    let adam = Adam::new(0.01);
    let step = jit("step", {
        let module = Arc::clone(&module);
        move |_: &()| {
            let loss = training(|| loss(&module));
            adam.step(&module.parameters(), &loss)?;
            Ok::<_, TensorError>(loss)
        }
    });
    let first = step.call(&())?.item()?;
    let values = || -> Result<Vec<Vec<f64>>, TensorError> {
        module
            .parameters()
            .iter()
            .map(|p| p.get().to_f64())
            .collect()
    };
    let before = values()?;
    let mut last = f64::NAN;
    for _ in 0..12 {
        last = step.call(&())?.item()?;
    }
    assert!(last.is_finite() && last < 0.95 * first, "{first} {last}");
    assert_eq!(step.reports().len(), 1);
    for (at, (before, after)) in before.iter().zip(values()?).enumerate() {
        assert_ne!(*before, after, "parameter {at} is not trained");
    }
    Ok(())
}

fn noise(shape: &[usize]) -> Tensor {
    let noise = random::normal(&random::Key::new(shape.len() as u64), shape, DType::F32);
    noise.realize().expect("random numbers can be computed");
    noise
}

fn labels(count: i64, classes: i64) -> Tensor {
    Tensor::arange(0, count, 1).modulo(&Tensor::scalar(classes))
}

/// Images of some channels, and a class for each.
fn classified(channels: usize, size: usize) -> (Tensor, Tensor) {
    (noise(&[4, channels, size, size]), labels(4, 2))
}

fn classifies(net: Sequential, channels: usize, size: usize) -> Checked {
    let (x, y) = classified(channels, size);
    learns(net, move |net| cross_entropy(&net.forward(&x), &y))
}

fn same() -> ConvOptions {
    ConvOptions::default().padding(1)
}

/// From `[batch, channels, y, x]` to `[batch, features]`.
struct Flatten;

impl Module for Flatten {
    fn collect(&self, _: &mut loopwright_nn::Collector) {}
}

impl Layer for Flatten {
    fn forward(&self, x: &Tensor) -> Tensor {
        x.merge_axes(1, -1)
    }
}

#[test]
fn an_mlp() -> Checked {
    seed(1);
    let net = Sequential::new()
        .then(Dense::new(16))
        .then(Activation::Relu)
        .then(Dense::new(3));
    let (x, y) = (noise(&[12, 5]), labels(12, 3));
    learns(net, move |net| cross_entropy(&net.forward(&x), &y))
}

#[test]
fn lenet() -> Checked {
    seed(2);
    let net = Sequential::new()
        .then(Conv::of(6, &[5, 5], ConvOptions::default().padding(2)))
        .then(Activation::Tanh)
        .then(Pool::average(&[2, 2]))
        .then(Conv::new(16, &[3, 3]))
        .then(Activation::Tanh)
        .then(Pool::average(&[2, 2]))
        .then(Flatten)
        .then(Dense::new(24))
        .then(Activation::Tanh)
        .then(Dense::new(2));
    classifies(net, 1, 12)
}

#[test]
fn a_block_of_vgg() -> Checked {
    seed(3);
    let net = Sequential::new()
        .then(Conv::of(8, &[3, 3], same()))
        .then(Activation::Relu)
        .then(Conv::of(8, &[3, 3], same()))
        .then(Activation::Relu)
        .then(Pool::max(&[2, 2]))
        .then(Flatten)
        .then(Dense::new(2));
    classifies(net, 3, 8)
}

/// Two convolutions with batch norms, and a way around them.
#[derive(Module)]
struct Residual {
    first: Conv,
    first_norm: BatchNorm,
    second: Conv,
    second_norm: BatchNorm,
    around: Conv,
}

impl Layer for Residual {
    fn forward(&self, x: &Tensor) -> Tensor {
        let inner = self.first_norm.forward(&self.first.forward(x)).relu();
        let inner = self.second_norm.forward(&self.second.forward(&inner));
        (inner + self.around.forward(x)).relu()
    }
}

#[test]
fn a_block_of_resnet() -> Checked {
    seed(4);
    let block = Residual {
        first: Conv::of(6, &[3, 3], same().stride(2)).without_bias(),
        first_norm: BatchNorm::new(),
        second: Conv::of(6, &[3, 3], same()).without_bias(),
        second_norm: BatchNorm::new(),
        around: Conv::of(6, &[1, 1], ConvOptions::default().stride(2)),
    };
    let net = Sequential::new()
        .then(block)
        .then(Pool::GlobalAverage(2))
        .then(Dense::new(2));
    classifies(net, 3, 8)
}

#[test]
fn a_block_of_mobilenet() -> Checked {
    seed(5);
    // Each channel for itself, then all channels at each place.
    let net = Sequential::new()
        .then(Conv::depthwise(3, &[3, 3], same()).without_bias())
        .then(BatchNorm::new())
        .then(Activation::Relu)
        .then(Conv::new(8, &[1, 1]).without_bias())
        .then(BatchNorm::new())
        .then(Activation::Relu)
        .then(Pool::GlobalAverage(2))
        .then(Dense::new(2));
    classifies(net, 3, 8)
}

#[test]
fn normalisations() -> Checked {
    seed(6);
    let x = noise(&[4, 6]) * 3.0 + 2.0;
    // Each brings mean 0 and deviation 1 along its axes, before anything is learned.
    let layer = LayerNorm::new().forward(&x);
    close(&layer.mean(1), &[0.0; 4]);
    assert!((layer.std(1, 0.0) - 1.0).abs().max(..).item()? < 1e-3);
    let batch = training(|| BatchNorm::new().forward(&x));
    close(&batch.mean(0), &[0.0; 6]);
    let rms = RmsNorm::new().forward(&x);
    assert!((rms.square().mean(1) - 1.0).abs().max(..).item()? < 1e-3);
    let groups = GroupNorm::new(2, 6).forward(&x).split_axis(1, [2, 3]);
    close(&groups.mean(2), &[0.0; 8]);

    let net = Sequential::new()
        .then(Dense::new(6))
        .then(BatchNorm::new())
        .then(Activation::Relu)
        .then(GroupNorm::new(3, 6))
        .then(Dense::new(6))
        .then(RmsNorm::new())
        .then(LayerNorm::new())
        .then(Dense::new(2));
    let y = labels(4, 2);
    learns(net, move |net| cross_entropy(&net.forward(&x), &y))
}

#[test]
fn dropout() -> Checked {
    seed(7);
    let drop = Dropout::new(0.5);
    let ones = Tensor::ones([2000], DType::F32);
    close(&inference(|| drop.forward(&ones)), &vec![1.0; 2000]);
    let dropped = training(|| drop.forward(&ones));
    let kept = dropped.sum(..).item()? / 2.0; // what is kept is doubled
    assert!((900.0..1100.0).contains(&kept), "{kept}");
    let net = Sequential::new()
        .then(Dense::new(64))
        .then(Activation::Relu)
        .then(Dropout::new(0.1))
        .then(Dense::new(2));
    let (x, y) = (noise(&[8, 4]), labels(8, 2));
    learns(net, move |net| cross_entropy(&net.forward(&x), &y))
}

#[test]
fn attention() -> Checked {
    seed(8);
    // A query that is much nearer to one key than to the others gets that key's value.
    let attention = Attention::new(4, 1);
    let eye = Tensor::eye(4, DType::F32);
    for dense in [
        &attention.query,
        &attention.key,
        &attention.value,
        &attention.out,
    ] {
        dense.weight.variable().set(&eye)?;
    }
    let memory = (&eye * 40.0).unsqueeze(0);
    let found = attention.attend(&memory.narrow(1, 2, 1), &memory, None);
    close(&found, &[0., 0., 40., 0.]);
    // What is masked is not seen.
    let mask = Tensor::from([[1i64, 1, 0, 1]]).gt(&Tensor::scalar(0i64));
    let found = attention.attend(&memory.narrow(1, 2, 1), &memory, Some(&mask));
    assert!(found.at((0, 0, 2)).item()?.abs() < 1e-3);

    let (x, y) = (noise(&[2, 5, 8]), noise(&[2, 5, 8]));
    learns(Attention::new(8, 2).causal(), move |net| {
        mean_squared_error(&net.forward(&x), &y)
    })
}

#[test]
fn rotary_positions() -> Checked {
    // A pair at position 1 is turned by one radian, and products only depend on the distance.
    let x = Tensor::from([[1.0f32, 0.0]; 3]);
    let turned = Rope::default().apply(&x, 0);
    let (one, two) = (1f64, 2f64);
    close(
        &turned,
        &[1., 0., one.cos(), one.sin(), two.cos(), two.sin()],
    );
    let (q, k) = (noise(&[1, 8]), noise(&[1, 8]) + 0.5);
    let product = |first: usize, second: usize| {
        let (q, k) = (
            Rope::default().apply(&q, first),
            Rope::default().apply(&k, second),
        );
        (q * k).sum(..).item()
    };
    assert!((product(3, 1)? - product(12, 10)?).abs() < 1e-4);
    assert!((product(3, 1)? - product(3, 2)?).abs() > 1e-3);
    let block = TransformerBlock::rotary(8, 2, Rope::default(), 0.0);
    let (x, y) = (noise(&[2, 5, 8]), noise(&[2, 5, 8]));
    seed(9);
    learns(block, move |net| mean_squared_error(&net.forward(&x), &y))
}

/// From a sequence of tokens to another one.
#[derive(Module)]
struct Translator {
    source: Embedding,
    target: Embedding,
    encoder: Vec<TransformerBlock>,
    decoder: Vec<TransformerBlock>,
    norm: LayerNorm,
    out: Dense,
}

impl Translator {
    fn forward(&self, source: &Tensor, target: &Tensor) -> Tensor {
        let encode = |x: Tensor, block: &TransformerBlock| block.forward(&x);
        let memory = self
            .encoder
            .iter()
            .fold(self.source.forward(source), encode);
        let decode = |x: Tensor, block: &TransformerBlock| block.with_memory(&x, Some(&memory));
        let x = self
            .decoder
            .iter()
            .fold(self.target.forward(target), decode);
        self.out.forward(&self.norm.forward(&x))
    }
}

#[test]
fn an_encoder_and_a_decoder() -> Checked {
    seed(10);
    let net = Translator {
        source: Embedding::new(5, 8),
        target: Embedding::new(6, 8),
        encoder: vec![TransformerBlock::encoder(8, 2, 0.0)],
        decoder: vec![TransformerBlock::decoder(8, 2, 0.0)],
        norm: LayerNorm::new(),
        out: Dense::new(6),
    };
    let source = labels(8, 5).reshape([2, 4]);
    let target = labels(12, 6).reshape([2, 6]);
    // The decoder sees all of the source, and of the target what is before.
    let scores = net.forward(&source, &target);
    assert_eq!(scores.sizes()?, [2, 6, 6]);
    let early = |source: &Tensor, target: &Tensor| {
        net.forward(source, target).narrow(1, 0, 5).to_vec::<f32>()
    };
    let later = loopwright_tensor::concat(
        &[
            &target.narrow(1, 0, 5),
            &target.narrow(1, 5, 1).zeros_like(),
        ],
        1,
    );
    assert_eq!(early(&source, &target)?, early(&source, &later)?);
    let other = loopwright_tensor::concat(
        &[
            &source.narrow(1, 0, 3),
            &(source.narrow(1, 3, 1).zeros_like() + 4),
        ],
        1,
    );
    assert_ne!(early(&source, &target)?, early(&other, &target)?);
    let (x, y) = (target.narrow(1, 0, 5), target.narrow(1, 1, 5));
    learns(net, move |net| cross_entropy(&net.forward(&source, &x), &y))
}

#[test]
fn a_decoder_without_a_memory_is_a_mistake() {
    let x = noise(&[1, 3, 8]);
    let decoder = TransformerBlock::decoder(8, 2, 0.0);
    let said = crate::message(&decoder.forward(&x));
    assert!(said.contains("`with_memory`"), "{said}");
    let encoder = TransformerBlock::encoder(8, 2, 0.0);
    let said = crate::message(&encoder.with_memory(&x, Some(&x)));
    assert!(said.contains("`TransformerBlock::decoder`"), "{said}");
}
