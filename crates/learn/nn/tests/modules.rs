//! Parameters by name, and layers whose sizes are inferred.

use loopwright_interp as _;
use loopwright_nn::{
    Activation, BatchNorm, Conv, Dense, Dropout, GroupNorm, Layer, LayerNorm, Module, Parameter,
    Pool, RmsNorm, Sequential, inference, seed, training,
};
use loopwright_tensor::{ConvOptions, DType, Tensor, TensorError};
use loopwright_x86 as _;

#[derive(Module)]
struct Inner {
    dense: Dense,
    #[module(rename = "factor")]
    scale: Parameter,
}

#[derive(Module)]
struct Outer {
    parts: Vec<Inner>,
    #[module(flatten)]
    flat: Inner,
    #[module(skip)]
    _other: Parameter,
    drop: Dropout,
    width: usize,
}

fn inner() -> Inner {
    Inner {
        dense: Dense::new(2),
        scale: Parameter::new(&Tensor::scalar(1.0f32)),
    }
}

#[test]
fn parameters_are_found_by_name() {
    let outer = Outer {
        parts: vec![inner(), inner()],
        flat: inner(),
        _other: Parameter::new(&Tensor::scalar(1.0f32)),
        drop: Dropout::new(0.5),
        width: 3,
    };
    let names: Vec<String> = outer
        .entries()
        .into_iter()
        .map(|entry| entry.name)
        .collect();
    let expected = [
        "parts.0.dense.weight",
        "parts.0.dense.bias",
        "parts.0.factor",
        "parts.1.dense.weight",
        "parts.1.dense.bias",
        "parts.1.factor",
        "dense.weight",
        "dense.bias",
        "factor",
        "drop.count",
    ];
    assert_eq!(names, expected);
    assert_eq!(outer.parameters().len(), 9);
    outer.parts[1].freeze(true);
    assert_eq!(outer.parameters().len(), 6);
    assert_eq!(outer.width, 3);
}

#[test]
fn a_size_that_nobody_fixed_names_the_layer() {
    let dense = Dense::new(4);
    let error = dense.weight.get().array().unwrap_err().to_string();
    assert!(
        error.contains("the number of inputs of the `Dense` made at"),
        "{error}"
    );
    assert!(error.contains("modules.rs"), "{error}");
}

#[test]
fn sizes_are_inferred_through_a_network() -> Result<(), TensorError> {
    seed(1);
    let net = Sequential::new()
        .then(Conv::of(4, &[3, 3], ConvOptions::default().padding(1)))
        .then(BatchNorm::new())
        .then(Activation::Relu)
        .then(Pool::max(&[2, 2]))
        .then(Conv::new(6, &[3, 3]))
        .then(Pool::GlobalAverage(2))
        .then(Dense::new(3));
    let x = Tensor::ones([2, 1, 8, 8], DType::F32);
    let y = net.forward(&x);
    assert_eq!(y.sizes()?, [2, 3]);
    assert_eq!(net.count(), 4 * 9 + 4 + 4 + 4 + 6 * 4 * 9 + 6 + 3 * 6 + 3);
    Ok(())
}

fn close(a: &Tensor, b: &[f32], what: &str) -> Result<(), TensorError> {
    let a = a.to_vec::<f32>()?;
    assert_eq!(a.len(), b.len(), "{what}");
    for (a, b) in a.iter().zip(b) {
        assert!((a - b).abs() < 1e-5, "{what}: {a} and {b}");
    }
    Ok(())
}

#[test]
fn normalisations() -> Result<(), TensorError> {
    let x = Tensor::from([[1.0f32, 3.0], [2.0, 10.0]]);
    let unit = 1.0 / (1.0f32 + 1e-5).sqrt();
    let unit16 = 4.0 / (16.0f32 + 1e-5).sqrt();
    close(
        &LayerNorm::new().forward(&x),
        &[-unit, unit, -unit16, unit16],
        "layer",
    )?;
    let root = |a: f32, b: f32| (f32::midpoint(a * a, b * b) + 1e-6).sqrt();
    let (first, second) = (root(1.0, 3.0), root(2.0, 10.0));
    close(
        &RmsNorm::new().forward(&x),
        &[1.0 / first, 3.0 / first, 2.0 / second, 10.0 / second],
        "rms",
    )?;
    close(
        &GroupNorm::new(1, 2).forward(&x),
        &[-unit, unit, -unit16, unit16],
        "group",
    )
}

#[test]
fn batch_norm_uses_the_batch_in_training_and_what_it_learned_in_use() -> Result<(), TensorError> {
    let norm = BatchNorm::with(2usize, 0.5, 0.0);
    let x = Tensor::from([[1.0f32, 0.0], [3.0, 4.0]]);
    let y = training(|| norm.forward(&x));
    close(&y, &[-1.0, -1.0, 1.0, 1.0], "batch")?;
    close(&norm.running_mean.get(), &[1.0, 1.0], "mean")?;
    // Half of 1, and half of the unbiased 2 and 8.
    close(&norm.running_var.get(), &[1.5, 4.5], "variance")?;
    let y = inference(|| norm.forward(&x));
    close(
        &y,
        &[
            0.0,
            -1.0 / 4.5f32.sqrt(),
            2.0 / 1.5f32.sqrt(),
            3.0 / 4.5f32.sqrt(),
        ],
        "use",
    )
}

#[test]
fn dropout_drops_in_training_alone() -> Result<(), TensorError> {
    seed(3);
    let dropout = Dropout::new(0.25);
    let x = Tensor::ones([4000], DType::F32);
    assert_eq!(dropout.forward(&x).to_vec::<f32>()?, vec![1.0; 4000]);
    let first = training(|| dropout.forward(&x)).to_vec::<f32>()?;
    let second = training(|| dropout.forward(&x)).to_vec::<f32>()?;
    assert_ne!(first, second);
    let kept = first.iter().filter(|value| **value > 0.0).count();
    assert!((2850..3150).contains(&kept), "{kept}");
    assert!(
        first
            .iter()
            .all(|value| *value == 0.0 || (value - 4.0 / 3.0).abs() < 1e-6)
    );
    Ok(())
}

#[test]
fn batch_norm_refuses_to_train_on_one_number() {
    let norm = BatchNorm::new();
    let x = Tensor::ones([1, 3, 1, 1], DType::F32);
    let error = training(|| norm.forward(&x)).check().unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("more than one number for each channel"),
        "{error}"
    );
    assert!(error.contains("modules.rs"), "{error}");
    inference(|| norm.forward(&x)).check().unwrap();
}
