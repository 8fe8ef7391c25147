//! Charts as SVG.

use crate::chart::line::LineChart;
use crate::chart::svg::{COLOURS, Svg};

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 420.0;
/// Left of the curves: labels and what the axis counts.
const LEFT: f64 = 70.0;
const RIGHT: f64 = 24.0;
/// Above the curves: the title and the legend.
const TOP: f64 = 72.0;
const BOTTOM: f64 = 56.0;

impl LineChart {
    /// The chart as an SVG picture.
    pub fn svg(&self) -> String {
        let (across, up) = self.scales(6);
        let (wide, high) = (WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
        let place = |(x, y): (f64, f64)| (LEFT + x * wide, TOP + (1.0 - y) * high);

        let mut svg = Svg::new(WIDTH, HEIGHT, "");
        svg.text(16.0, 28.0, "title", "start", &self.title);
        for tick in up.ticks(6) {
            let (_, y) = place((0.0, up.place(tick.value).unwrap_or(0.0)));
            svg.line(LEFT, y, LEFT + wide, y, "grid");
            svg.text(LEFT - 8.0, y + 4.0, "quiet", "end", &tick.label);
        }
        for tick in across.ticks(8) {
            let (x, _) = place((across.place(tick.value).unwrap_or(0.0), 0.0));
            svg.line(x, TOP, x, TOP + high, "grid");
            svg.text(x, TOP + high + 18.0, "quiet", "middle", &tick.label);
        }
        svg.text(
            LEFT + wide / 2.0,
            HEIGHT - 16.0,
            "quiet",
            "middle",
            &self.across,
        );
        svg.text(16.0, TOP - 10.0, "quiet", "start", &self.up);
        let mut x = LEFT;
        for (at, curve) in self.curves.iter().enumerate() {
            let colour = colour(at);
            for piece in LineChart::pieces(curve, &across, &up) {
                let points: Vec<(f64, f64)> = piece.into_iter().map(place).collect();
                svg.curve(&thinned(&points), colour, &curve.name);
            }
            if !curve.name.is_empty() {
                svg.curve(&[(x, 46.0), (x + 16.0, 46.0)], colour, &curve.name);
                svg.text(x + 21.0, 50.0, "", "start", &curve.name);
                // About as wide as a letter is.
                x += 21.0 + 7.2 * curve.name.chars().count() as f64 + 18.0;
            }
        }
        svg.finish()
    }
}

/// The first is blue, as ours is in all pictures of the project.
fn colour(at: usize) -> &'static str {
    match at {
        0 => "#0969da",
        at => COLOURS[(at - 1) % COLOURS.len()],
    }
}

/// As many points as can be told apart: of those in one pixel's column the first, the lowest, the highest and the last.
fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut kept = Vec::new();
    for column in points.chunk_by(|a, b| a.0.floor() == b.0.floor()) {
        let by_height = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
        let (Some(first), Some(last)) = (column.first(), column.last()) else {
            continue;
        };
        let (Some(low), Some(high)) = (
            column.iter().min_by(by_height),
            column.iter().max_by(by_height),
        ) else {
            continue;
        };
        for point in [first, low, high, last] {
            if kept.last() != Some(point) {
                kept.push(*point);
            }
        }
    }
    kept
}
