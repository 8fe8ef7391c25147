//! PPM and PGM, as text (`P2`, `P3`) and in bytes (`P5`, `P6`); their cousin of single bits, PBM, is refused by name.

use crate::image::error::{Fault, ImageError};
use crate::image::{Picture, allocate};
use loopwright_array::Array;
use loopwright_ops::{DType, Scalar};

fn broken(reason: String) -> Fault {
    Fault::Broken {
        format: "PPM",
        reason,
    }
}

pub(crate) fn decode(bytes: &[u8]) -> Result<Array, Fault> {
    let mut words = Words { bytes, at: 2 };
    let (channels, text) = match bytes[1] {
        b'2' => (1, true),
        b'3' => (3, true),
        b'5' => (1, false),
        b'6' => (3, false),
        _ => return Err(broken("it is a PBM file, of single bits".to_owned())),
    };
    let width = words.number("the width", 1, i32::MAX as usize)?;
    let height = words.number("the height", 1, i32::MAX as usize)?;
    let most = words.number("the largest value", 1, 65535)?;
    let dtype = if most > 255 { DType::U16 } else { DType::U8 };
    let sample = dtype.bytes();
    let count = [height, width, channels]
        .into_iter()
        .try_fold(1usize, usize::checked_mul);
    let count = count.ok_or(Fault::TooLarge { height, width })?;
    // A value of a text takes at least a digit, and a blank before it.
    let least = if text { 2 } else { sample };
    let left = bytes.len() - words.at;
    if count.checked_mul(least).is_none_or(|needed| needed > left) {
        return Err(broken(format!(
            "{width} × {height} pixels are announced, and the {left} bytes that follow cannot hold them"
        )));
    }
    let mut array = allocate(dtype, height, width, channels)?;
    if !text {
        // One blank ends the header.
        words.at += 1;
    }
    let stretch = if most > 255 { 65535 } else { 255 };
    for place in 0..count {
        let value = if text {
            words.number("a value", 0, most)?
        } else {
            let from = words.at + place * sample;
            let value = bytes
                .get(from..from + sample)
                .ok_or_else(|| broken(format!("it ends after {place} of {count} values")))?;
            let value = value
                .iter()
                .fold(0, |value, byte| value << 8 | usize::from(*byte));
            if value > most {
                return Err(broken(format!(
                    "the value at byte {from} is {value}, and the largest is said to be {most}"
                )));
            }
            value
        };
        let stretched = (value * stretch + most / 2) / most;
        array.set_flat(place, Scalar::from_bits(dtype, stretched as u64));
    }
    Ok(array)
}

/// Numbers between blanks and comments.
struct Words<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Words<'_> {
    fn number(&mut self, what: &str, least: usize, most: usize) -> Result<usize, Fault> {
        loop {
            match self.bytes.get(self.at) {
                Some(b'#') => {
                    let comment = self.bytes[self.at..].iter().position(|byte| *byte == b'\n');
                    self.at = comment.map_or(self.bytes.len(), |length| self.at + length);
                }
                Some(byte) if byte.is_ascii_whitespace() => self.at += 1,
                _ => break,
            }
        }
        let rest = &self.bytes[self.at..];
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number = std::str::from_utf8(&rest[..digits])
            .ok()
            .and_then(|digits| digits.parse().ok())
            .filter(|number| (least..=most).contains(number));
        let Some(number) = number else {
            let before = &self.bytes[..self.at];
            let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
            let start = before
                .iter()
                .rposition(|byte| *byte == b'\n')
                .map_or(0, |at| at + 1);
            let column = self.at - start + 1;
            let place = if rest.is_empty() {
                "the end of the file".to_owned()
            } else {
                format!("line {line}, column {column}")
            };
            return Err(broken(format!(
                "{what} is expected at {place}, a number from {least} to {most}"
            )));
        };
        self.at += digits;
        Ok(number)
    }
}

pub(crate) fn encode(picture: Picture<'_>, channels: usize) -> Result<Vec<u8>, ImageError> {
    if picture.channels != channels {
        let reason = match channels {
            3 => "PPM files have three channels",
            _ => "PGM files have one channel",
        };
        return Err(ImageError::NoPicture {
            dtype: picture.array.dtype(),
            shape: picture.array.shape().to_vec(),
            reason,
        });
    }
    let (letter, most) = (
        if channels == 3 { "P6" } else { "P5" },
        if picture.array.dtype() == DType::U16 {
            65535
        } else {
            255
        },
    );
    let header = format!("{letter}\n{} {}\n{most}\n", picture.width, picture.height);
    let mut bytes = header.into_bytes();
    bytes.extend(picture.bytes());
    Ok(bytes)
}
