//! What a benchmark found.

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
        let smaller_wins = is_time(unit);
        let best = peers
            .values()
            .copied()
            .reduce(|a, b| if smaller_wins { a.min(b) } else { a.max(b) });
        let ratio = best.map(|best| {
            if smaller_wins {
                best / ours
            } else {
                ours / best
            }
        });
        Row {
            work: work.into(),
            unit,
            ours,
            peers,
            ratio,
            goal,
        }
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

/// All rows of a run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// In the order measured.
    pub rows: Vec<Row>,
    /// Geometric mean of the ratios, if there are any.
    pub geomean: Option<f64>,
}

impl Report {
    /// A report of these rows.
    pub fn new(rows: Vec<Row>) -> Report {
        let ratios: Vec<f64> = rows.iter().filter_map(|row| row.ratio).collect();
        let mean = ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64;
        Report {
            geomean: (!ratios.is_empty()).then(|| mean.exp()),
            rows,
        }
    }

    /// The report as a table.
    pub fn table(&self) -> String {
        let width = self
            .rows
            .iter()
            .map(|row| row.work.len())
            .max()
            .unwrap_or(4);
        let mut text = format!(
            "{:width$}  {:>10} {:<8} {:>24} {:>8}  goal\n",
            "work", "ours", "unit", "peers", "ratio"
        );
        for row in &self.rows {
            let peers: Vec<String> = row
                .peers
                .iter()
                .map(|(name, value)| format!("{name} {}", figure(*value)))
                .collect();
            let ratio = row
                .ratio
                .map_or("–".to_owned(), |ratio| format!("{ratio:.2}"));
            let goal = match (row.goal, row.ratio) {
                (None, _) => String::new(),
                (Some(goal), Some(_)) => format!("{} ratio ≥ {goal:.2}", mark(row)),
                (Some(goal), None) if is_time(row.unit) => {
                    format!("{} ≤ {goal} {}", mark(row), row.unit)
                }
                (Some(goal), None) => format!("{} ≥ {goal}", mark(row)),
            };
            let _ = writeln!(
                text,
                "{:width$}  {:>10} {:<8} {:>24} {:>8}  {goal}",
                row.work,
                figure(row.ours),
                row.unit,
                peers.join(", "),
                ratio,
            );
        }
        if let Some(geomean) = self.geomean {
            let _ = writeln!(text, "geometric mean of the ratios: {geomean:.2}");
        }
        text
    }
}

/// Whether less of it is better.
fn is_time(unit: &str) -> bool {
    matches!(unit, "ms" | "ns")
}

fn mark(row: &Row) -> &'static str {
    if row.reached() { "reached:" } else { "MISSED:" }
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
