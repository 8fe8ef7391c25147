//! Steps after the first allocate nothing: counted on the device and on the host.

use loopwright_cc as _;
use loopwright_interp as _;
use loopwright_runtime::{Runtime, RuntimeOptions};
use loopwright_tensor::{Array, DType, Session, Tensor, TensorError, Variable, assign, jit};
use loopwright_x86 as _;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

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

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn counted<T>(run: impl FnOnce() -> T) -> (T, usize) {
    let before = COUNT.get();
    let value = run();
    (value, COUNT.get() - before)
}

type Batch = (Tensor, Tensor);

/// A step of a network of two layers with momentum, and a counter.
fn training_step() -> impl Fn(&Batch) -> Result<Tensor, TensorError> + Send + Sync {
    let filled = |shape: [usize; 2], by: f64| {
        let count = (shape[0] * shape[1]) as i64;
        let values = (Tensor::arange(0, count, 1).cast(DType::F32) * by).sin() * 0.3;
        Variable::new(&values.reshape(shape))
    };
    let parameters = [filled([16, 32], 0.7), filled([32, 4], 1.3)];
    let moments = [
        Variable::new(&Tensor::zeros([16, 32], DType::F32)),
        Variable::new(&Tensor::zeros([32, 4], DType::F32)),
    ];
    let steps = Variable::new(&Tensor::scalar(0));
    move |(x, y): &Batch| {
        let weights = parameters.each_ref().map(Variable::get);
        let logits = x.matmul(&weights[0]).relu().matmul(&weights[1]);
        let loss = -(logits.log_softmax(1) * y).sum(1).mean(..);
        let gradients = loss.gradients([&weights[0], &weights[1]]);
        for at in 0..2 {
            let moment = moments[at].get() * 0.9 + &gradients[at];
            let next = &weights[at] - &moment * 0.1;
            assign(&[(&parameters[at], next), (&moments[at], moment)])?;
        }
        steps.set(&(steps.get() + 1))?;
        Ok(loss)
    }
}

#[test]
fn steps_after_the_first_allocate_nothing() {
    for platform in Runtime::new(RuntimeOptions::default()).platforms() {
        if platform.unavailable.is_some() {
            continue;
        }
        let session = Session::new(&platform.name).unwrap();
        session.scope(|| {
            let step = jit("step", training_step());
            let x = Tensor::arange(0, 8 * 16, 1).cast(DType::F32) * 0.11;
            let x: Arc<Array> = x.sin().reshape([8, 16]).array().unwrap();
            let y: Arc<Array> = Tensor::arange(0, 8, 1)
                .modulo(&Tensor::scalar(4))
                .one_hot(4, DType::F32)
                .array()
                .unwrap();
            let batch = || (Tensor::of(Arc::clone(&x)), Tensor::of(Arc::clone(&y)));
            let mut losses = Vec::new();
            for _ in 0..3 {
                losses.push(step.call(&batch()).unwrap().item().unwrap());
            }
            let before = session.memory().unwrap();
            let compiled = session.compilations();
            let mut calls = Vec::new();
            for _ in 0..20 {
                let (batch, _) = (batch(), ());
                let (loss, count) = counted(|| step.call(&batch).unwrap());
                calls.push(count);
                losses.push(loss.item().unwrap());
            }
            let now = session.memory().unwrap();
            assert_eq!(
                (now.used, now.peak, now.pools),
                (before.used, before.peak, before.pools),
                "{session:?}"
            );
            assert_eq!(session.compilations(), compiled);
            // The tensor that is given back is an allocation, and nothing else is.
            assert!(
                calls.iter().all(|count| *count <= 1),
                "{session:?}: {calls:?}"
            );
            assert!(losses[22] < 0.1 * losses[0], "{losses:?}");
        });
    }
}

#[test]
fn arguments_on_the_device_are_copied_without_allocations() {
    for platform in Runtime::new(RuntimeOptions::default()).platforms() {
        if platform.unavailable.is_some() {
            continue;
        }
        let session = Session::new(&platform.name).unwrap();
        session.scope(|| {
            let double = jit("double", |x: &Tensor| x * 2.0);
            let next = jit("next", |x: &Tensor| x + 1.0);
            let mut x = Tensor::from([1.0f32, 2.0]);
            for _ in 0..4 {
                let y = double.call(&x).unwrap();
                x = next.call(&y).unwrap();
            }
            let before = session.memory().unwrap();
            let mut calls = Vec::new();
            for _ in 0..10 {
                let (y, doubling) = counted(|| double.call(&x).unwrap());
                drop(std::mem::replace(&mut x, Tensor::scalar(0)));
                let (z, adding) = counted(|| next.call(&y).unwrap());
                x = z;
                calls.push((doubling, adding));
            }
            let now = session.memory().unwrap();
            assert_eq!(
                (now.used, now.peak),
                (before.used, before.peak),
                "{session:?}"
            );
            assert!(
                calls.iter().all(|calls| *calls == (1, 1)),
                "{session:?}: {calls:?}"
            );
            let expected = (0..14).fold(1.0, |x, _| x * 2.0 + 1.0);
            assert_eq!(f64::from(x.to_vec::<f32>().unwrap()[0]), expected);
        });
    }
}
