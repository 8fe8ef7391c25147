//! Writing files.

use crate::checkpoint::error::CheckpointError;
use crate::checkpoint::header::{LONGEST, METADATA, stored};
use loopwright_array::Array;
use loopwright_files::NewFile;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

/// Writes arrays under their names, and strings beside them. The file is there as a whole, on the disk, when this
/// returns; before, and after an error, what was at the path stays as it was.
///
/// # Errors
/// [`CheckpointError::Name`] if a name is there twice or is `__metadata__`, which the format keeps to itself;
/// [`CheckpointError::File`].
pub fn write<'a, N: AsRef<str>>(
    path: &Path,
    arrays: impl IntoIterator<Item = (N, &'a Array)>,
    metadata: &BTreeMap<String, String>,
) -> Result<(), CheckpointError> {
    let file = path.display().to_string();
    let name = |reason: String| CheckpointError::Name {
        file: file.clone(),
        reason,
    };
    let mut arrays: Vec<(N, &Array)> = arrays.into_iter().collect();
    arrays.sort_by(|(a_name, a), (b_name, b)| {
        let places = stored(a.dtype()).0.cmp(&stored(b.dtype()).0);
        places.then_with(|| a_name.as_ref().cmp(b_name.as_ref()))
    });
    let mut names: Vec<&str> = arrays.iter().map(|(name, _)| name.as_ref()).collect();
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        let twice = pair[0].escape_debug();
        return Err(name(format!("two arrays are named `{twice}`")));
    }
    if names.contains(&METADATA) {
        return Err(name(format!(
            "an array cannot be named `{METADATA}`, which the format keeps to itself"
        )));
    }
    let header = header(&arrays, metadata);
    if header.len() as u64 > LONGEST {
        return Err(name(format!(
            "names and metadata take {} bytes, and the format allows {LONGEST}",
            header.len()
        )));
    }
    let write = || {
        let mut file = NewFile::at(path)?;
        file.write_all(&(header.len() as u64).to_le_bytes())?;
        file.write_all(header.as_bytes())?;
        for (_, array) in &arrays {
            file.write_all(array.bytes())?;
        }
        file.place_durably()
    };
    write().map_err(|error| CheckpointError::file("write", &file, error))
}

/// The header, with blanks behind it up to a multiple of eight, so that what follows is aligned.
fn header<N: AsRef<str>>(arrays: &[(N, &Array)], metadata: &BTreeMap<String, String>) -> String {
    let mut members = Vec::with_capacity(arrays.len() + 1);
    if !metadata.is_empty() {
        let strings: Vec<String> = metadata
            .iter()
            .map(|(key, value)| format!("{}:{}", json(key), json(value)))
            .collect();
        members.push(format!("\"{METADATA}\":{{{}}}", strings.join(",")));
    }
    let mut begin = 0;
    for (name, array) in arrays {
        let end = begin + array.bytes().len();
        let sizes: Vec<String> = array.shape().iter().map(usize::to_string).collect();
        members.push(format!(
            "{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{begin},{end}]}}",
            json(name.as_ref()),
            stored(array.dtype()).1,
            sizes.join(",")
        ));
        begin = end;
    }
    let mut header = format!("{{{}}}", members.join(","));
    let padded = header.len().next_multiple_of(8);
    header.extend(std::iter::repeat_n(' ', padded - header.len()));
    header
}

/// A string as JSON has it.
fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
