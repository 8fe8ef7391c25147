//! Inputs with what is to be learned of them.

use crate::data::dataset::{ArrayDataset, take};
use crate::data::error::DataError;
use crate::data::random::Random;
use loopwright_array::Array;
use loopwright_ops::Kind;
use std::collections::BTreeMap;

/// Inputs and what is to be learned of each: two arrays with the examples along the first dimension.
#[derive(Clone, PartialEq, Debug)]
pub struct Examples {
    /// The inputs.
    pub inputs: Array,
    /// The class (`i64`), the value or the values of each.
    pub targets: Array,
}

/// Examples to learn from and examples to test with.
#[derive(Clone, PartialEq, Debug)]
pub struct Split {
    /// To learn from.
    pub train: Examples,
    /// To test with.
    pub test: Examples,
}

impl Examples {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.inputs.shape().first().copied().unwrap_or(0)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The set of them: a batch is inputs and targets.
    ///
    /// # Errors
    /// [`DataError::FirstSize`] if there are not as many inputs as targets.
    pub fn dataset(&self) -> Result<ArrayDataset, DataError> {
        ArrayDataset::new(vec![self.inputs.clone(), self.targets.clone()])
    }

    /// Splits off a share of the examples for tests, the same share of every class where targets are integers. Which ones is
    /// decided by the seed; both parts are in a random order.
    ///
    /// # Errors
    /// [`DataError::Argument`] if the share is not from 0 to 1, [`DataError::FirstSize`].
    pub fn split(&self, test_share: f64, seed: u64) -> Result<Split, DataError> {
        // Checks the sizes.
        self.dataset()?;
        let classes: Vec<i64> = match self.targets.dtype().kind() {
            Kind::Float => vec![0; self.len()],
            _ if self.targets.shape().len() != 1 => vec![0; self.len()],
            _ => {
                let class = |value: loopwright_ops::Scalar| value.as_i64().unwrap_or(0);
                self.targets.iter().map(class).collect()
            }
        };
        let (train, test) = stratified(&classes, test_share, seed)?;
        let part = |indices: &[usize]| {
            Ok::<Examples, DataError>(Examples {
                inputs: take(&self.inputs, indices)?,
                targets: take(&self.targets, indices)?,
            })
        };
        Ok(Split {
            train: part(&train)?,
            test: part(&test)?,
        })
    }
}

/// Indices of a training and a test set such that each class has the same share of the test set, up to one example. Which ones
/// are taken, and the order of both, is decided by the seed.
///
/// # Errors
/// [`DataError::Argument`] if the share is not from 0 to 1.
///
/// ```
/// let (train, test) = loopwright_nn::data::stratified(&[0, 0, 0, 0, 1, 1], 0.5, 7)?;
/// assert_eq!((train.len(), test.len()), (3, 3));
/// assert_eq!(test.iter().filter(|index| **index < 4).count(), 2);
/// # Ok::<(), loopwright_nn::data::DataError>(())
/// ```
pub fn stratified(
    classes: &[i64],
    test_share: f64,
    seed: u64,
) -> Result<(Vec<usize>, Vec<usize>), DataError> {
    if !(0.0..=1.0).contains(&test_share) {
        return Err(DataError::Argument {
            what: "the share of the test set",
            got: test_share.to_string(),
            range: "a number from 0 to 1",
        });
    }
    let mut members: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
    for (index, class) in classes.iter().enumerate() {
        members.entry(*class).or_default().push(index);
    }
    // The whole part of each class's share, and one more for those whose rest is largest, until there are enough.
    let share = |indices: &Vec<usize>| indices.len() as f64 * test_share;
    let mut tested: Vec<usize> = members
        .values()
        .map(|indices| share(indices) as usize)
        .collect();
    let mut rests: Vec<(usize, f64)> = members
        .values()
        .map(|indices| share(indices).fract())
        .enumerate()
        .collect();
    rests.sort_by(|a, b| b.1.total_cmp(&a.1));
    let enough = (classes.len() as f64 * test_share).round() as usize;
    let more = enough.saturating_sub(tested.iter().sum());
    for (class, _) in rests.into_iter().take(more) {
        tested[class] += 1;
    }
    let mut random = Random::new(seed);
    let (mut train, mut test) = (Vec::new(), Vec::new());
    for (indices, tested) in members.values_mut().zip(tested) {
        random.shuffle(indices);
        test.extend_from_slice(&indices[..tested]);
        train.extend_from_slice(&indices[tested..]);
    }
    random.shuffle(&mut train);
    random.shuffle(&mut test);
    Ok((train, test))
}
