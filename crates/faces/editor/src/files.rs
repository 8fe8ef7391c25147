//! Schedule files.

use crate::editor::{Loaded, Saved};
use loopwright::looptree::{Plan, replay};
use loopwright::text::{Diagnostic, Source};
use loopwright_files::{Destination, reason};
use std::io;
use std::path::Path;

/// No schedule is this long; what is, is some other file.
const LONGEST: u64 = 16 << 20;

/// Writes a text so that the file is there as a whole or not at all.
pub(crate) fn save(path: &Path, text: &str, overwrite: bool) -> Saved {
    let refused = match Destination::of(path) {
        // Nobody may be there to read it, and the screen would wait with us.
        Ok(place) if !place.is_regular() => Some("it is not a regular file".to_owned()),
        Ok(_) => None,
        Err(error) => Some(reason(&error)),
    };
    if let Some(reason) = refused {
        return Saved::Failed(format!("cannot write {}: {reason}", path.display()));
    }
    if !overwrite && path.exists() {
        return Saved::Exists(path.to_owned());
    }
    match loopwright_files::write(path, text.as_bytes()) {
        Ok(()) => Saved::Written(path.to_owned()),
        Err(error) => {
            let reason = reason(&error);
            Saved::Failed(format!("cannot write {}: {reason}", path.display()))
        }
    }
}

/// Reads a schedule for the program of a plan, as far as it fits.
pub(crate) fn load(path: &Path, plan: &Plan) -> Result<Loaded, String> {
    let shown = path.display();
    let failed = |error: io::Error| format!("cannot read {shown}: {}", reason(&error));
    let size = std::fs::metadata(path).map_err(failed)?.len();
    if size > LONGEST {
        return Err(format!("{shown} is too long for a schedule"));
    }
    let bytes = std::fs::read(path).map_err(failed)?;
    let text = String::from_utf8(bytes).map_err(|_| format!("{shown} is not a text file"))?;
    let source = Source::new(shown.to_string(), text);
    let told = |error: &Diagnostic| {
        let place = error.labels.first();
        let place = place.map(|label| source.position(label.span.start));
        let (line, column) = place.unwrap_or((1, 1));
        format!("{shown}:{line}:{column}: {}", error.message)
    };
    let replayed = replay(&source, plan.program()).map_err(|error| told(&error))?;
    Ok(Loaded {
        left_out: replayed.left_out.iter().map(told).collect(),
        plan: replayed.plan,
    })
}
