//! Padding with elements of the tensor.

mod numeric;

use loopwright_tensor::{PadMode, Tensor, TensorError};
use numeric::{check_second_gradients, everywhere, random};

#[test]
fn elements_go_on_beyond_the_ends() {
    everywhere(|| -> Result<(), TensorError> {
        let x = Tensor::from([1i64, 2, 3, 4]);
        let padded = |mode| x.pad_by(0, 3, 2, mode).to_vec::<i64>();
        assert_eq!(padded(PadMode::Edge)?, [1, 1, 1, 1, 2, 3, 4, 4, 4]);
        assert_eq!(padded(PadMode::Reflect)?, [4, 3, 2, 1, 2, 3, 4, 3, 2]);
        assert_eq!(padded(PadMode::Wrap)?, [2, 3, 4, 1, 2, 3, 4, 1, 2]);
        assert_eq!(x.pad_by(0, 6, 0, PadMode::Edge).sizes()?, [10]);
        for mode in [PadMode::Edge, PadMode::Reflect, PadMode::Wrap] {
            let what = format!("{mode:?}");
            check_second_gradients(
                &[random(&[2, 4], 1)],
                |x| x[0].pad_by(1, 3, 2, mode).square(),
                &what,
            )?;
        }
        let error = x.pad_by(0, 4, 0, PadMode::Reflect).check().unwrap_err();
        assert_eq!(
            error.kind().to_string(),
            "`pad_by` of [4]: padding by 4 takes more than all elements but one of axis 0"
        );
        Ok(())
    });
}
