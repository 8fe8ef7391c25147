//! Modules in checkpoints.

use crate::Entry;
use crate::train::error::TrainError;
use crate::train::stored::Stored;
use loopwright_formats::checkpoint::{ArrayInfo, Checkpoint, Mismatch, compare, read, write};
use loopwright_tensor::{Array, Axis, Shape, Tensor, Variable, assign, realize};
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
/// use loopwright_nn::train::{Stored, load_as};
/// # use loopwright_tensor::DType;
/// # use std::collections::BTreeMap;
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("model.safetensors");
/// # let kernel = Array::from_f64(DType::F32, &[3, 2], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0])?;
/// # let bias = Array::zeros(DType::F32, &[2])?;
/// # let arrays = [("head/kernel", &kernel), ("head/bias", &bias), ("steps", &bias)];
/// # loopwright_formats::checkpoint::write(&path, arrays, &BTreeMap::new())?;
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

/// Refuses arrays that give one open size several values, before any of them settles it: another file can still be loaded then.
fn check_open_sizes(
    file: &str,
    loaded: &[(&Entry, &Stored, Arc<Array>)],
) -> Result<(), TrainError> {
    let mut given: Vec<(&Axis, usize)> = Vec::new();
    for (entry, place, value) in loaded {
        let axes = entry.variable().shape().axes().iter();
        for (axis, size) in axes.zip(value.shape()) {
            if axis.known().is_some() {
                continue;
            }
            let before = given.iter().find(|(other, _)| other.size == axis.size);
            match before {
                Some((_, other)) if other != size => {
                    return Err(TrainError::Contradiction {
                        file: file.to_owned(),
                        name: place.name.clone(),
                        shape: place.shape_in_file(value.shape()),
                        reason: format!("a size that is {other} there is {size} here"),
                    });
                }
                Some(_) => {}
                None => given.push((axis, *size)),
            }
        }
    }
    Ok(())
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
    let mut loaded: Vec<(&Entry, &Stored, Arc<Array>)> = Vec::new();
    for (entry, place) in &places {
        if let Some(array) = arrays.get(&place.name) {
            loaded.push((entry, place, place.value(array, &entry.name, &file)?));
        }
    }
    check_open_sizes(&file, &loaded)?;
    let mut values: Vec<(&Variable, Tensor)> = Vec::new();
    for (entry, place, array) in loaded {
        let shape = place.shape_in_file(array.shape());
        let value = Tensor::of(array).in_shape(entry.variable().shape());
        // Each may fit alone, and not beside the others.
        value.check().map_err(|error| TrainError::Contradiction {
            file: file.clone(),
            name: place.name.clone(),
            shape,
            reason: error.to_string(),
        })?;
        values.push((entry.variable(), value));
    }
    assign(&values)?;
    Ok(metadata)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BatchNorm, Conv, Dense, LayerNorm, Lstm, Module, RmsNorm};
    use loopwright_interp as _;
    use loopwright_tensor::DType;

    fn number(variable: &str, default: u64) -> u64 {
        let given = std::env::var(variable).ok();
        given.map_or(default, |text| text.parse().expect("a number"))
    }

    /// Numbers that look random and are the same everywhere.
    struct Random(u64);

    impl Random {
        fn below(&mut self, limit: usize) -> usize {
            self.0 = self
                .0
                .wrapping_mul(0x5851_f42d_4c95_7f2d)
                .wrapping_add(0x1405_7b7e_f767_814f);
            ((self.0 >> 33) % limit as u64) as usize
        }
    }

    /// A layer of some kind, with sizes that nothing has said.
    fn layer(random: &mut Random) -> Vec<Entry> {
        let outputs = 1 + random.below(4);
        match random.below(6) {
            0 => Dense::new(outputs).entries(),
            1 => BatchNorm::new().entries(),
            2 => LayerNorm::new().entries(),
            3 => RmsNorm::new().entries(),
            4 => Lstm::new(outputs).entries(),
            _ => Conv::new(outputs, &[3, 3]).entries(),
        }
    }

    /// An array that fits an entry, for inputs of that number, or not in some way.
    fn array(random: &mut Random, entry: &Entry, inputs: usize, fits: bool) -> Array {
        let variable = entry.variable();
        let axes = variable.shape().axes().iter();
        let mut shape: Vec<usize> = axes.map(|axis| axis.known().unwrap_or(inputs)).collect();
        let mut dtype = variable.dtype();
        if !fits {
            match random.below(5) {
                0 => shape.push(1 + random.below(3)),
                1 => drop(shape.pop()),
                2 => dtype = DType::F64,
                3 => shape.iter_mut().for_each(|size| *size += random.below(2)),
                _ => {
                    let at = random.below(shape.len().max(1));
                    if let Some(size) = shape.get_mut(at) {
                        *size = random.below(6);
                    }
                }
            }
        }
        Array::zeros(dtype, &shape).expect("it is small")
    }

    /// Files that fit networks of inferred sizes, and files that do not, in random ways: what is refused names the file and an array
    /// of it. A longer run: `LOOPWRIGHT_CASES=20000 LOOPWRIGHT_SEED=7 cargo test -p loopwright-train --lib any_file`.
    #[test]
    fn any_file_fits_inferred_shapes_or_is_named_with_an_array() {
        let (cases, seed) = (
            number("LOOPWRIGHT_CASES", 200),
            number("LOOPWRIGHT_SEED", 1),
        );
        let folder = tempfile::tempdir().expect("a temporary directory");
        let path = folder.path().join("net.safetensors");
        let (mut loaded, mut refused) = (0, 0);
        for case in 0..cases {
            let mut random = Random(seed.wrapping_mul(1 << 32).wrapping_add(case));
            random.below(2);
            let (entries, inputs) = (layer(&mut random), 1 + random.below(4));
            let wrong = random.below(entries.len() + 1);
            let arrays: Vec<(String, Array)> = entries
                .iter()
                .enumerate()
                .map(|(at, entry)| {
                    (
                        entry.name.clone(),
                        array(&mut random, entry, inputs, at != wrong),
                    )
                })
                .collect();
            let named = arrays.iter().map(|(name, array)| (name.as_str(), array));
            write(&path, named, &BTreeMap::new()).expect("room");
            let told = || {
                let shapes: Vec<_> = arrays
                    .iter()
                    .map(|(name, array)| (name, array.shape()))
                    .collect();
                format!("seed {seed}, case {case}: {shapes:?}")
            };
            match load(&path, &entries) {
                Ok(_) => loaded += 1,
                Err(error) => {
                    let error = error.to_string();
                    let names_array = entries.iter().any(|entry| error.contains(&entry.name));
                    let named = error.contains("net.safetensors") && names_array;
                    assert!(named, "{}: {error}", told());
                    assert!(wrong < entries.len(), "it should fit: {}: {error}", told());
                    refused += 1;
                }
            }
        }
        println!("{loaded} loaded, {refused} refused");
        assert!(
            cases < 100 || (loaded > 0 && refused > 0),
            "{loaded} and {refused}"
        );
    }

    /// Sizes of several arrays that nothing has said may be one and the same.
    #[test]
    fn arrays_that_contradict_each_other_are_named_with_their_file() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let path = folder.path().join("net.safetensors");
        let norm = BatchNorm::new();
        let entries = norm.entries();
        let arrays: Vec<(String, Array)> = entries
            .iter()
            .enumerate()
            .map(|(at, entry)| {
                let rank = entry.variable().shape().rank();
                let shape = vec![3 + usize::from(at == 1); rank];
                (
                    entry.name.clone(),
                    Array::zeros(entry.variable().dtype(), &shape).expect("room"),
                )
            })
            .collect();
        let named = arrays.iter().map(|(name, array)| (name.as_str(), array));
        write(&path, named, &BTreeMap::new()).expect("room");
        let error = load(&path, &entries)
            .expect_err("they contradict each other")
            .to_string();
        let named = error.contains("net.safetensors") && error.contains(&entries[1].name);
        assert!(named, "{error}");
        // What was refused has settled no size.
        let fitting = arrays.iter().map(|(name, array)| {
            let shape = vec![5; array.shape().len()];
            (name, Array::zeros(array.dtype(), &shape).expect("room"))
        });
        let fitting: Vec<(&String, Array)> = fitting.collect();
        let named = fitting.iter().map(|(name, array)| (name.as_str(), array));
        write(&path, named, &BTreeMap::new()).expect("room");
        load(&path, &entries).expect("this one fits");
    }

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
