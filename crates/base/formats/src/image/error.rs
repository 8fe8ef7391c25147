//! What can be wrong with a picture.

use crate::image::LARGEST;
use loopwright_ops::DType;
use std::io;

/// Why a picture cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The system refused.
    #[error("cannot {action} {file}: {reason}")]
    File {
        /// `read` or `write`.
        action: &'static str,
        /// The file.
        file: String,
        /// What the system says.
        reason: io::Error,
    },
    /// Another kind of file.
    #[error("{file} is not a picture in a format that is read here; PNG, PPM and PGM are")]
    Kind {
        /// The file.
        file: String,
    },
    /// A file that is not what its format asks for.
    #[error("{file} is not a whole {format} file: {reason}")]
    Broken {
        /// The file.
        file: String,
        /// `PNG` or `PPM`.
        format: &'static str,
        /// What is wrong and where.
        reason: String,
    },
    /// A picture beyond what is read.
    #[error(
        "{file} holds a picture of {width} × {height}, and pictures of up to {LARGEST} bytes are read"
    )]
    TooLarge {
        /// The file.
        file: String,
        /// Its height.
        height: usize,
        /// Its width.
        width: usize,
    },
    /// A name that says no format.
    #[error("the name {file} says no format to write; end it with .png, .ppm or .pgm")]
    Extension {
        /// The file.
        file: String,
    },
    /// An array that is no picture.
    #[error("an array {dtype}{shape:?} is not a picture that can be written: {reason}")]
    NoPicture {
        /// The dtype.
        dtype: DType,
        /// The shape.
        shape: Vec<usize>,
        /// What a picture is.
        reason: &'static str,
    },
}

impl ImageError {
    pub(crate) fn file(action: &'static str, file: &str, reason: io::Error) -> ImageError {
        ImageError::File {
            action,
            file: file.to_owned(),
            reason,
        }
    }
}

/// What is wrong, before it is known with which file.
pub(crate) enum Fault {
    Broken {
        format: &'static str,
        reason: String,
    },
    TooLarge {
        height: usize,
        width: usize,
    },
}

impl Fault {
    pub(crate) fn at(self, file: &str) -> ImageError {
        let file = file.to_owned();
        match self {
            Fault::Broken { format, reason } => ImageError::Broken {
                file,
                format,
                reason,
            },
            Fault::TooLarge { height, width } => ImageError::TooLarge {
                file,
                height,
                width,
            },
        }
    }
}
