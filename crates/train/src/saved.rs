//! Modules in checkpoints.

use crate::error::TrainError;
use crate::stored::Stored;
use loopwright_checkpoint::{ArrayInfo, Checkpoint, Mismatch, compare, read, write};
use loopwright_nn::Entry;
use loopwright_tensor::{Array, Shape, Tensor, Variable, assign, realize};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Writes the values of entries under their names, and strings beside them.
///
/// # Errors
/// [`TrainError::Tensor`] where a value is not known, such as a parameter whose shape nothing has said yet;
/// [`TrainError::Checkpoint`].
pub fn save(
    path: &Path,
    entries: &[Entry],
    metadata: &BTreeMap<String, String>,
) -> Result<(), TrainError> {
    let values: Vec<Tensor> = entries.iter().map(|entry| entry.variable().get()).collect();
    realize(&values)?;
    let mut arrays: Vec<(&str, Arc<Array>)> = Vec::with_capacity(entries.len());
    for (entry, value) in entries.iter().zip(&values) {
        arrays.push((&entry.name, value.array()?));
    }
    let arrays = arrays.iter().map(|(name, array)| (*name, &**array));
    Ok(write(path, arrays, metadata)?)
}

/// Puts the values of a file into entries, all of them or none, and gives the strings beside them.
///
/// # Errors
/// [`TrainError::Mismatch`] where the file has not exactly these entries with these shapes and dtypes;
/// [`TrainError::Checkpoint`].
pub fn load(path: &Path, entries: &[Entry]) -> Result<BTreeMap<String, String>, TrainError> {
    put(path, entries, own_name, |_| false, |_| false)
}

/// Puts the values of a file into those entries that it has: what else is in the file, and in the module,
/// is left alone.
///
/// # Errors
/// As [`load`], for shapes and dtypes alone.
pub fn load_part(path: &Path, entries: &[Entry]) -> Result<BTreeMap<String, String>, TrainError> {
    put(
        path,
        entries,
        own_name,
        |_| false,
        |mismatch| mismatch.different.is_empty(),
    )
}

/// Puts the values of a file that another program wrote into entries, and gives the strings beside them.
///
/// `stored` says for an entry's name where its value lies, or nothing where the entry is to stay as it is.
/// What is in the file and in no entry has to be `unwanted`, by its name there.
///
/// ```
/// # use loopwright_x86 as _;
/// use loopwright_nn::{Dense, Module};
/// use loopwright_tensor::Array;
/// use loopwright_train::{Stored, load_as};
/// # use loopwright_tensor::DType;
/// # use std::collections::BTreeMap;
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("model.safetensors");
/// # let kernel = Array::from_f64(DType::F32, &[3, 2], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0])?;
/// # let bias = Array::zeros(DType::F32, &[2])?;
/// # let arrays = [("head/kernel", &kernel), ("head/bias", &bias), ("steps", &bias)];
/// # loopwright_checkpoint::write(&path, arrays, &BTreeMap::new())?;
///
/// // A file with `head/kernel` as [inputs, outputs], `head/bias`, and `steps`, which we have no use for.
/// let dense = Dense::new(2);
/// let stored = |name: &str| match name {
///     "weight" => Some(Stored::named("head/kernel").transposed()),
///     name => Some(Stored::named(format!("head/{name}"))),
/// };
/// load_as(&path, &dense.entries(), stored, |name| name == "steps")?;
/// let weight = dense.weight.get();
/// assert_eq!(weight.sizes()?, [2, 3]);
/// assert_eq!(weight.to_vec::<f32>()?, [0.0, 2.0, 4.0, 1.0, 3.0, 5.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As [`load`], in the file's words; [`TrainError::NoPart`].
pub fn load_as(
    path: &Path,
    entries: &[Entry],
    stored: impl Fn(&str) -> Option<Stored>,
    unwanted: impl Fn(&str) -> bool,
) -> Result<BTreeMap<String, String>, TrainError> {
    put(path, entries, stored, unwanted, |_| false)
}

/// The shape that the file should have where only some sizes are known: those, and the file's for the others.
fn partly_known(shape: &Shape, place: &Stored, there: &[usize]) -> Vec<usize> {
    /// Stands for a size that nothing has said; no array has it.
    const OPEN: usize = usize::MAX;
    let sizes: Vec<usize> = shape
        .axes()
        .iter()
        .map(|axis| axis.known().unwrap_or(OPEN))
        .collect();
    let mut sizes = place.shape_in_file(&sizes);
    for (at, size) in sizes.iter_mut().enumerate() {
        if *size == OPEN {
            // With another number of axes nothing fits, and what is open is shown as 1.
            *size = there.get(at).copied().unwrap_or(1);
        }
    }
    sizes
}

fn own_name(entry: &str) -> Option<Stored> {
    Some(Stored::named(entry))
}

fn put(
    path: &Path,
    entries: &[Entry],
    stored: impl Fn(&str) -> Option<Stored>,
    unwanted: impl Fn(&str) -> bool,
    accept: impl Fn(&Mismatch) -> bool,
) -> Result<BTreeMap<String, String>, TrainError> {
    let Checkpoint { arrays, metadata } = read(path)?;
    let arrays = arrays
        .into_iter()
        .map(|(name, array)| (name, Arc::new(array)));
    let arrays: BTreeMap<String, Arc<Array>> = arrays.collect();
    let file = path.display().to_string();
    let places = entries
        .iter()
        .filter_map(|entry| Some((entry, stored(&entry.name)?)));
    let places: Vec<(&Entry, Stored)> = places.collect();
    let mut expected = BTreeMap::new();
    for (entry, place) in &places {
        let variable = entry.variable();
        let there = arrays.get(&place.name);
        // A size that nothing has said yet is the file's.
        let shape = match (variable.shape().known(), there) {
            (Some(shape), _) => place.shape_in_file(&shape),
            (None, Some(there)) => partly_known(variable.shape(), place, there.shape()),
            (None, None) => Vec::new(),
        };
        let info = ArrayInfo::new(variable.dtype(), &shape);
        expected.insert(place.name.clone(), info);
    }
    let found = arrays
        .iter()
        .filter(|(name, _)| expected.contains_key(*name) || !unwanted(name))
        .map(|(name, array)| (name.clone(), ArrayInfo::new(array.dtype(), array.shape())));
    if let Err(mismatch) = compare(&expected, &found.collect())
        && !accept(&mismatch)
    {
        return Err(TrainError::Mismatch { file, mismatch });
    }
    let mut values: Vec<(&Variable, Tensor)> = Vec::new();
    for (entry, place) in &places {
        if let Some(array) = arrays.get(&place.name) {
            let value = Tensor::of(place.value(array, &entry.name, &file)?);
            values.push((entry.variable(), value.in_shape(entry.variable().shape())));
        }
    }
    assign(&values)?;
    Ok(metadata)
}

#[cfg(test)]
mod tests {
    use super::*;
    use loopwright_interp as _;
    use loopwright_nn::{Dense, Module};
    use loopwright_tensor::DType;

    #[test]
    fn a_file_that_does_not_fit_a_partly_inferred_shape_is_named_with_its_array() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let path = folder.path().join("net.safetensors");
        let bias = Array::zeros(DType::F32, &[4]).expect("room");
        // The layer has 4 outputs, and any number of inputs.
        for (shape, fits) in [
            (&[4, 3][..], true),
            (&[5, 3], false),
            (&[4], false),
            (&[4, 3, 1], false),
        ] {
            let weight = Array::zeros(DType::F32, shape).expect("room");
            let arrays = [("weight", &weight), ("bias", &bias)];
            write(&path, arrays, &BTreeMap::new()).expect("room");
            let dense = Dense::new(4);
            let loaded = load(&path, &dense.entries());
            if fits {
                loaded.expect("it fits");
                continue;
            }
            let error = loaded.expect_err("it does not fit").to_string();
            assert!(
                error.contains("net.safetensors") && error.contains("weight"),
                "{shape:?}: {error}"
            );
        }
    }
}
