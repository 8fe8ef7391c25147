//! Arrays given to peers and taken from them, as files.

use crate::{BenchError, Results};
use loopwright::graph::Array;
use loopwright::npy;
use loopwright::ops::DType;
use loopwright_files::{NewFile, ScratchFolder};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// The largest difference between two sides' results that is rounding, relative to the largest value, or to a
/// state's largest change.
fn tolerance(dtype: DType) -> f64 {
    match dtype {
        // Two roundings to 8 bits of mantissa.
        DType::BF16 => 8e-3,
        _ => 1e-3,
    }
}

/// A folder with the inputs of one piece of work, which a peer's results are put beside.
pub(crate) struct Exchange {
    folder: ScratchFolder,
}

impl Exchange {
    pub(crate) fn new(inputs: &[(String, Array)]) -> Result<Exchange, BenchError> {
        let folder = ScratchFolder::new("bench").map_err(|error| failed("make a folder", error))?;
        for (name, array) in inputs {
            let path = folder.path().join(format!("in-{name}.npy"));
            let write = || -> Result<(), Box<dyn std::error::Error>> {
                let mut file = NewFile::at(&path)?;
                npy::write(&mut file, array.dtype(), array.shape(), array.bytes())?;
                Ok(file.place()?)
            };
            write().map_err(|error| failed(&format!("write `{name}`"), error))?;
        }
        Ok(Exchange { folder })
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What a peer has written, for each of our results, which say the dtypes.
    pub(crate) fn results(&self, ours: &Results) -> Result<Results, BenchError> {
        let read = |name: &str, like: &Array| -> Result<Array, Box<dyn std::error::Error>> {
            let path = self.folder().join(format!("out-{name}.npy"));
            let mut file = BufReader::new(File::open(&path)?);
            let header = npy::Header::read(&mut file)?;
            let bytes = header.read_elements(&mut file, like.dtype())?;
            // Another work's or peer's result must not be taken for this one's.
            std::fs::remove_file(&path)?;
            Ok(Array::from_bytes(like.dtype(), &header.shape, &bytes)?)
        };
        let results = ours.iter().map(|(name, like)| {
            let array = read(name, like);
            let array = array.map_err(|error| failed(&format!("read `{name}`"), error))?;
            Ok((name.clone(), array))
        });
        results.collect()
    }
}

fn failed(what: &str, error: impl ToString) -> BenchError {
    BenchError::Exchange {
        what: what.to_owned(),
        reason: error.to_string(),
    }
}

/// Checks that another side computed what ours did; `inputs` say what states were before.
pub(crate) fn compare(
    work: &str,
    side: &str,
    inputs: &[(String, Array)],
    ours: &Results,
    theirs: &Results,
) -> Result<(), BenchError> {
    for (name, expected) in ours {
        let differs = |how: String| BenchError::Differs {
            work: work.to_owned(),
            side: side.to_owned(),
            name: name.clone(),
            how,
        };
        let Some(got) = theirs.get(name) else {
            return Err(differs("there is none".to_owned()));
        };
        if got.shape() != expected.shape() {
            let (got, expected) = (got.shape(), expected.shape());
            return Err(differs(format!("it has shape {got:?}, not {expected:?}")));
        }
        let before = inputs.iter().find(|(input, _)| input == name);
        let difference = difference(got, expected, before.map(|(_, array)| array));
        let tolerance = tolerance(expected.dtype());
        if difference.is_nan() || difference > tolerance {
            let how = format!("it is off by {difference:.1e}, more than {tolerance:.0e}");
            return Err(differs(how));
        }
    }
    Ok(())
}

/// The largest difference, relative to the largest value; for a state, to its largest change: weights that
/// hardly moved would look right however they moved.
fn difference(got: &Array, expected: &Array, before: Option<&Array>) -> f64 {
    let (got, expected) = (got.to_f64(), expected.to_f64());
    let before = before.map_or_else(|| vec![0.0; expected.len()], Array::to_f64);
    let mut scale = f64::MIN_POSITIVE;
    let mut largest = 0.0_f64;
    for ((got, expected), before) in got.iter().zip(&expected).zip(&before) {
        scale = scale.max((expected - before).abs());
        let error = (got - expected).abs();
        if error.is_nan() {
            return f64::NAN;
        }
        largest = largest.max(error);
    }
    largest / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(values: &[f64]) -> Array {
        Array::from_f64(DType::F32, &[values.len()], values).expect("the shape fits")
    }

    fn one(name: &str, values: &[f64]) -> Results {
        Results::from([(name.to_owned(), array(values))])
    }

    #[test]
    fn rounding_passes_and_anything_else_does_not() {
        let ours = one("y", &[1.0, -2.0]);
        let check = |theirs: &[f64]| compare("work", "peer", &[], &ours, &one("y", theirs));
        check(&[1.0, -2.001]).expect("within a thousandth of 2");
        for (theirs, message) in [
            (
                &[1.1, -2.0][..],
                "work: peer computes another `y`: it is off by 5.0e-2, more than 1e-3",
            ),
            (
                &[f64::NAN, -2.0],
                "work: peer computes another `y`: it is off by NaN, more than 1e-3",
            ),
            (
                &[1.0],
                "work: peer computes another `y`: it has shape [1], not [2]",
            ),
        ] {
            let error = check(theirs).expect_err(message);
            assert_eq!(error.to_string(), message);
        }
        let error = compare("work", "peer", &[], &ours, &Results::new()).expect_err("nothing");
        let message = "work: peer computes another `y`: there is none";
        assert_eq!(error.to_string(), message);
    }

    #[test]
    fn a_state_is_compared_by_its_change() {
        let before = [("w".to_owned(), array(&[100.0]))];
        let ours = one("w", &[100.01]);
        let check = |theirs: &[f64]| compare("step", "peer", &before, &ours, &one("w", theirs));
        check(&[100.01]).expect("the same change");
        check(&[100.0]).expect_err("no change at all");
    }

    #[test]
    fn arrays_come_back_as_they_were_given() {
        let given = vec![("x".to_owned(), array(&[1.0, 2.5, -3.0]))];
        let exchange = Exchange::new(&given).expect("a folder can be made");
        let folder = exchange.folder();
        std::fs::copy(folder.join("in-x.npy"), folder.join("out-x.npy")).expect("it is there");
        let ours = Results::from_iter(given);
        assert_eq!(exchange.results(&ours).expect("it reads"), ours);
        let error = exchange.results(&ours).expect_err("a result is read once");
        let message = error.to_string();
        assert!(message.starts_with("cannot read `x`: "), "{message}");
    }
}
