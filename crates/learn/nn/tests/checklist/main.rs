//! What OCANNL's layer of networks does, line by line of the list of behaviours that this one has to show. The number
//! of a line is in the name of its module. Each is shown here once, from end to end and in plain numbers; most are
//! tested further where they are made:
//!
//! | line | also shown by |
//! | --- | --- |
//! | 44 gradients | `crates/learn/tensor/tests/gradients`: every op, fold, scan, view, gather and scatter, to the second order on every backend |
//! | 45 shapes | `crates/learn/tensor/tests/inference.rs`, `crates/learn/nn/tests/modules.rs` |
//! | 46 einsum | `crates/learn/tensor/tests/einsum.rs`: against loops written out, with second gradients |
//! | 47 convolutions and pools | `crates/learn/tensor/tests/convolve.rs`: against loops written out, in groups and transposed |
//! | 48 layers | `crates/learn/nn/tests/networks.rs`, `crates/learn/nn/tests/modules.rs`, `crates/learn/nn/tests/digits.rs` |
//! | 49 optimisers | `crates/learn/nn/tests/optimizers.rs`: paths of several steps against their formulas |
//! | 50 data parallelism | `crates/learn/nn/tests/parallel.rs`: on every backend, on several devices, under both schedulers; `crates/run/runtime/tests/data_parallel.rs`: bit for bit |
//! | 51 checkpoints | `crates/base/formats/tests/files.rs`, `crates/learn/nn/tests/digits.rs`: a run that is stopped ends at the same bytes |
//! | 52 boxes and curves | `crates/base/formats/tests/snapshots.rs` |

use loopwright_interp as _;
use loopwright_x86 as _;

mod line_44_gradients;
mod line_45_shapes;
mod line_46_einsum;
mod line_47_windows;
mod line_48_layers;
mod line_49_optimisers;
mod line_50_data_parallel;
mod line_51_checkpoints;
mod line_52_printing;

use loopwright_tensor::{Tensor, TensorError};

type Checked = Result<(), TensorError>;

/// Fails unless the elements of a tensor are these, but for rounding.
#[track_caller]
fn close(tensor: &Tensor, expected: &[f64]) {
    let found = tensor.to_f64().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for (found_one, expected_one) in found.iter().zip(expected) {
        let bound = 1e-5 * (1.0 + expected_one.abs());
        assert!(
            (found_one - expected_one).abs() <= bound,
            "{found:?} is not {expected:?}"
        );
    }
}

/// What is wrong with a tensor.
#[track_caller]
fn message(tensor: &Tensor) -> String {
    match tensor.array() {
        Ok(array) => panic!("it has a value: {:?}", array.to_f64()),
        Err(error) => error.kind().to_string(),
    }
}
