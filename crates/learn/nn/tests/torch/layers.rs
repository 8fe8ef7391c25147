//! Layers and losses that are in none of the runs: what they make, and gradients.

use crate::{apart, arrays, reference, tensor};
use loopwright_formats::checkpoint::Checkpoint;
use loopwright_nn::train::{Stored, load_as};
use loopwright_nn::{
    Activation, Attention, Conv, ConvTranspose, GroupNorm, Gru, Layer, Module, Pool, RmsNorm, Rnn,
    binary_cross_entropy, cosine_distance, huber, kl_divergence, mean_absolute_error,
    mean_squared_error,
};
use loopwright_tensor::{ConvOptions, PoolOptions, Session, Tensor, TensorError};

/// How far an element may lie from PyTorch's, relative to the largest.
const CLOSE: f64 = 1e-5;

/// What PyTorch calls a weight, and which third of it is meant, if not all.
type Place = (String, Option<usize>);

/// What a gradient is taken of.
struct Leaf {
    place: Place,
    value: Tensor,
}

/// Holds a layer with PyTorch's weights against PyTorch's.
fn check<M: Module>(
    name: &str,
    layer: &M,
    place: impl Fn(&str) -> Place,
    forward: impl Fn(&M, &Tensor) -> Tensor,
) -> Result<(), TensorError> {
    let weights = format!("{name}.value.");
    let stored = |entry: &str| {
        let (weight, third) = place(entry);
        let stored = Stored::named(format!("{weights}{weight}"));
        Some(third.into_iter().fold(stored, |all, at| all.part(at, 3)))
    };
    let unwanted = |array: &str| !array.starts_with(&weights);
    load_as(&reference("layers"), &layer.entries(), stored, unwanted)
        .unwrap_or_else(|error| panic!("{error}"));
    let expected = arrays("layers");
    let x = tensor(&expected, &format!("{name}.x"));
    let y = forward(layer, &x);
    let weights = layer.entries().into_iter().map(|entry| Leaf {
        place: place(&entry.name),
        value: entry.variable().get(),
    });
    let mut leaves: Vec<Leaf> = weights.collect();
    leaves.push(inputs(x));
    compare(name, &expected, &y, &leaves)
}

fn inputs(value: Tensor) -> Leaf {
    let place = ("x".to_owned(), None);
    Leaf { place, value }
}

/// Holds a result, and the gradients of the sum of its squares, against PyTorch's.
fn compare(
    name: &str,
    expected: &Checkpoint,
    y: &Tensor,
    leaves: &[Leaf],
) -> Result<(), TensorError> {
    let far = apart(&*y.array()?, &expected.arrays[&format!("{name}.y")]);
    assert!(far < CLOSE, "{name} is {far} apart");
    let sum = y.square().sum(..);
    let values: Vec<&Tensor> = leaves.iter().map(|leaf| &leaf.value).collect();
    for (leaf, gradient) in leaves.iter().zip(sum.gradients_of(&values)) {
        let (weight, third) = &leaf.place;
        let mut theirs = tensor(expected, &format!("{name}.gradient.{weight}"));
        if let Some(at) = third {
            let rows = gradient.sizes()?[0];
            theirs = theirs.narrow(0, at * rows, rows);
        }
        // A bias of keys moves all scores of a query alike, so that its gradient is what rounding leaves.
        if weight == "in_proj_bias" && *third == Some(1) {
            continue;
        }
        let far = apart(&*gradient.array()?, &*theirs.array()?);
        assert!(
            far < CLOSE,
            "{name}: the gradient of {weight} is {far} apart"
        );
    }
    Ok(())
}

/// A layer whose parameters are called as PyTorch's.
fn same(name: &str, layer: &impl Layer) -> Result<(), TensorError> {
    let place = |entry: &str| (entry.to_owned(), None);
    check(name, layer, place, |layer, x| layer.forward(x))
}

fn on_x86(run: impl FnOnce() -> Result<(), TensorError>) -> Result<(), TensorError> {
    let session = Session::new("x86").expect("there is such a device");
    session.scope(run)
}

#[test]
fn convolutions_and_pools() -> Result<(), TensorError> {
    on_x86(|| {
        let options = ConvOptions::default;
        let wide = options().stride(2).padding(2).dilation(2).groups(2);
        same("conv1", &Conv::of(6, &[3], wide))?;
        same("conv3", &Conv::new(3, &[2, 2, 2]))?;
        let grown = options().stride(2).padding(1).output_padding(1);
        same("transposed", &ConvTranspose::new(4, &[3, 3], grown))?;
        let windows = || PoolOptions::new([3, 3]).stride(2).padding(1);
        same("max", &Pool::Max(windows()))?;
        same("average", &Pool::Average(windows()))
    })
}

#[test]
fn normalisations_and_activations() -> Result<(), TensorError> {
    on_x86(|| {
        same("group", &GroupNorm::new(2, 6))?;
        same("rms", &RmsNorm::new())?;
        same("gelu", &Activation::Gelu)?;
        same("gelu_tanh", &Activation::GeluTanh)?;
        same("leaky", &Activation::LeakyRelu(0.2))
    })
}

#[test]
fn recurrent_layers() -> Result<(), TensorError> {
    on_x86(|| {
        let place = |entry: &str| (format!("{entry}_l0"), None);
        check("rnn", &Rnn::new(5), place, |rnn, x| rnn.forward(x, None).0)?;
        check("gru", &Gru::new(5), place, |gru, x| gru.forward(x, None).0)
    })
}

/// PyTorch keeps the weights of queries, keys and values one below the other.
#[test]
fn attention() -> Result<(), TensorError> {
    on_x86(|| {
        let place = |entry: &str| {
            let (layer, weight) = entry.split_once('.').expect("a layer and its weight");
            let projection = |third| (format!("in_proj_{weight}"), Some(third));
            match layer {
                "query" => projection(0),
                "key" => projection(1),
                "value" => projection(2),
                _ => (format!("out_proj.{weight}"), None),
            }
        };
        let layer = Attention::new(8, 2);
        check("attention", &layer, place, |layer, x| layer.forward(x))
    })
}

#[test]
fn losses() -> Result<(), TensorError> {
    on_x86(|| {
        let expected = arrays("layers");
        let x = tensor(&expected, "losses.x");
        let target = tensor(&expected, "losses.target");
        for (name, loss) in [
            ("squared", mean_squared_error(&x, &target)),
            ("absolute", mean_absolute_error(&x, &target)),
            ("huber", huber(&x, &target, 0.5)),
            ("binary", binary_cross_entropy(&x, &target)),
            ("divergence", kl_divergence(&x.log_softmax(-1), &target)),
            ("cosine", cosine_distance(&x, &target)),
        ] {
            compare(name, &expected, &loss, &[inputs(x.clone())])?;
        }
        Ok(())
    })
}
