//! Mixed precision, end to end: digits are learned with products of narrow floats, and scaled losses keep small gradients.

use loopwright_interp as _;
use loopwright_nn::data::{Loader, LoaderOptions, digits};
use loopwright_nn::{
    Adam, Dense, Layer, LossScale, Module, Optimizer, Sgd, cross_entropy, gradients,
    mixed_precision, seed, training,
};
use loopwright_tensor::{DType, Session, Tensor, TensorError, jit};
use loopwright_x86 as _;
use std::sync::Arc;

#[derive(Module)]
struct Net {
    hidden: Dense,
    out: Dense,
}

impl Net {
    fn new() -> Net {
        seed(0);
        Net {
            hidden: Dense::new(64),
            out: Dense::new(10),
        }
    }
}

impl Layer for Net {
    fn forward(&self, images: &Tensor) -> Tensor {
        let x = images.merge_axes(1, 2);
        self.out.forward(&self.hidden.forward(&x).relu())
    }
}

/// The accuracy after some epochs with products in a dtype.
fn accuracy(dtype: DType) -> f64 {
    let session = Session::new("x86").expect("the device is there");
    session.scope(|| {
        let data = digits().split(0.2, 0).expect("a split");
        let options = LoaderOptions::new(32).shuffled(0).drop_last();
        let train = data.train.dataset().expect("a set");
        let mut loader = Loader::new(train, options).expect("a loader");
        let net = Arc::new(Net::new());
        let adam = LossScale::new(Adam::new(3e-3), 1024.0);
        let step = jit("step", {
            let net = Arc::clone(&net);
            move |[images, labels]: &[Tensor; 2]| {
                let scores = || net.forward(images);
                let scores = training(|| mixed_precision(dtype, scores));
                let loss = cross_entropy(&scores, labels);
                adam.step(&net.parameters(), &loss)?;
                Ok::<_, TensorError>(loss)
            }
        });
        for _ in 0..8 {
            for batch in loader.arrays() {
                let batch = batch.expect("a batch").map(Tensor::of);
                step.call(&batch).expect("a step");
            }
        }
        for parameter in net.parameters() {
            assert_eq!(parameter.get().dtype(), DType::F32);
        }
        let [images, labels] =
            [&data.test.inputs, &data.test.targets].map(|array| Tensor::of(array.clone()));
        let right = mixed_precision(dtype, || net.forward(&images))
            .argmax(-1)
            .eq(&labels);
        right.cast(DType::F32).mean(..).item().expect("a number")
    })
}

#[test]
fn digits_are_learned_with_narrow_products() {
    for dtype in [DType::BF16, DType::F16] {
        let reached = accuracy(dtype);
        assert!(reached >= 0.95, "{dtype}: {reached}");
    }
}

#[test]
fn products_are_rounded_and_sums_are_not() {
    seed(4);
    let layer = Dense::without_bias(1);
    // 257 needs nine bits; a sum of 2^8 such numbers many more than `bf16` has.
    layer
        .weight
        .variable()
        .set(&Tensor::full([1, 256], 1.0f32, DType::F32))
        .expect("it fits");
    let sum = |value: f32| {
        let x = Tensor::full([1, 256], value, DType::F32);
        let sum = mixed_precision(DType::BF16, || layer.forward(&x));
        sum.item().expect("a number")
    };
    assert_eq!(sum(257.0), 256.0 * 256.0);
    assert_eq!(sum(3.0), 768.0);
    assert_eq!(sum(1.0 + 1.0 / 128.0), 258.0);
}

#[test]
fn gradients_too_small_for_f16_are_kept_by_a_scaled_loss() {
    let x = Tensor::from([[1.0f32, -1.0]]);
    let tiny = |scale: f32| {
        seed(6);
        let layer = Dense::without_bias(1);
        let optimizer = LossScale::new(Sgd::new(1.0), scale);
        let loss = || mixed_precision(DType::F16, || layer.forward(&x)).sum(..) * 1e-9;
        loss().item().expect("a number");
        let before = layer.weight.get().to_vec::<f32>().expect("numbers");
        let given = gradients(&layer.parameters(), &optimizer.scaled(&loss()));
        let given = given[0].to_vec::<f32>().expect("numbers");
        optimizer
            .step(&layer.parameters(), &loss())
            .expect("a step");
        let after = layer.weight.get().to_vec::<f32>().expect("numbers");
        (given, before, after)
    };
    let (given, before, after) = tiny(1.0);
    assert_eq!((given, before), (vec![0.0, 0.0], after));
    let (given, _, _) = tiny(65_536.0);
    assert!(given.iter().all(|gradient| *gradient != 0.0), "{given:?}");
}

#[test]
fn a_step_that_overflows_is_left_out_and_the_scale_is_halved() {
    let x = Tensor::from([[60_000.0f32, 2.0]]);
    seed(6);
    let layer = Dense::without_bias(1);
    let optimizer = LossScale::new(Sgd::new(1e-3), 65_536.0);
    let loss = || mixed_precision(DType::F16, || layer.forward(&x)).sum(..);
    loss().item().expect("a number");
    let before = layer.weight.get().to_vec::<f32>().expect("numbers");
    optimizer
        .step(&layer.parameters(), &loss())
        .expect("a step");
    let after = layer.weight.get().to_vec::<f32>().expect("numbers");
    assert_eq!(before, after);
    assert_eq!(optimizer.scale().item().expect("a number"), 32_768.0);
}
