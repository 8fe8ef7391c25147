//! Programs whose steps keep more beside each other than a thread's stack has.

use loopwright_interp as _;
use loopwright_nn::{Adam, Layer, Module, Optimizer, TransformerBlock, gradients, seed, training};
use loopwright_tensor::{Session, Tensor, TensorError, jit};
use loopwright_x86 as _;

/// What a function gives on `x86` is what it gives on the reference.
fn agree(make: impl Fn() -> Result<Vec<Tensor>, TensorError> + Sync) {
    let values = |device: &str| -> Vec<Vec<f64>> {
        let session = Session::new(device).expect("it is there");
        let computed = session.scope(|| -> Result<Vec<Vec<f64>>, TensorError> {
            let tensors = make()?;
            let numbers = |tensor: &Tensor| Ok(tensor.array()?.to_f64());
            tensors.iter().map(numbers).collect()
        });
        computed.unwrap_or_else(|error| panic!("{device}: {error}"))
    };
    // A thread whose stack is a quarter of what threads commonly have.
    let found = std::thread::scope(|scope| {
        let small = std::thread::Builder::new().stack_size(512 << 10);
        let running = small.spawn_scoped(scope, || values("x86"));
        running.expect("a thread").join().expect("it ends")
    });
    let expected = values("interp");
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found.len(), expected.len());
        let scale = expected.iter().fold(1e-3f64, |most, x| most.max(x.abs()));
        for (found, expected) in found.iter().zip(expected) {
            let apart = (found - expected).abs();
            assert!(apart <= 1e-3 * scale, "{found} and {expected} of {scale}");
        }
    }
}

fn waves(shape: &[usize]) -> Tensor {
    let count = shape.iter().product::<usize>() as i64;
    let numbers = Tensor::arange(0, count, 1).cast(loopwright_tensor::DType::F32);
    (numbers * 0.37).sin().reshape(shape)
}

fn blocks(count: usize, width: usize, heads: usize) -> Vec<TransformerBlock> {
    seed(7);
    let block = |_| TransformerBlock::causal(width, heads, 0.0);
    (0..count).map(block).collect()
}

fn through(blocks: &[TransformerBlock], x: &Tensor) -> Tensor {
    blocks.iter().fold(x.clone(), |x, block| block.forward(&x))
}

/// A hundred rows of 16 KB that are needed at the same time, in every iteration of a parallel loop.
#[test]
fn private_arrays_of_more_than_a_stack_lie_in_the_memory_of_each_worker() {
    agree(|| {
        let x = waves(&[6, 4000]).named(["i", "j"]);
        let row = |at: usize| (&x * (at as f32 + 1.0)).sin().label(&format!("row{at}"));
        let rows: Vec<Tensor> = (0..100).map(row).collect();
        let sum = rows
            .iter()
            .rev()
            .skip(1)
            .fold(rows[99].clone(), |sum, row| sum + row);
        let mut schedule = String::from("loopwright schedule 1\n");
        for at in 0..100 {
            let share = if at == 0 { "" } else { "share=1, " };
            schedule.push_str(&format!("row{at}: {share}i parallel, j\n"));
        }
        schedule.push_str("y0: share=1, i parallel, j\n");
        sum.loops()?.set_schedule(&schedule)?;
        Ok(vec![sum])
    });
}

#[test]
fn the_gradient_of_sixteen_layers_of_a_transformer_with_64_channels_compiles() {
    agree(|| {
        let (blocks, x) = (blocks(16, 64, 2), waves(&[1, 4, 64]));
        let loss = through(&blocks, &x).square().mean(..);
        let [dx] = loss.gradients([&x]);
        let parameters = blocks.parameters();
        let first = gradients(&parameters[..2], &loss);
        Ok([vec![loss, dx], first].concat())
    });
}

#[test]
fn the_gradient_of_a_selective_scan_written_out_over_64_steps_compiles() {
    agree(|| {
        let (batch, time, channels, states) = (2, 64, 16, 8);
        let x = waves(&[batch, time, channels]);
        let decay = waves(&[channels, states]);
        let weight = waves(&[channels, states]) * 0.3;
        let mut state = Tensor::zeros([batch, channels, states], x.dtype());
        let mut total = Tensor::scalar(0.0f32);
        for at in 0..time {
            let x = x.at((.., at)).unsqueeze(2);
            let delta = (&x * 0.5).sigmoid();
            state = (&delta * &decay * -1.0).exp() * &state + &delta * &x * &weight;
            total = total + (&state * &weight).sum(2).square().sum(..);
        }
        let gradients = total.gradients([&x, &decay, &weight]);
        Ok([vec![total], gradients.to_vec()].concat())
    });
}

#[test]
fn adam_over_twelve_small_blocks_of_a_language_model_compiles() {
    agree(|| {
        let (blocks, x) = (std::sync::Arc::new(blocks(12, 32, 2)), waves(&[1, 4, 32]));
        let (adam, within) = (Adam::new(0.01), blocks.clone());
        let step = jit("step", move |x: &Tensor| {
            let loss = training(|| through(&within, x)).square().mean(..);
            adam.step(&within.parameters(), &loss)?;
            Ok::<_, TensorError>(loss)
        });
        let losses = [step.call(&x)?, step.call(&x)?];
        let parameters = blocks.parameters();
        let parameters = parameters.iter().take(2).map(|parameter| parameter.get());
        Ok(losses.into_iter().chain(parameters).collect())
    });
}
