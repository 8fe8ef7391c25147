//! The part of a file before its elements.

use crate::npy::error::NpyError;
use crate::npy::literal::{Literal, parse_dictionary};
use crate::npy::stored::Stored;
use loopwright_ops::DType;
use std::io::{ErrorKind, Read};

pub(crate) const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// Longer headers than this are refused; numpy itself stops at 10 000 bytes.
const LONGEST_HEADER: u32 = 1 << 20;

/// Arrays have at most as many dimensions as numpy's can have.
const MOST_DIMENSIONS: usize = 64;

/// What a file says about its array.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Header {
    /// How the elements are stored.
    pub stored: Stored,
    /// Whether the first index runs fastest, not the last.
    pub fortran_order: bool,
    /// The sizes.
    pub shape: Vec<usize>,
}

impl Header {
    /// Reads everything up to the first element.
    pub fn read(reader: &mut impl Read) -> Result<Header, NpyError> {
        let mut start = [0; 8];
        read_exact(reader, &mut start, || NpyError::NotNpy)?;
        if !start.starts_with(MAGIC) {
            return Err(NpyError::NotNpy);
        }
        let [.., major, minor] = start;
        let cut = || NpyError::Header("the file ends inside it".to_owned());
        let length = match (major, minor) {
            (1, 0) => {
                let mut length = [0; 2];
                read_exact(reader, &mut length, cut)?;
                u16::from_le_bytes(length).into()
            }
            (2 | 3, 0) => {
                let mut length = [0; 4];
                read_exact(reader, &mut length, cut)?;
                u32::from_le_bytes(length)
            }
            _ => return Err(NpyError::Version { major, minor }),
        };
        if length > LONGEST_HEADER {
            return Err(NpyError::Header(format!("it is {length} bytes long")));
        }
        let mut bytes = Vec::new();
        reader.take(length.into()).read_to_end(&mut bytes)?;
        if bytes.len() < length as usize {
            return Err(cut());
        }
        // Before version 3 the encoding is latin-1; only ASCII means anything in what is looked at.
        let text = if major < 3 {
            bytes.iter().map(|byte| char::from(*byte)).collect()
        } else {
            String::from_utf8(bytes).map_err(|_| NpyError::Header("it is not UTF-8".to_owned()))?
        };
        Header::from_entries(parse_dictionary(&text)?)
    }

    fn from_entries(entries: Vec<(String, Literal)>) -> Result<Header, NpyError> {
        let (mut descr, mut order, mut shape) = (None, None, None);
        for (key, value) in entries {
            match (key.as_str(), value) {
                (_, Literal::List) => {
                    return Err(NpyError::Unsupported("[...] (structured)".to_owned()));
                }
                ("descr", Literal::Text(text)) => descr = Some(text),
                ("fortran_order", Literal::Bool(value)) => order = Some(value),
                ("shape", Literal::Tuple(sizes)) => shape = Some(sizes),
                (key, _) => {
                    let key = key.escape_debug();
                    let complaint =
                        format!("the entry `{key}` is unknown or not what it should be");
                    return Err(NpyError::Header(complaint));
                }
            }
        }
        let missing = |key: &str| NpyError::Header(format!("the entry `{key}` is missing"));
        let header = Header {
            stored: Stored::parse(&descr.ok_or_else(|| missing("descr"))?)?,
            fortran_order: order.ok_or_else(|| missing("fortran_order"))?,
            shape: shape.ok_or_else(|| missing("shape"))?,
        };
        if header.shape.len() > MOST_DIMENSIONS {
            let dimensions = header.shape.len();
            let complaint = format!("{dimensions} dimensions are more than {MOST_DIMENSIONS}");
            return Err(NpyError::Header(complaint));
        }
        match checked_bytes(&header.shape, header.stored.bytes) {
            Some(_) => Ok(header),
            None => Err(NpyError::TooLarge(header.shape)),
        }
    }

    /// The dtype, where the file names one; `bf16` and the 8-bit floats it does not.
    pub fn dtype(&self) -> Option<DType> {
        self.stored.dtype()
    }

    /// Whether the elements can be taken as `dtype`.
    pub fn holds(&self, dtype: DType) -> bool {
        self.stored.holds(dtype)
    }

    /// Bytes of all elements; 0 for shapes that do not fit the address space, which
    /// [`Header::read`] refuses.
    pub fn bytes(&self) -> usize {
        checked_bytes(&self.shape, self.stored.bytes).unwrap_or(0)
    }
}

/// Bytes of an array. Sizes beside a 0 count too, so that strides always fit.
pub(crate) fn checked_bytes(shape: &[usize], width: usize) -> Option<usize> {
    let mut strided = width;
    for size in shape {
        strided = strided.checked_mul((*size).max(1))?;
    }
    let empty = shape.contains(&0);
    (strided <= isize::MAX as usize).then_some(if empty { 0 } else { strided })
}

fn read_exact(
    reader: &mut impl Read,
    bytes: &mut [u8],
    cut: impl Fn() -> NpyError,
) -> Result<(), NpyError> {
    reader
        .read_exact(bytes)
        .map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => cut(),
            _ => error.into(),
        })
}
