//! Arrays as `.npy` files, the format of numpy's `save` and `load`.
//!
//! A file is a [`Header`] (element type, shape, order) and the elements. The two are read apart, so that
//! a caller can look at the header, decide whether the array is the one it wants, and only then have
//! the elements put where they are needed: in row-major order, least significant byte first, as
//! everything else here holds them.
//!
//! ```
//! use loopwright_formats::npy::{Header, write};
//! use loopwright_ops::DType;
//!
//! let values: Vec<u8> = [1.0f32, 2.0, 3.0].iter().flat_map(|x| x.to_le_bytes()).collect();
//! let mut file = Vec::new();
//! write(&mut file, DType::F32, &[3], &values)?;
//!
//! let mut reader = file.as_slice();
//! let header = Header::read(&mut reader)?;
//! assert!(header.holds(DType::F32));
//! assert_eq!(header.shape, [3]);
//! assert_eq!(header.read_elements(&mut reader, DType::F32)?, values);
//! # Ok::<(), loopwright_formats::npy::NpyError>(())
//! ```
//!
//! **Element types.** Everything numpy has a name for is stored under that name, `f16` included.
//! `bf16` and the two 8-bit floats have none. They are written as raw elements, `<V2` and `<V1`, which
//! is what numpy writes for the arrays of the `ml_dtypes` package; after loading,
//! `array.view(ml_dtypes.bfloat16)` names the type again. Where one of them is asked for, raw elements
//! of the right width are accepted under any of the descriptions in use: `V2` or `u2` for `bf16`, `V1`,
//! `u1` or `f1` for the 8-bit floats.
//!
//! **What is read.** Versions 1, 2 and 3 of the format, row- and column-major, either byte order. A
//! header may say anything; what is allocated never exceeds what the file really holds, up to a
//! constant.

mod elements;
mod error;
mod header;
mod literal;
mod stored;

pub use elements::write;
pub use error::NpyError;
pub use header::Header;
pub use stored::{Stored, StoredKind};
