//! Comparing results.

use crate::generate::Arithmetic;
use loopwright_graph::Array;
use loopwright_ops::{Scalar, same_value};

/// Whether two elements agree.
fn agree(expected: Scalar, got: Scalar, arithmetic: Arithmetic) -> bool {
    match arithmetic {
        Arithmetic::Strict => same_value(expected, got),
        Arithmetic::Whole => {
            same_value(expected, got)
                || expected.dtype().is_float() && expected.to_f64() == got.to_f64()
        }
    }
}

/// The place of the first element that differs from the expected one, and what stands there.
pub fn first_difference(
    expected: &Array,
    got: &[u8],
    arithmetic: Arithmetic,
) -> Option<(usize, Scalar)> {
    let dtype = expected.dtype();
    // Most results agree bit for bit.
    if expected.bytes() == got {
        return None;
    }
    let elements = expected.iter().zip(got.chunks_exact(dtype.bytes()));
    elements
        .map(|(expected, bytes)| (expected, raw(expected, bytes)))
        .enumerate()
        .find(|(_, (expected, got))| got.is_none_or(|got| !agree(*expected, got, arithmetic)))
        .map(|(at, (expected, got))| (at, got.unwrap_or(expected)))
}

/// The element these bytes hold; `None` for a `bool` that is neither 0 nor 1.
fn raw(like: Scalar, bytes: &[u8]) -> Option<Scalar> {
    use loopwright_ops::DType;
    if like.dtype() == DType::Bool && bytes[0] > 1 {
        return None;
    }
    Some(Scalar::read(like.dtype(), bytes))
}

/// The first difference in words.
pub(super) fn describe_difference(
    name: &str,
    expected: &Array,
    got: &[u8],
    arithmetic: Arithmetic,
) -> Option<String> {
    let (flat, value) = first_difference(expected, got, arithmetic)?;
    let mut rest = flat;
    let mut index = Vec::new();
    for size in expected.shape().iter().rev() {
        index.push((rest % size).to_string());
        rest /= size;
    }
    index.reverse();
    let wanted = expected.get_flat(flat);
    let got = if same_value(wanted, value) {
        let byte = got[flat];
        format!("the byte {byte}, which is no bool")
    } else {
        format!("{value} (bits {:#x})", value.bits())
    };
    Some(format!(
        "`{name}`[{}] of {}{:?}: expected {wanted} (bits {:#x}), got {got}",
        index.join(", "),
        expected.dtype(),
        expected.shape(),
        wanted.bits(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use loopwright_ops::DType;

    fn array(values: &[f64]) -> Array {
        Array::from_f64(DType::F32, &[values.len()], values).expect("it fits")
    }

    #[test]
    fn zeros_differ_only_in_strict_arithmetic() {
        let (expected, got) = (array(&[1.0, 0.0]), array(&[1.0, -0.0]));
        let first =
            |arithmetic| first_difference(&expected, got.bytes(), arithmetic).map(|(at, _)| at);
        assert_eq!(first(Arithmetic::Strict), Some(1));
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
        assert_eq!(
            first_difference(&expected, other.bytes(), Arithmetic::Strict),
            None
        );
        let number = array(&[1.0]);
        assert!(first_difference(&expected, number.bytes(), Arithmetic::Whole).is_some());
    }

    #[test]
    fn a_bool_is_zero_or_one() {
        let expected =
            Array::from_scalars(DType::Bool, &[1], &[Scalar::bool(true)]).expect("it fits");
        let message = describe_difference("b", &expected, &[2], Arithmetic::Strict);
        assert!(message.is_some_and(|message| message.contains("the byte 2, which is no bool")));
    }

    #[test]
    fn the_message_has_place_and_values() {
        let expected =
            Array::from_f64(DType::F32, &[2, 2], &[1.0, 2.0, 3.0, 4.0]).expect("it fits");
        let got = Array::from_f64(DType::F32, &[2, 2], &[1.0, 2.0, 5.0, 4.0]).expect("it fits");
        let message = describe_difference("c", &expected, got.bytes(), Arithmetic::Strict);
        let message = message.expect("an element differs");
        assert!(
            message.starts_with("`c`[1, 0] of f32[2, 2]: expected 3"),
            "{message}"
        );
    }
}
