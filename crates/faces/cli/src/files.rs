//! Reading programs and arrays, writing arrays and texts.

use crate::failure::Failure;
use crate::preview::describe;
use crate::terminal::Shown as _;
use loopwright::graph::Array;
use loopwright::npy::{Header, NpyError};
use loopwright::ops::DType;
use loopwright_files::{
    Destination, NewFile, STANDARD_OUTPUT, directory_of, reason, write_argument,
};
use std::fs::File;
use std::io::{BufReader, Read as _};
use std::path::{Path, PathBuf};

/// No program is this long; what is, is some other file.
const LONGEST_TEXT: u64 = 256 << 20;

/// The text of a program or schedule.
pub(crate) fn read_text(path: &Path) -> Result<String, Failure> {
    let failed = |error: std::io::Error| Failure::file("read", path, &error);
    // A device or a pipe has no length, and may have no end.
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(LONGEST_TEXT + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if bytes.len() as u64 > LONGEST_TEXT {
        let complaint = format!("{} is too long for a program", path.shown());
        return Err(Failure::new(complaint));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::new(format!(
            "{} is not a text file: byte {at} is not UTF-8",
            path.shown()
        ))
    })
}

/// An array of this dtype and shape from an `.npy` file, for the input or state of that name. Where
/// the file's shape is another one, `remedy` may say what would make it fit.
pub(crate) fn read_array(
    path: &Path,
    what: &str,
    name: &str,
    dtype: DType,
    shape: &[usize],
    remedy: impl Fn(&[usize]) -> Option<String>,
) -> Result<Array, Failure> {
    let shown = path.shown();
    let broken = |error: NpyError| match error {
        NpyError::Io(error) => Failure::file("read", path, &error),
        error => Failure::new(format!("cannot read {shown} for {what} `{name}`: {error}")),
    };
    let file = File::open(path).map_err(|error| {
        let reading = format!("open {what} `{name}` from");
        Failure::file(&reading, path, &error)
    })?;
    let mut reader = BufReader::new(file);
    let header = Header::read(&mut reader).map_err(broken)?;
    let held = match header.dtype() {
        Some(dtype) => dtype.to_string(),
        None => format!("`{}` elements ", header.stored),
    };
    let mismatch = || {
        Failure::new(format!(
            "{what} `{name}` needs {}, and {shown} holds {held}{:?}",
            describe(dtype, shape),
            header.shape
        ))
    };
    if !header.holds(dtype) {
        return Err(mismatch().help(format!(
            "convert the file, in numpy with `array.astype({})`, or change the program",
            numpy_name(dtype)
        )));
    }
    if header.shape != shape {
        return Err(match remedy(&header.shape) {
            Some(help) => mismatch().help(help),
            None => mismatch(),
        });
    }
    let mut array = Array::zeros(dtype, shape).map_err(|error| Failure::new(error.to_string()))?;
    header
        .read_elements_into(&mut reader, dtype, array.bytes_mut())
        .map_err(broken)?;
    Ok(array)
}

/// What numpy calls a dtype.
fn numpy_name(dtype: DType) -> String {
    match dtype {
        DType::Bool => "'bool'".to_owned(),
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => format!("'int{}'", dtype.bits()),
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => format!("'uint{}'", dtype.bits()),
        DType::F16 | DType::F32 | DType::F64 => format!("'float{}'", dtype.bits()),
        DType::BF16 => "ml_dtypes.bfloat16".to_owned(),
        DType::F8E4M3 => "ml_dtypes.float8_e4m3fn".to_owned(),
        DType::F8E5M2 => "ml_dtypes.float8_e5m2".to_owned(),
    }
}

/// The directory that a file will be written to, checked before any work is done for it.
pub(crate) fn check_writable(path: &Path) -> Result<(), Failure> {
    if path == Path::new(STANDARD_OUTPUT) {
        return Ok(());
    }
    let reason = match Destination::of(path) {
        Ok(Destination::Regular(place, None)) if !directory_of(&place).is_dir() => {
            format!("there is no directory {}", directory_of(&place).shown())
        }
        Ok(_) => return Ok(()),
        Err(error) => reason(&error),
    };
    Err(Failure::new(format!(
        "cannot write {}: {reason}",
        path.shown()
    )))
}

/// A folder that files will be written to, checked before any work is done for them: it can be made, or is there.
/// Nothing is left of the trial, since the command may yet be refused.
pub(crate) fn check_folder(path: &Path) -> Result<(), Failure> {
    let missing = path.ancestors().take_while(|folder| !folder.exists());
    let missing: Vec<&Path> = missing.collect();
    let made = std::fs::create_dir_all(path);
    for folder in missing {
        // Fails where it was not made.
        let _ = std::fs::remove_dir(folder);
    }
    made.map_err(|error| Failure::file("make", path, &error))
}

/// A file that a command writes: the option that names it, and the path.
pub(crate) type Written<'a> = (String, &'a Path);

/// Refuses a command that would write two of its files to one place, or over the program that it reads: what was there
/// first would be lost without a word. The standard output is such a place, too, and devices are none.
pub(crate) fn check_places(program: Option<&Path>, written: &[Written<'_>]) -> Result<(), Failure> {
    let program = program.and_then(place);
    let mut taken: Vec<(&str, PathBuf)> = Vec::new();
    for (option, path) in written {
        let Some(place) = place(path) else {
            continue;
        };
        if program.as_ref() == Some(&place) {
            return Err(Failure::usage(format!(
                "`{option}` would replace the program itself, {}",
                path.shown()
            )));
        }
        if let Some((other, _)) = taken.iter().find(|(_, other)| *other == place) {
            let shown = match place == Path::new(STANDARD_OUTPUT) {
                true => "the standard output".to_owned(),
                false => path.shown(),
            };
            return Err(Failure::usage(format!(
                "`{other}` and `{option}` both write to {shown}"
            )));
        }
        taken.push((option, place));
    }
    Ok(())
}

/// What a path names whatever it is called; `None` for devices and others that hold nothing.
fn place(path: &Path) -> Option<PathBuf> {
    if path == Path::new(STANDARD_OUTPUT) {
        return Some(path.to_owned());
    }
    match Destination::of(path).ok()? {
        Destination::Regular(path, _) => {
            let folder = directory_of(&path).canonicalize().ok()?;
            Some(folder.join(path.file_name()?))
        }
        Destination::Descriptor(path) if path.ends_with("1") => Some(STANDARD_OUTPUT.into()),
        Destination::Descriptor(_) | Destination::Special(_) => None,
    }
}

/// Writes an array so that the file is there as a whole or not at all.
pub(crate) fn write_array(path: &Path, array: &Array) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::file("write", path, &error);
    let mut file = NewFile::for_argument(path).map_err(failed)?;
    loopwright::npy::write(&mut file, array.dtype(), array.shape(), array.bytes()).map_err(
        |error| match error {
            NpyError::Io(error) => failed(error),
            error => Failure::new(format!("cannot write {}: {error}", path.shown())),
        },
    )?;
    file.place().map_err(failed)
}

/// Writes a text so that the file is there as a whole or not at all.
pub(crate) fn write_text(path: &Path, text: &str) -> Result<(), Failure> {
    write_argument(path, text.as_bytes()).map_err(|error| Failure::file("write", path, &error))
}
