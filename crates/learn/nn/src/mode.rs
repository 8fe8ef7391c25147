//! How layers behave: as in training or in use, and how precisely they multiply.

use crate::module::Parameter;
use loopwright_tensor::{DType, Tensor};
use std::cell::Cell;
use std::thread::LocalKey;

thread_local! {
    static TRAINING: Cell<bool> = const { Cell::new(false) };
    static MIXED: Cell<Option<DType>> = const { Cell::new(None) };
}

/// Runs a function in which layers behave as in training: dropout drops, batch norms use the batch and
/// update their running statistics.
pub fn training<T>(run: impl FnOnce() -> T) -> T {
    with(&TRAINING, true, run)
}

/// Runs a function in which layers behave as in use, which is how they behave where nothing is said.
pub fn inference<T>(run: impl FnOnce() -> T) -> T {
    with(&TRAINING, false, run)
}

/// Whether layers behave as in training on this thread.
pub fn is_training() -> bool {
    TRAINING.get()
}

/// Lets layers behave as in training from now on, or as in use, on this thread; gives how they behaved before.
///
/// For callers that cannot run a function inside of [`training`], such as blocks of another language.
pub fn set_training(training: bool) -> bool {
    TRAINING.replace(training)
}

/// Lets layers multiply in a narrower float from now on, or as they are, on this thread; gives what was said before.
///
/// For callers that cannot run a function inside of [`mixed_precision`].
pub fn set_mixed_precision(dtype: Option<DType>) -> Option<DType> {
    MIXED.replace(dtype)
}

/// Runs a function in which layers multiply `f32` matrices in a narrower float: `bf16` or `f16`.
///
/// Operands of matrix products and convolutions are rounded to it, and so are gradients on their way through them;
/// products are summed up in `f32`. Parameters, sums, norms, losses and optimisers stay as they are. Gradients too small for
/// `f16` are kept by [`LossScale`](crate::LossScale).
///
/// ```
/// # use loopwright_x86 as _;
/// use loopwright_nn::{Dense, Layer, mixed_precision, seed};
/// use loopwright_tensor::{DType, Tensor};
///
/// seed(1);
/// let layer = Dense::new(4);
/// let x = Tensor::from([[0.1f32, 0.2, 0.3]]);
/// let exact = layer.forward(&x);
/// let mixed = mixed_precision(DType::BF16, || layer.forward(&x));
/// assert_eq!(mixed.dtype(), DType::F32);
/// let off = (exact - mixed).abs().max(..).item()?;
/// assert!(off > 0.0 && off < 1e-2, "{off}");
/// # Ok::<(), loopwright_tensor::TensorError>(())
/// ```
pub fn mixed_precision<T>(dtype: DType, run: impl FnOnce() -> T) -> T {
    with(&MIXED, Some(dtype), run)
}

/// A tensor that is to be multiplied, rounded as [`mixed_precision`] says.
#[track_caller]
pub(crate) fn rounded(x: &Tensor) -> Tensor {
    match MIXED.get() {
        Some(narrow) if x.dtype() == DType::F32 => x.cast(narrow).cast(DType::F32),
        _ => x.clone(),
    }
}

/// `x · weightᵀ`, rounded as [`mixed_precision`] says.
#[track_caller]
pub(crate) fn weighted(x: &Tensor, weight: &Parameter) -> Tensor {
    rounded(x).matmul(&rounded(&weight.get()).t())
}

/// Runs a function with a setting of this thread.
fn with<S: Copy, T>(setting: &'static LocalKey<Cell<S>>, value: S, run: impl FnOnce() -> T) -> T {
    struct Restore<S: Copy + 'static>(&'static LocalKey<Cell<S>>, S);
    impl<S: Copy> Drop for Restore<S> {
        fn drop(&mut self) {
            self.0.set(self.1);
        }
    }
    let _restore = Restore(setting, setting.replace(value));
    run()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_that_are_set_give_what_was_before() {
        assert!(!set_training(true));
        assert!(is_training());
        inference(|| assert!(!is_training()));
        assert!(set_training(false));
        assert!(!is_training());
        assert_eq!(set_mixed_precision(Some(DType::BF16)), None);
        assert_eq!(set_mixed_precision(None), Some(DType::BF16));
    }
}
