//! Arrays in notebooks.

use super::Array;
use loopwright_ops::Kind;
use pyo3::prelude::*;
use std::fmt::Write;

/// A table has at most so many rows and columns.
const MOST: usize = 12;

/// An array of one or two axes as a table with the cells shaded by their values; others as text.
pub(super) fn html(py: Python<'_>, array: &Array) -> PyResult<String> {
    let value = array.value();
    let title = format!(
        "Array · {}{} · {}",
        value.dtype().name(),
        value.re.shape(),
        value.session.device().name()
    );
    let mut page = format!(
        "<div style=\"font:13px monospace\"><div style=\"opacity:.6\">{}</div>",
        escaped(&title)
    );
    let sizes = value.sizes().unwrap_or_default();
    match (sizes.len(), value.im.is_none()) {
        (1 | 2, true) => table(py, array, &mut page)?,
        _ => {
            let text = super::display::text(py, array)?;
            let _ = write!(page, "<pre style=\"margin:0\">{}</pre>", escaped(&text));
        }
    }
    page.push_str("</div>");
    Ok(page)
}

fn table(py: Python<'_>, array: &Array, page: &mut String) -> PyResult<()> {
    let elements = array.host(py)?;
    let elements = &elements[0];
    let (rows, columns) = match *elements.shape() {
        [columns] => (1, columns),
        [rows, columns] => (rows, columns),
        _ => return Ok(()),
    };
    let names = array.value();
    let names: Vec<String> = names
        .re
        .shape()
        .axes()
        .iter()
        .map(|axis| axis.name.as_deref().unwrap_or("").to_owned())
        .collect();
    if names.iter().any(|name| !name.is_empty()) {
        let _ = write!(page, "<div>{}</div>", escaped(&names.join(" × ")));
    }
    let numbers = || elements.iter().map(|value| value.to_f64());
    let finite = || numbers().filter(|value| value.is_finite());
    let low = finite().fold(f64::INFINITY, f64::min);
    let high = finite().fold(f64::NEG_INFINITY, f64::max);
    let is_float = elements.dtype().kind() == Kind::Float;
    let (row_list, column_list) = (picked(rows), picked(columns));
    page.push_str("<table style=\"border-collapse:collapse\">");
    for row in &row_list {
        page.push_str("<tr>");
        for column in &column_list {
            let (Some(row), Some(column)) = (row, column) else {
                page.push_str("<td style=\"padding:1px 6px\">…</td>");
                continue;
            };
            let element = elements.get_flat(row * columns + column);
            let number = element.to_f64();
            let shade = match high > low && number.is_finite() {
                true => (number - low) / (high - low),
                false => 0.0,
            };
            let text = match is_float {
                true => format!("{number:.4}"),
                false => element.to_string(),
            };
            let _ = write!(
                page,
                "<td style=\"padding:1px 6px;text-align:right;background:rgba(64,120,200,{:.2})\">{}</td>",
                shade * 0.45,
                escaped(&text)
            );
        }
        page.push_str("</tr>");
    }
    page.push_str("</table>");
    Ok(())
}

/// Which of so many are shown; `None` stands for those left out.
fn picked(count: usize) -> Vec<Option<usize>> {
    if count <= MOST {
        return (0..count).map(Some).collect();
    }
    let half = MOST / 2;
    let last = (count - half..count).map(Some);
    (0..half).map(Some).chain([None]).chain(last).collect()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
