//! Curves in one line.

const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const ASCII: [char; 8] = ['_', '.', ':', '-', '=', '+', '*', '#'];

/// A curve of at most `width` characters; where there are more values, each stands for the mean of some. Those without a finite
/// value are blank.
///
/// ```
/// use loopwright_formats::chart::sparkline;
///
/// assert_eq!(sparkline(&[0.0, 1.0, 2.0, 7.0, f64::NAN, 3.5], 10), "▁▂▃█ ▅");
/// assert_eq!(sparkline(&[1.0, 1.0, 5.0, 5.0], 2), "▁█");
/// ```
pub fn sparkline(values: &[f64], width: usize) -> String {
    draw(values, width, &BLOCKS)
}

/// As [`sparkline`], in plain ASCII.
pub fn sparkline_ascii(values: &[f64], width: usize) -> String {
    draw(values, width, &ASCII)
}

fn draw(values: &[f64], width: usize, levels: &[char; 8]) -> String {
    let count = values.len().min(width);
    let means: Vec<Option<f64>> = (0..count)
        .map(|at| {
            let part = &values[at * values.len() / count..(at + 1) * values.len() / count];
            let finite: Vec<f64> = part
                .iter()
                .copied()
                .filter(|value| value.is_finite())
                .collect();
            // Divided first: a sum of the largest numbers is not finite.
            let share = finite.len() as f64;
            (!finite.is_empty()).then(|| finite.iter().map(|value| value / share).sum())
        })
        .collect();
    let finite = || means.iter().flatten().copied();
    let (least, most) = (
        finite().fold(f64::INFINITY, f64::min),
        finite().fold(f64::NEG_INFINITY, f64::max),
    );
    let level = |value: f64| {
        let share = (value / 2.0 - least / 2.0) / (most / 2.0 - least / 2.0);
        match share.is_finite() {
            true => levels[(share * 7.0).round() as usize],
            // All values are the same.
            false => levels[3],
        }
    };
    means.iter().map(|mean| mean.map_or(' ', level)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_there_is_fits() {
        assert_eq!(sparkline(&[], 5), "");
        assert_eq!(sparkline(&[1.0], 0), "");
        assert_eq!(sparkline(&[2.0, 2.0, 2.0], 5), "▄▄▄");
        assert_eq!(sparkline(&[f64::INFINITY, f64::NAN], 5), "  ");
        assert_eq!(sparkline(&[f64::MAX, f64::MIN, f64::MAX], 5), "█▁█");
        assert_eq!(
            sparkline_ascii(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], 8),
            "_.:-=+*#"
        );
        let many: Vec<f64> = (0..1000).map(f64::from).collect();
        assert_eq!(sparkline(&many, 8), "▁▂▃▄▅▆▇█");
    }
}
