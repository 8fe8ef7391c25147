//! What the tests of this crate share.
#![allow(dead_code, reason = "no test uses all of it")]

use loopwright_backend::Describe;
use loopwright_cc::CcBackend;
use loopwright_ops::{DType, Scalar};

/// The backend, or `None` and a printed line where there is no compiler. On CI there must be one.
pub fn backend() -> Option<CcBackend> {
    let backend = CcBackend::from_env();
    match backend.availability() {
        Ok(()) => Some(backend),
        Err(why) if std::env::var_os("CI").is_none() => {
            eprintln!("SKIP: {why}");
            None
        }
        Err(why) => panic!("CI must have a C compiler: {why}"),
    }
}

/// Memory for `count` elements, aligned for everything.
pub struct Buffer {
    words: Vec<u64>,
    bytes: usize,
}

impl Buffer {
    pub fn zeroed(dtype: DType, count: usize) -> Buffer {
        let bytes = dtype.bytes() * count;
        Buffer {
            words: vec![0; bytes.div_ceil(8)],
            bytes,
        }
    }

    pub fn of(values: &[Scalar]) -> Buffer {
        let dtype = values.first().map_or(DType::U8, |value| value.dtype());
        let mut buffer = Buffer::zeroed(dtype, values.len());
        let bytes = buffer.bytes_mut();
        for (value, place) in values.iter().zip(bytes.chunks_mut(dtype.bytes())) {
            value.write(place);
        }
        buffer
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the words hold at least so many initialised bytes.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast(), self.bytes) }
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the words hold at least so many bytes, any of which may have any value.
        unsafe { std::slice::from_raw_parts_mut(self.words.as_mut_ptr().cast(), self.bytes) }
    }

    pub fn values(&self, dtype: DType) -> Vec<Scalar> {
        self.bytes()
            .chunks(dtype.bytes())
            .map(|bytes| Scalar::read(dtype, bytes))
            .collect()
    }
}
