//! The arguments of kernels in the words of the ABI.

use crate::abi::{
    self, LW_ARGUMENT_READ, LW_ARGUMENT_SCALAR, LW_ARGUMENT_SHARED, LW_ARGUMENT_WRITE, Text,
};
use loopwright_backend::{Argument, Signature, SignatureParam, Takes};
use smallvec::SmallVec;

/// With up to so many arguments a call needs no memory of its own.
const FEW: usize = 16;

/// The arguments of one call, in the words of the ABI.
pub(crate) struct Arguments {
    /// By argument: a scalar's bits.
    scalars: SmallVec<[u64; FEW]>,
    words: SmallVec<[abi::Argument; FEW]>,
}

/// A text of the ABI for one that outlives its use.
pub(crate) fn text_of(text: &str) -> Text {
    Text {
        start: text.as_ptr().cast(),
        length: text.len(),
    }
}

/// Checks the arguments of a call, and puts them into the words of the ABI.
pub(crate) fn arguments_of(
    signature: &Signature,
    given: &mut [Argument<'_>],
) -> Result<Arguments, String> {
    signature.check_count(given.len())?;
    let mut scalars: SmallVec<[u64; FEW]> = SmallVec::from_elem(0, given.len());
    let mut words: SmallVec<[abi::Argument; FEW]> = SmallVec::with_capacity(given.len());
    for ((argument, param), scalar) in given.iter_mut().zip(&signature.params).zip(&mut scalars) {
        param.check(argument)?;
        words.push(word(param, argument, scalar));
    }
    Ok(Arguments { scalars, words })
}

impl Arguments {
    /// The arguments. Where the scalars lie is only known now: few of them move with this.
    pub(crate) fn words(&mut self) -> &[abi::Argument] {
        for (word, scalar) in self.words.iter_mut().zip(&mut self.scalars) {
            if word.kind == LW_ARGUMENT_SCALAR {
                word.memory = std::ptr::from_mut(scalar).cast();
            }
        }
        &self.words
    }
}

/// An argument that was checked in the words of the ABI; of a scalar, all but where it lies.
fn word(param: &SignatureParam, argument: &mut Argument<'_>, scalar: &mut u64) -> abi::Argument {
    let (kind, start, bytes) = match argument {
        Argument::Scalar(value) => {
            // As `Scalar::write` does it: the lowest byte first.
            *scalar = value.bits().to_le();
            (
                LW_ARGUMENT_SCALAR,
                std::ptr::null_mut(),
                value.dtype().bytes(),
            )
        }
        Argument::Read(buffer) => (LW_ARGUMENT_READ, buffer.as_ptr().cast_mut(), buffer.len()),
        Argument::Write(buffer) => (LW_ARGUMENT_WRITE, buffer.as_mut_ptr(), buffer.len()),
        // Through the slice: `Cell::as_ptr` of the first would reach that byte only.
        Argument::Shared(buffer) => (
            LW_ARGUMENT_SHARED,
            buffer.as_ptr().cast_mut().cast(),
            buffer.len(),
        ),
        // No signature takes local memory, so the check before this has refused it.
        Argument::Local(_) => (LW_ARGUMENT_READ, std::ptr::null_mut(), 0),
    };
    let dtype = match param.takes {
        Takes::Scalar(dtype) => Some(dtype),
        Takes::Buffer { dtype, .. } => dtype,
    };
    abi::Argument {
        kind,
        dtype: dtype.map_or(0, |dtype| dtype as u32),
        memory: start.cast(),
        bytes: bytes as u64,
        name: text_of(&param.name),
    }
}
