//! PNG.

use crate::image::error::{Fault, ImageError};
use crate::image::{LARGEST, Picture, allocate, swap};
use loopwright_array::Array;
use loopwright_ops::DType;
use png::{BitDepth, ColorType, Limits, Transformations};
use std::io::Cursor;

/// How many bytes a byte of compressed data can become at most: the limit of the format (deflate) is 1032.
const MOST_COMPRESSED: usize = 1032;

pub(crate) fn decode(bytes: &[u8]) -> Result<Array, Fault> {
    let broken = |error: png::DecodingError| Fault::Broken {
        format: "PNG",
        reason: error.to_string(),
    };
    let limits = Limits { bytes: LARGEST };
    let mut decoder = png::Decoder::new_with_limits(Cursor::new(bytes), limits);
    decoder.set_transformations(Transformations::EXPAND);
    let mut reader = decoder.read_info().map_err(broken)?;
    let (colour, depth) = reader.output_color_type();
    let dtype = match depth {
        BitDepth::Sixteen => DType::U16,
        BitDepth::One | BitDepth::Two | BitDepth::Four | BitDepth::Eight => DType::U8,
    };
    let info = reader.info();
    let (height, width) = (info.height as usize, info.width as usize);
    // As it lies in the file, before samples of few bits become bytes.
    let packed = info
        .raw_row_length_from_width(info.width)
        .checked_mul(height);
    if packed.is_none_or(|packed| packed / MOST_COMPRESSED > bytes.len()) {
        return Err(Fault::Broken {
            format: "PNG",
            reason: format!(
                "{width} × {height} pixels are announced, and {} bytes cannot hold them",
                bytes.len()
            ),
        });
    }
    let mut array = allocate(dtype, height, width, colour.samples())?;
    reader.next_frame(array.bytes_mut()).map_err(broken)?;
    reader.finish().map_err(broken)?;
    swap(dtype, array.bytes_mut());
    Ok(array)
}

pub(crate) fn encode(picture: Picture<'_>) -> Result<Vec<u8>, ImageError> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, picture.width, picture.height);
    encoder.set_color(match picture.channels {
        1 => ColorType::Grayscale,
        2 => ColorType::GrayscaleAlpha,
        3 => ColorType::Rgb,
        _ => ColorType::Rgba,
    });
    encoder.set_depth(match picture.array.dtype() {
        DType::U16 => BitDepth::Sixteen,
        _ => BitDepth::Eight,
    });
    // The encoder writes to memory, and is given as many bytes as the header says: only a picture beyond the format's
    // limits is left to be refused.
    let failed = |_| ImageError::NoPicture {
        dtype: picture.array.dtype(),
        shape: picture.array.shape().to_vec(),
        reason: "it is larger than PNG allows",
    };
    let mut writer = encoder.write_header().map_err(failed)?;
    writer.write_image_data(&picture.bytes()).map_err(failed)?;
    writer.finish().map_err(failed)?;
    Ok(bytes)
}
