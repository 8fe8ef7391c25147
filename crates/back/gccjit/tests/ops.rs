//! Every op, cast and bitcast, on every dtype, scalar and vector.

mod harness;

use loopwright_backend::Backend;
use loopwright_conformance::lanes::Lanes;
use loopwright_gccjit::GccJit;
use loopwright_ops::DType;

/// Those for which there are different instructions: the library takes its time for each.
fn widths(dtype: DType) -> &'static [u32] {
    match dtype {
        DType::F16 => &[1, 8, 16],
        _ if dtype.bits() < 32 => &[1, 16],
        _ => &[1, 4, 16],
    }
}

fn lanes_of(backend: GccJit) -> Lanes {
    let backend = Backend::kernel_backend(backend);
    Lanes::new(backend).widths(widths).strictly()
}

loopwright_conformance::lane_tests!(harness::backend().map(lanes_of));

/// What later processors have instructions for is done without.
#[test]
fn ops_with_fewer_instructions() {
    for level in [1, 3] {
        if let Some(backend) = harness::backend() {
            let lanes = lanes_of(backend.with_instructions(level));
            lanes.assert_ops(&[DType::F32, DType::F16, DType::I16]);
        }
    }
}
