//! The log of a search: a line of JSON for each thing that happened, on disk before the search goes on.
//!
//! A process can be killed while it writes. So a line that is not whole counts as not written, and the next
//! one starts on a line of its own.

use crate::error::TuneError;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A line of the log.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Record {
    /// What is searched; the first line. A log goes on only with the same.
    Begin {
        /// The key of program, sizes and device.
        key: String,
        /// The program's name, for people.
        program: String,
    },
    /// A candidate is about to be measured.
    Trying {
        /// Its schedule.
        schedule: String,
    },
    /// What came of it.
    Tried(Tried),
}

/// A candidate that was measured.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Tried {
    /// Its schedule.
    pub schedule: String,
    /// The mutations that led to it.
    pub path: Vec<String>,
    /// How it ended, in one word; see [`crate::Outcome::word`].
    pub outcome: String,
    /// The difference, the refusal, the signal.
    pub why: Option<String>,
    /// Its time as a share of the default's, where it counts.
    pub relative: Option<f64>,
    /// Whether it was the best when it came.
    pub best: bool,
}

/// An open log.
#[derive(Debug)]
pub struct Log {
    file: File,
    path: PathBuf,
}

impl Log {
    /// Begins a new log, in place of one that is there.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn create(path: &Path) -> Result<Log, TuneError> {
        let file = File::create(path).map_err(|error| TuneError::file("write", path, error))?;
        Ok(Log {
            file,
            path: path.to_owned(),
        })
    }

    /// Opens a log to go on with; gives what is in it.
    ///
    /// # Errors
    /// A file that cannot be read and written.
    pub fn open(path: &Path) -> Result<(Log, Vec<Record>), TuneError> {
        let failed = |error| TuneError::file("open", path, error);
        let mut options = OpenOptions::new();
        let mut file = options.read(true).append(true).open(path).map_err(failed)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        file.seek(SeekFrom::End(0)).map_err(failed)?;
        if bytes.last().is_some_and(|last| *last != b'\n') {
            file.write_all(b"\n").map_err(failed)?;
        }
        let lines = bytes.split(|byte| *byte == b'\n');
        let records = lines.filter_map(|line| serde_json::from_slice(line).ok());
        let log = Log {
            file,
            path: path.to_owned(),
        };
        Ok((log, records.collect()))
    }

    /// Writes a line; it is on disk when this returns.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn write(&mut self, record: &Record) -> Result<(), TuneError> {
        let mut line = serde_json::to_vec(record)
            .map_err(|error| TuneError::file("write", &self.path, error.into()))?;
        line.push(b'\n');
        let written = self
            .file
            .write_all(&line)
            .and_then(|()| self.file.sync_data());
        written.map_err(|error| TuneError::file("write", &self.path, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_line_is_no_line() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("log");
        let begin = Record::Begin {
            key: "k".to_owned(),
            program: "p".to_owned(),
        };
        let trying = |schedule: &str| Record::Trying {
            schedule: schedule.to_owned(),
        };
        let mut log = Log::create(&path).expect("a file");
        log.write(&begin).expect("room");
        log.write(&trying("a\nb")).expect("room");
        let whole = std::fs::read(&path).expect("a file");
        for cut in 0..whole.len() {
            std::fs::write(&path, &whole[..cut]).expect("room");
            let (mut log, records) = Log::open(&path).expect("any file will do");
            assert!(records.len() <= 1 || cut + 1 == whole.len(), "cut at {cut}");
            log.write(&trying("c")).expect("room");
            let (_, records) = Log::open(&path).expect("a file");
            assert_eq!(records.last(), Some(&trying("c")), "cut at {cut}");
        }
    }
}
