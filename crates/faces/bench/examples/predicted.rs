//! How good the cost model is: schedules of several programs, predicted and measured with `cc` on one
//! thread, and the rank correlation (Spearman's) of the two, for each program and for all.
//!
//! `cargo run --release -p loopwright-bench --example predicted`; a word after it picks the programs with
//! that word in their name.

use loopwright::backend::{Backend, CompileOptions, Target, backends};
use loopwright::compile::Compiler;
use loopwright::graph::{Array, Graph, parse};
use loopwright::looptree::{LoopTree, parse_schedule};
use loopwright::scheduler::estimate;
use loopwright::text::Source;
use std::error::Error;
use std::time::Instant;

struct Program {
    name: &'static str,
    text: &'static str,
    schedules: &'static [&'static str],
}

const PROGRAMS: &[Program] = &[
    Program {
        name: "matmul 256",
        text: "input A: f32[i=256, k=256]\ninput B: f32[k, j=256]\noutput C = sum[k](A * B)",
        schedules: &[
            "C: i, j, k",
            "C: i, k, j",
            "C: k, i, j",
            "C: j, i, k",
            "C: j, k, i",
            "C: i, k, j/16, j vectorize",
            "C: i, j/16, k, j vectorize",
            "C: i, j/64, k, j vectorize",
            "C: i/4, j, k, i unroll",
            "C: i/4, j/16, k, i unroll, j vectorize",
            "C: i/8, j/32, k, i unroll, j vectorize",
            "C: j/32, i/8, k, i unroll, j vectorize",
            "C: j/64, i/8, k, i unroll, j vectorize",
            "C: i/8, j/32, k, i, j",
            "C: i/2, j/16, k/4, k unroll, i unroll, j vectorize",
            "C: i/32, j/32, k/32, i, j, k",
            "C: i/32, j/32, k/32, i, k, j/16, j vectorize",
            "C: j/16, i/4, k, i unroll, j vectorize",
        ],
    },
    Program {
        name: "sums of columns 2048",
        text: "input x: f32[i=2048, j=2048]\noutput s = sum[i](x)",
        schedules: &[
            "s: i, j",
            "s: j, i",
            "s: j/16, i, j vectorize",
            "s: j/64, i, j vectorize",
            "s: j/64, i, j/16 unroll, j vectorize",
            "s: j/8, i, j unroll",
        ],
    },
    Program {
        name: "sums of rows 1024",
        text: "input x: f32[i=1024, j=1024]\noutput s = sum[j](x)",
        schedules: &[
            "s: i, j",
            "s: j, i",
            "s: i/8, j, i unroll",
            "s: i/4, j, i unroll",
            "s: i/16, j, i vectorize",
        ],
    },
    Program {
        name: "transpose 2048",
        text: "input x: f32[i=2048, j=2048]\ny[j, i] = x\noutput y",
        schedules: &[
            "y: i, j",
            "y: j, i",
            "y: i/16, j/16, i, j",
            "y: j/16, i/16, j, i",
            "y: j/32, i/32, j, i",
            "y: j/16, i/16, i, j",
            "y: j/64, i/64, j, i",
        ],
    },
    Program {
        name: "softmax 512",
        text: "input x: f32[i=512, j=512]\nm = max[j](x)\ne = exp(x - m)\ns = sum[j](e)\noutput y = e / s",
        schedules: &[
            "m: i, j\ns: i, j\ny: i, j",
            "m: i, j\ne: i, j\ns: i, j\ny: i, j",
            "m: i, j\ne: i, j\ns: share=1, i, j\ny: share=1, i, j",
            "m: i/8, j, i unroll\ne: i, j\ns: i/8, j, i unroll\ny: i, j/16, j vectorize",
            "m: i/16, j, i vectorize\ne: i, j\ns: i/16, j, i vectorize\ny: i, j/16, j vectorize",
            "m: j, i\ne: i, j\ns: j, i\ny: i, j",
        ],
    },
    Program {
        name: "two maps 2048",
        text: "input x: f32[i=2048, j=2048]\na = x * 2\noutput c = a * a + x",
        schedules: &[
            "c: i, j",
            "c: j, i",
            "c: i, j/16, j vectorize",
            "a: i, j/16, j vectorize\nc: i, j/16, j vectorize",
            "a: i, j\nc: share=1, i, j",
            "a: i, j\nc: share=0, i, j",
            "a: j, i\nc: share=0, j, i",
        ],
    },
    Program {
        name: "convolution 3x3",
        text: "dim y = 56, x = 56\ninput W: f32[o=32, c=32, ky=3, kx=3]\ninput X: f32[c, iy=58, ix=58]\n\
               output Y = sum[c, ky, kx](W * X[c, y + ky, x + kx])",
        schedules: &[
            "Y: o, y, x, c, ky, kx",
            "Y: o, c, ky, kx, y, x",
            "Y: o, y, c, ky, kx, x",
            "Y: o/4, y, x/16, c, ky, kx, o unroll, x vectorize",
            "Y: o/8, y, x/28, c, ky, kx, o unroll, x vectorize",
            "Y: o, y, x/16, c, ky, kx, x vectorize",
        ],
    },
    Program {
        name: "small layer 64",
        text: "input x: f32[b=64, k=64]\ninput w: f32[k, j=64]\ninput v: f32[j]\n\
               h = sum[k](x * w)\noutput y = tanh(h + v)",
        schedules: &[
            "h: b, j, k\ny: b, j",
            "h: b, j, k\ny: share=0, b, j",
            "h: b, k, j\ny: share=1, b, j",
            "h: b/4, j/32, k, b unroll, j vectorize\ny: b/4, j/32, b, j vectorize",
        ],
    },
];

fn compiled_graph(name: &str, text: &str) -> Result<Graph, Box<dyn Error>> {
    let source = Source::new(name, format!("loopwright program 1\n{text}\n"));
    Ok(parse(&source).map_err(|error| error.render(&source))?)
}

/// The shortest of several runs, in seconds.
fn measured(graph: &Graph, lines: &str, backend: &Backend) -> Result<f64, Box<dyn Error>> {
    let stored = graph.clone().with_stores();
    let source = Source::new("schedule", format!("loopwright schedule 1\n{lines}\n"));
    let schedule = parse_schedule(&source, &stored).map_err(|error| error.render(&source))?;
    let compiler = Compiler::new(backend.clone(), CompileOptions::default());
    let program = compiler.compile(graph, Some(&schedule))?;
    let mut bound = program.bind(&[])?;
    for node in graph.parameters() {
        let shape = bound.binding().shape(graph, node);
        let shape: Vec<usize> = shape.iter().map(|size| *size as usize).collect();
        let values: Vec<f64> = (0..shape.iter().product())
            .map(|at: usize| ((at * 37) % 101) as f64 / 101.0 - 0.5)
            .collect();
        let parts = graph.node(node);
        let array = Array::from_f64(parts.dtype, &shape, &values)?;
        bound.give(&parts.name, array)?;
    }
    bound.run()?;
    let mut best = f64::INFINITY;
    let begin = Instant::now();
    for round in 0..200 {
        let start = Instant::now();
        bound.run()?;
        best = best.min(start.elapsed().as_secs_f64());
        if round >= 4 && begin.elapsed().as_secs_f64() > 0.4 {
            break;
        }
    }
    Ok(best)
}

/// The correlation of the ranks of two lists.
fn rank_correlation(pairs: &[(f64, f64)]) -> f64 {
    let ranks = |pick: &dyn Fn(&(f64, f64)) -> f64| -> Vec<f64> {
        pairs
            .iter()
            .map(|pair| {
                let value = pick(pair);
                let below = pairs.iter().filter(|other| pick(other) < value).count();
                let same = pairs.iter().filter(|other| pick(other) == value).count();
                below as f64 + (same as f64 - 1.0) / 2.0
            })
            .collect()
    };
    let (a, b) = (ranks(&|pair| pair.0), ranks(&|pair| pair.1));
    let mean = (pairs.len() as f64 - 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| -> f64 {
        let both = a.iter().zip(b);
        both.map(|(a, b)| (a - mean) * (b - mean)).sum()
    };
    product(&a, &b) / (product(&a, &a) * product(&b, &b)).sqrt()
}

fn main() -> Result<(), Box<dyn Error>> {
    let only = std::env::args().nth(1).unwrap_or_default();
    let backend = backends()
        .into_iter()
        .find(|backend| backend.name() == "cc")
        .ok_or("the backend `cc` is not there")?;
    backend.availability().map_err(|why| why.to_string())?;
    let target = Target {
        threads: 1,
        ..backend.target()
    };
    println!("{target:?}\n");
    let mut all = Vec::new();
    let mut within = Vec::new();
    for program in PROGRAMS
        .iter()
        .filter(|program| program.name.contains(&only))
    {
        let graph = compiled_graph(program.name, program.text)?;
        let stored = graph.clone().with_stores();
        println!("{}\n  predicted  measured  ratio", program.name);
        let mut pairs = Vec::new();
        for lines in program.schedules {
            let source = Source::new("schedule", format!("loopwright schedule 1\n{lines}\n"));
            let schedule =
                parse_schedule(&source, &stored).map_err(|error| error.render(&source))?;
            let tree = LoopTree::new(&stored, &schedule)?;
            let found = estimate(&stored, &schedule, &tree, &target, &|_| None)?;
            let time = measured(&graph, lines, &backend)?;
            println!(
                "  {:>6.0} us {:>6.0} us {:>6.2}  {}",
                found.seconds * 1e6,
                time * 1e6,
                found.seconds / time,
                lines.replace('\n', " | ")
            );
            for step in &found.steps {
                let name = stored.node_name(step.node);
                println!("{:>30}: {}", name, step.reason(&stored));
            }
            pairs.push((found.seconds, time));
        }
        let correlation = rank_correlation(&pairs);
        println!("  rank correlation {correlation:.3}\n");
        within.push(correlation);
        all.extend(pairs);
    }
    let mean = within.iter().sum::<f64>() / within.len() as f64;
    println!(
        "mean of the programs {mean:.3}; all {} schedules {:.3}",
        all.len(),
        rank_correlation(&all)
    );
    // How long the model itself takes.
    let program = &PROGRAMS[0];
    let stored = compiled_graph(program.name, program.text)?.with_stores();
    let source = Source::new("schedule", "loopwright schedule 1\nC: i, k, j\n".to_owned());
    let schedule = parse_schedule(&source, &stored).map_err(|error| error.render(&source))?;
    let tree = LoopTree::new(&stored, &schedule)?;
    let start = Instant::now();
    for _ in 0..1000 {
        estimate(&stored, &schedule, &tree, &target, &|_| None)?;
    }
    println!(
        "an estimate takes {:.1} us",
        start.elapsed().as_secs_f64() * 1e3
    );
    Ok(())
}
