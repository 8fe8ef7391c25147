//! The elements of a file.

use crate::npy::error::NpyError;
use crate::npy::header::{Header, MAGIC, checked_bytes};
use crate::npy::stored::Stored;
use loopwright_ops::DType;
use std::io::{Read, Write};

impl Header {
    /// Reads the elements that follow the header, as `dtype`: in row-major order, least significant
    /// byte first.
    pub fn read_elements(&self, reader: &mut impl Read, dtype: DType) -> Result<Vec<u8>, NpyError> {
        self.check(dtype)?;
        // Grows with what is there, not with what is announced.
        let mut bytes = Vec::new();
        reader.take(self.bytes() as u64).read_to_end(&mut bytes)?;
        if bytes.len() < self.bytes() {
            return Err(NpyError::Truncated {
                expected: self.bytes(),
                got: bytes.len(),
            });
        }
        self.put_in_order(dtype, &mut bytes);
        Ok(bytes)
    }

    /// As [`Header::read_elements`], into memory that is already there.
    pub fn read_elements_into(
        &self,
        reader: &mut impl Read,
        dtype: DType,
        bytes: &mut [u8],
    ) -> Result<(), NpyError> {
        self.check(dtype)?;
        if bytes.len() != self.bytes() {
            return Err(NpyError::Length {
                dtype,
                shape: self.shape.clone(),
                expected: self.bytes(),
                got: bytes.len(),
            });
        }
        let mut filled = 0;
        while filled < bytes.len() {
            match reader.read(&mut bytes[filled..]) {
                Ok(0) => {
                    return Err(NpyError::Truncated {
                        expected: bytes.len(),
                        got: filled,
                    });
                }
                Ok(read) => filled += read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.put_in_order(dtype, bytes);
        Ok(())
    }

    fn check(&self, dtype: DType) -> Result<(), NpyError> {
        if self.holds(dtype) {
            Ok(())
        } else {
            Err(NpyError::DType {
                stored: self.stored.to_string(),
                wanted: dtype,
            })
        }
    }

    fn put_in_order(&self, dtype: DType, bytes: &mut [u8]) {
        let width = self.stored.bytes;
        if self.stored.big_endian {
            bytes.chunks_exact_mut(width).for_each(<[u8]>::reverse);
        }
        dtype.normalise(bytes);
        // With at most one dimension that is not of size 1 both orders are the same.
        if self.fortran_order && self.shape.iter().filter(|size| **size != 1).count() > 1 {
            row_major(&self.shape, width, bytes);
        }
    }
}

/// Puts elements that lie first index fastest into the order last index fastest.
fn row_major(shape: &[usize], width: usize, bytes: &mut [u8]) {
    let columns = bytes.to_vec();
    let mut strides = Vec::with_capacity(shape.len());
    let mut stride = width;
    for size in shape {
        strides.push(stride);
        stride *= size;
    }
    let mut index = vec![0; shape.len()];
    let mut from = 0;
    for element in bytes.chunks_exact_mut(width) {
        element.copy_from_slice(&columns[from..from + width]);
        for at in (0..shape.len()).rev() {
            index[at] += 1;
            from += strides[at];
            if index[at] < shape[at] {
                break;
            }
            from -= strides[at] * shape[at];
            index[at] = 0;
        }
    }
}

/// Writes an array whose elements lie in row-major order, least significant byte first.
pub fn write(
    writer: &mut impl Write,
    dtype: DType,
    shape: &[usize],
    bytes: &[u8],
) -> Result<(), NpyError> {
    let expected =
        checked_bytes(shape, dtype.bytes()).ok_or_else(|| NpyError::TooLarge(shape.to_vec()))?;
    if bytes.len() != expected {
        return Err(NpyError::Length {
            dtype,
            shape: shape.to_vec(),
            expected,
            got: bytes.len(),
        });
    }
    let sizes: Vec<String> = shape.iter().map(usize::to_string).collect();
    // A tuple of one element is told from a bracketed expression by its comma.
    let comma = if shape.len() == 1 { "," } else { "" };
    let mut header = format!(
        "{{'descr': '{}', 'fortran_order': False, 'shape': ({}{comma}), }}",
        Stored::of(dtype),
        sizes.join(", ")
    );
    // The elements start at a multiple of 64 bytes, so that a mapped file is aligned. The length of
    // even 64 of the largest sizes fits version 1.
    let before = MAGIC.len() + 4;
    let padded = (before + header.len() + 1).next_multiple_of(64) - before;
    header += &" ".repeat(padded - 1 - header.len());
    header.push('\n');
    let length = u16::try_from(header.len())
        .map_err(|_| NpyError::Header(format!("{} dimensions are too many", shape.len())))?;
    writer.write_all(MAGIC)?;
    writer.write_all(&[1, 0])?;
    writer.write_all(&length.to_le_bytes())?;
    writer.write_all(header.as_bytes())?;
    writer.write_all(bytes)?;
    Ok(())
}
