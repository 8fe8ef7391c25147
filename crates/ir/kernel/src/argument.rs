//! What a kernel is given for a parameter when it is called.

use loopwright_ops::Scalar;
use std::cell::Cell;

/// An argument of a kernel. Elements in memory have the least significant byte first.
#[derive(Debug)]
pub enum Argument<'a> {
    /// Memory that is only read.
    Read(&'a [u8]),
    /// Memory that is written, and may be read.
    Write(&'a mut [u8]),
    /// Memory that is written, and may be read, and that other arguments of this kind may overlap.
    /// The kernel's parameter must not be `noalias` where one does.
    Shared(&'a [Cell<u8>]),
    /// A scalar.
    Scalar(Scalar),
    /// So many bytes of local memory, which each work-group has for itself.
    Local(u64),
}

impl Argument<'_> {
    /// The same argument for a shorter time.
    pub fn reborrow(&mut self) -> Argument<'_> {
        match self {
            Argument::Read(bytes) => Argument::Read(bytes),
            Argument::Write(bytes) => Argument::Write(bytes),
            Argument::Shared(cells) => Argument::Shared(cells),
            Argument::Scalar(scalar) => Argument::Scalar(*scalar),
            Argument::Local(bytes) => Argument::Local(*bytes),
        }
    }
}
