//! Every op, cast and bitcast, on every dtype, scalar and vector.

mod harness;

use loopwright_backend::Backend;
use loopwright_conformance::lanes::Lanes;

fn lanes() -> Option<Lanes> {
    harness::backend()
        .map(Backend::kernel_backend)
        .map(Lanes::new)
}

loopwright_conformance::lane_tests!(lanes());
