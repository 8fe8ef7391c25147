//! `.npy` files.

use crate::data::error::DataError;
use loopwright_array::Array;
use loopwright_files::NewFile;
use loopwright_formats::npy::{Header, NpyError};
use loopwright_ops::DType;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// Reads an array from an `.npy` file.
///
/// # Errors
/// [`DataError::File`], and [`DataError::Npy`] where the file is not whole or names no dtype. Numpy has no names for `bf16`
/// and the 8-bit floats: those are read with [`read_npy_as`].
pub fn read_npy(path: &Path) -> Result<Array, DataError> {
    read(path, None)
}

/// Reads an array whose elements are known to be of `dtype` from an `.npy` file.
///
/// # Errors
/// [`DataError::File`], and [`DataError::Npy`] where the file is not whole or holds other elements.
pub fn read_npy_as(path: &Path, dtype: DType) -> Result<Array, DataError> {
    read(path, Some(dtype))
}

fn read(path: &Path, dtype: Option<DType>) -> Result<Array, DataError> {
    let name = path.display().to_string();
    let broken = |reason: NpyError| match reason {
        NpyError::Io(reason) => DataError::file("read", &name, reason),
        reason => DataError::Npy {
            file: name.clone(),
            reason,
        },
    };
    let file = File::open(path).map_err(|error| DataError::file("open", &name, error))?;
    let mut reader = BufReader::new(file);
    let header = Header::read(&mut reader).map_err(broken)?;
    let dtype = match dtype.or_else(|| header.dtype()) {
        Some(dtype) => dtype,
        None => return Err(broken(NpyError::Unsupported(header.stored.to_string()))),
    };
    // Grows with what is there, not with what the header announces.
    let elements = header.read_elements(&mut reader, dtype).map_err(broken)?;
    Ok(Array::from_bytes(dtype, &header.shape, &elements)?)
}

/// Writes an array to an `.npy` file, which is there as a whole or not at all.
///
/// # Errors
/// [`DataError::File`], and [`DataError::Npy`] for more dimensions than the format has room for.
pub fn write_npy(path: &Path, array: &Array) -> Result<(), DataError> {
    let name = path.display().to_string();
    let failed = |error| DataError::file("write", &name, error);
    let mut file = NewFile::at(path).map_err(failed)?;
    loopwright_formats::npy::write(&mut file, array.dtype(), array.shape(), array.bytes())
        .map_err(|reason| match reason {
            NpyError::Io(reason) => failed(reason),
            reason => DataError::Npy {
                file: name.clone(),
                reason,
            },
        })?;
    file.place().map_err(failed)
}
