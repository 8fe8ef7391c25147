//! Arrays as text.

use super::{Array, Value};
use crate::errors::TracedError;
use loopwright_ops::{Kind, Scalar};
use pyo3::prelude::*;
use std::fmt::Write;

/// So many elements are shown before the middle is left out.
const MOST: usize = 1000;
/// So many rows are shown at each end then.
const ENDS: usize = 3;

/// The elements, as `numpy` users know them.
pub(super) fn text(py: Python<'_>, array: &Array) -> PyResult<String> {
    written(py, array, 0).map(|text| text.unwrap_or_else(|| unknown(&array.value())))
}

/// The array as an expression.
pub(super) fn repr(py: Python<'_>, array: &Array) -> PyResult<String> {
    let Some(elements) = written(py, array, "Array(".len())? else {
        return Ok(unknown(&array.value()));
    };
    let value = array.value();
    let mut text = format!("Array({elements}, dtype={}", value.dtype().name());
    if value.sizes()?.contains(&0) && value.rank() > 1 {
        let _ = write!(text, ", shape={:?}", value.sizes()?);
    }
    text.push(')');
    Ok(text)
}

/// What is known of an array in a function that is traced.
fn unknown(value: &Value) -> String {
    format!(
        "Array(traced, {}{})",
        value.dtype().name(),
        value.re.shape()
    )
}

/// The elements in brackets, rows below each other; nothing where they are not known.
fn written(py: Python<'_>, array: &Array, indent: usize) -> PyResult<Option<String>> {
    let parts = match array.host(py) {
        Ok(parts) => parts,
        Err(error) if error.is_instance_of::<TracedError>(py) => return Ok(None),
        Err(error) => return Err(error),
    };
    let shape = parts[0].shape();
    let shorten = parts[0].len() > MOST;
    let element = |at: usize| match &parts[..] {
        [re, im] => {
            let (re, im) = (number(re.get_flat(at)), number(im.get_flat(at)));
            match im.starts_with('-') {
                true => format!("{re}{im}j"),
                false => format!("{re}+{im}j"),
            }
        }
        _ => number(parts[0].get_flat(at)),
    };
    // All shown elements are as wide as the widest.
    let mut shown = Vec::new();
    places(shape, 0, shorten, &mut shown);
    let texts = points_aligned(shown.iter().map(|at| element(*at)).collect());
    let width = texts.iter().map(String::len).max().unwrap_or(0);
    let mut texts = texts.into_iter();
    let mut text = String::new();
    rows(shape, shorten, indent, width, &mut texts, &mut text);
    Ok(Some(text))
}

/// Numbers with as many places behind the point, filled up with spaces.
fn points_aligned(texts: Vec<String>) -> Vec<String> {
    let behind = |text: &String| text.len() - text.find('.').map_or(text.len(), |at| at + 1);
    let has_other = |text: &String| text.contains(['e', 'j']);
    if texts.iter().any(has_other) || !texts.iter().any(|text| text.contains('.')) {
        return texts;
    }
    let most = texts.iter().map(behind).max().unwrap_or(0);
    let fill = |text: String| match text.contains('.') {
        true => format!("{text}{}", " ".repeat(most - behind(&text))),
        false => text,
    };
    texts.into_iter().map(fill).collect()
}

/// A number as Python writes it.
fn number(value: Scalar) -> String {
    match value.dtype().kind() {
        Kind::Bool => if value.is_true() { "True" } else { "False" }.to_owned(),
        Kind::Unsigned => value.bits().to_string(),
        Kind::Signed => value.as_i64().unwrap_or_default().to_string(),
        Kind::Float => {
            let wide = value.to_f64();
            match value.dtype() {
                loopwright_ops::DType::F64 => float(wide, &format!("{wide:?}")),
                _ => float(wide, &format!("{:?}", wide as f32)),
            }
        }
    }
}

fn float(value: f64, text: &str) -> String {
    match value {
        _ if value.is_nan() => "nan".to_owned(),
        f64::INFINITY => "inf".to_owned(),
        f64::NEG_INFINITY => "-inf".to_owned(),
        _ => text
            .strip_suffix(".0")
            .map_or_else(|| text.to_owned(), |whole| format!("{whole}.")),
    }
}

/// Which rows of so many are shown; `None` stands for those left out.
fn picked(count: usize, shorten: bool) -> Vec<Option<usize>> {
    if !shorten || count <= 2 * ENDS {
        return (0..count).map(Some).collect();
    }
    let first = (0..ENDS).map(Some);
    let last = (count - ENDS..count).map(Some);
    first.chain([None]).chain(last).collect()
}

/// The places of the elements that are shown, in their order.
fn places(shape: &[usize], from: usize, shorten: bool, into: &mut Vec<usize>) {
    let Some((count, rest)) = shape.split_first() else {
        into.push(from);
        return;
    };
    let step: usize = rest.iter().product();
    for row in picked(*count, shorten).into_iter().flatten() {
        places(rest, from + row * step, shorten, into);
    }
}

fn rows(
    shape: &[usize],
    shorten: bool,
    indent: usize,
    width: usize,
    elements: &mut impl Iterator<Item = String>,
    text: &mut String,
) {
    let Some((count, rest)) = shape.split_first() else {
        let element = elements.next().unwrap_or_default();
        let _ = write!(text, "{element:>width$}");
        return;
    };
    text.push('[');
    let separator = match rest.len() {
        0 => ", ".to_owned(),
        deep => format!(",{}{}", "\n".repeat(deep), " ".repeat(indent + 1)),
    };
    let mut column = 0;
    for (at, row) in picked(*count, shorten).into_iter().enumerate() {
        if at > 0 {
            text.push_str(&separator);
        }
        if rest.is_empty() {
            column += width + 2;
            if at > 0 && column + indent > 90 {
                text.truncate(text.trim_end().len());
                let _ = write!(text, "\n{}", " ".repeat(indent + 1));
                column = width + 2;
            }
        }
        match row {
            Some(_) => rows(rest, shorten, indent + 1, width, elements, text),
            None => text.push_str("..."),
        }
    }
    text.push(']');
}
