//! The `.meta` file of an entry.
//!
//! A line that says what it is, one with the checksum of the rest, then a line for the time, for each file and for each
//! kernel, and at last the log as it is:
//!
//! ```text
//! loopwright cache 2
//! 0f6a…
//! created 1700000000
//! file so 93be…
//! kernel program
//! log
//! cc -O3 …
//! ```

use crate::cache::is_name;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The first line. Another number is another format, and what is in it counts as absent.
const MAGIC: &str = "loopwright cache 2";

/// What a `.meta` file says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Meta {
    /// To the second.
    pub(crate) created: SystemTime,
    pub(crate) files: Vec<KeptFile>,
    pub(crate) kernels: Vec<String>,
    pub(crate) log: String,
}

/// One of the files beside it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct KeptFile {
    pub(crate) extension: String,
    pub(crate) checksum: String,
}

/// The checksum of a file, in hexadecimal digits.
pub(crate) fn checksum(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

impl Meta {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let created = self.created.duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut rest = format!("created {}\n", created.as_secs());
        for file in &self.files {
            rest.push_str(&format!("file {} {}\n", file.extension, file.checksum));
        }
        for kernel in &self.kernels {
            // Names are words, but nothing here relies on it.
            rest.push_str(&format!("kernel {}\n", kernel.replace('\n', " ")));
        }
        rest.push_str("log\n");
        rest.push_str(&self.log);
        format!("{MAGIC}\n{}\n{rest}", checksum(rest.as_bytes())).into_bytes()
    }

    /// `None` where it is not as it was written.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Meta> {
        let text = std::str::from_utf8(bytes).ok()?;
        let (magic, text) = text.split_once('\n')?;
        let (sum, rest) = text.split_once('\n')?;
        if magic != MAGIC || sum != checksum(rest.as_bytes()) {
            return None;
        }
        let (created, mut rest) = rest.split_once('\n')?;
        let seconds = created.strip_prefix("created ")?.parse().ok()?;
        let mut meta = Meta {
            created: UNIX_EPOCH.checked_add(Duration::from_secs(seconds))?,
            files: Vec::new(),
            kernels: Vec::new(),
            log: String::new(),
        };
        loop {
            let (line, after) = rest.split_once('\n')?;
            rest = after;
            if line == "log" {
                meta.log = rest.to_owned();
                return Some(meta);
            } else if let Some(kernel) = line.strip_prefix("kernel ") {
                meta.kernels.push(kernel.to_owned());
            } else {
                let (extension, checksum) = line.strip_prefix("file ")?.split_once(' ')?;
                meta.files.push(KeptFile {
                    extension: is_name(extension).then(|| extension.to_owned())?,
                    checksum: checksum.to_owned(),
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta() -> Meta {
        let file = |extension: &str| KeptFile {
            extension: extension.to_owned(),
            checksum: checksum(extension.as_bytes()),
        };
        Meta {
            created: UNIX_EPOCH + Duration::from_secs(1_700_000_000),
            files: vec![file("c"), file("so")],
            kernels: vec!["fill".to_owned(), "two words".to_owned()],
            log: "cc -o x\r\n\nlog\nkernel no\nno end of line".to_owned(),
        }
    }

    #[test]
    fn what_is_written_is_read() {
        assert_eq!(Meta::parse(&meta().to_bytes()), Some(meta()));
        let nothing = Meta {
            files: Vec::new(),
            kernels: Vec::new(),
            log: String::new(),
            ..meta()
        };
        assert_eq!(Meta::parse(&nothing.to_bytes()), Some(nothing));
    }

    #[test]
    fn a_name_cannot_pretend_to_be_a_line() {
        let mut odd = meta();
        odd.kernels = vec!["a\nfile b".to_owned()];
        let read = Meta::parse(&odd.to_bytes()).expect("it is whole");
        assert_eq!(read.kernels, ["a file b"]);
        assert_eq!(read.files, meta().files);
    }

    #[test]
    fn files_lie_beside_it() {
        let mut odd = meta();
        odd.files[0].extension = "x/../../elsewhere".to_owned();
        assert_eq!(Meta::parse(&odd.to_bytes()), None);
    }
}
