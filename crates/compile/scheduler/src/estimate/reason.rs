//! Estimates in words.

use super::{BoundBy, Estimate, StepEstimate};
use loopwright_graph::Graph;

impl BoundBy {
    /// Every bound.
    pub const ALL: [BoundBy; 7] = [
        BoundBy::Arithmetic,
        BoundBy::L1,
        BoundBy::L2,
        BoundBy::L3,
        BoundBy::Memory,
        BoundBy::Latency,
        BoundBy::Overhead,
    ];

    /// Its name, for tables.
    pub const fn name(self) -> &'static str {
        match self {
            BoundBy::Arithmetic => "arithmetic",
            BoundBy::L1 => "L1",
            BoundBy::L2 => "L2",
            BoundBy::L3 => "L3",
            BoundBy::Memory => "memory",
            BoundBy::Latency => "latency",
            BoundBy::Overhead => "overhead",
        }
    }
}

impl StepEstimate {
    /// Operations and bytes in a second, and what holds the step up, in one sentence.
    pub fn reason(&self, graph: &Graph) -> String {
        let work = if self.flops > 0.0 && self.seconds == 0.0 {
            return format!(
                "{}FLOP while the steps in the same loop are waited for",
                scaled(self.flops)
            );
        } else if self.flops > 0.0 {
            format!(
                "{}FLOP at {}FLOP/s",
                scaled(self.flops),
                scaled(self.flops / self.seconds)
            )
        } else {
            format!("{}B stored and loaded", scaled(self.bytes[0]))
        };
        format!("{work}: {}", self.held_up(graph))
    }

    fn held_up(&self, graph: &Graph) -> String {
        let from = |at: usize, place: &str| {
            let bytes = scaled(self.bytes[at]);
            match self.mover {
                Some(node) => format!(
                    "it moves {bytes}B from {place}, most of it of `{}`",
                    graph.node_name(node)
                ),
                None => format!("it moves {bytes}B from {place}"),
            }
        };
        let lane_by_lane = self
            .scattered
            .map(|node| format!("; `{}` is read lane by lane", graph.node_name(node)))
            .unwrap_or_default();
        match self.bound {
            BoundBy::Arithmetic if self.lanes > 1.0 => {
                format!("its arithmetic, {:.0} at a time{lane_by_lane}", self.lanes)
            }
            BoundBy::Arithmetic => "its arithmetic, one element at a time".to_owned(),
            BoundBy::L1 if self.spilled > 0.0 => format!(
                "{:.0} of its running values do not fit into registers",
                self.spilled
            ),
            BoundBy::L1 => format!("its loads and stores{lane_by_lane}"),
            BoundBy::L2 => from(1, "L2"),
            BoundBy::L3 => from(2, "L3"),
            BoundBy::Memory => from(3, "memory"),
            BoundBy::Latency => match self.accumulators {
                some if some > 1.0 => {
                    format!("its {some:.0} running values wait for the round before")
                }
                _ => "each running value waits for the one before".to_owned(),
            },
            BoundBy::Overhead => "starting its loops takes longer than what they do".to_owned(),
        }
    }
}

impl Estimate {
    /// The estimate of a node's step.
    pub fn step(&self, node: loopwright_graph::NodeId) -> Option<&StepEstimate> {
        self.steps.iter().find(|step| step.node == node)
    }
}

/// A number with three digits and the prefix of its unit.
fn scaled(value: f64) -> String {
    const PREFIXES: [(f64, &str); 4] = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    let (unit, prefix) = PREFIXES
        .into_iter()
        .find(|(unit, _)| value >= *unit)
        .unwrap_or((1.0, ""));
    let value = value / unit;
    let digits = match value {
        value if value >= 100.0 || value.fract() == 0.0 => 0,
        value if value >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.digits$} {prefix}")
}

#[cfg(test)]
mod tests {
    use super::scaled;

    #[test]
    fn numbers_have_three_digits_and_a_prefix() {
        assert_eq!(scaled(512e6), "512 M");
        assert_eq!(scaled(14.26e9), "14.3 G");
        assert_eq!(scaled(7.0), "7 ");
        assert_eq!(scaled(1536.0), "1.54 k");
    }
}
