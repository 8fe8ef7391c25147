//! Arrays as people look at them: what they are, a few values, and a summary of all.

use loopwright::graph::Array;
use loopwright::ops::{DType, Kind, Scalar};
use serde_json::{Value, json};

/// `f32[2, 3]`, or `f32` for a scalar, as programs declare them.
pub(crate) fn describe(dtype: DType, shape: &[usize]) -> String {
    match shape {
        [] => dtype.to_string(),
        shape => format!("{dtype}{shape:?}"),
    }
}

/// What all values of an array have in common.
pub(crate) enum Summary {
    /// No values.
    Empty,
    /// How many are true.
    Truths { set: usize, all: usize },
    /// Exact extremes and the mean.
    Integers { min: i128, max: i128, mean: f64 },
    /// Extremes and mean of the numbers; how many are none.
    Floats {
        min: f64,
        max: f64,
        mean: f64,
        nans: usize,
    },
}

impl Summary {
    pub(crate) fn of(array: &Array) -> Summary {
        let count = array.len();
        if count == 0 {
            return Summary::Empty;
        }
        match array.dtype().kind() {
            Kind::Bool => Summary::Truths {
                set: array.iter().filter(|value| value.is_true()).count(),
                all: count,
            },
            Kind::Signed | Kind::Unsigned => {
                let (mut min, mut max, mut sum) = (i128::MAX, i128::MIN, 0);
                for value in array.iter() {
                    let value = exact(value);
                    min = min.min(value);
                    max = max.max(value);
                    sum += value;
                }
                let mean = sum as f64 / count as f64;
                Summary::Integers { min, max, mean }
            }
            Kind::Float => {
                let (mut min, mut max, mut sum) = (f64::INFINITY, f64::NEG_INFINITY, 0.0);
                let mut nans = 0;
                for value in array.iter() {
                    let value = match array.dtype() {
                        DType::F32 => f32::from_bits(value.bits() as u32).into(),
                        _ => value.to_f64(),
                    };
                    if value.is_nan() {
                        nans += 1;
                        continue;
                    }
                    min = min.min(value);
                    max = max.max(value);
                    sum += value;
                }
                let mean = sum / (count - nans) as f64;
                if nans == count {
                    (min, max) = (f64::NAN, f64::NAN);
                }
                Summary::Floats {
                    min,
                    max,
                    mean,
                    nans,
                }
            }
        }
    }

    /// In words.
    pub(crate) fn text(&self) -> String {
        match self {
            Summary::Empty => "no values".to_owned(),
            Summary::Truths { set, all } => format!("{set} of {all} true"),
            Summary::Integers { min, max, mean } => {
                format!("min {min}  max {max}  mean {}", short(*mean))
            }
            Summary::Floats {
                min,
                max,
                mean,
                nans,
            } => {
                let text = format!(
                    "min {}  max {}  mean {}",
                    short(*min),
                    short(*max),
                    short(*mean)
                );
                match nans {
                    0 => text,
                    nans => format!("{text}  ({nans} nan)"),
                }
            }
        }
    }

    /// As members of a JSON object; what JSON has no number for is null.
    pub(crate) fn json(&self) -> Vec<(&'static str, Value)> {
        match self {
            Summary::Empty => Vec::new(),
            Summary::Truths { set, .. } => vec![("true", json!(set))],
            Summary::Integers { min, max, mean } => vec![
                ("min", integer(*min)),
                ("max", integer(*max)),
                ("mean", json!(mean)),
            ],
            Summary::Floats {
                min,
                max,
                mean,
                nans,
            } => vec![
                ("min", json!(min)),
                ("max", json!(max)),
                ("mean", json!(mean)),
                ("nan", json!(nans)),
            ],
        }
    }
}

fn integer(value: i128) -> Value {
    match (i64::try_from(value), u64::try_from(value)) {
        (Ok(value), _) => json!(value),
        (_, Ok(value)) => json!(value),
        _ => Value::Null,
    }
}

fn exact(value: Scalar) -> i128 {
    match value.dtype().kind() {
        Kind::Signed => value.as_i64().unwrap_or(0).into(),
        _ => value.bits().into(),
    }
}

/// A number in few characters.
fn short(value: f64) -> String {
    let magnitude = value.abs();
    if value == 0.0 || !value.is_finite() {
        return format!("{value}").to_lowercase();
    }
    if (1e-3..1e7).contains(&magnitude) {
        let text = format!("{value:.4}");
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    format!("{value:.3e}")
}

/// Along the last two dimensions, this many values from each end are shown of more than twice as
/// many and one.
const ENDS: usize = 3;

/// The values, in lines, long dimensions shortened.
pub(crate) fn preview(array: &Array) -> Vec<String> {
    let shown = Shown {
        array,
        strides: array.strides(),
    };
    let mut places = Vec::new();
    if array.is_empty() {
        return vec!["[]".to_owned()];
    }
    shown.collect(0, 0, &mut places);
    let values: Vec<Scalar> = places.iter().map(|at| array.get_flat(*at)).collect();
    let cells = cells(&values);
    let mut lines = Vec::new();
    let mut cells = cells.into_iter();
    shown.lines(0, 0, "", &mut cells, &mut lines);
    lines
}

struct Shown<'a> {
    array: &'a Array,
    strides: Vec<usize>,
}

impl Shown<'_> {
    /// The indices shown along a dimension; `None` stands for those left out.
    fn indices(&self, dim: usize) -> Vec<Option<usize>> {
        let shape = self.array.shape();
        let size = shape[dim];
        // Of the outer dimensions of many a single block says enough.
        let (head, tail) = if dim + 2 < shape.len() {
            if size <= 2 { (size, 0) } else { (1, 0) }
        } else if size <= 2 * ENDS + 1 {
            (size, 0)
        } else {
            (ENDS, ENDS)
        };
        let mut indices: Vec<Option<usize>> = (0..head).map(Some).collect();
        if head + tail < size {
            indices.push(None);
            indices.extend((size - tail..size).map(Some));
        }
        indices
    }

    fn collect(&self, dim: usize, at: usize, places: &mut Vec<usize>) {
        if dim == self.strides.len() {
            places.push(at);
            return;
        }
        for index in self.indices(dim).into_iter().flatten() {
            self.collect(dim + 1, at + index * self.strides[dim], places);
        }
    }

    fn lines(
        &self,
        dim: usize,
        depth: usize,
        opening: &str,
        cells: &mut impl Iterator<Item = String>,
        lines: &mut Vec<String>,
    ) {
        let rank = self.strides.len();
        if rank == 0 {
            lines.extend(cells.next());
            return;
        }
        let indices = self.indices(dim);
        let opening = format!("{opening}[");
        if dim + 1 == rank {
            let row: Vec<String> = indices
                .iter()
                .map(|index| match index {
                    Some(_) => cells.next().unwrap_or_default(),
                    None => "...".to_owned(),
                })
                .collect();
            lines.push(format!("{opening}{}]", row.join(" ")));
            return;
        }
        let indent = " ".repeat(depth + 1);
        for (place, index) in indices.iter().enumerate() {
            let before = if place == 0 { &opening } else { &indent };
            match index {
                Some(_) => self.lines(dim + 1, depth + 1, before, cells, lines),
                None => lines.push(format!("{indent}...")),
            }
        }
        if let Some(last) = lines.last_mut() {
            last.push(']');
        }
    }
}

/// Values as text, all equally wide.
fn cells(values: &[Scalar]) -> Vec<String> {
    let floats = values.iter().any(|value| value.dtype().is_float());
    let plain: Vec<String> = if floats {
        float_cells(
            &values
                .iter()
                .map(|value| value.to_f64())
                .collect::<Vec<_>>(),
        )
    } else {
        values.iter().map(Scalar::to_string).collect()
    };
    let width = plain.iter().map(String::len).max().unwrap_or(0);
    plain.iter().map(|cell| format!("{cell:>width$}")).collect()
}

fn float_cells(values: &[f64]) -> Vec<String> {
    let finite = || values.iter().filter(|value| value.is_finite());
    let largest = finite().fold(0.0f64, |largest, value| largest.max(value.abs()));
    let scientific = largest != 0.0 && !(1e-3..1e7).contains(&largest);
    // As many decimals as some value needs, at most four.
    let decimals = finite()
        .map(|value| {
            let text = format!("{value:.4}");
            let kept = text.trim_end_matches('0').len();
            4 - (text.len() - kept).min(4)
        })
        .max()
        .unwrap_or(0)
        .max(1);
    let cell = |value: &f64| {
        if !value.is_finite() {
            format!("{value}").to_lowercase()
        } else if scientific {
            format!("{value:.4e}")
        } else {
            format!("{value:.decimals$}")
        }
    };
    values.iter().map(cell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(dtype: DType, shape: &[usize]) -> Array {
        let count: usize = shape.iter().product();
        let values: Vec<f64> = (0..count).map(|at| at as f64).collect();
        Array::from_f64(dtype, shape, &values).expect("as many values as the shape has")
    }

    #[test]
    fn small_arrays_are_shown_whole() {
        assert_eq!(preview(&counted(DType::I32, &[])), ["0"]);
        assert_eq!(preview(&counted(DType::F32, &[2])), ["[0.0 1.0]"]);
        assert_eq!(preview(&counted(DType::U8, &[0, 3])), ["[]"]);
        let lines = preview(&counted(DType::I32, &[2, 6]));
        assert_eq!(lines, ["[[ 0  1  2  3  4  5]", " [ 6  7  8  9 10 11]]"]);
    }

    #[test]
    fn long_dimensions_are_shortened() {
        assert_eq!(
            preview(&counted(DType::I32, &[100])),
            ["[ 0  1  2 ... 97 98 99]"]
        );
        let lines = preview(&counted(DType::I32, &[9, 2]));
        assert_eq!(
            lines,
            [
                "[[ 0  1]",
                " [ 2  3]",
                " [ 4  5]",
                " ...",
                " [12 13]",
                " [14 15]",
                " [16 17]]"
            ]
        );
        let lines = preview(&counted(DType::I32, &[4, 2, 2]));
        assert_eq!(lines, ["[[[0 1]", "  [2 3]]", " ...]"]);
    }

    #[test]
    fn floats_line_up() {
        let cells = float_cells(&[0.5, -12.25, f64::NAN, f64::NEG_INFINITY]);
        assert_eq!(cells, ["0.50", "-12.25", "nan", "-inf"]);
        assert_eq!(float_cells(&[1e9, 1.0]), ["1.0000e9", "1.0000e0"]);
        assert_eq!(float_cells(&[0.0, 0.0]), ["0.0", "0.0"]);
    }

    #[test]
    fn summaries_count_what_is_no_number() {
        let array = Array::from_f64(DType::F16, &[3], &[1.0, f64::NAN, 2.5]).expect("three");
        assert_eq!(
            Summary::of(&array).text(),
            "min 1  max 2.5  mean 1.75  (1 nan)"
        );
        assert_eq!(
            Summary::of(&counted(DType::Bool, &[3])).text(),
            "2 of 3 true"
        );
        let large = Array::from_scalars(DType::U64, &[1], &[Scalar::max_value(DType::U64)]);
        let large = Summary::of(&large.expect("one value"));
        assert_eq!(
            large.text(),
            "min 18446744073709551615  max 18446744073709551615  mean 1.845e19"
        );
        assert_eq!(large.json()[0].1, json!(u64::MAX));
        assert_eq!(Summary::of(&counted(DType::F32, &[0])).text(), "no values");
    }
}
