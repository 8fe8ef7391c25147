//! N shards on N streams train to the same weights as one device; seeds differ per shard.

use loopwright_nn::data::{Loader, LoaderOptions, digits};
use loopwright_nn::{
    Adam, Dense, Dropout, Layer, Module, Optimizer, Sequential, cross_entropy, data_parallel, seed,
    training,
};
use loopwright_tensor::{DType, Session, Tensor, TensorError, jit, parallel, shard};
use std::num::NonZero;
use std::sync::Arc;

type Batch = (Tensor, Tensor);

fn network() -> Arc<Sequential> {
    seed(0);
    let layers = Sequential::new().then(Dense::new(32));
    Arc::new(layers.then(Dense::new(10)))
}

fn loss(net: &Sequential, (images, labels): &Batch) -> Tensor {
    cross_entropy(&net.forward(&images.merge_axes(1, 2)), labels)
}

fn batches() -> Vec<Batch> {
    let train = digits().split(0.2, 0).expect("a split").train;
    let options = LoaderOptions::new(96).shuffled(0).drop_last();
    let dataset = train.dataset().expect("a set");
    let mut loader = Loader::new(dataset, options).expect("a loader");
    let batches = loader.arrays().map(|batch| {
        let [images, labels] = batch.expect("a batch").map(Tensor::of);
        (images, labels)
    });
    batches.collect()
}

fn weights(net: &Sequential) -> Vec<f32> {
    let parameters = net.parameters().into_iter();
    parameters
        .flat_map(|parameter| parameter.get().to_vec::<f32>().expect("it is trained"))
        .collect()
}

fn streams(count: usize) -> Vec<Session> {
    let one = Session::new("x86").expect("the device is there");
    let count = NonZero::new(count).expect("not zero");
    one.streams(count).expect("the device has streams")
}

#[test]
fn shards_on_streams_train_to_the_weights_of_one_device() {
    let batches = batches();
    let expected = streams(1)[0].scope(|| {
        let net = network();
        let adam = Adam::new(1e-2);
        let step = jit("step", {
            let net = Arc::clone(&net);
            move |batch: &Batch| {
                let loss = training(|| loss(&net, batch));
                adam.step(&net.parameters(), &loss)?;
                Ok::<_, TensorError>(loss)
            }
        });
        for batch in &batches {
            step.call(batch).expect("a step");
        }
        weights(&net)
    });
    for shards in [1, 2, 3, 4, 8] {
        let sessions = streams(shards);
        let found = sessions[0].scope(|| {
            let net = network();
            let step = data_parallel(&sessions, &net, Adam::new(1e-2), loss);
            for batch in &batches {
                step.call(batch).expect("a step");
            }
            weights(&net)
        });
        let pairs = found.iter().zip(&expected);
        let off = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        // Sums of gradients in another order, which Adam makes up to a step of.
        assert!(off < 1e-3, "{shards} shards: {off}");
    }
}

#[test]
fn seeds_differ_per_shard() {
    let sessions = streams(4);
    seed(5);
    let dropout = Dropout::new(0.5);
    let dropped = parallel(
        "dropped",
        &sessions,
        move |x: &Tensor| {
            let number = shard().expect("it works on parts");
            let own = Tensor::arange(0, 4, 1).cast(DType::U64).eq(&number);
            let kept = training(|| dropout.forward(x));
            Ok(vec![own.cast(DType::F32).unsqueeze(1) * kept])
        },
        |sums: &[Tensor]| sums[0].clone(),
    );
    let rows = dropped.call(&Tensor::new(&[1.0f32; 4 * 64], [4, 64]));
    let rows = rows.and_then(|rows| rows.to_vec::<f32>()).expect("numbers");
    for a in 0..4 {
        for b in 0..a {
            assert_ne!(rows[a * 64..][..64], rows[b * 64..][..64], "{a} and {b}");
        }
    }
}
