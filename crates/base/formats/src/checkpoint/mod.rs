//! Named arrays in safetensors files: what a model is saved to and loaded from.
//!
//! A file is the length of its header in eight bytes, the header in JSON (for each array its dtype, its shape and where
//! its bytes lie; under `__metadata__` a map of strings), and the bytes. Other programs, Python's `safetensors` package
//! among them, read what is written here, and the other way round. Every dtype has a name in the format.
//!
//! ```
//! use loopwright_formats::checkpoint::{ArrayInfo, Reader, compare, read, write};
//! use loopwright_array::Array;
//! use loopwright_ops::DType;
//! use std::collections::BTreeMap;
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("model.safetensors");
//! let weight = Array::from_f64(DType::F32, &[2, 2], &[1.0, 2.0, 3.0, 4.0])?;
//! let bias = Array::zeros(DType::BF16, &[2])?;
//! let metadata = BTreeMap::from([("step".to_owned(), "300".to_owned())]);
//! write(&path, [("dense.weight", &weight), ("dense.bias", &bias)], &metadata)?;
//!
//! // All of it …
//! let checkpoint = read(&path)?;
//! assert_eq!(checkpoint.arrays["dense.weight"], weight);
//! assert_eq!(checkpoint.metadata["step"], "300");
//!
//! // … or what is there first, and then only what is needed.
//! let mut reader = Reader::open(&path)?;
//! let wanted = BTreeMap::from([("dense.biases".to_owned(), ArrayInfo::new(DType::BF16, &[2]))]);
//! let mismatch = compare(&wanted, reader.infos()).unwrap_err().to_string();
//! assert!(mismatch.contains("missing `dense.biases` bf16[2]; did you mean `dense.bias`?"), "{mismatch}");
//! assert_eq!(reader.array("dense.bias")?, bias);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **Writing** is atomic: the file is written beside its place and put there once it is on the disk, so that a run that
//! is killed while it saves leaves the checkpoint before. The arrays lie in the order of the reference implementation,
//! widest elements first, so that each starts at a multiple of its element's size.
//!
//! **Reading** trusts nothing. A header may say anything: what it says is checked as a whole, every byte of the file has
//! to belong to exactly one array, and nothing is allocated that the file does not hold. Errors name the file and the
//! array.

mod compare;
mod error;
mod header;
mod read;
mod write;

pub use compare::{Difference, Mismatch, Missing, compare};
pub use error::{CheckpointError, Fault};
pub use header::ArrayInfo;
pub use read::{Checkpoint, Reader, read};
pub use write::write;
