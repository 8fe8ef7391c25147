//! Loopwright: conformance.
