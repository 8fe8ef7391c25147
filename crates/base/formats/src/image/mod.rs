//! Pictures as arrays: reading and writing PNG and PPM files.
//!
//! A picture is an array `[height, width, channel]` with 1 channel (grey), 2 (grey and opacity), 3 (red, green, blue) or 4
//! (with opacity), of `u8`, or of `u16` where a file has more than 8 bits a channel. Palettes are resolved, and fewer bits are
//! stretched to 8.
//!
//! ```
//! use loopwright_array::Array;
//! use loopwright_formats::image::{read, write};
//! use loopwright_ops::DType;
//!
//! let folder = tempfile::tempdir()?;
//! let red_and_blue = Array::from_bytes(DType::U8, &[1, 2, 3], &[255, 0, 0, 0, 0, 255])?;
//! for name in ["two.png", "two.ppm"] {
//!     let path = folder.path().join(name);
//!     write(&path, &red_and_blue)?;
//!     assert_eq!(read(&path)?, red_and_blue);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Files are known by what they begin with, not by their names. What a header announces is not allocated unless the
//! file can hold it; for PNG, as far as data can be compressed, and below [`LARGEST`].

mod error;
mod png_file;
mod pnm;

pub use error::ImageError;

use error::Fault;
use loopwright_array::Array;
use loopwright_ops::DType;
use std::path::Path;

/// Bytes of the largest picture that is read. A PNG file of a few kilobytes can announce any size.
pub const LARGEST: usize = 1 << 30;

/// Reads a picture.
///
/// # Errors
/// Any [`ImageError`] of reading.
pub fn read(path: &Path) -> Result<Array, ImageError> {
    let name = path.display().to_string();
    let bytes = std::fs::read(path).map_err(|error| ImageError::file("read", &name, error))?;
    decode(&bytes, &name)
}

/// The picture in the bytes of a file; `name` is what errors call it.
///
/// # Errors
/// [`ImageError::Kind`], [`ImageError::Broken`] and [`ImageError::TooLarge`].
pub fn decode(bytes: &[u8], name: &str) -> Result<Array, ImageError> {
    let decoded = match bytes {
        [0x89, b'P', b'N', b'G', ..] => png_file::decode(bytes),
        [b'P', b'1'..=b'6', ..] => pnm::decode(bytes),
        _ => {
            return Err(ImageError::Kind {
                file: name.to_owned(),
            });
        }
    };
    decoded.map_err(|fault| fault.at(name))
}

/// Writes a picture, in the format that the path's extension names: `.png`, `.ppm` (three channels) or `.pgm` (one). The
/// file is there as a whole or not at all.
///
/// # Errors
/// [`ImageError::Extension`], [`ImageError::NoPicture`] and [`ImageError::File`].
pub fn write(path: &Path, picture: &Array) -> Result<(), ImageError> {
    let name = path.display().to_string();
    let extension = path.extension().and_then(|extension| extension.to_str());
    let extension = extension.unwrap_or("").to_lowercase();
    let bytes = match extension.as_str() {
        "png" => encode_png(picture)?,
        "ppm" | "pgm" => {
            let channels = if extension == "ppm" { 3 } else { 1 };
            pnm::encode(Picture::of(picture)?, channels)?
        }
        _ => return Err(ImageError::Extension { file: name }),
    };
    loopwright_files::write(path, &bytes).map_err(|error| ImageError::file("write", &name, error))
}

/// The bytes of a PNG file.
///
/// # Errors
/// [`ImageError::NoPicture`].
pub fn encode_png(picture: &Array) -> Result<Vec<u8>, ImageError> {
    png_file::encode(Picture::of(picture)?)
}

/// An array that was found to be a picture.
#[derive(Clone, Copy)]
struct Picture<'a> {
    array: &'a Array,
    width: u32,
    height: u32,
    channels: usize,
}

impl<'a> Picture<'a> {
    fn of(array: &'a Array) -> Result<Picture<'a>, ImageError> {
        let refused = |reason| ImageError::NoPicture {
            dtype: array.dtype(),
            shape: array.shape().to_vec(),
            reason,
        };
        if !matches!(array.dtype(), DType::U8 | DType::U16) {
            return Err(refused("its elements are u8 or u16"));
        }
        let &[height, width, channels @ 1..=4] = array.shape() else {
            return Err(refused(
                "it is [height, width, channel] with 1 to 4 channels",
            ));
        };
        let side = |size: usize| {
            let fits = u32::try_from(size)
                .ok()
                .filter(|size| (1..=i32::MAX as u32).contains(size));
            fits.ok_or_else(|| refused("its sides are from 1 to 2147483647"))
        };
        Ok(Picture {
            array,
            width: side(width)?,
            height: side(height)?,
            channels,
        })
    }

    /// The bytes as both formats have them: most significant first.
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.array.bytes().to_vec();
        swap(self.array.dtype(), &mut bytes);
        bytes
    }
}

/// Turns the bytes of each element around.
fn swap(dtype: DType, bytes: &mut [u8]) {
    if dtype == DType::U16 {
        bytes.chunks_exact_mut(2).for_each(|pair| pair.reverse());
    }
}

/// An array for a picture that a file announces.
fn allocate(dtype: DType, height: usize, width: usize, channels: usize) -> Result<Array, Fault> {
    let bytes = [height, width, channels, dtype.bytes()]
        .into_iter()
        .try_fold(1usize, usize::checked_mul);
    let too_large = Fault::TooLarge { height, width };
    if bytes.is_none_or(|bytes| bytes > LARGEST) {
        return Err(too_large);
    }
    Array::zeros(dtype, &[height, width, channels]).map_err(|_| too_large)
}
