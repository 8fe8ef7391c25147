//! Networks of every kind learn something small.

use loopwright_interp as _;
use loopwright_nn::{
    Activation, Adam, Attention, BatchNorm, Conv, ConvTranspose, Dense, Embedding, Gru, Layer,
    LayerNorm, Lstm, Module, Optimizer, Pool, Rnn, Rope, Sequential, TransformerBlock,
    cross_entropy, mean_squared_error, seed, training,
};
use loopwright_tensor::{ConvOptions, DType, Tensor, TensorError, jit, random};
use loopwright_x86 as _;
use std::sync::Arc;

/// The loss before and after some steps of Adam.
fn learn<M: Module + Send + Sync + 'static>(
    module: M,
    steps: usize,
    loss: impl Fn(&M) -> Tensor + Send + Sync + 'static,
) -> Result<(f64, f64), TensorError> {
    let module = Arc::new(module);
    let adam = Adam::new(0.01);
    let step = jit("step", move |_: &()| {
        let loss = training(|| loss(&module));
        adam.step(&module.parameters(), &loss)?;
        Ok::<_, TensorError>(loss)
    });
    let first = step.call(&())?.item()?;
    let mut last = first;
    for _ in 1..steps {
        last = step.call(&())?.item()?;
    }
    assert_eq!(step.reports().len(), 1);
    Ok((first, last))
}

fn noise(shape: &[usize]) -> Tensor {
    let key = random::Key::new(shape.iter().product::<usize>() as u64);
    let noise = random::normal(&key, shape, DType::F32);
    noise.realize().expect("random numbers can be computed");
    noise
}

fn labels(count: i64, classes: i64) -> Tensor {
    Tensor::arange(0, count, 1).modulo(&Tensor::scalar(classes))
}

#[test]
fn a_convolutional_network() -> Result<(), TensorError> {
    seed(1);
    let net = Sequential::new()
        .then(Conv::of(8, &[3, 3], ConvOptions::default().padding(1)).without_bias())
        .then(BatchNorm::new())
        .then(Activation::Relu)
        .then(Pool::max(&[2, 2]))
        .then(Conv::depthwise(8, &[3, 3], ConvOptions::default()))
        .then(Activation::Silu)
        .then(Pool::GlobalAverage(2))
        .then(Dense::new(3));
    let (x, y) = (noise(&[6, 1, 8, 8]), labels(6, 3));
    let (first, last) = learn(net, 60, move |net| cross_entropy(&net.forward(&x), &y))?;
    assert!(last < 0.3 * first, "{first} {last}");
    Ok(())
}

#[test]
fn a_network_that_draws() -> Result<(), TensorError> {
    seed(2);
    let net = Sequential::new()
        .then(ConvTranspose::new(
            4,
            &[4],
            ConvOptions::default().stride(2).padding(1),
        ))
        .then(Activation::Tanh)
        .then(Conv::new(1, &[1]));
    let (x, y) = (noise(&[3, 5, 6]), noise(&[3, 1, 12]));
    let (first, last) = learn(net, 150, move |net| {
        mean_squared_error(&net.forward(&x), &y)
    })?;
    assert!(last < 0.6 * first, "{first} {last}");
    Ok(())
}

#[derive(Module)]
struct Recurrent {
    rnn: Rnn,
    gru: Gru,
    lstm: Lstm,
    out: Dense,
}

#[test]
fn recurrent_networks() -> Result<(), TensorError> {
    seed(3);
    let net = Recurrent {
        rnn: Rnn::new(8),
        gru: Gru::new(8),
        lstm: Lstm::new(8),
        out: Dense::new(2),
    };
    let (x, y) = (noise(&[4, 5, 3]), labels(4, 2));
    let (first, last) = learn(net, 60, move |net| {
        let (x, _) = net.rnn.forward(&x, None);
        let (x, _) = net.gru.forward(&x, None);
        let (_, state) = net.lstm.forward(&x, None);
        cross_entropy(&net.out.forward(&state.hidden), &y)
    })?;
    assert!(last < 0.3 * first, "{first} {last}");
    Ok(())
}

#[derive(Module)]
struct Language {
    tokens: Embedding,
    blocks: Vec<TransformerBlock>,
    norm: LayerNorm,
}

#[test]
fn a_language_model() -> Result<(), TensorError> {
    seed(4);
    let net = Language {
        tokens: Embedding::new(7, 16),
        blocks: vec![
            TransformerBlock::rotary(16, 4, Rope::default(), 0.0),
            TransformerBlock::of_attention(
                16,
                Attention::grouped(16, 4, 2)
                    .causal()
                    .with_rope(Rope::default()),
                0.0,
            ),
        ],
        norm: LayerNorm::new(),
    };
    // 0 1 2 .. 6 0 1 ..: what comes next follows from what was.
    let text = labels(2 * 9, 7).reshape([2, 9]);
    let (x, y) = (text.narrow(1, 0, 8), text.narrow(1, 1, 8));
    let (first, last) = learn(net, 40, move |net| {
        let x = net
            .blocks
            .iter()
            .fold(net.tokens.forward(&x), |x, block| block.forward(&x));
        cross_entropy(&net.tokens.attend(&net.norm.forward(&x)), &y)
    })?;
    assert!(last < 0.2 * first, "{first} {last}");
    Ok(())
}

#[test]
fn an_encoder_and_a_decoder() -> Result<(), TensorError> {
    seed(5);
    let net = (
        TransformerBlock::encoder(8, 2, 0.1),
        TransformerBlock::decoder(8, 2, 0.1),
        Dense::new(8),
    );
    let (x, y) = (noise(&[2, 5, 8]), noise(&[2, 3, 8]));
    let (first, last) = learn(net, 60, move |(encoder, decoder, out)| {
        let memory = encoder.forward(&x);
        mean_squared_error(&out.forward(&decoder.with_memory(&y, Some(&memory))), &y)
    })?;
    assert!(last < 0.7 * first, "{first} {last}");
    Ok(())
}

/// What comes later does not change what was before.
#[test]
fn causal_attention_looks_back_only() -> Result<(), TensorError> {
    seed(6);
    let attention = Attention::new(8, 2).causal().with_rope(Rope::default());
    let x = noise(&[1, 4, 8]);
    let other = loopwright_tensor::concat(&[&x.narrow(1, 0, 3), &(x.narrow(1, 3, 1) + 5.0)], 1);
    let first = |x: &Tensor| attention.forward(x).narrow(1, 0, 3).to_vec::<f32>();
    let last = |x: &Tensor| attention.forward(x).narrow(1, 3, 1).to_vec::<f32>();
    assert_eq!(first(&x)?, first(&other)?);
    assert_ne!(last(&x)?, last(&other)?);
    Ok(())
}
