//! How a file describes its elements.

use crate::npy::error::NpyError;
use loopwright_ops::DType;
use std::fmt;

/// How elements are stored: what numpy calls `descr`, for example `<f4`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Stored {
    /// What they are.
    pub kind: StoredKind,
    /// Bytes of one.
    pub bytes: usize,
    /// Whether the most significant byte comes first.
    pub big_endian: bool,
}

/// What an element is, as far as the file says.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum StoredKind {
    /// `b`: a boolean.
    Bool,
    /// `i`: a signed integer.
    Signed,
    /// `u`: an unsigned integer.
    Unsigned,
    /// `f`: a float.
    Float,
    /// `V`: bytes that the file does not name the meaning of.
    Raw,
}

impl Stored {
    /// How a dtype is written.
    pub const fn of(dtype: DType) -> Stored {
        let kind = match dtype {
            DType::Bool => StoredKind::Bool,
            DType::I8 | DType::I16 | DType::I32 | DType::I64 => StoredKind::Signed,
            DType::U8 | DType::U16 | DType::U32 | DType::U64 => StoredKind::Unsigned,
            DType::F16 | DType::F32 | DType::F64 => StoredKind::Float,
            DType::BF16 | DType::F8E4M3 | DType::F8E5M2 => StoredKind::Raw,
        };
        Stored {
            kind,
            bytes: dtype.bytes(),
            big_endian: false,
        }
    }

    /// Reads a description such as `<f4`.
    pub(crate) fn parse(text: &str) -> Result<Stored, NpyError> {
        let unsupported = || NpyError::Unsupported(text.to_owned());
        let mut letters = text.chars();
        let (order, kind) = match (letters.next(), letters.next()) {
            (Some(order @ ('<' | '>' | '|' | '=')), Some(kind)) => (order, kind),
            _ => return Err(unsupported()),
        };
        let bytes: usize = letters.as_str().parse().map_err(|_| unsupported())?;
        let kind = match (kind, bytes) {
            ('b', 1) => StoredKind::Bool,
            ('i', 1 | 2 | 4 | 8) => StoredKind::Signed,
            ('u', 1 | 2 | 4 | 8) => StoredKind::Unsigned,
            // A float of one byte is how older versions of ml_dtypes describe theirs.
            ('f', 1 | 2 | 4 | 8) => StoredKind::Float,
            ('V', 1 | 2) => StoredKind::Raw,
            _ => return Err(unsupported()),
        };
        let big_endian = match order {
            '>' => true,
            '=' => cfg!(target_endian = "big"),
            _ => false,
        };
        Ok(Stored {
            kind,
            bytes,
            big_endian: big_endian && bytes > 1,
        })
    }

    /// The dtype, where the description names one.
    pub fn dtype(self) -> Option<DType> {
        DType::ALL.into_iter().find(|dtype| {
            let own = Stored::of(*dtype);
            own.kind == self.kind && own.bytes == self.bytes && self.kind != StoredKind::Raw
        })
    }

    /// Whether elements stored like this can be taken as `dtype`.
    pub fn holds(self, dtype: DType) -> bool {
        let own = Stored::of(dtype);
        self.bytes == own.bytes
            && match own.kind {
                StoredKind::Raw => match self.kind {
                    StoredKind::Raw | StoredKind::Unsigned => true,
                    StoredKind::Float => self.bytes == 1,
                    StoredKind::Bool | StoredKind::Signed => false,
                },
                kind => kind == self.kind,
            }
    }
}

impl fmt::Display for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let order = match (self.kind, self.bytes, self.big_endian) {
            (_, _, true) => '>',
            // ml_dtypes describes its one-byte elements with a byte order.
            (StoredKind::Raw, ..) => '<',
            (_, 1, _) => '|',
            _ => '<',
        };
        let kind = match self.kind {
            StoredKind::Bool => 'b',
            StoredKind::Signed => 'i',
            StoredKind::Unsigned => 'u',
            StoredKind::Float => 'f',
            StoredKind::Raw => 'V',
        };
        write!(f, "{order}{kind}{}", self.bytes)
    }
}
