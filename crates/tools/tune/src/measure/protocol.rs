//! What the search and the process that measures say to each other: JSON, each message behind its length.

use super::{Outcome, Phase, Trial, Work};
use crate::reference::Expected;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};

/// No message is this long.
const LONGEST: u32 = 1 << 30;

/// What the process is told.
#[derive(Serialize, Deserialize)]
pub(super) enum Request {
    /// What it measures; the first message.
    Begin {
        work: Work,
        expected: Expected,
        /// A directory that it removes when nobody is there any more to do so.
        scratch: std::path::PathBuf,
    },
    /// A candidate.
    Measure(Trial),
}

/// What the process says.
#[derive(Serialize, Deserialize)]
pub(super) enum Reply {
    /// It has begun.
    Ready,
    /// It cannot begin.
    Unable(String),
    /// What it is doing now.
    Doing(Phase),
    /// What came of the candidate.
    Done(Outcome),
}

pub(super) fn write(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_vec(message)?;
    let length = u32::try_from(text.len()).map_err(io::Error::other)?;
    to.write_all(&length.to_le_bytes())?;
    to.write_all(&text)?;
    to.flush()
}

/// The next message; `None` at the end.
pub(super) fn read<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<Option<T>> {
    let mut length = [0; 4];
    match from.read_exact(&mut length) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    let length = u32::from_le_bytes(length);
    if length > LONGEST {
        return Err(io::Error::other("a message that is too long"));
    }
    let mut text = vec![0; length as usize];
    from.read_exact(&mut text)?;
    Ok(Some(serde_json::from_slice(&text)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_as_they_went() {
        let mut pipe = Vec::new();
        write(&mut pipe, &Reply::Doing(Phase::Run)).expect("memory");
        write(&mut pipe, &Reply::Unable("no \u{1f40c}".to_owned())).expect("memory");
        let mut from = pipe.as_slice();
        let first: Option<Reply> = read(&mut from).expect("whole");
        assert!(matches!(first, Some(Reply::Doing(Phase::Run))));
        let second: Option<Reply> = read(&mut from).expect("whole");
        assert!(matches!(second, Some(Reply::Unable(why)) if why == "no \u{1f40c}"));
        assert!(read::<Reply>(&mut from).expect("the end").is_none());
        // A message that was cut off is an error, not a wait.
        assert!(read::<Reply>(&mut &pipe[..9]).is_err());
    }
}
