//! Matrix products, a convolution and a rectifier on `gccjit` and on `cc`, by turns in one process: run times, their ratio, and how
//! long each took to compile.
//!
//! `cargo run --release -p loopwright-gccjit --example beside_cc`

use loopwright_backend::{Backend, CompileOptions};
use loopwright_cc::CcBackend;
use loopwright_compile::{Bound, Compiler};
use loopwright_gccjit::GccJit;
use loopwright_graph::{Array, Graph, parse};
use loopwright_text::Source;
use std::error::Error;
use std::time::Instant;

/// Rounds of each work; the fastest run of each backend counts.
const ROUNDS: usize = 30;

fn main() -> Result<(), Box<dyn Error>> {
    let gccjit = Backend::kernel_backend(GccJit::new());
    let cc = Backend::kernel_backend(CcBackend::from_env());
    for backend in [&gccjit, &cc] {
        backend.availability()?;
    }
    println!(
        "{:<12} {:>12} {:>12} {:>7} {:>14} {:>10}",
        "", "gccjit µs", "cc µs", "ratio", "gccjit compile", "cc compile"
    );
    for (name, text) in works() {
        let graph = parse(&Source::new(&name, &text)).map_err(|error| format!("{error:?}"))?;
        let (mut ours, our_compile) = prepared(&gccjit, &graph)?;
        let (mut theirs, their_compile) = prepared(&cc, &graph)?;
        let mut best = [f64::INFINITY; 2];
        for _ in 0..ROUNDS {
            for (bound, best) in [&mut ours, &mut theirs].into_iter().zip(&mut best) {
                let repeats = 10;
                let started = Instant::now();
                for _ in 0..repeats {
                    bound.run()?;
                }
                *best = best.min(started.elapsed().as_secs_f64() * 1e6 / f64::from(repeats));
            }
        }
        println!(
            "{name:<12} {:>12.1} {:>12.1} {:>7.3} {our_compile:>11.0} ms {their_compile:>7.0} ms",
            best[0],
            best[1],
            best[0] / best[1]
        );
    }
    Ok(())
}

/// The programs of the `compile` suite, and one that compares.
fn works() -> Vec<(String, String)> {
    let matmul = |n: u32| {
        let text = format!(
            "loopwright program 1\n\
             input A: f32[i={n}, k={n}]\n\
             input B: f32[k, j={n}]\n\
             output C = sum[k](A * B)\n"
        );
        (format!("matmul {n}"), text)
    };
    let conv = "loopwright program 1\n\
                dim y = 56, x = 56\n\
                input W: f32[o=64, c=64, ky=3, kx=3]\n\
                input X: f32[c, iy=58, ix=58]\n\
                Y[o, y, x] = sum[c, ky, kx](W * X[c, y + ky, x + kx])\n\
                output Y\n";
    let mut works: Vec<_> = [64, 128, 256, 512].map(matmul).into();
    works.push(("conv 3x3".to_owned(), conv.to_owned()));
    let relu = "loopwright program 1\ninput X: f32[i=16384]\noutput Y = max(X, 0.0)\n";
    works.push(("relu".to_owned(), relu.to_owned()));
    works
}

/// A program with its inputs, and the milliseconds that compiling it took.
fn prepared(backend: &Backend, graph: &Graph) -> Result<(Bound<'static>, f64), Box<dyn Error>> {
    let compiler = Compiler::new(backend.clone(), CompileOptions::default());
    let started = Instant::now();
    let program = compiler.compile(graph, None)?;
    let compile = started.elapsed().as_secs_f64() * 1e3;
    let mut bound = program.bind(&[])?;
    for node in graph.parameters() {
        let shape = bound.binding().shape(graph, node);
        let shape: Vec<usize> = shape.iter().map(|size| *size as usize).collect();
        let values: Vec<f64> = (0..shape.iter().product())
            .map(|at: usize| ((at * 37) % 101) as f64 / 101.0 - 0.5)
            .collect();
        let parts = graph.node(node);
        bound.give(&parts.name, Array::from_f64(parts.dtype, &shape, &values)?)?;
    }
    bound.run()?;
    Ok((bound, compile))
}
