//! Dropout.

use super::Layer;
use crate::Module;
use crate::init::next_seed;
use crate::mode::is_training;
use crate::module::State;
use loopwright_tensor::random::{self, Key};
use loopwright_tensor::{DType, Scalar, Tensor};

/// Leaves elements out at random in training, and scales the others up so that their sum is expected to
/// stay the same. In use it does nothing.
///
/// Which elements follows from the layer's seed and a counter, which is part of its state: a run that is
/// taken up again goes on with the same numbers.
#[derive(Module)]
pub struct Dropout {
    rate: f64,
    seed: u64,
    /// How often it has been used.
    pub count: State,
}

impl Dropout {
    /// Leaves out each element with a probability.
    pub fn new(rate: f64) -> Dropout {
        let zero = Tensor::constant(Scalar::zero(DType::U64));
        Dropout {
            rate,
            seed: next_seed(),
            count: State::new(&zero),
        }
    }
}

impl Layer for Dropout {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        if !is_training() || self.rate <= 0.0 || x.check().is_err() {
            return x.clone();
        }
        let count = self.count.get();
        if let Err(error) = self.count.variable().set(&(&count + 1)) {
            return Tensor::from_error(error);
        }
        // A key of its own for every use, and for every part of a batch.
        let key = Key::new(self.seed).fold_in_value(&count).of_shard();
        random::dropout(&key, x, self.rate)
    }
}
