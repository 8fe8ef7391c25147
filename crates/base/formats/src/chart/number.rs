//! Numbers as texts that line up.

use loopwright_ops::{Kind, Scalar};

/// Values as texts, all of them written in the same way.
///
/// Floats have as many decimals as one of them needs, and at most `precision`; where some would have too many digits before or
/// after the point, all are written with exponents.
pub(crate) fn cells(values: &[Scalar], precision: usize) -> Vec<String> {
    match values.first().map(|value| value.dtype().kind()) {
        Some(Kind::Float) => {
            let values: Vec<f64> = values.iter().map(|value| value.to_f64()).collect();
            float_cells(&values, precision)
        }
        _ => values.iter().map(Scalar::to_string).collect(),
    }
}

fn float_cells(values: &[f64], precision: usize) -> Vec<String> {
    let magnitudes = || {
        values
            .iter()
            .map(|value| value.abs())
            .filter(|value| value.is_finite() && *value > 0.0)
    };
    let largest = magnitudes().fold(0.0, f64::max);
    let smallest = magnitudes().fold(f64::INFINITY, f64::min);
    // As numpy has it: beyond these, zeros would take more room than digits.
    let exponents = largest >= 1e8 || smallest < 1e-4;
    let write = |value: f64, decimals: usize| match exponents {
        true => format!("{value:.decimals$e}"),
        false => format!("{value:.decimals$}"),
    };
    let finite = values.iter().filter(|value| value.is_finite());
    let decimals = finite
        .map(|value| needed(&write(*value, precision)))
        .max()
        .unwrap_or(0);
    // A float is told from an integer by its point.
    let decimals = decimals.max(1.min(precision));
    let cell = |value: &f64| match value.is_finite() {
        true => write(*value, decimals),
        false => format!("{value}").to_lowercase(),
    };
    values.iter().map(cell).collect()
}

/// How many of the decimals of a number are not zeros at its end.
fn needed(text: &str) -> usize {
    let mantissa = text.split('e').next().unwrap_or(text);
    match mantissa.split_once('.') {
        Some((_, decimals)) => decimals.trim_end_matches('0').len(),
        None => 0,
    }
}

/// A number in few characters: up to `digits` of them count.
pub(crate) fn short(value: f64, digits: usize) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if !value.is_finite() {
        return format!("{value}").to_lowercase();
    }
    let power = value.abs().log10().floor() as i32;
    if !(-4..7).contains(&power) {
        let decimals = digits.saturating_sub(1);
        let text = format!("{value:.decimals$e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        return format!("{}e{exponent}", trimmed(mantissa));
    }
    let decimals = (digits as i32 - 1 - power).max(0) as usize;
    trimmed(&format!("{value:.decimals$}")).to_owned()
}

/// Without the zeros behind its point.
fn trimmed(text: &str) -> &str {
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loopwright_ops::DType;

    fn shown(dtype: DType, values: &[f64]) -> Vec<String> {
        let scalars: Vec<Scalar> = values
            .iter()
            .map(|value| Scalar::from_f64(dtype, *value))
            .collect();
        cells(&scalars, 4)
    }

    #[test]
    fn floats_have_the_decimals_that_one_needs() {
        assert_eq!(shown(DType::F32, &[1.0, 2.0]), ["1.0", "2.0"]);
        assert_eq!(shown(DType::F32, &[0.1, -2.25]), ["0.10", "-2.25"]);
        assert_eq!(
            shown(DType::F64, &[1.0 / 3.0, 1e6]),
            ["0.3333", "1000000.0000"]
        );
        // In few bits few digits are known.
        assert_eq!(shown(DType::BF16, &[1.0 / 3.0, 0.1]), ["0.3340", "0.1001"]);
        assert_eq!(shown(DType::F32, &[0.0, -0.0]), ["0.0", "-0.0"]);
    }

    #[test]
    fn very_large_and_very_small_floats_have_exponents() {
        assert_eq!(shown(DType::F32, &[1e8, 1.0]), ["1.0e8", "1.0e0"]);
        assert_eq!(
            shown(DType::F64, &[1.5e-5, 0.0, f64::NAN]),
            ["1.5e-5", "0.0e0", "nan"]
        );
        assert_eq!(
            shown(DType::F64, &[f64::INFINITY, f64::NEG_INFINITY]),
            ["inf", "-inf"]
        );
    }

    #[test]
    fn integers_and_truth_values_are_themselves() {
        assert_eq!(shown(DType::I8, &[-128.0, 5.0]), ["-128", "5"]);
        assert_eq!(
            cells(&[Scalar::max_value(DType::U64)], 4),
            ["18446744073709551615"]
        );
        assert_eq!(cells(&[Scalar::bool(true)], 4), ["true"]);
        assert!(cells(&[], 4).is_empty());
    }

    #[test]
    fn short_numbers() {
        for (value, expected) in [
            (0.0, "0"),
            (1.0, "1"),
            (-2.5, "-2.5"),
            (1234.5678, "1235"),
            (0.000_123_46, "0.0001235"),
            (0.000_012, "1.2e-5"),
            (1e7, "1e7"),
            (f64::NAN, "nan"),
        ] {
            assert_eq!(short(value, 4), expected);
        }
    }
}
