//! The suite on the backends of this workspace.

mod support;

mod interp {
    loopwright_conformance::conformance_tests!(Some(super::support::interp()));
}

/// Compiled at a level that keeps this crate's tests short; `cc`'s own tests use the default.
mod cc {
    loopwright_conformance::conformance_tests!(super::support::cc("1"));
}

/// What applies to a backend that does not compute.
mod null {
    use loopwright_backend::Backend;
    use loopwright_null::Null;

    loopwright_conformance::conformance_tests!(Some(Backend::kernel_backend(Null)));
}
