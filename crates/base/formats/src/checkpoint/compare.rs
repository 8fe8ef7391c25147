//! What a program expects against what a file holds.

use crate::checkpoint::error::did_you_mean;
use crate::checkpoint::header::ArrayInfo;
use std::collections::BTreeMap;
use std::fmt;

/// An array that was expected and is not there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Missing {
    /// Its name.
    pub name: String,
    /// What it should be.
    pub expected: ArrayInfo,
    /// An array that nobody expected, with a name that resembles this one.
    pub near: Option<String>,
}

/// An array that is there and is another than expected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// Its name.
    pub name: String,
    /// What it should be.
    pub expected: ArrayInfo,
    /// What it is.
    pub found: ArrayInfo,
}

/// All the ways in which what was found is not what was expected; each list is in the order of the names.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Mismatch {
    /// What is not there.
    pub missing: Vec<Missing>,
    /// What nobody expected.
    pub unexpected: Vec<(String, ArrayInfo)>,
    /// What has another dtype or shape.
    pub different: Vec<Difference>,
}

/// Compares what arrays there are with those that there should be: the same names, each with the same dtype and shape.
///
/// # Errors
/// The [`Mismatch`], with everything that is wrong. A caller that can do without some of it, such as one that loads a part
/// of a model, looks into its lists.
pub fn compare(
    expected: &BTreeMap<String, ArrayInfo>,
    found: &BTreeMap<String, ArrayInfo>,
) -> Result<(), Mismatch> {
    let mut mismatch = Mismatch::default();
    let unknown = found.keys().filter(|name| !expected.contains_key(*name));
    let unknown: Vec<&String> = unknown.collect();
    for (name, wanted) in expected {
        match found.get(name) {
            Some(there) if there == wanted => {}
            Some(there) => mismatch.different.push(Difference {
                name: name.clone(),
                expected: wanted.clone(),
                found: there.clone(),
            }),
            None => {
                // One that would fit is meant rather than one that would not.
                let fits = unknown.iter().filter(|name| found[**name] == *wanted);
                let near = nearest(name, fits.map(|name| name.as_str()))
                    .or_else(|| nearest(name, unknown.iter().map(|name| name.as_str())));
                mismatch.missing.push(Missing {
                    name: name.clone(),
                    expected: wanted.clone(),
                    near: near.map(str::to_owned),
                });
            }
        }
    }
    for name in unknown {
        let info = found[name].clone();
        mismatch.unexpected.push((name.clone(), info));
    }
    match mismatch == Mismatch::default() {
        true => Ok(()),
        false => Err(mismatch),
    }
}

/// The name that resembles another one most, if one does: at most a third of it is different.
pub(crate) fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    names
        .map(|other| (strsim::damerau_levenshtein(name, other), other))
        .filter(|(distance, other)| {
            let longer = name.chars().count().max(other.chars().count());
            3 * distance <= longer
        })
        .min()
        .map(|(_, other)| other)
}

/// Of each kind this many are written out.
const SHOWN: usize = 20;

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts: Vec<String> = [
            (self.missing.len(), "missing"),
            (self.unexpected.len(), "unexpected"),
            (self.different.len(), "different"),
        ]
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
        write!(
            f,
            "the arrays are not those expected: {}",
            counts.join(", ")
        )?;
        let missing = self.missing.iter().map(|missing| {
            let name = missing.name.escape_debug();
            let near = did_you_mean(&missing.near);
            format!("missing `{name}` {}{near}", missing.expected)
        });
        list(f, missing)?;
        let unexpected = self
            .unexpected
            .iter()
            .map(|(name, info)| format!("unexpected `{}` {info}", name.escape_debug()));
        list(f, unexpected)?;
        let different = self.different.iter().map(|different| {
            format!(
                "different `{}`: {} is expected, and {} is there",
                different.name.escape_debug(),
                different.expected,
                different.found
            )
        });
        list(f, different)
    }
}

fn list(f: &mut fmt::Formatter<'_>, lines: impl ExactSizeIterator<Item = String>) -> fmt::Result {
    let more = lines.len().saturating_sub(SHOWN);
    for line in lines.take(SHOWN) {
        write!(f, "\n  {line}")?;
    }
    match more {
        0 => Ok(()),
        more => write!(f, "\n  … and {more} more"),
    }
}

impl std::error::Error for Mismatch {}

#[cfg(test)]
mod tests {
    use super::*;
    use loopwright_ops::DType;

    fn infos(arrays: &[(&str, DType, &[usize])]) -> BTreeMap<String, ArrayInfo> {
        let info = |(name, dtype, shape): &(&str, DType, &[usize])| {
            ((*name).to_owned(), ArrayInfo::new(*dtype, shape))
        };
        arrays.iter().map(info).collect()
    }

    #[test]
    fn the_same_arrays_fit() {
        let arrays = infos(&[("a", DType::F32, &[2]), ("b", DType::I64, &[])]);
        assert_eq!(compare(&arrays, &arrays), Ok(()));
        assert_eq!(compare(&BTreeMap::new(), &BTreeMap::new()), Ok(()));
    }

    #[test]
    fn everything_that_is_wrong_is_said_at_once() {
        let expected = infos(&[
            ("layers.0.weight", DType::F32, &[3, 4]),
            ("layers.0.bias", DType::F32, &[4]),
            ("head", DType::BF16, &[4, 2]),
            ("step", DType::I64, &[]),
        ]);
        let found = infos(&[
            ("layer.0.weight", DType::F32, &[4, 3]),
            ("layers_0.weight", DType::F32, &[3, 4]),
            ("layers.0.bias", DType::F32, &[5]),
            ("head", DType::F32, &[4, 2]),
        ]);
        let mismatch = compare(&expected, &found).expect_err("nothing fits");
        assert_eq!(
            mismatch.to_string(),
            "the arrays are not those expected: 2 missing, 2 unexpected, 2 different\
             \n  missing `layers.0.weight` f32[3, 4]; did you mean `layers_0.weight`?\
             \n  missing `step` i64\
             \n  unexpected `layer.0.weight` f32[4, 3]\
             \n  unexpected `layers_0.weight` f32[3, 4]\
             \n  different `head`: bf16[4, 2] is expected, and f32[4, 2] is there\
             \n  different `layers.0.bias`: f32[4] is expected, and f32[5] is there"
        );
    }

    #[test]
    fn long_lists_are_cut_in_the_message_only() {
        let names: Vec<String> = (0..30).map(|at| format!("x{at:02}")).collect();
        let found = names
            .iter()
            .map(|name| (name.clone(), ArrayInfo::new(DType::U8, &[1])))
            .collect();
        let mismatch = compare(&BTreeMap::new(), &found).expect_err("none is expected");
        assert_eq!(mismatch.unexpected.len(), 30);
        let text = mismatch.to_string();
        assert_eq!(text.lines().count(), 1 + SHOWN + 1);
        assert!(text.ends_with("… and 10 more"), "{text}");
    }
}
