//! What a benchmark found.

use crate::BenchError;
use loopwright_tune::roofline::Roofline;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// One piece of work.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// What was done.
    pub work: String,
    /// What is counted; times (`ms`, `ns`) are better when smaller, everything else when larger.
    pub unit: &'static str,
    /// Our median.
    pub ours: f64,
    /// Each peer's median.
    pub peers: BTreeMap<String, f64>,
    /// Why the other peers have no figure.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out: BTreeMap<String, String>,
    /// The best peer.
    pub best: Option<String>,
    /// How far ahead of it we are; `None` without peers.
    pub ratio: Option<f64>,
    /// The bar that the project sets itself, in the row's unit (for peers: as a ratio).
    pub goal: Option<f64>,
    /// Our share of what one thread of this machine can do at most, where it was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roofline: Option<f64>,
    /// The bar for that share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roofline_goal: Option<f64>,
    /// Whether its ratio is one of those that the geometric mean is made of.
    pub in_mean: bool,
}

impl Row {
    /// A row; the ratio follows from the figures.
    pub fn new(
        work: impl Into<String>,
        unit: &'static str,
        ours: f64,
        peers: BTreeMap<String, f64>,
        goal: Option<f64>,
    ) -> Row {
        let ratios = peers
            .iter()
            .map(|(name, peer)| (name, ahead(unit, ours, *peer)));
        // The best peer is the one that we are least ahead of.
        let best = ratios.min_by(|a, b| a.1.total_cmp(&b.1));
        let (best, ratio) = best.map(|(name, ratio)| (name.clone(), ratio)).unzip();
        Row {
            work: work.into(),
            unit,
            ours,
            peers,
            left_out: BTreeMap::new(),
            best,
            ratio,
            goal,
            roofline: None,
            roofline_goal: None,
            in_mean: true,
        }
    }

    /// The row with our share of the roofline, and the bar for it.
    pub fn with_roofline(mut self, share: Option<f64>, goal: Option<f64>) -> Row {
        self.roofline = share;
        self.roofline_goal = share.and(goal);
        self
    }

    /// The row with the reasons why peers have no figure in it.
    pub fn with_left_out(mut self, left_out: BTreeMap<String, String>) -> Row {
        self.left_out = left_out;
        self
    }

    /// The row beside the list: its ratio is no part of the geometric mean.
    pub fn beside_the_list(mut self) -> Row {
        self.in_mean = false;
        self
    }

    /// How far ahead of one peer we are, if it took part.
    pub fn ratio_to(&self, peer: &str) -> Option<f64> {
        let peer = self.peers.get(peer)?;
        Some(ahead(self.unit, self.ours, *peer))
    }

    /// Whether the goals, if there are any, are reached.
    pub fn reached(&self) -> bool {
        let share = self.roofline.zip(self.roofline_goal);
        self.reached_figure() && share.is_none_or(|(share, goal)| share >= goal)
    }

    /// Whether the goal for the figure or the ratio is reached.
    pub(crate) fn reached_figure(&self) -> bool {
        match (self.goal, self.ratio) {
            (None, _) => true,
            (Some(goal), Some(ratio)) => ratio >= goal,
            (Some(goal), None) if is_time(self.unit) => self.ours <= goal,
            (Some(goal), None) => self.ours >= goal,
        }
    }
}

/// Work that has no row.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FailedWork {
    /// What was to be done.
    pub work: String,
    /// Why there is no figure.
    pub reason: String,
}

/// Rows as they are measured. Work that fails is no reason to lose what else was measured.
#[derive(Default)]
pub(crate) struct Measured {
    rows: Vec<Row>,
    failed: Vec<FailedWork>,
}

impl Measured {
    /// Takes the rows of some work, or why it has none; gives back whether it has.
    pub(crate) fn take<R: IntoIterator<Item = Row>>(
        &mut self,
        work: &str,
        rows: Result<R, BenchError>,
    ) -> bool {
        match rows {
            Ok(rows) => {
                self.rows.extend(rows);
                true
            }
            Err(error) => {
                self.failed.push(FailedWork {
                    work: work.to_owned(),
                    reason: error.to_string(),
                });
                false
            }
        }
    }

    pub(crate) fn into_report(self) -> Report {
        Report {
            failed: self.failed,
            ..Report::new(self.rows)
        }
    }
}

/// How we stand beside one peer, over all rows that it took part in.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Standing {
    /// Geometric mean of our ratios to it.
    pub geomean: f64,
    /// The smallest of them.
    pub lowest: f64,
    /// Which work that was.
    pub lowest_work: String,
    /// How many rows there are.
    pub rows: usize,
    /// The bar for the geometric mean.
    pub goal: Option<f64>,
}

impl Standing {
    /// Whether the goal, if there is one, is reached.
    pub fn reached(&self) -> bool {
        self.goal.is_none_or(|goal| self.geomean >= goal)
    }
}

/// All rows of a run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// In the order measured.
    pub rows: Vec<Row>,
    /// The work that has no row, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<FailedWork>,
    /// The peers in the order of the table's columns.
    pub peers: Vec<String>,
    /// The versions of those that say theirs.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub versions: BTreeMap<String, String>,
    /// Geometric mean of the ratios to the best peer of each row, if there are any.
    pub geomean: Option<f64>,
    /// The bar for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal: Option<f64>,
    /// How we stand beside each peer alone.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub standings: BTreeMap<String, Standing>,
    /// The ceilings that shares of the roofline refer to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roofline: Option<Roofline>,
}

impl Report {
    /// A report of these rows; its peers are those that have a figure.
    pub fn new(rows: Vec<Row>) -> Report {
        let listed = rows.iter().filter(|row| row.in_mean);
        let peers: BTreeSet<&String> = rows.iter().flat_map(|row| row.peers.keys()).collect();
        Report {
            geomean: geometric_mean(listed.filter_map(|row| row.ratio)),
            peers: peers.into_iter().cloned().collect(),
            rows,
            ..Report::default()
        }
    }

    /// How many rows of the list are at least as good as their best peer, and how many have peers.
    pub fn at_least_level(&self) -> (usize, usize) {
        let listed = self.rows.iter().filter(|row| row.in_mean);
        let ratios: Vec<f64> = listed.filter_map(|row| row.ratio).collect();
        let level = ratios.iter().filter(|ratio| **ratio >= 1.0).count();
        (level, ratios.len())
    }

    /// The report with its columns in the order of these names; peers that are not named come behind.
    pub fn in_order_of<'n>(mut self, names: impl Iterator<Item = &'n str>) -> Report {
        let order: Vec<&str> = names.collect();
        let place = |peer: &String| order.iter().position(|name| name == peer);
        self.peers
            .sort_by_key(|peer| place(peer).unwrap_or(order.len()));
        self
    }

    /// The report with how we stand beside each of these peers, over the rows of the list; with each, the bar for
    /// the geometric mean of our ratios to it. A peer without rows has no standing.
    pub fn with_standings<'n>(
        mut self,
        peers: impl IntoIterator<Item = (&'n str, Option<f64>)>,
    ) -> Report {
        for (peer, goal) in peers {
            let listed = self.rows.iter().filter(|row| row.in_mean);
            let ratios: Vec<(f64, &str)> = listed
                .filter_map(|row| Some((row.ratio_to(peer)?, row.work.as_str())))
                .collect();
            let lowest = ratios.iter().min_by(|a, b| a.0.total_cmp(&b.0));
            let geomean = geometric_mean(ratios.iter().map(|(ratio, _)| *ratio));
            let (Some((lowest, work)), Some(geomean)) = (lowest, geomean) else {
                continue;
            };
            let standing = Standing {
                geomean,
                lowest: *lowest,
                lowest_work: (*work).to_owned(),
                rows: ratios.len(),
                goal,
            };
            self.standings.insert(peer.to_owned(), standing);
        }
        self
    }
}

/// How many times as good the first of two figures is.
pub(crate) fn ahead(unit: &str, ours: f64, theirs: f64) -> f64 {
    if is_time(unit) {
        theirs / ours
    } else {
        ours / theirs
    }
}

fn geometric_mean(ratios: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut logarithms, mut count) = (0.0, 0u32);
    for ratio in ratios {
        logarithms += ratio.ln();
        count += 1;
    }
    (count > 0).then(|| (logarithms / f64::from(count)).exp())
}

/// Whether less of it is better.
pub(crate) fn is_time(unit: &str) -> bool {
    matches!(unit, "ms" | "ns")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(work: &str, unit: &'static str, ours: f64, peers: &[(&str, f64)]) -> Row {
        let peers = peers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), *value));
        Row::new(work, unit, ours, peers.collect(), Some(0.9))
    }

    #[test]
    fn standings_are_of_each_peer_alone() {
        let report = Report::new(vec![
            row("matmul", "GFLOP/s", 80.0, &[("a", 10.0), ("b", 20.0)]),
            row("step", "ms", 4.0, &[("a", 2.0)]),
        ])
        .with_standings(["a", "b", "c"].map(|peer| (peer, Some(3.0))));
        assert_eq!(report.rows[0].ratio, Some(4.0), "to the best peer");
        assert_eq!(report.rows[1].ratio, Some(0.5), "less time is better");
        assert_eq!(report.at_least_level(), (1, 2));
        let standing = |geomean: f64, lowest, work: &str, rows| Standing {
            geomean,
            lowest,
            lowest_work: work.to_owned(),
            rows,
            goal: Some(3.0),
        };
        let a = &report.standings["a"];
        assert!((a.geomean - 2.0).abs() < 1e-12, "{a:?}");
        assert_eq!(*a, standing(a.geomean, 0.5, "step", 2));
        assert!(!a.reached());
        let b = &report.standings["b"];
        assert!((b.geomean - 4.0).abs() < 1e-12, "{b:?}");
        assert_eq!(*b, standing(b.geomean, 4.0, "matmul", 1));
        assert!(b.reached());
        assert!(!report.standings.contains_key("c"), "it has no rows");
    }

    #[test]
    fn rows_beside_the_list_are_no_part_of_the_mean() {
        let beside = row("symbolic", "GFLOP/s", 10.0, &[("specialised", 100.0)]);
        let report = Report::new(vec![
            row("matmul", "GFLOP/s", 80.0, &[("a", 10.0), ("b", 20.0)]),
            beside.beside_the_list(),
        ])
        .with_standings([("specialised", None)])
        .in_order_of(["b", "a"].into_iter());
        assert_eq!(report.rows[0].best.as_deref(), Some("b"));
        let geomean = report.geomean.expect("there is a ratio");
        assert!((geomean - 4.0).abs() < 1e-12, "{geomean}");
        assert_eq!(report.at_least_level(), (1, 1));
        assert!(report.standings.is_empty());
        assert_eq!(report.peers, ["b", "a", "specialised"]);
    }

    #[test]
    fn a_row_reaches_the_bars_of_its_ratio_and_of_its_share() {
        let row = row("matmul", "GFLOP/s", 80.0, &[("a", 80.0)]);
        assert!(row.reached());
        let with = |share| row.clone().with_roofline(share, Some(0.95));
        assert!(with(Some(0.96)).reached());
        assert!(!with(Some(0.94)).reached());
        assert!(with(None).reached(), "no share was measured");
    }
}
