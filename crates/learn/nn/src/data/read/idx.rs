//! IDX files, the format of MNIST and its kin.

use crate::data::error::DataError;
use flate2::read::MultiGzDecoder;
use loopwright_array::Array;
use loopwright_ops::DType;
use std::io::Read;
use std::path::Path;

/// Reads an array from an IDX file, plain or compressed by gzip.
///
/// # Errors
/// [`DataError::File`], and [`DataError::Broken`] where the file is not whole.
pub fn read_idx(path: &Path) -> Result<Array, DataError> {
    let name = path.display().to_string();
    let bytes = std::fs::read(path).map_err(|error| DataError::file("read", &name, error))?;
    decode(&bytes, &name)
}

/// The array in the bytes of a file.
pub(crate) fn decode(bytes: &[u8], name: &str) -> Result<Array, DataError> {
    match bytes {
        [0x1f, 0x8b, ..] => {
            let most = bytes.len().saturating_mul(MOST_COMPRESSED);
            decode_plain(&mut MultiGzDecoder::new(bytes), most, name)
        }
        _ => decode_plain(&mut &*bytes, bytes.len(), name),
    }
}

/// How many bytes a byte of compressed data can become at most: the limit of the format (deflate) is 1032.
const MOST_COMPRESSED: usize = 1032;

/// The array in what a reader gives, which is `most` bytes at most.
fn decode_plain(reader: &mut dyn Read, most: usize, name: &str) -> Result<Array, DataError> {
    let broken = |reason: String| DataError::broken(name, reason);
    let unpacked = |error: std::io::Error| broken(format!("it cannot be unpacked: {error}"));
    let exactly = |reader: &mut dyn Read, count: usize, what: &str| {
        let mut bytes = Vec::new();
        // Grows with what is there, not with what is announced.
        reader
            .take(count as u64)
            .read_to_end(&mut bytes)
            .map_err(unpacked)?;
        match bytes.len() {
            got if got < count => Err(broken(format!(
                "it ends too early: {what} takes {count} bytes, and {got} are there"
            ))),
            _ => Ok(bytes),
        }
    };
    let start = exactly(reader, 4, "the start of an IDX file")?;
    let [0, 0, stored, rank] = start[..] else {
        return Err(broken(
            "it is not an IDX file, which starts with two zeros".to_owned(),
        ));
    };
    let dtype = match stored {
        0x08 => DType::U8,
        0x09 => DType::I8,
        0x0b => DType::I16,
        0x0c => DType::I32,
        0x0d => DType::F32,
        0x0e => DType::F64,
        other => {
            return Err(broken(format!(
                "elements of type {other:#04x} are not known; 0x08 (u8), 0x09 (i8), 0x0b (i16), 0x0c (i32), 0x0d (f32) and \
                 0x0e (f64) are"
            )));
        }
    };
    let sizes = exactly(reader, usize::from(rank) * 4, "the shape")?;
    let shape: Vec<usize> = sizes
        .chunks_exact(4)
        .map(|size| {
            size.iter()
                .fold(0, |size, byte| size << 8 | usize::from(*byte))
        })
        .collect();
    let count = shape
        .iter()
        .try_fold(dtype.bytes(), |bytes, size| bytes.checked_mul(*size));
    let count = count.ok_or_else(|| {
        broken(format!(
            "an array of shape {shape:?} does not fit into memory"
        ))
    })?;
    if count > most {
        return Err(broken(format!(
            "it ends too early: an array {dtype}{shape:?} takes {count} bytes, and the file holds {most} at most"
        )));
    }
    let mut elements = exactly(reader, count, &format!("an array {dtype}{shape:?}"))?;
    // The end of a compressed file holds its checksum: reading up to it checks that too.
    if reader.read(&mut [0]).map_err(unpacked)? > 0 {
        return Err(broken(format!(
            "more follows after the array {dtype}{shape:?}"
        )));
    }
    elements
        .chunks_exact_mut(dtype.bytes())
        .for_each(<[u8]>::reverse);
    Ok(Array::from_bytes(dtype, &shape, &elements)?)
}
