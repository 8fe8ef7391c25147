//! Programs whose indices are made of sizes and statics at the limits of 64 bits.
//!
//! The index arithmetic of such a program either fits, and then every device gives what the reference evaluator gives, or it is
//! refused when its sizes are bound, with an error that names the part that does not fit. Nothing is read outside of an array:
//! the interpreter of kernels checks every access, and devices run between guards.

use crate::generate::{Arithmetic, Case};
use crate::oracle::{Blame, Mismatch, Oracle};
use crate::rng::Rng;
use loopwright_graph::{Array, Graph, GraphError, NodeId};
use loopwright_ops::Scalar;
use loopwright_text::Source;
use std::fmt::Write;

/// Numbers around which 64-bit arithmetic goes wrong.
const EDGES: [i64; 22] = [
    0,
    1,
    2,
    3,
    7,
    1 << 20,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) + 1,
    1 << 33,
    1 << 40,
    1 << 59,
    1 << 61,
    (1 << 62) - 1,
    1 << 62,
    (1 << 62) + 1,
    3 << 61,
    i64::MAX / 3,
    i64::MAX / 2,
    // 2^63 - 2^32: twice it wraps to -2^33.
    9_223_372_032_559_808_512,
    i64::MAX - 1,
    i64::MAX,
];

/// What became of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LimitOutcome {
    /// Its index arithmetic does not fit, and it was refused.
    Refused,
    /// It ran, and agreed with the reference.
    Agreed,
}

/// One program with its sizes, as text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LimitProgram {
    /// The program.
    pub text: String,
    /// Values of its sizes and statics.
    pub sizes: Vec<(String, i64)>,
    /// Whether no number in it is large, so that it may not be refused.
    pub small: bool,
}

/// The program of a seed.
pub fn limit_program(seed: u64) -> LimitProgram {
    let mut rng = Rng::new(seed);
    let small = rng.chance(25);
    let edges = if small { &EDGES[..5] } else { &EDGES[..] };
    let count = rng.range(1, 6);
    let mut text = format!("loopwright program 1\nsize N = {count}\n");
    let mut sizes = vec![("N".to_owned(), count)];
    for name in ["S", "T"] {
        let value = *rng.pick(edges);
        // Near an edge as often as on it.
        let value = value.saturating_add(rng.range(-1, 1)).max(0);
        sizes.push((name.to_owned(), value));
        let _ = writeln!(text, "size {name} = 2");
    }
    let statics = rng.chance(40);
    if statics {
        let hi = (*rng.pick(edges)).max(1);
        let value = rng.range(0, 1).min(hi - 1);
        let value = if rng.chance(50) { hi - 1 } else { value };
        let _ = writeln!(text, "static P in 0 .. {hi}");
        sizes.push(("P".to_owned(), value));
    }
    let _ = writeln!(text, "input x: i32[i=N]");
    let _ = writeln!(text, "dim j = {}", rng.range(1, 5));
    let index = index(&mut rng, edges, statics, 3);
    let condition = match rng.chance(40) {
        true => {
            let comparison = *rng.pick(&["<", "<=", "==", "!="]);
            let left = self::index(&mut rng, edges, statics, 2);
            let right = self::index(&mut rng, edges, statics, 2);
            format!(" if {left} {comparison} {right}")
        }
        false => String::new(),
    };
    match rng.chance(70) {
        true => {
            let _ = writeln!(text, "output y = x[{index}]{condition} else 7");
        }
        // A view of a view, which is composed.
        false => {
            let outer = self::index(&mut rng, edges, statics, 1);
            let _ = writeln!(text, "dim k = {}", rng.range(1, 4));
            let _ = writeln!(text, "m = x[{index}]{condition} else 7");
            let outer = outer.replace('j', "k");
            let _ = writeln!(text, "output y = m[{outer}] else 9");
        }
    }
    LimitProgram { text, sizes, small }
}

/// An index as text.
fn index(rng: &mut Rng, edges: &[i64], statics: bool, depth: usize) -> String {
    let leaf = |rng: &mut Rng| match rng.below(if statics { 6 } else { 5 }) {
        0 | 1 => "j".to_owned(),
        2 => "S".to_owned(),
        3 => "T".to_owned(),
        4 => rng.pick(edges).to_string(),
        _ => "P".to_owned(),
    };
    if depth == 0 {
        return leaf(rng);
    }
    let left = index(rng, edges, statics, depth - 1);
    let right = match rng.chance(50) {
        true => leaf(rng),
        false => index(rng, edges, statics, depth - 1),
    };
    match rng.below(8) {
        0 | 1 => format!("({left} * {right})"),
        2 => format!("({left} + {right})"),
        3 => format!("({left} - {right})"),
        4 => format!("({left} // {})", rng.range(1, 5)),
        5 => format!("({left} % {})", rng.pick(edges).max(&1)),
        6 => format!("min({left}, {right})"),
        _ => format!("max({left}, {right})"),
    }
}

/// Checks the program of a seed; `None` for text that is no program, as where a constant of it does not fit.
///
/// # Errors
/// Where a device and the reference disagree, or a small program is refused.
pub fn check_limits(oracle: &Oracle, seed: u64) -> Result<Option<LimitOutcome>, Box<Mismatch>> {
    let program = limit_program(seed);
    let Ok(graph) = loopwright_graph::parse(&Source::new("limits.lw", program.text.as_str()))
    else {
        return Ok(None);
    };
    let case = case_of(graph, &program);
    match case.graph.bind(&case.sizes()) {
        Ok(_) => {}
        Err(GraphError::IndexOverflow { .. }) if !program.small => {
            return Ok(Some(LimitOutcome::Refused));
        }
        // Sizes that make an array too large, or a divisor 0, are refused as ever.
        Err(error) if !matches!(error, GraphError::IndexOverflow { .. }) => return Ok(None),
        Err(error) => return Err(Box::new(Mismatch::new(Blame::Evaluator, error.to_string()))),
    }
    match oracle.check(&case) {
        Ok(_) => Ok(Some(LimitOutcome::Agreed)),
        // Numbers of the program itself may leave 64 bits where one view is put into another.
        Err(refused)
            if !program.small
                && refused.blame == Blame::Schedule
                && refused.message.contains("does not fit in 64 bits") =>
        {
            Ok(Some(LimitOutcome::Refused))
        }
        Err(mismatch) => Err(Box::new(mismatch)),
    }
}

fn case_of(graph: Graph, program: &LimitProgram) -> Case {
    let parameters: Vec<NodeId> = graph.parameters().collect();
    let count = program.sizes[0].1 as usize;
    let inputs = parameters.into_iter().map(|node| {
        let dtype = graph.node(node).dtype;
        let values: Vec<Scalar> = (0..count)
            .map(|at| Scalar::from_i64(dtype, 100 + at as i64))
            .collect();
        let array = Array::from_scalars(dtype, &[count], &values);
        (node, array.expect("a handful of values"))
    });
    Case {
        inputs: inputs.collect(),
        schedule: None,
        sizes: program.sizes.clone(),
        arithmetic: Arithmetic::Strict,
        graph,
    }
}
