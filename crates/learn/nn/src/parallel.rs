//! Data parallelism: every stream learns from a part of the batch.

use crate::mode::training;
use crate::module::Module;
use crate::optimizer::{Optimizer, gradients};
use loopwright_tensor::{Parallel, Session, Tensor, TensorError, Tree, parallel};
use std::sync::Arc;

/// A training step on several streams; made by [`data_parallel`].
#[derive(Debug)]
pub struct DataParallel<I> {
    step: Parallel<I, Result<Tensor, TensorError>>,
}

/// A training step in which every session computes the gradients of an equal part of the batch. The gradients meet in
/// merge buffers, and the optimiser uses their mean, on the first session.
///
/// With a loss that is a mean over the batch, the weights become what they would be on one stream. Dropout
/// and [`Generator`](loopwright_tensor::random::Generator)s give each part other numbers. Batch norms
/// use the statistics of a part; running ones are those of the first part.
///
/// ```
/// # use loopwright_x86 as _;
/// use loopwright_nn::{Dense, Layer, Sgd, data_parallel, mean_squared_error, seed};
/// use loopwright_tensor::{DType, Session, Tensor};
/// use std::{num::NonZero, sync::Arc};
///
/// seed(3);
/// let line = Arc::new(Dense::new(1));
/// let streams = Session::current()?.streams(NonZero::new(4).expect("not zero"))?;
/// let step = data_parallel(&streams, &line, Sgd::new(0.1), |line, (x, y): &(Tensor, Tensor)| {
///     mean_squared_error(&line.forward(x), y)
/// });
///
/// let x = Tensor::arange(0, 8, 1).cast(DType::F32).reshape([8, 1]) / 8.0;
/// let y = &x * 2.0 + 1.0;
/// let mut loss = f64::NAN;
/// for _ in 0..300 {
///     loss = step.call(&(x.clone(), y.clone()))?.item()?;
/// }
/// assert!(loss < 1e-3, "{loss}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn data_parallel<I: Tree + 'static, M, O>(
    sessions: &[Session],
    network: &Arc<M>,
    optimizer: O,
    loss: impl Fn(&M, &I) -> Tensor + Send + Sync + 'static,
) -> DataParallel<I>
where
    M: Module + Send + Sync + 'static,
    O: Optimizer + Send + Sync + 'static,
{
    let share = 1.0 / sessions.len().max(1) as f64;
    let optimizer = Arc::new(optimizer);
    let each = {
        let (network, optimizer) = (Arc::clone(network), Arc::clone(&optimizer));
        move |part: &I| {
            let loss = training(|| loss(&network, part));
            let mut given = gradients(&network.parameters(), &optimizer.scaled(&loss));
            given.push(loss);
            Ok(given)
        }
    };
    let network = Arc::clone(network);
    let then = move |sums: &[Tensor]| {
        let mut means: Vec<Tensor> = sums.iter().map(|sum| sum * share).collect();
        let loss = means.pop().expect("the loss comes last");
        optimizer.apply(&network.parameters(), &means)?;
        Ok(loss)
    };
    DataParallel {
        step: parallel("step", sessions, each, then),
    }
}

impl<I: Tree + 'static> DataParallel<I> {
    /// Takes a step with a batch, which is cut along its first axis; the mean of the losses.
    ///
    /// # Errors
    /// A batch that cannot be cut into equal parts, what is wrong with the loss, or what a device says.
    #[track_caller]
    pub fn call(&self, batch: &I) -> Result<Tensor, TensorError> {
        self.step.call(batch)
    }
}
