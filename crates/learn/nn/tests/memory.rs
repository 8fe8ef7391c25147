//! A training step of a convolutional network for the digits compiles once; steps after the first allocate nothing.

use loopwright_cc as _;
use loopwright_interp as _;
use loopwright_nn::data::{Loader, LoaderOptions, digits};
use loopwright_nn::{
    Adam, BatchNorm, Conv, Dense, Dropout, Layer, Module, Optimizer, Pool, cross_entropy, seed,
    training,
};
use loopwright_tensor::{ConvOptions, Session, Tensor, TensorError, jit};
use loopwright_x86 as _;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: all is left to the system's allocator; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[derive(Module)]
struct Net {
    first: Conv,
    first_norm: BatchNorm,
    second: Conv,
    second_norm: BatchNorm,
    dropout: Dropout,
    out: Dense,
}

impl Net {
    fn new() -> Net {
        let padded = || ConvOptions::default().padding(1);
        Net {
            first: Conv::of(16, &[3, 3], padded()),
            first_norm: BatchNorm::new(),
            second: Conv::of(32, &[3, 3], padded()),
            second_norm: BatchNorm::new(),
            dropout: Dropout::new(0.2),
            out: Dense::new(10),
        }
    }
}

impl Layer for Net {
    fn forward(&self, images: &Tensor) -> Tensor {
        let pool = Pool::max(&[2, 2]);
        let x = self.first.forward(&images.unsqueeze(1));
        let x = pool.forward(&self.first_norm.forward(&x).relu());
        let x = self.second_norm.forward(&self.second.forward(&x)).relu();
        let x = self.dropout.forward(&pool.forward(&x).merge_axes(1, 3));
        self.out.forward(&x)
    }
}

#[test]
fn a_step_of_the_convolutional_network_compiles_once_and_allocates_nothing_later() {
    for device in ["x86", "cc"] {
        let session = Session::new(device).expect("the device is there");
        session.scope(|| {
            seed(0);
            let net = Net::new();
            let adam = Adam::new(2e-3);
            let step = jit("step", move |[images, labels]: &[Tensor; 2]| {
                let loss = training(|| cross_entropy(&net.forward(images), labels));
                adam.step(&net.parameters(), &loss)?;
                Ok::<_, TensorError>(loss)
            });
            let train = digits().split(0.2, 0).expect("a split").train;
            let options = LoaderOptions::new(32).shuffled(0).drop_last();
            let dataset = train.dataset().expect("a set");
            let mut loader = Loader::new(dataset, options).expect("a loader");
            let batches: Vec<[Tensor; 2]> = loader
                .arrays()
                .map(|batch| batch.expect("a batch").map(Tensor::of))
                .collect();
            let mut losses = vec![
                step.call(&batches[0])
                    .expect("a step")
                    .item()
                    .expect("a loss"),
            ];
            let (compiled, before) = (
                session.compilations(),
                session.memory().expect("nothing has failed"),
            );
            let mut counts = Vec::new();
            for batch in &batches[1..] {
                let before = COUNT.get();
                let loss = step.call(batch).expect("a step");
                counts.push(COUNT.get() - before);
                losses.push(loss.item().expect("a loss"));
            }
            let now = session.memory().expect("nothing has failed");
            assert_eq!(
                (now.used, now.peak, now.pools),
                (before.used, before.peak, before.pools),
                "{device}"
            );
            assert_eq!(session.compilations(), compiled, "{device}");
            assert_eq!(step.reports().len(), 1, "{:?}", step.reports());
            // The tensor that is given back is one; queues and books of the runtime may still grow in the first few.
            let later = &counts[3..];
            assert!(
                later.iter().all(|count| *count <= 1),
                "{device}: {counts:?}"
            );
            let [first, last] = [&losses[..5], &losses[losses.len() - 5..]]
                .map(|losses| losses.iter().sum::<f64>() / losses.len() as f64);
            assert!(last < 0.4 * first, "{device}: {losses:?}");
        });
    }
}
