//! From values to places along an axis, and the ticks of the axis.

/// The values that an axis spans.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Scale {
    from: f64,
    to: f64,
    logarithmic: bool,
}

/// A value that is marked, and what stands beside it.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Tick {
    pub(crate) value: f64,
    pub(crate) label: String,
}

impl Scale {
    /// An axis for these values, of which there may be none. A logarithmic one is only asked about values above 0.
    pub(crate) fn over(values: impl Iterator<Item = f64>, logarithmic: bool) -> Scale {
        let (mut from, mut to) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.filter(|value| value.is_finite() && (!logarithmic || *value > 0.0)) {
            from = from.min(value);
            to = to.max(value);
        }
        if from > to {
            (from, to) = if logarithmic { (1.0, 10.0) } else { (0.0, 1.0) };
        }
        if from == to {
            // A span around a single value, such that it lies in the middle.
            (from, to) = match (logarithmic, from) {
                (true, value) => (value / 10.0, value * 10.0),
                (false, 0.0) => (-1.0, 1.0),
                (false, value) => (value - value.abs() / 2.0, value + value.abs() / 2.0),
            };
        }
        // The middle of the largest and the smallest number is no number.
        if !(to - from).is_finite() {
            (from, to) = (f64::MIN / 4.0, f64::MAX / 4.0);
        }
        Scale {
            from,
            to,
            logarithmic,
        }
    }

    /// The axis made a little longer, such that it begins and ends with a round number.
    pub(crate) fn rounded(self, ticks: usize) -> Scale {
        if self.logarithmic {
            let (from, to) = (round_below(self.from), round_above(self.to));
            // A single value that is round lies between its neighbours.
            let (from, to) = match from < to {
                true => (from, to),
                false => (round_below(from * 0.9), round_above(to * 1.1)),
            };
            // There is no round number at the ends of what numbers there are.
            return Scale {
                from: from.max(f64::MIN_POSITIVE),
                to: to.min(f64::MAX),
                ..self
            };
        }
        // A quarter of the distance between ticks: whole ones would leave much of a small chart empty.
        let step = step(self.to - self.from, ticks) / 4.0;
        Scale {
            from: (self.from / step + 1e-9).floor() * step,
            to: (self.to / step - 1e-9).ceil() * step,
            ..self
        }
    }

    /// Where a value lies, from 0 to 1; none if it has no place.
    pub(crate) fn place(&self, value: f64) -> Option<f64> {
        if !value.is_finite() || self.logarithmic && value <= 0.0 {
            return None;
        }
        let value = value.clamp(self.from, self.to);
        Some(match self.logarithmic {
            true => (value.log10() - self.from.log10()) / (self.to.log10() - self.from.log10()),
            false => (value - self.from) / (self.to - self.from),
        })
    }

    /// About so many ticks, all of them within the axis, and at least two where numbers are that fine.
    pub(crate) fn ticks(&self, count: usize) -> Vec<Tick> {
        let ticks = match self.logarithmic {
            true => self.decades(count),
            false => Vec::new(),
        };
        if ticks.len() >= 2 {
            return ticks;
        }
        (count..=8 * count)
            .map(|count| self.even(count))
            .find(|ticks| ticks.len() >= 2)
            .unwrap_or_default()
    }

    /// Ticks at equal distances.
    fn even(&self, count: usize) -> Vec<Tick> {
        let step = step(self.to - self.from, count);
        // As many decimals as the step has.
        let decimals = (-step.log10().floor()).max(0.0) as usize;
        let (first, last) = (
            (self.from / step - 1e-9).ceil(),
            (self.to / step + 1e-9).floor(),
        );
        let count = (last - first) as usize;
        (0..=count)
            .map(|at| tick((first + at as f64) * step, decimals))
            .collect()
    }

    /// Ticks at round numbers, about so many: 1, 2 and 5 times powers of ten, or only the powers, or only some of those.
    fn decades(&self, count: usize) -> Vec<Tick> {
        let (first, last) = (
            self.from.log10().floor() as i32,
            self.to.log10().ceil() as i32,
        );
        let within = |every: usize, factors: &[f64]| -> Vec<Tick> {
            let powers = (first..=last).step_by(every);
            powers
                .flat_map(|power| factors.iter().map(move |factor| factor * 10f64.powi(power)))
                .filter(|value| (self.from * 0.999..=self.to * 1.001).contains(value))
                .map(|value| tick(value, 0))
                .collect()
        };
        let fine = within(1, &[1.0, 2.0, 5.0]);
        match fine.len() <= count + 2 {
            true => fine,
            false => within(
                ((last - first) as usize).div_ceil(count.max(1)).max(1),
                &[1.0],
            ),
        }
    }
}

/// The largest of 1, 2 and 5 times a power of ten that is not above a value.
fn round_below(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    let factors = [5.0, 2.0, 1.0];
    let factor = factors
        .into_iter()
        .find(|factor| factor * power <= value * 1.000_000_1);
    factor.unwrap_or(1.0) * power
}

/// The smallest of 1, 2 and 5 times a power of ten that is not below a value.
fn round_above(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    let factors = [1.0, 2.0, 5.0];
    let factor = factors
        .into_iter()
        .find(|factor| factor * power >= value * 0.999_999_9);
    factor.unwrap_or(10.0) * power
}

/// A tick with a label of so many decimals, or an exponent where it would be long.
fn tick(value: f64, decimals: usize) -> Tick {
    let magnitude = value.abs();
    let long = magnitude != 0.0 && !(1e-4..1e6).contains(&magnitude) || decimals > 4;
    // A power of ten below 1, which no step gave decimals.
    let small = decimals == 0 && value.fract() != 0.0;
    let label = match long || small {
        true => crate::chart::number::short(value, 4),
        // Not a negative zero.
        false => format!("{:.decimals$}", value + 0.0),
    };
    Tick { value, label }
}

/// 1, 2 or 5 times a power of ten, such that a span has about so many of it.
fn step(span: f64, count: usize) -> f64 {
    let rough = span / count.max(1) as f64;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0]
        .into_iter()
        .find(|step| step * power >= rough * 0.999);
    step.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(values: &[f64], logarithmic: bool, count: usize) -> Vec<String> {
        let scale = Scale::over(values.iter().copied(), logarithmic).rounded(count);
        scale
            .ticks(count)
            .into_iter()
            .map(|tick| tick.label)
            .collect()
    }

    #[test]
    fn ticks_are_round_numbers() {
        assert_eq!(
            labels(&[0.0, 1.0], false, 5),
            ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]
        );
        assert_eq!(
            labels(&[0.03, 2.3], false, 5),
            ["0.0", "0.5", "1.0", "1.5", "2.0"]
        );
        assert_eq!(labels(&[-130.0, 75.0], false, 4), ["-100", "0"]);
        assert_eq!(labels(&[0.0, 2e7], false, 2), ["0", "1e7", "2e7"]);
        assert_eq!(
            labels(&[0.0, 3e-7], false, 3),
            ["0", "1e-7", "2e-7", "3e-7"]
        );
        assert_eq!(labels(&[0.002, 30.0], true, 5), ["0.01", "0.1", "1", "10"]);
    }

    #[test]
    fn an_axis_has_room_for_whatever_there_is() {
        for values in [
            &[][..],
            &[f64::NAN, f64::INFINITY],
            &[0.0],
            &[5.0, 5.0],
            &[-3.0],
            &[f64::MIN, f64::MAX],
            &[1e-300, 2e-300],
            &[1e15, 1e15 + 1.0],
        ] {
            for logarithmic in [false, true] {
                let scale = Scale::over(values.iter().copied(), logarithmic).rounded(4);
                let ticks = scale.ticks(4);
                assert!(
                    (2..40).contains(&ticks.len()),
                    "{values:?} {logarithmic}: {ticks:?}"
                );
                for value in values.iter().filter(|value| value.is_finite()) {
                    let place = scale.place(*value);
                    assert_eq!(place.is_some(), !logarithmic || *value > 0.0, "{value}");
                }
            }
        }
    }
}
