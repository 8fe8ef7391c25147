//! What the tests of this crate share.
#![allow(dead_code)]

use loopwright_backend::{CompileOptions, Describe, Executable, KernelBackend};
use loopwright_gccjit::GccJit;
use loopwright_kernel::{Function, Module};
use loopwright_ops::{DType, Scalar};
use std::sync::Arc;

/// The backend at a level that keeps tests short, or `None`, said out loud, where there is no library.
pub fn backend() -> Option<GccJit> {
    available(GccJit::new().with_optimisation(1))
}

/// The backend if it can be used. On CI it must be.
pub fn available(backend: GccJit) -> Option<GccJit> {
    match backend.availability() {
        Ok(()) => Some(backend),
        Err(why) if std::env::var_os("CI").is_none() => {
            eprintln!("SKIPPED: {why}");
            None
        }
        Err(why) => panic!("CI must have libgccjit: {why}"),
    }
}

/// Compiles functions without a cache.
pub fn compile(backend: &GccJit, functions: Vec<Function>, strict: bool) -> Arc<dyn Executable> {
    let module = Module {
        structs: Vec::new(),
        functions,
    };
    compile_module(backend, &module, strict)
}

/// Compiles a module without a cache.
pub fn compile_module(backend: &GccJit, module: &Module, strict: bool) -> Arc<dyn Executable> {
    let options = CompileOptions {
        strict,
        cache: None,
    };
    match backend.compile(module, &options) {
        Ok(executable) => executable,
        Err(error) => panic!("{error}"),
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

/// Values at which ops go wrong: zeros, extremes, powers of two and their neighbours, halves, NaN.
pub fn edge_values(dtype: DType) -> Vec<Scalar> {
    let mut values: Vec<Scalar> = Vec::new();
    let mut add = |value: Scalar| {
        if !values.contains(&value) {
            values.push(value);
        }
    };
    if dtype == DType::Bool {
        return vec![Scalar::bool(false), Scalar::bool(true)];
    }
    for value in [
        0, 1, -1, 2, -2, 3, -3, 5, 7, -7, 8, 10, 31, 32, 63, 64, 100, -100,
    ] {
        add(Scalar::from_i64(dtype, value));
    }
    add(Scalar::min_value(dtype));
    add(Scalar::max_value(dtype));
    if dtype.is_float() {
        for value in [
            -0.0,
            0.5,
            -0.5,
            1.5,
            -1.5,
            2.5,
            -2.5,
            0.1,
            -0.3,
            3.7,
            1e-3,
            12.75,
            1e-30,
            1e30,
            -1e30,
            250.5,
            65504.0,
            448.0,
            57344.0,
            2147483648.0,
            -2147483649.0,
            9.3e18,
            1.9e19,
            0.999_999_9,
        ] {
            add(Scalar::from_f64(dtype, value));
        }
        // The smallest subnormal and normal values, the largest finite one, NaN.
        let nan = Scalar::nan(dtype).expect("a float has NaN");
        add(nan);
        let bits = dtype.bits();
        for pattern in [1, 2, 3, (1 << (bits - 1)) | 1] {
            add(Scalar::from_bits(dtype, pattern));
        }
        add(Scalar::from_bits(
            dtype,
            Scalar::max_value(dtype).bits() - 1,
        ));
        add(Scalar::from_bits(dtype, Scalar::one(dtype).bits() + 1));
        add(Scalar::from_bits(dtype, Scalar::one(dtype).bits() - 1));
    } else {
        for shift in 0..dtype.bits() {
            if shift % 5 == 0 || shift + 2 >= dtype.bits() {
                add(Scalar::from_bits(dtype, 1 << shift));
                add(Scalar::from_bits(dtype, (1 << shift) - 1));
            }
        }
        add(Scalar::from_bits(dtype, 0x9e37_79b9_7f4a_7c15));
        add(Scalar::from_bits(
            dtype,
            Scalar::min_value(dtype).bits() + 1,
        ));
        add(Scalar::from_bits(
            dtype,
            Scalar::max_value(dtype).bits().wrapping_sub(1),
        ));
    }
    values
}

/// Every combination of `arity` values of these lists, in columns, filled up to a multiple of `step`.
pub fn combinations(lists: &[Vec<Scalar>], step: usize) -> Vec<Vec<Scalar>> {
    let total: usize = lists.iter().map(Vec::len).product();
    let padded = total.next_multiple_of(step);
    let mut columns = vec![Vec::with_capacity(padded); lists.len()];
    for row in 0..padded {
        let mut rest = row % total;
        for (column, list) in columns.iter_mut().zip(lists) {
            column.push(list[rest % list.len()]);
            rest /= list.len();
        }
    }
    columns
}
