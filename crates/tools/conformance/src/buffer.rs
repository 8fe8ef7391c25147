//! Memory that kernels are called with.

use loopwright_ops::{DType, Scalar};

/// Bytes that are aligned for everything a kernel can have in memory.
pub(crate) struct Buffer {
    /// Vectors in structs are the most demanding: they are aligned to 16 bytes.
    words: Vec<u128>,
    bytes: usize,
}

impl Buffer {
    pub(crate) fn zeroed(dtype: DType, count: usize) -> Buffer {
        let bytes = dtype.bytes() * count;
        Buffer {
            words: vec![0; bytes.div_ceil(size_of::<u128>())],
            bytes,
        }
    }

    pub(crate) fn of(values: &[Scalar]) -> Buffer {
        let dtype = values.first().map_or(DType::U8, |value| value.dtype());
        let mut buffer = Buffer::zeroed(dtype, values.len());
        let places = buffer.bytes_mut().chunks_mut(dtype.bytes());
        for (value, place) in values.iter().zip(places) {
            value.write(place);
        }
        buffer
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the words hold at least so many initialised bytes.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast(), self.bytes) }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the words hold at least so many bytes, any of which may have any value.
        unsafe { std::slice::from_raw_parts_mut(self.words.as_mut_ptr().cast(), self.bytes) }
    }

    pub(crate) fn values(&self, dtype: DType) -> Vec<Scalar> {
        let elements = self.bytes().chunks(dtype.bytes());
        elements.map(|bytes| Scalar::read(dtype, bytes)).collect()
    }
}
