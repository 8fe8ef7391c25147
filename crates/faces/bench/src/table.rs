//! A report as text.

use crate::report::{Report, Row, Standing, is_time};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// What stands where there is no figure.
const NOTHING: &str = "–";

impl Report {
    /// The report as a table: a line for each row, a column for each peer, and below it why figures are missing,
    /// how we stand, and what the machine can do at most.
    pub fn table(&self) -> String {
        let mut text = self.lines();
        self.reasons(&mut text);
        if let Some(geomean) = self.geomean {
            let bar = self.goal.map(|goal| {
                let mark = mark(geomean >= goal);
                format!(" ({mark} ≥ {goal:.2})")
            });
            let bar = bar.unwrap_or_default();
            let _ = writeln!(
                text,
                "geometric mean of the ratios to the best peer: {geomean:.2}{bar}"
            );
            let (level, rows) = self.at_least_level();
            let _ = writeln!(
                text,
                "at or above the best peer: {level} of {}",
                rows_text(rows)
            );
        }
        for peer in &self.peers {
            if let Some(standing) = self.standings.get(peer) {
                let _ = writeln!(text, "beside {peer}: {}", beside(standing));
            }
        }
        if !self.versions.is_empty() {
            let versions: Vec<String> = self
                .peers
                .iter()
                .filter_map(|peer| Some(format!("{peer} {}", self.versions.get(peer)?)))
                .collect();
            let _ = writeln!(text, "versions: {}", versions.join(", "));
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

    /// The columns; those that have nothing in any row are left out.
    fn lines(&self) -> String {
        let has_ratios = self.rows.iter().any(|row| row.ratio.is_some());
        let has_shares = self.rows.iter().any(|row| row.roofline.is_some());
        let mut head = vec!["work", "ours", "unit"];
        head.extend(self.peers.iter().map(String::as_str));
        head.extend(has_ratios.then_some("ratio"));
        head.extend(has_shares.then_some("roof"));
        head.push("goal");
        let mut cells = vec![head.into_iter().map(str::to_owned).collect::<Vec<_>>()];
        for row in &self.rows {
            let mut line = vec![row.work.clone(), figure(row.ours), row.unit.to_owned()];
            line.extend(self.peers.iter().map(|peer| {
                let value = row.peers.get(peer);
                value.map_or_else(|| NOTHING.to_owned(), |value| figure(*value))
            }));
            let nothing = || NOTHING.to_owned();
            if has_ratios {
                let ratio = row.ratio.map(|ratio| format!("{ratio:.2}"));
                line.push(ratio.unwrap_or_else(nothing));
            }
            if has_shares {
                let share = row.roofline.map(|share| format!("{:.0} %", share * 100.0));
                line.push(share.unwrap_or_else(nothing));
            }
            line.push(goals(row));
            cells.push(line);
        }
        for failed in &self.failed {
            let mut line = vec![failed.work.clone(), "failed".to_owned()];
            line.resize(cells[0].len() - 1, String::new());
            let reason = failed.reason.lines().next().unwrap_or_default();
            line.push(reason.to_owned());
            cells.push(line);
        }
        let columns = cells.first().map_or(0, Vec::len);
        let widths: Vec<usize> = (0..columns)
            .map(|column| {
                let widths = cells.iter().map(|line| line[column].chars().count());
                widths.max().unwrap_or(0)
            })
            .collect();
        let mut text = String::new();
        for line in &cells {
            let mut padded = String::new();
            for (column, (cell, width)) in line.iter().zip(&widths).enumerate() {
                // Words stand at the left of their column, figures at the right; a unit belongs to its figure.
                let gap = match column {
                    0 => "",
                    2 => " ",
                    _ => "  ",
                };
                let _ = match column {
                    0 | 2 => write!(padded, "{gap}{cell:width$}"),
                    _ if column + 1 == columns => write!(padded, "{gap}{cell}"),
                    _ => write!(padded, "{gap}{cell:>width$}"),
                };
            }
            let _ = writeln!(text, "{}", padded.trim_end());
        }
        text
    }

    /// Why peers have no figures, rows with the same reason together.
    fn reasons(&self, text: &mut String) {
        let mut reasons: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
        for row in &self.rows {
            for (peer, reason) in &row.left_out {
                let works = reasons.entry((peer, reason)).or_default();
                works.push(&row.work);
            }
        }
        for ((peer, reason), works) in reasons {
            let works = match works.len() == self.rows.len() {
                true => "every row".to_owned(),
                false => works.join(", "),
            };
            let _ = writeln!(text, "{NOTHING} {peer}: {reason} ({works})");
        }
    }
}

/// How we stand beside one peer.
fn beside(standing: &Standing) -> String {
    let Standing {
        geomean,
        lowest,
        lowest_work,
        rows,
        goal,
    } = standing;
    let bar = goal.map(|goal| format!(" ({} ≥ {goal:.2})", mark(standing.reached())));
    let bar = bar.unwrap_or_default();
    let rows = rows_text(*rows);
    format!("geometric mean {geomean:.2} over {rows}{bar}, lowest {lowest:.2} ({lowest_work})")
}

fn rows_text(rows: usize) -> String {
    match rows {
        1 => "1 row".to_owned(),
        rows => format!("{rows} rows"),
    }
}

/// The bars of a row, and whether each is reached.
fn goals(row: &Row) -> String {
    let mut bars = Vec::new();
    if let Some(goal) = row.goal {
        let bar = match row.ratio {
            Some(_) => format!("ratio ≥ {goal:.2}"),
            None if is_time(row.unit) => format!("≤ {goal} {}", row.unit),
            None => format!("≥ {goal}"),
        };
        bars.push(format!("{} {bar}", mark(row.reached_figure())));
    }
    if let (Some(share), Some(goal)) = (row.roofline, row.roofline_goal) {
        let bar = format!("roof ≥ {:.0} %", goal * 100.0);
        bars.push(format!("{} {bar}", mark(share >= goal)));
    }
    bars.join(", ")
}

fn mark(reached: bool) -> &'static str {
    if reached { "reached:" } else { "MISSED:" }
}

/// A figure with about three digits.
pub(crate) fn figure(value: f64) -> String {
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
    use crate::report::FailedWork;

    fn row(work: &str, ours: f64, peers: &[(&str, f64)], goal: f64) -> Row {
        let peers = peers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), *value));
        Row::new(work, "GFLOP/s", ours, peers.collect(), Some(goal))
    }

    #[test]
    fn work_that_failed_is_a_line_with_the_reason() {
        let mut report = Report::new(vec![row("matmul", 80.0, &[("a", 20.0)], 0.9)]);
        report.failed.push(FailedWork {
            work: "GPT-2 block".to_owned(),
            reason: "it does not compile\nand here is why".to_owned(),
        });
        let expected = "\
work           ours unit        a  ratio  goal
matmul         80.0 GFLOP/s  20.0   4.00  reached: ratio ≥ 0.90
GPT-2 block  failed                       it does not compile
geometric mean of the ratios to the best peer: 4.00
at or above the best peer: 1 of 1 row
";
        assert_eq!(report.table(), expected);
    }

    #[test]
    fn columns_are_there_where_they_have_something() {
        let alone = Report::new(vec![row("matmul", 80.0, &[], 90.0)]).table();
        let expected = "\
work    ours unit     goal
matmul  80.0 GFLOP/s  MISSED: ≥ 90
";
        assert_eq!(alone, expected);

        let cannot = BTreeMap::from([("a".to_owned(), "no convolution".to_owned())]);
        let rows = vec![
            row("matmul", 80.0, &[("a", 20.0), ("b", 8.0)], 0.9)
                .with_roofline(Some(0.5), Some(0.95)),
            row("conv", 120.0, &[("b", 60.0)], 0.9).with_left_out(cannot),
        ];
        let mut report = Report::new(rows).with_standings([("a", Some(5.0)), ("b", None)]);
        report.goal = Some(1.3);
        report.versions = BTreeMap::from([("b".to_owned(), "2.0".to_owned())]);
        let expected = "\
work    ours unit        a     b  ratio  roof  goal
matmul  80.0 GFLOP/s  20.0   8.0   4.00  50 %  reached: ratio ≥ 0.90, MISSED: roof ≥ 95 %
conv     120 GFLOP/s     –  60.0   2.00     –  reached: ratio ≥ 0.90
– a: no convolution (conv)
geometric mean of the ratios to the best peer: 2.83 (reached: ≥ 1.30)
at or above the best peer: 2 of 2 rows
beside a: geometric mean 4.00 over 1 row (MISSED: ≥ 5.00), lowest 4.00 (matmul)
beside b: geometric mean 4.47 over 2 rows, lowest 2.00 (conv)
versions: b 2.0
";
        assert_eq!(report.table(), expected);
    }
}
