//! Modules in checkpoints.

use crate::error::TrainError;
use loopwright_checkpoint::{ArrayInfo, Mismatch, compare, read, write};
use loopwright_nn::Entry;
use loopwright_tensor::{Array, Tensor, Variable, assign, realize};
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
    put(path, entries, |_| false)
}

/// Puts the values of a file into those entries that it has: what else is in the file, and in the module,
/// is left alone.
///
/// # Errors
/// As [`load`], for shapes and dtypes alone.
pub fn load_part(path: &Path, entries: &[Entry]) -> Result<BTreeMap<String, String>, TrainError> {
    put(path, entries, |mismatch| mismatch.different.is_empty())
}

fn put(
    path: &Path,
    entries: &[Entry],
    accept: impl Fn(&Mismatch) -> bool,
) -> Result<BTreeMap<String, String>, TrainError> {
    let mut checkpoint = read(path)?;
    let mut expected = BTreeMap::new();
    for entry in entries {
        let variable = entry.variable();
        // A size that nothing has said yet is the file's.
        let shape = match (variable.shape().known(), checkpoint.arrays.get(&entry.name)) {
            (Some(shape), _) => shape,
            (None, Some(found)) => found.shape().to_vec(),
            (None, None) => Vec::new(),
        };
        expected.insert(entry.name.clone(), ArrayInfo::new(variable.dtype(), &shape));
    }
    let found = checkpoint.arrays.iter();
    let found =
        found.map(|(name, array)| (name.clone(), ArrayInfo::new(array.dtype(), array.shape())));
    if let Err(mismatch) = compare(&expected, &found.collect())
        && !accept(&mismatch)
    {
        let file = path.display().to_string();
        return Err(TrainError::Mismatch { file, mismatch });
    }
    let mut values: Vec<(&Variable, Tensor)> = Vec::new();
    for entry in entries {
        if let Some(array) = checkpoint.arrays.remove(&entry.name) {
            let value = Tensor::of(array).in_shape(entry.variable().shape());
            values.push((entry.variable(), value));
        }
    }
    assign(&values)?;
    Ok(checkpoint.metadata)
}
