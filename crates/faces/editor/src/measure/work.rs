//! What a time means: arithmetic and bytes in a second, and how that compares with what the machine can do.

use crate::cost;
use loopwright::backend::Target;
use loopwright::graph::Binding;
use loopwright::looptree::Plan;
use loopwright_tune::roofline::Roofline;

/// What a program has to do, however it is scheduled. What a schedule computes twice does not count twice:
/// else recomputing would look like speed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Work {
    /// Arithmetic operations.
    pub(crate) flops: f64,
    /// Bytes of all inputs, states and outputs, each once.
    pub(crate) bytes: f64,
}

impl Work {
    /// The work of a plan's program; the arithmetic is that of the plan.
    pub(crate) fn of(plan: &Plan, target: &Target, binding: &Binding) -> Work {
        let graph = plan.graph();
        let estimate = cost::of_plan(plan, target, binding);
        let steps = estimate.map_or_else(|_| Vec::new(), |estimate| estimate.steps);
        let outputs = graph.outputs().iter().map(|output| output.node);
        let updates = graph.updates().iter().map(|update| update.value);
        let arrays = graph.parameters().chain(outputs).chain(updates);
        let bytes = arrays.map(|node| {
            let elements: f64 = binding
                .shape(graph, node)
                .iter()
                .map(|n| *n as f64)
                .product();
            elements * graph.node(node).dtype.bytes() as f64
        });
        Work {
            flops: steps.iter().map(|step| step.flops).sum(),
            bytes: bytes.sum(),
        }
    }

    /// The least time that it takes on `threads` threads of a machine.
    fn least_seconds(&self, roofline: &Roofline, threads: u32) -> f64 {
        let computing = self.flops / (roofline.flops_per_second * f64::from(threads.max(1)));
        let bandwidth = roofline
            .copy_bytes_per_second
            .max(roofline.read_bytes_per_second);
        computing.max(self.bytes / bandwidth)
    }

    /// What a time for it means.
    pub(crate) fn in_seconds(
        &self,
        seconds: f64,
        roofline: &Roofline,
        threads: u32,
    ) -> Measurement {
        // Clocks have steps; nothing takes no time at all.
        let seconds = seconds.max(1e-9);
        Measurement {
            seconds,
            flops_per_second: self.flops / seconds,
            bytes_per_second: self.bytes / seconds,
            share: self.least_seconds(roofline, threads) / seconds,
        }
    }
}

/// How fast a plan ran.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Measurement {
    /// The middle one of the times of its runs.
    pub(crate) seconds: f64,
    pub(crate) flops_per_second: f64,
    pub(crate) bytes_per_second: f64,
    /// The least time that the machine allows, over the time it took.
    pub(crate) share: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACHINE: Roofline = Roofline {
        flops_per_second: 100e9,
        copy_bytes_per_second: 10e9,
        read_bytes_per_second: 8e9,
    };

    #[test]
    fn the_nearer_ceiling_counts() {
        let computes = Work {
            flops: 1e9,
            bytes: 1e6,
        };
        let measured = computes.in_seconds(0.02, &MACHINE, 1);
        assert_eq!(measured.flops_per_second, 50e9);
        assert_eq!(measured.share, 0.5);
        assert_eq!(computes.in_seconds(0.02, &MACHINE, 2).share, 0.25);
        let moves = Work {
            flops: 1e6,
            bytes: 1e9,
        };
        assert_eq!(moves.in_seconds(0.2, &MACHINE, 1).share, 0.5);
    }
}
