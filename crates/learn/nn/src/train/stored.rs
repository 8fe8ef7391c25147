//! Values in files whose names and layouts are another program's.

use crate::train::error::TrainError;
use loopwright_array::ArrayError;
use loopwright_formats::checkpoint::CheckpointError;
use loopwright_tensor::Array;
use std::sync::Arc;

/// Where the value of an entry lies in a file that another program wrote, and how.
///
/// GPT-2 keeps its matrices as `[inputs, outputs]`, and those of queries, keys and values in one array; the
/// keys of a layer are
///
/// ```
/// use loopwright_nn::train::Stored;
///
/// let keys = Stored::named("h.0.attn.c_attn.weight").transposed().part(1, 3);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stored {
    pub(crate) name: String,
    transposed: bool,
    at: usize,
    of: usize,
}

impl Stored {
    /// An array of the file, as it is.
    pub fn named(name: impl Into<String>) -> Stored {
        Stored {
            name: name.into(),
            transposed: false,
            at: 0,
            of: 1,
        }
    }

    /// The same with its axes in the opposite order: a matrix that the file has as `[inputs, outputs]`.
    #[must_use]
    pub fn transposed(self) -> Stored {
        Stored {
            transposed: true,
            ..self
        }
    }

    /// One of a number of equal parts, counted from 0, which lie one after the other along the entry's first
    /// axis.
    #[must_use]
    pub fn part(self, at: usize, of: usize) -> Stored {
        Stored { at, of, ..self }
    }

    /// The shape that the file has for an entry's.
    pub(crate) fn shape_in_file(&self, entry: &[usize]) -> Vec<usize> {
        let mut shape = entry.to_vec();
        if let Some(first) = shape.first_mut() {
            *first = first.saturating_mul(self.of);
        }
        if self.transposed {
            shape.reverse();
        }
        shape
    }

    /// The entry's value, from the array that the file has. `entry` and `file` are for messages.
    pub(crate) fn value(
        &self,
        array: &Arc<Array>,
        entry: &str,
        file: &str,
    ) -> Result<Arc<Array>, TrainError> {
        let memory = |reason| CheckpointError::Memory {
            file: file.to_owned(),
            name: self.name.clone(),
            reason,
        };
        let whole = match self.transposed {
            true => Arc::new(transposed(array).map_err(memory)?),
            false => Arc::clone(array),
        };
        if (self.at, self.of) == (0, 1) {
            return Ok(whole);
        }
        let mut shape = whole.shape().to_vec();
        let first = shape.first_mut();
        let cut = first.filter(|size| self.at < self.of && size.is_multiple_of(self.of));
        let Some(size) = cut else {
            return Err(TrainError::NoPart {
                file: file.to_owned(),
                entry: entry.to_owned(),
                name: self.name.clone(),
                shape: whole.shape().to_vec(),
                at: self.at,
                of: self.of,
            });
        };
        *size /= self.of;
        let each = whole.bytes().len() / self.of;
        let bytes = &whole.bytes()[self.at * each..][..each];
        let part = Array::from_bytes(whole.dtype(), &shape, bytes).map_err(memory)?;
        Ok(Arc::new(part))
    }
}

/// The elements with the axes in the opposite order.
fn transposed(array: &Array) -> Result<Array, ArrayError> {
    let shape: Vec<usize> = array.shape().iter().rev().copied().collect();
    let strides: Vec<usize> = array.strides().into_iter().rev().collect();
    let size = array.dtype().bytes();
    let mut made = Array::zeros(array.dtype(), &shape)?;
    let (mut index, mut from) = (vec![0; shape.len()], 0);
    for element in made.bytes_mut().chunks_exact_mut(size) {
        element.copy_from_slice(&array.bytes()[from * size..][..size]);
        // On to the next index, the last axis first.
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            from += strides[axis];
            if index[axis] < shape[axis] {
                break;
            }
            index[axis] = 0;
            from -= strides[axis] * shape[axis];
        }
    }
    Ok(made)
}
