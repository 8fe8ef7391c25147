//! Save, load, restore; names and shapes that do not match are errors.

use crate::close;
use loopwright_nn::train::{TrainError, load, load_part, save};
use loopwright_nn::{Adam, Dense, Entry, Layer, Module, Optimizer, seed, state_of};
use loopwright_tensor::{DType, Tensor};
use std::collections::BTreeMap;
use std::path::Path;

#[derive(Module)]
struct Net {
    hidden: Dense,
    out: Dense,
}

impl Net {
    fn new(start: u64, width: usize) -> Net {
        seed(start);
        Net {
            hidden: Dense::new(width),
            out: Dense::new(1),
        }
    }

    fn loss(&self) -> Tensor {
        let x = Tensor::from([[1.0f32, -1.0, 0.5], [0.0, 2.0, 1.0]]);
        self.out
            .forward(&self.hidden.forward(&x).tanh())
            .square()
            .sum(..)
    }

    fn step(&self, adam: &Adam) -> Result<f64, TrainError> {
        let loss = self.loss();
        adam.step(&self.parameters(), &loss)?;
        Ok(loss.item()?)
    }

    /// All that decides how training goes on.
    fn all(&self, adam: &Adam) -> Vec<Entry> {
        let own = state_of(adam, self).into_iter();
        let own = own.map(|entry| Entry {
            name: format!("adam.{}", entry.name),
            ..entry
        });
        self.entries().into_iter().chain(own).collect()
    }
}

fn values(net: &Net) -> Vec<Vec<f64>> {
    let value = |entry: &Entry| entry.variable().get().to_f64().expect("it has a value");
    net.entries().iter().map(value).collect()
}

fn store(path: &Path, entries: &[Entry]) -> Result<(), TrainError> {
    save(path, entries, &BTreeMap::new())
}

#[test]
fn what_is_saved_is_loaded_bit_for_bit() -> Result<(), TrainError> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("net.safetensors");
    let net = Net::new(1, 4);
    net.loss().item()?;
    save(
        &path,
        &net.entries(),
        &BTreeMap::from([("step".to_owned(), "7".to_owned())]),
    )?;
    let other = Net::new(2, 4);
    assert_eq!(load(&path, &other.entries())?["step"], "7");
    assert_eq!(values(&net), values(&other));
    Ok(())
}

#[test]
fn training_is_restored_with_its_moments() -> Result<(), TrainError> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run.safetensors");
    let (net, adam) = (Net::new(1, 4), Adam::new(0.05));
    for _ in 0..3 {
        net.step(&adam)?;
    }
    store(&path, &net.all(&adam))?;
    let expected = [net.step(&adam)?, net.step(&adam)?];
    let (net, adam) = (Net::new(9, 4), Adam::new(0.05));
    load(&path, &net.all(&adam))?;
    assert_eq!([net.step(&adam)?, net.step(&adam)?], expected);
    Ok(())
}

/// What is wrong with loading a file into entries; nothing of them has changed.
#[track_caller]
fn refused(path: &Path, net: &Net) -> String {
    let before = values(net);
    let error = load(path, &net.entries()).expect_err("it does not fit");
    assert!(matches!(error, TrainError::Mismatch { .. }), "{error}");
    assert_eq!(values(net), before);
    error.to_string()
}

#[test]
fn other_names_and_shapes_are_errors() -> Result<(), TrainError> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("net.safetensors");
    let net = Net::new(1, 4);
    net.loss().item()?;
    let entries = net.entries();
    store(&path, &entries)?;
    let wider = Net::new(1, 5);
    wider.loss().item()?;
    let said = refused(&path, &wider);
    assert!(
        said.contains("different `hidden.weight`: f32[5, 3] is expected, and f32[4, 3] is there"),
        "{said}"
    );
    // One that is missing, one under another name, one that nobody knows.
    store(&path, &entries[1..])?;
    assert!(refused(&path, &net).contains("missing `hidden.weight` f32[4, 3]"));
    let mut renamed = net.entries();
    renamed[0].name = "hidden.weights".to_owned();
    store(&path, &renamed)?;
    let said = refused(&path, &net);
    assert!(said.contains("did you mean `hidden.weights`?"), "{said}");
    let mut more = net.entries();
    more.push(Entry {
        name: "more".to_owned(),
        ..entries[0].clone()
    });
    store(&path, &more)?;
    assert!(refused(&path, &net).contains("unexpected `more` f32[4, 3]"));
    // A part can be taken, as far as shapes fit.
    load_part(&path, &net.entries())?;
    let error = load_part(&path, &wider.entries()).expect_err("shapes differ");
    assert!(matches!(error, TrainError::Mismatch { .. }), "{error}");
    Ok(())
}

#[test]
fn a_dtype_is_not_converted_in_silence() -> Result<(), TrainError> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("one.safetensors");
    let one = |dtype: DType| {
        let parameter = loopwright_nn::Parameter::new(&Tensor::ones([2], dtype));
        parameter
            .entries()
            .into_iter()
            .map(|entry| Entry {
                name: "w".to_owned(),
                ..entry
            })
            .collect::<Vec<_>>()
    };
    store(&path, &one(DType::F64))?;
    let error = load(&path, &one(DType::F32)).expect_err("it is f64");
    assert!(
        error
            .to_string()
            .contains("different `w`: f32[2] is expected, and f64[2] is there"),
        "{error}"
    );
    let entries = one(DType::F64);
    entries[0].variable().set(&Tensor::zeros([2], DType::F64))?;
    load(&path, &entries)?;
    close(&entries[0].variable().get(), &[1.0, 1.0]);
    Ok(())
}
