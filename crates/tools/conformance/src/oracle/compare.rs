//! Comparing results.

use crate::generate::Arithmetic;
use loopwright_graph::Array;
use loopwright_ops::{DType, Scalar, same_value};
use std::fmt;

/// An element that is not what it should be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Element {
    /// The output, or the state after the run.
    pub array: String,
    /// Its dtype.
    pub dtype: DType,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Where the element stands.
    pub index: Vec<usize>,
    /// What it should be.
    pub expected: Scalar,
    /// What it is; `None` for a `bool` that is neither 0 nor 1.
    pub got: Option<Scalar>,
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let index: Vec<String> = self.index.iter().map(usize::to_string).collect();
        write!(
            f,
            "`{}`[{}] of {}{:?}: expected {} (bits {:#x}), got ",
            self.array,
            index.join(", "),
            self.dtype,
            self.shape,
            self.expected,
            self.expected.bits(),
        )?;
        match self.got {
            Some(got) => write!(f, "{got} (bits {:#x})", got.bits()),
            None => f.write_str("a byte that is no bool"),
        }
    }
}

/// Whether two elements agree. In [`Arithmetic::Rounded`] others may agree too.
pub(super) fn agree(expected: Scalar, got: Scalar, arithmetic: Arithmetic) -> bool {
    match arithmetic {
        Arithmetic::Strict | Arithmetic::Rounded { .. } => same_value(expected, got),
        Arithmetic::Whole => {
            same_value(expected, got)
                || expected.dtype().is_float() && expected.to_f64() == got.to_f64()
        }
    }
}

/// The first element of an array for which `agree`, given its place, what is expected and what is got,
/// does not hold.
pub(super) fn first_difference(
    name: &str,
    expected: &Array,
    got: &[u8],
    agree: impl Fn(usize, Scalar, Scalar) -> bool,
) -> Option<Element> {
    let dtype = expected.dtype();
    // Most results agree bit for bit.
    if expected.bytes() == got {
        return None;
    }
    let elements = expected.iter().zip(got.chunks_exact(dtype.bytes()));
    let mut elements = elements
        .map(|(expected, bytes)| (expected, raw(dtype, bytes)))
        .enumerate();
    let (flat, (wanted, got)) =
        elements.find(|(at, (expected, got))| got.is_none_or(|got| !agree(*at, *expected, got)))?;
    let mut rest = flat;
    let mut index = vec![0; expected.shape().len()];
    for (place, size) in index.iter_mut().zip(expected.shape()).rev() {
        *place = rest % size;
        rest /= size;
    }
    Some(Element {
        array: name.to_owned(),
        dtype,
        shape: expected.shape().to_vec(),
        index,
        expected: wanted,
        got,
    })
}

/// The element these bytes hold; `None` for a `bool` that is neither 0 nor 1.
fn raw(dtype: DType, bytes: &[u8]) -> Option<Scalar> {
    if dtype == DType::Bool && bytes[0] > 1 {
        return None;
    }
    Some(Scalar::read(dtype, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use loopwright_ops::DType;

    fn array(values: &[f64]) -> Array {
        Array::from_f64(DType::F32, &[values.len()], values).expect("it fits")
    }

    fn first(expected: &Array, got: &[u8], arithmetic: Arithmetic) -> Option<Element> {
        first_difference("c", expected, got, |_, expected, got| {
            agree(expected, got, arithmetic)
        })
    }

    #[test]
    fn zeros_differ_only_in_strict_arithmetic() {
        let (expected, got) = (array(&[1.0, 0.0]), array(&[1.0, -0.0]));
        let first = |arithmetic| first(&expected, got.bytes(), arithmetic).map(|e| e.index);
        assert_eq!(first(Arithmetic::Strict), Some(vec![1]));
        assert_eq!(first(Arithmetic::Whole), None);
    }

    #[test]
    fn any_two_nans_agree_and_nothing_else_agrees_with_one() {
        let expected = array(&[f64::NAN]);
        let other = Array::from_scalars(
            DType::F32,
            &[1],
            &[Scalar::from_bits(DType::F32, 0xffc0_0001)],
        )
        .expect("it fits");
        assert_eq!(first(&expected, other.bytes(), Arithmetic::Strict), None);
        let number = array(&[1.0]);
        assert!(first(&expected, number.bytes(), Arithmetic::Whole).is_some());
    }

    #[test]
    fn a_bool_is_zero_or_one() {
        let expected =
            Array::from_scalars(DType::Bool, &[1], &[Scalar::bool(true)]).expect("it fits");
        let element = first(&expected, &[2], Arithmetic::Strict).expect("it differs");
        assert_eq!(element.got, None);
        let message = element.to_string();
        assert!(message.contains("a byte that is no bool"), "{message}");
    }

    #[test]
    fn the_message_has_place_and_values() {
        let expected =
            Array::from_f64(DType::F32, &[2, 2], &[1.0, 2.0, 3.0, 4.0]).expect("it fits");
        let got = Array::from_f64(DType::F32, &[2, 2], &[1.0, 2.0, 5.0, 4.0]).expect("it fits");
        let element = first(&expected, got.bytes(), Arithmetic::Strict);
        let message = element.expect("an element differs").to_string();
        assert!(
            message.starts_with("`c`[1, 0] of f32[2, 2]: expected 3"),
            "{message}"
        );
    }
}
