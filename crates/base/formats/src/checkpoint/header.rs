//! The part of a file before its bytes.

use crate::checkpoint::error::Fault;
use loopwright_ops::DType;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

/// The entry of the header that is no array.
pub(crate) const METADATA: &str = "__metadata__";

/// The reference implementation reads no longer headers.
pub(crate) const LONGEST: u64 = 100_000_000;

/// The dtypes in the order in which their arrays lie in a file, with their names there. It is that of the reference
/// implementation, so that the same arrays make the same file: from wide to narrow, so that all are aligned.
const STORED: [(DType, &str); 15] = [
    (DType::U64, "U64"),
    (DType::I64, "I64"),
    (DType::F64, "F64"),
    (DType::F32, "F32"),
    (DType::U32, "U32"),
    (DType::I32, "I32"),
    (DType::BF16, "BF16"),
    (DType::F16, "F16"),
    (DType::U16, "U16"),
    (DType::I16, "I16"),
    (DType::F8E4M3, "F8_E4M3"),
    (DType::F8E5M2, "F8_E5M2"),
    (DType::I8, "I8"),
    (DType::U8, "U8"),
    (DType::Bool, "BOOL"),
];

/// Where arrays of a dtype lie among the others, and what the format calls it.
pub(crate) fn stored(dtype: DType) -> (usize, &'static str) {
    let found = STORED.iter().enumerate().find(|(_, row)| row.0 == dtype);
    let (at, row) = found.expect("the format has every dtype");
    (at, row.1)
}

fn dtype_of(stored: &str) -> Option<DType> {
    let found = STORED.iter().find(|row| row.1 == stored);
    found.map(|row| row.0)
}

/// All names of dtypes, for messages.
pub(crate) fn stored_names() -> String {
    STORED.map(|row| row.1).join(", ")
}

/// What an array is.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ArrayInfo {
    /// The dtype of its elements.
    pub dtype: DType,
    /// Its size along each dimension.
    pub shape: Vec<usize>,
}

impl ArrayInfo {
    /// An array of this dtype and shape.
    pub fn new(dtype: DType, shape: &[usize]) -> ArrayInfo {
        let shape = shape.to_vec();
        ArrayInfo { dtype, shape }
    }
}

/// `f32[2, 3]`, or `f32` for a scalar, as programs declare them.
impl fmt::Display for ArrayInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.dtype)?;
        match self.shape.as_slice() {
            [] => Ok(()),
            shape => write!(f, "{shape:?}"),
        }
    }
}

/// An array and where its bytes begin, counted from the end of the header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    pub(crate) info: ArrayInfo,
    pub(crate) begin: u64,
    pub(crate) bytes: u64,
}

/// A header that was checked against the bytes that follow it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Header {
    pub(crate) entries: BTreeMap<String, Entry>,
    pub(crate) metadata: BTreeMap<String, String>,
}

impl Header {
    /// Reads a header that is followed by `data` bytes.
    pub(crate) fn parse(json: &[u8], data: u64) -> Result<Header, Fault> {
        let broken = |reason: String| Fault::Header { reason };
        let text = std::str::from_utf8(json)
            .map_err(|error| broken(format!("byte {} is not UTF-8", error.valid_up_to())))?;
        let members: Members<serde_json::Value> =
            serde_json::from_str(text).map_err(|error| broken(error.to_string()))?;
        let mut header = Header::default();
        let mut names = std::collections::BTreeSet::new();
        for (name, value) in members.0 {
            if !names.insert(name.clone()) {
                return Err(Fault::Twice { name });
            }
            if name == METADATA {
                let strings = Members::<String>::deserialize(value)
                    .map_err(|error| broken(format!("`{METADATA}`: {error}")))?;
                for (key, value) in strings.0 {
                    if let Some(_before) = header.metadata.insert(key.clone(), value) {
                        let key = key.escape_debug();
                        return Err(broken(format!("`{METADATA}` has two entries `{key}`")));
                    }
                }
                continue;
            }
            let entry = read_entry(&name, value)?;
            header.entries.insert(name, entry);
        }
        header.check_bytes(data)?;
        Ok(header)
    }

    /// Every byte belongs to exactly one array.
    fn check_bytes(&self, data: u64) -> Result<(), Fault> {
        let mut entries: Vec<(&String, &Entry)> = self.entries.iter().collect();
        // Arrays without bytes come before the one that begins where they do.
        entries.sort_by_key(|(_, entry)| (entry.begin, entry.bytes));
        let mut at = 0;
        let mut before: Option<&String> = None;
        for (name, entry) in entries {
            // No overflow: it was a number in the header.
            let end = entry.begin + entry.bytes;
            if end > data {
                return Err(Fault::Beyond {
                    name: name.clone(),
                    end,
                    data,
                });
            }
            match before {
                Some(before) if entry.begin < at => {
                    return Err(Fault::Overlap {
                        names: (before.clone(), name.clone()),
                        at: entry.begin,
                    });
                }
                _ => {}
            }
            if entry.begin > at {
                return Err(Fault::Unused {
                    at,
                    bytes: entry.begin - at,
                });
            }
            at = end;
            before = Some(name);
        }
        match data - at {
            0 => Ok(()),
            bytes => Err(Fault::Unused { at, bytes }),
        }
    }
}

/// An entry as it is written.
#[derive(Deserialize)]
struct RawEntry {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: (u64, u64),
}

fn read_entry(name: &str, value: serde_json::Value) -> Result<Entry, Fault> {
    let raw = RawEntry::deserialize(value).map_err(|error| Fault::Entry {
        name: name.to_owned(),
        reason: error.to_string(),
    })?;
    let dtype = dtype_of(&raw.dtype).ok_or_else(|| Fault::DType {
        name: name.to_owned(),
        stored: raw.dtype,
    })?;
    let too_large = || Fault::TooLarge {
        name: name.to_owned(),
        shape: raw.shape.clone(),
    };
    let shape: Option<Vec<usize>> = raw
        .shape
        .iter()
        .map(|size| (*size).try_into().ok())
        .collect();
    let shape = shape.ok_or_else(too_large)?;
    // Sizes beside a 0 count too, so that strides always fit.
    let strided = raw
        .shape
        .iter()
        .try_fold(dtype.bytes() as u64, |bytes, size| {
            bytes.checked_mul((*size).max(1))
        });
    let strided = strided
        .filter(|bytes| *bytes <= isize::MAX as u64)
        .ok_or_else(too_large)?;
    let expected = if shape.contains(&0) { 0 } else { strided };
    let (begin, end) = raw.data_offsets;
    let info = ArrayInfo { dtype, shape };
    match end.checked_sub(begin) {
        None => Err(Fault::Backwards {
            name: name.to_owned(),
            begin,
            end,
        }),
        Some(got) if got != expected => Err(Fault::Count {
            name: name.to_owned(),
            info,
            expected,
            got,
        }),
        Some(bytes) => Ok(Entry { info, begin, bytes }),
    }
}

/// The members of a JSON object in their order, those of one name all of them.
struct Members<V>(Vec<(String, V)>);

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Members<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect<V>(PhantomData<V>);

        impl<'de, V: Deserialize<'de>> Visitor<'de> for Collect<V> {
            type Value = Members<V>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(name) = map.next_key::<String>()? {
                    let value = map.next_value().map_err(|error| {
                        A::Error::custom(format!("`{}`: {error}", name.escape_debug()))
                    })?;
                    members.push((name, value));
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Collect(PhantomData))
    }
}
