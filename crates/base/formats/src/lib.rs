//! Arrays in files and for people.
//!
//! Each module takes [arrays](loopwright_array::Array) to bytes that others read, or back. None knows of programs. What a file
//! announces is not believed: memory is reserved for what the file holds.
//!
//! | module | what it reads and writes |
//! | --- | --- |
//! | [`npy`] | NumPy's files of one array |
//! | [`checkpoint`] | named arrays in safetensors files |
//! | [`image`] | PNG and PNM pictures |
//! | [`chart`] | arrays as boxes of text; curves and heat maps on a terminal, as pictures and as SVG |
//!
//! ```
//! use loopwright_array::Array;
//! use loopwright_formats::{chart::Boxed, npy};
//! use loopwright_ops::DType;
//!
//! let array = Array::from_f64(DType::F32, &[3], &[1.0, 2.5, -3.0])?;
//! let mut file = Vec::new();
//! npy::write(&mut file, array.dtype(), array.shape(), array.bytes())?;
//! assert_eq!(&file[..6], b"\x93NUMPY");
//! println!("{}", Boxed::new(&array));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

pub mod chart;
pub mod checkpoint;
pub mod image;
pub mod npy;
