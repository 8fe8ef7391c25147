//! How long the scheduler takes, and how that grows with the program.

use crate::BenchError;
use crate::report::{Measured, Row};
use crate::sample::{median, seconds};
use crate::work::{ours, parsed};
use loopwright::backend::Target;
use loopwright::scheduler::{Order, schedule};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

/// Nodes of the programs that are scheduled.
const SIZES: [usize; 4] = [200, 2_000, 6_000, 20_000];

/// The bar for the first of them, in milliseconds.
const GOAL: f64 = 50.0;

/// How much worse than n·log n the largest may be, measured against the second: noise, caches that are left.
const SLACK: f64 = 1.5;

/// Rows for programs of growing size, and one for the growth.
pub(crate) fn schedule_rows(
    target: &Target,
    samples: usize,
    wanted: &dyn Fn(&str) -> bool,
    say: &dyn Fn(&str),
    measured: &mut Measured,
) {
    let mut per_node = Vec::new();
    for size in SIZES {
        let name = format!("schedule: a program of {size} nodes");
        if !wanted(&name) {
            continue;
        }
        say(&name);
        let goal = (size == SIZES[0]).then_some(GOAL);
        let row = time_of(size, &name, target, samples).map(|(median, scaled)| {
            per_node.push(scaled);
            [Row::new(&name, "ms", median * 1e3, BTreeMap::new(), goal)]
        });
        measured.take(&name, row);
    }
    // From the second on: the first is over before caches are warm.
    if per_node.len() == SIZES.len()
        && let [_, second, .., last] = per_node[..]
    {
        let name = format!("schedule: per n·log n at {} nodes", SIZES[SIZES.len() - 1]);
        let goal = Some(second * SLACK);
        let row = Row::new(&name, "ns", last, BTreeMap::new(), goal);
        measured.take(&name, Ok([row]));
    }
}

/// How many seconds it takes to schedule a program of about so many nodes, and nanoseconds per n·log n.
fn time_of(
    size: usize,
    name: &str,
    target: &Target,
    samples: usize,
) -> Result<(f64, f64), BenchError> {
    let graph = Arc::new(parsed(name, &layers(size))?.with_stores());
    let nodes = graph.node_ids().count() as f64;
    let mut times = Vec::new();
    for _ in 0..samples.clamp(3, 9) {
        let (time, made) = seconds(|| schedule(Arc::clone(&graph), target, Order::Free));
        made.map_err(|error| ours(name, error))?;
        times.push(time);
    }
    let median = median(&mut times);
    Ok((median, median * 1e9 / (nodes * nodes.log2())))
}

/// A program of about so many nodes: layers of products, activations, normalisations and residuals.
fn layers(nodes: usize) -> String {
    const PER_LAYER: usize = 20;
    let mut text = String::from(
        "loopwright program 1\ninput x0: f32[b=32, i=64]\ninput w: f32[i, o=64]\ninput back: f32[o, i]\n",
    );
    let layers = (nodes / PER_LAYER).max(1);
    for layer in 0..layers {
        let next = layer + 1;
        let _ = write!(
            text,
            "s{layer} = sum[i](x{layer} * w)\n\
             h{layer} = max(s{layer}, 0)\n\
             r{layer} = sum[o](h{layer} * back) + x{layer}\n\
             m{layer} = max[i](r{layer})\n\
             e{layer} = exp(r{layer} - m{layer})\n\
             t{layer} = sum[i](e{layer})\n\
             x{next} = e{layer} / t{layer} + tanh(r{layer}) * 0.5\n"
        );
    }
    let _ = writeln!(text, "output x{layers}");
    text
}
