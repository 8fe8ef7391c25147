//! Reading files.

use crate::checkpoint::compare::nearest;
use crate::checkpoint::error::{CheckpointError, Fault};
use crate::checkpoint::header::{ArrayInfo, Entry, Header, LONGEST};
use loopwright_array::Array;
use loopwright_ops::DType;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// What a file holds.
#[derive(Clone, PartialEq, Debug)]
pub struct Checkpoint {
    /// The arrays by name.
    pub arrays: BTreeMap<String, Array>,
    /// The strings beside them.
    pub metadata: BTreeMap<String, String>,
}

/// Reads a whole file.
///
/// # Errors
/// Any [`CheckpointError`] of reading.
pub fn read(path: &Path) -> Result<Checkpoint, CheckpointError> {
    Reader::open(path)?.read_all()
}

/// A file of which nothing but the header is in memory.
#[derive(Debug)]
pub struct Reader<R = File> {
    source: R,
    /// How messages name the file.
    file: String,
    /// Where the bytes of arrays are counted from.
    start: u64,
    places: BTreeMap<String, (u64, u64)>,
    infos: BTreeMap<String, ArrayInfo>,
    metadata: BTreeMap<String, String>,
}

impl Reader<File> {
    /// Opens a file and reads its header.
    ///
    /// # Errors
    /// [`CheckpointError::File`] and [`CheckpointError::Broken`].
    pub fn open(path: &Path) -> Result<Reader<File>, CheckpointError> {
        let name = path.display().to_string();
        let file = File::open(path).map_err(|error| CheckpointError::file("open", &name, error))?;
        Reader::new(file, name)
    }
}

impl<R: Read + Seek> Reader<R> {
    /// Reads the header of a file that is open; `name` is what errors call it.
    ///
    /// # Errors
    /// [`CheckpointError::File`] and [`CheckpointError::Broken`].
    pub fn new(mut source: R, name: impl Into<String>) -> Result<Reader<R>, CheckpointError> {
        let file = name.into();
        let failed = |error| CheckpointError::file("read", &file, error);
        let broken = |fault| CheckpointError::Broken {
            file: file.clone(),
            fault,
        };
        let size = source.seek(SeekFrom::End(0)).map_err(failed)?;
        source.rewind().map_err(failed)?;
        let left = size.checked_sub(8);
        let left = left.ok_or_else(|| broken(Fault::NoLength { bytes: size }))?;
        let mut length = [0; 8];
        source.read_exact(&mut length).map_err(failed)?;
        let length = u64::from_le_bytes(length);
        if length > LONGEST {
            let limit = LONGEST;
            return Err(broken(Fault::LongHeader { length, limit }));
        }
        if length > left {
            return Err(broken(Fault::CutHeader { length, left }));
        }
        // At most as long as the file is, and as `LONGEST`.
        let mut json = vec![0; length as usize];
        source.read_exact(&mut json).map_err(failed)?;
        let header = Header::parse(&json, left - length).map_err(broken)?;
        let (mut places, mut infos) = (BTreeMap::new(), BTreeMap::new());
        for (name, Entry { info, begin, bytes }) in header.entries {
            places.insert(name.clone(), (begin, bytes));
            infos.insert(name, info);
        }
        Ok(Reader {
            source,
            file,
            start: 8 + length,
            places,
            infos,
            metadata: header.metadata,
        })
    }

    /// What arrays there are.
    pub fn infos(&self) -> &BTreeMap<String, ArrayInfo> {
        &self.infos
    }

    /// The strings beside them.
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }

    /// Reads one array.
    ///
    /// # Errors
    /// [`CheckpointError::Absent`], with a name that resembles the one asked for; any other of reading.
    pub fn array(&mut self, name: &str) -> Result<Array, CheckpointError> {
        let (Some(info), Some((begin, _))) = (self.infos.get(name), self.places.get(name)) else {
            let names = self.infos.keys().map(String::as_str);
            return Err(CheckpointError::Absent {
                file: self.file.clone(),
                name: name.to_owned(),
                near: nearest(name, names).map(str::to_owned),
            });
        };
        let mut array =
            Array::zeros(info.dtype, &info.shape).map_err(|reason| CheckpointError::Memory {
                file: self.file.clone(),
                name: name.to_owned(),
                reason,
            })?;
        self.source
            .seek(SeekFrom::Start(self.start + begin))
            .and_then(|_| self.source.read_exact(array.bytes_mut()))
            .map_err(|error| CheckpointError::file("read", &self.file, error))?;
        check_truths(name, &array).map_err(|fault| CheckpointError::Broken {
            file: self.file.clone(),
            fault,
        })?;
        Ok(array)
    }

    /// Reads everything.
    ///
    /// # Errors
    /// Any [`CheckpointError`] of reading.
    pub fn read_all(mut self) -> Result<Checkpoint, CheckpointError> {
        // In the order of the file, which a disk likes best.
        let mut names: Vec<(u64, String)> = self
            .places
            .iter()
            .map(|(name, place)| (place.0, name.clone()))
            .collect();
        names.sort();
        let mut arrays = BTreeMap::new();
        for (_, name) in names {
            let array = self.array(&name)?;
            arrays.insert(name, array);
        }
        Ok(Checkpoint {
            arrays,
            metadata: self.metadata,
        })
    }
}

/// A `bool` is 0 or 1 everywhere: kernels rely on it.
fn check_truths(name: &str, array: &Array) -> Result<(), Fault> {
    if array.dtype().holds_only_values(array.bytes()) {
        return Ok(());
    }
    match array.bytes().iter().position(|byte| *byte > 1) {
        None => Ok(()),
        Some(at) => Err(Fault::Truth {
            name: name.to_owned(),
            dtype: DType::Bool,
            at,
            byte: array.bytes()[at],
        }),
    }
}
