//! Cache lines.

/// A value with cache lines of its own; two, since processors fetch lines in pairs.
#[repr(align(128))]
pub(crate) struct Lines<T>(pub(crate) T);
