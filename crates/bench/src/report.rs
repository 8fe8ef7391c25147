//! What a benchmark found.

use loopwright_roofline::Roofline;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;

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
    /// How far ahead of the best peer we are; `None` without peers.
    pub ratio: Option<f64>,
    /// The bar that the project sets itself, in the row's unit (for peers: as a ratio).
    pub goal: Option<f64>,
    /// Our share of what one thread of this machine can do at most, where it was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roofline: Option<f64>,
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
        let ratios = peers.values().map(|peer| ahead(unit, ours, *peer));
        // The best peer is the one that we are least ahead of.
        let ratio = ratios.reduce(f64::min);
        Row {
            work: work.into(),
            unit,
            ours,
            peers,
            ratio,
            goal,
            roofline: None,
        }
    }

    /// The row with our share of the roofline.
    pub fn with_roofline(mut self, share: Option<f64>) -> Row {
        self.roofline = share;
        self
    }

    /// How far ahead of one peer we are, if it took part.
    pub fn ratio_to(&self, peer: &str) -> Option<f64> {
        let peer = self.peers.get(peer)?;
        Some(ahead(self.unit, self.ours, *peer))
    }

    /// Whether the goal, if there is one, is reached.
    pub fn reached(&self) -> bool {
        match (self.goal, self.ratio) {
            (None, _) => true,
            (Some(goal), Some(ratio)) => ratio >= goal,
            (Some(goal), None) if is_time(self.unit) => self.ours <= goal,
            (Some(goal), None) => self.ours >= goal,
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
    pub goal: f64,
}

impl Standing {
    /// Whether the goal is reached.
    pub fn reached(&self) -> bool {
        self.geomean >= self.goal
    }
}

/// All rows of a run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// In the order measured.
    pub rows: Vec<Row>,
    /// Geometric mean of the ratios, if there are any.
    pub geomean: Option<f64>,
    /// For each peer that has a bar of its own, how we stand.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub standings: BTreeMap<String, Standing>,
    /// The ceilings that shares of the roofline refer to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roofline: Option<Roofline>,
}

impl Report {
    /// A report of these rows.
    pub fn new(rows: Vec<Row>) -> Report {
        Report {
            geomean: geometric_mean(rows.iter().filter_map(|row| row.ratio)),
            rows,
            ..Report::default()
        }
    }

    /// The report with how we stand beside each of these peers; `goal` is the bar for the geometric mean of our
    /// ratios to it. A peer without rows has no standing.
    pub fn with_standings<'n>(
        mut self,
        peers: impl IntoIterator<Item = &'n str>,
        goal: f64,
    ) -> Report {
        for peer in peers {
            let ratios: Vec<(f64, &str)> = self
                .rows
                .iter()
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

    /// The report as a table.
    pub fn table(&self) -> String {
        let with_shares = self.rows.iter().any(|row| row.roofline.is_some());
        let mut cells =
            vec![["work", "ours", "unit", "peers", "ratio", "roof", "goal"].map(str::to_owned)];
        cells.extend(self.rows.iter().map(|row| {
            let peers: Vec<String> = row
                .peers
                .iter()
                .map(|(name, value)| format!("{name} {}", figure(*value)))
                .collect();
            let ratio = row.ratio.map(|ratio| format!("{ratio:.2}"));
            let share = row.roofline.map(|share| format!("{:.0} %", share * 100.0));
            [
                row.work.clone(),
                figure(row.ours),
                row.unit.to_owned(),
                peers.join(", "),
                ratio.unwrap_or_else(|| "–".to_owned()),
                share.unwrap_or_else(|| "–".to_owned()),
                goal(row),
            ]
        }));
        let width = |column: usize| {
            let widths = cells.iter().map(|row| row[column].chars().count());
            widths.max().unwrap_or(0)
        };
        let widths: [usize; 7] = std::array::from_fn(width);
        let mut text = String::new();
        for [work, ours, unit, peers, ratio, share, goal] in &cells {
            let [a, b, c, d, e, f, _] = widths;
            let share = match with_shares {
                true => format!("  {share:>f$}"),
                false => String::new(),
            };
            let line =
                format!("{work:a$}  {ours:>b$} {unit:c$}  {peers:>d$}  {ratio:>e$}{share}  {goal}");
            let _ = writeln!(text, "{}", line.trim_end());
        }
        if let Some(geomean) = self.geomean {
            let _ = writeln!(text, "geometric mean of the ratios: {geomean:.2}");
        }
        for (peer, standing) in &self.standings {
            let Standing {
                geomean,
                lowest,
                lowest_work,
                rows,
                goal,
            } = standing;
            let _ = writeln!(
                text,
                "beside {peer}: geometric mean {geomean:.2} over {rows} rows ({} ≥ {goal:.2}), lowest {lowest:.2} \
                 ({lowest_work})",
                mark(standing.reached()),
            );
        }
        if let Some(ceilings) = &self.roofline {
            let _ = writeln!(
                text,
                "one thread of this machine: {:.0} GFLOP/s, copies {:.1} GB/s, reads {:.1} GB/s",
                ceilings.flops_per_second / 1e9,
                ceilings.copy_bytes_per_second / 1e9,
                ceilings.read_bytes_per_second / 1e9,
            );
        }
        text
    }
}

/// The bar of a row, and whether it is reached.
fn goal(row: &Row) -> String {
    let mark = mark(row.reached());
    match (row.goal, row.ratio) {
        (None, _) => String::new(),
        (Some(goal), Some(_)) => format!("{mark} ratio ≥ {goal:.2}"),
        (Some(goal), None) if is_time(row.unit) => format!("{mark} ≤ {goal} {}", row.unit),
        (Some(goal), None) => format!("{mark} ≥ {goal}"),
    }
}

/// How many times as good the first of two figures is.
fn ahead(unit: &str, ours: f64, theirs: f64) -> f64 {
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
fn is_time(unit: &str) -> bool {
    matches!(unit, "ms" | "ns")
}

fn mark(reached: bool) -> &'static str {
    if reached { "reached:" } else { "MISSED:" }
}

fn figure(value: f64) -> String {
    if value >= 100.0 {
        format!("{value:.0}")
    } else if value >= 1.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.3}")
    }
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
        .with_standings(["a", "b", "c"], 3.0);
        assert_eq!(report.rows[0].ratio, Some(4.0), "to the best peer");
        assert_eq!(report.rows[1].ratio, Some(0.5), "less time is better");
        let standing = |geomean: f64, lowest, work: &str, rows| Standing {
            geomean,
            lowest,
            lowest_work: work.to_owned(),
            rows,
            goal: 3.0,
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
    fn the_table_shows_shares_only_where_there_are_any() {
        let rows = vec![row("matmul", "GFLOP/s", 80.0, &[("a", 20.0)])];
        let plain = Report::new(rows.clone()).table();
        let expected = "\
work    ours unit      peers  ratio  goal
matmul  80.0 GFLOP/s  a 20.0   4.00  reached: ratio ≥ 0.90
geometric mean of the ratios: 4.00
";
        assert_eq!(plain, expected);
        let rows = rows.into_iter().map(|row| row.with_roofline(Some(0.5)));
        let shares = Report::new(rows.collect())
            .with_standings(["a"], 5.0)
            .table();
        let expected = "\
work    ours unit      peers  ratio  roof  goal
matmul  80.0 GFLOP/s  a 20.0   4.00  50 %  reached: ratio ≥ 0.90
geometric mean of the ratios: 4.00
beside a: geometric mean 4.00 over 1 rows (MISSED: ≥ 5.00), lowest 4.00 (matmul)
";
        assert_eq!(shares, expected);
    }
}
