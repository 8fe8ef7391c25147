//! Arrays in memory: what programs are given and give, what files hold, what charts show.
//!
//! An [`Array`] is dense, in row-major order, and says its dtype and shape. Its bytes start at a cache line, or lie in memory that
//! somebody else keeps and that nobody writes.
//!
//! ```
//! use loopwright_array::Array;
//! use loopwright_ops::DType;
//!
//! let array = Array::from_f64(DType::F32, &[2, 2], &[1.0, 2.0, 3.0, 4.0])?;
//! assert_eq!((array.shape(), array.bytes().len()), (&[2, 2][..], 16));
//! # Ok::<(), loopwright_array::ArrayError>(())
//! ```

use loopwright_ops::{DType, Scalar};
use std::any::Any;
use std::fmt;

/// The alignment of an array's first element: a cache line, and the widest vector register.
const ALIGNMENT: usize = 64;

/// A dense array in row-major order; the data starts at a multiple of 64 bytes, unless it is [foreign](Array::foreign).
pub struct Array {
    dtype: DType,
    shape: Vec<usize>,
    storage: Storage,
    bytes: usize,
}

/// Where an array's bytes are.
enum Storage {
    /// After `start` bytes that bring them to the alignment. Never grows, so that it never moves.
    Own { room: Vec<u8>, start: usize },
    /// In memory that somebody else keeps.
    Foreign(Foreign),
}

/// Memory that somebody else keeps.
struct Foreign {
    address: *const u8,
    _owner: Box<dyn Any + Send + Sync>,
}

// SAFETY: the memory is only read, and whoever gave it has said that nobody writes it.
unsafe impl Send for Foreign {}
// SAFETY: as above.
unsafe impl Sync for Foreign {}

/// Bytes of a small page.
const PAGE: usize = 4096;

/// Bytes from which on an array starts at a page. A processor takes a load for one of what a store before it writes if the last
/// twelve bits of their addresses agree. Where a result is written as far as an operand is read, loads are ahead of stores, and
/// arrays that start alike keep them apart.
const PAGE_ALIGNED: usize = 16 * PAGE;

/// Bytes from which on memory in large pages is worth asking for: two of them.
#[cfg(target_os = "linux")]
const LARGE: usize = 4 << 20;

/// Asks the system to back the room of a vector with large pages, before anything is in it. Each row of an array may lie in a
/// page of its own: with large ones the processor finds most of them without a walk through its tables, and fetches ahead
/// further. Systems that have none, or give none, leave everything as it is.
#[cfg(target_os = "linux")]
fn ask_for_large_pages(storage: &mut Vec<u8>) {
    let room = storage.spare_capacity_mut();
    if room.len() < LARGE {
        return;
    }
    // The system's pages are at least this large; larger ones make it refuse, which is no harm.
    let start = room.as_ptr().align_offset(PAGE);
    let bytes = room.len().saturating_sub(start) / PAGE * PAGE;
    // SAFETY: the range lies within the vector's own memory, and the advice changes nothing that can be read.
    unsafe {
        let from = room.as_mut_ptr().add(start);
        libc::madvise(from.cast(), bytes, libc::MADV_HUGEPAGE);
    }
}

#[cfg(not(target_os = "linux"))]
fn ask_for_large_pages(_storage: &mut Vec<u8>) {}

/// Bytes or values that do not make an array.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ArrayError {
    /// Too few or too many of them for the shape.
    #[error("an array of {dtype} with shape {shape:?} has {expected} {unit}, and {got} are given")]
    Count {
        /// The dtype.
        dtype: DType,
        /// The shape.
        shape: Vec<usize>,
        /// `bytes` or `values`.
        unit: &'static str,
        /// How many the shape asks for.
        expected: usize,
        /// How many there are.
        got: usize,
    },
    /// A value of another dtype.
    #[error("a value of {got} in an array of {expected}")]
    Value {
        /// The array's dtype.
        expected: DType,
        /// The value's.
        got: DType,
    },
    /// More bytes than there is memory for.
    #[error("there is no memory for an array of {dtype} with shape {shape:?}")]
    Memory {
        /// The dtype.
        dtype: DType,
        /// The shape.
        shape: Vec<usize>,
    },
}

impl Array {
    /// An array of zeros.
    pub fn zeros(dtype: DType, shape: &[usize]) -> Result<Array, ArrayError> {
        let memory = || ArrayError::Memory {
            dtype,
            shape: shape.to_vec(),
        };
        let count = count(shape).ok_or_else(memory)?;
        let bytes = count.checked_mul(dtype.bytes()).ok_or_else(memory)?;
        let alignment = match bytes >= PAGE_ALIGNED {
            true => PAGE,
            false => ALIGNMENT,
        };
        let room = bytes.checked_add(alignment - 1).ok_or_else(memory)?;
        let mut storage: Vec<u8> = Vec::new();
        storage.try_reserve_exact(room).map_err(|_| memory())?;
        ask_for_large_pages(&mut storage);
        storage.resize(room, 0);
        let start = storage.as_ptr().align_offset(alignment);
        // The only pointers that cannot be aligned are those of compile-time evaluation.
        assert!(start < alignment, "a byte pointer can be aligned");
        let room = storage;
        Ok(Array {
            dtype,
            shape: shape.to_vec(),
            storage: Storage::Own { room, start },
            bytes,
        })
    }

    /// An array in memory that somebody else keeps, used where it lies. It is copied before it is written, and at once if
    /// it holds bytes that are no elements of the dtype ([`DType::normalise`]).
    ///
    /// # Safety
    /// The address is that of the first of as many bytes as an array of that dtype and shape has, aligned for an
    /// element. They stay there, and nobody writes them, until `owner` is dropped, which the array does when it goes.
    /// Where others might write booleans after all, they are to be copied instead ([`Array::from_bytes`]).
    pub unsafe fn foreign(
        dtype: DType,
        shape: &[usize],
        address: *const u8,
        owner: Box<dyn Any + Send + Sync>,
    ) -> Result<Array, ArrayError> {
        let bytes = count(shape).and_then(|count| count.checked_mul(dtype.bytes()));
        let bytes = bytes.filter(|bytes| isize::try_from(*bytes).is_ok());
        let bytes = bytes.ok_or_else(|| ArrayError::Memory {
            dtype,
            shape: shape.to_vec(),
        })?;
        let foreign = Foreign {
            address,
            _owner: owner,
        };
        let mut array = Array {
            dtype,
            shape: shape.to_vec(),
            storage: Storage::Foreign(foreign),
            bytes,
        };
        array.normalise();
        Ok(array)
    }

    /// Whether it lies in memory that somebody else keeps ([`Array::foreign`]).
    pub fn is_foreign(&self) -> bool {
        matches!(self.storage, Storage::Foreign(_))
    }

    /// Makes all bytes elements of the dtype: for whoever fills [`bytes_mut`](Array::bytes_mut) with bytes from outside. See
    /// [`DType::normalise`].
    pub fn normalise(&mut self) {
        let dtype = self.dtype;
        if !dtype.holds_only_values(self.bytes()) {
            dtype.normalise(self.bytes_mut());
        }
    }

    /// An array of these bytes, each element least significant byte first. Bytes of a `bool` that are not 0 become 1.
    pub fn from_bytes(dtype: DType, shape: &[usize], bytes: &[u8]) -> Result<Array, ArrayError> {
        let mut array = Array::zeros(dtype, shape)?;
        if bytes.len() != array.bytes {
            return Err(ArrayError::Count {
                dtype,
                shape: shape.to_vec(),
                unit: "bytes",
                expected: array.bytes,
                got: bytes.len(),
            });
        }
        array.bytes_mut().copy_from_slice(bytes);
        array.normalise();
        Ok(array)
    }

    /// An array of these values, in row-major order.
    pub fn from_scalars(
        dtype: DType,
        shape: &[usize],
        values: &[Scalar],
    ) -> Result<Array, ArrayError> {
        let mut array = Array::zeros(dtype, shape)?;
        if values.len() != array.len() {
            return Err(ArrayError::Count {
                dtype,
                shape: shape.to_vec(),
                unit: "values",
                expected: array.len(),
                got: values.len(),
            });
        }
        for (at, value) in values.iter().enumerate() {
            if value.dtype() != dtype {
                return Err(ArrayError::Value {
                    expected: dtype,
                    got: value.dtype(),
                });
            }
            array.set_flat(at, *value);
        }
        Ok(array)
    }

    /// An array of numbers converted to `dtype`, as [`Scalar::from_f64`] does.
    pub fn from_f64(dtype: DType, shape: &[usize], values: &[f64]) -> Result<Array, ArrayError> {
        let scalars: Vec<Scalar> = values
            .iter()
            .map(|value| Scalar::from_f64(dtype, *value))
            .collect();
        Array::from_scalars(dtype, shape, &scalars)
    }

    /// The dtype of its elements.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Its size along each dimension.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// How many elements it has.
    pub fn len(&self) -> usize {
        self.bytes / self.dtype.bytes()
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// How many elements apart two neighbours along each dimension are.
    pub fn strides(&self) -> Vec<usize> {
        let mut strides = vec![1; self.shape.len()];
        for at in (1..self.shape.len()).rev() {
            strides[at - 1] = strides[at] * self.shape[at].max(1);
        }
        strides
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        match &self.storage {
            Storage::Own { room, start } => &room[*start..*start + self.bytes],
            Storage::Foreign(_) if self.bytes == 0 => &[],
            // SAFETY: so many bytes lie there, and nobody writes them, as whoever gave them has said.
            Storage::Foreign(foreign) => unsafe {
                std::slice::from_raw_parts(foreign.address, self.bytes)
            },
        }
    }

    /// Its bytes, to be written. What comes from outside is [normalised](Array::normalise) afterwards.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        if let Storage::Foreign(_) = self.storage {
            *self = self.clone();
        }
        match &mut self.storage {
            Storage::Own { room, start } => &mut room[*start..*start + self.bytes],
            Storage::Foreign(_) => unreachable!("a copy has memory of its own"),
        }
    }

    /// The element at an index for each dimension.
    ///
    /// # Panics
    /// If there are too few or too many indices, or one is out of range.
    pub fn get(&self, index: &[usize]) -> Scalar {
        assert_eq!(index.len(), self.shape.len(), "one index a dimension");
        let mut flat = 0;
        for (index, size) in index.iter().zip(&self.shape) {
            assert!(index < size, "index {index} is outside 0..{size}");
            flat = flat * size + index;
        }
        self.get_flat(flat)
    }

    /// The element at a position in row-major order.
    ///
    /// # Panics
    /// If there is none.
    pub fn get_flat(&self, at: usize) -> Scalar {
        let width = self.dtype.bytes();
        Scalar::read(self.dtype, &self.bytes()[at * width..])
    }

    /// Writes the element at a position in row-major order.
    ///
    /// # Panics
    /// If there is none, or the value is of another dtype.
    pub fn set_flat(&mut self, at: usize, value: Scalar) {
        assert_eq!(value.dtype(), self.dtype, "an array holds one dtype");
        let width = self.dtype.bytes();
        value.write(&mut self.bytes_mut()[at * width..(at + 1) * width]);
    }

    /// All elements in row-major order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Scalar> + '_ {
        let chunks = self.bytes().chunks_exact(self.dtype.bytes());
        chunks.map(|bytes| Scalar::read(self.dtype, bytes))
    }

    /// All elements in row-major order as `f64`.
    pub fn to_f64(&self) -> Vec<f64> {
        self.iter().map(Scalar::to_f64).collect()
    }
}

/// How many elements a shape has; `None` if that overflows.
fn count(shape: &[usize]) -> Option<usize> {
    // A zero anywhere makes the array empty, however large the rest.
    if shape.contains(&0) {
        return Some(0);
    }
    shape
        .iter()
        .try_fold(1usize, |count, size| count.checked_mul(*size))
}

impl Clone for Array {
    /// A copy with an aligned place of its own.
    fn clone(&self) -> Array {
        match Array::from_bytes(self.dtype, &self.shape, self.bytes()) {
            Ok(array) => array,
            Err(error) => panic!("an array of this shape exists already: {error}"),
        }
    }
}

/// The same dtype, shape and bits.
impl PartialEq for Array {
    fn eq(&self, other: &Array) -> bool {
        self.dtype == other.dtype && self.shape == other.shape && self.bytes() == other.bytes()
    }
}

impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?} [", self.dtype, self.shape)?;
        for (at, value) in self.iter().take(64).enumerate() {
            write!(f, "{}{value}", if at > 0 { ", " } else { "" })?;
        }
        f.write_str(if self.len() > 64 { ", ..]" } else { "]" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_aligned_and_clones_are_too() {
        for size in [0, 1, 3, 1000] {
            let array = Array::zeros(DType::F32, &[size]).expect("little memory is needed");
            let copy = array.clone();
            for array in [&array, &copy] {
                assert_eq!(array.bytes().as_ptr() as usize % ALIGNMENT, 0);
                assert_eq!(array.len(), size);
            }
        }
    }

    #[test]
    fn foreign_memory_is_read_where_it_lies_and_copied_to_be_written() {
        let owner = std::sync::Arc::new([1.5f32, 2.5, 3.5]);
        let kept = Box::new(std::sync::Arc::clone(&owner));
        // SAFETY: the elements stay where they are as long as someone holds them, and nobody writes them.
        let array = unsafe { Array::foreign(DType::F32, &[3], owner.as_ptr().cast(), kept) };
        let mut array = array.expect("its size is known");
        assert_eq!(array.bytes().as_ptr(), owner.as_ptr().cast());
        array.set_flat(1, Scalar::f32(7.0));
        assert_eq!(array.to_f64(), [1.5, 7.0, 3.5]);
        assert_eq!(*owner, [1.5, 2.5, 3.5]);
        // With the copy, nothing of it is held any more.
        assert_eq!(std::sync::Arc::strong_count(&owner), 1);
    }

    #[test]
    fn bytes_of_a_boolean_that_are_not_0_become_1_wherever_they_enter() {
        let bytes = std::sync::Arc::new([0u8, 1, 2, 255, 128]);
        let array = Array::from_bytes(DType::Bool, &[5], &*bytes).expect("five bytes");
        assert_eq!(array.bytes(), [0, 1, 1, 1, 1]);
        let kept = Box::new(std::sync::Arc::clone(&bytes));
        // SAFETY: the bytes stay where they are as long as someone holds them, and nobody writes them.
        let array = unsafe { Array::foreign(DType::Bool, &[5], bytes.as_ptr(), kept) };
        let mut array = array.expect("its size is known");
        assert_eq!(array.bytes(), [0, 1, 1, 1, 1]);
        array.bytes_mut()[0] = 7;
        array.normalise();
        assert_eq!(array.bytes(), [1, 1, 1, 1, 1]);
        // What holds nothing else is not copied, and other dtypes keep every byte.
        let plain = Array::from_bytes(DType::U8, &[5], &*bytes).expect("five bytes");
        assert_eq!(plain.bytes(), *bytes);
    }

    #[test]
    fn foreign_memory_larger_than_the_address_space_is_refused() {
        // SAFETY: it is refused before anything is read.
        let array =
            unsafe { Array::foreign(DType::U8, &[1 << 62, 2], std::ptr::null(), Box::new(())) };
        assert!(matches!(array, Err(ArrayError::Memory { .. })));
    }

    #[test]
    fn elements_are_row_major() {
        let values: Vec<f64> = (0..6).map(f64::from).collect();
        let array = Array::from_f64(DType::F16, &[2, 3], &values).expect("six values");
        assert_eq!(array.get(&[1, 0]).to_f64(), 3.0);
        assert_eq!(array.strides(), [3, 1]);
        assert_eq!(array.to_f64(), values);
    }

    #[test]
    fn errors_say_what_is_wrong() {
        let error = Array::from_f64(DType::F32, &[2], &[1.0]).expect_err("one value is missing");
        assert_eq!(
            error.to_string(),
            "an array of f32 with shape [2] has 2 values, and 1 are given"
        );
        let huge = Array::zeros(DType::F32, &[1 << 40, 1 << 40]);
        assert!(matches!(huge, Err(ArrayError::Memory { .. })));
    }
}
