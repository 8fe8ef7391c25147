//! Sets of examples.

use crate::data::error::DataError;
use loopwright_array::Array;
use std::sync::Arc;

/// A set of examples that can be had in batches.
///
/// A batch is one array for each thing that an example is made of (an image and a label, say), with the examples along the
/// first dimension. A set is asked from another thread where a loader makes batches ahead.
pub trait Dataset: Send + Sync {
    /// How many examples there are.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The examples at these indices, in their order; an index may come twice.
    ///
    /// # Errors
    /// [`DataError::Index`] for one that is not there, and whatever the set runs into.
    fn batch(&self, indices: &[usize]) -> Result<Vec<Array>, DataError>;

    /// A set whose batches are changed on their way, by a function of the whole batch. It keeps the number of examples.
    ///
    /// ```
    /// use loopwright_nn::data::{ArrayDataset, Dataset};
    /// use loopwright_array::Array;
    /// use loopwright_ops::DType;
    ///
    /// let x = Array::from_f64(DType::F32, &[3], &[1.0, 2.0, 3.0])?;
    /// let halved = ArrayDataset::new(vec![x])?.map(|mut batch| {
    ///     let values: Vec<f64> = batch[0].to_f64().iter().map(|x| x / 2.0).collect();
    ///     batch[0] = Array::from_f64(DType::F32, batch[0].shape(), &values)?;
    ///     Ok(batch)
    /// });
    /// assert_eq!(halved.batch(&[2, 0])?[0].to_f64(), [1.5, 0.5]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn map<F>(self, function: F) -> Map<Self, F>
    where
        Self: Sized,
        F: Fn(Vec<Array>) -> Result<Vec<Array>, Box<dyn std::error::Error + Send + Sync>>
            + Send
            + Sync,
    {
        Map {
            dataset: self,
            function,
        }
    }

    /// The set of the examples at these indices.
    ///
    /// # Errors
    /// [`DataError::Index`].
    fn select(self, indices: Vec<usize>) -> Result<Select<Self>, DataError>
    where
        Self: Sized,
    {
        check_indices(&indices, self.len())?;
        Ok(Select {
            dataset: self,
            indices,
        })
    }
}

impl<D: Dataset + ?Sized> Dataset for Arc<D> {
    fn len(&self) -> usize {
        (**self).len()
    }

    fn batch(&self, indices: &[usize]) -> Result<Vec<Array>, DataError> {
        (**self).batch(indices)
    }
}

impl<D: Dataset + ?Sized> Dataset for Box<D> {
    fn len(&self) -> usize {
        (**self).len()
    }

    fn batch(&self, indices: &[usize]) -> Result<Vec<Array>, DataError> {
        (**self).batch(indices)
    }
}

pub(crate) fn check_indices(indices: &[usize], examples: usize) -> Result<(), DataError> {
    match indices.iter().find(|index| **index >= examples) {
        None => Ok(()),
        Some(&index) => Err(DataError::Index { index, examples }),
    }
}

/// Examples in memory: arrays that have the examples along their first dimension.
#[derive(Clone, PartialEq, Debug)]
pub struct ArrayDataset {
    arrays: Vec<Array>,
    examples: usize,
}

impl ArrayDataset {
    /// The set of these arrays.
    ///
    /// # Errors
    /// [`DataError::FirstSize`] if they have not all the same first size; an array without dimensions has none. No arrays at
    /// all are an empty set.
    pub fn new(arrays: Vec<Array>) -> Result<ArrayDataset, DataError> {
        let examples = arrays.iter().find_map(|array| array.shape().first());
        let examples = examples.copied().unwrap_or(0);
        for (at, array) in arrays.iter().enumerate() {
            if array.shape().first() != Some(&examples) {
                return Err(DataError::FirstSize {
                    at,
                    dtype: array.dtype(),
                    shape: array.shape().to_vec(),
                    examples,
                });
            }
        }
        Ok(ArrayDataset { arrays, examples })
    }

    /// The arrays.
    pub fn arrays(&self) -> &[Array] {
        &self.arrays
    }
}

impl Dataset for ArrayDataset {
    fn len(&self) -> usize {
        self.examples
    }

    fn batch(&self, indices: &[usize]) -> Result<Vec<Array>, DataError> {
        check_indices(indices, self.examples)?;
        self.arrays
            .iter()
            .map(|array| take(array, indices))
            .collect()
    }
}

/// The parts of an array at these places of its first dimension; all of them are there.
pub(crate) fn take(array: &Array, indices: &[usize]) -> Result<Array, DataError> {
    let mut shape = array.shape().to_vec();
    let examples = std::mem::replace(&mut shape[0], indices.len());
    let mut taken = Array::zeros(array.dtype(), &shape)?;
    if taken.is_empty() {
        return Ok(taken);
    }
    let part = array.bytes().len() / examples;
    for (to, index) in taken.bytes_mut().chunks_exact_mut(part).zip(indices) {
        to.copy_from_slice(&array.bytes()[index * part..(index + 1) * part]);
    }
    Ok(taken)
}

/// What [`Dataset::map`] makes.
#[derive(Clone, Debug)]
pub struct Map<D, F> {
    dataset: D,
    function: F,
}

impl<D, F> Dataset for Map<D, F>
where
    D: Dataset,
    F: Fn(Vec<Array>) -> Result<Vec<Array>, Box<dyn std::error::Error + Send + Sync>> + Send + Sync,
{
    fn len(&self) -> usize {
        self.dataset.len()
    }

    fn batch(&self, indices: &[usize]) -> Result<Vec<Array>, DataError> {
        let batch = self.dataset.batch(indices)?;
        (self.function)(batch).map_err(DataError::Map)
    }
}

/// What [`Dataset::select`] makes.
#[derive(Clone, Debug)]
pub struct Select<D> {
    dataset: D,
    indices: Vec<usize>,
}

impl<D: Dataset> Dataset for Select<D> {
    fn len(&self) -> usize {
        self.indices.len()
    }

    fn batch(&self, indices: &[usize]) -> Result<Vec<Array>, DataError> {
        check_indices(indices, self.indices.len())?;
        let indices: Vec<usize> = indices.iter().map(|index| self.indices[*index]).collect();
        self.dataset.batch(&indices)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loopwright_ops::DType;

    fn counted(dtype: DType, shape: &[usize]) -> Array {
        let count: usize = shape.iter().product();
        let values: Vec<f64> = (0..count).map(|at| at as f64).collect();
        Array::from_f64(dtype, shape, &values).expect("as many values as the shape has")
    }

    #[test]
    fn batches_are_the_examples_asked_for() {
        let set = ArrayDataset::new(vec![
            counted(DType::F32, &[4, 2]),
            counted(DType::I64, &[4]),
        ]);
        let set = set.expect("four examples");
        assert_eq!(set.len(), 4);
        let batch = set.batch(&[3, 0, 3]).expect("they are there");
        assert_eq!(batch[0].shape(), [3, 2]);
        assert_eq!(batch[0].to_f64(), [6.0, 7.0, 0.0, 1.0, 6.0, 7.0]);
        assert_eq!(batch[1].to_f64(), [3.0, 0.0, 3.0]);
        assert_eq!(set.batch(&[]).expect("no example")[0].shape(), [0, 2]);
        let error = set.batch(&[1, 4]).expect_err("there is no fifth");
        assert_eq!(error.to_string(), "there is no example 4 in a set of 4");
    }

    #[test]
    fn sets_of_unequal_arrays_are_refused() {
        let set = ArrayDataset::new(vec![
            counted(DType::F32, &[4, 2]),
            counted(DType::I64, &[3]),
        ]);
        assert_eq!(
            set.expect_err("four and three").to_string(),
            "the arrays of a set have one first size, the number of examples; array 1 is i64[3], and 4 are expected"
        );
        let scalar = ArrayDataset::new(vec![counted(DType::F32, &[])]);
        assert!(matches!(scalar, Err(DataError::FirstSize { at: 0, .. })));
        assert!(
            ArrayDataset::new(Vec::new())
                .expect("an empty set")
                .is_empty()
        );
    }

    #[test]
    fn sets_can_be_narrowed_and_changed() {
        let set = ArrayDataset::new(vec![counted(DType::I64, &[5])]).expect("five examples");
        let odd = set.clone().select(vec![1, 3]).expect("they are there");
        assert_eq!(odd.len(), 2);
        assert_eq!(
            odd.batch(&[1, 0]).expect("both are there")[0].to_f64(),
            [3.0, 1.0]
        );
        assert!(matches!(
            odd.batch(&[2]),
            Err(DataError::Index {
                index: 2,
                examples: 2
            })
        ));
        assert!(matches!(
            set.clone().select(vec![5]),
            Err(DataError::Index { .. })
        ));
        let failing = set.map(|_| Err("no".into()));
        let error = failing.batch(&[0]).expect_err("it always fails");
        assert_eq!(error.to_string(), "a batch could not be mapped: no");
    }
}
