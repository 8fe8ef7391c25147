//! Curves.

use crate::chart::scale::Scale;

/// Curves over a common axis: training curves, say.
///
/// Values that are not finite, or not above 0 where the axis is logarithmic, leave a gap.
#[derive(Clone, PartialEq, Debug)]
pub struct LineChart {
    pub(crate) title: String,
    pub(crate) across: String,
    pub(crate) up: String,
    pub(crate) curves: Vec<Curve>,
    pub(crate) logarithmic: bool,
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Curve {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
}

impl LineChart {
    /// A chart without curves.
    pub fn new(title: &str) -> LineChart {
        LineChart {
            title: title.to_owned(),
            across: String::new(),
            up: String::new(),
            curves: Vec::new(),
            logarithmic: false,
        }
    }

    /// With what the axes count; an empty text says nothing.
    pub fn axes(mut self, across: &str, up: &str) -> LineChart {
        self.across = across.to_owned();
        self.up = up.to_owned();
        self
    }

    /// With the vertical axis logarithmic.
    pub fn logarithmic(mut self) -> LineChart {
        self.logarithmic = true;
        self
    }

    /// With a curve through these points.
    pub fn points(mut self, name: &str, points: &[(f64, f64)]) -> LineChart {
        self.curves.push(Curve {
            name: name.to_owned(),
            points: points.to_vec(),
        });
        self
    }

    /// With a curve through these values, one step apart, from 0 on.
    pub fn values(self, name: &str, values: &[f64]) -> LineChart {
        let point = |(at, value): (usize, &f64)| (at as f64, *value);
        let points: Vec<(f64, f64)> = values.iter().enumerate().map(point).collect();
        self.points(name, &points)
    }

    /// The axes: across as far as there are values, up from one tick to another.
    pub(crate) fn scales(&self, ticks_up: usize) -> (Scale, Scale) {
        let points = || {
            self.curves
                .iter()
                .flat_map(|curve| curve.points.iter().copied())
        };
        let across = Scale::over(points().map(|(x, _)| x), false);
        let up = Scale::over(points().map(|(_, y)| y), self.logarithmic);
        (across, up.rounded(ticks_up))
    }

    /// The pieces of a curve between its gaps, as places from 0 to 1.
    pub(crate) fn pieces(curve: &Curve, across: &Scale, up: &Scale) -> Vec<Vec<(f64, f64)>> {
        let mut pieces = vec![Vec::new()];
        for (x, y) in &curve.points {
            match (across.place(*x), up.place(*y), pieces.last_mut()) {
                (Some(x), Some(y), Some(piece)) => piece.push((x, y)),
                _ => pieces.push(Vec::new()),
            }
        }
        pieces.retain(|piece| !piece.is_empty());
        pieces
    }
}
