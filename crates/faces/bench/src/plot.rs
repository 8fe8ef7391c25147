//! A report as a picture.

use crate::peer;
use crate::report::{Report, Row, ahead};
use crate::table::figure;
use loopwright_formats::chart::{COLOURS, Svg};

/// All measures are in pixels of the picture at its natural size.
const WIDTH: f64 = 980.0;
/// Where bars start: the work's names stand left of it.
const LEFT: f64 = 270.0;
/// What stands right of the bars: our figure, the ratio and the share.
const RIGHT: f64 = 230.0;
const OURS: f64 = 11.0;
const PEER: f64 = 5.0;
const GAP: f64 = 1.0;
/// Between one row and the next.
const SPACE: f64 = 14.0;
/// Above the first row: the title, the legend and the axis.
const TOP: f64 = 118.0;
const BOTTOM: f64 = 56.0;

/// Longer bars are cut, so that one row far ahead does not make all others short.
const LONGEST: f64 = 4.0;

const STYLE: &str = "\
.one { stroke: #59636e; stroke-dasharray: 4 3 }
.ours { fill: #0969da }
.behind { fill: #b35900; font-weight: 600 }
@media (prefers-color-scheme: dark) {
  .one { stroke: #9198a1 }
  .ours { fill: #4493f8 }
  .behind { fill: #f0883e }
}
";

impl Report {
    /// The rows of the list as an SVG: for each, how fast every side is, where the best peer is 1. Nothing where no row
    /// has a peer.
    pub fn plot(&self, title: &str) -> Option<String> {
        let rows: Vec<&Row> = self
            .rows
            .iter()
            .filter(|row| row.in_mean && row.ratio.is_some())
            .collect();
        let peers: Vec<&str> = self
            .peers
            .iter()
            .map(String::as_str)
            .filter(|peer| rows.iter().any(|row| row.peers.contains_key(*peer)))
            .collect();
        if rows.is_empty() {
            return None;
        }
        let ratios = rows.iter().filter_map(|row| row.ratio);
        let longest = ratios.fold(1.0, f64::max).clamp(1.5, LONGEST);
        let scale = (WIDTH - LEFT - RIGHT) / longest;
        let heights = rows.iter().map(|row| height(row) + SPACE);
        let bottom = TOP + heights.sum::<f64>();
        let total = bottom + BOTTOM;

        let mut svg = Svg::new(WIDTH, total, STYLE);
        svg.text(16.0, 28.0, "title", "start", title);
        legend(&mut svg, &peers);
        svg.text(WIDTH - 136.0, TOP - 12.0, "quiet", "end", "ours");
        svg.text(WIDTH - 94.0, TOP - 12.0, "quiet", "end", "ratio");
        svg.text(WIDTH - 16.0, TOP - 12.0, "quiet", "end", "of the roof");
        axis(&mut svg, longest, scale, bottom);

        let mut y = TOP;
        for row in rows {
            self.row(&mut svg, row, &peers, y, longest, scale);
            y += height(row) + SPACE;
        }
        Some(svg.finish())
    }

    fn row(&self, svg: &mut Svg, row: &Row, peers: &[&str], y: f64, longest: f64, scale: f64) {
        let ratio = row.ratio.unwrap_or(1.0);
        let middle = y + height(row) / 2.0 + 4.0;
        svg.text(LEFT - 12.0, middle, "", "end", &row.work);
        let told = format!("ours: {} {}", figure(row.ours), row.unit);
        svg.bar(
            LEFT,
            y,
            ratio.min(longest) * scale,
            OURS,
            &Paint::Ours.attribute(),
            &told,
        );
        if ratio > longest {
            svg.text(
                LEFT + longest * scale + 3.0,
                y + OURS - 1.0,
                "quiet",
                "start",
                "→",
            );
        }
        let mut at = y + OURS + GAP;
        for (place, peer) in peers.iter().enumerate() {
            let Some(value) = row.peers.get(*peer) else {
                continue;
            };
            // Against the best peer: it is 1, and the others are below.
            let share = ratio / ahead(row.unit, row.ours, *value);
            let told = format!("{peer}: {} {}", figure(*value), row.unit);
            let paint = Paint::of(peer, place);
            svg.bar(LEFT, at, share * scale, PEER, &paint.attribute(), &told);
            at += PEER + GAP;
        }
        let ours = format!("{} {}", figure(row.ours), row.unit);
        svg.text(WIDTH - 136.0, middle, "", "end", &ours);
        let class = if ratio < 1.0 { "behind" } else { "" };
        svg.text(WIDTH - 94.0, middle, class, "end", &format!("{ratio:.2}"));
        let share = row.roofline.map(|share| format!("{:.0} %", share * 100.0));
        let share = share.as_deref().unwrap_or("–");
        svg.text(WIDTH - 16.0, middle, "quiet", "end", share);
    }
}

/// Of the bars of a row: ours, and one for each peer that has a figure.
fn height(row: &Row) -> f64 {
    OURS + row.peers.len() as f64 * (PEER + GAP)
}

fn legend(svg: &mut Svg, peers: &[&str]) {
    let mut x = 16.0;
    let entries = [("ours", Paint::Ours)].into_iter();
    let others = peers.iter().enumerate();
    for (name, paint) in entries.chain(others.map(|(place, peer)| (*peer, Paint::of(peer, place))))
    {
        svg.bar(x, 46.0, 12.0, 12.0, &paint.attribute(), name);
        svg.text(x + 17.0, 56.0, "", "start", name);
        // About as wide as a letter is.
        x += 17.0 + 7.2 * name.chars().count() as f64 + 18.0;
    }
}

/// Lines at every half, the labels above and below, and what the axis counts.
fn axis(svg: &mut Svg, longest: f64, scale: f64, bottom: f64) {
    let halves = (longest * 2.0).floor() as usize;
    for half in 0..=halves {
        let value = half as f64 / 2.0;
        let x = LEFT + value * scale;
        let class = if half == 2 { "one" } else { "grid" };
        svg.line(x, TOP - 6.0, x, bottom - SPACE + 6.0, class);
        for y in [TOP - 12.0, bottom + 6.0] {
            svg.text(x, y, "quiet", "middle", &format!("{value}"));
        }
    }
    let label = "speed, the best peer of each row is 1 (longer is faster)";
    svg.text(LEFT, bottom + 28.0, "quiet", "start", label);
    svg.text(LEFT, TOP - 30.0, "quiet", "start", label);
}

#[derive(Clone, Copy)]
enum Paint {
    Ours,
    /// One of [`COLOURS`].
    Peer(usize),
}

impl Paint {
    /// A peer has one colour in all pictures; one that comes from nowhere has that of its place.
    fn of(peer: &str, place: usize) -> Paint {
        let known = peer::names().position(|name| name == peer);
        Paint::Peer(known.unwrap_or(place))
    }

    /// As an attribute of a bar.
    fn attribute(self) -> String {
        match self {
            Paint::Ours => "class=\"ours\"".to_owned(),
            Paint::Peer(place) => format!("fill=\"{}\"", COLOURS[place % COLOURS.len()]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn row(work: &str, unit: &'static str, ours: f64, peers: &[(&str, f64)]) -> Row {
        let peers = peers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), *value));
        Row::new(work, unit, ours, peers.collect::<BTreeMap<_, _>>(), None)
    }

    #[test]
    fn bars_are_as_long_as_a_side_is_fast() {
        let report = Report::new(vec![
            row("matmul", "GFLOP/s", 60.0, &[("a", 40.0), ("b", 20.0)]),
            row("64->64 step", "ms", 4.0, &[("b", 2.0)]),
            row("alone", "ms", 4.0, &[]),
        ]);
        let svg = report.plot("a title").expect("there are peers");
        // The longest bar is half as long again as the best peer's.
        let unit = (WIDTH - LEFT - RIGHT) / 1.5;
        for (told, length) in [
            ("ours: 60.0 GFLOP/s", 1.5),
            ("a: 40.0 GFLOP/s", 1.0),
            ("b: 20.0 GFLOP/s", 0.5),
            ("ours: 4.0 ms", 0.5),
            ("b: 2.0 ms", 1.0),
        ] {
            let bar = svg.lines().find(|line| line.contains(told)).expect(told);
            let width = format!("width=\"{:.1}\"", length * unit);
            assert!(bar.contains(&width), "{bar} has not {width}");
        }
        assert!(svg.contains("64-&gt;64 step"), "names are escaped");
        assert!(!svg.contains("alone"), "a row without peers is left out");
        assert!(svg.contains("class=\"behind\""), "0.50 stands out");
    }

    #[test]
    fn a_report_without_peers_has_no_picture() {
        let report = Report::new(vec![row("alone", "ms", 4.0, &[])]);
        assert_eq!(report.plot("a title"), None);
    }
}
